// SPDX-License-Identifier: MIT
// The bytes of a saga's progress: a mark, a format number, the saga's origin, fields and a checksum. A field is a number,
// a length and a content. Empty contents are not written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Appends a number in groups of seven bits, lowest first.
inline void append_number(std::string& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        to.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
    }
    to.push_back(static_cast<char>(value));
}

class field_writer {
  public:
    explicit field_writer(const id& origin) : out_(saga_progress_mark) {
        out_.push_back(saga_progress_format);
        const auto raw = origin.bytes();
        out_.append(raw.begin(), raw.end());
    }

    template <class Field>
    void bytes(Field field, std::string_view content) {
        if (!content.empty()) {
            append_number(out_, static_cast<std::uint64_t>(field));
            append_number(out_, content.size());
            out_ += content;
        }
    }
    template <class Field>
    void number(Field field, std::uint64_t value) {
        std::string content;
        append_number(content, value);
        bytes(field, value == 0 ? std::string_view{} : std::string_view(content));
    }
    template <class Field>
    void time(Field field, time_point value) {
        number(field, static_cast<std::uint64_t>(value.time_since_epoch().count()));
    }
    template <class Field>
    void identity(Field field, const id& value) {
        const auto raw = value.bytes();
        bytes(field, value.is_nil() ? std::string_view{} : std::string_view(std::string(raw.begin(), raw.end())));
    }

    [[nodiscard]] std::string finish() && {
        const auto sum = checksum(out_);
        for (int shift = 0; shift < 32; shift += 8) {
            out_.push_back(static_cast<char>((sum >> shift) & 0xffU));
        }
        return std::move(out_);
    }

  private:
    std::string out_;
};

/// The fields between origin and checksum of a progress that has a `saga_origin`.
[[nodiscard]] inline std::string_view progress_fields(std::string_view bytes) noexcept {
    constexpr std::size_t head = saga_progress_mark.size() + 1 + 16;
    return bytes.substr(head, bytes.size() - head - checksum_size);
}

/// Reads fields, or the content of one. Once something is missing, `ok` stays false.
class field_reader {
  public:
    explicit field_reader(std::string_view from) noexcept : rest_(from) {}

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] bool done() const noexcept { return !ok_ || rest_.empty(); }

    [[nodiscard]] std::uint64_t number() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1).empty() ? 0x80 : last_);
            value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if (!ok_ || (byte & 0x80U) == 0) {
                return value;
            }
        }
        ok_ = false;
        return 0;
    }
    [[nodiscard]] std::string_view take(std::uint64_t size) noexcept {
        if (!ok_ || size > rest_.size()) {
            ok_ = false;
            return {};
        }
        const auto taken = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(taken.size());
        last_ = taken.empty() ? '\0' : taken.back();
        return taken;
    }
    [[nodiscard]] std::string_view rest() noexcept { return take(rest_.size()); }
    [[nodiscard]] id identity() noexcept {
        std::array<std::uint8_t, 16> raw{};
        const auto content = take(raw.size());
        for (std::size_t i = 0; i < content.size(); ++i) {
            raw[i] = static_cast<std::uint8_t>(content[i]);
        }
        return id::from_bytes(raw);
    }
    [[nodiscard]] time_point time() noexcept { return time_point{duration{static_cast<duration::rep>(number())}}; }
    void fail() noexcept { ok_ = false; }

  private:
    std::string_view rest_;
    char last_ = '\0';
    bool ok_ = true;
};

} // namespace detail
} // namespace v0
} // namespace vouch
