// SPDX-License-Identifier: MIT
// `vouch completion`: the completions of bash and zsh, from the same tables as the help.
#pragma once

#include <string>
#include <string_view>

#include "../arguments.hpp"
#include "../command.hpp"
#include "../options.hpp"
#include "../output.hpp"
#include "help.hpp"

namespace tool {

[[nodiscard]] inline std::string names_of_commands() {
    std::string out;
    for (const auto& c : all_commands()) {
        out += (out.empty() ? "" : " ") + std::string(c.name);
    }
    return out;
}

[[nodiscard]] inline std::string bash_completion() {
    std::string by_command;
    for (const auto& c : all_commands()) {
        by_command += "        " + std::string(c.name) + ") words=\"--help";
        for (const auto& o : options_of(c)) {
            by_command += " --" + std::string(o.name);
        }
        by_command += "\" ;;\n";
    }
    std::string values;
    for (const auto& o : all_options) {
        values += o.choices.empty()
                      ? ""
                      : "        --" + std::string(o.name) + ") words=\"" + std::string(o.choices) + "\" ;;\n";
    }
    return "# bash completion for vouch\n_vouch() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\"\"\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W \"" +
           names_of_commands() +
           " --help --version\" -- \"$word\"))\n        return\n    fi\n"
           "    case $before in\n" +
           values +
           "    completion) words=\"bash zsh\" ;;\n"
           "    help) words=\"" +
           names_of_commands() +
           "\" ;;\n    esac\n"
           "    if [[ -n $words ]]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n        return\n  "
           "  fi\n"
           "    if [[ $word != -* ]]; then\n        COMPREPLY=($(compgen -f -- \"$word\"))\n        return\n    fi\n"
           "    case ${COMP_WORDS[1]} in\n" +
           by_command +
           "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
           "complete -o filenames -F _vouch vouch\n";
}

/// For zsh, between single quotes and inside brackets.
[[nodiscard]] inline std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        out += c == '\''                                       ? "'\\''"
               : c == '[' || c == ']' || c == ':' || c == '\\' ? std::string("\\") + c
                                                               : std::string(1, c);
    }
    return out;
}

[[nodiscard]] inline std::string zsh_completion() {
    std::string commands;
    std::string by_command;
    for (const auto& c : all_commands()) {
        commands += "        '" + std::string(c.name) + ':' + zsh_text(c.summary) + "'\n";
        by_command += "        " + std::string(c.name) + ") _arguments '--help[show options and examples]'";
        for (const auto& o : options_of(c)) {
            by_command += " '--" + std::string(o.name) + '[' + zsh_text(o.help) + ']';
            by_command += o.value.empty() ? "" : ":" + std::string(o.value) + ':';
            by_command += o.choices.empty() ? "" : '(' + std::string(o.choices) + ')';
            by_command += '\'';
        }
        by_command += c.words == takes::shell ? " '1:shell:(bash zsh)' ;;\n" : " '*:file:_files' ;;\n";
    }
    return "#compdef vouch\n_vouch() {\n    local -a commands\n    commands=(\n" + commands +
           "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n" +
           by_command + "    esac\n}\n_vouch \"$@\"\n";
}

inline int completion(const arguments& with) {
    if (with.word != "bash" && with.word != "zsh") {
        throw bad_usage("completion needs bash or zsh");
    }
    print(with.word == "bash" ? bash_completion() : zsh_completion());
    return done;
}

} // namespace tool
