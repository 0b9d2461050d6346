// SPDX-License-Identifier: MIT
// The conformance suite: checks any store against the contract, and names the sentence that a store breaks.
//
//   struct fixture {
//       auto open(const vouch::conformance::location& at) { return acme::store{at.directory() / "acme.db"}; }
//   };
//   int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"acme", "1.4.0"}, argc, argv); }
//
// `check` does the same for use in another test framework. `any_store`, `recording` and `faulty` are for tests of your
// own, as are `expect` and its companions, which the tests printed for a failure use.
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
// A type-erased store, so that the suite is compiled once and not for every store type. `any_store` is itself a store.
// Copies share one handle. Errors of the wrapped store are passed on.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The reads of a store or a transaction.
class reader_interface {
  public:
    virtual ~reader_interface() = default;
    [[nodiscard]] virtual std::optional<entry> find(const id& wanted) const = 0;
    [[nodiscard]] virtual std::vector<entry> list(const query& q) const = 0;
    [[nodiscard]] virtual state_counts counts(std::string_view queue) const = 0;
    [[nodiscard]] virtual std::optional<time_point> next_due(std::string_view queue) const = 0;
};

/// The operations of a transaction.
class transaction_interface : public reader_interface {
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
    /// Moves the wrapped transaction into a new object and leaves this one moved from.
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> move_out() = 0;
};

/// The operations of a store.
class store_interface : public reader_interface {
  public:
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> begin() = 0;
    [[nodiscard]] virtual vouch::capabilities capabilities() const = 0;
    /// Called only if the store declares the capability `wakes`.
    [[nodiscard]] virtual std::uint64_t wakes(std::string_view queue) = 0;
    virtual std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                               std::stop_token stop) = 0;
};

/// The transaction of `any_store`.
class any_transaction {
  public:
    explicit any_transaction(std::unique_ptr<transaction_interface> wrapped) : wrapped_(std::move(wrapped)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return wrapped_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return wrapped_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return wrapped_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return wrapped_->next_due(queue); }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return wrapped_->enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) { return wrapped_->claim(request); }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return wrapped_->settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return wrapped_->extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) { return wrapped_->nudge(wanted, now); }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return wrapped_->cancel(wanted, error, now);
    }
    std::size_t purge(const purge_request& request) { return wrapped_->purge(request); }
    void commit() { wrapped_->commit(); }

    /// Move-constructs the wrapped transaction. This object stays usable and wraps the one moved from.
    [[nodiscard]] any_transaction move_out() { return any_transaction(wrapped_->move_out()); }

  private:
    std::unique_ptr<transaction_interface> wrapped_;
};

/// A store of any type.
class any_store {
  public:
    using transaction = any_transaction;
    static constexpr int contract_level = vouch::contract_level;

    explicit any_store(std::shared_ptr<store_interface> wrapped) : wrapped_(std::move(wrapped)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return wrapped_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return wrapped_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return wrapped_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return wrapped_->next_due(queue); }
    [[nodiscard]] any_transaction begin() { return any_transaction(wrapped_->begin()); }
    [[nodiscard]] vouch::capabilities capabilities() const { return wrapped_->capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) { return wrapped_->wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        return wrapped_->wait(queue, seen, at_most, std::move(stop));
    }

  private:
    std::shared_ptr<store_interface> wrapped_;
};

