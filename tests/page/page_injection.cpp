// SPDX-License-Identifier: MIT
// Entries that try to be code: markup, control characters, bytes that are no text, and much of it.
#include <string>
#include <vector>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#include "page/browser.hpp"
#include "page/stores.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#define VOUCH_HAS_JSON
#endif

namespace page_injection_test {

using namespace page_test;

/// Names are valid UTF-8 without control characters; payloads and header values are any bytes.
[[nodiscard]] inline std::vector<std::string> hostile_names() {
    return {"</script><script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "{{7*7}}${7*7}",
            "a\\\"b\\",
            "'; DROP TABLE x; --",
            "\xe2\x80\xae"
            "gnp.exe",
            "\xe2\x80\xa8line\xe2\x80\xa9",
            "\xf0\x9f\x92\xa5",
            "javascript:alert(1)",
            std::string(200, '<')};
}
[[nodiscard]] inline std::vector<std::string> hostile_bytes() {
    auto out = hostile_names();
    std::string every;
    for (int c = 0; c < 256; ++c) {
        every += static_cast<char>(c);
    }
    for (std::string more :
         {std::string("\0", 1), std::string("\xff\xfe"), std::string("\xc3"), std::string("\xed\xa0\x80"),
          std::string("\xf4\x90\x80\x80"), std::string("\x1b[2J\r\nSet-Cookie: a=b"), every}) {
        out.push_back(std::move(more));
    }
    return out;
}

/// Whether the text is UTF-8 without `<` or a control character: it cannot be markup, wherever it is put.
[[nodiscard]] bool is_harmless(const std::string& text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto beyond = vouch::detail::utf8_character_of(std::string_view(text).substr(i));
        if (beyond.length == 0 && (byte < 0x20 || byte >= 0x7f || byte == '<' || byte == '>')) {
            return false;
        }
        i += beyond.length > 0 ? beyond.length : 1;
    }
    return true;
}

struct hostile {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    vouch::page::site<vouch::memory::store> site{store, {.token = secret}};

    [[nodiscard]] vouch::page::response checked(const std::string& target) {
        auto got = site.answer(get(target));
        CHECK(got.status == 200);
        CHECK(got.content_type == "application/json; charset=utf-8");
        CHECK(is_harmless(got.body));
#ifdef VOUCH_HAS_JSON
        CHECK(nlohmann::json::accept(got.body));
#endif
        return got;
    }
};

TEST_CASE("page injection: hostile names are data in every answer") {
    for (const auto& name : hostile_names()) {
        INFO(name);
        hostile h;
        const auto id =
            h.outbox
                .emit(
                    {.queue = name, .topic = name, .key = name, .group = name, .lane = name, .headers = {{name, name}}})
                .front()
                .id;
        CHECK(has(h.checked("/api/overview"), "\"counts\":{\"pending\":1"));
        const auto shown = h.checked("/api/entries/" + to_string(id));
        const auto list = h.checked("/api/entries");
        static_cast<void>(list);
#ifdef VOUCH_HAS_JSON
        const auto parsed = nlohmann::json::parse(shown.body);
        CHECK(parsed["queue"] == name);
        CHECK(parsed["topic"] == name);
        CHECK(parsed["headers"][0]["value"] == name);
        CHECK(nlohmann::json::parse(list.body)["entries"][0]["lane"] == name);
#endif
    }
}

TEST_CASE("page injection: hostile bytes are text or base64, and JSON stays valid") {
    for (const auto& bytes : hostile_bytes()) {
        hostile h;
        const auto id =
            h.outbox.emit({.queue = "q", .topic = "t", .payload = bytes, .headers = {{"h", bytes}}}).front().id;
        const auto got = h.checked("/api/entries/" + to_string(id));
        static_cast<void>(h.checked("/api/entries"));
#ifdef VOUCH_HAS_JSON
        const auto payload = nlohmann::json::parse(got.body)["payload"];
        CHECK(payload["size"] == bytes.size());
        if (payload["encoding"] == "text") {
            CHECK(payload["data"] == bytes);
        } else {
            CHECK(payload["data"] == vouch::page::detail::base64(bytes));
        }
#endif
        const auto raw = h.site.answer(get("/api/entries/" + to_string(id) + "/payload"));
        CHECK(raw.body == bytes);
        CHECK(raw.content_type == "application/octet-stream");
    }
}

TEST_CASE("page injection: a huge payload is cut, between two characters") {
    hostile h;
    std::string big;
    while (big.size() < 1000 * 1000) {
        big += "\xe2\x82\xac"; // three bytes
    }
    const auto id = h.outbox.emit({.queue = "q", .topic = "t", .payload = big}).front().id;
    const auto got = h.checked("/api/entries/" + to_string(id));
    CHECK(has(got, R"("is_cut":true,"encoding":"text")"));
    CHECK_FALSE(has(got, "\\ufffd"));
    CHECK(got.body.size() < 300 * 1024);
}

TEST_CASE("page injection: a hostile request does not come back as markup") {
    hostile h;
    for (const auto& target : {"/<script>alert(1)</script>", "/api/entries?state=<script>",
                               "/api/entries?cursor=<script>", "/api/entries?<script>=1&older_than=<b>"}) {
        const auto got = h.site.answer(get(target));
        INFO(got.body);
        CHECK(is_harmless(got.body));
    }
}

TEST_CASE("page injection: the queue's label cannot break the metrics") {
    hostile h;
    static_cast<void>(h.outbox.emit({.queue = R"(a"} 1 \)", .topic = "t"}));
    const auto got = h.site.answer(get("/metrics"));
    CHECK(has(got, R"(vouch_look_age_seconds{queue="a\"} 1 \\"} )"));
}

TEST_CASE("page injection: base64 is that of RFC 4648") {
    using vouch::page::detail::base64;
    CHECK(base64("").empty());
    CHECK(base64("f") == "Zg==");
    CHECK(base64("fo") == "Zm8=");
    CHECK(base64("foo") == "Zm9v");
    CHECK(base64("foobar") == "Zm9vYmFy");
    CHECK(base64("\xff\xfe\xfd") == "//79");
}

} // namespace page_injection_test
