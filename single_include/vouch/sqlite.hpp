// SPDX-License-Identifier: MIT
// The SQLite store: durable, shared between processes, and part of the application's own transactions. Needs the
// system's libsqlite3, 3.35 or newer.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_SQLITE
#define VOUCH_SINGLE_HEADER_SQLITE

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- vouch/sqlite/error.hpp
// SQLite's result codes, mapped once to vouch's kinds. A message says what was being done and SQLite's words for the
// code; never SQLite's own message about the statement, which may quote what is stored.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

[[nodiscard]] constexpr error_kind kind_of(int code) noexcept {
    if (code == SQLITE_BUSY_SNAPSHOT) {
        return error_kind::conflict; // what the transaction has read is no longer the newest: only a repeat helps
    }
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT: return error_kind::busy;
    case SQLITE_FULL:
    case SQLITE_NOMEM: return error_kind::full;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return error_kind::read_only;
    case SQLITE_ERROR: // a table or column of ours is not there
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: return error_kind::corrupt;
    case SQLITE_TOOBIG:
    case SQLITE_NOLFS: return error_kind::unsupported;
    case SQLITE_ABORT: // somebody rolled back under a running statement
    case SQLITE_MISUSE:
    case SQLITE_RANGE: return error_kind::misuse;
    default: return error_kind::io;
    }
}

// Made ahead, because there may be no memory left to say so: copying them allocates nothing.
inline const error out_of_memory{error_kind::full, "sqlite: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "sqlite: commit: out of memory", {.in_doubt = true}};

/// The error for an extended result code; if there is no memory for it, that one.
[[nodiscard]] inline error error_of(int code, std::string_view doing, bool in_doubt = false) noexcept {
    try {
        std::string message = "sqlite: ";
        message += doing;
        message += ": ";
        message += sqlite3_errstr(code);
        message += " (" + std::to_string(code) + ')';
        return {kind_of(code), message, {.in_doubt = in_doubt, .code = code}};
    } catch (const std::bad_alloc&) {
        return in_doubt ? out_of_memory_in_doubt : out_of_memory;
    }
}

/// What `f` returns. That there is no memory for it is an error like the others.
template <class F>
auto in_memory(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/statement.hpp
// A prepared statement, and one run of it: bound, stepped, read, and reset when the run ends, however it ends. Every
// value is bound, never spliced. Bound bytes are not copied, so they must live as long as the run. What is read must be
// of the type and in the range the store writes there, else the file is damaged: `corrupt`.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Bytes stored as a blob; text is stored as text.
struct blob {
    std::string_view bytes{};
};

/// Text of which "empty" means "none", and is stored as NULL.
struct optional_text {
    std::string_view text{};
};

/// As `optional_text`, for a blob.
struct optional_blob {
    std::string_view bytes{};
};

/// As `optional_text`, for an id, which is none if it is nil.
struct optional_id {
    const id& value;
};

/// Reads a blob; a plain string reads text.
struct blob_into {
    std::string& to;
};

/// Reads NULL as "none": an empty text, no bytes, the nil id.
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
    static constexpr std::size_t ids_max = 8; ///< that one statement may have bound
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

    /// Binds parameters from the `first` on; what is never bound is NULL.
    template <class... Values>
    run& bind_from(int first, const Values&... values) {
        ((check(bind_at(first++, values))), ...);
        return *this;
    }

    /// Whether there is a row. Throws what SQLite reports.
    bool step() {
        const int rc = sqlite3_step(handle_);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            throw error_of(sqlite3_extended_errcode(sqlite3_db_handle(handle_)), "step");
        }
        return rc == SQLITE_ROW;
    }

    /// Runs to the end; says how many rows that changed.
    int finish() {
        while (step()) {
        }
        return sqlite3_changes(sqlite3_db_handle(handle_));
    }

    // The row's columns, from 0.

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
        expect(sqlite3_column_type(handle_, column) == SQLITE_TEXT, "sqlite: a stored text is none");
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
        expect(from.size() == raw.size(), "sqlite: a stored id has not 16 bytes");
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

    /// Reads columns from the first on, in order.
    template <class... Values>
    void read_all(Values&&... values) const {
        int column = -1;
        (read(++column, values), ...);
    }

    /// The bytes of a blob, until the next step.
    [[nodiscard]] std::string_view blob_at(int column) const {
        expect(sqlite3_column_type(handle_, column) == SQLITE_BLOB, "sqlite: stored bytes are none");
        return bytes(column);
    }
    [[nodiscard]] std::int64_t integer_between(int column, std::int64_t least, std::int64_t most = INT64_MAX) const {
        expect(sqlite3_column_type(handle_, column) == SQLITE_INTEGER, "sqlite: a stored number is none");
        const auto value = integer(column);
        expect(value >= least && value <= most, "sqlite: a stored number is out of its range");
        return value;
    }
    static void expect(bool is_sound, const char* damage) {
        if (!is_sound) {
            throw error(error_kind::corrupt, damage);
        }
    }

    /// Of a number that the statement has made.
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
    // Inlined, GCC 12 takes the value of an empty one for a read of what was never written.
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

// ---- vouch/sqlite/schema.hpp
// The tables and indexes, as text for a migration tool or carried out on request; `backends/README.md` explains every
// column and index. The version is a row of our own: `PRAGMA user_version` belongs to the application.

namespace vouch {
inline namespace v0 {
namespace sqlite {

inline constexpr std::string_view default_prefix = "vouch_";

namespace detail {

/// Each brings the tables from the version of its index to the next; `@` stands for the prefix. Never change one that
/// was released: append.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE @entries (
  sequence INTEGER PRIMARY KEY,
  shelf INTEGER NOT NULL,
  gate INTEGER,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lapses INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  woken INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  worker TEXT NOT NULL,
  last_error TEXT NOT NULL,
  id BLOB NOT NULL,
  topic TEXT NOT NULL,
  tied INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  attempts_max INTEGER NOT NULL,
  expires_at INTEGER,
  trail BLOB,
  headers BLOB,
  progress BLOB,
  result BLOB,
  payload BLOB
);
CREATE UNIQUE INDEX @entries_id ON @entries (id);
CREATE INDEX @entries_gate ON @entries (shelf, gate);
CREATE TABLE @dead (
  queue INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (queue, sequence)
) WITHOUT ROWID;
CREATE TABLE @payloads (
  sequence INTEGER PRIMARY KEY,
  payload BLOB NOT NULL
);
CREATE TABLE @relations (
  sequence INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  "key" TEXT,
  generation INTEGER NOT NULL,
  "group" TEXT,
  lane TEXT,
  is_live INTEGER NOT NULL,
  parent BLOB,
  predecessor BLOB,
  replaces INTEGER
);
CREATE UNIQUE INDEX @relations_key ON @relations (queue, "key", generation) WHERE "key" IS NOT NULL;
CREATE INDEX @relations_group ON @relations ("group") WHERE "group" IS NOT NULL;
CREATE INDEX @relations_lane ON @relations (queue, lane) WHERE lane IS NOT NULL AND is_live = 1;
CREATE INDEX @relations_parent ON @relations (parent) WHERE parent IS NOT NULL;
CREATE INDEX @relations_live_child ON @relations (parent) WHERE parent IS NOT NULL AND is_live = 1;
CREATE UNIQUE INDEX @relations_replaces ON @relations (replaces) WHERE replaces IS NOT NULL;
CREATE TABLE @groups (
  name TEXT PRIMARY KEY,
  members INTEGER NOT NULL,
  live INTEGER NOT NULL,
  unfinished INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE @meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO @meta VALUES ('sequence_floor', 0);
)"};

/// `text` with the prefix in place of every `@`. Prefixes are validated; nothing else is ever put into SQL.
[[nodiscard]] inline std::string with_prefix(std::string_view text, std::string_view prefix) {
    std::string out;
    out.reserve(text.size() + 16 * prefix.size());
    for (const char c : text) {
        if (c == '@') {
            out += prefix;
        } else {
            out += c;
        }
    }
    return out;
}

} // namespace detail

/// The version these headers work with.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Throws `invalid_argument` unless the prefix is 1 to 40 letters, digits and underscores, beginning with no digit and
/// not with `sqlite_`, which SQLite keeps for itself.
inline void validate_prefix(std::string_view prefix) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto fits = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
    };
    if (prefix.empty() || prefix.size() > 40 || is_digit(prefix.front()) ||
        !std::all_of(prefix.begin(), prefix.end(), fits)) {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix must be 1 to 40 letters, digits and "
                                                  "underscores, the first no digit; it has " +
                                                      std::to_string(prefix.size()) + " bytes");
    }
    constexpr std::string_view reserved = "sqlite_";
    const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (prefix.size() >= reserved.size() && std::equal(reserved.begin(), reserved.end() - 1, prefix.begin(), same) &&
        prefix[reserved.size() - 1] == '_') {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix must not begin with sqlite_");
    }
}

namespace detail {

[[nodiscard]] inline std::string record_version(std::string_view prefix, std::size_t version) {
    return with_prefix("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                           ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
                       prefix);
}

inline void execute(sqlite3* db, const std::string& sql, std::string_view doing) {
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) {
        throw error_of(sqlite3_extended_errcode(db), doing);
    }
}

/// SQLite would store names in the database's encoding, and change those that are not valid in it.
inline void expect_utf8(sqlite3* db) {
    const statement encoding(db, "PRAGMA encoding");
    run reading(encoding);
    if (!reading.step() || reading.bytes(0) != "UTF-8") {
        throw error(error_kind::unsupported,
                    "sqlite: the database is encoded in UTF-16, which would change names; only "
                    "a database in UTF-8 can hold the tables");
    }
}

/// 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(sqlite3* db, std::string_view prefix) {
    const auto meta = with_prefix("@meta", prefix);
    const statement exists(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    if (!run(exists).bind(meta).step()) {
        return 0;
    }
    const statement version(db, with_prefix("SELECT value FROM @meta WHERE name = 'schema_version'", prefix));
    run reading(version);
    if (!reading.step()) {
        throw error(error_kind::corrupt, "sqlite: " + meta + " has no schema_version");
    }
    constexpr std::int64_t least = 0;
    return reading.integer_between(0, least);
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "sqlite: the tables are of schema version " + std::to_string(stored) +
                                                 ", newer than " + std::to_string(known) +
                                                 ", the newest this library knows; nothing was touched");
    }
}

/// Carries out what is missing of `steps`, in one transaction: the one that is open, or its own.
inline void migrate(sqlite3* db, std::string_view prefix, std::span<const std::string_view> steps) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, steps.size());
    if (stored == static_cast<std::int64_t>(steps.size())) {
        return; // without taking the write lock
    }
    const bool own = sqlite3_get_autocommit(db) != 0;
    execute(db, own ? "BEGIN IMMEDIATE" : "SAVEPOINT vouch_migrate", "begin to migrate");
    try {
        const auto from = stored_version(db, prefix); // another process may have been first
        refuse_newer(from, steps.size());
        for (auto i = static_cast<std::size_t>(from); i < steps.size(); ++i) {
            execute(db, with_prefix(steps[i], prefix), "migrate to schema version " + std::to_string(i + 1));
        }
        execute(db, record_version(prefix, steps.size()), "record the schema version");
        execute(db, own ? "COMMIT" : "RELEASE vouch_migrate", "commit the migration");
    } catch (...) {
        if (sqlite3_get_autocommit(db) == 0) {
            sqlite3_exec(db, own ? "ROLLBACK" : "ROLLBACK TO vouch_migrate; RELEASE vouch_migrate", nullptr, nullptr,
                         nullptr);
        }
        throw;
    }
}

/// Throws unless the tables are there, in the version these headers work with.
inline void expect_schema(sqlite3* db, std::string_view prefix) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, migrations.size());
    if (stored < schema_version) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "sqlite: there are no tables with the prefix " + std::string(prefix)
                                 : "sqlite: the tables are of schema version " + std::to_string(stored) +
                                       ", this library needs " + std::to_string(schema_version)) +
                        "; migrate() brings them up to date");
    }
}

} // namespace detail

/// Creates the tables, or brings older ones up to date, in one transaction: the one that is open on the connection, or
/// its own. Tables newer than the library are refused (`unsupported`) and not touched. If memory is so short that not
/// even a rollback can be carried out, its own transaction stays open, and `full` is thrown: roll back when there is
/// memory.
inline void migrate(sqlite3* connection, std::string_view prefix = default_prefix) {
    detail::in_memory([&] { detail::migrate(connection, prefix, detail::migrations); });
}

/// The statements that create everything in an empty database, for a migration tool.
[[nodiscard]] inline std::string schema(std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    std::string out;
    for (const auto step : detail::migrations) {
        out += detail::with_prefix(step, prefix);
    }
    return out + detail::record_version(prefix, detail::migrations.size());
}

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/options.hpp
// How a store uses its file.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// What a commit waits for, on connections the store opens.
enum class synchronous : std::uint8_t {
    full,   ///< the disk: a committed transaction survives the loss of power
    normal, ///< the operating system: many times faster; the loss of power may undo the newest commits, in order and
            ///< whole, so an enqueue somebody was told of may be gone and a settled entry may run again. A crash of the
            ///< process loses nothing, and the file stays sound in any case.
};

