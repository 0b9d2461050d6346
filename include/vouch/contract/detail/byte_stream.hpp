// SPDX-License-Identifier: MIT
// Values as bytes that are the same on every machine. Numbers are written in groups of seven bits, lowest first. Texts
// and lists follow their length. An optional value follows a 1; a 0 stands for none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The number that opens an entry's bytes. It changes with the fields of `entry`.
inline constexpr std::uint64_t entry_format = 1;

/// Appends values to `out`.
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

/// Reads values from the front of `left`. Throws `corrupt` if the bytes are not what a `byte_writer` writes.
struct byte_reader {
    std::string_view left;

    static void check(bool is_sound) {
        if (!is_sound) {
            throw error(error_kind::corrupt,
                        "these bytes are not an entry in a format that this version of vouch reads");
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
            const auto is_set = number();
            check(is_set <= 1);
            if (is_set == 1) {
                pass(value.emplace());
            }
        } else {
            auto size = number();
            check(size <= left.size()); // an item takes a byte at least, so a wrong size cannot ask for endless memory
            value.resize(size);
            for (auto& item : value) {
                pass(item);
            }
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch
