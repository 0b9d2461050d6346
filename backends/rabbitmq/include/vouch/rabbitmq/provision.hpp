// SPDX-License-Identifier: MIT
// Creates a topology on a broker, or checks that it is there. `declare` is for development and for tests: it needs a user who
// may configure. `verify` is for services, whose users may not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/connection.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/rabbitmq/detail/target.hpp>
#include <vouch/rabbitmq/options.hpp>
#include <vouch/rabbitmq/topology.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

namespace detail {

class declarer {
  public:
    explicit declarer(const connection_options& to) : connection_(target(to)) {}

    void exchange(const std::string& name, const char* type) {
        amqp_exchange_declare(connection_.state(), connection::channel, bytes_of(name), bytes_of(type), 0, 1, 0, 0,
                              none);
        connection_.expect_reply("declare exchange " + name);
    }
    void queue(const std::string& name, const std::vector<queue_argument>& arguments) {
        std::vector<amqp_table_entry_t> fields;
        for (const auto& one : arguments) {
            fields.push_back(text_field(one.name, one.text));
            if (one.is_flag) {
                fields.back() = bool_field(one.name, one.number != 0);
            } else if (one.text.empty()) {
                fields.back().value.kind = AMQP_FIELD_KIND_I64;
                fields.back().value.value.i64 = static_cast<std::int64_t>(one.number);
            }
        }
        const amqp_table_t table{static_cast<int>(fields.size()), fields.data()};
        amqp_queue_declare(connection_.state(), connection::channel, bytes_of(name), 0, 1, 0, 0, table);
        connection_.expect_reply("declare queue " + name);
    }
    void bind(const std::string& queue, const std::string& exchange, const std::string& key) {
        amqp_queue_bind(connection_.state(), connection::channel, bytes_of(queue), bytes_of(exchange), bytes_of(key),
                        none);
        connection_.expect_reply("bind queue " + queue);
    }

    /// Whether it exists.
    [[nodiscard]] bool has_exchange(const std::string& name) {
        amqp_exchange_declare(connection_.state(), connection::channel, bytes_of(name), bytes_of("topic"), 1, 1, 0, 0,
                              none);
        return is_there("check exchange " + name);
    }
    [[nodiscard]] bool has_queue(const std::string& name) {
        amqp_queue_declare(connection_.state(), connection::channel, bytes_of(name), 1, 1, 0, 0, none);
        return is_there("check queue " + name);
    }

  private:
    static constexpr amqp_table_t none{0, nullptr};

    [[nodiscard]] bool is_there(const std::string& doing) {
        const int code = connection_.refusal(doing);
        if (code != 0 && code != AMQP_NOT_FOUND) {
            throw error_of_reply(meaning_of(code), doing);
        }
        return code == 0;
    }

    connection connection_;
};

} // namespace detail

/// Creates what is missing. Throws `invalid_argument` if an object exists with other arguments, and `read_only` if the user
/// may not configure.
inline void declare(const connection_options& to, const topology& t) {
    validate(t);
    detail::declarer broker(to);
    const auto dead = dead_letter_exchange(t);
    broker.exchange(t.exchange, "topic");
    broker.exchange(dead, "direct");
    for (const auto& l : t.listeners) {
        broker.queue(dead_letter_queue(l.queue), dead_letter_arguments());
        broker.bind(dead_letter_queue(l.queue), dead, l.queue);
        broker.queue(l.queue, arguments_of(t, l));
        for (const auto& pattern : l.patterns) {
            broker.bind(l.queue, t.exchange, pattern);
        }
    }
}

/// Throws one `invalid_argument` that names every exchange and queue that does not exist. It needs no permission, and changes
/// nothing. It cannot see bindings: a message that no queue takes is refused when it is published.
inline void verify(const connection_options& to, const topology& t) {
    validate(t);
    detail::declarer broker(to);
    std::string missing;
    const auto note = [&](bool is_there, std::string_view what, const std::string& name) {
        if (!is_there) {
            missing.append(missing.empty() ? "" : ", ").append(what).append(name);
        }
    };
    const auto dead = dead_letter_exchange(t);
    note(broker.has_exchange(t.exchange), "exchange ", t.exchange);
    note(broker.has_exchange(dead), "exchange ", dead);
    for (const auto& l : t.listeners) {
        note(broker.has_queue(l.queue), "queue ", l.queue);
        note(broker.has_queue(dead_letter_queue(l.queue)), "queue ", dead_letter_queue(l.queue));
    }
    if (!missing.empty()) {
        throw error(error_kind::invalid_argument,
                    "rabbitmq: verify: the broker lacks " + missing +
                        "; an operator creates them, for instance with what definitions_json prints",
                    {.code = AMQP_NOT_FOUND});
    }
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
