// SPDX-License-Identifier: MIT
// One membership in a consumer group: a client of librdkafka that is subscribed to the topics. Partitions come and go while
// it polls, in the thread that polls.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <librdkafka/rdkafka.h>

#include <vouch/contract/error.hpp>
#include <vouch/kafka/answer.hpp>
#include <vouch/kafka/detail/configuration.hpp>
#include <vouch/kafka/detail/handles.hpp>
#include <vouch/kafka/detail/unacknowledged.hpp>
#include <vouch/kafka/options.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

inline constexpr auto owned_by_consumer = std::to_array<owned_setting>({
    {"bootstrap.servers", "use the option bootstrap_servers"},
    {"metadata.broker.list", "use the option bootstrap_servers"},
    {"client.id", "use the option client_id"},
    {"group.id", "use the option group"},
    {"queued.max.messages.kbytes", "use the option queue_kbytes"},
    {"enable.auto.commit", "offsets are committed by acknowledge"},
    {"auto.commit.enable", "offsets are committed by acknowledge"},
    {"enable.auto.offset.store", "offsets are committed by acknowledge"},
});

/// With `cooperative-sticky`, librdkafka before 2.3.0 aborts the process if a consumer leaves the group between its election
/// as leader and its first assignment (librdkafka's issue 4312).
[[nodiscard]] inline const char* default_strategy() noexcept {
    constexpr int first_mended = 0x02030000;
    return rd_kafka_version() >= first_mended ? "cooperative-sticky" : "range,roundrobin";
}

/// The error as an exception. A password that a broker has refused stays wrong; all other errors may pass.
[[nodiscard]] inline error error_of(rd_kafka_resp_err_t code, const std::string& doing, bool is_refused = false) {
    const auto word = answer_of(code).code;
    return {is_refused ? error_kind::invalid_argument : error_kind::io,
            "kafka: " + doing + ": " + rd_kafka_err2str(code) + " (" + rd_kafka_err2name(code) + ")",
            {.code = code, .text_code = word}};
}

