// SPDX-License-Identifier: MIT
// Runs the order saga on a SQLite file in a process that is killed with SIGKILL at every boundary: before and after
// every commit and every external effect. After a restart the saga finishes: every effect was requested at least once
// and happened exactly once, what had to be compensated is undone, and nothing is stuck.
//
//   saga_kill                  every boundary, in process and with participants, for an order that completes and one
//                              that is compensated; then an engine that forgets its checkpoints, which must be caught
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/database.hpp"

namespace {

using namespace std::chrono_literals;
using vouch::delivery;
using vouch::step_call;

long boundaries_left = -1; ///< of this process; it dies at the last one. Zero or negative: never

void boundary() {
    if (boundaries_left > 0 && --boundaries_left == 0) {
        raise(SIGKILL);
    }
}

int on_trace(unsigned, void*, void* statement, void*) { // called before and after a statement
    const char* const text = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    if (text != nullptr && std::string_view(text) == "COMMIT") {
        boundary();
    }
    return 0;
}

int on_open(sqlite3* db, const char**, const struct sqlite3_api_routines*) {
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_trace, nullptr);
    return SQLITE_OK;
}

/// The external services: the requests they received, and the effects by idempotency key.
class outside {
  public:
    explicit outside(const std::string& path) : db_(path) {
        db_.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
        db_.execute("CREATE TABLE IF NOT EXISTS asked (what TEXT, key TEXT)");
        db_.execute("CREATE TABLE IF NOT EXISTS done (what TEXT, key TEXT PRIMARY KEY)");
    }
    void ask(const std::string& what, const std::string& key) const {
        boundary();
        db_.execute("INSERT INTO asked VALUES ('" + what + "', '" + key + "')");
        boundary();
        db_.execute("INSERT OR IGNORE INTO done VALUES ('" + what + "', '" + key + "')");
        boundary();
    }
    [[nodiscard]] std::int64_t asked(const std::string& what) const { return count("asked", what); }
    [[nodiscard]] std::int64_t done(const std::string& what) const { return count("done", what); }

  private:
    [[nodiscard]] std::int64_t count(const std::string& table, const std::string& what) const {
        return db_.integer("SELECT count(*) FROM " + table + " WHERE what = '" + what + "'");
    }
    sqlite_test::database db_;
};

const std::vector<std::string> services{"payment", "inventory", "shipping"};

[[nodiscard]] vouch::saga_definition in_process(const outside& out, bool fails) {
    auto d = vouch::define_saga<std::string>("order");
    for (const auto& s : services) {
        const bool is_last = s == services.back();
        d.step(
            s,
            [&out, s, rejects = is_last && fails](step_call& call) {
                if (rejects) {
                    throw vouch::reject("address_undeliverable");
                }
                out.ask("do " + s, to_string(call.key()));
                return "result of " + s;
            },
            [&out, s](step_call& call) {
                if (out.done("do " + s) == 0) {
                    return; // it rejected, after a claim of which nothing is known
                }
                if (call.result() != "result of " + s) {
                    throw vouch::reject("wrong_result");
                }
                out.ask("undo " + s, to_string(call.key()));
            });
    }
    return d.build();
}

[[nodiscard]] vouch::saga_definition with_participants() {
    auto d = vouch::define_saga<std::string>("order");
    for (const auto& s : services) {
        d.command(s, {.queue = s, .topic = "do", .undo = "undo", .timeout = 24h});
    }
    return d.build();
}

struct scenario {
    bool remote = false;
    bool fails = false;
    bool forgets = false; ///< a broken engine: it loses its checkpoints with the process
};

/// Runs all queues until no work is left. `life` counts the processes: each one begins after the leases of the previous
/// one have expired.
void live(const std::string& folder, const scenario& what, int life) {
    const outside out(folder + "/outside.db");
    // This test kills processes, not the machine, so no commit has to wait for the disk.
    vouch::sqlite::store store(folder + (what.forgets ? "/store" + std::to_string(life) + ".db" : "/store.db"),
                               {.synchronous = vouch::sqlite::synchronous::normal});
    const vouch::manual_clock clock(vouch::time_point{std::chrono::hours{24 * 365 * 50} + life * 10min});
    const vouch::outbox outbox(store, {.clock = clock});
    const auto definition = what.remote ? with_participants() : in_process(out, what.fails);

    std::map<std::string, std::unique_ptr<vouch::router<vouch::sqlite::store>>> routers;
    const auto router = [&](const std::string& queue) -> vouch::router<vouch::sqlite::store>& {
        auto& at = routers[queue];
        at = at ? std::move(at) : std::make_unique<vouch::router<vouch::sqlite::store>>(outbox);
        return *at;
    };
    router("orders").on(definition);
    for (const auto& s : services) {
        router(s).on("do", [&, s](delivery& d) {
            if (what.fails && s == services.back()) {
                throw vouch::reject("address_undeliverable");
            }
            out.ask("do " + s, to_string(vouch::command_of(d.entry())->key));
            return "result of " + s;
        });
        router(s).on("undo", [&, s](delivery& d) {
            if (out.done("do " + s) == 0) {
                return; // it rejected, after a claim of which nothing is known
            }
            if (d.as<vouch::compensation>() != vouch::compensation{"1", "result of " + s}) {
                throw vouch::reject("wrong_result");
            }
            out.ask("undo " + s, to_string(vouch::command_of(d.entry())->key));
        });
    }
    // The first process places the order, later ones find a duplicate.
    outbox.start(definition, {.queue = "orders", .key = "order 1"}, std::string("1"));
    for (bool busy = true; busy;) {
        busy = false;
        for (const auto& [queue, routes] : routers) {
            vouch::runner runner(outbox, *routes, {.queue = queue, .lease = 5min});
            busy = runner.run_until_idle().claimed > 0 || busy;
        }
    }
}

