// SPDX-License-Identifier: MIT
// The calls a store gets, written down as a C++ test, line by line. `scripted.hpp` writes it. Not for several threads.
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
namespace conformance {

namespace detail {

/// What is known of one of the stores that are called.
struct known_store {
    std::size_t number = 0;
    model committed{};
    detail::names names{};
    std::size_t open = 0;           ///< transactions
    bool has_been_looked_at = true; ///< from outside, since something happened to it
};

} // namespace detail

class script {
  public:
    void add(std::string code) { lines_.push_back({std::move(code)}); }
    /// Says the newest line in another way.
    void rewrite(std::string code) { lines_.back().code = std::move(code); }
    /// The end of a handle or a transaction, which is not worth a word if nothing comes after it.
    void add_end(const std::string& of, std::string_view how) {
        lines_.push_back({"{ auto gone = std::move(" + of + "); } // " + std::string(how), true});
    }

    [[nodiscard]] std::string next_handle() { return "s" + std::to_string(++handles_); }
    [[nodiscard]] std::string next_transaction() { return "tx" + std::to_string(++transactions_); }
    [[nodiscard]] std::shared_ptr<detail::known_store> store_at(const std::string& place) {
        auto& found = stores_[place];
        if (!found) {
            found = std::make_shared<detail::known_store>();
            found->number = stores_.size();
        }
        return found;
    }

    /// Whether the model still says what is right: not if transactions overlap, or a commit is in doubt.
    [[nodiscard]] bool is_sure() const noexcept { return is_sure_; }
    void give_up() noexcept { is_sure_ = false; }
    /// The newest line shows what is wrong; what comes after it has nothing to add.
    void end_here() noexcept {
        is_sure_ = false;
        shown_ = lines_.size();
    }

    /// A function that makes the same calls on handles of any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` gives a handle on store n, empty at first.\n"
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
    std::map<std::string, std::shared_ptr<detail::known_store>> stores_{};
    bool is_sure_ = true;
    std::size_t shown_ = static_cast<std::size_t>(-1); ///< lines
};

} // namespace conformance
} // namespace v0
} // namespace vouch
