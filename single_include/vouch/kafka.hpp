// SPDX-License-Identifier: MIT
// Kafka: a publisher for relays and a consumer for intakes, on librdkafka 2.0 or newer.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_KAFKA
#define VOUCH_SINGLE_HEADER_KAFKA

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/relay.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

// ---- vouch/kafka/answer.hpp
// What each error code of Kafka and of librdkafka says about a message: the only table of them. A code that is not in it
// says `unknown`, because sending again is always safe: the intake on the other side drops duplicates.

namespace vouch {
inline namespace v0 {
namespace kafka {

/// A row of the table.
struct answer {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    confirmation::kind what = confirmation::kind::unknown;
    std::string_view code{};
    /// The broker judges a whole batch of messages. The answer holds for one of them only if it was sent alone.
    bool is_of_batch = false;
    bool is_of_topic = false; ///< about the Kafka topic rather than the message
};

namespace detail {

inline constexpr auto answer_table = [] {
    using enum confirmation::kind;
    return std::to_array<answer>({
        {RD_KAFKA_RESP_ERR_NO_ERROR, confirmed, ""},

        // The message itself is wrong, and stays so.
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, refused, "invalid_record", true},

        // An operator can mend these.
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, unknown, "unknown_topic", false, true},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, unknown, "unknown_topic", false, true},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, unknown, "unknown_partition", false, true},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, unknown, "invalid_topic", false, true},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, unknown, "topic_not_authorized", false, true},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, unknown, "cluster_not_authorized"},
        {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, unknown, "cluster_not_authorized"},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, unknown, "group_not_authorized"},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR__SSL, unknown, "tls_failed"},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, unknown, "policy_violation"},
        {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, unknown, "invalid_timestamp"},
        {RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, unknown, "unsupported_by_broker"},

        // The cluster is in trouble, or too slow.
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, unknown, "brokers_unreachable"},
        {RD_KAFKA_RESP_ERR__RESOLVE, unknown, "brokers_unreachable"},
        {RD_KAFKA_RESP_ERR__TRANSPORT, unknown, "connection_lost"},
        {RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, unknown, "connection_lost"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR__ISR_INSUFF, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, unknown, "broker_storage"},
        {RD_KAFKA_RESP_ERR_INVALID_MSG, unknown, "corrupt_in_transit"},
        {RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, unknown, "quota_exceeded"},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, unknown, "queue_full"},

        // The producer cannot go on. The next call has a new one.
        {RD_KAFKA_RESP_ERR__FATAL, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__INCONSISTENT, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__FENCED, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__DESTROY, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__PURGE_QUEUE, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, unknown, "producer_failed"},
    });
}();

} // namespace detail

/// What the error says about a message; `unknown` with the code `kafka_error` if the table does not have it.
[[nodiscard]] constexpr answer answer_of(rd_kafka_resp_err_t error) noexcept {
    const auto* const found = std::find_if(detail::answer_table.begin(), detail::answer_table.end(),
                                           [&](const answer& a) { return a.error == error; });
    return found != detail::answer_table.end() ? *found : answer{error, confirmation::kind::unknown, "kafka_error"};
}

} // namespace kafka
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/handles.hpp
// Owners of librdkafka's objects.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

template <auto Destroy>
struct destroyer {
    template <class T>
    void operator()(T* object) const noexcept {
        Destroy(object);
    }
};

using conf_handle = std::unique_ptr<rd_kafka_conf_t, destroyer<rd_kafka_conf_destroy>>;
using client_handle = std::unique_ptr<rd_kafka_t, destroyer<rd_kafka_destroy>>;
using topic_handle = std::unique_ptr<rd_kafka_topic_t, destroyer<rd_kafka_topic_destroy>>;
using headers_handle = std::unique_ptr<rd_kafka_headers_t, destroyer<rd_kafka_headers_destroy>>;
using message_handle = std::unique_ptr<rd_kafka_message_t, destroyer<rd_kafka_message_destroy>>;
using error_handle = std::unique_ptr<rd_kafka_error_t, destroyer<rd_kafka_error_destroy>>;
using queue_handle = std::unique_ptr<rd_kafka_queue_t, destroyer<rd_kafka_queue_destroy>>;
using event_handle = std::unique_ptr<rd_kafka_event_t, destroyer<rd_kafka_event_destroy>>;
using partitions_handle =
    std::unique_ptr<rd_kafka_topic_partition_list_t, destroyer<rd_kafka_topic_partition_list_destroy>>;

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/options.hpp
// How a publisher and a consumer use a Kafka cluster. Every member has a usable default except the topics, which only the
// application knows.

