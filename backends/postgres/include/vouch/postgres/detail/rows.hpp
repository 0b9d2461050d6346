// SPDX-License-Identifier: MIT
// The answer to a statement: rows of values in PostgreSQL's binary format. A value that the store cannot have written
// throws `corrupt`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <libpq-fe.h>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct result_deleter {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using result_ptr = std::unique_ptr<PGresult, result_deleter>;

/// Wraps a value that is the default if the column is NULL.
template <class T>
struct or_default {
    T& value;
};
template <class T>
or_default(T&) -> or_default<T>;

/// One row; its columns are read in order.
class row {
  public:
    row(const PGresult* in, int number) noexcept : result_(in), number_(number) {}

    template <class... Values>
    row& read(Values&&... to) {
        (next(to), ...);
        return *this;
    }
    void skip() noexcept { column_ += 1; }

    static void expect(bool is_sound, const char* otherwise) {
        if (!is_sound) {
            throw error(error_kind::corrupt, otherwise);
        }
    }

  private:
    [[nodiscard]] bool is_null() const noexcept { return PQgetisnull(result_, number_, column_) != 0; }

    [[nodiscard]] std::string_view bytes() const {
        expect(column_ < PQnfields(result_) && !is_null(), "postgres: the tables are damaged: a value is missing");
        return {PQgetvalue(result_, number_, column_),
                static_cast<std::size_t>(PQgetlength(result_, number_, column_))};
    }

    template <class Integer>
    [[nodiscard]] static Integer integer(std::string_view bytes) {
        expect(bytes.size() == sizeof(Integer), "postgres: the tables are damaged: a column has another type");
        std::make_unsigned_t<Integer> value = 0;
        for (const char c : bytes) {
            value = static_cast<decltype(value)>((value << 8) | static_cast<unsigned char>(c));
        }
        return static_cast<Integer>(value);
    }

    template <class Unsigned>
    [[nodiscard]] Unsigned counter() const {
        const auto value = integer<std::int64_t>(bytes());
        expect(value >= 0 && static_cast<std::uint64_t>(value) <= std::numeric_limits<Unsigned>::max(),
               "postgres: the tables are damaged: a number is out of range");
        return static_cast<Unsigned>(value);
    }

    void value(std::int64_t& to) const { to = integer<std::int64_t>(bytes()); }
    void value(std::int32_t& to) const { to = integer<std::int32_t>(bytes()); }
    void value(std::uint64_t& to) const { to = counter<std::uint64_t>(); }
    void value(std::uint32_t& to) const { to = counter<std::uint32_t>(); }
    void value(bool& to) const {
        const auto raw = bytes();
        expect(raw.size() == 1, "postgres: the tables are damaged: a column has another type");
        to = raw.front() != '\0';
    }
    void value(state& to) const {
        const auto number = integer<std::int16_t>(bytes());
        expect(number >= 0 && number <= static_cast<int>(state::dead),
               "postgres: the tables are damaged: an entry has no known state");
        to = static_cast<state>(number);
    }
    void value(time_point& to) const { to = time_point(duration(integer<std::int64_t>(bytes()))); }
    void value(std::string& to) const { to = bytes(); }
    void value(id& to) const {
        std::array<std::uint8_t, 16> raw{};
        const auto seen = bytes();
        expect(seen.size() == raw.size(), "postgres: the tables are damaged: a column has another type");
        std::memcpy(raw.data(), seen.data(), raw.size());
        to = id::from_bytes(raw);
    }
    template <class T>
    void value(std::optional<T>& to) const {
        if (is_null()) {
            to.reset();
        } else {
            value(to.emplace());
        }
    }
    template <class T>
    void value(or_default<T>& to) const {
        if (is_null()) {
            to.value = T{};
        } else {
            value(to.value);
        }
    }

    template <class T>
    void next(T& to) {
        value(to);
        column_ += 1;
    }

    const PGresult* result_;
    int number_;
    int column_ = 0;
};

class rows {
  public:
    rows() = default;
    explicit rows(result_ptr result) noexcept : result_(std::move(result)) {}

    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(result_ ? PQntuples(result_.get()) : 0);
    }
    [[nodiscard]] row operator[](std::size_t i) const noexcept { return {result_.get(), static_cast<int>(i)}; }
    /// The command tag, such as `COMMIT`.
    [[nodiscard]] std::string_view tag() const noexcept { return result_ ? PQcmdStatus(result_.get()) : ""; }

    /// Calls `f(row)` for each.
    template <class F>
    void each(const F& f) const {
        for (std::size_t i = 0; i < size(); ++i) {
            f((*this)[i]);
        }
    }

  private:
    result_ptr result_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