struct options {
    std::string prefix{default_prefix}; ///< of every table and index
    bool create = true;                 ///< create or migrate the tables; false: they must be there, in this version
    sqlite::synchronous synchronous = sqlite::synchronous::full;
    /// How long to wait for other writers, of this process and of others, before `busy`. Not negative.
    std::chrono::milliseconds busy_limit{10'000};
    /// How often `wait` looks for commits of other processes. At least 1 ms.
    std::chrono::milliseconds watch_every{20};
    std::string vfs{}; ///< empty: SQLite's default
};

namespace detail {

/// The options, with durations that can be added to any present time: a wait longer than a year is one of a year.
[[nodiscard]] inline options checked(options how) {
    using std::chrono::milliseconds;
    const auto check = [](milliseconds& value, milliseconds least, std::string_view name) {
        if (value < least) {
            throw error(error_kind::invalid_argument, "sqlite: options: " + std::string(name) + " is " +
                                                          std::to_string(value.count()) + " ms; it must be at least " +
                                                          std::to_string(least.count()) + " ms");
        }
        value = std::min(value, std::chrono::duration_cast<milliseconds>(limits{}.lease_max));
    };
    check(how.busy_limit, milliseconds{0}, "busy_limit");
    check(how.watch_every, milliseconds{1}, "watch_every");
    return how;
}

} // namespace detail

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/shelf.hpp
// Where an entry stands. Every queue has a number and three shelves: live, succeeded, dead. One index orders each shelf
// by gate, which for an ended entry is the time it ended; so a claim and a purge each read the beginning of a shelf.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A queue's number; its shelves are the four numbers from `first()` on, of which the last stays empty.
struct queue_number {
    std::int64_t value = 0;

    [[nodiscard]] constexpr std::int64_t first() const noexcept { return value * 4; }
    [[nodiscard]] constexpr std::int64_t shelf(state s) const noexcept {
        return first() + (s == state::succeeded ? 1 : s == state::dead ? 2 : 0);
    }
};

/// A place on a shelf; the first is before all entries.
struct shelf_place {
    std::int64_t gate = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const shelf_place&, const shelf_place&) noexcept = default;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/sql.hpp
// Every statement the store can issue, as data: prepared once per connection when first used, and walked by the test
// that forbids table scans. `@` stands for the prefix, `$` for a part that several share. Where SQLite could choose
// among indexes, the statement names the one it was written for.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

enum class sql : std::uint8_t {
    begin,
    begin_reading,
    commit,
    roll_back,
    savepoint,
    release,
    roll_back_to,
    data_version,
    settle_doubt,
    queue,
    add_queue,
    find,
    at,
    list_group,
    list_parent,
    list_key,
    list_dead,
    list_near,
    list_far,
    counts,
    next_due,
    last_sequence,
    raise_floor,
    insert,
    insert_many,
    insert_payload,
    insert_relations,
    sequence_of,
    newest_of_key,
    predecessor,
    due,
    due_only,
    claim,
    count_ready,
    succeed,
    life,
    write_wait,
    write_checkpoint,
    write_hold,
    write_end,
    add_dead,
    end_relations,
    lane_is_taken,
    lane_open_next,
    group_enter,
    group_end,
    group_leave,
    group_drop,
    purge_find,
    purge_generation,
    purge_entry,
    purge_dead,
    purge_payload,
    purge_relations,
};

/// The queue's name, read where the statement is not told it.
inline constexpr std::string_view name_column = "(SELECT q.name FROM @queues q WHERE q.number = e.shelf >> 2)";

/// The columns `read_entry` reads but for the payload.
inline constexpr std::string_view entry_columns =
    R"(e.sequence, e.id, $queue, e.topic, r."key", r."group", r.lane, r.parent, r.predecessor, ifnull(r.generation, 1),
 e.attempts_max, e.expires_at, e.created_at, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.worker, e.last_error, e.updated_at, e.last_attempt_at, e.trail,
 e.headers, e.progress, e.result)";

/// The state; NULL if the entry does not stand on the shelf of its state.
inline constexpr std::string_view state_column = "CASE WHEN e.shelf & 3 = max(e.state - 2, 0) THEN e.state END";

/// Small payloads lie in the row, larger ones apart, so that a change of the row does not write them again.
inline constexpr std::string_view payload_column =
    "ifnull(e.payload, (SELECT p.payload FROM @payloads p WHERE p.sequence = e.sequence))";
inline constexpr std::size_t payload_in_row_max = 1024;

/// A new row. ?1 is now; its own parameters follow in this order.
inline constexpr std::string_view new_row = "($sequence, $shelf, $gate, $state, 0, 0, 0, 0, $due_at, 0, ?1, NULL, '', "
                                            "'', $id, $topic, $tied, ?1, $attempts_max,"
                                            " $expires_at, $trail, $headers, $progress, $result, $payload)";
inline constexpr auto new_row_parameters = static_cast<std::size_t>(std::count(new_row.begin(), new_row.end(), '$'));
/// How many rows one statement inserts where there are many: most of what a single one costs is starting it.
inline constexpr std::size_t rows_at_once = 8;

struct sql_text {
    sql which;
    std::string_view text;
};

inline constexpr std::array statements{
    sql_text{sql::begin, "BEGIN IMMEDIATE"},
    sql_text{sql::begin_reading, "BEGIN"},
    sql_text{sql::commit, "COMMIT"},
    sql_text{sql::roll_back, "ROLLBACK"},
    sql_text{sql::savepoint, "SAVEPOINT vouch_call"},
    sql_text{sql::release, "RELEASE vouch_call"},
    sql_text{sql::roll_back_to, "ROLLBACK TO vouch_call"},
    sql_text{sql::data_version, "PRAGMA data_version"},
    // What it counts is for people; that it changes a page is what matters.
    sql_text{sql::settle_doubt,
             "INSERT INTO @meta VALUES ('doubts', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"},

    // Queues have numbers, which never change.
    sql_text{sql::queue, "SELECT number FROM @queues WHERE name = ?1"},
    sql_text{sql::add_queue, "INSERT INTO @queues (name) VALUES (?1)"},

    // Reading. The lists: ?1 path, ?2 after, ?3 state, ?4 topic, ?5 limit, ?6 payloads, ?7 queue, ?8 key.
    sql_text{sql::find, R"(SELECT $entry, $payload FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.id = ?1)"},
    sql_text{sql::at, R"(SELECT $entry, CASE WHEN ?2 THEN $payload END FROM @entries e
 LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.sequence = ?1)"},
    sql_text{sql::list_group, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_group CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r."group" = ?1 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY r.sequence LIMIT ?5)"},
    sql_text{sql::list_parent, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_parent CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.parent = ?1 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY r.sequence LIMIT ?5)"},
    // Generations of a key grow with their sequences.
    sql_text{sql::list_key, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_key CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.queue = ?7 AND r."key" = ?8 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3)
 AND (?4 = '' OR e.topic = ?4) ORDER BY r.generation LIMIT ?5)"},
    sql_text{sql::list_dead, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @dead d CROSS JOIN @entries e ON e.sequence = d.sequence LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE d.queue = ?7 AND d.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY d.sequence LIMIT ?5)"},
    // A queue's shelves from ?7 to ?8. Near: sequences up to ?9, as they lie in the table. Far: all of them, from the
    // index, in no order.
    sql_text{sql::list_near, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END FROM @entries e
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.sequence > ?2 AND e.sequence <= ?9 AND +e.shelf BETWEEN ?7 AND ?8 AND (?3 IS NULL OR e.state = ?3)
 AND (?4 = '' OR e.topic = ?4) ORDER BY e.sequence LIMIT ?5)"},
    sql_text{sql::list_far, R"(SELECT sequence FROM @entries INDEXED BY @entries_gate WHERE shelf BETWEEN ?4 AND ?5
 AND sequence > ?1 AND (?2 IS NULL OR state = ?2) AND (?3 = '' OR topic = ?3))"},
    // ?1 is the queue's first shelf: of the live, behind it those of the succeeded and of the dead.
    sql_text{sql::counts, R"(SELECT sum(state = 0), sum(state = 1), sum(state = 2),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE shelf = ?1 + 1),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE shelf = ?1 + 2), count(*)
 FROM @entries INDEXED BY @entries_gate WHERE shelf = ?1)"},
    // Blocked entries have no gate and stand before all others.
    sql_text{sql::next_due, R"(SELECT gate FROM @entries INDEXED BY @entries_gate
 WHERE shelf = ?1 AND gate >= -9223372036854775808 ORDER BY gate LIMIT 1)"},

    // Enqueue. Sequences are never reused: the floor remembers the highest that was purged from the end.
    sql_text{sql::last_sequence, R"(SELECT max(ifnull((SELECT max(sequence) FROM @entries), 0),
 (SELECT value FROM @meta WHERE name = 'sequence_floor')))"},
    sql_text{sql::raise_floor, "UPDATE @meta SET value = ?1 WHERE name = 'sequence_floor' AND value < ?1"},
    sql_text{sql::insert, "INSERT INTO @entries VALUES $row ON CONFLICT (id) DO NOTHING"},
    sql_text{sql::insert_many, "INSERT INTO @entries VALUES $rows ON CONFLICT (id) DO NOTHING"},
    sql_text{sql::insert_payload, "INSERT INTO @payloads VALUES (?1, ?2)"},
    sql_text{sql::insert_relations, "INSERT INTO @relations VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9)"},
    sql_text{sql::sequence_of, "SELECT sequence FROM @entries WHERE id = ?1"},
    sql_text{sql::newest_of_key, R"(SELECT e.id FROM @relations r INDEXED BY @relations_key
 CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.queue = ?1 AND r."key" = ?2 ORDER BY r.generation DESC LIMIT 1)"},
    sql_text{sql::predecessor, R"(SELECT e.sequence, $state, e.shelf >> 2, r."key", r."group", r.lane,
 ifnull(r.generation, 1), (SELECT n.id FROM @relations s INDEXED BY @relations_replaces
 CROSS JOIN @entries n ON n.sequence = s.sequence WHERE s.replaces = e.sequence)
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?1)"},

    // Claim. First read: ?1 the queue's name, ?2 its shelf, ?3 now, ?4 limit or the one id. Then written, a run of
    // sequences at a time: ?1 first, ?2 last, ?3 now, ?4 lease end, ?5 worker. RETURNING would keep every row twice.
    sql_text{sql::due, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_gate
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.shelf = ?2 AND e.gate <= ?3 ORDER BY e.gate, e.sequence LIMIT ?4)"},
    sql_text{sql::due_only, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_id
 LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?4 AND e.shelf = ?2 AND e.gate <= ?3)"},
    sql_text{sql::claim, R"(UPDATE @entries SET state = 2, attempts = attempts + (state <> 2 OR lapses > 0),
 lapses = lapses + (state = 2), epoch = epoch + 1, gate = ?4, woken = 0, worker = ?5, updated_at = ?3, last_attempt_at = ?3
 WHERE sequence BETWEEN ?1 AND ?2 AND gate <= ?3 AND state < 3)"},

    // What most settles come to, a run of sequences at a time: ?1 first, ?2 last, ?3 epoch, ?4 result, ?5 now. An entry
    // on a wrong shelf is left to the long way, which finds the damage.
    sql_text{sql::count_ready, R"(SELECT count(*) FROM @entries
 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},
    sql_text{sql::succeed, R"(UPDATE @entries SET state = 3, shelf = shelf + 1, gate = ?5, result = ?4, updated_at = ?5,
 lapses = 0, woken = 0 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},

    // The verbs: read, applied in memory, written back under the fence (?1 sequence, ?2 epoch, ?3 state).
    sql_text{sql::life, R"(SELECT e.sequence, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.gate, e.shelf >> 2, $name, r."group", r.lane, r.parent
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.id = ?1)"},
    sql_text{sql::write_wait, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, lapses = ?11, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_checkpoint, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, lapses = ?11, progress = ?12, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_hold, R"(UPDATE @entries SET gate = ?4, woken = ?5, updated_at = ?6
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_end, R"(UPDATE @entries SET state = ?4, failures = ?5, epoch = ?6,
 last_error = ifnull(?7, last_error), result = ?8, updated_at = ?9, gate = ?9, shelf = ?10, lapses = ?11, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::add_dead, "INSERT INTO @dead VALUES (?1, ?2)"},
    sql_text{sql::end_relations, "UPDATE @relations SET is_live = 0 WHERE sequence = ?1"},

    // Lanes: the first live entry has a gate, the others have none.
    sql_text{sql::lane_is_taken, R"(SELECT 1 FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 LIMIT 1)"},
    sql_text{sql::lane_open_next, R"(UPDATE @entries SET gate = due_at
 WHERE sequence = (SELECT sequence FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 ORDER BY sequence LIMIT 1) AND gate IS NULL)"},

    // Groups: ?1 name. A dead member is unfinished until it has a successor.
    sql_text{sql::group_enter, R"(INSERT INTO @groups VALUES (?1, 1, 1, 1) ON CONFLICT (name) DO UPDATE
 SET members = members + 1, live = live + 1, unfinished = unfinished + ?2)"},
    sql_text{sql::group_end, R"(UPDATE @groups SET live = live - 1, unfinished = unfinished - ?2
 WHERE name = ?1 RETURNING unfinished)"},
    sql_text{sql::group_leave,
             "UPDATE @groups SET members = members - 1, unfinished = unfinished - ?2 WHERE name = ?1"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ?1 AND members = 0"},

    // Purge: ?1 and ?2 the shelves, ?3 before, ?4 and ?5 the place to begin behind. Newest generations are found, then
    // followed back to their predecessors. Others are seen as well, because passing over them costs as much.
    sql_text{sql::purge_find, R"(SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE shelf = ?1 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
 UNION ALL SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE shelf = ?2 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
 ORDER BY gate, sequence)"},
    sql_text{sql::purge_generation, R"(SELECT r.replaces, $state, r."group", r.sequence IS NOT NULL, e.payload IS NULL,
 EXISTS (SELECT 1 FROM @groups g WHERE g.name = r."group" AND g.live > 0)
 OR EXISTS (SELECT 1 FROM @relations c INDEXED BY @relations_live_child
 WHERE c.parent = e.id AND c.is_live = 1)
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.sequence = ?1)"},
    sql_text{sql::purge_entry, "DELETE FROM @entries WHERE sequence = ?1 AND state >= 3"},
    sql_text{sql::purge_dead, "DELETE FROM @dead WHERE queue = ?1 AND sequence = ?2"},
    sql_text{sql::purge_payload, "DELETE FROM @payloads WHERE sequence = ?1"},
    sql_text{sql::purge_relations, "DELETE FROM @relations WHERE sequence = ?1"},
};

