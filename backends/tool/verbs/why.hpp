// SPDX-License-Identifier: MIT
// `vouch why`: the sentence that explains why an entry is not running.
#pragma once

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../wait_reason.hpp"
#include "show.hpp"

namespace tool {

inline int why(database& in, const arguments& with) {
    const auto e = entry_of(in, with);
    const auto reason = why_not_running(in, e, vouch::system_now());
    auto out = json{{"id", to_string(e.id)}};
    out.update(json_of(reason));
    print((is_json(with) ? text_of(out) : reason.sentence) + "\n");
    return done;
}

} // namespace tool
