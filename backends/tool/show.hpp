// SPDX-License-Identifier: MIT
// `vouch show`: all fields of an entry, and why it is not running.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "entry_id.hpp"
#include "entry_text.hpp"
#include "json.hpp"
#include "output.hpp"
#include "sagas.hpp"
#include "wait_reason.hpp"

namespace tool {

template <class Database>
int show(Database& in, const arguments& with) {
    const auto& stored = in.stored();
    const auto found = stored.find(entry_id_of(with));
    if (!found) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.entry_id.c_str());
        return not_found;
    }
    const auto now = vouch::system_now();
    const auto why = why_not_running(in, *found, now);
    const auto saga = sagas::is_saga(*found) ? sagas::status_of(stored, *found, now) : std::string{};
    if (with.json) {
        auto out = json_of(*found);
        std::vector<std::string> waits_for;
        for (const auto& id : why.entries) {
            waits_for.push_back(json_object::quoted(to_string(id)));
        }
        std::vector<std::string> trail;
        for (const auto& id : found->trail) {
            trail.push_back(json_object::quoted(to_string(id)));
        }
        std::vector<std::string> headers;
        for (const auto& [name, value] : found->headers) {
            headers.push_back(json_object{}.text("name", name).text("value", value).str());
        }
        out.raw("trail", json_list(trail)).raw("headers", json_list(headers));
        out.number("payload_bytes", found->payload.size()).number("progress_bytes", found->progress.size());
        out.text("waiting", why.code).text("why", why.sentence).raw("waits_for", json_list(waits_for));
        if (!saga.empty()) {
            out.text("saga", saga);
        }
        if (with.payload) {
            out.text("payload_hex", hex_of(found->payload));
        }
        print(out.str() + "\n");
        return done;
    }
    print(text_of(*found, now) + (saga.empty() ? "" : "saga             " + plain(saga) + "\n") + "\n" + why.sentence +
          "\n");
    if (with.payload) {
        print("\n" + plain(found->payload) + "\n");
    }
    return done;
}

} // namespace tool
