// SPDX-License-Identifier: MIT
// A relay whose memory runs out: at every allocation that it makes, once.
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "memory/shortage.hpp"
#include "relay_support.hpp"

namespace relay_memory_test {

using namespace relay_test;

namespace {

/// Refuses payloads that begin with an r.
struct refusing_publisher {
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        std::vector<confirmation> out(messages.size(), {kind::confirmed});
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (messages[i].payload.front() == 'r') {
                out[i].what = kind::refused;
            }
        }
        return out;
    }
};

} // namespace

TEST_CASE("relay: wherever memory runs out, no entry gets the answer of another") {
    const vouch::emitter from;
    std::array<vouch::entry, 4> entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].id = from.fresh_id();
        entries[i].payload = std::string(1, i % 2 == 0 ? 'c' : 'r') + std::string(60, 'x'); // long enough to allocate
    }
    bool is_over = false;
    for (long nth = 1; !is_over; ++nth) {
        refusing_publisher to;
        vouch::delivery a(entries[0], from, from.now());
        vouch::delivery b(entries[1], from, from.now());
        vouch::delivery c(entries[2], from, from.now());
        vouch::delivery d(entries[3], from, from.now());
        const std::array all{&a, &b, &c, &d};
        vouch::delivery_batch batch(all.data(), all.size(), {});
        const vouch::relay relay(to);
        std::vector<vouch::outcome> outcomes;
        lack = {.left = nth};
        try {
            outcomes = relay(batch);
        } catch (const std::bad_alloc&) { // every entry is tried again
        }
        is_over = !lack.fired;
        lack = {};
        CAPTURE(nth);
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            const bool is_retried = std::holds_alternative<vouch::retry>(outcomes[i]);
            const bool is_right = i % 2 == 0 ? std::holds_alternative<vouch::succeed>(outcomes[i])
                                             : std::holds_alternative<vouch::bury>(outcomes[i]);
            CHECK((is_retried || is_right));
        }
    }
}

} // namespace relay_memory_test
