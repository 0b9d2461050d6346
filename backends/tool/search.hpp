// SPDX-License-Identifier: MIT
// Finds entries by the filters of the command line, oldest first, page by page. The contract's query does what it can:
// queue, key, group, parent, state, topic. The rest is compared here. A search reads a bounded number of entries, and says
// if it stopped for that reason.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "any_store.hpp"
#include "arguments.hpp"
#include "database.hpp"
#include "entry_id.hpp"
#include "output.hpp"
#include "saga_text.hpp"

namespace tool {

/// The queue on the command line, or else all queues.
[[nodiscard]] inline std::vector<std::string> queues_of(const database& in, const arguments& with) {
    return with.queue.empty() ? in.queues() : std::vector{with.queue};
}

/// What the filters of a command line select.
struct filter {
    arguments with{};
    std::vector<std::string> queues{};
    vouch::id parent{};
    vouch::time_point now{};

    filter(database& in, const arguments& from)
        : with(from), queues(queues_of(in, from)),
          parent(from.parent.empty() ? vouch::id{} : resolved_id(in, from.parent)), now(vouch::system_now()) {}

    /// The queries that together find every entry that may match.
    [[nodiscard]] std::vector<vouch::query> queries() const {
        using vouch::query;
        std::vector<query> out;
        if (!with.group.empty()) {
            out.push_back(query::members(with.group));
        } else if (!parent.is_nil()) {
            out.push_back(query::children(parent));
        } else {
            for (const auto& queue : queues) {
                const bool is_dead = with.only_dead || (with.state && with.state->state == vouch::state::dead);
                const bool is_live = with.only_live || (with.state && vouch::is_live(with.state->state));
                out.push_back(!with.key.empty() ? query::keyed(queue, with.key)
                              : is_dead         ? query::dead(queue)
                              : is_live         ? query::live(queue)
                                                : query::all(queue));
            }
        }
        for (auto& q : out) {
            q.state = with.state ? std::optional(with.state->state) : std::nullopt;
            q.topic = with.topic;
            q.after = with.after;
        }
        return out;
    }

    /// Whether the queries find nothing that does not match.
    [[nodiscard]] bool is_exact() const {
        return with.lane.empty() && with.error.empty() && with.worker.empty() && !with.older_than && !with.newer_than &&
               !(with.state && with.state->is_compensated);
    }

    [[nodiscard]] bool matches(const vouch::entry& e) const {
        const auto is = [](const std::string& wanted, const std::string& value) {
            return wanted.empty() || wanted == value;
        };
        const auto age = -until(e.updated_at, now);
        return is(with.queue, e.queue) && is(with.key, e.key) && is(with.lane, e.lane) && is(with.group, e.group) &&
               is(with.error, e.last_error) && is(with.worker, e.worker) && (parent.is_nil() || e.parent == parent) &&
               (!with.only_live || vouch::is_live(e.state)) && (!with.only_dead || e.state == vouch::state::dead) &&
               (!with.older_than || age > *with.older_than) && (!with.newer_than || age <= *with.newer_than) &&
               (!with.state || !with.state->is_compensated || shown_state(e) == "compensated");
    }
};

class search {
  public:
    struct options {
        bool payloads = false;
        std::uint64_t up_to = UINT64_MAX;    ///< the last sequence to read
        std::size_t expected = SIZE_MAX / 2; ///< how many entries the caller will take
    };

    search(const stored_entries& in, const filter& by) : search(in, by, options{}) {}
    search(const stored_entries& in, const filter& by, options how) : in_(in), by_(by), how_(how) {
        const auto queries = by.queries();
        for (auto q : queries) {
            q.limit = page_size(q, queries.size());
            q.payloads = how.payloads;
            cursors_.push_back({.next_page = std::move(q)});
        }
    }

    /// The next entry that matches; nothing if there is none, or if the search has read all that it may.
    [[nodiscard]] std::optional<vouch::entry> next() {
        for (auto e = next_read(); e; e = next_read()) {
            if (by_.matches(*e)) {
                return e;
            }
        }
        return std::nullopt;
    }

    /// Whether the search stopped because it had read `--scan` entries.
    [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
    [[nodiscard]] std::uint64_t entries_read() const noexcept { return read_; }
    /// The sequence of the last entry that was read; `--after` with it continues.
    [[nodiscard]] std::uint64_t last_sequence() const noexcept { return last_; }

    /// Says so if the search did not read everything.
    void remark() const {
        if (is_cut_) {
            say("stopped after reading " + std::to_string(read_) + " entries; --after " + std::to_string(last_) +
                " continues, and --scan allows more");
        }
    }

  private:
    struct cursor {
        vouch::query next_page{};
        std::deque<vouch::entry> page{};
        bool has_ended = false;
    };

    /// A page of live entries may cost a store as much as all live entries of the queue, so these pages are large.
    [[nodiscard]] std::size_t page_size(const vouch::query& q, std::size_t queries) const {
        const std::size_t together = q.by == vouch::query::path::live ? 10'000 : 500; // in all queues
        const auto fair = std::clamp<std::size_t>(together / queries, 50, how_.payloads ? 50 : together);
        return by_.is_exact() ? std::min(fair, how_.expected + 1) : fair;
    }

    void fill(cursor& c) const {
        auto found = in_.list(c.next_page);
        c.has_ended = found.size() < c.next_page.limit;
        if (!found.empty()) {
            c.next_page.after = found.back().sequence;
        }
        c.page.assign(std::move_iterator(found.begin()), std::move_iterator(found.end()));
    }

    /// Sequences are unique in the store, so the lowest of all cursors is the next.
    [[nodiscard]] std::optional<vouch::entry> next_read() {
        cursor* first = nullptr;
        for (auto& c : cursors_) {
            if (c.page.empty() && !c.has_ended) {
                fill(c);
            }
            if (!c.page.empty() && (first == nullptr || c.page.front().sequence < first->page.front().sequence)) {
                first = &c;
            }
        }
        if (first == nullptr || first->page.front().sequence > how_.up_to) {
            return std::nullopt;
        }
        if (read_ == by_.with.scan) {
            is_cut_ = true;
            return std::nullopt;
        }
        auto out = std::move(first->page.front());
        first->page.pop_front();
        ++read_;
        last_ = out.sequence;
        return out;
    }

    const stored_entries& in_;
    const filter& by_;
    options how_;
    std::vector<cursor> cursors_{};
    std::uint64_t read_ = 0;
    std::uint64_t last_ = 0;
    bool is_cut_ = false;
};

} // namespace tool
