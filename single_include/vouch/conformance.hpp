// SPDX-License-Identifier: MIT
// The conformance suite: vouches for any store, or says in which sentence of the contract it fails.
//
//   struct fixture { auto open(const vouch::conformance::place& p) { return acme::store{p.directory() / "acme.db"}; }
//   }; int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"acme", "1.4.0"}, argc, argv); }
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_CONFORMANCE
#define VOUCH_SINGLE_HEADER_CONFORMANCE

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

// ---- vouch/conformance/any_store.hpp
// A store of any type behind one type, so that the suite is compiled once and not per store. `any_store` is itself a
// store; copies are the same handle. What the wrapped store throws goes through.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// What a store and a transaction have in common.
class reader_face {
  public:
    virtual ~reader_face() = default;
    [[nodiscard]] virtual std::optional<entry> find(const id& wanted) const = 0;
    [[nodiscard]] virtual std::vector<entry> list(const query& q) const = 0;
    [[nodiscard]] virtual state_counts counts(std::string_view queue) const = 0;
    [[nodiscard]] virtual std::optional<time_point> next_due(std::string_view queue) const = 0;
};

class transaction_face : public reader_face {
  public:
    virtual std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) = 0;
    [[nodiscard]] virtual std::vector<entry> claim(const claim_request& request) = 0;
    [[nodiscard]] virtual std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) = 0;
    [[nodiscard]] virtual std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                                      duration lease) = 0;
    [[nodiscard]] virtual verdict nudge(const id& wanted, time_point now) = 0;
    [[nodiscard]] virtual verdict cancel(const id& wanted, std::string_view error, time_point now) = 0;
    virtual std::size_t purge(const purge_request& request) = 0;
    virtual void commit() = 0;
    /// Moves the wrapped transaction to a new face; this one is then moved from.
    [[nodiscard]] virtual std::unique_ptr<transaction_face> move_out() = 0;
};

class store_face : public reader_face {
  public:
    [[nodiscard]] virtual std::unique_ptr<transaction_face> begin() = 0;
    [[nodiscard]] virtual vouch::capabilities capabilities() const = 0;
    /// Only called if the capability `wakes` is declared.
    [[nodiscard]] virtual std::uint64_t wakes(std::string_view queue) = 0;
    virtual std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                               std::stop_token stop) = 0;
};

class any_transaction {
  public:
    explicit any_transaction(std::unique_ptr<transaction_face> face) : face_(std::move(face)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return face_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return face_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return face_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return face_->next_due(queue); }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) { return face_->enqueue(drafts, now); }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) { return face_->claim(request); }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return face_->settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return face_->extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) { return face_->nudge(wanted, now); }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return face_->cancel(wanted, error, now);
    }
    std::size_t purge(const purge_request& request) { return face_->purge(request); }
    void commit() { face_->commit(); }

    /// As a move construction of the wrapped transaction: this one stays behind, moved from.
    [[nodiscard]] any_transaction move_out() { return any_transaction(face_->move_out()); }

  private:
    std::unique_ptr<transaction_face> face_;
};

class any_store {
  public:
    using transaction = any_transaction;
    static constexpr int contract_level = vouch::contract_level;

    explicit any_store(std::shared_ptr<store_face> face) : face_(std::move(face)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return face_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return face_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return face_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return face_->next_due(queue); }
    [[nodiscard]] any_transaction begin() { return any_transaction(face_->begin()); }
    [[nodiscard]] vouch::capabilities capabilities() const { return face_->capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) { return face_->wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        return face_->wait(queue, seen, at_most, std::move(stop));
    }

  private:
    std::shared_ptr<store_face> face_;
};

/// What was called on a store's transactions, and how often it threw `conflict`, which any operation may.
struct call_counts {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> conflicts = 0;
};

namespace detail {

template <class Call>
auto counted(call_counts& counts, const Call& call) {
    counts.calls += 1;
    try {
        return call();
    } catch (const error& e) {
        counts.conflicts += e.kind() == error_kind::conflict ? 1U : 0U;
        throw;
    }
}

template <class Transaction>
class wrapped_transaction final : public transaction_face {
  public:
    wrapped_transaction(Transaction tx, std::shared_ptr<call_counts> counts)
        : tx_(std::move(tx)), counts_(std::move(counts)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override {
        return counted([&] { return tx_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        return counted([&] { return tx_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override {
        return counted([&] { return tx_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return counted([&] { return tx_.next_due(queue); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return counted([&] { return tx_.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        return counted([&] { return tx_.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return counted([&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return counted([&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return counted([&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        return counted([&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return counted([&] { return tx_.purge(request); });
    }
    void commit() override {
        counted([&] { tx_.commit(); });
    }
    [[nodiscard]] std::unique_ptr<transaction_face> move_out() override {
        return std::make_unique<wrapped_transaction>(std::move(tx_), counts_);
    }

  private:
    template <class Call>
    auto counted(const Call& call) const {
        return detail::counted(*counts_, call);
    }

    Transaction tx_;
    std::shared_ptr<call_counts> counts_;
};

template <class Store>
class wrapped_store final : public store_face {
  public:
    template <class Open>
    wrapped_store(Open&& open, std::shared_ptr<call_counts> counts) : store_(open()), counts_(std::move(counts)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_face> begin() override {
        return detail::counted(*counts_, [&]() -> std::unique_ptr<transaction_face> {
            return std::make_unique<wrapped_transaction<typename Store::transaction>>(store_.begin(), counts_);
        });
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override {
        if constexpr (waking_store<Store>) {
            return store_.wakes(queue);
        } else {
            return 0;
        }
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        if constexpr (waking_store<Store>) {
            return store_.wait(queue, seen, at_most, std::move(stop));
        } else {
            return seen;
        }
    }

  private:
    Store store_;
    std::shared_ptr<call_counts> counts_;
};

} // namespace detail

/// The store `open()` gives, behind `any_store`. A type that is no store is told what it lacks.
template <class Open>
[[nodiscard]] any_store erase(Open&& open, std::shared_ptr<call_counts> counts = std::make_shared<call_counts>()) {
    using wrapped = std::remove_cvref_t<decltype(open())>;
    static_assert(explain_store<wrapped>());
    return any_store(std::make_shared<detail::wrapped_store<wrapped>>(open, std::move(counts)));
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clause.hpp
// The contract as data: numbered sentences, each with the check that a store keeps it.

namespace vouch {
inline namespace v0 {
namespace conformance {

class trial;

enum class level : std::uint8_t {
    must, ///< every store
    may,  ///< stores that declare the capability; the others must refuse what would need it
};

enum class needs : std::uint8_t { nothing, groups, lanes, wakes, durable, shared };

[[nodiscard]] constexpr std::string_view name_of(needs n) noexcept {
    switch (n) {
    case needs::nothing: return "-";
    case needs::groups: return "groups";
    case needs::lanes: return "lanes";
    case needs::wakes: return "wakes";
    case needs::durable: return "durable";
    case needs::shared: return "shared";
    }
    return "?";
}

[[nodiscard]] constexpr bool has(const capabilities& can, needs n) noexcept {
    switch (n) {
    case needs::nothing: return true;
    case needs::groups: return can.groups;
    case needs::lanes: return can.lanes;
    case needs::wakes: return can.wakes;
    case needs::durable: return can.durable;
    case needs::shared: return can.shared;
    }
    return false;
}

/// The layers, from the fixture up to the simulation.
enum class layer : std::uint8_t {
    fixture,
    examples,
    stories,
    interleavings,
    histories,
    crashes,
    faults,
    simulation,
    cost
};

[[nodiscard]] constexpr std::string_view name_of(layer l) noexcept {
    switch (l) {
    case layer::fixture: return "fixture";
    case layer::examples: return "examples";
    case layer::stories: return "stories";
    case layer::interleavings: return "interleavings";
    case layer::histories: return "histories";
    case layer::crashes: return "crashes";
    case layer::faults: return "faults";
    case layer::simulation: return "simulation";
    case layer::cost: return "cost";
    }
    return "?";
}

struct clause {
    std::string_view id; ///< "CLAIM-01"
    conformance::layer layer;
    conformance::level level;
    conformance::needs needs;
    std::string_view sentence;
    void (*check)(trial&);
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/show.hpp
// Values as people read them, in failures: times relative to the suite's beginning, ids by their number, and of two
// entries only the fields that differ.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// When the suite's tests begin.
inline constexpr time_point start{std::chrono::hours{24 * 365 * 50}};

/// The beginning and `us` microseconds.
[[nodiscard]] constexpr time_point at(std::int64_t us) noexcept { return start + duration{us}; }

/// The suite's ids are numbers.
[[nodiscard]] constexpr id id_of(std::uint64_t n) noexcept { return {.high = n == 0 ? 0U : 7U, .low = n}; }

// As C++.

[[nodiscard]] inline std::string show(std::string_view text) {
    constexpr std::size_t shown_max = 60;
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size() && i < shown_max; ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        constexpr std::string_view digits = "01234567";
        if (c == '"' || c == '\\') {
            out += {'\\', text[i]};
        } else if (c >= 0x20 && c < 0x7f) {
            out += text[i];
        } else {
            out += {'\\', digits[c >> 6U], digits[(c >> 3U) & 7U], digits[c & 7U]};
        }
    }
    out += '"';
    return text.size() > shown_max ? out + " /* and more, " + std::to_string(text.size()) + " bytes in all */" : out;
}
[[nodiscard]] inline std::string show(const std::string& text) { return show(std::string_view(text)); }
[[nodiscard]] inline std::string show(const char* text) { return show(std::string_view(text)); }
[[nodiscard]] inline std::string show(bool value) { return value ? "true" : "false"; }
template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
[[nodiscard]] std::string show(T value) { return std::to_string(value); }
[[nodiscard]] inline std::string show(duration value) { return std::to_string(value.count()) + "us"; }
[[nodiscard]] inline std::string show(time_point value) {
    const auto us = (value - start).count();
    return us == duration::min().count() ? "at(" + std::to_string(us + 1) + " - 1)" : "at(" + std::to_string(us) + ")";
}
[[nodiscard]] inline std::string show(const id& value) {
    return value == id_of(value.low) ? "id_of(" + std::to_string(value.low) + ")" : "id " + to_string(value);
}
[[nodiscard]] inline std::string show(const ticket& value) {
    return "ticket{" + show(value.id) + ", " + std::to_string(value.epoch) + "}";
}
[[nodiscard]] inline std::string show(verdict value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(state value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(error_kind value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(const settlement& value) {
    return show(value.verdict) + (value.group_completed ? ", group completed" : "");
}
[[nodiscard]] inline std::string show(const receipt& value) {
    return std::string(name_of(value.what)) + (value.what == receipt::kind::refused ? "" : " " + show(value.id));
}
[[nodiscard]] inline std::string show(const state_counts& value) {
    std::string out;
    for (const auto s : all_states) {
        out += std::string(out.empty() ? "" : ", ") + std::to_string(value[s]) + ' ' + std::string(name_of(s));
    }
    return out;
}
template <class A, class B>
[[nodiscard]] std::string show(const std::pair<A, B>& value);
template <class T>
[[nodiscard]] std::string show(const std::optional<T>& value);
template <class T>
[[nodiscard]] std::string show(const std::vector<T>& values);

/// The fields that are not as in an entry of which nothing is known.
[[nodiscard]] inline std::string show(const entry& value) {
    std::string out;
    const entry plain;
    for_each_field(
        [&](std::string_view name, const auto& field, const auto& none) {
            if (!(field == none)) {
                out += std::string(out.empty() ? "" : ", ") + std::string(name) + ' ' + show(field);
            }
        },
        value, plain);
    return "entry{" + out + "}";
}
template <class A, class B>
std::string show(const std::pair<A, B>& value) {
    return "{" + show(value.first) + ", " + show(value.second) + "}";
}
template <class T>
std::string show(const std::optional<T>& value) {
    return value ? show(*value) : "none";
}
template <class T>
std::string show(const std::vector<T>& values) {
    std::string out;
    for (const auto& value : values) {
        out += (out.empty() ? "" : ", ") + show(value);
    }
    return "[" + out + "]";
}

[[nodiscard]] inline std::vector<id> ids_of(const std::vector<entry>& entries) {
    std::vector<id> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id);
    }
    return out;
}

/// What is expected and what was seen, as far as they differ.
template <class T>
[[nodiscard]] std::pair<std::string, std::string> show_difference(const T& seen, const T& expected) {
    return {show(seen), show(expected)};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const entry& seen, const entry& expected) {
    std::string a = "entry " + show(seen.id);
    std::string b = "entry " + show(expected.id);
    for_each_field(
        [&](std::string_view name, const auto& x, const auto& y) {
            if (!(x == y)) {
                a += ", " + std::string(name) + ' ' + show(x);
                b += ", " + std::string(name) + ' ' + show(y);
            }
        },
        seen, expected);
    return {a, b};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const std::optional<entry>& seen,
                                                                         const std::optional<entry>& expected) {
    return seen && expected ? show_difference(*seen, *expected) : std::pair{show(seen), show(expected)};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const std::vector<entry>& seen,
                                                                         const std::vector<entry>& expected) {
    if (ids_of(seen) != ids_of(expected)) {
        return {show(ids_of(seen)), show(ids_of(expected))};
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (!(seen[i] == expected[i])) {
            return show_difference(seen[i], expected[i]);
        }
    }
    return {show(ids_of(seen)), show(ids_of(expected))};
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/random_source.hpp
// Randomness that is the same on every machine and from the first roll on: RapidCheck's own ranges grow with its size.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// SplitMix64.
class dice {
  public:
    explicit dice(std::uint64_t seed) : state_(vouch::detail::mix(seed)) {}

    std::uint64_t roll() { return vouch::detail::mix(state_ += 0x9e3779b97f4a7c15U); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(roll() % n); }
    bool chance(std::size_t percent) { return below(100) < percent; }
    template <class T>
    T one_of(std::initializer_list<T> values) {
        return values.begin()[below(values.size())];
    }

  private:
    std::uint64_t state_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/model.hpp
// The contract once more, as simply as it can be said: a list of records, searched from end to end for every question.
// It is written from the design alone and uses none of the library's rules (`apply`, `gate_of`, `born` ...), so that it
// and a store that agree have understood the same thing. Arguments are valid when they come here.

namespace vouch {
inline namespace v0 {
namespace conformance {

class model {
  public:
    struct record {
        vouch::entry entry{};
        std::uint64_t replaces = 0; ///< the sequence of its predecessor; ids may come again, sequences do not
    };
    std::vector<record> records{}; ///< in sequence

    // Reading.

    [[nodiscard]] const entry* find(const id& wanted) const {
        for (const auto& r : records) {
            if (r.entry.id == wanted) {
                return &r.entry;
            }
        }
        return nullptr;
    }

    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        using path = vouch::query::path;
        std::vector<entry> out;
        for (const auto& r : records) {
            const auto& e = r.entry;
            const bool on_path =
                (q.by == path::group && e.group == q.group) || (q.by == path::parent && e.parent == q.parent) ||
                (q.by == path::key && e.queue == q.queue && e.key == q.key) ||
                (q.by == path::dead && e.queue == q.queue && e.state == state::dead) ||
                (q.by == path::live && e.queue == q.queue && alive(e)) || (q.by == path::all && e.queue == q.queue);
            if (on_path && (!q.state || e.state == *q.state) && (q.topic.empty() || e.topic == q.topic) &&
                e.sequence > q.after && out.size() < q.limit) {
                out.push_back(e);
                if (!q.payloads) {
                    out.back().payload.clear();
                }
            }
        }
        return out;
    }

    [[nodiscard]] vouch::state_counts counts(const std::string& queue) const {
        vouch::state_counts out;
        for (const auto& r : records) {
            out.by_state[static_cast<std::size_t>(r.entry.state)] += r.entry.queue == queue ? 1U : 0U;
        }
        return out;
    }

    [[nodiscard]] std::optional<time_point> next_due(const std::string& queue) const {
        std::optional<time_point> least;
        for (const auto& r : records) {
            const auto g = gate(r.entry);
            if (r.entry.queue == queue && g && (!least || *g < *least)) {
                least = g;
            }
        }
        return least;
    }

    // Writing.

    vouch::receipt enqueue(const vouch::draft& d, time_point now) {
        using kind = vouch::receipt::kind;
        if (find(d.id) != nullptr) {
            return {kind::duplicate, d.id};
        }
        record fresh;
        auto& e = fresh.entry;
        if (!d.predecessor.is_nil()) {
            const auto* const old = find(d.predecessor);
            if (old == nullptr || old->state != state::dead || old->queue != d.queue) {
                return {kind::refused, {}};
            }
            if (const auto* const other = successor(*old)) {
                return {kind::duplicate, other->entry.id};
            }
            fresh.replaces = old->sequence;
            e.key = old->key;
            e.group = old->group;
            e.lane = old->lane;
            e.generation = old->generation + 1;
        } else {
            const entry* newest = nullptr;
            for (const auto& r : records) {
                newest = !d.key.empty() && r.entry.queue == d.queue && r.entry.key == d.key ? &r.entry : newest;
            }
            if (newest != nullptr) {
                return {kind::duplicate, newest->id};
            }
            e.key = d.key;
            e.group = d.group;
            e.lane = d.lane;
            e.generation = 1;
        }
        e.id = d.id;
        e.queue = d.queue;
        e.topic = d.topic;
        e.payload = d.payload;
        e.parent = d.parent;
        e.predecessor = d.predecessor;
        e.expires_at = d.expires_at;
        e.attempts_max = d.attempts_max;
        e.trail = d.trail;
        e.headers = d.headers;
        e.progress = d.progress;
        e.result = d.result;
        e.state = d.result ? state::succeeded : state::pending;
        e.due_at = d.due_at ? *d.due_at : now;
        e.created_at = now;
        e.updated_at = now;
        e.sequence = records.empty() ? 1 : records.back().entry.sequence + 1; // until the store has said which
        records.push_back(std::move(fresh));
        return {kind::inserted, d.id};
    }

    std::vector<entry> claim(const vouch::claim_request& r) {
        std::vector<std::pair<time_point, entry*>> eligible;
        for (auto& one : records) {
            const auto g = gate(one.entry);
            if (one.entry.queue == r.queue && g && *g <= r.now && (r.only.is_nil() || one.entry.id == r.only)) {
                eligible.emplace_back(*g, &one.entry);
            }
        }
        std::sort(eligible.begin(), eligible.end(), [](const auto& a, const auto& b) {
            return std::tie(a.first, a.second->sequence) < std::tie(b.first, b.second->sequence);
        });
        eligible.resize(std::min(eligible.size(), r.limit));
        std::vector<entry> out;
        for (const auto& [g, e] : eligible) {
            if (e->state != state::claimed) {
                e->attempts += 1;
            } else {
                e->attempts += e->lapses == 0 ? 0 : 1; // a first lapse may be another entry's fault
                e->lapses += 1;
            }
            e->state = state::claimed;
            e->epoch += 1;
            e->lease_until = r.now + r.lease;
            e->woken = false;
            e->worker = r.worker;
            e->last_attempt_at = r.now;
            e->updated_at = r.now;
            out.push_back(*e);
        }
        std::sort(out.begin(), out.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return out;
    }

    vouch::settlement settle(const vouch::settle& s, time_point now) {
        auto* const e = find_mutable(s.ticket.id);
        if (e == nullptr) {
            return {verdict::unknown, false};
        }
        if (s.ticket.epoch != e->epoch) {
            return {verdict::stale, false};
        }
        if (e->state != state::claimed) {
            return {verdict::repeated, false};
        }
        const auto unfinished_before = unfinished(e->group);
        const auto due = [&](time_point at) { e->due_at = e->woken && now < at ? now : at; };
        e->lapses = std::holds_alternative<vouch::release>(s.outcome) ? e->lapses : 0;
        if (const auto* const succeed = std::get_if<vouch::succeed>(&s.outcome)) {
            e->state = state::succeeded;
            e->result = succeed->result;
        } else if (const auto* const retry = std::get_if<vouch::retry>(&s.outcome)) {
            e->state = state::retrying;
            e->failures += 1;
            e->last_error = retry->error;
            due(retry->at);
        } else if (const auto* const bury = std::get_if<vouch::bury>(&s.outcome)) {
            e->state = state::dead;
            e->failures += 1;
            e->last_error = bury->error;
            e->result = bury->result;
        } else if (const auto* const release = std::get_if<vouch::release>(&s.outcome)) {
            e->attempts -= 1;
            e->state = e->attempts == 0 ? state::pending : state::retrying;
            due(release->at ? *release->at : e->due_at);
        } else if (const auto* const advance = std::get_if<vouch::advance>(&s.outcome)) {
            e->state = state::pending;
            e->attempts = 0;
            e->progress = advance->progress;
            due(advance->at ? *advance->at : now);
        }
        e->lease_until.reset();
        e->woken = false;
        e->updated_at = now;
        const bool completed = !e->group.empty() && unfinished_before == 1 && unfinished(e->group) == 0;
        wake_parent_of(*e, now);
        return {verdict::applied, completed};
    }

    verdict extend(const vouch::ticket& t, time_point now, vouch::duration lease) {
        auto* const e = find_mutable(t.id);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (t.epoch != e->epoch) {
            return verdict::stale;
        }
        if (e->state != state::claimed) {
            return verdict::repeated;
        }
        if (*e->lease_until < now + lease) {
            e->lease_until = now + lease;
        }
        e->updated_at = now;
        return verdict::applied;
    }

    verdict nudge(const id& wanted, time_point now) {
        auto* const e = find_mutable(wanted);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (!alive(*e)) {
            return verdict::stale;
        }
        if (e->state == state::claimed ? e->woken : e->due_at <= now) {
            return verdict::repeated;
        }
        if (e->state == state::claimed) {
            e->woken = true;
        } else {
            e->due_at = now;
        }
        e->updated_at = now;
        return verdict::applied;
    }

    verdict cancel(const id& wanted, const std::string& error, time_point now) {
        auto* const e = find_mutable(wanted);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (e->state == state::dead) {
            return verdict::repeated;
        }
        if (e->state == state::succeeded || (e->state == state::claimed && *e->lease_until > now)) {
            return verdict::stale;
        }
        e->epoch += e->state == state::claimed ? 1U : 0U;
        e->state = state::dead;
        e->last_error = error;
        e->lease_until.reset();
        e->woken = false;
        e->updated_at = now;
        wake_parent_of(*e, now);
        return verdict::applied;
    }

    std::size_t purge(const vouch::purge_request& request) {
        std::vector<const record*> tips;
        for (const auto& r : records) {
            const auto& e = r.entry;
            if (e.queue == request.queue && !alive(e) && e.updated_at < request.before && successor(e) == nullptr &&
                (!request.state || e.state == *request.state)) {
                tips.push_back(&r);
            }
        }
        std::sort(tips.begin(), tips.end(), [](const record* a, const record* b) {
            return std::tie(a->entry.updated_at, a->entry.sequence) < std::tie(b->entry.updated_at, b->entry.sequence);
        });
        std::vector<std::uint64_t> going;
        for (const auto* const tip : tips) {
            std::vector<std::uint64_t> chain;
            bool needed = false;
            for (const auto* r = tip; r != nullptr; r = predecessor(*r)) {
                chain.insert(chain.begin(), r->entry.sequence);
                needed = needed || is_needed(r->entry);
            }
            if (!needed) {
                going.insert(going.end(), chain.begin(), chain.end());
            }
        }
        going.resize(std::min(going.size(), request.limit));
        std::erase_if(records, [&](const record& r) {
            return std::find(going.begin(), going.end(), r.entry.sequence) != going.end();
        });
        return going.size();
    }

    [[nodiscard]] static bool alive(const entry& e) { return e.state != state::succeeded && e.state != state::dead; }

    [[nodiscard]] std::optional<time_point> gate(const entry& e) const {
        if (!alive(e)) {
            return std::nullopt;
        }
        for (const auto& r : records) {
            if (!e.lane.empty() && r.entry.queue == e.queue && r.entry.lane == e.lane && alive(r.entry) &&
                r.entry.sequence < e.sequence) {
                return std::nullopt;
            }
        }
        return e.state == state::claimed ? e.lease_until : std::optional{e.due_at};
    }

  private:
    [[nodiscard]] entry* find_mutable(const id& wanted) { return const_cast<entry*>(find(wanted)); }

    [[nodiscard]] const record* successor(const entry& of) const {
        for (const auto& r : records) {
            if (r.replaces == of.sequence) {
                return &r;
            }
        }
        return nullptr;
    }

    [[nodiscard]] const record* predecessor(const record& of) const {
        for (const auto& r : records) {
            if (r.entry.sequence == of.replaces) {
                return &r;
            }
        }
        return nullptr;
    }

    /// Members not yet succeeded; a dead one with a successor is counted by its successor.
    [[nodiscard]] std::size_t unfinished(const std::string& group) const {
        std::size_t count = 0;
        for (const auto& r : records) {
            const bool open = r.entry.state != state::succeeded && successor(r.entry) == nullptr;
            count += r.entry.group == group && open ? 1U : 0U;
        }
        return count;
    }

    [[nodiscard]] bool is_needed(const entry& e) const {
        for (const auto& r : records) {
            if (alive(r.entry) && ((!e.group.empty() && r.entry.group == e.group) || r.entry.parent == e.id)) {
                return true;
            }
        }
        return false;
    }

    void wake_parent_of(const entry& e, time_point now) {
        if (!alive(e) && !e.parent.is_nil()) {
            const auto parent = e.parent;
            std::ignore = nudge(parent, now);
        }
    }
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/expect.hpp
// What the tests that a failure prints are made of. Values are compared as they are shown, so that a test can be read.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline void expect_text(const std::string& seen, std::string_view wanted) {
    if (seen != wanted) {
        throw std::logic_error("expected " + std::string(wanted) + ", seen " + seen);
    }
}

[[nodiscard]] inline id& id_in(draft& d) noexcept { return d.id; }
[[nodiscard]] inline id& id_in(ticket& t) noexcept { return t.id; }
[[nodiscard]] inline id& id_in(settle& s) noexcept { return s.ticket.id; }

} // namespace detail

/// So many bytes, no two stretches of them alike.
[[nodiscard]] inline std::string pattern(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t x = 1;
    for (auto& c : out) {
        x = x * 1664525U + 1013904223U;
        c = static_cast<char>(x >> 24U);
    }
    return out;
}

/// As many as said, each as the first, but with the next id.
template <class T>
[[nodiscard]] std::vector<T> numbered(std::size_t count, const T& first) {
    std::vector<T> out(count, first);
    for (std::size_t i = 0; i < count; ++i) {
        detail::id_in(out[i]).low += i;
    }
    return out;
}

/// As shown elsewhere, but of a long list its beginning, its end and its length.
template <class T>
[[nodiscard]] std::string show_briefly(const T& value) {
    return show(value);
}
template <class T>
[[nodiscard]] std::string show_briefly(const std::vector<T>& values) {
    constexpr std::size_t many = 20;
    if (values.size() <= many) {
        return show(values);
    }
    return "[" + show(values[0]) + ", " + show(values[1]) + ", ... " + show(values.back()) + "], " +
           std::to_string(values.size()) + " in all";
}

template <class T>
void expect(const T& seen, std::string_view wanted) {
    detail::expect_text(show_briefly(seen), wanted);
}

/// That `f` throws a `vouch::error` of this kind.
template <class F>
void expect_error(error_kind wanted, const F& f) {
    std::string seen = "no error";
    try {
        f();
    } catch (const error& e) {
        seen = show(e.kind());
    }
    detail::expect_text(seen, show(wanted));
}

/// Goes on, whether `f` throws a `vouch::error` or not.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): it did so when it was written down
    }
}

[[nodiscard]] inline std::vector<ticket> tickets_of(const std::vector<entry>& entries) {
    std::vector<ticket> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(ticket_of(e));
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/as_code.hpp
// Arguments of a store's operations as C++ that makes them again.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// Whole, however long.
[[nodiscard]] inline std::string as_literal(std::string_view text) {
    constexpr std::size_t piece = 50;
    std::string out = "\"";
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
        const auto quoted = show(text.substr(0, piece));
        out.append(quoted, 1, quoted.size() - 2);
    }
    return out + "\"";
}

/// A list of `.name = value` with those that are not as usual.
class members {
  public:
    template <class T>
    void add(std::string_view name, const T& value) {
        out_ += std::string(out_.empty() ? "" : ", ") + "." + std::string(name) + " = " + value_of(value);
    }
    template <class T>
    void add_if(bool wanted, std::string_view name, const T& value) {
        if (wanted) {
            add(name, value);
        }
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

    template <class T>
    [[nodiscard]] static std::string value_of(const T& value) {
        return show(value);
    }
    [[nodiscard]] static std::string value_of(state value) { return "state::" + show(value); }
    template <class T>
    [[nodiscard]] static std::string value_of(const std::optional<T>& value) {
        return value ? value_of(*value) : "std::nullopt";
    }
    [[nodiscard]] static std::string value_of(const id& value) {
        return value == id_of(value.low)
                   ? show(value)
                   : "id{.high = " + std::to_string(value.high) + "U, .low = " + std::to_string(value.low) + "U}";
    }
    /// Whole, and with its NULs.
    [[nodiscard]] static std::string value_of(const std::string& value) {
        constexpr std::size_t long_text = 60;
        const auto tail = value.find_last_not_of(value.empty() ? ' ' : value.back()) + 1; // all of one letter
        if (value.size() - tail > long_text) {
            return "std::string(" + as_literal(value.substr(0, tail)) + ", " + std::to_string(tail) + ").append(" +
                   std::to_string(value.size() - tail) + ", " + letter(value.back()) + ")";
        }
        if (value.size() > long_text && value == pattern(value.size())) {
            return "pattern(" + std::to_string(value.size()) + ")";
        }
        return value.find('\0') == std::string::npos
                   ? as_literal(value)
                   : "std::string(" + as_literal(value) + ", " + std::to_string(value.size()) + ")";
    }
    [[nodiscard]] static std::string value_of(const id_list& values) {
        std::string out;
        for (const auto& one : values) {
            out += (out.empty() ? "" : ", ") + value_of(one);
        }
        return "{" + out + "}";
    }
    [[nodiscard]] static std::string value_of(const header_list& values) {
        std::string out;
        for (const auto& [name, value] : values) {
            out += (out.empty() ? "{" : ", {") + value_of(name) + ", " + value_of(value) + "}";
        }
        return "{" + out + "}";
    }

  private:
    [[nodiscard]] static std::string letter(char c) {
        auto text = as_literal(std::string_view(&c, 1));
        text.front() = text.back() = '\'';
        return text;
    }

    std::string out_{};
};

[[nodiscard]] inline std::string as_code(const draft& d) {
    members m;
    m.add("id", d.id);
    m.add("queue", d.queue);
    m.add("topic", d.topic);
    m.add_if(!d.payload.empty(), "payload", d.payload);
    m.add_if(!d.key.empty(), "key", d.key);
    m.add_if(!d.group.empty(), "group", d.group);
    m.add_if(!d.lane.empty(), "lane", d.lane);
    m.add_if(!d.parent.is_nil(), "parent", d.parent);
    m.add_if(!d.predecessor.is_nil(), "predecessor", d.predecessor);
    m.add_if(d.due_at.has_value(), "due_at", d.due_at);
    m.add_if(d.expires_at.has_value(), "expires_at", d.expires_at);
    m.add_if(d.attempts_max != 0, "attempts_max", d.attempts_max);
    m.add_if(!d.trail.empty(), "trail", d.trail);
    m.add_if(!d.headers.empty(), "headers", d.headers);
    m.add_if(!d.progress.empty(), "progress", d.progress);
    m.add_if(d.result.has_value(), "result", d.result);
    return "draft" + m.str();
}

[[nodiscard]] inline std::string as_code(const claim_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("limit", r.limit);
    m.add("now", r.now);
    m.add("lease", r.lease);
    m.add_if(!r.worker.empty(), "worker", r.worker);
    m.add_if(!r.only.is_nil(), "only", r.only);
    return "claim_request" + m.str();
}

[[nodiscard]] inline std::string as_code(const purge_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("before", r.before);
    m.add("limit", r.limit);
    m.add_if(r.state.has_value(), "state", r.state);
    return "purge_request" + m.str();
}

struct outcome_as_code {
    std::string operator()(const succeed& o) const { return "succeed{" + members::value_of(o.result) + "}"; }
    std::string operator()(const retry& o) const {
        return "retry{" + members::value_of(o.error) + ", " + show(o.at) + "}";
    }
    std::string operator()(const bury& o) const {
        return "bury{" + members::value_of(o.error) + ", " + members::value_of(o.result) + "}";
    }
    std::string operator()(const release& o) const { return "release{" + members::value_of(o.at) + "}"; }
    std::string operator()(const advance& o) const {
        return "advance{" + members::value_of(o.progress) + ", " + members::value_of(o.at) + "}";
    }
};

[[nodiscard]] inline std::string as_code(const ticket& t) {
    return "ticket{" + members::value_of(t.id) + ", " + std::to_string(t.epoch) + "}";
}
[[nodiscard]] inline std::string as_code(const settle& s) {
    return "vouch::settle{" + as_code(s.ticket) + ", " + visit_outcome(outcome_as_code{}, s.outcome) + "}";
}

template <class T>
[[nodiscard]] std::string as_code(std::string_view type, std::span<const T> items) {
    constexpr std::size_t many = 20;
    if (items.size() > many) {
        const auto alike = numbered(items.size(), items.front());
        if (std::equal(items.begin(), items.end(), alike.begin())) {
            return "numbered(" + std::to_string(items.size()) + ", " + as_code(items.front()) + ")";
        }
        if (std::equal(items.begin() + 1, items.end(), items.begin())) {
            return "std::vector(" + std::to_string(items.size()) + ", " + as_code(items.front()) + ")";
        }
    }
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : ", ") + as_code(item);
    }
    return "std::vector<" + std::string(type) + ">{" + out + "}";
}

} // namespace detail

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/first_difference.hpp
// The model beside a store whose calls are written down: it says what the store should have answered, and where what
// one can read differs from it. It knows as long as transactions come one after the other.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A question to a reader, and how it is written.
struct question {
    std::string code{};
    vouch::query query{};
};

/// All names that drafts have had, to ask for.
class names {
  public:
    void add(const draft& d) {
        ids_.insert(d.id);
        queues_.insert(d.queue);
        const auto ask = [&](std::string code, const vouch::query& q) {
            if (asked_.insert(code).second) {
                questions_.push_back({std::move(code), q});
            }
        };
        const auto queue = as_literal(d.queue);
        ask("query::all(" + queue + ")", query::all(d.queue));
        ask("query::live(" + queue + ")", query::live(d.queue));
        ask("query::dead(" + queue + ")", query::dead(d.queue));
        if (!d.key.empty()) {
            ask("query::keyed(" + queue + ", " + as_literal(d.key) + ")", query::keyed(d.queue, d.key));
        }
        if (!d.group.empty()) {
            ask("query::members(" + as_literal(d.group) + ")", query::members(d.group));
        }
        if (!d.parent.is_nil()) {
            ask("query::children(" + members::value_of(d.parent) + ")", query::children(d.parent));
        }
    }
    [[nodiscard]] const std::set<id>& ids() const noexcept { return ids_; }
    [[nodiscard]] const std::set<std::string>& queues() const noexcept { return queues_; }
    [[nodiscard]] const std::vector<question>& questions() const noexcept { return questions_; }

  private:
    std::set<id> ids_{};
    std::set<std::string> queues_{};
    std::set<std::string> asked_{};
    std::vector<question> questions_{};
};

/// `expect(code, "wanted"); // seen: ...`, or nothing if the two are the same.
template <class T>
[[nodiscard]] std::string difference(const std::string& code, const T& seen, const T& wanted) {
    return seen == wanted
               ? ""
               : "expect(" + code + ", " + as_literal(show_briefly(wanted)) + "); // seen: " + show_briefly(seen);
}

[[nodiscard]] inline std::string difference(const std::string& code, const entry& seen, const entry& wanted) {
    std::string out;
    for_each_field([&](std::string_view name, const auto& x,
                       const auto& y) { out = out.empty() ? difference(code + "." + std::string(name), x, y) : out; },
                   seen, wanted);
    return out;
}

/// The first thing one can read that is not as in the model, as a line of code.
template <class Reader>
[[nodiscard]] std::string first_difference(const Reader& reader, const std::string& name, const model& wanted,
                                           const names& known) {
    std::string out;
    for (const auto& one : known.ids()) {
        const auto code = name + ".find(" + members::value_of(one) + ")";
        const auto seen = reader.find(one);
        const auto* const e = wanted.find(one);
        out = seen && e != nullptr ? difference(code + ".value()", *seen, *e)
                                   : difference(code + ".has_value()", seen.has_value(), e != nullptr);
        if (!out.empty()) {
            return out;
        }
    }
    for (const auto& q : known.questions()) {
        const auto code = name + ".list(" + q.code + ")";
        const auto seen = reader.list(q.query);
        const auto right = wanted.list(q.query);
        out = difference("ids_of(" + code + ")", ids_of(seen), ids_of(right));
        for (std::size_t i = 0; i < right.size() && out.empty(); ++i) {
            out = difference(code + ".at(" + std::to_string(i) + ")", seen[i], right[i]);
        }
        if (!out.empty()) {
            return out;
        }
    }
    for (const auto& queue : known.queues()) {
        const auto in_queue = "(" + as_literal(queue) + ")";
        out = difference(name + ".counts" + in_queue, reader.counts(queue), wanted.counts(queue));
        out = out.empty() ? difference(name + ".next_due" + in_queue, reader.next_due(queue), wanted.next_due(queue))
                          : out;
        if (!out.empty()) {
            return out;
        }
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/test_source.hpp
// The calls a store gets, written down as a C++ test, line by line. `scripted.hpp` writes it. Not for several threads.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// What is known of one of the stores that are called.
struct known_store {
    std::size_t number = 0;
    model committed{};
    detail::names names{};
    std::size_t open = 0;           ///< transactions
    bool has_been_looked_at = true; ///< from outside, since something happened to it
};

} // namespace detail

class script {
  public:
    void add(std::string code) { lines_.push_back({std::move(code)}); }
    /// Says the newest line in another way.
    void rewrite(std::string code) { lines_.back().code = std::move(code); }
    /// The end of a handle or a transaction, which is not worth a word if nothing comes after it.
    void add_end(const std::string& of, std::string_view how) {
        lines_.push_back({"{ auto gone = std::move(" + of + "); } // " + std::string(how), true});
    }

    [[nodiscard]] std::string next_handle() { return "s" + std::to_string(++handles_); }
    [[nodiscard]] std::string next_transaction() { return "tx" + std::to_string(++transactions_); }
    [[nodiscard]] std::shared_ptr<detail::known_store> store_at(const std::string& place) {
        auto& found = stores_[place];
        if (!found) {
            found = std::make_shared<detail::known_store>();
            found->number = stores_.size();
        }
        return found;
    }

    /// Whether the model still says what is right: not if transactions overlap, or a commit is in doubt.
    [[nodiscard]] bool is_sure() const noexcept { return is_sure_; }
    void give_up() noexcept { is_sure_ = false; }
    /// The newest line shows what is wrong; what comes after it has nothing to add.
    void end_here() noexcept {
        is_sure_ = false;
        shown_ = lines_.size();
    }

    /// A function that makes the same calls on handles of any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` gives a handle on store n, empty at first.\n"
                          "template <class Open>\nvoid replay(Open&& open) {\n"
                          "    using namespace vouch;\n    using namespace vouch::conformance;\n"
                          "    using namespace std::chrono_literals;\n";
        auto last = std::min(lines_.size(), shown_);
        while (last > 0 && lines_[last - 1].is_end) {
            --last;
        }
        for (std::size_t i = 0; i < last; ++i) {
            out += "    " + lines_[i].code + "\n";
        }
        return out + "}\n";
    }
    [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }

  private:
    struct line {
        std::string code{};
        bool is_end = false;
    };
    std::vector<line> lines_{};
    std::size_t handles_ = 0;
    std::size_t transactions_ = 0;
    std::map<std::string, std::shared_ptr<detail::known_store>> stores_{};
    bool is_sure_ = true;
    std::size_t shown_ = static_cast<std::size_t>(-1); ///< lines
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/test_writer.hpp
// A store whose calls are written down as a test: each with what the contract says it answers, up to the first answer
// or entry that is another one. Where the model cannot know, because transactions overlap, with what was seen.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// Reads everything and writes down the first thing that is not as the model has it.
template <class Reader>
void tell_difference(const Reader& reader, const std::string& name, const model& wanted, known_store& known,
                     script& to) {
    constexpr std::size_t many = 40;
    known.has_been_looked_at = true;
    if (!to.is_sure() || wanted.records.size() > many) {
        return;
    }
    try {
        if (auto line = first_difference(reader, name, wanted, known.names); !line.empty()) {
            to.add(std::move(line));
            to.end_here();
        }
    } catch (const error&) { // NOLINT(bugprone-empty-catch): what cannot be read cannot be told
    }
}

class scripted_transaction final : public transaction_face {
  public:
    scripted_transaction(any_transaction tx, std::string name, const any_store& store, std::string handle,
                         std::shared_ptr<known_store> known, script& to)
        : tx_(std::move(tx)), name_(std::move(name)), store_(store), handle_(std::move(handle)),
          known_(std::move(known)), own_(known_->committed), script_(to) {
        if (++known_->open > 1) {
            script_.give_up();
        }
    }
    scripted_transaction(const scripted_transaction&) = delete;
    scripted_transaction& operator=(const scripted_transaction&) = delete;
    ~scripted_transaction() override {
        if (!is_done_) {
            script_.add_end(name_, is_over_ ? "closed" : "rolled back");
            close();
            known_->has_been_looked_at = false;
        }
    }

    // Reads are not written down, but for one that shows a difference: everything is read after every call.
    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return tx_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return tx_.next_due(queue);
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return write(
            name_ + ".enqueue(" + as_code("draft", drafts) + ", " + show(now) + ")",
            [&](const vouch::capabilities& can) { validate(drafts, can); },
            [&] {
                for (const auto& d : drafts) {
                    known_->names.add(d);
                }
                return one_by_one(drafts, [&](const draft& d) { return own_.enqueue(d, now); });
            },
            [&] {
                auto receipts = tx_.enqueue(drafts, now);
                adopt_sequences(receipts);
                return receipts;
            });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        std::vector<entry> claimed;
        std::ignore = write(
            "tickets_of(" + name_ + ".claim(" + as_code(request) + "))",
            [&](const vouch::capabilities& can) { validate(request, can.limits); },
            [&] { return show_briefly(tickets_of(own_.claim(request))); },
            [&] {
                claimed = tx_.claim(request);
                return tickets_of(claimed);
            });
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return write(
            name_ + ".settle(" + as_code("vouch::settle", settles) + ", " + show(now) + ")",
            [&](const vouch::capabilities& can) { validate(settles, can.limits); },
            [&] { return one_by_one(settles, [&](const vouch::settle& s) { return own_.settle(s, now); }); },
            [&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return write(
            name_ + ".extend(" + as_code("ticket", tickets) + ", " + show(now) + ", " + show(lease) + ")",
            [&](const vouch::capabilities& can) { validate(tickets, now, lease, can.limits); },
            [&] { return one_by_one(tickets, [&](const ticket& t) { return own_.extend(t, now, lease); }); },
            [&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return write(
            name_ + ".nudge(" + members::value_of(wanted) + ", " + show(now) + ")", [](const vouch::capabilities&) {},
            [&] { return show(own_.nudge(wanted, now)); }, [&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        const std::string code(error);
        return write(
            name_ + ".cancel(" + members::value_of(wanted) + ", " + members::value_of(code) + ", " + show(now) + ")",
            [&](const vouch::capabilities& can) { validate_error_code(error, can.limits); },
            [&] { return show(own_.cancel(wanted, code, now)); }, [&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return write(
            name_ + ".purge(" + as_code(request) + ")",
            [&](const vouch::capabilities& can) { validate(request, can.limits); },
            [&] { return show(own_.purge(request)); }, [&] { return tx_.purge(request); });
    }
    void commit() override {
        struct done {};
        const auto code = name_ + ".commit()";
        script_.add(code + ";");
        carry_out(code + ";", refusal([](const vouch::capabilities&) {}), [&] {
            tx_.commit();
            return done{};
        });
        close();
        is_done_ = true;
        known_->committed = own_;
        tell_difference(store_, handle_, own_, *known_, script_);
    }
    [[nodiscard]] std::unique_ptr<transaction_face> move_out() override {
        auto name = script_.next_transaction();
        script_.add("auto " + name + " = std::move(" + name_ + ");");
        auto out =
            std::make_unique<scripted_transaction>(tx_.move_out(), std::move(name), store_, handle_, known_, script_);
        out->own_ = own_;
        close();
        is_done_ = true;
        return out;
    }

  private:
    /// The kind of error that is due, because of an argument or because the transaction is over.
    template <class Check>
    [[nodiscard]] std::optional<error_kind> refusal(const Check& check) const {
        if (is_over_) {
            return error_kind::misuse;
        }
        try {
            check(store_.capabilities());
            return std::nullopt;
        } catch (const error& e) {
            return e.kind();
        }
    }

    template <class Item, class Ask>
    [[nodiscard]] static std::string one_by_one(std::span<const Item> items, const Ask& ask) {
        std::vector<decltype(ask(items.front()))> out;
        for (const auto& item : items) {
            out.push_back(ask(item));
        }
        return show_briefly(out);
    }

    /// Which sequence is the store's business.
    void adopt_sequences(const std::vector<receipt>& receipts) {
        for (auto& r : own_.records) {
            for (const auto& one : receipts) {
                const bool is_new = one.what == receipt::kind::inserted && one.id == r.entry.id;
                if (const auto stored = is_new ? tx_.find(one.id) : std::nullopt) {
                    r.entry.sequence = stored->sequence;
                }
            }
        }
    }

    /// Makes the call, and writes down what is to be said of it if it throws, or should.
    template <class Call>
    std::invoke_result_t<Call&> carry_out(const std::string& statement, std::optional<error_kind> due,
                                          const Call& call) {
        const auto throwing = [&](error_kind kind) {
            return "expect_error(error_kind::" + show(kind) + ", [&] { " + statement + " });";
        };
        try {
            auto answer = call();
            if (due) {
                script_.rewrite(throwing(*due) + " // seen: no error");
                script_.end_here();
            }
            return answer;
        } catch (const error& e) {
            if (due) {
                script_.rewrite(throwing(*due) + (e.kind() == *due ? "" : " // seen: " + show(e.kind())));
            } else {
                script_.rewrite("let_fail([&] { " + statement + " }); // throws " + show(e.kind()) +
                                (e.is_in_doubt() ? ", in doubt" : ""));
            }
            if (due && e.kind() != *due) {
                script_.end_here();
            } else if (e.is_in_doubt()) {
                script_.give_up();
            }
            if (e.kind() != error_kind::invalid_argument) {
                close();
            }
            throw;
        } catch (...) {
            script_.rewrite(statement + " // throws what is no vouch::error");
            throw;
        }
    }

    template <class Check, class Ask, class Call>
    std::invoke_result_t<Call&> write(const std::string& code, const Check& check, const Ask& ask, const Call& call) {
        script_.add("std::ignore = " + code + ";");
        const auto due = refusal(check);
        const auto wanted = due || !script_.is_sure() ? std::string() : ask();
        auto answer = carry_out("std::ignore = " + code + ";", due, call);
        const auto seen = show_briefly(answer);
        if (wanted.empty() && !due) {
            script_.rewrite("std::ignore = " + code + "; // " + seen);
        } else if (!due) {
            script_.rewrite("expect(" + code + ", " + as_literal(wanted) + ");" +
                            (seen == wanted ? "" : " // seen: " + seen));
        }
        if (!wanted.empty() && seen != wanted) {
            script_.end_here();
        }
        tell_difference(tx_, name_, own_, *known_, script_);
        tell_difference(store_, handle_, known_->committed, *known_, script_);
        return answer;
    }

    void close() {
        known_->open -= is_over_ ? 0U : 1U;
        is_over_ = true;
    }

    any_transaction tx_;
    std::string name_;
    any_store store_; ///< to look from outside
    std::string handle_;
    std::shared_ptr<known_store> known_;
    model own_; ///< what the transaction should see
    script& script_;
    bool is_over_ = false; ///< its use is misuse
    bool is_done_ = false; ///< nothing more happens to what has its name
};

class scripted_store final : public store_face {
  public:
    scripted_store(any_store store, std::shared_ptr<known_store> known, script& to)
        : store_(std::move(store)), known_(std::move(known)), name_(to.next_handle()), script_(to) {
        script_.add("auto " + name_ + " = open(" + std::to_string(known_->number) + ");");
        known_->has_been_looked_at = false;
    }
    scripted_store(const scripted_store&) = delete;
    scripted_store& operator=(const scripted_store&) = delete;
    ~scripted_store() override { script_.add_end(name_, "closed"); }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return looked_at().find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return looked_at().list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return looked_at().counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return looked_at().next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_face> begin() override {
        auto tx = store_.begin();
        auto name = script_.next_transaction();
        script_.add("auto " + name + " = " + name_ + ".begin();");
        return std::make_unique<scripted_transaction>(std::move(tx), std::move(name), store_, name_, known_, script_);
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    [[nodiscard]] const any_store& looked_at() const {
        if (!known_->has_been_looked_at) {
            tell_difference(store_, name_, known_->committed, *known_, script_);
        }
        return store_;
    }

    any_store store_;
    std::shared_ptr<known_store> known_;
    std::string name_;
    script& script_;
};

} // namespace detail

/// The same store, its calls written to `to`, which must outlive it. Handles on one place are handles on one store.
[[nodiscard]] inline any_store write_down(any_store store, script& to, const std::string& place = {}) {
    return any_store(std::make_shared<detail::scripted_store>(std::move(store), to.store_at(place), to));
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/location.hpp
// Where a store under test lives. The same place opened twice is a second handle; everything destroyed and opened again
// is a reopen; a new place is a fresh empty store.

namespace vouch {
inline namespace v0 {
namespace conformance {

class place {
  public:
    explicit place(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// An empty folder of its own when the place is first opened. A store that needs no files uses it as a name.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
    [[nodiscard]] friend bool operator==(const place&, const place&) = default;
    [[nodiscard]] friend bool operator<(const place& a, const place& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

/// Makes places below one folder, which is removed in the end.
class places {
  public:
    explicit places(std::filesystem::path root) : root_(std::move(root)) { std::filesystem::create_directories(root_); }
    places(const places&) = delete;
    places& operator=(const places&) = delete;
    ~places() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    [[nodiscard]] place fresh() {
        place p(root_ / std::to_string(++made_));
        std::filesystem::create_directory(p.directory());
        return p;
    }

  private:
    std::filesystem::path root_;
    std::atomic<unsigned long long> made_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/options.hpp
// How much the suite does. Budgets are counts, not times, so that one seed is one run.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Whose store is tested.
struct identity {
    std::string name{};
    std::string version{};
};

enum class profile : std::uint8_t {
    quick,    ///< seconds, for the inner loop
    standard, ///< a minute or so; what a verdict is based on
    soak,     ///< as long as one likes to wait
};

[[nodiscard]] constexpr std::string_view name_of(profile p) noexcept {
    switch (p) {
    case profile::quick: return "quick";
    case profile::standard: return "standard";
    case profile::soak: return "soak";
    }
    return "?";
}

struct budget {
    std::size_t stories = 0;        ///< of the model
    std::size_t story_commands = 0; ///< in each
    std::size_t schedules = 0;      ///< orders tried of each pair of transactions
    std::size_t histories = 0;      ///< of threads
    std::size_t crash_points = 0;
    std::size_t simulated_days = 0;
    std::size_t cost_rows = 0; ///< the largest number of rows beside a claim
};

/// For a store in memory.
[[nodiscard]] constexpr budget budget_of(profile p) noexcept {
    switch (p) {
    case profile::quick:
        return {.stories = 400,
                .story_commands = 100,
                .schedules = 12,
                .histories = 1'500,
                .crash_points = 100,
                .simulated_days = 5,
                .cost_rows = 10'000};
    case profile::standard: break;
    case profile::soak:
        return {.stories = 200'000,
                .story_commands = 200,
                .schedules = 1'000,
                .histories = 500'000,
                .crash_points = 50'000,
                .simulated_days = 5'000,
                .cost_rows = 100'000};
    }
    return {.stories = 10'000,
            .story_commands = 100,
            .schedules = 100,
            .histories = 20'000,
            .crash_points = 1'000,
            .simulated_days = 130,
            .cost_rows = 100'000};
}

/// A durable store's commands take tens of times as long, so it is given fewer of them.
[[nodiscard]] constexpr budget budget_of(profile p, const capabilities& can) noexcept {
    auto b = budget_of(p);
    if (can.durable) {
        b.stories /= 10;
        b.schedules = (b.schedules + 3) / 4;
        b.histories /= 5;
        b.simulated_days = (b.simulated_days + 9) / 10;
    }
    return b;
}

struct options {
    std::uint64_t seed = 1;
    conformance::profile profile = conformance::profile::standard;
    std::string clause{};                      ///< only those whose id begins so; empty: all
    std::optional<conformance::layer> layer{}; ///< only this one
    std::size_t seconds_per_clause = 300;      ///< after which a clause counts as hanging and the program ends
    bool progress = false;                     ///< say on stderr what is being done
    bool explains = true;                      ///< a failing case is made smaller and told; without, it is found sooner
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/trial.hpp
// What a check works with: stores at places of its own, randomness from the seed, the budget, and expectations that end
// it with a message when they are not met. The store's calls are written down if a failure is to be shown.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// An expectation that was not met.
struct failure {
    std::string what{};
    std::string seen{};
    std::string expected{};
    std::string story{}; ///< the shrunk case, where there is one
};

/// A check that cannot be carried out on this store or fixture, and why.
struct untested {
    std::string why{};
};

/// What a fixture may offer beside `open`.
struct hooks {
    /// Makes the place look as after the death of its process, with its handles destroyed just before.
    std::function<void(const place&)> crash{};
    /// Lets the store call back between its internal steps, from whatever thread is in it; none: stop calling.
    std::function<void(std::function<void(std::string_view)>)> seam{};
    /// Nothing will be opened at this place again.
    std::function<void(const place&)> forget{};
    /// Lets the n-th step of the store's own machinery fail from now on; 0: none. Says whether one has failed since.
    std::function<bool(std::size_t)> fail_at{};
};

/// What was done, counted.
struct tally {
    std::uint64_t commands = 0;
    std::uint64_t interleavings = 0;
    std::uint64_t histories = 0;
    std::uint64_t overlapping = 0; ///< histories in which operations on the same thing were in progress together
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< "settle applied" and the like
};

/// All that trials of one run share.
struct stage {
    std::function<any_store(const place&)> open{};
    conformance::hooks hooks{};
    conformance::options options{};
    conformance::budget budget{};
    vouch::capabilities can{};
    places* ground = nullptr;
    conformance::tally tally{};
    std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
};

class trial {
  public:
    trial(stage& on, std::uint64_t seed, script* written = nullptr)
        : stage_(on), dice_(seed), seed_(seed), script_(written), home_(on.ground->fresh()) {}
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;
    ~trial() { leave(home_); }

    /// A handle on the trial's own place; the next one is a second handle on the same work.
    [[nodiscard]] any_store open() { return open(home_); }
    [[nodiscard]] any_store open(const place& p) {
        auto store = stage_.open(p);
        return script_ == nullptr ? store : write_down(store, *script_, p.directory().string());
    }
    [[nodiscard]] const place& home() const noexcept { return home_; }
    [[nodiscard]] place fresh_place() { return stage_.ground->fresh(); }

    /// Gives a place up: its handles are gone, and nothing will be opened there again.
    void leave(const place& p) {
        if (stage_.hooks.forget) {
            stage_.hooks.forget(p);
        }
        std::error_code ignored;
        std::filesystem::remove_all(p.directory(), ignored);
    }

    [[nodiscard]] dice& random() noexcept { return dice_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] const conformance::budget& budget() const noexcept { return stage_.budget; }
    [[nodiscard]] const conformance::options& options() const noexcept { return stage_.options; }
    [[nodiscard]] const conformance::hooks& hooks() const noexcept { return stage_.hooks; }
    [[nodiscard]] const vouch::capabilities& can() const noexcept { return stage_.can; }
    [[nodiscard]] conformance::tally& tally() noexcept { return stage_.tally; }
    [[nodiscard]] conformance::stage& on() noexcept { return stage_; }
    [[nodiscard]] script* written() const noexcept { return script_; }

    // Expectations.

    [[noreturn]] static void fail(std::string what, std::string seen = {}, std::string expected = {}) {
        throw failure{std::move(what), std::move(seen), std::move(expected), {}};
    }

    static void expect(bool holds, std::string_view what) {
        if (!holds) {
            fail(std::string(what));
        }
    }

    template <class Seen, class Expected>
    static void equal(const Seen& seen, const Expected& expected, std::string_view what) {
        if constexpr (std::same_as<Seen, Expected>) {
            if (!(seen == expected)) {
                auto [a, b] = show_difference(seen, expected);
                fail(std::string(what), std::move(a), std::move(b));
            }
        } else if constexpr (std::integral<Seen>) {
            equal(seen, static_cast<Seen>(expected), what);
        } else {
            equal(seen, Seen(expected), what);
        }
    }

    /// That `f` throws a `vouch::error` of this kind, and nothing else; a conflict goes through, since it may come at
    /// any time.
    template <class F>
    static error throws(error_kind kind, std::string_view what, F&& f) {
        try {
            f();
        } catch (const error& e) {
            if (e.kind() == error_kind::conflict && kind != error_kind::conflict) {
                throw;
            }
            equal(e.kind(), kind, what);
            return e;
        } catch (const std::exception&) {
            fail(std::string(what), "an exception that is no vouch::error", show(kind));
        }
        fail(std::string(what), "no error", show(kind));
    }

  private:
    stage& stage_;
    dice dice_;
    std::uint64_t seed_;
    script* script_;
    place home_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/steps.hpp
// What checks do all the time, in a line each: drafts with a number for a name, transactions of one call, everything a
// reader can see as one value.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The draft with the number n, for the queue "q"; the rest as in `more`.
[[nodiscard]] inline draft draft_of(std::uint64_t n, draft more = {}) {
    more.id = id_of(n);
    more.queue = more.queue.empty() ? "q" : more.queue;
    more.topic = more.topic.empty() ? "t" : more.topic;
    return more;
}

// One transaction each.

/// Runs `work(tx)`, which commits if it likes, and all of it from begin again after a conflict.
template <class Store, class Work>
void from_begin(Store& store, Work&& work) {
    for (int left = transact_tries - 1;; --left) {
        try {
            auto tx = store.begin();
            work(tx);
            return;
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || left == 0) {
                throw;
            }
        }
    }
}

template <class Store>
receipt put(Store& store, const draft& d, time_point now = at(0)) {
    return transact(store, [&](auto& tx) { return tx.enqueue(std::span(&d, 1), now).front(); });
}

struct taking {
    std::size_t limit = 100;
    std::string queue = "q";
    duration lease{100};
    std::string worker = "w";
    id only{};
};

[[nodiscard]] inline claim_request request(time_point now, taking how = {}) {
    return {.queue = std::move(how.queue),
            .limit = how.limit,
            .now = now,
            .lease = how.lease,
            .worker = std::move(how.worker),
            .only = how.only};
}

template <class Store>
[[nodiscard]] std::vector<entry> take(Store& store, time_point now, taking how = {}) {
    return claim(store, request(now, std::move(how)));
}

/// The ticket of the one entry there is to claim.
template <class Store>
[[nodiscard]] ticket take_one(Store& store, time_point now, taking how = {}) {
    const auto claimed = take(store, now, std::move(how));
    trial::equal(claimed.size(), std::size_t{1}, "entries claimed");
    return ticket_of(claimed.front());
}

/// Claims entry n, which is due at 0, and takes it over so many times, each time exactly at the end of its lease of
/// 100 us. The ticket of the last claim, which was at 100 us x `lapses`.
template <class Store>
ticket take_lapsed(Store& store, std::uint64_t n, std::uint32_t lapses) {
    auto mine = take_one(store, at(0), {.only = id_of(n)});
    for (std::uint32_t lapsed = 1; lapsed <= lapses; ++lapsed) {
        mine = take_one(store, at(100 * lapsed), {.only = id_of(n)});
    }
    return mine;
}

template <class Writer>
settlement settle_in(Writer& tx, const ticket& t, outcome o, time_point now) {
    const std::array settles{vouch::settle{t, std::move(o)}};
    return tx.settle(settles, now).front();
}

template <class Store>
settlement settle(Store& store, const ticket& t, const outcome& o, time_point now = at(0)) {
    return transact(store, [&](auto& tx) { return settle_in(tx, t, o, now); });
}

template <class Store>
verdict extend(Store& store, const ticket& t, time_point now, duration lease) {
    return transact(store, [&](auto& tx) { return tx.extend(std::span(&t, 1), now, lease).front(); });
}

template <class Store>
verdict nudge(Store& store, const id& wanted, time_point now = at(0)) {
    return transact(store, [&](auto& tx) { return tx.nudge(wanted, now); });
}

template <class Store>
verdict cancel(Store& store, const id& wanted, time_point now = at(0), std::string_view error = "cancelled") {
    return transact(store, [&](auto& tx) { return tx.cancel(wanted, error, now); });
}

template <class Store>
std::size_t purge(Store& store, const purge_request& r) {
    return transact(store, [&](auto& tx) { return tx.purge(r); });
}

/// Puts a draft and cancels it.
template <class Store>
void put_dead(Store& store, const draft& d, time_point now = at(0)) {
    trial::equal(put(store, d, now).what == receipt::kind::inserted, true, "enqueued");
    trial::equal(cancel(store, d.id, now), verdict::applied, "cancelled");
}

// Looking.

/// The entry with the number n, which must be there.
template <class Reader>
[[nodiscard]] entry get(const Reader& reader, std::uint64_t n) {
    auto found = reader.find(id_of(n));
    if (!found) {
        trial::fail("entry " + std::to_string(n) + " is stored", "it is absent", "it is found");
    }
    return std::move(*found);
}

[[nodiscard]] inline std::vector<std::uint64_t> numbers(const std::vector<entry>& entries) {
    std::vector<std::uint64_t> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id.low);
    }
    return out;
}

/// For comparing with `numbers`.
using list_of = std::vector<std::uint64_t>;

/// All that can be seen through the names and numbers checks use: ids 1 to 20; queues "q" and "r"; keys "k" and "l";
/// groups "g" and "h".
struct sight {
    std::vector<entry> found{};
    std::vector<std::vector<entry>> listed{};
    std::vector<state_counts> counts{};
    std::vector<std::optional<time_point>> due{};

    [[nodiscard]] friend bool operator==(const sight&, const sight&) = default;
};

template <class Reader>
[[nodiscard]] sight look(const Reader& reader) {
    sight out;
    const auto add = [&](query q) {
        q.payloads = true;
        out.listed.push_back(reader.list(q));
    };
    for (std::uint64_t n = 1; n <= 20; ++n) {
        if (auto e = reader.find(id_of(n))) {
            out.found.push_back(std::move(*e));
        }
        add(query::children(id_of(n)));
    }
    for (const std::string queue : {"q", "r"}) {
        for (const auto& q : {query::all(queue), query::live(queue), query::dead(queue), query::keyed(queue, "k"),
                              query::keyed(queue, "l")}) {
            add(q);
        }
        out.counts.push_back(reader.counts(queue));
        out.due.push_back(reader.next_due(queue));
    }
    add(query::members("g"));
    add(query::members("h"));
    return out;
}

/// Says what of the two differs.
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const sight& seen, const sight& expected) {
    if (seen.found != expected.found) {
        return show_difference(seen.found, expected.found);
    }
    for (std::size_t i = 0; i < seen.listed.size(); ++i) {
        if (seen.listed[i] != expected.listed[i]) {
            return show_difference(seen.listed[i], expected.listed[i]);
        }
    }
    return seen.counts != expected.counts ? std::pair{show(seen.counts), show(expected.counts)}
                                          : std::pair{show(seen.due), show(expected.due)};
}

/// That nothing visible has changed since `before` was seen.
template <class Reader>
void unchanged(const Reader& reader, const sight& before, std::string_view what) {
    const auto now = look(reader);
    if (!(now == before)) {
        auto [a, b] = show_difference(now, before);
        trial::fail(std::string(what), std::move(a), std::move(b));
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/cancel.hpp
// Cancel: ends what nobody holds.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace cancel_checks {

inline void pending_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(500), .progress = "begun"}));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(30), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.last_error = "why";
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the cancel");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
    t.equal(numbers(take(store, at(900))), list_of{}, "claimed after the cancel");
    t.equal(numbers(store.list(query::dead("q"))), list_of{1}, "the list of the dead");
}

inline void retrying_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    const auto ticket = take_one(store, at(0));
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(10));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(30), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.last_error = "why";
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the cancel");
    t.equal(settle(store, ticket, succeed{}, at(40)), settlement{verdict::repeated}, "the settle of the last claim");
}

inline void lapsed_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    std::ignore = take_one(store, at(0));
    nudge(store, id_of(1), at(10));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(200), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.epoch = 2;
    expected.lease_until.reset();
    expected.woken = false;
    expected.last_error = "why";
    expected.updated_at = at(200);
    t.equal(get(store, 1), expected, "the entry after the cancel");
}

inline void lapsed_ticket_is_stale(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    std::ignore = cancel(store, id_of(1), at(100));
    const auto before = look(store);
    t.equal(settle(store, ticket, succeed{"late"}, at(110)), settlement{verdict::stale}, "the settle after the cancel");
    t.equal(extend(store, ticket, at(110), duration{100}), verdict::stale, "the extend after the cancel");
    unchanged(store, before, "who held the entry cannot change it any more");
}

inline void lease_ends_exactly_now(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    t.equal(cancel(store, id_of(1), at(99)), verdict::stale, "the cancel one microsecond before the lease ends");
    unchanged(store, before, "a cancel leaves a claim alone whose lease is running");
    t.equal(extend(store, ticket, at(99), duration{2}), verdict::applied, "the extend of that claim");
    t.equal(cancel(store, id_of(1), at(100)), verdict::stale, "the cancel when the lease would have ended");
    t.equal(cancel(store, id_of(1), at(101)), verdict::applied, "the cancel exactly when the lease ends");
}

inline void error_is_stored(trial& t) {
    auto store = t.open();
    const std::string longest(t.can().limits.error_max, 'e');
    put(store, draft_of(1));
    std::ignore = cancel(store, id_of(1), at(1), longest);
    t.equal(get(store, 1).last_error, longest, "the longest error");
    put(store, draft_of(2));
    std::ignore = settle(store, take_one(store, at(0)), retry{"e", at(5)}, at(1));
    std::ignore = cancel(store, id_of(2), at(2), "");
    t.equal(get(store, 2).last_error, std::string{}, "the empty error, where there was one before");
}

inline void error_out_of_bounds(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    for (const auto& wrong : {std::string(t.can().limits.error_max + 1, 'e'), std::string("a\nb")}) {
        t.throws(error_kind::invalid_argument, "a cancel with an error out of bounds",
                 [&] { cancel(store, id_of(1), at(1), wrong); });
    }
    unchanged(store, before, "a cancel that is refused changes nothing");
}

inline void first_error_stays(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = cancel(store, id_of(1), at(1), "first");
    const auto before = look(store);
    t.equal(cancel(store, id_of(1), at(2), "second"), verdict::repeated, "the second cancel");
    unchanged(store, before, "a second cancel changes nothing, its error included");
}

inline void by_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = look(store).found;
    std::ignore = cancel(store, id_of(2), at(1), "why");
    expected[1].state = state::dead;
    expected[1].last_error = "why";
    expected[1].updated_at = at(1);
    t.equal(look(store).found, expected, "the entries after one was cancelled");
    t.equal(numbers(take(store, at(1))), list_of{1, 3}, "claimed after one was cancelled");
}

inline void lapses_stay(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = take_lapsed(store, 1, 2);
    t.equal(cancel(store, id_of(1), at(300)), verdict::applied, "the cancel at the end of a third lease");
    t.equal(get(store, 1).lapses, 2U, "lapses");
    t.equal(get(store, 1).attempts, 2U, "attempts");
}

} // namespace cancel_checks

inline constexpr std::array cancelling{
    clause{"CANCEL-01", layer::examples, level::must, needs::nothing,
           "A pending entry that is cancelled is dead, with the error given; of the rest only updated_at changes.",
           cancel_checks::pending_fields},
    clause{"CANCEL-02", layer::examples, level::must, needs::nothing,
           "A retrying entry that is cancelled is dead, with the error given; epoch, attempts and failures stay.",
           cancel_checks::retrying_fields},
    clause{"CANCEL-03", layer::examples, level::must, needs::nothing,
           "A lapsed claim that is cancelled is dead, its epoch one higher, its lease and wake mark cleared.",
           cancel_checks::lapsed_fields},
    clause{"CANCEL-04", layer::examples, level::must, needs::nothing,
           "After a lapsed claim is cancelled its ticket is stale.", cancel_checks::lapsed_ticket_is_stale},
    clause{"CANCEL-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be cancelled from exactly the end of its lease on, extended or not.",
           cancel_checks::lease_ends_exactly_now},
    clause{"CANCEL-06", layer::examples, level::must, needs::nothing,
           "A cancel stores its error, the longest as the empty one.", cancel_checks::error_is_stored},
    clause{"CANCEL-07", layer::examples, level::must, needs::nothing,
           "A cancel whose error is out of bounds throws invalid_argument and changes nothing.",
           cancel_checks::error_out_of_bounds},
    clause{"CANCEL-08", layer::examples, level::must, needs::nothing,
           "Cancelling twice is repeated and keeps the first error.", cancel_checks::first_error_stays},
    clause{"CANCEL-09", layer::examples, level::must, needs::nothing, "A cancel concerns the entry of its id only.",
           cancel_checks::by_id},
    clause{"CANCEL-10", layer::examples, level::must, needs::nothing,
           "A lapsed claim that is cancelled keeps its lapses and attempts: a cancel takes nothing over.",
           cancel_checks::lapses_stay},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/enqueue.hpp
// Enqueue: what a draft becomes, what is answered, and the order of sequences.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace enqueue_checks {

using receipts = std::vector<receipt>;

[[nodiscard]] constexpr receipt inserted(std::uint64_t n) noexcept { return {receipt::kind::inserted, id_of(n)}; }
[[nodiscard]] constexpr receipt duplicate(std::uint64_t n) noexcept { return {receipt::kind::duplicate, id_of(n)}; }
inline constexpr receipt refused{receipt::kind::refused, {}};

/// Puts a draft and brings it to a state: claimed until at(100), retrying from at(10).
inline void put_as(any_store& store, const draft& d, state wanted) {
    put(store, d);
    if (wanted == state::dead) {
        cancel(store, d.id);
    }
    if (wanted == state::pending || wanted == state::dead) {
        return;
    }
    const auto held = take_one(store, at(0), {.queue = d.queue, .only = d.id});
    if (wanted == state::retrying) {
        settle(store, held, retry{"e", at(10)});
    } else if (wanted == state::succeeded) {
        settle(store, held, succeed{"result"});
    }
}

/// That the draft is stored as the model has it; the sequence is the store's own.
inline void stored_as_drafted(const any_store& store, const draft& d, time_point now, std::string_view what) {
    model m;
    std::ignore = m.enqueue(d, now);
    auto expected = *m.find(d.id);
    const auto stored = store.find(d.id);
    expected.sequence = stored ? stored->sequence : 0;
    trial::equal(stored, std::optional{expected}, what);
}

inline void one_receipt_each(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(3), draft_of(1), draft_of(2, {.queue = "r"})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{inserted(3), inserted(1), inserted(2)}, "the receipts");
    t.equal(numbers(store.list(query::all("q"))), list_of{3, 1}, "stored in the queue \"q\"");
    t.equal(numbers(store.list(query::all("r"))), list_of{2}, "stored in the queue \"r\"");
}

inline void defaults(trial& t) {
    auto store = t.open();
    put(store, draft_of(1), at(-7));
    put(store, draft_of(2), at(7));
    stored_as_drafted(store, draft_of(1), at(-7),
                      "a plain draft is pending, created, updated and due at the given now");
    stored_as_drafted(store, draft_of(2), at(7), "the now of a later enqueue is its own");
    t.equal(get(store, 1).generation, 1, "the generation of an entry without predecessor");
}

inline void due_as_drafted(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(50)}), at(0));
    put(store, draft_of(2, {.due_at = at(-50)}), at(0));
    stored_as_drafted(store, draft_of(1, {.due_at = at(50)}), at(0), "a draft due later");
    stored_as_drafted(store, draft_of(2, {.due_at = at(-50)}), at(0), "a draft due before now");
    t.equal(numbers(take(store, at(49))), list_of{2}, "claimed before the draft's due_at");
    t.equal(numbers(take(store, at(50), {.only = id_of(1)})), list_of{1}, "claimed at the draft's due_at");
}

inline void born_succeeded(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {1U, 2U}) {
        const auto d = draft_of(n, {.result = n == 1 ? "" : "reply"});
        t.equal(put(store, d, at(5)), inserted(n), "a draft with a result");
        stored_as_drafted(store, d, at(5), "a draft with a result is succeeded from the beginning");
    }
    t.equal(store.counts("q")[state::succeeded], 2, "counted as succeeded");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due beside an entry that was born succeeded");
    t.equal(take(store, at(100)).size(), 0, "claimed of entries that were born succeeded");
    t.equal(settle(store, {id_of(1), 0}, succeed{"other"}).verdict, verdict::repeated, "settled with epoch 0");
}

inline void batch_sees_itself(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(1, {.key = "k"}), draft_of(2, {.key = "k"}), draft_of(1),
                            draft_of(3, {.key = "l", .result = ""}), draft_of(4, {.key = "l"})};
    t.equal(vouch::enqueue(store, batch, at(0)),
            receipts{inserted(1), duplicate(1), duplicate(1), inserted(3), duplicate(3)},
            "a later draft of a batch sees the earlier ones");
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 3}, "stored of that batch");
    auto tx = store.begin();
    const std::array first{draft_of(5, {.queue = "r", .key = "k"})};
    const std::array second{draft_of(5), draft_of(6, {.queue = "r", .key = "k"})};
    t.equal(tx.enqueue(first, at(0)), receipts{inserted(5)}, "the first enqueue of a transaction");
    t.equal(tx.enqueue(second, at(0)), receipts{duplicate(5), duplicate(5)}, "the second enqueue of it");
}

inline void sequences_grow(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(3), draft_of(2, {.queue = "r"}), draft_of(1)};
    vouch::enqueue(store, batch, at(9));
    put(store, draft_of(4), at(0));
    const std::vector seen{std::uint64_t{0}, get(store, 3).sequence, get(store, 2).sequence, get(store, 1).sequence,
                           get(store, 4).sequence};
    for (std::size_t i = 1; i < seen.size(); ++i) {
        if (seen[i - 1] >= seen[i]) {
            t.fail("sequences begin above zero and grow with every draft, whatever the queue or the time", show(seen));
        }
    }
}

inline void sequences_not_reused(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (const std::uint64_t n : {2U, 3U, 4U}) {
        put_dead(store, draft_of(n));
        const auto used = get(store, n).sequence;
        t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged of the newest");
        put(store, draft_of(n + 10));
        t.expect(get(store, n + 10).sequence > used, "an entry's sequence is greater than that of a purged one");
        cancel(store, id_of(n + 10), at(2));
        purge(store, {.queue = "q", .before = at(3)});
    }
    put_dead(store, draft_of(5));
    const auto used = get(store, 5).sequence;
    auto tx = store.begin();
    t.equal(tx.purge({.queue = "q", .before = at(1)}), 1, "purged of the newest, in a transaction");
    const std::array drafts{draft_of(6)};
    tx.enqueue(drafts, at(0));
    t.expect(get(tx, 6).sequence > used, "the sequence is greater than that of one purged in the same transaction");
}

inline void sequences_not_reused_after_reopen(trial& t) {
    std::uint64_t used = 0;
    {
        auto store = t.open();
        put_dead(store, draft_of(1));
        put_dead(store, draft_of(2));
        used = get(store, 2).sequence;
        t.equal(purge(store, {.queue = "q", .before = at(1)}), 2, "purged");
    }
    auto again = t.open();
    put(again, draft_of(3));
    t.expect(get(again, 3).sequence > used, "after a reopen the sequence is greater than any that was ever used");
}

} // namespace enqueue_checks

inline constexpr std::array enqueues{
    clause{"ENQUEUE-01", layer::examples, level::must, needs::nothing,
           "Enqueue answers once per draft, in order; inserted names the draft's own id.",
           enqueue_checks::one_receipt_each},
    clause{"ENQUEUE-02", layer::examples, level::must, needs::nothing,
           "What a draft leaves out has its default: pending, due now, created and updated now, generation 1, "
           "everything else empty or zero.",
           enqueue_checks::defaults},
    clause{"ENQUEUE-03", layer::examples, level::must, needs::nothing,
           "A draft's due_at is kept as given, later or earlier than now, and is when the entry can first be claimed.",
           enqueue_checks::due_as_drafted},
    clause{"ENQUEUE-04", layer::examples, level::must, needs::nothing,
           "A draft with a result, even an empty one, is succeeded from the beginning and is never claimed.",
           enqueue_checks::born_succeeded},
    clause{"ENQUEUE-05", layer::examples, level::must, needs::nothing,
           "A later draft sees the ids and keys of the earlier ones of its batch and of its transaction.",
           enqueue_checks::batch_sees_itself},
    clause{"ENQUEUE-06", layer::examples, level::must, needs::nothing,
           "Sequences are greater than zero and grow with every draft, across queues and whatever the time.",
           enqueue_checks::sequences_grow},
    clause{
        "ENQUEUE-07", layer::examples, level::must, needs::nothing,
        "A sequence is never used again, even if the newest entry has been purged, in the same transaction or before.",
        enqueue_checks::sequences_not_reused},
    clause{"ENQUEUE-08", layer::examples, level::may, needs::durable,
           "A sequence is never used again after everything was closed and opened again.",
           enqueue_checks::sequences_not_reused_after_reopen},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/reads.hpp
// Reading: find, list by every path, counts and next_due.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace reads_checks {

using namespace enqueue_checks;

/// In "q": 1 pending and due at(50), 2 retrying from at(10), 3 claimed until at(100), 4 succeeded, 5 dead; in "r": 6
/// pending. 1 is the parent of 2 and 6; 4 has the key "k", 5 "l"; the odd ones and 6 are the group "g".
inline void furnish(any_store& store, const capabilities& can) {
    const std::string g = can.groups ? "g" : "";
    put(store, draft_of(1, {.topic = "early", .payload = "payload 1", .group = g, .due_at = at(50)}));
    put_as(store, draft_of(2, {.topic = "early", .payload = "payload 2", .parent = id_of(1)}), state::retrying);
    put_as(store, draft_of(3, {.topic = "early", .payload = "payload 3", .group = g}), state::claimed);
    put_as(store, draft_of(4, {.topic = "late", .payload = "payload 4", .key = "k"}), state::succeeded);
    put_as(store, draft_of(5, {.topic = "late", .payload = "payload 5", .key = "l", .group = g}), state::dead);
    put(store, draft_of(6, {.queue = "r", .topic = "late", .payload = "payload 6", .group = g, .parent = id_of(1)}));
}

[[nodiscard]] inline any_store furnished(trial& t) {
    auto store = t.open(t.fresh_place());
    furnish(store, t.can());
    return store;
}

/// Every path there is, to something in a furnished store.
[[nodiscard]] inline std::vector<query> paths(const capabilities& can) {
    std::vector<query> out{query::all("q"),        query::live("q"),       query::dead("q"), query::all("r"),
                           query::keyed("q", "k"), query::keyed("q", "l"), query::live("r"), query::children(id_of(1))};
    if (can.groups) {
        out.push_back(query::members("g"));
    }
    return out;
}

inline void finds_by_id(trial& t) {
    const auto store = furnished(t);
    for (std::uint64_t n = 1; n <= 6; ++n) {
        t.equal(get(store, n).id, id_of(n), "the entry found has the id asked for");
        t.equal(get(store, n).payload, "payload " + std::to_string(n), "find gives the payload");
    }
    t.expect(!store.find(id_of(7)), "an id that is not stored finds nothing");
    t.expect(!store.find(id{}), "the nil id finds nothing");
}

inline void lists_all(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 2, 3, 4, 5}, "all of \"q\"");
    t.equal(numbers(store.list(query::all("r"))), list_of{6}, "all of \"r\"");
    t.equal(numbers(store.list(query::all("nobody's"))), list_of{}, "all of a queue nobody has used");
}

inline void lists_live(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the live of \"q\"");
    t.equal(numbers(store.list(query::live("r"))), list_of{6}, "the live of \"r\"");
    t.equal(numbers(store.list(query::live("nobody's"))), list_of{}, "the live of a queue nobody has used");
}

inline void lists_dead(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::dead("q"))), list_of{5}, "the dead of \"q\"");
    t.equal(numbers(store.list(query::dead("r"))), list_of{}, "the dead of \"r\"");
}

inline void lists_by_key(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7, {.queue = "r", .key = "k"}));
    put(store, draft_of(8, {.predecessor = id_of(5)}));
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{4}, "\"k\" of \"q\"");
    t.equal(numbers(store.list(query::keyed("r", "k"))), list_of{7}, "\"k\" of \"r\"");
    t.equal(numbers(store.list(query::keyed("q", "l"))), list_of{5, 8}, "every generation of \"l\" of \"q\"");
    t.equal(numbers(store.list(query::keyed("r", "l"))), list_of{}, "a key another queue has");
    t.equal(numbers(store.list(query::keyed("q", "m"))), list_of{}, "a key nobody has");
}

inline void lists_children(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::children(id_of(1)))), list_of{2, 6}, "the children of 1, in both queues");
    t.equal(numbers(store.list(query::children(id_of(2)))), list_of{}, "the children of 2");
}

inline void lists_members(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7, {.group = "h"}));
    t.equal(numbers(store.list(query::members("g"))), list_of{1, 3, 5, 6}, "the members of \"g\", in both queues");
    t.equal(numbers(store.list(query::members("h"))), list_of{7}, "the members of \"h\"");
    t.equal(numbers(store.list(query::members("i"))), list_of{}, "the members of a group nobody is in");
}

inline void names_are_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::string name : {"q", "Q", "q ", "qq", "\xc3\xa9", "e\xcc\x81", "\xff", "7", "07"}) {
        put(store, draft_of(++n, {.queue = name}));
        put(store, draft_of(n + 10, {.queue = "one", .topic = name}));
        t.equal(numbers(store.list(query::all(name))), list_of{n}, "listed of a queue named like others");
        t.equal(store.counts(name).total(), 1, "counted of a queue named like others");
        auto by_topic = query::all("one");
        by_topic.topic = name;
        t.equal(numbers(store.list(by_topic)), list_of{n + 10}, "listed of a topic named like others");
    }
}

inline void by_sequence(trial& t) {
    auto store = t.open();
    for (const std::int64_t n : {9, 8, 7}) {
        put(store, draft_of(static_cast<std::uint64_t>(n), {.parent = id_of(20), .due_at = at(n)}), at(n));
    }
    for (const auto& q : {query::all("q"), query::live("q"), query::children(id_of(20))}) {
        t.equal(numbers(store.list(q)), list_of{9, 8, 7}, "listed in the order of coming, not of ids or times");
    }
    for (const std::int64_t n : {7, 9, 8}) {
        cancel(store, id_of(static_cast<std::uint64_t>(n)), at(100));
    }
    t.equal(numbers(store.list(query::dead("q"))), list_of{9, 8, 7}, "the dead in the order of coming, not of ending");
}

inline void filters_by_state(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const auto s : all_states) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.state != s; });
            q.state = s;
            t.equal(store.list(q), expected, "of a path only what is " + show(s));
        }
    }
}

inline void filters_by_topic(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const std::string topic : {"early", "late", "ear", "lat%", "LATE", "never"}) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.topic != topic; });
            q.topic = topic;
            t.equal(store.list(q), expected, "of a path only what has exactly the topic " + show(topic));
        }
    }
}

inline void filters_together(trial& t) {
    const auto store = furnished(t);
    auto q = query::all("q");
    q.topic = "early";
    q.state = state::claimed;
    t.equal(numbers(store.list(q)), list_of{3}, "by topic and state");
    q.after = get(store, 3).sequence;
    t.equal(numbers(store.list(q)), list_of{}, "by topic and state after the last");
    q = query::live("q");
    q.topic = "early";
    q.limit = 1;
    q.after = get(store, 1).sequence;
    t.equal(numbers(store.list(q)), list_of{2}, "the first after another, by topic");
}

inline void after_is_exclusive(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (std::size_t i = 0; i < everything.size(); ++i) {
            const std::vector<entry> rest(everything.begin() + static_cast<std::ptrdiff_t>(i), everything.end());
            q.after = everything[i].sequence - 1;
            t.equal(store.list(q), rest, "after the sequence before an entry");
            q.after = everything[i].sequence;
            t.equal(store.list(q), std::vector<entry>(rest.begin() + 1, rest.end()), "after an entry's sequence");
        }
        q.after = ~std::uint64_t{0};
        t.equal(store.list(q), std::vector<entry>{}, "after the greatest number there is");
    }
}

inline void limit_is_exact(trial& t) {
    const auto each = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = each.list(q);
        for (std::size_t limit = 0; limit <= everything.size() + 1; ++limit) {
            auto expected = everything;
            expected.resize(std::min(limit, expected.size()));
            q.limit = limit;
            t.equal(each.list(q), expected, "listed with limit " + show(limit));
        }
    }
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 1100; ++n) {
        drafts.push_back(draft_of(n));
    }
    vouch::enqueue(store, drafts, at(0));
    query q = query::all("q");
    t.equal(store.list(q).size(), 100, "listed with the limit a query has by itself");
    q.limit = t.can().limits.batch_max;
    t.equal(store.list(q).size(), 1100, "listed with the largest limit");
}

/// All pages of this size put together, up to the first that is empty.
[[nodiscard]] inline list_of in_pages(const any_store& store, query q, std::size_t size) {
    list_of out;
    q.limit = size;
    for (int page = 0; page < 30; ++page) {
        const auto found = store.list(q);
        if (found.empty()) {
            break;
        }
        const auto more = numbers(found);
        out.insert(out.end(), more.begin(), more.end());
        q.after = found.back().sequence;
    }
    return out;
}

inline void pages(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 12; ++n) {
        const auto queue = n == 3 ? "r" : "q";
        put(store, draft_of(n, {.queue = queue, .topic = n % 2 == 0 ? "even" : "odd", .parent = id_of(20)}));
        if (n % 3 == 0) {
            cancel(store, id_of(n), at(n == 6 ? 0 : 5));
        }
    }
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged, to leave a gap");
    auto odd = query::live("q");
    odd.topic = "odd";
    for (const auto& q : {query::all("q"), query::live("q"), query::dead("q"), query::children(id_of(20)), odd}) {
        for (std::size_t size = 1; size <= 12; ++size) {
            t.equal(in_pages(store, q, size), numbers(store.list(q)), "all pages of " + show(size) + " put together");
        }
    }
    put_dead(store, draft_of(13, {.key = "k"}));
    for (std::uint64_t n = 14; n <= 17; ++n) {
        put(store, draft_of(n, {.predecessor = id_of(n - 1)}));
        cancel(store, id_of(n));
    }
    for (std::size_t size = 1; size <= 6; ++size) {
        t.equal(in_pages(store, query::keyed("q", "k"), size), list_of{13, 14, 15, 16, 17},
                "all pages of " + show(size) + " generations put together");
    }
}

inline void payloads_on_request(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        auto expected = store.list(q);
        for (auto& e : expected) {
            t.equal(e.payload, "", "the payload when it is not asked for");
            e.payload = "payload " + std::to_string(e.id.low);
            t.equal(std::optional{e}, store.find(e.id), "everything but the payload is listed as it is found");
        }
        q.payloads = true;
        t.equal(store.list(q), expected, "with payloads");
    }
}

inline void counts_states(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7));
    put(store, draft_of(8, {.result = ""}));
    put(store, draft_of(9, {.result = ""}));
    t.equal(store.counts("q"), state_counts{{2, 1, 1, 3, 1}}, "the counts of \"q\"");
    t.equal(store.counts("r"), state_counts{{1, 0, 0, 0, 0}}, "the counts of \"r\"");
    t.equal(store.counts("nobody's"), state_counts{}, "the counts of a queue nobody has used");
}

inline void due_smallest(trial& t) {
    auto store = t.open();
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due of a queue nobody has used");
    put(store, draft_of(1, {.due_at = at(50)}));
    t.equal(store.next_due("q"), at(50), "next_due with one entry");
    put(store, draft_of(2, {.due_at = at(60)}));
    t.equal(store.next_due("q"), at(50), "next_due with one due later");
    put(store, draft_of(3, {.due_at = at(-9)}));
    t.equal(store.next_due("q"), at(-9), "next_due with one due in the past");
    put(store, draft_of(4, {.queue = "r", .due_at = at(-99)}));
    t.equal(store.next_due("q"), at(-9), "next_due beside another queue's");
    t.equal(store.next_due("r"), at(-99), "next_due of the other queue");
}

inline void due_by_lease(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(-9)}));
    const auto held = take_one(store, at(0), {.lease = duration{30}});
    t.equal(store.next_due("q"), at(30), "next_due is the end of the lease");
    extend(store, held, at(5), duration{40});
    t.equal(store.next_due("q"), at(45), "next_due after the lease was extended");
    put(store, draft_of(2, {.due_at = at(44)}));
    t.equal(store.next_due("q"), at(44), "next_due with one due before the lease ends");
    settle(store, held, retry{"e", at(20)}, at(6));
    t.equal(store.next_due("q"), at(20), "next_due after a retry");
}

inline void due_not_terminal(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1), state::succeeded);
    put_as(store, draft_of(2), state::dead);
    put_as(store, draft_of(3), state::claimed);
    settle(store, {id_of(3), 1}, bury{"e", {}});
    put(store, draft_of(4, {.result = ""}));
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when everything has ended");
}

inline void due_not_blocked(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane", .due_at = at(50)}));
    put(store, draft_of(2, {.lane = "lane", .due_at = at(5)}));
    t.equal(store.next_due("q"), at(50), "next_due passes over what is blocked in its lane");
    t.equal(store.counts("q")[state::pending], 2, "what is blocked is counted");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2}, "what is blocked is listed");
    cancel(store, id_of(1));
    t.equal(store.next_due("q"), at(5), "next_due once it is not blocked any more");
}

} // namespace reads_checks

inline constexpr std::array reads{
    clause{"READ-01", layer::examples, level::must, needs::nothing,
           "find gives the entry with this id, payload included, or nothing.", reads_checks::finds_by_id},
    clause{"READ-02", layer::examples, level::must, needs::nothing,
           "list by `all` gives the entries of the one queue, in every state.", reads_checks::lists_all},
    clause{"READ-03", layer::examples, level::must, needs::nothing,
           "list by `live` gives the pending, retrying and claimed entries of the one queue.",
           reads_checks::lists_live},
    clause{"READ-04", layer::examples, level::must, needs::nothing,
           "list by `dead` gives the dead entries of the one queue.", reads_checks::lists_dead},
    clause{"READ-05", layer::examples, level::must, needs::nothing,
           "list by `key` gives every stored generation of that key in that queue.", reads_checks::lists_by_key},
    clause{"READ-06", layer::examples, level::must, needs::nothing,
           "list by `parent` gives the entries with that parent, in all queues.", reads_checks::lists_children},
    clause{"READ-07", layer::examples, level::may, needs::groups,
           "list by `group` gives the members of that group, in all queues and states.", reads_checks::lists_members},
    clause{"READ-08", layer::examples, level::must, needs::nothing,
           "Queues and topics are the same only if every byte of their names is.", reads_checks::names_are_bytes},
    clause{"READ-09", layer::examples, level::must, needs::nothing,
           "Lists are in ascending sequence, whatever the ids and times.", reads_checks::by_sequence},
    clause{"READ-10", layer::examples, level::must, needs::nothing,
           "The filter `state` narrows every path to that one state.", reads_checks::filters_by_state},
    clause{"READ-11", layer::examples, level::must, needs::nothing,
           "The filter `topic` narrows every path to exactly that topic; it is no pattern.",
           reads_checks::filters_by_topic},
    clause{"READ-12", layer::examples, level::must, needs::nothing,
           "Filters, `after` and `limit` go together: the limit counts what has passed the filters.",
           reads_checks::filters_together},
    clause{"READ-13", layer::examples, level::must, needs::nothing,
           "`after` gives only sequences greater than itself, on every path.", reads_checks::after_is_exclusive},
    clause{
        "READ-14", layer::examples, level::must, needs::nothing,
        "`limit` gives the first so many, on every path; 0 gives none, and the store has no smaller limit of its own.",
        reads_checks::limit_is_exact},
    clause{"READ-15", layer::examples, level::must, needs::nothing,
           "Pages of any size put together are the whole: none is skipped at an edge, none comes twice.",
           reads_checks::pages},
    clause{"READ-16", layer::examples, level::must, needs::nothing,
           "list gives payloads only when asked to, and everything else always.", reads_checks::payloads_on_request},
    clause{"READ-17", layer::examples, level::must, needs::nothing,
           "counts has every state of the one queue, zero where there is none.", reads_checks::counts_states},
    clause{"READ-18", layer::examples, level::must, needs::nothing,
           "next_due is the earliest due_at of the one queue, in the past too, and none if the queue is empty.",
           reads_checks::due_smallest},
    clause{"READ-19", layer::examples, level::must, needs::nothing,
           "For next_due a claimed entry counts with the end of its lease.", reads_checks::due_by_lease},
    clause{"READ-20", layer::examples, level::must, needs::nothing, "Terminal entries have no part in next_due.",
           reads_checks::due_not_terminal},
    clause{"READ-21", layer::examples, level::may, needs::lanes,
           "An entry that is blocked in its lane is counted and listed, but has no part in next_due.",
           reads_checks::due_not_blocked},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/transaction.hpp
// Transactions: all or nothing, seen by whom and when, and what closes one.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace transaction_checks {

using namespace reads_checks;

struct deed {
    std::string_view what;
    void (*in)(any_transaction&);
};

inline void put_in(any_transaction& tx, const draft& d, time_point now = at(0)) { tx.enqueue(std::span(&d, 1), now); }

template <class Outcome>
void settle_third(any_transaction& tx, Outcome o) {
    settle_in(tx, {id_of(3), 1}, std::move(o), at(20));
}

/// Every way to change a furnished store.
inline constexpr std::array deeds{
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"enqueue with a key", [](any_transaction& tx) { put_in(tx, draft_of(7, {.queue = "r", .key = "k"})); }},
    deed{"enqueue with a result", [](any_transaction& tx) { put_in(tx, draft_of(7, {.result = ""})); }},
    deed{"requeue", [](any_transaction& tx) { put_in(tx, draft_of(7, {.predecessor = id_of(5)})); }},
    deed{"succeed", [](any_transaction& tx) { settle_third(tx, succeed{"done"}); }},
    deed{"retry",
         [](any_transaction& tx) {
             settle_third(tx, retry{"failed", at(30)});
         }},
    deed{"bury",
         [](any_transaction& tx) {
             settle_third(tx, bury{"failed", "reply"});
         }},
    deed{"release", [](any_transaction& tx) { settle_third(tx, release{}); }},
    deed{"advance",
         [](any_transaction& tx) {
             settle_third(tx, advance{"step", {}});
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(50), duration{500});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(5)); }},
    deed{"nudge of a claimed entry", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(3), at(5)); }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(2), "cancelled", at(5)); }},
    deed{"the end of a child", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(6), "cancelled", at(5)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(1)}); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(200))); }},
};

inline void everything(any_transaction& tx) {
    for (const auto& d : deeds) {
        d.in(tx);
    }
}

inline void unseen_before_commit(trial& t) {
    for (const auto& [name, change] : deeds) {
        const auto& what = name; // a lambda takes no structured binding
        const auto& in = change;
        auto store = furnished(t);
        const auto before = look(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            unchanged(store, before, std::string(what) + " is not seen before the commit");
            const auto own = look(tx);
            t.expect(!(own == before), std::string(what) + " is seen by its own transaction");
            tx.commit();
            unchanged(store, own, std::string(what) + " is seen after the commit as the transaction saw it");
        });
    }
}

inline void unseen_by_second_handle(trial& t) {
    auto first = t.open();
    const auto second = t.open();
    furnish(first, t.can());
    const auto before = look(second);
    from_begin(first, [&](auto& tx) {
        everything(tx);
        unchanged(second, before, "an open transaction through a second handle");
        const auto own = look(tx);
        tx.commit();
        unchanged(second, own, "a committed transaction through a second handle");
    });
}

inline void own_writes_seen(trial& t) {
    auto store = t.open();
    auto tx = store.begin();
    put_in(tx, draft_of(1, {.payload = "p", .key = "k", .due_at = at(5)}));
    t.equal(get(tx, 1).payload, "p", "found by the transaction that enqueued it");
    t.equal(numbers(tx.list(query::keyed("q", "k"))), list_of{1}, "listed by that transaction");
    t.equal(tx.next_due("q"), at(5), "next_due in that transaction");
    t.equal(tx.claim(request(at(5))).size(), 1, "claimed by that transaction");
    t.equal(tx.counts("q"), state_counts{{0, 0, 1, 0, 0}}, "the counts in that transaction, after the claim");
    t.equal(settle_in(tx, {id_of(1), 1}, bury{"e", {}}, at(6)).verdict, verdict::applied, "settled by it");
    t.equal(numbers(tx.list(query::dead("q"))), list_of{1}, "listed as dead by that transaction");
    t.equal(tx.purge({.queue = "q", .before = at(7)}), 1, "purged by that transaction");
    t.expect(!tx.find(id_of(1)), "not found by the transaction that purged it");
}

inline void rollback_leaves_nothing(trial& t) {
    for (const auto& [what, in] : deeds) {
        auto store = furnished(t);
        const auto before = look(store);
        from_begin(store, in);
        unchanged(store, before, std::string(what) + " leaves nothing when the transaction ends without commit");
    }
}

inline void rollback_of_everything(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    for (int i = 0; i < 3; ++i) {
        from_begin(store, [&](auto& tx) { everything(tx); });
    }
    unchanged(store, before, "nothing is left of three transactions that did everything there is to do");
    from_begin(store, [&](auto& tx) {
        everything(tx);
        const auto own = look(tx);
        tx.commit();
        unchanged(store, own, "the same done once more and committed");
    });
}

inline void rollback_does_not_return(trial& t) {
    std::optional<sight> before;
    {
        auto store = t.open();
        furnish(store, t.can());
        before = look(store);
        auto tx = store.begin();
        everything(tx);
    }
    unchanged(t.open(), *before, "after a reopen nothing is there of a transaction that was not committed");
}

inline void rollback_frees_keys(trial& t) {
    auto store = t.open();
    {
        auto tx = store.begin();
        put_in(tx, draft_of(1, {.key = "k"}));
    }
    t.equal(put(store, draft_of(2, {.key = "k"})), inserted(2), "the key of a rolled-back draft");
    t.equal(put(store, draft_of(1)), inserted(1), "the id of a rolled-back draft");
}

inline void rollback_of_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    {
        auto tx = store.begin();
        t.equal(tx.claim(request(at(0))).size(), 1, "claimed in a transaction that is not committed");
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}).verdict, verdict::stale, "settled with that claim's ticket");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the claim after it");
    t.equal(get(store, 1).attempts, 1, "the attempts after one claim rolled back and one committed");
}

inline void rollback_of_settle(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto held = take_one(store, at(0));
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, held, bury{"e", {}}, at(1)).verdict, verdict::applied, "settled, not committed");
    }
    t.equal(settle(store, held, succeed{"r"}, at(2)).verdict, verdict::applied, "settled again with the same ticket");
    t.equal(get(store, 1).failures, 0, "the failures after a rolled-back burial");
}

inline void rollback_of_purge(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    {
        auto tx = store.begin();
        t.equal(tx.purge({.queue = "q", .before = at(1)}), 1, "purged, not committed");
    }
    t.equal(put(store, draft_of(2, {.key = "k"})), duplicate(1), "the key after a rolled-back purge");
    t.equal(put(store, draft_of(1)), duplicate(1), "the id after a rolled-back purge");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged again");
}

inline void rollback_of_requeue(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    {
        auto tx = store.begin();
        put_in(tx, draft_of(2, {.predecessor = id_of(1)}));
    }
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(1), "the key after a rolled-back requeue");
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), inserted(3), "a successor after a rolled-back one");
    t.equal(get(store, 3).generation, 2, "its generation");
}

inline void rollback_in_lane(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane"}));
    const auto held = take_one(store, at(0));
    {
        auto tx = store.begin();
        settle_in(tx, held, succeed{}, at(0));
        put_in(tx, draft_of(3, {.lane = "other"}));
        t.equal(numbers(tx.claim(request(at(0)))), list_of{2, 3}, "claimed in the transaction that ended the head");
    }
    t.equal(take(store, at(50)).size(), 0, "claimed behind a head whose end was rolled back");
    put(store, draft_of(4, {.lane = "other"}));
    t.equal(numbers(take(store, at(50))), list_of{4}, "claimed from a lane whose head was rolled back");
    settle(store, held, succeed{}, at(50));
    t.equal(numbers(take(store, at(50))), list_of{2}, "claimed once the head has really ended");
}

inline void rollback_in_group(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(2, {.group = "g"}));
    t.equal(take(store, at(0)).size(), 2, "claimed");
    {
        auto tx = store.begin();
        settle_in(tx, {id_of(1), 1}, succeed{}, at(0));
        t.equal(settle_in(tx, {id_of(2), 1}, succeed{}, at(0)), settlement{verdict::applied, true}, "the last success");
        put_in(tx, draft_of(3, {.group = "g"}));
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}), settlement{verdict::applied, false}, "the first of two, again");
    t.equal(settle(store, {id_of(2), 1}, succeed{}), settlement{verdict::applied, true}, "the second of two, again");
}

/// Every way to use a transaction.
inline constexpr std::array uses{
    deed{"find", [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); }},
    deed{"list", [](any_transaction& tx) { std::ignore = tx.list(query::all("q")); }},
    deed{"counts", [](any_transaction& tx) { std::ignore = tx.counts("q"); }},
    deed{"next_due", [](any_transaction& tx) { std::ignore = tx.next_due("q"); }},
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(15)); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(200))); }},
    deed{"settle",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(3), 1}, succeed{}, at(0));
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(0), duration{900});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(0)); }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(1), "e", at(0)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(100)}); }},
    deed{"commit", [](any_transaction& tx) { tx.commit(); }},
};

inline void all_misuse(trial& t, any_transaction& closed) {
    for (const auto& [what, in] : uses) {
        t.throws(error_kind::misuse, std::string(what) + " on a closed transaction", [&, &use = in] { use(closed); });
    }
}

inline void closed_by_commit(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    const auto before = look(store);
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction after its commit changes nothing");
    t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
}

inline void closed_when_moved_from(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    auto other = tx.move_out();
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction that was moved from changes nothing");
    t.expect(other.find(id_of(7)).has_value(), "the one moved to goes on with what was written");
    put_in(other, draft_of(8));
    other.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void moved_rolls_back(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        const auto other = tx.move_out();
    }
    unchanged(store, before, "nothing is left of a transaction that was moved and not committed");
    t.equal(put(store, draft_of(7)), inserted(7), "a transaction after that");
}

/// Calls no store accepts, one for every operation that looks at its arguments.
inline constexpr std::array invalid_uses{
    deed{"list", [](any_transaction& tx) { std::ignore = tx.list(query::all("")); }},
    deed{"counts", [](any_transaction& tx) { std::ignore = tx.counts(""); }},
    deed{"next_due", [](any_transaction& tx) { std::ignore = tx.next_due(""); }},
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft{}); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(0), {.queue = ""})); }},
    deed{"settle",
         [](any_transaction& tx) {
             settle_third(tx, retry{std::string(101, 'e'), at(0)});
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(0), duration{0});
         }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(1), std::string(101, 'e'), at(0)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "", .before = at(100)}); }},
};

inline void open_after_invalid_argument(trial& t) {
    auto store = furnished(t);
    from_begin(store, [&](auto& tx) {
        put_in(tx, draft_of(7));
        const auto own = look(tx);
        for (const auto& [what, in] : invalid_uses) {
            t.throws(error_kind::invalid_argument, std::string(what) + " with an invalid argument",
                     [&, &use = in] { use(tx); });
            unchanged(tx, own, std::string(what) + " with an invalid argument changes nothing");
        }
        put_in(tx, draft_of(8));
        const auto whole = look(tx);
        tx.commit();
        unchanged(store, whole, "what was written before and after invalid arguments is committed");
    });
}

inline void several_in_one(trial& t) {
    auto store = furnished(t);
    from_begin(store, [&](auto& tx) {
        put_in(tx, draft_of(7, {.due_at = at(20)}));
        const auto claimed = tx.claim(request(at(20)));
        t.equal(numbers(claimed), list_of{2, 7}, "claimed with what was enqueued in the same transaction");
        const std::array settles{vouch::settle{ticket_of(claimed[1]), succeed{"7"}},
                                 vouch::settle{ticket_of(claimed[0]), bury{"e", {}}}};
        std::ignore = tx.settle(settles, at(21));
        put_in(tx, draft_of(8, {.predecessor = id_of(2)}), at(21));
        t.equal(tx.cancel(id_of(6), "e", at(21)), verdict::applied, "cancelled in the same transaction");
        const auto own = look(tx);
        tx.commit();
        unchanged(store, own, "all of it after one commit");
        t.equal(get(store, 7).result, "7", "the result of the one that came and went in one transaction");
    });
}

inline void settle_then_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto held = take_one(store, at(0));
    auto tx = store.begin();
    settle_in(tx, held, retry{"e", at(9)}, at(8));
    t.equal(tx.claim(request(at(8))).size(), 0, "claimed before the retry is due");
    const auto claimed = tx.claim(request(at(9)));
    t.equal(numbers(claimed), list_of{1}, "claimed in the transaction that settled it");
    t.equal(ticket_of(claimed.front()), ticket{id_of(1), 2}, "the new ticket");
    tx.commit();
    t.equal(settle(store, held, succeed{}).verdict, verdict::stale, "the old ticket after the commit");
    t.equal(settle(store, ticket_of(claimed.front()), succeed{}).verdict, verdict::applied, "the new ticket");
}

inline void nothing_written(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    from_begin(store, [&](auto& tx) {
        unchanged(tx, before, "a transaction that has written nothing sees what is committed");
        unchanged(store, before, "reading changes nothing");
        tx.commit();
        unchanged(store, before, "a transaction that only read changes nothing");
    });
}

} // namespace transaction_checks

inline constexpr std::array transactions{
    clause{"TX-01", layer::examples, level::must, needs::nothing,
           "Reads on the store see what is committed and wait for no open transaction; after the commit they see all "
           "of it.",
           transaction_checks::unseen_before_commit},
    clause{"TX-02", layer::examples, level::may, needs::shared,
           "A second handle sees nothing of a transaction before its commit and all of it after.",
           transaction_checks::unseen_by_second_handle},
    clause{"TX-03", layer::examples, level::must, needs::nothing, "The reads of a transaction see its own writes.",
           transaction_checks::own_writes_seen},
    clause{"TX-04", layer::examples, level::must, needs::nothing,
           "A transaction that ends without commit leaves nothing, whatever it did.",
           transaction_checks::rollback_leaves_nothing},
    clause{"TX-05", layer::examples, level::must, needs::nothing,
           "Transactions that did everything and were not committed leave no trace in those that come after.",
           transaction_checks::rollback_of_everything},
    clause{"TX-06", layer::examples, level::may, needs::durable,
           "What was rolled back does not come back with a reopen.", transaction_checks::rollback_does_not_return},
    clause{"TX-07", layer::examples, level::must, needs::nothing, "The id and the key of a rolled-back draft are free.",
           transaction_checks::rollback_frees_keys},
    clause{"TX-08", layer::examples, level::must, needs::nothing,
           "A rolled-back claim never happened: no attempt, no epoch, and its ticket entitles to nothing.",
           transaction_checks::rollback_of_claim},
    clause{"TX-09", layer::examples, level::must, needs::nothing,
           "After a rolled-back settle the claim still stands and its ticket is still good.",
           transaction_checks::rollback_of_settle},
    clause{"TX-10", layer::examples, level::must, needs::nothing,
           "After a rolled-back purge the entry is there, with its id and key taken.",
           transaction_checks::rollback_of_purge},
    clause{"TX-11", layer::examples, level::must, needs::nothing,
           "After a rolled-back requeue the dead entry has no successor.", transaction_checks::rollback_of_requeue},
    clause{"TX-12", layer::examples, level::may, needs::lanes, "After a rollback a lane has the head it had.",
           transaction_checks::rollback_in_lane},
    clause{"TX-13", layer::examples, level::may, needs::groups,
           "After a rollback a group counts the members it counted.", transaction_checks::rollback_in_group},
    clause{"TX-14", layer::examples, level::must, needs::nothing,
           "After its commit any use of a transaction is misuse and changes nothing.",
           transaction_checks::closed_by_commit},
    clause{"TX-15", layer::examples, level::must, needs::nothing,
           "Any use of a transaction that was moved from is misuse; the one moved to goes on.",
           transaction_checks::closed_when_moved_from},
    clause{"TX-16", layer::examples, level::must, needs::nothing,
           "A transaction that was moved and not committed leaves nothing.", transaction_checks::moved_rolls_back},
    clause{"TX-17", layer::examples, level::must, needs::nothing,
           "After an invalid argument a transaction is open, with all that was written before.",
           transaction_checks::open_after_invalid_argument},
    clause{"TX-18", layer::examples, level::must, needs::nothing,
           "Any number of operations, on each other's results too, are one commit.",
           transaction_checks::several_in_one},
    clause{"TX-19", layer::examples, level::must, needs::nothing,
           "A settle and the next claim go in one transaction; the claim sees what the settle did.",
           transaction_checks::settle_then_claim},
    clause{"TX-20", layer::examples, level::must, needs::nothing,
           "A transaction that has written nothing reads what the store reads, and its commit changes nothing.",
           transaction_checks::nothing_written},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/capability.hpp
// Capabilities: what a store does not declare it refuses, and its limits are at least the contract's.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace capability_checks {

using namespace transaction_checks;

/// That a batch with such a draft in its middle is refused by the name of the field, and nothing is written.
inline void unsupported(trial& t, std::string_view field, const draft& d) {
    auto store = furnished(t);
    const auto before = look(store);
    const std::array batch{draft_of(17), d, draft_of(19)};
    auto tx = store.begin();
    const std::string said = t.throws(error_kind::unsupported, "a draft with a " + std::string(field), [&] {
                                  tx.enqueue(batch, at(0));
                              }).what();
    t.expect(said.find(field) != std::string::npos, "the refusal names the field that is not supported");
    all_misuse(t, tx);
    unchanged(store, before, "what is not supported changes nothing");
}

inline void groups_refused(trial& t) {
    if (!t.can().groups) {
        unsupported(t, "group", draft_of(18, {.group = "g"}));
    }
}

inline void lanes_refused(trial& t) {
    if (!t.can().lanes) {
        unsupported(t, "lane", draft_of(18, {.lane = "lane"}));
    }
}

inline void limits_not_lowered(trial& t) {
    const auto& own = t.can().limits;
    const vouch::limits least;
    const auto at_least = [](std::size_t seen, std::size_t expected, std::string_view name) {
        if (seen < expected) {
            trial::fail(std::string(name) + " is not lower than the contract's", show(seen), show(expected));
        }
    };
    at_least(own.name_max, least.name_max, "name_max");
    at_least(own.error_max, least.error_max, "error_max");
    at_least(own.payload_max, least.payload_max, "payload_max");
    at_least(own.result_max, least.result_max, "result_max");
    at_least(own.progress_max, least.progress_max, "progress_max");
    at_least(own.trail_max, least.trail_max, "trail_max");
    at_least(own.headers_max, least.headers_max, "headers_max");
    at_least(own.header_value_max, least.header_value_max, "header_value_max");
    at_least(own.batch_max, least.batch_max, "batch_max");
    t.expect(own.lease_min <= least.lease_min && own.lease_max >= least.lease_max,
             "leases as short and as long as the contract's are allowed");
}

} // namespace capability_checks

inline constexpr std::array capability{
    clause{"CAP-01", layer::examples, level::must, needs::nothing,
           "A store that does not declare groups refuses a draft with a group as unsupported: nothing of the batch is "
           "written and the transaction is closed.",
           capability_checks::groups_refused},
    clause{"CAP-02", layer::examples, level::must, needs::nothing,
           "A store that does not declare lanes refuses a draft with a lane as unsupported: nothing of the batch is "
           "written and the transaction is closed.",
           capability_checks::lanes_refused},
    clause{"CAP-03", layer::examples, level::must, needs::nothing,
           "No limit a store declares is tighter than the contract's.", capability_checks::limits_not_lowered},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/claim.hpp
// Claim: what is eligible, what of it is taken, in which order it comes back, and what a claim does to an entry.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace claim_checks {

/// A retrying entry: claimed at 0, failed once, due again at `due`.
inline void put_retrying(any_store& store, std::uint64_t n, time_point due) {
    put(store, draft_of(n));
    std::ignore = settle(store, take_one(store, at(0), {.only = id_of(n)}), retry{"e", due}, at(0));
}

/// A claimed entry whose lease ends at `end`.
inline void put_claimed(any_store& store, std::uint64_t n, time_point end) {
    put(store, draft_of(n));
    std::ignore = take_one(store, at(0), {.lease = end - at(0), .only = id_of(n)});
}

/// What a claim at `now` by "w" with a lease of 100 us makes of it.
[[nodiscard]] inline entry claimed_from(entry e, time_point now) {
    const bool is_takeover = e.state == state::claimed;
    e.state = state::claimed;
    e.attempts += is_takeover && e.lapses == 0 ? 0U : 1U;
    e.lapses += is_takeover ? 1U : 0U;
    e.epoch += 1;
    e.lease_until = now + duration{100};
    e.woken = false;
    e.worker = "w";
    e.last_attempt_at = now;
    e.updated_at = now;
    return e;
}

inline void limit_zero(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    t.equal(numbers(take(store, at(0), {.limit = 0})), list_of{}, "claimed with limit 0");
    t.equal(numbers(take(store, at(0), {.limit = 0, .only = id_of(1)})), list_of{}, "claimed with limit 0 by id");
    unchanged(store, before, "a claim with limit 0 changes nothing");
}

inline void limit_is_exact(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put(store, draft_of(n));
    }
    const auto last = get(store, 4);
    t.equal(numbers(take(store, at(0), {.limit = 1})), list_of{1}, "claimed with limit 1");
    t.equal(numbers(take(store, at(0), {.limit = 2})), list_of{2, 3}, "claimed with limit 2");
    t.equal(get(store, 4), last, "the entry beyond the limit");
    t.equal(store.counts("q")[state::claimed], 3U, "claimed entries");
    t.equal(numbers(take(store, at(0), {.limit = t.can().limits.batch_max})), list_of{4},
            "claimed with the largest limit");
}

inline void due_exactly_now(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    const auto before = look(store);
    t.equal(numbers(take(store, at(9))), list_of{}, "claimed one microsecond before it is due");
    unchanged(store, before, "a claim that finds nothing due changes nothing");
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed exactly when it is due");
}

inline void retry_due_exactly_now(trial& t) {
    auto store = t.open();
    put_retrying(store, 1, at(10));
    const auto before = get(store, 1);
    t.equal(numbers(take(store, at(9))), list_of{}, "claimed one microsecond before its retry is due");
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed exactly when its retry is due");
    t.equal(get(store, 1), claimed_from(before, at(10)), "the retried entry after the claim");
}

inline void lease_ends_exactly_now(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(50));
    const auto before = look(store);
    t.equal(numbers(take(store, at(49), {.worker = "v"})), list_of{},
            "taken over one microsecond before its lease ends");
    t.equal(numbers(take(store, at(49), {.worker = "w"})), list_of{}, "taken once more by a worker of the same name");
    unchanged(store, before, "a claim that meets a running lease changes nothing");
    t.equal(numbers(take(store, at(50), {.worker = "v"})), list_of{1}, "taken over exactly when its lease ends");
}

inline void fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(5), .headers = {{"h", "v"}}, .progress = "step"}));
    auto expected = get(store, 1);
    const auto claimed = take(store, at(20), {.lease = duration{30}, .worker = "ann"});
    expected.state = state::claimed;
    expected.attempts = 1;
    expected.epoch = 1;
    expected.lease_until = at(50);
    expected.worker = "ann";
    expected.last_attempt_at = expected.updated_at = at(20);
    t.equal(claimed, std::vector{expected}, "what the claim returns");
    t.equal(get(store, 1), expected, "what is stored after the claim");
}

inline void take_over_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(5), .progress = "step"}), at(1));
    std::ignore = take_one(store, at(10), {.lease = duration{10}, .worker = "ann"});
    nudge(store, id_of(1), at(15));
    const auto before = get(store, 1);
    const auto claimed = take(store, at(70));
    t.equal(claimed, std::vector{claimed_from(before, at(70))}, "what the claim that takes over returns");
    t.equal(get(store, 1), claimed_from(before, at(70)), "what is stored after the take-over");
}

inline void bounds_are_allowed(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto& limits = t.can().limits;
    const std::string longest_name(limits.name_max, 'w');
    std::ignore = take_one(store, at(0), {.lease = limits.lease_min, .worker = longest_name});
    t.equal(get(store, 1).lease_until, std::optional{at(0) + limits.lease_min}, "the end of the shortest lease");
    t.equal(get(store, 1).worker, longest_name, "the worker with the longest name");
    const auto again = at(0) + limits.lease_min;
    std::ignore = take_one(store, again, {.lease = limits.lease_max, .worker = ""});
    t.equal(get(store, 1).lease_until, std::optional{again + limits.lease_max}, "the end of the longest lease");
    t.equal(get(store, 1).worker, std::string{}, "the worker after a claim without a name");
}

inline void every_kind_at_once(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30));
    put_claimed(store, 2, at(41));
    put_retrying(store, 3, at(20));
    put_retrying(store, 4, at(41));
    put(store, draft_of(5, {.due_at = at(10)}));
    put(store, draft_of(6, {.due_at = at(41)}));
    t.equal(numbers(take(store, at(40))), list_of{1, 5, 3}, "fresh, retried and taken over by one claim");
}

inline void terminal_never(trial& t) {
    auto store = t.open();
    for (const outcome& end : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        put(store, draft_of(1 + end.index()));
        std::ignore = settle(store, take_one(store, at(0)), end, at(0));
    }
    put_dead(store, draft_of(2));
    put(store, draft_of(4, {.result = "r"}));
    const auto before = look(store);
    const auto later = at(0) + std::chrono::hours{24 * 365};
    t.equal(numbers(take(store, later)), list_of{}, "succeeded and dead entries claimed");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        t.equal(numbers(take(store, later, {.only = id_of(n)})), list_of{}, "a succeeded or dead entry claimed by id");
    }
    unchanged(store, before, "claims leave succeeded and dead entries alone");
}

inline void queue_of_its_own(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.queue = "q"}));
    put(store, draft_of(2, {.queue = "r"}));
    const auto other = get(store, 2);
    t.equal(numbers(take(store, at(0), {.queue = "no such queue"})), list_of{}, "claimed from an empty queue");
    t.equal(numbers(take(store, at(0), {.queue = "q"})), list_of{1}, "claimed from the queue");
    t.equal(get(store, 2), other, "the entry of another queue");
    t.equal(numbers(take(store, at(0), {.queue = "r"})), list_of{2}, "claimed from the other queue");
}

inline void taken_by_gate(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30)); // due first, but its gate opens last
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{3}, "the one whose gate opened first");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{2}, "the one whose gate opened next");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{1}, "the one whose lease ended last");
}

inline void returned_by_due(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30));
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    put(store, draft_of(4, {.due_at = at(40)}));
    t.equal(numbers(take(store, at(50), {.limit = 3})), list_of{1, 3, 2}, "the first three gates, by due time");
}

inline void taken_ties(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {3U, 5U, 1U, 4U, 2U}) {
        put(store, draft_of(n, {.due_at = at(0)}));
    }
    for (const std::uint64_t n : {3U, 5U, 1U, 4U, 2U}) {
        t.equal(numbers(take(store, at(9), {.limit = 1})), list_of{n}, "the next of those due at the same time");
    }
    t.equal(numbers(take(store, at(109))), list_of{3, 5, 1, 4, 2}, "those whose leases ended at the same time");
}

inline void returned_ties(trial& t) {
    auto store = t.open();
    put_claimed(store, 2, at(30));
    put(store, draft_of(1, {.due_at = at(0)}));
    t.equal(numbers(take(store, at(30))), list_of{2, 1}, "due at the same time, in the order of their sequence");
}

inline void clocks_run_backwards(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(0)}), at(90));
    put(store, draft_of(2, {.due_at = at(0)}), at(10));
    put(store, draft_of(3, {.due_at = at(0)}), at(50));
    t.equal(numbers(take(store, at(5), {.limit = 2})), list_of{1, 2}, "the first two by sequence");
    t.equal(get(store, 1).updated_at, at(5), "updated_at, though the entry was created later");
    t.equal(numbers(take(store, at(4))), list_of{3}, "claimed at an earlier time than the one before");
}

inline void only_one_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = look(store).found;
    expected[1] = claimed_from(expected[1], at(7));
    t.equal(take(store, at(7), {.only = id_of(2)}), std::vector{expected[1]}, "claimed by its id");
    t.equal(look(store).found, expected, "what is stored after the claim");
}

inline void only_if_eligible(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    put(store, draft_of(2, {.queue = "r"}));
    put_claimed(store, 3, at(10));
    put_retrying(store, 4, at(10));
    const auto before = look(store);
    for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) { // not due, of another queue, held, not due, absent
        t.equal(numbers(take(store, at(9), {.only = id_of(n)})), list_of{}, "claimed by id though not eligible");
    }
    unchanged(store, before, "a claim of an entry that is not eligible changes nothing");
    for (const std::uint64_t n : {1U, 3U, 4U}) {
        t.equal(numbers(take(store, at(10), {.only = id_of(n)})), list_of{n}, "claimed by id as soon as eligible");
    }
}

inline void expiry_is_not_its_business(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.expires_at = at(5), .attempts_max = 1}));
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed after expires_at");
    t.equal(numbers(take(store, at(110))), list_of{1}, "taken over with attempts_max reached");
    t.equal(numbers(take(store, at(210))), list_of{1}, "claimed more often than attempts_max");
    t.equal(get(store, 1).attempts, 2U, "attempts");
}

inline void rolled_back(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    {
        auto tx = store.begin();
        t.equal(numbers(tx.claim(request(at(0)))), list_of{1}, "claimed in a transaction");
    }
    unchanged(store, before, "a claim in a transaction that rolls back never happened");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the next claim");
}

inline void invalid_requests(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    const auto& limits = t.can().limits;
    for (const auto& wrong :
         {taking{.limit = limits.batch_max + 1}, taking{.queue = ""}, taking{.queue = "q\n"},
          taking{.lease = limits.lease_min - duration{1}}, taking{.lease = limits.lease_max + duration{1}},
          taking{.worker = std::string(limits.name_max + 1, 'w')}}) {
        t.throws(error_kind::invalid_argument, "a claim beyond a limit",
                 [&] { std::ignore = take(store, at(0), wrong); });
    }
    unchanged(store, before, "a claim that is refused changes nothing");
}

inline void no_smaller_limit(trial& t) {
    constexpr std::uint64_t many = 1'100;
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(take(store, at(0), {.limit = many - 1}).size(), many - 1, "claimed with a limit of one less than are due");
    t.equal(take(store, at(0), {.limit = t.can().limits.batch_max}).size(), 1, "claimed with the largest limit");
    t.equal(take(store, at(100), {.limit = t.can().limits.batch_max}).size(), many,
            "taken over with the largest limit");
}

inline void only_later_lapses_count(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    list_of attempts;
    for (std::int64_t claims = 0; claims < 5; ++claims) {
        std::ignore = take_one(store, at(100 * claims));
        attempts.push_back(get(store, 1).attempts);
    }
    t.equal(attempts, list_of{1, 1, 2, 3, 4}, "attempts after a claim and four that took over");
}

inline void lapses_are_counted(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_lapsed(store, 1, 3);
    t.equal(get(store, 1).lapses, 3U, "lapses after three claims that ended with their leases");
    nudge(store, id_of(1), at(310));
    extend(store, ticket, at(320), duration{100});
    t.equal(get(store, 1).lapses, 3U, "lapses after a nudge and an extend");
    settle(store, ticket, release{}, at(330));
    std::ignore = take_one(store, at(330));
    t.equal(get(store, 1).lapses, 3U, "lapses after a claim of an entry that was released");
}

inline void each_by_its_own_past(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take_lapsed(store, 2, 0);
    std::ignore = take_lapsed(store, 3, 1);
    std::ignore = take_lapsed(store, 4, 2);
    settle(store, take_one(store, at(0), {.only = id_of(5)}), retry{"e", at(0)}, at(0));
    auto expected = look(store).found;
    for (auto& e : expected) {
        e = claimed_from(e, at(300));
    }
    t.equal(take(store, at(300)), expected, "claimed at once: fresh, after no, one and two lapses, and retried");
    t.equal(look(store).found, expected, "what is stored after that claim");
}

inline void rolled_back_takeover(trial& t) {
    for (const std::uint32_t lapses : {0U, 1U}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        std::ignore = take_lapsed(store, 1, lapses);
        const auto before = get(store, 1);
        from_begin(store, [&](auto& tx) {
            t.equal(numbers(tx.claim(request(at(200)))), list_of{1}, "taken over in a transaction that rolls back");
        });
        t.equal(get(store, 1), before, "the entry after the rollback");
        t.equal(take(store, at(200)), std::vector{claimed_from(before, at(200))}, "taken over for the first time");
    }
}

} // namespace claim_checks

inline constexpr std::array claiming{
    clause{"CLAIM-01", layer::examples, level::must, needs::nothing, "A claim with limit 0 takes nothing.",
           claim_checks::limit_zero},
    clause{"CLAIM-02", layer::examples, level::must, needs::nothing,
           "A claim takes `limit` entries if there are as many, else all there are; the others stay as they are.",
           claim_checks::limit_is_exact},
    clause{"CLAIM-03", layer::examples, level::must, needs::nothing,
           "A pending entry can be claimed from exactly its due_at on.", claim_checks::due_exactly_now},
    clause{"CLAIM-04", layer::examples, level::must, needs::nothing,
           "A retrying entry can be claimed from exactly its due_at on.", claim_checks::retry_due_exactly_now},
    clause{"CLAIM-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be taken over from exactly the end of its lease on, and by nobody before, not even by "
           "a worker of the same name.",
           claim_checks::lease_ends_exactly_now},
    clause{
        "CLAIM-06", layer::examples, level::must, needs::nothing,
        "A claim sets state, attempts, epoch, lease_until, worker, last_attempt_at and updated_at, and nothing else; "
        "it returns the entry as it is then, payload included.",
        claim_checks::fields},
    clause{
        "CLAIM-07", layer::examples, level::must, needs::nothing,
        "Taking over after a first lapse counts the lapse and no attempt, raises the epoch and clears the wake mark.",
        claim_checks::take_over_fields},
    clause{"CLAIM-08", layer::examples, level::must, needs::nothing,
           "lease_until is now + lease, for the shortest as for the longest lease; worker is who claimed last, be the "
           "name long or empty.",
           claim_checks::bounds_are_allowed},
    clause{"CLAIM-09", layer::examples, level::must, needs::nothing,
           "Fresh, retried and lapsed entries are taken by one and the same claim.", claim_checks::every_kind_at_once},
    clause{"CLAIM-10", layer::examples, level::must, needs::nothing,
           "Succeeded and dead entries are never claimed again.", claim_checks::terminal_never},
    clause{"CLAIM-11", layer::examples, level::must, needs::nothing, "A claim takes entries of its queue only.",
           claim_checks::queue_of_its_own},
    clause{"CLAIM-12", layer::examples, level::must, needs::nothing,
           "A claim takes the entries whose gates opened first: due_at, or the end of the lease of a claimed one.",
           claim_checks::taken_by_gate},
    clause{"CLAIM-13", layer::examples, level::must, needs::nothing,
           "A claim returns what it took in the order of due_at, not of the gates.", claim_checks::returned_by_due},
    clause{"CLAIM-14", layer::examples, level::must, needs::nothing,
           "Of entries whose gates open at the same time, those of lower sequence are taken first.",
           claim_checks::taken_ties},
    clause{"CLAIM-15", layer::examples, level::must, needs::nothing,
           "Of entries due at the same time, those of lower sequence are returned first.", claim_checks::returned_ties},
    clause{"CLAIM-16", layer::examples, level::must, needs::nothing,
           "Clocks may run backwards: sequences do not follow them, and a claim goes by the time it is given.",
           claim_checks::clocks_run_backwards},
    clause{"CLAIM-17", layer::examples, level::must, needs::nothing,
           "A claim of one id takes that entry and no other, though others come first.", claim_checks::only_one_id},
    clause{"CLAIM-18", layer::examples, level::must, needs::nothing,
           "A claim of one id takes nothing unless the entry is in the queue and its gate is open.",
           claim_checks::only_if_eligible},
    clause{"CLAIM-19", layer::examples, level::must, needs::nothing,
           "A claim does not look at expires_at or attempts_max: they are the runner's business.",
           claim_checks::expiry_is_not_its_business},
    clause{"CLAIM-20", layer::examples, level::must, needs::nothing,
           "A claim in a transaction that rolls back never happened.", claim_checks::rolled_back},
    clause{"CLAIM-21", layer::examples, level::must, needs::nothing,
           "A claim whose limit, queue, lease or worker is out of bounds throws invalid_argument and takes nothing.",
           claim_checks::invalid_requests},
    clause{"CLAIM-22", layer::examples, level::must, needs::nothing,
           "A claim takes as many as its limit says; the store has no smaller limit of its own.",
           claim_checks::no_smaller_limit},
    clause{"CLAIM-23", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse in a row is no attempt; one after the second or a later lapse is.",
           claim_checks::only_later_lapses_count},
    clause{"CLAIM-24", layer::examples, level::must, needs::nothing,
           "lapses counts the claims in a row that ended with their lease; a nudge, an extend and a claim of a waiting "
           "entry leave it.",
           claim_checks::lapses_are_counted},
    clause{"CLAIM-25", layer::examples, level::must, needs::nothing,
           "One claim of fresh, retried and lapsed entries counts attempts and lapses for each by its own past.",
           claim_checks::each_by_its_own_past},
    clause{"CLAIM-26", layer::examples, level::must, needs::nothing,
           "A takeover in a transaction that rolls back leaves lapses and attempts as they were.",
           claim_checks::rolled_back_takeover},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/cost.hpp
// Layer 8: what a claim costs beside many rows it has nothing to do with. Times are only ever compared with each other.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace cost_checks {

inline constexpr std::size_t few = 100;
inline constexpr double growth_max = 10; // for a thousand times the rows; a scan would be hundreds
inline constexpr time_point now = at(1'000);
inline constexpr duration long_time = std::chrono::hours{24};

/// A store with `rows` entries of a kind, each made by `make(number) -> draft`.
template <class Make>
[[nodiscard]] any_store filled(trial& t, std::size_t rows, Make&& make) {
    auto store = t.open(t.fresh_place());
    constexpr std::size_t batch = 5'000;
    for (std::size_t done = 0; done < rows;) {
        std::vector<draft> drafts;
        for (; drafts.size() < batch && done < rows; ++done) {
            drafts.push_back(make(1'000'000 + done));
        }
        vouch::enqueue(store, drafts, at(0));
    }
    return store;
}

/// The quickest of several claims of ten, in microseconds.
[[nodiscard]] inline double claim_time(any_store& store, std::uint64_t first) {
    double best = 1e9;
    for (std::uint64_t round = 0; round < 15; ++round) {
        std::vector<draft> drafts;
        for (std::uint64_t n = 0; n < 10; ++n) {
            drafts.push_back(draft_of(first + 10 * round + n, {.due_at = now}));
        }
        vouch::enqueue(store, drafts, now);
        from_begin(store, [&](auto& tx) {
            const auto begun = std::chrono::steady_clock::now();
            const auto claimed = tx.claim(request(now, {.limit = 10, .lease = long_time}));
            best = std::min(
                best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
            trial::equal(claimed.size(), std::size_t{10}, "due entries claimed beside the others");
            std::vector<vouch::settle> settles;
            for (const auto& e : claimed) {
                settles.push_back({ticket_of(e), succeed{}});
            }
            std::ignore = tx.settle(settles, now);
            tx.commit();
        });
    }
    return best;
}

/// Compares the claim beside few and beside many.
template <class Make, class After>
void does_not_grow(trial& t, Make&& make, After&& after) {
    auto small = filled(t, few, make);
    auto large = filled(t, t.budget().cost_rows, make);
    after(small);
    after(large);
    constexpr double noise = 20; // microseconds in which nothing can be told apart
    double beside_few = 0;
    double beside_many = 0;
    for (std::uint64_t attempt = 0; attempt < 3; ++attempt) {
        beside_few = claim_time(small, 1 + 1'000 * attempt);
        beside_many = claim_time(large, 1 + 1'000 * attempt);
        if (beside_many <= std::max(noise, growth_max * beside_few)) {
            return;
        }
    }
    trial::fail("a claim of ten beside " + std::to_string(t.budget().cost_rows) +
                    " rows costs about as much as beside " + std::to_string(few),
                std::to_string(beside_many) + " us", "at most ten times " + std::to_string(beside_few) + " us");
}

inline constexpr auto nothing_more = [](any_store&) {};

inline void future(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.due_at = now + long_time}); }, nothing_more);
}

inline void terminal(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.result = "done"}); }, nothing_more);
}

inline void blocked(trial& t) {
    does_not_grow(
        t,
        [](std::uint64_t n) { return draft_of(n, {.lane = "l" + std::to_string(n % 10), .due_at = now + long_time}); },
        nothing_more);
}

inline void claimed(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.due_at = at(0)}); },
        [](any_store& store) {
            while (!take(store, at(1), {.limit = 5'000, .lease = long_time}).empty()) {
            }
        });
}

} // namespace cost_checks

inline constexpr std::array cost{
    clause{"COST-01", layer::cost, level::must, needs::nothing,
           "What a claim costs does not grow with entries that are not due yet.", cost_checks::future},
    clause{"COST-02", layer::cost, level::must, needs::nothing,
           "What a claim costs does not grow with terminal entries.", cost_checks::terminal},
    clause{"COST-03", layer::cost, level::may, needs::lanes,
           "What a claim costs does not grow with entries that are blocked in their lanes.", cost_checks::blocked},
    clause{"COST-04", layer::cost, level::must, needs::nothing,
           "What a claim costs does not grow with entries that others hold.", cost_checks::claimed},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/falsify.hpp
// RapidCheck as the suite uses it: a case is a list of words, each word is one command's share of luck, and a failing
// case is made smaller by leaving words out. Words do not grow with RapidCheck's size, so the first case is as rich as
// the last.

namespace vouch {
inline namespace v0 {
namespace conformance {

using words = std::vector<std::uint64_t>;

namespace detail {

[[nodiscard]] inline rc::Gen<words> some_words(std::size_t count) {
    return rc::gen::shrink(rc::Gen<words>([count](const rc::Random& random, int) {
                               auto source = random;
                               words out(count);
                               for (auto& word : out) {
                                   word = source.next();
                               }
                               return rc::shrinkable::just(std::move(out));
                           }),
                           [](words longer) { return rc::shrink::removeChunks(std::move(longer)); });
}

} // namespace detail

/// Runs `play(words)` on `cases` lists of `length` words. If it throws, the list is shrunk, if that is wanted, and the
/// smallest one that still fails is returned with its failure.
template <class Play>
[[nodiscard]] std::optional<std::pair<words, failure>> falsify(const trial& t, std::size_t cases, std::size_t length,
                                                               Play&& play) {
    namespace rcd = rc::detail;
    std::optional<std::pair<words, failure>> smallest;
    rcd::Configuration how;
    how.testParams.seed = t.seed();
    how.testParams.disableShrinking = !t.options().explains;
    how.testParams.maxSuccess = static_cast<int>(cases);
    rcd::TestListenerAdapter silence;
    const auto all = detail::some_words(length);
    const auto property = [&] {
        const auto list = *all;
        try {
            play(list);
        } catch (const failure& f) {
            smallest.emplace(list, f);
            RC_FAIL("the case fails");
        } catch (const error& e) {
            smallest.emplace(list, failure{.what = "the store threw where it should not",
                                           .seen = show(e.kind()) + ": " + e.what(),
                                           .expected = "no error"});
            RC_FAIL("the case throws");
        }
    };
    const auto result = rcd::checkTestable(property, rcd::TestMetadata{}, how.testParams, silence, how.reproduce);
    if (!result.template is<rcd::SuccessResult>() && !smallest) {
        trial::fail("a case could not be played");
    }
    return smallest;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/comparison.hpp
// What can be seen of a store, compared with the model: all entries and numbers after every command, and questions
// drawn by lot. Names are few, so that everything meets everything.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Generated entries have the numbers 1 to this; queues are "q" and "r", keys "k" and "l", groups "g" and "h", topics
/// "a" and "b".
inline constexpr std::uint64_t numbers_max = 14;

[[nodiscard]] inline query some_query(dice& d) {
    auto q = [&] {
        const std::string queue = d.chance(80) ? "q" : "r";
        switch (d.below(5)) {
        case 0: return query::members(d.one_of<std::string>({"g", "h"}));
        case 1: return query::children(id_of(1 + d.below(numbers_max)));
        case 2: return query::keyed(queue, d.one_of<std::string>({"k", "l"}));
        case 3: return query::dead(queue);
        default: return query::live(queue);
        }
    }();
    if (d.chance(30)) {
        q.state = all_states[d.below(all_states.size())];
    }
    q.topic = d.one_of<std::string>({"", "", "a", "b"});
    q.payloads = d.chance(50);
    return q;
}

template <class Reader>
void compare_found(const Reader& reader, const model& expected, const id& wanted) {
    const auto* const e = expected.find(wanted);
    trial::equal(reader.find(wanted), e == nullptr ? std::nullopt : std::optional{*e}, "find " + show(wanted));
}

template <class Reader>
void compare_pages(const Reader& reader, const model& expected, query q, dice& d) {
    q.limit = d.one_of<std::size_t>({1, 2, 3, 100});
    for (;;) {
        const auto page = reader.list(q);
        trial::equal(page, expected.list(q), "a page of a list");
        if (page.size() < q.limit) {
            return;
        }
        q.after = page.back().sequence;
    }
}

template <class Reader>
void compare_numbers(const Reader& reader, const model& expected, const std::string& queue) {
    trial::equal(reader.counts(queue), expected.counts(queue), "counts");
    trial::equal(reader.next_due(queue), expected.next_due(queue), "next_due");
}

/// All entries of a queue, payloads included, without copying the model's.
template <class Reader>
void compare_queue(const Reader& reader, const model& expected, const std::string& queue) {
    const auto seen = reader.list({.queue = queue, .payloads = true});
    std::size_t n = 0;
    for (const auto& r : expected.records) {
        if (r.entry.queue != queue) {
            continue;
        }
        if (n == seen.size() || seen[n] != r.entry) {
            trial::equal(seen, expected.list({.queue = queue, .payloads = true}), "all entries of a queue");
        }
        ++n;
    }
    trial::equal(seen.size(), n, "entries of a queue");
}

/// All entries, all numbers, and a question more.
template <class Reader>
void compare_some(const Reader& reader, const model& expected, dice& d) {
    for (const std::string queue : {"q", "r"}) {
        compare_queue(reader, expected, queue);
        compare_numbers(reader, expected, queue);
    }
    compare_pages(reader, expected, some_query(d), d);
    compare_found(reader, expected, id_of(1 + d.below(numbers_max)));
}

template <class Reader>
void compare_all(const Reader& reader, const model& expected, dice& d) {
    for (std::uint64_t n = 1; n <= numbers_max; ++n) {
        compare_found(reader, expected, id_of(n));
        compare_pages(reader, expected, query::children(id_of(n)), d);
    }
    for (const std::string queue : {"q", "r"}) {
        compare_numbers(reader, expected, queue);
        for (const auto& q : {query::all(queue), query::live(queue), query::dead(queue), query::keyed(queue, "k"),
                              query::keyed(queue, "l")}) {
            compare_pages(reader, expected, q, d);
        }
    }
    compare_pages(reader, expected, query::members("g"), d);
    compare_pages(reader, expected, query::members("h"), d);
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/generator.hpp
// Commands made up by lot, with what they refer to bound late ("a ticket somebody has", "a dead entry"), so that a
// command still means something when those before it are left out.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Makes up arguments from what the model knows. Names are few and times within a few ticks of each other.
class imagination {
  public:
    imagination(const vouch::capabilities& can, const model& known, time_point now, const std::vector<ticket>& tickets,
                dice& d)
        : can_(can), known_(known), now_(now), tickets_(tickets), dice_(d) {}

    [[nodiscard]] id some_id() {
        if (!known_.records.empty() && dice_.chance(60)) {
            return known_.records[dice_.below(known_.records.size())].entry.id;
        }
        return id_of(1 + dice_.below(numbers_max));
    }
    [[nodiscard]] time_point some_time() {
        return now_ + duration{dice_.one_of<std::int64_t>({-2, -1, 0, 0, 1, 1, 2, 5, 9})};
    }
    [[nodiscard]] duration some_lease() { return duration{dice_.one_of<std::int64_t>({1, 2, 5, 9, 30})}; }
    [[nodiscard]] std::string some_queue() { return dice_.chance(85) ? "q" : "r"; }

    /// Most often the present claim's, else one from the past, or one nobody ever had.
    [[nodiscard]] ticket some_ticket() {
        if (dice_.chance(75)) {
            if (const auto present = those_in(state::claimed); !present.empty()) {
                const auto* const e = present[dice_.below(present.size())];
                return {e->id, e->epoch};
            }
        }
        if (!tickets_.empty() && dice_.chance(60)) {
            return tickets_[dice_.below(tickets_.size())];
        }
        return {some_id(), dice_.below(4)};
    }

    [[nodiscard]] outcome some_outcome() {
        switch (dice_.below(5)) {
        case 0: return succeed{dice_.one_of<std::string>({"", "result"})};
        case 1: return retry{dice_.one_of<std::string>({"e1", "e2"}), some_time()};
        case 2: return bury{"e3", dice_.chance(50) ? std::optional<std::string>("reply") : std::nullopt};
        case 3: return release{maybe_time(50)};
        default: return advance{dice_.one_of<std::string>({"p1", "p2"}), maybe_time(50)};
        }
    }

    [[nodiscard]] draft some_draft() {
        draft d{.id = id_of(1 + dice_.below(numbers_max)), .queue = some_queue()};
        if (known_.find(d.id) != nullptr && dice_.chance(70)) {
            d.id = id_of(1 + dice_.below(numbers_max));
        }
        d.topic = dice_.one_of<std::string>({"a", "b"});
        d.payload = dice_.one_of<std::string>({"", "p", "payload"});
        d.due_at = maybe_time(60);
        d.expires_at = maybe_time(10);
        d.attempts_max = static_cast<std::uint32_t>(dice_.below(3));
        d.progress = dice_.one_of<std::string>({"", "p0"});
        if (dice_.chance(10)) {
            d.headers = {{"name", "value"}};
            d.trail = {some_id()};
        }
        if (dice_.chance(30)) {
            d.predecessor = dice_.chance(80) ? some_dead_id() : some_id();
            const auto* const old = known_.find(d.predecessor);
            d.queue = old != nullptr && dice_.chance(90) ? old->queue : d.queue;
            d.parent = dice_.chance(10) ? some_id() : id{};
            return d;
        }
        d.key = dice_.one_of<std::string>({"", "", "k", "l"});
        if (dice_.chance(8)) {
            d.result = "born";
            return d;
        }
        d.group = can_.groups ? dice_.one_of<std::string>({"", "", "g", "h"}) : "";
        d.lane = can_.lanes ? dice_.one_of<std::string>({"", "", "x", "y"}) : "";
        d.parent = dice_.chance(25) ? some_id() : id{};
        return d;
    }

    [[nodiscard]] claim_request some_claim() {
        return {.queue = some_queue(),
                .limit = dice_.one_of<std::size_t>({0, 1, 1, 2, 3, 100}),
                .now = now_,
                .lease = some_lease(),
                .worker = dice_.one_of<std::string>({"", "w1", "w2"}),
                .only = dice_.chance(25) ? some_id() : id{}};
    }

    [[nodiscard]] purge_request some_purge() {
        purge_request r{
            .queue = some_queue(), .before = some_time(), .limit = dice_.one_of<std::size_t>({0, 1, 2, 3, 100})};
        if (dice_.chance(40)) {
            r.state = dice_.one_of({state::succeeded, state::dead});
        }
        return r;
    }

    /// A step, or to exactly the next gate, or to a tick before or after it.
    [[nodiscard]] time_point some_next_time() {
        const auto due = known_.next_due(some_queue());
        if (due && dice_.chance(60)) {
            return *due + duration{dice_.one_of<std::int64_t>({-1, 0, 1})};
        }
        return now_ + duration{dice_.one_of<std::int64_t>({-3, 1, 1, 2, 10})};
    }

  private:
    [[nodiscard]] std::optional<time_point> maybe_time(std::size_t percent) {
        return dice_.chance(percent) ? std::optional{some_time()} : std::nullopt;
    }
    [[nodiscard]] std::vector<const entry*> those_in(state s) const {
        std::vector<const entry*> out;
        for (const auto& r : known_.records) {
            if (r.entry.state == s) {
                out.push_back(&r.entry);
            }
        }
        return out;
    }
    [[nodiscard]] id some_dead_id() {
        const auto dead = those_in(state::dead);
        return dead.empty() ? some_id() : dead[dice_.below(dead.size())]->id;
    }

    const vouch::capabilities& can_;
    const model& known_;
    time_point now_;
    const std::vector<ticket>& tickets_;
    dice& dice_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/model_run.hpp
// A store and the model told the same story, a command at a time; after every command everything that can be seen is
// compared, from inside the transaction and from outside.

namespace vouch {
inline namespace v0 {
namespace conformance {

class story {
  public:
    story(any_store store, const vouch::capabilities& can, tally& seen)
        : store_(std::move(store)), can_(can), tally_(seen) {}

    /// One command, made up from one word. If the store has a conflict, its transaction never happened.
    void tell(std::uint64_t word) {
        try {
            tell_it(word);
            conflicts_in_a_row_ = 0;
        } catch (const error& e) {
            bear(e);
        }
    }

    /// Ends the open transaction, if there is one.
    void end(bool commit) {
        try {
            end_it(commit);
        } catch (const error& e) {
            bear(e);
        }
    }

    /// Drops the transaction and all handles, as the death of the process does.
    void close() {
        if (is_committing_) {
            maybe_ = own_; // nobody can know
            maybe_last_sequence_ = last_sequence_;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
        store_.reset();
    }

    /// Goes on with a store opened anew, which must look as it was committed: an unfinished commit wholly or not at
    /// all.
    void go_on(any_store again) {
        store_.emplace(std::move(again));
        if (maybe_ && looks_like(*maybe_)) {
            committed_ = own_ = *maybe_;
            last_sequence_ = last_committed_sequence_ = maybe_last_sequence_;
        }
        maybe_.reset();
        dice d(committed_.records.size());
        for (const std::string queue : {"q", "r"}) {
            compare_queue(*store_, committed_, queue);
        }
        compare_all(*store_, committed_, d);
    }
    [[nodiscard]] const model& committed() const noexcept { return committed_; }
    [[nodiscard]] time_point now() const noexcept { return now_; }
    [[nodiscard]] const std::vector<ticket>& tickets() const noexcept { return tickets_; }

  private:
    void tell_it(std::uint64_t word) {
        dice d(word);
        if (!tx_) {
            tx_.emplace(store_->begin());
        }
        command(d);
        tally_.commands += 1;
        compare_some(*tx_, own_, d);
        compare_some(*store_, committed_, d);
        if (d.chance(3)) {
            compare_all(*tx_, own_, d);
            compare_all(*store_, committed_, d);
        }
        if (d.chance(25)) {
            end_it(d.chance(70));
            compare_some(*store_, committed_, d);
        }
    }

    void end_it(bool commit) {
        if (tx_ && commit) {
            is_committing_ = true;
            tx_->commit();
            is_committing_ = false;
            committed_ = own_;
            last_committed_sequence_ = last_sequence_;
        }
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    /// What is no conflict goes through; nor may there be nothing but conflicts.
    void bear(const error& e) {
        constexpr int in_a_row_max = 16;
        if (e.kind() != error_kind::conflict || e.is_in_doubt() || ++conflicts_in_a_row_ > in_a_row_max) {
            throw;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void saw(std::string_view command, std::string_view answer) {
        tally_.answers[std::string(command) + ' ' + std::string(answer)] += 1;
    }

    [[nodiscard]] bool looks_like(const model& m) const {
        try {
            for (const std::string queue : {"q", "r"}) {
                compare_queue(*store_, m, queue);
            }
            return true;
        } catch (const failure&) {
            return false;
        }
    }

    [[nodiscard]] imagination imagine(dice& d) { return {can_, own_, now_, tickets_, d}; }

    void command(dice& d) {
        const auto roll = d.below(100);
        if (roll < 20) {
            enqueue(d);
        } else if (roll < 42) {
            claim(d);
        } else if (roll < 62) {
            settle(d);
        } else if (roll < 67) {
            extend(d);
        } else if (roll < 72) {
            nudge(d);
        } else if (roll < 80) {
            cancel(d);
        } else if (roll < 88) {
            purge(d);
        } else {
            now_ = imagine(d).some_next_time();
        }
    }

    void enqueue(dice& d) {
        std::vector<draft> drafts(1 + d.below(3));
        std::vector<receipt> expected;
        for (auto& one : drafts) {
            one = imagine(d).some_draft();
            expected.push_back(own_.enqueue(one, now_));
            saw("enqueue", name_of(expected.back().what));
        }
        trial::equal(tx_->enqueue(drafts, now_), expected, "receipts of an enqueue");
        adopt_sequences(expected);
    }

    /// Which sequence is the store's business, as long as they only grow.
    void adopt_sequences(const std::vector<receipt>& receipts) {
        std::ptrdiff_t inserted = 0;
        for (const auto& one : receipts) {
            inserted += one.what == receipt::kind::inserted ? 1 : 0;
        }
        for (auto r = own_.records.end() - inserted; r != own_.records.end(); ++r) {
            const auto stored = tx_->find(r->entry.id);
            if (!stored || stored->sequence <= last_sequence_) {
                trial::fail("the sequence of a new entry is greater than any before",
                            stored ? show(stored->sequence) : "absent", "more than " + show(last_sequence_));
            }
            r->entry.sequence = last_sequence_ = stored->sequence;
        }
    }

    void claim(dice& d) {
        const auto request = imagine(d).some_claim();
        const auto expected = own_.claim(request);
        for (const auto& e : expected) {
            tickets_.push_back(ticket_of(e));
        }
        saw("claim", expected.empty() ? "nothing" : "something");
        trial::equal(tx_->claim(request), expected, "entries claimed");
    }

    void settle(dice& d) {
        static constexpr std::array names{"succeed", "retry", "bury", "release", "advance"};
        std::vector<vouch::settle> settles(d.one_of<std::size_t>({1, 1, 2, 3}));
        std::vector<settlement> expected;
        for (auto& s : settles) {
            s = {imagine(d).some_ticket(), imagine(d).some_outcome()};
            expected.push_back(own_.settle(s, now_));
            saw(names[s.outcome.index()], name_of(expected.back().verdict));
            if (expected.back().group_completed) {
                saw("group", "completed");
            }
        }
        trial::equal(tx_->settle(settles, now_), expected, "settlements");
    }

    void extend(dice& d) {
        std::vector<ticket> tickets(1 + d.below(2));
        const auto lease = imagine(d).some_lease();
        std::vector<verdict> expected;
        for (auto& t : tickets) {
            t = imagine(d).some_ticket();
            expected.push_back(own_.extend(t, now_, lease));
            saw("extend", name_of(expected.back()));
        }
        trial::equal(tx_->extend(tickets, now_, lease), expected, "verdicts on an extend");
    }

    void nudge(dice& d) {
        const auto wanted = imagine(d).some_id();
        const auto expected = own_.nudge(wanted, now_);
        saw("nudge", name_of(expected));
        trial::equal(tx_->nudge(wanted, now_), expected, "the verdict on a nudge");
    }

    void cancel(dice& d) {
        const auto wanted = imagine(d).some_id();
        const auto expected = own_.cancel(wanted, "c", now_);
        saw("cancel", name_of(expected));
        trial::equal(tx_->cancel(wanted, "c", now_), expected, "the verdict on a cancel");
    }

    void purge(dice& d) {
        const auto request = imagine(d).some_purge();
        const auto expected = own_.purge(request);
        saw("purge", expected == 0 ? "nothing" : "something");
        trial::equal(tx_->purge(request), expected, "entries purged");
    }

    std::optional<any_store> store_;
    const vouch::capabilities& can_;
    tally& tally_;
    std::optional<any_transaction> tx_{};
    model committed_{};
    model own_{};
    std::uint64_t last_sequence_ = 0; // of all that were ever committed, or belong to the open transaction
    std::uint64_t last_committed_sequence_ = 0;
    bool is_committing_ = false;
    int conflicts_in_a_row_ = 0;
    std::optional<model> maybe_{}; // what a commit that did not come back may have left
    std::uint64_t maybe_last_sequence_ = 0;
    time_point now_ = start;
    std::vector<ticket> tickets_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/crashes.hpp
// Layer 5: the process dies between any two commands, and inside them where the store has seams; what was acknowledged
// is there, what was not is wholly there or not at all.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace crash_checks {

/// Thrown through the store to get out of it, as a death does.
struct death {};

/// The process dies and another one takes over. Unless the fixture knows better, its files are as they were at the
/// moment of death, whatever closing the handles would still have done to them.
inline void die(trial& t, const place& p, story& s) {
    if (t.hooks().crash) {
        s.close();
        t.hooks().crash(p);
    } else {
        auto image = p.directory();
        image += ".image";
        std::filesystem::copy(p.directory(), image, std::filesystem::copy_options::recursive);
        s.close();
        std::filesystem::remove_all(p.directory());
        std::filesystem::rename(image, p.directory());
    }
    t.tally().crash_points += 1;
    s.go_on(t.on().open(p));
}

/// Tells a story in which every fourth command or so is the last of its process.
inline void between(trial& t, const words& list) {
    const auto p = t.fresh_place();
    {
        story s(t.on().open(p), t.can(), t.tally());
        for (const auto word : list) {
            s.tell(word);
            if (word % 4 == 0) {
                die(t, p, s);
            }
        }
        s.end(true);
        die(t, p, s);
    }
    t.leave(p);
}

/// The same, but death comes at a seam some way ahead.
inline void inside(trial& t, const words& list) {
    const auto p = t.fresh_place();
    {
        std::size_t left = 0;
        t.hooks().seam([&left](std::string_view) {
            if (left > 0 && --left == 0) {
                throw death{};
            }
        });
        story s(t.on().open(p), t.can(), t.tally());
        for (const auto word : list) {
            left = word % 3 == 0 ? 1 + word / 3 % 9 : left;
            try {
                s.tell(word);
            } catch (const death&) {
                die(t, p, s);
            }
        }
        left = 0;
        s.end(true);
        die(t, p, s);
    }
    t.hooks().seam(nullptr);
    t.leave(p);
}

template <class Play>
void until_enough(trial& t, Play&& play) {
    constexpr std::size_t length = 60;
    constexpr std::size_t crashes_per_story = 12;
    auto found =
        falsify(t, 1 + t.budget().crash_points / crashes_per_story, length, [&](const words& list) { play(t, list); });
    if (found) {
        throw std::move(found->second);
    }
}

inline void at_boundaries(trial& t) { until_enough(t, between); }

inline void at_seams(trial& t) {
    if (!t.hooks().seam) {
        throw untested{"the fixture has no seam"};
    }
    until_enough(t, inside);
}

} // namespace crash_checks

inline constexpr std::array crashes{
    clause{"CRASH-01", layer::crashes, level::must, needs::nothing,
           "When a process dies between two calls, what was committed is there to the byte and nothing else is.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "When a process dies inside a call, its transaction is wholly there or not at all.", crash_checks::at_seams},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/dedup.hpp
// Dedup: by id first, then by key within the queue; what is stored is the window.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace dedup_checks {

using namespace enqueue_checks;

inline void id_is_taken(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "first"}));
    const auto before = look(store);
    t.equal(put(store, draft_of(1, {.queue = "r", .topic = "other", .payload = "second", .key = "k"}), at(5)),
            duplicate(1), "another draft with a stored id");
    unchanged(store, before, "a duplicate by id writes nothing");
    t.equal(put(store, draft_of(2, {.queue = "r", .key = "k"})), inserted(2), "the key that draft would have had");
}

inline void id_is_taken_in_every_state(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= all_states.size(); ++n) {
        put_as(store, draft_of(n), all_states[n - 1]);
        const auto before = look(store);
        t.equal(put(store, draft_of(n), at(5)), duplicate(n), "enqueued again while " + show(all_states[n - 1]));
        unchanged(store, before, "a duplicate by id writes nothing");
    }
}

inline void key_is_taken_in_every_state(trial& t) {
    for (const auto s : all_states) {
        auto store = t.open(t.fresh_place());
        put_as(store, draft_of(1, {.key = "k"}), s);
        put(store, draft_of(2, {.key = "l"}));
        const auto before = look(store);
        t.equal(put(store, draft_of(3, {.key = "k"}), at(5)), duplicate(1), "the key of one that is " + show(s));
        unchanged(store, before, "a duplicate by key writes nothing");
    }
}

inline void other_keys_are_free(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    t.equal(put(store, draft_of(2, {.queue = "r", .key = "k"})), inserted(2), "the same key in another queue");
    t.equal(put(store, draft_of(3, {.key = "l"})), inserted(3), "another key in the same queue");
    t.equal(put(store, draft_of(4, {.queue = "r", .key = "k"})), duplicate(2), "the other queue's key again");
    t.equal(put(store, draft_of(5)), inserted(5), "a draft without a key");
    t.equal(put(store, draft_of(6)), inserted(6), "another draft without a key");
}

inline void keys_are_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::string key : {"k", "K", "k ", " k", "kk", "\xc3\xa9", "e\xcc\x81", "\xff", "1", "01", "1.0"}) {
        ++n;
        t.equal(put(store, draft_of(n, {.key = key})), inserted(n), "a key that is like another but not the same");
        t.equal(put(store, draft_of(20, {.key = key})), duplicate(n), "the same key again");
    }
}

inline void id_before_key(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    put(store, draft_of(2, {.key = "l"}));
    t.equal(put(store, draft_of(2, {.key = "k"})), duplicate(2), "a stored id with the key of another entry");
}

inline void newest_generation(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(1), "the key of a dead entry");
    for (const std::uint64_t n : {2U, 3U}) {
        put(store, draft_of(n, {.predecessor = id_of(n - 1)}));
        t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(n), "the key when the newest generation is live");
        cancel(store, id_of(n));
        t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(n), "the key when the newest generation is dead");
    }
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2, 3}, "stored with that key");
}

inline void purge_frees(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    purge(store, {.queue = "q", .before = at(1)});
    t.equal(put(store, draft_of(2, {.key = "k"})), inserted(2), "the key of a purged entry");
    t.equal(put(store, draft_of(1)), inserted(1), "the id of a purged entry");
    t.equal(get(store, 1).state, state::pending, "the state of the new entry with that id");
    put_dead(store, draft_of(3, {.key = "l"}));
    auto tx = store.begin();
    tx.purge({.queue = "q", .before = at(1)});
    const std::array drafts{draft_of(3, {.key = "l"})};
    t.equal(tx.enqueue(drafts, at(2)), receipts{inserted(3)}, "id and key in the transaction that purged them");
}

inline void elder_purge_frees_nothing(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    put(store, draft_of(2, {.predecessor = id_of(1)}));
    cancel(store, id_of(2));
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 1}), 1, "purged of two generations");
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(2), "the key while a generation is still stored");
}

inline void repeated_batch(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(1, {.key = "k"}), draft_of(2), draft_of(3, {.result = "r"})};
    vouch::enqueue(store, batch, at(0));
    const auto before = look(store);
    t.equal(vouch::enqueue(store, batch, at(5)), receipts{duplicate(1), duplicate(2), duplicate(3)},
            "the same batch again");
    unchanged(store, before, "a batch that had landed changes nothing when it is repeated");
}

} // namespace dedup_checks

inline constexpr std::array dedup{
    clause{"DEDUP-01", layer::examples, level::must, needs::nothing,
           "An id that is stored is a duplicate of itself; nothing of the draft is written, not even its key.",
           dedup_checks::id_is_taken},
    clause{"DEDUP-02", layer::examples, level::must, needs::nothing, "An id is taken whatever state its entry is in.",
           dedup_checks::id_is_taken_in_every_state},
    clause{"DEDUP-03", layer::examples, level::must, needs::nothing,
           "A key that is stored in the queue is a duplicate of the entry that has it, whatever state that is in.",
           dedup_checks::key_is_taken_in_every_state},
    clause{"DEDUP-04", layer::examples, level::must, needs::nothing,
           "A key is unique per queue: another queue's is free, and drafts without a key never meet.",
           dedup_checks::other_keys_are_free},
    clause{"DEDUP-05", layer::examples, level::must, needs::nothing, "Keys are the same only if every byte is.",
           dedup_checks::keys_are_bytes},
    clause{"DEDUP-06", layer::examples, level::must, needs::nothing, "The id is looked at before the key.",
           dedup_checks::id_before_key},
    clause{"DEDUP-07", layer::examples, level::must, needs::nothing,
           "A key that is stored in several generations is a duplicate of the newest, live or dead.",
           dedup_checks::newest_generation},
    clause{"DEDUP-08", layer::examples, level::must, needs::nothing,
           "A purge frees the id and the key, for its own transaction too.", dedup_checks::purge_frees},
    clause{"DEDUP-09", layer::examples, level::must, needs::nothing,
           "A key stays taken until its newest generation is purged.", dedup_checks::elder_purge_frees_nothing},
    clause{"DEDUP-10", layer::examples, level::must, needs::nothing,
           "A batch that is repeated with the same ids finds each of them stored and changes nothing.",
           dedup_checks::repeated_batch},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/extend.hpp
// Extend: a claim is prolonged, never shortened.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace extend_checks {

/// Entry 1, claimed at 0, its lease until 100, with something in the fields an extend leaves alone.
[[nodiscard]] inline entry claimed(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(-5), .progress = "begun"}));
    std::ignore = take_one(store, at(0));
    return get(store, 1);
}

inline void fields(trial& t) {
    auto store = t.open();
    auto expected = claimed(store);
    t.equal(extend(store, ticket_of(expected), at(30), duration{200}), verdict::applied, "the extend");
    expected.lease_until = at(230);
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the extend");
    t.equal(store.next_due("q"), std::optional{at(230)}, "next_due");
}

inline void never_shorter(trial& t) {
    for (const std::int64_t lease : {1, 69, 70, 71}) { // at 30 there are 70 left
        auto store = t.open(t.fresh_place());
        auto expected = claimed(store);
        t.equal(extend(store, ticket_of(expected), at(30), duration{lease}), verdict::applied, "the extend");
        expected.lease_until = at(lease == 71 ? 101 : 100);
        expected.updated_at = at(30);
        t.equal(get(store, 1), expected, "the entry after an extend by " + show(duration{lease}));
    }
}

inline void keeps_others_away(trial& t) {
    auto store = t.open();
    const auto held = claimed(store);
    std::ignore = extend(store, ticket_of(held), at(99), duration{50});
    t.equal(numbers(take(store, at(100))), list_of{}, "taken over when the lease would have ended");
    t.equal(numbers(take(store, at(148))), list_of{}, "taken over one microsecond before the new end");
    t.equal(numbers(take(store, at(149))), list_of{1}, "taken over at the new end");
}

inline void revives_a_lapsed_claim(trial& t) {
    for (const auto now : {at(100), at(1000)}) { // the end of the lease, and long after
        auto store = t.open(t.fresh_place());
        auto expected = claimed(store);
        t.equal(extend(store, ticket_of(expected), now, duration{1}), verdict::applied, "the extend of a lapsed claim");
        expected.lease_until = now + duration{1};
        expected.updated_at = now;
        t.equal(get(store, 1), expected, "the entry after the extend");
        t.equal(numbers(take(store, now)), list_of{}, "taken over while the new lease runs");
    }
}

inline void not_once_taken_over(trial& t) {
    auto store = t.open();
    const auto first = ticket_of(claimed(store));
    const auto second = take_one(store, at(100), {.worker = "w"});
    const auto before = look(store);
    t.equal(extend(store, first, at(110), duration{500}), verdict::stale, "the extend of the first claim");
    unchanged(store, before, "a claim that was taken over extends nothing");
    t.equal(extend(store, second, at(110), duration{500}), verdict::applied, "the extend of the second claim");
}

inline void ticket_stays_good(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    for (const auto now : {at(10), at(20), at(30)}) {
        t.equal(extend(store, ticket, now, duration{100}), verdict::applied, "one of several extends");
        t.equal(get(store, 1).lease_until, std::optional{now + duration{100}}, "lease_until");
    }
    t.equal(settle(store, ticket, succeed{}, at(40)), settlement{verdict::applied}, "the settle after them");
}

inline void keeps_the_wake_mark(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    nudge(store, id_of(1), at(10));
    std::ignore = extend(store, ticket, at(20), duration{200});
    t.expect(get(store, 1).woken, "the wake mark is kept");
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(50));
    t.equal(get(store, 1).due_at, at(50), "due_at after the claim that was nudged");
}

inline void batch(trial& t) {
    auto store = t.open();
    t.equal(transact(store, [](auto& tx) { return tx.extend({}, at(1), duration{9}); }), std::vector<verdict>{},
            "the answers to none");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take(store, at(0), {.limit = 3});
    auto expected = look(store).found;
    const std::array tickets{ticket{id_of(5), 1}, ticket{id_of(3), 1}, ticket{id_of(2), 2}, ticket{id_of(4), 0},
                             ticket{id_of(1), 1}};
    const auto answers = transact(store, [&](auto& tx) { return tx.extend(tickets, at(50), duration{100}); });
    using enum verdict;
    t.equal(answers, std::vector{unknown, applied, stale, repeated, applied},
            "the answers, in the order of the tickets");
    for (const std::size_t i : {0U, 2U}) {
        expected[i].lease_until = at(150);
        expected[i].updated_at = at(50);
    }
    t.equal(look(store).found, expected, "the entries after the extends");
}

inline void lease_bounds(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    const auto& limits = t.can().limits;
    const auto before = look(store);
    for (const auto lease : {limits.lease_min - duration{1}, limits.lease_max + duration{1}}) {
        t.throws(error_kind::invalid_argument, "an extend by " + show(lease),
                 [&] { extend(store, ticket, at(30), lease); });
    }
    unchanged(store, before, "an extend that is refused changes nothing");
    t.equal(extend(store, ticket, at(30), limits.lease_max), verdict::applied, "the extend by the longest lease");
    t.equal(get(store, 1).lease_until, std::optional{at(30) + limits.lease_max}, "lease_until");
}

} // namespace extend_checks

inline constexpr std::array extending{
    clause{"EXTEND-01", layer::examples, level::must, needs::nothing,
           "An extend sets lease_until to now + lease, and updated_at; nothing else changes.", extend_checks::fields},
    clause{"EXTEND-02", layer::examples, level::must, needs::nothing,
           "An extend never shortens a lease: it ends at the later of the old end and now + lease.",
           extend_checks::never_shorter},
    clause{"EXTEND-03", layer::examples, level::must, needs::nothing,
           "An extended claim can be taken over from exactly the new end of its lease on.",
           extend_checks::keeps_others_away},
    clause{"EXTEND-04", layer::examples, level::must, needs::nothing,
           "A lease that is over but not taken over can be extended: it runs again from now.",
           extend_checks::revives_a_lapsed_claim},
    clause{"EXTEND-05", layer::examples, level::must, needs::nothing,
           "Once an entry is taken over, the earlier ticket extends nothing.", extend_checks::not_once_taken_over},
    clause{"EXTEND-06", layer::examples, level::must, needs::nothing,
           "A ticket extends as often as one likes, and settles afterwards.", extend_checks::ticket_stays_good},
    clause{"EXTEND-07", layer::examples, level::must, needs::nothing, "An extend keeps the wake mark.",
           extend_checks::keeps_the_wake_mark},
    clause{"EXTEND-08", layer::examples, level::must, needs::nothing,
           "A batch of tickets is answered ticket by ticket, in order, and extends exactly those that are good.",
           extend_checks::batch},
    clause{"EXTEND-09", layer::examples, level::must, needs::nothing,
           "An extend by a lease out of bounds throws invalid_argument and changes nothing.",
           extend_checks::lease_bounds},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/call_log.hpp
// What a store was asked and what it answered, call by call, with what became of each transaction; and the log that
// keeps it. Reads are not kept. `recording.hpp` writes it.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// One call. What does not belong to its operation is empty.
struct call {
    enum class operation : std::uint8_t {
        begin,
        enqueue,
        claim,
        settle,
        extend,
        nudge,
        cancel,
        purge,
        commit,
        roll_back ///< destroyed without a commit
    };
    enum class fate : std::uint8_t { open, committed, rolled_back, in_doubt };

    call::operation what{};
    std::uint64_t transaction = 0; ///< counted from 1
    call::fate became{};           ///< of its transaction, as known when the list was asked for
    time_point now{};

    // Asked.
    std::vector<draft> drafts{};
    claim_request wanted{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{}; ///< extend
    duration lease{};              ///< extend
    vouch::id id{};                ///< nudge, cancel
    std::string error{};           ///< cancel
    purge_request purge{};

    // Answered.
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<vouch::verdict> verdicts{}; ///< extend, nudge, cancel
    std::size_t purged = 0;
    std::optional<error_kind> threw{};
};

[[nodiscard]] constexpr std::string_view name_of(call::operation what) noexcept {
    switch (what) {
    case call::operation::begin: return "begin";
    case call::operation::enqueue: return "enqueue";
    case call::operation::claim: return "claim";
    case call::operation::settle: return "settle";
    case call::operation::extend: return "extend";
    case call::operation::nudge: return "nudge";
    case call::operation::cancel: return "cancel";
    case call::operation::purge: return "purge";
    case call::operation::commit: return "commit";
    case call::operation::roll_back: return "rolled back";
    }
    return "?";
}

/// `2019-12-20 08:15:30.000001`, in UTC.
[[nodiscard]] inline std::string show_date(time_point at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const auto in_day = (at - day).count();
    const auto digits = [](auto number, std::size_t width) {
        auto text = std::to_string(number);
        return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
    };
    return digits(static_cast<int>(date.year()), 4) + '-' + digits(static_cast<unsigned>(date.month()), 2) + '-' +
           digits(static_cast<unsigned>(date.day()), 2) + ' ' + digits(in_day / 3'600'000'000, 2) + ':' +
           digits(in_day / 60'000'000 % 60, 2) + ':' + digits(in_day / 1'000'000 % 60, 2) + '.' +
           digits(in_day % 1'000'000, 6);
}

namespace detail {

struct outcome_in_words {
    std::string operator()(const succeed&) const { return "succeed"; }
    std::string operator()(const retry& o) const { return "retry (" + o.error + ") at " + show_date(o.at); }
    std::string operator()(const bury& o) const { return "bury (" + o.error + ")"; }
    std::string operator()(const release& o) const { return o.at ? "release until " + show_date(*o.at) : "release"; }
    std::string operator()(const advance& o) const { return o.at ? "advance until " + show_date(*o.at) : "advance"; }
};

[[nodiscard]] inline std::string in_words(const draft& d) {
    auto out = show(d.id) + " in " + d.queue;
    const auto add = [&](std::string_view name, const std::string& value) {
        out += value.empty() ? "" : ", " + std::string(name) + " " + value;
    };
    add("key", d.key);
    add("group", d.group);
    add("lane", d.lane);
    add("parent", d.parent.is_nil() ? "" : show(d.parent));
    add("predecessor", d.predecessor.is_nil() ? "" : show(d.predecessor));
    add("due", d.due_at ? show_date(*d.due_at) : "");
    return out;
}

/// `item: answer; item: answer`. A call that threw has fewer answers.
template <class Item, class Answer, class Words>
[[nodiscard]] std::string side_by_side(const std::vector<Item>& items, const std::vector<Answer>& answers,
                                       const Words& words) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        out += (i == 0 ? "" : "; ") + words(items[i]) + (i < answers.size() ? ": " + show(answers[i]) : "");
    }
    return out;
}

[[nodiscard]] inline std::string details_of(const call& c) {
    using kind = call::operation;
    const auto verdict = c.verdicts.empty() ? std::string() : ": " + show(c.verdicts.front());
    switch (c.what) {
    case kind::enqueue: return side_by_side(c.drafts, c.receipts, [](const draft& d) { return in_words(d); });
    case kind::claim: {
        auto out = "up to " + std::to_string(c.wanted.limit) + " of " + c.wanted.queue + " for " + c.wanted.worker +
                   (c.wanted.only.is_nil() ? "" : ", only " + show(c.wanted.only)) + ":";
        for (const auto& e : c.claimed) {
            out += ' ' + show(ticket_of(e));
        }
        return c.claimed.empty() ? out + " nothing" : out;
    }
    case kind::settle:
        return side_by_side(c.settles, c.settlements, [](const vouch::settle& s) {
            return show(s.ticket) + ' ' + visit_outcome(outcome_in_words{}, s.outcome);
        });
    case kind::extend: return side_by_side(c.tickets, c.verdicts, [](const ticket& t) { return show(t); });
    case kind::nudge:
    case kind::cancel: return show(c.id) + verdict;
    case kind::purge: return c.purge.queue + " before " + show_date(c.purge.before) + ": " + std::to_string(c.purged);
    default: return "";
    }
}

} // namespace detail

/// One line: the transaction, the operation, the time it was given, what was asked and answered.
[[nodiscard]] inline std::string to_string(const call& c) {
    auto out = "tx " + std::to_string(c.transaction) + ' ' + std::string(name_of(c.what));
    out += c.now == time_point{} ? "" : " at " + show_date(c.now);
    const auto details = detail::details_of(c);
    out += details.empty() ? "" : ", " + details;
    return c.threw ? out + ", throws " + show(*c.threw) : out;
}

/// The calls in the order in which they were answered. Thread-safe.
class call_log {
  public:
    [[nodiscard]] std::vector<call> all() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// Those that took effect.
    [[nodiscard]] std::vector<call> committed() const {
        auto out = all();
        std::erase_if(out, [](const call& c) { return c.became != call::fate::committed; });
        return out;
    }
    /// All, and the log is empty again.
    [[nodiscard]] std::vector<call> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(calls_, {});
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& c : all()) {
            out += to_string(c) + '\n';
        }
        return out;
    }

    // For what writes it.

    [[nodiscard]] std::uint64_t next_transaction() {
        const std::lock_guard lock(mutex_);
        return ++transactions_;
    }
    void add(call c) {
        const std::lock_guard lock(mutex_);
        calls_.push_back(std::move(c));
    }
    /// What became of a transaction.
    void end(std::uint64_t transaction, call::fate how) {
        const std::lock_guard lock(mutex_);
        for (auto at = calls_.rbegin(); at != calls_.rend(); ++at) {
            if (at->transaction == transaction) {
                at->became = how;
                if (at->what == call::operation::begin) {
                    return;
                }
            }
        }
    }

  private:
    mutable std::mutex mutex_{};
    std::vector<call> calls_{};
    std::uint64_t transactions_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/faulty.hpp
// A store that fails when it is told to: the n-th call, before its effect or after it, once or from then on. Wrapped
// around any store it shows what a program does when the disk is full, the line is cut, or a commit's answer is lost.
//
//   auto plan = std::make_shared<fault_plan>();
//   faulty<memory::store> store(memory::store{}, plan);
//   plan->arm({.call = 3});
//
// Every call counts, reads included. What a fault hits is closed and rolled back, as the contract says. A plan may be
// shared by several stores and threads. A store that cannot be moved goes in erased (`any_store.hpp`).

namespace vouch {
inline namespace v0 {
namespace conformance {

enum class fault_moment : std::uint8_t {
    before, ///< the call does nothing and throws
    after,  ///< the call does its work and throws; a commit lands and is in doubt
};

struct fault {
    std::uint64_t call = 1; ///< counted from the next one, which is 1
    fault_moment moment = fault_moment::before;
    bool persistent = false; ///< every call from then on fails
    error_kind kind = error_kind::io;
    bool in_doubt = false; ///< a commit that fails before its effect does not tell so either
};

/// Which call fails, and how many there were. Thread-safe.
class fault_plan {
  public:
    /// Replaces what was armed. Throws `misuse` for `invalid_argument`, which is no fault.
    void arm(const fault& f) {
        if (f.kind == error_kind::invalid_argument) {
            throw error(error_kind::misuse, "fault_plan: invalid_argument is a refusal, not a fault");
        }
        const std::lock_guard lock(mutex_);
        armed_ = f;
        left_ = f.call;
        hit_ = false;
    }

    /// No further faults. Says whether what was armed has struck.
    bool disarm() {
        const std::lock_guard lock(mutex_);
        armed_.reset();
        return hit_;
    }

    [[nodiscard]] bool has_struck() const {
        const std::lock_guard lock(mutex_);
        return hit_;
    }
    [[nodiscard]] std::uint64_t calls() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// Faults so far, of everything ever armed.
    [[nodiscard]] std::uint64_t faults() const {
        const std::lock_guard lock(mutex_);
        return faults_;
    }

    /// For what carries the plan out: counts a call and says whether it fails.
    [[nodiscard]] std::optional<fault> next() {
        const std::lock_guard lock(mutex_);
        ++calls_;
        if (!armed_ || (left_ > 1 && left_-- > 0)) {
            return std::nullopt;
        }
        const auto due = armed_;
        hit_ = true;
        ++faults_;
        if (!due->persistent) {
            armed_.reset();
        }
        return due;
    }

  private:
    mutable std::mutex mutex_{};
    std::optional<fault> armed_{};
    std::uint64_t left_ = 0; ///< calls until the one that fails, itself included
    std::uint64_t calls_ = 0;
    std::uint64_t faults_ = 0;
    bool hit_ = false;
};

namespace detail {

[[noreturn]] inline void strike(const fault& f, bool in_doubt) {
    throw error(f.kind, "a fault that was asked for", {.in_doubt = in_doubt});
}

/// Calls `f` and fails before or after it as planned.
template <class Call>
std::invoke_result_t<Call&> strike_around(fault_plan& plan, Call&& call) {
    const auto due = plan.next();
    if (due && due->moment == fault_moment::before) {
        strike(*due, false);
    }
    auto answer = call();
    if (due) {
        strike(*due, false);
    }
    return answer;
}

} // namespace detail

template <class Transaction>
class faulty_transaction {
  public:
    faulty_transaction(Transaction tx, std::shared_ptr<fault_plan> plan) : tx_(std::move(tx)), plan_(std::move(plan)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return call([&](auto& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return call([&](auto& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return call([&](auto& tx) { return tx.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return call([&](auto& tx) { return tx.next_due(queue); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return call([&](auto& tx) { return tx.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return call([&](auto& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return call([&](auto& tx) { return tx.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return call([&](auto& tx) { return tx.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return call([&](auto& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return call([&](auto& tx) { return tx.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        return call([&](auto& tx) { return tx.purge(request); });
    }

    void commit() {
        const auto due = plan_->next();
        auto& tx = open();
        if (due && due->moment == fault_moment::before) {
            tx_.reset();
            detail::strike(*due, due->in_doubt);
        }
        tx.commit();
        if (due) {
            tx_.reset();
            detail::strike(*due, true);
        }
    }

  private:
    [[nodiscard]] Transaction& open() const {
        if (!tx_) {
            throw error(error_kind::misuse, "transaction: it is closed");
        }
        return *tx_;
    }

    template <class Call>
    std::invoke_result_t<Call&, Transaction&> call(Call&& f) const {
        auto& tx = open();
        const auto due = plan_->next();
        if (due && due->moment == fault_moment::before) {
            tx_.reset();
            detail::strike(*due, false);
        }
        auto answer = f(tx);
        if (due) {
            tx_.reset();
            detail::strike(*due, false);
        }
        return answer;
    }

    mutable std::optional<Transaction> tx_; ///< empty: closed by a fault, which may strike a read too
    std::shared_ptr<fault_plan> plan_;
};

template <class Store>
class faulty {
    static_assert(explain_store<Store>());

  public:
    using transaction = faulty_transaction<typename Store::transaction>;
    static constexpr int contract_level = Store::contract_level;

    faulty(Store store, std::shared_ptr<fault_plan> plan) : store_(std::move(store)), plan_(std::move(plan)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return detail::strike_around(*plan_, [&] { return store_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return detail::strike_around(*plan_, [&] { return store_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return detail::strike_around(*plan_, [&] { return store_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return detail::strike_around(*plan_, [&] { return store_.next_due(queue); });
    }
    [[nodiscard]] transaction begin() {
        return detail::strike_around(*plan_, [&] { return transaction(store_.begin(), plan_); });
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return store_.capabilities(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Store> {
        return store_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Store> {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The store without its faults.
    [[nodiscard]] Store& plain() noexcept { return store_; }
    [[nodiscard]] const Store& plain() const noexcept { return store_; }
    [[nodiscard]] fault_plan& plan() const noexcept { return *plan_; }

  private:
    Store store_;
    std::shared_ptr<fault_plan> plan_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/fault_scenario.hpp
// A short life of a store in which every operation occurs, to be repeated with a fault at each of its calls. Its
// tickets are known beforehand, so that it can go on after a claim whose commit was in doubt.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// One transaction of the scenario. Repeated when it has landed already it changes nothing, unless it claims.
struct fault_step {
    std::string_view name;
    bool claims;
    void (*run)(any_store&, const capabilities&);
};

namespace detail {

[[nodiscard]] inline std::vector<draft> scenario_drafts(const capabilities& can) {
    const std::string group = can.groups ? "g" : "";
    const std::string lane = can.lanes ? "a" : "";
    return {draft_of(1, {.key = "k", .group = group}),
            draft_of(2, {.group = group}),
            draft_of(3, {.lane = lane}),
            draft_of(4, {.lane = lane}),
            draft_of(5, {.payload = "five", .due_at = at(50)}),
            draft_of(6, {.parent = id_of(5)})};
}

[[nodiscard]] inline vouch::settle settle_of(std::uint64_t n, std::uint64_t epoch, outcome o) {
    return {{id_of(n), epoch}, std::move(o)};
}

template <std::size_t N>
void settle_all(any_store& store, const std::array<vouch::settle, N>& settles, time_point now) {
    transact(store, [&](auto& tx) { std::ignore = tx.settle(settles, now); });
}

} // namespace detail

inline constexpr std::array fault_scenario{
    fault_step{"enqueue six", false,
               [](any_store& s, const capabilities& can) {
                   transact(s, [&](auto& tx) { tx.enqueue(detail::scenario_drafts(can), at(0)); });
               }},
    fault_step{"claim three", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(1), {.limit = 3}); }},
    fault_step{"extend two", false,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       const std::array tickets{ticket{id_of(1), 1}, ticket{id_of(2), 1}};
                       std::ignore = tx.extend(tickets, at(2), duration{500});
                   });
               }},
    fault_step{"nudge one that waits", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(3)); }},
    fault_step{"emit, settle three and claim the next in one", true,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       const std::array drafts{draft_of(7, {.queue = "r"})};
                       tx.enqueue(drafts, at(4));
                       const std::array settles{detail::settle_of(1, 1, retry{"e", at(10)}),
                                                detail::settle_of(2, 1, succeed{"r"}),
                                                detail::settle_of(3, 1, bury{"b", "reply"})};
                       std::ignore = tx.settle(settles, at(4));
                       std::ignore = tx.claim(request(at(4), {.limit = 2}));
                   });
               }},
    fault_step{"release one, advance another", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(
                       s,
                       std::array{detail::settle_of(4, 1, release{at(20)}), detail::settle_of(6, 1, advance{"p", {}})},
                       at(5));
               }},
    fault_step{"claim two", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(6), {.limit = 2}); }},
    fault_step{"nudge one that is claimed", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(7)); }},
    fault_step{"retry the one that was nudged", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(5, 1, retry{"late", at(1000)})}, at(8));
               }},
    fault_step{"cancel", false, [](any_store& s, const capabilities&) { std::ignore = cancel(s, id_of(4), at(9)); }},
    fault_step{"requeue", false,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       std::ignore = vouch::requeue(tx, {.dead = id_of(3), .successor = id_of(8), .now = at(10)});
                   });
               }},
    fault_step{"claim the rest", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(30), {.limit = 10}); }},
    fault_step{"complete a group", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(
                       s, std::array{detail::settle_of(1, 2, succeed{"x"}), detail::settle_of(8, 1, succeed{"y"})},
                       at(31));
               }},
    fault_step{"purge", false,
               [](any_store& s, const capabilities&) { purge(s, {.queue = "q", .before = at(40), .limit = 100}); }},
    fault_step{"end a child", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(6, 2, succeed{})}, at(41));
               }},
    fault_step{"bury the parent", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(5, 2, bury{"end", {}})}, at(42));
               }},
};

/// What is seen, with sequences by rank: a transaction that was rolled back may leave a gap.
[[nodiscard]] inline sight look_ranked(const any_store& store) {
    auto out = look(store);
    std::vector<std::uint64_t> sequences;
    for (const auto& e : out.found) {
        sequences.push_back(e.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    const auto rank = [&](entry& e) {
        const auto place = std::lower_bound(sequences.begin(), sequences.end(), e.sequence) - sequences.begin();
        e.sequence = static_cast<std::uint64_t>(place) + 1;
    };
    std::for_each(out.found.begin(), out.found.end(), rank);
    for (auto& list : out.listed) {
        std::for_each(list.begin(), list.end(), rank);
    }
    return out;
}

/// What is seen before the first step and after each, when nothing fails.
[[nodiscard]] inline std::vector<sight> scenario_sights(trial& t) {
    auto store = t.open(t.fresh_place());
    std::vector<sight> out{look_ranked(store)};
    for (const auto& step : fault_scenario) {
        step.run(store, t.can());
        out.push_back(look_ranked(store));
        t.expect(out.back() != out[out.size() - 2], "a step of the scenario (" + std::string(step.name) + ") does it");
    }
    return out;
}

/// What a scenario is played with: `begin` is called before each step, `struck` when a step has failed or was the last,
/// says whether a fault was due, and lets nothing else fail until the next `begin`.
struct fault_script {
    std::function<void()> begin;
    std::function<bool()> struck;
};

/// Plays the scenario through `shaky`, looking through `plain`: a step that fails is wholly out, or, if its commit was
/// in doubt, wholly in; repeated it does all, and nothing twice.
inline void play_scenario(trial& t, const std::vector<sight>& sights, any_store& plain, any_store& shaky,
                          const fault_script& faults) {
    const auto same = [&](std::size_t i, const sight& wanted, std::string_view what) {
        if (const auto now = look_ranked(plain); now != wanted) {
            auto [a, b] = show_difference(now, wanted);
            t.fail(std::string(fault_scenario[i].name) + ": " + std::string(what), std::move(a), std::move(b));
        }
    };
    for (std::size_t i = 0; i < fault_scenario.size(); ++i) {
        const auto& step = fault_scenario[i];
        faults.begin();
        bool in_doubt = false; // once a commit was, until the step is known to have landed
        for (bool is_done = false; !is_done;) {
            try {
                step.run(shaky, t.can());
                is_done = true;
            } catch (const error& e) {
                in_doubt = in_doubt || e.is_in_doubt();
                if (!faults.struck()) {
                    throw;
                }
                const auto now = look_ranked(plain);
                const bool has_landed = now == sights[i + 1];
                t.expect(!has_landed || in_doubt,
                         std::string(step.name) + ": an error that is not in doubt means that nothing happened");
                same(i, has_landed ? sights[i + 1] : sights[i], "half done after a fault");
                is_done = has_landed && step.claims; // what it claimed is known here, and nowhere else
            }
        }
    }
    faults.struck(); // one that no step has noticed
    same(fault_scenario.size() - 1, sights.back(), "what is stored after all was repeated");
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/recording.hpp
// A store that keeps a list of what it was asked and what it answered, to print when something went wrong, or to hold
// against rules afterwards.
//
//   auto calls = std::make_shared<call_log>();
//   recording<memory::store> store(memory::store{}, calls);
//   for (const auto& call : calls->all()) { std::puts(to_string(call).c_str()); }
//
// A log may be shared by several stores and threads. A store that cannot be moved goes in erased (`any_store.hpp`).

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// A transaction that is open: the last one to hold this writes down how it ended.
class open_record {
  public:
    open_record(std::shared_ptr<call_log> log, std::uint64_t number) : log_(std::move(log)), number_(number) {}
    open_record(open_record&&) noexcept = default;
    open_record& operator=(open_record&& other) noexcept {
        abandon();
        log_ = std::move(other.log_);
        number_ = other.number_;
        return *this;
    }
    ~open_record() { abandon(); }

    /// Carries `what` out and writes it down with its answer, which `run` puts into the call.
    template <class Run>
    void write(call c, const Run& run) {
        c.transaction = number_;
        try {
            run(c);
        } catch (const error& e) {
            c.threw = e.kind();
            const bool is_commit = c.what == call::operation::commit;
            add(std::move(c));
            if (e.kind() != error_kind::invalid_argument || is_commit) {
                end(e.is_in_doubt() ? call::fate::in_doubt : call::fate::rolled_back);
            }
            throw;
        }
        const bool is_commit = c.what == call::operation::commit;
        add(std::move(c));
        if (is_commit) {
            end(call::fate::committed);
        }
    }

  private:
    void add(call c) const {
        if (log_) {
            log_->add(std::move(c));
        }
    }
    void end(call::fate how) {
        if (const auto log = std::exchange(log_, nullptr)) {
            log->end(number_, how);
        }
    }
    void abandon() noexcept {
        if (log_) {
            log_->add({.what = call::operation::roll_back, .transaction = number_});
            end(call::fate::rolled_back);
        }
    }

    std::shared_ptr<call_log> log_; ///< empty: ended, or moved from
    std::uint64_t number_;
};

} // namespace detail

template <class Transaction>
class recording_transaction {
  public:
    recording_transaction(Transaction tx, std::shared_ptr<call_log> log, std::uint64_t number)
        : tx_(std::move(tx)), record_(std::move(log), number) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return tx_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return tx_.next_due(queue); }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> answer;
        record_.write({.what = call::operation::enqueue, .now = now, .drafts = {drafts.begin(), drafts.end()}},
                      [&](call& c) { c.receipts = answer = tx_.enqueue(drafts, now); });
        return answer;
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<entry> answer;
        record_.write({.what = call::operation::claim, .now = request.now, .wanted = request},
                      [&](call& c) { c.claimed = answer = tx_.claim(request); });
        return answer;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answer;
        record_.write({.what = call::operation::settle, .now = now, .settles = {settles.begin(), settles.end()}},
                      [&](call& c) { c.settlements = answer = tx_.settle(settles, now); });
        return answer;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> answer;
        record_.write(
            {.what = call::operation::extend, .now = now, .tickets = {tickets.begin(), tickets.end()}, .lease = lease},
            [&](call& c) { c.verdicts = answer = tx_.extend(tickets, now, lease); });
        return answer;
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        verdict answer{};
        record_.write({.what = call::operation::nudge, .now = now, .id = wanted},
                      [&](call& c) { c.verdicts = {answer = tx_.nudge(wanted, now)}; });
        return answer;
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        verdict answer{};
        record_.write({.what = call::operation::cancel, .now = now, .id = wanted, .error = std::string(error)},
                      [&](call& c) { c.verdicts = {answer = tx_.cancel(wanted, error, now)}; });
        return answer;
    }
    std::size_t purge(const purge_request& request) {
        std::size_t answer = 0;
        record_.write({.what = call::operation::purge, .purge = request},
                      [&](call& c) { c.purged = answer = tx_.purge(request); });
        return answer;
    }
    void commit() {
        record_.write({.what = call::operation::commit}, [&](call&) { tx_.commit(); });
    }

  private:
    Transaction tx_;
    detail::open_record record_; // last: written down before it is rolled back
};

template <class Store>
class recording {
    static_assert(explain_store<Store>());

  public:
    using transaction = recording_transaction<typename Store::transaction>;
    static constexpr int contract_level = Store::contract_level;

    recording(Store store, std::shared_ptr<call_log> log) : store_(std::move(store)), log_(std::move(log)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return store_.next_due(queue); }
    [[nodiscard]] transaction begin() {
        auto tx = store_.begin();
        const auto number = log_->next_transaction();
        log_->add({.what = call::operation::begin, .transaction = number});
        return transaction(std::move(tx), log_, number);
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return store_.capabilities(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Store> {
        return store_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Store> {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The store without its log.
    [[nodiscard]] Store& plain() noexcept { return store_; }
    [[nodiscard]] const Store& plain() const noexcept { return store_; }
    [[nodiscard]] call_log& log() const noexcept { return *log_; }

  private:
    Store store_;
    std::shared_ptr<call_log> log_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/faults.hpp
// Layer 6: faults. The n-th call fails, for every n until none is left to fail: before its effect or after it, once or
// for a while. Whatever fails, a transaction is wholly in or wholly out, and repeating it makes it once.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fault_checks {

using moment = fault_moment;

/// A store whose calls fail by plan, and the same without.
struct shaky_store {
    explicit shaky_store(trial& t)
        : plain(t.open(t.fresh_place())),
          shaky(erase([&] { return faulty<recording<any_store>>(recording<any_store>(plain, calls), plan); })) {}

    /// Runs `play`; if it fails, the story is what this store was called.
    template <class Play>
    void tell(const fault& f, const Play& play) const {
        try {
            play();
        } catch (failure& told) {
            told.story = std::string(f.persistent ? "every call from " : "call ") + std::to_string(f.call) +
                         (f.persistent ? " on" : "") + " throws " + show(f.kind) +
                         (f.moment == moment::before ? " before its effect" : " after its effect") +
                         (f.in_doubt ? ", a commit in doubt" : "") + "; what reached the store:\n" + calls->text();
            throw;
        }
    }

    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    any_store plain;
    any_store shaky;
};

/// Plays the scenario with the fault at the first call of every step, then at the second, and so on until no step has
/// so many. A persistent one lasts for `tries_failing` tries.
inline void fail_every_call(trial& t, fault f, std::size_t tries_failing = 1) {
    const auto sights = scenario_sights(t);
    for (f.call = 1;; ++f.call) {
        shaky_store s(t);
        std::size_t failed = 0;
        const auto begin = [&] {
            failed = 0;
            s.plan->arm(f);
        };
        const auto struck = [&] {
            const bool due = s.plan->has_struck() && f.kind != error_kind::conflict;
            if (++failed >= tries_failing) {
                s.plan->disarm();
            }
            return due;
        };
        s.tell(f, [&] { play_scenario(t, sights, s.plain, s.shaky, {begin, struck}); });
        t.tally().faults += s.plan->faults();
        if (s.plan->faults() == 0) {
            return;
        }
    }
}

inline void before(trial& t) {
    fail_every_call(t, {});
    fail_every_call(t, {.kind = error_kind::full});
}

inline void after(trial& t) {
    fail_every_call(t, {.moment = moment::after});
    fail_every_call(t, {.in_doubt = true});
}

inline void persistently(trial& t) {
    fail_every_call(t, {.persistent = true}, 4);
    fail_every_call(t, {.moment = moment::after, .persistent = true}, 4);
}

/// No step fails: `transact` repeats it.
inline void conflicts(trial& t) {
    fail_every_call(t, {.kind = error_kind::conflict});
    shaky_store s(t);
    s.plan->arm({.persistent = true, .kind = error_kind::conflict});
    t.throws(error_kind::conflict, "a conflict that never ends", [&] { put(s.shaky, draft_of(1)); });
    s.plan->disarm();
    t.tally().faults += s.plan->faults();
    t.expect(!s.plain.find(id_of(1)), "nothing is left of what was given up");
}

/// Stops in the middle of everything a transaction can do.
inline void throwing_work(trial& t) {
    struct enough {};
    auto store = t.open();
    const std::string group = t.can().groups ? "g" : "";
    const std::string lane = t.can().lanes ? "a" : "";
    for (const auto& d :
         {draft_of(1, {.key = "k", .group = group}), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane}),
          draft_of(4, {.parent = id_of(5)}), draft_of(5, {.due_at = at(900)}), draft_of(6, {.due_at = at(900)})}) {
        put(store, d);
    }
    put_dead(store, draft_of(7));
    put(store, draft_of(8, {.result = "born done"}));
    std::ignore = take(store, at(1), {.limit = 3}); // 1, 2 and 4
    const auto before = look(store);
    constexpr std::size_t operations = 9;
    for (std::size_t last = 1; last <= operations; ++last) {
        std::size_t done = 0;
        const auto step = [&] {
            if (++done > last) {
                throw enough{};
            }
        };
        try {
            transact(store, [&](auto& tx) {
                step();
                const std::array drafts{draft_of(9, {.key = "l", .group = group, .lane = lane})};
                tx.enqueue(drafts, at(2));
                step();
                std::ignore = settle_in(tx, {id_of(2), 1}, succeed{}, at(2));
                step();
                std::ignore = settle_in(tx, {id_of(4), 1}, bury{"e", {}}, at(2));
                step();
                std::ignore = tx.claim(request(at(2)));
                step();
                const std::array tickets{ticket{id_of(1), 1}};
                std::ignore = tx.extend(tickets, at(2), duration{900});
                step();
                std::ignore = tx.nudge(id_of(1), at(2));
                step();
                std::ignore = tx.cancel(id_of(6), "e", at(2));
                step();
                std::ignore = vouch::requeue(tx, {.dead = id_of(7), .successor = id_of(10), .now = at(2)});
                step();
                tx.purge({.queue = "q", .before = at(1), .limit = 10});
                throw enough{};
            });
        } catch (const enough&) {
            t.tally().faults += 1;
        }
        unchanged(store, before, "after an exception behind " + std::to_string(last) + " operations");
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}, at(3)).verdict, verdict::applied, "the store still works");
    t.equal(put(store, draft_of(9, {.key = "l"})).what == receipt::kind::inserted, true, "its keys are free");
}

inline void enqueue_in_doubt(trial& t) {
    for (const bool lands : {true, false}) {
        shaky_store s(t);
        const std::array drafts{draft_of(1, {.key = "k"}), draft_of(2), draft_of(3, {.result = "done"})};
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true}); // the commit
        const auto receipts = enqueue(s.shaky, drafts, at(0));
        t.tally().faults += s.plan->faults();
        t.expect(s.plan->has_struck(), "the commit was in doubt");
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            t.equal(receipts[i], receipt{receipt::kind::inserted, drafts[i].id}, "the receipt after a commit in doubt");
        }
        t.equal(numbers(s.plain.list(query::all("q"))), list_of{1, 2, 3}, "each is stored once");
        const auto before = look(s.plain);
        t.equal(put(s.plain, drafts[0], at(7)), receipt{receipt::kind::duplicate, id_of(1)}, "once more");
        unchanged(s.plain, before, "after the same was enqueued again");
    }
}

inline void settle_in_doubt(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(50)}, bury{"b", "reply"}, release{at(60)},
                                          advance{"p", at(70)}};
    for (const auto& o : outcomes) {
        for (const bool lands : {true, false}) {
            shaky_store s(t);
            put(s.plain, draft_of(1));
            const auto mine = take_one(s.plain, at(0));
            s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
            const auto e = t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, o, at(1)); });
            t.tally().faults += s.plan->faults();
            t.expect(e.is_in_doubt(), "it says that it is in doubt");
            t.equal(get(s.plain, 1).state == state::claimed, !lands, "the entry is still claimed");
            t.equal(settle(s.plain, mine, o, at(2)).verdict, lands ? verdict::repeated : verdict::applied,
                    "the settle once more, under the same ticket");
            t.equal(get(s.plain, 1).updated_at, at(lands ? 1 : 2), "it has landed once");
            const auto before = look(s.plain);
            t.equal(settle(s.plain, mine, o, at(3)).verdict, verdict::repeated, "and again");
            unchanged(s.plain, before, "after a used ticket");
        }
    }
    shaky_store s(t);
    put(s.plain, draft_of(1));
    const auto mine = take_one(s.plain, at(0));
    s.plan->arm({.call = 3, .in_doubt = true});
    t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, succeed{}, at(1)); });
    t.tally().faults += s.plan->faults();
    std::ignore = take_one(s.plain, at(100));
    t.equal(settle(s.plain, mine, succeed{}, at(101)).verdict, verdict::stale, "repeated after somebody else claimed");
    t.equal(get(s.plain, 1).state, state::claimed, "the entry is the other's");
}

inline void claim_in_doubt(trial& t) {
    for (const bool lands : {true, false}) {
        shaky_store s(t);
        put(s.plain, draft_of(1));
        put(s.plain, draft_of(2));
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
        t.throws(error_kind::io, "a commit in doubt", [&] { std::ignore = take(s.shaky, at(0)); });
        t.tally().faults += s.plan->faults();
        t.equal(take(s.plain, at(99)).size(), lands ? 0U : 2U, "claimed before the lease in doubt would be over");
        if (lands) {
            const auto healed = take(s.plain, at(100));
            t.equal(numbers(healed), list_of{1, 2}, "claimed when the lease is over");
            t.equal(healed.front().epoch, 2U, "the epoch of the claim after the one in doubt");
            const auto before = look(s.plain);
            t.equal(settle(s.plain, {id_of(1), 1}, succeed{}, at(101)).verdict, verdict::stale, "the lost ticket");
            unchanged(s.plain, before, "after a stale ticket");
        }
    }
}

/// The same, with faults inside of what the store does.
inline void inside(trial& t) {
    const auto& fail_at = t.hooks().fail_at;
    if (!fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    const auto sights = scenario_sights(t);
    struct off {
        const std::function<bool(std::size_t)>& hook;
        ~off() { hook(0); }
    } const at_the_end{fail_at};
    for (std::size_t n = 1;; ++n) {
        auto store = t.open(t.fresh_place());
        bool has_struck = false;
        fail_at(n);
        const auto struck = [&] {
            const bool due = fail_at(0);
            has_struck = has_struck || due;
            return due;
        };
        play_scenario(t, sights, store, store, {[] {}, struck});
        t.tally().faults += has_struck ? 1U : 0U;
        if (!has_struck) {
            return;
        }
    }
}

/// Every use there is of a transaction.
inline constexpr std::array<void (*)(any_transaction&), 12> uses{
    [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); },
    [](any_transaction& tx) { std::ignore = tx.list(query::all("q")); },
    [](any_transaction& tx) { std::ignore = tx.counts("q"); },
    [](any_transaction& tx) { std::ignore = tx.next_due("q"); },
    [](any_transaction& tx) { tx.enqueue(std::array{draft_of(9)}, at(1)); },
    [](any_transaction& tx) { std::ignore = tx.claim(request(at(1))); },
    [](any_transaction& tx) {
        std::ignore = settle_in(tx, {id_of(1), 1}, succeed{}, at(1));
    },
    [](any_transaction& tx) {
        std::ignore = tx.extend(std::array{ticket{id_of(1), 1}}, at(1), duration{1});
    },
    [](any_transaction& tx) { std::ignore = tx.nudge(id_of(2), at(1)); },
    [](any_transaction& tx) { std::ignore = tx.cancel(id_of(2), "e", at(1)); },
    [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(1)}); },
    [](any_transaction& tx) { tx.commit(); },
};

/// Lets the use fail inside the store, in a transaction that has written before; false if no step is left to fail.
inline bool fails_and_closes(trial& t, const std::function<bool(std::size_t)>& fail_at, void (*use)(any_transaction&),
                             std::size_t step) {
    auto store = t.open(t.fresh_place());
    put(store, draft_of(1));
    put(store, draft_of(2, {.due_at = at(50)}));
    std::ignore = take(store, at(0));
    const auto before = look(store);
    auto tx = store.begin();
    tx.enqueue(std::array{draft_of(8)}, at(1));
    bool has_thrown = false;
    fail_at(step);
    try {
        use(tx);
    } catch (const error& e) {
        has_thrown = e.kind() != error_kind::invalid_argument && !e.is_in_doubt();
    }
    const bool has_struck = fail_at(0);
    t.tally().faults += has_struck ? 1U : 0U;
    if (has_struck && has_thrown) {
        for (const auto other : uses) {
            t.throws(error_kind::misuse, "the use of a transaction after an error", [&] { other(tx); });
        }
        unchanged(store, before, "after an error and the use of a closed transaction");
    }
    return has_struck;
}

inline void closed_after_errors(trial& t) {
    const auto& fail_at = t.hooks().fail_at;
    if (!fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    for (const auto use : uses) {
        for (std::size_t step = 1; fails_and_closes(t, fail_at, use, step); ++step) {
        }
    }
}

} // namespace fault_checks

inline constexpr std::array faults{
    clause{"FAULT-01", layer::faults, level::must, needs::nothing,
           "Whichever call fails before its effect, nothing of its transaction is left; repeated, it does all.",
           fault_checks::before},
    clause{"FAULT-02", layer::faults, level::must, needs::nothing,
           "Whichever call fails after its effect, its transaction is wholly out, or wholly in if a commit was in "
           "doubt; repeated, it does nothing twice.",
           fault_checks::after},
    clause{"FAULT-03", layer::faults, level::must, needs::nothing,
           "A store that fails for a while, from whichever call on, keeps what was committed and then goes on.",
           fault_checks::persistently},
    clause{"FAULT-04", layer::faults, level::must, needs::nothing,
           "A conflict at whichever call leaves nothing, and the transaction repeated from begin gets through.",
           fault_checks::conflicts},
    clause{"FAULT-05", layer::faults, level::must, needs::nothing,
           "An exception thrown in the middle of a transaction leaves nothing of it, dedup keys included.",
           fault_checks::throwing_work},
    clause{"FAULT-06", layer::faults, level::must, needs::nothing,
           "Enqueues whose commit was in doubt, repeated with the same ids, are stored once.",
           fault_checks::enqueue_in_doubt},
    clause{"FAULT-07", layer::faults, level::must, needs::nothing,
           "Settles whose commit was in doubt, repeated under the same tickets, land once.",
           fault_checks::settle_in_doubt},
    clause{"FAULT-08", layer::faults, level::must, needs::nothing,
           "Claims whose commit was in doubt are healed by the lease, and by nothing before it is over.",
           fault_checks::claim_in_doubt},
    clause{"FAULT-09", layer::faults, level::may, needs::nothing,
           "Whichever step inside the store fails, a transaction is wholly in or wholly out.", fault_checks::inside},
    clause{
        "FAULT-10", layer::faults, level::may, needs::nothing,
        "After any error but invalid_argument a transaction is closed: its use is misuse, and nothing of it is left.",
        fault_checks::closed_after_errors},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/fidelity.hpp
// Fidelity: what was given comes back, complete to the byte, the bit and the microsecond.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fidelity_checks {

using namespace enqueue_checks;

/// A draft with something of its own in every field the store supports.
[[nodiscard]] inline draft full(std::uint64_t n, const capabilities& can) {
    return draft_of(n, {.topic = "orders.placed",
                        .payload = "the payload",
                        .key = "the key",
                        .group = can.groups ? "the group" : "",
                        .lane = can.lanes ? "the lane" : "",
                        .parent = id_of(17),
                        .due_at = at(3),
                        .expires_at = at(1003),
                        .attempts_max = 7,
                        .trail = {id_of(18), id_of(19)},
                        .headers = {{"name", "value"}},
                        .progress = "the progress"});
}

/// Every byte there is, with a NUL first, last and in between.
[[nodiscard]] inline std::string all_bytes() {
    std::string out;
    for (int c = 0; c < 256; ++c) {
        out.push_back(static_cast<char>(c));
    }
    return out + std::string("\0\xff\0", 3);
}

/// Contents that are cut, converted or mistaken for none by a careless store.
[[nodiscard]] inline std::vector<std::string> contents() {
    using namespace std::string_literals;
    return {""s,         "\0"s,   "\0\0"s,     "a\0b"s,         "a\0"s,      " "s,     " a "s,  "\n"s,
            "a\r\nb"s,   "0"s,    "007"s,      "1e3"s,          "NULL"s,     "'"s,     "''"s,   "%s{}\\n\\0"s,
            "\xff\xfe"s, "\xc3"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xc3\xa9"s, "x'00'"s, "\x1a"s, all_bytes()};
}

/// That the entry is found, listed and claimed as drafted.
inline void comes_back(trial& t, any_store& store, const draft& d) {
    t.equal(put(store, d), inserted(d.id.low), "enqueued");
    stored_as_drafted(store, d, at(0), "found as drafted");
    auto q = query::all(d.queue);
    q.payloads = true;
    const auto listed = store.list(q);
    t.expect(!listed.empty(), "listed in its queue");
    t.equal(std::optional{listed.back()}, store.find(d.id), "listed as found");
    if (!d.result) {
        const auto due = std::max(at(0), d.due_at.value_or(at(0)));
        const auto claimed = take(store, due, {.queue = d.queue, .lease = duration{1}, .only = d.id});
        t.equal(claimed.size(), 1, "claimed");
        t.equal(std::optional{claimed.front()}, store.find(d.id), "claimed as found, payload included");
        t.equal(claimed.front().payload, d.payload, "the payload that is claimed");
    }
}

inline void every_field(trial& t) {
    auto store = t.open();
    const auto d = full(1, t.can());
    comes_back(t, store, d);
    put_dead(store, draft_of(2));
    put(store, draft_of(3, {.predecessor = id_of(2)}));
    t.equal(get(store, 3).predecessor, id_of(2), "the predecessor");
}

inline void survives_life(trial& t) {
    auto store = t.open();
    const auto d = full(1, t.can());
    put(store, d);
    auto expected = get(store, 1);
    settle(store, take_one(store, at(3)), retry{"e", at(4)}, at(3));
    settle(store, take_one(store, at(4)), advance{"next", at(5)}, at(4));
    settle(store, take_one(store, at(5)), bury{"f", "reply"}, at(5));
    const auto ended = get(store, 1);
    static_cast<life&>(expected) = ended;
    t.equal(ended, expected, "what the draft brought, after a retry, an advance and a burial");
}

inline void survives_reopen(trial& t) {
    std::vector<std::optional<entry>> before;
    {
        auto store = t.open();
        put(store, full(1, t.can()));
        put(store, draft_of(2, {.payload = all_bytes(), .result = all_bytes()}), at(1));
        t.equal(take(store, at(3)).size(), 1, "claimed");
        t.equal(take(store, at(103)).size(), 1, "taken over");
        nudge(store, id_of(1), at(104));
        before = {store.find(id_of(1)), store.find(id_of(2))};
    }
    const auto again = t.open();
    t.equal(again.find(id_of(1)), before[0], "a claimed entry with every field set, after a reopen");
    t.equal(again.find(id_of(2)), before[1], "a succeeded entry, after a reopen");
}

inline void any_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto& content : contents()) {
        n += 2;
        comes_back(t, store, draft_of(n, {.payload = content, .headers = {{"n", content}}, .progress = content}));
        comes_back(t, store, draft_of(n + 1, {.result = content}));
    }
}

inline void any_bytes_settled(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "before"}));
    for (const auto& content : contents()) {
        settle(store, take_one(store, at(0)), advance{content, at(0)});
        t.equal(get(store, 1).progress, content, "the progress after an advance");
    }
    std::uint64_t n = 1;
    for (const auto& content : contents()) {
        n += 2;
        put_as(store, draft_of(n), state::claimed);
        settle(store, {id_of(n), 1}, succeed{content});
        t.equal(get(store, n).result, content, "the result of a success");
        put_as(store, draft_of(n + 1), state::claimed);
        settle(store, {id_of(n + 1), 1}, bury{"e", content});
        t.equal(get(store, n + 1).result, content, "the result of a burial");
    }
}

inline void none_is_not_empty(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {1U, 2U, 3U}) {
        put_as(store, draft_of(n), state::claimed);
    }
    settle(store, {id_of(1), 1}, bury{"e", {}});
    settle(store, {id_of(2), 1}, bury{"e", ""});
    settle(store, {id_of(3), 1}, succeed{""});
    t.equal(get(store, 1).result, std::optional<std::string>{}, "the result of a burial without one");
    t.equal(get(store, 2).result, "", "the result of a burial with an empty one");
    t.equal(get(store, 3).result, "", "the result of a success with an empty one");
    comes_back(t, store, draft_of(4, {.expires_at = time_point{}}));
    comes_back(t, store, draft_of(5));
}

inline void large(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::size_t size : {255U, 256U, 4096U, 65535U, 65536U, 65537U, 1024U * 1024U}) {
        n += 2;
        const auto content = pattern(size);
        comes_back(t, store, draft_of(n, {.payload = content, .progress = content}));
        settle(store, {id_of(n), 1}, succeed{content});
        t.equal(get(store, n).result, content, "a large result");
        put_as(store, draft_of(n + 1, {.result = content}), state::pending);
        t.equal(get(store, n + 1).result, content, "a large result of a draft");
    }
}

inline void headers_in_order(trial& t) {
    auto store = t.open();
    comes_back(t, store, draft_of(1, {.headers = {{"b", "2"}, {"a", ""}, {"b", "1"}, {"B", "2"}, {"b", "2"}}}));
    header_list most;
    for (std::size_t i = 0; i < t.can().limits.headers_max; ++i) {
        most.emplace_back("name " + std::to_string(i * 7 % 10), pattern(i * 64));
    }
    comes_back(t, store, draft_of(2, {.headers = most}));
}

inline void trail_in_order(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    comes_back(t, store, draft_of(1, {.trail = {id{top, top}, id_of(1), id_of(1), id{}, id{0, 1}, id{1, 0}}}));
    id_list most;
    for (std::uint64_t i = 0; i < t.can().limits.trail_max; ++i) {
        most.push_back(id{top - i, i << 60U});
    }
    comes_back(t, store, draft_of(2, {.trail = most}));
}

inline void ids_to_the_bit(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    const std::vector<id> ids{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {top, 0}, {0, top}, {top, top}, {0x8000000000000000U, 0}};
    for (const auto& one : ids) {
        auto d = draft_of(1, {.parent = one});
        d.id = one;
        t.equal(put(store, d), receipt{receipt::kind::inserted, one}, "an id that is like others but not the same");
    }
    for (const auto& one : ids) {
        t.equal(store.find(one).value_or(entry{}).id, one, "found by its id");
        t.equal(store.list(query::children(one)).size(), 1, "found by its parent");
        t.equal(take_one(store, at(0), {.only = one}), ticket{one, 1}, "claimed by its id");
    }
}

inline void names_to_the_byte(trial& t) {
    auto store = t.open();
    const auto most = t.can().limits.name_max;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        std::string name = "Gr\xc3\xb6\xc3\x9f"
                           "e \xff\xfe\x80";
        name.resize(most - 1, '\xe9');
        name += static_cast<char>('a' + n);
        auto d = draft_of(n, {.queue = name, .topic = name, .key = name, .headers = {{name, name}}});
        (t.can().groups ? d.group : d.topic) = name;
        (t.can().lanes ? d.lane : d.topic) = name;
        comes_back(t, store, d);
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{n}, "listed by a name as long as there may be");
        t.equal(take_one(store, at(1), {.queue = name, .worker = name}), ticket{d.id, 2}, "claimed from its queue");
        t.equal(get(store, n).worker, name, "the name of the worker");
    }
}

inline void times_to_the_microsecond(trial& t) {
    auto store = t.open();
    const auto far_back = time_point::min() + start.time_since_epoch();
    const auto far_ahead = time_point::max() - duration{5};
    std::uint64_t n = 0;
    for (const auto when :
         {time_point{duration{-1}}, time_point{}, time_point{duration{1}}, time_point{duration{999'999}},
          time_point{duration{-1'000'001}}, at(123'457), far_back, far_ahead}) {
        n += 1;
        const auto d = draft_of(n, {.due_at = when, .expires_at = when});
        put(store, d, when);
        stored_as_drafted(store, d, when, "times as drafted and given");
        const auto claimed = take(store, when, {.lease = duration{3}, .only = id_of(n)});
        t.equal(claimed.size(), 1, "claimed at that very time");
        t.equal(claimed.front().last_attempt_at, when, "the time of the last attempt");
        t.equal(claimed.front().lease_until, when + duration{3}, "the end of the lease");
        settle(store, ticket_of(claimed.front()), retry{"e", when + duration{1}}, when);
        t.equal(get(store, n).due_at, when + duration{1}, "the time of the retry");
        t.equal(get(store, n).updated_at, when, "the time of the last change");
        cancel(store, id_of(n), when);
    }
}

inline void counters(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t most : {0U, 1U, 255U, 256U, 65'536U, top / 2 + 1, top}) {
        comes_back(t, store, draft_of(10 + most, {.attempts_max = most}));
        cancel(store, id_of(10 + most), at(10));
    }
    put(store, draft_of(1));
    from_begin(store, [&](auto& tx) {
        for (std::uint64_t claims = 1; claims <= 600; ++claims) {
            const auto claimed = tx.claim(request(at(20), {.only = id_of(1)}));
            t.equal(claimed.size(), 1, "claimed again");
            t.equal(claimed.front().epoch, claims, "the epoch, which counts every claim");
            const bool failed = claims <= 300;
            settle_in(tx, ticket_of(claimed.front()), failed ? outcome{retry{"e", at(0)}} : outcome{release{}}, at(20));
        }
        tx.commit();
    });
    t.equal(get(store, 1).attempts, 300, "the attempts after 300 retries and 300 releases");
    t.equal(get(store, 1).failures, 300, "the failures after 300 retries and 300 releases");
    t.equal(get(store, 1).epoch, 600, "the epoch after 600 claims");
    put(store, draft_of(2));
    from_begin(store, [&](auto& tx) {
        for (std::int64_t claims = 0; claims <= 300; ++claims) {
            t.equal(tx.claim(request(at(20 + 100 * claims), {.only = id_of(2)})).size(), 1, "taken over again");
        }
        tx.commit();
    });
    t.equal(get(store, 2).lapses, 300, "the lapses after 300 claims that ended with their leases");
}

} // namespace fidelity_checks

inline constexpr std::array fidelity{
    clause{"FIDELITY-01", layer::examples, level::must, needs::nothing,
           "Every field of a draft comes back in the entry that is found, listed and claimed.",
           fidelity_checks::every_field},
    clause{"FIDELITY-02", layer::examples, level::must, needs::nothing,
           "What a draft brought never changes, whatever becomes of the entry.", fidelity_checks::survives_life},
    clause{"FIDELITY-03", layer::examples, level::may, needs::durable,
           "Every field of an entry comes back after everything was closed and opened again.",
           fidelity_checks::survives_reopen},
    clause{"FIDELITY-04", layer::examples, level::must, needs::nothing,
           "A draft's payload, progress, result and header values may be any bytes: none, NUL, what is no UTF-8.",
           fidelity_checks::any_bytes},
    clause{"FIDELITY-05", layer::examples, level::must, needs::nothing,
           "The progress and the result of an outcome may be any bytes.", fidelity_checks::any_bytes_settled},
    clause{"FIDELITY-06", layer::examples, level::must, needs::nothing,
           "What is not there is different from what is empty: results, and expires_at at the beginning of time.",
           fidelity_checks::none_is_not_empty},
    clause{"FIDELITY-07", layer::examples, level::must, needs::nothing,
           "Payloads, results and progress of up to 1 MiB come back complete.", fidelity_checks::large},
    clause{"FIDELITY-08", layer::examples, level::must, needs::nothing,
           "Headers keep their order, their repeated names and their empty values.", fidelity_checks::headers_in_order},
    clause{"FIDELITY-09", layer::examples, level::must, needs::nothing,
           "A trail keeps all its ids, in order and repeated.", fidelity_checks::trail_in_order},
    clause{"FIDELITY-10", layer::examples, level::must, needs::nothing, "Ids are the same only if all 128 bits are.",
           fidelity_checks::ids_to_the_bit},
    clause{"FIDELITY-11", layer::examples, level::must, needs::nothing,
           "Names of any letters and the full length are kept and told apart to the last byte.",
           fidelity_checks::names_to_the_byte},
    clause{"FIDELITY-12", layer::examples, level::must, needs::nothing,
           "Times are kept to the microsecond, before 1970 and in the far future too.",
           fidelity_checks::times_to_the_microsecond},
    clause{"FIDELITY-13", layer::examples, level::must, needs::nothing,
           "attempts_max has 32 bits, and attempts, lapses, failures and epoch count on beyond 256.",
           fidelity_checks::counters},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/fixture.hpp
// Layer 0: whether the fixture can be believed. If a clause here fails, nothing else means anything.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fixture_checks {

inline void fresh_is_empty(trial& t) {
    auto first = t.open();
    put(first, draft_of(1));
    const auto other = t.open(t.fresh_place());
    t.expect(!other.find(id_of(1)), "a fresh place has nothing of another place");
    t.equal(other.counts("q"), state_counts{}, "counts of a fresh place");
    t.equal(other.next_due("q"), std::optional<time_point>{}, "next_due of a fresh place");
}

inline void second_handle_sees(trial& t) {
    auto first = t.open();
    auto second = t.open();
    put(first, draft_of(1));
    t.equal(get(second, 1), get(first, 1), "the entry through the second handle");
    put(second, draft_of(2));
    t.equal(get(first, 2), get(second, 2), "the entry through the first handle");
}

inline void reopen_keeps(trial& t) {
    std::optional<entry> before;
    {
        auto store = t.open();
        put(store, draft_of(1, {.payload = "kept"}));
        before = get(store, 1);
    }
    const auto again = t.open();
    t.equal(again.find(id_of(1)), before, "the entry after everything was closed and opened again");
}

inline void obeys_given_time(trial& t) {
    auto store = t.open();
    const auto long_ago = time_point{std::chrono::hours{1}};
    const auto far_away = time_point{std::chrono::hours{24 * 365 * 200}};
    put(store, draft_of(1, {.due_at = far_away}), long_ago);
    t.equal(get(store, 1).created_at, long_ago, "created_at is the time that was given");
    t.equal(take(store, far_away - duration{1}).size(), 0U, "claimed before the time that was given");
    t.equal(take(store, far_away).size(), 1U, "claimed at the time that was given");
    t.equal(get(store, 1).updated_at, far_away, "updated_at is the time that was given");
}

inline void capabilities_constant(trial& t) {
    auto store = t.open();
    const auto before = store.capabilities();
    put(store, draft_of(1));
    t.expect(before == store.capabilities() && before == t.can(), "capabilities are the same at any time");
    if (t.can().shared) {
        t.expect(before == t.open().capabilities(), "capabilities are the same through every handle");
    }
}

} // namespace fixture_checks

inline constexpr std::array fixture{
    clause{"FIX-01", layer::fixture, level::must, needs::nothing, "A new place is a fresh empty store.",
           fixture_checks::fresh_is_empty},
    clause{"FIX-02", layer::fixture, level::may, needs::shared,
           "The same place opened twice is a second handle on the same work.", fixture_checks::second_handle_sees},
    clause{"FIX-03", layer::fixture, level::may, needs::durable,
           "Everything destroyed and opened again has all that was committed.", fixture_checks::reopen_keeps},
    clause{"FIX-04", layer::fixture, level::must, needs::nothing,
           "Time is what the caller gives, far away or long ago; the store reads no clock.",
           fixture_checks::obeys_given_time},
    clause{"FIX-05", layer::fixture, level::must, needs::nothing, "Capabilities never change.",
           fixture_checks::capabilities_constant},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/groups.hpp
// Groups: the settle that takes the members not yet succeeded from one to zero says so, once per fall to zero.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace groups_checks {

using namespace enqueue_checks;

inline constexpr settlement plain{verdict::applied, false};
inline constexpr settlement completes{verdict::applied, true};

[[nodiscard]] inline any_store group_of(trial& t, std::uint64_t members) {
    auto store = t.open(t.fresh_place());
    for (std::uint64_t n = 1; n <= members; ++n) {
        put(store, draft_of(n, {.group = "g"}));
    }
    return store;
}

/// Claims this one and settles it.
inline settlement end(any_store& store, std::uint64_t n, const outcome& o, const std::string& queue = "q") {
    return settle(store, take_one(store, at(0), {.queue = queue, .only = id_of(n)}), o);
}

inline void last_success_completes(trial& t) {
    auto store = group_of(t, 3);
    t.equal(end(store, 2, succeed{}), plain, "the first success of three");
    t.equal(end(store, 1, succeed{}), plain, "the second success of three");
    t.equal(end(store, 3, succeed{}), completes, "the last success of three");
    auto alone = group_of(t, 1);
    t.equal(end(alone, 1, succeed{}), completes, "the success of a group's only member");
    put(alone, draft_of(9));
    t.equal(end(alone, 9, succeed{}), plain, "the success of an entry without a group");
}

inline void only_success_completes(trial& t) {
    const outcome others[] = {retry{"e", at(0)}, release{}, advance{"p", at(0)}, bury{"e", {}}, bury{"e", "reply"}};
    for (const auto& o : others) {
        auto other = group_of(t, 2);
        t.equal(end(other, 1, succeed{}), plain, "the success of the first");
        t.equal(end(other, 2, o), plain, "another outcome of the last");
    }
    auto store = group_of(t, 2);
    t.equal(cancel(store, id_of(1)), verdict::applied, "cancelled");
    t.equal(end(store, 2, succeed{}), plain, "the success of the last live member beside a cancelled one");
}

inline void across_queues(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(2, {.queue = "r", .group = "g"}));
    put(store, draft_of(3, {.group = "G"}));
    t.equal(end(store, 1, succeed{}), plain, "a success while a member in another queue is live");
    t.equal(end(store, 2, succeed{}, "r"), completes, "the success of that member, with other groups still open");
    t.equal(end(store, 3, succeed{}), completes, "the success in the other group");
}

inline void once_per_fall(trial& t) {
    auto store = group_of(t, 2);
    t.equal(take(store, at(0)).size(), 2, "claimed");
    const std::array settles{vouch::settle{{id_of(2), 1}, succeed{}}, vouch::settle{{id_of(1), 1}, succeed{}},
                             vouch::settle{{id_of(1), 1}, succeed{}}, vouch::settle{{id_of(2), 7}, succeed{}}};
    t.equal(transact(store, [&](auto& tx) { return tx.settle(settles, at(0)); }),
            std::vector<settlement>{plain, completes, {verdict::repeated, false}, {verdict::stale, false}},
            "two last settles in one batch, then what comes too late");
    t.equal(settle(store, {id_of(1), 1}, succeed{}), settlement{verdict::repeated, false}, "the settle repeated");
}

inline void dead_holds_open(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    t.equal(end(store, 2, succeed{}), plain, "a success beside a dead member");
    put(store, draft_of(3, {.predecessor = id_of(1)}));
    t.equal(end(store, 3, succeed{}), completes, "the success of the dead member's successor");
}

inline void successor_takes_the_place(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    put(store, draft_of(3, {.predecessor = id_of(1)}));
    end(store, 3, bury{"e", {}});
    put(store, draft_of(4, {.predecessor = id_of(3)}));
    t.equal(end(store, 4, succeed{}), plain, "the success of the third generation while another member is live");
    t.equal(end(store, 2, succeed{}), completes, "the success of that other member");
}

inline void later_member_reopens(trial& t) {
    auto store = group_of(t, 1);
    t.equal(end(store, 1, succeed{}), completes, "the only member");
    put(store, draft_of(2, {.group = "g"}));
    put(store, draft_of(3, {.group = "g"}));
    t.equal(end(store, 2, succeed{}), plain, "the first of two that came later");
    t.equal(end(store, 3, succeed{}), completes, "the last of two that came later");
}

inline void member_of_same_transaction(trial& t) {
    auto store = group_of(t, 1);
    const auto held = take_one(store, at(0));
    auto tx = store.begin();
    const std::array drafts{draft_of(2, {.group = "g"})};
    tx.enqueue(drafts, at(0));
    t.equal(settle_in(tx, held, succeed{}, at(0)), plain, "a success after a member was added in its transaction");
    tx.commit();
    t.equal(end(store, 2, succeed{}), completes, "the success of the member that was added");
}

inline void duplicates_do_not_count(trial& t) {
    auto store = group_of(t, 1);
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(3, {.queue = "r", .key = "k"}));
    put(store, draft_of(4, {.queue = "r", .key = "k", .group = "g"}));
    put(store, draft_of(5, {.predecessor = id_of(1)}));
    t.equal(end(store, 1, succeed{}), completes, "the success of the one member beside duplicates and refusals");
}

inline void purged_do_not_count(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    end(store, 2, succeed{});
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::dead}), 1, "purged of the dead");
    put(store, draft_of(3, {.group = "g"}));
    t.equal(end(store, 3, succeed{}), completes, "the success of a member after the dead one was purged");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 2, "purged of the rest");
    put(store, draft_of(4, {.group = "g"}));
    t.equal(end(store, 4, succeed{}), completes, "the success of the only member after all others were purged");
}

} // namespace groups_checks

inline constexpr std::array groups{
    clause{"GROUP-01", layer::examples, level::may, needs::groups,
           "The settle that takes the members of a group not yet succeeded from one to zero reports it complete, and "
           "no other does.",
           groups_checks::last_success_completes},
    clause{"GROUP-02", layer::examples, level::may, needs::groups,
           "A retry, release, advance, bury or cancel never completes a group.", groups_checks::only_success_completes},
    clause{"GROUP-03", layer::examples, level::may, needs::groups,
           "A group spans queues; groups are the same only if every byte of their names is.",
           groups_checks::across_queues},
    clause{"GROUP-04", layer::examples, level::may, needs::groups,
           "A group is reported complete once: neither twice in a batch, nor by a settle that is repeated or stale.",
           groups_checks::once_per_fall},
    clause{"GROUP-05", layer::examples, level::may, needs::groups,
           "A dead member holds its group open until its successor has succeeded.", groups_checks::dead_holds_open},
    clause{"GROUP-06", layer::examples, level::may, needs::groups,
           "A successor counts in its predecessor's place, through any number of generations.",
           groups_checks::successor_takes_the_place},
    clause{"GROUP-07", layer::examples, level::may, needs::groups,
           "A later member opens the group again, which is then completed again.", groups_checks::later_member_reopens},
    clause{"GROUP-08", layer::examples, level::may, needs::groups,
           "A member enqueued in the settling transaction counts.", groups_checks::member_of_same_transaction},
    clause{"GROUP-09", layer::examples, level::may, needs::groups,
           "Drafts that are duplicates or refused do not count.", groups_checks::duplicates_do_not_count},
    clause{"GROUP-10", layer::examples, level::may, needs::groups, "Purged members no longer count.",
           groups_checks::purged_do_not_count},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/operation.hpp
// An operation of a writer as a value, so that it can be given to a store on some thread and to the model afterwards.

namespace vouch {
inline namespace v0 {
namespace conformance {

struct operation {
    enum class kind : std::uint8_t { enqueue, claim, settle, extend, nudge, cancel, purge };
    operation::kind what = kind::claim;
    time_point now{};
    std::vector<draft> drafts{};
    claim_request claim{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{};
    duration lease{};
    id wanted{};
    purge_request purge{};
};

struct answer {
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<verdict> verdicts{};
    std::size_t purged = 0;

    [[nodiscard]] friend bool operator==(const answer&, const answer&) = default;
};

template <class Writer>
[[nodiscard]] answer perform(Writer& tx, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::enqueue: out.receipts = tx.enqueue(o.drafts, o.now); break;
    case operation::kind::claim: out.claimed = tx.claim(o.claim); break;
    case operation::kind::settle: out.settlements = tx.settle(o.settles, o.now); break;
    case operation::kind::extend: out.verdicts = tx.extend(o.tickets, o.now, o.lease); break;
    case operation::kind::nudge: out.verdicts = {tx.nudge(o.wanted, o.now)}; break;
    case operation::kind::cancel: out.verdicts = {tx.cancel(o.wanted, "c", o.now)}; break;
    case operation::kind::purge: out.purged = tx.purge(o.purge); break;
    }
    return out;
}

/// The model takes its items one by one.
[[nodiscard]] inline answer perform(model& on, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::enqueue:
        for (const auto& d : o.drafts) {
            out.receipts.push_back(on.enqueue(d, o.now));
        }
        break;
    case operation::kind::claim: out.claimed = on.claim(o.claim); break;
    case operation::kind::settle:
        for (const auto& s : o.settles) {
            out.settlements.push_back(on.settle(s, o.now));
        }
        break;
    case operation::kind::extend:
        for (const auto& t : o.tickets) {
            out.verdicts.push_back(on.extend(t, o.now, o.lease));
        }
        break;
    case operation::kind::nudge: out.verdicts = {on.nudge(o.wanted, o.now)}; break;
    case operation::kind::cancel: out.verdicts = {on.cancel(o.wanted, "c", o.now)}; break;
    case operation::kind::purge: out.purged = on.purge(o.purge); break;
    }
    return out;
}

/// Made up by lot, from what `mind` knows.
[[nodiscard]] inline operation some_operation(imagination& mind, time_point now, dice& d) {
    operation o{.now = now};
    const auto roll = d.below(100);
    if (roll < 20) {
        o.what = operation::kind::enqueue;
        o.drafts.push_back(mind.some_draft());
    } else if (roll < 48) {
        o.what = operation::kind::claim;
        o.claim = mind.some_claim();
    } else if (roll < 75) {
        o.what = operation::kind::settle;
        for (auto left = d.one_of<std::size_t>({1, 1, 2}); left > 0; --left) {
            o.settles.push_back({mind.some_ticket(), mind.some_outcome()});
        }
    } else if (roll < 80) {
        o.what = operation::kind::extend;
        o.tickets.push_back(mind.some_ticket());
        o.lease = mind.some_lease();
    } else if (roll < 86) {
        o.what = operation::kind::nudge;
        o.wanted = mind.some_id();
    } else if (roll < 94) {
        o.what = operation::kind::cancel;
        o.wanted = mind.some_id();
    } else {
        o.what = operation::kind::purge;
        o.purge = mind.some_purge();
    }
    return o;
}

[[nodiscard]] inline std::string show(const operation& o) {
    switch (o.what) {
    case operation::kind::enqueue: {
        std::string out = "enqueue";
        for (const auto& d : o.drafts) {
            out += ' ' + detail::as_code(d).substr(5);
        }
        return out;
    }
    case operation::kind::claim:
        return "claim " + std::to_string(o.claim.limit) + " of " + o.claim.queue +
               (o.claim.only.is_nil() ? "" : ", only " + show(o.claim.only));
    case operation::kind::settle: {
        std::string out;
        for (const auto& s : o.settles) {
            out +=
                (out.empty() ? "" : "; ") + visit_outcome(detail::outcome_as_code{}, s.outcome) + " " + show(s.ticket);
        }
        return out;
    }
    case operation::kind::extend: return "extend " + show(o.tickets) + " by " + show(o.lease);
    case operation::kind::nudge: return "nudge " + show(o.wanted);
    case operation::kind::cancel: return "cancel " + show(o.wanted);
    case operation::kind::purge: return "purge " + detail::as_code(o.purge).substr(13);
    }
    return "?";
}

[[nodiscard]] inline std::string show(const operation& o, const answer& a) {
    switch (o.what) {
    case operation::kind::enqueue: return show(a.receipts);
    case operation::kind::claim: return show(tickets_of(a.claimed));
    case operation::kind::settle: return show(a.settlements);
    case operation::kind::purge: return std::to_string(a.purged);
    default: return show(a.verdicts);
    }
}

/// What an operation and its answer have to do with, by name: entries, keys, groups, lanes. A claim and a purge have to
/// do with their whole queue.
inline void add_touched(const operation& o, const answer& a, std::set<std::string>& names) {
    const auto entry_name = [](const id& one) { return "entry " + std::to_string(one.low); };
    for (const auto& d : o.drafts) {
        names.insert(entry_name(d.id));
        names.insert("queue " + d.queue);
        for (const auto& [kind, name] : {std::pair{"key ", &d.key}, {"group ", &d.group}, {"lane ", &d.lane}}) {
            if (!name->empty()) {
                names.insert(kind + *name);
            }
        }
        if (!d.predecessor.is_nil()) {
            names.insert(entry_name(d.predecessor));
        }
    }
    for (const auto& s : o.settles) {
        names.insert(entry_name(s.ticket.id));
    }
    for (const auto& t : o.tickets) {
        names.insert(entry_name(t.id));
    }
    for (const auto& e : a.claimed) {
        names.insert(entry_name(e.id));
    }
    if (!o.wanted.is_nil()) {
        names.insert(entry_name(o.wanted));
    }
    if (o.what == operation::kind::claim) {
        names.insert("queue " + o.claim.queue);
    }
    if (o.what == operation::kind::purge) {
        names.insert("queue " + o.purge.queue);
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/thread_probe.hpp
// A thread of this process that can be asked whether it sleeps, and how long it has been at work. Linux tells;
// elsewhere every thread is taken for asleep, so that there a busy machine may look like a waiting thread.

#if defined(__linux__)
#include <array>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace vouch {
inline namespace v0 {
namespace conformance {

#if defined(__linux__)

class sleeper {
  public:
    sleeper() = default; ///< no thread
    sleeper(sleeper&& other) noexcept : file_(std::exchange(other.file_, -1)), clock_(other.clock_) {}
    sleeper& operator=(sleeper&& other) noexcept {
        std::swap(file_, other.file_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~sleeper() {
        if (file_ >= 0) {
            close(file_);
        }
    }

    [[nodiscard]] static sleeper current() {
        sleeper out;
        const auto path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/stat";
        out.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread, or for time to pass; not if it merely waits for a processor or a disk.
    /// Allocates nothing: threads wait for each other in the allocator, and it must not wait for who asks.
    [[nodiscard]] bool is_asleep() const {
        std::array<char, 256> text{}; // "42 (name) S ...", and a name is short
        const auto size = file_ < 0 ? -1 : pread(file_, text.data(), text.size(), 0);
        if (size <= 0) {
            return true; // it is gone, or nobody tells
        }
        const std::string_view said(text.data(), static_cast<std::size_t>(size));
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// What it has had of a processor so far.
    [[nodiscard]] std::chrono::nanoseconds worked() const {
        timespec spent{};
        return file_ < 0 || clock_gettime(clock_, &spent) != 0
                   ? std::chrono::nanoseconds{}
                   : std::chrono::seconds{spent.tv_sec} + std::chrono::nanoseconds{spent.tv_nsec};
    }

  private:
    int file_ = -1;
    clockid_t clock_{};
};

#else

class sleeper {
  public:
    [[nodiscard]] static sleeper current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] std::chrono::nanoseconds worked() const { return {}; }
};

#endif

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/scheduler.hpp
// One thread at a time: parties pause at points, and a choice is made who goes on. A party that sleeps before it comes
// to its next point is waiting for another one inside the store, which is its right; it goes on by itself when it can,
// and pauses at its next point. Where the system tells whether a thread sleeps, a busy machine changes no schedule.

namespace vouch {
inline namespace v0 {
namespace conformance {

class baton {
  public:
    /// Says who of the paused parties goes on; called on any thread, one at a time.
    using choice = std::function<std::size_t(const std::vector<std::size_t>&)>;

    baton(std::size_t parties, choice choose) : choose_(std::move(choose)), seats_(parties) {}

    // For a party.

    /// The thread that calls is this party. Before anything else.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        seats_[who].thread = sleeper::current();
        seats_[who].at = position::running;
    }

    /// Waits until it is this party's turn.
    void pause(std::size_t who) {
        auto& mine = seats_[who];
        mine.arrives = true; // if it sleeps from here on, then not in the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        hand_on();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = nobody;
        mine.at = position::running;
        mine.set_out = mine.thread.worked();
        mine.arrives = false;
    }
    void finish(std::size_t who) {
        seats_[who].arrives = true;
        const std::lock_guard lock(mutex_);
        seats_[who].at = position::finished;
        hand_on();
        finished_.notify_one();
    }

    // For whoever has started the parties.

    /// Until all have finished. A party that falls asleep in the store cannot hand on itself; one that waits there
    /// without sleep is given a while.
    void conduct() {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, look_again, [&] { return count(position::finished) == seats_.size(); })) {
            hand_on();
        }
    }

  private:
    enum class position : std::uint8_t { coming, running, paused, finished };
    struct seat {
        position at = position::coming;
        std::atomic<bool> arrives = false;
        sleeper thread{};
        std::chrono::nanoseconds set_out{}; ///< what its thread had worked then
        std::condition_variable turn{};
    };
    static constexpr std::size_t nobody = ~std::size_t{0};

    [[nodiscard]] std::size_t count(position p) const {
        std::size_t n = 0;
        for (const auto& one : seats_) {
            n += one.at == p ? 1U : 0U;
        }
        return n;
    }

    /// If nobody is on the way to a point, one of the paused goes on.
    void hand_on() {
        if (turn_ != nobody || count(position::paused) == 0 || is_anybody_on_the_way()) {
            return;
        }
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < seats_.size(); ++i) {
            if (seats_[i].at == position::paused) {
                ready.push_back(i);
            }
        }
        turn_ = choose_(ready);
        seats_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_anybody_on_the_way() const {
        for (const auto& one : seats_) {
            if (one.at == position::coming || (one.at == position::running && !waits_in_the_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Asleep, or awake for so long that it must be waiting for somebody. That is counted in time at work: a busy
    /// machine lets a thread lie for seconds, and whether it does must not decide who comes next.
    [[nodiscard]] static bool waits_in_the_store(const seat& one) {
        constexpr std::chrono::milliseconds a_while{100};
        const bool stays = one.thread.is_asleep() || one.thread.worked() - one.set_out > a_while;
        return stays && !one.arrives; // asked last: who sleeps because it arrives has said so before
    }

    choice choose_;
    std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<seat> seats_;
    std::size_t turn_ = nobody;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/history.hpp
// Several parties, each on a thread and a handle of its own, do their deeds: a deed is one transaction. What each was
// answered, and when it began and ended, is the history.

namespace vouch {
inline namespace v0 {
namespace conformance {

struct deed {
    std::size_t party = 0;
    std::vector<operation> operations{};
    bool commits = true;

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    deed::end ended = end::none;
    std::vector<answer> answers{};
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< by a counter of all events
    std::uint64_t ended_at = 0;

    [[nodiscard]] bool counts() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    [[nodiscard]] bool overlaps(const deed& other) const noexcept {
        return begun_at < other.ended_at && other.begun_at < ended_at;
    }
    [[nodiscard]] std::set<std::string> touched() const {
        std::set<std::string> names;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            add_touched(operations[i], i < answers.size() ? answers[i] : answer{}, names);
        }
        return names;
    }
};

/// What happened, in the order in which it happened, for people.
class chronicle {
  public:
    std::uint64_t add(std::size_t party, std::string text) {
        const std::lock_guard lock(mutex_);
        events_.emplace_back(party, std::move(text));
        return events_.size();
    }

    /// A column per party.
    [[nodiscard]] std::string text(std::size_t parties) const {
        constexpr std::size_t width = 58;
        std::string out;
        for (std::size_t p = 0; p < parties; ++p) {
            out += padded("party " + std::to_string(p + 1), width);
        }
        for (const auto& [party, what] : events_) {
            out += "\n" + std::string(party * width, ' ') + what;
        }
        return out + "\n";
    }

  private:
    [[nodiscard]] static std::string padded(std::string text, std::size_t width) {
        text.resize(width, ' ');
        return text;
    }

    std::mutex mutex_{};
    std::vector<std::pair<std::size_t, std::string>> events_{};
};

namespace detail {

/// The party the present thread is, for the store's seam.
inline thread_local baton* current_baton = nullptr;
inline thread_local std::size_t current_party = 0;

inline void do_deed(any_store& store, deed& d, baton& with, chronicle& told) {
    const auto tell = [&](std::string text) { return told.add(d.party, std::move(text)); };
    with.pause(d.party);
    d.begun_at = tell("begin");
    try {
        auto tx = store.begin();
        for (const auto& o : d.operations) {
            with.pause(d.party);
            d.answers.push_back(perform(tx, o));
            tell(show(o) + " -> " + show(o, d.answers.back()));
        }
        with.pause(d.party);
        if (d.commits) {
            tx.commit();
            d.ended = deed::end::committed;
        } else {
            d.ended = deed::end::rolled_back; // by the end of tx
        }
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? deed::end::conflict : deed::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = deed::end::threw;
        d.thrown = e.what();
    }
    switch (d.ended) {
    case deed::end::committed: d.ended_at = tell("committed"); break;
    case deed::end::rolled_back: d.ended_at = tell("rolled back"); break;
    default: d.ended_at = tell(d.thrown);
    }
}

} // namespace detail

/// Lets the parties do their deeds, each party's in order, as `choose` says. With a seam the store's insides are
/// points, too.
template <class Choose>
void act(trial& t, std::vector<any_store>& handles, std::vector<deed>& deeds, chronicle& told, Choose&& choose) {
    baton with(handles.size(), std::forward<Choose>(choose));
    if (t.hooks().seam) {
        t.hooks().seam([](std::string_view) {
            if (detail::current_baton != nullptr) {
                detail::current_baton->pause(detail::current_party);
            }
        });
    }
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < handles.size(); ++p) {
        threads.emplace_back([&, p] {
            with.enter(p);
            detail::current_baton = &with;
            detail::current_party = p;
            for (auto& d : deeds) {
                if (d.party == p) {
                    detail::do_deed(handles[p], d, with, told);
                }
            }
            detail::current_baton = nullptr;
            with.finish(p);
        });
    }
    with.conduct();
    for (auto& thread : threads) {
        thread.join();
    }
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/linearization.hpp
// Whether a history can be explained: is there an order of its deeds, one that never puts a deed before another that
// had ended when it began, in which the model gives every answer that was given and ends up looking like the store?
//
// Deeds that ended in `conflict` never happened. One that was rolled back changed nothing, but its answers were true. A
// claim may have passed over entries that a deed in progress at the same time had touched, and only those.

namespace vouch {
inline namespace v0 {
namespace conformance {

class explanation {
  public:
    /// `final` is what the store looks like in the end, all queues.
    explanation(const model& before, const std::vector<deed>& deeds, std::vector<entry> final)
        : final_(std::move(final)) {
        for (const auto& d : deeds) {
            all_.push_back(&d);
            if (d.counts()) {
                deeds_.push_back(&d);
            }
        }
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        std::sort(final_.begin(), final_.end(), by_sequence);
        exists_ = !is_tellable() || search(before, 0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }

  private:
    static bool by_sequence(const entry& a, const entry& b) { return a.sequence < b.sequence; }

    /// An entry that came and went again has a sequence we never saw, so its history is not judged. Rare.
    [[nodiscard]] bool is_tellable() const {
        std::set<id> inserted;
        for (const auto* const d : deeds_) {
            for (std::size_t i = 0; d->ended == deed::end::committed && i < d->answers.size(); ++i) {
                for (const auto& r : d->answers[i].receipts) {
                    if (r.what == receipt::kind::inserted &&
                        (sequences_.count(r.id) == 0 || !inserted.insert(r.id).second)) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    [[nodiscard]] bool search(const model& now, std::uint64_t done) {
        if (done == (std::uint64_t{1} << deeds_.size()) - 1) {
            return looks_like_final(now);
        }
        for (std::size_t i = 0; i < deeds_.size(); ++i) {
            if ((done >> i & 1U) == 0 && may_be_next(i, done)) {
                auto after = now;
                if (agrees(after, *deeds_[i]) &&
                    search(deeds_[i]->ended == deed::end::committed ? after : now, done | std::uint64_t{1} << i)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Not while another one that ended before it began is left.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        for (std::size_t j = 0; j < deeds_.size(); ++j) {
            if (j != i && (done >> j & 1U) == 0 && deeds_[j]->ended_at < deeds_[i]->begun_at) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool agrees(model& on, const deed& d) const {
        for (std::size_t i = 0; i < d.operations.size(); ++i) {
            const auto& o = d.operations[i];
            const auto& given = d.answers[i];
            if (o.what == operation::kind::claim) {
                if (!agrees_to_claim(on, d, o.claim, given.claimed)) {
                    return false;
                }
                continue;
            }
            if (!(perform(on, o) == given)) {
                return false;
            }
            adopt_sequences(on, o, given);
        }
        return true;
    }

    /// Sequences are the store's business; what was purged or rolled back is known by no other name than its place.
    void adopt_sequences(model& on, const operation& o, const answer& given) const {
        for (std::size_t k = 0; k < o.drafts.size(); ++k) {
            if (given.receipts[k].what != receipt::kind::inserted) {
                continue;
            }
            const auto known = sequences_.find(o.drafts[k].id);
            for (auto& r : on.records) {
                if (r.entry.id == o.drafts[k].id && known != sequences_.end()) {
                    r.entry.sequence = known->second;
                }
            }
        }
        std::sort(on.records.begin(), on.records.end(),
                  [](const auto& a, const auto& b) { return by_sequence(a.entry, b.entry); });
    }

    [[nodiscard]] bool agrees_to_claim(model& on, const deed& d, const claim_request& request,
                                       const std::vector<entry>& claimed) const {
        auto straight = on;
        if (same_but_sequence(straight.claim(request), claimed)) {
            on = std::move(straight);
            return true;
        }
        // Perhaps it passed over some that were being touched: those it took, and nothing it had to take is missing.
        const auto busy = touched_beside(d);
        auto one = request;
        one.limit = 1;
        std::vector<std::pair<time_point, std::uint64_t>> taken;
        for (const auto& e : claimed) {
            const auto* const known = on.find(e.id);
            const auto gate = known == nullptr ? std::nullopt : on.gate(*known);
            if (!gate) {
                return false;
            }
            taken.emplace_back(*gate, known->sequence);
        }
        for (const auto& r : on.records) {
            const auto gate = on.gate(r.entry);
            const bool eligible = r.entry.queue == request.queue && gate && *gate <= request.now &&
                                  (request.only.is_nil() || r.entry.id == request.only);
            const bool was_taken =
                std::any_of(claimed.begin(), claimed.end(), [&](const auto& e) { return e.id == r.entry.id; });
            const bool had_to_be =
                claimed.size() < request.limit ||
                (!taken.empty() && std::pair(*gate, r.entry.sequence) < *std::max_element(taken.begin(), taken.end()));
            if (eligible && !was_taken && had_to_be && busy.count("entry " + std::to_string(r.entry.id.low)) == 0) {
                return false;
            }
        }
        std::vector<entry> expected;
        for (const auto& e : claimed) {
            one.only = e.id;
            auto got = on.claim(one);
            expected.insert(expected.end(), got.begin(), got.end());
        }
        std::sort(expected.begin(), expected.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return same_but_sequence(expected, claimed);
    }

    /// A purged entry's sequence is not known to us.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    [[nodiscard]] std::set<std::string> touched_beside(const deed& d) const {
        std::set<std::string> names;
        for (const auto* const other : all_) { // one that ended in conflict was open for a while, too
            if (other != &d && other->overlaps(d)) {
                names.merge(other->touched());
            }
        }
        return names;
    }

    [[nodiscard]] bool looks_like_final(const model& now) const {
        if (now.records.size() != final_.size()) {
            return false;
        }
        for (std::size_t i = 0; i < final_.size(); ++i) {
            if (!(now.records[i].entry == final_[i])) {
                return false;
            }
        }
        return true;
    }

    std::vector<const deed*> all_{};
    std::vector<const deed*> deeds_{}; ///< those that count
    std::vector<entry> final_;
    std::map<id, std::uint64_t> sequences_{};
    bool exists_ = false;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/store_pool.hpp
// Handles on an empty store for case after case. Opening a store may cost a hundred times what a case does, so one that
// can be swept clean is used again for a while.

namespace vouch {
inline namespace v0 {
namespace conformance {

class playground {
  public:
    playground(trial& t, std::size_t handles) : trial_(t), count_(handles) {}
    playground(const playground&) = delete;
    playground& operator=(const playground&) = delete;
    ~playground() { leave(); }

    /// Handles on an empty store: the same as last time, if that case ended well.
    [[nodiscard]] std::vector<any_store>& enter() {
        if (!is_clean_ || ++used_ > reuse_max) {
            leave();
            place_.emplace(trial_.fresh_place());
            for (std::size_t i = 0; i < count_; ++i) {
                handles_.push_back(i == 0 || trial_.can().shared ? trial_.on().open(*place_) : handles_.front());
            }
            used_ = 0;
        }
        is_clean_ = false;
        return handles_;
    }

    /// The case ended well: everything in it is removed through the contract's own means.
    void sweep() {
        constexpr time_point late = start + std::chrono::hours{24 * 3650};
        auto& store = handles_.front();
        for (const std::string queue : {"q", "r"}) {
            const auto live = store.list({.by = query::path::live, .queue = queue, .limit = 1000});
            transact(store, [&](auto& tx) {
                for (const auto& e : live) {
                    std::ignore = tx.cancel(e.id, "swept", late);
                }
            });
        }
        transact(store, [&](auto& tx) {
            for (const std::string queue : {"q", "r"}) {
                tx.purge({.queue = queue, .before = late + duration{1}});
            }
        });
        is_clean_ = store.counts("q").total() + store.counts("r").total() == 0;
    }

  private:
    void leave() {
        handles_.clear();
        if (place_) {
            trial_.leave(*place_);
        }
        place_.reset();
    }

    static constexpr std::size_t reuse_max = 50;
    trial& trial_;
    std::size_t count_;
    std::optional<place> place_{};
    std::vector<any_store> handles_{};
    bool is_clean_ = false;
    std::size_t used_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/histories.hpp
// Layer 4: threads on handles of their own, their steps put in many orders, and every history explained by the model or
// refused.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace history_checks {

[[nodiscard]] inline std::vector<entry> everything(const any_store& store) {
    std::vector<entry> all;
    for (const std::string queue : {"q", "r"}) {
        const auto some = store.list({.queue = queue, .limit = 1000, .payloads = true});
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

[[nodiscard]] inline bool is_overlapping(const std::vector<deed>& deeds) {
    for (std::size_t i = 0; i < deeds.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (deeds[i].overlaps(deeds[j])) {
                const auto a = deeds[i].touched();
                const auto b = deeds[j].touched();
                if (std::any_of(a.begin(), a.end(), [&](const auto& name) { return b.count(name) > 0; })) {
                    return true;
                }
            }
        }
    }
    return false;
}

/// The state the parties found, and what they did side by side.
[[nodiscard]] inline std::string told_text(const model& before, const chronicle& told, std::size_t parties) {
    std::string out = "before:\n";
    for (const auto& r : before.records) {
        out += "  " + show(r.entry) + "\n";
    }
    return out + told.text(parties);
}

/// Requires that what happened can be explained.
inline void judge(const model& before, const std::vector<deed>& deeds, const any_store& store, const chronicle& told,
                  std::size_t parties) {
    for (const auto& d : deeds) {
        if (d.ended == deed::end::threw) {
            throw failure{"a transaction threw something else than conflict", d.thrown, "an answer, or conflict",
                          told_text(before, told, parties)};
        }
    }
    const auto final = everything(store);
    if (!explanation(before, deeds, final).exists()) {
        std::string seen = "these answers; in the end";
        for (const auto& e : final) {
            seen += "\n    " + show(e);
        }
        throw failure{"no order of the transactions gives these answers and this end", seen,
                      "what some order of them would have given", told_text(before, told, parties)};
    }
}

/// Words make a beginning, told by one thread, and the deeds of several.
inline void play(trial& t, playground& ground, const words& list, std::size_t parties) {
    constexpr std::size_t deeds_max = 6;
    auto& handles = ground.enter();
    {
        auto& store = handles.front();
        story beginning(store, t.can(), t.tally());
        for (const auto word : list) {
            if (word % 5 < 3) {
                beginning.tell(word);
            }
        }
        beginning.end(true);
        const auto before = beginning.committed();

        std::vector<deed> deeds;
        std::uint64_t luck = t.seed();
        for (const auto word : list) {
            if (word % 5 >= 3 && deeds.size() < deeds_max) {
                dice d(word);
                imagination mind(t.can(), before, beginning.now(), beginning.tickets(), d);
                auto& one = deeds.emplace_back();
                one.party = d.below(parties);
                one.commits = d.chance(85);
                for (auto left = 1 + d.below(2); left > 0; --left) {
                    one.operations.push_back(some_operation(mind, beginning.now(), d));
                }
                luck ^= word;
            }
        }

        chronicle told;
        dice schedule(luck);
        act(t, handles, deeds, told,
            [&](const std::vector<std::size_t>& ready) { return ready[schedule.below(ready.size())]; });
        t.tally().histories += 1;
        t.tally().overlapping += is_overlapping(deeds) ? 1U : 0U;
        judge(before, deeds, store, told, parties);
    }
    ground.sweep();
}

template <std::size_t Parties>
void explained(trial& t) {
    playground ground(t, Parties);
    auto found = falsify(t, t.budget().histories / 2, 14, [&](const words& list) { play(t, ground, list, Parties); });
    if (found) {
        throw std::move(found->second);
    }
}

} // namespace history_checks

inline constexpr std::array histories{
    clause{"HISTORY-01", layer::histories, level::must, needs::nothing,
           "What two threads are answered can be explained by some order of their transactions.",
           history_checks::explained<2>},
    clause{"HISTORY-02", layer::histories, level::must, needs::nothing,
           "What three threads are answered can be explained by some order of their transactions.",
           history_checks::explained<3>},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/interleavings.hpp
// Layer 3: pairs and triples of short transactions that have something to do with each other, their steps in every
// order. That one waits for the other is as good as any answer.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace interleaving_checks {

inline constexpr time_point now = at(50);

/// A store in which there is something to quarrel over, and the model of it.
[[nodiscard]] inline model prepare(trial& t, any_store& store) {
    model m;
    const auto both = [&](const operation& o) {
        const auto seen = transact(store, [&](auto& tx) { return perform(tx, o); });
        const auto expected = perform(m, o);
        trial::expect(seen.receipts == expected.receipts && seen.claimed.size() == expected.claimed.size() &&
                          seen.settlements == expected.settlements && seen.verdicts == expected.verdicts,
                      "the beginning of an interleaving");
        for (auto& r : m.records) {
            r.entry.sequence = get(store, r.entry.id.low).sequence;
        }
    };
    const std::string lane = t.can().lanes ? "x" : "";
    const std::string group = t.can().groups ? "g" : "";
    using kind = operation::kind;
    // 4 stays claimed, 5's lease is over by now, 6 is dead, 7 and 8 are the last of a group.
    both({.what = kind::enqueue,
          .now = at(0),
          .drafts = {draft_of(4), draft_of(5), draft_of(6), draft_of(7, {.group = group}),
                     draft_of(8, {.group = group})}});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(4)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{10}, .only = id_of(5)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(7)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(8)})});
    both({.what = kind::cancel, .now = at(2), .wanted = id_of(6)});
    both({.what = kind::enqueue,
          .now = at(3),
          .drafts = {draft_of(1), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane})}});
    return m;
}

/// What may be done with it, each a transaction of one or two operations.
[[nodiscard]] inline std::vector<std::vector<operation>> scripts() {
    using kind = operation::kind;
    const auto claim = [](std::size_t limit, id only = {}) {
        return operation{.what = kind::claim, .now = now, .claim = request(now, {.limit = limit, .only = only})};
    };
    const auto settle = [](std::uint64_t n, outcome o) {
        return operation{.what = kind::settle, .now = now, .settles = {{{id_of(n), 1}, std::move(o)}}};
    };
    const auto enqueue = [](draft d) { return operation{.what = kind::enqueue, .now = now, .drafts = {std::move(d)}}; };
    const auto on_id = [](kind k, std::uint64_t n) { return operation{.what = k, .now = now, .wanted = id_of(n)}; };
    return {
        {claim(1)},
        {claim(3)},
        {claim(1, id_of(1))},
        {settle(4, succeed{})},
        {settle(4, retry{"e", now})},
        {settle(5, succeed{})},
        {settle(7, succeed{})},
        {settle(8, succeed{})},
        {enqueue(draft_of(9, {.key = "k"}))},
        {enqueue(draft_of(10, {.key = "k"}))},
        {enqueue(draft_of(9))},
        {enqueue(draft_of(11, {.predecessor = id_of(6)}))},
        {enqueue(draft_of(12, {.predecessor = id_of(6)}))},
        {on_id(kind::cancel, 1)},
        {on_id(kind::cancel, 2)},
        {on_id(kind::cancel, 5)},
        {on_id(kind::nudge, 4)},
        {{.what = kind::extend, .now = now, .tickets = {{id_of(5), 1}}, .lease = duration{100}}},
        {{.what = kind::purge, .now = now, .purge = {.queue = "q", .before = now}}},
        {settle(4, succeed{}), claim(2)},
    };
}

/// Every order of `each` steps of every party, the first by the lowest.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> orders(std::size_t parties, std::size_t each) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < parties; ++p) {
        order.insert(order.end(), each, p);
    }
    std::vector<std::vector<std::size_t>> all;
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

inline void play(trial& t, playground& ground, const std::vector<const std::vector<operation>*>& parts,
                 std::size_t rolls_back, const std::vector<std::size_t>& order) {
    auto& handles = ground.enter();
    {
        auto& store = handles.front();
        const auto before = prepare(t, store);
        std::vector<deed> deeds;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            deeds.push_back({.party = i, .operations = *parts[i], .commits = i != rolls_back});
        }
        chronicle told;
        std::size_t step = 0;
        act(t, handles, deeds, told, [&](const std::vector<std::size_t>& ready) {
            while (step < order.size()) {
                const auto wanted = order[step++];
                if (std::find(ready.begin(), ready.end(), wanted) != ready.end()) {
                    return wanted;
                }
            }
            return ready.front();
        });
        t.tally().interleavings += 1;
        history_checks::judge(before, deeds, store, told, parts.size());
    }
    ground.sweep();
}

/// Draws at most `schedules` of the orders for every choice of parts; all of them if there are no more.
inline void pairs(trial& t) {
    playground ground(t, 2);
    const auto all = scripts();
    const auto merged = orders(2, 3);
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto wanted = t.budget().schedules;
            for (std::size_t n = 0; n < std::min(wanted, 2 * merged.size()); ++n) {
                const bool every = wanted >= 2 * merged.size();
                const auto pick = every ? n : t.random().below(2 * merged.size());
                constexpr std::size_t nobody = 2;
                play(t, ground, {&all[i], &all[j]}, pick < merged.size() ? nobody : pick % 2,
                     merged[pick % merged.size()]);
            }
        }
    }
}

inline void triples(trial& t) {
    playground ground(t, 3);
    const auto all = scripts();
    const auto merged = orders(3, 3);
    for (std::size_t n = 0; n < 10 * t.budget().schedules; ++n) {
        const auto some = [&] { return &all[t.random().below(all.size())]; };
        const auto first = some();
        const auto second = some();
        play(t, ground, {first, second, some()}, t.random().below(5), merged[t.random().below(merged.size())]);
    }
}

} // namespace interleaving_checks

inline constexpr std::array interleavings{
    clause{"ORDER-01", layer::interleavings, level::must, needs::nothing,
           "Two transactions whose steps meet in any order answer as if one had come after the other.",
           interleaving_checks::pairs},
    clause{"ORDER-02", layer::interleavings, level::must, needs::nothing,
           "Three transactions whose steps meet in any order answer as if they had come one after the other.",
           interleaving_checks::triples},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/lanes.hpp
// Lanes: one claimed at a time, in sequence. The head is the live entry of lowest sequence and holds its lane until it
// has ended; what is behind it is blocked and has no gate.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace lane_checks {

struct standing_in {
    time_point due = at(0);
    std::string lane = "a";
    std::string queue = "q";
};

inline void put_in(any_store& store, std::uint64_t n, const standing_in& where = {}) {
    put(store, draft_of(n, {.queue = where.queue, .lane = where.lane, .due_at = where.due}));
}

/// 1, 2 and 3 in one lane, all due.
inline void put_three(any_store& store) {
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put_in(store, n);
    }
}

inline void one_at_a_time(trial& t) {
    auto store = t.open();
    put_in(store, 3);
    const std::array together{draft_of(1, {.lane = "a"}), draft_of(4, {.lane = "a"}), draft_of(2, {.lane = "a"})};
    std::ignore = transact(store, [&](auto& tx) { return tx.enqueue(together, at(0)); });
    for (const std::uint64_t n : {3U, 1U, 4U, 2U}) { // by sequence, not by id
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from the lane");
        t.equal(numbers(take(store, at(50))), list_of{}, "claimed beside it");
        std::ignore = settle(store, ticket, succeed{}, at(0));
    }
}

inline void future_head_holds(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(50)});
    put_in(store, 2, {.due = at(10)});
    t.equal(store.next_due("q"), std::optional{at(50)}, "next_due");
    t.equal(numbers(take(store, at(49))), list_of{}, "claimed while the head is not due");
    t.equal(numbers(take(store, at(50))), list_of{1}, "claimed when the head is due");
}

inline void settled_head_holds(trial& t) {
    for (const outcome& o : {outcome{retry{"e", at(50)}}, outcome{release{at(50)}}, outcome{advance{"p", at(50)}}}) {
        auto store = t.open(t.fresh_place());
        put_three(store);
        std::ignore = settle(store, take_one(store, at(0)), o, at(1));
        t.equal(store.next_due("q"), std::optional{at(50)}, "next_due");
        t.equal(numbers(take(store, at(49))), list_of{}, "claimed while the head waits for its next attempt");
        t.equal(numbers(take(store, at(50))), list_of{1}, "claimed when the head is due again");
    }
}

inline void lapsed_head_holds(trial& t) {
    auto store = t.open();
    put_three(store);
    std::ignore = take_one(store, at(0));
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(200), {.limit = 2})), list_of{1}, "claimed when the head's lease is over");
}

/// A way in which the entry 1, the head, ends.
struct way {
    std::string_view name;
    void (*end)(any_store& store);
};

inline constexpr std::array ways{
    way{"succeed", [](any_store& s) { std::ignore = settle(s, take_one(s, at(0)), succeed{}, at(50)); }},
    way{"bury",
        [](any_store& s) {
            std::ignore = settle(s, take_one(s, at(0)), bury{"e", {}}, at(50));
        }},
    way{"succeed after its lease",
        [](any_store& s) { std::ignore = settle(s, take_one(s, at(0)), succeed{}, at(150)); }},
    way{"cancel while pending", [](any_store& s) { cancel(s, id_of(1), at(50)); }},
    way{"cancel while retrying",
        [](any_store& s) {
            std::ignore = settle(s, take_one(s, at(0)), retry{"e", at(900)}, at(0));
            cancel(s, id_of(1), at(50));
        }},
    way{"cancel after its lease",
        [](any_store& s) {
            std::ignore = take_one(s, at(0));
            cancel(s, id_of(1), at(100));
        }},
};

inline void every_end_opens(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_place());
        put_in(store, 1);
        put_in(store, 2, {.due = at(-7)});
        put_in(store, 3, {.due = at(-8)});
        const auto next = get(store, 2);
        w.end(store);
        const auto head = "the head ended by " + std::string(w.name) + ": ";
        t.equal(get(store, 2), next, head + "the next entry as it was");
        t.equal(store.next_due("q"), std::optional{at(-7)}, head + "next_due, the due time of the next");
        t.equal(numbers(take(store, at(0))), list_of{2}, head + "claimed");
    }
}

inline void in_the_same_transaction(trial& t) {
    auto store = t.open();
    put_three(store);
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    {
        auto tx = store.begin();
        std::ignore = settle_in(tx, ticket, succeed{}, at(0));
        t.equal(tx.next_due("q"), std::optional{at(0)}, "next_due in the transaction that ended the head");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{2}, "claimed in the transaction that ended the head");
        t.equal(tx.cancel(id_of(2), "why", at(100)), verdict::applied, "the cancel of the next");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{3}, "claimed after that");
    }
    unchanged(store, before, "rolled back, the lane is as it was");
    t.equal(numbers(take(store, at(0))), list_of{}, "claimed behind the head that has not ended after all");
}

inline void blocked_are_counted(trial& t) {
    auto store = t.open();
    put_three(store);
    std::ignore = take_one(store, at(0));
    const auto before = look(store);
    t.equal(store.counts("q")[state::pending], 2U, "pending entries");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the list of the live");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(90), {.only = id_of(2)})), list_of{}, "claimed by id behind the head");
    t.equal(numbers(take(store, at(900), {.only = id_of(3)})), list_of{}, "claimed by id behind a lapsed head");
    unchanged(store, before, "claims leave blocked entries alone");
}

inline void due_time_kept(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(10)});
    put_in(store, 2, {.due = at(80)});
    put_in(store, 3, {.due = at(5)});
    std::ignore = settle(store, take_one(store, at(10)), succeed{}, at(20));
    t.equal(numbers(take(store, at(79))), list_of{}, "claimed one microsecond before the new head is due");
    std::ignore = settle(store, take_one(store, at(80)), succeed{}, at(90));
    put(store, draft_of(4, {.due_at = at(6)}));
    t.equal(store.next_due("q"), std::optional{at(5)}, "next_due");
    t.equal(numbers(take(store, at(90), {.limit = 1})), list_of{3}, "claimed first, as it has been due for longer");
}

inline void nudge_leaves_blocked(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(500)});
    put_in(store, 2, {.due = at(900)});
    auto expected = get(store, 2);
    t.equal(nudge(store, id_of(2), at(30)), verdict::applied, "the nudge of a blocked entry");
    t.equal(nudge(store, id_of(2), at(30)), verdict::repeated, "the second nudge of it");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 2), expected, "the blocked entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(500)}, "next_due");
    t.equal(numbers(take(store, at(30))), list_of{}, "claimed after the nudge");
    cancel(store, id_of(1), at(31));
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed when its turn has come");
}

inline void blocked_parent(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(500)});
    put_in(store, 2, {.due = at(900)});
    put_dead(store, draft_of(3, {.parent = id_of(2)}), at(30));
    t.equal(get(store, 2).due_at, at(30), "due_at of the parent");
    t.equal(store.next_due("q"), std::optional{at(500)}, "next_due");
    t.equal(numbers(take(store, at(499))), list_of{}, "claimed while the parent is blocked");
}

inline void cancel_in_the_middle(trial& t) {
    auto store = t.open();
    put_three(store);
    const auto ticket = take_one(store, at(0));
    t.equal(cancel(store, id_of(2), at(1)), verdict::applied, "the cancel of a blocked entry");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(1))), list_of{}, "claimed while the head is held");
    std::ignore = settle(store, ticket, succeed{}, at(2));
    t.equal(numbers(take(store, at(2))), list_of{3}, "claimed when the head has ended");
}

inline void scope(trial& t) {
    auto store = t.open();
    put_in(store, 1);
    put_in(store, 2);
    put_in(store, 3, {.lane = "b"});
    put_in(store, 4, {.queue = "r"});
    put(store, draft_of(5));
    put(store, draft_of(6));
    t.equal(numbers(take(store, at(0))), list_of{1, 3, 5, 6}, "claimed from one queue: lanes a and b, and no lane");
    t.equal(numbers(take(store, at(0), {.queue = "r"})), list_of{4}, "claimed from the lane a of another queue");
}

inline void limit_counts_heads(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(30)});
    put_in(store, 2, {.due = at(10)});
    put_in(store, 3, {.due = at(20), .lane = "b"});
    put_in(store, 4, {.due = at(25), .lane = "c"});
    t.equal(numbers(take(store, at(50), {.limit = 2})), list_of{3, 4}, "the two heads that have been due for longest");
    t.equal(numbers(take(store, at(50))), list_of{1}, "the remaining head");
}

inline void begins_anew(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put_in(store, n);
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from a lane all of which has ended before");
        std::ignore = settle(store, ticket, n == 2 ? outcome{bury{"e", {}}} : outcome{succeed{}}, at(0));
    }
    put_in(store, 4, {.due = at(70)});
    t.equal(store.next_due("q"), std::optional{at(70)}, "next_due");
}

inline void rolled_back_head(trial& t) {
    auto store = t.open();
    {
        auto tx = store.begin();
        const std::array never{draft_of(1, {.lane = "a", .due_at = at(500)})};
        std::ignore = tx.enqueue(never, at(0));
    }
    put_in(store, 2);
    t.equal(numbers(take(store, at(0))), list_of{2}, "claimed from a lane whose first entry was rolled back");
}

inline void successor_at_the_end(trial& t) {
    auto store = t.open();
    put_three(store);
    cancel(store, id_of(1), at(0));
    put(store, draft_of(4, {.predecessor = id_of(1)}));
    put_in(store, 5);
    for (const std::uint64_t n : {2U, 3U, 4U, 5U}) {
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from the lane");
        std::ignore = settle(store, ticket, succeed{}, at(0));
    }
}

} // namespace lane_checks

inline constexpr std::array lanes{
    clause{"LANE-01", layer::examples, level::may, needs::lanes,
           "Of a lane one entry is claimed at a time, in the order of sequences; a batch of drafts keeps its order.",
           lane_checks::one_at_a_time},
    clause{"LANE-02", layer::examples, level::may, needs::lanes,
           "A head that is not due yet holds its lane, though what is behind it is due.",
           lane_checks::future_head_holds},
    clause{"LANE-03", layer::examples, level::may, needs::lanes,
           "A head that is retried, released or advanced holds its lane until its next attempt.",
           lane_checks::settled_head_holds},
    clause{"LANE-04", layer::examples, level::may, needs::lanes,
           "A head whose lease is over is taken over before anything behind it.", lane_checks::lapsed_head_holds},
    clause{"LANE-05", layer::examples, level::may, needs::lanes,
           "However the head ends, the next entry has its turn, and none after that one.",
           lane_checks::every_end_opens},
    clause{"LANE-06", layer::examples, level::may, needs::lanes,
           "The next entry has its turn in the very transaction that ends the head, and loses it if that rolls back.",
           lane_checks::in_the_same_transaction},
    clause{"LANE-07", layer::examples, level::may, needs::lanes,
           "Blocked entries are counted and listed, but absent from next_due and never claimed, not even by id.",
           lane_checks::blocked_are_counted},
    clause{"LANE-08", layer::examples, level::may, needs::lanes,
           "A blocked entry keeps its due_at for when its turn comes.", lane_checks::due_time_kept},
    clause{"LANE-09", layer::examples, level::may, needs::lanes,
           "A nudge changes the due_at of a blocked entry and leaves it blocked.", lane_checks::nudge_leaves_blocked},
    clause{"LANE-10", layer::examples, level::may, needs::lanes,
           "A blocked parent is nudged when its child ends, and stays blocked.", lane_checks::blocked_parent},
    clause{"LANE-11", layer::examples, level::may, needs::lanes,
           "A blocked entry can be cancelled; the head still holds its lane, and the turn passes over the dead.",
           lane_checks::cancel_in_the_middle},
    clause{"LANE-12", layer::examples, level::may, needs::lanes,
           "A lane belongs to its queue; other lanes, other queues and entries without a lane do not wait for it.",
           lane_checks::scope},
    clause{"LANE-13", layer::examples, level::may, needs::lanes,
           "The limit of a claim counts heads; blocked entries take no place in it, however long they are due.",
           lane_checks::limit_counts_heads},
    clause{"LANE-14", layer::examples, level::may, needs::lanes, "A lane all of whose entries have ended begins anew.",
           lane_checks::begins_anew},
    clause{"LANE-15", layer::examples, level::may, needs::lanes, "An entry that was rolled back holds no lane.",
           lane_checks::rolled_back_head},
    clause{"LANE-16", layer::examples, level::may, needs::lanes,
           "The successor of a dead entry stands at the end of its predecessor's lane.",
           lane_checks::successor_at_the_end},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/model.hpp
// Layer 2: long random stories, told to the store and to the model.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace story_checks {

inline void tell(trial& t, playground& ground, const words& list, tally& seen, script* written) {
    auto& store = ground.enter().front();
    {
        story s(written == nullptr ? store : write_down(store, *written), t.can(), seen);
        for (const auto word : list) {
            s.tell(word);
        }
        s.end(true);
    }
    ground.sweep();
}

inline void same_story(trial& t) {
    playground ground(t, 1);
    auto found = falsify(t, t.budget().stories, t.budget().story_commands,
                         [&](const words& list) { tell(t, ground, list, t.tally(), nullptr); });
    if (found) {
        // Once more, to write it down.
        script written;
        tally ignored;
        try {
            tell(t, ground, found->first, ignored, &written);
        } catch (const failure&) { // the one we know
        } catch (const error&) {
        }
        found->second.story = written.text();
        throw std::move(found->second);
    }
}

} // namespace story_checks

inline constexpr std::array stories{
    clause{
        "STORY-01", layer::stories, level::must, needs::nothing,
        "Whatever is done in whatever order, the store answers and looks as the contract says, inside the transaction "
        "and outside.",
        story_checks::same_story},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/nudge.hpp
// Nudge: what waits becomes due now, what is claimed is marked and becomes due when its claim ends. None is ever lost.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace nudge_checks {

/// Entry 1, claimed at 0 with its lease until 100, and nudged at 10.
[[nodiscard]] inline ticket marked(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .progress = "begun"}));
    const auto ticket = take_one(store, at(0));
    trial::equal(nudge(store, id_of(1), at(10)), verdict::applied, "the nudge that meets a claim");
    return ticket;
}

/// That an outcome whose time is `at(90)` or at(15), given at 20, leaves the marked entry due at 20 or 15.
template <class Outcome>
void earlier_of_time_and_now(trial& t, const Outcome& outcome_at) {
    for (const auto given : {at(90), at(21), at(20), at(15)}) {
        auto store = t.open(t.fresh_place());
        const auto ticket = marked(store);
        t.equal(settle(store, ticket, outcome_at(given), at(20)), settlement{verdict::applied}, "the settle");
        const auto due = given < at(20) ? given : at(20);
        t.equal(get(store, 1).due_at, due, "due_at, where the outcome said " + show(given) + " at " + show(at(20)));
        t.expect(!get(store, 1).woken, "the mark is gone");
        t.equal(numbers(take(store, at(20))), list_of{1}, "claimed at once");
    }
}

inline void pending_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(500), .progress = "begun"}));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(30)}, "next_due");
    t.equal(numbers(take(store, at(30))), list_of{1}, "claimed at once");
}

inline void retrying_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"e", at(500)}, at(5));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(numbers(take(store, at(30))), list_of{1}, "claimed at once");
}

inline void due_already(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(29)}));
    put(store, draft_of(2, {.due_at = at(30)}));
    const auto before = look(store);
    t.equal(nudge(store, id_of(1), at(30)), verdict::repeated, "the nudge of an entry due a microsecond ago");
    t.equal(nudge(store, id_of(2), at(30)), verdict::repeated, "the nudge of an entry due exactly now");
    unchanged(store, before, "a nudge moves nothing back");
    t.equal(nudge(store, id_of(2), at(29)), verdict::applied, "the nudge a microsecond before an entry is due");
    t.equal(get(store, 2).due_at, at(29), "due_at after it");
}

inline void claimed_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .progress = "begun"}));
    std::ignore = take_one(store, at(0));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.woken = true;
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the lease");
    t.equal(numbers(take(store, at(99))), list_of{}, "taken over while the lease runs");
}

inline void through_retry(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{retry{"e", given}}; });
}

inline void through_release(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{release{given}}; });
}

inline void through_advance(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{advance{"p", given}}; });
}

inline void through_outcomes_without_time(trial& t) {
    auto store = t.open();
    auto ticket = marked(store);
    std::ignore = settle(store, ticket, release{}, at(20));
    t.equal(get(store, 1).due_at, at(0), "due_at after a release: it was due before");
    ticket = take_one(store, at(30));
    nudge(store, id_of(1), at(40));
    std::ignore = settle(store, ticket, release{}, at(-5)); // a clock that is behind
    t.equal(get(store, 1).due_at, at(-5), "due_at after a release before it was due");
    ticket = take_one(store, at(50));
    nudge(store, id_of(1), at(60));
    std::ignore = settle(store, ticket, advance{"p", {}}, at(70));
    t.equal(get(store, 1).due_at, at(70), "due_at after an advance");
}

inline void ends_with_the_entry(trial& t) {
    for (const outcome& end : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_place());
        const auto ticket = marked(store);
        t.equal(settle(store, ticket, end, at(-20)), settlement{verdict::applied}, "the settle");
        t.expect(!get(store, 1).woken, "the mark is gone");
        t.equal(get(store, 1).due_at, at(0), "due_at is left alone");
    }
}

inline void not_for_the_next_claim(trial& t) {
    auto store = t.open();
    std::ignore = settle(store, marked(store), retry{"e", at(90)}, at(20));
    auto ticket = take_one(store, at(20));
    t.expect(!get(store, 1).woken, "the next claim has no mark");
    std::ignore = settle(store, ticket, retry{"e", at(90)}, at(30));
    t.equal(get(store, 1).due_at, at(90), "due_at after the next claim");
}

inline void take_over_answers_it(trial& t) {
    auto store = t.open();
    std::ignore = marked(store);
    const auto ticket = take_one(store, at(100));
    t.expect(!get(store, 1).woken, "the claim that takes over has no mark");
    std::ignore = settle(store, ticket, release{at(500)}, at(110));
    t.equal(get(store, 1).due_at, at(500), "due_at after the claim that took over");
}

inline void lapsed_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    t.equal(nudge(store, id_of(1), at(150)), verdict::applied, "the nudge of a lapsed claim");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due is still the end of the lease");
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(160));
    t.equal(get(store, 1).due_at, at(160), "due_at after the lapsed claim has settled");
}

inline void by_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n, {.due_at = at(500)}));
    }
    auto expected = look(store).found;
    std::ignore = nudge(store, id_of(2), at(30));
    expected[1].due_at = expected[1].updated_at = at(30);
    t.equal(look(store).found, expected, "the entries after one was nudged");
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed after one was nudged");
}

} // namespace nudge_checks

inline constexpr std::array nudging{
    clause{"NUDGE-01", layer::examples, level::must, needs::nothing,
           "A nudge makes a pending entry due now; of the rest only updated_at changes.", nudge_checks::pending_fields},
    clause{"NUDGE-02", layer::examples, level::must, needs::nothing,
           "A nudge makes a retrying entry due now; of the rest only updated_at changes.",
           nudge_checks::retrying_fields},
    clause{"NUDGE-03", layer::examples, level::must, needs::nothing,
           "A nudge leaves an entry alone that is due now or was due before: it never makes anything later.",
           nudge_checks::due_already},
    clause{"NUDGE-04", layer::examples, level::must, needs::nothing,
           "A nudge of a claimed entry sets its wake mark and updated_at; its lease, due_at and ticket stay.",
           nudge_checks::claimed_fields},
    clause{"NUDGE-05", layer::examples, level::must, needs::nothing,
           "A nudge that met a claim is not lost through a retry: the entry is due at the earlier of its time and now.",
           nudge_checks::through_retry},
    clause{"NUDGE-06", layer::examples, level::must, needs::nothing,
           "A nudge that met a claim is not lost through a release: the entry is due at the earlier of its time and "
           "now.",
           nudge_checks::through_release},
    clause{"NUDGE-07", layer::examples, level::must, needs::nothing,
           "A nudge that met a claim is not lost through an advance: the entry is due at the earlier of its time and "
           "now.",
           nudge_checks::through_advance},
    clause{"NUDGE-08", layer::examples, level::must, needs::nothing,
           "Where release or advance give no time, a nudge that met the claim makes the entry due now, unless it was "
           "due before.",
           nudge_checks::through_outcomes_without_time},
    clause{"NUDGE-09", layer::examples, level::must, needs::nothing,
           "The wake mark ends with the entry: succeed and bury clear it and leave due_at alone.",
           nudge_checks::ends_with_the_entry},
    clause{"NUDGE-10", layer::examples, level::must, needs::nothing,
           "The wake mark is used up by the settle that ends the claim; the next claim begins without.",
           nudge_checks::not_for_the_next_claim},
    clause{"NUDGE-11", layer::examples, level::must, needs::nothing,
           "A claim that takes over begins without a wake mark: it is what the nudge asked for.",
           nudge_checks::take_over_answers_it},
    clause{"NUDGE-12", layer::examples, level::must, needs::nothing,
           "A nudge marks a claim whose lease is over, too, and does not move the end of that lease.",
           nudge_checks::lapsed_claim},
    clause{"NUDGE-13", layer::examples, level::must, needs::nothing, "A nudge concerns the entry of its id only.",
           nudge_checks::by_id},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/parent.hpp
// Parents: when an entry ends, the one that waits for it is nudged.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace parent_checks {

/// Puts entry 1 to wait until 900 in the queue "r", and entry 2, whose parent it is, into the queue "q".
inline void put_family(any_store& store) {
    put(store, draft_of(1, {.queue = "r", .payload = "p", .due_at = at(900), .progress = "begun"}));
    put(store, draft_of(2, {.parent = id_of(1)}));
}

/// Claims entry 2 at 0, with its lease until 100.
[[nodiscard]] inline ticket take_child(any_store& store) { return take_one(store, at(0), {.only = id_of(2)}); }

/// Ends entry 2 at 50.
inline void end_child(any_store& store) {
    trial::equal(settle(store, take_child(store), succeed{}, at(50)), settlement{verdict::applied}, "the child's end");
}

/// A way in which entry 2 ends at 50.
struct way {
    std::string_view name;
    void (*end)(any_store& store);
};

[[nodiscard]] inline ticket take_briefly(any_store& store) {
    return take_one(store, at(0), {.lease = duration{10}, .only = id_of(2)});
}

inline constexpr std::array ways{
    way{"succeed", [](any_store& s) { std::ignore = settle(s, take_child(s), succeed{}, at(50)); }},
    way{"bury",
        [](any_store& s) {
            std::ignore = settle(s, take_child(s), bury{"e", {}}, at(50));
        }},
    way{"succeed after its lease", [](any_store& s) { std::ignore = settle(s, take_briefly(s), succeed{}, at(50)); }},
    way{"cancel while pending", [](any_store& s) { cancel(s, id_of(2), at(50)); }},
    way{"cancel while retrying",
        [](any_store& s) {
            std::ignore = settle(s, take_child(s), retry{"e", at(700)}, at(5));
            cancel(s, id_of(2), at(50));
        }},
    way{"cancel after its lease",
        [](any_store& s) {
            std::ignore = take_briefly(s);
            cancel(s, id_of(2), at(50));
        }},
};

inline void every_end_wakes(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_place());
        put_family(store);
        auto expected = get(store, 1);
        w.end(store);
        expected.due_at = expected.updated_at = at(50);
        t.equal(get(store, 1), expected, "the parent when its child has ended by " + std::string(w.name));
        t.equal(store.next_due("r"), std::optional{at(50)}, "next_due of the parent's queue");
    }
}

inline void nothing_else_wakes(trial& t) {
    auto store = t.open();
    put_family(store);
    const auto before = get(store, 1);
    for (const outcome& o : {outcome{retry{"e", at(0)}}, outcome{release{at(0)}}, outcome{advance{"p", at(0)}}}) {
        const auto ticket = take_child(store);
        std::ignore = extend(store, ticket, at(5), duration{200});
        std::ignore = nudge(store, id_of(2), at(5));
        std::ignore = settle(store, ticket, o, at(10));
    }
    t.equal(get(store, 1), before, "the parent of a child that was claimed, retried, released, advanced and nudged");
}

inline void refused_ends_do_not_wake(trial& t) {
    auto store = t.open();
    put_family(store);
    end_child(store);
    const auto parent = take_one(store, at(60), {.queue = "r"});
    std::ignore = settle(store, parent, release{at(900)}, at(60));
    const auto before = look(store);
    t.equal(settle(store, {id_of(2), 1}, succeed{}, at(70)), settlement{verdict::repeated}, "the second settle");
    t.equal(settle(store, {id_of(2), 9}, bury{}, at(70)), settlement{verdict::stale}, "the settle with another epoch");
    t.equal(cancel(store, id_of(2), at(70)), verdict::stale, "the cancel");
    unchanged(store, before, "a settle or cancel that is not applied wakes no parent");
}

inline void retrying_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.queue = "r"}));
    put(store, draft_of(2, {.parent = id_of(1)}));
    std::ignore = settle(store, take_one(store, at(0), {.queue = "r"}), retry{"e", at(900)}, at(0));
    auto expected = get(store, 1);
    end_child(store);
    expected.due_at = expected.updated_at = at(50);
    t.equal(get(store, 1), expected, "the retrying parent when its child has ended");
}

inline void claimed_parent(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_place());
        put_family(store);
        const auto parent = take_one(store, at(900), {.queue = "r"});
        auto expected = get(store, 1);
        w.end(store);
        expected.woken = true;
        expected.updated_at = at(50);
        t.equal(get(store, 1), expected, "the claimed parent when its child has ended by " + std::string(w.name));
        std::ignore = settle(store, parent, release{at(2000)}, at(950));
        t.equal(get(store, 1).due_at, at(950), "due_at of the parent when its claim has ended");
    }
}

inline void due_parent(trial& t) {
    for (const auto due : {at(49), at(50)}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1, {.queue = "r", .due_at = due}));
        put(store, draft_of(2, {.parent = id_of(1)}));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that is due already");
    }
}

inline void terminal_parent(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_place());
        put_family(store);
        std::ignore = settle(store, take_one(store, at(900), {.queue = "r"}), o, at(901));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that has ended before");
    }
}

inline void absent_parent(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(2, {.parent = id_of(9)}));
        put(store, draft_of(3, {.due_at = at(900)}));
        const auto other = get(store, 3);
        w.end(store);
        t.expect(is_terminal(get(store, 2).state), "a child without a parent ends by " + std::string(w.name));
        t.expect(!store.find(id_of(9)), "there is still no parent");
        t.equal(get(store, 3), other, "an entry that is not the parent");
    }
}

inline void parent_put_later(trial& t) {
    auto store = t.open();
    put(store, draft_of(2, {.parent = id_of(1)}));
    put(store, draft_of(1, {.queue = "r", .due_at = at(900)}));
    end_child(store);
    t.equal(get(store, 1).due_at, at(50), "due_at of the parent that was enqueued after its child");
}

inline void own_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(2, {.parent = id_of(2)}));
    const auto ticket = take_child(store);
    auto expected = get(store, 2);
    expected.state = state::succeeded;
    expected.result = "r";
    expected.lease_until.reset();
    expected.updated_at = at(50);
    t.equal(settle(store, ticket, succeed{"r"}, at(50)), settlement{verdict::applied}, "the settle");
    t.equal(get(store, 2), expected, "the entry that is its own parent");
}

inline void only_the_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(3, {.queue = "r", .due_at = at(900)}));
    put(store, draft_of(1, {.queue = "r", .parent = id_of(3), .due_at = at(900)}));
    put(store, draft_of(2, {.parent = id_of(1)}));
    put(store, draft_of(4, {.parent = id_of(1), .due_at = at(900)}));
    auto expected = look(store).found; // 1, 2, 3, 4
    end_child(store);
    expected[0].due_at = expected[0].updated_at = at(50);
    expected[1] = get(store, 2);
    t.equal(look(store).found, expected, "the parent, and neither its own parent nor its other child");
}

inline void every_child_wakes(trial& t) {
    auto store = t.open();
    put_family(store);
    put(store, draft_of(3, {.parent = id_of(1)}));
    end_child(store);
    const auto parent = take_one(store, at(60), {.queue = "r"});
    std::ignore = settle(store, parent, release{at(900)}, at(60));
    cancel(store, id_of(3), at(70));
    t.equal(get(store, 1).due_at, at(70), "due_at of the parent when the second child has ended");
}

inline void in_the_same_transaction(trial& t) {
    auto store = t.open();
    put_family(store);
    const auto ticket = take_child(store);
    const auto before = look(store);
    {
        auto tx = store.begin();
        std::ignore = settle_in(tx, ticket, succeed{}, at(50));
        t.equal(get(tx, 1).due_at, at(50), "due_at of the parent in the transaction that ended the child");
        t.equal(numbers(tx.claim(request(at(50), {.queue = "r"}))), list_of{1}, "claimed in that transaction");
    }
    unchanged(store, before, "rolled back, neither child nor parent has changed");
}

} // namespace parent_checks

inline constexpr std::array parents{
    clause{"PARENT-01", layer::examples, level::must, needs::nothing,
           "When an entry ends, by succeed, bury or cancel, its parent is due now, whatever queue it is in.",
           parent_checks::every_end_wakes},
    clause{"PARENT-02", layer::examples, level::must, needs::nothing,
           "Nothing but its end wakes an entry's parent: no claim, extend, nudge, retry, release or advance.",
           parent_checks::nothing_else_wakes},
    clause{"PARENT-03", layer::examples, level::must, needs::nothing,
           "A settle or cancel that is not applied wakes no parent.", parent_checks::refused_ends_do_not_wake},
    clause{"PARENT-04", layer::examples, level::must, needs::nothing, "A retrying parent is woken as a pending one.",
           parent_checks::retrying_parent},
    clause{"PARENT-05", layer::examples, level::must, needs::nothing,
           "A parent that is claimed when its child ends is marked, and due when its claim ends.",
           parent_checks::claimed_parent},
    clause{"PARENT-06", layer::examples, level::must, needs::nothing,
           "A parent that is due already does not change, updated_at included.", parent_checks::due_parent},
    clause{"PARENT-07", layer::examples, level::must, needs::nothing,
           "A parent that has ended before its child does not change.", parent_checks::terminal_parent},
    clause{"PARENT-08", layer::examples, level::must, needs::nothing,
           "An entry whose parent is absent ends like any other.", parent_checks::absent_parent},
    clause{"PARENT-09", layer::examples, level::must, needs::nothing,
           "A parent may be enqueued after its child, and is woken all the same.", parent_checks::parent_put_later},
    clause{"PARENT-10", layer::examples, level::must, needs::nothing,
           "An entry that names itself as parent ends like any other.", parent_checks::own_parent},
    clause{"PARENT-11", layer::examples, level::must, needs::nothing,
           "Only the parent is woken: neither the parent's parent nor another child.", parent_checks::only_the_parent},
    clause{"PARENT-12", layer::examples, level::must, needs::nothing,
           "Every child that ends wakes the parent, not the first or the last alone.",
           parent_checks::every_child_wakes},
    clause{"PARENT-13", layer::examples, level::must, needs::nothing,
           "The parent is woken in the very transaction that ends its child, and sleeps on if that rolls back.",
           parent_checks::in_the_same_transaction},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/purge.hpp
// Purge: terminal entries that ended before a time, oldest first, and none that a live entry still needs.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace purge_checks {

using namespace enqueue_checks;

[[nodiscard]] inline purge_request before(time_point when, std::size_t limit = 1000) {
    return {.queue = "q", .before = when, .limit = limit};
}

[[nodiscard]] inline list_of left(const any_store& store) { return numbers(store.list(query::all("q"))); }

/// 1, 2 and 3 are generations of one entry; the last ended at(30).
inline void put_three_generations(any_store& store) {
    put_dead(store, draft_of(1, {.key = "k"}), at(10));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(10));
    cancel(store, id_of(2), at(20));
    put(store, draft_of(3, {.predecessor = id_of(2)}), at(20));
    cancel(store, id_of(3), at(30));
}

inline void removes_and_counts(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1, {.key = "k", .parent = id_of(20)}), state::dead);
    put_as(store, draft_of(2), state::succeeded);
    put(store, draft_of(3));
    t.equal(purge(store, before(at(1))), 2, "purged");
    t.expect(!store.find(id_of(1)) && !store.find(id_of(2)), "what is purged is not found any more");
    t.equal(left(store), list_of{3}, "listed after the purge");
    t.equal(store.list(query::keyed("q", "k")).size() + store.list(query::children(id_of(20))).size() +
                store.list(query::dead("q")).size(),
            0, "listed of the purged by key, parent and as dead");
    t.equal(store.counts("q"), state_counts{{1, 0, 0, 0, 0}}, "the counts after the purge");
    t.equal(purge(store, before(at(1))), 0, "purged by a second purge");
    t.equal(cancel(store, id_of(1)), verdict::unknown, "cancelled after the purge");
}

inline void never_live(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1), state::pending);
    put_as(store, draft_of(2), state::retrying);
    put_as(store, draft_of(3), state::claimed);
    const auto seen = look(store);
    t.equal(purge(store, before(at(1'000'000))), 0, "purged of what is live");
    unchanged(store, seen, "what is live is not purged, however old");
}

inline void boundary(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(-1));
    put_dead(store, draft_of(2), at(0));
    put(store, draft_of(3, {.result = ""}), at(-1));
    put(store, draft_of(4, {.result = ""}), at(0));
    t.equal(purge(store, before(at(0))), 2, "purged of what ended one microsecond before");
    t.equal(left(store), list_of{2, 4}, "left is what ended at `before` itself");
    t.equal(purge(store, before(at(1))), 2, "purged one microsecond later");
}

inline void goes_by_the_end(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(-900)}), at(-900));
    cancel(store, id_of(1), at(0));
    put(store, draft_of(2, {.due_at = at(900)}), at(900));
    cancel(store, id_of(2), at(-1));
    t.equal(purge(store, before(at(0))), 1, "purged");
    t.equal(left(store), list_of{1}, "left is what ended later, though it was made and due earlier");
}

inline void oldest_first(trial& t) {
    auto store = t.open();
    const std::array ended{30, 10, 20, 10, 0};
    for (std::uint64_t n = 1; n <= ended.size(); ++n) {
        put_dead(store, draft_of(n), at(ended[n - 1]));
    }
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{1, 2, 3, 4}, "left after the one that ended first");
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{1, 3, 4}, "left after the first of two that ended together");
    t.equal(purge(store, before(at(100), 2)), 2, "purged with limit 2");
    t.equal(left(store), list_of{1}, "left in the end");
}

inline void limit_is_exact(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put_dead(store, draft_of(n));
    }
    const auto seen = look(store);
    t.equal(purge(store, before(at(1), 0)), 0, "purged with limit 0");
    unchanged(store, seen, "a purge with limit 0 changes nothing");
    t.equal(purge(store, before(at(1), 3)), 3, "purged with limit 3");
    t.equal(left(store), list_of{4}, "left after limit 3");
    t.equal(purge(store, before(at(1), t.can().limits.batch_max)), 1, "purged with the largest limit");
}

inline void own_queue(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put_dead(store, draft_of(2, {.queue = "r"}));
    t.equal(purge(store, before(at(1))), 1, "purged of \"q\"");
    t.expect(store.find(id_of(2)).has_value(), "the other queue's is still there");
    t.equal(purge(store, {.queue = "nobody's", .before = at(1)}), 0, "purged of a queue nobody has used");
}

inline void only_one_state(trial& t) {
    for (const auto s : {state::succeeded, state::dead}) {
        auto store = t.open(t.fresh_place());
        put_as(store, draft_of(1), state::dead);
        put_as(store, draft_of(2), state::succeeded);
        put(store, draft_of(3, {.result = ""}));
        t.equal(purge(store, {.queue = "q", .before = at(1), .state = s}), s == state::dead ? 1 : 2,
                "purged of what is " + show(s));
        t.equal(left(store), s == state::dead ? list_of{2, 3} : list_of{1}, "left is the other state");
    }
}

inline void kept_for_the_group(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.group = "g"}));
    put_as(store, draft_of(2, {.group = "g"}), state::succeeded);
    put(store, draft_of(3, {.queue = "r", .group = "g"}));
    put_dead(store, draft_of(4, {.group = "h"}));
    t.equal(purge(store, before(at(1))), 1, "purged while the group has a live member in another queue");
    t.equal(left(store), list_of{1, 2}, "left are the members of that group");
    cancel(store, id_of(3));
    t.equal(purge(store, before(at(1))), 2, "purged when the group has no live member any more");
}

inline void kept_for_the_child(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(2, {.queue = "r", .parent = id_of(1)}));
    put_as(store, draft_of(3), state::succeeded);
    put(store, draft_of(4, {.parent = id_of(3), .due_at = at(900)}));
    t.equal(purge(store, before(at(1))), 0, "purged while their children are live");
    cancel(store, id_of(2));
    t.equal(purge(store, before(at(1))), 1, "purged when one of the children has ended");
    t.equal(left(store), list_of{3, 4}, "left are the other parent and its child");
}

inline void not_kept_for_the_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(0)}));
    put_dead(store, draft_of(2, {.parent = id_of(1)}));
    put_dead(store, draft_of(3, {.parent = id_of(3)}));
    t.equal(purge(store, before(at(1))), 2, "purged of what has a live parent, or itself for a parent");
    t.equal(left(store), list_of{1}, "left is the parent");
}

inline void not_kept_for_the_lane(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane"}));
    put(store, draft_of(3, {.lane = "lane"}));
    t.equal(purge(store, before(at(1))), 1, "purged of a lane");
    t.equal(numbers(take(store, at(1))), list_of{2}, "claimed from the lane after the purge");
}

inline void kept_for_the_successor(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(0));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(0));
    t.equal(purge(store, before(at(900))), 0, "purged while the successor is live");
    cancel(store, id_of(2), at(50));
    t.equal(purge(store, before(at(50))), 0, "purged before the successor's end is long enough ago");
    t.equal(left(store), list_of{1, 2}, "left until then");
    t.equal(purge(store, before(at(51))), 2, "purged together");
}

inline void eldest_generation_first(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{2, 3}, "left after the eldest");
    t.equal(get(store, 2).predecessor, id_of(1), "the predecessor of one whose predecessor is purged");
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1 again");
    t.equal(left(store), list_of{3}, "left is the newest");
    t.equal(purge(store, before(at(100))), 1, "purged in the end");
}

inline void needed_generations_stay_together(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    put(store, draft_of(4, {.queue = "r", .parent = id_of(2)}));
    t.equal(purge(store, before(at(100))), 0, "purged while one generation has a live child");
    t.equal(left(store), list_of{1, 2, 3}, "left of the generations");
    cancel(store, id_of(4));
    t.equal(purge(store, before(at(100))), 3, "purged when the child has ended");
}

inline void state_of_the_newest(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(2, {.predecessor = id_of(1)}));
    settle(store, take_one(store, at(0)), succeed{});
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::dead}), 0,
            "purged of the dead: the predecessor of one that succeeded stays with it");
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::succeeded}), 2,
            "purged of the succeeded: its dead predecessor goes with it");
}

inline void needed_do_not_use_the_limit(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(0));
    put(store, draft_of(2, {.queue = "r", .parent = id_of(1)}), at(0));
    put_dead(store, draft_of(3), at(10));
    t.equal(purge(store, before(at(20), 1)), 1, "purged with limit 1 when the oldest is still needed");
    t.equal(left(store), list_of{1}, "left is the one that is needed");
}

inline void id_that_comes_again(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    t.equal(purge(store, before(at(100), 2)), 2, "purged of the generations");
    t.equal(put(store, draft_of(2), at(40)), inserted(2), "a new entry with the id of the purged predecessor");
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{3}, "the generations of the key");
    t.equal(purge(store, before(at(100))), 1, "purged: the new entry is nobody's predecessor");
    t.equal(left(store), list_of{2}, "left is the new entry");
}

inline void no_smaller_limit(trial& t) {
    constexpr std::uint64_t many = 1'100;
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n, {.result = "done"}));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(purge(store, before(at(1), many - 1)), many - 1, "purged with a limit of one less than there are");
    t.equal(left(store), list_of{many}, "left is the newest");
}

} // namespace purge_checks

inline constexpr std::array purges{
    clause{"PURGE-01", layer::examples, level::must, needs::nothing,
           "Purge removes entries that have succeeded or died, from every read, and says how many.",
           purge_checks::removes_and_counts},
    clause{"PURGE-02", layer::examples, level::must, needs::nothing,
           "Purge never removes a live entry, however old, nor a claimed one whose lease is over.",
           purge_checks::never_live},
    clause{"PURGE-03", layer::examples, level::must, needs::nothing,
           "Purge takes what ended before `before`, not what ended at it.", purge_checks::boundary},
    clause{"PURGE-04", layer::examples, level::must, needs::nothing,
           "Purge goes by when an entry ended, not by when it was made or due.", purge_checks::goes_by_the_end},
    clause{"PURGE-05", layer::examples, level::must, needs::nothing,
           "Purge takes the oldest first: by end, then by sequence.", purge_checks::oldest_first},
    clause{"PURGE-06", layer::examples, level::must, needs::nothing,
           "Purge removes at most `limit` entries; 0 removes none.", purge_checks::limit_is_exact},
    clause{"PURGE-07", layer::examples, level::must, needs::nothing, "Purge touches its own queue only.",
           purge_checks::own_queue},
    clause{"PURGE-08", layer::examples, level::must, needs::nothing,
           "Purge with a state removes only entries that ended so.", purge_checks::only_one_state},
    clause{"PURGE-09", layer::examples, level::may, needs::groups,
           "Purge keeps the members of a group that has a live member, in whatever queue.",
           purge_checks::kept_for_the_group},
    clause{"PURGE-10", layer::examples, level::must, needs::nothing,
           "Purge keeps an entry while a child of its is live, in whatever queue.", purge_checks::kept_for_the_child},
    clause{"PURGE-11", layer::examples, level::must, needs::nothing, "Purge does not keep a child for its live parent.",
           purge_checks::not_kept_for_the_parent},
    clause{"PURGE-12", layer::examples, level::may, needs::lanes,
           "Purge does not keep an entry for the live ones of its lane.", purge_checks::not_kept_for_the_lane},
    clause{"PURGE-13", layer::examples, level::must, needs::nothing,
           "Purge keeps a dead predecessor while its successor is live, and removes it only with the successor.",
           purge_checks::kept_for_the_successor},
    clause{"PURGE-14", layer::examples, level::must, needs::nothing,
           "When the limit cuts through generations, the eldest go first.", purge_checks::eldest_generation_first},
    clause{"PURGE-15", layer::examples, level::must, needs::nothing,
           "Generations of which a live entry needs one are all kept.", purge_checks::needed_generations_stay_together},
    clause{"PURGE-16", layer::examples, level::must, needs::nothing,
           "The state asked for is that of the newest generation.", purge_checks::state_of_the_newest},
    clause{"PURGE-17", layer::examples, level::must, needs::nothing,
           "Entries that are still needed do not use up the limit.", purge_checks::needed_do_not_use_the_limit},
    clause{"PURGE-18", layer::examples, level::must, needs::nothing,
           "A new entry with the id of a purged predecessor is not the predecessor.",
           purge_checks::id_that_comes_again},
    clause{"PURGE-19", layer::examples, level::must, needs::nothing,
           "Purge removes as many as its limit says; the store has no smaller limit of its own.",
           purge_checks::no_smaller_limit},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/requeue.hpp
// Requeue: a dead entry's one successor, which is an entry of its own.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace requeue_checks {

using namespace enqueue_checks;

/// With something in every field a successor might get from it.
[[nodiscard]] inline draft rich(std::uint64_t n, const capabilities& can) {
    return draft_of(n, {.topic = "topic",
                        .payload = "payload",
                        .key = "k",
                        .group = can.groups ? "g" : "",
                        .lane = can.lanes ? "lane" : "",
                        .due_at = at(-5),
                        .expires_at = at(1000),
                        .attempts_max = 4,
                        .trail = {id_of(50), id_of(51)},
                        .headers = {{"a", "1"}, {"a", "2"}},
                        .progress = "first step"});
}

/// Stores a rich entry and lets it die after two failures, with progress beyond the draft's.
inline void put_buried(any_store& store, const capabilities& can) {
    put(store, rich(1, can));
    settle(store, take_one(store, at(0)), retry{"once", at(0)});
    settle(store, take_one(store, at(0)), advance{"second step", at(0)});
    settle(store, take_one(store, at(0)), bury{"twice", "reply"});
}

/// What the successor of that must be, when drafted so.
inline void succeeds_rich(trial& t, const any_store& store, draft drafted, time_point now) {
    const auto seen = get(store, drafted.id.low);
    const auto dead = get(store, 1);
    model m;
    auto before = drafted;
    before.predecessor = {};
    std::ignore = m.enqueue(before, now);
    auto expected = *m.find(drafted.id);
    expected.predecessor = id_of(1);
    expected.key = dead.key;
    expected.group = dead.group;
    expected.lane = dead.lane;
    expected.generation = 2;
    expected.sequence = seen.sequence;
    t.equal(seen, expected, "the successor");
    t.expect(seen.sequence > dead.sequence, "the successor has a new sequence");
}

inline void takes_over(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    const auto d = draft_of(2, {.topic = "other", .payload = "new", .predecessor = id_of(1), .progress = "own"});
    t.equal(put(store, d, at(60)), inserted(2), "the successor of a dead entry");
    succeeds_rich(t, store, d, at(60));
    t.equal(get(store, 2).key, "k", "the key that is taken over");
}

inline void dead_unchanged(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    const auto before = get(store, 1);
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(60));
    t.equal(get(store, 1), before, "the dead entry after it got a successor");
    settle(store, take_one(store, at(60)), succeed{}, at(60));
    t.equal(get(store, 1), before, "the dead entry after its successor succeeded");
}

inline void one_successor(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const std::vector batch{draft_of(2, {.predecessor = id_of(1)}), draft_of(3, {.predecessor = id_of(1)})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{inserted(2), duplicate(2)}, "two successors in a batch");
    const auto before = look(store);
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)}), at(5)), duplicate(2), "a second successor");
    unchanged(store, before, "a second successor writes nothing");
    cancel(store, id_of(2));
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), duplicate(2), "a second one when the first is dead");
}

inline void refused_unless_dead(trial& t) {
    for (const auto s : {state::pending, state::retrying, state::claimed, state::succeeded}) {
        auto store = t.open(t.fresh_place());
        put_as(store, draft_of(1, {.key = "k"}), s);
        const auto before = look(store);
        t.equal(put(store, draft_of(2, {.predecessor = id_of(1)}), at(5)), refused,
                "a successor of one that is " + show(s));
        unchanged(store, before, "a refused successor writes nothing");
    }
}

inline void refused_if_absent(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const auto before = look(store);
    t.equal(put(store, draft_of(2, {.queue = "r", .predecessor = id_of(1)})), refused, "a successor in another queue");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(9)})), refused, "a successor of an entry that is not there");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(2)})), refused, "a successor of itself");
    unchanged(store, before, "a refused successor writes nothing");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(1)})), inserted(2), "a successor in the same queue");
}

inline void refusal_stops_nothing(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const std::vector batch{draft_of(2, {.predecessor = id_of(9)}), draft_of(3), draft_of(4, {.predecessor = id_of(3)}),
                            draft_of(5, {.predecessor = id_of(1)})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{refused, inserted(3), refused, inserted(5)},
            "a batch with refusals");
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 3, 5}, "stored after that");
}

inline void generations_count(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    for (const std::uint64_t n : {2U, 3U, 4U}) {
        t.equal(put(store, draft_of(n, {.predecessor = id_of(n - 1)})), inserted(n), "the next generation");
        t.equal(get(store, n).generation, n, "its generation");
        cancel(store, id_of(n));
    }
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2, 3, 4}, "all generations of the key");
    t.equal(put(store, draft_of(9, {.predecessor = id_of(1)})), duplicate(2), "another successor of the first");
}

inline void stored_id_comes_first(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(5));
    const auto before = look(store);
    t.equal(put(store, draft_of(5, {.predecessor = id_of(1)})), duplicate(5), "a stored id as successor");
    t.equal(put(store, draft_of(1, {.predecessor = id_of(1)})), duplicate(1), "the dead entry's own id as successor");
    t.equal(put(store, draft_of(5, {.predecessor = id_of(9)})), duplicate(5), "a stored id for an absent predecessor");
    unchanged(store, before, "these write nothing");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(1)})), inserted(2), "a successor after all");
}

inline void dies_and_is_replaced_at_once(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    auto tx = store.begin();
    t.equal(tx.cancel(id_of(1), "e", at(0)), verdict::applied, "cancelled");
    const std::array drafts{draft_of(2, {.predecessor = id_of(1)})};
    t.equal(tx.enqueue(drafts, at(0)), receipts{inserted(2)}, "the successor of one that died in this transaction");
    tx.commit();
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2}, "both generations");
}

inline void requeue_starts_afresh(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(2), .now = at(60)}); }),
        inserted(2), "requeued");
    auto d = rich(2, t.can());
    d.due_at.reset();
    d.expires_at.reset();
    d.progress.clear();
    succeeds_rich(t, store, d, at(60));
}

inline void resume_goes_on(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::resume(tx, {.dead = id_of(1), .successor = id_of(2), .now = at(60)}); }),
        inserted(2), "resumed");
    auto d = rich(2, t.can());
    d.due_at.reset();
    d.expires_at.reset();
    d.progress = "second step";
    succeeds_rich(t, store, d, at(60));
}

inline void parented_is_refused(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(50)}));
    put_dead(store, draft_of(2, {.parent = id_of(1)}));
    const auto before = look(store);
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(2), .successor = id_of(3), .now = at(60)}); }),
        refused, "requeue of an entry with a parent");
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::resume(tx, {.dead = id_of(2), .successor = id_of(3), .now = at(60)}); }),
        refused, "resume of an entry with a parent");
    unchanged(store, before, "a refused requeue writes nothing");
}

inline void behind_in_its_lane(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane", .due_at = at(50)}));
    cancel(store, id_of(1));
    put(store, draft_of(3, {.predecessor = id_of(1)}), at(0));
    t.equal(store.next_due("q"), at(50), "next_due while the successor stands behind the lane's head");
    t.equal(numbers(take(store, at(50))), list_of{2}, "claimed from the lane");
    cancel(store, id_of(2), at(1000));
    t.equal(numbers(take(store, at(1000))), list_of{3}, "claimed once the head has ended");
}

inline void lapses_end_with_the_dead(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = take_lapsed(store, 1, 2);
    cancel(store, id_of(1), at(300));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(300));
    t.equal(get(store, 2).lapses, 0U, "lapses of the successor");
    std::ignore = take_one(store, at(300));
    std::ignore = take_one(store, at(400));
    t.equal(get(store, 2).attempts, 1U, "attempts after its first lapse");
}

} // namespace requeue_checks

inline constexpr std::array requeues{
    clause{"REQUEUE-01", layer::examples, level::must, needs::nothing,
           "A dead entry's successor takes over key, group and lane, is one generation on, has a new sequence, no "
           "attempts, and is due now; the rest is its own draft's.",
           requeue_checks::takes_over},
    clause{"REQUEUE-02", layer::examples, level::must, needs::nothing,
           "A dead entry does not change when it gets a successor, nor when that ends.",
           requeue_checks::dead_unchanged},
    clause{"REQUEUE-03", layer::examples, level::must, needs::nothing,
           "A dead entry has at most one successor: another is a duplicate of the one it has, live or dead.",
           requeue_checks::one_successor},
    clause{"REQUEUE-04", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not dead.", requeue_checks::refused_unless_dead},
    clause{"REQUEUE-05", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not stored, or is of another queue.",
           requeue_checks::refused_if_absent},
    clause{"REQUEUE-06", layer::examples, level::must, needs::nothing,
           "A refused draft stops neither the rest of its batch nor the transaction.",
           requeue_checks::refusal_stops_nothing},
    clause{"REQUEUE-07", layer::examples, level::must, needs::nothing,
           "Generations count on, and all of them share the key.", requeue_checks::generations_count},
    clause{"REQUEUE-08", layer::examples, level::must, needs::nothing,
           "A successor whose id is stored is a duplicate of itself, whatever its predecessor, which stays free.",
           requeue_checks::stored_id_comes_first},
    clause{"REQUEUE-09", layer::examples, level::must, needs::nothing,
           "An entry can die and be replaced in one transaction.", requeue_checks::dies_and_is_replaced_at_once},
    clause{"REQUEUE-10", layer::examples, level::must, needs::nothing,
           "Requeue makes a successor with the dead entry's content that starts afresh: no progress, no expiry.",
           requeue_checks::requeue_starts_afresh},
    clause{"REQUEUE-11", layer::examples, level::must, needs::nothing,
           "Resume makes a successor that goes on from the dead entry's last checkpoint.",
           requeue_checks::resume_goes_on},
    clause{"REQUEUE-12", layer::examples, level::must, needs::nothing,
           "Requeue and resume refuse an entry that has a parent.", requeue_checks::parented_is_refused},
    clause{"REQUEUE-13", layer::examples, level::may, needs::lanes,
           "A successor joins its lane at the end, by its new sequence.", requeue_checks::behind_in_its_lane},
    clause{"REQUEUE-14", layer::examples, level::must, needs::nothing,
           "A successor begins without lapses, whatever the dead entry had.", requeue_checks::lapses_end_with_the_dead},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/settle.hpp
// Settle: what each outcome makes of every field of the entry, and which ticket entitles to it.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace settle_checks {

/// Entry 1, with something in every field that a settle might touch by mistake: it has failed once, was due at 20 and
/// is claimed for the second time, at 30.
[[nodiscard]] inline entry second_claim(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .expires_at = at(500), .progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"first", at(20)}, at(10));
    std::ignore = take_one(store, at(30));
    return get(store, 1);
}

/// Settles at 40, which must count, and compares the whole entry with `expected`, whose claim is over at 40.
inline void settle_at_40(any_store& store, const outcome& o, entry expected) {
    expected.lease_until.reset();
    expected.updated_at = at(40);
    trial::equal(settle(store, ticket_of(expected), o, at(40)), settlement{verdict::applied}, "the settle");
    trial::equal(get(store, 1), expected, "the entry after the settle");
}

/// That entry 1 can be claimed from `due` on.
inline void due_from(any_store& store, time_point due) {
    trial::equal(store.next_due("q"), std::optional{due}, "next_due");
    trial::equal(numbers(take(store, due - duration{1})), list_of{}, "claimed one microsecond before it is due");
    trial::equal(numbers(take(store, due)), list_of{1}, "claimed when it is due");
}

inline void succeed_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::succeeded;
    expected.result = "done";
    settle_at_40(store, succeed{"done"}, expected);
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
}

inline void retry_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::retrying;
    expected.failures = 2;
    expected.last_error = "second";
    expected.due_at = at(90);
    settle_at_40(store, retry{"second", at(90)}, expected);
    due_from(store, at(90));
    std::ignore = settle(store, {id_of(1), 3}, retry{"", at(95)}, at(90));
    t.equal(get(store, 1).last_error, std::string{}, "last_error after a retry that gives none");
}

inline void retry_at_any_time(trial& t) {
    for (const auto due : {at(39), at(40), at(41)}) { // past, present, future
        auto store = t.open(t.fresh_place());
        std::ignore = second_claim(store);
        std::ignore = settle(store, {id_of(1), 2}, retry{"e", due}, at(40));
        t.equal(get(store, 1).due_at, due, "due_at");
        due_from(store, due);
    }
}

inline void bury_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::dead;
    expected.failures = 2;
    expected.last_error = "second";
    expected.result = "a reply";
    settle_at_40(store, bury{"second", "a reply"}, expected);
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
}

inline void empty_is_a_result(trial& t) {
    const std::optional<std::string> none{};
    const std::optional<std::string> empty{""};
    const auto result_of = [&](const outcome& o) {
        auto store = t.open(t.fresh_place());
        std::ignore = second_claim(store);
        std::ignore = settle(store, {id_of(1), 2}, o, at(40));
        return get(store, 1).result;
    };
    t.equal(result_of(succeed{""}), empty, "the result of a succeed with an empty one");
    t.equal(result_of(bury{"e", ""}), empty, "the result of a bury with an empty one");
    t.equal(result_of(bury{"e", std::nullopt}), none, "the result of a bury without one");
}

inline void bytes_are_kept(trial& t) {
    auto store = t.open();
    std::ignore = second_claim(store);
    const std::string bytes("a\0\xff\n", 4);
    std::ignore = settle(store, {id_of(1), 2}, advance{bytes, at(40)}, at(40));
    t.equal(get(store, 1).progress, bytes, "the progress");
    std::ignore = settle(store, take_one(store, at(40)), succeed{bytes}, at(40));
    t.equal(get(store, 1).result, std::optional{bytes}, "the result");
}

inline void release_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::retrying;
    expected.attempts = 1;
    settle_at_40(store, release{}, expected); // due_at stays 20
    due_from(store, at(20));
}

inline void release_of_first_attempt(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(20)}));
    std::ignore = take_one(store, at(30));
    auto expected = get(store, 1);
    expected.state = state::pending;
    expected.attempts = 0;
    settle_at_40(store, release{}, expected);
    due_from(store, at(20));
}

inline void release_at_another_time(trial& t) {
    for (const auto due : {at(10), at(40), at(90)}) {
        auto store = t.open(t.fresh_place());
        auto expected = second_claim(store);
        expected.state = state::retrying;
        expected.attempts = 1;
        expected.due_at = due;
        settle_at_40(store, release{due}, expected);
        due_from(store, due);
    }
}

inline void release_goes_by_attempts(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = settle(store, take_lapsed(store, 1, 2), release{}, at(210)); // the second lapse was an attempt
    t.equal(get(store, 1).state, state::retrying, "an entry without failures, but with an attempt left to its count");
    std::ignore = settle(store, take_one(store, at(220)), retry{"e", at(230)}, at(230));
    std::ignore = settle(store, take_one(store, at(230)), advance{"p", at(240)}, at(240));
    std::ignore = settle(store, take_one(store, at(240)), release{}, at(250));
    t.equal(get(store, 1).state, state::pending, "an entry with a failure, but no attempt left to its count");
}

inline void release_costs_nothing(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        t.equal(take_one(store, at(0)), ticket{id_of(1), epoch}, "the ticket of the claim");
        t.equal(get(store, 1).attempts, 1U, "attempts while it is claimed");
        std::ignore = settle(store, {id_of(1), epoch}, release{}, at(0));
        t.equal(get(store, 1).attempts, 0U, "attempts after the release");
    }
}

inline void advance_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::pending;
    expected.attempts = 0;
    expected.progress = "further";
    expected.due_at = at(90);
    settle_at_40(store, advance{"further", at(90)}, expected);
    due_from(store, at(90));
}

inline void advance_now(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::pending;
    expected.attempts = 0;
    expected.progress = "";
    expected.due_at = at(40);
    settle_at_40(store, advance{"", std::nullopt}, expected);
    due_from(store, at(40));
}

inline void counters(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (std::uint32_t n = 1; n <= 300; ++n) { // more than a byte can count
        std::ignore = settle(store, take_one(store, at(n)), retry{"e", at(n)}, at(n));
    }
    const auto e = get(store, 1);
    t.equal(std::vector<std::uint64_t>{e.attempts, e.failures, e.epoch}, std::vector<std::uint64_t>{300, 300, 300},
            "attempts, failures and epoch after 300 failures");
}

inline void by_ticket_not_by_time(trial& t) {
    for (const auto now : {at(-1), at(99), at(100), at(101), at(1'000'000'000)}) { // the lease ends at 100
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        t.equal(settle(store, ticket, succeed{}, now), settlement{verdict::applied}, "the settle at " + show(now));
        t.equal(get(store, 1).updated_at, now, "updated_at");
    }
}

inline void taken_over(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto first = take_one(store, at(0), {.worker = "w"});
    const auto second = take_one(store, at(100), {.worker = "w"}); // the name does not matter
    const auto before = look(store);
    t.equal(settle(store, first, succeed{"old"}, at(110)), settlement{verdict::stale}, "the settle of the first claim");
    unchanged(store, before, "a claim that was taken over settles nothing");
    t.equal(settle(store, second, succeed{"new"}, at(110)), settlement{verdict::applied}, "that of the second");
    t.equal(get(store, 1).result, std::optional<std::string>{"new"}, "the result");
}

inline void ticket_is_used_up(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(0)}, bury{"e", "r"}, release{}, advance{"p", {}}};
    for (const auto& first : outcomes) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        std::ignore = settle(store, ticket, first, at(1));
        const auto before = look(store);
        for (const auto& second : outcomes) {
            t.equal(settle(store, ticket, second, at(2)), settlement{verdict::repeated}, "the second settle");
        }
        unchanged(store, before, "a ticket that is used up settles nothing");
    }
}

inline void by_id(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    put(store, draft_of(2, {.queue = "r"}));
    std::ignore = take_one(store, at(0));
    std::ignore = take_one(store, at(0), {.queue = "r"});
    const auto first = get(store, 1);
    t.equal(settle(store, {id_of(2), 1}, succeed{"r"}, at(1)), settlement{verdict::applied}, "the settle");
    t.equal(get(store, 1), first, "the entry whose claim has the same epoch");
    t.equal(get(store, 2).state, state::succeeded, "the state of the entry that was settled");
}

inline void batch(trial& t) {
    auto store = t.open();
    t.equal(transact(store, [](auto& tx) { return tx.settle({}, at(1)); }), std::vector<settlement>{},
            "the answers to none");
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n, {.due_at = at(n == 3 ? 50 : 0)}));
    }
    std::ignore = take(store, at(0));
    const std::array settles{vouch::settle{{id_of(4), 1}, succeed{}}, vouch::settle{{id_of(2), 1}, bury{"e", "2"}},
                             vouch::settle{{id_of(1), 7}, succeed{}}, vouch::settle{{id_of(3), 0}, succeed{}},
                             vouch::settle{{id_of(1), 1}, succeed{"1"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers,
            std::vector<settlement>{
                {verdict::unknown}, {verdict::applied}, {verdict::stale}, {verdict::repeated}, {verdict::applied}},
            "the answers, in the order of the settles");
    t.equal(get(store, 1).result, std::optional<std::string>{"1"}, "the result of the last settle");
    t.equal(get(store, 2).result, std::optional<std::string>{"2"}, "the result of the second settle");
    t.equal(get(store, 3).state, state::pending, "the state of an entry that was not claimed");
}

inline void alike_in_a_batch(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 12; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take(store, at(0));
    std::ignore = take(store, at(100), {.only = id_of(4)}); // taken over
    settle(store, {id_of(9), 1}, succeed{}, at(100));       // used up
    settle(store, {id_of(11), 1}, release{}, at(100));      // handed back
    for (const std::uint64_t first : {1U, 7U}) {
        std::vector<vouch::settle> settles;
        std::vector<settlement> expected;
        for (auto n = first; n < first + 6; ++n) {
            settles.push_back({{id_of(n), 1}, succeed{}});
            expected.push_back({n == 4 ? verdict::stale : n == 9 || n == 11 ? verdict::repeated : verdict::applied});
        }
        t.equal(transact(store, [&](auto& tx) { return tx.settle(settles, at(101)); }), expected, "the answers");
    }
    t.equal(get(store, 4).state, state::claimed, "the state of the entry that was taken over");
    t.equal(get(store, 9).updated_at, at(100), "the last change of the entry that had succeeded");
    t.equal(get(store, 10).state, state::succeeded, "the state of the entry after it");
    t.equal(get(store, 11).state, state::pending, "the state of the entry that was handed back");
}

inline void twice_in_a_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const std::array settles{vouch::settle{ticket, retry{"e", at(5)}}, vouch::settle{ticket, succeed{"r"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers, std::vector<settlement>{{verdict::applied}, {verdict::repeated}}, "the answers");
    t.equal(get(store, 1).state, state::retrying, "the state is what the first settle said");
}

inline void invalid_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    const auto& limits = t.can().limits;
    const std::string error(limits.error_max + 1, 'e');
    for (const outcome& wrong : {outcome{retry{error, at(5)}}, outcome{bury{error, {}}}, outcome{retry{"\n", at(5)}},
                                 outcome{succeed{std::string(limits.result_max + 1, 'r')}},
                                 outcome{bury{"e", std::string(limits.result_max + 1, 'r')}},
                                 outcome{advance{std::string(limits.progress_max + 1, 'p'), {}}}}) {
        const std::array settles{vouch::settle{ticket, succeed{}}, vouch::settle{ticket, wrong}};
        auto tx = store.begin();
        t.throws(error_kind::invalid_argument, "a settle beyond a limit",
                 [&] { std::ignore = tx.settle(settles, at(1)); });
        tx.commit();
        unchanged(store, before, "a settle beyond a limit rejects its whole batch");
    }
}

inline void rolled_back(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, ticket, succeed{}, at(0)), settlement{verdict::applied},
                "the settle that is rolled back");
    }
    unchanged(store, before, "a settle in a transaction that rolls back never happened");
    t.equal(settle(store, ticket, succeed{}, at(0)), settlement{verdict::applied}, "the settle that is committed");
}

inline void outcomes_end_the_row(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", {}}}, outcome{retry{"e", at(210)}},
                             outcome{advance{"p", at(210)}}}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        std::ignore = settle(store, take_lapsed(store, 1, 2), o, at(210));
        const auto settled = get(store, 1);
        t.equal(settled.lapses, 0U, "lapses of an entry that is " + show(settled.state));
        if (is_live(settled.state)) {
            std::ignore = take_one(store, at(210));
            std::ignore = take_one(store, at(310));
            t.equal(get(store, 1).lapses, 1U, "lapses after the next one");
            t.equal(get(store, 1).attempts, settled.attempts + 1, "attempts after that, which is a first lapse again");
        }
    }
}

inline void release_keeps_lapses(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto mine = take_lapsed(store, 1, 1);
    auto expected = get(store, 1);
    std::ignore = settle(store, mine, release{}, at(110));
    expected.state = state::pending;
    expected.attempts = 0;
    expected.lease_until.reset();
    expected.updated_at = at(110);
    t.equal(get(store, 1), expected, "the entry that was released after a lapse");
    std::ignore = take_one(store, at(110));
    std::ignore = take_one(store, at(210));
    t.equal(get(store, 1).lapses, 2U, "lapses after another one");
    t.equal(get(store, 1).attempts, 2U, "attempts after that, which is a second lapse");
}

inline void own_results(trial& t) {
    auto store = t.open();
    std::vector<vouch::settle> settles;
    std::vector<std::string> expected{"same", "same", "", "other", "same", "last"};
    for (const auto& result : expected) {
        const auto n = settles.size() + 1;
        put(store, draft_of(n));
        settles.push_back({{id_of(n), 1}, succeed{result}});
    }
    std::ignore = take(store, at(0));
    std::ignore = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    std::vector<std::string> seen;
    for (std::uint64_t n = 1; n <= expected.size(); ++n) {
        seen.push_back(get(store, n).result.value_or("none"));
    }
    t.equal(seen, expected, "the results of neighbours that succeeded in one batch");
}

} // namespace settle_checks

inline constexpr std::array settling{
    clause{"SETTLE-01", layer::examples, level::must, needs::nothing,
           "succeed: the state is succeeded and the result is stored; of the rest only lapses, lease_until and "
           "updated_at change, so last_error, failures and due_at stay.",
           settle_checks::succeed_fields},
    clause{
        "SETTLE-02", layer::examples, level::must, needs::nothing,
        "retry: the state is retrying, failures grows by one, last_error and due_at are those given; attempts, epoch "
        "and progress stay.",
        settle_checks::retry_fields},
    clause{"SETTLE-03", layer::examples, level::must, needs::nothing,
           "retry: the entry is due exactly at the time given, be it past, present or future.",
           settle_checks::retry_at_any_time},
    clause{"SETTLE-04", layer::examples, level::must, needs::nothing,
           "bury: the state is dead, failures grows by one, last_error and result are those given; attempts, epoch, "
           "due_at and progress stay.",
           settle_checks::bury_fields},
    clause{"SETTLE-05", layer::examples, level::must, needs::nothing,
           "An empty result is a result; only a bury without one leaves none.", settle_checks::empty_is_a_result},
    clause{"SETTLE-06", layer::examples, level::must, needs::nothing, "Result and progress are kept to the byte.",
           settle_checks::bytes_are_kept},
    clause{"SETTLE-07", layer::examples, level::must, needs::nothing,
           "release: gives back one attempt, and with attempts left the state is retrying; due_at, failures and "
           "last_error stay.",
           settle_checks::release_fields},
    clause{"SETTLE-08", layer::examples, level::must, needs::nothing,
           "release: of the first attempt makes the entry pending again, due when it was due before.",
           settle_checks::release_of_first_attempt},
    clause{"SETTLE-09", layer::examples, level::must, needs::nothing,
           "release: with a time the entry is due exactly then, be it earlier or later than before.",
           settle_checks::release_at_another_time},
    clause{"SETTLE-10", layer::examples, level::must, needs::nothing,
           "release: whether the entry is pending or retrying depends on its attempts, not on its failures.",
           settle_checks::release_goes_by_attempts},
    clause{"SETTLE-11", layer::examples, level::must, needs::nothing,
           "release: attempts go down again, the epoch never does.", settle_checks::release_costs_nothing},
    clause{
        "SETTLE-12", layer::examples, level::must, needs::nothing,
        "advance: the state is pending, progress and due_at are those given, attempts is 0; failures, last_error and "
        "epoch stay.",
        settle_checks::advance_fields},
    clause{"SETTLE-13", layer::examples, level::must, needs::nothing,
           "advance: without a time the entry is due now; an empty progress replaces the one before.",
           settle_checks::advance_now},
    clause{"SETTLE-14", layer::examples, level::must, needs::nothing,
           "attempts, failures and epoch count every claim and every failure, however many.", settle_checks::counters},
    clause{"SETTLE-15", layer::examples, level::must, needs::nothing,
           "A settle goes by its ticket and never by time: a lease that is over but not taken over still settles.",
           settle_checks::by_ticket_not_by_time},
    clause{"SETTLE-16", layer::examples, level::must, needs::nothing,
           "Once an entry is taken over, the earlier ticket is stale, even if the worker has the same name.",
           settle_checks::taken_over},
    clause{"SETTLE-17", layer::examples, level::must, needs::nothing,
           "A ticket settles once: whatever is said under it a second time is repeated and changes nothing.",
           settle_checks::ticket_is_used_up},
    clause{"SETTLE-18", layer::examples, level::must, needs::nothing,
           "A settle concerns the entry of its ticket's id only.", settle_checks::by_id},
    clause{"SETTLE-19", layer::examples, level::must, needs::nothing,
           "A batch of settles is answered item by item, in order; one that is not applied stops none of the others.",
           settle_checks::batch},
    clause{"SETTLE-20", layer::examples, level::must, needs::nothing,
           "Of two settles under one ticket in a batch the first is applied, the second repeated.",
           settle_checks::twice_in_a_batch},
    clause{"SETTLE-21", layer::examples, level::must, needs::nothing,
           "A settle whose error, result or progress is out of bounds throws invalid_argument; nothing of its batch is "
           "written.",
           settle_checks::invalid_batch},
    clause{"SETTLE-22", layer::examples, level::must, needs::nothing,
           "A settle in a transaction that rolls back never happened: the ticket is still good.",
           settle_checks::rolled_back},
    clause{"SETTLE-23", layer::examples, level::must, needs::nothing,
           "Settles in a batch that differ in their ids only are judged each by its own ticket.",
           settle_checks::alike_in_a_batch},
    clause{"SETTLE-24", layer::examples, level::must, needs::nothing,
           "succeed, retry, bury and advance set lapses to 0: the next lapse is a first one again.",
           settle_checks::outcomes_end_the_row},
    clause{"SETTLE-25", layer::examples, level::must, needs::nothing,
           "release: keeps lapses, and gives back an attempt after a lapse, too.", settle_checks::release_keeps_lapses},
    clause{"SETTLE-26", layer::examples, level::must, needs::nothing,
           "Entries that succeed in one batch get each its own result.", settle_checks::own_results},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/expected_entries.hpp
// What a simulation knows of every entry, made from what was asked of the store and not from what it answers: entries,
// lanes, keys and groups as they must be.

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulation_picture {
  public:
    /// An entry as it must be.
    struct known {
        vouch::entry entry{};
        vouch::id successor{};
        bool frozen = false; ///< terminal and seen as such: `entry` is what is stored, to the byte
    };

    // Looking.

    [[nodiscard]] const std::map<id, known>& stored() const noexcept { return stored_; }
    [[nodiscard]] std::map<id, known>& stored() noexcept { return stored_; }
    [[nodiscard]] known* find(const id& wanted) {
        const auto at = stored_.find(wanted);
        return at == stored_.end() ? nullptr : &at->second;
    }
    [[nodiscard]] std::size_t live() const {
        return static_cast<std::size_t>(
            std::count_if(stored_.begin(), stored_.end(), [](const auto& k) { return is_live(k.second.entry.state); }));
    }
    [[nodiscard]] bool is_blocked(const entry& e) const {
        return !e.lane.empty() && lanes_.at({e.queue, e.lane}).front() != e.id;
    }
    [[nodiscard]] bool is_due(const entry& e, time_point now) const {
        return is_live(e.state) && !is_blocked(e) && (e.state == state::claimed ? *e.lease_until : e.due_at) <= now;
    }
    /// Whether a live entry needs this one.
    [[nodiscard]] bool is_needed(const entry& e) const {
        return std::any_of(stored_.begin(), stored_.end(), [&](const auto& other) {
            const auto& o = other.second.entry;
            return is_live(o.state) && (o.parent == e.id || (!e.group.empty() && o.group == e.group));
        });
    }

    [[nodiscard]] receipt receipt_of(const draft& d) {
        const auto* const predecessor = find(d.predecessor);
        const auto keyed = d.key.empty() ? newest_.end() : newest_.find({d.queue, d.key});
        if (find(d.id) != nullptr) {
            return {receipt::kind::duplicate, d.id};
        }
        if (!d.predecessor.is_nil() && (predecessor == nullptr || predecessor->entry.state != state::dead)) {
            return {};
        }
        if (predecessor != nullptr && !predecessor->successor.is_nil()) {
            return {receipt::kind::duplicate, predecessor->successor};
        }
        return keyed != newest_.end() ? receipt{receipt::kind::duplicate, keyed->second}
                                      : receipt{receipt::kind::inserted, d.id};
    }

    [[nodiscard]] static verdict verdict_of(const known* k, const ticket& t) {
        if (k == nullptr) {
            return verdict::unknown;
        }
        if (k->entry.epoch != t.epoch) {
            return verdict::stale;
        }
        return k->entry.state == state::claimed ? verdict::applied : verdict::repeated;
    }

    [[nodiscard]] static verdict verdict_of_cancel(const known* k, time_point now) {
        if (k == nullptr) {
            return verdict::unknown;
        }
        const auto& e = k->entry;
        if (e.state == state::dead) {
            return verdict::repeated;
        }
        const bool is_held = e.state == state::claimed && *e.lease_until > now;
        return e.state == state::succeeded || is_held ? verdict::stale : verdict::applied;
    }

    // Changing, when the store has said that it did.

    void insert(const draft& d, time_point now) {
        auto* const predecessor = find(d.predecessor);
        auto& e = stored_[d.id].entry;
        e = born(d, now);
        if (predecessor != nullptr) {
            e.key = predecessor->entry.key;
            e.group = predecessor->entry.group;
            e.lane = predecessor->entry.lane;
            e.generation = predecessor->entry.generation + 1;
            predecessor->successor = d.id;
            unfinished_[e.group] -= 1; // its successor counts in its place
        }
        unfinished_[e.group] += e.state == state::succeeded ? 0 : 1;
        if (!e.key.empty()) {
            newest_[{e.queue, e.key}] = e.id;
        }
        if (!e.lane.empty()) {
            lanes_[{e.queue, e.lane}].push_back(e.id);
        }
        touched_.insert(d.id);
    }

    void claim(entry& e, const claim_request& r) {
        e.attempts += e.state == state::claimed && e.lapses == 0 ? 0U : 1U;
        e.lapses += e.state == state::claimed ? 1U : 0U;
        e.state = state::claimed;
        e.epoch += 1;
        e.lease_until = r.now + r.lease;
        e.woken = false;
        e.updated_at = r.now;
        touched_.insert(e.id);
    }

    /// Says whether it completes the entry's group.
    [[nodiscard]] bool settle(entry& e, const outcome& o, time_point now) {
        const auto due = [&](time_point at) { e.due_at = e.woken ? std::min(at, now) : at; };
        e.lapses = std::holds_alternative<release>(o) ? e.lapses : 0;
        if (std::holds_alternative<succeed>(o)) {
            e.state = state::succeeded;
        } else if (const auto* const again = std::get_if<retry>(&o)) {
            e.state = state::retrying;
            e.failures += 1;
            due(again->at);
        } else if (std::holds_alternative<bury>(o)) {
            e.state = state::dead;
            e.failures += 1;
        } else if (const auto* const back = std::get_if<release>(&o)) {
            e.attempts -= 1;
            e.state = e.attempts == 0 ? state::pending : state::retrying;
            due(back->at.value_or(e.due_at));
        } else if (const auto* const further = std::get_if<advance>(&o)) {
            e.state = state::pending;
            e.attempts = 0;
            due(further->at.value_or(now));
        }
        end_claim(e, now);
        return e.state == state::succeeded && --unfinished_[e.group] == 0 && !e.group.empty();
    }

    void extend(entry& e, time_point now, duration lease) {
        e.lease_until = std::max(*e.lease_until, now + lease);
        e.updated_at = now;
        touched_.insert(e.id);
    }

    /// Nudges, and says what that is answered.
    verdict nudge(const id& wanted, time_point now) {
        auto* const k = find(wanted);
        if (k == nullptr) {
            return verdict::unknown;
        }
        auto& e = k->entry;
        if (is_terminal(e.state)) {
            return verdict::stale;
        }
        if (e.state == state::claimed ? e.woken : e.due_at <= now) {
            return verdict::repeated;
        }
        if (e.state == state::claimed) {
            e.woken = true;
        } else {
            e.due_at = now;
        }
        e.updated_at = now;
        touched_.insert(wanted);
        return verdict::applied;
    }

    void cancel(entry& e, time_point now) {
        e.epoch += e.state == state::claimed ? 1U : 0U;
        e.state = state::dead;
        end_claim(e, now);
    }

    void remove(const known& k) {
        const auto& e = k.entry;
        unfinished_[e.group] -= e.state == state::dead && k.successor.is_nil() ? 1 : 0;
        if (const auto key = newest_.find({e.queue, e.key}); key != newest_.end() && key->second == e.id) {
            newest_.erase(key);
        }
        stored_.erase(id(e.id));
    }

    /// The entries that have changed since this was asked last.
    [[nodiscard]] std::set<id> take_touched() { return std::exchange(touched_, {}); }

  private:
    void end_claim(entry& e, time_point now) {
        e.lease_until.reset();
        e.woken = false;
        e.updated_at = now;
        touched_.insert(e.id);
        if (is_terminal(e.state) && !e.lane.empty()) {
            std::erase(lanes_.at({e.queue, e.lane}), e.id);
        }
        if (is_terminal(e.state) && !e.parent.is_nil()) {
            nudge(e.parent, now);
        }
    }

    std::map<id, known> stored_{};
    std::map<std::pair<std::string, std::string>, std::vector<id>> lanes_{}; ///< live ones, as they came
    std::map<std::pair<std::string, std::string>, id> newest_{};             ///< by queue and key
    std::map<std::string, std::int64_t> unfinished_{};                       ///< by group
    std::set<id> touched_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/monitor.hpp
// What must hold at any time of a simulation, held against the committed calls of a recording: no ticket twice, no
// settle but under the ticket that counts, terminal entries as they were, lanes in order, groups completed once per
// fall to zero, emissions exactly with their settle, handlers called once per ticket and not too often, no entry
// dead of lapses it shared with others, nothing gone that was not purged. What does not hold is a `failure`.

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulation_watch {
  public:
    using known = simulation_picture::known;

    /// The topic of the entry that the completion of a group enqueues.
    static constexpr std::string_view completion_topic = "group.done";

    // What happens.

    /// A call of a transaction that was committed.
    void see(const call& c) {
        switch (c.what) {
        case call::operation::begin: transaction_ = {}; break;
        case call::operation::enqueue: enqueued(c); break;
        case call::operation::claim: claimed(c); break;
        case call::operation::settle:
            for (std::size_t i = 0; i < c.settles.size(); ++i) {
                settled(c.settles[i], c.settlements[i], c.now);
            }
            break;
        case call::operation::extend: extended(c); break;
        case call::operation::nudge:
            trial::equal(c.verdicts[0], picture_.nudge(c.id, c.now), "nudge " + show(c.id));
            break;
        case call::operation::cancel: cancelled(c); break;
        case call::operation::purge: purge_ = c; break;
        case call::operation::commit: committed(); break;
        case call::operation::roll_back: break;
        }
    }

    /// A handler is called.
    void called(const ticket& t, std::uint32_t attempt, std::uint32_t attempts_max) {
        trial::expect(called_.insert(t).second, "a handler is called once per ticket, not again for " + show(t));
        trial::expect(attempt <= attempts_max, "a handler is called for attempt " + std::to_string(attempt) + " of " +
                                                   show(t.id) + ", which has " + std::to_string(attempts_max));
    }
    /// It emits.
    void emitted(const ticket& by, const id& emission) {
        emitter_[emission] = by;
        emissions_[by].push_back(emission);
    }

    // What is asked.

    [[nodiscard]] const std::map<id, known>& stored() const noexcept { return picture_.stored(); }
    [[nodiscard]] std::size_t live() const { return picture_.live(); }
    [[nodiscard]] bool is_applied(const ticket& t) const { return applied_.contains(t); }

    /// Holds what the last calls touched against what is stored.
    void compare(const any_store& store) {
        if (purge_) {
            purged(store, *std::exchange(purge_, std::nullopt));
        }
        for (const auto& touched : picture_.take_touched()) {
            if (auto* const k = picture_.find(touched)) {
                compare(store, *k);
            }
        }
    }

    /// Holds everything against what is stored.
    void compare_all(const any_store& store) {
        std::map<std::string, std::size_t> counts;
        for (auto& [i, k] : picture_.stored()) {
            compare(store, k);
            ++counts[k.entry.queue];
        }
        for (const auto& [queue, count] : counts) {
            trial::equal(store.counts(queue).total(), count, "entries of " + queue);
        }
    }

  private:
    /// What the transaction that is seen has done so far.
    struct deeds {
        std::set<id> enqueued{};
        std::set<id> inserted{};
        std::set<ticket> claimed{}; ///< and not settled
        std::set<ticket> gone_on{}; ///< settled with succeed or advance
        std::size_t completions = 0;
        std::size_t marks = 0; ///< entries that tell of a completion
    };

    void enqueued(const call& c) {
        for (std::size_t i = 0; i < c.drafts.size(); ++i) {
            const auto& d = c.drafts[i];
            trial::equal(c.receipts[i], picture_.receipt_of(d), "enqueue " + show(d.id));
            transaction_.enqueued.insert(d.id);
            if (c.receipts[i].what == receipt::kind::inserted) {
                picture_.insert(d, c.now);
                transaction_.inserted.insert(d.id);
                transaction_.marks += d.topic == completion_topic && d.predecessor.is_nil() ? 1U : 0U;
            }
        }
    }

    void claimed(const call& c) {
        const auto& r = c.wanted;
        trial::expect(c.claimed.size() <= r.limit, "a claim gives no more than its limit");
        for (const auto& got : c.claimed) {
            const auto name = "the claim of " + show(ticket_of(got));
            auto* const k = picture_.find(got.id);
            trial::expect(k != nullptr && k->entry.queue == r.queue, name + " is of an entry in that queue");
            auto& e = k->entry;
            trial::expect(is_live(e.state), name + " is of an entry that has not ended");
            trial::equal(got.epoch, e.epoch + 1, name + " gives a ticket that nobody had");
            trial::expect(!picture_.is_blocked(e), name + " keeps the order of its lane");
            trial::expect(e.state != state::claimed || *e.lease_until <= r.now,
                          name + " takes no entry from somebody whose lease runs until " +
                              show_date(e.lease_until.value_or(time_point{})));
            trial::expect(picture_.is_due(e, r.now), name + " is of an entry that is due");
            if (e.state == state::claimed && alone_.contains(ticket_of(e))) {
                lapsed_alone_.insert(e.id);
            }
            picture_.claim(e, r);
            transaction_.claimed.insert(ticket_of(e));
        }
        for (const auto& [i, k] : picture_.stored()) {
            const bool passed_over = c.claimed.size() < r.limit && k.entry.queue == r.queue &&
                                     (r.only.is_nil() || r.only == i) && picture_.is_due(k.entry, r.now);
            if (passed_over) {
                trial::fail("a claim passes over " + show(i) + ", which is due", {}, show(k.entry));
            }
        }
    }

    void settled(const vouch::settle& s, const settlement& given, time_point now) {
        auto* const k = picture_.find(s.ticket.id);
        trial::equal(given.verdict, picture_.verdict_of(k, s.ticket),
                     "a settle under " + show(s.ticket) +
                         (k == nullptr ? ", whose entry is gone"
                                       : ", whose entry is " + show(k->entry.state) + " at epoch " +
                                             std::to_string(k->entry.epoch)));
        if (given.verdict != verdict::applied) {
            trial::expect(!given.group_completed, "a settle that does nothing completes no group");
            return;
        }
        trial::expect(applied_.insert(s.ticket).second, "a ticket is used once");
        transaction_.claimed.erase(s.ticket);
        ends_row(s);
        if (std::holds_alternative<succeed>(s.outcome) || std::holds_alternative<advance>(s.outcome)) {
            transaction_.gone_on.insert(s.ticket);
        }
        const bool completes = picture_.settle(k->entry, s.outcome, now);
        transaction_.completions += completes ? 1U : 0U;
        trial::equal(given.group_completed, completes,
                     "the settle of " + show(s.ticket) + " completes the group " + show(k->entry.group));
    }

    /// An entry uses up its attempts only by lapses of claims that its process held alone.
    void ends_row(const vouch::settle& s) {
        const auto* const end = std::get_if<bury>(&s.outcome);
        trial::expect(end == nullptr || end->error != "attempts_exhausted" || lapsed_alone_.contains(s.ticket.id),
                      show(s.ticket.id) + " has used up its attempts, so one of its claims lapsed while it was alone");
        if (!std::holds_alternative<release>(s.outcome)) {
            lapsed_alone_.erase(s.ticket.id);
        }
    }

    void extended(const call& c) {
        for (std::size_t i = 0; i < c.tickets.size(); ++i) {
            auto* const k = picture_.find(c.tickets[i].id);
            trial::equal(c.verdicts[i], picture_.verdict_of(k, c.tickets[i]), "extend " + show(c.tickets[i]));
            if (c.verdicts[i] == verdict::applied) {
                picture_.extend(k->entry, c.now, c.lease);
            }
        }
    }

    void cancelled(const call& c) {
        auto* const k = picture_.find(c.id);
        trial::equal(c.verdicts[0], picture_.verdict_of_cancel(k, c.now), "cancel " + show(c.id));
        if (c.verdicts[0] == verdict::applied) {
            picture_.cancel(k->entry, c.now);
        }
    }

    void committed() {
        for (const auto& i : transaction_.inserted) {
            const auto by = emitter_.find(i);
            trial::expect(by == emitter_.end() || transaction_.gone_on.contains(by->second),
                          "an emission, " + show(i) + ", is stored with the settle of its entry only");
        }
        for (const auto& t : transaction_.gone_on) {
            const auto all = emissions_.find(t);
            for (const auto& i : all == emissions_.end() ? std::vector<id>{} : all->second) {
                trial::expect(transaction_.enqueued.contains(i),
                              "the settle under " + show(t) + " comes with its emission " + show(i));
            }
        }
        trial::equal(transaction_.marks, transaction_.completions, "completed groups that were told of");
        if (transaction_.claimed.size() == 1) { // runners settle all they hold before they claim
            alone_.insert(*transaction_.claimed.begin());
        }
    }

    void compare(const any_store& store, known& k) {
        const auto found = store.find(k.entry.id);
        if (!found) {
            trial::fail("an entry that nobody purged is stored", "no " + show(k.entry.id), show(k.entry));
        }
        if (!k.frozen) { // what these hold is other clauses' business, until the entry has ended
            auto& e = k.entry;
            e.sequence = found->sequence;
            e.result = found->result;
            e.progress = found->progress;
            e.worker = found->worker;
            e.last_error = found->last_error;
            e.last_attempt_at = found->last_attempt_at;
            k.frozen = is_terminal(e.state);
        }
        trial::equal(*found, k.entry, "the entry " + show(k.entry.id) + " as it is stored");
    }

    void purged(const any_store& store, const call& c) {
        std::vector<known> gone;
        for (const auto& [i, k] : picture_.stored()) {
            if (k.entry.queue == c.purge.queue && is_terminal(k.entry.state) && !store.find(i)) {
                gone.push_back(k);
                trial::expect(k.entry.updated_at < c.purge.before, "what ended later is not purged, as was " + show(i));
                trial::expect(!picture_.is_needed(k.entry), "what a live entry needs is not purged, as was " + show(i));
            }
        }
        for (const auto& k : gone) {
            picture_.remove(k);
        }
        trial::equal(gone.size(), c.purged, "entries that a purge removed");
    }

    simulation_picture picture_{};
    std::map<id, ticket> emitter_{};
    std::map<ticket, std::vector<id>> emissions_{};
    std::set<ticket> applied_{};
    std::set<ticket> called_{};
    std::set<ticket> alone_{};    ///< of claims that took no other entry
    std::set<id> lapsed_alone_{}; ///< of entries with such a claim that lapsed, since their last outcome
    std::optional<call> purge_{}; ///< whose removals have not been looked for
    deeds transaction_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/context.hpp
// What everybody in a simulated world shares: the store with its faults and its recording, the true time, the dice, the
// rules runners go by, and the story of what happened.

namespace vouch {
inline namespace v0 {
namespace conformance {

using simulated_store = faulty<recording<any_store>>;

/// The last lines of what happened, and all of them if somebody wants to compare.
class simulation_story {
  public:
    void add(std::string line) {
        constexpr std::size_t lines_max = 40;
        if (keeps_all) {
            all.push_back(line);
        }
        last_.push_back(std::move(line));
        if (last_.size() > lines_max) {
            last_.pop_front();
        }
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& line : last_) {
            out += line + '\n';
        }
        return out;
    }

    bool keeps_all = false;
    std::vector<std::string> all{};

  private:
    std::deque<std::string> last_{};
};

struct simulation_ground {
    simulation_ground(trial& in, std::uint64_t with)
        : t(in), seed(with), random(with), here(in.fresh_place()), truth(in.open(here)) {}
    simulation_ground(const simulation_ground&) = delete;
    simulation_ground& operator=(const simulation_ground&) = delete;

    trial& t;
    std::uint64_t seed;
    dice random;
    place here;
    any_store truth; ///< for looking on, without faults and unrecorded
    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    simulation_watch watch{};
    simulation_story story{};
    std::optional<failure> broken{}; ///< seen where it could not be thrown
    time_point now = start;          ///< the true one; clocks may be off
    bool is_calm = false;            ///< nothing goes wrong by chance
    std::uint64_t last_id = 0;

    // The rules of this world.
    std::size_t batch_size = 1 + random.below(5);
    duration lease = std::chrono::seconds{30} + seconds(270);
    std::uint32_t attempts_max = 2 + static_cast<std::uint32_t>(random.below(3));
    vouch::backoff backoff =
        random.chance(50) ? vouch::backoff(exponential{}) : vouch::backoff(fixed{std::chrono::seconds{20}, 0.5});
    std::size_t faults_percent = random.one_of<std::size_t>({0, 5, 10, 30});
    std::size_t crashes_permille = random.one_of<std::size_t>({0, 10, 30});

    [[nodiscard]] simulated_store open() const {
        return {recording<any_store>(t.can().shared ? t.open(here) : truth, calls), plan};
    }
    [[nodiscard]] id fresh_id() { return id_of(++last_id); }

    /// Less than so many, to the microsecond.
    [[nodiscard]] duration seconds(std::size_t most) {
        return duration{static_cast<duration::rep>(random.below(most * 1'000'000))};
    }
    /// How far a clock may be off.
    [[nodiscard]] duration skew() { return seconds(600) - std::chrono::seconds{300}; }

    /// One of the entries that are as wanted, or null.
    template <class Wanted>
    [[nodiscard]] const simulation_watch::known* pick(const Wanted& wanted) {
        std::vector<const simulation_watch::known*> all;
        for (const auto& [i, k] : watch.stored()) {
            if (wanted(k.entry)) {
                all.push_back(&k);
            }
        }
        return all.empty() ? nullptr : all[random.below(all.size())];
    }
    /// Of any entry; nil if there is none.
    [[nodiscard]] id some_id() {
        const auto* const k = pick([](const entry&) { return true; });
        return k == nullptr ? id{} : k->entry.id;
    }

    void note(const std::string& what) { story.add(show_date(now) + ' ' + what); }

    /// Does something with the store that may fail, by chance or by plan; then holds it against the rules.
    template <class Work>
    void attempt(const std::string& who, const Work& work) {
        const bool is_shaken = !is_calm && random.chance(faults_percent);
        if (is_shaken) {
            shake();
        }
        try {
            work();
        } catch (const error& e) {
            if (!plan->has_struck()) {
                throw;
            }
            note(who + " gets " + show(e.kind()) + (e.is_in_doubt() ? ", in doubt" : ""));
        }
        if (is_shaken) {
            plan->disarm();
        }
        look();
    }

    /// Runs `part`; if something does not hold, the story is what happened last.
    template <class Part>
    void told(const Part& part) {
        try {
            part();
        } catch (failure& f) {
            f.story = "world " + std::to_string(seed) + ", what happened last:\n" + story.text();
            throw;
        }
    }

  private:
    void shake() {
        const bool is_conflict = random.chance(25);
        plan->arm({.call = 1 + random.below(8),
                   .moment = random.chance(50) ? fault_moment::before : fault_moment::after,
                   .persistent = random.chance(20),
                   .kind = is_conflict ? error_kind::conflict : random.one_of({error_kind::io, error_kind::busy}),
                   .in_doubt = !is_conflict && random.chance(30)});
    }

    void look() {
        const auto newest = calls->take();
        for (const auto& c : newest) {
            using kind = call::operation;
            if (c.what != kind::begin && c.what != kind::commit && c.what != kind::roll_back) {
                story.add(to_string(c) + (c.became == call::fate::committed ? "" : " [rolled back]"));
            }
        }
        for (const auto& c : newest) {
            if (c.became == call::fate::committed) {
                watch.see(c);
            }
        }
        watch.compare(truth);
        if (broken) {
            throw failure(*broken);
        }
    }
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/simulated_runner.hpp
// A runner of a simulated world: the library's own, with a clock that may be off, stopped between any two phases, and
// started anew with nothing in hand when it has crashed.

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulated_runner {
  public:
    using handler = std::function<outcome(delivery&)>;

    simulated_runner(simulation_ground& on, handler work, std::string name, std::string queue)
        : ground_(on), work_(std::move(work)), name_(std::move(name)), queue_(std::move(queue)) {
        restart();
    }
    simulated_runner(const simulated_runner&) = delete;
    simulated_runner& operator=(const simulated_runner&) = delete;

    time_point paused_until{};

    [[nodiscard]] bool is_idle() const noexcept { return waiting_.empty() && done_.empty(); }
    [[nodiscard]] std::size_t in_hand() const noexcept { return waiting_.size() + done_.size(); }
    void set_skew(duration by) noexcept { skew_ = by; }
    void note(const std::string& what) { ground_.note("runner " + name_ + ' ' + what); }

    /// A new process: it knows nothing of what the old one had in hand.
    void restart() {
        waiting_.clear();
        done_.clear();
        runner_.reset();
        router_.reset();
        outbox_.reset();
        if (!store_ || (ground_.t.can().shared && ground_.random.chance(10))) {
            store_.reset();
            store_.emplace(ground_.open());
        }
        outbox_.emplace(*store_, emitter_options{.clock = clock_, .ids = [this] { return ground_.fresh_id(); }});
        router_.emplace(*outbox_).on("#", work_);
        runner_.emplace(*outbox_, *router_,
                        runner_options{.queue = queue_,
                                       .worker = name_,
                                       .batch_size = ground_.batch_size,
                                       .lease = ground_.lease,
                                       .retry = {.backoff = ground_.backoff, .attempts_max = ground_.attempts_max}});
        runner_->on_group_complete([this](auto& tx, const std::string&, const entry&) {
            const std::array marks{draft{
                .id = ground_.fresh_id(), .queue = "q", .topic = std::string(simulation_watch::completion_topic)}};
            tx.enqueue(marks, clock_());
        });
    }

    /// One phase: a claim, the call of a handler, or a settle. What a fault has stopped goes on with the next one.
    void phase() {
        clock_.set(ground_.now + skew_);
        ground_.attempt("runner " + name_, [&] { step(); });
        trial::expect(waiting_.size() < 2 ||
                          std::all_of(waiting_.begin(), waiting_.end(), [](const auto& e) { return e.lapses == 0; }),
                      "runner " + name_ + " holds an entry with a lapse alone");
        if (!done_.empty() && std::all_of(done_.begin(), done_.end(), [](const auto& h) { return !!h.result; })) {
            check_landings();
            done_.clear();
        }
    }

    /// Prolongs the lease of what it has in hand.
    void extend() {
        std::vector<ticket> mine;
        for (const auto& e : waiting_) {
            mine.push_back(ticket_of(e));
        }
        ground_.attempt("runner " + name_, [&] {
            transact(*store_, [&](auto& tx) { std::ignore = tx.extend(mine, ground_.now + skew_, ground_.lease); });
        });
    }

  private:
    void step() {
        auto& random = ground_.random;
        const bool is_calm = ground_.is_calm;
        if (!waiting_.empty() && (done_.empty() || is_calm || !random.chance(5))) {
            auto next = std::move(waiting_.front());
            waiting_.erase(waiting_.begin());
            done_.push_back(runner_->handle(std::move(next)));
        } else if (!done_.empty() && (!waiting_.empty() || random.chance(50))) {
            runner_->settle(done_);
        } else if (!done_.empty()) {
            waiting_ = runner_->settle_and_claim(done_).second;
        } else if (is_calm || random.chance(90)) {
            waiting_ = runner_->claim();
        } else if (const auto only = ground_.some_id(); !only.is_nil()) {
            waiting_ = runner_->claim(only);
        }
    }

    /// A runner says of no settle that it landed if it has not, nor the other way round unless it was in doubt: then
    /// it may have landed, and somebody claimed the entry since.
    void check_landings() const {
        for (const auto& h : done_) {
            const auto mine = ticket_of(h.entry);
            const bool is_purged = !ground_.watch.stored().contains(mine.id);
            const bool says_landed = h.result->what == vouch::detail::settle_result::kind::applied;
            if (!is_purged && (says_landed || !h.in_doubt)) {
                trial::equal(says_landed, ground_.watch.is_applied(mine),
                             "runner " + name_ + " says that its settle under " + show(mine) + " landed");
            }
        }
    }

    simulation_ground& ground_;
    handler work_;
    std::string name_;
    std::string queue_;
    manual_clock clock_{start};
    duration skew_{};
    std::optional<simulated_store> store_{};
    std::optional<outbox<simulated_store>> outbox_{};
    std::optional<router<simulated_store>> router_{};
    std::optional<runner<simulated_store>> runner_{};
    std::vector<entry> waiting_{};          ///< claimed, not handled
    runner<simulated_store>::batch done_{}; ///< handled, not settled
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/workload.hpp
// The work of a simulated world: what is enqueued, and what handlers do with it. Everything comes to an end: odd deeds
// are counted per entry, and emissions lead to emissions only so far.

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulation_work {
  public:
    explicit simulation_work(simulation_ground& on) : ground_(on) {}

    [[nodiscard]] emission next_emission() {
        auto& random = ground_.random;
        const auto& can = ground_.t.can();
        emission e{.queue = random.chance(60) ? "q" : "r", .topic = "work", .key = name("k", 12, 15)};
        e.group = can.groups ? name("g", 4, 30) : "";
        e.lane = can.lanes ? name("l", 3, 30) : "";
        e.parent = random.chance(15) ? ground_.some_id() : id{};
        if (random.chance(20)) {
            e.due_in = ground_.seconds(7200);
        }
        return e;
    }

    [[nodiscard]] draft next_draft() {
        auto& random = ground_.random;
        const auto e = next_emission();
        draft d{.id = ground_.fresh_id(), .queue = e.queue, .topic = e.topic, .key = e.key};
        if (random.chance(4)) {
            d.result = "born done";
            return d;
        }
        d.group = e.group;
        d.lane = e.lane;
        d.parent = e.parent;
        if (e.due_in) {
            d.due_at = ground_.now + *e.due_in;
        }
        if (random.chance(5)) {
            d.expires_at = ground_.now + ground_.seconds(7200);
        }
        d.attempts_max = random.chance(10) ? 1U + static_cast<std::uint32_t>(random.below(3)) : 0U;
        return d;
    }

    /// The handler of all topics.
    [[nodiscard]] outcome operator()(delivery& d) {
        try {
            const auto allowed = d.entry().attempts_max == 0 ? ground_.attempts_max : d.entry().attempts_max;
            ground_.watch.called(ticket_of(d.entry()), d.attempt(), allowed);
        } catch (const failure& f) {
            ground_.broken = f; // a runner takes every exception for the handler's
            throw;
        }
        constexpr std::size_t odd_deeds_max = 6;
        if (d.topic() == simulation_watch::completion_topic || ++deeds_[d.id()] > odd_deeds_max) {
            return succeed{};
        }
        return odd_deed(d);
    }

  private:
    [[nodiscard]] outcome odd_deed(delivery& d) {
        const auto later = [&](std::size_t seconds) { return d.now() + ground_.seconds(seconds); };
        switch (ground_.random.below(20)) {
        case 0: throw vouch::failure("failed");
        case 1: emit(d); throw vouch::failure("failed after an emission");
        case 2: throw vouch::reject();
        case 3: return retry{"later", later(600)};
        case 4: return release{};
        case 5: return release{later(600)};
        case 6: return advance{std::to_string(deeds_[d.id()]), {}};
        case 7: emit(d); return advance{"with an emission", {}};
        case 8: return advance{"waits", later(3600)};
        case 9: emit(d); return bury{"given up", "reply"};
        case 10: return slow();
        case 11: emit(d); return succeed{"with an emission"};
        case 12:
        case 13:
            emit(d);
            emit(d);
            return succeed{"with two"};
        default: return succeed{"done"};
        }
    }

    /// Takes longer than the lease.
    [[nodiscard]] outcome slow() {
        if (!ground_.is_calm) {
            ground_.now += ground_.lease + ground_.seconds(60);
        }
        return succeed{"slow"};
    }

    void emit(delivery& d) {
        constexpr std::size_t trail_max = 3;
        if (d.trail().size() < trail_max) {
            ground_.watch.emitted(ticket_of(d.entry()), d.emit(next_emission()));
        }
    }

    [[nodiscard]] std::string name(std::string_view kind, std::size_t many, std::size_t percent) {
        const bool has_one = ground_.random.chance(percent);
        return has_one ? std::string(kind) + std::to_string(ground_.random.below(many)) : std::string();
    }

    simulation_ground& ground_;
    std::map<id, std::size_t> deeds_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/simulation.hpp
// A world of several real runners on one store, in one thread and in virtual time. A scheduler draws what happens next:
// one phase of one runner, a crash between two phases, a pause longer than the lease, a clock that jumps, a fault of
// the store, a producer's or an operator's call, time passing. Then the world can heal and has to come to rest.
//
// The same seed gives the same world.

namespace vouch {
inline namespace v0 {
namespace conformance {

class simulation {
  public:
    simulation(trial& t, std::uint64_t seed) : ground_(t, seed) {
        auto& random = ground_.random;
        const auto runners = 3 + random.below(3);
        for (std::size_t i = 0; i < runners; ++i) {
            const bool other_queue = i == 1 || (i > 1 && random.chance(30));
            runners_.push_back(std::make_unique<simulated_runner>(
                ground_, [this](delivery& d) { return work_(d); }, std::string(1, static_cast<char>('a' + i)),
                other_queue ? "r" : "q"));
        }
    }
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    ~simulation() {
        const auto length = std::chrono::duration_cast<std::chrono::seconds>(ground_.now - start).count();
        ground_.t.tally().simulated_seconds += static_cast<std::uint64_t>(length);
        ground_.t.tally().faults += ground_.plan->faults();
    }

    /// Goes on for so long, with all that can go wrong.
    void storm(duration length) {
        const auto until = ground_.now + length;
        ground_.told([&] {
            for (std::size_t steps = 0; ground_.now < until; ++steps) {
                happen();
                if (steps % 64 == 0) {
                    ground_.watch.compare_all(ground_.truth);
                }
            }
        });
    }

    /// From now on nothing fails and all clocks agree; runners begin anew.
    void heal() {
        ground_.plan->disarm();
        ground_.is_calm = true;
        ground_.note("everything heals");
        for (auto& r : runners_) {
            r->set_skew({});
            r->restart();
        }
        ground_.told([&] { deliver(); });
    }

    /// Passes of every runner until nothing is left to wait for, time jumping along.
    void drain() {
        ground_.told([&] {
            const auto most = 200 + 100 * ground_.watch.live();
            for (std::size_t n = 0;; ++n) {
                trial::expect(n < most, "the world is at rest after " + std::to_string(most) + " passes");
                if (!pass_of_all() && !wait_for_due()) {
                    break;
                }
            }
            ground_.watch.compare_all(ground_.truth);
            for (const std::string queue : {"q", "r"}) {
                trial::equal(ground_.truth.counts(queue).live(), 0U, "entries of " + queue + " that nobody can claim");
            }
            trial::equal(ground_.watch.live(), 0U, "entries that have not ended");
        });
    }

    /// So many passes of every runner, with nothing going wrong but what is planned.
    void passes(std::size_t count) {
        ground_.told([&] {
            for (std::size_t n = 0; n < count; ++n) {
                if (!pass_of_all()) {
                    ground_.now += ground_.lease;
                }
            }
        });
    }

    void produce(std::size_t count) {
        for (std::size_t n = 0; n < count; ++n) {
            undelivered_.push_back(work_.next_draft());
        }
        ground_.told([&] { deliver(); });
    }

    /// Nothing goes wrong by chance.
    void calm() noexcept { ground_.is_calm = true; }
    void keep_trace() noexcept { ground_.story.keeps_all = true; }
    [[nodiscard]] const std::vector<std::string>& trace() const noexcept { return ground_.story.all; }
    [[nodiscard]] fault_plan& plan() noexcept { return *ground_.plan; }

  private:
    void happen() {
        auto& random = ground_.random;
        auto& r = *runners_[random.below(runners_.size())];
        const auto what = random.below(1000);
        constexpr std::size_t enough = 60; // live entries, so that runners can follow
        if (what < 80) {
            if (ground_.watch.live() < enough) {
                produce(1 + random.below(3));
            }
        } else if (what < 140) {
            operate();
        } else if (what < 260) {
            pass_time();
        } else if (what < 260 + ground_.crashes_permille) {
            r.note("crashes with " + std::to_string(r.in_hand()) + " in hand");
            r.restart();
        } else if (what < 310) {
            r.paused_until = ground_.now + ground_.lease + ground_.seconds(600);
            r.note("sleeps until " + show_date(r.paused_until) + " with " + std::to_string(r.in_hand()) + " in hand");
        } else if (what < 320) {
            const auto skew = ground_.skew();
            r.set_skew(skew);
            r.note("has a clock that is off by " + std::to_string(skew / std::chrono::seconds{1}) + " s");
        } else if (what < 340) {
            r.extend();
        } else if (r.paused_until <= ground_.now) {
            r.phase();
        }
    }

    /// To the next thing that is due, or just on.
    void pass_time() {
        auto& random = ground_.random;
        const auto due = ground_.truth.next_due(random.chance(50) ? "q" : "r");
        if (due && *due > ground_.now && *due < ground_.now + std::chrono::hours{3} && random.chance(60)) {
            ground_.now = *due;
        } else {
            ground_.now += ground_.seconds(random.chance(20) ? 3600 : 300);
        }
    }

    /// Enqueues what waits for it; if that fails, the same goes again later.
    void deliver() {
        if (!undelivered_.empty()) {
            ground_.attempt("the producer", [&] {
                enqueue(office_, undelivered_, ground_.now);
                undelivered_.clear();
            });
        }
    }

    void operate() {
        auto& random = ground_.random;
        const auto now = ground_.now + ground_.skew();
        const auto target = ground_.some_id();
        const auto* const dead = ground_.pick([](const entry& e) { return e.state == state::dead; });
        const auto what = random.below(10);
        const purge_request old{.queue = random.chance(50) ? "q" : "r",
                                .before = ground_.now - ground_.seconds(40'000),
                                .limit = 1 + random.below(60)};
        ground_.attempt("the operator", [&] {
            transact(office_, [&](auto& tx) {
                if (what < 4) {
                    std::ignore = tx.nudge(target, now);
                } else if (what < 6) {
                    std::ignore = tx.cancel(target, "cancelled", now);
                } else if (what < 8) {
                    std::ignore = vouch::requeue(tx, {.dead = dead == nullptr ? target : dead->entry.id,
                                                      .successor = ground_.fresh_id(),
                                                      .now = now});
                } else {
                    tx.purge(old);
                }
            });
        });
    }

    /// Says whether anybody found something to do.
    bool pass_of_all() {
        bool any = false;
        for (auto& r : runners_) {
            constexpr std::size_t patience = 20;       // with a store that keeps failing
            constexpr std::size_t phases_max = 10'000; // of one pass
            for (std::size_t n = 0; n == 0 || !r->is_idle(); ++n) {
                trial::expect(n < phases_max, "a runner comes to the end of what is due");
                r->phase();
                any = any || !r->is_idle();
                if (n > patience && ground_.plan->has_struck()) {
                    r->restart();
                }
            }
        }
        return any;
    }

    /// Says whether there is anything to wait for.
    bool wait_for_due() {
        std::optional<time_point> next;
        for (const std::string queue : {"q", "r"}) {
            if (const auto due = ground_.truth.next_due(queue); due && (!next || *due < *next)) {
                next = due;
            }
        }
        if (next) {
            trial::expect(*next > ground_.now, "what is due since " + show_date(*next) + " can be claimed");
            ground_.now = *next;
        }
        return next.has_value();
    }

    simulation_ground ground_;
    simulation_work work_{ground_};
    simulated_store office_ = ground_.open();
    std::vector<std::unique_ptr<simulated_runner>> runners_{};
    std::vector<draft> undelivered_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/simulation.hpp
// Layer 7: simulation. Days of several runners with crashes, pauses, wrong clocks and faults: first nothing may go
// wrong, then everything has to come to rest.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace simulation_checks {

/// A world lasts for some days at most, so that many different ones fit into the budget.
inline constexpr std::size_t days_per_world = 2;

template <class Live>
void worlds(trial& t, std::size_t days, const Live& live) {
    for (std::size_t left = std::max<std::size_t>(days, 1); left > 0;) {
        const auto now = std::min(left, days_per_world);
        live(t.random().roll(), std::chrono::hours{24} * static_cast<int>(now));
        left -= now;
    }
}

inline void safety(trial& t) {
    worlds(t, t.budget().simulated_days / 2, [&](std::uint64_t seed, duration length) {
        conformance::simulation world(t, seed);
        world.storm(length);
    });
}

inline void liveness(trial& t) {
    worlds(t, t.budget().simulated_days * 2 / 5, [&](std::uint64_t seed, duration length) {
        conformance::simulation world(t, seed);
        world.storm(length / 4);
        world.heal();
        world.drain();
    });
}

/// Whether two events differ in nothing but that the transaction of one ended in a conflict.
[[nodiscard]] inline bool is_of_conflict(const std::string& a, const std::string& b) {
    const std::string_view mark = " [rolled back]";
    const auto is_marked = [&](const std::string& longer, const std::string& event) {
        return longer == event + std::string(mark);
    };
    const auto has = [](const std::string& event) { return event.find("conflict") != std::string::npos; };
    return has(a) || has(b) || is_marked(a, b) || is_marked(b, a);
}

inline void determinism(trial& t) {
    worlds(t, t.budget().simulated_days / 20, [&](std::uint64_t seed, duration length) {
        std::array<std::vector<std::string>, 2> traces;
        const auto conflicts = t.on().counts->conflicts.load();
        for (auto& trace : traces) {
            conformance::simulation world(t, seed);
            world.keep_trace();
            world.storm(length);
            trace = world.trace();
        }
        const auto [a, b] = std::mismatch(traces[0].begin(), traces[0].end(), traces[1].begin(), traces[1].end());
        const auto line = [](auto at, auto end) { return at == end ? std::string("nothing more") : *at; };
        if (t.on().counts->conflicts != conflicts &&
            is_of_conflict(line(a, traces[0].end()), line(b, traces[1].end()))) {
            return; // one may come at any time; up to it the two were the same
        }
        if (a != traces[0].end() || b != traces[1].end()) {
            t.fail("the same world once more, event " + std::to_string(a - traces[0].begin()) + " of " +
                       std::to_string(traces[0].size()),
                   line(b, traces[1].end()), line(a, traces[0].end()));
        }
    });
}

/// The runners' own calls fail one after the other, in the same small world each time.
inline void failing_runners(trial& t) {
    const auto seed = t.random().roll();
    for (const auto when : {fault_moment::before, fault_moment::after}) {
        for (const bool persistent : {false, true}) {
            for (std::uint64_t n = 1, struck = 1; struck > 0 && n <= 200; n += persistent ? 7 : 1) {
                conformance::simulation world(t, seed);
                world.calm();
                world.produce(6);
                world.plan().arm({.call = n, .moment = when, .persistent = persistent});
                world.passes(3);
                struck = world.plan().disarm() ? 1 : 0;
                world.heal();
                world.drain();
            }
        }
    }
}

} // namespace simulation_checks

inline constexpr std::array simulation{
    clause{"SIM-01", layer::simulation, level::must, needs::nothing,
           "Whatever runners, clocks and faults do: no ticket twice, no settle but the one that counts, nothing "
           "terminal changes, lanes in order, groups complete once, no entry dies of lapses it shared with others, "
           "nothing disappears.",
           simulation_checks::safety},
    clause{"SIM-02", layer::simulation, level::must, needs::nothing,
           "When faults and crashes stop, everything ends succeeded or dead in a bounded number of passes.",
           simulation_checks::liveness},
    clause{"SIM-03", layer::simulation, level::must, needs::nothing,
           "The same calls at the same times get the same answers: one seed is one world.",
           simulation_checks::determinism},
    clause{"SIM-04", layer::simulation, level::must, needs::nothing,
           "Whichever call of the runners fails, before or after its effect, once or for a while: every entry still "
           "ends, with its emissions, once.",
           simulation_checks::failing_runners},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/validation.hpp
// Validation: every bound accepts what is at it and refuses what is one over it, by name, and nothing is written.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

using namespace reads_checks;
using words = std::vector<std::string>; ///< what a refusal has to say; the field comes first

/// What no message may quote.
inline constexpr std::string_view secret = "s3cret";

/// The largest content that is tried; a store may have raised its limits beyond.
inline constexpr std::size_t tried_max = 16U * 1024 * 1024;

[[nodiscard]] inline std::string bytes(std::size_t count) {
    std::string out(secret);
    out.resize(count, 'x');
    return out;
}

/// What a refusal says of something that is one over its limit.
[[nodiscard]] inline words one_over(std::string_view field, std::size_t limit) {
    return {std::string(field), std::to_string(limit + 1), std::to_string(limit)};
}

/// That the call is refused with these words and changes nothing.
template <class Call>
void refuses(any_store& store, const words& says, Call&& call) {
    from_begin(store, [&](auto& tx) {
        const auto before = look(tx);
        const auto what = "a call with a wrong " + says.front();
        const std::string message = trial::throws(error_kind::invalid_argument, what, [&] { call(tx); }).what();
        for (const auto& word : says) {
            if (message.find(word) == std::string::npos) {
                trial::fail(what + " is refused with the field, the limit and the size", show(message), show(word));
            }
        }
        trial::expect(message.find(secret) == std::string::npos, what + " is refused without quoting what was given");
        unchanged(tx, before, what + " changes nothing");
    });
}

/// That a batch is refused if one of its drafts, wherever it stands, is spoiled so.
template <class Spoil>
void refuses_draft(any_store& store, const words& says, Spoil&& spoil) {
    for (std::size_t i = 0; i < 3; ++i) {
        std::array batch{draft_of(18), draft_of(19), draft_of(20)};
        spoil(batch[i]);
        refuses(store, says, [&](auto& tx) { tx.enqueue(batch, at(0)); });
    }
}

struct name_field {
    std::string_view name;
    std::string draft::*of;
    bool required;
};

/// The names of a draft that the store supports.
[[nodiscard]] inline std::vector<name_field> name_fields(const capabilities& can) {
    std::vector<name_field> out{
        {"queue", &draft::queue, true}, {"topic", &draft::topic, true}, {"key", &draft::key, false}};
    if (can.groups) {
        out.push_back({"group", &draft::group, false});
    }
    if (can.lanes) {
        out.push_back({"lane", &draft::lane, false});
    }
    return out;
}

inline void id_required(trial& t) {
    auto store = furnished(t);
    refuses_draft(store, {"id"}, [](draft& d) { d.id = {}; });
}

inline void names_bounded(trial& t) {
    const auto most = t.can().limits.name_max;
    for (const auto& field : name_fields(t.can())) {
        auto store = furnished(t);
        auto longest = draft_of(9);
        longest.*field.of = bytes(most);
        t.equal(put(store, longest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        refuses_draft(store, one_over(field.name, most), [&](draft& d) { d.*field.of = bytes(most + 1); });
        if (field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { (d.*field.of).clear(); });
        }
    }
}

inline void names_without_control(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        for (const char c : {'\0', '\x01', '\n', '\x1f', '\x7f'}) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = std::string("a") + c; });
        }
    }
    auto plain = draft_of(9);
    for (const auto& field : name_fields(t.can())) {
        plain.*field.of = " ~\x80\xff ";
    }
    t.equal(put(store, plain), inserted(9), "names with the bytes next to the control characters");
}

struct content_field {
    std::string_view name;
    std::size_t limit;
    void (*set)(draft&, std::string);
};

inline void contents_bounded(trial& t) {
    const auto& limit = t.can().limits;
    const std::array fields{
        content_field{"payload", limit.payload_max, [](draft& d, std::string s) { d.payload = std::move(s); }},
        content_field{"progress", limit.progress_max, [](draft& d, std::string s) { d.progress = std::move(s); }},
        content_field{"result", limit.result_max, [](draft& d, std::string s) { d.result = std::move(s); }}};
    for (const auto& field : fields) {
        auto store = furnished(t);
        auto largest = draft_of(9);
        field.set(largest, bytes(std::min(field.limit, tried_max)));
        t.equal(put(store, largest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        if (field.limit <= tried_max) {
            refuses_draft(store, one_over(field.name, field.limit),
                          [&](draft& d) { field.set(d, bytes(field.limit + 1)); });
        }
    }
}

inline void trail_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.trail_max;
    t.equal(put(store, draft_of(9, {.trail = id_list(most, id_of(8))})), inserted(9), "a trail of the largest size");
    refuses_draft(store, one_over("trail", most), [&](draft& d) { d.trail.assign(most + 1, id_of(8)); });
}

inline void headers_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const header_list most(limit.headers_max, {bytes(limit.name_max), bytes(limit.header_value_max)});
    t.equal(put(store, draft_of(9, {.headers = most})), inserted(9), "as many and as large headers as there may be");
    refuses_draft(store, one_over("header", limit.headers_max), [&](draft& d) {
        d.headers.assign(limit.headers_max + 1, {"n", ""});
    });
    const auto refuses_header = [&](const words& says, const std::string& name, const std::string& value) {
        refuses_draft(store, says, [&](draft& d) { d.headers = {{"n", "v"}, {name, value}}; });
    };
    refuses_header(one_over("header", limit.name_max), bytes(limit.name_max + 1), "");
    refuses_header(one_over("header", limit.header_value_max), "n", bytes(limit.header_value_max + 1));
    refuses_header({"header"}, "", "value");
    refuses_header({"header"}, "a\nb", "value");
}

inline void result_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (field.name == "group" || field.name == "lane") {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.result = "", d.*field.of = "x"; });
        }
    }
    refuses_draft(store, {"parent"}, [](draft& d) { d.result = "", d.parent = id_of(1); });
    refuses_draft(store, {"predecessor"}, [](draft& d) { d.result = "", d.predecessor = id_of(5); });
}

inline void predecessor_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (!field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) {
                d.predecessor = id_of(5);
                d.*field.of = "x";
            });
        }
    }
}

inline void batches_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.batch_max;
    auto tx = store.begin();
    t.equal(tx.enqueue(std::vector(most, draft_of(9)), at(0)).size(), most, "answers to the largest batch of drafts");
    t.equal(tx.settle(std::vector<vouch::settle>(most), at(0)).size(), most, "answers to the largest batch of settles");
    t.equal(tx.extend(std::vector<ticket>(most), at(0), duration{1}).size(), most, "answers to the most tickets");
    tx.commit();
    refuses(store, one_over("drafts", most), [&](auto& w) { w.enqueue(std::vector(most + 1, draft_of(18)), at(0)); });
    refuses(store, one_over("settles", most), [&](auto& w) {
        std::ignore = w.settle(std::vector(most + 1, vouch::settle{{id_of(3), 1}, succeed{}}), at(0));
    });
    refuses(store, one_over("tickets", most), [&](auto& w) {
        std::ignore = w.extend(std::vector(most + 1, ticket{id_of(3), 1}), at(90), duration{900});
    });
}

inline void nothing_is_no_error(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    auto tx = store.begin();
    t.equal(tx.enqueue({}, at(0)).size(), 0, "answers to no drafts");
    t.equal(tx.settle({}, at(0)).size(), 0, "answers to no settles");
    t.equal(tx.extend({}, at(0), duration{1}).size(), 0, "answers to no tickets");
    t.equal(tx.claim(request(at(900), {.limit = 0})).size(), 0, "claimed with limit 0");
    t.equal(tx.purge({.queue = "q", .before = at(900), .limit = 0}), 0, "purged with limit 0");
    tx.commit();
    unchanged(store, before, "asking for nothing changes nothing");
}

inline void claim_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_claim = [&](const words& says, const claim_request& r) {
        refuses(store, says, [&](auto& tx) { std::ignore = tx.claim(r); });
    };
    refuses_claim({"queue"}, request(at(900), {.queue = ""}));
    refuses_claim({"queue"}, request(at(900), {.queue = "a\nb"}));
    refuses_claim(one_over("queue", limit.name_max), request(at(900), {.queue = bytes(limit.name_max + 1)}));
    refuses_claim(one_over("worker", limit.name_max), request(at(900), {.worker = bytes(limit.name_max + 1)}));
    refuses_claim({"worker"}, request(at(900), {.worker = "a\nb"}));
    refuses_claim(one_over("limit", limit.batch_max), request(at(900), {.limit = limit.batch_max + 1}));
    const auto most =
        request(at(0), {.limit = limit.batch_max, .queue = bytes(limit.name_max), .worker = bytes(limit.name_max)});
    t.equal(claim(store, most).size(), 0, "claimed with everything at its limit");
}

inline void leases_bounded(trial& t) {
    auto store = furnished(t);
    const auto [shortest, longest] = std::pair{t.can().limits.lease_min, t.can().limits.lease_max};
    for (const auto lease :
         {duration{0}, duration{-1}, shortest - duration{1}, longest + duration{1}, duration::max()}) {
        refuses(store, {"lease"}, [&](auto& tx) { std::ignore = tx.claim(request(at(900), {.lease = lease})); });
        refuses(store, {"lease"}, [&](auto& tx) {
            std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(900), lease);
        });
    }
    t.equal(take(store, at(0), {.queue = "r", .lease = shortest}).size(), 1, "claimed with the shortest lease");
    t.equal(get(store, 6).lease_until, at(0) + shortest, "the end of the shortest lease");
    t.equal(take(store, at(900), {.queue = "r", .lease = longest}).size(), 1, "claimed with the longest lease");
    t.equal(get(store, 6).lease_until, at(900) + longest, "the end of the longest lease");
    t.equal(extend(store, {id_of(3), 1}, at(900), longest), verdict::applied, "extended by the longest lease");
    t.equal(get(store, 3).lease_until, at(900) + longest, "the end of a lease extended by the longest");
}

inline void leases_end_in_time(trial& t) {
    auto store = furnished(t);
    const auto last = time_point::max() - duration{100};
    refuses(store, {"now"}, [&](auto& tx) { std::ignore = tx.claim(request(last + duration{1})); });
    refuses(store, {"now"}, [&](auto& tx) {
        std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, last + duration{1}, duration{100});
    });
    t.equal(take(store, last).size(), 3, "claimed as late as a lease can still end");
    t.equal(get(store, 3).lease_until, time_point::max(), "the end of the last lease there can be");
}

inline void error_codes_bounded(trial& t) {
    const auto most = t.can().limits.error_max;
    auto store = furnished(t);
    for (const auto& [says, code] :
         {std::pair{one_over("error", most), bytes(most + 1)}, std::pair{words{"error"}, std::string("a\nb")},
          std::pair{words{"error"}, std::string("a\0", 2)}}) {
        const auto refuses_code = [&, &s = says](auto&& call) { refuses(store, s, call); };
        const auto& c = code;
        refuses_code([&](auto& tx) { settle_in(tx, {id_of(3), 1}, retry{c, at(0)}, at(0)); });
        refuses_code([&](auto& tx) { settle_in(tx, {id_of(3), 1}, bury{c, {}}, at(0)); });
        refuses_code([&](auto& tx) { std::ignore = tx.cancel(id_of(1), c, at(0)); });
    }
    settle(store, {id_of(3), 1}, retry{bytes(most), at(0)});
    t.equal(get(store, 3).last_error, bytes(most), "the longest error code, of a retry");
    settle(store, take_one(store, at(0), {.only = id_of(3)}), bury{bytes(most - 1) + "b", {}});
    t.equal(get(store, 3).last_error, bytes(most - 1) + "b", "the longest error code, of a burial");
    cancel(store, id_of(1), at(0), bytes(most));
    t.equal(get(store, 1).last_error, bytes(most), "the longest error code, of a cancel");
}

inline void outcomes_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_outcome = [&](std::string_view field, std::size_t most, const outcome& o) {
        if (most > tried_max) {
            return;
        }
        const std::array batch{vouch::settle{{id_of(3), 1}, succeed{}}, vouch::settle{{id_of(3), 1}, o}};
        refuses(store, one_over(field, most), [&](auto& tx) { std::ignore = tx.settle(batch, at(0)); });
    };
    const auto result = bytes(std::min(limit.result_max, tried_max) + 1);
    const auto progress = bytes(std::min(limit.progress_max, tried_max) + 1);
    refuses_outcome("result", limit.result_max, succeed{result});
    refuses_outcome("result", limit.result_max, bury{"e", result});
    refuses_outcome("progress", limit.progress_max, advance{progress, {}});
    t.equal(settle(store, {id_of(3), 1}, advance{progress.substr(1), at(0)}).verdict, verdict::applied,
            "advanced with the largest progress");
    const auto held = take_one(store, at(0), {.only = id_of(3)});
    t.equal(settle(store, held, succeed{result.substr(1)}).verdict, verdict::applied, "the largest result");
}

inline void purge_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_purge = [&](const words& says, purge_request r) {
        r.before = at(900);
        refuses(store, says, [&](auto& tx) { tx.purge(r); });
    };
    refuses_purge({"queue"}, {});
    refuses_purge({"queue"}, {.queue = "a\nb"});
    refuses_purge(one_over("queue", limit.name_max), {.queue = bytes(limit.name_max + 1)});
    refuses_purge(one_over("limit", limit.batch_max), {.queue = "q", .limit = limit.batch_max + 1});
    for (const auto s : {state::pending, state::retrying, state::claimed}) {
        refuses_purge({"state"}, {.queue = "q", .state = s});
    }
}

/// Queries no store accepts, and the field that is wrong.
[[nodiscard]] inline std::vector<std::pair<words, query>> wrong_queries(const limits& limit) {
    using path = query::path;
    return {{{"queue"}, {.by = path::all}},
            {{"queue"}, {.by = path::live}},
            {{"queue"}, {.by = path::dead}},
            {{"queue"}, {.by = path::key, .key = "k"}},
            {{"key"}, {.by = path::key, .queue = "q"}},
            {{"group"}, {.by = path::group}},
            {{"parent"}, {.by = path::parent}},
            {{"queue"}, {.by = path::group, .queue = "q", .group = "g"}},
            {{"queue"}, {.by = path::parent, .queue = "q", .parent = id_of(1)}},
            {{"key"}, {.by = path::all, .queue = "q", .key = "k"}},
            {{"group"}, {.by = path::live, .queue = "q", .group = "g"}},
            {{"parent"}, {.by = path::dead, .queue = "q", .parent = id_of(1)}},
            {{"queue"}, {.by = path::all, .queue = "a\nb"}},
            {one_over("queue", limit.name_max), query::all(bytes(limit.name_max + 1))},
            {one_over("key", limit.name_max), query::keyed("q", bytes(limit.name_max + 1))},
            {one_over("group", limit.name_max), query::members(bytes(limit.name_max + 1))},
            {one_over("topic", limit.name_max), {.queue = "q", .topic = bytes(limit.name_max + 1)}},
            {one_over("limit", limit.batch_max), {.queue = "q", .limit = limit.batch_max + 1}}};
}

inline void queries_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    for (const auto& [says, wrong] : wrong_queries(limit)) {
        refuses(store, says, [&, &q = wrong](auto& tx) { std::ignore = tx.list(q); });
        t.throws(error_kind::invalid_argument, "a query on the store with a wrong " + says.front(),
                 [&, &q = wrong] { std::ignore = store.list(q); });
    }
    const query most{.queue = bytes(limit.name_max), .topic = bytes(limit.name_max), .limit = limit.batch_max};
    t.equal(store.list(most).size(), 0, "listed with everything at its limit");
}

inline void read_queues_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.name_max;
    for (const auto& [says, name] :
         {std::pair{words{"queue"}, std::string()}, std::pair{words{"queue"}, std::string("a\nb")},
          std::pair{one_over("queue", most), bytes(most + 1)}}) {
        const auto& wrong = name;
        refuses(store, says, [&](auto& tx) { std::ignore = tx.counts(wrong); });
        refuses(store, says, [&](auto& tx) { std::ignore = tx.next_due(wrong); });
        t.throws(error_kind::invalid_argument, "counts on the store", [&] { std::ignore = store.counts(wrong); });
        t.throws(error_kind::invalid_argument, "next_due on the store", [&] { std::ignore = store.next_due(wrong); });
    }
    t.equal(store.counts(bytes(most)).total(), 0, "counts of a queue with the longest name");
    t.equal(store.next_due(bytes(most)), std::optional<time_point>{}, "next_due of a queue with the longest name");
}

inline void nothing_is_quoted(trial& t) {
    auto store = furnished(t);
    const auto full = [](draft& d) {
        d.payload = d.key = d.progress = d.topic = std::string(secret);
        d.headers = {{std::string(secret), std::string(secret)}};
    };
    refuses_draft(store, {"id"}, [&](draft& d) { full(d), d.id = {}; });
    refuses_draft(store, {"topic"}, [&](draft& d) { full(d), d.topic += '\n'; });
    refuses_draft(store, {"key"}, [&](draft& d) { full(d), d.key += '\x7f'; });
    refuses_draft(store, {"header"}, [&](draft& d) { full(d), d.headers[0].first += '\n'; });
    refuses(store, {"error"}, [](auto& tx) { std::ignore = tx.cancel(id_of(1), std::string(secret) + '\n', at(0)); });
}

} // namespace validation_checks

inline constexpr std::array validation{
    clause{"VALID-01", layer::examples, level::must, needs::nothing, "A draft with the nil id is refused.",
           validation_checks::id_required},
    clause{"VALID-02", layer::examples, level::must, needs::nothing,
           "A draft's queue, topic, key, group and lane may have name_max bytes, not one more; queue and topic are not "
           "empty.",
           validation_checks::names_bounded},
    clause{"VALID-03", layer::examples, level::must, needs::nothing,
           "A name with a control character is refused; any other byte is allowed.",
           validation_checks::names_without_control},
    clause{"VALID-04", layer::examples, level::must, needs::nothing,
           "A draft's payload, progress and result may have as many bytes as the store's limits say, not one more.",
           validation_checks::contents_bounded},
    clause{"VALID-05", layer::examples, level::must, needs::nothing, "A trail may have trail_max ids, not one more.",
           validation_checks::trail_bounded},
    clause{"VALID-06", layer::examples, level::must, needs::nothing,
           "Headers are bounded in number, name and value, each at its limit and not one over; their names are names.",
           validation_checks::headers_bounded},
    clause{"VALID-07", layer::examples, level::must, needs::nothing,
           "A draft with a result is refused if it has a lane, group, parent or predecessor.",
           validation_checks::result_excludes},
    clause{"VALID-08", layer::examples, level::must, needs::nothing,
           "A draft with a predecessor is refused if it has a key, group or lane of its own.",
           validation_checks::predecessor_excludes},
    clause{"VALID-09", layer::examples, level::must, needs::nothing,
           "A batch of drafts, settles or tickets may have batch_max items, not one more.",
           validation_checks::batches_bounded},
    clause{"VALID-10", layer::examples, level::must, needs::nothing,
           "Empty batches and a limit of 0 are no errors and change nothing.", validation_checks::nothing_is_no_error},
    clause{"VALID-11", layer::examples, level::must, needs::nothing, "A claim's queue, worker and limit are bounded.",
           validation_checks::claim_bounded},
    clause{"VALID-12", layer::examples, level::must, needs::nothing,
           "A claim and an extension are given leases from lease_min to lease_max, never none and none longer.",
           validation_checks::leases_bounded},
    clause{"VALID-13", layer::examples, level::must, needs::nothing,
           "A lease that would end after the last representable time is refused.",
           validation_checks::leases_end_in_time},
    clause{"VALID-14", layer::examples, level::must, needs::nothing,
           "The error code of a retry, bury or cancel may have error_max bytes, not one more, and no control "
           "characters.",
           validation_checks::error_codes_bounded},
    clause{"VALID-15", layer::examples, level::must, needs::nothing,
           "An outcome's result and progress are bounded; one invalid settle rejects its whole batch.",
           validation_checks::outcomes_bounded},
    clause{"VALID-16", layer::examples, level::must, needs::nothing,
           "A purge's queue and limit are bounded, and its state is a terminal one.", validation_checks::purge_bounded},
    clause{"VALID-17", layer::examples, level::must, needs::nothing,
           "A query names what its path wants and nothing else; its names and its limit are bounded.",
           validation_checks::queries_bounded},
    clause{"VALID-18", layer::examples, level::must, needs::nothing,
           "The queue of counts and next_due is a name: not empty, not too long, without control characters.",
           validation_checks::read_queues_bounded},
    clause{"VALID-19", layer::examples, level::must, needs::nothing,
           "A refusal names fields, limits and sizes and never quotes what was given.",
           validation_checks::nothing_is_quoted},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/verdicts.hpp
// The verdict table, cell by cell: what is asked in rows, how the entry stands in columns. In each cell the verdict is
// compared, and that an entry changes exactly if the verdict is `applied`.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace verdict_checks {

inline constexpr auto asked_at = at(1000);

/// How entry `n` stands when it is asked about.
struct column {
    std::uint64_t n;
    std::string_view name;
    std::uint64_t epoch;
};

inline constexpr std::array columns{
    column{1, "pending", 0},
    column{2, "pending after a release", 1},
    column{3, "retrying", 1},
    column{4, "claimed, lease running", 1},
    column{5, "claimed, lease over", 1},
    column{6, "succeeded", 1},
    column{7, "born succeeded", 0},
    column{8, "dead", 1},
    column{9, "dead without a claim", 0},
    column{10, "absent", 0},
};

/// A store with an entry for every column. What waits is not due yet, and what has ended would not be either; the one
/// lease has a microsecond left, the other has just ended.
[[nodiscard]] inline any_store furnished(trial& t) {
    auto store = t.open(t.fresh_place());
    constexpr auto later = at(2000);
    const auto claimed = [&](std::uint64_t n, time_point now, duration lease) {
        put(store, draft_of(n, {.due_at = now, .progress = "begun"}));
        return take_one(store, now, {.lease = lease, .only = id_of(n)});
    };
    put(store, draft_of(1, {.due_at = later}));
    std::ignore = settle(store, claimed(2, at(0), duration{100}), release{later});
    std::ignore = settle(store, claimed(3, at(0), duration{100}), retry{"e", later});
    std::ignore = claimed(4, at(0), asked_at - at(0) + duration{1});
    std::ignore = claimed(5, at(0), asked_at - at(0));
    std::ignore = settle(store, claimed(6, later, duration{100}), succeed{"r"});
    put(store, draft_of(7, {.due_at = later, .result = "r"}));
    std::ignore = settle(store, claimed(8, later, duration{100}), bury{"e", "r"});
    put_dead(store, draft_of(9, {.due_at = later}));
    return store;
}

/// That the entry with the number n has changed since, and none beside it.
inline void only_changed(const any_store& store, sight before, std::uint64_t n, const std::string& cell) {
    const auto after = get(store, n);
    for (auto& e : before.found) {
        if (e.id == after.id) {
            trial::expect(!(e == after), cell + ": what is applied changes the entry");
            e = after;
        }
    }
    trial::equal(look(store).found, before.found, cell + ": no other entry changes");
}

/// Walks a row: `ask(column) -> verdict`.
template <class Ask>
void walk(any_store& store, std::string_view what, const std::array<verdict, columns.size()>& row, const Ask& ask) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto cell = std::string(what) + " on an entry that is " + std::string(columns[i].name);
        const auto before = look(store);
        trial::equal(ask(columns[i]), row[i], cell + ": the verdict");
        if (row[i] == verdict::applied) {
            only_changed(store, before, columns[i].n, cell);
        } else {
            unchanged(store, before, cell + ": nothing changes");
        }
    }
}

struct named_outcome {
    std::string_view name;
    vouch::outcome outcome;
};

[[nodiscard]] inline std::array<named_outcome, 5> all_outcomes() {
    return {{{"succeed", succeed{"other"}},
             {"retry", retry{"other", at(3000)}},
             {"bury", bury{"other", "other"}},
             {"release", release{at(3000)}},
             {"advance", advance{"other", at(3000)}}}};
}

// Epochs that are not the entry's present one.

[[nodiscard]] inline std::uint64_t next_epoch(const column& c) { return c.epoch + 1; }
[[nodiscard]] inline std::uint64_t last_epoch(const column& c) { return c.epoch == 0 ? 2 : c.epoch - 1; }
[[nodiscard]] inline std::uint64_t largest_epoch(const column&) { return std::numeric_limits<std::uint64_t>::max(); }

inline constexpr std::array other_epochs{next_epoch, last_epoch, largest_epoch};

using enum verdict;
inline constexpr std::array<verdict, columns.size()> on_present{repeated, repeated, repeated, applied,  applied,
                                                                repeated, repeated, repeated, repeated, unknown};
inline constexpr std::array<verdict, columns.size()> on_other{stale, stale, stale, stale, stale,
                                                              stale, stale, stale, stale, unknown};
inline constexpr std::array<verdict, columns.size()> on_nudge{applied, applied, applied, applied, applied,
                                                              stale,   stale,   stale,   stale,   unknown};
inline constexpr std::array<verdict, columns.size()> on_nudge_again{repeated, repeated, repeated, repeated, repeated,
                                                                    stale,    stale,    stale,    stale,    unknown};
inline constexpr std::array<verdict, columns.size()> on_cancel{applied, applied, applied,  stale,    applied,
                                                               stale,   stale,   repeated, repeated, unknown};

inline void settle_present(trial& t) {
    for (const auto& o : all_outcomes()) {
        auto store = furnished(t);
        walk(store, o.name, on_present, [&](const column& c) {
            return settle(store, {id_of(c.n), c.epoch}, o.outcome, asked_at).verdict;
        });
    }
}

inline void settle_other(trial& t) {
    auto store = furnished(t);
    for (const auto& o : all_outcomes()) {
        for (const auto epoch : other_epochs) {
            walk(store, std::string(o.name) + " with another epoch", on_other, [&](const column& c) {
                return settle(store, {id_of(c.n), epoch(c)}, o.outcome, asked_at).verdict;
            });
        }
    }
}

inline void extend_present(trial& t) {
    auto store = furnished(t);
    walk(store, "extend", on_present, [&](const column& c) {
        return extend(store, {id_of(c.n), c.epoch}, asked_at, duration{100});
    });
}

inline void extend_other(trial& t) {
    auto store = furnished(t);
    for (const auto epoch : other_epochs) {
        walk(store, "extend with another epoch", on_other, [&](const column& c) {
            return extend(store, {id_of(c.n), epoch(c)}, asked_at, duration{100});
        });
    }
}

inline void nudge_once(trial& t) {
    auto store = furnished(t);
    walk(store, "nudge", on_nudge, [&](const column& c) { return nudge(store, id_of(c.n), asked_at); });
}

inline void nudge_again(trial& t) {
    auto store = furnished(t);
    for (const auto& c : columns) {
        nudge(store, id_of(c.n), asked_at);
    }
    walk(store, "a second nudge", on_nudge_again, [&](const column& c) { return nudge(store, id_of(c.n), asked_at); });
    walk(store, "a later nudge", on_nudge_again, [&](const column& c) { return nudge(store, id_of(c.n), at(3000)); });
}

inline void cancel_any(trial& t) {
    auto store = furnished(t);
    walk(store, "cancel", on_cancel, [&](const column& c) { return cancel(store, id_of(c.n), asked_at, "other"); });
}

} // namespace verdict_checks

inline constexpr std::array verdict_table{
    clause{"VERDICT-01", layer::examples, level::must, needs::nothing,
           "A settle with the entry's present epoch is applied if the entry is claimed, its lease running or over; "
           "repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::settle_present},
    clause{"VERDICT-02", layer::examples, level::must, needs::nothing,
           "A settle with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::settle_other},
    clause{"VERDICT-03", layer::examples, level::must, needs::nothing,
           "An extend with the entry's present epoch is applied if the entry is claimed, its lease running or over; "
           "repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::extend_present},
    clause{"VERDICT-04", layer::examples, level::must, needs::nothing,
           "An extend with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::extend_other},
    clause{"VERDICT-05", layer::examples, level::must, needs::nothing,
           "A nudge is applied to what is pending, retrying or claimed; stale if it is succeeded or dead; unknown if "
           "it is absent.",
           verdict_checks::nudge_once},
    clause{"VERDICT-06", layer::examples, level::must, needs::nothing,
           "A nudge of what is due or marked already is repeated; stale if it is succeeded or dead; unknown if it is "
           "absent.",
           verdict_checks::nudge_again},
    clause{"VERDICT-07", layer::examples, level::must, needs::nothing,
           "A cancel is applied to what is pending, retrying, or claimed with its lease over; stale if the lease is "
           "running or the entry succeeded; repeated if it is dead; unknown if it is absent.",
           verdict_checks::cancel_any},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/wakes.hpp
// Wakes: a number that changes when work may have come nearer, and a wait for it. Only ever a hint.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace wakes_checks {

using namespace transaction_checks;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Long for a computer, short for the person who waits for a failure.
inline constexpr std::chrono::milliseconds patience{1'500};
inline constexpr std::chrono::milliseconds longer{2'000};

/// What of all that is done to a furnished store brings work of "q" nearer.
inline constexpr std::array nearer{
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"requeue", [](any_transaction& tx) { put_in(tx, draft_of(7, {.predecessor = id_of(5)})); }},
    deed{"retry",
         [](any_transaction& tx) {
             settle_third(tx, retry{"failed", at(30)});
         }},
    deed{"release", [](any_transaction& tx) { settle_third(tx, release{}); }},
    deed{"advance",
         [](any_transaction& tx) {
             settle_third(tx, advance{"step", {}});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(5)); }},
    deed{"the end of a child in another queue",
         [](any_transaction& tx) { std::ignore = tx.cancel(id_of(6), "cancelled", at(5)); }},
};

inline void changes_with_commit(trial& t) {
    for (const auto& [what, in] : nearer) {
        auto store = furnished(t);
        const auto seen = store.wakes("q");
        t.equal(store.wakes("q"), seen, "the number when nothing happens");
        transact(store, in);
        t.expect(store.wakes("q") != seen, "the number changes with a commit of " + std::string(what));
    }
}

inline void not_with_rollback(trial& t) {
    for (const auto& [what, in] : nearer) {
        auto store = furnished(t);
        const auto seen = store.wakes("q");
        {
            auto tx = store.begin();
            in(tx);
            t.equal(store.wakes("q"), seen, "the number before the commit of " + std::string(what));
        }
        t.equal(store.wakes("q"), seen, "the number after a rollback of " + std::string(what));
    }
}

inline void changes_with_lane(trial& t) {
    if (!t.can().lanes) {
        return;
    }
    for (const outcome& o : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1, {.lane = "lane"}));
        put(store, draft_of(2, {.lane = "lane"}));
        const auto held = take_one(store, at(0));
        const auto seen = store.wakes("q");
        settle(store, held, o);
        t.expect(store.wakes("q") != seen, "the number changes when the end of a lane's head lets the next one run");
    }
}

inline void every_handle_hears(trial& t) {
    if (!t.can().shared) {
        return;
    }
    auto first = t.open();
    auto second = t.open();
    const auto seen = first.wakes("q");
    put(second, draft_of(1));
    t.expect(first.wakes("q") != seen, "the number changes with a commit through a second handle");
}

inline void wait_sees_what_was(trial& t) {
    auto store = t.open();
    const auto seen = store.wakes("q");
    put(store, draft_of(1));
    const auto begun = steady_clock::now();
    t.equal(store.wait("q", seen, longer, {}), store.wakes("q"), "the number wait returns");
    t.expect(steady_clock::now() - begun < patience, "wait returns at once when the number has changed before");
}

inline void wait_ends_at_its_limit(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto seen = store.wakes("q");
    for (const auto at_most : {milliseconds{0}, milliseconds{-5}, milliseconds{5}}) {
        const auto begun = steady_clock::now();
        t.equal(store.wait("q", seen, at_most, {}), seen, "the number when wait gives up");
        const auto waited = steady_clock::now() - begun;
        t.expect(waited >= at_most, "wait does not give up before its time when nothing happens");
        t.expect(waited < patience, "wait gives up when its time has passed");
    }
}

inline void wait_ends_on_stop(trial& t) {
    auto store = t.open();
    const auto seen = store.wakes("q");
    std::stop_source stop;
    stop.request_stop();
    const auto begun = steady_clock::now();
    t.equal(store.wait("q", seen, longer, stop.get_token()), seen, "the number when wait is stopped");
    t.expect(steady_clock::now() - begun < patience, "wait returns when a stop is requested");
}

} // namespace wakes_checks

inline constexpr std::array wakes{
    clause{"WAKE-01", layer::examples, level::may, needs::wakes,
           "A queue's number changes with every commit that may have brought its work nearer.",
           wakes_checks::changes_with_commit},
    clause{"WAKE-02", layer::examples, level::may, needs::wakes,
           "A queue's number changes neither before the commit nor with a rollback.", wakes_checks::not_with_rollback},
    clause{"WAKE-03", layer::examples, level::may, needs::wakes,
           "In a store with lanes, a queue's number changes when a lane's head ends and the next one can run.",
           wakes_checks::changes_with_lane},
    clause{"WAKE-04", layer::examples, level::may, needs::wakes,
           "In a shared store, a queue's number changes with commits through any handle.",
           wakes_checks::every_handle_hears},
    clause{"WAKE-05", layer::examples, level::may, needs::wakes,
           "wait returns at once if the number is different already, so no commit is missed.",
           wakes_checks::wait_sees_what_was},
    clause{"WAKE-06", layer::examples, level::may, needs::wakes,
           "wait gives up when its time has passed, not before; at once if there is none.",
           wakes_checks::wait_ends_at_its_limit},
    clause{"WAKE-07", layer::examples, level::may, needs::wakes, "wait returns when a stop is requested.",
           wakes_checks::wait_ends_on_stop},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/all_clauses.hpp
// All clauses, in the order in which they are run and printed.

namespace vouch {
inline namespace v0 {
namespace conformance {

[[nodiscard]] inline const std::vector<clause>& all_clauses() {
    static const std::vector<clause> all = [] {
        std::vector<clause> out;
        const auto add = [&](std::span<const clause> some) { out.insert(out.end(), some.begin(), some.end()); };
        add(clauses::fixture);
        add(clauses::enqueues);
        add(clauses::dedup);
        add(clauses::requeues);
        add(clauses::claiming);
        add(clauses::settling);
        add(clauses::verdict_table);
        add(clauses::extending);
        add(clauses::nudging);
        add(clauses::cancelling);
        add(clauses::lanes);
        add(clauses::parents);
        add(clauses::groups);
        add(clauses::transactions);
        add(clauses::reads);
        add(clauses::purges);
        add(clauses::validation);
        add(clauses::fidelity);
        add(clauses::wakes);
        add(clauses::capability);
        add(clauses::stories);
        add(clauses::interleavings);
        add(clauses::histories);
        add(clauses::crashes);
        add(clauses::cost);
        add(clauses::faults);
        add(clauses::simulation);
        return out;
    }();
    return all;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report.hpp
// What came of a run: a result per clause, what was done, and the verdict; as text and as JSON. One seed gives one
// report, but for the times.

namespace vouch {
inline namespace v0 {
namespace conformance {

enum class result : std::uint8_t {
    pass,
    fail,
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture lacks a hook, or the machine something
    not_run,     ///< the options left it out
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::unsupported: return "unsupported";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

struct clause_report {
    conformance::clause clause{};
    conformance::result result = conformance::result::not_run;
    std::string why{}; ///< of `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< that replays it
    std::uint64_t calls = 0; ///< of the store's transactions
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies holds
    partial,    ///< none fails, but a MUST was not tested
    failing,
};

[[nodiscard]] constexpr std::string_view name_of(conformity c) noexcept {
    switch (c) {
    case conformity::conformant: return "conformant";
    case conformity::partial: return "partial";
    case conformity::failing: return "failing";
    }
    return "?";
}

struct report {
    conformance::identity identity{};
    conformance::options options{};
    vouch::capabilities can{};
    std::vector<std::string> hooks{};   ///< those the fixture has
    std::vector<std::string> missing{}; ///< those it has not, and what that costs
    std::string platform{};
    std::vector<clause_report> clauses{};
    conformance::tally tally{};
    std::vector<std::string> gaps{}; ///< what was not seen often enough for a verdict

    [[nodiscard]] std::size_t count(result r) const {
        std::size_t n = 0;
        for (const auto& c : clauses) {
            n += c.result == r ? 1U : 0U;
        }
        return n;
    }

    [[nodiscard]] conformity verdict() const {
        bool complete = gaps.empty();
        for (const auto& c : clauses) {
            if (c.result == result::fail) {
                return conformity::failing;
            }
            const bool was_skipped = c.result == result::untested || c.result == result::not_run;
            complete = complete && !(was_skipped && c.clause.level == level::must);
        }
        return complete ? conformity::conformant : conformity::partial;
    }
};

namespace detail {

[[nodiscard]] inline std::string capability_names(const capabilities& can) {
    std::string out;
    for (const auto n : {needs::groups, needs::lanes, needs::wakes, needs::durable, needs::shared}) {
        if (has(can, n)) {
            out += (out.empty() ? "" : ", ") + std::string(name_of(n));
        }
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : std::string(between)) + word;
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string indented(const std::string& text) {
    std::string out = "    ";
    for (const char c : text) {
        out += c;
        if (c == '\n') {
            out += "    ";
        }
    }
    return out;
}

} // namespace detail

/// Everything a backend author needs to know of one failure.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " FAILED: " + std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " +
           std::to_string(c.seed) + "\n";
    if (!c.failure.story.empty()) {
        out += detail::indented(c.failure.story) + "\n";
    }
    return out;
}

[[nodiscard]] inline std::string to_text(const report& r, std::string_view program = "conformance") {
    std::string out;
    for (const auto& c : r.clauses) {
        if (c.result == result::fail) {
            out += failure_text(c, program) + "\n";
        } else if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: " + c.why + "\n";
        }
    }
    const auto& t = r.tally;
    out += "store         " + r.identity.name + " " + r.identity.version + "\n";
    out += "capabilities  " + detail::capability_names(r.can) + "\n";
    out += "hooks         " + detail::joined(r.hooks, ", ") + "\n";
    for (const auto& m : r.missing) {
        out += "missing hook  " + m + "\n";
    }
    out += "platform      " + r.platform + "\n";
    out +=
        "profile       " + std::string(name_of(r.options.profile)) + ", seed " + std::to_string(r.options.seed) + "\n";
    out += "clauses       " + std::to_string(r.count(result::pass)) + " pass, " +
           std::to_string(r.count(result::fail)) + " fail, " + std::to_string(r.count(result::unsupported)) +
           " unsupported, " + std::to_string(r.count(result::untested)) + " untested, " +
           std::to_string(r.count(result::not_run)) + " not run\n";
    out += "done          " + std::to_string(t.commands) + " model commands, " + std::to_string(t.interleavings) +
           " interleavings, " + std::to_string(t.histories) + " histories, " + std::to_string(t.crash_points) +
           " crash points, " + std::to_string(t.faults) + " faults, " + std::to_string(t.simulated_seconds / 86'400) +
           " virtual days\n";
    if (t.histories > 0) {
        out += "overlapping   " + std::to_string(100 * t.overlapping / t.histories) + " % of the histories\n";
    }
    for (const auto& g : r.gaps) {
        out += "gap           " + g + "\n";
    }
    return out + "verdict       " + std::string(name_of(r.verdict())) + "\n";
}

namespace detail {

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

class json_object {
  public:
    json_object& text(std::string_view name, std::string_view value) { return raw(name, json(value)); }
    json_object& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json_object& raw(std::string_view name, const std::string& value) {
        out_ += std::string(out_.empty() ? "" : ", ") + json(name) + ": " + value;
        return *this;
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

  private:
    std::string out_{};
};

template <class Items, class Each>
[[nodiscard]] std::string json_list(const Items& items, std::string_view between, Each&& each) {
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : std::string(between)) + each(item);
    }
    return "[" + out + "]";
}

} // namespace detail

[[nodiscard]] inline std::string to_json(const report& r) {
    using detail::json;
    const auto& t = r.tally;
    detail::json_object done;
    done.number("commands", t.commands)
        .number("interleavings", t.interleavings)
        .number("histories", t.histories)
        .number("overlapping", t.overlapping)
        .number("crash_points", t.crash_points)
        .number("faults", t.faults)
        .number("virtual_seconds", t.simulated_seconds);
    detail::json_object answers;
    for (const auto& [name, count] : t.answers) {
        answers.number(name, count);
    }
    const auto clause = [](const clause_report& c) {
        detail::json_object out;
        out.text("id", c.clause.id).text("layer", name_of(c.clause.layer)).text("result", name_of(c.result));
        out.text("level", c.clause.level == level::must ? "MUST" : "MAY").text("needs", name_of(c.clause.needs));
        out.text("sentence", c.clause.sentence).number("ms", static_cast<std::uint64_t>(c.milliseconds));
        if (c.result == result::fail) {
            out.text("what", c.failure.what).text("seen", c.failure.seen).text("expected", c.failure.expected);
            out.number("seed", c.seed);
        }
        if (c.result == result::untested) {
            out.text("why", c.why);
        }
        return out.str();
    };
    const auto word = [](const std::string& text) { return json(text); };
    detail::json_object out;
    out.text("store", r.identity.name).text("version", r.identity.version);
    out.text("verdict", name_of(r.verdict())).text("profile", name_of(r.options.profile));
    out.number("seed", r.options.seed).text("platform", r.platform);
    out.text("capabilities", detail::capability_names(r.can));
    out.raw("hooks", detail::json_list(r.hooks, ", ", word)).raw("gaps", detail::json_list(r.gaps, ", ", word));
    out.raw("done", done.str()).raw("answers", answers.str());
    out.raw("clauses", detail::json_list(r.clauses, ",\n  ", clause));
    return out.str() + "\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/check.hpp
// Runs the clauses against a fixture: `check(fixture, options) -> report`, free of any test framework.
//
// A fixture has one function, `open(const place&)`, which returns a store. Hooks are found by their names:
// `crash(place)`, `seam(callback)`, `fail_at(n)`. A missing one lowers what can be said, and the report says so.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// Ends the program when a clause takes too long: a store that hangs cannot be interrupted, only named.
class watchdog {
  public:
    explicit watchdog(std::chrono::seconds patience)
        : patience_(patience), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

    void begin(std::string what) {
        const std::lock_guard lock(mutex_);
        what_ = std::move(what);
        until_ = std::chrono::steady_clock::now() + patience_;
        changed_.notify_all();
    }
    void end() { begin({}); }

  private:
    void watch(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            if (what_.empty()) {
                changed_.wait(lock, stop, [&] { return !what_.empty(); });
                continue;
            }
            const auto was = until_; // a copy, because the wait looks at it while the lock is open
            if (!changed_.wait_until(lock, stop, was, [&] { return until_ != was; }) && !stop.stop_requested()) {
                std::fprintf(stderr, "\n%s: HANGS: no answer for %lld s\n", what_.c_str(),
                             static_cast<long long>(patience_.count()));
                std::fflush(nullptr);
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    std::string what_{};
    std::chrono::steady_clock::time_point until_{};
    std::jthread thread_; // last: the others are there before it starts and after it ends
};

[[nodiscard]] inline std::uint64_t seed_of(const clause& c, std::uint64_t seed) noexcept {
    auto mixed = vouch::detail::mix(seed);
    for (const char letter : c.id) {
        mixed = vouch::detail::mix(mixed ^ static_cast<unsigned char>(letter));
    }
    return mixed;
}

/// Whether the check of this layer takes a conflict as it comes and goes on. The others are repeated.
[[nodiscard]] constexpr bool bears_conflicts(layer l) noexcept {
    return l == layer::stories || l == layer::interleavings || l == layer::histories || l == layer::crashes;
}

/// Runs the check once; what it throws that is not ours is a failure as well.
inline void attempt_once(stage& on, const clause& c, clause_report& into, script* written) {
    try {
        trial t(on, seed_of(c, on.options.seed), written);
        c.check(t);
        into.result = result::pass;
    } catch (const untested& u) {
        into.result = result::untested;
        into.why = u.why;
    } catch (const failure& f) {
        into.result = result::fail;
        into.failure = f;
    } catch (const error& e) {
        into.result = result::fail;
        into.failure = {.what = "the store threw where it should not",
                        .seen = show(e.kind()) + ": " + e.what(),
                        .expected = "no error"};
    } catch (const std::exception& e) {
        into.result = result::fail;
        into.failure = {.what = "something that is no vouch::error was thrown", .seen = e.what(), .expected = {}};
    }
}

/// Any call may end in `conflict`, and then all that was answered is void: a check that fails after one is repeated, on
/// a fresh store. Who has a conflict each time gets nowhere, and fails.
inline void attempt(stage& on, const clause& c, clause_report& into, script* written) {
    constexpr int tries = 40;
    for (int left = tries; left > 0; --left) {
        const auto tally = on.tally;
        const auto conflicts = on.counts->conflicts.load();
        attempt_once(on, c, into, written);
        const bool is_void =
            into.result == result::fail && on.counts->conflicts != conflicts && !bears_conflicts(c.layer);
        if (!is_void || left == 1) {
            return;
        }
        on.tally = tally;
        into.failure = {};
        if (written != nullptr) {
            *written = {};
        }
    }
}

[[nodiscard]] inline clause_report run_clause(stage& on, const clause& c) {
    clause_report out{.clause = c, .seed = on.options.seed};
    const auto begun = std::chrono::steady_clock::now();
    if (!has(on.can, c.needs)) {
        out.result = result::unsupported;
        return out;
    }
    const auto calls = on.counts->calls.load();
    attempt(on, c, out, nullptr);
    out.calls = on.counts->calls - calls;
    if (out.result == result::fail && out.failure.story.empty() && on.options.explains) {
        // Once more, to write down what led there. What several threads did cannot be told this way.
        script written;
        clause_report again{.clause = c};
        attempt(on, c, again, &written);
        if (again.result == result::fail && written.size() > 0) {
            out.failure.story = written.text();
        }
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return out;
}

template <class Fixture>
[[nodiscard]] hooks hooks_of(Fixture& fixture, report& r) {
    hooks out;
    const auto note = [&](bool there, const char* name, const char* without) {
        if (there) {
            r.hooks.emplace_back(name);
        } else {
            r.missing.push_back(std::string(name) + ": " + without);
        }
    };
    constexpr bool can_crash = requires(const place& p) { fixture.crash(p); };
    constexpr bool has_seam = requires(std::function<void(std::string_view)> f) { fixture.seam(f); };
    constexpr bool can_fail = requires(std::size_t n) {
        { fixture.fail_at(n) } -> std::convertible_to<bool>;
    };
    note(can_crash, "crash", "a crash is the end of all handles, with the files as they were then");
    note(has_seam, "seam", "threads meet by chance and not by schedule");
    note(can_fail, "fail_at", "faults are put before and after calls, not inside them");
    if constexpr (can_crash) {
        out.crash = [&fixture](const place& p) { fixture.crash(p); };
    }
    if constexpr (requires(const place& p) { fixture.forget(p); }) {
        out.forget = [&fixture](const place& p) { fixture.forget(p); }; // saves memory, proves nothing
    }
    if constexpr (has_seam) {
        out.seam = [&fixture](std::function<void(std::string_view)> f) { fixture.seam(std::move(f)); };
    }
    if constexpr (can_fail) {
        out.fail_at = [&fixture](std::size_t n) { return fixture.fail_at(n); };
    }
    return out;
}

[[nodiscard]] inline std::string platform() {
    std::string out;
#if defined(__clang__)
    out = "clang " + std::to_string(__clang_major__);
#elif defined(__GNUC__)
    out = "gcc " + std::to_string(__GNUC__);
#endif
#if defined(__SANITIZE_ADDRESS__)
    out += ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    out += ", thread sanitizer";
#endif
#if defined(__OPTIMIZE__)
    return out + ", optimised";
#else
    return out + ", not optimised";
#endif
}

/// What a verdict would need and was not seen, if it was looked for at all.
[[nodiscard]] inline std::vector<std::string> gaps_of(const tally& t, const capabilities& can) {
    std::vector<std::string> gaps;
    constexpr std::uint64_t percent_min = 30;
    if (t.histories > 0 && 100 * t.overlapping < percent_min * t.histories) {
        gaps.push_back("fewer than " + std::to_string(percent_min) + " % of the histories overlap");
    }
    const auto expect = [&](const std::string& what) {
        if (t.commands > 0 && t.answers.find(what) == t.answers.end()) {
            gaps.push_back("never seen: " + what);
        }
    };
    for (const std::string verb : {"succeed", "retry", "bury", "release", "advance", "extend", "nudge", "cancel"}) {
        for (const auto v : all_verdicts) {
            expect(verb + " " + std::string(name_of(v)));
        }
    }
    for (const auto* const what : {"enqueue inserted", "enqueue duplicate", "enqueue refused", "claim something",
                                   "claim nothing", "purge something", "purge nothing"}) {
        expect(what);
    }
    if (can.groups) {
        expect("group completed");
    }
    return gaps;
}

[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    return c.id.starts_with(o.clause) && (!o.layer || c.layer == *o.layer);
}

} // namespace detail

/// Who wants to know while clauses are run.
struct watcher {
    std::function<bool(const clause&)> begins{};       ///< false: this one is not run
    std::function<bool(const clause_report&)> ended{}; ///< false: none of the others is run
};

/// Runs the chosen clauses. Throws what the fixture's `open` throws when it is called for the first time.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const watcher& watching = {}) {
    report out{.identity = whose, .options = how};
    const auto root = std::filesystem::temp_directory_path() /
                      ("vouch-conformance-" + std::to_string(vouch::detail::mix(static_cast<std::uint64_t>(
                                                  std::chrono::steady_clock::now().time_since_epoch().count()))));
    places ground(root);
    stage on;
    on.open = [&fixture, counts = on.counts](const place& p) { return erase([&] { return fixture.open(p); }, counts); };
    on.hooks = detail::hooks_of(fixture, out);
    on.options = how;
    on.ground = &ground;
    on.can = on.open(ground.fresh()).capabilities();
    out.can = on.can;
    on.budget = budget_of(how.profile, on.can);
    out.platform = detail::platform();

    detail::watchdog dog(std::chrono::seconds{how.seconds_per_clause});
    bool goes_on = true;
    for (const auto& c : all_clauses()) {
        if (!goes_on || !detail::is_chosen(c, how) || (watching.begins && !watching.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        out.clauses.push_back(detail::run_clause(on, c));
        dog.end();
        goes_on = !watching.ended || watching.ended(out.clauses.back());
    }
    out.tally = on.tally;
    out.gaps = detail::gaps_of(out.tally, out.can);
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/run.hpp
// The suite as a whole program.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline constexpr std::string_view usage = "  --list                          print the clauses and exit\n"
                                          "  --clause ID                     only clauses whose id begins so\n"
                                          "  --layer NAME                    only this layer\n"
                                          "  --seed N                        another run (default 1)\n"
                                          "  --profile quick|standard|soak   how much is done (default standard)\n"
                                          "  --json FILE                     write the report as JSON, too\n"
                                          "  --text FILE                     write the report as text, too\n"
                                          "  --patience N                    seconds after which a clause hangs\n"
                                          "  --quiet                         no progress\n"
                                          "Exit code: 0 conformant, 1 failing, 2 partial, 3 hanging, 64 wrong usage.\n";

struct command_line {
    conformance::options options{.progress = true};
    bool list = false;
    std::string json{};
    std::string text{};
    std::string wrong{}; ///< what cannot be understood
};

template <class Enum>
[[nodiscard]] std::optional<Enum> by_name(std::string_view name, std::initializer_list<Enum> all) {
    for (const auto one : all) {
        if (name_of(one) == name) {
            return one;
        }
    }
    return std::nullopt;
}

template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size();
}

[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--json") {
        out.json = value;
    } else if (name == "--text") {
        out.text = value;
    } else if (name == "--seed") {
        return parse_number(value, out.options.seed);
    } else if (name == "--patience") {
        return parse_number(value, out.options.seconds_per_clause) && out.options.seconds_per_clause > 0;
    } else if (name == "--profile") {
        const auto found = by_name(value, {profile::quick, profile::standard, profile::soak});
        out.options.profile = found.value_or(profile::standard);
        return found.has_value();
    } else if (name == "--layer") {
        out.options.layer =
            by_name(value, {layer::fixture, layer::examples, layer::stories, layer::interleavings, layer::histories,
                            layer::crashes, layer::faults, layer::simulation, layer::cost});
        return out.options.layer.has_value();
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc && out.wrong.empty(); ++i) {
        const std::string_view name = argv[i];
        if (name == "--list") {
            out.list = true;
        } else if (name == "--quiet") {
            out.options.progress = false;
        } else if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = name;
        } else {
            ++i;
        }
    }
    return out;
}

inline void print_clauses() {
    for (const auto& c : all_clauses()) {
        std::printf("%-12s %-14s %-4s %-8s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                    c.level == level::must ? "MUST" : "MAY", std::string(name_of(c.needs)).c_str(),
                    std::string(c.sentence).c_str());
    }
}

} // namespace detail

/// For `main`: runs what the arguments ask for and returns the exit code.
template <class Fixture>
int run(const identity& whose, int argc, char** argv) {
    const auto asked = detail::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: cannot make sense of %s\n%s", program.c_str(), asked.wrong.c_str(),
                     std::string(detail::usage).c_str());
        return 64;
    }
    if (asked.list) {
        detail::print_clauses();
        return 0;
    }
    report r;
    try {
        Fixture fixture{};
        r = check(fixture, asked.options, whose);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot open a store: %s\n", program.c_str(), e.what());
        return 1;
    }
    const auto text = to_text(r, program);
    std::fputs(text.c_str(), stdout);
    for (const auto& [path, content] : {std::pair{asked.json, to_json(r)}, {asked.text, text}}) {
        if (!path.empty() && !(std::ofstream(path) << content).flush()) {
            std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), path.c_str());
            return 1;
        }
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_CONFORMANCE
