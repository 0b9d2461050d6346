// SPDX-License-Identifier: MIT
// The SQLite store: durable, shared between processes, and able to write in the application's own transactions.
// Requires libsqlite3 3.35 or newer.
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

// ---- vouch/sqlite/detail/result_codes.hpp
// Maps SQLite's result codes to errors. A message names the operation and describes the code. It never contains
// SQLite's message about the statement, which may quote stored data.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

[[nodiscard]] constexpr error_kind kind_of(int code) noexcept {
    if (code == SQLITE_BUSY_SNAPSHOT) {
        return error_kind::conflict; // the transaction has read an old state; it must be repeated
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
    case SQLITE_ERROR: // a table or column is missing
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: return error_kind::corrupt;
    case SQLITE_TOOBIG:
    case SQLITE_NOLFS: return error_kind::unsupported;
    case SQLITE_ABORT: // a rollback while a statement was running
    case SQLITE_MISUSE:
    case SQLITE_RANGE: return error_kind::misuse;
    default: return error_kind::io;
    }
}

// Made in advance, because copying them allocates nothing.
inline const error out_of_memory{error_kind::full, "sqlite: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "sqlite: commit: out of memory", {.in_doubt = true}};

/// The error for an extended result code; `out_of_memory` if there is no memory for its message.
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

/// Returns `f()`. Throws `out_of_memory` in place of `std::bad_alloc`.
template <class F>
auto translate_bad_alloc(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/schema_text.hpp
// The tables and indexes as SQL text. `backends/README.md` explains every column and index.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Each step brings the tables from the version of its index to the next version; `@` stands for the prefix. Never
/// change a step that was released: append a new one.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE @entries (
  sequence INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL,
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
CREATE INDEX @entries_gate ON @entries (partition, gate);
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

/// `text` with the prefix in place of every `@`. Requires a valid prefix; nothing else is ever inserted into SQL text.
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

[[nodiscard]] inline std::string record_version(std::string_view prefix, std::size_t version) {
    return with_prefix("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                           ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
                       prefix);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/statement.hpp
// A prepared statement, and one run of it: bound, stepped, read, and reset when the run is destroyed. Every value is
// bound, never inserted into the text. Bound bytes are not copied and must outlive the run. Reading throws `corrupt` if
// a value does not have the type and range that the store writes there.

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

// ---- vouch/sqlite/prefix.hpp
// The prefix of all table and index names. Several stores with different prefixes can share one file.

namespace vouch {
inline namespace v0 {
namespace sqlite {

inline constexpr std::string_view default_prefix = "vouch_";

/// Throws `invalid_argument` unless the prefix has 1 to 40 letters, digits and underscores, does not begin with a
/// digit, and does not begin with `sqlite_`, which SQLite reserves.
inline void validate_prefix(std::string_view prefix) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto fits = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
    };
    if (prefix.empty() || prefix.size() > 40 || is_digit(prefix.front()) ||
        !std::all_of(prefix.begin(), prefix.end(), fits)) {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix has " + std::to_string(prefix.size()) +
                                                      " bytes; it must be 1 to 40 letters, digits and underscores, "
                                                      "and must not begin with a digit");
    }
    constexpr std::string_view reserved = "sqlite_";
    const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (prefix.size() >= reserved.size() && std::equal(reserved.begin(), reserved.end() - 1, prefix.begin(), same) &&
        prefix[reserved.size() - 1] == '_') {
        throw error(error_kind::invalid_argument,
                    "sqlite: options: prefix begins with sqlite_, which SQLite reserves; choose another");
    }
}

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/migration.hpp
// Creates and migrates the tables, and checks their version. The version is a row of `@meta`, because
// `PRAGMA user_version` belongs to the application.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

inline void execute(sqlite3* db, const std::string& sql, std::string_view doing) {
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) {
        throw error_of(sqlite3_extended_errcode(db), doing);
    }
}

/// Throws `unsupported` unless the database is encoded in UTF-8. In any other encoding SQLite would convert names, and
/// change those that are not valid UTF-8.
inline void expect_utf8(sqlite3* db) {
    const statement encoding(db, "PRAGMA encoding");
    run row(encoding);
    if (!row.step() || row.bytes(0) != "UTF-8") {
        throw error(error_kind::unsupported,
                    "sqlite: the database is encoded in UTF-16, which would change names; create it with PRAGMA "
                    "encoding = 'UTF-8'");
    }
}

/// Returns 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(sqlite3* db, std::string_view prefix) {
    const auto meta = with_prefix("@meta", prefix);
    const statement exists(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    if (!run(exists).bind(meta).step()) {
        return 0;
    }
    const statement version(db, with_prefix("SELECT value FROM @meta WHERE name = 'schema_version'", prefix));
    run row(version);
    if (!row.step()) {
        throw error(error_kind::corrupt, "sqlite: " + meta + " has no schema_version");
    }
    constexpr std::int64_t least = 0;
    return row.integer_between(0, least);
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "sqlite: the tables have schema version " + std::to_string(stored) +
                                                 "; this library supports up to version " + std::to_string(known) +
                                                 " and has changed nothing. Use a newer version of vouch");
    }
}

/// Runs the steps that the database does not have yet, in one transaction: the open one, or its own.
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
        const auto from = stored_version(db, prefix); // again, because another process may have migrated meanwhile
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

