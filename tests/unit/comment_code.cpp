// SPDX-License-Identifier: MIT
// The code in the comments of public headers, compiled, and run where that says something. `checks/comment_code.py` finds
// it here, white space and comments aside: change both.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/webhook.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace comment_code_test {

struct user {
    std::string name{};
};

struct order {
    std::string number{};
    bool is_gift = false;
};

} // namespace comment_code_test

template <>
struct vouch::codec<comment_code_test::order> {
    static std::string encode(const comment_code_test::order& o) { return o.number; }
    static comment_code_test::order decode(std::string_view bytes) { return {.number = std::string(bytes)}; }
};

using comment_code_test::user;
// clang-format off
template <> struct vouch::codec<user> {
    static std::string encode(const user&);
    static user decode(std::string_view);
};
// clang-format on
std::string vouch::codec<user>::encode(const user& u) { return u.name; }
user vouch::codec<user>::decode(std::string_view bytes) { return {.name = std::string(bytes)}; }

namespace comment_code_test {

using namespace support;

namespace {

std::string charge(const order& o) { return "charged " + o.number; }
void refund(const order&) {}
void refund(const order&, const std::optional<std::string>&) {}
void wrap(const order&) {}

void greet(vouch::delivery& d) { d.emit({.queue = "mail", .topic = "mail.welcome", .payload = d.payload()}); }

void send_together(vouch::delivery_batch&) {}
bool accepts(std::string_view mail) { return mail != "spam"; }

auto make_order_saga() {
    void (*const refund)(const order&) = comment_code_test::refund;
    std::string (*const charge)(const order&) = comment_code_test::charge;
    // clang-format off
    const auto order_saga = vouch::define_saga<order>("order", {.completed = "order.confirmed"})
        .step("payment", charge, refund)
        .step("gift wrap", wrap).when([](const order& o) { return o.is_gift; })
        .command("shipping", {.queue = "shipping", .topic = "schedule", .undo = "cancel"})
        .build();
    // clang-format on
    return order_saga;
}

} // namespace

TEST_CASE("comments: a query reads page by page") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put(store, draft_of(n, "mail"));
        REQUIRE(cancel(store, id_of(n)) == vouch::verdict::applied);
    }
    std::vector<std::size_t> sizes;
    const auto show = [&](const std::vector<vouch::entry>& found) { sizes.push_back(found.size()); };

    auto page = vouch::query::dead("mail");
    for (auto found = store.list(page); !found.empty(); found = store.list(page)) {
        show(found);
        page.after = found.back().sequence;
    }
    CHECK(sizes == std::vector<std::size_t>{5});
}

TEST_CASE("comments: a runner writes a history in memory") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    const vouch::router router(outbox);
    vouch::runner runner(outbox, router, {.queue = "mail"});

    vouch::memory::history_log history;
    runner.history(std::ref(history));
    CHECK(history.of(id_of(1)).empty());
}

TEST_CASE("comments: a codec of one's own") {
    CHECK(vouch::codec<user>::decode(vouch::codec<user>::encode({.name = "ada"})).name == "ada");
}

TEST_CASE("comments: a scope gives what is emitted inside it one trail") {
    vouch::memory::store store;
    vouch::bindings bindings;
    bindings.bind("user.#", "mail");
    const vouch::outbox outbox(store, {.bindings = bindings});
    auto tx = store.begin();

    const vouch::tracking scope(outbox);
    outbox.emit(tx, {.topic = "user.created"});
    tx.commit();
    CHECK(store.list(vouch::query::all("mail")).front().trail.size() == 2);
}

TEST_CASE("comments: a worker runs until it is stopped") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    std::stop_source source;
    source.request_stop();
    const auto stop = source.get_token();

    vouch::worker worker(outbox, {.name = "mailer-1"});
    worker.serve(router, {.queue = "mail", .concurrency = 4});
    worker.run(stop);
    CHECK(store.counts("mail").total() == 0);

    [[maybe_unused]] const auto until_a_signal = [&] {
        vouch::stop_signals signals;
        worker.run(signals.token());
    };
}

// The comment shows the delivery, which this handler does not use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
TEST_CASE("comments: a participant takes a compensation as a value") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on<vouch::compensation>(
        "refund", [](const vouch::compensation& c, vouch::delivery& d) { refund(c.context_as<order>(), c.reply); });
}
#pragma GCC diagnostic pop

