// SPDX-License-Identifier: MIT
// Who may read and change what through the page.
#include <string>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#include "page/browser.hpp"
#include "tool.hpp"

namespace page_access_test {

using namespace page_test;

/// A page over some entries in memory.
struct offered {
    vouch::memory::store store{};
    tool_test::some_of_everything<vouch::memory::store> entries{store};
    vouch::page::site<vouch::memory::store> site;

    explicit offered(vouch::page::options how = {.token = secret}) : site(store, std::move(how)) {}

    [[nodiscard]] std::string path_of(const vouch::id& id) const { return "/api/entries/" + to_string(id); }
    /// Makes the entry that waits due, if it may.
    [[nodiscard]] int status_of_change(const vouch::page::request& r) {
        const auto before = *store.find(entries.waits);
        const auto got = site.answer(r);
        CHECK((*store.find(entries.waits) == before) == (got.status != 200));
        return got.status;
    }
    [[nodiscard]] vouch::page::request change() const { return post(path_of(entries.waits) + "/retry"); }
};

TEST_CASE("page access: a change with the token and from the page itself is done") {
    offered o;
    CHECK(o.status_of_change(o.change()) == 200);
}

TEST_CASE("page access: a program without an origin needs only the token") {
    offered o;
    CHECK(o.status_of_change(with(with(o.change(), "origin", ""), "sec-fetch-site", "")) == 200);
}

TEST_CASE("page access: without the token, or with another, nothing changes") {
    offered o;
    CHECK(o.status_of_change(with(o.change(), "authorization", "")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Bearer ")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Bearer s3cret-toke")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Bearer s3cret-tokens")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Bearer s3cret-tokenx3cret-token")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Bearer S3cret-token")) == 401);
    CHECK(o.status_of_change(with(o.change(), "authorization", "Basic s3cret-token")) == 401);
    auto twice = o.change();
    twice.headers.emplace_back("Authorization", "Bearer s3cret-token");
    CHECK(o.status_of_change(twice) == 401);
}

TEST_CASE("page access: a change from a page of another origin is refused, even with the token") {
    offered o;
    CHECK(o.status_of_change(with(o.change(), "origin", "http://evil.example")) == 403);
    CHECK(o.status_of_change(with(o.change(), "origin", "http://127.0.0.1:8081")) == 403);
    CHECK(o.status_of_change(with(o.change(), "origin", "http://127.0.0.1:8080.evil.example")) == 403);
    CHECK(o.status_of_change(with(o.change(), "origin", "null")) == 403);
    CHECK(o.status_of_change(with(o.change(), "sec-fetch-site", "cross-site")) == 403);
    CHECK(o.status_of_change(with(o.change(), "sec-fetch-site", "same-site")) == 403);
}

TEST_CASE("page access: a host name that is not ours is not answered, so DNS rebinding reads nothing") {
    offered o;
    for (const char* host :
         {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:8080",
          "127.0.0.1:8080:1", "127.0.0.1:", "127.0.0.1:80a", "[::1", ""}) {
        INFO(host);
        const auto got = o.site.answer(with(get("/api/overview"), "host", host));
        CHECK(got.status == 421);
        CHECK_FALSE(has(got, "queues"));
        CHECK(o.site.answer(with(get("/"), "host", host)).status == 421);
        CHECK(o.status_of_change(with(o.change(), "host", host)) == 421);
    }
    for (const char* host : {"127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080"}) {
        INFO(host);
        CHECK(o.site.answer(with(get("/api/overview"), "host", host)).status == 200);
    }
    auto twice = get("/api/overview");
    twice.headers.emplace_back("Host", "127.0.0.1:8080");
    CHECK(o.site.answer(twice).status == 421);
}

TEST_CASE("page access: another address is answered if it is named, and reading can need the token") {
    offered o({.token = secret, .token_to_read = true, .hosts = {"ops.example.com"}});
    const auto ask = [&](const char* path) { return with(get(path), "host", "ops.example.com"); };
    CHECK(o.site.answer(get("/")).status == 421);
    CHECK(o.site.answer(ask("/")).status == 200);
    CHECK(o.site.answer(ask("/healthz")).status == 200);
    for (const char* path : {"/api/overview", "/api/entries", "/metrics"}) {
        INFO(path);
        CHECK(o.site.answer(ask(path)).status == 401);
        CHECK(o.site.answer(with(ask(path), "authorization", std::string("Bearer ") + secret)).status == 200);
    }
    CHECK(o.site.answer(ask(o.path_of(o.entries.due).c_str())).status == 401);
    CHECK(o.site.answer(ask((o.path_of(o.entries.due) + "/payload").c_str())).status == 401);
}

TEST_CASE("page access: a read-only page, and one without a token, refuse every change") {
    for (const auto& how : {vouch::page::options{.token = secret, .read_only = true}, vouch::page::options{}}) {
        offered o(how);
        CHECK(o.status_of_change(o.change()) == 403);
        CHECK(o.site.answer(post(o.path_of(o.entries.waits) + "/cancel")).status == 403);
        CHECK(o.site.answer(post(o.path_of(o.entries.dead) + "/requeue")).status == 403);
        CHECK(o.site.answer(post("/api/requeue", "until=1000")).status == 403);
        CHECK(o.store.counts("q").total() == 9);
        CHECK(has(o.site.answer(get("/api/overview")), "\"read_only\":true"));
    }
}

TEST_CASE("page access: a change is a POST, and other methods are refused") {
    offered o;
    auto r = o.change();
    for (const char* method : {"GET", "HEAD"}) {
        r.method = method;
        CHECK(o.status_of_change(r) == 404);
    }
    for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post"}) {
        r.method = method;
        CHECK(o.status_of_change(r) == 405);
    }
}

