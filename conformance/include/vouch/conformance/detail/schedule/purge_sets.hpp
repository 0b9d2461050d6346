// SPDX-License-Identifier: MIT
// The sets of entries that a purge of a given answer may have removed, when it may leave some of its candidates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/contract/request.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class purge_sets {
  public:
    purge_sets(const model& on, const purge_request& request, std::size_t purged)
        : model_(on), request_(request), purged_(purged) {}

    /// `may_leave(entry)` says whether the purge may leave a candidate, and with it its whole family.
    template <class MayLeave>
    [[nodiscard]] std::set<std::set<id>> all(const MayLeave& may_leave) {
        for (auto& members : families()) {
            const bool optional =
                std::any_of(members.begin(), members.end(), [&](const entry* e) { return may_leave(*e); });
            families_.emplace_back(std::move(members), optional);
        }
        choose(0, {});
        return std::move(found_);
    }

  private:
    using family = std::vector<const entry*>; ///< eldest first

    [[nodiscard]] const model::record* replaced_by(const model::record& of) const {
        for (const auto& r : model_.records) {
            if (r.replaces == of.entry.sequence) {
                return &r;
            }
        }
        return nullptr;
    }

    [[nodiscard]] bool is_needed(const entry& e) const {
        return std::any_of(model_.records.begin(), model_.records.end(), [&](const auto& r) {
            return model::alive(r.entry) && ((!e.group.empty() && r.entry.group == e.group) || r.entry.parent == e.id);
        });
    }

    /// The families that may be removed, in the order of removal.
    [[nodiscard]] std::vector<family> families() const {
        std::vector<family> out;
        for (const auto& r : model_.records) {
            const auto& tip = r.entry;
            if (tip.queue != request_.queue || model::alive(tip) || !(tip.updated_at < request_.before) ||
                (request_.state && tip.state != *request_.state) || replaced_by(r) != nullptr) {
                continue;
            }
            family members;
            for (const auto* one = &r; one != nullptr; one = predecessor(*one)) {
                members.insert(members.begin(), &one->entry);
            }
            if (std::none_of(members.begin(), members.end(), [&](const entry* e) { return is_needed(*e); })) {
                out.push_back(std::move(members));
            }
        }
        std::sort(out.begin(), out.end(), [](const family& a, const family& b) {
            return std::tie(a.back()->updated_at, a.back()->sequence) <
                   std::tie(b.back()->updated_at, b.back()->sequence);
        });
        return out;
    }

    [[nodiscard]] const model::record* predecessor(const model::record& of) const {
        for (const auto& r : model_.records) {
            if (of.replaces != 0 && r.entry.sequence == of.replaces) {
                return &r;
            }
        }
        return nullptr;
    }

    void choose(std::size_t i, std::set<id> gone) {
        if (i == families_.size() || gone.size() == request_.limit) {
            if (gone.size() == purged_) {
                found_.insert(std::move(gone));
            }
            return;
        }
        if (families_[i].second) {
            choose(i + 1, gone);
        }
        for (const auto* const e : families_[i].first) {
            if (gone.size() < request_.limit) {
                gone.insert(e->id);
            }
        }
        choose(i + 1, std::move(gone));
    }

    const model& model_;
    const purge_request& request_;
    std::size_t purged_;
    std::vector<std::pair<family, bool>> families_{}; ///< and whether it may be left
    std::set<std::set<id>> found_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
