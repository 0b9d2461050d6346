// SPDX-License-Identifier: MIT
// Reads what `vouch export` prints back into entries.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace tool_test {

using nlohmann::json;

inline void read(const json& from, std::string& to) {
    if (from.is_string()) {
        to = from.get<std::string>();
        return;
    }
    const auto hex = from.at("hex").get<std::string>();
    to.clear();
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        to.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
}
inline void read(const json& from, bool& to) { to = from.get<bool>(); }
inline void read(const json& from, std::uint32_t& to) { to = from.get<std::uint32_t>(); }
inline void read(const json& from, std::uint64_t& to) { to = from.get<std::uint64_t>(); }
inline void read(const json& from, vouch::id& to) {
    to = from.is_null() ? vouch::id{} : vouch::id::parse(from.get<std::string>()).value();
}
inline void read(const json& from, vouch::state& to) {
    for (const auto s : vouch::all_states) {
        if (name_of(s) == from.get<std::string>()) {
            to = s;
            return;
        }
    }
    throw std::runtime_error("no state");
}
inline void read(const json& from, vouch::time_point& to) {
    const auto text = from.get<std::string>();
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, micros = 0;
    REQUIRE(std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d.%dZ", &year, &month, &day, &hour, &minute, &second, &micros) ==
            7);
    using namespace std::chrono;
    to = sys_days{std::chrono::year{year} / month / day} + hours{hour} + minutes{minute} + seconds{second} +
         microseconds{micros};
}
inline void read(const json& from, vouch::id_list& to) {
    for (const auto& one : from) {
        vouch::id which;
        read(one, which);
        to.push_back(which);
    }
}
inline void read(const json& from, vouch::header_list& to) {
    for (const auto& one : from) {
        std::string name;
        std::string value;
        read(one.at(0), name);
        read(one.at(1), value);
        to.emplace_back(name, value);
    }
}
template <class Value>
void read(const json& from, std::optional<Value>& to) {
    if (from.is_null()) {
        to.reset();
    } else {
        read(from, to.emplace());
    }
}

/// The entries of all lines.
[[nodiscard]] inline std::vector<vouch::entry> entries_of(const std::string& lines) {
    std::vector<vouch::entry> out;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
        const auto all = json::parse(line);
        auto& e = out.emplace_back();
        vouch::for_each_field([&](std::string_view name, auto& field) { read(all.at(std::string(name)), field); }, e);
    }
    return out;
}

} // namespace tool_test

#endif