/// Counts the calls on transactions, and those that threw `conflict`.
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
class wrapped_transaction final : public transaction_interface {
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
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
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
class wrapped_store final : public store_interface {
  public:
    template <class Open>
    wrapped_store(Open&& open, std::shared_ptr<call_counts> counts) : store_(open()), counts_(std::move(counts)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        return detail::counted(*counts_, [&]() -> std::unique_ptr<transaction_interface> {
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

/// Wraps the store that `open()` returns. If its type is not a store, the compiler prints what it lacks.
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
// A clause: one numbered sentence of the contract, with the check that a store obeys it.

namespace vouch {
inline namespace v0 {
namespace conformance {

class trial; ///< what a check works with; for the suite only

enum class level : std::uint8_t {
    must, ///< applies to every store
    may,  ///< applies to stores that declare the capability; other stores must refuse its use
};

/// The capability that a clause applies to.
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

/// The kinds of checks, from the fixture itself to the simulation. conformance/README.md describes them.
enum class layer : std::uint8_t {
    fixture,
    examples,
    model,
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
    case layer::model: return "model";
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

// ---- vouch/conformance/values.hpp
// The times, ids and bytes that printed tests are made of.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline id& id_in(draft& d) noexcept { return d.id; }
[[nodiscard]] inline id& id_in(ticket& t) noexcept { return t.id; }
[[nodiscard]] inline id& id_in(settle& s) noexcept { return s.ticket.id; }

} // namespace detail

/// The time at which the suite's tests start.
inline constexpr time_point start{std::chrono::hours{24 * 365 * 50}};

/// `us` microseconds after the start.
[[nodiscard]] constexpr time_point at(std::int64_t us) noexcept { return start + duration{us}; }

/// The suite's ids are numbers. 0 is the nil id.
[[nodiscard]] constexpr id id_of(std::uint64_t n) noexcept { return {.high = n == 0 ? 0U : 7U, .low = n}; }

[[nodiscard]] inline std::vector<id> ids_of(const std::vector<entry>& entries) {
    std::vector<id> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id);
    }
    return out;
}

[[nodiscard]] inline std::vector<ticket> tickets_of(const std::vector<entry>& entries) {
    std::vector<ticket> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(ticket_of(e));
    }
    return out;
}

/// `size` pseudo-random bytes, the same on every call.
[[nodiscard]] inline std::string pattern(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t x = 1;
    for (auto& c : out) {
        x = x * 1664525U + 1013904223U;
        c = static_cast<char>(x >> 24U);
    }
    return out;
}

/// `count` copies of a draft, ticket or settle with ascending ids.
template <class T>
[[nodiscard]] std::vector<T> numbered(std::size_t count, const T& first) {
    std::vector<T> out(count, first);
    for (std::size_t i = 0; i < count; ++i) {
        detail::id_in(out[i]).low += i;
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/show.hpp
// Values as text for failures and printed tests: times relative to the suite's start, ids as numbers, and of two
// entries only the fields that differ.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

// As C++, where possible.

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

/// The fields that differ from those of a default-constructed entry.
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

/// Like `show`, but shows only the first two items, the last one and the size of a long list.
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

/// What was seen and what was expected, as far as they differ.
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/location.hpp
// Where a store under test keeps its work. The suite opens the same location twice for a second handle, opens it again
// after destroying all handles for a reopen, and takes a new location for an empty store.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Names one store. Ordered, so that a fixture can use it as a map's key.
class location {
  public:
    explicit location(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// A folder that belongs to this location. It exists and is empty when the location is opened for the first time. A
    /// store that needs no files may use the path as a name.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
    [[nodiscard]] friend bool operator==(const location&, const location&) = default;
    [[nodiscard]] friend bool operator<(const location& a, const location& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/json.hpp
// The little JSON that reports need: strings, objects and lists.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/options.hpp
// How much the suite does. Budgets are counts, not times, so that a seed determines the whole run.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The store that is tested.
struct identity {
    std::string name{};
    std::string version{};
};

enum class profile : std::uint8_t {
    quick,    ///< takes seconds, for use while developing
    standard, ///< takes about a minute; the basis of a verdict
    soak,     ///< takes hours
};

[[nodiscard]] constexpr std::string_view name_of(profile p) noexcept {
    switch (p) {
    case profile::quick: return "quick";
    case profile::standard: return "standard";
    case profile::soak: return "soak";
    }
    return "?";
}

/// How many cases of each kind are run.
struct budget {
    std::size_t model_runs = 0;
    std::size_t commands_per_run = 0;
    std::size_t schedules = 0; ///< for each pair of transactions
    std::size_t histories = 0;
    std::size_t crash_points = 0;
    std::size_t simulated_days = 0;
    std::size_t cost_rows = 0; ///< the largest number of entries that a claim must not look at
};

/// The budget for a store in memory.
[[nodiscard]] constexpr budget budget_of(profile p) noexcept {
    switch (p) {
    case profile::quick:
        return {.model_runs = 400,
                .commands_per_run = 100,
                .schedules = 12,
                .histories = 1'500,
                .crash_points = 100,
                .simulated_days = 5,
                .cost_rows = 10'000};
    case profile::standard: break;
    case profile::soak:
        return {.model_runs = 200'000,
                .commands_per_run = 200,
                .schedules = 1'000,
                .histories = 500'000,
                .crash_points = 50'000,
                .simulated_days = 5'000,
                .cost_rows = 100'000};
    }
    return {.model_runs = 10'000,
            .commands_per_run = 100,
            .schedules = 100,
            .histories = 20'000,
            .crash_points = 1'000,
            .simulated_days = 130,
            .cost_rows = 100'000};
}

/// The budget for a store with these capabilities. A durable store is much slower, so it gets a smaller budget.
[[nodiscard]] constexpr budget budget_of(profile p, const capabilities& can) noexcept {
    auto b = budget_of(p);
    if (can.durable) {
        b.model_runs /= 10;
        b.schedules = (b.schedules + 3) / 4;
        b.histories /= 5;
        b.simulated_days = (b.simulated_days + 9) / 10;
    }
    return b;
}

struct options {
    std::uint64_t seed = 1;
    conformance::profile profile = conformance::profile::standard;
    std::string clause{};                      ///< only clauses whose id starts with this; empty: all
    std::optional<conformance::layer> layer{}; ///< only this layer; empty: all
    std::size_t seconds_per_clause = 300;      ///< a clause that takes longer hangs, and the program ends
    bool progress = false;                     ///< print each clause to stderr before it is run
    bool explains = true;                      ///< shrink failing cases and write transcripts; false is faster
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report.hpp
// The report of a run: a result per clause, how much was done, and the verdict; as text and as JSON. Two runs with the
// same seed give the same report, except for the times.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// An expectation that was not met.
struct failure {
    std::string what{}; ///< what was compared, or what must hold
    std::string seen{};
    std::string expected{};
    std::string transcript{}; ///< the calls that led there: a test, a schedule or a log
};

/// How much was done.
struct tally {
    std::uint64_t commands = 0;
    std::uint64_t interleavings = 0;
    std::uint64_t histories = 0;
    std::uint64_t overlapping = 0; ///< histories in which concurrent operations touched the same entries
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< by operation and answer: "extend applied"
};

enum class result : std::uint8_t {
    pass,
    fail,
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture or the machine lacks something; `clause_report::why` says what
    not_run,     ///< the options exclude it
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
    std::string why{}; ///< only for `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< repeats the run
    std::uint64_t calls = 0; ///< calls on transactions
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies passes
    partial,    ///< no clause fails, but a MUST was not tested, or `report::gaps` is not empty
    failing,    ///< a clause fails
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
    std::vector<std::string> hooks{};   ///< the hooks that the fixture has
    std::vector<std::string> missing{}; ///< the hooks that it lacks, and what is checked less without them
    std::string platform{};
    std::vector<clause_report> clauses{};
    conformance::tally tally{};
    std::vector<std::string> gaps{}; ///< what the run did not see often enough for a verdict

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

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and the transcript.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " FAILED: " + std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " +
           std::to_string(c.seed) + "\n";
    if (!c.failure.transcript.empty()) {
        out += detail::indented(c.failure.transcript) + "\n";
    }
    return out;
}

/// The whole report as text. `program` is the name in the commands that repeat failures.
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

/// The whole report as JSON.
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

// ---- vouch/conformance/detail/fixture_hooks.hpp
// The optional functions of a fixture, found by their names. A report lists those that are missing and what they cost.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct fixture_hooks {
    /// Leaves the location as the death of its process would. All handles on it have just been destroyed.
    std::function<void(const location&)> crash{};
    /// Makes the store call back between its internal steps, on the thread that is in the store. Null: stop calling.
    std::function<void(std::function<void(std::string_view)>)> seam{};
    /// Says that this location will not be opened again.
    std::function<void(const location&)> forget{};
    /// Makes the n-th of the store's internal steps fail, counted from now; 0: none. Returns whether one has failed
    /// since the last call.
    std::function<bool(std::size_t)> fail_at{};
};

template <class Fixture>
[[nodiscard]] fixture_hooks hooks_of(Fixture& fixture, report& r) {
    fixture_hooks out;
    const auto note = [&](bool there, const char* name, const char* without) {
        if (there) {
            r.hooks.emplace_back(name);
        } else {
            r.missing.push_back(std::string(name) + ": " + without);
        }
    };
    constexpr bool can_crash = requires(const location& p) { fixture.crash(p); };
    constexpr bool has_seam = requires(std::function<void(std::string_view)> f) { fixture.seam(f); };
    constexpr bool can_fail = requires(std::size_t n) {
        { fixture.fail_at(n) } -> std::convertible_to<bool>;
    };
    note(can_crash, "crash", "a crash destroys all handles and restores the files as they were at that moment");
    note(has_seam, "seam", "threads are scheduled between operations only, not inside them");
    note(can_fail, "fail_at", "faults are injected before and after calls, not inside them");
    if constexpr (can_crash) {
        out.crash = [&fixture](const location& p) { fixture.crash(p); };
    }
    if constexpr (requires(const location& p) { fixture.forget(p); }) {
        out.forget = [&fixture](const location& p) { fixture.forget(p); }; // only saves memory, so it is not reported
    }
    if constexpr (has_seam) {
        out.seam = [&fixture](std::function<void(std::string_view)> f) { fixture.seam(std::move(f)); };
    }
    if constexpr (can_fail) {
        out.fail_at = [&fixture](std::size_t n) { return fixture.fail_at(n); };
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/locations.hpp
// Makes the locations of one run, below a folder that is removed at the end. Thread-safe.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class locations {
  public:
    explicit locations(std::filesystem::path root) : root_(std::move(root)) {
        std::filesystem::create_directories(root_);
    }
    locations(const locations&) = delete;
    locations& operator=(const locations&) = delete;
    ~locations() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    [[nodiscard]] location fresh() {
        location fresh(root_ / std::to_string(++made_));
        std::filesystem::create_directory(fresh.directory());
        return fresh;
    }

  private:
    std::filesystem::path root_;
    std::atomic<unsigned long long> made_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/random_source.hpp
// Random numbers that are the same on every machine. (RapidCheck's own ranges depend on its size parameter.)

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A SplitMix64 generator.
class random_source {
  public:
    explicit random_source(std::uint64_t seed) : state_(vouch::detail::mix(seed)) {}

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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/model.hpp
// A second implementation of the contract, as simple as possible: a list of records, searched from end to end for every
// operation. It is written from the design alone and uses none of the library's rules (`apply`, `gate_of`, `born`), so
// that a store that agrees with it does not merely share its mistakes. Arguments must be valid.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class model {
  public:
    struct record {
        vouch::entry entry{};
        std::uint64_t replaces = 0; ///< the sequence of its predecessor; ids can be reused, sequences cannot
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
        e.sequence =
            records.empty() ? 1 : records.back().entry.sequence + 1; // replaced by the sequence that the store chooses
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
                e->attempts += e->lapses == 0 ? 0 : 1; // the first lapse may have been caused by another entry
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

    /// Members not yet succeeded. A dead member with a successor does not count; its successor does.
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/expect.hpp
// The expectations in the tests that the suite prints for a failure. Values are compared in their printed form, so that
// a person can read the test. An expectation that is not met throws `std::logic_error`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline void expect_text(const std::string& seen, std::string_view wanted) {
    if (seen != wanted) {
        throw std::logic_error("expected " + std::string(wanted) + ", seen " + seen);
    }
}

} // namespace detail

/// Requires that `seen` prints as `wanted`.
template <class T>
void expect(const T& seen, std::string_view wanted) {
    detail::expect_text(detail::show_briefly(seen), wanted);
}

/// Requires that `f` throws a `vouch::error` of this kind.
template <class F>
void expect_error(error_kind wanted, const F& f) {
    std::string seen = "no error";
    try {
        f();
    } catch (const error& e) {
        seen = detail::show(e.kind());
    }
    detail::expect_text(seen, detail::show(wanted));
}

/// Calls `f` and ignores a `vouch::error`.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): the printed test marks a call that may fail
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/as_code.hpp
// The arguments of a store's operations as C++ expressions.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The whole text as a string literal.
[[nodiscard]] inline std::string as_literal(std::string_view text) {
    constexpr std::size_t piece = 50;
    std::string out = "\"";
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
        const auto quoted = show(text.substr(0, piece));
        out.append(quoted, 1, quoted.size() - 2);
    }
    return out + "\"";
}

/// A braced list of designated initialisers.
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
    /// The whole string, including NULs.
    [[nodiscard]] static std::string value_of(const std::string& value) {
        constexpr std::size_t long_text = 60;
        const auto tail =
            value.find_last_not_of(value.empty() ? ' ' : value.back()) + 1; // where a run of one character starts
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/first_difference.hpp
// Compares everything that can be read from a store with the model, and writes the first difference as a line of code.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A query and the code that makes it.
struct named_query {
    std::string code{};
    vouch::query query{};
};

/// The ids, queues, keys, groups and parents that drafts have used, and the queries that read them.
class known_names {
  public:
    void add(const draft& d) {
        ids_.insert(d.id);
        queues_.insert(d.queue);
        const auto add_query = [&](std::string code, const vouch::query& q) {
            if (codes_.insert(code).second) {
                queries_.push_back({std::move(code), q});
            }
        };
        const auto queue = as_literal(d.queue);
        add_query("query::all(" + queue + ")", query::all(d.queue));
        add_query("query::live(" + queue + ")", query::live(d.queue));
        add_query("query::dead(" + queue + ")", query::dead(d.queue));
        if (!d.key.empty()) {
            add_query("query::keyed(" + queue + ", " + as_literal(d.key) + ")", query::keyed(d.queue, d.key));
        }
        if (!d.group.empty()) {
            add_query("query::members(" + as_literal(d.group) + ")", query::members(d.group));
        }
        if (!d.parent.is_nil()) {
            add_query("query::children(" + members::value_of(d.parent) + ")", query::children(d.parent));
        }
    }
    [[nodiscard]] const std::set<id>& ids() const noexcept { return ids_; }
    [[nodiscard]] const std::set<std::string>& queues() const noexcept { return queues_; }
    [[nodiscard]] const std::vector<named_query>& queries() const noexcept { return queries_; }

  private:
    std::set<id> ids_{};
    std::set<std::string> queues_{};
    std::set<std::string> codes_{};
    std::vector<named_query> queries_{};
};

/// `expect(code, "wanted"); // seen: ...`, or nothing if they are equal.
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

/// The first read that differs from the model, as a line of code; empty if there is none.
template <class Reader>
[[nodiscard]] std::string first_difference(const Reader& reader, const std::string& name, const model& wanted,
                                           const known_names& known) {
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
    for (const auto& q : known.queries()) {
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
// The source of a C++ test that repeats the calls on a store, line by line. `test_writer.hpp` fills it. Not thread-safe.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// What a test source knows about one of the stores that are called.
struct tracked_store {
    std::size_t number = 0;
    model committed{};
    known_names names{};
    std::size_t open = 0;   ///< transactions
    bool is_checked = true; ///< compared with `committed` since its last change
};

class test_source {
  public:
    void add(std::string code) { lines_.push_back({std::move(code)}); }
    /// Replaces the last line.
    void rewrite(std::string code) { lines_.back().code = std::move(code); }
    /// Adds the destruction of a handle or a transaction. It is left out of the text if it is the last line.
    void add_end(const std::string& of, std::string_view how) {
        lines_.push_back({"{ auto gone = std::move(" + of + "); } // " + std::string(how), true});
    }

    [[nodiscard]] std::string next_handle() { return "s" + std::to_string(++handles_); }
    [[nodiscard]] std::string next_transaction() { return "tx" + std::to_string(++transactions_); }
    [[nodiscard]] std::shared_ptr<tracked_store> store_at(const std::string& location) {
        auto& found = stores_[location];
        if (!found) {
            found = std::make_shared<tracked_store>();
            found->number = stores_.size();
        }
        return found;
    }

    /// Whether the model still predicts the answers. It does not if transactions overlap or a commit is in doubt.
    [[nodiscard]] bool can_predict() const noexcept { return can_predict_; }
    void stop_predicting() noexcept { can_predict_ = false; }
    /// Ends the test here: the last line shows the wrong answer.
    void end_here() noexcept {
        can_predict_ = false;
        shown_ = lines_.size();
    }

    /// The test: a function that makes the same calls on any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` opens a handle on store n, which is empty at first.\n"
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
    std::map<std::string, std::shared_ptr<tracked_store>> stores_{};
    bool can_predict_ = true;
    std::size_t shown_ = static_cast<std::size_t>(-1); ///< lines
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/test_writer.hpp
// A store that writes the calls on another store down as a test. Each call expects the answer of the model, up to the
// first answer or entry that differs. Where the model cannot predict, because transactions overlap, the test shows the
// answer that was seen.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Reads everything and writes down the first difference from the model.
template <class Reader>
void report_difference(const Reader& reader, const std::string& name, const model& wanted, tracked_store& known,
                       test_source& to) {
    constexpr std::size_t many = 40;
    known.is_checked = true;
    if (!to.can_predict() || wanted.records.size() > many) {
        return;
    }
    try {
        if (auto line = first_difference(reader, name, wanted, known.names); !line.empty()) {
            to.add(std::move(line));
            to.end_here();
        }
    } catch (const error&) { // NOLINT(bugprone-empty-catch): what cannot be read cannot be compared
    }
}

class test_writer_transaction final : public transaction_interface {
  public:
    test_writer_transaction(any_transaction tx, std::string name, const any_store& store, std::string handle,
                            std::shared_ptr<tracked_store> known, test_source& to)
        : tx_(std::move(tx)), name_(std::move(name)), store_(store), handle_(std::move(handle)),
          known_(std::move(known)), own_(known_->committed), source_(to) {
        if (++known_->open > 1) {
            source_.stop_predicting();
        }
    }
    test_writer_transaction(const test_writer_transaction&) = delete;
    test_writer_transaction& operator=(const test_writer_transaction&) = delete;
    ~test_writer_transaction() override {
        if (!is_done_) {
            source_.add_end(name_, is_closed_ ? "closed" : "rolled back");
            close();
            known_->is_checked = false;
        }
    }

    // Reads are not written down: everything is compared after every call, and only a difference is written.
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
        source_.add(code + ";");
        perform(code + ";", refusal([](const vouch::capabilities&) {}), [&] {
            tx_.commit();
            return done{};
        });
        close();
        is_done_ = true;
        known_->committed = own_;
        report_difference(store_, handle_, own_, *known_, source_);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        auto name = source_.next_transaction();
        source_.add("auto " + name + " = std::move(" + name_ + ");");
        auto out = std::make_unique<test_writer_transaction>(tx_.move_out(), std::move(name), store_, handle_, known_,
                                                             source_);
        out->own_ = own_;
        close();
        is_done_ = true;
        return out;
    }

  private:
    /// The error that the call must throw, because of an argument or because the transaction is closed.
    template <class Check>
    [[nodiscard]] std::optional<error_kind> refusal(const Check& check) const {
        if (is_closed_) {
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

    /// The store chooses the sequences.
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

    /// Makes the call. If it throws, or should throw, writes that down.
    template <class Call>
    std::invoke_result_t<Call&> perform(const std::string& statement, std::optional<error_kind> due, const Call& call) {
        const auto throwing = [&](error_kind kind) {
            return "expect_error(error_kind::" + show(kind) + ", [&] { " + statement + " });";
        };
        try {
            auto answer = call();
            if (due) {
                source_.rewrite(throwing(*due) + " // seen: no error");
                source_.end_here();
            }
            return answer;
        } catch (const error& e) {
            if (due) {
                source_.rewrite(throwing(*due) + (e.kind() == *due ? "" : " // seen: " + show(e.kind())));
            } else {
                source_.rewrite("let_fail([&] { " + statement + " }); // throws " + show(e.kind()) +
                                (e.is_in_doubt() ? ", in doubt" : ""));
            }
            if (due && e.kind() != *due) {
                source_.end_here();
            } else if (e.is_in_doubt()) {
                source_.stop_predicting();
            }
            if (e.kind() != error_kind::invalid_argument) {
                close();
            }
            throw;
        } catch (...) {
            source_.rewrite(statement + " // throws an exception that is not a vouch::error");
            throw;
        }
    }

    template <class Check, class Ask, class Call>
    std::invoke_result_t<Call&> write(const std::string& code, const Check& check, const Ask& ask, const Call& call) {
        source_.add("std::ignore = " + code + ";");
        const auto due = refusal(check);
        const auto wanted = due || !source_.can_predict() ? std::string() : ask();
        auto answer = perform("std::ignore = " + code + ";", due, call);
        const auto seen = show_briefly(answer);
        if (wanted.empty() && !due) {
            source_.rewrite("std::ignore = " + code + "; // " + seen);
        } else if (!due) {
            source_.rewrite("expect(" + code + ", " + as_literal(wanted) + ");" +
                            (seen == wanted ? "" : " // seen: " + seen));
        }
        if (!wanted.empty() && seen != wanted) {
            source_.end_here();
        }
        report_difference(tx_, name_, own_, *known_, source_);
        report_difference(store_, handle_, known_->committed, *known_, source_);
        return answer;
    }

    void close() {
        known_->open -= is_closed_ ? 0U : 1U;
        is_closed_ = true;
    }

    any_transaction tx_;
    std::string name_;
    any_store store_; ///< to read what is committed
    std::string handle_;
    std::shared_ptr<tracked_store> known_;
    model own_; ///< what the transaction must see
    test_source& source_;
    bool is_closed_ = false; ///< its use is misuse
    bool is_done_ = false;   ///< committed or moved from
};

class test_writer_store final : public store_interface {
  public:
    test_writer_store(any_store store, std::shared_ptr<tracked_store> known, test_source& to)
        : store_(std::move(store)), known_(std::move(known)), name_(to.next_handle()), source_(to) {
        source_.add("auto " + name_ + " = open(" + std::to_string(known_->number) + ");");
        known_->is_checked = false;
    }
    test_writer_store(const test_writer_store&) = delete;
    test_writer_store& operator=(const test_writer_store&) = delete;
    ~test_writer_store() override { source_.add_end(name_, "closed"); }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return checked_store().find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return checked_store().list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return checked_store().counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return checked_store().next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        auto tx = store_.begin();
        auto name = source_.next_transaction();
        source_.add("auto " + name + " = " + name_ + ".begin();");
        return std::make_unique<test_writer_transaction>(std::move(tx), std::move(name), store_, name_, known_,
                                                         source_);
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    [[nodiscard]] const any_store& checked_store() const {
        if (!known_->is_checked) {
            report_difference(store_, name_, known_->committed, *known_, source_);
        }
        return store_;
    }

    any_store store_;
    std::shared_ptr<tracked_store> known_;
    std::string name_;
    test_source& source_;
};

/// The same store, with its calls written to `to`, which must outlive it. Handles on one location share one model.
[[nodiscard]] inline any_store write_test(any_store store, test_source& to, const std::string& location = {}) {
    return any_store(std::make_shared<test_writer_store>(std::move(store), to.store_at(location), to));
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/trial.hpp
// What the check of a clause works with: stores at locations of its own, randomness from the seed, the budget, and
// expectations. An expectation that is not met ends the check with a `failure`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace clauses {
using namespace detail; // NOLINT(google-build-using-namespace): clauses are written in the suite's own words
} // namespace clauses

namespace detail {

/// Thrown by a check that cannot be carried out on this store or fixture.
struct untested {
    std::string why{};
};

/// What all trials of one run share.
struct run_context {
    std::function<any_store(const location&)> open{};
    fixture_hooks hooks{};
    conformance::options options{};
    conformance::budget budget{};
    vouch::capabilities can{};
    detail::locations* locations = nullptr;
    conformance::tally tally{};
    std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
};

} // namespace detail

class trial {
  public:
    /// With a `source`, all calls on the stores it opens are written there as a test.
    trial(detail::run_context& context, std::uint64_t seed, detail::test_source* source = nullptr)
        : context_(context), random_(seed), seed_(seed), source_(source), home_(context.locations->fresh()) {}
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;
    ~trial() { abandon(home_); }

    /// Opens a handle on the trial's own location. Further calls open further handles on the same work.
    [[nodiscard]] any_store open() { return open(home_); }
    [[nodiscard]] any_store open(const location& p) {
        auto store = context_.open(p);
        return source_ == nullptr ? store : detail::write_test(store, *source_, p.directory().string());
    }
    [[nodiscard]] const location& home() const noexcept { return home_; }
    [[nodiscard]] location fresh_location() { return context_.locations->fresh(); }

    /// Removes what is stored at a location. Its handles are destroyed and it is not opened again.
    void abandon(const location& p) {
        if (context_.hooks.forget) {
            context_.hooks.forget(p);
        }
        std::error_code ignored;
        std::filesystem::remove_all(p.directory(), ignored);
    }

    [[nodiscard]] detail::random_source& random() noexcept { return random_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] const conformance::budget& budget() const noexcept { return context_.budget; }
    [[nodiscard]] const conformance::options& options() const noexcept { return context_.options; }
    [[nodiscard]] const detail::fixture_hooks& hooks() const noexcept { return context_.hooks; }
    [[nodiscard]] const vouch::capabilities& can() const noexcept { return context_.can; }
    [[nodiscard]] conformance::tally& tally() noexcept { return context_.tally; }
    [[nodiscard]] detail::run_context& context() noexcept { return context_; }
    [[nodiscard]] detail::test_source* source() const noexcept { return source_; }

    // Expectations. `what` names what is compared, or states what must hold.

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
                auto [a, b] = detail::show_difference(seen, expected);
                fail(std::string(what), std::move(a), std::move(b));
            }
        } else if constexpr (std::integral<Seen>) {
            equal(seen, static_cast<Seen>(expected), what);
        } else {
            equal(seen, Seen(expected), what);
        }
    }

    /// Requires that `f` throws a `vouch::error` of this kind. Lets a conflict pass, because any call may throw one.
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
            fail(std::string(what), "an exception that is not a vouch::error", detail::show(kind));
        }
        fail(std::string(what), "no error", detail::show(kind));
    }

  private:
    detail::run_context& context_;
    detail::random_source random_;
    std::uint64_t seed_;
    detail::test_source* source_;
    location home_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/steps.hpp
// Short functions for checks: numbered drafts, transactions of one call, and snapshots of everything that can be read.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A draft with the number n in the queue "q". Other fields come from `more`.
[[nodiscard]] inline draft draft_of(std::uint64_t n, draft more = {}) {
    more.id = id_of(n);
    more.queue = more.queue.empty() ? "q" : more.queue;
    more.topic = more.topic.empty() ? "t" : more.topic;
    return more;
}

// Each of these is one transaction.

/// Runs `work(tx)`, which may commit. Repeats it from begin after a conflict.
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

struct claim_options {
    std::size_t limit = 100;
    std::string queue = "q";
    duration lease{100};
    std::string worker = "w";
    id only{};
};

[[nodiscard]] inline claim_request request(time_point now, claim_options how = {}) {
    return {.queue = std::move(how.queue),
            .limit = how.limit,
            .now = now,
            .lease = how.lease,
            .worker = std::move(how.worker),
            .only = how.only};
}

template <class Store>
[[nodiscard]] std::vector<entry> take(Store& store, time_point now, claim_options how = {}) {
    return claim(store, request(now, std::move(how)));
}

/// Claims the only eligible entry and returns its ticket.
template <class Store>
[[nodiscard]] ticket take_one(Store& store, time_point now, claim_options how = {}) {
    const auto claimed = take(store, now, std::move(how));
    trial::equal(claimed.size(), std::size_t{1}, "entries claimed");
    return ticket_of(claimed.front());
}

/// Claims entry n, which is due at 0, and takes it over `lapses` times, each time exactly at the end of its lease of
/// 100 us. Returns the ticket of the last claim, which is at 100 us x `lapses`.
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

/// Enqueues a draft and cancels it.
template <class Store>
void put_dead(Store& store, const draft& d, time_point now = at(0)) {
    trial::equal(put(store, d, now).what == receipt::kind::inserted, true, "enqueued");
    trial::equal(cancel(store, d.id, now), verdict::applied, "cancelled");
}

// Reads.

/// The entry with the number n, which must be stored.
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

/// Everything that can be read with the names that checks use: ids 1 to 20; queues "q" and "r"; keys "k" and "l"; groups
/// "g" and "h".
struct snapshot {
    std::vector<entry> found{};
    std::vector<std::vector<entry>> listed{};
    std::vector<state_counts> counts{};
    std::vector<std::optional<time_point>> due{};

    [[nodiscard]] friend bool operator==(const snapshot&, const snapshot&) = default;
};

template <class Reader>
[[nodiscard]] snapshot snapshot_of(const Reader& reader) {
    snapshot out;
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

/// The parts that differ.
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const snapshot& seen,
                                                                         const snapshot& expected) {
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

/// Requires that nothing has changed since `before`.
template <class Reader>
void unchanged(const Reader& reader, const snapshot& before, std::string_view what) {
    const auto now = snapshot_of(reader);
    if (!(now == before)) {
        auto [a, b] = show_difference(now, before);
        trial::fail(std::string(what), std::move(a), std::move(b));
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/cancel.hpp
// Cancel: ends an entry that no worker holds.

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
    const auto before = snapshot_of(store);
    t.equal(settle(store, ticket, succeed{"late"}, at(110)), settlement{verdict::stale}, "the settle after the cancel");
    t.equal(extend(store, ticket, at(110), duration{100}), verdict::stale, "the extend after the cancel");
    unchanged(store, before, "the old ticket cannot change the entry");
}

inline void lease_ends_exactly_now(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = snapshot_of(store);
    t.equal(cancel(store, id_of(1), at(99)), verdict::stale, "the cancel one microsecond before the lease ends");
    unchanged(store, before, "a cancel does not change a claim whose lease runs");
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
    t.equal(get(store, 2).last_error, std::string{}, "the empty error, which replaces the earlier one");
}

inline void error_out_of_bounds(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
    t.equal(cancel(store, id_of(1), at(2), "second"), verdict::repeated, "the second cancel");
    unchanged(store, before, "a second cancel changes nothing, its error included");
}

inline void by_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = snapshot_of(store).found;
    std::ignore = cancel(store, id_of(2), at(1), "why");
    expected[1].state = state::dead;
    expected[1].last_error = "why";
    expected[1].updated_at = at(1);
    t.equal(snapshot_of(store).found, expected, "the entries after one was cancelled");
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
           "A pending entry that is cancelled is dead with the given error; beside that only updated_at changes.",
           cancel_checks::pending_fields},
    clause{"CANCEL-02", layer::examples, level::must, needs::nothing,
           "A retrying entry that is cancelled is dead with the given error; epoch, attempts and failures stay.",
           cancel_checks::retrying_fields},
    clause{
        "CANCEL-03", layer::examples, level::must, needs::nothing,
        "A lapsed claim that is cancelled is dead, its epoch is incremented, and its lease and wake mark are cleared.",
        cancel_checks::lapsed_fields},
    clause{"CANCEL-04", layer::examples, level::must, needs::nothing,
           "After a lapsed claim was cancelled, its ticket is stale.", cancel_checks::lapsed_ticket_is_stale},
    clause{"CANCEL-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be cancelled exactly from the end of its lease on, extended or not.",
           cancel_checks::lease_ends_exactly_now},
    clause{"CANCEL-06", layer::examples, level::must, needs::nothing,
           "A cancel stores its error, from the empty one to the longest.", cancel_checks::error_is_stored},
    clause{"CANCEL-07", layer::examples, level::must, needs::nothing,
           "A cancel whose error is out of bounds throws invalid_argument and changes nothing.",
           cancel_checks::error_out_of_bounds},
    clause{"CANCEL-08", layer::examples, level::must, needs::nothing,
           "A second cancel is repeated and keeps the first error.", cancel_checks::first_error_stays},
    clause{"CANCEL-09", layer::examples, level::must, needs::nothing, "A cancel changes only the entry with its id.",
           cancel_checks::by_id},
    clause{"CANCEL-10", layer::examples, level::must, needs::nothing,
           "A lapsed claim that is cancelled keeps its lapses and attempts, because a cancel is not a takeover.",
           cancel_checks::lapses_stay},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/enqueue.hpp
// Enqueue: the entry that a draft becomes, the receipts, and the order of sequences.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace enqueue_checks {

using receipts = std::vector<receipt>;

[[nodiscard]] constexpr receipt inserted(std::uint64_t n) noexcept { return {receipt::kind::inserted, id_of(n)}; }
[[nodiscard]] constexpr receipt duplicate(std::uint64_t n) noexcept { return {receipt::kind::duplicate, id_of(n)}; }
inline constexpr receipt refused{receipt::kind::refused, {}};

/// Enqueues a draft and brings it into a state: claimed until at(100), retrying from at(10).
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

/// Requires that the draft is stored as the model says. The store chooses the sequence.
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
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due with an entry that was stored as succeeded");
    t.equal(take(store, at(100)).size(), 0, "claimed of entries that were stored as succeeded");
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
            t.fail("sequences are greater than zero and increase with every draft, in all queues and at all times",
                   show(seen));
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
        t.expect(get(store, n + 10).sequence > used, "the sequence is greater than that of a purged entry");
        cancel(store, id_of(n + 10), at(2));
        purge(store, {.queue = "q", .before = at(3)});
    }
    put_dead(store, draft_of(5));
    const auto used = get(store, 5).sequence;
    auto tx = store.begin();
    t.equal(tx.purge({.queue = "q", .before = at(1)}), 1, "purged of the newest, in a transaction");
    const std::array drafts{draft_of(6)};
    tx.enqueue(drafts, at(0));
    t.expect(get(tx, 6).sequence > used,
             "the sequence is greater than that of an entry purged in the same transaction");
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
    t.expect(get(again, 3).sequence > used, "after a reopen the sequence is greater than all earlier ones");
}

} // namespace enqueue_checks

inline constexpr std::array enqueues{
    clause{"ENQUEUE-01", layer::examples, level::must, needs::nothing,
           "Enqueue returns one receipt per draft, in order; an inserted receipt has the draft's own id.",
           enqueue_checks::one_receipt_each},
    clause{"ENQUEUE-02", layer::examples, level::must, needs::nothing,
           "Fields that a draft leaves out get their defaults: pending, due now, created and updated now, generation "
           "1, everything else empty or zero.",
           enqueue_checks::defaults},
    clause{"ENQUEUE-03", layer::examples, level::must, needs::nothing,
           "A draft's due_at is kept as given, before or after now, and the entry can be claimed from that time on.",
           enqueue_checks::due_as_drafted},
    clause{"ENQUEUE-04", layer::examples, level::must, needs::nothing,
           "A draft with a result, even an empty one, is stored as succeeded and is never claimed.",
           enqueue_checks::born_succeeded},
    clause{"ENQUEUE-05", layer::examples, level::must, needs::nothing,
           "A draft sees the ids and keys of earlier drafts of its batch and its transaction.",
           enqueue_checks::batch_sees_itself},
    clause{"ENQUEUE-06", layer::examples, level::must, needs::nothing,
           "Sequences are greater than zero and increase with every draft, across all queues and whatever times are "
           "passed.",
           enqueue_checks::sequences_grow},
    clause{"ENQUEUE-07", layer::examples, level::must, needs::nothing,
           "A sequence is never reused, even after the newest entry was purged, in the same transaction or earlier.",
           enqueue_checks::sequences_not_reused},
    clause{"ENQUEUE-08", layer::examples, level::may, needs::durable,
           "A sequence is never reused after the store was closed and opened again.",
           enqueue_checks::sequences_not_reused_after_reopen},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/reads.hpp
// Reads: find, and list by every path.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace reads_checks {

using namespace enqueue_checks;

/// In "q": 1 pending and due at(50), 2 retrying from at(10), 3 claimed until at(100), 4 succeeded, 5 dead; in "r": 6
/// pending. 1 is the parent of 2 and 6; 4 has the key "k" and 5 the key "l"; 1, 3, 5 and 6 are the group "g".
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
    auto store = t.open(t.fresh_location());
    furnish(store, t.can());
    return store;
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
    t.equal(numbers(store.list(query::all("unused"))), list_of{}, "all entries of an unused queue");
}

inline void lists_live(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the live of \"q\"");
    t.equal(numbers(store.list(query::live("r"))), list_of{6}, "the live of \"r\"");
    t.equal(numbers(store.list(query::live("unused"))), list_of{}, "the live entries of an unused queue");
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
    t.equal(numbers(store.list(query::keyed("q", "m"))), list_of{}, "an unused key");
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
    t.equal(numbers(store.list(query::members("i"))), list_of{}, "the members of an unused group");
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

} // namespace reads_checks

inline constexpr std::array reads{
    clause{"READ-01", layer::examples, level::must, needs::nothing,
           "find returns the entry with this id, payload included, or nothing.", reads_checks::finds_by_id},
    clause{"READ-02", layer::examples, level::must, needs::nothing,
           "list by `all` returns the entries of one queue, in every state.", reads_checks::lists_all},
    clause{"READ-03", layer::examples, level::must, needs::nothing,
           "list by `live` returns the pending, retrying and claimed entries of one queue.", reads_checks::lists_live},
    clause{"READ-04", layer::examples, level::must, needs::nothing,
           "list by `dead` returns the dead entries of one queue.", reads_checks::lists_dead},
    clause{"READ-05", layer::examples, level::must, needs::nothing,
           "list by `key` returns every stored generation of a key in one queue.", reads_checks::lists_by_key},
    clause{"READ-06", layer::examples, level::must, needs::nothing,
           "list by `parent` returns the entries with that parent, in all queues.", reads_checks::lists_children},
    clause{"READ-07", layer::examples, level::may, needs::groups,
           "list by `group` returns the members of that group, in all queues and states.", reads_checks::lists_members},
    clause{"READ-08", layer::examples, level::must, needs::nothing,
           "Two queues or topics are the same only if all bytes of their names are equal.",
           reads_checks::names_are_bytes},
    clause{"READ-09", layer::examples, level::must, needs::nothing,
           "Lists are ordered by ascending sequence, whatever the ids and times.", reads_checks::by_sequence},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/transaction.hpp
// Transactions: all or nothing, and when their writes become visible.

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

/// Every operation that changes a furnished store.
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
        const auto& what = name; // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            unchanged(store, before, std::string(what) + " is not seen before the commit");
            const auto own = snapshot_of(tx);
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
    const auto before = snapshot_of(second);
    from_begin(first, [&](auto& tx) {
        everything(tx);
        unchanged(second, before, "an open transaction through a second handle");
        const auto own = snapshot_of(tx);
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
        const auto before = snapshot_of(store);
        from_begin(store, in);
        unchanged(store, before, std::string(what) + " leaves nothing when the transaction ends without commit");
    }
}

inline void rollback_of_everything(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    for (int i = 0; i < 3; ++i) {
        from_begin(store, [&](auto& tx) { everything(tx); });
    }
    unchanged(store, before, "nothing is left of three transactions that used every operation");
    from_begin(store, [&](auto& tx) {
        everything(tx);
        const auto own = snapshot_of(tx);
        tx.commit();
        unchanged(store, own, "the same transaction repeated and committed");
    });
}

inline void rollback_does_not_return(trial& t) {
    std::optional<snapshot> before;
    {
        auto store = t.open();
        furnish(store, t.can());
        before = snapshot_of(store);
        auto tx = store.begin();
        everything(tx);
    }
    unchanged(t.open(), *before, "after a reopen nothing is stored of a transaction that was not committed");
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
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), inserted(3),
            "a successor after the rollback of another");
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

} // namespace transaction_checks

inline constexpr std::array transactions{
    clause{"TX-01", layer::examples, level::must, needs::nothing,
           "Reads on the store see what is committed and do not wait for open transactions; after a commit they see "
           "all of it.",
           transaction_checks::unseen_before_commit},
    clause{"TX-02", layer::examples, level::may, needs::shared,
           "A second handle sees nothing of a transaction before its commit and all of it after.",
           transaction_checks::unseen_by_second_handle},
    clause{"TX-03", layer::examples, level::must, needs::nothing, "The reads of a transaction see its own writes.",
           transaction_checks::own_writes_seen},
    clause{"TX-04", layer::examples, level::must, needs::nothing,
           "A transaction that ends without a commit leaves nothing, whatever it did.",
           transaction_checks::rollback_leaves_nothing},
    clause{"TX-05", layer::examples, level::must, needs::nothing,
           "Transactions that used every operation and were rolled back do not affect later transactions.",
           transaction_checks::rollback_of_everything},
    clause{"TX-06", layer::examples, level::may, needs::durable,
           "What was rolled back does not reappear after a reopen.", transaction_checks::rollback_does_not_return},
    clause{"TX-07", layer::examples, level::must, needs::nothing,
           "The id and the key of a draft that was rolled back are free.", transaction_checks::rollback_frees_keys},
    clause{"TX-08", layer::examples, level::must, needs::nothing,
           "A claim that was rolled back has no effect: no attempt, no epoch, and its ticket is not valid.",
           transaction_checks::rollback_of_claim},
    clause{"TX-09", layer::examples, level::must, needs::nothing,
           "After a settle was rolled back, the claim still holds and its ticket is still valid.",
           transaction_checks::rollback_of_settle},
    clause{"TX-10", layer::examples, level::must, needs::nothing,
           "After a purge was rolled back, the entry is stored, and its id and key are taken.",
           transaction_checks::rollback_of_purge},
    clause{"TX-11", layer::examples, level::must, needs::nothing,
           "After a requeue was rolled back, the dead entry has no successor.",
           transaction_checks::rollback_of_requeue},
    clause{"TX-12", layer::examples, level::may, needs::lanes, "After a rollback a lane has its earlier head.",
           transaction_checks::rollback_in_lane},
    clause{"TX-13", layer::examples, level::may, needs::groups, "After a rollback a group has its earlier members.",
           transaction_checks::rollback_in_group},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/transaction_use.hpp
// Transactions: what closes a transaction, and what one transaction can combine.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace transaction_checks {

/// Every operation of a transaction.
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
    const auto before = snapshot_of(store);
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction after its commit changes nothing");
    t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
}

inline void closed_when_moved_from(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    auto other = tx.move_out();
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction that was moved from changes nothing");
    t.expect(other.find(id_of(7)).has_value(), "the transaction moved to has the earlier writes");
    put_in(other, draft_of(8));
    other.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void moved_rolls_back(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        const auto other = tx.move_out();
    }
    unchanged(store, before, "nothing is left of a transaction that was moved and not committed");
    t.equal(put(store, draft_of(7)), inserted(7), "a transaction after that");
}

/// Invalid calls, one for every operation that validates its arguments.
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
        const auto own = snapshot_of(tx);
        for (const auto& [what, in] : invalid_uses) {
            t.throws(error_kind::invalid_argument, std::string(what) + " with an invalid argument",
                     [&, &use = in] { use(tx); });
            unchanged(tx, own, std::string(what) + " with an invalid argument changes nothing");
        }
        put_in(tx, draft_of(8));
        const auto whole = snapshot_of(tx);
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
        const auto own = snapshot_of(tx);
        tx.commit();
        unchanged(store, own, "all of it after one commit");
        t.equal(get(store, 7).result, "7", "the result of the entry that was enqueued and settled in one transaction");
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
    const auto before = snapshot_of(store);
    from_begin(store, [&](auto& tx) {
        unchanged(tx, before, "a transaction that has written nothing sees what is committed");
        unchanged(store, before, "reading changes nothing");
        tx.commit();
        unchanged(store, before, "a transaction that only read changes nothing");
    });
}

} // namespace transaction_checks

inline constexpr std::array transaction_use{
    clause{"TX-14", layer::examples, level::must, needs::nothing,
           "Any use of a transaction after its commit is misuse and changes nothing.",
           transaction_checks::closed_by_commit},
    clause{"TX-15", layer::examples, level::must, needs::nothing,
           "Any use of a transaction that was moved from is misuse; the transaction moved to can be used.",
           transaction_checks::closed_when_moved_from},
    clause{"TX-16", layer::examples, level::must, needs::nothing,
           "A transaction that was moved and not committed leaves nothing.", transaction_checks::moved_rolls_back},
    clause{"TX-17", layer::examples, level::must, needs::nothing,
           "After an invalid argument a transaction is still open and keeps its earlier writes.",
           transaction_checks::open_after_invalid_argument},
    clause{"TX-18", layer::examples, level::must, needs::nothing,
           "Any number of operations are one commit, even if they use each other's results.",
           transaction_checks::several_in_one},
    clause{"TX-19", layer::examples, level::must, needs::nothing,
           "A transaction can settle and claim; the claim sees the effects of the settle.",
           transaction_checks::settle_then_claim},
    clause{"TX-20", layer::examples, level::must, needs::nothing,
           "A transaction without writes reads what the store reads, and its commit changes nothing.",
           transaction_checks::nothing_written},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/capability.hpp
// Capabilities: a store refuses the use of a capability that it does not declare, and its limits are not tighter than
// the contract's.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace capability_checks {

using namespace transaction_checks;

/// Requires that a batch with such a draft in its middle is refused with the name of the field, and nothing is written.
inline void unsupported(trial& t, std::string_view field, const draft& d) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    const std::array batch{draft_of(17), d, draft_of(19)};
    auto tx = store.begin();
    const std::string said = t.throws(error_kind::unsupported, "a draft with a " + std::string(field), [&] {
                                  tx.enqueue(batch, at(0));
                              }).what();
    t.expect(said.find(field) != std::string::npos, "the refusal names the field that is not supported");
    all_misuse(t, tx);
    unchanged(store, before, "an unsupported draft changes nothing");
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
           "A store that does not declare groups refuses a draft with a group as unsupported, writes nothing of its "
           "batch and closes the transaction.",
           capability_checks::groups_refused},
    clause{"CAP-02", layer::examples, level::must, needs::nothing,
           "A store that does not declare lanes refuses a draft with a lane as unsupported, writes nothing of its "
           "batch and closes the transaction.",
           capability_checks::lanes_refused},
    clause{"CAP-03", layer::examples, level::must, needs::nothing,
           "No limit that a store declares is tighter than the contract's.", capability_checks::limits_not_lowered},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/claim.hpp
// Claim: which entries are eligible, and how a claim changes an entry.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace claim_checks {

/// Enqueues a retrying entry: claimed at 0, failed once, due again at `due`.
inline void put_retrying(any_store& store, std::uint64_t n, time_point due) {
    put(store, draft_of(n));
    std::ignore = settle(store, take_one(store, at(0), {.only = id_of(n)}), retry{"e", due}, at(0));
}

/// Enqueues a claimed entry whose lease ends at `end`.
inline void put_claimed(any_store& store, std::uint64_t n, time_point end) {
    put(store, draft_of(n));
    std::ignore = take_one(store, at(0), {.lease = end - at(0), .only = id_of(n)});
}

/// The entry after a claim at `now` by "w" with a lease of 100 us.
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
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
    t.equal(numbers(take(store, at(49), {.worker = "v"})), list_of{},
            "taken over one microsecond before its lease ends");
    t.equal(numbers(take(store, at(49), {.worker = "w"})), list_of{}, "taken once more by a worker of the same name");
    unchanged(store, before, "a claim does not change an entry whose lease runs");
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
    t.equal(get(store, 1), expected, "the stored entry after the claim");
}

inline void take_over_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(5), .progress = "step"}), at(1));
    std::ignore = take_one(store, at(10), {.lease = duration{10}, .worker = "ann"});
    nudge(store, id_of(1), at(15));
    const auto before = get(store, 1);
    const auto claimed = take(store, at(70));
    t.equal(claimed, std::vector{claimed_from(before, at(70))}, "the entries that the takeover returns");
    t.equal(get(store, 1), claimed_from(before, at(70)), "the stored entry after the takeover");
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
    t.equal(numbers(take(store, at(40))), list_of{1, 5, 3}, "pending, retrying and lapsed entries in one claim");
}

inline void terminal_never(trial& t) {
    auto store = t.open();
    for (const outcome& end : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        put(store, draft_of(1 + end.index()));
        std::ignore = settle(store, take_one(store, at(0)), end, at(0));
    }
    put_dead(store, draft_of(2));
    put(store, draft_of(4, {.result = "r"}));
    const auto before = snapshot_of(store);
    const auto later = at(0) + std::chrono::hours{24 * 365};
    t.equal(numbers(take(store, later)), list_of{}, "succeeded and dead entries claimed");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        t.equal(numbers(take(store, later, {.only = id_of(n)})), list_of{}, "a succeeded or dead entry claimed by id");
    }
    unchanged(store, before, "claims do not change succeeded and dead entries");
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

} // namespace claim_checks

inline constexpr std::array claiming{
    clause{"CLAIM-01", layer::examples, level::must, needs::nothing, "A claim with limit 0 takes nothing.",
           claim_checks::limit_zero},
    clause{"CLAIM-02", layer::examples, level::must, needs::nothing,
           "A claim takes `limit` entries, or all eligible ones if there are fewer; other entries do not change.",
           claim_checks::limit_is_exact},
    clause{"CLAIM-03", layer::examples, level::must, needs::nothing,
           "A pending entry can be claimed exactly from its due_at on.", claim_checks::due_exactly_now},
    clause{"CLAIM-04", layer::examples, level::must, needs::nothing,
           "A retrying entry can be claimed exactly from its due_at on.", claim_checks::retry_due_exactly_now},
    clause{"CLAIM-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be taken over exactly from the end of its lease on, and not before, even by a worker "
           "with the same name.",
           claim_checks::lease_ends_exactly_now},
    clause{"CLAIM-06", layer::examples, level::must, needs::nothing,
           "A claim sets state, attempts, epoch, lease_until, worker, last_attempt_at and updated_at and nothing else, "
           "and returns the changed entry with its payload.",
           claim_checks::fields},
    clause{"CLAIM-07", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse counts a lapse and no attempt, increments the epoch and clears the wake "
           "mark.",
           claim_checks::take_over_fields},
    clause{"CLAIM-08", layer::examples, level::must, needs::nothing,
           "A claim sets lease_until to now + lease, for the shortest and the longest lease, and worker to the "
           "claiming worker, for the longest and the empty name.",
           claim_checks::bounds_are_allowed},
    clause{"CLAIM-09", layer::examples, level::must, needs::nothing,
           "One claim takes pending, retrying and lapsed entries alike.", claim_checks::every_kind_at_once},
    clause{"CLAIM-10", layer::examples, level::must, needs::nothing, "Succeeded and dead entries are never claimed.",
           claim_checks::terminal_never},
    clause{"CLAIM-11", layer::examples, level::must, needs::nothing, "A claim takes only entries of its queue.",
           claim_checks::queue_of_its_own},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/claim_order.hpp
// Claim: which eligible entries are taken, in which order they are returned, and how takeovers count.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace claim_checks {

inline void taken_by_gate(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30)); // due first, but its gate opens last
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{3}, "the entry with the earliest gate");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{2}, "the entry with the next gate");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{1}, "the entry whose lease ended last");
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
        t.equal(numbers(take(store, at(9), {.limit = 1})), list_of{n}, "the next of the entries due at the same time");
    }
    t.equal(numbers(take(store, at(109))), list_of{3, 5, 1, 4, 2}, "the entries whose leases ended at the same time");
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
    t.equal(numbers(take(store, at(4))), list_of{3}, "claimed at an earlier time than the previous claim");
}

inline void only_one_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = snapshot_of(store).found;
    expected[1] = claimed_from(expected[1], at(7));
    t.equal(take(store, at(7), {.only = id_of(2)}), std::vector{expected[1]}, "claimed by its id");
    t.equal(snapshot_of(store).found, expected, "the stored entry after the claim");
}

inline void only_if_eligible(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    put(store, draft_of(2, {.queue = "r"}));
    put_claimed(store, 3, at(10));
    put_retrying(store, 4, at(10));
    const auto before = snapshot_of(store);
    for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) { // not due, in another queue, claimed, not due, absent
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
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        t.equal(numbers(tx.claim(request(at(0)))), list_of{1}, "claimed in a transaction");
    }
    unchanged(store, before, "a claim in a transaction that is rolled back has no effect");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the next claim");
}

inline void invalid_requests(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = snapshot_of(store);
    const auto& limits = t.can().limits;
    for (const auto& wrong : {claim_options{.limit = limits.batch_max + 1}, claim_options{.queue = ""},
                              claim_options{.queue = "q\n"}, claim_options{.lease = limits.lease_min - duration{1}},
                              claim_options{.lease = limits.lease_max + duration{1}},
                              claim_options{.worker = std::string(limits.name_max + 1, 'w')}}) {
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
    t.equal(take(store, at(0), {.limit = many - 1}).size(), many - 1,
            "claimed with a limit one below the number of due entries");
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
    t.equal(attempts, list_of{1, 1, 2, 3, 4}, "attempts after a claim and four takeovers");
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
    auto expected = snapshot_of(store).found;
    for (auto& e : expected) {
        e = claimed_from(e, at(300));
    }
    t.equal(take(store, at(300)), expected, "claimed together: pending, after no, one and two lapses, and retrying");
    t.equal(snapshot_of(store).found, expected, "the stored entry after that claim");
}

inline void rolled_back_takeover(trial& t) {
    for (const std::uint32_t lapses : {0U, 1U}) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1));
        std::ignore = take_lapsed(store, 1, lapses);
        const auto before = get(store, 1);
        from_begin(store, [&](auto& tx) {
            t.equal(numbers(tx.claim(request(at(200)))), list_of{1}, "taken over in a transaction that is rolled back");
        });
        t.equal(get(store, 1), before, "the entry after the rollback");
        t.equal(take(store, at(200)), std::vector{claimed_from(before, at(200))}, "taken over for the first time");
    }
}

} // namespace claim_checks

