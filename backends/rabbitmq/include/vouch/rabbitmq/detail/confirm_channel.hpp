// SPDX-License-Identifier: MIT
// A connection whose broker confirms what is published on it. A batch is sent without waiting for answers, which are read
// meanwhile and afterwards. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/connection.hpp>
#include <vouch/rabbitmq/detail/flight.hpp>
#include <vouch/rabbitmq/detail/outgoing.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// How a batch ended.
enum class ending : unsigned char {
    answered,  ///< every message has an answer
    timed_out, ///< some have none; the connection is lost, because late answers would be taken for those of others
    lost,      ///< some have none, because the connection is lost
    closed,    ///< some have none, because the broker has closed the channel; it is open again
    unsent,    ///< the connection was lost before anything was sent
};

/// What a batch consists of.
struct batch {
    std::span<const message> messages;
    std::span<const std::size_t> chosen; ///< the indexes of those to send, in order
    std::string_view exchange;
    time_point now;
    std::vector<confirmation>& answers; ///< one per message
};

class confirm_channel {
  public:
    explicit confirm_channel(const target& to) : connection_(to) { select(); }

    /// Whether the connection works, as far as the broker has said until now.
    [[nodiscard]] bool is_alive() {
        drain(nullptr);
        return connection_.is_open() && close_code_ == 0;
    }

    /// If it throws, the connection is lost: late answers would be taken for those of others.
    [[nodiscard]] ending publish(const batch& what, steady::time_point end) {
        try {
            return publish_batch(what, end);
        } catch (...) {
            connection_.lose();
            throw;
        }
    }

    [[nodiscard]] bool is_blocked() const noexcept { return is_blocked_; }
    /// Why the broker closed the channel last.
    [[nodiscard]] int closed_with() const noexcept { return closed_with_; }
    [[nodiscard]] const std::string& closed_text() const noexcept { return closed_text_; }

  private:
    [[nodiscard]] ending publish_batch(const batch& what, steady::time_point end) {
        flight sent(next_, what.messages, what.answers, what.chosen.size());
        bool is_begun = false;
        connection_.cork(true);
        auto how = send_all(what, end, sent, is_begun);
        connection_.cork(false);
        while (how == io::done && sent.open() > 0 && close_code_ == 0) {
            how = step(&sent, end);
        }
        if (how == io::done && close_code_ == 0) {
            return ending::answered;
        }
        if (how == io::done && open_again()) {
            return ending::closed;
        }
        if (how == io::nothing) {
            drain(&sent); // while it waited for room, nothing was read
        }
        connection_.lose();
        if (how == io::done) {
            return ending::lost;
        }
        return !is_begun && how == io::lost ? ending::unsent : how == io::lost ? ending::lost : ending::timed_out;
    }

    void select() {
        close_code_ = 0;
        next_ = 1;
        amqp_confirm_select(connection_.state(), connection::channel);
        connection_.expect_reply("confirm.select");
    }

    [[nodiscard]] bool open_again() {
        try {
            connection_.reopen_channel();
            select();
            return true;
        } catch (const error&) {
            return false;
        }
    }

    [[nodiscard]] io send_all(const batch& what, steady::time_point end, flight& sent, bool& is_begun) {
        constexpr std::size_t between_reads = 64;
        for (const auto index : what.chosen) {
            outgoing one(what.messages[index], what.exchange, what.now, connection_.frame_size());
            if (const auto how = one.send(connection_, end, is_begun); how != io::done) {
                return how;
            }
            ++next_;
            sent.sent(index);
            if (sent.size() % between_reads == 0) {
                drain(&sent);
                if (!connection_.is_open() || close_code_ != 0) {
                    return connection_.is_open() ? io::done : io::lost;
                }
            }
        }
        return io::done;
    }

    /// Handles what has arrived, without waiting.
    void drain(flight* sent) {
        while (step(sent, steady::now()) == io::done) {
        }
    }

    /// Handles one frame.
    [[nodiscard]] io step(flight* sent, steady::time_point end) {
        amqp_frame_t frame{};
        const auto how = connection_.next(frame, end);
        if (how != io::done) {
            return how;
        }
        if (frame.frame_type == AMQP_FRAME_METHOD) {
            handle(frame.payload.method, sent);
        } else if (frame.frame_type == AMQP_FRAME_HEADER) {
            const auto& properties = *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
            if (sent == nullptr || !sent->returned(text_of(properties.message_id), returned_topic_)) {
                connection_.lose();
            }
        }
        connection_.release();
        return connection_.is_open() ? io::done : io::lost;
    }

    void handle(const amqp_method_t& method, flight* sent) {
        switch (method.id) {
        case AMQP_BASIC_ACK_METHOD:
            if (sent != nullptr) {
                const auto& ack = *static_cast<const amqp_basic_ack_t*>(method.decoded);
                sent->acknowledged(ack.delivery_tag, ack.multiple != 0);
            }
            break;
        case AMQP_BASIC_NACK_METHOD:
            if (sent != nullptr) {
                const auto& nack = *static_cast<const amqp_basic_nack_t*>(method.decoded);
                sent->rejected(nack.delivery_tag, nack.multiple != 0);
            }
            break;
        case AMQP_BASIC_RETURN_METHOD:
            returned_topic_ = text_of(static_cast<const amqp_basic_return_t*>(method.decoded)->routing_key);
            break;
        case AMQP_CHANNEL_CLOSE_METHOD: {
            const auto& close = *static_cast<const amqp_channel_close_t*>(method.decoded);
            close_code_ = close.reply_code;
            closed_with_ = close.reply_code;
            closed_text_ = text_of(close.reply_text);
            break;
        }
        case AMQP_CONNECTION_CLOSE_METHOD: connection_.lose(); break;
        case AMQP_CONNECTION_BLOCKED_METHOD: is_blocked_ = true; break;
        case AMQP_CONNECTION_UNBLOCKED_METHOD: is_blocked_ = false; break;
        default: break;
        }
    }

    connection connection_;
    std::uint64_t next_ = 1; // the number of the next message on this channel
    int close_code_ = 0;     // not 0: the channel is closed
    int closed_with_ = 0;
    std::string closed_text_{};
    std::string returned_topic_{}; // of the message that is coming back
    bool is_blocked_ = false;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
