// SPDX-License-Identifier: MIT
// Runs handlers on threads until told to stop: one or more queues of one store, each with its own concurrency.
//
//   vouch::worker worker(store, outbox, {.name = "mailer-1"});
//   worker.serve(router, {.queue = "mail", .concurrency = 4});
//   worker.run(stop);
//
// A stop claims nothing new, lets running handlers finish, hands back what has not started (no attempt is spent) and
// flushes the observers. While the store fails the worker tries again, ever more patiently; an error that no repeat can
// cure stops it in the same way, and `run` throws it. Handlers, hooks and observers of one queue's worker are called
// from several threads; those of one queue's settles from one at a time. Warnings and errors go to stderr unless an
// observer writes a log or `worker_options::log` is `log_level::off`.
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
#include <vouch/observe/audit.hpp>
#include <vouch/observe/detail/fallback_log.hpp>
#include <vouch/observe/logger.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/clerk.hpp>
#include <vouch/run/exclusion.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/run/sweeper.hpp>
#include <vouch/run/worker_options.hpp>

namespace vouch {
inline namespace v0 {

template <class Store>
class worker {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    /// Store and outbox outlive the worker. Throws `invalid_argument` for options that make no sense.
    worker(Store& store, const outbox& from, worker_options options = {})
        : store_(store), outbox_(from), options_(std::move(options)), own_log_(options_.log) {
        observers_.add(own_log_);
        const auto longest = store.capabilities().limits.lease_max;
        check("poll_interval", options_.poll_interval > duration::zero() && options_.poll_interval <= longest);
        check("settle_within", options_.settle_within >= duration::zero() && options_.settle_within <= longest);
        check("look_ahead", options_.look_ahead >= duration::zero() && options_.look_ahead <= longest);
        check("purge_every", options_.purge_every > duration::zero() && options_.purge_every <= longest);
        check("purge_limit", options_.purge_limit > 0 && options_.purge_limit <= store.capabilities().limits.batch_max);
        check("stop_within",
              !options_.stop_within || (*options_.stop_within >= duration::zero() && *options_.stop_within <= longest));
        check("stop_tries", options_.stop_tries > 0 && options_.stop_tries <= stop_tries_max);
        check("store_backoff", options_.store_backoff.base > duration::zero() && options_.store_backoff.max <= longest);
    }
    worker(Store&, const outbox&&, worker_options = {}) = delete; // it would outlive its outbox

    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    /// Waits for handlers that a stop has left behind. A process that must not wait ends with `std::_Exit`.
    ~worker() = default;

    // Before running.

    /// Adds a queue. The router outlives the worker.
    worker& serve(const router<Store>& routes, queue_options how) {
        expect_idle();
        check("concurrency", how.concurrency > 0 && how.concurrency <= threads_max);
        if (options_.settle_within > how.lease / 3) {
            detail::refuse({"worker", "settle_within"}, "is " + std::to_string(options_.settle_within.count()) +
                                                            " us, it must be at most a third of the lease, " +
                                                            std::to_string((how.lease / 3).count()) + " us");
        }
        for (const auto& p : posts_) {
            if (p->how.queue == how.queue) {
                detail::refuse({"worker", "queue"}, "is served already");
            }
        }
        auto added = std::make_unique<post>(*this, routes, std::move(how));
        posts_.push_back(std::move(added));
        return *this;
    }
    worker& serve(const router<Store>&&, queue_options) = delete; // it would outlive its router

    /// Sees everything, from several threads; outlives the worker. One that writes a log (`logging_observer`, such as
    /// `logger`) takes the place of the worker's own.
    template <observer O>
    void observe(O& o) {
        expect_idle();
        observers_.add(o);
        own_log_.need(!observers_.has_log());
    }
    /// As the runner's.
    void audit(audit_sink<transaction> sink) {
        expect_idle();
        audit_ = std::move(sink);
    }
    /// As the runner's.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        expect_idle();
        group_complete_ = std::move(callback);
    }

    /// Works until a stop is requested. Throws the error that made going on senseless, after a stop as clean as the
    /// store allows. May be called again.
    worker_report run(std::stop_token stop) {
        if (posts_.empty()) {
            throw error(error_kind::misuse, "worker: it serves no queue");
        }
        const running guard(*this);
        left_behind_.clear(); // waits for them
        shift now(*this);
        const std::stop_callback link(std::move(stop), [&] { now.stop(); });
        now.start();
        now.wait();
        observers_.flush();
        return now.finish();
    }

  private:
    static constexpr std::size_t threads_max = 10'000;
    static constexpr int stop_tries_max = 1'000;

    /// A queue and what it takes to serve it.
    struct post {
        post(worker& of, const router<Store>& routes, queue_options options)
            : how(std::move(options)), runner(of.store_, of.outbox_, routes,
                                              {.queue = how.queue,
                                               .worker = of.options_.name,
                                               .batch_size = how.batch_size,
                                               .lease = how.lease,
                                               .retry = how.retry,
                                               .unhandled = how.unhandled,
                                               .exception_text = of.options_.exception_text}) {}
        queue_options how;
        vouch::runner<Store> runner;
        bool is_wired = false;
    };

    /// One queue during one run. Threads left behind keep it.
    struct service {
        service(worker& of, post& which, detail::exclusion& among)
            : at(which), clerk(of.store_, of.outbox_, at.runner, of.observers_, of.options_, at.how, among) {}
        post& at;
        detail::clerk<Store> clerk;
        std::vector<std::jthread> handlers{};
    };

    /// One run.
    class shift {
      public:
        explicit shift(worker& of) : of_(of) {
            for (auto& p : of.posts_) {
                of.wire(*p);
                services_.push_back(std::make_shared<service>(of, *p, exclusion_));
                if (detail::sweeper<Store>::has_work(p->how.retention)) {
                    sweepers_.push_back(std::make_unique<detail::sweeper<Store>>(of.store_, of.outbox_, of.observers_,
                                                                                 of.options_, p->how));
                }
            }
        }

        void start() {
            try {
                start_threads();
            } catch (...) { // the system has no more to give
                fail(std::current_exception());
                for (auto& s : services_) {
                    s->clerk.hand().close();
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
            for (auto& s : services_) {
                s->clerk.interrupt();
            }
            for (auto& s : sweepers_) {
                s->interrupt();
            }
        }

        void wait() { clerks_.clear(); }

        [[nodiscard]] worker_report finish() {
            worker_report out;
            for (auto& s : services_) {
                const auto done = s->clerk.done();
                out += done;
                for (auto& h : s->handlers) {
                    if (done.abandoned > 0) {
                        of_.left_behind_.push_back({s, std::move(h)});
                    } // else it ends by itself, and is waited for with the service
                }
                s->handlers.clear();
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
            for (auto& s : services_) {
                for (std::size_t i = 0; i < s->at.how.concurrency; ++i) {
                    s->handlers.emplace_back([with = s.get()] { handle(*with); });
                }
                clerks_.emplace_back([this, with = s.get()] { keep(with->clerk); });
            }
            for (auto& s : sweepers_) {
                clerks_.emplace_back([this, with = s.get()] {
                    try {
                        with->work(stop_.get_token());
                    } catch (...) {
                        fail(std::current_exception());
                    }
                });
            }
        }

        void keep(detail::clerk<Store>& clerk) {
            try {
                clerk.work(stop_.get_token());
            } catch (...) {
                fail(std::current_exception());
            }
            clerk.wind_up(deadline());
        }

        static void handle(service& with) {
            auto& clerk = with.clerk;
            while (auto claim = clerk.hand().take([&] { clerk.interrupt(); })) {
                const auto ticket = claim->ticket();
                const auto start = detail::steady::now();
                std::optional<handled<Store>> done;
                try {
                    done = claim->unrecorded ? with.at.runner.handle_failed_record(std::move(*claim->unrecorded))
                                             : with.at.runner.handle(std::move(claim->entry), claim->stop.get_token());
                } catch (...) { // there was not even the memory to make a failure of it
                    clerk.tell_unsettled(ticket.id, "full");
                }
                const auto took = detail::steady::now() - start;
                if (clerk.hand().finish(ticket, std::move(done), took, with.at.how.batch_size)) {
                    clerk.interrupt();
                }
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
        std::vector<std::shared_ptr<service>> services_{};
        std::vector<std::unique_ptr<detail::sweeper<Store>>> sweepers_{};
        std::stop_source stop_{};
        std::mutex mutex_{};
        std::exception_ptr failure_{};
        std::optional<detail::steady::time_point> deadline_{};
        std::vector<std::jthread> clerks_{}; ///< joined before anything they use goes
    };

    struct left {
        std::shared_ptr<service> of;
        std::jthread handler; ///< joined before its service goes
    };

    /// Nobody changes a worker that runs.
    struct running {
        explicit running(worker& which) : of(which) {
            if (of.is_running_.exchange(true)) {
                throw error(error_kind::misuse, "worker: it is running already");
            }
        }
        running(const running&) = delete;
        running& operator=(const running&) = delete;
        ~running() { of.is_running_ = false; }
        worker& of;
    };

    void expect_idle() const {
        if (is_running_) {
            throw error(error_kind::misuse, "worker: it is running");
        }
    }

    static void check(std::string_view field, bool holds) {
        if (!holds) {
            detail::refuse({"worker", field}, "is out of its range");
        }
    }

    /// Runners hear of observers and hooks when the first run begins, so that the order of the calls before does not
    /// matter.
    void wire(post& p) {
        if (!std::exchange(p.is_wired, true)) {
            p.runner.observe(observers_);
        }
        p.runner.audit(audit_);
        p.runner.on_group_complete(group_complete_);
    }

    Store& store_;
    const outbox& outbox_;
    worker_options options_;
    detail::fallback_log own_log_;
    observer_list observers_{};
    audit_sink<transaction> audit_{};
    std::function<void(transaction&, const std::string&, const entry&)> group_complete_{};
    std::vector<std::unique_ptr<post>> posts_{};
    std::vector<left> left_behind_{}; ///< joined before the posts go
    std::atomic<bool> is_running_ = false;
};

} // namespace v0
} // namespace vouch
