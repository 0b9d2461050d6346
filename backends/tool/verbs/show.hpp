// SPDX-License-Identifier: MIT
// `vouch show`: all fields of an entry, and why it is not running.
#pragma once

#include <string>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"
#include "../entry_text.hpp"
#include "../history_text.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../saga_text.hpp"
#include "../wait_reason.hpp"

namespace tool {

[[nodiscard]] inline json json_of(const wait_reason& why) {
    return {{"waiting", why.code}, {"why", why.sentence}, {"waits_for", json_list(why.entries)}};
}

inline int show(database& in, const arguments& with) {
    const auto e = entry_of(in, with);
    const auto now = vouch::system_now();
    const auto why = why_not_running(in, e, now);
    const auto saga = vouch::is_saga(e) ? saga_line(in.stored(), e, now) : std::string{};
    const auto history = in.history_of(e.id);
    if (is_json(with)) {
        auto out = json_of(e);
        out["trail"] = json_list(e.trail);
        out["headers"] = json::array();
        for (const auto& [name, value] : e.headers) {
            out["headers"].push_back({{"name", name}, {"value", json_of_bytes(value)}});
        }
        out["payload_bytes"] = e.payload.size();
        out["progress_bytes"] = e.progress.size();
        out["history"] = json_of(history);
        out.update(json_of(why));
        if (!saga.empty()) {
            out["saga"] = saga;
        }
        if (with.payload) {
            out["payload"] = json_of_bytes(e.payload);
            out["payload_hex"] = hex_of(e.payload);
        }
        print(text_of(out) + "\n");
        return done;
    }
    print(fields_of(e, now) + (saga.empty() ? "" : "saga             " + saga + "\n") + "\n" + why.sentence + "\n" +
          history_table(history, now));
    if (with.payload) {
        print("\n" + plain(e.payload) + "\n");
    }
    return done;
}

} // namespace tool
