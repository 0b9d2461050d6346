// SPDX-License-Identifier: MIT
// Races of the verbs, of claims, and of the ends of transactions. See races.cpp.
#pragma once

#include <array>

#include "scene.hpp"

namespace races {

inline const std::array verbs{
    race{defect::settle_reads_unlocked, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(b);
             s.settle(a, 1, vouch::succeed{});
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "claim [1]; settle conflict; commit done; commit closed; 1 is claimed",
         "claim [1]; settle applied; commit done; commit done; 1 is succeeded"},
    race{defect::settle_locks_the_first_of_a_batch, two,
         [](scene& s, transaction& a, transaction& b) {
             s.held(1, 1000);
             s.held(2, 10);
             s.claim(b);
             s.settle_both(a, vouch::succeed{});
             s.commit(b);
             s.commit(a);
             s.show(2);
         },
         "claim [2]; settle conflict; commit done; commit closed; 2 is claimed",
         "claim [2]; settle applied, applied; commit done; commit done; 2 is succeeded"},
    race{defect::settle_reads_before_its_lock, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(b);
             s.during([&] { s.settle(a, 1, vouch::succeed{}); }, [&] { s.commit(b); });
             s.commit(a);
             s.show(1);
         },
         "claim [1]; commit done; settle stale; commit done; 1 is claimed",
         "claim [1]; commit done; settle applied; commit done; 1 is succeeded"},
    race{defect::extend_reads_unlocked, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(b);
             s.extend(a, 1);
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "claim [1]; extend conflict; commit done; commit closed; 1 is claimed",
         "claim [1]; extend applied; commit done; commit done; 1 is claimed"},
    race{defect::extend_reads_before_its_lock, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(b);
             s.during([&] { s.extend(a, 1); }, [&] { s.commit(b); });
             s.commit(a);
             s.show(1);
         },
         "claim [1]; commit done; extend stale; commit done; 1 is claimed",
         "claim [1]; commit done; extend applied; commit done; 1 is claimed"},
    race{defect::nudge_reads_unlocked, running,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(b, 1, vouch::succeed{});
             s.nudge(a, 1);
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "settle applied; nudge conflict; commit done; commit closed; 1 is succeeded",
         "settle applied; nudge applied; commit done; commit done; 1 is claimed and woken"},
    race{defect::nudge_reads_before_its_lock, running,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(b, 1, vouch::succeed{});
             s.during([&] { s.nudge(a, 1); }, [&] { s.commit(b); });
             s.commit(a);
             s.show(1);
         },
         "settle applied; commit done; nudge stale; commit done; 1 is succeeded",
         "settle applied; commit done; nudge applied; commit done; 1 is claimed and woken"},
    race{defect::cancel_reads_unlocked, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.extend(b, 1);
             s.cancel(a, 1);
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "extend applied; cancel conflict; commit done; commit closed; 1 is claimed",
         "extend applied; cancel applied; commit done; commit done; 1 is dead"},
    race{defect::cancel_reads_before_its_lock, lapsed,
         [](scene& s, transaction& a, transaction& b) {
             s.extend(b, 1);
             s.during([&] { s.cancel(a, 1); }, [&] { s.commit(b); });
             s.commit(a);
             s.show(1);
         },
         "extend applied; commit done; cancel stale; commit done; 1 is claimed",
         "extend applied; commit done; cancel applied; commit done; 1 is dead"},
    race{defect::snapshot_is_older_than_the_locks, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(b);
             s.commit(b);
             s.cancel(a, 1);
             s.commit(a);
             s.show(1);
         },
         "claim [1]; commit done; cancel stale; commit done; 1 is claimed",
         "claim [1]; commit done; cancel applied; commit done; 1 is dead"},
    race{defect::repeated_is_unlocked, one,
         [](scene& s, transaction& a, transaction& b) {
             s.nudge(a, 1);
             s.claim(b);
             s.commit(b);
             s.nudge(a, 1);
         },
         "nudge repeated; claim []; commit done; nudge repeated",
         "nudge repeated; claim [1]; commit done; nudge applied"},
    race{defect::locks_end_with_the_operation, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a);
             s.claim(b);
             s.commit(a);
             s.commit(b);
         },
         "claim [1]; claim []; commit done; commit done", "claim [1]; claim [1]; commit done; commit done"},
    race{defect::claim_locks_nothing, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a);
             s.claim(b);
             s.commit(a);
             s.commit(b);
         },
         "claim [1]; claim []; commit done; commit done", "claim [1]; claim [1]; commit done; commit done"},
    race{defect::claim_takes_locked_rows, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a);
             s.claim(b);
             s.commit(a);
             s.commit(b);
         },
         "claim [1]; claim []; commit done; commit done", "claim [1]; claim [1]; commit done; commit done"},
    race{defect::claim_selects_then_locks, one,
         [](scene& s, transaction& a, transaction& b) {
             s.during([&] { s.claim(b); },
                      [&] {
                          s.claim(a);
                          s.commit(a);
                      });
             s.commit(b);
         },
         "claim [1]; claim []; commit done; commit done", "claim [1]; commit done; claim [1]; commit done"},
    race{defect::claim_stops_at_a_locked_row, two,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a, 1);
             s.claim(b);
         },
         "claim [1]; claim [2]", "claim [1]; claim []"},
    race{defect::claim_counts_locked_rows, two,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a, 1);
             s.claim(b, 1);
         },
         "claim [1]; claim [2]", "claim [1]; claim []"},
    race{defect::claim_takes_turns, two,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a, 1);
             s.claim(b);
         },
         "claim [1]; claim [2]", "claim [1]; claim []"},
    race{defect::claim_skips_rolled_back, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a);
             a = s.begin();
             s.claim(b);
         },
         "claim [1]; claim [1]", "claim [1]; claim []"},
    race{defect::commit_installs_row_by_row, nothing,
         [](scene& s, transaction& a, transaction&) {
             s.enqueue(a, {.id = id_of(1)});
             s.enqueue(a, {.id = id_of(2)});
             s.during([&] { s.commit(a); },
                      [&] {
                          s.show(1);
                          s.show(2);
                      },
                      2);
         },
         "enqueue inserted; enqueue inserted; commit done; 1 is pending; 2 is pending",
         "enqueue inserted; enqueue inserted; 1 is pending; 2 is absent; commit done"},
    race{defect::commit_releases_before_it_installs, one,
         [](scene& s, transaction& a, transaction& b) {
             s.claim(a);
             s.during([&] { s.commit(a); },
                      [&] {
                          s.claim(b);
                          s.commit(b);
                      },
                      2);
         },
         "claim [1]; commit done; claim []; commit done", "claim [1]; claim [1]; commit done; commit done"},
    race{defect::deadlock_ends_both, three,
         [](scene& s, transaction& a, transaction& b) {
             s.nudge(a, 1);
             s.nudge(b, 2);
             s.nudge(a, 2);
             s.nudge(b, 3);
             s.commit(b);
         },
         "nudge applied; nudge applied; nudge conflict; nudge applied; commit done",
         "nudge applied; nudge applied; nudge conflict; nudge conflict; commit closed"},
    race{defect::conflict_leaks_its_locks, three,
         [](scene& s, transaction& a, transaction& b) {
             s.nudge(a, 1);
             s.nudge(b, 2);
             s.nudge(a, 2);
             s.commit(b);
             s.drain();
         },
         "nudge applied; nudge applied; nudge conflict; commit done; claim [2 1 3]",
         "nudge applied; nudge applied; nudge conflict; commit done; claim [2 3]"},
};

} // namespace races
