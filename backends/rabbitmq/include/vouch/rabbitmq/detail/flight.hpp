// SPDX-License-Identifier: MIT
// The messages that a call has sent on a channel and that the broker has not answered. The broker counts the messages of a
// channel; its answers name those numbers, one or all up to one. A message that no queue takes comes back first, and is
// confirmed afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

class flight {
  public:
    /// `first` is the number of the first message to be sent, and `count` how many will be. Answers go to `answers`, which
    /// belongs to `messages`.
    flight(std::uint64_t first, std::span<const message> messages, std::vector<confirmation>& answers,
           std::size_t count)
        : first_(first), messages_(messages), answers_(answers) {
        items_.reserve(count);
    }

    /// The message with this index was sent. Needs no memory.
    void sent(std::size_t index) {
        items_.push_back({index, false, false});
        ++open_;
    }
    [[nodiscard]] std::size_t open() const noexcept { return open_; }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }

    void acknowledged(std::uint64_t number, bool is_multiple) {
        answer(number, is_multiple, {confirmation::kind::confirmed, {}});
    }
    void rejected(std::uint64_t number, bool is_multiple) {
        answer(number, is_multiple, {confirmation::kind::unknown, "nacked"});
    }

    /// A message came back. They come in the order in which they were sent, so a search begins where the last one ended.
    /// Returns false if none is such a message; then a confirmation that follows may not be trusted.
    [[nodiscard]] bool returned(std::string_view id, std::string_view topic) {
        return mark_returned(returned_to_, id, topic) || mark_returned(0, id, topic);
    }

  private:
    struct item {
        std::size_t index;
        bool is_returned;
        bool is_answered;
    };

    bool mark_returned(std::size_t from, std::string_view id, std::string_view topic) {
        for (std::size_t i = from; i < items_.size(); ++i) {
            auto& one = items_[i];
            const auto& m = messages_[one.index];
            if (!one.is_answered && !one.is_returned && m.id == id && m.topic == topic) {
                one.is_returned = true;
                returned_to_ = i + 1;
                return true;
            }
        }
        return false;
    }

    void answer(std::uint64_t number, bool is_multiple, const confirmation& with) {
        if (number < first_ || number - first_ >= items_.size()) {
            return;
        }
        const auto last = static_cast<std::size_t>(number - first_);
        for (auto i = is_multiple ? answered_to_ : last; i <= last; ++i) {
            settle(items_[i], with);
        }
        answered_to_ = is_multiple ? last + 1 : answered_to_;
    }

    void settle(item& one, const confirmation& with) {
        if (one.is_answered) {
            return;
        }
        one.is_answered = true;
        --open_;
        const bool is_unroutable = one.is_returned && with.what == confirmation::kind::confirmed;
        answers_[one.index] = is_unroutable ? confirmation{confirmation::kind::refused, "unroutable"} : with;
    }

    std::uint64_t first_;
    std::span<const message> messages_;
    std::vector<confirmation>& answers_;
    std::vector<item> items_{};
    std::size_t open_ = 0;
    std::size_t answered_to_ = 0; // all before are answered
    std::size_t returned_to_ = 0; // where the next message that comes back is likely to be
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
