// SPDX-License-Identifier: MIT
// What a command line asks for, and how the program ends.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
    refused = 1,     ///< the entry's state does not allow it, or it was not confirmed, or it was interrupted
    usage = 2,       ///< the command line is wrong, or an id prefix is ambiguous
    not_found = 3,   ///< no such entry
    store_error = 4, ///< the database cannot be opened, read or written, or has another schema
    unwritten = 5,   ///< the output could not be written
};

/// Ends the program with a message and an exit code.
class failure : public std::runtime_error {
  public:
    failure(exit_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] exit_code code() const noexcept { return code_; }

  private:
    exit_code code_;
};

/// The command line is wrong.
class bad_usage : public failure {
  public:
    explicit bad_usage(const std::string& message) : failure(usage, message) {}
};

/// A state to look for. `compensated` is a saga that succeeded in undoing its work; the contract calls it succeeded.
struct wanted_state {
    vouch::state state{};
    bool is_compensated = false;
};

struct arguments {
    std::string verb{};
    std::string location{}; ///< of the store: a file or a URL
    std::string entry_id{}; ///< or a prefix of it
    std::string word{};     ///< another argument: a file, a shell
    std::string prefix = "vouch_";
    std::string store_name{}; ///< sqlite or postgres

    // Which entries.
    std::string queue{};
    std::string topic{};
    std::string key{};
    std::string lane{};
    std::string group{};
    std::string parent{}; ///< an id, or a prefix of it
    std::string error{};
    std::string worker{};
    std::optional<wanted_state> state{};
    bool only_live = false; ///< set by verbs that are for live entries
    bool only_dead = false; ///< set by verbs that are for dead entries
    std::optional<vouch::duration> older_than{};
    std::optional<vouch::duration> newer_than{};
    std::size_t limit = 100;
    std::uint64_t after = 0;
    std::uint64_t scan = 100'000; ///< how many entries a search may read
    bool has_scan = false;        ///< whether `scan` was given

    // How.
    bool json = false;
    bool ndjson = false;
    bool yes = false;
    bool dry_run = false;
    bool payload = false;
    bool abandon = false;
    bool resume = false;
    bool afresh = false;
    bool mermaid = false;
    vouch::duration every = std::chrono::seconds{2};
    std::uint64_t count = 0; ///< of pictures that `watch` draws; 0: until interrupted

    // The page.
    std::string listen = "127.0.0.1:8080";
    std::vector<std::string> hosts{}; ///< under which browsers reach it, beside the address
    std::string token{};
    bool read_only = false;

    [[nodiscard]] bool has_filter() const {
        return state || older_than || newer_than || !queue.empty() || !topic.empty() || !key.empty() || !lane.empty() ||
               !group.empty() || !parent.empty() || !error.empty() || !worker.empty();
    }
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
    const auto digits = text.find_last_of("0123456789");
    const auto unit = digits == std::string_view::npos ? text : text.substr(digits + 1);
    const auto count = number_of<std::int64_t>(option, text.substr(0, text.size() - unit.size()));
    if (count < 0 || count > most) {
        throw bad_usage(std::string(option) + " is " + std::string(text) + "; it must be from 0 to 1000000 units");
    }
    if (unit == "ms") {
        return std::chrono::milliseconds{count};
    }
    switch (unit.size() == 1 ? unit[0] : '?') {
    case 's': return std::chrono::seconds{count};
    case 'm': return std::chrono::minutes{count};
    case 'h': return std::chrono::hours{count};
    case 'd': return std::chrono::hours{24 * count};
    default: throw bad_usage(std::string(option) + " needs a duration such as 500ms, 90s, 15m, 36h or 7d");
    }
}

[[nodiscard]] inline wanted_state state_of(std::string_view text) {
    for (const auto s : vouch::all_states) {
        if (name_of(s) == text) {
            return {.state = s};
        }
    }
    if (text == "compensated") {
        return {.state = vouch::state::succeeded, .is_compensated = true};
    }
    throw bad_usage("--state must be pending, retrying, claimed, succeeded, dead or compensated");
}

} // namespace tool
