// SPDX-License-Identifier: MIT
// The SQLite store and its transaction.
//
// A store is a handle: copies share one writing connection and a pool of reading connections, which are closed with the
// last copy or transaction. Transactions of one process take turns; transactions of several processes wait for SQLite's
// write lock. Reads on the store see the committed state and never wait for a writer; if the store uses a connection of
// the application, this requires that the database is in WAL mode.
//
// A store is safe for any number of threads; a transaction is used by one thread at a time. As always with SQLite,
// neither may be used across a fork.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>
#include <vouch/sqlite/detail/entry_reader.hpp>
#include <vouch/sqlite/detail/file.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/unchecked_writer.hpp>
#include <vouch/sqlite/options.hpp>

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
