// SPDX-License-Identifier: MIT
// A client of the broker in memory that is like one of a real broker: it has connections that can be cut, and it fetches
// messages in advance. It can be broken in many ways, one at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>

#include "defect.hpp"
#include "message_defects.hpp"

namespace broken {

using vouch::confirmation;
using vouch::message;
using vouch::received;

inline constexpr std::size_t message_max = 70'000;
inline constexpr std::size_t prefetch = 20;

/// What publishers and consumers share.
struct server {
    explicit server(defect d) : what(d) { broker.bind("kit.#", "kit"); }

    [[nodiscard]] bool is(defect d) const noexcept { return what == d; }

    defect what;
    vouch::testing::broker broker{{}, message_max};
    std::atomic<unsigned> cuts = 0;
};

class publisher {
  public:
    explicit publisher(server& s) : server_(s), to_(s.broker), cuts_(s.cuts) {}
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;

    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        std::unique_lock lock(mutex_);
        last_ = answers(messages);
        if (is(defect::swaps_answers_of_threads)) {
            lock.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            lock.lock();
        }
        return last_;
    }

  private:
    using kind = confirmation::kind;

    [[nodiscard]] bool is(defect d) const noexcept { return server_.is(d); }

    [[nodiscard]] std::vector<confirmation> answers(std::span<const message> messages) {
        if (messages.empty()) {
            return std::vector<confirmation>(is(defect::answers_for_nothing) ? 1 : 0);
        }
        if (is(defect::never_confirms)) {
            return std::vector<confirmation>(messages.size());
        }
        if (const unsigned now = server_.cuts; now != cuts_) {
            cuts_ = is(defect::publisher_stays_lost) ? cuts_ : now;
            return lost_connection(messages);
        }
        if (has_old_answers_) {
            has_old_answers_ = false;
            return std::vector<confirmation>(messages.size(), {kind::confirmed});
        }
        return sent(messages);
    }

    /// The connection breaks in the middle of the call.
    [[nodiscard]] std::vector<confirmation> lost_connection(std::span<const message> messages) {
        (void)sent(messages.first(messages.size() / 2));
        if (is(defect::lasting_error_when_lost)) {
            throw vouch::error(vouch::error_kind::misuse, "client: the connection is closed");
        }
        if (is(defect::other_exception_when_lost)) {
            throw std::runtime_error("client: the connection is closed");
        }
        has_old_answers_ = is(defect::answers_of_old_connection);
        const auto said = is(defect::refused_when_lost)     ? kind::refused
                          : is(defect::confirmed_when_lost) ? kind::confirmed
                                                            : kind::unknown;
        return std::vector<confirmation>(messages.size(), {said, "connection_lost"});
    }

    [[nodiscard]] std::vector<confirmation> sent(std::span<const message> messages) {
        std::vector<confirmation> out(messages.size());
        for (std::size_t n = 0; n < messages.size(); ++n) {
            const auto i = is(defect::reorders_lane) ? messages.size() - 1 - n : n;
            out[i] = sent(messages[i]);
            if (out[i].what == kind::refused && is(defect::refusal_spreads)) {
                std::fill(out.begin() + static_cast<std::ptrdiff_t>(i), out.end(), out[i]);
                break;
            }
        }
        if (is(defect::answers_out_of_order)) {
            std::stable_partition(out.begin(), out.end(), [](const auto& c) { return c.what == kind::refused; });
        }
        if (is(defect::too_few_answers)) {
            out.pop_back();
        }
        return out;
    }

    [[nodiscard]] confirmation sent(const message& m) {
        if (is(defect::confirms_unsent) && ++sent_ % 40 == 0) {
            return {kind::confirmed};
        }
        if (is(defect::largest_is_refused) && m.payload.size() == message_max) {
            return {kind::refused, "message_too_large"};
        }
        if (m.payload.size() > message_max && is(defect::throws_for_too_large)) {
            throw vouch::error(vouch::error_kind::io, "client: the connection is closed");
        }
        if (is(defect::extreme_expiry_expires) && m.expires_at == vouch::time_point::max()) {
            return {kind::confirmed};
        }
        auto mangled = broken::mangled(m, server_.what);
        if (is(defect::new_id_each_time)) {
            mangled.id += "-" + std::to_string(++sent_);
        }
        auto out = to_.publish(std::span(&mangled, 1)).front();
        if (out.code == "unroutable" && is(defect::confirms_unroutable)) {
            return {kind::confirmed};
        }
        if (out.code == "unroutable" && is(defect::unroutable_is_unknown)) {
            return {kind::unknown, "unroutable"};
        }
        if (out.code == "message_too_large" && is(defect::confirms_too_large)) {
            return {kind::confirmed};
        }
        if (is(defect::refuses_without_code)) {
            out.code.clear();
        }
        return out;
    }

