// SPDX-License-Identifier: MIT
// The operator's tool, run as an operator runs it: what it prints, what it changes, what it exits with.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

#ifdef VOUCH_TOOL // it is built wherever these tests are, unless somebody has switched it off

namespace {

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

[[nodiscard]] answer ask(const std::string& call) {
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

[[nodiscard]] answer ask_tool(const std::string& arguments) { return ask(std::string(VOUCH_TOOL) + ' ' + arguments); }

[[nodiscard]] bool says(const answer& a, const std::string& what) {
    UNSCOPED_INFO(a.said);
    return a.said.find(what) != std::string::npos;
}

} // namespace

TEST_CASE("tool: stats and list tell what is there, for people and for scripts") {
    const operated o;
    const auto stats = ask_tool("stats " + o.path);
    CHECK(stats.code == 0);
    CHECK(says(stats, "q: 6 pending, 0 retrying, 1 claimed, 1 succeeded, 1 dead; next due "));
    const auto json = ask_tool("stats --json " + o.path);
    CHECK(says(json,
               R"([{"queue": "q", "entries": {"pending": 6, "retrying": 0, "claimed": 1, "succeeded": 1, "dead": 1})"));
    const auto dead = ask_tool("list " + o.path + " --state dead");
    CHECK(dead.code == 0);
    CHECK(says(dead, to_string(o.dead) + "  q  bad  dead  attempt 1  no_good"));
    CHECK_FALSE(says(dead, to_string(o.due)));
    CHECK(says(ask_tool("list " + o.path + " --state claimed"), to_string(o.held)));
    CHECK(says(ask_tool("list " + o.path + " --topic now --json"), R"([{"id": ")" + to_string(o.due) + '"'));
    CHECK(ask_tool("list " + o.path + " --queue nobody").said.empty());
    CHECK(ask_tool("list " + o.path + " --limit 1 --json").said.find("}, {") == std::string::npos);
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
    CHECK(says(show(o.due), "nobody has claimed it. Is a worker running for queue q?"));
    CHECK(says(show(o.due), "header           from: ada"));
    CHECK(says(show(o.due), "payload          12 bytes"));
    CHECK_FALSE(says(show(o.due), "a \"payload\""));
    CHECK(says(show(o.due, " --payload"), "a \"payload\"\\x0a"));
    CHECK(says(show(o.due, " --payload --json"), R"("payload_hex": "6120227061796c6f6164220a")"));
    CHECK(says(show(o.dead), "it is dead (no_good)"));
    CHECK(says(show(o.ended), "it has succeeded"));
    CHECK(says(show(o.blocked), "blocked in lane lane-1 behind " + to_string(o.head) + ", which is pending"));
    CHECK(says(show(o.blocked, " --json"), R"("waiting": "blocked")"));
    CHECK(says(show(o.head), "due 20"));
    CHECK(says(show(o.held), "held by w-1 until 20"));
    CHECK(says(show(o.parent), "waits for the reply of " + to_string(o.command) + " (command, pending)"));
    CHECK(says(show(o.parent, " --json"), R"("waiting": "waits_for_reply")"));
}

TEST_CASE("tool: show says how many claims in a row ended with their lease") {
    operated o;
    const auto now = o.outbox.now();
    for (const auto at : {now, now + 1s, now + 2s}) {
        CHECK(vouch::claim(o.store, {.queue = "q", .now = at, .lease = 1s, .only = o.due}).size() == 1);
    }
    const auto show = "show " + o.path + ' ' + to_string(o.due);
    CHECK(says(ask_tool(show), "attempts         2, lapses 2, failures 0, claims ever 3"));
    CHECK(says(ask_tool(show + " --json"), R"("attempts": 2, "lapses": 2, "failures": 0, "epoch": 3)"));
}

TEST_CASE("tool: retry, cancel, requeue and purge change what they say, and ask before what cannot be undone") {
    operated o;
    const auto tool = [&](const std::string& verb, const vouch::id& id, const std::string& more = "") {
        return ask_tool(verb + ' ' + o.path + ' ' + to_string(id) + more);
    };
    CHECK(says(tool("retry", o.waits), "it is due now"));
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
    CHECK(says(tool("cancel", o.due, " --yes --json"), R"({"verdict": "repeated"})"));

    CHECK(says(tool("requeue", o.dead), "its successor is "));
    CHECK(says(tool("requeue", o.dead), "it has a successor already: "));
    CHECK(tool("requeue", o.held).code == 1);
    CHECK(tool("requeue", o.command).code == 1);

    const auto purge = "purge " + o.path + " --queue q --older-than 0s --state succeeded";
    CHECK(ask_tool(purge).code == 1);
    CHECK(says(ask_tool(purge + " --yes"), "1 removed"));
    CHECK_FALSE(o.store.find(o.ended).has_value());
    CHECK(says(ask_tool("purge " + o.path + " --queue q --older-than 1h --yes --json"), R"({"purged": 0})"));
    CHECK(o.store.find(o.due).has_value());
}

TEST_CASE("tool: what is stored can neither break the JSON nor command a terminal") {
    operated o;
    const auto id = o.emit({.topic = "gr\xc3\xbc\xc3\x9f", .payload = std::string("\x1b[2J\0\xff\xc2\x9b", 8)});
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "topic            gr\xc3\xbc\xc3\x9f\n"));
    CHECK(says(ask_tool("show --payload " + o.path + ' ' + to_string(id)), R"(\x1b[2J\x00\xff\xc2\x9b)"));
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(id)), "\"topic\": \"gr\xc3\xbc\xc3\x9f\""));
}

