// SPDX-License-Identifier: MIT
// Work whose fields follow from its number and from its claims, so that any single read shows whether an entry is as
// some commit left it. All times are the same, so that the order of commits does not change the final entries.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/values.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Long enough that no lease ends during a check.
inline constexpr duration numbered_lease = std::chrono::hours{1};

/// Entries with this bit have a neighbour, whose number differs in the lowest bit: both are enqueued by one transaction.
inline constexpr std::uint64_t paired_bit = std::uint64_t{1} << 32U;

[[nodiscard]] inline std::string payload_of(std::uint64_t number) {
    std::string out;
    for (auto left = 1 + number % 9; left > 0; --left) {
        out += "payload " + std::to_string(number) + ";";
    }
    return out;
}
[[nodiscard]] inline draft numbered_draft(std::uint64_t number, draft more = {}) {
    more.payload = payload_of(number);
    return draft_of(number, std::move(more));
}

/// The claim with this number. The lease and the worker's name contain it.
[[nodiscard]] inline claim_request numbered_claim(std::uint64_t number, std::size_t limit) {
    return request(at(0), {.limit = limit,
                           .lease = numbered_lease + duration{static_cast<std::int64_t>(number)},
                           .worker = "w" + std::to_string(number)});
}

/// What a settle writes: the entry's number and the claim's epoch.
[[nodiscard]] inline std::string mark_of(const ticket& t) {
    return std::to_string(t.id.low) + "/" + std::to_string(t.epoch);
}

/// Requires that the fields of an entry fit together.
inline void require_whole(const entry& e, bool has_payload) {
    const auto whole = [&](bool holds, const char* what) {
        if (!holds) {
            trial::fail("a read while other threads write shows an entry as some commit left it", show(e), what);
        }
    };
    const bool is_claimed = e.state == state::claimed;
    whole(!has_payload || e.payload == payload_of(e.id.low), "the payload of its draft");
    whole(e.queue == "q" && e.topic == "t", "the queue and topic of its draft");
    whole(e.lease_until.has_value() == is_claimed, "a lease if it is claimed, else none");
    whole(is_claimed || !e.woken, "a wake mark only if it is claimed");
    whole((e.epoch == 0) == e.worker.empty(), "a worker if it was ever claimed, else none");
    whole((e.epoch == 0) == !e.last_attempt_at.has_value(), "the time of its last claim if there is one");
    whole(!is_claimed || e.worker == "w" + std::to_string((*e.lease_until - at(0) - numbered_lease).count()),
          "the worker and the lease of one claim");
    whole(e.attempts <= e.epoch && e.failures <= e.epoch, "not more attempts and failures than claims");
    whole(e.state != state::succeeded || e.result == mark_of(ticket_of(e)), "the result of the settle that ended it");
    whole(e.state == state::succeeded || !e.result, "no result unless it has succeeded");
    whole(e.state != state::dead || !e.last_error.empty(), "an error code if it is dead");
    const auto prefix = std::to_string(e.id.low) + "/";
    whole(e.progress.empty() || e.progress.starts_with(prefix), "the progress of its own checkpoint");
}

/// What one thread was told about commits that have returned.
struct acknowledged {
    struct claimed {
        entry as{};               ///< as the claim returned it
        std::uint64_t number = 0; ///< of the claim
        std::optional<outcome> end{};
    };
    std::vector<draft> stored{};
    std::vector<std::pair<std::string, id>> duplicates{}; ///< a key, and the entry that has it
    std::vector<claimed> claims{};
    std::vector<id> cancelled{};
    std::vector<std::string> groups{}; ///< that a settle completed

    void add(const acknowledged& other) {
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(stored, other.stored);
        append(duplicates, other.duplicates);
        append(claims, other.claims);
        append(cancelled, other.cancelled);
        append(groups, other.groups);
    }

    /// The entries that these commits imply. The sequences are the store's own.
    [[nodiscard]] std::map<id, entry> implied() const {
        std::map<id, entry> out;
        for (const auto& d : stored) {
            trial::expect(out.emplace(d.id, born(d, at(0))).second, "two commits stored a draft with the same id");
        }
        auto in_order = claims;
        std::sort(in_order.begin(), in_order.end(),
                  [](const claimed& a, const claimed& b) { return ticket_of(a.as) < ticket_of(b.as); });
        for (const auto& c : in_order) {
            const auto found = out.find(c.as.id);
            trial::expect(found != out.end(), "a claim returned an entry that no commit has stored");
            auto& e = found->second;
            if (c.as.epoch != e.epoch + 1) {
                trial::fail(
                    "each commit that claims an entry raises its epoch by one, so that no ticket is given twice",
                    show(ticket_of(c.as)), show(ticket{e.id, e.epoch + 1}));
            }
            apply(e, numbered_claim(c.number, 1));
            if (c.end) {
                trial::equal(apply(e, vouch::settle{ticket_of(c.as), *c.end}, at(0)), verdict::applied,
                             "a settle of a held claim");
            }
        }
        for (const auto& one : cancelled) {
            const auto found = out.find(one);
            trial::expect(found != out.end(), "a cancel was applied to an entry that no commit has stored");
            trial::equal(apply(found->second, vouch::cancel{"cancelled"}, at(0)), verdict::applied,
                         "each entry ends once: a cancel that was applied, after the commits that claimed the entry");
        }
        return out;
    }
};

/// Requires that the store has the entries that the commits imply, and that all reads agree.
inline void require_implied(const any_store& store, const acknowledged& all) {
    const auto implied = all.implied();
    state_counts counts;
    auto found = store.list({.queue = "q", .limit = 10'000, .payloads = true});
    for (const auto& e : found) {
        const auto expected = implied.find(e.id);
        if (expected == implied.end()) {
            trial::fail("at the end only entries of acknowledged commits are stored", show(e), "no such entry");
        }
        auto wanted = expected->second;
        wanted.sequence = e.sequence;
        trial::equal(e, wanted, "an entry at the end, as the acknowledged commits imply it");
        trial::equal(store.find(e.id), std::optional(e), "the same entry, found by its id");
        counts[e.state] += 1;
    }
    trial::equal(found.size(), implied.size(),
                 "the number of entries at the end, as the acknowledged commits imply it");
    trial::equal(store.counts("q"), counts, "the counts at the end, compared with the list");
    for (const auto& [key, owner] : all.duplicates) {
        const auto has_key = implied.find(owner);
        trial::expect(has_key != implied.end() && has_key->second.key == key,
                      "a duplicate by key names the stored entry with that key");
    }
    std::map<std::string, id> owners;
    for (const auto& [which, e] : implied) {
        trial::expect(e.key.empty() || owners.emplace(e.key, which).second, "a key is stored once");
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