namespace vouch {
inline namespace v0 {
namespace kafka {

/// A setting of librdkafka, by its name in librdkafka's CONFIGURATION.md, such as `security.protocol`. librdkafka checks
/// it. Settings that the promises of vouch rest on are refused. Values of settings whose names begin with `sasl.` or
/// `ssl.` are never shown in an error.
struct setting {
    std::string name{};
    std::string value{};
};

/// Messages whose topic fits the pattern go to the Kafka topic. `*` is one word and `#` any number of words.
struct route {
    std::string pattern{};
    std::string topic{};
};

/// Gets librdkafka's log lines: a level of syslog, and a text. librdkafka calls it from its own threads.
using log_function = std::function<void(int level, std::string_view text)>;

struct publisher_options {
    std::string bootstrap_servers{"localhost:9092"}; ///< HOST:PORT, joined by commas
    /// Which Kafka topic a message goes to. The most specific pattern that fits decides; of equal ones the first.
    std::vector<route> routes{};
    std::string default_topic{}; ///< for messages that fit no route; empty: they are refused as `unroutable`
    /// Asked before the routes if it is set. Returns a Kafka topic, or an empty text to let the routes decide.
    std::function<std::string(const message&)> topic_of{};
    /// How long `publish` waits in total. 10 ms to 15 minutes.
    std::chrono::milliseconds publish_limit{10'000};
    std::string client_id{"vouch"};  ///< shown in the broker's logs and metrics
    std::vector<setting> settings{}; ///< in this order
    log_function log{};              ///< none: librdkafka logs nothing
};

struct consumer_options {
    std::string bootstrap_servers{"localhost:9092"}; ///< HOST:PORT, joined by commas
    std::string group{};                             ///< the consumer group; required
    std::vector<std::string> topics{};               ///< the Kafka topics; at least one
    /// How many received messages may be unacknowledged before `receive` takes no more. At least 1.
    std::size_t unacknowledged_max = 1000;
    /// The same in bytes of payload. A single larger message is received nevertheless. At least 1.
    std::size_t unacknowledged_bytes_max = 64 * 1024 * 1024;
    /// How many KiB librdkafka fetches ahead. 1 to 2,097,151.
    std::size_t queue_kbytes = 16 * 1024;
    /// How long a commit of offsets may take, and leaving the group. 10 ms to 15 minutes.
    std::chrono::milliseconds commit_limit{10'000};
    /// Whether the Kafka key of a message that no vouch publisher has sent becomes its lane.
    bool lane_from_key = false;
    std::string client_id{"vouch"};  ///< shown in the broker's logs and metrics
    std::vector<setting> settings{}; ///< in this order
    log_function log{};              ///< none: librdkafka logs nothing
};

} // namespace kafka
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/configuration.hpp
// librdkafka's configuration, built from options. Every wrong setting is an `invalid_argument` that names the setting.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

/// A setting that applications must not change, and what they do instead.
struct owned_setting {
    std::string_view name;
    std::string_view instead;
};

/// What the client's callbacks get. It outlives the client.
struct client_events {
    log_function log{};
    rd_kafka_resp_err_t last_error = RD_KAFKA_RESP_ERR_NO_ERROR; ///< of the connections, since it was last cleared
    bool is_refused = false; ///< a broker has refused to authenticate this client, since it was last cleared

    /// Keeps the error that says most: a wrong password or certificate is a cause, unreachable brokers are its consequence,
    /// and one lost connection need not mean anything.
    void note(rd_kafka_resp_err_t error, std::string_view text) noexcept {
        if (weight(error) >= weight(last_error)) {
            last_error = error;
        }
        is_refused = is_refused || is_refusal(error, text);
    }
    void clear() noexcept {
        last_error = RD_KAFKA_RESP_ERR_NO_ERROR;
        is_refused = false;
    }

  private:
    /// librdkafka has one code for a password that is refused and for a connection that is lost meanwhile. The text of the
    /// latter has the name of an error that no broker has reported.
    [[nodiscard]] static bool is_refusal(rd_kafka_resp_err_t error, std::string_view text) noexcept {
        switch (error) {
        case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM: return true;
        case RD_KAFKA_RESP_ERR__AUTHENTICATION: return text.find("failed: Local: ") == std::string_view::npos;
        default: return false;
        }
    }
    [[nodiscard]] static int weight(rd_kafka_resp_err_t error) noexcept {
        switch (error) {
        case RD_KAFKA_RESP_ERR_NO_ERROR: return 0;
        case RD_KAFKA_RESP_ERR__TRANSPORT: return 1;
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: return 2;
        default: return 3;
        }
    }
};

class configuration {
  public:
    configuration(std::string_view who, client_events& events) : who_(who), conf_(rd_kafka_conf_new()) {
        rd_kafka_conf_set_opaque(conf_.get(), &events);
        rd_kafka_conf_set_log_cb(conf_.get(), events.log ? &log : nullptr);
    }

    void set(const std::string& name, const std::string& value) {
        std::array<char, 512> text{};
        if (rd_kafka_conf_set(conf_.get(), name.c_str(), value.c_str(), text.data(), text.size()) != RD_KAFKA_CONF_OK) {
            refuse("setting '" + name + "': " + without_secrets(text.data(), {{name, value}}));
        }
    }
    void set(const std::string& name, std::chrono::milliseconds value) { set(name, std::to_string(value.count())); }

    void set_all(const std::vector<setting>& settings, std::span<const owned_setting> owned) {
        for (const auto& one : settings) {
            const auto* const found = std::find_if(owned.data(), owned.data() + owned.size(),
                                                   [&](const auto& o) { return o.name == one.name; });
            if (found != owned.data() + owned.size()) {
                refuse("setting '" + one.name + "' cannot be changed: " + std::string(found->instead));
            }
            if (one.name.find('\0') != std::string::npos || one.value.find('\0') != std::string::npos) {
                refuse("setting '" + std::string(one.name.c_str()) + "' contains a NUL byte");
            }
            set(one.name, one.value);
            given_.push_back(one);
        }
    }

    [[nodiscard]] rd_kafka_conf_t* get() const noexcept { return conf_.get(); }

    /// librdkafka checks here how the settings fit together. It connects later, in threads of its own.
    [[nodiscard]] client_handle create(rd_kafka_type_t type) && {
        std::array<char, 512> text{};
        client_handle client(rd_kafka_new(type, conf_.get(), text.data(), text.size()));
        if (!client) {
            refuse("the settings do not fit together: " + without_secrets(text.data(), given_));
        }
        (void)conf_.release(); // the client owns it now
        return client;
    }

    [[noreturn]] void refuse(const std::string& what) const {
        throw error(error_kind::invalid_argument, "kafka: " + who_ + ": " + what);
    }

  private:
    static void log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
        auto& events = *static_cast<client_events*>(rd_kafka_opaque(client));
        try {
            events.log(level, std::string(facility) + ": " + text);
        } catch (
            ...) { // NOLINT(bugprone-empty-catch): a log must not end the program, and C cannot pass an exception on
        }
    }

    [[nodiscard]] static std::string without_secrets(std::string text, const std::vector<setting>& settings) {
        for (const auto& [name, value] : settings) {
            if (value.empty() || !(name.starts_with("sasl.") || name.starts_with("ssl."))) {
                continue;
            }
            for (auto at = text.find(value); at != std::string::npos; at = text.find(value, at)) {
                text.replace(at, value.size(), "(hidden)");
                at += std::string_view("(hidden)").size();
            }
        }
        return text;
    }

    std::string who_;
    conf_handle conf_;
    std::vector<setting> given_;
};

inline void check_between(std::string_view who, std::string_view option, std::chrono::milliseconds value) {
    if (value < std::chrono::milliseconds(10) || value > std::chrono::minutes(15)) {
        throw error(error_kind::invalid_argument, "kafka: " + std::string(who) + ": " + std::string(option) + " is " +
                                                      std::to_string(value.count()) +
                                                      " ms; it must be 10 ms to 15 minutes");
    }
}

/// What both clients set, and applications may change by a setting.
inline void set_common(configuration& conf, const std::string& bootstrap_servers, const std::string& client_id) {
    conf.set("bootstrap.servers", bootstrap_servers);
    conf.set("client.id", client_id);
    // librdkafka waits up to 10 s before it connects again, which is as long as a publish may take.
    conf.set("reconnect.backoff.max.ms", "1000");
}

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/offset_ledger.hpp
// Which messages of one partition are acknowledged, and how far its offset may be committed: to the first message that is
// delivered and not acknowledged, never beyond it. Offsets may have gaps.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

/// A delivered message of one partition.
struct ledger_place {
    std::int64_t offset = 0;
    std::uint64_t cuts = 0; ///< how often the partition had been cut by then: offsets are used again
};

class offset_ledger {
  public:
    /// The message at this offset goes to the application. Offsets grow, unless the partition was cut and begins anew:
    /// then nothing of what was delivered before can be committed any more.
    ledger_place deliver(std::int64_t offset) {
        if ((!slots_.empty() && offset <= slots_.back().offset) || (next_ && offset < *next_)) {
            slots_.clear();
            next_.reset();
            ++cuts_;
        }
        slots_.push_back({offset, false});
        return {offset, cuts_};
    }

    void acknowledge(const ledger_place& place) {
        if (place.cuts != cuts_) {
            return;
        }
        const auto offset = place.offset;
        const auto at = std::lower_bound(slots_.begin(), slots_.end(), offset,
                                         [](const slot& s, std::int64_t wanted) { return s.offset < wanted; });
        if (at == slots_.end() || at->offset != offset) {
            return;
        }
        at->is_acknowledged = true;
        while (!slots_.empty() && slots_.front().is_acknowledged) {
            next_ = slots_.front().offset + 1;
            slots_.pop_front();
        }
    }

    /// The offset of the next message to read after a restart, if it has to be committed.
    [[nodiscard]] const std::optional<std::int64_t>& to_commit() const noexcept { return next_; }
    void committed(std::int64_t next) noexcept {
        if (next_ && *next_ <= next) {
            next_.reset();
        }
    }

  private:
    struct slot {
        std::int64_t offset = 0;
        bool is_acknowledged = false;
    };
    std::deque<slot> slots_; // by offset; the first is not acknowledged
    std::optional<std::int64_t> next_;
    std::uint64_t cuts_ = 0;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/unacknowledged.hpp
// The messages that a consumer has received and that are not acknowledged. It keeps their records, because Kafka gives a
// message again only to a consumer that begins anew: what the application gives back is delivered again from here.

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

// ---- vouch/kafka/detail/group_member.hpp
// One membership in a consumer group: a client of librdkafka that is subscribed to the topics. Partitions come and go while
// it polls, in the thread that polls.

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

// ---- vouch/kafka/detail/wire.hpp
// A message as a Kafka record, and back. Id and topic are headers, the payload is the value, the lane (or else the id) is
// the key, and everything else is as `relay/properties.hpp` says.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

inline constexpr std::string_view id_header = "vouch-id";
inline constexpr std::string_view topic_header = "vouch-topic";

/// Records with the same key are in the same partition, and so in order.
[[nodiscard]] inline const std::string& key_of(const message& m) noexcept { return m.lane.empty() ? m.id : m.lane; }

/// librdkafka returns names of headers as C strings.
[[nodiscard]] inline bool can_be_sent(const message& m) noexcept {
    return std::none_of(m.headers.begin(), m.headers.end(),
                        [](const auto& header) { return header.first.find('\0') != std::string::npos; });
}

[[nodiscard]] inline headers_handle headers_of(const message& m) {
    const auto properties = properties_of(m);
    headers_handle out(rd_kafka_headers_new(properties.size() + 2));
    const auto add = [&](std::string_view name, const std::string& value) {
        rd_kafka_header_add(out.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                            static_cast<ssize_t>(value.size()));
    };
    add(id_header, m.id);
    add(topic_header, m.topic);
    for (const auto& [name, value] : properties) {
        add(name, value);
    }
    return out;
}

[[nodiscard]] inline std::string bytes_of(const void* data, std::size_t size) {
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

[[nodiscard]] inline std::string source_of(const rd_kafka_message_t& record) {
    return std::string(rd_kafka_topic_name(record.rkt)) + "/" + std::to_string(record.partition);
}

struct record_headers {
    header_list properties{};
    std::string id{};
    std::string topic{};
};

[[nodiscard]] inline record_headers read_headers(const rd_kafka_message_t& record) {
    record_headers out;
    rd_kafka_headers_t* headers = nullptr;
    if (rd_kafka_message_headers(&record, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return out; // there are none
    }
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
        if (name == id_header) {
            out.id = bytes_of(value, size);
        } else if (name == topic_header) {
            out.topic = bytes_of(value, size);
        } else {
            out.properties.emplace_back(name, bytes_of(value, size));
        }
    }
    return out;
}

/// The id of a record of a program that does not use vouch: the same each time it is delivered. The time tells it from a
/// record at the same offset of a topic that was deleted and created again.
[[nodiscard]] inline std::string foreign_id(const rd_kafka_message_t& record) {
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    const auto at = rd_kafka_message_timestamp(&record, &type);
    const auto place = source_of(record) + "/" + std::to_string(record.offset);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? place : place + "/" + std::to_string(at);
}

[[nodiscard]] inline received read_record(const rd_kafka_message_t& record, bool lane_from_key) {
    received out;
    auto headers = read_headers(record);
    out.source = source_of(record);
    out.message.payload = bytes_of(record.payload, record.len);
    const bool is_foreign = headers.id.empty();
    out.message.id = is_foreign ? foreign_id(record) : std::move(headers.id);
    out.message.topic = headers.topic.empty() ? rd_kafka_topic_name(record.rkt) : std::move(headers.topic);
    if (!read_properties(std::move(headers.properties), out.message)) {
        out.malformed = "malformed_properties";
    }
    if (is_foreign && lane_from_key && out.message.lane.empty()) {
        out.message.lane = bytes_of(record.key, record.key_len);
    }
    return out;
}

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/topic_name.hpp
// Kafka's rule for names of topics, checked before a name reaches a broker, a shell or a log.

namespace vouch {
inline namespace v0 {
namespace kafka {

inline constexpr std::size_t topic_name_max = 249; ///< bytes

/// Whether Kafka accepts the name: 1 to 249 letters, digits, dots, underscores and hyphens, but not `.` or `..`.
[[nodiscard]] constexpr bool is_topic_name(std::string_view name) noexcept {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    return !name.empty() && name.size() <= topic_name_max && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), fits);
}

namespace detail {

/// Throws `invalid_argument` that names the option. The name itself is shown only if it is harmless to print.
inline void check_topic_name(std::string_view option, std::string_view name) {
    if (is_topic_name(name)) {
        return;
    }
    throw error(error_kind::invalid_argument,
                "kafka: " + std::string(option) + " has " + std::to_string(name.size()) +
                    " bytes and is no name of a Kafka topic: use 1 to 249 letters, digits, '.', '_' and '-', and not "
                    "'.' or '..'");
}

} // namespace detail

} // namespace kafka
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/consumer.hpp
// Receives messages from Kafka topics as a member of a consumer group. An offset is committed only by `acknowledge`, and
// only up to the first message of its partition that is not acknowledged, so whatever is not acknowledged is delivered
// again after a crash, together with acknowledged messages behind it.
//
// Used by one thread at a time. Call `receive` more often than librdkafka's `max.poll.interval.ms` (5 minutes) says, or the
// group gives the partitions to other consumers.

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

// ---- vouch/kafka/detail/reports.hpp
// The delivery reports that one call waits for. Every message of a publisher has a number that no other message gets. A
// late report of an earlier call has a number outside the current range and is dropped. No pointer to a call ever reaches
// librdkafka. Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class reports {
  public:
    /// Begins to wait for the reports of `count` messages, and drops all others from now on.
    void open(std::size_t count) {
        first_ += errors_.size();
        errors_.assign(count, std::nullopt);
        waiting_ = 0;
    }

    /// What librdkafka carries with the message.
    [[nodiscard]] void* number_of(std::size_t index) const noexcept {
        return std::bit_cast<void*>(static_cast<std::uintptr_t>(first_ + index));
    }
    void sent() noexcept { ++waiting_; }

    void arrive(const void* number, rd_kafka_resp_err_t error) noexcept {
        const auto index = std::bit_cast<std::uintptr_t>(number) - first_; // of an earlier call: wraps around
        if (index < errors_.size() && !errors_[index]) {
            errors_[index] = error;
            --waiting_;
        }
    }

    [[nodiscard]] bool has_success() const noexcept {
        return std::find(errors_.begin(), errors_.end(), RD_KAFKA_RESP_ERR_NO_ERROR) != errors_.end();
    }
    [[nodiscard]] bool is_complete() const noexcept { return waiting_ == 0; }
    [[nodiscard]] const std::optional<rd_kafka_resp_err_t>& operator[](std::size_t index) const noexcept {
        return errors_[index];
    }

  private:
    std::uintptr_t first_ = 1;
    std::vector<std::optional<rd_kafka_resp_err_t>> errors_;
    std::size_t waiting_ = 0;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/producer.hpp
// One idempotent producer of librdkafka: it keeps the order of what it sends to a partition, across its own repetitions.
// Used by one thread at a time, except for librdkafka's threads, which call only the log.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

struct producer_events : client_events {
    kafka::detail::reports reports{};
};

inline constexpr auto owned_by_publisher = std::to_array<owned_setting>({
    {"bootstrap.servers", "use the option bootstrap_servers"},
    {"metadata.broker.list", "use the option bootstrap_servers"},
    {"client.id", "use the option client_id"},
    {"message.timeout.ms", "use the option publish_limit"},
    {"delivery.timeout.ms", "use the option publish_limit"},
    {"enable.idempotence", "the order of messages rests on it"},
    {"acks", "a confirmation is given only after all replicas in sync have the message"},
    {"request.required.acks", "a confirmation is given only after all replicas in sync have the message"},
    {"delivery.report.only.error", "confirmations are delivery reports"},
    {"transactional.id", "the publisher uses no transactions"},
});

class producer {
  public:
    producer(const publisher_options& options, producer_events& events) : client_(create(options, events)) {}
    producer(const producer&) = delete;
    producer& operator=(const producer&) = delete;
    ~producer() {
        // Otherwise librdkafka waits for what it has not sent.
        rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_flush(client_.get(), 100);
    }

    /// Hands the message over. If the result is no error, a report with the number follows.
    [[nodiscard]] rd_kafka_resp_err_t send(const std::string& topic, const message& m, void* number) {
        auto headers = headers_of(m);
        const auto& key = key_of(m);
        std::array<rd_kafka_vu_t, 6> parts{};
        parts[0].vtype = RD_KAFKA_VTYPE_TOPIC;
        parts[0].u.cstr = topic.c_str();
        parts[1].vtype = RD_KAFKA_VTYPE_KEY;
        parts[1].u.mem = {const_cast<char*>(key.data()), key.size()};
        parts[2].vtype = RD_KAFKA_VTYPE_VALUE;
        parts[2].u.mem = {const_cast<char*>(m.payload.data()), m.payload.size()};
        parts[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
        parts[3].u.i = RD_KAFKA_MSG_F_COPY;
        parts[4].vtype = RD_KAFKA_VTYPE_HEADERS;
        parts[4].u.headers = headers.get();
        parts[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
        parts[5].u.ptr = number;
        const error_handle failure(rd_kafka_produceva(client_.get(), parts.data(), parts.size()));
        if (failure) {
            return rd_kafka_error_code(failure.get());
        }
        (void)headers.release(); // the record owns them now
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }

    /// Serves reports. Returns when it has served some, or after `at_most`.
    void poll(std::chrono::milliseconds at_most) {
        rd_kafka_poll(client_.get(), static_cast<int>(std::max<std::int64_t>(at_most.count(), 0)));
    }

    /// Whether no message is on its way, late ones of earlier calls included.
    [[nodiscard]] bool is_idle() {
        while (rd_kafka_poll(client_.get(), 0) > 0) {
        }
        return rd_kafka_outq_len(client_.get()) == 0;
    }

    /// librdkafka remembers for minutes that a topic is missing or forbidden. The next call asks the broker again, because
    /// an operator may have mended it.
    void suspect(const std::string& topic) { suspects_.insert(topic); }
    void ask_again(std::chrono::steady_clock::time_point until) {
        for (const auto& name : std::exchange(suspects_, {})) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            const auto at_most = std::max(left / 2, std::chrono::milliseconds(1)); // the messages need time, too
            const topic_handle topic(rd_kafka_topic_new(client_.get(), name.c_str(), nullptr));
            const rd_kafka_metadata_t* answer = nullptr;
            if (rd_kafka_metadata(client_.get(), 0, topic.get(), &answer, static_cast<int>(at_most.count())) ==
                RD_KAFKA_RESP_ERR_NO_ERROR) {
                rd_kafka_metadata_destroy(answer);
            }
        }
    }

    /// The error after which this producer sends nothing any more.
    [[nodiscard]] rd_kafka_resp_err_t fatal_error() const noexcept {
        return rd_kafka_fatal_error(client_.get(), nullptr, 0);
    }

    [[nodiscard]] rd_kafka_t* handle() const noexcept { return client_.get(); }

  private:
    [[nodiscard]] static client_handle create(const publisher_options& options, producer_events& events) {
        using namespace std::chrono_literals;
        configuration conf("publisher", events);
        set_common(conf, options.bootstrap_servers, options.client_id);
        conf.set("enable.idempotence", "true");
        conf.set("acks", "all");
        conf.set("message.timeout.ms", options.publish_limit);
        conf.set("request.timeout.ms", options.publish_limit);
        // A broker that does not answer must not hold up more than one call.
        conf.set("socket.timeout.ms", std::clamp<std::chrono::milliseconds>(options.publish_limit, 1s, 60s));
        // How long a topic that is not there may still be in creation: it leaves time to say which topic is missing.
        conf.set("topic.metadata.propagation.max.ms",
                 std::min<std::chrono::milliseconds>(options.publish_limit / 2, 30s));
        conf.set("linger.ms", "0"); // a call hands over all its messages before it waits
        // The largest entry of vouch fits, so that the broker decides.
        conf.set("message.max.bytes", std::to_string(1536 * 1024));
        conf.set("partitioner", "murmur2_random"); // the same as in Kafka's own clients
        conf.set_all(options.settings, owned_by_publisher);
        rd_kafka_conf_set_dr_msg_cb(conf.get(), &report);
        rd_kafka_conf_set_error_cb(conf.get(), &note_error);
        return std::move(conf).create(RD_KAFKA_PRODUCER);
    }

    [[nodiscard]] static producer_events& events_of(void* opaque) noexcept {
        return static_cast<producer_events&>(*static_cast<client_events*>(opaque));
    }
    static void report(rd_kafka_t* /*client*/, const rd_kafka_message_t* record, void* opaque) {
        events_of(opaque).reports.arrive(record->_private, record->err);
    }
    static void note_error(rd_kafka_t* /*client*/, int error, const char* text, void* opaque) {
        events_of(opaque).note(static_cast<rd_kafka_resp_err_t>(error), text);
    }

    client_handle client_;
    std::set<std::string> suspects_;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/topic_map.hpp
// Which Kafka topic a message goes to. Immutable after construction, so any number of threads may ask it.

namespace vouch {
inline namespace v0 {
namespace kafka {

class topic_map {
  public:
    /// Throws `invalid_argument` if a pattern or a name of a Kafka topic is not valid.
    explicit topic_map(const publisher_options& options)
        : topic_of_(options.topic_of), default_topic_(options.default_topic) {
        for (const auto& [pattern, topic] : options.routes) {
            detail::check_topic_name("the topic of route '" + topic_pattern(pattern).text() + "'", topic);
            routes_.emplace_back(topic_pattern(pattern), topic);
        }
        std::stable_sort(routes_.begin(), routes_.end(),
                         [](const auto& a, const auto& b) { return a.first.specificity() < b.first.specificity(); });
        if (!default_topic_.empty()) {
            detail::check_topic_name("default_topic", default_topic_);
        }
    }

    /// The Kafka topic for the message; empty: no route fits. The function of the options may return any text, so the
    /// caller checks the name.
    [[nodiscard]] std::string find(const message& m) const {
        if (topic_of_) {
            if (auto chosen = topic_of_(m); !chosen.empty()) {
                return chosen;
            }
        }
        for (const auto& [pattern, topic] : routes_) {
            if (pattern.matches(m.topic)) {
                return topic;
            }
        }
        return default_topic_;
    }

    /// Every Kafka topic that the routes and the default name, each once, sorted.
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& [pattern, topic] : routes_) {
            out.push_back(topic);
        }
        if (!default_topic_.empty()) {
            out.push_back(default_topic_);
        }
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }

  private:
    std::vector<std::pair<topic_pattern, std::string>> routes_; // the most specific first
    std::function<std::string(const message&)> topic_of_;
    std::string default_topic_;
};

} // namespace kafka
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/publish_call.hpp
// One call of `publish`: sends the messages, waits for their reports until a point in time, and answers for each. What has
// no report by then is `unknown`; its late report is dropped by the next call.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class publish_call {
  public:
    using deadline = std::chrono::steady_clock::time_point;

    publish_call(std::span<const message> messages, const topic_map& topics, kafka::detail::producer& to,
                 producer_events& events, deadline until)
        : messages_(messages), topics_(topics), producer_(to), events_(events), until_(until),
          topic_of_(messages.size()), answers_(messages.size()) {}

    [[nodiscard]] std::vector<confirmation> run() && {
        events_.clear();
        route_all();
        producer_.ask_again(until_);
        const bool was_idle = producer_.is_idle();
        const auto sent = send_all();
        wait();
        const bool is_alone = was_idle && sent == 1;
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            if (is_open(i)) {
                take(i, i);
            }
        }
        if (!is_alone) {
            judge_alone();
        }
        return std::move(confirmations_);
    }

  private:
    void route_all() {
        confirmations_.resize(messages_.size());
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            topic_of_[i] = topics_.find(messages_[i]);
            if (messages_[i].id.empty()) { // its receiver would take it for a message of another program
                confirmations_[i] = {confirmation::kind::refused, "invalid_message"};
            } else if (topic_of_[i].empty()) {
                confirmations_[i] = {confirmation::kind::refused, "unroutable"};
            } else if (!is_topic_name(topic_of_[i])) {
                confirmations_[i] = {confirmation::kind::refused, "invalid_topic"};
            } else if (!can_be_sent(messages_[i])) {
                confirmations_[i] = {confirmation::kind::refused, "invalid_header_name"};
            }
        }
    }

    /// Whether the message has no answer yet.
    [[nodiscard]] bool is_open(std::size_t i) const noexcept {
        return confirmations_[i].what == confirmation::kind::unknown && confirmations_[i].code.empty();
    }

    /// Returns how many were handed over.
    std::size_t send_all() {
        std::size_t sent = 0;
        events_.reports.open(messages_.size());
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            if (!is_open(i)) {
                continue;
            }
            const auto error = send(i, i);
            if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
                ++sent;
                continue;
            }
            const auto answer = answer_of(error);
            confirmations_[i] = {answer.what, std::string(answer.code)};
            if (answer.is_of_topic) {
                producer_.suspect(topic_of_[i]);
            }
            if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL || error == RD_KAFKA_RESP_ERR__FATAL) {
                break; // messages that follow must not overtake this one
            }
        }
        return sent;
    }

    /// Hands the message over, and waits until there is room for it.
    [[nodiscard]] rd_kafka_resp_err_t send(std::size_t i, std::size_t place) {
        auto error = producer_.send(topic_of_[i], messages_[i], events_.reports.number_of(place));
        while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL && left() > std::chrono::milliseconds::zero()) {
            producer_.poll(slice());
            error = producer_.send(topic_of_[i], messages_[i], events_.reports.number_of(place));
        }
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            events_.reports.sent();
        }
        return error;
    }

    void wait() {
        do {
            producer_.poll(events_.reports.is_complete() ? std::chrono::milliseconds::zero() : slice());
            check_password();
        } while (!events_.reports.is_complete() && left() > std::chrono::milliseconds::zero() &&
                 producer_.fatal_error() == RD_KAFKA_RESP_ERR_NO_ERROR);
    }

    /// A wrong password stays wrong. librdkafka would try again until the end of the call.
    void check_password() const {
        if (!events_.is_refused || events_.reports.has_success()) {
            return;
        }
        throw error(
            error_kind::invalid_argument,
            "kafka: publish: the broker refuses to authenticate this client; check the settings sasl.* and ssl.*",
            {.code = events_.last_error, .text_code = "not_authenticated"});
    }

    /// The answer for message `i`, whose report is in `place`.
    void take(std::size_t i, std::size_t place) {
        auto error = events_.reports[place].value_or(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
        if (error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && events_.last_error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            error = events_.last_error; // why it has timed out
        }
        if (const auto fatal = producer_.fatal_error();
            fatal != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            error = fatal;
        }
        answers_[i] = answer_of(error);
        confirmations_[i] = {answers_[i].what, std::string(answers_[i].code)};
        if (answers_[i].is_of_topic) {
            producer_.suspect(topic_of_[i]);
        }
        // An error of the connection or of the producer is no answer of the broker to this message.
        if (answers_[i].what != confirmation::kind::unknown && !events_.reports[place]) {
            confirmations_[i] = {confirmation::kind::unknown, "producer_failed"};
        }
    }

    /// The broker refuses batches as a whole. Each message of a refused batch is sent again alone, so that the answer is
    /// about this message. One that a later message of the same key has overtaken is not: it would change their order.
    void judge_alone() {
        std::unordered_set<std::string_view> overtaken;
        std::vector<std::size_t> again;
        for (std::size_t i = messages_.size(); i-- > 0;) {
            if (confirmations_[i].what == confirmation::kind::confirmed) {
                overtaken.insert(key_of(messages_[i]));
            } else if (answers_[i].is_of_batch) {
                confirmations_[i] = {confirmation::kind::unknown, "batch_refused"};
                if (!overtaken.contains(key_of(messages_[i]))) {
                    again.push_back(i);
                }
            }
        }
        std::reverse(again.begin(), again.end());
        for (const auto i : again) {
            if (left() > std::chrono::milliseconds::zero() && producer_.is_idle()) {
                send_alone(i);
            }
        }
    }

    void send_alone(std::size_t i) {
        events_.reports.open(1);
        if (send(i, 0) == RD_KAFKA_RESP_ERR_NO_ERROR) {
            wait();
            take(i, 0);
        }
    }

    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    }
    [[nodiscard]] std::chrono::milliseconds slice() const {
        return std::min<std::chrono::milliseconds>(left(), std::chrono::milliseconds(100));
    }

    std::span<const message> messages_;
    const topic_map& topics_;
    kafka::detail::producer& producer_;
    producer_events& events_;
    deadline until_;
    std::vector<std::string> topic_of_;
    std::vector<answer> answers_;
    std::vector<confirmation> confirmations_;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/detail/turn.hpp
