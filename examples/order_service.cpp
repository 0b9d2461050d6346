// SPDX-License-Identifier: MIT
// An order service on a SQLite file: an order and its mail are one commit; processes are killed, and nothing is lost.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace {

using namespace std::chrono_literals;

void execute(sqlite3* db, const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        throw std::runtime_error(sqlite3_errmsg(db));
    }
}

/// The application's own database. vouch's tables are in the same file as its orders.
class shop {
  public:
    explicit shop(const std::string& path) {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
            throw std::runtime_error("cannot open the shop's database");
        }
        sqlite3_busy_timeout(db_, 5000);
        execute(db_, "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY)");
        vouch::sqlite::migrate(db_);
    }
    shop(const shop&) = delete;
    shop& operator=(const shop&) = delete;
    ~shop() { sqlite3_close(db_); }

    /// Stores the order and the work it causes in one transaction of the shop.
    void place_order(int number, bool power_fails = false) {
        vouch::sqlite::joined work(db_);
        execute(db_, "BEGIN IMMEDIATE");
        execute(db_, ("INSERT INTO orders VALUES (" + std::to_string(number) + ")").c_str());
        emitter_.emit(work, {.queue = "mail", .topic = "order.placed", .payload = std::to_string(number)});
        if (power_fails) {
            std::printf("  order %d: killed before the commit\n", number);
            std::fflush(stdout);
            std::raise(SIGKILL);
        }
        execute(db_, "COMMIT");
        std::printf("  order %d: placed\n", number);
    }

    [[nodiscard]] int orders() {
        int count = 0;
        sqlite3_exec(
            db_, "SELECT count(*) FROM orders",
            [](void* to, int, char** row, char**) {
                *static_cast<int*>(to) = std::atoi(row[0]);
                return 0;
            },
            &count, nullptr);
        return count;
    }

  private:
    sqlite3* db_ = nullptr;
    vouch::emitter emitter_{};
};

/// Sends a mail for every order until no work is left. Dies at the order `dies_over`, after the mail is sent and before
/// the entry is settled.
void run_mailer(const std::string& path, const std::string& dies_over = "") {
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("order.placed", [&](vouch::delivery& d) {
        std::printf("  order %s: mail sent, attempt %u\n", d.payload().c_str(), d.attempt());
        if (d.payload() == dies_over) {
            std::printf("  order %s: killed before it was settled\n", d.payload().c_str());
            std::fflush(stdout);
            std::raise(SIGKILL);
        }
    });
    vouch::runner runner(outbox, router, {.queue = "mail", .batch_size = 1, .lease = 2s});
    while (store.counts("mail").live() > 0) {
        if (runner.run_until_idle().claimed == 0) {
            std::this_thread::sleep_for(20ms); // the lease of the killed mailer is still running
        }
    }
}

void show(const std::string& path) {
    const vouch::sqlite::store store(path);
    const auto counts = store.counts("mail");
    std::printf("  %d orders; %zu entries: %zu pending, %zu claimed, %zu succeeded, %zu dead\n", shop(path).orders(),
                counts.total(), counts[vouch::state::pending], counts[vouch::state::claimed],
                counts[vouch::state::succeeded], counts[vouch::state::dead]);
}

/// Runs `work` in a child process.
template <class Work>
void in_a_process(const char* what, Work&& work) {
    std::printf("%s\n", what);
    std::fflush(stdout);
    if (const auto child = fork(); child == 0) {
        work();
        std::fflush(stdout);
        std::_Exit(0);
    } else {
        waitpid(child, nullptr, 0);
    }
}

} // namespace

int main() {
    const auto folder = std::filesystem::temp_directory_path() / ("vouch-orders-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto path = (folder / "shop.db").string();

    in_a_process("the shop takes orders and is killed during the third", [&] {
        shop shop(path);
        shop.place_order(1);
        shop.place_order(2);
        shop.place_order(3, true);
    });
    show(path); // neither the third order nor its entry is stored
    in_a_process("the mailer is killed at order 2", [&] { run_mailer(path, "2"); });
    show(path);
    in_a_process("the shop is started again", [&] { shop(path).place_order(3); });
    in_a_process("the mailer is started again and claims order 2 when the lease of the killed one expires",
                 [&] { run_mailer(path); });
    show(path);

    std::filesystem::remove_all(folder);
}
