// SPDX-License-Identifier: MIT
// Brokers with other limits than usual: small frames, and frames that grow on their way.
#include <cstddef>
#include <string>
#include <vector>

#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

/// The broker's limit for the frames of connections that are made from now on; the usual one afterwards.
struct frame_limit {
    explicit frame_limit(std::size_t bytes) { set(bytes); }
    frame_limit(const frame_limit&) = delete;
    frame_limit& operator=(const frame_limit&) = delete;
    ~frame_limit() { set(131'072); }

  private:
    static void set(std::size_t bytes) {
        broker("ctl", "eval 'application:set_env(rabbit, frame_max, " + std::to_string(bytes) + ").'");
    }
};

} // namespace

TEST_CASE("rabbitmq: payloads and headers fit into the frames of a broker whose limit is small") {
    const orders o;
    for (const std::size_t limit : {std::size_t{4096}, std::size_t{8192}, std::size_t{20'000}}) {
        CAPTURE(limit);
        const frame_limit small(limit);
        auto sent = messages(6);
        sent[1].payload = std::string(limit - 8, 'x'); // exactly one frame
        sent[2].payload = std::string(100'000, 'x');
        sent[3].headers = {{"large", std::string(limit, 'h')}};
        sent[4].headers = {{"small", std::string(limit / 2 - 200, 'h')}};
        sent[5].id = std::string(255, 'i');
        sent[5].topic = "order." + std::string(249, 't');
        sent[5].headers = {{"medium", std::string(limit / 2 - 100, 'h')}};
        rabbitmq::publisher to(o.publisher());
        CHECK(texts_of(to.publish(sent)) == "confirmed");
        rabbitmq::consumer from(o.consumer());
        const auto got = receive(from, sent.size(), true);
        REQUIRE(got.size() == sent.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(i, got[i].malformed);
            const bool is_same = got[i].message == sent[i];
            CHECK(is_same);
        }
    }
}