inline constexpr std::array claiming_in_order{
    clause{"CLAIM-12", layer::examples, level::must, needs::nothing,
           "A claim takes the entries with the earliest gates first; the gate is due_at, or lease_until if the entry "
           "is claimed.",
           claim_checks::taken_by_gate},
    clause{"CLAIM-13", layer::examples, level::must, needs::nothing,
           "A claim returns entries in the order of due_at, not of their gates.", claim_checks::returned_by_due},
    clause{"CLAIM-14", layer::examples, level::must, needs::nothing,
           "Entries with equal gates are taken in the order of their sequences.", claim_checks::taken_ties},
    clause{"CLAIM-15", layer::examples, level::must, needs::nothing,
           "Entries with equal due_at are returned in the order of their sequences.", claim_checks::returned_ties},
    clause{"CLAIM-16", layer::examples, level::must, needs::nothing,
           "Clocks may run backwards: sequences do not depend on times, and a claim uses the time that it is given.",
           claim_checks::clocks_run_backwards},
    clause{"CLAIM-17", layer::examples, level::must, needs::nothing,
           "A claim with `only` takes that entry and no other, even if other entries come first.",
           claim_checks::only_one_id},
    clause{"CLAIM-18", layer::examples, level::must, needs::nothing,
           "A claim with `only` takes nothing unless the entry is in the queue and its gate is open.",
           claim_checks::only_if_eligible},
    clause{"CLAIM-19", layer::examples, level::must, needs::nothing,
           "A claim ignores expires_at and attempts_max, which are for the runner.",
           claim_checks::expiry_is_not_its_business},
    clause{"CLAIM-20", layer::examples, level::must, needs::nothing,
           "A claim in a transaction that is rolled back has no effect.", claim_checks::rolled_back},
    clause{"CLAIM-21", layer::examples, level::must, needs::nothing,
           "A claim whose limit, queue, lease or worker is out of bounds throws invalid_argument and takes nothing.",
           claim_checks::invalid_requests},
    clause{"CLAIM-22", layer::examples, level::must, needs::nothing,
           "A claim takes as many entries as its limit allows; the store has no lower limit of its own.",
           claim_checks::no_smaller_limit},
    clause{"CLAIM-23", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse in a row is not an attempt; a takeover after any further lapse is one.",
           claim_checks::only_later_lapses_count},
    clause{"CLAIM-24", layer::examples, level::must, needs::nothing,
           "lapses counts the consecutive claims that ended with their lease; a nudge, an extend and the claim of an "
           "unclaimed entry do not change it.",
           claim_checks::lapses_are_counted},
    clause{"CLAIM-25", layer::examples, level::must, needs::nothing,
           "One claim of pending, retrying and lapsed entries counts attempts and lapses for each entry separately.",
           claim_checks::each_by_its_own_past},
    clause{"CLAIM-26", layer::examples, level::must, needs::nothing,
           "A takeover in a transaction that is rolled back leaves lapses and attempts unchanged.",
           claim_checks::rolled_back_takeover},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/cost.hpp
// Cost: how long a claim takes in a store with many entries that it must not look at. Times are only compared with each
// other.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace cost_checks {

inline constexpr std::size_t few = 100;
inline constexpr double growth_max = 10; // for a thousand times the rows; a scan would take hundreds of times as long
inline constexpr time_point now = at(1'000);
inline constexpr duration long_time = std::chrono::hours{24};

/// A store with `rows` entries, each made by `make(number) -> draft`.
template <class Make>
[[nodiscard]] any_store filled(trial& t, std::size_t rows, Make&& make) {
    auto store = t.open(t.fresh_location());
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

/// The duration of the fastest of several claims of ten entries, in microseconds.
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

/// Compares a claim in a small store with one in a large store.
template <class Make, class After>
void does_not_grow(trial& t, Make&& make, After&& after) {
    auto small = filled(t, few, make);
    auto large = filled(t, t.budget().cost_rows, make);
    after(small);
    after(large);
    constexpr double noise = 20; // microseconds that cannot be measured reliably
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
           "The cost of a claim does not grow with entries that are not due yet.", cost_checks::future},
    clause{"COST-02", layer::cost, level::must, needs::nothing,
           "The cost of a claim does not grow with terminal entries.", cost_checks::terminal},
    clause{"COST-03", layer::cost, level::may, needs::lanes,
           "The cost of a claim does not grow with entries that are blocked in their lanes.", cost_checks::blocked},
    clause{"COST-04", layer::cost, level::must, needs::nothing,
           "The cost of a claim does not grow with entries that other workers hold.", cost_checks::claimed},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/falsify.hpp
// RapidCheck as the suite uses it. A case is a list of random words, one per command, and a failing case is shrunk by
// removing words. Words do not depend on RapidCheck's size, so the first case is as varied as the last.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using words = std::vector<std::uint64_t>;

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

/// Runs `play(words)` on `cases` lists of `length` words. If one fails, shrinks it, unless the options say otherwise, and
/// returns the smallest list that still fails with its failure.
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
    const auto all = some_words(length);
    const auto property = [&] {
        const auto list = *all;
        try {
            play(list);
        } catch (const failure& f) {
            smallest.emplace(list, f);
            RC_FAIL("the case fails");
        } catch (const error& e) {
            smallest.emplace(list, failure{.what = "the store threw an error where none is allowed",
                                           .seen = show(e.kind()) + ": " + e.what(),
                                           .expected = "no error"});
            RC_FAIL("the case throws");
        }
    };
    const auto result = rcd::checkTestable(property, rcd::TestMetadata{}, how.testParams, silence, how.reproduce);
    if (!result.template is<rcd::SuccessResult>() && !smallest) {
        trial::fail("a case could not be run");
    }
    return smallest;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/comparison.hpp
// Compares what a store returns with the model: all entries, counts and due times after every command, and random
// queries. There are few names, so that entries share them.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Generated entries have the numbers 1 to this; queues are "q" and "r", keys "k" and "l", groups "g" and "h", topics
/// "a" and "b".
inline constexpr std::uint64_t numbers_max = 14;

[[nodiscard]] inline query some_query(random_source& d) {
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
void compare_pages(const Reader& reader, const model& expected, query q, random_source& d) {
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

/// Compares all entries of a queue, payloads included. Does not copy the model's entries.
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

/// Compares all entries, counts and due times, and the answer to one random query.
template <class Reader>
void compare_some(const Reader& reader, const model& expected, random_source& d) {
    for (const std::string queue : {"q", "r"}) {
        compare_queue(reader, expected, queue);
        compare_numbers(reader, expected, queue);
    }
    compare_pages(reader, expected, some_query(d), d);
    compare_found(reader, expected, id_of(1 + d.below(numbers_max)));
}

template <class Reader>
void compare_all(const Reader& reader, const model& expected, random_source& d) {
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/generator.hpp
// Random arguments for operations. They refer to entries by their role, such as "a current ticket" or "a dead entry", so
// that a command still makes sense when shrinking removes earlier commands.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Makes arguments from the state of the model. There are few names, and times are within a few ticks of each other.
class generator {
  public:
    generator(const vouch::capabilities& can, const model& known, time_point now, const std::vector<ticket>& tickets,
              random_source& d)
        : can_(can), known_(known), now_(now), tickets_(tickets), random_(d) {}

    [[nodiscard]] id some_id() {
        if (!known_.records.empty() && random_.chance(60)) {
            return known_.records[random_.below(known_.records.size())].entry.id;
        }
        return id_of(1 + random_.below(numbers_max));
    }
    [[nodiscard]] time_point some_time() {
        return now_ + duration{random_.one_of<std::int64_t>({-2, -1, 0, 0, 1, 1, 2, 5, 9})};
    }
    [[nodiscard]] duration some_lease() { return duration{random_.one_of<std::int64_t>({1, 2, 5, 9, 30})}; }
    [[nodiscard]] std::string some_queue() { return random_.chance(85) ? "q" : "r"; }

    /// Mostly the ticket of a current claim; sometimes an earlier ticket or one that never existed.
    [[nodiscard]] ticket some_ticket() {
        if (random_.chance(75)) {
            if (const auto present = those_in(state::claimed); !present.empty()) {
                const auto* const e = present[random_.below(present.size())];
                return {e->id, e->epoch};
            }
        }
        if (!tickets_.empty() && random_.chance(60)) {
            return tickets_[random_.below(tickets_.size())];
        }
        return {some_id(), random_.below(4)};
    }

    [[nodiscard]] outcome some_outcome() {
        switch (random_.below(5)) {
        case 0: return succeed{random_.one_of<std::string>({"", "result"})};
        case 1: return retry{random_.one_of<std::string>({"e1", "e2"}), some_time()};
        case 2: return bury{"e3", random_.chance(50) ? std::optional<std::string>("reply") : std::nullopt};
        case 3: return release{maybe_time(50)};
        default: return advance{random_.one_of<std::string>({"p1", "p2"}), maybe_time(50)};
        }
    }

    [[nodiscard]] draft some_draft() {
        draft d{.id = id_of(1 + random_.below(numbers_max)), .queue = some_queue()};
        if (known_.find(d.id) != nullptr && random_.chance(70)) {
            d.id = id_of(1 + random_.below(numbers_max));
        }
        d.topic = random_.one_of<std::string>({"a", "b"});
        d.payload = random_.one_of<std::string>({"", "p", "payload"});
        d.due_at = maybe_time(60);
        d.expires_at = maybe_time(10);
        d.attempts_max = static_cast<std::uint32_t>(random_.below(3));
        d.progress = random_.one_of<std::string>({"", "p0"});
        if (random_.chance(10)) {
            d.headers = {{"name", "value"}};
            d.trail = {some_id()};
        }
        if (random_.chance(30)) {
            d.predecessor = random_.chance(80) ? some_dead_id() : some_id();
            const auto* const old = known_.find(d.predecessor);
            d.queue = old != nullptr && random_.chance(90) ? old->queue : d.queue;
            d.parent = random_.chance(10) ? some_id() : id{};
            return d;
        }
        d.key = random_.one_of<std::string>({"", "", "k", "l"});
        if (random_.chance(8)) {
            d.result = "born";
            return d;
        }
        d.group = can_.groups ? random_.one_of<std::string>({"", "", "g", "h"}) : "";
        d.lane = can_.lanes ? random_.one_of<std::string>({"", "", "x", "y"}) : "";
        d.parent = random_.chance(25) ? some_id() : id{};
        return d;
    }

    [[nodiscard]] claim_request some_claim() {
        return {.queue = some_queue(),
                .limit = random_.one_of<std::size_t>({0, 1, 1, 2, 3, 100}),
                .now = now_,
                .lease = some_lease(),
                .worker = random_.one_of<std::string>({"", "w1", "w2"}),
                .only = random_.chance(25) ? some_id() : id{}};
    }

    [[nodiscard]] purge_request some_purge() {
        purge_request r{
            .queue = some_queue(), .before = some_time(), .limit = random_.one_of<std::size_t>({0, 1, 2, 3, 100})};
        if (random_.chance(40)) {
            r.state = random_.one_of({state::succeeded, state::dead});
        }
        return r;
    }

    /// A random step, or the next gate, or a tick before or after it.
    [[nodiscard]] time_point some_next_time() {
        const auto due = known_.next_due(some_queue());
        if (due && random_.chance(60)) {
            return *due + duration{random_.one_of<std::int64_t>({-1, 0, 1})};
        }
        return now_ + duration{random_.one_of<std::int64_t>({-3, 1, 1, 2, 10})};
    }

  private:
    [[nodiscard]] std::optional<time_point> maybe_time(std::size_t percent) {
        return random_.chance(percent) ? std::optional{some_time()} : std::nullopt;
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
        return dead.empty() ? some_id() : dead[random_.below(dead.size())]->id;
    }

    const vouch::capabilities& can_;
    const model& known_;
    time_point now_;
    const std::vector<ticket>& tickets_;
    random_source& random_;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/model/model_run.hpp
// Runs random commands on a store and on the model. After every command, all reads inside the transaction and outside are
// compared.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class model_run {
  public:
    model_run(any_store store, const vouch::capabilities& can, tally& seen)
        : store_(std::move(store)), can_(can), tally_(seen) {}

    /// Runs one random command, which the word determines. A conflict rolls the transaction back.
    void step(std::uint64_t word) {
        try {
            do_step(word);
            conflicts_in_a_row_ = 0;
        } catch (const error& e) {
            tolerate(e);
        }
    }

    /// Ends the open transaction, if any.
    void end(bool commit) {
        try {
            do_end(commit);
        } catch (const error& e) {
            tolerate(e);
        }
    }

    /// Drops the transaction and all handles, as the death of the process does.
    void close() {
        if (is_committing_) {
            maybe_ = own_; // it is unknown whether the commit took effect
            maybe_last_sequence_ = last_sequence_;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
        store_.reset();
    }

    /// Continues with a reopened store, which must have everything committed, and an unfinished commit as a whole or not
    /// at all.
    void reopen(any_store again) {
        store_.emplace(std::move(again));
        if (maybe_ && looks_like(*maybe_)) {
            committed_ = own_ = *maybe_;
            last_sequence_ = last_committed_sequence_ = maybe_last_sequence_;
        }
        maybe_.reset();
        random_source d(committed_.records.size());
        for (const std::string queue : {"q", "r"}) {
            compare_queue(*store_, committed_, queue);
        }
        compare_all(*store_, committed_, d);
    }
    [[nodiscard]] const model& committed() const noexcept { return committed_; }
    [[nodiscard]] time_point now() const noexcept { return now_; }
    [[nodiscard]] const std::vector<ticket>& tickets() const noexcept { return tickets_; }

  private:
    void do_step(std::uint64_t word) {
        random_source d(word);
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
            do_end(d.chance(70));
            compare_some(*store_, committed_, d);
        }
    }

    void do_end(bool commit) {
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

    /// Accepts a conflict, unless there were too many in a row. Rethrows other errors.
    void tolerate(const error& e) {
        constexpr int in_a_row_max = 16;
        if (e.kind() != error_kind::conflict || e.is_in_doubt() || ++conflicts_in_a_row_ > in_a_row_max) {
            throw;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void count(std::string_view command, std::string_view answer) {
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

    [[nodiscard]] generator generate(random_source& d) { return {can_, own_, now_, tickets_, d}; }

    void command(random_source& d) {
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
            now_ = generate(d).some_next_time();
        }
    }

    void enqueue(random_source& d) {
        std::vector<draft> drafts(1 + d.below(3));
        std::vector<receipt> expected;
        for (auto& one : drafts) {
            one = generate(d).some_draft();
            expected.push_back(own_.enqueue(one, now_));
            count("enqueue", name_of(expected.back().what));
        }
        trial::equal(tx_->enqueue(drafts, now_), expected, "receipts of an enqueue");
        adopt_sequences(expected);
    }

    /// The store chooses the sequences, but they must increase.
    void adopt_sequences(const std::vector<receipt>& receipts) {
        std::ptrdiff_t inserted = 0;
        for (const auto& one : receipts) {
            inserted += one.what == receipt::kind::inserted ? 1 : 0;
        }
        for (auto r = own_.records.end() - inserted; r != own_.records.end(); ++r) {
            const auto stored = tx_->find(r->entry.id);
            if (!stored || stored->sequence <= last_sequence_) {
                trial::fail("the sequence of a new entry is greater than all earlier ones",
                            stored ? show(stored->sequence) : "absent", "more than " + show(last_sequence_));
            }
            r->entry.sequence = last_sequence_ = stored->sequence;
        }
    }

    void claim(random_source& d) {
        const auto request = generate(d).some_claim();
        const auto expected = own_.claim(request);
        for (const auto& e : expected) {
            tickets_.push_back(ticket_of(e));
        }
        count("claim", expected.empty() ? "nothing" : "something");
        trial::equal(tx_->claim(request), expected, "entries claimed");
    }

    void settle(random_source& d) {
        static constexpr std::array names{"succeed", "retry", "bury", "release", "advance"};
        std::vector<vouch::settle> settles(d.one_of<std::size_t>({1, 1, 2, 3}));
        std::vector<settlement> expected;
        for (auto& s : settles) {
            s = {generate(d).some_ticket(), generate(d).some_outcome()};
            expected.push_back(own_.settle(s, now_));
            count(names[s.outcome.index()], name_of(expected.back().verdict));
            if (expected.back().group_completed) {
                count("group", "completed");
            }
        }
        trial::equal(tx_->settle(settles, now_), expected, "settlements");
    }

    void extend(random_source& d) {
        std::vector<ticket> tickets(1 + d.below(2));
        const auto lease = generate(d).some_lease();
        std::vector<verdict> expected;
        for (auto& t : tickets) {
            t = generate(d).some_ticket();
            expected.push_back(own_.extend(t, now_, lease));
            count("extend", name_of(expected.back()));
        }
        trial::equal(tx_->extend(tickets, now_, lease), expected, "verdicts on an extend");
    }

    void nudge(random_source& d) {
        const auto wanted = generate(d).some_id();
        const auto expected = own_.nudge(wanted, now_);
        count("nudge", name_of(expected));
        trial::equal(tx_->nudge(wanted, now_), expected, "the verdict on a nudge");
    }

    void cancel(random_source& d) {
        const auto wanted = generate(d).some_id();
        const auto expected = own_.cancel(wanted, "c", now_);
        count("cancel", name_of(expected));
        trial::equal(tx_->cancel(wanted, "c", now_), expected, "the verdict on a cancel");
    }

    void purge(random_source& d) {
        const auto request = generate(d).some_purge();
        const auto expected = own_.purge(request);
        count("purge", expected == 0 ? "nothing" : "something");
        trial::equal(tx_->purge(request), expected, "entries purged");
    }

    std::optional<any_store> store_;
    const vouch::capabilities& can_;
    tally& tally_;
    std::optional<any_transaction> tx_{};
    model committed_{};
    model own_{};
    std::uint64_t last_sequence_ = 0; // of all committed entries and those of the open transaction
    std::uint64_t last_committed_sequence_ = 0;
    bool is_committing_ = false;
    int conflicts_in_a_row_ = 0;
    std::optional<model> maybe_{}; // the state if an unfinished commit took effect
    std::uint64_t maybe_last_sequence_ = 0;
    time_point now_ = start;
    std::vector<ticket> tickets_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/crashes.hpp
// Crashes: the process dies between any two commands, and inside a command if the store has a seam. What was
// acknowledged must be stored; a transaction that was not is stored as a whole or not at all.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace crash_checks {

/// Thrown through the store to leave it, as the death of the process does.
struct death {};

/// Ends the process and starts another one. If the fixture has no `crash`, the files are restored as they were at the
/// moment of death, so that closing the handles does not change them.
inline void die(trial& t, const location& p, model_run& s) {
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
    s.reopen(t.context().open(p));
}

/// Runs random commands. After about every fourth the process dies.
inline void between(trial& t, const words& list) {
    const auto p = t.fresh_location();
    {
        model_run s(t.context().open(p), t.can(), t.tally());
        for (const auto word : list) {
            s.step(word);
            if (word % 4 == 0) {
                die(t, p, s);
            }
        }
        s.end(true);
        die(t, p, s);
    }
    t.abandon(p);
}

/// Like `between`, but the process dies at a seam inside a later command.
inline void inside(trial& t, const words& list) {
    const auto p = t.fresh_location();
    {
        std::size_t left = 0;
        t.hooks().seam([&left](std::string_view) {
            if (left > 0 && --left == 0) {
                throw death{};
            }
        });
        model_run s(t.context().open(p), t.can(), t.tally());
        for (const auto word : list) {
            left = word % 3 == 0 ? 1 + word / 3 % 9 : left;
            try {
                s.step(word);
            } catch (const death&) {
                die(t, p, s);
            }
        }
        left = 0;
        s.end(true);
        die(t, p, s);
    }
    t.hooks().seam(nullptr);
    t.abandon(p);
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
           "If a process dies between two calls, everything committed is stored byte for byte, and nothing else.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "If a process dies inside a call, its transaction is stored as a whole or not at all.",
           crash_checks::at_seams},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/dedup.hpp
// Dedup: a draft is compared with all stored entries, first by id, then by key within its queue.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace dedup_checks {

using namespace enqueue_checks;

inline void id_is_taken(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "first"}));
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(1, {.queue = "r", .topic = "other", .payload = "second", .key = "k"}), at(5)),
            duplicate(1), "another draft with a stored id");
    unchanged(store, before, "a duplicate by id writes nothing");
    t.equal(put(store, draft_of(2, {.queue = "r", .key = "k"})), inserted(2), "the key of the duplicate draft");
}

inline void id_is_taken_in_every_state(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= all_states.size(); ++n) {
        put_as(store, draft_of(n), all_states[n - 1]);
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(n), at(5)), duplicate(n), "enqueued again while " + show(all_states[n - 1]));
        unchanged(store, before, "a duplicate by id writes nothing");
    }
}

inline void key_is_taken_in_every_state(trial& t) {
    for (const auto s : all_states) {
        auto store = t.open(t.fresh_location());
        put_as(store, draft_of(1, {.key = "k"}), s);
        put(store, draft_of(2, {.key = "l"}));
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(3, {.key = "k"}), at(5)), duplicate(1), "the key of an entry that is " + show(s));
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
        t.equal(put(store, draft_of(n, {.key = key})), inserted(n), "a key that differs from another one");
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
    const auto before = snapshot_of(store);
    t.equal(vouch::enqueue(store, batch, at(5)), receipts{duplicate(1), duplicate(2), duplicate(3)},
            "the same batch again");
    unchanged(store, before, "repeating a committed batch changes nothing");
}

} // namespace dedup_checks

