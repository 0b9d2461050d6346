// SPDX-License-Identifier: MIT
// The deliveries of a connection that are not acknowledged, given back or set aside. A consumer's tags continue where those of
// its last connection ended, so that a tag of a lost connection is never taken for one of this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <vector>

#include <vouch/rabbitmq/detail/connection.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/consumer.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// What the broker does with a message.
enum class fate : unsigned char { acknowledged, requeued, dead_lettered };

class unsettled {
  public:
    /// A delivery has arrived. Returns the tag by which the consumer's user knows it.
    [[nodiscard]] std::uint64_t arrived(std::uint64_t delivery_tag) {
        last_ = delivery_tag;
        tags_.insert(delivery_tag);
        return base_ + delivery_tag;
    }

    /// The connection is lost: the broker will deliver all of them again.
    void lose() noexcept {
        base_ += last_;
        last_ = 0;
        tags_.clear();
    }

    /// Those that are still unsettled, ascending.
    [[nodiscard]] std::set<std::uint64_t> select(std::span<const received> some) const {
        std::set<std::uint64_t> out;
        for (const auto& one : some) {
            if (one.tag > base_ && tags_.contains(one.tag - base_)) {
                out.insert(one.tag - base_);
            }
        }
        return out;
    }

    [[nodiscard]] bool is_all(const std::set<std::uint64_t>& chosen) const { return chosen == tags_; }

    /// Tells the broker. All before the first that stays are acknowledged, or set aside, by one frame. RabbitMQ does not keep
    /// the order of messages that one frame returns to the queue, so each has its own then.
    [[nodiscard]] io settle(connection& to, const std::set<std::uint64_t>& chosen, fate what, steady::time_point end) {
        auto first = chosen.begin();
        auto how = io::done;
        if (what != fate::requeued) {
            first = std::mismatch(tags_.begin(), tags_.end(), chosen.begin(), chosen.end()).second;
            how = first == chosen.begin() ? io::done : send(to, *std::prev(first), true, what, end);
        }
        for (; how == io::done && first != chosen.end(); ++first) {
            how = send(to, *first, false, what, end);
        }
        for (const auto tag : chosen) {
            tags_.erase(tag);
        }
        return how;
    }

  private:
    [[nodiscard]] static io send(connection& to, std::uint64_t tag, bool is_multiple, fate what,
                                 steady::time_point end) {
        if (what == fate::acknowledged) {
            amqp_basic_ack_t ack{};
            ack.delivery_tag = tag;
            ack.multiple = is_multiple ? 1 : 0;
            return to.send_method(AMQP_BASIC_ACK_METHOD, &ack, end);
        }
        amqp_basic_nack_t nack{};
        nack.delivery_tag = tag;
        nack.multiple = is_multiple ? 1 : 0;
        nack.requeue = what == fate::requeued ? 1 : 0;
        return to.send_method(AMQP_BASIC_NACK_METHOD, &nack, end);
    }

    std::uint64_t base_ = 0; // the consumer's tags of lost connections are not greater
    std::uint64_t last_ = 0; // the highest tag of this connection
    std::set<std::uint64_t> tags_{};
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
