// SPDX-License-Identifier: MIT
// What a check works with: stores at places of its own, randomness from the seed, the budget, and expectations that end
// it with a message when they are not met. The store's calls are written down if a failure is to be shown.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// An expectation that was not met.
struct failure {
    std::string what{};
    std::string seen{};
    std::string expected{};
    std::string story{}; ///< the shrunk case, where there is one
};

/// A check that cannot be carried out on this store or fixture, and why.
struct untested {
    std::string why{};
};

/// What a fixture may offer beside `open`.
struct hooks {
    /// Makes the place look as after the death of its process, with its handles destroyed just before.
    std::function<void(const place&)> crash{};
    /// Lets the store call back between its internal steps, from whatever thread is in it; none: stop calling.
    std::function<void(std::function<void(std::string_view)>)> seam{};
    /// Nothing will be opened at this place again.
    std::function<void(const place&)> forget{};
    /// Lets the n-th step of the store's own machinery fail from now on; 0: none. Says whether one has failed since.
    std::function<bool(std::size_t)> fail_at{};
};

/// What was done, counted.
struct tally {
    std::uint64_t commands = 0;
    std::uint64_t interleavings = 0;
    std::uint64_t histories = 0;
    std::uint64_t overlapping = 0; ///< histories in which operations on the same thing were in progress together
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< "settle applied" and the like
};

/// All that trials of one run share.
struct stage {
    std::function<any_store(const place&)> open{};
    conformance::hooks hooks{};
    conformance::options options{};
    conformance::budget budget{};
    vouch::capabilities can{};
    places* ground = nullptr;
    conformance::tally tally{};
    std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
};

class trial {
  public:
    trial(stage& on, std::uint64_t seed, script* written = nullptr)
        : stage_(on), dice_(seed), seed_(seed), script_(written), home_(on.ground->fresh()) {}
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;
    ~trial() { leave(home_); }

    /// A handle on the trial's own place; the next one is a second handle on the same work.
    [[nodiscard]] any_store open() { return open(home_); }
    [[nodiscard]] any_store open(const place& p) {
        auto store = stage_.open(p);
        return script_ == nullptr ? store : write_down(store, *script_, p.directory().string());
    }
    [[nodiscard]] const place& home() const noexcept { return home_; }
    [[nodiscard]] place fresh_place() { return stage_.ground->fresh(); }

    /// Gives a place up: its handles are gone, and nothing will be opened there again.
    void leave(const place& p) {
        if (stage_.hooks.forget) {
            stage_.hooks.forget(p);
        }
        std::error_code ignored;
        std::filesystem::remove_all(p.directory(), ignored);
    }

    [[nodiscard]] dice& random() noexcept { return dice_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] const conformance::budget& budget() const noexcept { return stage_.budget; }
    [[nodiscard]] const conformance::options& options() const noexcept { return stage_.options; }
    [[nodiscard]] const conformance::hooks& hooks() const noexcept { return stage_.hooks; }
    [[nodiscard]] const vouch::capabilities& can() const noexcept { return stage_.can; }
    [[nodiscard]] conformance::tally& tally() noexcept { return stage_.tally; }
    [[nodiscard]] conformance::stage& on() noexcept { return stage_; }
    [[nodiscard]] script* written() const noexcept { return script_; }

    // Expectations.

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
                auto [a, b] = show_difference(seen, expected);
                fail(std::string(what), std::move(a), std::move(b));
            }
        } else if constexpr (std::integral<Seen>) {
            equal(seen, static_cast<Seen>(expected), what);
        } else {
            equal(seen, Seen(expected), what);
        }
    }

    /// That `f` throws a `vouch::error` of this kind, and nothing else; a conflict goes through, since it may come at
    /// any time.
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
            fail(std::string(what), "an exception that is no vouch::error", show(kind));
        }
        fail(std::string(what), "no error", show(kind));
    }

  private:
    stage& stage_;
    dice dice_;
    std::uint64_t seed_;
    script* script_;
    place home_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
