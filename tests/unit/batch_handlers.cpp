// SPDX-License-Identifier: MIT
// Batch handlers in a runner: which entries share a call, and the outcome of each entry.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace batch_handlers_test {

using namespace support;
using vouch::delivery;
using vouch::delivery_batch;
using vouch::event_kind;
using vouch::outcome;
using vouch::state;
using vouch::testing::sandbox;
using calls = std::vector<std::string>;

static_assert(std::forward_iterator<delivery_batch::iterator>);

namespace {

/// The payloads of a batch, in order.
[[nodiscard]] std::string text_of(const delivery_batch& all) {
    std::string out;
    for (const auto& d : all) {
        out += d.payload();
    }
    return out;
}

/// Emits an entry per letter: lower case to the topic "b", upper case to "c", digits to "single".
void emit_letters(sandbox& box, std::string_view letters) {
    for (const char c : letters) {
        const auto* const topic = c >= 'a' && c <= 'z' ? "b" : c >= 'A' && c <= 'Z' ? "c" : "single";
        box.emit({.topic = topic, .payload = std::string(1, c)});
    }
}

/// A sandbox with two batch routes and a single one, which note their calls.
struct noting_sandbox {
    sandbox box{};
    calls seen{};

    explicit noting_sandbox(std::size_t size_max) {
        const auto note = [this](delivery_batch& all) { seen.push_back(text_of(all)); };
        box.on_batch("b", note, {.size_max = size_max}).on_batch("c", note, {.size_max = size_max});
        box.on("single", [this](delivery& d) { seen.push_back(d.payload()); });
    }
    [[nodiscard]] calls run(std::string_view letters) {
        emit_letters(box, letters);
        const auto done = box.run_once();
        CHECK(done.succeeded == letters.size());
        return seen;
    }
};

/// The entries after one pass over "abcd", handled as one batch.
[[nodiscard]] std::vector<vouch::entry>
after_one_pass(sandbox& box, const std::function<std::vector<outcome>(delivery_batch&)>& handler,
               vouch::retry_policy retry = {}) {
    box.on_batch("b", handler, {.size_max = 10}, std::move(retry));
    emit_letters(box, "abcd");
    box.run_once();
    return box.entries();
}

[[nodiscard]] calls ids_of(const std::vector<vouch::testing::recorded_event>& events, event_kind what) {
    calls out;
    for (const auto& e : events) {
        if (e.what == what) {
            out.push_back(std::to_string(e.id.low));
        }
    }
    return out;
}

struct with_ended {
    std::vector<std::string>* seen;

    std::vector<outcome> work(delivery_batch& all) {
        seen->push_back("work " + text_of(all));
        return std::vector<outcome>(all.size(), vouch::retry{"no"});
    }
    outcome ended(delivery& d, vouch::ending why) {
        seen->push_back("ended " + d.payload() + (why == vouch::ending::expired ? " expired" : " exhausted"));
        return vouch::succeed{"given up"};
    }
};

} // namespace

// Which entries share a call.

TEST_CASE("batch: the entries of a claim reach the handler in one call, in the order of the claim") {
    CHECK(noting_sandbox(10).run("abcde") == calls{"abcde"});
}

TEST_CASE("batch: a call has at most size_max entries, and the rest make further calls") {
    CHECK(noting_sandbox(1).run("abc") == calls{"a", "b", "c"});
    CHECK(noting_sandbox(2).run("abcde") == calls{"ab", "cd", "e"});
    CHECK(noting_sandbox(5).run("abcde") == calls{"abcde"});
    CHECK(noting_sandbox(4).run("abcde") == calls{"abcd", "e"});
    CHECK(noting_sandbox(3).run("a") == calls{"a"});
}

TEST_CASE("batch: it runs at the place of its first entry, before single entries that come after that") {
    CHECK(noting_sandbox(10).run("a1bA2B3c") == calls{"abc", "1", "AB", "2", "3"});
    CHECK(noting_sandbox(2).run("a1bA2B3cdC") == calls{"ab", "1", "AB", "2", "3", "cd", "C"});
    CHECK(noting_sandbox(10).run("1Aa") == calls{"1", "A", "a"});
}

TEST_CASE("batch: outcomes are settled in the order of the claim, whatever the order of the calls") {
    noting_sandbox noting(2);
    std::ignore = noting.run("a1bA2Bc");
    const auto events = noting.box.events();
    CHECK(ids_of(events, event_kind::started) == calls{"1", "3", "2", "4", "6", "5", "7"});
    CHECK(ids_of(events, event_kind::succeeded) == calls{"1", "2", "3", "4", "5", "6", "7"});
}

