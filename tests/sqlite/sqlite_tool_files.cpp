// SPDX-License-Identifier: MIT
// The operator's tool leaves the files of a database as they are.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

namespace {

std::string all_bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Everything in a folder, by name.
std::map<std::string, std::string> contents_of(const sqlite_test::folder& in) {
    std::map<std::string, std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(in.path())) {
        out[file.path().filename().string()] = all_bytes_of(file.path().string());
    }
    return out;
}

/// A database that no process has open, with one entry in each of two queues.
struct at_rest {
    sqlite_test::folder in{};
    std::string path = in.fresh_path();
    vouch::id first{};
    vouch::id second{};

    explicit at_rest(const std::string& journal_mode) {
        {
            vouch::sqlite::store store(path);
            const vouch::outbox outbox(store);
            first = outbox.emit({.queue = "b", .topic = "one"}).front().id;
            second = outbox.emit({.queue = "a", .topic = "two"}).front().id;
        }
        sqlite_test::application(path).execute("PRAGMA journal_mode = " + journal_mode);
        std::filesystem::remove(path + "-turn");
    }
    [[nodiscard]] std::vector<std::string> looks() const {
        return {"stats " + path, "list " + path, "show " + path + ' ' + to_string(first), "schema " + path};
    }
};

/// As `ask_tool`, by a user who may not write what is not his: the folder and everything in it.
[[nodiscard]] answer ask_tool_as_a_guest(const sqlite_test::folder& in, const std::string& arguments) {
    namespace fs = std::filesystem;
    const sqlite_test::folder bin;
    const auto tool = bin.file("vouch");
    fs::copy_file(VOUCH_TOOL, tool);
    fs::permissions(bin.path(), fs::perms(0755));
    for (const auto& file : fs::directory_iterator(in.path())) {
        fs::permissions(file.path(), fs::perms(0444));
    }
    fs::permissions(in.path(), fs::perms(0555));
    const std::string as_guest = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
    auto out = ask(as_guest + tool + ' ' + arguments);
    fs::permissions(in.path(), fs::perms(0755));
    for (const auto& file : fs::directory_iterator(in.path())) {
        fs::permissions(file.path(), fs::perms(0644));
    }
    return out;
}

} // namespace

TEST_CASE("tool: looking at a database leaves it as it is, in its journal mode, with nothing beside it") {
    const std::string mode = GENERATE("DELETE", "WAL");
    CAPTURE(mode);
    const at_rest o(mode);
    const auto before = contents_of(o.in);
    REQUIRE(before.size() == 1);
    for (const auto& look : o.looks()) {
        CAPTURE(look);
        CHECK(ask_tool(look).code == 0);
        CHECK((contents_of(o.in) == before));
    }
}

TEST_CASE("tool: a database that can only be read is looked at, and nothing is written beside it") {
    const std::string mode = GENERATE("DELETE", "WAL");
    CAPTURE(mode);
    const at_rest o(mode);
    const auto before = contents_of(o.in);
    for (const auto& look : o.looks()) {
        CAPTURE(look);
        const auto a = ask_tool_as_a_guest(o.in, look);
        UNSCOPED_INFO(a.said);
        CHECK(a.code == 0);
        CHECK((contents_of(o.in) == before));
    }
    CHECK(says(ask_tool_as_a_guest(o.in, "list " + o.path), to_string(o.first)));
    const auto refused = ask_tool_as_a_guest(o.in, "cancel --yes " + o.path + ' ' + to_string(o.first));
    CHECK(refused.code == 4);
    CHECK((contents_of(o.in) == before));
}

TEST_CASE("tool: newest changes that cannot be read are named, and no older state is shown for them") {
    const at_rest o("WAL");
    {
        vouch::sqlite::store store(o.path);
        const vouch::outbox outbox(store);
        outbox.emit({.queue = "b", .topic = "three"});
        const auto wal = all_bytes_of(o.path + "-wal");
        REQUIRE_FALSE(wal.empty());
        std::filesystem::copy_file(o.path, o.in.file("copy.db"));
        std::ofstream(o.in.file("copy.db-wal"), std::ios::binary) << wal;
    }
    const auto a = ask_tool_as_a_guest(o.in, "stats " + o.in.file("copy.db"));
    CHECK(a.code == 4);
    CHECK(says(a, "copy.db-wal, which cannot be read without writing beside it"));
}

TEST_CASE("tool: a changing verb keeps the journal mode, and leaves no write-ahead log behind") {
    const std::string mode = GENERATE("delete", "wal");
    CAPTURE(mode);
    const at_rest o(mode);
    CHECK(ask_tool("cancel --yes " + o.path + ' ' + to_string(o.first)).code == 0);
    CHECK_FALSE(std::filesystem::exists(o.path + "-wal"));
    CHECK(sqlite_test::application(o.path).text("PRAGMA journal_mode") == mode);
    std::filesystem::copy_file(o.path, o.in.file("copy.db"));
    CHECK(vouch::sqlite::store(o.in.file("copy.db")).find(o.first)->state == state::dead);
}

TEST_CASE("tool: what it changed beside an open application is in the file itself") {
    const at_rest o("WAL");
    const vouch::sqlite::store application(o.path);
    REQUIRE(application.find(o.first));
    CHECK(ask_tool("cancel --yes " + o.path + ' ' + to_string(o.first)).code == 0);
    std::filesystem::copy_file(o.path, o.in.file("copy.db")); // without its -wal, as people do
    CHECK(vouch::sqlite::store(o.in.file("copy.db")).find(o.first)->state == state::dead);
}

TEST_CASE("tool: output that cannot be written is not a success") {
    const at_rest o("WAL");
    for (const auto& look : o.looks()) {
        CAPTURE(look);
        const auto a = ask(std::string(VOUCH_TOOL) + ' ' + look + " 2>&1 >/dev/full");
        CHECK(a.code == 5);
        CHECK(says(a, "the output could not be written"));
    }
}

} // namespace sqlite_tool_test

#endif
