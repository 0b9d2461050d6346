// SPDX-License-Identifier: MIT
// What broken clients make of a message on its way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/relay.hpp>

#include "defect.hpp"

namespace broken {

inline void mangle_headers(vouch::header_list& headers, defect what) {
    switch (what) {
    case defect::loses_headers: headers.clear(); break;
    case defect::sorts_headers: std::sort(headers.begin(), headers.end()); break;
    case defect::loses_own_headers:
        std::erase_if(headers, [](const auto& h) { return std::string_view(h.first).starts_with("vouch-"); });
        break;
    case defect::loses_empty_headers: std::erase_if(headers, [](const auto& h) { return h.second.empty(); }); break;
    case defect::merges_headers: {
        vouch::header_list once;
        for (const auto& header : headers) {
            const auto at =
                std::find_if(once.begin(), once.end(), [&](const auto& h) { return h.first == header.first; });
            if (at == once.end()) {
                once.push_back(header);
            } else {
                at->second = header.second;
            }
        }
        headers = std::move(once);
        break;
    }
    default: break;
    }
}

[[nodiscard]] inline std::optional<vouch::time_point> in_milliseconds(std::optional<vouch::time_point> at) {
    using std::chrono::milliseconds;
    return at ? std::optional{vouch::time_point(std::chrono::duration_cast<milliseconds>(at->time_since_epoch()))} : at;
}

[[nodiscard]] inline vouch::message mangled(vouch::message m, defect what) {
    mangle_headers(m.headers, what);
    switch (what) {
    case defect::cuts_payload_at_nul: m.payload = m.payload.c_str(); break;
    case defect::cuts_large_payloads: m.payload.resize(std::min<std::size_t>(m.payload.size(), 65'535)); break;
    case defect::loses_key: m.key.clear(); break;
    case defect::keeps_last_id_of_trail:
        if (!m.trail.empty()) {
            m.trail = {m.trail.back()};
        }
        break;
    case defect::times_in_milliseconds:
        m.created_at = in_milliseconds(m.created_at);
        m.expires_at = in_milliseconds(m.expires_at);
        break;
    case defect::absent_time_is_zero: m.created_at = m.created_at.value_or(vouch::time_point()); break;
    case defect::cuts_long_ids: m.id.resize(std::min<std::size_t>(m.id.size(), 100)); break;
    case defect::topic_is_queue: m.topic = m.topic.starts_with("kit.") ? "kit.kit" : m.topic; break;
    default: break;
    }
    return m;
}

} // namespace broken
