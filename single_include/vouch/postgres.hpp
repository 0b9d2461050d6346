// SPDX-License-Identifier: MIT
// The PostgreSQL store: durable, shared between processes that write at the same time, and able to write in the
// application's own transactions. Requires libpq 14 or newer and PostgreSQL 12 or newer.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_POSTGRES
#define VOUCH_SINGLE_HEADER_POSTGRES

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

// ---- vouch/postgres/detail/parameters.hpp
// The parameters of a statement, in PostgreSQL's binary format: single values and arrays of them. Numbers are big-endian.

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

// ---- vouch/postgres/detail/rows.hpp
// The answer to a statement: rows of values in PostgreSQL's binary format. A value that the store cannot have written
// throws `corrupt`.

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

// ---- vouch/postgres/detail/sql_parts.hpp
// Parts that several statements share, and the longest statement. See `sql.hpp`.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct sql_part {
    std::string_view name;
    std::string_view text;
};

inline constexpr std::array sql_parts{
    // The columns that `read_entry` reads.
    sql_part{"{entry}", R"(e.sequence, e.id, e.queue, e.topic, e.key, e."group", e.lane, e.parent, e.predecessor,
 e.generation, e.attempts_max, e.expires_at, e.created_at, e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.worker, e.last_error, e.updated_at, e.last_attempt_at, e.trail,
 e.headers, e.progress, e.result)"},
    // The columns that `read_claimed` reads: the others have known values after a claim.
    sql_part{"{unknown}", R"(e.sequence, e.id, e.topic, e.key, e."group", e.lane, e.parent, e.predecessor, e.generation,
 e.attempts_max, e.expires_at, e.created_at, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.last_error, e.trail,
 e.headers, e.progress, e.payload)"},
    sql_part{"{payload}", "CASE WHEN $6::boolean THEN e.payload END"},
    sql_part{"{filters}", R"(e.sequence > $2::bigint AND ($3::smallint IS NULL OR e.state = $3::smallint)
 AND ($4::text = '' OR e.topic = $4::text))"},
    sql_part{"{claimed}",
             R"(state = 2, attempts = e.attempts + CASE WHEN e.state = 2 AND e.lapses = 0 THEN 0 ELSE 1 END,
 lapses = e.lapses + CASE WHEN e.state = 2 THEN 1 ELSE 0 END, epoch = e.epoch + 1, gate = $4::bigint, woken = false,
 worker = $5::text, updated_at = $2::bigint, last_attempt_at = $2::bigint)"},
    // Ends entries that reach no others, if their tickets hold. $1 now, $2 ids, $3 epochs, $4 results.
    sql_part{"{succeed}", R"(UPDATE @entries e SET state = 3, gate = NULL, result = s.result, updated_at = $1::bigint,
 lapses = 0, woken = false FROM unnest($2::uuid[], $3::bigint[], $4::bytea[]) AS s (id, epoch, result)
 WHERE e.id = s.id AND e.epoch = s.epoch AND e.state = 2
 AND e."group" IS NULL AND e.lane IS NULL AND e.parent IS NULL)"},
    // Stores drafts. $1 now, $20 and $21 the queue and topic of drafts that have NULL there; the other parameters are arrays
    // with an element for each draft, or empty if all are NULL: each array costs the server time. It skips drafts whose id
    // or key is stored, after waiting for the transaction that has stored it.
    sql_part{"{insert}", R"(INSERT INTO @entries
 (sequence, id, gate, due_at, attempts, lapses, failures, epoch, updated_at, created_at, expires_at, attempts_max,
 generation, replaces, state, woken, newest, parent, predecessor, queue, topic, key, "group", lane, worker, last_error,
 trail, headers, progress, result, payload)
 SELECT nextval('@sequence'), d.id,
 CASE WHEN d.result IS NULL AND d.lane IS NULL THEN coalesce(d.due_at, $1::bigint) END, coalesce(d.due_at, $1::bigint),
 0, 0, 0, 0, $1::bigint, $1::bigint, d.expires_at, coalesce(d.attempts_max, 0), coalesce(d.generation, 1), d.replaces,
 CASE WHEN d.result IS NULL THEN 0 ELSE 3 END, false, true, d.parent, d.predecessor, coalesce(d.queue, $20::text),
 coalesce(d.topic, $21::text), d.key, d."group", d.lane, '', '', d.trail, d.headers, d.progress, d.result, d.payload
 FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::bigint[],
 $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[], $16::bytea[], $17::uuid[],
 $18::bigint[], $19::bigint[]) AS d (id, queue, topic, key, "group", lane, parent, due_at, expires_at, attempts_max, trail,
 headers, progress, result, payload, predecessor, replaces, generation)
 ON CONFLICT DO NOTHING)"},
    // The columns that the purge reads. The last one says whether a live entry needs this one. Its subqueries are such that
    // the server cannot read all groups or children at once.
    sql_part{"{ended}", R"(e.updated_at, e.sequence, e.id, e.state, e."group", e.predecessor, e.replaces, e.newest,
 coalesce((SELECT g.live > 0 FROM @groups g WHERE g.name = e."group"), false)
 OR (SELECT 1 FROM @entries c WHERE c.parent = e.id AND c.state < 3 LIMIT 1) IS NOT NULL)"},
};

/// Stores drafts and counts the members of their groups; see the part `{insert}`. The successor of a dead entry adds nothing
/// to the unfinished members of its group: its predecessor was one.
inline constexpr std::string_view insert_text = R"(WITH stored AS ({insert} RETURNING id, "group", replaces),
 counted AS (INSERT INTO @groups AS g (name, members, live, unfinished)
 SELECT s."group", count(*), count(*), count(*) FILTER (WHERE s.replaces IS NULL)
 FROM stored s WHERE s."group" IS NOT NULL GROUP BY s."group" ORDER BY s."group"
 ON CONFLICT (name) DO UPDATE SET members = g.members + excluded.members, live = g.live + excluded.live,
 unfinished = g.unfinished + excluded.unfinished)
 SELECT s.id, txid_current() FROM stored s)";

/// Stores one draft that has neither group nor lane nor predecessor, and wakes those who listen. $1 now, $2 the channel.
inline constexpr std::string_view insert_one_text = R"(INSERT INTO @entries
 (sequence, id, gate, due_at, attempts, lapses, failures, epoch, updated_at, created_at, expires_at, attempts_max,
 generation, state, woken, newest, parent, queue, topic, key, worker, last_error, trail, headers, progress, result,
 payload)
 VALUES (nextval('@sequence'), $3::uuid, CASE WHEN $14::bytea IS NULL THEN $8::bigint END, $8::bigint, 0, 0, 0, 0,
 $1::bigint, $1::bigint, $9::bigint, $10::bigint, 1, CASE WHEN $14::bytea IS NULL THEN 0 ELSE 3 END, false, true,
 $7::uuid, $4::text, $5::text, $6::text, '', '', $11::bytea, $12::bytea, $13::bytea, $14::bytea, $15::bytea)
 ON CONFLICT DO NOTHING RETURNING txid_current(), CASE WHEN $14::bytea IS NULL AND EXISTS (SELECT 1 FROM @listeners)
 THEN pg_notify($2::text, $4::text)::text END)";

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/prefix.hpp
// The prefix of all tables of a store, with or without the schema in which they are: `vouch_` means `public.vouch_`,
// and `billing.` means tables without a prefix in the schema `billing`. Several stores with different prefixes can share
// one database.

