// SPDX-License-Identifier: MIT
// Parts of a report as messages between two processes of the same program. A message is a list of strings, written as
// the length of each and its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using message = std::vector<std::string>;

/// The bytes of a value. Both processes run the same program, so they agree on its layout.
template <class T>
[[nodiscard]] std::string bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
}

template <class T>
[[nodiscard]] T value_of(const std::string& bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    T out{};
    std::memcpy(&out, bytes.data(), bytes.size() < sizeof(T) ? bytes.size() : sizeof(T));
    return out;
}

[[nodiscard]] inline std::string encoded(const message& parts) {
    std::string body;
    for (const auto& part : parts) {
        body += bytes_of(part.size()) + part;
    }
    return bytes_of(body.size()) + body;
}

/// Takes the first complete message from the front of `from`.
[[nodiscard]] inline std::optional<message> take_message(std::string& from) {
    constexpr auto head = sizeof(std::size_t);
    if (from.size() < head || from.size() - head < value_of<std::size_t>(from)) {
        return std::nullopt;
    }
    const auto end = head + value_of<std::size_t>(from);
    message out;
    for (auto at = head; at < end;) {
        const auto length = value_of<std::size_t>(from.substr(at, head));
        out.push_back(from.substr(at + head, length));
        at += head + length;
    }
    from.erase(0, end);
    return out;
}

/// The words of a message, one after the other. Missing words are empty.
class word_reader {
  public:
    explicit word_reader(message from) : words_(std::move(from)) {}

    [[nodiscard]] std::string text() { return next_ < words_.size() ? std::move(words_[next_++]) : std::string(); }
    template <class T>
    [[nodiscard]] T value() {
        return value_of<T>(text());
    }

  private:
    message words_;
    std::size_t next_ = 0;
};

/// What is known before the first clause.
[[nodiscard]] inline message opened_message(const report& r) {
    message out{"opened", r.platform, bytes_of(r.can), bytes_of(r.hooks.size())};
    out.insert(out.end(), r.hooks.begin(), r.hooks.end());
    out.push_back(bytes_of(r.missing.size()));
    out.insert(out.end(), r.missing.begin(), r.missing.end());
    return out;
}

inline void read_opened(word_reader& from, report& into) {
    into.platform = from.text();
    into.can = from.value<vouch::capabilities>();
    for (auto* const list : {&into.hooks, &into.missing}) {
        list->clear();
        for (auto left = from.value<std::size_t>(); left > 0; --left) {
            list->push_back(from.text());
        }
    }
}

[[nodiscard]] inline message ended_message(const clause_report& c) {
    message out{"ended",
                bytes_of(c.result),
                c.why,
                c.failure.what,
                c.failure.seen,
                c.failure.expected,
                c.failure.transcript,
                bytes_of(c.seed),
                bytes_of(c.calls),
                bytes_of(c.milliseconds)};
    for (const auto& [name, counter] : tally_counters) {
        out.push_back(bytes_of(c.tally.*counter));
    }
    out.push_back(bytes_of(c.tally.answers.size()));
    for (const auto& [name, count] : c.tally.answers) {
        out.push_back(name);
        out.push_back(bytes_of(count));
    }
    return out;
}

/// Fills in everything but the clause.
inline void read_ended(word_reader& from, clause_report& into) {
    into.result = from.value<result>();
    into.why = from.text();
    into.failure.what = from.text();
    into.failure.seen = from.text();
    into.failure.expected = from.text();
    into.failure.transcript = from.text();
    into.seed = from.value<std::uint64_t>();
    into.calls = from.value<std::uint64_t>();
    into.milliseconds = from.value<double>();
    for (const auto& [name, counter] : tally_counters) {
        into.tally.*counter = from.value<std::uint64_t>();
    }
    for (auto left = from.value<std::size_t>(); left > 0; --left) {
        auto name = from.text();
        into.tally.answers[std::move(name)] = from.value<std::uint64_t>();
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
