// SPDX-License-Identifier: MIT
// Recorded events as a Mermaid sequence diagram: the queues are the participants, an emission is an arrow to its queue,
// and the end of an emitted entry is an arrow back. Register one recorder with the runners of all queues involved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/testing/recorder.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

namespace detail {

class diagram {
  public:
    void add(const recorded_event& e) {
        switch (e.what) {
        case event_kind::enqueued: // by the entry that was settled just before
            sent_from_[e.id] = last_;
            arrow(last_, "->>", e.queue, e.topic);
            break;
        case event_kind::started:
            if (!sent_from_.contains(e.id) && e.attempt == 1 && started_.emplace(e.id, true).second) {
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + '\n';
            }
            break;
        case event_kind::succeeded:
        case event_kind::dead: end(e); break;
        case event_kind::retried: arrow(e.queue, "->>", e.queue, e.topic + " again" + note_of(e)); break;
        case event_kind::advanced:
            last_ = e.queue;
            if (!e.tag.empty()) { // a saga skips a step
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + note_of(e) + '\n';
            }
            break;
        default: break;
        }
    }

    [[nodiscard]] std::string text() const {
        std::string out = "sequenceDiagram\n";
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            out += "    participant q" + std::to_string(i) + " as " + queues_[i] + '\n';
        }
        return out + body_;
    }

  private:
    void end(const recorded_event& e) {
        last_ = e.queue;
        const auto what = e.topic + ' ' + std::string(name_of(e.what)) + note_of(e);
        if (const auto from = sent_from_.find(e.id); from != sent_from_.end()) {
            arrow(e.queue, "-->>", from->second, what);
        } else {
            body_ += "    Note over " + alias(e.queue) + ": " + what + '\n';
        }
    }
    [[nodiscard]] static std::string note_of(const recorded_event& e) {
        const auto& word = e.error.empty() ? e.tag : e.error;
        return word.empty() ? std::string{} : " (" + word + ')';
    }
    void arrow(const std::string& from, std::string_view how, const std::string& to, const std::string& what) {
        const auto start = alias(from);
        body_ += "    " + start + std::string(how) + alias(to) + ": " + what + '\n';
    }
    /// A queue may have any name; a participant in Mermaid may not.
    [[nodiscard]] std::string alias(const std::string& queue) {
        const auto found = std::find(queues_.begin(), queues_.end(), queue);
        const auto index = found - queues_.begin();
        if (found == queues_.end()) {
            queues_.push_back(queue);
        }
        return 'q' + std::to_string(index);
    }

    std::vector<std::string> queues_{};
    std::map<id, std::string> sent_from_{};
    std::map<id, bool> started_{};
    std::string last_ = "outside";
    std::string body_{};
};

} // namespace detail

/// The Mermaid text of these events.
[[nodiscard]] inline std::string sequence_diagram(const std::vector<recorded_event>& events) {
    detail::diagram out;
    for (const auto& e : events) {
        out.add(e);
    }
    return out.text();
}

} // namespace testing
} // namespace v0
} // namespace vouch