    server& server_;
    vouch::testing::broker_publisher to_;
    unsigned cuts_;
    std::mutex mutex_{};
    std::vector<confirmation> last_{};
    std::size_t sent_ = 0;
    bool has_old_answers_ = false;
};

class consumer {
  public:
    explicit consumer(server& s) : server_(s), cuts_(s.cuts) { connect(); }
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    ~consumer() {
        if (is(defect::death_acknowledges) && !is_cut()) {
            acknowledge_held();
        }
    }

    [[nodiscard]] std::vector<received> receive(std::size_t limit, vouch::duration at_most,
                                                const std::stop_token& stop) {
        if (is_cancelled_ && !is(defect::cancel_keeps_delivering)) {
            return {};
        }
        if (is_cut()) {
            lose_connection();
        }
        if (stop.stop_requested() && !is(defect::ignores_stop)) {
            return {};
        }
        if (fetched_.empty()) {
            fetch(at_most, stop);
        }
        if (is(defect::waits_for_full_batch) && fetched_.size() < limit) {
            std::this_thread::sleep_for(at_most);
        }
        if (is(defect::ignores_limit)) {
            limit = fetched_.size();
        }
        std::vector<received> out;
        while (out.size() < limit && !fetched_.empty()) {
            out.push_back(taken());
            if (is(defect::malformed_is_dropped) && !out.back().malformed.empty()) {
                out.pop_back();
            }
        }
        return out;
    }

    void acknowledge(std::span<const received> some) {
        if (is(defect::acknowledges_nothing) || is_cut()) {
            return;
        }
        if (is(defect::acknowledges_everything)) {
            acknowledge_held();
            return;
        }
        if (is(defect::acknowledges_up_to) && !some.empty()) {
            std::erase_if(held_, [&](const auto& h) {
                const bool is_before = h.first < some.back().tag;
                if (is_before) {
                    from_->acknowledge(std::span(&h.second, 1));
                }
                return is_before;
            });
        }
        for_held(some, [&](const received& r) { from_->acknowledge(std::span(&r, 1)); });
    }

    void give_back(std::span<const received> some) {
        if (is(defect::give_back_does_nothing) || is_cut()) {
            return;
        }
        if (!is(defect::give_back_comes_late) && !is(defect::cancel_keeps_the_rest)) {
            give_back_fetched();
        }
        for_held(some, [&](const received& r) {
            if (is(defect::give_back_loses)) {
                from_->acknowledge(std::span(&r, 1));
            } else if (is(defect::give_back_to_the_end)) {
                from_->acknowledge(std::span(&r, 1));
                (void)vouch::testing::broker_publisher(server_.broker).publish(std::span(&r.message, 1));
            } else {
                from_->give_back(std::span(&r, 1));
            }
        });
    }

    void set_aside(std::span<const received> some) {
        if (is(defect::set_aside_does_nothing) || is_cut()) {
            return;
        }
        if (is(defect::set_aside_takes_all)) {
            acknowledge_held();
            return;
        }
        for_held(some, [&](const received& r) {
            if (is(defect::set_aside_comes_again)) {
                from_->give_back(std::span(&r, 1));
            } else {
                from_->set_aside(std::span(&r, 1));
            }
        });
    }

    void cancel() {
        is_cancelled_ = true;
        if (is(defect::cancel_closes)) {
            connect();
        } else if (is(defect::cancel_drops)) {
            from_->acknowledge(std::vector<received>(fetched_.begin(), fetched_.end()));
            fetched_.clear();
        } else if (!is(defect::cancel_keeps_the_rest)) {
            give_back_fetched();
        }
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return server_.is(d); }
    [[nodiscard]] bool is_cut() const noexcept { return cuts_ != server_.cuts; }

