// SPDX-License-Identifier: MIT
// The example of backends/tool/page/README.md: the page in an application's own HTTP server.
#include <functional>
#include <string>

#include <vouch/observe.hpp>
#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace page_embedding_test {

namespace {

struct your_request {
    std::string method{};
    std::string path{};
    std::string query{};
    vouch::page::field_list headers{};
    std::string body{};
};

struct your_response {
    int status = 0;
    std::string content_type{};
    vouch::page::field_list headers{};
    std::string body{};
};

/// Stands for any HTTP server.
struct your_server {
    std::function<your_response(const your_request&)> handler{};
    void on_any(const char*, std::function<your_response(const your_request&)> f) { handler = std::move(f); }
};

} // namespace

TEST_CASE("page: an application offers it from its own process, below a path, with its own metrics") {
    vouch::memory::store store;
    vouch::metrics numbers;
    vouch::outbox outbox(store);
    outbox.observe(numbers);
    outbox.emit({.queue = "mail", .topic = "user.created"});
    your_server server;
    const std::string secret = "from your configuration";

    vouch::page::site site(store, {.name = "shop",
                                   .mount = "/ops/work/",
                                   .token = secret,
                                   .token_to_read = true,
                                   .hosts = {"shop.example.com"},
                                   .metrics = &numbers});
    server.on_any("/ops/work/", [&](const your_request& from) {
        const auto answer = site.answer({.method = from.method,
                                         .path = from.path,
                                         .query = from.query,
                                         .headers = from.headers,
                                         .body = from.body});
        return your_response{answer.status, answer.content_type, answer.headers, answer.body};
    });

    const auto ask = [&](const char* path, vouch::page::field_list headers) {
        headers.emplace_back("Host", "shop.example.com");
        return server.handler({.method = "GET", .path = path, .headers = std::move(headers)});
    };
    CHECK(ask("/ops/work/", {}).status == 200);
    CHECK(ask("/ops/work/metrics", {}).status == 401);
    const auto got = ask("/ops/work/metrics", {{"Authorization", "Bearer " + secret}});
    CHECK(got.body.find("vouch_enqueued_total{queue=\"mail\"} 1") != std::string::npos);
    CHECK(got.body.find("vouch_entries{queue=\"mail\",state=\"pending\"} 1") != std::string::npos);
}

} // namespace page_embedding_test
