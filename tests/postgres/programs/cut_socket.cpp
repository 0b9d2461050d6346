// SPDX-License-Identifier: MIT
// Cuts the connection after every byte of a script of operations, in both directions, and compares the store with a model
// after each operation. The model is the memory store: it carries out what the PostgreSQL store says to be stored, and
// nothing else. What is said to be in doubt is looked up.
//
//   cut_socket [STEP]         cuts after 1, 1 + STEP, 1 + 2 STEP, ... bytes, until the script passes uncut, and more
//                             often in the answers to COMMIT
//   cut_socket STEP FROM TO   cuts only after FROM, FROM + STEP, ... bytes, below TO
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <libpq-fe.h>

#include <vouch/memory.hpp>
#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "postgres/programs/cutting_proxy.hpp"
#include "postgres/programs/fault_server.hpp"
#include "postgres/programs/findings.hpp"

namespace {

using namespace fault_program;
using namespace std::chrono_literals;
namespace postgres = vouch::postgres;

const std::string prefix = "cut.";
constexpr vouch::time_point t0{std::chrono::hours{24 * 365 * 50}};

[[nodiscard]] constexpr vouch::id id_of(std::uint64_t n) { return {.high = 7, .low = n}; }

[[nodiscard]] vouch::draft draft_of(std::uint64_t n) {
    vouch::draft d{.id = id_of(n), .queue = "q", .topic = "t"};
    d.payload = std::string(40, 'x');
    return d;
}

[[nodiscard]] vouch::draft draft_in_lane(std::uint64_t n) {
    auto d = draft_of(n);
    d.lane = "lane";
    d.group = "group";
    return d;
}

/// What an operation answers, as text, so that the store's and the model's answers can be compared.
using answer = std::string;

template <class Store, class Work>
answer in_transaction(Store& store, const Work& work) {
    auto tx = store.begin();
    auto answered = work(tx);
    tx.commit();
    return answered;
}

[[nodiscard]] answer text_of(vouch::verdict v) { return std::string(name_of(v)); }

[[nodiscard]] answer text_of(const std::vector<vouch::entry>& claimed) {
    answer out;
    for (const auto& e : claimed) {
        out += to_string(e.id) + ' ';
    }
    return out;
}

/// The operations, each in one commit, by the free functions or in a transaction. They use fixed tickets, so that they
/// mean the same whether or not an earlier one was stored.
template <class Store>
[[nodiscard]] std::vector<std::function<answer(Store&)>> script() {
    const vouch::claim_request two{.queue = "q", .limit = 2, .now = t0, .lease = 1min, .worker = "w"};
    return {
        [](Store& store) {
            vouch::enqueue(store, std::array{draft_of(1)}, t0);
            return answer{};
        },
        [](Store& store) {
            return in_transaction(store, [](auto& tx) {
                const auto receipts = tx.enqueue(std::array{draft_of(2), draft_in_lane(3), draft_in_lane(4)}, t0);
                return std::to_string(static_cast<int>(receipts[2].what));
            });
        },
        [=](Store& store) { return text_of(vouch::claim(store, two)); },
        [=](Store& store) { return in_transaction(store, [&](auto& tx) { return text_of(tx.claim(two)); }); },
        [](Store& store) {
            return in_transaction(store, [](auto& tx) {
                const std::array settles{vouch::settle{{.id = id_of(1), .epoch = 1}, vouch::succeed{.result = "r"}},
                                         vouch::settle{{.id = id_of(2), .epoch = 1}, vouch::bury{.error = "e"}}};
                const auto answers = tx.settle(settles, t0 + 1s);
                return text_of(answers[0].verdict) + text_of(answers[1].verdict);
            });
        },
        [](Store& store) {
            return in_transaction(store, [](auto& tx) { return text_of(tx.cancel(id_of(3), "cancelled", t0 + 2s)); });
        },
        [](Store& store) {
            return in_transaction(store, [](auto& tx) {
                auto d = draft_of(5);
                d.key = "key";
                std::ignore = tx.enqueue(std::array{d}, t0 + 3s);
                return text_of(tx.nudge(id_of(4), t0 + 3s));
            });
        },
        [](Store& store) {
            return in_transaction(store, [](auto& tx) {
                return std::to_string(tx.purge({.queue = "q", .before = t0 + 1h, .limit = 1}));
            });
        },
    };
}

/// Everything that is stored. Sequences are left out: those of failed transactions are lost.
template <class Store>
[[nodiscard]] std::vector<vouch::entry> content(const Store& store) {
    auto all = vouch::query::all("q");
    all.payloads = true;
    auto out = store.list(all);
    for (auto& e : out) {
        e.sequence = 0;
    }
    return out;
}

class trial {
  public:
    explicit trial(const server& at)
        : direct_conninfo_(at.conninfo()), folder_(at.folder() + "/proxy"), proxy_(folder_, at.folder()),
          look_(at.conninfo(), {.prefix = prefix}), on_(at.conninfo()) {}

