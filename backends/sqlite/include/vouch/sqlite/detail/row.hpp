// SPDX-License-Identifier: MIT
// An entry as columns. Lists are blobs: a trail is a sequence of ids; headers are names and values, each after its
// length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

[[nodiscard]] inline std::string encode(const id_list& trail) {
    std::string out;
    out.reserve(trail.size() * 16);
    for (const auto& one : trail) {
        const auto bytes = one.bytes();
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
}

inline void decode(std::string_view from, id_list& to) {
    std::array<std::uint8_t, 16> bytes{};
    if (from.size() % bytes.size() != 0) {
        throw error(error_kind::corrupt, "sqlite: the file is damaged: a trail is not a list of ids");
    }
    to.clear();
    for (; !from.empty(); from.remove_prefix(bytes.size())) {
        std::memcpy(bytes.data(), from.data(), bytes.size());
        to.push_back(id::from_bytes(bytes));
    }
}

/// Four bytes of length, least significant first, then the text.
inline void encode(std::string_view text, std::string& to) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
        to.push_back(static_cast<char>((text.size() >> shift) & 0xffU));
    }
    to.append(text);
}

[[nodiscard]] inline std::string encode(const header_list& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        encode(name, out);
        encode(value, out);
    }
    return out;
}

/// Removes one text from the front.
[[nodiscard]] inline std::string decode_text(std::string_view& from) {
    constexpr std::size_t length_bytes = 4;
    std::size_t size = 0;
    for (std::size_t i = 0; i < length_bytes && i < from.size(); ++i) {
        size |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
    }
    if (from.size() < length_bytes || size > from.size() - length_bytes) {
        throw error(error_kind::corrupt, "sqlite: the file is damaged: headers are not a list of names and values");
    }
    std::string text(from.substr(length_bytes, size));
    from.remove_prefix(length_bytes + size);
    return text;
}

inline void decode(std::string_view from, header_list& to) {
    to.clear();
    while (!from.empty()) {
        auto name = decode_text(from);
        to.emplace_back(std::move(name), decode_text(from));
    }
}

[[nodiscard]] inline std::string_view bytes_or_none(const run& row, int column) {
    return row.is_null(column) ? std::string_view{} : row.blob_at(column);
}

/// Throws `corrupt` for a life that no verb can have produced, or whose counters the next verb would overflow.
inline void expect_sound(const life& l) {
    const bool is_held = l.lease_until && l.attempts > 0 && l.epoch > 0;
    run::expect(l.state != state::claimed || is_held,
                "sqlite: the file is damaged: a claimed entry has no lease, attempt or epoch");
    run::expect(l.attempts < UINT32_MAX && l.lapses < UINT32_MAX && l.failures < UINT32_MAX && l.epoch < INT64_MAX,
                "sqlite: the file is damaged: a counter of an entry is at its maximum");
}

/// Reads the `entry_columns` of `sql.hpp`, and the payload after them if `has_payload`.
inline void read_entry(const run& row, entry& e, bool has_payload = true) {
    row.read_all(e.sequence, e.id, e.queue, e.topic, or_none{e.key}, or_none{e.group}, or_none{e.lane},
                 or_none{e.parent}, or_none{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
                 e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.lease_until, e.woken, e.worker,
                 e.last_error, e.updated_at, e.last_attempt_at);
    constexpr int lists = 25;
    decode(bytes_or_none(row, lists), e.trail);
    decode(bytes_or_none(row, lists + 1), e.headers);
    e.progress = bytes_or_none(row, lists + 2);
    if (!row.is_null(lists + 3)) {
        row.read(lists + 3, blob_into{e.result.emplace()});
    }
    if (has_payload) {
        row.read(lists + 4, blob_into{e.payload}); // NULL: the payload has a row of its own, and that is missing
    }
    run::expect(e.sequence > 0, "sqlite: the file is damaged: an entry's sequence is 0");
    expect_sound(e);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
