// SPDX-License-Identifier: MIT
// A small, correct store, plainly written on top of the contract's own functions, and the fixture that opens it. It is
// the body of most mutants: a `temper` says what is wrong with it, and by default nothing is.
//
// It claims everything a store may claim. What is committed is kept per place by the fixture.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/conformance/place.hpp>
#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>

#include "claimer.hpp"
#include "enqueuer.hpp"
#include "open_transaction.hpp"
#include "settler.hpp"
#include "shared_state.hpp"
#include "snapshot_reader.hpp"

namespace mutants {

[[nodiscard]] inline vouch::capabilities capabilities_of(const temper& t) {
    vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true};
    if (t.is(habit::does_without)) {
        can.groups = can.lanes = can.wakes = false;
    }
    can.lanes = can.lanes && !t.is(defect::lanes_are_off_and_accepted);
    can.groups = can.groups && !t.is(defect::groups_are_off_and_accepted);
    if (t.is(habit::has_larger_limits)) {
        can.limits.payload_max = can.limits.result_max = can.limits.progress_max = std::size_t{4} << 20U;
    }
    if (t.is(defect::limits_are_lowered)) {
        can.limits.payload_max = 65'536;
    }
    return can;
}

/// What the boundary lets pass; less or more than it should, if that is what is wrong.
[[nodiscard]] inline vouch::capabilities accepted_by(const temper& t) {
    auto can = capabilities_of(t);
    can.lanes = can.lanes || t.is(defect::lanes_are_off_and_accepted);
    can.groups = can.groups || t.is(defect::groups_are_off_and_accepted);
    if (t.is(defect::limits_are_exclusive)) {
        can.limits.payload_max -= 1;
        can.limits.name_max -= 1;
        can.limits.batch_max -= 1;
    }
    return can;
}

class transaction {
    void expect_open() const {
        if (!open_) {
            throw vouch::error(vouch::error_kind::misuse, "plain: the transaction is closed");
        }
    }

    template <class Validate>
    void check(defect unless, const Validate& validate_it) const {
        if (!open_ && temper_.is(defect::closed_says_nothing)) {
            return;
        }
        expect_open();
        if (temper_.is(unless)) {
            return;
        }
        try {
            validate_it(accepted_by(temper_));
        } catch (const vouch::error& e) {
            if (e.kind() != vouch::error_kind::invalid_argument || temper_.is(defect::invalid_closes)) {
                open_ = nullptr;
            }
            if (temper_.is(defect::invalid_is_called_misuse)) {
                throw vouch::error(vouch::error_kind::misuse, e.what());
            }
            throw;
        }
    }

    /// What may happen to any call.
    void disturb(open_transaction& in) const {
        if (temper_.is(habit::slow)) {
            std::this_thread::sleep_for(std::chrono::microseconds{20});
        }
        in.machinery().step("the begin of an operation");
        in.conflict_at_random();
    }

    /// After any error but `invalid_argument` the transaction is closed.
    template <class Operation>
    auto use(const Operation& operation) const {
        using answer = decltype(operation(std::declval<desk&>()));
        if (!open_ && temper_.is(defect::closed_says_nothing)) {
            return answer{};
        }
        expect_open();
        try {
            disturb(*open_);
            return open_->use(operation);
        } catch (const vouch::error& e) {
            if (e.kind() != vouch::error_kind::invalid_argument && !temper_.is(defect::error_leaves_it_open)) {
                open_ = nullptr;
            }
            throw;
        }
    }

    template <class Item, class Operation>
    auto each(std::span<const Item> items, const Operation& operation) {
        return use([operation, copies = std::vector<Item>(items.begin(), items.end())](desk& on) {
            enqueuing enqueuing(on);
            std::vector<decltype(operation(on, enqueuing, copies.front()))> answers;
            for (const auto& item : copies) {
                answers.push_back(operation(on, enqueuing, item));
            }
            return answers;
        });
    }

    template <class Look>
    auto look(const Look& look) const {
        return use([look, in = open_.get()](desk& on) {
            const bool is_blind = on.is(defect::own_writes_are_invisible);
            return look(looking(is_blind ? in->read_world() : on.world, on.temper));
        });
    }

