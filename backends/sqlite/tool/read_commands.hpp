// SPDX-License-Identifier: MIT
// The verbs that only read: stats, list, show, schema.
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "database.hpp"
#include "older_schema.hpp"
#include "output.hpp"
#include "sagas.hpp"
#include "wait_reason.hpp"

namespace tool {

/// The id on the command line. Throws `bad_usage` if it is not one.
[[nodiscard]] inline vouch::id entry_id_of(const arguments& with) {
    const auto id = vouch::id::parse(with.entry_id);
    if (!id) {
        throw bad_usage(with.verb + " needs an entry's id, as `list` prints it, not " + with.entry_id);
    }
    return *id;
}

[[nodiscard]] inline std::vector<std::string> queues_of(const database& in, const arguments& with) {
    return with.queue.empty() ? in.queues() : std::vector{with.queue};
}

inline int stats(database& in, const arguments& with) {
    const bool is_older = in.warn_if_older();
    const auto now = vouch::system_now();
    std::vector<std::string> rows;
    std::string text;
    const auto add = [&](const std::string& queue, const vouch::state_counts& counts,
                         const std::optional<vouch::time_point>& next) {
        json_object row;
        row.text("queue", queue).raw("entries", json_of(counts)).time("next_due", next);
        rows.push_back(row.str());
        text += plain(queue) + ":";
        for (const auto s : vouch::all_states) {
            text +=
                ' ' + std::to_string(counts[s]) + ' ' + std::string(name_of(s)) + (s == vouch::state::dead ? "" : ",");
        }
        text += (next ? "; next due " + relative(*next, now) : "") + "\n";
    };
    if (is_older) {
        for (const auto& [queue, counts] : in.counts()) {
            if (with.queue.empty() || with.queue == queue) {
                add(queue, counts, std::nullopt);
            }
        }
    } else {
        const auto& stored = in.stored();
        for (const auto& queue : queues_of(in, with)) {
            add(queue, stored.counts(queue), stored.next_due(queue));
        }
    }
    print(with.json ? json_list(rows) + "\n" : text.empty() ? "no entries\n" : text);
    return done;
}

inline int list(database& in, const arguments& with) {
    using vouch::query;
    if (in.warn_if_older()) {
        return older_schema::list(in, with);
    }
    std::vector<vouch::entry> page;
    for (const auto& queue : queues_of(in, with)) {
        auto wanted = with.state == vouch::state::dead            ? query::dead(queue)
                      : with.state && vouch::is_live(*with.state) ? query::live(queue)
                                                                  : query::all(queue);
        wanted.state = with.state;
        wanted.topic = with.topic;
        wanted.after = with.after;
        wanted.limit = with.limit;
        auto found = in.stored().list(wanted);
        page.insert(page.end(), std::move_iterator(found.begin()), std::move_iterator(found.end()));
        // Sequences are unique in the store, so the page is the lowest ones of all queues.
        std::sort(page.begin(), page.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
        page.resize(std::min(page.size(), with.limit));
    }
    std::vector<std::string> rows;
    std::string text;
    const auto now = vouch::system_now();
    for (const auto& e : page) {
        rows.push_back(json_of(e).str());
        text += line_of(e, now);
    }
    print(with.json ? json_list(rows) + "\n" : text);
    return done;
}

[[nodiscard]] inline std::string text_of(const vouch::entry& e, vouch::time_point now) {
    std::string out;
    const auto line = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) {
            out += std::string(name) + std::string(17 - name.size(), ' ') + value + "\n";
        }
    };
    const auto time = [&](std::string_view name, const std::optional<vouch::time_point>& at) {
        line(name, at ? with_time(*at, now) : "");
    };
    const auto id = [&](std::string_view name, const vouch::id& which) {
        line(name, which.is_nil() ? "" : to_string(which));
    };
    id("id", e.id);
    line("queue", plain(e.queue));
    line("topic", plain(e.topic));
    line("state", std::string(name_of(e.state)));
    line("attempts", std::to_string(e.attempts) + (e.attempts_max != 0 ? " of " + std::to_string(e.attempts_max) : "") +
                         ", lapses " + std::to_string(e.lapses) + ", failures " + std::to_string(e.failures) +
                         ", claims ever " + std::to_string(e.epoch));
    line("last_error", plain(e.last_error));
    line("worker", plain(e.worker));
    line("key", plain(e.key));
    line("group", plain(e.group));
    line("lane", plain(e.lane));
    id("parent", e.parent);
    id("predecessor", e.predecessor);
    line("sequence", std::to_string(e.sequence) + ", generation " + std::to_string(e.generation));
    time("created_at", e.created_at);
    time("due_at", e.due_at);
    time("lease_until", e.lease_until);
    time("expires_at", e.expires_at);
    time("last_attempt_at", e.last_attempt_at);
    time("updated_at", e.updated_at);
    for (const auto& step : e.trail) {
        id("trail", step);
    }
    for (const auto& [name, value] : e.headers) {
        line("header", plain(name) + ": " + plain(value));
    }
    line("payload", std::to_string(e.payload.size()) + " bytes");
    line("progress", e.progress.empty() ? "" : std::to_string(e.progress.size()) + " bytes");
    line("result", e.result ? std::to_string(e.result->size()) + " bytes" : "");
    return out;
}

inline int show(database& in, const arguments& with) {
    if (in.warn_if_older()) {
        return older_schema::show(in, with, entry_id_of(with));
    }
    const auto& stored = in.stored();
    const auto found = stored.find(entry_id_of(with));
    if (!found) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.entry_id.c_str());
        return not_found;
    }
    const auto now = vouch::system_now();
    const auto why = why_not_running(stored, *found, now);
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

inline int schema(const arguments& with) {
    if (with.file.empty()) {
        print(vouch::sqlite::schema(with.prefix));
        return done;
    }
    const database in(with);
    const auto ours = vouch::sqlite::schema_version;
    if (with.json) {
        json_object out;
        out.raw("stored", in.version() ? std::to_string(*in.version()) : "null");
        print(out.number("ours", static_cast<std::uint64_t>(ours)).str() + "\n");
    } else {
        print("stored: " + (in.version() ? std::to_string(*in.version()) : std::string("none")) +
              "\nours:   " + std::to_string(ours) + "\n");
    }
    if (const auto wrong = in.difference(); !wrong.empty()) {
        std::fprintf(stderr, "vouch: %s\n", wrong.c_str());
        return store_error;
    }
    return done;
}

} // namespace tool
