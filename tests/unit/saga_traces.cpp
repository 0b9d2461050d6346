// SPDX-License-Identifier: MIT
// The traces of the order saga of the sources, line by line; definitions, progress and status as values.
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_orders.hpp"
#include "saga_support.hpp"

namespace saga_traces_test {

using namespace saga_support;
using vouch::error_kind;
using vouch::saga_progress;

namespace {

const auto nothing = [] {};

/// A progress with a value in every field.
saga_progress full_progress() {
    return {.definition = "order",
            .version = 300,
            .direction = vouch::saga_direction::back,
            .at = 1,
            .steps = {{"payment", vouch::step_state::done, std::string("a\0b", 3)},
                      {"shipping", vouch::step_state::unknown, {}}},
            .reason = "no",
            .since = t0,
            .tries = 7,
            .command = id_of(1),
            .sender = id_of(2),
            .deadline = t0 + 5s,
            .origin = id_of(3),
            .owner = id_of(4)};
}

/// The bytes, followed by their checksum.
std::string sealed(std::string bytes) {
    const auto sum = vouch::detail::checksum(bytes);
    for (unsigned shift = 0; shift < 32; shift += 8) {
        bytes.push_back(static_cast<char>((sum >> shift) & 0xffU));
    }
    return bytes;
}

} // namespace

TEST_CASE("traces: the three of the sources are reproduced line by line, in this process and with participants") {
    const bool remote = GENERATE(false, true);
    CAPTURE(remote);
    vouch::memory::store store;
    saga_orders::check_traces(store, remote, [](const auto& is, const auto& should) { CHECK(is == should); });
}

TEST_CASE("definition: one that cannot run is refused, and the error names the step and the field") {
    const auto refused = [](const auto& make) {
        const auto e = error_of([&] { std::ignore = make().build(); });
        REQUIRE(e);
        CHECK(e->kind() == error_kind::invalid_argument);
        return std::string(e->what());
    };
    CHECK(refused([] { return define(); }) == "saga: steps are none; a saga needs at least one");
    CHECK(refused([] { return define().step("", nothing); }) == "saga step 0: name is empty");
    CHECK(refused([] { return define().step("a", nothing).step("b", nothing).step("a", nothing); }) ==
          "saga step 2: name is also the name of step 0");
    CHECK(refused([] { return vouch::define_saga<std::string>("").step("a", nothing); }) == "saga: name is empty");
    CHECK(refused([] { return define({.version = 0}).step("a", nothing); }) ==
          "saga: version is 0; versions count from 1");
    CHECK(refused([] { return define().step("a", nothing, {.timeout = -1s}); }) == "saga step 0: timeout is negative");
    CHECK(refused([] { return define().command("a", {.topic = "t"}); }) == "saga step 0: queue is empty");
    CHECK(refused([] { return define().command("a", {.queue = "q"}); }) == "saga step 0: topic is empty");
    CHECK(refused([] { return define().command("a", {.queue = "q", .topic = "t", .timeout = 0s}); }) ==
          "saga step 0: timeout is 0; a command needs one");
    CHECK(refused([] { return define({.completed = "a\nb"}).step("a", nothing); }) ==
          "saga: completed has a control character at byte 1");
    auto without_action = define().step("a", nothing).build();
    without_action.steps[0].forward = nullptr;
    CHECK(kind_of([&] { vouch::validate(without_action); }) == error_kind::invalid_argument);

    vouch::memory::store store;
    const vouch::outbox outbox(store);
    using versions = std::vector<vouch::saga_definition>;
    const auto v1 = define().step("a", nothing).build();
    const auto other = vouch::define_saga<std::string>("invoice", {.version = 2}).step("a", nothing).build();
    CHECK(kind_of([&] { vouch::router(outbox).on(versions{}); }) == error_kind::invalid_argument);
    CHECK(kind_of([&] { vouch::router(outbox).on(versions{v1, v1}); }) == error_kind::invalid_argument);
    CHECK(kind_of([&] { vouch::router(outbox).on(versions{v1, other}); }) == error_kind::invalid_argument);
    CHECK(kind_of([&] { vouch::router(outbox).on(v1).on(v1); }) == error_kind::invalid_argument); // would never run
    CHECK(kind_of([&] { vouch::router(outbox).on(v1).on(other); }) == std::nullopt);
}

TEST_CASE("progress: what is encoded is decoded, to the byte") {
    for (const auto& p : {full_progress(), saga_progress{.definition = "x"}}) {
        const auto read = vouch::decode_progress(vouch::encode_progress(p));
        REQUIRE(read);
        CHECK(*read == p);
    }
    CHECK(vouch::encode_progress({.definition = "x", .version = 1}).size() < 36);
}

TEST_CASE("progress: bytes that are truncated, extended or changed anywhere are rejected") {
    const auto bytes = vouch::encode_progress(full_progress());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        CAPTURE(i);
        CHECK(!vouch::decode_progress(bytes.substr(0, i)));
        auto changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        CHECK(!vouch::decode_progress(changed));
    }
    CHECK(!vouch::decode_progress(bytes + 'x'));
    CHECK(!vouch::decode_progress("nothing of the kind"));
}

TEST_CASE("progress: an unknown field is passed over; invalid content with a valid checksum is rejected") {
    auto bytes = vouch::encode_progress(full_progress());
    bytes.resize(bytes.size() - 4);
    const auto read = vouch::decode_progress(sealed(bytes + std::string("\x63\x03xyz", 5)));
    REQUIRE(read);
    CHECK(*read == full_progress());

    const auto head = std::string("saga\1", 5) + std::string(16, '\0');
    CHECK(!vouch::decode_progress(sealed(head)));                                // no definition
    CHECK(!vouch::decode_progress(sealed(head + "\x01\x05xy")));                 // longer than the rest
    CHECK(!vouch::decode_progress(sealed(head + "\x01\x01x\x04\x01\x09")));      // at a step that has not begun
    CHECK(!vouch::decode_progress(sealed(head + "\x01\x01x\x05\x03\x09\x01s"))); // no such state
    CHECK(!vouch::decode_progress(sealed(head + "\x01\x01x\x09\x02id")));        // half an id
    CHECK(!vouch::decode_progress(sealed(head + std::string("\x01\x01x\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 13))));
    CHECK(!vouch::decode_progress(sealed("saga\2" + head.substr(5) + "\x01\x01x"))); // another format
    CHECK(!vouch::decode_progress("saga\1"));
    CHECK(vouch::decode_progress(sealed(head + "\x01\x01x")));
}

TEST_CASE("inspect: an entry that is not a saga, or cannot be read, has no status") {
    stage on;
    const auto plain = on.emit({.queue = "sagas", .topic = "t"});
    CHECK(!vouch::is_saga(on.entry(plain)));
    CHECK(!vouch::inspect(on.entry(plain)));
    CHECK(!vouch::inspect(on.store, id_of(99)));
    const auto broken = on.emit({.queue = "sagas", .topic = "t", .progress = "saga\1?"});
    CHECK(vouch::is_saga(on.entry(broken)));
    CHECK(!vouch::inspect(on.entry(broken)));
    const auto of_its_own = on.emit({.queue = "sagas", .topic = "t", .progress = "saga of a handler's own"});
    CHECK(!vouch::is_saga(on.entry(of_its_own)));
    const auto d = define().step("a", nothing).build();
    CHECK(on.line(on.begin(d)) == "order v1 forward at the end []");
}

} // namespace saga_traces_test
