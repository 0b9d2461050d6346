// SPDX-License-Identifier: MIT
// The operator's page for any store: `vouch::page::site` turns a request into a response. Bring your own HTTP server.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_PAGE
#define VOUCH_SINGLE_HEADER_PAGE

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/observe.hpp>
#include <vouch/saga.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// ---- vouch/page/message.hpp
// A request and a response of HTTP as plain values, so that any server can be used.

namespace vouch {
inline namespace v0 {
namespace page {

/// Names and values, in the order given. The names of headers are compared without regard to case.
using field_list = std::vector<std::pair<std::string, std::string>>;

struct request {
    std::string method = "GET"; ///< in upper case
    std::string path = "/";     ///< before the `?`, as the client sent it
    std::string query{};        ///< after the `?`, as the client sent it, without the `?`
    field_list headers{};       ///< at least Host, Origin, Sec-Fetch-Site and Authorization, if the client sent them
    std::string body{};
};

struct response {
    int status = 200;
    std::string content_type{};
    field_list headers{}; ///< to be sent as they are, beside Content-Type and Content-Length
    std::string body{};
};

} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/options.hpp
// How a page is offered: under which path, to whom, and what the store's contract does not tell.

namespace vouch {
inline namespace v0 {
namespace page {

/// Every member has a usable default. The default is for a server that listens on loopback, and changes nothing.
struct options {
    std::string name{};      ///< of the store, for people
    std::string mount = "/"; ///< the path under which the page is offered; begins and ends with a slash

    /// The secret of those who may change entries. Empty: no request changes anything.
    std::string token{};
    bool token_to_read = false; ///< whether reading needs the token too; set it unless only this machine can connect
    bool read_only = false;     ///< refuse every change, whatever the token
    bool payloads = true;       ///< whether payloads, results and progress are shown; they may be confidential
    /// The values of the Host header that are answered, such as `ops.example.com` or `10.0.0.7:8080`. Empty: those of
    /// loopback, with any port. Without this check, a page of another site could read entries by DNS rebinding.
    std::vector<std::string> hosts{};

    /// The names of the queues. Empty: the store's own `queues()`, which a store need not have.
    std::function<std::vector<std::string>()> queues{};
    /// The live entry that blocks this one in its lane. Empty: it is sought among the oldest live entries of the queue.
    std::function<std::optional<entry>(const entry&)> head_of_lane{};
    /// The metrics of the application, which /metrics then shows too. Must outlive the site.
    vouch::metrics* metrics = nullptr;

    /// When a live entry that does not change counts as stuck; see `look_options::stuck_after`.
    duration stuck_after = std::chrono::minutes{5};
    /// Whether requests count the queues, in at most a fiftieth of the time. If not, call `site::look` every second.
    bool look_in_requests = true;
    std::size_t read_max = 1000; ///< entries that one request reads

    vouch::clock now = system_now;
    id_source ids = uuid7_source();
};

} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/access.hpp
// Who may do what. A browser carries requests of other sites to this one, so a request is answered only if it names this
// host, and changes something only with the token and from a page of the same origin.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// The values of a header; a client may send it twice.
[[nodiscard]] inline std::vector<std::string> header_values(const request& r, std::string_view name) {
    std::vector<std::string> out;
    for (const auto& [given, value] : r.headers) {
        if (equal_ignoring_case(given, name)) {
            out.push_back(value);
        }
    }
    return out;
}

/// `localhost`, `127.0.0.1` and `[::1]`, with a port or without.
[[nodiscard]] inline bool is_loopback(std::string_view host) {
    for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
        if (equal_ignoring_case(host.substr(0, name.size()), name)) {
            const auto port = host.substr(name.size());
            return port.empty() || (port.size() > 1 && port.front() == ':' &&
                                    port.find_first_not_of("0123456789", 1) == std::string_view::npos);
        }
    }
    return false;
}

/// Takes the same time for every guess of the same length.
[[nodiscard]] inline bool is_equal_secret(std::string_view secret, std::string_view guess) {
    unsigned difference = secret.size() == guess.size() ? 0U : 1U;
    for (std::size_t i = 0; i < guess.size(); ++i) {
        const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
        difference |=
            static_cast<unsigned char>(expected) ^ static_cast<unsigned>(static_cast<unsigned char>(guess[i]));
    }
    return difference == 0 && !secret.empty();
}

[[nodiscard]] inline bool is_for_this_host(const options& how, const request& r) {
    const auto hosts = header_values(r, "Host");
    if (hosts.size() != 1) {
        return false;
    }
    return how.hosts.empty() ? is_loopback(hosts.front())
                             : std::any_of(how.hosts.begin(), how.hosts.end(), [&](const std::string& ours) {
                                   return equal_ignoring_case(ours, hosts.front());
                               });
}

[[nodiscard]] inline bool has_token(const options& how, const request& r) {
    constexpr std::string_view scheme = "Bearer ";
    const auto given = header_values(r, "Authorization");
    return given.size() == 1 && equal_ignoring_case(given.front().substr(0, scheme.size()), scheme) &&
           is_equal_secret(how.token, std::string_view(given.front()).substr(scheme.size()));
}

/// Whether the request comes from a page of this host, or from no page at all. Browsers name the origin of every POST.
[[nodiscard]] inline bool is_same_origin(const request& r) {
    for (const auto& site : header_values(r, "Sec-Fetch-Site")) {
        if (site != "same-origin" && site != "none") {
            return false;
        }
    }
    const auto hosts = header_values(r, "Host");
    for (const auto& origin : header_values(r, "Origin")) {
        const auto authority = origin.find("://");
        if (hosts.size() != 1 || authority == std::string::npos ||
            !equal_ignoring_case(std::string_view(origin).substr(authority + 3), hosts.front())) {
            return false;
        }
    }
    return true;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/actions.hpp
// What a request can change. Each function is one short transaction and returns a sentence.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct done {
    int status = 200; ///< of HTTP
    std::string sentence{};
    id successor{};
};

[[nodiscard]] inline done done_of(verdict v, std::string applied, std::string repeated, std::string stale) {
    switch (v) {
    case verdict::applied: return {200, std::move(applied)};
    case verdict::repeated: return {200, std::move(repeated)};
    case verdict::stale: return {409, std::move(stale)};
    case verdict::unknown: break;
    }
    return {404, "There is no such entry."};
}

template <class Store>
[[nodiscard]] done retry(Store& store, const id& which, time_point now) {
    bool is_held = false;
    const auto v = transact(store, [&](auto& tx) {
        const auto found = tx.find(which);
        is_held = found && found->state == state::claimed;
        return tx.nudge(which, now);
    });
    return done_of(v, is_held ? "A worker holds it; it is due again when that claim ends." : "It is due now.",
                   is_held ? "A worker holds it, and it is marked already." : "It was due already.",
                   "It has ended and cannot run again.");
}

/// A saga is asked to compensate; any other entry ends as dead.
template <class Store>
[[nodiscard]] done cancel(Store& store, const id& which, time_point now) {
    bool asked = false;
    const auto v = transact(store, [&](auto& tx) {
        const auto found = tx.find(which);
        asked = found && is_saga(*found);
        return asked ? request_cancel(tx, which, now) : tx.cancel(which, "cancelled", now);
    });
    return asked ? done_of(v, "The saga was asked to compensate.", "The saga was asked already.", "The saga has ended.")
                 : done_of(v, "It is dead now.", "It was dead already.", "A worker holds it, or it has succeeded.");
}

/// A dead saga continues where it stopped; any other dead entry starts again.
template <class Writer>
[[nodiscard]] receipt give_successor(Writer& tx, const entry& dead, const id& fresh, time_point now) {
    const requeue_request r{.dead = dead.id, .successor = fresh, .now = now};
    return is_saga(dead) ? resume(tx, r) : requeue(tx, r);
}

template <class Store>
[[nodiscard]] done requeue_one(Store& store, const id& which, const id_source& ids, time_point now) {
    const auto fresh = ids();
    std::optional<entry> found;
    const auto got = transact(store, [&](auto& tx) {
        found = tx.find(which);
        return found ? give_successor(tx, *found, fresh, now) : receipt{};
    });
    if (!found) {
        return {404, "There is no such entry."};
    }
    using kind = receipt::kind;
    return got.what == kind::inserted    ? done{200, "It has a successor now.", got.id}
           : got.what == kind::duplicate ? done{200, "It had a successor already.", got.id}
                                         : done{409, "Only a dead entry that is no command of a saga can be requeued."};
}

struct requeued {
    std::size_t inserted = 0;
    std::size_t had_one = 0;
    std::size_t refused = 0; ///< commands of sagas
};

/// All of them in one commit.
template <class Store>
[[nodiscard]] requeued requeue_all(Store& store, const std::vector<entry>& dead, const id_source& ids, time_point now) {
    return transact(store, [&](auto& tx) {
        requeued out;
        for (const auto& e : dead) {
            const auto got = give_successor(tx, e, ids(), now).what;
            using kind = receipt::kind;
            (got == kind::inserted ? out.inserted : got == kind::duplicate ? out.had_one : out.refused) += 1;
        }
        return out;
    });
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/json.hpp
// Writes JSON that is valid whatever the store holds: bytes that are no UTF-8 become U+FFFD. `<` and the separators of
// lines are escaped, so the text stays data even inside a script.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

inline void append_escape(std::string& to, std::uint32_t point) {
    constexpr std::string_view hex = "0123456789abcdef";
    to += "\\u";
    for (unsigned shift = 16; shift > 0; shift -= 4) {
        to += hex[(point >> (shift - 4)) & 0xfU];
    }
}

[[nodiscard]] inline std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const auto byte = static_cast<unsigned char>(c);
        const auto beyond = vouch::detail::utf8_character_of(text.substr(i));
        if (beyond.length > 0) {
            if (beyond.point == 0x2028 || beyond.point == 0x2029) {
                append_escape(out, beyond.point);
            } else {
                out += text.substr(i, beyond.length);
            }
            i += beyond.length;
            continue;
        }
        if (byte >= 0x80) {
            out += "\\ufffd";
        } else if (byte < 0x20 || byte == 0x7f || c == '<' || c == '>' || c == '&') {
            append_escape(out, byte);
        } else {
            out += c == '"' || c == '\\' ? "\\" : "";
            out += c;
        }
        ++i;
    }
    return out + '"';
}

/// Whether bytes can be shown as text: UTF-8 without control characters other than white space.
[[nodiscard]] inline bool is_text(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const auto beyond = vouch::detail::utf8_character_of(bytes.substr(i));
        const bool is_space = byte == '\n' || byte == '\t' || byte == '\r';
        if (beyond.is_control() || (beyond.length == 0 && ((byte < 0x20 && !is_space) || byte >= 0x7f))) {
            return false;
        }
        i += beyond.length > 0 ? beyond.length : 1;
    }
    return true;
}

[[nodiscard]] inline std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto left = bytes.size() - i;
        const auto byte = [&](std::size_t n) {
            return n < left ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + n])) : 0U;
        };
        const auto three = byte(0) << 16U | byte(1) << 8U | byte(2);
        out += digits[three >> 18U];
        out += digits[three >> 12U & 63U];
        out += left > 1 ? digits[three >> 6U & 63U] : '=';
        out += left > 2 ? digits[three & 63U] : '=';
    }
    return out;
}

/// Times are milliseconds since 1970, as in JavaScript.
[[nodiscard]] inline std::string json_time(const std::optional<time_point>& at) {
    return at ? std::to_string(at->time_since_epoch().count() / 1000) : "null";
}
[[nodiscard]] inline std::string json_id(const id& which) {
    return which.is_nil() ? "null" : '"' + to_string(which) + '"';
}

