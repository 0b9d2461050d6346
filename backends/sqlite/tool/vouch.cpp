// SPDX-License-Identifier: MIT
// `vouch`, a command-line tool for operators of an application that keeps its work in a SQLite file. It shows which
// entries wait and why, and changes them through the store's public contract, while workers are running.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "database.hpp"
#include "output.hpp"
#include "read_commands.hpp"
#include "requeue_all.hpp"
#include "write_commands.hpp"

namespace {

int run(const tool::arguments& with) {
    if (with.verb.empty() || with.verb == "help") {
        tool::print(tool::help);
        return with.verb.empty() ? tool::usage : tool::done;
    }
    if (with.verb == "schema") {
        return tool::schema(with);
    }
    struct verb {
        const char* name;
        int (*run)(tool::database&, const tool::arguments&);
        bool has_id;
    };
    constexpr verb verbs[] = {{"stats", tool::stats, false},  {"list", tool::list, false},
                              {"show", tool::show, true},     {"retry", tool::retry, true},
                              {"cancel", tool::cancel, true}, {"requeue", tool::requeue, true},
                              {"purge", tool::purge, false}};
    if (with.verb == "requeue" && with.entry_id.empty() && !with.file.empty()) {
        tool::expect_queue_and_error(with);
        tool::database in(with);
        return tool::requeue_all(in, with);
    }
    for (const auto& v : verbs) {
        if (with.verb == v.name) {
            if (with.file.empty() || v.has_id == with.entry_id.empty()) {
                throw tool::bad_usage(
                    with.verb + (v.has_id ? " needs a file and an entry's id" : " needs a file, and nothing else"));
            }
            if (v.has_id) {
                static_cast<void>(tool::entry_id_of(with));
            }
            tool::database in(with);
            return v.run(in, with);
        }
    }
    throw tool::bad_usage("unknown verb " + with.verb);
}

} // namespace

int main(int argc, char** argv) {
    // Even a path may contain control characters.
    const auto failed = [](const std::exception& e, const char* more, int code) {
        std::fprintf(stderr, "vouch: %s%s\n", tool::plain(e.what()).c_str(), more);
        return code;
    };
    try {
        const int code = run(tool::parse(std::vector<std::string>(argv + 1, argv + argc)));
        if (!tool::is_written()) {
            std::fprintf(stderr, "vouch: the output could not be written; the verb itself was executed\n");
            return code == tool::done ? tool::unwritten : code;
        }
        return code;
    } catch (const tool::bad_usage& e) {
        return failed(e, "; see `vouch help`", tool::usage);
    } catch (const vouch::error& e) {
        return failed(e, "", e.kind() == vouch::error_kind::invalid_argument ? tool::usage : tool::store_error);
    } catch (const std::exception& e) {
        return failed(e, "", tool::store_error);
    }
}