TEST_CASE("tool: bad input gets a sentence and its own exit code") {
    const operated o;
    const std::string nobody = "00000000-0000-0000-0000-000000000001";
    CHECK(ask_tool("").code == 2);
    CHECK(ask_tool("help").code == 0);
    CHECK(says(ask_tool("dance " + o.path), "there is no verb dance"));
    CHECK(ask_tool("stats").code == 2);
    CHECK(ask_tool("show " + o.path).code == 2);
    CHECK(ask_tool("show " + o.path + " 12").code == 2);
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

TEST_CASE("tool: a saga says where it stands, and is asked to turn round instead of being killed") {
    operated o;
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund", .timeout = 1h})
                          .build();
    const auto id = o.outbox.start(saga, "orders", std::string("a lamp"));
    vouch::router orders(o.outbox);
    orders.on(saga);
    vouch::runner(o.outbox, orders, {.queue = "orders"}).run_until_idle();
    const auto shown = ask_tool("show " + o.path + ' ' + to_string(id));
    CHECK(says(shown, "order v1 forward at payment"));
    CHECK(says(shown, "waits for payment charge pending"));
    CHECK(says(shown, "waits for the reply of "));
    CHECK(says(ask_tool("cancel --yes " + o.path + ' ' + to_string(id)), "it has been asked to turn round"));
    CHECK(o.store.find(id)->state != state::dead);
    vouch::runner(o.outbox, orders, {.queue = "orders"}).run_until_idle();
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "order v1 compensated because cancelled"));

    const auto other = o.outbox.start(saga, "orders", std::string("a piano"));
    CHECK(ask_tool("cancel --yes --abandon " + o.path + ' ' + to_string(other)).code == 0);
    CHECK(o.store.find(other)->state == state::dead);
}

TEST_CASE("tool: requeue by error code revives the dead letters of one cause, and no others") {
    operated o;
    for (int n = 0; n < 250; ++n) { // more than a page
        static_cast<void>(o.emit({.topic = "new.kind"}));
    }
    const vouch::router none(o.outbox);
    REQUIRE(vouch::runner(o.outbox, none, {.queue = "q"}).run_until_idle().dead == 251); // `due`, too
    const auto call = "requeue " + o.path + " --queue q --error no_handler";
    CHECK(ask_tool(call).code == 1); // asks
    CHECK(o.store.counts("q")[state::pending] == 5);
    CHECK(says(ask_tool(call + " --yes"), "251 requeued, 0 had a successor, 0 left alone"));
    CHECK(o.store.counts("q")[state::pending] == 5 + 251);
    CHECK(says(ask_tool(call + " --yes --json"), R"({"requeued": 0, "had_a_successor": 251, "left": 0})"));
    CHECK(o.store.counts("q")[state::pending] == 5 + 251);
    CHECK(ask_tool("requeue " + o.path + " --queue q").code == 2);
    CHECK(ask_tool("requeue " + o.path + " --error no_handler").code == 2);
}

