// SPDX-License-Identifier: MIT
// A store with row locks on one thread with several open transactions. Operations add their answers to a text. Where the
// correct store would wait for another transaction of the same thread it answers `conflict`, so that no race needs a
// second thread; and what another transaction does inside an operation is done by the store's seam.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>

#include "../../../conformance/row_locks/store.hpp"

namespace races {

using row_locks::defect;
using transaction = row_locks::transaction;

[[nodiscard]] inline vouch::id id_of(std::uint64_t n) { return {0, n}; }
[[nodiscard]] inline vouch::time_point at(int n) {
    return vouch::time_point{std::chrono::hours{1}} + vouch::duration{n};
}
inline const vouch::time_point now = at(50);

class scene {
  public:
    explicit scene(defect d) : defect_(d), store_({.defect = d, .seam = [this](std::string_view) { interrupt(); }}) {}

    [[nodiscard]] const std::string& said() const noexcept { return said_; }
    [[nodiscard]] bool has(defect d) const noexcept { return defect_ == d; }
    [[nodiscard]] transaction begin() { return store_.begin(); }

    // What is committed before the race.

    void given(std::vector<vouch::draft> drafts) {
        auto tx = begin();
        for (auto& d : drafts) {
            d.queue = "q";
            d.topic = "t";
        }
        tx.enqueue(drafts, at(0));
        tx.commit();
    }
    /// Claimed at 0 with the epoch 1.
    void held(std::uint64_t n, int until) {
        auto tx = begin();
        std::ignore = tx.claim({.queue = "q", .now = at(0), .lease = vouch::duration{until}, .only = id_of(n)});
        tx.commit();
    }
    void dead(std::uint64_t n) {
        auto tx = begin();
        std::ignore = tx.cancel(id_of(n), "c", at(0));
        tx.commit();
    }

    // Operations.

    void enqueue(transaction& tx, vouch::draft d) {
        d.queue = "q";
        d.topic = "t";
        const std::vector one{d};
        answer("enqueue", [&] {
            const auto r = tx.enqueue(one, now).front();
            return std::string(name_of(r.what)) + (r.what == vouch::receipt::kind::duplicate ? of(r.id) : "");
        });
    }
    void claim(transaction& tx, std::size_t limit = 10, vouch::time_point when = now) {
        answer("claim", [&] { return list(tx.claim({.queue = "q", .limit = limit, .now = when})); });
    }
    void settle(transaction& tx, std::uint64_t n, vouch::outcome o) {
        const std::vector one{vouch::settle{{id_of(n), 1}, std::move(o)}};
        answer("settle", [&] {
            const auto s = tx.settle(one, now).front();
            return std::string(name_of(s.verdict)) + (s.group_completed ? ", completed" : "");
        });
    }
    /// Of 1 and 2, in one batch.
    void settle_both(transaction& tx, const vouch::outcome& o) {
        const std::vector batch{vouch::settle{{id_of(1), 1}, o}, vouch::settle{{id_of(2), 1}, o}};
        answer("settle", [&] {
            const auto all = tx.settle(batch, now);
            return std::string(name_of(all[0].verdict)) + ", " + std::string(name_of(all[1].verdict));
        });
    }
    void extend(transaction& tx, std::uint64_t n) {
        const std::vector one{vouch::ticket{id_of(n), 1}};
        answer("extend", [&] { return std::string(name_of(tx.extend(one, now, vouch::duration{100}).front())); });
    }
    void nudge(transaction& tx, std::uint64_t n) {
        answer("nudge", [&] { return std::string(name_of(tx.nudge(id_of(n), now))); });
    }
    void cancel(transaction& tx, std::uint64_t n) {
        answer("cancel", [&] { return std::string(name_of(tx.cancel(id_of(n), "c", now))); });
    }
    void purge(transaction& tx) {
        answer("purge", [&] { return std::to_string(tx.purge({.queue = "q", .before = now})); });
    }
    void commit(transaction& tx) {
        answer("commit", [&] {
            tx.commit();
            return std::string("done");
        });
    }