/// Members of an object, or, without names, items of an array.
class json {
  public:
    json& raw(std::string_view name, std::string_view value) {
        text_ += text_.empty() ? "" : ",";
        text_ += json_text(name) + ':';
        text_ += value;
        return *this;
    }
    json& text(std::string_view name, std::string_view value) { return raw(name, json_text(value)); }
    json& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json& truth(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    json& time(std::string_view name, const std::optional<time_point>& at) { return raw(name, json_time(at)); }
    json& id(std::string_view name, const vouch::id& which) { return raw(name, json_id(which)); }
    json& item(std::string_view value) {
        text_ += text_.empty() ? "" : ",";
        text_ += value;
        return *this;
    }
    [[nodiscard]] std::string object() const { return '{' + text_ + '}'; }
    [[nodiscard]] std::string array() const { return '[' + text_ + ']'; }

  private:
    std::string text_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/wait_reason.hpp
// Why an entry is not running, as one sentence for people and as data. It says the same as `vouch show`, in words for a
// page with buttons.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct wait_reason {
    /// due_later, held, lease_over, blocked, in_lane, waits_for_reply, due, succeeded or dead
    std::string code{};
    std::string sentence{};
    std::vector<id> entries{}; ///< those that it waits for
};

/// "3 min", "2 h": the largest unit that fits.
[[nodiscard]] inline std::string roughly(duration d) {
    using namespace std::chrono;
    const auto in = [&](auto unit, const char* name) { return std::to_string(d / unit) + name; };
    if (d < minutes{2}) {
        return in(seconds{1}, " s");
    }
    if (d < hours{2}) {
        return in(minutes{1}, " min");
    }
    return d < hours{48} ? in(hours{1}, " h") : in(hours{24}, " days");
}

/// "in 3 min" or "2 h ago".
[[nodiscard]] inline std::string relative(time_point at, time_point now) {
    const auto left = later(at, -now.time_since_epoch()).time_since_epoch();
    return left > duration::zero() ? "in " + roughly(left) : roughly(-std::max(left, -duration::max())) + " ago";
}

/// The entry that blocks another one in its lane.
struct lane_head {
    std::optional<vouch::entry> entry{};
    bool is_known = true; ///< false: it was not found within the bound, and there may be one
};
using lane_search = std::function<lane_head(const entry&)>;

/// Seeks it among the oldest live entries of the queue.
template <class Reader>
[[nodiscard]] lane_head head_among_oldest(const Reader& in, const entry& e, std::size_t read_max) {
    auto page = query::live(e.queue);
    page.limit = read_max;
    auto oldest = in.list(page);
    for (auto& other : oldest) {
        if (other.sequence >= e.sequence) {
            return {};
        }
        if (other.lane == e.lane) {
            return {.entry = std::move(other)};
        }
    }
    return {.is_known = oldest.size() < read_max};
}

namespace reasons {

[[nodiscard]] inline wait_reason of_terminal(const entry& e, time_point now) {
    const auto when = relative(e.updated_at, now);
    if (e.state == state::succeeded) {
        return {"succeeded", "It succeeded " + when + '.'};
    }
    return {"dead", "It died " + when + " with the error " + e.last_error + ". " +
                        (!e.parent.is_nil() ? "It is a command of a saga: the saga decides what follows."
                         : is_saga(e)       ? "Resume continues it where it stopped."
                                            : "Requeue gives it a successor.")};
}

[[nodiscard]] inline wait_reason of_claimed(const entry& e, time_point now) {
    const auto until = e.lease_until.value_or(now);
    const auto since = e.last_attempt_at ? " since " + roughly(std::max(now - *e.last_attempt_at, duration{})) : "";
    if (until > now) {
        return {"held", "Worker " + e.worker + " holds it" + since + "; its lease ends " + relative(until, now) + '.'};
    }
    return {"lease_over", "Worker " + e.worker + " held it, and its lease ended " + relative(until, now) +
                              " without an outcome. The next claim takes it over. Is a worker running for queue " +
                              e.queue + '?'};
}

[[nodiscard]] inline std::string after_failure(const entry& e) {
    return e.state == state::retrying && !e.last_error.empty() ? " Its last attempt failed with " + e.last_error + '.'
                                                               : "";
}

} // namespace reasons

template <class Reader>
[[nodiscard]] wait_reason why_not_running(const Reader& in, const entry& e, time_point now, const lane_search& head) {
    if (is_terminal(e.state)) {
        return reasons::of_terminal(e, now);
    }
    if (e.state == state::claimed) {
        return reasons::of_claimed(e, now);
    }
    const auto before = e.lane.empty() ? lane_head{} : head(e);
    if (before.entry && before.entry->id != e.id) {
        return {"blocked",
                "It is blocked in lane " + e.lane + " behind " + to_string(before.entry->id) + ", which is " +
                    std::string(name_of(before.entry->state)) +
                    (before.entry->last_error.empty() ? "." : " after the error " + before.entry->last_error + '.'),
                {before.entry->id}};
    }
    if (!before.is_known && e.due_at <= now) {
        return {"in_lane", "It waits in lane " + e.lane + ", probably for its turn." + reasons::after_failure(e)};
    }
    wait_reason out;
    if (is_saga(e)) {
        auto children = query::children(e.id);
        for (const auto& command : in.list(children)) {
            if (is_live(command.state)) {
                out.sentence += (out.entries.empty() ? "It waits for the reply of " : ", ") + command.topic +
                                " in queue " + command.queue + ", which is " + std::string(name_of(command.state));
                out.entries.push_back(command.id);
            }
        }
    }
    if (!out.entries.empty()) {
        out.code = "waits_for_reply";
        out.sentence += e.due_at > now ? "; it looks again " + relative(e.due_at, now) + '.' : ".";
        return out;
    }
    if (e.due_at > now) {
        return {"due_later", "It is due " + relative(e.due_at, now) + '.' + reasons::after_failure(e)};
    }
    return {"due", "It has been due for " + roughly(now - std::max(e.due_at, later(now, -duration::max()))) +
                       ", and no worker has claimed it. Is a worker running for queue " + e.queue + '?' +
                       reasons::after_failure(e)};
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/entry_json.hpp
// An entry and a saga as JSON.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// What a list shows of an entry: no payload, result or progress.
[[nodiscard]] inline json row_of(const entry& e) {
    json out;
    out.id("id", e.id).raw("sequence", '"' + std::to_string(e.sequence) + '"'); // may exceed what JavaScript counts
    out.text("queue", e.queue).text("topic", e.topic).text("state", name_of(e.state));
    out.number("attempts", e.attempts).number("attempts_max", e.attempts_max).number("lapses", e.lapses);
    out.number("failures", e.failures).number("epoch", e.epoch).number("generation", e.generation);
    out.text("last_error", e.last_error).text("worker", e.worker).text("key", e.key).text("group", e.group);
    out.text("lane", e.lane).id("parent", e.parent).id("predecessor", e.predecessor);
    out.time("created_at", e.created_at).time("due_at", e.due_at).time("lease_until", e.lease_until);
    out.time("expires_at", e.expires_at).time("last_attempt_at", e.last_attempt_at).time("updated_at", e.updated_at);
    out.truth("is_saga", is_saga(e));
    const auto saga = is_saga(e) ? inspect(e) : std::nullopt;
    out.truth("is_compensated", saga && saga->is_compensated());
    return out;
}

[[nodiscard]] inline std::string json_of(const wait_reason& why) {
    json entries;
    for (const auto& waited : why.entries) {
        entries.item(json_id(waited));
    }
    return json{}.text("code", why.code).text("sentence", why.sentence).raw("entries", entries.array()).object();
}

/// Bytes, at most `shown_max` of them: as text if they are text, else as base64.
[[nodiscard]] inline std::string json_bytes(std::string_view bytes, std::size_t shown_max) {
    auto shown = bytes.substr(0, shown_max);
    while (shown.size() < bytes.size() && !shown.empty() &&
           (static_cast<unsigned char>(bytes[shown.size()]) & 0xc0U) == 0x80U) {
        shown.remove_suffix(1); // not in the middle of a character
    }
    const bool as_text = is_text(shown) && !(shown.empty() && !bytes.empty());
    json out;
    out.number("size", bytes.size()).truth("is_cut", as_text ? shown.size() < bytes.size() : bytes.size() > shown_max);
    out.text("encoding", as_text ? "text" : "base64");
    out.text("data", as_text ? std::string(shown) : base64(bytes.substr(0, shown_max)));
    return out.object();
}

/// Where a saga stands. The steps that have not begun are not stored.
[[nodiscard]] inline std::string json_of(const saga_status& s, bool with_results) {
    constexpr std::size_t result_shown_max = 1024;
    json steps;
    for (const auto& step : s.steps) {
        json one;
        one.text("name", step.name).text("state", name_of(step.state));
        if (with_results && !step.result.empty()) {
            one.raw("result", json_bytes(step.result, result_shown_max));
        }
        steps.item(one.object());
    }
    json out;
    out.text("definition", s.definition).number("version", s.version).text("direction", name_of(s.direction));
    out.number("at", s.at).text("step", s.step()).raw("steps", steps.array()).text("reason", s.reason);
    out.text("end", s.is_completed() ? "completed" : s.is_compensated() ? "compensated" : s.is_stuck() ? "dead" : "");
    out.number("attempts", std::uint64_t{s.attempts} + s.tries).id("origin", s.origin);
    out.id("waits_for", s.waits_for).time("waits_until", s.waits_until).text("waits_in", s.waits_in);
    return out.object();
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/parameters.hpp
// The parameters of a request, from its query or from the body of a form.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// The request is wrong; the text says how.
class bad_request : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Decodes `%41` and, in forms, `+`. A broken escape is an error.
[[nodiscard]] inline std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i] == '+' ? ' ' : text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? vouch::detail::hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? vouch::detail::hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
            throw bad_request("a % in the parameters is not followed by two hexadecimal digits");
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

class parameters {
  public:
    explicit parameters(std::string_view form) {
        while (!form.empty()) {
            const auto end = form.find('&');
            const auto pair = form.substr(0, end);
            form.remove_prefix(end == std::string_view::npos ? form.size() : end + 1);
            const auto equals = pair.find('=');
            if (equals != std::string_view::npos) {
                values_.insert_or_assign(decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
            }
        }
    }

    /// The value; empty if there is none.
    [[nodiscard]] std::string text(const std::string& name) const {
        const auto found = values_.find(name);
        return found == values_.end() ? std::string() : found->second;
    }
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string& name) const {
        const auto value = text(name);
        return value.empty() ? std::nullopt : std::optional(number_of(name, value));
    }
    [[nodiscard]] id identity(const std::string& name) const {
        const auto value = text(name);
        const auto parsed = value.empty() ? id{} : id::parse(value);
        if (!parsed) {
            throw bad_request(name + " must be an id such as 00000000-0000-0000-0000-000000000001");
        }
        return *parsed;
    }
    /// `90s`, `15m`, `36h` or `7d`.
    [[nodiscard]] std::optional<duration> length(const std::string& name) const {
        const auto value = text(name);
        if (value.empty()) {
            return std::nullopt;
        }
        constexpr std::uint64_t most = 1'000'000;
        const auto count = number_of(name, std::string_view(value).substr(0, value.size() - 1));
        const auto unit = value.back() == 's'   ? duration(std::chrono::seconds{1})
                          : value.back() == 'm' ? duration(std::chrono::minutes{1})
                          : value.back() == 'h' ? duration(std::chrono::hours{1})
                          : value.back() == 'd' ? duration(std::chrono::hours{24})
                                                : duration::zero();
        if (count > most || unit == duration::zero()) {
            throw bad_request(name + " must be a duration such as 90s, 15m, 36h or 7d, at most 1000000 units");
        }
        return unit * static_cast<std::int64_t>(count);
    }

    [[nodiscard]] static std::uint64_t number_of(const std::string& name, std::string_view value) {
        std::uint64_t out = 0;
        const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), out);
        if (wrong != std::errc{} || end != value.data() + value.size()) {
            throw bad_request(name + " must be a number");
        }
        return out;
    }

  private:
    std::map<std::string, std::string> values_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/filter.hpp
// Which entries a request asks for. A store's query has one path and two filters; the rest is compared here, entry by
// entry, over a bounded number of them.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct filter {
    std::string queue{};
    std::string state{}; ///< the name of a state, or live, ended or stuck
    std::string topic{};
    std::string key{};
    std::string lane{};
    std::string group{};
    std::string error{};
    std::string worker{};
    id parent{};
    std::optional<duration> older_than{}; ///< since it was enqueued
    std::optional<duration> newer_than{};
    duration stuck_after{};

    [[nodiscard]] bool is_one_of_live() const noexcept {
        return state == "live" || state == "stuck" || state == "pending" || state == "retrying" || state == "claimed";
    }
    /// Whether the path names its entries across queues.
    [[nodiscard]] bool is_across_queues() const noexcept { return !parent.is_nil() || !group.empty(); }

    /// The path that reads the fewest entries.
    [[nodiscard]] query path_in(const std::string& in) const {
        if (!parent.is_nil()) {
            return query::children(parent);
        }
        if (!group.empty()) {
            return query::members(group);
        }
        if (!key.empty()) {
            return query::keyed(in, key);
        }
        return state == "dead" ? query::dead(in) : is_one_of_live() ? query::live(in) : query::all(in);
    }

    [[nodiscard]] bool has_state(const entry& e, time_point now) const {
        if (state == "stuck") {
            return is_live(e.state) && vouch::detail::is_stuck(e, is_saga(e), later(now, -stuck_after));
        }
        return state.empty() || (state == "live" && is_live(e.state)) || (state == "ended" && is_terminal(e.state)) ||
               state == name_of(e.state);
    }
    [[nodiscard]] bool matches(const entry& e, time_point now) const {
        const auto is = [](const std::string& wanted, const std::string& has) {
            return wanted.empty() || wanted == has;
        };
        return is(queue, e.queue) && is(topic, e.topic) && is(key, e.key) && is(lane, e.lane) && is(group, e.group) &&
               is(error, e.last_error) && is(worker, e.worker) && (parent.is_nil() || parent == e.parent) &&
               (!older_than || e.created_at <= later(now, -*older_than)) &&
               (!newer_than || e.created_at >= later(now, -*newer_than)) && has_state(e, now);
    }
};

