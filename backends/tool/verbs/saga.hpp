// SPDX-License-Identifier: MIT
// `vouch saga`: the steps of a saga with what is known of their times, or the saga as a Mermaid diagram.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../saga_text.hpp"
#include "../table.hpp"
#include "../times.hpp"
#include "../wait_reason.hpp"

namespace tool {

/// The commands of a saga, oldest first, also those that its predecessors sent before they were resumed.
[[nodiscard]] inline std::vector<vouch::entry> commands_of(const stored_entries& in, const vouch::entry& saga) {
    std::vector<vouch::entry> out;
    auto sender = std::optional(saga);
    for (int resumes = 0; sender && resumes < 100; ++resumes) {
        for (auto& child : in.list(vouch::query::children(sender->id))) {
            out.push_back(std::move(child));
        }
        sender = sender->predecessor.is_nil() ? std::nullopt : in.find(sender->predecessor);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    return out;
}

/// The last command of a step, or of its compensation.
[[nodiscard]] inline const vouch::entry* command_of_step(const std::vector<vouch::entry>& commands,
                                                         std::string_view step, bool is_compensation) {
    const vouch::entry* out = nullptr;
    for (const auto& e : commands) {
        const auto read = vouch::command_of(e);
        if (read && read->step == step && read->is_compensation == is_compensation) {
            out = &e;
        }
    }
    return out;
}

/// "charge succeeded, took 3.0 s": a command as its participant left it.
[[nodiscard]] inline std::string command_text(const vouch::entry* e, vouch::time_point now) {
    if (e == nullptr) {
        return {};
    }
    const auto ended = is_terminal(e->state) ? e->updated_at : now;
    return cell_text(e->topic) + ' ' + std::string(name_of(e->state)) + (is_terminal(e->state) ? ", took " : ", for ") +
           roughly(std::max(until(ended, e->created_at), {}));
}

/// A label of Mermaid: letters, digits and a few signs, so that no name can end it or become markup.
[[nodiscard]] inline std::string mermaid_text(std::string_view name) {
    std::string out;
    for (const char c : plain(name)) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' ||
                              c == '.' || c == '-' || c == '_' || static_cast<unsigned char>(c) >= 0x80;
        out += is_plain ? std::string(1, c) : '#' + std::to_string(static_cast<int>(c)) + ';';
    }
    return out;
}

/// The steps from left to right, each with its state; compensations below, from right to left.
[[nodiscard]] inline std::string diagram_of(const vouch::saga_status& s) {
    std::string out =
        "flowchart LR\n  start([\"" + mermaid_text(s.definition) + " v" + std::to_string(s.version) + "\"])\n";
    std::string before = "start";
    std::string undone_before;
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const auto& step = s.steps[i];
        const auto node = "s" + std::to_string(i);
        const bool is_current = is_live(s.state) && i == s.at;
        out += "  " + before + " --> " + node + "[\"" + mermaid_text(step.name) + "<br/>" +
               std::string(name_of(step.state)) +
               "\"]:::" + (is_current ? "current" : std::string(name_of(step.state))) + "\n";
        if (step.state == vouch::step_state::undone) {
            out +=
                "  " + node + " -.-> u" + std::to_string(i) + "[\"undo " + mermaid_text(step.name) + "\"]:::undone\n";
            out += undone_before.empty() ? "" : "  " + undone_before + " -.- u" + std::to_string(i) + "\n";
            undone_before = "u" + std::to_string(i);
        }
        before = node;
    }
    out += "  " + before + " --> finish([\"" + mermaid_text(direction_text(s)) + "\"])\n";
    return out + "  classDef done fill:#cfc\n  classDef undone fill:#ecf\n  classDef failed fill:#fcc\n"
                 "  classDef unknown fill:#fec\n  classDef current stroke-width:3px\n";
}

inline int print_steps(database& in, const arguments& with, const vouch::entry& e, const vouch::saga_status& s) {
    const auto now = vouch::system_now();
    const auto commands = commands_of(in.stored(), e);
    table steps(with, {"STEP", "STATE", "BEGAN", "COMMAND", "COMPENSATION"});
    auto as_json = json::array();
    const auto progress = vouch::decode_progress(e.progress);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const auto& step = s.steps[i];
        const auto* const forward = command_of_step(commands, step.name, false);
        const auto* const back = command_of_step(commands, step.name, true);
        // The store has the time of the current step, and of every step with a command.
        const auto began = forward != nullptr                          ? std::optional(forward->created_at)
                           : is_live(s.state) && progress && i == s.at ? std::optional(progress->since)
                                                                       : std::nullopt;
        const auto json_of_command = [](const vouch::entry* c) {
            return c == nullptr ? json(nullptr)
                                : json{{"id", to_string(c->id)},
                                       {"queue", c->queue},
                                       {"topic", c->topic},
                                       {"state", name_of(c->state)},
                                       {"created_at", json_of(c->created_at)},
                                       {"updated_at", json_of(c->updated_at)}};
        };
        as_json.push_back({{"step", step.name},
                           {"state", name_of(step.state)},
                           {"began_at", json_of(began)},
                           {"command", json_of_command(forward)},
                           {"compensation", json_of_command(back)}});
        steps.add({cell_text(step.name), std::string(name_of(step.state)), began ? with_time(*began, now) : "",
                   command_text(forward, now), command_text(back, now)},
                  {});
    }
    if (is_json(with)) {
        print(text_of(json{{"id", to_string(e.id)},
                           {"definition", s.definition},
                           {"version", s.version},
                           {"state", shown_state(e)},
                           {"direction", name_of(s.direction)},
                           {"at", s.step()},
                           {"reason", s.reason},
                           {"origin", json_of(s.origin)},
                           {"waits_for", json_of(s.waits_for)},
                           {"waits_until", json_of(s.waits_until)},
                           {"steps", as_json}}) +
              "\n");
        return done;
    }
    print(saga_line(in.stored(), e, now) + "\nstarted " + with_time(e.created_at, now) + ", last change " +
          with_time(e.updated_at, now) + "\n\n");
    steps.print_all("no step has begun\n");
    print("\n" + why_not_running(in, e, now).sentence + "\n");
    return done;
}

inline int saga(database& in, const arguments& with) {
    const auto e = entry_of(in, with);
    const auto status = vouch::inspect(in.stored(), e.id);
    if (!status) {
        throw failure(refused, vouch::is_saga(e) ? "the progress of saga " + to_string(e.id) + " cannot be read"
                                                 : "entry " + to_string(e.id) + " is not a saga");
    }
    if (with.mermaid) {
        print(diagram_of(*status));
        return done;
    }
    return print_steps(in, with, e, *status);
}

} // namespace tool
