// SPDX-License-Identifier: MIT
// The operator's page, and the JSON and the metrics beside it, as a function from requests to responses:
//
//   vouch::page::site site(store, {.token = secret});
//   vouch::page::response answer = site.answer(request); // in a handler of your HTTP server
//
// | GET                      | |
// |--------------------------|---|
// | /                        | the page: one HTML document that loads nothing else |
// | /api/overview            | every queue: counts and how old they are, next due time, history |
// | /api/entries             | entries by queue, state, topic, key, lane, group, parent, error, worker, older_than, newer_than |
// | /api/entries/ID          | one entry with everything, and why it is not running |
// | /api/entries/ID/payload  | its payload as bytes |
// | /metrics, /healthz       | for Prometheus; 200 if the store answers, else 503 |
//
// | POST                     | |
// |--------------------------|---|
// | /api/entries/ID/retry    | make it due now; also `cancel` and `requeue`, which resumes a saga |
// | /api/requeue             | requeue a page of dead entries by the same parameters, or count them with `dry_run=1` |
//
// A store that is only a `reader` gives a page that changes nothing. No request reads more than `options::read_max`
// entries, except that a look at a queue counts it.
//
// Thread-safe if the store is. The store must outlive the site.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/page/detail/access.hpp>
#include <vouch/page/detail/api.hpp>
#include <vouch/page/detail/assets.hpp>
#include <vouch/page/detail/parameters.hpp>
#include <vouch/page/message.hpp>
#include <vouch/page/options.hpp>

