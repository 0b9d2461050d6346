// SPDX-License-Identifier: MIT
// A broker in memory, for tests of services that talk through one.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_TESTING_BROKER
#define VOUCH_SINGLE_HEADER_TESTING_BROKER

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/relay.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// ---- vouch/testing/broker.hpp
// A broker in memory, for tests of services that talk through one: queues bound to topic patterns, a publisher, a
// consumer, and faults on request. Its publisher and consumer obey the same rules as those of real brokers.
//
//   vouch::testing::broker broker;
//   broker.bind("mail.#", "mailer");
//   vouch::testing::broker_publisher to(broker);
//   vouch::testing::broker_consumer from(broker, "mailer");
//
// A fault happens every n-th time, counted over all calls, or with a seed at random, one time in n. Both ways a test with
// one thread sees the same faults each time.
//
// Any number of threads may use a broker. It must outlive its publishers and consumers.

namespace vouch {
inline namespace v0 {
namespace testing {

/// How often a fault happens: 3 means every third time, 0 never.
struct broker_faults {
    std::size_t lost_confirmation = 0; ///< the message arrives, and nobody says so
    std::size_t lost_message = 0;      ///< the message does not arrive, and nobody says so
    std::size_t duplicate = 0;         ///< the message arrives twice
    std::size_t reorder = 0;           ///< the message overtakes the one before it, unless that is of the same lane
    std::size_t disconnect = 0;        ///< a call of `publish`, `receive` or `acknowledge` ends with a lost connection
    std::uint64_t seed = 0;            ///< 0: exactly every n-th time
};

class broker {
  public:
    explicit broker(broker_faults faults = {}, std::size_t message_max = 128 * 1024 * 1024)
        : faults_(faults), message_max_(message_max) {}
    broker(const broker&) = delete;
    broker& operator=(const broker&) = delete;

    /// Messages whose topic fits `pattern` go to `queue`. A queue must be bound before its consumers are made.
    void bind(std::string pattern, std::string queue) {
        const std::lock_guard lock(mutex_);
        queues_[queue];
        bindings_.bind(std::move(pattern), std::move(queue));
    }

    /// The number of messages that wait, and of those that are not acknowledged.
    [[nodiscard]] std::size_t size(const std::string& queue) const {
        const std::lock_guard lock(mutex_);
        const auto& q = queues_.at(queue);
        return q.waiting.size() + q.taken.size();
    }

    /// The messages of a queue that were set aside.
    [[nodiscard]] std::vector<message> set_aside(const std::string& queue) const {
        const std::lock_guard lock(mutex_);
        return queues_.at(queue).set_aside;
    }

    /// Ends every connection: what is not acknowledged is delivered again.
    void disconnect_all() {
        const std::lock_guard lock(mutex_);
        for (auto& [name, q] : queues_) {
            return_taken(q, [](const taken_message&) { return true; });
        }
        changed_.notify_all();
    }

  private:
    friend class broker_publisher;
    friend class broker_consumer;

    struct kept_message {
        vouch::message message{};
        std::uint64_t place = 0; ///< its place in the queue; it goes back there
        bool is_redelivered = false;
    };
    struct taken_message {
        kept_message kept{};
        std::uint64_t tag = 0;
        const void* by = nullptr;
    };
    struct is_one_of {
        std::span<const received> some{};
        [[nodiscard]] bool operator()(const taken_message& t) const {
            return std::any_of(some.begin(), some.end(), [&](const received& r) { return r.tag == t.tag; });
        }
    };
    struct message_queue {
        std::deque<kept_message> waiting{};
        std::vector<taken_message> taken{};
        std::vector<message> set_aside{};
    };

    /// Whether the fault happens this time.
    [[nodiscard]] bool strikes(std::size_t every, std::size_t& count) const noexcept {
        ++count;
        const auto draw =
            faults_.seed == 0 ? count : vouch::detail::mix(count + vouch::detail::mix(faults_.seed + every));
        return every > 0 && draw % every == 0;
    }

    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        const std::lock_guard lock(mutex_);
        std::vector<confirmation> out(messages.size(), {confirmation::kind::unknown, "connection_lost"});
        // A connection that is lost in the middle of a call leaves the rest unsent.
        const auto sent = strikes(faults_.disconnect, calls_) ? messages.size() / 2 : messages.size();
        for (std::size_t i = 0; i < sent; ++i) {
            out[i] = publish_one(messages[i]);
        }
        changed_.notify_all();
        return out;
    }

    [[nodiscard]] confirmation publish_one(const message& m) {
        if (m.payload.size() > message_max_) {
            return {confirmation::kind::refused, "message_too_large"};
        }
        const auto names = bindings_.queues_for(m.topic);
        if (names.empty()) {
            return {confirmation::kind::refused, "unroutable"};
        }
        if (strikes(faults_.lost_message, lost_messages_)) {
            return {confirmation::kind::unknown, "connection_lost"};
        }
        const bool twice = strikes(faults_.duplicate, duplicates_);
        const bool overtakes = strikes(faults_.reorder, reorders_);
        for (const auto& name : names) {
            put(queues_[name], m, overtakes);
            if (twice) {
                put(queues_[name], m, false);
            }
        }
        if (strikes(faults_.lost_confirmation, lost_confirmations_)) {
            return {confirmation::kind::unknown, "connection_lost"};
        }
        return {confirmation::kind::confirmed};
    }

    void put(message_queue& q, const message& m, bool overtakes) {
        q.waiting.push_back({.message = m, .place = ++places_});
        if (overtakes && q.waiting.size() > 1) {
            auto& last = q.waiting[q.waiting.size() - 1];
            auto& before = q.waiting[q.waiting.size() - 2];
            if (m.lane.empty() || before.message.lane != m.lane) {
                std::swap(last.message, before.message);
                std::swap(last.is_redelivered, before.is_redelivered);
            }
        }
    }

    /// Puts what `which` selects back to its place.
    template <class Which>
    static void return_taken(message_queue& q, const Which& which) {
        for (auto& t : q.taken) {
            if (which(t)) {
                t.kept.is_redelivered = true;
                const auto at = std::find_if(q.waiting.begin(), q.waiting.end(),
                                             [&](const kept_message& w) { return w.place > t.kept.place; });
                q.waiting.insert(at, t.kept);
            }
        }
        std::erase_if(q.taken, which);
    }

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    broker_faults faults_;
    std::size_t message_max_;
    bindings bindings_{};
    std::map<std::string, message_queue> queues_{};
    std::uint64_t places_ = 0;
    std::uint64_t tags_ = 0;
    std::size_t calls_ = 0;
    std::size_t lost_confirmations_ = 0;
    std::size_t lost_messages_ = 0;
    std::size_t duplicates_ = 0;
    std::size_t reorders_ = 0;
};

/// Models `vouch::publisher`.
class broker_publisher {
  public:
    explicit broker_publisher(broker& to) noexcept : to_(to) {}
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) { return to_.publish(messages); }

  private:
    broker& to_;
};

/// Models `vouch::consumer`. Its destructor loses the connection, as the death of a process does.
class broker_consumer {
  public:
    /// At most `prefetch` messages are received and not acknowledged. Throws `invalid_argument` if nothing is bound to the
    /// queue.
    broker_consumer(broker& from, std::string queue, std::size_t prefetch = 1000)
        : from_(from), queue_(std::move(queue)), prefetch_(prefetch) {
        const std::lock_guard lock(from_.mutex_);
        if (!from_.queues_.contains(queue_)) {
            throw error(error_kind::invalid_argument,
                        "broker: queue '" + queue_ + "' is bound to no topic; call bind before its consumer is made");
        }
    }
    broker_consumer(const broker_consumer&) = delete;
    broker_consumer& operator=(const broker_consumer&) = delete;
    ~broker_consumer() {
        const std::lock_guard lock(from_.mutex_);
        disconnect();
    }

    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        std::unique_lock lock(from_.mutex_);
        if (is_cancelled_) {
            return {};
        }
        fail_now_and_then();
        auto& q = from_.queues_.at(queue_);
        from_.changed_.wait_for(lock, stop, at_most, [&] { return !q.waiting.empty() && held(q) < prefetch_; });
        std::vector<received> out;
        while (out.size() < limit && !q.waiting.empty() && held(q) < prefetch_ && !stop.stop_requested()) {
            auto taken = std::move(q.waiting.front());
            q.waiting.pop_front();
            out.push_back({.message = taken.message,
                           .malformed = taken.message.id.empty() ? "no_message_id" : "",
                           .source = queue_,
                           .tag = ++from_.tags_,
                           .is_redelivered = taken.is_redelivered});
            q.taken.push_back({.kept = std::move(taken), .tag = from_.tags_, .by = this});
        }
        return out;
    }

