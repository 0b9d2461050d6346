// SPDX-License-Identifier: MIT
// The servers that a conninfo names. libpq tries the hosts of a list one after the other, but without a limit for each: a
// host that accepts a connection and then is silent would use up all the time, and the next one would never be tried. So
// the store tries them itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <libpq-fe.h>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// One server; an empty member leaves the conninfo as it is.
struct endpoint {
    std::string host{};
    std::string address{};
    std::string port{};
};

/// The parts of a list with commas.
[[nodiscard]] inline std::vector<std::string> split_list(std::string_view list) {
    std::vector<std::string> parts;
    for (;;) {
        const auto comma = list.find(',');
        parts.emplace_back(list.substr(0, comma));
        if (comma == std::string_view::npos) {
            return parts;
        }
        list.remove_prefix(comma + 1);
    }
}

/// The value of a keyword in a list of libpq's, which has the environment's if it was made by PQconndefaults.
[[nodiscard]] inline std::string value_in(const PQconninfoOption* list, std::string_view keyword) {
    for (; list != nullptr && list->keyword != nullptr; ++list) {
        if (keyword == list->keyword && list->val != nullptr) {
            return list->val;
        }
    }
    return {};
}

/// One endpoint for each host of the conninfo or the environment; a single one that changes nothing if there is one host,
/// or if the lists do not fit together, which libpq then says, or if they are in a service file.
[[nodiscard]] inline std::vector<endpoint> endpoints_of(const std::string& conninfo) {
    using options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;
    const options given(PQconninfoParse(conninfo.c_str(), nullptr), &PQconninfoFree);
    const options defaults(PQconndefaults(), &PQconninfoFree);
    const auto list_of = [&](std::string_view keyword) {
        const auto value = value_in(given.get(), keyword);
        return split_list(value.empty() ? value_in(defaults.get(), keyword) : value);
    };
    const auto hosts = list_of("host");
    const auto addresses = list_of("hostaddr");
    const auto ports = list_of("port");
    const auto count = std::max(hosts.size(), addresses.size());
    const auto fits = [&](const std::vector<std::string>& list) {
        const bool is_unset = list.size() == 1 && list[0].empty();
        bool is_whole = true;
        for (const auto& one : list) {
            is_whole = is_whole && !one.empty();
        }
        return is_unset || (is_whole && list.size() == count);
    };
    const bool is_split = count > 1 && fits(hosts) && fits(addresses) && (ports.size() == 1 || fits(ports)) &&
                          value_in(given.get(), "service").empty();
    if (!is_split) {
        return {endpoint{}};
    }
    std::vector<endpoint> out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto part = [&](const std::vector<std::string>& list) { return list.size() == count ? list[i] : ""; };
        out.push_back({part(hosts), part(addresses), ports.size() == 1 ? ports[0] : part(ports)});
    }
    return out;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
