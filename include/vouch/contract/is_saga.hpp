// SPDX-License-Identifier: MIT
// Recognises the entries of sagas, for code that must treat them differently but knows nothing else about sagas. A saga
// may have done work that has to be undone, so it is never buried, cancelled or started again like other entries. It
// reads the start of the progress (mark, format, origin) and checks the checksum at its end; it decodes nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {

/// The first bytes of every saga's progress. The number of the format follows, then 16 bytes of origin.
inline constexpr std::string_view saga_progress_mark = "saga";
/// A control character, so that a handler's own text that begins with the mark is not taken for a saga's progress.
inline constexpr char saga_progress_format = 1;

/// Whether these bytes are the progress of a saga, in this format or another.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    constexpr auto size = saga_progress_mark.size();
    return bytes.size() > size && bytes.substr(0, size) == saga_progress_mark && bytes[size] > '\0' &&
           bytes[size] < ' ';
}

/// Whether an entry is a saga: it was started by `outbox::start`, or has passed its first checkpoint.
[[nodiscard]] inline bool is_saga(const entry& e) noexcept { return is_saga_progress(e.progress); }

namespace detail {

inline constexpr std::size_t checksum_size = 4;

[[nodiscard]] constexpr std::uint32_t checksum(std::string_view bytes) noexcept { // FNV-1a
    std::uint32_t sum = 2166136261U;
    for (const char c : bytes) {
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return sum;
}

/// Whether the bytes end with their checksum.
[[nodiscard]] constexpr bool is_intact(std::string_view bytes) noexcept {
    if (bytes.size() < checksum_size) {
        return false;
    }
    const auto end = bytes.substr(bytes.size() - checksum_size);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < checksum_size; ++i) {
        sum |= static_cast<std::uint32_t>(static_cast<unsigned char>(end[i])) << (8 * i);
    }
    bytes.remove_suffix(checksum_size);
    return sum == checksum(bytes);
}

} // namespace detail

/// The origin that a saga's progress names: the id of the saga's first entry, or nil before the first checkpoint. Returns
/// nothing if the progress has another format or is damaged.
[[nodiscard]] inline std::optional<id> saga_origin(std::string_view progress) noexcept {
    constexpr auto head = saga_progress_mark.size() + 1;
    std::array<std::uint8_t, 16> raw{};
    if (!is_saga_progress(progress) || progress[head - 1] != saga_progress_format ||
        progress.size() < head + raw.size() + detail::checksum_size || !detail::is_intact(progress)) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < raw.size(); ++i) {
        raw[i] = static_cast<std::uint8_t>(progress[head + i]);
    }
    return id::from_bytes(raw);
}

} // namespace v0
} // namespace vouch
