// SPDX-License-Identifier: MIT
// The messages that a consumer has received and that are not acknowledged. It keeps their records, because Kafka gives a
// message again only to a consumer that begins anew: what the application gives back is delivered again from here.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/kafka/detail/handles.hpp>
#include <vouch/kafka/detail/offset_ledger.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

struct partition_name {
    std::string topic{};
    std::int32_t partition = 0;

    [[nodiscard]] friend std::strong_ordering operator<=>(const partition_name&, const partition_name&) = default;
};

class unacknowledged {
  public:
    using tag = std::uint64_t;

    /// Keeps the record and returns its tag. Tags grow and are never used twice.
    [[nodiscard]] tag hold(message_handle record) {
        partition_name where{rd_kafka_topic_name(record->rkt), record->partition};
        const auto place = ledgers_[where].deliver(record->offset);
        bytes_ += record->len;
        held_.emplace(++last_, kept{std::move(where), place, std::move(record)});
        return last_;
    }

    /// The record, or null if it is no longer held: it was acknowledged, or its partition is gone.
    [[nodiscard]] const rd_kafka_message_t* find(tag t) const {
        const auto at = held_.find(t);
        return at != held_.end() ? at->second.record.get() : nullptr;
    }

    void acknowledge(tag t) {
        const auto at = held_.find(t);
        if (at != held_.end()) {
            ledgers_[at->second.where].acknowledge(at->second.place);
            again_.erase(t);
            release(at);
        }
    }

    void give_back(tag t) {
        if (held_.contains(t)) {
            again_.insert(t);
        }
    }

    /// Tags of messages to be delivered again, in the order of their arrival.
    [[nodiscard]] std::vector<tag> take_again(std::size_t limit) {
        std::vector<tag> out;
        while (!again_.empty() && out.size() < limit) {
            out.push_back(*again_.begin());
            again_.erase(again_.begin());
        }
        return out;
    }

    /// Forgets the records that were given back. Their offsets stay unacknowledged.
    void forget_given_back() {
        for (const auto t : take_again(again_.size())) {
            release(held_.find(t));
        }
    }

    /// Forgets a partition that now belongs to another consumer.
    void drop(const partition_name& where) {
        ledgers_.erase(where);
        for (auto at = held_.begin(); at != held_.end();) {
            const auto here = at++;
            if (here->second.where == where) {
                again_.erase(here->first);
                release(here);
            }
        }
    }

    void drop_all() noexcept {
        held_.clear();
        again_.clear();
        ledgers_.clear();
        bytes_ = 0;
    }

    [[nodiscard]] std::size_t count() const noexcept { return held_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::map<partition_name, offset_ledger>& ledgers() noexcept { return ledgers_; }

  private:
    struct kept {
        partition_name where{};
        ledger_place place{};
        message_handle record{};
    };

    void release(std::map<tag, kept>::iterator at) {
        bytes_ -= at->second.record->len;
        held_.erase(at);
    }

    std::map<tag, kept> held_;
    std::set<tag> again_; // those of `held_` that the application has given back
    std::map<partition_name, offset_ledger> ledgers_;
    std::size_t bytes_ = 0;
    tag last_ = 0;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
