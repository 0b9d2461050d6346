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
#include <cerrno>
#include <charconv>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
#include <new>
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
//
// `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` are called `enqueue_last`, `claim_last` and
// `settle_last` here. With their own names `any_transaction` would model `committing_transaction`, whatever it wraps, and
// `vouch::claim` and runners would call them on stores that do not have them.

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
    /// `enqueue_and_commit`. Called only if `store_interface::is_committing`.
    virtual std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) = 0;
    /// `claim_and_commit`. Called only if `store_interface::is_committing`.
    [[nodiscard]] virtual std::optional<std::vector<entry>> claim_last(const claim_request& request) = 0;
    /// `settle_claim_and_commit`. Called only if `store_interface::is_committing`.
    [[nodiscard]] virtual settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                          const claim_request& request) = 0;
    /// Moves the wrapped transaction into a new object and leaves this one moved from.
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> move_out() = 0;
    /// Move-assigns the transaction that `from` wraps, which must be of the same type.
    virtual void move_assign(transaction_interface& from) = 0;
};

/// The operations of a store.
class store_interface : public reader_interface {
  public:
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> begin() = 0;
    [[nodiscard]] virtual vouch::capabilities capabilities() const = 0;
    /// Whether the transactions have `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit`, which the
    /// store must then declare.
    [[nodiscard]] virtual bool is_committing() const = 0;
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
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) {
        return wrapped_->enqueue_last(drafts, now);
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) {
        return wrapped_->claim_last(request);
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) {
        return wrapped_->settle_last(settles, now, request);
    }

    /// Move-constructs the wrapped transaction. This object stays usable and wraps the one moved from.
    [[nodiscard]] any_transaction move_out() { return any_transaction(wrapped_->move_out()); }
    /// Move-assigns the transaction that `from` wraps to the one wrapped here. Both stores must be of the same type.
    void move_assign(any_transaction& from) { wrapped_->move_assign(*from.wrapped_); }

  private:
    std::unique_ptr<transaction_interface> wrapped_;
};

static_assert(transaction<any_transaction> && !committing_transaction<any_transaction>);

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
    [[nodiscard]] bool is_committing() const { return wrapped_->is_committing(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) { return wrapped_->wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        return wrapped_->wait(queue, seen, at_most, std::move(stop));
    }

    /// The handle that the copies share. It has expired when all of them are destroyed.
    [[nodiscard]] std::weak_ptr<const store_interface> handle() const { return wrapped_; }

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
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.enqueue_and_commit(drafts, now); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.claim_and_commit(request); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.settle_claim_and_commit(settles, now, request); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        return std::make_unique<wrapped_transaction>(std::move(tx_), counts_);
    }
    void move_assign(transaction_interface& from) override {
        tx_ = std::move(static_cast<wrapped_transaction&>(from).tx_);
    }

  private:
    [[noreturn]] static void fail_without_operation() {
        throw error(error_kind::unsupported,
                    "the store declares the capability `committing`, but its transactions have "
                    "no `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit`");
    }

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
    [[nodiscard]] bool is_committing() const override { return committing_transaction<typename Store::transaction>; }
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
enum class needs : std::uint8_t { nothing, groups, lanes, wakes, durable, shared, committing };

[[nodiscard]] constexpr std::string_view name_of(needs n) noexcept {
    switch (n) {
    case needs::nothing: return "-";
    case needs::groups: return "groups";
    case needs::lanes: return "lanes";
    case needs::wakes: return "wakes";
    case needs::durable: return "durable";
    case needs::shared: return "shared";
    case needs::committing: return "committing";
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
    case needs::committing: return can.committing;
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
    threads,
    crashes,
    processes,
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
    case layer::threads: return "threads";
    case layer::crashes: return "crashes";
    case layer::processes: return "processes";
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
    /// Where a case is repeated for each of its calls, or for each pause inside the store, with a fault or an interruption
    /// there: only at every n-th of them, from a random one on.
    std::size_t point_stride = 1;
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
        b.model_runs /= p == profile::quick ? 16 : 10;
        b.schedules = (b.schedules + 3) / 4;
        b.histories /= p == profile::quick ? 8 : 5;
        b.simulated_days = (b.simulated_days + 9) / 10;
        if (p == profile::quick) {
            b.crash_points /= 2;
            b.point_stride = 2;
        }
    }
    return b;
}

struct options {
    std::uint64_t seed = 1;
    conformance::profile profile = conformance::profile::standard;
    std::string clause{};                      ///< only clauses whose id starts with this; empty: all
    std::vector<std::string> skip{};           ///< no clauses whose ids start with one of these
    std::optional<conformance::layer> layer{}; ///< only this layer; empty: all
    std::size_t seconds_per_clause = 300;      ///< a clause that takes longer hangs, and the program ends
    bool progress = false;                     ///< print each clause to stderr before it is run
    bool explains = true;                      ///< shrink failing cases and write transcripts; false is faster
};

/// Whether the options let this clause run.
[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    const auto is_named = [&](const std::string& prefix) { return c.id.starts_with(prefix); };
    return is_named(o.clause) && std::none_of(o.skip.begin(), o.skip.end(), is_named) &&
           (!o.layer || c.layer == *o.layer);
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report.hpp
// The report of a run: a result per clause, how much was done, and the verdict. Two runs with the same seed give the
// same report, except for the times. `report_text.hpp`, `report_json.hpp`, `report_html.hpp` and `report_junit.hpp`
// write it.

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
    std::uint64_t overlapping = 0;   ///< histories in which concurrent operations touched the same entries
    std::uint64_t guessed_turns = 0; ///< a thread without an answer from a server was taken to wait for another thread
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< by operation and answer: "extend applied"

    tally& operator+=(const tally& other);
};

/// The counters of a tally and their names in a report.
inline constexpr std::array<std::pair<std::string_view, std::uint64_t tally::*>, 8> tally_counters{{
    {"commands", &tally::commands},
    {"interleavings", &tally::interleavings},
    {"histories", &tally::histories},
    {"overlapping", &tally::overlapping},
    {"guessed_turns", &tally::guessed_turns},
    {"crash_points", &tally::crash_points},
    {"faults", &tally::faults},
    {"virtual_seconds", &tally::simulated_seconds},
}};
static_assert(sizeof(tally) == sizeof(tally::answers) + tally_counters.size() * sizeof(std::uint64_t),
              "tally_counters lists every counter");

inline tally& tally::operator+=(const tally& other) {
    for (const auto& [name, counter] : tally_counters) {
        this->*counter += other.*counter;
    }
    for (const auto& [name, count] : other.answers) {
        answers[name] += count;
    }
    return *this;
}

enum class result : std::uint8_t {
    pass,
    fail,
    hangs,       ///< no answer within `options::seconds_per_clause`
    crashes,     ///< the process of the clause ended
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture or the machine lacks something; `clause_report::why` says what
    not_run,     ///< the options exclude it
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::hangs: return "hangs";
    case result::crashes: return "crashes";
    case result::unsupported: return "unsupported";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

/// Every result, in the order in which reports count them.
inline constexpr std::array all_results{result::pass,        result::fail,     result::hangs,  result::crashes,
                                        result::unsupported, result::untested, result::not_run};

/// Whether a clause with this result makes the verdict `failing`.
[[nodiscard]] constexpr bool is_failure(result r) noexcept {
    return r == result::fail || r == result::hangs || r == result::crashes;
}

struct clause_report {
    conformance::clause clause{};
    conformance::result result = conformance::result::not_run;
    std::string why{}; ///< only for `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< repeats the run
    std::uint64_t calls = 0; ///< calls on transactions
    conformance::tally tally{};
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies passes
    partial,    ///< no clause fails, but a MUST was not tested, or `report::gaps` is not empty
    failing,    ///< a clause fails, hangs or crashes
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
            if (is_failure(c.result)) {
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
    for (const auto n : {needs::groups, needs::lanes, needs::wakes, needs::durable, needs::shared, needs::committing}) {
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

/// "FAILED", "HANGS" or "CRASHES".
[[nodiscard]] constexpr std::string_view failure_word(result r) noexcept {
    return r == result::hangs ? "HANGS" : r == result::crashes ? "CRASHES" : "FAILED";
}

/// The command that repeats a failure. A clause that hangs or crashes is best repeated in a debugger, without a fork.
[[nodiscard]] inline std::string replay_command(const clause_report& c, std::string_view program) {
    return std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " + std::to_string(c.seed) +
           (c.result == result::fail ? "" : " --no-fork");
}

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and the transcript.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " " + std::string(failure_word(c.result)) + ": " +
                      std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + replay_command(c, program) + "\n";
    if (!c.failure.transcript.empty()) {
        out += detail::indented(c.failure.transcript) + "\n";
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/repeating_store.hpp
// A store that hides the conflicts of another store: after a conflict it begins a new transaction, makes the earlier
// calls again and goes on, if they return the same answers as before. So a check that knows nothing of conflicts can be
// carried out on a store that has many of them.
//
// It is for checks with one thread: then a conflict cannot mean that another transaction has changed an answer.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// How often a transaction is repeated. Even if nine of ten commits end in a conflict, no store needs so many tries.
inline constexpr int conflicts_max = 2'000;
inline constexpr std::string_view endless_conflict = "conflict 2,000 times in a row: the transaction does not succeed";

[[noreturn]] inline void fail_endlessly() { throw failure{std::string(endless_conflict), {}, {}, {}}; }

/// While one exists, conflicts reach the checks of this thread.
class shown_conflicts {
  public:
    shown_conflicts() noexcept { ++depth(); }
    shown_conflicts(const shown_conflicts&) = delete;
    shown_conflicts& operator=(const shown_conflicts&) = delete;
    ~shown_conflicts() { --depth(); }

    [[nodiscard]] static bool any() noexcept { return depth() > 0; }

  private:
    [[nodiscard]] static int& depth() noexcept {
        thread_local int of_thread = 0;
        return of_thread;
    }
};

/// Whether an error may be hidden by repeating the transaction.
[[nodiscard]] inline bool is_repeatable(const error& e) noexcept {
    return e.kind() == error_kind::conflict && !e.is_in_doubt() && !shown_conflicts::any();
}

// Answers are compared without sequences, because a rolled-back transaction may leave a gap.

template <class Answer>
[[nodiscard]] bool is_same_answer(const Answer& a, const Answer& b) {
    return a == b;
}
[[nodiscard]] inline bool is_same_answer(const entry& a, const entry& b) {
    auto other = b;
    other.sequence = a.sequence;
    return a == other;
}
[[nodiscard]] inline bool is_same_answer(const std::optional<entry>& a, const std::optional<entry>& b) {
    return a && b ? is_same_answer(*a, *b) : a.has_value() == b.has_value();
}
[[nodiscard]] inline bool is_same_answer(const std::vector<entry>& a, const std::vector<entry>& b) {
    bool is_same = a.size() == b.size();
    for (std::size_t i = 0; is_same && i < a.size(); ++i) {
        is_same = is_same_answer(a[i], b[i]);
    }
    return is_same;
}

/// Begins a transaction, after conflicts too.
[[nodiscard]] inline any_transaction begin_repeatedly(any_store& store) {
    for (int left = conflicts_max;; --left) {
        try {
            return store.begin();
        } catch (const error& e) {
            if (!is_repeatable(e)) {
                throw;
            }
            if (left == 0) {
                fail_endlessly();
            }
        }
    }
}

class repeating_transaction final : public transaction_interface {
  public:
    using call = std::function<bool(any_transaction&)>; ///< makes the call; whether the answer is the same

    repeating_transaction(any_store store, any_transaction tx, std::vector<call> calls = {})
        : store_(std::move(store)), tx_(std::move(tx)), calls_(std::move(calls)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override {
        return use([wanted](any_transaction& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        return use([q](any_transaction& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override {
        return use([name = std::string(queue)](any_transaction& tx) { return tx.counts(name); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return use([name = std::string(queue)](any_transaction& tx) { return tx.next_due(name); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return use([some = copy(drafts), now](any_transaction& tx) { return tx.enqueue(some, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        return use([request](any_transaction& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return use([some = copy(settles), now](any_transaction& tx) { return tx.settle(some, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return use([some = copy(tickets), now, lease](any_transaction& tx) { return tx.extend(some, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return use([wanted, now](any_transaction& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        return use(
            [wanted, code = std::string(error), now](any_transaction& tx) { return tx.cancel(wanted, code, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return use([request](any_transaction& tx) { return tx.purge(request); });
    }
    void commit() override {
        until_no_conflict([&](any_transaction& tx) {
            tx.commit();
            return true;
        });
    }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.enqueue_last(drafts, now); });
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.claim_last(request); });
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.settle_last(settles, now, request); });
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        return std::make_unique<repeating_transaction>(store_, open().move_out(), std::exchange(calls_, {}));
    }
    void move_assign(transaction_interface& from) override {
        auto& source = static_cast<repeating_transaction&>(from);
        open().move_assign(source.open());
        store_ = source.store_;
        calls_ = std::exchange(source.calls_, {});
    }

  private:
    template <class Operation>
    using answer_of = std::invoke_result_t<const Operation&, any_transaction&>;

    template <class Item>
    [[nodiscard]] static std::vector<Item> copy(std::span<const Item> items) {
        return {items.begin(), items.end()};
    }

    [[nodiscard]] any_transaction& open() const {
        if (!tx_) {
            throw error(error_kind::misuse, "the transaction was not repeated after a conflict and is closed");
        }
        return *tx_;
    }

    template <class Operation>
    answer_of<Operation> use(const Operation& operation) const {
        auto answer = until_no_conflict(operation);
        calls_.push_back([operation, answer](any_transaction& tx) { return is_same_answer(operation(tx), answer); });
        return answer;
    }

    template <class Operation>
    answer_of<Operation> until_no_conflict(const Operation& operation) const {
        for (int left = conflicts_max;; --left) {
            try {
                return operation(open());
            } catch (const error& e) {
                if (!is_repeatable(e)) {
                    throw;
                }
                if (left == 0) {
                    fail_endlessly();
                }
                repeat(e);
            }
        }
    }

    /// Makes all calls again in a new transaction. If an answer differs, the conflict is not hidden.
    void repeat(const error& conflict) const {
        for (int left = conflicts_max; left > 0; --left) {
            try {
                tx_.reset(); // first, because begin may wait until it has ended
                tx_.emplace(begin_repeatedly(store_));
                for (const auto& same : calls_) {
                    if (!same(*tx_)) {
                        tx_.reset();
                        throw conflict;
                    }
                }
                return;
            } catch (const error& e) {
                if (!tx_ || !is_repeatable(e)) {
                    throw;
                }
            }
        }
        fail_endlessly();
    }

    mutable any_store store_;
    mutable std::optional<any_transaction> tx_;
    mutable std::vector<call> calls_; ///< of the open transaction
};

class repeating_store final : public store_interface {
  public:
    explicit repeating_store(any_store store) : store_(std::move(store)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        return std::make_unique<repeating_transaction>(store_, begin_repeatedly(store_));
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] bool is_committing() const override { return store_.is_committing(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    any_store store_;
};

/// The same store, without its conflicts.
[[nodiscard]] inline any_store repeat_conflicts(any_store store) {
    return any_store(std::make_shared<repeating_store>(std::move(store)));
}

} // namespace conformance::detail
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

/// Nothing: `claim_and_commit` has left the claim to another transaction.
[[nodiscard]] inline std::optional<std::vector<ticket>> tickets_of(const std::optional<std::vector<entry>>& entries) {
    return entries ? std::optional(tickets_of(*entries)) : std::nullopt;
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
    if (value == time_point::min()) {
        return "time_point::min()";
    }
    if (value < time_point::min() + start.time_since_epoch()) { // the difference to the start would overflow
        return "time_point{duration{" + std::to_string(value.time_since_epoch().count()) + "}}";
    }
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

template <class T>
[[nodiscard]] std::string show_briefly(const std::optional<std::vector<T>>& values) {
    return values ? show_briefly(*values) : show(values);
}

[[nodiscard]] inline std::string show_briefly(const settled_and_claimed& value) {
    return show_briefly(value.settlements) + ", claimed " + show_briefly(tickets_of(value.claimed));
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
    /// store that needs no files may use `name` instead.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }

    /// A short name that no other location has, of this run or another: a lower-case letter, then lower-case letters and
    /// digits, 17 bytes in all. A store on a server can use it as the name of a schema or as a prefix.
    [[nodiscard]] std::string name() const {
        constexpr std::string_view digits = "0123456789abcdef";
        std::uint64_t sum = 0;
        for (const char c : directory_.string()) {
            sum = vouch::detail::mix(sum ^ static_cast<unsigned char>(c));
        }
        std::string out = "v";
        for (unsigned shift = 64; shift > 0; shift -= 4) {
            out.push_back(digits[(sum >> (shift - 4)) & 15U]);
        }
        return out;
    }
    [[nodiscard]] friend bool operator==(const location&, const location&) = default;
    [[nodiscard]] friend bool operator<(const location& a, const location& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/fixture_hooks.hpp
// The optional functions of a fixture, found by their names. A report lists those that are missing and what they cost.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct fixture_hooks {
    /// Leaves the location as the sudden death of its process would. It is called while handles on the location, and
    /// usually a transaction, are still open: cut them off, so that they can change nothing that is stored. The suite
    /// destroys them next, ignores their errors, and then opens the location again. Without the hook, the files are
    /// copied while the handles are open, and restored when the handles are destroyed.
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
    note(can_crash, "crash", "a crash restores the files as they were before the handles were destroyed");
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

    /// Whether one of these entries is claimed here.
    [[nodiscard]] bool has_claimed(const std::vector<entry>& entries) const {
        return std::any_of(entries.begin(), entries.end(), [&](const entry& e) {
            const auto* const stored = find(e.id);
            return stored != nullptr && stored->state == state::claimed;
        });
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

/// Requires that `f` throws no `vouch::error`.
template <class F>
void expect_no_error(const F& f) {
    try {
        f();
    } catch (const error& e) {
        detail::expect_text(detail::show(e.kind()), "no error");
    }
}

/// Calls `f` and ignores a `vouch::error`.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): the printed test marks a call that may fail
    }
}

/// Enqueues and commits: in one call if the store has it, so that a test of such a store runs on any store.
template <class Transaction>
std::vector<receipt> enqueue_and_commit(Transaction& tx, std::span<const draft> drafts, time_point now) {
    if constexpr (requires { tx.enqueue_last(drafts, now); }) { // a transaction of `any_store`
        return tx.enqueue_last(drafts, now);
    } else {
        return vouch::detail::enqueue_and_commit(tx, drafts, now);
    }
}

/// The same for a claim. Nothing: the store has left the claim to another transaction.
template <class Transaction>
[[nodiscard]] std::optional<std::vector<entry>> claim_and_commit(Transaction& tx, const claim_request& request) {
    if constexpr (requires { tx.claim_last(request); }) {
        return tx.claim_last(request);
    } else if constexpr (committing_transaction<Transaction>) {
        return tx.claim_and_commit(request);
    } else {
        auto claimed = tx.claim(request);
        tx.commit();
        return claimed;
    }
}

/// The same for settles and a claim. If a settle is refused, nothing is committed.
template <class Transaction>
[[nodiscard]] settled_and_claimed settle_claim_and_commit(Transaction& tx, std::span<const settle> settles,
                                                          time_point now, const claim_request& request) {
    if constexpr (requires { tx.settle_last(settles, now, request); }) {
        return tx.settle_last(settles, now, request);
    } else if constexpr (committing_transaction<Transaction>) {
        return tx.settle_claim_and_commit(settles, now, request);
    } else {
        settled_and_claimed out{.settlements = tx.settle(settles, now)};
        if (all_applied(out.settlements)) {
            out.claimed = tx.claim(request);
            tx.commit();
        } else {
            const auto rolled_back = std::move(tx);
        }
        return out;
    }
}

/// Settles and commits, if no settle is refused. The store must leave the claim to another transaction, or has left it.
template <class Transaction>
[[nodiscard]] std::vector<settlement> settle_leave_claim_and_commit(Transaction& tx, std::span<const settle> settles,
                                                                    time_point now, const claim_request& request) {
    if constexpr (requires { tx.settle_last(settles, now, request); } || committing_transaction<Transaction>) {
        auto done = settle_claim_and_commit(tx, settles, now, request);
        expect(tickets_of(done.claimed), "none");
        return std::move(done.settlements);
    } else {
        auto settlements = tx.settle(settles, now);
        if (all_applied(settlements)) {
            tx.commit();
        } else {
            const auto rolled_back = std::move(tx);
        }
        return settlements;
    }
}

/// A claim that the store must leave to another transaction, or has left to it. A store that cannot claim and commit in
/// one call only commits.
template <class Transaction>
void leave_claim_and_commit(Transaction& tx, const claim_request& request) {
    if constexpr (requires { tx.claim_last(request); } || committing_transaction<Transaction>) {
        expect(tickets_of(claim_and_commit(tx, request)), "none");
    } else {
        tx.commit();
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
        add_code(name, value_of(value));
    }
    template <class T>
    void add_if(bool wanted, std::string_view name, const T& value) {
        if (wanted) {
            add(name, value);
        }
    }
    void add_code(std::string_view name, const std::string& code) {
        out_ += std::string(out_.empty() ? "" : ", ") + "." + std::string(name) + " = " + code;
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

[[nodiscard]] inline std::string as_code(const query& q) {
    using path = query::path;
    members m;
    const auto* const by = q.by == path::group    ? "group"
                           : q.by == path::parent ? "parent"
                           : q.by == path::key    ? "key"
                           : q.by == path::dead   ? "dead"
                           : q.by == path::live   ? "live"
                                                  : "all";
    m.add_code("by", std::string("query::path::") + by);
    m.add_if(!q.queue.empty(), "queue", q.queue);
    m.add_if(!q.key.empty(), "key", q.key);
    m.add_if(!q.group.empty(), "group", q.group);
    m.add_if(!q.parent.is_nil(), "parent", q.parent);
    m.add_if(q.state.has_value(), "state", q.state);
    m.add_if(!q.topic.empty(), "topic", q.topic);
    m.add_if(q.after != 0, "after", q.after);
    m.add_if(q.limit != query{}.limit, "limit", q.limit);
    m.add_if(q.payloads, "payloads", true);
    return "query" + m.str();
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
    /// Returns whether the query is new.
    bool add_query(std::string code, const vouch::query& q) {
        const bool is_new = codes_.insert(code).second;
        if (is_new) {
            queries_.push_back({std::move(code), q});
        }
        return is_new;
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

/// The first read that differs from the model, as a line of code; empty if there is none. `code` is the read that is made
/// at the moment.
template <class Reader>
[[nodiscard]] std::string first_difference(const Reader& reader, const std::string& name, const model& wanted,
                                           const known_names& known, std::string& code) {
    std::string out;
    for (const auto& one : known.ids()) {
        code = name + ".find(" + members::value_of(one) + ")";
        const auto seen = reader.find(one);
        const auto* const e = wanted.find(one);
        out = seen && e != nullptr ? difference(code + ".value()", *seen, *e)
                                   : difference(code + ".has_value()", seen.has_value(), e != nullptr);
        if (!out.empty()) {
            return out;
        }
    }
    for (const auto& q : known.queries()) {
        code = name + ".list(" + q.code + ")";
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
        code = name + ".counts" + in_queue;
        out = difference(code, reader.counts(queue), wanted.counts(queue));
        if (!out.empty()) {
            return out;
        }
        code = name + ".next_due" + in_queue;
        out = difference(code, reader.next_due(queue), wanted.next_due(queue));
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
// The source of a C++ test that repeats the calls on a store, line by line, and the calls themselves, so that a shorter
// test can be searched for. `test_writer.hpp` fills it. Not thread-safe.

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

/// One step of a test, which can be repeated on another store.
struct test_step {
    enum class kind : std::uint8_t { open, close, begin, call, list, end };
    kind what = kind::call;
    std::string handle{};                           ///< its name in the test
    std::string transaction{};                      ///< empty: the step is one of the handle
    std::size_t store = 0;                          ///< for `open`
    std::function<void(any_transaction&)> repeat{}; ///< for `call`
    vouch::query query{};                           ///< for `list`, on the transaction or the handle
};
using test_steps = std::vector<test_step>;

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
        if (!shows()) {
            shown_ = lines_.size();
            steps_shown_ = steps_.size();
        }
    }
    /// Whether the test has a line that shows a wrong answer.
    [[nodiscard]] bool shows() const noexcept { return shown_ != nothing_shown; }

    /// Notes that the last line threw, and the line that requires that it does not throw.
    void note_throw(std::string requirement) {
        thrown_ = std::move(requirement);
        thrown_at_ = lines_.size();
        steps_thrown_ = steps_.size();
    }
    /// If nothing but ends of handles and transactions followed the last throw, the test ends with it: no error is
    /// allowed there.
    void end_at_throw() {
        auto last = lines_.size();
        while (last > 0 && lines_[last - 1].is_end) {
            --last;
        }
        if (!shows() && !thrown_.empty() && last == thrown_at_) {
            lines_.resize(thrown_at_);
            steps_.resize(steps_thrown_);
            rewrite(thrown_);
            end_here();
        }
    }

    void note(test_step step) { steps_.push_back(std::move(step)); }
    /// The steps cannot be repeated: a transaction was moved.
    void stop_noting() noexcept { is_repeatable_ = false; }
    /// The steps up to the line that shows a wrong answer; none if there is no such line or they cannot be repeated.
    [[nodiscard]] test_steps steps() const {
        return shows() && is_repeatable_
                   ? test_steps(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(steps_shown_))
                   : test_steps{};
    }
    /// What the last line of the test asks: "expect claim", "expect_error enqueue". Names and arguments are left out.
    [[nodiscard]] std::string question() const {
        if (!shows()) {
            return {};
        }
        const auto& code = lines_[shown_ - 1].code;
        auto at = code.find_first_of("0123456789", 0);
        while (at != std::string::npos &&
               code[std::min(code.find_first_not_of("0123456789", at), code.size() - 1)] != '.') {
            at = code.find_first_of("0123456789", code.find_first_not_of("0123456789", at));
        }
        const auto dot = at == std::string::npos ? code.size() : code.find('.', at);
        return code.substr(0, code.find('(')) + " " + code.substr(dot, code.find('(', dot) - dot);
    }

    /// The test: a function that makes the same calls on any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open(n)` opens a handle on store n, which is empty at first.\n";
        out +=
            shows() ? "" : "/// It repeats the calls and throws nothing: what is wrong is not the answer of a call.\n";
        out += "template <class Open>\nvoid replay(Open&& open) {\n"
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
    static constexpr auto nothing_shown = static_cast<std::size_t>(-1);
    std::size_t shown_ = nothing_shown; ///< lines
    std::string thrown_{};
    std::size_t thrown_at_ = 0; ///< lines
    test_steps steps_{};
    std::size_t steps_shown_ = 0;
    std::size_t steps_thrown_ = 0;
    bool is_repeatable_ = true;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/test_writer_transaction.hpp
// A transaction that writes its calls down as a test. Each call expects the answer of the model, up to the first answer
// or entry that differs. Where the model cannot predict, because transactions overlap, the test shows the answer that
// was seen.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Reads everything and writes down the first difference from the model.
template <class Reader>
void report_difference(const Reader& reader, const std::string& name, const model& wanted, tracked_store& known,
                       test_source& to) {
    constexpr std::size_t many = 150;
    known.is_checked = true;
    if (!to.can_predict() || wanted.records.size() > many) {
        return;
    }
    std::string reading;
    try {
        if (auto line = first_difference(reader, name, wanted, known.names, reading); !line.empty()) {
            to.add(std::move(line));
            to.end_here();
        }
    } catch (const error& e) {
        // A conflict may come at any time, and a closed transaction cannot be read.
        if (e.kind() != error_kind::conflict && e.kind() != error_kind::misuse) {
            to.add("expect_no_error([&] { std::ignore = " + reading + "; }); // seen: " + show(e.kind()));
            to.end_here();
        }
    }
}

/// Adds a query to those that are compared. Returns whether it is new. A query with `after` has one store's sequences,
/// and a wrong query has no answer, so these are not compared.
[[nodiscard]] inline bool is_new_query(const query& q, tracked_store& known, const test_source& to) {
    if (q.after != 0 || !to.can_predict()) {
        return false;
    }
    try {
        validate(q, limits{});
    } catch (const error&) {
        return false;
    }
    return known.names.add_query(as_code(q), q);
}

class test_writer_transaction final : public transaction_interface {
  public:
    test_writer_transaction(any_transaction tx, std::string name, const any_store& store, std::string handle,
                            std::shared_ptr<tracked_store> known, test_source& to)
        : tx_(std::move(tx)), name_(std::move(name)), store_(store), handle_(std::move(handle)),
          known_(std::move(known)), own_(known_->committed), source_(to) {
        note(test_step::kind::begin);
        if (++known_->open > 1) {
            source_.stop_predicting();
        }
    }
    test_writer_transaction(const test_writer_transaction&) = delete;
    test_writer_transaction& operator=(const test_writer_transaction&) = delete;
    ~test_writer_transaction() override {
        if (!is_done_) {
            source_.add_end(name_, is_closed_ ? "closed" : "rolled back");
            note(test_step::kind::end);
            close();
            known_->is_checked = false;
        }
    }

    // Reads are not written down: everything is compared after every call, and only a difference is written.
    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        if (is_new_query(q, *known_, source_)) {
            source_.note({.what = test_step::kind::list, .handle = handle_, .transaction = name_, .query = q});
            report_difference(tx_, name_, own_, *known_, source_);
        }
        return tx_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return tx_.next_due(queue);
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        limit_model(drafts.size());
        return write(
            name_ + ".enqueue(" + as_code("draft", drafts) + ", " + show(now) + ")",
            [again = std::vector(drafts.begin(), drafts.end()), now](auto& tx) { return tx.enqueue(again, now); },
            [&](const vouch::capabilities& can) { validate(drafts, can); }, [&] { return predicted(drafts, now); },
            [&] {
                auto receipts = tx_.enqueue(drafts, now);
                adopt_sequences(tx_, receipts);
                return receipts;
            });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        std::vector<entry> claimed;
        std::ignore = write(
            "tickets_of(" + name_ + ".claim(" + as_code(request) + "))",
            [request](auto& tx) { return tx.claim(request); },
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
            [again = std::vector(settles.begin(), settles.end()), now](auto& tx) { return tx.settle(again, now); },
            [&](const vouch::capabilities& can) { validate(settles, can.limits); },
            [&] { return one_by_one(settles, [&](const vouch::settle& s) { return own_.settle(s, now); }); },
            [&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return write(
            name_ + ".extend(" + as_code("ticket", tickets) + ", " + show(now) + ", " + show(lease) + ")",
            [again = std::vector(tickets.begin(), tickets.end()), now, lease](auto& tx) {
                return tx.extend(again, now, lease);
            },
            [&](const vouch::capabilities& can) { validate(tickets, now, lease, can.limits); },
            [&] { return one_by_one(tickets, [&](const ticket& t) { return own_.extend(t, now, lease); }); },
            [&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return write(
            name_ + ".nudge(" + members::value_of(wanted) + ", " + show(now) + ")",
            [wanted, now](auto& tx) { return tx.nudge(wanted, now); }, [](const vouch::capabilities&) {},
            [&] { return show(own_.nudge(wanted, now)); }, [&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        const std::string code(error);
        return write(
            name_ + ".cancel(" + members::value_of(wanted) + ", " + members::value_of(code) + ", " + show(now) + ")",
            [wanted, code, now](auto& tx) { return tx.cancel(wanted, code, now); },
            [&](const vouch::capabilities& can) { validate_error_code(error, can.limits); },
            [&] { return show(own_.cancel(wanted, code, now)); }, [&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return write(
            name_ + ".purge(" + as_code(request) + ")", [request](auto& tx) { return tx.purge(request); },
            [&](const vouch::capabilities& can) { validate(request, can.limits); },
            [&] { return show(own_.purge(request)); }, [&] { return tx_.purge(request); });
    }
    void commit() override {
        struct done {};
        const auto code = name_ + ".commit()";
        source_.add(code + ";");
        note(test_step::kind::call, [](any_transaction& tx) { tx.commit(); });
        perform(code + ";", refusal([](const vouch::capabilities&) {}), [&] {
            tx_.commit();
            return done{};
        });
        finish();
    }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        limit_model(drafts.size());
        const auto code = "enqueue_and_commit(" + name_ + ", " + as_code("draft", drafts) + ", " + show(now) + ")";
        source_.add("std::ignore = " + code + ";");
        note(test_step::kind::call, [again = std::vector(drafts.begin(), drafts.end()), now](any_transaction& tx) {
            tx.enqueue_last(again, now);
        });
        const auto due = refusal([&](const vouch::capabilities& can) { validate(drafts, can); });
        const auto wanted = due || !source_.can_predict() ? std::string() : predicted(drafts, now);
        auto receipts = perform("std::ignore = " + code + ";", due, [&] { return tx_.enqueue_last(drafts, now); });
        write_answer(code, due, wanted, show_briefly(receipts));
        adopt_sequences(store_, receipts);
        finish();
        return receipts;
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        const auto call = "claim_and_commit(" + name_ + ", " + as_code(request) + ")";
        source_.add("std::ignore = " + call + ";");
        note(test_step::kind::call, [request](any_transaction& tx) { std::ignore = tx.claim_last(request); });
        const auto due = refusal([&](const vouch::capabilities& can) { validate(request, can.limits); });
        auto after = own_;
        const bool predicts = !due && source_.can_predict();
        const auto wanted = predicts ? after.claim(request) : std::vector<entry>{};
        const bool must_leave = own_.has_claimed(wanted);
        auto claimed = perform("std::ignore = " + call + ";", due, [&] { return tx_.claim_last(request); });
        const auto seen = show_briefly(tickets_of(claimed));
        if (!due && (!claimed || must_leave)) { // the store may always leave a claim
            source_.rewrite("leave_" + call + ";" + (claimed ? " // seen: " + seen : ""));
            claimed ? source_.end_here() : void();
        } else {
            write_answer("tickets_of(" + call + ")", due, predicts ? show_briefly(tickets_of(wanted)) : "", seen);
            own_ = after;
        }
        finish();
        return claimed;
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        const auto arguments =
            "(" + name_ + ", " + as_code("vouch::settle", settles) + ", " + show(now) + ", " + as_code(request) + ")";
        const auto call = "settle_claim_and_commit" + arguments;
        source_.add("std::ignore = " + call + ";");
        note(test_step::kind::call, [again = std::vector(settles.begin(), settles.end()), now, request](
                                        any_transaction& tx) { std::ignore = tx.settle_last(again, now, request); });
        const auto due = refusal([&](const vouch::capabilities& can) {
            validate(settles, can.limits);
            validate(request, can.limits);
        });
        const bool predicts = !due && source_.can_predict();
        auto after = own_;
        const auto wanted = predicts ? predicted(settles, now, request, after) : settled_and_claimed{};
        const bool must_leave = wanted.claimed && own_.has_claimed(*wanted.claimed);
        auto done = perform("std::ignore = " + call + ";", due, [&] { return tx_.settle_last(settles, now, request); });
        if (wanted.claimed && (!done.claimed || must_leave)) { // the store may always leave a claim
            const auto left = "settle_leave_claim_and_commit" + arguments;
            write_answer(left, due, show_briefly(wanted.settlements), show_briefly(done.settlements));
            if (done.claimed) {
                source_.rewrite("std::ignore = " + left + "; // seen: " + show_briefly(tickets_of(done.claimed)));
                source_.end_here();
            }
        } else {
            write_answer(call, due, predicts ? show_briefly(wanted) : "", show_briefly(done));
            own_ = predicts && !wanted.claimed ? known_->committed : after; // if refused, it has rolled back
        }
        finish();
        return done;
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        auto name = source_.next_transaction();
        source_.add("auto " + name + " = std::move(" + name_ + ");");
        source_.stop_noting();
        auto out = std::make_unique<test_writer_transaction>(tx_.move_out(), std::move(name), store_, handle_, known_,
                                                             source_);
        out->own_ = own_;
        close();
        is_done_ = true;
        return out;
    }
    void move_assign(transaction_interface& from) override {
        auto& source = static_cast<test_writer_transaction&>(from);
        source_.add(name_ + " = std::move(" + source.name_ + ");");
        source_.stop_noting();
        source_.stop_predicting(); // the two may be of different stores
        tx_.move_assign(source.tx_);
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

    void limit_model(std::size_t more) {
        constexpr std::size_t entries_max = 2'000; // the model is simple, and slow with more
        if (own_.records.size() + more > entries_max) {
            source_.stop_predicting();
        }
    }

    [[nodiscard]] std::string predicted(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            known_->names.add(d);
        }
        return one_by_one(drafts, [&](const draft& d) { return own_.enqueue(d, now); });
    }

    /// Applies the settles to `own_`. If none is refused, `after` is what it is after the claim.
    [[nodiscard]] settled_and_claimed predicted(std::span<const vouch::settle> settles, time_point now,
                                                const claim_request& request, model& after) {
        settled_and_claimed out;
        for (const auto& s : settles) {
            out.settlements.push_back(own_.settle(s, now));
        }
        if (all_applied(out.settlements)) {
            after = own_;
            out.claimed = after.claim(request);
        }
        return out;
    }

    /// The store chooses the sequences. `reader` sees them.
    template <class Reader>
    void adopt_sequences(const Reader& reader, const std::vector<receipt>& receipts) {
        if (!source_.can_predict()) {
            return;
        }
        for (auto& r : own_.records) {
            for (const auto& one : receipts) {
                const bool is_new = one.what == receipt::kind::inserted && one.id == r.entry.id;
                if (const auto stored = is_new ? reader.find(one.id) : std::nullopt) {
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
                source_.note_throw("expect_no_error([&] { " + statement + " }); // seen: " + show(e.kind()));
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

    /// `again(tx)` makes the same call on another transaction.
    template <class Again, class Check, class Ask, class Call>
    std::invoke_result_t<Call&> write(const std::string& code, Again again, const Check& check, const Ask& ask,
                                      const Call& call) {
        source_.add("std::ignore = " + code + ";");
        note(test_step::kind::call, [again = std::move(again)](any_transaction& tx) { std::ignore = again(tx); });
        const auto due = refusal(check);
        const auto wanted = due || !source_.can_predict() ? std::string() : ask();
        auto answer = perform("std::ignore = " + code + ";", due, call);
        write_answer(code, due, wanted, show_briefly(answer));
        report_difference(tx_, name_, own_, *known_, source_);
        report_difference(store_, handle_, known_->committed, *known_, source_);
        return answer;
    }

    /// `wanted` is empty if the model cannot predict the answer.
    void write_answer(const std::string& code, std::optional<error_kind> due, const std::string& wanted,
                      const std::string& seen) {
        if (wanted.empty() && !due) {
            source_.rewrite("std::ignore = " + code + "; // " + seen);
        } else if (!due) {
            source_.rewrite("expect(" + code + ", " + as_literal(wanted) + ");" +
                            (seen == wanted ? "" : " // seen: " + seen));
        }
        if (!wanted.empty() && seen != wanted) {
            source_.end_here();
        }
    }

    /// The transaction has committed.
    void finish() {
        close();
        is_done_ = true;
        known_->committed = own_;
        report_difference(store_, handle_, own_, *known_, source_);
    }

    void note(test_step::kind what, std::function<void(any_transaction&)> repeat = {}) {
        source_.note({.what = what, .handle = handle_, .transaction = name_, .repeat = std::move(repeat)});
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/test_writer.hpp
// A store that writes the calls on another store down as a test, with the transactions of `test_writer_transaction.hpp`.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class test_writer_store final : public store_interface {
  public:
    test_writer_store(any_store store, std::shared_ptr<tracked_store> known, test_source& to)
        : store_(std::move(store)), known_(std::move(known)), name_(to.next_handle()), source_(to) {
        source_.add("auto " + name_ + " = open(" + std::to_string(known_->number) + ");");
        source_.note({.what = test_step::kind::open, .handle = name_, .store = known_->number});
        known_->is_checked = false;
    }
    test_writer_store(const test_writer_store&) = delete;
    test_writer_store& operator=(const test_writer_store&) = delete;
    ~test_writer_store() override {
        source_.add_end(name_, "closed");
        source_.note({.what = test_step::kind::close, .handle = name_});
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return checked_store().find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        if (is_new_query(q, *known_, source_)) {
            source_.note({.what = test_step::kind::list, .handle = name_, .query = q});
            known_->is_checked = false;
        }
        return checked_store().list(q);
    }
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
    [[nodiscard]] bool is_committing() const override { return store_.is_committing(); }
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
    ~trial() {
        for (const auto& one : passing_) {
            abandon(one.where);
        }
        abandon(home_);
    }

    /// Opens a handle on the trial's own location. Further calls open further handles on the same work.
    [[nodiscard]] any_store open() { return open(home_); }
    [[nodiscard]] any_store open(const location& p) {
        auto store = context_.open(p);
        return source_ == nullptr ? store : detail::write_test(store, *source_, p.directory().string());
    }
    /// Opens the only handle on a location that is not opened again, so that what is stored there can be removed when the
    /// handle is gone. Removes what earlier ones have left: a check may open hundreds.
    [[nodiscard]] any_store open(location&& fresh) {
        std::erase_if(passing_, [this](const passing& one) {
            const bool is_over = one.handle.expired();
            if (is_over) {
                abandon(one.where);
            }
            return is_over;
        });
        auto store = context_.open(fresh);
        passing_.push_back({store.handle(), std::move(fresh)});
        const auto& p = passing_.back().where;
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
    /// A location with a single handle.
    struct passing {
        std::weak_ptr<const store_interface> handle;
        location where;
    };

    detail::run_context& context_;
    detail::random_source random_;
    std::uint64_t seed_;
    detail::test_source* source_;
    location home_;
    std::vector<passing> passing_{};
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
auto repeatedly(Store& store, Work&& work) {
    for (int left = conflicts_max;; --left) {
        try {
            auto tx = store.begin();
            return work(tx);
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || e.is_in_doubt()) {
                throw;
            }
            if (left == 0) {
                fail_endlessly();
            }
        }
    }
}

/// The same for work that keeps what it has read, such as sequences: it must be done again after every conflict.
template <class Store, class Work>
auto from_begin(Store& store, Work&& work) {
    const shown_conflicts raw;
    return repeatedly(store, work);
}

/// As `vouch::transact`, which it hides from checks, but with more tries: a store may have many conflicts.
template <class Work>
auto transact(any_store& store, Work&& work) {
    return repeatedly(store, [&](auto& tx) {
        if constexpr (std::is_void_v<decltype(work(tx))>) {
            work(tx);
            tx.commit();
        } else {
            auto result = work(tx);
            tx.commit();
            return result;
        }
    });
}

/// If the store commits with the last operation of a transaction, this is one operation, so that all checks use it.
inline receipt put(any_store& store, const draft& d, time_point now = at(0)) {
    const std::span<const draft> one(&d, 1);
    if (store.is_committing()) {
        return repeatedly(store, [&](auto& tx) { return tx.enqueue_last(one, now); }).front();
    }
    return transact(store, [&](auto& tx) { return tx.enqueue(one, now); }).front();
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

/// As `vouch::claim`: in one operation, if the store has it and does not leave the claim to another transaction.
[[nodiscard]] inline std::vector<entry> take(any_store& store, time_point now, claim_options how = {}) {
    const auto wanted = request(now, std::move(how));
    if (store.is_committing()) {
        if (auto claimed = repeatedly(store, [&](auto& tx) { return tx.claim_last(wanted); })) {
            return std::move(*claimed);
        }
    }
    return transact(store, [&](auto& tx) { return tx.claim(wanted); });
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

/// If the store settles, claims and commits in one operation, this is one, with a claim that finds nothing, so that all
/// checks use it.
inline settlement settle(any_store& store, const ticket& t, const outcome& o, time_point now = at(0)) {
    if (store.is_committing()) {
        const std::array settles{vouch::settle{t, o}};
        const auto nowhere = request(at(0), {.queue = "a queue without entries"});
        return repeatedly(store, [&](auto& tx) { return tx.settle_last(settles, now, nowhere); }).settlements.front();
    }
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

/// What can be read with the names that checks use: the entries of queues "q" and "r", also by id and by parent; keys "k" and
/// "l"; groups "g" and "h"; and that other ids up to 10 are absent.
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
    std::set<id> ids; // those of entries, and some that may be absent; each takes a call, so there are few
    std::set<id> parents{id_of(1)};
    for (std::uint64_t n = 1; n <= 10; ++n) {
        ids.insert(id_of(n));
    }
    for (const auto& list : out.listed) {
        for (const auto& e : list) {
            ids.insert(e.id);
            parents.insert(e.parent);
        }
    }
    for (const auto& one : ids) {
        if (auto e = reader.find(one)) {
            out.found.push_back(std::move(*e));
        }
    }
    for (const auto& one : parents) {
        if (!one.is_nil()) {
            add(query::children(one));
        }
    }
    return out;
}

/// Whether the wake number of a queue changes, at once or within a second.
[[nodiscard]] inline bool wakes_change(any_store& store, std::string_view queue, std::uint64_t seen) {
    using clock = std::chrono::steady_clock;
    for (const auto until = clock::now() + std::chrono::seconds{1}; store.wakes(queue) == seen;) {
        if (clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
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
    for (const std::string name : {"q", "Q", "q ", "qq", "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x93\xa6", "7", "07"}) {
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
    for (const auto& [name, call] : invalid_uses) {
        const auto& what = name; // a lambda cannot capture a structured binding
        const auto& use = call;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            put_in(tx, draft_of(7));
            const auto own = snapshot_of(tx);
            t.throws(error_kind::invalid_argument, std::string(what) + " with an invalid argument", [&] { use(tx); });
            unchanged(tx, own, std::string(what) + " with an invalid argument changes nothing");
            unchanged(store, before, std::string(what) + " with an invalid argument commits nothing");
            put_in(tx, draft_of(8));
            const auto whole = snapshot_of(tx);
            tx.commit();
            unchanged(store, whole, "what was written before and after an invalid argument is committed");
        });
    }
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

inline void committing_declared(trial& t) {
    const bool has_operations = t.open().is_committing();
    t.expect(has_operations || !t.can().committing,
             "a store that declares committing has transactions with enqueue_and_commit, claim_and_commit and "
             "settle_claim_and_commit");
    t.expect(
        !has_operations || t.can().committing,
        "a store whose transactions have enqueue_and_commit, claim_and_commit and settle_claim_and_commit declares "
        "committing");
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
    clause{"CAP-04", layer::examples, level::must, needs::nothing,
           "A store declares committing exactly if its transactions have enqueue_and_commit, claim_and_commit and "
           "settle_claim_and_commit.",
           capability_checks::committing_declared},
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

// ---- vouch/conformance/clauses/committing.hpp
// The last operation of a transaction together with its commit: `enqueue_and_commit`, `claim_and_commit` and
// `settle_claim_and_commit`, which are `enqueue_last`, `claim_last` and `settle_last` of `any_transaction`.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_checks {

using namespace transaction_checks;
using std::optional;
using std::string;
using std::vector;

inline vector<receipt> enqueue_last(any_store& store, const vector<draft>& drafts, time_point now = at(0)) {
    return repeatedly(store, [&](auto& tx) { return tx.enqueue_last(drafts, now); });
}

[[nodiscard]] inline optional<vector<entry>> claim_last(any_store& store, const claim_request& wanted) {
    return repeatedly(store, [&](auto& tx) { return tx.claim_last(wanted); });
}

/// Requires that two stores have the same entries, apart from their sequences.
inline void same(const any_store& seen, const any_store& expected, std::string_view what) {
    const auto a = ranked_snapshot_of(seen);
    if (const auto b = ranked_snapshot_of(expected); a != b) {
        auto [shown, wanted] = show_difference(a, b);
        trial::fail(string(what), std::move(shown), std::move(wanted));
    }
}

/// Batches for a furnished store.
[[nodiscard]] inline vector<vector<draft>> batches(const capabilities& can) {
    vector<vector<draft>> out{
        {},
        {draft_of(
            7, {.payload = "p", .due_at = at(70), .expires_at = at(99), .trail = {id_of(1)}, .headers = {{"h", "v"}}})},
        {draft_of(3)},
        {draft_of(7, {.key = "k"})},
        {draft_of(7, {.queue = "r", .key = "k"})},
        {draft_of(7, {.key = "m"}), draft_of(8, {.key = "m"}), draft_of(7), draft_of(9)},
        {draft_of(7, {.predecessor = id_of(5)}), draft_of(8, {.predecessor = id_of(5)})},
        {draft_of(7, {.predecessor = id_of(5)})},
        {draft_of(7, {.predecessor = id_of(1)})},
        {draft_of(7), draft_of(8, {.predecessor = id_of(20)}), draft_of(9)},
        {draft_of(7, {.result = "r"})},
        {draft_of(7, {.queue = "r", .parent = id_of(3)})},
    };
    if (can.lanes) {
        out.push_back({draft_of(7, {.lane = "x"}), draft_of(8, {.lane = "x"})});
    }
    if (can.groups) {
        out.push_back({draft_of(7, {.group = "g"})});
    }
    return out;
}

inline void enqueues_as_enqueue(trial& t) {
    for (const auto& batch : batches(t.can())) {
        auto one = furnished(t);
        auto other = furnished(t);
        const auto wanted = transact(other, [&](auto& tx) { return tx.enqueue(batch, at(60)); });
        t.equal(enqueue_last(one, batch, at(60)), wanted, "the receipts of enqueue_and_commit, and those of enqueue");
        same(one, other, "what enqueue_and_commit stores is what enqueue and commit store");
    }
}

/// What a transaction does before its last operation. The last one is about other queues than "q" and "r", and about
/// entries that a snapshot does not show.
inline constexpr std::array earlier{
    deed{"nothing", [](any_transaction&) {}},
    deed{"a read", [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); }},
    deed{"an enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"a settle", [](any_transaction& tx) { settle_third(tx, succeed{"done"}); }},
    deed{"every operation", everything},
};

inline void earlier_writes(trial& t) {
    for (const auto& [name, change] : earlier) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            tx.enqueue_last(std::array{draft_of(31, {.queue = "y"})}, at(0));
            unchanged(store, own, what + " and then enqueue_and_commit");
            t.expect(store.find(id_of(31)).has_value(), "the last draft is stored as well");
        });
        auto other = furnished(t);
        put(other, draft_of(30, {.queue = "z"}));
        from_begin(other, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            const bool is_claimed = tx.claim_last(request(at(0), {.queue = "z"})).has_value();
            unchanged(other, own, what + " and then claim_and_commit");
            t.equal(get(other, 30).state, is_claimed ? state::claimed : state::pending, "the entry to be claimed");
        });
        auto third = furnished(t);
        put(third, draft_of(30, {.queue = "z"}));
        const auto held = take_one(third, at(0), {.queue = "z"});
        from_begin(third, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            std::ignore =
                tx.settle_last(std::array{vouch::settle{held, succeed{}}}, at(0), request(at(0), {.queue = "z"}));
            unchanged(third, own, what + " and then settle_claim_and_commit");
            t.equal(get(third, 30).state, state::succeeded, "the entry to be settled");
        });
    }
}

/// Settles entry 3 of a furnished store, which is claimed with epoch 1, and claims.
inline void settle_third_last(any_transaction& tx, std::uint64_t epoch, outcome o, const claim_request& next) {
    std::ignore = tx.settle_last(std::array{vouch::settle{{id_of(3), epoch}, std::move(o)}}, at(20), next);
}

inline void all_misuse_at_last(trial& t, any_transaction& closed) {
    t.throws(error_kind::misuse, "enqueue_and_commit on a closed transaction",
             [&] { closed.enqueue_last(std::array{draft_of(15)}, at(0)); });
    t.throws(error_kind::misuse, "claim_and_commit on a closed transaction",
             [&] { std::ignore = closed.claim_last(request(at(200))); });
    t.throws(error_kind::misuse, "settle_claim_and_commit on a closed transaction",
             [&] { settle_third_last(closed, 1, succeed{}, request(at(200))); });
    all_misuse(t, closed);
}

/// The ways in which the three operations return, on a furnished store.
inline constexpr std::array endings{
    deed{"an insert", [](any_transaction& tx) { tx.enqueue_last(std::array{draft_of(7)}, at(0)); }},
    deed{"a duplicate", [](any_transaction& tx) { tx.enqueue_last(std::array{draft_of(1)}, at(0)); }},
    deed{"a claim", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60))); }},
    deed{"a claim of one",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.only = id_of(1)})); }},
    deed{"a claim of no entry", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(5))); }},
    deed{"a claim with limit 0",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.limit = 0})); }},
    deed{"a claim of an expired lease", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(200))); }},
    deed{"a settle and a claim", [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60))); }},
    deed{"a settle that is refused", [](any_transaction& tx) { settle_third_last(tx, 9, succeed{}, request(at(60))); }},
    deed{"a settle beside an expired lease",
         [](any_transaction& tx) {
             settle_third_last(tx, 1, retry{"e", at(300)}, request(at(200)));
         }},
    deed{"a settle and a claim of one",
         [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60), {.only = id_of(1)})); }},
    deed{"a commit", [](any_transaction& tx) { tx.commit(); }},
};

inline void closes(trial& t) {
    auto empty = t.open(t.fresh_location()); // first, so that a printed test is short
    auto first = empty.begin();
    first.enqueue_last(std::array{draft_of(1)}, at(0));
    all_misuse_at_last(t, first);
    for (const auto& [what, end] : endings) {
        auto store = furnished(t);
        auto tx = store.begin();
        end(tx);
        const auto before = snapshot_of(store);
        all_misuse_at_last(t, tx);
        unchanged(store, before, "the use of a transaction after " + string(what));
        t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
    }
    auto store = furnished(t);
    auto tx = store.begin();
    auto other = tx.move_out();
    all_misuse_at_last(t, tx);
    other.enqueue_last(std::array{draft_of(7)}, at(0));
    t.expect(store.find(id_of(7)).has_value(), "the transaction moved to can end with an enqueue");
}

inline constexpr std::array invalid_endings{
    deed{"enqueue_and_commit of one draft", [](any_transaction& tx) { tx.enqueue_last(std::array{draft{}}, at(0)); }},
    deed{"enqueue_and_commit of a batch",
         [](any_transaction& tx) {
             tx.enqueue_last(std::array{draft_of(9), draft{}}, at(0));
         }},
    deed{"claim_and_commit without a queue",
         [](any_transaction& tx) {
             std::ignore = tx.claim_last({.queue = "", .limit = 1, .now = at(60), .lease = duration{9}});
         }},
    deed{"claim_and_commit without a lease",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.lease = duration{0}})); }},
    deed{"settle_claim_and_commit with an error code that is too long",
         [](any_transaction& tx) {
             settle_third_last(tx, 1, retry{string(101, 'e'), at(0)}, request(at(60)));
         }},
    deed{"settle_claim_and_commit without a queue",
         [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60), {.queue = ""})); }},
    deed{"settle_claim_and_commit without a lease",
         [](any_transaction& tx) { settle_third_last(tx, 9, succeed{}, request(at(60), {.lease = duration{0}})); }},
};

inline void open_after_invalid_end(trial& t) {
    for (const auto& [name, call] : invalid_endings) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& use = call;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            put_in(tx, draft_of(7));
            const auto own = snapshot_of(tx);
            t.throws(error_kind::invalid_argument, what + " with an invalid argument", [&] { use(tx); });
            t.equal(tx.nudge(id_of(7), at(0)), verdict::repeated, "a nudge after " + what);
            unchanged(tx, own, what + " with an invalid argument changes nothing");
            unchanged(store, before, what + " with an invalid argument commits nothing");
            tx.enqueue_last(std::array{draft_of(30)}, at(0));
        });
        t.expect(store.find(id_of(7)) && store.find(id_of(30)), "what was written before and after " + what);
    }
}

} // namespace committing_checks

inline constexpr std::array committing{
    clause{
        "COMMIT-01", layer::examples, level::may, needs::committing,
        "enqueue_and_commit returns and stores what enqueue and commit do: inserted, duplicate, refused, single or in "
        "a batch.",
        committing_checks::enqueues_as_enqueue},
    clause{
        "COMMIT-02", layer::examples, level::may, needs::committing,
        "enqueue_and_commit, claim_and_commit and settle_claim_and_commit commit everything that their transaction has "
        "written before.",
        committing_checks::earlier_writes},
    clause{"COMMIT-03", layer::examples, level::may, needs::committing,
           "After enqueue_and_commit, claim_and_commit and settle_claim_and_commit the transaction is closed, whatever "
           "they return.",
           committing_checks::closes},
    clause{"COMMIT-04", layer::examples, level::may, needs::committing,
           "If enqueue_and_commit, claim_and_commit or settle_claim_and_commit gets an invalid argument, it writes and "
           "commits nothing, and the transaction is still open and keeps its earlier writes.",
           committing_checks::open_after_invalid_end},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/committing_claims.hpp
// `claim_and_commit`: what it claims, and when it leaves the claim to another transaction.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_claim_checks {

using namespace committing_checks;

/// In "q": 1 due at(15), 2 and 3 due at(13), 4 retrying from at(10), 5 due at(90), 6 claimed until at(100); in "r": 7.
[[nodiscard]] inline any_store with_due_entries(trial& t) {
    auto store = t.open(t.fresh_location());
    put_as(store, draft_of(6), state::claimed);
    put_as(store, draft_of(4, {.payload = "four"}), state::retrying);
    put(store, draft_of(1, {.payload = "one", .due_at = at(15), .trail = {id_of(9)}, .headers = {{"h", "v"}}}));
    put(store, draft_of(2, {.key = "k", .due_at = at(13)}));
    put(store, draft_of(3, {.due_at = at(13)}));
    put(store, draft_of(5, {.due_at = at(90)}));
    put(store, draft_of(7, {.queue = "r", .due_at = at(12)}));
    return store;
}

[[nodiscard]] inline vector<claim_request> requests() {
    vector<claim_request> out;
    for (const std::size_t limit : {0U, 1U, 2U, 3U}) {
        out.push_back(request(at(20), {.limit = limit}));
    }
    for (const int now : {0, 12, 13, 14, 15, 90}) {
        out.push_back(request(at(now)));
    }
    for (const std::uint64_t n : {1U, 5U, 6U, 7U, 20U}) {
        out.push_back(request(at(20), {.only = id_of(n)}));
    }
    out.push_back(request(at(20), {.queue = "r", .lease = duration{7}, .worker = "another"}));
    out.push_back(request(at(20), {.queue = "unused"}));
    return out;
}

[[nodiscard]] inline vector<entry> without_sequences(vector<entry> entries) {
    for (auto& e : entries) {
        e.sequence = 0;
    }
    return entries;
}

inline void claims_as_claim(trial& t) {
    for (const auto& wanted : requests()) {
        auto one = with_due_entries(t);
        auto other = with_due_entries(t);
        if (const auto claimed = claim_last(one, wanted)) {
            const auto expected = transact(other, [&](auto& tx) { return tx.claim(wanted); });
            t.equal(without_sequences(*claimed), without_sequences(expected),
                    "claimed by claim_and_commit, and by claim");
            same(one, other, "what claim_and_commit stores is what claim and commit store");
        } else {
            same(one, other, "if claim_and_commit returns nothing, it has claimed nothing");
        }
    }
}

/// In "q": 1 claimed until at(100), 2 due at(50), 3 due at(150).
inline void put_expiring(any_store& store) {
    put(store, draft_of(1));
    std::ignore = take_one(store, at(0));
    put(store, draft_of(2, {.due_at = at(50)}));
    put(store, draft_of(3, {.due_at = at(150)}));
}

/// In "q": 1 has lapsed once, was handed back and is due at(0), 2 due at(50).
inline void put_handed_back(any_store& store) {
    put(store, draft_of(1));
    const auto held = take_lapsed(store, 1, 1);
    trial::equal(settle(store, held, release{}, at(100)).verdict, verdict::applied, "the entry is handed back");
    put(store, draft_of(2, {.due_at = at(50)}));
}

inline void leaves_lapsed(trial& t) {
    for (const auto& wanted :
         {request(at(200)), request(at(200), {.limit = 1}), request(at(200), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_handed_back(store);
        const auto before = snapshot_of(store);
        t.expect(!claim_last(store, wanted),
                 "claim_and_commit returns nothing if it would claim an entry that has lapsed and was handed back");
        unchanged(store, before, "a claim_and_commit that returns nothing claims nothing");
    }
}

inline void leaves_expired(trial& t) {
    leaves_lapsed(t);
    for (const auto& wanted : {request(at(100)), request(at(100), {.limit = 2}), request(at(150)),
                               request(at(200), {.limit = 2}), request(at(100), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        const auto before = snapshot_of(store);
        const auto claimed = claim_last(store, wanted);
        t.expect(!claimed, "claim_and_commit returns nothing if it would take over an entry whose lease has expired");
        unchanged(store, before, "a claim_and_commit that returns nothing claims nothing");
        const auto later = transact(store, [&](auto& tx) { return tx.claim(wanted); });
        t.expect(!later.empty(), "another transaction can claim then");
    }
    for (const auto& wanted : {request(at(100), {.limit = 1}), request(at(99)), request(at(100), {.only = id_of(2)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        auto claimed = claim_last(store, wanted);
        if (!claimed) {
            claimed = transact(store, [&](auto& tx) { return tx.claim(wanted); });
        }
        t.equal(numbers(*claimed), list_of{2}, "claimed beside an entry that it would not take over");
    }
}

inline void nothing_still_commits(trial& t) {
    for (const auto& [name, change] : earlier) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        put(store, draft_of(30, {.queue = "z"}));
        std::ignore = take_one(store, at(0), {.queue = "z"});
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            const auto claimed = tx.claim_last(request(at(100), {.queue = "z"}));
            t.expect(!claimed, "nothing is returned, because a lease has expired");
            unchanged(store, own, what + ", in a transaction that left its claim to another one");
            t.equal(get(store, 30).epoch, 1U, "the epoch of the entry with an expired lease");
        });
    }
}

} // namespace committing_claim_checks

inline constexpr std::array committing_claims{
    clause{"COMMIT-05", layer::examples, level::may, needs::committing,
           "claim_and_commit claims and returns what claim does, or it claims nothing and returns nothing.",
           committing_claim_checks::claims_as_claim},
    clause{"COMMIT-06", layer::examples, level::may, needs::committing,
           "claim_and_commit claims nothing and returns nothing if an entry that it would claim would have lapses "
           "above 0.",
           committing_claim_checks::leaves_expired},
    clause{"COMMIT-07", layer::examples, level::may, needs::committing,
           "A claim_and_commit that returns nothing commits the earlier writes of its transaction.",
           committing_claim_checks::nothing_still_commits},
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
                           "e ";
        while (name.size() + 2 < most) {
            name += "\xc3\xa9";
        }
        name.resize(most - 1, ' ');
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

// ---- vouch/conformance/clauses/sizes_values.hpp
// Sizes: contents, names, headers and trails around the sizes at which stores keep them differently, and at their limits.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

using fidelity_checks::comes_back;

/// Requires that a value of this size is kept in every field that holds contents. Uses the numbers from `n` on.
inline void keeps_content(trial& t, any_store& store, std::uint64_t n, std::size_t size) {
    const auto content = pattern(size);
    const auto what = " of " + show(size) + " bytes";
    std::vector<draft> drafts = numbered(6, draft_of(n));
    drafts[0].payload = drafts[1].progress = content;
    drafts[5].result = content;
    const std::array outcomes{outcome{release{}}, outcome{release{}}, outcome{advance{content, at(0)}},
                              outcome{succeed{content}}, outcome{bury{"e", content}}};
    transact(store, [&](auto& tx) {
        tx.enqueue(drafts, at(0));
        std::vector<vouch::settle> batch;
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            const auto taken = tx.claim(request(at(0), {.only = drafts[i].id}));
            t.equal(taken.size(), 1, "claimed");
            t.equal(taken.front().payload, drafts[i].payload, "the payload that is claimed," + what);
            batch.push_back({ticket_of(taken.front()), outcomes[i]});
        }
        return tx.settle(batch, at(0));
    });
    t.equal(get(store, n).payload, content, "a payload" + what);
    t.equal(get(store, n + 1).progress, content, "the progress of a draft" + what);
    t.equal(get(store, n + 2).progress, content, "the progress of an advance" + what);
    t.equal(get(store, n + 3).result, content, "the result of a success" + what);
    t.equal(get(store, n + 4).result, content, "the result of a burial" + what);
    t.equal(get(store, n + 5).result, content, "the result of a draft" + what);
}

/// The sizes, and a number for the entries of each.
inline constexpr std::array content_sizes{1'023U, 1'024U, 1'025U, 65'534U, 65'535U, 65'536U, 65'537U};

inline void contents_of_all_sizes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 1;
    for (const std::size_t size : content_sizes) {
        keeps_content(t, store, n, size);
        n += 10;
    }
}

inline void contents_at_the_limit(trial& t) {
    auto store = t.open();
    constexpr std::size_t tried_max = 16U * 1024 * 1024; // although a store may declare higher limits
    const auto& limit = t.can().limits;
    const auto most = std::min({limit.payload_max, limit.progress_max, limit.result_max, tried_max});
    keeps_content(t, store, 1, most - 1);
    keeps_content(t, store, 11, most);
}

/// A valid name of this size, in which the letter and the last character are the caller's.
[[nodiscard]] inline std::string long_name(std::size_t size, char letter, char last) {
    std::string out(size, letter);
    out.back() = last;
    return out;
}

/// A draft with a name of this size in every field that holds one, and all headers and trail ids that are allowed.
[[nodiscard]] inline draft largest_draft(std::uint64_t n, std::size_t size, const limits& limit,
                                         const capabilities& can) {
    const auto last = static_cast<char>('a' + n);
    auto d = draft_of(n, {.queue = long_name(size, 'q', last),
                          .topic = long_name(size, 't', last),
                          .key = long_name(size, 'k', last),
                          .group = can.groups ? long_name(size, 'g', last) : "",
                          .lane = can.lanes ? long_name(size, 'l', last) : ""});
    for (std::uint64_t i = 0; i < limit.headers_max; ++i) {
        d.headers.emplace_back(long_name(size, 'h', static_cast<char>('0' + i)), pattern(limit.header_value_max - i));
    }
    for (std::uint64_t i = 0; i < limit.trail_max; ++i) {
        d.trail.push_back(id_of(100 + i));
    }
    return d;
}

/// Enqueues drafts with the largest names, and claims and ends them with the largest worker and error.
inline void put_largest(trial& t, any_store& store) {
    const auto& limit = t.can().limits;
    std::uint64_t n = 0;
    for (const auto size : {limit.name_max - 1, limit.name_max, limit.name_max}) {
        n += 1;
        const auto d = largest_draft(n, size, limit, t.can());
        comes_back(t, store, d);
        const auto worker = long_name(size, 'w', 'z');
        const auto held = take_one(store, at(1), {.queue = d.queue, .worker = worker});
        t.equal(get(store, n).worker, worker, "the name of a worker of " + show(size) + " bytes");
        const auto code = long_name(n == 1 ? limit.error_max - 1 : limit.error_max, 'e', 'z');
        settle(store, held, n == 2 ? outcome{retry{code, at(2)}} : outcome{bury{code, {}}}, at(1));
        t.equal(get(store, n).last_error, code, "the longest error code of a settle");
    }
    const auto code = long_name(limit.error_max, 'c', 'z');
    cancel(store, id_of(2), at(2), code);
    t.equal(get(store, 2).last_error, code, "the longest error code of a cancel");
}

inline void longest_names(trial& t) {
    auto store = t.open();
    put_largest(t, store);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        const auto e = get(store, n);
        t.equal(numbers(store.list(query::keyed(e.queue, e.key))), list_of{n}, "listed by the longest key");
        t.equal(numbers(store.list(query::dead(e.queue))), list_of{n}, "listed by the longest queue");
        auto by_topic = query::all(e.queue);
        by_topic.topic = e.topic;
        t.equal(numbers(store.list(by_topic)), list_of{n}, "listed by the longest topic");
        if (t.can().groups) {
            t.equal(numbers(store.list(query::members(e.group))), list_of{n}, "listed by the longest group");
        }
    }
}

inline void large_values_survive(trial& t) {
    std::vector<std::optional<entry>> before;
    const auto all = [&](const any_store& store) {
        std::vector<std::optional<entry>> out;
        for (std::uint64_t n = 1; n <= 10 * content_sizes.size() + 20; ++n) {
            out.push_back(store.find(id_of(n)));
        }
        return out;
    };
    {
        auto store = t.open();
        put_largest(t, store);
        std::uint64_t n = 10;
        for (const std::size_t size : content_sizes) {
            keeps_content(t, store, n, size);
            n += 10;
        }
        before = all(store);
    }
    const auto again = t.open();
    const auto after = all(again);
    for (std::size_t i = 0; i < after.size(); ++i) {
        t.equal(after[i], before[i], "an entry with large values, after a reopen");
    }
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_values{
    clause{"SIZE-22", layer::examples, level::must, needs::nothing,
           "Payloads, progress and results of about 1 KiB and 64 KiB are kept to the byte, whichever call brings them.",
           sizes_checks::contents_of_all_sizes},
    clause{"SIZE-23", layer::examples, level::must, needs::nothing,
           "Payloads, progress and results of the largest size are kept to the byte, whichever call brings them.",
           sizes_checks::contents_at_the_limit},
    clause{"SIZE-24", layer::examples, level::must, needs::nothing,
           "The longest names, error codes, header values, headers and trails are kept to the last byte and item.",
           sizes_checks::longest_names},
    clause{"SIZE-25", layer::examples, level::may, needs::durable, "Large values and long names survive a reopen.",
           sizes_checks::large_values_survive},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/replay/shortened.hpp
// Shortens a test that shows a wrong answer: leaves out transactions, handles and calls as long as the last line still
// shows a wrong answer to the same question. Every attempt is run on fresh stores.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr auto* threw_where_none_is_allowed = "the store threw an error where none is allowed";

[[nodiscard]] inline failure unexpected_error(const error& e) {
    return {.what = threw_where_none_is_allowed, .seen = show(e.kind()) + ": " + e.what(), .expected = "no error"};
}

/// Repeats the steps of a test on fresh stores and writes them down as a test again.
class test_repeater {
  public:
    explicit test_repeater(run_context& context) : context_(context) {}
    test_repeater(const test_repeater&) = delete;
    test_repeater& operator=(const test_repeater&) = delete;
    ~test_repeater() {
        transactions_.clear();
        handles_.clear();
        for (const auto& [number, where] : locations_) {
            if (context_.hooks.forget) {
                context_.hooks.forget(where);
            }
            std::error_code ignored;
            std::filesystem::remove_all(where.directory(), ignored);
        }
    }

    /// Stops where an answer is wrong. `ends_with_error`: a call that throws at the end is wrong, too.
    [[nodiscard]] test_source run(const test_steps& steps, bool ends_with_error) {
        for (const auto& step : steps) {
            try {
                run(step);
            } catch (const error&) { // NOLINT(bugprone-empty-catch): the source has it
            }
            if (source_.shows()) {
                break;
            }
        }
        if (ends_with_error) {
            source_.end_at_throw();
        }
        return source_;
    }

  private:
    void run(const test_step& step) {
        const auto handle = handles_.find(step.handle);
        const auto tx = transactions_.find(step.transaction);
        using kind = test_step::kind;
        if (step.what == kind::open) {
            open(step);
        } else if (step.what == kind::begin && handle != handles_.end()) {
            transactions_.try_emplace(step.transaction, handle->second.begin());
        } else if (step.what == kind::call && tx != transactions_.end()) {
            step.repeat(tx->second);
        } else if (step.what == kind::list && tx != transactions_.end()) {
            std::ignore = tx->second.list(step.query);
        } else if (step.what == kind::list && step.transaction.empty() && handle != handles_.end()) {
            std::ignore = handle->second.list(step.query);
        } else if (step.what == kind::end && tx != transactions_.end()) {
            transactions_.erase(tx);
            if (handle != handles_.end()) {
                compare(handle->second);
            }
        } else if (step.what == kind::close && handle != handles_.end()) {
            handles_.erase(handle);
        }
    }

    void open(const test_step& step) {
        auto where = locations_.find(step.store);
        if (where == locations_.end()) {
            where = locations_.emplace(step.store, context_.locations->fresh()).first;
        }
        const auto opened = handles_.emplace(
            step.handle, write_test(context_.open(where->second), source_, std::to_string(step.store)));
        compare(opened.first->second);
    }

    /// A read compares the store with the model.
    static void compare(const any_store& store) { std::ignore = store.counts("q"); }

    run_context& context_;
    test_source source_{}; // before what writes to it
    std::map<std::size_t, location> locations_{};
    std::map<std::string, any_store> handles_{};
    std::map<std::string, any_transaction> transactions_{};
};

class test_shortener {
  public:
    test_shortener(run_context& context, const test_source& longest, bool ends_with_error)
        : context_(context), best_(longest), steps_(longest.steps()), ends_with_error_(ends_with_error) {}

    [[nodiscard]] test_source run() {
        if (!steps_.empty() && keeps(steps_)) { // or the failure is not one of these calls alone
            leave_out(names([](const test_step& s) { return s.transaction; }),
                      [](const test_step& s) { return s.transaction; });
            leave_out(names([](const test_step& s) { return s.handle; }), [](const test_step& s) { return s.handle; });
            leave_out_calls();
        }
        return best_;
    }

  private:
    static constexpr std::size_t attempts_max = 150;

    /// Whether these steps show a wrong answer to the same question. If so, they are the best so far.
    bool keeps(const test_steps& steps) {
        if (attempts_++ == attempts_max) {
            return false;
        }
        auto again = test_repeater(context_).run(steps, ends_with_error_);
        if (again.question() != best_.question()) {
            return false;
        }
        best_ = std::move(again);
        steps_ = steps;
        return true;
    }

    template <class Name>
    [[nodiscard]] std::vector<std::string> names(const Name& name) const {
        std::vector<std::string> out;
        for (const auto& step : steps_) {
            if (!name(step).empty() && std::find(out.begin(), out.end(), name(step)) == out.end()) {
                out.push_back(name(step));
            }
        }
        return out;
    }

    /// Tries to leave out all steps with some of these names: first many at a time, then one by one.
    template <class Name>
    void leave_out(std::vector<std::string> all, const Name& name) {
        for (auto size = all.size(); size > 0; size /= 2) {
            for (std::size_t at = 0; at < all.size() && attempts_ < attempts_max;) {
                const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
                const auto last = first + static_cast<std::ptrdiff_t>(std::min(size, all.size() - at));
                const std::set<std::string> without(first, last);
                auto fewer = steps_;
                std::erase_if(fewer, [&](const test_step& s) { return without.contains(name(s)); });
                if (keeps(fewer)) {
                    all.erase(first, last);
                } else {
                    at += size;
                }
            }
        }
    }

    void leave_out_calls() {
        for (auto at = steps_.size(); at-- > 0 && attempts_ < attempts_max;) {
            if (steps_[at].what == test_step::kind::call) {
                auto fewer = steps_;
                fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
                keeps(fewer);
            }
        }
    }

    run_context& context_;
    test_source best_;
    test_steps steps_;
    bool ends_with_error_;
    std::size_t attempts_ = 0;
};

/// A test as short as possible that shows the failure, or the given one.
[[nodiscard]] inline test_source shortened(run_context& context, test_source longest, const failure& why) {
    const bool ends_with_error = why.what == threw_where_none_is_allowed;
    if (ends_with_error) {
        longest.end_at_throw();
    }
    try {
        return test_shortener(context, longest, ends_with_error).run();
    } catch (const std::exception&) { // for instance, the store cannot be opened any more
        return longest;
    }
}

/// The text of that test. If it is too long to be useful, a sentence that says so.
[[nodiscard]] inline std::string shortened_text(run_context& context, test_source longest, const failure& why) {
    constexpr std::size_t size_max = 64 * 1024;
    auto text = shortened(context, std::move(longest), why).text();
    return text.size() <= size_max ? text
                                   : "A test that shows it has " + std::to_string(text.size()) +
                                         " bytes, too many to print. The command above repeats the check.\n";
}

} // namespace conformance::detail
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
            smallest.emplace(list, unexpected_error(e));
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

    /// From now on every commit is a call of its own. If the process dies in another call, its transaction must be lost.
    void commit_apart() noexcept { has_last_operations_ = false; }

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
            const bool commits = d.chance(70);
            if (commits && has_last_operations_ && store_->is_committing() && d.chance(50)) {
                end_with_last(d);
            } else {
                do_end(commits);
            }
            compare_some(*store_, committed_, d);
        }
    }

    void do_end(bool commit) {
        if (tx_ && commit) {
            is_committing_ = true;
            tx_->commit();
            note_commit();
        }
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void note_commit() {
        is_committing_ = false;
        committed_ = own_;
        last_committed_sequence_ = last_sequence_;
    }

    /// Commits with one more operation.
    void end_with_last(random_source& d) {
        switch (d.below(3)) {
        case 0: enqueue_last(d); break;
        case 1: claim_last(d); break;
        default: settle_last(d);
        }
        note_commit();
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

    /// Drafts, and the receipts that the model gives.
    [[nodiscard]] std::pair<std::vector<draft>, std::vector<receipt>> some_drafts(random_source& d) {
        std::vector<draft> drafts(1 + d.below(3));
        std::vector<receipt> expected;
        for (auto& one : drafts) {
            one = generate(d).some_draft();
            expected.push_back(own_.enqueue(one, now_));
            count("enqueue", name_of(expected.back().what));
        }
        return {std::move(drafts), std::move(expected)};
    }

    void enqueue(random_source& d) {
        const auto [drafts, expected] = some_drafts(d);
        trial::equal(tx_->enqueue(drafts, now_), expected, "receipts of an enqueue");
        adopt_sequences(*tx_, expected);
    }

    void enqueue_last(random_source& d) {
        const auto [drafts, expected] = some_drafts(d);
        trial::equal(tx_->enqueue_last(drafts, now_), expected, "receipts of enqueue_and_commit");
        adopt_sequences(*store_, expected);
    }

    /// The store chooses the sequences, but they must increase.
    template <class Reader>
    void adopt_sequences(const Reader& reader, const std::vector<receipt>& receipts) {
        std::ptrdiff_t inserted = 0;
        for (const auto& one : receipts) {
            inserted += one.what == receipt::kind::inserted ? 1 : 0;
        }
        for (auto r = own_.records.end() - inserted; r != own_.records.end(); ++r) {
            const auto stored = reader.find(r->entry.id);
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

    void claim_last(random_source& d) {
        const auto request = generate(d).some_claim();
        compare_last_claim(request, tx_->claim_last(request), "claim_and_commit");
    }

    /// Compares the last claim of a transaction, which the store may leave to another one.
    void compare_last_claim(const claim_request& request, const std::optional<std::vector<entry>>& claimed,
                            const std::string& by) {
        auto after = own_;
        const auto expected = after.claim(request);
        const bool must_leave = own_.has_claimed(expected);
        count(by, !claimed ? "left" : claimed->empty() ? "nothing" : "something");
        trial::expect(!claimed || !must_leave, by + " leaves the claim of an expired lease");
        if (claimed) {
            trial::equal(*claimed, expected, "entries claimed by " + by);
            own_ = std::move(after);
            for (const auto& e : expected) {
                tickets_.push_back(ticket_of(e));
            }
        }
    }

    /// Settles, and the settlements that the model gives.
    [[nodiscard]] std::pair<std::vector<vouch::settle>, std::vector<settlement>> some_settles(random_source& d) {
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
        return {std::move(settles), std::move(expected)};
    }

    void settle(random_source& d) {
        const auto [settles, expected] = some_settles(d);
        trial::equal(tx_->settle(settles, now_), expected, "settlements");
    }

    void settle_last(random_source& d) {
        const std::string by = "settle_claim_and_commit";
        const auto request = generate(d).some_claim();
        const auto [settles, expected] = some_settles(d);
        const auto done = tx_->settle_last(settles, now_, request);
        trial::equal(done.settlements, expected, "settlements of " + by);
        if (all_applied(expected)) {
            compare_last_claim(request, done.claimed, by);
        } else {
            count(by, "refused");
            trial::expect(!done.claimed, by + " claims nothing if a settle is refused");
            own_ = committed_;
            last_sequence_ = last_committed_sequence_;
        }
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
    bool has_last_operations_ = true; // of a store that has them
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

/// Ends the process. The handles and the transaction are open at that moment; `close` closes them. If the fixture has no
/// `crash`, the files are restored as they were then, so that closing the handles does not change them.
template <class Close>
void end_process(trial& t, const location& p, Close&& close) {
    if (t.hooks().crash) {
        t.hooks().crash(p);
        close();
    } else {
        auto image = p.directory();
        image += ".image";
        std::filesystem::copy(p.directory(), image, std::filesystem::copy_options::recursive);
        close();
        std::filesystem::remove_all(p.directory());
        std::filesystem::rename(image, p.directory());
    }
    t.tally().crash_points += 1;
}

/// Ends the process and starts another one.
inline void die(trial& t, const location& p, model_run& s) {
    end_process(t, p, [&] { s.close(); });
    s.reopen(t.context().open(p));
}

/// Without the hook only files can show what survives a crash.
inline void require_files(trial& t) {
    if (!t.can().durable || t.hooks().crash) {
        return;
    }
    const auto p = t.fresh_location();
    bool has_files = false;
    {
        auto store = t.context().open(p);
        put(store, draft_of(1));
        has_files = !std::filesystem::is_empty(p.directory());
    }
    t.abandon(p);
    if (!has_files) {
        throw untested{"the store has no files in the folder of its location, and the fixture has no crash"};
    }
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
        s.commit_apart();
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

inline void at_boundaries(trial& t) {
    require_files(t);
    until_enough(t, between);
}

inline void at_seams(trial& t) {
    if (!t.hooks().seam) {
        throw untested{"the fixture has no seam"};
    }
    require_files(t);
    until_enough(t, inside);
}

/// The entries of queue q, with their payloads.
[[nodiscard]] inline std::vector<entry> stored_in(const any_store& store) {
    auto all = query::all("q");
    all.payloads = true;
    return store.list(all);
}

/// Values of several sizes in all fields are committed, another one is not, and the process dies.
inline void with_large_values(trial& t) {
    require_files(t);
    const auto p = t.fresh_location();
    std::uint64_t n = 1;
    for (const std::size_t size : sizes_checks::content_sizes) {
        std::optional<any_store> store(t.context().open(p));
        sizes_checks::keeps_content(t, *store, n, size);
        const auto before = stored_in(*store);
        {
            std::optional<any_transaction> tx(store->begin());
            tx->enqueue(std::array{draft_of(1000, {.payload = pattern(size)})}, at(0));
            end_process(t, p, [&] {
                tx.reset();
                store.reset();
            });
        }
        const auto after = stored_in(t.context().open(p));
        t.equal(after.size(), before.size(), "the number of entries after the death of the process");
        for (std::size_t i = 0; i < after.size(); ++i) {
            t.equal(after[i], before[i], "an entry with large values after the death of the process");
        }
        n += 10;
    }
    t.abandon(p);
}

} // namespace crash_checks

inline constexpr std::array crashes{
    clause{"CRASH-01", layer::crashes, level::must, needs::nothing,
           "If a process dies between two calls, everything committed is stored byte for byte, and nothing else.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "If a process dies inside a call, its transaction is stored as a whole or not at all.",
           crash_checks::at_seams},
    clause{"CRASH-03", layer::crashes, level::must, needs::nothing,
           "If a process dies, committed payloads, progress and results of all sizes are stored to the byte, and those "
           "of an open transaction are not.",
           crash_checks::with_large_values},
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
    t.throws(error_kind::conflict, "a conflict that never ends",
             [&] { vouch::transact(s.shaky, [](auto& tx) { tx.enqueue(std::array{draft_of(1)}, at(0)); }); });
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
    for (std::size_t n = 1;; ++n) { // every one: a store may check all its steps but one
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

// ---- vouch/conformance/clauses/fault_ends.hpp
// What faults inside a store leave behind: which errors are in doubt, what is free again, and what a reopen finds.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fault_end_checks {

using namespace transaction_checks;

using fail_hook = std::function<bool(std::size_t)>;

[[nodiscard]] inline const fail_hook& hook_of(trial& t) {
    if (!t.hooks().fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    return t.hooks().fail_at;
}

/// Turns faults off at the end of a check.
struct faults_end {
    const fail_hook& hook;
    ~faults_end() { hook(0); }
};

/// A step of a transaction in which faults occur.
struct faulty_step {
    std::string_view what;
    bool is_commit;
    std::function<void()> run;
};

/// Runs the steps until one throws. Returns whether one did. Only a commit may throw an error in doubt; a conflict is
/// passed on.
inline bool run_steps(trial& t, const std::array<faulty_step, 6>& steps, bool& in_doubt) {
    for (const auto& step : steps) {
        try {
            step.run();
        } catch (const error& e) {
            if (e.kind() == error_kind::conflict) {
                throw;
            }
            in_doubt = e.is_in_doubt();
            t.expect(!in_doubt || step.is_commit, std::string(step.what) + " throws an error that is not in doubt");
            return true;
        }
    }
    return false;
}

/// A transaction that enqueues 7 and 8, claims 1 and cancels 2.
struct faulty_work {
    any_store& store;
    std::optional<any_transaction> tx{};

    [[nodiscard]] std::array<faulty_step, 6> steps() {
        return {{{"begin", false, [this] { tx.emplace(store.begin()); }},
                 {"enqueue", false,
                  [this] {
                      tx->enqueue(std::array{draft_of(7, {.key = "m"}), draft_of(8)}, at(1));
                  }},
                 {"claim", false, [this] { std::ignore = tx->claim(request(at(1), {.only = id_of(1)})); }},
                 {"cancel", false, [this] { std::ignore = tx->cancel(id_of(2), "e", at(1)); }},
                 {"find", false, [this] { std::ignore = tx->find(id_of(7)); }},
                 {"commit", true, [this] { tx->commit(); }}}};
    }
};

inline void prepare(any_store& store) {
    put(store, draft_of(1));
    put(store, draft_of(2));
}

/// Fails every step once. `judge(store, before, in_doubt)` looks at what is left after the transaction was destroyed.
template <class Judge>
void fail_each(trial& t, Judge&& judge) {
    const auto& fail_at = hook_of(t);
    const faults_end off{fail_at};
    for (std::size_t n = 1;; ++n) {
        const auto where = t.fresh_location();
        std::optional<any_store> store(t.open(where));
        prepare(*store);
        const auto before = snapshot_of(*store);
        bool in_doubt = false;
        bool has_thrown = false;
        {
            faulty_work work{*store};
            fail_at(n);
            has_thrown = run_steps(t, work.steps(), in_doubt);
        }
        const bool has_fired = fail_at(0);
        t.tally().faults += has_fired ? 1U : 0U;
        if (has_thrown) {
            judge(where, store, before, in_doubt);
        }
        if (!has_fired) {
            return;
        }
    }
}

inline void only_commits_are_in_doubt(trial& t) {
    fail_each(t, [&](const location&, std::optional<any_store>& store, const snapshot& before, bool in_doubt) {
        if (!in_doubt) {
            unchanged(*store, before, "after an error that is not in doubt nothing is stored");
        }
    });
}

inline void everything_is_free(trial& t) {
    fail_each(t, [&](const location&, std::optional<any_store>& store, const snapshot&, bool in_doubt) {
        if (in_doubt) {
            return;
        }
        t.equal(put(*store, draft_of(9, {.key = "m"})), inserted(9), "the key of a draft whose transaction failed");
        t.equal(put(*store, draft_of(7)), inserted(7), "the id of a draft whose transaction failed");
        t.equal(take_one(*store, at(1), {.only = id_of(1)}), ticket{id_of(1), 1}, "a claim after one that failed");
        t.equal(cancel(*store, id_of(2), at(1)), verdict::applied, "a cancel after one that failed");
    });
}

/// The handles are destroyed, and with the hook `crash` the process dies.
inline void reopen_agrees(trial& t) {
    fail_each(t, [&](const location& where, std::optional<any_store>& store, const snapshot& before, bool in_doubt) {
        const auto left = snapshot_of(*store);
        t.expect(in_doubt || left == before, "after an error that is not in doubt nothing is stored");
        store.reset();
        if (t.hooks().crash) {
            t.hooks().crash(where);
        }
        auto again = t.open(where);
        unchanged(again, left, "a reopen after a failed transaction finds what was stored before it");
        const bool has_landed = !(left == before);
        const auto receipts = transact(again, [](auto& tx) {
            return tx.enqueue(std::array{draft_of(7, {.key = "m"}), draft_of(8)}, at(2));
        });
        t.equal(receipts, has_landed ? std::vector{duplicate(7), duplicate(8)} : std::vector{inserted(7), inserted(8)},
                "the same drafts once more");
        t.equal(get(again, 2).state, has_landed ? state::dead : state::pending, "the rest of that transaction");
    });
}

} // namespace fault_end_checks

inline constexpr std::array fault_ends{
    clause{"FAULT-11", layer::faults, level::may, needs::nothing,
           "Only commit throws an error that is in doubt; after any other error nothing of the transaction is stored.",
           fault_end_checks::only_commits_are_in_doubt},
    clause{"FAULT-12", layer::faults, level::may, needs::nothing,
           "When a failed transaction is destroyed, its keys, ids and claims are free, and others can begin.",
           fault_end_checks::everything_is_free},
    clause{
        "FAULT-13", layer::faults, level::may, needs::durable,
        "After a failed commit, in doubt or not, a reopen or a crash changes nothing: the transaction is stored as a "
        "whole or not at all, as it was seen before.",
        fault_end_checks::reopen_agrees},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/committing_faults.hpp
// Faults and crashes in transactions that commit with their last operation.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_fault_checks {

using namespace committing_claim_checks;

/// A transaction that ends with `end`, in which faults occur. `ends` are the snapshots that it may lead to, and `end`
/// returns the number of the one that it has led to.
struct faulty_end {
    string what{};
    std::size_t (*end)(any_transaction&) = nullptr;
    vector<snapshot> ends{};
    bool puts_seventh = true; ///< whether it enqueues 7 before
};

inline void prepare_faults(any_store& store) {
    put_expiring(store);
    put(store, draft_of(4, {.queue = "r"}));
}

[[nodiscard]] inline std::array<vouch::settle, 1> first_settled() {
    return {vouch::settle{{id_of(1), 1}, succeed{"done"}}};
}

inline std::size_t enqueue_end(any_transaction& tx) {
    tx.enqueue_last(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    return 0;
}
inline std::size_t claim_end(any_transaction& tx) {
    return tx.claim_last(request(at(1), {.queue = "r"})).has_value() ? 0 : 1;
}
inline std::size_t settle_end(any_transaction& tx) {
    const auto done = tx.settle_last(first_settled(), at(1), request(at(1), {.queue = "r"}));
    trial::expect(all_applied(done.settlements), "the settle is applied");
    return done.claimed ? 0 : 1;
}
inline std::size_t left_end(any_transaction& tx) {
    std::ignore = tx.claim_last(request(at(100)));
    return 0;
}

/// The snapshot after a transaction with these calls.
template <class Work>
[[nodiscard]] snapshot after(trial& t, const Work& work) {
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    transact(store, work);
    return ranked_snapshot_of(store);
}

[[nodiscard]] inline vector<faulty_end> faulty_ends(trial& t) {
    const auto put_seventh = [](any_transaction& tx) { put_in(tx, draft_of(7)); };
    const auto alone = after(t, put_seventh);
    const auto with_drafts = after(t, [&](auto& tx) {
        put_seventh(tx);
        tx.enqueue(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    });
    const auto with_claim = after(t, [&](auto& tx) {
        put_seventh(tx);
        std::ignore = tx.claim(request(at(1), {.queue = "r"}));
    });
    const auto settled = [&](bool puts, bool claims) {
        return after(t, [&](auto& tx) {
            puts ? put_seventh(tx) : void();
            std::ignore = tx.settle(first_settled(), at(1));
            if (claims) {
                std::ignore = tx.claim(request(at(1), {.queue = "r"}));
            }
        });
    };
    return {{"enqueue_and_commit", enqueue_end, {with_drafts}},
            {"claim_and_commit", claim_end, {with_claim, alone}},
            {"claim_and_commit beside an expired lease", left_end, {alone}},
            {"settle_claim_and_commit", settle_end, {settled(true, true), settled(true, false)}},
            {"settle_claim_and_commit alone", settle_end, {settled(false, true), settled(false, false)}, false}};
}

/// Fails the n-th step of the last operation. Returns false if it has no such step.
inline bool fail_end(trial& t, const faulty_end& e, std::size_t n) {
    const auto& fail_at = fault_end_checks::hook_of(t);
    const fault_end_checks::faults_end off{fail_at};
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    const auto before = ranked_snapshot_of(store);
    optional<std::size_t> returned;
    bool in_doubt = false;
    {
        auto tx = store.begin();
        e.puts_seventh ? put_in(tx, draft_of(7)) : void();
        fail_at(n);
        try {
            returned = e.end(tx);
        } catch (const error& thrown) {
            if (thrown.kind() == error_kind::conflict) {
                throw;
            }
            in_doubt = thrown.is_in_doubt();
        }
        const bool has_fired = fail_at(0);
        t.tally().faults += has_fired ? 1U : 0U;
        if (!has_fired) {
            return false;
        }
        all_misuse_at_last(t, tx);
    }
    const auto now = ranked_snapshot_of(store);
    const bool is_whole = in_doubt && (now == e.ends.front() || now == e.ends.back());
    if (const auto& wanted = returned ? e.ends[*returned] : before; now != wanted && !is_whole) {
        auto [seen, expected] = show_difference(now, wanted);
        t.fail(e.what + (returned   ? ", after it has returned"
                         : in_doubt ? ", after an error in doubt"
                                    : ", after an error that is not in doubt"),
               std::move(seen), std::move(expected));
    }
    t.equal(put(store, draft_of(20, {.key = "k"})).what == receipt::kind::duplicate,
            now != before && e.end == enqueue_end, "the key of the last draft is taken");
    return true;
}

inline void faults_leave_nothing(trial& t) {
    std::ignore = fault_end_checks::hook_of(t);
    for (const auto& e : faulty_ends(t)) {
        for (std::size_t n = 1; fail_end(t, e, n); ++n) {
        }
    }
}

enum class last_call : std::uint8_t { enqueue, claim, settle };

/// Settles what is claimed.
[[nodiscard]] inline vector<vouch::settle> crash_settles(any_transaction& tx) {
    vector<vouch::settle> out;
    for (const auto& e : tx.list(query::live("q"))) {
        if (e.state == state::claimed) {
            out.push_back({ticket_of(e), succeed{"done"}});
        }
    }
    return out;
}

inline void survives_crashes(trial& t) {
    if (!t.can().durable) {
        return;
    }
    crash_checks::require_files(t);
    const auto p = t.fresh_location();
    constexpr std::uint64_t rounds = 3;
    for (std::uint64_t n = 1; n <= rounds; ++n) {
        for (const auto end : {last_call::enqueue, last_call::claim, last_call::settle}) {
            optional<any_store> store(t.context().open(p));
            const auto next = request(at(0), {.limit = 1, .lease = duration{1'000}});
            repeatedly(*store, [&](auto& tx) {
                put_in(tx, draft_of(100 * n + 10 * static_cast<std::uint64_t>(end)));
                if (end == last_call::claim) {
                    return tx.claim_last(next).has_value();
                }
                if (end == last_call::settle) {
                    return all_applied(tx.settle_last(crash_settles(tx), at(0), next).settlements);
                }
                return !tx.enqueue_last(std::array{draft_of(100 * n + 1, {.payload = "p"})}, at(0)).empty();
            });
            const auto before = crash_checks::stored_in(*store);
            optional<any_transaction> open(store->begin());
            put_in(*open, draft_of(1'000));
            crash_checks::end_process(t, p, [&] {
                open.reset();
                store.reset();
            });
            t.equal(crash_checks::stored_in(t.context().open(p)), before,
                    "the entries after the death of a process that had committed with its last operation");
        }
    }
    t.abandon(p);
}

} // namespace committing_fault_checks

inline constexpr std::array committing_faults{
    clause{"COMMIT-13", layer::faults, level::may, needs::committing,
           "If a step of enqueue_and_commit, claim_and_commit or settle_claim_and_commit fails, nothing of the "
           "transaction "
           "is stored, or all of it if the error is in doubt, and the transaction is closed.",
           committing_fault_checks::faults_leave_nothing},
    clause{"COMMIT-14", layer::crashes, level::may, needs::committing,
           "In a durable store, what enqueue_and_commit, claim_and_commit and settle_claim_and_commit have committed "
           "survives the death of the process.",
           committing_fault_checks::survives_crashes},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/threads/free_threads.hpp
// Threads that run freely, on as many processors as there are. No schedule orders them, so ThreadSanitizer sees the
// races of a store. Their checks use only what holds in every order.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Where threads wait for each other, so that they go on at the same moment. They spin: a thread that had to be woken
/// would be late.
class start_line {
  public:
    explicit start_line(std::size_t threads) : threads_(threads) {}

    /// Waits for the others. Returns false if one of them has failed and will not come.
    [[nodiscard]] bool wait() {
        const auto rounds = arrived_.fetch_add(1) / threads_;
        while (arrived_ / threads_ == rounds && !is_broken_) {
            std::this_thread::yield();
        }
        return !is_broken_;
    }
    void give_up() noexcept { is_broken_ = true; }
    [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }

  private:
    std::size_t threads_;
    std::atomic<std::size_t> arrived_ = 0;
    std::atomic<bool> is_broken_ = false;
};

/// Gives up the processor at every fourth call, so that another thread runs meanwhile. Always would be slow on a machine
/// that has other work.
inline void yield_sometimes() {
    thread_local unsigned calls = 0;
    if (++calls % 4 == 0) {
        std::this_thread::yield();
    }
}

/// While it exists, the store gives up the processor at some of its seams, if it has any.
class yielding_seam {
  public:
    explicit yielding_seam(trial& t) : trial_(t) {
        if (t.hooks().seam) {
            t.hooks().seam([](std::string_view) { yield_sometimes(); });
        }
    }
    yielding_seam(const yielding_seam&) = delete;
    yielding_seam& operator=(const yielding_seam&) = delete;
    ~yielding_seam() {
        if (trial_.hooks().seam) {
            trial_.hooks().seam(nullptr);
        }
    }

  private:
    trial& trial_;
};

/// Calls `work()` and returns its failure, as text for the report.
template <class Work>
[[nodiscard]] failure failure_of(const Work& work) {
    try {
        work();
        return {};
    } catch (const failure& f) {
        return f;
    } catch (const error& e) {
        return {.what = "a call threw an error while other threads used the store",
                .seen = show(e.kind()) + ": " + e.what(),
                .expected = "an answer, or conflict"};
    } catch (const std::exception& e) {
        return {.what = "an exception that is not a vouch::error was thrown while other threads used the store",
                .seen = e.what(),
                .expected = "an answer, or conflict"};
    }
}

/// Runs `work(n, line)` on thread n of `count`, all at once. Throws the failure of the first thread that has one.
template <class Work>
void run_freely(trial& t, std::size_t count, const Work& work) {
    const yielding_seam seam(t);
    start_line line(count);
    std::vector<failure> failures(count);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < count; ++n) {
        threads.emplace_back([&, n] {
            failures[n] = failure_of([&] {
                if (line.wait()) {
                    work(n, line);
                }
            });
            if (!failures[n].what.empty()) {
                line.give_up();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (auto& f : failures) {
        if (!f.what.empty()) {
            f.transcript =
                "The threads ran freely, so their calls cannot be repeated in the same order. Run the clause "
                "again, or compile\nthe program with -fsanitize=thread and run it with --layer threads.\n";
            throw std::move(f);
        }
    }
}

/// Calls `work` on a thread of its own and waits for it. Throws what it throws.
template <class Work>
void on_another_thread(const Work& work) {
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            work();
        } catch (...) {
            thrown = std::current_exception();
        }
    }).join();
    if (thrown) {
        std::rethrow_exception(thrown);
    }
}

/// Calls `work`, and again after a conflict, like `transact` but oftener, because the other threads do not rest.
template <class Work>
void repeat_after_conflict(const Work& work) {
    constexpr int tries = 5'000;
    for (int left = tries;; --left) {
        try {
            work();
            return;
        } catch (const error& e) {
            const bool is_worth_another = e.kind() == error_kind::conflict || e.kind() == error_kind::busy;
            if (!is_worth_another || e.is_in_doubt() || left == 1) {
                throw;
            }
        }
        std::this_thread::yield();
    }
}

/// Runs `work(tx)` and commits. Repeats it from `begin` after a conflict.
template <class Work>
void commit_freely(any_store& store, const Work& work) {
    repeat_after_conflict([&] {
        auto tx = store.begin();
        yield_sometimes();
        work(tx);
        yield_sometimes();
        tx.commit();
    });
}

/// The handles of the threads: copies of one, or one each if the store is shared.
[[nodiscard]] inline std::vector<any_store> handles_of(trial& t, const location& p, std::size_t count, bool separate) {
    std::vector<any_store> out{t.context().open(p)};
    while (out.size() < count) {
        out.push_back(separate ? t.context().open(p) : out.front());
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/threads/numbered_work.hpp
// Work whose fields follow from its number and from its claims, so that any single read shows whether an entry is as
// some commit left it. All times are the same, so that the order of commits does not change the final entries.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Long enough that no lease ends during a check.
inline constexpr duration numbered_lease = std::chrono::hours{1};

/// Entries with this bit have a neighbour, whose number differs in the lowest bit: both are enqueued by one transaction.
inline constexpr std::uint64_t paired_bit = std::uint64_t{1} << 32U;

[[nodiscard]] inline std::string payload_of(std::uint64_t number) {
    std::string out;
    for (auto left = 1 + number % 9; left > 0; --left) {
        out += "payload " + std::to_string(number) + ";";
    }
    return out;
}
[[nodiscard]] inline draft numbered_draft(std::uint64_t number, draft more = {}) {
    more.payload = payload_of(number);
    return draft_of(number, std::move(more));
}

/// The claim with this number. The lease and the worker's name contain it.
[[nodiscard]] inline claim_request numbered_claim(std::uint64_t number, std::size_t limit) {
    return request(at(0), {.limit = limit,
                           .lease = numbered_lease + duration{static_cast<std::int64_t>(number)},
                           .worker = "w" + std::to_string(number)});
}

/// What a settle writes: the entry's number and the claim's epoch.
[[nodiscard]] inline std::string mark_of(const ticket& t) {
    return std::to_string(t.id.low) + "/" + std::to_string(t.epoch);
}

/// Requires that the fields of an entry fit together.
inline void require_whole(const entry& e, bool has_payload) {
    const auto whole = [&](bool holds, const char* what) {
        if (!holds) {
            trial::fail("a read while other threads write shows an entry as some commit left it", show(e), what);
        }
    };
    const bool is_claimed = e.state == state::claimed;
    whole(!has_payload || e.payload == payload_of(e.id.low), "the payload of its draft");
    whole(e.queue == "q" && e.topic == "t", "the queue and topic of its draft");
    whole(e.lease_until.has_value() == is_claimed, "a lease if it is claimed, else none");
    whole(is_claimed || !e.woken, "a wake mark only if it is claimed");
    whole((e.epoch == 0) == e.worker.empty(), "a worker if it was ever claimed, else none");
    whole((e.epoch == 0) == !e.last_attempt_at.has_value(), "the time of its last claim if there is one");
    whole(!is_claimed || e.worker == "w" + std::to_string((*e.lease_until - at(0) - numbered_lease).count()),
          "the worker and the lease of one claim");
    whole(e.attempts <= e.epoch && e.failures <= e.epoch, "not more attempts and failures than claims");
    whole(e.state != state::succeeded || e.result == mark_of(ticket_of(e)), "the result of the settle that ended it");
    whole(e.state == state::succeeded || !e.result, "no result unless it has succeeded");
    whole(e.state != state::dead || !e.last_error.empty(), "an error code if it is dead");
    const auto prefix = std::to_string(e.id.low) + "/";
    whole(e.progress.empty() || e.progress.starts_with(prefix), "the progress of its own checkpoint");
}

/// What one thread was told about commits that have returned.
struct acknowledged {
    struct claimed {
        entry as{};               ///< as the claim returned it
        std::uint64_t number = 0; ///< of the claim
        std::optional<outcome> end{};
    };
    std::vector<draft> stored{};
    std::vector<std::pair<std::string, id>> duplicates{}; ///< a key, and the entry that has it
    std::vector<claimed> claims{};
    std::vector<id> cancelled{};
    std::vector<std::string> groups{}; ///< that a settle completed

    void add(const acknowledged& other) {
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(stored, other.stored);
        append(duplicates, other.duplicates);
        append(claims, other.claims);
        append(cancelled, other.cancelled);
        append(groups, other.groups);
    }

    /// The entries that these commits imply. The sequences are the store's own.
    [[nodiscard]] std::map<id, entry> implied() const {
        std::map<id, entry> out;
        for (const auto& d : stored) {
            trial::expect(out.emplace(d.id, born(d, at(0))).second, "two commits stored a draft with the same id");
        }
        auto in_order = claims;
        std::sort(in_order.begin(), in_order.end(),
                  [](const claimed& a, const claimed& b) { return ticket_of(a.as) < ticket_of(b.as); });
        for (const auto& c : in_order) {
            const auto found = out.find(c.as.id);
            trial::expect(found != out.end(), "a claim returned an entry that no commit has stored");
            auto& e = found->second;
            if (c.as.epoch != e.epoch + 1) {
                trial::fail(
                    "each commit that claims an entry raises its epoch by one, so that no ticket is given twice",
                    show(ticket_of(c.as)), show(ticket{e.id, e.epoch + 1}));
            }
            apply(e, numbered_claim(c.number, 1));
            if (c.end) {
                trial::equal(apply(e, vouch::settle{ticket_of(c.as), *c.end}, at(0)), verdict::applied,
                             "a settle of a held claim");
            }
        }
        for (const auto& one : cancelled) {
            const auto found = out.find(one);
            trial::expect(found != out.end(), "a cancel was applied to an entry that no commit has stored");
            trial::equal(apply(found->second, vouch::cancel{"cancelled"}, at(0)), verdict::applied,
                         "each entry ends once: a cancel that was applied, after the commits that claimed the entry");
        }
        return out;
    }
};

/// Requires that the store has the entries that the commits imply, and that all reads agree.
inline void require_implied(const any_store& store, const acknowledged& all) {
    const auto implied = all.implied();
    state_counts counts;
    auto found = store.list({.queue = "q", .limit = 10'000, .payloads = true});
    for (const auto& e : found) {
        const auto expected = implied.find(e.id);
        if (expected == implied.end()) {
            trial::fail("at the end only entries of acknowledged commits are stored", show(e), "no such entry");
        }
        auto wanted = expected->second;
        wanted.sequence = e.sequence;
        trial::equal(e, wanted, "an entry at the end, as the acknowledged commits imply it");
        trial::equal(store.find(e.id), std::optional(e), "the same entry, found by its id");
        counts[e.state] += 1;
    }
    trial::equal(found.size(), implied.size(),
                 "the number of entries at the end, as the acknowledged commits imply it");
    trial::equal(store.counts("q"), counts, "the counts at the end, compared with the list");
    for (const auto& [key, owner] : all.duplicates) {
        const auto has_key = implied.find(owner);
        trial::expect(has_key != implied.end() && has_key->second.key == key,
                      "a duplicate by key names the stored entry with that key");
    }
    std::map<std::string, id> owners;
    for (const auto& [which, e] : implied) {
        trial::expect(e.key.empty() || owners.emplace(e.key, which).second, "a key is stored once");
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/threads/mixed_worker.hpp
// One of several threads that do a bit of everything with the same entries: enqueue, claim, settle, extend, nudge,
// cancel, roll back and read. It requires of every answer what must hold whatever the other threads do, and remembers
// what its commits have acknowledged.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A lane as the threads see it between their commits. A thread enters after the commit of its claim, and leaves before
/// it begins to settle.
class lane_gate {
  public:
    void enter(const entry& e) {
        trial::equal(holders_.fetch_add(1), 0, "other threads that hold an entry of the lane whose entry was claimed");
        trial::expect(e.sequence >= last_.exchange(e.sequence), "the entries of a lane are claimed in sequence");
    }
    void leave() { holders_ -= 1; }

  private:
    std::atomic<int> holders_ = 0;
    std::atomic<std::uint64_t> last_ = 0;
};

/// What all threads of one check share.
struct mixed_state {
    std::atomic<std::uint64_t> storing = 0; ///< entries that commits may have stored by now
    std::atomic<std::uint64_t> stored = 0;  ///< entries that commits have stored
    std::atomic<std::uint64_t> ending = 0;
    std::atomic<std::uint64_t> ended = 0;
    std::array<lane_gate, 2> lanes{};

    [[nodiscard]] lane_gate& lane(const std::string& name) { return lanes[name == "x" ? 0 : 1]; }
};

/// Entries below this number are enqueued before the threads start. They are members of groups, and all succeed.
inline constexpr std::uint64_t members_max = 100;

class mixed_worker {
  public:
    mixed_worker(any_store store, const vouch::capabilities& can, mixed_state& shared, std::size_t n,
                 std::uint64_t seed)
        : store_(std::move(store)), can_(can), shared_(shared), number_(n), random_(seed + n) {}

    /// One transaction, or some reads.
    void step() {
        const auto what = random_.below(100);
        if (what < 22) {
            enqueue_pair();
        } else if (what < 30) {
            enqueue_keyed();
        } else if (what < 50) {
            claim();
        } else if (what < 78) {
            settle(some_outcome());
        } else if (what < 84) {
            cancel();
        } else if (what < 90) {
            nudge();
        } else if (what < 94) {
            roll_back();
        } else {
            read();
        }
    }

    /// Ends all claims of this thread.
    void finish() {
        while (!held_.empty()) {
            settle(succeed{});
        }
    }

    /// Claims and ends everything that can be claimed.
    void drain() {
        std::size_t claimed = 0;
        do {
            claimed = acknowledged_.claims.size();
            claim();
            finish();
        } while (claimed != acknowledged_.claims.size());
    }

    void read() {
        switch (random_.below(4)) {
        case 0: read_counts(); break;
        case 1: read_list(); break;
        case 2: read_due(); break;
        default: read_one(some_id());
        }
    }

    [[nodiscard]] const acknowledged& acknowledgements() const noexcept { return acknowledged_; }

  private:
    static constexpr std::uint64_t numbers_per_thread = 1'000'000;

    [[nodiscard]] std::uint64_t next_number() { return (number_ + 1) * numbers_per_thread + 2 * ++made_; }

    void store_all(const std::vector<draft>& drafts) {
        std::vector<receipt> receipts;
        shared_.storing += drafts.size();
        commit_freely(store_, [&](auto& tx) { receipts = tx.enqueue(drafts, at(0)); });
        trial::equal(receipts.size(), drafts.size(), "one receipt for each draft");
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            const auto& d = drafts[i];
            if (receipts[i].what == receipt::kind::duplicate && !d.key.empty()) {
                acknowledged_.duplicates.emplace_back(d.key, receipts[i].id);
                continue;
            }
            trial::equal(receipts[i], receipt{receipt::kind::inserted, d.id}, "the receipt for a new id");
            acknowledged_.stored.push_back(d);
            known_.push_back(d.id);
            shared_.stored += 1;
            trial::expect(store_.find(d.id).has_value(), "an entry is found once its commit has returned");
        }
    }

    void enqueue_pair() {
        const auto first = paired_bit + next_number();
        const std::string lane = can_.lanes && random_.chance(40) ? random_.one_of({"x", "y"}) : "";
        store_all({numbered_draft(first, {.lane = lane}), numbered_draft(first + 1, {.lane = lane})});
    }

    void enqueue_keyed() { // all threads use the same few keys
        store_all({numbered_draft(next_number(), {.key = "k" + std::to_string(random_.below(40))})});
    }

    void claim() {
        const auto number = next_number();
        std::vector<entry> claimed;
        commit_freely(store_, [&](auto& tx) {
            claimed = tx.claim(numbered_claim(number, 1 + number % 3));
            if (!claimed.empty()) {
                trial::equal(tx.find(claimed.front().id), std::optional(claimed.front()),
                             "an entry that its own transaction has claimed");
            }
        });
        for (const auto& e : claimed) {
            require_whole(e, true);
            trial::equal(e.state, state::claimed, "the state of a claimed entry");
            held_.push_back(acknowledged_.claims.size());
            acknowledged_.claims.push_back({.as = e, .number = number});
            known_.push_back(e.id);
            if (!e.lane.empty()) {
                shared_.lane(e.lane).enter(e);
            }
        }
    }

    [[nodiscard]] outcome some_outcome() {
        switch (random_.below(8)) {
        case 0: return retry{"failed", at(0)};
        case 1: return release{};
        case 2: return advance{};
        case 3: return bury{"buried", {}};
        default: return succeed{};
        }
    }

    void settle(outcome how) {
        if (held_.empty()) {
            return;
        }
        auto& c = acknowledged_.claims[held_.back()];
        const auto held = ticket_of(c.as);
        held_.pop_back();
        if (held.id.low < members_max && std::holds_alternative<bury>(how)) {
            how = succeed{};
        }
        if (auto* const s = std::get_if<succeed>(&how)) {
            s->result = mark_of(held);
        } else if (auto* const a = std::get_if<advance>(&how)) {
            a->progress = mark_of(held);
        }
        const bool ends = std::holds_alternative<succeed>(how) || std::holds_alternative<bury>(how);
        const bool extends = random_.chance(20);
        if (!c.as.lane.empty()) {
            shared_.lane(c.as.lane).leave();
        }
        shared_.ending += ends ? 1U : 0U;
        settlement said;
        auto extended = verdict::applied;
        commit_freely(store_, [&](auto& tx) {
            if (extends) {
                extended = tx.extend(std::span(&held, 1), at(0), numbered_lease).front();
            }
            said = settle_in(tx, held, how, at(0));
        });
        trial::equal(extended, verdict::applied, "the verdict on an extend of a held claim");
        trial::equal(said.verdict, verdict::applied, "the verdict on a settle of a held claim");
        c.end = how;
        if (said.group_completed) {
            acknowledged_.groups.push_back(c.as.group);
        }
        shared_.ended += ends ? 1U : 0U;
        read_one(held.id);
    }

    void cancel() {
        const auto which = some_id();
        if (which.low < members_max) {
            return;
        }
        shared_.ending += 1;
        auto said = verdict::unknown;
        commit_freely(store_, [&](auto& tx) { said = tx.cancel(which, "cancelled", at(0)); });
        trial::expect(said != verdict::unknown, "an entry whose commit has returned is known to a cancel");
        if (said == verdict::applied) {
            acknowledged_.cancelled.push_back(which);
            shared_.ended += 1;
        } else {
            shared_.ending -= 1;
        }
    }

    void nudge() {
        const auto which = some_id();
        auto said = verdict::unknown;
        commit_freely(store_, [&](auto& tx) { said = tx.nudge(which, at(0)); });
        trial::expect(said != verdict::unknown, "an entry whose commit has returned is known to a nudge");
    }

    void roll_back() {
        const auto d = numbered_draft(next_number(), {.key = "k" + std::to_string(random_.below(40))});
        try {
            auto tx = store_.begin();
            tx.enqueue(std::span(&d, 1), at(0));
            std::ignore = tx.claim(numbered_claim(next_number(), 2));
            yield_sometimes();
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict && e.kind() != error_kind::busy) {
                throw;
            }
        }
        trial::expect(!store_.find(d.id), "a draft that was rolled back is not stored");
    }

    void read_counts() {
        const auto stored = shared_.stored.load();
        const auto ended = shared_.ended.load();
        const auto n = store_.counts("q");
        const auto ends = n[state::succeeded] + n[state::dead];
        trial::expect(n.total() >= stored, "counts include every entry whose commit had returned");
        trial::expect(ends >= ended, "counts include every end whose commit had returned");
        trial::expect(n.total() <= shared_.storing, "counts include only entries that a commit may have stored");
    }

    void read_list() {
        const auto stored = shared_.stored.load();
        const auto found = store_.list({.queue = "q", .limit = 10'000, .payloads = true});
        std::set<std::uint64_t> numbers;
        std::uint64_t last = 0;
        for (const auto& e : found) {
            require_whole(e, true);
            trial::expect(e.sequence > last, "a list is ordered by sequence");
            trial::expect(numbers.insert(e.id.low).second, "a list has no entry twice");
            last = e.sequence;
        }
        if (!found.empty()) {
            known_.push_back(found[random_.below(found.size())].id); // perhaps another thread's
        }
        trial::expect(found.size() >= stored, "a list has every entry whose commit had returned");
        for (const auto n : numbers) {
            trial::expect((n & paired_bit) == 0 || numbers.contains(n ^ 1U),
                          "a list has both entries of a transaction, or neither");
        }
    }

    void read_due() {
        const auto due = store_.next_due("q");
        trial::expect(!due || *due == at(0) || *due >= at(0) + numbered_lease, "next_due is the gate of some entry");
    }

    void read_one(const id& which) {
        const auto found = store_.find(which);
        trial::expect(found.has_value(), "an entry whose commit has returned is found");
        trial::equal(found->id, which, "the id of an entry that was found by its id");
        require_whole(*found, true);
    }

    [[nodiscard]] id some_id() {
        if (known_.empty() || random_.chance(20)) {
            return id_of(1 + random_.below(6)); // a member
        }
        return known_[random_.below(known_.size())];
    }

    any_store store_;
    vouch::capabilities can_;
    mixed_state& shared_;
    std::uint64_t number_;
    random_source random_;
    std::uint64_t made_ = 0;
    std::vector<id> known_{};
    std::vector<std::size_t> held_{}; ///< positions in `acknowledged_.claims`
    acknowledged acknowledged_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/threads.hpp
// Free threads: several threads use a store at the same time, and nothing orders them but the store itself. What is
// checked holds in every order. Compile the program with -fsanitize=thread to see races that happen to do no harm.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace threads_checks {

inline constexpr std::size_t threads_count = 4;

/// How often a check of this layer is run.
[[nodiscard]] inline std::size_t rounds_of(const trial& t) {
    switch (t.options().profile) {
    case profile::quick: return 1;
    case profile::standard: break;
    case profile::soak: return 1'000;
    }
    return 10;
}

/// The members of two groups, or of none.
inline std::vector<draft> members(const vouch::capabilities& can) {
    std::vector<draft> out;
    for (std::uint64_t n = 1; n <= 6; ++n) {
        out.push_back(numbered_draft(n, {.group = !can.groups ? "" : (n <= 3 ? "g" : "h")}));
    }
    return out;
}

/// Requires that everything can be ended, and that the store then has what all commits imply.
inline void end_all(trial& t, mixed_worker& last, acknowledged all, const any_store& store) {
    last.drain();
    all.add({.stored = members(t.can())});
    all.add(last.acknowledgements());
    require_implied(store, all);
    t.equal(store.counts("q").live(), std::size_t{0},
            "live entries after everything that is due was claimed and ended");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when no entry is live");
    std::sort(all.groups.begin(), all.groups.end());
    t.equal(all.groups, t.can().groups ? std::vector<std::string>{"g", "h"} : std::vector<std::string>{},
            "the groups whose completion a settle has reported");
}

/// All threads do a bit of everything; `readers` of them only read while the others write.
inline void mix(trial& t, bool separate, std::size_t readers) {
    const std::size_t steps = readers > 0 ? 80 : 150;
    for (auto left = rounds_of(t); left > 0; --left) {
        const auto p = t.fresh_location();
        {
            auto handles = handles_of(t, p, threads_count, separate);
            commit_freely(handles.front(), [&](auto& tx) { tx.enqueue(members(t.can()), at(0)); });
            mixed_state shared;
            shared.storing = shared.stored = members(t.can()).size();
            std::vector<std::unique_ptr<mixed_worker>> workers;
            const auto seed = t.random().roll();
            for (std::size_t n = 0; n < threads_count; ++n) {
                workers.push_back(std::make_unique<mixed_worker>(handles[n], t.can(), shared, n, seed));
            }
            run_freely(t, threads_count, [&](std::size_t n, start_line& line) {
                const bool writes = n >= readers;
                for (std::size_t i = 0; i < steps && !line.is_broken(); ++i) {
                    writes ? workers[n]->step() : workers[n]->read();
                }
                workers[n]->finish();
            });
            mixed_worker last(handles.front(), t.can(), shared, threads_count, seed);
            acknowledged all;
            for (const auto& w : workers) {
                all.add(w->acknowledgements());
            }
            end_all(t, last, std::move(all), handles.front());
        }
        t.abandon(p);
    }
}

inline void one_handle(trial& t) { mix(t, false, 0); }
inline void several_handles(trial& t) { mix(t, true, 0); }
inline void reads_beside_writes(trial& t) { mix(t, t.can().shared, 2); }

/// Runs `round(n, i, store)` on all threads, `rounds` times: in each round they start together. The first thread calls
/// `before(i)` and `after(i)` while the others wait.
template <class Before, class Round, class After>
void in_rounds(trial& t, const Before& before, const Round& round, const After& after) {
    constexpr std::size_t rounds_each = 20;
    const auto p = t.fresh_location();
    {
        auto handles = handles_of(t, p, threads_count, t.can().shared);
        run_freely(t, threads_count, [&](std::size_t n, start_line& line) {
            for (std::size_t i = 0; i < rounds_each * rounds_of(t); ++i) {
                if (n == 0) {
                    before(i, handles[n]);
                }
                if (!line.wait()) {
                    return;
                }
                round(n, i, handles[n]);
                if (!line.wait()) {
                    return;
                }
                if (n == 0) {
                    after(i, handles[n]);
                }
            }
        });
    }
    t.abandon(p);
}

inline void key_once(trial& t) {
    std::array<receipt, threads_count> said{};
    in_rounds(
        t, [](std::size_t, any_store&) {},
        [&](std::size_t n, std::size_t i, any_store& store) {
            const auto d = draft_of(1 + i * threads_count + n, {.key = "k" + std::to_string(i)});
            commit_freely(store, [&](auto& tx) { said[n] = tx.enqueue(std::span(&d, 1), at(0)).front(); });
        },
        [&](std::size_t i, any_store& store) {
            const auto stored = store.list(query::keyed("q", "k" + std::to_string(i)));
            trial::equal(stored.size(), std::size_t{1},
                         "entries with a key that all threads enqueued at the same time");
            std::size_t inserted = 0;
            for (const auto& r : said) {
                trial::equal(r.id, stored.front().id, "the entry that each thread was told of");
                inserted += r.what == receipt::kind::inserted ? 1U : 0U;
            }
            trial::equal(inserted, std::size_t{1}, "threads that were told that their draft was inserted");
        });
}

inline void group_once(trial& t) {
    std::vector<entry> claimed;
    std::array<settlement, threads_count> said{};
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(threads_count, draft_of(1 + i * threads_count, {.group = "g" + std::to_string(i)})),
                           at(0));
                claimed = tx.claim(request(at(0)));
            });
            trial::equal(claimed.size(), threads_count, "members claimed");
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            commit_freely(store, [&](auto& tx) { said[n] = settle_in(tx, ticket_of(claimed[n]), succeed{}, at(0)); });
        },
        [&](std::size_t, any_store&) {
            const auto completed =
                std::count_if(said.begin(), said.end(), [](const settlement& s) { return s.group_completed; });
            trial::equal(completed, 1, "settles that report the completion, of all members ended at the same time");
        });
}

inline void lane_moves_on(trial& t) {
    std::vector<entry> head;
    std::array<std::vector<entry>, threads_count> claimed;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(2, draft_of(1 + 10 * i, {.lane = "lane"})), at(0));
                head = tx.claim(request(at(0)));
            });
            trial::equal(head.size(), std::size_t{1}, "entries claimed of a lane");
        },
        [&](std::size_t n, std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                claimed[n].clear();
                if (n == 0) {
                    settle_in(tx, ticket_of(head.front()), succeed{}, at(0));
                } else if (n == 1) {
                    tx.enqueue(numbered(1, draft_of(3 + 10 * i, {.lane = "lane"})), at(0));
                } else {
                    claimed[n] = tx.claim(request(at(0)));
                }
            });
        },
        [&](std::size_t i, any_store& store) {
            std::vector<entry> held;
            for (const auto& some : claimed) {
                held.insert(held.end(), some.begin(), some.end());
            }
            trial::expect(held.size() <= 1, "at most one entry of a lane is claimed at a time");
            list_of order;
            do {
                for (const auto& e : held) {
                    order.push_back(e.id.low - 10 * i);
                    commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(e), succeed{}, at(0)); });
                }
                commit_freely(store, [&](auto& tx) { held = tx.claim(request(at(0))); });
            } while (!held.empty());
            trial::equal(order, list_of{2, 3},
                         "the rest of a lane, after its head ended while another entry was enqueued");
        });
}

/// A parent's claim that does not see the end of its child is nudged by that end.
inline void wake_is_kept(trial& t) {
    std::vector<entry> child;
    std::vector<entry> parent;
    bool saw_child_live = false;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            const std::vector<draft> drafts{draft_of(1 + 2 * i),
                                            draft_of(2 + 2 * i, {.queue = "r", .parent = id_of(1 + 2 * i)})};
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(drafts, at(0));
                child = tx.claim(request(at(0), {.queue = "r"}));
            });
            trial::equal(child.size(), std::size_t{1}, "children claimed");
            parent.clear();
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            if (n == 0) {
                commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(child.front()), succeed{}, at(1)); });
            } else if (n == 1) {
                commit_freely(store, [&](auto& tx) {
                    parent = tx.claim(request(at(1)));
                    const auto seen = tx.find(child.front().id);
                    saw_child_live = seen && is_live(seen->state);
                });
            }
        },
        [&](std::size_t i, any_store& store) {
            const auto now = get(store, 1 + 2 * i);
            trial::expect(parent.empty() || !saw_child_live || now.woken,
                          "a parent that was claimed while its child was live has a wake mark after the child's end");
            commit_freely(store, [&](auto& tx) {
                if (parent.empty()) {
                    parent = tx.claim(request(at(1)));
                }
            });
            trial::equal(parent.size(), std::size_t{1}, "parents claimed");
            commit_freely(store, [&](auto& tx) { settle_in(tx, ticket_of(parent.front()), succeed{}, at(1)); });
        });
}

/// A transaction is begun on one thread, used on two others and ended on a fourth. All four exist at the same time,
/// because the system may give a new thread the id of one that has ended.
inline void moves_between_threads(trial& t) {
    for (const bool commits : {true, false}) {
        const auto p = t.fresh_location();
        {
            auto store = t.context().open(p);
            const std::vector<draft> drafts{draft_of(1), draft_of(2)};
            repeat_after_conflict([&] {
                std::unique_ptr<any_transaction> tx;
                on_another_thread([&] {
                    tx = std::make_unique<any_transaction>(store.begin());
                    on_another_thread([&] {
                        tx->enqueue(drafts, at(0));
                        on_another_thread([&] {
                            t.equal(numbers(tx->list(query::all("q"))), list_of{1, 2}, "written on another thread");
                            t.equal(tx->claim(request(at(0))).size(), std::size_t{2}, "claimed on a third thread");
                        });
                    });
                });
                if (commits) {
                    tx->commit();
                }
                tx.reset();
            });
            t.equal(store.counts("q")[state::claimed], std::size_t{commits ? 2U : 0U},
                    commits ? "committed on another thread than begun" : "rolled back on another thread than begun");
            on_another_thread([&] { put(store, draft_of(3)); });
            t.expect(store.find(id_of(3)).has_value(), "a transaction after one that ended on another thread");
        }
        t.abandon(p);
    }
}

} // namespace threads_checks

inline constexpr std::array threads{
    clause{
        "THREAD-01", layer::threads, level::must, needs::nothing,
        "Any number of threads may use one handle at the same time: every commit that has returned takes effect once, "
        "as a whole.",
        threads_checks::one_handle},
    clause{"THREAD-02", layer::threads, level::may, needs::shared,
           "Threads may use several handles of one location at the same time, as they may use one.",
           threads_checks::several_handles},
    clause{
        "THREAD-03", layer::threads, level::must, needs::nothing,
        "Reads on the store while other threads write see entries as commits left them, and transactions as a whole.",
        threads_checks::reads_beside_writes},
    clause{"THREAD-04", layer::threads, level::must, needs::nothing,
           "A key that several threads enqueue at the same time is stored once, and all are told of the same entry.",
           threads_checks::key_once},
    clause{"THREAD-05", layer::threads, level::may, needs::groups,
           "If several threads end the last members of a group at the same time, exactly one settle reports its "
           "completion.",
           threads_checks::group_once},
    clause{"THREAD-06", layer::threads, level::may, needs::lanes,
           "A lane moves on when its head ends while other threads enqueue to the lane and claim from it.",
           threads_checks::lane_moves_on},
    clause{"THREAD-07", layer::threads, level::must, needs::nothing,
           "A child's end wakes its parent even if another thread claims the parent at the same time.",
           threads_checks::wake_is_kept},
    clause{"THREAD-08", layer::threads, level::must, needs::nothing,
           "A transaction can be begun, used and ended on different threads, by one thread at a time.",
           threads_checks::moves_between_threads},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/committing_settles.hpp
// `settle_claim_and_commit`: what it settles and claims, and that it commits all of it or, if a settle is refused, nothing.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_settle_checks {

using namespace committing_claim_checks;
using settles_of = vector<vouch::settle>;

inline settled_and_claimed settle_last(any_store& store, const settles_of& settles, const claim_request& wanted,
                                       time_point now = at(20)) {
    return repeatedly(store, [&](auto& tx) { return tx.settle_last(settles, now, wanted); });
}

[[nodiscard]] inline vouch::settle settle_of(std::uint64_t n, outcome o, std::uint64_t epoch = 1) {
    return {{id_of(n), epoch}, std::move(o)};
}

/// In "q": 1 to 5 claimed until at(1000), 6 due at(15), 7 due at(12), 8 due at(90), 9 behind 2 in its lane. In "r": 10 due
/// at(500), the parent of 1; 11 due at(12). The members of the group are 3 and 4.
[[nodiscard]] inline any_store with_held_entries(trial& t) {
    auto store = t.open(t.fresh_location());
    const string lane = t.can().lanes ? "x" : "";
    const string group = t.can().groups ? "g" : "";
    put(store, draft_of(1, {.parent = id_of(10)}));
    put(store, draft_of(2, {.lane = lane}));
    put(store, draft_of(3, {.group = group}));
    put(store, draft_of(4, {.group = group}));
    put(store, draft_of(5));
    t.equal(take(store, at(0), {.lease = duration{1'000}}).size(), 5, "claimed");
    put(store, draft_of(6, {.payload = "six", .due_at = at(15)}));
    put(store, draft_of(7, {.due_at = at(12)}));
    put(store, draft_of(8, {.due_at = at(90)}));
    if (t.can().lanes) {
        put(store, draft_of(9, {.lane = lane, .due_at = at(13)}));
    }
    put(store, draft_of(10, {.queue = "r", .due_at = at(500)}));
    put(store, draft_of(11, {.queue = "r", .due_at = at(12)}));
    return store;
}

struct settles_and_request {
    settles_of settles{};
    claim_request wanted{};
};

[[nodiscard]] inline vector<settles_and_request> applied_calls() {
    const auto now = at(20);
    const settles_of all{settle_of(1, succeed{"one"}), settle_of(2, bury{"e", "reply"}), settle_of(3, succeed{}),
                         settle_of(4, succeed{"4"}), settle_of(5, retry{"e", at(20)})};
    return {
        {{settle_of(5, succeed{"done"})}, request(now)},
        {{settle_of(5, succeed{"done"})}, request(now, {.limit = 1})},
        {{settle_of(5, succeed{})}, request(now, {.limit = 0})},
        {{settle_of(5, succeed{})}, request(now, {.only = id_of(6)})},
        {{settle_of(5, succeed{})}, request(now, {.queue = "unused"})},
        {{settle_of(5, succeed{})}, request(at(90), {.lease = duration{7}, .worker = "another"})},
        {{settle_of(5, succeed{})}, request(at(12))},
        {{settle_of(5, succeed{}), settle_of(3, succeed{"3"}), settle_of(4, succeed{"4"})}, request(now)},
        {{settle_of(4, succeed{"4"}), settle_of(5, bury{"e", "r"}), settle_of(3, succeed{"3"})}, request(now)},
        {{settle_of(1, succeed{})}, request(now, {.queue = "r"})},
        {{settle_of(2, succeed{})}, request(now, {.limit = 2})},
        {{settle_of(5, retry{"e", at(14)})}, request(now)},
        {{settle_of(5, release{}), settle_of(3, release{at(30)})}, request(now)},
        {{settle_of(5, advance{"step", at(20)})}, request(now, {.only = id_of(5)})},
        {{}, request(now)},
        {all, request(now)},
        {all, request(at(600), {.queue = "r"})},
    };
}

inline void settles_and_claims(trial& t) {
    for (const auto& [settles, wanted] : applied_calls()) {
        const auto& in = settles; // a lambda cannot capture a structured binding
        const auto& next = wanted;
        auto one = with_held_entries(t);
        auto other = with_held_entries(t);
        const auto done = settle_last(one, in, next);
        t.equal(done.settlements, transact(other, [&](auto& tx) { return tx.settle(in, at(20)); }),
                "the settlements of settle_claim_and_commit, and those of settle");
        if (done.claimed) {
            const auto claimed = transact(other, [&](auto& tx) { return tx.claim(next); });
            t.equal(without_sequences(*done.claimed), without_sequences(claimed),
                    "claimed by settle_claim_and_commit, and by claim after settle");
        }
        same(one, other, "what settle_claim_and_commit stores is what settle, claim and commit store");
    }
}

/// Settles of which one is refused. The claim would find 7 and 6.
[[nodiscard]] inline vector<settles_of> refused_settles() {
    return {
        {settle_of(5, succeed{}, 2)},
        {settle_of(5, succeed{}), settle_of(1, succeed{}, 7)},
        {settle_of(1, succeed{}, 7), settle_of(5, succeed{})},
        {settle_of(20, succeed{})},
        {settle_of(5, succeed{}), settle_of(20, succeed{}), settle_of(3, succeed{})},
        {settle_of(5, succeed{"5"}), settle_of(5, succeed{"again"})},
        {settle_of(5, retry{"e", at(20)}), settle_of(3, succeed{}), settle_of(8, succeed{}, 0)},
        {settle_of(8, succeed{})},
        {settle_of(3, succeed{}), settle_of(4, succeed{}), settle_of(5, release{}, 2)},
    };
}

inline void rolls_back_if_refused(trial& t) {
    for (const auto& settles : refused_settles()) {
        auto store = with_held_entries(t);
        const auto before = snapshot_of(store);
        const auto expected = repeatedly(store, [&](auto& tx) { return tx.settle(settles, at(20)); });
        const auto done = settle_last(store, settles, request(at(20)));
        t.equal(done.settlements, expected, "the settlements if one is refused");
        t.expect(!done.claimed, "settle_claim_and_commit claims nothing if a settle is refused");
        unchanged(store, before, "a settle_claim_and_commit of which a settle is refused");
        t.equal(numbers(take(store, at(20), {.limit = 2})), list_of{7, 6}, "claimed after that");
    }
}

/// What a transaction may do before, so that its last operation is refused.
inline constexpr std::array refusing{
    deed{"a settle",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(5), 1}, succeed{}, at(20));
         }},
    deed{"a settle and an enqueue",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(5), 1}, release{}, at(20));
             put_in(tx, draft_of(15, {.key = "k"}));
         }},
    deed{"a cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(5), "e", at(2'000)); }},
    deed{"a claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(2'000), {.only = id_of(5)})); }},
};

inline void rolls_back_earlier_writes(trial& t) {
    for (const auto& [name, change] : refusing) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = with_held_entries(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto done =
                tx.settle_last(settles_of{settle_of(4, succeed{}), settle_of(5, succeed{})}, at(20), request(at(20)));
            t.equal(done.settlements.front().verdict, verdict::applied, "the settle that is not refused");
            t.expect(done.settlements.back().verdict != verdict::applied, "the settle after " + what + " is refused");
            t.expect(!done.claimed, "nothing is claimed");
            all_misuse_at_last(t, tx);
        });
        unchanged(store, before, what + " before a settle_claim_and_commit of which a settle is refused");
        t.equal(put(store, draft_of(16, {.key = "k"})), inserted(16), "the key of an earlier draft is free");
        t.expect(all_applied(settle_last(store, {settle_of(5, succeed{})}, request(at(20))).settlements),
                 "the same ticket can be settled in another transaction");
    }
}

inline void sees_what_is_due(trial& t) {
    const auto claimed_by = [&](const vouch::settle& s, claim_options how, time_point now = at(20)) {
        auto store = with_held_entries(t);
        auto done = settle_last(store, {s}, request(now, how), now);
        return numbers(done.claimed ? *done.claimed : take(store, now, how));
    };
    t.equal(claimed_by(settle_of(5, retry{"e", at(20)}), {}), list_of{7, 6, 5},
            "claimed with the entry that the same call retries");
    t.equal(claimed_by(settle_of(5, release{}), {.limit = 1}), list_of{5}, "claimed first: the entry released");
    t.equal(claimed_by(settle_of(5, advance{"step", {}}), {.only = id_of(5)}), list_of{5},
            "claimed by its id: the entry that advances");
    t.equal(claimed_by(settle_of(2, succeed{}), {}), t.can().lanes ? list_of{7, 9, 6} : list_of{7, 6},
            "claimed with the next entry of the lane");
    t.equal(claimed_by(settle_of(1, succeed{}), {.queue = "r"}), list_of{11, 10}, "claimed with the parent");
    t.equal(claimed_by(settle_of(5, retry{"e", at(21)}), {.only = id_of(5)}), list_of{}, "claimed before its retry");
}

inline void leaves_expired_claims(trial& t) {
    for (const auto& wanted : {request(at(100)), request(at(100), {.limit = 2}), request(at(200), {.limit = 2}),
                               request(at(100), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        put(store, draft_of(4, {.queue = "r"}));
        const auto held = take_one(store, at(0), {.queue = "r"});
        const auto before = store.list(query::all("q"));
        const auto done = settle_last(store, {{held, succeed{}}}, wanted);
        t.equal(done.settlements, vector<settlement>{{verdict::applied}}, "the settlement beside an expired lease");
        t.expect(!done.claimed, "settle_claim_and_commit claims nothing if it would take over an entry whose lease has "
                                "expired");
        t.equal(store.list(query::all("q")), before, "a claim that was left claims nothing");
        t.equal(get(store, 4).state, state::succeeded, "the settle is committed, although the claim was left");
    }
    {
        auto store = t.open(t.fresh_location());
        put_handed_back(store);
        put(store, draft_of(4, {.queue = "r"}));
        const auto held = take_one(store, at(0), {.queue = "r"});
        t.expect(
            !settle_last(store, {{held, succeed{}}}, request(at(200))).claimed,
            "settle_claim_and_commit claims nothing if it would claim an entry that has lapsed and was handed back");
        t.equal(get(store, 1).state, state::pending, "the entry with a lapse");
    }
    auto store = t.open(t.fresh_location());
    put_expiring(store);
    const auto done = settle_last(store, {settle_of(1, succeed{})}, request(at(100)));
    t.equal(done.settlements, vector<settlement>{{verdict::applied}}, "the settlement of an expired lease");
    t.equal(numbers(done.claimed ? *done.claimed : take(store, at(100))), list_of{2},
            "claimed when the entry with the expired lease is settled by the same call");
}

/// All threads settle the same entry and claim the next two.
inline void settles_once(trial& t) {
    using namespace threads_checks;
    constexpr std::size_t due = 1 + 2 * threads_count;
    std::array<settled_and_claimed, threads_count> done;
    vouch::ticket held;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(due, draft_of(1 + i * due)), at(0));
                held = ticket_of(tx.claim(request(at(0), {.limit = 1})).front());
            });
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            const settles_of settles{{held, succeed{std::to_string(n)}}};
            repeat_after_conflict(
                [&] { done[n] = store.begin().settle_last(settles, at(0), request(at(0), {.limit = 2})); });
        },
        [&](std::size_t, any_store& store) {
            std::size_t applied = 0;
            std::set<id> claimed{held.id};
            for (std::size_t n = 0; n < threads_count; ++n) {
                if (all_applied(done[n].settlements)) {
                    applied += 1;
                    trial::equal(get(store, held.id.low).result, optional(std::to_string(n)),
                                 "the result of the settle that was applied");
                }
                for (const auto& e : done[n].claimed.value_or(vector<entry>{})) {
                    trial::expect(claimed.insert(e.id).second, "no entry is claimed by two threads");
                }
                trial::expect(!done[n].claimed || all_applied(done[n].settlements),
                              "a thread whose settle is refused claims nothing");
            }
            trial::equal(applied, std::size_t{1}, "threads whose settle of the same ticket was applied");
            trial::equal(store.counts("q")[state::claimed] + 1, claimed.size(),
                         "entries claimed, of those that were returned");
            commit_freely(store, [&](auto& tx) {
                for (const auto& e : tx.list(query::live("q"))) {
                    if (e.state == state::claimed) {
                        settle_in(tx, ticket_of(e), succeed{}, at(0));
                    } else {
                        std::ignore = tx.cancel(e.id, "over", at(0));
                    }
                }
            });
        });
}

} // namespace committing_settle_checks

inline constexpr std::array committing_settles{
    clause{"COMMIT-15", layer::examples, level::may, needs::committing,
           "settle_claim_and_commit returns and stores what settle, claim and commit do, or it claims nothing and "
           "returns no claim.",
           committing_settle_checks::settles_and_claims},
    clause{"COMMIT-16", layer::examples, level::may, needs::committing,
           "If a verdict is not applied, settle_claim_and_commit returns what settle returns, and stores and claims "
           "nothing.",
           committing_settle_checks::rolls_back_if_refused},
    clause{"COMMIT-17", layer::examples, level::may, needs::committing,
           "A verdict of settle_claim_and_commit rests on the earlier writes of its transaction, which are rolled back "
           "if it is not applied.",
           committing_settle_checks::rolls_back_earlier_writes},
    clause{"COMMIT-18", layer::examples, level::may, needs::committing,
           "The claim of settle_claim_and_commit finds what its settles have made due.",
           committing_settle_checks::sees_what_is_due},
    clause{
        "COMMIT-19", layer::examples, level::may, needs::committing,
        "settle_claim_and_commit claims nothing, and commits its settles, if an entry that it would claim would have "
        "lapses above 0.",
        committing_settle_checks::leaves_expired_claims},
};

inline constexpr std::array committing_settles_together{
    clause{
        "COMMIT-20", layer::threads, level::may, needs::committing,
        "Of threads that settle the same ticket with settle_claim_and_commit at the same time, one is told that it is "
        "applied, and no two claim the same entry.",
        committing_settle_checks::settles_once},
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

/// The number of a queue once it no longer changes: it may follow a commit by a moment.
[[nodiscard]] inline std::uint64_t settled(any_store& store, const std::string& queue) {
    constexpr int looks = 5;
    auto number = store.wakes(queue);
    for (int same = 0; same < looks; ++same) {
        std::this_thread::sleep_for(milliseconds{2});
        if (const auto now = store.wakes(queue); now != number) {
            number = now;
            same = 0;
        }
    }
    return number;
}

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
        const auto seen = settled(store, "q");
        t.equal(store.wakes("q"), seen, "the number when nothing happens");
        transact(store, in);
        t.expect(wakes_change(store, "q", seen), "the number changes with a commit of " + std::string(what));
    }
}

inline void not_with_rollback(trial& t) {
    auto store = furnished(t);
    const auto seen = settled(store, "q");
    for (const auto& [what, in] : nearer) {
        {
            auto tx = store.begin();
            in(tx);
            t.equal(store.wakes("q"), seen, "the number before the commit of " + std::string(what));
        }
        t.equal(store.wakes("q"), seen, "the number after a rollback of " + std::string(what));
    }
    t.equal(settled(store, "q"), seen, "the number a moment after rollbacks");
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
        const auto seen = settled(store, "q");
        settle(store, held, o);
        t.expect(wakes_change(store, "q", seen),
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
    t.expect(wakes_change(first, "q", seen), "the number changes with a commit through a second handle");
}

inline void wait_sees_what_was(trial& t) {
    auto store = t.open();
    const auto seen = store.wakes("q");
    put(store, draft_of(1));
    const auto begun = steady_clock::now();
    const auto number = store.wait("q", seen, longer, {});
    t.expect(steady_clock::now() - begun < patience, "wait returns at once when the number has already changed");
    t.equal(number, store.wakes("q"), "the number that wait returns");
}

inline void wait_ends_at_its_limit(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto seen = settled(store, "q");
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
           "A queue's number changes with every commit that may have made its work due sooner, at once or soon after.",
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

// ---- vouch/conformance/clauses/committing_together.hpp
// `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` together with wakes, lanes, groups and other
// threads.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_together_checks {

using namespace committing_claim_checks;

/// Claims with the last operation of a transaction that settles `held` before.
[[nodiscard]] inline vector<entry> settle_and_claim(any_store& store, const ticket& held) {
    auto claimed = repeatedly(store, [&](auto& tx) {
        settle_in(tx, held, succeed{}, at(0));
        return tx.claim_last(request(at(0)));
    });
    return claimed ? std::move(*claimed) : take(store, at(0));
}

inline void changes_wakes(trial& t) {
    if (!t.can().wakes) {
        return;
    }
    auto store = furnished(t);
    auto seen = wakes_checks::settled(store, "q");
    enqueue_last(store, {draft_of(7)});
    t.expect(wakes_change(store, "q", seen), "the number changes with enqueue_and_commit");
    seen = wakes_checks::settled(store, "q");
    repeatedly(store, [&](auto& tx) {
        return tx.settle_last(std::array{vouch::settle{{id_of(3), 1}, release{}}}, at(20),
                              request(at(0), {.queue = "z"}));
    });
    t.expect(wakes_change(store, "q", seen), "the number changes with a release by settle_claim_and_commit");
    for (const auto& [name, change] : wakes_checks::nearer) {
        const auto& in = change;
        auto other = furnished(t);
        seen = wakes_checks::settled(other, "q");
        repeatedly(other, [&](auto& tx) {
            in(tx);
            return tx.claim_last(request(at(0), {.queue = "z"}));
        });
        t.expect(wakes_change(other, "q", seen), "the number changes with claim_and_commit after " + string(name));
    }
}

inline void lanes_hold(trial& t) {
    if (!t.can().lanes) {
        return;
    }
    auto store = t.open();
    enqueue_last(store, {draft_of(1, {.lane = "lane"}), draft_of(2, {.lane = "lane"})});
    enqueue_last(store, {draft_of(3, {.lane = "lane"})});
    const auto head = take_one(store, at(0));
    t.equal(head, ticket{id_of(1), 1}, "claimed from a lane");
    t.equal(numbers(take(store, at(0))), list_of{}, "claimed behind a head that is held");
    t.equal(numbers(settle_and_claim(store, head)), list_of{2}, "claimed in the transaction that ended the head");
    repeatedly(store, [&](auto& tx) {
        settle_in(tx, {id_of(2), 1}, succeed{}, at(0));
        return tx.enqueue_last(std::array{draft_of(4, {.lane = "lane"})}, at(0));
    });
    t.equal(numbers(take(store, at(0))), list_of{3}, "claimed after the head ended in a transaction that enqueues");
    t.equal(numbers(settle_and_claim(store, {id_of(3), 1})), list_of{4}, "claimed last");
}

inline void groups_hold(trial& t) {
    if (!t.can().groups) {
        return;
    }
    auto store = t.open();
    enqueue_last(store, {draft_of(1, {.group = "g"}), draft_of(2, {.group = "g"})});
    t.equal(take(store, at(0)).size(), 2, "claimed");
    t.equal(settle(store, {id_of(1), 1}, succeed{}).group_completed, false, "the first of two members succeeds");
    const auto completes = [&](std::uint64_t n, std::uint64_t next) {
        bool is_completed = false;
        repeatedly(store, [&](auto& tx) {
            is_completed = settle_in(tx, {id_of(n), 1}, succeed{}, at(0)).group_completed;
            return tx.enqueue_last(std::array{draft_of(next, {.group = "g"})}, at(0));
        });
        return is_completed;
    };
    t.equal(completes(2, 3), true, "the last member succeeds, before another one is enqueued");
    t.equal(take(store, at(0)).size(), 1, "claimed");
    t.equal(completes(3, 4), true, "the member that opened the group again succeeds");
    t.equal(numbers(store.list(query::members("g"))), list_of{1, 2, 3, 4}, "the members");
}

inline void keys_once(trial& t) {
    using namespace threads_checks;
    std::array<receipt, threads_count> said{};
    in_rounds(
        t, [](std::size_t, any_store&) {},
        [&](std::size_t n, std::size_t i, any_store& store) {
            const std::array drafts{draft_of(1 + i * threads_count + n, {.key = "k" + std::to_string(i)})};
            repeat_after_conflict([&] { said[n] = store.begin().enqueue_last(drafts, at(0)).front(); });
        },
        [&](std::size_t i, any_store& store) {
            const auto stored = store.list(query::keyed("q", "k" + std::to_string(i)));
            trial::equal(stored.size(), std::size_t{1},
                         "entries with a key that all threads enqueued at the same time");
            std::size_t inserted = 0;
            for (const auto& r : said) {
                trial::equal(r.id, stored.front().id, "the entry that each thread was told of");
                inserted += r.what == receipt::kind::inserted ? 1U : 0U;
            }
            trial::equal(inserted, std::size_t{1}, "threads that were told that their draft was inserted");
        });
}

inline void claims_once(trial& t) {
    using namespace threads_checks;
    constexpr std::size_t due = 2 * threads_count;
    std::array<vector<entry>, threads_count> claimed;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) { tx.enqueue(numbered(due, draft_of(1 + i * due)), at(0)); });
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            claimed[n].clear();
            repeat_after_conflict(
                [&] { claimed[n] = store.begin().claim_last(request(at(0), {.limit = 3})).value_or(vector<entry>{}); });
        },
        [&](std::size_t, any_store& store) {
            std::set<id> held;
            vector<vouch::settle> settles;
            for (const auto& some : claimed) {
                for (const auto& e : some) {
                    trial::expect(held.insert(e.id).second, "no entry is claimed by two threads");
                    trial::equal(get(store, e.id.low).epoch, 1U, "the epoch of an entry that was claimed once");
                    settles.push_back({ticket_of(e), succeed{}});
                }
            }
            trial::equal(store.counts("q")[state::claimed], held.size(),
                         "entries claimed, of those that were returned");
            commit_freely(store, [&](auto& tx) {
                std::ignore = tx.settle(settles, at(0));
                for (const auto& e : tx.claim(request(at(0)))) {
                    settle_in(tx, ticket_of(e), succeed{}, at(0));
                }
            });
        });
}

} // namespace committing_together_checks

inline constexpr std::array committing_relations{
    clause{"COMMIT-08", layer::examples, level::may, needs::committing,
           "In a store with wakes, a queue's number changes with enqueue_and_commit, claim_and_commit and "
           "settle_claim_and_commit as it does with commit.",
           committing_together_checks::changes_wakes},
    clause{"COMMIT-09", layer::examples, level::may, needs::committing,
           "In a store with lanes, entries of a lane stay in order with enqueue_and_commit and claim_and_commit.",
           committing_together_checks::lanes_hold},
    clause{"COMMIT-10", layer::examples, level::may, needs::committing,
           "In a store with groups, entries that enqueue_and_commit stores are members of their groups.",
           committing_together_checks::groups_hold},
};

inline constexpr std::array committing_together{
    clause{
        "COMMIT-11", layer::threads, level::may, needs::committing,
        "A key that several threads enqueue at the same time with enqueue_and_commit is stored once, and all are told "
        "of the same entry.",
        committing_together_checks::keys_once},
    clause{"COMMIT-12", layer::threads, level::may, needs::committing,
           "Of threads that call claim_and_commit at the same time, no two claim the same entry.",
           committing_together_checks::claims_once},
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
    // A power of ten, because exact times would make every report different.
    int times = 10;
    while (times < 1'000'000 && beside_many > 10.0 * times * beside_few) {
        times *= 10;
    }
    trial::fail("a claim of ten beside " + std::to_string(t.budget().cost_rows) +
                    " rows takes about as long as beside " + std::to_string(few),
                "more than " + std::to_string(times) + " times as long", "at most 10 times as long");
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
    for (const std::string key :
         {"k", "K", "k ", " k", "kk", "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x93\xa6", "1", "01", "1.0"}) {
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

// ---- vouch/conformance/detail/schedule/final_comparison.hpp
// Compares at the end of a history what entries do not show: gates, the order of lanes, the counters of groups, and the
// owners of keys. One transaction does all work that is left, at the end of time.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Later than all times in the schedules.
inline constexpr time_point end_of_time = start + std::chrono::hours{24 * 3000};

/// Claims everything, lets it succeed and looks again, until nothing is left. Changes `expected`.
template <class Writer>
void compare_rest(Writer& tx, model& expected, const std::string& queue) {
    const auto everything = request(end_of_time, {.limit = 1000, .queue = queue, .lease = std::chrono::hours{1}});
    for (;;) {
        const auto claimed = tx.claim(everything);
        trial::equal(claimed, expected.claim(everything), "a last claim takes all entries that have a gate");
        if (claimed.empty()) {
            return;
        }
        std::vector<vouch::settle> settles;
        std::vector<settlement> settlements;
        for (const auto& e : claimed) {
            settles.push_back({ticket_of(e), succeed{}});
            settlements.push_back(expected.settle(settles.back(), end_of_time));
        }
        trial::equal(tx.settle(settles, end_of_time), settlements, "all entries that are left succeed");
    }
}

/// Requires that the store, which holds the entries of `state`, also behaves as it does. Afterwards all entries of these
/// queues have ended.
inline void compare_hidden_state(any_store& store, const model& state, const std::vector<std::string>& queues) {
    for (const auto& queue : queues) {
        trial::equal(store.next_due(queue), state.next_due(queue), "next_due of queue " + queue + " at the end");
    }
    from_begin(store, [&](auto& tx) {
        auto expected = state;
        std::vector<draft> drafts;
        std::vector<receipt> receipts;
        std::uint64_t number = 1000; // unused so far
        for (const auto& queue : queues) {
            compare_rest(tx, expected, queue);
            for (const std::string key : {"k", "l"}) {
                drafts.push_back(draft_of(number++, {.queue = queue, .key = key, .result = "ended"}));
                receipts.push_back(expected.enqueue(drafts.back(), end_of_time));
            }
        }
        trial::equal(tx.enqueue(drafts, end_of_time), receipts, "the owners of all keys at the end");
        tx.commit();
    });
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/operation.hpp
// An operation of a writer or reader as a value, so that it can be performed on a store and on the model.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct operation {
    enum class kind : std::uint8_t {
        enqueue,
        claim,
        settle,
        extend,
        nudge,
        cancel,
        purge,
        find,
        list,
        counts,
        next_due
    };
    operation::kind what = kind::claim;
    time_point now{};
    std::vector<draft> drafts{};
    claim_request claim{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{};
    duration lease{};
    id wanted{};
    purge_request purge{};
    vouch::query query{};
    std::string queue{}; ///< of `counts` and `next_due`

    [[nodiscard]] bool is_read() const noexcept { return what >= kind::find; }
};

struct answer {
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<verdict> verdicts{};
    std::size_t purged = 0;
    std::vector<entry> found{}; ///< by `find`: one or none; by `list`
    state_counts counts{};
    std::optional<time_point> due{};

    /// Whether the operation has changed anything.
    [[nodiscard]] bool has_effect() const {
        return !claimed.empty() || purged > 0 || std::any_of(receipts.begin(), receipts.end(), [](const receipt& r) {
            return r.what == receipt::kind::inserted;
        }) || std::any_of(settlements.begin(), settlements.end(), [](const settlement& s) {
            return s.verdict == verdict::applied;
        }) || std::find(verdicts.begin(), verdicts.end(), verdict::applied) != verdicts.end();
    }

    [[nodiscard]] friend bool operator==(const answer&, const answer&) = default;
};

/// Performs a read on a store, on a transaction or on the model.
template <class Reader>
[[nodiscard]] answer perform_read(const Reader& reader, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::find:
        if (const auto e = reader.find(o.wanted)) {
            out.found.push_back(*e);
        }
        break;
    case operation::kind::list: out.found = reader.list(o.query); break;
    case operation::kind::counts: out.counts = reader.counts(o.queue); break;
    default: out.due = reader.next_due(o.queue);
    }
    return out;
}

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
    default: return perform_read(tx, o);
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
    default: return perform_read(on, o);
    }
    return out;
}

/// A random read.
[[nodiscard]] inline operation some_read(generator& arguments, random_source& d) {
    const auto roll = d.below(100);
    if (roll < 50) {
        return {.what = operation::kind::find, .wanted = arguments.some_id()};
    }
    if (roll < 75) {
        return {.what = operation::kind::list, .query = some_query(d)};
    }
    return {.what = roll < 85 ? operation::kind::counts : operation::kind::next_due, .queue = arguments.some_queue()};
}

/// A random write.
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

[[nodiscard]] inline std::string show_query(const query& q) {
    const auto path = [&]() -> std::string {
        switch (q.by) {
        case query::path::group: return "group " + q.group;
        case query::path::parent: return "children of " + show(q.parent);
        case query::path::key: return "key " + q.key + " of " + q.queue;
        case query::path::dead: return "dead of " + q.queue;
        case query::path::live: return "live of " + q.queue;
        case query::path::all: break;
        }
        return "all of " + q.queue;
    }();
    return path + (q.state ? ", " + show(*q.state) : "") + (q.topic.empty() ? "" : ", topic " + q.topic);
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
    case operation::kind::find: return "find " + show(o.wanted);
    case operation::kind::list: return "list " + show_query(o.query);
    case operation::kind::counts: return "counts " + o.queue;
    case operation::kind::next_due: return "next_due " + o.queue;
    }
    return "?";
}

[[nodiscard]] inline std::string show(const operation& o, const answer& a) {
    switch (o.what) {
    case operation::kind::enqueue: return show(a.receipts);
    case operation::kind::claim: return show(tickets_of(a.claimed));
    case operation::kind::settle: return show(a.settlements);
    case operation::kind::purge: return std::to_string(a.purged);
    case operation::kind::find: return a.found.empty() ? "none" : show(a.found.front());
    case operation::kind::list: return show(ids_of(a.found));
    case operation::kind::counts: return show(a.counts);
    case operation::kind::next_due: return show(a.due);
    default: return show(a.verdicts);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/names.hpp
// The names that operations share: entries, keys, groups, lanes and queues. Two transactions that share none cannot
// disturb each other, so a history of such transactions shows little.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Adds the names that an operation and its answer contain. A claim and a purge name their whole queue.
inline void add_names(const operation& o, const answer& a, std::set<std::string>& names) {
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
// Whether a thread of this process sleeps, whether it sleeps in a call on a socket, and its CPU time. Linux reports all of
// it. On other systems every thread counts as asleep, so that a thread that is slow because of the load may look like one
// that waits.

#if defined(__linux__)
#include <array>
#include <charconv>
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
    thread_probe(thread_probe&& other) noexcept
        : state_(std::exchange(other.state_, -1)), call_(std::exchange(other.call_, -1)), clock_(other.clock_) {}
    thread_probe& operator=(thread_probe&& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(call_, other.call_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~thread_probe() {
        for (const int file : {state_, call_}) {
            if (file >= 0) {
                close(file);
            }
        }
    }

    [[nodiscard]] static thread_probe current() {
        thread_probe out;
        const auto folder = "/proc/self/task/" + std::to_string(syscall(SYS_gettid));
        out.state_ = open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
        out.call_ = open((folder + "/syscall").c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread or for time to pass. False if it waits for a processor or a disk. Does not
    /// allocate, because the thread must not wait in the allocator for its observer.
    [[nodiscard]] bool is_asleep() const {
        text_buffer text{}; // "42 (name) S ...", where the name is short
        const auto said = content(state_, text);
        if (said.empty()) {
            return true; // the thread has ended, or the state is not available
        }
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// Whether it sleeps in a system call that waits for a socket, so for the answer of a server.
    [[nodiscard]] bool is_in_socket_call() const {
        text_buffer text{}; // "271 0x7f2e...": the number of the call and its arguments, or "running"
        const auto said = content(call_, text);
        long number = -1;
        std::from_chars(said.data(), said.data() + said.size(), number);
        switch (number) {
#if defined(SYS_poll)
        case SYS_poll:
#endif
#if defined(SYS_select)
        case SYS_select:
#endif
#if defined(SYS_epoll_wait)
        case SYS_epoll_wait:
#endif
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_epoll_pwait:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_read:
        case SYS_connect: return true;
        default: return false;
        }
    }

    /// The CPU time that it has used.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const {
        timespec spent{};
        return state_ < 0 || clock_gettime(clock_, &spent) != 0
                   ? std::chrono::nanoseconds{}
                   : std::chrono::seconds{spent.tv_sec} + std::chrono::nanoseconds{spent.tv_nsec};
    }

  private:
    using text_buffer = std::array<char, 256>;

    /// The first part of a file of the system; empty if it cannot be read.
    [[nodiscard]] static std::string_view content(int file, text_buffer& text) {
        const auto size = file < 0 ? -1 : pread(file, text.data(), text.size(), 0);
        return {text.data(), size <= 0 ? 0 : static_cast<std::size_t>(size)};
    }

    int state_ = -1;
    int call_ = -1;
    clockid_t clock_{};
};

#else

class thread_probe {
  public:
    [[nodiscard]] static thread_probe current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] bool is_in_socket_call() const { return false; }
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
//
// A thread that sleeps on a socket waits for a server, which either works or lets it wait for another thread. Only time can
// tell: after `server_time_max` without an answer it counts as waiting for another thread. Such guesses are counted,
// because a run with one of them may not be repeatable.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class scheduler {
  public:
    /// A paused thread, and the number of steps that it has completed. Pauses inside the store do not end a step.
    struct ready_thread {
        std::size_t index = 0;
        std::size_t steps = 0;
        bool is_inside = false; ///< paused inside the store
    };
    /// Chooses which of the paused threads continues, by its index. Called on any thread, by one at a time.
    using choice = std::function<std::size_t(const std::vector<ready_thread>&)>;

    scheduler(std::size_t threads, choice choose) : choose_(std::move(choose)), participants_(threads) {}

    // Called by the scheduled threads.

    /// Registers the calling thread as thread `who`. Must be its first call.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        participants_[who].thread = thread_probe::current();
        participants_[who].at = position::running;
    }

    /// Ends a step of the thread and waits for its turn.
    void end_step(std::size_t who) {
        participants_[who].steps += 1;
        pause(who);
    }

    /// Waits for the thread's turn.
    void pause(std::size_t who, bool is_inside = false) {
        auto& mine = participants_[who];
        mine.arrives = true; // from here on it does not sleep inside the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        mine.is_inside = is_inside;
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

    /// How often a thread without an answer from its server was taken for one that waits for another thread.
    [[nodiscard]] std::uint64_t guesses() const {
        const std::lock_guard lock(mutex_);
        return guesses_;
    }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds server_time_max{5};
    enum class position : std::uint8_t { starting, running, paused, finished };
    struct participant {
        position at = position::starting;
        bool is_inside = false;
        std::atomic<bool> arrives = false;
        std::atomic<std::size_t> steps = 0;
        thread_probe thread{};
        std::chrono::nanoseconds cpu_time_at_turn{}; ///< the CPU time of its thread when it got its turn
        std::chrono::nanoseconds cpu_time_asleep{};  ///< the same when it was last seen asleep on a socket
        clock::time_point asleep_since{};            ///< when that was seen for the first time
        bool is_guessed = false;                     ///< counted in `guesses_` since then
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
        std::vector<ready_thread> ready;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            if (participants_[i].at == position::paused) {
                ready.push_back({i, participants_[i].steps, participants_[i].is_inside});
            }
        }
        turn_ = choose_(ready);
        participants_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_any_running() {
        for (auto& one : participants_) {
            if (one.at == position::starting || (one.at == position::running && !is_waiting_in_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Whether it sleeps, or has been running for so long that it must be waiting in a loop. The latter is measured in
    /// CPU time, so that the load of the machine does not change the schedule.
    [[nodiscard]] bool is_waiting_in_store(participant& one) {
        constexpr std::chrono::milliseconds spin_max{100};
        const auto cpu_time = one.thread.cpu_time();
        // Asked twice: in between it may have been woken, and even have slept again.
        const bool sleeps = one.thread.is_asleep() && !may_get_answer(one, cpu_time) && one.thread.is_asleep() &&
                            one.thread.cpu_time() == cpu_time;
        const bool spins = cpu_time - one.cpu_time_at_turn > spin_max;
        return (sleeps || spins) && !one.arrives; // read last: a thread sets it before it sleeps in `pause`
    }

    /// Whether a thread that sleeps waits for a server that may still be working for it.
    [[nodiscard]] bool may_get_answer(participant& one, std::chrono::nanoseconds cpu_time) {
        if (!one.thread.is_in_socket_call()) {
            return false;
        }
        const auto now = clock::now();
        if (cpu_time != one.cpu_time_asleep) { // it has been awake since we looked
            one.cpu_time_asleep = cpu_time;
            one.asleep_since = now;
            one.is_guessed = false;
        }
        if (now - one.asleep_since < server_time_max) {
            return true;
        }
        guesses_ += one.is_guessed ? 0 : 1;
        one.is_guessed = true;
        return false;
    }

    choice choose_;
    mutable std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<participant> participants_;
    std::size_t turn_ = none;
    std::uint64_t guesses_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/history.hpp
// A history: several threads run transactions and read, each on its own handle. It contains all answers, and when each
// transaction and each call began and ended.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// When a call began and ended, as numbers of events: the event n is before the call if n <= begun_at, and after it if
/// n > ended_at.
struct call_span {
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t begun_at = 0;
    std::uint64_t ended_at = never; ///< never: it threw
};

/// One transaction of a thread, or one read outside of transactions: its operations, its answers and its end.
struct transaction_run {
    std::size_t thread = 0;
    std::vector<operation> operations{};
    bool commits = true;
    bool is_outside = false; ///< a single read on the store

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    transaction_run::end ended = end::none;
    std::vector<answer> answers{};
    std::vector<call_span> calls{}; ///< one more than answers if the last call threw
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< the number of the event
    std::uint64_t commit_begun_at = call_span::never;
    std::uint64_t ended_at = 0;

    /// Whether its answers must be explained.
    [[nodiscard]] bool has_answers() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    /// Whether it changes what is stored.
    [[nodiscard]] bool has_effect() const {
        return ended == end::committed &&
               std::any_of(answers.begin(), answers.end(), [](const answer& a) { return a.has_effect(); });
    }
    [[nodiscard]] bool overlaps(const transaction_run& other) const noexcept {
        return begun_at < other.ended_at && other.begun_at < ended_at;
    }
    [[nodiscard]] std::set<std::string> names() const {
        std::set<std::string> all;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            add_names(operations[i], i < answers.size() ? answers[i] : answer{}, all);
        }
        return all;
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

    /// The number of the latest event.
    [[nodiscard]] std::uint64_t now() const {
        const std::lock_guard lock(mutex_);
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

    mutable std::mutex mutex_{};
    std::vector<std::pair<std::size_t, std::string>> events_{};
};

/// The scheduled thread that the current thread is, for the store's seam.
inline thread_local scheduler* current_scheduler = nullptr;
inline thread_local std::size_t current_thread = 0;

/// Performs the operations with `call(operation)` and notes when each begins and ends.
template <class Call>
void run_operations(transaction_run& d, scheduler& with, event_log& log, const Call& call) {
    for (const auto& o : d.operations) {
        if (d.answers.empty() && !d.is_outside) {
            with.pause(d.thread, true); // begin and the first call are one step
        } else {
            with.end_step(d.thread);
        }
        d.calls.push_back({.begun_at = log.now()});
        d.answers.push_back(call(o));
        d.calls.back().ended_at =
            log.add(d.thread, (d.is_outside ? "outside: " : "") + show(o) + " -> " + show(o, d.answers.back()));
    }
}

inline void run_inside(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    with.end_step(d.thread);
    d.begun_at = log.add(d.thread, "begin");
    auto tx = store.begin();
    run_operations(d, with, log, [&](const operation& o) { return perform(tx, o); });
    with.end_step(d.thread);
    if (d.commits) {
        d.commit_begun_at = log.now();
        tx.commit();
        d.ended = transaction_run::end::committed;
    } else {
        d.ended = transaction_run::end::rolled_back; // when tx is destroyed
    }
}

inline void run_transaction(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    try {
        if (d.is_outside) {
            run_operations(d, with, log, [&](const operation& o) { return perform_read(store, o); });
            d.begun_at = d.calls.front().begun_at;
            d.ended_at = d.calls.front().ended_at;
            d.ended = transaction_run::end::committed;
            return;
        }
        run_inside(store, d, with, log);
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = transaction_run::end::threw;
        d.thrown = e.what();
    }
    const auto* const text = d.ended == transaction_run::end::committed     ? "committed"
                             : d.ended == transaction_run::end::rolled_back ? "rolled back"
                                                                            : d.thrown.c_str();
    d.ended_at = log.add(d.thread, text);
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
                current_scheduler->pause(current_thread, true);
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
    t.tally().guessed_turns += with.guesses();
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/batch_items.hpp
// The items of a batch, one by one, and what their answers rest on.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Item n of an operation, as an operation.
[[nodiscard]] inline operation item(const operation& o, std::size_t n) {
    operation one{.what = o.what, .now = o.now, .lease = o.lease, .wanted = o.wanted};
    if (n < o.drafts.size()) {
        one.drafts = {o.drafts[n]};
    }
    if (n < o.settles.size()) {
        one.settles = {o.settles[n]};
    }
    if (n < o.tickets.size()) {
        one.tickets = {o.tickets[n]};
    }
    return one;
}

/// Item n of an answer, as an answer.
[[nodiscard]] inline answer item(const answer& a, std::size_t n) {
    answer one;
    if (n < a.receipts.size()) {
        one.receipts = {a.receipts[n]};
    }
    if (n < a.settlements.size()) {
        one.settlements = {a.settlements[n]};
    }
    if (n < a.verdicts.size()) {
        one.verdicts = {a.verdicts[n]};
    }
    return one;
}

/// Whether the answer of an item says that something is absent.
[[nodiscard]] inline bool rests_on_absence(const answer& one) {
    return (!one.receipts.empty() && one.receipts.front().what != receipt::kind::inserted) ||
           (!one.settlements.empty() && one.settlements.front().verdict == verdict::unknown) ||
           (!one.verdicts.empty() && one.verdicts.front() == verdict::unknown);
}

/// The owner that a duplicate names stays stored until the transaction ends.
[[nodiscard]] inline bool names_stored(const operation& one, const answer& answered, const model& at_place) {
    if (answered.receipts.empty() || answered.receipts.front().what != receipt::kind::duplicate) {
        return true;
    }
    const auto& d = one.drafts.front();
    const auto* const owner = at_place.find(answered.receipts.front().id);
    return owner != nullptr && (owner->id == d.id || (!d.predecessor.is_nil() && owner->predecessor == d.predecessor) ||
                                (!d.key.empty() && owner->key == d.key && owner->queue == d.queue));
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/purge_sets.hpp
// The sets of entries that a purge of a given answer may have removed, when it may leave some of its candidates.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class purge_sets {
  public:
    purge_sets(const model& on, const purge_request& request, std::size_t purged)
        : model_(on), request_(request), purged_(purged) {}

    /// `may_leave(entry)` says whether the purge may leave a candidate, and with it its whole family.
    template <class MayLeave>
    [[nodiscard]] std::set<std::set<id>> all(const MayLeave& may_leave) {
        for (auto& members : families()) {
            const bool optional =
                std::any_of(members.begin(), members.end(), [&](const entry* e) { return may_leave(*e); });
            families_.emplace_back(std::move(members), optional);
        }
        choose(0, {});
        return std::move(found_);
    }

  private:
    using family = std::vector<const entry*>; ///< eldest first

    [[nodiscard]] const model::record* replaced_by(const model::record& of) const {
        for (const auto& r : model_.records) {
            if (r.replaces == of.entry.sequence) {
                return &r;
            }
        }
        return nullptr;
    }

    [[nodiscard]] bool is_needed(const entry& e) const {
        return std::any_of(model_.records.begin(), model_.records.end(), [&](const auto& r) {
            return model::alive(r.entry) && ((!e.group.empty() && r.entry.group == e.group) || r.entry.parent == e.id);
        });
    }

    /// The families that may be removed, in the order of removal.
    [[nodiscard]] std::vector<family> families() const {
        std::vector<family> out;
        for (const auto& r : model_.records) {
            const auto& tip = r.entry;
            if (tip.queue != request_.queue || model::alive(tip) || !(tip.updated_at < request_.before) ||
                (request_.state && tip.state != *request_.state) || replaced_by(r) != nullptr) {
                continue;
            }
            family members;
            for (const auto* one = &r; one != nullptr; one = predecessor(*one)) {
                members.insert(members.begin(), &one->entry);
            }
            if (std::none_of(members.begin(), members.end(), [&](const entry* e) { return is_needed(*e); })) {
                out.push_back(std::move(members));
            }
        }
        std::sort(out.begin(), out.end(), [](const family& a, const family& b) {
            return std::tie(a.back()->updated_at, a.back()->sequence) <
                   std::tie(b.back()->updated_at, b.back()->sequence);
        });
        return out;
    }

    [[nodiscard]] const model::record* predecessor(const model::record& of) const {
        for (const auto& r : model_.records) {
            if (of.replaces != 0 && r.entry.sequence == of.replaces) {
                return &r;
            }
        }
        return nullptr;
    }

    void choose(std::size_t i, std::set<id> gone) {
        if (i == families_.size() || gone.size() == request_.limit) {
            if (gone.size() == purged_) {
                found_.insert(std::move(gone));
            }
            return;
        }
        if (families_[i].second) {
            choose(i + 1, gone);
        }
        for (const auto* const e : families_[i].first) {
            if (gone.size() < request_.limit) {
                gone.insert(e->id);
            }
        }
        choose(i + 1, std::move(gone));
    }

    const model& model_;
    const purge_request& request_;
    std::size_t purged_;
    std::vector<std::pair<family, bool>> families_{}; ///< and whether it may be left
    std::set<std::set<id>> found_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/touched.hpp
// What an open transaction has touched. A claim may pass over these entries, and a purge may leave them: the entries that
// the transaction named, and those that its verbs reach, which are the parent of an entry that it ended, the entries
// behind it in its lane, and the owner of a duplicate. A claim or purge that ended in `conflict` may have touched
// anything in its queue.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class touched_entries {
  public:
    touched_entries(const model& before, const std::vector<transaction_run>& runs) : runs_(runs) {
        for (const auto& r : before.records) {
            const auto& e = r.entry;
            relations_.emplace(e.id, relation{e.queue, e.lane, e.group, e.parent, e.sequence});
            last_sequence_ = e.sequence;
        }
        for (const auto& run : runs) {
            for (const auto& o : run.operations) {
                for (const auto& d : o.drafts) {
                    add(d);
                }
            }
        }
    }

    /// Whether a claim that `by` makes during `span` may pass over `e`.
    [[nodiscard]] bool may_pass_over(const entry& e, const transaction_run& by, const call_span& span) const {
        return any_beside(by, span, [&](const operation& o, const answer* a) { return touches(o, a, e); });
    }

    /// Whether a purge that `by` makes during `span` may leave `e`. A purge counts the members of the entry's group, and
    /// so touches what other transactions do to them.
    [[nodiscard]] bool may_leave(const entry& e, const transaction_run& by, const call_span& span) const {
        return any_beside(by, span, [&](const operation& o, const answer* a) {
            return touches(o, a, e) || changes_group(o, a, e.group) ||
                   (o.what == operation::kind::purge && o.purge.queue == e.queue && a != nullptr && a->purged > 0);
        });
    }

  private:
    /// What never changes in an entry.
    struct relation {
        std::string queue{};
        std::string lane{};
        std::string group{};
        id parent{};
        std::uint64_t sequence = 0; ///< a new entry comes after all earlier ones; more is not known
    };

    /// A successor takes over lane and group; its predecessor may itself be a draft, which stands before it.
    void add(const draft& d) {
        relation mine{d.queue, d.lane, d.group, d.parent, last_sequence_};
        const auto [first, last] = relations_.equal_range(d.predecessor);
        std::vector<relation> inherited;
        for (auto old = first; old != last && !d.predecessor.is_nil(); ++old) {
            inherited.push_back({d.queue, old->second.lane, old->second.group, d.parent, last_sequence_});
        }
        relations_.emplace(d.id, std::move(mine));
        for (auto& one : inherited) {
            relations_.emplace(d.id, std::move(one));
        }
    }

    /// Whether `matches(operation, answer or null)` holds for a call of another transaction that is open during `span`.
    template <class Matches>
    [[nodiscard]] bool any_beside(const transaction_run& by, const call_span& span, const Matches& matches) const {
        for (const auto& other : runs_) {
            if (&other == &by || other.is_outside || other.ended_at <= span.begun_at) {
                continue;
            }
            for (std::size_t i = 0; i < other.calls.size() && other.calls[i].begun_at < span.ended_at; ++i) {
                if (matches(other.operations[i], i < other.answers.size() ? &other.answers[i] : nullptr)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Whether the operation touches `e`. Without an answer it has thrown, and may have done all that it could.
    [[nodiscard]] bool touches(const operation& o, const answer* a, const entry& e) const {
        const auto is_one = [&](const auto& all, const auto& id_of_one) {
            return std::any_of(all.begin(), all.end(), [&](const auto& one) { return id_of_one(one) == e.id; });
        };
        if (is_one(o.settles, [](const auto& s) { return s.ticket.id; }) ||
            is_one(o.tickets, [](const auto& t) { return t.id; }) || (!o.wanted.is_nil() && o.wanted == e.id)) {
            return true;
        }
        for (const auto& d : o.drafts) {
            const bool same_key = !d.key.empty() && d.key == e.key && d.queue == e.queue;
            const bool same_predecessor = !d.predecessor.is_nil() && d.predecessor == e.predecessor;
            if (d.id == e.id || d.predecessor == e.id || d.parent == e.id ||
                (a == nullptr && (same_key || same_predecessor))) {
                return true;
            }
        }
        if (a == nullptr && ((o.what == operation::kind::claim && o.claim.queue == e.queue) ||
                             (o.what == operation::kind::purge && o.purge.queue == e.queue))) {
            return true;
        }
        if (a != nullptr && (is_one(a->claimed, [](const auto& one) { return one.id; }) ||
                             is_one(a->receipts, [](const auto& one) { return one.id; }))) {
            return true;
        }
        return any_ended(o, a, [&](const relation& r) {
            const bool is_behind = e.sequence > r.sequence;
            return r.parent == e.id || (!r.lane.empty() && r.lane == e.lane && r.queue == e.queue && is_behind);
        });
    }

    [[nodiscard]] bool changes_group(const operation& o, const answer* a, const std::string& group) const {
        if (group.empty()) {
            return false;
        }
        const auto in_group = [&](const relation& r) { return r.group == group; };
        return any_ended(o, a, in_group) || std::any_of(o.drafts.begin(), o.drafts.end(),
                                                        [&](const draft& d) { return any_relation(d.id, in_group); });
    }

    /// Whether `matches(relation)` holds for an entry that the operation ends.
    template <class Matches>
    [[nodiscard]] bool any_ended(const operation& o, const answer* a, const Matches& matches) const {
        if (o.what == operation::kind::cancel) {
            return (a == nullptr || a->verdicts.front() == verdict::applied) && any_relation(o.wanted, matches);
        }
        for (std::size_t i = 0; i < o.settles.size(); ++i) {
            const auto& s = o.settles[i];
            const bool is_end = std::holds_alternative<succeed>(s.outcome) || std::holds_alternative<bury>(s.outcome);
            if (is_end && (a == nullptr || a->settlements[i].verdict == verdict::applied) &&
                any_relation(s.ticket.id, matches)) {
                return true;
            }
        }
        return false;
    }

    template <class Matches>
    [[nodiscard]] bool any_relation(const id& of, const Matches& matches) const {
        const auto [first, last] = relations_.equal_range(of);
        return std::any_of(first, last, [&](const auto& one) { return matches(one.second); });
    }

    const std::vector<transaction_run>& runs_;
    std::multimap<id, relation> relations_{};
    std::uint64_t last_sequence_ = 0; ///< of the entries that were there before
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/explanation.hpp
// Explains the answers of one transaction at its place in an order of transactions.
//
// What a transaction answers about stored entries that it names must be right at its place. The rest must be right at
// its place or at the moment of the call: `unknown`, `refused` and "no newer duplicate", what a claim passes over, what a
// purge takes and leaves, and reads. That moment is a state between two commits, with the transaction's own writes.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The sequences that the store has chosen.
using sequence_map = std::map<id, std::uint64_t>;

/// The committed transactions of an order so far: `states[n]` is the state after the first n.
struct committed_path {
    std::vector<model> states{};
    std::vector<const transaction_run*> runs{};
};

class explanation {
  public:
    explanation(const committed_path& path, const transaction_run& run, const touched_entries& touched,
                const sequence_map& sequences)
        : path_(path), run_(run), touched_(touched), sequences_(sequences) {
        for (const auto& a : run.answers) {
            for (const auto& r : a.receipts) {
                if (r.what == receipt::kind::inserted) {
                    inserted_.insert(r.id);
                }
            }
            for (const auto* const seen : {&a.claimed, &a.found}) {
                for (const auto& e : *seen) {
                    if (!run.has_effect() && inserted_.count(e.id) > 0) {
                        own_sequences_[e.id] = e.sequence;
                    }
                }
            }
        }
    }

    /// The state after the transaction if everything in it happens at its place.
    [[nodiscard]] std::optional<model> at_its_place() const {
        auto own = path_.states.back();
        for (std::size_t i = 0; i < run_.operations.size(); ++i) {
            const auto& o = run_.operations[i];
            const auto& given = run_.answers[i];
            const auto said = perform(own, o);
            const bool is_same = o.what == operation::kind::claim ? same_but_sequence(said.claimed, given.claimed)
                                 : o.is_read()                    ? same_read(said, given)
                                                                  : said == given;
            if (!is_same) {
                return std::nullopt;
            }
            adopt_sequences(own, o, given);
        }
        return own;
    }

    /// All states that the transaction may lead to if some calls see the state at their moment.
    [[nodiscard]] std::vector<model> at_moments() const {
        std::vector<model> out;
        moments states;
        for (const auto& s : path_.states) {
            states.emplace_back(s);
        }
        explain_from(0, std::move(states), out);
        return out;
    }

  private:
    /// For each state of the path: that state with the transaction's own writes so far. None if the store's answers to
    /// those writes are impossible in that state. The last one is at the transaction's place.
    using moments = std::vector<std::optional<model>>;

    void explain_from(std::size_t i, moments states, std::vector<model>& out) const {
        if (i == run_.operations.size()) {
            out.push_back(std::move(*states.back()));
            return;
        }
        const auto& o = run_.operations[i];
        if (o.what == operation::kind::purge) {
            for (const auto& gone : purged_sets(i, states)) {
                auto after = states;
                if (remove(after, gone)) {
                    explain_from(i + 1, std::move(after), out);
                }
            }
            return;
        }
        const bool holds = o.is_read()                        ? explain_read(i, states)
                           : o.what == operation::kind::claim ? explain_claim(i, states)
                                                              : explain_items(i, states);
        if (holds) {
            explain_from(i + 1, std::move(states), out);
        }
    }

    /// Whether `holds(model)` at the place or at the moment of call i. A read may see any state since the begin.
    template <class Holds>
    [[nodiscard]] bool at_some_moment(std::size_t i, const moments& states, const Holds& holds) const {
        if (holds(*states.back())) {
            return true;
        }
        const auto& span = run_.calls[i];
        const auto since = run_.operations[i].is_read() ? run_.begun_at : span.begun_at;
        std::size_t first = 0;
        for (std::size_t n = 0; n < path_.runs.size(); ++n) {
            first = path_.runs[n]->ended_at <= since ? n + 1 : first;
        }
        for (std::size_t n = 0; n + 1 < states.size(); ++n) {
            if (n > 0 && path_.runs[n - 1]->commit_begun_at >= span.ended_at) {
                return false; // it had not committed yet
            }
            if (n >= first && states[n] && holds(*states[n])) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool explain_read(std::size_t i, const moments& states) const {
        const auto& o = run_.operations[i];
        return at_some_moment(i, states,
                              [&](const model& m) { return same_read(perform_read(m, o), run_.answers[i]); });
    }

    /// Item by item: an answer that rests on absence is right at some moment and changes nothing; any other is right at
    /// the place.
    [[nodiscard]] bool explain_items(std::size_t i, moments& states) const {
        const auto& o = run_.operations[i];
        const auto& given = run_.answers[i];
        const auto count = std::max({o.drafts.size(), o.settles.size(), o.tickets.size(), std::size_t{1}});
        for (std::size_t n = 0; n < count; ++n) {
            const auto one = item(o, n);
            const auto answered = item(given, n);
            if (rests_on_absence(answered)) {
                const bool is_right = at_some_moment(i, states, [&](model m) { return perform(m, one) == answered; });
                if (!is_right || !names_stored(one, answered, *states.back())) {
                    return false;
                }
                continue;
            }
            for (auto& m : states) {
                if (m && !(perform(*m, one) == answered)) {
                    m.reset();
                }
                if (m) {
                    adopt_sequences(*m, one, answered);
                }
            }
            if (!states.back()) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool explain_claim(std::size_t i, moments& states) const {
        const auto& request = run_.operations[i].claim;
        const auto& claimed = run_.answers[i].claimed;
        if (claimed.size() > request.limit ||
            !at_some_moment(i, states, [&](const model& m) { return leaves_only_touched(i, m); })) {
            return false;
        }
        for (auto& m : states) {
            if (m && !take(*m, request, claimed)) {
                m.reset();
            }
        }
        return states.back().has_value();
    }

    /// Whether everything that the claim of call i should have taken from `m` was taken or may be passed over.
    [[nodiscard]] bool leaves_only_touched(std::size_t i, const model& m) const {
        const auto& request = run_.operations[i].claim;
        const auto& claimed = run_.answers[i].claimed;
        std::optional<std::pair<time_point, std::uint64_t>> last;
        for (const auto& e : claimed) {
            const auto* const known = m.find(e.id);
            const auto gate = known == nullptr ? std::nullopt : m.gate(*known);
            if (!gate) {
                return false;
            }
            last = std::max(last, std::optional{std::pair{*gate, known->sequence}});
        }
        for (const auto& r : m.records) {
            const auto gate = m.gate(r.entry);
            const bool eligible = r.entry.queue == request.queue && gate && *gate <= request.now &&
                                  (request.only.is_nil() || r.entry.id == request.only);
            const bool was_taken =
                std::any_of(claimed.begin(), claimed.end(), [&](const auto& e) { return e.id == r.entry.id; });
            if (!eligible || was_taken) {
                continue;
            }
            const bool had_to_be =
                claimed.size() < request.limit || (last && std::pair(*gate, r.entry.sequence) < *last);
            if (had_to_be && !touched_.may_pass_over(r.entry, run_, run_.calls[i])) {
                return false;
            }
        }
        return true;
    }

    /// Claims exactly these entries. False if the model would return other ones.
    [[nodiscard]] static bool take(model& m, const claim_request& request, const std::vector<entry>& claimed) {
        auto one = request;
        one.limit = 1;
        std::vector<entry> expected;
        for (const auto& e : claimed) {
            one.only = e.id;
            auto got = m.claim(one);
            expected.insert(expected.end(), got.begin(), got.end());
        }
        std::sort(expected.begin(), expected.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return same_but_sequence(expected, claimed);
    }

    /// The sets of entries that the purge of call i may have removed, judged by the state at some moment.
    [[nodiscard]] std::set<std::set<id>> purged_sets(std::size_t i, const moments& states) const {
        std::set<std::set<id>> all;
        std::ignore = at_some_moment(i, states, [&](const model& m) {
            all.merge(purge_sets(m, run_.operations[i].purge, run_.answers[i].purged).all([&](const entry& e) {
                return touched_.may_leave(e, run_, run_.calls[i]);
            }));
            return false; // look at all moments
        });
        return all;
    }

    /// Removes the entries, which must be stored at the place and terminal.
    [[nodiscard]] static bool remove(moments& states, const std::set<id>& gone) {
        for (auto& m : states) {
            const bool all_there = m && std::all_of(gone.begin(), gone.end(), [&](const id& one) {
                                       const auto* const e = m->find(one);
                                       return e != nullptr && !model::alive(*e);
                                   });
            if (!all_there) {
                m.reset();
                continue;
            }
            std::erase_if(m->records, [&](const auto& r) { return gone.count(r.entry.id) > 0; });
        }
        return states.back().has_value();
    }

    /// Takes over the sequences that the store has chosen, as far as they are known.
    void adopt_sequences(model& on, const operation& o, const answer& given) const {
        bool changes = false;
        for (std::size_t k = 0; k < o.drafts.size(); ++k) {
            const auto& one = o.drafts[k].id;
            const auto& known = run_.has_effect() ? sequences_ : own_sequences_;
            const auto chosen = known.find(one);
            if (given.receipts[k].what != receipt::kind::inserted || chosen == known.end()) {
                continue;
            }
            for (auto& r : on.records) {
                if (r.entry.id == one) {
                    r.entry.sequence = chosen->second;
                    changes = true;
                }
            }
        }
        if (changes) {
            std::sort(on.records.begin(), on.records.end(),
                      [](const auto& a, const auto& b) { return a.entry.sequence < b.entry.sequence; });
        }
    }

    /// Ignores sequences, because that of a purged entry may be unknown.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    /// Ignores the sequences of the transaction's own entries, which a store may choose as late as at commit.
    [[nodiscard]] bool same_read(answer said, answer given) const {
        for (auto* const a : {&said, &given}) {
            for (auto& e : a->found) {
                e.sequence = inserted_.count(e.id) > 0 ? 0 : e.sequence;
            }
        }
        return said == given;
    }

    const committed_path& path_;
    const transaction_run& run_;
    const touched_entries& touched_;
    const sequence_map& sequences_;
    std::set<id> inserted_{};      ///< by this transaction
    sequence_map own_sequences_{}; ///< of these, if it was rolled back
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/linearization.hpp
// Whether a history can be explained by some order of its transactions. In that order the model must give the answers of
// the history, as far as `explanation` requires it, and the store's final state, and no transaction comes before one that
// had ended when it began. A read outside of transactions must see a state between two commits that lies within its
// call.
//
// Transactions that ended in `conflict` are ignored. A transaction that was rolled back changes nothing, but its answers
// must be right.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class linearization {
  public:
    /// `final` has all entries that are stored at the end.
    linearization(const model& before, const std::vector<transaction_run>& runs, std::vector<entry> final)
        : final_(std::move(final)), touched_(before, runs) {
        for (const auto& d : runs) {
            if (d.has_answers()) {
                runs_.push_back(&d);
            }
        }
        // Most stores commit in the order that explains the history, so it is tried first.
        std::stable_sort(runs_.begin(), runs_.end(),
                         [](const auto* a, const auto* b) { return a->ended_at < b->ended_at; });
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        for (const auto* const d : runs_) {
            learn_sequences(*d);
        }
        std::sort(final_.begin(), final_.end(), [](const entry& a, const entry& b) { return a.sequence < b.sequence; });
        path_.states.push_back(before);
        is_decidable_ = has_all_sequences();
        exists_ = !is_decidable_ || search(0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }
    /// Whether the history could be judged. If not, it counts as explained.
    [[nodiscard]] bool is_decidable() const noexcept { return is_decidable_; }
    /// The state at the end of the order that was found.
    [[nodiscard]] const model& after() const noexcept { return path_.states.back(); }

  private:
    /// The sequence of an entry that is gone may be known from what other transactions saw of it.
    void learn_sequences(const transaction_run& d) {
        std::set<id> own;
        for (const auto& a : d.answers) {
            for (const auto& r : a.receipts) {
                own.insert(r.id);
            }
            for (const auto* const seen : {&a.claimed, &a.found}) {
                for (const auto& e : *seen) {
                    if (own.count(e.id) == 0) {
                        sequences_.emplace(e.id, e.sequence);
                    }
                }
            }
        }
    }

    /// The sequence of an entry that was inserted and purged may be unknown, and so may that of an id that was inserted
    /// again after a purge. Such a rare history is not judged.
    [[nodiscard]] bool has_all_sequences() const {
        bool is_purged = false;
        bool is_complete = true;
        std::set<id> inserted;
        for (const auto* const d : runs_) {
            for (const auto& a : d->answers) {
                is_purged = is_purged || a.purged > 0;
                for (const auto& r : a.receipts) {
                    if (d->has_effect() && r.what == receipt::kind::inserted) {
                        is_complete = is_complete && sequences_.count(r.id) > 0 && inserted.insert(r.id).second;
                    }
                }
            }
        }
        return is_complete || !is_purged;
    }

    [[nodiscard]] bool search(std::uint64_t done) {
        done = place_those_without_effect(done);
        if (done == (std::uint64_t{1} << runs_.size()) - 1) {
            return looks_like_final(path_.states.back());
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && runs_[i]->has_effect() && may_be_next(i, done) &&
                search_after(i, done | std::uint64_t{1} << i)) {
                return true;
            }
        }
        return false;
    }

    /// Places all that change nothing and are explained here. That never spoils an order, so no other place is tried.
    [[nodiscard]] std::uint64_t place_those_without_effect(std::uint64_t done) const {
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && !runs_[i]->has_effect() && may_be_next(i, done)) {
                if (is_explained_here(*runs_[i])) {
                    return place_those_without_effect(done | std::uint64_t{1} << i);
                }
            }
        }
        return done;
    }

    [[nodiscard]] bool is_explained_here(const transaction_run& d) const {
        const explanation here(path_, d, touched_, sequences_);
        return here.at_its_place() || (!d.is_outside && !here.at_moments().empty());
    }

    [[nodiscard]] bool search_after(std::size_t i, std::uint64_t done) {
        const explanation here(path_, *runs_[i], touched_, sequences_);
        const auto goes_on = [&](model after) {
            path_.states.push_back(std::move(after));
            path_.runs.push_back(runs_[i]);
            if (search(done)) {
                return true;
            }
            path_.states.pop_back();
            path_.runs.pop_back();
            return false;
        };
        if (auto after = here.at_its_place(); after && goes_on(std::move(*after))) {
            return true;
        }
        for (auto& after : here.at_moments()) {
            if (goes_on(std::move(after))) {
                return true;
            }
        }
        return false;
    }

    /// Whether all that ended before this one began are done, and all reads that ended before its commit began: they did
    /// not see it.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        const auto& mine = *runs_[i];
        for (std::size_t j = 0; j < runs_.size(); ++j) {
            const auto& other = *runs_[j];
            const bool is_before = other.ended_at <= mine.begun_at ||
                                   (other.is_outside && mine.has_effect() && other.ended_at <= mine.commit_begun_at);
            if (j != i && (done >> j & 1U) == 0 && is_before) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool looks_like_final(const model& now) const {
        return std::equal(now.records.begin(), now.records.end(), final_.begin(), final_.end(),
                          [](const auto& r, const entry& e) { return r.entry == e; });
    }

    std::vector<const transaction_run*> runs_{}; ///< those whose answers must be explained
    std::vector<entry> final_;
    touched_entries touched_;
    sequence_map sequences_{};
    committed_path path_{};
    bool is_decidable_ = false;
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
    /// The cases have entries in these queues only.
    store_pool(trial& t, std::size_t handles, std::vector<std::string> queues = {"q", "r"})
        : trial_(t), count_(handles), queues_(std::move(queues)) {}
    store_pool(const store_pool&) = delete;
    store_pool& operator=(const store_pool&) = delete;
    ~store_pool() { close(); }

    [[nodiscard]] const std::vector<std::string>& queues() const noexcept { return queues_; }

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

    /// Ends a case that passed: removes all entries. Most cases leave only entries that have ended.
    void clear() {
        purge_all();
        is_clean_ = is_empty();
        if (!is_clean_) {
            cancel_all();
            purge_all();
            is_clean_ = is_empty();
        }
    }

  private:
    static constexpr time_point late = start + std::chrono::hours{24 * 3650};

    void purge_all() {
        transact(handles_.front(), [&](auto& tx) {
            for (const auto& queue : queues_) {
                tx.purge({.queue = queue, .before = late + duration{1}});
            }
        });
    }

    void cancel_all() {
        auto& store = handles_.front();
        for (const auto& queue : queues_) {
            const auto live = store.list({.by = query::path::live, .queue = queue, .limit = 1000});
            transact(store, [&](auto& tx) {
                for (const auto& e : live) {
                    std::ignore = tx.cancel(e.id, "cleared", late);
                }
            });
        }
    }

    [[nodiscard]] bool is_empty() {
        return std::all_of(queues_.begin(), queues_.end(),
                           [&](const auto& queue) { return handles_.front().counts(queue).total() == 0; });
    }

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
    std::vector<std::string> queues_;
    std::optional<location> location_{};
    std::vector<any_store> handles_{};
    bool is_clean_ = false;
    std::size_t used_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/histories.hpp
// Histories: threads run random transactions and reads, each thread on its own handle, under a random schedule. The
// answers must be explained by some order of the transactions.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace history_checks {

[[nodiscard]] inline std::vector<entry> everything(const any_store& store, const std::vector<std::string>& queues) {
    std::vector<entry> all;
    for (const auto& queue : queues) {
        const auto some = store.list({.queue = queue, .limit = 1000, .payloads = true});
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

[[nodiscard]] inline bool is_overlapping(const std::vector<transaction_run>& runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (runs[i].overlaps(runs[j])) {
                const auto a = runs[i].names();
                const auto b = runs[j].names();
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

/// Requires that some order of the transactions explains the history, and that the store behaves as the model does then.
/// Entries are in these queues.
inline void require_linearization(const model& before, const std::vector<transaction_run>& runs, any_store& store,
                                  const event_log& log, std::size_t threads, const std::vector<std::string>& queues) {
    for (const auto& d : runs) {
        if (d.ended == transaction_run::end::threw) {
            throw failure{"a transaction threw an error other than conflict", d.thrown, "an answer, or conflict",
                          transcript_of(before, log, threads)};
        }
    }
    const auto final = everything(store, queues);
    const linearization order(before, runs, final);
    if (!order.exists()) {
        std::string seen = "these answers; at the end";
        for (const auto& e : final) {
            seen += "\n    " + show(e);
        }
        throw failure{"no order of the transactions gives these answers and this final state", seen,
                      "the answers and the final state of some order", transcript_of(before, log, threads)};
    }
    if (order.is_decidable()) {
        try {
            compare_hidden_state(store, order.after(), queues);
        } catch (failure& f) {
            f.transcript = transcript_of(before, log, threads);
            throw;
        }
    }
}

/// A transaction of one or two writes, and sometimes a read.
[[nodiscard]] inline transaction_run some_transaction(generator& arguments, time_point now, std::size_t threads,
                                                      random_source& d) {
    transaction_run one;
    one.thread = d.below(threads);
    one.commits = d.chance(85);
    for (auto left = 1 + d.below(2); left > 0; --left) {
        one.operations.push_back(some_operation(arguments, now, d));
    }
    if (d.chance(35)) {
        const auto where = static_cast<std::ptrdiff_t>(d.below(one.operations.size() + 1));
        one.operations.insert(one.operations.begin() + where, some_read(arguments, d));
    }
    return one;
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
        std::size_t transactions = 0;
        std::uint64_t luck = t.seed();
        for (const auto word : list) {
            if (word % 5 >= 3 && transactions++ < transactions_max) {
                random_source d(word);
                generator arguments(t.can(), before, setup.now(), setup.tickets(), d);
                runs.push_back(some_transaction(arguments, setup.now(), threads, d));
                if (d.chance(35)) {
                    runs.push_back(
                        {.thread = d.below(threads), .operations = {some_read(arguments, d)}, .is_outside = true});
                }
                luck ^= word;
            }
        }

        event_log log;
        random_source schedule(luck);
        run_history(t, handles, runs, log, [&](const std::vector<scheduler::ready_thread>& ready) {
            return ready[schedule.below(ready.size())].index;
        });
        t.tally().histories += 1;
        t.tally().overlapping += is_overlapping(runs) ? 1U : 0U;
        require_linearization(before, runs, store, log, threads, pool.queues());
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

// ---- vouch/conformance/detail/schedule/alternation.hpp
// Two open transactions on one thread, which takes their steps in turn. Only for steps of which it is known that none
// waits for the other transaction.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Takes the next step of a transaction: a call, with begin if it is the first one, or the end.
inline void take_step(any_store& store, std::optional<any_transaction>& tx, transaction_run& d, event_log& log) {
    if (d.ended != transaction_run::end::none) {
        return;
    }
    try {
        if (!tx) {
            d.begun_at = log.add(d.thread, "begin");
            tx.emplace(store.begin());
        }
        if (d.answers.size() < d.operations.size()) {
            const auto& o = d.operations[d.answers.size()];
            d.calls.push_back({.begun_at = log.now()});
            d.answers.push_back(perform(*tx, o));
            d.calls.back().ended_at = log.add(d.thread, show(o) + " -> " + show(o, d.answers.back()));
            return;
        }
        d.commit_begun_at = log.now();
        tx->commit();
        d.ended = transaction_run::end::committed;
        d.thrown = "committed";
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    }
    tx.reset();
    d.ended_at = log.add(d.thread, d.thrown);
}

/// Whether the steps of these transactions ended in this order, so that none waited for the other transaction.
[[nodiscard]] inline bool has_kept_order(const std::vector<transaction_run>& runs,
                                         const std::vector<std::size_t>& order) {
    std::vector<std::size_t> taken(runs.size());
    std::uint64_t last = 0;
    for (const auto which : order) {
        const auto& d = runs[which];
        const auto step = taken[which]++;
        const auto ended_at = step < d.calls.size() ? d.calls[step].ended_at : d.ended_at;
        if (ended_at < last || !d.has_answers()) {
            return false;
        }
        last = ended_at;
    }
    return true;
}

/// Runs two transactions, which commit, on the calling thread, in this order of their steps.
inline void run_alternating(std::vector<any_store>& handles, std::vector<transaction_run>& runs,
                            const std::vector<std::size_t>& order, event_log& log) {
    std::array<std::optional<any_transaction>, 2> open{};
    for (const auto which : order) {
        take_step(handles[which], open[which], runs[which], log);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/step_order.hpp
// Orders of the steps of several threads, as a scheduler's choice. A thread that waits inside the store misses its turn.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// What one thread does.
using script = std::vector<transaction_run>;

/// The number of steps of a script: each call, commit and rollback is one. Begin belongs to the first call.
[[nodiscard]] inline std::size_t steps_of(const script& s) {
    std::size_t count = 0;
    for (const auto& run : s) {
        count += run.operations.size() + (run.is_outside ? 0U : 1U);
    }
    return count;
}

/// All orders in which threads with that many steps can take turns. Each number is a thread.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> all_orders(const std::vector<std::size_t>& steps) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < steps.size(); ++p) {
        order.insert(order.end(), steps[p], p);
    }
    std::vector<std::vector<std::size_t>> all;
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

/// The same without the orders in which one thread ends before the other one begins, for two threads.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> overlapping_orders(std::size_t one, std::size_t other) {
    auto all = all_orders({one, other});
    all.erase(all.begin()); // the orders are sorted
    all.pop_back();
    return all;
}

/// Follows an order. A step lasts until the thread's next call outside the store or, if `splits`, only until the thread
/// pauses inside the store.
class step_order {
  public:
    step_order(std::vector<std::size_t> order, bool splits, std::uint64_t seed)
        : order_(std::move(order)), splits_(splits), random_(seed) {}

    [[nodiscard]] std::size_t operator()(const std::vector<scheduler::ready_thread>& ready) {
        const auto find = [&](std::size_t wanted) {
            return std::find_if(ready.begin(), ready.end(), [&](const auto& one) { return one.index == wanted; });
        };
        if (!splits_) {
            const auto same = find(current_);
            if (same != ready.end() && same->steps == steps_) {
                return current_;
            }
        }
        while (next_ < order_.size()) {
            const auto wanted = find(order_[next_++]);
            if (wanted != ready.end()) {
                return chosen(*wanted);
            }
        }
        return chosen(splits_ ? ready[random_.below(ready.size())] : ready.front());
    }

  private:
    [[nodiscard]] std::size_t chosen(const scheduler::ready_thread& one) {
        current_ = one.index;
        steps_ = one.steps;
        return current_;
    }

    std::vector<std::size_t> order_;
    bool splits_;
    random_source random_;
    std::size_t next_ = 0;
    std::size_t current_ = ~std::size_t{0};
    std::size_t steps_ = 0;
};

/// Interrupts thread `who` at its n-th pause inside the store, and lets the other ones run until they end or wait for it.
/// Pauses outside are between steps, whose order `step_order` decides.
class interruption {
  public:
    interruption(std::size_t who, std::size_t n) : who_(who), n_(n) {}

    [[nodiscard]] std::size_t operator()(const std::vector<scheduler::ready_thread>& ready) {
        const auto is_mine = [&](const auto& one) { return one.index == who_; };
        const auto mine = std::find_if(ready.begin(), ready.end(), is_mine);
        const auto other = std::find_if_not(ready.begin(), ready.end(), is_mine);
        if (mine != ready.end() && has_moved_) {
            pauses_ += mine->is_inside ? 1U : 0U;
            has_moved_ = false;
        }
        if (mine != ready.end() && (pauses_ < n_ || other == ready.end())) {
            has_moved_ = true;
            return who_;
        }
        return other->index;
    }

    /// How often the thread has paused inside the store.
    [[nodiscard]] std::size_t pauses() const noexcept { return pauses_; }

  private:
    std::size_t who_;
    std::size_t n_;
    std::size_t pauses_ = 0;
    bool has_moved_ = true; ///< since its last pause
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/schedule/scripts.hpp
// Scripts: short transactions and reads that meet in entries which none of them may name: the head of a lane, a parent, the
// owner of a key, an entry that a purge looks at.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Scripts that compete: each of `some` is run beside each of `others`.
struct contest {
    std::vector<operation> setup{};
    std::vector<script> some{};
    std::vector<script> others{};
};

namespace scripted {

inline constexpr time_point now = at(50);
inline constexpr time_point far_off = at(100'000);

// Operations.

[[nodiscard]] inline operation enqueue(draft d, time_point when = now) {
    return {.what = operation::kind::enqueue, .now = when, .drafts = {std::move(d)}};
}
[[nodiscard]] inline operation enqueue_all(std::vector<draft> drafts, time_point when) {
    return {.what = operation::kind::enqueue, .now = when, .drafts = std::move(drafts)};
}
[[nodiscard]] inline operation claim(std::size_t limit, std::uint64_t only = 0) {
    return {.what = operation::kind::claim,
            .now = now,
            .claim = request(now, {.limit = limit, .only = only == 0 ? id{} : id_of(only)})};
}
/// Claims entry n in a setup.
[[nodiscard]] inline operation hold(std::uint64_t n, duration lease = duration{1000}) {
    return {.what = operation::kind::claim, .now = at(1), .claim = request(at(1), {.lease = lease, .only = id_of(n)})};
}
[[nodiscard]] inline operation settle(std::uint64_t n, outcome o, time_point when = now) {
    return {.what = operation::kind::settle, .now = when, .settles = {{{id_of(n), 1}, std::move(o)}}};
}
[[nodiscard]] inline operation cancel(std::uint64_t n, time_point when = now) {
    return {.what = operation::kind::cancel, .now = when, .wanted = id_of(n)};
}
[[nodiscard]] inline operation nudge(std::uint64_t n) {
    return {.what = operation::kind::nudge, .now = now, .wanted = id_of(n)};
}
[[nodiscard]] inline operation purge(std::size_t limit = 1000) {
    return {.what = operation::kind::purge, .now = now, .purge = {.queue = "q", .before = now, .limit = limit}};
}
[[nodiscard]] inline operation find(std::uint64_t n) { return {.what = operation::kind::find, .wanted = id_of(n)}; }
[[nodiscard]] inline operation counts() { return {.what = operation::kind::counts, .queue = "q"}; }
[[nodiscard]] inline operation next_due() { return {.what = operation::kind::next_due, .queue = "q"}; }
[[nodiscard]] inline operation list(vouch::query q) { return {.what = operation::kind::list, .query = std::move(q)}; }

// Scripts.

[[nodiscard]] inline script in_one(std::vector<operation> operations) {
    return {{.operations = std::move(operations)}};
}
/// A transaction of one operation, then a read outside of it.
[[nodiscard]] inline script then_look(operation o, operation read) {
    return {{.operations = {std::move(o)}}, {.operations = {std::move(read)}, .is_outside = true}};
}

} // namespace scripted

/// The entries that the common scripts compete for: 4 stays claimed, the lease of 5 is over, 6 is dead, 7 and 8 are the
/// last members of a group, 2 and 3 are in a lane.
[[nodiscard]] inline std::vector<operation> common_setup(const capabilities& can) {
    using namespace scripted;
    const std::string lane = can.lanes ? "x" : "";
    const std::string group = can.groups ? "g" : "";
    return {enqueue_all(
                {draft_of(4), draft_of(5), draft_of(6), draft_of(7, {.group = group}), draft_of(8, {.group = group})},
                at(0)),
            hold(4),
            hold(5, duration{10}),
            hold(7),
            hold(8),
            cancel(6, at(2)),
            enqueue_all({draft_of(1), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane})}, at(3))};
}

/// Transactions of one or two operations, some with reads.
[[nodiscard]] inline std::vector<script> common_scripts() {
    using namespace scripted;
    return {
        then_look(claim(1), find(1)),
        in_one({claim(3)}),
        in_one({claim(1, 1), find(2)}),
        in_one({settle(4, succeed{})}),
        in_one({settle(4, retry{"e", now})}),
        in_one({settle(5, succeed{})}),
        in_one({{.what = operation::kind::settle,
                 .now = now,
                 .settles = {{{id_of(4), 1}, succeed{}}, {{id_of(5), 1}, succeed{}}}}}),
        in_one({settle(7, succeed{})}),
        then_look(settle(8, succeed{}), list(vouch::query::members("g"))),
        in_one({enqueue(draft_of(9, {.key = "k"}))}),
        in_one({enqueue(draft_of(10, {.key = "k"}))}),
        in_one({enqueue(draft_of(9))}),
        in_one({enqueue(draft_of(11, {.predecessor = id_of(6)}))}),
        in_one({enqueue(draft_of(12, {.predecessor = id_of(6)})), find(6)}),
        then_look(cancel(1), counts()),
        in_one({cancel(2), next_due()}),
        in_one({cancel(5)}),
        in_one({nudge(4)}),
        in_one({{.what = operation::kind::extend, .now = now, .tickets = {{id_of(5), 1}}, .lease = duration{100}}}),
        in_one({purge()}),
        in_one({settle(4, succeed{}), claim(2)}),
    };
}

/// Pairs of transactions of one operation that have no entry in common.
[[nodiscard]] inline std::vector<std::pair<script, script>> separate_scripts() {
    using namespace scripted;
    return {{in_one({nudge(4)}), in_one({cancel(1)})},
            {in_one({enqueue(draft_of(9))}), in_one({settle(4, succeed{})})},
            {in_one({claim(1, 1)}), in_one({settle(7, succeed{})})}};
}

/// 2 is the head of lane x, with 3 behind it; 4 is claimed and alone in lane y; 5 is claimed and the head of lane z, with 6
/// behind it, which is due later.
[[nodiscard]] inline contest lane_contest() {
    using namespace scripted;
    return {.setup = {enqueue_all({draft_of(2, {.lane = "x"}), draft_of(3, {.lane = "x"}), draft_of(4, {.lane = "y"}),
                                   draft_of(5, {.lane = "z"}), draft_of(6, {.lane = "z", .due_at = far_off})},
                                  at(0)),
                      hold(4), hold(5)},
            .some = {in_one({cancel(2)}),
                     in_one({settle(5, succeed{})}),
                     in_one({enqueue(draft_of(9, {.lane = "x"}))}),
                     in_one({enqueue(draft_of(10, {.lane = "y"}))}),
                     in_one({next_due(), enqueue(draft_of(11, {.lane = "y", .due_at = far_off}))}),
                     {{.operations = {enqueue(draft_of(13, {.lane = "w"}))}}, {.operations = {claim(1, 13)}}}},
            .others = {in_one({settle(4, succeed{})}), in_one({settle(4, bury{"e", {}}), next_due()}),
                       in_one({cancel(2), cancel(3)}), in_one({cancel(3)}), in_one({nudge(6)}),
                       then_look(claim(3), next_due()), in_one({enqueue(draft_of(12, {.lane = "y"}))}),
                       in_one({enqueue(draft_of(14, {.lane = "w"}))})}};
}

/// 1 is due and the parent of 2, which waits, and of 3, which is claimed. 4 is due later and the parent of 5. 6 is claimed
/// and the parent of 7.
[[nodiscard]] inline contest parent_contest() {
    using namespace scripted;
    return {.setup = {enqueue_all({draft_of(1), draft_of(2, {.parent = id_of(1), .due_at = far_off}),
                                   draft_of(3, {.parent = id_of(1)}), draft_of(4, {.due_at = far_off}),
                                   draft_of(5, {.parent = id_of(4), .due_at = far_off}), draft_of(6),
                                   draft_of(7, {.parent = id_of(6), .due_at = far_off})},
                                  at(0)),
                      hold(3), hold(6)},
            .some = {in_one({cancel(2)}), in_one({settle(3, succeed{})}), in_one({cancel(5)}), in_one({cancel(7)}),
                     in_one({cancel(2), cancel(7), find(1)})},
            .others = {then_look(claim(1, 1), find(2)), then_look(claim(3), find(3)),
                       then_look(settle(6, release{far_off}), find(7)), then_look(nudge(4), find(5)),
                       in_one({claim(1, 1), find(3)})}};
}

/// 6 is dead and owns the key k; nothing has the key l.
[[nodiscard]] inline contest key_contest() {
    using namespace scripted;
    return {.setup = {enqueue(draft_of(6, {.key = "k"}), at(0)), cancel(6, at(2))},
            .some = {in_one({enqueue(draft_of(11, {.predecessor = id_of(6)}))}),
                     in_one({enqueue(draft_of(13, {.key = "l"})), list(vouch::query::keyed("q", "k"))})},
            .others = {in_one({enqueue(draft_of(12, {.predecessor = id_of(6)}))}),
                       then_look(enqueue(draft_of(14, {.key = "k"})), list(vouch::query::keyed("q", "k"))),
                       in_one({enqueue(draft_of(15, {.key = "l"})), enqueue(draft_of(16, {.key = "k"}))}),
                       in_one({purge()})}};
}

/// 1 is dead, 2 is dead and in the group g, 3 is dead and owns the key k.
[[nodiscard]] inline contest purge_contest(const capabilities& can) {
    using namespace scripted;
    const std::string group = can.groups ? "g" : "";
    return {.setup = {enqueue_all({draft_of(1), draft_of(2, {.group = group}), draft_of(3, {.key = "k"})}, at(0)),
                      cancel(1, at(2)), cancel(2, at(2)), cancel(3, at(2))},
            .some = {in_one({purge()}), in_one({purge(), enqueue(draft_of(13, {.key = "k"}))})},
            .others = {in_one({enqueue(draft_of(9, {.parent = id_of(1)}))}),
                       in_one({enqueue(draft_of(10, {.group = group}))}),
                       in_one({enqueue(draft_of(11, {.predecessor = id_of(3)}))}),
                       in_one({enqueue(draft_of(12, {.key = "k"})), find(3)}), in_one({purge(2)}),
                       in_one({cancel(2), find(1)})}};
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/interleavings.hpp
// Interleavings: pairs and triples of short transactions on the same entries, with their steps in every order. A
// transaction may wait for another one.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace interleaving_checks {

/// Performs operations, all in one transaction, on an empty store. Returns its model. Every interleaving begins with this,
/// so there are few calls: to a server they are most of the work.
[[nodiscard]] inline model prepare(any_store& store, const std::vector<operation>& setup) {
    const auto answers = transact(store, [&](auto& tx) {
        std::vector<answer> out;
        for (const auto& o : setup) {
            out.push_back(perform(tx, o));
        }
        return out;
    });
    model m;
    for (std::size_t i = 0; i < setup.size(); ++i) {
        const auto& seen = answers[i];
        const auto expected = perform(m, setup[i]);
        trial::expect(seen.receipts == expected.receipts && seen.claimed.size() == expected.claimed.size() &&
                          seen.settlements == expected.settlements && seen.verdicts == expected.verdicts,
                      "the setup of an interleaving");
    }
    const auto stored = store.list({.queue = "q", .limit = 1000});
    for (auto& r : m.records) {
        const auto found =
            std::find_if(stored.begin(), stored.end(), [&](const entry& e) { return e.id == r.entry.id; });
        trial::expect(found != stored.end(), "the setup of an interleaving is listed");
        r.entry.sequence = found->sequence;
    }
    return m;
}

inline constexpr std::size_t none = ~std::size_t{0};

/// Runs each script on a thread of its own in the order that `choose` says, and judges the history. Returns what has
/// happened.
inline std::vector<transaction_run> play(trial& t, store_pool& pool, const std::vector<operation>& setup,
                                         const std::vector<script>& parts, std::size_t rolls_back,
                                         const scheduler::choice& choose) {
    auto& handles = pool.acquire();
    std::vector<transaction_run> runs;
    {
        auto& store = handles.front();
        const auto before = prepare(store, setup);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            for (auto run : parts[i]) {
                run.thread = i;
                run.commits = i != rolls_back;
                runs.push_back(std::move(run));
            }
        }
        event_log log;
        run_history(t, handles, runs, log, choose);
        t.tally().interleavings += 1;
        history_checks::require_linearization(before, runs, store, log, parts.size(), pool.queues());
    }
    pool.clear();
    return runs;
}

/// Runs at most `schedules` random orders for every pair; all orders if there are not more. Steps are split where the
/// store pauses.
inline void pairs(trial& t) {
    store_pool pool(t, 2, {"q"});
    const auto setup = common_setup(t.can());
    const auto all = common_scripts();
    const auto merged = all_orders({3, 3});
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto wanted = t.budget().schedules;
            for (std::size_t n = 0; n < std::min(wanted, 2 * merged.size()); ++n) {
                const bool every = wanted >= 2 * merged.size();
                const auto pick = every ? n : t.random().below(2 * merged.size());
                play(t, pool, setup, {all[i], all[j]}, pick < merged.size() ? none : pick % 2,
                     step_order(merged[pick % merged.size()], true, t.random().roll()));
            }
        }
    }
}

inline void triples(trial& t) {
    store_pool pool(t, 3, {"q"});
    const auto setup = common_setup(t.can());
    const auto all = common_scripts();
    const auto merged = all_orders({3, 3, 3});
    for (std::size_t n = 0; n < 10 * t.budget().schedules; ++n) {
        std::vector<script> parts;
        while (parts.size() < 3) {
            parts.push_back(all[t.random().below(all.size())]);
        }
        play(t, pool, setup, parts, t.random().below(5),
             step_order(merged[t.random().below(merged.size())], true, t.random().roll()));
    }
}

/// Interrupts each of two scripts at the pauses that it has inside the store.
inline void interrupt(trial& t, store_pool& pool, const std::vector<operation>& setup, const std::vector<script>& two) {
    for (std::size_t who = 0; who < two.size(); ++who) {
        const auto first = 1 + t.random().below(t.budget().point_stride);
        auto pauses = first;
        for (auto n = first; n <= pauses; n += t.budget().point_stride) {
            interruption order(who, n);
            play(t, pool, setup, two, none, std::ref(order));
            pauses = std::max(pauses, order.pauses());
        }
    }
}

/// Runs up to three quarters of `schedules` orders of whole steps for every pair of a contest, and a quarter in which one
/// of the transactions is rolled back; `schedules` counts as six if it is less. Orders in which the transactions do not
/// overlap are left out. Then interrupts each of the pair inside its steps.
inline void compete(trial& t, const contest& what) {
    store_pool pool(t, 2, {"q"});
    constexpr std::size_t schedules_min = 6;
    const auto wanted = std::max(t.budget().schedules, schedules_min);
    for (const auto& one : what.some) {
        for (const auto& other : what.others) {
            auto orders = overlapping_orders(steps_of(one), steps_of(other));
            const auto committed = std::min(orders.size(), wanted - wanted / 4);
            for (std::size_t n = 0; n < committed + wanted / 4; ++n) {
                const bool commits = n < committed;
                const auto from = commits ? n : 0;
                std::swap(orders[from], orders[from + t.random().below(orders.size() - from)]);
                play(t, pool, what.setup, {one, other}, commits ? none : t.random().below(2),
                     step_order(orders[from], false, 0));
            }
            if (t.hooks().seam) {
                interrupt(t, pool, what.setup, {one, other});
            }
        }
    }
}

inline void lanes_compete(trial& t) { compete(t, lane_contest()); }
inline void parents_compete(trial& t) { compete(t, parent_contest()); }
inline void keys_compete(trial& t) { compete(t, key_contest()); }
inline void purges_compete(trial& t) { compete(t, purge_contest(t.can())); }

/// Two transactions alternate on two threads, and then on one if none of the steps had to wait.
inline void alternate(trial& t) {
    store_pool pool(t, 2, {"q"});
    const auto setup = common_setup(t.can());
    for (const auto& [one, other] : separate_scripts()) {
        for (const auto& order : all_orders({2, 2})) {
            if (!has_kept_order(play(t, pool, setup, {one, other}, none, step_order(order, false, 0)), order)) {
                continue;
            }
            auto& handles = pool.acquire();
            const auto before = prepare(handles.front(), setup);
            std::vector<transaction_run> runs{one.front(), other.front()};
            runs[1].thread = 1;
            event_log log;
            run_alternating(handles, runs, order, log);
            history_checks::require_linearization(before, runs, handles.front(), log, 2, pool.queues());
            pool.clear();
        }
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
    clause{"ORDER-03", layer::interleavings, level::may, needs::lanes,
           "An entry that is stored in a lane while another one of the lane ends is blocked or gets a gate.",
           interleaving_checks::lanes_compete},
    clause{"ORDER-04", layer::interleavings, level::must, needs::nothing,
           "The end of a child wakes its parent, even while another transaction claims, settles or nudges the parent.",
           interleaving_checks::parents_compete},
    clause{"ORDER-05", layer::interleavings, level::must, needs::nothing,
           "Of concurrent enqueues that requeue the same entry or have the same key, one is stored.",
           interleaving_checks::keys_compete},
    clause{"ORDER-06", layer::interleavings, level::must, needs::nothing,
           "A purge beside an enqueue removes whole families, and none that a committed live entry needs.",
           interleaving_checks::purges_compete},
    clause{"ORDER-07", layer::interleavings, level::must, needs::nothing,
           "If a store lets two transactions be open at a time, one thread may have both open.",
           interleaving_checks::alternate},
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

// ---- vouch/conformance/clauses/lifecycle.hpp
// The lifecycle of transactions: moves, the use of closed ones, and handles that are closed while one is open.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace lifecycle_checks {

using namespace transaction_checks;

/// The transactions are of two stores, because a store may allow only one at a time.
inline void assigned_over_open(trial& t) {
    auto first = furnished(t);
    auto second = furnished(t);
    const auto before = snapshot_of(first);
    auto tx = first.begin();
    put_in(tx, draft_of(7, {.key = "m"}));
    auto source = second.begin();
    put_in(source, draft_of(8));
    tx.move_assign(source);
    unchanged(first, before, "nothing is left of an open transaction that was assigned over");
    t.equal(put(first, draft_of(9, {.key = "m"})), inserted(9), "a transaction after that, in the same store");
    t.expect(tx.find(id_of(8)).has_value(), "the transaction assigned to has the earlier writes of its source");
    put_in(tx, draft_of(10));
    all_misuse(t, source);
    tx.commit();
    t.expect(second.find(id_of(8)).has_value() && second.find(id_of(10)).has_value(), "all of it is committed");
    t.expect(!first.find(id_of(7)), "the commit has no effect on the other store");
}

inline void assigned_over_closed(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    {
        auto source = store.begin();
        put_in(source, draft_of(8));
        tx.move_assign(source);
        all_misuse(t, source);
    }
    t.expect(tx.find(id_of(8)).has_value(), "a transaction assigned to a committed one can be used");
    auto other = tx.move_out();
    tx.move_assign(other);
    put_in(tx, draft_of(9));
    tx.commit();
    t.equal(store.find(id_of(8)).has_value() && store.find(id_of(9)).has_value(), true, "all of it is committed");
    all_misuse(t, tx);
    t.equal(put(store, draft_of(10)), inserted(10), "a transaction after that");
}

inline void moved_from_destroyed(trial& t) {
    auto store = furnished(t);
    std::optional<any_transaction> source(store.begin());
    put_in(*source, draft_of(7));
    auto tx = source->move_out();
    source.reset();
    t.expect(tx.find(id_of(7)).has_value(), "the earlier writes when the transaction moved from is destroyed");
    put_in(tx, draft_of(8));
    tx.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void committed_again(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    put(store, draft_of(8));
    cancel(store, id_of(7));
    const auto before = snapshot_of(store);
    t.throws(error_kind::misuse, "a second commit", [&] { tx.commit(); });
    unchanged(store, before, "a second commit does not write again");
    t.equal(put(store, draft_of(9)), inserted(9), "a transaction after that");
}

inline void invalid_misuse(trial& t, any_transaction& closed, const std::string& how) {
    for (const auto& [what, in] : invalid_uses) {
        t.throws(error_kind::misuse, std::string(what) + " with an invalid argument on a transaction that was " + how,
                 [&, &use = in] { use(closed); });
    }
}

inline void closed_with_invalid_arguments(trial& t) {
    auto store = furnished(t);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        tx.commit();
        const auto before = snapshot_of(store);
        invalid_misuse(t, tx, "committed");
        unchanged(store, before, "a closed transaction with invalid arguments changes nothing");
    }
    auto source = store.begin();
    put_in(source, draft_of(8));
    auto tx = source.move_out();
    invalid_misuse(t, source, "moved from");
    t.expect(tx.find(id_of(8)).has_value(), "the transaction moved to still has its writes");
    tx.commit();
    t.equal(get(store, 8).state, state::pending, "it can be committed");
}

inline void closed_beside_open(trial& t) {
    auto store = furnished(t);
    auto closed = store.begin();
    put_in(closed, draft_of(7));
    closed.commit();
    auto tx = store.begin();
    put_in(tx, draft_of(8, {.key = "m"}));
    all_misuse(t, closed);
    t.expect(tx.find(id_of(8)).has_value(), "an open transaction keeps its writes when a closed one is used");
    put_in(tx, draft_of(9));
    all_misuse(t, closed);
    tx.commit();
    t.expect(store.find(id_of(8)).has_value() && store.find(id_of(9)).has_value(),
             "the open transaction is committed as a whole");
}

inline void other_handle_closed(trial& t) {
    auto first = t.open();
    furnish(first, t.can());
    const auto before = snapshot_of(first);
    for (const bool commits : {false, true}) {
        std::optional<any_store> second(t.open());
        auto tx = first.begin();
        put_in(tx, draft_of(7, {.key = "m"}));
        second.reset();
        unchanged(first, before, "the end of another handle does not show an open transaction");
        t.expect(tx.find(id_of(7)).has_value(), "an open transaction keeps its writes when another handle is closed");
        if (commits) {
            put_in(tx, draft_of(8));
            tx.commit();
        }
        { const auto ended = tx.move_out(); }
        t.equal(first.find(id_of(7)).has_value(), commits, "stored, if and only if it was committed");
        t.equal(first.find(id_of(8)).has_value(), commits, "stored after the other handle was closed");
    }
}

} // namespace lifecycle_checks

inline constexpr std::array lifecycles{
    clause{
        "LIFE-01", layer::examples, level::must, needs::nothing,
        "An open transaction that is assigned over is rolled back; the one assigned to it can be used and committed.",
        lifecycle_checks::assigned_over_open},
    clause{"LIFE-02", layer::examples, level::must, needs::nothing,
           "A closed transaction that is assigned to can be used again.", lifecycle_checks::assigned_over_closed},
    clause{"LIFE-03", layer::examples, level::must, needs::nothing,
           "The end of a transaction that was moved from does not affect the one moved to.",
           lifecycle_checks::moved_from_destroyed},
    clause{"LIFE-04", layer::examples, level::must, needs::nothing,
           "A second commit of a transaction is misuse and writes nothing, even after other commits.",
           lifecycle_checks::committed_again},
    clause{"LIFE-05", layer::examples, level::must, needs::nothing,
           "The use of a closed transaction is misuse even if the arguments are invalid, and changes nothing.",
           lifecycle_checks::closed_with_invalid_arguments},
    clause{"LIFE-06", layer::examples, level::must, needs::nothing,
           "The use of a closed transaction does not affect an open one.", lifecycle_checks::closed_beside_open},
    clause{"LIFE-07", layer::examples, level::may, needs::shared,
           "Closing a handle does not affect the transactions of other handles.",
           lifecycle_checks::other_handle_closed},
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
        found->second.transcript = shortened_text(t.context(), source, found->second);
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

// ---- vouch/conformance/clauses/names.hpp
// Names: two names are the same only if all their bytes are equal, wherever a store compares them; and a name is kept as
// it was given. All names here are valid UTF-8 without control characters.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace names_checks {

using namespace enqueue_checks;
using names = std::vector<std::string>;

/// Names that a careless store takes for one another. `size` is the length of the longest.
[[nodiscard]] inline names lookalikes(std::size_t size) {
    names out{"name", "Name", "NAME", "name ", "name  ", " name", "  name", "nam", "names", "na me", "name.", "name.x"};
    const auto add = [&](const names& more) { out.insert(out.end(), more.begin(), more.end()); };
    add({"1", "01", "1.0", "1.", "+1", "1e0", "0x1", "10", "-1", "0", "-0", "00", "0.0"});
    add({"9007199254740992", "9007199254740993", "18446744073709551616", "18446744073709551617"});
    add({"%", "_", "n%", "nam_", "name%", "%name", "*", "n*", "?", "nam?", "[n]ame"});
    add({"'name'", "''name''", "\"name\"", "\"\"name\"\"", "`name`", "na'me", "na''me", "name\\", "name\\\\", "na\\me",
         "na\\\\me", "\\name", "name;--", "$1", ":name", "@name", "name:", "/name", "name/"});
    add({"null", "NULL", "nil", "true", "TRUE", "undefined", "default"});
    // e with an acute accent as one character and as two, in both cases, with another accent and with none
    add({"caf\xc3\xa9", "cafe\xcc\x81", "CAF\xc3\x89", "CAFE\xcc\x81", "caf\xc3\xa8", "cafe"});
    // the sharp s, dotted and dotless i, a ligature, a full-width letter, a Greek and a Cyrillic letter that look alike
    add({"stra\xc3\x9f"
         "e",
         "strasse", "i", "I", "\xc4\xb1", "\xc4\xb0", "\xef\xac\x81", "fi", "\xef\xbd\x81", "a", "\xd0\xb0",
         "\xce\xb1"});
    // a no-break space, an ideographic space, a zero-width joiner, a byte order mark
    add({"name\xc2\xa0", "name\xe3\x80\x80", "name\xe2\x80\x8d", "\xef\xbb\xbfname", "\xef\xbf\xbd"});
    // characters of four bytes, which are the same if only 16 bits of each are kept
    add({"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", "\xf0\x9f\x98\x80 ", "\xf0\xaf\x98\x80", "\xf0\x90\x8d\x88"});
    for (const auto* const end : {"a", "b", "A", " ", "\xc3\xa9", "\xc3\xa8"}) {
        const std::string last(end);
        out.push_back(std::string(size - last.size(), 'n') + last);
    }
    out.emplace_back(size - 1, 'n');
    out.emplace_back(size, 'n');
    return out;
}

/// Calls `use(name, n)` for every one of the names, which have numbers from 1 on.
template <class Use>
void each(const names& all, const Use& use) {
    std::uint64_t n = 0;
    for (const auto& name : all) {
        use(name, ++n);
    }
}

/// One draft for each name, made by `make(name, n)`.
template <class Make>
[[nodiscard]] std::vector<draft> drafts_of(const names& all, const Make& make) {
    std::vector<draft> out;
    each(all, [&](const std::string& name, std::uint64_t n) { out.push_back(make(name, n)); });
    return out;
}

/// Enqueues the drafts and requires that each is stored.
inline void put_all(trial& t, any_store& store, const std::vector<draft>& drafts) {
    const auto seen = vouch::enqueue(store, drafts, at(0));
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        t.equal(seen[i], receipt{receipt::kind::inserted, drafts[i].id}, "the receipt of a name like others");
    }
}

inline void queues(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.queue = name, .due_at = at(static_cast<std::int64_t>(n))});
            }));
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(1'000 + n, {.queue = name, .result = ""});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).queue, name, "the queue");
        t.equal(numbers(store.list(query::all(name))), list_of{n, 1'000 + n}, "listed of the queue " + show(name));
        t.equal(numbers(store.list(query::live(name))), list_of{n}, "live in the queue " + show(name));
        t.equal(store.counts(name), state_counts{{1, 0, 0, 1, 0}}, "the counts of the queue " + show(name));
        t.equal(store.next_due(name), at(static_cast<std::int64_t>(n)), "next_due of the queue " + show(name));
    });
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            const auto taken = tx.claim(request(at(1'000), {.queue = name}));
            t.equal(numbers(taken), list_of{n}, "claimed from the queue " + show(name));
            t.equal(taken.front().queue, name, "the queue of a claimed entry");
            t.equal(settle_in(tx, ticket_of(taken.front()), bury{"e", {}}, at(1'000)).verdict, verdict::applied,
                    "buried");
            t.equal(tx.purge({.queue = name, .before = at(1)}), 1, "purged from the queue " + show(name));
        });
    });
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(numbers(store.list(query::dead(name))), list_of{n}, "dead in the queue " + show(name));
        t.equal(store.counts(name).total(), 1, "left in the queue " + show(name));
    });
}

inline void topics(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    const std::string group = t.can().groups ? "group" : "";
    put_all(t, store, drafts_of(all, [&](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.topic = name, .group = group, .parent = id_of(9'999)});
            }));
    const auto lists_each = [&](query q) {
        each(all, [&](const std::string& name, std::uint64_t n) {
            q.topic = name;
            const auto found = store.list(q);
            t.equal(numbers(found), list_of{n}, "listed with the topic " + show(name));
            t.equal(found.front().topic, name, "the topic");
        });
    };
    lists_each(query::all("q"));
    lists_each(query::live("q"));
    lists_each(query::children(id_of(9'999)));
    if (t.can().groups) {
        lists_each(query::members(group));
    }
    std::vector<vouch::settle> batch;
    for (const auto& e : take(store, at(0), {.limit = 1'000})) {
        batch.push_back({ticket_of(e), bury{"e", {}}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    lists_each(query::dead("q"));
}

inline void keys(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.key = name}); }));
    const auto again = vouch::enqueue(
        store,
        drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(1'000 + n, {.key = name}); }),
        at(0));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).key, name, "the key");
        t.equal(again[n - 1], duplicate(n), "a second draft with the key " + show(name));
        t.equal(numbers(store.list(query::keyed("q", name))), list_of{n}, "listed by the key " + show(name));
    });
}

inline void groups(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.group = name}); }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).group, name, "the group");
        t.equal(numbers(store.list(query::members(name))), list_of{n}, "the members of the group " + show(name));
    });
    std::vector<vouch::settle> batch;
    for (const auto& e : take(store, at(0), {.limit = 1'000})) {
        batch.push_back({ticket_of(e), succeed{}});
    }
    const auto seen = transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    t.equal(seen, std::vector(all.size(), settlement{verdict::applied, true}),
            "the success of the only member of each group");
}

inline void lanes_of_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    list_of heads;
    list_of rest;
    each(all, [&](const std::string&, std::uint64_t n) {
        heads.push_back(n);
        rest.push_back(1'000 + n);
    });
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.lane = name}); }));
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(1'000 + n, {.lane = name});
            }));
    const auto first = take(store, at(0), {.limit = 1'000});
    t.equal(numbers(first), heads, "claimed of lanes with names like each other");
    each(all, [&](const std::string& name, std::uint64_t n) { t.equal(first[n - 1].lane, name, "the lane"); });
    // The last ends first: it must open its own lane and no other.
    settle(store, ticket_of(first.back()), succeed{});
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{rest.back()}, "claimed when one head has ended");
    rest.pop_back();
    std::vector<vouch::settle> batch;
    for (auto e = first.begin(); e + 1 != first.end(); ++e) {
        batch.push_back({ticket_of(*e), succeed{}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), rest, "claimed when every head has ended");
}

} // namespace names_checks

inline constexpr std::array naming{
    clause{"NAME-01", layer::examples, level::must, needs::nothing,
           "Queues whose names differ in any byte are different queues for list, counts, next_due, claim and purge.",
           names_checks::queues},
    clause{"NAME-02", layer::examples, level::must, needs::nothing,
           "Topics that differ in any byte are different topics for every list.", names_checks::topics},
    clause{"NAME-03", layer::examples, level::must, needs::nothing,
           "Keys that differ in any byte are different keys: only an equal key makes a duplicate.", names_checks::keys},
    clause{"NAME-04", layer::examples, level::may, needs::groups,
           "Groups whose names differ in any byte are different groups, which are completed separately.",
           names_checks::groups},
    clause{"NAME-05", layer::examples, level::may, needs::lanes,
           "Lanes whose names differ in any byte are different lanes, which do not block each other.",
           names_checks::lanes_of_names},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/names_kept.hpp
// Names: kept as they were given, joined with the name of their queue, taken over by successors, and after a reopen.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace names_checks {

/// The names with which the entry n was claimed and failed, and its headers.
inline void kept_as_given(trial& t, const any_store& store, const names& all) {
    each(all, [&](const std::string& name, std::uint64_t n) {
        const auto e = get(store, n);
        t.equal(e.worker, name, "the name of the worker");
        t.equal(e.last_error, name.substr(0, t.can().limits.error_max), "the error code");
        t.equal(e.headers, header_list{{name, "value"}, {"name", name}, {name, name}}, "the headers");
    });
}

/// Claims each entry by a worker of its name, and fails it with an error of its name.
inline void put_kept(trial& t, any_store& store, const names& all) {
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.headers = {{name, "value"}, {"name", name}, {name, name}}});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            const auto code = name.substr(0, t.can().limits.error_max);
            const auto taken = tx.claim(request(at(0), {.worker = name, .only = id_of(n)}));
            t.equal(taken.size(), 1, "claimed");
            t.equal(taken.front().worker, name, "the name of the worker that has just claimed");
            t.equal(taken.front().headers, header_list{{name, "value"}, {"name", name}, {name, name}},
                    "the headers of a claimed entry");
            const auto ends = n % 2 == 0 ? outcome{bury{code, {}}} : outcome{retry{n % 3 == 0 ? "e" : code, at(0)}};
            t.equal(settle_in(tx, ticket_of(taken.front()), ends, at(0)).verdict, verdict::applied, "failed");
            if (n % 2 == 1 && n % 3 == 0) {
                t.equal(tx.cancel(id_of(n), code, at(0)), verdict::applied, "cancelled");
            }
        });
    });
}

inline void kept_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_kept(t, store, all);
    kept_as_given(t, store, all);
}

/// Pairs of a queue and another name that are equal once they are joined.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> joined_alike() {
    std::vector<std::pair<std::string, std::string>> out;
    for (const std::string by : {":", "/", "", " ", ".", "|", ",", "-", "_", "\\", "::", "#", "$", "'", "\"", "%"}) {
        for (const auto& [queue, name] : {std::pair{"a" + by + "b", std::string("c")}, {"a", "b" + by + "c"}}) {
            if (std::find(out.begin(), out.end(), std::pair{queue, name}) == out.end()) {
                out.emplace_back(queue, name);
            }
        }
        out.emplace_back("a" + by + by + "b", "c");
        out.emplace_back("a" + by, by + "b" + by + "c");
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

inline void keys_and_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (const auto& [queue, key] : joined_alike()) {
        if (!queue.empty() && !key.empty()) {
            drafts.push_back(draft_of(drafts.size() + 1, {.queue = queue, .key = key}));
        }
    }
    put_all(t, store, drafts);
    for (const auto& d : drafts) {
        t.equal(ids_of(store.list(query::keyed(d.queue, d.key))), std::vector{d.id}, "listed by a queue and a key");
    }
}

inline void lanes_and_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (const auto& [queue, lane] : joined_alike()) {
        drafts.push_back(draft_of(drafts.size() + 1, {.queue = queue, .lane = lane}));
    }
    put_all(t, store, drafts);
    for (const auto& d : drafts) {
        const auto taken = take(store, at(0), {.queue = d.queue, .only = d.id});
        t.equal(ids_of(taken), std::vector{d.id}, "claimed of the lane " + show(d.lane) + " of " + show(d.queue));
    }
}

inline void names_survive(trial& t) {
    const auto all = lookalikes(t.can().limits.name_max);
    const auto named = [&](const std::string& name, std::uint64_t n) {
        return draft_of(1'000 + n, {.queue = name,
                                    .topic = name,
                                    .key = name,
                                    .group = t.can().groups ? name : "",
                                    .lane = t.can().lanes ? name : ""});
    };
    {
        auto store = t.open();
        put_kept(t, store, all);
        put_all(t, store, drafts_of(all, named));
    }
    auto store = t.open();
    kept_as_given(t, store, all);
    each(all, [&](const std::string& name, std::uint64_t n) {
        stored_as_drafted(store, named(name, n), at(0), "an entry with the name " + show(name) + " after a reopen");
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{1'000 + n}, "found by its names after a reopen");
    });
    const auto again = vouch::enqueue(store,
                                      drafts_of(all,
                                                [&](const std::string& name, std::uint64_t n) {
                                                    auto d = named(name, n);
                                                    d.id = id_of(5'000 + n);
                                                    return d;
                                                }),
                                      at(0));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(again[n - 1], duplicate(1'000 + n), "the key " + show(name) + " after a reopen");
    });
}

/// Ends each entry with such a name and requeues it.
inline void successors(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store, drafts_of(all, [&](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.queue = name,
                                    .key = name,
                                    .group = t.can().groups ? name : "",
                                    .lane = t.can().lanes ? name : ""});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            t.equal(tx.cancel(id_of(n), "cancelled", at(0)), verdict::applied, "cancelled");
            const auto other = n == all.size() ? all.front() : all[n];
            const std::array batch{draft_of(1'000 + n, {.queue = other, .predecessor = id_of(n)}),
                                   draft_of(2'000 + n, {.queue = name, .predecessor = id_of(n)})};
            t.equal(tx.enqueue(batch, at(0)), receipts{refused, inserted(2'000 + n)},
                    "requeued in a queue with another name, and in its own");
        });
        const auto before = get(store, n);
        const auto after = get(store, 2'000 + n);
        t.equal(after.queue, before.queue, "the queue of a successor");
        t.equal(after.key, before.key, "the key of a successor");
        t.equal(after.group, before.group, "the group of a successor");
        t.equal(after.lane, before.lane, "the lane of a successor");
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{n, 2'000 + n}, "the generations of a key");
    });
}

inline void wakes_of_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    std::vector<std::uint64_t> seen;
    each(all, [&](const std::string& name, std::uint64_t) { seen.push_back(store.wakes(name)); });
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.queue = name}); }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.expect(wakes_change(store, name, seen[n - 1]), "the number of the queue " + show(name) + " changes");
    });
}

} // namespace names_checks

inline constexpr std::array naming_of_values{
    clause{"NAME-06", layer::examples, level::must, needs::nothing,
           "The names of workers, error codes, and the names and values of headers are kept to the byte.",
           names_checks::kept_names},
    clause{"NAME-07", layer::examples, level::must, needs::nothing,
           "A key belongs to its queue: a queue and a key are never mistaken for another queue and key that read the "
           "same when they are joined.",
           names_checks::keys_and_queues},
    clause{"NAME-08", layer::examples, level::may, needs::lanes,
           "A lane belongs to its queue: a queue and a lane are never mistaken for another queue and lane that read "
           "the same when they are joined.",
           names_checks::lanes_and_queues},
    clause{"NAME-09", layer::examples, level::may, needs::durable,
           "Names are the same, and different names stay different, after a reopen.", names_checks::names_survive},
    clause{"NAME-10", layer::examples, level::must, needs::nothing,
           "A successor has exactly the key, group and lane of its predecessor, and is refused in a queue whose name "
           "differs in any byte.",
           names_checks::successors},
    clause{"NAME-11", layer::examples, level::may, needs::wakes,
           "Each queue has its number of wakes, whatever its name.", names_checks::wakes_of_names},
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

// ---- vouch/conformance/detail/schedule/party.hpp
// A thread that carries out one step at a time, so that a check can let two transactions overlap. A step that waits
// inside the store for another transaction is left alone; it ends when it can.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class party {
  public:
    party() : thread_([this] { run(); }) {}
    party(const party&) = delete;
    party& operator=(const party&) = delete;
    ~party() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }

    /// Carries out a step after the earlier ones. Returns when it has ended, or when the thread waits inside the store.
    void start(std::function<void()> step) {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        steps_.push_back(std::move(step));
        changed_.notify_all();
        while (!changed_.wait_for(lock, look_again, [&] { return steps_.empty(); })) {
            // `arrives_` is read last: it is set before the thread may sleep outside the store.
            if (is_running_ && probe_.is_asleep() && !arrives_) {
                return;
            }
        }
    }

    /// Waits until all steps have ended. Throws what a step has thrown.
    void finish() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return steps_.empty(); });
        if (const auto thrown = std::exchange(thrown_, nullptr)) {
            std::rethrow_exception(thrown);
        }
    }

  private:
    void run() {
        const shown_conflicts raw; // transactions that overlap are not repeated behind their back
        std::unique_lock lock(mutex_);
        probe_ = thread_probe::current();
        for (;;) {
            changed_.wait(lock, [&] { return ends_ || !steps_.empty(); });
            if (steps_.empty()) {
                return;
            }
            const auto step = steps_.front();
            arrives_ = false;
            is_running_ = true;
            lock.unlock();
            std::exception_ptr thrown;
            try {
                step();
            } catch (...) {
                thrown = std::current_exception();
            }
            arrives_ = true; // from here on it does not sleep inside the store
            lock.lock();
            is_running_ = false;
            thrown_ = thrown_ ? thrown_ : thrown;
            steps_.pop_front();
            changed_.notify_all();
        }
    }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::deque<std::function<void()>> steps_{}; ///< the first one is being carried out
    std::exception_ptr thrown_{};
    thread_probe probe_{};
    std::atomic<bool> arrives_ = false;
    bool is_running_ = false;
    bool ends_ = false;
    std::thread thread_; // last: it uses the other members
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/overlaps.hpp
// Transactions that overlap: what remains of one that ends in a conflict, that one of two gets through, and the order
// in which they end. A store may let one wait for the other; then they run one after the other.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace overlap_checks {

using namespace lifecycle_checks;

/// A transaction on a thread of its own.
class rival {
  public:
    rival(trial& t, any_store store, std::uint64_t number) : trial_(t), store_(std::move(store)), number_(number) {}

    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] bool has_committed() const noexcept { return has_committed_; }

    void begin() {
        step([this] { tx_.emplace(store_.begin()); });
    }
    /// Writes in the transaction, unless it has ended in a conflict.
    void write(std::function<void(any_transaction&)> work) {
        step([this, work = std::move(work)] {
            if (tx_) {
                work(*tx_);
            }
        });
    }
    void commit() {
        step([this] {
            if (tx_) {
                tx_->commit();
                has_committed_ = true;
                tx_.reset();
            }
        });
    }
    void roll_back() {
        step([this] { tx_.reset(); });
    }
    void finish() { thread_.finish(); }

  private:
    /// After a conflict the transaction must be closed.
    void step(std::function<void()> work) {
        thread_.start([this, work = std::move(work)] {
            try {
                work();
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict) {
                    throw;
                }
                trial_.expect(!e.is_in_doubt(), "a conflict is not in doubt");
                if (tx_) {
                    all_misuse(trial_, *tx_);
                }
                tx_.reset();
            }
        });
    }

    trial& trial_;
    any_store store_;
    std::uint64_t number_;
    bool has_committed_ = false;
    std::optional<any_transaction> tx_{};
    party thread_{}; // last: it uses the other members
};

/// A store with 10 and 13, which both rivals cancel, and 11 and 12, of which each claims one.
[[nodiscard]] inline any_store contested(trial& t) {
    auto store = t.context().open(t.fresh_location());
    for (const std::uint64_t n : {10U, 11U, 12U, 13U}) {
        put(store, draft_of(n));
    }
    return store;
}

/// Enqueues a draft with a key of its own, claims an entry of its own, and cancels one of the two that both name.
inline void contend(rival& r) {
    const auto n = r.number();
    r.write([n](any_transaction& tx) { put_in(tx, draft_of(n, {.key = "key " + std::to_string(n)})); });
    r.write([n](any_transaction& tx) { std::ignore = tx.claim(request(at(1), {.only = id_of(10 + n)})); });
    r.write([n](any_transaction& tx) { std::ignore = tx.cancel(id_of(n == 1 ? 10 : 13), "e", at(1)); });
}

/// Cancels the other one, so that each rival may wait for what the other one has changed.
inline void cross(rival& r) {
    const auto n = r.number();
    r.write([n](any_transaction& tx) { std::ignore = tx.cancel(id_of(n == 1 ? 13 : 10), "e", at(1)); });
}

/// Requires that all or nothing of a rival is stored, and that nothing stands in the way of another transaction.
inline void all_or_nothing(trial& t, any_store& store, const rival& r) {
    const auto n = r.number();
    t.equal(store.find(id_of(n)).has_value(), r.has_committed(), "stored, if and only if it was committed");
    t.equal(get(store, 10 + n).state == state::claimed, r.has_committed(), "claimed, if and only if it was committed");
    if (!r.has_committed()) {
        t.equal(take_one(store, at(1), {.only = id_of(10 + n)}), ticket{id_of(10 + n), 1},
                "the claim after a claim that ended in a conflict");
        t.equal(put(store, draft_of(n + 4, {.key = "key " + std::to_string(n)})), inserted(n + 4),
                "the key of a draft that ended in a conflict");
        t.equal(put(store, draft_of(n)), inserted(n), "the id of a draft that ended in a conflict");
    }
}

inline void closed_by_conflict(trial& t) {
    for (const bool in_order : {true, false}) {
        auto store = contested(t);
        rival a(t, store, 1);
        rival b(t, store, 2);
        a.begin();
        b.begin();
        contend(a);
        contend(b);
        cross(a);
        cross(b);
        (in_order ? a : b).commit();
        (in_order ? b : a).commit();
        a.finish();
        b.finish();
        for (const std::uint64_t n : {10U, 13U}) {
            t.equal(get(store, n).state == state::dead, a.has_committed() || b.has_committed(),
                    "cancelled, if one of them was committed");
        }
        all_or_nothing(t, store, a);
        all_or_nothing(t, store, b);
        t.equal(put(store, draft_of(9)), inserted(9), "a transaction after that");
    }
}

/// Each loser repeats its transaction at the same time as the other one.
inline void one_gets_through(trial& t) {
    constexpr int rounds = 300; // some stores have conflicts in nine of ten commits
    auto store = contested(t);
    rival a(t, store, 1);
    rival b(t, store, 2);
    const std::array both{&a, &b};
    const auto each = [&](auto&& what) {
        for (auto* r : both) {
            if (!r->has_committed()) {
                what(*r);
            }
        }
    };
    for (int round = 0; round < rounds && !(a.has_committed() && b.has_committed()); ++round) {
        each([](rival& r) { r.begin(); });
        each([](rival& r) { contend(r); });
        each([](rival& r) { cross(r); });
        for (auto* r : both) { // not by `each`, which would look at it while it runs
            r->commit();
        }
        a.finish();
        b.finish();
    }
    t.expect(a.has_committed() || b.has_committed(), "one of two conflicting transactions succeeds, if repeated");
    t.expect(a.has_committed() && b.has_committed(), "so does the other one, when the first has ended");
    t.equal(get(store, 10).state, state::dead, "what both have cancelled");
    t.expect(store.find(id_of(1)).has_value() && store.find(id_of(2)).has_value(), "what they have enqueued");
}

/// One of two open transactions is rolled back while the other one goes on.
inline void ended_in_any_order(trial& t) {
    for (const bool first_ends : {true, false}) {
        auto store = t.context().open(t.fresh_location());
        bool is_done = false;
        constexpr int tries = 50; // a store may let the second one conflict with the first, every time
        for (int left = tries; !is_done && left > 0; --left) {
            rival a(t, store, 1);
            rival b(t, store, 2);
            a.begin();
            a.write([](any_transaction& tx) { put_in(tx, draft_of(1, {.key = "m"})); });
            b.begin();
            b.write([](any_transaction& tx) { put_in(tx, draft_of(2, {.queue = "r"})); });
            auto& gone = first_ends ? a : b;
            auto& kept = first_ends ? b : a;
            if (!first_ends) {
                a.write([](any_transaction& tx) { put_in(tx, draft_of(3)); });
                a.commit(); // b may wait for it
            }
            gone.roll_back();
            if (first_ends) {
                b.write([](any_transaction& tx) { put_in(tx, draft_of(3)); });
                b.commit();
            }
            a.finish();
            b.finish();
            is_done = kept.has_committed();
            t.expect(!store.find(id_of(gone.number())), "nothing is left of the transaction that was rolled back");
            t.equal(store.find(id_of(kept.number())).has_value(), is_done, "what the other one wrote before that");
            t.equal(store.find(id_of(3)).has_value(), is_done, "what the other one wrote after that");
        }
        t.equal(put(store, draft_of(4)), inserted(4), "a transaction after that");
    }
}

} // namespace overlap_checks

inline constexpr std::array overlaps{
    clause{"LIFE-08", layer::interleavings, level::must, needs::nothing,
           "After a conflict a transaction is closed: using it is misuse, nothing of it is stored, and its keys, ids "
           "and claims are free.",
           overlap_checks::closed_by_conflict},
    clause{"LIFE-09", layer::interleavings, level::must, needs::nothing,
           "Of two conflicting transactions that are repeated at the same time, one gets through, and then the other.",
           overlap_checks::one_gets_through},
    clause{"LIFE-10", layer::interleavings, level::must, needs::nothing,
           "A transaction that is rolled back does not affect another one that is open, begun earlier or later.",
           overlap_checks::ended_in_any_order},
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

// ---- vouch/conformance/detail/processes/acknowledged_bytes.hpp
// What a thread was told about its commits, as a message to another process.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

[[nodiscard]] inline std::string bytes_of(const acknowledged& all) {
    vouch::detail::byte_writer out;
    out.number(all.stored.size());
    for (const auto& d : all.stored) {
        for_each_field([&](auto, const auto& field) { out.pass(field); }, d);
    }
    out.pass(all.duplicates);
    out.number(all.claims.size());
    for (const auto& c : all.claims) {
        out.out += to_bytes(c.as);
        out.number(c.number);
        out.number(c.end ? c.end->index() + 1 : 0);
    }
    out.pass(all.cancelled);
    out.pass(all.groups);
    return std::move(out.out);
}

/// The outcome with this index, as `mixed_worker` settles.
[[nodiscard]] inline outcome numbered_outcome(std::size_t index, const ticket& of) {
    switch (index) {
    case 0: return succeed{mark_of(of)};
    case 1: return retry{"failed", at(0)};
    case 2: return bury{"buried", {}};
    case 3: return release{};
    default: return advance{mark_of(of), {}};
    }
}

[[nodiscard]] inline acknowledged acknowledged_in(std::string_view bytes) {
    acknowledged out;
    vouch::detail::byte_reader in{bytes};
    for (auto left = in.number(); left > 0; --left) {
        for_each_field([&](auto, auto& field) { in.pass(field); }, out.stored.emplace_back());
    }
    in.pass(out.duplicates);
    for (auto left = in.number(); left > 0; --left) {
        auto& c = out.claims.emplace_back();
        c.as = take_entry(in.left);
        c.number = in.number();
        if (const auto index = in.number(); index > 0) {
            c.end = numbered_outcome(index - 1, ticket_of(c.as));
        }
    }
    in.pass(out.cancelled);
    in.pass(out.groups);
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/processes/child_process.hpp
// A child process that works with a store, and the memory that it shares with its parent. The child is a fork of the
// program: it opens the location with the fixture, like its parent. It never returns, and destroys nothing when it ends.
//
// Fork before the parent opens the location, because handles must not be used across a fork. POSIX only.

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Messages to and from another process.
class channel {
  public:
    channel(int from, int to) : from_(from), to_(to) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() {
        close(from_);
        close(to_);
    }

    void send(const std::string& message) const {
        const std::uint64_t size = message.size();
        std::string bytes(reinterpret_cast<const char*>(&size), sizeof size); // NOLINT(*-reinterpret-cast): the same
        bytes += message;                                                     // program reads it
        for (std::size_t sent = 0; sent < bytes.size();) {
            const auto n = write(to_, bytes.data() + sent, bytes.size() - sent);
            if (n < 0 && errno != EINTR) {
                return; // the other process has died, which its status tells
            }
            sent += n > 0 ? static_cast<std::size_t>(n) : 0U;
        }
    }
    /// The next message, or nothing if the other process has ended.
    [[nodiscard]] std::optional<std::string> receive() const {
        std::uint64_t size = 0;
        if (!fill(reinterpret_cast<char*>(&size), sizeof size)) { // NOLINT(*-reinterpret-cast)
            return std::nullopt;
        }
        std::string out(size, '\0');
        return fill(out.data(), size) ? std::optional(std::move(out)) : std::nullopt;
    }

    [[nodiscard]] int descriptor() const noexcept { return from_; }

  private:
    [[nodiscard]] bool fill(char* to, std::size_t size) const {
        while (size > 0) {
            const auto n = read(from_, to, size);
            if (n == 0 || (n < 0 && errno != EINTR)) {
                return false;
            }
            to += n > 0 ? n : 0;
            size -= n > 0 ? static_cast<std::size_t>(n) : 0U;
        }
        return true;
    }

    int from_;
    int to_;
};

class child_process {
  public:
    static constexpr std::string_view fails = "failure: "; ///< how the last message of a child that fails begins

    /// Forks, and calls `work(channel)` in the child.
    template <class Work>
    child_process(const trial& t, const Work& work) {
        int down[2];
        int up[2];
        if (pipe(down) != 0 || pipe(up) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        pid_ = fork();
        if (pid_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        const bool is_child = pid_ == 0;
        close(is_child ? down[1] : down[0]);
        close(is_child ? up[0] : up[1]);
        channel_.emplace(is_child ? down[0] : up[0], is_child ? up[1] : down[1]);
        if (is_child) {
            run(t, work);
        }
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    [[nodiscard]] const channel& talk() const noexcept { return *channel_; }
    void kill() const { ::kill(pid_, SIGKILL); }

    /// Waits for the end of the child. Throws the failure that it has found; `last` is its last message so far.
    void join(std::optional<std::string> last = {}) {
        for (auto next = talk().receive(); next; next = talk().receive()) {
            last = std::move(next);
        }
        int status = 0;
        waitpid(std::exchange(pid_, 0), &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == exit_fails) {
            trial::fail("a process works with the store", last.value_or(""), "no failure");
        }
        const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!was_killed && status != 0) {
            trial::fail("a process works with the store", "its status is " + std::to_string(status), "no failure");
        }
    }

  private:
    static constexpr int exit_fails = 90;

    template <class Work>
    [[noreturn]] void run(const trial& t, const Work& work) const {
        std::signal(SIGPIPE, SIG_DFL);
        alarm(static_cast<unsigned>(t.options().seconds_per_clause)); // the watchdog belongs to the parent
        const auto found = failure_of([&] { work(*channel_); });
        if (!found.what.empty()) {
            talk().send(std::string(fails) + found.what + "; seen: " + found.seen + "; expected: " + found.expected);
            _exit(exit_fails);
        }
        _exit(0);
    }

    pid_t pid_ = 0;
    std::optional<channel> channel_{};
};

/// One message from each child, as they come. Calls `one_has_failed` when the first of them ends without success, so that
/// the others need not wait for it.
template <class Children, class OnFailure>
[[nodiscard]] std::vector<std::string> answers_of(const Children& children, const OnFailure& one_has_failed) {
    std::vector<std::string> out(children.size());
    std::vector<pollfd> open;
    for (const auto& c : children) {
        open.push_back({c->talk().descriptor(), POLLIN, 0});
    }
    for (auto left = out.size(); left > 0;) {
        poll(open.data(), open.size(), -1);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (open[i].fd >= 0 && open[i].revents != 0) {
                out[i] = children[i]->talk().receive().value_or("");
                if (out[i].empty() || out[i].starts_with(child_process::fails)) {
                    one_has_failed();
                }
                open[i].fd = -1; // poll ignores it
                left -= 1;
            }
        }
    }
    return out;
}

/// An object in memory that children share with their parent. Its members are atomic.
template <class T>
class shared_object {
  public:
    template <class... Arguments>
    explicit shared_object(Arguments&&... arguments)
        : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        if (memory_ == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        object_ = new (memory_) T(std::forward<Arguments>(arguments)...);
    }
    shared_object(const shared_object&) = delete;
    shared_object& operator=(const shared_object&) = delete;
    ~shared_object() {
        object_->~T();
        munmap(memory_, sizeof(T));
    }
    [[nodiscard]] T& operator*() const noexcept { return *object_; }
    [[nodiscard]] T* operator->() const noexcept { return object_; }

  private:
    void* memory_;
    T* object_ = nullptr;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

#endif

// ---- vouch/conformance/clauses/processes.hpp
// Processes: a child of the program works with a location and ends by `_exit` or SIGKILL, or two of them work at the same
// time. What counts is what another process then finds.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace processes_checks {

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)

/// A chain of transactions. The n-th enqueues two entries, claims those of the one before, and ends those of the one
/// before that. After each call it calls `between`.
template <class Between>
void transaction_of_chain(any_store& store, std::uint64_t n, const Between& between) {
    repeat_after_conflict([&] {
        auto tx = store.begin();
        between();
        tx.enqueue(std::vector{numbered_draft(2 * n, {.key = "k" + std::to_string(n)}), numbered_draft(2 * n + 1)},
                   at(0));
        between();
        for (const auto which : {2 * n - 2, 2 * n - 1}) {
            if (n > 1) {
                auto one = numbered_claim(n, 1);
                one.only = id_of(which);
                trial::equal(tx.claim(one).size(), std::size_t{1}, "an entry of the transaction before, claimed");
                between();
            }
        }
        for (const auto which : {2 * n - 4, 2 * n - 3}) {
            if (n > 2) {
                const ticket held{id_of(which), 1};
                trial::equal(settle_in(tx, held, succeed{mark_of(held)}, at(0)).verdict, verdict::applied, "settled");
                between();
            }
        }
        tx.commit();
    });
}

/// The entries after n transactions, without sequences.
[[nodiscard]] inline std::vector<entry> chain_of(std::uint64_t n) {
    std::vector<entry> out;
    for (std::uint64_t i = 2; i < 2 * n + 2; ++i) {
        const auto made = i / 2;
        auto& e =
            out.emplace_back(born(numbered_draft(i, {.key = i % 2 == 0 ? "k" + std::to_string(made) : ""}), at(0)));
        if (made < n) {
            apply(e, numbered_claim(made + 1, 1));
        }
        if (made + 1 < n) {
            static_cast<void>(apply(e, vouch::settle{ticket_of(e), succeed{mark_of(ticket_of(e))}}, at(0)));
        }
    }
    return out;
}

/// Requires that exactly the first `acknowledged` transactions are stored, or one more if `maybe_more`. Returns how many.
inline std::uint64_t require_chain(const any_store& store, std::uint64_t acknowledged, bool maybe_more) {
    auto found = store.list({.queue = "q", .limit = 10'000, .payloads = true});
    for (auto& e : found) {
        e.sequence = 0;
    }
    if (maybe_more && found == chain_of(acknowledged + 1)) {
        return acknowledged + 1;
    }
    trial::equal(found, chain_of(acknowledged),
                 maybe_more ? "the entries after the death of a process: all that it was told are committed, and the "
                              "next transaction as a whole or not at all"
                            : "the entries after the end of a process: all that it has committed, and nothing else");
    return acknowledged;
}

/// Runs the chain in a child until `ends` ends it, and then checks what is stored and goes on with it.
template <class Child>
void after_the_end_of(trial& t, bool maybe_more, const Child& in_child, std::uint64_t kill_after = 0) {
    const auto p = t.fresh_location();
    std::uint64_t acknowledged = 0;
    {
        child_process child(t, [&](const channel& parent) {
            auto store = t.context().open(p);
            in_child(store, [&](std::uint64_t n) { parent.send(std::to_string(n)); });
        });
        while (const auto said = child.talk().receive()) {
            if (said->find_first_not_of("0123456789") != std::string::npos) {
                trial::fail("a process works with the store", *said, "no failure");
            }
            acknowledged = std::stoull(*said);
            if (acknowledged == kill_after) {
                child.kill(); // at any point of what it does next
            }
        }
        child.join();
    }
    {
        auto store = t.context().open(p);
        const auto stored = require_chain(store, acknowledged, maybe_more);
        transaction_of_chain(store, stored + 1, [] {});
        require_chain(store, stored + 1, false);
    }
    t.abandon(p);
}

inline void stored_at_exit(trial& t) {
    for (const std::uint64_t transactions : {1U, 4U}) {
        after_the_end_of(t, false, [&](any_store& store, const auto& acknowledge) {
            for (std::uint64_t n = 1; n <= transactions; ++n) {
                transaction_of_chain(store, n, [] {});
                acknowledge(n);
            }
            repeat_after_conflict([&] {
                auto open = store.begin();
                open.enqueue(std::vector{numbered_draft(1'000)}, at(0));
                _exit(0); // with a handle and a transaction open
            });
        });
    }
}

[[noreturn]] inline void die_now() {
    ::kill(getpid(), SIGKILL);
    std::abort(); // not reached
}

inline void stored_at_death(trial& t) {
    constexpr std::size_t deaths = 4; // of each kind
    const auto rounds = deaths * threads_checks::rounds_of(t);
    for (std::size_t i = 0; i < rounds; ++i) { // between two calls
        auto left = 1 + t.random().below(24);
        after_the_end_of(t, true, [&](any_store& store, const auto& acknowledge) {
            for (std::uint64_t n = 1;; ++n) {
                transaction_of_chain(store, n, [&] { --left == 0 ? die_now() : static_cast<void>(0); });
                acknowledge(n);
            }
        });
    }
    for (std::size_t i = 0; t.hooks().seam && i < rounds; ++i) { // at a seam
        auto left = 1 + t.random().below(60);
        after_the_end_of(t, true, [&](any_store& store, const auto& acknowledge) {
            t.hooks().seam([&](std::string_view) { --left == 0 ? die_now() : static_cast<void>(0); });
            for (std::uint64_t n = 1; n < 40; ++n) {
                transaction_of_chain(store, n, [] {});
                acknowledge(n);
            }
        });
    }
    for (std::size_t i = 0; i < rounds; ++i) { // anywhere
        const auto kill_after = 1 + t.random().below(6);
        after_the_end_of(
            t, true,
            [&](any_store& store, const auto& acknowledge) {
                for (std::uint64_t n = 1; n < 10'000; ++n) {
                    transaction_of_chain(store, n, [] {});
                    acknowledge(n);
                }
            },
            kill_after);
    }
}

/// Starts a child that commits the entry of each number it receives, and answers with the entries it then sees.
template <class Use>
void beside_another(trial& t, const Use& use) {
    const auto p = t.fresh_location();
    {
        child_process child(t, [&](const channel& parent) {
            auto store = t.context().open(p);
            while (const auto said = parent.receive()) {
                const auto d = draft_of(std::stoull(*said));
                commit_freely(store, [&](auto& tx) { tx.enqueue(std::span(&d, 1), at(0)); });
                parent.send(show(ids_of(store.list(query::all("q")))));
            }
        });
        const auto store_there = [&](std::uint64_t n) {
            child.talk().send(std::to_string(n));
            return child.talk().receive().value_or("no answer");
        };
        trial::equal(store_there(1), show(std::vector{id_of(1)}), "what another process sees of its own commit");
        auto store = t.context().open(p); // only now: a handle must not be open during the fork
        use(store, store_there);
    }
    t.abandon(p);
}

inline void see_each_other(trial& t) {
    if (!t.can().shared) {
        return;
    }
    beside_another(t, [&](any_store& store, const auto& store_there) {
        std::vector<id> all{id_of(1)};
        for (std::uint64_t n = 2; n < 12; n += 2) {
            t.equal(ids_of(store.list(query::all("q"))), all,
                    "the commits of another process, when they have returned");
            const auto mine = draft_of(n);
            commit_freely(store, [&](auto& tx) { tx.enqueue(std::span(&mine, 1), at(0)); });
            all.insert(all.end(), {id_of(n), id_of(n + 1)});
            t.equal(store_there(n + 1), show(all), "what another process sees of the commits of this one");
        }
        std::vector<entry> claimed;
        commit_freely(store, [&](auto& tx) { claimed = tx.claim(request(at(0))); });
        t.equal(ids_of(claimed), all, "the entries of both processes, claimed");
    });
}

inline void wake_each_other(trial& t) {
    if (!t.can().shared || !t.can().wakes) {
        return;
    }
    beside_another(t, [&](any_store& store, const auto& store_there) {
        constexpr std::chrono::seconds patience{5};
        for (std::uint64_t n = 2; n < 4; ++n) {
            const auto seen = store.wakes("q");
            static_cast<void>(store_there(n));
            t.expect(store.wait("q", seen, patience, {}) != seen,
                     "a wait ends when another process has committed work");
        }
    });
}

inline void work_together(trial& t) {
    if (!t.can().shared) {
        return;
    }
    constexpr std::size_t count = 2;
    constexpr std::size_t steps = 60;
    for (auto left = threads_checks::rounds_of(t); left > 0; --left) {
        const auto p = t.fresh_location();
        {
            shared_object<mixed_state> shared;
            shared_object<start_line> line(count);
            shared->storing = shared->stored = threads_checks::members(t.can()).size();
            const auto seed = t.random().roll();
            std::vector<std::unique_ptr<child_process>> children;
            for (std::size_t n = 0; n < count; ++n) {
                children.push_back(std::make_unique<child_process>(t, [&, n](const channel& parent) {
                    auto store = t.context().open(p);
                    if (n == 0) {
                        commit_freely(store, [&](auto& tx) { tx.enqueue(threads_checks::members(t.can()), at(0)); });
                    }
                    const yielding_seam seam(t);
                    mixed_worker one(store, t.can(), *shared, n, seed);
                    for (std::size_t i = 0; i < steps && (i % 8 != 0 || line->wait()); ++i) {
                        one.step();
                    }
                    one.finish();
                    parent.send(bytes_of(one.acknowledgements()));
                }));
            }
            const auto messages = answers_of(children, [&] { line->give_up(); });
            acknowledged all;
            for (std::size_t n = 0; n < count; ++n) {
                children[n]->join(messages[n]);
                all.add(acknowledged_in(messages[n]));
            }
            auto store = t.context().open(p);
            mixed_worker last(store, t.can(), *shared, count, seed);
            threads_checks::end_all(t, last, std::move(all), store);
        }
        t.abandon(p);
    }
}

#else

[[noreturn]] inline void not_here(trial&) { throw untested{"the system has no fork"}; }
inline constexpr auto stored_at_exit = not_here;
inline constexpr auto stored_at_death = not_here;
inline constexpr auto see_each_other = not_here;
inline constexpr auto work_together = not_here;
inline constexpr auto wake_each_other = not_here;

#endif

} // namespace processes_checks

inline constexpr std::array processes{
    clause{"PROC-01", layer::processes, level::may, needs::durable,
           "What a process has committed is stored for others when the process ends and destroys nothing.",
           processes_checks::stored_at_exit},
    clause{"PROC-02", layer::processes, level::may, needs::durable,
           "If a process is killed at any point, what it was told is committed is stored, and an unfinished "
           "transaction is stored as a whole or not at all.",
           processes_checks::stored_at_death},
    clause{"PROC-03", layer::processes, level::may, needs::durable,
           "If the store is shared, processes that use one location see each other's commits as soon as they return.",
           processes_checks::see_each_other},
    clause{"PROC-04", layer::processes, level::may, needs::durable,
           "If the store is shared, processes may use one location at the same time, as threads may use one handle.",
           processes_checks::work_together},
    clause{"PROC-05", layer::processes, level::may, needs::durable,
           "If the store is shared and has wakes, a wait ends when another process has committed work.",
           processes_checks::wake_each_other},
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

/// A new location. What is stored there is removed at the end, when all handles must be gone.
struct passing_home {
    explicit passing_home(trial& in) : t(in), where(in.fresh_location()) {}
    passing_home(const passing_home&) = delete;
    passing_home& operator=(const passing_home&) = delete;
    ~passing_home() { t.abandon(where); }

    trial& t;
    location where;
};

struct simulation_context {
    simulation_context(trial& in, std::uint64_t with)
        : home(in), t(in), seed(with), random(with), plain(in.open(home.where)) {}
    simulation_context(const simulation_context&) = delete;
    simulation_context& operator=(const simulation_context&) = delete;

    passing_home home; // first: it outlives the handles
    trial& t;
    std::uint64_t seed;
    random_source random;
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
        return {recording<any_store>(t.can().shared ? t.open(home.where) : plain, calls), plan};
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

/// Repeats one small simulation and fails another call of its runners each time. The other clauses about faults have more
/// teeth, so a smaller budget tells here most.
inline void failing_runners(trial& t) {
    const auto seed = t.random().roll();
    for (const auto when : {fault_moment::before, fault_moment::after}) {
        for (const bool persistent : {false, true}) {
            const auto some = t.budget().point_stride == 1 ? 1 : 3 * t.budget().point_stride;
            for (std::uint64_t n = 1 + t.random().below(some), fired = 1; fired > 0 && n <= 200;
                 n += persistent ? 7 * some : some) {
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

// ---- vouch/conformance/clauses/sizes.hpp
// Sizes: batches with many items. Every item gets its own answer, in order, and its own values.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

using namespace enqueue_checks;

/// More than any of the small numbers at which stores divide their work: 100, 256, 999, 1000, 1024.
inline constexpr std::uint64_t many = 1'100;

/// All entries of a path, with payloads.
[[nodiscard]] inline std::vector<entry> all_of(trial& t, const any_store& store, query q) {
    q.limit = t.can().limits.batch_max;
    q.payloads = true;
    return store.list(q);
}

/// Requires that the queue contains what the model contains. The store chooses the sequences.
inline void stored_as_modelled(trial& t, const any_store& store, model& m, const std::string& what) {
    const auto stored = all_of(t, store, query::all("q"));
    t.equal(stored.size(), m.records.size(), "the number of entries " + what);
    for (std::size_t i = 0; i < stored.size(); ++i) {
        m.records[i].entry.sequence = stored[i].sequence;
        t.equal(stored[i], m.records[i].entry, "entry " + show(i) + " of those " + what);
    }
}

/// Enqueues the drafts, and claims all of them at 0 until 100.
[[nodiscard]] inline std::vector<entry> claimed(trial& t, any_store& store, const std::vector<draft>& drafts) {
    return transact(store, [&](auto& tx) {
        tx.enqueue(drafts, at(0));
        auto taken = tx.claim(request(at(0), {.limit = t.can().limits.batch_max}));
        t.equal(taken.size(), drafts.size(), "claimed of a large batch");
        return taken;
    });
}

/// The draft of a large batch with the number n: some have headers and a trail, a few the key or the id of another.
[[nodiscard]] inline draft mixed_draft(std::uint64_t n) {
    auto d = draft_of(n, {.payload = "payload " + show(n), .attempts_max = static_cast<std::uint32_t>(n)});
    if (n % 3 == 0) {
        d.headers = {{"name", "value " + show(n)}};
        d.trail = {id_of(n)};
    }
    if (n % 4 == 1) {
        d.key = "key " + show(n);
    } else if (n % 4 == 2 && n > 400) {
        d.id = id_of(n - 400); // far back in the same batch
    } else if (n % 4 == 3) {
        d.key = "key " + show(n / 8 * 4 + 1); // in the first half of those before it
    }
    return d;
}

inline void receipts_in_order(trial& t) {
    auto store = t.open();
    std::vector<draft> stored;
    std::vector<draft> batch;
    for (std::uint64_t n = 1; n <= many; ++n) {
        if (n % 11 == 0) {
            stored.push_back(draft_of(n, {.key = "key " + show(n)}));
        }
        batch.push_back(mixed_draft(n));
    }
    model m;
    receipts expected;
    for (const auto& d : stored) {
        std::ignore = m.enqueue(d, at(0));
    }
    for (const auto& d : batch) {
        expected.push_back(m.enqueue(d, at(1)));
    }
    vouch::enqueue(store, stored, at(0));
    const auto seen = vouch::enqueue(store, batch, at(1));
    t.equal(seen.size(), expected.size(), "the number of receipts for a large batch");
    for (std::size_t i = 0; i < seen.size(); ++i) {
        t.equal(seen[i], expected[i], "receipt " + show(i) + " of a large batch with duplicates");
    }
    stored_as_modelled(t, store, m, "stored by a large batch with duplicates");
}

inline void claims_in_order(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        auto d = mixed_draft(n);
        d.id = id_of(n);
        d.key.clear();
        d.due_at = at(-static_cast<std::int64_t>(n * 7 % 500));
        drafts.push_back(std::move(d));
    }
    model m;
    for (const auto& d : drafts) {
        std::ignore = m.enqueue(d, at(0));
    }
    vouch::enqueue(store, drafts, at(0));
    stored_as_modelled(t, store, m, "before a large claim");
    for (const std::size_t limit : {std::size_t{1'030}, t.can().limits.batch_max}) {
        const auto how = request(at(limit == 1'030 ? 0 : 200), {.limit = limit});
        const auto expected = m.claim(how);
        const auto seen = claim(store, how);
        t.equal(seen.size(), expected.size(), "the size of a large claim");
        for (std::size_t i = 0; i < seen.size(); ++i) {
            t.equal(seen[i], expected[i], "entry " + show(i) + " of a large claim");
        }
        stored_as_modelled(t, store, m, "after a large claim");
    }
}

/// What a settle does to one entry, as the model says.
[[nodiscard]] inline std::pair<verdict, entry> settled(const entry& e, const vouch::settle& s, time_point now) {
    model m;
    m.records.push_back({e});
    const auto answer = m.settle(s, now).verdict;
    return {answer, m.records.front().entry};
}

/// An outcome whose values belong to the number n. `kind` is 0 to 4.
[[nodiscard]] inline outcome outcome_of(std::uint64_t kind, std::uint64_t n) {
    const auto text = show(n);
    const auto later = at(1'000 + static_cast<std::int64_t>(n));
    switch (kind) {
    case 0: return succeed{"result " + text};
    case 1: return retry{"error " + text, later};
    case 2: return bury{"error " + text, "result " + text};
    case 3: return advance{"progress " + text, later};
    default: return release{later};
    }
}

/// Settles the batch, and requires the answers and the entries that the model gives for each item alone.
inline void settles_each(trial& t, any_store& store, std::vector<entry> entries,
                         const std::vector<vouch::settle>& batch) {
    const auto seen = transact(store, [&](auto& tx) { return tx.settle(batch, at(50)); });
    t.equal(seen.size(), batch.size(), "the number of answers to a large batch of settles");
    for (std::size_t i = 0; i < batch.size(); ++i) {
        auto expected = verdict::unknown;
        if (const auto n = batch[i].ticket.id.low; n <= entries.size()) {
            std::tie(expected, entries[n - 1]) = settled(entries[n - 1], batch[i], at(50));
        }
        t.equal(seen[i], settlement{expected, false}, "the answer to settle " + show(i) + " of a batch");
    }
    const auto stored = all_of(t, store, query::all("q"));
    t.equal(stored.size(), entries.size(), "the number of entries after a large batch of settles");
    for (std::size_t i = 0; i < stored.size(); ++i) {
        t.equal(stored[i], entries[i], "the entry " + show(i + 1) + " after a batch of settles");
    }
}

inline void settles_in_order(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (std::uint64_t n = 1; n <= many; ++n) {
        const auto kind = n % 9;
        const auto wrong = kind == 5 ? 7U : 1U;                                      // stale
        const auto far = kind == 6 && n > 300 ? n - 300 : kind == 7 ? 9'000 + n : n; // used up, unknown
        batch.push_back({{id_of(far), wrong}, outcome_of(kind, n)});
    }
    settles_each(t, store, entries, batch);
}

inline void runs_of_settles(trial& t) {
    for (std::uint64_t kind = 0; kind <= 4; ++kind) {
        auto store = t.open(t.fresh_location());
        const auto entries = claimed(t, store, numbered(20, draft_of(1)));
        std::vector<vouch::settle> batch;
        for (std::uint64_t n = 1; n <= entries.size(); ++n) {
            // Neighbours with equal values, and with different ones.
            batch.push_back({ticket_of(entries[n - 1]), outcome_of(kind, n % 5 == 0 ? n - 1 : n)});
        }
        settles_each(t, store, entries, batch);
    }
}

inline void all_succeed(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{"result " + show(e.id.low)}});
    }
    settles_each(t, store, entries, batch);
}

inline void extends_in_order(trial& t) {
    auto store = t.open();
    auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<ticket> batch;
    std::vector<verdict> expected;
    for (std::uint64_t n = 1; n <= many; ++n) {
        const auto kind = n % 5;
        batch.push_back({id_of(kind == 1 ? 9'000 + n : n), kind == 2 ? 2U : 1U});
        expected.push_back(kind == 1 ? verdict::unknown : kind == 2 ? verdict::stale : verdict::applied);
        if (expected.back() == verdict::applied) {
            entries[n - 1].lease_until = at(90 + 200);
            entries[n - 1].updated_at = at(90);
        }
    }
    const auto seen = transact(store, [&](auto& tx) { return tx.extend(batch, at(90), duration{200}); });
    t.equal(seen.size(), batch.size(), "the number of answers to a large batch of tickets");
    for (std::size_t i = 0; i < batch.size(); ++i) {
        t.equal(seen[i], expected[i], "the answer to ticket " + show(i) + " of a large extend");
    }
    const auto stored = all_of(t, store, query::all("q"));
    for (std::size_t i = 0; i < many; ++i) {
        t.equal(stored[i], entries[i], "the entry " + show(i + 1) + " after a large extend");
    }
}

inline void largest_batches(trial& t) {
    const auto most = t.can().limits.batch_max;
    auto store = t.open();
    const auto receipts = vouch::enqueue(store, numbered(most, draft_of(1)), at(0));
    t.equal(receipts.back(), inserted(most), "the last receipt of the largest batch");
    t.equal(store.counts("q")[state::pending], most, "counted after the largest batch");
    const auto taken = take(store, at(0), {.limit = most});
    t.equal(taken.size(), most, "claimed with the largest limit");
    t.equal(take(store, at(99), {.limit = most}).size(), 0, "claimed again while all leases run");
    std::vector<vouch::settle> batch;
    for (const auto& e : taken) {
        batch.push_back({ticket_of(e), succeed{show(e.id.low)}});
    }
    const auto answers = transact(store, [&](auto& tx) {
        const auto extended = tx.extend(tickets_of(taken), at(1), duration{100});
        t.equal(extended, std::vector(most, verdict::applied), "the answers to the largest extend");
        return tx.settle(batch, at(2));
    });
    t.equal(answers, std::vector(most, settlement{verdict::applied, false}), "the answers to the largest settle");
    const auto listed = all_of(t, store, query::all("q"));
    t.equal(listed.size(), most, "listed with the largest limit");
    for (const auto& e : listed) {
        t.equal(e.result, show(e.id.low), "the result of an entry in the largest batch");
    }
    t.equal(store.counts("q")[state::succeeded], most, "counted after the largest settle");
    t.equal(purge(store, {.queue = "q", .before = at(3), .limit = most}), most, "purged with the largest limit");
    t.equal(store.counts("q").total(), 0, "left by the largest purge");
}

} // namespace sizes_checks

inline constexpr std::array sizes{
    clause{"SIZE-01", layer::examples, level::must, needs::nothing,
           "A large batch of drafts returns one receipt per draft, in order, whichever of them are duplicates by id or "
           "key of stored drafts or of earlier ones of the batch; each entry has its own draft's fields.",
           sizes_checks::receipts_in_order},
    clause{"SIZE-02", layer::examples, level::must, needs::nothing,
           "A large claim takes the first `limit` entries and returns each of them once, in order and with its own "
           "fields.",
           sizes_checks::claims_in_order},
    clause{"SIZE-03", layer::examples, level::must, needs::nothing,
           "Neighbours in a batch of settles with the same kind of outcome each get their own result, error, progress "
           "and time.",
           sizes_checks::runs_of_settles},
    clause{"SIZE-04", layer::examples, level::must, needs::nothing,
           "A large batch of settles returns one settlement per item, in order, and applies each outcome to its own "
           "entry.",
           sizes_checks::settles_in_order},
    clause{"SIZE-05", layer::examples, level::must, needs::nothing,
           "In a large batch of successes each entry gets its own result.", sizes_checks::all_succeed},
    clause{"SIZE-06", layer::examples, level::must, needs::nothing,
           "A large batch of tickets returns one verdict per ticket, in order, and extends exactly the valid ones.",
           sizes_checks::extends_in_order},
};

/// These take the most time, so they come last.
inline constexpr std::array largest_sizes{
    clause{"SIZE-26", layer::examples, level::must, needs::nothing,
           "enqueue, claim, extend, settle, list and purge handle batch_max entries in one call.",
           sizes_checks::largest_batches},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/sizes_reads.hpp
// Sizes: lists, counts, next_due and purges of many entries, and many queues in one store.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

inline constexpr std::uint64_t parent_of_all = 9'999;
inline constexpr std::uint64_t queues_many = 300;

/// `many` entries of "q" that share a parent and, if the store has them, a group. The topic of the last 90 is "rare".
[[nodiscard]] inline std::vector<draft> related_drafts(const capabilities& can) {
    std::vector<draft> out;
    for (std::uint64_t n = 1; n <= many; ++n) {
        out.push_back(draft_of(n, {.topic = n + 90 > many ? "rare" : "usual",
                                   .group = can.groups ? "g" : "",
                                   .parent = id_of(parent_of_all)}));
    }
    return out;
}

[[nodiscard]] inline list_of numbers_from(std::uint64_t first, std::uint64_t last) {
    list_of out;
    for (auto n = first; n <= last; ++n) {
        out.push_back(n);
    }
    return out;
}

/// Requires every page of a path on which the entries 1 to `many` are, for limits around those that stores choose.
inline void lists_in_pages(trial& t, const any_store& store, query q) {
    for (const std::uint64_t limit : {255U, 256U, 257U, 999U, 1'000U, 1'001U, 1'100U, 1'101U}) {
        q.limit = limit;
        q.after = 0;
        std::uint64_t first = 1;
        while (first <= many) {
            const auto page = store.list(q);
            const auto last = std::min(many, first + limit - 1);
            t.equal(numbers(page), numbers_from(first, last),
                    "a page of " + show(limit) + " from entry " + show(first));
            q.after = page.back().sequence;
            first = last + 1;
        }
        t.equal(store.list(q).size(), 0, "listed after the last page of " + show(limit));
    }
    q.limit = 100;
    q.after = 0;
    q.topic = "rare";
    t.equal(numbers(store.list(q)), numbers_from(many - 89, many), "the entries of a rare topic behind many others");
}

inline void long_lists(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, related_drafts(t.can()));
    std::vector<query> paths{query::all("q"), query::live("q"), query::children(id_of(parent_of_all))};
    if (t.can().groups) {
        paths.push_back(query::members("g"));
    }
    for (const auto& q : paths) {
        lists_in_pages(t, store, q);
    }
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), bury{"e", {}}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); });
    lists_in_pages(t, store, query::dead("q"));
    auto by_state = query::all("q");
    by_state.state = state::dead;
    lists_in_pages(t, store, by_state);
}

inline void large_counts(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(5 * many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (std::size_t i = 0; i < 4 * many; ++i) {
        // 1,100 pending, 1,100 retrying, 1,100 succeeded, 1,100 dead; the others stay claimed
        const std::array outcomes{outcome{release{}}, outcome{retry{"e", at(0)}}, outcome{succeed{}},
                                  outcome{bury{"e", {}}}};
        batch.push_back({ticket_of(entries[i]), outcomes[i / many]});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); });
    t.equal(store.counts("q"), state_counts{{many, many, many, many, many}}, "the counts of a large queue");
    t.equal(store.counts("q").total(), 5 * many, "the total of a large queue");
}

inline void due_of_many(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n, {.due_at = at(10'000 - static_cast<std::int64_t>(n))}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (const std::int64_t n : {1'100, 1'099, 1'098}) {
        t.equal(store.next_due("q"), at(10'000 - n), "next_due when the last of many is due first");
        cancel(store, id_of(static_cast<std::uint64_t>(n)));
    }
    t.equal(numbers(take(store, at(10'000), {.limit = 2})), list_of{1'097, 1'096}, "the first two of many");
}

inline void large_purges(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 2 * many; ++n) {
        drafts.push_back(draft_of(n, {.result = show(n)}));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 1'050}), 1'050, "purged with a large limit");
    t.equal(all_of(t, store, query::all("q")).front().id, id_of(1'051), "the oldest after a large purge");
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = t.can().limits.batch_max}), 2 * many - 1'050,
            "purged with the largest limit");
    t.equal(store.counts("q").total(), 0, "left by the second purge");
}

[[nodiscard]] inline std::string queue_name(std::uint64_t n) { return "queue " + show(n); }

inline void many_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const auto due = at(static_cast<std::int64_t>(n));
        drafts.push_back(draft_of(n, {.queue = queue_name(n), .key = "key", .due_at = due}));
        drafts.push_back(draft_of(1'000 + n, {.queue = queue_name(n), .result = ""}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const auto name = queue_name(n);
        const auto due = at(static_cast<std::int64_t>(n));
        t.equal(store.counts(name), state_counts{{1, 0, 0, 1, 0}}, "the counts of one queue of many");
        t.equal(store.next_due(name), due, "next_due of one queue of many");
        t.equal(numbers(store.list(query::all(name))), list_of{n, 1'000 + n}, "listed of one queue of many");
        t.equal(numbers(store.list(query::keyed(name, "key"))), list_of{n}, "a key in one queue of many");
    }
    for (std::uint64_t n = 1; n <= queues_many; n += 7) {
        const auto name = queue_name(n);
        const auto taken = transact(store, [&](auto& tx) {
            t.equal(tx.purge({.queue = name, .before = at(1)}), 1, "purged of one queue of many");
            return tx.claim(request(at(1'000), {.queue = name, .lease = duration{static_cast<std::int64_t>(n)}}));
        });
        t.equal(numbers(taken), list_of{n}, "claimed of one queue of many");
        t.equal(store.next_due(name), at(1'000 + static_cast<std::int64_t>(n)), "next_due of that queue");
    }
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const bool is_changed = n % 7 == 1;
        t.equal(store.counts(queue_name(n)), is_changed ? state_counts{{0, 0, 1, 0, 0}} : state_counts{{1, 0, 0, 1, 0}},
                "the counts of one queue of many, when some were claimed and purged");
    }
}

inline void wakes_of_many_queues(trial& t) {
    auto store = t.open();
    std::vector<std::uint64_t> seen;
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        seen.push_back(store.wakes(queue_name(n)));
        drafts.push_back(draft_of(n, {.queue = queue_name(n)}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        t.expect(wakes_change(store, queue_name(n), seen[n - 1]), "the number of each of many queues changes");
    }
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_reads{
    clause{"SIZE-07", layer::examples, level::must, needs::nothing,
           "Long lists are complete on every path and with every filter: no page ends early, repeats or skips.",
           sizes_checks::long_lists},
    clause{"SIZE-08", layer::examples, level::must, needs::nothing,
           "counts is exact for thousands of entries in every state.", sizes_checks::large_counts},
    clause{"SIZE-09", layer::examples, level::must, needs::nothing,
           "next_due and claim find the earliest of many entries, wherever it is in the queue.",
           sizes_checks::due_of_many},
    clause{"SIZE-10", layer::examples, level::must, needs::nothing,
           "One purge removes as many entries as its limit allows, oldest first.", sizes_checks::large_purges},
    clause{"SIZE-11", layer::examples, level::must, needs::nothing,
           "In a store with hundreds of queues, each queue has its own entries, keys, counts, next_due, claims and "
           "purges.",
           sizes_checks::many_queues},
    clause{"SIZE-12", layer::examples, level::may, needs::wakes,
           "In a store with hundreds of queues, the number of each one changes with a commit of its work.",
           sizes_checks::wakes_of_many_queues},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/sizes_histories.hpp
// Sizes: long lanes, large groups, many generations and long histories of one entry.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

inline constexpr std::uint64_t related_many = 300; ///< members of a lane or a group; more than eight bits

/// Calls `step(tx, n)` for every n from 1 to `count`, a few in each transaction: a store that may throw a conflict in any
/// call has to get through.
template <class Step>
void in_few(any_store& store, std::uint64_t count, const Step& step) {
    constexpr std::uint64_t few = 10;
    for (std::uint64_t first = 1; first <= count; first += few) {
        transact(store, [&](auto& tx) {
            for (auto n = first; n <= std::min(count, first + few - 1); ++n) {
                step(tx, n);
            }
        });
    }
}

inline void long_lane(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts{draft_of(1'001, {.lane = "other"})};
    for (std::uint64_t n = 1; n <= related_many; ++n) {
        // The due times descend, so only the lane keeps the order.
        drafts.push_back(draft_of(n, {.lane = "lane", .due_at = at(-static_cast<std::int64_t>(n))}));
    }
    drafts.push_back(draft_of(1'002, {.lane = "other"}));
    vouch::enqueue(store, drafts, at(0));
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{1, 1'001}, "claimed of two lanes");
    t.equal(take(store, at(0), {.limit = 1'000}).size(), 0, "claimed while both heads are held");
    settle(store, {id_of(1'001), 1}, succeed{});
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{1'002}, "the next of a lane, far behind its head");
    in_few(store, related_many, [&](auto& tx, std::uint64_t n) {
        const auto ends = n % 3 == 0 ? outcome{bury{"e", {}}} : outcome{succeed{}};
        t.equal(settle_in(tx, {id_of(n), 1}, ends, at(1)).verdict, verdict::applied, "the end of a head");
        t.equal(numbers(tx.claim(request(at(1), {.limit = 1'000}))), n < related_many ? list_of{n + 1} : list_of{},
                "claimed of a long lane after entry " + show(n));
    });
}

inline void large_group(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(related_many, draft_of(1, {.group = "g"})));
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{}});
    }
    const auto last = batch.back();
    batch.pop_back();
    t.equal(transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); }),
            std::vector(batch.size(), settlement{verdict::applied, false}), "all members of a group but one");
    t.equal(settle(store, last.ticket, last.outcome), settlement{verdict::applied, true}, "the last member");
    t.equal(all_of(t, store, query::members("g")).size(), related_many, "listed members");
}

inline void completes_within_a_batch(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 60; ++n) {
        drafts.push_back(draft_of(n, {.group = "group " + show(n % 7)}));
    }
    const auto entries = claimed(t, store, drafts);
    std::vector<vouch::settle> batch;
    std::vector<settlement> expected;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{}});
        expected.push_back({verdict::applied, e.id.low + 7 > entries.size()}); // the last of its group
    }
    t.equal(transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); }), expected,
            "the completion of several groups in one batch");
}

inline void many_generations(trial& t) {
    constexpr std::uint64_t count = 20;
    auto store = t.open();
    in_few(store, count, [&](auto& tx, std::uint64_t n) {
        const std::array next{n == 1 ? draft_of(n, {.key = "key"}) : draft_of(n, {.predecessor = id_of(n - 1)})};
        t.equal(tx.enqueue(next, at(0)), receipts{inserted(n)}, "the next generation");
        const std::array again{draft_of(1'000 + n, {.key = "key"})};
        t.equal(tx.enqueue(again, at(0)), receipts{duplicate(n)}, "the key of the newest generation");
        t.equal(tx.cancel(id_of(n), "cancelled", at(0)), verdict::applied, "the end of a generation");
    });
    for (std::uint64_t n = 1; n <= count; ++n) {
        t.equal(get(store, n).generation, n, "the generation");
        t.equal(get(store, n).key, "key", "the key of a generation");
    }
    t.equal(numbers(store.list(query::keyed("q", "key"))), numbers_from(1, count), "all generations of a key");
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 3}), 3, "purged of a long family");
    t.equal(numbers(store.list(query::keyed("q", "key"))), numbers_from(4, count), "the oldest are purged first");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), count - 3, "the whole family is purged");
    t.equal(put(store, draft_of(1'000, {.key = "key"})), inserted(1'000), "the key when no generation is left");
}

/// How often an entry is claimed: beyond sixteen bits, but not in the quick profile of a store with a slow commit.
[[nodiscard]] inline std::uint64_t long_history(trial& t) {
    return t.can().durable && t.options().profile == profile::quick ? 300 : 66'000;
}

/// Destroys the only handle and opens another one.
[[nodiscard]] inline any_store reopened(trial& t, any_store store) {
    { const auto gone = std::move(store); }
    return t.open();
}

inline void many_lapses(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto claims = long_history(t);
    in_few(store, claims, [&](auto& tx, std::uint64_t n) {
        const auto taken = tx.claim(request(at(100 * static_cast<std::int64_t>(n))));
        t.equal(taken.size(), 1, "taken over when the lease has ended");
        t.equal(taken.front().epoch, n, "the epoch, which counts every claim");
        t.equal(taken.front().lapses, n - 1, "the lapses");
        t.equal(taken.front().attempts, n == 1 ? 1 : n - 1, "the attempts, without the first takeover");
    });
    if (t.can().durable) {
        store = reopened(t, std::move(store));
    }
    const auto before = get(store, 1);
    t.equal(before.epoch, claims, "the epoch that is stored");
    t.equal(before.lapses, claims - 1, "the lapses that are stored");
    t.equal(settle(store, {id_of(1), claims - 256}, succeed{}).verdict, verdict::stale, "an epoch 256 claims ago");
    if (claims > 65'536) {
        t.equal(settle(store, {id_of(1), claims - 65'536}, succeed{}).verdict, verdict::stale,
                "an epoch 65,536 claims ago");
    }
    t.equal(settle(store, {id_of(1), claims}, succeed{}).verdict, verdict::applied, "the epoch of the last claim");
}

inline void rolls_back_many(trial& t) {
    auto store = t.open();
    vouch::enqueue(store, numbered(many, draft_of(1)), at(0));
    from_begin(store, [&](auto& tx) {
        const auto taken = tx.claim(request(at(0), {.limit = t.can().limits.batch_max}));
        tx.enqueue(numbered(many, draft_of(5'001, {.queue = "r"})), at(0));
        auto q = query::all("r");
        q.limit = t.can().limits.batch_max;
        t.equal(tx.list(q).size(), many, "its own entries, listed in a transaction");
        t.equal(tx.counts("r")[state::pending], many, "its own entries, counted in a transaction");
        q.queue = "q";
        const auto own = tx.list(q);
        t.equal(own.size(), taken.size(), "the entries of an earlier transaction");
        t.equal(own.back().state, state::claimed, "the last of its own claims");
    });
    t.equal(store.counts("q"), state_counts{{many, 0, 0, 0, 0}}, "the counts after a large rollback");
    t.equal(store.counts("r"), state_counts{}, "the counts of the other queue after a large rollback");
    t.equal(take(store, at(0), {.limit = t.can().limits.batch_max}).size(), many, "claimed after a large rollback");
}

inline void many_survive(trial& t) {
    std::vector<entry> before;
    {
        auto store = t.open();
        const auto entries = claimed(t, store, numbered(many, draft_of(1, {.payload = "payload"})));
        std::vector<vouch::settle> batch;
        for (const auto& e : entries) {
            batch.push_back({ticket_of(e), outcome_of(e.id.low % 6, e.id.low)});
        }
        transact(store, [&](auto& tx) { return tx.settle(std::span(batch).first(many / 2), at(1)); });
        before = all_of(t, store, query::all("q"));
    }
    auto store = t.open();
    const auto after = all_of(t, store, query::all("q"));
    t.equal(after.size(), before.size(), "the number of entries after a reopen");
    for (std::size_t i = 0; i < after.size(); ++i) {
        t.equal(after[i], before[i], "entry " + show(i) + " of many after a reopen");
    }
    const auto taken = take(store, at(100'000), {.limit = many}).size();
    t.equal(taken, store.counts("q")[state::claimed], "all live entries are claimed after a reopen");
    t.equal(store.list(query::live("q")).front().state, state::claimed, "the first live entry is claimed");
}

/// Requires that the dead entry 1 is kept while the entries from 2 on are live, and no longer.
inline void needed_by_many(trial& t, const draft& needed, const draft& needing) {
    constexpr std::uint64_t live = 256;
    auto store = t.open(t.fresh_location());
    put_dead(store, needed);
    vouch::enqueue(store, numbered(live, needing), at(0));
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 0, "purged of an entry that 256 live entries need");
    in_few(store, live, [&](auto& tx, std::uint64_t n) { std::ignore = tx.cancel(id_of(n + 1), "cancelled", at(5)); });
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged when no live entry needs it");
}

inline void keeps_what_many_need(trial& t) {
    needed_by_many(t, draft_of(1), draft_of(2, {.parent = id_of(1)}));
    if (t.can().groups) {
        needed_by_many(t, draft_of(1, {.group = "g"}), draft_of(2, {.group = "g"}));
    }
}

inline void many_failures(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto claims = long_history(t);
    in_few(store, claims, [&](auto& tx, std::uint64_t n) {
        const auto taken = tx.claim(request(at(0)));
        t.equal(taken.size(), 1, "claimed again");
        t.equal(settle_in(tx, ticket_of(taken.front()), retry{"e", at(0)}, at(0)).verdict, verdict::applied, "retried");
        t.equal(taken.front().failures, n - 1, "the failures of an entry that is claimed again");
    });
    t.equal(get(store, 1).failures, claims, "the failures that are stored");
    t.equal(get(store, 1).attempts, claims, "the attempts that are stored");
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_histories{
    clause{"SIZE-13", layer::examples, level::may, needs::lanes,
           "A lane of hundreds of entries is claimed one at a time, in the order of its sequences, to the last.",
           sizes_checks::long_lane},
    clause{"SIZE-14", layer::examples, level::may, needs::groups,
           "A group of hundreds of entries is completed by the success of its last member, and by no other.",
           sizes_checks::large_group},
    clause{"SIZE-15", layer::examples, level::may, needs::groups,
           "In a batch that completes several groups, the settlement of the last member of each says so.",
           sizes_checks::completes_within_a_batch},
    clause{"SIZE-16", layer::examples, level::must, needs::nothing,
           "An entry that is requeued many times keeps its key and counts its generations; they are listed together "
           "and purged as one family, the oldest first.",
           sizes_checks::many_generations},
    clause{"SIZE-17", layer::examples, level::must, needs::nothing,
           "attempts, lapses and epoch count a long history of lapsed claims; earlier epochs stay stale.",
           sizes_checks::many_lapses},
    clause{"SIZE-18", layer::examples, level::must, needs::nothing,
           "attempts and failures count a long history of retries.", sizes_checks::many_failures},
    clause{"SIZE-19", layer::examples, level::must, needs::nothing,
           "A large transaction reads its own writes, and leaves nothing when it is rolled back.",
           sizes_checks::rolls_back_many},
    clause{"SIZE-20", layer::examples, level::may, needs::durable, "A large number of entries survives a reopen.",
           sizes_checks::many_survive},
    clause{"SIZE-21", layer::examples, level::must, needs::nothing,
           "A purge keeps an entry that hundreds of live entries need, as their parent or as a member of their group.",
           sizes_checks::keeps_what_many_need},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/times.hpp
// Times: 1970 and the times around it, the first and the last time that can be represented, and microseconds far from the
// present. No time has a special meaning; an unset time is a different value.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace times_checks {

using namespace enqueue_checks;

inline constexpr auto first_time = time_point::min();
inline constexpr auto last_time = time_point::max();
inline constexpr duration tick{1};

/// So many microseconds after 1970.
[[nodiscard]] constexpr time_point since_1970(std::int64_t us) noexcept { return time_point{duration{us}}; }

/// Times at which a careless store rounds, wraps or mistakes a value for something else, in ascending order.
inline constexpr std::array special_times{
    first_time,
    first_time + tick,
    since_1970(-62'135'596'800'000'001), // before the year 1
    since_1970(-9'223'372'036'854'776),  // before the first time in nanoseconds of 64 bits
    since_1970(-9'007'199'254'740'993),  // a microsecond that a double does not keep
    since_1970(-2'147'483'649'000'000),  // before the seconds of 32 bits
    since_1970(-1'000'001),
    since_1970(-1),
    since_1970(0),
    since_1970(1),
    since_1970(999'999),
    since_1970(2'147'483'648'000'001),   // after the seconds of 32 bits
    since_1970(4'294'967'296'000'001),   // after the seconds of 32 bits without a sign
    since_1970(9'007'199'254'740'993),   // a microsecond that a double does not keep
    since_1970(9'223'372'036'854'776),   // after the last time in nanoseconds of 64 bits
    since_1970(253'402'300'800'000'001), // after the year 9999
    last_time - tick,
    last_time};
static_assert(std::is_sorted(special_times.begin(), special_times.end()));

/// Ascending pairs of times between which a store must see a difference.
inline constexpr std::array neighbours{
    std::pair{first_time, first_time + tick},
    std::pair{since_1970(-9'007'199'254'740'993), since_1970(-9'007'199'254'740'992)},
    std::pair{since_1970(-1), since_1970(0)},
    std::pair{since_1970(0), since_1970(1)},
    std::pair{since_1970(9'007'199'254'740'992), since_1970(9'007'199'254'740'993)},
    std::pair{last_time - 3 * tick, last_time - 2 * tick}};

/// Whether a claim with the shortest lease is possible at this time.
[[nodiscard]] constexpr bool can_claim(time_point t) noexcept { return t < last_time; }

inline void drafts_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        // Each of the three times alone, so that none can stand in for another.
        const std::array drafts{draft_of(++n, {.due_at = when}), draft_of(++n, {.due_at = at(0), .expires_at = when}),
                                draft_of(++n, {.due_at = at(0)})};
        const std::array nows{at(5), at(5), when};
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            t.equal(put(store, drafts[i], nows[i]), inserted(drafts[i].id.low), "enqueued");
            stored_as_drafted(store, drafts[i], nows[i], "a draft with due_at, expires_at or now at " + show(when));
        }
        const auto d = draft_of(++n);
        put(store, d, when);
        stored_as_drafted(store, d, when, "a draft without due_at, enqueued at " + show(when));
    }
}

inline void claims_at_any_time(trial& t) {
    std::uint64_t n = 0;
    auto store = t.open();
    for (const auto when : special_times) {
        if (!can_claim(when)) {
            continue;
        }
        n += 1;
        put(store, draft_of(n, {.due_at = when}), at(0));
        const auto taken = take(store, when, {.lease = tick, .only = id_of(n)});
        t.equal(taken.size(), 1, "claimed at " + show(when) + ", when it is due");
        t.equal(taken.front().last_attempt_at, when, "last_attempt_at");
        t.equal(taken.front().lease_until, when + tick, "lease_until");
        t.equal(taken.front().updated_at, when, "updated_at");
        t.equal(std::optional{taken.front()}, store.find(id_of(n)), "the claimed entry as it is stored");
        const auto again = take(store, std::min(when + tick, last_time - tick), {.lease = tick, .only = id_of(n)});
        t.equal(again.size(), when + tick < last_time ? 1 : 0, "taken over when the lease has ended");
    }
}

inline void claims_not_before(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = later}), at(0));
        t.equal(take(store, earlier, {.lease = tick}).size(), 0, "claimed one microsecond before " + show(later));
        t.equal(take(store, earlier, {.lease = tick, .only = id_of(1)}).size(), 0, "the same by id");
        t.equal(store.next_due("q"), later, "next_due before the claim");
        t.equal(take(store, later, {.lease = tick}).size(), 1, "claimed at " + show(later));
    }
}

inline void claims_across_1970(trial& t) {
    auto store = t.open();
    std::vector<time_point> due(special_times.begin(), special_times.end());
    std::vector<draft> drafts;
    list_of expected;
    for (std::uint64_t n = 1; n <= due.size(); ++n) {
        // In an order of their own: 7 has no common divisor with the number of times.
        const auto place = n * 7 % due.size();
        drafts.push_back(draft_of(place + 1, {.due_at = due[place]}));
        expected.push_back(n);
    }
    static_assert(special_times.size() % 7 != 0);
    vouch::enqueue(store, drafts, at(0));
    expected.pop_back(); // the last time cannot be reached
    constexpr std::size_t few = 3;
    for (std::size_t done = 0; done < expected.size(); done += few) {
        const auto end = std::min(done + few, expected.size());
        t.equal(store.next_due("q"), special_times[done], "next_due among times before and after 1970");
        const auto taken = transact(store, [&](auto& tx) {
            auto some = tx.claim(request(last_time - tick, {.limit = few, .lease = tick}));
            std::vector<vouch::settle> batch;
            for (const auto& e : some) {
                batch.push_back({ticket_of(e), succeed{}});
            }
            std::ignore = tx.settle(batch, at(0));
            return some;
        });
        const list_of next(expected.begin() + static_cast<std::ptrdiff_t>(done),
                           expected.begin() + static_cast<std::ptrdiff_t>(end));
        t.equal(numbers(taken), next, "the next to be claimed, by the order of their times");
    }
    t.equal(store.next_due("q"), last_time, "next_due when only the last time is left");
}

inline void returned_across_1970(trial& t) {
    auto store = t.open();
    const std::array due{since_1970(5), since_1970(-5), first_time, since_1970(0), since_1970(7)};
    for (std::uint64_t n = 1; n <= due.size(); ++n) {
        put(store, draft_of(n, {.due_at = due[n - 1]}), at(0));
    }
    t.equal(numbers(take(store, since_1970(-1), {.lease = tick})), list_of{3, 2}, "claimed before 1970, in order");
    t.equal(numbers(take(store, since_1970(5))), list_of{3, 2, 4, 1}, "claimed after 1970, in order");
    t.equal(numbers(take(store, since_1970(200))), list_of{3, 2, 4, 1, 5}, "taken over, in the order of due_at");
}

inline void leases_across_1970(trial& t) {
    const std::array ends{since_1970(-50), since_1970(-1), since_1970(0), since_1970(1), since_1970(50)};
    for (const auto end : ends) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = first_time}), at(0));
        const auto held = take_one(store, end - 100 * tick, {.lease = 100 * tick});
        t.equal(store.next_due("q"), end, "next_due is the end of the lease at " + show(end));
        t.equal(take(store, end - tick, {.lease = tick}).size(), 0, "claimed before the lease ends at " + show(end));
        t.equal(cancel(store, id_of(1), end - tick), verdict::stale, "cancelled before the lease ends");
        t.equal(extend(store, held, end - tick, tick), verdict::applied, "extended to the same end");
        t.equal(get(store, 1).lease_until, end, "the end of the lease does not move");
        t.equal(extend(store, held, end - 2 * tick, 102 * tick), verdict::applied, "extended");
        t.equal(get(store, 1).lease_until, end + 100 * tick, "the new end of the lease");
        t.equal(take(store, end + 99 * tick, {.lease = tick}).size(), 0, "claimed before the new end of the lease");
        t.equal(cancel(store, id_of(1), end + 100 * tick), verdict::applied, "cancelled when the lease has ended");
    }
}

inline void lease_to_the_last_time(trial& t) {
    auto store = t.open();
    put(store, draft_of(1), at(0));
    put(store, draft_of(2), at(0));
    const auto longest = t.can().limits.lease_max;
    t.equal(take(store, last_time - longest, {.lease = longest}).size(), 2, "claimed until the last time");
    t.equal(get(store, 1).lease_until, last_time, "the end of the lease");
    t.equal(store.next_due("q"), last_time, "next_due");
    t.equal(take(store, last_time - tick, {.lease = tick}).size(), 0, "claimed while the leases run");
    t.equal(cancel(store, id_of(1), last_time - tick), verdict::stale, "cancelled while the lease runs");
    t.equal(cancel(store, id_of(1), last_time), verdict::applied, "cancelled at the last time");
    t.equal(get(store, 1).updated_at, last_time, "the time of the cancel");
    t.equal(extend(store, {id_of(2), 1}, last_time - tick, tick), verdict::applied, "extended to the last time");
    t.equal(settle(store, {id_of(2), 1}, succeed{}, last_time).verdict, verdict::applied, "settled at the last time");
    t.equal(get(store, 2).updated_at, last_time, "the time of the settle");
}

inline void outcomes_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        for (const auto& o : {outcome{retry{"e", when}}, outcome{advance{"p", when}}, outcome{release{when}}}) {
            n += 1;
            put(store, draft_of(n), at(0));
            settle(store, take_one(store, at(0), {.only = id_of(n)}), o, at(7));
            t.equal(get(store, n).due_at, when, "due_at after an outcome until " + show(when));
            t.equal(get(store, n).updated_at, at(7), "updated_at after that outcome");
            cancel(store, id_of(n), when);
            t.equal(get(store, n).updated_at, when, "updated_at after a cancel at " + show(when));
        }
    }
}

inline void nudges_at_any_time(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = later}), at(0));
        put(store, draft_of(2, {.due_at = earlier}), at(0));
        t.equal(nudge(store, id_of(2), later), verdict::repeated, "nudged when it is due");
        t.equal(get(store, 2).due_at, earlier, "due_at of an entry that was due already");
        t.equal(nudge(store, id_of(1), later), verdict::repeated, "nudged exactly when it is due");
        t.equal(nudge(store, id_of(1), earlier), verdict::applied, "nudged one microsecond before it is due");
        t.equal(get(store, 1).due_at, earlier, "due_at after that nudge");
        t.equal(get(store, 1).updated_at, earlier, "updated_at after that nudge");
        put(store, draft_of(3, {.due_at = last_time}), at(0));
        t.equal(nudge(store, id_of(3), earlier), verdict::applied, "nudged long before it is due");
        t.equal(get(store, 3).due_at, earlier, "due_at after that nudge");
    }
}

} // namespace times_checks

inline constexpr std::array timing{
    clause{"TIME-01", layer::examples, level::must, needs::nothing,
           "due_at, expires_at and the now of an enqueue may be any time, and are kept to the microsecond; an unset "
           "expires_at differs from every time.",
           times_checks::drafts_at_any_time},
    clause{"TIME-02", layer::examples, level::must, needs::nothing,
           "A claim may be at any time that leaves room for its lease; lease_until, last_attempt_at and updated_at are "
           "exact.",
           times_checks::claims_at_any_time},
    clause{"TIME-03", layer::examples, level::must, needs::nothing,
           "An entry is claimed from its due_at on and not one microsecond earlier, at any time.",
           times_checks::claims_not_before},
    clause{"TIME-04", layer::examples, level::must, needs::nothing,
           "Claims and next_due order all times by their value, before and after 1970, from the first to the last.",
           times_checks::claims_across_1970},
    clause{"TIME-05", layer::examples, level::must, needs::nothing,
           "A claim returns entries in the order of due_at, before and after 1970.",
           times_checks::returned_across_1970},
    clause{"TIME-06", layer::examples, level::must, needs::nothing,
           "A lease that ends before, in or after 1970 runs to its end, for claim, cancel, extend and next_due.",
           times_checks::leases_across_1970},
    clause{"TIME-07", layer::examples, level::must, needs::nothing,
           "A lease may end at the last time, and runs until then.", times_checks::lease_to_the_last_time},
    clause{"TIME-08", layer::examples, level::must, needs::nothing,
           "An outcome may set due_at to any time, and a cancel may be at any time.",
           times_checks::outcomes_at_any_time},
    clause{"TIME-09", layer::examples, level::must, needs::nothing,
           "A nudge compares due_at with its now to the microsecond, at any time.", times_checks::nudges_at_any_time},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/times_others.hpp
// Times: next_due, purge, wake marks, lanes and parents at 1970, before it, and at the ends of the range; and times after
// a reopen.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace times_checks {

inline void due_at_any_time(trial& t) {
    auto store = t.open();
    // From the last time to the first, so that each new entry is due before the others.
    for (std::size_t n = special_times.size(); n > 0; --n) {
        put(store, draft_of(n, {.due_at = special_times[n - 1]}), at(0));
        t.equal(store.next_due("q"), special_times[n - 1], "next_due with an entry due at that time");
    }
    for (std::size_t n = 1; n <= special_times.size(); ++n) {
        t.equal(store.next_due("q"), special_times[n - 1], "next_due when the earlier ones have ended");
        cancel(store, id_of(n));
    }
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when all have ended");
}

/// Stores one entry that has ended at each of the special times, the latest first.
inline void put_ended(any_store& store) {
    for (std::size_t n = special_times.size(); n > 0; --n) {
        put(store, draft_of(n, {.result = ""}), special_times[n - 1]);
    }
}

inline void purges_by_time(trial& t) {
    for (std::size_t n = 0; n < special_times.size(); ++n) {
        auto store = t.open(t.fresh_location());
        put_ended(store);
        t.equal(purge(store, {.queue = "q", .before = special_times[n]}), n, "purged before " + show(special_times[n]));
        t.equal(store.counts("q").total(), special_times.size() - n, "left by that purge");
        t.expect(store.find(id_of(n + 1)).has_value(), "an entry that ended exactly at `before` is kept");
    }
}

inline void purges_in_order(trial& t) {
    auto store = t.open();
    put_ended(store);
    for (std::uint64_t n = 1; n < special_times.size(); ++n) {
        t.equal(purge(store, {.queue = "q", .before = last_time, .limit = 1}), 1, "purged of entries of all times");
        t.expect(!store.find(id_of(n)), "the entry that ended first is purged first, at " + show(special_times[n - 1]));
    }
    t.equal(purge(store, {.queue = "q", .before = last_time}), 0, "purged of what ended at the last time");
}

inline void purges_to_the_microsecond(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1), at(0));
        put(store, draft_of(2), at(0));
        cancel(store, id_of(1), later);
        settle(store, take_one(store, at(0)), succeed{}, earlier);
        t.equal(purge(store, {.queue = "q", .before = earlier}), 0, "purged before " + show(earlier));
        t.equal(purge(store, {.queue = "q", .before = later}), 1, "purged before " + show(later));
        t.expect(store.find(id_of(1)).has_value(), "the entry that ended one microsecond later is kept");
    }
}

inline void times_survive(trial& t) {
    std::vector<std::optional<entry>> before;
    {
        auto store = t.open();
        std::uint64_t n = 0;
        for (const auto when : special_times) {
            put(store, draft_of(++n, {.due_at = when, .expires_at = when}), when);
            put(store, draft_of(++n, {.due_at = first_time}), at(0));
            if (can_claim(when)) {
                t.equal(take(store, when, {.lease = tick, .only = id_of(n)}).size(), 1, "claimed");
            }
        }
        for (n = 1; n <= 2 * special_times.size(); ++n) {
            before.push_back(store.find(id_of(n)));
        }
    }
    const auto again = t.open();
    for (std::uint64_t n = 1; n <= before.size(); ++n) {
        t.equal(again.find(id_of(n)), before[n - 1], "an entry with special times after a reopen");
    }
    t.equal(again.next_due("q"), first_time, "next_due after a reopen");
}

inline void wakes_at_any_time(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        for (const std::uint64_t n : {1U, 2U}) {
            put(store, draft_of(n, {.due_at = first_time}), at(0));
            t.equal(take(store, earlier, {.lease = tick, .only = id_of(n)}).size(), 1, "claimed");
            t.equal(nudge(store, id_of(n), earlier), verdict::applied, "nudged while it is claimed");
        }
        settle(store, {id_of(1), 1}, retry{"e", later}, earlier);
        t.equal(get(store, 1).due_at, earlier, "due_at after a retry until later: the time of the settle");
        settle(store, {id_of(2), 1}, retry{"e", earlier}, later);
        t.equal(get(store, 2).due_at, earlier, "due_at after a retry until earlier: the time of the retry");
    }
}

inline void lanes_at_any_time(trial& t) {
    for (const auto when : special_times) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.lane = "lane"}), at(0));
        put(store, draft_of(2, {.lane = "lane", .due_at = when}), at(0));
        t.equal(store.next_due("q"), at(0), "next_due while the second entry is blocked");
        cancel(store, id_of(1));
        t.equal(store.next_due("q"), when, "next_due when the second entry heads its lane");
        t.equal(take(store, std::min(when, last_time - tick), {.lease = tick}).size(), can_claim(when) ? 1 : 0,
                "claimed when it is due");
    }
}

inline void parents_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        n += 2;
        put(store, draft_of(n, {.due_at = last_time}), at(0));
        put(store, draft_of(n + 1, {.parent = id_of(n), .due_at = last_time}), at(0));
        cancel(store, id_of(n + 1), when);
        t.equal(get(store, n).due_at, when, "due_at of a parent whose child has ended at " + show(when));
        t.equal(get(store, n).updated_at, when == last_time ? at(0) : when, "updated_at of that parent");
    }
}

} // namespace times_checks

inline constexpr std::array timing_of_others{
    clause{"TIME-10", layer::examples, level::must, needs::nothing,
           "next_due is the earliest gate, whatever time that is: the first, one before 1970, 1970 itself, the last.",
           times_checks::due_at_any_time},
    clause{"TIME-11", layer::examples, level::must, needs::nothing,
           "A purge removes what ended before `before`, whatever time that is, and nothing that ended exactly then.",
           times_checks::purges_by_time},
    clause{"TIME-12", layer::examples, level::must, needs::nothing,
           "A purge removes the entries that ended first, before and after 1970.", times_checks::purges_in_order},
    clause{"TIME-13", layer::examples, level::must, needs::nothing,
           "A purge compares the end of an entry with `before` to the microsecond, at any time.",
           times_checks::purges_to_the_microsecond},
    clause{"TIME-14", layer::examples, level::may, needs::durable, "All times survive a reopen.",
           times_checks::times_survive},
    clause{"TIME-15", layer::examples, level::must, needs::nothing,
           "A claimed entry that was nudged is due at the settle's now or at the outcome's time, whichever is earlier, "
           "at any time.",
           times_checks::wakes_at_any_time},
    clause{"TIME-16", layer::examples, level::may, needs::lanes,
           "An entry that heads its lane is due at its due_at, whatever time that is.",
           times_checks::lanes_at_any_time},
    clause{"TIME-17", layer::examples, level::must, needs::nothing,
           "The end of a child makes its parent due, whatever time that is.", times_checks::parents_at_any_time},
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
        refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = "a\xc2\x9f"; });
    }
    auto plain = draft_of(9);
    for (const auto& field : name_fields(t.can())) {
        plain.*field.of = " ~\xc2\xa0\xf4\x8f\xbf\xbf "; // U+00A0, U+10FFFF
    }
    t.equal(put(store, plain), inserted(9), "names with the characters next to the control characters");
}

/// Bytes that are not UTF-8: alone, cut off, overlong, half a surrogate pair, above U+10FFFF.
inline void names_in_utf8(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        for (const std::string_view bad :
             {"\xff", "\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = "a" + std::string(bad); });
        }
    }
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
           "A name with a control character, of ASCII or beyond, is refused; all other characters are allowed.",
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
    clause{"VALID-20", layer::examples, level::must, needs::nothing, "A name that is not valid UTF-8 is refused.",
           validation_checks::names_in_utf8},
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

// ---- vouch/conformance/clauses/waiting.hpp
// Waiting: what happens while another thread is inside `wait`. A wait that ends too late is tried again, so that a
// machine that is busy for a moment does not fail a store; a store that is deaf fails every time.

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace waiting_checks {

using namespace wakes_checks;
using std::chrono::nanoseconds;

/// How long a wait lasts that is to end earlier.
inline constexpr milliseconds long_wait{300};
inline constexpr int tries = 3;

/// A thread that is inside `wait`.
class waiter {
  public:
    waiter(any_store store, std::string queue, std::uint64_t seen, nanoseconds at_most)
        : seen_(seen), at_most_(at_most),
          thread_([this, store = std::move(store), queue = std::move(queue)]() mutable { run(store, queue); }) {
        // It is inside `wait` when it sleeps. A store that waits awake gets a moment.
        constexpr int looks = 50;
        for (int left = looks; left > 0 && !(is_inside_ && probe_.is_asleep()); --left) {
            std::this_thread::sleep_for(milliseconds{1});
        }
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter() {
        stop();
        end();
    }

    void stop() {
        is_stopped_ = true;
        stop_.request_stop();
    }
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

    /// Joins the thread. Throws what `wait` has thrown.
    void join() {
        end();
        if (const auto thrown = std::exchange(thrown_, nullptr)) {
            std::rethrow_exception(thrown);
        }
    }

    // After `join`.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] nanoseconds waited() const noexcept { return waited_; }
    [[nodiscard]] bool was_early() const noexcept { return waited_ < at_most_; }
    /// Whether it returned without any of the reasons that the contract allows.
    [[nodiscard]] bool was_without_reason() const noexcept { return was_early() && number_ == seen_ && !was_stopped_; }

  private:
    void run(any_store& store, const std::string& queue) {
        probe_ = thread_probe::current();
        is_inside_ = true;
        const auto begun = steady_clock::now();
        try {
            number_ = store.wait(queue, seen_, at_most_, stop_.get_token());
        } catch (...) {
            thrown_ = std::current_exception();
        }
        was_stopped_ = is_stopped_;
        waited_ = steady_clock::now() - begun;
        has_ended_ = true;
    }
    void end() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    std::uint64_t seen_;
    nanoseconds at_most_;
    std::uint64_t number_ = 0;
    nanoseconds waited_{};
    bool was_stopped_ = false;
    std::exception_ptr thrown_{};
    std::stop_source stop_{};
    std::atomic<bool> is_stopped_ = false;
    std::atomic<bool> is_inside_ = false;
    std::atomic<bool> has_ended_ = false;
    thread_probe probe_{};
    std::thread thread_; // last: it uses the other members
};

/// Requires that `ends_early()` is true in one of several tries.
template <class Try>
void in_time(trial& t, std::string_view what, Try&& ends_early) {
    for (int left = tries; left > 0; --left) {
        if (ends_early()) {
            return;
        }
    }
    t.fail(std::string(what), "it returned only when its time had passed", "it returns at once");
}

/// Stores are opened without a test writer, which is for one thread.
[[nodiscard]] inline any_store open_plain(trial& t) { return t.context().open(t.home()); }

/// A draft with a new number.
[[nodiscard]] inline draft next_draft(const std::string& queue) {
    static std::atomic<std::uint64_t> last = 100;
    return draft_of(++last, {.queue = queue});
}

inline void ended_by_commit(trial& t) {
    auto store = open_plain(t);
    auto other = t.can().shared ? open_plain(t) : store;
    for (auto* writer : {&store, &other}) {
        in_time(t, "a wait ends with a commit that happens meanwhile", [&] {
            const auto seen = settled(store, "q");
            waiter w(store, "q", seen, long_wait);
            put(*writer, next_draft("q"));
            w.join();
            t.expect(w.number() != seen, "the number that wait returns after a commit differs from the one given");
            return w.was_early();
        });
    }
}

inline void ended_by_stop(trial& t) {
    auto store = open_plain(t);
    in_time(t, "a wait ends when a stop is requested meanwhile", [&] {
        const auto seen = settled(store, "q");
        waiter w(store, "q", seen, long_wait);
        w.stop();
        w.join();
        t.equal(w.number(), seen, "the number that a stopped wait returns");
        return w.was_early();
    });
}

inline void ended_by_time(trial& t) {
    constexpr milliseconds short_wait{20};
    auto store = open_plain(t);
    in_time(t, "a wait ends after its time, although other queues get work meanwhile", [&] {
        waiter w(store, "q", settled(store, "q"), short_wait);
        for (const auto until = steady_clock::now() + long_wait; !w.has_ended() && steady_clock::now() < until;) {
            put(store, next_draft("r"));
            std::this_thread::sleep_for(milliseconds{1});
        }
        w.join();
        t.expect(!w.was_without_reason(), "a wait for one queue does not end early because of another queue");
        return w.waited() < long_wait;
    });
}

inline void every_waiter_ends(trial& t) {
    auto store = open_plain(t);
    auto other = t.can().shared ? open_plain(t) : store;
    in_time(t, "all waits end with a commit that happens meanwhile", [&] {
        const auto seen = settled(store, "q");
        const auto seen_there = settled(store, "r");
        waiter first(store, "q", seen, long_wait);
        waiter second(store, "q", seen, long_wait);
        waiter third(other, "q", settled(other, "q"), long_wait);
        waiter fourth(store, "r", seen_there, long_wait);
        transact(store, [&](auto& tx) {
            const std::array drafts{next_draft("q"), next_draft("r")};
            tx.enqueue(drafts, at(0));
        });
        bool were_early = true;
        for (auto* w : {&first, &second, &third, &fourth}) {
            w->join();
            were_early = were_early && w->was_early();
        }
        return were_early;
    });
}

inline void without_limit(trial& t) {
    auto store = open_plain(t);
    for (const auto at_most : {nanoseconds::max(), nanoseconds{std::chrono::hours{24 * 365 * 100}}}) {
        const auto seen = settled(store, "q");
        waiter w(store, "q", seen, at_most);
        put(store, next_draft("q"));
        constexpr std::chrono::seconds patience_for_all{2};
        for (const auto until = steady_clock::now() + patience_for_all;
             !w.has_ended() && steady_clock::now() < until;) {
            std::this_thread::sleep_for(milliseconds{1});
        }
        t.expect(w.has_ended(), "a wait without a limit ends with a commit");
        w.join();
        t.expect(!w.was_without_reason() && w.number() != seen,
                 "a wait without a limit does not end before the number changes");
    }
}

inline void numbers_differ(trial& t) {
    constexpr int commits = 300; // more than a byte can count
    auto store = open_plain(t);
    std::set<std::uint64_t> seen{settled(store, "q")};
    auto last = *seen.begin();
    for (int i = 0; i < commits; ++i) {
        put(store, next_draft("q"));
        t.expect(wakes_change(store, "q", last), "the number changes with every commit");
        last = store.wakes("q");
        t.expect(seen.insert(last).second, "the number after a commit differs from all earlier ones");
    }
}

inline void every_queue_changes(trial& t) {
    auto store = open_plain(t);
    const std::vector<std::string> queues{"q", "r", "s"};
    std::vector<std::uint64_t> seen;
    std::vector<draft> drafts;
    for (const auto& queue : queues) {
        seen.push_back(settled(store, queue));
        drafts.push_back(next_draft(queue));
    }
    transact(store, [&](auto& tx) { tx.enqueue(drafts, at(0)); });
    for (std::size_t i = 0; i < queues.size(); ++i) {
        t.expect(wakes_change(store, queues[i], seen[i]),
                 "a commit with work for several queues changes all their numbers");
    }
}

} // namespace waiting_checks

inline constexpr std::array waiting{
    clause{"WAIT-01", layer::examples, level::may, needs::wakes,
           "wait returns the new number as soon as a commit changes it, through any handle.",
           waiting_checks::ended_by_commit},
    clause{"WAIT-02", layer::examples, level::may, needs::wakes, "wait returns as soon as a stop is requested.",
           waiting_checks::ended_by_stop},
    clause{"WAIT-03", layer::examples, level::may, needs::wakes,
           "Work for other queues neither ends a wait early, unless the number changes, nor makes it longer.",
           waiting_checks::ended_by_time},
    clause{"WAIT-04", layer::examples, level::may, needs::wakes,
           "A commit ends all waits for its queues, on every handle.", waiting_checks::every_waiter_ends},
    clause{"WAIT-05", layer::examples, level::may, needs::wakes,
           "wait accepts the longest time there is, and then ends only when the number changes or a stop is requested.",
           waiting_checks::without_limit},
    clause{"WAIT-06", layer::examples, level::may, needs::wakes,
           "A queue's number never returns to an earlier value, so that a wait with an old number ends at once.",
           waiting_checks::numbers_differ},
    clause{"WAIT-07", layer::examples, level::may, needs::wakes,
           "A commit with work for several queues changes the number of each.", waiting_checks::every_queue_changes},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/clauses/all_clauses.hpp
// All clauses, in the order in which they are run and listed. README.md in this folder lists their sentences.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Call it as `all_clauses()`. It is a template so that a build with several suite programs can compile the clauses once:
/// one source file has `template const std::vector<clause>& all_clauses<void>();`, and the programs declare the same with
/// `extern` in front. tests/conformance/clauses.hpp does. With the split headers, a program that defines
/// VOUCH_CLAUSES_ELSEWHERE declares it, and does not even read the clauses.
template <class = void>
[[nodiscard]] const std::vector<clause>& all_clauses() {
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
        add(clauses::lifecycles);
        add(clauses::reads);
        add(clauses::filtered_reads);
        add(clauses::purges);
        add(clauses::validation);
        add(clauses::validation_of_calls);
        add(clauses::fidelity);
        add(clauses::naming);
        add(clauses::naming_of_values);
        add(clauses::timing);
        add(clauses::timing_of_others);
        add(clauses::sizes);
        add(clauses::sizes_of_reads);
        add(clauses::sizes_of_histories);
        add(clauses::sizes_of_values);
        add(clauses::largest_sizes);
        add(clauses::wakes);
        add(clauses::waiting);
        add(clauses::capability);
        add(clauses::committing);
        add(clauses::committing_claims);
        add(clauses::committing_relations);
        add(clauses::committing_settles);
        add(clauses::model_runs);
        add(clauses::interleavings);
        add(clauses::overlaps);
        add(clauses::histories);
        add(clauses::threads);
        add(clauses::crashes);
        add(clauses::processes);
        add(clauses::cost);
        add(clauses::faults);
        add(clauses::fault_ends);
        add(clauses::committing_together);
        add(clauses::committing_faults);
        add(clauses::committing_settles_together);
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
    return l == layer::model || l == layer::interleavings || l == layer::histories || l == layer::threads ||
           l == layer::crashes || l == layer::processes;
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
        into.failure = unexpected_error(e);
    } catch (const std::exception& e) {
        into.result = result::fail;
        into.failure = {.what = "an exception that is not a vouch::error was thrown", .seen = e.what(), .expected = {}};
    }
}

/// Whether a check has failed only because one of its transactions is long: if one call of a hundred ends in a conflict,
/// which is allowed, a transaction of a thousand calls never ends.
[[nodiscard]] inline bool is_too_long(const failure& f, std::uint64_t calls, std::uint64_t conflicts) {
    constexpr std::uint64_t calls_per_conflict = 50;
    return f.what == endless_conflict && calls > calls_per_conflict * conflicts;
}

/// Whether a failure after conflicts says nothing about the store.
[[nodiscard]] inline bool is_void(const clause& c, const failure& f) {
    const bool has_escaped = f.seen.starts_with(name_of(error_kind::conflict)); // a conflict ended the check
    return f.what != endless_conflict && (has_escaped || !tolerates_conflicts(c.layer));
}

/// Any call may throw `conflict`, which makes all earlier answers void. So a check that fails after a conflict is
/// repeated on fresh stores, which hide their conflicts by repeating the transaction. A few checks keep what they have
/// read in a transaction, such as sequences, and fail if it is repeated; so there are several attempts.
inline void attempt(run_context& context, const clause& c, clause_report& into, test_source* source) {
    constexpr int tries = 40;
    struct restored {
        run_context& context;
        std::function<any_store(const location&)> open;
        ~restored() { context.open = std::move(open); }
    } plain{context, context.open};
    for (int left = tries; left > 0; --left) {
        const auto tally = context.tally;
        const auto conflicts = context.counts->conflicts.load();
        const auto calls = context.counts->calls.load();
        attempt_once(context, c, into, source);
        if (is_too_long(into.failure, context.counts->calls - calls, context.counts->conflicts - conflicts)) {
            into.result = result::untested;
            into.why = "the store has so many conflicts that a long transaction of this check does not succeed";
            into.failure = {};
            return;
        }
        if (into.result != result::fail || context.counts->conflicts == conflicts || !is_void(c, into.failure) ||
            left == 1) {
            return;
        }
        context.open = [&plain](const location& p) { return repeat_conflicts(plain.open(p)); };
        context.tally = tally;
        into.failure = {};
        if (source != nullptr) {
            *source = {};
        }
    }
}

/// A template for the same reason as `all_clauses`.
template <class = void>
[[nodiscard]] clause_report run_clause(run_context& context, const clause& c) {
    clause_report out{.clause = c, .seed = context.options.seed};
    const auto begun = std::chrono::steady_clock::now();
    if (!has(context.can, c.needs)) {
        out.result = result::unsupported;
        return out;
    }
    const auto calls = context.counts->calls.load();
    context.tally = {};
    attempt(context, c, out, nullptr);
    out.calls = context.counts->calls - calls;
    out.tally = std::move(context.tally);
    const bool has_answers = c.layer != layer::cost; // a test can show a wrong answer, not a slow one
    if (out.result == result::fail && out.failure.transcript.empty() && context.options.explains && has_answers) {
        // Once more, to write the calls down as a test. That works for one thread only.
        test_source source;
        clause_report again{.clause = c};
        attempt(context, c, again, &source);
        if (again.result == result::fail && source.size() > 0) {
            out.failure.transcript = shortened_text(context, source, again.failure);
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
// Ends the process with exit code 3 when a clause takes too long, because a store that hangs cannot be interrupted.
// Before that it prints which clause hangs and lets its owner write the report so far.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class watchdog {
  public:
    /// `hangs` is called on the watchdog's thread while the owner's thread hangs in what `begin` named.
    watchdog(std::chrono::seconds patience, std::function<void()> hangs)
        : patience_(patience), hangs_(std::move(hangs)), thread_([this](const std::stop_token& stop) { watch(stop); }) {
    }

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
                hangs_();
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::function<void()> hangs_;
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

} // namespace detail

/// Called while clauses are run. Each may be empty.
struct check_callbacks {
    std::function<bool(const clause&)> begins{};       ///< false: this clause is skipped
    std::function<bool(const clause_report&)> ended{}; ///< false: all further clauses are skipped
    std::function<void(const report&)> opened{};       ///< before the first clause, when the store is known
    /// A clause hangs: the report so far, with this clause. When the call returns, the process ends with exit code 3.
    /// Called on another thread.
    std::function<void(const report&)> hangs{};
};

namespace detail {

/// `clause` had no answer within the time that the options allow.
[[nodiscard]] inline clause_report hanging(const clause& c, const options& how) {
    return {.clause = c,
            .result = result::hangs,
            .failure = {.what = "no answer for " + std::to_string(how.seconds_per_clause) +
                                " s (--patience N waits for N seconds)"},
            .seed = how.seed};
}

/// The fixture's first `open` gave no answer.
struct open_hangs : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A new name for a folder. The folder does not exist yet.
[[nodiscard]] inline std::filesystem::path fresh_folder() {
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return std::filesystem::temp_directory_path() / ("vouch-conformance-" + std::to_string(vouch::detail::mix(now)));
}

/// Fills in what is known about the store before the first clause, and makes the context of the run.
template <class Fixture>
[[nodiscard]] run_context opened_context(Fixture& fixture, locations& where, report& out) {
    run_context context;
    context.open = [&fixture, counts = context.counts](const location& p) {
        return erase([&] { return fixture.open(p); }, counts);
    };
    context.hooks = hooks_of(fixture, out);
    context.options = out.options;
    context.locations = &where;
    context.can = context.open(where.fresh()).capabilities();
    context.budget = budget_of(out.options.profile, context.can);
    out.can = context.can;
    out.platform = platform();
    return context;
}

/// `check` with its files below `folder`, which it makes and removes.
template <class Fixture>
[[nodiscard]] report check_in(const std::filesystem::path& folder, Fixture& fixture, const options& how,
                              const identity& whose, const check_callbacks& callbacks) {
    report out{.identity = whose, .options = how};
    const clause* current = nullptr; // what the watchdog reports; changed only while it does not watch
    watchdog dog(std::chrono::seconds{how.seconds_per_clause}, [&] {
        auto so_far = out;
        if (current != nullptr) {
            so_far.clauses.push_back(hanging(*current, how));
        }
        const auto& all = all_clauses();
        for (auto i = so_far.clauses.size(); i < all.size(); ++i) {
            so_far.clauses.push_back({.clause = all[i]});
        }
        if (callbacks.hangs) {
            callbacks.hangs(so_far);
        }
    });
    dog.begin("the fixture's open");
    locations where(folder);
    auto context = opened_context(fixture, where, out);
    dog.end();
    if (callbacks.opened) {
        callbacks.opened(out);
    }
    bool continues = true;
    for (const auto& c : all_clauses()) {
        if (!continues || !is_chosen(c, how) || (callbacks.begins && !callbacks.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        current = &c;
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        auto ended = run_clause(context, c);
        dog.end();
        out.tally += ended.tally;
        out.clauses.push_back(std::move(ended));
        continues = !callbacks.ended || callbacks.ended(out.clauses.back());
    }
    out.gaps = gaps_of(out.tally, out.can);
    return out;
}

} // namespace detail

/// Runs the chosen clauses in this process. Throws what the fixture's `open` throws in its first call. A clause that
/// takes longer than `options::seconds_per_clause` ends the program with exit code 3.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const check_callbacks& callbacks = {}) {
    return detail::check_in(detail::fresh_folder(), fixture, how, whose, callbacks);
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/families.hpp
// The failures of a report by family, which is the first part of a clause's id. One mistake in a store often breaks many
// clauses of a family, so a report shows one of them in full and, where one mistake is likely, a hint.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct family {
    std::string_view name{};
    std::vector<const clause_report*> failures{};
    const clause_report* shown = nullptr; ///< the one with the shortest transcript

    [[nodiscard]] bool shows_better(const clause_report& c) const {
        const auto& a = c.failure.transcript;
        const auto& b = shown->failure.transcript;
        return !a.empty() && (b.empty() || a.size() < b.size());
    }
};

[[nodiscard]] constexpr std::string_view family_of(std::string_view clause_id) noexcept {
    return clause_id.substr(0, clause_id.find('-'));
}

/// The families with failures, in the order of their first failures.
[[nodiscard]] inline std::vector<family> failed_families(const report& r) {
    std::vector<family> out;
    for (const auto& c : r.clauses) {
        if (!is_failure(c.result)) {
            continue;
        }
        const auto name = family_of(c.clause.id);
        auto at = out.begin();
        while (at != out.end() && at->name != name) {
            ++at;
        }
        if (at == out.end()) {
            at = out.insert(at, {.name = name, .shown = &c});
        }
        at->failures.push_back(&c);
        if (at->shows_better(c)) {
            at->shown = &c;
        }
    }
    return out;
}

/// A question for the author of a store in which at least `failures` clauses fail whose ids start with `prefix`.
struct hint {
    std::string_view prefix;
    std::size_t failures;
    std::string_view question;
};

inline constexpr std::array hints{
    hint{"FIX-01", 1,
         "does every location have its own folder, database or table? All later clauses need an empty store."},
    hint{"FIX-04", 1,
         "does the store read a clock? Every time, `due_at` by default included, comes from the caller's `now`."},
    hint{"FIDELITY-12", 1, "are times stored as whole microseconds, signed and in 64 bits?"},
    hint{"FIDELITY-0", 4,
         "does one field get lost or cut on its way to the storage and back? `for_each_field` lists them all."},
    hint{"VALID", 3,
         "does `enqueue` call `validate(drafts, capabilities())` before it writes, and does every other call check its "
         "arguments in the same way? `validated_writer.hpp` and `validated_reader.hpp` do it for you."},
    hint{"VERDICT", 3,
         "do settle, extend, nudge and cancel use `apply` of `lifecycle.hpp`? It has the whole table of verdicts."},
    hint{"TX-0", 3, "does a transaction keep its writes to itself until `commit`, and drop all of them otherwise?"},
    hint{"LANE", 4, "does every way in which the head of a lane ends (succeed, bury, cancel) unblock the next entry?"},
    hint{"PARENT", 4,
         "does every way in which a child ends (succeed, bury, cancel) nudge its parent, in the same transaction?"},
    hint{"GROUP", 4, "is a group's count of members not yet succeeded kept in the transaction that changes a member?"},
    hint{"READ", 6, "are lists in ascending order of `sequence`, and do counts and `next_due` read the same entries?"},
    hint{"COST", 1,
         "does a claim search an index on queue, due time and sequence that has only the entries it may take?"},
};

/// The questions that this report raises about one family.
[[nodiscard]] inline std::vector<std::string_view> hints_for(const family& f) {
    std::vector<std::string_view> out;
    for (const auto& h : hints) {
        std::size_t matching = 0;
        for (const auto* const c : f.failures) {
            matching += c->result == result::fail && c->clause.id.starts_with(h.prefix) ? 1U : 0U;
        }
        if (matching >= h.failures) {
            out.push_back(h.question);
        }
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/html_style.hpp
// The style of the web page of a report: light, dark and for print.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr std::string_view html_style = R"(
:root { color-scheme: light dark; --text: #1b1f24; --soft: #59636e; --page: #ffffff; --box: #f4f6f8; --line: #d5dae0;
  --good: #1a7f37; --bad: #c62828; --part: #8a5a00; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ed; --soft: #9aa5b1; --page: #14181d; --box: #1e242b; --line: #37404a;
    --good: #4cc46a; --bad: #ff7b72; --part: #e0b050; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 75rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--link); }
p { margin: .4rem 0; }
dl { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: .15rem 1rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th { color: var(--soft); font-weight: 600; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
.layers th:not(:first-child), .layers td:not(:first-child) { text-align: right; }
.clauses td:first-child, .clauses td:nth-child(2) { white-space: nowrap; }
.why { color: var(--soft); }
.badge { border: 1px solid currentColor; border-radius: .3rem; padding: 0 .4rem; font-size: .8rem; font-weight: 600;
  white-space: nowrap; vertical-align: middle; color: var(--soft); }
h1 .badge { font-size: 1rem; }
.badge.pass, .badge.conformant { color: var(--good); }
.badge.fail, .badge.hangs, .badge.crashes, .badge.failing { color: var(--bad); }
.badge.untested, .badge.partial { color: var(--part); }
.hint { border-left: 3px solid var(--part); padding-left: .7rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
pre, code { font: 13px/1.45 ui-monospace, monospace; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.transcript { background: var(--box); border-radius: .3rem; padding: .7rem; overflow: auto; max-height: 40rem;
  white-space: pre; }
@media print {
  :root { color-scheme: light; --text: #000; --soft: #444; --page: #fff; --box: #fff; --line: #bbb; --good: #060;
    --bad: #a00; --part: #640; --link: #000; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  .transcript { max-height: none; white-space: pre-wrap; border: 1px solid var(--line); font-size: 8pt; }
  h2, h3 { break-after: avoid; } tr, summary { break-inside: avoid; } a { text-decoration: none; }
}
)";

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/markup.hpp
// Text as part of HTML and XML.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The length of the UTF-8 sequence at the front of `text`, or 0 if the bytes are not valid UTF-8.
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto lead = byte(0);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    for (std::size_t i = 1; i < length; ++i) {
        if (byte(i) < 0x80 || byte(i) > 0xbf) {
            return 0;
        }
    }
    const bool is_too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool is_no_character = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f) ||
                                 (lead == 0xef && byte(1) == 0xbf && byte(2) > 0xbd);
    return is_too_long || is_no_character ? 0 : length;
}

/// Text that is shown as it is, in an element or in a quoted attribute. What XML cannot contain, control characters and
/// bytes that are not UTF-8, becomes `\xNN`.
[[nodiscard]] inline std::string markup(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const char c = text.front();
        const auto byte = static_cast<unsigned char>(c);
        const auto length = utf8_length(text);
        if (c == '&') {
            out += "&amp;";
        } else if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '"') {
            out += "&quot;";
        } else if (c == '\'') {
            out += "&#39;";
        } else if (length == 0 || (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
            out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

/// `<name attributes>content</name>`. The content is markup already.
[[nodiscard]] inline std::string element(std::string_view name, std::string_view content,
                                         std::string_view attributes = {}) {
    return "<" + std::string(name) + (attributes.empty() ? "" : " ") + std::string(attributes) + ">" +
           std::string(content) + "</" + std::string(name) + ">";
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report_text.hpp
// A report as text: the failures by family, then the numbers, the verdict and the list of failed clauses.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// The text on one line, cut if it is long.
[[nodiscard]] inline std::string on_one_line(std::string text) {
    constexpr std::size_t length_max = 200;
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.size() > length_max) {
        text.resize(length_max);
        text += " ...";
    }
    return text;
}

/// A failure on one line: the clause, and in brackets what is wrong.
[[nodiscard]] inline std::string brief_failure(const clause_report& c) {
    const auto& f = c.failure;
    const auto compared = f.expected.empty() && f.seen.empty() ? "" : ": expected " + f.expected + ", seen " + f.seen;
    return std::string(c.clause.id) + " " + std::string(failure_word(c.result)) + ": " +
           std::string(c.clause.sentence) + " [" + on_one_line(f.what + compared) + "]";
}

[[nodiscard]] inline std::string family_text(const family& f, std::string_view program) {
    auto out = failure_text(*f.shown, program);
    for (const auto* const c : f.failures) {
        if (c != f.shown) {
            out += brief_failure(*c) + "\n";
        }
    }
    for (const auto question : hints_for(f)) {
        out += "hint: " + std::string(question) + "\n";
    }
    return out + "\n";
}

/// "12 pass, 1 fail, 2 untested". Hanging and crashing clauses are counted only if there are any.
[[nodiscard]] inline std::string counts_text(const report& r) {
    std::string out;
    for (const auto one : all_results) {
        const auto count = r.count(one);
        if (count > 0 || (one != result::hangs && one != result::crashes)) {
            const auto name = one == result::not_run ? std::string("not run") : std::string(name_of(one));
            out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + name;
        }
    }
    return out;
}

[[nodiscard]] inline std::string tally_text(const tally& t) {
    constexpr std::uint64_t seconds_per_day = 86'400;
    return std::to_string(t.commands) + " model commands, " + std::to_string(t.interleavings) + " interleavings, " +
           std::to_string(t.histories) + " histories, " + std::to_string(t.crash_points) + " crash points, " +
           std::to_string(t.faults) + " faults, " + std::to_string(t.simulated_seconds / seconds_per_day) +
           " virtual days";
}

/// Why a run may not be repeatable.
[[nodiscard]] inline std::string repeatable_text(const tally& t) {
    return "not exactly: a server was slow to answer " + std::to_string(t.guessed_turns) +
           " times, and the call was taken to wait for another transaction";
}

/// The ids of the failed clauses, or nothing.
[[nodiscard]] inline std::string failed_ids(const report& r) {
    std::string out;
    for (const auto& c : r.clauses) {
        if (is_failure(c.result)) {
            out += (out.empty() ? "" : " ") + std::string(c.clause.id);
        }
    }
    return out;
}

} // namespace detail

/// The whole report as text. `program` is the name in the commands that repeat failures.
[[nodiscard]] inline std::string to_text(const report& r, std::string_view program = "conformance") {
    std::string out;
    const auto families = detail::failed_families(r);
    for (const auto& f : families) {
        out += detail::family_text(f, program);
    }
    constexpr std::size_t many = 8;
    if (families.size() >= many) {
        out += "hint: " + std::to_string(families.size()) +
               " families of clauses fail. Later clauses rely on earlier ones, so begin with the first failure.\n\n";
    }
    for (const auto& c : r.clauses) {
        if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: " + c.why + "\n";
        }
    }
    const auto line = [&](std::string name, const std::string& value) {
        constexpr std::size_t width = 14;
        name.resize(width, ' ');
        out += name + value + "\n";
    };
    line("store", r.identity.name + " " + r.identity.version);
    line("capabilities", detail::capability_names(r.can));
    line("hooks", detail::joined(r.hooks, ", "));
    for (const auto& m : r.missing) {
        line("missing hook", m);
    }
    line("platform", r.platform);
    line("profile", std::string(name_of(r.options.profile)) + ", seed " + std::to_string(r.options.seed));
    line("clauses", detail::counts_text(r));
    line("done", detail::tally_text(r.tally));
    if (r.tally.histories > 0) {
        line("overlapping", std::to_string(100 * r.tally.overlapping / r.tally.histories) + " % of the histories");
    }
    if (r.tally.guessed_turns > 0) {
        line("repeatable", detail::repeatable_text(r.tally));
    }
    for (const auto& g : r.gaps) {
        line("gap", g);
    }
    line("verdict", std::string(name_of(r.verdict())));
    if (const auto failed = detail::failed_ids(r); !failed.empty()) {
        line("failed", failed);
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report_html.hpp
// A report as one web page without scripts or other files. It has a dark form and a form for print. Everything that
// comes from a store or its author is escaped.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline std::string html_badge(std::string_view word) {
    return element("span", markup(word), "class=\"badge " + std::string(word) + "\"");
}

[[nodiscard]] inline std::string html_row(const std::vector<std::string>& cells, std::string_view kind = "td") {
    std::string out;
    for (const auto& cell : cells) {
        out += element(kind, cell);
    }
    return element("tr", out) + "\n";
}

/// What was tested: a row for each name and value.
[[nodiscard]] inline std::string html_facts(const report& r) {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view value) {
        out += element("dt", name) + element("dd", markup(value)) + "\n";
    };
    add("Platform", r.platform);
    add("Profile", name_of(r.options.profile));
    add("Seed", std::to_string(r.options.seed));
    add("Capabilities", capability_names(r.can));
    add("Hooks", joined(r.hooks, ", "));
    for (const auto& m : r.missing) {
        add("Missing hook", m);
    }
    add("Clauses", counts_text(r));
    add("Done", tally_text(r.tally));
    if (r.tally.histories > 0) {
        add("Overlapping", std::to_string(100 * r.tally.overlapping / r.tally.histories) + " % of the histories");
    }
    if (r.tally.guessed_turns > 0) {
        add("Repeatable", repeatable_text(r.tally));
    }
    for (const auto& g : r.gaps) {
        add("Gap", g);
    }
    return element("dl", out);
}

/// One failure in full, as it is printed, below its one-line form.
[[nodiscard]] inline std::string html_failure(const clause_report& c, std::string_view program, bool is_open) {
    const auto id = std::string(c.clause.id);
    const auto title = element("b", markup(id)) + " " + html_badge(name_of(c.result)) + " " + markup(c.clause.sentence);
    std::string facts = element("dt", "What") + element("dd", markup(c.failure.what)) + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        facts += element("dt", "Expected") + element("dd", element("pre", markup(c.failure.expected))) + "\n";
        facts += element("dt", "Seen") + element("dd", element("pre", markup(c.failure.seen))) + "\n";
    }
    facts += element("dt", "Replay") + element("dd", element("code", markup(replay_command(c, program)))) + "\n";
    auto body = element("dl", facts);
    if (!c.failure.transcript.empty()) {
        body += element("pre", markup(c.failure.transcript), "class=\"transcript\"");
    }
    return element("details", element("summary", title) + body, "id=\"" + id + "\"" + (is_open ? " open" : "")) + "\n";
}

[[nodiscard]] inline std::string html_failures(const report& r, std::string_view program) {
    std::string out;
    for (const auto& f : failed_families(r)) {
        const auto count = f.failures.size();
        out += element("h3", markup(f.name) + ": " + std::to_string(count) + (count == 1 ? " clause" : " clauses"));
        for (const auto question : hints_for(f)) {
            out += element("p", "Hint: " + markup(question), "class=\"hint\"");
        }
        out += html_failure(*f.shown, program, true);
        for (const auto* const c : f.failures) {
            if (c != f.shown) {
                out += html_failure(*c, program, false);
            }
        }
    }
    return out.empty() ? "" : element("h2", "Failures") + "\n" + out;
}

/// The layers of the clauses, in their order.
[[nodiscard]] inline std::vector<layer> layers_of(const report& r) {
    std::vector<layer> out;
    for (const auto& c : r.clauses) {
        bool is_new = true;
        for (const auto one : out) {
            is_new = is_new && one != c.clause.layer;
        }
        if (is_new) {
            out.push_back(c.clause.layer);
        }
    }
    return out;
}

/// How many clauses of each layer have each result.
[[nodiscard]] inline std::string html_layers(const report& r) {
    std::vector<std::string> head{"Layer"};
    for (const auto one : all_results) {
        head.emplace_back(name_of(one));
    }
    head.emplace_back("calls");
    head.emplace_back("ms");
    auto rows = html_row(head, "th");
    for (const auto l : layers_of(r)) {
        const std::string name(name_of(l));
        std::vector<std::string> cells{element("a", name, "href=\"#layer-" + name + "\"")};
        for (const auto one : all_results) {
            std::size_t count = 0;
            for (const auto& c : r.clauses) {
                count += c.clause.layer == l && c.result == one ? 1U : 0U;
            }
            cells.push_back(count == 0 ? "" : std::to_string(count));
        }
        std::uint64_t calls = 0;
        double milliseconds = 0;
        for (const auto& c : r.clauses) {
            calls += c.clause.layer == l ? c.calls : 0U;
            milliseconds += c.clause.layer == l ? c.milliseconds : 0.0;
        }
        cells.push_back(std::to_string(calls));
        cells.push_back(std::to_string(static_cast<std::uint64_t>(milliseconds)));
        rows += html_row(cells);
    }
    return element("h2", "Layers") + element("table", rows, "class=\"layers\"") + "\n";
}

[[nodiscard]] inline std::string html_clauses(const report& r) {
    std::string out = element("h2", "Clauses") + "\n";
    for (const auto l : layers_of(r)) {
        const std::string name(name_of(l));
        auto rows = html_row({"Clause", "Result", "Level", "Needs", "Sentence"}, "th");
        for (const auto& c : r.clauses) {
            if (c.clause.layer == l) {
                const auto id = markup(c.clause.id);
                const auto why = c.why.empty() ? "" : element("div", markup(c.why), "class=\"why\"");
                rows += html_row({is_failure(c.result) ? element("a", id, "href=\"#" + id + "\"") : id,
                                  html_badge(name_of(c.result)), c.clause.level == level::must ? "MUST" : "MAY",
                                  markup(name_of(c.clause.needs)), markup(c.clause.sentence) + why});
            }
        }
        out += element("h3", name, "id=\"layer-" + name + "\"") + element("table", rows, "class=\"clauses\"") + "\n";
    }
    return out;
}

/// A whole page. The title is text, the content is HTML.
[[nodiscard]] inline std::string html_page(std::string_view title, const std::string& content) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
           element("title", markup(title)) + "\n" + element("style", html_style) + "\n</head>\n<body>\n<main>\n" +
           content + "</main>\n</body>\n</html>\n";
}

} // namespace detail

/// The whole report as one web page.
[[nodiscard]] inline std::string to_html(const report& r, std::string_view program = "conformance") {
    const auto store = r.identity.name + " " + r.identity.version;
    const auto verdict = name_of(r.verdict());
    const auto failed = detail::failed_ids(r);
    return detail::html_page(
        store + ": " + std::string(verdict),
        detail::element("h1", detail::markup(store) + " " + detail::html_badge(verdict)) + "\n" +
            detail::element("p", "Checked against the store contract of vouch, level " +
                                     std::to_string(contract_level) + ".") +
            "\n" + detail::html_facts(r) + detail::html_layers(r) + detail::html_failures(r, program) +
            (failed.empty() ? "" : detail::element("p", "Failed: " + detail::markup(failed)) + "\n") +
            detail::html_clauses(r));
}

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

// ---- vouch/conformance/report_json.hpp
// A report as JSON. conformance/REPORT.md describes its members. A change that removes a member or changes its meaning
// raises `report_schema`; a new member does not.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The version of the JSON report's schema, its member `schema`.
inline constexpr std::uint64_t report_schema = 1;

namespace detail {

[[nodiscard]] inline std::string json_of(const clause_report& c) {
    json_object out;
    out.text("id", c.clause.id).text("layer", name_of(c.clause.layer)).text("result", name_of(c.result));
    out.text("level", c.clause.level == level::must ? "MUST" : "MAY").text("needs", name_of(c.clause.needs));
    out.text("sentence", c.clause.sentence);
    out.number("ms", static_cast<std::uint64_t>(c.milliseconds));
    if (is_failure(c.result)) {
        out.text("what", c.failure.what).text("seen", c.failure.seen).text("expected", c.failure.expected);
        out.text("transcript", c.failure.transcript).number("seed", c.seed);
    }
    if (c.result == result::untested) {
        out.text("why", c.why);
    }
    return out.str();
}

[[nodiscard]] inline std::string json_of(const tally& t) {
    json_object out;
    for (const auto& [name, counter] : tally_counters) {
        out.number(name, t.*counter);
    }
    return out.str();
}

} // namespace detail

/// The whole report as JSON.
[[nodiscard]] inline std::string to_json(const report& r) {
    detail::json_object answers;
    for (const auto& [name, count] : r.tally.answers) {
        answers.number(name, count);
    }
    detail::json_object counts;
    for (const auto one : all_results) {
        counts.number(name_of(one), r.count(one));
    }
    const auto word = [](const std::string& text) { return detail::json(text); };
    const auto words = [&](const std::vector<std::string>& list) { return detail::json_list(list, ", ", word); };
    detail::json_object out;
    out.number("schema", report_schema).number("contract_level", static_cast<std::uint64_t>(contract_level));
    out.text("store", r.identity.name).text("version", r.identity.version);
    out.text("verdict", name_of(r.verdict())).text("profile", name_of(r.options.profile));
    out.number("seed", r.options.seed).text("platform", r.platform);
    out.text("capabilities", detail::capability_names(r.can));
    out.raw("hooks", words(r.hooks)).raw("missing_hooks", words(r.missing)).raw("gaps", words(r.gaps));
    out.raw("counts", counts.str()).raw("done", detail::json_of(r.tally)).raw("answers", answers.str());
    out.raw("clauses", detail::json_list(r.clauses, ",\n  ", [](const auto& c) { return detail::json_of(c); }));
    return out.str() + "\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/report_junit.hpp
// A report as JUnit XML, which most CI systems show: one test suite, one test case per clause.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline std::string attribute(std::string_view name, std::string_view value) {
    return " " + std::string(name) + "=\"" + markup(value) + "\"";
}

[[nodiscard]] inline std::string seconds(double milliseconds) {
    const auto whole = static_cast<std::uint64_t>(milliseconds);
    auto rest = std::to_string(whole % 1000);
    return std::to_string(whole / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

[[nodiscard]] inline std::string junit_case(const clause_report& c, std::string_view program) {
    auto out = "    <testcase" + attribute("classname", "vouch." + std::string(name_of(c.clause.layer))) +
               attribute("name", std::string(c.clause.id) + ": " + std::string(c.clause.sentence)) +
               attribute("time", seconds(c.milliseconds)) + ">";
    if (is_failure(c.result)) {
        const auto* const kind = c.result == result::fail ? "failure" : "error";
        out += "\n      <" + std::string(kind) + attribute("type", name_of(c.result)) +
               attribute("message", c.failure.what) + ">" + markup(failure_text(c, program)) + "</" + kind + ">\n    ";
    } else if (c.result != result::pass) {
        const auto why = std::string(name_of(c.result)) + (c.why.empty() ? "" : ": " + c.why);
        out += "<skipped" + attribute("message", why) + "/>";
    }
    return out + "</testcase>\n";
}

} // namespace detail

/// The whole report as JUnit XML. A clause that hangs or crashes is an error; one that was not run is skipped.
[[nodiscard]] inline std::string to_junit(const report& r, std::string_view program = "conformance") {
    double milliseconds = 0;
    std::string cases;
    for (const auto& c : r.clauses) {
        milliseconds += c.milliseconds;
        cases += detail::junit_case(c, program);
    }
    const auto errors = r.count(result::hangs) + r.count(result::crashes);
    const auto skipped = r.count(result::unsupported) + r.count(result::untested) + r.count(result::not_run);
    const auto counts = detail::attribute("tests", std::to_string(r.clauses.size())) +
                        detail::attribute("failures", std::to_string(r.count(result::fail))) +
                        detail::attribute("errors", std::to_string(errors)) +
                        detail::attribute("skipped", std::to_string(skipped)) +
                        detail::attribute("time", detail::seconds(milliseconds));
    const auto property = [](std::string_view name, std::string_view value) {
        return "      <property" + detail::attribute("name", name) + detail::attribute("value", value) + "/>\n";
    };
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts + ">\n  <testsuite" +
           detail::attribute("name", "vouch conformance: " + r.identity.name + " " + r.identity.version) + counts +
           ">\n    <properties>\n" + property("verdict", name_of(r.verdict())) +
           property("seed", std::to_string(r.options.seed)) + property("profile", name_of(r.options.profile)) +
           property("platform", r.platform) + property("capabilities", detail::capability_names(r.can)) +
           "    </properties>\n" + cases + "  </testsuite>\n</testsuites>\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/command_line.hpp
// The options of the suite as a program.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr std::string_view usage =
    "  --help                          print this and exit\n"
    "  --list                          print the clauses and exit\n"
    "  --clause ID                     only clauses whose id starts with ID\n"
    "  --skip ID                       no clauses whose id starts with ID; may be repeated\n"
    "  --layer NAME                    only this layer\n"
    "  --seed N                        the seed of all random choices (default 1)\n"
    "  --profile quick|standard|soak   how much to run (default standard)\n"
    "  --text FILE                     also write the report to FILE as text\n"
    "  --json FILE                     also write the report to FILE as JSON\n"
    "  --html FILE                     also write the report to FILE as a web page\n"
    "  --junit FILE                    also write the report to FILE as JUnit XML\n"
    "  --patience N                    seconds until a clause counts as hanging (default 300)\n"
    "  --no-fork                       run the clauses in this process; a hang or a crash then ends the run\n"
    "  --quiet                         do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 a clause hangs, 64 wrong usage.\n";

struct command_line {
    conformance::options options{.progress = true};
    bool help = false;
    bool list = false;
    bool forks = true;
    std::string text{};
    std::string json{};
    std::string html{};
    std::string junit{};
    std::string wrong{}; ///< what is wrong, as a sentence without its full stop; empty: nothing
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

[[nodiscard]] inline std::optional<layer> layer_named(std::string_view name) {
    for (const auto& c : all_clauses()) {
        if (name_of(c.layer) == name) {
            return c.layer;
        }
    }
    return std::nullopt;
}

template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size();
}

/// Where the value of an option that names a file belongs.
[[nodiscard]] inline std::string* file_named_by(command_line& out, std::string_view name) {
    return name == "--text"    ? &out.text
           : name == "--json"  ? &out.json
           : name == "--html"  ? &out.html
           : name == "--junit" ? &out.junit
                               : nullptr;
}

/// Whether the option exists and has such a value.
[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    if (auto* const file = file_named_by(out, name)) {
        *file = value;
    } else if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--skip") {
        out.options.skip.emplace_back(value);
    } else if (name == "--seed") {
        return parse_number(value, out.options.seed);
    } else if (name == "--patience") {
        return parse_number(value, out.options.seconds_per_clause) && out.options.seconds_per_clause > 0;
    } else if (name == "--profile") {
        const auto found = by_name(value, {profile::quick, profile::standard, profile::soak});
        out.options.profile = found.value_or(profile::standard);
        return found.has_value();
    } else if (name == "--layer") {
        out.options.layer = layer_named(value);
        return out.options.layer.has_value();
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
    } else if (name == "--no-fork") {
        out.forks = false;
    } else {
        return false;
    }
    return true;
}

/// Says what is wrong with a prefix that no clause has. An empty prefix is every clause's.
[[nodiscard]] inline std::string wrong_prefix(std::string_view option, std::string_view prefix) {
    const auto& all = all_clauses();
    const bool is_known =
        std::any_of(all.begin(), all.end(), [&](const clause& c) { return c.id.starts_with(prefix); });
    return is_known ? ""
                    : std::string(option) + ": no clause starts with " + std::string(prefix) + "; --list prints them";
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc && out.wrong.empty(); ++i) {
        const std::string_view name = argv[i];
        if (parse_flag(out, name)) {
            continue;
        }
        if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = std::string(name) + " is not an option, or its value is missing or wrong";
        } else if (name == "--clause" || name == "--skip") {
            out.wrong = wrong_prefix(name, argv[i + 1]);
        }
        ++i;
    }
    const auto& all = all_clauses();
    const auto is_chosen = [&](const clause& c) { return conformance::is_chosen(c, out.options); };
    if (out.wrong.empty() && std::none_of(all.begin(), all.end(), is_chosen)) {
        out.wrong = "these options choose no clause; --list prints them";
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/wire.hpp
// Parts of a report as messages between two processes of the same program. A message is a list of strings, written as
// the length of each and its bytes.

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using message = std::vector<std::string>;

/// The bytes of a value. Both processes run the same program, so they agree on its layout.
template <class T>
[[nodiscard]] std::string bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
}

template <class T>
[[nodiscard]] T value_of(const std::string& bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    T out{};
    std::memcpy(&out, bytes.data(), bytes.size() < sizeof(T) ? bytes.size() : sizeof(T));
    return out;
}

[[nodiscard]] inline std::string encoded(const message& parts) {
    std::string body;
    for (const auto& part : parts) {
        body += bytes_of(part.size()) + part;
    }
    return bytes_of(body.size()) + body;
}

/// Takes the first complete message from the front of `from`.
[[nodiscard]] inline std::optional<message> take_message(std::string& from) {
    constexpr auto head = sizeof(std::size_t);
    if (from.size() < head || from.size() - head < value_of<std::size_t>(from)) {
        return std::nullopt;
    }
    const auto end = head + value_of<std::size_t>(from);
    message out;
    for (auto at = head; at < end;) {
        const auto length = value_of<std::size_t>(from.substr(at, head));
        out.push_back(from.substr(at + head, length));
        at += head + length;
    }
    from.erase(0, end);
    return out;
}

/// The words of a message, one after the other. Missing words are empty.
class word_reader {
  public:
    explicit word_reader(message from) : words_(std::move(from)) {}

    [[nodiscard]] std::string text() { return next_ < words_.size() ? std::move(words_[next_++]) : std::string(); }
    template <class T>
    [[nodiscard]] T value() {
        return value_of<T>(text());
    }

  private:
    message words_;
    std::size_t next_ = 0;
};

/// What is known before the first clause.
[[nodiscard]] inline message opened_message(const report& r) {
    message out{"opened", r.platform, bytes_of(r.can), bytes_of(r.hooks.size())};
    out.insert(out.end(), r.hooks.begin(), r.hooks.end());
    out.push_back(bytes_of(r.missing.size()));
    out.insert(out.end(), r.missing.begin(), r.missing.end());
    return out;
}

inline void read_opened(word_reader& from, report& into) {
    into.platform = from.text();
    into.can = from.value<vouch::capabilities>();
    for (auto* const list : {&into.hooks, &into.missing}) {
        list->clear();
        for (auto left = from.value<std::size_t>(); left > 0; --left) {
            list->push_back(from.text());
        }
    }
}

[[nodiscard]] inline message ended_message(const clause_report& c) {
    message out{"ended",
                bytes_of(c.result),
                c.why,
                c.failure.what,
                c.failure.seen,
                c.failure.expected,
                c.failure.transcript,
                bytes_of(c.seed),
                bytes_of(c.calls),
                bytes_of(c.milliseconds)};
    for (const auto& [name, counter] : tally_counters) {
        out.push_back(bytes_of(c.tally.*counter));
    }
    out.push_back(bytes_of(c.tally.answers.size()));
    for (const auto& [name, count] : c.tally.answers) {
        out.push_back(name);
        out.push_back(bytes_of(count));
    }
    return out;
}

/// Fills in everything but the clause.
inline void read_ended(word_reader& from, clause_report& into) {
    into.result = from.value<result>();
    into.why = from.text();
    into.failure.what = from.text();
    into.failure.seen = from.text();
    into.failure.expected = from.text();
    into.failure.transcript = from.text();
    into.seed = from.value<std::uint64_t>();
    into.calls = from.value<std::uint64_t>();
    into.milliseconds = from.value<double>();
    for (const auto& [name, counter] : tally_counters) {
        into.tally.*counter = from.value<std::uint64_t>();
    }
    for (auto left = from.value<std::size_t>(); left > 0; --left) {
        auto name = from.text();
        into.tally.answers[std::move(name)] = from.value<std::uint64_t>();
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

// ---- vouch/conformance/detail/forked_check.hpp
// `check` in a child process, which tells its parent about every clause. If a clause hangs or ends the process, that is
// its result, and a new child runs the rest. All clauses run in one child as long as nothing happens, so a run costs one
// fork. Only for a process with one thread.

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// How a process ended, in words.
[[nodiscard]] inline std::string end_of_process(int status) {
    if (WIFSIGNALED(status)) {
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    }
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

/// A child process that runs `work(send)`, where `send(message)` is safe to call from any one thread at a time.
class suite_process {
  public:
    template <class Work>
    explicit suite_process(Work&& work) {
        int ends[2];
        if (pipe(ends) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        std::fflush(nullptr); // or the child would print the parent's text again
        id_ = fork();
        if (id_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (id_ == 0) {
            close(ends[0]);
            fcntl(ends[1], F_SETFD, FD_CLOEXEC);
            work([to = ends[1]](const message& m) { write_all(to, encoded(m)); });
            std::exit(0); // not _exit: sanitizers report at exit
        }
        close(ends[1]);
        from_ = ends[0];
    }
    suite_process(const suite_process&) = delete;
    suite_process& operator=(const suite_process&) = delete;
    ~suite_process() {
        close(from_);
        if (!status_) {
            waitpid(id_, nullptr, 0);
        }
    }

    /// The next message; nothing when the child has ended.
    [[nodiscard]] std::optional<message> read() {
        for (;;) {
            if (auto found = take_message(received_)) {
                return found;
            }
            // A process that the store has started may hold the pipe open, so its end says nothing about the child.
            pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
            constexpr int milliseconds = 200;
            if (poll(&ready, 1, milliseconds) > 0) {
                char buffer[65'536];
                const auto count = ::read(from_, buffer, sizeof buffer);
                if (count <= 0) {
                    return std::nullopt;
                }
                received_.append(buffer, static_cast<std::size_t>(count));
            } else if (has_ended()) {
                return std::nullopt;
            }
        }
    }

    /// Waits for the end of the child and returns its status.
    [[nodiscard]] int wait() {
        if (int status = 0; !status_ && waitpid(id_, &status, 0) == id_) {
            status_ = status;
        }
        return status_.value_or(0);
    }

  private:
    [[nodiscard]] bool has_ended() {
        if (int status = 0; !status_ && waitpid(id_, &status, WNOHANG) == id_) {
            status_ = status;
        }
        return status_.has_value();
    }

    static void write_all(int to, std::string_view text) {
        while (!text.empty()) {
            const auto count = write(to, text.data(), text.size());
            if (count < 0 && errno != EINTR) {
                std::_Exit(1); // the parent is gone
            }
            text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0U);
        }
    }

    pid_t id_ = 0;
    int from_ = -1;
    std::string received_{};
    std::optional<int> status_{};
};

/// Runs the clauses in child processes and collects their reports.
template <class Fixture>
class forked_check {
  public:
    forked_check(const options& how, const identity& whose) : report_{.identity = whose, .options = how} {
        for (const auto& c : all_clauses()) {
            report_.clauses.push_back({.clause = c});
        }
    }

    /// The report. Throws if the fixture cannot open a store.
    [[nodiscard]] report run() {
        constexpr std::size_t hangs_max = 3; // each takes the whole patience
        do {
            run_child();
            if (has_more() && report_.count(result::hangs) >= hangs_max) {
                report_.gaps.push_back("the run ended after " + std::to_string(hangs_max) +
                                       " clauses without an answer");
                break;
            }
        } while (has_more());
        for (const auto& c : report_.clauses) {
            report_.tally += c.tally;
        }
        for (auto& gap : gaps_of(report_.tally, report_.can)) {
            report_.gaps.push_back(std::move(gap));
        }
        return std::move(report_);
    }

  private:
    /// What the child does: all clauses from `first_` on.
    template <class Send>
    void work(const std::filesystem::path& folder, const Send& send) const {
        std::size_t next = 0;
        check_callbacks callbacks;
        callbacks.opened = [&](const report& r) { send(opened_message(r)); };
        callbacks.begins = [&](const clause& c) {
            next = static_cast<std::size_t>(&c - all_clauses().data());
            if (next >= first_) {
                send({"begins", bytes_of(next)});
            }
            return next >= first_;
        };
        callbacks.ended = [&](const clause_report& c) {
            send(ended_message(c));
            return true;
        };
        callbacks.hangs = [&](const report&) { send({"hangs"}); };
        try {
            Fixture fixture{};
            std::ignore = check_in(folder, fixture, report_.options, report_.identity, callbacks);
            send({"done"});
        } catch (const std::exception& e) {
            send({"throws", e.what()});
        }
    }

    /// Whether there are clauses that the last child did not come to.
    [[nodiscard]] bool has_more() const {
        const auto& all = all_clauses();
        return !is_done_ && std::any_of(all.begin() + static_cast<std::ptrdiff_t>(first_), all.end(),
                                        [&](const clause& c) { return is_chosen(c, report_.options); });
    }

    void run_child() {
        const auto folder = fresh_folder();
        current_.reset();
        has_hung_ = false;
        const auto first = first_;
        {
            suite_process child([&](const auto& send) { work(folder, send); });
            while (auto m = child.read()) {
                receive(std::move(*m));
            }
            judge(child.wait(), first);
        }
        std::error_code ignored; // what a child leaves behind that could not clean up
        std::filesystem::remove_all(folder, ignored);
    }

    void receive(message m) {
        word_reader from(std::move(m));
        const auto kind = from.text();
        if (kind == "opened") {
            read_opened(from, report_);
        } else if (kind == "begins") {
            current_ = from.template value<std::size_t>();
            first_ = *current_ + 1;
        } else if (kind == "ended") {
            read_ended(from, report_.clauses.at(current_.value()));
            current_.reset();
        } else if (kind == "hangs") {
            has_hung_ = true;
        } else if (kind == "throws") {
            throw std::runtime_error(from.text());
        } else if (kind == "done") {
            is_done_ = true;
        }
    }

    /// The child has ended with this status; it had begun with the clause `first`.
    void judge(int status, std::size_t first) {
        if (is_done_ && status != 0) { // a sanitizer's report, for instance
            report_.gaps.push_back("after the last clause the process ended with " + end_of_process(status));
        } else if (current_) {
            auto& c = report_.clauses[*current_];
            c = hanging(c.clause, report_.options);
            if (!has_hung_) {
                c.result = result::crashes;
                c.failure.what = "the process ended with " + end_of_process(status);
            }
        } else if (!is_done_ && has_hung_) {
            throw open_hangs("no answer for " + std::to_string(report_.options.seconds_per_clause) + " s");
        } else if (!is_done_ && first_ == first) { // a new child would do the same
            throw std::runtime_error("the process ended with " + end_of_process(status));
        }
    }

    report report_;
    std::size_t first_ = 0; ///< the first clause that has not begun
    std::optional<std::size_t> current_{};
    bool has_hung_ = false;
    bool is_done_ = false;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
#endif

// ---- vouch/conformance/run.hpp
// The suite as a program: `int main(int argc, char** argv) { return run<fixture>({"acme", "1.4.0"}, argc, argv); }`.

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline constexpr int exit_hangs = 3;
inline constexpr int exit_usage = 64;

/// The exit code of a run. A clause that hangs may only need more patience, so it has a code of its own.
[[nodiscard]] inline int exit_code(const report& r) {
    if (r.count(result::hangs) > 0) {
        return exit_hangs;
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

/// Prints the report and writes the files that were asked for. Returns the exit code of the program. A template for the
/// same reason as `all_clauses`.
template <class = void>
[[nodiscard]] int publish(const report& r, const command_line& asked, const std::string& program) {
    std::fputs(to_text(r, program).c_str(), stdout);
    std::fflush(stdout);
    const auto write = [&](const std::string& path, const auto& content) {
        if (path.empty() || (std::ofstream(path) << content()).flush()) {
            return true;
        }
        std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), path.c_str());
        return false;
    };
    const bool has_text = write(asked.text, [&] { return to_text(r, program); });
    const bool has_json = write(asked.json, [&] { return to_json(r); });
    const bool has_html = write(asked.html, [&] { return to_html(r, program); });
    const bool has_junit = write(asked.junit, [&] { return to_junit(r, program); });
    return has_text && has_json && has_html && has_junit ? exit_code(r) : 1;
}

/// Runs the clauses in child processes where the system has them and the user wants it, otherwise in this process.
template <class Fixture>
[[nodiscard]] report checked(const identity& whose, const command_line& asked, const std::string& program) {
#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
    if (asked.forks) {
        return forked_check<Fixture>(asked.options, whose).run();
    }
#endif
    Fixture fixture{};
    check_callbacks callbacks;
    callbacks.hangs = [&](const report& so_far) { std::ignore = publish(so_far, asked, program); };
    return check(fixture, asked.options, whose, callbacks);
}

} // namespace detail

/// For `main`: runs the suite as the arguments say, prints the report and returns the exit code. The clauses run in a
/// child process, so call it before the program starts threads. An unknown option prints the usage and returns 64.
template <class Fixture>
int run(const identity& whose, int argc, char** argv) {
    const auto asked = detail::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    const std::string usage(detail::usage);
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s. Options:\n%s", program.c_str(), asked.wrong.c_str(), usage.c_str());
        return detail::exit_usage;
    }
    if (asked.help) {
        std::printf("usage: %s [OPTION]...\nChecks the store %s against the contract of vouch.\n%s", program.c_str(),
                    whose.name.c_str(), usage.c_str());
        return 0;
    }
    if (asked.list) {
        detail::print_clauses();
        return 0;
    }
    try {
        return detail::publish(detail::checked<Fixture>(whose, asked, program), asked, program);
    } catch (const detail::open_hangs& e) {
        std::fprintf(stderr, "%s: the fixture's open hangs: %s\n", program.c_str(), e.what());
        return detail::exit_hangs;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot open a store: %s\n", program.c_str(), e.what());
        return 1;
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_CONFORMANCE
