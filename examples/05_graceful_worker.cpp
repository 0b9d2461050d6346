// SPDX-License-Identifier: MIT
// Stop a worker process with a signal: it finishes its running handlers and releases the entries it has not started.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

using namespace std::chrono_literals;
using vouch::state;
using database = vouch::sqlite::store;

namespace {

/// The main function of a mailer process.
int run_mailer(const std::string& path, std::chrono::milliseconds per_mail) {
    const vouch::stop_signals signals; // SIGINT and SIGTERM
    database work(path);
    const vouch::outbox outbox(work);
    vouch::router router(outbox);
    router.on("mail", [&](vouch::delivery&) { std::this_thread::sleep_for(per_mail); });

    vouch::worker worker(outbox, {.name = "mailer"});
    worker.serve(router, {.queue = "mail", .concurrency = 4});
    const auto done = worker.run(signals.token()); // returns after a signal
    return done.succeeded > 0 && done.retried + done.dead + done.unsettled == 0 ? 0 : 1;
}

/// Runs the mailer in a child process, sends SIGTERM when `ready` returns true, and returns its exit code.
template <class Ready>
int run_until(const std::string& path, std::chrono::milliseconds per_mail, const Ready& ready) {
    std::fflush(stdout);
    const auto child = fork();
    if (child == 0) {
        std::_Exit(run_mailer(path, per_mail));
    }
    const auto watcher = fork(); // no SQLite connection may be open across a fork, so another process watches
    if (watcher == 0) {
        const database work(path);
        while (!ready(work.counts("mail"))) {
            std::this_thread::sleep_for(2ms);
        }
        std::_Exit(0);
    }
    waitpid(watcher, nullptr, 0);
    kill(child, SIGTERM);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

int main() {
    const auto folder = std::filesystem::temp_directory_path() / ("vouch-mailer-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto path = (folder / "mail.db").string();
    constexpr std::size_t mails = 200;
    if (const auto producer = fork(); producer == 0) {
        database work(path);
        vouch::outbox(work).emit(std::vector<vouch::emission>(mails, {.queue = "mail", .topic = "mail"}));
        std::_Exit(0);
    } else {
        waitpid(producer, nullptr, 0);
    }

    std::printf("%zu mails are pending; the mailer is stopped while it works\n", mails);
    const int first = run_until(path, 5ms, [](const auto& counts) { return counts[state::succeeded] >= 20; });
    std::printf("it exits with %d\n", first);
    {
        const database work(path);
        const auto counts = work.counts("mail");
        std::printf("no entry is claimed: %s; some entries are pending: %s\n",
                    counts[state::claimed] == 0 ? "yes" : "no", counts[state::pending] > 0 ? "yes" : "no");
    }

    std::printf("the mailer is started again\n");
    const int second = run_until(path, 0ms, [](const auto& counts) { return counts.live() == 0; });
    std::printf("it exits with %d\n", second);
    const database work(path);
    std::size_t attempts = 0;
    auto all = vouch::query::all("mail");
    all.limit = mails;
    for (const auto& e : work.list(all)) {
        attempts += e.attempts;
    }
    std::printf("%zu mails sent with %zu attempts: the stop used none\n", work.counts("mail")[state::succeeded],
                attempts);
    std::filesystem::remove_all(folder);
}
