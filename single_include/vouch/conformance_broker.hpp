// SPDX-License-Identifier: MIT
// The conformance kit for clients of brokers: checks any publisher and consumer against the rules of
// `relay/publisher.hpp` and `relay/consumer.hpp`, with a running broker, and names the sentence that a client breaks.
//
//   struct fixture {
//       auto publisher() { return acme::publisher{"localhost"}; }
//       auto consumer() { return acme::consumer{"localhost", "kit"}; }
//   };
//   int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"acme", "1.4.0"}, argc, argv); }
//
// `check_broker` does the same for use in another test framework. The kit needs no other library.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_CONFORMANCE_BROKER
#define VOUCH_SINGLE_HEADER_CONFORMANCE_BROKER

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/relay.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

// ---- vouch/conformance/broker/any_consumer.hpp
// A consumer of any type, so that the clauses are compiled once. It holds a consumer that a function has returned, which
// need not be movable. Its destruction destroys that consumer.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class any_consumer {
  public:
    /// Holds what `make` returns.
    template <class Make>
    [[nodiscard]] static any_consumer from(Make&& make) {
        static_assert(vouch::consumer<std::invoke_result_t<Make&>>,
                      "the fixture's consumer() returns what vouch/relay/consumer.hpp describes");
        return any_consumer(std::make_unique<holder<std::invoke_result_t<Make&>>>(make));
    }

    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        return held_->receive(limit, at_most, stop);
    }
    void acknowledge(std::span<const received> some) { held_->acknowledge(some); }
    void give_back(std::span<const received> some) { held_->give_back(some); }
    void set_aside(std::span<const received> some) { held_->set_aside(some); }
    void cancel() { held_->cancel(); }

  private:
    struct any_holder {
        any_holder() = default;
        any_holder(const any_holder&) = delete;
        any_holder& operator=(const any_holder&) = delete;
        virtual ~any_holder() = default;
        virtual std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) = 0;
        virtual void acknowledge(std::span<const received> some) = 0;
        virtual void give_back(std::span<const received> some) = 0;
        virtual void set_aside(std::span<const received> some) = 0;
        virtual void cancel() = 0;
    };
    template <class Consumer>
    struct holder final : any_holder {
        template <class Make>
        explicit holder(Make& make) : held(make()) {}
        std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) override {
            return held.receive(limit, at_most, stop);
        }
        void acknowledge(std::span<const received> some) override { held.acknowledge(some); }
        void give_back(std::span<const received> some) override { held.give_back(some); }
        void set_aside(std::span<const received> some) override { held.set_aside(some); }
        void cancel() override { held.cancel(); }
        Consumer held;
    };

    explicit any_consumer(std::unique_ptr<any_holder> held) noexcept : held_(std::move(held)) {}

    std::unique_ptr<any_holder> held_;
};

static_assert(vouch::consumer<any_consumer>);

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/any_publisher.hpp
// A publisher of any type, so that the clauses are compiled once. It holds a publisher that a function has returned,
// which need not be movable.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class any_publisher {
  public:
    /// Holds what `make` returns.
    template <class Make>
    [[nodiscard]] static any_publisher from(Make&& make) {
        static_assert(vouch::publisher<std::invoke_result_t<Make&>>,
                      "the fixture's publisher() returns what vouch/relay/publisher.hpp describes");
        return any_publisher(std::make_unique<holder<std::invoke_result_t<Make&>>>(make));
    }

    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        return held_->publish(messages);
    }

  private:
    struct any_holder {
        any_holder() = default;
        any_holder(const any_holder&) = delete;
        any_holder& operator=(const any_holder&) = delete;
        virtual ~any_holder() = default;
        virtual std::vector<confirmation> publish(std::span<const message> messages) = 0;
    };
    template <class Publisher>
    struct holder final : any_holder {
        template <class Make>
        explicit holder(Make& make) : held(make()) {}
        std::vector<confirmation> publish(std::span<const message> messages) override { return held.publish(messages); }
        Publisher held;
    };

    explicit any_publisher(std::unique_ptr<any_holder> held) noexcept : held_(std::move(held)) {}

    std::unique_ptr<any_holder> held_;
};

static_assert(vouch::publisher<any_publisher>);

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/hooks.hpp
// A fixture of any type. It makes publishers and consumers of one queue or group of a running broker, and it may have
// hooks, without which some clauses are not tested:
//
//   struct fixture {
//       auto publisher();                 // a publisher whose messages with topics `kit.#` reach consumer()
//       auto consumer();                  // a further consumer of the same queue or group
//       void cut();                       // breaks every open connection at once; called from another thread too
//       void restart();                   // restarts the broker, and returns when it runs again
//       std::string unroutable_topic();   // a topic that no queue takes
//       std::size_t message_max();        // a payload that the broker takes; one with 1 KiB more must be refused
//       std::size_t unacknowledged_max(); // the bound of rule 7 of relay/consumer.hpp
//       void publish_malformed();         // puts a message that cannot be read where consumer() finds it
//   };
//
// What publisher() and consumer() return need not be movable. One fixture serves a whole run.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// The functions of a fixture. Those that the fixture lacks are empty.
struct hooks {
    std::function<any_publisher()> publisher{};
    std::function<any_consumer()> consumer{};
    std::function<void()> cut{};
    std::function<void()> restart{};
    std::function<std::string()> unroutable_topic{};
    std::function<std::size_t()> message_max{};
    std::function<std::size_t()> unacknowledged_max{};
    std::function<void()> publish_malformed{};
};