    /// Runs `operation`, and `other` at its n-th seam; after it, if the operation has fewer.
    void during(const std::function<void()>& operation, std::function<void()> other, std::size_t n = 1) {
        left_ = n;
        other_ = std::move(other);
        operation();
        if (const auto f = std::exchange(other_, nullptr)) {
            f();
        }
    }

    // What can be seen at the end.

    void show(std::uint64_t n) {
        const auto e = store_.find(id_of(n));
        note(std::to_string(n) + " is " +
             (e ? std::string(name_of(e->state)) + (e->woken ? " and woken" : "") +
                      (vouch::is_live(e->state) && e->due_at > now ? " and due later" : "")
                : "absent"));
    }
    /// Those that a claim at the end of time can reach.
    void drain() {
        auto tx = begin();
        claim(tx, 100, at(1'000'000));
    }
    void show_order() { note("in sequence " + list(store_.list({.queue = "q"}))); }

  private:
    void interrupt() {
        if (other_ && --left_ == 0) {
            std::exchange(other_, nullptr)();
        }
    }
    void note(const std::string& text) { said_ += (said_.empty() ? "" : "; ") + text; }

    template <class F>
    void answer(std::string_view what, const F& f) {
        std::string text;
        try {
            text = f();
        } catch (const vouch::error& e) {
            text = e.kind() == vouch::error_kind::misuse ? "closed" : name_of(e.kind());
        }
        note(std::string(what) + " " + text);
    }
    [[nodiscard]] static std::string of(const vouch::id& one) { return " of " + std::to_string(one.low); }
    [[nodiscard]] static std::string list(const std::vector<vouch::entry>& some) {
        std::string out;
        for (const auto& e : some) {
            out += (out.empty() ? "" : " ") + std::to_string(e.id.low);
        }
        return "[" + out + "]";
    }

    defect defect_;
    std::string said_{};
    std::function<void()> other_{};
    std::size_t left_ = 0;
    row_locks::store store_;
};

struct race {
    row_locks::defect defect{};
    void (*prepare)(scene&) = nullptr;
    void (*play)(scene&, transaction& a, transaction& b) = nullptr;
    std::string_view right{}; ///< what the correct store answers
    std::string_view wrong{}; ///< what the defective one answers
};

// What is there before a race.

inline void nothing(scene&) {}
inline void one(scene& s) { s.given({{.id = id_of(1)}}); }
inline void two(scene& s) { s.given({{.id = id_of(1)}, {.id = id_of(2)}}); }
inline void three(scene& s) {
    s.given(
        {{.id = id_of(1), .due_at = at(90)}, {.id = id_of(2), .due_at = at(90)}, {.id = id_of(3), .due_at = at(90)}});
}
inline void running(scene& s) {
    one(s);
    s.held(1, 1000);
}
inline void lapsed(scene& s) {
    one(s);
    s.held(1, 10);
}
inline void dead(scene& s) {
    one(s);
    s.dead(1);
}
inline void keyed(scene& s) { s.given({{.id = id_of(1), .key = "k", .result = "r"}}); }
inline void due_parent(scene& s) {
    s.given({{.id = id_of(1)}, {.id = id_of(2), .parent = id_of(1), .due_at = at(90)}});
}
inline void claimed_parent(scene& s) {
    due_parent(s);
    s.held(1, 1000);
}
inline void waiting_head(scene& s) { s.given({{.id = id_of(1), .lane = "x"}}); }
inline void claimed_head(scene& s) {
    waiting_head(s);
    s.held(1, 1000);
}
inline void lane_of_two(scene& s) {
    s.given({{.id = id_of(1), .lane = "x"}, {.id = id_of(2), .lane = "x", .due_at = at(100)}});
    s.held(1, 1000);
}
inline void lane_of_three(scene& s) {
    s.given({{.id = id_of(1), .lane = "x"}, {.id = id_of(2), .lane = "x"}, {.id = id_of(3), .lane = "x"}});
    s.held(1, 1000);
}
inline void group_of_two(scene& s) {
    s.given({{.id = id_of(1), .group = "g"}, {.id = id_of(2), .group = "g"}});
    s.held(1, 1000);
    s.held(2, 1000);
}

} // namespace races
