// SPDX-License-Identifier: MIT
// The example of backends/tool/monitoring/README.md: trails as the trace context of OpenTelemetry.
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace page_traceparent_test {

namespace {

std::string traceparent_of(const vouch::id_list& trail) {
    const auto hex = [](const vouch::id& id) {
        auto text = to_string(id);
        std::erase(text, '-');
        return text;
    };
    return "00-" + hex(trail.front()) + '-' + hex(trail.back()).substr(16) + "-01";
}

std::string trace_context_of(const vouch::delivery& d) {
    const auto given = d.header("traceparent"); // of the request that emitted it
    return given ? std::string(*given) : traceparent_of(d.trail());
}

/// `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`, neither id all zeros: W3C Trace Context, level 1.
[[nodiscard]] bool is_valid(const std::string& text) {
    const auto is_hex = [&](std::size_t from, std::size_t many) {
        const auto part = text.substr(from, many);
        return part.size() == many && part.find_first_not_of("0123456789abcdef") == std::string::npos;
    };
    return text.size() == 55 && text.starts_with("00-") && is_hex(3, 32) && text[35] == '-' && is_hex(36, 16) &&
           text[52] == '-' && is_hex(53, 2) && text.substr(3, 32) != std::string(32, '0') &&
           text.substr(36, 16) != std::string(16, '0');
}

/// Stands for an HTTP client.
struct fake_post {
    std::vector<std::string>& seen;
    void operator()(const char*, const vouch::header_list& headers) const { seen.push_back(headers.front().second); }
};

} // namespace

TEST_CASE("traceparent: all work that an emission causes is one trace, with a span for each emission") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    std::vector<std::string> seen;
    const fake_post http_post{seen};

    router.on("order.placed", [&](vouch::delivery& d) {
        const auto context = trace_context_of(d); // give it to your tracer as the remote parent
        http_post("https://stock.example/reserve", {{"traceparent", context}});
        d.emit({.queue = "work", .topic = "mail.send"}); // continues the trail, and so the trace
    });
    router.on("mail.send", [&](vouch::delivery& d) {
        http_post("https://mail.example/send", {{"traceparent", trace_context_of(d)}});
    });

    outbox.emit({.queue = "work", .topic = "order.placed"});
    static_cast<void>(vouch::runner(outbox, router, {.queue = "work"}).run_until_idle());
    REQUIRE(seen.size() == 2);
    CHECK(is_valid(seen[0]));
    CHECK(is_valid(seen[1]));
    CHECK(seen[0].substr(3, 32) == seen[1].substr(3, 32));
    CHECK(seen[0].substr(36, 16) != seen[1].substr(36, 16));
}

TEST_CASE("traceparent: a request that is traced already hands its context on in a header") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    std::string seen;
    router.on("order.placed", [&](vouch::delivery& d) { seen = trace_context_of(d); });
    const std::string incoming = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    outbox.emit({.queue = "work", .topic = "order.placed", .headers = {{"traceparent", incoming}}});

    static_cast<void>(vouch::runner(outbox, router, {.queue = "work"}).run_until_idle());
    CHECK(seen == incoming);
}

} // namespace page_traceparent_test