TEST_CASE("comments: an inbox runs the work of a message once") {
    vouch::memory::store store;
    const auto now = t0;
    const auto message_id = id_of(1);
    int charges = 0;
    const auto charge = [&](auto&) { return std::to_string(++charges); };

    for (int n = 0; n < 2; ++n) {
        vouch::transact(store, [&](auto& tx) {
            vouch::inbox::once(tx, {.consumer = "billing", .message = message_id, .now = now},
                               [&] { return charge(tx); });
        });
    }
    CHECK(charges == 1);
}

TEST_CASE("comments: an outbox, a router and a runner") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    outbox.emit({.queue = "mail", .topic = "user.created", .payload = "ada"});
    vouch::transact(store,
                    [&](auto& tx) { outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "ada"}); });
    const auto order_saga = make_order_saga();

    vouch::router router(outbox);
    router.on("user.created", greet, {.backoff = vouch::fixed{1s}});
    router.on(order_saga);
    router.on_batch("mail.#", send_together, {.size_max = 100});
    vouch::runner runner(outbox, router, {.queue = "mail"});
    runner.run_until_idle();
    CHECK(store.counts("mail")[vouch::state::succeeded] == 4); // two users, and a mail to each
}

TEST_CASE("comments: a batch handler decides about each entry") {
    vouch::testing::sandbox router;
    // clang-format off
    router.on_batch("mail.#", [](vouch::delivery_batch& batch) {
        std::vector<vouch::outcome> outcomes(batch.size()); // all succeed, unless this is changed
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (!accepts(batch[i].payload())) {
                outcomes[i] = vouch::retry{"refused"}; // without a time: when the policy says
            }
        }
        return outcomes;
    });
    // clang-format on
    router.emit({.topic = "mail.out", .payload = "hello"});
    router.emit({.topic = "mail.out", .payload = "spam"});
    const auto done = router.run_once();
    CHECK(done.succeeded == 1);
    CHECK(done.retried == 1);
}

TEST_CASE("comments: a webhook is a route") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    const vouch::webhook::subscription subscription{.id = "crm"};
    const auto find_subscription = [&](std::string_view) { return std::optional(subscription); };
    int sent = 0;
    const auto send = [&](const vouch::webhook::request&) { return ++sent, 204; };
    const std::string body = "{}";
    auto tx = store.begin();

    const vouch::webhook hook(find_subscription, send);
    router.on(hook);
    outbox.emit(tx, vouch::webhook::of({.queue = "hooks", .event = "order 7", .to = subscription, .body = body}));
    tx.commit();
    vouch::runner(outbox, router, {.queue = "hooks"}).run_until_idle();
    CHECK(sent == 1);
}

TEST_CASE("comments: a store that forwards to another, and says what it does") {
    // clang-format off
    vouch::store_adaptor store(vouch::memory::store{}, [](vouch::store_operation what, const auto& call) {
        std::puts(name_of(what).data());
        return call();
    });
    // clang-format on
    static_assert(vouch::store<decltype(store)>);
}

namespace {

// clang-format off
struct patient_transaction : vouch::transaction_adaptor<vouch::memory::transaction> {
    using transaction_adaptor::transaction_adaptor;
    auto claim(vouch::claim_request request) { request.lease *= 2; return inner().claim(request); }
};
struct patient_store : vouch::store_adaptor<vouch::memory::store> {
    using store_adaptor::store_adaptor;
    using transaction = patient_transaction;
    transaction begin() { return transaction(inner().begin()); }
};
static_assert(vouch::store<patient_store>);

const vouch::capabilities my_capabilities{};
const vouch::memory::store& my_unchecked_reader() {
    static const vouch::memory::store store;
    return store;
}
class my_store : public vouch::validated_reader<my_store> {
    friend class vouch::validated_reader<my_store>;
    const vouch::capabilities& expect_open() const { return my_capabilities; }
    template <class Operation>
    auto read(const Operation& operation) const { return operation(my_unchecked_reader()); }
};
static_assert(vouch::reader<my_store>);

class my_transaction : public vouch::validated_writer<my_transaction> {
  public:
    void commit();
};
// clang-format on

} // namespace

TEST_CASE("comments: a store that derives from the bases has its arguments checked") {
    const my_store store;
    CHECK(!store.find(id_of(1)));
    CHECK(kind_of([&] { std::ignore = store.counts(""); }) == vouch::error_kind::invalid_argument);
    static_assert(std::is_class_v<my_transaction>);
}

TEST_CASE("comments: a sandbox") {
    vouch::testing::sandbox box;
    box.on("user.created", greet);
    box.emit({.topic = "user.created", .payload = "ada"});
    box.run_until_idle();
    REQUIRE(box.emitted("mail.welcome") == 1);
}

} // namespace comment_code_test
