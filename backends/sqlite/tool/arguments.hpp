// SPDX-License-Identifier: MIT
// The command line: a verb, a file, what the verb is about, and options; refused with a sentence if it makes no sense.
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

/// What the program ends with.
enum exit_code : int {
    done = 0,
    refused = 1,     ///< the entry's state does not allow it, or nobody confirmed it
    usage = 2,       ///< the command line makes no sense
    not_found = 3,   ///< no such entry
    store_error = 4, ///< the database cannot be opened, read or written, or is of another schema
    unwritten = 5,   ///< what there was to print could not be written
};

inline constexpr std::string_view help = R"(vouch: looks after the work in a SQLite file

  vouch stats FILE                       entries by queue and state, and what is due next
  vouch list FILE [--state S] [--topic T] [--limit N] [--after SEQUENCE]
                                         entries, oldest first; of all queues or of --queue
  vouch show FILE ID [--payload]         everything about an entry, and why it is not running
  vouch retry FILE ID                    makes a waiting entry due now
  vouch cancel FILE ID [--abandon]       ends an entry as dead (asks); a saga is asked to turn round, unless --abandon
  vouch requeue FILE ID [--resume|--afresh]
                                         gives a dead entry a successor that starts afresh, or where it stopped; a saga
                                         is resumed, and does all its work again only with --afresh (asks)
  vouch requeue FILE --queue Q --error CODE [--resume]
                                         the same for every dead entry of the queue with this error (asks); sagas are
                                         left alone without --resume
  vouch purge FILE --queue Q --older-than DURATION [--state succeeded|dead]
                                         removes ended entries (asks)
  vouch schema [FILE]                    the statements that create the tables; with FILE, its version and ours

  --queue Q     one queue only                --json    for scripts: one JSON value on stdout
  --prefix P    of the tables, vouch_         --yes     do not ask
  DURATION      90s, 15m, 36h, 7d

exit: 0 done, 1 refused or not confirmed, 2 usage, 3 no such entry, 4 the database, 5 the output
)";

/// The command line makes no sense.
class bad_usage : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct arguments {
    std::string verb{};
    std::string file{};
    std::string subject{}; ///< an entry's id
    std::string prefix = "vouch_";
    std::string queue{};
    std::string error{}; ///< the code a dead entry ended with
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
        throw bad_usage(std::string(option) + " wants a number");
    }
    return value;
}

[[nodiscard]] inline vouch::duration duration_of(std::string_view option, std::string_view text) {
    constexpr std::int64_t most = 1'000'000;
    const auto unit = text.empty() ? '?' : text.back();
    const auto count = number_of<std::int64_t>(option, text.substr(0, text.empty() ? 0 : text.size() - 1));
    if (count < 0 || count > most) {
        throw bad_usage(std::string(option) + " is out of range");
    }
    switch (unit) {
    case 's': return std::chrono::seconds{count};
    case 'm': return std::chrono::minutes{count};
    case 'h': return std::chrono::hours{count};
    case 'd': return std::chrono::hours{24 * count};
    default: throw bad_usage(std::string(option) + " wants a length of time such as 90s, 15m, 36h or 7d");
    }
}

[[nodiscard]] inline vouch::state state_of(std::string_view text) {
    for (const auto s : vouch::all_states) {
        if (name_of(s) == text) {
            return s;
        }
    }
    throw bad_usage("--state wants pending, retrying, claimed, succeeded or dead");
}

[[nodiscard]] inline arguments parse(const std::vector<std::string>& words) {
    arguments out;
    std::vector<std::string> plain;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& word = words[i];
        const auto value = [&]() -> const std::string& {
            if (i + 1 >= words.size()) {
                throw bad_usage(word + " wants a value");
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
            throw bad_usage("there is no option " + word);
        } else {
            plain.push_back(word);
        }
    }
    if (plain.size() > 3) {
        throw bad_usage("too many words");
    }
    out.verb = !plain.empty() ? plain[0] : "";
    out.file = plain.size() > 1 ? plain[1] : "";
    out.subject = plain.size() > 2 ? plain[2] : "";
    return out;
}

} // namespace tool
