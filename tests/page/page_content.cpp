// SPDX-License-Identifier: MIT
// What the page says about the entries of a store, and what it changes. The same on every store.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <vouch/page.hpp>
#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "page/browser.hpp"
#include "page/stores.hpp"
#include "tool.hpp"

namespace page_content_test {

using namespace page_test;
using vouch::state;

template <class Kept>
struct content {
    Kept kept{};
    using store_type = typename Kept::store_type;
    tool_test::some_of_everything<store_type> entries{kept.store};
    vouch::page::site<store_type> site{kept.store, kept.options({.name = "shop", .token = secret})};

    [[nodiscard]] auto ask(const std::string& target) { return site.answer(get(target)); }
    [[nodiscard]] auto show(const vouch::id& id) { return ask("/api/entries/" + to_string(id)); }
    [[nodiscard]] auto act(const vouch::id& id, const std::string& verb) {
        return site.answer(post("/api/entries/" + to_string(id) + '/' + verb));
    }
};

[[nodiscard]] std::string text_after(const std::string& body, const std::string& start) {
    const auto at = body.find(start);
    REQUIRE(at != std::string::npos);
    const auto from = at + start.size();
    return body.substr(from, body.find('"', from) - from);
}

TEMPLATE_TEST_CASE("page: the overview has every queue with its counts, and says how old they are", "",
                   VOUCH_PAGE_STORES) {
    content<TestType> c;
    const auto got = c.ask("/api/overview");
    CHECK(got.status == 200);
    CHECK(has(got, R"("queue":"q","counts":{"pending":6,"retrying":0,"claimed":1,"succeeded":1,"dead":1})"));
    CHECK(has(got, R"("counted_at":1)"));
    CHECK(has(got, R"("name":"shop")"));
    CHECK(has(got, R"("may_write":false,"read_only":false)"));
    CHECK(has(c.site.answer(with(get("/api/overview"), "authorization", std::string("Bearer ") + secret)),
              R"("may_write":true)"));
}

TEMPLATE_TEST_CASE("page: a queue is not counted again at once, however often the page asks", "", VOUCH_PAGE_STORES) {
    content<TestType> c;
    CHECK(has(c.ask("/api/overview"), R"("pending":6)"));
    static_cast<void>(c.entries.emit({.topic = "more"}));
    CHECK(has(c.ask("/api/overview"), R"("pending":6)"));
    CHECK(has(c.ask("/metrics"), "vouch_entries{queue=\"q\",state=\"pending\"} 6"));
}

TEMPLATE_TEST_CASE("page: each filter finds its entries and no others", "", VOUCH_PAGE_STORES) {
    content<TestType> c;
    const auto& e = c.entries;
    const auto finds = [&](const std::string& query, const std::vector<vouch::id>& expected) {
        const auto got = c.ask("/api/entries?" + query);
        INFO(query << '\n' << got.body);
        CHECK(got.status == 200);
        std::size_t found = 0;
        for (auto at = got.body.find("{\"id\":"); at != std::string::npos; at = got.body.find("{\"id\":", at + 1)) {
            ++found;
        }
        CHECK(found == expected.size());
        for (const auto& id : expected) {
            CHECK(got.body.find("{\"id\":\"" + to_string(id)) != std::string::npos);
        }
    };
    finds("", {e.waits, e.due, e.dead, e.head, e.blocked, e.held, e.parent, e.command, e.ended});
    finds("queue=q&state=live", {e.waits, e.due, e.head, e.blocked, e.held, e.parent, e.command});
    finds("queue=other", {});
    finds("state=dead", {e.dead});
    finds("state=succeeded", {e.ended});
    finds("state=ended", {e.ended, e.dead});
    finds("state=claimed", {e.held});
    finds("state=stuck", {});
    finds("topic=later", {e.waits});
    finds("lane=lane-1", {e.head, e.blocked});
    finds("lane=lane-1&topic=first", {e.head});
    finds("parent=" + to_string(e.parent), {e.command});
    finds("parent=" + to_string(e.parent) + "&state=dead", {});
    finds("error=no_good", {e.dead});
    finds("worker=w-1&state=live", {e.held});
    finds("older_than=1h", {});
    finds("newer_than=1h&topic=now", {e.due});
    static_cast<void>(c.entries.emit({.topic = "grouped", .key = "k & 1", .group = "g+1"}));
    CHECK(has(c.ask("/api/entries?group=g%2B1"), "grouped"));
    CHECK(has(c.ask("/api/entries?key=k+%26%201"), "grouped"));
}

TEMPLATE_TEST_CASE("page: an entry says why it is not running", "", VOUCH_PAGE_STORES) {
    content<TestType> c;
    const auto& e = c.entries;
    CHECK(
        has(c.show(e.due), "It has been due for 0 s, and no worker has claimed it. Is a worker running for queue q?"));
    CHECK(has(c.show(e.waits), "It is due in 9 days."));
    CHECK(has(c.show(e.blocked), "It is blocked in lane lane-1 behind " + to_string(e.head) + ", which is pending."));
    CHECK(has(c.show(e.held), "Worker w-1 holds it since 0 s; its lease ends in 59 min."));
    CHECK(has(c.show(e.dead), "It died 0 s ago with the error no_good. Requeue gives it a successor."));
    CHECK(has(c.show(e.ended), "It succeeded 0 s ago."));
    CHECK(has(c.show(e.due), R"("headers":[{"name":"from","value":"ada"}])"));
    CHECK(has(c.show(e.due), R"("payload":{"size":12,"is_cut":false,"encoding":"text","data":"a \"payload\"\u000a"})"));
    CHECK(has(c.show(e.parent), to_string(e.command)));
}

TEMPLATE_TEST_CASE("page: entries can be run now, cancelled and requeued", "", VOUCH_PAGE_STORES) {
    content<TestType> c;
    auto& store = c.kept.store;
    const auto& e = c.entries;
    CHECK(has(c.act(e.waits, "retry"), "It is due now."));
    CHECK(store.find(e.waits)->due_at <= vouch::system_now());
    CHECK(c.act(e.ended, "retry").status == 409);
    CHECK(has(c.act(e.waits, "cancel"), "It is dead now."));
    CHECK(store.find(e.waits)->state == state::dead);
    CHECK(c.act(e.held, "cancel").status == 409);
    const auto got = c.act(e.dead, "requeue");
    CHECK(has(got, "It has a successor now."));
    const auto successor = vouch::id::parse(text_after(got.body, "\"successor\":\""));
    REQUIRE(successor);
    CHECK(store.find(*successor)->predecessor == e.dead);
    CHECK(has(c.act(e.dead, "requeue"), "It had a successor already."));
    CHECK(c.act(e.due, "requeue").status == 409);
    CHECK(c.act({.high = 1, .low = 2}, "requeue").status == 404);
}

TEMPLATE_TEST_CASE("page: a bulk requeue is counted first, and takes what was counted and no more", "",
                   VOUCH_PAGE_STORES) {
    content<TestType> c;
    auto& store = c.kept.store;
    const auto bury = [&](int many) {
        for (int i = 0; i < many; ++i) {
            const auto id = c.entries.emit({.topic = "bulk"});
            const auto claimed = vouch::claim(
                store, {.queue = "q", .now = c.entries.outbox.now(), .lease = 1h, .worker = "w", .only = id});
            vouch::transact(store, [&](auto& tx) {
                const std::array settles{vouch::settle{ticket_of(claimed.at(0)), vouch::bury{.error = "smtp"}}};
                static_cast<void>(tx.settle(settles, c.entries.outbox.now()));
            });
        }
    };
    bury(250);
    const auto counted = c.site.answer(post("/api/requeue", "queue=q&error=smtp&dry_run=1"));
    CHECK(has(counted, "\"matched\":250,"));
    CHECK(store.counts("q")[state::pending] == 6);
    const auto last = text_after(counted.body, "\"last\":\"");
    bury(1); // dies after it was counted
    CHECK(c.site.answer(post("/api/requeue", "queue=q&error=smtp")).status == 400);

    std::string cursor;
    int requests = 0;
    for (bool is_over = false; !is_over; ++requests) {
        auto got = c.site.answer(post("/api/requeue", "queue=q&error=smtp&until=" + last + "&cursor=" + cursor));
        REQUIRE(got.status == 200);
        is_over = got.body.find("\"next\":null") != std::string::npos;
        cursor = is_over ? "" : text_after(got.body, "\"next\":\"");
    }
    CHECK(requests == 3); // at most 100 in a commit
    CHECK(store.counts("q")[state::pending] == 6 + 250);
    CHECK(store.counts("q")[state::dead] == 1 + 251);
}

TEMPLATE_TEST_CASE("page: no request reads more than its bound, and a search goes on where it stopped", "",
                   VOUCH_PAGE_STORES) {
    content<TestType> c;
    std::vector<vouch::draft> drafts(2500);
    const vouch::counting_ids ids;
    for (auto& d : drafts) {
        d = {.id = ids(), .queue = "q", .topic = "many"};
    }
    drafts.back().topic = "needle";
    static_cast<void>(vouch::enqueue(c.kept.store, drafts, vouch::system_now()));
    std::string cursor;
    std::size_t requests = 0;
    bool is_found = false;
    for (bool is_over = false; !is_over; ++requests) {
        const auto got = c.ask("/api/entries?topic=needle&cursor=" + cursor);
        const auto read = std::stoul(text_after(got.body, "\"read\":"));
        CHECK(read <= 1000);
        is_found = is_found || has(got, "\"topic\":\"needle\"");
        is_over = got.body.find("\"next\":null") != std::string::npos;
        cursor = is_over ? "" : text_after(got.body, "\"next\":\"");
    }
    CHECK(is_found);
    CHECK(requests == 3);
}

TEMPLATE_TEST_CASE("page: a saga shows its steps and where it stands, and a dead one is resumed", "",
                   VOUCH_PAGE_STORES) {
    content<TestType> c;
    const auto order = vouch::define_saga<std::string>("order", {.version = 2})
                           .step(
                               "payment", [](const std::string&) { return std::string("charge-7"); },
                               [](vouch::step_call&) { throw vouch::reject("refund_refused"); })
                           .step("stock", [](const std::string&) { throw vouch::reject("sold_out"); })
                           .build();
    vouch::router router(c.entries.outbox);
    router.on(order);
    const auto id = c.entries.outbox.start(order, "orders", std::string("a piano"));
    CHECK(has(c.show(id), R"("is_saga":true)"));
    static_cast<void>(vouch::runner(c.entries.outbox, router, {.queue = "orders"}).run_once());
    CHECK(has(c.show(id), R"({"name":"payment","state":"done","result":{"size":8,)"));
    for (int i = 0; i < 5; ++i) {
        static_cast<void>(vouch::runner(c.entries.outbox, router, {.queue = "orders"}).run_once());
    }
    const auto stuck = c.show(id);
    CHECK(has(stuck, R"("definition":"order","version":2,"direction":"back","at":0,"step":"payment")"));
    CHECK(has(stuck, R"("end":"dead")"));
    CHECK(has(stuck, "Resume continues it where it stopped."));
    const auto resumed = vouch::id::parse(text_after(c.act(id, "requeue").body, "\"successor\":\""));
    REQUIRE(resumed);
    CHECK(c.kept.store.find(*resumed)->progress == c.kept.store.find(id)->progress);
}

TEMPLATE_TEST_CASE("page: metrics and health are for machines", "", VOUCH_PAGE_STORES) {
    content<TestType> c;
    const auto got = c.ask("/metrics");
    CHECK(got.content_type == "text/plain; version=0.0.4; charset=utf-8");
    CHECK(has(got, "vouch_entries{queue=\"q\",state=\"dead\"} 1"));
    CHECK(has(got, "vouch_look_age_seconds{queue=\"q\"} "));
    CHECK(c.ask("/healthz").body == "ok\n");
}

} // namespace page_content_test
