// SPDX-License-Identifier: MIT
// Texts as literals of JSON and of Terraform's language (HCL).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vouch/rabbitmq/detail/target.hpp>
#include <vouch/rabbitmq/topology.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// The text is valid UTF-8 without control characters.
[[nodiscard]] inline std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        out.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
    }
    return out + '"';
}

/// Like JSON, but `${` and `%{` would begin an expression.
[[nodiscard]] inline std::string hcl_quoted(std::string_view text) {
    std::string out = json_quoted(text);
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
        if ((out[i] == '$' || out[i] == '%') && out[i + 1] == '{') {
            out.insert(i, 1, out[i]);
            i += 2;
        }
    }
    return out;
}

[[nodiscard]] inline std::string argument_value(const queue_argument& one, std::string (*quoted)(std::string_view)) {
    if (one.is_flag) {
        return one.number != 0 ? "true" : "false";
    }
    return one.text.empty() ? std::to_string(one.number) : quoted(one.text);
}

[[nodiscard]] inline std::string json_arguments(const std::vector<queue_argument>& arguments) {
    std::string out;
    for (const auto& one : arguments) {
        out.append(out.empty() ? "" : ", ").append(json_quoted(one.name)).append(": ");
        out += argument_value(one, &json_quoted);
    }
    return out;
}

[[nodiscard]] inline std::string hcl_arguments(const std::vector<queue_argument>& arguments) {
    std::string out;
    for (const auto& one : arguments) {
        out.append(out.empty() ? "" : ", ").append(hcl_quoted(one.name)).append(" = ");
        out += argument_value(one, &hcl_quoted);
    }
    return out;
}

[[nodiscard]] inline std::string json_lines(const std::vector<std::string>& items) {
    std::string out;
    for (const auto& item : items) {
        out.append(out.empty() ? "\n    " : ",\n    ").append(item);
    }
    return '[' + out + (out.empty() ? "]" : "\n  ]");
}

/// Throws unless the text is a letter or `_`, followed by letters, digits or `_`.
inline void expect_identifier(std::string_view what, std::string_view text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    bool is_good = !text.empty() && is_letter(text.front());
    for (const char c : text) {
        is_good = is_good && (is_letter(c) || (c >= '0' && c <= '9'));
    }
    if (!is_good) {
        refuse_option(what, "must begin with a letter and have letters, digits and _ only");
    }
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
