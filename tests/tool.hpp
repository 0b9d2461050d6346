// SPDX-License-Identifier: MIT
// The operator's tool as a test runs it, and entries in every state for it to look at.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>

#include <sys/wait.h>

#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace tool_test {

using namespace std::chrono_literals;

/// Some of everything in the queue `q` of a store.
template <class Store>
struct some_of_everything {
    Store& store;
    vouch::outbox<Store> outbox{store};
    vouch::id waits = emit({.topic = "later", .due_in = 240h});
    vouch::id due = emit({.topic = "now", .payload = "a \"payload\"\n", .headers = {{"from", "ada"}}});
    vouch::id dead = emit({.topic = "bad"});
    vouch::id head = emit({.topic = "first", .lane = "lane-1", .due_in = 48h});
    vouch::id blocked = emit({.topic = "second", .lane = "lane-1"});
    vouch::id held = emit({.topic = "held"});
    vouch::id parent = emit({.topic = "waits", .due_in = 240h});
    vouch::id command = emit({.topic = "command", .parent = parent, .due_in = 24h});
    vouch::id ended = emit({.topic = "good"});

    explicit some_of_everything(Store& in) : store(in) {
        const auto claimed = [&](const vouch::id& id) {
            return ticket_of(
                vouch::claim(store, {.queue = "q", .now = outbox.now(), .lease = 1h, .worker = "w-1", .only = id})
                    .at(0));
        };
        const auto good = claimed(ended);
        const auto bad = claimed(dead);
        static_cast<void>(claimed(held));
        vouch::transact(store, [&](auto& tx) {
            const std::array settles{vouch::settle{good, vouch::succeed{}},
                                     vouch::settle{bad, vouch::bury{.error = "no_good"}}};
            static_cast<void>(tx.settle(settles, outbox.now()));
        });
    }

    vouch::id emit(vouch::emission e) {
        e.queue = "q";
        return outbox.emit(e).front().id;
    }
};

struct answer {
    int code = -1;
    std::string said{}; ///< on both streams
};

[[nodiscard]] inline answer ask(const std::string& call) {
    const auto command = "( " + call + " ) 2>&1 </dev/null";
    auto* const pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    answer out;
    std::array<char, 4096> some{};
    for (auto got = fread(some.data(), 1, some.size(), pipe); got > 0; got = fread(some.data(), 1, some.size(), pipe)) {
        out.said.append(some.data(), got);
    }
    out.code = WEXITSTATUS(pclose(pipe));
    return out;
}

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off
[[nodiscard]] inline answer ask_tool(const std::string& arguments) {
    return ask(std::string(VOUCH_TOOL) + ' ' + arguments);
}
#endif

[[nodiscard]] inline bool says(const answer& a, const std::string& what) {
    UNSCOPED_INFO(a.said);
    return a.said.find(what) != std::string::npos;
}

/// Whether a line begins with these words, with any number of spaces between them.
[[nodiscard]] inline bool has_row(const answer& a, const std::string& words) {
    UNSCOPED_INFO(a.said);
    std::istringstream lines(a.said);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream parts(line);
        std::string joined;
        for (std::string part; parts >> part;) {
            joined += (joined.empty() ? "" : " ") + part;
        }
        if (joined.starts_with(words)) {
            return true;
        }
    }
    return false;
}

} // namespace tool_test
