// SPDX-License-Identifier: MIT
// The channels that a saga across services needs: one per participant, for its commands, and one for the replies. A
// broker's topology is made from them: a channel is a queue bound to its topics in RabbitMQ, and a topic in Kafka.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vouch/saga/definition.hpp>

namespace vouch {
inline namespace v0 {

struct saga_channel {
    std::string name{};                ///< of a participant: its queue in the saga's store
    std::vector<std::string> topics{}; ///< of the messages that it carries

    [[nodiscard]] friend bool operator==(const saga_channel&, const saga_channel&) = default;
};

struct saga_channel_options {
    std::string replies = "replies";        ///< the name of the channel of the replies
    std::string reply_topic = "saga.reply"; ///< as in `command_relay_options`
};

/// The channels in the order of the steps, the one of the replies last; none if the saga sends no commands.
[[nodiscard]] inline std::vector<saga_channel> channels_of(const saga_definition& saga,
                                                           const saga_channel_options& how = {}) {
    std::vector<saga_channel> out;
    const auto add = [&](const std::string& name, const std::string& topic) {
        auto at = std::find_if(out.begin(), out.end(), [&](const saga_channel& c) { return c.name == name; });
        if (at == out.end()) {
            at = out.insert(out.end(), saga_channel{.name = name});
        }
        if (!topic.empty() && std::find(at->topics.begin(), at->topics.end(), topic) == at->topics.end()) {
            at->topics.push_back(topic);
        }
    };
    for (const auto& step : saga.steps) {
        if (step.is_remote()) {
            add(step.queue, step.topic);
            add(step.queue, step.undo_topic);
        }
    }
    if (!out.empty()) {
        add(how.replies, how.reply_topic);
    }
    return out;
}

} // namespace v0
} // namespace vouch
