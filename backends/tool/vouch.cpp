// SPDX-License-Identifier: MIT
// `vouch`, a command-line tool for operators of an application that keeps its work in a store. It shows which entries
// wait and why, and changes them through the store's public contract, while workers are running.
#include <exception>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "output.hpp"
#include "stores.hpp"
#include "verbs/help.hpp"

namespace {

int run(const tool::arguments& with) {
    if (with.verb.empty()) {
        tool::print(tool::help_of_all());
        return tool::usage;
    }
    const auto& command = tool::command_named(with.verb);
    if (command.run == nullptr || (command.run_alone != nullptr && with.location.empty())) {
        return command.run_alone(with);
    }
    const auto in = tool::store_at(with.location).open(with);
    if (const auto code = in->run_on_older_schema(with)) {
        return *code;
    }
    return command.run(*in, with);
}

} // namespace

int main(int argc, char** argv) {
    // Even a path may contain control characters.
    const auto failed = [](const std::exception& e, const std::string& more, int code) {
        tool::say(tool::plain(e.what()) + more);
        return code;
    };
    std::string verb;
    try {
        const auto with = tool::parse(std::vector<std::string>(argv + 1, argv + argc));
        verb = with.verb;
        const int code = run(with);
        if (!tool::is_written()) {
            tool::say("the output could not be written; the verb itself was executed");
            return code == tool::done ? tool::unwritten : code;
        }
        return code;
    } catch (const tool::bad_usage& e) {
        return failed(e, verb.empty() ? "; see `vouch help`" : "; see `vouch help " + verb + '`', tool::usage);
    } catch (const tool::failure& e) {
        return failed(e, "", e.code());
    } catch (const vouch::error& e) {
        return failed(e, "", e.kind() == vouch::error_kind::invalid_argument ? tool::usage : tool::store_error);
    } catch (const std::exception& e) {
        return failed(e, "", tool::store_error);
    }
}
