// SPDX-License-Identifier: MIT
// Races over what an end reaches: parents, lanes and groups. See races.cpp.
#pragma once

#include <array>

#include "scene.hpp"

namespace races {

inline const std::array relations{
    race{defect::parent_is_unlocked, claimed_parent,
         [](scene& s, transaction& a, transaction& b) {
             s.cancel(a, 2);
             s.settle(b, 1, vouch::retry{"e", at(100)});
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "cancel applied; settle conflict; commit closed; commit done; 1 is claimed and woken",
         "cancel applied; settle applied; commit done; commit done; 1 is claimed and woken"},
    race{defect::parent_is_unlocked_when_repeated, due_parent,
         [](scene& s, transaction& a, transaction& b) {
             s.cancel(a, 2);
             s.claim(b);
             s.commit(b);
             s.commit(a);
             s.show(1);
         },
         "cancel applied; claim []; commit done; commit done; 1 is pending",
         "cancel applied; claim [1]; commit done; commit done; 1 is claimed"},
    race{defect::parent_is_read_before_its_lock, claimed_parent,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(b, 1, vouch::retry{"e", at(100)});
             s.during([&] { s.cancel(a, 2); }, [&] { s.commit(b); }, 2);
             s.commit(a);
             s.show(1);
         },
         "settle applied; commit done; cancel applied; commit done; 1 is retrying",
         "settle applied; commit done; cancel applied; commit done; 1 is claimed and woken"},
    race{defect::lane_is_unlocked_in_settle, claimed_head,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .lane = "x"});
             s.settle(b, 1, vouch::succeed{});
             s.commit(b);
             s.commit(a);
             s.drain();
         },
         "enqueue inserted; settle conflict; commit closed; commit done; claim [1]",
         "enqueue inserted; settle applied; commit done; commit done; claim []"},
    race{defect::lane_is_unlocked_in_cancel, waiting_head,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .lane = "x"});
             s.cancel(b, 1);
             s.commit(b);
             s.commit(a);
             s.drain();
         },
         "enqueue inserted; cancel conflict; commit closed; commit done; claim [1]",
         "enqueue inserted; cancel applied; commit done; commit done; claim []"},
    race{defect::lane_is_unlocked_in_enqueue, claimed_head,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(b, 1, vouch::succeed{});
             s.enqueue(a, {.id = id_of(2), .lane = "x"});
             s.commit(b);
             s.commit(a);
             s.drain();
         },
         "settle applied; enqueue conflict; commit done; commit closed; claim []",
         "settle applied; enqueue inserted; commit done; commit done; claim []"},
    race{defect::lane_is_read_before_its_lock, claimed_head,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(b, 1, vouch::succeed{});
             s.during([&] { s.enqueue(a, {.id = id_of(2), .lane = "x"}); }, [&] { s.commit(b); }, 2);
             s.commit(a);
             s.drain();
         },
         "settle applied; commit done; enqueue inserted; commit done; claim [2]",
         "settle applied; commit done; enqueue inserted; commit done; claim []"},
    race{defect::next_of_lane_is_unlocked, lane_of_two,
         [](scene& s, transaction& a, transaction& b) {
             s.nudge(a, 2);
             s.settle(b, 1, vouch::succeed{});
             s.commit(b);
             s.commit(a);
             s.drain();
         },
         "nudge applied; settle conflict; commit closed; commit done; claim [1]",
         "nudge applied; settle applied; commit done; commit done; claim []"},
    race{defect::next_of_lane_is_read_before_its_lock, lane_of_two,
         [](scene& s, transaction& a, transaction& b) {
             s.nudge(a, 2);
             s.during([&] { s.settle(b, 1, vouch::succeed{}); }, [&] { s.commit(a); }, 3);
             s.commit(b);
             s.show(2);
         },
         "nudge applied; commit done; settle applied; commit done; 2 is pending",
         "nudge applied; commit done; settle applied; commit done; 2 is pending and due later"},
    race{defect::next_of_lane_is_chosen_before_the_lock, lane_of_three,
         [](scene& s, transaction& a, transaction& b) {
             s.cancel(a, 2);
             s.during([&] { s.settle(b, 1, vouch::succeed{}); }, [&] { s.commit(a); }, s.has(defect::none) ? 1 : 2);
             s.commit(b);
             s.drain();
         },
         "cancel applied; commit done; settle applied; commit done; claim [3]",
         "cancel applied; commit done; settle applied; commit done; claim []"},
    race{defect::sequence_is_drawn_before_the_lane_lock, nothing,
         [](scene& s, transaction& a, transaction& b) {
             s.during([&] { s.enqueue(a, {.id = id_of(1), .lane = "x"}); },
                      [&] {
                          s.enqueue(b, {.id = id_of(2), .lane = "x"});
                          s.commit(b);
                      });
             s.commit(a);
             s.show_order();
             s.drain();
         },
         "enqueue inserted; commit done; enqueue inserted; commit done; in sequence [2 1]; claim [2]",
         "enqueue inserted; commit done; enqueue inserted; commit done; in sequence [1 2]; claim [2]"},
    race{defect::group_is_unlocked, group_of_two,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(a, 1, vouch::succeed{});
             s.settle(b, 2, vouch::succeed{});
             s.commit(a);
             s.commit(b);
         },
         "settle applied; settle conflict; commit done; commit closed",
         "settle applied; settle applied; commit done; commit done"},
    race{defect::group_is_counted_before_its_lock, group_of_two,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(a, 1, vouch::succeed{});
             s.during([&] { s.settle(b, 2, vouch::succeed{}); }, [&] { s.commit(a); }, 2);
             s.commit(b);
         },
         "settle applied; commit done; settle applied, completed; commit done",
         "settle applied; commit done; settle applied; commit done"},
    race{defect::group_counts_uncommitted, group_of_two,
         [](scene& s, transaction& a, transaction& b) {
             s.settle(a, 1, vouch::succeed{});
             s.settle(b, 2, vouch::succeed{});
             s.commit(b);
             a = s.begin();
             s.show(1);
         },
         "settle applied; settle conflict; commit closed; 1 is claimed",
         "settle applied; settle applied, completed; commit done; 1 is claimed"},
};

} // namespace races