[[nodiscard]] inline filter filter_of(const parameters& p, duration stuck_after) {
    filter out{.queue = p.text("queue"),
               .state = p.text("state"),
               .topic = p.text("topic"),
               .key = p.text("key"),
               .lane = p.text("lane"),
               .group = p.text("group"),
               .error = p.text("error"),
               .worker = p.text("worker"),
               .parent = p.identity("parent"),
               .older_than = p.length("older_than"),
               .newer_than = p.length("newer_than"),
               .stuck_after = stuck_after};
    constexpr std::array<std::string_view, 9> states{"",         "live",    "ended",     "stuck", "pending",
                                                     "retrying", "claimed", "succeeded", "dead"};
    for (const auto known : states) {
        if (out.state == known) {
            return out;
        }
    }
    throw bad_request("state must be pending, retrying, claimed, succeeded, dead, live, ended or stuck");
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/listing.hpp
// Finds entries by a filter and reads a bounded number of entries in one request. The answer says from where the next
// request continues, so a search through a million entries is a thousand short requests, between which workers work.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// Where a search stands: behind this sequence of this queue. As text: `123.mail`; empty before the first entry.
struct cursor {
    std::uint64_t after = 0;
    std::string queue{};

    [[nodiscard]] static cursor of(const std::string& text) {
        const auto dot = std::min(text.find('.'), text.size());
        return text.empty() ? cursor{}
                            : cursor{.after = parameters::number_of("cursor", std::string_view(text).substr(0, dot)),
                                     .queue = dot < text.size() ? text.substr(dot + 1) : std::string()};
    }
    [[nodiscard]] std::string text() const { return std::to_string(after) + '.' + queue; }
};

struct listing {
    std::vector<entry> found{};
    std::string next{};   ///< the cursor to continue with; empty at the end
    std::size_t read = 0; ///< entries that were read
};

struct listing_limits {
    std::size_t found_max = 50;
    std::size_t read_max = 1000;
    std::uint64_t until = 0; ///< only entries up to this sequence; 0: all
};

namespace listing_steps {

inline constexpr std::size_t first_chunk = 200;           ///< then all the rest, unless these were heavy
inline constexpr std::size_t light = 1024 * 1024;         ///< bytes of a chunk after which a larger one is safe
inline constexpr std::size_t queues_max = 100;            ///< looked at in one request
inline constexpr std::size_t bytes_max = 8 * 1024 * 1024; ///< of progress and results in one request

[[nodiscard]] inline std::size_t weight(const entry& e) {
    return e.progress.size() + (e.result ? e.result->size() : 0);
}

} // namespace listing_steps

/// Requires that `queues` is sorted.
template <class Reader>
[[nodiscard]] listing list_entries(const Reader& in, const filter& wanted, const std::vector<std::string>& queues,
                                   cursor from, time_point now, const listing_limits& at_most) {
    namespace steps = listing_steps;
    listing out;
    std::size_t bytes = 0;
    std::size_t visited = 0;
    for (const auto& queue : wanted.is_across_queues() ? std::vector<std::string>{from.queue} : queues) {
        if (queue < from.queue || (!wanted.queue.empty() && !wanted.is_across_queues() && queue != wanted.queue)) {
            continue;
        }
        from = {.after = queue == from.queue ? from.after : 0, .queue = queue};
        if (++visited > steps::queues_max) {
            out.next = from.text();
            return out;
        }
        auto page = wanted.path_in(queue);
        for (bool is_last = false; !is_last;) {
            page.after = from.after;
            const bool is_light = out.read > 0 && bytes < steps::light;
            page.limit = std::min(is_light ? at_most.read_max : steps::first_chunk, at_most.read_max - out.read);
            if (page.limit == 0 || bytes > steps::bytes_max || out.found.size() >= at_most.found_max) {
                out.next = from.text();
                return out;
            }
            auto chunk = in.list(page);
            is_last = chunk.size() < page.limit;
            for (auto& e : chunk) {
                if (at_most.until != 0 && e.sequence > at_most.until) {
                    is_last = true;
                    break;
                }
                if (out.found.size() >= at_most.found_max) {
                    is_last = false;
                    break;
                }
                from.after = e.sequence;
                out.read += 1;
                bytes += steps::weight(e);
                if (wanted.matches(e, now)) {
                    out.found.push_back(std::move(e));
                }
            }
        }
    }
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/looks.hpp
// The numbers of every queue, and how old they are. To count a queue may read all its rows, so it is done rarely: after
// a look that took a time, the next comes no sooner than `rest_factor` times as long. Only one thread looks; the others
// get the numbers that are there.
//
// Thread-safe.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// A queue at one moment.
struct look {
    time_point at{};
    state_counts counts{};
    std::optional<time_point> next_due{};
    id oldest{}; ///< the live entry that was enqueued first
    std::optional<time_point> oldest_since{};
    std::size_t stuck = 0; ///< among the oldest live entries

    [[nodiscard]] duration overdue() const { return next_due && *next_due < at ? at - *next_due : duration::zero(); }
};

/// A reader for the metrics whose counts are known already, so that a look counts once, and which notes what they read.
template <class Reader>
struct noting_reader {
    const Reader& in;
    look& seen;
    duration stuck_after;

    [[nodiscard]] state_counts counts(std::string_view) const { return seen.counts; }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view) const { return seen.next_due; }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        auto found = in.list(q);
        for (const auto& e : found) {
            if (seen.oldest.is_nil()) {
                seen.oldest = e.id;
                seen.oldest_since = e.created_at;
            }
            seen.stuck += vouch::detail::is_stuck(e, is_saga(e), later(seen.at, -stuck_after)) ? 1U : 0U;
        }
        return found;
    }
};

class looks {
  public:
    static constexpr std::size_t history_max = 120;
    static constexpr std::int64_t rest_factor = 50;

    /// Looks at the queues whose turn it is, those with the oldest look first, until `budget` is used up.
    template <class Reader>
    void refresh(const Reader& in, const std::vector<std::string>& queues, const std::function<time_point()>& now,
                 metrics& numbers, const look_options& how, std::chrono::milliseconds budget) {
        const std::unique_lock only_one(looking_, std::try_to_lock);
        if (!only_one) {
            return;
        }
        const auto end = std::chrono::steady_clock::now() + budget;
        for (const auto& queue : due(queues)) {
            const auto begun = std::chrono::steady_clock::now();
            if (begun >= end) {
                return;
            }
            look seen{.at = now(), .counts = in.counts(queue), .next_due = in.next_due(queue)};
            numbers.look_at(noting_reader<Reader>{in, seen, how.stuck_after}, queue, seen.at, how);
            const auto took = std::chrono::steady_clock::now() - begun;
            keep(queue, std::move(seen), took);
        }
    }

    /// The looks at a queue, oldest first.
    [[nodiscard]] std::deque<look> at(const std::string& queue) const {
        const std::lock_guard lock(mutex_);
        const auto found = queues_.find(queue);
        return found == queues_.end() ? std::deque<look>{} : found->second.history;
    }

  private:
    using steady_time = std::chrono::steady_clock::time_point;
    struct queue_looks {
        std::deque<look> history{};
        steady_time next{}; ///< not before
    };

    [[nodiscard]] std::vector<std::string> due(const std::vector<std::string>& queues) const {
        const std::lock_guard lock(mutex_);
        std::vector<std::pair<steady_time, std::string>> out;
        const auto now = std::chrono::steady_clock::now();
        for (const auto& queue : queues) {
            const auto found = queues_.find(queue);
            const auto next = found == queues_.end() ? steady_time{} : found->second.next;
            if (next <= now) {
                out.emplace_back(next, queue);
            }
        }
        std::sort(out.begin(), out.end());
        std::vector<std::string> names;
        for (auto& [next, queue] : out) {
            names.push_back(std::move(queue));
        }
        return names;
    }

    void keep(const std::string& queue, look seen, std::chrono::steady_clock::duration took) {
        constexpr auto least = std::chrono::seconds{1};
        const std::lock_guard lock(mutex_);
        auto& kept = queues_[queue];
        kept.history.push_back(std::move(seen));
        if (kept.history.size() > history_max) {
            kept.history.pop_front();
        }
        kept.next =
            std::chrono::steady_clock::now() + std::max<std::chrono::steady_clock::duration>(least, took * rest_factor);
    }

    mutable std::mutex looking_;
    mutable std::mutex mutex_;
    std::map<std::string, queue_looks> queues_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/overview.hpp
// The answer to /api/overview: what every queue looked like when it was last counted, and before.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline std::string json_of(const state_counts& counts) {
    json out;
    for (const auto s : all_states) {
        out.number(name_of(s), counts[s]);
    }
    return out.object();
}

/// Entries that ended between two looks, per second. A purge in between makes it smaller, and never negative.
[[nodiscard]] inline double ended_per_second(const look& before, const look& after) {
    const auto ended = [](const look& l) { return l.counts[state::succeeded] + l.counts[state::dead]; };
    const auto seconds = std::chrono::duration<double>(after.at - before.at).count();
    return ended(after) <= ended(before) || seconds <= 0 ? 0.0
                                                         : static_cast<double>(ended(after) - ended(before)) / seconds;
}

[[nodiscard]] inline std::string json_history(const std::deque<look>& history) {
    json out;
    for (std::size_t i = 0; i < history.size(); ++i) {
        const auto& l = history[i];
        json one;
        one.time("at", l.at).number("live", l.counts.live()).number("dead", l.counts[state::dead]);
        one.raw("ended_per_second", i == 0 ? "null" : std::to_string(ended_per_second(history[i - 1], l)));
        one.raw("overdue", std::to_string(std::chrono::duration<double>(l.overdue()).count()));
        out.item(one.object());
    }
    return out.array();
}

[[nodiscard]] inline std::string json_queue(const std::string& name, const std::deque<look>& history) {
    json out;
    out.text("queue", name);
    if (history.empty()) { // not counted yet
        return out.raw("counts", "null").raw("counted_at", "null").raw("history", "[]").object();
    }
    const auto& last = history.back();
    out.raw("counts", json_of(last.counts)).time("counted_at", last.at).time("next_due", last.next_due);
    out.id("oldest", last.oldest)
        .time("oldest_since", last.oldest_since)
        .number("stuck", last.stuck)
        .raw("history", json_history(history));
    return out.object();
}

