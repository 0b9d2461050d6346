// SPDX-License-Identifier: MIT
// The operator's tool, run as an operator runs it: what it prints, what it changes, and its exit codes.
#include <cstdio>
#include <filesystem>
#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

TEST_CASE("tool: stats and list tell what is there, for people and for scripts") {
    const operated o;
    const auto stats = ask_tool("stats " + o.path);
    CHECK(stats.code == 0);
    CHECK(has_row(stats, "QUEUE PENDING RETRYING CLAIMED SUCCEEDED DEAD NEXT DUE"));
    CHECK(has_row(stats, "q 6 0 1 1 1 overdue 0."));
    const std::string json = R"({"queue":"q","entries":{"pending":6,"retrying":0,"claimed":1,"succeeded":1,"dead":1})";
    CHECK(says(ask_tool("stats --json " + o.path), "[" + json));
    CHECK(ask_tool("stats --ndjson " + o.path).said.starts_with(json));
    const auto dead = ask_tool("list " + o.path + " --state dead");
    CHECK(dead.code == 0);
    CHECK(has_row(dead, "ID QUEUE TOPIC STATE ATTEMPTS CHANGED ERROR"));
    CHECK(has_row(dead, to_string(o.dead) + " q bad dead 1 0."));
    CHECK(says(dead, " ago  no_good\n"));
    CHECK_FALSE(says(dead, to_string(o.due)));
    CHECK(says(ask_tool("list " + o.path + " --state claimed"), to_string(o.held)));
    CHECK(says(ask_tool("list " + o.path + " --topic now --json"), R"([{"id":")" + to_string(o.due) + '"'));
    CHECK(ask_tool("list " + o.path + " --queue nobody").said.empty());
    CHECK(ask_tool("list " + o.path + " --limit 1 --json").said.find("},{") == std::string::npos);
}

TEST_CASE("tool: show tells everything but the payload, and why an entry is not running") {
    const operated o;
    const auto show = [&](const vouch::id& id, const std::string& more = "") {
        const auto a = ask_tool("show " + o.path + ' ' + to_string(id) + more);
        CHECK(a.code == 0);
        return a;
    };
    CHECK(says(show(o.waits), "due 20"));
    CHECK(says(show(o.waits), "(in 9 days)"));
    CHECK(says(show(o.due), "; workers are busy with other entries of queue q: w-1. "));
    CHECK(says(show(o.due), "header           from: ada"));
    CHECK(says(show(o.due), "payload          12 bytes"));
    CHECK_FALSE(says(show(o.due), "a \"payload\""));
    CHECK(says(show(o.due, " --payload"), "a \"payload\"\\x0a"));
    CHECK(says(show(o.due, " --payload --json"), R"("payload_hex":"6120227061796c6f6164220a")"));
    CHECK(says(show(o.dead), " with error no_good; `requeue` gives it a successor"));
    CHECK(says(show(o.ended), "the entry succeeded "));
    CHECK(says(show(o.blocked), "blocked in lane lane-1 behind " + to_string(o.head) + ", which is pending"));
    CHECK(says(show(o.blocked, " --json"), R"("waiting":"blocked")"));
    CHECK(says(show(o.head), "due 20"));
    CHECK(says(show(o.held), "held by w-1 until 20"));
    CHECK(says(show(o.parent), "waits for the reply of " + to_string(o.command) + " (command, pending)"));
    CHECK(says(show(o.parent, " --json"), R"("waiting":"waits_for_reply")"));
}

TEST_CASE("tool: show says how many claims in a row ended with their lease") {
    operated o;
    const auto now = o.outbox.now();
    for (const auto at : {now, now + 1s, now + 2s}) {
        CHECK(vouch::claim(o.store, {.queue = "q", .now = at, .lease = 1s, .only = o.due}).size() == 1);
    }
    const auto show = "show " + o.path + ' ' + to_string(o.due);
    CHECK(says(ask_tool(show), "attempts         2, lapses 2, failures 0, claims ever 3"));
    CHECK(says(ask_tool(show + " --json"), R"("attempts":2,"lapses":2,"failures":0,"epoch":3)"));
}

TEST_CASE("tool: retry, cancel, requeue and purge change what they say, and ask before what cannot be undone") {
    operated o;
    const auto tool = [&](const std::string& verb, const vouch::id& id, const std::string& more = "") {
        return ask_tool(verb + ' ' + o.path + ' ' + to_string(id) + more);
    };
    CHECK(says(tool("retry", o.waits), "the entry is due now"));
    CHECK(o.store.find(o.waits)->due_at <= o.outbox.now());
    CHECK(tool("retry", o.waits).code == 0);
    CHECK(tool("retry", o.dead).code == 1);

    CHECK(tool("cancel", o.due).code == 1);
    CHECK(says(tool("cancel", o.due), "needs --yes"));
    CHECK(o.store.find(o.due)->state == state::pending);
    CHECK(tool("cancel", o.due, " --yes").code == 0);
    CHECK(o.store.find(o.due)->state == state::dead);
    CHECK(o.store.find(o.due)->last_error == "cancelled");
    CHECK(tool("cancel", o.held, " --yes").code == 1); // a worker holds it
    CHECK(says(tool("cancel", o.due, " --yes --json"), R"({"verdict":"repeated"})"));

    CHECK(says(tool("requeue", o.dead), "the successor is "));
    CHECK(says(tool("requeue", o.dead), "the entry already has a successor: "));
    CHECK(tool("requeue", o.held).code == 1);
    CHECK(tool("requeue", o.command).code == 1);

    const auto purge = "purge " + o.path + " --queue q --older-than 0s --state succeeded";
    CHECK(ask_tool(purge).code == 1);
    CHECK(says(ask_tool(purge + " --yes"), "1 removed"));
    CHECK_FALSE(o.store.find(o.ended).has_value());
    CHECK(says(ask_tool("purge " + o.path + " --queue q --older-than 1h --yes --json"), R"({"purged":0})"));
    CHECK(o.store.find(o.due).has_value());
}

TEST_CASE("tool: retry of an entry that a worker holds says that it is due when the claim ends") {
    operated o;
    const auto retry = "retry " + o.path + ' ' + to_string(o.held);
    CHECK(says(ask_tool(retry),
               "a worker holds the entry; if it has to run again, it is due as soon as that claim ends"));
    CHECK(says(ask_tool(retry), "it is already marked"));
    CHECK(o.store.find(o.held)->woken);
}

TEST_CASE("tool: bad input gets a sentence and its own exit code") {
    const operated o;
    const std::string nobody = "00000000-0000-0000-0000-000000000001";
    CHECK(ask_tool("").code == 2);
    CHECK(ask_tool("help").code == 0);
    CHECK(says(ask_tool("dance " + o.path), "unknown verb dance"));
    CHECK(ask_tool("stats").code == 2);
    CHECK(ask_tool("show " + o.path).code == 2);
    CHECK(ask_tool("show " + o.path + " xyz").code == 2);
    CHECK(ask_tool("show " + o.path + " ffff").code == 3);
    CHECK(ask_tool("list " + o.path + " --state odd").code == 2);
    CHECK(ask_tool("list " + o.path + " --limit").code == 2);
    CHECK(ask_tool("list " + o.path + " --limit x").code == 2);
    CHECK(ask_tool("list " + o.path + " --limit 1000000").code == 2);
    CHECK(ask_tool("list " + o.path + " --sideways").code == 2);
    CHECK(ask_tool("purge " + o.path + " --queue q --older-than 5 --yes").code == 2);
    CHECK(ask_tool("purge " + o.path + " --yes").code == 2);
    CHECK(ask_tool("stats " + o.path + " --prefix 'a b'").code == 2);
    CHECK(ask_tool("show " + o.path + ' ' + nobody).code == 3);
    CHECK(ask_tool("cancel --yes " + o.path + ' ' + nobody).code == 3);
    CHECK(ask_tool("requeue " + o.path + ' ' + nobody).code == 3);
    CHECK(ask_tool("stats " + o.in.file("no-such-file")).code == 4);
    CHECK_FALSE(std::filesystem::exists(o.in.file("no-such-file")));
    CHECK(says(ask_tool("stats " + o.path + " --prefix other_"), "has no tables with the prefix other_"));
    CHECK(ask_tool("stats " + o.path + " --prefix other_").code == 4);
}

} // namespace sqlite_tool_test

#endif
