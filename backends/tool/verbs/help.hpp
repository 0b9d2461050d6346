// SPDX-License-Identifier: MIT
// `vouch help`: all commands, or one with its options and examples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../command.hpp"
#include "../options.hpp"
#include "../output.hpp"

namespace tool {

/// Breaks a text into lines of at most `width` characters, each after `margin` spaces.
[[nodiscard]] inline std::string wrapped(std::string_view text, std::size_t margin, std::size_t width = 100) {
    std::string out;
    std::string line;
    const auto end_line = [&] {
        out += std::string(out.empty() ? 0 : margin, ' ') + line + "\n";
        line.clear();
    };
    while (!text.empty()) {
        const auto word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        if (!line.empty() && margin + line.size() + 1 + word.size() > width) {
            end_line();
        }
        line += (line.empty() ? "" : " ") + std::string(word);
    }
    end_line();
    return out;
}

/// The options of a command, in its order.
[[nodiscard]] inline std::vector<option> options_of(const command& of) {
    std::vector<option> out;
    for (auto rest = of.options; !rest.empty();) {
        const auto name = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        for (const auto& o : all_options) {
            if (o.name == name) {
                out.push_back(o);
            }
        }
    }
    return out;
}

[[nodiscard]] inline std::string usage_of(const command& c) {
    return "vouch " + std::string(c.name) + (words_of(c.words).empty() ? "" : " ") + std::string(words_of(c.words)) +
           (c.options.empty() ? "" : " [OPTION...]");
}

[[nodiscard]] inline std::string option_name(const option& o) {
    return "--" + std::string(o.name) + (o.value.empty() ? "" : " " + std::string(o.value));
}

[[nodiscard]] inline std::string help_of(const command& c) {
    auto out = usage_of(c) + "\n\n" + std::string(c.summary) + ".\n";
    if (!c.more.empty()) {
        out += "\n" + std::string(c.more);
    }
    if (!c.options.empty()) {
        out += "\noptions:\n";
        for (const auto& o : options_of(c)) {
            const auto name = option_name(o);
            out += "  " + name + std::string(name.size() < 23 ? 23 - name.size() : 1, ' ') + wrapped(o.help, 25);
        }
    }
    return out;
}

[[nodiscard]] inline std::string help_of_all() {
    std::string out = "vouch: inspect and repair the work in a store\n\n";
    for (const auto& c : all_commands()) {
        const auto words = std::string(c.name) + ' ' + std::string(words_of(c.words));
        out +=
            "  vouch " + words + std::string(words.size() < 23 ? 23 - words.size() : 1, ' ') + wrapped(c.summary, 31);
    }
    return out + "\n" + wrapped(about_stores, 0) +
           "\n`vouch COMMAND --help` shows options and examples.\nexit: " + wrapped(about_exit_codes, 6);
}

inline int help(const arguments& with) {
    print(with.word.empty() ? help_of_all() : help_of(command_named(with.word)));
    return done;
}

[[nodiscard]] inline std::string version_text() {
    return std::to_string(VOUCH_VERSION_MAJOR) + '.' + std::to_string(VOUCH_VERSION_MINOR) + '.' +
           std::to_string(VOUCH_VERSION_PATCH);
}

} // namespace tool
