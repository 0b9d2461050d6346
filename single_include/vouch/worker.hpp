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
// The first signal requests a stop. After it, the system's default action is restored, so a second signal ends the
// process at once; its claims are left to their leases. There may be one object at a time; its destructor restores the
// signal handlers that were set before.
//
// POSIX only. The signal handler does only what is allowed there: it writes a byte to a pipe. The pipe is created once
// per process and never closed, because a signal handler that was interrupted on another thread may write to it after
// the object is destroyed, when a closed descriptor might already belong to another file.

namespace vouch {
inline namespace v0 {

class stop_signals {
  public:
    /// Throws `misuse` if there is one already, and `io` if the system cannot create a pipe.
    stop_signals() {
        if (taken().exchange(true)) {
            throw error(error_kind::misuse, "stop_signals: there is one already in this process");
        }
        try {
            // A forked process has its parent's pipe, and would receive its signals.
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

    /// A stop is requested with the first signal.
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

    /// Removes signals that came after the listener of an earlier object had ended.
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

// ---- vouch/observe/detail/fallback_log.hpp
// The log of a worker that has no logging observer. Thread-safe, except `need`.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Logs to stderr unless one of the observers writes a log.
class fallback_log {
  public:
    explicit fallback_log(log_level least) : log_(least) {}

    /// Must not be called while events are reported.
    void need(bool is_needed) noexcept { is_needed_ = is_needed; }
    void on(const event& e) noexcept {
        if (is_needed_) {
            log_.on(e);
        }
    }

  private:
    logger log_;
    bool is_needed_ = true;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/exclusion.hpp
// Lets one queue of a worker handle an entry alone, while no queue of that worker holds another claim.
//
// A queue that has found an entry with a lapse asks for exclusion. Then no queue claims until all have settled what
// they hold, and the queue that asked continues alone. A handler may run for hours, or hang, so the others do not wait
// without limit: if some claims are still held after a while, all queues continue as usual for a pause, and the next
// try waits longer. An entry that is still being handled after `alone_max` no longer excludes the others. Entries with
// a lapse are not held during a pause, so another process can claim them.
//
// Thread-safe. Times are arguments.

namespace vouch {
inline namespace v0 {
namespace detail {

class exclusion {
  public:
    using steady = std::chrono::steady_clock;
    using member = std::size_t;

    static constexpr std::chrono::seconds first_patience{
        1}; ///< how long the first try waits for all claims to be settled
    static constexpr std::chrono::seconds patience_max{10};
    static constexpr std::chrono::seconds first_pause{
        4}; ///< how long all queues continue as usual after a failed first try
    static constexpr std::chrono::minutes pause_max{10};
    static constexpr std::chrono::seconds alone_max{30};

    enum class access : std::uint8_t {
        open,   ///< claim as usual, but hand back entries with a lapse
        closed, ///< claim nothing
        alone,  ///< claim one entry, whatever its lapses
    };
    struct answer {
        exclusion::access access = access::open;
        /// Closed: when to ask again at the latest. Open: entries with a lapse should not be due before this.
        std::optional<steady::time_point> until{};
    };

    /// Adds a queue. `wake` must make it ask again; it is called from other queues' threads. All queues must join before
    /// the first one asks.
    [[nodiscard]] member join(std::function<void()> wake) {
        members_.push_back({.wake = std::move(wake)});
        return members_.size() - 1;
    }

    /// What a queue may claim now. `holds` says whether it has unsettled claims. A queue that is answered `open` or
    /// `alone` counts as holding claims until it asks again.
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

    /// The queue has settled the entry that it handled alone, or has found none. The others then get as much time.
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
    std::optional<steady::time_point> quiet_by_{}; ///< set: no queue claims, so that all claims are settled by then
    steady::time_point open_until_{};              ///< no try before this
    steady::duration patience_ = first_patience;
    steady::duration pause_ = first_pause;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/claim_pacing.hpp
// When a queue claims next: at once while claims come back full, when the next entry is due, and ever more rarely while
// a due entry cannot be claimed because another transaction has it open.
//
// Used by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

class claim_pacing {
  public:
    using steady = std::chrono::steady_clock;

    explicit claim_pacing(duration poll_interval) noexcept : poll_interval_(poll_interval) {}

    /// Forgets what is due. Call it before each look.
    void forget_due() noexcept { due_in_.reset(); }

    /// Whether a claim may find something. `gate` is called only if the last claim was not full; it returns the queue's
    /// next due time, and `present` the time of the caller's clock.
    template <class Gate, class Present>
    [[nodiscard]] bool is_due(Gate&& gate, Present&& present, steady::time_point now) {
        if (was_full_) {
            return true;
        }
        const std::optional<time_point> next = gate();
        if (!next) {
            return false;
        }
        const time_point now_here = present();
        due_in_ = *next <= now_here ? duration::zero() : *next - now_here;
        if (*due_in_ > duration::zero()) {
            return false;
        }
        if (next != missed_gate_) { // an entry that the last claim did not miss
            missed_gate_ = next;
            pause_ = duration::zero();
            paused_until_ = now;
        }
        return now >= paused_until_;
    }

    /// Whether the last claim got all it asked for.
    [[nodiscard]] bool was_full() const noexcept { return was_full_; }

    /// A claim returned as many entries as it asked for, or fewer. There may be more.
    void claimed(bool is_full) noexcept {
        was_full_ = is_full;
        due_in_ = duration::zero(); // until the next look
        pause_ = duration::zero();
    }

    /// A claim returned nothing although an entry is due: another worker has just claimed it, or has it open.
    void missed(steady::time_point now) noexcept {
        was_full_ = false;
        due_in_ = duration::zero();
        pause_ = std::clamp<duration>(pause_ * 2, shortest_pause, poll_interval_);
        paused_until_ = now + pause_;
    }

    /// When to claim next; the end of time if nothing is due.
    [[nodiscard]] steady::time_point next(steady::time_point now) const noexcept {
        if (was_full_) {
            return now;
        }
        if (!due_in_) {
            return steady::time_point::max();
        }
        // Bounded by the poll interval, because the longest waits would overflow.
        return std::max(now + std::min(*due_in_, poll_interval_), paused_until_);
    }

  private:
    static constexpr std::chrono::milliseconds shortest_pause{1};

    duration poll_interval_;
    bool was_full_ = true;                    ///< the last claim got all it asked for
    std::optional<duration> due_in_{};        ///< at the last look
    std::optional<time_point> missed_gate_{}; ///< the gate that was due when a claim got nothing
    duration pause_{};                        ///< doubles with each claim that misses the same gate
    steady::time_point paused_until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/gathering.hpp
// When a worker beside producers commits. On many stores writers wait for each other, so a worker that claims every entry
// as soon as it is stored takes as many commits as the producers, and halves their rate. While new work keeps arriving,
// the worker therefore holds back its next commit, for `share` times as long as its commits take and at most for
// `gather_within`, and then claims and settles what has gathered. If no work arrives while two commits could be made, the
// hold ends. Where holds were in vain, they become rare.
//
// Used by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

class gathering {
  public:
    using steady = std::chrono::steady_clock;

    explicit gathering(duration at_most) noexcept : at_most_(at_most) {}

    /// The worker has settled or claimed, which took from `begin` to `end`.
    void committed(steady::time_point begin, steady::time_point end) noexcept {
        const auto took = end - begin;
        cost_ = cost_ == steady::duration::zero() ? took : (cost_ * 7 + took) / 8;
        committed_at_ = end;
        phase_ = phase::committed;
    }

    /// Whether to commit nothing now. `wakes` is the store's number of wake-ups of the queue.
    [[nodiscard]] bool holds(std::uint64_t wakes, steady::time_point now) noexcept {
        if (phase_ == phase::committed) { // the commit itself may have changed the number
            look(wakes, now);
            phase_ = is_busy_ ? phase::holding : phase::open;
        } else if (phase_ == phase::open && wakes != wakes_) {
            look(wakes, now);
            phase_ = passes_ == 0 ? phase::holding : phase::over;
            passes_ -= std::min(passes_, 1U);
        } else if (phase_ == phase::holding && now >= next()) {
            wakes != wakes_ ? keep() : give_up();
            look(wakes, now);
        }
        if (now >= longest()) {
            phase_ = phase::over;
        }
        return phase_ == phase::holding;
    }

    /// While it holds: when to ask again.
    [[nodiscard]] steady::time_point next() const noexcept { return std::min(look_at_, longest()); }

  private:
    enum class phase : std::uint8_t { committed, open, holding, over };

    static constexpr int share = 20; ///< a worker beside producers commits for one part in so many of its time
    static constexpr int quiet = 2;  ///< so many commits without new work end a hold
    static constexpr std::chrono::microseconds shortest_quiet{100};
    static constexpr std::uint32_t rare = 255; ///< the most chances of a hold that are passed over

    void look(std::uint64_t wakes, steady::time_point now) noexcept {
        wakes_ = wakes;
        look_at_ = now + std::max<steady::duration>(cost_ * quiet, shortest_quiet);
    }

    void keep() noexcept {
        is_busy_ = true;
        in_vain_ = 0;
    }

    void give_up() noexcept {
        if (!std::exchange(is_busy_, false)) {
            in_vain_ = std::min(in_vain_ * 2 + 1, rare);
            passes_ = in_vain_;
        }
        phase_ = phase::over;
    }

    [[nodiscard]] steady::time_point longest() const noexcept {
        return committed_at_ + std::min<steady::duration>(at_most_, cost_ * share);
    }

    duration at_most_;
    steady::duration cost_{}; ///< of a commit, averaged, waits for other writers included
    steady::time_point committed_at_{};
    steady::time_point look_at_{};
    std::uint64_t wakes_ = 0; ///< at the last look
    phase phase_ = phase::over;
    bool is_busy_ = false;      ///< work arrived during the last hold
    std::uint32_t in_vain_ = 0; ///< how many chances of a hold to pass over after a hold in vain
    std::uint32_t passes_ = 0;  ///< how many of them are left
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/held_outcomes.hpp
// Outcomes of one queue that a failing hook holds up. They wait here, their leases extended, until the next try. The
// waits between tries grow while the hook keeps failing.
//
// Used by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class held_outcomes {
  public:
    using steady = std::chrono::steady_clock;
    using batch = typename phases<Store>::batch;

    held_outcomes(const exponential& waits, duration lease) : waits_(waits), lease_(lease) {}

    [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return held_.size(); }
    /// How many tries have failed in a row.
    [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }
    /// When there is something to do: a try, or an extension of leases. Requires that it is not empty.
    [[nodiscard]] steady::time_point next() const noexcept { return std::min(try_at_, renew_at_); }

    /// Moves outcomes whose next try is due to the end of `to`, up to `most` in all. They come last, because a hook that
    /// fails for some entries must not hold up the others.
    void move_due(batch& to, std::size_t most, steady::time_point now) {
        if (!held_.empty() && now >= try_at_) {
            const auto count = std::min(held_.size(), most - std::min(most, to.size()));
            const auto end = held_.begin() + static_cast<std::ptrdiff_t>(count);
            std::move(held_.begin(), end, std::back_inserter(to));
            held_.erase(held_.begin(), end);
        }
    }

    /// Keeps the outcomes that a settle at `now` has left, and plans their next try.
    void keep(batch left, steady::time_point now) {
        const bool was_empty = held_.empty();
        std::move(left.begin(), left.end(), std::back_inserter(held_));
        std::stable_partition(held_.begin(), held_.end(), [](const auto& h) { return h.is_untried; });
        if (held_.empty()) {
            failures_ = 0;
        } else if (now >= try_at_ || was_empty) {
            failures_ += 1;
            try_at_ = now + *delay_after(backoff(waits_), held_.front().entry.id, failures_);
            renew_at_ = was_empty ? now : renew_at_;
        }
    }

    /// Extends their leases when that is due. Returns a report of the claims that another worker has taken over.
    [[nodiscard]] report extend_leases(phases<Store>& through, steady::time_point now) {
        if (held_.empty() || now < renew_at_) {
            return {};
        }
        through.extend(held_);
        auto out = through.report_results(held_);
        std::erase_if(held_, [](const auto& h) { return h.result.has_value(); });
        renew_at_ = now + lease_ / 3;
        return out;
    }

    /// Gives up what is left.
    [[nodiscard]] batch take_all() { return std::exchange(held_, {}); }

  private:
    exponential waits_;
    duration lease_;
    batch held_{};
    std::uint32_t failures_ = 0;
    steady::time_point try_at_{};
    steady::time_point renew_at_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/held_claim.hpp
// A claim that a worker holds for one queue, and the claims that one call of a handler gets.

namespace vouch {
inline namespace v0 {
namespace detail {

using steady = std::chrono::steady_clock;

/// A claim that waits for a handler thread.
template <class Store>
struct held_claim {
    vouch::entry entry{};
    std::stop_source stop{};                       ///< fires when the claim is lost or the worker stops
    steady::time_point renew_at{};                 ///< when its lease has to be extended
    std::optional<completion<Store>> unrecorded{}; ///< its `record` failed; `entry` is empty then
    const batch_options* batch = nullptr;          ///< which claims may share its call; null: none
    steady::time_point start_at{};                 ///< how long it waits for others to share its call

    [[nodiscard]] vouch::ticket ticket() const noexcept { return ticket_of(unrecorded ? unrecorded->entry : entry); }
};

/// What a handler thread has taken: one claim, or several of a batch route.
template <class Store>
struct handler_call {
    std::uint64_t number = 0;
    std::vector<held_claim<Store>> claims{};
    std::vector<ticket> tickets{};
    std::stop_source stop{std::nostopstate}; ///< of a batch: fires when the worker stops or all its claims are lost
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/stop_caller.hpp
// Requests stops on a thread of its own. A request runs the callbacks that a handler has registered. They may take any
// time, and the thread that extends leases must not wait for them.

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
    std::jthread thread_; ///< created last, joined before anything it uses is destroyed
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/in_flight.hpp
// The claims that a worker holds for one queue: unstarted ones, those a handler is running for, and finished ones that
// are not settled yet. The claim loop adds claims and collects completions; the handler loops take claims and finish
// them. A claim of a batch route waits until its batch is full or its wait is over; claims of other routes pass it.
//
// Thread-safe. A claim is in exactly one of the three places, or it is no longer here.

namespace vouch {
inline namespace v0 {
namespace detail {

struct in_flight_size {
    std::size_t unstarted = 0;
    std::size_t waiting = 0;    ///< unstarted ones that wait for others to share their call
    std::size_t unrecorded = 0; ///< finished, but their `record` failed; they wait for a thread
    std::size_t running = 0;
    std::size_t calls = 0; ///< of handlers for the running ones, each on its own thread
    std::size_t finished = 0;
    steady::time_point finished_since{};                     ///< when the first of these finished
    steady::time_point started_last{};                       ///< when the last handler started
    steady::time_point renew_at = steady::time_point::max(); ///< the earliest of all claims
    steady::duration handling{};                             ///< how long a handler takes per entry, averaged
    steady::duration calling{};                              ///< the same per call, which may be for a batch
    bool measured = false;                                   ///< whether any handler has finished
    [[nodiscard]] std::size_t unfinished() const noexcept { return unstarted + unrecorded + running; }
};

template <class Store>
class in_flight {
  public:
    using batch = std::vector<completion<Store>>;

    // For the claim loop.

    /// `batch_of` returns the batch of an entry, or null, as `held_claim::batch`. `wait_of` returns how long it may wait for
    /// others to share its call.
    template <class BatchOf, class WaitOf>
    void put(std::vector<entry> claimed, steady::time_point renew_at, const BatchOf& batch_of, const WaitOf& wait_of) {
        std::vector<held_claim<Store>> added;
        added.reserve(claimed.size());
        bool is_waiting = false;
        for (auto& e : claimed) {
            const batch_options* const shared = batch_of(e);
            const auto wait = shared != nullptr ? wait_of(e, *shared) : duration::zero();
            const bool waits = wait > duration::zero();
            added.push_back({.entry = std::move(e),
                             .renew_at = renew_at,
                             .batch = shared,
                             .start_at = waits ? steady::now() + wait : steady::time_point{}});
            is_waiting = is_waiting || waits;
        }
        {
            const std::lock_guard lock(mutex_);
            std::move(added.begin(), added.end(), std::back_inserter(unstarted_));
            if (is_waiting) {
                end_waits_of_full_batches();
            }
        }
        started_.notify_all();
    }

    /// Claims no longer wait for others to share their call: no further ones will be put for a while.
    void end_waits() {
        {
            const std::lock_guard lock(mutex_);
            for (auto& c : unstarted_) {
                c.start_at = {};
            }
        }
        started_.notify_all();
    }

    /// Returns a completion whose `record` failed, so that a handler thread converts it before it starts another claim.
    void put_back(completion<Store> unrecorded, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            auto& claim = unstarted_.emplace_front();
            claim.renew_at = renew_at;
            claim.unrecorded = std::move(unrecorded);
        }
        started_.notify_all();
    }

    /// Turns unstarted claims into releases, so that another worker can claim them.
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

    [[nodiscard]] in_flight_size size() const {
        const std::lock_guard lock(mutex_);
        const auto unrecorded = static_cast<std::size_t>(std::count_if(
            unstarted_.begin(), unstarted_.end(), [](const auto& c) { return c.unrecorded.has_value(); }));
        in_flight_size out{.unstarted = unstarted_.size() - unrecorded,
                           .unrecorded = unrecorded,
                           .running = running_.size(),
                           .calls = calls_,
                           .finished = finished_.size(),
                           .finished_since = finished_since_,
                           .started_last = started_last_,
                           .handling = handling_,
                           .calling = calling_,
                           .measured = measured_};
        const auto now = steady::now();
        for (const auto& c : unstarted_) {
            out.renew_at = std::min(out.renew_at, c.renew_at);
            out.waiting += c.start_at > now ? 1U : 0U;
        }
        for (const auto& r : running_) {
            out.renew_at = std::min(out.renew_at, r.renew_at);
        }
        return out;
    }

    /// The tickets whose leases have to be extended now.
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

    /// The leases that were due at `now` have been extended; they are due again at `again`.
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

    /// Another worker has taken over the claim: an unstarted one is dropped, a running handler is asked to stop. A batch
    /// is asked to stop when it has lost all its claims.
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
        found->is_lost = true;
        stops_.request({found->stop});
        const auto is_kept = [&](const running& r) { return r.call == found->call && !r.is_lost; };
        if (found->stop_of_call.stop_possible() && std::none_of(running_.begin(), running_.end(), is_kept)) {
            stops_.request({found->stop_of_call});
        }
        return loss::of_running;
    }

    /// Starts no further handler. Turns unstarted claims into releases, and asks running handlers to stop.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            for (auto& c : unstarted_) {
                add_finished(c.unrecorded ? std::move(*c.unrecorded)
                                          : completion<Store>{.entry = std::move(c.entry), .outcome = release{}});
            }
            unstarted_.clear();
            std::vector<std::stop_source> stops;
            for (const auto& r : running_) {
                stops.push_back(r.stop);
                if (r.stop_of_call.stop_possible()) {
                    stops.push_back(r.stop_of_call);
                }
            }
            stops_.request(std::move(stops));
        }
        started_.notify_all();
    }

    /// Gives up the running handlers: their outcomes will be dropped. Returns their tickets.
    [[nodiscard]] std::vector<ticket> abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        std::vector<ticket> out;
        for (const auto& r : running_) {
            out.push_back(r.ticket);
        }
        return out;
    }

    // For the handler loops.

    /// Waits for a claim to handle, and takes the claims that share its call. Returns nothing after `close`. Calls
    /// `idle` before it waits.
    template <class Idle>
    [[nodiscard]] std::optional<handler_call<Store>> take(Idle&& idle) {
        std::unique_lock lock(mutex_);
        for (bool is_told = false; !closed_;) {
            const auto now = steady::now();
            const auto first =
                std::find_if(unstarted_.begin(), unstarted_.end(), [&](const auto& c) { return c.start_at <= now; });
            if (first != unstarted_.end()) {
                return start(first, now);
            }
            if (!std::exchange(is_told, true)) {
                lock.unlock();
                idle();
                lock.lock();
            } else {
                wait_for_claims(lock);
            }
        }
        return std::nullopt;
    }

    /// Adds the completions of a call that was taken; none if the claims could not be handled. Returns whether the claim
    /// loop should wake up: these are the first completions, the last ones, or they fill a batch.
    bool finish(const handler_call<Store>& call, batch with, steady::duration took, std::size_t batch_size) {
        const std::lock_guard lock(mutex_);
        std::erase_if(running_, [&](const auto& r) { return r.call == call.number; });
        calls_ -= 1;
        const auto each = took / static_cast<steady::rep>(call.tickets.size());
        handling_ = measured_ ? (handling_ * 7 + each) / 8 : each;
        calling_ = measured_ ? (calling_ * 7 + took) / 8 : took;
        measured_ = true;
        const auto before = finished_.size();
        if (!abandoned_) {
            for (auto& h : with) {
                add_finished(std::move(h));
            }
        }
        const bool is_first = before == 0 && !finished_.empty();
        const bool is_full = before < batch_size && finished_.size() >= batch_size;
        return is_first || is_full || closed_ || (running_.empty() && unstarted_.empty());
    }

  private:
    struct running {
        std::uint64_t call = 0;
        vouch::ticket ticket{};
        std::stop_source stop{std::nostopstate};
        std::stop_source stop_of_call{std::nostopstate}; ///< of a batch
        steady::time_point renew_at{};
        bool is_lost = false;
    };

    using place = typename std::deque<held_claim<Store>>::iterator;

    /// Takes the claim at `first`, and those after it that share its call.
    [[nodiscard]] handler_call<Store> start(place first, steady::time_point now) {
        handler_call<Store> out{.number = ++calls_ever_};
        if (const auto* const shared = first->batch) {
            out.stop = std::stop_source{};
            auto kept = first;
            for (auto at = first; at != unstarted_.end(); ++at) {
                if (at->batch == shared && out.claims.size() < shared->size_max) {
                    move_to_running(*at, out);
                } else {
                    *kept++ = std::move(*at);
                }
            }
            unstarted_.erase(kept, unstarted_.end());
        } else {
            move_to_running(*first, out);
            unstarted_.erase(first);
        }
        calls_ += 1;
        started_last_ = now;
        return out;
    }

    void move_to_running(held_claim<Store>& c, handler_call<Store>& call) {
        call.tickets.push_back(c.ticket());
        running_.push_back({.call = call.number,
                            .ticket = call.tickets.back(),
                            .stop = c.stop,
                            .stop_of_call = call.stop,
                            .renew_at = c.renew_at});
        call.claims.push_back(std::move(c));
    }

    void wait_for_claims(std::unique_lock<std::mutex>& lock) {
        auto until = steady::time_point::max();
        for (const auto& c : unstarted_) {
            until = std::min(until, c.start_at);
        }
        if (unstarted_.empty()) {
            started_.wait(lock);
        } else {
            started_.wait_until(lock, until);
        }
    }

    /// Claims that fill a batch no longer wait.
    void end_waits_of_full_batches() {
        const auto plan = plan_calls(unstarted_, [](const held_claim<Store>& c) { return c.batch; });
        for (std::size_t first = 0; first < plan.size(); ++first) {
            const auto* const shared = unstarted_[first].batch;
            if (shared == nullptr || plan[first].size < shared->size_max) {
                continue;
            }
            for (auto i = first; i != no_entry; i = plan[i].next) {
                unstarted_[i].start_at = {};
            }
        }
    }

    void add_finished(completion<Store> h) {
        if (finished_.empty()) {
            finished_since_ = steady::now();
        }
        finished_.push_back(std::move(h));
    }

    mutable std::mutex mutex_;
    std::condition_variable started_;
    std::deque<held_claim<Store>> unstarted_{};
    std::vector<running> running_{};
    std::size_t calls_ = 0; ///< of handlers, now
    std::uint64_t calls_ever_ = 0;
    batch finished_{};
    steady::time_point finished_since_{};
    steady::time_point started_last_{};
    steady::duration handling_{};
    steady::duration calling_{};
    bool measured_ = false;
    bool closed_ = false;
    bool abandoned_ = false;
    stop_caller stops_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/interruptible_wait.hpp
// A wait that ends when its time is over, when the store reports new work (if it has wake-ups), or when it is
// interrupted. An interruption before the wait ends the next wait at once, so none is lost.
//
// One thread waits; any thread may interrupt.

namespace vouch {
inline namespace v0 {
namespace detail {

class interruptible_wait {
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

    void wait(std::chrono::nanoseconds at_most) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, at_most, [&] { return interrupted_; });
        interrupted_ = false;
    }

    /// Also ends when `wakes` of the queue differs from `seen`.
    template <waking_store Store>
    void wait(Store& store, const std::string& queue, std::uint64_t seen, std::chrono::nanoseconds at_most) {
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

// ---- vouch/run/detail/store_retry.hpp
// Repeats access to a store that fails: reports the error, waits a little longer each time, and tries again. An error
// that no repeat can cure is rethrown.
//
// Used by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

class store_retry {
  public:
    using steady = std::chrono::steady_clock;

    struct source {
        std::string_view queue{};
        std::string_view worker{};
        bool exception_text = false;
    };

    /// `now`, `events` and the names in `of` must outlive it.
    store_retry(const exponential& waits, const clock& now, const event_reporter& events, const source& of)
        : waits_(waits), clock_(now), events_(events), source_(of),
          seed_(mix(static_cast<std::uint64_t>(steady::now().time_since_epoch().count()) ^
                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)))) {}

    /// Runs `work`, which writes to the store. Returns whether it succeeded; rethrows what no repeat can cure.
    template <class Work>
    bool attempt(Work&& work) {
        const bool fine = read(work);
        row_ = fine ? 0 : row_;
        return fine;
    }

    /// The same for work that only reads. Its success does not end the waits: a full disk can still be read.
    template <class Work>
    bool read(Work&& work) {
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

    /// Whether the store may be used again.
    [[nodiscard]] bool is_due(steady::time_point now) const noexcept { return row_ == 0 || now >= until_; }
    [[nodiscard]] steady::time_point next() const noexcept { return until_; }
    [[nodiscard]] std::size_t total() const noexcept { return total_; }

  private:
    void note(std::string_view error, std::string_view text = {}) {
        row_ += 1;
        total_ += 1;
        // Workers that failed together, in one process or in several, should not return together.
        const id whose{.high = seed_, .low = total_};
        until_ = steady::now() + *delay_after(waits_, whose, row_);
        events_.on({.what = event_kind::store_error,
                    .at = clock_(),
                    .queue = source_.queue,
                    .worker = source_.worker,
                    .error = error,
                    .text = source_.exception_text ? text : std::string_view{},
                    .attempt = row_});
    }

    backoff waits_;
    const clock& clock_;
    const event_reporter& events_;
    source source_;
    std::uint64_t seed_;    ///< of the jitter
    std::uint32_t row_ = 0; ///< failures in a row
    std::size_t total_ = 0;
    steady::time_point until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/worker_options.hpp
// The options of a worker: for all its queues, and per queue.

namespace vouch {
inline namespace v0 {

struct worker_options {
    std::string name = "worker"; ///< who claims; shown to operators
    /// What the worker logs to stderr, unless an observer writes a log.
    log_level log = log_level::warning;
    bool exception_text = false; ///< whether observers and the log see it; it may contain personal data
    /// No entry is late by more than this, even if every wake-up is lost.
    duration poll_interval = std::chrono::seconds{1};
    /// How long an outcome may wait so that others can share its commit.
    duration settle_within = std::chrono::milliseconds{5};
    /// How long the worker may hold back a claim or an outcome while producers keep adding work, so that its commits are
    /// fewer and leave the store to them. It never holds back if no work was added since its last commit.
    duration gather_within = std::chrono::milliseconds{5};
    /// How long a claimed entry may wait for a free thread. Entries with short handlers are claimed by the batch, entries
    /// with long ones one by one, so that no entry waits while another worker is idle. Claims that wait longer than this
    /// are handed back.
    duration look_ahead = std::chrono::milliseconds{20};
    /// How long a stop waits for running handlers. The claims of those that still run are left to their leases. Unset:
    /// a stop waits for all handlers.
    std::optional<duration> stop_within{};
    /// The waits between tries while the store or a hook fails.
    exponential store_backoff{.base = std::chrono::milliseconds{20}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// How many times in a row a stop tries to settle the remaining outcomes while the store or a hook fails and no
    /// handler runs.
    int stop_tries = 5;
    duration purge_every = std::chrono::seconds{10}; ///< how often retention is applied to a queue
    std::size_t purge_limit = 200;                   ///< entries removed per commit
};

struct queue_options {
    std::string queue{};
    std::size_t concurrency = 1;              ///< handlers at a time
    std::size_t batch_size = 200;             ///< entries per commit, and the most that wait for a thread
    duration lease = std::chrono::minutes{5}; ///< how long a claim outlives a worker that has died
    bool extend_leases = true; ///< while a handler runs; if not, the lease must be longer than a batch takes
    retry_policy retry{};      ///< for routes and entries without a policy of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic fits no route
    vouch::retention retention{};                 ///< which ended entries are removed, and when
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/worker_report.hpp
// What a run of a worker did, in numbers.

namespace vouch {
inline namespace v0 {

struct worker_report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another worker had taken over the claim
    std::size_t unsettled = 0; ///< outcomes that could not be stored; the entries stay claimed until their leases end
    std::size_t lost = 0;      ///< claims that another worker took over while this one held them
    std::size_t abandoned = 0; ///< handlers that were still running after `stop_within`
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

// ---- vouch/run/detail/queue_run.hpp
// One queue during one run of a worker: the loop of the thread that uses the store, and the loop of the threads that
// call handlers, side by side. They meet in `in_flight`.
//
//   claim loop     claims as much as the handler threads can take, settles what they have finished (together, and with
//                  the next claim, in one commit), extends leases, and waits until something is due
//   handler loop   takes a claim, or several of a batch route, calls the handler, adds the completions
//
// Wake-ups are hints: they end a wait early, and nothing relies on them.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class queue_run {
  public:
    /// All arguments must outlive the run.
    queue_run(const outbox<Store>& from, phases<Store>& through, const worker_options& all, const queue_options& mine,
              exclusion& among)
        : outbox_(from), phases_(through), all_(all), mine_(mine), exclusion_(among),
          member_(among.join([this] { interrupt(); })), batch_max_(from.store().capabilities().limits.batch_max),
          retry_(all.store_backoff, from.clock(), through.events(), {mine.queue, all.name, all.exception_text}),
          held_(all.store_backoff, mine.lease), pacing_(all.poll_interval), gathering_(all.gather_within),
          entries_per_call_max_(std::min(through.largest_batch(), mine.batch_size)) {}

    /// Wakes the claim loop: a handler has finished, a thread is idle, or a stop was requested.
    void interrupt() noexcept { wait_.interrupt(); }
    /// Starts no further handler and asks the running ones to stop.
    void close() { in_flight_.close(); }

    // The loops.

    /// Claims and settles until a stop is requested. Throws errors that no repeat can cure. Call `finish` afterwards,
    /// in either case.
    void claim_loop(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            listen();
            const auto now = steady::now();
            if (retry_.is_due(now)) {
                retry_.attempt([&] { pass(now); });
            }
            wait(stop);
        }
    }

    /// Calls handlers until `close`.
    void handler_loop() {
        while (auto call = in_flight_.take([&] { interrupt(); })) {
            const auto start = steady::now();
            auto done = handle(*call);
            if (in_flight_.finish(*call, std::move(done), steady::now() - start, mine_.batch_size)) {
                interrupt();
            }
        }
    }

    /// Ends the claim loop: starts nothing new, waits until running handlers have finished or `deadline` has passed,
    /// and settles what they return.
    void finish(std::optional<steady::time_point> deadline) {
        in_flight_.close();
        for (int tries = all_.stop_tries;;) {
            const bool is_last = in_flight_.size().running == 0; // nothing more will be finished
            if (retry_.is_due(steady::now())) {
                const auto failures_before = held_.failures();
                const bool fine = try_to_settle(is_last) && held_.failures() <= failures_before;
                tries = !is_last ? all_.stop_tries : fine ? tries : tries - 1;
            }
            const auto left = in_flight_.size();
            const bool is_unsettled = left.finished > 0 || !batch_.empty() || !held_.empty();
            if (left.running == 0 && (!is_unsettled || tries == 0)) {
                break; // all is settled; or the store keeps failing, and the rest is left to its leases
            }
            if (deadline && steady::now() >= *deadline) {
                break;
            }
            if (left.finished == 0 || !batch_.empty() || !retry_.is_due(steady::now())) {
                wait_.wait(until_settling(left, deadline));
            }
        }
        give_up();
        exclusion_.leave(member_, steady::now());
    }

    /// The final report. Call it after `finish`.
    [[nodiscard]] worker_report done() const noexcept {
        auto out = done_;
        out.store_errors = retry_.total();
        return out;
    }

  private:
    using access = exclusion::access;
    using batch = typename phases<Store>::batch;

    /// Calls the handler. Returns nothing if that is impossible.
    [[nodiscard]] batch handle(handler_call<Store>& call) const {
        auto& first = call.claims.front();
        try {
            batch out(1);
            if (first.unrecorded) {
                out[0] = phases_.convert_record_failure(std::move(*first.unrecorded));
            } else if (call.claims.size() == 1) {
                out[0] = phases_.handle(std::move(first.entry), first.stop.get_token());
            } else {
                std::vector<claimed_entry<Store>> some;
                some.reserve(call.claims.size());
                for (auto& c : call.claims) {
                    some.push_back({std::move(c.entry), c.stop.get_token()});
                }
                out = phases_.handle_together(std::move(some), call.stop.get_token());
            }
            return out;
        } catch (...) { // there is no memory even for a failed attempt
            for (const auto& t : call.tickets) {
                report_unsettled(t.id, "full");
            }
            return {};
        }
    }

    // One pass of the claim loop.

    /// Reads the wake-up counter before anything else, so that no wake-up falls between a look and the wait.
    void listen() {
        if constexpr (waking_store<Store>) {
            listens_ = false;
            if (retry_.is_due(steady::now())) {
                retry_.read([&] {
                    seen_ = outbox_.store().wakes(mine_.queue);
                    listens_ = true;
                });
            }
        }
    }

    void pass(steady::time_point now) {
        extend_leases(now);
        const bool hands_back = is_stuck(in_flight_.size(), now);
        if (hands_back) {
            in_flight_.hand_back_unstarted();
            entries_per_call_ = std::max<std::size_t>(entries_per_call_ / 2, 1);
        }
        const auto flying = in_flight_.size();
        const bool held_claims = holds_claims();
        plan_claims(flying, now);
        is_gathering_ = !pacing_.was_full() && listens_ && gathering_.holds(seen_, now);
        const bool settles = hands_back || (flying.finished > 0 && is_ripe(flying, now));
        const bool claims = (settles || !is_gathering_) && is_claim_due(now);
        if (batch_.empty() && flying.finished > 0 && (claims || settles)) {
            batch_ = in_flight_.collect();
        }
        held_.move_due(batch_, batch_max_, now);
        if (!batch_.empty()) {
            settle_and_claim(claims, now);
        } else if (claims) {
            auto got = phases_.claim(plan_);
            gathering_.committed(now, steady::now());
            start(std::move(got), now);
        }
        if (entries_per_call_max_ > 1 && !can_fill_batches(in_flight_.size(), now)) {
            in_flight_.end_waits();
        }
        if (!holds_claims()) {
            leave_exclusion(held_claims, now);
        }
    }

    /// In one commit, if every outcome is settled.
    void settle_and_claim(bool claims, steady::time_point now) {
        auto settled = phases_.settle(batch_, claims ? &plan_ : nullptr, false);
        gathering_.committed(now, steady::now());
        done_ += settled.report;
        sort_out(now, true);
        if (settled.claims) {
            start(std::move(*settled.claims), now);
        } else {
            report_polled(0, now);
        }
    }

    /// Whether claims wait for threads that have all been busy for longer than the look-ahead.
    [[nodiscard]] bool is_stuck(const in_flight_size& flying, steady::time_point now) const noexcept {
        return flying.unstarted > 0 && is_slow(flying, now);
    }
    [[nodiscard]] bool is_slow(const in_flight_size& flying, steady::time_point now) const noexcept {
        return flying.calls >= mine_.concurrency && now - flying.started_last >= all_.look_ahead;
    }
    [[nodiscard]] bool is_ripe(const in_flight_size& flying, steady::time_point now) const {
        return flying.finished >= mine_.batch_size || (flying.unfinished() == 0 && !is_gathering_) ||
               now - flying.finished_since >= all_.settle_within;
    }

    /// Outcomes that a hook holds up do not count: they may wait for days, and their handlers have ended.
    [[nodiscard]] bool holds_claims() const {
        const auto flying = in_flight_.size();
        return flying.unfinished() + flying.finished + batch_.size() > 0;
    }

    /// Plans how much to claim, as far as the worker's other queues allow.
    void plan_claims(const in_flight_size& flying, steady::time_point now) {
        access_ = exclusion_.ask(member_, holds_claims(), now);
        plan_ = {};
        if (access_.access == access::alone) {
            plan_.limit = holds_claims() ? 0 : 1;
        } else if (access_.access == access::open && held_.size() < mine_.batch_size) {
            plan_ = {.limit = room_for_claims(flying, now), .rule = claim_plan::lapsed::handed_back};
            if (access_.until) {
                // A short time only, because another process may be able to handle them alone.
                const auto wait = std::min<steady::duration>(*access_.until - now, std::chrono::seconds{1});
                plan_.until = later(outbox_.now(), std::chrono::ceil<duration>(wait));
            }
        }
    }

    [[nodiscard]] bool is_claim_due(steady::time_point now) {
        pacing_.forget_due();
        return plan_.limit > 0 &&
               pacing_.is_due([&] { return outbox_.store().next_due(mine_.queue); }, outbox_.clock(), now);
    }

    /// How many more claims the threads can take: one call of a handler per idle thread, and what a thread gets through
    /// within the look-ahead. A claim is worth a commit only if a thread waits for it or there is room for several.
    [[nodiscard]] std::size_t room_for_claims(const in_flight_size& flying, steady::time_point now) const noexcept {
        auto ahead = std::size_t{0};
        if (flying.measured && flying.calling <= all_.look_ahead && !is_slow(flying, now)) {
            const auto each = std::max<steady::duration>(flying.handling, std::chrono::microseconds{1});
            const auto fit = static_cast<std::uint64_t>(std::max<steady::duration>(all_.look_ahead, {}) / each);
            ahead = static_cast<std::size_t>(std::min<std::uint64_t>(fit * mine_.concurrency, mine_.batch_size));
        }
        const auto idle = mine_.concurrency - std::min(mine_.concurrency, flying.calls);
        const auto wanted = std::min(flying.running + idle * entries_per_call_ + ahead, batch_max_);
        const auto room = wanted - std::min(wanted, flying.unfinished());
        return flying.unstarted == flying.waiting || room >= ahead / 2 ? room : 0;
    }

    /// Gives the claims of a pass to the handler threads.
    void start(claims got, steady::time_point before) {
        auto& claimed = got.entries;
        report_polled(claimed.size(), before);
        if (claimed.empty() && !got.hands_back) {
            pacing_.missed(steady::now());
            return;
        }
        const bool was_alone = access_.access == access::alone;
        pacing_.claimed(claimed.size() == plan_.limit && !was_alone && !got.hands_back);
        if (got.hands_back) {
            exclusion_.want(member_, before);
        }
        if (claimed.size() == plan_.limit) {
            entries_per_call_ = std::min(entries_per_call_ * 2, entries_per_call_max_);
        }
        done_.claimed += claimed.size();
        const bool is_lapsed = !claimed.empty() && has_lapsed(claimed.front());
        in_flight_.put(
            std::move(claimed), mine_.extend_leases ? before + mine_.lease / 3 : steady::time_point::max(),
            [&](const entry& e) { return phases_.batch_of(e); },
            [&, now = outbox_.now()](const entry& e, const batch_options& b) { return wait_of(e, b, now); });
        if (was_alone) {
            is_lapsed ? exclusion_.want(member_, before) : exclusion_.leave(member_, before);
        }
    }

    /// How long a claim may wait for others to share its call. The wait of a batch counts from the time its entry was due,
    /// so that claims that are handed back, and claimed again, do not wait anew.
    [[nodiscard]] duration wait_of(const entry& e, const batch_options& shared, time_point now) const noexcept {
        const auto longest = mine_.extend_leases ? shared.wait : std::min(shared.wait, mine_.lease / 3);
        if (e.due_at >= now) {
            return longest;
        }
        return e.due_at <= now - longest ? duration::zero() : longest - (now - e.due_at);
    }

    void leave_exclusion(bool held_claims, steady::time_point now) {
        if (access_.access == access::alone) {
            exclusion_.leave(member_, now);
            interrupt();
        } else if (access_.access == access::closed && held_claims) {
            interrupt(); // the next pass tells the other queues that this one holds nothing any more
        }
    }

    /// Distributes what a settle has left: outcomes that a hook holds up wait; a failed `record` is for a handler
    /// thread to convert, if there still is one.
    void sort_out(steady::time_point now, bool has_threads) {
        batch left;
        for (auto& h : batch_) {
            if (h.record_failure && has_threads) {
                in_flight_.put_back(std::move(h), mine_.extend_leases ? now : steady::time_point::max());
            } else if (!h.result) {
                left.push_back(std::move(h));
            }
        }
        batch_.clear();
        held_.keep(std::move(left), now);
    }

    void extend_leases(steady::time_point now) {
        done_ += held_.extend_leases(phases_, now);
        const auto tickets = in_flight_.to_renew(now);
        for (std::size_t at = 0; at < tickets.size(); at += batch_max_) {
            const auto some = std::span(tickets).subspan(at, std::min(batch_max_, tickets.size() - at));
            const auto verdicts =
                transact(outbox_.store(), [&](auto& tx) { return tx.extend(some, outbox_.now(), mine_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (verdicts[i] != verdict::applied) {
                    lose(some[i]);
                }
            }
        }
        // Not reached if that throws: the next pass tries again before the leases end.
        in_flight_.renewed(now, now + mine_.lease / 3);
    }

    void lose(const ticket& lost) {
        using loss = typename in_flight<Store>::loss;
        const auto what = in_flight_.lose(lost);
        if (what != loss::of_none) {
            done_.lost += 1;
            phases_.events().on({.what = event_kind::lease_lost,
                                 .at = outbox_.now(),
                                 .queue = mine_.queue,
                                 .worker = all_.name,
                                 .tag = what == loss::of_unstarted ? "unstarted" : "",
                                 .id = lost.id});
        }
    }

    // Waiting between passes.

    void wait(const std::stop_token& stop) {
        const auto now = steady::now();
        const auto flying = in_flight_.size();
        const bool wants_claims = retry_.is_due(now) && wants_more(flying, now);
        const auto until = next_pass(flying, wants_claims, now);
        if (stop.stop_requested() || until <= now) {
            return;
        }
        if constexpr (waking_store<Store>) {
            if (wants_claims && listens_ && !is_gathering_) {
                retry_.read([&] { wait_.wait(outbox_.store(), mine_.queue, seen_, until - now); });
                return;
            }
        }
        wait_.wait(until - now);
    }

    [[nodiscard]] steady::time_point next_pass(const in_flight_size& flying, bool wants_claims,
                                               steady::time_point now) const {
        const auto latest = now + all_.poll_interval;
        if (!retry_.is_due(now)) {
            return std::min(latest, retry_.next());
        }
        auto until = std::min(latest, flying.renew_at);
        if (flying.finished > 0) {
            until = std::min(
                until, flying.unfinished() == 0 && !is_gathering_ ? now : flying.finished_since + all_.settle_within);
        }
        if (flying.unstarted > 0 && flying.calls >= mine_.concurrency) {
            until = std::min(until, flying.started_last + all_.look_ahead);
        }
        if (!held_.empty()) {
            until = std::min(until, held_.next());
        }
        if (access_.access == access::closed && access_.until) {
            until = std::min(until, *access_.until);
        }
        if (is_gathering_) {
            return std::min(until, gathering_.next());
        }
        return wants_claims ? std::min(until, pacing_.next(now)) : until;
    }

    [[nodiscard]] bool wants_more(const in_flight_size& flying, steady::time_point now) const noexcept {
        if (access_.access == access::open) {
            return held_.size() < mine_.batch_size && room_for_claims(flying, now) > 0;
        }
        return plan_.limit > 0;
    }

    /// Whether claims that wait for others to share their call may still get some before a thread could start them.
    [[nodiscard]] bool can_fill_batches(const in_flight_size& flying, steady::time_point now) const noexcept {
        if (access_.access != access::open || held_.size() >= mine_.batch_size) {
            return false;
        }
        return flying.unstarted > flying.waiting || flying.calls >= mine_.concurrency ||
               room_for_claims(flying, now) > 0;
    }

    // The end.

    /// Errors have been reported by then, and cannot stop the end. While handlers run, this thread extends their leases
    /// and must not call a handler's `ended`.
    [[nodiscard]] bool try_to_settle(bool is_last) {
        try {
            return retry_.attempt([&] {
                const auto now = steady::now();
                extend_leases(now);
                if (batch_.empty()) {
                    batch_ = in_flight_.collect();
                }
                held_.move_due(batch_, batch_max_, now);
                if (!batch_.empty()) {
                    done_ += phases_.settle(batch_, nullptr, is_last).report;
                    sort_out(now, false);
                }
            });
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] steady::duration until_settling(const in_flight_size& flying,
                                                  std::optional<steady::time_point> deadline) const {
        const auto now = steady::now();
        auto until = std::min(now + all_.poll_interval, deadline.value_or(steady::time_point::max()));
        if (!retry_.is_due(now)) {
            until = std::min(until, retry_.next());
        } else {
            until = std::min(until, flying.renew_at);
            until = held_.empty() ? until : std::min(until, held_.next());
        }
        return std::max(until - now, steady::duration::zero());
    }

    /// Reports results that were not reported yet. All other claims are left to their leases.
    void give_up() {
        for (const auto& left : in_flight_.abandon()) {
            done_.abandoned += 1;
            report_unsettled(left.id, "still_running");
        }
        auto finished = in_flight_.collect(); // after that, nothing more is finished
        done_ += phases_.report_all(batch_);
        auto held = held_.take_all();
        for (auto* const some : {&batch_, &held, &finished}) {
            for (const auto& left : *some) {
                if (!left.result) {
                    done_.unsettled += 1;
                    report_unsettled(left.entry.id, left.held_up.empty() ? "store_failed" : left.held_up);
                }
            }
            some->clear();
        }
    }

    // Events.

    /// The claim was given up. The entry is claimed again when its lease ends.
    void report_unsettled(const id& which, std::string_view error) const {
        phases_.events().on({.what = event_kind::unsettled,
                             .at = outbox_.now(),
                             .queue = mine_.queue,
                             .worker = all_.name,
                             .error = error,
                             .id = which});
    }

    void report_polled(std::size_t claimed, steady::time_point since) const {
        phases_.events().on({.what = event_kind::polled,
                             .at = outbox_.now(),
                             .queue = mine_.queue,
                             .worker = all_.name,
                             .count = claimed,
                             .took = std::chrono::duration_cast<duration>(steady::now() - since)});
    }

    const outbox<Store>& outbox_;
    phases<Store>& phases_;
    const worker_options& all_;
    const queue_options& mine_;
    exclusion& exclusion_;
    exclusion::member member_;
    std::size_t batch_max_;

    in_flight<Store> in_flight_{};
    interruptible_wait wait_{};
    store_retry retry_;
    held_outcomes<Store> held_;
    claim_pacing pacing_;
    gathering gathering_;
    std::size_t entries_per_call_max_;                     ///< of the largest batch; 1 without batch routes
    std::size_t entries_per_call_ = entries_per_call_max_; ///< fewer if threads did not take what was claimed for them
    batch batch_{}; ///< being settled; settled again, whole, while the store fails
    worker_report done_{};

    exclusion::answer access_{}; ///< of the last pass
    claim_plan plan_{};          ///< of the last pass
    std::uint64_t seen_ = 0;     ///< the wake-up counter
    bool listens_ = false;
    bool is_gathering_ = false; ///< the last pass held back what could wait
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/sweeper.hpp
// Applies a queue's retention in the background: removes ended entries, a bounded number per commit. After each commit
// it pauses four times as long as the commit took, so that claims and settles get their turns.
//
// Used by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class sweeper {
  public:
    using steady = std::chrono::steady_clock;

    /// All arguments must outlive the sweeper.
    sweeper(const outbox<Store>& from, const event_reporter& events, const worker_options& all, const queue_options& of)
        : outbox_(from), events_(events), all_(all), queue_(of),
          retry_(all.store_backoff, from.clock(), events, {of.queue, all.name, all.exception_text}) {}

    [[nodiscard]] static bool has_work(const retention& keeps) noexcept {
        const time_point any{};
        return keeps.succeeded.before(any) || keeps.dead.before(any);
    }

    void interrupt() noexcept { wait_.interrupt(); }

    /// Sweeps until a stop is requested. Throws errors that no repeat can cure.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            sweep(state::succeeded, queue_.retention.succeeded, stop);
            sweep(state::dead, queue_.retention.dead, stop);
            if (!stop.stop_requested()) {
                wait_.wait(all_.purge_every);
            }
        }
    }

    [[nodiscard]] worker_report done() const noexcept { return {.purged = purged_, .store_errors = retry_.total()}; }

  private:
    void sweep(state which, const purge_rule& rule, const std::stop_token& stop) {
        // Read once: entries that end from now on are left to the next sweep, or a busy queue would never let this end.
        const auto before = rule.before(outbox_.now());
        for (bool more = before.has_value(); more && !stop.stop_requested();) {
            const auto start = steady::now();
            const bool fine = retry_.attempt([&] { more = purge_some(which, *before, start); });
            if (!fine) {
                wait_.wait(retry_.next() - steady::now());
            } else if (more) {
                wait_.wait(std::max<steady::duration>(4 * (steady::now() - start), std::chrono::milliseconds{1}));
            }
        }
    }

    /// Returns whether there may be more.
    [[nodiscard]] bool purge_some(state which, time_point before, steady::time_point start) {
        const purge_request some{.queue = queue_.queue, .before = before, .limit = all_.purge_limit, .state = which};
        const auto gone = transact(outbox_.store(), [&](auto& tx) { return tx.purge(some); });
        purged_ += gone;
        if (gone > 0) {
            events_.on({.what = event_kind::purged,
                        .at = outbox_.now(),
                        .queue = queue_.queue,
                        .worker = all_.name,
                        .count = gone,
                        .took = std::chrono::duration_cast<duration>(steady::now() - start)});
        }
        return gone > 0; // fewer than the limit may only mean that the store looks at so many entries per call
    }

    const outbox<Store>& outbox_;
    const event_reporter& events_;
    const worker_options& all_;
    const queue_options& queue_;
    store_retry retry_;
    interruptible_wait wait_{};
    std::size_t purged_ = 0;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/worker.hpp
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

#endif // VOUCH_SINGLE_HEADER_WORKER
