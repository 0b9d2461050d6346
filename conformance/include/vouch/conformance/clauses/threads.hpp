// SPDX-License-Identifier: MIT
// Free threads: several threads use a store at the same time, and nothing orders them but the store itself. What is
// checked holds in every order. Compile the program with -fsanitize=thread to see races that happen to do no harm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/threads/free_threads.hpp>
#include <vouch/conformance/detail/threads/mixed_worker.hpp>
#include <vouch/conformance/detail/threads/numbered_work.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace threads_checks {

inline constexpr std::size_t threads_count = 4;

/// How often a check of this layer is run.
[[nodiscard]] inline std::size_t rounds_of(const trial& t) {
    switch (t.options().profile) {
    case profile::quick: return 1;
    case profile::standard: break;
    case profile::soak: return 1'000;
    }
    return 10;
}

/// The members of two groups, or of none.
inline std::vector<draft> members(const vouch::capabilities& can) {
    std::vector<draft> out;
    for (std::uint64_t n = 1; n <= 6; ++n) {
        out.push_back(numbered_draft(n, {.group = !can.groups ? "" : (n <= 3 ? "g" : "h")}));
    }
    return out;
}

/// Requires that everything can be ended, and that the store then has what all commits imply.
inline void end_all(trial& t, mixed_worker& last, acknowledged all, const any_store& store) {
    last.drain();
    all.add({.stored = members(t.can())});
    all.add(last.acknowledgements());
    require_implied(store, all);
    t.equal(store.counts("q").live(), std::size_t{0},
            "live entries after everything that is due was claimed and ended");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when no entry is live");
    std::sort(all.groups.begin(), all.groups.end());
    t.equal(all.groups, t.can().groups ? std::vector<std::string>{"g", "h"} : std::vector<std::string>{},
            "the groups whose completion a settle has reported");
}

/// All threads do a bit of everything; `readers` of them only read while the others write.
inline void mix(trial& t, bool separate, std::size_t readers) {
    const std::size_t steps = readers > 0 ? 80 : 150;
    for (auto left = rounds_of(t); left > 0; --left) {
        const auto p = t.fresh_location();
        {
            auto handles = handles_of(t, p, threads_count, separate);
            commit_freely(handles.front(), [&](auto& tx) { tx.enqueue(members(t.can()), at(0)); });
            mixed_state shared;
            shared.storing = shared.stored = members(t.can()).size();
            std::vector<std::unique_ptr<mixed_worker>> workers;
            const auto seed = t.random().roll();
            for (std::size_t n = 0; n < threads_count; ++n) {
                workers.push_back(std::make_unique<mixed_worker>(handles[n], t.can(), shared, n, seed));
            }
            run_freely(t, threads_count, [&](std::size_t n, start_line& line) {
                const bool writes = n >= readers;
                for (std::size_t i = 0; i < steps && !line.is_broken(); ++i) {
                    writes ? workers[n]->step() : workers[n]->read();
                }
                workers[n]->finish();
            });
            mixed_worker last(handles.front(), t.can(), shared, threads_count, seed);
            acknowledged all;
            for (const auto& w : workers) {
                all.add(w->acknowledgements());
            }
            end_all(t, last, std::move(all), handles.front());
        }
        t.abandon(p);
    }
}

inline void one_handle(trial& t) { mix(t, false, 0); }
inline void several_handles(trial& t) { mix(t, true, 0); }
inline void reads_beside_writes(trial& t) { mix(t, t.can().shared, 2); }

/// Runs `round(n, i, store)` on all threads, `rounds` times: in each round they start together. The first thread calls
/// `before(i)` and `after(i)` while the others wait.
template <class Before, class Round, class After>
void in_rounds(trial& t, const Before& before, const Round& round, const After& after) {
    constexpr std::size_t rounds_each = 20;
    const auto p = t.fresh_location();
    {
        auto handles = handles_of(t, p, threads_count, t.can().shared);
        run_freely(t, threads_count, [&](std::size_t n, start_line& line) {
            for (std::size_t i = 0; i < rounds_each * rounds_of(t); ++i) {
                if (n == 0) {
                    before(i, handles[n]);
                }
                if (!line.wait()) {
                    return;
                }
                round(n, i, handles[n]);
                if (!line.wait()) {
                    return;
                }
                if (n == 0) {
                    after(i, handles[n]);
                }
            }
        });
    }
    t.abandon(p);
}

