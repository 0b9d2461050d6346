// SPDX-License-Identifier: MIT
// The command line: a verb, a store, an entry's id for some verbs, and options. `parse` throws `bad_usage` if they do
// not make sense.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

namespace tool {

/// The exit codes of the program.
enum exit_code : int {
    done = 0,
    refused = 1,     ///< the entry's state does not allow it, or it was not confirmed
    usage = 2,       ///< the command line is wrong
    not_found = 3,   ///< no such entry
    store_error = 4, ///< the database cannot be opened, read or written, or has another schema
    unwritten = 5,   ///< the output could not be written
};

inline constexpr std::string_view help = R"(vouch: inspect and repair the work in a store

  vouch stats STORE                      entries by queue and state, and when the next one is due
  vouch list STORE [--state S] [--topic T] [--limit N] [--after SEQUENCE]
                                         entries, oldest first; of all queues, or of --queue
  vouch show STORE ID [--payload]        all fields of an entry, and why it is not running
  vouch retry STORE ID                   make a waiting entry due now
  vouch cancel STORE ID [--abandon]      end an entry as dead (asks); ask a saga to compensate, unless --abandon
  vouch requeue STORE ID [--resume|--afresh]
                                         give a dead entry a successor that starts again, or with --resume continues;
                                         a saga needs --resume, or --afresh to repeat all its steps (asks)
  vouch requeue STORE --queue Q --error CODE [--resume]
                                         requeue every dead entry of the queue with this error (asks); sagas only with
                                         --resume
  vouch purge STORE --queue Q --older-than DURATION [--state succeeded|dead]
                                         remove ended entries (asks)
  vouch schema STORE                     compare the version of the tables with the one that this program needs
  vouch schema [--for sqlite|postgres]   print the statements that create the tables
  vouch serve STORE [--listen 127.0.0.1:8080] [--read-only] [--token T] [--host NAME:PORT]
                                         a page for a browser; the token, also from VOUCH_TOKEN, allows changes
  vouch roles [--for postgres]           print the statements that create roles which may only enqueue, work or look

  STORE         the path of a SQLite file, or postgres://[USER[:PASSWORD]@][HOST[:PORT]][/DATABASE][?OPTIONS]; libpq
                takes what is missing from PGHOST, PGUSER, PGPASSWORD, ~/.pgpass and so on
  --queue Q     only this queue               --json    print one JSON value, for scripts
  --prefix P    of the tables; vouch_         --yes     do not ask
  DURATION      90s, 15m, 36h, 7d

exit: 0 done, 1 refused or not confirmed, 2 usage, 3 no such entry, 4 database error, 5 output error
)";

/// The command line is wrong.
class bad_usage : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct arguments {
    std::string verb{};
    std::string location{}; ///< of the store: a file or a URL
    std::string entry_id{};
    std::string prefix = "vouch_";
    std::string store_name{}; ///< sqlite or postgres
    std::string queue{};
    std::string error{}; ///< the last error of a dead entry
    std::string topic{};
    std::optional<vouch::state> state{};
    std::optional<vouch::duration> older_than{};
    std::size_t limit = 100;
    std::uint64_t after = 0;
    bool json = false;
    bool yes = false;
    bool payload = false;
    bool abandon = false;
    bool resume = false;
    bool afresh = false;
};

template <class Number>
[[nodiscard]] Number number_of(std::string_view option, std::string_view text) {
    Number value{};
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc{} || end != text.data() + text.size() || text.empty()) {
        throw bad_usage(std::string(option) + " needs a number, not " + std::string(text));
    }
    return value;
}

[[nodiscard]] inline vouch::duration duration_of(std::string_view option, std::string_view text) {
    constexpr std::int64_t most = 1'000'000;
    const auto unit = text.empty() ? '?' : text.back();
    const auto count = number_of<std::int64_t>(option, text.substr(0, text.empty() ? 0 : text.size() - 1));
    if (count < 0 || count > most) {
        throw bad_usage(std::string(option) + " is " + std::string(text) + "; it must be from 0 to 1000000 units");
    }
    switch (unit) {
    case 's': return std::chrono::seconds{count};
    case 'm': return std::chrono::minutes{count};
    case 'h': return std::chrono::hours{count};
    case 'd': return std::chrono::hours{24 * count};
    default: throw bad_usage(std::string(option) + " needs a duration such as 90s, 15m, 36h or 7d");
    }
}

[[nodiscard]] inline vouch::state state_of(std::string_view text) {
    for (const auto s : vouch::all_states) {
        if (name_of(s) == text) {
            return s;
        }
    }
    throw bad_usage("--state must be pending, retrying, claimed, succeeded or dead");
}

[[nodiscard]] inline arguments parse(const std::vector<std::string>& words) {
    arguments out;
    std::vector<std::string> plain;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& word = words[i];
        const auto value = [&]() -> const std::string& {
            if (i + 1 >= words.size()) {
                throw bad_usage(word + " needs a value");
            }
            return words[++i];
        };
        if (word == "--json") {
            out.json = true;
        } else if (word == "--yes") {
            out.yes = true;
        } else if (word == "--payload") {
            out.payload = true;
        } else if (word == "--abandon") {
            out.abandon = true;
        } else if (word == "--resume") {
            out.resume = true;
        } else if (word == "--afresh") {
            out.afresh = true;
        } else if (word == "--queue") {
            out.queue = value();
        } else if (word == "--error") {
            out.error = value();
        } else if (word == "--topic") {
            out.topic = value();
        } else if (word == "--for") {
            out.store_name = value();
        } else if (word == "--prefix") {
            out.prefix = value();
        } else if (word == "--state") {
            out.state = state_of(value());
        } else if (word == "--older-than") {
            out.older_than = duration_of(word, value());
        } else if (word == "--limit") {
            out.limit = number_of<std::size_t>(word, value());
        } else if (word == "--after") {
            out.after = number_of<std::uint64_t>(word, value());
        } else if (word.starts_with("--")) {
            throw bad_usage("unknown option " + word);
        } else {
            plain.push_back(word);
        }
    }
    if (plain.size() > 3) {
        throw bad_usage("too many arguments");
    }
    out.verb = !plain.empty() ? plain[0] : "";
    out.location = plain.size() > 1 ? plain[1] : "";
    out.entry_id = plain.size() > 2 ? plain[2] : "";
    return out;
}

} // namespace tool