// Lets one thread at a time do something, and limits how long the others wait for it.

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class turn {
  public:
    using deadline = std::chrono::steady_clock::time_point;

    /// Holds the turn until the end of the scope, unless it was not free in time.
    class hold {
      public:
        hold(turn& of, deadline until) : of_(of) {
            std::unique_lock lock(of_.mutex_);
            is_held_ = of_.freed_.wait_until(lock, until, [&] { return !of_.is_taken_; });
            of_.is_taken_ = of_.is_taken_ || is_held_;
        }
        hold(const hold&) = delete;
        hold& operator=(const hold&) = delete;
        ~hold() {
            if (is_held_) {
                const std::lock_guard lock(of_.mutex_);
                of_.is_taken_ = false;
                of_.freed_.notify_one();
            }
        }
        [[nodiscard]] explicit operator bool() const noexcept { return is_held_; }

      private:
        turn& of_;
        bool is_held_ = false;
    };

  private:
    std::mutex mutex_;
    std::condition_variable freed_;
    bool is_taken_ = false;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/publisher.hpp
// Sends messages to Kafka through an idempotent producer of librdkafka, and answers after all replicas in sync have them.
//
// The key of a record is the message's lane, else its id, so messages of a lane are in one partition, in order. The producer
// keeps that order when it repeats a request. After an error that ends a producer, the next call makes a new one: a message
// of the old one may then arrive late, as a duplicate of one that was sent again. The intake on the other side drops it.
//
// Any number of threads may call `publish`. Calls take turns; the wait for a turn counts as a wait for the broker.

namespace vouch {
inline namespace v0 {
namespace kafka {

class publisher {
  public:
    /// Throws `invalid_argument` if an option or a setting is wrong. Does not wait for a connection.
    explicit publisher(publisher_options options) : options_(std::move(options)), topics_(options_) {
        detail::check_between("publisher", "publish_limit", options_.publish_limit);
        events_.log = options_.log;
        producer_.emplace(options_, events_);
    }
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;

    /// See the concept `vouch::publisher`. Codes are those of `answer.hpp`, and of this list:
    ///
    /// unroutable            refused: no route fits the topic
    /// invalid_topic         refused: `topic_of` returned no valid name of a Kafka topic
    /// invalid_header_name   refused: the name of a header contains a NUL byte
    /// batch_refused         unknown: the broker refused several messages together, and there was no time to ask for each
    /// publisher_busy        unknown: calls of other threads took all the time
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        const auto until = std::chrono::steady_clock::now() + options_.publish_limit;
        const detail::turn::hold turn(turn_, until);
        if (!turn) {
            return std::vector<confirmation>(messages.size(), {confirmation::kind::unknown, "publisher_busy"});
        }
        if (!producer_) {
            producer_.emplace(options_, events_);
        }
        auto out = detail::publish_call(messages, topics_, *producer_, events_, until).run();
        if (producer_->fatal_error() != RD_KAFKA_RESP_ERR_NO_ERROR) {
            producer_.reset();
        }
        return out;
    }

    /// librdkafka's producer, for statistics and tests; null after an error that has ended it. Do not use it during a call
    /// of `publish`, and do not poll it.
    [[nodiscard]] rd_kafka_t* handle() const noexcept { return producer_ ? producer_->handle() : nullptr; }

  private:
    publisher_options options_;
    topic_map topics_;
    detail::producer_events events_; // before the producer, which refers to it
    detail::turn turn_;
    std::optional<detail::producer> producer_;
};

static_assert(vouch::publisher<publisher>);

} // namespace kafka
} // namespace v0
} // namespace vouch

