// SPDX-License-Identifier: MIT
// `vouch`, a command-line tool for operators of an application that keeps its work in a store. It shows which entries
// wait and why, and changes them through the store's public contract, while workers are running.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "output.hpp"
#include "serve.hpp"
#include "stores.hpp"
#include "usage.hpp"

namespace {

int run(const tool::arguments& with) {
    if (with.verb.empty() || with.verb == "help") {
        tool::print(tool::help);
        return with.verb.empty() ? tool::usage : tool::done;
    }
    if (with.verb == "roles") {
        return tool::roles(with);
    }
    if (with.verb == "schema" && with.location.empty()) {
        tool::print(tool::store_named(with.store_name).schema(with.prefix));
        return tool::done;
    }
    tool::expect_complete(with);
    return tool::store_at(with.location).run(with);
}

} // namespace

int main(int argc, char** argv) {
    // Even a path may contain control characters.
    const auto failed = [](const std::exception& e, const char* more, int code) {
        std::fprintf(stderr, "vouch: %s%s\n", tool::plain(e.what()).c_str(), more);
        return code;
    };
    try {
        const std::vector<std::string> words(argv + 1, argv + argc);
        const int code = !words.empty() && words.front() == "serve"
                             ? tool::serve(tool::serve_request_of({words.begin() + 1, words.end()}))
                             : run(tool::parse(words));
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