static_assert(
    [] {
        for (std::size_t i = 0; i < statements.size(); ++i) {
            if (statements[i].which != static_cast<sql>(i)) {
                return false;
            }
        }
        return statements.back().which == sql::purge_relations;
    }(),
    "the statements stand in the order of their names");

/// `text` with every `what` replaced.
inline void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

/// `new_row` for the row of that index, its parameters numbered.
[[nodiscard]] inline std::string row_text(std::size_t index) {
    std::string out;
    auto next = 2 + index * new_row_parameters;
    for (std::size_t at = 0; at < new_row.size();) {
        if (new_row[at] != '$') {
            out += new_row[at++];
            continue;
        }
        at = new_row.find_first_of(",)", at);
        out += '?' + std::to_string(next++);
    }
    return out;
}

/// Whether ?1 is the name of the queue all rows are of.
[[nodiscard]] constexpr bool is_told_the_queue(sql which) noexcept {
    return which == sql::due || which == sql::due_only || which == sql::list_near || which == sql::list_dead ||
           which == sql::list_key;
}

[[nodiscard]] inline std::string text_of(sql which, std::string_view prefix) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    replace_all(text, "$entry", entry_columns);
    // What is due stands on the shelf of the live, and a claim that meets another state there finds the damage.
    const bool is_claim = which == sql::due || which == sql::due_only;
    replace_all(text, "$state", is_claim ? "e.state" : state_column);
    replace_all(text, "$live", "shelf & 3 = 0 AND shelf = CAST(shelf AS INTEGER)");
    replace_all(text, "$payload", payload_column);
    replace_all(text, "$queue", is_told_the_queue(which) ? "?1" : "$name");
    replace_all(text, "$name", name_column);
    if (text.find("$rows") != std::string::npos) {
        std::string rows = row_text(0);
        for (std::size_t i = 1; i < rows_at_once; ++i) {
            rows += ", " + row_text(i);
        }
        replace_all(text, "$rows", rows);
    }
    replace_all(text, "$row", row_text(0));
    return with_prefix(text, prefix);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/turnstile.hpp
// Where processes queue up before they ask SQLite for the write lock. SQLite has no queue of its own: whoever looks at
// the right moment gets the lock, most of all the process that has just given it back. On a disk that takes its time
// somebody is then passed over until `busy`.
//
// The queue is an empty file beside the database, `NAME-turn`: a place in it is the lock of one byte, a newcomer takes
// the byte behind all that are taken, and the lowest is next. So nobody who has a place is passed by one who comes
// later. Who finds no queue asks for the lock at once, and lines up if somebody has it. Who had its turn may come back
// without queueing for a few milliseconds more, as long as it finds the lock free: handing it over takes longer than a
// quick commit. The system frees the places of processes that die. This orders, it does not protect: SQLite's lock
// does. Where the system has no such locks, no process queues.
//
// The file has the mode of the database, and its owner if root makes it, so that who may write the one may write the
// other. Who may only read it queues with read locks. Where it cannot be opened at all, that is an error: who does not
// queue is passed over by those who do, and passes over them.
//
// One thread's at a time.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class turnstile {
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds turn_length{5};

  public:
    turnstile() noexcept = default;

    /// For the database at this path. Throws if its queue cannot be opened.
    explicit turnstile(const std::string& database) {
#if defined(F_OFD_SETLK)
        struct stat like {};
        if (::stat(database.c_str(), &like) != 0) {
            return; // SQLite will say so
        }
        const auto name = database + "-turn";
        int failed = open_like(name, like);
        if (failed == EACCES && ::unlink(name.c_str()) == 0) {
            failed = open_like(name, like); // another user had left one behind that no other user can open
        }
        if (failed != 0) {
            throw_cannot_open(failed);
        }
#else
        static_cast<void>(database);
#endif
    }
    turnstile(turnstile&& other) noexcept { *this = std::move(other); }
    turnstile& operator=(turnstile&& other) noexcept {
        std::swap(file_, other.file_);
#if defined(F_OFD_SETLK)
        std::swap(place_lock_, other.place_lock_);
#endif
        std::swap(place_, other.place_);
        std::swap(is_approaching_, other.is_approaching_);
        std::swap(turn_until_, other.turn_until_);
        return *this;
    }
    ~turnstile() {
        if (file_ >= 0) {
            ::close(file_);
        }
    }

    /// On the way to the lock: takes a place if there is a queue, unless its turn is not over.
    void approach() noexcept {
        is_approaching_ = true;
#if defined(F_OFD_SETLK)
        if (file_ >= 0 && clock::now() >= turn_until_ && first_taken(1, 0) != 0) {
            line_up();
        }
#endif
    }

    /// Takes the place behind all others, if it is on the way and has none.
    void line_up() noexcept {
#if defined(F_OFD_SETLK)
        if (file_ < 0 || !is_approaching_ || place_ != 0) {
            return;
        }
        for (int tries = 0; tries < 1000; ++tries) { // somebody else may take the same one first
            auto last = std::int64_t{0};
            while (const auto next = first_taken(last + 1, 0)) {
                last = next;
            }
            if (lock(place_lock_, last + 1)) {
                if (first_taken(last + 1, 1) == 0) {
                    place_ = last + 1;
                    return;
                }
                lock(F_UNLCK, last + 1); // two may have a read lock
            }
        }
#endif
    }

    /// Whether nobody is before it. One without a place waits for nobody.
    [[nodiscard]] bool is_next() const noexcept {
#if defined(F_OFD_SETLK)
        return place_ <= 1 || first_taken(1, place_ - 1) == 0;
#else
        return true;
#endif
    }

    /// It has the lock, or has given up.
    void leave(bool has_lock) noexcept {
        is_approaching_ = false;
#if defined(F_OFD_SETLK)
        if (place_ != 0) {
            lock(F_UNLCK, std::exchange(place_, 0));
            turn_until_ = has_lock ? clock::now() + turn_length : clock::time_point{};
        }
#else
        static_cast<void>(has_lock);
#endif
    }

  private:
#if defined(F_OFD_SETLK)
    /// Opens the queue, or makes it with the mode and owner of the database. Gives 0, or the reason why not.
    [[nodiscard]] int open_like(const std::string& name, const struct stat& like) noexcept {
        constexpr auto readable_and_writable = 0666U;
        constexpr int flags = O_CLOEXEC | O_NOFOLLOW;
        constexpr auto stays = static_cast<uid_t>(-1);
        const auto mode = static_cast<mode_t>(like.st_mode & readable_and_writable);
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | flags, mode);
        if (file_ >= 0) {
            // Where one of these fails, others can still read the file, or say that they cannot.
            static_cast<void>(::fchown(file_, ::geteuid() == 0 ? like.st_uid : stays, like.st_gid) == 0);
            static_cast<void>(::fchmod(file_, mode));
            return 0;
        }
        place_lock_ = F_WRLCK;
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | flags, mode);
        if (file_ < 0) {
            place_lock_ = F_RDLCK;
            file_ = ::open(name.c_str(), O_RDONLY | flags);
        }
        return file_ < 0 ? errno : 0;
    }
#endif

#if defined(F_OFD_SETLK)
    [[noreturn]] static void throw_cannot_open(int code) {
        const bool is_forbidden = code == EACCES || code == EPERM || code == EROFS;
        throw error(
            is_forbidden ? error_kind::read_only : error_kind::io,
            "sqlite: begin: the file in which writers queue, named as the database with -turn behind it, cannot "
            "be opened (errno " +
                std::to_string(code) + "); give it the mode and owner of the database, or delete it");
    }
    /// A place others have taken, of `many` from `from` on (0: all); 0 if there is none.
    [[nodiscard]] std::int64_t first_taken(std::int64_t from, std::int64_t many) const noexcept {
        auto asked = range(F_WRLCK, from, many);
        return ::fcntl(file_, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK ? asked.l_start : 0;
    }
    bool lock(short how, std::int64_t place) const noexcept { // NOLINT(google-runtime-int): flock's own
        auto wanted = range(how, place, 1);
        return ::fcntl(file_, F_OFD_SETLK, &wanted) == 0;
    }
    [[nodiscard]] static struct flock range(short how, std::int64_t from, std::int64_t many) noexcept { // NOLINT
        struct flock out {};
        out.l_type = how;
        out.l_whence = SEEK_SET;
        out.l_start = from;
        out.l_len = many;
        return out;
    }
#endif

    int file_ = -1;
#if defined(F_OFD_SETLK)
    short place_lock_ = F_WRLCK; // NOLINT(google-runtime-int): flock's own
#endif
    std::int64_t place_ = 0; ///< 0: none
    bool is_approaching_ = false;
    clock::time_point turn_until_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/connection.hpp
// One connection with its prepared statements: opened, configured and closed by the store, or the application's own,
// which is neither configured nor closed.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// How long to wait for a lock, in short sleeps of uneven length: SQLite's own handler sleeps ever longer, so that who
/// has waited longest comes last. Here whoever is next looks again within half a millisecond, and all others now and
/// then: the one that is next may have been stopped in its sleep.
class patience {
  public:
    patience(std::chrono::milliseconds limit, turnstile& queue) noexcept : limit_(limit), queue_(queue) {}

    using clock = std::chrono::steady_clock;

    /// The waits that follow have begun at this time; none: each begins with its first look.
    void count_from(std::optional<clock::time_point> start) noexcept { start_ = start; }

    /// Whether to look again, after a sleep; `looks` is how often that was done for this lock.
    bool wait(int looks) noexcept {
        auto now = clock::now();
        if (looks == 0) {
            since_ = start_.value_or(now);
            queue_.line_up();
        }
        if (now - since_ >= limit_) {
            return false;
        }
        const auto look_by = std::min(now + now_and_then, since_ + limit_);
        do {
            sleep();
            now = clock::now();
        } while (!queue_.is_next() && now < look_by);
        return true;
    }

  private:
    static constexpr std::chrono::milliseconds now_and_then{50};

    void sleep() noexcept {
        constexpr std::uint64_t shortest = 50;
        constexpr std::uint64_t spread = 350;
        noise_ = vouch::detail::mix(noise_ + 0x9e3779b97f4a7c15U);
        std::this_thread::sleep_for(std::chrono::microseconds{static_cast<std::int64_t>(shortest + noise_ % spread)});
    }

    std::chrono::milliseconds limit_;
    turnstile& queue_;
    std::optional<clock::time_point> start_{};
    clock::time_point since_{};
    std::uint64_t noise_ = std::hash<std::thread::id>{}(std::this_thread::get_id());
};

/// SQLite below 3.35 has no RETURNING; one built without threads cannot be used by several.
inline void check_library() {
    constexpr int oldest = 3'035'000;
    if (sqlite3_libversion_number() < oldest || sqlite3_threadsafe() == 0) {
        throw error(error_kind::unsupported,
                    std::string("sqlite: needs SQLite 3.35 or newer, built for threads; this is ") +
                        sqlite3_libversion() + (sqlite3_threadsafe() == 0 ? ", built without" : ""));
    }
}

struct closer {
    bool is_ours = false;
    void operator()(sqlite3* db) const noexcept {
        if (is_ours) {
            sqlite3_close_v2(db);
        }
    }
};

/// Of a transaction: open, or ended in a way that is known or not.
enum class standing : std::uint8_t { open, rolled_back, committed, ended };

class connection {
  public:
    enum class role : std::uint8_t { writer, reader };

    /// Opens and configures a connection of our own.
    connection(const std::string& path, role as, const options& how)
        : prefix_(how.prefix), patience_(how.busy_limit, turnstile_) {
        check_library();
        validate_prefix(prefix_);
        if (path.find('\0') != std::string::npos) {
            throw error(error_kind::invalid_argument, "sqlite: the path contains a NUL byte");
        }
        if (!how.vfs.empty() && sqlite3_vfs_find(how.vfs.c_str()) == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: options: vfs names none that is registered");
        }
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX; // used by one thread at a time
        if (as == role::writer && how.create) {
            flags |= SQLITE_OPEN_CREATE;
        }
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, flags, how.vfs.empty() ? nullptr : how.vfs.c_str());
        db_ = {opened, closer{true}};
        if (rc != SQLITE_OK) {
            throw error_of(opened == nullptr ? rc : sqlite3_extended_errcode(opened), "open");
        }
        sqlite3_extended_result_codes(opened, 1);
        // Before anything else: even the switch to WAL meets locks of other processes.
        sqlite3_busy_handler(
            opened, [](void* self, int looks) { return static_cast<patience*>(self)->wait(looks) ? 1 : 0; },
            &patience_);
        configure(as, how);
        watch_endings();
        prepare_control();
    }

    /// Uses the application's connection.
    connection(sqlite3* db, const options& how)
        : prefix_(how.prefix), patience_(how.busy_limit, turnstile_), db_(db, closer{false}) {
        check_library();
        validate_prefix(prefix_);
        if (db == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: the connection is null");
        }
        prepare_control();
    }

    [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }
    [[nodiscard]] bool is_owned() const noexcept { return db_.get_deleter().is_ours; }
    [[nodiscard]] bool in_transaction() const noexcept { return sqlite3_get_autocommit(handle()) == 0; }
    [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

    /// How the transaction stands that `begin` opened. Statements of the application's on the same connection may have
    /// ended it, by ROLLBACK or COMMIT, or by an error that makes SQLite roll back. How, is seen on our own connections
    /// only.
    [[nodiscard]] standing stands() const noexcept {
        return ended_ != standing::open ? ended_ : in_transaction() ? standing::open : standing::ended;
    }

    /// Whether the file is no longer at its path: deleted, moved or replaced. SQLite itself would go on writing into
    /// it.
    [[nodiscard]] bool has_moved() const noexcept {
        int moved = 0;
        const int rc = sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        return rc == SQLITE_OK && moved != 0;
    }

    /// Where the last purge of these two shelves stopped because it had looked at enough.
    [[nodiscard]] shelf_place& purged_until(std::int64_t succeeded, std::int64_t dead) {
        return purged_until_[{succeeded, dead}];
    }

    /// Whether it was opened when the file could not be written.
    [[nodiscard]] bool is_read_only() const noexcept { return sqlite3_db_readonly(handle(), "main") == 1; }

    /// Prepared when first asked for.
    [[nodiscard]] const statement& prepared(sql which) {
        auto& kept = statements_[static_cast<std::size_t>(which)];
        if (kept.handle() == nullptr) {
            kept = statement(handle(), text_of(which, prefix_));
        }
        return kept;
    }

    /// Ends a transaction, if one is open, without needing memory. Says whether none is open any more.
    bool roll_back() noexcept {
        if (in_transaction()) {
            const run ending(statements_[static_cast<std::size_t>(sql::roll_back)]);
            sqlite3_step(statements_[static_cast<std::size_t>(sql::roll_back)].handle());
        }
        return !in_transaction();
    }

    /// Opens a writing transaction, after those of other processes that came before. `since` is when the wait for it
    /// began.
    void begin(patience::clock::time_point since) {
        struct approach {
            explicit approach(turnstile& which) : of(which) { of.approach(); }
            approach(const approach&) = delete;
            approach& operator=(const approach&) = delete;
            ~approach() { of.leave(has_lock); }
            turnstile& of;
            bool has_lock = false;
        };
        struct counting {
            counting(patience& which, patience::clock::time_point since) noexcept : of(which) { of.count_from(since); }
            counting(const counting&) = delete;
            counting& operator=(const counting&) = delete;
            ~counting() { of.count_from(std::nullopt); }
            patience& of;
        };
        find_turnstile();
        approach mine(turnstile_);
        const counting from(patience_, since);
        if (!turnstile_.is_next()) {
            patience_.wait(0);
        }
        execute_patiently(sql::begin);
        ended_ = standing::open;
        mine.has_lock = true;
    }

    /// What commits wait for from now on, on a connection of our own.
    void wait_for_disk(synchronous how) {
        if (is_owned()) {
            const bool full = how == synchronous::full;
            detail::execute(handle(), full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "configure");
        }
    }

    /// Runs a statement that has no parameters and no rows.
    void execute(sql which) { run(prepared(which)).step(); }

    /// As `execute`, and waits while somebody else has the lock. Only for statements that may be repeated after BUSY:
    /// the busy handler of an application's connection may have given up at once.
    void execute_patiently(sql which) {
        for (int looks = 0;; ++looks) {
            try {
                return execute(which);
            } catch (const error& e) {
                if ((e.code() & 0xff) != SQLITE_BUSY || is_owned() || !patience_.wait(looks)) {
                    throw;
                }
            }
        }
    }

  private:
    void configure(role as, const options& how) {
        if (as == role::reader) {
            detail::execute(handle(), "PRAGMA query_only = 1", "configure");
            return;
        }
        // The switch changes the file, and a file that is refused stays as it is.
        if (how.create) {
            expect_utf8(handle());
            refuse_newer(stored_version(handle(), prefix_), migrations.size());
        } else {
            expect_schema(handle(), prefix_);
        }
        const statement wal(handle(), "PRAGMA journal_mode = WAL");
        run switching(wal);
        if (!switching.step() || switching.bytes(0) != "wal") {
            throw error(error_kind::unsupported,
                        "sqlite: the database cannot use a write-ahead log; it must be a file, on a local disk");
        }
        wait_for_disk(how.synchronous);
        // What a long reader made the log grow to is given back when the reader has gone.
        detail::execute(handle(), "PRAGMA journal_size_limit = 8388608", "configure");
    }

    void watch_endings() noexcept {
        sqlite3_commit_hook(
            handle(),
            [](void* self) {
                static_cast<connection*>(self)->ended_ = standing::committed;
                return 0;
            },
            this);
        sqlite3_rollback_hook(
            handle(), [](void* self) { static_cast<connection*>(self)->ended_ = standing::rolled_back; }, this);
    }

    /// Beside a file of the system's own; what another VFS has at its path, nobody knows.
    void find_turnstile() {
        sqlite3_vfs* vfs = nullptr;
        if (has_looked_for_turnstile_ || is_read_only()) {
            return;
        }
        if (sqlite3_file_control(handle(), "main", SQLITE_FCNTL_VFS_POINTER, &vfs) == SQLITE_OK && vfs != nullptr &&
            std::string_view(vfs->zName).starts_with("unix")) {
            turnstile_ = turnstile(sqlite3_db_filename(handle(), "main"));
        }
        has_looked_for_turnstile_ = true;
    }

    /// What ends a transaction must not need memory to be prepared.
    void prepare_control() {
        for (const auto which : {sql::begin, sql::commit, sql::roll_back}) {
            std::ignore = prepared(which);
        }
    }

    std::string prefix_;
    turnstile turnstile_{};
    bool has_looked_for_turnstile_ = false;
    standing ended_ = standing::open;
    std::map<std::pair<std::int64_t, std::int64_t>, shelf_place> purged_until_{};
    patience patience_; // outlives the connection, which calls it
    std::unique_ptr<sqlite3, closer> db_{};
    std::array<statement, detail::statements.size()> statements_{}; // finalised before the connection closes
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/row.hpp
// How an entry is written in columns. Lists are blobs: a trail is its ids one after another, headers are names and
// values each behind its length.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

[[nodiscard]] inline std::string encode(const id_list& trail) {
    std::string out;
    out.reserve(trail.size() * 16);
    for (const auto& one : trail) {
        const auto bytes = one.bytes();
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
}

inline void decode(std::string_view from, id_list& to) {
    std::array<std::uint8_t, 16> bytes{};
    if (from.size() % bytes.size() != 0) {
        throw error(error_kind::corrupt, "sqlite: a stored trail is no list of ids");
    }
    to.clear();
    for (; !from.empty(); from.remove_prefix(bytes.size())) {
        std::memcpy(bytes.data(), from.data(), bytes.size());
        to.push_back(id::from_bytes(bytes));
    }
}

/// Four bytes of length, least significant first, and the text.
inline void encode(std::string_view text, std::string& to) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
        to.push_back(static_cast<char>((text.size() >> shift) & 0xffU));
    }
    to.append(text);
}

[[nodiscard]] inline std::string encode(const header_list& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        encode(name, out);
        encode(value, out);
    }
    return out;
}

