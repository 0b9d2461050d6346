// SPDX-License-Identifier: MIT
// Commands made up by lot, with what they refer to bound late ("a ticket somebody has", "a dead entry"), so that a
// command still means something when those before it are left out.
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
namespace conformance {

/// Makes up arguments from what the model knows. Names are few and times within a few ticks of each other.
class imagination {
  public:
    imagination(const vouch::capabilities& can, const model& known, time_point now, const std::vector<ticket>& tickets,
                dice& d)
        : can_(can), known_(known), now_(now), tickets_(tickets), dice_(d) {}

    [[nodiscard]] id some_id() {
        if (!known_.records.empty() && dice_.chance(60)) {
            return known_.records[dice_.below(known_.records.size())].entry.id;
        }
        return id_of(1 + dice_.below(numbers_max));
    }
    [[nodiscard]] time_point some_time() {
        return now_ + duration{dice_.one_of<std::int64_t>({-2, -1, 0, 0, 1, 1, 2, 5, 9})};
    }
    [[nodiscard]] duration some_lease() { return duration{dice_.one_of<std::int64_t>({1, 2, 5, 9, 30})}; }
    [[nodiscard]] std::string some_queue() { return dice_.chance(85) ? "q" : "r"; }

    /// Most often the present claim's, else one from the past, or one nobody ever had.
    [[nodiscard]] ticket some_ticket() {
        if (dice_.chance(75)) {
            if (const auto present = those_in(state::claimed); !present.empty()) {
                const auto* const e = present[dice_.below(present.size())];
                return {e->id, e->epoch};
            }
        }
        if (!tickets_.empty() && dice_.chance(60)) {
            return tickets_[dice_.below(tickets_.size())];
        }
        return {some_id(), dice_.below(4)};
    }

    [[nodiscard]] outcome some_outcome() {
        switch (dice_.below(5)) {
        case 0: return succeed{dice_.one_of<std::string>({"", "result"})};
        case 1: return retry{dice_.one_of<std::string>({"e1", "e2"}), some_time()};
        case 2: return bury{"e3", dice_.chance(50) ? std::optional<std::string>("reply") : std::nullopt};
        case 3: return release{maybe_time(50)};
        default: return advance{dice_.one_of<std::string>({"p1", "p2"}), maybe_time(50)};
        }
    }

    [[nodiscard]] draft some_draft() {
        draft d{.id = id_of(1 + dice_.below(numbers_max)), .queue = some_queue()};
        if (known_.find(d.id) != nullptr && dice_.chance(70)) {
            d.id = id_of(1 + dice_.below(numbers_max));
        }
        d.topic = dice_.one_of<std::string>({"a", "b"});
        d.payload = dice_.one_of<std::string>({"", "p", "payload"});
        d.due_at = maybe_time(60);
        d.expires_at = maybe_time(10);
        d.attempts_max = static_cast<std::uint32_t>(dice_.below(3));
        d.progress = dice_.one_of<std::string>({"", "p0"});
        if (dice_.chance(10)) {
            d.headers = {{"name", "value"}};
            d.trail = {some_id()};
        }
        if (dice_.chance(30)) {
            d.predecessor = dice_.chance(80) ? some_dead_id() : some_id();
            const auto* const old = known_.find(d.predecessor);
            d.queue = old != nullptr && dice_.chance(90) ? old->queue : d.queue;
            d.parent = dice_.chance(10) ? some_id() : id{};
            return d;
        }
        d.key = dice_.one_of<std::string>({"", "", "k", "l"});
        if (dice_.chance(8)) {
            d.result = "born";
            return d;
        }
        d.group = can_.groups ? dice_.one_of<std::string>({"", "", "g", "h"}) : "";
        d.lane = can_.lanes ? dice_.one_of<std::string>({"", "", "x", "y"}) : "";
        d.parent = dice_.chance(25) ? some_id() : id{};
        return d;
    }

    [[nodiscard]] claim_request some_claim() {
        return {.queue = some_queue(),
                .limit = dice_.one_of<std::size_t>({0, 1, 1, 2, 3, 100}),
                .now = now_,
                .lease = some_lease(),
                .worker = dice_.one_of<std::string>({"", "w1", "w2"}),
                .only = dice_.chance(25) ? some_id() : id{}};
    }

    [[nodiscard]] purge_request some_purge() {
        purge_request r{
            .queue = some_queue(), .before = some_time(), .limit = dice_.one_of<std::size_t>({0, 1, 2, 3, 100})};
        if (dice_.chance(40)) {
            r.state = dice_.one_of({state::succeeded, state::dead});
        }
        return r;
    }

    /// A step, or to exactly the next gate, or to a tick before or after it.
    [[nodiscard]] time_point some_next_time() {
        const auto due = known_.next_due(some_queue());
        if (due && dice_.chance(60)) {
            return *due + duration{dice_.one_of<std::int64_t>({-1, 0, 1})};
        }
        return now_ + duration{dice_.one_of<std::int64_t>({-3, 1, 1, 2, 10})};
    }

  private:
    [[nodiscard]] std::optional<time_point> maybe_time(std::size_t percent) {
        return dice_.chance(percent) ? std::optional{some_time()} : std::nullopt;
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
        return dead.empty() ? some_id() : dead[dice_.below(dead.size())]->id;
    }

    const vouch::capabilities& can_;
    const model& known_;
    time_point now_;
    const std::vector<ticket>& tickets_;
    dice& dice_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
