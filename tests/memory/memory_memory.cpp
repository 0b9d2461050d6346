// SPDX-License-Identifier: MIT
// What the memory store does when memory runs out: every operation, with its n-th allocation failing, for every n there
// is. Whatever fails, nothing has happened, the error is `full`, and the transaction is closed.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "memory/shortage.hpp"
#include "unit/support.hpp"

// These replace the global ones of the whole program, which is why they do nothing special until told. Inlined, GCC 12
// would see through one half of a pair and warn that the halves do not match.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    auto& lack = support::lack;
    if (lack.left > 0 && --lack.left == 0) {
        lack.fired = true;
        lack.left = lack.lasting ? 1 : 0;
        return nullptr;
    }
    return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const p = operator new(size, std::nothrow)) {
        return p;
    }
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return operator new(size, std::nothrow);
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace memory_memory_test {

using namespace support;
using vouch::error_kind;
using vouch::query;
using transaction = vouch::memory::transaction;

namespace {

enum class ending : std::uint8_t { untouched, full, something_else, swallowed };

template <class F>
ending with_lack(long nth, bool lasting, F&& f) {
    lack = {.left = nth, .lasting = lasting};
    auto out = ending::something_else;
    try {
        f();
        out = lack.fired ? ending::swallowed : ending::untouched;
    } catch (const vouch::error& e) {
        out = e.kind() == error_kind::full ? ending::full : ending::something_else;
    } catch (...) {
    }
    lack = {};
    return out;
}

/// Long enough for every copy to allocate.
const std::string text(60, 'x');

vouch::draft full_draft(std::uint64_t n) {
    auto d = draft_of(n);
    d.topic = d.payload = d.progress = text;
    d.key = n % 5 == 0 ? "k" : text + std::to_string(n);
    d.group = n % 4 < 2 ? "g" : text + std::to_string(n);
    d.lane = n % 3 == 0 ? "" : text + std::to_string(n % 3);
    d.parent = id_of(n % 3);
    d.trail = {id_of(1), id_of(2)};
    d.headers = {{text, text}};
    return d;
}

vouch::memory::store furnished() {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 12; ++n) {
        put(store, full_draft(n));
    }
    cancel(store, id_of(1)); // 1 <- 13 <- 14, all dead
    vouch::transact(store,
                    [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(13), .now = t0}); });
    cancel(store, id_of(13));
    vouch::transact(
        store, [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(13), .successor = id_of(14), .now = t0}); });
    cancel(store, id_of(14));
    REQUIRE(ticket_of(take(store, t0, {.only = id_of(3)}).front()) == vouch::ticket{id_of(3), 1});
    REQUIRE(ticket_of(take(store, t0, {.only = id_of(9)}).front()) == vouch::ticket{id_of(9), 1});
    cancel(store, id_of(12));
    return store;
}

struct scenario {
    std::string_view name;
    std::function<void(transaction&)> in;
};

scenario settling(std::string_view name, const vouch::outcome& outcome) {
    const std::vector batch{vouch::settle{{id_of(3), 1}, outcome}, vouch::settle{{id_of(9), 1}, outcome},
                            vouch::settle{{id_of(9), 1}, outcome}};
    return {name, [batch](transaction& tx) { std::ignore = tx.settle(batch, t0 + 1s); }};
}

scenario listing(std::string_view name, query q) {
    q.payloads = true;
    return {name, [q](transaction& tx) { std::ignore = tx.list(q); }};
}

/// Every operation. What they are given is made beforehand, so that all that fails is the store's.
std::vector<scenario> operations() {
    std::vector drafts{full_draft(20), full_draft(21), full_draft(22),
                       full_draft(20), full_draft(23), draft_of(24, text)};
    std::vector many(12, draft_of(1, "r"));
    for (std::uint64_t n = 0; n < many.size(); ++n) {
        many[n].id = id_of(100 + n);
        many[n].key = std::to_string(n) + text;
    }
    std::vector successor{draft_of(25)};
    successor.front().predecessor = id_of(14);
    const std::vector tickets{vouch::ticket{id_of(3), 1}, vouch::ticket{id_of(9), 1}};
    auto any = request(t0 + 1h);
    any.worker = text;
    auto just_one = any;
    just_one.only = id_of(6);
    const vouch::purge_request ended{.queue = "q", .before = t0 + 1h};
    return {
        {"enqueue", [drafts](auto& tx) { tx.enqueue(drafts, t0); }},
        {"enqueue many", [many](auto& tx) { tx.enqueue(many, t0); }},
        {"enqueue a successor", [successor](auto& tx) { tx.enqueue(successor, t0); }},
        {"claim", [any](auto& tx) { std::ignore = tx.claim(any); }},
        {"claim one", [just_one](auto& tx) { std::ignore = tx.claim(just_one); }},
        settling("succeed", vouch::succeed{text}),
        settling("retry", vouch::retry{text, t0 + 1h}),
        settling("bury", vouch::bury{text, text}),
        settling("release", vouch::release{t0 + 1h}),
        settling("advance", vouch::advance{text, t0 + 1h}),
        {"extend", [tickets](auto& tx) { std::ignore = tx.extend(tickets, t0, 1h); }},
        {"nudge", [](auto& tx) { std::ignore = tx.nudge(id_of(3), t0); }},
        {"cancel", [](auto& tx) { std::ignore = tx.cancel(id_of(2), text, t0); }},
        {"purge", [ended](auto& tx) { std::ignore = tx.purge(ended); }},
        {"find", [](auto& tx) { std::ignore = tx.find(id_of(1)); }},
        listing("list by group", query::members("g")),
        listing("list by parent", query::children(id_of(2))),
        listing("list by key", query::keyed("q", full_draft(1).key)),
        listing("list all", query::all("q")),
        {"counts", [](auto& tx) { std::ignore = tx.counts("q"); }},
        {"next_due", [](auto& tx) { std::ignore = tx.next_due("q"); }},
        {"all in turn",
         [=](auto& tx) {
             std::ignore = tx.settle(std::array{vouch::settle{{id_of(3), 1}, vouch::bury{}}}, t0);
             tx.enqueue(successor, t0);
             tx.enqueue(drafts, t0);
             std::ignore = tx.cancel(id_of(25), text, t0);
             std::ignore = tx.claim(any);
             std::ignore = tx.extend(tickets, t0, 1h);
             std::ignore = tx.purge(ended);
             tx.enqueue(many, t0);
             std::ignore = tx.list(query{.queue = "q"});
         }},
    };
}

} // namespace