/// Takes one text off the front.
[[nodiscard]] inline std::string decode_text(std::string_view& from) {
    constexpr std::size_t length_bytes = 4;
    std::size_t size = 0;
    for (std::size_t i = 0; i < length_bytes && i < from.size(); ++i) {
        size |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
    }
    if (from.size() < length_bytes || size > from.size() - length_bytes) {
        throw error(error_kind::corrupt, "sqlite: stored headers are no list of names and values");
    }
    std::string text(from.substr(length_bytes, size));
    from.remove_prefix(length_bytes + size);
    return text;
}

inline void decode(std::string_view from, header_list& to) {
    to.clear();
    while (!from.empty()) {
        auto name = decode_text(from);
        to.emplace_back(std::move(name), decode_text(from));
    }
}

[[nodiscard]] inline std::string_view bytes_or_none(const run& row, int column) {
    return row.is_null(column) ? std::string_view{} : row.blob_at(column);
}

/// Throws `corrupt` for a life that no verb can have led to, or that the next one could not count on.
inline void expect_sound(const life& l) {
    const bool is_held = l.lease_until && l.attempts > 0 && l.epoch > 0;
    run::expect(l.state != state::claimed || is_held, "sqlite: a claimed entry has no lease, attempt or epoch");
    run::expect(l.attempts < UINT32_MAX && l.lapses < UINT32_MAX && l.failures < UINT32_MAX && l.epoch < INT64_MAX,
                "sqlite: an entry's counter stands at its end");
}

