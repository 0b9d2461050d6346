// SPDX-License-Identifier: MIT
// Processes: a child of the program works with a location and ends by `_exit` or SIGKILL, or two of them work at the same
// time. What counts is what another process then finds.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/threads.hpp>
#include <vouch/conformance/detail/processes/acknowledged_bytes.hpp>
#include <vouch/conformance/detail/processes/child_process.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/threads/mixed_worker.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace processes_checks {

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)

/// A chain of transactions. The n-th enqueues two entries, claims those of the one before, and ends those of the one
/// before that. After each call it calls `between`.
template <class Between>
void transaction_of_chain(any_store& store, std::uint64_t n, const Between& between) {
    repeat_after_conflict([&] {
        auto tx = store.begin();
        between();
        tx.enqueue(std::vector{numbered_draft(2 * n, {.key = "k" + std::to_string(n)}), numbered_draft(2 * n + 1)},
                   at(0));
        between();
        for (const auto which : {2 * n - 2, 2 * n - 1}) {
            if (n > 1) {
                auto one = numbered_claim(n, 1);
                one.only = id_of(which);
                trial::equal(tx.claim(one).size(), std::size_t{1}, "an entry of the transaction before, claimed");
                between();
            }
        }
        for (const auto which : {2 * n - 4, 2 * n - 3}) {
            if (n > 2) {
                const ticket held{id_of(which), 1};
                trial::equal(settle_in(tx, held, succeed{mark_of(held)}, at(0)).verdict, verdict::applied, "settled");
                between();
            }
        }
        tx.commit();
    });
}

/// The entries after n transactions, without sequences.
[[nodiscard]] inline std::vector<entry> chain_of(std::uint64_t n) {
    std::vector<entry> out;
    for (std::uint64_t i = 2; i < 2 * n + 2; ++i) {
        const auto made = i / 2;
        auto& e =
            out.emplace_back(born(numbered_draft(i, {.key = i % 2 == 0 ? "k" + std::to_string(made) : ""}), at(0)));
        if (made < n) {
            apply(e, numbered_claim(made + 1, 1));
        }
        if (made + 1 < n) {
            static_cast<void>(apply(e, vouch::settle{ticket_of(e), succeed{mark_of(ticket_of(e))}}, at(0)));
        }
    }
    return out;
}

