// SPDX-License-Identifier: MIT
// The SQLite store and its transaction: validation, turns and misuse around the statements.
//
// A store is a handle: copies share one writing connection and a pool of reading ones, all closed with the last copy or
// transaction. Transactions of one process take turns, those of several processes meet at SQLite's write lock. Reads on
// the store see what is committed and wait for no writer (with a connection of the application's: provided its database
// is in WAL mode). As always with SQLite, nothing of this may be carried across a fork.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/sqlite/detail/draft_inserter.hpp>
#include <vouch/sqlite/detail/entry_reader.hpp>
#include <vouch/sqlite/detail/entry_writer.hpp>
#include <vouch/sqlite/detail/file.hpp>
#include <vouch/sqlite/detail/purger.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/options.hpp>

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
