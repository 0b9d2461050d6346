// SPDX-License-Identifier: MIT
// The source of a C++ test that repeats the calls on a store, line by line. `test_writer.hpp` fills it. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/replay/first_difference.hpp>

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
        shown_ = lines_.size();
    }

    /// The test: a function that makes the same calls on any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` opens a handle on store n, which is empty at first.\n"
                          "template <class Open>\nvoid replay(Open&& open) {\n"
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
    std::size_t shown_ = static_cast<std::size_t>(-1); ///< lines
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
