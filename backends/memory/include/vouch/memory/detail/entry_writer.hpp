// SPDX-License-Identifier: MIT
// The operations of `writer` on the ledger, as the contract defines them. Requires valid arguments and the store's
// lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/memory/detail/layout.hpp>
#include <vouch/memory/detail/ledger.hpp>
#include <vouch/memory/detail/purger.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class entry_writer {
  public:
    using row = typename layout<Seam>::row;

    explicit entry_writer(ledger<Seam>& in) noexcept : ledger_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return answers(drafts, [&](const draft& d) { return enqueue(d, now); });
    }

    [[nodiscard]] receipt enqueue(const draft& d, time_point now) {
        if (const auto* const stored = find(d.id)) {
            return {receipt::kind::duplicate, stored->entry.id};
        }
        row* predecessor = nullptr;
        if (!d.predecessor.is_nil()) {
            predecessor = find(d.predecessor);
            if (predecessor == nullptr || predecessor->entry.state != state::dead ||
                predecessor->entry.queue != d.queue) {
                return {receipt::kind::refused, {}};
            }
            if (predecessor->successor != nullptr) {
                return {receipt::kind::duplicate, predecessor->successor->entry.id};
            }
        } else if (!d.key.empty()) {
            if (const auto* const stored = ledger_.find(ledger_.queue(d.queue), d.key, view::own)) {
                return {receipt::kind::duplicate, stored->entry.id};
            }
        }
        const auto make = [&] {
            auto fresh = born(d, now);
            if (predecessor != nullptr) {
                fresh.key = predecessor->entry.key;
                fresh.group = predecessor->entry.group;
                fresh.lane = predecessor->entry.lane;
                fresh.generation = predecessor->entry.generation + 1;
            }
            return fresh;
        };
        ledger_.insert(d.queue, make, predecessor);
        return {receipt::kind::inserted, d.id};
    }

    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<row*> taken;
        const auto take = [&](row& r) {
            taken.push_back(&r);
            std::ignore = ledger_.change(r, [&](life& l) {
                apply(l, request);
                return verdict::applied;
            });
        };
        auto* const queue = ledger_.find_queue(request.queue);
        if (queue == nullptr) {
            return {};
        }
        if (request.only.is_nil()) {
            taken.reserve(std::min(request.limit, queue->counts.live()));
            while (taken.size() < request.limit) {
                auto* const r = queue->first_open(request.now);
                if (r == nullptr) {
                    break;
                }
                take(*r);
            }
        } else if (auto* const r = find(request.only);
                   r != nullptr && request.limit > 0 && r->queue == queue && is_open(*r, request.now)) {
            take(*r);
        }
        return copies_by_due(std::move(taken));
    }

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return answers(settles, [&](const vouch::settle& s) { return settle(s, now); });
    }

    [[nodiscard]] settlement settle(const vouch::settle& s, time_point now) {
        auto* const r = find(s.ticket.id);
        if (r == nullptr) {
            return {verdict::unknown, false};
        }
        const auto answer = ledger_.change(*r, [&](life& l) { return apply(l, s, now); });
        if (answer != verdict::applied) {
            return {answer, false};
        }
        wake_parent(*r, now);
        const bool completed = r->entry.state == state::succeeded && r->group != nullptr && r->group->unfinished == 0;
        return {answer, completed};
    }

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return answers(tickets, [&](const ticket& t) {
            return change(t.id, [&](life& l) { return apply(l, vouch::extend{t, lease}, now); });
        });
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return change(wanted, [&](life& l) { return apply(l, vouch::nudge{}, now); });
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        const auto answer = change(wanted, [&](life& l) { return apply(l, vouch::cancel{error}, now); });
        if (answer == verdict::applied) {
            wake_parent(*find(wanted), now);
        }
        return answer;
    }

    [[nodiscard]] std::size_t purge(const purge_request& request) { return purger(ledger_, request).purge(); }

  private:
    /// `answer(item)` for each item, in order.
    template <class Item, class Answer>
    [[nodiscard]] static auto answers(std::span<const Item> items, const Answer& answer) {
        std::vector<decltype(answer(items.front()))> out;
        out.reserve(items.size());
        for (const auto& item : items) {
            out.push_back(answer(item));
        }
        return out;
    }

    [[nodiscard]] row* find(const id& wanted) const { return ledger_.find(wanted, view::own); }

    /// Whether a claim may take the row: it has a gate, and the gate is not after `now`.
    [[nodiscard]] static bool is_open(const row& r, time_point now) noexcept {
        const bool is_blocked = r.lane != nullptr && r.lane->head != &r;
        return is_live(r.entry.state) && !is_blocked && *gate_of(r.entry) <= now;
    }

    /// Sorts pointers, because entries are large, and then copies.
    [[nodiscard]] static std::vector<entry> copies_by_due(std::vector<row*> rows) {
        std::sort(rows.begin(), rows.end(), [](const row* a, const row* b) {
            return std::tie(a->entry.due_at, a->entry.sequence) < std::tie(b->entry.due_at, b->entry.sequence);
        });
        std::vector<entry> copies;
        copies.reserve(rows.size());
        for (const auto* const r : rows) {
            copies.push_back(r->entry);
        }
        return copies;
    }

    template <class Verb>
    verdict change(const id& wanted, Verb&& verb) {
        auto* const r = find(wanted);
        return r == nullptr ? verdict::unknown : ledger_.change(*r, verb);
    }

    void wake_parent(const row& ended, time_point now) {
        if (is_terminal(ended.entry.state) && !ended.entry.parent.is_nil()) {
            std::ignore = nudge(ended.entry.parent, now); // absent or terminal: no effect
        }
    }

    ledger<Seam>& ledger_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