// ---- vouch/kafka/topics.hpp
// Kafka topics as data, and the commands that create them. A publisher creates no topics: how many partitions a topic has
// and how it is replicated is a decision, and a cluster that creates topics by itself would decide otherwise.

namespace vouch {
inline namespace v0 {
namespace kafka {

struct topic {
    std::string name{};
    int partitions = 6;         ///< at most this many consumers of a group work at the same time
    int replication_factor = 3; ///< on how many brokers each partition is kept
    int insync_min = 2;         ///< how many of them must have a message before it is confirmed
    /// How long messages are kept, whether they have been read or not. A consumer that stops for longer loses messages.
    std::chrono::milliseconds retention = std::chrono::hours(7 * 24);
    std::size_t message_max_bytes = 0; ///< 0: as the broker is configured, by default 1,048,588
};

/// One topic for each that the routes and the default name, sorted by name, each with the settings of `like`.
[[nodiscard]] inline std::vector<topic> topics_of(const publisher_options& options, const topic& like = {}) {
    std::vector<topic> out;
    for (auto& name : topic_map(options).names()) {
        out.push_back(like);
        out.back().name = std::move(name);
    }
    return out;
}

struct create_options {
    std::string bootstrap_servers{"localhost:9092"};
    std::string tool{"kafka-topics.sh"}; ///< the path of Kafka's tool
};

namespace detail {

/// One word of a POSIX shell, whatever it contains.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

inline void check(const topic& t) {
    check_topic_name("the name of a topic", t.name);
    const auto refuse = [&](const std::string& what) {
        throw error(error_kind::invalid_argument, "kafka: topic '" + t.name + "': " + what);
    };
    if (t.partitions < 1 || t.replication_factor < 1 || t.replication_factor > 32767) {
        refuse("has " + std::to_string(t.partitions) + " partitions and the replication factor " +
               std::to_string(t.replication_factor) + "; both must be at least 1, the factor at most 32767");
    }
    if (t.insync_min < 1 || t.insync_min > t.replication_factor) {
        refuse("insync_min is " + std::to_string(t.insync_min) + "; it must be 1 to the replication factor, " +
               std::to_string(t.replication_factor));
    }
    if (t.retention.count() < 1 && t.retention.count() != -1) {
        refuse("retention is " + std::to_string(t.retention.count()) +
               " ms; it must be at least 1 ms, or -1 ms to keep messages for ever");
    }
    if (t.message_max_bytes > std::size_t{2'147'483'647}) {
        refuse("message_max_bytes is " + std::to_string(t.message_max_bytes) + "; it must be at most 2147483647");
    }
}

/// Kafka's metrics write dots as underscores, so Kafka refuses names that differ only in these.
[[nodiscard]] inline std::string metric_name(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

} // namespace detail

/// The command that creates one topic unless it exists, for a POSIX shell, without a line end. Throws `invalid_argument` if
/// the name or a number is not valid.
[[nodiscard]] inline std::string create_command(const topic& t, const create_options& with = {}) {
    detail::check(t);
    auto out = detail::shell_word(with.tool) + " --create --if-not-exists --bootstrap-server " +
               detail::shell_word(with.bootstrap_servers) + " --topic " + detail::shell_word(t.name) +
               " --partitions " + std::to_string(t.partitions) + " --replication-factor " +
               std::to_string(t.replication_factor) + " --config min.insync.replicas=" + std::to_string(t.insync_min) +
               " --config retention.ms=" + std::to_string(t.retention.count());
    if (t.message_max_bytes != 0) {
        out += " --config max.message.bytes=" + std::to_string(t.message_max_bytes);
    }
    return out;
}

/// The commands for all of them, one line each. Throws `invalid_argument` also if two names are the same to Kafka.
[[nodiscard]] inline std::string create_commands(std::span<const topic> topics, const create_options& with = {}) {
    std::string out;
    for (std::size_t i = 0; i < topics.size(); ++i) {
        for (const auto& other : topics.first(i)) {
            if (detail::metric_name(other.name) == detail::metric_name(topics[i].name)) {
                throw error(error_kind::invalid_argument, "kafka: topics '" + other.name + "' and '" + topics[i].name +
                                                              "' are the same to Kafka, which writes '.' as '_'");
            }
        }
        out += create_command(topics[i], with) + "\n";
    }
    return out;
}

} // namespace kafka
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_KAFKA
