// SPDX-License-Identifier: MIT
// Validation at the boundary, in one place, called by every store before it writes anything. What is wrong is refused
// with `invalid_argument` (or `unsupported`), naming the field, the limit and the size given; never the content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

/// Says where in the arguments a field stands, but only once something is wrong with it: the way past is free.
struct field {
    std::string_view of;   // "draft", "settle", "claim" ...
    std::string_view name; // "queue", "error" ...
    std::optional<std::size_t> index{};

    [[nodiscard]] std::string str() const {
        std::string out(of);
        if (index) {
            out += ' ';
            out += std::to_string(*index);
        }
        out += ": ";
        out += name;
        return out;
    }
};

[[noreturn]] inline void refuse(const field& f, std::string_view what) {
    throw error(error_kind::invalid_argument, f.str() + ' ' + std::string(what));
}

[[noreturn]] inline void refuse_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    const auto sizes = "has " + std::to_string(given) + ' ' + std::string(unit);
    refuse(f, sizes + ", the limit is " + std::to_string(limit));
}

[[noreturn]] inline void refuse_control_character(const field& f, std::size_t at) {
    refuse(f, "has a control character at byte " + std::to_string(at));
}

// What a refusal says is put together apart from the checks: every entry passes a dozen of them, so they are inlined.

inline void check_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    if (given > limit) {
        refuse_size(f, given, limit, unit);
    }
}

inline void check_name(const field& f, std::string_view name, std::size_t limit) {
    check_size(f, name.size(), limit, "bytes");
    for (std::size_t i = 0; i < name.size(); ++i) {
        const auto c = static_cast<unsigned char>(name[i]);
        if (c < 0x20 || c == 0x7f) {
            refuse_control_character(f, i);
        }
    }
}

inline void check_required_name(const field& f, std::string_view name, std::size_t limit) {
    if (name.empty()) {
        refuse(f, "is empty");
    }
    check_name(f, name, limit);
}

inline void check_empty(const field& f, bool empty, std::string_view because) {
    if (!empty) {
        refuse(f, because);
    }
}

inline void check_lease(const field& f, duration lease, const limits& limit) {
    if (lease < limit.lease_min || lease > limit.lease_max) {
        refuse(f, "is " + std::to_string(lease.count()) + " us, it must be from " +
                      std::to_string(limit.lease_min.count()) + " to " + std::to_string(limit.lease_max.count()) +
                      " us");
    }
}

/// So that `now + lease` is a time: a lease must end after it began.
inline void check_room(const field& f, time_point now, duration lease) {
    if (now > time_point::max() - lease) {
        refuse(f, "is too late, the lease would end after the last representable time");
    }
}

inline void check_headers(const draft& d, std::size_t index, const limits& limit) {
    check_size({"draft", "headers", index}, d.headers.size(), limit.headers_max, "headers");
    for (const auto& [name, value] : d.headers) {
        check_required_name({"draft", "header name", index}, name, limit.name_max);
        check_size({"draft", "header value", index}, value.size(), limit.header_value_max, "bytes");
    }
}

inline void check_combination(const draft& d, std::size_t index) {
    if (!d.predecessor.is_nil()) {
        constexpr std::string_view because = "is taken over from the predecessor and must be empty";
        check_empty({"draft", "key", index}, d.key.empty(), because);
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
    }
    if (d.result) {
        constexpr std::string_view because = "cannot be set on a draft that carries a result";
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
        check_empty({"draft", "parent", index}, d.parent.is_nil(), because);
        check_empty({"draft", "predecessor", index}, d.predecessor.is_nil(), because);
    }
}

inline void check_capable(const draft& d, std::size_t index, const capabilities& can) {
    const auto unsupported = [&](std::string_view name) {
        throw error(error_kind::unsupported, field{"draft", name, index}.str() + " is not supported by this store");
    };
    if (!d.group.empty() && !can.groups) {
        unsupported("group");
    }
    if (!d.lane.empty() && !can.lanes) {
        unsupported("lane");
    }
}

} // namespace detail

inline void validate(const draft& d, const capabilities& can, std::size_t index = 0) {
    const auto& limit = can.limits;
    if (d.id.is_nil()) {
        detail::refuse({"draft", "id", index}, "is nil");
    }
    detail::check_required_name({"draft", "queue", index}, d.queue, limit.name_max);
    detail::check_required_name({"draft", "topic", index}, d.topic, limit.name_max);
    detail::check_name({"draft", "key", index}, d.key, limit.name_max);
    detail::check_name({"draft", "group", index}, d.group, limit.name_max);
    detail::check_name({"draft", "lane", index}, d.lane, limit.name_max);
    detail::check_size({"draft", "payload", index}, d.payload.size(), limit.payload_max, "bytes");
    detail::check_size({"draft", "progress", index}, d.progress.size(), limit.progress_max, "bytes");
    detail::check_size({"draft", "result", index}, d.result ? d.result->size() : 0, limit.result_max, "bytes");
    detail::check_size({"draft", "trail", index}, d.trail.size(), limit.trail_max, "ids");
    detail::check_headers(d, index, limit);
    detail::check_combination(d, index);
    detail::check_capable(d, index, can);
}

inline void validate(std::span<const draft> drafts, const capabilities& can) {
    detail::check_size({"enqueue", "drafts"}, drafts.size(), can.limits.batch_max, "items");
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        validate(drafts[i], can, i);
    }
}

inline void validate(const claim_request& r, const limits& limit) {
    detail::check_required_name({"claim", "queue"}, r.queue, limit.name_max);
    detail::check_name({"claim", "worker"}, r.worker, limit.name_max);
    detail::check_size({"claim", "limit"}, r.limit, limit.batch_max, "items");
    detail::check_lease({"claim", "lease"}, r.lease, limit);
    detail::check_room({"claim", "now"}, r.now, r.lease);
}

namespace detail {

struct check_outcome {
    std::size_t index;
    const limits& limit;

    void check_error(std::string_view error) const { check_name({"settle", "error", index}, error, limit.error_max); }
    void operator()(const succeed& o) const {
        check_size({"settle", "result", index}, o.result.size(), limit.result_max, "bytes");
    }
    void operator()(const retry& o) const { check_error(o.error); }
    void operator()(const bury& o) const {
        check_error(o.error);
        check_size({"settle", "result", index}, o.result ? o.result->size() : 0, limit.result_max, "bytes");
    }
    void operator()(const release&) const {}
    void operator()(const advance& o) const {
        check_size({"settle", "progress", index}, o.progress.size(), limit.progress_max, "bytes");
    }
};

} // namespace detail

inline void validate(std::span<const settle> settles, const limits& limit) {
    detail::check_size({"settle", "settles"}, settles.size(), limit.batch_max, "items");
    for (std::size_t i = 0; i < settles.size(); ++i) {
        visit_outcome(detail::check_outcome{i, limit}, settles[i].outcome);
    }
}

/// For `extend`.
inline void validate(std::span<const ticket> tickets, time_point now, duration lease, const limits& limit) {
    detail::check_size({"extend", "tickets"}, tickets.size(), limit.batch_max, "items");
    detail::check_lease({"extend", "lease"}, lease, limit);
    detail::check_room({"extend", "now"}, now, lease);
}

/// For `cancel`.
inline void validate_error_code(std::string_view error, const limits& limit) {
    detail::check_name({"cancel", "error"}, error, limit.error_max);
}

/// For `counts` and `next_due`.
inline void validate_queue(std::string_view queue, const limits& limit) {
    detail::check_required_name({"read", "queue"}, queue, limit.name_max);
}

inline void validate(const purge_request& r, const limits& limit) {
    detail::check_required_name({"purge", "queue"}, r.queue, limit.name_max);
    detail::check_size({"purge", "limit"}, r.limit, limit.batch_max, "items");
    if (r.state && !is_terminal(*r.state)) {
        detail::refuse({"purge", "state"},
                       "is " + std::string(name_of(*r.state)) + ", only terminal entries are purged");
    }
}

inline void validate(const query& q, const limits& limit) {
    constexpr std::string_view foreign = "is not part of this path and must be empty";
    const auto part = [&](std::string_view name, const std::string& value, bool wanted) {
        if (wanted) {
            detail::check_required_name({"query", name}, value, limit.name_max);
        } else {
            detail::check_empty({"query", name}, value.empty(), foreign);
        }
    };
    using path = query::path;
    part("group", q.group, q.by == path::group);
    part("key", q.key, q.by == path::key);
    part("queue", q.queue, q.by != path::group && q.by != path::parent);
    if (q.by == path::parent ? q.parent.is_nil() : !q.parent.is_nil()) {
        detail::refuse({"query", "parent"}, q.by == path::parent ? "is nil" : foreign);
    }
    detail::check_name({"query", "topic"}, q.topic, limit.name_max);
    detail::check_size({"query", "limit"}, q.limit, limit.batch_max, "items");
}

} // namespace v0
} // namespace vouch
