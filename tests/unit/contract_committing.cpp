// SPDX-License-Identifier: MIT
// Transactions whose last operation travels with the commit: the free functions, runners and workers use it if a store
// offers it, and leave entries with an expired lease to a transaction in which they can be handed back.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_committing_test {

using namespace support;
using vouch::error_kind;

namespace {

struct call_counts {
    std::atomic<int> enqueues = 0; // those that commit
    std::atomic<int> claims = 0;
    std::atomic<int> left = 0; // claims that were left to another transaction
    std::atomic<int> settles = 0;
    std::atomic<int> commits = 0;
    std::atomic<bool> is_in_doubt = false; // the next call that commits does, and says that it is in doubt
};

class committing_transaction : public vouch::transaction_adaptor<vouch::memory::transaction> {
  public:
    committing_transaction(vouch::memory::transaction inner, std::shared_ptr<call_counts> calls)
        : transaction_adaptor(std::move(inner)), calls_(std::move(calls)) {}

    void commit() {
        ++calls_->commits;
        inner().commit();
    }
    std::vector<vouch::receipt> enqueue_and_commit(std::span<const vouch::draft> drafts, vouch::time_point now) {
        ++calls_->enqueues;
        auto receipts = inner().enqueue(drafts, now);
        end();
        return receipts;
    }
    [[nodiscard]] std::optional<std::vector<vouch::entry>> claim_and_commit(const vouch::claim_request& request) {
        const auto live = inner().list(vouch::query::live(request.queue));
        if (std::any_of(live.begin(), live.end(),
                        [&](const vouch::entry& e) { return e.lease_until && *e.lease_until <= request.now; })) {
            ++calls_->left;
            end();
            return std::nullopt;
        }
        ++calls_->claims;
        auto claimed = inner().claim(request);
        end();
        return claimed;
    }

    [[nodiscard]] vouch::settled_and_claimed settle_claim_and_commit(std::span<const vouch::settle> settles,
                                                                     vouch::time_point now,
                                                                     const vouch::claim_request& request) {
        ++calls_->settles;
        vouch::settled_and_claimed out{.settlements = inner().settle(settles, now)};
        if (all_applied(out.settlements)) {
            out.claimed = claim_and_commit(request);
        } else {
            close();
        }
        return out;
    }

  private:
    void end() {
        inner().commit();
        close();
        if (calls_->is_in_doubt.exchange(false)) {
            throw vouch::error(error_kind::io, "test: in doubt", {.in_doubt = true});
        }
    }

    std::shared_ptr<call_counts> calls_;
};

struct committing_store : vouch::store_adaptor<vouch::memory::store> {
    using transaction = committing_transaction;
    [[nodiscard]] transaction begin() { return {inner().begin(), calls}; }
    [[nodiscard]] vouch::capabilities capabilities() const {
        auto can = inner().capabilities();
        can.committing = true;
        return can;
    }
    std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
};

static_assert(vouch::store<committing_store>);
static_assert(vouch::committing_transaction<committing_transaction>);
static_assert(!vouch::committing_transaction<vouch::memory::transaction>);
// An interceptor sees each operation, so what an adaptor decorates does not commit by itself.
static_assert(!vouch::committing_transaction<vouch::transaction_adaptor<committing_transaction>>);

} // namespace

TEST_CASE("committing: a store declares it, and an adaptor of the store does not") {
    const committing_store store;
    CHECK(store.capabilities().committing);
    CHECK_FALSE(vouch::store_adaptor<committing_store>().capabilities().committing);
    CHECK_FALSE(vouch::memory::store().capabilities().committing);
}

TEST_CASE("committing: enqueue and claim take one call") {
    committing_store store;
    CHECK(vouch::enqueue(store, std::array{draft_of(1), draft_of(2)}, t0).size() == 2);
    CHECK(vouch::claim(store, request(t0)).size() == 2);
    CHECK(vouch::claim(store, request(t0)).empty());
    CHECK(store.calls->enqueues == 1);
    CHECK(store.calls->claims == 2);
    CHECK(store.calls->commits == 0);
}