    /// As if neighbours whose claims succeed at the same epoch did so with the result of the first.
    [[nodiscard]] static std::vector<vouch::settle> with_shared_results(std::span<const vouch::settle> settles) {
        std::vector<vouch::settle> out(settles.begin(), settles.end());
        const auto succeeds = [&](std::size_t n) { return std::holds_alternative<vouch::succeed>(out[n].outcome); };
        for (std::size_t n = 1; n < out.size(); ++n) {
            if (succeeds(n - 1) && succeeds(n) && out[n - 1].ticket.epoch == out[n].ticket.epoch) {
                out[n].outcome = out[n - 1].outcome;
            }
        }
        return out;
    }

    mutable std::unique_ptr<open_transaction> open_; // null: closed; a read that fails closes too
    temper temper_;

  public:
    explicit transaction(const std::shared_ptr<ground>& in)
        : open_(std::make_unique<open_transaction>(in)), temper_(in->temper) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([=](const looking& l) { return l.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        check(defect::list_checks_nothing, [&](const auto& can) { validate(q, can.limits); });
        return look([=](const looking& l) { return l.list(q); });
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return look([name = std::string(queue)](const looking& l) { return l.counts(name); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return look([name = std::string(queue)](const looking& l) { return l.next_due(name); });
    }

    std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> drafts, time_point now) {
        if (temper_.is(defect::enqueue_has_its_own_clock)) {
            now = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now());
        }
        const bool one_by_one = temper_.is(defect::batch_is_written_up_to_the_invalid);
        check(one_by_one ? temper_.defect : defect::enqueue_checks_nothing,
              [&](const auto& can) { validate(drafts, can); });
        return each(drafts, [=, can = accepted_by(temper_)](desk&, enqueuing& on, const vouch::draft& d) {
            if (one_by_one) {
                validate(d, can);
            }
            return on.enqueue(d, now);
        });
    }
    [[nodiscard]] std::vector<entry> claim(const vouch::claim_request& request) {
        check(defect::claim_checks_nothing, [&](const auto& can) { validate(request, can.limits); });
        return use([=](desk& on) { return claiming(on).claim(request); });
    }
    [[nodiscard]] std::vector<vouch::settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        if (temper_.is(defect::settle_has_its_own_clock)) {
            now = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now());
        }
        const bool one_by_one = temper_.is(defect::settles_are_written_up_to_the_invalid);
        check(one_by_one ? temper_.defect : defect::settle_checks_nothing,
              [&](const auto& can) { validate(settles, can.limits); });
        std::vector<vouch::settle> alike;
        if (temper_.is(defect::settles_share_a_result)) {
            settles = alike = with_shared_results(settles);
        }
        auto answers = each(settles, [=](desk& on, enqueuing& batch, const vouch::settle& s) {
            if (one_by_one) {
                validate(std::span(&s, 1), vouch::limits{});
            }
            return settling(on, batch.at_first()).settle(s, now);
        });
        if (temper_.is(defect::group_completes_for_the_whole_batch)) {
            const bool any =
                std::any_of(answers.begin(), answers.end(), [](const auto& a) { return a.group_completed; });
            for (auto& a : answers) {
                a.group_completed = any && a.verdict == vouch::verdict::applied;
            }
        }
        if (temper_.is(defect::verdicts_are_out_of_order)) {
            std::reverse(answers.begin(), answers.end());
        }
        return answers;
    }
    [[nodiscard]] std::vector<vouch::verdict> extend(std::span<const vouch::ticket> tickets, time_point now,
                                                     vouch::duration lease) {
        check(defect::extend_checks_nothing, [&](const auto& can) { validate(tickets, now, lease, can.limits); });
        return each(tickets,
                    [=](desk& on, enqueuing&, const vouch::ticket& t) { return settling(on).extend(t, now, lease); });
    }
    [[nodiscard]] vouch::verdict nudge(const id& wanted, time_point now) {
        return use([=](desk& on) { return settling(on).nudge(wanted, now); });
    }
    [[nodiscard]] vouch::verdict cancel(const id& wanted, std::string_view error, time_point now) {
        check(defect::cancel_checks_nothing, [&](const auto& can) { vouch::validate_error_code(error, can.limits); });
        return use([=, code = std::string(error)](desk& on) { return settling(on).cancel(wanted, code, now); });
    }
    std::size_t purge(const vouch::purge_request& request) {
        check(defect::purge_checks_nothing, [&](const auto& can) { validate(request, can.limits); });
        return use([=](desk& on) { return claiming(on).purge(request); });
    }

    void commit() {
        if (!open_ && (temper_.is(defect::commit_twice_is_fine) || temper_.is(defect::closed_says_nothing))) {
            return;
        }
        expect_open();
        const auto closing = std::exchange(open_, nullptr);
        disturb(*closing);
        closing->commit();
    }
};

