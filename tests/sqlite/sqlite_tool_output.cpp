// SPDX-License-Identifier: MIT
// What the operator's tool prints: pages, extreme times, and bytes that must not reach a terminal.
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

TEST_CASE("tool: what is stored can neither break the JSON nor command a terminal") {
    operated o;
    const auto id = o.emit({.topic = "gr\xc3\xbc\xc3\x9f", .payload = std::string("\x1b[2J\0\xff\xc2\x9b", 8)});
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "topic            gr\xc3\xbc\xc3\x9f\n"));
    CHECK(says(ask_tool("show --payload " + o.path + ' ' + to_string(id)), R"(\x1b[2J\x00\xff\xc2\x9b)"));
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(id)), R"("topic":"gr\u00fc\u00df")"));
}

TEST_CASE("tool: list shows entries of all queues oldest first, and its pages drop none") {
    const sqlite_test::folder in;
    const auto path = in.fresh_path();
    std::vector<std::string> emitted;
    {
        vouch::sqlite::store store(path);
        const vouch::outbox outbox(store);
        for (int i = 0; i < 12; ++i) {
            const std::string queue(1, static_cast<char>('a' + (i * 5 + 2) % 3));
            emitted.push_back(to_string(outbox.emit({.queue = queue, .topic = "t"}).front().id));
        }
    }
    const auto listed = [&](const std::string& more) {
        std::vector<std::string> ids;
        std::istringstream lines(ask_tool("list " + path + more).said);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("ID ") || line.starts_with("vouch: there are more")) {
                continue;
            }
            ids.push_back(line.substr(0, line.find(' ')));
        }
        return ids;
    };
    CHECK(listed("") == emitted);
    std::vector<std::string> paged;
    for (std::size_t after = 0; after < emitted.size(); after += 5) { // sequences count from 1, without gaps here
        const auto page = listed(" --limit 5 --after " + std::to_string(after));
        paged.insert(paged.end(), page.begin(), page.end());
    }
    CHECK(paged == emitted);
}

TEST_CASE("tool: the first and the last time there is are shown as what they are") {
    operated o;
    vouch::draft last{.id = {.high = 1, .low = 1}, .queue = "far", .topic = "last"};
    last.due_at = vouch::time_point::max();
    vouch::draft first{.id = {.high = 1, .low = 2}, .queue = "far", .topic = "first"};
    first.due_at = vouch::time_point::min();
    vouch::enqueue(o.store, std::array{last, first}, o.outbox.now());
    const auto latest = ask_tool("show " + o.path + ' ' + to_string(last.id));
    CHECK(says(latest, "due +294247-01-10T04:00:54.775807Z (in 1067"));
    const auto earliest = ask_tool("show " + o.path + ' ' + to_string(first.id));
    CHECK(says(earliest, "due since -290308-12-21T19:59:05.224192Z (106751991 days ago)"));
    CHECK(has_row(ask_tool("stats " + o.path), "far 2 0 0 0 0 overdue 106751991 days"));
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(last.id)),
               R"("due_at":"+294247-01-10T04:00:54.775807Z")"));
}

TEST_CASE("tool: characters that turn, hide or break a line do not reach the terminal") {
    operated o;
    for (const std::string hidden :
         {"\xe2\x80\xae", "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xd8\x9c",
          "\xe2\x80\x8b", "\xe2\x80\x8d", "\xe2\x81\xa0", "\xef\xbb\xbf", "\xc2\x85", "\xc2\x9b", "\xe2\x80\xa8",
          "\xc2\xad", "\xf3\xa0\x81\x81"}) {
        // By hand: the store refuses some of these names, but the file may come from elsewhere.
        const auto id = o.emit({.topic = "hidden"});
        sqlite_test::application(o.path).execute("UPDATE vouch_entries SET topic = 'a" + hidden +
                                                 "b' WHERE topic = 'hidden'");
        CAPTURE(id);
        for (const std::string verb : {"list ", "list --json "}) {
            const auto a = ask_tool(verb + o.path + " --after " + std::to_string(o.store.find(id)->sequence - 1));
            CHECK(says(a, to_string(id)));
            CHECK(a.said.find(hidden) == std::string::npos);
        }
    }
    const auto turned = o.emit({.topic = "a\xe2\x80\xae"
                                         "b\xf3\xa0\x81\x81"});
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(turned)), R"(a\xe2\x80\xaeb\xf3\xa0\x81\x81)"));
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(turned)), R"("topic":"a\u202eb\udb40\udc41")"));
    CHECK(says(ask_tool("stats 'no-such\xe2\x80\xae-file'"), R"(no-such\xe2\x80\xae-file)"));
    CHECK(says(ask_tool("'dance\x1b[2J' x"), R"(unknown verb dance\x1b[2J)"));
}

} // namespace sqlite_tool_test

#endif
