// SPDX-License-Identifier: MIT
// The function of each verb, for any kind of store.
#pragma once

#include <array>
#include <string_view>

#include "arguments.hpp"
#include "cancel.hpp"
#include "database.hpp"
#include "list.hpp"
#include "purge.hpp"
#include "requeue.hpp"
#include "requeue_all.hpp"
#include "retry.hpp"
#include "schema.hpp"
#include "show.hpp"
#include "stats.hpp"
#include "usage.hpp"

namespace tool {

/// Executes a verb. Requires that its arguments are complete.
template <database Database>
int run_verb(Database& in, const arguments& with) {
    struct verb {
        std::string_view name;
        int (*run)(Database&, const arguments&);
    };
    constexpr std::array<verb, verb_usages.size()> verbs{{{"stats", stats},
                                                          {"list", list},
                                                          {"show", show},
                                                          {"retry", retry},
                                                          {"cancel", cancel},
                                                          {"requeue", requeue},
                                                          {"purge", purge},
                                                          {"schema", schema}}};
    if (is_requeue_all(with)) {
        return requeue_all(in, with);
    }
    for (const auto& v : verbs) {
        if (with.verb == v.name) {
            return v.run(in, with);
        }
    }
    throw bad_usage("unknown verb " + with.verb);
}

} // namespace tool