namespace vouch {
inline namespace v0 {
namespace postgres {

inline constexpr std::string_view default_prefix = "vouch_";

/// Throws `invalid_argument` unless the prefix is `tables`, `schema.tables` or `schema.`, where each part has only
/// lower-case letters, digits and underscores and does not begin with a digit, a schema has at most 63 bytes and does not
/// begin with `pg_`, and the rest at most 40.
inline void validate_prefix(std::string_view prefix) {
    const auto refuse = [](const std::string& why) {
        throw error(error_kind::invalid_argument, "postgres: options: prefix " + why);
    };
    const auto fits = [](std::string_view name, std::size_t size_max) {
        const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
        const auto is_allowed = [&](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_'; };
        return name.size() <= size_max && std::all_of(name.begin(), name.end(), is_allowed) &&
               (name.empty() || !is_digit(name.front()));
    };
    const auto dot = prefix.find('.');
    const auto schema = dot == std::string_view::npos ? std::string_view("public") : prefix.substr(0, dot);
    const auto tables = dot == std::string_view::npos ? prefix : prefix.substr(dot + 1);
    constexpr std::size_t schema_max = 63;
    constexpr std::size_t tables_max = 40;
    if (prefix.empty() || schema.empty() || !fits(schema, schema_max) || !fits(tables, tables_max)) {
        refuse("has " + std::to_string(prefix.size()) +
               " bytes; it must be 1 to 40 lower-case letters, digits and underscores that do not begin with a digit, "
               "after the name of a schema and a dot if it is not in public");
    }
    if (schema.substr(0, 3) == "pg_") {
        refuse("names a schema that begins with pg_, which PostgreSQL reserves; choose another");
    }
}

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/table_names.hpp
// Puts the names of the tables into SQL text. Nothing else is ever put into SQL text: names and payloads of entries are
// parameters.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// The two parts of a prefix. Throws `invalid_argument` if it is not valid.
struct table_names {
    explicit table_names(std::string_view prefix) {
        validate_prefix(prefix);
        const auto dot = prefix.find('.');
        schema = dot == std::string_view::npos ? "public" : prefix.substr(0, dot);
        tables = dot == std::string_view::npos ? prefix : prefix.substr(dot + 1);
    }

    /// `text` with the prefix of tables in place of every `@`, and the prefix of indexes, whose schema is that of their
    /// table, in place of every `#`.
    [[nodiscard]] std::string in(std::string_view text) const {
        std::string out;
        out.reserve(text.size() + 16 * (schema.size() + tables.size()));
        for (const char c : text) {
            if (c == '@') {
                out.append(1, '"').append(schema).append("\".");
            }
            if (c == '@' || c == '#') {
                out += tables;
            } else {
                out += c;
            }
        }
        return out;
    }

    /// The channel for NOTIFY. A hash, because a channel's name is shorter than a schema's and a prefix may be together.
    [[nodiscard]] std::string channel() const {
        std::uint64_t sum = 0;
        for (const char c : schema + '.' + tables) {
            sum = vouch::detail::mix(sum ^ static_cast<unsigned char>(c));
        }
        return "vouch_" + std::to_string(sum);
    }

    std::string schema;
    std::string tables;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/sql.hpp
// All statements of the store, as data. `table_names` explains `@`; a word in braces is a part that several statements
// share. The tests look at the plan of each statement with empty and with large tables.
//
// A write that has an answer also returns the number of its transaction, with which a commit in doubt is resolved.
// Rows are locked in one order: lanes by name, entries by sequence, groups by name. Only `succeed` locks entries in the
// order in which the caller names them, which is that of the claim.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

enum class sql : std::uint8_t {
    begin,
    begin_configured,
    commit,
    roll_back,
    savepoint,
    release,
    roll_back_to,
    expect_isolation,
    configure,
    notify,
    oldest_snapshot,
    find,
    list_group,
    list_parent,
    list_key,
    list_dead,
    list_live,
    list_all,
    counts,
    next_due,
    lock_new_lanes,
    insert,
    insert_ungrouped,
    insert_one,
    insert_all,
    open_lanes,
    drop_lanes,
    owner_by_id,
    owner_by_key,
    predecessor,
    successor,
    set_replaced,
    claim,
    claim_only,
    claim_unlapsed,
    is_due,
    succeed,
    succeed_all,
    lock_lanes,
    lock_entries,
    write,
    lock_groups,
    group_end,
    purge_look,
    purge_read,
    purge_lock,
    purge_delete,
    group_leave,
    group_drop,
};

/// The SQLSTATE with which `expect_isolation`, `insert_all` and `succeed_all` fail: division by zero. No other statement
/// divides.
inline constexpr std::string_view wrong_isolation = "22012";
inline constexpr std::string_view not_all_stored = "22012";
inline constexpr std::string_view not_all_applied = "22012";

struct sql_text {
    sql which;
    std::string_view text;
};

inline constexpr std::array statements{
    // The verdicts rest on row locks, and a snapshot that is older than a lock would show what was true before it.
    sql_text{sql::begin, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    sql_text{sql::begin_configured, "BEGIN"}, // where these are settings of the connection
    sql_text{sql::commit, "COMMIT"},
    sql_text{sql::roll_back, "ROLLBACK"},
    sql_text{sql::savepoint, "SAVEPOINT vouch_call"},
    sql_text{sql::release, "RELEASE SAVEPOINT vouch_call"},
    sql_text{sql::roll_back_to, "ROLLBACK TO SAVEPOINT vouch_call"},
    // A check without an answer to read: it divides by zero if a verdict could rest on a snapshot older than its locks.
    sql_text{sql::expect_isolation,
             "SELECT 1 / CASE current_setting('transaction_isolation') WHEN 'repeatable read' THEN 0 ELSE 1 END"},
    // For one transaction: what the pool sets once on connections that are the store's alone.
    sql_text{sql::configure, R"(SELECT set_config('lock_timeout', $1::text, true),
 set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
 set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
 set_config('jit', 'off', true))"},
    // NOTIFY makes commits wait for each other, so it is used only if a process listens.
    sql_text{sql::notify, R"(SELECT pg_notify($1::text, q) FROM unnest($2::text[]) AS q
 WHERE EXISTS (SELECT 1 FROM @listeners))"},

    // The transaction up to which the oldest snapshot sees all: of another session, a standby, or a prepared transaction. (Only
    // autovacuum has no user, and only a standby no database. The type of a session is hidden from most roles.)
    sql_text{sql::oldest_snapshot, R"(SELECT x::text FROM (SELECT backend_xmin AS x FROM pg_stat_activity
 WHERE pid <> pg_backend_pid() AND usesysid IS NOT NULL AND (datid IS NULL OR datname = current_database()) UNION ALL SELECT xmin FROM pg_replication_slots UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()) s
 WHERE x IS NOT NULL ORDER BY age(x) DESC LIMIT 1)"},

    // Reading. The lists: $1 path, $2 after, $3 state, $4 topic, $5 limit, $6 payloads, $7 queue.
    sql_text{sql::find, "SELECT {entry}, e.payload FROM @entries e WHERE e.id = $1::uuid"},
    sql_text{sql::list_group, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e."group" = $1::text AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::list_parent, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.parent = $1::uuid AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    // From the newest generation to its predecessors, because only the newest is in the index of keys.
    sql_text{sql::list_key, R"(WITH RECURSIVE family AS (
 SELECT n.id, n.predecessor, n.replaces FROM @entries n WHERE n.queue = $7::text AND n.key = $1::text AND n.newest
 UNION ALL SELECT p.id, p.predecessor, p.replaces
 FROM family f JOIN @entries p ON p.id = f.predecessor AND p.sequence = f.replaces)
 SELECT {entry}, {payload} FROM family f JOIN @entries e ON e.id = f.id
 WHERE {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::list_dead, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.queue = $1::text AND e.state = 4 AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    // Live entries are found by their gates, or by their lanes if they are blocked: there may be many ended ones.
    sql_text{sql::list_live, R"(SELECT {entry}, {payload} FROM @entries e WHERE e.id = ANY (ARRAY(SELECT s.id FROM (
 SELECT e.id, e.sequence FROM @entries e WHERE e.queue = $1::text AND e.gate IS NOT NULL AND {filters}
 UNION ALL SELECT e.id, e.sequence FROM @entries e
 WHERE e.queue = $1::text AND e.lane IS NOT NULL AND e.state < 3 AND e.gate IS NULL AND {filters}
 ) s ORDER BY s.sequence LIMIT $5::bigint)) ORDER BY e.sequence)"},
    sql_text{sql::list_all, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.queue = $1::text AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::counts, R"(SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
 count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3), count(*) FILTER (WHERE state = 4)
 FROM @entries WHERE queue = $1::text)"},
    sql_text{sql::next_due, R"(SELECT gate FROM @entries
 WHERE queue = $1::text AND gate >= $2::bigint ORDER BY gate, sequence LIMIT 1)"},

    // Enqueue. A lane has a row as long as it has a live entry. Sequences are drawn after the lane is locked, so that
    // they follow the order of commits in the lane. Entries with a lane are stored blocked; then the lane is opened.
    sql_text{sql::lock_new_lanes, R"(INSERT INTO @lanes SELECT * FROM unnest($1::text[], $2::text[])
 ON CONFLICT (queue, lane) DO UPDATE SET lane = excluded.lane)"},
    sql_text{sql::insert, insert_text},
    sql_text{sql::insert_ungrouped, "{insert} RETURNING id, txid_current()"},
    sql_text{sql::insert_one, insert_one_text},
    // All of them, or an error and none: it divides by zero if one was not stored.
    sql_text{sql::insert_all, R"(WITH stored AS ({insert} RETURNING 1)
 SELECT txid_current() / CASE count(*) WHEN cardinality($2::uuid[]) THEN 1 ELSE 0 END FROM stored)"},
    sql_text{sql::open_lanes, R"(UPDATE @entries e SET gate = e.due_at
 FROM unnest($1::text[], $2::text[]) AS l (queue, lane)
 WHERE e.queue = l.queue AND e.sequence = (SELECT h.sequence FROM @entries h
 WHERE h.queue = l.queue AND h.lane = l.lane AND h.state < 3 ORDER BY h.sequence LIMIT 1)
 AND e.gate IS NULL AND e.state < 3 RETURNING e.queue, e.gate)"},
    sql_text{sql::drop_lanes, R"(DELETE FROM @lanes d USING unnest($1::text[], $2::text[]) AS l (queue, lane)
 WHERE d.queue = l.queue AND d.lane = l.lane AND NOT EXISTS (SELECT 1 FROM @entries h
 WHERE h.queue = l.queue AND h.lane = l.lane AND h.state < 3))"},
    // The owner of an id or key is kept from being purged or replaced, but can be claimed and settled.
    sql_text{sql::owner_by_id, "SELECT e.id FROM @entries e WHERE e.id = $1::uuid FOR KEY SHARE"},
    sql_text{sql::owner_by_key, R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.key = $2::text AND e.newest
 AND NOT EXISTS (SELECT 1 FROM @entries i WHERE i.id = $3::uuid) FOR KEY SHARE)"},
    sql_text{sql::predecessor, R"(SELECT e.sequence, e.state, e.queue, e.key, e."group", e.lane, e.generation, e.newest
 FROM @entries e WHERE e.id = $1::uuid FOR UPDATE)"},
    sql_text{sql::successor, R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.replaces = $2::bigint FOR KEY SHARE)"},
    sql_text{sql::set_replaced, R"(UPDATE @entries SET newest = false
 WHERE queue = $1::text AND sequence = $2::bigint AND newest)"},

    // Claim: $1 queue, $2 now, $3 limit or the one id, $4 end of the lease, $5 worker, $6 the lowest gate to look at. Rows
    // are named by id, here and in the purge: the server has only one index to find them, whatever it knows about the
    // tables.
    sql_text{sql::claim, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY (ARRAY(
 SELECT c.id FROM @entries c WHERE c.queue = $1::text AND c.gate >= $6::bigint AND c.gate <= $2::bigint
 ORDER BY c.gate, c.sequence LIMIT $3::bigint FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING txid_current(), {unknown})"},
    sql_text{sql::claim_only, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY (ARRAY(
 SELECT c.id FROM @entries c WHERE c.id = $3::uuid AND (c.queue = $1::text AND c.gate <= $2::bigint) IS TRUE
 FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING txid_current(), {unknown})"},

    // The same in one round trip with the commit. It claims none if one of the entries has an expired lease; `is_due` then
    // says whether there are any. $2 now, $3 the lowest gate.
    sql_text{sql::claim_unlapsed, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY ((
 SELECT CASE WHEN NOT bool_or(d.state = 2 OR d.lapses > 0) THEN array_agg(d.id) END FROM (
 SELECT c.id, c.state, c.lapses FROM @entries c WHERE c.queue = $1::text AND c.gate >= $6::bigint AND c.gate <= $2::bigint
 ORDER BY c.gate, c.sequence LIMIT $3::bigint FOR NO KEY UPDATE SKIP LOCKED) d)::uuid[])
 RETURNING txid_current(), {unknown})"},
    sql_text{sql::is_due, R"(SELECT EXISTS (SELECT 1 FROM @entries c
 WHERE c.queue = $1::text AND c.gate >= $3::bigint AND c.gate <= $2::bigint))"},

    // The usual settle: successes that reach no other entry. $1 now. It returns how many were applied; and which, if not
    // all were.
    sql_text{sql::succeed,
             R"(WITH done AS ({succeed} RETURNING e.id)
 SELECT n.number, d.id FROM (SELECT count(*) AS count, CASE WHEN count(*) > 0 THEN txid_current() END AS number FROM done) n
 LEFT JOIN done d ON n.count <> cardinality($2::uuid[]) WHERE n.count > 0)"},
    // The same in one round trip with the next claim and the commit: it divides by zero if one was not applied.
    sql_text{sql::succeed_all, R"(WITH done AS ({succeed} RETURNING 1)
 SELECT txid_current() / CASE count(*) WHEN cardinality($2::uuid[]) THEN 1 ELSE 0 END FROM done)"},

    // The verbs: lock and read, apply in memory, write back under the fence of epoch and state. $1 ids; $2 those of them
    // that may end, whose lanes are locked first. Their parents are locked with them, but only if they will end: a claim
    // of another transaction passes over what is locked. $3 the epoch that a settle needs, or NULL for a cancel; $4 now.
    sql_text{sql::lock_lanes, R"(SELECT l.queue, l.lane FROM @lanes l WHERE (l.queue, l.lane) IN (
 SELECT e.queue, e.lane FROM @entries e WHERE e.id = ANY ($1::uuid[]) AND e.lane IS NOT NULL)
 ORDER BY l.queue, l.lane FOR UPDATE)"},
    sql_text{sql::lock_entries, R"(SELECT e.sequence, e.id, e.queue, e."group", e.lane, e.parent, e.state, e.attempts,
 e.lapses, e.failures, e.epoch, e.due_at, e.gate, e.woken
 FROM @entries e WHERE e.id = ANY ($1::uuid[] || ARRAY(
 SELECT p.parent FROM unnest($2::uuid[], $3::bigint[]) AS w (id, epoch) JOIN @entries p ON p.id = w.id
 WHERE p.parent IS NOT NULL AND ((p.state = 2 AND p.epoch = w.epoch)
 OR (w.epoch IS NULL AND (p.state < 2 OR (p.state = 2 AND p.gate <= $4::bigint))))))
 ORDER BY e.sequence FOR NO KEY UPDATE)"},
    sql_text{sql::write, R"(UPDATE @entries e SET state = w.state, attempts = w.attempts, lapses = w.lapses,
 failures = w.failures, epoch = w.epoch, due_at = w.due_at, gate = w.gate, woken = w.woken, updated_at = w.updated_at,
 last_error = coalesce(w.last_error, e.last_error), result = coalesce(w.result, e.result),
 progress = coalesce(w.progress, e.progress)
 FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[],
 $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bigint[], $14::text[], $15::bytea[],
 $16::bytea[]) AS w (queue, sequence, state_was, epoch_was, state, attempts, lapses, failures, epoch, due_at, gate,
 woken, updated_at, last_error, result, progress)
 WHERE e.queue = w.queue AND e.sequence = w.sequence AND e.state = w.state_was AND e.epoch = w.epoch_was
 RETURNING txid_current())"},

    // Groups. A dead member is unfinished until it has a successor.
    sql_text{sql::lock_groups,
             R"(SELECT 1 FROM @groups WHERE name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE)"},
    sql_text{sql::group_end, R"(UPDATE @groups g SET live = g.live - n.ended, unfinished = g.unfinished - n.succeeded
 FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (name, ended, succeeded)
 WHERE g.name = n.name RETURNING g.name, g.unfinished)"},

    // Purge: $1 queue, $2 state, $3 before, $4 and $5 the position to start after, $6 limit. It finds newest generations
    // and then follows them to their predecessors. It leaves what another transaction has locked.
    sql_text{sql::purge_look, R"(SELECT {ended} FROM @entries e
 WHERE e.queue = $1::text AND e.state = $2::smallint AND e.state >= 3 AND e.newest AND e.updated_at < $3::bigint
 AND (e.updated_at, e.sequence) > ($4::bigint, $5::bigint) ORDER BY e.updated_at, e.sequence LIMIT $6::bigint)"},
    sql_text{sql::purge_read, "SELECT {ended} FROM @entries e WHERE e.id = ANY ($1::uuid[])"},
    sql_text{sql::purge_lock, R"(SELECT e.id FROM @entries e
 WHERE e.id = ANY ($1::uuid[]) ORDER BY e.sequence FOR UPDATE SKIP LOCKED)"},
    sql_text{sql::purge_delete, R"(DELETE FROM @entries e
 WHERE e.id = ANY ($1::uuid[]) AND e.state >= 3 RETURNING txid_current())"},
    sql_text{sql::group_leave, R"(UPDATE @groups g SET members = g.members - n.gone, unfinished = g.unfinished - n.dead
 FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (name, gone, dead) WHERE g.name = n.name)"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ANY ($1::text[]) AND members = 0"},
};

static_assert(
    [] {
        for (std::size_t i = 0; i < statements.size(); ++i) {
            if (statements[i].which != static_cast<sql>(i)) {
                return false;
            }
        }
        return statements.back().which == sql::group_drop;
    }(),
    "the statements must be in the order of their enumerators");

/// The text that is sent to the server.
[[nodiscard]] inline std::string text_of(sql which, const table_names& names) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    for (const auto& part : sql_parts) {
        for (auto at = text.find(part.name); at != std::string::npos;
             at = text.find(part.name, at + part.text.size())) {
            text.replace(at, part.name.size(), part.text);
        }
    }
    return names.in(text);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/sqlstate.hpp
// Maps SQLSTATEs to errors, in one table. A message names the operation and the SQLSTATE. It never contains the
// server's message, which may quote stored data.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// What a code, or every code of a class, means. The explanation completes the sentence of the message.
struct sqlstate_meaning {
    std::string_view code; ///< five characters, or the two of a class
    error_kind kind;
    std::string_view text;
};

inline constexpr std::array sqlstates{
    sqlstate_meaning{"40001", error_kind::conflict, "another transaction has changed the same rows"},
    sqlstate_meaning{"40P01", error_kind::conflict, "transactions waited for each other"},
    sqlstate_meaning{"23505", error_kind::conflict, "another transaction has stored the same id or key"},
    sqlstate_meaning{"40", error_kind::conflict, "the server has rolled back the transaction"},
    sqlstate_meaning{"55P03", error_kind::busy, "a lock was not granted in time"},
    sqlstate_meaning{"57014", error_kind::busy, "the statement was cancelled or ran out of time"},
    sqlstate_meaning{"57P03", error_kind::busy, "the server is starting up or shutting down"},
    sqlstate_meaning{"53300", error_kind::busy, "the server has too many connections"},
    sqlstate_meaning{"53", error_kind::full, "the server is out of disk, memory or another resource"},
    sqlstate_meaning{"25006", error_kind::read_only, "the server, or the transaction, is read-only"},
    sqlstate_meaning{"42501", error_kind::read_only, "the role lacks a permission"},
    sqlstate_meaning{"28P01", error_kind::invalid_argument, "the password is wrong"},
    sqlstate_meaning{"28", error_kind::invalid_argument, "the server does not let the role in"},
    sqlstate_meaning{"3D000", error_kind::invalid_argument, "the database does not exist"},
    sqlstate_meaning{"0A", error_kind::unsupported, "the server does not support a feature that is needed"},
    sqlstate_meaning{"54", error_kind::unsupported, "a limit of the server is exceeded"},
    sqlstate_meaning{"25", error_kind::misuse, "the transaction has failed or was ended"},
    sqlstate_meaning{"2D", error_kind::misuse, "the transaction was ended"},
    sqlstate_meaning{"3B", error_kind::misuse, "a savepoint was ended"},
    sqlstate_meaning{"25P03", error_kind::io, "the server has ended an idle transaction and its connection"},
    sqlstate_meaning{"42", error_kind::corrupt, "a table, column or index is missing or different"},
    sqlstate_meaning{"3F", error_kind::corrupt, "the schema does not exist"},
    sqlstate_meaning{"22", error_kind::corrupt, "a stored value is out of range"},
    sqlstate_meaning{"23", error_kind::corrupt, "a constraint of the tables is violated"},
    sqlstate_meaning{"XX001", error_kind::corrupt, "the server reports damaged data"},
    sqlstate_meaning{"XX002", error_kind::corrupt, "the server reports a damaged index"},
    sqlstate_meaning{"08", error_kind::io, "the connection failed"},
    sqlstate_meaning{"57", error_kind::io, "the server has ended the connection"},
    sqlstate_meaning{"58", error_kind::io, "the server reports a system error"},
};

/// The meaning of a SQLSTATE: that of the code, else that of its class, else `io`.
[[nodiscard]] constexpr sqlstate_meaning meaning_of(std::string_view code) noexcept {
    sqlstate_meaning found{code, error_kind::io,
                           code.empty() ? "the connection was lost" : "the server reports an error"};
    for (const auto& one : sqlstates) {
        if (one.code == code) {
            return one;
        }
        if (one.code == code.substr(0, 2)) {
            found = one;
        }
    }
    return found;
}

/// The error for a SQLSTATE; an empty one means that the connection was lost.
[[nodiscard]] inline error error_of(std::string_view code, std::string_view doing, bool in_doubt = false) {
    const auto meaning = meaning_of(code);
    std::string message = "postgres: ";
    message.append(doing).append(": ").append(meaning.text);
    if (!code.empty()) {
        message.append(" (SQLSTATE ").append(code).append(1, ')');
    }
    return {meaning.kind, message, {.in_doubt = in_doubt, .text_code = code}};
}

// Made before they are needed, because an error that is in doubt must not turn into one that is not for want of memory.
inline const error out_of_memory{error_kind::full, "postgres: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "postgres: commit: out of memory", {.in_doubt = true}};
inline const error commit_in_doubt{error_kind::io,
                                   "postgres: commit: the connection was lost, or the wait for a standby was "
                                   "cancelled, and whether the transaction is "
                                   "stored for good cannot be found out",
                                   {.in_doubt = true}};

/// Returns `f()`. Throws `out_of_memory` in place of `std::bad_alloc`.
template <class F>
auto translate_bad_alloc(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/connection.hpp
// One connection in libpq's pipeline mode. Statements are added one by one and travel together: `exchange` sends them
// and reads all answers in one round trip. An error of a statement skips those after it and is thrown by `exchange`.
// Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct connection_closer {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
using owned_connection = std::unique_ptr<PGconn, connection_closer>;

/// The SQLSTATE of a failed result; empty if the connection was lost.
[[nodiscard]] inline std::string_view sqlstate_of(const PGresult* result) noexcept {
    const char* const code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return code == nullptr ? std::string_view{} : code;
}

class connection {
  public:
    /// Whether statements are prepared. Without, nothing of the store stays on the connection.
    enum class statements_are : bool { sent_as_text, prepared };

    /// On a connection of the application, which stays open.
    connection(PGconn* db, table_names names) : db_(db), names_(std::move(names)) {}
    connection(owned_connection db, table_names names, statements_are how)
        : owned_(std::move(db)), db_(owned_.get()), names_(std::move(names)),
          is_preparing_(how == statements_are::prepared) {
        PQsetNoticeReceiver(db_, &connection::note_warning, this);
    }
    connection(const connection&) = delete; // libpq has its address
    connection& operator=(const connection&) = delete;

    [[nodiscard]] PGconn* handle() const noexcept { return db_; }
    [[nodiscard]] const table_names& names() const noexcept { return names_; }
    [[nodiscard]] bool is_lost() const noexcept { return is_lost_ || PQstatus(db_) != CONNECTION_OK; }

    [[nodiscard]] bool has_pending() const noexcept { return !pending_.empty(); }

    /// Adds a statement to the next round trip. Returns the place of its answer.
    std::size_t add(sql which, const parameters& values = parameters()) {
        pending_.reserve(pending_.size() + 2); // a COMMIT that libpq has must be known here
        enter_pipeline();
        const auto number = static_cast<std::size_t>(which);
        const auto name = "vouch_" + std::to_string(number);
        bool is_sent = true;
        if (is_preparing_ && !prepared_.test(number)) {
            is_sent = PQsendPrepare(db_, name.c_str(), text_of(which, names_).c_str(), 0, nullptr) == 1;
            pending_.push_back({number, true});
            prepared_.set(number);
        }
        const auto lists = values.for_libpq();
        constexpr int binary = 1;
        if (is_preparing_) {
            is_sent = is_sent && PQsendQueryPrepared(db_, name.c_str(), lists.size(), lists.values.data(),
                                                     lists.lengths.data(), lists.formats.data(), binary) == 1;
        } else {
            is_sent = PQsendQueryParams(db_, text_of(which, names_).c_str(), lists.size(), nullptr, lists.values.data(),
                                        lists.lengths.data(), lists.formats.data(), binary) == 1;
        }
        if (!is_sent) {
            lose();
            throw error_of({}, doing());
        }
        pending_.push_back({number, false});
        return statements_pending_++;
    }

    /// Sends what was added and returns all answers. Nothing is sent if nothing was added.
    std::vector<rows> exchange() {
        std::vector<rows> answers;
        if (pending_.empty()) {
            return answers;
        }
        const auto asked = std::exchange(pending_, {});
        statements_pending_ = 0;
        if (PQpipelineSync(db_) != 1) {
            lose();
            throw error_of({}, doing());
        }
        std::string failed;
        for (const auto& one : asked) {
            receive(one, answers, failed);
        }
        const auto end = receive_end();
        if (failed.empty() && !end.is_complete) {
            throw error_of(end.refused, doing());
        }
        if (!failed.empty()) {
            throw error_of(failed, doing());
        }
        return answers;
    }

    /// For a transaction that will be rolled back: sends what was added, because libpq may have sent a part of it already,
    /// and drops the answers.
    void abandon() noexcept {
        try {
            exchange();
        } catch (...) {
            // Only the rollback that follows counts.
        }
    }

    /// Adds a statement, exchanges and returns its answer.
    rows ask(sql which, const parameters& values = parameters()) {
        const auto place = add(which, values);
        return std::move(exchange()[place]);
    }

    /// The end of a transaction. If it is not known to have happened, the connection was lost, and the answers are those
    /// that came before.
    struct committed {
        std::vector<rows> answers{};
        bool is_known = false;
    };

    /// How a transaction ends. Without BEGIN, the server commits what was sent when it has carried out all of it.
    enum class ends : bool { by_itself, with_commit };

    /// Commits, with what was added before. Throws if it is known not to have happened.
    [[nodiscard]] committed commit(ends how = ends::with_commit) {
        committed out;
        out.answers.reserve(pending_.size() + 1); // before the COMMIT: after it nothing may throw
        std::string failed;
        const auto place = how == ends::with_commit ? add(sql::commit) : statements_pending_;
        has_warned_ = false;
        const auto asked = std::exchange(pending_, {});
        statements_pending_ = 0;
        // From here on the server may commit, even if libpq reports that it could not send everything.
        if (PQpipelineSync(db_) != 1) {
            lose();
            return out;
        }
        try {
            for (const auto& one : asked) {
                receive(one, out.answers, failed);
            }
        } catch (...) { // no memory for the answer is as bad as no answer
            lose();
            if (!failed.empty() && out.answers.size() < place) {
                throw; // a statement has failed, so the server does not commit
            }
            return out;
        }
        if (how == ends::with_commit && failed.empty() && out.answers[place].tag() != "COMMIT") {
            failed = "40000"; // the transaction had failed before, and the server answers ROLLBACK
        }
        const auto end = receive_end();
        if (failed.empty() && how == ends::by_itself) {
            failed = end.refused; // by a check at the commit
        }
        if (!failed.empty()) {
            throw error_of(failed, doing());
        }
        // If COMMIT was answered, the connection may be lost after it.
        out.is_known = how == ends::with_commit || end.is_complete;
        return out;
    }

    /// Whether the server has warned during the last COMMIT: it does so if the wait for a standby was cancelled. The
    /// transaction is then committed, but a failover would lose it.
    [[nodiscard]] bool has_warned() const noexcept { return has_warned_; }

    /// Ends the transaction, if one is open. If that fails, the connection counts as lost, and the server rolls back.
    void roll_back() noexcept {
        try {
            if (has_pending() && !is_lost()) {
                add(sql::roll_back); // in the same round trip: without BEGIN, the end of the round trip would commit
            }
            abandon();
            if (!is_lost() && PQtransactionStatus(db_) != PQTRANS_IDLE) {
                ask(sql::roll_back);
            }
        } catch (...) {
            lose();
        }
        if (PQtransactionStatus(db_) != PQTRANS_IDLE) {
            lose();
        }
    }

    /// The mark of the server's life in which this connection was made; see `server_life.hpp`.
    id life{};
    /// The server's process for this connection. libpq forgets it with the connection.
    int server_process = 0;

    /// For a connection of the application, and before the application uses one of ours: everything was exchanged.
    void leave_pipeline() noexcept {
        if (PQpipelineStatus(db_) != PQ_PIPELINE_OFF && PQexitPipelineMode(db_) != 1) {
            lose();
        }
    }

    /// What the current operation is called in messages.
    void set_doing(const char* what) noexcept { doing_ = what; }
    [[nodiscard]] std::string_view doing() const noexcept { return doing_; }

  private:
    struct asked_for {
        std::size_t statement = 0;
        bool is_prepare = false;
    };

    static void note_warning(void* self, const PGresult* notice) noexcept {
        const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity != nullptr && std::string_view(severity) == "WARNING") {
            static_cast<connection*>(self)->has_warned_ = true;
        }
    }

    void enter_pipeline() {
        if (PQpipelineStatus(db_) == PQ_PIPELINE_OFF && PQenterPipelineMode(db_) != 1) {
            if (is_lost()) {
                lose();
                throw error_of({}, doing());
            }
            throw error(error_kind::misuse,
                        "postgres: the connection is in use: read all results of the last query first");
        }
    }

    void lose() noexcept {
        is_lost_ = true;
        pending_.clear();
        statements_pending_ = 0;
    }

    /// Reads the answer to one message. `failed` is the SQLSTATE of the first error. Throws if the connection was lost. It
    /// may say why with an error of its own, which is no answer: a pooler sends one although the server may have done
    /// everything.
    void receive(const asked_for& one, std::vector<rows>& answers, std::string& failed) {
        result_ptr result(PQgetResult(db_));
        const auto status = PQresultStatus(result.get());
        if (!result) {
            lose();
            throw error_of({}, doing());
        }
        if (status == PGRES_PIPELINE_ABORTED || status == PGRES_FATAL_ERROR) {
            if (one.is_prepare) {
                prepared_.reset(one.statement);
            }
            const auto code = sqlstate_of(result.get());
            if (status == PGRES_FATAL_ERROR && failed.empty()) {
                if (code.empty() || PQstatus(db_) != CONNECTION_OK || is_last_word(result.get())) {
                    lose();
                    throw error_of(code, doing());
                }
                failed = code;
            }
        }
        if (!one.is_prepare) {
            answers.emplace_back(std::move(result));
        }
        while (const auto rest = result_ptr(PQgetResult(db_))) { // until the null that ends each answer
            if (PQstatus(db_) != CONNECTION_OK) {
                break;
            }
        }
    }

    /// Whether the server closes the connection after this error.
    [[nodiscard]] static bool is_last_word(const PGresult* result) noexcept {
        const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
        return severity != nullptr && (std::string_view(severity) == "FATAL" || std::string_view(severity) == "PANIC");
    }

    /// The end of a round trip.
    struct round_trip_end {
        bool is_complete = false;
        std::string refused{}; ///< the SQLSTATE of an error at the end, after which the connection is still there
    };

    [[nodiscard]] round_trip_end receive_end() {
        const result_ptr result(PQgetResult(db_));
        if (result && PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) {
            const result_ptr end(PQgetResult(db_)); // null: libpq is idle from here on
            return {.is_complete = true};
        }
        const bool is_refusal = result && PQstatus(db_) == CONNECTION_OK && !is_last_word(result.get());
        lose(); // its state is not known
        return {.refused = is_refusal ? std::string(sqlstate_of(result.get())) : std::string()};
    }

    owned_connection owned_{};
    PGconn* db_;
    table_names names_;
    bool is_preparing_ = false;
    bool is_lost_ = false;
    bool has_warned_ = false;
    const char* doing_ = "a statement";
    std::bitset<statements.size()> prepared_{};
    std::vector<asked_for> pending_{};
    std::size_t statements_pending_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/endpoints.hpp
// The servers that a conninfo names. libpq tries the hosts of a list one after the other, but without a limit for each: a
// host that accepts a connection and then is silent would use up all the time, and the next one would never be tried. So
// the store tries them itself.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// One server; an empty member leaves the conninfo as it is.
struct endpoint {
    std::string host{};
    std::string address{};
    std::string port{};
};

/// The parts of a list with commas.
[[nodiscard]] inline std::vector<std::string> split_list(std::string_view list) {
    std::vector<std::string> parts;
    for (;;) {
        const auto comma = list.find(',');
        parts.emplace_back(list.substr(0, comma));
        if (comma == std::string_view::npos) {
            return parts;
        }
        list.remove_prefix(comma + 1);
    }
}

/// The value of a keyword in a list of libpq's, which has the environment's if it was made by PQconndefaults.
[[nodiscard]] inline std::string value_in(const PQconninfoOption* list, std::string_view keyword) {
    for (; list != nullptr && list->keyword != nullptr; ++list) {
        if (keyword == list->keyword && list->val != nullptr) {
            return list->val;
        }
    }
    return {};
}

/// One endpoint for each host of the conninfo or the environment; a single one that changes nothing if there is one host,
/// or if the lists do not fit together, which libpq then says, or if they are in a service file.
[[nodiscard]] inline std::vector<endpoint> endpoints_of(const std::string& conninfo) {
    using options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;
    const options given(PQconninfoParse(conninfo.c_str(), nullptr), &PQconninfoFree);
    const options defaults(PQconndefaults(), &PQconninfoFree);
    const auto list_of = [&](std::string_view keyword) {
        const auto value = value_in(given.get(), keyword);
        return split_list(value.empty() ? value_in(defaults.get(), keyword) : value);
    };
    const auto hosts = list_of("host");
    const auto addresses = list_of("hostaddr");
    const auto ports = list_of("port");
    const auto count = std::max(hosts.size(), addresses.size());
    const auto fits = [&](const std::vector<std::string>& list) {
        const bool is_unset = list.size() == 1 && list[0].empty();
        bool is_whole = true;
        for (const auto& one : list) {
            is_whole = is_whole && !one.empty();
        }
        return is_unset || (is_whole && list.size() == count);
    };
    const bool is_split = count > 1 && fits(hosts) && fits(addresses) && (ports.size() == 1 || fits(ports)) &&
                          value_in(given.get(), "service").empty();
    if (!is_split) {
        return {endpoint{}};
    }
    std::vector<endpoint> out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto part = [&](const std::vector<std::string>& list) { return list.size() == count ? list[i] : ""; };
        out.push_back({part(hosts), part(addresses), ports.size() == 1 ? ports[0] : part(ports)});
    }
    return out;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/connect.hpp
// Makes a connection: waits for a server that is starting up, and refuses one that the store cannot use. Messages never
// contain the conninfo, which may have a password.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

using steady = std::chrono::steady_clock;

/// The SQLSTATE of a server that is starting up.
inline constexpr std::string_view starting_up = "57P03";

/// Milliseconds until `end`, for `poll`; 0 if it is over.
[[nodiscard]] inline int milliseconds_until(steady::time_point end) noexcept {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(end - steady::now());
    return static_cast<int>(std::clamp<milliseconds>(left, milliseconds{0}, milliseconds{1'000'000}).count());
}

/// Waits until the socket can be read (or written), or the other file descriptor can be read; -1 is none. Returns false
/// when the time is over.
[[nodiscard]] inline bool wait_for_socket(int socket, short events, steady::time_point end, int other = -1) noexcept {
    std::array<pollfd, 2> both{pollfd{socket, events, 0}, pollfd{other, POLLIN, 0}};
    int ready = 0;
    do {
        ready = poll(both.data(), both.size(), milliseconds_until(end));
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

[[nodiscard]] inline bool is_readable(int descriptor) noexcept {
    return descriptor >= 0 && wait_for_socket(descriptor, POLLIN, steady::now());
}

/// The SQLSTATE at the end of a failed connection's message, which libpq was told to end with it; empty if none.
[[nodiscard]] inline std::string_view sqlstate_in(std::string_view message) noexcept {
    while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) {
        message.remove_suffix(1);
    }
    constexpr std::size_t size = 5;
    const auto is_part = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
    if (message.size() <= size || is_part(message[message.size() - size - 1])) {
        return {};
    }
    const auto code = message.substr(message.size() - size);
    return std::all_of(code.begin(), code.end(), is_part) ? code : std::string_view{};
}

/// Throws why the connection failed.
[[noreturn]] inline void throw_refused(PGconn* c) {
    const std::string_view message = PQerrorMessage(c);
    if (const auto code = sqlstate_in(message); !code.empty()) {
        throw error_of(code, "connect");
    }
    if (message.find("no password supplied") != std::string_view::npos) {
        throw error(error_kind::invalid_argument,
                    "postgres: connect: the server asks for a password and conninfo has none");
    }
    if (message.find("read-only") != std::string_view::npos || message.find("hot standby") != std::string_view::npos) {
        throw error(error_kind::read_only, // said by libpq, as target_session_attrs demands
                    "postgres: connect: the server is read-only, and target_session_attrs asks for one that is not",
                    {.text_code = "25006"});
    }
    const char* const host = PQhost(c);
    const char* const port = PQport(c);
    throw error(error_kind::io, "postgres: connect: no server answers at host " + std::string(host ? host : "") +
                                    ", port " + std::string(port ? port : ""));
}

/// How long to try, and what ends it sooner.
struct connect_limits {
    std::chrono::milliseconds limit{};
    /// A server that cannot be reached, or is read-only, may be restarting or failing over: it is tried again.
    bool is_returning = false;
    int interrupt = -1; ///< a file descriptor: connecting fails when it can be read; -1: none
};

/// One attempt.
[[nodiscard]] inline owned_connection try_connect(const std::string& conninfo, const endpoint& to,
                                                  steady::time_point end, int interrupt) {
    const std::array<const char*, 7> names{
        "dbname", "host", "hostaddr", "port", "client_encoding", "fallback_application_name", nullptr};
    const std::array<const char*, 7> values{
        conninfo.c_str(), to.host.c_str(), to.address.c_str(), to.port.c_str(), "UTF8", "vouch", nullptr};
    constexpr int expand_dbname = 1;
    owned_connection c(PQconnectStartParams(names.data(), values.data(), expand_dbname));
    if (!c) {
        throw std::bad_alloc();
    }
    PQsetErrorVerbosity(c.get(), PQERRORS_SQLSTATE);
    PQsetNoticeProcessor(
        c.get(), [](void*, const char*) {}, nullptr);
    auto next = PQstatus(c.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED) {
            throw_refused(c.get());
        }
        const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!wait_for_socket(PQsocket(c.get()), events, end, interrupt)) {
            throw error(error_kind::io, "postgres: connect: the server did not answer within connect_limit");
        }
        if (is_readable(interrupt)) {
            throw error(error_kind::io, "postgres: connect: the store is being destroyed");
        }
        next = PQconnectPoll(c.get());
    }
    return c;
}

/// Throws `invalid_argument` if libpq cannot read the conninfo.
inline void validate_conninfo(const std::string& conninfo) {
    PQconninfoOption* const parsed = PQconninfoParse(conninfo.c_str(), nullptr);
    if (parsed == nullptr) {
        throw error(error_kind::invalid_argument,
                    "postgres: conninfo is not valid; it must be keywords and values, or a postgresql:// URI");
    }
    PQconninfoFree(parsed);
}

/// A statement without parameters, outside pipeline mode.
inline rows run_text(PGconn* c, const std::string& text, std::string_view doing) {
    constexpr int binary = 1;
    result_ptr result(PQexecParams(c, text.c_str(), 0, nullptr, nullptr, nullptr, nullptr, binary));
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
    return rows(std::move(result));
}

/// Throws unless the store can use this server.
inline void expect_usable(PGconn* c) {
    constexpr int oldest = 120000;
    if (PQserverVersion(c) < oldest) {
        throw error(error_kind::unsupported, "postgres: connect: the server has version " +
                                                 std::to_string(PQserverVersion(c) / 10000) +
                                                 "; the store needs PostgreSQL 12 or newer");
    }
    const char* const encoding = PQparameterStatus(c, "server_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
        throw error(error_kind::unsupported,
                    "postgres: connect: the database is not encoded in UTF8 and would change or "
                    "refuse names; create it with ENCODING 'UTF8'");
    }
    bool is_replica = false;
    run_text(c, "SELECT pg_is_in_recovery()", "connect")[0].read(is_replica);
    if (is_replica) {
        throw error(error_kind::read_only,
                    "postgres: connect: the server is a read-only replica; connect to the primary, for instance with "
                    "target_session_attrs=read-write",
                    {.text_code = "25006"});
    }
}

/// Tries each endpoint once, with an equal share of the time. If all fail, throws what says most: a server that is
/// starting up, else one that refuses, else that none answers.
[[nodiscard]] inline owned_connection connect_to_any(const std::string& conninfo, steady::time_point end,
                                                     int interrupt) {
    const auto servers = endpoints_of(conninfo);
    std::optional<error> failed;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        try {
            const auto share = (end - steady::now()) / static_cast<long>(servers.size() - i);
            auto c = try_connect(conninfo, servers[i], steady::now() + share, interrupt);
            expect_usable(c.get());
            return c;
        } catch (const error& e) {
            if (!failed || failed->text_code().empty() || e.text_code() == starting_up) {
                failed = e;
            }
        }
    }
    throw error(*failed);
}

/// A connection to a server that the store can use. A server that is starting up is waited for within the limit.
[[nodiscard]] inline owned_connection connect(const std::string& conninfo, const connect_limits& how) {
    const auto end = steady::now() + how.limit;
    std::chrono::milliseconds pause{20};
    constexpr std::chrono::milliseconds pause_max{320};
    std::optional<error> said; // the last answer of a server: an attempt that runs out of time says less
    for (;;) {
        try {
            return connect_to_any(conninfo, end, how.interrupt);
        } catch (const error& e) {
            if (!said || e.kind() != error_kind::io || !e.text_code().empty()) {
                said = e;
            }
            const bool is_passing = e.text_code() == starting_up ||
                                    (how.is_returning && (e.is_transient() || e.kind() == error_kind::read_only));
            if (!is_passing || steady::now() + pause >= end || is_readable(how.interrupt)) {
                throw error(*said);
            }
        }
        static_cast<void>(wait_for_socket(-1, 0, steady::now() + pause, how.interrupt));
        pause = std::min(2 * pause, pause_max);
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/schema_text.hpp
// The tables and indexes as SQL text. `backends/postgres/README.md` explains every column and index.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Each step brings the tables from the version of its index to the next version; `table_names` explains `@` and `#`.
/// Never change a step that was released: append a new one.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @meta (
  name text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
CREATE SEQUENCE @sequence;
CREATE TABLE @entries (
  sequence bigint NOT NULL,
  id uuid NOT NULL,
  gate bigint,
  due_at bigint NOT NULL,
  attempts bigint NOT NULL,
  lapses bigint NOT NULL,
  failures bigint NOT NULL,
  epoch bigint NOT NULL,
  updated_at bigint NOT NULL,
  last_attempt_at bigint,
  created_at bigint NOT NULL,
  expires_at bigint,
  attempts_max bigint NOT NULL,
  generation bigint NOT NULL,
  replaces bigint,
  state smallint NOT NULL,
  woken boolean NOT NULL,
  newest boolean NOT NULL,
  parent uuid,
  predecessor uuid,
  queue text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  "group" text COLLATE "C",
  lane text COLLATE "C",
  worker text COLLATE "C" NOT NULL,
  last_error text COLLATE "C" NOT NULL,
  trail bytea,
  headers bytea,
  progress bytea,
  result bytea,
  payload bytea NOT NULL,
  PRIMARY KEY (queue, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE @entries ALTER COLUMN payload SET STORAGE EXTERNAL, ALTER COLUMN progress SET STORAGE EXTERNAL,
  ALTER COLUMN result SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX #entries_id ON @entries (id);
CREATE INDEX #entries_gate ON @entries (queue, gate, sequence) WHERE gate IS NOT NULL;
CREATE INDEX #entries_ended ON @entries (queue, state, updated_at, sequence) WHERE state >= 3 AND newest;
CREATE INDEX #entries_dead ON @entries (queue, sequence) WHERE state = 4;
CREATE UNIQUE INDEX #entries_key ON @entries (queue, key) WHERE key IS NOT NULL AND newest;
CREATE UNIQUE INDEX #entries_replaces ON @entries (queue, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX #entries_group ON @entries ("group", sequence) WHERE "group" IS NOT NULL;
CREATE INDEX #entries_parent ON @entries (parent, sequence) WHERE parent IS NOT NULL;
CREATE INDEX #entries_live_child ON @entries (parent) WHERE parent IS NOT NULL AND state < 3;
CREATE INDEX #entries_lane ON @entries (queue, lane, sequence) WHERE lane IS NOT NULL AND state < 3;
CREATE TABLE @lanes (
  queue text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue, lane)
);
CREATE TABLE @groups (
  name text COLLATE "C" PRIMARY KEY,
  members bigint NOT NULL,
  live bigint NOT NULL,
  unfinished bigint NOT NULL
);
CREATE UNLOGGED TABLE @listeners (
  pid integer PRIMARY KEY
);
CREATE UNLOGGED TABLE @server (
  number smallint PRIMARY KEY CHECK (number = 1),
  life uuid NOT NULL
);
)"};

/// Creates the schema, for a migration tool.
[[nodiscard]] inline std::string create_schema(const table_names& names) {
    return names.schema == "public" ? "" : "CREATE SCHEMA IF NOT EXISTS \"" + names.schema + "\";\n";
}

[[nodiscard]] inline std::string record_version(const table_names& names, std::size_t version) {
    return names.in("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                    ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n");
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/migration.hpp
// Creates and migrates the tables, and checks their version, on a connection outside pipeline mode. The version is a row
// of `@meta`.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Several statements without answers.
inline void run_script(PGconn* c, const std::string& text, std::string_view doing) {
    const result_ptr result(PQexec(c, text.c_str()));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK && PQresultStatus(result.get()) != PGRES_TUPLES_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
}

/// Whether a query about the catalog finds something. Read as a table: `to_regclass` may answer from a cache that is older
/// than the lock under which it is asked.
[[nodiscard]] inline bool is_in_catalog(PGconn* c, const std::string& query) {
    bool exists = false;
    run_text(c, "SELECT EXISTS (" + query + ")", "read the schema version")[0].read(exists);
    return exists;
}

/// Returns 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(PGconn* c, const table_names& names) {
    const bool exists = is_in_catalog(c, "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
                                         "n.nspname = '" +
                                             names.schema + "' AND c.relname = '" + names.tables + "meta'");
    if (!exists) {
        return 0;
    }
    const auto found =
        run_text(c, names.in("SELECT value FROM @meta WHERE name = 'schema_version'"), "read the schema version");
    row::expect(found.size() == 1, "postgres: the tables are damaged: there is no schema_version");
    std::int64_t version = 0;
    found[0].read(version);
    return version;
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "postgres: the tables have schema version " + std::to_string(stored) +
                                                 "; this library supports up to version " + std::to_string(known) +
                                                 " and has changed nothing. Use a newer version of vouch");
    }
}

/// Runs the steps from `from` on, inside a transaction.
inline void run_steps(PGconn* c, const table_names& names, std::span<const std::string_view> steps) {
    // Held until the transaction ends, so that two processes do not create the same tables.
    const auto lock = "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))";
    run_text(c, lock, "begin to migrate");
    const auto from = stored_version(c, names); // again, because another process may have migrated meanwhile
    refuse_newer(from, steps.size());
    if (!is_in_catalog(c, "SELECT 1 FROM pg_namespace WHERE nspname = '" + names.schema + "'")) {
        run_script(c, create_schema(names), "create the schema");
    }
    for (auto i = static_cast<std::size_t>(from); i < steps.size(); ++i) {
        run_script(c, names.in(steps[i]), "migrate to schema version " + std::to_string(i + 1));
    }
    run_script(c, record_version(names, steps.size()), "record the schema version");
}

/// Runs the steps that the database does not have yet, in one transaction: the open one, or its own.
inline void migrate(PGconn* c, const table_names& names, std::span<const std::string_view> steps) {
    const auto stored = stored_version(c, names);
    refuse_newer(stored, steps.size());
    if (stored == static_cast<std::int64_t>(steps.size())) {
        return;
    }
    const bool is_own = PQtransactionStatus(c) == PQTRANS_IDLE;
    run_script(c, is_own ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" : "SAVEPOINT vouch_migrate",
               "begin to migrate");
    try {
        run_steps(c, names, steps);
        run_script(c, is_own ? "COMMIT" : "RELEASE SAVEPOINT vouch_migrate", "commit the migration");
    } catch (...) {
        const result_ptr undone(
            PQexec(c, is_own ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT vouch_migrate; RELEASE SAVEPOINT vouch_migrate"));
        throw;
    }
}

/// Throws `unsupported` unless the tables exist in the current version.
inline void expect_schema(PGconn* c, const table_names& names) {
    const auto stored = stored_version(c, names);
    refuse_newer(stored, migrations.size());
    constexpr auto current = static_cast<std::int64_t>(migrations.size());
    if (stored < current) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "postgres: there are no tables with the prefix " + names.schema + '.' + names.tables
                                 : "postgres: the tables have schema version " + std::to_string(stored) +
                                       ", this library needs version " + std::to_string(current)) +
                        "; call vouch::postgres::migrate");
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/run_with.hpp
// One statement with parameters on a connection outside pipeline mode: for what is not part of the contract.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline rows run_with(PGconn* c, const std::string& text, std::string_view doing, const parameters& values) {
    constexpr int binary = 1;
    const auto lists = values.for_libpq();
    result_ptr result(PQexecParams(c, text.c_str(), lists.size(), nullptr, lists.values.data(), lists.lengths.data(),
                                   lists.formats.data(), binary));
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
    return rows(std::move(result));
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/claim_heads.hpp
// Where a claim begins to look in the index of gates, while an old snapshot is held.
//
// The server keeps the index entries of claimed and ended entries as long as a transaction holds a snapshot that is older
// than their end. A claim that begins at the lowest gate reads all of them, so the cost of each claim would grow with the
// number of earlier claims. Here a claim that was slow makes the store ask for the oldest snapshot; while that stays the
// same, claims begin where the last one has found its first entry: the head. After ten times as long as such a look took,
// one looks everywhere again.
//
// So a claim may pass over an entry that has got a gate below the head meanwhile, at most for `blind_max`. Entries that the
// same store, or a copy of it, stores or unlocks are not passed over. As long as no old snapshot is known, every claim looks
// everywhere.
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class claim_heads {
  public:
    using clock = std::chrono::steady_clock;

    /// A look that takes less is not worth shortening.
    static constexpr std::chrono::milliseconds slow{5};
    /// How often to ask for the oldest snapshot, and how long it must be the same to count as held.
    static constexpr std::chrono::seconds ask_interval{1};
    /// How long a head may be used: ten times as long as the look that found it took, within these limits.
    static constexpr std::chrono::milliseconds blind_min{50};
    static constexpr std::chrono::seconds blind_max{10};
    /// A head is at least so far before `now`: entries are stored some time after their due time was read from a clock,
    /// and clocks differ.
    static constexpr duration margin = std::chrono::seconds{1};

    static constexpr time_point everywhere = time_point::min();

    /// A claim's look into the index, from `begin` to `end`.
    struct look {
        time_point from = everywhere; ///< the lowest gate to look at
        clock::time_point began{};
        std::uint64_t number = 0; ///< 0: not registered
    };

    explicit claim_heads(clock::time_point now) noexcept : asked_at_(now) {}

    /// The lowest gate that a claim would look at now.
    [[nodiscard]] time_point of(std::string_view queue, clock::time_point at) const {
        const std::lock_guard lock(mutex_);
        return head_of(queue, at);
    }

    /// Every look must end with `end` or `drop`.
    [[nodiscard]] look begin(std::string_view queue, clock::time_point at) {
        if (!is_held_) {
            return {.began = at};
        }
        const std::lock_guard lock(mutex_);
        looks_.emplace(++last_number_, open_look{std::string(queue)});
        return {.from = head_of(queue, at), .began = at, .number = last_number_};
    }

    /// What a claim found: at the claim's `now`, and the lowest due time of what it claimed.
    struct finding {
        time_point now{};
        std::optional<time_point> first{};
    };

    void end(const look& l, std::string_view queue, const finding& f, clock::time_point at) {
        const auto took = at - l.began;
        if (!is_held_ && l.number == 0 && took < slow) {
            return;
        }
        const std::lock_guard lock(mutex_);
        wants_snapshot_ = wants_snapshot_ || ((is_held_ || took >= slow) && at - asked_at_ >= ask_interval);
        const auto open = looks_.find(l.number);
        if (open == looks_.end()) {
            return; // it began before the snapshot was known, or is void
        }
        const auto latest = f.now > everywhere + margin ? f.now - margin : everywhere;
        const auto gate = std::min({f.first.value_or(latest), latest, open->second.lowest});
        looks_.erase(open);
        if (l.from == everywhere) {
            heads_.insert_or_assign(std::string(queue),
                                    head{gate, at + std::clamp<clock::duration>(10 * took, blind_min, blind_max)});
        } else if (const auto found = heads_.find(queue); found != heads_.end() && found->second.gate == l.from) {
            found->second.gate = std::max(l.from, gate); // unless it was changed meanwhile
        }
    }

    /// The claim has failed, or says nothing about where the first entry is.
    void drop(const look& l) noexcept {
        if (l.number != 0) {
            const std::lock_guard lock(mutex_);
            looks_.erase(l.number);
        }
    }

    /// Whether the last claim of this process found as many entries as it may take. Only a guess for the next one.
    [[nodiscard]] bool has_backlog() const noexcept { return has_backlog_; }
    void note_backlog(bool is_full) noexcept { has_backlog_ = is_full; }

    /// The store has committed an entry with this gate.
    void lower(std::string_view queue, time_point gate) noexcept {
        if (!is_held_) {
            return;
        }
        const std::lock_guard lock(mutex_);
        if (const auto found = heads_.find(queue); found != heads_.end()) {
            found->second.gate = std::min(found->second.gate, gate);
        }
        for (auto& [number, open] : looks_) {
            if (open.queue == queue) {
                open.lowest = std::min(open.lowest, gate);
            }
        }
    }

    /// Makes the next claims look everywhere: a transaction has unlocked what others have passed over.
    void forget() noexcept {
        if (is_held_) {
            const std::lock_guard lock(mutex_);
            heads_.clear();
            looks_.clear();
        }
    }

    /// Whether the caller should ask the server for its oldest snapshot now, and then call `note_snapshot`.
    [[nodiscard]] bool wants_snapshot(clock::time_point at) {
        if (!wants_snapshot_) {
            return false;
        }
        const std::lock_guard lock(mutex_);
        asked_at_ = at;
        return wants_snapshot_.exchange(false);
    }

    /// Empty: there is none.
    void note_snapshot(std::string oldest, clock::time_point at) {
        const std::lock_guard lock(mutex_);
        if (oldest.empty() || oldest != oldest_) {
            oldest_ = std::move(oldest);
            same_since_ = at;
            heads_.clear();
            looks_.clear();
        }
        is_held_ = at - same_since_ >= ask_interval;
    }

  private:
    struct head {
        time_point gate{};
        clock::time_point good_until{};
    };
    struct open_look {
        std::string queue{};
        time_point lowest = time_point::max(); ///< of the gates that the store has committed since it began
    };

    [[nodiscard]] time_point head_of(std::string_view queue, clock::time_point at) const {
        const auto found = heads_.find(queue);
        return found == heads_.end() || at >= found->second.good_until ? everywhere : found->second.gate;
    }

    mutable std::mutex mutex_{};
    std::atomic<bool> is_held_ = false;
    std::atomic<bool> wants_snapshot_ = false;
    std::atomic<bool> has_backlog_ = false;
    clock::time_point asked_at_;
    std::string oldest_{}; ///< the transaction up to which the oldest snapshot sees all
    clock::time_point same_since_{};
    std::map<std::string, head, std::less<>> heads_{};
    std::map<std::uint64_t, open_look> looks_{};
    std::uint64_t last_number_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/entry_row.hpp
// A row as an entry, and the encoding of the fields that are lists.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

[[nodiscard]] inline std::string encode_trail(const id_list& trail) {
    std::string out;
    out.reserve(trail.size() * 16);
    for (const auto& one : trail) {
        const auto bytes = one.bytes();
        out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return out;
}

inline void decode_trail(std::string_view from, id_list& to) {
    std::array<std::uint8_t, 16> bytes{};
    row::expect(from.size() % bytes.size() == 0, "postgres: the tables are damaged: a trail is not a list of ids");
    to.clear();
    for (; !from.empty(); from.remove_prefix(bytes.size())) {
        std::memcpy(bytes.data(), from.data(), bytes.size());
        to.push_back(id::from_bytes(bytes));
    }
}

/// Four bytes of length, least significant first, then the text; name and value in turn.
[[nodiscard]] inline std::string encode_headers(const header_list& headers) {
    std::string out;
    const auto add = [&](std::string_view text) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            out.push_back(static_cast<char>((text.size() >> shift) & 0xffU));
        }
        out.append(text);
    };
    for (const auto& [name, value] : headers) {
        add(name);
        add(value);
    }
    return out;
}

inline void decode_headers(std::string_view from, header_list& to) {
    const auto take = [&] {
        constexpr std::size_t length_bytes = 4;
        std::size_t size = 0;
        for (std::size_t i = 0; i < length_bytes && i < from.size(); ++i) {
            size |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
        }
        row::expect(from.size() >= length_bytes && size <= from.size() - length_bytes,
                    "postgres: the tables are damaged: headers are not a list of names and values");
        std::string text(from.substr(length_bytes, size));
        from.remove_prefix(length_bytes + size);
        return text;
    };
    to.clear();
    while (!from.empty()) {
        auto name = take();
        to.emplace_back(std::move(name), take());
    }
}

/// Throws `corrupt` for a life that no verb can have produced, or whose counters the next verb would overflow.
inline void expect_sound(const life& l) {
    const bool is_held = l.lease_until && l.attempts > 0 && l.epoch > 0;
    row::expect(l.state != state::claimed || is_held,
                "postgres: the tables are damaged: a claimed entry has no lease, attempt or epoch");
    row::expect(l.attempts < UINT32_MAX && l.lapses < UINT32_MAX && l.failures < UINT32_MAX && l.epoch < INT64_MAX,
                "postgres: the tables are damaged: a counter of an entry is at its maximum");
}

/// Adds the fields that are lists, and checks the whole.
inline void finish(entry& e, std::string_view trail, std::string_view headers) {
    decode_trail(trail, e.trail);
    decode_headers(headers, e.headers);
    row::expect(e.sequence > 0, "postgres: the tables are damaged: an entry's sequence is 0");
    expect_sound(e);
}

/// Reads the part `{unknown}` of `sql_parts.hpp`: an entry that the request has claimed.
inline void read_claimed(row& from, const claim_request& by, entry& e) {
    std::string trail;
    std::string headers;
    from.read(e.sequence, e.id, e.topic, or_default{e.key}, or_default{e.group}, or_default{e.lane},
              or_default{e.parent}, or_default{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
              e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.last_error, or_default{trail}, or_default{headers},
              or_default{e.progress}, or_default{e.payload});
    e.queue = by.queue;
    e.state = state::claimed;
    e.lease_until = by.now + by.lease;
    e.worker = by.worker;
    e.updated_at = by.now;
    e.last_attempt_at = by.now;
    finish(e, trail, headers);
}

/// Reads the part `{entry}` of `sql_parts.hpp` and the payload after it.
inline void read_entry(row& from, entry& e) {
    std::string trail;
    std::string headers;
    from.read(e.sequence, e.id, e.queue, e.topic, or_default{e.key}, or_default{e.group}, or_default{e.lane},
              or_default{e.parent}, or_default{e.predecessor}, e.generation, e.attempts_max, e.expires_at, e.created_at,
              e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.lease_until, e.woken, e.worker,
              e.last_error, e.updated_at, e.last_attempt_at, or_default{trail}, or_default{headers},
              or_default{e.progress}, e.result, or_default{e.payload});
    finish(e, trail, headers);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/session.hpp
// What a transaction remembers between calls.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct session {
    std::uint64_t transaction_number = 0;                          ///< the server's; 0 until something was written
    std::map<std::string, time_point, std::less<>> woken_queues{}; ///< in which work may be due sooner; the lowest gate
    bool has_plain_settles = false; ///< whether those of the last settle were successes that reach no other entry

    void wake(const std::string& queue, time_point gate) {
        const auto [at, is_new] = woken_queues.emplace(queue, gate);
        at->second = std::min(at->second, gate);
    }
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/claimer.hpp
// Claim on one connection, inside a transaction: one statement, which skips rows that another transaction has locked.
// Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class claimer {
  public:
    /// Without `heads` it looks everywhere.
    claimer(connection& on, session& in, claim_heads* heads) noexcept : on_(on), session_(in), heads_(heads) {}
    claimer(const claimer&) = delete;
    claimer& operator=(const claimer&) = delete;
    ~claimer() {
        if (heads_ != nullptr) {
            heads_->drop(look_); // if it has not ended
        }
    }

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        if (r.limit == 0) {
            return {};
        }
        on_.set_doing("claim");
        const auto until = r.now + r.lease;
        if (!r.only.is_nil()) {
            return read(r, on_.ask(sql::claim_only, parameters(r.queue, r.now, r.only, until, r.worker)));
        }
        begin_look(r);
        auto claimed = read(
            r, on_.ask(sql::claim, parameters(r.queue, r.now, std::uint64_t{r.limit}, until, r.worker, look_.from)));
        end_look(r, claimed);
        return claimed;
    }

    /// The places of the answers to a claim that takes nothing if one of the entries has an expired lease.
    struct unlapsed {
        std::size_t claimed = 0;
        std::optional<std::size_t> is_due{};
        [[nodiscard]] std::size_t last() const noexcept { return is_due.value_or(claimed); }
    };

    /// Adds such a claim. In the middle of a backlog it does not ask whether anything is due.
    [[nodiscard]] unlapsed add_unlapsed(const claim_request& r) {
        on_.set_doing("claim");
        begin_look(r);
        unlapsed at{.claimed = on_.add(sql::claim_unlapsed, parameters(r.queue, r.now, std::uint64_t{r.limit},
                                                                       r.now + r.lease, r.worker, look_.from))};
        if (heads_ == nullptr || !heads_->has_backlog()) {
            at.is_due = on_.add(sql::is_due, parameters(r.queue, r.now, look_.from));
        }
        return at;
    }

    /// Its answers. Nothing: an entry has an expired lease, other transactions have locked what is due, or nothing is due
    /// and it did not ask.
    [[nodiscard]] std::optional<std::vector<entry>> read_unlapsed(const claim_request& r, const unlapsed& at,
                                                                  const std::vector<rows>& answers) {
        auto claimed = read(r, answers[at.claimed]);
        bool is_due = true;
        if (at.is_due) {
            answers[*at.is_due][0].read(is_due);
        }
        if (claimed.empty() && is_due) { // says nothing about where the first entry is
            note_backlog(false);
            return std::nullopt;
        }
        end_look(r, claimed);
        return claimed;
    }

  private:
    void begin_look(const claim_request& r) {
        if (heads_ != nullptr) {
            look_ = heads_->begin(r.queue, claim_heads::clock::now());
            if (const auto own = session_.woken_queues.find(r.queue); own != session_.woken_queues.end()) {
                look_.from = std::min(look_.from, own->second); // a transaction sees its own writes
            }
        }
    }
    void end_look(const claim_request& r, const std::vector<entry>& claimed) {
        if (heads_ != nullptr) {
            const auto first = claimed.empty() ? std::nullopt : std::optional(claimed.front().due_at);
            heads_->end(look_, r.queue, {.now = r.now, .first = first}, claim_heads::clock::now());
        }
        note_backlog(claimed.size() == r.limit);
    }
    void note_backlog(bool is_full) noexcept {
        if (heads_ != nullptr) {
            heads_->note_backlog(is_full);
        }
    }

    [[nodiscard]] std::vector<entry> read(const claim_request& r, const rows& found) {
        std::vector<entry> claimed(found.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            auto one = found[i];
            one.read(session_.transaction_number);
            read_claimed(one, r, claimed[i]);
        }
        const auto is_before = [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        };
        if (!std::is_sorted(claimed.begin(), claimed.end(), is_before)) { // else a sort would move all of them
            std::sort(claimed.begin(), claimed.end(), is_before);
        }
        return claimed;
    }

    connection& on_;
    session& session_;
    claim_heads* heads_;
    claim_heads::look look_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/wake_counts.hpp
// The numbers that waiting threads watch, one for each queue. Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class wake_counts {
  public:
    void raise(const std::string& queue) noexcept {
        {
            const std::lock_guard lock(mutex_);
            try {
                counts_[queue] += 1;
            } catch (...) {
                all_ += 1; // no memory for the name: wakes every queue
            }
        }
        raised_.notify_all();
    }
    void raise_all() noexcept {
        {
            const std::lock_guard lock(mutex_);
            all_ += 1;
        }
        raised_.notify_all();
    }

    [[nodiscard]] std::uint64_t of(std::string_view queue) const {
        const std::lock_guard lock(mutex_);
        return count_of(queue);
    }

    /// Waits until the number differs from `seen`, `at_most` has passed, or a stop is requested. Returns the number.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        std::unique_lock lock(mutex_);
        raised_.wait_for(lock, std::move(stop), at_most, [&] { return count_of(queue) != seen; });
        return count_of(queue);
    }

  private:
    [[nodiscard]] std::uint64_t count_of(std::string_view queue) const {
        const auto found = counts_.find(queue);
        return found == counts_.end() ? all_ : found->second + all_;
    }

    mutable std::mutex mutex_{};
    std::condition_variable_any raised_{};
    std::map<std::string, std::uint64_t, std::less<>> counts_{};
    std::uint64_t all_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/listener.hpp
// Hears of commits of other processes: one connection and one thread for each database and prefix in this process. It
// begins when a thread first asks for `wakes` or waits. While it listens, its server process has a row in `@listeners`,
// so that writers know that a NOTIFY is wanted. If it loses its connection it makes another one and wakes every queue,
// because it may have missed something.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class listener {
  public:
    /// The one for this database and prefix in this process.
    [[nodiscard]] static std::shared_ptr<listener> of(const std::string& conninfo, const table_names& names,
                                                      std::chrono::milliseconds connect_limit) {
        static std::mutex mutex;
        static std::map<std::pair<std::string, std::string>, std::weak_ptr<listener>> known;
        const std::lock_guard lock(mutex);
        std::erase_if(known, [](const auto& one) { return one.second.expired(); });
        auto& mine = known[{conninfo, names.channel()}];
        auto found = mine.lock();
        if (!found) {
            found = std::make_shared<listener>(conninfo, names, connect_limit);
            mine = found;
        }
        return found;
    }

    listener(std::string conninfo, table_names names, std::chrono::milliseconds connect_limit)
        : conninfo_(std::move(conninfo)), names_(std::move(names)), connect_limit_(connect_limit) {}
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;
    ~listener() {
        if (thread_.joinable()) {
            thread_.request_stop();
            static_cast<void>(write(pipe_[1], "", 1));
            thread_.join();
        }
        for (const int end : pipe_) {
            if (end >= 0) {
                close(end);
            }
        }
    }

    [[nodiscard]] wake_counts& counts() noexcept { return counts_; }

    /// Begins to listen, if it has not begun. Waits for the first attempt, for at most `at_most`; if that fails, it tries
    /// again later.
    void begin(std::chrono::nanoseconds at_most, std::stop_token stop) {
        std::unique_lock lock(mutex_);
        if (!thread_.joinable()) {
            open_pipe();
            thread_ = std::jthread([this](const std::stop_token& end) { run(end); });
        }
        tried_.wait_for(lock, std::move(stop), at_most, [&] { return has_tried_; });
    }

  private:
    void open_pipe() {
        if (pipe(pipe_.data()) != 0) {
            pipe_ = {-1, -1};
            throw error(error_kind::full, "postgres: wait: no file descriptor is left", {.code = errno});
        }
        for (const int end : pipe_) {
            fcntl(end, F_SETFD, FD_CLOEXEC);
        }
    }

    void run(const std::stop_token& stop) noexcept {
        while (!stop.stop_requested()) {
            try {
                listen(stop);
            } catch (...) {
                // A wake-up is only a hint. The next attempt follows.
            }
            set_tried();
            pollfd stopped{pipe_[0], POLLIN, 0};
            constexpr int pause_ms = 200;
            if (!stop.stop_requested()) {
                poll(&stopped, 1, pause_ms);
            }
        }
    }

    void set_tried() noexcept {
        const std::lock_guard lock(mutex_);
        has_tried_ = true;
        tried_.notify_all();
    }

    /// Listens until the connection is lost or a stop is requested.
    void listen(const std::stop_token& stop) {
        const auto c = connect(conninfo_, {.limit = connect_limit_, .interrupt = pipe_[0]});
        run_text(c.get(), "LISTEN \"" + names_.channel() + '"', "listen");
        run_text(c.get(), names_.in("DELETE FROM @listeners WHERE pid NOT IN (SELECT pid FROM pg_stat_activity)"),
                 "listen");
        run_text(c.get(), names_.in("INSERT INTO @listeners VALUES (pg_backend_pid()) ON CONFLICT DO NOTHING"),
                 "listen");
        counts_.raise_all(); // after this every commit is heard of
        set_tried();
        while (!stop.stop_requested()) {
            std::array<pollfd, 2> ready{pollfd{PQsocket(c.get()), POLLIN, 0}, pollfd{pipe_[0], POLLIN, 0}};
            constexpr int forever = -1;
            poll(ready.data(), ready.size(), forever);
            if (ready[0].revents != 0 && PQconsumeInput(c.get()) != 1) {
                return;
            }
            hear(c.get());
        }
        leave(c.get());
    }

    /// Takes the row away. The next listener would do it, too, so a server that is silent is not waited for.
    void leave(PGconn* c) const {
        const auto text = names_.in("DELETE FROM @listeners WHERE pid = pg_backend_pid()");
        if (PQsendQuery(c, text.c_str()) == 1) {
            static_cast<void>(wait_for_socket(PQsocket(c), POLLIN, steady::now() + std::chrono::seconds{1}));
        }
    }

    void hear(PGconn* c) {
        std::set<std::string> queues;
        struct freer {
            void operator()(PGnotify* n) const noexcept { PQfreemem(n); }
        };
        while (const auto heard = std::unique_ptr<PGnotify, freer>(PQnotifies(c))) {
            queues.insert(heard->extra);
        }
        for (const auto& queue : queues) {
            counts_.raise(queue);
        }
    }

    std::string conninfo_;
    table_names names_;
    std::chrono::milliseconds connect_limit_;
    wake_counts counts_{};
    std::mutex mutex_{};
    std::condition_variable_any tried_{};
    bool has_tried_ = false;
    std::array<int, 2> pipe_{-1, -1}; // ends the wait of the thread
    std::jthread thread_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/notify.hpp
// The statement that wakes the processes which listen for a transaction's queues. It travels with the commit.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline void add_notify(connection& on, const session& in) {
    if (in.woken_queues.empty()) {
        return;
    }
    array queues(pg_type::text);
    for (const auto& [queue, gate] : in.woken_queues) {
        queues.add(queue);
    }
    on.add(sql::notify, parameters(on.names().channel(), queues));
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/plain_queues.hpp
// Guesses in which queues the entries have neither group nor lane nor parent, from what the last settles have found. Their
// settles travel with the next claim and the commit. A wrong guess costs one round trip, so after one it takes some settles
// until the queue counts as plain again.
// Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class plain_queues {
  public:
    /// How many plain settles in a row it takes after one that was not.
    static constexpr int plain_min = 8;

    [[nodiscard]] bool contains(std::string_view queue) const {
        const std::lock_guard lock(mutex_);
        return missing_.find(queue) == missing_.end();
    }

    /// A settle of entries that were probably claimed from this queue.
    void note(std::string_view queue, bool was_plain) {
        const std::lock_guard lock(mutex_);
        const auto found = missing_.find(queue);
        if (!was_plain) {
            missing_.insert_or_assign(std::string(queue), plain_min);
        } else if (found != missing_.end() && --found->second == 0) {
            missing_.erase(found);
        }
    }

  private:
    mutable std::mutex mutex_{};
    std::map<std::string, int, std::less<>> missing_{}; ///< how many plain settles it takes yet
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/server_life.hpp
// Finds out whether a transaction has committed whose connection was lost. PostgreSQL can tell by the transaction's
// number, but after a crash, or a failover, it may give the same number to another transaction. So "committed" counts
// only if the server is in the same life: a row in an unlogged table, which PostgreSQL empties after a crash and does
// not copy to replicas, has the same value as before. (The start time of the checkpointer would tell as well, but only
// to privileged roles.)

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// The mark of the server's life. Makes one if there is none yet. Nil if there is none and the role may not write: then it
/// has no commits to ask about.
[[nodiscard]] inline id server_life(PGconn* c, const table_names& names) {
    const auto read = names.in("SELECT life FROM @server");
    auto found = run_text(c, read, "connect");
    if (found.size() == 0) {
        try {
            run_text(c,
                     names.in("INSERT INTO @server VALUES (1, md5(random()::text || clock_timestamp()::text)::uuid) "
                              "ON CONFLICT DO NOTHING"),
                     "connect");
        } catch (const error& e) {
            if (e.kind() != error_kind::read_only) {
                throw;
            }
            return {};
        }
        found = run_text(c, read, "connect");
    }
    id life;
    row::expect(found.size() == 1, "postgres: the tables are damaged: the row of the server's life is missing");
    found[0].read(life);
    return life;
}

/// Waits until server processes have ended, for at most a second in all. One that has lost its client keeps its locks until
/// it notices.
inline void wait_for_end(PGconn* c, const std::vector<int>& processes) {
    if (processes.empty()) {
        return;
    }
    std::string list;
    for (const int one : processes) {
        list.append(list.empty() ? "" : ", ").append(std::to_string(one));
    }
    constexpr std::chrono::milliseconds pause{2};
    const auto end = steady::now() + std::chrono::seconds{1};
    const auto text = "SELECT 1 FROM pg_stat_activity WHERE pid IN (" + list + ") AND pid <> pg_backend_pid() LIMIT 1";
    while (run_text(c, text, "connect").size() != 0 && steady::now() < end) {
        std::this_thread::sleep_for(pause);
    }
}

/// Whether the standbys that commits wait for have everything that this server has committed. A COMMIT that was ended while
/// it waited for them is committed here, but a failover would lose it. A new commit waits for all before it.
[[nodiscard]] inline bool is_replicated(PGconn* c) {
    bool has_standbys = false;
    run_text(c, "SELECT current_setting('synchronous_standby_names') <> ''", "commit")[0].read(has_standbys);
    if (!has_standbys) {
        return true;
    }
    bool is_cancelled = false; // then the server warns, and answers as if all were well
    PQsetNoticeReceiver(
        c, [](void* flag, const PGresult*) { *static_cast<bool*>(flag) = true; }, &is_cancelled);
    const auto end = steady::now() + std::chrono::seconds{2};
    bool is_done = PQsendQuery(c, "SELECT pg_logical_emit_message(true, 'vouch', '')") == 1;
    while (is_done && PQisBusy(c) == 1) {
        is_done = wait_for_socket(PQsocket(c), POLLIN, end) && PQconsumeInput(c) == 1;
    }
    const result_ptr answer(is_done ? PQgetResult(c) : nullptr);
    return PQresultStatus(answer.get()) == PGRES_TUPLES_OK && !is_cancelled;
}

enum class commit_fate : std::uint8_t { committed, rolled_back, unknown };

/// Whether the transaction has committed. `c` is a new connection, `life` the server's life when the transaction was open.
[[nodiscard]] inline commit_fate fate_of(PGconn* c, const table_names& names, std::uint64_t transaction_number,
                                         const id& life) {
    const auto text = "SELECT txid_status(" + std::to_string(transaction_number) + "::bigint)";
    std::string status = "in progress";
    constexpr std::chrono::milliseconds pause{2};
    const auto end = steady::now() + std::chrono::seconds{1};
    while (status == "in progress" && steady::now() < end) {
        // The life is read after the status: if it is the same then, it was the same before.
        run_text(c, text, "commit")[0].read(or_default{status});
        if (status == "in progress") {
            std::this_thread::sleep_for(pause);
        }
    }
    if (status == "aborted") {
        return commit_fate::rolled_back;
    }
    const bool is_certain =
        status == "committed" && !life.is_nil() && server_life(c, names) == life && is_replicated(c);
    return is_certain ? commit_fate::committed : commit_fate::unknown;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/options.hpp
// How a store uses its database.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// Every member has a usable default.
struct options {
    std::string prefix{default_prefix}; ///< of every table and index, with or without a schema; see `prefix.hpp`
    bool create = true; ///< create or migrate the schema and the tables; false: they must exist, in this version
    /// How many transactions may be open at the same time, and how many reads on the store. The copies of a store share
    /// these connections, which are opened when they are first needed. At least 1.
    std::size_t connections_max = 8;
    /// How long `begin` waits for a connection, and a statement for the lock of another transaction, before `busy` is
    /// thrown. At least 1 ms.
    std::chrono::milliseconds busy_limit{10'000};
    /// How long to wait for a connection to be made, and for a server that is starting up. At least 1 ms.
    std::chrono::milliseconds connect_limit{10'000};
    /// Whether to prepare statements and to configure connections. Set it to false if conninfo leads to pgbouncer in
    /// transaction mode, or to another pool that changes servers between transactions.
    bool prepare = true;
    /// Whether commits of other processes end a `wait`. If false, only commits of this process do.
    bool listen = true;
    /// A conninfo that leads directly to the server, for LISTEN, which does not work through pgbouncer in transaction
    /// mode. Empty: the store's own conninfo.
    std::string listen_conninfo{};
};

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/pool.hpp
// The connections of a store. They are made when they are needed and kept until the store is destroyed; one that has died
// is replaced. Transactions and reads have separate allowances, so that a read never waits for a transaction. Safe for
// any number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class pool {
  public:
    enum class purpose : std::size_t { transaction, read };

    pool(std::string conninfo, const options& how)
        : conninfo_(std::move(conninfo)), options_(how), names_(how.prefix) {}

    /// Waits for a connection. Throws `busy` after `options::busy_limit`; `misuse` if this thread has all transactions
    /// open itself.
    [[nodiscard]] std::unique_ptr<connection> take(purpose what) {
        std::unique_lock lock(mutex_);
        auto& lent = lent_[static_cast<std::size_t>(what)];
        refuse_to_wait_for_itself(what);
        if (!returned_.wait_for(lock, options_.busy_limit, [&] { return lent < options_.connections_max; })) {
            throw error(error_kind::busy, "postgres: all " + std::to_string(options_.connections_max) +
                                              " connections are in use, and none came free within busy_limit; raise "
                                              "connections_max, or end transactions sooner");
        }
        lent += 1;
        try {
            auto found = take_idle();
            if (!found) {
                const auto gone = std::exchange(leaving_, {});
                lock.unlock();
                found = make(gone);
                lock.lock();
            }
            if (what == purpose::transaction) {
                threads_[found.get()] = std::this_thread::get_id();
            }
            return found;
        } catch (...) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            lent -= 1;
            returned_.notify_one();
            throw;
        }
    }

    /// Requires that the connection is in no transaction, or lost.
    void give_back(std::unique_ptr<connection> one, purpose what) noexcept {
        const std::lock_guard lock(mutex_);
        threads_.erase(one.get());
        lent_[static_cast<std::size_t>(what)] -= 1;
        try {
            if (one->is_lost()) {
                leaving_.push_back(one->server_process);
            } else {
                idle_.push_back(std::move(one));
            }
        } catch (...) {
            // No memory for the list: the connection is closed.
        }
        returned_.notify_all();
    }

    /// Notes which thread uses a transaction; none after it was moved.
    void set_thread(const connection* one, std::optional<std::thread::id> thread) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = threads_.find(one);
        if (found != threads_.end()) {
            found->second = thread.value_or(std::thread::id{});
        }
    }

    /// Adds a connection to tables that exist.
    void add(owned_connection c) {
        auto one = configured(std::move(c));
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(one));
    }

    [[nodiscard]] const table_names& names() const noexcept { return names_; }
    [[nodiscard]] const options& how() const noexcept { return options_; }
    [[nodiscard]] const std::string& conninfo() const noexcept { return conninfo_; }

  private:
    void refuse_to_wait_for_itself(purpose what) const {
        if (what != purpose::transaction || threads_.size() < options_.connections_max) {
            return;
        }
        for (const auto& [one, thread] : threads_) {
            if (thread != std::this_thread::get_id()) {
                return;
            }
        }
        throw error(error_kind::misuse,
                    "postgres: begin: this thread has all connections_max transactions open and would "
                    "wait for itself; end one of them first");
    }

    /// The connection that was used last, if it is alive. A server that has ended it has said so, and the socket can be
    /// read.
    [[nodiscard]] std::unique_ptr<connection> take_idle() {
        while (!idle_.empty()) {
            auto last = std::move(idle_.back());
            idle_.pop_back();
            if (!last->is_lost() && !is_readable(PQsocket(last->handle()))) {
                return last;
            }
        }
        return nullptr;
    }

    [[nodiscard]] std::unique_ptr<connection> make(const std::vector<int>& gone) const {
        auto c = connect(conninfo_, {.limit = options_.connect_limit, .is_returning = true});
        wait_for_end(c.get(), gone);
        return configured(std::move(c));
    }

    [[nodiscard]] std::unique_ptr<connection> configured(owned_connection c) const {
        if (options_.prepare) {
            // The plans of prepared statements must suit large tables, even if they are made while the tables are empty.
            run_text(c.get(),
                     "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), "
                     "set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), "
                     "set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false), "
                     "set_config('jit', 'off', false), "
                     "set_config('default_transaction_isolation', 'read committed', false), "
                     "set_config('default_transaction_read_only', 'off', false), set_config('lock_timeout', '" +
                         std::to_string(options_.busy_limit.count()) + "', false)",
                     "connect");
        }
        const auto life = server_life(c.get(), names_);
        using how = connection::statements_are;
        auto one =
            std::make_unique<connection>(std::move(c), names_, options_.prepare ? how::prepared : how::sent_as_text);
        one->life = life;
        one->server_process = PQbackendPID(one->handle());
        return one;
    }

    std::string conninfo_;
    options options_;
    table_names names_;
    std::mutex mutex_{};
    std::condition_variable returned_{};
    std::array<std::size_t, 2> lent_{};
    std::vector<std::unique_ptr<connection>> idle_{};
    std::vector<int> leaving_{}; // server processes that may not have noticed yet that their connection is lost
    std::map<const connection*, std::thread::id> threads_{}; // of open transactions: who used it last
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/purge_positions.hpp
// Where the last purge of a queue stopped. Kept in memory only: a new process begins with the oldest entries. Safe for any
// number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// A place in the order in which entries have ended. A default place is before all entries.
struct ended_position {
    std::int64_t updated_at = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const ended_position&, const ended_position&) noexcept = default;
};

class purge_positions {
  public:
    [[nodiscard]] ended_position of(const purge_request& request) {
        const std::lock_guard lock(mutex_);
        const auto found = positions_.find({request.queue, request.state});
        return found == positions_.end() ? ended_position{} : found->second;
    }
    /// Nothing: the next purge begins with the oldest.
    void set(const purge_request& request, const std::optional<ended_position>& stopped) {
        const std::lock_guard lock(mutex_);
        if (stopped) {
            positions_[{request.queue, request.state}] = *stopped;
        } else {
            positions_.erase({request.queue, request.state});
        }
    }

  private:
    std::mutex mutex_{};
    std::map<std::pair<std::string, std::optional<state>>, ended_position> positions_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/database.hpp
// What all copies of a store share. Safe for any number of threads.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline void validate(const options& how) {
    const auto refuse = [](const char* what) {
        throw error(error_kind::invalid_argument, std::string("postgres: options: ") + what);
    };
    constexpr std::chrono::milliseconds least{1};
    if (how.connections_max == 0) {
        refuse("connections_max is 0; it must be at least 1");
    }
    if (how.busy_limit < least || how.busy_limit > std::chrono::hours{24}) {
        refuse("busy_limit must be 1 ms to 24 h");
    }
    if (how.connect_limit < least || how.connect_limit > std::chrono::hours{24}) {
        refuse("connect_limit must be 1 ms to 24 h");
    }
}

class database {
  public:
    database(const std::string& conninfo, const options& how) : pool_(conninfo, checked(how, conninfo)) {
        auto c = connect(conninfo, {.limit = how.connect_limit});
        if (how.create) {
            migrate(c.get(), pool_.names(), migrations);
        } else {
            expect_schema(c.get(), pool_.names());
        }
        pool_.add(std::move(c));
        listener_ = listener::of(how.listen_conninfo.empty() ? conninfo : how.listen_conninfo, pool_.names(),
                                 how.connect_limit);
    }

    [[nodiscard]] detail::pool& pool() noexcept { return pool_; }
    [[nodiscard]] purge_positions& positions() noexcept { return positions_; }
    [[nodiscard]] claim_heads& heads() noexcept { return heads_; }
    [[nodiscard]] plain_queues& plain() noexcept { return plain_; }
    [[nodiscard]] wake_counts& counts() noexcept { return listener_->counts(); }

    /// From now on, commits of other processes raise the counts, too. The first call waits for the connection, but not
    /// longer than `at_most`.
    void listen(std::chrono::nanoseconds at_most, std::stop_token stop) {
        if (pool_.how().listen) {
            listener_->begin(at_most, std::move(stop));
        }
    }

    /// Commits. If the answer was lost, finds out whether the transaction has committed.
    void commit(connection& on, const session& in) {
        on.set_doing("commit");
        add_notify(on, in);
        const bool is_known = on.commit().is_known;
        if (!is_known && in.transaction_number == 0) {
            throw error(error_kind::io,
                        "postgres: commit: the connection was lost; the transaction had written nothing");
        }
        if (!is_known || (on.has_warned() && in.transaction_number != 0)) {
            resolve(on, in);
        }
        announce(in);
    }

    /// Commits in one round trip with statements that were added and whose answers end with the place `last`. Calls `read`
    /// with all answers; it may note the transaction's number. An error is in doubt if the commit may have happened.
    template <class Read>
    void commit_with(connection& on, session& in, connection::ends how, std::size_t last, const Read& read) {
        add_notify(on, in);
        const auto got = on.commit(how);
        const bool has_answer = got.answers.size() > last;
        if (has_answer) {
            try {
                read(got.answers);
            } catch (const error& e) {
                throw_in_doubt(e);
            } catch (const std::bad_alloc&) {
                throw out_of_memory_in_doubt;
            }
        }
        if (!got.is_known || (on.has_warned() && in.transaction_number != 0)) {
            resolve(on, in);
            if (!has_answer) {
                throw commit_in_doubt;
            }
        }
        announce(in);
    }

  private:
    [[nodiscard]] static const options& checked(const options& how, const std::string& conninfo) {
        validate(how);
        validate_conninfo(conninfo);
        if (!how.listen_conninfo.empty()) {
            validate_conninfo(how.listen_conninfo);
        }
        return how;
    }

    /// Wakes the waiting threads of this process.
    void announce(const session& in) noexcept {
        for (const auto& [queue, gate] : in.woken_queues) {
            heads_.lower(queue, gate);
            counts().raise(queue);
        }
    }

    [[noreturn]] static void throw_in_doubt(const error& e) {
        try {
            throw error(e.kind(), e.what(), {.in_doubt = true, .text_code = e.text_code()});
        } catch (const std::bad_alloc&) {
            throw out_of_memory_in_doubt;
        }
    }

    /// Returns if the transaction has committed, and throws otherwise. Without its number, it is in doubt.
    void resolve(const connection& lost, const session& in) {
        auto fate = commit_fate::unknown;
        try {
            if (in.transaction_number != 0) {
                const auto c = connect(pool_.conninfo(), {.limit = pool_.how().connect_limit, .is_returning = true});
                fate = fate_of(c.get(), pool_.names(), in.transaction_number, lost.life);
            }
        } catch (...) {
            fate = commit_fate::unknown;
        }
        if (fate == commit_fate::rolled_back) {
            throw error(error_kind::io, "postgres: commit: the connection was lost, and the server has rolled back");
        }
        if (fate == commit_fate::unknown) {
            throw commit_in_doubt;
        }
    }

    detail::pool pool_;
    purge_positions positions_{};
    claim_heads heads_{claim_heads::clock::now()};
    plain_queues plain_{};
    std::shared_ptr<listener> listener_{};
};

/// A connection on loan from the pool, and the transaction on it. Rolls back if it has not committed.
class loan {
  public:
    loan(std::shared_ptr<database> in, pool::purpose what)
        : in_(std::move(in)), purpose_(what), on_(in_->pool().take(what)) {}
    loan(const loan&) = delete;
    loan& operator=(const loan&) = delete;
    ~loan() {
        roll_back();
        in_->pool().give_back(std::move(on_), purpose_);
    }

    [[nodiscard]] connection& on() noexcept { return *on_; }
    [[nodiscard]] database& in() noexcept { return *in_; }

    /// For statements that travel with their commit and are the whole transaction. They need no BEGIN, unless settings
    /// are made for the transaction.
    void begin_whole() {
        if (has_begun_ || !in_->pool().how().prepare) {
            begin();
        }
    }
    /// Sends BEGIN with the next statement.
    void begin() {
        if (!has_begun_) {
            on_->add(in_->pool().how().prepare ? sql::begin_configured : sql::begin);
            has_begun_ = true;
            configure();
        } else {
            expect_not_ended();
        }
    }
    /// Sends the settings for a read, or for a transaction that has begun, if the connection cannot keep them.
    void configure() {
        if (!in_->pool().how().prepare) {
            on_->add(sql::configure, parameters(std::to_string(in_->pool().how().busy_limit.count())));
        }
    }
    /// Asks for the oldest snapshot, if a claim was slow. No claim fails because this does.
    void watch_snapshots() {
        using clock = claim_heads::clock;
        if (!in_->heads().wants_snapshot(clock::now())) {
            return;
        }
        std::string oldest;
        try {
            on_->set_doing("begin");
            on_->ask(sql::oldest_snapshot).each([&](row one) { one.read(oldest); });
        } catch (const error&) {
            oldest.clear();
        }
        in_->heads().note_snapshot(std::move(oldest), clock::now());
    }
    void roll_back() noexcept {
        if (has_begun_) {
            in_->heads().forget(); // claims have passed over what was locked here, and can be claimed again
        }
        on_->roll_back();
        has_begun_ = false;
    }
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
    void commit(const session& s) {
        if (has_begun_) {
            expect_not_ended();
            in_->commit(*on_, s);
            has_begun_ = false;
        }
    }
    /// Commits together with a statement that was added; see `database::commit_with`.
    template <class Read>
    void commit_with(session& s, std::size_t last, const Read& read) {
        try {
            in_->commit_with(*on_, s, has_begun_ ? connection::ends::with_commit : connection::ends::by_itself, last,
                             read);
        } catch (...) {
            in_->heads().forget(); // as in `roll_back`
            throw;
        }
        has_begun_ = false;
    }

  private:
    /// Outside a transaction, every statement would be a commit of its own.
    void expect_not_ended() const {
        if (!on_->is_lost() && !on_->has_pending() && PQtransactionStatus(on_->handle()) == PQTRANS_IDLE) {
            throw error(error_kind::misuse,
                        "postgres: a statement of the application has ended the transaction; what its "
                        "COMMIT has stored stays stored");
        }
    }

    std::shared_ptr<database> in_;
    pool::purpose purpose_;
    std::unique_ptr<connection> on_;
    bool has_begun_ = false;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/draft_arrays.hpp
// Drafts as the parameters of the statement `insert`: one array for each column. What most drafts have in common, such as
// the queue, is NULL in the array and sent once.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// What a successor takes from its predecessor.
struct inherited {
    std::string key{};
    std::string group{};
    std::string lane{};
    std::uint64_t replaces = 0; ///< the predecessor's sequence; 0: none
    std::uint32_t generation = 1;
};

class draft_arrays {
  public:
    /// Whether a draft is a member of a group.
    [[nodiscard]] bool has_group() const noexcept { return has_group_; }

    void add(const draft& d, const inherited& from) {
        if (is_empty_) {
            is_empty_ = false;
            queue_ = d.queue;
            topic_ = d.topic;
        }
        has_group_ = has_group_ || !from.group.empty();
        std::size_t next = 0;
        const auto put = [&](const auto& value) { columns_[next++].add(value); };
        put(d.id);
        put(if_set{d.queue != queue_, d.queue});
        put(if_set{d.topic != topic_, d.topic});
        put(or_null{from.key});
        put(or_null{from.group});
        put(or_null{from.lane});
        put(or_null{d.parent});
        put(d.due_at);
        put(d.expires_at);
        put(or_null{d.attempts_max});
        const auto trail = encode_trail(d.trail);
        put(or_null{trail});
        const auto headers = encode_headers(d.headers);
        put(or_null{headers});
        put(or_null{d.progress});
        put(d.result);
        put(d.payload);
        put(or_null{d.predecessor});
        put(or_null{from.replaces});
        put(from.generation == 1 ? std::nullopt : std::optional(from.generation));
    }

    [[nodiscard]] parameters for_statement(time_point now) const {
        parameters out(now);
        std::size_t bytes = 0;
        for (const auto& column : columns_) {
            bytes += column.bytes();
        }
        out.reserve(bytes + queue_.size() + topic_.size());
        for (const auto& column : columns_) {
            out.add(column);
        }
        out.add(queue_);
        out.add(topic_);
        return out;
    }

  private:
    using t = pg_type;
    bool is_empty_ = true;
    bool has_group_ = false;
    std::string queue_{}; ///< of the first draft
    std::string topic_{};
    std::array<array, 18> columns_{
        array(t::uuid),  array(t::text),   array(t::text),   array(t::text),   array(t::text),   array(t::text),
        array(t::uuid),  array(t::bigint), array(t::bigint), array(t::bigint), array(t::bytea),  array(t::bytea),
        array(t::bytea), array(t::bytea),  array(t::bytea),  array(t::uuid),   array(t::bigint), array(t::bigint)};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/lane_set.hpp
// Lanes, sorted, as the parameters of statements. All transactions lock lanes in this order.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Pairs of queue and lane.
using lane_set = std::set<std::pair<std::string, std::string>>;

[[nodiscard]] inline parameters parameters_of(const lane_set& lanes) {
    array queues(pg_type::text);
    array names(pg_type::text);
    for (const auto& [queue, lane] : lanes) {
        queues.add(queue);
        names.add(lane);
    }
    return parameters(queues, names);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/draft_inserter.hpp
// Enqueue on one connection, inside a transaction. Drafts are stored many at a time, in one round trip; those that turn out
// to be duplicates, and successors of dead entries, take more. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class draft_inserter {
  public:
    draft_inserter(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        on_.set_doing("enqueue");
        std::vector<receipt> receipts;
        receipts.reserve(drafts.size());
        while (!drafts.empty()) {
            const auto together = count_together(drafts);
            if (together == 0) {
                receipts.push_back(enqueue_successor(drafts.front(), now));
                drafts = drafts.subspan(1);
            } else {
                insert_together(drafts.first(together), now, receipts);
                drafts = drafts.subspan(together);
            }
        }
        return receipts;
    }

    /// Whether `add_all` can store these.
    [[nodiscard]] static bool is_one_statement(std::span<const draft> drafts) {
        return !drafts.empty() && count_together(drafts) == drafts.size() &&
               (drafts.size() == 1 || std::all_of(drafts.begin(), drafts.end(), is_plain));
    }

    /// Adds what stores the drafts, if none is a duplicate; otherwise nothing is stored. Returns the place of the answer.
    [[nodiscard]] std::size_t add_all(std::span<const draft> drafts, time_point now) {
        on_.set_doing("enqueue");
        const auto& d = drafts.front();
        if (drafts.size() == 1 && is_plain(d)) {
            return on_.add(sql::insert_one, parameters_of_one(d, now));
        }
        for (const auto& one : drafts) {
            note_stored(one, now); // before it is known: a duplicate wakes workers for nothing
        }
        if (drafts.size() > 1) {
            return on_.add(sql::insert_all, arrays_of(drafts).for_statement(now));
        }
        const auto lanes = lanes_of(d);
        const auto place = add_insert(arrays_of(drafts), lanes, now);
        if (!lanes.empty()) {
            on_.add(sql::drop_lanes, parameters_of(lanes)); // if it was a duplicate
        }
        return place;
    }
    /// Whether the drafts were stored. A duplicate among several is an error, `not_all_stored`.
    [[nodiscard]] bool read_all(std::span<const draft> drafts, time_point now, const rows& answer) {
        if (answer.size() == 0) {
            session_.woken_queues.clear();
            return false;
        }
        const auto& d = drafts.front();
        auto first = answer[0];
        if (drafts.size() == 1 && is_plain(d)) {
            note_stored(d, now);
        } else if (drafts.size() == 1) {
            first.skip(); // the id
        }
        first.read(session_.transaction_number);
        return true;
    }

  private:
    [[nodiscard]] static bool is_plain(const draft& d) noexcept { return d.group.empty() && d.lane.empty(); }

    [[nodiscard]] parameters parameters_of_one(const draft& d, time_point now) const {
        const auto trail = encode_trail(d.trail);
        const auto headers = encode_headers(d.headers);
        return parameters(now, on_.names().channel(), d.id, d.queue, d.topic, or_null{d.key}, or_null{d.parent},
                          d.due_at.value_or(now), d.expires_at, d.attempts_max, or_null{trail}, or_null{headers},
                          or_null{d.progress}, d.result, d.payload);
    }

    [[nodiscard]] static draft_arrays arrays_of(std::span<const draft> drafts) {
        draft_arrays rows;
        for (const auto& d : drafts) {
            rows.add(d, {.key = d.key, .group = d.group, .lane = d.lane});
        }
        return rows;
    }

    [[nodiscard]] static lane_set lanes_of(const draft& d) {
        lane_set lanes;
        if (!d.lane.empty()) {
            lanes.emplace(d.queue, d.lane);
        }
        return lanes;
    }

    /// How many drafts at the front one statement can store. The statement answers by id, so no id may repeat.
    [[nodiscard]] static std::size_t count_together(std::span<const draft> drafts) {
        constexpr std::size_t count_max = 1000;
        constexpr std::size_t bytes_max = 4 * 1024 * 1024;
        std::size_t bytes = 0;
        std::size_t count = 0;
        for (const auto& d : drafts) {
            bytes += d.payload.size() + d.progress.size() + (d.result ? d.result->size() : 0);
            const bool is_full = count == count_max || (count > 0 && bytes > bytes_max);
            if (is_full || !d.predecessor.is_nil()) {
                break;
            }
            ++count;
        }
        return count_distinct(drafts.first(count));
    }

    /// How many drafts there are before the first whose id repeats.
    [[nodiscard]] static std::size_t count_distinct(std::span<const draft> drafts) {
        std::vector<std::pair<id, std::size_t>> places;
        places.reserve(drafts.size());
        for (const auto& d : drafts) {
            places.emplace_back(d.id, places.size());
        }
        std::sort(places.begin(), places.end());
        auto count = drafts.size();
        for (std::size_t i = 1; i < places.size(); ++i) {
            if (places[i].first == places[i - 1].first) {
                count = std::min(count, places[i].second);
            }
        }
        return count;
    }

    void insert_together(std::span<const draft> drafts, time_point now, std::vector<receipt>& receipts) {
        lane_set lanes;
        for (const auto& d : drafts) {
            if (!d.lane.empty()) {
                lanes.emplace(d.queue, d.lane);
            }
        }
        const auto stored = insert(arrays_of(drafts), lanes, now);
        bool has_all = true;
        for (const auto& d : drafts) {
            if (stored.size() == drafts.size() || std::binary_search(stored.begin(), stored.end(), d.id)) {
                note_stored(d, now);
                receipts.push_back({receipt::kind::inserted, d.id});
            } else {
                receipts.push_back(insert_or_find(d, now));
                has_all = false;
            }
        }
        if (!has_all && !lanes.empty()) {
            on_.ask(sql::drop_lanes, parameters_of(lanes)); // those in which nothing was stored
        }
    }

    /// Returns the place of the answer.
    [[nodiscard]] std::size_t add_insert(const draft_arrays& rows, const lane_set& lanes, time_point now) {
        if (!lanes.empty()) {
            on_.add(sql::lock_new_lanes, parameters_of(lanes));
        }
        const auto place = on_.add(rows.has_group() ? sql::insert : sql::insert_ungrouped, rows.for_statement(now));
        if (!lanes.empty()) {
            on_.add(sql::open_lanes, parameters_of(lanes));
        }
        return place;
    }

    /// The ids of those that were stored, sorted.
    [[nodiscard]] std::vector<id> insert(const draft_arrays& rows, const lane_set& lanes, time_point now) {
        const auto place = add_insert(rows, lanes, now);
        std::vector<id> stored;
        const auto answers = on_.exchange();
        stored.reserve(answers[place].size());
        answers[place].each([&](row one) { one.read(stored.emplace_back(), session_.transaction_number); });
        std::sort(stored.begin(), stored.end());
        return stored;
    }

    void note_stored(const draft& d, time_point now) {
        if (!d.result) {
            session_.wake(d.queue, d.due_at.value_or(now));
        }
    }

    /// A draft that was not stored: finds the entry of which it is a duplicate. If that was purged meanwhile, the draft
    /// is stored after all.
    [[nodiscard]] receipt insert_or_find(const draft& d, time_point now) {
        constexpr int tries = 8;
        for (int i = 0; i < tries; ++i) {
            if (const auto owner = find_owner(d)) {
                return {receipt::kind::duplicate, *owner};
            }
            if (!insert(arrays_of(std::span(&d, 1)), lanes_of(d), now).empty()) {
                note_stored(d, now);
                return {receipt::kind::inserted, d.id};
            }
        }
        throw error(error_kind::conflict,
                    "postgres: enqueue: other transactions keep storing and purging the same key");
    }

    [[nodiscard]] std::optional<id> find_owner(const draft& d) {
        const auto by_id = on_.add(sql::owner_by_id, parameters(d.id));
        if (!d.key.empty()) {
            on_.add(sql::owner_by_key, parameters(d.queue, d.key, d.id));
        }
        const auto answers = on_.exchange();
        for (auto i = by_id; i < answers.size(); ++i) {
            if (answers[i].size() != 0) {
                id owner;
                answers[i][0].read(owner);
                return owner;
            }
        }
        return std::nullopt;
    }

    /// A dead entry, locked against other successors and against a purge.
    struct predecessor {
        std::uint64_t sequence = 0;
        state ended{};
        std::string queue{};
        bool is_newest = false;
        inherited gives{};
    };

    [[nodiscard]] std::optional<predecessor> lock_predecessor(const id& wanted) {
        const auto found = on_.ask(sql::predecessor, parameters(wanted));
        if (found.size() == 0) {
            return std::nullopt;
        }
        predecessor p;
        found[0].read(p.sequence, p.ended, p.queue, or_default{p.gives.key}, or_default{p.gives.group},
                      or_default{p.gives.lane}, p.gives.generation, p.is_newest);
        row::expect(p.gives.generation < UINT32_MAX,
                    "postgres: the tables are damaged: an entry's generation is at its maximum");
        p.gives.generation += 1;
        p.gives.replaces = p.sequence;
        return p;
    }

    [[nodiscard]] receipt enqueue_successor(const draft& d, time_point now) {
        if (const auto owner = find_owner({.id = d.id})) {
            return {receipt::kind::duplicate, *owner};
        }
        const auto dead = lock_predecessor(d.predecessor);
        if (!dead || dead->ended != state::dead || dead->queue != d.queue) {
            return {};
        }
        if (!dead->is_newest) {
            const auto found = on_.ask(sql::successor, parameters(d.queue, dead->sequence));
            row::expect(found.size() == 1, "postgres: the tables are damaged: a replaced entry has no successor");
            receipt answer{receipt::kind::duplicate, {}};
            found[0].read(answer.id);
            return answer;
        }
        draft_arrays rows;
        rows.add(d, dead->gives);
        lane_set lanes;
        if (!dead->gives.lane.empty()) {
            lanes.emplace(d.queue, dead->gives.lane);
        }
        on_.add(sql::set_replaced, parameters(d.queue, dead->sequence)); // first: the key has one newest owner
        if (insert(rows, lanes, now).empty()) {
            throw error(error_kind::conflict, "postgres: enqueue: another transaction has stored the same id");
        }
        note_stored(d, now);
        return {receipt::kind::inserted, d.id};
    }

    connection& on_;
    session& session_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/locked_entries.hpp
// Entries that a transaction has locked, as they are in memory: changed by verbs and then written back together. The end
// of an entry reaches others: it nudges its parent, opens its lane and counts in its group.
//
// Entries are locked even if nothing comes of it: a `repeated` nudge promises that no other transaction claims the entry
// before this one ends.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class locked_entries {
  public:
    locked_entries(connection& on, session& in) noexcept : on_(on), session_(in) {}

    /// Names an entry for `lock`.
    void want(const id& which) { wanted_.add(which); }
    /// Names an entry that may end, by a settle with this epoch or by a cancel. Its lane is locked as well, and its
    /// parent if it will end.
    void want_to_end(const id& which, std::optional<std::uint64_t> epoch) {
        wanted_.add(which);
        ending_.add(which);
        epochs_.add(epoch ? std::optional(static_cast<std::int64_t>(*epoch)) : std::nullopt);
    }

    void lock(time_point now) {
        const bool has_ends = ending_.size() != 0;
        const auto lanes = has_ends ? on_.add(sql::lock_lanes, parameters(ending_)) : std::size_t{0};
        const auto entries = on_.add(sql::lock_entries, parameters(wanted_, ending_, epochs_, now));
        const auto answers = on_.exchange();
        if (has_ends) {
            answers[lanes].each([&](row one) {
                std::string queue;
                std::string lane;
                one.read(queue, lane);
                locked_lanes_.emplace(std::move(queue), std::move(lane));
            });
        }
        add_subjects(answers[entries]);
    }

    /// Applies the verb. `place` is what `write` returns if this completes a group.
    template <class Verb>
    [[nodiscard]] verdict change(const id& which, const Verb& verb, time_point now, std::size_t place = 0) {
        const auto found = subjects_.find(which);
        if (found == subjects_.end()) {
            return verdict::unknown;
        }
        auto& s = found->second;
        const auto answer = apply(s.now, verb, now);
        if (answer != verdict::applied) {
            return answer;
        }
        s.is_changed = true;
        s.note(verb);
        if (is_terminal(s.now.state)) {
            end(s, now, place);
        } else if (s.now.state != state::claimed && !s.is_blocked) {
            session_.wake(s.queue, s.now.due_at);
        }
        return answer;
    }

    /// Writes everything that has changed. Returns the places of the changes that completed a group.
    std::vector<std::size_t> write() {
        nudge_missed_parents();
        const auto changed = add_write();
        if (!changed) {
            return {};
        }
        const auto lanes = lanes_.empty() ? std::size_t{0} : on_.add(sql::open_lanes, parameters_of(lanes_));
        if (!lanes_.empty()) {
            on_.add(sql::drop_lanes, parameters_of(lanes_));
        }
        const auto groups = groups_.empty() ? std::size_t{0} : add_groups();
        const auto answers = on_.exchange();
        expect_written(answers[changed->place], changed->count);
        if (!lanes_.empty()) {
            answers[lanes].each([&](row one) {
                std::string queue;
                time_point gate{};
                one.read(queue, gate);
                session_.wake(queue, gate);
            });
        }
        return groups_.empty() ? std::vector<std::size_t>{} : completed(answers[groups]);
    }

  private:
    struct subject {
        std::uint64_t sequence = 0;
        state state_was{};
        std::uint64_t epoch_was = 0;
        bool is_blocked = false;
        bool is_changed = false;
        bool has_error = false;
        bool has_progress = false;
        life now{};
        std::string queue{};
        std::string group{};
        std::string lane{};
        id parent{};

        /// Notes which of the fields that were not read the verb has set.
        template <class Verb>
        void note(const Verb& verb) noexcept {
            if constexpr (std::is_same_v<Verb, vouch::settle>) {
                has_error = has_error || std::holds_alternative<retry>(verb.outcome) ||
                            std::holds_alternative<bury>(verb.outcome);
                has_progress = has_progress || std::holds_alternative<advance>(verb.outcome);
            } else {
                has_error = has_error || std::is_same_v<Verb, vouch::cancel>;
            }
        }
    };
    struct group_change {
        std::int64_t ended = 0;
        std::int64_t succeeded = 0;
        std::size_t last_place = 0; ///< of the last success
    };
    struct added_write {
        std::size_t place = 0;
        std::size_t count = 0;
    };

    void add_subjects(const rows& found) {
        found.each([&](row one) {
            subject s;
            auto& l = s.now;
            std::optional<time_point> gate;
            id which;
            one.read(s.sequence, which, s.queue, or_default{s.group}, or_default{s.lane}, or_default{s.parent}, l.state,
                     l.attempts, l.lapses, l.failures, l.epoch, l.due_at, gate, l.woken);
            if (l.state == state::claimed) {
                l.lease_until = gate;
            }
            expect_sound(l);
            s.state_was = l.state;
            s.epoch_was = l.epoch;
            s.is_blocked = is_live(l.state) && !gate;
            subjects_.emplace(which, std::move(s));
        });
    }

    void end(const subject& s, time_point now, std::size_t place) {
        if (!s.lane.empty()) {
            expect_locked({s.queue, s.lane});
            lanes_.emplace(s.queue, s.lane);
        }
        if (!s.group.empty()) {
            auto& change = groups_[s.group];
            change.ended += 1;
            if (s.now.state == state::succeeded) {
                change.succeeded += 1;
                change.last_place = place;
            }
        }
        if (!s.parent.is_nil()) {
            if (!subjects_.contains(s.parent)) {
                missed_parents_.emplace(s.parent, now);
            }
            std::ignore = change(s.parent, vouch::nudge{}, now); // absent or terminal: no effect
        }
    }

    /// The lane is chosen before the entry is locked. Between the two the entry may have been stored, perhaps under an id
    /// that was used before in another lane; an enqueue into its lane would then not be excluded.
    void expect_locked(const lane_set::value_type& lane) const {
        if (!locked_lanes_.contains(lane)) {
            throw error(error_kind::conflict, "postgres: another transaction has stored the entry meanwhile");
        }
    }

    /// The parents that were not locked with their children: they are absent, or the child was changed between the look at
    /// its parent and its lock.
    void nudge_missed_parents() {
        if (missed_parents_.empty()) {
            return;
        }
        array missed(pg_type::uuid);
        for (const auto& [parent, now] : missed_parents_) {
            missed.add(parent);
        }
        const array none_end(pg_type::uuid);
        const array no_epochs(pg_type::bigint);
        add_subjects(on_.ask(sql::lock_entries, parameters(missed, none_end, no_epochs, time_point{})));
        for (const auto& [parent, now] : missed_parents_) {
            std::ignore = change(parent, vouch::nudge{}, now);
        }
    }

    /// Adds the statement that writes all changed entries; nothing if there are none.
    [[nodiscard]] std::optional<added_write> add_write() {
        using t = pg_type;
        std::array<array, 16> columns{array(t::text),     array(t::bigint), array(t::smallint), array(t::bigint),
                                      array(t::smallint), array(t::bigint), array(t::bigint),   array(t::bigint),
                                      array(t::bigint),   array(t::bigint), array(t::bigint),   array(t::boolean),
                                      array(t::bigint),   array(t::text),   array(t::bytea),    array(t::bytea)};
        for (const auto& [which, s] : subjects_) {
            if (s.is_changed) {
                std::size_t next = 0;
                const auto put = [&](const auto&... values) { (columns[next++].add(values), ...); };
                const auto& l = s.now;
                put(s.queue, s.sequence, s.state_was, s.epoch_was, l.state, l.attempts, l.lapses, l.failures, l.epoch,
                    l.due_at, s.is_blocked ? std::nullopt : gate_of(l), l.woken, l.updated_at,
                    if_set{s.has_error, l.last_error}, l.result, if_set{s.has_progress, l.progress});
            }
        }
        if (columns[0].size() == 0) {
            return std::nullopt;
        }
        parameters values;
        for (const auto& column : columns) {
            values.add(column);
        }
        return added_write{on_.add(sql::write, values), columns[0].size()};
    }

    [[nodiscard]] std::size_t add_groups() {
        array names(pg_type::text);
        array ended(pg_type::bigint);
        array succeeded(pg_type::bigint);
        for (const auto& [name, change] : groups_) {
            names.add(name);
            ended.add(change.ended);
            succeeded.add(change.succeeded);
        }
        on_.add(sql::lock_groups, parameters(names));
        return on_.add(sql::group_end, parameters(names, ended, succeeded));
    }

    /// The entries are locked, so a row that is not as it was read means damage.
    void expect_written(const rows& written, std::size_t count) {
        row::expect(written.size() == count,
                    "postgres: the tables are damaged: an entry cannot be written back as it was read");
        written[0].read(session_.transaction_number);
    }

    [[nodiscard]] std::vector<std::size_t> completed(const rows& groups) {
        row::expect(groups.size() == groups_.size(),
                    "postgres: the tables are damaged: a group has members but no row");
        std::vector<std::size_t> places;
        groups.each([&](row one) {
            std::string name;
            std::uint64_t unfinished = 0;
            one.read(name, unfinished);
            const auto& change = groups_.at(name);
            if (unfinished == 0 && change.succeeded > 0) {
                places.push_back(change.last_place);
            }
        });
        return places;
    }

    connection& on_;
    session& session_;
    array wanted_{pg_type::uuid};
    array ending_{pg_type::uuid};
    array epochs_{pg_type::bigint};
    std::map<id, time_point> missed_parents_{};
    std::map<id, subject> subjects_{};
    lane_set locked_lanes_{};
    lane_set lanes_{};
    std::map<std::string, group_change> groups_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/entry_writer.hpp
// Settle, extend, nudge and cancel on one connection, inside a transaction. Two round trips: the first locks and reads
// all entries that the verdicts rest on, with the lanes and parents of those that may end. The contract's `apply` carries
// out the verbs in memory, and the second round trip writes what has changed. Successes that reach no other entry take one
// round trip. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class entry_writer {
  public:
    entry_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        on_.set_doing("settle");
        const auto done = succeed_together(settles, now);
        locked_entries entries(on_, session_);
        bool is_complete = true;
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!done[i]) {
                const auto& [ticket, o] = settles[i];
                if (std::holds_alternative<succeed>(o) || std::holds_alternative<bury>(o)) {
                    entries.want_to_end(ticket.id, ticket.epoch);
                } else {
                    entries.want(ticket.id);
                }
                is_complete = false;
            }
        }
        session_.has_plain_settles = is_complete;
        std::vector<settlement> answers(settles.size(), settlement{.verdict = verdict::applied});
        if (is_complete) {
            return answers;
        }
        entries.lock(now);
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!done[i]) {
                answers[i].verdict = entries.change(settles[i].ticket.id, settles[i], now, i);
            }
        }
        for (const auto last : entries.write()) {
            answers[last].group_completed = true;
        }
        return answers;
    }

