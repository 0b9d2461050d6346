// SPDX-License-Identifier: MIT
// The arguments of a store's operations as C++ expressions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/expect.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The whole text as a string literal.
[[nodiscard]] inline std::string as_literal(std::string_view text) {
    constexpr std::size_t piece = 50;
    std::string out = "\"";
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
        const auto quoted = show(text.substr(0, piece));
        out.append(quoted, 1, quoted.size() - 2);
    }
    return out + "\"";
}

/// A braced list of designated initialisers.
class members {
  public:
    template <class T>
    void add(std::string_view name, const T& value) {
        add_code(name, value_of(value));
    }
    template <class T>
    void add_if(bool wanted, std::string_view name, const T& value) {
        if (wanted) {
            add(name, value);
        }
    }
    void add_code(std::string_view name, const std::string& code) {
        out_ += std::string(out_.empty() ? "" : ", ") + "." + std::string(name) + " = " + code;
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

    template <class T>
    [[nodiscard]] static std::string value_of(const T& value) {
        return show(value);
    }
    [[nodiscard]] static std::string value_of(state value) { return "state::" + show(value); }
    template <class T>
    [[nodiscard]] static std::string value_of(const std::optional<T>& value) {
        return value ? value_of(*value) : "std::nullopt";
    }
    [[nodiscard]] static std::string value_of(const id& value) {
        return value == id_of(value.low)
                   ? show(value)
                   : "id{.high = " + std::to_string(value.high) + "U, .low = " + std::to_string(value.low) + "U}";
    }
    /// The whole string, including NULs.
    [[nodiscard]] static std::string value_of(const std::string& value) {
        constexpr std::size_t long_text = 60;
        const auto tail =
            value.find_last_not_of(value.empty() ? ' ' : value.back()) + 1; // where a run of one character starts
        if (value.size() - tail > long_text) {
            return "std::string(" + as_literal(value.substr(0, tail)) + ", " + std::to_string(tail) + ").append(" +
                   std::to_string(value.size() - tail) + ", " + letter(value.back()) + ")";
        }
        if (value.size() > long_text && value == pattern(value.size())) {
            return "pattern(" + std::to_string(value.size()) + ")";
        }
        return value.find('\0') == std::string::npos
                   ? as_literal(value)
                   : "std::string(" + as_literal(value) + ", " + std::to_string(value.size()) + ")";
    }
    [[nodiscard]] static std::string value_of(const id_list& values) {
        std::string out;
        for (const auto& one : values) {
            out += (out.empty() ? "" : ", ") + value_of(one);
        }
        return "{" + out + "}";
    }
    [[nodiscard]] static std::string value_of(const header_list& values) {
        std::string out;
        for (const auto& [name, value] : values) {
            out += (out.empty() ? "{" : ", {") + value_of(name) + ", " + value_of(value) + "}";
        }
        return "{" + out + "}";
    }

  private:
    [[nodiscard]] static std::string letter(char c) {
        auto text = as_literal(std::string_view(&c, 1));
        text.front() = text.back() = '\'';
        return text;
    }

    std::string out_{};
};

[[nodiscard]] inline std::string as_code(const draft& d) {
    members m;
    m.add("id", d.id);
    m.add("queue", d.queue);
    m.add("topic", d.topic);
    m.add_if(!d.payload.empty(), "payload", d.payload);
    m.add_if(!d.key.empty(), "key", d.key);
    m.add_if(!d.group.empty(), "group", d.group);
    m.add_if(!d.lane.empty(), "lane", d.lane);
    m.add_if(!d.parent.is_nil(), "parent", d.parent);
    m.add_if(!d.predecessor.is_nil(), "predecessor", d.predecessor);
    m.add_if(d.due_at.has_value(), "due_at", d.due_at);
    m.add_if(d.expires_at.has_value(), "expires_at", d.expires_at);
    m.add_if(d.attempts_max != 0, "attempts_max", d.attempts_max);
    m.add_if(!d.trail.empty(), "trail", d.trail);
    m.add_if(!d.headers.empty(), "headers", d.headers);
    m.add_if(!d.progress.empty(), "progress", d.progress);
    m.add_if(d.result.has_value(), "result", d.result);
    return "draft" + m.str();
}

[[nodiscard]] inline std::string as_code(const query& q) {
    using path = query::path;
    members m;
    const auto* const by = q.by == path::group    ? "group"
                           : q.by == path::parent ? "parent"
                           : q.by == path::key    ? "key"
                           : q.by == path::dead   ? "dead"
                           : q.by == path::live   ? "live"
                                                  : "all";
    m.add_code("by", std::string("query::path::") + by);
    m.add_if(!q.queue.empty(), "queue", q.queue);
    m.add_if(!q.key.empty(), "key", q.key);
    m.add_if(!q.group.empty(), "group", q.group);
    m.add_if(!q.parent.is_nil(), "parent", q.parent);
    m.add_if(q.state.has_value(), "state", q.state);
    m.add_if(!q.topic.empty(), "topic", q.topic);
    m.add_if(q.after != 0, "after", q.after);
    m.add_if(q.limit != query{}.limit, "limit", q.limit);
    m.add_if(q.payloads, "payloads", true);
    return "query" + m.str();
}

[[nodiscard]] inline std::string as_code(const claim_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("limit", r.limit);
    m.add("now", r.now);
    m.add("lease", r.lease);
    m.add_if(!r.worker.empty(), "worker", r.worker);
    m.add_if(!r.only.is_nil(), "only", r.only);
    return "claim_request" + m.str();
}

[[nodiscard]] inline std::string as_code(const purge_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("before", r.before);
    m.add("limit", r.limit);
    m.add_if(r.state.has_value(), "state", r.state);
    return "purge_request" + m.str();
}

struct outcome_as_code {
    std::string operator()(const succeed& o) const { return "succeed{" + members::value_of(o.result) + "}"; }
    std::string operator()(const retry& o) const {
        return "retry{" + members::value_of(o.error) + ", " + show(o.at) + "}";
    }
    std::string operator()(const bury& o) const {
        return "bury{" + members::value_of(o.error) + ", " + members::value_of(o.result) + "}";
    }
    std::string operator()(const release& o) const { return "release{" + members::value_of(o.at) + "}"; }
    std::string operator()(const advance& o) const {
        return "advance{" + members::value_of(o.progress) + ", " + members::value_of(o.at) + "}";
    }
};

[[nodiscard]] inline std::string as_code(const ticket& t) {
    return "ticket{" + members::value_of(t.id) + ", " + std::to_string(t.epoch) + "}";
}
[[nodiscard]] inline std::string as_code(const settle& s) {
    return "vouch::settle{" + as_code(s.ticket) + ", " + visit_outcome(outcome_as_code{}, s.outcome) + "}";
}

template <class T>
[[nodiscard]] std::string as_code(std::string_view type, std::span<const T> items) {
    constexpr std::size_t many = 20;
    if (items.size() > many) {
        const auto alike = numbered(items.size(), items.front());
        if (std::equal(items.begin(), items.end(), alike.begin())) {
            return "numbered(" + std::to_string(items.size()) + ", " + as_code(items.front()) + ")";
        }
        if (std::equal(items.begin() + 1, items.end(), items.begin())) {
            return "std::vector(" + std::to_string(items.size()) + ", " + as_code(items.front()) + ")";
        }
    }
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : ", ") + as_code(item);
    }
    return "std::vector<" + std::string(type) + ">{" + out + "}";
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
