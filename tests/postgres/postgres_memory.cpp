// SPDX-License-Identifier: MIT
// Allocations that fail, one after another, in every call that commits: the caller gets an error of vouch, and nothing was
// stored or claimed unless the error is in doubt.
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "ending.hpp"
#include "failing_new.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_memory_test {

/// How many allocations of this thread are left; 0: all succeed.
inline thread_local long left = 0;

} // namespace postgres_memory_test

bool allocation_fails() noexcept { return postgres_memory_test::left > 0 && --postgres_memory_test::left == 0; }

namespace postgres_memory_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
namespace postgres = vouch::postgres;

namespace {

/// Calls `f` with the n-th allocation failing.
template <class F>
ending end_of_starved(long n, const F& f) {
    return end_of([&] {
        struct counted {
            explicit counted(long n) { left = n; }
            ~counted() { left = 0; }
        } const now(n);
        f();
    });
}

/// Names too long to be stored without an allocation.
vouch::draft long_draft(std::uint64_t n) {
    auto d = draft_of(n, "a queue with a name that needs an allocation");
    d.payload = std::string(100, 'p');
    return d;
}

vouch::claim_request claim_of(const vouch::draft& d) {
    return {.queue = d.queue, .limit = 10, .now = t0, .lease = 1h, .worker = "w"};
}

/// A call that commits. `act` is carried out with each allocation failing in turn, on drafts of its own.
struct scenario {
    const char* name;
    std::function<std::vector<vouch::draft>(std::uint64_t)> drafts;
    std::function<void(postgres::store&, const std::vector<vouch::draft>&)> prepare; ///< commits
    std::function<void(postgres::transaction&, const std::vector<vouch::draft>&)> before;
    std::function<void(postgres::transaction&, const std::vector<vouch::draft>&, const vouch::claim_request&)> act;
    vouch::state when_done = vouch::state::pending; ///< of the first entry
};

std::vector<scenario> scenarios() {
    using drafts = std::vector<vouch::draft>;
    const auto one = [](std::uint64_t n) { return drafts{long_draft(n)}; };
    const auto in_lane = [](std::uint64_t n) {
        drafts out{long_draft(n)};
        out.front().lane = "a lane with a name that needs an allocation " + std::to_string(n);
        return out;
    };
    const auto two = [](std::uint64_t n) { return drafts{long_draft(n), long_draft(n + 500'000)}; };
    const auto not_prepared = [](postgres::store&, const drafts&) {};
    const auto stored = [](postgres::store& store, const drafts& d) { vouch::enqueue(store, d, t0); };
    const auto nothing = [](postgres::transaction&, const drafts&) {};
    const auto enqueued = [](postgres::transaction& tx, const drafts& d) { std::ignore = tx.enqueue(d, t0); };
    const auto enqueue = [](postgres::transaction& tx, const drafts& d, const auto&) {
        std::ignore = tx.enqueue_and_commit(d, t0);
    };
    const auto claim = [](postgres::transaction& tx, const drafts&, const vouch::claim_request& request) {
        std::ignore = tx.claim_and_commit(request);
    };
    const auto claimed = [](postgres::store& store, const drafts& d) {
        vouch::enqueue(store, d, t0);
        auto only = claim_of(d.front());
        only.only = d.front().id;
        REQUIRE(vouch::claim(store, only).size() == 1);
    };
    const auto settle = [](postgres::transaction& tx, const drafts& d, const vouch::claim_request& request) {
        const std::array settles{vouch::settle{{d.front().id, 1}, vouch::succeed{"short"}}};
        std::ignore = tx.settle_claim_and_commit(settles, t0, request);
    };
    const auto commit = [](postgres::transaction& tx, const drafts&, const auto&) { tx.commit(); };
    return {
        {"enqueue_and_commit of one", one, not_prepared, nothing, enqueue},
        {"enqueue_and_commit of one with a lane", in_lane, not_prepared, nothing, enqueue},
        {"enqueue_and_commit of two", two, not_prepared, nothing, enqueue},
        {"claim_and_commit", one, stored, nothing, claim, vouch::state::claimed},
        {"settle_claim_and_commit", two, claimed, nothing, settle, vouch::state::succeeded},
        {"settle_claim_and_commit with a lane", in_lane, claimed, nothing, settle, vouch::state::succeeded},
        {"commit", one, not_prepared, enqueued, commit},
    };
}

/// Ends what the last round has left, so that the next claim finds its own entry only.
void end_all(postgres::store& store) {
    vouch::transact(store, [&](auto& tx) {
        for (const auto& e : tx.list(vouch::query::live(long_draft(1).queue))) {
            if (e.state == vouch::state::claimed) {
                std::ignore = settle_in(tx, ticket_of(e), vouch::succeed{}, t0);
            } else {
                std::ignore = tx.cancel(e.id, "over", t0);
            }
        }
    });
}

} // namespace

TEST_CASE("postgres memory: whichever allocation of a call that commits fails, what is said of it is true") {
    for (const bool prepare : {true, false}) {
        postgres::store store(conninfo(), {.prefix = fresh_prefix(), .prepare = prepare});
        std::uint64_t number = 0;
        for (const auto& s : scenarios()) {
            CAPTURE(prepare, s.name);
            ending ended{};
            long n = 0;
            do {
                const auto drafts = s.drafts(++number);
                const auto request = claim_of(drafts.front());
                s.prepare(store, drafts);
                {
                    auto tx = store.begin();
                    s.before(tx, drafts);
                    ended = end_of_starved(++n, [&] { s.act(tx, drafts, request); });
                }
                CAPTURE(n);
                CHECK(ended != ending::other_exception);
                if (ended == ending::undone) {
                    std::this_thread::sleep_for(5ms); // what was sent may still be on its way
                }
                const auto e = store.find(id_of(number));
                const bool is_done = e && e->state == s.when_done;
                CHECK((ended == ending::in_doubt || is_done == (ended == ending::done)));
                CHECK((!e || is_terminal(e->state) || store.next_due(e->queue))); // it is not stuck
                end_all(store);
            } while (ended != ending::done);
            CHECK(n > 3); // some were tried
        }
    }
}

} // namespace postgres_memory_test