/// How old the numbers of /metrics are, in the text format of Prometheus.
[[nodiscard]] inline std::string look_ages(const std::vector<std::string>& queues, const looks& seen, time_point now) {
    std::string out = "# HELP vouch_look_age_seconds How long ago the store was looked at for the gauges.\n"
                      "# TYPE vouch_look_age_seconds gauge\n";
    for (const auto& queue : queues) {
        const auto history = seen.at(queue);
        if (history.empty()) {
            continue;
        }
        std::string label;
        for (const char c : queue) { // a queue's name has no control characters
            label += c == '"' || c == '\\' ? "\\" : "";
            label += c;
        }
        out += "vouch_look_age_seconds{queue=\"" + label + "\"} " +
               std::to_string(std::chrono::duration<double>(now - history.back().at).count()) + '\n';
    }
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/api.hpp
// The answers under /api and /metrics. Who may ask has been decided before.

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline response json_response(std::string body, int status = 200) {
    return {.status = status, .content_type = "application/json; charset=utf-8", .body = std::move(body)};
}
[[nodiscard]] inline response failure(int status, std::string_view sentence) {
    return json_response(json{}.text("error", sentence).object(), status);
}

template <class Store>
class api {
  public:
    api(Store& store, const options& how) : store_(store), how_(how) {}

    [[nodiscard]] std::vector<std::string> queues() const {
        std::vector<std::string> out;
        if (how_.queues) {
            out = how_.queues();
        } else if constexpr (requires(const Store& s) { s.queues(); }) {
            out = store_.queues();
        }
        std::sort(out.begin(), out.end());
        return out;
    }

    void look(std::chrono::milliseconds budget) {
        constexpr std::size_t entries_max = 1000;
        looks_.refresh(store_, queues(), how_.now, numbers(),
                       {.stuck_after = how_.stuck_after, .entries_max = entries_max}, budget);
    }

    [[nodiscard]] response overview(bool may_write) {
        look_if_asked();
        json rows;
        for (const auto& queue : queues()) {
            rows.item(json_queue(queue, looks_.at(queue)));
        }
        json out;
        out.text("name", how_.name).time("now", how_.now()).truth("may_write", may_write);
        out.truth("read_only", how_.read_only || how_.token.empty() || !vouch::store<Store>);
        out.raw("stuck_after", std::to_string(how_.stuck_after / std::chrono::seconds{1}));
        out.raw("queues", rows.array());
        return json_response(out.object());
    }

    [[nodiscard]] response metrics_text() {
        look_if_asked();
        return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = numbers().text() + look_ages(queues(), looks_, how_.now())};
    }

    [[nodiscard]] response list(const parameters& p) const {
        constexpr std::uint64_t limit_max = 200;
        const auto now = how_.now();
        const auto found =
            list_entries(store_, filter_of(p, how_.stuck_after), queues(), cursor::of(p.text("cursor")), now,
                         {.found_max = static_cast<std::size_t>(std::min(p.number("limit").value_or(50), limit_max)),
                          .read_max = how_.read_max});
        json rows;
        std::size_t lanes = 0;
        for (const auto& e : found.found) {
            // To find the head of a lane may read a page, so a list does it for a few entries only.
            constexpr std::size_t lanes_max = 5;
            lanes += e.lane.empty() ? 0U : 1U;
            const bool is_cheap = how_.head_of_lane || lanes <= lanes_max;
            const auto why = why_not_running(store_, e, now, is_cheap ? heads() : lane_search(unsought));
            rows.item(row_of(e).raw("why", json_of(why)).object());
        }
        json out;
        out.raw("entries", rows.array()).number("read", found.read).time("now", now);
        out.raw("next", found.next.empty() ? "null" : json_text(found.next));
        return json_response(out.object());
    }

    [[nodiscard]] response show(const id& which) const {
        constexpr std::size_t shown_max = 256 * 1024;
        const auto e = store_.find(which);
        if (!e) {
            return failure(404, "There is no such entry. A purge may have removed it.");
        }
        const auto now = how_.now();
        auto out = row_of(*e);
        out.time("now", now).raw("why", json_of(why_not_running(store_, *e, now, heads()))).truth("woken", e->woken);
        json trail;
        for (const auto& step : e->trail) {
            trail.item(json_id(step));
        }
        json headers;
        for (const auto& [name, value] : e->headers) {
            headers.item(json{}.text("name", name).text("value", value).object());
        }
        out.raw("trail", trail.array()).raw("headers", headers.array());
        if (how_.payloads) {
            out.raw("payload", json_bytes(e->payload, shown_max));
            out.raw("result", e->result && !is_saga(*e) ? json_bytes(*e->result, shown_max) : "null");
            out.raw("progress", e->progress.empty() || is_saga(*e) ? "null" : json_bytes(e->progress, shown_max));
        }
        const auto saga = is_saga(*e) ? inspect(store_, e->id) : std::nullopt;
        out.raw("saga", saga ? json_of(*saga, how_.payloads) : "null");
        json children;
        for (const auto& child : store_.list(query::children(e->id))) {
            children.item(row_of(child).object());
        }
        return json_response(out.raw("children", children.array()).object());
    }

    /// As bytes that no browser shows or runs.
    [[nodiscard]] response payload(const id& which) const {
        const auto e = how_.payloads ? store_.find(which) : std::nullopt;
        if (!e) {
            return failure(404, "There is no such entry, or payloads are not shown.");
        }
        return {.content_type = "application/octet-stream",
                .headers = {{"Content-Disposition", "attachment; filename=\"" + to_string(which) + ".bin\""}},
                .body = e->payload};
    }

    [[nodiscard]] response act(const id& which, std::string_view verb) {
        if constexpr (vouch::store<Store>) {
            const auto now = how_.now();
            const auto got = verb == "retry"    ? retry(store_, which, now)
                             : verb == "cancel" ? cancel(store_, which, now)
                                                : requeue_one(store_, which, how_.ids, now);
            return json_response(
                json{}.text(got.status == 200 ? "done" : "error", got.sentence).id("successor", got.successor).object(),
                got.status);
        } else {
            return failure(403, "This page cannot change anything.");
        }
    }

    /// One step of a bulk requeue: counts, or requeues, the dead entries of the next page.
    [[nodiscard]] response requeue_page(const parameters& p) {
        constexpr std::size_t commit_max = 100; // in one transaction, so that workers need not wait long
        auto wanted = filter_of(p, how_.stuck_after);
        wanted.state = "dead";
        const bool is_dry = p.text("dry_run") == "1";
        const auto until = p.number("until").value_or(0);
        if (!is_dry && until == 0) {
            throw bad_request("until must be the last sequence that the dry run counted");
        }
        const auto found = list_entries(
            store_, wanted, queues(), cursor::of(p.text("cursor")), how_.now(),
            {.found_max = is_dry ? how_.read_max : commit_max, .read_max = how_.read_max, .until = is_dry ? 0 : until});
        json out;
        std::uint64_t last = 0;
        std::size_t commands = 0;
        for (const auto& e : found.found) {
            last = std::max(last, e.sequence);
            commands += e.parent.is_nil() ? 0U : 1U;
        }
        out.number("matched", found.found.size()).number("commands", commands).number("read", found.read);
        out.raw("last", '"' + std::to_string(last) + '"');
        out.raw("next", found.next.empty() ? "null" : json_text(found.next));
        if constexpr (vouch::store<Store>) {
            const auto got = is_dry ? requeued{} : requeue_all(store_, found.found, how_.ids, how_.now());
            out.number("requeued", got.inserted).number("had_a_successor", got.had_one).number("refused", got.refused);
        }
        return json_response(out.object());
    }

  private:
    [[nodiscard]] static lane_head unsought(const entry&) { return {.is_known = false}; }
    [[nodiscard]] lane_search heads() const {
        if (how_.head_of_lane) {
            return [this](const entry& e) { return lane_head{.entry = how_.head_of_lane(e)}; };
        }
        return [this](const entry& e) { return head_among_oldest(store_, e, how_.read_max); };
    }
    [[nodiscard]] metrics& numbers() { return how_.metrics != nullptr ? *how_.metrics : own_numbers_; }
    void look_if_asked() {
        if (how_.look_in_requests) {
            look(std::chrono::milliseconds{50});
        }
    }

    Store& store_;
    const options& how_;
    looks looks_{};
    metrics own_numbers_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch

// ---- vouch/page/detail/assets.hpp
// The page as text. Written by backends/tool/page/embed.py from the files in backends/tool/page/web; change those.

// clang-format off
namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

inline constexpr std::string_view script_hash = "sha256-aJalKEkETRi7A/FOXHS7Pcwxuz/oHn1D7Xn1p+tprI4=";
inline constexpr std::string_view style_hash = "sha256-oVQD44pqIjXfaF/2ZNu1wGTjZmMoJZA58IryiokqFaQ=";

[[nodiscard]] inline std::string document() {
    std::string out;
    out += R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>vouch</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%234653d3'/%3E%3Cpath d='M6 8l5 9 7-12' fill='none' stroke='white' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E">
<style>/* SPDX-License-Identifier: MIT */
:root {
  --bg: #f5f6f9; --surface: #fff; --sunken: #eef0f5; --line: #dfe3ec; --text: #182033; --soft: #59647a;
  --accent: #4653d3; --accent-text: #fff; --accent-soft: #e8eafc;
  --pending: #7686a5; --retrying: #c47a0a; --claimed: #2574d8; --succeeded: #23885a; --dead: #cf3048; --compensated: #8250c4;
  --bad-bg: #fdecee; --bad-text: #a91d34; --warn-bg: #fdf3e0; --warn-text: #835005;
  --shadow: 0 1px 2px rgb(20 30 60 / 6%), 0 4px 16px rgb(20 30 60 / 5%);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #10141d; --surface: #181e2a; --sunken: #131824; --line: #2a3242; --text: #e6eaf3; --soft: #98a3b8;
    --accent: #8b97ff; --accent-text: #10141d; --accent-soft: #262d52;
    --pending: #8c9bb8; --retrying: #e0a341; --claimed: #62a3f5; --succeeded: #4fbd8a; --dead: #f2677c; --compensated: #b48cf0;
    --bad-bg: #3a1c25; --bad-text: #ff9dab; --warn-bg: #36290f; --warn-text: #f3c778;
    --shadow: 0 1px 2px rgb(0 0 0 / 40%);
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
h1 { font-size: 1.5rem; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: .95rem; margin: 0; }
h3 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: var(--mono); font-size: .86em; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; background: var(--surface); padding: 8px; z-index: 9; }

.top { position: sticky; top: 0; z-index: 5; display: flex; align-items: center; gap: 8px 20px; flex-wrap: wrap;
  padding: 10px 24px; background: var(--surface); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: 9px; font-weight: 700; font-size: 1.1rem; color: var(--text); letter-spacing: -.02em; }
.brand:hover { text-decoration: none; }
.brand svg { width: 24px; height: 24px; }
.brand rect { fill: var(--accent); }
.brand path { fill: none; stroke: var(--accent-text); stroke-width: 3; stroke-linecap: round; stroke-linejoin: round; }
.store { color: var(--soft); font-size: .87rem; max-width: 24ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
nav { display: flex; gap: 4px; margin-right: auto; }
nav a { padding: 6px 12px; border-radius: 8px; color: var(--soft); font-weight: 500; }
nav a:hover { background: var(--sunken); text-decoration: none; }
nav a[aria-current] { background: var(--accent-soft); color: var(--accent); }
.live { display: flex; align-items: center; gap: 7px; font-size: .83rem; color: var(--soft); }
.live:not(:empty)::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--succeeded); animation: pulse 2s infinite; }
.live.bad { color: var(--bad-text); }
.live.bad::before { background: var(--dead); animation: none; }
@keyframes pulse { 50% { opacity: .35; } }
@media (prefers-reduced-motion: reduce) { .live::before { animation: none !important; } }

main { max-width: 1240px; margin: 0 auto; padding: 24px; outline: none; transition: opacity .15s; }
main.loading { opacity: .55; }
main > h2 { margin: 26px 0 12px; color: var(--soft); font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; }
.title { display: flex; align-items: center; justify-content: space-between; gap: 12px; flex-wrap: wrap; margin-bottom: 18px; }
.title > div:first-child { display: flex; align-items: center; gap: 12px; flex-wrap: wrap; }
.label { color: var(--soft); font-size: .8rem; font-weight: 500; }
.note { color: var(--soft); font-size: .83rem; }
.empty { text-align: center; color: var(--soft); padding: 60px 16px; }

button, .button { font: inherit; font-weight: 550; font-size: .9rem; padding: 6px 14px; min-height: 36px; border-radius: 8px; border: 1px solid var(--line);
  background: var(--surface); color: var(--text); cursor: pointer; display: inline-block; line-height: 1.4; }
button:hover:not(:disabled), .button:hover { border-color: var(--soft); text-decoration: none; }
button:disabled { opacity: .5; cursor: default; }
.primary { background: var(--accent); border-color: var(--accent); color: var(--accent-text); }
.primary:hover:not(:disabled) { filter: brightness(1.08); border-color: var(--accent); }
.danger { background: var(--dead); border-color: var(--dead); color: #fff; }
.danger-quiet { color: var(--bad-text); }
.quiet { background: transparent; color: var(--soft); }
.quiet.open { color: var(--succeeded); border-color: currentColor; }
.link { border: 0; padding: 0; min-height: 0; background: none; color: var(--accent); font-weight: 400; }
.buttons { display: flex; gap: 8px; flex-wrap: wrap; }

.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px; }
.tile { display: flex; flex-direction: column; gap: 2px; background: var(--surface); border: 1px solid var(--line); border-radius: 12px;
  padding: 16px 18px; box-shadow: var(--shadow); color: var(--text); min-width: 0; }
a.tile:hover { border-color: var(--accent); text-decoration: none; }
.tile strong { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em; font-variant-numeric: tabular-nums; }
.tile .note { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tile.bad strong { color: var(--bad-text); }

.queues { display: grid; gap: 14px; }
.queues + h2 { margin-top: 26px; }
.tiles + .queues:not(:empty) { margin-top: 18px; }
.queue { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; box-shadow: var(--shadow); }
.queue.attention { border-left: 4px solid var(--dead); }
.queue-head { display: flex; align-items: center; gap: 8px 12px; flex-wrap: wrap; }
.queue-head > .note { margin-left: auto; }
.queue h3 a { color: var(--text); }
.problem { background: var(--bad-bg); color: var(--bad-text); border-radius: 99px; padding: 2px 11px; font-size: .82rem; font-weight: 550; }
.metrics { display: grid; grid-template-columns: repeat(3, 1fr); gap: 22px; margin: 12px 0; }
.metric-head { display: flex; justify-content: space-between; align-items: baseline; gap: 8px; }
.metric-head strong { font-variant-numeric: tabular-nums; }
.metric.bad strong { color: var(--bad-text); }
.spark { width: 100%; height: 38px; display: block; margin-top: 4px; }
.spark .base { stroke: var(--line); vector-effect: non-scaling-stroke; }
.spark .line { fill: none; stroke-width: 1.6; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.spark .area { opacity: .14; }
.depth .line { stroke: var(--claimed); } .depth .area { fill: var(--claimed); }
.rate .line { stroke: var(--succeeded); } .rate .area { fill: var(--succeeded); }
.overdue .line { stroke: var(--retrying); } .overdue .area { fill: var(--retrying); }
.bar { width: 100%; height: 8px; border-radius: 4px; display: block; background: var(--sunken); }
rect.pending { fill: var(--pending); } rect.retrying { fill: var(--retrying); } rect.claimed { fill: var(--claimed); }
rect.succeeded { fill: var(--succeeded); } rect.dead { fill: var(--dead); }
.states { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 0; padding: 0; font-size: .86rem; }
)page";
    out += R"page(.states a { color: var(--soft); } .states b { color: var(--text); font-variant-numeric: tabular-nums; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 6px; }
.dot.pending { background: var(--pending); } .dot.retrying { background: var(--retrying); } .dot.claimed { background: var(--claimed); }
.dot.succeeded { background: var(--succeeded); } .dot.dead { background: var(--dead); }

.badge { font-size: .78rem; font-weight: 600; padding: 2px 10px; border-radius: 99px; color: var(--state); white-space: nowrap;
  background: color-mix(in srgb, var(--state) 15%, transparent); --state: var(--pending); }
.badge.retrying { --state: var(--retrying); } .badge.claimed { --state: var(--claimed); } .badge.succeeded { --state: var(--succeeded); }
.badge.dead { --state: var(--dead); } .badge.compensated { --state: var(--compensated); }
.tag { font-size: .74rem; color: var(--soft); border: 1px solid var(--line); border-radius: 5px; padding: 1px 6px; margin-left: 6px; }

.filters { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 14px 18px; margin-bottom: 16px; }
.chips { display: flex; gap: 6px; flex-wrap: wrap; margin-bottom: 12px; }
.chip { padding: 4px 13px; border-radius: 99px; border: 1px solid var(--line); color: var(--soft); font-size: .87rem; font-weight: 500; }
.chip:hover { border-color: var(--accent); text-decoration: none; }
.chip.on { background: var(--accent); border-color: var(--accent); color: var(--accent-text); }
.fields { display: flex; flex-wrap: wrap; gap: 10px; align-items: flex-end; }
.field { display: flex; flex-direction: column; gap: 3px; flex: 1 1 150px; min-width: 0; max-width: 260px; }
.field label { font-size: .78rem; color: var(--soft); font-weight: 500; }
input, select { font: inherit; font-size: .9rem; padding: 6px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--sunken);
  color: var(--text); width: 100%; min-width: 0; height: 36px; }
details { margin-top: 10px; } summary { cursor: pointer; color: var(--soft); font-size: .86rem; width: max-content; } details .fields { margin-top: 10px; }

.table { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; box-shadow: var(--shadow); }
.table.flat { box-shadow: none; border: 0; border-radius: 0; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: .77rem; color: var(--soft); font-weight: 600; padding: 10px 14px; background: var(--sunken); white-space: nowrap; }
td { padding: 10px 14px; border-top: 1px solid var(--line); vertical-align: top; font-size: .9rem; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; } td[data-label=entry] { min-width: 200px; }
tbody tr { cursor: pointer; } .flat tbody tr { cursor: default; }
tbody tr:hover { background: var(--sunken); }
.topic { font-weight: 600; color: var(--text); }
.sub { color: var(--soft); font-size: .81rem; } .sub code { white-space: nowrap; }
.why { color: var(--soft); min-width: 220px; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.error { color: var(--bad-text); background: var(--bad-bg); padding: 1px 7px; border-radius: 5px; display: inline-block; max-width: 20ch; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom; }
.list-foot { display: flex; align-items: center; gap: 12px; padding: 12px 4px; }
.status { color: var(--soft); font-size: .87rem; margin: 0; }

.why-panel { border-radius: 12px; padding: 14px 18px; margin-bottom: 16px; background: var(--accent-soft); border-left: 4px solid var(--accent); }
.why-panel p { margin: 0; overflow-wrap: anywhere; } #why { font-size: 1.05rem; font-weight: 500; }
.why-panel.dead, .why-panel.lease_over { background: var(--bad-bg); border-color: var(--dead); }
.why-panel.due, .why-panel.blocked, .why-panel.waits_for_reply { background: var(--warn-bg); border-color: var(--retrying); }
.columns { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 16px; align-items: start; }
.panel { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; margin-bottom: 16px; box-shadow: var(--shadow); overflow: hidden; }
.panel-head { display: flex; align-items: center; gap: 8px 14px; flex-wrap: wrap; padding: 12px 18px; border-bottom: 1px solid var(--line); }
.panel-head .note { margin-left: auto; } .panel > p { padding: 0 18px; }
.facts { margin: 0; padding: 6px 18px 12px; }
.fact { display: grid; grid-template-columns: 108px minmax(0, 1fr); gap: 10px; padding: 6px 0; border-bottom: 1px solid var(--line); font-size: .88rem; }
.fact:last-child { border: 0; } dt { color: var(--soft); overflow-wrap: anywhere; } dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
.trail { margin: 0; padding: 10px 18px 12px 38px; font-size: .88rem; }
pre { margin: 0; padding: 14px 18px; max-height: 420px; overflow: auto; background: var(--sunken); white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.tabs { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.tabs button { border: 0; min-height: 0; border-radius: 0; padding: 3px 12px; font-size: .82rem; color: var(--soft); }
.tabs button[aria-selected=true] { background: var(--accent-soft); color: var(--accent); }

.direction { font-size: .83rem; font-weight: 600; color: var(--claimed); } .direction.back { color: var(--compensated); }
.saga-sentence { margin: 14px 0 4px; }
.steps { list-style: none; display: flex; margin: 0; padding: 18px; overflow-x: auto; }
.step { flex: 1 0 132px; position: relative; display: flex; flex-direction: column; align-items: center; gap: 3px; text-align: center; --state: var(--pending); }
.step::before { content: ""; position: absolute; top: 20px; left: -50%; width: 100%; height: 3px; background: color-mix(in srgb, var(--state) 55%, transparent); }
.step:first-child::before { display: none; }
.step-mark { position: relative; z-index: 1; width: 42px; height: 42px; border-radius: 50%; display: grid; place-items: center; font-size: 1.15rem; font-weight: 700;
  background: var(--surface); border: 3px solid var(--state); color: var(--state); }
.step-name { font-weight: 600; font-size: .9rem; overflow-wrap: anywhere; } .step-word { color: var(--soft); font-size: .8rem; }
.step-result { color: var(--soft); max-width: 120px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.step.done { --state: var(--succeeded); } .step.failed { --state: var(--dead); } .step.unknown { --state: var(--retrying); }
.step.begun, .step.undecided { --state: var(--claimed); } .step.undone { --state: var(--compensated); } .step.kept, .step.skipped { --state: var(--pending); }
.step.end.completed { --state: var(--succeeded); } .step.end.compensated { --state: var(--compensated); } .step.end.dead { --state: var(--dead); }
.step.end .step-mark { background: var(--state); color: var(--surface); } .step.open { opacity: .55; } .step.open .step-mark { border-style: dashed; }
.step.here .step-mark { box-shadow: 0 0 0 6px color-mix(in srgb, var(--here, var(--state)) 22%, transparent); }
.step.stuck .step-mark { border-color: var(--dead); } .step.stuck { --here: var(--dead); }
.step-here { background: var(--here, var(--state)); color: var(--surface); border-radius: 99px; padding: 1px 10px; font-size: .76rem; font-weight: 600; margin-top: 3px; }

dialog { border: 1px solid var(--line); border-radius: 14px; padding: 22px 24px; width: min(460px, 92vw); background: var(--surface); color: var(--text); box-shadow: 0 20px 60px rgb(0 0 0 / 30%); }
dialog::backdrop { background: rgb(10 15 30 / 45%); }
dialog h2 { font-size: 1.12rem; } dialog label { font-size: .82rem; color: var(--soft); } dialog .buttons { justify-content: flex-end; margin-top: 18px; }
)page";
    out += R"page(.progress { height: 6px; border-radius: 3px; background: var(--sunken); overflow: hidden; } .progress i { display: block; height: 100%; width: 0; background: var(--accent); transition: width .2s; }
.toast { position: fixed; left: 50%; bottom: 24px; transform: translate(-50%, 80px); opacity: 0; background: var(--text); color: var(--bg); padding: 10px 18px;
  border-radius: 10px; transition: .2s; z-index: 9; max-width: 92vw; pointer-events: none; }
.toast.shown { transform: translate(-50%, 0); opacity: 1; } .toast.bad { background: var(--dead); color: #fff; }

@media (max-width: 760px) {
  .top { padding: 10px 14px; gap: 8px 12px; } .store { display: none; } nav { order: 9; width: 100%; } nav a { flex: 1; text-align: center; padding: 6px 4px; }
  .brand { margin-right: auto; }
  main { padding: 16px 12px; } .tiles { grid-template-columns: 1fr 1fr; gap: 10px; } .tile { padding: 12px 14px; } .tile strong { font-size: 1.4rem; }
  .metrics { gap: 12px; } .metric-head { flex-direction: column; gap: 0; } .metric .label { font-size: .74rem; } .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } .queue-head > .note { margin-left: 0; }
  .field { max-width: none; flex-basis: 130px; }
  thead { display: none; } table, tbody, tr, td { display: block; } tr { padding: 10px 14px; border-top: 1px solid var(--line); } tr:first-child { border: 0; }
  td { border: 0; padding: 2px 0; } td:empty { display: none; } .why { min-width: 0; }
  td[data-label=attempts]::before, td[data-label=age]::before { content: attr(data-label) " "; color: var(--soft); } td.number { display: inline-block; margin-right: 14px; font-size: .82rem; }
  .steps { flex-direction: column; gap: 16px; } .step { flex: none; display: grid; grid-template-columns: 42px 1fr; column-gap: 14px; text-align: left; justify-items: start; align-items: center; }
  .step::before { left: 20px; top: -16px; width: 3px; height: 16px; } .step-mark { grid-row: span 4; align-self: start; } .step > :not(.step-mark) { grid-column: 2; }
}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
  <a class="brand" href="#/" aria-label="vouch, overview">
    <svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"/><path d="M6 8l5 9 7-12"/></svg>
    <span>vouch</span>
  </a>
  <span id="store" class="store"></span>
  <nav aria-label="Views">
    <a href="#/" data-view="overview">Overview</a>
    <a href="#/entries" data-view="entries">Entries</a>
    <a href="#/dead" data-view="dead">Dead letters</a>
  </nav>
  <span id="live" class="live" role="status"></span>
  <button id="lock" class="quiet" type="button">Unlock changes</button>
</header>
<main id="main" tabindex="-1"></main>
<div id="toast" class="toast" role="status" aria-live="polite"></div>
<dialog id="dialog" aria-labelledby="dialog-title"></dialog>
<noscript><p class="empty">This page needs JavaScript. The same data is under <a href="api/overview">api/overview</a>.</p></noscript>
<script>"use strict";
// Builds the page from elements and text nodes. Stored text is only ever the text of a node or the value of an
// attribute that is not code, so markup in it stays text.

const SVG = "http://www.w3.org/2000/svg";
const SAFE_ATTRIBUTES = /^(aria-[a-z]+|data-[a-z]+|role|title|type|name|value|placeholder|for|id|tabindex|colspan|scope|viewBox|d|x|y|x1|x2|y1|y2|cx|cy|r|rx|width|height|points|transform|download|autocomplete|list|text-anchor|preserveAspectRatio|open|disabled|selected|checked|autofocus)$/;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "on") for (const [type, f] of Object.entries(value)) node.addEventListener(type, f);
    else if (name === "href" && /^(#\/|api\/|#main$)/.test(value)) node.setAttribute("href", value);
    else if (SAFE_ATTRIBUTES.test(name)) node.setAttribute(name, value === true ? "" : String(value));
    else throw new Error("attribute " + name);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// Characters that cannot be seen, or that change the direction of what follows, would let a name look like another one.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]/g;
const escapeHidden = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
function shown(text, most = 120) {
  const cut = text.length > most ? text.slice(0, most) + "…" : text;
  return cut.replace(HIDDEN, escapeHidden);
}

const shortId = (id) => id.slice(0, 8) + "…" + id.slice(-4);
const count = (n) => Number(n).toLocaleString("en-US");
function compact(n) {
  if (n < 10000) return count(n);
  return n < 1e6 ? (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + " k" : (n / 1e6).toFixed(2) + " M";
}

function span(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 1) return "under 1 s";
  if (s < 120) return Math.floor(s) + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return s < 8.64e10 ? Math.floor(s / 86400) + " days" : "very long";
}
const ago = (at, now) => (Math.abs(at - now) < 1000 ? "just now" : at > now ? "in " + span(at - now) : span(now - at) + " ago");
function utc(at) {
  const date = new Date(at);
  return isNaN(date) ? (at > 0 ? "never" : "always") : date.toISOString().replace("T", " ");
}
const time = (at, now) => el("span", { title: utc(at), class: "time" }, ago(at, now));

const badge = (state) => el("span", { class: "badge " + (/^[a-z]+$/.test(state) ? state : "") }, state);
const stateOf = (e) => (e.is_compensated ? "compensated" : e.state);

let toastTimer = 0;
function toast(text, isBad) {
  const box = byId("toast");
  box.textContent = text;
  box.className = "toast shown" + (isBad ? " bad" : "");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.className = "toast"; }, 6000);
}

// Opens the dialog; `build(close)` returns what is in it. Resolves with what `close` is called with.
function ask(title, build) {
  return new Promise((resolve) => {
    const dialog = byId("dialog");
    let answer;
    const close = (value) => { answer = value; dialog.close(); };
    dialog.replaceChildren(el("h2", { id: "dialog-title" }, title), ...[build(close)].flat());
    dialog.addEventListener("close", () => resolve(answer), { once: true });
    dialog.showModal();
  });
}
async function confirmed(title, text, verb, isDanger) {
  return await ask(title, (close) => [
    el("p", {}, text),
    el("div", { class: "buttons" },
      el("button", { type: "button", class: "quiet", on: { click: () => close(false) } }, "Cancel"),
      el("button", { type: "button", class: isDanger ? "danger" : "primary", on: { click: () => close(true) } }, verb))]);
}
// Requests. The token is kept for this tab only, and sent as a header, which no page of another site can do.

const TOKEN = "vouch-token";
const token = () => sessionStorage.getItem(TOKEN) || "";

// `vouch serve` prints an address with the token behind the `#`, which browsers do not send.
function takeTokenFromAddress() {
  const match = /^#token=([^&]+)$/.exec(location.hash);
  if (match) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(match[1]));
    history.replaceState(null, "", location.pathname + "#/");
  }
}

async function send(method, path, form) {
)page";
    out += R"page(  const headers = token() ? { Authorization: "Bearer " + token() } : {};
  const how = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
  if (form) {
    headers["Content-Type"] = "application/x-www-form-urlencoded";
    how.body = new URLSearchParams(form).toString();
  }
  let answer;
  try {
    answer = await fetch(path, how);
  } catch (e) {
    throw new Error("The server does not answer.");
  }
  const body = await answer.json().catch(() => ({ error: "The server answered with status " + answer.status + "." }));
  if (!answer.ok) {
    const error = new Error(body.error || "The server answered with status " + answer.status + ".");
    error.status = answer.status;
    throw error;
  }
  return body;
}
const get = (path, query) => {
  const given = Object.entries(query || {}).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return send("GET", path + (given.length ? "?" + new URLSearchParams(given) : ""));
};
const post = (path, form) => send("POST", path, form || {});