    /// Makes a new connection; what the old one has is delivered again.
    void connect() {
        cuts_ = server_.cuts;
        fetched_.clear();
        held_.clear();
        from_.reset();
        from_.emplace(server_.broker, "kit", is(defect::unbounded) ? 1'000'000 : prefetch);
        tags_ = is(defect::tags_begin_again) ? 0 : tags_;
    }

    void lose_connection() {
        if (is(defect::cut_acknowledges)) {
            acknowledge_held();
        }
        if (!is(defect::consumer_stays_lost)) {
            connect();
        }
        if (is(defect::lasting_fault_when_cut)) {
            throw vouch::error(vouch::error_kind::misuse, "client: the connection is closed");
        }
        if (is(defect::other_exception_when_cut)) {
            throw std::runtime_error("client: the connection is closed");
        }
        throw vouch::error(vouch::error_kind::io, "client: the connection is lost");
    }

    void fetch(vouch::duration at_most, const std::stop_token& stop) {
        const auto wait = at_most + (is(defect::waits_too_long) ? std::chrono::seconds{2} : std::chrono::seconds{0});
        auto got = from_->receive(1'000'000, wait, is(defect::ignores_stop) ? std::stop_token{} : stop);
        if (is(defect::acknowledges_on_receive)) {
            from_->acknowledge(got);
        }
        if (is(defect::stop_loses_messages) && stop.stop_possible()) {
            lost_by_stop_ = true;
        }
        if (lost_by_stop_ && !got.empty()) {
            from_->acknowledge(got);
            got.clear();
        }
        for (auto& r : got) {
            if (!r.malformed.empty() && is(defect::malformed_throws)) {
                from_->give_back(got);
                throw vouch::error(vouch::error_kind::io, "client: the message cannot be read");
            }
        }
        fetched_.insert(fetched_.end(), got.begin(), got.end());
    }

    [[nodiscard]] received taken() {
        auto out = std::move(fetched_.front());
        fetched_.pop_front();
        held_[++tags_] = out;
        out.tag = tags_;
        if (is(defect::malformed_has_no_code)) {
            out.malformed.clear();
        }
        return out;
    }

    template <class Each>
    void for_held(std::span<const received> some, const Each& each) {
        for (const auto& r : some) {
            if (const auto found = held_.find(r.tag); found != held_.end()) {
                each(found->second);
                held_.erase(found);
            }
        }
    }

    void acknowledge_held() {
        for (const auto& [tag, r] : held_) {
            from_->acknowledge(std::span(&r, 1));
        }
        held_.clear();
    }

    void give_back_fetched() {
        from_->give_back(std::vector<received>(fetched_.begin(), fetched_.end()));
        fetched_.clear();
    }

    server& server_;
    unsigned cuts_;
    std::optional<vouch::testing::broker_consumer> from_{};
    std::deque<received> fetched_{};           ///< in advance
    std::map<std::uint64_t, received> held_{}; ///< returned and not acknowledged
    std::uint64_t tags_ = 0;
    bool is_cancelled_ = false;
    bool lost_by_stop_ = false;
};

/// The fixture of the kit.
struct fixture {
    explicit fixture(defect d = defect::none) : world(d) {}

    auto publisher() { return broken::publisher(world); }
    auto consumer() { return broken::consumer(world); }
    void cut() { ++world.cuts; }
    void restart() {
        if (world.is(defect::lost_at_restart)) {
            vouch::testing::broker_consumer all(world.broker, "kit", 1'000'000);
            all.acknowledge(all.receive(1'000'000, vouch::duration::zero(), {}));
        }
        cut();
    }
    std::string unroutable_topic() { return "nobody.listens"; }
    std::size_t message_max() { return broken::message_max; }
    std::size_t unacknowledged_max() { return prefetch; }
    void publish_malformed() {
        const message without_id{.topic = "kit.malformed"};
        (void)vouch::testing::broker_publisher(world.broker).publish(std::span(&without_id, 1));
    }

    server world;
};

} // namespace broken