class group_member {
  public:
    group_member(const consumer_options& options, unacknowledged& messages)
        : commit_limit_(options.commit_limit), messages_(messages) {
        events_.member = this;
        events_.log = options.log;
        client_ = create(options);
        rd_kafka_poll_set_consumer(client_.get());
        const partitions_handle topics(rd_kafka_topic_partition_list_new(static_cast<int>(options.topics.size())));
        for (const auto& topic : options.topics) {
            rd_kafka_topic_partition_list_add(topics.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
        }
        if (const auto code = rd_kafka_subscribe(client_.get(), topics.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            throw error_of(code, "subscribe");
        }
    }
    group_member(const group_member&) = delete;
    group_member& operator=(const group_member&) = delete;
    /// Leaves the group, and takes at most `commit_limit` for it; librdkafka gives the request that it has sent then 5 s. If
    /// the cluster does not answer in time, the group finds out by its session timeout.
    ~group_member() {
        messages_.drop_all(); // librdkafka waits for its records
        if (client_) {
            leave();
            // Without the flag it would leave once more, and wait for the cluster without a limit.
            rd_kafka_destroy_flags(client_.release(), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        }
    }

    /// The next record, or null. A record with an error is no message. Serves changes of the group.
    [[nodiscard]] message_handle poll(std::chrono::milliseconds at_most) {
        message_handle record(rd_kafka_consumer_poll(client_.get(), static_cast<int>(at_most.count())));
        if (has_failed_) {
            throw error(error_kind::io, "kafka: receive: a change of the group's partitions failed");
        }
        return record;
    }

    /// While paused, `poll` serves the group and returns no more messages.
    void set_paused(bool is_paused) {
        if (is_paused == is_paused_) {
            return;
        }
        rd_kafka_topic_partition_list_t* all = nullptr;
        if (rd_kafka_assignment(client_.get(), &all) == RD_KAFKA_RESP_ERR_NO_ERROR) {
            const partitions_handle owner(all);
            is_paused ? rd_kafka_pause_partitions(client_.get(), all) : rd_kafka_resume_partitions(client_.get(), all);
            is_paused_ = is_paused;
        }
    }

    /// Commits what is acknowledged and not committed, and waits for it. What could not be committed is tried again by the
    /// next call.
    [[nodiscard]] rd_kafka_resp_err_t commit() { return commit(commit_limit_); }
    [[nodiscard]] rd_kafka_resp_err_t commit(std::chrono::milliseconds at_most) {
        const auto offsets = offsets_to_commit();
        if (offsets->cnt == 0) {
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        const queue_handle answers(rd_kafka_queue_new(client_.get()));
        const auto refused = rd_kafka_commit_queue(client_.get(), offsets.get(), answers.get(), nullptr, nullptr);
        if (refused != RD_KAFKA_RESP_ERR_NO_ERROR) {
            return refused;
        }
        const event_handle answer(
            rd_kafka_queue_poll(answers.get(), static_cast<int>(std::min(at_most, commit_limit_).count())));
        if (!answer) {
            return RD_KAFKA_RESP_ERR__TIMED_OUT;
        }
        return take_committed(answer.get());
    }

    /// What the connections have reported since it was cleared.
    [[nodiscard]] rd_kafka_resp_err_t connection_error() const noexcept { return events_.last_error; }
    /// Whether a broker has refused to authenticate this client.
    [[nodiscard]] bool is_refused() const noexcept { return events_.is_refused; }
    void clear_connection_error() noexcept { events_.clear(); }
    [[nodiscard]] rd_kafka_t* handle() const noexcept { return client_.get(); }

  private:
    struct member_events : client_events {
        group_member* member = nullptr;
    };

    [[nodiscard]] client_handle create(const consumer_options& options) {
        configuration conf("consumer", events_);
        set_common(conf, options.bootstrap_servers, options.client_id);
        conf.set("group.id", options.group);
        conf.set("enable.auto.commit", "false");
        conf.set("enable.auto.offset.store", "false");
        conf.set("queued.max.messages.kbytes", std::to_string(options.queue_kbytes));
        conf.set("auto.offset.reset", "earliest");
        conf.set("partition.assignment.strategy", default_strategy());
        conf.set_all(options.settings, owned_by_consumer);
        rd_kafka_conf_set_rebalance_cb(conf.get(), &rebalance);
        rd_kafka_conf_set_error_cb(conf.get(), &note_error);
        return std::move(conf).create(RD_KAFKA_CONSUMER);
    }

    void leave() noexcept {
        const auto until = std::chrono::steady_clock::now() + commit_limit_;
        const queue_handle events(rd_kafka_queue_new(client_.get()));
        const error_handle failure(rd_kafka_consumer_close_queue(client_.get(), events.get()));
        while (!failure && rd_kafka_consumer_closed(client_.get()) == 0 && std::chrono::steady_clock::now() < until) {
            constexpr int step_ms = 50;
            const event_handle event(rd_kafka_queue_poll(events.get(), step_ms));
            if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE) {
                rebalance(client_.get(), rd_kafka_event_error(event.get()),
                          rd_kafka_event_topic_partition_list(event.get()), static_cast<client_events*>(&events_));
            }
        }
    }

    [[nodiscard]] partitions_handle offsets_to_commit() {
        partitions_handle out(rd_kafka_topic_partition_list_new(static_cast<int>(messages_.ledgers().size())));
        for (const auto& [where, ledger] : messages_.ledgers()) {
            if (const auto& next = ledger.to_commit()) {
                rd_kafka_topic_partition_list_add(out.get(), where.topic.c_str(), where.partition)->offset = *next;
            }
        }
        return out;
    }

    [[nodiscard]] rd_kafka_resp_err_t take_committed(rd_kafka_event_t* answer) {
        auto code = rd_kafka_event_error(answer);
        const auto* const list = rd_kafka_event_topic_partition_list(answer);
        for (int i = 0; list != nullptr && i < list->cnt; ++i) {
            const auto& one = list->elems[i];
            const auto ledger = messages_.ledgers().find({one.topic, one.partition});
            if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                code = one.err;
            } else if (code == RD_KAFKA_RESP_ERR_NO_ERROR && ledger != messages_.ledgers().end()) {
                ledger->second.committed(one.offset);
            }
        }
        return code;
    }

    [[nodiscard]] static group_member& member_of(void* opaque) noexcept {
        return *static_cast<member_events&>(*static_cast<client_events*>(opaque)).member;
    }
    static void note_error(rd_kafka_t* /*client*/, int code, const char* text, void* opaque) {
        member_of(opaque).events_.note(static_cast<rd_kafka_resp_err_t>(code), text);
    }
    static void rebalance(rd_kafka_t* /*client*/, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions,
                          void* opaque) {
        auto& member = member_of(opaque);
        if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
            member.assign(partitions);
        } else {
            member.revoke(partitions);
        }
    }

    [[nodiscard]] bool is_cooperative() const noexcept {
        return rd_kafka_rebalance_protocol(client_.get()) == std::string_view("COOPERATIVE");
    }

    void note(rd_kafka_error_t* failure) noexcept { has_failed_ = has_failed_ || error_handle(failure) != nullptr; }

    void assign(rd_kafka_topic_partition_list_t* partitions) noexcept {
        if (is_cooperative()) {
            note(rd_kafka_incremental_assign(client_.get(), partitions));
        } else {
            has_failed_ = rd_kafka_assign(client_.get(), partitions) != RD_KAFKA_RESP_ERR_NO_ERROR || has_failed_;
        }
        // A partition that was paused when it was revoked may still be.
        is_paused_ ? rd_kafka_pause_partitions(client_.get(), partitions)
                   : rd_kafka_resume_partitions(client_.get(), partitions);
    }

    /// The next owner begins where the last commit says. If the partitions are lost, another consumer may already have them.
    void revoke(rd_kafka_topic_partition_list_t* partitions) noexcept {
        try {
            if (rd_kafka_assignment_lost(client_.get()) == 0) {
                (void)commit(); // on failure the next owner receives these messages again
            }
            for (int i = 0; i < partitions->cnt; ++i) {
                messages_.drop({partitions->elems[i].topic, partitions->elems[i].partition});
            }
        } catch (...) {
            has_failed_ = true;
        }
        if (is_cooperative()) {
            note(rd_kafka_incremental_unassign(client_.get(), partitions));
        } else {
            has_failed_ = rd_kafka_assign(client_.get(), nullptr) != RD_KAFKA_RESP_ERR_NO_ERROR || has_failed_;
        }
    }

    std::chrono::milliseconds commit_limit_;
    unacknowledged& messages_;
    member_events events_; // before the client, which refers to it
    bool is_paused_ = false;
    bool has_failed_ = false; // a rebalance could not be carried out, so this membership is of no use
    client_handle client_;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
