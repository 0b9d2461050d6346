// SPDX-License-Identifier: MIT
// A participant in another service, alone with its store: every command that ends is answered, whatever its handler
// does, and a compensation is never overtaken by the command that it undoes.
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vouch/relay_saga.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace saga_participant_test {
namespace {

using namespace std::chrono_literals;
using status = vouch::saga_reply::status;

constexpr vouch::id saga{1, 2};
constexpr vouch::id charge{7, 1};
constexpr vouch::id refund{7, 2};

[[nodiscard]] vouch::emission command(bool is_compensation = false) {
    return {.queue = "payment",
            .topic = is_compensation ? "payment.refund" : "payment.charge",
            .parent = saga,
            .headers = {{"saga", to_string(saga)},
                        {"saga-step", "charge"},
                        {"saga-step-number", "1"},
                        {"saga-compensation", is_compensation ? "true" : "false"},
                        {"saga-command", to_string(is_compensation ? refund : charge)}}};
}

/// Reads and writes of its store fail a given number of times.
struct planned_faults {
    std::shared_ptr<int> left = std::make_shared<int>(0);

    template <class Call>
    auto operator()(vouch::store_operation what, const Call& call) const {
        using op = vouch::store_operation;
        if ((what == op::find || what == op::list) && *left > 0) {
            --*left;
            throw vouch::error(vouch::error_kind::busy, "planned: busy");
        }
        return call();
    }
};

/// A store that takes larger results than payloads.
class wide_store : public vouch::store_adaptor<vouch::memory::store, planned_faults> {
  public:
    [[nodiscard]] vouch::capabilities capabilities() const {
        auto out = vouch::store_adaptor<vouch::memory::store, planned_faults>::capabilities();
        out.limits.result_max = 2 * out.limits.payload_max;
        return out;
    }
    [[nodiscard]] int& faults() { return *interceptor().left; }
};

using store_type = wide_store;
using transaction = store_type::transaction;

/// A participant's service whose queue "payment" has one handler.
struct service {
    template <class Handler>
    explicit service(Handler handler, vouch::retry_policy retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}) {
        router.on("payment.#", vouch::participant(outbox, std::move(handler)), retry);
    }

    vouch::id send(const vouch::emission& what) { return outbox.emit(what).front().id; }
    auto run(const std::string& queue = "payment") {
        return vouch::runner(outbox, router, {.queue = queue}).run_until_idle(clock);
    }
    [[nodiscard]] std::vector<vouch::saga_reply> replies() const {
        std::vector<vouch::saga_reply> out;
        auto all = vouch::query::all("replies");
        all.payloads = true;
        for (const auto& e : store.list(all)) {
            out.push_back(vouch::reply_of(e).value());
        }
        return out;
    }
    /// The reply to the only command, which has succeeded.
    [[nodiscard]] vouch::saga_reply only_reply() const {
        const auto commands = store.list(vouch::query::all("payment"));
        REQUIRE(commands.size() == 1);
        CHECK(commands.front().state == vouch::state::succeeded);
        REQUIRE(replies().size() == 1);
        CHECK(replies().front().command == charge);
        return replies().front();
    }
    [[nodiscard]] std::size_t follow_ups() const { return store.list(vouch::query::all("mail")).size(); }

    vouch::manual_clock clock{};
    store_type store{};
    vouch::outbox<store_type> outbox{store, {.clock = clock}};
    vouch::router<store_type> router{outbox};
};

const vouch::emission receipt{.queue = "mail", .topic = "receipt.send"};

} // namespace

