// SPDX-License-Identifier: MIT
// Find out with the `vouch` tool why entries are stuck, and repair them.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

using namespace std::chrono_literals;
using database = vouch::sqlite::store;

namespace {

#ifndef VOUCH_TOOL
#define VOUCH_TOOL "vouch"
#endif

/// Runs a command and prints its output. Times differ in every run, so they are printed as <time>.
void type(const std::string& arguments, const std::string& file) {
    std::printf("\n$ vouch %s\n", arguments.c_str());
    std::fflush(stdout);
    auto command = arguments;
    command.replace(command.find("work.db"), 7, file);
    auto* const pipe = popen((VOUCH_TOOL " " + command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) {
        std::printf("(the command could not be run)\n");
        return;
    }
    std::string said;
    std::array<char, 1024> some{};
    while (std::fgets(some.data(), some.size(), pipe) != nullptr) {
        said += some.data();
    }
    const int status = pclose(pipe);
    std::printf("%s", std::regex_replace(said, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]*Z"), "<time>").c_str());
    if (status != 0) {
        std::printf("(exit %d)\n", WEXITSTATUS(status));
    }
}

/// Stores entries as an application would have left them three days and an hour ago.
void leave_work_behind(const std::string& file) {
    database work(file);
    const auto then = vouch::system_now() - 73h;
    const vouch::outbox outbox(work, {.clock = [then] { return then; }, .ids = vouch::counting_ids{}});
    vouch::router router(outbox);
    router.on("invoice.sent", [](vouch::delivery&) {});
    router.on("order.placed", [](vouch::delivery&) { throw vouch::reject("no_such_customer"); });
    vouch::runner runner(outbox, router, {.queue = "orders", .worker = "orders-1"});
    outbox.emit({{.queue = "orders", .topic = "invoice.sent"}, {.queue = "orders", .topic = "order.placed"}});
    runner.run_until_idle();
    outbox.emit({{.queue = "orders", .topic = "parcel.sent", .lane = "customer-7", .due_in = 24h * 30},
                 {.queue = "orders", .topic = "parcel.sent", .lane = "customer-7"}});
}

} // namespace

int main() {
    const auto folder = std::filesystem::temp_directory_path() / ("vouch-tour-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto file = (folder / "work.db").string();
    leave_work_behind(file);

    const std::string id = "00000000-0000-0000-0000-00000000000";
    type("stats work.db", file);
    type("list work.db --state dead", file);
    type("show work.db " + id + "2", file);
    type("requeue work.db " + id + "2 | sed 's/is .*/is <id>/'", file);
    type("why work.db " + id + "4", file);
    type("cancel work.db " + id + "3 < /dev/null", file);
    type("cancel work.db " + id + "3 --yes", file);
    type("why work.db " + id + "4", file);
    type("purge work.db --queue orders --older-than 2d --state succeeded --yes --json", file);
    std::filesystem::remove_all(folder);
}
