// SPDX-License-Identifier: MIT
// Receives messages from Kafka topics as a member of a consumer group. An offset is committed only by `acknowledge`, and
// only up to the first message of its partition that is not acknowledged, so whatever is not acknowledged is delivered
// again after a crash, together with acknowledged messages behind it.
//
// Used by one thread at a time. Call `receive` more often than librdkafka's `max.poll.interval.ms` (5 minutes) says, or the
// group gives the partitions to other consumers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/contract/error.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/kafka/detail/configuration.hpp>
#include <vouch/kafka/detail/group_member.hpp>
#include <vouch/kafka/detail/unacknowledged.hpp>
#include <vouch/kafka/detail/wire.hpp>
#include <vouch/kafka/options.hpp>
#include <vouch/kafka/topic_name.hpp>
#include <vouch/relay/consumer.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

class consumer {
  public:
    /// Throws `invalid_argument` if an option or a setting is wrong. Joins the group without waiting for it.
    explicit consumer(consumer_options options) : options_(std::move(options)) {
        check_options();
        member_ = std::make_unique<detail::group_member>(options_, messages_);
    }
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    /// Commits what is acknowledged, as far as that was not possible before, and leaves the group. Each of the two takes at
    /// most `commit_limit`, and librdkafka may wait 5 s longer for the cluster's answer.
    ~consumer() { leave(); }

    /// See the concept `vouch::consumer`. A message that was given back comes first, with `is_redelivered`. Throws `io` if
    /// no broker can be reached in `at_most`, or a topic does not exist; `invalid_argument` if a broker refuses to authenticate.
    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        if (is_cancelled_ || limit == 0) {
            return {};
        }
        throw_delayed();
        try {
            return receive_from(joined(), limit, deadline_after(at_most), stop);
        } catch (const error&) {
            throw;
        } catch (...) {      // no memory: a message may have got lost on the way
            member_.reset(); // everything that is not acknowledged is delivered again
            throw;
        }
    }

    /// Commits the offsets of the acknowledged messages and waits for it. Messages of partitions that now belong to another
    /// consumer are passed over. Throws `io` if the offsets could not be committed. The messages stay acknowledged, and
    /// the next call commits them.
    void acknowledge(std::span<const received> some) {
        for (const auto& one : some) {
            messages_.acknowledge(one.tag);
        }
        const auto code = member_ ? member_->commit() : RD_KAFKA_RESP_ERR_NO_ERROR;
        leave_if_done();
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR && !is_rebalance(code)) {
            throw detail::error_of(code, "acknowledge");
        }
    }

    /// The next `receive` returns these messages again. If the consumer ends before, another consumer gets them.
    void give_back(std::span<const received> some) {
        for (const auto& one : some) {
            messages_.give_back(one.tag);
        }
        leave_if_done();
    }

    /// The same as `acknowledge`: Kafka has no dead-letter queues.
    void set_aside(std::span<const received> some) { acknowledge(some); }

    /// Ends the delivery. The consumer leaves the group when all received messages are acknowledged or given back, and at
    /// the latest in its destructor. Leaving takes as long as the destructor may.
    void cancel() {
        is_cancelled_ = true;
        if (member_) {
            member_->set_paused(true);
        }
        leave_if_done();
    }

    /// librdkafka's consumer, for statistics and tests; null after it has left the group.
    [[nodiscard]] rd_kafka_t* handle() const noexcept { return member_ ? member_->handle() : nullptr; }

  private:
    using deadline = std::chrono::steady_clock::time_point;

    void check_options() const {
        const auto refuse = [](const std::string& what) {
            throw error(error_kind::invalid_argument, "kafka: consumer: " + what);
        };
        if (options_.group.empty()) {
            refuse("group is empty; name the consumer group");
        }
        if (options_.topics.empty()) {
            refuse("topics is empty; name at least one Kafka topic");
        }
        for (const auto& topic : options_.topics) {
            detail::check_topic_name("one of the consumer's topics", topic);
        }
        if (options_.unacknowledged_max == 0 || options_.unacknowledged_bytes_max == 0) {
            refuse("unacknowledged_max and unacknowledged_bytes_max must be at least 1");
        }
        detail::check_between("consumer", "commit_limit", options_.commit_limit);
    }

    [[nodiscard]] detail::group_member& joined() {
        if (!member_) {
            member_ = std::make_unique<detail::group_member>(options_, messages_);
        }
        return *member_;
    }

    [[nodiscard]] bool has_room() const noexcept {
        return messages_.count() < options_.unacknowledged_max && messages_.bytes() < options_.unacknowledged_bytes_max;
    }

    [[nodiscard]] static deadline deadline_after(duration at_most) {
        constexpr duration longest = std::chrono::hours(24 * 366); // no overflow
        return std::chrono::steady_clock::now() + std::clamp(at_most, duration::zero(), longest);
    }

    [[nodiscard]] std::vector<received> receive_from(detail::group_member& member, std::size_t limit, deadline until,
                                                     const std::stop_token& stop) {
        member.clear_connection_error();
        // What an earlier call could not commit, without a long wait. If this fails, `acknowledge` will say so.
        (void)member.commit(std::chrono::milliseconds(100));
        auto tags = messages_.take_again(limit);
        const auto given_back = tags.size();
        gather(member, tags, limit, until, stop);
        return read(tags, given_back);
    }

    /// Stays in the group while no more messages are asked for. A record that arrives is held, and the next `receive` returns
    /// it behind those that were given back.
    void stay(detail::group_member& member) {
        member.set_paused(!has_room());
        if (auto record = poll(member, std::chrono::milliseconds(0))) {
            if (record->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                messages_.give_back(messages_.hold(std::move(record)));
            } else {
                (void)note_error(*record);
            }
        }
    }

    /// Waits for the first message in short steps, to notice `stop`. Takes what else is there.
    void gather(detail::group_member& member, std::vector<std::uint64_t>& tags, std::size_t limit, deadline until,
                const std::stop_token& stop) {
        using std::chrono::milliseconds;
        if (tags.size() >= limit || (!tags.empty() && !has_room())) {
            stay(member);
            return;
        }
        member.set_paused(!has_room());
        while (tags.size() < limit && (tags.empty() || has_room())) {
            const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
            const auto step = tags.empty() ? std::clamp(left, milliseconds(0), milliseconds(50)) : milliseconds(0);
            auto record = poll(member, step);
            if (!record) {
                if (!tags.empty() || stop.stop_requested()) {
                    return;
                }
                throw_if_unreachable(member, left <= milliseconds(0));
                if (left <= milliseconds(0)) {
                    return;
                }
            } else if (record->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                tags.push_back(messages_.hold(std::move(record)));
            } else if (note_error(*record)) {
                if (tags.empty()) {
                    throw_delayed();
                }
                return;
            }
        }
    }

    [[nodiscard]] detail::message_handle poll(detail::group_member& member, std::chrono::milliseconds at_most) {
        try {
            return member.poll(at_most);
        } catch (...) {
            member_.reset();
            throw;
        }
    }

    /// Keeps the error to throw it, now or by the next `receive`. Returns false if it is none.
    [[nodiscard]] bool note_error(const rd_kafka_message_t& record) {
        if (record.err == RD_KAFKA_RESP_ERR__PARTITION_EOF || record.err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) {
            return false; // in the latter case librdkafka joins again by itself
        }
        const auto* const topic = record.rkt != nullptr ? rd_kafka_topic_name(record.rkt) : nullptr;
        delayed_ = detail::error_of(record.err, topic != nullptr ? "receive from " + std::string(topic) : "receive");
        return true;
    }

    void throw_delayed() {
        if (delayed_) {
            const auto problem = *std::exchange(delayed_, std::nullopt);
            if (problem.code() == RD_KAFKA_RESP_ERR__FATAL) {
                member_.reset(); // the next `receive` joins again
            }
            throw error(problem);
        }
    }

    static void throw_if_unreachable(const detail::group_member& member, bool is_over) {
        const auto code = member.connection_error();
        const auto word = answer_of(code).code;
        const bool is_refused = member.is_refused() && word == "not_authenticated";
        if (is_refused ||
            (is_over && (word == "brokers_unreachable" || word == "tls_failed" || word == "not_authenticated"))) {
            throw detail::error_of(code, "receive", is_refused);
        }
    }

    /// Partitions that have gone while others were polled have taken their messages with them.
    [[nodiscard]] std::vector<received> read(const std::vector<std::uint64_t>& tags, std::size_t given_back) const {
        std::vector<received> out;
        out.reserve(tags.size());
        for (std::size_t i = 0; i < tags.size(); ++i) {
            if (const auto* const record = messages_.find(tags[i])) {
                out.push_back(detail::read_record(*record, options_.lane_from_key));
                out.back().tag = tags[i];
                out.back().is_redelivered = i < given_back;
            }
        }
        return out;
    }

    /// Answers to a commit by a member whose partitions may belong to another one by now.
    [[nodiscard]] static bool is_rebalance(rd_kafka_resp_err_t code) noexcept {
        return code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
               code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID ||
               code == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
    }

    void leave_if_done() {
        if (is_cancelled_) {
            messages_.forget_given_back();
            if (messages_.count() == 0) {
                leave();
            }
        }
    }

    void leave() noexcept {
        if (member_) {
            try {
                (void)member_->commit();
            } catch (...) { // NOLINT(bugprone-empty-catch): what is not committed is delivered again
            }
            member_.reset();
        }
    }

    consumer_options options_;
    detail::unacknowledged messages_; // before the member, which refers to it
    std::unique_ptr<detail::group_member> member_;
    std::optional<error> delayed_;
    bool is_cancelled_ = false;
};

static_assert(vouch::consumer<consumer>);

} // namespace kafka
} // namespace v0
} // namespace vouch
