// SPDX-License-Identifier: MIT
// Shortens a test that shows a wrong answer: leaves out transactions, handles and calls as long as the last line still
// shows a wrong answer to the same question. Every attempt is run on fresh stores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr auto* threw_where_none_is_allowed = "the store threw an error where none is allowed";

[[nodiscard]] inline failure unexpected_error(const error& e) {
    return {.what = threw_where_none_is_allowed, .seen = show(e.kind()) + ": " + e.what(), .expected = "no error"};
}

/// Repeats the steps of a test on fresh stores and writes them down as a test again.
class test_repeater {
  public:
    explicit test_repeater(run_context& context) : context_(context) {}
    test_repeater(const test_repeater&) = delete;
    test_repeater& operator=(const test_repeater&) = delete;
    ~test_repeater() {
        transactions_.clear();
        handles_.clear();
        for (const auto& [number, where] : locations_) {
            if (context_.hooks.forget) {
                context_.hooks.forget(where);
            }
            std::error_code ignored;
            std::filesystem::remove_all(where.directory(), ignored);
        }
    }

    /// Stops where an answer is wrong. `ends_with_error`: a call that throws at the end is wrong, too.
    [[nodiscard]] test_source run(const test_steps& steps, bool ends_with_error) {
        for (const auto& step : steps) {
            try {
                run(step);
            } catch (const error&) { // NOLINT(bugprone-empty-catch): the source has it
            }
            if (source_.shows()) {
                break;
            }
        }
        if (ends_with_error) {
            source_.end_at_throw();
        }
        return source_;
    }

  private:
    void run(const test_step& step) {
        const auto handle = handles_.find(step.handle);
        const auto tx = transactions_.find(step.transaction);
        using kind = test_step::kind;
        if (step.what == kind::open) {
            open(step);
        } else if (step.what == kind::begin && handle != handles_.end()) {
            transactions_.try_emplace(step.transaction, handle->second.begin());
        } else if (step.what == kind::call && tx != transactions_.end()) {
            step.repeat(tx->second);
        } else if (step.what == kind::list && tx != transactions_.end()) {
            std::ignore = tx->second.list(step.query);
        } else if (step.what == kind::list && step.transaction.empty() && handle != handles_.end()) {
            std::ignore = handle->second.list(step.query);
        } else if (step.what == kind::end && tx != transactions_.end()) {
            transactions_.erase(tx);
            if (handle != handles_.end()) {
                compare(handle->second);
            }
        } else if (step.what == kind::close && handle != handles_.end()) {
            handles_.erase(handle);
        }
    }

    void open(const test_step& step) {
        auto where = locations_.find(step.store);
        if (where == locations_.end()) {
            where = locations_.emplace(step.store, context_.locations->fresh()).first;
        }
        const auto opened = handles_.emplace(
            step.handle, write_test(context_.open(where->second), source_, std::to_string(step.store)));
        compare(opened.first->second);
    }

    /// A read compares the store with the model.
    static void compare(const any_store& store) { std::ignore = store.counts("q"); }

    run_context& context_;
    test_source source_{}; // before what writes to it
    std::map<std::size_t, location> locations_{};
    std::map<std::string, any_store> handles_{};
    std::map<std::string, any_transaction> transactions_{};
};

class test_shortener {
  public:
    test_shortener(run_context& context, const test_source& longest, bool ends_with_error)
        : context_(context), best_(longest), steps_(longest.steps()), ends_with_error_(ends_with_error) {}

    [[nodiscard]] test_source run() {
        if (!steps_.empty() && keeps(steps_)) { // or the failure is not one of these calls alone
            leave_out(names([](const test_step& s) { return s.transaction; }),
                      [](const test_step& s) { return s.transaction; });
            leave_out(names([](const test_step& s) { return s.handle; }), [](const test_step& s) { return s.handle; });
            leave_out_calls();
        }
        return best_;
    }

  private:
    static constexpr std::size_t attempts_max = 150;

    /// Whether these steps show a wrong answer to the same question. If so, they are the best so far.
    bool keeps(const test_steps& steps) {
        if (attempts_++ == attempts_max) {
            return false;
        }
        auto again = test_repeater(context_).run(steps, ends_with_error_);
        if (again.question() != best_.question()) {
            return false;
        }
        best_ = std::move(again);
        steps_ = steps;
        return true;
    }

    template <class Name>
    [[nodiscard]] std::vector<std::string> names(const Name& name) const {
        std::vector<std::string> out;
        for (const auto& step : steps_) {
            if (!name(step).empty() && std::find(out.begin(), out.end(), name(step)) == out.end()) {
                out.push_back(name(step));
            }
        }
        return out;
    }

    /// Tries to leave out all steps with some of these names: first many at a time, then one by one.
    template <class Name>
    void leave_out(std::vector<std::string> all, const Name& name) {
        for (auto size = all.size(); size > 0; size /= 2) {
            for (std::size_t at = 0; at < all.size() && attempts_ < attempts_max;) {
                const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
                const auto last = first + static_cast<std::ptrdiff_t>(std::min(size, all.size() - at));
                const std::set<std::string> without(first, last);
                auto fewer = steps_;
                std::erase_if(fewer, [&](const test_step& s) { return without.contains(name(s)); });
                if (keeps(fewer)) {
                    all.erase(first, last);
                } else {
                    at += size;
                }
            }
        }
    }

    void leave_out_calls() {
        for (auto at = steps_.size(); at-- > 0 && attempts_ < attempts_max;) {
            if (steps_[at].what == test_step::kind::call) {
                auto fewer = steps_;
                fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
                keeps(fewer);
            }
        }
    }

    run_context& context_;
    test_source best_;
    test_steps steps_;
    bool ends_with_error_;
    std::size_t attempts_ = 0;
};

/// A test as short as possible that shows the failure, or the given one.
[[nodiscard]] inline test_source shortened(run_context& context, test_source longest, const failure& why) {
    const bool ends_with_error = why.what == threw_where_none_is_allowed;
    if (ends_with_error) {
        longest.end_at_throw();
    }
    try {
        return test_shortener(context, longest, ends_with_error).run();
    } catch (const std::exception&) { // for instance, the store cannot be opened any more
        return longest;
    }
}

/// The text of that test. If it is too long to be useful, a sentence that says so.
[[nodiscard]] inline std::string shortened_text(run_context& context, test_source longest, const failure& why) {
    constexpr std::size_t size_max = 64 * 1024;
    auto text = shortened(context, std::move(longest), why).text();
    return text.size() <= size_max ? text
                                   : "A test that shows it has " + std::to_string(text.size()) +
                                         " bytes, too many to print. The command above repeats the check.\n";
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