    /// Whether `add_successes` may carry these out: it also requires that their entries reach no others.
    [[nodiscard]] static bool are_successes(std::span<const vouch::settle> settles) {
        std::vector<id> ids;
        ids.reserve(settles.size());
        for (const auto& s : settles) {
            if (!is_success(s)) {
                return false;
            }
            ids.push_back(s.ticket.id);
        }
        std::sort(ids.begin(), ids.end());
        return std::adjacent_find(ids.begin(), ids.end()) == ids.end();
    }

    /// Adds what settles all of them. If one of the verdicts is not `applied`, or an entry reaches others, it fails with
    /// `not_all_applied`. Returns the place of the answer.
    [[nodiscard]] std::size_t add_successes(std::span<const vouch::settle> settles, time_point now) {
        successes all;
        for (const auto& s : settles) {
            all.add(s);
        }
        return on_.add(sql::succeed_all, all.for_statement(now));
    }
    void read_successes(const rows& answer) { answer[0].read(session_.transaction_number); }

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        on_.set_doing("extend");
        locked_entries entries(on_, session_);
        for (const auto& t : tickets) {
            entries.want(t.id);
        }
        entries.lock(now);
        std::vector<verdict> verdicts;
        verdicts.reserve(tickets.size());
        for (const auto& t : tickets) {
            verdicts.push_back(entries.change(t.id, vouch::extend{t, lease}, now));
        }
        entries.write();
        return verdicts;
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        on_.set_doing("nudge");
        locked_entries entries(on_, session_);
        entries.want(wanted);
        return change_one(entries, wanted, vouch::nudge{}, now);
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        on_.set_doing("cancel");
        locked_entries entries(on_, session_);
        entries.want_to_end(wanted, std::nullopt);
        return change_one(entries, wanted, vouch::cancel{error}, now);
    }

  private:
    /// The parameters of `succeed` and `succeed_all`. The entries are locked in the order in which they are added.
    class successes {
      public:
        void add(const vouch::settle& s) {
            ids_.add(s.ticket.id);
            epochs_.add(s.ticket.epoch);
            results_.add(std::get<succeed>(s.outcome).result);
        }
        [[nodiscard]] parameters for_statement(time_point now) const {
            return parameters(now, ids_, epochs_, results_);
        }

      private:
        array ids_{pg_type::uuid};
        array epochs_{pg_type::bigint};
        array results_{pg_type::bytea};
    };

    /// The table has no greater epoch than that of a bigint.
    [[nodiscard]] static bool is_success(const vouch::settle& s) noexcept {
        return std::holds_alternative<succeed>(s.outcome) && s.ticket.epoch <= INT64_MAX;
    }

    template <class Verb>
    [[nodiscard]] static verdict change_one(locked_entries& entries, const id& wanted, const Verb& verb,
                                            time_point now) {
        entries.lock(now);
        const auto answer = entries.change(wanted, verb, now);
        entries.write();
        return answer;
    }

    /// The fast path for successes that reach no other entry. Returns which settles are done; the others are of another
    /// kind, or their ticket does not match. Entries that the batch names twice are left out, because order matters.
    [[nodiscard]] std::vector<bool> succeed_together(std::span<const vouch::settle> settles, time_point now) {
        std::map<id, std::size_t> places;
        std::set<id> repeated;
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!places.emplace(settles[i].ticket.id, i).second) {
                repeated.insert(settles[i].ticket.id);
            }
        }
        successes all;
        std::vector<std::size_t> asked;
        for (std::size_t i = 0; i < settles.size(); ++i) { // as a claim returned them
            if (is_success(settles[i]) && !repeated.contains(settles[i].ticket.id)) {
                asked.push_back(i);
                all.add(settles[i]);
            }
        }
        std::vector<bool> done(settles.size());
        if (!asked.empty()) {
            on_.ask(sql::succeed, all.for_statement(now)).each([&](row one) {
                std::optional<id> which; // none: all of them
                one.read(session_.transaction_number, which);
                if (which) {
                    done[places.at(*which)] = true;
                } else {
                    for (const auto place : asked) {
                        done[place] = true;
                    }
                }
            });
        }
        return done;
    }

    connection& on_;
    session& session_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/at_once.hpp
// Transactions that commit in the round trip of their last operation. If it throws, nothing was written, unless the error
// is in doubt. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Returns what `commit()` returns: whether it has committed. Returns false if it fails because of a statement that divides
/// by zero: then nothing was written, and another transaction can begin.
template <class Commit>
[[nodiscard]] bool commit_unless_refused(loan& lent, std::string_view refusal, const Commit& commit) {
    try {
        return commit();
    } catch (const error& e) {
        if (e.is_in_doubt() || e.text_code() != refusal) {
            throw;
        }
        lent.roll_back();
        return false;
    }
}

/// Returns whether the drafts were stored. If not, one is a duplicate.
[[nodiscard]] inline bool enqueue_at_once(loan& lent, session& in, std::span<const draft> drafts, time_point now) {
    draft_inserter inserter(lent.on(), in);
    const auto place = inserter.add_all(drafts, now);
    return commit_unless_refused(lent, not_all_stored, [&] {
        bool are_stored = false;
        lent.commit_with(in, place, [&](const std::vector<rows>& answers) {
            are_stored = inserter.read_all(drafts, now, answers[place]);
        });
        return are_stored;
    });
}

/// Also commits what the transaction did before. Nothing: the claim is left to another transaction.
[[nodiscard]] inline std::optional<std::vector<entry>> claim_at_once(loan& lent, session& in,
                                                                     const claim_request& request) {
    std::optional<std::vector<entry>> claimed;
    claimer claimer(lent.on(), in, &lent.in().heads());
    const auto at = claimer.add_unlapsed(request);
    lent.commit_with(in, at.last(),
                     [&](const std::vector<rows>& answers) { claimed = claimer.read_unlapsed(request, at, answers); });
    return claimed;
}

