// SPDX-License-Identifier: MIT
// A message's parts as names with values.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/relay.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "unit/support.hpp"

namespace relay_properties_test {

using vouch::header_list;
using vouch::message;

namespace {

/// Any bytes, often few.
[[nodiscard]] std::string any_text() { return *rc::gen::arbitrary<std::string>(); }

[[nodiscard]] std::string any_header_name() {
    const auto name = any_text();
    switch (*rc::gen::inRange(0, 5)) {
    case 0: return "vouch-" + name;
    case 1: return "vouch-header-" + name;
    case 2: return "vouch-key";
    case 3: return "same";
    default: return name;
    }
}

[[nodiscard]] std::optional<vouch::time_point> any_time() {
    if (*rc::gen::inRange(0, 4) == 0) {
        return std::nullopt;
    }
    return vouch::time_point(vouch::duration(*rc::gen::arbitrary<std::int64_t>()));
}

[[nodiscard]] message any_message() {
    message m{.key = any_text(), .lane = any_text(), .group = any_text()};
    const auto ids = *rc::gen::inRange(0, 33);
    for (int i = 0; i < ids; ++i) {
        m.trail.push_back({.high = *rc::gen::arbitrary<std::uint64_t>(), .low = *rc::gen::arbitrary<std::uint64_t>()});
    }
    const auto headers = *rc::gen::inRange(0, 8);
    for (int i = 0; i < headers; ++i) {
        auto name = any_header_name();
        m.headers.emplace_back(std::move(name), any_text());
    }
    m.created_at = any_time();
    m.expires_at = any_time();
    return m;
}

/// Whether a message can be read from one property.
[[nodiscard]] bool reads(std::string name, std::string value) {
    message m;
    return read_properties({{std::move(name), std::move(value)}}, m);
}

} // namespace

TEST_CASE("properties: any message is read back as it was") {
    check_property("read_properties is the inverse of properties_of", [] {
        const auto m = any_message();
        message back;
        RC_ASSERT(read_properties(properties_of(m), back));
        RC_ASSERT(back == m);
    });
}

TEST_CASE("properties: an empty message has none") {
    CHECK(vouch::properties_of({}).empty());
    CHECK(vouch::properties_of({.id = "1", .topic = "t", .payload = "p"}).empty());
}

TEST_CASE("properties: every part has its name, and headers follow in their order") {
    const message m{.key = "k",
                    .lane = "l",
                    .group = "g",
                    .trail = {{.high = 0, .low = 1}, {.high = 0, .low = 2}},
                    .headers = {{"b", "1"}, {"vouch-key", "2"}, {"b", "3"}},
                    .created_at = vouch::time_point(vouch::duration(-7)),
                    .expires_at = vouch::time_point::max()};
    const header_list expected{
        {"vouch-key", "k"},
        {"vouch-lane", "l"},
        {"vouch-group", "g"},
        {"vouch-trail", "00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002"},
        {"vouch-created-at", "-7"},
        {"vouch-expires-at", "9223372036854775807"},
        {"b", "1"},
        {"vouch-header-vouch-key", "2"},
        {"b", "3"}};
    CHECK(properties_of(m) == expected);
}

TEST_CASE("properties: a name that a later version has added is passed over") {
    message m;
    CHECK(read_properties({{"vouch-later", "x"}, {"a", "b"}}, m));
    CHECK(m == message{.headers = {{"a", "b"}}});
}

TEST_CASE("properties: a value that cannot be read gives false and leaves that part empty") {
    for (const std::string value : {"", "x", "1x", " 1", "+1", "1.5", "9223372036854775808", "-9223372036854775809"}) {
        INFO(value);
        CHECK_FALSE(reads("vouch-created-at", value));
        CHECK_FALSE(reads("vouch-expires-at", value));
    }
    const std::string one = "00000000-0000-0000-0000-000000000001";
    for (const auto& value : {std::string("x"), one + " ", "," + one, one + ",,", one + ";" + one, one.substr(1)}) {
        INFO(value);
        CHECK_FALSE(reads("vouch-trail", value));
    }
    message m;
    CHECK_FALSE(read_properties({{"vouch-trail", one + ",x"}, {"vouch-created-at", "soon"}, {"vouch-key", "k"}}, m));
    CHECK(m == message{.key = "k"});
}

TEST_CASE("properties: any names and values are read without a fault") {
    check_property("read_properties takes anything", [] {
        header_list any;
        const auto count = *rc::gen::inRange(0, 6);
        for (int i = 0; i < count; ++i) {
            const std::vector<std::string> names{"vouch-trail", "vouch-created-at", "vouch-expires-at", "vouch-lane"};
            const auto which = *rc::gen::inRange<std::size_t>(0, names.size() + 1);
            auto name = which < names.size() ? names[which] : any_header_name();
            any.emplace_back(std::move(name), any_text());
        }
        message m;
        const bool is_readable = read_properties(any, m);
        message again;
        RC_ASSERT(read_properties(properties_of(m), again)); // what was kept can be sent on
        RC_ASSERT(again == m);
        RC_ASSERT(is_readable || !any.empty());
    });
}

} // namespace relay_properties_test