TEST_CASE("tool: requeue by error code ends, though the successors die of the same beside it") {
    operated o;
    for (int n = 0; n < 300; ++n) {
        static_cast<void>(o.emit({.topic = "new.kind"}));
    }
    const vouch::router none(o.outbox);
    vouch::runner burying(o.outbox, none, {.queue = "q"});
    burying.run_until_idle();
    const std::jthread beside([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            burying.run_until_idle();
        }
    });
    const auto call =
        "timeout 20 " + std::string(VOUCH_TOOL) + " requeue " + o.path + " --queue q --error no_handler --yes";
    CHECK(says(ask(call), "301 requeued, 0 had a successor, 0 left alone"));
}

TEST_CASE("tool: a dead saga is resumed, and does its work again only if --afresh asks for that") {
    operated o;
    const auto saga = vouch::define_saga<std::string>("order").step("pay", [] {}).build();
    const auto id = o.outbox.start(saga, "orders", std::string("a lamp"));
    const auto requeue = [&](const std::string& how) {
        return ask_tool("requeue " + how + o.path + ' ' + to_string(id));
    };
    CHECK(ask_tool("cancel --yes --abandon " + o.path + ' ' + to_string(id)).code == 0);
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "; `requeue --resume` carries it on"));
    CHECK(requeue("").code == 1);
    CHECK(says(requeue(""), "it is a saga; --resume carries it on, --afresh does all its work again"));
    CHECK(requeue("--resume --afresh ").code == 2);
    CHECK(requeue("--afresh ").code == 1); // nobody can be asked
    CHECK(o.store.counts("orders").total() == 1);
    const auto successor = [&] { return o.store.list(vouch::query::live("orders")).at(0); };
    SECTION("resumed") {
        CHECK(says(requeue("--resume "), "its successor is "));
        CHECK(successor().progress == o.store.find(id)->progress);
    }
    SECTION("afresh: another saga, with keys of its own") {
        CHECK(says(requeue("--afresh --yes "), "its successor is "));
        CHECK(vouch::inspect(successor())->origin == successor().id);
    }
}

TEST_CASE("tool: schema prints the tables, and a file's version beside ours") {
    const operated o;
    CHECK(says(ask_tool("schema"), "CREATE TABLE vouch_entries"));
    CHECK(ask_tool("schema " + o.path).code == 0);
    const auto version = std::to_string(vouch::sqlite::schema_version);
    CHECK(says(ask_tool("schema --json " + o.path), R"({"stored": )" + version + R"(, "ours": )" + version + "}"));
}

namespace {

/// A database that says it is of another version.
struct of_another_schema : operated {
    explicit of_another_schema(std::int64_t version) : operated() {
        auto tx = store.begin();
        const auto sql = "UPDATE vouch_meta SET value = " + std::to_string(version) + " WHERE name = 'schema_version'";
        REQUIRE(sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
        tx.commit();
        before = bytes();
    }
    /// Of every row there is.
    [[nodiscard]] std::string bytes() {
        std::string out;
        for (const auto& e : store.list(vouch::query::all("q"))) {
            vouch::for_each_field(
                [&](std::string_view, const auto& field) {
                    if constexpr (requires { std::string(field); }) {
                        out += field;
                    } else if constexpr (requires { std::to_string(field); }) {
                        out += std::to_string(field);
                    }
                },
                e);
            out += std::string(name_of(e.state)) + '\n';
        }
        return out;
    }
    /// The verbs that change something, each on an entry it would change.
    [[nodiscard]] std::vector<std::string> changes() const {
        return {"retry " + path + ' ' + to_string(waits), "cancel --yes " + path + ' ' + to_string(due),
                "requeue " + path + ' ' + to_string(dead), "purge --yes --queue q --older-than 0s " + path};
    }
    std::string before{};
};

} // namespace

TEST_CASE("tool: a database of an older schema can be looked at, is never changed, and every answer says why") {
    const auto ours = std::to_string(vouch::sqlite::schema_version);
    const auto stored = std::to_string(vouch::sqlite::schema_version - 1);
    of_another_schema o(vouch::sqlite::schema_version - 1);
    const auto is_explained = [&](const answer& a) {
        return says(a, "has schema version " + stored + ", older than " + ours) && says(a, "opened read-only") &&
               says(a, "vouch::sqlite::migrate");
    };
    const auto stats = ask_tool("stats " + o.path);
    CHECK(stats.code == 0);
    CHECK(is_explained(stats));
    CHECK(says(stats, "q: 6 pending, 0 retrying, 1 claimed, 1 succeeded, 1 dead"));
    CHECK_FALSE(says(ask_tool("stats --queue other " + o.path), "q: 6"));

    const auto list = ask_tool("list --state dead " + o.path);
    CHECK(list.code == 0);
    CHECK(is_explained(list));
    CHECK(says(list, to_string(o.dead) + "  q  bad  dead  attempt 1  no_good"));
    CHECK_FALSE(says(list, to_string(o.due)));
    CHECK(says(ask_tool("list --limit 1 --topic now --json " + o.path), R"([{"id": ")" + to_string(o.due) + '"'));

    const auto show = ask_tool("show " + o.path + ' ' + to_string(o.due));
    CHECK(show.code == 0);
    CHECK(is_explained(show));
    CHECK(says(show, "topic            now\n"));
    CHECK_FALSE(says(show, "a \"payload")); // as stored, and without what is the handler's
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(o.due)), R"("topic": "now")"));
    CHECK(ask_tool("show " + o.path + " 00000000-0000-0000-0000-000000000001").code == 3);

    const auto schema = ask_tool("schema " + o.path);
    CHECK(schema.code == 4);
    CHECK(is_explained(schema));
    for (const auto& change : o.changes()) {
        const auto refused = ask_tool(change);
        CHECK(refused.code == 4);
        CHECK(is_explained(refused));
    }
    CHECK(o.bytes() == o.before);
}

