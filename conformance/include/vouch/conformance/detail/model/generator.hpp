// SPDX-License-Identifier: MIT
// Random arguments for operations. They refer to entries by their role, such as "a current ticket" or "a dead entry", so
// that a command still makes sense when shrinking removes earlier commands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/detail/model/comparison.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Makes arguments from the state of the model. There are few names, and times are within a few ticks of each other.
class generator {
  public:
    generator(const vouch::capabilities& can, const model& known, time_point now, const std::vector<ticket>& tickets,
              random_source& d)
        : can_(can), known_(known), now_(now), tickets_(tickets), random_(d) {}

    [[nodiscard]] id some_id() {
        if (!known_.records.empty() && random_.chance(60)) {
            return known_.records[random_.below(known_.records.size())].entry.id;
        }
        return id_of(1 + random_.below(numbers_max));
    }
    [[nodiscard]] time_point some_time() {
        return now_ + duration{random_.one_of<std::int64_t>({-2, -1, 0, 0, 1, 1, 2, 5, 9})};
    }
    [[nodiscard]] duration some_lease() { return duration{random_.one_of<std::int64_t>({1, 2, 5, 9, 30})}; }
    [[nodiscard]] std::string some_queue() { return random_.chance(85) ? "q" : "r"; }

    /// Mostly the ticket of a current claim; sometimes an earlier ticket or one that never existed.
    [[nodiscard]] ticket some_ticket() {
        if (random_.chance(75)) {
            if (const auto present = those_in(state::claimed); !present.empty()) {
                const auto* const e = present[random_.below(present.size())];
                return {e->id, e->epoch};
            }
        }
        if (!tickets_.empty() && random_.chance(60)) {
            return tickets_[random_.below(tickets_.size())];
        }
        return {some_id(), random_.below(4)};
    }

    [[nodiscard]] outcome some_outcome() {
        switch (random_.below(5)) {
        case 0: return succeed{random_.one_of<std::string>({"", "result"})};
        case 1: return retry{random_.one_of<std::string>({"e1", "e2"}), some_time()};
        case 2: return bury{"e3", random_.chance(50) ? std::optional<std::string>("reply") : std::nullopt};
        case 3: return release{maybe_time(50)};
        default: return advance{random_.one_of<std::string>({"p1", "p2"}), maybe_time(50)};
        }
    }

    [[nodiscard]] draft some_draft() {
        draft d{.id = id_of(1 + random_.below(numbers_max)), .queue = some_queue()};
        if (known_.find(d.id) != nullptr && random_.chance(70)) {
            d.id = id_of(1 + random_.below(numbers_max));
        }
        d.topic = random_.one_of<std::string>({"a", "b"});
        d.payload = random_.one_of<std::string>({"", "p", "payload"});
        d.due_at = maybe_time(60);
        d.expires_at = maybe_time(10);
        d.attempts_max = static_cast<std::uint32_t>(random_.below(3));
        d.progress = random_.one_of<std::string>({"", "p0"});
        if (random_.chance(10)) {
            d.headers = {{"name", "value"}};
            d.trail = {some_id()};
        }
        if (random_.chance(30)) {
            d.predecessor = random_.chance(80) ? some_dead_id() : some_id();
            const auto* const old = known_.find(d.predecessor);
            d.queue = old != nullptr && random_.chance(90) ? old->queue : d.queue;
            d.parent = random_.chance(10) ? some_id() : id{};
            return d;
        }
        d.key = random_.one_of<std::string>({"", "", "k", "l"});
        if (random_.chance(8)) {
            d.result = "born";
            return d;
        }
        d.group = can_.groups ? random_.one_of<std::string>({"", "", "g", "h"}) : "";
        d.lane = can_.lanes ? random_.one_of<std::string>({"", "", "x", "y"}) : "";
        d.parent = random_.chance(25) ? some_id() : id{};
        return d;
    }

    [[nodiscard]] claim_request some_claim() {
        return {.queue = some_queue(),
                .limit = random_.one_of<std::size_t>({0, 1, 1, 2, 3, 100}),
                .now = now_,
                .lease = some_lease(),
                .worker = random_.one_of<std::string>({"", "w1", "w2"}),
                .only = random_.chance(25) ? some_id() : id{}};
    }

    [[nodiscard]] purge_request some_purge() {
        purge_request r{
            .queue = some_queue(), .before = some_time(), .limit = random_.one_of<std::size_t>({0, 1, 2, 3, 100})};
        if (random_.chance(40)) {
            r.state = random_.one_of({state::succeeded, state::dead});
        }
        return r;
    }

    /// A random step, or the next gate, or a tick before or after it.
    [[nodiscard]] time_point some_next_time() {
        const auto due = known_.next_due(some_queue());
        if (due && random_.chance(60)) {
            return *due + duration{random_.one_of<std::int64_t>({-1, 0, 1})};
        }
        return now_ + duration{random_.one_of<std::int64_t>({-3, 1, 1, 2, 10})};
    }

  private:
    [[nodiscard]] std::optional<time_point> maybe_time(std::size_t percent) {
        return random_.chance(percent) ? std::optional{some_time()} : std::nullopt;
    }
    [[nodiscard]] std::vector<const entry*> those_in(state s) const {
        std::vector<const entry*> out;
        for (const auto& r : known_.records) {
            if (r.entry.state == s) {
                out.push_back(&r.entry);
            }
        }
        return out;
    }
    [[nodiscard]] id some_dead_id() {
        const auto dead = those_in(state::dead);
        return dead.empty() ? some_id() : dead[random_.below(dead.size())]->id;
    }

    const vouch::capabilities& can_;
    const model& known_;
    time_point now_;
    const std::vector<ticket>& tickets_;
    random_source& random_;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
