// SPDX-License-Identifier: MIT
// Topics and patterns: RabbitMQ's rules, checked by example and against a naive matcher.
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "support.hpp"

namespace outbox_topic_test {

using namespace support;

namespace {

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> out;
    for (std::size_t from = 0;;) {
        const auto dot = text.find('.', from);
        out.emplace_back(text.substr(from, dot == std::string_view::npos ? dot : dot - from));
        if (dot == std::string_view::npos) {
            return out;
        }
        from = dot + 1;
    }
}

/// Tries every match: `#` consumes nothing, or one word and is tried again.
bool naive(const std::vector<std::string>& pattern, std::size_t p, const std::vector<std::string>& topic,
           std::size_t t) {
    if (p == pattern.size()) {
        return t == topic.size();
    }
    if (pattern[p] == "#") {
        return naive(pattern, p + 1, topic, t) || (t < topic.size() && naive(pattern, p, topic, t + 1));
    }
    return t < topic.size() && (pattern[p] == "*" || pattern[p] == topic[t]) && naive(pattern, p + 1, topic, t + 1);
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& w : words) {
        out += (out.empty() && &w == &words.front() ? "" : ".") + w;
    }
    return out;
}

rc::Gen<std::vector<std::string>> gen_words(std::vector<std::string> from) {
    return rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::move(from))));
}

} // namespace

TEST_CASE("topic: a pattern without wildcards matches only itself") {
    CHECK(vouch::topic_matches("user.created", "user.created"));
    CHECK_FALSE(vouch::topic_matches("user.created", "user.create"));
    CHECK_FALSE(vouch::topic_matches("user.created", "user.created.twice"));
    CHECK_FALSE(vouch::topic_matches("user.created", "user"));
    CHECK_FALSE(vouch::topic_matches("user.created", "User.created"));
}

TEST_CASE("topic: a star matches exactly one word") {
    CHECK(vouch::topic_matches("user.*", "user.created"));
    CHECK(vouch::topic_matches("*.created", "user.created"));
    CHECK(vouch::topic_matches("*", "user"));
    CHECK_FALSE(vouch::topic_matches("user.*", "user"));
    CHECK_FALSE(vouch::topic_matches("user.*", "user.created.twice"));
    CHECK_FALSE(vouch::topic_matches("*", "user.created"));
}

TEST_CASE("topic: a hash matches any number of words, including none") {
    CHECK(vouch::topic_matches("#", "user"));
    CHECK(vouch::topic_matches("#", "user.created.twice"));
    CHECK(vouch::topic_matches("user.#", "user"));
    CHECK(vouch::topic_matches("user.#", "user.created.twice"));
    CHECK(vouch::topic_matches("#.twice", "twice"));
    CHECK(vouch::topic_matches("#.a.#.b", "x.a.y.a.z.b"));
    CHECK(vouch::topic_matches("#.#", "user"));
    CHECK_FALSE(vouch::topic_matches("user.#", "users"));
    CHECK_FALSE(vouch::topic_matches("#.a.#.b", "x.a.y.b.c"));
    CHECK_FALSE(vouch::topic_matches("#.*.*", "user"));
}

TEST_CASE("topic: an empty word is a word") {
    CHECK(vouch::topic_matches("a.*.b", "a..b"));
    CHECK_FALSE(vouch::topic_matches("a.b", "a..b"));
    CHECK(vouch::topic_matches("a.*", "a."));
}

TEST_CASE("topic: the matcher agrees with a naive one") {
    check_property("topic_matches returns the same as the naive matcher", [] {
        const auto pattern = *gen_words({"a", "b", "*", "#"});
        const auto topic = *gen_words({"a", "b", "ab", ""});
        if (joined(topic).empty()) {
            return true; // not a topic
        }
        const bool expected = naive(words_of(joined(pattern)), 0, words_of(joined(topic)), 0);
        RC_CLASSIFY(expected, "matches");
        return vouch::topic_matches(joined(pattern), joined(topic)) == expected;
    });
}

TEST_CASE("topic: a pattern is validated when it is constructed") {
    const auto refused = [](std::string pattern) {
        return kind_of([&] { vouch::topic_pattern made(std::move(pattern)); }) == vouch::error_kind::invalid_argument;
    };
    CHECK_FALSE(refused("user.*.#"));
    CHECK_FALSE(refused(std::string(255, 'a')));
    CHECK(refused(""));
    CHECK(refused("user..created"));
    CHECK(refused(".user"));
    CHECK(refused("user."));
    CHECK(refused("user*"));
    CHECK(refused("#user"));
    CHECK(refused("user\n"));
    CHECK(refused(std::string(256, 'a')));
}

TEST_CASE("topic: narrower patterns sort first") {
    const auto narrower = [](const char* a, const char* b) {
        return vouch::topic_pattern(a).specificity() < vouch::topic_pattern(b).specificity();
    };
    CHECK(narrower("a.b", "a.*"));
    CHECK(narrower("a.*", "*.*"));
    CHECK(narrower("*.*", "#"));
    CHECK(narrower("a.#", "#"));
    CHECK(narrower("a.b.#", "a.#"));
    CHECK_FALSE(narrower("a.*", "*.b"));
    CHECK_FALSE(narrower("*.b", "a.*"));
}

} // namespace outbox_topic_test
