// SPDX-License-Identifier: MIT
// Who may do what. A browser carries requests of other sites to this one, so a request is answered only if it names this
// host, and changes something only with the token and from a page of the same origin.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/page/message.hpp>
#include <vouch/page/options.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// The values of a header; a client may send it twice.
[[nodiscard]] inline std::vector<std::string> header_values(const request& r, std::string_view name) {
    std::vector<std::string> out;
    for (const auto& [given, value] : r.headers) {
        if (equal_ignoring_case(given, name)) {
            out.push_back(value);
        }
    }
    return out;
}

/// `localhost`, `127.0.0.1` and `[::1]`, with a port or without.
[[nodiscard]] inline bool is_loopback(std::string_view host) {
    for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
        if (equal_ignoring_case(host.substr(0, name.size()), name)) {
            const auto port = host.substr(name.size());
            return port.empty() || (port.size() > 1 && port.front() == ':' &&
                                    port.find_first_not_of("0123456789", 1) == std::string_view::npos);
        }
    }
    return false;
}

/// Takes the same time for every guess of the same length.
[[nodiscard]] inline bool is_equal_secret(std::string_view secret, std::string_view guess) {
    unsigned difference = secret.size() == guess.size() ? 0U : 1U;
    for (std::size_t i = 0; i < guess.size(); ++i) {
        const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
        difference |=
            static_cast<unsigned char>(expected) ^ static_cast<unsigned>(static_cast<unsigned char>(guess[i]));
    }
    return difference == 0 && !secret.empty();
}

[[nodiscard]] inline bool is_for_this_host(const options& how, const request& r) {
    const auto hosts = header_values(r, "Host");
    if (hosts.size() != 1) {
        return false;
    }
    return how.hosts.empty() ? is_loopback(hosts.front())
                             : std::any_of(how.hosts.begin(), how.hosts.end(), [&](const std::string& ours) {
                                   return equal_ignoring_case(ours, hosts.front());
                               });
}

[[nodiscard]] inline bool has_token(const options& how, const request& r) {
    constexpr std::string_view scheme = "Bearer ";
    const auto given = header_values(r, "Authorization");
    return given.size() == 1 && equal_ignoring_case(given.front().substr(0, scheme.size()), scheme) &&
           is_equal_secret(how.token, std::string_view(given.front()).substr(scheme.size()));
}

/// Whether the request comes from a page of this host, or from no page at all. Browsers name the origin of every POST.
[[nodiscard]] inline bool is_same_origin(const request& r) {
    for (const auto& site : header_values(r, "Sec-Fetch-Site")) {
        if (site != "same-origin" && site != "none") {
            return false;
        }
    }
    const auto hosts = header_values(r, "Host");
    for (const auto& origin : header_values(r, "Origin")) {
        const auto authority = origin.find("://");
        if (hosts.size() != 1 || authority == std::string::npos ||
            !equal_ignoring_case(std::string_view(origin).substr(authority + 3), hosts.front())) {
            return false;
        }
    }
    return true;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