namespace vouch {
inline namespace v0 {
namespace page {

template <class Store>
class site {
  public:
    /// Bounds of a request; a longer one is refused.
    static constexpr std::size_t path_max = 512;
    static constexpr std::size_t query_max = 8 * 1024;
    static constexpr std::size_t body_max = 16 * 1024;

    explicit site(Store& store, options how = {}) : how_(std::move(how)), api_(store, how_) {
        static_assert(vouch::reader<Store>, "a page needs a store, or at least a reader");
        if (how_.mount.empty() || how_.mount.front() != '/' || how_.mount.back() != '/') {
            throw error(error_kind::invalid_argument,
                        "page: mount is '" + how_.mount + "'; it must begin and end with a slash");
        }
    }
    site(const site&) = delete;
    site& operator=(const site&) = delete;

    /// Answers a request. Faults of the store become a response with status 503.
    [[nodiscard]] response answer(const request& r) {
        auto out = safe(r);
        const auto policy = std::string("default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
                                        "form-action 'none'; frame-ancestors 'none'; script-src '") +
                            std::string(detail::script_hash) + "'; style-src '" + std::string(detail::style_hash) +
                            '\'';
        const std::array<std::pair<const char*, std::string>, 7> always{
            {{"Content-Security-Policy", policy},
             {"X-Content-Type-Options", "nosniff"},
             {"X-Frame-Options", "DENY"},
             {"Referrer-Policy", "no-referrer"},
             {"Cross-Origin-Opener-Policy", "same-origin"},
             {"Cross-Origin-Resource-Policy", "same-origin"},
             {"Cache-Control", "no-store"}}};
        for (const auto& [name, value] : always) {
            out.headers.emplace_back(name, value);
        }
        return out;
    }

    /// Counts the queues whose turn it is. For `options::look_in_requests == false`: call it every second. Throws what the
    /// store throws.
    void look() { api_.look(std::chrono::hours{1}); }

  private:
    [[nodiscard]] response safe(const request& r) {
        try {
            return checked(r);
        } catch (const detail::bad_request& e) {
            return detail::failure(400, e.what());
        } catch (const error& e) {
            const bool is_wrong = e.kind() == error_kind::invalid_argument;
            return detail::failure(is_wrong ? 400 : 503, e.what());
        } catch (const std::exception&) {
            return detail::failure(500, "The request could not be answered.");
        }
    }

    /// The order matters: nothing is read or said before the host is ours.
    [[nodiscard]] response checked(const request& r) {
        if (r.path.size() > path_max || r.query.size() > query_max) {
            return detail::failure(414, "The path or the query is too long.");
        }
        if (r.body.size() > body_max) {
            return detail::failure(413, "The body is too large.");
        }
        if (!detail::is_for_this_host(how_, r)) {
            return detail::failure(421, "The Host header names another host. See options::hosts, or --host.");
        }
        if (!r.path.starts_with(how_.mount)) {
            return r.path + '/' == how_.mount ? moved() : detail::failure(404, "There is nothing here.");
        }
        const auto path = std::string_view(r.path).substr(how_.mount.size());
        if (r.method == "GET" || r.method == "HEAD") {
            return get(r, path);
        }
        if (r.method == "POST") {
            return post(r, path);
        }
        auto refused = detail::failure(405, "Only GET and POST are understood.");
        refused.headers.emplace_back("Allow", "GET, HEAD, POST");
        return refused;
    }

    [[nodiscard]] response moved() const {
        return {.status = 308, .content_type = "text/plain", .headers = {{"Location", how_.mount}}, .body = {}};
    }

    [[nodiscard]] response get(const request& r, std::string_view path) {
        if (path.empty()) { // the page itself says nothing about the store
            return {.content_type = "text/html; charset=utf-8", .body = detail::document()};
        }
        if (path == "healthz") {
            static_cast<void>(api_.queues());
            return {.content_type = "text/plain; charset=utf-8", .body = "ok\n"};
        }
        const bool has_token = detail::has_token(how_, r);
        if (how_.token_to_read && !has_token) {
            return unauthorized();
        }
        if (path == "metrics") {
            return api_.metrics_text();
        }
        if (path == "api/overview") {
            return api_.overview(has_token && !is_read_only());
        }
        if (path == "api/entries") {
            return api_.list(detail::parameters(r.query));
        }
        const auto [which, rest] = entry_in(path);
        if (!which.is_nil() && rest.empty()) {
            return api_.show(which);
        }
        return !which.is_nil() && rest == "/payload" ? api_.payload(which)
                                                     : detail::failure(404, "There is nothing here.");
    }

    [[nodiscard]] response post(const request& r, std::string_view path) {
        if (is_read_only()) {
            return detail::failure(403, "This page is read-only.");
        }
        if (!detail::has_token(how_, r)) {
            return unauthorized();
        }
        if (!detail::is_same_origin(r)) {
            return detail::failure(403, "The request comes from a page of another origin.");
        }
        const auto [which, rest] = entry_in(path);
        if (!which.is_nil() && (rest == "/retry" || rest == "/cancel" || rest == "/requeue")) {
            return api_.act(which, rest.substr(1));
        }
        return path == "api/requeue" ? api_.requeue_page(detail::parameters(r.body))
                                     : detail::failure(404, "There is nothing here.");
    }

    [[nodiscard]] static response unauthorized() {
        auto out = detail::failure(401, "This needs the token.");
        out.headers.emplace_back("WWW-Authenticate", "Bearer");
        return out;
    }

    [[nodiscard]] bool is_read_only() const { return how_.read_only || how_.token.empty() || !vouch::store<Store>; }

    /// The id in `api/entries/ID...`, and what follows it.
    [[nodiscard]] static std::pair<id, std::string_view> entry_in(std::string_view path) {
        constexpr std::string_view folder = "api/entries/";
        constexpr std::size_t id_size = 36;
        if (!path.starts_with(folder) || path.size() < folder.size() + id_size) {
            return {};
        }
        const auto which = id::parse(path.substr(folder.size(), id_size));
        return which ? std::pair(*which, path.substr(folder.size() + id_size)) : std::pair<id, std::string_view>{};
    }

    options how_;
    detail::api<Store> api_;
};

} // namespace page
} // namespace v0
} // namespace vouch
