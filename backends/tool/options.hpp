// SPDX-License-Identifier: MIT
// All options, once: the parser, the help, the completions and the manual page come from this table.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "arguments.hpp"

namespace tool {

struct option {
    std::string_view name;  ///< without the dashes
    std::string_view value; ///< what its value is called; empty: a flag
    std::string_view help;
    void (*set)(arguments&, const std::string& value); ///< throws `bad_usage`
    std::string_view choices = {};                     ///< all values that it takes, separated by spaces
    bool is_repeatable = false;
};

inline constexpr std::array all_options{
    option{"queue", "Q", "only entries of this queue", [](arguments& to, const std::string& v) { to.queue = v; }},
    option{"state", "STATE", "only entries in this state; compensated: sagas that have undone their work",
           [](arguments& to, const std::string& v) { to.state = state_of(v); },
           "pending retrying claimed succeeded dead compensated"},
    option{"topic", "T", "only entries with exactly this topic",
           [](arguments& to, const std::string& v) { to.topic = v; }},
    option{"key", "K", "only entries with this dedup key", [](arguments& to, const std::string& v) { to.key = v; }},
    option{"lane", "L", "only entries of this lane", [](arguments& to, const std::string& v) { to.lane = v; }},
    option{"group", "G", "only members of this group", [](arguments& to, const std::string& v) { to.group = v; }},
    option{"parent", "ID", "only children of this entry, for instance the commands of a saga",
           [](arguments& to, const std::string& v) { to.parent = v; }},
    option{"error", "CODE", "only entries whose last error is this code",
           [](arguments& to, const std::string& v) { to.error = v; }},
    option{"worker", "W", "only entries that this worker claimed last",
           [](arguments& to, const std::string& v) { to.worker = v; }},
    option{"older-than", "DURATION", "only entries whose last change is longer ago than this, such as 90s or 7d",
           [](arguments& to, const std::string& v) { to.older_than = duration_of("--older-than", v); }},
    option{"newer-than", "DURATION", "only entries whose last change is not longer ago than this",
           [](arguments& to, const std::string& v) { to.newer_than = duration_of("--newer-than", v); }},
    option{"limit", "N", "print at most N entries; 100",
           [](arguments& to, const std::string& v) { to.limit = number_of<std::size_t>("--limit", v); }},
    option{"after", "SEQUENCE", "only entries with a greater sequence, to continue where another call stopped",
           [](arguments& to, const std::string& v) { to.after = number_of<std::uint64_t>("--after", v); }},
    option{"scan", "N", "read at most N entries to find those that match; 100000",
           [](arguments& to, const std::string& v) {
               to.scan = number_of<std::uint64_t>("--scan", v);
               to.has_scan = true;
           }},
    option{"json", "", "print one JSON value", [](arguments& to, const std::string&) { to.json = true; }},
    option{"ndjson", "", "print one JSON value per line", [](arguments& to, const std::string&) { to.ndjson = true; }},
    option{"payload", "", "print the payload, too; it may be confidential",
           [](arguments& to, const std::string&) { to.payload = true; }},
    option{"dry-run", "", "count what would be changed, and change nothing",
           [](arguments& to, const std::string&) { to.dry_run = true; }},
    option{"yes", "", "do not ask", [](arguments& to, const std::string&) { to.yes = true; }},
    option{"resume", "", "continue every entry from its last checkpoint; sagas are always continued",
           [](arguments& to, const std::string&) { to.resume = true; }},
    option{"afresh", "", "repeat all steps of a saga instead of continuing it",
           [](arguments& to, const std::string&) { to.afresh = true; }},
    option{"abandon", "", "end a saga as dead without compensation",
           [](arguments& to, const std::string&) { to.abandon = true; }},
    option{"mermaid", "", "print the saga as a Mermaid diagram",
           [](arguments& to, const std::string&) { to.mermaid = true; }},
    option{"every", "DURATION", "how often to look; 2s",
           [](arguments& to, const std::string& v) { to.every = duration_of("--every", v); }},
    option{"count", "N", "stop after N pictures",
           [](arguments& to, const std::string& v) { to.count = number_of<std::uint64_t>("--count", v); }},
    option{"listen", "ADDRESS", "where the page is served; 127.0.0.1:8080",
           [](arguments& to, const std::string& v) { to.listen = v; }},
    option{"host",
           "NAME:PORT",
           "another name under which browsers reach the page",
           [](arguments& to, const std::string& v) { to.hosts.push_back(v); },
           {},
           true},
    option{"token", "T", "the token that allows changes; better in VOUCH_TOKEN, because others can see command lines",
           [](arguments& to, const std::string& v) { to.token = v; }},
    option{"read-only", "", "allow no changes", [](arguments& to, const std::string&) { to.read_only = true; }},
    option{"for", "KIND", "the kind of store: sqlite or postgres",
           [](arguments& to, const std::string& v) { to.store_name = v; }, "sqlite postgres"},
    option{"prefix", "P", "the prefix of the tables; vouch_",
           [](arguments& to, const std::string& v) { to.prefix = v; }},
};

} // namespace tool