TEST_CASE("batch: topics of one pattern share a call, routes with the same options do not") {
    sandbox box;
    calls seen;
    const auto note = [&](delivery_batch& all) { seen.push_back(text_of(all)); };
    box.on_batch("mail.#", note).on_batch("mail.urgent", note);
    for (const auto* const topic : {"mail.a", "mail.urgent", "mail.b.c", "mail.urgent", "mail"}) {
        box.emit({.topic = topic, .payload = std::string(topic) + ' '});
    }
    box.run_once();
    CHECK(seen == calls{"mail.a mail.b.c mail ", "mail.urgent mail.urgent "});
}

TEST_CASE("batch: `handle` and `run_only` make a batch of one") {
    noting_sandbox noting(10);
    emit_letters(noting.box, "abc");
    auto& runner = noting.box.runner();
    runner.run_only(noting.box.entries()[1].id);
    CHECK(noting.seen == calls{"b"});
    for (auto& e : runner.claim()) {
        std::vector one{runner.handle(std::move(e))};
        runner.settle(one);
    }
    CHECK(noting.seen == calls{"b", "a", "c"});
    CHECK(noting.box.store().counts("test")[state::succeeded] == 3);
}

TEST_CASE("batch: an entry with a lapse never shares a call, even if a caller puts it among others") {
    noting_sandbox noting(10);
    emit_letters(noting.box, "abcd");
    auto entries = noting.box.runner().claim();
    REQUIRE(entries.size() == 4);
    entries[1].lapses = 1;
    auto done = noting.box.runner().handle_all(std::move(entries));
    CHECK(noting.seen == calls{"acd", "b"});
    CHECK(noting.box.runner().settle(done).succeeded == 4);
}

// Outcomes.

TEST_CASE("batch: each entry gets its own outcome, in order") {
    sandbox box;
    const auto got = after_one_pass(box, [](delivery_batch& all) -> std::vector<outcome> {
        return {vouch::succeed{"r"}, vouch::retry{"later", all[1].now() + 9s}, vouch::bury{"never"}, vouch::release{}};
    });
    CHECK(got[0].state == state::succeeded);
    CHECK(got[0].result == "r");
    CHECK(got[1].state == state::retrying);
    CHECK(got[1].due_at == box.start() + 9s);
    CHECK(got[1].last_error == "later");
    CHECK(got[2].state == state::dead);
    CHECK(got[2].last_error == "never");
    CHECK(got[3].state == state::pending);
    CHECK(got[3].attempts == 0);
}

TEST_CASE("batch: a retry without a time is due when the policy says, as after an exception") {
    sandbox box;
    const auto got =
        after_one_pass(box, [](delivery_batch& all) { return std::vector<outcome>(all.size(), vouch::retry{"busy"}); },
                       {.backoff = vouch::fixed{7s}, .attempts_max = 2});
    for (const auto& e : got) {
        CHECK(e.state == state::retrying);
        CHECK(e.due_at == box.start() + 7s);
        CHECK(e.last_error == "busy");
    }
    box.run_until_idle();
    for (const auto& e : box.entries()) {
        CHECK(e.state == state::dead);
        CHECK(e.attempts == 2);
        CHECK(e.last_error == "busy");
    }
}

TEST_CASE("batch: follow-ups, tags and explanations belong to one entry") {
    sandbox box;
    const auto first = box.emit({.topic = "b", .payload = "a"}).id;
    const auto second = box.emit({.topic = "b", .payload = "b"}).id;
    box.emit({.topic = "b", .payload = "c"});
    box.router("next").on("#", [](delivery&) {});
    box.on_batch("b", [](delivery_batch& all) -> std::vector<outcome> {
        all[0].emit({.queue = "next", .topic = "of_a"});
        all[1].emit({.queue = "next", .topic = "of_b"});
        all[1].emit({.queue = "next", .topic = "of_b"});
        all[2].emit({.queue = "next", .topic = "of_c"}); // dropped with its failure
        all[1].tag("second");
        return {vouch::succeed{}, vouch::succeed{}, vouch::bury{"no"}};
    });
    box.run_once();
    CHECK(box.emitted("of_a") == 1);
    CHECK(box.emitted("of_b") == 2);
    CHECK(box.emitted("of_c") == 0);
    for (const auto& e : box.store().list(vouch::query::all("next"))) {
        const auto cause = e.topic == "of_a" ? first : second;
        const auto trail = box.find(cause)->trail;
        REQUIRE(e.trail.size() == trail.size() + 1);
        CHECK(std::equal(trail.begin(), trail.end(), e.trail.begin()));
    }
    for (const auto& e : box.events()) {
        CHECK((e.tag == "second") == (e.what == event_kind::succeeded && e.id == second));
    }
}

