// SPDX-License-Identifier: MIT
// Running handlers for real: the worker with its threads, and stopping by signals.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_WORKER
#define VOUCH_SINGLE_HEADER_WORKER

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/observe.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// ---- vouch/run/stop_signals.hpp
// SIGINT and SIGTERM as a stop token, for workers that are processes:
//
//   vouch::stop_signals signals;
//   worker.run(signals.token());
//
// The first signal asks to stop. From then on the system's default is back in place, so a second one ends the process
// at once; leases heal what it had in hand. One object at a time; when it goes, what was set before is set again.
//
// POSIX only. Nothing is done in the signal handler but what is allowed there: it writes a byte to a pipe. The pipe is
// made once per process and never closed, because a handler that was interrupted on another thread may write to it
// after the object is gone; a descriptor closed by then might be another file's.

namespace vouch {
inline namespace v0 {

class stop_signals {
  public:
    /// Throws `misuse` if there is one already, `io` if the system has no pipe to give.
    stop_signals() {
        if (taken().exchange(true)) {
            throw error(error_kind::misuse, "stop_signals: there is one already in this process");
        }
        try {
            // A process that was forked has its parent's pipe, and would hear its signals.
            if ((read_end() < 0 || owner() != ::getpid()) && !make_pipe()) {
                throw error(error_kind::io, "stop_signals: the system has no pipe to give", {.code = errno});
            }
            forget_earlier_signals();
            listener_ = std::thread([this] { listen(); });
        } catch (...) {
            taken() = false;
            throw;
        }
        struct sigaction ours {};
        ours.sa_handler = &stop_signals::heard;
        ours.sa_flags = SA_RESTART;
        sigemptyset(&ours.sa_mask);
        for (std::size_t i = 0; i < signals.size(); ++i) {
            ::sigaction(signals[i], &ours, &before_[i]);
        }
    }
    stop_signals(const stop_signals&) = delete;
    stop_signals& operator=(const stop_signals&) = delete;
    ~stop_signals() {
        for (std::size_t i = 0; i < signals.size(); ++i) {
            ::sigaction(signals[i], &before_[i], nullptr);
        }
        const char end = 'e';
        while (::write(write_end(), &end, 1) < 0 && errno == EINTR) {
        }
        listener_.join();
        taken() = false;
    }

    /// Requested with the first signal.
    [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }

  private:
    static constexpr std::array<int, 2> signals{SIGINT, SIGTERM};

    static std::atomic<bool>& taken() noexcept {
        static std::atomic<bool> is_taken = false;
        return is_taken;
    }
    static pid_t& owner() noexcept {
        static pid_t process = -1;
        return process;
    }
    static int& read_end() noexcept {
        static int end = -1;
        return end;
    }
    static std::atomic<int>& write_end() noexcept {
        static std::atomic<int> end = -1;
        static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may wait for no lock");
        return end;
    }

    [[nodiscard]] static bool make_pipe() noexcept {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
            return false;
        }
        owner() = ::getpid();
        read_end() = ends[0];
        write_end() = ends[1];
        return true;
    }

    /// Those that came after an earlier object's listener had ended.
    static void forget_earlier_signals() noexcept {
        ::fcntl(read_end(), F_SETFL, O_NONBLOCK);
        char ignored = 0;
        while (::read(read_end(), &ignored, 1) == 1) {
        }
        ::fcntl(read_end(), F_SETFL, 0); // the listener waits; a handler that writes never does
    }

    static void heard(int /*which*/) {
        const int errno_before = errno;
        struct sigaction by_default {};
        by_default.sa_handler = SIG_DFL;
        sigemptyset(&by_default.sa_mask);
        for (const int s : signals) {
            ::sigaction(s, &by_default, nullptr);
        }
        const char stop = 's';
        if (const int end = write_end().load(); end >= 0) {
            [[maybe_unused]] const auto written = ::write(end, &stop, 1);
        }
        errno = errno_before;
    }

    void listen() {
        for (char what = 0; what != 'e';) {
            const auto got = ::read(read_end(), &what, 1);
            if (got == 1 && what == 's') {
                stop_.request_stop();
            } else if (got == 0 || (got < 0 && errno != EINTR)) {
                return;
            }
        }
    }

    std::stop_source stop_{};
    std::array<struct sigaction, 2> before_{};
    std::thread listener_{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/exclusion.hpp
// Lets one queue of a worker handle an entry alone, while no queue of that worker holds another claim.
//
// A queue that has found an entry with a lapse asks for exclusion. Then no queue claims until all have settled what
// they hold, and the one that asked goes on alone. Because a handler may run for hours, or hang, the others are not
// kept waiting without limit: if it does not get quiet in time, all go on as usual for a while, and the next try is
// given more time; and an entry that is still handled after `alone_max` is alone no longer. Entries with a lapse are
// not held meanwhile, so that another process can take them.
//
// Thread-safe. Times are arguments.

namespace vouch {
inline namespace v0 {
namespace detail {

class exclusion {
  public:
    using steady = std::chrono::steady_clock;
    using member = std::size_t;

    static constexpr std::chrono::seconds first_patience{1}; ///< how long the first try waits for quiet
    static constexpr std::chrono::seconds patience_max{10};
    static constexpr std::chrono::seconds first_pause{4}; ///< how long all go on as usual after a first try in vain
    static constexpr std::chrono::minutes pause_max{10};
    static constexpr std::chrono::seconds alone_max{30};

    enum class access : std::uint8_t {
        open,   ///< claim as usual, but hand back entries with a lapse
        closed, ///< claim nothing
        alone,  ///< claim one entry, whatever its lapses
    };
    struct answer {
        exclusion::access access = access::open;
        /// Closed: when to ask again at the latest. Open: until when entries with a lapse need not come back.
        std::optional<steady::time_point> until{};
    };

    /// `wake` makes the queue ask again; called from other queues' threads. All join before any asks.
    [[nodiscard]] member join(std::function<void()> wake) {
        members_.push_back({.wake = std::move(wake)});
        return members_.size() - 1;
    }

    /// What a queue may claim now. `holds`: whether it has claims that are not settled. A queue that gets `open` or
    /// `alone` counts as one that holds claims until it asks again.
    [[nodiscard]] answer ask(member who, bool holds, steady::time_point now) {
        std::function<void()> wake;
        const auto out = [&] {
            const std::lock_guard lock(mutex_);
            members_[who].holds = holds;
            const auto given = decide(who, now, wake);
            members_[who].holds = holds || given.access != access::closed;
            return given;
        }();
        if (wake) {
            wake();
        }
        return out;
    }

    /// The queue has found an entry with a lapse and handed it back.
    void want(member who, steady::time_point now) {
        {
            const std::lock_guard lock(mutex_);
            members_[who].wants = true;
            if (quiet_by_ || now < open_until_) {
                return;
            }
            quiet_by_ = now + patience_;
        }
        wake_all(); // those that hold nothing have to say so
    }

    /// The queue has settled what it handled alone, or found nothing to handle so. The others get as long as it had.
    void leave(member who, steady::time_point now) {
        {
            const std::lock_guard lock(mutex_);
            if (alone_ != who) {
                return;
            }
            alone_.reset();
            if (members_.size() > 1) {
                open_until_ = now + std::min<steady::duration>(now - alone_since_, alone_max);
                quiet_by_.reset();
            }
        }
        wake_all();
    }

  private:
    struct queue {
        std::function<void()> wake{};
        bool holds = false;
        bool wants = false;
    };

    void wake_all() const {
        for (const auto& m : members_) { // never changed once any has asked
            m.wake();
        }
    }

    [[nodiscard]] answer decide(member who, steady::time_point now, std::function<void()>& wake) {
        if (alone_ && now >= alone_since_ + alone_max) {
            alone_.reset();
        }
        if (alone_) {
            return *alone_ == who ? answer{access::alone} : answer{access::closed, alone_since_ + alone_max};
        }
        if (!quiet_by_) {
            return {access::open, now < open_until_ ? std::optional{open_until_} : std::nullopt};
        }
        const auto next = std::find_if(members_.begin(), members_.end(), [](const queue& q) { return q.wants; });
        if (std::none_of(members_.begin(), members_.end(), [](const queue& q) { return q.holds; })) {
            alone_ = static_cast<member>(next - members_.begin());
            alone_since_ = now;
            next->wants = false;
            quiet_by_.reset();
            patience_ = first_patience;
            pause_ = first_pause;
            if (*alone_ == who) {
                return {access::alone};
            }
            wake = next->wake;
            return {access::closed};
        }
        if (now < *quiet_by_) {
            return {access::closed, quiet_by_};
        }
        quiet_by_.reset();
        open_until_ = now + pause_;
        patience_ = std::min<steady::duration>(patience_ * 2, patience_max);
        pause_ = std::min<steady::duration>(pause_ * 2, pause_max);
        for (auto& m : members_) {
            m.wants = false;
        }
        return {access::open, open_until_};
    }

    std::mutex mutex_;
    std::vector<queue> members_{};
    std::optional<member> alone_{};
    steady::time_point alone_since_{};
    std::optional<steady::time_point> quiet_by_{}; ///< set: no queue claims, so that it gets quiet by then
    steady::time_point open_until_{};              ///< no try before this
    steady::duration patience_ = first_patience;
    steady::duration pause_ = first_pause;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/stop_caller.hpp
// Requests stops on a thread of its own. A request runs the callbacks that the handler has registered, which may take
// as long as they like; the thread that extends leases cannot wait for them.

namespace vouch {
inline namespace v0 {
namespace detail {

class stop_caller {
  public:
    stop_caller() : thread_([this] { work(); }) {}
    stop_caller(const stop_caller&) = delete;
    stop_caller& operator=(const stop_caller&) = delete;
    /// Waits for the callbacks.
    ~stop_caller() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        changed_.notify_one();
    }

    void request(std::vector<std::stop_source> stops) {
        if (stops.empty()) {
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            for (auto& s : stops) {
                waiting_.push_back(std::move(s));
            }
        }
        changed_.notify_one();
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            auto now = std::exchange(waiting_, {});
            lock.unlock();
            for (auto& s : now) {
                s.request_stop();
            }
            now.clear();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::stop_source> waiting_{};
    bool closed_ = false;
    std::jthread thread_; ///< made last, joined before anything it uses goes
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/hand.hpp
// The claims a worker has in hand for one queue: those no thread has started, those being handled, and those handled
// and not yet settled. One thread (the clerk) puts claims in and takes outcomes out; the others handle.
//
// Thread-safe. A claim is in exactly one of the three places, or it has left the hand.

namespace vouch {
inline namespace v0 {
namespace detail {

using steady = std::chrono::steady_clock;

/// A claim that waits for a thread.
template <class Store>
struct held_claim {
    vouch::entry entry{};
    std::stop_source stop{};                    ///< fires when the claim is lost or the worker stops
    steady::time_point renew_at{};              ///< when its lease wants to be extended
    std::optional<handled<Store>> unrecorded{}; ///< it was handled, but its `record` failed; `entry` is empty then

    [[nodiscard]] vouch::ticket ticket() const noexcept { return ticket_of(unrecorded ? unrecorded->entry : entry); }
};

/// What is in hand.
struct hand_size {
    std::size_t unstarted = 0;
    std::size_t unrecorded = 0; ///< outcomes whose `record` has failed, and for which no thread is free yet
    std::size_t running = 0;
    std::size_t finished = 0;
    steady::time_point finished_since{};                     ///< when the first of these was finished
    steady::time_point started_last{};                       ///< when a handler was last started
    steady::time_point renew_at = steady::time_point::max(); ///< the earliest of all claims
    steady::duration handling{};                             ///< what a handler took, lately
    bool measured = false;                                   ///< whether any was
    [[nodiscard]] std::size_t unfinished() const noexcept { return unstarted + unrecorded + running; }
};

template <class Store>
class hand {
  public:
    using batch = std::vector<handled<Store>>;

    // The clerk's side.

    void put(std::vector<entry> claimed, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            for (auto& e : claimed) {
                unstarted_.push_back({.entry = std::move(e), .renew_at = renew_at});
            }
        }
        started_.notify_all();
    }

    /// An outcome whose `record` has failed: a thread decides what follows. Before any claim that waits.
    void put_back(handled<Store> unrecorded, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            unstarted_.push_front({.renew_at = renew_at, .unrecorded = std::move(unrecorded)});
        }
        started_.notify_all();
    }

    /// Claims no thread has started go back untouched, with the outcomes, so that another worker can take them.
    void hand_back_unstarted() {
        const std::lock_guard lock(mutex_);
        for (auto& c : unstarted_) {
            if (!c.unrecorded) {
                add_finished({.entry = std::move(c.entry), .outcome = release{}});
            }
        }
        std::erase_if(unstarted_, [](const auto& c) { return !c.unrecorded; });
    }

    [[nodiscard]] batch collect() {
        const std::lock_guard lock(mutex_);
        return std::exchange(finished_, {});
    }

    [[nodiscard]] hand_size size() const {
        const std::lock_guard lock(mutex_);
        const auto unrecorded = static_cast<std::size_t>(std::count_if(
            unstarted_.begin(), unstarted_.end(), [](const auto& c) { return c.unrecorded.has_value(); }));
        hand_size out{.unstarted = unstarted_.size() - unrecorded,
                      .unrecorded = unrecorded,
                      .running = running_.size(),
                      .finished = finished_.size(),
                      .finished_since = finished_since_,
                      .started_last = started_last_,
                      .handling = handling_,
                      .measured = measured_};
        for (const auto& c : unstarted_) {
            out.renew_at = std::min(out.renew_at, c.renew_at);
        }
        for (const auto& r : running_) {
            out.renew_at = std::min(out.renew_at, r.renew_at);
        }
        return out;
    }

    /// The tickets whose leases want to be extended by now.
    [[nodiscard]] std::vector<ticket> to_renew(steady::time_point now) const {
        std::vector<ticket> out;
        const std::lock_guard lock(mutex_);
        for (const auto& c : unstarted_) {
            if (c.renew_at <= now) {
                out.push_back(c.ticket());
            }
        }
        for (const auto& r : running_) {
            if (r.renew_at <= now) {
                out.push_back(r.ticket);
            }
        }
        return out;
    }

    /// They have been extended; the next time is `again`.
    void renewed(steady::time_point now, steady::time_point again) {
        const std::lock_guard lock(mutex_);
        for (auto& c : unstarted_) {
            c.renew_at = c.renew_at <= now ? again : c.renew_at;
        }
        for (auto& r : running_) {
            r.renew_at = r.renew_at <= now ? again : r.renew_at;
        }
    }

    enum class loss : std::uint8_t { of_none, of_unstarted, of_running };

    /// Another worker has the claim by now: it is not started if it was not, else its handler is asked to stop.
    [[nodiscard]] loss lose(const ticket& lost) {
        const std::lock_guard lock(mutex_);
        if (std::erase_if(unstarted_, [&](const auto& c) { return c.ticket() == lost; }) > 0) {
            return loss::of_unstarted;
        }
        const auto found =
            std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.ticket == lost; });
        if (found == running_.end()) {
            return loss::of_none;
        }
        found->renew_at = steady::time_point::max();
        stops_.request({found->stop});
        return loss::of_running;
    }

    /// From now on no handler is started: what was not goes back untouched, with the outcomes. Running ones are asked
    /// to stop.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            for (auto& c : unstarted_) {
                add_finished(c.unrecorded ? std::move(*c.unrecorded)
                                          : handled<Store>{.entry = std::move(c.entry), .outcome = release{}});
            }
            unstarted_.clear();
            std::vector<std::stop_source> stops;
            for (const auto& r : running_) {
                stops.push_back(r.stop);
            }
            stops_.request(std::move(stops));
        }
        started_.notify_all();
    }

    /// Gives up what is still running: its outcomes will be dropped, and its leases heal it. Says which.
    [[nodiscard]] std::vector<ticket> abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        std::vector<ticket> out;
        for (const auto& r : running_) {
            out.push_back(r.ticket);
        }
        return out;
    }

    // A handling thread's side.

    /// Waits for a claim to handle; nothing once the hand is closed. `idle` is called first if there is none.
    template <class Idle>
    [[nodiscard]] std::optional<held_claim<Store>> take(Idle&& idle) {
        std::unique_lock lock(mutex_);
        if (unstarted_.empty() && !closed_) {
            lock.unlock();
            idle();
            lock.lock();
            started_.wait(lock, [&] { return !unstarted_.empty() || closed_; });
        }
        if (closed_) {
            return std::nullopt;
        }
        auto taken = std::move(unstarted_.front());
        unstarted_.pop_front();
        running_.push_back({.ticket = taken.ticket(), .stop = taken.stop, .renew_at = taken.renew_at});
        started_last_ = steady::now();
        return taken;
    }

    /// The outcome of a claim that was taken; none if it could not be handled at all. Says whether the clerk should
    /// look: it is the first outcome, or completes a batch, or the last one to be waited for.
    bool finish(const ticket& done, std::optional<handled<Store>> with, steady::duration took, std::size_t batch_size) {
        const std::lock_guard lock(mutex_);
        std::erase_if(running_, [&](const auto& r) { return r.ticket == done; });
        handling_ = measured_ ? (handling_ * 7 + took) / 8 : took;
        measured_ = true;
        if (with && !abandoned_) {
            add_finished(std::move(*with));
        }
        return finished_.size() == 1 || finished_.size() == batch_size || closed_ ||
               (running_.empty() && unstarted_.empty());
    }

  private:
    struct running {
        vouch::ticket ticket{};
        std::stop_source stop{std::nostopstate};
        steady::time_point renew_at{};
    };

    void add_finished(handled<Store> h) {
        if (finished_.empty()) {
            finished_since_ = steady::now();
        }
        finished_.push_back(std::move(h));
    }

    mutable std::mutex mutex_;
    std::condition_variable started_;
    std::deque<held_claim<Store>> unstarted_{};
    std::vector<running> running_{};
    batch finished_{};
    steady::time_point finished_since_{};
    steady::time_point started_last_{};
    steady::duration handling_{};
    bool measured_ = false;
    bool closed_ = false;
    bool abandoned_ = false;
    stop_caller stops_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/nap.hpp
// How a clerk rests: until a time comes, new work is heard of (where the store has wake-ups), or somebody interrupts.
// An interruption that comes while nobody rests ends the next rest at once, so none is lost.
//
// One thread rests; any may interrupt.

namespace vouch {
inline namespace v0 {
namespace detail {

class nap {
  public:
    void interrupt() noexcept {
        std::stop_source listening(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            interrupted_ = true;
            listening = listening_;
        }
        changed_.notify_one();
        listening.request_stop();
    }

    void rest(std::chrono::nanoseconds at_most) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, at_most, [&] { return interrupted_; });
        interrupted_ = false;
    }

    /// Rests until `wakes` of the queue differs from `seen`, too.
    template <waking_store Store>
    void rest(Store& store, const std::string& queue, std::uint64_t seen, std::chrono::nanoseconds at_most) {
        const std::stop_source listening;
        if (!begin_listening(listening)) {
            return;
        }
        try {
            store.wait(queue, seen, at_most, listening.get_token());
        } catch (...) {
            end_listening();
            throw;
        }
        end_listening();
    }

  private:
    [[nodiscard]] bool begin_listening(const std::stop_source& how) {
        const std::lock_guard lock(mutex_);
        if (interrupted_) {
            interrupted_ = false;
            return false;
        }
        listening_ = how;
        return true;
    }
    void end_listening() {
        const std::lock_guard lock(mutex_);
        listening_ = std::stop_source(std::nostopstate);
        interrupted_ = false;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::stop_source listening_{std::nostopstate};
    bool interrupted_ = false;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/store_trouble.hpp
// What to do when the store fails: report it, wait a little longer each time, try again; unless trying again makes no
// sense, then let the error through. One thread's.

namespace vouch {
inline namespace v0 {
namespace detail {

class store_trouble {
  public:
    using steady = std::chrono::steady_clock;

    /// All but `waits` outlive it.
    store_trouble(const exponential& waits, const outbox& from, const observer_list& observers, std::string_view queue,
                  std::string_view worker, bool exception_text = false)
        : waits_(waits), outbox_(from), observers_(observers), queue_(queue), worker_(worker),
          exception_text_(exception_text),
          seed_(mix(static_cast<std::uint64_t>(steady::now().time_since_epoch().count()) ^
                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)))) {}

    /// Runs `work`, which goes to the store. Says whether it went through; rethrows what no repeat can cure.
    template <class Work>
    bool attempt(Work&& work) {
        const bool fine = listen(work);
        row_ = fine ? 0 : row_;
        return fine;
    }

    /// The same for what only reads: that goes well does not mean that the trouble is over. A full disk can be read.
    template <class Work>
    bool listen(Work&& work) {
        try {
            work();
            return true;
        } catch (const error& e) {
            note(name_of(e.kind()), e.what());
            if (!e.is_transient()) {
                throw;
            }
        } catch (const std::bad_alloc&) {
            note("full");
        } catch (...) {
            note("unknown_exception");
            throw;
        }
        return false;
    }

    /// Whether it is time to go to the store again.
    [[nodiscard]] bool is_over(steady::time_point now) const noexcept { return row_ == 0 || now >= until_; }
    [[nodiscard]] steady::time_point until() const noexcept { return until_; }
    [[nodiscard]] std::size_t total() const noexcept { return total_; }

  private:
    void note(std::string_view error, std::string_view text = {}) {
        row_ += 1;
        total_ += 1;
        // Workers that failed together, in one process or in several, should not come back together.
        const id whose{.high = seed_, .low = total_};
        until_ = steady::now() + *delay_after(waits_, whose, row_);
        observers_.on({.what = event_kind::store_error,
                       .at = outbox_.now(),
                       .queue = queue_,
                       .worker = worker_,
                       .error = error,
                       .text = exception_text_ ? text : std::string_view{},
                       .attempt = row_});
    }

    backoff waits_;
    const outbox& outbox_;
    const observer_list& observers_;
    std::string_view queue_;
    std::string_view worker_;
    bool exception_text_;
    std::uint64_t seed_; ///< of the jitter
    std::uint32_t row_ = 0;
    std::size_t total_ = 0;
    steady::time_point until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/worker_options.hpp
// How a worker goes about it, in all and per queue, and what a run of it came to.

namespace vouch {
inline namespace v0 {

struct worker_options {
    std::string name = "worker"; ///< who claims; shown to operators
    /// What the worker logs to stderr by itself, unless one of its observers writes a log.
    log_level log = log_level::warning;
    bool exception_text = false; ///< hand it to observers and the log: it may carry other people's data
    /// Nothing is late by more than this, whatever becomes of wake-ups.
    duration poll_interval = std::chrono::seconds{1};
    /// How long an outcome may wait for others to be committed with.
    duration settle_within = std::chrono::milliseconds{5};
    /// How much work, counted in time, a thread may have waiting. Short handlers are claimed by the batch, long ones
    /// one by one, so that no entry waits behind them while another worker is idle. Claims that wait for longer,
    /// because all threads are busy with a handler each, are handed back.
    duration look_ahead = std::chrono::milliseconds{20};
    /// How long a stop waits for running handlers; what still runs then is left to its lease. Unset: as long as it
    /// takes.
    std::optional<duration> stop_within{};
    /// The waits between tries while the store or a hook fails.
    exponential store_backoff{.base = std::chrono::milliseconds{20}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// How many tries in a row a stop makes to settle what is left, while the store or a hook fails and no handler
    /// runs.
    int stop_tries = 5;
    duration purge_every = std::chrono::seconds{10}; ///< how often a queue with a retention is swept
    std::size_t purge_limit = 200;                   ///< entries per commit of a sweep
};

struct queue_options {
    std::string queue{};
    std::size_t concurrency = 1;              ///< handlers at a time
    std::size_t batch_size = 50;              ///< entries per commit, and the most that wait for a thread
    duration lease = std::chrono::minutes{5}; ///< how long a claim outlives a worker that died
    bool extend_leases = true;                ///< while a handler runs; else the lease must exceed what a batch takes
    retry_policy retry{};                     ///< for routes and entries that say nothing of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic no route fits
    vouch::retention retention{};                 ///< what is swept, and when
};

struct worker_report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another claim had taken over
    std::size_t unsettled = 0; ///< outcomes that could not be recorded; their leases heal them
    std::size_t lost = 0;      ///< claims that were taken over while in hand
    std::size_t abandoned = 0; ///< handlers that were still running when the stop's time was over
    std::size_t purged = 0;
    std::size_t store_errors = 0;

    worker_report& operator+=(const report& r) noexcept {
        succeeded += r.succeeded;
        advanced += r.advanced;
        retried += r.retried;
        dead += r.dead;
        released += r.released;
        stale += r.stale;
        unsettled += r.unsettled;
        return *this;
    }
    worker_report& operator+=(const worker_report& r) noexcept {
        claimed += r.claimed;
        succeeded += r.succeeded;
        advanced += r.advanced;
        retried += r.retried;
        dead += r.dead;
        released += r.released;
        stale += r.stale;
        unsettled += r.unsettled;
        lost += r.lost;
        abandoned += r.abandoned;
        purged += r.purged;
        store_errors += r.store_errors;
        return *this;
    }
    [[nodiscard]] friend bool operator==(const worker_report&, const worker_report&) = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/clerk.hpp
// One queue's clerk: the thread of a worker that goes to the store. It claims as much as the handling threads can take,
// settles what they have finished (together, and with the next claim, in one commit), extends leases, and rests until
// something is due.
//
// Wake-ups are hints: they end a rest early, and nothing relies on them.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class clerk {
  public:
    /// All but the store's capabilities is kept by reference.
    clerk(Store& store, const outbox& from, runner<Store>& through, const observer_list& observers,
          const worker_options& all, const queue_options& mine, exclusion& among)
        : store_(store), outbox_(from), runner_(through), observers_(observers), all_(all), mine_(mine),
          exclusion_(among), member_(among.join([this] { interrupt(); })),
          batch_max_(store.capabilities().limits.batch_max),
          trouble_(all.store_backoff, from, observers, mine.queue, all.name, all.exception_text) {}

    [[nodiscard]] detail::hand<Store>& hand() noexcept { return hand_; }

    /// Wakes the loop: a handler has finished, a thread is idle, or a stop was requested.
    void interrupt() noexcept { nap_.interrupt(); }

    /// Claims and settles until a stop is requested. Throws what no repeat can cure. Either way `wind_up` is to follow.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            listen();
            const auto now = steady::now();
            if (trouble_.is_over(now)) {
                trouble_.attempt([&] { pass(now); });
            }
            rest(stop);
        }
    }

    /// The end: nothing new is started, running handlers finish or, when `deadline` has passed, are left behind.
    void wind_up(std::optional<steady::time_point> deadline) {
        hand_.close();
        for (int tries = all_.stop_tries;;) {
            const bool is_last = hand_.size().running == 0; // nothing more will be finished
            if (trouble_.is_over(steady::now())) {
                const auto failures_before = hook_failures_;
                const bool fine = try_to_settle(is_last) && hook_failures_ <= failures_before;
                tries = !is_last ? all_.stop_tries : fine ? tries : tries - 1;
            }
            const auto left = hand_.size();
            const bool unsettled = left.finished > 0 || !batch_.empty() || !kept_.empty();
            if (left.running == 0 && (!unsettled || tries == 0)) {
                break; // all is done; or the store fails for good, and leases heal what is left
            }
            if (deadline && steady::now() >= *deadline) {
                break;
            }
            if (left.finished == 0 || !batch_.empty() || !trouble_.is_over(steady::now())) {
                nap_.rest(until_settling(left, deadline));
            }
        }
        give_up(hand_.collect());
        exclusion_.leave(member_, steady::now());
    }

    /// A claim was given up; its lease heals it.
    void tell_unsettled(const id& which, std::string_view error) const {
        observers_.on({.what = event_kind::unsettled,
                       .at = outbox_.now(),
                       .queue = mine_.queue,
                       .worker = all_.name,
                       .error = error,
                       .id = which});
    }

    /// The final report. Call it after the worker has stopped.
    [[nodiscard]] worker_report done() const noexcept {
        auto out = done_;
        out.store_errors = trouble_.total();
        return out;
    }

  private:
    static constexpr std::chrono::milliseconds shortest_rest{1};

    // Working.

    /// Before anything is looked at, so that no wake-up falls between the look and the rest.
    void listen() {
        if constexpr (waking_store<Store>) {
            listens_ = false;
            if (trouble_.is_over(steady::now())) {
                trouble_.listen([&] {
                    seen_ = store_.wakes(mine_.queue);
                    listens_ = true;
                });
            }
        }
    }

    void pass(steady::time_point now) {
        keep_leases(now);
        const bool hands_back = is_stuck(hand_.size(), now);
        if (hands_back) {
            hand_.hand_back_unstarted();
        }
        const auto in_hand = hand_.size();
        const bool held_claims = holds_claims();
        plan_claims(in_hand, now);
        due_in_.reset();
        const bool claims = plan_.limit > 0 && something_is_due(now);
        if (batch_.empty() && in_hand.finished > 0 && (claims || hands_back || is_ripe(in_hand, now))) {
            batch_ = hand_.collect();
        }
        add_kept(now);
        if (batch_.empty() && claims) {
            took_up(runner_.claim_by(plan_), now);
        } else if (!batch_.empty()) {
            auto [settled, claimed] = runner_.settle_and_try_claim(batch_, claims ? plan_ : claim_plan{});
            done_ += settled;
            sort_out(now, true);
            if (claimed) {
                took_up(std::move(*claimed), now);
            } else {
                tell_polled(0, now);
            }
        }
        if (!holds_claims()) {
            if (access_.access == exclusion::access::alone) {
                exclusion_.leave(member_, now);
                interrupt();
            } else if (access_.access == exclusion::access::closed && held_claims) {
                interrupt(); // to say so
            }
        }
    }

    /// Whether claims wait for threads that have all been busy for longer than the look-ahead.
    [[nodiscard]] bool is_stuck(const hand_size& in_hand, steady::time_point now) const noexcept {
        return in_hand.unstarted > 0 && is_slow(in_hand, now);
    }
    [[nodiscard]] bool is_slow(const hand_size& in_hand, steady::time_point now) const noexcept {
        return in_hand.running >= mine_.concurrency && now - in_hand.started_last >= all_.look_ahead;
    }

    /// Outcomes that a hook holds up do not count: they may wait for days, and no handler of theirs runs.
    [[nodiscard]] bool holds_claims() const {
        const auto in_hand = hand_.size();
        return in_hand.unfinished() + in_hand.finished + batch_.size() > 0;
    }

    /// How much to claim now, as far as the other queues allow.
    void plan_claims(const hand_size& in_hand, steady::time_point now) {
        using access = exclusion::access;
        access_ = exclusion_.ask(member_, holds_claims(), now);
        plan_ = {};
        if (access_.access == access::alone) {
            plan_.limit = holds_claims() ? 0 : 1;
        } else if (access_.access == access::open && kept_.size() < mine_.batch_size) {
            plan_ = {.limit = room_for_claims(in_hand, now), .rule = claim_plan::lapsed::handed_back};
            if (access_.until) {
                // Not for long, because another process may be able to handle them alone.
                const auto wait = std::min<steady::duration>(*access_.until - now, std::chrono::seconds{1});
                plan_.until = later(outbox_.now(), std::chrono::ceil<duration>(wait));
            }
        }
    }

    /// What is left of a settled batch: outcomes that a hook holds up, and those whose `record` has failed, which are a
    /// handling thread's business if there still are any.
    void sort_out(steady::time_point now, bool has_threads) {
        const bool was_held_up = !kept_.empty();
        for (auto& h : batch_) {
            if (h.record_failure && has_threads) {
                hand_.put_back(std::move(h), mine_.extend_leases ? now : steady::time_point::max());
            } else if (!h.landing) {
                kept_.push_back(std::move(h));
            }
        }
        batch_.clear();
        std::stable_partition(kept_.begin(), kept_.end(), [](const auto& h) { return h.is_untried; });
        if (kept_.empty()) {
            hook_failures_ = 0;
        } else if (now >= kept_until_ || !was_held_up) {
            hook_failures_ += 1;
            kept_until_ = now + *delay_after(backoff(all_.store_backoff), kept_.front().entry.id, hook_failures_);
            kept_renew_at_ = was_held_up ? kept_renew_at_ : now;
        }
    }

    /// Outcomes that were held up go behind the others, so that a hook which fails for some does not hold up all.
    void add_kept(steady::time_point now) {
        if (!kept_.empty() && now >= kept_until_) {
            const auto count = std::min(kept_.size(), batch_max_ - std::min(batch_max_, batch_.size()));
            const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count);
            std::move(kept_.begin(), end, std::back_inserter(batch_));
            kept_.erase(kept_.begin(), end);
        }
    }

    /// How many more the threads can take: those that are idle, and what a thread gets through within the look-ahead.
    /// Claims are worth a commit only when they are several, or a thread waits for one.
    [[nodiscard]] std::size_t room_for_claims(const hand_size& in_hand, steady::time_point now) const noexcept {
        auto ahead = std::size_t{0};
        if (in_hand.measured && !is_slow(in_hand, now)) {
            const auto each = std::max<steady::duration>(in_hand.handling, std::chrono::microseconds{1});
            const auto fit = static_cast<std::uint64_t>(std::max<steady::duration>(all_.look_ahead, {}) / each);
            ahead = static_cast<std::size_t>(std::min<std::uint64_t>(fit * mine_.concurrency, mine_.batch_size));
        }
        const auto wanted = std::min(mine_.concurrency + ahead, batch_max_);
        const auto room = wanted - std::min(wanted, in_hand.unfinished());
        return in_hand.unstarted == 0 || room >= ahead / 2 ? room : 0;
    }

    [[nodiscard]] bool something_is_due(steady::time_point now) {
        if (was_full_) {
            return true;
        }
        const auto next = store_.next_due(mine_.queue);
        if (!next) {
            return false;
        }
        const auto present = outbox_.now();
        due_in_ = *next <= present ? duration::zero() : *next - present;
        if (*due_in_ > duration::zero()) {
            return false;
        }
        if (next != due_gate_) { // not what the last claim did not get
            due_gate_ = next;
            empty_rest_ = duration::zero();
            empty_until_ = now;
        }
        return now >= empty_until_;
    }

    [[nodiscard]] bool is_ripe(const hand_size& in_hand, steady::time_point now) const {
        return in_hand.finished >= mine_.batch_size || in_hand.unfinished() == 0 ||
               now - in_hand.finished_since >= all_.settle_within;
    }

    void took_up(claims got, steady::time_point before) {
        auto& claimed = got.entries;
        tell_polled(claimed.size(), before);
        const bool was_alone = access_.access == exclusion::access::alone;
        was_full_ = claimed.size() == plan_.limit && !was_alone;
        due_in_ = duration::zero(); // until the next look
        if (got.hands_back) {
            exclusion_.want(member_, before);
            was_full_ = false;
        } else if (claimed.empty()) {
            // What is due is passed over for now: another worker has just claimed it, or has it open.
            empty_rest_ = std::clamp<duration>(empty_rest_ * 2, shortest_rest, all_.poll_interval);
            empty_until_ = steady::now() + empty_rest_;
            return;
        }
        empty_rest_ = duration::zero();
        done_.claimed += claimed.size();
        const bool is_lapsed = !claimed.empty() && has_lapsed(claimed.front());
        hand_.put(std::move(claimed), mine_.extend_leases ? before + mine_.lease / 3 : steady::time_point::max());
        if (was_alone) {
            is_lapsed ? exclusion_.want(member_, before) : exclusion_.leave(member_, before);
        }
    }

    void keep_leases(steady::time_point now) {
        if (!kept_.empty() && now >= kept_renew_at_) {
            runner_.extend(kept_);
            done_ += runner_.report_landings(kept_); // those that another worker has taken over
            std::erase_if(kept_, [](const auto& h) { return h.landing.has_value(); });
            kept_renew_at_ = now + mine_.lease / 3;
        }
        const auto tickets = hand_.to_renew(now);
        for (std::size_t at = 0; at < tickets.size(); at += batch_max_) {
            const auto some = std::span(tickets).subspan(at, std::min(batch_max_, tickets.size() - at));
            const auto verdicts =
                transact(store_, [&](auto& tx) { return tx.extend(some, outbox_.now(), mine_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (verdicts[i] != verdict::applied) {
                    lose(some[i]);
                }
            }
        }
        hand_.renewed(now, now + mine_.lease / 3); // not if that threw: then it is tried again before the lease is over
    }

    void lose(const ticket& lost) {
        using loss = typename detail::hand<Store>::loss;
        const auto what = hand_.lose(lost);
        if (what != loss::of_none) {
            done_.lost += 1;
            observers_.on({.what = event_kind::lease_lost,
                           .at = outbox_.now(),
                           .queue = mine_.queue,
                           .worker = all_.name,
                           .tag = what == loss::of_unstarted ? "unstarted" : "",
                           .id = lost.id});
        }
    }

    // Resting.

    void rest(const std::stop_token& stop) {
        if (stop.stop_requested()) {
            return;
        }
        const auto now = steady::now();
        const auto in_hand = hand_.size();
        auto until = now + all_.poll_interval;
        bool wants_work = false;
        if (!trouble_.is_over(now)) {
            until = std::min(until, trouble_.until());
        } else {
            until = std::min(until, in_hand.renew_at);
            if (in_hand.finished > 0) {
                until = std::min(until, in_hand.unfinished() == 0 ? now : in_hand.finished_since + all_.settle_within);
            }
            if (in_hand.unstarted > 0 && in_hand.running >= mine_.concurrency) {
                until = std::min(until, in_hand.started_last + all_.look_ahead);
            }
            if (!kept_.empty()) {
                until = std::min({until, kept_until_, kept_renew_at_});
            }
            if (access_.access == exclusion::access::closed && access_.until) {
                until = std::min(until, *access_.until);
            }
            wants_work = wants_claims(in_hand, now);
            if (wants_work) {
                until = std::min(until, next_claim(now));
            }
        }
        if (until <= now) {
            return;
        }
        if constexpr (waking_store<Store>) {
            if (wants_work && listens_) {
                trouble_.listen([&] { nap_.rest(store_, mine_.queue, seen_, until - now); });
                return;
            }
        }
        nap_.rest(until - now);
    }

    [[nodiscard]] bool wants_claims(const hand_size& in_hand, steady::time_point now) const noexcept {
        if (access_.access == exclusion::access::open) {
            return kept_.size() < mine_.batch_size && room_for_claims(in_hand, now) > 0;
        }
        return plan_.limit > 0;
    }

    [[nodiscard]] steady::time_point next_claim(steady::time_point now) const {
        if (was_full_) {
            return now;
        }
        if (!due_in_) {
            return steady::time_point::max();
        }
        // The longest waits would lead past the last time there is.
        return std::max(now + std::min(*due_in_, all_.poll_interval), empty_until_);
    }

    // The end.

    /// Whatever goes wrong here has been reported, and is not worse than what is being wound up. While handlers run,
    /// this thread extends their leases and calls no handler's `ended`.
    [[nodiscard]] bool try_to_settle(bool is_last) {
        try {
            return trouble_.attempt([&] {
                const auto now = steady::now();
                keep_leases(now);
                if (batch_.empty()) {
                    batch_ = hand_.collect();
                }
                add_kept(now);
                if (!batch_.empty()) {
                    done_ += is_last ? runner_.settle(batch_) : runner_.settle_and_try_claim(batch_, {}).first;
                    sort_out(now, false);
                }
            });
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] steady::duration until_settling(const hand_size& in_hand,
                                                  std::optional<steady::time_point> deadline) const {
        const auto now = steady::now();
        auto until = std::min(now + all_.poll_interval, deadline.value_or(steady::time_point::max()));
        if (!trouble_.is_over(now)) {
            until = std::min(until, trouble_.until());
        } else {
            until = std::min(until, in_hand.renew_at);
            until = kept_.empty() ? until : std::min({until, kept_until_, kept_renew_at_});
        }
        return std::max(until - now, steady::duration::zero());
    }

    /// What has landed is reported as such; all else is left to its lease.
    void give_up(typename runner<Store>::batch finished) {
        for (const auto& left : hand_.abandon()) {
            done_.abandoned += 1;
            tell_unsettled(left.id, "still_running");
        }
        done_ += runner_.report_on(batch_);
        for (auto* const some : {&batch_, &kept_, &finished}) {
            for (const auto& left : *some) {
                if (!left.landing) {
                    done_.unsettled += 1;
                    tell_unsettled(left.entry.id, left.held_up.empty() ? "store_failed" : left.held_up);
                }
            }
            some->clear();
        }
    }

    void tell_polled(std::size_t claimed, steady::time_point since) const {
        observers_.on({.what = event_kind::polled,
                       .at = outbox_.now(),
                       .queue = mine_.queue,
                       .worker = all_.name,
                       .count = claimed,
                       .took = std::chrono::duration_cast<duration>(steady::now() - since)});
    }

    Store& store_;
    const outbox& outbox_;
    runner<Store>& runner_;
    const observer_list& observers_;
    const worker_options& all_;
    const queue_options& mine_;
    exclusion& exclusion_;
    exclusion::member member_;
    std::size_t batch_max_;

    detail::hand<Store> hand_{};
    nap nap_{};
    store_trouble trouble_;
    typename runner<Store>::batch batch_{}; ///< being settled; given again, whole, while the store fails
    typename runner<Store>::batch kept_{};  ///< held up by a hook that fails
    std::uint32_t hook_failures_ = 0;       ///< in a row
    steady::time_point kept_until_{};       ///< when they are settled again
    steady::time_point kept_renew_at_{};    ///< when their leases want to be extended
    worker_report done_{};

    exclusion::answer access_{}; ///< as of the last pass
    claim_plan plan_{};          ///< of the last pass
    std::uint64_t seen_ = 0;
    bool listens_ = false;
    bool was_full_ = true;                 ///< the last claim got all it asked for; there may be more
    std::optional<duration> due_in_{};     ///< as the last look said
    std::optional<time_point> due_gate_{}; ///< the gate that was due then
    duration empty_rest_{};                ///< doubles with each claim that got nothing though the same gate was due
    steady::time_point empty_until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/sweeper.hpp
// Retention as a background pass: removes ended entries a bounded number per commit, and leaves the store alone four
// times as long as each commit took, so that claims and settles get their turns.
//
// One thread's.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class sweeper {
  public:
    using steady = std::chrono::steady_clock;

    sweeper(Store& store, const outbox& from, const observer_list& observers, const worker_options& all,
            const queue_options& of)
        : store_(store), outbox_(from), observers_(observers), all_(all), queue_(of),
          trouble_(all.store_backoff, from, observers, of.queue, all.name, all.exception_text) {}

    [[nodiscard]] static bool has_work(const retention& keeps) noexcept {
        const time_point any{};
        return keeps.succeeded.before(any) || keeps.dead.before(any);
    }

    void interrupt() noexcept { nap_.interrupt(); }

    /// Sweeps until a stop is requested. Throws what no repeat can cure.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            sweep(state::succeeded, queue_.retention.succeeded, stop);
            sweep(state::dead, queue_.retention.dead, stop);
            if (!stop.stop_requested()) {
                nap_.rest(all_.purge_every);
            }
        }
    }

    [[nodiscard]] worker_report done() const noexcept { return {.purged = purged_, .store_errors = trouble_.total()}; }

  private:
    void sweep(state which, const purge_rule& rule, const std::stop_token& stop) {
        // Once: what ends meanwhile is the next sweep's, or a busy queue would never let this one end.
        const auto before = rule.before(outbox_.now());
        for (bool more = before.has_value(); more && !stop.stop_requested();) {
            const auto start = steady::now();
            const bool fine = trouble_.attempt([&] { more = purge_some(which, *before, start); });
            if (!fine) {
                nap_.rest(trouble_.until() - steady::now());
            } else if (more) {
                nap_.rest(std::max<steady::duration>(4 * (steady::now() - start), std::chrono::milliseconds{1}));
            }
        }
    }

    /// Says whether there may be more.
    [[nodiscard]] bool purge_some(state which, time_point before, steady::time_point start) {
        const purge_request some{.queue = queue_.queue, .before = before, .limit = all_.purge_limit, .state = which};
        const auto gone = transact(store_, [&](auto& tx) { return tx.purge(some); });
        purged_ += gone;
        if (gone > 0) {
            observers_.on({.what = event_kind::purged,
                           .at = outbox_.now(),
                           .queue = queue_.queue,
                           .worker = all_.name,
                           .count = gone,
                           .took = std::chrono::duration_cast<duration>(steady::now() - start)});
        }
        return gone > 0; // fewer than the limit may mean that the store has looked at enough for one call
    }

    Store& store_;
    const outbox& outbox_;
    const observer_list& observers_;
    const worker_options& all_;
    const queue_options& queue_;
    store_trouble trouble_;
    nap nap_{};
    std::size_t purged_ = 0;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/worker.hpp
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

#endif // VOUCH_SINGLE_HEADER_WORKER
