// SPDX-License-Identifier: MIT
// Which arguments each verb needs. `expect_complete` throws `bad_usage` if one is missing or too many are given.
#pragma once

#include <array>
#include <string_view>

#include "arguments.hpp"
#include "entry_id.hpp"

namespace tool {

struct verb_usage {
    std::string_view name;
    bool has_id;
};

inline constexpr std::array verb_usages{
    verb_usage{"stats", false}, verb_usage{"list", false},   verb_usage{"show", true},   verb_usage{"retry", true},
    verb_usage{"cancel", true}, verb_usage{"requeue", true}, verb_usage{"purge", false}, verb_usage{"schema", false}};

[[nodiscard]] inline bool is_requeue_all(const arguments& with) {
    return with.verb == "requeue" && with.entry_id.empty() && !with.location.empty();
}

inline void expect_complete(const arguments& with) {
    if (is_requeue_all(with)) {
        if (with.queue.empty() || with.error.empty() || with.afresh) {
            throw bad_usage("requeue needs an entry's id, or --queue and --error, with --resume for sagas");
        }
        return;
    }
    for (const auto& v : verb_usages) {
        if (with.verb == v.name) {
            if (with.location.empty() || v.has_id == with.entry_id.empty()) {
                throw bad_usage(with.verb +
                                (v.has_id ? " needs a store and an entry's id" : " needs a store, and nothing else"));
            }
            if (v.has_id) {
                static_cast<void>(entry_id_of(with));
            }
            return;
        }
    }
    throw bad_usage("unknown verb " + with.verb);
}

} // namespace tool