TEST_CASE("participant: what its handler emits is committed with a success only") {
    struct way {
        std::function<vouch::outcome()> end;
        status reply;
        std::size_t follow_ups;
    };
    const std::vector<way> ways{
        {[] { return vouch::succeed{.result = "done"}; }, status::succeeded, 1},
        {[]() -> vouch::outcome { throw vouch::reject("declined"); }, status::rejected, 0},
        {[] { return vouch::bury{.error = "declined", .result = ""}; }, status::rejected, 0},
        {[] { return vouch::bury{.error = "declined"}; }, status::failed, 0},
        {[]() -> vouch::outcome { throw std::runtime_error("down"); }, status::failed, 0},
    };
    for (const auto& w : ways) {
        service s([&](vouch::delivery& d) {
            d.emit(receipt);
            return w.end();
        });
        s.send(command());
        s.run();
        CHECK(s.only_reply().what == w.reply);
        CHECK(s.follow_ups() == w.follow_ups);
    }
}

TEST_CASE("participant: what its handler records is committed with a success only") {
    struct handler {
        vouch::outcome work(vouch::delivery&) { return vouch::bury{.error = "declined", .result = ""}; }
        void record(transaction& tx) {
            const vouch::draft kept{.id = {9, 9}, .queue = "mail", .topic = "receipt.send"};
            static_cast<void>(tx.enqueue(std::span(&kept, 1), {}));
        }
    };
    service s(handler{});
    s.send(command());
    s.run();
    CHECK(s.only_reply().what == status::rejected);
    CHECK(s.follow_ups() == 0);
}

TEST_CASE("participant: a command whose record rejects is answered") {
    struct handler {
        std::string work(vouch::delivery& d) {
            d.emit(receipt);
            return "charged";
        }
        void record(transaction&, const std::string&) { throw vouch::reject("account_closed"); }
    };
    service s(handler{});
    s.send(command());
    s.run();
    CHECK(s.only_reply().what == status::rejected);
    CHECK(s.only_reply().error == "account_closed");
    CHECK(s.only_reply().result.empty());
    CHECK(s.follow_ups() == 0);
}

TEST_CASE("participant: a code that is too long for the store is cut, and a missing one is filled in") {
    service verbose([](vouch::delivery&) { throw vouch::reject(std::string(5000, 'x')); });
    verbose.send(command());
    verbose.run();
    CHECK(verbose.only_reply().what == status::rejected);
    CHECK(verbose.only_reply().error == std::string(vouch::limits{}.error_max, 'x'));

    service silent([](vouch::delivery&) { throw vouch::reject(""); });
    silent.send(command());
    silent.run();
    CHECK(silent.only_reply().error == "rejected");
}

TEST_CASE("participant: a result that the store or the reply cannot hold is answered as a failure") {
    const auto limit = store_type{}.capabilities().limits;
    REQUIRE(limit.result_max > limit.payload_max);
    for (const auto size : {limit.payload_max + 1, limit.result_max + 1}) {
        service s([&](vouch::delivery& d) {
            d.emit(receipt);
            return std::string(size, 'x');
        });
        s.send(command());
        s.run();
        CHECK(s.only_reply().what == status::failed);
        CHECK(s.only_reply().error == "result_too_large");
        CHECK(s.follow_ups() == 0);
    }
    service fits([&](vouch::delivery&) { return std::string(limit.payload_max, 'x'); });
    fits.send(command());
    fits.run();
    CHECK(fits.only_reply().what == status::succeeded);
}

TEST_CASE("participant: an invalid follow-up and a checkpoint over the limit are answered as failures") {
    service emits([](vouch::delivery& d) { d.emit({.queue = "mail", .topic = ""}); });
    emits.send(command());
    emits.run();
    CHECK(emits.only_reply().what == status::failed);
    CHECK(emits.only_reply().error == "invalid_emission");

    service advances([](vouch::delivery&) -> vouch::outcome {
        return vouch::advance{.progress = std::string(vouch::limits{}.progress_max + 1, 'x')};
    });
    advances.send(command());
    advances.run();
    CHECK(advances.only_reply().what == status::failed);
    CHECK(advances.only_reply().error == "progress_too_large");
}

