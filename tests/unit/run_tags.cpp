// SPDX-License-Identifier: MIT
// Tags: what a handler says about its outcome to observers. Sagas report their ends with them.
#include <string>
#include <tuple>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace run_tags_test {

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::testing::sandbox;

namespace {

/// The tags of all events, by kind.
std::vector<std::string> tags_of(const sandbox& box) {
    std::vector<std::string> out;
    for (const auto& e : box.events()) {
        if (!e.tag.empty()) {
            out.push_back(std::string(name_of(e.what)) + ' ' + e.tag);
        }
    }
    return out;
}

using lines = std::vector<std::string>;

} // namespace

TEST_CASE("tag: only the event that reports the outcome carries it") {
    sandbox box;
    box.on("t", [](delivery& d) { d.tag("blue"); });
    box.on("later", [](delivery& d) -> vouch::outcome {
        d.tag("unknown_version");
        return vouch::release{.at = d.now() + 1h};
    });
    box.emit({.topic = "t"});
    box.emit({.topic = "later"});
    box.run_once();
    CHECK(tags_of(box) == lines{"succeeded blue", "released unknown_version"});
}

TEST_CASE("tag: an outcome that the runner replaces, or that is stale, has none") {
    sandbox box({.lease = 1min});
    box.on("large", [](delivery& d) {
        d.tag("blue");
        return std::string(vouch::limits{}.result_max + 1, 'x');
    });
    box.on("unrouted", [](delivery& d) {
        d.tag("blue");
        d.emit({.topic = ""});
    });
    box.on("slow", [&](delivery& d) {
        d.tag("blue");
        box.pass(1min);
        std::ignore = take(box.store(), d.now() + 1min, {.queue = "test", .only = d.id()});
    });
    for (const std::string topic : {"large", "unrouted", "slow"}) {
        box.emit({.topic = topic});
    }
    const auto done = box.run_once();
    CHECK(done.dead == 2);
    CHECK(done.stale == 1);
    CHECK(tags_of(box).empty());
}

} // namespace run_tags_test
