// SPDX-License-Identifier: MIT
// `vouch man`: the manual page, from the same tables as the help.
#pragma once

#include <string>
#include <string_view>

#include "../command.hpp"
#include "../options.hpp"
#include "../output.hpp"
#include "help.hpp"

namespace tool {

/// Text for roff: no sign of it has a meaning there.
[[nodiscard]] inline std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
            out += std::string("\\&") + c;
        } else {
            out += c;
        }
    }
    return out;
}

/// The text of a command, in which the lines of examples begin with spaces.
[[nodiscard]] inline std::string roff_paragraphs(std::string_view text) {
    std::string out;
    bool is_example = false;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.starts_with("  ") != is_example) {
            is_example = !is_example;
            out += is_example ? ".PP\n.nf\n.RS\n" : ".RE\n.fi\n.PP\n";
        }
        out += roff(is_example ? line.substr(2) : line) + "\n";
    }
    return out + (is_example ? ".RE\n.fi\n" : "");
}

[[nodiscard]] inline std::string manual() {
    std::string out = ".TH VOUCH 1 \"\" \"vouch " + version_text() + "\" \"User Commands\"\n" +
                      ".SH NAME\nvouch \\- inspect and repair the work in a store\n" +
                      ".SH SYNOPSIS\n.B vouch\n.I COMMAND\n[\\fISTORE\\fR] [\\fIID\\fR] [\\fIOPTION\\fR...]\n" +
                      ".SH DESCRIPTION\n" + roff(about_stores) + "\n.SH COMMANDS\n";
    for (const auto& c : all_commands()) {
        out += ".SS \"" + roff(usage_of(c)) + "\"\n" + roff(c.summary) + ".\n";
        out += c.more.empty() ? "" : ".PP\n" + roff_paragraphs(c.more);
        for (const auto& o : options_of(c)) {
            out += ".TP\n.B " + roff(option_name(o)) + "\n" + roff(o.help) + "\n";
        }
    }
    return out + ".SH EXIT STATUS\n" + roff(about_exit_codes) +
           "\n.SH ENVIRONMENT\n.TP\n.B VOUCH_STORE\nthe store, if the command line names none\n.TP\n.B NO_COLOR\nif it "
           "is set and not empty, nothing is coloured\n";
}

inline int man(const arguments&) {
    print(manual());
    return done;
}

} // namespace tool
