// SPDX-License-Identifier: MIT
// Which queues receive a copy of an emission that names no queue: one event, many listeners. Each copy is an entry with
// its own retries and its own dead letter.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/limits.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/topic.hpp>

namespace vouch {
inline namespace v0 {

class bindings {
  public:
    /// Adds `queue` to the queues that receive emissions whose topic fits `pattern`. Throws `invalid_argument` for an
    /// invalid pattern or name.
    bindings& bind(std::string pattern, std::string queue) {
        detail::check_required_name({"binding", "queue"}, queue, limits{}.name_max);
        bound_.push_back({topic_pattern(std::move(pattern)), std::move(queue)});
        return *this;
    }

    [[nodiscard]] bool empty() const noexcept { return bound_.empty(); }

    /// The queues bound to the topic, each once, in the order of their first binding.
    [[nodiscard]] std::vector<std::string> queues_for(std::string_view topic) const {
        std::vector<std::string> queues;
        for (const auto& [pattern, queue] : bound_) {
            if (pattern.matches(topic) && std::find(queues.begin(), queues.end(), queue) == queues.end()) {
                queues.push_back(queue);
            }
        }
        return queues;
    }

  private:
    struct binding {
        topic_pattern pattern;
        std::string queue{};
    };
    std::vector<binding> bound_;
};

} // namespace v0
} // namespace vouch
