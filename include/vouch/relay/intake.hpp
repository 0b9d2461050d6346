// SPDX-License-Identifier: MIT
// Stores what arrives from a broker. A message becomes an entry whose dedup key is made of the source and the message's
// id, and is acknowledged after the commit. So a message is stored once, however often it is delivered and whatever dies
// in between; from there on retries, delays, dead letters and requeues are the store's.
//
//   vouch::rabbitmq::consumer broker({.connection = {.url = url}, .queue = queue});
//   vouch::intake intake(broker, outbox, {.source = "shop", .queue = "mail"});
//   intake.run(signals.token());
//
// A message that cannot be handled (no id, over a limit, expired, refused by the mapping, bound to no queue) becomes a
// dead entry with a code, so it blocks nothing and an operator finds it with the other dead entries.
//
// Retention is the dedup window: a message that is delivered again after its entry was purged is stored again.
//
// An intake is used by one thread. Several may share an outbox, each with a consumer of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/detail/intake_plan.hpp>
#include <vouch/relay/intake_options.hpp>

namespace vouch {
inline namespace v0 {

template <consumer Consumer, class Store>
class intake {
    static_assert(explain_store<Store>());

  public:
    /// Consumer and outbox must outlive the intake. Throws `invalid_argument` for options that no message would fit, and
    /// for waits that are negative or longer than the store's longest lease; those of the backoff must not be 0.
    intake(Consumer& from, const outbox<Store>& into, intake_options options)
        : from_(from), outbox_(into), options_(std::move(options)), can_(into.store().capabilities()) {
        check();
    }

    /// Receives at most `batch_size` messages, stores them in one commit and acknowledges them. If the store fails, gives
    /// them back to the broker and throws the store's error. Throws the faults of the broker too.
    intake_report run_once(const std::stop_token& stop = {}) {
        intake_report out;
        pass(stop, out);
        return out;
    }

    /// Calls `run_once` until a stop is requested, and waits while the store or the broker fails or memory runs out. Then
    /// ends the delivery; what has arrived by then and is not stored goes back to the broker. Throws errors that waiting
    /// cannot mend, after the end of the delivery. A delivery that has ended does not begin again, so `run` is called
    /// once: the second call throws `misuse`.
    intake_report run(const std::stop_token& stop) {
        if (std::exchange(has_run_, true)) {
            throw error(error_kind::misuse, "intake: run was called before, which has ended the delivery to its "
                                            "consumer; make another consumer and another intake");
        }
        const struct ended { // on every way out
            intake& of;
            ~ended() { of.cancel(); }
        } at_end{*this};
        intake_report total;
        std::uint32_t failures = 0;
        while (!stop.stop_requested()) {
            std::optional<error_kind> fault;
            try {
                pass(stop, total);
                failures = 0;
            } catch (const error& e) {
                if (!e.is_transient()) {
                    throw;
                }
                fault = e.kind();
            } catch (const std::bad_alloc&) {
                fault = error_kind::full;
            }
            if (fault) {
                total.errors += 1;
                failures += 1;
                report_error(*fault);
                wait(*delay_after(backoff(options_.backoff), {}, failures), stop);
            }
        }
        return total;
    }

  private:
    /// Messages as their consumer knows them, for the end of their delivery.
    struct endings {
        std::vector<received> complete{};   ///< acknowledged
        std::vector<received> incomplete{}; ///< set aside: the broker keeps what the store cannot
    };

    /// What is stored is counted, even if its acknowledgement fails.
    void pass(const std::stop_token& stop, intake_report& total) {
        const auto arrived = from_.receive(options_.batch_size, options_.wait, stop);
        if (arrived.empty()) {
            return;
        }
        endings ends;
        try {
            const auto now = outbox_.now(); // once: a claim at an earlier time would not find what is due at this one
            auto plans = plans_of(arrived, now);
            ends = endings_of(arrived, plans); // before the commit: nothing may fail between that and the end
            total += stored(plans, now);
        } catch (...) {
            give_back(arrived);
            throw;
        }
        total.received += arrived.size();
        end(ends);
    }

    void end(const endings& of) {
        std::exception_ptr fault;
        try {
            if (!of.incomplete.empty()) {
                from_.set_aside(of.incomplete);
            }
        } catch (...) {
            fault = std::current_exception(); // the others are stored nevertheless
        }
        from_.acknowledge(of.complete);
        if (fault) {
            std::rethrow_exception(fault);
        }
    }

    void check() const {
        const auto& limit = can_.limits;
        detail::check_required_name({"intake", "source"}, options_.source, limit.name_max / 2);
        detail::check_name({"intake", "queue"}, options_.queue, limit.name_max);
        detail::check_name({"intake", "dead_queue"}, options_.dead_queue, limit.name_max);
        if (options_.source.find('/') != std::string::npos) {
            detail::refuse({"intake", "source"}, "contains a /, which separates it from the message id in dedup keys");
        }
        if (options_.batch_size == 0 || options_.batch_size > limit.batch_max) {
            detail::refuse({"intake", "batch_size"}, "is " + std::to_string(options_.batch_size) +
                                                         ", it must be from 1 to " + std::to_string(limit.batch_max));
        }
        check_wait("wait", options_.wait, duration::zero());
        check_wait("backoff.base", options_.backoff.base, duration{1}); // 0 would be no wait at all
        check_wait("backoff.max", options_.backoff.max, duration{1});
        if (!options_.map) {
            detail::refuse({"intake", "map"}, "is empty");
        }
    }

    void check_wait(std::string_view option, duration given, duration least) const {
        const auto most = can_.limits.lease_max; // a time that can be added to any other
        if (given < least || given > most) {
            detail::refuse({"intake", option}, "is " + std::to_string(given.count()) + " us, it must be from " +
                                                   std::to_string(least.count()) + " to " +
                                                   std::to_string(most.count()) + " us");
        }
    }

    [[nodiscard]] std::vector<detail::intake_plan> plans_of(const std::vector<received>& arrived,
                                                            time_point now) const {
        const detail::intake_planner plan(outbox_, options_, can_);
        std::vector<detail::intake_plan> out;
        out.reserve(arrived.size());
        for (const auto& r : arrived) {
            out.push_back(plan(r, now));
        }
        return out;
    }

    /// Stores all plans in one commit. A commit in doubt is repeated with the same ids.
    [[nodiscard]] intake_report stored(std::vector<detail::intake_plan>& plans, time_point now) const {
        forget_known(plans);
        std::vector<draft> drafts; // those of all plans; a plan keeps their number
        for (auto& p : plans) {
            p.count = p.drafts.size();
            std::move(p.drafts.begin(), p.drafts.end(), std::back_inserter(drafts));
        }
        auto [receipts, in_doubt] = detail::transact_in_doubt(outbox_.store(), [&](auto& tx) {
            auto got = enqueue_all(tx, drafts, now);
            bury_refused(tx, plans, drafts, got, now);
            return got;
        });
        for (std::size_t i = 0; in_doubt && i < receipts.size(); ++i) {
            receipts[i] = detail::resolved(receipts[i], drafts[i].id);
        }
        return counted(plans, drafts, receipts, now);
    }

    /// A message that was stored in time, and is expired when it comes again, is a duplicate and not a dead entry. Its
    /// dedup key sees that within one queue only.
    void forget_known(std::vector<detail::intake_plan>& plans) const {
        const auto& store = outbox_.store();
        for (auto& p : plans) {
            if (std::any_of(p.elsewhere.begin(), p.elsewhere.end(), [&](const std::string& queue) {
                    return !store.list(query::keyed(queue, p.key)).empty();
                })) {
                p.drafts.clear();
            }
        }
    }

    template <class Writer>
    [[nodiscard]] std::vector<receipt> enqueue_all(Writer& tx, std::span<const draft> drafts, time_point now) const {
        std::vector<receipt> out;
        for (std::size_t at = 0; at < drafts.size(); at += can_.limits.batch_max) {
            const auto some = drafts.subspan(at, std::min(can_.limits.batch_max, drafts.size() - at));
            const auto got = tx.enqueue(some, now);
            out.insert(out.end(), got.begin(), got.end());
        }
        return out;
    }

    /// Only a claim can be buried, so each of these entries is claimed first. Nobody else sees it before the commit.
    template <class Writer>
    void bury_refused(Writer& tx, const std::vector<detail::intake_plan>& plans, const std::vector<draft>& drafts,
                      const std::vector<receipt>& receipts, time_point now) const {
        std::size_t at = 0;
        for (const auto& p : plans) {
            const auto first = at;
            at += p.count;
            if (p.refusal.empty() || p.count == 0 || receipts[first].what != receipt::kind::inserted) {
                continue;
            }
            const auto& d = drafts[first];
            const auto claimed = tx.claim({.queue = d.queue, .now = now, .worker = "intake", .only = d.id});
            const settle end{claimed.empty() ? ticket{} : ticket_of(claimed.front()), bury{.error = p.refusal}};
            if (claimed.empty() || tx.settle(std::span(&end, 1), now).front().verdict != verdict::applied) {
                throw error(error_kind::corrupt, "intake: the store does not let an entry be claimed and buried in the "
                                                 "transaction that enqueues it");
            }
        }
    }

    [[nodiscard]] intake_report counted(const std::vector<detail::intake_plan>& plans, const std::vector<draft>& drafts,
                                        const std::vector<receipt>& receipts, time_point now) const {
        intake_report out;
        std::size_t at = 0;
        for (const auto& p : plans) {
            bool is_new = false;
            for (const auto end = at + p.count; at < end; ++at) {
                if (receipts[at].what == receipt::kind::inserted) {
                    is_new = true;
                    report_stored(p, drafts[at], now);
                }
            }
            (!is_new ? out.duplicates : p.refusal.empty() ? out.stored : out.dead) += 1;
        }
        return out;
    }

    [[nodiscard]] static endings endings_of(const std::vector<received>& arrived,
                                            const std::vector<detail::intake_plan>& plans) {
        endings out;
        for (std::size_t i = 0; i < arrived.size(); ++i) {
            (plans[i].is_incomplete ? out.incomplete : out.complete)
                .push_back({.source = arrived[i].source, .tag = arrived[i].tag});
        }
        return out;
    }

    /// A broker that fails as well delivers them again by itself.
    void give_back(const std::vector<received>& arrived) noexcept {
        try {
            from_.give_back(arrived);
        } catch (...) { // NOLINT(bugprone-empty-catch): the store's error is the one to report
        }
    }

    /// A broker that fails ends the delivery by itself.
    void cancel() noexcept {
        try {
            from_.cancel();
        } catch (...) { // NOLINT(bugprone-empty-catch): nothing is lost, and the intake ends anyway
        }
    }

    static void wait(duration at_most, const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock(mutex);
        changed.wait_for(lock, stop, at_most, [] { return false; });
    }

    void report_stored(const detail::intake_plan& p, const draft& d, time_point now) const {
        outbox_.observers().on(detail::enqueued_event(d, now, "intake"));
        if (!p.refusal.empty()) {
            outbox_.observers().on({.what = event_kind::dead,
                                    .at = now,
                                    .queue = d.queue,
                                    .topic = d.topic,
                                    .worker = "intake",
                                    .error = p.refusal,
                                    .id = d.id,
                                    .attempt = 1,
                                    .reason = death::invalid});
        }
    }

    void report_error(error_kind fault) const {
        outbox_.observers().on({.what = event_kind::store_error,
                                .at = outbox_.now(),
                                .queue = options_.queue,
                                .worker = "intake",
                                .error = name_of(fault)});
    }

    Consumer& from_;
    const outbox<Store>& outbox_;
    intake_options options_;
    capabilities can_;
    bool has_run_ = false;
};

} // namespace v0
} // namespace vouch
