// SPDX-License-Identifier: MIT
// What the store says about the saga of a simulated run: its entry, those it was resumed from, and its commands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/memory.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class stored_saga {
  public:
    explicit stored_saga(const memory::store& in) noexcept : store_(in) {}

    /// Adds the saga's first entry, or the successor that a resume has inserted.
    void add(const id& entry) { entries_.push_back(entry); }
    [[nodiscard]] const id& current() const { return entries_.back(); }
    [[nodiscard]] std::optional<entry> find() const { return store_.find(current()); }

    /// The stored state of a step; nothing if the step has not begun or the saga is purged.
    [[nodiscard]] std::optional<step_state> state_of(std::size_t i) const {
        const auto found = find();
        const auto p = found ? decode_progress(found->progress) : std::nullopt;
        return p && i < p->steps.size() ? std::optional(p->steps[i].state) : std::nullopt;
    }

    /// Whether the saga's progress, or the step's command, says that the forward action succeeded.
    [[nodiscard]] bool is_known_done(std::size_t i) const {
        if (state_of(i) == step_state::done) {
            return true;
        }
        const auto sent = commands();
        return std::any_of(sent.begin(), sent.end(), [&](const entry& c) {
            const auto command = command_of(c);
            return command && command->number == i + 1 && !command->is_compensation && c.state == state::succeeded;
        });
    }

    /// The commands of the saga's entry, and of those it was resumed from.
    [[nodiscard]] std::vector<entry> commands() const {
        std::vector<entry> out;
        for (const auto& e : entries_) {
            for (auto& c : store_.list(query::children(e))) {
                out.push_back(std::move(c));
            }
        }
        return out;
    }

  private:
    const memory::store& store_;
    std::vector<id> entries_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
