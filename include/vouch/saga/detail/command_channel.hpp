// SPDX-License-Identifier: MIT
// The commands of a claimed saga to its remote participants: sends a command, finds it again, cancels it. A command
// that has ended never changes, so whatever is read of it then is final.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class command_channel {
  public:
    explicit command_channel(claim_state<Store>& claim) noexcept : claim_(claim) {}

    /// The command the saga waits for, if it is stored.
    [[nodiscard]] std::optional<vouch::entry> find() const {
        auto found = claim_.store.find(progress().command);
        // An entry with another parent was not sent by this saga, although it has the same id.
        return found && found->parent == progress().sender ? found : std::nullopt;
    }

    /// Cancels the command, unless it has ended or is claimed. Returns the command as it is afterwards, which is final
    /// unless it is live.
    [[nodiscard]] std::optional<vouch::entry> cancel(const std::string& code) {
        auto found = find();
        if (found && is_live(found->state)) {
            static_cast<void>(
                transact(claim_.store, [&](auto& tx) { return tx.cancel(progress().command, code, claim_.now); }));
            found = find();
        }
        return found;
    }

    /// Sends a command to the current step's participant. Returns false, and sends nothing, if the store would refuse
    /// the command.
    [[nodiscard]] bool send(const std::string& topic, std::string payload, const id& key) {
        const auto& to = claim_.step();
        auto headers = headers_of({.key = key,
                                   .saga = progress().origin,
                                   .step = to.name,
                                   .number = progress().at + 1,
                                   .is_compensation = progress().direction == saga_direction::back});
        const auto& saga = claim_.entry();
        try {
            validate(draft{.id = saga.id, .queue = to.queue, .topic = topic, .payload = payload, .headers = headers},
                     claim_.store.capabilities());
        } catch (const error&) {
            return false;
        }
        progress().command = claim_.delivery.emit({.queue = to.queue,
                                                   .topic = topic,
                                                   .payload = std::move(payload),
                                                   .group = group(),
                                                   .lane = lane(),
                                                   .parent = saga.id,
                                                   .attempts_max = claim_.policy().attempts_max,
                                                   .headers = std::move(headers)});
        progress().sender = saga.id;
        progress().deadline = later(claim_.now, to.timeout);
        return true;
    }

    void forget() {
        progress().command = {};
        progress().sender = {};
        progress().deadline.reset();
        claim_.is_changed = true;
    }

    /// Whether the store takes the current step's compensating command with this reply. A payload that the definition
    /// makes itself is checked when it is made.
    [[nodiscard]] bool undo_fits(const std::optional<std::string>& reply) const {
        return !claim_.step().carries_compensation || encode(compensation{claim_.delivery.payload(), reply}).size() <=
                                                          claim_.store.capabilities().limits.payload_max;
    }

    /// When to read a live command again, at the latest at `at`. A command wakes only the entry that sent it, so one
    /// that was sent before a resume is read at intervals.
    [[nodiscard]] time_point recheck_at(const vouch::entry& command, time_point at) const {
        return command.parent == claim_.entry().id ? at : std::min(at, later(claim_.now, saga_recheck_interval));
    }

  private:
    /// A lane derived from the saga's, so that each participant handles the commands of one order in order. Commands do
    /// not share the saga's own lane: there a command would wait for sagas that may be waiting for it.
    [[nodiscard]] std::string lane() const {
        const auto& of_saga = claim_.entry().lane;
        return of_saga.empty() ? std::string{} : "saga:" + to_string(derive(id{}, of_saga));
    }

    /// The saga's group, if it is the saga's own: nothing of it is purged while the saga is live. In a group of the
    /// application, a dead command would keep the group from ever completing.
    [[nodiscard]] std::string group() const {
        const auto& of_saga = claim_.entry().group;
        return of_saga.starts_with(saga_group_prefix) ? of_saga : std::string{};
    }

    [[nodiscard]] saga_progress& progress() const noexcept { return claim_.progress; }

    claim_state<Store>& claim_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