inline constexpr std::array dedup{
    clause{
        "DEDUP-01", layer::examples, level::must, needs::nothing,
        "A draft whose id is stored is a duplicate of that entry; nothing of the draft is written, not even its key.",
        dedup_checks::id_is_taken},
    clause{"DEDUP-02", layer::examples, level::must, needs::nothing,
           "A stored id stays taken in every state of its entry.", dedup_checks::id_is_taken_in_every_state},
    clause{"DEDUP-03", layer::examples, level::must, needs::nothing,
           "A draft whose key is stored in its queue is a duplicate of the entry with that key, in any state.",
           dedup_checks::key_is_taken_in_every_state},
    clause{"DEDUP-04", layer::examples, level::must, needs::nothing,
           "Keys are unique per queue: the same key is free in other queues, and drafts without a key are never "
           "duplicates by key.",
           dedup_checks::other_keys_are_free},
    clause{"DEDUP-05", layer::examples, level::must, needs::nothing,
           "Two keys are equal only if all their bytes are equal.", dedup_checks::keys_are_bytes},
    clause{"DEDUP-06", layer::examples, level::must, needs::nothing, "The id is checked before the key.",
           dedup_checks::id_before_key},
    clause{"DEDUP-07", layer::examples, level::must, needs::nothing,
           "A draft whose key is stored in several generations is a duplicate of the newest one, live or dead.",
           dedup_checks::newest_generation},
    clause{"DEDUP-08", layer::examples, level::must, needs::nothing,
           "A purge frees the id and the key, within its own transaction too.", dedup_checks::purge_frees},
    clause{"DEDUP-09", layer::examples, level::must, needs::nothing,
           "A key stays taken until its newest generation is purged.", dedup_checks::elder_purge_frees_nothing},
    clause{"DEDUP-10", layer::examples, level::must, needs::nothing,
           "A batch that is repeated with the same ids returns duplicates and changes nothing.",
           dedup_checks::repeated_batch},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/extend.hpp
// Extend: prolongs the lease of a claim and never shortens it.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace extend_checks {

/// Entry 1, claimed at 0 until 100, with values in the fields that an extend must not change.
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
    for (const std::int64_t lease : {1, 69, 70, 71}) { // at 30 the lease has 70 left
        auto store = t.open(t.fresh_location());
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
        auto store = t.open(t.fresh_location());
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
    const auto before = snapshot_of(store);
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
    auto expected = snapshot_of(store).found;
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
    t.equal(snapshot_of(store).found, expected, "the entries after the extends");
}

inline void lease_bounds(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    const auto& limits = t.can().limits;
    const auto before = snapshot_of(store);
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
           "An extend never shortens a lease: lease_until becomes the later of its old value and now + lease.",
           extend_checks::never_shorter},
    clause{"EXTEND-03", layer::examples, level::must, needs::nothing,
           "An extended claim can be taken over exactly from the new end of its lease on.",
           extend_checks::keeps_others_away},
    clause{"EXTEND-04", layer::examples, level::must, needs::nothing,
           "A lease that is over but was not taken over can be extended, and then runs again.",
           extend_checks::revives_a_lapsed_claim},
    clause{"EXTEND-05", layer::examples, level::must, needs::nothing,
           "After a takeover the earlier ticket extends nothing.", extend_checks::not_once_taken_over},
    clause{"EXTEND-06", layer::examples, level::must, needs::nothing,
           "A ticket can extend any number of times and still settle.", extend_checks::ticket_stays_good},
    clause{"EXTEND-07", layer::examples, level::must, needs::nothing, "An extend keeps the wake mark.",
           extend_checks::keeps_the_wake_mark},
    clause{"EXTEND-08", layer::examples, level::must, needs::nothing,
           "A batch of tickets returns one verdict per ticket, in order, and extends exactly the valid ones.",
           extend_checks::batch},
    clause{"EXTEND-09", layer::examples, level::must, needs::nothing,
           "An extend whose lease is out of bounds throws invalid_argument and changes nothing.",
           extend_checks::lease_bounds},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/call_log.hpp
// A log of the calls on a store's transactions: arguments, answers, and how each transaction ended. Reads are not
// logged. `recording` writes it.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// One call. The members that do not belong to its operation are empty.
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
        roll_back ///< the transaction was destroyed without a commit
    };
    enum class status : std::uint8_t { open, committed, rolled_back, in_doubt };

    call::operation what{};
    std::uint64_t transaction = 0;     ///< the transaction's number; the first is 1
    call::status transaction_status{}; ///< as known when the log was read
    time_point now{};

    // Arguments.
    std::vector<draft> drafts{};
    claim_request wanted{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{}; ///< extend
    duration lease{};              ///< extend
    vouch::id id{};                ///< nudge, cancel
    std::string error{};           ///< cancel
    purge_request purge{};

    // Answers.
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

namespace detail {

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
                                       const Words& to_text) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        out += (i == 0 ? "" : "; ") + to_text(items[i]) + (i < answers.size() ? ": " + show(answers[i]) : "");
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

/// One line: the transaction, the operation, its `now`, its arguments and its answers.
[[nodiscard]] inline std::string to_string(const call& c) {
    auto out = "tx " + std::to_string(c.transaction) + ' ' + std::string(name_of(c.what));
    out += c.now == time_point{} ? "" : " at " + detail::show_date(c.now);
    const auto details = detail::details_of(c);
    out += details.empty() ? "" : ", " + details;
    return c.threw ? out + ", throws " + detail::show(*c.threw) : out;
}

/// The calls in the order of their answers. Thread-safe.
class call_log {
  public:
    [[nodiscard]] std::vector<call> all() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// The calls of committed transactions.
    [[nodiscard]] std::vector<call> committed() const {
        auto out = all();
        std::erase_if(out, [](const call& c) { return c.transaction_status != call::status::committed; });
        return out;
    }
    /// Returns all calls and empties the log.
    [[nodiscard]] std::vector<call> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(calls_, {});
    }
    /// All calls, one per line.
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& c : all()) {
            out += to_string(c) + '\n';
        }
        return out;
    }

    // Called by `recording`.

    [[nodiscard]] std::uint64_t next_transaction() {
        const std::lock_guard lock(mutex_);
        return ++transactions_;
    }
    void add(call c) {
        const std::lock_guard lock(mutex_);
        calls_.push_back(std::move(c));
    }
    /// Sets how a transaction ended.
    void end(std::uint64_t transaction, call::status how) {
        const std::lock_guard lock(mutex_);
        for (auto at = calls_.rbegin(); at != calls_.rend(); ++at) {
            if (at->transaction == transaction) {
                at->transaction_status = how;
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

// ---- vouch/conformance/fault_plan.hpp
// Which calls of a `faulty` store fail, and how: the n-th call, before its effect or after it, once or from then on.

namespace vouch {
inline namespace v0 {
namespace conformance {

enum class fault_moment : std::uint8_t {
    before, ///< the call throws and has no effect
    after,  ///< the call takes effect and throws; a commit that throws so is in doubt
};

/// One fault to inject.
struct fault {
    std::uint64_t call = 1; ///< which call fails; 1 is the next one
    fault_moment moment = fault_moment::before;
    bool persistent = false; ///< all later calls fail as well
    error_kind kind = error_kind::io;
    bool in_doubt = false; ///< a commit that fails before its effect throws an error that is in doubt, too
};

/// Decides which calls fail, and counts calls and faults. Thread-safe. Several stores may share one plan.
class fault_plan {
  public:
    /// Injects this fault instead of the one armed before. Throws `misuse` for the kind `invalid_argument`.
    void arm(const fault& f) {
        if (f.kind == error_kind::invalid_argument) {
            throw error(error_kind::misuse,
                        "fault_plan: cannot inject invalid_argument, which is a refusal and not a fault");
        }
        const std::lock_guard lock(mutex_);
        armed_ = f;
        left_ = f.call;
        has_fired_ = false;
    }

    /// Injects no further faults. Returns whether the armed fault has occurred.
    bool disarm() {
        const std::lock_guard lock(mutex_);
        armed_.reset();
        return has_fired_;
    }

    /// Whether the fault armed last has occurred.
    [[nodiscard]] bool has_fired() const {
        const std::lock_guard lock(mutex_);
        return has_fired_;
    }
    /// All calls so far.
    [[nodiscard]] std::uint64_t calls() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// All faults so far, including those armed earlier.
    [[nodiscard]] std::uint64_t faults() const {
        const std::lock_guard lock(mutex_);
        return faults_;
    }

    /// Counts a call and returns the fault that it must fail with. Called by `faulty`.
    [[nodiscard]] std::optional<fault> next() {
        const std::lock_guard lock(mutex_);
        ++calls_;
        if (!armed_ || (left_ > 1 && left_-- > 0)) {
            return std::nullopt;
        }
        const auto due = armed_;
        has_fired_ = true;
        ++faults_;
        if (!due->persistent) {
            armed_.reset();
        }
        return due;
    }

  private:
    mutable std::mutex mutex_{};
    std::optional<fault> armed_{};
    std::uint64_t left_ = 0; ///< calls up to and including the one that fails
    std::uint64_t calls_ = 0;
    std::uint64_t faults_ = 0;
    bool has_fired_ = false;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/faulty.hpp
// A store that injects faults into another store. It shows what a program does when the disk is full, the connection is
// lost, or the answer of a commit does not arrive:
//
//   auto plan = std::make_shared<fault_plan>();
//   faulty<memory::store> store(memory::store{}, plan);
//   plan->arm({.call = 3});
//
// All reads and writes count as calls. A fault in a transaction rolls it back and closes it, as the contract requires. A
// store that cannot be moved is passed as `any_store`.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Fails the calls that a plan names. The interceptor of `faulty`.
struct fault_injector {
    std::shared_ptr<fault_plan> plan{};

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        const auto due = plan->next();
        const bool is_commit = what == store_operation::commit;
        if (due && due->moment == fault_moment::before) {
            fail(*due, is_commit && due->in_doubt);
        }
        auto answer = call();
        if (due) {
            fail(*due, is_commit);
        }
        return answer;
    }

  private:
    [[noreturn]] static void fail(const fault& f, bool in_doubt) {
        throw error(f.kind, "faulty: an injected fault", {.in_doubt = in_doubt});
    }
};

/// A store whose calls fail as its plan says. `inner()` is the store without faults.
template <class Store>
class faulty : public store_adaptor<Store, fault_injector> {
  public:
    faulty(Store store, std::shared_ptr<fault_plan> plan)
        : store_adaptor<Store, fault_injector>(std::move(store), fault_injector{std::move(plan)}) {}

    [[nodiscard]] fault_plan& plan() const noexcept { return *this->interceptor().plan; }
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/fault_scenario.hpp
// A short scenario that uses every operation, to be repeated with a fault at each of its calls. Its tickets are known in
// advance, so that it can continue after a claim whose commit was in doubt.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// One transaction of the scenario. Repeating it after it took effect changes nothing, unless it claims.
struct fault_step {
    std::string_view name;
    bool claims;
    void (*run)(any_store&, const capabilities&);
};

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

inline constexpr std::array fault_scenario{
    fault_step{"enqueue six", false,
               [](any_store& s, const capabilities& can) {
                   transact(s, [&](auto& tx) { tx.enqueue(scenario_drafts(can), at(0)); });
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
                       const std::array settles{settle_of(1, 1, retry{"e", at(10)}), settle_of(2, 1, succeed{"r"}),
                                                settle_of(3, 1, bury{"b", "reply"})};
                       std::ignore = tx.settle(settles, at(4));
                       std::ignore = tx.claim(request(at(4), {.limit = 2}));
                   });
               }},
    fault_step{
        "release one, advance another", false,
        [](any_store& s, const capabilities&) {
            settle_all(s, std::array{settle_of(4, 1, release{at(20)}), settle_of(6, 1, advance{"p", {}})}, at(5));
        }},
    fault_step{"claim two", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(6), {.limit = 2}); }},
    fault_step{"nudge one that is claimed", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(7)); }},
    fault_step{"retry the one that was nudged", false,
               [](any_store& s, const capabilities&) {
                   settle_all(s, std::array{settle_of(5, 1, retry{"late", at(1000)})}, at(8));
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
                   settle_all(s, std::array{settle_of(1, 2, succeed{"x"}), settle_of(8, 1, succeed{"y"})}, at(31));
               }},
    fault_step{"purge", false,
               [](any_store& s, const capabilities&) { purge(s, {.queue = "q", .before = at(40), .limit = 100}); }},
    fault_step{
        "end a child", false,
        [](any_store& s, const capabilities&) { settle_all(s, std::array{settle_of(6, 2, succeed{})}, at(41)); }},
    fault_step{"bury the parent", false,
               [](any_store& s, const capabilities&) {
                   settle_all(s, std::array{settle_of(5, 2, bury{"end", {}})}, at(42));
               }},
};

/// A snapshot with sequences replaced by their rank, because a rolled-back transaction may leave a gap.
[[nodiscard]] inline snapshot ranked_snapshot_of(const any_store& store) {
    auto out = snapshot_of(store);
    std::vector<std::uint64_t> sequences;
    for (const auto& e : out.found) {
        sequences.push_back(e.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    const auto rank = [&](entry& e) {
        const auto position = std::lower_bound(sequences.begin(), sequences.end(), e.sequence) - sequences.begin();
        e.sequence = static_cast<std::uint64_t>(position) + 1;
    };
    std::for_each(out.found.begin(), out.found.end(), rank);
    for (auto& list : out.listed) {
        std::for_each(list.begin(), list.end(), rank);
    }
    return out;
}

/// The snapshots before the first step and after each step, without faults.
[[nodiscard]] inline std::vector<snapshot> scenario_snapshots(trial& t) {
    auto store = t.open(t.fresh_location());
    std::vector<snapshot> out{ranked_snapshot_of(store)};
    for (const auto& step : fault_scenario) {
        step.run(store, t.can());
        out.push_back(ranked_snapshot_of(store));
        t.expect(out.back() != out[out.size() - 2],
                 "a step of the scenario (" + std::string(step.name) + ") has an effect");
    }
    return out;
}

/// Injects the faults of a scenario. `begin` is called before each step. `fired` is called when a step has failed and at
/// the end; it returns whether a fault has occurred and stops faults until the next `begin`.
struct fault_control {
    std::function<void()> begin;
    std::function<bool()> fired;
};

/// Runs the scenario on `shaky` and reads through `plain`. A step that fails must have no effect, or its whole effect if
/// its commit was in doubt. Repeating it must do everything once.
inline void play_scenario(trial& t, const std::vector<snapshot>& snapshots, any_store& plain, any_store& shaky,
                          const fault_control& faults) {
    const auto same = [&](std::size_t i, const snapshot& wanted, std::string_view what) {
        if (const auto now = ranked_snapshot_of(plain); now != wanted) {
            auto [a, b] = show_difference(now, wanted);
            t.fail(std::string(fault_scenario[i].name) + ": " + std::string(what), std::move(a), std::move(b));
        }
    };
    for (std::size_t i = 0; i < fault_scenario.size(); ++i) {
        const auto& step = fault_scenario[i];
        faults.begin();
        bool in_doubt = false; // from a commit in doubt until the step is known to have taken effect
        for (bool is_done = false; !is_done;) {
            try {
                step.run(shaky, t.can());
                is_done = true;
            } catch (const error& e) {
                in_doubt = in_doubt || e.is_in_doubt();
                if (!faults.fired()) {
                    throw;
                }
                const auto now = ranked_snapshot_of(plain);
                const bool took_effect = now == snapshots[i + 1];
                t.expect(!took_effect || in_doubt,
                         std::string(step.name) + ": an error that is not in doubt means that there was no effect");
                same(i, took_effect ? snapshots[i + 1] : snapshots[i], "the state after a fault");
                is_done = took_effect && step.claims; // a repetition would claim other entries
            }
        }
    }
    faults.fired(); // a fault that no step has noticed
    same(fault_scenario.size() - 1, snapshots.back(), "the state after all steps were repeated");
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/recording.hpp
// A store that logs the calls on another store's transactions and their answers, for messages and for later checks:
//
//   auto calls = std::make_shared<call_log>();
//   recording<memory::store> store(memory::store{}, calls);
//   for (const auto& call : calls->all()) { std::puts(to_string(call).c_str()); }
//
// Several stores and threads may share a log. A store that cannot be moved is passed as `any_store`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// The log of one open transaction. Its last owner logs how the transaction ended.
class transaction_log {
  public:
    transaction_log(std::shared_ptr<call_log> log, std::uint64_t number) : log_(std::move(log)), number_(number) {}
    transaction_log(transaction_log&&) noexcept = default;
    transaction_log& operator=(transaction_log&& other) noexcept {
        abandon();
        log_ = std::move(other.log_);
        number_ = other.number_;
        return *this;
    }
    ~transaction_log() { abandon(); }

    /// Calls `run`, which puts the answer into the call, and logs the call.
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
                end(e.is_in_doubt() ? call::status::in_doubt : call::status::rolled_back);
            }
            throw;
        }
        const bool is_commit = c.what == call::operation::commit;
        add(std::move(c));
        if (is_commit) {
            end(call::status::committed);
        }
    }

  private:
    void add(call c) const {
        if (log_) {
            log_->add(std::move(c));
        }
    }
    void end(call::status how) {
        if (const auto log = std::exchange(log_, nullptr)) {
            log->end(number_, how);
        }
    }
    void abandon() noexcept {
        if (log_) {
            log_->add({.what = call::operation::roll_back, .transaction = number_});
            end(call::status::rolled_back);
        }
    }

    std::shared_ptr<call_log> log_; ///< empty: ended or moved from
    std::uint64_t number_;
};

} // namespace detail

/// Logs all operations except reads.
template <class Transaction>
class recording_transaction : public transaction_adaptor<Transaction> {
  public:
    recording_transaction(Transaction tx, std::shared_ptr<call_log> log, std::uint64_t number)
        : transaction_adaptor<Transaction>(std::move(tx)), log_(std::move(log), number) {}

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> answer;
        log_.write({.what = call::operation::enqueue, .now = now, .drafts = {drafts.begin(), drafts.end()}},
                   [&](call& c) { c.receipts = answer = this->inner().enqueue(drafts, now); });
        return answer;
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<entry> answer;
        log_.write({.what = call::operation::claim, .now = request.now, .wanted = request},
                   [&](call& c) { c.claimed = answer = this->inner().claim(request); });
        return answer;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answer;
        log_.write({.what = call::operation::settle, .now = now, .settles = {settles.begin(), settles.end()}},
                   [&](call& c) { c.settlements = answer = this->inner().settle(settles, now); });
        return answer;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> answer;
        log_.write(
            {.what = call::operation::extend, .now = now, .tickets = {tickets.begin(), tickets.end()}, .lease = lease},
            [&](call& c) { c.verdicts = answer = this->inner().extend(tickets, now, lease); });
        return answer;
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        verdict answer{};
        log_.write({.what = call::operation::nudge, .now = now, .id = wanted},
                   [&](call& c) { c.verdicts = {answer = this->inner().nudge(wanted, now)}; });
        return answer;
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        verdict answer{};
        log_.write({.what = call::operation::cancel, .now = now, .id = wanted, .error = std::string(error)},
                   [&](call& c) { c.verdicts = {answer = this->inner().cancel(wanted, error, now)}; });
        return answer;
    }
    std::size_t purge(const purge_request& request) {
        std::size_t answer = 0;
        log_.write({.what = call::operation::purge, .purge = request},
                   [&](call& c) { c.purged = answer = this->inner().purge(request); });
        return answer;
    }
    void commit() {
        log_.write({.what = call::operation::commit}, [&](call&) { this->inner().commit(); });
    }

  private:
    detail::transaction_log log_; // destroyed before the transaction, so that the rollback is logged first
};

/// A store whose transactions log their calls. `inner()` is the store without the log.
template <class Store>
class recording : public store_adaptor<Store> {
  public:
    using transaction = recording_transaction<typename Store::transaction>;

    recording(Store store, std::shared_ptr<call_log> log)
        : store_adaptor<Store>(std::move(store)), log_(std::move(log)) {}

    [[nodiscard]] transaction begin() {
        auto tx = this->inner().begin();
        const auto number = log_->next_transaction();
        log_->add({.what = call::operation::begin, .transaction = number});
        return transaction(std::move(tx), log_, number);
    }
    [[nodiscard]] call_log& log() const noexcept { return *log_; }

  private:
    std::shared_ptr<call_log> log_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/faults.hpp
// Faults: the n-th call fails, for every n up to the number of calls, before or after its effect, once or repeatedly. A
// transaction must be stored as a whole or not at all, and repeating it must store it once.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fault_checks {

using moment = fault_moment;

/// A store whose calls fail as planned, and the same store without faults.
struct faulty_pair {
    explicit faulty_pair(trial& t)
        : plain(t.open(t.fresh_location())),
          shaky(erase([&] { return faulty<recording<any_store>>(recording<any_store>(plain, calls), plan); })) {}

    /// Runs `play`. Adds the fault and the calls that reached the store to a failure.
    template <class Play>
    void with_transcript(const fault& f, const Play& play) const {
        try {
            play();
        } catch (failure& found) {
            found.transcript = std::string(f.persistent ? "every call from " : "call ") + std::to_string(f.call) +
                               (f.persistent ? " on" : "") + " throws " + show(f.kind) +
                               (f.moment == moment::before ? " before its effect" : " after its effect") +
                               (f.in_doubt ? ", a commit in doubt" : "") + "; what reached the store:\n" +
                               calls->text();
            throw;
        }
    }

    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    any_store plain;
    any_store shaky;
};

/// Runs the scenario with the fault at the first call of every step, then at the second, and so on until no step has
/// that many calls. A persistent fault lasts for `tries_failing` tries.
inline void fail_every_call(trial& t, fault f, std::size_t tries_failing = 1) {
    const auto snapshots = scenario_snapshots(t);
    for (f.call = 1;; ++f.call) {
        faulty_pair s(t);
        std::size_t failed = 0;
        const auto begin = [&] {
            failed = 0;
            s.plan->arm(f);
        };
        const auto fired = [&] {
            const bool due = s.plan->has_fired() && f.kind != error_kind::conflict;
            if (++failed >= tries_failing) {
                s.plan->disarm();
            }
            return due;
        };
        s.with_transcript(f, [&] { play_scenario(t, snapshots, s.plain, s.shaky, {begin, fired}); });
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

/// No step of the scenario fails, because `transact` repeats it.
inline void conflicts(trial& t) {
    fail_every_call(t, {.kind = error_kind::conflict});
    faulty_pair s(t);
    s.plan->arm({.persistent = true, .kind = error_kind::conflict});
    t.throws(error_kind::conflict, "a conflict that never ends", [&] { put(s.shaky, draft_of(1)); });
    s.plan->disarm();
    t.tally().faults += s.plan->faults();
    t.expect(!s.plain.find(id_of(1)), "nothing is left of the abandoned transaction");
}

/// Throws in the middle of a transaction that uses every operation.
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
    const auto before = snapshot_of(store);
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
        faulty_pair s(t);
        const std::array drafts{draft_of(1, {.key = "k"}), draft_of(2), draft_of(3, {.result = "done"})};
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true}); // the commit
        const auto receipts = enqueue(s.shaky, drafts, at(0));
        t.tally().faults += s.plan->faults();
        t.expect(s.plan->has_fired(), "the commit was in doubt");
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            t.equal(receipts[i], receipt{receipt::kind::inserted, drafts[i].id}, "the receipt after a commit in doubt");
        }
        t.equal(numbers(s.plain.list(query::all("q"))), list_of{1, 2, 3}, "each is stored once");
        const auto before = snapshot_of(s.plain);
        t.equal(put(s.plain, drafts[0], at(7)), receipt{receipt::kind::duplicate, id_of(1)}, "once more");
        unchanged(s.plain, before, "after the same was enqueued again");
    }
}

inline void settle_in_doubt(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(50)}, bury{"b", "reply"}, release{at(60)},
                                          advance{"p", at(70)}};
    for (const auto& o : outcomes) {
        for (const bool lands : {true, false}) {
            faulty_pair s(t);
            put(s.plain, draft_of(1));
            const auto mine = take_one(s.plain, at(0));
            s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
            const auto e = t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, o, at(1)); });
            t.tally().faults += s.plan->faults();
            t.expect(e.is_in_doubt(), "the error is in doubt");
            t.equal(get(s.plain, 1).state == state::claimed, !lands, "the entry is still claimed");
            t.equal(settle(s.plain, mine, o, at(2)).verdict, lands ? verdict::repeated : verdict::applied,
                    "the settle once more, under the same ticket");
            t.equal(get(s.plain, 1).updated_at, at(lands ? 1 : 2), "it has landed once");
            const auto before = snapshot_of(s.plain);
            t.equal(settle(s.plain, mine, o, at(3)).verdict, verdict::repeated, "and again");
            unchanged(s.plain, before, "after a used ticket");
        }
    }
    faulty_pair s(t);
    put(s.plain, draft_of(1));
    const auto mine = take_one(s.plain, at(0));
    s.plan->arm({.call = 3, .in_doubt = true});
    t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, succeed{}, at(1)); });
    t.tally().faults += s.plan->faults();
    std::ignore = take_one(s.plain, at(100));
    t.equal(settle(s.plain, mine, succeed{}, at(101)).verdict, verdict::stale, "a repeated settle after another claim");
    t.equal(get(s.plain, 1).state, state::claimed, "the entry is the other's");
}

inline void claim_in_doubt(trial& t) {
    for (const bool lands : {true, false}) {
        faulty_pair s(t);
        put(s.plain, draft_of(1));
        put(s.plain, draft_of(2));
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
        t.throws(error_kind::io, "a commit in doubt", [&] { std::ignore = take(s.shaky, at(0)); });
        t.tally().faults += s.plan->faults();
        t.equal(take(s.plain, at(99)).size(), lands ? 0U : 2U, "claimed before the lease in doubt would be over");
        if (lands) {
            const auto healed = take(s.plain, at(100));
            t.equal(numbers(healed), list_of{1, 2}, "claimed when the lease is over");
            t.equal(healed.front().epoch, 2U, "the epoch of the claim after the claim in doubt");
            const auto before = snapshot_of(s.plain);
            t.equal(settle(s.plain, {id_of(1), 1}, succeed{}, at(101)).verdict, verdict::stale, "the lost ticket");
            unchanged(s.plain, before, "after a stale ticket");
        }
    }
}

/// The scenario with faults inside the store.
inline void inside(trial& t) {
    const auto& fail_at = t.hooks().fail_at;
    if (!fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    const auto snapshots = scenario_snapshots(t);
    struct off {
        const std::function<bool(std::size_t)>& hook;
        ~off() { hook(0); }
    } const at_the_end{fail_at};
    for (std::size_t n = 1;; ++n) {
        auto store = t.open(t.fresh_location());
        bool has_fired = false;
        fail_at(n);
        const auto fired = [&] {
            const bool due = fail_at(0);
            has_fired = has_fired || due;
            return due;
        };
        play_scenario(t, snapshots, store, store, {[] {}, fired});
        t.tally().faults += has_fired ? 1U : 0U;
        if (!has_fired) {
            return;
        }
    }
}

/// Every operation of a transaction.
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

/// Fails an operation inside the store, in a transaction that has written before. Returns false if the operation has no
/// such step.
inline bool fails_and_closes(trial& t, const std::function<bool(std::size_t)>& fail_at, void (*use)(any_transaction&),
                             std::size_t step) {
    auto store = t.open(t.fresh_location());
    put(store, draft_of(1));
    put(store, draft_of(2, {.due_at = at(50)}));
    std::ignore = take(store, at(0));
    const auto before = snapshot_of(store);
    auto tx = store.begin();
    tx.enqueue(std::array{draft_of(8)}, at(1));
    bool has_thrown = false;
    fail_at(step);
    try {
        use(tx);
    } catch (const error& e) {
        has_thrown = e.kind() != error_kind::invalid_argument && !e.is_in_doubt();
    }
    const bool has_fired = fail_at(0);
    t.tally().faults += has_fired ? 1U : 0U;
    if (has_fired && has_thrown) {
        for (const auto other : uses) {
            t.throws(error_kind::misuse, "the use of a transaction after an error", [&] { other(tx); });
        }
        unchanged(store, before, "after an error and the use of a closed transaction");
    }
    return has_fired;
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
           "If any call fails before its effect, nothing of its transaction is stored; repeating the transaction does "
           "all of it.",
           fault_checks::before},
    clause{"FAULT-02", layer::faults, level::must, needs::nothing,
           "If any call fails after its effect, nothing of its transaction is stored, or all of it if a commit was in "
           "doubt; repeating the transaction does nothing twice.",
           fault_checks::after},
    clause{"FAULT-03", layer::faults, level::must, needs::nothing,
           "A store that fails for a while, from any call on, keeps what was committed and works again afterwards.",
           fault_checks::persistently},
    clause{"FAULT-04", layer::faults, level::must, needs::nothing,
           "A conflict at any call leaves nothing, and the transaction succeeds when it is repeated from begin.",
           fault_checks::conflicts},
    clause{"FAULT-05", layer::faults, level::must, needs::nothing,
           "An exception thrown in the middle of a transaction leaves nothing of it, dedup keys included.",
           fault_checks::throwing_work},
    clause{"FAULT-06", layer::faults, level::must, needs::nothing,
           "Enqueues whose commit was in doubt are stored once if they are repeated with the same ids.",
           fault_checks::enqueue_in_doubt},
    clause{"FAULT-07", layer::faults, level::must, needs::nothing,
           "Settles whose commit was in doubt take effect once if they are repeated under the same tickets.",
           fault_checks::settle_in_doubt},
    clause{"FAULT-08", layer::faults, level::must, needs::nothing,
           "Claims whose commit was in doubt can be taken over when their lease is over, and not before.",
           fault_checks::claim_in_doubt},
    clause{"FAULT-09", layer::faults, level::may, needs::nothing,
           "If any step inside the store fails, a transaction is stored as a whole or not at all.",
           fault_checks::inside},
    clause{"FAULT-10", layer::faults, level::may, needs::nothing,
           "After any error except invalid_argument a transaction is closed: using it is misuse, and nothing of it is "
           "stored.",
           fault_checks::closed_after_errors},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/fidelity.hpp
// Fidelity: all values are returned as they were given, to the byte, the bit and the microsecond.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fidelity_checks {

using namespace enqueue_checks;

/// A draft with a distinct value in every field that the store supports.
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

/// All byte values, with a NUL at the start, at the end and in between.
[[nodiscard]] inline std::string all_bytes() {
    std::string out;
    for (int c = 0; c < 256; ++c) {
        out.push_back(static_cast<char>(c));
    }
    return out + std::string("\0\xff\0", 3);
}

/// Contents that a careless store truncates, converts or treats as empty.
[[nodiscard]] inline std::vector<std::string> contents() {
    using namespace std::string_literals;
    return {""s,         "\0"s,   "\0\0"s,     "a\0b"s,         "a\0"s,      " "s,     " a "s,  "\n"s,
            "a\r\nb"s,   "0"s,    "007"s,      "1e3"s,          "NULL"s,     "'"s,     "''"s,   "%s{}\\n\\0"s,
            "\xff\xfe"s, "\xc3"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xc3\xa9"s, "x'00'"s, "\x1a"s, all_bytes()};
}

/// Requires that the entry is found, listed and claimed as drafted.
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
    t.equal(ended, expected, "the draft's fields after a retry, an advance and a bury");
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
    t.equal(get(store, 1).result, std::optional<std::string>{}, "the result of a bury without one");
    t.equal(get(store, 2).result, "", "the result of a bury with an empty one");
    t.equal(get(store, 3).result, "", "the result of a succeed with an empty one");
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
        t.equal(put(store, d), receipt{receipt::kind::inserted, one}, "an id that differs from another one in one bit");
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
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{n}, "listed by a name of full length");
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
        t.equal(claimed.size(), 1, "claimed exactly at that time");
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
           "Every field of a draft is returned in the entry that is found, listed and claimed.",
           fidelity_checks::every_field},
    clause{"FIDELITY-02", layer::examples, level::must, needs::nothing,
           "The fields that come from a draft never change, whatever happens to the entry.",
           fidelity_checks::survives_life},
    clause{"FIDELITY-03", layer::examples, level::may, needs::durable, "Every field of an entry survives a reopen.",
           fidelity_checks::survives_reopen},
    clause{
        "FIDELITY-04", layer::examples, level::must, needs::nothing,
        "A draft's payload, progress, result and header values may contain any bytes: none at all, NUL, invalid UTF-8.",
        fidelity_checks::any_bytes},
    clause{"FIDELITY-05", layer::examples, level::must, needs::nothing,
           "The progress and the result of an outcome may contain any bytes.", fidelity_checks::any_bytes_settled},
    clause{"FIDELITY-06", layer::examples, level::must, needs::nothing,
           "An absent value differs from an empty one: results, and an expires_at at the earliest time.",
           fidelity_checks::none_is_not_empty},
    clause{"FIDELITY-07", layer::examples, level::must, needs::nothing,
           "Payloads, results and progress of up to 1 MiB are returned complete.", fidelity_checks::large},
    clause{"FIDELITY-08", layer::examples, level::must, needs::nothing,
           "Headers keep their order, their repeated names and their empty values.", fidelity_checks::headers_in_order},
    clause{"FIDELITY-09", layer::examples, level::must, needs::nothing,
           "A trail keeps all its ids, in order and with repetitions.", fidelity_checks::trail_in_order},
    clause{"FIDELITY-10", layer::examples, level::must, needs::nothing,
           "Two ids are equal only if all 128 bits are equal.", fidelity_checks::ids_to_the_bit},
    clause{"FIDELITY-11", layer::examples, level::must, needs::nothing,
           "Names of any characters and of full length are kept and distinguished to the last byte.",
           fidelity_checks::names_to_the_byte},
    clause{"FIDELITY-12", layer::examples, level::must, needs::nothing,
           "Times are stored to the microsecond, before 1970 and in the far future too.",
           fidelity_checks::times_to_the_microsecond},
    clause{"FIDELITY-13", layer::examples, level::must, needs::nothing,
           "attempts_max has 32 bits, and attempts, lapses, failures and epoch count beyond 256.",
           fidelity_checks::counters},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/fixture.hpp
// Fixture: whether the fixture opens stores as the suite requires. If a clause here fails, the others mean nothing.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fixture_checks {

