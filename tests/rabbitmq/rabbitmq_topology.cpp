// SPDX-License-Identifier: MIT
#include <chrono>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <vouch/relay.hpp>

#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

/// Names that JSON, HCL and regular expressions would take for their own.
[[nodiscard]] rabbitmq::topology odd_names() {
    return {.exchange = fresh("ev\"e\\n${ts}%{x}"),
            .listeners = {{.queue = fresh("bill.i+ng(1|2)"),
                           .patterns = {"order.*", "user.#"},
                           .single_active_consumer = true},
                          {.queue = fresh("größe"), .patterns = {"#"}}},
            .delivery_limit = 7,
            .length_max = 1000};
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream out(path);
    out << text;
    out.close();
    REQUIRE(out);
}

} // namespace

TEST_CASE("rabbitmq: a topology that no broker can have is refused") {
    using vouch::error_kind;
    const auto refusal = [](const rabbitmq::topology& t) { return error_of([&] { rabbitmq::validate(t); }); };
    CHECK_FALSE(refusal({.exchange = "e"}));
    expect_sentence(refusal({}), error_kind::invalid_argument, "the name of the exchange is empty");
    expect_sentence(refusal({.exchange = "amq.topic"}), error_kind::invalid_argument, "begins with `amq.`");
    expect_sentence(refusal({.exchange = std::string(252, 'e')}), error_kind::invalid_argument,
                    "the dead-letter exchange has 256 bytes, and 255 are allowed");
    expect_sentence(refusal({.exchange = "e", .dead_letter_exchange = "e"}), error_kind::invalid_argument,
                    "the dead-letter exchange is the exchange itself");
    expect_sentence(refusal({.exchange = "a\x1b[2J"}), error_kind::invalid_argument, "control character");
    expect_sentence(refusal({.exchange = "\xff"}), error_kind::invalid_argument, "not valid UTF-8");
    expect_sentence(refusal({.exchange = "e", .listeners = {{.queue = std::string(252, 'q')}}}),
                    error_kind::invalid_argument, "the dead-letter queue of listener 0 has 256 bytes");
    expect_sentence(refusal({.exchange = "e", .listeners = {{.queue = "q"}, {.queue = "q"}}}),
                    error_kind::invalid_argument, "is there twice: q");
    expect_sentence(refusal({.exchange = "e", .listeners = {{.queue = "q"}, {.queue = "q.dlq"}}}),
                    error_kind::invalid_argument, "is there twice");
    expect_sentence(refusal({.exchange = "e", .listeners = {{.queue = "q", .patterns = {""}}}}),
                    error_kind::invalid_argument, "a pattern of listener 0 is empty");
}

TEST_CASE("rabbitmq: definitions refuse a user whose name is no name") {
    const rabbitmq::topology t{.exchange = "e"};
    for (const std::string user : {"a\nb", "a\xff", "a\x01"}) {
        expect_sentence(error_of([&] { static_cast<void>(rabbitmq::definitions_json(t, {.user = user})); }),
                        vouch::error_kind::invalid_argument, "user is not valid UTF-8, or has a control character");
        expect_sentence(error_of([&] { static_cast<void>(rabbitmq::terraform(t, {.user = user})); }),
                        vouch::error_kind::invalid_argument, "user is not valid UTF-8, or has a control character");
    }
    CHECK_FALSE(rabbitmq::definitions_json(t).empty());
}

TEST_CASE("rabbitmq: the delivery limit outlasts an intake whose store is away for weeks") {
    const vouch::intake_options intake;
    const auto shortest = intake.backoff.max * (1 - intake.backoff.jitter);
    CHECK(shortest * rabbitmq::topology{}.delivery_limit > std::chrono::hours(24 * 28));
}

TEST_CASE("rabbitmq: the permissions of a service match its objects and no others") {
    const rabbitmq::topology t{.exchange = "ev.ents", .listeners = {{.queue = "a+b"}, {.queue = "c|d"}}};
    const auto both = rabbitmq::least_permissions(t);
    CHECK(both.configure == "^$");
    CHECK(both.write == "^(ev\\.ents)$");
    CHECK(both.read == "^(a\\+b|c\\|d)$");
    CHECK(rabbitmq::least_permissions(t, rabbitmq::service::publishes).read == "^$");
    CHECK(rabbitmq::least_permissions(t, rabbitmq::service::consumes).write == "^$");
    const std::regex read(both.read);
    CHECK(std::regex_match("a+b", read));
    CHECK(std::regex_match("c|d", read));
    for (const auto* other : {"aab", "c", "d", "a+b.dlq", "xa+b", ""}) {
        CHECK_FALSE(std::regex_match(other, read));
    }
}