    /// Cuts after `n` bytes. Returns whether the script was long enough for that.
    bool run(std::size_t n) {
        on_.run("DELETE FROM cut.entries; DELETE FROM cut.lanes; DELETE FROM cut.groups");
        vouch::memory::store model;
        using notices = cutting_proxy::server_notices;
        proxy_.cut_after(n, n % 2 == 0 ? notices::later : notices::at_once);
        const auto theirs = script<postgres::store>();
        const auto ours = script<vouch::memory::store>();
        std::optional<postgres::store> store;
        if (errors.run([&] { store.emplace(through_proxy(), how()); }) == said::absent) {
            expect(proxy_.has_cut(), "a store is refused only if its connection is cut");
            store.emplace(through_proxy(), how());
        }
        for (std::size_t i = 0; i < ours.size(); ++i) {
            operate(*store, theirs[i], model, ours[i],
                    "operation " + std::to_string(i + 1) + ", cut after byte " + std::to_string(n));
        }
        join(model, "joined, cut after byte " + std::to_string(n));
        return proxy_.has_cut();
    }

    /// Cuts while the tables are created. The next attempt finds them as they were, or complete.
    bool create(std::size_t n) {
        on_.run("DROP SCHEMA IF EXISTS made CASCADE");
        proxy_.cut_after(n, cutting_proxy::server_notices::at_once);
        static_cast<void>(errors.run([&] { const postgres::store first(through_proxy(), {.prefix = "made."}); }));
        const bool has_cut = proxy_.has_cut();
        postgres::store second(direct_conninfo_, {.prefix = "made."});
        vouch::enqueue(second, std::array{draft_of(1)}, t0);
        expect(second.find(id_of(1)).has_value(), "tables are complete after a cut at byte " + std::to_string(n));
        return has_cut;
    }

    [[nodiscard]] std::size_t bytes() const { return proxy_.passed(); }
    [[nodiscard]] std::vector<std::size_t> commits() const { return proxy_.commits(); }
    error_counts errors{};

  private:
    [[nodiscard]] std::string through_proxy(const std::string& name = "script") const {
        return "host=" + folder_ + " dbname=postgres user=postgres application_name=" + name;
    }
    /// Waits until the server's processes for these connections, which are lost, have noticed it and ended.
    void wait_for_end(const std::string& name) {
        while (on_.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + name + "'") > 0) {
            std::this_thread::sleep_for(1ms);
        }
    }
    [[nodiscard]] static postgres::options how() { return {.prefix = prefix, .create = false, .listen = false}; }

    template <class Theirs, class Ours>
    void operate(postgres::store& store, const Theirs& theirs, vouch::memory::store& model, const Ours& ours,
                 const std::string& where) {
        answer answered;
        auto what = errors.run([&] { answered = theirs(store); });
        if (what == said::absent) {
            expect(proxy_.has_cut(), "an operation fails only if its connection is cut: " + where);
        }
        const bool has_answer = what == said::stored;
        if (what == said::in_doubt) {
            wait_for_end("script"); // it may yet commit
            what = content(look_) == content(model) ? said::absent : said::stored;
        }
        if (what == said::stored) {
            const auto right = ours(model);
            expect(!has_answer || right == answered, "the answer is the model's: " + where);
        }
        expect(content(look_) == content(model),
               std::string(what == said::stored ? "stored" : "absent") + " is what the table says: " + where);
    }

