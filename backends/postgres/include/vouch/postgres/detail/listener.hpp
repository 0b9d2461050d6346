// SPDX-License-Identifier: MIT
// Hears of commits of other processes: one connection and one thread for each database and prefix in this process. It
// begins when a thread first asks for `wakes` or waits. While it listens, its server process has a row in `@listeners`,
// so that writers know that a NOTIFY is wanted. If it loses its connection it makes another one and wakes every queue,
// because it may have missed something.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/connect.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/detail/wake_counts.hpp>

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