TEST_CASE("rabbitmq: Terraform gets every object, and names are data") {
    const rabbitmq::topology t{.exchange = "e\"\\${x}%{y}$z",
                               .listeners = {{.queue = "q", .patterns = {"a.*", "b.#"}}}};
    const auto text = rabbitmq::terraform(t, {.vhost = "v", .user = "app", .does = rabbitmq::service::consumes});
    CAPTURE(text);
    for (const auto* part :
         {"resource \"rabbitmq_exchange\" \"vouch_exchange\" {\n  name = \"e\\\"\\\\$${x}%%{y}$z\"\n  vhost = \"v\"\n",
          "resource \"rabbitmq_queue\" \"vouch_queue_0\" {",
          "resource \"rabbitmq_queue\" \"vouch_dead_letter_queue_0\" {",
          "jsonencode({ \"x-queue-type\" = \"quorum\", \"x-dead-letter-exchange\" = \"e\\\"\\\\$${x}%%{y}$z.dlx\"",
          "\"x-delivery-limit\" = 1000", "resource \"rabbitmq_binding\" \"vouch_binding_0_1\" {",
          "  source = rabbitmq_exchange.vouch_exchange.name\n", "  destination = rabbitmq_queue.vouch_queue_0.name\n",
          "  routing_key = \"b.#\"\n", "resource \"rabbitmq_permissions\" \"vouch_permissions\" {\n  user = \"app\"\n",
          "    configure = \"^$\"\n    write     = \"^$\"\n    read      = \"^(q)$\"\n"}) {
        CAPTURE(part);
        CHECK(text.find(part) != std::string::npos);
    }
    expect_sentence(error_of([&] { static_cast<void>(rabbitmq::terraform(t, {}, "a-b")); }),
                    vouch::error_kind::invalid_argument, "label must begin with a letter");
}

TEST_CASE("rabbitmq: verify names everything that is missing") {
    rabbitmq::topology t{.exchange = fresh("events"), .listeners = {{.queue = fresh("one")}, {.queue = fresh("two")}}};
    const auto e = error_of([&] { rabbitmq::verify(here(), t); });
    for (const auto& part : {"exchange " + t.exchange + ",", "exchange " + t.exchange + ".dlx,",
                             "queue " + t.listeners[0].queue + ",", "queue " + t.listeners[0].queue + ".dlq,",
                             "queue " + t.listeners[1].queue + ",", "queue " + t.listeners[1].queue + ".dlq;"}) {
        expect_sentence(e, vouch::error_kind::invalid_argument, part);
    }
    rabbitmq::declare(here(), t);
    rabbitmq::declare(here(), t); // twice is no error
    rabbitmq::verify(here(), t);
    t.delivery_limit = 5;
    expect_sentence(error_of([&] { rabbitmq::declare(here(), t); }), vouch::error_kind::invalid_argument,
                    "declare queue " + t.listeners[0].queue + ": it exists with other arguments");
    remove(t);
}

TEST_CASE(
    "rabbitmq: a broker imports the definitions, and a user with the least permissions can work and nothing else") {
    const auto t = odd_names();
    broker("ctl", "add_user app hunter2");
    const auto file = folder() + "/definitions.json";
    write_file(file, rabbitmq::definitions_json(t, {.user = "app"}));
    broker("ctl", "import_definitions " + file);
    rabbitmq::declare(here(), t); // they have the same arguments: no error
    auto app = here();
    app.user = "app";
    app.password = "hunter2";
    rabbitmq::verify(app, t);

    rabbitmq::publisher to({.connection = app, .exchange = t.exchange});
    CHECK(texts_of(to.publish(messages(2))) == "confirmed");
    for (const auto& l : t.listeners) {
        rabbitmq::consumer from({.connection = app, .queue = l.queue});
        const auto got = receive(from, 2);
        CHECK(ids_of(got) == "m0 m1");
        from.set_aside(std::vector{got[0]}); // the broker moves it, whatever the user may do
        from.acknowledge(got);
    }
    rabbitmq::consumer dead({.connection = here(), .queue = rabbitmq::dead_letter_queue(t.listeners[1].queue)});
    CHECK(ids_of(receive(dead, 1, true)) == "m0");

    expect_sentence(error_of([&] { rabbitmq::declare(app, {.exchange = fresh("mine")}); }),
                    vouch::error_kind::read_only, "lacks a permission");
    rabbitmq::consumer forbidden({.connection = app, .queue = rabbitmq::dead_letter_queue(t.listeners[1].queue)});
    expect_sentence(error_of([&] { static_cast<void>(forbidden.receive(1, 1s, {})); }), vouch::error_kind::read_only,
                    "lacks a permission");
    rabbitmq::publisher elsewhere({.connection = app, .exchange = "amq.topic"});
    CHECK(texts_of(elsewhere.publish(messages(3))) == "unknown access_refused");

    // A topic that the user may not write stops no other message.
    const auto escaped = std::regex_replace(t.exchange, std::regex(R"(["\\$`])"), "\\$&");
    broker("ctl", "set_topic_permissions app \"" + escaped + "\" '^order' '.*'");
    auto sent = messages(10);
    sent[4].topic = "user.created";
    const auto answers = to.publish(sent);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        CAPTURE(i);
        CHECK(text_of(answers[i]) == (i == 4 ? "unknown access_refused" : "confirmed"));
    }
    broker("ctl", "delete_user app");
    remove(t);
}