    void acknowledge(std::span<const received> some) {
        const std::lock_guard lock(from_.mutex_);
        fail_now_and_then();
        std::erase_if(from_.queues_.at(queue_).taken, broker::is_one_of{some});
        from_.changed_.notify_all();
    }

    void give_back(std::span<const received> some) {
        const std::lock_guard lock(from_.mutex_);
        broker::return_taken(from_.queues_.at(queue_), broker::is_one_of{some});
        from_.changed_.notify_all();
    }

    void set_aside(std::span<const received> some) {
        const std::lock_guard lock(from_.mutex_);
        auto& q = from_.queues_.at(queue_);
        for (const auto& t : q.taken) {
            if (broker::is_one_of{some}(t)) {
                q.set_aside.push_back(t.kept.message);
            }
        }
        std::erase_if(q.taken, broker::is_one_of{some});
        from_.changed_.notify_all();
    }

    /// `receive` takes no more messages than it returns, so there is nothing to return.
    void cancel() {
        const std::lock_guard lock(from_.mutex_);
        is_cancelled_ = true;
    }

  private:
    [[nodiscard]] std::size_t held(const broker::message_queue& q) const {
        return static_cast<std::size_t>(
            std::count_if(q.taken.begin(), q.taken.end(), [&](const auto& t) { return t.by == this; }));
    }

    void disconnect() {
        broker::return_taken(from_.queues_.at(queue_), [&](const auto& t) { return t.by == this; });
        from_.changed_.notify_all();
    }

    void fail_now_and_then() {
        if (from_.strikes(from_.faults_.disconnect, from_.calls_)) {
            disconnect();
            throw error(error_kind::io, "broker: the connection is lost", {.text_code = "connection_lost"});
        }
    }

    broker& from_;
    std::string queue_;
    std::size_t prefetch_;
    bool is_cancelled_ = false;
};

static_assert(publisher<broker_publisher>);
static_assert(consumer<broker_consumer>);

} // namespace testing
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_TESTING_BROKER
