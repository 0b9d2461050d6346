// SPDX-License-Identifier: MIT
// The file in which processes queue up to write, made by one user and used by another.
#include <array>
#include <string>
#include <tuple>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"
#include "unit/support.hpp"

namespace sqlite_turnstile_test {

using namespace support;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::sqlite::store;
using vouch::sqlite::detail::turnstile;

namespace {

constexpr uid_t nobody = 65534;

/// Runs in a process of a user to whom permissions apply. Says whether `holds` did.
template <class Holds>
bool as_an_ordinary_user(Holds&& holds) {
    worker_program::child user([&] {
        if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) {
            return 2;
        }
        return holds() ? 0 : 1;
    });
    return user.wait().code == 0;
}

/// A folder and a database of that user's.
struct shared_place {
    folder in{};
    std::string path = in.fresh_path();

    shared_place() {
        { store made(path); }
        REQUIRE(chmod(path.c_str(), 0666) == 0);
        if (geteuid() == 0) {
            REQUIRE(chown(in.path().c_str(), nobody, nobody) == 0);
            REQUIRE(chown(path.c_str(), nobody, nobody) == 0);
        }
    }
    /// The queue's file, as another user left it.
    void leave_turn(mode_t mode) const {
        worker_program::child other([&] {
            store s(path);
            vouch::enqueue(s, std::array{draft_of(1)}, t0);
            return 0;
        });
        REQUIRE(other.wait().code == 0);
        REQUIRE(chmod((path + "-turn").c_str(), mode) == 0);
        if (geteuid() == 0) {
            REQUIRE(chown((path + "-turn").c_str(), 0, 0) == 0);
        }
    }
};

} // namespace

TEST_CASE("turn: the queue's file has the mode and the owner of the database, whatever the umask") {
    const shared_place at;
    const auto usual = umask(077);
    {
        store s(at.path);
        vouch::enqueue(s, std::array{draft_of(1)}, t0);
    }
    umask(usual);
    struct stat database {};
    struct stat turn {};
    REQUIRE(stat(at.path.c_str(), &database) == 0);
    REQUIRE(stat((at.path + "-turn").c_str(), &turn) == 0);
    CHECK((turn.st_mode & 0777U) == 0666U);
    CHECK(turn.st_uid == database.st_uid);
    CHECK(turn.st_gid == database.st_gid);
}

TEST_CASE("turn: who may only read the queue's file queues all the same") {
    const shared_place at;
    at.leave_turn(0444);
    CHECK(as_an_ordinary_user([&] {
        turnstile first(at.path);
        turnstile second(at.path);
        turnstile third(at.path);
        for (auto* const one : {&first, &second, &third}) {
            one->approach();
            one->line_up();
        }
        const bool in_order = first.is_next() && !second.is_next() && !third.is_next();
        first.leave(true);
        const bool is_handed_on = second.is_next() && !third.is_next();
        second.leave(true);
        return in_order && is_handed_on && third.is_next();
    }));
    CHECK(as_an_ordinary_user([&] {
        store s(at.path);
        return vouch::enqueue(s, std::array{draft_of(2)}, t0).front().what == vouch::receipt::kind::inserted;
    }));
}

TEST_CASE("turn: a queue's file that another user has left behind locked is replaced where the folder allows it") {
    const shared_place at;
    at.leave_turn(0);
    CHECK(as_an_ordinary_user([&] {
        store s(at.path);
        return vouch::enqueue(s, std::array{draft_of(2)}, t0).front().what == vouch::receipt::kind::inserted;
    }));
}

TEST_CASE("turn: a queue's file that can be neither opened nor replaced is an error that names it") {
    if (geteuid() != 0) {
        return; // it takes two users
    }
    const shared_place at;
    at.leave_turn(0);
    REQUIRE(chown(at.in.path().c_str(), 0, 0) == 0);
    REQUIRE(chmod(at.in.path().c_str(), 01777) == 0); // in which only owners remove
    CHECK(as_an_ordinary_user([&] {
        store s(at.path);
        const auto refused = error_of([&] { std::ignore = s.begin(); });
        return refused && refused->kind() == error_kind::read_only &&
               std::string(refused->what()).find("-turn") != std::string::npos && s.counts("q").total() == 1;
    }));
}

} // namespace sqlite_turnstile_test
