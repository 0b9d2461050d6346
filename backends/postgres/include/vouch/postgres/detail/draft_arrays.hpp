// SPDX-License-Identifier: MIT
// Drafts as the parameters of the statement `insert`: one array for each column. What most drafts have in common, such as
// the queue, is NULL in the array and sent once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/postgres/detail/entry_row.hpp>
#include <vouch/postgres/detail/parameters.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// What a successor takes from its predecessor.
struct inherited {
    std::string key{};
    std::string group{};
    std::string lane{};
    std::uint64_t replaces = 0; ///< the predecessor's sequence; 0: none
    std::uint32_t generation = 1;
};

class draft_arrays {
  public:
    /// Whether a draft is a member of a group.
    [[nodiscard]] bool has_group() const noexcept { return has_group_; }

    void add(const draft& d, const inherited& from) {
        if (is_empty_) {
            is_empty_ = false;
            queue_ = d.queue;
            topic_ = d.topic;
        }
        has_group_ = has_group_ || !from.group.empty();
        std::size_t next = 0;
        const auto put = [&](const auto& value) { columns_[next++].add(value); };
        put(d.id);
        put(if_set{d.queue != queue_, d.queue});
        put(if_set{d.topic != topic_, d.topic});
        put(or_null{from.key});
        put(or_null{from.group});
        put(or_null{from.lane});
        put(or_null{d.parent});
        put(d.due_at);
        put(d.expires_at);
        put(or_null{d.attempts_max});
        const auto trail = encode_trail(d.trail);
        put(or_null{trail});
        const auto headers = encode_headers(d.headers);
        put(or_null{headers});
        put(or_null{d.progress});
        put(d.result);
        put(d.payload);
        put(or_null{d.predecessor});
        put(or_null{from.replaces});
        put(from.generation == 1 ? std::nullopt : std::optional(from.generation));
    }

    [[nodiscard]] parameters for_statement(time_point now) const {
        parameters out(now);
        std::size_t bytes = 0;
        for (const auto& column : columns_) {
            bytes += column.bytes();
        }
        out.reserve(bytes + queue_.size() + topic_.size());
        for (const auto& column : columns_) {
            out.add(column);
        }
        out.add(queue_);
        out.add(topic_);
        return out;
    }

  private:
    using t = pg_type;
    bool is_empty_ = true;
    bool has_group_ = false;
    std::string queue_{}; ///< of the first draft
    std::string topic_{};
    std::array<array, 18> columns_{
        array(t::uuid),  array(t::text),   array(t::text),   array(t::text),   array(t::text),   array(t::text),
        array(t::uuid),  array(t::bigint), array(t::bigint), array(t::bigint), array(t::bytea),  array(t::bytea),
        array(t::bytea), array(t::bytea),  array(t::bytea),  array(t::uuid),   array(t::bigint), array(t::bigint)};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