inline void key_once(trial& t) {
    std::array<receipt, threads_count> said{};
    in_rounds(
        t, [](std::size_t, any_store&) {},
        [&](std::size_t n, std::size_t i, any_store& store) {
            const auto d = draft_of(1 + i * threads_count + n, {.key = "k" + std::to_string(i)});
            commit_freely(store, [&](auto& tx) { said[n] = tx.enqueue(std::span(&d, 1), at(0)).front(); });
        },
        [&](std::size_t i, any_store& store) {
            const auto stored = store.list(query::keyed("q", "k" + std::to_string(i)));
            trial::equal(stored.size(), std::size_t{1},
                         "entries with a key that all threads enqueued at the same time");
            std::size_t inserted = 0;
            for (const auto& r : said) {
                trial::equal(r.id, stored.front().id, "the entry that each thread was told of");
                inserted += r.what == receipt::kind::inserted ? 1U : 0U;
            }
            trial::equal(inserted, std::size_t{1}, "threads that were told that their draft was inserted");
        });
}

inline void group_once(trial& t) {
    std::vector<entry> claimed;
    std::array<settlement, threads_count> said{};
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(threads_count, draft_of(1 + i * threads_count, {.group = "g" + std::to_string(i)})),
                           at(0));
                claimed = tx.claim(request(at(0)));
            });
            trial::equal(claimed.size(), threads_count, "members claimed");
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            commit_freely(store, [&](auto& tx) { said[n] = settle_in(tx, ticket_of(claimed[n]), succeed{}, at(0)); });
        },
        [&](std::size_t, any_store&) {
            const auto completed =
                std::count_if(said.begin(), said.end(), [](const settlement& s) { return s.group_completed; });
            trial::equal(completed, 1, "settles that report the completion, of all members ended at the same time");
        });
}

inline void lane_moves_on(trial& t) {
    std::vector<entry> head;
    std::array<std::vector<entry>, threads_count> claimed;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(2, draft_of(1 + 10 * i, {.lane = "lane"})), at(0));
                head = tx.claim(request(at(0)));
            });
            trial::equal(head.size(), std::size_t{1}, "entries claimed of a lane");
        },
        [&](std::size_t n, std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                claimed[n].clear();
                if (n == 0) {
                    settle_in(tx, ticket_of(head.front()), succeed{}, at(0));
                } else if (n == 1) {
                    tx.enqueue(numbered(1, draft_of(3 + 10 * i, {.lane = "lane"})), at(0));
                } else {
                    claimed[n] = tx.claim(request(at(0)));
                }
            });
        },
        [&](std::size_t i, any_store& store) {
            std::vector<entry> held;
            for (const auto& some : claimed) {
                held.insert(held.end(), some.begin(), some.end());
            }
            trial::expect(held.size() <= 1, "at most one entry of a lane is claimed at a time");
            list_of order;
            do {
                for (const auto& e : held) {
                    order.push_back(e.id.low - 10 * i);
                    commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(e), succeed{}, at(0)); });
                }
                commit_freely(store, [&](auto& tx) { held = tx.claim(request(at(0))); });
            } while (!held.empty());
            trial::equal(order, list_of{2, 3},
                         "the rest of a lane, after its head ended while another entry was enqueued");
        });
}

