// SPDX-License-Identifier: MIT
// Topics are words joined by dots. In a pattern `*` stands for exactly one word and `#` for zero or more words. The rules
// are RabbitMQ's. Matching allocates nothing.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/validate.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

/// Iterates over the words of a topic; `a..b` has an empty word in the middle.
class word_cursor {
  public:
    constexpr explicit word_cursor(std::string_view text) noexcept : rest_(text) {}

    [[nodiscard]] constexpr bool done() const noexcept { return done_; }
    [[nodiscard]] constexpr std::string_view word() const noexcept { return rest_.substr(0, rest_.find('.')); }
    constexpr void next() noexcept {
        const auto dot = rest_.find('.');
        done_ = dot == std::string_view::npos;
        rest_.remove_prefix(done_ ? rest_.size() : dot + 1);
    }

  private:
    std::string_view rest_;
    bool done_ = false;
};

} // namespace detail

/// Whether the topic fits the pattern. Neither is validated; `topic_pattern` validates patterns.
[[nodiscard]] constexpr bool topic_matches(std::string_view pattern, std::string_view topic) noexcept {
    detail::word_cursor p(pattern);
    detail::word_cursor t(topic);
    // If the words after the last `#` do not fit, match again with that `#` taking one word more. Only the last `#` needs
    // this: an earlier one could only take what the last one can take.
    bool has_hash = false;
    auto after_hash = p;
    auto swallowed = t;
    while (!t.done()) {
        if (!p.done() && p.word() == "#") {
            p.next();
            has_hash = true;
            after_hash = p;
            swallowed = t;
        } else if (!p.done() && (p.word() == "*" || p.word() == t.word())) {
            p.next();
            t.next();
        } else if (has_hash) {
            swallowed.next();
            t = swallowed;
            p = after_hash;
        } else {
            return false;
        }
    }
    while (!p.done() && p.word() == "#") {
        p.next();
    }
    return p.done();
}

/// How specific a pattern is. The more specific pattern compares less: fewer `#`, then fewer `*`, then more literal
/// words.
struct specificity {
    std::size_t hashes = 0;
    std::size_t stars = 0;
    std::size_t spelled = 0;

    [[nodiscard]] friend constexpr std::strong_ordering operator<=>(const specificity& a,
                                                                    const specificity& b) noexcept {
        if (const auto order = a.hashes <=> b.hashes; order != 0) {
            return order;
        }
        if (const auto order = a.stars <=> b.stars; order != 0) {
            return order;
        }
        return b.spelled <=> a.spelled;
    }
    [[nodiscard]] friend constexpr bool operator==(const specificity&, const specificity&) noexcept = default;
};

/// A validated pattern: not empty, within the length limit of a name, without control characters or empty words, and with
/// wildcards only as whole words (`a*` is an error). The constructor throws `invalid_argument` otherwise.
class topic_pattern {
  public:
    explicit topic_pattern(std::string text) : text_(std::move(text)) {
        detail::check_required_name({"topic", "pattern"}, text_, limits{}.name_max);
        for (detail::word_cursor at(text_); !at.done(); at.next()) {
            const auto word = at.word();
            if (word.empty()) {
                detail::refuse({"topic", "pattern"}, "has an empty word");
            }
            if (word.size() > 1 && word.find_first_of("*#") != std::string_view::npos) {
                detail::refuse({"topic", "pattern"}, "has a wildcard inside a word; a wildcard must be a whole word");
            }
            (word == "#" ? specificity_.hashes : word == "*" ? specificity_.stars : specificity_.spelled) += 1;
        }
    }

    [[nodiscard]] bool matches(std::string_view topic) const noexcept { return topic_matches(text_, topic); }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] const vouch::specificity& specificity() const noexcept { return specificity_; }

  private:
    std::string text_;
    vouch::specificity specificity_{};
};

} // namespace v0
} // namespace vouch
