// SPDX-License-Identifier: MIT
// What the operator's tool says of itself: help, completions, the manual page, colours; and copies of a file.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

namespace {

/// The names of all commands, from the help.
[[nodiscard]] std::vector<std::string> tool_commands() {
    std::vector<std::string> out;
    std::istringstream lines(ask_tool("help").said);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("  vouch ")) {
            out.push_back(line.substr(8, line.find(' ', 8) - 8));
        }
    }
    return out;
}

/// What the terminal gets, with a terminal.
[[nodiscard]] answer ask_at_terminal(const std::string& environment, const std::string& call) {
    return ask(environment + " TERM=xterm script -qec '" + std::string(VOUCH_TOOL) + ' ' + call + "' /dev/null");
}

} // namespace

TEST_CASE("tool: every command has help with its options, and is in the manual page and the completions") {
    const auto commands = tool_commands();
    CHECK(commands.size() > 15);
    const auto manual = ask_tool("man");
    const auto bash = ask_tool("completion bash");
    const auto zsh = ask_tool("completion zsh");
    for (const auto& command : commands) {
        CAPTURE(command);
        const auto help = ask_tool(command + " --help");
        CHECK(help.code == 0);
        CHECK(help.said.starts_with("vouch " + command));
        CHECK(ask_tool("help " + command).said == help.said);
        CHECK(says(manual, ".SS \"vouch " + command));
        CHECK(says(bash, "        " + command + ") words=\"--help"));
        CHECK(says(zsh, "'" + command + ":"));
    }
    CHECK(says(ask_tool("requeue --help"), "--dry-run"));
    CHECK(says(ask_tool("requeue --help"), "  vouch requeue work.db --queue mail --error no_handler --dry-run\n"));
    CHECK(says(manual, "\\-\\-older\\-than DURATION"));
    CHECK(ask_tool("--help").said == ask_tool("help").said);
    CHECK(ask_tool("--version").said.starts_with("vouch " + std::to_string(VOUCH_VERSION_MAJOR) + '.'));
    CHECK(ask_tool("completion fish").code == 2);
    CHECK(ask_tool("help dance").code == 2);
}

TEST_CASE("tool: bash completes commands, options and their values") {
    const auto completed = [](const std::string& words, int at) {
        return ask("bash -c 'source <(" + std::string(VOUCH_TOOL) + " completion bash); COMP_WORDS=(vouch " + words +
                   "); COMP_CWORD=" + std::to_string(at) + "; _vouch; echo \"${COMPREPLY[*]}\"'")
            .said;
    };
    CHECK(completed("req", 1) == "requeue\n");
    CHECK(completed("list work.db --ol", 3) == "--older-than\n");
    CHECK(completed("list work.db --state c", 4) == "claimed compensated\n");
    CHECK(completed("completion z", 2) == "zsh\n");
}

TEST_CASE("tool: colours are for a terminal only, and not if NO_COLOR is set") {
    const operated o;
    if (ask("command -v script").code != 0) {
        WARN("script is not installed");
        return;
    }
    CHECK(says(ask_at_terminal("", "list --state dead " + o.path), "\x1b[31mdead\x1b[0m"));
    CHECK(ask_at_terminal("NO_COLOR=1", "list --state dead " + o.path).said.find('\x1b') == std::string::npos);
    CHECK(ask_tool("list --state dead " + o.path).said.find('\x1b') == std::string::npos);
}

