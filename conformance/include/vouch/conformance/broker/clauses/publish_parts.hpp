// SPDX-License-Identifier: MIT
// Every part of a message arrives as it was given.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/quoted.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

[[nodiscard]] inline std::string headers_text(const header_list& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        out += (out.empty() ? "" : ", ") + json(name) + " = " + shown(value);
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string time_text(const std::optional<time_point>& at) {
    return at ? std::to_string(at->time_since_epoch().count()) + " us since 1970" : "none";
}

[[nodiscard]] inline std::string trail_of_ids(const id_list& trail) {
    std::string out = std::to_string(trail.size()) + " ids";
    for (const auto& one : trail) {
        out += " " + to_string(one);
    }
    return out;
}

inline void expect_same_message(const std::string& name, const message& expected, const message& seen) {
    const auto same = [&](std::string_view part, bool is_same, const std::string& was, const std::string& is) {
        expect(is_same, "the " + std::string(part) + " of message " + name, was, is);
    };
    const auto same_text = [&](std::string_view part, const std::string& was, const std::string& is) {
        same(part, was == is, shown(was), shown(is));
    };
    same_text("id", expected.id, seen.id);
    same_text("topic", expected.topic, seen.topic);
    same_text("payload", expected.payload, seen.payload);
    same_text("key", expected.key, seen.key);
    same_text("lane", expected.lane, seen.lane);
    same_text("group", expected.group, seen.group);
    same("trail", expected.trail == seen.trail, trail_of_ids(expected.trail), trail_of_ids(seen.trail));
    same("headers", expected.headers == seen.headers, headers_text(expected.headers), headers_text(seen.headers));
    same("created_at", expected.created_at == seen.created_at, time_text(expected.created_at),
         time_text(seen.created_at));
    same("expires_at", expected.expires_at == seen.expires_at, time_text(expected.expires_at),
         time_text(seen.expires_at));
}

/// Publishes these and compares what arrives with them.
inline void expect_to_arrive_as_given(trial& t, const std::vector<message>& messages) {
    send(t, messages);
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(messages);
    for (const auto& r : at.arrived()) {
        const auto of =
            std::find_if(messages.begin(), messages.end(), [&](const auto& m) { return m.id == r.message.id; });
        expect(of != messages.end(), "the id of a message", "one that was published", shown(r.message.id));
        expect_equal("the code of message " + t.name_of(*of) + ", which can be read", "none",
                     r.malformed.empty() ? "none" : r.malformed);
        expect_same_message(t.name_of(*of), *of, r.message);
    }
}

/// Every byte there is.
[[nodiscard]] inline std::string all_bytes() {
    std::string out;
    for (unsigned byte = 0; byte < 256; ++byte) {
        out += static_cast<char>(byte);
    }
    return out;
}

inline void payloads_arrive(trial& t) {
    using namespace std::string_literals;
    constexpr std::size_t large = 256 * 1024;
    const auto max = t.fixture().message_max ? t.fixture().message_max() : large;
    std::string bytes;
    while (bytes.size() < large) {
        bytes += all_bytes();
    }
    bytes.resize(std::min(large, max));
    std::vector<message> all;
    for (const auto& payload : {""s, "\0"s, "a\0b"s, all_bytes(), "\r\n{\"\xff\xfe"s, bytes}) {
        all.push_back(t.make(all.size()));
        all.back().payload = payload;
    }
    expect_to_arrive_as_given(t, all);
}

inline void headers_arrive(trial& t) {
    using namespace std::string_literals;
    auto none = t.make("none");
    auto one = t.make("one");
    one.headers = {{"tenant", "acme"}};
    auto repeated = t.make("repeated");
    repeated.headers = {{"b", "1"}, {"a", "2"}, {"b", "3"}, {"b", "1"}, {"B", "4"}};
    auto binary = t.make("binary");
    binary.headers = {{"empty", ""}, {"nul", "a\0b"s}, {"bytes", all_bytes()}, {"long", std::string(4096, 'v')}};
    auto ours = t.make("ours");
    ours.headers = {{"vouch-key", "not a key"}, {"vouch-header-x", "1"}, {"vouch-", "2"}, {"vouch-later", "3"}};
    auto names = t.make("names");
    names.headers = {{"gr\xc3\xb6\xc3\x9f"
                      "e",
                      "1"},
                     {"with space", "2"},
                     {"x-death", "3"},
                     {std::string(200, 'n'), "4"}};
    auto many = t.make("many");
    for (std::size_t i = 0; i < 64; ++i) {
        many.headers.emplace_back("h" + std::to_string(i), std::to_string(i));
    }
    expect_to_arrive_as_given(t, {none, one, repeated, binary, ours, names, many});
}

inline void other_parts_arrive(trial& t) {
    auto whole = t.make("whole", "lane");
    whole.key = "order/42";
    whole.group = "customer 7";
    for (std::uint64_t i = 0; i < 32; ++i) {
        whole.trail.push_back({.high = i, .low = ~i});
    }
    whole.created_at = time_point(duration(1'700'000'000'123'456));
    whole.expires_at = time_point(duration(4'000'000'000'654'321));
    auto names = t.make("names", "\xc3\xa4\xe2\x82\xac");
    names.key = std::string(255, 'k');
    names.group = "\xf0\x9f\x93\xa8, = %20";
    auto early = t.make("early");
    early.created_at = time_point::min();
    early.expires_at = time_point::max();
    auto before = t.make("before 1970");
    before.created_at = time_point(duration(-1));
    auto zero = t.make("zero");
    zero.created_at = time_point();
    auto late = t.make("late");
    late.created_at = time_point::max();
    expect_to_arrive_as_given(t, {whole, t.make("empty"), names, early, before, zero, late});
}

inline void ids_and_topics_arrive(trial& t) {
    auto words = t.make("words");
    words.topic = "kit.order.created.v2";
    auto shortest = t.make("s");
    shortest.topic = "kit.a";
    auto other = t.make("\xc3\xa4 /?#");
    other.topic = "kit.gr\xc3\xb6\xc3\x9f"
                  "e.x";
    auto longest = t.make("");
    longest.id.resize(200, 'i');
    longest.topic = "kit." + std::string(180, 't');
    expect_to_arrive_as_given(t, {words, shortest, other, longest});
}

inline constexpr clause publish_parts[] = {
    {"PUB-06", needs::nothing, "publisher 8", "Payloads arrive byte for byte: empty, with NUL, any bytes, large.",
     "lengths that are taken from C strings, and conversions of text", &payloads_arrive},
    {"PUB-07", needs::nothing, "publisher 8",
     "Headers arrive as they were given, in order: repeated, empty, binary, and with names that begin with vouch-.",
     "tables of headers that keep one value per name, and properties_of and read_properties", &headers_arrive},
    {"PUB-08", needs::nothing, "publisher 8",
     "Key, lane, group, trail and times arrive as they were given, or are absent if they were absent.",
     "properties_of and read_properties, and how an expiry is turned into a time to live", &other_parts_arrive},
    {"PUB-09", needs::nothing, "publisher 8", "Ids and topics arrive as they were given.",
     "where the adapter keeps id and topic", &ids_and_topics_arrive},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
