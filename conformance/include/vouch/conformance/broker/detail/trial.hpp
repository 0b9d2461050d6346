// SPDX-License-Identifier: MIT
// What a clause works with: the fixture, the waits, messages that carry the mark of the run and of the clause, and a
// publisher and a consumer that the clauses share, because joining a group may take seconds.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/any_publisher.hpp>
#include <vouch/conformance/broker/hooks.hpp>
#include <vouch/conformance/broker/options.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/relay/message.hpp>

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