/// Requires that exactly the first `acknowledged` transactions are stored, or one more if `maybe_more`. Returns how many.
inline std::uint64_t require_chain(const any_store& store, std::uint64_t acknowledged, bool maybe_more) {
    auto found = store.list({.queue = "q", .limit = 10'000, .payloads = true});
    for (auto& e : found) {
        e.sequence = 0;
    }
    if (maybe_more && found == chain_of(acknowledged + 1)) {
        return acknowledged + 1;
    }
    trial::equal(found, chain_of(acknowledged),
                 maybe_more ? "the entries after the death of a process: all that it was told are committed, and the "
                              "next transaction as a whole or not at all"
                            : "the entries after the end of a process: all that it has committed, and nothing else");
    return acknowledged;
}

/// Runs the chain in a child until `ends` ends it, and then checks what is stored and goes on with it.
template <class Child>
void after_the_end_of(trial& t, bool maybe_more, const Child& in_child, std::uint64_t kill_after = 0) {
    const auto p = t.fresh_location();
    std::uint64_t acknowledged = 0;
    {
        child_process child(t, [&](const channel& parent) {
            auto store = t.context().open(p);
            in_child(store, [&](std::uint64_t n) { parent.send(std::to_string(n)); });
        });
        while (const auto said = child.talk().receive()) {
            if (said->find_first_not_of("0123456789") != std::string::npos) {
                trial::fail("a process works with the store", *said, "no failure");
            }
            acknowledged = std::stoull(*said);
            if (acknowledged == kill_after) {
                child.kill(); // at any point of what it does next
            }
        }
        child.join();
    }
    {
        auto store = t.context().open(p);
        const auto stored = require_chain(store, acknowledged, maybe_more);
        transaction_of_chain(store, stored + 1, [] {});
        require_chain(store, stored + 1, false);
    }
    t.abandon(p);
}

inline void stored_at_exit(trial& t) {
    for (const std::uint64_t transactions : {1U, 4U}) {
        after_the_end_of(t, false, [&](any_store& store, const auto& acknowledge) {
            for (std::uint64_t n = 1; n <= transactions; ++n) {
                transaction_of_chain(store, n, [] {});
                acknowledge(n);
            }
            repeat_after_conflict([&] {
                auto open = store.begin();
                open.enqueue(std::vector{numbered_draft(1'000)}, at(0));
                _exit(0); // with a handle and a transaction open
            });
        });
    }
}

[[noreturn]] inline void die_now() {
    ::kill(getpid(), SIGKILL);
    std::abort(); // not reached
}

inline void stored_at_death(trial& t) {
    constexpr std::size_t deaths = 4; // of each kind
    const auto rounds = deaths * threads_checks::rounds_of(t);
    for (std::size_t i = 0; i < rounds; ++i) { // between two calls
        auto left = 1 + t.random().below(24);
        after_the_end_of(t, true, [&](any_store& store, const auto& acknowledge) {
            for (std::uint64_t n = 1;; ++n) {
                transaction_of_chain(store, n, [&] { --left == 0 ? die_now() : static_cast<void>(0); });
                acknowledge(n);
            }
        });
    }
    for (std::size_t i = 0; t.hooks().seam && i < rounds; ++i) { // at a seam
        auto left = 1 + t.random().below(60);
        after_the_end_of(t, true, [&](any_store& store, const auto& acknowledge) {
            t.hooks().seam([&](std::string_view) { --left == 0 ? die_now() : static_cast<void>(0); });
            for (std::uint64_t n = 1; n < 40; ++n) {
                transaction_of_chain(store, n, [] {});
                acknowledge(n);
            }
        });
    }
    for (std::size_t i = 0; i < rounds; ++i) { // anywhere
        const auto kill_after = 1 + t.random().below(6);
        after_the_end_of(
            t, true,
            [&](any_store& store, const auto& acknowledge) {
                for (std::uint64_t n = 1; n < 10'000; ++n) {
                    transaction_of_chain(store, n, [] {});
                    acknowledge(n);
                }
            },
            kill_after);
    }
}

/// Starts a child that commits the entry of each number it receives, and answers with the entries it then sees.
template <class Use>
void beside_another(trial& t, const Use& use) {
    const auto p = t.fresh_location();
    {
        child_process child(t, [&](const channel& parent) {
            auto store = t.context().open(p);
            while (const auto said = parent.receive()) {
                const auto d = draft_of(std::stoull(*said));
                commit_freely(store, [&](auto& tx) { tx.enqueue(std::span(&d, 1), at(0)); });
                parent.send(show(ids_of(store.list(query::all("q")))));
            }
        });
        const auto store_there = [&](std::uint64_t n) {
            child.talk().send(std::to_string(n));
            return child.talk().receive().value_or("no answer");
        };
        trial::equal(store_there(1), show(std::vector{id_of(1)}), "what another process sees of its own commit");
        auto store = t.context().open(p); // only now: a handle must not be open during the fork
        use(store, store_there);
    }
    t.abandon(p);
}

inline void see_each_other(trial& t) {
    if (!t.can().shared) {
        return;
    }
    beside_another(t, [&](any_store& store, const auto& store_there) {
        std::vector<id> all{id_of(1)};
        for (std::uint64_t n = 2; n < 12; n += 2) {
            t.equal(ids_of(store.list(query::all("q"))), all,
                    "the commits of another process, when they have returned");
            const auto mine = draft_of(n);
            commit_freely(store, [&](auto& tx) { tx.enqueue(std::span(&mine, 1), at(0)); });
            all.insert(all.end(), {id_of(n), id_of(n + 1)});
            t.equal(store_there(n + 1), show(all), "what another process sees of the commits of this one");
        }
        std::vector<entry> claimed;
        commit_freely(store, [&](auto& tx) { claimed = tx.claim(request(at(0))); });
        t.equal(ids_of(claimed), all, "the entries of both processes, claimed");
    });
}

inline void wake_each_other(trial& t) {
    if (!t.can().shared || !t.can().wakes) {
        return;
    }
    beside_another(t, [&](any_store& store, const auto& store_there) {
        constexpr std::chrono::seconds patience{5};
        for (std::uint64_t n = 2; n < 4; ++n) {
            const auto seen = store.wakes("q");
            static_cast<void>(store_there(n));
            t.expect(store.wait("q", seen, patience, {}) != seen,
                     "a wait ends when another process has committed work");
        }
    });
}

inline void work_together(trial& t) {
    if (!t.can().shared) {
        return;
    }
    constexpr std::size_t count = 2;
    constexpr std::size_t steps = 60;
    for (auto left = threads_checks::rounds_of(t); left > 0; --left) {
        const auto p = t.fresh_location();
        {
            shared_object<mixed_state> shared;
            shared_object<start_line> line(count);
            shared->storing = shared->stored = threads_checks::members(t.can()).size();
            const auto seed = t.random().roll();
            std::vector<std::unique_ptr<child_process>> children;
            for (std::size_t n = 0; n < count; ++n) {
                children.push_back(std::make_unique<child_process>(t, [&, n](const channel& parent) {
                    auto store = t.context().open(p);
                    if (n == 0) {
                        commit_freely(store, [&](auto& tx) { tx.enqueue(threads_checks::members(t.can()), at(0)); });
                    }
                    const yielding_seam seam(t);
                    mixed_worker one(store, t.can(), *shared, n, seed);
                    for (std::size_t i = 0; i < steps && (i % 8 != 0 || line->wait()); ++i) {
                        one.step();
                    }
                    one.finish();
                    parent.send(bytes_of(one.acknowledgements()));
                }));
            }
            const auto messages = answers_of(children, [&] { line->give_up(); });
            acknowledged all;
            for (std::size_t n = 0; n < count; ++n) {
                children[n]->join(messages[n]);
                all.add(acknowledged_in(messages[n]));
            }
            auto store = t.context().open(p);
            mixed_worker last(store, t.can(), *shared, count, seed);
            threads_checks::end_all(t, last, std::move(all), store);
        }
        t.abandon(p);
    }
}

#else

[[noreturn]] inline void not_here(trial&) { throw untested{"the system has no fork"}; }
inline constexpr auto stored_at_exit = not_here;
inline constexpr auto stored_at_death = not_here;
inline constexpr auto see_each_other = not_here;
inline constexpr auto work_together = not_here;
inline constexpr auto wake_each_other = not_here;

#endif

} // namespace processes_checks

inline constexpr std::array processes{
    clause{"PROC-01", layer::processes, level::may, needs::durable,
           "What a process has committed is stored for others when the process ends and destroys nothing.",
           processes_checks::stored_at_exit},
    clause{"PROC-02", layer::processes, level::may, needs::durable,
           "If a process is killed at any point, what it was told is committed is stored, and an unfinished "
           "transaction is stored as a whole or not at all.",
           processes_checks::stored_at_death},
    clause{"PROC-03", layer::processes, level::may, needs::durable,
           "If the store is shared, processes that use one location see each other's commits as soon as they return.",
           processes_checks::see_each_other},
    clause{"PROC-04", layer::processes, level::may, needs::durable,
           "If the store is shared, processes may use one location at the same time, as threads may use one handle.",
           processes_checks::work_together},
    clause{"PROC-05", layer::processes, level::may, needs::durable,
           "If the store is shared and has wakes, a wait ends when another process has committed work.",
           processes_checks::wake_each_other},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
