// SPDX-License-Identifier: MIT
// What a browser on this machine sends, and what it reads of the answer.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace page_test {

using namespace std::chrono_literals;

inline constexpr const char* secret = "s3cret-token";

[[nodiscard]] inline vouch::page::request get(const std::string& target) {
    const auto question = target.find('?');
    return {.path = target.substr(0, question),
            .query = question == std::string::npos ? "" : target.substr(question + 1),
            .headers = {{"Host", "127.0.0.1:8080"}}};
}

/// A form that the page itself sends, with the token.
[[nodiscard]] inline vouch::page::request post(const std::string& path, std::string body = {}) {
    return {.method = "POST",
            .path = path,
            .headers = {{"host", "127.0.0.1:8080"},
                        {"origin", "http://127.0.0.1:8080"},
                        {"sec-fetch-site", "same-origin"},
                        {"authorization", std::string("Bearer ") + secret}},
            .body = std::move(body)};
}

/// The same request with another value of a header; without the header if the value is empty.
[[nodiscard]] inline vouch::page::request with(vouch::page::request r, std::string_view header, std::string value) {
    std::erase_if(r.headers,
                  [&](const auto& field) { return vouch::page::detail::equal_ignoring_case(field.first, header); });
    if (!value.empty()) {
        r.headers.emplace_back(header, std::move(value));
    }
    return r;
}

[[nodiscard]] inline bool has(const vouch::page::response& r, std::string_view text) {
    UNSCOPED_INFO(r.status << ' ' << r.body.substr(0, 2000));
    return r.body.find(text) != std::string::npos;
}

[[nodiscard]] inline std::string header_of(const vouch::page::response& r, std::string_view name) {
    for (const auto& [given, value] : r.headers) {
        if (given == name) {
            return value;
        }
    }
    return {};
}

} // namespace page_test
