// SPDX-License-Identifier: MIT
// A row as an entry, and the encoding of the fields that are lists.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/postgres/detail/rows.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

[[nodiscard]] inline std::string encode_trail(const id_list& trail) {
    std::string out;
    out.reserve(trail.size() * 16);
    for (const auto& one : trail) {
        const auto bytes = one.bytes();
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
}

inline void decode_trail(std::string_view from, id_list& to) {
    std::array<std::uint8_t, 16> bytes{};
    row::expect(from.size() % bytes.size() == 0, "postgres: the tables are damaged: a trail is not a list of ids");
    to.clear();
    for (; !from.empty(); from.remove_prefix(bytes.size())) {
        std::memcpy(bytes.data(), from.data(), bytes.size());
        to.push_back(id::from_bytes(bytes));
    }
}

/// Four bytes of length, least significant first, then the text; name and value in turn.
[[nodiscard]] inline std::string encode_headers(const header_list& headers) {
    std::string out;
    const auto add = [&](std::string_view text) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            out.push_back(static_cast<char>((text.size() >> shift) & 0xffU));
        }
        out.append(text);
    };
    for (const auto& [name, value] : headers) {
        add(name);
        add(value);
    }
    return out;
}

inline void decode_headers(std::string_view from, header_list& to) {
    const auto take = [&] {
        constexpr std::size_t length_bytes = 4;
        std::size_t size = 0;
        for (std::size_t i = 0; i < length_bytes && i < from.size(); ++i) {
            size |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
        }
        row::expect(from.size() >= length_bytes && size <= from.size() - length_bytes,
                    "postgres: the tables are damaged: headers are not a list of names and values");
        std::string text(from.substr(length_bytes, size));
        from.remove_prefix(length_bytes + size);
        return text;
    };
    to.clear();
    while (!from.empty()) {
        auto name = take();
        to.emplace_back(std::move(name), take());
    }
}

/// Throws `corrupt` for a life that no verb can have produced, or whose counters the next verb would overflow.
inline void expect_sound(const life& l) {
    const bool is_held = l.lease_until && l.attempts > 0 && l.epoch > 0;
    row::expect(l.state != state::claimed || is_held,
                "postgres: the tables are damaged: a claimed entry has no lease, attempt or epoch");
    row::expect(l.attempts < UINT32_MAX && l.lapses < UINT32_MAX && l.failures < UINT32_MAX && l.epoch < INT64_MAX,
                "postgres: the tables are damaged: a counter of an entry is at its maximum");
}

/// Adds the fields that are lists, and checks the whole.
inline void finish(entry& e, std::string_view trail, std::string_view headers) {
    decode_trail(trail, e.trail);
    decode_headers(headers, e.headers);
    row::expect(e.sequence > 0, "postgres: the tables are damaged: an entry's sequence is 0");
    expect_sound(e);
}

/// Reads the part `{unknown}` of `sql_parts.hpp`: an entry that the request has claimed.
inline void read_claimed(row& from, const claim_request& by, entry& e) {
    std::string trail;
    std::string headers;
    from.read(e.sequence, e.id, e.topic, or_default{e.key}, or_default{e.group}, or_default{e.lane},
              or_default{e.parent}, or_default{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
              e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.last_error, or_default{trail}, or_default{headers},
              or_default{e.progress}, or_default{e.payload});
    e.queue = by.queue;
    e.state = state::claimed;
    e.lease_until = by.now + by.lease;
    e.worker = by.worker;
    e.updated_at = by.now;
    e.last_attempt_at = by.now;
    finish(e, trail, headers);
}

/// Reads the part `{entry}` of `sql_parts.hpp` and the payload after it.
inline void read_entry(row& from, entry& e) {
    std::string trail;
    std::string headers;
    from.read(e.sequence, e.id, e.queue, e.topic, or_default{e.key}, or_default{e.group}, or_default{e.lane},
              or_default{e.parent}, or_default{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
              e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.lease_until, e.woken, e.worker,
              e.last_error, e.updated_at, e.last_attempt_at, or_default{trail}, or_default{headers},
              or_default{e.progress}, e.result, or_default{e.payload});
    finish(e, trail, headers);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
