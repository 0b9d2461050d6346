// SPDX-License-Identifier: MIT
// How values of the contract print in a failing test: in words, with every version of Catch2, without an extra header.
#include <chrono>
#include <iomanip> // has a quoted() that must not be found for a field of that name
#include <sstream>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace contract_print_test {

namespace {

constexpr vouch::id one{.high = 0, .low = 1};
const std::string one_text = "00000000-0000-0000-0000-000000000001";

/// The text that Catch2 prints for a value.
template <class T>
std::string printed(const T& value) {
    return Catch::Detail::stringify(value);
}

vouch::entry claimed_entry() {
    auto e = vouch::born({.id = one, .queue = "mail", .topic = "user.created", .payload = "a \"b\"\n"}, {});
    e.state = vouch::state::claimed;
    e.lease_until = vouch::time_point{std::chrono::seconds{1}};
    return e;
}

} // namespace

TEST_CASE("print: a failing comparison names the states and verdicts") {
    CHECK(printed(vouch::state::retrying) == "retrying");
    CHECK(printed(vouch::verdict::stale) == "stale");
    CHECK(printed(vouch::verb::release) == "release");
    CHECK(printed(vouch::error_kind::busy) == "busy");
    CHECK(printed(vouch::event_kind::lease_lost) == "lease_lost");
    CHECK(printed(vouch::receipt::kind::duplicate) == "duplicate");
    CHECK(printed(std::vector{vouch::state::pending, vouch::state::dead}) == "{ pending, dead }");
}

TEST_CASE("print: a comparison shows both sides in words") {
    const auto text = [](const auto& left, const auto& right) {
        std::ostringstream out;
        const auto& compared = (Catch::Decomposer() <= left) == right;
        static_cast<const Catch::ITransientExpression&>(compared).streamReconstructedExpression(out);
        return out.str();
    };
    CHECK(text(vouch::state::pending, vouch::state::dead) == "pending == dead");
    CHECK(text(one, vouch::id{}) == one_text + "\n==\n00000000-0000-0000-0000-000000000000");
}

TEST_CASE("print: ids, tickets, receipts, settlements and counts print in words") {
    CHECK(printed(one) == one_text);
    CHECK(printed(vouch::ticket{one, 7}) == one_text + ", epoch 7");
    CHECK(printed(vouch::receipt{vouch::receipt::kind::inserted, one}) == "inserted " + one_text);
    CHECK(printed(vouch::receipt{}) == "refused");
    CHECK(printed(vouch::settlement{vouch::verdict::applied, false}) == "applied");
    CHECK(printed(vouch::settlement{vouch::verdict::applied, true}) == "applied, group completed");
    vouch::state_counts counts;
    counts[vouch::state::dead] = 3;
    CHECK(printed(counts) == "0 pending, 0 retrying, 0 claimed, 0 succeeded, 3 dead");
}

TEST_CASE("print: an entry shows its id, its state and every field that is set") {
    CHECK(printed(vouch::entry{}) == "{id=00000000-0000-0000-0000-000000000000, state=pending}");
    CHECK(
        printed(claimed_entry()) ==
        "{id=" + one_text +
            R"(, queue="mail", topic="user.created", payload="a \"b\"\x0a", state=claimed, lease_until=1970-01-01T00:00:01.000000Z})");
}

TEST_CASE("print: a draft shows fields of every type") {
    const vouch::draft d{.id = one,
                         .queue = "q",
                         .payload = std::string(90, 'x'),
                         .attempts_max = 3,
                         .trail = {one, one},
                         .headers = {{"name", "value"}},
                         .result = ""};
    CHECK(printed(d) == "{id=" + one_text + R"(, queue="q", payload=")" + std::string(80, 'x') +
                            R"("... (90 bytes), attempts_max=3, trail=[)" + one_text + ", " + one_text +
                            R"(], headers=["name": "value"], result=""})");
    auto woken = claimed_entry();
    woken.woken = true;
    CHECK(printed(woken).find("woken=true") != std::string::npos);
}

} // namespace contract_print_test