TEST_CASE("tool: VOUCH_STORE names the store if the command line does not") {
    const operated o;
    const auto tool = "VOUCH_STORE=" + o.path + ' ' + VOUCH_TOOL + ' ';
    CHECK(has_row(ask(tool + "stats"), "q 6 0 1 1 1"));
    CHECK(says(ask(tool + "show " + to_string(o.due)), "topic            now"));
    CHECK(says(ask(tool + "requeue " + to_string(o.dead)), "the successor is "));
    CHECK(says(ask(tool + "requeue --queue q --dry-run"), "would requeue 1 entry"));
    CHECK(ask(tool + "stats " + o.in.file("other.db")).code == 4); // the command line wins
    CHECK(ask(tool + "backup " + o.in.file("copy.db")).code == 0);
    CHECK(says(ask("env -u VOUCH_STORE " + std::string(VOUCH_TOOL) + " stats"), "VOUCH_STORE"));
    CHECK(ask_tool("show " + o.path).code == 2);
}

TEST_CASE("tool: backup copies a file beside a worker, and overwrites none") {
    operated o;
    const auto copy = o.in.file("copy.db");
    const auto tx = o.store.begin(); // another process writes
    CHECK(ask_tool("backup " + o.path + ' ' + copy).code == 0);
    CHECK(vouch::sqlite::store(copy).counts("q") == o.store.counts("q"));
    CHECK(vouch::sqlite::store(copy).find(o.due) == o.store.find(o.due));
    CHECK(sqlite_test::application(copy).text("PRAGMA integrity_check") == "ok");
    std::ofstream(o.in.file("mine")) << "precious";
    const auto refused = ask_tool("backup " + o.path + ' ' + o.in.file("mine"));
    CHECK(refused.code == 1);
    CHECK(says(refused, "exists; backup never overwrites a file"));
    CHECK(std::filesystem::file_size(o.in.file("mine")) == 8);
    CHECK(ask_tool("backup " + o.path + ' ' + o.in.file("no-folder/copy.db")).code == 4);
    CHECK(ask_tool("backup " + o.in.file("nothing.db") + ' ' + o.in.file("copy2.db")).code == 4);
    for (const auto& file : std::filesystem::directory_iterator(o.in.path())) {
        CHECK(file.path().string().find(".part-") == std::string::npos);
    }
}

TEST_CASE("tool: no command lets stored bytes reach the terminal, and huge names do not break a table") {
    operated o;
    const std::string hidden = "\x1b[2J\xff";
    const auto saga = vouch::define_saga<std::string>("order").step("pay", [] {}).build();
    static_cast<void>(o.outbox.start(saga, "q", std::string()));
    sqlite_test::application app(o.path);
    for (const std::string column : {"topic", "worker", "last_error"}) {
        app.execute("UPDATE vouch_entries SET " + column + " = CAST(X'611b5b324aff62' AS TEXT)");
    }
    app.execute("UPDATE vouch_relations SET lane = CAST(X'611b5b324aff62' AS TEXT) WHERE lane IS NOT NULL");
    for (const std::string verb : {"list", "running", "ages", "watch --count 1", "stats", "export"}) {
        for (const std::string how : {"", " --json", " --ndjson"}) {
            if (verb == "export" && !how.empty()) {
                continue;
            }
            CAPTURE(verb + how);
            const auto a = ask_tool(verb + how + ' ' + o.path);
            CHECK(a.code == 0);
            CHECK(a.said.find('\x1b') == std::string::npos);
            CHECK(a.said.find('\xff') == std::string::npos);
        }
    }
    for (const auto& id : {o.waits, o.due, o.dead, o.head, o.blocked, o.held, o.parent, o.command, o.ended}) {
        for (const std::string verb : {"show ", "show --json ", "why ", "why --json ", "saga "}) {
            const auto a = ask_tool(verb + o.path + ' ' + to_string(id));
            CHECK(a.said.find('\x1b') == std::string::npos);
            CHECK(a.said.find('\xff') == std::string::npos);
        }
    }
    app.execute("UPDATE vouch_entries SET topic = printf('%.*c', 100000, 'x')");
    const auto a = ask_tool("list " + o.path);
    std::istringstream lines(a.said);
    for (std::string line; std::getline(lines, line);) {
        CHECK(line.size() < 400);
    }
}

} // namespace sqlite_tool_test

#endif
