// SPDX-License-Identifier: MIT
// From one store to another through a broker: the relay, the intake, and the concepts that clients of brokers model.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_RELAY
#define VOUCH_SINGLE_HEADER_RELAY

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// ---- vouch/relay/message.hpp
// What travels between two stores through a broker: the parts of an entry that another service needs. A relay makes
// messages from entries, an intake makes entries from messages. Messages of programs that do not use vouch have an id,
// a topic and a payload, and leave the rest empty.

namespace vouch {
inline namespace v0 {

struct message {
    /// The same each time the message is sent. Of a relay: as text the id of the entry, or of the first one if the entry
    /// replaces a dead one.
    std::string id{};
    std::string topic{};   ///< words joined by dots; brokers with routing keys route by it
    std::string payload{}; ///< bytes
    std::string key{};     ///< the entry's dedup key; empty: none
    std::string lane{};    ///< ordering key: messages of one lane arrive in the order of their publication; empty: none
    std::string group{};   ///< the entry's group; empty: none
    id_list trail{};       ///< the emissions that led to this message, oldest first
    header_list headers{}; ///< in the order given; names may repeat
    std::optional<time_point> created_at{};
    std::optional<time_point> expires_at{}; ///< from this time on the message is of no use

    [[nodiscard]] friend bool operator==(const message&, const message&) = default;
};

/// The message that says what the entry says.
[[nodiscard]] inline message message_of(const entry& e) {
    return {.id = to_string(e.id),
            .topic = e.topic,
            .payload = e.payload,
            .key = e.key,
            .lane = e.lane,
            .group = e.group,
            .trail = e.trail,
            .headers = e.headers,
            .created_at = e.created_at,
            .expires_at = e.expires_at};
}

} // namespace v0
} // namespace vouch

// ---- vouch/relay/consumer.hpp
// The contract between an intake and a client of a broker that receives. `backends/rabbitmq` and `backends/kafka` have
// one each; `testing/broker.hpp` has one without a broker. The conformance kit for brokers checks the rules that a
// concept cannot express.

namespace vouch {
inline namespace v0 {

/// A message that has arrived and is not acknowledged yet.
struct received {
    vouch::message message{}; ///< if it is malformed: the parts that could be read
    /// Not empty: why it cannot be read, as an error code. With `message_too_large` the payload is not there, so an intake
    /// sets the message aside.
    std::string malformed{};
    std::string source{};        ///< where it was taken from: a queue, or a topic and a partition
    std::uint64_t tag = 0;       ///< identifies it to its consumer
    bool is_redelivered = false; ///< the broker says that it may have been delivered before
};

/// Receives messages from a broker.
///  1. `receive` returns at most `limit` messages in the order of their arrival. It waits at most `at_most` for the first
///     one, returns early when `stop` is requested, and does not wait for more once it has one.
///  2. A message is delivered again, to this or to another consumer, until it is acknowledged or set aside: after the
///     consumer's death, after a lost connection, after `give_back`.
///  3. `acknowledge` says that these messages are stored. It has no effect for messages of a connection that is lost:
///     they are delivered again.
///  4. `give_back` returns messages to the broker, to be delivered again soon.
///  5. `set_aside` says that these messages can never be stored whole. A broker with dead-letter queues moves them there;
///     for others it is `acknowledge`.
///  6. `cancel` ends the delivery. Messages that have arrived and that `receive` has not returned go back to the broker.
///     After it `receive` returns nothing; what was received before may still be acknowledged or given back.
///  7. The number of messages that have arrived and are not acknowledged is bounded.
///  8. Messages of one lane are received in the order of their publication. What is delivered again comes before what has
///     not been delivered yet.
///  9. A message that cannot be read is returned with a code in `malformed`, and blocks nothing.
/// 10. Faults throw `vouch::error`; after one that `is_transient` the next `receive` connects again.
///
/// A consumer is used by one thread at a time.
template <class C>
concept consumer = requires(C& c, std::size_t limit, duration at_most, const std::stop_token& stop,
                            std::span<const received> some) {
    { c.receive(limit, at_most, stop) } -> std::same_as<std::vector<received>>;
    { c.acknowledge(some) } -> std::same_as<void>;
    { c.give_back(some) } -> std::same_as<void>;
    { c.set_aside(some) } -> std::same_as<void>;
    { c.cancel() } -> std::same_as<void>;
};

} // namespace v0
} // namespace vouch

