// SPDX-License-Identifier: MIT
// Races of drafts and purges: ids, keys, predecessors. See races.cpp.
#pragma once

#include <array>

#include "scene.hpp"

namespace races {

inline const std::array drafts{
    race{defect::id_is_unlocked, nothing,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(1)});
             s.enqueue(b, {.id = id_of(1)});
             s.commit(a);
             s.commit(b);
         },
         "enqueue inserted; enqueue conflict; commit done; commit closed",
         "enqueue inserted; enqueue inserted; commit done; commit done"},
    race{defect::id_is_read_before_its_lock, nothing,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(1)});
             s.during([&] { s.enqueue(b, {.id = id_of(1)}); }, [&] { s.commit(a); });
             s.commit(b);
         },
         "enqueue inserted; commit done; enqueue duplicate of 1; commit done",
         "enqueue inserted; commit done; enqueue inserted; commit done"},
    race{defect::key_is_unlocked, nothing,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(1), .key = "k"});
             s.enqueue(b, {.id = id_of(2), .key = "k"});
             s.commit(a);
             s.commit(b);
         },
         "enqueue inserted; enqueue conflict; commit done; commit closed",
         "enqueue inserted; enqueue inserted; commit done; commit done"},
    race{defect::key_is_read_before_its_lock, nothing,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(1), .key = "k"});
             s.during([&] { s.enqueue(b, {.id = id_of(2), .key = "k"}); }, [&] { s.commit(a); }, 2);
             s.commit(b);
         },
         "enqueue inserted; commit done; enqueue duplicate of 1; commit done",
         "enqueue inserted; commit done; enqueue inserted; commit done"},
    race{defect::duplicate_is_unlocked, keyed,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .key = "k"});
             s.purge(b);
             s.commit(b);
             s.enqueue(a, {.id = id_of(3), .key = "k"});
         },
         "enqueue duplicate of 1; purge conflict; commit closed; enqueue duplicate of 1",
         "enqueue duplicate of 1; purge 1; commit done; enqueue inserted"},
    race{defect::purge_locks_no_keys, keyed,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .key = "k"});
             s.purge(b);
             s.commit(b);
             s.enqueue(a, {.id = id_of(3), .key = "k"});
         },
         "enqueue duplicate of 1; purge conflict; commit closed; enqueue duplicate of 1",
         "enqueue duplicate of 1; purge 1; commit done; enqueue inserted"},
    race{defect::predecessor_is_unlocked, dead,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .predecessor = id_of(1)});
             s.enqueue(b, {.id = id_of(3), .predecessor = id_of(1)});
             s.commit(a);
             s.commit(b);
         },
         "enqueue inserted; enqueue conflict; commit done; commit closed",
         "enqueue inserted; enqueue inserted; commit done; commit done"},
    race{defect::predecessor_is_read_before_its_lock, dead,
         [](scene& s, transaction& a, transaction& b) {
             s.purge(b);
             s.during([&] { s.enqueue(a, {.id = id_of(2), .predecessor = id_of(1)}); }, [&] { s.commit(b); }, 2);
             s.commit(a);
         },
         "purge 1; commit done; enqueue refused; commit done", "purge 1; commit done; enqueue inserted; commit done"},
    race{defect::successor_is_looked_up_before_the_lock, dead,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .predecessor = id_of(1)});
             s.during([&] { s.enqueue(b, {.id = id_of(3), .predecessor = id_of(1)}); }, [&] { s.commit(a); }, 2);
             s.commit(b);
         },
         "enqueue inserted; commit done; enqueue duplicate of 2; commit done",
         "enqueue inserted; commit done; enqueue inserted; commit done"},
    race{defect::purge_locks_nothing, dead,
         [](scene& s, transaction& a, transaction& b) {
             s.cancel(a, 1);
             s.purge(b);
             s.commit(b);
             s.cancel(a, 1);
         },
         "cancel repeated; purge conflict; commit closed; cancel repeated",
         "cancel repeated; purge 1; commit done; cancel unknown"},
    race{defect::purge_looks_before_it_locks, dead,
         [](scene& s, transaction& a, transaction& b) {
             s.enqueue(a, {.id = id_of(2), .predecessor = id_of(1)});
             s.during([&] { s.purge(b); }, [&] { s.commit(a); });
             s.commit(b);
             s.show(1);
             s.show(2);
         },
         "enqueue inserted; commit done; purge 0; commit done; 1 is dead; 2 is pending",
         "enqueue inserted; commit done; purge 1; commit done; 1 is absent; 2 is pending"},
};

} // namespace races
