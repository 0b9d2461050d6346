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
    const vouch::outbox outbox({.clock = clock,
                                .ids = vouch::counting_ids{},
                                .bindings = vouch::bindings{}.bind("user.*", "mail").bind("#", "archive")});
    vouch::memory::store store;
    using router = vouch::router<vouch::memory::store>;

    router mail;
    mail.on("user.created", [&](vouch::delivery& d) {
        say("mail", d);
        d.emit({.topic = "user.welcomed", .payload = d.payload()}); // stored in the transaction that settles this entry
    });
    mail.on("user.*", [&](vouch::delivery& d) { say("mail", d); }); // less specific: handles the other topics

    router archive;
    archive.on("#", [&](vouch::delivery& d) { say("archive", d); });

    vouch::transact(store, [&](auto& tx) {
        outbox.emit(tx, {.topic = "user.created", .payload = "ada"});
        outbox.emit(tx, {.topic = "order.placed", .payload = "no. 7"}, outbox.open_trail()); // starts a trail
    });

    vouch::runner mail_runner(store, outbox, mail, {.queue = "mail"});
    vouch::runner archive_runner(store, outbox, archive, {.queue = "archive"});
    mail_runner.run_until_idle();
    archive_runner.run_until_idle();
}
