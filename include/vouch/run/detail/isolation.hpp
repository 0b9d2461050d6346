// SPDX-License-Identifier: MIT
// Entries that may kill the process that handles them are handled alone.
//
// A claim that ends with its lease, without an outcome, usually belonged to a process that has died. Any of the entries
// it held may be the cause. So an entry with a lapse (`entry::lapses`) is handled while its process holds no other
// claim: if the process dies again, no other entry is affected. A claim finds such entries like any others, and hands
// them back in the same transaction if they cannot be handled alone at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

[[nodiscard]] inline bool has_lapsed(const entry& e) noexcept { return e.lapses > 0; }

/// How much to claim, and what to do with entries that have a lapse.
struct claim_plan {
    enum class lapsed : std::uint8_t {
        alone,       ///< the caller holds no other claim: keep the first such entry, and nothing with it
        handed_back, ///< the caller holds other claims, or may get some
    };
    std::size_t limit = 0;
    claim_plan::lapsed rule = lapsed::alone;
    std::optional<time_point> until{}; ///< handed back: not due before this time
};

struct claims {
    std::vector<entry> entries{};
    bool hands_back = false; ///< entries with a lapse were found and handed back
};

/// Splits off the entries that are not to be kept. If those with a lapse are handed back, all others are kept. If each of
/// them runs alone, the entries before the first one are kept, or that one if there are none. The order is kept, so no entry
/// with a lapse waits for ever behind others.
[[nodiscard]] inline std::vector<entry> split_lapsed(std::vector<entry>& claimed, claim_plan::lapsed rule) {
    const auto first = std::find_if(claimed.begin(), claimed.end(), has_lapsed);
    if (first == claimed.end()) {
        return {};
    }
    const auto before = static_cast<std::size_t>(first - claimed.begin());
    const auto kept_alone = before == 0 ? 1 : before;
    std::vector<entry> kept;
    std::vector<entry> rest;
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        const bool is_kept = rule == claim_plan::lapsed::handed_back ? !has_lapsed(claimed[i]) : i < kept_alone;
        (is_kept ? kept : rest).push_back(std::move(claimed[i]));
    }
    claimed = std::move(kept);
    return rest;
}

/// Claims, and in the same transaction hands back the entries that must not be held together with the rest.
template <class Writer>
[[nodiscard]] claims claim_apart(Writer& tx, const claim_request& request, const claim_plan& plan) {
    claims out{.entries = tx.claim(request)};
    const auto rest = split_lapsed(out.entries, plan.rule);
    if (rest.empty()) {
        return out;
    }
    std::vector<settle> releases(rest.size());
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const auto& e = rest[i];
        out.hands_back = out.hands_back || has_lapsed(e);
        releases[i].ticket = ticket_of(e);
        releases[i].outcome = release{.at = has_lapsed(e) ? plan.until : std::nullopt};
    }
    for (const auto& s : tx.settle(releases, request.now)) {
        if (s.verdict != verdict::applied) {
            throw error(error_kind::corrupt, "runner: the store refuses a ticket that it has just issued");
        }
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch
