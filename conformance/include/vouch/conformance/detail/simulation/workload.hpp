// SPDX-License-Identifier: MIT
// The work of a simulation: what producers enqueue, and what the handler does with it. All work ends: the number of
// unusual outcomes per entry is limited, and so is the length of a trail of emissions.
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
namespace conformance::detail {

class workload {
  public:
    explicit workload(simulation_context& on) : context_(on) {}

    [[nodiscard]] emission next_emission() {
        auto& random = context_.random;
        const auto& can = context_.t.can();
        emission e{.queue = random.chance(60) ? "q" : "r", .topic = "work", .key = name("k", 12, 15)};
        e.group = can.groups ? name("g", 4, 30) : "";
        e.lane = can.lanes ? name("l", 3, 30) : "";
        e.parent = random.chance(15) ? context_.some_id() : id{};
        if (random.chance(20)) {
            e.due_in = context_.seconds(7200);
        }
        return e;
    }

    [[nodiscard]] draft next_draft() {
        auto& random = context_.random;
        const auto e = next_emission();
        draft d{.id = context_.fresh_id(), .queue = e.queue, .topic = e.topic, .key = e.key};
        if (random.chance(4)) {
            d.result = "born done";
            return d;
        }
        d.group = e.group;
        d.lane = e.lane;
        d.parent = e.parent;
        if (e.due_in) {
            d.due_at = context_.now + *e.due_in;
        }
        if (random.chance(5)) {
            d.expires_at = context_.now + context_.seconds(7200);
        }
        d.attempts_max = random.chance(10) ? 1U + static_cast<std::uint32_t>(random.below(3)) : 0U;
        return d;
    }

    /// The handler of all topics.
    [[nodiscard]] outcome operator()(delivery& d) {
        try {
            const auto allowed = d.entry().attempts_max == 0 ? context_.attempts_max : d.entry().attempts_max;
            context_.monitor.called(ticket_of(d.entry()), d.attempt(), allowed);
        } catch (const failure& f) {
            context_.broken = f; // a runner treats every exception as the handler's
            throw;
        }
        constexpr std::size_t outcomes_max = 6;
        if (d.topic() == simulation_monitor::completion_topic || ++outcomes_[d.id()] > outcomes_max) {
            return succeed{};
        }
        return random_outcome(d);
    }

  private:
    [[nodiscard]] outcome random_outcome(delivery& d) {
        const auto later = [&](std::size_t seconds) { return d.now() + context_.seconds(seconds); };
        switch (context_.random.below(20)) {
        case 0: throw vouch::failure("failed");
        case 1: emit(d); throw vouch::failure("failed after an emission");
        case 2: throw vouch::reject();
        case 3: return retry{"later", later(600)};
        case 4: return release{};
        case 5: return release{later(600)};
        case 6: return advance{std::to_string(outcomes_[d.id()]), {}};
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

    /// Succeeds after the lease is over.
    [[nodiscard]] outcome slow() {
        if (!context_.is_calm) {
            context_.now += context_.lease + context_.seconds(60);
        }
        return succeed{"slow"};
    }

    void emit(delivery& d) {
        constexpr std::size_t trail_max = 3;
        if (d.trail().size() < trail_max) {
            context_.monitor.emitted(ticket_of(d.entry()), d.emit(next_emission()));
        }
    }

    [[nodiscard]] std::string name(std::string_view kind, std::size_t many, std::size_t percent) {
        const bool has_one = context_.random.chance(percent);
        return has_one ? std::string(kind) + std::to_string(context_.random.below(many)) : std::string();
    }

    simulation_context& context_;
    std::map<id, std::size_t> outcomes_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
