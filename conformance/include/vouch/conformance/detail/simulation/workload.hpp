// SPDX-License-Identifier: MIT
// The work of a simulated world: what is enqueued, and what handlers do with it. Everything comes to an end: odd deeds
// are counted per entry, and emissions lead to emissions only so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/simulation/context.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulation_work {
  public:
    explicit simulation_work(simulation_ground& on) : ground_(on) {}

    [[nodiscard]] emission next_emission() {
        auto& random = ground_.random;
        const auto& can = ground_.t.can();
        emission e{.queue = random.chance(60) ? "q" : "r", .topic = "work", .key = name("k", 12, 15)};
        e.group = can.groups ? name("g", 4, 30) : "";
        e.lane = can.lanes ? name("l", 3, 30) : "";
        e.parent = random.chance(15) ? ground_.some_id() : id{};
        if (random.chance(20)) {
            e.due_in = ground_.seconds(7200);
        }
        return e;
    }

    [[nodiscard]] draft next_draft() {
        auto& random = ground_.random;
        const auto e = next_emission();
        draft d{.id = ground_.fresh_id(), .queue = e.queue, .topic = e.topic, .key = e.key};
        if (random.chance(4)) {
            d.result = "born done";
            return d;
        }
        d.group = e.group;
        d.lane = e.lane;
        d.parent = e.parent;
        if (e.due_in) {
            d.due_at = ground_.now + *e.due_in;
        }
        if (random.chance(5)) {
            d.expires_at = ground_.now + ground_.seconds(7200);
        }
        d.attempts_max = random.chance(10) ? 1U + static_cast<std::uint32_t>(random.below(3)) : 0U;
        return d;
    }

    /// The handler of all topics.
    [[nodiscard]] outcome operator()(delivery& d) {
        try {
            const auto allowed = d.entry().attempts_max == 0 ? ground_.attempts_max : d.entry().attempts_max;
            ground_.watch.called(ticket_of(d.entry()), d.attempt(), allowed);
        } catch (const failure& f) {
            ground_.broken = f; // a runner takes every exception for the handler's
            throw;
        }
        constexpr std::size_t odd_deeds_max = 6;
        if (d.topic() == simulation_watch::completion_topic || ++deeds_[d.id()] > odd_deeds_max) {
            return succeed{};
        }
        return odd_deed(d);
    }

  private:
    [[nodiscard]] outcome odd_deed(delivery& d) {
        const auto later = [&](std::size_t seconds) { return d.now() + ground_.seconds(seconds); };
        switch (ground_.random.below(20)) {
        case 0: throw vouch::failure("failed");
        case 1: emit(d); throw vouch::failure("failed after an emission");
        case 2: throw vouch::reject();
        case 3: return retry{"later", later(600)};
        case 4: return release{};
        case 5: return release{later(600)};
        case 6: return advance{std::to_string(deeds_[d.id()]), {}};
        case 7: emit(d); return advance{"with an emission", {}};
        case 8: return advance{"waits", later(3600)};
        case 9: emit(d); return bury{"given up", "reply"};
        case 10: return slow();
        case 11: emit(d); return succeed{"with an emission"};
        case 12:
        case 13:
            emit(d);
            emit(d);
            return succeed{"with two"};
        default: return succeed{"done"};
        }
    }

    /// Takes longer than the lease.
    [[nodiscard]] outcome slow() {
        if (!ground_.is_calm) {
            ground_.now += ground_.lease + ground_.seconds(60);
        }
        return succeed{"slow"};
    }

    void emit(delivery& d) {
        constexpr std::size_t trail_max = 3;
        if (d.trail().size() < trail_max) {
            ground_.watch.emitted(ticket_of(d.entry()), d.emit(next_emission()));
        }
    }

    [[nodiscard]] std::string name(std::string_view kind, std::size_t many, std::size_t percent) {
        const bool has_one = ground_.random.chance(percent);
        return has_one ? std::string(kind) + std::to_string(ground_.random.below(many)) : std::string();
    }

    simulation_ground& ground_;
    std::map<id, std::size_t> deeds_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch
