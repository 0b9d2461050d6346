// SPDX-License-Identifier: MIT
// What the operator's tool does on a store of any kind. `Operated` has a store with some of everything, and `at`: the
// words that name the store on the command line, with a space behind them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "tool.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace tool_test {

using id_set = std::set<std::string>;

/// The ids that `list` prints as JSON.
[[nodiscard]] inline id_set ids_in(const std::string& call) {
    const auto a = ask_tool(call + " --ndjson");
    UNSCOPED_INFO(a.said);
    CHECK(a.code == 0);
    id_set out;
    std::istringstream lines(a.said);
    for (std::string line; std::getline(lines, line);) {
        out.insert(line.substr(7, 36)); // {"id":"
    }
    return out;
}

template <class... Ids>
[[nodiscard]] id_set these(const Ids&... ids) {
    return {to_string(ids)...};
}

/// `at` names a store without entries.
inline void an_empty_store_is_answered(const std::string& at) {
    const auto said = [&](const std::string& verb) {
        const auto a = ask_tool(verb + ' ' + at);
        CHECK(a.code == 0);
        return a.said;
    };
    CHECK(said("stats") == "no entries\n");
    CHECK(said("stats --json") == "[]\n");
    CHECK(said("list --state dead").empty());
    CHECK(said("list --json") == "[]\n");
    CHECK(said("list --ndjson").empty());
    CHECK(said("running") == "no worker holds an entry\n");
    CHECK(said("ages").find("0 due; 0 due later\n") != std::string::npos);
    CHECK(said("watch --count 1").find("no entries\n") != std::string::npos);
    CHECK(said("export").empty());
    CHECK(said("requeue --dry-run --error e") == "would requeue 0 entries\n");
    CHECK(said("retry --yes --queue q") == "0 due now, 0 already due, 0 ended meanwhile\n");
    CHECK(said("purge --yes --queue q --older-than 0s") == "0 removed\n");
    CHECK(ask_tool("why " + at + "0193").code == 3);
    CHECK(ask_tool("saga " + at + "00000000-0000-0000-0000-000000000001").code == 3);
}

template <class Operated>
void filters_select_exactly(Operated& o) {
    const auto list = "list " + o.at;
    const auto keyed = o.emit({.topic = "keyed", .key = "k-1", .due_in = 1h});
    const auto one = o.emit({.topic = "member", .group = "g-1", .due_in = 1h});
    const auto two = o.emit({.topic = "member", .group = "g-1", .due_in = 1h});
    const auto elsewhere = o.outbox.emit({.queue = "other", .topic = "now"}).front().id;
    CHECK(ids_in(list + "--queue other") == these(elsewhere));
    CHECK(ids_in(list + "--topic now") == these(o.due, elsewhere));
    CHECK(ids_in(list + "--topic now --queue q") == these(o.due));
    CHECK(ids_in(list + "--key k-1") == these(keyed));
    CHECK(ids_in(list + "--key k-1 --queue other").empty());
    CHECK(ids_in(list + "--lane lane-1") == these(o.head, o.blocked));
    CHECK(ids_in(list + "--group g-1") == these(one, two));
    CHECK(ids_in(list + "--group g-1 --queue other").empty());
    CHECK(ids_in(list + "--parent " + to_string(o.parent)) == these(o.command));
    CHECK(ids_in(list + "--error no_good") == these(o.dead));
    CHECK(ids_in(list + "--error no_goo").empty());
    CHECK(ids_in(list + "--worker w-1") == these(o.dead, o.held, o.ended));
    CHECK(ids_in(list + "--worker w-1 --state claimed") == these(o.held));
    CHECK(ids_in(list + "--state dead") == these(o.dead));
    CHECK(ids_in(list + "--state succeeded") == these(o.ended));
    CHECK(ids_in(list + "--older-than 1h").empty());
    CHECK(ids_in(list + "--newer-than 1h").size() == 13);
    CHECK(ids_in(list + "--newer-than 0s").empty());
}

/// An entry whose last change was two hours ago, beside those of now.
template <class Operated>
void ages_are_those_of_the_last_change(Operated& o) {
    const vouch::id old{.high = 7, .low = 7};
    const std::array drafts{vouch::draft{.id = old, .queue = "q", .topic = "old"}};
    vouch::enqueue(o.store, drafts, o.outbox.now() - 2h);
    CHECK(ids_in("list " + o.at + "--older-than 1h") == these(old));
    CHECK(ids_in("list " + o.at + "--newer-than 1h").count(to_string(old)) == 0);
    const auto ages = ask_tool("ages " + o.at);
    CHECK(has_row(ages, "under 6 h 1 #"));
    CHECK(says(ages, "3 due, the oldest for 2 h; 4 due later")); // the blocked one is due, too
    CHECK(says(ask_tool("ages --ndjson " + o.at), R"({"waiting":"under 6 h","entries":1})"));
}

template <class Operated>
void prefixes_of_ids_are_enough(Operated& o) {
    const auto make = [&](std::uint64_t high, std::uint64_t low) {
        const vouch::id id{.high = high, .low = low};
        vouch::enqueue(o.store, std::array{vouch::draft{.id = id, .queue = "ids", .topic = "t"}}, o.outbox.now());
        return id;
    };
    const auto first = make(0xfedc'ba98'0000'0000, 1);
    const auto second = make(0xfedc'ba98'1000'0000, 2);
    for (const std::string prefix : {"fedcba98-0", "fedcba980", "FEDCBA98-0000-0000"}) {
        CHECK(says(ask_tool("show " + o.at + prefix), "id               " + to_string(first)));
    }
    CHECK(says(ask_tool("why " + o.at + "fedcba981"), "due since "));
    const auto ambiguous = ask_tool("show " + o.at + "fedc");
    CHECK(ambiguous.code == 2);
    CHECK(says(ambiguous, "several ids begin with fedc: " + to_string(first) + ", " + to_string(second)));
    CHECK(ask_tool("cancel --yes " + o.at + "fedc").code == 2);
    CHECK(o.store.find(first)->state == vouch::state::pending);
    CHECK(ask_tool("cancel --yes " + o.at + "fedcba980").code == 0);
    CHECK(o.store.find(first)->state == vouch::state::dead);
    CHECK(o.store.find(second)->state == vouch::state::pending);
    CHECK(ask_tool("show " + o.at + "fedd").code == 3);
}

/// Every reason, by the code and the sentence of `why`.
template <class Operated>
void why_names_the_reason(Operated& o) {
    const auto why = [&](const vouch::id& id, const std::string& code, const std::string& sentence) {
        CAPTURE(code);
        CHECK(says(ask_tool("why --json " + o.at + to_string(id)), R"("waiting":")" + code + '"'));
        const auto a = ask_tool("why " + o.at + to_string(id));
        CHECK(a.code == 0);
        CHECK(says(a, sentence));
    };
    why(o.waits, "due_later", "due 20");
    why(o.due, "queued", "workers are busy with other entries of queue q: w-1");
    why(o.dead, "dead", "with error no_good; `requeue` gives it a successor");
    why(o.ended, "succeeded", "the entry succeeded ");
    why(o.held, "held", "held by w-1 until 20");
    why(o.blocked, "blocked", "behind " + to_string(o.head) + ", which is pending. That one is due 20");
    why(o.parent, "waits_for_reply", to_string(o.command) + " (command, pending). That one is due 20");

    const auto now = o.outbox.now();
    const auto claim = [&](const std::string& queue, vouch::time_point at) {
        return ticket_of(vouch::claim(o.store, {.queue = queue, .now = at, .lease = 1s, .worker = "w-9"}).at(0));
    };
    const auto lost = o.outbox.emit({.queue = "lost", .topic = "t"}).front().id;
    static_cast<void>(claim("lost", now + 1s));
    const auto tired = o.outbox.emit({.queue = "tired", .topic = "t", .attempts_max = 1}).front().id;
    const auto failing = o.outbox.emit({.queue = "failing", .topic = "t", .attempts_max = 9}).front().id;
    for (const auto& [queue, at] :
         {std::pair(std::string("tired"), now), std::pair(std::string("failing"), now + 1h)}) {
        const std::array settles{vouch::settle{claim(queue, now + 1s), vouch::retry{.error = "smtp", .at = at}}};
        vouch::transact(o.store, [&](auto& tx) { static_cast<void>(tx.settle(settles, now)); });
    }
    const auto alone = o.outbox.emit({.queue = "alone", .topic = "t"}).front().id;
    const auto behind = o.outbox.emit({.queue = "alone", .topic = "t"}).front().id;
    const auto expired = o.outbox.emit({.queue = "late", .topic = "t", .expires_in = 1us}).front().id;
    why(alone, "due", "; no worker has claimed it. Is a worker running for queue alone?");
    why(behind, "due", "; 1 entry of the queue is due before it; no worker has claimed it");
    why(tired, "attempts_spent", "all attempts are spent (1), so the next claim ends it as dead");
    why(failing, "backs_off", "; attempt 1 of 9 failed with smtp; `retry` makes it due now");
    why(expired, "expired", ", so the next claim ends it as dead");
    std::this_thread::sleep_until(std::chrono::system_clock::time_point(now + 2s)); // the lease is over then
    why(lost, "lease_over", "held by w-9, whose lease expired 0.");
}

template <class Operated>
void running_shows_who_holds_what(Operated& o) {
    const auto now = o.outbox.now();
    const auto lapsed = o.outbox.emit({.queue = "lost", .topic = "slow"}).front().id;
    REQUIRE(vouch::claim(o.store, {.queue = "lost", .now = now + 1ms, .lease = 1us, .worker = "w-2"}).size() == 1);
    const auto a = ask_tool("running " + o.at);
    CHECK(a.code == 0);
    CHECK(has_row(a, "WORKER ID QUEUE TOPIC ATTEMPT HELD FOR LEASE"));
    CHECK(has_row(a, "w-1 " + to_string(o.held) + " q held 1 "));
    CHECK(says(a, " s     59 min left\n"));
    CHECK(has_row(a, "w-2 " + to_string(lapsed) + " lost slow 1 "));
    CHECK(says(a, "expired 0."));
    CHECK_FALSE(says(a, to_string(o.due)));
    CHECK_FALSE(says(ask_tool("running --worker w-2 " + o.at), "w-1"));
    CHECK(says(ask_tool("running --json " + o.at), R"("lease_is_over":true)"));
    CHECK(ask_tool("running --queue none " + o.at).said == "no worker holds an entry\n");
}

/// Dead entries of queue `bulk` with two errors.
template <class Operated>
void bury_some(Operated& o, int count) {
    constexpr int at_once = 5000;
    for (int first = 0; first < count; first += at_once) {
        std::vector<vouch::emission> some;
        for (int i = first; i < std::min(count, first + at_once); ++i) {
            some.push_back({.queue = "bulk", .topic = i % 2 == 0 ? "even" : "odd"});
        }
        static_cast<void>(o.outbox.emit(some));
    }
    vouch::router router(o.outbox);
    router.on("even", [](vouch::delivery&) { throw vouch::reject("smtp_down"); });
    router.on("odd", [](vouch::delivery&) { throw vouch::reject("no_customer"); });
    vouch::runner(o.outbox, router, {.queue = "bulk", .batch_size = 1000}).run_until_idle();
}

template <class Operated>
void bulk_acts_count_first_and_change_what_matches(Operated& o) {
    using vouch::state;
    bury_some(o, 500);
    const auto requeue = "requeue " + o.at + "--error smtp_down";
    CHECK(ask_tool(requeue + " --dry-run").said == "would requeue 250 entries\n");
    CHECK(says(ask_tool(requeue + " --dry-run --json"), R"({"matched":250,"sagas":0,"complete":true,"dry_run":true})"));
    const auto asked = ask_tool(requeue);
    CHECK(asked.code == 1);
    CHECK(says(asked, "requeue 250 entries: needs --yes"));
    CHECK(o.store.counts("bulk").live() == 0);
    CHECK(says(ask_tool(requeue + " --yes"), "250 requeued, 0 already had a successor, 0 refused"));
    CHECK(o.store.counts("bulk").live() == 250);
    CHECK(says(ask_tool(requeue + " --yes"), "0 requeued, 250 already had a successor, 0 refused"));

    const auto cancel = "cancel " + o.at + "--queue bulk --topic even";
    CHECK(ask_tool(cancel + " --dry-run").said == "would cancel 250 entries\n");
    CHECK(says(ask_tool(cancel + " --yes"), "250 cancelled, 0 already cancelled, 0 claimed or ended meanwhile"));
    CHECK(o.store.counts("bulk")[state::dead] == 750);
    CHECK(ask_tool("cancel --dry-run --queue q " + o.at).said == "would cancel 6 entries\n"); // not the held one

    CHECK(ask_tool("retry --dry-run --queue q --topic later " + o.at).said == "would retry 1 entry\n");
    CHECK(says(ask_tool("retry --yes --queue q --topic later " + o.at), "1 due now, 0 already due, 0 ended meanwhile"));
    CHECK(o.store.find(o.waits)->due_at <= o.outbox.now());

    CHECK(says(ask_tool("purge --dry-run --queue bulk --older-than 0s " + o.at), "at most 750 ended entries"));
    CHECK(says(ask_tool("purge --yes --queue bulk --older-than 0s " + o.at), "750 removed"));
    CHECK(o.store.counts("bulk").total() == 0);
    CHECK(says(ask_tool("cancel --yes --older-than 1h " + o.at), "0 cancelled"));
}

template <class Operated>
void an_interrupted_act_is_finished_by_another(Operated& o, int count) {
    bury_some(o, count);
    // Below the others, so that it does not finish before it is seen.
    const auto call = "nice -n 19 " + std::string(VOUCH_TOOL) + " requeue --yes --queue bulk " + o.at;
    // Interrupt it as soon as the first commits are seen.
    const auto first = ask(call + " & pid=$!; looks=0; while [ $looks -lt 1000 ] && [ $(" + std::string(VOUCH_TOOL) +
                           " list --limit 1 --state pending --queue bulk " + o.at +
                           " | wc -l) = 0 ]; do looks=$((looks + 1)); done; kill -INT $pid; wait $pid");
    CHECK(first.code == 1);
    CHECK(says(first, "interrupted; the same command does the rest, and --after "));
    const auto done = o.store.counts("bulk").live();
    CHECK(done > 0);
    CHECK(done < static_cast<std::size_t>(count));
    const auto again = ask_tool("requeue --yes --queue bulk " + o.at);
    CHECK(says(again, std::to_string(static_cast<std::size_t>(count) - done) + " requeued, " + std::to_string(done) +
                          " already had a successor"));
    CHECK(o.store.counts("bulk").live() == static_cast<std::size_t>(count));
}

} // namespace tool_test

#endif