/// Reads `sql.hpp`'s entry columns and the payload behind them, if it was asked for.
inline void read_entry(const run& row, entry& e, bool has_payload = true) {
    row.read_all(e.sequence, e.id, e.queue, e.topic, or_none{e.key}, or_none{e.group}, or_none{e.lane},
                 or_none{e.parent}, or_none{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
                 e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.lease_until, e.woken, e.worker,
                 e.last_error, e.updated_at, e.last_attempt_at);
    constexpr int lists = 25;
    decode(bytes_or_none(row, lists), e.trail);
    decode(bytes_or_none(row, lists + 1), e.headers);
    e.progress = bytes_or_none(row, lists + 2);
    if (!row.is_null(lists + 3)) {
        row.read(lists + 3, blob_into{e.result.emplace()});
    }
    if (has_payload) {
        row.read(lists + 4, blob_into{e.payload}); // NULL: it lies apart, and is not there
    }
    run::expect(e.sequence > 0, "sqlite: an entry's sequence is 0");
    expect_sound(e);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/session.hpp
// What is looked up by all that write, and what a transaction remembers of it from call to call.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `corrupt` if a queue of that number could not have shelves.
[[nodiscard]] inline queue_number expect_number(std::int64_t number) {
    run::expect(number > 0 && number < INT64_MAX / 8, "sqlite: a queue's number is out of its range");
    return {number};
}

/// The queue's number, if anything was ever enqueued there.
[[nodiscard]] inline std::optional<queue_number> find_queue(connection& on, std::string_view name) {
    run row(on.prepared(sql::queue));
    if (!row.bind(name).step()) {
        return std::nullopt;
    }
    return expect_number(row.integer(0));
}

/// 0 if there is no such entry.
[[nodiscard]] inline std::uint64_t find_sequence(connection& on, const id& wanted) {
    run row(on.prepared(sql::sequence_of));
    std::uint64_t found = 0;
    if (row.bind(wanted).step()) {
        row.read(0, found);
    }
    return found;
}

/// The highest sequence ever used.
[[nodiscard]] inline std::uint64_t find_last_sequence(connection& on) {
    run row(on.prepared(sql::last_sequence));
    std::uint64_t last = 0;
    row.step();
    row.read(0, last);
    run::expect(last < INT64_MAX / 2, "sqlite: the highest sequence is out of its range");
    return last;
}

class session {
  public:
    std::uint64_t last_sequence = 0;    ///< 0: not looked up yet
    std::vector<std::string> stirred{}; ///< queues in which work may have come nearer

    void stir(const std::string& queue) {
        if (stirred.empty() || stirred.back() != queue) {
            stirred.push_back(queue);
        }
    }

    [[nodiscard]] std::optional<queue_number> find(connection& on, const std::string& queue) {
        if (known_ && known_->first == queue) {
            return known_->second;
        }
        const auto found = find_queue(on, queue);
        if (found) {
            known_.emplace(queue, *found);
        }
        return found;
    }

    /// As `find`, and gives the queue a number if it has none.
    [[nodiscard]] queue_number number(connection& on, const std::string& queue) {
        if (const auto found = find(on, queue)) {
            return *found;
        }
        run(on.prepared(sql::add_queue)).bind(queue).finish();
        const auto added = expect_number(sqlite3_last_insert_rowid(on.handle()));
        known_.emplace(queue, added);
        return added;
    }

    /// Between calls: the connection is the application's, too. It may roll back to a savepoint, which takes back what
    /// gave a queue its number, or join the transaction and use sequences of its own.
    void forget_stored() noexcept {
        last_sequence = 0;
        known_.reset();
    }

  private:
    std::optional<std::pair<std::string, queue_number>> known_{}; // the last one asked for
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/enqueuing.hpp
// Enqueue, inside a transaction. Drafts that concern no other entry are inserted several at a time. Arguments are valid
// when they come here.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class enqueuing {
  public:
    enqueuing(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> receipts;
        receipts.reserve(drafts.size());
        while (!drafts.empty()) {
            const auto next = drafts.first(std::min(drafts.size(), rows_at_once));
            if (next.size() == rows_at_once && std::all_of(next.begin(), next.end(), is_plain)) {
                insert_many(next, now, receipts);
                drafts = drafts.subspan(rows_at_once);
            } else {
                receipts.push_back(enqueue(drafts.front(), now));
                drafts = drafts.subspan(1);
            }
        }
        return receipts;
    }

  private:
    static_assert(rows_at_once <= run::ids_max);

    /// What a fresh entry has from its predecessor, or from its draft.
    struct heritage {
        std::string_view key{};
        std::string_view group{};
        std::string_view lane{};
        std::uint32_t generation = 1;
        std::optional<std::uint64_t> replaces{};
    };

    /// The parts of a row that are made for it; they must live until it is inserted.
    struct made {
        std::string trail{};
        std::string headers{};
    };

    /// Whether a row of its own is all there is to the entry.
    [[nodiscard]] static bool is_plain(const draft& d) noexcept {
        return d.key.empty() && d.group.empty() && d.lane.empty() && d.parent.is_nil() && d.predecessor.is_nil() &&
               !d.result && d.payload.size() <= payload_in_row_max;
    }

    void insert_many(std::span<const draft> drafts, time_point now, std::vector<receipt>& receipts) {
        const auto first = last_sequence() + 1;
        std::array<made, rows_at_once> parts;
        {
            run row(on_.prepared(sql::insert_many));
            row.bind(now);
            for (std::size_t i = 0; i < rows_at_once; ++i) {
                const auto& d = drafts[i];
                bind_row(row, i, d, parts[i], first + i, {.number = session_.number(on_, d.queue), .gate = due(d, now)},
                         now);
            }
            const bool all = static_cast<std::size_t>(row.finish()) == rows_at_once;
            for (std::size_t i = 0; i < rows_at_once; ++i) {
                // If some are missing, those that are there have the sequences we gave them.
                const bool is_there = all || find_sequence(on_, drafts[i].id) == first + i;
                receipts.push_back({is_there ? receipt::kind::inserted : receipt::kind::duplicate, drafts[i].id});
                if (is_there) {
                    session_.stir(drafts[i].queue);
                }
            }
        }
        session_.last_sequence = first + rows_at_once - 1;
    }

    [[nodiscard]] receipt enqueue(const draft& d, time_point now) {
        if ((!d.key.empty() || !d.predecessor.is_nil()) && find_sequence(on_, d.id) != 0) {
            return {receipt::kind::duplicate, d.id};
        }
        if (!d.predecessor.is_nil()) {
            return enqueue_successor(d, now);
        }
        if (!d.key.empty()) {
            const auto queue = session_.number(on_, d.queue);
            run newest(on_.prepared(sql::newest_of_key));
            if (newest.bind(queue.value, d.key).step()) {
                receipt answer{receipt::kind::duplicate, {}};
                newest.read(0, answer.id);
                return answer;
            }
        }
        return insert(d, {.key = d.key, .group = d.group, .lane = d.lane}, now);
    }

    [[nodiscard]] receipt enqueue_successor(const draft& d, time_point now) {
        std::uint64_t sequence = 0;
        state was{};
        std::int64_t queue = 0;
        std::string key;
        std::string group;
        std::string lane;
        std::uint32_t generation = 0;
        id successor;
        {
            run row(on_.prepared(sql::predecessor));
            if (!row.bind(d.predecessor).step()) {
                return {};
            }
            row.read_all(sequence, was, queue, or_none{key}, or_none{group}, or_none{lane}, generation,
                         or_none{successor});
            run::expect(generation < UINT32_MAX, "sqlite: an entry's generation stands at its end");
        }
        const auto wanted = session_.find(on_, d.queue);
        if (was != state::dead || !wanted || queue != wanted->value) {
            return {};
        }
        if (!successor.is_nil()) {
            return {receipt::kind::duplicate, successor};
        }
        return insert(d, {.key = key, .group = group, .lane = lane, .generation = generation + 1, .replaces = sequence},
                      now);
    }

    [[nodiscard]] receipt insert(const draft& d, const heritage& h, time_point now) {
        const auto queue = session_.number(on_, d.queue);
        const auto sequence = last_sequence() + 1;
        const bool is_blocked =
            !h.lane.empty() && run(on_.prepared(sql::lane_is_taken)).bind(queue.value, h.lane).step();
        const bool is_tied = !h.group.empty() || !h.lane.empty() || !d.parent.is_nil();
        const auto gate = d.result ? std::optional{now} : is_blocked ? std::nullopt : std::optional{due(d, now)};
        {
            made parts;
            run row(on_.prepared(sql::insert));
            row.bind(now);
            bind_row(row, 0, d, parts, sequence, {.number = queue, .gate = gate, .is_tied = is_tied}, now);
            if (row.finish() == 0) {
                return {receipt::kind::duplicate, d.id};
            }
        }
        session_.last_sequence = sequence;
        insert_apart(d, h, queue, sequence);
        if (gate && !d.result) {
            session_.stir(d.queue);
        }
        return {receipt::kind::inserted, d.id};
    }

    /// What does not lie in the row.
    void insert_apart(const draft& d, const heritage& h, queue_number queue, std::uint64_t sequence) {
        if (d.payload.size() > payload_in_row_max) {
            run(on_.prepared(sql::insert_payload)).bind(sequence, blob{d.payload}).finish();
        }
        if (!h.key.empty() || !h.group.empty() || !h.lane.empty() || !d.parent.is_nil() || h.replaces) {
            run(on_.prepared(sql::insert_relations))
                .bind(sequence, queue.value, optional_text{h.key}, h.generation, optional_text{h.group},
                      optional_text{h.lane}, optional_id{d.parent}, optional_id{d.predecessor}, h.replaces)
                .finish();
        }
        if (!h.group.empty()) {
            // The successor counts in the place of the dead one.
            run(on_.prepared(sql::group_enter)).bind(h.group, !h.replaces.has_value()).finish();
        }
    }

    /// Where a new row stands.
    struct standing {
        queue_number number{};
        std::optional<time_point> gate{};
        bool is_tied = false;
    };

    static void bind_row(run& to, std::size_t index, const draft& d, made& parts, std::uint64_t sequence,
                         const standing& at, time_point now) {
        parts.trail = encode(d.trail);
        parts.headers = encode(d.headers);
        const auto state = d.result ? state::succeeded : state::pending;
        const auto payload = d.payload.size() > payload_in_row_max ? std::nullopt : std::optional{blob{d.payload}};
        const auto result = d.result ? std::optional{blob{*d.result}} : std::nullopt;
        to.bind_from(static_cast<int>(2 + index * new_row_parameters), sequence, at.number.shelf(state), at.gate, state,
                     due(d, now), d.id, d.topic, at.is_tied, d.attempts_max, d.expires_at, optional_blob{parts.trail},
                     optional_blob{parts.headers}, optional_blob{d.progress}, result, payload);
    }

    [[nodiscard]] static time_point due(const draft& d, time_point now) noexcept { return d.due_at.value_or(now); }

    [[nodiscard]] std::uint64_t last_sequence() {
        if (session_.last_sequence == 0) {
            session_.last_sequence = find_last_sequence(on_);
        }
        return session_.last_sequence;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/watch.hpp
// Counts the commits of others: of other processes, and of the application on connections of its own. SQLite tells a
// connection that another one has committed, but not which one. So a commit of this process is passed over: nothing is
// counted while it is carried out, and what changed in that time is its own, unless the connection that commits finds
// that another one has committed as well.
//
// Shared by all stores of one file; safe for several threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class watch {
  public:
    /// Grows when others have committed since the last look. Opens a connection when first asked.
    [[nodiscard]] std::uint64_t look(const std::string& path, const options& how) {
        const std::lock_guard lock(mutex_);
        if (is_paused_) {
            return count_;
        }
        if (!on_ || on_->has_moved()) {
            lose_track();
            on_ = std::make_unique<connection>(path, connection::role::reader, how);
            sqlite3_busy_handler(on_->handle(), nullptr, nullptr); // it may be the one that looks that has the lock
        }
        carefully([&] { count_changes(); });
        return count_;
    }

    /// Closes its connection.
    void forget() noexcept {
        const std::lock_guard lock(mutex_);
        on_.reset();
    }

    /// While a commit of this process is carried out. One at a time.
    class pause {
      public:
        /// Requires that the writer has the write lock, so that none of the others commits.
        pause(watch& of, connection& writer) noexcept : of_(of), writer_(writer) {
            const std::lock_guard lock(of_.mutex_);
            of_.is_paused_ = true;
            of_.carefully([&] {
                of_.count_changes();
                writer_was_ = version_of(writer_);
            });
        }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause() {
            const std::lock_guard lock(of_.mutex_);
            of_.is_paused_ = false;
            of_.carefully([&] {
                of_.version_ = version_of(*of_.on_);
                of_.count_ += version_of(writer_) == writer_was_ ? 0U : 1U; // others came right behind
            });
        }

      private:
        watch& of_;
        connection& writer_;
        std::int64_t writer_was_ = 0;
    };

  private:
    /// Changes whenever another connection has committed.
    [[nodiscard]] static std::int64_t version_of(connection& on) {
        run row(on.prepared(sql::data_version));
        row.step();
        return row.integer(0);
    }

    void count_changes() {
        if (const auto version = version_of(*on_); version != version_) {
            version_ = version;
            count_ += 1;
        }
    }

    /// What fails in looking is no failure of the commit: then others are taken to have committed.
    template <class Look>
    void carefully(const Look& look) noexcept {
        try {
            if (on_) {
                look();
            }
        } catch (...) {
            lose_track();
        }
    }

    void lose_track() noexcept {
        on_.reset();
        count_ += 1;
    }

    std::mutex mutex_{};
    std::unique_ptr<connection> on_{}; // none until somebody looks
    std::int64_t version_ = 0;
    std::uint64_t count_ = 0;
    bool is_paused_ = false;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/hub.hpp
// What all stores of one file in this process share: whose turn it is to write, who has joined a transaction of the
// application's, and who is to be woken. Only one of our transactions per process asks SQLite for the write lock, so
// threads queue up here, in the order of their coming, instead of polling the file against each other.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class hub {
  public:
    /// The one of the file this connection has open.
    [[nodiscard]] static std::shared_ptr<hub> of(sqlite3* db) {
        const char* const name = sqlite3_db_filename(db, "main");
        if (name == nullptr || *name == '\0') {
            throw error(error_kind::unsupported,
                        "sqlite: a database without a file cannot be shared; use a path, or vouch::memory::store");
        }
        struct known {
            std::weak_ptr<hub> at{};
            std::shared_ptr<std::atomic<bool>> doubt = std::make_shared<std::atomic<bool>>(false); // outlives the hub
        };
        static std::mutex mutex;
        static std::map<std::string, known, std::less<>> hubs;
        const std::lock_guard lock(mutex);
        std::erase_if(hubs, [](const auto& one) { return one.second.at.expired() && !*one.second.doubt; });
        auto& mine = hubs[name];
        auto found = mine.at.lock();
        if (!found) {
            found = std::make_shared<hub>(mine.doubt);
            mine.at = found;
        }
        return found;
    }
    explicit hub(std::shared_ptr<std::atomic<bool>> doubt) noexcept : doubt_(std::move(doubt)) {}

    // Turns.

    /// Waits for the turn to write, at most `limit`. On a thread that would wait for itself it says `misuse`.
    void enter(std::chrono::milliseconds limit) {
        std::unique_lock lock(mutex_);
        const auto me = std::this_thread::get_id();
        refuse_to_wait_for(me);
        const auto mine = next_place_++;
        waiting_.push_back(mine);
        const bool has_turn =
            turn_over_.wait_for(lock, limit, [&] { return !is_writing_ && waiting_.front() == mine; });
        std::erase(waiting_, mine);
        if (!has_turn) {
            turn_over_.notify_all(); // the one behind may be the first now
            throw error(error_kind::busy, "sqlite: begin: the transactions of this process that came before did not "
                                          "end within busy_limit, " +
                                              std::to_string(limit.count()) +
                                              " ms; one that is this thread's own, or waits for it, never will");
        }
        is_writing_ = true;
        writer_ = me;
    }

    /// The transaction that has its turn is open on this connection.
    void write_on(sqlite3* db) noexcept {
        const std::lock_guard lock(mutex_);
        writes_on_ = db;
    }

    /// The transaction that has its turn is in use by this thread now.
    void use() {
        const std::lock_guard lock(mutex_);
        writer_ = std::this_thread::get_id();
    }

    /// The transaction that has its turn was moved: whose it is shows when it is used next.
    void hand_over() noexcept {
        const std::lock_guard lock(mutex_);
        writer_ = {};
    }

    /// A joined writer has brought work nearer in these queues. If it is part of the transaction that has its turn,
    /// they are counted when that commits; else the watch on the file sees the commit.
    void stir(sqlite3* db, const std::vector<std::string>& queues) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            stirred_by_joined_.insert(stirred_by_joined_.end(), queues.begin(), queues.end());
        }
    }

    /// Ends the turn. `stirred` are the queues in which work came nearer.
    void leave(const std::vector<std::string>& stirred, bool has_committed = false) noexcept {
        bool wakes = !stirred.empty();
        {
            const std::lock_guard lock(mutex_);
            is_writing_ = false;
            writes_on_ = nullptr;
            for (const auto& queue : stirred) {
                count_wake(queue);
            }
            for (const auto& queue : stirred_by_joined_) {
                if (has_committed) {
                    count_wake(queue);
                    wakes = true;
                }
            }
            stirred_by_joined_.clear();
        }
        turn_over_.notify_all();
        if (wakes) {
            stirred_.notify_all();
        }
    }

    // Doubt.

    /// Whether a commit of this process is in doubt: its frames may be in the log, behind the last that readers see. A
    /// recovery would find them, so until they are overwritten no read may answer what is there.
    [[nodiscard]] bool is_in_doubt() const noexcept { return *doubt_; }
    void set_doubt(bool is_in_doubt) noexcept { *doubt_ = is_in_doubt; }

    // Joined transactions.

    void join(const void* who, sqlite3* db) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            return; // a part of the transaction that has its turn
        }
        const auto known = std::find_if(joined_.begin(), joined_.end(), [&](const auto& j) { return j.who == who; });
        auto& j = known == joined_.end() ? joined_.emplace_back() : *known;
        j = {who, db, std::this_thread::get_id()};
    }
    void part(const void* who) noexcept {
        const std::lock_guard lock(mutex_);
        std::erase_if(joined_, [&](const auto& j) { return j.who == who; });
    }

    // Wakes.

    /// For commits of others.
    [[nodiscard]] detail::watch& watch() noexcept { return watch_; }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const std::lock_guard lock(mutex_);
        return count_of(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested.
    void wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
        std::unique_lock lock(mutex_);
        stirred_.wait_for(lock, std::move(stop), at_most, [&] { return count_of(queue) != seen; });
    }

  private:
    struct joining {
        const void* who = nullptr;
        sqlite3* db = nullptr;
        std::thread::id thread{};
    };

    /// A thread that has a transaction open would wait for itself.
    void refuse_to_wait_for(std::thread::id me) const {
        if (is_writing_ && writer_ == me) {
            throw error(error_kind::misuse, "sqlite: begin while this thread has a transaction open would wait for "
                                            "itself; end that one first, or write through it");
        }
        for (const auto& j : joined_) {
            if (j.thread == me && j.db != writes_on_ && sqlite3_get_autocommit(j.db) == 0) {
                throw error(error_kind::misuse, "sqlite: begin while this thread has a joined transaction open on the "
                                                "same file would wait for it; commit that one first");
            }
        }
    }

    [[nodiscard]] std::uint64_t count_of(std::string_view queue) const {
        const auto found = wakes_.find(queue);
        return found == wakes_.end() ? uncounted_ : found->second + uncounted_;
    }

    void count_wake(const std::string& queue) noexcept {
        try {
            wakes_[queue] += 1;
        } catch (...) {
            uncounted_ += 1; // no memory for its name: everybody is woken
        }
    }

    detail::watch watch_{};
    std::mutex mutex_;
    std::condition_variable turn_over_;
    std::condition_variable_any stirred_;
    std::vector<std::uint64_t> waiting_{}; // places in the queue, the first in front
    std::uint64_t next_place_ = 0;
    bool is_writing_ = false;
    std::thread::id writer_{}; // the thread that used the transaction last; none after a move
    sqlite3* writes_on_ = nullptr;
    std::shared_ptr<std::atomic<bool>> doubt_;
    std::vector<joining> joined_{};
    std::vector<std::string> stirred_by_joined_{}; // in the transaction that has its turn
    std::map<std::string, std::uint64_t, std::less<>> wakes_{};
    std::uint64_t uncounted_ = 0;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/file.hpp
