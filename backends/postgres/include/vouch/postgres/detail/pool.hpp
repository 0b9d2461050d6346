// SPDX-License-Identifier: MIT
// The connections of a store. They are made when they are needed and kept until the store is destroyed; one that has died
// is replaced. Transactions and reads have separate allowances, so that a read never waits for a transaction. Safe for
// any number of threads.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/connect.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/server_life.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/options.hpp>

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
