// SPDX-License-Identifier: MIT
// A query as a pure function, for stores that look at entries one by one.
#pragma once

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {

/// Whether an entry is on the query's path, passes its filters and comes after `after`. The store itself applies
/// `limit`, the order and `payloads`. Requires that `validate` accepts the query.
[[nodiscard]] inline bool matches(const entry& e, const query& q) noexcept {
    return (q.queue.empty() || q.queue == e.queue) && (q.key.empty() || q.key == e.key) &&
           (q.group.empty() || q.group == e.group) && (q.parent.is_nil() || q.parent == e.parent) &&
           (q.by != query::path::dead || e.state == state::dead) && (q.by != query::path::live || is_live(e.state)) &&
           (!q.state || *q.state == e.state) && (q.topic.empty() || q.topic == e.topic) && q.after < e.sequence;
}

} // namespace v0
} // namespace vouch
