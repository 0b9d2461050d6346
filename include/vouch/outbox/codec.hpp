// SPDX-License-Identifier: MIT
// Converts typed values to payload bytes and back. Specialise `codec<T>` for your own types, with any serialisation
// library. Strings and vectors of bytes are built in.
//
//   template <> struct vouch::codec<user> {
//       static std::string encode(const user&);
//       static user decode(std::string_view);   // throws if the bytes are not a user
//   };
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

template <class T>
struct codec;

template <>
struct codec<std::string> {
    [[nodiscard]] static std::string encode(const std::string& value) { return value; }
    [[nodiscard]] static std::string decode(std::string_view bytes) { return std::string(bytes); }
};

template <std::same_as<std::byte> Byte> // a template, so that unused it costs nothing
struct codec<std::vector<Byte>> {
    [[nodiscard]] static std::string encode(const std::vector<Byte>& value) {
        return value.empty() ? std::string{} : std::string(reinterpret_cast<const char*>(value.data()), value.size());
    }
    [[nodiscard]] static std::vector<Byte> decode(std::string_view bytes) {
        const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
        return {first, first + bytes.size()};
    }
};

template <class T>
concept encodable = requires(const T& value) {
    { codec<T>::encode(value) } -> std::convertible_to<std::string>;
};
template <class T>
concept decodable = requires(std::string_view bytes) {
    { codec<T>::decode(bytes) } -> std::convertible_to<T>;
};

template <encodable T>
[[nodiscard]] std::string encode(const T& value) {
    return codec<T>::encode(value);
}

} // namespace v0
} // namespace vouch
