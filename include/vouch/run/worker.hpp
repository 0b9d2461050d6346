// SPDX-License-Identifier: MIT
// Runs handlers on threads until a stop is requested: for one or more queues of a store, each with its own concurrency.
//
//   vouch::worker worker(outbox, {.name = "mailer-1"});
//   worker.serve(router, {.queue = "mail", .concurrency = 4});
//   worker.run(stop);
//
// A stop claims nothing new, lets running handlers finish, hands back unstarted claims (no attempt is spent) and flushes
// the observers. While the store fails, the worker tries again, with growing waits. An error that no repeat can cure
// stops the worker in the same way, and `run` throws it.
//
// Handlers and observers are called from several threads at once; the hooks of one queue from one thread at a time.
// Warnings and errors go to stderr unless an observer writes a log or `worker_options::log` is `log_level::off`.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/observe/detail/fallback_log.hpp>
#include <vouch/observe/logger.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/audit.hpp>
#include <vouch/run/detail/exclusion.hpp>
#include <vouch/run/detail/phases.hpp>
#include <vouch/run/detail/queue_run.hpp>
#include <vouch/run/detail/sweeper.hpp>
#include <vouch/run/history.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/worker_options.hpp>
#include <vouch/run/worker_report.hpp>

namespace vouch {
inline namespace v0 {

template <class Store>
class worker {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    /// The outbox must outlive the worker. Throws `invalid_argument` for options out of their range.
    explicit worker(const outbox<Store>& from, worker_options options = {})
        : outbox_(from), options_(std::move(options)), own_log_(options_.log) {
        observers_.add(own_log_);
        const auto limits = from.store().capabilities().limits;
        const auto longest = limits.lease_max;
        check("poll_interval", options_.poll_interval > duration::zero() && options_.poll_interval <= longest);
        check("settle_within", options_.settle_within >= duration::zero() && options_.settle_within <= longest);
        check("gather_within", options_.gather_within >= duration::zero() && options_.gather_within <= longest);
        check("look_ahead", options_.look_ahead >= duration::zero() && options_.look_ahead <= longest);
        check("purge_every", options_.purge_every > duration::zero() && options_.purge_every <= longest);
        check("purge_limit", options_.purge_limit > 0 && options_.purge_limit <= limits.batch_max);
        check("stop_within",
              !options_.stop_within || (*options_.stop_within >= duration::zero() && *options_.stop_within <= longest));
        check("stop_tries", options_.stop_tries > 0 && options_.stop_tries <= stop_tries_max);
        check("store_backoff", options_.store_backoff.base > duration::zero() && options_.store_backoff.max <= longest);
    }
    explicit worker(const outbox<Store>&&, worker_options = {}) = delete; // the worker would outlive its outbox

    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    /// Waits for handlers that a stop has left running. A process that must not wait ends with `std::_Exit`.
    ~worker() = default;

    // Before `run`.

    /// Adds a queue. The router must outlive the worker. Throws `invalid_argument` for options out of their range.
    worker& serve(const router<Store>& routes, queue_options how) {
        expect_idle();
        check("concurrency", how.concurrency > 0 && how.concurrency <= threads_max);
        if (options_.settle_within > how.lease / 3) {
            detail::refuse({"worker", "settle_within"}, "is " + std::to_string(options_.settle_within.count()) +
                                                            " us; it must be at most a third of the lease, " +
                                                            std::to_string((how.lease / 3).count()) + " us");
        }
        for (const auto& q : queues_) {
            if (q->how.queue == how.queue) {
                detail::refuse({"worker", "queue"}, "is served already");
            }
        }
        queues_.push_back(std::make_unique<served_queue>(*this, routes, std::move(how)));
        return *this;
    }
    worker& serve(const router<Store>&&, queue_options) = delete; // the worker would outlive its router

    /// Reports the events of this worker to `o`, from several threads, in addition to the outbox's observers. It must
    /// outlive the worker. An observer that writes a log (`logging_observer`, such as `logger`) replaces the worker's
    /// own log.
    template <observer O>
    void observe(O& o) {
        expect_idle();
        observers_.add(o);
    }
    /// The same as `runner::audit`.
    void audit(audit_sink<transaction> sink) {
        expect_idle();
        audit_ = std::move(sink);
    }
    /// The same as `runner::history`.
    void history(history_sink<transaction> sink) {
        expect_idle();
        history_ = std::move(sink);
    }
    /// The same as `runner::on_group_complete`.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        expect_idle();
        group_complete_ = std::move(callback);
    }

    /// Works until a stop is requested, and returns what was done. If an error occurs that no repeat can cure, stops as
    /// cleanly as the store allows and throws it. May be called again.
    worker_report run(std::stop_token stop) {
        if (queues_.empty()) {
            throw error(error_kind::misuse, "worker: it serves no queue; call serve() before run()");
        }
        const running guard(*this);
        left_running_.clear(); // waits for them
        own_log_.need(!observers_.has_log() && !outbox_.observers().has_log());
        worker_run now(*this);
        const std::stop_callback link(std::move(stop), [&] { now.stop(); });
        now.start();
        now.wait();
        observers_.flush();
        outbox_.observers().flush();
        return now.finish();
    }

  private:
    static constexpr std::size_t threads_max = 10'000;
    static constexpr int stop_tries_max = 1'000;

    struct served_queue {
        served_queue(worker& of, const router<Store>& routes, queue_options options)
            : how(std::move(options)), phases(of.outbox_, routes,
                                              {.queue = how.queue,
                                               .worker = of.options_.name,
                                               .batch_size = how.batch_size,
                                               .lease = how.lease,
                                               .dispatch = {.retry = how.retry, .unhandled = how.unhandled},
                                               .exception_text = of.options_.exception_text}) {
            phases.events().add(of.observers_);
        }
        queue_options how;
        detail::phases<Store> phases;
    };

    /// One queue during one run. Handler threads that a stop has left running share it.
    struct running_queue {
        running_queue(const worker& of, served_queue& which, detail::exclusion& among)
            : run(of.outbox_, which.phases, of.options_, which.how, among) {}
        detail::queue_run<Store> run;
        std::vector<std::jthread> handlers{};
    };

    /// One call of `run`: all queues and their threads.
    class worker_run {
      public:
        explicit worker_run(worker& of) : of_(of) {
            for (auto& q : of.queues_) {
                q->phases.hooks() = {.audit = of.audit_, .history = of.history_, .group_complete = of.group_complete_};
                queues_.push_back(std::make_shared<running_queue>(of, *q, exclusion_));
                if (detail::sweeper<Store>::has_work(q->how.retention)) {
                    sweepers_.push_back(
                        std::make_unique<detail::sweeper<Store>>(of.outbox_, q->phases.events(), of.options_, q->how));
                }
            }
        }

        void start() {
            try {
                start_threads();
            } catch (...) { // the system has no threads left
                fail(std::current_exception());
                for (auto& q : queues_) {
                    q->run.close();
                }
            }
        }

        void stop() {
            {
                const std::lock_guard lock(mutex_);
                if (!deadline_ && of_.options_.stop_within) {
                    deadline_ = detail::steady::now() + *of_.options_.stop_within;
                }
            }
            stop_.request_stop();
            for (auto& q : queues_) {
                q->run.interrupt();
            }
            for (auto& s : sweepers_) {
                s->interrupt();
            }
        }

        void wait() { threads_.clear(); }

        [[nodiscard]] worker_report finish() {
            worker_report out;
            for (auto& q : queues_) {
                const auto done = q->run.done();
                out += done;
                for (auto& h : q->handlers) {
                    if (done.abandoned > 0) {
                        of_.left_running_.push_back({q, std::move(h)});
                    } // otherwise it ends by itself, and is joined with the queue
                }
                q->handlers.clear();
            }
            for (const auto& s : sweepers_) {
                out += s->done();
            }
            if (failure_) {
                std::rethrow_exception(failure_);
            }
            return out;
        }

      private:
        void start_threads() {
            for (std::size_t n = 0; n < queues_.size(); ++n) {
                auto* const q = queues_[n].get();
                for (std::size_t i = 0; i < of_.queues_[n]->how.concurrency; ++i) {
                    q->handlers.emplace_back([q] { q->run.handler_loop(); });
                }
                threads_.emplace_back([this, q] {
                    guarded([&] { q->run.claim_loop(stop_.get_token()); });
                    q->run.finish(deadline());
                });
            }
            for (auto& s : sweepers_) {
                threads_.emplace_back([this, with = s.get()] { guarded([&] { with->work(stop_.get_token()); }); });
            }
        }

        template <class Loop>
        void guarded(Loop&& loop) {
            try {
                loop();
            } catch (...) {
                fail(std::current_exception());
            }
        }

        void fail(std::exception_ptr why) {
            {
                const std::lock_guard lock(mutex_);
                if (!failure_) {
                    failure_ = std::move(why);
                }
            }
            stop();
        }

        [[nodiscard]] std::optional<detail::steady::time_point> deadline() {
            const std::lock_guard lock(mutex_);
            return deadline_;
        }

        worker& of_;
        detail::exclusion exclusion_{};
        std::vector<std::shared_ptr<running_queue>> queues_{};
        std::vector<std::unique_ptr<detail::sweeper<Store>>> sweepers_{};
        std::stop_source stop_{};
        std::mutex mutex_{};
        std::exception_ptr failure_{};
        std::optional<detail::steady::time_point> deadline_{};
        std::vector<std::jthread>
            threads_{}; ///< claim loops and sweepers; joined before anything they use is destroyed
    };

    struct left_handler {
        std::shared_ptr<running_queue> of;
        std::jthread thread; ///< joined before its queue is destroyed
    };

    /// A worker must not be changed while it runs.
    struct running {
        explicit running(worker& which) : of(which) {
            if (of.is_running_.exchange(true)) {
                throw error(error_kind::misuse, "worker: it is already running");
            }
        }
        running(const running&) = delete;
        running& operator=(const running&) = delete;
        ~running() { of.is_running_ = false; }
        worker& of;
    };

    void expect_idle() const {
        if (is_running_) {
            throw error(error_kind::misuse, "worker: it is running; call this before run()");
        }
    }

    static void check(std::string_view field, bool holds) {
        if (!holds) {
            detail::refuse({"worker", field}, "is out of its range");
        }
    }

    const outbox<Store>& outbox_;
    worker_options options_;
    detail::fallback_log own_log_;
    observer_list observers_{};
    audit_sink<transaction> audit_{};
    history_sink<transaction> history_{};
    std::function<void(transaction&, const std::string&, const entry&)> group_complete_{};
    std::vector<std::unique_ptr<served_queue>> queues_{};
    std::vector<left_handler> left_running_{}; ///< joined before the queues are destroyed
    std::atomic<bool> is_running_ = false;
};

} // namespace v0
} // namespace vouch
