// SPDX-License-Identifier: MIT
// The scheduler of the suite with threads that wait for a server: it must not take a slow answer for a lock, or a schedule
// is a matter of chance.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include <vouch/conformance/detail/schedule/scheduler.hpp>

#include "../catch.hpp"

namespace {

using namespace std::chrono_literals;
using vouch::conformance::detail::scheduler;

/// A connection to a server on a thread. The server answers each byte after `delay` and when `may_answer` is true.
class connection {
  public:
    explicit connection(std::chrono::microseconds delay) : delay_(delay) {
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) == 0);
        server_ = std::thread([this] { serve(); });
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() {
        may_answer = true;
        shutdown(ends_[0], SHUT_RDWR);
        server_.join();
        close(ends_[0]);
        close(ends_[1]);
    }

    void ask() const {
        char byte = 'x';
        if (write(ends_[0], &byte, 1) == 1) {
            answered += read(ends_[0], &byte, 1) == 1 ? 1 : 0;
        }
    }

    std::atomic<bool> may_answer = true;
    mutable std::atomic<int> answered = 0;

  private:
    void serve() const {
        for (char byte = 0; read(ends_[1], &byte, 1) == 1;) {
            std::this_thread::sleep_for(delay_);
            while (!may_answer) {
                std::this_thread::sleep_for(100us);
            }
            if (write(ends_[1], &byte, 1) != 1) {
                return;
            }
        }
    }

    std::array<int, 2> ends_{};
    std::chrono::microseconds delay_;
    std::thread server_{};
};

/// Runs `work(thread)` on two scheduled threads, which take turns in the order of their numbers.
template <class Work>
void run_two(scheduler& with, const Work& work) {
    std::vector<std::thread> threads;
    for (std::size_t who = 0; who < 2; ++who) {
        threads.emplace_back([&, who] {
            with.enter(who);
            work(who);
            with.finish(who);
        });
    }
    with.run();
    for (auto& thread : threads) {
        thread.join();
    }
}

[[nodiscard]] std::size_t first_of(const std::vector<scheduler::ready_thread>& ready) { return ready.front().index; }

} // namespace

TEST_CASE("A thread that waits for a server's answer keeps its turn") {
    const std::array<connection, 2> servers{connection{1ms}, connection{1ms}};
    scheduler with(2, first_of);
    std::atomic<int> inside = 0;
    std::atomic<int> together = 0;
    run_two(with, [&](std::size_t who) {
        for (int i = 0; i < 20; ++i) {
            with.end_step(who);
            together += inside++ > 0 ? 1 : 0;
            servers[who].ask();
            inside -= 1;
        }
    });
    CHECK(servers[0].answered + servers[1].answered == 40);
    CHECK(together <= static_cast<int>(with.guesses())); // a machine under load may make an answer late
}

TEST_CASE("A thread that a server keeps waiting for another thread gives up its turn") {
    std::array<connection, 2> servers{connection{0us}, connection{0us}};
    servers[0].may_answer = false;
    scheduler with(2, first_of);
    run_two(with, [&](std::size_t who) {
        with.end_step(who);
        servers[who].ask();
        servers[0].may_answer = true; // the second thread ends what the first one waits for
    });
    CHECK(servers[0].answered + servers[1].answered == 2);
    CHECK(with.guesses() >= 1);
}