class store {
    template <class Validate>
    void check(defect unless, const Validate& validate_it) const {
        if (!ground_->is(unless)) {
            validate_it(capabilities_of(ground_->temper));
        }
    }

    template <class Look>
    auto look(const Look& look) const {
        world seen;
        {
            std::unique_lock lock(ground_->mutex);
            if (ground_->is(defect::reads_wait_for_writers)) {
                ground_->turn_over.wait(lock, [&] { return !ground_->is_writing; });
            }
            seen = ground_->is(defect::uncommitted_is_visible) ? ground_->shown : ground_->committed;
            if (ground_->is(defect::reads_are_one_commit_behind)) {
                seen = ground_->synced;
            }
        }
        return look(looking(ground_->is(defect::handle_keeps_its_first_view) ? at_first_ : seen, ground_->temper));
    }

    std::shared_ptr<ground> ground_;
    std::shared_ptr<int> handle_; ///< counts the handles
    world at_first_{};

  public:
    using transaction = mutants::transaction;
    static constexpr int contract_level = vouch::contract_level;

    store(std::shared_ptr<ground> on, std::shared_ptr<int> handle)
        : ground_(std::move(on)), handle_(std::move(handle)) {
        at_first_ = ground_->committed;
    }

    [[nodiscard]] vouch::capabilities capabilities() const {
        auto can = capabilities_of(ground_->temper);
        if (ground_->is(defect::capabilities_change)) {
            can.wakes = ground_->calls++ % 2 == 0;
        }
        return can;
    }

    [[nodiscard]] transaction begin() {
        ground_->machinery->step("begin");
        if (ground_->is(defect::wakes_stay_with_the_handle)) {
            const std::lock_guard lock(ground_->mutex);
            ground_->last_writer = this;
        }
        return transaction(ground_);
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](const looking& l) { return l.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        check(defect::list_checks_nothing, [&](const auto& can) { validate(q, can.limits); });
        return look([&](const looking& l) { return l.list(q); });
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return look([&](const looking& l) { return l.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return look([&](const looking& l) { return l.next_due(queue); });
    }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        vouch::validate_queue(queue, capabilities_of(ground_->temper).limits);
        const std::lock_guard lock(ground_->mutex);
        if (ground_->is(defect::wakes_stay_with_the_handle) && ground_->last_writer != this) {
            return 0;
        }
        return ground_->wakes[std::string(queue)];
    }

    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        vouch::validate_queue(queue, capabilities_of(ground_->temper).limits);
        if (ground_->is(defect::wait_ignores_stop)) {
            stop = {};
        }
        at_most = std::min<std::chrono::nanoseconds>(at_most, std::chrono::hours{24});
        at_most /= ground_->is(defect::wait_gives_up_early) ? 2 : 1;
        std::unique_lock lock(ground_->mutex);
        auto& wakes = ground_->wakes[std::string(queue)];
        const auto is_different = [&] { return wakes != seen; };
        if (ground_->is(defect::wait_sleeps_on)) {
            ground_->stirred.wait_for(lock, stop, at_most, [] { return false; });
        } else {
            ground_->stirred.wait_for(lock, stop, at_most, is_different);
        }
        return wakes;
    }
};

} // namespace mutants