inline void fresh_is_empty(trial& t) {
    auto first = t.open();
    put(first, draft_of(1));
    const auto other = t.open(t.fresh_location());
    t.expect(!other.find(id_of(1)), "a new location has no entry of another location");
    t.equal(other.counts("q"), state_counts{}, "counts of a new location");
    t.equal(other.next_due("q"), std::optional<time_point>{}, "next_due of a new location");
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
    t.equal(get(store, 1).created_at, long_ago, "created_at is the given time");
    t.equal(take(store, far_away - duration{1}).size(), 0U, "claimed before the given time");
    t.equal(take(store, far_away).size(), 1U, "claimed at the given time");
    t.equal(get(store, 1).updated_at, far_away, "updated_at is the given time");
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
    clause{"FIX-01", layer::fixture, level::must, needs::nothing, "A new location is an empty store.",
           fixture_checks::fresh_is_empty},
    clause{"FIX-02", layer::fixture, level::may, needs::shared,
           "Opening the same location twice gives a second handle on the same work.",
           fixture_checks::second_handle_sees},
    clause{"FIX-03", layer::fixture, level::may, needs::durable,
           "After all handles are destroyed, a location that is opened again has everything that was committed.",
           fixture_checks::reopen_keeps},
    clause{"FIX-04", layer::fixture, level::must, needs::nothing,
           "The store uses the times that callers pass, in the far past or future too, and reads no clock.",
           fixture_checks::obeys_given_time},
    clause{"FIX-05", layer::fixture, level::must, needs::nothing, "The capabilities of a store never change.",
           fixture_checks::capabilities_constant},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/groups.hpp
// Groups: the settle that reduces the number of members not yet succeeded from one to zero reports the group complete.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace groups_checks {

using namespace enqueue_checks;

inline constexpr settlement plain{verdict::applied, false};
inline constexpr settlement completes{verdict::applied, true};

[[nodiscard]] inline any_store group_of(trial& t, std::uint64_t members) {
    auto store = t.open(t.fresh_location());
    for (std::uint64_t n = 1; n <= members; ++n) {
        put(store, draft_of(n, {.group = "g"}));
    }
    return store;
}

/// Claims the entry and settles it.
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
            "the last two settles in one batch, and settles after them");
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
    t.equal(end(store, 2, succeed{}), plain, "the first of two later members");
    t.equal(end(store, 3, succeed{}), completes, "the last of two later members");
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
    t.equal(end(store, 1, succeed{}), completes, "the success of the only member beside duplicates and refusals");
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
           "The settle that reduces the number of group members not yet succeeded from one to zero reports the group "
           "complete, and no other settle does.",
           groups_checks::last_success_completes},
    clause{"GROUP-02", layer::examples, level::may, needs::groups,
           "A retry, release, advance, bury or cancel never completes a group.", groups_checks::only_success_completes},
    clause{"GROUP-03", layer::examples, level::may, needs::groups,
           "A group spans queues; two groups are the same only if all bytes of their names are equal.",
           groups_checks::across_queues},
    clause{"GROUP-04", layer::examples, level::may, needs::groups,
           "A group is reported complete once: not twice in a batch, and not by a settle that is repeated or stale.",
           groups_checks::once_per_fall},
    clause{"GROUP-05", layer::examples, level::may, needs::groups,
           "A dead member keeps its group open until its successor has succeeded.", groups_checks::dead_holds_open},
    clause{"GROUP-06", layer::examples, level::may, needs::groups,
           "A successor counts instead of its predecessor, through any number of generations.",
           groups_checks::successor_takes_the_place},
    clause{"GROUP-07", layer::examples, level::may, needs::groups,
           "A later member opens a complete group again, which then completes again.",
           groups_checks::later_member_reopens},
    clause{"GROUP-08", layer::examples, level::may, needs::groups,
           "A member enqueued in the settling transaction counts.", groups_checks::member_of_same_transaction},
    clause{"GROUP-09", layer::examples, level::may, needs::groups,
           "Drafts that are duplicates or refused do not count as members.", groups_checks::duplicates_do_not_count},
    clause{"GROUP-10", layer::examples, level::may, needs::groups, "Purged members no longer count.",
           groups_checks::purged_do_not_count},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/operation.hpp
// An operation of a writer as a value, so that it can be performed on a store and on the model.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

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

/// The model takes the items of a batch one by one.
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

/// A random operation.
[[nodiscard]] inline operation some_operation(generator& arguments, time_point now, random_source& d) {
    operation o{.now = now};
    const auto roll = d.below(100);
    if (roll < 20) {
        o.what = operation::kind::enqueue;
        o.drafts.push_back(arguments.some_draft());
    } else if (roll < 48) {
        o.what = operation::kind::claim;
        o.claim = arguments.some_claim();
    } else if (roll < 75) {
        o.what = operation::kind::settle;
        for (auto left = d.one_of<std::size_t>({1, 1, 2}); left > 0; --left) {
            o.settles.push_back({arguments.some_ticket(), arguments.some_outcome()});
        }
    } else if (roll < 80) {
        o.what = operation::kind::extend;
        o.tickets.push_back(arguments.some_ticket());
        o.lease = arguments.some_lease();
    } else if (roll < 86) {
        o.what = operation::kind::nudge;
        o.wanted = arguments.some_id();
    } else if (roll < 94) {
        o.what = operation::kind::cancel;
        o.wanted = arguments.some_id();
    } else {
        o.what = operation::kind::purge;
        o.purge = arguments.some_purge();
    }
    return o;
}

[[nodiscard]] inline std::string show(const operation& o) {
    switch (o.what) {
    case operation::kind::enqueue: {
        std::string out = "enqueue";
        for (const auto& d : o.drafts) {
            out += ' ' + as_code(d).substr(5);
        }
        return out;
    }
    case operation::kind::claim:
        return "claim " + std::to_string(o.claim.limit) + " of " + o.claim.queue +
               (o.claim.only.is_nil() ? "" : ", only " + show(o.claim.only));
    case operation::kind::settle: {
        std::string out;
        for (const auto& s : o.settles) {
            out += (out.empty() ? "" : "; ") + visit_outcome(outcome_as_code{}, s.outcome) + " " + show(s.ticket);
        }
        return out;
    }
    case operation::kind::extend: return "extend " + show(o.tickets) + " by " + show(o.lease);
    case operation::kind::nudge: return "nudge " + show(o.wanted);
    case operation::kind::cancel: return "cancel " + show(o.wanted);
    case operation::kind::purge: return "purge " + as_code(o.purge).substr(13);
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

/// Adds the names of what an operation touches: entries, keys, groups and lanes. A claim and a purge touch their whole
/// queue.
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/thread_probe.hpp
// Whether a thread of this process sleeps, and its CPU time. Linux reports both. On other systems every thread counts as
// asleep, so that a thread that is slow because of the load may look like one that waits.

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
namespace conformance::detail {

#if defined(__linux__)

class thread_probe {
  public:
    thread_probe() = default; ///< no thread
    thread_probe(thread_probe&& other) noexcept : file_(std::exchange(other.file_, -1)), clock_(other.clock_) {}
    thread_probe& operator=(thread_probe&& other) noexcept {
        std::swap(file_, other.file_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~thread_probe() {
        if (file_ >= 0) {
            close(file_);
        }
    }

    [[nodiscard]] static thread_probe current() {
        thread_probe out;
        const auto path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/stat";
        out.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread or for time to pass. False if it waits for a processor or a disk. Does not
    /// allocate, because the thread must not wait in the allocator for its observer.
    [[nodiscard]] bool is_asleep() const {
        std::array<char, 256> text{}; // "42 (name) S ...", where the name is short
        const auto size = file_ < 0 ? -1 : pread(file_, text.data(), text.size(), 0);
        if (size <= 0) {
            return true; // the thread has ended, or the state is not available
        }
        const std::string_view said(text.data(), static_cast<std::size_t>(size));
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// The CPU time that it has used.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const {
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

class thread_probe {
  public:
    [[nodiscard]] static thread_probe current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const { return {}; }
};

#endif

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/scheduler.hpp
// Runs one thread at a time: threads pause at certain points, and a callback chooses which one continues. A thread that
// sleeps before it reaches its next point is waiting for another thread inside the store, which is allowed. It continues
// when it can and pauses at its next point. Where the system reports whether a thread sleeps (Linux), the load of the
// machine does not change the schedule.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class scheduler {
  public:
    /// Chooses which of the paused threads continues. Called on any thread, by one at a time.
    using choice = std::function<std::size_t(const std::vector<std::size_t>&)>;

    scheduler(std::size_t threads, choice choose) : choose_(std::move(choose)), participants_(threads) {}

    // Called by the scheduled threads.

    /// Registers the calling thread as thread `who`. Must be its first call.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        participants_[who].thread = thread_probe::current();
        participants_[who].at = position::running;
    }

    /// Waits for the thread's turn.
    void pause(std::size_t who) {
        auto& mine = participants_[who];
        mine.arrives = true; // from here on it does not sleep inside the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        pass_turn();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = none;
        mine.at = position::running;
        mine.cpu_time_at_turn = mine.thread.cpu_time();
        mine.arrives = false;
    }
    /// Must be the last call of a thread.
    void finish(std::size_t who) {
        participants_[who].arrives = true;
        const std::lock_guard lock(mutex_);
        participants_[who].at = position::finished;
        pass_turn();
        finished_.notify_one();
    }

    // Called by the thread that has started them.

    /// Returns when all threads have finished. Passes the turn on for threads that wait inside the store.
    void run() {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        while (
            !finished_.wait_for(lock, look_again, [&] { return count(position::finished) == participants_.size(); })) {
            pass_turn();
        }
    }

  private:
    enum class position : std::uint8_t { starting, running, paused, finished };
    struct participant {
        position at = position::starting;
        std::atomic<bool> arrives = false;
        thread_probe thread{};
        std::chrono::nanoseconds cpu_time_at_turn{}; ///< the CPU time of its thread when it got its turn
        std::condition_variable turn{};
    };
    static constexpr std::size_t none = ~std::size_t{0};

    [[nodiscard]] std::size_t count(position p) const {
        std::size_t n = 0;
        for (const auto& one : participants_) {
            n += one.at == p ? 1U : 0U;
        }
        return n;
    }

    /// Lets a paused thread continue if no other thread is on its way to a point.
    void pass_turn() {
        if (turn_ != none || count(position::paused) == 0 || is_any_running()) {
            return;
        }
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            if (participants_[i].at == position::paused) {
                ready.push_back(i);
            }
        }
        turn_ = choose_(ready);
        participants_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_any_running() const {
        for (const auto& one : participants_) {
            if (one.at == position::starting || (one.at == position::running && !is_waiting_in_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Whether it sleeps, or has been running for so long that it must be waiting in a loop. The latter is measured in
    /// CPU time, so that the load of the machine does not change the schedule.
    [[nodiscard]] static bool is_waiting_in_store(const participant& one) {
        constexpr std::chrono::milliseconds spin_max{100};
        const bool stays = one.thread.is_asleep() || one.thread.cpu_time() - one.cpu_time_at_turn > spin_max;
        return stays && !one.arrives; // read last: a thread sets it before it sleeps in `pause`
    }

    choice choose_;
    std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<participant> participants_;
    std::size_t turn_ = none;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/history.hpp
// A history: several threads run transactions, each on its own handle. It contains the answers of every transaction, and
// when the transaction began and ended.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// One transaction of a thread: its operations, its answers and its end.
struct transaction_run {
    std::size_t thread = 0;
    std::vector<operation> operations{};
    bool commits = true;

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    transaction_run::end ended = end::none;
    std::vector<answer> answers{};
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< the number of the event
    std::uint64_t ended_at = 0;

    /// Whether its answers must be explained.
    [[nodiscard]] bool has_answers() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    [[nodiscard]] bool overlaps(const transaction_run& other) const noexcept {
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

/// The events in their order, as text.
class event_log {
  public:
    std::uint64_t add(std::size_t thread, std::string text) {
        const std::lock_guard lock(mutex_);
        events_.emplace_back(thread, std::move(text));
        return events_.size();
    }

    /// One column per thread.
    [[nodiscard]] std::string text(std::size_t threads) const {
        constexpr std::size_t width = 58;
        std::string out;
        for (std::size_t p = 0; p < threads; ++p) {
            out += padded("thread " + std::to_string(p + 1), width);
        }
        for (const auto& [thread, what] : events_) {
            out += "\n" + std::string(thread * width, ' ') + what;
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

/// The scheduled thread that the current thread is, for the store's seam.
inline thread_local scheduler* current_scheduler = nullptr;
inline thread_local std::size_t current_thread = 0;

inline void run_transaction(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    const auto note = [&](std::string text) { return log.add(d.thread, std::move(text)); };
    with.pause(d.thread);
    d.begun_at = note("begin");
    try {
        auto tx = store.begin();
        for (const auto& o : d.operations) {
            with.pause(d.thread);
            d.answers.push_back(perform(tx, o));
            note(show(o) + " -> " + show(o, d.answers.back()));
        }
        with.pause(d.thread);
        if (d.commits) {
            tx.commit();
            d.ended = transaction_run::end::committed;
        } else {
            d.ended = transaction_run::end::rolled_back; // when tx is destroyed
        }
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = transaction_run::end::threw;
        d.thrown = e.what();
    }
    switch (d.ended) {
    case transaction_run::end::committed: d.ended_at = note("committed"); break;
    case transaction_run::end::rolled_back: d.ended_at = note("rolled back"); break;
    default: d.ended_at = note(d.thrown);
    }
}

/// Runs the transactions, those of one thread in their order, under the schedule that `choose` makes. If the fixture has a
/// seam, threads pause inside the store, too.
template <class Choose>
void run_history(trial& t, std::vector<any_store>& handles, std::vector<transaction_run>& runs, event_log& log,
                 Choose&& choose) {
    scheduler with(handles.size(), std::forward<Choose>(choose));
    if (t.hooks().seam) {
        t.hooks().seam([](std::string_view) {
            if (current_scheduler != nullptr) {
                current_scheduler->pause(current_thread);
            }
        });
    }
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < handles.size(); ++p) {
        threads.emplace_back([&, p] {
            with.enter(p);
            current_scheduler = &with;
            current_thread = p;
            for (auto& d : runs) {
                if (d.thread == p) {
                    run_transaction(handles[p], d, with, log);
                }
            }
            current_scheduler = nullptr;
            with.finish(p);
        });
    }
    with.run();
    for (auto& thread : threads) {
        thread.join();
    }
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/linearization.hpp
// Whether a history can be explained by some order of its transactions. In that order the model must give all answers of
// the history and the store's final state, and no transaction comes before one that had ended when it began.
//
// Transactions that ended in `conflict` are ignored. A transaction that was rolled back changes nothing, but its answers
// must be right. A claim may pass over entries that a concurrent transaction has touched, and only those.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class linearization {
  public:
    /// `final` has all entries that are stored at the end.
    linearization(const model& before, const std::vector<transaction_run>& runs, std::vector<entry> final)
        : final_(std::move(final)) {
        for (const auto& d : runs) {
            all_.push_back(&d);
            if (d.has_answers()) {
                runs_.push_back(&d);
            }
        }
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        std::sort(final_.begin(), final_.end(), by_sequence);
        exists_ = !is_decidable() || search(before, 0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }

  private:
    static bool by_sequence(const entry& a, const entry& b) { return a.sequence < b.sequence; }

    /// The sequence of an entry that was inserted and purged is unknown, so such a rare history is not judged.
    [[nodiscard]] bool is_decidable() const {
        std::set<id> inserted;
        for (const auto* const d : runs_) {
            for (std::size_t i = 0; d->ended == transaction_run::end::committed && i < d->answers.size(); ++i) {
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
        if (done == (std::uint64_t{1} << runs_.size()) - 1) {
            return looks_like_final(now);
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && may_be_next(i, done)) {
                auto after = now;
                if (agrees(after, *runs_[i]) && search(runs_[i]->ended == transaction_run::end::committed ? after : now,
                                                       done | std::uint64_t{1} << i)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Whether all transactions that ended before this one began are done.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        for (std::size_t j = 0; j < runs_.size(); ++j) {
            if (j != i && (done >> j & 1U) == 0 && runs_[j]->ended_at < runs_[i]->begun_at) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool agrees(model& on, const transaction_run& d) const {
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

    /// Takes over the sequences that the store has chosen. Those of purged or rolled-back entries are unknown.
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

    [[nodiscard]] bool agrees_to_claim(model& on, const transaction_run& d, const claim_request& request,
                                       const std::vector<entry>& claimed) const {
        auto straight = on;
        if (same_but_sequence(straight.claim(request), claimed)) {
            on = std::move(straight);
            return true;
        }
        // It may have passed over entries that concurrent transactions touched. All others that are eligible must be taken.
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

    /// Ignores sequences, because that of a purged entry is unknown.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    [[nodiscard]] std::set<std::string> touched_beside(const transaction_run& d) const {
        std::set<std::string> names;
        for (const auto* const other : all_) { // including those that ended in conflict
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

    std::vector<const transaction_run*> all_{};
    std::vector<const transaction_run*> runs_{}; ///< those whose answers must be explained
    std::vector<entry> final_;
    std::map<id, std::uint64_t> sequences_{};
    bool exists_ = false;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/store_pool.hpp
// Handles on an empty store, for many cases in a row. Opening a store may take a hundred times as long as a case, so a
// store that can be emptied is reused.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class store_pool {
  public:
    store_pool(trial& t, std::size_t handles) : trial_(t), count_(handles) {}
    store_pool(const store_pool&) = delete;
    store_pool& operator=(const store_pool&) = delete;
    ~store_pool() { close(); }

    /// Handles on an empty store. They are those of the previous case if it was cleared.
    [[nodiscard]] std::vector<any_store>& acquire() {
        if (!is_clean_ || ++used_ > reuse_max) {
            close();
            location_.emplace(trial_.fresh_location());
            for (std::size_t i = 0; i < count_; ++i) {
                handles_.push_back(i == 0 || trial_.can().shared ? trial_.context().open(*location_)
                                                                 : handles_.front());
            }
            used_ = 0;
        }
        is_clean_ = false;
        return handles_;
    }

    /// Ends a case that passed: cancels and purges all entries.
    void clear() {
        constexpr time_point late = start + std::chrono::hours{24 * 3650};
        auto& store = handles_.front();
        for (const std::string queue : {"q", "r"}) {
            const auto live = store.list({.by = query::path::live, .queue = queue, .limit = 1000});
            transact(store, [&](auto& tx) {
                for (const auto& e : live) {
                    std::ignore = tx.cancel(e.id, "cleared", late);
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
    void close() {
        handles_.clear();
        if (location_) {
            trial_.abandon(*location_);
        }
        location_.reset();
    }

    static constexpr std::size_t reuse_max = 50;
    trial& trial_;
    std::size_t count_;
    std::optional<location> location_{};
    std::vector<any_store> handles_{};
    bool is_clean_ = false;
    std::size_t used_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/histories.hpp
// Histories: threads run random transactions, each thread on its own handle, under a random schedule. The answers must be
// explained by some order of the transactions.

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

[[nodiscard]] inline bool is_overlapping(const std::vector<transaction_run>& runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (runs[i].overlaps(runs[j])) {
                const auto a = runs[i].touched();
                const auto b = runs[j].touched();
                if (std::any_of(a.begin(), a.end(), [&](const auto& name) { return b.count(name) > 0; })) {
                    return true;
                }
            }
        }
    }
    return false;
}

/// The state before, and the steps of all threads side by side.
[[nodiscard]] inline std::string transcript_of(const model& before, const event_log& log, std::size_t threads) {
    std::string out = "before:\n";
    for (const auto& r : before.records) {
        out += "  " + show(r.entry) + "\n";
    }
    return out + log.text(threads);
}

/// Requires that some order of the transactions explains the history.
inline void require_linearization(const model& before, const std::vector<transaction_run>& runs, const any_store& store,
                                  const event_log& log, std::size_t threads) {
    for (const auto& d : runs) {
        if (d.ended == transaction_run::end::threw) {
            throw failure{"a transaction threw an error other than conflict", d.thrown, "an answer, or conflict",
                          transcript_of(before, log, threads)};
        }
    }
    const auto final = everything(store);
    if (!linearization(before, runs, final).exists()) {
        std::string seen = "these answers; at the end";
        for (const auto& e : final) {
            seen += "\n    " + show(e);
        }
        throw failure{"no order of the transactions gives these answers and this final state", seen,
                      "the answers and the final state of some order", transcript_of(before, log, threads)};
    }
}

/// Some words make the setup, which one thread runs; the others make the concurrent transactions.
inline void play(trial& t, store_pool& pool, const words& list, std::size_t threads) {
    constexpr std::size_t transactions_max = 6;
    auto& handles = pool.acquire();
    {
        auto& store = handles.front();
        model_run setup(store, t.can(), t.tally());
        for (const auto word : list) {
            if (word % 5 < 3) {
                setup.step(word);
            }
        }
        setup.end(true);
        const auto before = setup.committed();

        std::vector<transaction_run> runs;
        std::uint64_t luck = t.seed();
        for (const auto word : list) {
            if (word % 5 >= 3 && runs.size() < transactions_max) {
                random_source d(word);
                generator arguments(t.can(), before, setup.now(), setup.tickets(), d);
                auto& one = runs.emplace_back();
                one.thread = d.below(threads);
                one.commits = d.chance(85);
                for (auto left = 1 + d.below(2); left > 0; --left) {
                    one.operations.push_back(some_operation(arguments, setup.now(), d));
                }
                luck ^= word;
            }
        }

        event_log log;
        random_source schedule(luck);
        run_history(t, handles, runs, log,
                    [&](const std::vector<std::size_t>& ready) { return ready[schedule.below(ready.size())]; });
        t.tally().histories += 1;
        t.tally().overlapping += is_overlapping(runs) ? 1U : 0U;
        require_linearization(before, runs, store, log, threads);
    }
    pool.clear();
}

template <std::size_t Threads>
void explained(trial& t) {
    store_pool pool(t, Threads);
    auto found = falsify(t, t.budget().histories / 2, 14, [&](const words& list) { play(t, pool, list, Threads); });
    if (found) {
        throw std::move(found->second);
    }
}

} // namespace history_checks

inline constexpr std::array histories{
    clause{"HISTORY-01", layer::histories, level::must, needs::nothing,
           "The answers that two threads receive can be explained by some order of their transactions.",
           history_checks::explained<2>},
    clause{"HISTORY-02", layer::histories, level::must, needs::nothing,
           "The answers that three threads receive can be explained by some order of their transactions.",
           history_checks::explained<3>},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/interleavings.hpp
// Interleavings: pairs and triples of short transactions on the same entries, with their steps in every order. A
// transaction may wait for another one.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace interleaving_checks {

inline constexpr time_point now = at(50);

/// Fills a store with entries for the transactions to compete for. Returns its model.
[[nodiscard]] inline model prepare(trial& t, any_store& store) {
    model m;
    const auto both = [&](const operation& o) {
        const auto seen = transact(store, [&](auto& tx) { return perform(tx, o); });
        const auto expected = perform(m, o);
        trial::expect(seen.receipts == expected.receipts && seen.claimed.size() == expected.claimed.size() &&
                          seen.settlements == expected.settlements && seen.verdicts == expected.verdicts,
                      "the setup of an interleaving");
        for (auto& r : m.records) {
            r.entry.sequence = get(store, r.entry.id.low).sequence;
        }
    };
    const std::string lane = t.can().lanes ? "x" : "";
    const std::string group = t.can().groups ? "g" : "";
    using kind = operation::kind;
    // 4 stays claimed, the lease of 5 is over at `now`, 6 is dead, 7 and 8 are the last members of a group.
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

/// The transactions, each of one or two operations.
[[nodiscard]] inline std::vector<std::vector<operation>> transactions() {
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

/// All orders of `each` steps of every thread, in lexicographic order.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> orders(std::size_t threads, std::size_t each) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < threads; ++p) {
        order.insert(order.end(), each, p);
    }
    std::vector<std::vector<std::size_t>> all;
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

inline void play(trial& t, store_pool& pool, const std::vector<const std::vector<operation>*>& parts,
                 std::size_t rolls_back, const std::vector<std::size_t>& order) {
    auto& handles = pool.acquire();
    {
        auto& store = handles.front();
        const auto before = prepare(t, store);
        std::vector<transaction_run> runs;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            runs.push_back({.thread = i, .operations = *parts[i], .commits = i != rolls_back});
        }
        event_log log;
        std::size_t step = 0;
        run_history(t, handles, runs, log, [&](const std::vector<std::size_t>& ready) {
            while (step < order.size()) {
                const auto wanted = order[step++];
                if (std::find(ready.begin(), ready.end(), wanted) != ready.end()) {
                    return wanted;
                }
            }
            return ready.front();
        });
        t.tally().interleavings += 1;
        history_checks::require_linearization(before, runs, store, log, parts.size());
    }
    pool.clear();
}

/// Runs at most `schedules` random orders for every pair; all orders if there are not more.
inline void pairs(trial& t) {
    store_pool pool(t, 2);
    const auto all = transactions();
    const auto merged = orders(2, 3);
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto wanted = t.budget().schedules;
            for (std::size_t n = 0; n < std::min(wanted, 2 * merged.size()); ++n) {
                const bool every = wanted >= 2 * merged.size();
                const auto pick = every ? n : t.random().below(2 * merged.size());
                constexpr std::size_t none = 2;
                play(t, pool, {&all[i], &all[j]}, pick < merged.size() ? none : pick % 2, merged[pick % merged.size()]);
            }
        }
    }
}

inline void triples(trial& t) {
    store_pool pool(t, 3);
    const auto all = transactions();
    const auto merged = orders(3, 3);
    for (std::size_t n = 0; n < 10 * t.budget().schedules; ++n) {
        const auto some = [&] { return &all[t.random().below(all.size())]; };
        const auto first = some();
        const auto second = some();
        play(t, pool, {first, second, some()}, t.random().below(5), merged[t.random().below(merged.size())]);
    }
}

} // namespace interleaving_checks

inline constexpr std::array interleavings{
    clause{"ORDER-01", layer::interleavings, level::must, needs::nothing,
           "Two transactions whose steps interleave in any order answer as if they had run one after the other.",
           interleaving_checks::pairs},
    clause{"ORDER-02", layer::interleavings, level::must, needs::nothing,
           "Three transactions whose steps interleave in any order answer as if they had run one after the other.",
           interleaving_checks::triples},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/lanes.hpp
// Lanes: one entry is claimed at a time, in sequence. The head is the live entry with the lowest sequence. It blocks the
// entries behind it until it ends; a blocked entry has no gate.

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

/// Entries 1, 2 and 3 in one lane, all due.
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
        auto store = t.open(t.fresh_location());
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

/// A way to end entry 1, the head.
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
        auto store = t.open(t.fresh_location());
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
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        std::ignore = settle_in(tx, ticket, succeed{}, at(0));
        t.equal(tx.next_due("q"), std::optional{at(0)}, "next_due in the transaction that ended the head");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{2}, "claimed in the transaction that ended the head");
        t.equal(tx.cancel(id_of(2), "why", at(100)), verdict::applied, "the cancel of the next");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{3}, "claimed after that");
    }
    unchanged(store, before, "the lane after the rollback");
    t.equal(numbers(take(store, at(0))), list_of{}, "claimed behind the head whose end was rolled back");
}

inline void blocked_are_counted(trial& t) {
    auto store = t.open();
    put_three(store);
    std::ignore = take_one(store, at(0));
    const auto before = snapshot_of(store);
    t.equal(store.counts("q")[state::pending], 2U, "pending entries");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the list of the live");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(90), {.only = id_of(2)})), list_of{}, "claimed by id behind the head");
    t.equal(numbers(take(store, at(900), {.only = id_of(3)})), list_of{}, "claimed by id behind a lapsed head");
    unchanged(store, before, "claims do not change blocked entries");
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
    t.equal(numbers(take(store, at(90), {.limit = 1})), list_of{3},
            "claimed first, because it has been due for longer");
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
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed when it is the head");
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
        t.equal(ticket.id, id_of(n), "claimed from a lane whose earlier entries have ended");
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
           "At most one entry of a lane is claimed at a time, in the order of sequences; a batch of drafts keeps its "
           "order.",
           lane_checks::one_at_a_time},
    clause{"LANE-02", layer::examples, level::may, needs::lanes,
           "A head that is not due yet blocks its lane, even if entries behind it are due.",
           lane_checks::future_head_holds},
    clause{"LANE-03", layer::examples, level::may, needs::lanes,
           "A head that is retried, released or advanced blocks its lane until its next attempt.",
           lane_checks::settled_head_holds},
    clause{"LANE-04", layer::examples, level::may, needs::lanes,
           "A head whose lease is over is taken over before any entry behind it is claimed.",
           lane_checks::lapsed_head_holds},
    clause{"LANE-05", layer::examples, level::may, needs::lanes,
           "When the head ends in any way, the next entry becomes the head, and no later one.",
           lane_checks::every_end_opens},
    clause{"LANE-06", layer::examples, level::may, needs::lanes,
           "The next entry becomes the head in the transaction that ends the old head; a rollback undoes both.",
           lane_checks::in_the_same_transaction},
    clause{"LANE-07", layer::examples, level::may, needs::lanes,
           "Blocked entries are counted and listed, but do not affect next_due and are never claimed, not even by id.",
           lane_checks::blocked_are_counted},
    clause{"LANE-08", layer::examples, level::may, needs::lanes,
           "A blocked entry keeps its due_at until it becomes the head.", lane_checks::due_time_kept},
    clause{"LANE-09", layer::examples, level::may, needs::lanes,
           "A nudge changes the due_at of a blocked entry, which stays blocked.", lane_checks::nudge_leaves_blocked},
    clause{"LANE-10", layer::examples, level::may, needs::lanes,
           "A blocked parent is nudged when its child ends, and stays blocked.", lane_checks::blocked_parent},
    clause{"LANE-11", layer::examples, level::may, needs::lanes,
           "A blocked entry can be cancelled; the head does not change, and the dead entry never becomes the head.",
           lane_checks::cancel_in_the_middle},
    clause{"LANE-12", layer::examples, level::may, needs::lanes,
           "A lane belongs to its queue; other lanes, other queues and entries without a lane do not wait for it.",
           lane_checks::scope},
    clause{"LANE-13", layer::examples, level::may, needs::lanes,
           "The limit of a claim counts heads only; blocked entries do not use it up, however long they have been due.",
           lane_checks::limit_counts_heads},
    clause{"LANE-14", layer::examples, level::may, needs::lanes,
           "A lane whose entries have all ended starts again with its next entry.", lane_checks::begins_anew},
    clause{"LANE-15", layer::examples, level::may, needs::lanes,
           "An entry whose enqueue is rolled back blocks no lane.", lane_checks::rolled_back_head},
    clause{"LANE-16", layer::examples, level::may, needs::lanes,
           "The successor of a dead entry joins the end of its predecessor's lane.", lane_checks::successor_at_the_end},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/model.hpp
// Model: long random sequences of commands, run on the store and on the model.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace model_checks {

inline void run_commands(trial& t, store_pool& pool, const words& list, tally& seen, test_source* source) {
    auto& store = pool.acquire().front();
    {
        model_run s(source == nullptr ? store : write_test(store, *source), t.can(), seen);
        for (const auto word : list) {
            s.step(word);
        }
        s.end(true);
    }
    pool.clear();
}

inline void matches_model(trial& t) {
    store_pool pool(t, 1);
    auto found = falsify(t, t.budget().model_runs, t.budget().commands_per_run,
                         [&](const words& list) { run_commands(t, pool, list, t.tally(), nullptr); });
    if (found) {
        // Once more, to write the calls down as a test.
        test_source source;
        tally ignored;
        try {
            run_commands(t, pool, found->first, ignored, &source);
        } catch (const failure&) { // the same failure again
        } catch (const error&) {
        }
        found->second.transcript = source.text();
        throw std::move(found->second);
    }
}

} // namespace model_checks

inline constexpr std::array model_runs{
    clause{"STORY-01", layer::model, level::must, needs::nothing,
           "After any sequence of operations, all answers and reads are as the contract says, inside the transaction "
           "and outside.",
           model_checks::matches_model},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/nudge.hpp
// Nudge: an entry that waits becomes due now; a claimed entry is marked and becomes due when its claim ends. No nudge is
// lost.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace nudge_checks {

/// Entry 1, claimed at 0 until 100 and nudged at 10.
[[nodiscard]] inline ticket marked(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .progress = "begun"}));
    const auto ticket = take_one(store, at(0));
    trial::equal(nudge(store, id_of(1), at(10)), verdict::applied, "the nudge of a claimed entry");
    return ticket;
}

/// Requires that an outcome at 20 with the time at(90) leaves the marked entry due at 20, and one with at(15) at 15.
template <class Outcome>
void earlier_of_time_and_now(trial& t, const Outcome& outcome_at) {
    for (const auto given : {at(90), at(21), at(20), at(15)}) {
        auto store = t.open(t.fresh_location());
        const auto ticket = marked(store);
        t.equal(settle(store, ticket, outcome_at(given), at(20)), settlement{verdict::applied}, "the settle");
        const auto due = given < at(20) ? given : at(20);
        t.equal(get(store, 1).due_at, due,
                "due_at after an outcome with the time " + show(given) + " at " + show(at(20)));
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
    const auto before = snapshot_of(store);
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
    std::ignore = settle(store, ticket, release{}, at(-5)); // a clock that is slow
    t.equal(get(store, 1).due_at, at(-5), "due_at after a release before it was due");
    ticket = take_one(store, at(50));
    nudge(store, id_of(1), at(60));
    std::ignore = settle(store, ticket, advance{"p", {}}, at(70));
    t.equal(get(store, 1).due_at, at(70), "due_at after an advance");
}

inline void ends_with_the_entry(trial& t) {
    for (const outcome& end : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_location());
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
    t.expect(!get(store, 1).woken, "a takeover clears the wake mark");
    std::ignore = settle(store, ticket, release{at(500)}, at(110));
    t.equal(get(store, 1).due_at, at(500), "due_at after the takeover");
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
    auto expected = snapshot_of(store).found;
    std::ignore = nudge(store, id_of(2), at(30));
    expected[1].due_at = expected[1].updated_at = at(30);
    t.equal(snapshot_of(store).found, expected, "the entries after one was nudged");
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed after one was nudged");
}

} // namespace nudge_checks

inline constexpr std::array nudging{
    clause{"NUDGE-01", layer::examples, level::must, needs::nothing,
           "A nudge makes a pending entry due now; beside that only updated_at changes.", nudge_checks::pending_fields},
    clause{"NUDGE-02", layer::examples, level::must, needs::nothing,
           "A nudge makes a retrying entry due now; beside that only updated_at changes.",
           nudge_checks::retrying_fields},
    clause{"NUDGE-03", layer::examples, level::must, needs::nothing,
           "A nudge does not change an entry that is already due; it never makes an entry due later.",
           nudge_checks::due_already},
    clause{"NUDGE-04", layer::examples, level::must, needs::nothing,
           "A nudge of a claimed entry sets its wake mark and updated_at; lease, due_at and ticket stay.",
           nudge_checks::claimed_fields},
    clause{"NUDGE-05", layer::examples, level::must, needs::nothing,
           "A retry does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_retry},
    clause{"NUDGE-06", layer::examples, level::must, needs::nothing,
           "A release does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_release},
    clause{"NUDGE-07", layer::examples, level::must, needs::nothing,
           "An advance does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_advance},
    clause{
        "NUDGE-08", layer::examples, level::must, needs::nothing,
        "If release or advance gives no time, a nudge of the claim makes the entry due now, unless it was due before.",
        nudge_checks::through_outcomes_without_time},
    clause{"NUDGE-09", layer::examples, level::must, needs::nothing,
           "succeed and bury clear the wake mark and leave due_at unchanged.", nudge_checks::ends_with_the_entry},
    clause{"NUDGE-10", layer::examples, level::must, needs::nothing,
           "The settle that ends a claim clears its wake mark; the next claim starts without one.",
           nudge_checks::not_for_the_next_claim},
    clause{"NUDGE-11", layer::examples, level::must, needs::nothing,
           "A takeover clears the wake mark, because it is the attempt that the nudge asked for.",
           nudge_checks::take_over_answers_it},
    clause{"NUDGE-12", layer::examples, level::must, needs::nothing,
           "A nudge also marks a claim whose lease is over, and does not change lease_until.",
           nudge_checks::lapsed_claim},
    clause{"NUDGE-13", layer::examples, level::must, needs::nothing, "A nudge changes only the entry with its id.",
           nudge_checks::by_id},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/parent.hpp
// Parents: when an entry ends, its parent is nudged.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace parent_checks {

/// Enqueues entry 1 in the queue "r", due at 900, and its child, entry 2, in the queue "q".
inline void put_family(any_store& store) {
    put(store, draft_of(1, {.queue = "r", .payload = "p", .due_at = at(900), .progress = "begun"}));
    put(store, draft_of(2, {.parent = id_of(1)}));
}

/// Claims entry 2 at 0 until 100.
[[nodiscard]] inline ticket take_child(any_store& store) { return take_one(store, at(0), {.only = id_of(2)}); }

/// Ends entry 2 at 50.
inline void end_child(any_store& store) {
    trial::equal(settle(store, take_child(store), succeed{}, at(50)), settlement{verdict::applied}, "the child's end");
}

/// A way to end entry 2 at 50.
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
        auto store = t.open(t.fresh_location());
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
    const auto before = snapshot_of(store);
    t.equal(settle(store, {id_of(2), 1}, succeed{}, at(70)), settlement{verdict::repeated}, "the second settle");
    t.equal(settle(store, {id_of(2), 9}, bury{}, at(70)), settlement{verdict::stale}, "the settle with another epoch");
    t.equal(cancel(store, id_of(2), at(70)), verdict::stale, "the cancel");
    unchanged(store, before, "a settle or cancel that is not applied does not nudge the parent");
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
        auto store = t.open(t.fresh_location());
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
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.queue = "r", .due_at = due}));
        put(store, draft_of(2, {.parent = id_of(1)}));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that is due already");
    }
}

inline void terminal_parent(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_location());
        put_family(store);
        std::ignore = settle(store, take_one(store, at(900), {.queue = "r"}), o, at(901));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that ended before its child");
    }
}

inline void absent_parent(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(2, {.parent = id_of(9)}));
        put(store, draft_of(3, {.due_at = at(900)}));
        const auto other = get(store, 3);
        w.end(store);
        t.expect(is_terminal(get(store, 2).state), "a child without a parent ends by " + std::string(w.name));
        t.expect(!store.find(id_of(9)), "the parent is still absent");
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
    auto expected = snapshot_of(store).found; // 1, 2, 3, 4
    end_child(store);
    expected[0].due_at = expected[0].updated_at = at(50);
    expected[1] = get(store, 2);
    t.equal(snapshot_of(store).found, expected, "the parent, and neither its own parent nor its other child");
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
    const auto before = snapshot_of(store);
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
           "When an entry ends by succeed, bury or cancel, its parent becomes due now, in whatever queue it is.",
           parent_checks::every_end_wakes},
    clause{"PARENT-02", layer::examples, level::must, needs::nothing,
           "A claim, extend, nudge, retry, release or advance of an entry does not nudge its parent.",
           parent_checks::nothing_else_wakes},
    clause{"PARENT-03", layer::examples, level::must, needs::nothing,
           "A settle or cancel that is not applied does not nudge the parent.",
           parent_checks::refused_ends_do_not_wake},
    clause{"PARENT-04", layer::examples, level::must, needs::nothing, "A retrying parent is nudged like a pending one.",
           parent_checks::retrying_parent},
    clause{"PARENT-05", layer::examples, level::must, needs::nothing,
           "A parent that is claimed when its child ends gets a wake mark, and is due when its claim ends.",
           parent_checks::claimed_parent},
    clause{"PARENT-06", layer::examples, level::must, needs::nothing,
           "A parent that is already due does not change, updated_at included.", parent_checks::due_parent},
    clause{"PARENT-07", layer::examples, level::must, needs::nothing,
           "A parent that ended before its child does not change.", parent_checks::terminal_parent},
    clause{"PARENT-08", layer::examples, level::must, needs::nothing,
           "An entry whose parent is absent ends like any other entry.", parent_checks::absent_parent},
    clause{"PARENT-09", layer::examples, level::must, needs::nothing,
           "A parent that is enqueued after its child is nudged all the same.", parent_checks::parent_put_later},
    clause{"PARENT-10", layer::examples, level::must, needs::nothing,
           "An entry that is its own parent ends like any other entry.", parent_checks::own_parent},
    clause{"PARENT-11", layer::examples, level::must, needs::nothing,
           "Only the parent is nudged, not the parent's parent or another child.", parent_checks::only_the_parent},
    clause{"PARENT-12", layer::examples, level::must, needs::nothing,
           "Every child that ends nudges the parent, not only the first or the last.",
           parent_checks::every_child_wakes},
    clause{"PARENT-13", layer::examples, level::must, needs::nothing,
           "The parent is nudged in the transaction that ends its child; a rollback undoes both.",
           parent_checks::in_the_same_transaction},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/purge.hpp
// Purge: removes terminal entries that ended before a time, oldest first, and none that a live entry needs.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace purge_checks {

using namespace enqueue_checks;

[[nodiscard]] inline purge_request before(time_point when, std::size_t limit = 1000) {
    return {.queue = "q", .before = when, .limit = limit};
}

[[nodiscard]] inline list_of left(const any_store& store) { return numbers(store.list(query::all("q"))); }

/// Entries 1, 2 and 3 are generations of one entry; the last ended at(30).
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
    t.expect(!store.find(id_of(1)) && !store.find(id_of(2)), "a purged entry is not found");
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
    const auto seen = snapshot_of(store);
    t.equal(purge(store, before(at(1'000'000))), 0, "purged of what is live");
    unchanged(store, seen, "live entries are not purged, however old");
}

inline void boundary(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(-1));
    put_dead(store, draft_of(2), at(0));
    put(store, draft_of(3, {.result = ""}), at(-1));
    put(store, draft_of(4, {.result = ""}), at(0));
    t.equal(purge(store, before(at(0))), 2, "purged of what ended one microsecond before");
    t.equal(left(store), list_of{2, 4}, "left: what ended exactly at `before`");
    t.equal(purge(store, before(at(1))), 2, "purged one microsecond later");
}

inline void goes_by_the_end(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(-900)}), at(-900));
    cancel(store, id_of(1), at(0));
    put(store, draft_of(2, {.due_at = at(900)}), at(900));
    cancel(store, id_of(2), at(-1));
    t.equal(purge(store, before(at(0))), 1, "purged");
    t.equal(left(store), list_of{1}, "left: what ended later, although it was created and due earlier");
}

inline void oldest_first(trial& t) {
    auto store = t.open();
    const std::array ended{30, 10, 20, 10, 0};
    for (std::uint64_t n = 1; n <= ended.size(); ++n) {
        put_dead(store, draft_of(n), at(ended[n - 1]));
    }
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{1, 2, 3, 4}, "left after the purge of the entry that ended first");
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
    const auto seen = snapshot_of(store);
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
    t.expect(store.find(id_of(2)).has_value(), "the entry of the other queue is still stored");
    t.equal(purge(store, {.queue = "unused", .before = at(1)}), 0, "purged of an unused queue");
}

inline void only_one_state(trial& t) {
    for (const auto s : {state::succeeded, state::dead}) {
        auto store = t.open(t.fresh_location());
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
    t.equal(left(store), list_of{1, 2}, "left: the members of that group");
    cancel(store, id_of(3));
    t.equal(purge(store, before(at(1))), 2, "purged when the group has no live member");
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
    t.equal(purge(store, before(at(1))), 2, "purged: entries with a live parent, and one that is its own parent");
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
    t.equal(get(store, 2).predecessor, id_of(1), "the predecessor of an entry whose predecessor is purged");
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
            "purged of the dead: the predecessor of a succeeded entry is kept");
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::succeeded}), 2,
            "purged: the succeeded entry and its dead predecessor");
}

inline void needed_do_not_use_the_limit(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(0));
    put(store, draft_of(2, {.queue = "r", .parent = id_of(1)}), at(0));
    put_dead(store, draft_of(3), at(10));
    t.equal(purge(store, before(at(20), 1)), 1, "purged with limit 1 when the oldest is still needed");
    t.equal(left(store), list_of{1}, "left: the entry that a live entry needs");
}

inline void id_that_comes_again(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    t.equal(purge(store, before(at(100), 2)), 2, "purged of the generations");
    t.equal(put(store, draft_of(2), at(40)), inserted(2), "a new entry with the id of the purged predecessor");
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{3}, "the generations of the key");
    t.equal(purge(store, before(at(100))), 1, "purged: the new entry is not a predecessor");
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
    t.equal(purge(store, before(at(1), many - 1)), many - 1, "purged with a limit one below the number of entries");
    t.equal(left(store), list_of{many}, "left is the newest");
}

} // namespace purge_checks

inline constexpr std::array purges{
    clause{"PURGE-01", layer::examples, level::must, needs::nothing,
           "Purge removes succeeded and dead entries from all reads and returns their number.",
           purge_checks::removes_and_counts},
    clause{"PURGE-02", layer::examples, level::must, needs::nothing,
           "Purge never removes a live entry, however old, not even a claimed one whose lease is over.",
           purge_checks::never_live},
    clause{"PURGE-03", layer::examples, level::must, needs::nothing,
           "Purge removes what ended before `before`, not what ended exactly at it.", purge_checks::boundary},
    clause{"PURGE-04", layer::examples, level::must, needs::nothing,
           "Purge depends on when an entry ended, not on when it was created or due.", purge_checks::goes_by_the_end},
    clause{"PURGE-05", layer::examples, level::must, needs::nothing,
           "Purge removes the oldest entries first: by end, then by sequence.", purge_checks::oldest_first},
    clause{"PURGE-06", layer::examples, level::must, needs::nothing,
           "Purge removes at most `limit` entries; 0 removes none.", purge_checks::limit_is_exact},
    clause{"PURGE-07", layer::examples, level::must, needs::nothing, "Purge removes only entries of its queue.",
           purge_checks::own_queue},
    clause{"PURGE-08", layer::examples, level::must, needs::nothing,
           "Purge with a state removes only entries that ended in that state.", purge_checks::only_one_state},
    clause{"PURGE-09", layer::examples, level::may, needs::groups,
           "Purge keeps the members of a group that has a live member, in any queue.",
           purge_checks::kept_for_the_group},
    clause{"PURGE-10", layer::examples, level::must, needs::nothing,
           "Purge keeps an entry that has a live child, in any queue.", purge_checks::kept_for_the_child},
    clause{"PURGE-11", layer::examples, level::must, needs::nothing,
           "A live parent does not keep its children from being purged.", purge_checks::not_kept_for_the_parent},
    clause{"PURGE-12", layer::examples, level::may, needs::lanes,
           "Live entries of a lane do not keep other entries of the lane from being purged.",
           purge_checks::not_kept_for_the_lane},
    clause{
        "PURGE-13", layer::examples, level::must, needs::nothing,
        "Purge keeps a dead predecessor while its successor is live, and removes it only together with the successor.",
        purge_checks::kept_for_the_successor},
    clause{"PURGE-14", layer::examples, level::must, needs::nothing,
           "If the limit cuts through generations, the oldest are removed first.",
           purge_checks::eldest_generation_first},
    clause{"PURGE-15", layer::examples, level::must, needs::nothing,
           "If a live entry needs one generation, all generations are kept.",
           purge_checks::needed_generations_stay_together},
    clause{"PURGE-16", layer::examples, level::must, needs::nothing,
           "A state in the request is compared with that of the newest generation.", purge_checks::state_of_the_newest},
    clause{"PURGE-17", layer::examples, level::must, needs::nothing, "Entries that are kept do not use up the limit.",
           purge_checks::needed_do_not_use_the_limit},
    clause{"PURGE-18", layer::examples, level::must, needs::nothing,
           "A new entry with the id of a purged predecessor is not that predecessor.",
           purge_checks::id_that_comes_again},
    clause{"PURGE-19", layer::examples, level::must, needs::nothing,
           "Purge removes as many entries as its limit allows; the store has no lower limit of its own.",
           purge_checks::no_smaller_limit},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/reads_filters.hpp
// Reads: filters and pages of lists, counts and next_due.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace reads_checks {

/// Every path, with entries of a furnished store on it.
[[nodiscard]] inline std::vector<query> paths(const capabilities& can) {
    std::vector<query> out{query::all("q"),        query::live("q"),       query::dead("q"), query::all("r"),
                           query::keyed("q", "k"), query::keyed("q", "l"), query::live("r"), query::children(id_of(1))};
    if (can.groups) {
        out.push_back(query::members("g"));
    }
    return out;
}

inline void filters_by_state(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const auto s : all_states) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.state != s; });
            q.state = s;
            t.equal(store.list(q), expected, "the entries on a path that are " + show(s));
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
            t.equal(store.list(q), expected, "the entries on a path with exactly the topic " + show(topic));
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
        t.equal(store.list(q), std::vector<entry>{}, "after the greatest sequence");
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
    t.equal(store.list(q).size(), 100, "listed with the default limit of a query");
    q.limit = t.can().limits.batch_max;
    t.equal(store.list(q).size(), 1100, "listed with the largest limit");
}

/// All pages of this size together, up to the first empty one.
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
            t.equal(e.payload, "", "the payload when it is not requested");
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
    t.equal(store.counts("unused"), state_counts{}, "the counts of an unused queue");
}

inline void due_smallest(trial& t) {
    auto store = t.open();
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due of an unused queue");
    put(store, draft_of(1, {.due_at = at(50)}));
    t.equal(store.next_due("q"), at(50), "next_due with one entry");
    put(store, draft_of(2, {.due_at = at(60)}));
    t.equal(store.next_due("q"), at(50), "next_due with an entry due later");
    put(store, draft_of(3, {.due_at = at(-9)}));
    t.equal(store.next_due("q"), at(-9), "next_due with an entry due in the past");
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
    t.equal(store.next_due("q"), at(44), "next_due with an entry due before the lease ends");
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
    t.equal(store.next_due("q"), at(50), "next_due ignores blocked entries");
    t.equal(store.counts("q")[state::pending], 2, "blocked entries are counted");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2}, "blocked entries are listed");
    cancel(store, id_of(1));
    t.equal(store.next_due("q"), at(5), "next_due when the entry is not blocked any more");
}

} // namespace reads_checks