/// A parent's claim that does not see the end of its child is nudged by that end.
inline void wake_is_kept(trial& t) {
    std::vector<entry> child;
    std::vector<entry> parent;
    bool saw_child_live = false;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            const std::vector<draft> drafts{draft_of(1 + 2 * i),
                                            draft_of(2 + 2 * i, {.queue = "r", .parent = id_of(1 + 2 * i)})};
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(drafts, at(0));
                child = tx.claim(request(at(0), {.queue = "r"}));
            });
            trial::equal(child.size(), std::size_t{1}, "children claimed");
            parent.clear();
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            if (n == 0) {
                commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(child.front()), succeed{}, at(1)); });
            } else if (n == 1) {
                commit_freely(store, [&](auto& tx) {
                    parent = tx.claim(request(at(1)));
                    const auto seen = tx.find(child.front().id);
                    saw_child_live = seen && is_live(seen->state);
                });
            }
        },
        [&](std::size_t i, any_store& store) {
            const auto now = get(store, 1 + 2 * i);
            trial::expect(parent.empty() || !saw_child_live || now.woken,
                          "a parent that was claimed while its child was live has a wake mark after the child's end");
            commit_freely(store, [&](auto& tx) {
                if (parent.empty()) {
                    parent = tx.claim(request(at(1)));
                }
            });
            trial::equal(parent.size(), std::size_t{1}, "parents claimed");
            commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(parent.front()), succeed{}, at(1)); });
        });
}

/// A transaction is begun on one thread, used on two others and ended on a fourth. All four exist at the same time,
/// because the system may give a new thread the id of one that has ended.
inline void moves_between_threads(trial& t) {
    for (const bool commits : {true, false}) {
        const auto p = t.fresh_location();
        {
            auto store = t.context().open(p);
            const std::vector<draft> drafts{draft_of(1), draft_of(2)};
            repeat_after_conflict([&] {
                std::unique_ptr<any_transaction> tx;
                on_another_thread([&] {
                    tx = std::make_unique<any_transaction>(store.begin());
                    on_another_thread([&] {
                        tx->enqueue(drafts, at(0));
                        on_another_thread([&] {
                            t.equal(numbers(tx->list(query::all("q"))), list_of{1, 2}, "written on another thread");
                            t.equal(tx->claim(request(at(0))).size(), std::size_t{2}, "claimed on a third thread");
                        });
                    });
                });
                if (commits) {
                    tx->commit();
                }
                tx.reset();
            });
            t.equal(store.counts("q")[state::claimed], std::size_t{commits ? 2U : 0U},
                    commits ? "committed on another thread than begun" : "rolled back on another thread than begun");
            on_another_thread([&] { put(store, draft_of(3)); });
            t.expect(store.find(id_of(3)).has_value(), "a transaction after one that ended on another thread");
        }
        t.abandon(p);
    }
}

} // namespace threads_checks

inline constexpr std::array threads{
    clause{
        "THREAD-01", layer::threads, level::must, needs::nothing,
        "Any number of threads may use one handle at the same time: every commit that has returned takes effect once, "
        "as a whole.",
        threads_checks::one_handle},
    clause{"THREAD-02", layer::threads, level::may, needs::shared,
           "Threads may use several handles of one location at the same time, as they may use one.",
           threads_checks::several_handles},
    clause{
        "THREAD-03", layer::threads, level::must, needs::nothing,
        "Reads on the store while other threads write see entries as commits left them, and transactions as a whole.",
        threads_checks::reads_beside_writes},
    clause{"THREAD-04", layer::threads, level::must, needs::nothing,
           "A key that several threads enqueue at the same time is stored once, and all are told of the same entry.",
           threads_checks::key_once},
    clause{"THREAD-05", layer::threads, level::may, needs::groups,
           "If several threads end the last members of a group at the same time, exactly one settle reports its "
           "completion.",
           threads_checks::group_once},
    clause{"THREAD-06", layer::threads, level::may, needs::lanes,
           "A lane moves on when its head ends while other threads enqueue to the lane and claim from it.",
           threads_checks::lane_moves_on},
    clause{"THREAD-07", layer::threads, level::must, needs::nothing,
           "A child's end wakes its parent even if another thread claims the parent at the same time.",
           threads_checks::wake_is_kept},
    clause{"THREAD-08", layer::threads, level::must, needs::nothing,
           "A transaction can be begun, used and ended on different threads, by one thread at a time.",
           threads_checks::moves_between_threads},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
