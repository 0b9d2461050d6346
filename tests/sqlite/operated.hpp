// SPDX-License-Identifier: MIT
// A database with entries in every state, and the tool that looks at it.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

using namespace std::chrono_literals;
using vouch::state;

/// A database with some of everything, and the tool for it.
struct operated {
    sqlite_test::folder in{};
    std::string path = in.fresh_path();
    vouch::sqlite::store store{path};
    vouch::outbox<vouch::sqlite::store> outbox{store};
    vouch::id waits = emit({.topic = "later", .due_in = 240h});
    vouch::id due = emit({.topic = "now", .payload = "a \"payload\"\n", .headers = {{"from", "ada"}}});
    vouch::id dead = emit({.topic = "bad"});
    vouch::id head = emit({.topic = "first", .lane = "lane-1", .due_in = 48h});
    vouch::id blocked = emit({.topic = "second", .lane = "lane-1"});
    vouch::id held = emit({.topic = "held"});
    vouch::id parent = emit({.topic = "waits", .due_in = 240h});
    vouch::id command = emit({.topic = "command", .parent = parent, .due_in = 24h});
    vouch::id ended = emit({.topic = "good"});

    operated() {
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

[[nodiscard]] inline answer ask_tool(const std::string& arguments) {
    return ask(std::string(VOUCH_TOOL) + ' ' + arguments);
}

[[nodiscard]] inline bool says(const answer& a, const std::string& what) {
    UNSCOPED_INFO(a.said);
    return a.said.find(what) != std::string::npos;
}

} // namespace sqlite_tool_test

#endif