/// Runs `live` in a child process that dies at the given boundary (0: never). Returns whether it finished.
[[nodiscard]] bool in_a_child(const std::string& folder, const scenario& what, int life, long dies_at) {
    const auto child = fork();
    if (child < 0) {
        throw std::runtime_error("fork");
    }
    if (child == 0) {
        int code = 0;
        try {
            boundaries_left = dies_at;
            sqlite3_auto_extension(reinterpret_cast<void (*)()>(on_open));
            live(folder, what, life);
        } catch (const std::exception& e) {
            std::fprintf(stderr, "a child process failed: %s\n", e.what());
            code = 1;
        }
        _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!was_killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        throw std::runtime_error("a child process failed without being killed");
    }
    return !was_killed;
}

[[nodiscard]] std::vector<std::string> findings(const std::string& folder, const scenario& what) {
    std::vector<std::string> wrong;
    const auto expect = [&](bool holds, const std::string& sentence) {
        if (!holds) {
            wrong.push_back(sentence);
        }
    };
    const outside out(folder + "/outside.db");
    for (const auto& s : services) {
        const bool happens = !what.fails || s != services.back();
        expect(out.done("do " + s) == (happens ? 1 : 0),
               s + ": the effect did not happen the expected number of times");
        expect(out.asked("do " + s) >= (happens ? 1 : 0), s + ": the effect was never requested");
        expect(out.done("undo " + s) == (what.fails && happens ? 1 : 0),
               s + ": the undo did not happen the expected number of times");
    }
    if (what.forgets) {
        return wrong;
    }
    const vouch::sqlite::store store(folder + "/store.db");
    const auto sagas = store.list(vouch::query::all("orders"));
    expect(sagas.size() == 1, "there is not exactly one saga");
    const auto status = sagas.empty() ? std::nullopt : vouch::inspect(sagas.front());
    expect(status && (what.fails ? status->is_compensated() : status->is_completed()),
           "the saga has not ended as expected");
    for (const auto& s : services) {
        expect(store.counts(s).live() == 0, "a command to " + s + " is still live");
    }
    return wrong;
}

struct tally {
    long kills = 0;
    std::size_t wrong = 0;
};

/// Kills the process at every boundary in turn, each time with new files.
[[nodiscard]] tally kill_everywhere(const scenario& what) {
    tally out;
    for (long at = 1;; ++at) {
        const sqlite_test::folder folder;
        const auto path = folder.path().string();
        const bool finished = in_a_child(path, what, 0, at);
        if (!finished) {
            out.kills += 1;
            if (!in_a_child(path, what, 1, 0)) {
                throw std::runtime_error("the restarted child process was killed, too");
            }
        }
        for (const auto& w : findings(path, what)) {
            out.wrong += 1;
            if (!what.forgets) {
                std::printf("  FAILED: killed at boundary %ld: %s\n", at, w.c_str());
            }
        }
        if (finished) {
            return out;
        }
    }
}

} // namespace

int main() {
    try {
        bool sound = true;
        for (const auto& what :
             {scenario{}, scenario{.fails = true}, scenario{.remote = true}, scenario{.remote = true, .fails = true}}) {
            const auto found = kill_everywhere(what);
            std::printf("%s, %s: killed at each of %ld boundaries, %zu findings\n",
                        what.remote ? "with participants" : "in process", what.fails ? "compensated" : "completed",
                        found.kills, found.wrong);
            sound = sound && found.wrong == 0 && found.kills > 20;
        }
        const auto broken = kill_everywhere({.forgets = true});
        std::printf("an engine that forgets its checkpoints: %zu findings, %s\n", broken.wrong,
                    broken.wrong > 0 ? "caught" : "NOT CAUGHT");
        return sound && broken.wrong > 0 ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "saga_kill: %s\n", e.what());
        return 2;
    }
}
