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
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock,
                                       .ids = vouch::counting_ids{},
                                       .bindings = vouch::bindings{}.bind("user.*", "mail").bind("#", "archive")});

    vouch::router mail(outbox);
    mail.on("user.created", [&](vouch::delivery& d) {
        say("mail", d);
        d.emit({.topic = "user.welcomed", .payload = d.payload()}); // in the same commit as this entry's success
    });
    mail.on("user.*", [&](vouch::delivery& d) { say("mail", d); }); // less specific: gets the rest

    vouch::router archive(outbox);
    archive.on("#", [&](vouch::delivery& d) { say("archive", d); });

    outbox.emit({.topic = "user.created", .payload = "ada"});
    const vouch::tracking scope(outbox); // a trail of its own for whatever is emitted from here on
    outbox.emit({.topic = "order.placed", .payload = "no. 7"});

    vouch::runner mail_runner(outbox, mail, {.queue = "mail"});
    vouch::runner archive_runner(outbox, archive, {.queue = "archive"});
    mail_runner.run_until_idle();
    archive_runner.run_until_idle();
}
