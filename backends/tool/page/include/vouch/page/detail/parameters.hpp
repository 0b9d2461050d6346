// SPDX-License-Identifier: MIT
// The parameters of a request, from its query or from the body of a form.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// The request is wrong; the text says how.
class bad_request : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Decodes `%41` and, in forms, `+`. A broken escape is an error.
[[nodiscard]] inline std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i] == '+' ? ' ' : text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? vouch::detail::hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? vouch::detail::hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
            throw bad_request("a % in the parameters is not followed by two hexadecimal digits");
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

class parameters {
  public:
    explicit parameters(std::string_view form) {
        while (!form.empty()) {
            const auto end = form.find('&');
            const auto pair = form.substr(0, end);
            form.remove_prefix(end == std::string_view::npos ? form.size() : end + 1);
            const auto equals = pair.find('=');
            if (equals != std::string_view::npos) {
                values_.insert_or_assign(decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
            }
        }
    }

    /// The value; empty if there is none.
    [[nodiscard]] std::string text(const std::string& name) const {
        const auto found = values_.find(name);
        return found == values_.end() ? std::string() : found->second;
    }
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string& name) const {
        const auto value = text(name);
        return value.empty() ? std::nullopt : std::optional(number_of(name, value));
    }
    [[nodiscard]] id identity(const std::string& name) const {
        const auto value = text(name);
        const auto parsed = value.empty() ? id{} : id::parse(value);
        if (!parsed) {
            throw bad_request(name + " must be an id such as 00000000-0000-0000-0000-000000000001");
        }
        return *parsed;
    }
    /// `90s`, `15m`, `36h` or `7d`.
    [[nodiscard]] std::optional<duration> length(const std::string& name) const {
        const auto value = text(name);
        if (value.empty()) {
            return std::nullopt;
        }
        constexpr std::uint64_t most = 1'000'000;
        const auto count = number_of(name, std::string_view(value).substr(0, value.size() - 1));
        const auto unit = value.back() == 's'   ? duration(std::chrono::seconds{1})
                          : value.back() == 'm' ? duration(std::chrono::minutes{1})
                          : value.back() == 'h' ? duration(std::chrono::hours{1})
                          : value.back() == 'd' ? duration(std::chrono::hours{24})
                                                : duration::zero();
        if (count > most || unit == duration::zero()) {
            throw bad_request(name + " must be a duration such as 90s, 15m, 36h or 7d, at most 1000000 units");
        }
        return unit * static_cast<std::int64_t>(count);
    }

    [[nodiscard]] static std::uint64_t number_of(const std::string& name, std::string_view value) {
        std::uint64_t out = 0;
        const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), out);
        if (wrong != std::errc{} || end != value.data() + value.size()) {
            throw bad_request(name + " must be a number");
        }
        return out;
    }

  private:
    std::map<std::string, std::string> values_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
