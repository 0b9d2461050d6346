// SPDX-License-Identifier: MIT
// `vouch export`: entries with all their fields, one JSON object per line. Bytes are a string if they are UTF-8, otherwise
// `{"hex": "..."}`, so that nothing is lost. Payloads are included.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../database.hpp"
#include "../interrupt.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../search.hpp"

namespace tool {

namespace exported {

inline json value(const std::string& bytes) { return json_of_bytes(bytes); }
inline json value(bool flag) { return flag; }
inline json value(std::uint32_t number) { return number; }
inline json value(std::uint64_t number) { return number; }
inline json value(vouch::state s) { return name_of(s); }
inline json value(vouch::time_point at) { return utc_of(at); }
inline json value(const vouch::id& which) { return json_of(which); }
inline json value(const vouch::id_list& ids) { return json_list(ids); }
inline json value(const vouch::header_list& headers) {
    auto out = json::array();
    for (const auto& [name, bytes] : headers) {
        out.push_back({json_of_bytes(name), json_of_bytes(bytes)});
    }
    return out;
}
template <class Value>
json value(const std::optional<Value>& maybe) {
    return maybe ? value(*maybe) : json(nullptr);
}

[[nodiscard]] inline json entry(const vouch::entry& e) {
    auto out = json::object();
    vouch::for_each_field([&](std::string_view name, const auto& field) { out[std::string(name)] = value(field); }, e);
    return out;
}

} // namespace exported

inline int export_entries(database& in, const arguments& with) {
    auto wide = with;
    wide.scan = with.has_scan ? with.scan : UINT64_MAX;
    const auto& stored = in.stored();
    const filter by(in, wide);
    catch_interrupts();
    search found(stored, by, {.payloads = true});
    for (auto e = found.next(); e && was_interrupted == 0 && std::ferror(stdout) == 0; e = found.next()) {
        print(text_of(exported::entry(*e)) + "\n");
    }
    found.remark();
    if (was_interrupted != 0) {
        say("interrupted; --after " + std::to_string(found.last_sequence() - 1) + " continues");
        return refused;
    }
    return done;
}

} // namespace tool