// What all handles and transactions of one store share: the one connection that writes and the ones that read.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A statement of the application's has ended our transaction on its connection. An operation says so without doubt: it
/// has done nothing itself. A commit is in doubt unless all is known to be gone.
[[nodiscard]] inline error ended_by_application(standing how, bool is_commit) {
    const std::string who = "sqlite: a statement of the application's on the transaction's connection has ";
    const error::details more{.in_doubt = is_commit && how != standing::rolled_back};
    switch (how) {
    case standing::rolled_back: return {error_kind::misuse, who + "rolled back all of it; begin again", more};
    case standing::committed: return {error_kind::misuse, who + "committed what it had done so far", more};
    default: return {error_kind::misuse, who + "ended it; what it had done so far is stored or gone", more};
    }
}

class file {
  public:
    file(const std::string& path, options how) : options_(checked(std::move(how))) {
        patiently([&] {
            writer_.reset();
            writer_ = std::make_unique<connection>(path, connection::role::writer, options_);
            finish_opening();
        });
    }
    file(sqlite3* application, options how)
        : options_(checked(std::move(how))), is_application_(true),
          writer_(std::make_unique<connection>(application, options_)) {
        finish_opening();
    }

    [[nodiscard]] const options& how() const noexcept { return options_; }
    [[nodiscard]] detail::hub& hub() const noexcept { return *hub_; }
    [[nodiscard]] connection& writer() const noexcept { return *writer_; }

    // The writer's turn.

    void begin() {
        const auto since = patience::clock::now();
        hub_->enter(options_.busy_limit);
        try {
            expect_in_place();
            if (writer_->in_transaction()) {
                throw error(error_kind::misuse, "sqlite: the application has a transaction open on its connection; "
                                                "sqlite::joined writes inside it");
            }
            if (hub_->is_in_doubt()) {
                settle_doubt(since);
            }
            writer_->begin(since);
            hub_->write_on(writer_->handle());
        } catch (const error& e) {
            if (e.kind() == error_kind::read_only) {
                forget_connections(); // what they share says so, even when it is no longer true
            }
            give_up_turn();
            throw;
        } catch (...) {
            give_up_turn();
            throw;
        }
    }

    /// Ends the turn in any case. What it does not throw for is in the file that was at the path when COMMIT began.
    void commit(const std::vector<std::string>& stirred) {
        if (const auto how = writer_->stands(); how != standing::open) {
            roll_back();
            throw ended_by_application(how, true);
        }
        if (has_moved()) {
            roll_back();
            throw moved("commit: nothing was committed");
        }
        try {
            const watch::pause ours(hub_->watch(), *writer_);
            writer_->execute_patiently(sql::commit);
        } catch (const error& e) {
            // A commit that had no room never wrote its last frame, and one that was only busy is still open. After
            // anything else the frames may be on the disk, and whoever recovers the log may find them.
            const bool in_doubt = !writer_->in_transaction() && (e.code() & 0xff) != SQLITE_FULL;
            if (in_doubt) {
                hub_->set_doubt(true);
                try_to_settle_doubt();
            }
            roll_back();
            if (e.code() == 0) { // there was no memory to say more
                throw in_doubt ? out_of_memory_in_doubt : out_of_memory;
            }
            throw error_of(e.code(), "commit", in_doubt);
        } catch (...) {
            roll_back();
            throw;
        }
        hub_->leave(stirred, true);
    }

    void roll_back() noexcept {
        if (!writer_->roll_back() && writer_->is_owned()) {
            writer_.reset(); // closing rolls back what nothing else can; the next turn opens a fresh one
        }
        hub_->leave({});
    }

    // Readers: as many as read at the same time.

    [[nodiscard]] std::unique_ptr<connection> take_reader() {
        if (hub_->is_in_doubt()) {
            if (is_application_) { // its connection is not ours to use from any thread that reads
                throw error(error_kind::io, "sqlite: a commit is in doubt, and what is stored is not known; begin a "
                                            "transaction of the store, which settles it");
            }
            begin(); // which settles it
            roll_back();
        }
        for (;;) {
            std::unique_ptr<connection> taken;
            {
                const std::lock_guard lock(mutex_);
                if (idle_.empty()) {
                    break;
                }
                taken = std::move(idle_.back());
                idle_.pop_back();
            }
            if (!taken->has_moved()) {
                return taken;
            }
        }
        return std::make_unique<connection>(path_, connection::role::reader, options_);
    }

