// SPDX-License-Identifier: MIT
// Receives messages from a queue of RabbitMQ: a model of `vouch::consumer`. The broker sends at most `prefetch` messages ahead;
// what is not acknowledged is delivered again. To keep the order, `give_back` and `cancel` also return what has arrived and
// was not received.
//
// Codes of messages that cannot be read: no_message_id, unreadable_headers, message_too_large.
//
// Used by one thread at a time. The broker ends a connection that is silent for twice the heartbeat, so call `receive`, or
// acknowledge, more often than that.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/back_off.hpp>
#include <vouch/rabbitmq/detail/connection.hpp>
#include <vouch/rabbitmq/detail/incoming.hpp>
#include <vouch/rabbitmq/detail/replies.hpp>
#include <vouch/rabbitmq/detail/target.hpp>
#include <vouch/rabbitmq/detail/unsettled.hpp>
#include <vouch/rabbitmq/options.hpp>
#include <vouch/relay/consumer.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

class consumer {
  public:
    /// Throws `invalid_argument` if an option is not valid. Connects at the first `receive`.
    explicit consumer(consumer_options options)
        : options_(std::move(options)), target_(options_.connection), back_off_(target_),
          incoming_(options_.queue, options_.message_size_max) {
        detail::expect_name("queue", options_.queue);
        detail::expect_name("tag", options_.tag + "-0000000000"); // with room for a number
        if (options_.prefetch == 0) {
            detail::refuse_option("prefetch", "is 0; it must be at least 1");
        }
        if (options_.message_size_max == 0) {
            detail::refuse_option("message_size_max", "is 0; it must be at least 1");
        }
    }
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    /// What was received and not acknowledged is delivered again.
    ~consumer() = default;