TEST_CASE("tool: a database of a newer schema is left alone, and every answer says why") {
    of_another_schema o(vouch::sqlite::schema_version + 1);
    auto all = o.changes();
    for (const auto* const verb : {"stats ", "list ", "schema "}) {
        all.push_back(verb + o.path);
    }
    all.push_back("show " + o.path + ' ' + to_string(o.due));
    for (const auto& one : all) {
        const auto refused = ask_tool(one);
        CHECK(refused.code == 4);
        CHECK(says(refused, "has schema version " + std::to_string(vouch::sqlite::schema_version + 1) +
                                ", newer than " + std::to_string(vouch::sqlite::schema_version)));
        CHECK(says(refused, "nothing was read or changed"));
    }
    CHECK(o.bytes() == o.before);
}

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

TEST_CASE("tool: output that cannot be written is not a success") {
    const at_rest o("WAL");
    for (const auto& look : o.looks()) {
        CAPTURE(look);
        const auto a = ask(std::string(VOUCH_TOOL) + ' ' + look + " 2>&1 >/dev/full");
        CHECK(a.code == 5);
        CHECK(says(a, "the output could not be written"));
    }
}

TEST_CASE("tool: retry of an entry that a worker holds says that it is due when the claim ends") {
    operated o;
    const auto retry = "retry " + o.path + ' ' + to_string(o.held);
    CHECK(says(ask_tool(retry), "a worker holds it; if it is to run again, it is due as soon as that claim ends"));
    CHECK(says(ask_tool(retry), "it was marked already"));
    CHECK(o.store.find(o.held)->woken);
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
    CHECK(says(ask_tool("stats " + o.path), "next due 106751991 days ago"));
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(last.id)),
               R"("due_at": "+294247-01-10T04:00:54.775807Z")"));
}

TEST_CASE("tool: characters that turn, hide or break a line do not reach the terminal") {
    operated o;
    for (const std::string hidden :
         {"\xe2\x80\xae", "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xd8\x9c",
          "\xe2\x80\x8b", "\xe2\x80\x8d", "\xe2\x81\xa0", "\xef\xbb\xbf", "\xc2\x85", "\xc2\x9b", "\xe2\x80\xa8",
          "\xc2\xad", "\xf3\xa0\x81\x81"}) {
        const auto id = o.emit({.topic = "a" + hidden + "b"});
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
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(turned)), R"("topic": "a\u202eb\udb40\udc41")"));
    CHECK(says(ask_tool("stats 'no-such\xe2\x80\xae-file'"), R"(no-such\xe2\x80\xae-file)"));
    CHECK(says(ask_tool("'dance\x1b[2J' x"), R"(there is no verb dance\x1b[2J)"));
}

#endif
