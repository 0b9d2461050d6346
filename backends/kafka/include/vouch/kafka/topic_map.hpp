// SPDX-License-Identifier: MIT
// Which Kafka topic a message goes to. Immutable after construction, so any number of threads may ask it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/kafka/options.hpp>
#include <vouch/kafka/topic_name.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/relay/message.hpp>

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
