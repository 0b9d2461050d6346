// SPDX-License-Identifier: MIT
// The parameters of a statement, in PostgreSQL's binary format: single values and arrays of them. Numbers are big-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// The types that the store uses, by their number in the server's catalog.
enum class pg_type : std::uint32_t { boolean = 16, bytea = 17, bigint = 20, smallint = 21, text = 25, uuid = 2950 };

/// A number that is NULL if it is 0, an id that is NULL if it is nil, or a text that is NULL if it is empty.
template <class T>
struct or_null {
    const T& value;
};
template <class T>
or_null(const T&) -> or_null<T>;

/// A value that is NULL unless it is set.
template <class T>
struct if_set {
    bool is_set;
    const T& value;
};
template <class T>
if_set(bool, const T&) -> if_set<T>;

/// Appends an integer, most significant byte first.
template <class Integer>
void append_integer(std::string& to, Integer value) {
    const std::uint64_t bits = static_cast<std::make_unsigned_t<Integer>>(value);
    std::array<char, sizeof(Integer)> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<char>((bits >> (8 * (bytes.size() - 1 - i))) & 0xffU);
    }
    to.append(bytes.data(), bytes.size());
}

// The bytes of each type of value.
inline void encode(std::string& to, std::int64_t value) { append_integer(to, value); }
inline void encode(std::string& to, std::uint64_t value) { append_integer(to, value); }
inline void encode(std::string& to, std::uint32_t value) { append_integer(to, std::uint64_t{value}); }
inline void encode(std::string& to, std::int16_t value) { append_integer(to, value); }
inline void encode(std::string& to, bool value) { to.push_back(value ? '\1' : '\0'); }
inline void encode(std::string& to, state value) { append_integer(to, static_cast<std::int16_t>(value)); }
inline void encode(std::string& to, time_point value) { append_integer(to, value.time_since_epoch().count()); }
inline void encode(std::string& to, std::string_view value) { to.append(value); }
inline void encode(std::string& to, const std::string& value) { to.append(value); }
inline void encode(std::string& to, const id& value) {
    append_integer(to, value.high);
    append_integer(to, value.low);
}

[[nodiscard]] inline bool is_none(const std::string& value) noexcept { return value.empty(); }
[[nodiscard]] inline bool is_none(std::string_view value) noexcept { return value.empty(); }
[[nodiscard]] inline bool is_none(const id& value) noexcept { return value.is_nil(); }
[[nodiscard]] inline bool is_none(std::uint64_t value) noexcept { return value == 0; }
[[nodiscard]] inline bool is_none(std::uint32_t value) noexcept { return value == 0; }

/// Appends the value with `encode`. Returns false, and appends nothing, if it is NULL.
template <class T>
bool encode_or_null(std::string& to, const T& value) {
    encode(to, value);
    return true;
}
template <class T>
bool encode_or_null(std::string& to, const std::optional<T>& value) {
    return value && encode_or_null(to, *value);
}
template <class T>
bool encode_or_null(std::string& to, const if_set<T>& value) {
    return value.is_set && encode_or_null(to, value.value);
}
template <class T>
bool encode_or_null(std::string& to, const or_null<T>& value) {
    return !is_none(value.value) && encode_or_null(to, value.value);
}

/// Whether `encode_or_null` would append nothing.
template <class T>
[[nodiscard]] bool is_null(const T&) noexcept {
    return false;
}
template <class T>
[[nodiscard]] bool is_null(const std::optional<T>& value) noexcept {
    return !value;
}
template <class T>
[[nodiscard]] bool is_null(const if_set<T>& value) noexcept {
    return !value.is_set;
}
template <class T>
[[nodiscard]] bool is_null(const or_null<T>& value) noexcept {
    return is_none(value.value);
}

/// An array of one type. One that has only nulls is sent as an empty array: `unnest` of several arrays adds nulls to the
/// shorter ones, and the server need not read them.
class array {
  public:
    explicit array(pg_type type) : type_(type) {}

    template <class T>
    void add(const T& value) {
        if (!has_value_ && is_null(value)) { // all were: most columns stay so
            size_ += 1;
            return;
        }
        for (std::size_t i = 0; !has_value_ && i < size_; ++i) {
            append_integer(elements_, null_size);
            has_null_ = true;
        }
        const auto at = elements_.size();
        append_integer(elements_, null_size);
        if (encode_or_null(elements_, value)) {
            const auto size = static_cast<std::uint32_t>(elements_.size() - at - size_bytes);
            for (std::size_t i = 0; i < size_bytes; ++i) {
                elements_[at + i] = static_cast<char>((size >> (8 * (size_bytes - 1 - i))) & 0xffU);
            }
            has_value_ = true;
        } else {
            has_null_ = true;
        }
        size_ += 1;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// About how many bytes it has when it is encoded.
    [[nodiscard]] std::size_t bytes() const noexcept { return elements_.size() + 5 * size_bytes; }

  private:
    static constexpr std::size_t size_bytes = 4;
    static constexpr std::int32_t null_size = -1;

    friend void encode(std::string& to, const array& value) {
        append_integer(to, std::int32_t{value.has_value_ ? 1 : 0}); // dimensions
        append_integer(to, std::int32_t{value.has_value_ && value.has_null_ ? 1 : 0});
        append_integer(to, static_cast<std::uint32_t>(value.type_));
        if (value.has_value_) {
            append_integer(to, static_cast<std::int32_t>(value.size_));
            append_integer(to, std::int32_t{1}); // the first index
            to.append(value.elements_);
        }
    }

    pg_type type_;
    bool has_null_ = false;
    bool has_value_ = false;
    std::size_t size_ = 0;
    std::string elements_{};
};

/// The values, in order. Keeps copies of all of them.
class parameters {
  public:
    template <class... Values>
    explicit parameters(const Values&... values) {
        (add(values), ...);
    }

    /// For this many more bytes.
    void reserve(std::size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }

    template <class T>
    void add(const T& value) {
        const auto at = bytes_.size();
        const bool has_value = encode_or_null(bytes_, value);
        places_.push_back({at, bytes_.size() - at, !has_value});
    }

    /// What libpq wants. The pointers are good until the next change.
    struct lists {
        std::vector<const char*> values;
        std::vector<int> lengths;
        std::vector<int> formats;
        [[nodiscard]] int size() const noexcept { return static_cast<int>(values.size()); }
    };
    [[nodiscard]] lists for_libpq() const {
        lists out;
        out.values.reserve(places_.size());
        out.lengths.reserve(places_.size());
        out.formats.assign(places_.size(), 1);
        for (const auto& p : places_) {
            out.values.push_back(p.is_null ? nullptr : bytes_.data() + p.at);
            out.lengths.push_back(static_cast<int>(p.size));
        }
        return out;
    }

  private:
    struct place {
        std::size_t at = 0;
        std::size_t size = 0;
        bool is_null = false;
    };
    std::string bytes_{};
    std::vector<place> places_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