    /// See `vouch::consumer`. Making a connection takes up to `connect_limit`, also if `at_most` is shorter. Throws `io` if the
    /// broker does not answer, if the connection is lost, and if the queue does not exist or is deleted; `invalid_argument` if
    /// the broker does not accept the user or the virtual host; `read_only` if the user may not read the queue.
    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        constexpr duration longest = std::chrono::hours{24};
        const auto end = steady::now() + std::clamp(at_most, duration::zero(), longest);
        if (is_cancelled_ || limit == 0) {
            if (drain(0) == io::lost) { // so that the connection stays alive
                lose();
            }
            return {};
        }
        while (arrived_.empty()) {
            if (stop.stop_requested() || !start(end, stop)) {
                return {};
            }
            const auto how = step(std::min(end, steady::now() + patience));
            if (how == io::lost) {
                lose_and_throw();
            }
            if (how == io::nothing && steady::now() >= end) {
                return {};
            }
        }
        if (drain(limit) == io::lost) {
            lose_and_throw();
        }
        std::vector<received> out;
        for (; !arrived_.empty() && out.size() < limit; arrived_.pop_front()) {
            out.push_back(std::move(arrived_.front()));
        }
        return out;
    }

    /// Never throws because of the broker: what it does not learn, it delivers again.
    void acknowledge(std::span<const received> some) { settle(unsettled_.select(some), detail::fate::acknowledged); }

    /// Returns the messages to the queue, and those that have arrived and were not received: they come again before others, in
    /// the order of their arrival. If all messages that were received are settled, the order is certain; so acknowledge the
    /// others of a batch first.
    void give_back(std::span<const received> some) {
        if (!unsettled_.select(some).empty()) {
            return_to_queue(some);
        }
    }

    /// Moves the messages to the dead-letter exchange of the queue. Without one, the broker drops them.
    void set_aside(std::span<const received> some) { settle(unsettled_.select(some), detail::fate::dead_lettered); }

    void cancel() {
        is_cancelled_ = true;
        return_to_queue({});
    }

  private:
    using steady = detail::steady;
    using io = detail::io;
    enum class delivery : unsigned char { stopped, running, closing };
    static constexpr std::chrono::milliseconds patience{50}; // how late a request to stop may be noticed

    /// Connects and consumes if needed. Returns false if it has to wait for longer than the caller does.
    [[nodiscard]] bool start(steady::time_point end, const std::stop_token& stop) {
        while (!connection_ && steady::now() < back_off_.not_before()) {
            if (stop.stop_requested() || steady::now() >= end) {
                return false;
            }
            std::this_thread::sleep_until(std::min({back_off_.not_before(), end, steady::now() + patience}));
        }
        if (delivery_ != delivery::running) {
            try {
                connect_and_consume();
                back_off_.worked();
            } catch (const std::bad_alloc&) {
                lose();
                throw error(error_kind::full, "rabbitmq: connect: out of memory");
            } catch (const error&) {
                lose();
                back_off_.failed();
                throw;
            }
        }
        return true;
    }

    void connect_and_consume() {
        if (!connection_) {
            connection_ = std::make_unique<detail::connection>(target_);
        }
        const auto channel = detail::connection::channel;
        auto* const state = connection_->state();
        amqp_basic_qos(state, channel, 0, options_.prefetch, 0);
        connection_->expect_reply("basic.qos");
        // A new name each time: the broker may still count messages for the old one.
        tag_ = options_.tag + '-' + std::to_string(++consumes_);
        amqp_basic_consume(state, channel, detail::bytes_of(options_.queue), detail::bytes_of(tag_), 0, 0, 0,
                           amqp_table_t{0, nullptr});
        connection_->expect_reply("consume from queue " + options_.queue);
        delivery_ = delivery::running;
    }

    /// Handles what has arrived, without waiting, until `enough` messages are there.
    io drain(std::size_t enough) {
        auto how = io::done;
        while (how == io::done && connection_ && (enough == 0 || arrived_.size() < enough)) {
            how = step(steady::now());
        }
        return how;
    }

    /// Handles one frame.
    [[nodiscard]] io step(steady::time_point end) {
        amqp_frame_t frame{};
        const auto how = connection_->next(frame, end);
        if (how == io::done) {
            handle(frame);
            connection_->release();
        }
        return connection_->is_open() ? how : io::lost;
    }

    void handle(const amqp_frame_t& frame) {
        std::optional<received> complete;
        switch (frame.frame_type) {
        case AMQP_FRAME_METHOD: handle_method(frame.payload.method); break;
        case AMQP_FRAME_HEADER: complete = incoming_.header(frame); break;
        case AMQP_FRAME_BODY: complete = incoming_.body(frame); break;
        default: break;
        }
        if (complete) {
            complete->tag = unsettled_.arrived(complete->tag);
            if (!is_late_) {
                arrived_.push_back(std::move(*complete));
            } else if (delivery_ != delivery::closing) { // then it goes back by itself
                tell(unsettled_.select({&*complete, 1}), detail::fate::requeued);
            }
        }
    }

    void handle_method(const amqp_method_t& method) {
        awaited_ = method.id == awaited_ ? 0 : awaited_;
        switch (method.id) {
        case AMQP_BASIC_DELIVER_METHOD: {
            const auto& deliver = *static_cast<const amqp_basic_deliver_t*>(method.decoded);
            incoming_.begin(deliver);
            is_late_ = delivery_ != delivery::running || detail::text_of(deliver.consumer_tag) != tag_;
            break;
        }
        case AMQP_BASIC_CANCEL_METHOD:
            fault_ = error(error_kind::io, "rabbitmq: receive: the broker has ended the consumer, because queue " +
                                               options_.queue + " was deleted or its node has failed");
            connection_->lose();
            break;
        case AMQP_CHANNEL_CLOSE_METHOD:
            end_with(static_cast<const amqp_channel_close_t*>(method.decoded)->reply_code);
            break;
        case AMQP_CONNECTION_CLOSE_METHOD:
            end_with(static_cast<const amqp_connection_close_t*>(method.decoded)->reply_code);
            break;
        default: break;
        }
    }

    void end_with(int reply_code) {
        fault_ = detail::error_of_reply(detail::meaning_of_end(reply_code), "receive from queue " + options_.queue);
        connection_->lose();
    }

    /// Returns these to the queue, and all that have arrived and were not received. Nothing is delivered afterwards.
    void return_to_queue(std::span<const received> some) {
        const auto end = steady::now() + options_.connection.connect_limit;
        if (!connection_ || !(unsettled_.is_all(with_arrived(some)) ? renew_channel(end) : return_each(some, end))) {
            lose();
        }
    }

    /// These and those that have arrived and were not received.
    [[nodiscard]] std::set<std::uint64_t> with_arrived(std::span<const received> some) const {
        auto out = unsettled_.select(some);
        for (const auto& one : arrived_) {
            out.merge(unsettled_.select({&one, 1}));
        }
        return out;
    }

    /// The broker returns all messages of a channel that is closed to the queue, in order, also those on their way.
    [[nodiscard]] bool renew_channel(steady::time_point end) {
        delivery_ = delivery::closing;
        amqp_channel_close_t close{};
        close.reply_code = AMQP_REPLY_SUCCESS;
        const bool is_done = ask(AMQP_CHANNEL_CLOSE_METHOD, &close, AMQP_CHANNEL_CLOSE_OK_METHOD, end);
        delivery_ = delivery::stopped;
        unsettled_.lose();
        arrived_.clear();
        incoming_.clear();
        if (is_done) {
            try {
                connection_->open_channel();
            } catch (const error&) {
                return false;
            }
        }
        return is_done;
    }

    /// A few at a time: the broker would put many into one command, and lose their order.
    [[nodiscard]] bool return_each(std::span<const received> given, steady::time_point end) {
        if (!stop_delivery(end)) {
            return false;
        }
        const auto chosen = with_arrived(given);
        arrived_.clear();
        constexpr std::size_t few = 16;
        std::set<std::uint64_t> some;
        for (const auto tag : chosen) {
            some.insert(tag);
            if (some.size() == few || tag == *chosen.rbegin()) {
                tell(std::exchange(some, {}), detail::fate::requeued);
                if (!connection_->is_open() || !ask_queue(end)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Afterwards the broker delivers nothing more, and what it has sent has arrived.
    [[nodiscard]] bool stop_delivery(steady::time_point end) {
        if (delivery_ != delivery::running) {
            return true;
        }
        amqp_basic_cancel_t cancel{};
        cancel.consumer_tag = detail::bytes_of(tag_);
        amqp_basic_qos_t qos{};
        qos.prefetch_count = options_.prefetch;
        // A quorum queue may answer the request to cancel before it sends what it had decided to send. So ask the queue once
        // more, and then the channel, which forwards what the queue has sent.
        const bool is_done = ask(AMQP_BASIC_CANCEL_METHOD, &cancel, AMQP_BASIC_CANCEL_OK_METHOD, end) &&
                             ask_queue(end) && ask(AMQP_BASIC_QOS_METHOD, &qos, AMQP_BASIC_QOS_OK_METHOD, end);
        delivery_ = delivery::stopped;
        return is_done;
    }

    /// Waits until the queue has answered a question.
    [[nodiscard]] bool ask_queue(steady::time_point end) {
        amqp_queue_declare_t look{};
        look.queue = detail::bytes_of(options_.queue);
        look.passive = 1;
        return ask(AMQP_QUEUE_DECLARE_METHOD, &look, AMQP_QUEUE_DECLARE_OK_METHOD, end);
    }

    /// Sends a request and handles frames until its answer has come. Returns false if it does not come.
    [[nodiscard]] bool ask(amqp_method_number_t request, void* method, amqp_method_number_t answer,
                           steady::time_point end) {
        awaited_ = answer;
        auto how = connection_->send_method(request, method, end);
        while (how == io::done && awaited_ != 0) {
            how = step(end);
        }
        return how == io::done;
    }

    void settle(const std::set<std::uint64_t>& chosen, detail::fate what) {
        if (connection_ && !chosen.empty()) {
            tell(chosen, what);
            if (!connection_->is_open()) {
                lose();
            }
        }
    }

    /// If that fails, the connection is lost, and the broker delivers them again.
    void tell(const std::set<std::uint64_t>& chosen, detail::fate what) {
        const auto end = steady::now() + options_.connection.connect_limit;
        if (unsettled_.settle(*connection_, chosen, what, end) != io::done) {
            connection_->lose();
        }
    }

    void lose() noexcept {
        if (connection_) {
            connection_->lose();
        }
        connection_.reset();
        delivery_ = delivery::stopped;
        arrived_.clear();
        unsettled_.lose();
        incoming_.clear();
        fault_.reset(); // it was this connection's
    }

    [[noreturn]] void lose_and_throw() {
        const auto fault = std::exchange(fault_, std::nullopt);
        lose();
        if (fault) {
            throw error(*fault);
        }
        throw error(error_kind::io, "rabbitmq: receive: the connection to " + target_.where() + " was lost");
    }

    const consumer_options options_;
    const detail::target target_;
    detail::back_off back_off_;
    detail::incoming incoming_;
    detail::unsettled unsettled_{};
    std::deque<received> arrived_{}; // not received yet
    std::unique_ptr<detail::connection> connection_{};
    std::string tag_{};
    std::uint64_t consumes_ = 0;
    delivery delivery_ = delivery::stopped;
    bool is_late_ = false;             // the message that is arriving is for a consumer that was cancelled
    amqp_method_number_t awaited_ = 0; // the answer that `ask` waits for
    bool is_cancelled_ = false;
    std::optional<error> fault_{};
};

static_assert(vouch::consumer<consumer>);

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
