// SPDX-License-Identifier: MIT
// The command line: a command, its words and its options. CLI11 takes it apart; the tables say what there is.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "command_line.hpp"
#include "verbs/help.hpp"

namespace tool {

namespace {

[[nodiscard]] bool takes_store(takes words) {
    return words == takes::store || words == takes::store_and_id || words == takes::store_and_maybe_id ||
           words == takes::store_and_file;
}

[[nodiscard]] bool looks_like_an_id(std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos;
}

/// Takes the store from the words, or from VOUCH_STORE if they name none.
void take_store(arguments& to, const command& of, std::vector<std::string>& words) {
    const char* const from_environment = std::getenv("VOUCH_STORE");
    const bool has_default = from_environment != nullptr && *from_environment != '\0';
    const bool is_id_alone = words.size() == 1 && of.words == takes::store_and_maybe_id && looks_like_an_id(words[0]);
    const bool is_last_alone =
        words.size() == 1 && (of.words == takes::store_and_id || of.words == takes::store_and_file);
    if (has_default && (words.empty() || is_id_alone || is_last_alone)) {
        to.location = from_environment;
    } else if (!words.empty()) {
        to.location = words.front();
        words.erase(words.begin());
    }
    if (to.location.empty()) {
        throw bad_usage(std::string(of.name) + " needs a store, or the environment variable VOUCH_STORE");
    }
}

void take_words(arguments& to, const command& of, std::vector<std::string> words) {
    if (takes_store(of.words)) {
        take_store(to, of, words);
    } else if (of.words == takes::maybe_store && !words.empty()) {
        to.location = words.front();
        words.erase(words.begin());
    }
    const bool needs_one =
        of.words == takes::store_and_id || of.words == takes::store_and_file || of.words == takes::shell;
    const bool takes_one = needs_one || of.words == takes::store_and_maybe_id || of.words == takes::maybe_command;
    if (words.size() > (takes_one ? 1U : 0U)) {
        throw bad_usage("too many arguments: " + words.back());
    }
    if (words.empty() && needs_one) {
        throw bad_usage(std::string(of.name) + " needs " + std::string(words_of(of.words)));
    }
    const bool is_id = of.words == takes::store_and_id || of.words == takes::store_and_maybe_id;
    (is_id ? to.entry_id : to.word) = words.empty() ? std::string() : words.front();
}

} // namespace

arguments parse(const std::vector<std::string>& words) {
    arguments out;
    if (words.empty()) {
        return out;
    }
    const auto& name = words.front();
    out.verb = name == "--help" || name == "-h" ? "help" : name == "--version" ? "version" : name;
    const auto& of = command_named(out.verb);

    CLI::App app;
    app.set_help_flag();
    bool wants_help = false;
    app.add_flag("-h,--help", wants_help);
    std::vector<std::string> plain_words;
    app.add_option("words", plain_words);
    for (const auto& o : options_of(of)) {
        const auto dashed = "--" + std::string(o.name);
        if (o.value.empty()) {
            app.add_flag_callback(dashed, [&out, set = o.set] { set(out, {}); });
        } else {
            app.add_option_function<std::vector<std::string>>(dashed,
                                                              [&out, set = o.set](const std::vector<std::string>& all) {
                                                                  for (const auto& value : all) {
                                                                      set(out, value);
                                                                  }
                                                              })
                ->allow_extra_args(false)
                ->expected(1)
                ->multi_option_policy(o.is_repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                      : CLI::MultiOptionPolicy::Throw);
        }
    }
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1)); // CLI11 wants them reversed
    } catch (const CLI::ExtrasError&) {
        const auto unknown = std::find_if(words.begin() + 1, words.end(), [&](const std::string& word) {
            return word.starts_with('-') && app.get_option_no_throw(word.substr(0, word.find('='))) == nullptr;
        });
        throw bad_usage("unknown option" + (unknown == words.end() ? std::string() : ' ' + *unknown));
    } catch (const CLI::ArgumentMismatch& e) {
        const std::string what = e.what();
        throw bad_usage(what.substr(0, what.find(':')) + " needs one value");
    } catch (const CLI::ParseError& e) {
        throw bad_usage(e.what());
    }
    if (wants_help) {
        out = {};
        out.word = of.name;
        out.verb = "help";
        return out;
    }
    take_words(out, of, std::move(plain_words));
    return out;
}

} // namespace tool
