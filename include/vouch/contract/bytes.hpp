// SPDX-License-Identifier: MIT
// An entry as bytes and back, for stores that keep values instead of columns: a log, a file, a key-value database.
//
// The bytes are the same on every machine. They carry their own length, so entries can be written one after the other:
// first a number for the format, then every field in the order of `for_each_field`.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/detail/byte_stream.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {

/// The entry as bytes. A template, so that only programs that use it compile it.
template <std::same_as<entry> Entry>
[[nodiscard]] std::string to_bytes(const Entry& e) {
    detail::byte_writer out;
    out.number(detail::entry_format);
    for_each_field([&](auto, const auto& field) { out.pass(field); }, e);
    return std::move(out.out);
}

/// Reads the entry at the front of `bytes` and removes it from there; what follows it stays. Throws `corrupt` if the
/// bytes do not begin with an entry; then `bytes` is unchanged.
template <std::same_as<entry> Entry = entry>
[[nodiscard]] Entry take_entry(std::string_view& bytes) {
    detail::byte_reader in{bytes};
    detail::byte_reader::check(in.number() == detail::entry_format);
    Entry e;
    for_each_field([&](auto, auto& field) { in.pass(field); }, e);
    detail::byte_reader::check(e.state <= state::dead);
    bytes = in.left;
    return e;
}

} // namespace v0
} // namespace vouch