inline constexpr std::array filtered_reads{
    clause{"READ-10", layer::examples, level::must, needs::nothing,
           "The filter `state` restricts every path to that state.", reads_checks::filters_by_state},
    clause{"READ-11", layer::examples, level::must, needs::nothing,
           "The filter `topic` restricts every path to exactly that topic; it is not a pattern.",
           reads_checks::filters_by_topic},
    clause{"READ-12", layer::examples, level::must, needs::nothing,
           "Filters, `after` and `limit` combine: the limit counts only entries that pass the filters.",
           reads_checks::filters_together},
    clause{"READ-13", layer::examples, level::must, needs::nothing,
           "`after` restricts every path to greater sequences.", reads_checks::after_is_exclusive},
    clause{"READ-14", layer::examples, level::must, needs::nothing,
           "`limit` restricts every path to its first entries; 0 returns none, and the store has no lower limit of its "
           "own.",
           reads_checks::limit_is_exact},
    clause{"READ-15", layer::examples, level::must, needs::nothing,
           "Pages of any size together are the whole list, without gaps or repetitions.", reads_checks::pages},
    clause{"READ-16", layer::examples, level::must, needs::nothing,
           "list returns payloads only on request, and all other fields always.", reads_checks::payloads_on_request},
    clause{"READ-17", layer::examples, level::must, needs::nothing,
           "counts returns every state of one queue, with zero for states without entries.",
           reads_checks::counts_states},
    clause{"READ-18", layer::examples, level::must, needs::nothing,
           "next_due is the earliest due_at of one queue, in the past too, and none if the queue is empty.",
           reads_checks::due_smallest},
    clause{"READ-19", layer::examples, level::must, needs::nothing,
           "For next_due, a claimed entry counts with its lease_until.", reads_checks::due_by_lease},
    clause{"READ-20", layer::examples, level::must, needs::nothing, "Terminal entries do not affect next_due.",
           reads_checks::due_not_terminal},
    clause{"READ-21", layer::examples, level::may, needs::lanes,
           "An entry that is blocked in its lane is counted and listed, but does not affect next_due.",
           reads_checks::due_not_blocked},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/requeue.hpp
// Requeue: a dead entry gets at most one successor, which is an entry of its own.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace requeue_checks {

using namespace enqueue_checks;

/// A draft with a value in every field that a successor might copy.
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

/// Stores such an entry, which dies after two failures with more progress than its draft had.
inline void put_buried(any_store& store, const capabilities& can) {
    put(store, rich(1, can));
    settle(store, take_one(store, at(0)), retry{"once", at(0)});
    settle(store, take_one(store, at(0)), advance{"second step", at(0)});
    settle(store, take_one(store, at(0)), bury{"twice", "reply"});
}

/// The successor that this draft must give.
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
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)}), at(5)), duplicate(2), "a second successor");
    unchanged(store, before, "a second successor writes nothing");
    cancel(store, id_of(2));
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), duplicate(2),
            "a second successor when the first is dead");
}

inline void refused_unless_dead(trial& t) {
    for (const auto s : {state::pending, state::retrying, state::claimed, state::succeeded}) {
        auto store = t.open(t.fresh_location());
        put_as(store, draft_of(1, {.key = "k"}), s);
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(2, {.predecessor = id_of(1)}), at(5)), refused,
                "a successor of an entry that is " + show(s));
        unchanged(store, before, "a refused successor writes nothing");
    }
}

inline void refused_if_absent(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(2, {.queue = "r", .predecessor = id_of(1)})), refused, "a successor in another queue");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(9)})), refused, "a successor of an absent entry");
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
    const auto before = snapshot_of(store);
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
    t.equal(tx.enqueue(drafts, at(0)), receipts{inserted(2)},
            "the successor of an entry that died in this transaction");
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
    const auto before = snapshot_of(store);
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
    t.equal(store.next_due("q"), at(50), "next_due while the successor is behind the head of its lane");
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
           "The successor of a dead entry takes over its key, group and lane, has the next generation, a new sequence "
           "and no attempts, and is due now; its other fields come from its draft.",
           requeue_checks::takes_over},
    clause{"REQUEUE-02", layer::examples, level::must, needs::nothing,
           "A dead entry does not change when it gets a successor, nor when the successor ends.",
           requeue_checks::dead_unchanged},
    clause{
        "REQUEUE-03", layer::examples, level::must, needs::nothing,
        "A dead entry has at most one successor; a second draft is a duplicate of the first successor, live or dead.",
        requeue_checks::one_successor},
    clause{"REQUEUE-04", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not dead.", requeue_checks::refused_unless_dead},
    clause{"REQUEUE-05", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not stored or belongs to another queue.",
           requeue_checks::refused_if_absent},
    clause{"REQUEUE-06", layer::examples, level::must, needs::nothing,
           "A refused draft affects neither the other drafts of its batch nor the transaction.",
           requeue_checks::refusal_stops_nothing},
    clause{"REQUEUE-07", layer::examples, level::must, needs::nothing,
           "Every successor increases the generation by one, and all generations share the key.",
           requeue_checks::generations_count},
    clause{"REQUEUE-08", layer::examples, level::must, needs::nothing,
           "A successor whose id is stored is a duplicate of that entry; its predecessor stays without a successor.",
           requeue_checks::stored_id_comes_first},
    clause{"REQUEUE-09", layer::examples, level::must, needs::nothing,
           "An entry can die and be replaced in one transaction.", requeue_checks::dies_and_is_replaced_at_once},
    clause{"REQUEUE-10", layer::examples, level::must, needs::nothing,
           "Requeue creates a successor with the dead entry's content, but without its progress and expiry.",
           requeue_checks::requeue_starts_afresh},
    clause{"REQUEUE-11", layer::examples, level::must, needs::nothing,
           "Resume creates a successor that continues from the dead entry's last checkpoint.",
           requeue_checks::resume_goes_on},
    clause{"REQUEUE-12", layer::examples, level::must, needs::nothing,
           "Requeue and resume refuse an entry that has a parent.", requeue_checks::parented_is_refused},
    clause{"REQUEUE-13", layer::examples, level::may, needs::lanes,
           "A successor joins the end of its lane, by its new sequence.", requeue_checks::behind_in_its_lane},
    clause{"REQUEUE-14", layer::examples, level::must, needs::nothing,
           "A successor starts with lapses 0, whatever the dead entry had.", requeue_checks::lapses_end_with_the_dead},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/settle.hpp
// Settle: how each outcome changes every field of the entry.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace settle_checks {

/// Entry 1, with values in all fields that a settle might change by mistake: it has failed once, was due at 20 and is
/// claimed for the second time, at 30.
[[nodiscard]] inline entry second_claim(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .expires_at = at(500), .progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"first", at(20)}, at(10));
    std::ignore = take_one(store, at(30));
    return get(store, 1);
}

/// Settles at 40, which must be applied, and compares the whole entry with `expected`, whose claim ends at 40.
inline void settle_at_40(any_store& store, const outcome& o, entry expected) {
    expected.lease_until.reset();
    expected.updated_at = at(40);
    trial::equal(settle(store, ticket_of(expected), o, at(40)), settlement{verdict::applied}, "the settle");
    trial::equal(get(store, 1), expected, "the entry after the settle");
}

/// Requires that entry 1 can be claimed from `due` on.
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
        auto store = t.open(t.fresh_location());
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
        auto store = t.open(t.fresh_location());
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
        auto store = t.open(t.fresh_location());
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
    for (std::uint32_t n = 1; n <= 300; ++n) { // more than a byte holds
        std::ignore = settle(store, take_one(store, at(n)), retry{"e", at(n)}, at(n));
    }
    const auto e = get(store, 1);
    t.equal(std::vector<std::uint64_t>{e.attempts, e.failures, e.epoch}, std::vector<std::uint64_t>{300, 300, 300},
            "attempts, failures and epoch after 300 failures");
}

} // namespace settle_checks

