// SPDX-License-Identifier: MIT
// The source of a C++ test that repeats the calls on a store, line by line, and the calls themselves, so that a shorter
// test can be searched for. `test_writer.hpp` fills it. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/replay/first_difference.hpp>
#include <vouch/contract/query.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// What a test source knows about one of the stores that are called.
struct tracked_store {
    std::size_t number = 0;
    model committed{};
    known_names names{};
    std::size_t open = 0;   ///< transactions
    bool is_checked = true; ///< compared with `committed` since its last change
};

/// One step of a test, which can be repeated on another store.
struct test_step {
    enum class kind : std::uint8_t { open, close, begin, call, list, end };
    kind what = kind::call;
    std::string handle{};                           ///< its name in the test
    std::string transaction{};                      ///< empty: the step is one of the handle
    std::size_t store = 0;                          ///< for `open`
    std::function<void(any_transaction&)> repeat{}; ///< for `call`
    vouch::query query{};                           ///< for `list`, on the transaction or the handle
};
using test_steps = std::vector<test_step>;

class test_source {
  public:
    void add(std::string code) { lines_.push_back({std::move(code)}); }
    /// Replaces the last line.
    void rewrite(std::string code) { lines_.back().code = std::move(code); }
    /// Adds the destruction of a handle or a transaction. It is left out of the text if it is the last line.
    void add_end(const std::string& of, std::string_view how) {
        lines_.push_back({"{ auto gone = std::move(" + of + "); } // " + std::string(how), true});
    }

    [[nodiscard]] std::string next_handle() { return "s" + std::to_string(++handles_); }
    [[nodiscard]] std::string next_transaction() { return "tx" + std::to_string(++transactions_); }
    [[nodiscard]] std::shared_ptr<tracked_store> store_at(const std::string& location) {
        auto& found = stores_[location];
        if (!found) {
            found = std::make_shared<tracked_store>();
            found->number = stores_.size();
        }
        return found;
    }

    /// Whether the model still predicts the answers. It does not if transactions overlap or a commit is in doubt.
    [[nodiscard]] bool can_predict() const noexcept { return can_predict_; }
    void stop_predicting() noexcept { can_predict_ = false; }
    /// Ends the test here: the last line shows the wrong answer.
    void end_here() noexcept {
        can_predict_ = false;
        if (!shows()) {
            shown_ = lines_.size();
            steps_shown_ = steps_.size();
        }
    }
    /// Whether the test has a line that shows a wrong answer.
    [[nodiscard]] bool shows() const noexcept { return shown_ != nothing_shown; }

    /// Notes that the last line threw, and the line that requires that it does not throw.
    void note_throw(std::string requirement) {
        thrown_ = std::move(requirement);
        thrown_at_ = lines_.size();
        steps_thrown_ = steps_.size();
    }
    /// If nothing but ends of handles and transactions followed the last throw, the test ends with it: no error is
    /// allowed there.
    void end_at_throw() {
        auto last = lines_.size();
        while (last > 0 && lines_[last - 1].is_end) {
            --last;
        }
        if (!shows() && !thrown_.empty() && last == thrown_at_) {
            lines_.resize(thrown_at_);
            steps_.resize(steps_thrown_);
            rewrite(thrown_);
            end_here();
        }
    }

    void note(test_step step) { steps_.push_back(std::move(step)); }
    /// The steps cannot be repeated: a transaction was moved.
    void stop_noting() noexcept { is_repeatable_ = false; }
    /// The steps up to the line that shows a wrong answer; none if there is no such line or they cannot be repeated.
    [[nodiscard]] test_steps steps() const {
        return shows() && is_repeatable_
                   ? test_steps(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(steps_shown_))
                   : test_steps{};
    }
    /// What the last line of the test asks: "expect claim", "expect_error enqueue". Names and arguments are left out.
    [[nodiscard]] std::string question() const {
        if (!shows()) {
            return {};
        }
        const auto& code = lines_[shown_ - 1].code;
        auto at = code.find_first_of("0123456789", 0);
        while (at != std::string::npos &&
               code[std::min(code.find_first_not_of("0123456789", at), code.size() - 1)] != '.') {
            at = code.find_first_of("0123456789", code.find_first_not_of("0123456789", at));
        }
        const auto dot = at == std::string::npos ? code.size() : code.find('.', at);
        return code.substr(0, code.find('(')) + " " + code.substr(dot, code.find('(', dot) - dot);
    }

    /// The test: a function that makes the same calls on any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` opens a handle on store n, which is empty at first.\n";
        out +=
            shows() ? "" : "/// It repeats the calls and throws nothing: what is wrong is not the answer of a call.\n";
        out += "template <class Open>\nvoid replay(Open&& open) {\n"
               "    using namespace vouch;\n    using namespace vouch::conformance;\n"
               "    using namespace std::chrono_literals;\n";
        auto last = std::min(lines_.size(), shown_);
        while (last > 0 && lines_[last - 1].is_end) {
            --last;
        }
        for (std::size_t i = 0; i < last; ++i) {
            out += "    " + lines_[i].code + "\n";
        }
        return out + "}\n";
    }
    [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }

  private:
    struct line {
        std::string code{};
        bool is_end = false;
    };
    std::vector<line> lines_{};
    std::size_t handles_ = 0;
    std::size_t transactions_ = 0;
    std::map<std::string, std::shared_ptr<tracked_store>> stores_{};
    bool can_predict_ = true;
    static constexpr auto nothing_shown = static_cast<std::size_t>(-1);
    std::size_t shown_ = nothing_shown; ///< lines
    std::string thrown_{};
    std::size_t thrown_at_ = 0; ///< lines
    test_steps steps_{};
    std::size_t steps_shown_ = 0;
    std::size_t steps_thrown_ = 0;
    bool is_repeatable_ = true;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
