// SPDX-License-Identifier: MIT
// The exchanges, queues and bindings that services need, as data. `provision.hpp` creates or checks them on a broker, and
// `definitions.hpp` prints them for the tools with which operators create them.
//
//   exchange (topic)  --pattern-->  queue (quorum)  --rejected-->  dead-letter exchange (direct)  -->  queue.dlq (quorum)
//
// A dead-letter queue gets what is set aside, because it can never be stored; what was delivered `delivery_limit` times without
// an acknowledgement; and what expires in the queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/names.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

/// A queue, and the topics it takes.
struct listener {
    std::string queue{};
    std::vector<std::string> patterns{}; ///< words joined by dots; `*` is any word, `#` any number of words
    /// Only one consumer at a time receives from the queue, so that messages of a lane stay in order when several consumers
    /// are connected; another one takes over when it dies.
    bool single_active_consumer = false;
};

struct topology {
    std::string exchange{};
    std::vector<listener> listeners{};
    std::string dead_letter_exchange{}; ///< empty: the exchange's name and `.dlx`
    /// After so many deliveries without an acknowledgement a message is dead-lettered, so that one that crashes its consumers
    /// ends. Every return to the queue counts, also of messages that were sent ahead (`prefetch`) and that no consumer has
    /// looked at. An intake whose store is away gives messages back every 2.5 to 5 seconds, so that the default lasts for at
    /// least 28 days with one intake, and 2.8 days with ten that share the queue. 0: the broker's default, which is no limit
    /// before RabbitMQ 4.0 and 20 since.
    std::uint32_t delivery_limit = 1'000'000;
    /// How many messages a queue holds at most. A full queue rejects what is published to it (`nacked`), so that messages wait
    /// in the store of the sender. 0: no limit.
    std::uint64_t length_max = 0;
};

/// An argument of a queue: a text, or a number if the text is empty.
struct queue_argument {
    std::string name{};
    std::string text{};
    std::uint64_t number = 0;
    bool is_flag = false; ///< the number is a truth value
};

/// The name of a queue's dead-letter queue.
[[nodiscard]] inline std::string dead_letter_queue(std::string_view queue) { return std::string(queue) + ".dlq"; }

[[nodiscard]] inline std::string dead_letter_exchange(const topology& t) {
    return t.dead_letter_exchange.empty() ? t.exchange + ".dlx" : t.dead_letter_exchange;
}

/// The arguments of a listener's queue. Dead letters are moved at least once: none is lost if a node fails meanwhile.
[[nodiscard]] inline std::vector<queue_argument> arguments_of(const topology& t, const listener& l) {
    std::vector<queue_argument> out{{.name = "x-queue-type", .text = "quorum"},
                                    {.name = "x-dead-letter-exchange", .text = dead_letter_exchange(t)},
                                    {.name = "x-dead-letter-routing-key", .text = l.queue},
                                    {.name = "x-dead-letter-strategy", .text = "at-least-once"},
                                    {.name = "x-overflow", .text = "reject-publish"}};
    if (t.delivery_limit > 0) {
        out.push_back({.name = "x-delivery-limit", .number = t.delivery_limit});
    }
    if (t.length_max > 0) {
        out.push_back({.name = "x-max-length", .number = t.length_max});
    }
    if (l.single_active_consumer) {
        out.push_back({.name = "x-single-active-consumer", .number = 1, .is_flag = true});
    }
    return out;
}

/// The arguments of a dead-letter queue.
[[nodiscard]] inline std::vector<queue_argument> dead_letter_arguments() {
    return {{.name = "x-queue-type", .text = "quorum"}};
}

/// Throws `invalid_argument` unless a broker can have these objects: names are valid UTF-8 of at most 255 bytes, also
/// with their suffixes, each queue is there once, and the two exchanges differ.
inline void validate(const topology& t) {
    const auto refuse = [](const std::string& what) {
        throw error(error_kind::invalid_argument, "rabbitmq: topology: " + what);
    };
    const auto expect = [&](const std::string& what, const std::string& name) {
        if (const auto problem = detail::objection_to_name(name); !problem.empty()) {
            refuse("the name of " + what + ' ' + problem);
        }
        if (name.starts_with("amq.")) {
            refuse("the name of " + what + " begins with `amq.`, which RabbitMQ keeps for itself");
        }
    };
    expect("the exchange", t.exchange);
    expect("the dead-letter exchange", dead_letter_exchange(t));
    if (dead_letter_exchange(t) == t.exchange) {
        refuse("the dead-letter exchange is the exchange itself, so that a message that is set aside would be routed "
               "again: " +
               t.exchange);
    }
    std::set<std::string> queues;
    for (std::size_t i = 0; i < t.listeners.size(); ++i) {
        const auto& l = t.listeners[i];
        const auto what = "listener " + std::to_string(i);
        expect("the queue of " + what, l.queue);
        expect("the dead-letter queue of " + what, dead_letter_queue(l.queue));
        if (!queues.insert(l.queue).second || !queues.insert(dead_letter_queue(l.queue)).second) {
            refuse("the queue of " + what + ", or its dead-letter queue, is there twice: " + l.queue);
        }
        for (const auto& pattern : l.patterns) {
            if (const auto problem = detail::objection_to_name(pattern); !problem.empty()) {
                refuse("a pattern of " + what + ' ' + problem);
            }
        }
    }
}

/// What a service does.
enum class service : unsigned char { publishes, consumes, both };

/// Regular expressions, as RabbitMQ has them: the names of the objects that a user may configure, write and read.
struct permissions {
    std::string configure{};
    std::string write{};
    std::string read{};
};

/// A regular expression that matches these names and no others; without names, only the empty one.
[[nodiscard]] inline std::string exactly(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& name : names) {
        out += out.empty() ? "" : "|";
        for (const char c : name) {
            const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                  c == '_' || static_cast<unsigned char>(c) >= 0x80;
            out += is_plain ? std::string(1, c) : std::string{'\\', c};
        }
    }
    return out.empty() ? "^$" : "^(" + out + ")$";
}

/// The least that a service needs: it configures nothing, writes to the exchange and reads the queues.
[[nodiscard]] inline permissions least_permissions(const topology& t, service does = service::both) {
    validate(t);
    std::vector<std::string> queues;
    for (const auto& l : t.listeners) {
        queues.push_back(l.queue);
    }
    return {.configure = exactly({}),
            .write = exactly(does == service::consumes ? std::vector<std::string>{} : std::vector{t.exchange}),
            .read = exactly(does == service::publishes ? std::vector<std::string>{} : queues)};
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
