// SPDX-License-Identifier: MIT
// One event reaches every queue bound to it; follow-ups carry the trail of what led to them.
#include <cstdio>
#include <string>

#include <vouch/vouch.hpp>

namespace {

/// Counting ids read as a path: 1 > 2 means that emission 1 led to emission 2.
std::string path(const vouch::id_list& trail) {
    std::string out;
    for (const auto& id : trail) {
        out += (out.empty() ? "" : " > ") + std::to_string(id.low);
    }
    return out;
}

void say(const char* who, const vouch::delivery& d) {
    std::printf("%-8s %-16s %-6s trail %s\n", who, d.topic().c_str(), d.payload().c_str(), path(d.trail()).c_str());
}

} // namespace

int main() {
    const vouch::manual_clock clock;
    const vouch::outbox outbox(store, {.clock = clock,
                                .ids = vouch::counting_ids{},
                                .bindings = vouch::bindings{}.bind("user.*", "mail").bind("#", "archive")});
    vouch::memory::store store;
    using router = vouch::router<vouch::memory::store>;

    router mail;
    mail.on("user.created", [&](vouch::delivery& d) {
        say("mail", d);
        d.emit({.topic = "user.welcomed", .payload = d.payload()}); // in the same commit as this entry's success
    });
    mail.on("user.*", [&](vouch::delivery& d) { say("mail", d); }); // less specific: gets the rest

    router archive;
    archive.on("#", [&](vouch::delivery& d) { say("archive", d); });

    vouch::transact(store, [&](auto& tx) {
        outbox.emit(tx, {.topic = "user.created", .payload = "ada"});
        outbox.emit(tx, {.topic = "order.placed", .payload = "no. 7"}, outbox.open_trail()); // a trail of its own
    });

    vouch::runner mail_runner(outbox, mail, {.queue = "mail"});
    vouch::runner archive_runner(outbox, archive, {.queue = "archive"});
    mail_runner.run_until_idle();
    archive_runner.run_until_idle();
}
