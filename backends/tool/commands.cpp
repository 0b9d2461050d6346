// SPDX-License-Identifier: MIT
// The table of all commands.
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "command.hpp"
#include "serve.hpp"
#include "verbs/ages.hpp"
#include "verbs/backup.hpp"
#include "verbs/cancel.hpp"
#include "verbs/completion.hpp"
#include "verbs/export.hpp"
#include "verbs/help.hpp"
#include "verbs/list.hpp"
#include "verbs/man.hpp"
#include "verbs/purge.hpp"
#include "verbs/requeue.hpp"
#include "verbs/retry.hpp"
#include "verbs/running.hpp"
#include "verbs/saga.hpp"
#include "verbs/schema.hpp"
#include "verbs/show.hpp"
#include "verbs/stats.hpp"
#include "verbs/watch.hpp"
#include "verbs/why.hpp"

namespace tool {

namespace {

#define VOUCH_TOOL_FILTERS "queue state topic key lane group parent error worker older-than newer-than after scan "

constexpr std::array commands{
    command{"stats", "entries by queue and state, and when the next one is due", takes::store,
            "queue json ndjson prefix", "  vouch stats work.db\n  vouch stats postgres://host/database --queue mail\n",
            stats},
    command{"list", "entries that match the filters, oldest first", takes::store,
            VOUCH_TOOL_FILTERS "limit json ndjson prefix",
            "A saga that has undone its work is shown as compensated.\n"
            "  vouch list work.db --state dead --error smtp_timeout\n"
            "  vouch list work.db --queue mail --older-than 1h --ndjson | jq .id\n",
            list},
    command{"show", "all fields of an entry, its attempts, and why it is not running", takes::store_and_id,
            "payload json prefix", "  vouch show work.db 0193a1\n  vouch show work.db 0193a1 --payload\n", show},
    command{"why", "the sentence that explains why an entry is not running", takes::store_and_id, "json prefix",
            "  vouch why work.db 0193a1\n", why},
    command{"running", "which worker holds which entry, since when, and how much of its lease is left", takes::store,
            "queue topic worker older-than newer-than limit scan json ndjson prefix",
            "  vouch running work.db\n  vouch running work.db --worker mail-3\n", running},
    command{"ages", "how long due entries have been waiting, as a histogram", takes::store,
            "queue topic scan json ndjson prefix", "  vouch ages work.db --queue mail\n", ages},
    command{"watch", "the queues, drawn again and again", takes::store, "queue every count json ndjson prefix",
            "  vouch watch work.db --every 5s\n", watch},
    command{"saga", "the steps of a saga with their times, or its diagram", takes::store_and_id, "mermaid json prefix",
            "  vouch saga work.db 0193a1\n  vouch saga work.db 0193a1 --mermaid > saga.mmd\n", saga},
    command{"retry", "make waiting entries due now", takes::store_and_maybe_id,
            VOUCH_TOOL_FILTERS "dry-run yes json prefix",
            "With an ID, one entry; otherwise all live entries that match, in commits of 100.\n"
            "  vouch retry work.db 0193a1\n  vouch retry work.db --error smtp_timeout --dry-run\n",
            retry},
    command{
        "cancel", "end entries as dead, and ask sagas to compensate", takes::store_and_maybe_id,
        VOUCH_TOOL_FILTERS "abandon dry-run yes json prefix",
        "With an ID, one entry; otherwise all live entries that match and that no worker holds, in commits of 100.\n"
        "  vouch cancel work.db 0193a1\n  vouch cancel work.db --topic promo.sent --yes\n",
        cancel},
    command{
        "requeue", "give dead entries successors that start again; sagas continue", takes::store_and_maybe_id,
        VOUCH_TOOL_FILTERS "resume afresh dry-run yes json prefix",
        "With an ID, one entry; otherwise all dead entries that match, in commits of 100. It may be interrupted and\n"
        "repeated: an entry never gets a second successor. Commands of sagas are refused; resume the saga.\n"
        "  vouch requeue work.db 0193a1\n  vouch requeue work.db --queue mail --error no_handler --dry-run\n",
        requeue},
    command{"resume", "give dead entries successors that continue from the last checkpoint", takes::store_and_maybe_id,
            VOUCH_TOOL_FILTERS "dry-run yes json prefix",
            "The same as requeue, but entries that are not sagas also keep their progress.\n"
            "  vouch resume work.db 0193a1\n  vouch resume work.db --topic order --yes\n",
            requeue},
    command{"purge", "remove ended entries of a queue", takes::store,
            "queue older-than state scan dry-run yes json prefix",
            "Entries that a live entry needs are kept. It removes in commits of 500.\n"
            "  vouch purge work.db --queue mail --older-than 30d --state succeeded --dry-run\n",
            purge},
    command{"export", "entries with all their fields and payloads, one JSON object per line", takes::store,
            VOUCH_TOOL_FILTERS "prefix",
            "Bytes are a string if they are UTF-8, otherwise {\"hex\": \"...\"}.\n"
            "  vouch export work.db > work.ndjson\n  vouch export work.db --state dead --queue mail\n",
            export_entries},
    command{"backup", "copy a SQLite file to a new one while workers run", takes::store_and_file, "prefix",
            "An existing file is never overwritten.\n  vouch backup work.db copy.db\n", backup},
    command{"serve", "a page for a browser, JSON and metrics", takes::store, "listen host token read-only prefix",
            "On loopback it prints an address with a token that allows changes. Any other address needs VOUCH_TOKEN.\n"
            "  vouch serve work.db\n  vouch serve work.db --read-only --listen 127.0.0.1:9090\n",
            nullptr, [](const arguments& with) { return serve(serve_request_of(with)); }},
    command{"schema", "compare the version of the tables with ours, or print the statements that create them",
            takes::maybe_store, "for json prefix", "  vouch schema work.db\n  vouch schema --for postgres\n", schema,
            print_schema},
    command{"roles", "print the statements that create roles which may only enqueue, work or look", takes::maybe_store,
            "for prefix", "  vouch roles | psql\n", nullptr, roles},
    command{"completion", "print completions for bash or zsh", takes::shell, "",
            "  vouch completion bash > /etc/bash_completion.d/vouch\n  vouch completion zsh > ~/.zfunc/_vouch\n",
            nullptr, completion},
    command{"man", "print the manual page", takes::nothing, "", "  vouch man | man -l -\n", nullptr, man},
    command{"help", "print all commands, or one with its options and examples", takes::maybe_command, "", "", nullptr,
            help},
    command{"version", "print the version", takes::nothing, "", "", nullptr,
            [](const arguments&) {
                print("vouch " + version_text() + "\n");
                return int{done};
            }},
};

#undef VOUCH_TOOL_FILTERS

} // namespace

std::span<const command> all_commands() { return commands; }

const command& command_named(std::string_view name) {
    for (const auto& c : commands) {
        if (c.name == name) {
            return c;
        }
    }
    throw bad_usage("unknown verb " + std::string(name));
}

} // namespace tool