/// Throws `unsupported` unless the tables exist in the current version.
inline void expect_schema(sqlite3* db, std::string_view prefix) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, migrations.size());
    constexpr auto current = static_cast<std::int64_t>(migrations.size());
    if (stored < current) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "sqlite: there are no tables with the prefix " + std::string(prefix)
                                 : "sqlite: the tables have schema version " + std::to_string(stored) +
                                       ", this library needs version " + std::to_string(current)) +
                        "; call vouch::sqlite::migrate");
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/turnstile.hpp
// The queue of processes that want SQLite's write lock. SQLite has no queue: the process that looks at the right moment
// gets the lock, most often the one that has just released it. On a slow disk another process may then wait until
// `busy`.
//
// The queue is an empty file beside the database, `NAME-turn`. A place in the queue is a lock on one byte of it. A
// process takes the byte after all locked ones; the lowest is next. So a later process never overtakes an earlier one.
// If there is no queue, a process asks for SQLite's lock at once, and queues if the lock is taken. A process that had
// its turn may come back without queueing for a few milliseconds, as long as the lock is free, because handing it over
// takes longer than a quick commit. The operating system releases the places of processes that die.
//
// The queue only orders; SQLite's lock protects. On systems without open file description locks, processes do not
// queue.
//
// The file has the mode of the database, and its owner if root creates it, so that every user who may write the
// database may also queue. A process that may only read the file queues with read locks. If the file cannot be opened,
// that is an error: a process that does not queue would overtake others, and be overtaken.
//
// Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class turnstile {
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds turn_length{5};

  public:
    turnstile() noexcept = default;

    /// The queue of the database at this path. Throws if it cannot be opened.
    explicit turnstile(const std::string& database) {
#if defined(F_OFD_SETLK)
        struct stat like {};
        if (::stat(database.c_str(), &like) != 0) {
            return; // SQLite reports the error
        }
        const auto name = database + "-turn";
        int failed = open_like(name, like);
        if (failed == EACCES && ::unlink(name.c_str()) == 0) {
            failed = open_like(name, like); // another user left a file that only that user can open
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

    /// Call it before asking for the lock. Takes a place if there is a queue, unless the last turn is not over yet.
    void approach() noexcept {
        is_approaching_ = true;
#if defined(F_OFD_SETLK)
        if (file_ >= 0 && clock::now() >= turn_until_ && first_taken(1, 0) != 0) {
            line_up();
        }
#endif
    }

    /// Takes the last place, if `approach` was called and there is no place yet.
    void line_up() noexcept {
#if defined(F_OFD_SETLK)
        if (file_ < 0 || !is_approaching_ || place_ != 0) {
            return;
        }
        for (int tries = 0; tries < 1000; ++tries) { // another process may take the same place first
            auto last = std::int64_t{0};
            while (const auto next = first_taken(last + 1, 0)) {
                last = next;
            }
            if (lock(place_lock_, last + 1)) {
                if (first_taken(last + 1, 1) == 0) {
                    place_ = last + 1;
                    return;
                }
                lock(F_UNLCK, last + 1); // two processes may have a read lock
            }
        }
#endif
    }

    /// Whether no other process is earlier in the queue. True without a place.
    [[nodiscard]] bool is_next() const noexcept {
#if defined(F_OFD_SETLK)
        return place_ <= 1 || first_taken(1, place_ - 1) == 0;
#else
        return true;
#endif
    }

    /// Call it with the lock, or after giving up. Gives up the place.
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
    /// Opens the file, or creates it with the mode and owner of the database. Returns 0 or an errno.
    [[nodiscard]] int open_like(const std::string& name, const struct stat& like) noexcept {
        constexpr auto readable_and_writable = 0666U;
        constexpr int flags = O_CLOEXEC | O_NOFOLLOW;
        constexpr auto unchanged = static_cast<uid_t>(-1);
        const auto mode = static_cast<mode_t>(like.st_mode & readable_and_writable);
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | flags, mode);
        if (file_ >= 0) {
            // If one of these fails, other users can still read the file, or get an error.
            static_cast<void>(::fchown(file_, ::geteuid() == 0 ? like.st_uid : unchanged, like.st_gid) == 0);
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
            "sqlite: begin: the file in which writers queue, the database's name followed by -turn, cannot be opened "
            "(errno " +
                std::to_string(code) + "); give it the mode and owner of the database, or delete it");
    }

    /// The first place from `from` on that another process has taken, among `many` (0: all); 0 if there is none.
    [[nodiscard]] std::int64_t first_taken(std::int64_t from, std::int64_t many) const noexcept {
        auto asked = range(F_WRLCK, from, many);
        return ::fcntl(file_, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK ? asked.l_start : 0;
    }
    bool lock(short how, std::int64_t place) const noexcept { // NOLINT(google-runtime-int): flock's type
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
    short place_lock_ = F_WRLCK; // NOLINT(google-runtime-int): flock's type
#endif
    std::int64_t place_ = 0; ///< 0: none
    bool is_approaching_ = false;
    clock::time_point turn_until_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/lock_wait.hpp
// How a connection waits for a lock: in short sleeps of random length. SQLite's own busy handler sleeps longer and
// longer, so that the connection that has waited longest looks least often. Here the first in the queue looks again
// within half a millisecond. All others look every 50 ms, in case the first was stopped in its sleep.
//
// Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class lock_wait {
  public:
    lock_wait(std::chrono::milliseconds limit, turnstile& queue) noexcept : limit_(limit), queue_(queue) {}

    using clock = std::chrono::steady_clock;

    /// Counts the limit of the following waits from `start`; without a value, from the first look of each wait.
    void count_from(std::optional<clock::time_point> start) noexcept { start_ = start; }

    /// Sleeps. Returns whether to look again; `looks` is how often that was done for this lock.
    bool wait(int looks) noexcept {
        auto now = clock::now();
        if (looks == 0) {
            since_ = start_.value_or(now);
            queue_.line_up();
        }
        if (now - since_ >= limit_) {
            return false;
        }
        const auto look_by = std::min(now + look_every, since_ + limit_);
        do {
            sleep();
            now = clock::now();
        } while (!queue_.is_next() && now < look_by);
        return true;
    }

  private:
    static constexpr std::chrono::milliseconds look_every{50};

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

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/partition.hpp
// The partition of an entry. Every queue has a number and three partitions: live, succeeded, dead. One index orders
// each partition by gate; the gate of an ended entry is the time it ended. So a claim and a purge each read the
// beginning of a partition.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A queue's number. Its partitions are the four numbers from `first()` on; the fourth is unused.
struct queue_number {
    std::int64_t value = 0;

    [[nodiscard]] constexpr std::int64_t first() const noexcept { return value * 4; }
    [[nodiscard]] constexpr std::int64_t partition(state s) const noexcept {
        return first() + (s == state::succeeded ? 1 : s == state::dead ? 2 : 0);
    }
};

/// A position in a partition. A default position is before all entries.
struct partition_position {
    std::int64_t gate = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const partition_position&,
                                                    const partition_position&) noexcept = default;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/sql.hpp
// All statements of the store, as data. Each connection prepares a statement on first use; a test checks the plan of
// each for table scans. `@` stands for the prefix, `$` for a part that several statements share. If SQLite could choose
// among several indexes, the statement names one.

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
    first_due,
    new_since,
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

/// The queue's name, for statements that do not get it as a parameter.
inline constexpr std::string_view name_column = "(SELECT q.name FROM @queues q WHERE q.number = e.partition >> 2)";

/// The columns that `read_entry` reads, without the payload.
inline constexpr std::string_view entry_columns =
    R"(e.sequence, e.id, $queue, e.topic, r."key", r."group", r.lane, r.parent, r.predecessor, ifnull(r.generation, 1),
 e.attempts_max, e.expires_at, e.created_at, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.worker, e.last_error, e.updated_at, e.last_attempt_at, e.trail,
 e.headers, e.progress, e.result)";

/// The state; NULL if the entry is not in the partition of its state.
inline constexpr std::string_view state_column = "CASE WHEN e.partition & 3 = max(e.state - 2, 0) THEN e.state END";

/// Small payloads are in the entry's row. Larger ones have a row of their own, so that changing the entry does not
/// write them again.
inline constexpr std::string_view payload_column =
    "ifnull(e.payload, (SELECT p.payload FROM @payloads p WHERE p.sequence = e.sequence))";
inline constexpr std::size_t payload_in_row_max = 1024;

/// A new row. ?1 is now; the other parameters follow in this order.
inline constexpr std::string_view new_row =
    "($sequence, $partition, $gate, $state, 0, 0, 0, 0, $due_at, 0, ?1, NULL, '', "
    "'', $id, $topic, $tied, ?1, $attempts_max,"
    " $expires_at, $trail, $headers, $progress, $result, $payload)";
inline constexpr auto new_row_parameters = static_cast<std::size_t>(std::count(new_row.begin(), new_row.end(), '$'));
/// How many rows `insert_many` inserts. Most of the cost of a small INSERT is starting the statement.
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
    // The number is only for people; this statement exists to write a page.
    sql_text{sql::settle_doubt,
             "INSERT INTO @meta VALUES ('doubts', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"},

    // A queue's number never changes.
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
    // The partitions ?7 to ?8 of a queue. Near: sequences up to ?9, in the order of the table. Far: all sequences, from
    // the index, in no order.
    sql_text{sql::list_near, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END FROM @entries e
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.sequence > ?2 AND e.sequence <= ?9 AND +e.partition BETWEEN ?7 AND ?8 AND (?3 IS NULL OR e.state = ?3)
 AND (?4 = '' OR e.topic = ?4) ORDER BY e.sequence LIMIT ?5)"},
    sql_text{sql::list_far, R"(SELECT sequence FROM @entries INDEXED BY @entries_gate WHERE partition BETWEEN ?4 AND ?5
 AND sequence > ?1 AND (?2 IS NULL OR state = ?2) AND (?3 = '' OR topic = ?3))"},
    // ?1 is the queue's first partition, the live one; those of succeeded and dead entries follow.
    sql_text{sql::counts, R"(SELECT sum(state = 0), sum(state = 1), sum(state = 2),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE partition = ?1 + 1),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE partition = ?1 + 2), count(*)
 FROM @entries INDEXED BY @entries_gate WHERE partition = ?1)"},
    // Blocked entries have no gate and come before all others in the index.
    sql_text{sql::next_due, R"(SELECT gate FROM @entries INDEXED BY @entries_gate
 WHERE partition = ?1 AND gate >= -9223372036854775808 ORDER BY gate LIMIT 1)"},

    sql_text{sql::first_due, R"(SELECT gate, sequence FROM @entries INDEXED BY @entries_gate
 WHERE partition = ?1 AND gate >= -9223372036854775808 ORDER BY gate, sequence LIMIT 1)"},
    // Whether the live partition ?1 has rows above ?2. Reads these rows only.
    sql_text{sql::new_since, R"(SELECT ifnull((SELECT max(sequence) FROM @entries), 0),
 EXISTS (SELECT 1 FROM @entries e WHERE e.sequence > ?2 AND +e.partition = ?1))"},

    // Enqueue. Sequences are never reused: the floor is the highest sequence that was purged from the end.
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
    sql_text{sql::predecessor, R"(SELECT e.sequence, $state, e.partition >> 2, r."key", r."group", r.lane,
 ifnull(r.generation, 1), (SELECT n.id FROM @relations s INDEXED BY @relations_replaces
 CROSS JOIN @entries n ON n.sequence = s.sequence WHERE s.replaces = e.sequence)
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?1)"},

    // Claim. First read: ?1 the queue's name, ?2 its partition, ?3 now, ?4 the limit or the one id. Then write, for
    // each run of consecutive sequences: ?1 first, ?2 last, ?3 now, ?4 end of the lease, ?5 worker. RETURNING would
    // keep every row in memory twice.
    sql_text{sql::due, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_gate
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.partition = ?2 AND e.gate <= ?3 ORDER BY e.gate, e.sequence LIMIT ?4)"},
    sql_text{sql::due_only, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_id
 LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?4 AND e.partition = ?2 AND e.gate <= ?3)"},
    sql_text{sql::claim, R"(UPDATE @entries SET state = 2, attempts = attempts + (state <> 2 OR lapses > 0),
 lapses = lapses + (state = 2), epoch = epoch + 1, gate = ?4, woken = 0, worker = ?5, updated_at = ?3, last_attempt_at = ?3
 WHERE sequence BETWEEN ?1 AND ?2 AND gate <= ?3 AND state < 3)"},

    // The usual settle, for a run of consecutive sequences: ?1 first, ?2 last, ?3 epoch, ?4 result, ?5 now. It skips an
    // entry in a wrong partition, so that the general settle reports the damage.
    sql_text{sql::count_ready, R"(SELECT count(*) FROM @entries
 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},
    sql_text{sql::succeed,
             R"(UPDATE @entries SET state = 3, partition = partition + 1, gate = ?5, result = ?4, updated_at = ?5,
 lapses = 0, woken = 0 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},

    // The verbs: read, apply in memory, write back under the fence (?1 sequence, ?2 epoch, ?3 state).
    sql_text{sql::life, R"(SELECT e.sequence, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.gate, e.partition >> 2, $name, r."group", r.lane, r.parent
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
 last_error = ifnull(?7, last_error), result = ?8, updated_at = ?9, gate = ?9, partition = ?10, lapses = ?11, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::add_dead, "INSERT INTO @dead VALUES (?1, ?2)"},
    sql_text{sql::end_relations, "UPDATE @relations SET is_live = 0 WHERE sequence = ?1"},

    // Lanes: only the first live entry has a gate.
    sql_text{sql::lane_is_taken, R"(SELECT 1 FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 LIMIT 1)"},
    sql_text{sql::lane_open_next, R"(UPDATE @entries SET gate = due_at
 WHERE sequence = (SELECT sequence FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 ORDER BY sequence LIMIT 1) AND gate IS NULL)"},

    // Groups: ?1 is the name. A dead member is unfinished until it has a successor.
    sql_text{sql::group_enter, R"(INSERT INTO @groups VALUES (?1, 1, 1, 1) ON CONFLICT (name) DO UPDATE
 SET members = members + 1, live = live + 1, unfinished = unfinished + ?2)"},
    sql_text{sql::group_end, R"(UPDATE @groups SET live = live - 1, unfinished = unfinished - ?2
 WHERE name = ?1 RETURNING unfinished)"},
    sql_text{sql::group_leave,
             "UPDATE @groups SET members = members - 1, unfinished = unfinished - ?2 WHERE name = ?1"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ?1 AND members = 0"},

    // Purge: ?1 and ?2 are the partitions, ?3 `before`, ?4 and ?5 the position to start after. It finds newest
    // generations and then follows them to their predecessors. It returns other generations as well, because skipping
    // them costs as much.
    sql_text{sql::purge_find, R"(SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE partition = ?1 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
 UNION ALL SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE partition = ?2 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
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
    "the statements must be in the order of their enumerators");

/// `text` with every `what` replaced.
inline void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

/// `new_row` with numbered parameters, for the row of this index.
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

/// Whether ?1 is the name of the queue of all rows.
[[nodiscard]] constexpr bool has_queue_parameter(sql which) noexcept {
    return which == sql::due || which == sql::due_only || which == sql::list_near || which == sql::list_dead ||
           which == sql::list_key;
}

[[nodiscard]] inline std::string text_of(sql which, std::string_view prefix) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    replace_all(text, "$entry", entry_columns);
    // A claim reads the live partition only and reports any other state that it finds there as damage.
    const bool is_claim = which == sql::due || which == sql::due_only;
    replace_all(text, "$state", is_claim ? "e.state" : state_column);
    replace_all(text, "$live", "partition & 3 = 0 AND partition = CAST(partition AS INTEGER)");
    replace_all(text, "$payload", payload_column);
    replace_all(text, "$queue", has_queue_parameter(which) ? "?1" : "$name");
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

// ---- vouch/sqlite/options.hpp
// How a store uses its file.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// What a commit waits for, on connections that the store opens.
enum class synchronous : std::uint8_t {
    full,   ///< the disk: a committed transaction survives a power failure
    normal, ///< the operating system: many times faster. A power failure may undo the newest commits, in order and
            ///< whole: an entry that `enqueue` reported as stored may be gone, and a settled entry may run again. A
            ///< crash of the process loses nothing. The file is never damaged.
};

/// Every member has a usable default.
struct options {
    std::string prefix{default_prefix}; ///< of every table and index
    bool create = true; ///< create or migrate the file and the tables; false: they must exist, in this version
    sqlite::synchronous synchronous = sqlite::synchronous::full;
    /// How long `begin` waits for other writers, in this process and in others, before it throws `busy`. Not negative.
    std::chrono::milliseconds busy_limit{10'000};
    /// How often `wait` looks for commits of other processes, at least 1 ms. Where the system tells of them (Linux), it
    /// hears of them at once and looks fifty times more rarely.
    std::chrono::milliseconds watch_every{20};
    std::string vfs{}; ///< the name of a registered SQLite VFS; empty: SQLite's default
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/connection.hpp
// One SQLite connection with its prepared statements. It is either opened, configured and closed here, or belongs to
// the application and is neither configured nor closed. Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `unsupported` if SQLite is older than 3.35, which has no RETURNING, or was built without threads.
inline void check_library() {
    constexpr int oldest = 3'035'000;
    if (sqlite3_libversion_number() < oldest || sqlite3_threadsafe() == 0) {
        throw error(error_kind::unsupported,
                    std::string("sqlite: needs SQLite 3.35 or newer, built with thread support; this is ") +
                        sqlite3_libversion() + (sqlite3_threadsafe() == 0 ? ", built without thread support" : ""));
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

/// The state of a transaction that `begin` opened. `ended`: it is not known how.
enum class transaction_status : std::uint8_t { open, rolled_back, committed, ended };

class connection {
  public:
    enum class role : std::uint8_t { writer, reader };

    /// Opens and configures a connection.
    connection(const std::string& path, role as, const options& how)
        : prefix_(how.prefix), lock_wait_(how.busy_limit, turnstile_) {
        check_library();
        validate_prefix(prefix_);
        if (path.find('\0') != std::string::npos) {
            throw error(error_kind::invalid_argument, "sqlite: the path contains a NUL byte; it must not");
        }
        if (!how.vfs.empty() && sqlite3_vfs_find(how.vfs.c_str()) == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: options: vfs is not the name of a registered VFS");
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
        // Before anything else, because even the switch to WAL has to wait for locks of other processes.
        sqlite3_busy_handler(
            opened, [](void* self, int looks) { return static_cast<lock_wait*>(self)->wait(looks) ? 1 : 0; },
            &lock_wait_);
        configure(as, how);
        watch_endings();
        prepare_control();
    }

    /// Uses the application's connection.
    connection(sqlite3* db, const options& how)
        : prefix_(how.prefix), lock_wait_(how.busy_limit, turnstile_), db_(db, closer{false}) {
        check_library();
        validate_prefix(prefix_);
        if (db == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: the connection is null; pass an open sqlite3*");
        }
        prepare_control();
    }

    [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }
    [[nodiscard]] bool is_owned() const noexcept { return db_.get_deleter().is_ours; }
    [[nodiscard]] bool in_transaction() const noexcept { return sqlite3_get_autocommit(handle()) == 0; }
    [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

    /// The status of the transaction that `begin` opened. The application may have ended it with a statement of its own
    /// on this connection: a ROLLBACK, a COMMIT, or an error that makes SQLite roll back. How it ended is known only on
    /// connections that were opened here.
    [[nodiscard]] transaction_status status() const noexcept {
        return ended_ != transaction_status::open ? ended_
               : in_transaction()                 ? transaction_status::open
                                                  : transaction_status::ended;
    }

    /// Whether the file was deleted, moved or replaced. SQLite itself would continue to write into it.
    [[nodiscard]] bool has_moved() const noexcept {
        int moved = 0;
        const int rc = sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        return rc == SQLITE_OK && moved != 0;
    }

    /// Where the last purge of these two partitions stopped.
    [[nodiscard]] partition_position& purged_until(std::int64_t succeeded, std::int64_t dead) {
        return purged_until_[{succeeded, dead}];
    }

    /// Whether the file could not be written when the connection was opened.
    [[nodiscard]] bool is_read_only() const noexcept { return sqlite3_db_readonly(handle(), "main") == 1; }

    /// Prepares the statement on first use.
    [[nodiscard]] const statement& prepared(sql which) {
        auto& kept = statements_[static_cast<std::size_t>(which)];
        if (kept.handle() == nullptr) {
            kept = statement(handle(), text_of(which, prefix_));
        }
        return kept;
    }

    /// Rolls back if a transaction is open, without allocating. Returns whether none is open now.
    bool roll_back() noexcept {
        if (in_transaction()) {
            const run ending(statements_[static_cast<std::size_t>(sql::roll_back)]);
            sqlite3_step(statements_[static_cast<std::size_t>(sql::roll_back)].handle());
        }
        return !in_transaction();
    }

    /// Begins a writing transaction, after the processes earlier in the queue. `busy_limit` counts from `since`.
    void begin(lock_wait::clock::time_point since) {
        struct approach {
            explicit approach(turnstile& which) : of(which) { of.approach(); }
            approach(const approach&) = delete;
            approach& operator=(const approach&) = delete;
            ~approach() { of.leave(has_lock); }
            turnstile& of;
            bool has_lock = false;
        };
        struct counting {
            counting(lock_wait& which, lock_wait::clock::time_point since) noexcept : of(which) {
                of.count_from(since);
            }
            counting(const counting&) = delete;
            counting& operator=(const counting&) = delete;
            ~counting() { of.count_from(std::nullopt); }
            lock_wait& of;
        };
        find_turnstile();
        approach mine(turnstile_);
        const counting from(lock_wait_, since);
        if (!turnstile_.is_next()) {
            lock_wait_.wait(0);
        }
        execute_patiently(sql::begin);
        ended_ = transaction_status::open;
        mine.has_lock = true;
    }

    /// Sets what commits wait for. Has no effect on a connection of the application.
    void wait_for_disk(synchronous how) {
        if (is_owned()) {
            const bool full = how == synchronous::full;
            detail::execute(handle(), full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "configure");
        }
    }

    /// Runs a statement that has no parameters and no rows.
    void execute(sql which) { run(prepared(which)).step(); }

    /// Like `execute`, but also waits for the lock on a connection of the application, whose busy handler may give up
    /// at once. Only for statements that may be repeated after BUSY.
    void execute_patiently(sql which) {
        for (int looks = 0;; ++looks) {
            try {
                return execute(which);
            } catch (const error& e) {
                if ((e.code() & 0xff) != SQLITE_BUSY || is_owned() || !lock_wait_.wait(looks)) {
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
        // Before the switch to WAL, because that changes the file, and a file that is refused must not change.
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
                        "sqlite: the database cannot use a write-ahead log; use a file on a local disk");
        }
        wait_for_disk(how.synchronous);
        // A long read makes the log grow; this shrinks it again afterwards.
        detail::execute(handle(), "PRAGMA journal_size_limit = 8388608", "configure");
    }

    void watch_endings() noexcept {
        sqlite3_commit_hook(
            handle(),
            [](void* self) {
                static_cast<connection*>(self)->ended_ = transaction_status::committed;
                return 0;
            },
            this);
        sqlite3_rollback_hook(
            handle(), [](void* self) { static_cast<connection*>(self)->ended_ = transaction_status::rolled_back; },
            this);
    }

    /// Only for SQLite's own VFS: another VFS may not keep a file at the path.
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

    /// Prepared in advance, so that a transaction can be ended when there is no memory left.
    void prepare_control() {
        for (const auto which : {sql::begin, sql::commit, sql::roll_back}) {
            std::ignore = prepared(which);
        }
    }

    std::string prefix_;
    turnstile turnstile_{};
    bool has_looked_for_turnstile_ = false;
    transaction_status ended_ = transaction_status::open;
    std::map<std::pair<std::int64_t, std::int64_t>, partition_position> purged_until_{};
    lock_wait lock_wait_; // outlives `db_`, whose busy handler calls it
    std::unique_ptr<sqlite3, closer> db_{};
    std::array<statement, detail::statements.size()> statements_{}; // finalised before the connection closes
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/row.hpp
// An entry as columns. Lists are blobs: a trail is a sequence of ids; headers are names and values, each after its
// length.

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
        throw error(error_kind::corrupt, "sqlite: the file is damaged: a trail is not a list of ids");
    }
    to.clear();
    for (; !from.empty(); from.remove_prefix(bytes.size())) {
        std::memcpy(bytes.data(), from.data(), bytes.size());
        to.push_back(id::from_bytes(bytes));
    }
}

/// Four bytes of length, least significant first, then the text.
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

/// Removes one text from the front.
[[nodiscard]] inline std::string decode_text(std::string_view& from) {
    constexpr std::size_t length_bytes = 4;
    std::size_t size = 0;
    for (std::size_t i = 0; i < length_bytes && i < from.size(); ++i) {
        size |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
    }
    if (from.size() < length_bytes || size > from.size() - length_bytes) {
        throw error(error_kind::corrupt, "sqlite: the file is damaged: headers are not a list of names and values");
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

/// Throws `corrupt` for a life that no verb can have produced, or whose counters the next verb would overflow.
inline void expect_sound(const life& l) {
    const bool is_held = l.lease_until && l.attempts > 0 && l.epoch > 0;
    run::expect(l.state != state::claimed || is_held,
                "sqlite: the file is damaged: a claimed entry has no lease, attempt or epoch");
    run::expect(l.attempts < UINT32_MAX && l.lapses < UINT32_MAX && l.failures < UINT32_MAX && l.epoch < INT64_MAX,
                "sqlite: the file is damaged: a counter of an entry is at its maximum");
}

/// Reads the `entry_columns` of `sql.hpp`, and the payload after them if `has_payload`.
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
        row.read(lists + 4, blob_into{e.payload}); // NULL: the payload has a row of its own, and that is missing
    }
    run::expect(e.sequence > 0, "sqlite: the file is damaged: an entry's sequence is 0");
    expect_sound(e);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/queue_heads.hpp
// Which queues the commits of other processes concern. A commit can make work in a queue due sooner if the queue has a new
// entry, or another entry is first in turn. So both are remembered for each queue that a thread waits for, and compared
// when another process has committed.
//
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// What is stored in a queue, as far as it matters to a thread that waits.
struct queue_head {
    std::optional<std::pair<time_point, std::uint64_t>>
        first{};            ///< gate and sequence of the entry that is first in turn
    std::uint64_t last = 0; ///< the highest sequence of the file
    bool has_new = false;   ///< a live entry has a higher sequence than was asked for
};

class queue_heads {
  public:
    /// How often a commit was found to concern the queue. `commits` is the present number of commits of other processes;
    /// `read(after)` returns the queue's present head, with `has_new` for sequences above `after`.
    template <class Read>
    [[nodiscard]] std::uint64_t count_changes(std::string_view queue, std::uint64_t commits, const Read& read) {
        std::uint64_t after = INT64_MAX; // the first time, nothing counts as new
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = heads_.find(queue); found != heads_.end()) {
                if (found->second.commits >= commits) {
                    return found->second.changes;
                }
                after = found->second.head.last;
            }
        }
        const queue_head now = read(after);
        const std::lock_guard lock(mutex_);
        auto& k = heads_[std::string(queue)];
        if (k.commits < commits || k.changes == 0) { // no other thread was faster
            k.changes += k.changes == 0 || now.has_new || now.first != k.head.first ? 1U : 0U;
            k.head = now;
            k.commits = commits;
        }
        return k.changes;
    }

  private:
    struct known {
        queue_head head{};
        std::uint64_t commits = 0;
        std::uint64_t changes = 0; ///< 0: not read yet
    };
    std::mutex mutex_{};
    std::map<std::string, known, std::less<>> heads_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/session.hpp
// Lookups that all writing operations share, and what a transaction remembers between calls.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `corrupt` if the number is too large to have partitions.
[[nodiscard]] inline queue_number expect_number(std::int64_t number) {
    run::expect(number > 0 && number < INT64_MAX / 8, "sqlite: the file is damaged: a queue's number is out of range");
    return {number};
}

/// The queue's number; none if nothing was ever enqueued there.
[[nodiscard]] inline std::optional<queue_number> find_queue(connection& on, std::string_view name) {
    run row(on.prepared(sql::queue));
    if (!row.bind(name).step()) {
        return std::nullopt;
    }
    return expect_number(row.integer(0));
}

[[nodiscard]] inline queue_head find_head(connection& on, std::string_view queue, std::uint64_t after) {
    queue_head out;
    const auto number = find_queue(on, queue);
    const auto partition = number ? number->partition(state::pending) : -1;
    {
        run row(on.prepared(sql::new_since));
        row.bind(partition, after).step();
        row.read_all(out.last, out.has_new);
    }
    run row(on.prepared(sql::first_due));
    if (row.bind(partition).step()) {
        out.first.emplace();
        row.read_all(out.first->first, out.first->second);
    }
    return out;
}

/// Returns 0 if there is no such entry.
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
    run::expect(last < INT64_MAX / 2, "sqlite: the file is damaged: the highest sequence is out of range");
    return last;
}

/// What a transaction remembers.
class session {
  public:
    std::uint64_t last_sequence = 0;         ///< 0: not looked up yet
    std::vector<std::string> woken_queues{}; ///< queues in which work may be due sooner

    void wake(const std::string& queue) {
        if (woken_queues.empty() || woken_queues.back() != queue) {
            woken_queues.push_back(queue);
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

    /// Like `find`, but gives the queue a number if it has none.
    [[nodiscard]] queue_number number(connection& on, const std::string& queue) {
        if (const auto found = find(on, queue)) {
            return *found;
        }
        run(on.prepared(sql::add_queue)).bind(queue).finish();
        const auto added = expect_number(sqlite3_last_insert_rowid(on.handle()));
        known_.emplace(queue, added);
        return added;
    }

    /// Called before each operation, because the application may use the connection between two of them: it may roll
    /// back to a savepoint, which undoes the number of a queue, or join the transaction and use the next sequences.
    void forget_stored() noexcept {
        last_sequence = 0;
        known_.reset();
    }

  private:
    std::optional<std::pair<std::string, queue_number>> known_{}; // the last one that was looked up
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/entry_reader.hpp
// The operations of `reader` on one connection. Each sees one state of the database. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class entry_reader {
  public:
    explicit entry_reader(connection& on) noexcept : on_(on) {}

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
        default: return list_partitions(q, *queue);
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
                        "sqlite: the file is damaged: an entry in a live partition is not live");
        }
        return counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        std::optional<time_point> due;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::next_due));
            if (row.bind(number->partition(state::pending)).step()) {
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
            run::expect(e.state == state::dead,
                        "sqlite: the file is damaged: an entry in the list of dead entries is not dead");
        }
        return found;
    }

    /// A page of a queue's partitions. There is no index by sequence, because it would slow down every enqueue. Most
    /// pages are found near the end of the last one. Otherwise the page is chosen from the index on gates, at the cost
    /// of reading the partitions' part of it.
    [[nodiscard]] std::vector<entry> list_partitions(const query& q, queue_number queue) {
        const snapshot all(on_);
        const partition_range partitions{queue.partition(state::pending),
                                         queue.partition(q.by == query::path::live ? state::pending : state::dead)};
        auto page = list_near(q, partitions);
        return page.size() == q.limit ? page : list_far(q, partitions);
    }

    /// Adjacent partitions, both ends included.
    struct partition_range {
        std::int64_t first = 0;
        std::int64_t last = 0;
    };

    [[nodiscard]] std::vector<entry> list_near(const query& q, partition_range partitions) {
        const auto until = std::min(after(q) + 1000 + 8 * std::uint64_t{q.limit}, std::uint64_t{INT64_MAX});
        run row(on_.prepared(sql::list_near));
        row.bind(q.queue, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, partitions.first,
                 partitions.last, until);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_far(const query& q, partition_range partitions) {
        std::vector<std::uint64_t> chosen;
        {
            run row(on_.prepared(sql::list_far));
            row.bind(after(q), q.state, q.topic, partitions.first, partitions.last);
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
            run::expect(row.bind(chosen[i], q.payloads).step(),
                        "sqlite: the file is damaged: an index contains an entry that does not exist");
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

    /// Lets several statements see the same state: in the open transaction, or in one of their own.
    class snapshot {
      public:
        explicit snapshot(connection& on) : on_(on), is_own_(!on.in_transaction()) {
            if (is_own_) {
                on_.execute(sql::begin_reading);
            }
        }
        snapshot(const snapshot&) = delete;
        snapshot& operator=(const snapshot&) = delete;
        ~snapshot() {
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

// ---- vouch/sqlite/detail/checked_options.hpp
// Validation of a store's options.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `invalid_argument` if a duration is too short. Cuts longer ones to a year, so that adding them to the current
/// time cannot overflow.
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

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/file_events.hpp
// Tells when the files of a database are written, by this process or by another one. On Linux the kernel says so
// (inotify); elsewhere, and if the kernel has no more watches to give, a wait only ends after its time.
//
// One thread waits at a time; any thread may interrupt it.

#if defined(__linux__)
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class file_events {
  public:
    using clock = std::chrono::steady_clock;

#if defined(__linux__)
    explicit file_events(std::string database)
        : database_(std::move(database)), log_(database_ + "-wal"), interrupts_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
          writes_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}
    file_events(const file_events&) = delete;
    file_events& operator=(const file_events&) = delete;
    ~file_events() {
        for (const int one : {interrupts_, writes_}) {
            if (one >= 0) {
                ::close(one);
            }
        }
    }

    /// Whether the next `wait` ends when another process commits. Asks for the files that are at the paths now.
    [[nodiscard]] bool begin() noexcept {
        if (writes_ < 0 || interrupts_ < 0) {
            return false;
        }
        ::inotify_add_watch(writes_, database_.c_str(), IN_MODIFY); // commits without a log
        return ::inotify_add_watch(writes_, log_.c_str(), IN_MODIFY) >= 0;
    }

    /// Waits until a file is written, `interrupt` is called, or `until`. May also end earlier.
    void wait(clock::time_point until) noexcept {
        // Every commit of this process is an event, too. One look in a millisecond is enough for all of them.
        if (const auto pause = std::min(last_event_ + shortest_pause, until); clock::now() < pause) {
            if (poll_until(pause, false)) {
                return;
            }
        }
        poll_until(until, true);
    }

    /// How long ago `wait` has noticed that a file was written.
    [[nodiscard]] clock::duration since_write() const noexcept { return clock::now() - last_event_; }

    /// Ends the present wait, or the next one.
    void interrupt() noexcept {
        if (interrupts_ >= 0) {
            ::eventfd_write(interrupts_, 1);
        }
    }

  private:
    static constexpr std::chrono::milliseconds shortest_pause{1};

    /// Returns whether it was interrupted.
    bool poll_until(clock::time_point until, bool hears_writes) noexcept {
        const auto left = std::chrono::ceil<std::chrono::nanoseconds>(until - clock::now());
        const auto wait = std::clamp<std::chrono::nanoseconds>(left, {}, std::chrono::hours{1});
        const timespec at_most{static_cast<time_t>(wait.count() / 1'000'000'000), wait.count() % 1'000'000'000};
        std::array<pollfd, 2> on{{{interrupts_, POLLIN, 0}, {hears_writes ? writes_ : -1, POLLIN, 0}}};
        if (::ppoll(on.data(), on.size(), &at_most, nullptr) <= 0) {
            return false;
        }
        if (on[1].revents != 0) {
            last_event_ = clock::now();
            std::array<char, 4096> events{};
            while (::read(writes_, events.data(), events.size()) > 0) {
            }
        }
        eventfd_t count = 0;
        return on[0].revents != 0 && ::eventfd_read(interrupts_, &count) == 0;
    }

    std::string database_;
    std::string log_;
    int interrupts_;
    int writes_;
    clock::time_point last_event_{};
#else
    explicit file_events(const std::string& /*database*/) {}
    [[nodiscard]] bool begin() const noexcept { return false; }
    [[nodiscard]] clock::duration since_write() const noexcept { return clock::duration::max(); }
    void wait(clock::time_point until) {
        std::unique_lock lock(mutex_);
        interrupted_.wait_until(lock, until, [&] { return is_interrupted_; });
        is_interrupted_ = false;
    }
    void interrupt() noexcept {
        {
            const std::lock_guard lock(mutex_);
            is_interrupted_ = true;
        }
        interrupted_.notify_one();
    }

  private:
    std::mutex mutex_{};
    std::condition_variable interrupted_{};
    bool is_interrupted_ = false;
#endif
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/wake_ups.hpp
// The threads of this process that wait for work in a file, and the numbers that end their waits. A commit of this process
// wakes the threads that wait for one of its queues. To notice commits of other processes, one of the waiting threads, the
// watcher, also looks at the file, and wakes those whose queues they concern.
//
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class wake_ups {
  public:
    using clock = std::chrono::steady_clock;

    explicit wake_ups(const std::string& database) : events_(database) {}

    /// The number of wake-ups of the queue by this process.
    [[nodiscard]] std::uint64_t count_of(std::string_view queue) {
        const std::lock_guard lock(mutex_);
        return count(queue);
    }

    /// A commit of this process may have made work in these queues due sooner.
    void wake(const std::vector<std::string>& queues) noexcept {
        const std::lock_guard lock(mutex_);
        for (const auto& queue : queues) {
            const bool is_counted = try_to_count(queue);
            for (auto* one = first_; one != nullptr; one = one->next) {
                if (one->queue == queue || !is_counted) {
                    notify(*one);
                }
            }
        }
    }

    /// What a thread knew when it decided to wait.
    struct start {
        std::uint64_t count = 0;   ///< `count_of` its queue
        std::uint64_t commits = 0; ///< `commits` of its source
        std::uint64_t foreign = 0; ///< `count_foreign` of its source
    };

    /// Waits until `count_of` the queue or `count_foreign` has changed, until `until`, or a stop is requested. May also
    /// return earlier. `Source` says what other processes have done:
    ///  1. `std::uint64_t commits()` grows with their commits;
    ///  2. `std::uint64_t count_foreign(const std::string& queue)` grows with those that concern the queue;
    ///  3. `clock::duration look_every(bool is_told)` is how often to look, if the system tells of commits or not.
    template <class Source>
    void wait(Source& of, std::string_view queue, const start& from, clock::time_point until,
              const std::stop_token& stop) {
        waiter me{.source = &of, .queue = queue, .foreign = from.foreign};
        const std::stop_callback on_stop(stop, [&] {
            const std::lock_guard lock(mutex_);
            me.is_woken = true;
            notify(me);
        });
        std::unique_lock lock(mutex_);
        if (commits_ > from.commits) {
            return; // noticed since the thread has looked
        }
        add(me);
        while (!me.is_woken && count(queue) == from.count && clock::now() < until) {
            if (watcher_ == nullptr) {
                watcher_ = &me;
            }
            if (watcher_ == &me) {
                watch(lock, of, until);
            } else {
                me.changed.wait_until(lock, until);
            }
        }
        remove(me);
    }

  private:
    struct waiter {
        const void* source = nullptr;
        std::string_view queue{};
        std::uint64_t foreign = 0;
        bool is_woken = false;
        std::condition_variable changed{};
        waiter* next = nullptr;
    };

    [[nodiscard]] std::uint64_t count(std::string_view queue) const {
        const auto found = counts_.find(queue);
        return found == counts_.end() ? uncounted_ : found->second + uncounted_;
    }

    /// If there is no memory for the name, every queue is woken.
    bool try_to_count(const std::string& queue) noexcept {
        try {
            counts_[queue] += 1;
            return true;
        } catch (...) {
            uncounted_ += 1;
            return false;
        }
    }

    void add(waiter& one) noexcept { one.next = std::exchange(first_, &one); }

    /// The next thread in the list becomes the watcher, if this one was.
    void remove(waiter& one) noexcept {
        auto** at = &first_;
        while (*at != &one) {
            at = &(*at)->next;
        }
        *at = one.next;
        if (watcher_ == &one) {
            watcher_ = nullptr;
            if (first_ != nullptr) {
                first_->changed.notify_one();
            }
        }
    }

    void notify(waiter& one) noexcept {
        if (watcher_ == &one) {
            events_.interrupt();
        } else {
            one.changed.notify_one();
        }
    }

    void wake_all_but_of(const void* source) noexcept {
        for (auto* one = first_; one != nullptr; one = one->next) {
            if (one->source != source) {
                one->is_woken = true;
                notify(*one);
            }
        }
    }

    /// Waits for one event, and acts on what other processes have committed. Unlocks meanwhile.
    template <class Source>
    void watch(std::unique_lock<std::mutex>& lock, Source& of, clock::time_point until) {
        const auto known = commits_;
        lock.unlock();
        std::optional<std::uint64_t> now;
        try {
            const bool is_told = events_.begin();
            now = of.commits();
            if (*now == known) {
                events_.wait(std::min(until, clock::now() + pause_before_look(of.look_every(is_told))));
                now = of.commits();
            }
        } catch (...) { // each waiting thread finds out for itself
            now.reset();
        }
        lock.lock();
        if (!now) {
            wake_all_but_of(nullptr);
        } else if (*now != known) {
            commits_ = *now;
            wake_all_but_of(&of);
            wake_changed(lock, of);
        }
    }

    /// A commit can be seen only a moment after its last write, as long as the disk takes. So the watcher looks soon after
    /// a write, and then ever more rarely.
    [[nodiscard]] clock::duration pause_before_look(clock::duration usual) const noexcept {
        constexpr std::chrono::microseconds soonest{300};
        constexpr std::chrono::milliseconds slowest_disk{500};
        const auto since = events_.since_write();
        return since < slowest_disk ? std::clamp<clock::duration>(since, soonest, usual) : usual;
    }

    /// Wakes the threads whose queues the commits of other processes concern.
    template <class Source>
    void wake_changed(std::unique_lock<std::mutex>& lock, Source& of) {
        try {
            std::map<std::string, std::uint64_t, std::less<>> foreign;
            for (auto* one = first_; one != nullptr; one = one->next) {
                if (one->source == &of) {
                    foreign.try_emplace(std::string(one->queue));
                }
            }
            lock.unlock();
            for (auto& [queue, count] : foreign) {
                count = of.count_foreign(queue);
            }
            lock.lock();
            for (auto* one = first_; one != nullptr; one = one->next) {
                const auto now = foreign.find(one->queue);
                if (one->source == &of && now != foreign.end() && now->second != one->foreign) {
                    one->is_woken = true;
                    notify(*one);
                }
            }
        } catch (...) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            wake_all_but_of(nullptr);
        }
    }

    std::mutex mutex_{};
    file_events events_;
    std::map<std::string, std::uint64_t, std::less<>> counts_{};
    std::uint64_t uncounted_ = 0;
    waiter* first_ = nullptr;
    waiter* watcher_ = nullptr;
    std::uint64_t commits_ = 0; ///< of other processes, as far as a watcher has noticed them
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/watch.hpp
// Counts commits by other processes, and by the application on its own connections. `PRAGMA data_version` tells a
// connection that another one has committed, but not which one. So the watch pauses during a commit of this process and
// ignores the change, unless the committing connection notices that another one has committed, too.
//
// Shared by all stores of one file; safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class watch {
  public:
    /// A number that grows when another connection has committed since the last look. Opens a connection first.
    [[nodiscard]] std::uint64_t look(const std::string& path, const options& how) {
        const std::lock_guard lock(mutex_);
        if (is_paused_) {
            return count_;
        }
        if (!on_ || on_->has_moved()) {
            lose_track();
            on_ = std::make_unique<connection>(path, connection::role::reader, how);
            sqlite3_busy_handler(on_->handle(), nullptr, nullptr); // this thread itself may hold the lock
        }
        carefully([&] { count_changes(); });
        return count_;
    }

    /// Closes the connection.
    void forget() noexcept {
        const std::lock_guard lock(mutex_);
        on_.reset();
    }

    /// Held during a commit of this process. One at a time.
    class pause {
      public:
        /// Requires that the writer has the write lock, so that no other connection can commit.
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
                of_.count_ += version_of(writer_) == writer_was_ ? 0U : 1U; // another commit followed at once
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

    /// A failure to look must not fail the commit. It is counted as a commit by another process.
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
    std::unique_ptr<connection> on_{}; // none before the first look
    std::int64_t version_ = 0;
    std::uint64_t count_ = 0;
    bool is_paused_ = false;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/file_registry.hpp
// The state that all stores of one file in this process share: the turn to write, the transactions of the application
// that a `joined` writes in, and the waits for new work. Threads queue here, first come, first served, so that only one
// transaction per process asks SQLite for the write lock.
//
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class file_registry {
  public:
    /// The registry of the file that this connection has open. Throws `unsupported` if the database has no file.
    [[nodiscard]] static std::shared_ptr<file_registry> of(sqlite3* db) {
        const char* const name = sqlite3_db_filename(db, "main");
        if (name == nullptr || *name == '\0') {
            throw error(error_kind::unsupported,
                        "sqlite: the database has no file and cannot be shared; use a path, or vouch::memory::store");
        }
        struct known {
            std::weak_ptr<file_registry> at{};
            std::shared_ptr<std::atomic<bool>> doubt =
                std::make_shared<std::atomic<bool>>(false); // outlives the registry
        };
        static std::mutex mutex;
        static std::map<std::string, known, std::less<>> registries;
        const std::lock_guard lock(mutex);
        std::erase_if(registries, [](const auto& one) { return one.second.at.expired() && !*one.second.doubt; });
        auto& mine = registries[name];
        auto found = mine.at.lock();
        if (!found) {
            found = std::make_shared<file_registry>(name, mine.doubt);
            mine.at = found;
        }
        return found;
    }
    file_registry(const std::string& name, std::shared_ptr<std::atomic<bool>> doubt)
        : wake_ups_(name), doubt_(std::move(doubt)) {}

    // Turns.

    /// Throws `misuse` if this thread has a transaction open, because it would wait for itself.
    void expect_no_transaction() {
        const std::lock_guard lock(mutex_);
        refuse_to_wait_for(std::this_thread::get_id());
    }

    /// Waits for the turn to write. Throws `busy` if that takes longer than `limit`, counted from `since`; `misuse` if this
    /// thread would wait for itself.
    void enter(std::chrono::steady_clock::time_point since, std::chrono::milliseconds limit) {
        std::unique_lock lock(mutex_);
        const auto me = std::this_thread::get_id();
        refuse_to_wait_for(me);
        const auto mine = next_place_++;
        waiting_.push_back(mine);
        const bool has_turn =
            turn_over_.wait_until(lock, since + limit, [&] { return !is_writing_ && waiting_.front() == mine; });
        std::erase(waiting_, mine);
        if (!has_turn) {
            turn_over_.notify_all(); // the next in the queue may be the first now
            throw error(error_kind::busy, "sqlite: begin: the earlier transactions of this process did not end within "
                                          "busy_limit, " +
                                              std::to_string(limit.count()) +
                                              " ms; if one of them belongs to this thread, or waits for it, it never "
                                              "will");
        }
        is_writing_ = true;
        writer_ = me;
    }

    /// Notes the connection of the transaction that has the turn.
    void write_on(sqlite3* db) noexcept {
        const std::lock_guard lock(mutex_);
        writes_on_ = db;
    }

    /// Notes that this thread uses the transaction that has the turn.
    void set_thread() {
        const std::lock_guard lock(mutex_);
        writer_ = std::this_thread::get_id();
    }

    /// The transaction that has the turn was moved: the thread that uses it next is its thread.
    void forget_thread() noexcept {
        const std::lock_guard lock(mutex_);
        writer_ = {};
    }

    /// A joined writer may have made work in these queues due sooner. If it writes in the transaction that has the
    /// turn, they are woken when that commits; otherwise the watch on the file notices the commit.
    void wake(sqlite3* db, const std::vector<std::string>& queues) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            woken_by_joined_.insert(woken_by_joined_.end(), queues.begin(), queues.end());
        }
    }

    /// Ends the turn. Wakes these queues, and after a commit those of joined writers.
    void leave(const std::vector<std::string>& woken_queues, bool has_committed = false) noexcept {
        std::vector<std::string> woken_by_joined;
        {
            const std::lock_guard lock(mutex_);
            is_writing_ = false;
            writes_on_ = nullptr;
            woken_by_joined.swap(woken_by_joined_);
        }
        turn_over_.notify_all();
        wake_ups_.wake(woken_queues);
        if (has_committed) {
            wake_ups_.wake(woken_by_joined);
        }
    }

    // Doubt.

    /// Whether a commit of this process is in doubt: its frames may be in the log, after the last frame that readers
    /// see. A recovery would find them, so no read may answer until they are overwritten.
    [[nodiscard]] bool is_in_doubt() const noexcept { return *doubt_; }
    void set_doubt(bool is_in_doubt) noexcept { *doubt_ = is_in_doubt; }

    // Joined transactions.

    /// Notes that `who` writes in a transaction of the application on this connection and thread.
    void join(const void* who, sqlite3* db) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            return; // part of the transaction that has the turn
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

    /// Notices commits of other processes.
    [[nodiscard]] detail::watch& watch() noexcept { return watch_; }

    [[nodiscard]] detail::wake_ups& wake_ups() noexcept { return wake_ups_; }

  private:
    struct joining {
        const void* who = nullptr;
        sqlite3* db = nullptr;
        std::thread::id thread{};
    };

    /// Throws `misuse` if this thread has a transaction open, because it would wait for itself.
    void refuse_to_wait_for(std::thread::id me) const {
        if (is_writing_ && writer_ == me) {
            throw error(error_kind::misuse, "sqlite: begin: this thread has a transaction open and would wait for "
                                            "itself; end that transaction first, or write through it");
        }
        for (const auto& j : joined_) {
            if (j.thread == me && j.db != writes_on_ && sqlite3_get_autocommit(j.db) == 0) {
                throw error(error_kind::misuse, "sqlite: begin: this thread has a joined transaction open on the same "
                                                "file and would wait for it; commit that transaction first");
            }
        }
    }

    detail::watch watch_{};
    detail::wake_ups wake_ups_;
    std::mutex mutex_;
    std::condition_variable turn_over_;
    std::vector<std::uint64_t> waiting_{}; // places in the queue, the first at the front
    std::uint64_t next_place_ = 0;
    bool is_writing_ = false;
    std::thread::id writer_{}; // the thread that used the transaction last; none after a move
    sqlite3* writes_on_ = nullptr;
    std::shared_ptr<std::atomic<bool>> doubt_;
    std::vector<joining> joined_{};
    std::vector<std::string> woken_by_joined_{}; // in the transaction that has the turn
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/shared_commit.hpp
// Stores the drafts of several threads in one transaction. A commit waits for the disk, so threads that commit one after
// another wait for the disk once each. Here the first thread that asks stores the drafts of all that ask until it has
// the turn to write, and commits once.
//
// Each thread gets its own receipts. An invalid draft is an error of its own thread only. If the shared transaction
// fails, each thread's drafts are stored again in a transaction of their own, so that each gets its own error; if its
// commit is in doubt, all threads get that error.
//
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class shared_commit {
  public:
    using clock = std::chrono::steady_clock;

    /// `begin(since)` returns a new transaction. `since` is when the thread began to wait for it.
    template <class Begin>
    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now, const Begin& begin) {
        request mine{.drafts = drafts, .now = now};
        if (is_to_lead(mine)) {
            lead(mine, begin);
        }
        if (mine.failure) {
            throw error(*mine.failure);
        }
        return std::move(mine.receipts);
    }

  private:
    /// What one thread wants. It waits, so the leader may use its memory.
    struct request {
        std::span<const draft> drafts{};
        time_point now{};
        std::vector<receipt> receipts{};
        std::optional<error> failure{};
        bool is_done = false;
        clock::time_point since = clock::now();
    };

    /// Waits until another thread has stored the drafts, or until no thread leads.
    [[nodiscard]] bool is_to_lead(request& mine) {
        std::unique_lock lock(mutex_);
        waiting_.push_back(&mine);
        changed_.wait(lock, [&] { return mine.is_done || !has_leader_; });
        if (mine.is_done) {
            return false;
        }
        has_leader_ = true;
        return true;
    }

    template <class Begin>
    void lead(request& mine, const Begin& begin) noexcept {
        std::vector<request*> group;
        try {
            auto tx = begin(mine.since);
            group = take_all();
            for (auto* const one : group) {
                store(*one, tx);
            }
            tx.commit();
        } catch (const error& e) {
            fail(mine, group, e, begin);
        }
        finish(mine, group);
    }

    [[nodiscard]] std::vector<request*> take_all() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(waiting_, {});
    }

    /// An invalid draft leaves the transaction open and unchanged.
    template <class Transaction>
    static void store(request& one, Transaction& tx) {
        try {
            one.receipts = tx.enqueue(one.drafts, one.now);
        } catch (const error& e) {
            if (e.kind() != error_kind::invalid_argument) {
                throw;
            }
            one.failure = e;
        }
    }

    /// The group is empty if the transaction could not be begun. The other threads then try for themselves.
    template <class Begin>
    static void fail(request& mine, const std::vector<request*>& group, const error& why, const Begin& begin) noexcept {
        if (group.size() <= 1) {
            mine.failure = why;
            return;
        }
        for (auto* const one : group) {
            if (why.is_in_doubt()) {
                one->failure = one->failure ? one->failure : why;
            } else {
                one->failure.reset();
                store_alone(*one, begin);
            }
        }
    }

    template <class Begin>
    static void store_alone(request& one, const Begin& begin) noexcept {
        try {
            auto tx = begin(one.since);
            store(one, tx);
            tx.commit();
        } catch (const error& e) {
            one.failure = e;
        }
    }

    void finish(request& mine, const std::vector<request*>& group) noexcept {
        {
            const std::lock_guard lock(mutex_);
            for (auto* const one : group) {
                one->is_done = true;
            }
            std::erase(waiting_, &mine); // if the transaction could not be begun
            has_leader_ = false;
        }
        changed_.notify_all();
    }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::vector<request*> waiting_{}; // without those that the leader has taken
    bool has_leader_ = false;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/file.hpp
// The state that all handles and transactions of one store share: one writing connection and a pool of readers. The
// writing connection is used only by the transaction that has the turn; the pool is safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// The error for a transaction that a statement of the application has ended. An operation is not in doubt, because it
/// has done nothing itself. A commit is in doubt unless everything is known to be rolled back.
[[nodiscard]] inline error ended_by_application(transaction_status how, bool is_commit) {
    const std::string who = "sqlite: a statement of the application on the transaction's connection has ";
    const error::details more{.in_doubt = is_commit && how != transaction_status::rolled_back};
    switch (how) {
    case transaction_status::rolled_back:
        return {error_kind::misuse, who + "rolled back the whole transaction; begin again", more};
    case transaction_status::committed:
        return {error_kind::misuse, who + "committed the transaction; its changes so far are stored", more};
    default: return {error_kind::misuse, who + "ended the transaction; its changes so far are stored or gone", more};
    }
}

class file {
  public:
    file(const std::string& path, options how) : options_(checked(std::move(how))) {
        retry_while_busy([&] {
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
    [[nodiscard]] detail::file_registry& registry() const noexcept { return *registry_; }
    [[nodiscard]] connection& writer() const noexcept { return *writer_; }
    [[nodiscard]] detail::shared_commit& shared_commit() noexcept { return shared_commit_; }

    // The writer.

    /// Waits for the turn to write and begins a transaction. `busy_limit` counts from `since`.
    void begin(lock_wait::clock::time_point since = lock_wait::clock::now()) {
        registry_->enter(since, options_.busy_limit);
        try {
            expect_file_in_place();
            if (writer_->in_transaction()) {
                throw error(error_kind::misuse, "sqlite: begin: the application has a transaction open on its "
                                                "connection; end it, or write in it with sqlite::joined");
            }
            if (registry_->is_in_doubt()) {
                settle_doubt(since);
            }
            writer_->begin(since);
            registry_->write_on(writer_->handle());
        } catch (const error& e) {
            if (e.kind() == error_kind::read_only) {
                forget_connections(); // they stay read-only, even if the file has become writable
            }
            give_up_turn();
            throw;
        } catch (...) {
            give_up_turn();
            throw;
        }
    }

    /// Ends the turn, whether it throws or not. If it returns, the transaction is in the file that was at the path when
    /// COMMIT began.
    void commit(const std::vector<std::string>& woken_queues) {
        if (const auto status = writer_->status(); status != transaction_status::open) {
            roll_back();
            throw ended_by_application(status, true);
        }
        if (has_moved()) {
            roll_back();
            throw moved("commit: nothing was committed");
        }
        try {
            const watch::pause ours(registry_->watch(), *writer_);
            writer_->execute_patiently(sql::commit);
        } catch (const error& e) {
            // After FULL the last frame was not written, and after BUSY the transaction is still open. After any other
            // error the frames may be on the disk, and a recovery of the log may find them.
            const bool in_doubt = !writer_->in_transaction() && (e.code() & 0xff) != SQLITE_FULL;
            if (in_doubt) {
                registry_->set_doubt(true);
                try_to_settle_doubt();
            }
            roll_back();
            if (e.code() == 0) { // out of memory
                throw in_doubt ? out_of_memory_in_doubt : out_of_memory;
            }
            throw error_of(e.code(), "commit", in_doubt);
        } catch (...) {
            roll_back();
            throw;
        }
        registry_->leave(woken_queues, true);
    }

    void roll_back() noexcept {
        if (!writer_->roll_back() && writer_->is_owned()) {
            writer_.reset(); // closing rolls back if nothing else can; the next turn opens a new connection
        }
        registry_->leave({});
    }

    // The readers: one for each read that runs at the same time.

    /// If a commit is in doubt, settles it first, or throws `io`.
    [[nodiscard]] std::unique_ptr<connection> take_reader() {
        if (registry_->is_in_doubt()) {
            if (is_application_) { // a thread that reads must not use the application's connection
                throw error(error_kind::io,
                            "sqlite: a commit is in doubt, so the stored entries are not known; begin a "
                            "transaction of the store to settle it");
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
        } catch (...) { // the connection is closed instead
        }
    }

    // Waits for work.

    /// A number that grows when another process has committed since the last look.
    [[nodiscard]] std::uint64_t commits() { return registry_->watch().look(path_, options_); }

    /// A number that grows when another process has committed something that concerns the queue.
    [[nodiscard]] std::uint64_t count_foreign(std::string_view queue) {
        return heads_.count_changes(queue, commits(), [&](std::uint64_t after) {
            auto reader = take_reader();
            const auto head = find_head(*reader, queue, after);
            give_back(std::move(reader));
            return head;
        });
    }

    /// If the system tells of commits, a look is only for those of which it did not.
    [[nodiscard]] std::chrono::steady_clock::duration look_every(bool is_told) const noexcept {
        constexpr int rarely = 50;
        constexpr std::chrono::milliseconds longest = std::chrono::hours{1};
        return std::min(options_.watch_every, longest) * (is_told ? rarely : 1);
    }

  private:
    /// Ends a turn without a transaction. If a transaction is open nevertheless, because even ROLLBACK failed, closing
    /// the connection ends it.
    void give_up_turn() noexcept {
        if (writer_ && writer_->is_owned() && writer_->in_transaction()) {
            writer_.reset();
        }
        registry_->leave({});
    }

    /// Overwrites the frames of the commit in doubt with a small commit and waits for the disk. After that, readers see
    /// what a recovery would find. Requires the turn and no open transaction.
    void settle_doubt(lock_wait::clock::time_point since) {
        try {
            writer_->wait_for_disk(synchronous::full);
            writer_->begin(since);
            run(writer_->prepared(sql::settle_doubt)).finish();
            writer_->execute_patiently(sql::commit);
            writer_->wait_for_disk(options_.synchronous);
        } catch (const error& e) {
            writer_->roll_back();
            if (e.code() == 0) { // out of memory
                throw;
            }
            throw error_of(e.code(), "an earlier commit is in doubt and cannot be settled yet");
        } catch (...) {
            writer_->roll_back();
            throw;
        }
        registry_->set_doubt(false);
    }

    void try_to_settle_doubt() noexcept {
        try {
            settle_doubt(lock_wait::clock::now());
        } catch (...) { // the next transaction tries again
        }
    }

    /// Commits into a file that was deleted or replaced would be lost. So this opens the file that is at the path now;
    /// it must have the tables, and nothing is created. Also opens a file again that was read-only.
    void expect_file_in_place() {
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
        retry_while_busy([&] {
            auto opened = std::make_unique<connection>(path_, connection::role::writer, how);
            expect_schema(opened->handle(), options_.prefix);
            writer_ = std::move(opened);
        });
    }

    /// Calls `open` until the file is not locked any more, at most `busy_limit`. Opening, and the switch to a
    /// write-ahead log, take locks for which SQLite does not call the busy handler.
    template <class Open>
    void retry_while_busy(const Open& open) const {
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

    /// Requires the turn. Looks at most once in 20 us, the time of a short transaction: a move right after the look
    /// before COMMIT could not be noticed either.
    [[nodiscard]] bool has_moved() noexcept {
        constexpr std::chrono::microseconds look_every{20};
        const auto now = lock_wait::clock::now();
        if (now - looked_at_ < look_every) {
            return false;
        }
        const bool is_gone = writer_->has_moved();
        looked_at_ = is_gone ? lock_wait::clock::time_point{} : now;
        return is_gone;
    }

    [[nodiscard]] static error moved(std::string_view doing) {
        return {error_kind::io, "sqlite: " + std::string(doing) + ": the database file was deleted, moved or replaced"};
    }

    /// Closes all connections but those in use and the application's. They all share how the file was opened.
    void forget_connections() noexcept {
        if (writer_ && writer_->is_owned()) {
            writer_.reset();
        }
        registry_->watch().forget();
        const std::lock_guard lock(mutex_);
        idle_.clear();
    }

    void finish_opening() {
        auto* const db = writer_->handle();
        registry_ = file_registry::of(db);
        path_ = sqlite3_db_filename(db, "main");
        if (options_.create) {
            migrate(db, options_.prefix, migrations);
        } else {
            expect_schema(db, options_.prefix);
        }
    }

    options options_;
    std::string path_{};
    std::shared_ptr<detail::file_registry> registry_{};
    lock_wait::clock::time_point looked_at_{}; // when the file was last seen at its path
    const bool is_application_ = false;        // the writer is the application's connection
    std::unique_ptr<connection> writer_;       // used by the transaction that has the turn

    detail::shared_commit shared_commit_{};
    queue_heads heads_{};

    std::mutex mutex_{};
    std::vector<std::unique_ptr<connection>> idle_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/draft_inserter.hpp
// Enqueue on one connection, inside a transaction. Drafts that affect no other entry are inserted several at a time.
// Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class draft_inserter {
  public:
    draft_inserter(connection& on, session& in) noexcept : on_(on), session_(in) {}

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

    /// The fields that a new entry takes from its predecessor, or else from its draft.
    struct inherited {
        std::string_view key{};
        std::string_view group{};
        std::string_view lane{};
        std::uint32_t generation = 1;
        std::optional<std::uint64_t> replaces{};
    };

    /// Encoded fields of a row. They are bound without a copy and must live until the row is inserted.
    struct encoded {
        std::string trail{};
        std::string headers{};
    };

    /// Whether the entry needs only its own row.
    [[nodiscard]] static bool is_plain(const draft& d) noexcept {
        return d.key.empty() && d.group.empty() && d.lane.empty() && d.parent.is_nil() && d.predecessor.is_nil() &&
               !d.result && d.payload.size() <= payload_in_row_max;
    }

    void insert_many(std::span<const draft> drafts, time_point now, std::vector<receipt>& receipts) {
        const auto first = last_sequence() + 1;
        std::array<encoded, rows_at_once> parts;
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
                // If some are missing, the inserted ones are those with the sequences chosen here.
                const bool is_there = all || find_sequence(on_, drafts[i].id) == first + i;
                receipts.push_back({is_there ? receipt::kind::inserted : receipt::kind::duplicate, drafts[i].id});
                if (is_there) {
                    session_.wake(drafts[i].queue);
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
            run::expect(generation < UINT32_MAX,
                        "sqlite: the file is damaged: an entry's generation is at its maximum");
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

    [[nodiscard]] receipt insert(const draft& d, const inherited& h, time_point now) {
        const auto queue = session_.number(on_, d.queue);
        const auto sequence = last_sequence() + 1;
        const bool is_blocked =
            !h.lane.empty() && run(on_.prepared(sql::lane_is_taken)).bind(queue.value, h.lane).step();
        const bool is_tied = !h.group.empty() || !h.lane.empty() || !d.parent.is_nil();
        const auto gate = d.result ? std::optional{now} : is_blocked ? std::nullopt : std::optional{due(d, now)};
        {
            encoded parts;
            run row(on_.prepared(sql::insert));
            row.bind(now);
            bind_row(row, 0, d, parts, sequence, {.number = queue, .gate = gate, .is_tied = is_tied}, now);
            if (row.finish() == 0) {
                return {receipt::kind::duplicate, d.id};
            }
        }
        session_.last_sequence = sequence;
        insert_related(d, h, queue, sequence);
        if (gate && !d.result) {
            session_.wake(d.queue);
        }
        return {receipt::kind::inserted, d.id};
    }

    /// Inserts what is stored in other tables.
    void insert_related(const draft& d, const inherited& h, queue_number queue, std::uint64_t sequence) {
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
            // A successor counts instead of its dead predecessor.
            run(on_.prepared(sql::group_enter)).bind(h.group, !h.replaces.has_value()).finish();
        }
    }

    /// The indexed values of a new row.
    struct position {
        queue_number number{};
        std::optional<time_point> gate{};
        bool is_tied = false;
    };

    static void bind_row(run& to, std::size_t index, const draft& d, encoded& parts, std::uint64_t sequence,
                         const position& at, time_point now) {
        parts.trail = encode(d.trail);
        parts.headers = encode(d.headers);
        const auto state = d.result ? state::succeeded : state::pending;
        const auto payload = d.payload.size() > payload_in_row_max ? std::nullopt : std::optional{blob{d.payload}};
        const auto result = d.result ? std::optional{blob{*d.result}} : std::nullopt;
        to.bind_from(static_cast<int>(2 + index * new_row_parameters), sequence, at.number.partition(state), at.gate,
                     state, due(d, now), d.id, d.topic, at.is_tied, d.attempts_max, d.expires_at,
                     optional_blob{parts.trail}, optional_blob{parts.headers}, optional_blob{d.progress}, result,
                     payload);
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

// ---- vouch/sqlite/detail/entry_writer.hpp
// Claim, settle, extend, nudge and cancel on one connection, inside a transaction. The contract's `apply` carries out
// the verbs: the life of an entry is read, changed in memory, and written back under the fence of its epoch and state.
// Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class entry_writer {
  public:
    entry_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        std::vector<entry> claimed;
        const auto queue = r.limit == 0 ? std::nullopt : session_.find(on_, r.queue);
        if (!queue) {
            return claimed;
        }
        const auto partition = queue->partition(state::pending);
        if (r.only.is_nil()) {
            claimed.reserve(std::min<std::size_t>(r.limit, 64));
            run row(on_.prepared(sql::due));
            take(row.bind(r.queue, partition, r.now, std::uint64_t{r.limit}), r, claimed);
        } else {
            run row(on_.prepared(sql::due_only));
            take(row.bind(r.queue, partition, r.now, r.only), r, claimed);
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

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> verdicts;
        verdicts.reserve(tickets.size());
        for (const auto& t : tickets) {
            verdicts.push_back(extend(t, now, lease));
        }
        return verdicts;
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

    /// Writes the claimed entries, each run of consecutive sequences with one statement.
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

    /// The part of a stored entry that a verb needs.
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

    /// Nothing else writes in the transaction, so a row that has changed since it was read means damage.
    static void expect_changed(int changed, std::size_t expected) {
        if (static_cast<std::size_t>(changed) != expected) {
            throw error(error_kind::corrupt,
                        "sqlite: the file is damaged: an entry cannot be written back as it was read");
        }
    }
    static void expect_one(int changed) { expect_changed(changed, 1); }

    /// The fast path for successes that affect no other entry: writes those at the front that have consecutive
    /// sequences and the same epoch and result with one statement. Returns how many; 0 if the first is of another kind,
    /// or its ticket does not match.
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
            last = first; // one of them does not match, so each gets its own verdict
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

    /// Writes a life that is pending or retrying. Without `error`, the stored one is kept.
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
            session_.wake(e.queue);
        }
    }

    /// Writes a life that stays claimed.
    void hold(const subject& e) {
        run row(on_.prepared(sql::write_hold));
        row.bind(e.sequence, e.epoch_was, e.was, e.now.lease_until, e.now.woken, e.now.updated_at);
        expect_one(row.finish());
    }

    /// Writes a life that has ended, and updates its lane, parent and group. Returns whether it completed its group.
    bool end(const subject& e, std::optional<std::string_view> error) {
        const auto& l = e.now;
        {
            const auto result = l.result ? std::optional{blob{*l.result}} : std::nullopt;
            run row(on_.prepared(sql::write_end));
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.failures, l.epoch, error, result, l.updated_at,
                     e.number.partition(l.state), l.lapses);
            expect_one(row.finish());
        }
        if (l.state == state::dead) {
            run(on_.prepared(sql::add_dead)).bind(e.number.value, e.sequence).finish();
        }
        if (!e.lane.empty() || !e.parent.is_nil()) {
            run(on_.prepared(sql::end_relations)).bind(e.sequence).finish();
        }
        if (!e.lane.empty() && run(on_.prepared(sql::lane_open_next)).bind(e.number.value, e.lane).finish() > 0) {
            session_.wake(e.queue);
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
            throw vouch::error(error_kind::corrupt, "sqlite: the file is damaged: a group has members but no row");
        }
        return row.integer_between(0, 0) == 0 && has_succeeded;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/detail/purger.hpp
// Removes ended entries, oldest first. Generations of one entry go together: the newest decides, and none is removed if
// a live entry still needs one of them.
//
// A purge looks at a bounded number of entries: first the oldest, then those after the position where the last purge
// stopped. So its cost depends on its limit, however many entries are still needed, and every entry is looked at
// eventually. The position is kept in memory only: a new connection begins with the oldest.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class purger {
  public:
    explicit purger(connection& on) noexcept : on_(on) {}

    [[nodiscard]] std::size_t purge(const purge_request& request) {
        const auto queue = find_queue(on_, request.queue);
        if (!queue || request.limit == 0) {
            return 0;
        }
        find(*queue, request);
        going_.resize(std::min(going_.size(), request.limit)); // older generations go first
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
        const auto partition = [&](state s) {
            return !request.state || *request.state == s ? queue.partition(s) : none;
        };
        const partition_pair where{partition(state::succeeded), partition(state::dead)};
        auto& until = on_.purged_until(where.succeeded, where.dead);
        auto stopped = look(where, {}, request);
        if (stopped && going_.size() >= request.limit) {
            return;
        }
        if (stopped) {
            stopped = look(where, std::max(*stopped, until), request);
        }
        until = stopped.value_or(partition_position{});
    }

    struct partition_pair {
        std::int64_t succeeded = 0;
        std::int64_t dead = 0;
    };

    /// Looks at the entries after a position. Returns where it stopped; nothing if it reached the end.
    [[nodiscard]] std::optional<partition_position> look(const partition_pair& where, partition_position at,
                                                         const purge_request& request) {
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

    /// Adds the newest generation with its predecessors, oldest first; none of them if one is still needed.
    void add_generations(std::uint64_t newest) {
        const auto first = static_cast<std::ptrdiff_t>(going_.size());
        std::optional<std::uint64_t> next = newest;
        while (next) {
            generation g{.sequence = *next, .is_newest = *next == newest};
            bool is_needed = false;
            run row(on_.prepared(sql::purge_generation));
            if (!row.bind(g.sequence).step()) {
                break; // purged earlier
            }
            row.read_all(g.replaces, g.ended, or_none{g.group}, g.has_relations, g.has_payload_apart, is_needed);
            run::expect(is_terminal(g.ended) && (!g.replaces || *g.replaces < g.sequence),
                        "sqlite: the file is damaged: an ended entry is live, or replaces a later one");
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

// ---- vouch/sqlite/detail/unchecked_writer.hpp
// The writing operations of `writer` on one connection, inside a transaction. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

inline constexpr capabilities supported{.groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true};

class unchecked_writer {
  public:
    unchecked_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return draft_inserter(on_, session_).enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) { return entries().claim(request); }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return entries().settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return entries().extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) { return entries().nudge(wanted, now); }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return entries().cancel(wanted, error, now);
    }
    [[nodiscard]] std::size_t purge(const purge_request& request) { return purger(on_).purge(request); }

  private:
    [[nodiscard]] entry_writer entries() noexcept { return entry_writer(on_, session_); }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/store.hpp
// The SQLite store and its transaction.
//
// A store is a handle: copies share one writing connection and a pool of reading connections, which are closed with the
// last copy or transaction. Transactions of one process take turns; transactions of several processes wait for SQLite's
// write lock. Reads on the store see the committed state and never wait for a writer; if the store uses a connection of
// the application, this requires that the database is in WAL mode.
//
// A store is safe for any number of threads; a transaction is used by one thread at a time. As always with SQLite,
// neither may be used across a fork.

namespace vouch {
inline namespace v0 {
namespace sqlite {

class store;

/// A transaction, made by `store::begin`. The operations are those of the concept `transaction`.
class transaction : public validated_writer<transaction> {
  public:
    transaction(transaction&& other) noexcept
        : file_(std::move(other.file_)), session_(std::exchange(other.session_, {})) {
        forget_thread();
    }
    transaction& operator=(transaction&& other) noexcept {
        if (this != &other) {
            close();
            file_ = std::move(other.file_);
            session_ = std::exchange(other.session_, {});
            forget_thread();
        }
        return *this;
    }
    ~transaction() { close(); }

    void commit() {
        static_cast<void>(expect_open());
        const auto closed = std::exchange(file_, nullptr);
        detail::translate_bad_alloc([&] { closed->commit(session_.woken_queues); });
    }

    /// The connection of this transaction. Statements that the application runs on it are part of the transaction.
    ///
    /// Do not end the transaction through it, and do not ignore its errors: some of them (a constraint with ON CONFLICT
    /// ROLLBACK, a full disk, an interrupt) make SQLite roll back everything. If a statement has ended the transaction,
    /// the next call throws `misuse` and closes it. Anything that the application's own COMMIT has stored stays stored.
    [[nodiscard]] sqlite3* connection() const {
        static_cast<void>(expect_open());
        expect_not_ended();
        return file_->writer().handle();
    }

  private:
    friend class store;
    friend class validated_reader<transaction>;
    friend class validated_writer<transaction>;

    explicit transaction(std::shared_ptr<detail::file> in) noexcept : file_(std::move(in)) {}

    [[nodiscard]] const capabilities& expect_open() const {
        if (!file_) {
            throw error(error_kind::misuse, "sqlite: the transaction is closed; call begin() for a new one");
        }
        return detail::supported;
    }

    /// Outside SQLite's transaction, every statement would be a commit of its own.
    void expect_not_ended() const {
        if (const auto status = file_->writer().status(); status != detail::transaction_status::open) {
            close();
            detail::translate_bad_alloc([&] { throw detail::ended_by_application(status, false); });
        }
    }

    void close() const noexcept {
        if (const auto closed = std::exchange(file_, nullptr)) {
            closed->roll_back();
        }
    }

    template <class Operation>
    auto read(const Operation& operation) const {
        return use([&](detail::connection& on) { return operation(detail::entry_reader(on)); });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        return use([&](detail::connection& on) {
            session_.forget_stored();
            return operation(detail::unchecked_writer(on, session_));
        });
    }

    template <class Use>
    auto use(const Use& use) const {
        expect_not_ended();
        file_->registry().set_thread();
        return detail::translate_bad_alloc([&] { return use(file_->writer()); });
    }

    /// After a move, the thread that uses the transaction next is its thread.
    void forget_thread() const noexcept {
        if (file_) {
            file_->registry().forget_thread();
        }
    }

    mutable std::shared_ptr<detail::file> file_; // null: closed; a read that fails closes, too
    detail::session session_{};
};

/// The store.
class store : public validated_reader<store> {
  public:
    using transaction = sqlite::transaction;
    static constexpr int contract_level = vouch::contract_level;

    /// Opens the file in WAL mode. By default, creates the file and the tables if they do not exist.
    explicit store(const std::string& path, options how = {})
        : file_(detail::translate_bad_alloc([&] { return std::make_shared<detail::file>(path, std::move(how)); })) {}

    /// Writes through a connection of the application, which is neither configured nor closed. Reads use connections of
    /// the store's own to the same file. While a transaction of the store is open, everything that the application does
    /// on the connection is part of it. The connection must stay open as long as a copy of the store, or a transaction,
    /// is in use.
    explicit store(sqlite3* connection, options how = {})
        : file_(
              detail::translate_bad_alloc([&] { return std::make_shared<detail::file>(connection, std::move(how)); })) {
    }

    // Moving copies, so that a handle always has a store.
    store(const store&) = default;
    store& operator=(const store&) = default;
    ~store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::supported; }

    /// Waits for earlier transactions of this process, then for those of other processes. Throws `busy` after
    /// `options::busy_limit`; `misuse` if the open transaction was last used by this thread and not moved since,
    /// because it would wait for itself.
    [[nodiscard]] transaction begin() {
        detail::translate_bad_alloc([&] { file_->begin(); });
        return transaction(file_);
    }

    /// As `begin`, `enqueue` and `commit`. Threads that call it at the same time share a transaction, and so its wait for
    /// the disk.
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return detail::translate_bad_alloc([&] {
            file_->registry().expect_no_transaction(); // the thread that leads could not notice it
            return file_->shared_commit().enqueue(drafts, now, [&](auto since) {
                detail::translate_bad_alloc([&] { file_->begin(since); }); // others wait for the thread that begins
                return transaction(file_);
            });
        });
    }

    /// A number that grows with every commit that may have made work in the queue due sooner.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::supported.limits);
        const auto now = look(queue);
        return now.count + now.foreign;
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`. Notices commits of this process at once. Those of other processes it notices within milliseconds where the
    /// system tells of writes to a file (Linux), otherwise within `options::watch_every`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        using clock = std::chrono::steady_clock;
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::supported.limits.lease_max);
        const auto until = clock::now() + at_most;
        validate_queue(queue, detail::supported.limits);
        for (;;) {
            const auto now = look(queue);
            const auto present = now.count + now.foreign;
            if (present != seen || clock::now() >= until || stop.stop_requested()) {
                return present;
            }
            file_->registry().wake_ups().wait(*file_, queue, now, until, stop);
        }
    }

  private:
    friend class validated_reader<store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return detail::supported; }

    /// Lends a reading connection to the operation.
    template <class Operation>
    auto read(const Operation& operation) const {
        struct loan {
            detail::file& of;
            std::unique_ptr<detail::connection> reader;
            ~loan() { of.give_back(std::move(reader)); }
        };
        return detail::translate_bad_alloc([&] {
            const loan lent{*file_, file_->take_reader()};
            return operation(detail::entry_reader(*lent.reader));
        });
    }

    [[nodiscard]] detail::wake_ups::start look(std::string_view queue) const {
        return detail::translate_bad_alloc([&] {
            detail::wake_ups::start out{.count = file_->registry().wake_ups().count_of(queue),
                                        .commits = file_->commits()};
            out.foreign = file_->count_foreign(queue);
            return out;
        });
    }

    std::shared_ptr<detail::file> file_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/audit.hpp
// An audit trail in the same file: one row for each ended entry and each completed group. The row is written in the
// transaction that records the outcome, so both are stored or neither.
//
//   vouch::sqlite::audit_table audit(store);
//   worker.audit(audit);
//
// Rows are only appended; removing them is up to the application. Any number of threads may use one object.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// An audit hook for a runner or worker.
class audit_table {
  public:
    /// Creates the table if it does not exist.
    explicit audit_table(store& in, std::string prefix = std::string(default_prefix)) : prefix_(std::move(prefix)) {
        const auto sql = schema(prefix_);
        auto tx = in.begin();
        detail::execute(tx.connection(), sql, "create the audit table");
        tx.commit();
    }

    /// The statement that creates the table, for a migration tool.
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

    /// Appends a `vouch::audit_line`. If it throws, the outcome is not stored either; the runner keeps it and settles it
    /// again later.
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

// ---- vouch/sqlite/history.hpp
// A history of attempts in the same file: one row for each settled outcome, retries included. The row is written in the
// transaction that records the outcome, so both are stored or neither. `vouch show` prints the rows of an entry.
//
//   vouch::sqlite::history_table history(store);
//   worker.history(history);
//
// The table stays bounded: an append removes the rows that are too many or too old. Any number of threads may use one
// object.

namespace vouch {
inline namespace v0 {
namespace sqlite {

struct history_options {
    std::string prefix = std::string(default_prefix);
    duration keep = std::chrono::hours{24 * 7}; ///< rows older than this are removed by later appends
    std::uint32_t lines_max = 100;              ///< rows of one entry; the newest are kept
};

/// A history hook for a runner or worker.
class history_table {
  public:
    /// Creates the table if it does not exist.
    explicit history_table(store& in, history_options how = {}) : how_(std::move(how)) {
        const auto sql = schema(how_.prefix);
        auto tx = in.begin();
        detail::execute(tx.connection(), sql, "create the history table");
        tx.commit();
    }

    /// The statements that create the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        validate_prefix(prefix);
        return detail::with_prefix(R"(CREATE TABLE IF NOT EXISTS @history (
  id BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  what TEXT NOT NULL,
  at INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (id, epoch)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS @history_at ON @history (at);
)",
                                   prefix);
    }

    /// Appends a line. If it throws, the outcome is not stored either; the runner keeps it and settles it again later.
    void operator()(transaction& tx, const attempt_line& line) const {
        // An id can only be there with this epoch if its entry was purged and stored again.
        const detail::statement insert(
            tx.connection(),
            detail::with_prefix(
                R"(INSERT OR REPLACE INTO @history (id, epoch, what, at, claimed_at, attempt, worker, error)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                how_.prefix));
        detail::run(insert)
            .bind(line.id, line.epoch, name_of(line.what), line.at, line.claimed_at, line.attempt, line.worker,
                  line.error)
            .finish();
        const detail::statement surplus(
            tx.connection(), detail::with_prefix("DELETE FROM @history WHERE id = ?1 AND epoch <= ?2", how_.prefix));
        if (line.epoch > how_.lines_max) {
            detail::run(surplus).bind(line.id, line.epoch - how_.lines_max).finish();
        }
        // Two for one, so that the table shrinks after `keep` was made shorter.
        const detail::statement old(
            tx.connection(),
            detail::with_prefix(
                "DELETE FROM @history WHERE (id, epoch) IN (SELECT id, epoch FROM @history WHERE at < ?1"
                " ORDER BY at LIMIT 2)",
                how_.prefix));
        detail::run(old).bind(later(line.at, -how_.keep)).finish();
    }

  private:
    history_options how_;
};

/// The lines of an entry, oldest first; none if there is no history table.
[[nodiscard]] inline std::vector<attempt_line> history_of(sqlite3* connection, const id& which,
                                                          std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement exists(connection,
                                   "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    const auto table = detail::with_prefix("@history", prefix);
    if (!detail::run(exists).bind(table).step()) {
        return {};
    }
    const detail::statement lines(connection, detail::with_prefix(R"(SELECT id, epoch, at, claimed_at, attempt, worker,
 error, what FROM @history WHERE id = ?1 ORDER BY epoch)",
                                                                  prefix));
    std::vector<attempt_line> out;
    detail::run row(lines);
    row.bind(which);
    while (row.step()) {
        auto& line = out.emplace_back();
        std::string what;
        row.read_all(line.id, line.epoch, line.at, line.claimed_at, line.attempt, line.worker, line.error, what);
        for (const auto kind : all_attempt_kinds) {
            line.what = name_of(kind) == what ? kind : line.what;
        }
        detail::run::expect(name_of(line.what) == what,
                            "sqlite: the file is damaged: an attempt has an unknown outcome");
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/inspect.hpp
// Questions to a database that are not part of the contract: its schema version, its queues, its lanes and its ids. Each
// function runs on a connection of the caller and changes nothing.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The schema version of the tables with this prefix; nothing if there are no tables. It may differ from
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

/// The names of all queues that have an entry, sorted.
[[nodiscard]] inline std::vector<std::string> queue_names(sqlite3* connection,
                                                          std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement names(connection, detail::with_prefix(R"(SELECT name FROM @queues
 WHERE EXISTS (SELECT 1 FROM @entries WHERE partition BETWEEN number * 4 AND number * 4 + 3) ORDER BY name)",
                                                                  prefix));
    std::vector<std::string> out;
    detail::run row(names);
    while (row.step()) {
        out.emplace_back(row.bytes(0));
    }
    return out;
}

/// Entries by queue and state. Reads only columns that every schema version has, so that it works with tables of any
/// version. Reads every row.
[[nodiscard]] inline std::map<std::string, state_counts>
counts_of_any_schema(sqlite3* connection, std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement counts(connection, detail::with_prefix(R"(SELECT name, state, count(*)
 FROM @entries JOIN @queues ON number = partition >> 2 GROUP BY name, state)",
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

/// A lane of a queue.
struct lane_name {
    std::string queue{};
    std::string lane{};
};

/// The entry that holds the lane: the first live one. Nothing if the lane is empty.
[[nodiscard]] inline std::optional<id> head_of_lane(sqlite3* connection, const lane_name& which,
                                                    std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement head(connection, detail::with_prefix(R"(SELECT e.id FROM @relations r
 JOIN @entries e ON e.sequence = r.sequence WHERE r.queue = (SELECT number FROM @queues WHERE name = ?1)
 AND r.lane = ?2 AND r.is_live = 1 ORDER BY r.sequence LIMIT 1)",
                                                                 prefix));
    detail::run row(head);
    if (!row.bind(which.queue, which.lane).step()) {
        return std::nullopt;
    }
    id out;
    row.read_all(out);
    return out;
}

/// Ids from `first` to `last`.
struct id_range {
    id first{};
    id last{};
    std::size_t limit = 100; ///< at most this many
};

/// The ids of the range that are stored, ascending. Works with tables of any schema version.
[[nodiscard]] inline std::vector<id> ids_between(sqlite3* connection, const id_range& range,
                                                 std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement ids(
        connection,
        detail::with_prefix("SELECT id FROM @entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3", prefix));
    detail::run row(ids);
    row.bind(range.first, range.last, std::uint64_t{range.limit});
    std::vector<id> out;
    while (row.step()) {
        row.read_all(out.emplace_back());
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/joined.hpp
// A writer inside a transaction that the application has opened on its own connection. Business rows and entries are
// then committed together or not at all:
//
//   sqlite::joined writer(connection);          // once per connection, or once per transaction
//   exec(connection, "BEGIN IMMEDIATE");        // by the application
//   exec(connection, "INSERT INTO orders ...");
//   writer.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // by the application
//
// It never commits, and its destructor changes nothing. Each call is all or nothing: it runs in a savepoint. `conflict`
// means that the transaction began by reading and another connection has written since: roll back and begin again, best
// with BEGIN IMMEDIATE. A COMMIT that fails with an I/O error is in doubt: until the next successful commit, recovery
// after a crash may still apply it. Destroy the object before you close the connection. Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The operations are those of the concept `writer`. Each throws `misuse` if no transaction is open on the connection.
class joined : public validated_writer<joined> {
  public:
    /// Requires that the tables exist: `migrate(connection)` creates them.
    explicit joined(sqlite3* connection, std::string prefix = std::string(default_prefix))
        : member_(
              detail::translate_bad_alloc([&] { return std::make_unique<member>(connection, std::move(prefix)); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class validated_reader<joined>;
    friend class validated_writer<joined>;

    /// The connection, known to the file's registry by this object's address.
    struct member {
        member(sqlite3* db, std::string prefix)
            : on(db, {.prefix = std::move(prefix)}), registry(detail::file_registry::of(db)) {
            detail::expect_schema(db, on.prefix());
            // Prepared in advance, so that a call can be undone when there is no memory left.
            for (const auto which : {detail::sql::savepoint, detail::sql::release, detail::sql::roll_back_to}) {
                std::ignore = on.prepared(which);
            }
        }
        member(const member&) = delete;
        member& operator=(const member&) = delete;
        ~member() { registry->part(this); }

        detail::connection on;
        std::shared_ptr<detail::file_registry> registry;
    };

    [[nodiscard]] const capabilities& expect_open() const {
        if (!member_ || !member_->on.in_transaction()) {
            throw error(error_kind::misuse,
                        "sqlite: joined: no transaction is open on the application's connection; begin one first");
        }
        detail::translate_bad_alloc([&] {
            member_->registry->join(member_.get(), member_->on.handle());
            // The commit of a transaction that writes settles the doubt.
            if (member_->registry->is_in_doubt() &&
                sqlite3_txn_state(member_->on.handle(), "main") != SQLITE_TXN_WRITE) {
                throw error(error_kind::io, "sqlite: joined: an earlier commit is in doubt; begin a transaction of the "
                                            "store, or this one with BEGIN IMMEDIATE, to settle it");
            }
        });
        return detail::supported;
    }

    /// Each call undoes itself, and the transaction belongs to the application.
    void close() const noexcept {}

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] { return operation(detail::entry_reader(member_->on)); });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        auto& on = member_->on;
        on.execute(detail::sql::savepoint);
        try {
            return detail::translate_bad_alloc([&] {
                detail::session in;
                auto answer = operation(detail::unchecked_writer(on, in));
                member_->registry->wake(on.handle(), in.woken_queues);
                on.execute(detail::sql::release);
                return answer;
            });
        } catch (...) {
            undo();
            throw;
        }
    }

    /// Undoes the call, unless SQLite has rolled back everything. If that fails, rolls back the whole transaction, so
    /// that half a call is never committed.
    void undo() noexcept {
        auto& on = member_->on;
        try {
            if (on.in_transaction()) {
                on.execute(detail::sql::roll_back_to);
                on.execute(detail::sql::release);
            }
        } catch (...) {
            on.roll_back();
        }
    }

    std::unique_ptr<member> member_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch

// ---- vouch/sqlite/schema.hpp
// The tables of a store: created and migrated on request, or as text for a migration tool.

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The schema version of this library.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Creates the tables, or migrates older ones, in one transaction: the one that is open on the connection, or its own.
/// Throws `unsupported`, and changes nothing, if the tables are newer than this library. Throws `full` if memory runs
/// out; if even the rollback fails then, its transaction stays open and the caller must roll back.
inline void migrate(sqlite3* connection, std::string_view prefix = default_prefix) {
    detail::translate_bad_alloc([&] { detail::migrate(connection, prefix, detail::migrations); });
}

/// The statements that create all tables and indexes in an empty database, for a migration tool.
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

#endif // VOUCH_SINGLE_HEADER_SQLITE
