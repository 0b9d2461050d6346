// SPDX-License-Identifier: MIT
// A claimed saga's dealings with its remote participants: sending a command, finding out what became of it, calling it
// back. What is read of a command that has ended is final.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

/// When a saga that nobody here can carry on is looked at again.
inline constexpr duration saga_look_again = std::chrono::minutes{1};

namespace detail {

template <class Store>
class commanding {
  protected:
    commanding(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : store_(store), definition_(what), delivery_(d), now_(d.now()), p_(std::move(at)) {}

    [[nodiscard]] std::optional<vouch::entry> find_command() const {
        auto found = store_.find(p_.command);
        return found && found->parent == p_.sender ? found : std::nullopt; // else somebody else's, with the same id
    }

    /// Cancels the command, unless it has ended or somebody holds it. Gives what is known of it afterwards, which is
    /// final unless it is live.
    [[nodiscard]] std::optional<vouch::entry> call_back(const std::string& code) {
        auto found = find_command();
        if (found && is_live(found->state)) {
            static_cast<void>(transact(store_, [&](auto& tx) { return tx.cancel(p_.command, code, now_); }));
            found = find_command();
        }
        return found;
    }

    /// False if no store would take it; then nothing is sent.
    [[nodiscard]] bool send(const std::string& topic, std::string payload, const id& key) {
        const auto& to = step();
        auto headers = headers_of({.key = key,
                                   .saga = p_.origin,
                                   .step = to.name,
                                   .number = p_.at + 1,
                                   .is_compensation = p_.direction == saga_direction::back});
        const auto attempts_max = definition_.retry_of(to).attempts_max;
        try {
            validate(draft{.id = entry().id, .queue = to.queue, .topic = topic, .payload = payload, .headers = headers},
                     store_.capabilities());
        } catch (const error&) {
            return false;
        }
        p_.command = delivery_.emit({.queue = to.queue,
                                     .topic = topic,
                                     .payload = std::move(payload),
                                     .group = shared_group(),
                                     .lane = command_lane(),
                                     .parent = entry().id,
                                     .attempts_max = attempts_max,
                                     .headers = std::move(headers)});
        p_.sender = entry().id;
        p_.deadline = later(now_, to.timeout);
        return true;
    }

    /// A lane made of the saga's, so that the commands of one order stay in order at every participant. It is of the
    /// commands alone: in the saga's own lane a command would wait for sagas, which may be waiting for it.
    [[nodiscard]] std::string command_lane() const {
        return entry().lane.empty() ? std::string{} : "saga:" + to_string(derive(id{}, entry().lane));
    }

    /// Whether the store takes the compensating command of this step with what is known so far. One that the definition
    /// makes is looked at when it is made.
    [[nodiscard]] bool undo_fits(const std::optional<std::string>& reply) const {
        return !step().carries_compensation ||
               encode(compensation{delivery_.payload(), reply}).size() <= store_.capabilities().limits.payload_max;
    }

    /// The saga's group, if it has one of its own: while the saga lives, nothing of that is purged. In anybody else's
    /// group a dead command would count for ever.
    [[nodiscard]] std::string shared_group() const {
        return entry().group.starts_with(saga_group_prefix) ? entry().group : std::string{};
    }

    void forget_command() {
        p_.command = {};
        p_.sender = {};
        p_.deadline.reset();
        moved_ = true;
    }

    /// When to look at a command again that nothing may have become of by `at`. One sent by the entry this saga was
    /// resumed from does not wake it.
    [[nodiscard]] time_point look_again(const vouch::entry& command, time_point at) const {
        return command.parent == entry().id ? at : std::min(at, later(now_, saga_look_again));
    }

    /// Call inside a catch clause.
    [[nodiscard]] caught caught_here() {
        auto why = caught::current();
        delivery_.explain(why.text);
        return why;
    }

    [[nodiscard]] const vouch::entry& entry() const noexcept { return delivery_.entry(); }
    [[nodiscard]] const saga_step& step() const { return definition_.steps[p_.at]; }
    [[nodiscard]] step_record& record() { return p_.steps[p_.at]; }

    Store& store_;
    const saga_definition& definition_;
    delivery& delivery_;
    time_point now_;
    saga_progress p_;
    bool moved_ = false; ///< since the last checkpoint
};

} // namespace detail
} // namespace v0
} // namespace vouch