struct settles_and_claim {
    std::span<const vouch::settle> settles;
    time_point now;
    const claim_request& request;
};

/// Returns whether all settles were applied. If not, a ticket does not hold, or an entry reaches others.
[[nodiscard]] inline bool settle_at_once(loan& lent, session& in, const settles_and_claim& what,
                                         settled_and_claimed& out) {
    std::vector<settlement> all_applied(what.settles.size(), settlement{.verdict = verdict::applied});
    entry_writer writer(lent.on(), in);
    claimer claimer(lent.on(), in, &lent.in().heads());
    const auto settled = writer.add_successes(what.settles, what.now);
    const auto at = claimer.add_unlapsed(what.request);
    lent.on().set_doing("settle and claim");
    const bool is_done = commit_unless_refused(lent, not_all_applied, [&] {
        lent.commit_with(in, at.last(), [&](const std::vector<rows>& answers) {
            writer.read_successes(answers[settled]);
            out.claimed = claimer.read_unlapsed(what.request, at, answers);
        });
        return true;
    });
    if (is_done) {
        out.settlements = std::move(all_applied);
    } else {
        lent.in().plain().note(what.request.queue, false);
    }
    return is_done;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/entry_reader.hpp
// The operations of `reader` on one connection. Each is one statement, so it sees one state of the database. Requires
// valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class entry_reader {
  public:
    /// With `heads`, `next_due` looks where a claim would look. Not inside a transaction, which sees all its own writes.
    explicit entry_reader(connection& on, const claim_heads* heads = nullptr) noexcept : on_(on), heads_(heads) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) {
        on_.set_doing("find");
        const auto found = on_.ask(sql::find, parameters(wanted));
        if (found.size() == 0) {
            return std::nullopt;
        }
        std::optional<entry> out(std::in_place);
        auto first = found[0];
        read_entry(first, *out);
        return out;
    }

    [[nodiscard]] std::vector<entry> list(const query& q) {
        on_.set_doing("list");
        switch (q.by) {
        case query::path::group: return list_by(sql::list_group, q, q.group);
        case query::path::parent: return list_by(sql::list_parent, q, q.parent);
        case query::path::key: return list_by(sql::list_key, q, q.key, q.queue);
        case query::path::dead: return list_by(sql::list_dead, q, q.queue);
        case query::path::live: return list_by(sql::list_live, q, q.queue);
        case query::path::all: break;
        }
        return list_by(sql::list_all, q, q.queue);
    }

    [[nodiscard]] state_counts counts(std::string_view queue) {
        on_.set_doing("counts");
        const auto found = on_.ask(sql::counts, parameters(queue));
        auto all = found[0];
        state_counts out;
        for (const auto s : all_states) {
            std::uint64_t count = 0;
            all.read(count);
            out[s] = count;
        }
        return out;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        on_.set_doing("next_due");
        const auto from = heads_ == nullptr ? claim_heads::everywhere : heads_->of(queue, claim_heads::clock::now());
        const auto found = on_.ask(sql::next_due, parameters(queue, from));
        std::optional<time_point> due;
        if (found.size() != 0) {
            found[0].read(due);
        }
        return due;
    }

  private:
    template <class... More>
    [[nodiscard]] std::vector<entry> list_by(sql which, const query& q, const auto& path, const More&... more) {
        const auto after = std::min(q.after, std::uint64_t{INT64_MAX});
        const auto found =
            on_.ask(which, parameters(path, after, q.state, q.topic, std::uint64_t{q.limit}, q.payloads, more...));
        std::vector<entry> out(found.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            auto one = found[i];
            read_entry(one, out[i]);
        }
        return out;
    }

    connection& on_;
    const claim_heads* heads_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/purger.hpp
// Removes ended entries, oldest first. Generations of one entry are a family and go together: the newest decides, and none
// is removed if a live entry still needs one of them.
//
// A purge looks at a bounded number of entries: first the oldest, then those after the position where the last purge
// stopped. It looks without locks, locks what it wants to remove and looks again. It passes over families of which another
// transaction has locked a member, so that it never waits for an application's transaction.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class purger {
  public:
    purger(connection& on, session& in, purge_positions& positions) noexcept
        : on_(on), session_(in), positions_(positions) {}

    [[nodiscard]] std::size_t purge(const purge_request& request) {
        on_.set_doing("purge");
        if (request.limit == 0) {
            return 0;
        }
        const auto start = positions_.of(request);
        auto stopped = look(request, {});
        lock(request.limit);
        if (stopped && going_.size() < request.limit) {
            stopped = look(request, std::max(*stopped, start));
            const auto last = lock(request.limit);
            positions_.set(request, going_.size() < request.limit ? stopped : last);
        } else if (!stopped) {
            positions_.set(request, stopped);
        }
        going_.resize(std::min(going_.size(), request.limit)); // older generations go first
        return erase();
    }

  private:
    struct generation {
        ended_position at{};
        id which{};
        state ended{};
        std::string group{};
        id predecessor{};
        std::optional<std::uint64_t> replaces{};
        bool is_newest = false;
        bool is_needed = false;
    };
    using family = std::vector<generation>; ///< eldest first

    [[nodiscard]] static generation read(row from) {
        generation g;
        from.read(g.at.updated_at, g.at.sequence, g.which, g.ended, or_default{g.group}, or_default{g.predecessor},
                  g.replaces, g.is_newest, g.is_needed);
        return g;
    }

    /// Looks at the entries after a position, and finds the families that may go. Returns where it stopped; nothing if it
    /// reached the end.
    [[nodiscard]] std::optional<ended_position> look(const purge_request& request, const ended_position& after) {
        const auto looks = vouch::detail::purge_looks(request.limit);
        std::vector<std::size_t> places;
        for (const auto ended : {state::succeeded, state::dead}) {
            if (request.state.value_or(ended) == ended) {
                places.push_back(
                    on_.add(sql::purge_look, parameters(request.queue, ended, request.before, after.updated_at,
                                                        after.sequence, std::uint64_t{looks})));
            }
        }
        const auto answers = on_.exchange();
        std::vector<generation> newest;
        bool has_more = false;
        for (const auto place : places) {
            answers[place].each([&](row one) { newest.push_back(read(one)); });
            has_more = has_more || answers[place].size() == looks;
        }
        std::sort(newest.begin(), newest.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
        if (newest.size() > looks) {
            newest.resize(looks);
            has_more = true;
        }
        families_ = with_predecessors(newest);
        std::erase_if(families_, [](const family& f) {
            return std::any_of(f.begin(), f.end(), [](const generation& g) { return g.is_needed; });
        });
        return has_more ? std::optional(newest.back().at) : std::nullopt;
    }

    /// The families of these entries, each eldest first. One round trip for each generation.
    [[nodiscard]] std::vector<family> with_predecessors(const std::vector<generation>& newest) {
        std::vector<family> families;
        for (const auto& g : newest) {
            families.push_back({g});
        }
        for (;;) {
            array wanted(pg_type::uuid);
            for (const auto& f : families) {
                if (f.back().replaces) {
                    wanted.add(f.back().predecessor);
                }
            }
            if (wanted.size() == 0) {
                break;
            }
            const auto found = read_again(wanted);
            for (auto& f : families) {
                if (const auto next = std::exchange(f.back().replaces, std::nullopt)) {
                    add_predecessor(f, found, *next);
                }
            }
        }
        for (auto& f : families) {
            std::reverse(f.begin(), f.end());
        }
        return families;
    }

    /// Adds the predecessor of the last member, unless it was purged and its id, perhaps, used again.
    static void add_predecessor(family& to, const std::map<id, generation>& found, std::uint64_t replaces) {
        const auto at = found.find(to.back().predecessor);
        if (at != found.end() && at->second.at.sequence == replaces) {
            row::expect(replaces < to.back().at.sequence && is_terminal(at->second.ended),
                        "postgres: the tables are damaged: an ended entry is live, or replaces a later one");
            to.push_back(at->second);
        }
    }

    [[nodiscard]] std::map<id, generation> read_again(const array& wanted) {
        std::map<id, generation> found;
        on_.ask(sql::purge_read, parameters(wanted)).each([&](row one) {
            auto g = read(one);
            found.emplace(g.which, std::move(g));
        });
        return found;
    }

    /// Locks families until `limit` entries can go. Others take the place of those that another transaction has locked.
    /// Returns the position of the last family; nothing if there was none.
    std::optional<ended_position> lock(std::size_t limit) {
        std::size_t from = 0;
        while (from < families_.size() && going_.size() < limit) {
            auto to = from;
            for (auto size = going_.size(); to < families_.size() && size < limit; ++to) {
                size += families_[to].size();
            }
            lock_some(std::span(families_).subspan(from, to - from));
            from = to;
        }
        return from == 0 ? std::nullopt : std::optional(families_[from - 1].back().at);
    }

    /// Locks the families and looks at them again. Those that may still go are going.
    void lock_some(std::span<const family> families) {
        array all(pg_type::uuid);
        for (const auto& f : families) {
            for (const auto& g : f) {
                all.add(g.which);
            }
        }
        std::set<id> locked;
        on_.ask(sql::purge_lock, parameters(all)).each([&](row one) {
            id which;
            one.read(which);
            locked.insert(which);
        });
        const auto now = read_again(all);
        for (const auto& f : families) {
            const bool goes = std::all_of(f.begin(), f.end(), [&](const generation& g) {
                const auto found = now.find(g.which);
                return locked.contains(g.which) && found != now.end() && found->second.at == g.at &&
                       !found->second.is_needed && found->second.is_newest == g.is_newest;
            });
            if (goes) {
                going_.insert(going_.end(), f.begin(), f.end());
            }
        }
    }

    [[nodiscard]] std::size_t erase() {
        if (going_.empty()) {
            return 0;
        }
        array ids(pg_type::uuid);
        std::map<std::string, std::pair<std::int64_t, std::int64_t>>
            groups; // members that leave, unfinished ones of them
        for (const auto& g : going_) {
            ids.add(g.which);
            if (!g.group.empty()) {
                auto& [left, dead] = groups[g.group];
                left += 1;
                dead += g.ended == state::dead && g.is_newest ? 1 : 0;
            }
        }
        const auto place = on_.add(sql::purge_delete, parameters(ids));
        if (!groups.empty()) {
            add_groups(groups);
        }
        const auto answers = on_.exchange();
        row::expect(answers[place].size() == going_.size(),
                    "postgres: the tables are damaged: an ended entry cannot be removed");
        answers[place][0].read(session_.transaction_number);
        return going_.size();
    }

    void add_groups(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& groups) {
        array names(pg_type::text);
        array left(pg_type::bigint);
        array dead(pg_type::bigint);
        for (const auto& [name, counts] : groups) {
            names.add(name);
            left.add(counts.first);
            dead.add(counts.second);
        }
        on_.add(sql::lock_groups, parameters(names));
        on_.add(sql::group_leave, parameters(names, left, dead));
        on_.add(sql::group_drop, parameters(names));
    }

    connection& on_;
    session& session_;
    purge_positions& positions_;
    std::vector<family> families_{};  ///< that may go, in the order of their ends
    std::vector<generation> going_{}; ///< locked, and nothing needs them
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/detail/unchecked_writer.hpp
// The writing operations of `writer` on one connection, inside a transaction. Requires valid arguments.

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline constexpr capabilities supported{
    .groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true, .committing = true};

class unchecked_writer {
  public:
    unchecked_writer(connection& on, session& in, purge_positions& positions, claim_heads* heads = nullptr) noexcept
        : on_(on), session_(in), positions_(positions), heads_(heads) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return draft_inserter(on_, session_).enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return claimer(on_, session_, heads_).claim(request);
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return entry_writer(on_, session_).settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return entry_writer(on_, session_).extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return entry_writer(on_, session_).nudge(wanted, now);
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return entry_writer(on_, session_).cancel(wanted, error, now);
    }
    [[nodiscard]] std::size_t purge(const purge_request& request) {
        return purger(on_, session_, positions_).purge(request);
    }

  private:
    connection& on_;
    session& session_;
    purge_positions& positions_;
    claim_heads* heads_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/store.hpp
// The PostgreSQL store and its transaction.
//
// A store is a handle: copies share a pool of connections, which are closed with the last copy or transaction. Any number
// of transactions, of this process and of others, write at the same time: they run READ COMMITTED and lock the rows that
// their answers rest on. Reads on the store see the committed state and never wait for a writer.
//
// A store is safe for any number of threads; a transaction is used by one thread at a time. Neither may be used across a
// fork.

namespace vouch {
inline namespace v0 {
namespace postgres {

class store;

/// A transaction, made by `store::begin`. The operations are those of the concept `transaction`.
class transaction : public validated_writer<transaction> {
  public:
    transaction(transaction&& other) noexcept
        : loan_(std::move(other.loan_)), session_(std::exchange(other.session_, {})) {
        forget_thread();
    }
    transaction& operator=(transaction&& other) noexcept {
        if (this != &other) {
            close();
            loan_ = std::move(other.loan_);
            session_ = std::exchange(other.session_, {});
            forget_thread();
        }
        return *this;
    }
    ~transaction() { close(); }

    /// If the connection is lost meanwhile, finds out whether the transaction has committed. Only if that is impossible,
    /// because the server has crashed or cannot be reached, the error `is_in_doubt`.
    void commit() {
        static_cast<void>(expect_open());
        const auto closing = std::move(loan_);
        detail::translate_bad_alloc([&] { closing->commit(session_); });
    }

    /// In one round trip, if nothing was done before, no draft is a duplicate, and it is one draft without a predecessor, or
    /// several that have neither predecessor nor group nor lane.
    std::vector<receipt> enqueue_and_commit(std::span<const draft> drafts, time_point now) {
        validate(drafts, expect_open());
        if (!loan_->has_begun() && is_one_statement(drafts)) {
            auto all_inserted = receipts_of(drafts); // first: after the commit nothing may fail
            if (commit_at_once([&](auto& lent) { return detail::enqueue_at_once(lent, session_, drafts, now); })) {
                return all_inserted;
            }
        }
        auto receipts = enqueue(drafts, now);
        commit();
        return receipts;
    }

    /// In one round trip, with what is left to be sent. A claim of one named entry is left to the caller.
    [[nodiscard]] std::optional<std::vector<entry>> claim_and_commit(const claim_request& request) {
        validate(request, expect_open().limits);
        std::optional<std::vector<entry>> claimed;
        if (request.limit == 0 || !request.only.is_nil()) {
            commit();
            return claimed;
        }
        static_cast<void>(commit_at_once([&](auto& lent) {
            claimed = detail::claim_at_once(lent, session_, request);
            return true;
        }));
        return claimed;
    }

    /// In one round trip, if nothing was done before and the settles are successes of entries without group, lane and
    /// parent. For a queue with others it takes the round trips of a settle and one more.
    [[nodiscard]] settled_and_claimed settle_claim_and_commit(std::span<const vouch::settle> settles, time_point now,
                                                              const claim_request& request) {
        validate(settles, expect_open().limits);
        validate(request, detail::supported.limits);
        if (settles.empty()) {
            return {.claimed = claim_and_commit(request)};
        }
        settled_and_claimed out;
        if (are_at_once(settles, request) && commit_at_once([&](auto& lent) {
                return detail::settle_at_once(lent, session_, {settles, now, request}, out);
            })) {
            return out;
        }
        out.settlements = settle(settles, now);
        if (!all_applied(out.settlements)) {
            close();
            return out;
        }
        close_after([&] {
            if (detail::entry_writer::are_successes(settles)) { // others say nothing about the entries of the queue
                loan_->in().plain().note(request.queue, session_.has_plain_settles);
            }
        });
        out.claimed = claim_and_commit(request);
        return out;
    }

    /// The connection of this transaction, which has begun on the server. Statements that the application runs on it are
    /// part of the transaction. Do not end the transaction through it. The pointer is good until the next operation of the
    /// transaction, which puts the connection into pipeline mode; then call this function again.
    [[nodiscard]] PGconn* connection() {
        static_cast<void>(expect_open());
        auto& on = use().on();
        on.set_doing("begin");
        on.exchange();
        on.leave_pipeline();
        if (session_.transaction_number == 0) { // the application may write; see `database::commit`
            detail::run_text(on.handle(), "SELECT txid_current()", "begin")[0].read(session_.transaction_number);
        }
        return on.handle();
    }

  private:
    friend class store;
    friend class validated_reader<transaction>;
    friend class validated_writer<transaction>;

    explicit transaction(std::unique_ptr<detail::loan> lent) noexcept : loan_(std::move(lent)) {}

    [[nodiscard]] const capabilities& expect_open() const {
        if (!loan_) {
            throw error(error_kind::misuse, "postgres: the transaction is closed; call begin() for a new one");
        }
        return detail::supported;
    }

    void close() const noexcept { loan_.reset(); }

    [[nodiscard]] detail::loan& use() const {
        loan_->in().pool().set_thread(&loan_->on(), std::this_thread::get_id());
        loan_->begin();
        return *loan_;
    }
    /// For statements that travel with the commit.
    [[nodiscard]] detail::loan& use_whole() const {
        loan_->in().pool().set_thread(&loan_->on(), std::this_thread::get_id());
        loan_->begin_whole();
        return *loan_;
    }

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] { return operation(detail::entry_reader(use().on())); });
    }
    template <class Operation>
    auto write(const Operation& operation) {
        return detail::translate_bad_alloc([&] {
            auto& lent = use();
            return operation(detail::unchecked_writer(lent.on(), session_, lent.in().positions(), &lent.in().heads()));
        });
    }

    [[nodiscard]] static bool is_one_statement(std::span<const draft> drafts) {
        return detail::translate_bad_alloc([&] { return detail::draft_inserter::is_one_statement(drafts); });
    }
    [[nodiscard]] static std::vector<receipt> receipts_of(std::span<const draft> drafts) {
        return detail::translate_bad_alloc([&] {
            std::vector<receipt> receipts;
            receipts.reserve(drafts.size());
            for (const auto& d : drafts) {
                receipts.push_back({receipt::kind::inserted, d.id});
            }
            return receipts;
        });
    }

    /// Whether the settles may be carried out in one round trip with the claim.
    [[nodiscard]] bool are_at_once(std::span<const vouch::settle> settles, const claim_request& request) {
        bool is_possible = false;
        close_after([&] {
            is_possible = !loan_->has_begun() && request.limit != 0 && request.only.is_nil() &&
                          loan_->in().plain().contains(request.queue) && detail::entry_writer::are_successes(settles);
        });
        return is_possible;
    }

    /// Returns what `operation(loan)` returns: whether it has committed. If not, nothing was written, and the transaction
    /// can begin again.
    template <class Operation>
    [[nodiscard]] bool commit_at_once(const Operation& operation) {
        bool has_committed = false;
        close_after([&] { has_committed = operation(use_whole()); });
        session_ = {};
        if (has_committed) {
            close();
        }
        return has_committed;
    }

    /// Closes the transaction if the operation throws.
    template <class Operation>
    void close_after(const Operation& operation) {
        try {
            detail::translate_bad_alloc(operation);
        } catch (...) {
            close();
            throw;
        }
    }

    /// After a move, the thread that uses the transaction next is its thread.
    void forget_thread() const noexcept {
        if (loan_) {
            loan_->in().pool().set_thread(&loan_->on(), std::nullopt);
        }
    }

    mutable std::unique_ptr<detail::loan> loan_; // null: closed; a read that fails closes, too
    detail::session session_{};
};

/// The store.
class store : public validated_reader<store> {
  public:
    using transaction = postgres::transaction;
    static constexpr int contract_level = vouch::contract_level;

    /// Connects, and by default creates the tables if they do not exist. `conninfo` is what libpq accepts: keywords and
    /// values, or a URI.
    explicit store(const std::string& conninfo, const options& how = {})
        : database_(detail::translate_bad_alloc([&] { return std::make_shared<detail::database>(conninfo, how); })) {}

    // Moving copies, so that a handle always has a store.
    store(const store&) = default;
    store& operator=(const store&) = default;
    ~store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::supported; }

    /// Takes a connection from the pool; the server hears of the transaction with its first operation. Throws `busy` if
    /// none is free within `options::busy_limit`, and `misuse` if this thread has all of them in use itself.
    [[nodiscard]] transaction begin() {
        return transaction(detail::translate_bad_alloc([&] {
            auto lent = std::make_unique<detail::loan>(database_, detail::pool::purpose::transaction);
            lent->watch_snapshots();
            return lent;
        }));
    }

    /// A number that changes with every commit that may have made work in the queue due sooner: of this process at once,
    /// of other processes a moment later. The first call begins to listen for the latter.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::supported.limits);
        return detail::translate_bad_alloc([&] {
            database_->listen(detail::supported.limits.lease_max, {});
            return database_->counts().of(queue);
        });
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::supported.limits);
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::supported.limits.lease_max);
        return detail::translate_bad_alloc([&] {
            database_->listen(at_most, stop);
            return database_->counts().wait(queue, seen, at_most, std::move(stop));
        });
    }

  private:
    friend class validated_reader<store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return detail::supported; }

    /// Lends a connection to the operation.
    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] {
            detail::loan lent(database_, detail::pool::purpose::read);
            lent.configure();
            return operation(detail::entry_reader(lent.on(), &lent.in().heads()));
        });
    }

    std::shared_ptr<detail::database> database_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/audit.hpp