TEST_CASE("page access: requests that are too large or broken get an answer and change nothing") {
    offered o;
    auto r = o.change();
    r.body = std::string(16 * 1024 + 1, 'x');
    CHECK(o.status_of_change(r) == 413);
    CHECK(o.site.answer(get("/api/entries?topic=" + std::string(9000, 'x'))).status == 414);
    CHECK(o.site.answer(get("/" + std::string(600, 'x'))).status == 414);
    for (const char* target :
         {"/api/entries?topic=%", "/api/entries?topic=%zz", "/api/entries?state=odd", "/api/entries?parent=12",
          "/api/entries?older_than=5", "/api/entries?older_than=9999999d", "/api/entries?older_than=d",
          "/api/entries?limit=-1", "/api/entries?cursor=x", "/api/entries?limit=99999999999999999999"}) {
        INFO(target);
        CHECK(o.site.answer(get(target)).status == 400);
    }
    for (const char* target : {"/api", "/api/", "/api/entries/", "/api/entries/12", "/../etc/passwd", "/favicon.ico",
                               "/api/entries/00000000-0000-0000-0000-000000000001"}) {
        INFO(target);
        CHECK(o.site.answer(get(target)).status == 404);
    }
}

TEST_CASE("page access: every answer says what a browser must not do with it") {
    offered o;
    for (const auto& r : {get("/"), get("/api/overview"), get("/nothing"), with(get("/"), "host", "evil.example"),
                          get("/metrics"), get(o.path_of(o.entries.due) + "/payload")}) {
        const auto got = o.site.answer(r);
        const auto policy = header_of(got, "Content-Security-Policy");
        CHECK(policy.find("default-src 'none'") != std::string::npos);
        CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
        CHECK(policy.find("unsafe") == std::string::npos);
        CHECK(header_of(got, "X-Content-Type-Options") == "nosniff");
        CHECK(header_of(got, "Referrer-Policy") == "no-referrer");
        CHECK(header_of(got, "Cache-Control") == "no-store");
    }
    CHECK(header_of(o.site.answer(get(o.path_of(o.entries.due) + "/payload")), "Content-Disposition")
              .starts_with("attachment"));
}

TEST_CASE("page access: a page below a path answers there only, and redirects to its slash") {
    offered o({.mount = "/ops/work/", .token = secret});
    CHECK(o.site.answer(get("/ops/work/")).status == 200);
    CHECK(o.site.answer(get("/ops/work/api/overview")).status == 200);
    CHECK(header_of(o.site.answer(get("/ops/work")), "Location") == "/ops/work/");
    CHECK(o.site.answer(get("/")).status == 404);
    CHECK(o.site.answer(get("/api/overview")).status == 404);
    CHECK_THROWS_AS(offered({.mount = "ops"}), vouch::error);
}

} // namespace page_access_test
