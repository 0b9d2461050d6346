// SPDX-License-Identifier: MIT
// The transaction type of the plain store: it validates arguments, closes itself after errors, and passes each
// operation to the class that carries it out. Used by one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/validate.hpp>

#include "batch_defects.hpp"
#include "claimer.hpp"
#include "enqueuer.hpp"
#include "nudger.hpp"
#include "open_transaction.hpp"
#include "plain_capabilities.hpp"
#include "purger.hpp"
#include "settler.hpp"
#include "shared_state.hpp"
#include "snapshot_reader.hpp"

namespace mutants {

class plain_transaction {
  protected: // `committing_transaction` has more operations
    void expect_open() const {
        if (!open_ && variant_.is(defect::closed_use_undoes_the_open)) {
            const std::lock_guard lock(shared_->mutex);
            for (const auto& [who, ids] : shared_->touched) {
                shared_->undone.insert(who);
            }
        }
        if (!open_) {
            throw vouch::error(vouch::error_kind::misuse, "plain: the transaction is closed");
        }
    }

    template <class Validate>
    void check(defect unless, const Validate& validate_it) const {
        if (!open_ && variant_.is(defect::closed_accepts_calls)) {
            return;
        }
        if (!open_ && variant_.is(defect::closed_checks_arguments_first)) {
            validate_it(accepted_by(variant_));
        }
        expect_open();
        if (variant_.is(unless)) {
            return;
        }
        try {
            validate_it(accepted_by(variant_));
        } catch (const vouch::error& e) {
            const bool is_refusal = e.kind() == vouch::error_kind::invalid_argument;
            const bool is_read = unless == defect::list_checks_nothing || unless == defect::counts_check_nothing;
            if (is_refusal && (variant_.is(defect::invalid_argument_rolls_back) ||
                               (is_read && variant_.is(defect::invalid_read_rolls_back)))) {
                open_->undo();
            }
            if (is_refusal && variant_.is(defect::invalid_argument_commits)) {
                const std::lock_guard lock(shared_->mutex);
                open_->publish_early();
            }
            if ((!is_refusal && !variant_.is(defect::unsupported_leaves_open)) ||
                variant_.is(defect::invalid_argument_closes)) {
                open_ = nullptr;
            }
            if (variant_.is(defect::invalid_is_reported_as_misuse)) {
                throw vouch::error(vouch::error_kind::misuse, e.what());
            }
            throw;
        }
    }

    [[nodiscard]] bool check_names_loosely() const {
        return variant_.is(defect::names_may_be_any_bytes) || variant_.is(defect::names_may_have_control_beyond_ascii);
    }

    /// The drafts as the validation of this store sees them.
    [[nodiscard]] std::vector<vouch::draft> as_checked(std::span<const vouch::draft> drafts) const {
        std::vector<vouch::draft> seen(drafts.begin(), drafts.end());
        for (auto& d : seen) {
            for (auto* const name : {&d.queue, &d.topic, &d.key, &d.group, &d.lane}) {
                if (variant_.is(defect::names_may_be_any_bytes)) {
                    std::replace_if(
                        name->begin(), name->end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; }, 'x');
                }
                const auto control = name->find("\xc2\x9f");
                if (variant_.is(defect::names_may_have_control_beyond_ascii) && control != std::string::npos) {
                    name->replace(control, 2, "xx");
                }
            }
        }
        return seen;
    }

    /// The delays, faults and conflicts that may affect any call.
    void disturb(open_transaction& in) const {
        if (variant_.is(trait::slow)) {
            std::this_thread::sleep_for(std::chrono::microseconds{20});
        }
        if (variant_.is(trait::yields)) {
            std::this_thread::yield();
        }
        in.hooks().step("the start of an operation", variant_.is(defect::call_fails_in_doubt));
        in.conflict_at_random();
    }

    /// After any error but `invalid_argument` the transaction is closed.
    template <class Operation>
    auto use(const Operation& operation, bool is_read = false) const {
        using answer = decltype(operation(std::declval<workspace&>()));
        if (!open_ && variant_.is(defect::closed_accepts_calls)) {
            return answer{};
        }
        expect_open();
        try {
            disturb(*open_);
            return open_->use(operation);
        } catch (const vouch::error& e) {
            const bool stays_open =
                variant_.is(defect::error_leaves_open) || (is_read && variant_.is(defect::failed_read_leaves_open));
            if (e.kind() != vouch::error_kind::invalid_argument && !stays_open) {
                open_->fail();
                open_ = nullptr;
            }
            throw;
        }
    }