// An audit trail in the same database: one row for each ended entry and each completed group. The row is written in the
// transaction that records the outcome, so both are stored or neither.
//
//   vouch::postgres::audit_table audit(store);
//   worker.audit(audit);
//
// Rows are only appended; removing them is up to the application. Any number of threads may use one object.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// An audit hook for a runner or worker.
class audit_table {
  public:
    /// Creates the table if it does not exist. The prefix may differ from that of the store; its schema must exist.
    explicit audit_table(store& in, std::string prefix = std::string(default_prefix)) : prefix_(std::move(prefix)) {
        detail::translate_bad_alloc([&] {
            auto tx = in.begin();
            create(tx.connection());
            tx.commit();
        });
    }

    /// The statement that creates the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        return detail::table_names(prefix).in(R"(CREATE TABLE IF NOT EXISTS @audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  what text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  queue text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  "group" text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL
);
)");
    }

    /// Appends a `vouch::audit_line`. If it throws, the outcome is not stored either; the runner keeps it and settles it
    /// again later.
    template <class Line>
    void operator()(transaction& tx, const Line& line) const {
        detail::translate_bad_alloc([&] {
            const auto text = detail::table_names(prefix_).in(
                R"(INSERT INTO @audit (at, what, id, queue, topic, "group", worker, error, attempts)
 VALUES ($1::bigint, $2::text, $3::uuid, $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint))");
            detail::run_with(tx.connection(), text, "append to the audit table",
                             detail::parameters(line.at, name_of(line.what), line.id, line.queue, line.topic,
                                                line.group, line.worker, line.error, line.attempts));
        });
    }

  private:
    void create(PGconn* c) const {
        const detail::table_names names(prefix_);
        const auto exists = [&] {
            return detail::is_in_catalog(
                c, "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '" +
                       names.schema + "' AND c.relname = '" + names.tables + "audit'");
        };
        if (exists()) { // a role that works needs no right to create tables
            return;
        }
        // IF NOT EXISTS does not wait for another transaction that creates the same table: both would, and one would fail.
        detail::run_text(c, "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))",
                         "create the audit table");
        detail::run_script(c, schema(prefix_), "create the audit table");
    }

    std::string prefix_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/history.hpp
