// SPDX-License-Identifier: MIT
// What the check of a clause works with: stores at locations of its own, randomness from the seed, the budget, and
// expectations. An expectation that is not met ends the check with a `failure`.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/fixture_hooks.hpp>
#include <vouch/conformance/detail/locations.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace clauses {
using namespace detail; // NOLINT(google-build-using-namespace): clauses are written in the suite's own words
} // namespace clauses

namespace detail {

/// Thrown by a check that cannot be carried out on this store or fixture.
struct untested {
    std::string why{};
};

/// What all trials of one run share.
struct run_context {
    std::function<any_store(const location&)> open{};
    fixture_hooks hooks{};
    conformance::options options{};
    conformance::budget budget{};
    vouch::capabilities can{};
    detail::locations* locations = nullptr;
    conformance::tally tally{};
    std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
};

} // namespace detail

class trial {
  public:
    /// With a `source`, all calls on the stores it opens are written there as a test.
    trial(detail::run_context& context, std::uint64_t seed, detail::test_source* source = nullptr)
        : context_(context), random_(seed), seed_(seed), source_(source), home_(context.locations->fresh()) {}
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;
    ~trial() {
        for (const auto& one : passing_) {
            abandon(one.where);
        }
        abandon(home_);
    }

    /// Opens a handle on the trial's own location. Further calls open further handles on the same work.
    [[nodiscard]] any_store open() { return open(home_); }
    [[nodiscard]] any_store open(const location& p) {
        auto store = context_.open(p);
        return source_ == nullptr ? store : detail::write_test(store, *source_, p.directory().string());
    }
    /// Opens the only handle on a location that is not opened again, so that what is stored there can be removed when the
    /// handle is gone. Removes what earlier ones have left: a check may open hundreds.
    [[nodiscard]] any_store open(location&& fresh) {
        std::erase_if(passing_, [this](const passing& one) {
            const bool is_over = one.handle.expired();
            if (is_over) {
                abandon(one.where);
            }
            return is_over;
        });
        auto store = context_.open(fresh);
        passing_.push_back({store.handle(), std::move(fresh)});
        const auto& p = passing_.back().where;
        return source_ == nullptr ? store : detail::write_test(store, *source_, p.directory().string());
    }
    [[nodiscard]] const location& home() const noexcept { return home_; }
    [[nodiscard]] location fresh_location() { return context_.locations->fresh(); }

    /// Removes what is stored at a location. Its handles are destroyed and it is not opened again.
    void abandon(const location& p) {
        if (context_.hooks.forget) {
            context_.hooks.forget(p);
        }
        std::error_code ignored;
        std::filesystem::remove_all(p.directory(), ignored);
    }

    [[nodiscard]] detail::random_source& random() noexcept { return random_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] const conformance::budget& budget() const noexcept { return context_.budget; }
    [[nodiscard]] const conformance::options& options() const noexcept { return context_.options; }
    [[nodiscard]] const detail::fixture_hooks& hooks() const noexcept { return context_.hooks; }
    [[nodiscard]] const vouch::capabilities& can() const noexcept { return context_.can; }
    [[nodiscard]] conformance::tally& tally() noexcept { return context_.tally; }
    [[nodiscard]] detail::run_context& context() noexcept { return context_; }
    [[nodiscard]] detail::test_source* source() const noexcept { return source_; }

    // Expectations. `what` names what is compared, or states what must hold.

    [[noreturn]] static void fail(std::string what, std::string seen = {}, std::string expected = {}) {
        throw failure{std::move(what), std::move(seen), std::move(expected), {}};
    }

    static void expect(bool holds, std::string_view what) {
        if (!holds) {
            fail(std::string(what));
        }
    }

    template <class Seen, class Expected>
    static void equal(const Seen& seen, const Expected& expected, std::string_view what) {
        if constexpr (std::same_as<Seen, Expected>) {
            if (!(seen == expected)) {
                auto [a, b] = detail::show_difference(seen, expected);
                fail(std::string(what), std::move(a), std::move(b));
            }
        } else if constexpr (std::integral<Seen>) {
            equal(seen, static_cast<Seen>(expected), what);
        } else {
            equal(seen, Seen(expected), what);
        }
    }

    /// Requires that `f` throws a `vouch::error` of this kind. Lets a conflict pass, because any call may throw one.
    template <class F>
    static error throws(error_kind kind, std::string_view what, F&& f) {
        try {
            f();
        } catch (const error& e) {
            if (e.kind() == error_kind::conflict && kind != error_kind::conflict) {
                throw;
            }
            equal(e.kind(), kind, what);
            return e;
        } catch (const std::exception&) {
            fail(std::string(what), "an exception that is not a vouch::error", detail::show(kind));
        }
        fail(std::string(what), "no error", detail::show(kind));
    }

  private:
    /// A location with a single handle.
    struct passing {
        std::weak_ptr<const store_interface> handle;
        location where;
    };

    detail::run_context& context_;
    detail::random_source random_;
    std::uint64_t seed_;
    detail::test_source* source_;
    location home_;
    std::vector<passing> passing_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch
