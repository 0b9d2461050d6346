// SPDX-License-Identifier: MIT
// Validation of every argument of the contract, in one place. A store calls it before it writes anything.
//
// An argument that breaks a rule throws `invalid_argument`; a draft that needs a capability the store lacks throws
// `unsupported`. The message names the field, the limit and the size given, never the content.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/detail/argument_checks.hpp>
#include <vouch/contract/detail/field_checks.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// One draft. `index` is its place in the batch, for the message.
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

/// For `enqueue`.
inline void validate(std::span<const draft> drafts, const capabilities& can) {
    detail::check_size({"enqueue", "drafts"}, drafts.size(), can.limits.batch_max, "items");
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        validate(drafts[i], can, i);
    }
}

/// For `claim`.
inline void validate(const claim_request& r, const limits& limit) {
    detail::check_required_name({"claim", "queue"}, r.queue, limit.name_max);
    detail::check_name({"claim", "worker"}, r.worker, limit.name_max);
    detail::check_size({"claim", "limit"}, r.limit, limit.batch_max, "items");
    detail::check_lease({"claim", "lease"}, r.lease, limit);
    detail::check_room({"claim", "now"}, r.now, r.lease);
}

/// For `settle`.
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

/// For `purge`.
inline void validate(const purge_request& r, const limits& limit) {
    detail::check_required_name({"purge", "queue"}, r.queue, limit.name_max);
    detail::check_size({"purge", "limit"}, r.limit, limit.batch_max, "items");
    if (r.state && !is_terminal(*r.state)) {
        detail::refuse({"purge", "state"},
                       "is " + std::string(name_of(*r.state)) + ", only succeeded and dead entries can be purged");
    }
}

/// For `list`.
inline void validate(const query& q, const limits& limit) {
    constexpr std::string_view foreign = "must be empty: it is not part of this query's path";
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
