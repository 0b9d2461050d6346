// SPDX-License-Identifier: MIT
// A store in memory with row locks: any number of transactions are open at once, and each operation sees what is
// committed at that moment, and its transaction's own writes (READ COMMITTED). It is a reference for stores on database
// servers: what a verdict rests on is locked before it is read, and stays locked until the transaction ends.
//
//  1. A transaction locks names: rows (by id, stored or not), keys, lanes, groups, and the children of an entry.
//  2. A lock that another transaction has is waited for, except by a claim, which skips the row. A wait that cannot end
//     is a `conflict`.
//  3. Its writes are its own until `commit`, which makes all of them visible in one step and releases the locks.
//
// It has every capability but durability. Safe for any number of threads; a transaction is used by one at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>

#include "claimer.hpp"
#include "enqueuer.hpp"
#include "purger.hpp"
#include "related_rows.hpp"
#include "session.hpp"

namespace row_locks {

inline constexpr vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .shared = true};

/// The operations of `writer`. Requires valid arguments.
class writer {
  public:
    using verdict = vouch::verdict;

    explicit writer(session& in) : session_(in), related_(in) {}

    [[nodiscard]] std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> drafts, time_point now) {
        return each<vouch::receipt>(drafts, [&](const vouch::draft& d) { return enqueuer(session_).enqueue(d, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const vouch::claim_request& request) {
        return claimer(session_).claim(request);
    }
    [[nodiscard]] std::vector<vouch::settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return each<vouch::settlement>(settles, [&](const vouch::settle& s) {
            const bool ends =
                std::holds_alternative<vouch::succeed>(s.outcome) || std::holds_alternative<vouch::bury>(s.outcome);
            const bool is_first = &s == &settles.front();
            return change(
                {s.ticket.id, is_first ? defect::settle_reads_unlocked : defect::settle_locks_the_first_of_a_batch,
                 defect::settle_reads_before_its_lock, ends ? defect::lane_is_unlocked_in_settle : defect::none},
                s, now);
        });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const vouch::ticket> tickets, time_point now,
                                              vouch::duration lease) {
        return each<verdict>(tickets, [&](const vouch::ticket& t) {
            return change({t.id, defect::extend_reads_unlocked, defect::extend_reads_before_its_lock},
                          vouch::extend{t, lease}, now)
                .verdict;
        });
    }
    [[nodiscard]] verdict nudge(const id& which, time_point now) {
        return change({which, defect::nudge_reads_unlocked, defect::nudge_reads_before_its_lock}, vouch::nudge{}, now)
            .verdict;
    }
    [[nodiscard]] verdict cancel(const id& which, std::string_view error, time_point now) {
        return change({which, defect::cancel_reads_unlocked, defect::cancel_reads_before_its_lock,
                       defect::lane_is_unlocked_in_cancel},
                      vouch::cancel{error}, now)
            .verdict;
    }
    [[nodiscard]] std::size_t purge(const vouch::purge_request& request) { return purger(session_).purge(request); }

  private:
    /// The entry of a verb, and what a defective store does with it.
    struct target {
        id which{};
        defect unlocked{};
        defect early{};
        defect lane_unlocked = defect::none; ///< none: the verb cannot end the entry
    };

    template <class Answer, class Item, class Each>
    [[nodiscard]] static std::vector<Answer> each(std::span<const Item> items, const Each& one) {
        std::vector<Answer> answers;
        for (const auto& item : items) {
            answers.push_back(one(item));
        }
        return answers;
    }

    template <class Verb>
    [[nodiscard]] vouch::settlement change(const target& on, const Verb& verb, time_point now) {
        if (session_.is(defect::repeated_is_unlocked)) {
            const auto peeked = session_.seen().row_with(on.which);
            auto copy = peeked ? *peeked : row{};
            if (peeked && apply(copy.entry, verb, now) == verdict::repeated) {
                return {verdict::repeated, false};
            }
        }
        if (related_.is_absent_for_now(on.which)) {
            return {verdict::unknown, false};
        }
        if (on.lane_unlocked != defect::none) {
            related_.lock_lane(on.which, on.lane_unlocked);
        }
        const auto r = related_.locked(on.which, on.unlocked, on.early);
        if (!r) {
            return {verdict::unknown, false};
        }
        auto changed = *r;
        const auto answer = apply(changed.entry, verb, now);
        if (answer != verdict::applied) {
            return {answer, false};
        }
        return {answer, related_.write(std::move(changed), r->is_blocked(), on.lane_unlocked, now)};
    }

    session& session_;
    related_rows related_;
};

class transaction : public vouch::validated_writer<transaction> {
  public:
    explicit transaction(std::shared_ptr<shared_state> in) : session_(std::make_unique<session>(std::move(in))) {}

    void commit() {
        static_cast<void>(expect_open());
        const auto ending = std::move(session_); // closed, even if an error follows
        ending->commit();
    }

  private:
    friend class vouch::validated_reader<transaction>;
    friend class vouch::validated_writer<transaction>;

    [[nodiscard]] const vouch::capabilities& expect_open() const {
        if (!session_) {
            throw vouch::error(vouch::error_kind::misuse, "row_locks: the transaction is closed");
        }
        return can;
    }
    void close() const noexcept { session_.reset(); }

    template <class Operation>
    auto read(const Operation& operation) const {
        return session_->run([&] { return operation(std::as_const(*session_).seen()); });
    }
    template <class Operation>
    auto write(const Operation& operation) {
        return session_->run([&] { return operation(writer(*session_)); });
    }

    mutable std::unique_ptr<session> session_; ///< null: closed; a failed read closes it, too
};

class store : public vouch::validated_reader<store> {
  public:
    using transaction = row_locks::transaction;
    static constexpr int contract_level = vouch::contract_level;

    explicit store(options how = {}) : shared_(std::make_shared<shared_state>(std::move(how))) {}

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return can; }
    /// Never waits.
    [[nodiscard]] transaction begin() { return transaction(shared_); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        vouch::validate_queue(queue, can.limits);
        const std::lock_guard lock(shared_->mutex);
        return wakes_of(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        vouch::validate_queue(queue, can.limits);
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, can.limits.lease_max);
        std::unique_lock lock(shared_->mutex);
        shared_->woken.wait_for(lock, stop, at_most, [&] { return wakes_of(queue) != seen; });
        return wakes_of(queue);
    }

  private:
    friend class vouch::validated_reader<store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return can; }
    template <class Operation>
    auto read(const Operation& operation) const {
        const std::lock_guard lock(shared_->mutex);
        return operation(view(shared_->committed));
    }
    [[nodiscard]] std::uint64_t wakes_of(std::string_view queue) const {
        const auto found = shared_->wakes.find(queue);
        return found == shared_->wakes.end() ? 0 : found->second;
    }

    std::shared_ptr<shared_state> shared_;
};

static_assert(vouch::waking_store<store>);

} // namespace row_locks