async function unlock() {
  const given = await ask("Unlock changes", (close) => {
    const field = el("input", { type: "password", id: "token-field", autocomplete: "off", autofocus: true });
    const submit = () => close(field.value.trim());
    field.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); submit(); } });
    return [
      el("p", {}, "Changes need the token that the server was started with. It stays in this tab."),
      el("label", { for: "token-field" }, "Token"), field,
      el("div", { class: "buttons" },
        el("button", { type: "button", class: "quiet", on: { click: () => close() } }, "Cancel"),
        el("button", { type: "button", class: "primary", on: { click: submit } }, "Unlock"))];
  });
  if (given) sessionStorage.setItem(TOKEN, given);
  return Boolean(given);
}

// Does a change; asks for the token if it is missing or wrong.
async function change(path, form) {
  if (!token() && !(await unlock())) return null;
  try {
    return await post(path, form);
  } catch (e) {
    if (e.status === 401) {
      sessionStorage.removeItem(TOKEN);
      refreshLock();
      toast("The token is not right.", true);
      return null;
    }
    toast(e.message, true);
    return null;
  } finally {
    refreshLock();
  }
}

let isReadOnly = false;
function refreshLock() {
  const lock = byId("lock");
  lock.hidden = false;
  lock.disabled = isReadOnly;
  lock.textContent = isReadOnly ? "Read-only" : token() ? "Changes unlocked" : "Unlock changes";
  lock.className = "quiet" + (token() && !isReadOnly ? " open" : "");
}
// Small charts: a line with its area, from zero to the largest value, and a bar of the states.

