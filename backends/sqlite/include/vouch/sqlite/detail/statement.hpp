// SPDX-License-Identifier: MIT
// A prepared statement, and one run of it: bound, stepped, read, and reset when the run is destroyed. Every value is
// bound, never inserted into the text. Bound bytes are not copied and must outlive the run. Reading throws `corrupt` if
// a value does not have the type and range that the store writes there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Binds bytes as a blob. A string binds as text.
struct blob {
    std::string_view bytes{};
};

/// Binds text; an empty one as NULL.
struct optional_text {
    std::string_view text{};
};

/// Binds bytes as a blob; empty ones as NULL.
struct optional_blob {
    std::string_view bytes{};
};

/// Binds an id; the nil id as NULL.
struct optional_id {
    const id& value;
};

/// Reads a blob. A string reads text.
struct blob_into {
    std::string& to;
};

/// Reads NULL as an empty value: an empty text, no bytes, the nil id.
template <class T>
struct or_none {
    T& to;
};
template <class T>
or_none(T&) -> or_none<T>;

class statement {
  public:
    statement() = default;
    statement(sqlite3* db, std::string_view sql) {
        const int rc = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                          &handle_, nullptr);
        if (rc != SQLITE_OK) {
            throw error_of(sqlite3_extended_errcode(db), "prepare");
        }
    }
    statement(statement&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    statement& operator=(statement&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~statement() { sqlite3_finalize(handle_); }

    [[nodiscard]] sqlite3_stmt* handle() const noexcept { return handle_; }

  private:
    sqlite3_stmt* handle_ = nullptr;
};

class run {
  public:
    static constexpr std::size_t ids_max = 8; ///< the number of ids that one statement may bind
    explicit run(const statement& of) noexcept : handle_(of.handle()) {}
    run(const run&) = delete;
    run& operator=(const run&) = delete;
    ~run() {
        sqlite3_reset(handle_);
        sqlite3_clear_bindings(handle_);
    }

    /// Binds all parameters, in order.
    template <class... Values>
    run& bind(const Values&... values) {
        return bind_from(1, values...);
    }

    /// Binds parameters from number `first` on. Parameters that are not bound are NULL.
    template <class... Values>
    run& bind_from(int first, const Values&... values) {
        ((check(bind_at(first++, values))), ...);
        return *this;
    }

    /// Returns whether there is a row.
    bool step() {
        const int rc = sqlite3_step(handle_);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            throw error_of(sqlite3_extended_errcode(sqlite3_db_handle(handle_)), "step");
        }
        return rc == SQLITE_ROW;
    }

    /// Runs to the end. Returns the number of changed rows.
    int finish() {
        while (step()) {
        }
        return sqlite3_changes(sqlite3_db_handle(handle_));
    }

    // The columns of the row, counted from 0.

    [[nodiscard]] bool is_null(int column) const noexcept {
        return sqlite3_column_type(handle_, column) == SQLITE_NULL;
    }
    [[nodiscard]] std::string_view bytes(int column) const {
        const auto* const data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
        if (data == nullptr && sqlite3_errcode(sqlite3_db_handle(handle_)) == SQLITE_NOMEM) {
            throw error_of(SQLITE_NOMEM, "read");
        }
        return {data, data == nullptr ? 0 : size};
    }

    void read(int column, std::string& to) const {
        expect(sqlite3_column_type(handle_, column) == SQLITE_TEXT,
               "sqlite: the file is damaged: a text has another type");
        to.assign(bytes(column));
    }
    void read(int column, blob_into into) const { into.to.assign(blob_at(column)); }
    void read(int column, std::int64_t& to) const { to = integer_between(column, INT64_MIN, INT64_MAX); }
    void read(int column, std::uint64_t& to) const { to = static_cast<std::uint64_t>(integer_between(column, 0)); }
    void read(int column, std::uint32_t& to) const {
        to = static_cast<std::uint32_t>(integer_between(column, 0, UINT32_MAX));
    }
    void read(int column, bool& to) const { to = integer_between(column, 0, 1) != 0; }
    void read(int column, time_point& to) const {
        to = time_point{duration{integer_between(column, INT64_MIN, INT64_MAX)}};
    }
    void read(int column, state& to) const {
        to = static_cast<state>(integer_between(column, 0, static_cast<std::int64_t>(all_states.size()) - 1));
    }
    void read(int column, id& to) const {
        const auto from = blob_at(column);
        std::array<std::uint8_t, 16> raw{};
        expect(from.size() == raw.size(), "sqlite: the file is damaged: an id does not have 16 bytes");
        std::memcpy(raw.data(), from.data(), raw.size());
        to = id::from_bytes(raw);
    }
    template <class T>
    void read(int column, std::optional<T>& to) const {
        if (is_null(column)) {
            to.reset();
        } else {
            read(column, to.emplace());
        }
    }
    template <class T>
    void read(int column, or_none<T> into) const {
        if (is_null(column)) {
            into.to = {};
        } else {
            read(column, into.to);
        }
    }

    /// Reads the first columns, in order.
    template <class... Values>
    void read_all(Values&&... values) const {
        int column = -1;
        (read(++column, values), ...);
    }

    /// The bytes of a blob, valid until the next step.
    [[nodiscard]] std::string_view blob_at(int column) const {
        expect(sqlite3_column_type(handle_, column) == SQLITE_BLOB,
               "sqlite: the file is damaged: a blob has another type");
        return bytes(column);
    }
    [[nodiscard]] std::int64_t integer_between(int column, std::int64_t least, std::int64_t most = INT64_MAX) const {
        expect(sqlite3_column_type(handle_, column) == SQLITE_INTEGER,
               "sqlite: the file is damaged: a number has another type");
        const auto value = integer(column);
        expect(value >= least && value <= most, "sqlite: the file is damaged: a number is out of range");
        return value;
    }
    static void expect(bool is_sound, const char* damage) {
        if (!is_sound) {
            throw error(error_kind::corrupt, damage);
        }
    }

    /// A number that the statement has computed.
    [[nodiscard]] std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(handle_, column); }

  private:
    static void check(int rc) {
        if (rc != SQLITE_OK) {
            throw error_of(rc, "bind");
        }
    }

    int bind_at(int at, std::int64_t value) noexcept { return sqlite3_bind_int64(handle_, at, value); }
    int bind_at(int at, std::uint64_t value) noexcept { return bind_at(at, static_cast<std::int64_t>(value)); }
    int bind_at(int at, std::uint32_t value) noexcept { return bind_at(at, std::int64_t{value}); }
    int bind_at(int at, bool value) noexcept { return bind_at(at, std::int64_t{value}); }
    int bind_at(int at, state value) noexcept { return bind_at(at, static_cast<std::int64_t>(value)); }
    int bind_at(int at, time_point value) noexcept {
        return bind_at(at, std::int64_t{value.time_since_epoch().count()});
    }
    int bind_at(int at, std::string_view text) noexcept {
        return sqlite3_bind_text64(handle_, at, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_STATIC,
                                   SQLITE_UTF8);
    }
    int bind_at(int at, const std::string& text) noexcept { return bind_at(at, std::string_view(text)); }
    int bind_at(int at, blob value) noexcept {
        return sqlite3_bind_blob64(handle_, at, value.bytes.data() == nullptr ? "" : value.bytes.data(),
                                   value.bytes.size(), SQLITE_STATIC);
    }
    int bind_at(int at, const id& value) noexcept {
        auto& kept = ids_[ids_bound_++ % ids_max];
        kept = value.bytes();
        return sqlite3_bind_blob64(handle_, at, kept.data(), kept.size(), SQLITE_STATIC);
    }
    int bind_at(int at, std::nullopt_t) noexcept { return sqlite3_bind_null(handle_, at); }
    // If this is inlined, GCC 12 warns that the value of an empty optional is used uninitialized.
    template <class T>
    [[gnu::noinline]] int bind_at(int at, const std::optional<T>& value) noexcept {
        return value ? bind_at(at, *value) : bind_at(at, std::nullopt);
    }
    int bind_at(int at, optional_text text) noexcept {
        return text.text.empty() ? bind_at(at, std::nullopt) : bind_at(at, text.text);
    }
    int bind_at(int at, optional_blob value) noexcept {
        return value.bytes.empty() ? bind_at(at, std::nullopt) : bind_at(at, blob{value.bytes});
    }
    int bind_at(int at, optional_id given) noexcept {
        return given.value.is_nil() ? bind_at(at, std::nullopt) : bind_at(at, given.value);
    }

    sqlite3_stmt* handle_;
    std::array<std::array<std::uint8_t, 16>, ids_max> ids_; // written before it is read
    std::size_t ids_bound_ = 0;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