    /// A transaction of the application, which writes a row of its own, too.
    void join(vouch::memory::store& model, const std::string& where) {
        const std::array drafts{draft_of(6)};
        bool is_sent = false;
        bool is_stored = false;
        const std::unique_ptr<PGconn, void (*)(PGconn*)> c(PQconnectdb(through_proxy("joined").c_str()), &PQfinish);
        static_cast<void>(errors.run([&] {
            PQclear(PQexec(c.get(), "BEGIN"));
            if (PQtransactionStatus(c.get()) != PQTRANS_INTRANS) {
                return;
            }
            postgres::joined inside(c.get(), prefix);
            std::ignore = inside.enqueue(drafts, t0);
            is_sent = true;
            PGresult* const answered = PQexec(c.get(), "COMMIT");
            is_stored = PQresultStatus(answered) == PGRES_COMMAND_OK && std::string(PQcmdStatus(answered)) == "COMMIT";
            PQclear(answered);
        }));
        if (is_sent && !is_stored) { // only the server knows
            wait_for_end("joined");
            is_stored = look_.find(id_of(6)).has_value();
        }
        if (is_stored) {
            vouch::enqueue(model, drafts, t0);
        }
        expect(content(look_) == content(model), "what is joined is stored with the application's commit: " + where);
    }

    std::string direct_conninfo_;
    std::string folder_;
    cutting_proxy proxy_;
    postgres::store look_;
    direct on_;
};

/// Calls `cut(n)` for n = 1, 1 + step, ... until nothing was cut. Returns the number of cuts.
[[nodiscard]] std::size_t cut_all(std::size_t step, const std::function<bool(std::size_t)>& cut) {
    std::size_t cuts = 0;
    for (std::size_t n = 1; cut(n); n += step) {
        cuts += 1;
    }
    return cuts;
}

/// Cuts in the server's answers to COMMIT and around them, because there a cut decides most.
[[nodiscard]] std::size_t cut_answers(trial& all, std::size_t step) {
    std::size_t cuts = 0;
    static_cast<void>(all.run(0));
    for (const auto at : all.commits()) {
        for (std::size_t n = at - 12; n < at + 16; n += step) {
            cuts += all.run(n) ? 1U : 0U;
        }
    }
    return cuts;
}

} // namespace

int main(int argc, char** argv) {
    try {
        const std::size_t step = argc > 1 ? std::stoul(argv[1]) : 301;
        trial all(server{server_folder()});
        if (argc > 3) {
            for (std::size_t n = std::stoul(argv[2]); n < std::stoul(argv[3]); n += step) {
                static_cast<void>(all.run(n));
            }
            std::printf("  errors: %s\n", all.errors.text().c_str());
            return finish();
        }
        const auto in_script = cut_all(step, [&](std::size_t n) { return all.run(n); });
        std::printf("  %zu cuts in a script of %zu bytes; errors: %s\n", in_script, all.bytes(),
                    all.errors.text().c_str());
        const auto in_answers = cut_answers(all, step == 1 ? 1 : 3);
        std::printf("  %zu cuts in and around the answers to COMMIT; errors so far: %s\n", in_answers,
                    all.errors.text().c_str());
        const auto in_creation = cut_all(step * 4, [&](std::size_t n) { return all.create(n); });
        std::printf("  %zu cuts while tables are created, of %zu bytes\n", in_creation, all.bytes());
        expect(in_script > 0 && in_answers > 0 && in_creation > 0, "something was cut");
        return finish();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cut_socket: %s\n", e.what());
        return 2;
    }
}