// A history of attempts in the same database: one row for each settled outcome, retries included. The row is written in
// the transaction that records the outcome, so both are stored or neither. `vouch show` prints the rows of an entry.
//
//   vouch::postgres::history_table history(store);
//   worker.history(history);
//
// The table stays bounded: an append removes the rows that are too many or too old. Any number of threads may use one
// object.

namespace vouch {
inline namespace v0 {
namespace postgres {

namespace detail {

[[nodiscard]] inline bool has_history(PGconn* connection, const table_names& names) {
    return is_in_catalog(connection,
                         "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '" +
                             names.schema + "' AND c.relname = '" + names.tables + "history'");
}

} // namespace detail

struct history_options {
    std::string prefix = std::string(default_prefix); ///< may differ from that of the store; its schema must exist
    duration keep = std::chrono::hours{24 * 7};       ///< rows older than this are removed by later appends
    std::uint32_t lines_max = 100;                    ///< rows of one entry; the newest are kept
};

/// A history hook for a runner or worker.
class history_table {
  public:
    /// Creates the table if it does not exist.
    explicit history_table(store& in, history_options how = {}) : how_(std::move(how)) {
        detail::translate_bad_alloc([&] {
            auto tx = in.begin();
            create(tx.connection());
            tx.commit();
        });
    }

    /// The statements that create the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        return detail::table_names(prefix).in(R"(CREATE TABLE IF NOT EXISTS @history (
  id uuid NOT NULL,
  epoch bigint NOT NULL,
  what text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  claimed_at bigint NOT NULL,
  attempt bigint NOT NULL,
  worker text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  PRIMARY KEY (id, epoch)
);
CREATE INDEX IF NOT EXISTS #history_at ON @history (at);
)");
    }

    /// Appends a line. If it throws, the outcome is not stored either; the runner keeps it and settles it again later.
    void operator()(transaction& tx, const attempt_line& line) const {
        detail::translate_bad_alloc([&] {
            const detail::table_names names(how_.prefix);
            // An id can only be there with this epoch if its entry was purged and stored again.
            detail::run_with(tx.connection(),
                             names.in(R"(INSERT INTO @history (id, epoch, what, at, claimed_at, attempt, worker, error)
 VALUES ($1::uuid, $2::bigint, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text)
 ON CONFLICT (id, epoch) DO UPDATE SET what = excluded.what, at = excluded.at, claimed_at = excluded.claimed_at,
 attempt = excluded.attempt, worker = excluded.worker, error = excluded.error)"),
                             "append to the history table",
                             detail::parameters(line.id, line.epoch, name_of(line.what), line.at, line.claimed_at,
                                                line.attempt, line.worker, line.error));
            if (line.epoch > how_.lines_max) {
                detail::run_with(
                    tx.connection(), names.in("DELETE FROM @history WHERE id = $1::uuid AND epoch <= $2::bigint"),
                    "shorten the history of an entry", detail::parameters(line.id, line.epoch - how_.lines_max));
            }
            // Two for one, so that the table shrinks after `keep` was made shorter. Rows that another worker removes are
            // passed over, so that none waits for another.
            detail::run_with(tx.connection(),
                             names.in(R"(DELETE FROM @history WHERE (id, epoch) IN (SELECT h.id, h.epoch FROM @history h
 WHERE h.at < $1::bigint ORDER BY h.at LIMIT 2 FOR UPDATE SKIP LOCKED))"),
                             "remove old rows of the history", detail::parameters(later(line.at, -how_.keep)));
        });
    }

  private:
    void create(PGconn* c) const {
        const detail::table_names names(how_.prefix);
        if (detail::has_history(c, names)) { // a role that works needs no right to create tables
            return;
        }
        // IF NOT EXISTS does not wait for another transaction that creates the same table: both would, and one would fail.
        detail::run_text(c, "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))",
                         "create the history table");
        detail::run_script(c, schema(how_.prefix), "create the history table");
    }

    history_options how_;
};

/// The lines of an entry, oldest first; none if there is no history table.
[[nodiscard]] inline std::vector<attempt_line> history_of(PGconn* connection, const id& which,
                                                          std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const detail::table_names names(prefix);
        std::vector<attempt_line> out;
        if (!detail::has_history(connection, names)) {
            return out;
        }
        const auto text = names.in(R"(SELECT h.id, h.epoch, h.at, h.claimed_at, h.attempt, h.worker, h.error, h.what
 FROM @history h WHERE h.id = $1::uuid ORDER BY h.epoch)");
        detail::run_with(connection, text, "read the history", detail::parameters(which)).each([&](detail::row one) {
            auto& line = out.emplace_back();
            std::string what;
            one.read(line.id, line.epoch, line.at, line.claimed_at, line.attempt, line.worker, line.error, what);
            for (const auto kind : all_attempt_kinds) {
                line.what = name_of(kind) == what ? kind : line.what;
            }
            detail::row::expect(name_of(line.what) == what,
                                "postgres: the tables are damaged: an attempt has an unknown outcome");
        });
        return out;
    });
}

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/inspect.hpp
// Questions to a database that are not part of the contract: its schema version, its queues, its lanes and its ids. Each
// function runs on a connection of the caller, which is in no pipeline, and changes nothing.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The schema version of the tables with this prefix; nothing if there are no tables. It may differ from
/// `schema_version`.
[[nodiscard]] inline std::optional<std::int64_t> stored_schema_version(PGconn* connection,
                                                                       std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto found = detail::stored_version(connection, detail::table_names(prefix));
        return found == 0 ? std::nullopt : std::optional(found);
    });
}

/// The names of all queues that have an entry, sorted. Reads one index entry per queue.
[[nodiscard]] inline std::vector<std::string> queue_names(PGconn* connection,
                                                          std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(R"(WITH RECURSIVE names AS (
 (SELECT e.queue FROM @entries e ORDER BY e.queue LIMIT 1) UNION ALL
 SELECT (SELECT e.queue FROM @entries e WHERE e.queue > n.queue ORDER BY e.queue LIMIT 1)
 FROM names n WHERE n.queue IS NOT NULL) SELECT queue FROM names WHERE queue IS NOT NULL)");
        std::vector<std::string> out;
        detail::run_text(connection, text, "read the queues").each([&](detail::row one) {
            one.read(out.emplace_back());
        });
        return out;
    });
}

/// A lane of a queue.
struct lane_name {
    std::string queue{};
    std::string lane{};
};

/// The entry that holds the lane: the first live one. Nothing if the lane is empty.
[[nodiscard]] inline std::optional<id> head_of_lane(PGconn* connection, const lane_name& which,
                                                    std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.lane = $2::text AND e.state < 3 ORDER BY e.sequence LIMIT 1)");
        const auto found =
            detail::run_with(connection, text, "read the lane", detail::parameters(which.queue, which.lane));
        std::optional<id> head;
        if (found.size() != 0) {
            found[0].read(head);
        }
        return head;
    });
}

/// Ids from `first` to `last`.
struct id_range {
    id first{};
    id last{};
    std::size_t limit = 100; ///< at most this many
};

/// The ids of the range that are stored, ascending.
[[nodiscard]] inline std::vector<id> ids_between(PGconn* connection, const id_range& range,
                                                 std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(
            "SELECT e.id FROM @entries e WHERE e.id BETWEEN $1::uuid AND $2::uuid ORDER BY e.id LIMIT $3::bigint");
        std::vector<id> out;
        detail::run_with(connection, text, "read the ids",
                         detail::parameters(range.first, range.last, std::uint64_t{range.limit}))
            .each([&](detail::row one) { one.read(out.emplace_back()); });
        return out;
    });
}

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/joined.hpp
// A writer inside a transaction that the application has opened on its own connection. Business rows and entries are
// then committed together or not at all:
//
//   postgres::joined writer(connection);        // once per connection, or once per transaction
//   exec(connection, "BEGIN");                  // by the application
//   exec(connection, "INSERT INTO orders ...");
//   writer.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // by the application
//
// It never commits, and its destructor changes nothing. Each call is all or nothing: it runs in a savepoint, and leaves
// the connection as it was, without settings or prepared statements of its own. After `conflict` the application rolls
// back its transaction and begins again. The transaction must be READ COMMITTED, PostgreSQL's default, or SERIALIZABLE.
// Destroy the object before you close the connection. Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The operations are those of the concept `writer`. Each throws `misuse` if no transaction is open on the connection, or
/// if it has failed.
class joined : public validated_writer<joined> {
  public:
    /// Requires that the tables exist: `migrate(connection)` creates them.
    explicit joined(PGconn* connection, std::string_view prefix = default_prefix)
        : member_(detail::translate_bad_alloc([&] { return std::make_unique<member>(connection, prefix); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class validated_reader<joined>;
    friend class validated_writer<joined>;

    struct member {
        member(PGconn* db, std::string_view prefix) : on(db, detail::table_names(prefix)) {
            detail::expect_usable(db);
            detail::expect_schema(db, on.names());
        }
        detail::connection on;
        detail::purge_positions positions{};
    };

    [[nodiscard]] const capabilities& expect_open() const {
        const auto status = member_ ? PQtransactionStatus(member_->on.handle()) : PQTRANS_IDLE;
        if (status == PQTRANS_IDLE || status == PQTRANS_UNKNOWN) {
            throw error(error_kind::misuse,
                        "postgres: joined: no transaction is open on the application's connection; begin one first");
        }
        if (status != PQTRANS_INTRANS) {
            throw error(error_kind::misuse, "postgres: joined: the application's transaction has failed, or a query is "
                                            "still running; roll back, or read its results first");
        }
        return detail::supported;
    }

    /// Each call undoes itself, and the transaction belongs to the application.
    void close() const noexcept {}

    /// Takes the connection out of pipeline mode, in which the application cannot use it.
    struct use {
        detail::connection& on;
        ~use() { on.leave_pipeline(); }
    };

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] {
            const use in{member_->on};
            return within_savepoint([&] { return operation(detail::entry_reader(in.on)); });
        });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        return detail::translate_bad_alloc([&] {
            const use in{member_->on};
            return within_savepoint([&] {
                detail::session session;
                auto answer = operation(detail::unchecked_writer(in.on, session, member_->positions));
                detail::add_notify(in.on, session);
                return answer;
            });
        });
    }

    /// Runs the operation in a savepoint, so that an error leaves the transaction as it was.
    template <class Operation>
    auto within_savepoint(const Operation& operation) const {
        auto& on = member_->on;
        on.set_doing("joined");
        try {
            on.add(detail::sql::savepoint);
            on.add(detail::sql::expect_isolation);
            auto answer = operation();
            on.add(detail::sql::release);
            on.exchange();
            return answer;
        } catch (const error& e) {
            undo();
            if (e.text_code() == detail::wrong_isolation) {
                throw error(error_kind::unsupported,
                            "postgres: joined: the application's transaction is REPEATABLE READ; "
                            "begin it READ COMMITTED or SERIALIZABLE");
            }
            throw;
        } catch (...) {
            undo();
            throw;
        }
    }

    /// If this fails, the connection is lost, and the transaction with it.
    void undo() const noexcept {
        try {
            auto& on = member_->on;
            if (!on.is_lost()) {
                on.abandon();
                on.add(detail::sql::roll_back_to);
                on.add(detail::sql::release);
                on.exchange();
            }
        } catch (...) {
            // The next call reports it.
        }
    }

    std::unique_ptr<member> member_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/roles.hpp
// Three roles for the tables of a store, as text for a person or a migration tool: one that may only enqueue, one that
// may only work, and one that may only look. They cannot log in; `GRANT vouch_enqueue TO web` grants one to a role that
// does. Stores of such roles are opened with `create = false`, because no role may create or migrate tables.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// What a role may do.
enum class access : unsigned char {
    enqueue, ///< store entries, also in the application's own transactions; not read payloads, results or errors
    work,    ///< what a worker does: enqueue, claim, settle, purge, read; and what the tool does
    look,    ///< read everything and change nothing
};

/// The name of a role: the prefix, without a dot, and `enqueue`, `work` or `look`. For the default prefix,
/// `vouch_enqueue`. Throws `invalid_argument` if it has more than 63 bytes, the most that PostgreSQL allows.
[[nodiscard]] inline std::string role_name(access may, std::string_view prefix = default_prefix) {
    constexpr std::array<std::string_view, 3> words{"enqueue", "work", "look"};
    const detail::table_names names(prefix);
    std::string out = names.schema == "public" ? "" : names.schema + '_';
    out.append(names.tables).append(words[static_cast<std::size_t>(may)]);
    constexpr std::size_t size_max = 63;
    if (out.size() > size_max) {
        throw error(error_kind::invalid_argument,
                    "postgres: roles: the prefix is too long: a role would have a name of " +
                        std::to_string(out.size()) + " bytes, and 63 are allowed");
    }
    return out;
}

/// The statements that create the three roles, or give existing ones exactly these rights. Run them as the owner of the
/// tables with the right to create roles, after `migrate` and again after every migration.
[[nodiscard]] inline std::string roles(std::string_view prefix = default_prefix) {
    // In the order of `access`. A role that enqueues opens lanes, counts members of groups and marks a dead entry as
    // replaced, so it may update these columns; it reads only the columns that dedup needs.
    constexpr std::array<std::string_view, 3> grants{
        R"(GRANT INSERT ON @entries TO {role};
GRANT SELECT (sequence, id, queue, key, "group", lane, state, generation, replaces, newest, gate, due_at) ON @entries TO {role};
GRANT UPDATE (gate, newest) ON @entries TO {role};
GRANT USAGE ON SEQUENCE @sequence TO {role};
GRANT SELECT, INSERT, UPDATE ON @groups TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON @lanes TO {role};
GRANT SELECT ON @meta, @listeners TO {role};
GRANT SELECT, INSERT ON @server TO {role};
)",
        R"(GRANT SELECT, INSERT, UPDATE, DELETE ON @entries, @groups, @lanes, @listeners TO {role};
GRANT USAGE ON SEQUENCE @sequence TO {role};
GRANT SELECT ON @meta TO {role};
GRANT SELECT, INSERT ON @server TO {role};
)",
        R"(GRANT SELECT ON @entries, @groups, @lanes, @listeners, @meta, @server TO {role};
)"};
    // Tables that only some applications have.
    struct optional_table {
        std::string_view name;
        std::array<std::string_view, 3> grants;
    };
    constexpr std::array optional_tables{optional_table{"audit", {"", "SELECT, INSERT", "SELECT"}},
                                         optional_table{"history", {"", "SELECT, INSERT, UPDATE, DELETE", "SELECT"}}};
    const detail::table_names names(prefix);
    std::string out;
    for (const auto may : {access::enqueue, access::work, access::look}) {
        const auto i = static_cast<std::size_t>(may);
        std::string text = R"(DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
REVOKE ALL ON @entries, @groups, @lanes, @listeners, @meta, @server FROM {role};
REVOKE ALL ON SEQUENCE @sequence FROM {role};
GRANT USAGE ON SCHEMA {schema} TO {role};
)";
        text += grants[i];
        for (const auto& table : optional_tables) {
            if (!table.grants[i].empty()) {
                text.append("DO $$ BEGIN IF to_regclass('@").append(table.name).append("') IS NOT NULL THEN GRANT ");
                text.append(table.grants[i]).append(" ON @").append(table.name).append(" TO {role}; END IF; END $$;\n");
            }
        }
        const auto put = [&](std::string_view word, const std::string& name) {
            const auto quoted = '"' + name + '"';
            for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + quoted.size())) {
                text.replace(at, word.size(), quoted);
            }
        };
        put("{role}", role_name(may, prefix));
        put("{schema}", names.schema);
        out += names.in(text);
    }
    return out;
}

} // namespace postgres
} // namespace v0
} // namespace vouch

// ---- vouch/postgres/schema.hpp
// The tables of a store: created and migrated on request, or as text for a migration tool.

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The schema version of this library.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Creates the schema and the tables, or migrates older tables, in one transaction: the one that is open on the
/// connection, or its own. Throws `unsupported`, and changes nothing, if the tables are newer than this library.
inline void migrate(PGconn* connection, std::string_view prefix = default_prefix) {
    detail::translate_bad_alloc([&] {
        const detail::table_names names(prefix);
        detail::expect_usable(connection);
        detail::migrate(connection, names, detail::migrations);
    });
}

/// The statements that create the schema, all tables and indexes in an empty database, for a migration tool.
[[nodiscard]] inline std::string schema(std::string_view prefix = default_prefix) {
    const detail::table_names names(prefix);
    std::string out = detail::create_schema(names);
    for (const auto step : detail::migrations) {
        out += names.in(step);
    }
    return out + detail::record_version(names, detail::migrations.size());
}

} // namespace postgres
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_POSTGRES