TEST_CASE("memory: an operation that runs out of it has not happened, and closes its transaction") {
    for (const auto& one : operations()) {
        const auto& name = one.name;
        const auto& in = one.in;
        for (const bool lasting : {false, true}) {
            CAPTURE(name, lasting);
            long failures = 0;
            for (long nth = 1;; ++nth) {
                auto store = furnished();
                const auto before = look(store);
                auto tx = store.begin();
                const auto got = with_lack(nth, lasting, [&] { in(tx); });
                if (got == ending::untouched) {
                    const auto own = look(tx);
                    tx.commit();
                    CHECK(look(store) == own);
                    break;
                }
                ++failures;
                REQUIRE(got == ending::full);
                CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
                CHECK(look(store) == before);

                // The store is as good as new: the same goes through afterwards.
                if (nth % 3 == 0) {
                    auto again = store.begin();
                    in(again);
                    const auto own = look(again);
                    again.commit();
                    CHECK(look(store) == own);
                }
            }
            CHECK((failures > 0 || name == "counts" || name == "next_due"));
        }
    }
}

TEST_CASE("memory: what was done before the operation that fails is rolled back with it") {
    const auto all = operations();
    const auto& last = all.back();
    for (const auto& one : all) {
        const auto& name = one.name;
        const auto& in = one.in;
        CAPTURE(name);
        for (long nth = 1;; ++nth) {
            auto store = furnished();
            const auto before = look(store);
            auto tx = store.begin();
            last.in(tx);
            const auto got = with_lack(nth, false, [&] { in(tx); });
            if (got == ending::untouched) {
                break;
            }
            REQUIRE(got == ending::full);
            CHECK(look(store) == before);
        }
    }
}

TEST_CASE("memory: commit and rollback need none") {
    for (const auto& one : operations()) {
        const auto& name = one.name;
        const auto& in = one.in;
        CAPTURE(name);
        auto store = furnished();
        auto tx = store.begin();
        in(tx);
        const auto own = look(tx);
        CHECK(with_lack(1, true, [&] { tx.commit(); }) == ending::untouched);
        CHECK(look(store) == own);

        auto other = furnished();
        const auto before = look(other);
        CHECK(with_lack(1, true, [&] {
                  auto dropped = other.begin();
                  lack.left = 0;
                  in(dropped);
                  lack.left = 1;
              }) == ending::untouched);
        CHECK(look(other) == before);
    }
}

TEST_CASE("memory: reads on the store that run out of it say so, and change nothing") {
    const auto store = furnished();
    const auto before = look(store);
    auto everything = query::all("q");
    everything.payloads = true;
    const std::vector<std::function<void()>> reads{[&] { std::ignore = store.find(id_of(1)); },
                                                   [&] { std::ignore = store.list(everything); }};
    for (const auto& read : reads) {
        for (const bool lasting : {false, true}) {
            long failures = 0;
            for (long nth = 1;; ++nth) {
                const auto got = with_lack(nth, lasting, read);
                if (got == ending::untouched) {
                    break;
                }
                ++failures;
                REQUIRE(got == ending::full);
            }
            CHECK(failures > 0);
        }
    }
    CHECK(look(store) == before);
    CHECK(with_lack(1, true, [&] { std::ignore = store.counts("q"); }) == ending::untouched);
    CHECK(with_lack(1, true, [&] { std::ignore = store.next_due("q"); }) == ending::untouched);
    CHECK(with_lack(1, true, [&] { std::ignore = store.wakes("never seen"); }) == ending::untouched);
}

} // namespace memory_memory_test