TEST_CASE("committing: an enqueue in doubt is repeated with the same ids") {
    committing_store store;
    store.calls->is_in_doubt = true;
    CHECK(vouch::enqueue(store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
    CHECK(store.calls->enqueues == 2);
    CHECK(store.inner().counts("q")[vouch::state::pending] == 1);
}

TEST_CASE("committing: a claim in doubt is not repeated") {
    committing_store store;
    std::ignore = vouch::enqueue(store, std::array{draft_of(1)}, t0);
    store.calls->is_in_doubt = true;
    const auto e = error_of([&] { std::ignore = vouch::claim(store, request(t0)); });
    REQUIRE(e);
    CHECK(e->is_in_doubt());
    CHECK(store.calls->claims == 1);
}

TEST_CASE("committing: a claim that the store leaves alone is made in another transaction") {
    committing_store store;
    std::ignore = vouch::enqueue(store, std::array{draft_of(1)}, t0);
    REQUIRE(vouch::claim(store, request(t0)).size() == 1);
    const auto again = vouch::claim(store, request(t0 + 1h));
    REQUIRE(again.size() == 1);
    CHECK(again.front().lapses == 1);
    CHECK(store.calls->left == 1);
    CHECK(store.calls->commits == 1);
}

TEST_CASE("committing: a runner hands entries with an expired lease back, and drains all") {
    committing_store store;
    vouch::manual_clock clock(t0);
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::router routes(outbox);
    list handled;
    routes.on("t", [&](vouch::delivery& d) { handled.push_back(d.entry().id.low); });
    for (std::uint64_t n = 1; n <= 4; ++n) {
        std::ignore = vouch::enqueue(store, std::array{draft_of(n)}, t0);
    }
    REQUIRE(vouch::claim(store, request(t0, {.limit = 2})).size() == 2); // by a process that dies
    vouch::runner runner(outbox, routes, {.queue = "q", .batch_size = 1});
    CHECK(runner.run_until_idle().succeeded == 2);
    CHECK(store.calls->commits == 0); // settles share the commit of a claim
    clock.set(t0 + 1h);
    CHECK(runner.run_until_idle().succeeded == 2);
    CHECK(handled == list{3, 4, 1, 2});
    CHECK(store.calls->left >= 2);
}

namespace {

/// A runner of a store that settles, claims and commits in one call.
struct settling {
    committing_store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox<committing_store> outbox{store, {.clock = clock}};
    vouch::router<committing_store> routes{outbox};

    void put(const vouch::draft& d) { std::ignore = vouch::enqueue(store, std::array{d}, t0); }
};

} // namespace

TEST_CASE("committing: a runner settles, claims and commits in one call") {
    settling s;
    s.routes.on("t", [] {});
    for (std::uint64_t n = 1; n <= 4; ++n) {
        s.put(draft_of(n));
    }
    vouch::runner runner(s.outbox, s.routes, {.queue = "q", .batch_size = 2});
    CHECK(runner.run_until_idle().succeeded == 4);
    CHECK(s.store.calls->settles == 2);
    CHECK(s.store.calls->claims == 3);
    CHECK(s.store.calls->commits == 0);
}

TEST_CASE("committing: a runner settles an entry of a group before it claims and commits") {
    settling s;
    s.routes.on("t", [] {});
    auto member = draft_of(1);
    member.group = "g";
    s.put(member);
    s.put(draft_of(2));
    vouch::runner runner(s.outbox, s.routes, {.queue = "q", .batch_size = 1});
    std::string completed;
    runner.on_group_complete([&](auto&, const std::string& group, const vouch::entry&) { completed = group; });
    CHECK(runner.run_until_idle().succeeded == 2);
    CHECK(completed == "g");
    CHECK(s.store.calls->settles == 1); // that of the other entry
}

TEST_CASE("committing: a settle that is refused leaves its neighbours to be settled, and its emissions are lost") {
    settling s;
    s.routes.on("t", [](vouch::delivery& d) {
        d.emit({.queue = "other", .topic = "t", .key = std::to_string(d.entry().id.low)});
    });
    s.put(draft_of(1));
    s.put(draft_of(2));
    vouch::runner runner(s.outbox, s.routes, {.queue = "q", .batch_size = 2, .lease = 1min});
    auto done = runner.handle_all(runner.claim());
    s.clock.pass(1h);
    REQUIRE(vouch::claim(s.store, request(s.clock(), {.limit = 1})).size() == 1); // takes 1 over
    const auto report = runner.settle_and_claim(done).first;
    CHECK(report.succeeded == 1);
    CHECK(report.stale == 1);
    CHECK(s.store.calls->settles == 2);
    CHECK(s.store.inner().counts("q")[vouch::state::succeeded] == 1);
    CHECK(s.store.inner().list(vouch::query::keyed("other", "1")).empty());
    CHECK(s.store.inner().list(vouch::query::keyed("other", "2")).size() == 1);
}

TEST_CASE("committing: a settle in doubt is resolved, and its claims are forgotten") {
    settling s;
    int handled = 0;
    s.routes.on("t", [&] { ++handled; });
    s.put(draft_of(1));
    s.put(draft_of(2));
    vouch::runner runner(s.outbox, s.routes, {.queue = "q", .batch_size = 1, .lease = 1min});
    auto done = runner.handle_all(runner.claim());
    s.store.calls->is_in_doubt = true;
    const auto [report, claimed] = runner.settle_and_claim(done);
    CHECK(report.succeeded == 1);
    CHECK(claimed.empty()); // 2 is claimed, but by whom is not known
    CHECK(s.store.inner().find(id_of(2))->state == vouch::state::claimed);
    s.clock.pass(1h);
    CHECK(runner.run_until_idle().succeeded == 1);
    CHECK(handled == 2);
}

TEST_CASE("committing: a worker drains the queue, entries with an expired lease included") {
    committing_store store;
    const vouch::outbox outbox(store);
    const auto now = vouch::system_now();
    std::vector<vouch::draft> drafts;
    for (std::uint64_t n = 1; n <= 20; ++n) {
        drafts.push_back(draft_of(n));
    }
    std::ignore = vouch::enqueue(store, drafts, now - 1h);
    REQUIRE(vouch::claim(store, request(now - 1h, {.limit = 3})).size() == 3); // their leases have expired
    vouch::router routes(outbox);
    std::atomic<int> handled = 0;
    std::stop_source stop;
    routes.on("t", [&](vouch::delivery&) {
        if (++handled == 20) {
            stop.request_stop();
        }
    });
    vouch::worker worker(outbox);
    worker.serve(routes, {.queue = "q", .concurrency = 2, .batch_size = 5});
    worker.run(stop.get_token());
    CHECK(store.inner().counts("q")[vouch::state::succeeded] == 20);
    CHECK(store.calls->left > 0);
    CHECK(store.calls->claims > 0);
}

} // namespace contract_committing_test