inline constexpr std::array settling{
    clause{"SETTLE-01", layer::examples, level::must, needs::nothing,
           "succeed sets the state to succeeded and stores the result; beside these only lapses, lease_until and "
           "updated_at change, so last_error, failures and due_at stay.",
           settle_checks::succeed_fields},
    clause{"SETTLE-02", layer::examples, level::must, needs::nothing,
           "retry sets the state to retrying, increments failures, and stores the given error and due_at; attempts, "
           "epoch and progress stay.",
           settle_checks::retry_fields},
    clause{"SETTLE-03", layer::examples, level::must, needs::nothing,
           "retry makes the entry due exactly at the given time, in the past, present or future.",
           settle_checks::retry_at_any_time},
    clause{"SETTLE-04", layer::examples, level::must, needs::nothing,
           "bury sets the state to dead, increments failures, and stores the given error and result; attempts, epoch, "
           "due_at and progress stay.",
           settle_checks::bury_fields},
    clause{"SETTLE-05", layer::examples, level::must, needs::nothing,
           "An empty result is a result; only a bury without a result stores none.", settle_checks::empty_is_a_result},
    clause{"SETTLE-06", layer::examples, level::must, needs::nothing, "Results and progress are stored byte for byte.",
           settle_checks::bytes_are_kept},
    clause{
        "SETTLE-07", layer::examples, level::must, needs::nothing,
        "release decrements attempts; if attempts remain, the state is retrying; due_at, failures and last_error stay.",
        settle_checks::release_fields},
    clause{"SETTLE-08", layer::examples, level::must, needs::nothing,
           "release of the first attempt makes the entry pending again, with its due_at unchanged.",
           settle_checks::release_of_first_attempt},
    clause{"SETTLE-09", layer::examples, level::must, needs::nothing,
           "release with a time makes the entry due exactly then, earlier or later than before.",
           settle_checks::release_at_another_time},
    clause{"SETTLE-10", layer::examples, level::must, needs::nothing,
           "After release the state depends on attempts, not on failures.", settle_checks::release_goes_by_attempts},
    clause{"SETTLE-11", layer::examples, level::must, needs::nothing,
           "release decrements attempts, but never the epoch.", settle_checks::release_costs_nothing},
    clause{"SETTLE-12", layer::examples, level::must, needs::nothing,
           "advance sets the state to pending and attempts to 0, and stores the given progress and due_at; failures, "
           "last_error and epoch stay.",
           settle_checks::advance_fields},
    clause{"SETTLE-13", layer::examples, level::must, needs::nothing,
           "advance without a time makes the entry due now; an empty progress replaces the earlier one.",
           settle_checks::advance_now},
    clause{"SETTLE-14", layer::examples, level::must, needs::nothing,
           "attempts, failures and epoch count every claim and every failure, however many there are.",
           settle_checks::counters},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/settle_tickets.hpp
// Settle: which tickets are valid, how a batch is answered, and how outcomes change lapses.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace settle_checks {

inline void by_ticket_not_by_time(trial& t) {
    for (const auto now : {at(-1), at(99), at(100), at(101), at(1'000'000'000)}) { // the lease ends at 100
        auto store = t.open(t.fresh_location());
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
    const auto before = snapshot_of(store);
    t.equal(settle(store, first, succeed{"old"}, at(110)), settlement{verdict::stale}, "the settle of the first claim");
    unchanged(store, before, "a claim that was taken over settles nothing");
    t.equal(settle(store, second, succeed{"new"}, at(110)), settlement{verdict::applied}, "that of the second");
    t.equal(get(store, 1).result, std::optional<std::string>{"new"}, "the result");
}

inline void ticket_is_used_up(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(0)}, bury{"e", "r"}, release{}, advance{"p", {}}};
    for (const auto& first : outcomes) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        std::ignore = settle(store, ticket, first, at(1));
        const auto before = snapshot_of(store);
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
    t.equal(get(store, 11).state, state::pending, "the state of the released entry");
}

inline void twice_in_a_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const std::array settles{vouch::settle{ticket, retry{"e", at(5)}}, vouch::settle{ticket, succeed{"r"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers, std::vector<settlement>{{verdict::applied}, {verdict::repeated}}, "the answers");
    t.equal(get(store, 1).state, state::retrying, "the state is that of the first settle");
}

inline void invalid_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, ticket, succeed{}, at(0)), settlement{verdict::applied},
                "the settle that is rolled back");
    }
    unchanged(store, before, "a settle in a transaction that is rolled back has no effect");
    t.equal(settle(store, ticket, succeed{}, at(0)), settlement{verdict::applied}, "the settle that is committed");
}

