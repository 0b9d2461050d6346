// SPDX-License-Identifier: MIT
// A 128-bit identifier with the text form of a UUID. Callers make ids (`policy/id_source.hpp`); a store never makes
// one. The id of an entry is the idempotency key that its handler passes on to other systems.
//
// Ids sort like their bytes and like their text, so time-ordered ids (UUIDv7) stay in order in any index.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/version.hpp>
#include <vouch/contract/detail/mix.hpp>
#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

struct id {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    /// The nil id means "none" in optional fields. Where an id is required it is refused.
    [[nodiscard]] constexpr bool is_nil() const noexcept { return high == 0 && low == 0; }
    [[nodiscard]] friend constexpr auto operator<=>(const id&, const id&) noexcept = default;

    /// Sixteen bytes, most significant first.
    [[nodiscard]] constexpr std::array<std::uint8_t, 16> bytes() const noexcept {
        std::array<std::uint8_t, 16> out{};
        for (std::size_t i = 0; i < 8; ++i) {
            out[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
            out[i + 8] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
        }
        return out;
    }

    /// The inverse of `bytes`.
    [[nodiscard]] static constexpr id from_bytes(const std::array<std::uint8_t, 16>& bytes) noexcept {
        id out;
        for (std::size_t i = 0; i < 8; ++i) {
            out.high = (out.high << 8) | bytes[i];
            out.low = (out.low << 8) | bytes[i + 8];
        }
        return out;
    }

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in upper or lower case. Any other text gives nothing.
    [[nodiscard]] static constexpr std::optional<id> parse(std::string_view text) noexcept;
};

namespace detail {

[[nodiscard]] constexpr bool is_uuid_dash(std::size_t position) noexcept {
    return position == 8 || position == 13 || position == 18 || position == 23;
}

[[nodiscard]] constexpr int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

} // namespace detail

constexpr std::optional<id> id::parse(std::string_view text) noexcept {
    if (text.size() != 36) {
        return std::nullopt;
    }
    id out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (detail::is_uuid_dash(i)) {
            if (text[i] != '-') {
                return std::nullopt;
            }
            continue;
        }
        const int digit = detail::hex_value(text[i]);
        if (digit < 0) {
            return std::nullopt;
        }
        auto& half = i < 18 ? out.high : out.low;
        half = (half << 4) | static_cast<std::uint64_t>(digit);
    }
    return out;
}

/// The text form, in lower case. `id::parse` reads it back.
[[nodiscard]] inline std::string to_string(const id& value) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(36);
    for (const auto byte : value.bytes()) {
        if (detail::is_uuid_dash(out.size())) {
            out.push_back('-');
        }
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15U]);
    }
    return out;
}

/// Writes the text form.
template <text_stream Stream>
Stream& operator<<(Stream& out, const id& value) {
    return detail::write_text(out, to_string(value));
}

/// The id that belongs to `base` under `label`. The same pair always gives the same id, so that work that is repeated
/// names the same entries. The leading 48 bits (UUIDv7's time) are kept, so derived ids stay time-ordered.
[[nodiscard]] constexpr id derive(const id& base, std::string_view label) noexcept {
    std::uint64_t a = detail::mix(base.high ^ 0x9e3779b97f4a7c15U);
    std::uint64_t b = detail::mix(base.low + a);
    for (const char c : label) {
        a = detail::mix(a ^ static_cast<unsigned char>(c));
        b = detail::mix(b + a);
    }
    constexpr std::uint64_t time_bits = 0xffffffffffff0000U;
    constexpr std::uint64_t version_8 = 0x8000U;
    constexpr std::uint64_t variant = 0x8000000000000000U;
    return {.high = (base.high & time_bits) | version_8 | (a & 0x0fffU), .low = variant | (b >> 2)};
}

} // namespace v0
} // namespace vouch

template <>
struct std::hash<vouch::id> {
    [[nodiscard]] std::size_t operator()(const vouch::id& value) const noexcept {
        return static_cast<std::size_t>(vouch::detail::mix(value.high ^ vouch::detail::mix(value.low)));
    }
};