// ---- vouch/relay/intake_options.hpp
// The options and the report of an intake.

namespace vouch {
inline namespace v0 {

/// What to store for a message: topic, payload, lane, headers, expiry and trail as they are. The group stays behind,
/// because groups are counted within one store.
[[nodiscard]] inline emission emission_of(const message& m) {
    return {.topic = m.topic,
            .payload = m.payload,
            .lane = m.lane,
            .expires_at = m.expires_at,
            .headers = m.headers,
            .trail = m.trail};
}

struct intake_options {
    /// Required. Names the service or the stream that the messages come from. Message ids are unique within it, so the
    /// dedup key of an entry is `source/message id`. Without `/`.
    std::string source{};
    std::string queue{}; ///< the queue that gets the entries; empty: every queue that the outbox binds to the topic
    std::string dead_queue{}; ///< where messages that cannot be stored are dead entries; empty: `queue`, else `source`
    std::size_t batch_size = 200;            ///< messages per commit, at most
    duration wait = std::chrono::seconds{1}; ///< the longest wait for a message; a stop request ends it early
    /// The waits between tries while the store or the broker fails.
    exponential backoff{.base = std::chrono::milliseconds{50}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// What to store for a message. The queue, if it is empty, and the dedup key are filled in. An exception makes the
    /// message a dead entry, with the code of a `reject` or the name of the exception's class.
    std::function<emission(const message&)> map = emission_of;
};

/// What an intake has done.
struct intake_report {
    std::size_t received = 0;
    std::size_t stored = 0;     ///< messages that are entries now
    std::size_t duplicates = 0; ///< messages that had been stored before
    std::size_t dead = 0;       ///< messages that are dead entries now, because they cannot be handled
    std::size_t errors = 0;     ///< failures of the store or the broker that were waited for

    intake_report& operator+=(const intake_report& other) noexcept {
        received += other.received;
        stored += other.stored;
        duplicates += other.duplicates;
        dead += other.dead;
        errors += other.errors;
        return *this;
    }
};

} // namespace v0
} // namespace vouch

// ---- vouch/relay/detail/intake_plan.hpp
// Decides what an intake stores for a message: the drafts of its entries, or one draft that is buried with a code. Every
// draft of a plan is valid, so one bad message cannot keep the others from being stored.

namespace vouch {
inline namespace v0 {
namespace detail {

struct intake_plan {
    std::vector<draft> drafts{};
    std::size_t count = 0;      ///< of its drafts, once they are among those of the batch
    std::string refusal{};      ///< not empty: the one draft is buried with this code
    bool is_incomplete = false; ///< the draft lacks a part that broke a limit; the broker should keep the message
    std::string key{};          ///< of an expired message: its dedup key
    /// Of an expired message: the other queues that have it if it has arrived in time before.
    std::vector<std::string> elsewhere{};
};

class intake_planner {
  public:
    intake_planner(const emitter& from, const intake_options& options, const capabilities& can) noexcept
        : emitter_(from), options_(options), can_(can) {}

    [[nodiscard]] intake_plan operator()(const received& r, time_point now) const {
        if (!r.malformed.empty()) {
            auto out = refused(r.message, error_code(r.malformed), now);
            out.is_incomplete |= r.malformed != no_id; // the consumer could not read a part that is there
            return out;
        }
        if (const auto wrong = wrong_id(r.message.id); !wrong.empty()) {
            return refused(r.message, std::string(wrong), now);
        }
        if (r.message.payload.size() > can_.limits.payload_max) {
            return refused(r.message, "payload_too_large", now);
        }
        if (r.message.expires_at && *r.message.expires_at <= now) {
            auto out = refused(r.message, "expired", now);
            out.key = key_of(r.message);
            out.elsewhere = other_queues_of(r.message, now);
            return out;
        }
        try {
            return {.drafts = drafts_of(r.message, now)};
        } catch (const error& e) {
            const bool is_ours = e.kind() == error_kind::invalid_argument || e.kind() == error_kind::unsupported;
            return refused(r.message, is_ours ? "invalid_message" : std::string(name_of(e.kind())), now);
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the message
        } catch (...) {
            return refused(r.message, caught_exception::current().code, now);
        }
    }

  private:
    static constexpr std::string_view no_id = "no_message_id";

    [[nodiscard]] std::string key_of(const message& m) const { return options_.source + '/' + m.id; }

    /// The code of what is wrong with a message's id; empty if it can be part of a dedup key.
    [[nodiscard]] std::string_view wrong_id(const std::string& id) const {
        if (id.empty()) {
            return no_id;
        }
        if (options_.source.size() + 1 + id.size() > can_.limits.name_max) {
            return "message_id_too_long";
        }
        return is_name(id) ? "" : "invalid_message_id";
    }

    [[nodiscard]] bool is_name(const std::string& text) const {
        try {
            check_required_name({"message", "name"}, text, can_.limits.name_max);
            return true;
        } catch (const error&) {
            return false;
        }
    }

    [[nodiscard]] std::vector<draft> drafts_of(const message& m, time_point now) const {
        auto what = options_.map(m);
        what.key = key_of(m);
        if (what.queue.empty()) {
            what.queue = options_.queue;
        }
        auto drafts = emitter_.drafts_of(std::move(what), now);
        validate(drafts, can_);
        return drafts;
    }

    /// The queues that get the message if it is not too late, except the one for dead entries.
    [[nodiscard]] std::vector<std::string> other_queues_of(message m, time_point now) const {
        m.expires_at.reset();
        std::vector<std::string> out;
        try {
            for (auto& d : drafts_of(m, now)) {
                if (d.queue != dead_queue()) {
                    out.push_back(std::move(d.queue));
                }
            }
        } catch (const std::bad_alloc&) {
            throw;
        } catch (...) { // NOLINT(bugprone-empty-catch): no queue takes it, so none has it
        }
        return out;
    }

    /// Whether a part of the message is there and breaks the rules of names, so that a draft cannot have it.
    [[nodiscard]] bool is_lost(const std::string& name) const { return !name.empty() && !is_name(name); }

    /// Keeps as much of the message as the store takes. A mapping may reject without a code.
    [[nodiscard]] intake_plan refused(const message& m, std::string code, time_point now) const {
        intake_plan out{.refusal = code.empty() ? "rejected" : std::move(code)};
        const bool is_too_large = m.payload.size() > can_.limits.payload_max;
        const bool has_key = wrong_id(m.id).empty();
        out.is_incomplete = is_too_large || (!has_key && !m.id.empty()) || is_lost(m.topic) || is_lost(m.lane);
        draft d{.id = emitter_.fresh_id(),
                .queue = dead_queue(),
                .topic = is_name(m.topic) ? m.topic : "malformed",
                .payload = is_too_large ? std::string{} : m.payload,
                .key = has_key ? key_of(m) : std::string{},
                .due_at = now,
                .trail = m.trail,
                .headers = m.headers};
        try {
            validate(d, can_);
        } catch (const error&) {
            d.trail.clear();
            d.headers.clear();
            out.is_incomplete = true;
        }
        out.drafts.push_back(std::move(d));
        return out;
    }

    [[nodiscard]] const std::string& dead_queue() const noexcept {
        const auto& own = options_.dead_queue;
        return !own.empty() ? own : !options_.queue.empty() ? options_.queue : options_.source;
    }

    const emitter& emitter_;
    const intake_options& options_;
    const capabilities& can_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/relay/intake.hpp
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

// ---- vouch/relay/properties.hpp
// A message's parts as names with values, which is what every broker can carry. An adapter has its own place for id,
// topic and payload; everything else goes through here, so that all brokers carry it in the same way:
//
//   vouch-key, vouch-lane, vouch-group    as they are
//   vouch-trail                           ids joined by commas
//   vouch-created-at, vouch-expires-at    microseconds since 1970, decimal
//   any other name                        a header of the message
//
// A header whose own name begins with `vouch-` travels as `vouch-header-` followed by its name.

namespace vouch {
inline namespace v0 {

namespace detail {

inline constexpr std::string_view property_prefix = "vouch-";
inline constexpr std::string_view escaped_header = "vouch-header-";

[[nodiscard]] inline std::string trail_text(const id_list& trail) {
    std::string out;
    for (const auto& at : trail) {
        if (!out.empty()) {
            out += ',';
        }
        out += to_string(at);
    }
    return out;
}

[[nodiscard]] inline std::optional<id_list> trail_of(std::string_view text) {
    id_list out;
    while (!text.empty()) {
        const auto comma = text.find(',');
        const auto one = id::parse(text.substr(0, comma));
        if (!one) {
            return std::nullopt;
        }
        out.push_back(*one);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return out;
}

[[nodiscard]] inline std::optional<time_point> time_of(std::string_view text) {
    std::int64_t since = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), since);
    if (problem != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return time_point(duration(since));
}

/// Reads one property whose name begins with `vouch-`. Returns whether its value can be read. Names that a later version
/// has added are passed over.
[[nodiscard]] inline bool read_property(std::string_view name, std::string value, message& into) {
    if (name == "vouch-key") {
        into.key = std::move(value);
    } else if (name == "vouch-lane") {
        into.lane = std::move(value);
    } else if (name == "vouch-group") {
        into.group = std::move(value);
    } else if (name == "vouch-trail") {
        auto trail = trail_of(value);
        into.trail = trail ? std::move(*trail) : id_list{};
        return trail.has_value();
    } else if (name == "vouch-created-at") {
        into.created_at = time_of(value);
        return into.created_at.has_value();
    } else if (name == "vouch-expires-at") {
        into.expires_at = time_of(value);
        return into.expires_at.has_value();
    } else if (name.starts_with(escaped_header)) {
        into.headers.emplace_back(name.substr(escaped_header.size()), std::move(value));
    }
    return true;
}

} // namespace detail

/// Everything of a message except id, topic and payload.
[[nodiscard]] inline header_list properties_of(const message& m) {
    header_list out;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) {
            out.emplace_back(name, value);
        }
    };
    const auto add_time = [&](std::string_view name, const std::optional<time_point>& at) {
        if (at) {
            out.emplace_back(name, std::to_string(at->time_since_epoch().count()));
        }
    };
    add("vouch-key", m.key);
    add("vouch-lane", m.lane);
    add("vouch-group", m.group);
    add("vouch-trail", detail::trail_text(m.trail));
    add_time("vouch-created-at", m.created_at);
    add_time("vouch-expires-at", m.expires_at);
    for (const auto& [name, value] : m.headers) {
        const bool is_ambiguous = std::string_view(name).starts_with(detail::property_prefix);
        out.emplace_back(is_ambiguous ? std::string(detail::escaped_header) + name : name, value);
    }
    return out;
}

/// Sets those parts of a message. Returns false if one of the values cannot be read; that part is then left empty.
[[nodiscard]] inline bool read_properties(header_list properties, message& into) {
    bool is_readable = true;
    for (auto& [name, value] : properties) {
        if (!std::string_view(name).starts_with(detail::property_prefix)) {
            into.headers.emplace_back(std::move(name), std::move(value));
        } else if (!detail::read_property(name, std::move(value), into)) {
            is_readable = false;
        }
    }
    return is_readable;
}

} // namespace v0
} // namespace vouch

// ---- vouch/relay/publisher.hpp
// The contract between a relay and a client of a broker that sends. `backends/rabbitmq` and `backends/kafka` have one
// each; `testing/broker.hpp` has one without a broker. The conformance kit for brokers checks the rules that a concept
// cannot express.

namespace vouch {
inline namespace v0 {

/// The broker's answer to one message.
struct confirmation {
    enum class kind : std::uint8_t {
        confirmed, ///< the broker keeps the message, and a restart of the broker does not lose it
        refused,   ///< the broker will never take this message: too large, not routable, not permitted
        unknown,   ///< the message may have arrived or not: it has to be sent again
    };
    confirmation::kind what = kind::unknown;
    std::string code{}; ///< why it is not confirmed, as an error code: a word, never a payload or a text of the broker

    [[nodiscard]] friend bool operator==(const confirmation&, const confirmation&) = default;
};

[[nodiscard]] constexpr std::string_view name_of(confirmation::kind kind) noexcept {
    switch (kind) {
    case confirmation::kind::confirmed: return "confirmed";
    case confirmation::kind::refused: return "refused";
    case confirmation::kind::unknown: return "unknown";
    }
    return "?";
}

/// Sends messages to a broker.
///  1. `publish` returns one confirmation per message, in order, and waits for them no longer than a time that the
///     publisher's options set.
///  2. `confirmed` is said only after the broker has said so, and only if the message will reach a consumer: a message
///     that no queue takes is `refused`.
///  3. `refused` is said only of a message that was not delivered, and that would be refused again.
///  4. Everything else is `unknown`: a lost connection, a time-out, a broker that is starting or has no room. A call that
///     throws says `unknown` of all messages; a wrong password, for example, throws `vouch::error`. After an error that
///     `is_transient` the broker is taken to be away. After any other exception, which may be about one message, the
///     relay sends the messages again one by one, until several in a row throw.
///  5. A refused message does not change what is said of the others.
///  6. Messages of one lane that are confirmed are kept in the order of their publication, within a call and from one call
///     to the next.
///  7. After a lost connection the next call connects again. Nothing of the old connection is taken for an answer.
///  8. Every part of the message arrives as it was given (`properties.hpp`).
///
/// Any number of threads may call `publish`; calls may wait for each other.
///
/// Not required: that a message arrives once. A message whose confirmation is lost is sent again with the same id, and the
/// intake on the other side stores it once.
template <class P>
concept publisher = requires(P& p, std::span<const message> messages) {
    { p.publish(messages) } -> std::same_as<std::vector<confirmation>>;
};

} // namespace v0
} // namespace vouch

// ---- vouch/relay/detail/publishing.hpp
// Publishes the messages of a batch of entries, and turns the broker's confirmations into outcomes.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The messages to send, and the outcomes of entries for which none could be made.
struct made_messages {
    std::vector<message> messages{};
    std::vector<std::size_t> senders{}; ///< for each message, its entry's place in the batch
    std::vector<std::optional<outcome>> failed{};
};

/// The retry has no time: when, and whether at all, is for the policy to say.
[[nodiscard]] inline outcome failed_attempt(delivery& d, const caught_exception& why) {
    d.explain(why.text);
    if (why.is_permanent) {
        return bury{.error = why.code};
    }
    return retry{.error = why.code};
}

template <class Make>
[[nodiscard]] made_messages make_messages(delivery_batch& batch, const Make& make) {
    made_messages out;
    out.failed.resize(batch.size());
    out.messages.reserve(batch.size()); // both, so that memory that runs out leaves no message without its sender
    out.senders.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        try {
            out.messages.push_back(make(batch[i].entry()));
            out.senders.push_back(i);
        } catch (...) {
            out.failed[i] = failed_attempt(batch[i], caught_exception::current());
        }
    }
    return out;
}

/// One call of a publisher.
struct publish_call {
    std::vector<confirmation> answers{};
    std::string text{}; ///< of what it has thrown
    bool has_thrown = false;
    bool may_be_a_message = false; ///< it has thrown, and not because the broker is away
};

/// A publisher that throws says `unknown` of every message. Its error's own code tells an operator more than its kind.
template <publisher Publisher>
[[nodiscard]] publish_call publish_together(Publisher& to, std::span<const message> messages) {
    publish_call out;
    const auto unknown = [&](std::string code) {
        out.answers.assign(messages.size(), confirmation{confirmation::kind::unknown, std::move(code)});
    };
    try {
        out.answers = to.publish(messages);
        if (out.answers.size() != messages.size()) {
            unknown("wrong_confirmation_count");
        }
    } catch (const error& e) {
        const auto own = e.text_code();
        unknown(own.empty() ? "broker_" + std::string(name_of(e.kind())) : std::string(own));
        out.text = caught_exception::text_of(e);
        out.has_thrown = true;
        out.may_be_a_message = !e.is_transient();
    } catch (...) {
        auto why = caught_exception::current();
        unknown(std::move(why.code));
        out.text = std::move(why.text);
        out.has_thrown = out.may_be_a_message = true;
    }
    return out;
}

/// After so many messages in a row for which the publisher throws, the fault is taken for the broker's.
inline constexpr int throwing_messages_max = 5;

/// A publisher that throws because of one message would throw for as long as that is in the batch. So the messages are
/// sent again, each alone, and only those that it throws for stay unknown. If the broker is away, the rest is not tried.
/// A message is not sent after one of its lane that may not have arrived.
template <publisher Publisher>
void publish_one_by_one(Publisher& to, const made_messages& made, delivery_batch& batch,
                        std::vector<confirmation>& answers) {
    std::vector<std::string_view> waiting; // lanes
    int throwing = 0;                      // in a row
    for (std::size_t i = 0; i < made.messages.size() && !batch.stop().stop_requested(); ++i) {
        const auto& one = made.messages[i];
        if (!one.lane.empty() && std::find(waiting.begin(), waiting.end(), one.lane) != waiting.end()) {
            answers[i].code = "lane_waits";
            continue;
        }
        auto call = publish_together(to, std::span(&one, 1));
        answers[i] = std::move(call.answers.front());
        batch[made.senders[i]].explain(std::move(call.text));
        if (answers[i].what == confirmation::kind::unknown) {
            waiting.push_back(one.lane);
        }
        throwing = call.has_thrown ? throwing + 1 : 0;
        if (throwing == throwing_messages_max || (call.has_thrown && !call.may_be_a_message)) {
            return;
        }
    }
}

template <publisher Publisher>
[[nodiscard]] std::vector<confirmation> confirmations_of(Publisher& to, const made_messages& made,
                                                         delivery_batch& batch) {
    auto all = publish_together(to, made.messages);
    for (const auto i : made.senders) {
        batch[i].explain(all.text);
    }
    if (all.may_be_a_message && made.messages.size() > 1) {
        publish_one_by_one(to, made, batch, all.answers);
    }
    return std::move(all.answers);
}

/// Publishes, and returns one outcome per entry: `confirmed(delivery)` for what the broker has confirmed,
/// `unconfirmed(delivery, code)` for what it may have or not, a bury for what it refuses.
template <publisher Publisher, class Make, class Confirmed, class Unconfirmed>
[[nodiscard]] std::vector<outcome> publish_batch(Publisher& to, delivery_batch& batch, const Make& make,
                                                 const Confirmed& confirmed, const Unconfirmed& unconfirmed) {
    auto made = make_messages(batch, make);
    const auto answers = made.messages.empty() ? std::vector<confirmation>{} : confirmations_of(to, made, batch);
    auto& outcomes = made.failed;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        auto& d = batch[made.senders[i]];
        auto& out = outcomes[made.senders[i]];
        const auto& code = answers[i].code;
        switch (answers[i].what) {
        case confirmation::kind::confirmed: out = confirmed(d); break;
        case confirmation::kind::refused: out = bury{.error = code.empty() ? "refused" : code}; break;
        case confirmation::kind::unknown: out = unconfirmed(d, code.empty() ? "unconfirmed" : code); break;
        }
    }
    std::vector<outcome> out;
    out.reserve(outcomes.size());
    for (auto& o : outcomes) {
        out.push_back(std::move(*o));
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/relay/relay.hpp
// Sends the entries of a queue to a broker. A relay is a batch handler: an entry succeeds when the broker has confirmed
// its message, is dead if the broker refuses it, and is sent again, under the same message id, if the answer is unknown.
//
//   vouch::rabbitmq::publisher broker({.connection = {.url = url}, .exchange = exchange});
//   router.on(vouch::relay(broker));
//   worker.serve(router, {.queue = "outgoing"});
//
// An entry that replaces a dead one (`requeue`) is sent under the id of the first entry: that one may have arrived, even
// if it is dead because the broker did not confirm it, and the intake on the other side stores the message once.
//
// A store hands out one entry of a lane at a time, and the next one only after the first has ended. So messages of one
// lane are published in order, whatever fails in between.
//
// Any number of threads may use a relay, as its publisher allows that.

namespace vouch {
inline namespace v0 {

struct relay_options {
    std::string pattern = "#";  ///< the topics of the entries that are sent
    std::size_t size_max = 500; ///< messages per call of the publisher
    duration wait{};            ///< how long a worker's thread waits for more messages to send with the first
    /// When to send again. By default there is no last attempt: a broker that is away for days loses nothing. What a
    /// policy of yours leaves unset is the runner's to decide.
    retry_policy retry{.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                       .attempts_max = std::numeric_limits<std::uint32_t>::max()};
    /// What to send for an entry. An exception is that entry's failure; `reject` makes it dead. An id that is not the
    /// entry's is left as it is, also if the entry replaces a dead one.
    std::function<message(const entry&)> make = message_of;
};

namespace detail {

/// The id of the first entry that `e` continues. A predecessor is not purged before its successor.
template <class Reader>
[[nodiscard]] id first_of_family(const Reader& from, const entry& e) {
    auto first = e.predecessor;
    for (auto before = from.find(first); before && !before->predecessor.is_nil(); before = from.find(first)) {
        first = before->predecessor;
    }
    return first;
}

} // namespace detail

template <publisher Publisher>
class relay {
  public:
    /// The publisher must outlive the relay.
    explicit relay(Publisher& to, relay_options options = {}) : to_(&to), options_(std::move(options)) {}

    [[nodiscard]] const relay_options& options() const noexcept { return options_; }

    /// Sends a batch, whose entries are in the store that `from` reads.
    template <class Reader>
    [[nodiscard]] std::vector<outcome> send(const Reader& from, delivery_batch& batch) const {
        return publish(batch, [&](const entry& e) {
            auto out = options_.make(e);
            if (!e.predecessor.is_nil() && out.id == to_string(e.id)) {
                out.id = to_string(detail::first_of_family(from, e));
            }
            return out;
        });
    }

    /// The same without a store, for `on_batch`: an entry that replaces a dead one is sent under its own id.
    [[nodiscard]] std::vector<outcome> operator()(delivery_batch& batch) const { return publish(batch, options_.make); }

  private:
    template <class Make>
    [[nodiscard]] std::vector<outcome> publish(delivery_batch& batch, const Make& make) const {
        return detail::publish_batch(
            *to_, batch, make, [](const delivery&) -> outcome { return succeed{}; },
            [](const delivery&, std::string code) -> outcome { return retry{.error = std::move(code)}; });
    }

    Publisher* to_;
    relay_options options_;
};

/// Makes `router.on(relay)` work; call that.
template <class Store, publisher Publisher>
void add_route(router<Store>& to, const relay<Publisher>& added) {
    const auto& how = added.options();
    const auto* const store = &to.outbox().store();
    to.on_batch(
        how.pattern, [added, store](delivery_batch& batch) { return added.send(*store, batch); },
        {.size_max = how.size_max, .wait = how.wait}, how.retry);
}

} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_RELAY