inline void outcomes_end_the_row(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", {}}}, outcome{retry{"e", at(210)}},
                             outcome{advance{"p", at(210)}}}) {
        auto store = t.open(t.fresh_location());
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

inline constexpr std::array settling_by_ticket{
    clause{"SETTLE-15", layer::examples, level::must, needs::nothing,
           "A settle depends on its ticket, never on time: an expired lease that was not taken over still settles.",
           settle_checks::by_ticket_not_by_time},
    clause{"SETTLE-16", layer::examples, level::must, needs::nothing,
           "After a takeover the earlier ticket is stale, even if the worker has the same name.",
           settle_checks::taken_over},
    clause{"SETTLE-17", layer::examples, level::must, needs::nothing,
           "A ticket settles once: any further settle under it is repeated and changes nothing.",
           settle_checks::ticket_is_used_up},
    clause{"SETTLE-18", layer::examples, level::must, needs::nothing, "A settle changes only the entry of its ticket.",
           settle_checks::by_id},
    clause{"SETTLE-19", layer::examples, level::must, needs::nothing,
           "A batch of settles returns one settlement per item, in order; a settle that is not applied does not stop "
           "the others.",
           settle_checks::batch},
    clause{"SETTLE-20", layer::examples, level::must, needs::nothing,
           "If a batch has two settles under one ticket, the first is applied and the second is repeated.",
           settle_checks::twice_in_a_batch},
    clause{"SETTLE-21", layer::examples, level::must, needs::nothing,
           "A settle whose error, result or progress is out of bounds throws invalid_argument; nothing of its batch is "
           "written.",
           settle_checks::invalid_batch},
    clause{"SETTLE-22", layer::examples, level::must, needs::nothing,
           "A settle in a transaction that is rolled back has no effect, and its ticket stays valid.",
           settle_checks::rolled_back},
    clause{"SETTLE-23", layer::examples, level::must, needs::nothing,
           "Settles in a batch that differ only in their ids are judged each by its own ticket.",
           settle_checks::alike_in_a_batch},
    clause{"SETTLE-24", layer::examples, level::must, needs::nothing,
           "succeed, retry, bury and advance set lapses to 0, so that the next lapse is a first one again.",
           settle_checks::outcomes_end_the_row},
    clause{"SETTLE-25", layer::examples, level::must, needs::nothing,
           "release keeps lapses and decrements attempts, after a lapse too.", settle_checks::release_keeps_lapses},
    clause{"SETTLE-26", layer::examples, level::must, needs::nothing,
           "Each entry that succeeds in a batch gets its own result.", settle_checks::own_results},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/expected_entries.hpp
// What the store must contain after the calls of a simulation: entries, lanes, keys and groups. It is computed from the
// arguments of the calls, not from their answers.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class expected_entries {
  public:
    /// An entry as it must be.
    struct known {
        vouch::entry entry{};
        vouch::id successor{};
        bool frozen = false; ///< terminal and compared since: `entry` equals the stored entry in all fields
    };

    // Reading.

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
    /// Whether a live entry keeps this one from being purged.
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

    // Changing, after the store has answered that it changed.

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
            unfinished_[e.group] -= 1; // its successor counts in its location
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

    /// Returns whether this completes the entry's group.
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

    /// Nudges the entry and returns the verdict.
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

    /// The entries that have changed since the last call.
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
    std::map<std::pair<std::string, std::string>, std::vector<id>> lanes_{}; ///< live entries, in sequence
    std::map<std::pair<std::string, std::string>, id> newest_{};             ///< by queue and key
    std::map<std::string, std::int64_t> unfinished_{};                       ///< by group
    std::set<id> touched_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/monitor.hpp
// Checks the committed calls of a simulation against what must hold at any time. A violation throws a `failure`:
//  - A ticket is given out once, and only the current ticket settles.
//  - Terminal entries do not change, and only a purge removes them.
//  - Lanes run in order. A group completes once each time its number of unfinished members becomes zero.
//  - Emissions are stored exactly with the settle of their entry.
//  - A handler is called once per ticket and at most attempts_max times.
//  - An entry dies of lapses only if one of them was a claim of this entry alone.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulation_monitor {
  public:
    using known = expected_entries::known;

    /// The topic of the entry that the completion of a group enqueues.
    static constexpr std::string_view completion_topic = "group.done";

    // Events.

    /// A call of a committed transaction.
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
            trial::equal(c.verdicts[0], expected_.nudge(c.id, c.now), "nudge " + show(c.id));
            break;
        case call::operation::cancel: cancelled(c); break;
        case call::operation::purge: purge_ = c; break;
        case call::operation::commit: committed(); break;
        case call::operation::roll_back: break;
        }
    }

    /// A handler was called.
    void called(const ticket& t, std::uint32_t attempt, std::uint32_t attempts_max) {
        trial::expect(called_.insert(t).second, "a handler is called once per ticket, not again for " + show(t));
        trial::expect(attempt <= attempts_max, "a handler is called for attempt " + std::to_string(attempt) + " of " +
                                                   show(t.id) + ", which has " + std::to_string(attempts_max));
    }
    /// A handler emitted.
    void emitted(const ticket& by, const id& emission) {
        emitter_[emission] = by;
        emissions_[by].push_back(emission);
    }

    // Comparisons.

    [[nodiscard]] const std::map<id, known>& stored() const noexcept { return expected_.stored(); }
    [[nodiscard]] std::size_t live() const { return expected_.live(); }
    [[nodiscard]] bool is_applied(const ticket& t) const { return applied_.contains(t); }

    /// Compares the entries that the last calls changed with the store.
    void compare(const any_store& store) {
        if (purge_) {
            purged(store, *std::exchange(purge_, std::nullopt));
        }
        for (const auto& touched : expected_.take_touched()) {
            if (auto* const k = expected_.find(touched)) {
                compare(store, *k);
            }
        }
    }

    /// Compares all entries with the store.
    void compare_all(const any_store& store) {
        std::map<std::string, std::size_t> counts;
        for (auto& [i, k] : expected_.stored()) {
            compare(store, k);
            ++counts[k.entry.queue];
        }
        for (const auto& [queue, count] : counts) {
            trial::equal(store.counts(queue).total(), count, "entries of " + queue);
        }
    }

  private:
    /// What the current transaction has done so far.
    struct transaction_effects {
        std::set<id> enqueued{};
        std::set<id> inserted{};
        std::set<ticket> claimed{};   ///< and not settled
        std::set<ticket> succeeded{}; ///< settled with succeed or advance
        std::size_t completions = 0;
        std::size_t marks = 0; ///< entries enqueued for completed groups
    };

    void enqueued(const call& c) {
        for (std::size_t i = 0; i < c.drafts.size(); ++i) {
            const auto& d = c.drafts[i];
            trial::equal(c.receipts[i], expected_.receipt_of(d), "enqueue " + show(d.id));
            transaction_.enqueued.insert(d.id);
            if (c.receipts[i].what == receipt::kind::inserted) {
                expected_.insert(d, c.now);
                transaction_.inserted.insert(d.id);
                transaction_.marks += d.topic == completion_topic && d.predecessor.is_nil() ? 1U : 0U;
            }
        }
    }

    void claimed(const call& c) {
        const auto& r = c.wanted;
        trial::expect(c.claimed.size() <= r.limit, "a claim returns at most its limit");
        for (const auto& got : c.claimed) {
            const auto name = "the claim of " + show(ticket_of(got));
            auto* const k = expected_.find(got.id);
            trial::expect(k != nullptr && k->entry.queue == r.queue, name + " is of an entry in that queue");
            auto& e = k->entry;
            trial::expect(is_live(e.state), name + " is of a live entry");
            trial::equal(got.epoch, e.epoch + 1, name + " gives a new ticket");
            trial::expect(!expected_.is_blocked(e), name + " keeps the order of its lane");
            trial::expect(e.state != state::claimed || *e.lease_until <= r.now,
                          name + " takes no entry whose lease runs until " +
                              show_date(e.lease_until.value_or(time_point{})));
            trial::expect(expected_.is_due(e, r.now), name + " is of an entry that is due");
            if (e.state == state::claimed && alone_.contains(ticket_of(e))) {
                lapsed_alone_.insert(e.id);
            }
            expected_.claim(e, r);
            transaction_.claimed.insert(ticket_of(e));
        }
        for (const auto& [i, k] : expected_.stored()) {
            const bool passed_over = c.claimed.size() < r.limit && k.entry.queue == r.queue &&
                                     (r.only.is_nil() || r.only == i) && expected_.is_due(k.entry, r.now);
            if (passed_over) {
                trial::fail("a claim passes over " + show(i) + ", which is due", {}, show(k.entry));
            }
        }
    }

    void settled(const vouch::settle& s, const settlement& given, time_point now) {
        auto* const k = expected_.find(s.ticket.id);
        trial::equal(given.verdict, expected_.verdict_of(k, s.ticket),
                     "a settle under " + show(s.ticket) +
                         (k == nullptr ? ", whose entry is absent"
                                       : ", whose entry is " + show(k->entry.state) + " at epoch " +
                                             std::to_string(k->entry.epoch)));
        if (given.verdict != verdict::applied) {
            trial::expect(!given.group_completed, "a settle that is not applied completes no group");
            return;
        }
        trial::expect(applied_.insert(s.ticket).second, "a ticket is used once");
        transaction_.claimed.erase(s.ticket);
        ends_row(s);
        if (std::holds_alternative<succeed>(s.outcome) || std::holds_alternative<advance>(s.outcome)) {
            transaction_.succeeded.insert(s.ticket);
        }
        const bool completes = expected_.settle(k->entry, s.outcome, now);
        transaction_.completions += completes ? 1U : 0U;
        trial::equal(given.group_completed, completes,
                     "the settle of " + show(s.ticket) + " completes the group " + show(k->entry.group));
    }

    /// An entry may exhaust its attempts by lapses only if one of them was a claim of this entry alone.
    void ends_row(const vouch::settle& s) {
        const auto* const end = std::get_if<bury>(&s.outcome);
        trial::expect(end == nullptr || end->error != "attempts_exhausted" || lapsed_alone_.contains(s.ticket.id),
                      show(s.ticket.id) + " has exhausted its attempts, so a claim of this entry alone has lapsed");
        if (!std::holds_alternative<release>(s.outcome)) {
            lapsed_alone_.erase(s.ticket.id);
        }
    }

    void extended(const call& c) {
        for (std::size_t i = 0; i < c.tickets.size(); ++i) {
            auto* const k = expected_.find(c.tickets[i].id);
            trial::equal(c.verdicts[i], expected_.verdict_of(k, c.tickets[i]), "extend " + show(c.tickets[i]));
            if (c.verdicts[i] == verdict::applied) {
                expected_.extend(k->entry, c.now, c.lease);
            }
        }
    }

    void cancelled(const call& c) {
        auto* const k = expected_.find(c.id);
        trial::equal(c.verdicts[0], expected_.verdict_of_cancel(k, c.now), "cancel " + show(c.id));
        if (c.verdicts[0] == verdict::applied) {
            expected_.cancel(k->entry, c.now);
        }
    }

    void committed() {
        for (const auto& i : transaction_.inserted) {
            const auto by = emitter_.find(i);
            trial::expect(by == emitter_.end() || transaction_.succeeded.contains(by->second),
                          "the emission " + show(i) + " is stored only with the settle of its entry");
        }
        for (const auto& t : transaction_.succeeded) {
            const auto all = emissions_.find(t);
            for (const auto& i : all == emissions_.end() ? std::vector<id>{} : all->second) {
                trial::expect(transaction_.enqueued.contains(i),
                              "the settle under " + show(t) + " stores its emission " + show(i));
            }
        }
        trial::equal(transaction_.marks, transaction_.completions, "entries enqueued for completed groups");
        if (transaction_.claimed.size() == 1) { // runners settle all they hold before they claim
            alone_.insert(*transaction_.claimed.begin());
        }
    }

    void compare(const any_store& store, known& k) {
        const auto found = store.find(k.entry.id);
        if (!found) {
            trial::fail("an entry that was not purged is stored", "no " + show(k.entry.id), show(k.entry));
        }
        if (!k.frozen) { // until the entry is terminal, other clauses check these fields
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
        for (const auto& [i, k] : expected_.stored()) {
            if (k.entry.queue == c.purge.queue && is_terminal(k.entry.state) && !store.find(i)) {
                gone.push_back(k);
                trial::expect(k.entry.updated_at < c.purge.before, "purge keeps what ended later: " + show(i));
                trial::expect(!expected_.is_needed(k.entry), "purge keeps what a live entry needs: " + show(i));
            }
        }
        for (const auto& k : gone) {
            expected_.remove(k);
        }
        trial::equal(gone.size(), c.purged, "entries that a purge removed");
    }

    expected_entries expected_{};
    std::map<id, ticket> emitter_{};
    std::map<ticket, std::vector<id>> emissions_{};
    std::set<ticket> applied_{};
    std::set<ticket> called_{};
    std::set<ticket> alone_{};    ///< tickets of claims that took one entry
    std::set<id> lapsed_alone_{}; ///< entries with such a claim that has lapsed since their last outcome
    std::optional<call> purge_{}; ///< a purge that has not been compared yet
    transaction_effects transaction_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/context.hpp
// What all parts of a simulation share: the store with its faults and its recording, the true time, the randomness, the
// settings of the runners, and the trace of events.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using simulated_store = faulty<recording<any_store>>;

/// The last events, and all of them on request.
class event_trace {
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

struct simulation_context {
    simulation_context(trial& in, std::uint64_t with)
        : t(in), seed(with), random(with), home(in.fresh_location()), plain(in.open(home)) {}
    simulation_context(const simulation_context&) = delete;
    simulation_context& operator=(const simulation_context&) = delete;

    trial& t;
    std::uint64_t seed;
    random_source random;
    location home;
    any_store plain; ///< without faults and recording, for comparisons
    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    simulation_monitor monitor{};
    event_trace trace{};
    std::optional<failure> broken{}; ///< a failure inside a handler, where it cannot be thrown
    time_point now = start;          ///< the true time; the clocks of runners may be wrong
    bool is_calm = false;            ///< no random faults
    std::uint64_t last_id = 0;

    // The settings of this simulation.
    std::size_t batch_size = 1 + random.below(5);
    duration lease = std::chrono::seconds{30} + seconds(270);
    std::uint32_t attempts_max = 2 + static_cast<std::uint32_t>(random.below(3));
    vouch::backoff backoff =
        random.chance(50) ? vouch::backoff(exponential{}) : vouch::backoff(fixed{std::chrono::seconds{20}, 0.5});
    std::size_t faults_percent = random.one_of<std::size_t>({0, 5, 10, 30});
    std::size_t crashes_permille = random.one_of<std::size_t>({0, 10, 30});

    [[nodiscard]] simulated_store open() const {
        return {recording<any_store>(t.can().shared ? t.open(home) : plain, calls), plan};
    }
    [[nodiscard]] id fresh_id() { return id_of(++last_id); }

    /// A random duration below `most` seconds.
    [[nodiscard]] duration seconds(std::size_t most) {
        return duration{static_cast<duration::rep>(random.below(most * 1'000'000))};
    }
    /// A random error of a clock.
    [[nodiscard]] duration skew() { return seconds(600) - std::chrono::seconds{300}; }

    /// A random entry that `wanted` accepts; null if there is none.
    template <class Wanted>
    [[nodiscard]] const simulation_monitor::known* pick(const Wanted& wanted) {
        std::vector<const simulation_monitor::known*> all;
        for (const auto& [i, k] : monitor.stored()) {
            if (wanted(k.entry)) {
                all.push_back(&k);
            }
        }
        return all.empty() ? nullptr : all[random.below(all.size())];
    }
    /// The id of a random entry; nil if there is none.
    [[nodiscard]] id some_id() {
        const auto* const k = pick([](const entry&) { return true; });
        return k == nullptr ? id{} : k->entry.id;
    }

    void note(const std::string& what) { trace.add(show_date(now) + ' ' + what); }

    /// Runs `work`, which may fail by a random or a planned fault, and then checks the calls that it made.
    template <class Work>
    void attempt(const std::string& who, const Work& work) {
        const bool has_fault = !is_calm && random.chance(faults_percent);
        if (has_fault) {
            arm_random_fault();
        }
        try {
            work();
        } catch (const error& e) {
            if (!plan->has_fired()) {
                throw;
            }
            note(who + " receives " + show(e.kind()) + (e.is_in_doubt() ? ", in doubt" : ""));
        }
        if (has_fault) {
            plan->disarm();
        }
        check_calls();
    }

    /// Runs `part`. Adds the last events to a failure.
    template <class Part>
    void with_trace(const Part& part) {
        try {
            part();
        } catch (failure& f) {
            f.transcript = "simulation " + std::to_string(seed) + ", the last events:\n" + trace.text();
            throw;
        }
    }

  private:
    void arm_random_fault() {
        const bool is_conflict = random.chance(25);
        plan->arm({.call = 1 + random.below(8),
                   .moment = random.chance(50) ? fault_moment::before : fault_moment::after,
                   .persistent = random.chance(20),
                   .kind = is_conflict ? error_kind::conflict : random.one_of({error_kind::io, error_kind::busy}),
                   .in_doubt = !is_conflict && random.chance(30)});
    }

    void check_calls() {
        const auto newest = calls->take();
        for (const auto& c : newest) {
            using kind = call::operation;
            if (c.what != kind::begin && c.what != kind::commit && c.what != kind::roll_back) {
                trace.add(to_string(c) + (c.transaction_status == call::status::committed ? "" : " [rolled back]"));
            }
        }
        for (const auto& c : newest) {
            if (c.transaction_status == call::status::committed) {
                monitor.see(c);
            }
        }
        monitor.compare(plain);
        if (broken) {
            throw failure(*broken);
        }
    }
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/simulated_runner.hpp
// A runner in a simulation: the library's own runner, with a clock that may be wrong. It can be stopped between any two
// phases, and a crash restarts it without its claims.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulated_runner {
  public:
    using handler = std::function<outcome(delivery&)>;

    simulated_runner(simulation_context& on, handler work, std::string name, std::string queue)
        : context_(on), work_(std::move(work)), name_(std::move(name)), queue_(std::move(queue)) {
        restart();
    }
    simulated_runner(const simulated_runner&) = delete;
    simulated_runner& operator=(const simulated_runner&) = delete;

    time_point paused_until{};

    [[nodiscard]] bool is_idle() const noexcept { return waiting_.empty() && done_.empty(); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return waiting_.size() + done_.size(); }
    void set_skew(duration by) noexcept { skew_ = by; }
    void note(const std::string& what) { context_.note("runner " + name_ + ' ' + what); }

    /// Starts a new process, which knows nothing about the claims of the old one.
    void restart() {
        waiting_.clear();
        done_.clear();
        runner_.reset();
        router_.reset();
        outbox_.reset();
        if (!store_ || (context_.t.can().shared && context_.random.chance(10))) {
            store_.reset();
            store_.emplace(context_.open());
        }
        outbox_.emplace(*store_, emitter_options{.clock = clock_, .ids = [this] { return context_.fresh_id(); }});
        router_.emplace(*outbox_).on("#", work_);
        runner_.emplace(*outbox_, *router_,
                        runner_options{.queue = queue_,
                                       .worker = name_,
                                       .batch_size = context_.batch_size,
                                       .lease = context_.lease,
                                       .retry = {.backoff = context_.backoff, .attempts_max = context_.attempts_max}});
        runner_->on_group_complete([this](auto& tx, const std::string&, const entry&) {
            const std::array marks{draft{
                .id = context_.fresh_id(), .queue = "q", .topic = std::string(simulation_monitor::completion_topic)}};
            tx.enqueue(marks, clock_());
        });
    }

    /// Runs one phase: a claim, the call of a handler, or a settle. A phase that a fault stopped is repeated by the next
    /// call.
    void phase() {
        clock_.set(context_.now + skew_);
        context_.attempt("runner " + name_, [&] { step(); });
        trial::expect(waiting_.size() < 2 ||
                          std::all_of(waiting_.begin(), waiting_.end(), [](const auto& e) { return e.lapses == 0; }),
                      "runner " + name_ + " holds an entry with a lapse together with no other entry");
        if (!done_.empty() && std::all_of(done_.begin(), done_.end(), [](const auto& h) { return !!h.result; })) {
            check_landings();
            done_.clear();
        }
    }

    /// Extends the leases of the claims that are not handled yet.
    void extend() {
        std::vector<ticket> mine;
        for (const auto& e : waiting_) {
            mine.push_back(ticket_of(e));
        }
        context_.attempt("runner " + name_, [&] {
            transact(*store_, [&](auto& tx) { std::ignore = tx.extend(mine, context_.now + skew_, context_.lease); });
        });
    }

  private:
    void step() {
        auto& random = context_.random;
        const bool is_calm = context_.is_calm;
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
        } else if (const auto only = context_.some_id(); !only.is_nil()) {
            waiting_ = runner_->claim(only);
        }
    }

    /// A runner must report exactly the settles that took effect. Only a settle in doubt may be reported as lost
    /// although it took effect, because another runner may have claimed the entry since.
    void check_landings() const {
        for (const auto& h : done_) {
            const auto mine = ticket_of(h.entry);
            const bool is_purged = !context_.monitor.stored().contains(mine.id);
            const bool says_landed = h.result->what == vouch::detail::settle_result::kind::applied;
            if (!is_purged && (says_landed || !h.in_doubt)) {
                trial::equal(says_landed, context_.monitor.is_applied(mine),
                             "runner " + name_ + " reports that its settle under " + show(mine) + " took effect");
            }
        }
    }

    simulation_context& context_;
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/workload.hpp
// The work of a simulation: what producers enqueue, and what the handler does with it. All work ends: the number of
// unusual outcomes per entry is limited, and so is the length of a trail of emissions.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class workload {
  public:
    explicit workload(simulation_context& on) : context_(on) {}

    [[nodiscard]] emission next_emission() {
        auto& random = context_.random;
        const auto& can = context_.t.can();
        emission e{.queue = random.chance(60) ? "q" : "r", .topic = "work", .key = name("k", 12, 15)};
        e.group = can.groups ? name("g", 4, 30) : "";
        e.lane = can.lanes ? name("l", 3, 30) : "";
        e.parent = random.chance(15) ? context_.some_id() : id{};
        if (random.chance(20)) {
            e.due_in = context_.seconds(7200);
        }
        return e;
    }

    [[nodiscard]] draft next_draft() {
        auto& random = context_.random;
        const auto e = next_emission();
        draft d{.id = context_.fresh_id(), .queue = e.queue, .topic = e.topic, .key = e.key};
        if (random.chance(4)) {
            d.result = "born done";
            return d;
        }
        d.group = e.group;
        d.lane = e.lane;
        d.parent = e.parent;
        if (e.due_in) {
            d.due_at = context_.now + *e.due_in;
        }
        if (random.chance(5)) {
            d.expires_at = context_.now + context_.seconds(7200);
        }
        d.attempts_max = random.chance(10) ? 1U + static_cast<std::uint32_t>(random.below(3)) : 0U;
        return d;
    }

    /// The handler of all topics.
    [[nodiscard]] outcome operator()(delivery& d) {
        try {
            const auto allowed = d.entry().attempts_max == 0 ? context_.attempts_max : d.entry().attempts_max;
            context_.monitor.called(ticket_of(d.entry()), d.attempt(), allowed);
        } catch (const failure& f) {
            context_.broken = f; // a runner treats every exception as the handler's
            throw;
        }
        constexpr std::size_t outcomes_max = 6;
        if (d.topic() == simulation_monitor::completion_topic || ++outcomes_[d.id()] > outcomes_max) {
            return succeed{};
        }
        return random_outcome(d);
    }

  private:
    [[nodiscard]] outcome random_outcome(delivery& d) {
        const auto later = [&](std::size_t seconds) { return d.now() + context_.seconds(seconds); };
        switch (context_.random.below(20)) {
        case 0: throw vouch::failure("failed");
        case 1: emit(d); throw vouch::failure("failed after an emission");
        case 2: throw vouch::reject();
        case 3: return retry{"later", later(600)};
        case 4: return release{};
        case 5: return release{later(600)};
        case 6: return advance{std::to_string(outcomes_[d.id()]), {}};
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

    /// Succeeds after the lease is over.
    [[nodiscard]] outcome slow() {
        if (!context_.is_calm) {
            context_.now += context_.lease + context_.seconds(60);
        }
        return succeed{"slow"};
    }

    void emit(delivery& d) {
        constexpr std::size_t trail_max = 3;
        if (d.trail().size() < trail_max) {
            context_.monitor.emitted(ticket_of(d.entry()), d.emit(next_emission()));
        }
    }

    [[nodiscard]] std::string name(std::string_view kind, std::size_t many, std::size_t percent) {
        const bool has_one = context_.random.chance(percent);
        return has_one ? std::string(kind) + std::to_string(context_.random.below(many)) : std::string();
    }

    simulation_context& context_;
    std::map<id, std::size_t> outcomes_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/simulation/simulation.hpp
// A simulation of several real runners on one store, in one thread and in virtual time. Each step is a random event: one
// phase of one runner, a crash between two phases, a pause longer than the lease, a clock that jumps, a fault of the
// store, a call of a producer or an operator, or time that passes. When the faults stop, all work must end.
//
// The same seed gives the same simulation.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulation {
  public:
    simulation(trial& t, std::uint64_t seed) : context_(t, seed) {
        auto& random = context_.random;
        const auto runners = 3 + random.below(3);
        for (std::size_t i = 0; i < runners; ++i) {
            const bool other_queue = i == 1 || (i > 1 && random.chance(30));
            runners_.push_back(std::make_unique<simulated_runner>(
                context_, [this](delivery& d) { return workload_(d); }, std::string(1, static_cast<char>('a' + i)),
                other_queue ? "r" : "q"));
        }
    }
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    ~simulation() {
        const auto length = std::chrono::duration_cast<std::chrono::seconds>(context_.now - start).count();
        context_.t.tally().simulated_seconds += static_cast<std::uint64_t>(length);
        context_.t.tally().faults += context_.plan->faults();
    }

    /// Runs random events for this long.
    void run_with_faults(duration length) {
        const auto until = context_.now + length;
        context_.with_trace([&] {
            for (std::size_t steps = 0; context_.now < until; ++steps) {
                random_event();
                if (steps % 64 == 0) {
                    context_.monitor.compare_all(context_.plain);
                }
            }
        });
    }

    /// Stops all faults, corrects all clocks and restarts the runners.
    void heal() {
        context_.plan->disarm();
        context_.is_calm = true;
        context_.note("faults stop, runners restart");
        for (auto& r : runners_) {
            r->set_skew({});
            r->restart();
        }
        context_.with_trace([&] { enqueue_pending(); });
    }

    /// Runs passes of every runner, and lets time jump to the next due entry, until no live entry is left.
    void drain() {
        context_.with_trace([&] {
            const auto most = 200 + 100 * context_.monitor.live();
            for (std::size_t n = 0;; ++n) {
                trial::expect(n < most, "all work ends within " + std::to_string(most) + " passes");
                if (!pass_of_all() && !wait_for_due()) {
                    break;
                }
            }
            context_.monitor.compare_all(context_.plain);
            for (const std::string queue : {"q", "r"}) {
                trial::equal(context_.plain.counts(queue).live(), 0U,
                             "live entries of " + queue + " that no runner can claim");
            }
            trial::equal(context_.monitor.live(), 0U, "live entries");
        });
    }

    /// Runs `count` passes of every runner without random events.
    void passes(std::size_t count) {
        context_.with_trace([&] {
            for (std::size_t n = 0; n < count; ++n) {
                if (!pass_of_all()) {
                    context_.now += context_.lease;
                }
            }
        });
    }

    void produce(std::size_t count) {
        for (std::size_t n = 0; n < count; ++n) {
            pending_drafts_.push_back(workload_.next_draft());
        }
        context_.with_trace([&] { enqueue_pending(); });
    }

    /// No random faults from now on.
    void calm() noexcept { context_.is_calm = true; }
    void keep_trace() noexcept { context_.trace.keeps_all = true; }
    [[nodiscard]] const std::vector<std::string>& trace() const noexcept { return context_.trace.all; }
    [[nodiscard]] fault_plan& plan() noexcept { return *context_.plan; }

  private:
    void random_event() {
        auto& random = context_.random;
        auto& r = *runners_[random.below(runners_.size())];
        const auto what = random.below(1000);
        constexpr std::size_t enough = 60; // live entries, so that the runners keep up
        if (what < 80) {
            if (context_.monitor.live() < enough) {
                produce(1 + random.below(3));
            }
        } else if (what < 140) {
            call_as_operator();
        } else if (what < 260) {
            advance_time();
        } else if (what < 260 + context_.crashes_permille) {
            r.note("crashes with " + std::to_string(r.in_flight()) + " in flight");
            r.restart();
        } else if (what < 310) {
            r.paused_until = context_.now + context_.lease + context_.seconds(600);
            r.note("sleeps until " + show_date(r.paused_until) + " with " + std::to_string(r.in_flight()) +
                   " in flight");
        } else if (what < 320) {
            const auto skew = context_.skew();
            r.set_skew(skew);
            r.note("has a clock that is wrong by " + std::to_string(skew / std::chrono::seconds{1}) + " s");
        } else if (what < 340) {
            r.extend();
        } else if (r.paused_until <= context_.now) {
            r.phase();
        }
    }

    /// Lets time jump to the next due entry, or by a random duration.
    void advance_time() {
        auto& random = context_.random;
        const auto due = context_.plain.next_due(random.chance(50) ? "q" : "r");
        if (due && *due > context_.now && *due < context_.now + std::chrono::hours{3} && random.chance(60)) {
            context_.now = *due;
        } else {
            context_.now += context_.seconds(random.chance(20) ? 3600 : 300);
        }
    }

    /// Enqueues the pending drafts. If that fails, the same drafts are enqueued again later.
    void enqueue_pending() {
        if (!pending_drafts_.empty()) {
            context_.attempt("the producer", [&] {
                enqueue(store_, pending_drafts_, context_.now);
                pending_drafts_.clear();
            });
        }
    }

    void call_as_operator() {
        auto& random = context_.random;
        const auto now = context_.now + context_.skew();
        const auto target = context_.some_id();
        const auto* const dead = context_.pick([](const entry& e) { return e.state == state::dead; });
        const auto what = random.below(10);
        const purge_request old{.queue = random.chance(50) ? "q" : "r",
                                .before = context_.now - context_.seconds(40'000),
                                .limit = 1 + random.below(60)};
        context_.attempt("the operator", [&] {
            transact(store_, [&](auto& tx) {
                if (what < 4) {
                    std::ignore = tx.nudge(target, now);
                } else if (what < 6) {
                    std::ignore = tx.cancel(target, "cancelled", now);
                } else if (what < 8) {
                    std::ignore = requeue(tx, {.dead = dead == nullptr ? target : dead->entry.id,
                                               .successor = context_.fresh_id(),
                                               .now = now});
                } else {
                    tx.purge(old);
                }
            });
        });
    }

    /// Returns whether any runner had work.
    bool pass_of_all() {
        bool any = false;
        for (auto& r : runners_) {
            constexpr std::size_t patience = 20;       // phases with a store that keeps failing
            constexpr std::size_t phases_max = 10'000; // of one pass
            for (std::size_t n = 0; n == 0 || !r->is_idle(); ++n) {
                trial::expect(n < phases_max, "a runner finishes the work that is due");
                r->phase();
                any = any || !r->is_idle();
                if (n > patience && context_.plan->has_fired()) {
                    r->restart();
                }
            }
        }
        return any;
    }

    /// Lets time jump to the next due entry. Returns whether there is one.
    bool wait_for_due() {
        std::optional<time_point> next;
        for (const std::string queue : {"q", "r"}) {
            if (const auto due = context_.plain.next_due(queue); due && (!next || *due < *next)) {
                next = due;
            }
        }
        if (next) {
            trial::expect(*next > context_.now, "the entry that is due since " + show_date(*next) + " can be claimed");
            context_.now = *next;
        }
        return next.has_value();
    }

    simulation_context context_;
    workload workload_{context_};
    simulated_store store_ = context_.open();
    std::vector<std::unique_ptr<simulated_runner>> runners_{};
    std::vector<draft> pending_drafts_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/simulation.hpp
// Simulation: several runners work for days, with crashes, pauses, wrong clocks and faults. The contract must hold all
// the time, and all work must end after the faults stop.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace simulation_checks {

/// A simulation is short, so that many different ones fit into the budget.
inline constexpr std::size_t days_per_simulation = 2;

template <class Run>
void simulate(trial& t, std::size_t days, const Run& run) {
    for (std::size_t left = std::max<std::size_t>(days, 1); left > 0;) {
        const auto now = std::min(left, days_per_simulation);
        run(t.random().roll(), std::chrono::hours{24} * static_cast<int>(now));
        left -= now;
    }
}

inline void safety(trial& t) {
    simulate(t, t.budget().simulated_days / 2, [&](std::uint64_t seed, duration length) {
        detail::simulation simulated(t, seed);
        simulated.run_with_faults(length);
    });
}

inline void liveness(trial& t) {
    simulate(t, t.budget().simulated_days * 2 / 5, [&](std::uint64_t seed, duration length) {
        detail::simulation simulated(t, seed);
        simulated.run_with_faults(length / 4);
        simulated.heal();
        simulated.drain();
    });
}

/// Whether two events differ only because the transaction of one ended in a conflict.
[[nodiscard]] inline bool is_of_conflict(const std::string& a, const std::string& b) {
    const std::string_view mark = " [rolled back]";
    const auto is_marked = [&](const std::string& longer, const std::string& event) {
        return longer == event + std::string(mark);
    };
    const auto has = [](const std::string& event) { return event.find("conflict") != std::string::npos; };
    return has(a) || has(b) || is_marked(a, b) || is_marked(b, a);
}

inline void determinism(trial& t) {
    simulate(t, t.budget().simulated_days / 20, [&](std::uint64_t seed, duration length) {
        std::array<std::vector<std::string>, 2> traces;
        const auto conflicts = t.context().counts->conflicts.load();
        for (auto& trace : traces) {
            detail::simulation simulated(t, seed);
            simulated.keep_trace();
            simulated.run_with_faults(length);
            trace = simulated.trace();
        }
        const auto [a, b] = std::mismatch(traces[0].begin(), traces[0].end(), traces[1].begin(), traces[1].end());
        const auto line = [](auto at, auto end) { return at == end ? std::string("nothing more") : *at; };
        if (t.context().counts->conflicts != conflicts &&
            is_of_conflict(line(a, traces[0].end()), line(b, traces[1].end()))) {
            return; // conflicts may occur at any time; before it, the traces were the same
        }
        if (a != traces[0].end() || b != traces[1].end()) {
            t.fail("the same simulation repeated, event " + std::to_string(a - traces[0].begin()) + " of " +
                       std::to_string(traces[0].size()),
                   line(b, traces[1].end()), line(a, traces[0].end()));
        }
    });
}

/// Repeats one small simulation and fails another call of its runners each time.
inline void failing_runners(trial& t) {
    const auto seed = t.random().roll();
    for (const auto when : {fault_moment::before, fault_moment::after}) {
        for (const bool persistent : {false, true}) {
            for (std::uint64_t n = 1, fired = 1; fired > 0 && n <= 200; n += persistent ? 7 : 1) {
                detail::simulation simulated(t, seed);
                simulated.calm();
                simulated.produce(6);
                simulated.plan().arm({.call = n, .moment = when, .persistent = persistent});
                simulated.passes(3);
                fired = simulated.plan().disarm() ? 1 : 0;
                simulated.heal();
                simulated.drain();
            }
        }
    }
}

} // namespace simulation_checks

inline constexpr std::array simulation{
    clause{"SIM-01", layer::simulation, level::must, needs::nothing,
           "With crashing runners, wrong clocks and faults, no ticket is given out twice, only the current ticket "
           "settles, terminal entries do not change, lanes run in order, groups complete once, no entry dies only of "
           "lapses that it shared with other entries, and no entry disappears.",
           simulation_checks::safety},
    clause{"SIM-02", layer::simulation, level::must, needs::nothing,
           "When faults and crashes stop, every entry becomes terminal within a bounded number of passes.",
           simulation_checks::liveness},
    clause{"SIM-03", layer::simulation, level::must, needs::nothing,
           "The same calls with the same times return the same answers, so that a seed determines the simulation.",
           simulation_checks::determinism},
    clause{"SIM-04", layer::simulation, level::must, needs::nothing,
           "If any call of the runners fails, before or after its effect, once or repeatedly, every entry still ends "
           "once, together with its emissions.",
           simulation_checks::failing_runners},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/validation.hpp
// Validation of drafts: every limit accepts a value at the limit and refuses one above it, with the name of the field. A
// refusal writes nothing.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

using namespace reads_checks;
using words = std::vector<std::string>; ///< what the message of a refusal must contain; the field comes first

/// A text that no message may quote.
inline constexpr std::string_view secret = "s3cret";

/// The largest content that is tried, although a store may declare higher limits.
inline constexpr std::size_t tried_max = 16U * 1024 * 1024;

[[nodiscard]] inline std::string bytes(std::size_t count) {
    std::string out(secret);
    out.resize(count, 'x');
    return out;
}

/// The words of a refusal for a value that is one above its limit.
[[nodiscard]] inline words one_over(std::string_view field, std::size_t limit) {
    return {std::string(field), std::to_string(limit + 1), std::to_string(limit)};
}

/// Requires that the call is refused with these words and changes nothing.
template <class Call>
void refuses(any_store& store, const words& says, Call&& call) {
    from_begin(store, [&](auto& tx) {
        const auto before = snapshot_of(tx);
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

/// Requires that a batch is refused if any one of its drafts is changed by `spoil`.
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

/// The name fields of a draft that the store supports.
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
    t.equal(put(store, draft_of(9, {.headers = most})), inserted(9),
            "the largest number of headers of the largest size");
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

} // namespace validation_checks

inline constexpr std::array validation{
    clause{"VALID-01", layer::examples, level::must, needs::nothing, "A draft with the nil id is refused.",
           validation_checks::id_required},
    clause{
        "VALID-02", layer::examples, level::must, needs::nothing,
        "A draft's queue, topic, key, group and lane may have up to name_max bytes; queue and topic must not be empty.",
        validation_checks::names_bounded},
    clause{"VALID-03", layer::examples, level::must, needs::nothing,
           "A name with a control character is refused; all other characters are allowed.",
           validation_checks::names_without_control},
    clause{"VALID-04", layer::examples, level::must, needs::nothing,
           "A draft's payload, progress and result may have as many bytes as the store's limits say, and not one more.",
           validation_checks::contents_bounded},
    clause{"VALID-05", layer::examples, level::must, needs::nothing, "A trail may have up to trail_max ids.",
           validation_checks::trail_bounded},
    clause{"VALID-06", layer::examples, level::must, needs::nothing,
           "Headers are limited in number, name and value, each exactly at its limit; their names must be valid names.",
           validation_checks::headers_bounded},
    clause{"VALID-07", layer::examples, level::must, needs::nothing,
           "A draft with a result is refused if it has a lane, group, parent or predecessor.",
           validation_checks::result_excludes},
    clause{"VALID-08", layer::examples, level::must, needs::nothing,
           "A draft with a predecessor is refused if it has a key, group or lane of its own.",
           validation_checks::predecessor_excludes},
    clause{"VALID-09", layer::examples, level::must, needs::nothing,
           "A batch of drafts, settles or tickets may have up to batch_max items.", validation_checks::batches_bounded},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/validation_calls.hpp
// Validation of claims, settles, purges and queries: every limit accepts a value at the limit and refuses one above it,
// with the name of the field. A refusal writes nothing.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

inline void nothing_is_no_error(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
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
    t.equal(get(store, 3).lease_until, time_point::max(), "the end of the last possible lease");
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

/// Invalid queries, and the field that is wrong.
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

inline constexpr std::array validation_of_calls{
    clause{"VALID-10", layer::examples, level::must, needs::nothing,
           "Empty batches and a limit of 0 are not errors and change nothing.", validation_checks::nothing_is_no_error},
    clause{"VALID-11", layer::examples, level::must, needs::nothing,
           "A claim whose queue, worker or limit is out of bounds is refused.", validation_checks::claim_bounded},
    clause{"VALID-12", layer::examples, level::must, needs::nothing,
           "The lease of a claim or an extend must be between lease_min and lease_max.",
           validation_checks::leases_bounded},
    clause{"VALID-13", layer::examples, level::must, needs::nothing,
           "A lease that would end after the last representable time is refused.",
           validation_checks::leases_end_in_time},
    clause{"VALID-14", layer::examples, level::must, needs::nothing,
           "The error code of a retry, bury or cancel may have up to error_max bytes and no control characters.",
           validation_checks::error_codes_bounded},
    clause{"VALID-15", layer::examples, level::must, needs::nothing,
           "An outcome's result and progress are limited; one invalid settle rejects its whole batch.",
           validation_checks::outcomes_bounded},
    clause{"VALID-16", layer::examples, level::must, needs::nothing,
           "A purge's queue and limit are limited, and its state must be terminal.", validation_checks::purge_bounded},
    clause{"VALID-17", layer::examples, level::must, needs::nothing,
           "A query has exactly the fields that its path needs; its names and its limit are limited.",
           validation_checks::queries_bounded},
    clause{
        "VALID-18", layer::examples, level::must, needs::nothing,
        "The queue of counts and next_due must be a valid name: not empty, not too long, without control characters.",
        validation_checks::read_queues_bounded},
    clause{"VALID-19", layer::examples, level::must, needs::nothing,
           "The message of a refusal names fields, limits and sizes and never quotes the given value.",
           validation_checks::nothing_is_quoted},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/verdicts.hpp
// Verdicts: the verdict table, cell by cell. Rows are operations, columns are states of the entry. Each cell compares the
// verdict and requires that the entry changes exactly if the verdict is `applied`.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace verdict_checks {

inline constexpr auto asked_at = at(1000);

/// The state of entry `n` when an operation is called on it.
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

/// A store with an entry for every column. Entries that wait or have ended are not due yet; one lease has a microsecond
/// left, the other has just ended.
[[nodiscard]] inline any_store furnished(trial& t) {
    auto store = t.open(t.fresh_location());
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

/// Requires that the entry with the number n has changed since, and no other entry.
inline void only_changed(const any_store& store, snapshot before, std::uint64_t n, const std::string& cell) {
    const auto after = get(store, n);
    for (auto& e : before.found) {
        if (e.id == after.id) {
            trial::expect(!(e == after), cell + ": what is applied changes the entry");
            e = after;
        }
    }
    trial::equal(snapshot_of(store).found, before.found, cell + ": no other entry changes");
}

/// Checks a row: `ask(column) -> verdict`.
template <class Ask>
void walk(any_store& store, std::string_view what, const std::array<verdict, columns.size()>& row, const Ask& ask) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto cell = std::string(what) + " on an entry that is " + std::string(columns[i].name);
        const auto before = snapshot_of(store);
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

// Epochs that are not the entry's current one.

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
           "A settle with the entry's current epoch is applied if the entry is claimed, whether its lease runs or is "
           "over; repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::settle_present},
    clause{"VERDICT-02", layer::examples, level::must, needs::nothing,
           "A settle with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::settle_other},
    clause{"VERDICT-03", layer::examples, level::must, needs::nothing,
           "An extend with the entry's current epoch is applied if the entry is claimed, whether its lease runs or is "
           "over; repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::extend_present},
    clause{"VERDICT-04", layer::examples, level::must, needs::nothing,
           "An extend with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::extend_other},
    clause{"VERDICT-05", layer::examples, level::must, needs::nothing,
           "A nudge of a pending, retrying or claimed entry is applied; of a succeeded or dead one it is stale; of an "
           "absent one it is unknown.",
           verdict_checks::nudge_once},
    clause{"VERDICT-06", layer::examples, level::must, needs::nothing,
           "A nudge of an entry that is already due or marked is repeated; of a succeeded or dead one it is stale; of "
           "an absent one it is unknown.",
           verdict_checks::nudge_again},
    clause{"VERDICT-07", layer::examples, level::must, needs::nothing,
           "A cancel is applied if the entry is pending, retrying, or claimed with its lease over; stale if its lease "
           "runs or it succeeded; repeated if it is dead; unknown if it is absent.",
           verdict_checks::cancel_any},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/wakes.hpp
// Wakes: a number per queue that changes when work may have become due sooner, and a wait for that change.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace wakes_checks {

using namespace transaction_checks;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Long for a computer, short for a person who waits for a failure.
inline constexpr std::chrono::milliseconds patience{1'500};
inline constexpr std::chrono::milliseconds longer{2'000};

/// The operations on a furnished store that may make work of "q" due sooner.
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
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.lane = "lane"}));
        put(store, draft_of(2, {.lane = "lane"}));
        const auto held = take_one(store, at(0));
        const auto seen = store.wakes("q");
        settle(store, held, o);
        t.expect(store.wakes("q") != seen,
                 "the number changes when a head ends and the next entry of its lane can run");
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
    t.equal(store.wait("q", seen, longer, {}), store.wakes("q"), "the number that wait returns");
    t.expect(steady_clock::now() - begun < patience, "wait returns at once when the number has already changed");
}

inline void wait_ends_at_its_limit(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto seen = store.wakes("q");
    for (const auto at_most : {milliseconds{0}, milliseconds{-5}, milliseconds{5}}) {
        const auto begun = steady_clock::now();
        t.equal(store.wait("q", seen, at_most, {}), seen, "the number when the time of a wait has passed");
        const auto waited = steady_clock::now() - begun;
        t.expect(waited >= at_most, "wait does not return before its time without a commit");
        t.expect(waited < patience, "wait returns when its time has passed");
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
           "A queue's number changes with every commit that may have made its work due sooner.",
           wakes_checks::changes_with_commit},
    clause{"WAKE-02", layer::examples, level::may, needs::wakes,
           "A queue's number changes neither before the commit nor after a rollback.", wakes_checks::not_with_rollback},
    clause{"WAKE-03", layer::examples, level::may, needs::wakes,
           "In a store with lanes, a queue's number changes when a head ends and the next entry of its lane can run.",
           wakes_checks::changes_with_lane},
    clause{"WAKE-04", layer::examples, level::may, needs::wakes,
           "In a shared store, a queue's number changes with commits through any handle.",
           wakes_checks::every_handle_hears},
    clause{"WAKE-05", layer::examples, level::may, needs::wakes,
           "wait returns at once if the number differs from the one given, so that no commit is missed.",
           wakes_checks::wait_sees_what_was},
    clause{"WAKE-06", layer::examples, level::may, needs::wakes,
           "wait returns when its time has passed, not before; with no time it returns at once.",
           wakes_checks::wait_ends_at_its_limit},
    clause{"WAKE-07", layer::examples, level::may, needs::wakes, "wait returns when a stop is requested.",
           wakes_checks::wait_ends_on_stop},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/all_clauses.hpp
// All clauses, in the order in which they are run and listed. README.md in this folder lists their sentences.

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
        add(clauses::claiming_in_order);
        add(clauses::settling);
        add(clauses::settling_by_ticket);
        add(clauses::verdict_table);
        add(clauses::extending);
        add(clauses::nudging);
        add(clauses::cancelling);
        add(clauses::lanes);
        add(clauses::parents);
        add(clauses::groups);
        add(clauses::transactions);
        add(clauses::transaction_use);
        add(clauses::reads);
        add(clauses::filtered_reads);
        add(clauses::purges);
        add(clauses::validation);
        add(clauses::validation_of_calls);
        add(clauses::fidelity);
        add(clauses::wakes);
        add(clauses::capability);
        add(clauses::model_runs);
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

// ---- vouch/conformance/detail/clause_runner.hpp
// Runs one clause and reports its result. A check that fails is run a second time with a test writer, so that the report
// contains the calls that led to the failure.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

[[nodiscard]] inline std::uint64_t seed_of(const clause& c, std::uint64_t seed) noexcept {
    auto mixed = vouch::detail::mix(seed);
    for (const char letter : c.id) {
        mixed = vouch::detail::mix(mixed ^ static_cast<unsigned char>(letter));
    }
    return mixed;
}

/// Whether the checks of this layer handle conflicts themselves. The checks of the other layers are repeated.
[[nodiscard]] constexpr bool tolerates_conflicts(layer l) noexcept {
    return l == layer::model || l == layer::interleavings || l == layer::histories || l == layer::crashes;
}

/// Runs the check once. An exception that is not the suite's own is a failure as well.
inline void attempt_once(run_context& context, const clause& c, clause_report& into, test_source* source) {
    try {
        trial t(context, seed_of(c, context.options.seed), source);
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
        into.failure = {.what = "the store threw an error where none is allowed",
                        .seen = show(e.kind()) + ": " + e.what(),
                        .expected = "no error"};
    } catch (const std::exception& e) {
        into.result = result::fail;
        into.failure = {.what = "an exception that is not a vouch::error was thrown", .seen = e.what(), .expected = {}};
    }
}

/// Any call may throw `conflict`, which makes all earlier answers void. So a check that fails after a conflict is
/// repeated on a fresh store. A store that has a conflict in every attempt fails.
inline void attempt(run_context& context, const clause& c, clause_report& into, test_source* source) {
    constexpr int tries = 40;
    for (int left = tries; left > 0; --left) {
        const auto tally = context.tally;
        const auto conflicts = context.counts->conflicts.load();
        attempt_once(context, c, into, source);
        const bool is_void =
            into.result == result::fail && context.counts->conflicts != conflicts && !tolerates_conflicts(c.layer);
        if (!is_void || left == 1) {
            return;
        }
        context.tally = tally;
        into.failure = {};
        if (source != nullptr) {
            *source = {};
        }
    }
}

[[nodiscard]] inline clause_report run_clause(run_context& context, const clause& c) {
    clause_report out{.clause = c, .seed = context.options.seed};
    const auto begun = std::chrono::steady_clock::now();
    if (!has(context.can, c.needs)) {
        out.result = result::unsupported;
        return out;
    }
    const auto calls = context.counts->calls.load();
    attempt(context, c, out, nullptr);
    out.calls = context.counts->calls - calls;
    if (out.result == result::fail && out.failure.transcript.empty() && context.options.explains) {
        // Once more, to write the calls down as a test. That works for one thread only.
        test_source source;
        clause_report again{.clause = c};
        attempt(context, c, again, &source);
        if (again.result == result::fail && source.size() > 0) {
            out.failure.transcript = source.text();
        }
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/gaps.hpp
// Whether a run has seen enough for a verdict.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The answers and overlaps that a verdict requires and that the run did not see, although it ran the layer.
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/watchdog.hpp
// Ends the program with exit code 3 when a clause takes too long. A store that hangs cannot be interrupted, so the
// watchdog prints which clause hangs.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class watchdog {
  public:
    explicit watchdog(std::chrono::seconds patience)
        : patience_(patience), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

    /// Starts to watch `what`.
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
            const auto was = until_; // a copy, because the wait reads it while the mutex is unlocked
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
    std::string what_{}; ///< empty: nothing to watch
    std::chrono::steady_clock::time_point until_{};
    std::jthread thread_; // last: it uses the other members
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/check.hpp
// `check(fixture, options) -> report`: runs the clauses against a fixture, without any test framework.
//
// A fixture has one function, `open(const location&)`, which returns a store. It may also have the hooks `crash`,
// `seam`, `fail_at` and `forget`, which conformance/README.md describes. Without a hook the suite can check less, and
// the report says what.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

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

[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    return c.id.starts_with(o.clause) && (!o.layer || c.layer == *o.layer);
}

} // namespace detail

/// Called while clauses are run. Either may be empty.
struct check_callbacks {
    std::function<bool(const clause&)> begins{};       ///< false: this clause is skipped
    std::function<bool(const clause_report&)> ended{}; ///< false: all further clauses are skipped
};

/// Runs the chosen clauses. Throws what the fixture's `open` throws in its first call. A clause that takes longer than
/// `options::seconds_per_clause` ends the program with exit code 3.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const check_callbacks& callbacks = {}) {
    report out{.identity = whose, .options = how};
    const auto root = std::filesystem::temp_directory_path() /
                      ("vouch-conformance-" + std::to_string(vouch::detail::mix(static_cast<std::uint64_t>(
                                                  std::chrono::steady_clock::now().time_since_epoch().count()))));
    detail::locations locations(root);
    detail::run_context context;
    context.open = [&fixture, counts = context.counts](const location& p) {
        return erase([&] { return fixture.open(p); }, counts);
    };
    context.hooks = detail::hooks_of(fixture, out);
    context.options = how;
    context.locations = &locations;
    context.can = context.open(locations.fresh()).capabilities();
    out.can = context.can;
    context.budget = budget_of(how.profile, context.can);
    out.platform = detail::platform();

    detail::watchdog dog(std::chrono::seconds{how.seconds_per_clause});
    bool continues = true;
    for (const auto& c : all_clauses()) {
        if (!continues || !detail::is_chosen(c, how) || (callbacks.begins && !callbacks.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        out.clauses.push_back(detail::run_clause(context, c));
        dog.end();
        continues = !callbacks.ended || callbacks.ended(out.clauses.back());
    }
    out.tally = context.tally;
    out.gaps = detail::gaps_of(out.tally, out.can);
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/run.hpp
// The suite as a program: `int main(int argc, char** argv) { return run<fixture>({"acme", "1.4.0"}, argc, argv); }`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline constexpr std::string_view usage =
    "  --list                          print the clauses and exit\n"
    "  --clause ID                     only clauses whose id starts with ID\n"
    "  --layer NAME                    only this layer\n"
    "  --seed N                        the seed of all random choices (default 1)\n"
    "  --profile quick|standard|soak   how much to run (default standard)\n"
    "  --json FILE                     also write the report to FILE as JSON\n"
    "  --text FILE                     also write the report to FILE as text\n"
    "  --patience N                    seconds until a clause counts as hanging (default 300)\n"
    "  --quiet                         do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 hanging, 64 wrong usage.\n";

struct command_line {
    conformance::options options{.progress = true};
    bool list = false;
    std::string json{};
    std::string text{};
    std::string wrong{}; ///< the first option that is unknown or has no valid value
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
            by_name(value, {layer::fixture, layer::examples, layer::model, layer::interleavings, layer::histories,
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

/// For `main`: runs the suite as the arguments say, prints the report and returns the exit code. An unknown option
/// prints the usage and returns 64.
template <class Fixture>
int run(const identity& whose, int argc, char** argv) {
    const auto asked = detail::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s is not an option, or its value is missing or wrong. Options:\n%s", program.c_str(),
                     asked.wrong.c_str(), std::string(detail::usage).c_str());
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
