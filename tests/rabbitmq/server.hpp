// SPDX-License-Identifier: MIT
// The broker of the tests, and objects on it that no other test uses. `tests/rabbitmq/broker run` starts the broker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <vouch/rabbitmq.hpp>

#include "catch.hpp"

namespace rabbitmq_test {

using namespace std::chrono_literals;

[[nodiscard]] inline std::string variable(const char* name) {
    const char* const set = std::getenv(name);
    if (set == nullptr) {
        throw std::runtime_error(std::string(name) + " is not set; run the tests with tests/rabbitmq/broker run");
    }
    return set;
}

[[nodiscard]] inline std::string url() { return variable("VOUCH_RABBITMQ"); }
[[nodiscard]] inline std::string folder() { return variable("VOUCH_RABBITMQ_FOLDER"); }

/// A number that the broker's script wrote into a file.
[[nodiscard]] inline int number_in(const std::string& file) {
    std::ifstream in(folder() + '/' + file);
    int out = 0;
    in >> out;
    return out;
}

/// Runs `broker WHAT FOLDER MORE`. Returns how it exits.
[[nodiscard]] inline int run_broker(const std::string& what, const std::string& more = "") {
    return std::system((std::string(VOUCH_BROKER) + ' ' + what + ' ' + folder() + ' ' + more + " > /dev/null").c_str());
}

inline void broker(const std::string& what, const std::string& more = "") {
    CAPTURE(what, more);
    REQUIRE(run_broker(what, more) == 0);
}

[[nodiscard]] inline vouch::rabbitmq::connection_options here() { return {.url = url(), .connect_limit = 20s}; }

/// A name that no other test uses, and no other run on the same broker.
[[nodiscard]] inline std::string fresh(const std::string& what) {
    static std::atomic<int> last = 0;
    return what + '.' + std::to_string(getpid()) + '.' + std::to_string(++last);
}

/// Removes the objects of a topology, so that the broker restarts quickly.
inline void remove(const vouch::rabbitmq::topology& t) {
    namespace detail = vouch::rabbitmq::detail;
    try {
        const detail::connection to{detail::target(here())};
        for (const auto& l : t.listeners) {
            amqp_queue_delete(to.state(), detail::connection::channel, detail::bytes_of(l.queue), 0, 0);
            amqp_queue_delete(to.state(), detail::connection::channel,
                              detail::bytes_of(vouch::rabbitmq::dead_letter_queue(l.queue)), 0, 0);
        }
    } catch (const vouch::error&) {
        return; // a test that failed has left the broker down
    }
}

/// An exchange with one queue that takes `order.#`.
struct orders {
    vouch::rabbitmq::topology shape{.exchange = fresh("orders"),
                                    .listeners = {{.queue = fresh("billing"), .patterns = {"order.#"}}}};

    orders() { vouch::rabbitmq::declare(here(), shape); }
    explicit orders(std::uint64_t length_max, std::uint32_t delivery_limit = 1000) {
        shape.length_max = length_max;
        shape.delivery_limit = delivery_limit;
        vouch::rabbitmq::declare(here(), shape);
    }
    orders(const orders&) = delete;
    orders& operator=(const orders&) = delete;
    ~orders() { remove(shape); }

    [[nodiscard]] const std::string& queue() const { return shape.listeners[0].queue; }
    [[nodiscard]] vouch::rabbitmq::publisher_options publisher() const {
        return {.connection = here(), .exchange = shape.exchange};
    }
    [[nodiscard]] vouch::rabbitmq::consumer_options consumer() const {
        return {.connection = here(), .queue = queue()};
    }
};

[[nodiscard]] inline vouch::message message(std::string id, std::string topic = "order.paid",
                                            std::string payload = "{}") {
    vouch::message out;
    out.id = std::move(id);
    out.topic = std::move(topic);
    out.payload = std::move(payload);
    return out;
}

[[nodiscard]] inline std::vector<vouch::message> messages(std::size_t count, const std::string& topic = "order.paid",
                                                          std::size_t size = 2) {
    std::vector<vouch::message> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(message('m' + std::to_string(i), topic, std::string(size, 'x')));
    }
    return out;
}

[[nodiscard]] inline std::string text_of(const vouch::confirmation& c) {
    return std::string(name_of(c.what)) + (c.code.empty() ? "" : ' ' + c.code);
}

/// The confirmations, each different one once, in order.
[[nodiscard]] inline std::string texts_of(const std::vector<vouch::confirmation>& some) {
    std::string out;
    std::string last;
    for (const auto& one : some) {
        if (const auto text = text_of(one); text != last) {
            out += (out.empty() ? "" : ", ") + text;
            last = text;
        }
    }
    return out;
}

/// Receives until `count` messages are there, or for ten seconds.
template <class Consumer>
[[nodiscard]] std::vector<vouch::received> receive(Consumer& from, std::size_t count, bool acknowledge = false) {
    std::vector<vouch::received> out;
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (out.size() < count && std::chrono::steady_clock::now() < end) {
        auto some = from.receive(count - out.size(), 1s, {});
        if (acknowledge) {
            from.acknowledge(some);
        }
        out.insert(out.end(), some.begin(), some.end());
    }
    return out;
}

[[nodiscard]] inline std::string ids_of(const std::vector<vouch::received>& some) {
    std::string out;
    for (const auto& one : some) {
        out += (out.empty() ? "" : " ") + one.message.id;
    }
    return out;
}

/// The error that the call throws.
template <class F>
[[nodiscard]] std::optional<vouch::error> error_of(F&& f) {
    try {
        f();
    } catch (const vouch::error& e) {
        return e;
    }
    return std::nullopt;
}

/// The error is one sentence with this part, and does not show the password of the tests.
inline void expect_sentence(const std::optional<vouch::error>& e, vouch::error_kind kind, std::string_view part) {
    REQUIRE(e);
    const std::string text = e->what();
    CAPTURE(text);
    CHECK(e->kind() == kind);
    CHECK(text.rfind("rabbitmq: ", 0) == 0);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("hunter2") == std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
}

} // namespace rabbitmq_test