    void give_back(std::unique_ptr<connection> reader) noexcept {
        try {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(reader));
        } catch (...) { // closed instead of kept
        }
    }

    /// Grows when others have committed since the last look.
    [[nodiscard]] std::uint64_t look_for_commits() { return hub_->watch().look(path_, options_); }

  private:
    /// A turn that has not become a transaction. If one is left open after all, because not even ROLLBACK could run,
    /// only closing its connection ends it.
    void give_up_turn() noexcept {
        if (writer_ && writer_->is_owned() && writer_->in_transaction()) {
            writer_.reset();
        }
        hub_->leave({});
    }

    /// A commit of its own is written over the frames of the one in doubt, from the first of them on, and waits for the
    /// disk; so what readers see is what a recovery finds. For the one that has the turn, outside of a transaction.
    void settle_doubt(patience::clock::time_point since) {
        try {
            writer_->wait_for_disk(synchronous::full);
            writer_->begin(since);
            run(writer_->prepared(sql::settle_doubt)).finish();
            writer_->execute_patiently(sql::commit);
            writer_->wait_for_disk(options_.synchronous);
        } catch (const error& e) {
            writer_->roll_back();
            if (e.code() == 0) { // there was no memory to say more
                throw;
            }
            throw error_of(e.code(), "a commit is in doubt and cannot be settled yet");
        } catch (...) {
            writer_->roll_back();
            throw;
        }
        hub_->set_doubt(false);
    }

    void try_to_settle_doubt() noexcept {
        try {
            settle_doubt(patience::clock::now());
        } catch (...) { // it stays in doubt: the next transaction tries again
        }
    }

    /// Commits into a file that was deleted or replaced would be lost. Whatever is at its path now is opened instead,
    /// if it has our tables; nothing is created there. And what could not be written when it was opened may be by now.
    void expect_in_place() {
        if (writer_ && !writer_->is_owned()) {
            if (has_moved()) {
                throw moved("begin");
            }
            return;
        }
        if (writer_ && !has_moved() && !writer_->is_read_only()) {
            return;
        }
        forget_connections();
        auto how = options_;
        how.create = false;
        patiently([&] {
            auto opened = std::make_unique<connection>(path_, connection::role::writer, how);
            expect_schema(opened->handle(), options_.prefix);
            writer_ = std::move(opened);
        });
    }

    /// Opens, again and again while others have the file locked. Opening and the switch to a write-ahead log take locks
    /// for which SQLite does not ask the busy handler, because waiting inside them could be a deadlock.
    template <class Open>
    void patiently(const Open& open) const {
        using clock = std::chrono::steady_clock;
        for (const auto since = clock::now();;) {
            try {
                return open();
            } catch (const error& e) {
                if (e.kind() != error_kind::busy || clock::now() - since >= options_.busy_limit) {
                    throw;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }

    /// For the one that has the turn. A look is good for as long as a short transaction takes: a move right behind the
    /// last look before COMMIT could not be seen either.
    [[nodiscard]] bool has_moved() noexcept {
        constexpr std::chrono::microseconds good_for{20};
        const auto now = patience::clock::now();
        if (now - looked_at_ < good_for) {
            return false;
        }
        const bool is_gone = writer_->has_moved();
        looked_at_ = is_gone ? patience::clock::time_point{} : now;
        return is_gone;
    }

    [[nodiscard]] static error moved(std::string_view doing) {
        return {error_kind::io,
                "sqlite: " + std::string(doing) + ": the database file has been deleted, moved or replaced"};
    }

    /// All but those in use elsewhere and the application's. They share how the file and its index were opened.
    void forget_connections() noexcept {
        if (writer_ && writer_->is_owned()) {
            writer_.reset();
        }
        hub_->watch().forget();
        const std::lock_guard lock(mutex_);
        idle_.clear();
    }

    void finish_opening() {
        auto* const db = writer_->handle();
        hub_ = hub::of(db);
        path_ = sqlite3_db_filename(db, "main");
        if (options_.create) {
            sqlite::migrate(db, options_.prefix);
        } else {
            expect_schema(db, options_.prefix);
        }
    }

    options options_;
    std::string path_{};
    std::shared_ptr<detail::hub> hub_{};
    patience::clock::time_point looked_at_{}; // when the writer's file was last seen at its path
    const bool is_application_ = false;       // the writer is a connection of the application's
    std::unique_ptr<connection> writer_;      // used by the transaction that has the turn

    std::mutex mutex_{};
    std::vector<std::unique_ptr<connection>> idle_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/purging.hpp
// Purge: the newest generations that ended long enough ago, oldest first, each with the dead ones it replaced; none of
// them if a live entry still needs one.
//
// It looks at a bounded number of entries, in two parts: the oldest, and those behind the place where the last purge
// stopped. So any number of entries that are still needed costs a purge no more than its limit allows, and hides
// nothing for good. Of that place nothing is stored: a fresh connection begins with the oldest.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class purging {
  public:
    explicit purging(connection& on) noexcept : on_(on) {}

    [[nodiscard]] std::size_t purge(const purge_request& request) {
        const auto queue = find_queue(on_, request.queue);
        if (!queue || request.limit == 0) {
            return 0;
        }
        find(*queue, request);
        going_.resize(std::min(going_.size(), request.limit)); // the elder generations go first
        std::uint64_t highest = 0;
        for (const auto& g : going_) {
            remove(*queue, g);
            highest = std::max(highest, g.sequence);
        }
        if (highest > find_last_sequence(on_)) {
            run(on_.prepared(sql::raise_floor)).bind(highest).finish();
        }
        return going_.size();
    }

  private:
    struct generation {
        std::uint64_t sequence = 0;
        std::optional<std::uint64_t> replaces{};
        state ended{};
        std::string group{};
        bool has_relations = false;
        bool has_payload_apart = false;
        bool is_newest = false;
    };

    void find(queue_number queue, const purge_request& request) {
        constexpr std::int64_t none = -1;
        const auto shelf = [&](state s) { return !request.state || *request.state == s ? queue.shelf(s) : none; };
        const shelves where{shelf(state::succeeded), shelf(state::dead)};
        auto& until = on_.purged_until(where.succeeded, where.dead);
        auto stopped = look(where, {}, request);
        if (stopped && going_.size() >= request.limit) {
            return;
        }
        if (stopped) {
            stopped = look(where, std::max(*stopped, until), request);
        }
        until = stopped.value_or(shelf_place{});
    }

    struct shelves {
        std::int64_t succeeded = 0;
        std::int64_t dead = 0;
    };

    /// Looks at entries behind a place. Says where it stopped; nothing if it came to the end.
    [[nodiscard]] std::optional<shelf_place> look(const shelves& where, shelf_place at, const purge_request& request) {
        run row(on_.prepared(sql::purge_find));
        row.bind(where.succeeded, where.dead, request.before, at.gate, at.sequence);
        for (auto left = vouch::detail::purge_looks(request.limit); row.step(); --left) {
            bool has_successor = false;
            row.read_all(at.gate, at.sequence, has_successor);
            if (!has_successor) {
                add_generations(at.sequence);
            }
            if (left == 1 || going_.size() >= request.limit) {
                return at;
            }
        }
        return std::nullopt;
    }

    /// Adds the newest generation with its predecessors, eldest first; none of them if one is needed.
    void add_generations(std::uint64_t newest) {
        const auto first = static_cast<std::ptrdiff_t>(going_.size());
        std::optional<std::uint64_t> next = newest;
        while (next) {
            generation g{.sequence = *next, .is_newest = *next == newest};
            bool is_needed = false;
            run row(on_.prepared(sql::purge_generation));
            if (!row.bind(g.sequence).step()) {
                break; // purged before
            }
            row.read_all(g.replaces, g.ended, or_none{g.group}, g.has_relations, g.has_payload_apart, is_needed);
            run::expect(is_terminal(g.ended) && (!g.replaces || *g.replaces < g.sequence),
                        "sqlite: an entry to be purged has not ended, or replaces a later one");
            if (is_needed) {
                going_.resize(static_cast<std::size_t>(first));
                return;
            }
            next = g.replaces;
            going_.push_back(std::move(g));
        }
        std::reverse(going_.begin() + first, going_.end());
    }

    void remove(queue_number queue, const generation& g) {
        run(on_.prepared(sql::purge_entry)).bind(g.sequence).finish();
        if (g.ended == state::dead) {
            run(on_.prepared(sql::purge_dead)).bind(queue.value, g.sequence).finish();
        }
        if (g.has_payload_apart) {
            run(on_.prepared(sql::purge_payload)).bind(g.sequence).finish();
        }
        if (g.has_relations) {
            run(on_.prepared(sql::purge_relations)).bind(g.sequence).finish();
        }
        if (!g.group.empty()) {
            const bool was_unfinished = g.ended == state::dead && g.is_newest;
            run(on_.prepared(sql::group_leave)).bind(g.group, was_unfinished).finish();
            run(on_.prepared(sql::group_drop)).bind(g.group).finish();
        }
    }

    connection& on_;
    std::vector<generation> going_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/reading.hpp
// The reader's operations on one connection. Each sees one moment. Arguments are valid when they come here.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class reading {
  public:
    explicit reading(connection& on) noexcept : on_(on) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) {
        run row(on_.prepared(sql::find));
        std::optional<entry> found;
        if (row.bind(wanted).step()) {
            read_entry(row, found.emplace());
        }
        return found;
    }

    [[nodiscard]] std::vector<entry> list(const query& q) {
        switch (q.by) {
        case query::path::group: return list_by(sql::list_group, q, q.group);
        case query::path::parent: return list_by(sql::list_parent, q, q.parent);
        default: break;
        }
        const auto queue = find_queue(on_, q.queue);
        if (!queue) {
            return {};
        }
        switch (q.by) {
        case query::path::key: return list_by(sql::list_key, q, q.queue, queue->value, q.key);
        case query::path::dead: return list_dead(q, *queue);
        default: return list_shelves(q, *queue);
        }
    }

    [[nodiscard]] state_counts counts(std::string_view queue) {
        state_counts counts;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::counts));
            row.bind(number->first()).step();
            for (const auto s : all_states) {
                counts[s] = static_cast<std::size_t>(row.integer(static_cast<int>(s)));
            }
            constexpr int live = 5;
            run::expect(counts.total() - counts[state::succeeded] - counts[state::dead] ==
                            static_cast<std::size_t>(row.integer(live)),
                        "sqlite: an entry among the live ones is none");
        }
        return counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        std::optional<time_point> due;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::next_due));
            if (row.bind(number->shelf(state::pending)).step()) {
                row.read(0, due);
            }
        }
        return due;
    }

  private:
    template <class... Path>
    [[nodiscard]] std::vector<entry> list_by(sql which, const query& q, const auto& path, const Path&... more) {
        run row(on_.prepared(which));
        row.bind(path, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, more...);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_dead(const query& q, queue_number queue) {
        auto found = list_by(sql::list_dead, q, q.queue, queue.value);
        for (const auto& e : found) {
            run::expect(e.state == state::dead, "sqlite: an entry among the dead ones is none");
        }
        return found;
    }

    /// A page of a queue's shelves. No index has them in sequence, because every enqueue would pay for it. Most pages
    /// are found near where the last one ended; else the page is chosen from the index on gates, which costs what
    /// stands on the shelves.
    [[nodiscard]] std::vector<entry> list_shelves(const query& q, queue_number queue) {
        const one_moment all(on_);
        const shelf_range shelves{queue.shelf(state::pending),
                                  queue.shelf(q.by == query::path::live ? state::pending : state::dead)};
        auto page = list_near(q, shelves);
        return page.size() == q.limit ? page : list_far(q, shelves);
    }

    /// Shelves beside each other, both ends included.
    struct shelf_range {
        std::int64_t first = 0;
        std::int64_t last = 0;
    };

    [[nodiscard]] std::vector<entry> list_near(const query& q, shelf_range shelves) {
        const auto until = std::min(after(q) + 1000 + 8 * std::uint64_t{q.limit}, std::uint64_t{INT64_MAX});
        run row(on_.prepared(sql::list_near));
        row.bind(q.queue, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, shelves.first, shelves.last,
                 until);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_far(const query& q, shelf_range shelves) {
        std::vector<std::uint64_t> chosen;
        {
            run row(on_.prepared(sql::list_far));
            row.bind(after(q), q.state, q.topic, shelves.first, shelves.last);
            const auto keep_lowest = [&] {
                const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(std::min(q.limit, chosen.size()));
                std::nth_element(chosen.begin(), end, chosen.end());
                chosen.erase(end, chosen.end());
            };
            while (row.step()) {
                chosen.push_back(static_cast<std::uint64_t>(row.integer(0)));
                if (chosen.size() > 2 * q.limit + 1000) {
                    keep_lowest();
                }
            }
            keep_lowest();
        }
        std::sort(chosen.begin(), chosen.end());
        std::vector<entry> found(chosen.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            run row(on_.prepared(sql::at));
            run::expect(row.bind(chosen[i], q.payloads).step(), "sqlite: an index names an entry that is not there");
            read_entry(row, found[i], q.payloads);
        }
        return found;
    }

    [[nodiscard]] static std::vector<entry> entries_of(run& row, bool has_payloads) {
        std::vector<entry> found;
        while (row.step()) {
            read_entry(row, found.emplace_back(), has_payloads);
        }
        return found;
    }

    [[nodiscard]] static std::uint64_t after(const query& q) noexcept {
        return std::min(q.after, std::uint64_t{INT64_MAX});
    }

    /// Several statements that see the same moment: inside the transaction that is open, or one of their own.
    class one_moment {
      public:
        explicit one_moment(connection& on) : on_(on), is_own_(!on.in_transaction()) {
            if (is_own_) {
                on_.execute(sql::begin_reading);
            }
        }
        one_moment(const one_moment&) = delete;
        one_moment& operator=(const one_moment&) = delete;
        ~one_moment() {
            if (is_own_) {
                on_.roll_back(); // nothing was written
            }
        }

      private:
        connection& on_;
        bool is_own_;
    };

    connection& on_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/writing.hpp
// The writer's operations on one connection, inside a transaction. Verbs are the contract's `apply`: an entry's life is
// read, changed in memory, and written back under the fence of its epoch and state. Arguments are valid when they come
// here.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class writing {
  public:
    writing(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        std::vector<entry> claimed;
        const auto queue = r.limit == 0 ? std::nullopt : session_.find(on_, r.queue);
        if (!queue) {
            return claimed;
        }
        const auto shelf = queue->shelf(state::pending);
        if (r.only.is_nil()) {
            claimed.reserve(std::min<std::size_t>(r.limit, 64));
            run row(on_.prepared(sql::due));
            take(row.bind(r.queue, shelf, r.now, std::uint64_t{r.limit}), r, claimed);
        } else {
            run row(on_.prepared(sql::due_only));
            take(row.bind(r.queue, shelf, r.now, r.only), r, claimed);
        }
        write_claims(claimed, r);
        const auto by_due = [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        };
        if (!std::is_sorted(claimed.begin(), claimed.end(), by_due)) {
            std::sort(claimed.begin(), claimed.end(), by_due);
        }
        return claimed;
    }

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answers;
        answers.reserve(settles.size());
        while (!settles.empty()) {
            auto done = succeed_run(settles, now);
            if (done == 0) {
                answers.push_back(settle_alone(settles.front(), now));
                done = 1;
            } else {
                answers.insert(answers.end(), done, settlement{.verdict = verdict::applied});
            }
            settles = settles.subspan(done);
        }
        return answers;
    }

    [[nodiscard]] verdict extend(const ticket& t, time_point now, duration lease) {
        subject e;
        if (!look_up(t.id, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::extend{t, lease}, now);
        if (answer == verdict::applied) {
            hold(e);
        }
        return answer;
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        subject e;
        if (!look_up(wanted, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::nudge{}, now);
        if (answer == verdict::applied) {
            e.now.state == state::claimed ? hold(e) : wait(e, std::nullopt, false);
        }
        return answer;
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        subject e;
        if (!look_up(wanted, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::cancel{error}, now);
        if (answer == verdict::applied) {
            end(e, error);
        }
        return answer;
    }

  private:
    static void take(run& row, const claim_request& r, std::vector<entry>& claimed) {
        while (row.step()) {
            auto& e = claimed.emplace_back();
            read_entry(row, e);
            apply(e, r);
        }
    }

    /// Writes what was read, a run of neighbours in one statement.
    void write_claims(const std::vector<entry>& claimed, const claim_request& r) {
        for (std::size_t first = 0; first < claimed.size();) {
            auto end = first + 1;
            while (end < claimed.size() && claimed[end].sequence == claimed[end - 1].sequence + 1) {
                ++end;
            }
            run row(on_.prepared(sql::claim));
            row.bind(claimed[first].sequence, claimed[end - 1].sequence, r.now, r.now + r.lease, r.worker);
            expect_changed(row.finish(), end - first);
            first = end;
        }
    }

    [[nodiscard]] settlement settle_alone(const vouch::settle& s, time_point now) {
        settlement answer;
        subject e;
        if (!look_up(s.ticket.id, e)) {
            return answer;
        }
        answer.verdict = apply(e.now, s, now);
        if (answer.verdict != verdict::applied) {
            return answer;
        }
        const bool failed = std::holds_alternative<retry>(s.outcome) || std::holds_alternative<bury>(s.outcome);
        const auto error = failed ? std::optional<std::string_view>(e.now.last_error) : std::nullopt;
        if (is_terminal(e.now.state)) {
            answer.group_completed = end(e, error);
        } else {
            wait(e, error, std::holds_alternative<advance>(s.outcome));
        }
        return answer;
    }

    /// A stored entry as far as a verb can change it or its end concerns others.
    struct subject {
        std::uint64_t sequence = 0;
        state was{};
        std::uint64_t epoch_was = 0;
        bool is_blocked = false;
        life now{};
        queue_number number{};
        std::string queue{};
        std::string group{};
        std::string lane{};
        id parent{};
    };

    [[nodiscard]] bool look_up(const id& wanted, subject& e) {
        run row(on_.prepared(sql::life));
        if (!row.bind(wanted).step()) {
            return false;
        }
        std::optional<time_point> gate;
        row.read_all(e.sequence, e.now.state, e.now.attempts, e.now.lapses, e.now.failures, e.now.epoch, e.now.due_at,
                     e.now.lease_until, e.now.woken, gate, e.number.value, e.queue, or_none{e.group}, or_none{e.lane},
                     or_none{e.parent});
        expect_sound(e.now);
        e.was = e.now.state;
        e.epoch_was = e.now.epoch;
        e.is_blocked = is_live(e.was) && !gate;
        return true;
    }

    /// Nothing else writes inside the transaction, so what was read is what is there, or the file is damaged.
    static void expect_changed(int changed, std::size_t expected) {
        if (static_cast<std::size_t>(changed) != expected) {
            throw error(error_kind::corrupt, "sqlite: an entry cannot be written as it was read");
        }
    }
    static void expect_one(int changed) { expect_changed(changed, 1); }

    /// The short way for successes that are nobody else's concern: those at the front that are neighbours, under one
    /// epoch, are written in one statement. Says how many that were; 0 if the first is none of that kind, or its ticket
    /// is not good.
    [[nodiscard]] std::size_t succeed_run(std::span<const vouch::settle> settles, time_point now) {
        const auto* const done = std::get_if<succeed>(&settles.front().outcome);
        const auto first = done == nullptr ? 0 : find_sequence(on_, settles.front().ticket.id);
        if (first == 0) {
            return 0;
        }
        const auto epoch = settles.front().ticket.epoch;
        auto last = first;
        for (const auto& next : settles.subspan(1)) {
            const auto* const too = std::get_if<succeed>(&next.outcome);
            if (too == nullptr || too->result != done->result || next.ticket.epoch != epoch ||
                find_sequence(on_, next.ticket.id) != last + 1) {
                break;
            }
            ++last;
        }
        if (last > first && count_ready(first, last, epoch) != last - first + 1) {
            last = first; // one of them is no good, and each gets its own verdict
        }
        run row(on_.prepared(sql::succeed));
        const auto changed = row.bind(first, last, epoch, blob{done->result}, now).finish();
        if (changed != 0) {
            expect_changed(changed, last - first + 1);
        }
        return static_cast<std::size_t>(changed);
    }

    [[nodiscard]] std::uint64_t count_ready(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
        run row(on_.prepared(sql::count_ready));
        row.bind(first, last, epoch).step();
        return static_cast<std::uint64_t>(row.integer(0));
    }

    /// Writes a life that waits. `error` is unset where the last one stays.
    void wait(const subject& e, std::optional<std::string_view> error, bool is_checkpoint) {
        const auto gate = e.is_blocked ? std::nullopt : gate_of(e.now);
        run row(on_.prepared(is_checkpoint ? sql::write_checkpoint : sql::write_wait));
        const auto& l = e.now;
        if (is_checkpoint) {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at, l.lapses, optional_blob{l.progress});
        } else {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at, l.lapses);
        }
        expect_one(row.finish());
        if (gate) {
            session_.stir(e.queue);
        }
    }

    /// Writes a life that stays claimed.
    void hold(const subject& e) {
        run row(on_.prepared(sql::write_hold));
        row.bind(e.sequence, e.epoch_was, e.was, e.now.lease_until, e.now.woken, e.now.updated_at);
        expect_one(row.finish());
    }

    /// Writes a life that has ended, and tells whom that concerns. Says whether it completed its group.
    bool end(const subject& e, std::optional<std::string_view> error) {
        const auto& l = e.now;
        {
            const auto result = l.result ? std::optional{blob{*l.result}} : std::nullopt;
            run row(on_.prepared(sql::write_end));
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.failures, l.epoch, error, result, l.updated_at,
                     e.number.shelf(l.state), l.lapses);
            expect_one(row.finish());
        }
        if (l.state == state::dead) {
            run(on_.prepared(sql::add_dead)).bind(e.number.value, e.sequence).finish();
        }
        if (!e.lane.empty() || !e.parent.is_nil()) {
            run(on_.prepared(sql::end_relations)).bind(e.sequence).finish();
        }
        if (!e.lane.empty() && run(on_.prepared(sql::lane_open_next)).bind(e.number.value, e.lane).finish() > 0) {
            session_.stir(e.queue);
        }
        if (!e.parent.is_nil()) {
            std::ignore = nudge(e.parent, l.updated_at); // absent or terminal: no effect
        }
        if (e.group.empty()) {
            return false;
        }
        run row(on_.prepared(sql::group_end));
        const bool has_succeeded = l.state == state::succeeded;
        if (!row.bind(e.group, has_succeeded).step()) {
            throw vouch::error(error_kind::corrupt, "sqlite: a group has members but is not counted");
        }
        return row.integer_between(0, 0) == 0 && has_succeeded;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/store.hpp
// The SQLite store and its transaction: validation, turns and misuse around the statements.
//
// A store is a handle: copies share one writing connection and a pool of reading ones, all closed with the last copy or
// transaction. Transactions of one process take turns, those of several processes meet at SQLite's write lock. Reads on
// the store see what is committed and wait for no writer (with a connection of the application's: provided its database
// is in WAL mode). As always with SQLite, nothing of this may be carried across a fork.

namespace vouch {
inline namespace v0 {
namespace sqlite {

namespace detail {

inline constexpr vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true};

/// The operations of a writer, validated; `Self::use(operation)` runs one with a `connection&` and a `session&`.
template <class Self>
class writer {
  public:
    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](reading on) { return on.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, limits());
        return look([&](reading on) { return on.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, limits());
        return look([&](reading on) { return on.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, limits());
        return look([&](reading on) { return on.next_due(queue); });
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::ignore = limits();
        validate(drafts, can);
        return self().use([&](connection& on, session& in) { return enqueuing(on, in).enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        validate(request, limits());
        return self().use([&](connection& on, session& in) { return writing(on, in).claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        validate(settles, limits());
        return self().use([&](connection& on, session& in) { return writing(on, in).settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        validate(tickets, now, lease, limits());
        return self().use([&](connection& on, session& in) {
            writing writing(on, in);
            std::vector<verdict> verdicts;
            verdicts.reserve(tickets.size());
            for (const auto& t : tickets) {
                verdicts.push_back(writing.extend(t, now, lease));
            }
            return verdicts;
        });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return self().use([&](connection& on, session& in) { return writing(on, in).nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        validate_error_code(error, limits());
        return self().use([&](connection& on, session& in) { return writing(on, in).cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        validate(request, limits());
        return self().use([&](connection& on, session&) { return purging(on).purge(request); });
    }

  private:
    friend Self;
    writer() = default;

    [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

    /// What validation goes by; a closed writer says so before it looks at any argument.
    [[nodiscard]] const vouch::limits& limits() const {
        self().expect_open();
        return can.limits;
    }

    template <class Look>
    auto look(Look&& look) const {
        return self().read([&](connection& on) { return look(reading(on)); });
    }
};

} // namespace detail

class store;

class transaction : public detail::writer<transaction> {
  public:
    transaction(transaction&& other) noexcept
        : file_(std::move(other.file_)), session_(std::exchange(other.session_, {})) {
        hand_over();
    }
    transaction& operator=(transaction&& other) noexcept {
        if (this != &other) {
            roll_back();
            file_ = std::move(other.file_);
            session_ = std::exchange(other.session_, {});
            hand_over();
        }
        return *this;
    }
    ~transaction() { roll_back(); }

    void commit() {
        expect_open();
        const auto closed = std::exchange(file_, nullptr);
        detail::in_memory([&] { closed->commit(session_.stirred); });
    }

    /// The connection it is open on, for statements of the application's that are to be part of it (a `record`, an
    /// audit). Never end the transaction through it, and never go on after an error that did: some (a constraint with
    /// ON CONFLICT ROLLBACK, a full disk, an interrupt) make SQLite roll back everything. The next call then says
    /// `misuse` and closes the transaction. What a COMMIT of the application's has stored stays stored.
    [[nodiscard]] sqlite3* connection() const {
        expect_whole();
        return file_->writer().handle();
    }

  private:
    friend class store;
    friend class detail::writer<transaction>;

    explicit transaction(std::shared_ptr<detail::file> in) noexcept : file_(std::move(in)) {}

    void expect_open() const {
        if (!file_) {
            throw error(error_kind::misuse, "sqlite: the transaction is closed");
        }
    }

    /// Without a transaction of SQLite's every statement of ours would be a commit of its own.
    void expect_whole() const {
        expect_open();
        if (const auto how = file_->writer().stands(); how != detail::standing::open) {
            roll_back();
            detail::in_memory([&] { throw detail::ended_by_application(how, false); });
        }
    }

    /// Runs one operation. An exception in it rolls everything back and closes the transaction.
    template <class Operation>
    auto use(Operation&& operation) {
        return read([&](detail::connection& on) {
            session_.forget_stored();
            return operation(on, session_);
        });
    }

    template <class Operation>
    auto read(Operation&& operation) const {
        expect_whole();
        file_->hub().use();
        try {
            return detail::in_memory([&] { return operation(file_->writer()); });
        } catch (...) {
            roll_back();
            throw;
        }
    }

    void hand_over() const noexcept {
        if (file_) {
            file_->hub().hand_over();
        }
    }

    void roll_back() const noexcept {
        if (const auto closed = std::exchange(file_, nullptr)) {
            closed->roll_back();
        }
    }

    mutable std::shared_ptr<detail::file> file_; // null: closed; a read that fails closes too
    detail::session session_{};
};

class store {
    /// Lends a reading connection to `look`.
    template <class Look>
    auto look(Look&& look) const {
        struct loan {
            detail::file& of;
            std::unique_ptr<detail::connection> reader;
            ~loan() { of.give_back(std::move(reader)); }
        };
        return detail::in_memory([&] {
            const loan lent{*file_, file_->take_reader()};
            return look(detail::reading(*lent.reader));
        });
    }

    [[nodiscard]] std::uint64_t look_for_commits() const {
        return detail::in_memory([&] { return file_->look_for_commits(); });
    }

    std::shared_ptr<detail::file> file_;

  public:
    using transaction = sqlite::transaction;
    static constexpr int contract_level = vouch::contract_level;

    /// Opens the file, in WAL mode, and by default creates what is missing: the file and the tables.
    explicit store(const std::string& path, options how = {})
        : file_(detail::in_memory([&] { return std::make_shared<detail::file>(path, std::move(how)); })) {}

    /// Writes through a connection of the application's, which is neither configured nor closed; readers of our own are
    /// opened on the same file. While a transaction of ours is open, what the application does on that connection is
    /// part of it. The connection must stay open as long as any copy of the store or transaction is used.
    explicit store(sqlite3* connection, options how = {})
        : file_(detail::in_memory([&] { return std::make_shared<detail::file>(connection, std::move(how)); })) {}

    // Copied where others are moved, so that a handle is never without its work.
    store(const store&) = default;
    store& operator=(const store&) = default;
    ~store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::can; }

    /// Waits for the transactions of this process that came before, then for those of others, at most
    /// `options::busy_limit`, then says `busy`. A thread that was the last to use the open transaction, and has not
    /// moved it since, would wait for itself: `misuse`.
    [[nodiscard]] transaction begin() {
        detail::in_memory([&] { file_->begin(); });
        return transaction(file_);
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](detail::reading on) { return on.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, detail::can.limits);
        return look([&](detail::reading on) { return on.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](detail::reading on) { return on.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](detail::reading on) { return on.next_due(queue); });
    }

    /// Grows with every commit of this process that brought work nearer in the queue, and with any commit of others.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look_for_commits() + file_->hub().wakes(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`. Commits of this process are heard at once, those of others within `options::watch_every`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        using clock = std::chrono::steady_clock;
        // The longest waits would lead past the last time there is, and the most negative before the first.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::can.limits.lease_max);
        const auto until = clock::now() + at_most;
        for (;;) {
            validate_queue(queue, detail::can.limits);
            const auto local = file_->hub().wakes(queue);
            const auto present = look_for_commits() + local;
            const auto left = until - clock::now();
            if (present != seen || left <= clock::duration::zero() || stop.stop_requested()) {
                return present;
            }
            file_->hub().wait(queue, local, std::min<std::chrono::nanoseconds>(left, file_->how().watch_every), stop);
        }
    }
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/audit.hpp
// An audit trail in the same file: one row per ended entry and completed group, written in the transaction that records
// the outcome, so that there is never one without the other.
//
//   vouch::sqlite::audit_table audit(store);
//   worker.audit(audit);
//
// Rows are only ever appended; who may remove them, and when, is the application's to say. Copies share nothing but the
// table, and may be used by several threads.

namespace vouch {
inline namespace v0 {
namespace sqlite {

class audit_table {
  public:
    /// Creates the table if it is not there.
    explicit audit_table(store& in, std::string prefix = std::string(default_prefix)) : prefix_(std::move(prefix)) {
        const auto sql = schema(prefix_);
        auto tx = in.begin();
        detail::execute(tx.connection(), sql, "create the audit table");
        tx.commit();
    }

    /// The statement that creates it, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        validate_prefix(prefix);
        return detail::with_prefix(R"(CREATE TABLE IF NOT EXISTS @audit (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  what TEXT NOT NULL,
  id BLOB NOT NULL,
  queue TEXT NOT NULL,
  topic TEXT NOT NULL,
  "group" TEXT NOT NULL,
  worker TEXT NOT NULL,
  error TEXT NOT NULL,
  attempts INTEGER NOT NULL
);
)",
                                   prefix);
    }

    /// Appends a `vouch::audit_line`. What it throws leaves the entry claimed, and its lease heals it.
    template <class Line>
    void operator()(transaction& tx, const Line& line) const {
        const detail::statement insert(
            tx.connection(),
            detail::with_prefix(R"(INSERT INTO @audit (at, what, id, queue, topic, "group", worker, error, attempts)
                                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))",
                                prefix_));
        detail::run(insert)
            .bind(line.at, name_of(line.what), line.id, line.queue, line.topic, line.group, line.worker, line.error,
                  line.attempts)
            .finish();
    }

  private:
    std::string prefix_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/inspect.hpp
// What an operator may ask of a database beyond the contract: which schema it has and which queues. Each is one
// statement on a connection of the caller's, and changes nothing.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The schema version of the tables with this prefix; nothing if there are none. It may be older or newer than
/// `schema_version`.
[[nodiscard]] inline std::optional<std::int64_t> stored_schema_version(sqlite3* connection,
                                                                       std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement exists(connection,
                                   "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    const auto meta = detail::with_prefix("@meta", prefix);
    if (!detail::run(exists).bind(meta).step()) {
        return std::nullopt;
    }
    return detail::stored_version(connection, prefix);
}

/// Every queue that has an entry, by name.
[[nodiscard]] inline std::vector<std::string> queue_names(sqlite3* connection,
                                                          std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement names(connection, detail::with_prefix(R"(SELECT name FROM @queues
 WHERE EXISTS (SELECT 1 FROM @entries WHERE shelf BETWEEN number * 4 AND number * 4 + 3) ORDER BY name)",
                                                                  prefix));
    std::vector<std::string> out;
    detail::run row(names);
    while (row.step()) {
        out.emplace_back(row.bytes(0));
    }
    return out;
}

/// Entries by queue and state, read by nothing but the columns that say so, which every schema has. For databases older
/// than this library; costs every row.
[[nodiscard]] inline std::map<std::string, state_counts>
counts_of_any_schema(sqlite3* connection, std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement counts(connection, detail::with_prefix(R"(SELECT name, state, count(*)
 FROM @entries JOIN @queues ON number = shelf >> 2 GROUP BY name, state)",
                                                                   prefix));
    std::map<std::string, state_counts> out;
    detail::run row(counts);
    while (row.step()) {
        std::string queue;
        auto which = state::pending;
        std::uint64_t number = 0;
        row.read_all(queue, which, number);
        out[queue][which] += number;
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/joined.hpp
// A writer inside a transaction that the application has opened on its own connection, so that business rows and
// entries come into being together or not at all:
//
//   sqlite::joined outbox(connection);          // once per connection, or once per transaction
//   exec(connection, "BEGIN IMMEDIATE");        // the application's
//   exec(connection, "INSERT INTO orders ...");
//   outbox.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // the application's, too
//
// It never commits, and its destruction changes nothing. Each call is all or nothing by a savepoint of its own. After
// `conflict` (the transaction began by reading, and somebody has written since) roll back and begin again, best with
// BEGIN IMMEDIATE. A COMMIT that fails with an I/O error is in doubt: until the next commit to the file succeeds, a
// crash may bring it back. Finalise first, close later: destroy it before the connection.

namespace vouch {
inline namespace v0 {
namespace sqlite {

class joined : public detail::writer<joined> {
  public:
    /// The tables must be there: `migrate(connection)` creates them.
    explicit joined(sqlite3* connection, std::string prefix = std::string(default_prefix))
        : place_(detail::in_memory([&] { return std::make_unique<place>(connection, std::move(prefix)); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class detail::writer<joined>;

    struct place {
        place(sqlite3* db, std::string prefix) : on(db, {.prefix = std::move(prefix)}), hub(detail::hub::of(db)) {
            detail::expect_schema(db, on.prefix());
            // Taking a call back must not need memory to be prepared.
            for (const auto which : {detail::sql::savepoint, detail::sql::release, detail::sql::roll_back_to}) {
                std::ignore = on.prepared(which);
            }
        }
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place() { hub->part(this); }

        detail::connection on;
        std::shared_ptr<detail::hub> hub;
    };

    void expect_open() const {
        if (!place_ || !place_->on.in_transaction()) {
            throw error(error_kind::misuse,
                        "sqlite: joined needs a transaction open on the application's connection; there is none");
        }
        detail::in_memory([&] {
            place_->hub->join(place_.get(), place_->on.handle());
            // One that writes settles it by its commit.
            if (place_->hub->is_in_doubt() && sqlite3_txn_state(place_->on.handle(), "main") != SQLITE_TXN_WRITE) {
                throw error(error_kind::io, "sqlite: a commit is in doubt and joined cannot settle it; begin a "
                                            "transaction of the store, or this one with BEGIN IMMEDIATE");
            }
        });
    }

    template <class Operation>
    auto use(Operation&& operation) {
        expect_open();
        auto& on = place_->on;
        on.execute(detail::sql::savepoint);
        try {
            return detail::in_memory([&] {
                detail::session in;
                auto answer = operation(on, in);
                place_->hub->stir(on.handle(), in.stirred);
                on.execute(detail::sql::release);
                return answer;
            });
        } catch (...) {
            undo();
            throw;
        }
    }

    template <class Operation>
    auto read(Operation&& operation) const {
        expect_open();
        return detail::in_memory([&] { return operation(place_->on); });
    }

    /// Takes the call back, unless SQLite has rolled back everything. If even that fails, all goes, so that nobody can
    /// commit half a call.
    void undo() noexcept {
        auto& on = place_->on;
        try {
            if (on.in_transaction()) {
                on.execute(detail::sql::roll_back_to);
                on.execute(detail::sql::release);
            }
        } catch (...) {
            on.roll_back();
        }
    }

    std::unique_ptr<place> place_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_SQLITE
