// SPDX-License-Identifier: MIT
// One event reaches every queue that is bound to its topic. The trail of an entry lists the emissions that led to it.
#include <cstdio>
#include <string>

#include <vouch/vouch.hpp>

namespace {

/// Formats a trail: "1 > 2" means that emission 1 led to emission 2.
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
        d.emit({.topic = "user.welcomed", .payload = d.payload()}); // stored in the transaction that settles this entry
    });
    mail.on("user.*", [&](vouch::delivery& d) { say("mail", d); }); // less specific: handles the other topics

    vouch::router archive(outbox);
    archive.on("#", [&](vouch::delivery& d) { say("archive", d); });

    outbox.emit({.topic = "user.created", .payload = "ada"});
    const vouch::tracking scope(outbox); // starts a trail for everything emitted from here on
    outbox.emit({.topic = "order.placed", .payload = "no. 7"});

    vouch::runner mail_runner(outbox, mail, {.queue = "mail"});
    vouch::runner archive_runner(outbox, archive, {.queue = "archive"});
    mail_runner.run_until_idle();
    archive_runner.run_until_idle();
}