const CHART = { width: 160, height: 36 };

// `values` has a number per look, or null where there is none.
function sparkline(values, label, kind) {
  const { width, height } = CHART;
  const known = values.filter((v) => v !== null);
  const most = Math.max(...known, 0);
  const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark " + kind, role: "img", "aria-label": label,
    preserveAspectRatio: "none" });
  box.append(svg("line", { x1: 0, x2: width, y1: height - 1, y2: height - 1, class: "base" }));
  if (known.length < 2) return box;
  const step = width / Math.max(values.length - 1, 1);
  const y = (v) => (most === 0 ? height - 2 : height - 2 - (v / most) * (height - 6));
  const points = values.map((v, i) => (v === null ? null : [i * step, y(v)])).filter(Boolean);
  const line = points.map(([px, py]) => px.toFixed(1) + "," + py.toFixed(1)).join(" ");
  const first = points[0][0].toFixed(1);
  const last = points[points.length - 1][0].toFixed(1);
  box.append(svg("polygon", { points: `${first},${height} ${line} ${last},${height}`, class: "area" }));
  box.append(svg("polyline", { points: line, class: "line" }));
  return box;
}

function metric(title, value, chart, isBad) {
  return el("div", { class: "metric" + (isBad ? " bad" : "") },
    el("div", { class: "metric-head" }, el("span", { class: "label" }, title), el("strong", {}, value)), chart);
}

const STATES = ["pending", "retrying", "claimed", "succeeded", "dead"];
function stateBar(counts) {
  const total = STATES.reduce((sum, s) => sum + counts[s], 0);
  const label = STATES.map((s) => count(counts[s]) + " " + s).join(", ");
  const box = svg("svg", { viewBox: "0 0 1000 8", class: "bar", role: "img", "aria-label": label, preserveAspectRatio: "none" });
  let x = 0;
  for (const s of STATES) {
    if (!counts[s] || !total) continue;
    // A state with one entry among a million can still be seen.
    const width = Math.max((counts[s] / total) * 1000, 6);
    box.append(svg("rect", { x: x.toFixed(1), y: 0, width: width.toFixed(1), height: 8, class: s }));
    x += width;
  }
  if (x > 1000) box.setAttribute("viewBox", `0 0 ${x.toFixed(0)} 8`);
  return box;
}
// The first view: what needs a person, then every queue.

function problemsOf(queue, data) {
  const out = [];
  if (!queue.counts) return out;
  const late = queue.next_due !== null && queue.next_due !== undefined ? data.now - queue.next_due : 0;
  if (late > data.stuck_after * 1000) {
    out.push({ text: "overdue " + span(late), href: link("entries", { state: "stuck", queue: queue.queue }) });
  }
  if (queue.stuck > 0) {
    out.push({ text: count(queue.stuck) + " stuck", href: link("entries", { state: "stuck", queue: queue.queue }) });
  }
  if (queue.counts.dead > 0) {
    out.push({ text: count(queue.counts.dead) + (queue.counts.dead === 1 ? " dead letter" : " dead letters"),
      href: link("dead", { queue: queue.queue }) });
  }
  return out;
}

function tile(title, value, note, href, isBad) {
  return el(href ? "a" : "div", { class: "tile" + (isBad ? " bad" : ""), href },
    el("span", { class: "label" }, title), el("strong", {}, value), el("span", { class: "note" }, note));
}

function tiles(data) {
  const counted = data.queues.filter((q) => q.counts);
  const sum = (f) => counted.reduce((total, q) => total + f(q), 0);
  const late = counted.map((q) => [q.next_due !== null ? data.now - q.next_due : 0, q.queue]).sort((a, b) => b[0] - a[0])[0];
  const rate = sum((q) => (q.history.length ? q.history[q.history.length - 1].ended_per_second || 0 : 0));
  const isLate = Boolean(late) && late[0] > data.stuck_after * 1000;
  const dead = sum((q) => q.counts.dead);
  return el("section", { class: "tiles", "aria-label": "Summary" },
    tile("Live entries", compact(sum((q) => q.counts.pending + q.counts.retrying + q.counts.claimed)),
      compact(sum((q) => q.counts.claimed)) + " claimed", link("entries", { state: "live" })),
    tile("Ended per second", rate < 10 ? rate.toFixed(1) : compact(Math.round(rate)), "since the look before"),
    tile("Most overdue", late && late[0] > 0 ? span(late[0]) : "none", late && late[0] > 0 ? "queue " + shown(late[1], 30) : "all on time",
      late && late[0] > 0 ? link("entries", { state: "stuck" }) : undefined, isLate),
    tile("Dead letters", compact(dead), dead ? "need a decision" : "none", link("dead", {}), dead > 0));
}

function queueCard(q, data) {
  const title = el("h3", {}, el("a", { href: link("entries", { queue: q.queue, state: "live" }) }, shown(q.queue, 60)));
  if (!q.counts) return el("article", { class: "queue" }, el("div", { class: "queue-head" }, title, el("span", { class: "note" }, "counting …")));
  const last = q.history[q.history.length - 1];
  const live = q.counts.pending + q.counts.retrying + q.counts.claimed;
  const overdue = q.next_due !== null ? Math.max(data.now - q.next_due, 0) : 0;
  const rate = last.ended_per_second;
  const problems = problemsOf(q, data);
  return el("article", { class: "queue" + (problems.length ? " attention" : "") },
    el("div", { class: "queue-head" }, title,
      problems.map((p) => el("a", { class: "problem", href: p.href }, p.text)),
      el("span", { class: "note" }, "counted " + ago(q.counted_at, data.now))),
)page";
    out += R"page(    el("div", { class: "metrics" },
      metric("Depth", compact(live), sparkline(q.history.map((h) => h.live), "Live entries of queue " + q.queue, "depth")),
      metric("Ended / s", rate === null ? "–" : rate < 10 ? rate.toFixed(1) : compact(Math.round(rate)),
        sparkline(q.history.map((h) => h.ended_per_second), "Entries of queue " + q.queue + " that ended per second", "rate")),
      metric("Oldest waiting", overdue > 0 ? span(overdue) : "none due",
        sparkline(q.history.map((h) => h.overdue), "Seconds that the next entry of queue " + q.queue + " is overdue", "overdue"),
        overdue > data.stuck_after * 1000)),
    stateBar(q.counts),
    el("ul", { class: "states" }, STATES.map((s) => el("li", {},
      el("a", { href: s === "dead" ? link("dead", { queue: q.queue }) : link("entries", { queue: q.queue, state: s }) },
        el("i", { class: "dot " + s }), s + " ", el("b", {}, count(q.counts[s])))))));
}

const overviewView = {
  every: 2000,
  async render(main) {
    const run = currentRun();
    const data = await get("api/overview");
    if (run.isOver()) return; // the person has gone on meanwhile
    isReadOnly = data.read_only;
    byId("store").textContent = shown(data.name, 60);
    refreshLock();
    const attention = data.queues.filter((q) => problemsOf(q, data).length);
    const rest = data.queues.filter((q) => !problemsOf(q, data).length);
    main.replaceChildren(
      el("div", { class: "title" }, el("h1", {}, "Overview"),
        el("a", { class: "button primary", id: "find-stuck", href: link("entries", { state: "stuck" }) }, "Find stuck entries")),
      tiles(data),
      data.queues.length === 0 ? el("p", { class: "empty" }, "The store has no entries yet.") : "",
      attention.length ? el("h2", {}, "Needs attention") : "",
      attention.map((q) => queueCard(q, data)).reduce((box, card) => (box.append(card), box), el("div", { class: "queues" })),
      rest.length && attention.length ? el("h2", {}, "Running well") : "",
      rest.map((q) => queueCard(q, data)).reduce((box, card) => (box.append(card), box), el("div", { class: "queues" })));
  },
};
// Entries by filter. One request reads a bounded number of entries, so a search goes on by itself until it has found a
// screen full, and says how far it is.

const FILTERS = ["queue", "state", "topic", "key", "lane", "group", "parent", "error", "worker", "older_than", "newer_than"];
const STATE_CHOICES = ["", "live", "stuck", ...["pending", "retrying", "claimed", "succeeded", "dead"]];
const SCREEN = 50;
const HINTS = { older_than: "15m, 36h, 7d", newer_than: "15m, 36h, 7d", parent: "an id", error: "an error code", topic: "exactly" };

function filterField(name, query) {
  const id = "filter-" + name;
  return el("div", { class: "field" }, el("label", { for: id }, name.replace("_", " ")),
    el("input", { id, name, value: query[name] || "", placeholder: HINTS[name] || "any", autocomplete: "off" }));
}

function queueField(queues, query) {
  const select = el("select", { id: "filter-queue", name: "queue" }, el("option", { value: "" }, "all queues"),
    queues.map((q) => el("option", { value: q, selected: q === query.queue }, shown(q, 60))));
  if (query.queue && !queues.includes(query.queue)) select.append(el("option", { value: query.queue, selected: true }, shown(query.queue, 60)));
  return el("div", { class: "field" }, el("label", { for: "filter-queue" }, "queue"), select);
}

function filterForm(view, query, queues) {
  const more = ["key", "lane", "group", "parent", "worker", "older_than", "newer_than"];
  const form = el("form", { class: "filters", role: "search" },
    view === "entries" ? el("div", { class: "chips", role: "group", "aria-label": "State" },
      STATE_CHOICES.map((s) => el("a", { class: "chip" + ((query.state || "") === s ? " on" : ""), "data-state": s || "all",
        "aria-current": (query.state || "") === s ? "true" : undefined, href: link(view, { ...query, state: s }) }, s || "all"))) : "",
    el("div", { class: "fields" }, queueField(queues, query), filterField("topic", query), filterField("error", query),
      el("button", { type: "submit", class: "primary" }, "Search"),
      FILTERS.some((f) => query[f]) ? el("a", { class: "button quiet", href: link(view, {}) }, "Clear") : ""),
    el("details", { open: more.some((f) => query[f]) }, el("summary", {}, "More filters"),
      el("div", { class: "fields" }, more.map((f) => filterField(f, query)))));
  const go = () => {
    const wanted = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]).filter(([, v]) => v));
    location.hash = link(view, { ...wanted, state: query.state || "" });
  };
  form.addEventListener("submit", (e) => { e.preventDefault(); go(); });
  form.querySelector("select").addEventListener("change", go);
  return form;
}

function entryRow(e, now) {
  return el("tr", { on: { click: (event) => { if (!event.target.closest("a")) location.hash = link("entry/" + e.id); } } },
    el("td", { "data-label": "state" }, badge(stateOf(e)), e.is_saga ? el("span", { class: "tag" }, "saga") : ""),
    el("td", { "data-label": "entry" }, el("a", { class: "topic", href: link("entry/" + e.id) }, shown(e.topic, 60)),
      el("div", { class: "sub" }, shown(e.queue, 40) + " · ", el("code", {}, shortId(e.id)))),
    el("td", { "data-label": "why", class: "why" }, shown(e.why.sentence, 300)),
    el("td", { "data-label": "attempts", class: "number" }, e.attempts + (e.attempts_max ? " / " + e.attempts_max : "")),
    el("td", { "data-label": "error" }, e.last_error ? el("code", { class: "error" }, shown(e.last_error, 60)) : ""),
    el("td", { "data-label": "age", class: "number" }, time(e.created_at, now)));
}

function entryTable() {
  const body = el("tbody", {});
  const head = ["State", "Entry", "Why it is not running", "Attempts", "Last error", "Age"];
  return { body, table: el("div", { class: "table" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), body)) };
}

// Reads on until `screen` entries are found, the end is reached, or `isOver` says to stop.
async function search(query, from, screen, onProgress, isOver) {
  const out = { entries: [], next: from, read: 0, now: Date.now() };
  do {
    const page = await get("api/entries", { ...query, cursor: out.next || "", limit: screen - out.entries.length });
    out.entries.push(...page.entries);
    out.read += page.read;
    out.next = page.next;
    out.now = page.now;
    onProgress(out);
  } while (out.next && out.entries.length < screen && !isOver());
  return out;
}

// The list below a filter; the view of dead letters uses it too.
async function renderList(main, view, title, query, wanted, head) {
  const run = currentRun();
  const queues = (await get("api/overview")).queues.map((q) => q.queue);
  if (run.isOver()) return;
  const { body, table } = entryTable();
  const status = el("p", { class: "status", role: "status" }, "Searching …");
  const more = el("button", { type: "button", class: "quiet", hidden: undefined }, "Show more");
  const stop = el("button", { type: "button", class: "quiet" }, "Stop the search");
  more.hidden = true;
  main.replaceChildren(el("div", { class: "title" }, el("h1", {}, title), head || ""), filterForm(view, query, queues), table,
    el("div", { class: "list-foot" }, status, stop, more));
  let cursor = "";
  let total = 0;
  let read = 0;
  let isStopped = false;
  stop.addEventListener("click", () => { isStopped = true; });
  const next = async () => {
    isStopped = false;
    more.hidden = true;
    stop.hidden = false;
    let shownHere = 0;
    const found = await search(wanted, cursor, SCREEN, (soFar) => {
      for (const e of soFar.entries.slice(shownHere)) body.append(entryRow(e, soFar.now));
      shownHere = soFar.entries.length;
      status.textContent = count(total + shownHere) + " found, " + count(read + soFar.read) + " read …";
    }, () => isStopped || run.isOver());
)page";
    out += R"page(    if (run.isOver()) return;
    cursor = found.next;
    total += found.entries.length;
    read += found.read;
    stop.hidden = true;
    more.hidden = !cursor;
    more.textContent = isStopped ? "Search on" : "Show more";
    status.textContent = total === 0 && !cursor ? "No entry matches; " + count(read) + " read." :
      count(total) + (total === 1 ? " entry" : " entries") + (cursor ? " so far" : "") + ", oldest first; " + count(read) + " read.";
  };
  more.addEventListener("click", () => next().catch((e) => toast(e.message, true)));
  await next();
}

const listView = {
  async render(main, query) {
    await renderList(main, "entries", query.state === "stuck" ? "Stuck entries" : "Entries", query, query);
  },
};
// Bytes in three forms: text, JSON with indentation, and a hex dump.

const HEX_SHOWN = 4096;

function bytesOf(data) {
  if (data.encoding === "text") return new TextEncoder().encode(data.data);
  return Uint8Array.from(atob(data.data), (c) => c.charCodeAt(0));
}

function hexDump(bytes) {
  const lines = [];
  for (let i = 0; i < Math.min(bytes.length, HEX_SHOWN); i += 16) {
    const row = [...bytes.slice(i, i + 16)];
    const hex = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : ".")).join("");
    lines.push(i.toString(16).padStart(6, "0") + "  " + hex.padEnd(48) + " " + text);
  }
  return lines.join("\n") + (bytes.length > HEX_SHOWN ? "\n…" : "");
}

function asJson(data) {
  if (data.encoding !== "text" || data.is_cut) return null;
  try {
    return JSON.stringify(JSON.parse(data.data), null, 2);
  } catch (e) {
    return null;
  }
}

// `title` names the bytes; `id` makes the tabs' ids unique.
function bytesPanel(title, id, data, download) {
  const bytes = bytesOf(data);
  const json = asJson(data);
  const text = data.encoding === "text" ? data.data : new TextDecoder().decode(bytes);
  const forms = { Text: text.replace(/[^\n\t]/g, (c) => c.replace(HIDDEN, escapeHidden)), JSON: json, Hex: hexDump(bytes) };
  const pre = el("pre", { id: id + "-panel", tabindex: "0", role: "tabpanel" });
  const tabs = Object.keys(forms).map((name) => el("button", { type: "button", role: "tab", "aria-controls": id + "-panel",
    "data-form": name, disabled: forms[name] === null, title: forms[name] === null ? "It is not JSON" : undefined }, name));
  const choose = (name) => {
    pre.textContent = forms[name];
    for (const tab of tabs) {
      const isOn = tab.dataset.form === name;
      tab.setAttribute("aria-selected", String(isOn));
      tab.tabIndex = isOn ? 0 : -1;
    }
  };
  const list = el("div", { role: "tablist", class: "tabs", "aria-label": title, on: { keydown: (e) => {
    const way = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    const open = tabs.filter((t) => !t.disabled);
    if (!way) return;
    const to = open[(open.indexOf(document.activeElement) + way + open.length) % open.length];
    choose(to.dataset.form);
    to.focus();
  } } }, tabs);
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset.form));
  choose(json !== null ? "JSON" : data.encoding === "text" ? "Text" : "Hex");
  return el("section", { class: "panel bytes", id },
    el("div", { class: "panel-head" }, el("h2", {}, title), list,
      el("span", { class: "note" }, count(data.size) + " bytes" + (data.is_cut ? ", the first shown" : ""), " ",
        download ? el("button", { type: "button", class: "link", on: { click: download } }, "download") : "")),
    data.size ? pre : el("p", { class: "note" }, "empty"));
}
// A saga as a picture: its steps from left to right, what is known of each, and where the saga stands. Steps that have
// not begun are not stored, so the picture ends with an open line while the saga goes forward.

const STEP_MARKS = { begun: "…", done: "✓", failed: "✕", unknown: "?", undone: "↶", kept: "=", skipped: "–", undecided: "…" };
const STEP_WORDS = {
  begun: "running or waiting", done: "done", failed: "failed, no effect", unknown: "may have had an effect",
  undone: "undone", kept: "kept, cannot be undone", skipped: "skipped", undecided: "condition not decided",
};
const ENDS = { completed: "completed", compensated: "compensated", dead: "stuck" };

function sagaSentence(saga) {
  if (saga.end === "completed") return "All steps are done.";
  if (saga.end === "compensated") return "Undone in reverse because of " + shown(saga.reason) + ".";
  const at = saga.step ? "at step " + shown(saga.step) : "at the end";
  const way = saga.direction === "back" ? "Undoing because of " + shown(saga.reason) + ", " : "Going forward, ";
  if (saga.end === "dead") return way + "stuck " + at + ". Remove the cause, then resume it.";
  const waits = saga.waits_in ? "; it waits for " + shown(saga.waits_in) : "";
  return way + at + (saga.attempts ? ", attempt " + saga.attempts : "") + waits + ".";
}

function sagaNode(step, i, saga) {
  const isHere = !saga.end ? i === saga.at : saga.end === "dead" && i === saga.at;
  const known = STEP_WORDS[step.state] ? step.state : "unknown";
  return el("li", { class: "step " + known + (isHere ? " here" : "") + (isHere && saga.end ? " stuck" : "") },
    el("span", { class: "step-mark", "aria-hidden": "true" }, STEP_MARKS[known]),
    el("span", { class: "step-name" }, shown(step.name, 40)),
    el("span", { class: "step-word" }, STEP_WORDS[known]),
    step.result ? el("code", { class: "step-result", title: "result" },
      step.result.encoding === "text" ? shown(step.result.data, 40) : step.result.size + " bytes") : "",
    isHere ? el("span", { class: "step-here" }, saga.end === "dead" ? "stuck here" : "is here") : "");
}

function sagaPicture(saga, entry) {
  const steps = saga.steps.map((step, i) => sagaNode(step, i, saga));
  const last = saga.end ? el("li", { class: "step end " + saga.end },
    el("span", { class: "step-mark", "aria-hidden": "true" }, saga.end === "completed" ? "✓" : saga.end === "dead" ? "!" : "↶"),
    el("span", { class: "step-name" }, ENDS[saga.end])) :
    el("li", { class: "step open" }, el("span", { class: "step-mark", "aria-hidden": "true" }, "⋯"),
      el("span", { class: "step-name" }, saga.direction === "back" ? "undoing" : "next steps"));
  return el("section", { class: "panel saga", id: "saga" },
    el("div", { class: "panel-head" }, el("h2", {}, "Saga " + shown(saga.definition, 40)),
      el("span", { class: "note" }, "version " + saga.version),
      el("span", { class: "direction " + (saga.direction === "back" ? "back" : "forward") },
        saga.direction === "back" ? "← compensating" : "forward →")),
    el("p", { class: "saga-sentence" }, sagaSentence(saga)),
    el("ol", { class: "steps" + (saga.direction === "back" ? " back" : ""), "aria-label": "Steps of the saga" }, steps, last),
    saga.waits_for ? el("p", { class: "note" }, "It waits for the command ",
      el("a", { href: link("entry/" + saga.waits_for) }, shortId(saga.waits_for)),
      saga.waits_until ? ", at most until " + utc(saga.waits_until) : "") : "");
}
// One entry: why it is not running first, then what can be done, then everything that is known.

function fact(name, value, wide) {
  if (value === null || value === undefined || value === "") return "";
  return el("div", { class: "fact" + (wide ? " wide" : "") }, el("dt", {}, name), el("dd", {}, value));
}
const idLink = (id) => (id ? el("a", { href: link("entry/" + id) }, el("code", {}, id)) : "");
const at = (when, now) => (when === null ? "" : [utc(when), " ", el("span", { class: "note" }, ago(when, now))]);

async function act(e, verb, title, text, isDanger) {
  if (!(await confirmed(title, text, title, isDanger))) return;
  const answer = await change("api/entries/" + e.id + "/" + verb);
  if (!answer) return;
  toast(answer.done);
  if (answer.successor) location.hash = link("entry/" + answer.successor);
  else redraw();
}

function entryButtons(e) {
)page";
    out += R"page(  if (isReadOnly) return "";
  const button = (label, name, f) => el("button", { type: "button", class: name, on: { click: f } }, label);
  const isLive = e.state !== "succeeded" && e.state !== "dead";
  return el("div", { class: "buttons" },
    isLive ? button("Run now", "primary", () => act(e, "retry", "Run now", "Make this entry due now?")) : "",
    isLive ? button(e.is_saga ? "Ask to compensate" : "Cancel entry", "danger-quiet", () => act(e, "cancel",
      e.is_saga ? "Ask to compensate" : "Cancel entry",
      e.is_saga ? "The saga undoes its steps in reverse. This cannot be taken back." : "The entry ends as dead.", true)) : "",
    e.state === "dead" && !e.parent ? button(e.is_saga ? "Resume" : "Requeue", "primary", () => act(e, "requeue",
      e.is_saga ? "Resume" : "Requeue",
      e.is_saga ? "A successor continues the saga where it stopped." : "A successor starts from the beginning, due now.")) : "");
}

async function download(e) {
  try {
    const answer = await fetch("api/entries/" + e.id + "/payload", { headers: token() ? { Authorization: "Bearer " + token() } : {} });
    if (!answer.ok) throw new Error("The payload could not be read.");
    const address = URL.createObjectURL(await answer.blob());
    const a = el("a", { download: e.id + ".bin" });
    a.href = address;
    a.click();
    URL.revokeObjectURL(address);
  } catch (error) {
    toast(error.message, true);
  }
}

function facts(e) {
  const now = e.now;
  return el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Details")),
    el("dl", { class: "facts" },
      fact("id", el("code", {}, e.id), true),
      fact("queue", el("a", { href: link("entries", { queue: e.queue, state: "live" }) }, shown(e.queue, 255))),
      fact("topic", shown(e.topic, 255)),
      fact("attempts", e.attempts + (e.attempts_max ? " of " + e.attempts_max : "") + ", " + e.failures + " failed, " + e.epoch + " claims ever" +
        (e.lapses ? ", " + e.lapses + " leases lapsed" : "")),
      fact("last error", e.last_error ? el("a", { href: link("entries", { error: e.last_error, queue: e.queue }) }, shown(e.last_error)) : ""),
      fact("worker", e.worker ? el("a", { href: link("entries", { worker: e.worker, queue: e.queue, state: "claimed" }) }, shown(e.worker, 255)) : ""),
      fact("key", shown(e.key, 255)),
      fact("lane", e.lane ? el("a", { href: link("entries", { lane: e.lane, queue: e.queue, state: "live" }) }, shown(e.lane, 255)) : ""),
      fact("group", e.group ? el("a", { href: link("entries", { group: e.group }) }, shown(e.group, 255)) : ""),
      fact("parent", idLink(e.parent), true), fact("replaces", idLink(e.predecessor), true),
      fact("enqueued", at(e.created_at, now)), fact("due", at(e.due_at, now)), fact("lease until", at(e.lease_until, now)),
      fact("last attempt", at(e.last_attempt_at, now)), fact("changed", at(e.updated_at, now)), fact("expires", at(e.expires_at, now)),
      fact("sequence", e.sequence + ", generation " + e.generation)));
}

function whyPanel(e) {
  return el("section", { class: "why-panel " + (/^[a-z_]+$/.test(e.why.code) ? e.why.code : ""), "aria-label": "Why it is not running" },
    el("p", { id: "why" }, shown(e.why.sentence, 2000)),
    e.why.entries.length ? el("p", { class: "note" }, "See ", e.why.entries.map((id, i) => [i ? ", " : "", idLink(id)])) : "");
}

function relations(e) {
  const trail = e.trail.length ? el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Trail"),
    el("span", { class: "note" }, "the emissions that led here, oldest first")),
    el("ol", { class: "trail" }, e.trail.map((id) => el("li", {}, el("code", {}, id))))) : "";
  const headers = e.headers.length ? el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Headers")),
    el("dl", { class: "facts" }, e.headers.map((h) => fact(shown(h.name, 255), shown(h.value, 4096) || "(empty)", true)))) : "";
  if (!e.children.length) return [headers, trail];
  const rows = e.children.map((c) => el("tr", {}, el("td", { "data-label": "state" }, badge(stateOf(c))),
    el("td", { "data-label": "command" }, el("a", { href: link("entry/" + c.id) }, shown(c.topic, 60))),
    el("td", { "data-label": "queue" }, shown(c.queue, 60)),
    el("td", { "data-label": "error" }, c.last_error ? el("code", { class: "error" }, shown(c.last_error)) : ""),
    el("td", { "data-label": "changed", class: "number" }, time(c.updated_at, e.now))));
  return [el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Its commands and children")),
    el("div", { class: "table flat" }, el("table", {}, el("tbody", {}, rows)))), headers, trail];
}

const entryView = {
  every: 4000,
  async render(main, query, id) {
    const run = currentRun();
    const e = await get("api/entries/" + encodeURIComponent(id));
    if (run.isOver()) return;
    const scroll = [...main.querySelectorAll("[role=tab][aria-selected=true]")].map((t) => [t.closest("section").id, t.dataset.form]);
    main.replaceChildren(
      el("div", { class: "title" }, el("div", {}, el("h1", { class: "entry-title" }, shown(e.topic, 80)), badge(stateOf(e))), entryButtons(e)),
      whyPanel(e), e.saga ? sagaPicture(e.saga, e) : "",
      el("div", { class: "columns" }, el("div", {}, facts(e)),
        el("div", {}, e.payload ? bytesPanel("Payload", "payload", e.payload, () => download(e)) : "",
          e.result ? bytesPanel("Result", "result", e.result) : "",
          e.progress ? bytesPanel("Progress", "progress", e.progress) : "", relations(e))));
    for (const [section, form] of scroll) { // a redraw keeps the chosen forms
      const tab = main.querySelector(`#${section} [data-form=${form}]`);
      if (tab && !tab.disabled) tab.click();
    }
  },
};
// Dead letters, and their requeue by filter: first everything is counted, then a person confirms, then they are requeued
// in small commits, and none that was not counted.

async function requeueMatching(query) {
  if (!token() && !(await unlock())) return;
  refreshLock();
  const form = Object.fromEntries(Object.entries(query).filter(([, value]) => value));
  let isStopped = false;
  const text = el("p", { role: "status", id: "requeue-status" }, "Counting …");
  const bar = el("div", { class: "progress" }, el("i", {}));
  const go = el("button", { type: "button", class: "primary", id: "requeue-go", disabled: true }, "Requeue");
  const close = el("button", { type: "button", class: "quiet", id: "requeue-close" }, "Cancel");
  const shape = Object.entries(form).filter(([name]) => name !== "state").map(([name, value]) => name.replace("_", " ") + " " + shown(value, 60));
  const walk = async (extra, onPage) => {
    let cursor = "";
    do {
      const page = await change("api/requeue", { ...form, ...extra, cursor });
      if (!page) throw new Error("stopped");
      onPage(page);
      cursor = page.next;
    } while (cursor && !isStopped);
  };
  const work = async () => {
    let matched = 0;
    let commands = 0;
    let last = 0n;
    await walk({ dry_run: "1" }, (page) => {
      matched += page.matched;
      commands += page.commands;
      if (BigInt(page.last) > last) last = BigInt(page.last);
      text.textContent = "Counting … " + count(matched);
    });
    if (isStopped) return;
    const able = matched - commands;
    text.textContent = matched === 0 ? "No dead entry matches." : count(able) + (able === 1 ? " entry gets" : " entries get") +
      " a successor that runs now; sagas are resumed." + (commands ? " " + count(commands) + " commands of sagas are left alone." : "");
    if (able === 0) return;
    go.textContent = "Requeue " + count(able);
    go.disabled = false;
    await new Promise((resolve) => go.addEventListener("click", resolve, { once: true }));
    go.disabled = true;
    close.textContent = "Stop";
    let done = 0;
    let before = 0;
    let seen = 0;
    await walk({ until: String(last) }, (page) => {
)page";
    out += R"page(      done += page.requeued;
      before += page.had_a_successor;
      seen += page.matched;
      bar.firstChild.style.width = Math.min(100, (100 * seen) / matched) + "%";
      text.textContent = count(done) + " of " + count(able) + " requeued …";
    });
    text.textContent = count(done) + " requeued" + (before ? ", " + count(before) + " had a successor already" : "") + (isStopped ? "; stopped." : ".");
    close.textContent = "Close";
    go.hidden = true;
  };
  const over = ask("Requeue dead letters", (end) => {
    close.addEventListener("click", () => { isStopped = true; end(); });
    return [el("p", { class: "note" }, shape.length ? "Those with " + shape.join(", ") : "Those of all queues"), text, bar,
      el("div", { class: "buttons" }, close, go)];
  });
  work().catch((e) => { text.textContent = e.message === "stopped" ? "Nothing more was requeued." : e.message; });
  await over;
  isStopped = true;
  redraw();
}

const deadView = {
  async render(main, query) {
    const wanted = { ...query, state: "dead" };
    const head = isReadOnly ? "" : el("button", { type: "button", class: "primary", id: "requeue-all",
      on: { click: () => requeueMatching(wanted) } }, "Requeue matching …");
    await renderList(main, "dead", "Dead letters", query, wanted, head);
  },
};
// Chooses the view by what is behind the `#`, and draws it again while the page is visible.

const VIEWS = { overview: overviewView, entries: listView, dead: deadView, entry: entryView };

function link(view, query) {
  const given = Object.entries(query || {}).filter(([, value]) => value);
  return "#/" + view + (given.length ? "?" + new URLSearchParams(given) : "");
}

function whereTo() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  const view = name === "entry" && id ? "entry" : VIEWS[name] && name !== "entry" ? name : "overview";
  return { view, id, query: Object.fromEntries(new URLSearchParams(query || "")) };
}

// A run is one drawing of one address; when another begins, what the first still reads is thrown away.
let runs = 0;
let timer = 0;
let lastGood = 0;
function currentRun() {
  const mine = runs;
  return { isOver: () => mine !== runs };
}

function showLive(error) {
  const live = byId("live");
  live.className = "live" + (error ? " bad" : "");
  live.textContent = error ? error : "live";
  live.title = lastGood ? "last answer at " + utc(lastGood) : "";
}

async function draw(isNew) {
  clearTimeout(timer);
  runs += 1;
  const run = currentRun();
  const to = whereTo();
  const view = VIEWS[to.view];
  const main = byId("main");
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.view === to.view) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (isNew) main.classList.add("loading");
  try {
    // Drawn aside first, so that a slow answer leaves the old content, and the focus stays where it is.
    const focus = document.activeElement && document.activeElement.id;
    if (isNew) await view.render(main, to.query, to.id);
    else {
      const y = scrollY;
      await view.render(main, to.query, to.id);
      if (run.isOver()) return;
      scrollTo(0, y);
      if (focus && byId(focus) && document.activeElement === document.body) byId(focus).focus();
    }
    if (run.isOver()) return;
    lastGood = Date.now();
    showLive("");
  } catch (e) {
    if (run.isOver()) return;
    if (e.status === 401) {
      main.replaceChildren(el("p", { class: "empty" }, "Reading needs the token. ",
        el("button", { type: "button", class: "primary", on: { click: async () => { if (await unlock()) redraw(); } } }, "Enter the token")));
    } else if (isNew) {
      main.replaceChildren(el("p", { class: "empty" }, e.message));
    }
    showLive(e.message);
  } finally {
    if (!run.isOver()) {
      main.classList.remove("loading");
      if (isNew) document.title = (main.querySelector("h1") || {}).textContent + " · vouch";
      if (view.every) timer = setTimeout(tick, view.every);
    }
  }
}

// To draw between the press and the release of a button would lose the click.
let isPressed = false;
addEventListener("pointerdown", () => { isPressed = true; }, true);
for (const type of ["pointerup", "pointercancel", "blur"]) addEventListener(type, () => { isPressed = false; }, true);

function tick() {
  const isBusy = isPressed || document.hidden || byId("dialog").open || String(getSelection());
  if (isBusy) timer = setTimeout(tick, 300);
  else draw(false);
}
const redraw = () => draw(true);

takeTokenFromAddress();
byId("lock").addEventListener("click", async () => {
  if (token()) sessionStorage.removeItem(TOKEN);
  else await unlock();
  refreshLock();
});
addEventListener("hashchange", () => { if (location.hash !== "#main") { scrollTo(0, 0); draw(true); } });
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || byId("dialog").open) return;
  const to = { o: "", e: "entries", s: "entries?state=stuck", d: "dead" }[e.key];
  if (to !== undefined) location.hash = "#/" + to;
});
(async () => {
  try {
    const about = await get("api/overview");
    isReadOnly = about.read_only;
    byId("store").textContent = shown(about.name, 60);
  } catch (e) { /* the view says it */ }
  refreshLock();
  draw(true);
})();
</script>
</body>
</html>
)page";
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
// clang-format on

// ---- vouch/page/site.hpp
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

#endif // VOUCH_SINGLE_HEADER_PAGE