    template <class Item, class Operation>
    auto each(std::span<const Item> items, const Operation& operation) {
        return use([operation, copies = std::vector<Item>(items.begin(), items.end())](workspace& on) {
            enqueuer batch(on);
            std::vector<decltype(operation(on, batch, copies.front()))> answers;
            for (const auto& item : copies) {
                answers.push_back(operation(on, batch, item));
            }
            return answers;
        });
    }

    template <class Read>
    auto read(const Read& read) const {
        const auto operation = [read, in = open_.get()](workspace& on) {
            const bool is_blind = on.is(defect::own_writes_are_invisible);
            return read(snapshot_reader(is_blind ? in->read_snapshot() : on.snapshot, on.variant));
        };
        return use(operation, true);
    }

    /// Gives neighbours that succeed at the same epoch the result of the first.
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

    // Null: closed; a failed read closes it too. Shared only by mutants whose moves are copies.
    mutable std::shared_ptr<open_transaction> open_;
    variant variant_;
    std::shared_ptr<shared_state> shared_;
    std::weak_ptr<open_transaction> moved_{}; ///< what a mutant undoes when it is destroyed
    std::optional<snapshot> last_{};          ///< what a mutant commits again

  public:
    explicit plain_transaction(const std::shared_ptr<shared_state>& in)
        : open_(std::make_shared<open_transaction>(in)), variant_(in->variant), shared_(in) {}

    plain_transaction(plain_transaction&& from) noexcept
        : open_(from.open_), variant_(from.variant_), shared_(from.shared_) {
        if (!variant_.is(defect::move_leaves_the_source_open)) {
            from.open_ = nullptr;
        }
        if (variant_.is(defect::moved_from_undoes_at_its_end)) {
            from.moved_ = open_;
        }
    }
    plain_transaction& operator=(plain_transaction&& from) noexcept {
        if (open_ && variant_.is(defect::assignment_commits_the_old)) {
            const std::lock_guard lock(shared_->mutex);
            open_->publish_early();
        }
        if (open_ && variant_.is(defect::assignment_keeps_the_old_open)) {
            shared_->forgotten = std::move(open_);
        }
        open_ = from.open_;
        if (!variant_.is(defect::assignment_leaves_the_source_open)) {
            from.open_ = nullptr;
        }
        if (variant_.is(defect::assignment_closes_both)) {
            open_ = nullptr;
        }
        shared_ = from.shared_;
        last_ = std::move(from.last_);
        return *this;
    }
    ~plain_transaction() {
        if (const auto moved = moved_.lock()) {
            moved->undo();
        }
    }