/// The functions of a fixture, which must outlive them.
template <class Fixture>
[[nodiscard]] hooks hooks_of(Fixture& of) {
    static_assert(
        requires { of.publisher(); }, "the fixture has no publisher()");
    static_assert(
        requires { of.consumer(); }, "the fixture has no consumer()");
    hooks out;
    out.publisher = [&of] { return any_publisher::from([&of] { return of.publisher(); }); };
    out.consumer = [&of] { return any_consumer::from([&of] { return of.consumer(); }); };
    if constexpr (requires { of.cut(); }) {
        out.cut = [&of] { of.cut(); };
    }
    if constexpr (requires { of.restart(); }) {
        out.restart = [&of] { of.restart(); };
    }
    if constexpr (requires { of.unroutable_topic(); }) {
        out.unroutable_topic = [&of] { return of.unroutable_topic(); };
    }
    if constexpr (requires { of.message_max(); }) {
        out.message_max = [&of] { return of.message_max(); };
    }
    if constexpr (requires { of.unacknowledged_max(); }) {
        out.unacknowledged_max = [&of] { return of.unacknowledged_max(); };
    }
    if constexpr (requires { of.publish_malformed(); }) {
        out.publish_malformed = [&of] { of.publish_malformed(); };
    }
    return out;
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clause.hpp
// A clause: a sentence of the rules for publishers and consumers, with the check that a client obeys it.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class trial; ///< what a check works with; for the kit only

/// The hook of the fixture without which a clause is not tested.
enum class needs : std::uint8_t {
    nothing,
    cut,
    restart,
    unroutable_topic,
    message_max,
    unacknowledged_max,
    publish_malformed
};

[[nodiscard]] constexpr std::string_view name_of(needs n) noexcept {
    switch (n) {
    case needs::nothing: return "-";
    case needs::cut: return "cut";
    case needs::restart: return "restart";
    case needs::unroutable_topic: return "unroutable_topic";
    case needs::message_max: return "message_max";
    case needs::unacknowledged_max: return "unacknowledged_max";
    case needs::publish_malformed: return "publish_malformed";
    }
    return "?";
}

[[nodiscard]] inline bool has(const hooks& of, needs n) noexcept {
    switch (n) {
    case needs::nothing: return true;
    case needs::cut: return bool(of.cut);
    case needs::restart: return bool(of.restart);
    case needs::unroutable_topic: return bool(of.unroutable_topic);
    case needs::message_max: return bool(of.message_max);
    case needs::unacknowledged_max: return bool(of.unacknowledged_max);
    case needs::publish_malformed: return bool(of.publish_malformed);
    }
    return false;
}

struct clause {
    std::string_view id; ///< "PUB-01"
    broker::needs needs;
    std::string_view rules; ///< the numbers of the rules: "publisher 1, 5"
    std::string_view sentence;
    std::string_view hint; ///< where to look if it fails
    void (*check)(trial&);
};

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/quoted.hpp
// Bytes as text that a terminal and a JSON parser can take.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// A quoted string. Bytes outside printable ASCII are escaped one by one.
[[nodiscard]] inline std::string json(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (byte < 0x20 || byte >= 0x7f) {
            out += std::string("\\u00") + digits[byte >> 4U] + digits[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

/// The same, cut if it is long, with its length.
[[nodiscard]] inline std::string shown(std::string_view text) {
    constexpr std::size_t length_max = 60;
    const auto size = " (" + std::to_string(text.size()) + " bytes)";
    return text.size() <= length_max ? json(text) + size : json(text.substr(0, length_max)) + " and so on" + size;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/options.hpp
// How long the kit waits, and which clauses it runs. The waits are upper bounds: what happens earlier ends them.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// The client that is tested.
struct identity {
    std::string name{};
    std::string version{};
};

struct options {
    std::string clause{};            ///< only clauses whose id starts with this; empty: all
    std::vector<std::string> skip{}; ///< no clauses whose ids start with one of these
    /// The longest wait for what must happen: a message, a new connection, a member that joins its group.
    duration patience = std::chrono::seconds{30};
    duration silence = std::chrono::seconds{1}; ///< how long nothing may arrive where nothing must
    std::chrono::seconds per_clause{180};       ///< a clause that takes longer hangs, and the program ends
    bool progress = false;                      ///< print each clause to stderr before it is run
};

/// Whether the options let this clause run.
[[nodiscard]] inline bool is_chosen(std::string_view id, const options& how) {
    const auto is_named = [&](const std::string& prefix) { return id.starts_with(prefix); };
    return is_named(how.clause) && std::none_of(how.skip.begin(), how.skip.end(), is_named);
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/trial.hpp
// What a clause works with: the fixture, the waits, messages that carry the mark of the run and of the clause, and a
// publisher and a consumer that the clauses share, because joining a group may take seconds.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

namespace detail {

/// The clients that the clauses share. Empty ones are made when a clause needs them.
struct shared_clients {
    std::optional<any_publisher> publisher{};
    std::optional<any_consumer> consumer{};
};

} // namespace detail

class trial {
  public:
    trial(const broker::hooks& fixture, const options& how, detail::shared_clients& clients, std::string mark)
        : fixture_(fixture), how_(how), clients_(clients), mark_(std::move(mark)) {}

    [[nodiscard]] const hooks& fixture() const noexcept { return fixture_; }
    [[nodiscard]] duration patience() const noexcept { return how_.patience; }
    [[nodiscard]] duration silence() const noexcept { return how_.silence; }
    [[nodiscard]] const std::string& mark() const noexcept { return mark_; }

    [[nodiscard]] any_publisher& publisher() {
        if (!clients_.publisher) {
            clients_.publisher.emplace(fixture_.publisher());
        }
        return *clients_.publisher;
    }
    [[nodiscard]] any_consumer& consumer() {
        if (!clients_.consumer) {
            clients_.consumer.emplace(fixture_.consumer());
        }
        return *clients_.consumer;
    }
    /// A consumer of the clause's own. The shared one ends, because it would take messages away.
    [[nodiscard]] any_consumer fresh_consumer() {
        clients_.consumer.reset();
        return fixture_.consumer();
    }

    /// A message of this clause. Its id is the mark, a dot and the name.
    [[nodiscard]] message make(std::string_view name, std::string lane = {}) const {
        message out;
        out.id = mark_ + "." + std::string(name);
        out.topic = "kit.message";
        out.payload = name;
        out.lane = lane.empty() ? "" : mark_ + "." + std::move(lane);
        return out;
    }
    [[nodiscard]] message make(std::size_t number, std::string lane = {}) const {
        return make(std::to_string(number), std::move(lane));
    }

    [[nodiscard]] bool is_ours(const message& m) const { return m.id.starts_with(mark_ + "."); }
    /// What `make` was given; of other messages, the id.
    [[nodiscard]] std::string name_of(const message& m) const {
        return is_ours(m) ? m.id.substr(mark_.size() + 1) : m.id;
    }

  private:
    const broker::hooks& fixture_;
    const options& how_;
    detail::shared_clients& clients_;
    std::string mark_;
};

namespace detail {

/// The time that is left of a wait.
class time_limit {
  public:
    explicit time_limit(duration of) : until_(std::chrono::steady_clock::now() + of) {}
    [[nodiscard]] duration left() const {
        const auto left = std::chrono::duration_cast<duration>(until_ - std::chrono::steady_clock::now());
        return left > duration::zero() ? left : duration::zero();
    }
    [[nodiscard]] bool is_over() const { return left() == duration::zero(); }

  private:
    std::chrono::steady_clock::time_point until_;
};

[[nodiscard]] inline std::string seconds_text(duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

} // namespace detail

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/unmet.hpp
// How a clause fails: by an exception that says what was expected and what was seen.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

struct unmet {
    std::string what{};
    std::string expected{};
    std::string seen{};
};

inline void expect(bool holds, std::string what, std::string expected, std::string seen) {
    if (!holds) {
        throw unmet{std::move(what), std::move(expected), std::move(seen)};
    }
}

inline void expect_equal(std::string what, const std::string& expected, const std::string& seen) {
    expect(expected == seen, std::move(what), expected, seen);
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/sending.hpp
// How clauses publish: as a relay does, which repeats what is unknown before it goes on.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline constexpr std::chrono::milliseconds pause_after_fault{20};

/// Calls `f`. A fault that may be over the next time is an ordinary answer here; any other exception fails the clause.
/// Returns whether the call succeeded.
template <class F>
bool without_lasting_fault(std::string_view what, F&& f) {
    try {
        f();
        return true;
    } catch (const unmet&) {
        throw;
    } catch (const error& e) {
        expect(e.is_transient(), std::string(what) + " throws",
               "a vouch::error that is_transient, because the next call may succeed",
               "vouch::error of the kind " + std::string(vouch::name_of(e.kind())) + ": " + shown(e.what()));
        std::this_thread::sleep_for(pause_after_fault);
        return false;
    } catch (const std::exception& e) {
        throw unmet{std::string(what) + " throws", "a vouch::error", "another exception: " + shown(e.what())};
    }
}

/// One call of `publish`. A call that throws says `unknown` of every message.
[[nodiscard]] inline std::vector<confirmation> answers_to(any_publisher& to, std::span<const message> messages) {
    std::vector<confirmation> out(messages.size());
    without_lasting_fault("publish", [&] {
        out = to.publish(messages);
        expect_equal("publish was called with " + std::to_string(messages.size()) + " messages",
                     std::to_string(messages.size()) + " confirmations", std::to_string(out.size()) + " confirmations");
    });
    return out;
}

/// "confirmed", or "refused (unroutable)".
[[nodiscard]] inline std::string text_of(const confirmation& c) {
    return std::string(name_of(c.what)) + (c.code.empty() ? "" : " (" + json(c.code) + ")");
}

/// Publishes, and repeats what is unknown, until every message is confirmed.
inline void send(trial& t, any_publisher& to, std::vector<message> messages) {
    const time_limit limit(t.patience());
    while (!messages.empty()) {
        const auto answers = answers_to(to, messages);
        std::vector<message> unknown;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            expect(answers[i].what != confirmation::kind::refused,
                   "message " + t.name_of(messages[i]) + ", which a queue takes, was published", "confirmed or unknown",
                   text_of(answers[i]));
            if (answers[i].what == confirmation::kind::unknown) {
                unknown.push_back(std::move(messages[i]));
            }
        }
        expect(unknown.empty() || !limit.is_over(),
               "messages that a queue takes were published again and again for " + seconds_text(t.patience()),
               "all are confirmed", std::to_string(unknown.size()) + " are still unknown");
        messages = std::move(unknown);
    }
}

inline void send(trial& t, std::vector<message> messages) { send(t, t.publisher(), std::move(messages)); }

/// Messages named `first` to `last` in one lane, published in one call.
[[nodiscard]] inline std::vector<message> numbered(const trial& t, std::size_t first, std::size_t last,
                                                   const std::string& lane) {
    std::vector<message> out;
    for (auto i = first; i <= last; ++i) {
        out.push_back(t.make(i, lane));
    }
    return out;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/mailbox.hpp
// How clauses receive: a consumer and the messages of the clause that it has returned, in order. Messages of other runs
// and clauses are acknowledged and forgotten, so a clause needs no empty broker.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Names in order, cut if they are many.
[[nodiscard]] inline std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t shown_max = 40;
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), shown_max); ++i) {
        out += (i == 0 ? "" : " ") + names[i];
    }
    if (names.size() > shown_max) {
        out += " and " + std::to_string(names.size() - shown_max) + " more";
    }
    return out.empty() ? "none" : out;
}

/// When a mailbox acknowledges the messages of its clause.
enum class acknowledging {
    on_arrival, ///< so that any number can be received
    on_request, ///< fewer than the bound of rule 7, which is at least 16
};

class mailbox {
  public:
    mailbox(trial& t, any_consumer& from, acknowledging when = acknowledging::on_request) noexcept
        : trial_(t), from_(from), when_(when) {}

    /// One call of `receive`. Returns what it has added to `arrived`.
    std::span<const received> receive(std::size_t limit, duration at_most, const std::stop_token& stop = {}) {
        const auto before = arrived_.size();
        without_lasting_fault("receive", [&] {
            auto got = from_.receive(limit, at_most, stop);
            expect(got.size() <= limit, "receive was called with the limit " + std::to_string(limit),
                   "at most " + std::to_string(limit) + " messages", std::to_string(got.size()) + " messages");
            keep(std::move(got));
        });
        return std::span(arrived_).subspan(before);
    }

    /// Receives until `enough()` holds. Returns false if the patience ends before that.
    template <class Enough>
    [[nodiscard]] bool receive_until(Enough&& enough) {
        const time_limit limit(trial_.patience());
        while (!enough()) {
            if (limit.is_over()) {
                return false;
            }
            receive(100, std::min<duration>(limit.left(), std::chrono::milliseconds{500}));
        }
        return true;
    }

    /// Receives until each of these has arrived at least once since `forget`.
    void expect_all(std::span<const message> expected) {
        std::vector<std::string> missing;
        const bool is_complete = receive_until([&] {
            missing = missing_of(expected);
            return missing.empty();
        });
        expect(is_complete,
               std::to_string(expected.size()) + " messages must arrive within " + seconds_text(trial_.patience()),
               "all of them", std::to_string(missing.size()) + " are missing: " + joined(missing));
    }
    void expect_all(const std::vector<message>& expected) { expect_all(std::span(expected)); }
    void expect_one(const message& expected) { expect_all(std::span(&expected, 1)); }

    /// Everything of this clause that was returned, in order, with repetitions.
    [[nodiscard]] const std::vector<received>& arrived() const noexcept { return arrived_; }
    [[nodiscard]] const std::vector<received>& malformed() const noexcept { return malformed_; }

    /// The names of what has arrived, each once, in the order of the first arrivals.
    [[nodiscard]] std::vector<std::string> first_arrivals() const {
        std::set<std::string> seen;
        std::vector<std::string> out;
        for (const auto& r : arrived_) {
            if (seen.insert(r.message.id).second) {
                out.push_back(trial_.name_of(r.message));
            }
        }
        return out;
    }

    /// Acknowledges what has arrived, and forgets it.
    void acknowledge_all() {
        without_lasting_fault("acknowledge", [&] { from_.acknowledge(arrived_); });
        forget();
    }
    void forget() {
        arrived_.clear();
        malformed_.clear();
    }

  private:
    void keep(std::vector<received> got) {
        std::vector<received> done;
        for (auto& r : got) {
            const bool is_ours = trial_.is_ours(r.message);
            if (when_ == acknowledging::on_arrival || (!is_ours && r.malformed.empty())) {
                done.push_back({.source = r.source, .tag = r.tag});
            }
            if (is_ours || !r.malformed.empty()) {
                (r.malformed.empty() ? arrived_ : malformed_).push_back(std::move(r));
            }
        }
        if (!done.empty()) {
            from_.acknowledge(done);
        }
    }

    [[nodiscard]] std::vector<std::string> missing_of(std::span<const message> expected) const {
        std::set<std::string> seen;
        for (const auto& r : arrived_) {
            seen.insert(r.message.id);
        }
        std::vector<std::string> out;
        for (const auto& m : expected) {
            if (!seen.contains(m.id)) {
                out.push_back(trial_.name_of(m));
            }
        }
        return out;
    }

    trial& trial_;
    any_consumer& from_;
    acknowledging when_;
    std::vector<received> arrived_{};
    std::vector<received> malformed_{};
};

[[nodiscard]] inline std::vector<std::string> names_of(const trial& t, std::span<const message> messages) {
    std::vector<std::string> out;
    for (const auto& m : messages) {
        out.push_back(t.name_of(m));
    }
    return out;
}

/// The first arrivals of each lane are in the order of `published`.
inline void expect_lane_order(const trial& t, const mailbox& at, const std::vector<message>& published) {
    std::set<std::string> lanes;
    for (const auto& m : published) {
        lanes.insert(m.lane);
    }
    for (const auto& lane : lanes) {
        std::vector<std::string> expected;
        for (const auto& m : published) {
            if (m.lane == lane) {
                expected.push_back(t.name_of(m));
            }
        }
        std::set<std::string> repeated;
        std::vector<std::string> seen;
        for (const auto& r : at.arrived()) {
            if (r.message.lane == lane && repeated.insert(r.message.id).second) {
                seen.push_back(t.name_of(r.message));
            }
        }
        expect_equal("the first arrivals of the lane " + shown(lane), joined(expected), joined(seen));
    }
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/receive.hpp
// How long `receive` waits, and how much it returns.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Receives exactly `count` messages, in as many calls as that takes.
inline void take(trial& t, mailbox& at, std::size_t count) {
    const time_limit limit(t.patience());
    while (at.arrived().size() < count && !limit.is_over()) {
        at.receive(count - at.arrived().size(), limit.left());
    }
    expect(at.arrived().size() == count,
           std::to_string(count) + " messages must arrive within " + seconds_text(t.patience()),
           std::to_string(count) + " messages", std::to_string(at.arrived().size()) + " messages");
}

inline void at_most_limit_in_order(trial& t) {
    const auto sent = numbered(t, 1, 10, "lane");
    send(t, sent);
    mailbox at(t, t.consumer());
    const time_limit limit(t.patience());
    while (at.arrived().size() < sent.size() && !limit.is_over()) {
        at.receive(3, limit.left()); // checks the limit
    }
    expect_equal("ten messages of one lane, received by three", joined(names_of(t, sent)), joined(at.first_arrivals()));
    at.acknowledge_all();
}

/// The consumer is connected, and nothing of this clause is on its way.
inline void warm_up(trial& t, mailbox& at) {
    const auto first = t.make("first");
    send(t, {first});
    at.expect_one(first);
    at.acknowledge_all();
}

/// How long `f` takes.
template <class F>
[[nodiscard]] duration time_of_call(F&& f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration_cast<duration>(std::chrono::steady_clock::now() - begin);
}

inline void does_not_wait_for_more(trial& t) {
    mailbox at(t, t.consumer());
    warm_up(t, at);
    const auto one = t.make("one");
    send(t, {one});
    duration took{};
    while (at.arrived().empty() && took < t.patience()) {
        took += time_of_call([&] { at.receive(100, t.patience()); });
    }
    at.expect_one(one);
    expect(took < t.patience() / 2, "receive(100, " + seconds_text(t.patience()) + ") with one message to receive",
           "returns when it has one", "returned after " + seconds_text(took));
    at.acknowledge_all();
}

inline void empty_after_at_most(trial& t) {
    constexpr std::chrono::milliseconds at_most{200};
    mailbox at(t, t.consumer());
    warm_up(t, at);
    for (int i = 0; i < 3; ++i) {
        const auto took = time_of_call([&] { at.receive(100, at_most); });
        expect(took < at_most + t.patience() / 2, "receive(100, " + seconds_text(at_most) + ") without a message",
               "returns after " + seconds_text(at_most), "returned after " + seconds_text(took));
    }
    expect_equal("nothing was published meanwhile", "none", joined(at.first_arrivals()));
}

inline void stop_ends_the_wait(trial& t) {
    mailbox at(t, t.consumer());
    warm_up(t, at);
    for (const std::chrono::milliseconds after : {std::chrono::milliseconds{0}, std::chrono::milliseconds{100}}) {
        std::stop_source stop;
        std::jthread stopping([&] {
            std::this_thread::sleep_for(after);
            stop.request_stop();
        });
        if (after.count() == 0) {
            stopping.join();
        }
        const auto took = time_of_call([&] { at.receive(100, t.patience(), stop.get_token()); });
        expect(took < t.patience() / 2,
               "receive(100, " + seconds_text(t.patience()) + ") without a message; a stop was requested after " +
                   seconds_text(after),
               "returns soon after the request", "returned after " + seconds_text(took));
    }
    const auto last = t.make("last");
    send(t, {last});
    at.expect_one(last);
    at.acknowledge_all();
}

inline constexpr clause receive_waits[] = {
    {"CON-01", needs::nothing, "consumer 1, 8",
     "`receive` returns at most `limit` messages, in the order of their arrival.",
     "messages that the client library has fetched in advance", &at_most_limit_in_order},
    {"CON-02", needs::nothing, "consumer 1", "`receive` does not wait for more once it has a message.",
     "loops that run until `limit` or `at_most`", &does_not_wait_for_more},
    {"CON-03", needs::nothing, "consumer 1", "`receive` returns nothing after `at_most` if nothing arrives.",
     "time-outs of the client library: their unit, and whether they begin again with every frame",
     &empty_after_at_most},
    {"CON-04", needs::nothing, "consumer 1",
     "A stop request ends the wait early, and messages that arrive later are not lost.",
     "whether the wait is divided, so that it sees the stop token", &stop_ends_the_wait},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/acknowledge.hpp
// What is delivered again, and what is not.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// What arrives, in order, until a last message of the lane, which is published now. Everything that the broker delivers
/// again comes before that one. The mailbox acknowledges it.
[[nodiscard]] inline std::string until_the_end(trial& t, mailbox& at) {
    const auto end = t.make("end", "lane");
    send(t, {end});
    at.expect_one(end);
    auto names = joined(at.first_arrivals());
    at.acknowledge_all();
    return names;
}

inline void unacknowledged_come_again(trial& t) {
    send(t, numbered(t, 1, 6, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 6);
        first.acknowledge(std::span(at.arrived()).first(3));
    }
    mailbox at(t, t.consumer());
    expect_equal("six messages were received, the first three acknowledged, and the consumer has died; then arrive",
                 "4 5 6 end", until_the_end(t, at));
}

inline void nothing_is_lost_by_a_gap(trial& t) {
    send(t, numbered(t, 1, 3, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        const std::vector<received> some{at.arrived()[0], at.arrived()[2]};
        first.acknowledge(some);
    }
    mailbox at(t, t.consumer());
    const auto seen = until_the_end(t, at);
    expect(seen == "2 end" || seen == "2 3 end",
           "three messages were received, the first and the third acknowledged, and the consumer has died; then arrive",
           "2 end, or 2 3 end", seen);
}

inline void what_is_given_back_comes_again(trial& t) {
    const auto sent = numbered(t, 1, 4, "lane");
    send(t, sent);
    auto& from = t.consumer();
    mailbox at(t, from);
    take(t, at, 3);
    from.give_back(at.arrived());
    at.forget();
    at.expect_all(sent);
    at.acknowledge_all();
    expect_equal("three messages were given back, and came again and were acknowledged; then arrives", "end",
                 until_the_end(t, at));
}

/// Rule 8. An intake whose store fails gives its batch back, and the lane must not be stored in another order then.
inline void what_comes_again_comes_first(trial& t) {
    const auto sent = numbered(t, 1, 8, "lane");
    send(t, sent);
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.give_back(at.arrived());
        at.forget();
        at.expect_all(sent);
        expect_equal(
            "eight messages of a lane; three were received and given back; then arrive, each for the first time",
            joined(names_of(t, sent)), joined(at.first_arrivals()));
        first.acknowledge(std::span(at.arrived()).first(2));
    }
    mailbox at(t, t.consumer());
    expect_equal("eight messages of a lane were received, two acknowledged, and the consumer has died; then arrive",
                 "3 4 5 6 7 8 end", until_the_end(t, at));
}

inline void what_is_set_aside_does_not_come_again(trial& t) {
    send(t, numbered(t, 1, 3, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.acknowledge(std::span(at.arrived()).first(1));
        first.set_aside(std::span(at.arrived()).subspan(1, 1));
        at.forget();
        const auto between = t.make("between", "lane");
        send(t, {between});
        at.expect_one(between);
        expect_equal("of three messages the first was acknowledged and the second set aside; then arrives", "between",
                     joined(at.first_arrivals()));
    }
    mailbox at(t, t.consumer());
    expect_equal("the third message was not acknowledged, and the consumer has died; then arrive", "3 between end",
                 until_the_end(t, at));
}

inline constexpr clause receive_acknowledge[] = {
    {"CON-05", needs::nothing, "consumer 2, 3",
     "After the consumer's death, messages that it has not acknowledged come again, and acknowledged ones do not.",
     "acknowledgement by the client library itself (auto-ack, auto-commit), and acknowledge without effect",
     &unacknowledged_come_again},
    {"CON-06", needs::nothing, "consumer 2, 3",
     "If the first and the third of three messages are acknowledged, the second comes again.",
     "acknowledgements up to a tag or an offset: it must stop before the first message that is not acknowledged",
     &nothing_is_lost_by_a_gap},
    {"CON-07", needs::nothing, "consumer 2, 4", "What is given back comes again soon, to the same consumer too.",
     "whether give_back really returns the message, and whether it returns the right ones",
     &what_is_given_back_comes_again},
    {"CON-08", needs::nothing, "consumer 8", "What is delivered again comes before what has not been delivered yet.",
     "messages that the client library has fetched in advance: give_back must return those as well",
     &what_comes_again_comes_first},
    {"CON-09", needs::nothing, "consumer 5", "What is set aside does not come again, and its neighbours are untouched.",
     "a rejection without requeueing, and the offset that it stands for", &what_is_set_aside_does_not_come_again},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/cancel.hpp
// Consumers that end, consumers that share, and how much a consumer holds.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void expect_nothing(mailbox& at, const std::string& what) {
    const auto before = at.arrived().size();
    for (int i = 0; i < 3; ++i) {
        at.receive(100, std::chrono::milliseconds{50});
    }
    expect_equal(what, "0 messages", std::to_string(at.arrived().size() - before) + " messages");
}

inline void cancelled_receives_nothing(trial& t) {
    send(t, numbered(t, 1, 10, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.cancel();
        first.cancel(); // no effect
        expect_nothing(at, "receive after cancel returns");
        first.acknowledge(at.arrived());
    }
    mailbox at(t, t.consumer());
    expect_equal(
        "of ten messages three were received, then the consumer was cancelled, then they were acknowledged, and "
        "the consumer has died; then arrive",
        "4 5 6 7 8 9 10 end", until_the_end(t, at));
}

inline void cancelled_leaves_the_rest(trial& t) {
    const auto sent = numbered(t, 1, 10, "lane");
    send(t, sent);
    auto first = t.fresh_consumer();
    mailbox at(t, first);
    take(t, at, 3);
    first.cancel();
    first.give_back(at.arrived());
    mailbox other(t, t.consumer()); // a second one, while the first still lives
    other.expect_all(sent);
    other.acknowledge_all();
    expect_nothing(at, "receive after cancel returns");
}

inline void two_consumers_share(trial& t) {
    auto first = t.fresh_consumer();
    std::optional<any_consumer> second(t.fresh_consumer());
    mailbox a(t, first, acknowledging::on_arrival);
    std::vector<message> sent;
    for (std::size_t i = 0; i < 40; ++i) {
        sent.push_back(t.make(i, "lane" + std::to_string(i % 8)));
    }
    send(t, sent);
    std::vector<std::string> seen;
    {
        mailbox b(t, *second);
        const time_limit limit(t.patience());
        // The second one acknowledges only the first half of what it gets, then it dies.
        while (a.arrived().size() + b.arrived().size() < sent.size() && b.arrived().size() < 10 && !limit.is_over()) {
            a.receive(5, std::chrono::milliseconds{20});
            b.receive(5, std::chrono::milliseconds{20});
        }
        const auto half = b.arrived().size() / 2;
        second->acknowledge(std::span(b.arrived()).first(half));
        for (std::size_t i = 0; i < half; ++i) {
            seen.push_back(b.arrived()[i].message.id);
        }
        second.reset();
    }
    std::erase_if(sent, [&](const message& m) { return std::find(seen.begin(), seen.end(), m.id) != seen.end(); });
    a.expect_all(sent);
}

inline void unacknowledged_is_bounded(trial& t) {
    const auto max = t.fixture().unacknowledged_max();
    const auto sent = numbered(t, 1, max + 20, {});
    send(t, sent);
    mailbox at(t, t.consumer());
    const auto is_quiet = [&] {
        const auto before = at.arrived().size();
        at.receive(max + 20, t.silence());
        return at.arrived().size() == before && before > 0;
    };
    const time_limit limit(t.patience());
    while (!is_quiet() && at.arrived().size() <= max && !limit.is_over()) {
    }
    expect(at.arrived().size() <= max,
           std::to_string(sent.size()) + " messages were published and none was acknowledged",
           "at most " + std::to_string(max) + " are received", std::to_string(at.arrived().size()) + " were received");
    auto missing = sent;
    std::erase_if(missing, [&](const message& m) {
        return std::any_of(at.arrived().begin(), at.arrived().end(),
                           [&](const received& r) { return r.message.id == m.id; });
    });
    at.acknowledge_all();
    mailbox rest(t, t.consumer(), acknowledging::on_arrival);
    rest.expect_all(missing);
}

inline constexpr clause receive_cancel[] = {
    {"CON-10", needs::nothing, "consumer 6",
     "After `cancel`, `receive` returns nothing, and what was received before can still be acknowledged.",
     "messages that the client library has fetched in advance, and a channel that is closed too early",
     &cancelled_receives_nothing},
    {"CON-11", needs::nothing, "consumer 4, 6",
     "What a cancelled consumer has given back, and what it has not returned, goes to another consumer.",
     "messages that the client library has fetched in advance: cancel must return them", &cancelled_leaves_the_rest},
    {"CON-12", needs::nothing, "consumer 2",
     "Two consumers share the messages, and nothing is missing when one of them dies.",
     "what happens to the messages of a consumer that leaves", &two_consumers_share},
    {"CON-13", needs::unacknowledged_max, "consumer 7",
     "A consumer that acknowledges nothing receives a bounded number of messages.", "prefetch, or paused partitions",
     &unacknowledged_is_bounded},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/end_to_end.hpp
// From one store to another: a relay, the client, and an intake.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Two services with a store each. Entries of other runs may arrive too; those of this run have its topic.
class two_services {
  public:
    explicit two_services(trial& t) : trial_(t), topic_("kit." + t.mark()) {
        routes_.on(relay<any_publisher>(t.publisher(), {.size_max = 20}));
        for (std::size_t i = 0; i < count; ++i) {
            const auto lane = i % 3 == 2 ? std::string{} : "lane" + std::to_string(i % 7);
            out_.emit({.queue = "out", .topic = topic_, .payload = std::to_string(i), .lane = lane});
        }
    }

    /// Sends some, and stores what arrives. A new intake continues where a dead one has stopped.
    void work() {
        clock_.pass(std::chrono::minutes{2}); // so that what was unknown is sent again
        runner_.run_once();
        if (!consumer_) {
            consumer_.emplace(trial_.fresh_consumer());
        }
        without_lasting_fault("an intake's pass", [&] {
            intake<any_consumer, memory::store> in(*consumer_, in_,
                                                   {.source = "kit",
                                                    .queue = "in",
                                                    .batch_size = 10,
                                                    .wait = std::chrono::milliseconds{100},
                                                    .map = [&](const message& m) {
                                                        before_storing();
                                                        return emission_of(m);
                                                    }});
            in.run_once();
        });
    }
    void kill_consumer() { consumer_.reset(); }

    [[nodiscard]] std::vector<entry> arrived() const {
        auto out = to_.list({.queue = "in", .limit = 10'000, .payloads = true});
        std::erase_if(out, [&](const entry& e) { return e.topic != topic_; });
        return out;
    }

    /// Every entry is there once, the lanes are in order, and the first store says that all is done.
    void expect_done() const {
        std::map<std::string, std::vector<std::string>> expected;
        std::map<std::string, std::vector<std::string>> seen;
        for (std::size_t i = 0; i < count; ++i) {
            const bool has_lane = i % 3 != 2;
            expected[has_lane ? "lane" + std::to_string(i % 7) : ""].push_back(std::to_string(i));
        }
        for (auto& e : arrived()) {
            seen[e.lane].push_back(e.payload);
        }
        for (auto& [lane, names] : expected) {
            if (lane.empty()) {
                std::sort(names.begin(), names.end());
                std::sort(seen[lane].begin(), seen[lane].end());
            }
            expect_equal(lane.empty() ? "the entries without a lane in the second store, sorted"
                                      : "the entries of " + lane + " in the second store",
                         joined(names), joined(seen[lane]));
        }
    }

    static constexpr std::size_t count = 150;
    std::function<void()> before_storing = [] {}; ///< called for each message that has arrived

  private:
    trial& trial_;
    std::string topic_;
    manual_clock clock_{time_point(std::chrono::hours{24 * 365 * 50})};
    memory::store from_{};
    memory::store to_{};
    outbox<memory::store> out_{from_, {.clock = clock_}};
    outbox<memory::store> in_{to_, {.clock = clock_}};
    router<memory::store> routes_{out_};
    runner<memory::store> runner_{out_, routes_, {.queue = "out", .batch_size = 20}};
    std::optional<any_consumer> consumer_{};
};

/// `disturb` is called before each round.
template <class Disturb>
void run_two_services(trial& t, two_services& both, Disturb&& disturb) {
    const time_limit limit(2 * t.patience());
    for (std::size_t round = 0; both.arrived().size() < two_services::count && !limit.is_over(); ++round) {
        disturb(round);
        both.work();
    }
    both.work(); // what is delivered once more must not be stored once more
    both.expect_done();
}

inline void relay_to_intake(trial& t) {
    two_services both(t);
    run_two_services(t, both, [](std::size_t) {});
}

/// Cuts between the calls of the client, and between the receipt of a message and its acknowledgement.
inline void relay_to_intake_with_cuts(trial& t) {
    two_services both(t);
    std::size_t arrived = 0;
    both.before_storing = [&] {
        if (++arrived % 40 == 10 && arrived < 150) {
            t.fixture().cut();
        }
    };
    std::size_t cuts = 0;
    std::size_t deaths = 0;
    run_two_services(t, both, [&](std::size_t round) {
        if (round % 4 == 3 && cuts < 5) {
            t.fixture().cut();
            ++cuts;
        }
        if (round % 9 == 8 && deaths < 2) {
            both.kill_consumer();
            ++deaths;
        }
    });
}

inline constexpr clause end_to_end[] = {
    {"END-01", needs::nothing, "all",
     "Every entry that a relay sends is stored by an intake exactly once, and lanes keep their order.",
     "the clauses PUB and CON that fail; if none does, message ids that change when a message is sent again",
     &relay_to_intake},
    {"END-02", needs::cut, "all", "The same holds when connections are cut and consumers die on the way.",
     "the clauses PUB-11, PUB-12 and CON-14 to CON-16", &relay_to_intake_with_cuts},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/publish_answers.hpp
// What `publish` says of each message.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void one_confirmation_per_message(trial& t) {
    (void)answers_to(t.publisher(), {});
    std::vector<message> all;
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{2}}) {
        const auto some = numbered(t, all.size() + 1, all.size() + count, {});
        all.insert(all.end(), some.begin(), some.end());
        send(t, some);
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

inline void confirmed_messages_arrive(trial& t) {
    std::vector<message> all;
    for (std::size_t call = 0; call < 4; ++call) {
        const auto some = numbered(t, call * 50 + 1, call * 50 + 50, {});
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

/// Says which message a refusal must be a refusal of, and checks the answers to one call.
inline void expect_refused(const trial& t, const std::vector<message>& sent, const std::vector<bool>& is_refused,
                           const std::vector<confirmation>& answers) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto what = "message " + t.name_of(sent[i]) + ", number " + std::to_string(i + 1) + " of " +
                          std::to_string(sent.size()) + " in one call";
        if (is_refused[i]) {
            expect(answers[i].what == confirmation::kind::refused && !answers[i].code.empty(), what,
                   "refused, with a code", text_of(answers[i]));
        } else {
            expect(answers[i].what == confirmation::kind::confirmed, what, "confirmed", text_of(answers[i]));
        }
    }
}

/// Publishes good and bad messages in one call. The good ones are confirmed and arrive.
inline void refused_beside_others(trial& t, const message& bad) {
    auto sent = numbered(t, 1, 7, {});
    const std::vector<bool> is_bad{false, true, false, true, true, false, true};
    std::vector<message> good;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        if (is_bad[i]) {
            sent[i].topic = bad.topic;
            sent[i].payload = bad.payload;
        } else {
            good.push_back(sent[i]);
        }
    }
    expect_refused(t, sent, is_bad, answers_to(t.publisher(), sent));
    const std::vector<message> alone(sent.begin() + 1, sent.begin() + 2);
    expect_refused(t, alone, {true}, answers_to(t.publisher(), alone));
    const auto last = t.make("last");
    send(t, {last});
    good.push_back(last);
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(good);
}

inline void unroutable_is_refused(trial& t) {
    auto bad = t.make("bad");
    bad.topic = t.fixture().unroutable_topic();
    refused_beside_others(t, bad);
}

/// Some brokers count the id, the topic and the headers too. Those of the kit's messages are smaller than this.
inline constexpr std::size_t other_parts_max = 1024;

inline void too_large_is_refused(trial& t) {
    auto bad = t.make("bad");
    bad.payload.assign(t.fixture().message_max() + other_parts_max, 'x');
    refused_beside_others(t, bad);
    auto largest = t.make("largest");
    largest.payload.assign(t.fixture().message_max(), 'y');
    send(t, {largest});
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_one(largest);
    expect(at.arrived().back().message.payload == largest.payload, "a message of the largest size",
           std::to_string(largest.payload.size()) + " bytes, as published",
           std::to_string(at.arrived().back().message.payload.size()) + " bytes or other bytes");
}

/// Calls of one thread. Their sizes, and the places of the unroutable messages, differ from thread to thread.
inline void publish_from_thread(trial& t, any_publisher& to, std::size_t thread, std::vector<message>& good) {
    for (std::size_t call = 0; call < 8; ++call) {
        std::vector<message> sent;
        std::vector<bool> is_bad;
        for (std::size_t i = 0; i < 4 + thread; ++i) {
            const auto name = std::to_string(thread) + "-" + std::to_string(call) + "-" + std::to_string(i);
            sent.push_back(t.make(name));
            is_bad.push_back(t.fixture().unroutable_topic && i == (thread + call) % 4);
            if (is_bad.back()) {
                sent.back().topic = t.fixture().unroutable_topic();
            } else {
                good.push_back(sent.back());
            }
        }
        expect_refused(t, sent, is_bad, answers_to(to, sent));
    }
}

inline void threads_get_their_own_answers(trial& t) {
    constexpr std::size_t count = 4;
    auto& to = t.publisher();
    std::vector<std::vector<message>> good(count);
    std::vector<std::exception_ptr> failures(count);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                publish_from_thread(t, to, i, good[i]);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    }
    threads.clear();
    std::vector<message> all;
    for (std::size_t i = 0; i < count; ++i) {
        if (failures[i]) {
            std::rethrow_exception(failures[i]);
        }
        all.insert(all.end(), good[i].begin(), good[i].end());
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

inline constexpr clause publish_answers[] = {
    {"PUB-01", needs::nothing, "publisher 1", "`publish` returns one confirmation per message, and none for none.",
     "the size of the vector that publish returns, also for an empty span", &one_confirmation_per_message},
    {"PUB-02", needs::nothing, "publisher 2", "Every confirmed message reaches a consumer.",
     "whether `confirmed` waits for the broker's answer, and whether the fixture's topology binds kit.# to its queue",
     &confirmed_messages_arrive},
    {"PUB-03", needs::unroutable_topic, "publisher 2, 3, 5",
     "A message that no queue takes is refused with a code, and its neighbours are confirmed and arrive.",
     "returned messages (mandatory), and how an answer finds its message", &unroutable_is_refused},
    {"PUB-04", needs::message_max, "publisher 3, 5",
     "A message over the broker's limit is refused with a code, its neighbours are confirmed and arrive, and the "
     "largest "
     "one is delivered.",
     "checks of the size before a message is sent: many brokers close the connection of a client that sends too much",
     &too_large_is_refused},
    {"PUB-05", needs::nothing, "publisher 1, 2", "Four threads that publish at once get their own answers.",
     "a lock around a call, or how an answer finds its call", &threads_get_their_own_answers},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/publish_order.hpp
// The order of a lane, and what survives cut connections and restarts.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void expect_all_in_order(trial& t, const std::vector<message>& published) {
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(published);
    expect_lane_order(t, at, published);
}

inline void lanes_keep_their_order(trial& t) {
    std::vector<message> all;
    for (std::size_t call = 0; call < 10; ++call) {
        std::vector<message> some;
        for (std::size_t i = 0; i < 20; ++i) {
            some.push_back(t.make(call * 20 + i, "lane" + std::to_string(i % 4)));
        }
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
    }
    expect_all_in_order(t, all);
}

/// One message for each of ten lanes, as a relay sends them: the next of a lane follows when the last is confirmed.
[[nodiscard]] inline std::vector<message> one_per_lane(const trial& t, std::size_t round) {
    std::vector<message> out;
    for (std::size_t lane = 0; lane < 10; ++lane) {
        out.push_back(t.make(round * 10 + lane, "lane" + std::to_string(lane)));
    }
    return out;
}

inline void cut_between_calls(trial& t) {
    std::vector<message> all;
    for (std::size_t round = 0; round < 6; ++round) {
        const auto some = one_per_lane(t, round);
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
        if (round % 2 == 0) {
            t.fixture().cut();
        }
    }
    expect_all_in_order(t, all);
}

/// Cuts the connections again and again while it lives.
class cutter {
  public:
    explicit cutter(const hooks& fixture)
        : thread_([this, &fixture](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  std::this_thread::sleep_for(std::chrono::milliseconds{40});
                  fixture.cut();
                  ++cuts_;
              }
          }) {}
    [[nodiscard]] std::size_t cuts() const noexcept { return cuts_; }

  private:
    std::atomic<std::size_t> cuts_ = 0;
    std::jthread thread_; // last: it uses the other member
};

inline void cut_during_calls(trial& t) {
    constexpr std::size_t rounds_min = 30;
    constexpr std::size_t rounds_max = 300;
    std::vector<message> all;
    (void)t.publisher();
    {
        const cutter cutting(t.fixture());
        for (std::size_t round = 0; round < rounds_max && (round < rounds_min || cutting.cuts() < 4); ++round) {
            const auto some = one_per_lane(t, round);
            send(t, some);
            all.insert(all.end(), some.begin(), some.end());
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }
    expect_all_in_order(t, all);
}

inline void confirmed_messages_survive_a_restart(trial& t) {
    const auto before = numbered(t, 1, 50, "lane");
    send(t, before);
    t.fixture().restart();
    auto all = before;
    const auto after = numbered(t, 51, 55, "lane");
    for (const auto& m : after) {
        send(t, {m});
        all.push_back(m);
    }
    expect_all_in_order(t, all);
}

inline constexpr clause publish_order[] = {
    {"PUB-10", needs::nothing, "publisher 6, consumer 8",
     "Messages of one lane arrive in the order of their publication, within a call and from one call to the next.",
     "what the lane is mapped to (a partition, a queue), and repetitions by the client library",
     &lanes_keep_their_order},
    {"PUB-11", needs::cut, "publisher 3, 4, 6, 7",
     "After a cut the next calls connect again, nothing confirmed is missing, and lanes keep their order.",
     "how a lost connection is noticed, and whether anything that is lost is called refused or confirmed",
     &cut_between_calls},
    {"PUB-12", needs::cut, "publisher 2, 3, 4, 6, 7",
     "Connections that are cut during calls lose nothing confirmed, and lanes keep their order.",
     "what is said of messages that are sent and not answered yet, and answers of an old connection",
     &cut_during_calls},
    {"PUB-13", needs::restart, "publisher 2, 7", "What is confirmed survives a restart of the broker.",
     "durable queues, persistent messages, and acknowledgement by all replicas", &confirmed_messages_survive_a_restart},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/publish_parts.hpp
// Every part of a message arrives as it was given.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

[[nodiscard]] inline std::string headers_text(const header_list& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        out += (out.empty() ? "" : ", ") + json(name) + " = " + shown(value);
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string time_text(const std::optional<time_point>& at) {
    return at ? std::to_string(at->time_since_epoch().count()) + " us since 1970" : "none";
}

[[nodiscard]] inline std::string trail_of_ids(const id_list& trail) {
    std::string out = std::to_string(trail.size()) + " ids";
    for (const auto& one : trail) {
        out += " " + to_string(one);
    }
    return out;
}

inline void expect_same_message(const std::string& name, const message& expected, const message& seen) {
    const auto same = [&](std::string_view part, bool is_same, const std::string& was, const std::string& is) {
        expect(is_same, "the " + std::string(part) + " of message " + name, was, is);
    };
    const auto same_text = [&](std::string_view part, const std::string& was, const std::string& is) {
        same(part, was == is, shown(was), shown(is));
    };
    same_text("id", expected.id, seen.id);
    same_text("topic", expected.topic, seen.topic);
    same_text("payload", expected.payload, seen.payload);
    same_text("key", expected.key, seen.key);
    same_text("lane", expected.lane, seen.lane);
    same_text("group", expected.group, seen.group);
    same("trail", expected.trail == seen.trail, trail_of_ids(expected.trail), trail_of_ids(seen.trail));
    same("headers", expected.headers == seen.headers, headers_text(expected.headers), headers_text(seen.headers));
    same("created_at", expected.created_at == seen.created_at, time_text(expected.created_at),
         time_text(seen.created_at));
    same("expires_at", expected.expires_at == seen.expires_at, time_text(expected.expires_at),
         time_text(seen.expires_at));
}

/// Publishes these and compares what arrives with them.
inline void expect_to_arrive_as_given(trial& t, const std::vector<message>& messages) {
    send(t, messages);
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(messages);
    for (const auto& r : at.arrived()) {
        const auto of =
            std::find_if(messages.begin(), messages.end(), [&](const auto& m) { return m.id == r.message.id; });
        expect(of != messages.end(), "the id of a message", "one that was published", shown(r.message.id));
        expect_equal("the code of message " + t.name_of(*of) + ", which can be read", "none",
                     r.malformed.empty() ? "none" : r.malformed);
        expect_same_message(t.name_of(*of), *of, r.message);
    }
}

/// Every byte there is.
[[nodiscard]] inline std::string all_bytes() {
    std::string out;
    for (unsigned byte = 0; byte < 256; ++byte) {
        out += static_cast<char>(byte);
    }
    return out;
}

inline void payloads_arrive(trial& t) {
    using namespace std::string_literals;
    constexpr std::size_t large = 256 * 1024;
    const auto max = t.fixture().message_max ? t.fixture().message_max() : large;
    std::string bytes;
    while (bytes.size() < large) {
        bytes += all_bytes();
    }
    bytes.resize(std::min(large, max));
    std::vector<message> all;
    for (const auto& payload : {""s, "\0"s, "a\0b"s, all_bytes(), "\r\n{\"\xff\xfe"s, bytes}) {
        all.push_back(t.make(all.size()));
        all.back().payload = payload;
    }
    expect_to_arrive_as_given(t, all);
}

inline void headers_arrive(trial& t) {
    using namespace std::string_literals;
    auto none = t.make("none");
    auto one = t.make("one");
    one.headers = {{"tenant", "acme"}};
    auto repeated = t.make("repeated");
    repeated.headers = {{"b", "1"}, {"a", "2"}, {"b", "3"}, {"b", "1"}, {"B", "4"}};
    auto binary = t.make("binary");
    binary.headers = {{"empty", ""}, {"nul", "a\0b"s}, {"bytes", all_bytes()}, {"long", std::string(4096, 'v')}};
    auto ours = t.make("ours");
    ours.headers = {{"vouch-key", "not a key"}, {"vouch-header-x", "1"}, {"vouch-", "2"}, {"vouch-later", "3"}};
    auto names = t.make("names");
    names.headers = {{"gr\xc3\xb6\xc3\x9f"
                      "e",
                      "1"},
                     {"with space", "2"},
                     {"x-death", "3"},
                     {std::string(200, 'n'), "4"}};
    auto many = t.make("many");
    for (std::size_t i = 0; i < 64; ++i) {
        many.headers.emplace_back("h" + std::to_string(i), std::to_string(i));
    }
    expect_to_arrive_as_given(t, {none, one, repeated, binary, ours, names, many});
}

inline void other_parts_arrive(trial& t) {
    auto whole = t.make("whole", "lane");
    whole.key = "order/42";
    whole.group = "customer 7";
    for (std::uint64_t i = 0; i < 32; ++i) {
        whole.trail.push_back({.high = i, .low = ~i});
    }
    whole.created_at = time_point(duration(1'700'000'000'123'456));
    whole.expires_at = time_point(duration(4'000'000'000'654'321));
    auto names = t.make("names", "\xc3\xa4\xe2\x82\xac");
    names.key = std::string(255, 'k');
    names.group = "\xf0\x9f\x93\xa8, = %20";
    auto early = t.make("early");
    early.created_at = time_point::min();
    early.expires_at = time_point::max();
    auto before = t.make("before 1970");
    before.created_at = time_point(duration(-1));
    auto zero = t.make("zero");
    zero.created_at = time_point();
    auto late = t.make("late");
    late.created_at = time_point::max();
    expect_to_arrive_as_given(t, {whole, t.make("empty"), names, early, before, zero, late});
}

inline void ids_and_topics_arrive(trial& t) {
    auto words = t.make("words");
    words.topic = "kit.order.created.v2";
    auto shortest = t.make("s");
    shortest.topic = "kit.a";
    auto other = t.make("\xc3\xa4 /?#");
    other.topic = "kit.gr\xc3\xb6\xc3\x9f"
                  "e.x";
    auto longest = t.make("");
    longest.id.resize(200, 'i');
    longest.topic = "kit." + std::string(180, 't');
    expect_to_arrive_as_given(t, {words, shortest, other, longest});
}

inline constexpr clause publish_parts[] = {
    {"PUB-06", needs::nothing, "publisher 8", "Payloads arrive byte for byte: empty, with NUL, any bytes, large.",
     "lengths that are taken from C strings, and conversions of text", &payloads_arrive},
    {"PUB-07", needs::nothing, "publisher 8",
     "Headers arrive as they were given, in order: repeated, empty, binary, and with names that begin with vouch-.",
     "tables of headers that keep one value per name, and properties_of and read_properties", &headers_arrive},
    {"PUB-08", needs::nothing, "publisher 8",
     "Key, lane, group, trail and times arrive as they were given, or are absent if they were absent.",
     "properties_of and read_properties, and how an expiry is turned into a time to live", &other_parts_arrive},
    {"PUB-09", needs::nothing, "publisher 8", "Ids and topics arrive as they were given.",
     "where the adapter keeps id and topic", &ids_and_topics_arrive},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/receive_faults.hpp
// Cut connections and messages that cannot be read.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Some brokers resume a connection without delivering again; then the old acknowledgements count. If messages come
/// again after the cut, what was received before it is of a connection that is lost.
inline void old_tags_have_no_effect(trial& t) {
    const auto sent = numbered(t, 1, 3, "lane");
    const auto end = t.make("end", "lane");
    send(t, sent);
    std::vector<message> expected;
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        const auto old = at.arrived();
        t.fixture().cut();
        send(t, {end});
        at.forget();
        at.expect_one(end);
        const bool came_again = at.first_arrivals().size() > 1;
        if (came_again) {
            at.expect_all(sent);
            without_lasting_fault("acknowledge", [&] { first.acknowledge(old); });
            without_lasting_fault("set_aside", [&] { first.set_aside(old); });
        }
        expected = sent;
        expected.push_back(end);
    }
    mailbox at(t, t.consumer());
    at.expect_all(expected);
    at.acknowledge_all();
}

inline void unacknowledged_come_again_after_a_cut(trial& t) {
    send(t, numbered(t, 1, 5, "lane"));
    for (const bool sees_the_cut : {false, true}) {
        auto dying = t.fresh_consumer();
        mailbox at(t, dying);
        take(t, at, 5);
        t.fixture().cut();
        if (sees_the_cut) {
            at.receive(1, std::chrono::milliseconds{50});
        }
    }
    mailbox at(t, t.consumer());
    expect_equal("five messages were received, the connection was cut, and the consumer has died; then arrive",
                 "1 2 3 4 5 end", until_the_end(t, at));
}

inline void faults_are_over(trial& t) {
    auto& from = t.consumer();
    mailbox at(t, from, acknowledging::on_arrival); // says which exceptions are wrong
    for (std::size_t round = 0; round < 3; ++round) {
        const auto before = t.make(round * 2, "lane");
        send(t, {before});
        at.expect_one(before);
        t.fixture().cut();
        const auto after = t.make(round * 2 + 1, "lane");
        send(t, {after});
        at.expect_one(after);
    }
}

inline void malformed_blocks_nothing(trial& t) {
    const auto before = t.make("before", "lane");
    const auto after = t.make("after", "lane");
    send(t, {before});
    t.fixture().publish_malformed();
    send(t, {after});
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        at.expect_one(before);
        at.expect_one(after);
        expect(at.receive_until([&] { return !at.malformed().empty(); }), "a message that cannot be read was published",
               "it is returned with a code in `malformed`", "it is not returned");
        first.set_aside(at.malformed());
        at.acknowledge_all();
    }
    mailbox at(t, t.consumer());
    const auto seen = until_the_end(t, at);
    expect_equal("the malformed message was set aside and the others were acknowledged; then arrives", "end", seen);
    expect_equal("malformed messages that come again after they were set aside", "0",
                 std::to_string(at.malformed().size()));
}

inline constexpr clause receive_faults[] = {
    {"CON-14", needs::cut, "consumer 2, 3",
     "Acknowledgements of what was received before a cut have no effect on what came again after it.",
     "tags that begin again at 1 with every connection: a tag must say of which connection it is",
     &old_tags_have_no_effect},
    {"CON-15", needs::cut, "consumer 2", "What is not acknowledged when the connection is cut comes again.",
     "acknowledgement by the client library itself (auto-ack, auto-commit on close)",
     &unacknowledged_come_again_after_a_cut},
    {"CON-16", needs::cut, "consumer 10",
     "After a cut the same consumer receives again; its faults are vouch::error and is_transient.",
     "how a lost connection is noticed, and the kind of the error that says so", &faults_are_over},
    {"CON-17", needs::publish_malformed, "consumer 5, 9",
     "A message that cannot be read is returned with a code, blocks nothing, and can be set aside.",
     "exceptions while a message is read", &malformed_blocks_nothing},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/clauses/all_clauses.hpp
// Every clause of the kit, in the order in which they are run: later clauses rely on what earlier ones check.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

[[nodiscard]] inline const std::vector<clause>& all_clauses() {
    static const auto all = [] {
        std::vector<clause> out;
        const auto add = [&](const auto& some) { out.insert(out.end(), std::begin(some), std::end(some)); };
        add(detail::publish_answers);
        add(detail::publish_parts);
        add(detail::publish_order);
        add(detail::receive_waits);
        add(detail::receive_acknowledge);
        add(detail::receive_cancel);
        add(detail::receive_faults);
        add(detail::end_to_end);
        return out;
    }();
    return all;
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/watchdog.hpp
// Ends the process with exit code 3 when a clause takes too long, because a client that hangs cannot be interrupted.
// Before that it lets its owner write the report so far.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

class watchdog {
  public:
    /// `hangs` is called on the watchdog's thread while the owner's thread hangs.
    watchdog(std::chrono::seconds patience, std::function<void()> hangs)
        : patience_(patience), hangs_(std::move(hangs)), thread_([this](const std::stop_token& stop) { watch(stop); }) {
    }

    void begin() { set(true); }
    void end() { set(false); }

  private:
    void set(bool watches) {
        const std::lock_guard lock(mutex_);
        watches_ = watches;
        ++turn_;
        changed_.notify_all();
    }

    void watch(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            const auto turn = turn_;
            const auto has_changed = [&] { return turn_ != turn; };
            if (!watches_) {
                changed_.wait(lock, stop, has_changed);
            } else if (!changed_.wait_for(lock, stop, patience_, has_changed) && !stop.stop_requested()) {
                hangs_();
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::function<void()> hangs_;
    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    bool watches_ = false;
    unsigned turn_ = 0;
    std::jthread thread_; // last: it uses the other members
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/report.hpp
// The report of a run of the kit: a result per clause and the verdict, as a value, as text and as JSON.

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// An expectation that was not met.
struct failure {
    std::string what{}; ///< what was done or compared
    std::string expected{};
    std::string seen{};
};

enum class result : std::uint8_t {
    pass,
    fail,
    hangs,    ///< no answer within `options::per_clause`
    untested, ///< the fixture lacks the hook that it needs
    not_run,  ///< the options exclude it
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::hangs: return "hangs";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

enum class conformity : std::uint8_t {
    conformant, ///< every clause passes
    partial,    ///< no clause fails, but one was not tested
    failing,    ///< a clause fails or hangs
};

[[nodiscard]] constexpr std::string_view name_of(conformity c) noexcept {
    switch (c) {
    case conformity::conformant: return "conformant";
    case conformity::partial: return "partial";
    case conformity::failing: return "failing";
    }
    return "?";
}

struct clause_report {
    broker::clause clause{};
    broker::result result = broker::result::not_run;
    broker::failure failure{};
    double milliseconds = 0;
};

struct report {
    broker::identity identity{};
    std::vector<clause_report> clauses{};

    [[nodiscard]] std::size_t count(result r) const {
        std::size_t n = 0;
        for (const auto& c : clauses) {
            n += c.result == r ? 1U : 0U;
        }
        return n;
    }
    [[nodiscard]] conformity verdict() const {
        if (count(result::fail) + count(result::hangs) > 0) {
            return conformity::failing;
        }
        return count(result::pass) == clauses.size() ? conformity::conformant : conformity::partial;
    }
};

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and where to look.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + (c.result == result::hangs ? " HANGS: " : " FAILED: ") +
                      std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  rule:     " + std::string(c.clause.rules) + "\n";
    out += "  look at:  " + std::string(c.clause.hint) + "\n";
    return out + "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + "\n";
}

/// The whole report as text. `program` is the name in the commands that repeat failures.
[[nodiscard]] inline std::string to_text(const report& r, std::string_view program) {
    std::string out;
    for (const auto& c : r.clauses) {
        if (c.result == result::fail || c.result == result::hangs) {
            out += failure_text(c, program) + "\n";
        }
    }
    for (const auto& c : r.clauses) {
        if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: the fixture has no " + std::string(name_of(c.clause.needs)) +
                   "(): " + std::string(c.clause.sentence) + "\n";
        }
    }
    out += "client        " + r.identity.name + " " + r.identity.version + "\nclauses       ";
    std::string counts;
    for (const auto one : {result::pass, result::fail, result::hangs, result::untested, result::not_run}) {
        counts += (counts.empty() ? "" : ", ") + std::to_string(r.count(one)) + " " + std::string(name_of(one));
    }
    return out + counts + "\nverdict       " + std::string(name_of(r.verdict())) + "\n";
}

/// The whole report as JSON.
[[nodiscard]] inline std::string to_json(const report& r) {
    std::string clauses;
    for (const auto& c : r.clauses) {
        clauses += (clauses.empty() ? "" : ",\n  ") + std::string("{\"id\": ") + detail::json(c.clause.id) +
                   ", \"result\": " + detail::json(name_of(c.result)) +
                   ", \"milliseconds\": " + std::to_string(static_cast<std::uint64_t>(c.milliseconds)) +
                   ", \"what\": " + detail::json(c.failure.what) +
                   ", \"expected\": " + detail::json(c.failure.expected) +
                   ", \"seen\": " + detail::json(c.failure.seen) + "}";
    }
    return "{\"client\": " + detail::json(r.identity.name) + ", \"version\": " + detail::json(r.identity.version) +
           ", \"verdict\": " + detail::json(name_of(r.verdict())) + ",\n \"clauses\": [\n  " + clauses + "]}\n";
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/check.hpp
// `check_broker(fixture, options) -> report`: runs the clauses against a fixture, without any test framework.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace broker::detail {

/// A word that no other run has, so that messages of earlier runs are not taken for this one's.
[[nodiscard]] inline std::string run_name() {
    std::random_device random;
    return "kit" + std::to_string(random()) + std::to_string(random());
}

[[nodiscard]] inline failure failure_of(const std::function<void()>& check) {
    try {
        check();
        return {};
    } catch (const unmet& u) {
        return {u.what, u.expected, u.seen};
    } catch (const error& e) {
        return {"a call throws", "no exception",
                "vouch::error of the kind " + std::string(vouch::name_of(e.kind())) + ": " + shown(e.what())};
    } catch (const std::exception& e) {
        return {"a call throws", "no exception", "an exception: " + shown(e.what())};
    }
}

/// Runs one clause. After a failure the next clause gets new clients.
[[nodiscard]] inline clause_report run_clause(const hooks& fixture, const options& how, shared_clients& clients,
                                              const clause& c, const std::string& run) {
    clause_report out{.clause = c};
    if (!has(fixture, c.needs)) {
        out.result = result::untested;
        return out;
    }
    const auto begin = std::chrono::steady_clock::now();
    trial t(fixture, how, clients, run + "-" + std::string(c.id));
    out.failure = failure_of([&] { c.check(t); });
    out.result = out.failure.what.empty() ? result::pass : result::fail;
    if (out.result == result::fail) {
        clients = {};
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return out;
}

/// Runs the chosen clauses. `hangs` gets the report so far if one of them hangs; then the process ends.
[[nodiscard]] inline report check_hooks(const hooks& fixture, const options& how, const identity& whose,
                                        const std::function<void(const report&)>& hangs) {
    report out{.identity = whose};
    watchdog dog(how.per_clause, [&] {
        auto so_far = out;
        const auto& all = all_clauses();
        for (auto i = so_far.clauses.size(); i < all.size(); ++i) {
            so_far.clauses.push_back({.clause = all[i]});
        }
        auto& hanging = so_far.clauses[out.clauses.size()];
        hanging.result = result::hangs;
        hanging.failure.what =
            "no answer for " + std::to_string(how.per_clause.count()) + " s (--per-clause N waits for N seconds)";
        hangs(so_far);
    });
    const auto run = run_name();
    shared_clients clients;
    for (const auto& c : all_clauses()) {
        clause_report ended{.clause = c};
        if (is_chosen(c.id, how)) {
            if (how.progress) {
                std::fprintf(stderr, "%-8s %s\n", std::string(c.id).c_str(), std::string(c.sentence).c_str());
            }
            dog.begin();
            ended = run_clause(fixture, how, clients, c, run);
            dog.end();
        }
        out.clauses.push_back(std::move(ended));
    }
    return out;
}

} // namespace broker::detail

/// Runs the chosen clauses in this process. A clause that takes longer than `options::per_clause` ends the program with
/// exit code 3, after a call of `hangs` with the report so far, on another thread.
template <class Fixture>
[[nodiscard]] broker::report check_broker(Fixture& fixture, const broker::options& how = {},
                                          const broker::identity& whose = {},
                                          const std::function<void(const broker::report&)>& hangs = {}) {
    const auto hooks = broker::hooks_of(fixture);
    return broker::detail::check_hooks(hooks, how, whose, [&](const broker::report& so_far) {
        if (hangs) {
            hangs(so_far);
        }
    });
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/detail/command_line.hpp
// The options of the kit as a program.

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline constexpr std::string_view usage =
    "  --help           print this and exit\n"
    "  --list           print the clauses and exit\n"
    "  --clause ID      only clauses whose id starts with ID\n"
    "  --skip ID        no clauses whose id starts with ID; may be repeated\n"
    "  --json FILE      also write the report to FILE as JSON\n"
    "  --patience N     seconds that a message or a new connection may take (default 30)\n"
    "  --silence N      milliseconds without a message that count as silence (default 1000)\n"
    "  --per-clause N   seconds until a clause counts as hanging (default 180)\n"
    "  --quiet          do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 a clause hangs, 64 wrong usage.\n";

struct command_line {
    broker::options options{.progress = true};
    bool help = false;
    bool list = false;
    std::string json{};
    std::string wrong{}; ///< what is wrong, as a sentence without its full stop; empty: nothing
};

/// Reads a number of at least 1.
[[nodiscard]] inline bool parse_number(std::string_view text, std::uint32_t& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size() && into > 0;
}

/// Whether the option exists and has such a value.
[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    std::uint32_t number = 0;
    if (name == "--json") {
        out.json = value;
    } else if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--skip") {
        out.options.skip.emplace_back(value);
    } else if (!parse_number(value, number)) {
        return false;
    } else if (name == "--patience") {
        out.options.patience = std::chrono::seconds{number};
    } else if (name == "--silence") {
        out.options.silence = std::chrono::milliseconds{number};
    } else if (name == "--per-clause") {
        out.options.per_clause = std::chrono::seconds{number};
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline bool parse_flag(command_line& out, std::string_view name) {
    if (name == "--help") {
        out.help = true;
    } else if (name == "--list") {
        out.list = true;
    } else if (name == "--quiet") {
        out.options.progress = false;
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline std::string wrong_choice(const options& how) {
    const auto& all = all_clauses();
    const auto is_unknown = [&](const std::string& prefix) {
        return std::none_of(all.begin(), all.end(), [&](const clause& c) { return c.id.starts_with(prefix); });
    };
    if (is_unknown(how.clause)) {
        return "--clause: no clause starts with " + how.clause + "; --list prints them";
    }
    for (const auto& prefix : how.skip) {
        if (is_unknown(prefix)) {
            return "--skip: no clause starts with " + prefix + "; --list prints them";
        }
    }
    const bool is_some = std::any_of(all.begin(), all.end(), [&](const clause& c) { return is_chosen(c.id, how); });
    return is_some ? "" : "these options choose no clause; --list prints them";
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (parse_flag(out, name)) {
            continue;
        }
        if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = std::string(name) + " is not an option, or its value is missing or wrong";
            return out;
        }
        ++i;
    }
    out.wrong = wrong_choice(out.options);
    return out;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/broker/run.hpp
// The kit as a program: `int main(int argc, char** argv) { return run_broker<fixture>({"acme", "1.4.0"}, argc, argv); }`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace broker::detail {

inline constexpr int exit_usage = 64;

inline void print_clauses() {
    for (const auto& c : all_clauses()) {
        std::printf("%-8s %-24s %-20s %s\n", std::string(c.id).c_str(), std::string(c.rules).c_str(),
                    std::string(name_of(c.needs)).c_str(), std::string(c.sentence).c_str());
    }
}

/// Prints the report and writes the file that was asked for. Returns the exit code of the program.
[[nodiscard]] inline int publish(const report& r, const command_line& asked, const std::string& program) {
    std::fputs(to_text(r, program).c_str(), stdout);
    std::fflush(stdout);
    if (!asked.json.empty() && !(std::ofstream(asked.json) << to_json(r)).flush()) {
        std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), asked.json.c_str());
        return 1;
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

} // namespace broker::detail

/// For `main`: runs the kit as the arguments say, prints the report and returns the exit code. An unknown option prints
/// the usage and returns 64.
template <class Fixture>
int run_broker(const broker::identity& whose, int argc, char** argv) {
    namespace ours = broker::detail;
    const auto asked = ours::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    const std::string usage(ours::usage);
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s. Options:\n%s", program.c_str(), asked.wrong.c_str(), usage.c_str());
        return ours::exit_usage;
    }
    if (asked.help) {
        std::printf("usage: %s [OPTION]...\nChecks the client %s of a broker against the rules of vouch.\n%s",
                    program.c_str(), whose.name.c_str(), usage.c_str());
        return 0;
    }
    if (asked.list) {
        ours::print_clauses();
        return 0;
    }
    try {
        Fixture fixture{};
        return ours::publish(
            check_broker(fixture, asked.options, whose,
                         [&](const broker::report& so_far) { (void)ours::publish(so_far, asked, program); }),
            asked, program);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot be made: %s\n", program.c_str(), e.what());
        return 1;
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_CONFORMANCE_BROKER
