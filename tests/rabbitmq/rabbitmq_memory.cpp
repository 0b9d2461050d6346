// SPDX-License-Identifier: MIT
// A publisher whose allocations fail, one after the other.
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

thread_local std::ptrdiff_t allocations_left = -1; // negative: all succeed

} // namespace

bool allocation_fails() noexcept { return allocations_left >= 0 && allocations_left-- == 0; }

TEST_CASE("rabbitmq: a confirmation is for the message it belongs to, also after a call without memory") {
    const orders o;
    const rabbitmq::topology full{
        .exchange = o.shape.exchange, .listeners = {{.queue = fresh("full"), .patterns = {"full.#"}}}, .length_max = 1};
    rabbitmq::declare(here(), full);
    const std::vector rejected{message("x", "full.x")};
    {
        rabbitmq::publisher to(o.publisher());
        std::string answer;
        for (int i = 0; i < 100 && answer != "unknown nacked"; ++i) {
            answer = texts_of(to.publish(rejected));
        }
        REQUIRE(answer == "unknown nacked");
    }
    const std::vector some{message("a", "order.a"), message("b", "order.b")};
    bool has_failed = true;
    for (std::ptrdiff_t n = 0; has_failed; ++n) {
        CAPTURE(n);
        REQUIRE(n < 500);
        rabbitmq::publisher to(o.publisher());
        REQUIRE(texts_of(to.publish(messages(1))) == "confirmed");
        has_failed = false;
        allocations_left = n;
        try {
            static_cast<void>(to.publish(some));
        } catch (const std::bad_alloc&) {
            has_failed = true;
        } catch (const vouch::error&) {
            has_failed = true;
        }
        allocations_left = -1;
        CHECK(texts_of(to.publish(rejected)) == "unknown nacked");
    }
    remove(full);
}