TEST_CASE("participant: a command that runs out of attempts or time is answered with the code of its last failure") {
    int calls = 0;
    service s([&](vouch::delivery&) { throw vouch::failure(++calls == 1 ? "first" : "second"); });
    s.send(command());
    s.run();
    CHECK(calls == 2);
    CHECK(s.only_reply().what == status::failed);
    CHECK(s.only_reply().error == "second");

    service late([](vouch::delivery&) {});
    auto soon = command();
    soon.expires_in = 1s;
    late.send(soon);
    late.clock.pass(2s);
    late.run();
    CHECK(late.only_reply().what == status::failed);
    CHECK(late.only_reply().error == "expired");
}

TEST_CASE("participant: an `ended` of its handler decides, and one that rejects is answered") {
    struct handler {
        bool rejects = false;
        void work(vouch::delivery&) { throw vouch::failure("down"); }
        vouch::outcome ended(vouch::delivery& d, vouch::ending) {
            d.emit(receipt);
            if (rejects) {
                throw vouch::reject("gave_up");
            }
            return vouch::succeed{.result = "later"};
        }
    };
    service decides(handler{});
    decides.send(command());
    decides.run();
    CHECK(decides.only_reply().what == status::succeeded);
    CHECK(decides.only_reply().result == "later");
    CHECK(decides.follow_ups() == 1);

    service rejects(handler{.rejects = true});
    rejects.send(command());
    rejects.run();
    CHECK(rejects.only_reply().what == status::failed);
    CHECK(rejects.only_reply().error == "gave_up");
    CHECK(rejects.follow_ups() == 0);
}

TEST_CASE("participant: an entry that is no command is dead without a reply") {
    service s([](vouch::delivery&) {});
    const auto id = s.send({.queue = "payment", .topic = "payment.charge"});
    CHECK(s.run().dead == 1);
    CHECK(s.store.find(id)->last_error == "no_command");
    CHECK(s.replies().empty());
}

TEST_CASE("participant: a compensation is not overtaken, even if the two commands are in different queues") {
    std::vector<std::string> calls;
    service s([&](vouch::delivery& d) { calls.push_back(d.topic()); });
    auto undo = command(true);
    undo.queue = "refunds";
    s.send(undo);
    s.run("refunds");
    s.send(command());
    s.run();
    CHECK(calls == std::vector<std::string>{"payment.refund"});
    REQUIRE(s.replies().size() == 2);
    CHECK(s.replies()[0].what == status::succeeded);
    CHECK(s.replies()[1].what == status::rejected);
    CHECK(s.replies()[1].error == "undone_before");
}

TEST_CASE("participant: marks are in a queue of their own") {
    service s([](vouch::delivery&) {});
    s.send(command(true));
    s.run();
    CHECK(s.store.list(vouch::query::all("payment")).size() == 1);
    const auto marks = s.store.list(vouch::query::all("undone"));
    REQUIRE(marks.size() == 1);
    CHECK(marks.front().state == vouch::state::succeeded);
}

TEST_CASE("participant: options that no reply would fit are refused") {
    const vouch::manual_clock clock{};
    store_type store;
    const vouch::outbox outbox(store, {.clock = clock});
    const auto make = [&](vouch::participant_options how) {
        return vouch::participant(
            outbox, [](vouch::delivery&) {}, std::move(how));
    };
    CHECK_THROWS_AS(make({.replies = ""}), vouch::error);
    CHECK_THROWS_AS(make({.reply_topic = std::string(300, 't')}), vouch::error);
    CHECK_THROWS_AS(make({.marks = ""}), vouch::error);
}

TEST_CASE("participant: a fault of its own store costs a command no attempt") {
    for (const bool is_compensation : {false, true}) {
        for (const int faults : {1, 2, 5}) {
            int calls = 0;
            service s([&](vouch::delivery&) { ++calls; }, {.attempts_max = 1});
            const auto id = s.send(command(is_compensation));
            s.store.faults() = faults;
            s.run();
            CHECK(calls == 1);
            CHECK(s.store.find(id)->attempts == 1);
            REQUIRE(s.replies().size() == 1);
            CHECK(s.replies().front().what == status::succeeded);
        }
    }
}

} // namespace saga_participant_test