TEST_CASE("batch: what a handler emits through an outbox continues no entry's trail, in a batch of one as well") {
    for (const std::size_t entries : {1U, 2U}) {
        sandbox box;
        box.router("next").on("#", [](delivery&) {});
        box.on_batch("b", [&](delivery_batch&) { box.outbox().emit({.queue = "next", .topic = "x"}); });
        emit_letters(box, std::string(entries, 'a'));
        const vouch::tracking scope(box.outbox());
        box.run_once();
        CHECK(box.store().list(vouch::query::all("next")).front().trail.size() == 1);
    }
}

TEST_CASE("batch: an invalid follow-up buries its own entry only") {
    sandbox box;
    const auto got = after_one_pass(box, [](delivery_batch& all) {
        all[2].emit({.queue = "next", .topic = ""});
        return std::vector<outcome>(all.size());
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].state == (i == 2 ? state::dead : state::succeeded));
    }
    CHECK(got[2].last_error == "invalid_emission");
}

TEST_CASE("batch: events report each entry from its claim to its outcome") {
    sandbox box;
    box.on_batch("b", [](delivery_batch&) {});
    emit_letters(box, "abc");
    box.run_once();
    for (const auto what : {event_kind::claimed, event_kind::started, event_kind::succeeded}) {
        CHECK(ids_of(box.events(), what) == calls{"1", "2", "3"});
    }
}

// Failures.

TEST_CASE("batch: an exception is a failed attempt of every entry, retried by its own policy") {
    sandbox box;
    box.on_batch("b", [](delivery_batch&) { throw std::runtime_error("the text is not stored"); }, {},
                 {.backoff = vouch::fixed{5s}, .attempts_max = 3});
    const auto once = box.emit({.topic = "b", .attempts_max = 1}).id;
    const auto often = box.emit({.topic = "b"}).id;
    const auto brief = box.emit({.topic = "b", .expires_in = 4s}).id;
    box.run_once();
    CHECK(box.find(once)->state == state::dead);
    CHECK(box.find(once)->last_error == "std::runtime_error");
    CHECK(box.find(often)->state == state::retrying);
    CHECK(box.find(often)->due_at == box.start() + 5s);
    CHECK(box.find(brief)->state == state::dead);
    CHECK(box.find(brief)->last_error == "expired");
    box.run_until_idle();
    CHECK(box.find(often)->state == state::dead);
    CHECK(box.find(often)->attempts == 3);
}

TEST_CASE("batch: reject buries every entry of the call, and no other") {
    sandbox box;
    box.on_batch("b",
                 [](delivery_batch& all) {
                     if (text_of(all) == "ab") {
                         throw vouch::reject("no_such_host");
                     }
                 },
                 {.size_max = 2});
    emit_letters(box, "abcd");
    box.run_once();
    const auto got = box.entries();
    for (const std::size_t i : {0U, 1U}) {
        CHECK(got[i].state == state::dead);
        CHECK(got[i].last_error == "no_such_host");
        CHECK(got[i].attempts == 1);
    }
    CHECK(got[2].state == state::succeeded);
    CHECK(got[3].state == state::succeeded);
}

TEST_CASE("batch: more or fewer outcomes than entries fail them all with `wrong_outcome_count`") {
    for (const std::size_t count : {0U, 3U, 5U}) {
        sandbox box;
        const auto got = after_one_pass(box, [&](delivery_batch&) { return std::vector<outcome>(count); },
                                        {.backoff = vouch::fixed{5s}});
        for (const auto& e : got) {
            CHECK(e.state == state::retrying);
            CHECK(e.last_error == "wrong_outcome_count");
            CHECK(e.due_at == box.start() + 5s);
        }
    }
}

TEST_CASE("batch: a batch of one checks the number of its outcomes too") {
    for (const std::size_t count : {0U, 2U}) {
        sandbox box;
        box.on_batch("b", [&](delivery_batch&) { return std::vector<outcome>(count); });
        emit_letters(box, "a");
        box.run_once();
        CHECK(box.entries().front().state == state::retrying);
        CHECK(box.entries().front().last_error == "wrong_outcome_count");
    }
}