    /// See `open_transaction`.
    void mark_as_first() noexcept { open_->mark_as_first(); }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        if (open_ && variant_.is(defect::find_shows_uncommitted_of_others)) {
            if (auto other = open_->uncommitted_of_others(wanted)) {
                return other;
            }
        }
        return read([=](const snapshot_reader& r) { return r.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        check(defect::list_checks_nothing, [&](const auto& can) { validate(q, can.limits); });
        auto found = read([=](const snapshot_reader& r) { return r.list(q); });
        found.resize(variant_.is(defect::own_lists_end_after_1000) ? std::min<std::size_t>(found.size(), 1000)
                                                                   : found.size());
        return found;
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return read([name = std::string(queue)](const snapshot_reader& r) { return r.counts(name); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return read([name = std::string(queue)](const snapshot_reader& r) { return r.next_due(name); });
    }

    std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> drafts, time_point now) {
        if (variant_.is(defect::enqueue_reads_a_clock)) {
            now = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now());
        }
        const bool one_by_one = variant_.is(defect::batch_is_written_up_to_the_invalid_item);
        if (!open_ && variant_.is(defect::closed_enqueue_writes) && shared_) {
            open_transaction again(shared_);
            again.use([&](workspace& on) {
                enqueuer batch(on);
                return drafts.empty() ? vouch::receipt{} : batch.enqueue(drafts.front(), now);
            });
            again.commit();
        }
        check(one_by_one ? variant_.defect : defect::enqueue_checks_nothing, [&](const auto& can) {
            check_names_loosely() ? validate(as_checked(drafts), can) : validate(drafts, can);
        });
        auto receipts = each(drafts, [=, can = accepted_by(variant_)](workspace&, enqueuer& on, const vouch::draft& d) {
            if (one_by_one) {
                validate(d, can);
            }
            return on.enqueue(d, now);
        });
        apply_receipt_defect(variant_, drafts, receipts);
        return receipts;
    }
    [[nodiscard]] std::vector<entry> claim(const vouch::claim_request& request) {
        check(defect::claim_checks_nothing, [&](const auto& can) { validate(request, can.limits); });
        return use([=](workspace& on) { return claimer(on).claim(request); });
    }
    [[nodiscard]] std::vector<vouch::settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        if (variant_.is(defect::settle_reads_a_clock)) {
            now = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now());
        }
        const bool one_by_one = variant_.is(defect::settles_are_written_up_to_the_invalid_item);
        check(one_by_one ? variant_.defect : defect::settle_checks_nothing,
              [&](const auto& can) { validate(settles, can.limits); });
        std::vector<vouch::settle> alike;
        if (variant_.is(defect::settles_share_a_result)) {
            settles = alike = with_shared_results(settles);
        }
        alike = settles_as_read(variant_, settles);
        settles = alike;
        const auto written = items_written(variant_, defect::settle_writes_999, settles.size());
        auto answers = each(settles.first(written), [=](workspace& on, enqueuer& batch, const vouch::settle& s) {
            if (one_by_one) {
                validate(std::span(&s, 1), vouch::limits{});
            }
            return settler(on, batch.before_batch()).settle(s, now);
        });
        answers.resize(settles.size(), {vouch::verdict::applied, false});
        apply_settlement_defect(variant_, settles, answers);
        if (variant_.is(defect::group_completes_for_the_whole_batch)) {
            const bool any =
                std::any_of(answers.begin(), answers.end(), [](const auto& a) { return a.group_completed; });
            for (auto& a : answers) {
                a.group_completed = any && a.verdict == vouch::verdict::applied;
            }
        }
        if (variant_.is(defect::verdicts_are_out_of_order)) {
            std::reverse(answers.begin(), answers.end());
        }
        return answers;
    }
    [[nodiscard]] std::vector<vouch::verdict> extend(std::span<const vouch::ticket> tickets, time_point now,
                                                     vouch::duration lease) {
        check(defect::extend_checks_nothing, [&](const auto& can) { validate(tickets, now, lease, can.limits); });
        const auto written = items_written(variant_, defect::extend_writes_999, tickets.size());
        auto answers = each(tickets.first(written), [=](workspace& on, enqueuer&, const vouch::ticket& t) {
            return settler(on).extend(t, now, lease);
        });
        answers.resize(tickets.size(), vouch::verdict::applied);
        apply_extend_defect(variant_, answers);
        return answers;
    }
    [[nodiscard]] vouch::verdict nudge(const id& wanted, time_point now) {
        return use([=](workspace& on) { return nudger(on).nudge(wanted, now); });
    }
    [[nodiscard]] vouch::verdict cancel(const id& wanted, std::string_view error, time_point now) {
        check(defect::cancel_checks_nothing, [&](const auto& can) { vouch::validate_error_code(error, can.limits); });
        return use([=, code = std::string(error)](workspace& on) { return settler(on).cancel(wanted, code, now); });
    }
    std::size_t purge(const vouch::purge_request& request) {
        check(defect::purge_checks_nothing, [&](const auto& can) { validate(request, can.limits); });
        return use([=](workspace& on) { return purger(on).purge(request); });
    }

    void commit() {
        if (!open_ && (variant_.is(defect::commit_twice_is_accepted) || variant_.is(defect::closed_accepts_calls))) {
            return;
        }
        if (!open_ && last_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->committed = *last_;
        }
        expect_open();
        const auto closing = std::exchange(open_, nullptr);
        try {
            disturb(*closing);
            if (variant_.is(trait::commits_slowly)) {
                std::this_thread::sleep_for(std::chrono::microseconds{200});
            }
            closing->commit();
        } catch (const vouch::error& e) {
            if ((e.kind() == vouch::error_kind::conflict && variant_.is(defect::conflict_leaves_open)) ||
                (e.kind() == vouch::error_kind::io && variant_.is(defect::failed_commit_leaves_open))) {
                open_ = closing;
            }
            throw;
        }
        if (variant_.is(defect::second_commit_publishes_again)) {
            last_ = closing->read_snapshot();
        }
    }
};

} // namespace mutants
