// SPDX-License-Identifier: MIT
// An entry as bytes and back, for stores that keep values and not columns: a log, a file, a key-value database.
//
// The bytes mean the same on every machine and say themselves where they end, so that entries can stand one after the
// other: a byte for the format, then every field in the order of `for_each_field`. Numbers go in groups of seven bits,
// the lowest first; texts and lists follow their length; what may be absent follows a number that says whether it is.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

inline constexpr std::uint64_t entry_format = 1;

struct byte_writer {
    std::string out{};

    void number(std::uint64_t n) {
        for (; n >= 0x80; n >>= 7) {
            out.push_back(static_cast<char>(n | 0x80));
        }
        out.push_back(static_cast<char>(n));
    }
    template <class T>
    void pass(const T& value) {
        if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
            number(static_cast<std::uint64_t>(value));
        } else if constexpr (std::is_same_v<T, time_point>) {
            number(static_cast<std::uint64_t>(value.time_since_epoch().count()));
        } else if constexpr (std::is_same_v<T, id>) {
            const auto bytes = value.bytes();
            out.append(bytes.begin(), bytes.end());
        } else if constexpr (std::is_same_v<T, std::string>) {
            number(value.size());
            out.append(value);
        } else if constexpr (requires { value.first; }) {
            pass(value.first);
            pass(value.second);
        } else if constexpr (requires { value.has_value(); }) {
            number(value.has_value() ? 1 : 0);
            if (value) {
                pass(*value);
            }
        } else {
            number(value.size());
            for (const auto& item : value) {
                pass(item);
            }
        }
    }
};

struct byte_reader {
    std::string_view left;

    static void check(bool is_sound) {
        if (!is_sound) {
            throw error(error_kind::corrupt, "these bytes are no entry, or none of a format that is known here");
        }
    }
    std::string_view take(std::uint64_t size) {
        check(size <= left.size());
        const auto taken = left.substr(0, size);
        left.remove_prefix(size);
        return taken;
    }
    std::uint64_t number() {
        std::uint64_t n = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto group = static_cast<unsigned char>(take(1).front());
            check(shift < 63 || (shift == 63 && group <= 1));
            n |= std::uint64_t{group & 0x7fU} << shift;
            if (group < 0x80) {
                return n;
            }
        }
    }
    template <class T>
    void pass(T& value) {
        if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
            const auto n = number();
            value = static_cast<T>(n);
            check(static_cast<std::uint64_t>(value) == n);
        } else if constexpr (std::is_same_v<T, time_point>) {
            value = time_point(duration(static_cast<std::int64_t>(number())));
        } else if constexpr (std::is_same_v<T, id>) {
            std::array<std::uint8_t, 16> bytes{};
            take(bytes.size()).copy(reinterpret_cast<char*>(bytes.data()), bytes.size());
            value = id::from_bytes(bytes);
        } else if constexpr (std::is_same_v<T, std::string>) {
            value = take(number());
        } else if constexpr (requires { value.first; }) {
            pass(value.first);
            pass(value.second);
        } else if constexpr (requires { value.has_value(); }) {
            const auto is_there = number();
            check(is_there <= 1);
            if (is_there == 1) {
                pass(value.emplace());
            }
        } else {
            auto size = number();
            check(size <= left.size()); // each takes a byte at least, so nobody asks for more memory than there are
            value.resize(size);
            for (auto& item : value) {
                pass(item);
            }
        }
    }
};

} // namespace detail

template <std::same_as<entry> Entry> // a template, so that only who uses it pays for it
[[nodiscard]] std::string to_bytes(const Entry& e) {
    detail::byte_writer out;
    out.number(detail::entry_format);
    for_each_field([&](auto, const auto& field) { out.pass(field); }, e);
    return std::move(out.out);
}

/// Reads the entry at the beginning of `bytes` and leaves there what comes after it. Throws `corrupt` if there is none.
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