TEST_CASE("batch: entries that are expired or exhausted do not reach the handler") {
    noting_sandbox noting(10);
    auto& box = noting.box;
    const auto expired = box.emit({.topic = "b", .payload = "x", .expires_in = 1s}).id;
    emit_letters(box, "ab");
    box.pass(1s);
    auto entries = box.runner().claim();
    REQUIRE(entries.size() == 3);
    entries[1].attempts = vouch::default_attempts_max + 1;
    const auto exhausted = entries[1].id;
    auto done = box.runner().handle_all(std::move(entries));
    CHECK(noting.seen == calls{"b"});
    CHECK(box.runner().settle(done).dead == 2);
    CHECK(box.find(expired)->last_error == "expired");
    CHECK(box.find(exhausted)->last_error == "attempts_exhausted");
    CHECK(ids_of(box.events(), event_kind::started) == calls{"3"});
}

TEST_CASE("batch: a handler is not called if no entry is left for it") {
    noting_sandbox noting(10);
    noting.box.emit({.topic = "b", .expires_in = 1s});
    noting.box.emit({.topic = "b", .expires_in = 1s});
    noting.box.pass(1s);
    CHECK(noting.box.run_once().dead == 2);
    CHECK(noting.seen.empty());
}

TEST_CASE("batch: `ended` is called for one entry at a time, after the call, and decides its outcome") {
    sandbox box;
    calls seen;
    box.on_batch("b", with_ended{&seen}, {}, {.backoff = vouch::fixed{5s}, .attempts_max = 2});
    box.emit({.topic = "b", .payload = "x", .expires_in = 1s});
    box.pass(1s);
    emit_letters(box, "a");
    box.emit({.topic = "b", .payload = "b", .attempts_max = 1});
    box.run_once();
    CHECK(seen == calls{"work ab", "ended x expired", "ended b exhausted"});
    seen.clear();
    box.run_until_idle();
    CHECK(seen == calls{"work a", "ended a exhausted"});
    for (const auto& e : box.entries()) {
        CHECK(e.state == state::succeeded);
        CHECK(e.result == "given up");
    }
}

TEST_CASE("batch: a stop hands back the entries whose call has not begun, without an attempt spent") {
    sandbox box;
    std::stop_source stop;
    calls seen;
    box.on_batch("b",
                 [&](delivery_batch& all) {
                     seen.push_back(text_of(all));
                     stop.request_stop();
                     CHECK(all.stop().stop_requested());
                     CHECK(all[0].stop().stop_requested());
                 },
                 {.size_max = 2});
    box.on("single", [&](delivery& d) { seen.push_back(d.payload()); });
    emit_letters(box, "a1bcde");
    const auto done = box.runner().run_once(stop.get_token());
    CHECK(seen == calls{"ab"});
    CHECK(done.succeeded == 2);
    CHECK(done.released == 4);
    for (const auto& e : box.entries()) {
        CHECK(e.attempts == (e.state == state::succeeded ? 1U : 0U));
    }
}

TEST_CASE("batch: a saga that has begun is not given to a batch handler") {
    noting_sandbox noting(10);
    emit_letters(noting.box, "abc");
    auto entries = noting.box.runner().claim();
    entries[1].progress = std::string(vouch::saga_progress_mark) + vouch::saga_progress_format;
    auto done = noting.box.runner().handle_all(std::move(entries));
    CHECK(noting.seen == calls{"ac"});
    CHECK(noting.box.runner().settle(done).released == 1);
}

TEST_CASE("batch: options out of their range are refused") {
    sandbox box;
    const auto refused = [&](vouch::batch_options how) {
        return kind_of([&] {
            box.on_batch(
                "b", [](delivery_batch&) {}, how);
        });
    };
    CHECK(refused({.size_max = 0}) == vouch::error_kind::invalid_argument);
    CHECK(refused({.wait = -1us}) == vouch::error_kind::invalid_argument);
    CHECK(refused({.wait = vouch::duration::max()}) == vouch::error_kind::invalid_argument);
    CHECK_FALSE(box.router().has_route("b"));
    CHECK(refused({.size_max = 1, .wait = 0us}) == std::nullopt);
    CHECK(refused({.size_max = static_cast<std::size_t>(-1), .wait = 24h}) == std::nullopt);
    const auto why = error_of([&] { box.on_batch("c", [](delivery_batch&) {}, {.size_max = 0}); });
    CHECK(std::string(why->what()).find("on_batch: size_max is 0; it must be at least 1") != std::string::npos);
}

} // namespace batch_handlers_test
