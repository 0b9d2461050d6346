// SPDX-License-Identifier: MIT
// Which drafts are refused, and which are accepted at the limits.
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "refusal.hpp"
#include "support.hpp"

namespace contract_validate_test {

using namespace support;
using vouch::draft;

namespace {

vouch::header_list headers(std::size_t count, const std::string& name = "n", const std::string& value = "v") {
    return vouch::header_list(count, {name, value});
}

struct refusal {
    std::string_view why;
    std::function<void(draft&)> spoil;
    std::vector<std::string> says; // the field; for sizes also the given size and the limit
};

const std::vector<refusal>& refused_drafts() {
    static const std::vector<refusal> all{
        {"nil id", [](draft& d) { d.id = {}; }, {"id", "nil"}},
        {"no queue", [](draft& d) { d.queue = ""; }, {"queue", "empty"}},
        {"no topic", [](draft& d) { d.topic = ""; }, {"topic", "empty"}},
        {"long queue", [](draft& d) { d.queue = bytes(256); }, {"queue", "256 bytes", "255"}},
        {"long topic", [](draft& d) { d.topic = bytes(257); }, {"topic", "257 bytes", "255"}},
        {"long key", [](draft& d) { d.key = bytes(256); }, {"key", "256 bytes", "255"}},
        {"long group", [](draft& d) { d.group = bytes(256); }, {"group", "256 bytes", "255"}},
        {"long lane", [](draft& d) { d.lane = bytes(300); }, {"lane", "300 bytes", "255"}},
        {"control in queue", [](draft& d) { d.queue = with_control('\n'); }, {"queue", "control", "byte 6"}},
        {"control in topic", [](draft& d) { d.topic = with_control('\t'); }, {"topic", "control", "byte 6"}},
        {"NUL in key", [](draft& d) { d.key = with_control('\0'); }, {"key", "control", "byte 6"}},
        {"DEL in group", [](draft& d) { d.group = with_control('\x7f'); }, {"group", "control", "byte 6"}},
        {"control in lane", [](draft& d) { d.lane = with_control('\x1f'); }, {"lane", "control", "byte 6"}},
        {"bytes that are not UTF-8", [](draft& d) { d.queue = "secret\xff"; }, {"queue", "UTF-8", "byte 6"}},
        {"a character cut off", [](draft& d) { d.topic = "secret\xc3"; }, {"topic", "UTF-8", "byte 6"}},
        {"an overlong character", [](draft& d) { d.key = "secret\xc0\xaf"; }, {"key", "UTF-8", "byte 6"}},
        {"an overlong character of three bytes", [](draft& d) { d.key = "secret\xe0\x80\xaf"; }, {"key", "UTF-8"}},
        {"half a surrogate pair", [](draft& d) { d.group = "secret\xed\xa0\x80"; }, {"group", "UTF-8", "byte 6"}},
        {"a character above U+10FFFF", [](draft& d) { d.lane = "secret\xf4\x90\x80\x80"; }, {"lane", "UTF-8"}},
        {"a lone continuation byte", [](draft& d) { d.headers = headers(1, "secret\x80"); }, {"header name", "UTF-8"}},
        {"control beyond ASCII", [](draft& d) { d.lane = "secret\xc2\x9b"; }, {"lane", "control", "byte 6"}},
        {"large payload", [](draft& d) { d.payload = bytes(1048577); }, {"payload", "1048577 bytes", "1048576"}},
        {"large progress", [](draft& d) { d.progress = bytes(1048577); }, {"progress", "1048577 bytes", "1048576"}},
        {"large result", [](draft& d) { d.result = bytes(1048577); }, {"result", "1048577 bytes", "1048576"}},
        {"long trail", [](draft& d) { d.trail.assign(33, id_of(9)); }, {"trail", "33 ids", "32"}},
        {"many headers", [](draft& d) { d.headers = headers(65); }, {"headers", "65 headers", "64"}},
        {"header without a name", [](draft& d) { d.headers = headers(1, ""); }, {"header name", "empty"}},
        {"long header name", [](draft& d) { d.headers = headers(1, bytes(256)); }, {"header name", "256 bytes", "255"}},
        {"control in header name",
         [](draft& d) { d.headers = headers(1, with_control('\r')); },
         {"header name", "control"}},
        {"long header value",
         [](draft& d) { d.headers = headers(2, "n", bytes(4097)); },
         {"header value", "4097 bytes", "4096"}},
        {"result and group", [](draft& d) { d.result = "", d.group = secret; }, {"group", "result"}},
        {"result and lane", [](draft& d) { d.result = "", d.lane = secret; }, {"lane", "result"}},
        {"result and parent", [](draft& d) { d.result = "", d.parent = id_of(9); }, {"parent", "result"}},
        {"result and predecessor",
         [](draft& d) { d.result = "", d.predecessor = id_of(9); },
         {"predecessor", "result"}},
        {"predecessor and key", [](draft& d) { d.predecessor = id_of(9), d.key = secret; }, {"key", "predecessor"}},
        {"predecessor and group",
         [](draft& d) { d.predecessor = id_of(9), d.group = secret; },
         {"group", "predecessor"}},
        {"predecessor and lane", [](draft& d) { d.predecessor = id_of(9), d.lane = secret; }, {"lane", "predecessor"}},
    };
    return all;
}

draft at_every_limit() {
    draft d = draft_of(3, bytes(255));
    d.topic = bytes(255);
    d.key = bytes(255);
    d.group = bytes(255);
    d.lane = bytes(255);
    d.payload = bytes(1048576);
    d.progress = bytes(1048576);
    d.trail.assign(32, id_of(9));
    d.headers = headers(64, bytes(255), bytes(4096));
    d.attempts_max = std::numeric_limits<std::uint32_t>::max();
    d.due_at = vouch::time_point::max();
    d.expires_at = vouch::time_point::min();
    return d;
}

} // namespace

TEST_CASE("validate: a draft at every limit is stored complete to the byte") {
    vouch::memory::store store;
    const auto d = at_every_limit();
    CHECK(put(store, d).what == vouch::receipt::kind::inserted);
    const auto e = store.find(d.id);
    REQUIRE(e);
    auto expected = vouch::born(d, t0);
    expected.sequence = e->sequence;
    CHECK(*e == expected);

    auto with_result = draft_of(4);
    with_result.result = bytes(1048576);
    CHECK(put(store, with_result).what == vouch::receipt::kind::inserted);
    CHECK(store.find(id_of(4))->result == with_result.result);
}

TEST_CASE("validate: payloads, progress, results and header values may be any bytes") {
    std::string all;
    for (int c = 0; c < 256; ++c) {
        all.push_back(static_cast<char>(c));
    }
    vouch::memory::store store;
    auto d = draft_of(1);
    d.payload = all;
    d.progress = all;
    d.headers = {{"n", all}, {"n", ""}};
    put(store, d);
    const auto ticket = take_one(store, t0);
    settle(store, ticket, vouch::succeed{all});
    const auto e = store.find(id_of(1));
    REQUIRE(e);
    CHECK(e->payload == all);
    CHECK(e->progress == all);
    CHECK(e->headers == d.headers);
    CHECK(e->result == all);
}

TEST_CASE("validate: names may contain characters beyond ASCII") {
    vouch::memory::store store;
    auto d = draft_of(1, "Größe \xc2\xa0 \xf0\x9f\x93\xa6 \xf4\x8f\xbf\xbf ~");
    d.topic = d.key = d.group = d.lane = d.queue;
    CHECK(put(store, d).what == vouch::receipt::kind::inserted);
    CHECK(store.list(vouch::query::keyed(d.queue, d.queue)).size() == 1);
}

TEST_CASE("validate: an invalid draft rejects its batch, and the error names its index and field but no content") {
    for (const auto& [why, spoil, says] : refused_drafts()) {
        CAPTURE(why);
        std::array batch{draft_of(3), draft_of(4), draft_of(5)};
        spoil(batch[1]);
        check_refused("draft 1: ", says, [&](auto& tx) { return tx.enqueue(batch, t0); });
    }
}

TEST_CASE("validate: a field that needs a missing capability is unsupported, and the error names it") {
    auto d = draft_of(1);
    d.group = secret;
    const auto no_groups = error_of([&] { vouch::validate(d, {.lanes = true}); });
    REQUIRE(no_groups);
    CHECK(no_groups->kind() == vouch::error_kind::unsupported);
    check_words(*no_groups, "draft 0: group", {"not supported"});
    CHECK(!error_of([&] { vouch::validate(d, {.groups = true}); }));

    d.group.clear();
    d.lane = secret;
    const auto no_lanes = error_of([&] { vouch::validate(d, {.groups = true}, 7); });
    REQUIRE(no_lanes);
    CHECK(no_lanes->kind() == vouch::error_kind::unsupported);
    check_words(*no_lanes, "draft 7: lane", {"not supported"});
    CHECK(!error_of([&] { vouch::validate(d, {.lanes = true}); }));
}

TEST_CASE("validate: a store may raise its limits") {
    auto d = draft_of(1);
    d.payload = bytes(1048577);
    CHECK(kind_of([&] { vouch::validate(d, {}); }) == vouch::error_kind::invalid_argument);
    CHECK(!kind_of([&] { vouch::validate(d, {.limits = {.payload_max = 1048577}}); }));
}

} // namespace contract_validate_test
