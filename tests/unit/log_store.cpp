// SPDX-License-Identifier: MIT
// How the store of examples/log_store handles disk errors, which the conformance suite cannot cause.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

#include "../../examples/log_store/log_store.hpp"
#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "support.hpp"

namespace log_store_test {

/// The fault of the next write: it writes `written` bytes, then fails with errno `code`, or is short if `code` is 0.
struct failing_write {
    std::size_t written;
    int code;
};
inline std::optional<failing_write> next_write;

} // namespace log_store_test

// Replaces the system's function in the whole program. It behaves normally unless `next_write` is set.
extern "C" ssize_t pwrite(int file, const void* from, std::size_t size, off_t at) {
    const auto fault = std::exchange(log_store_test::next_write, std::nullopt);
    const auto n = syscall(SYS_pwrite64, file, from, fault ? std::min(size, fault->written) : size, at);
    if (fault && fault->code != 0) {
        errno = fault->code;
        return -1;
    }
    return n;
}

namespace log_store_test {

using namespace support;
using vouch::error_kind;
using kind = vouch::receipt::kind;

namespace {

constexpr std::size_t everything = 1'000'000;

kind enqueue_in(log_store::store& store, std::uint64_t n) {
    auto tx = store.begin();
    const auto receipts = tx.enqueue(std::array{draft_of(n)}, t0);
    tx.commit();
    return receipts.front().what;
}

/// Requires that `f` throws a `vouch::error`, and returns it.
template <class F>
vouch::error error_of(F&& f) {
    try {
        f();
    } catch (const vouch::error& e) {
        return e;
    }
    FAIL("nothing was thrown");
    throw;
}

std::vector<std::uint64_t> stored(const log_store::store& store) {
    std::vector<std::uint64_t> out;
    for (const auto& e : store.list(vouch::query::all("q"))) {
        out.push_back(e.id.low);
    }
    return out;
}

} // namespace

TEST_CASE("log store: after a commit in doubt every call fails until the file is opened again") {
    const auto [written, took_effect] =
        GENERATE(table<std::size_t, bool>({{everything, true}, {0, false}, {20, false}}));
    CAPTURE(written);
    const sqlite_test::folder folder;
    {
        log_store::store store(folder.path() / "work.log");
        REQUIRE(enqueue_in(store, 1) == kind::inserted);
        auto tx = store.begin();
        std::ignore = tx.enqueue(std::array{draft_of(2)}, t0);
        next_write = failing_write{written, EIO};
        const auto thrown = error_of([&] { tx.commit(); });
        CHECK(thrown.kind() == error_kind::io);
        CHECK(thrown.is_in_doubt());
        CHECK(error_of([&] { tx.commit(); }).kind() == error_kind::misuse);

        // The disk works again, but its content is not known.
        const auto refuses = [](auto&& f) {
            const auto e = error_of(f);
            return e.kind() == error_kind::io && !e.is_in_doubt();
        };
        CHECK(refuses([&] { std::ignore = store.find(id_of(1)); }));
        CHECK(refuses([&] { std::ignore = store.find(id_of(2)); }));
        CHECK(refuses([&] { std::ignore = store.list(vouch::query::all("q")); }));
        CHECK(refuses([&] { std::ignore = store.counts("q"); }));
        CHECK(refuses([&] { std::ignore = store.next_due("q"); }));
        CHECK(refuses([&] { std::ignore = store.begin(); }));
        CHECK(refuses([&] { std::ignore = store.begin(); })); // the failed begin holds no lock
    }
    log_store::store store(folder.path() / "work.log");
    CHECK(store.find(id_of(1)));
    CHECK(store.find(id_of(2)).has_value() == took_effect);
    CHECK(enqueue_in(store, 2) == (took_effect ? kind::duplicate : kind::inserted));
    CHECK(stored(store) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("log store: a commit on a full disk throws full and stores nothing, and the store stays usable") {
    const auto [written, code] = GENERATE(table<std::size_t, int>({{20, 0}, {0, ENOSPC}, {everything, ENOSPC}}));
    CAPTURE(written, code);
    const sqlite_test::folder folder;
    {
        log_store::store store(folder.path() / "work.log");
        REQUIRE(enqueue_in(store, 1) == kind::inserted);
        next_write = failing_write{written, code};
        const auto thrown = error_of([&] { enqueue_in(store, 2); });
        CHECK(thrown.kind() == error_kind::full);
        CHECK_FALSE(thrown.is_in_doubt());
        CHECK(stored(store) == std::vector<std::uint64_t>{1});
        if (code == 0) {
            CHECK(enqueue_in(store, 3) == kind::inserted);
        }
    }
    log_store::store store(folder.path() / "work.log");
    CHECK(stored(store) == (code == 0 ? std::vector<std::uint64_t>{1, 3} : std::vector<std::uint64_t>{1}));
}

TEST_CASE("log store: after a crash at any byte of the file, exactly the complete commits are stored") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "work.log";
    std::vector<std::uintmax_t> ends;
    {
        log_store::store store(path, false);
        for (const std::uint64_t n : {1U, 2U, 3U}) {
            enqueue_in(store, n);
            ends.push_back(file_size(path));
        }
    }
    const auto cut = folder.path() / "cut.log";
    for (std::uintmax_t size = 0; size <= ends.back(); ++size) {
        CAPTURE(size);
        copy_file(path, cut, std::filesystem::copy_options::overwrite_existing);
        resize_file(cut, size);
        std::vector<std::uint64_t> expected;
        for (std::size_t i = 0; i < ends.size() && ends[i] <= size; ++i) {
            expected.push_back(i + 1);
        }
        {
            log_store::store store(cut, false);
            REQUIRE(stored(store) == expected);
            enqueue_in(store, 9);
        }
        expected.push_back(9);
        REQUIRE(stored(log_store::store(cut, false)) == expected);
    }
}

namespace {

std::string log_bytes(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_log(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

} // namespace

TEST_CASE("log store: a damaged byte before the last record is corrupt, and the file is not truncated") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "work.log";
    std::size_t last_begins = 0;
    {
        log_store::store store(path, false);
        for (const std::uint64_t n : {1U, 2U, 3U}) {
            last_begins = file_size(path);
            enqueue_in(store, n);
        }
    }
    const auto whole = log_bytes(path);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        CAPTURE(at, last_begins);
        auto damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
        write_log(path, damaged);
        if (at < last_begins) {
            REQUIRE(error_of([&] { log_store::store store(path, false); }).kind() == error_kind::corrupt);
            REQUIRE((log_bytes(path) == damaged));
        } else { // a crash can leave the file like this
            REQUIRE(stored(log_store::store(path, false)) == std::vector<std::uint64_t>{1, 2});
        }
    }
}

TEST_CASE("log store: a truncated record is not corrupt, even if its payload looks like a log") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "work.log";
    std::size_t last_begins = 0;
    {
        log_store::store store(path, false);
        enqueue_in(store, 1);
        enqueue_in(store, 2);
        last_begins = file_size(path);
        auto tx = store.begin();
        auto log_in_log = draft_of(3);
        log_in_log.payload = log_bytes(path);
        std::ignore = tx.enqueue(std::array{log_in_log}, t0);
        tx.commit();
    }
    const auto whole = log_bytes(path);
    for (auto size = last_begins; size < whole.size(); ++size) {
        CAPTURE(size);
        write_log(path, whole.substr(0, size));
        REQUIRE(stored(log_store::store(path, false)) == std::vector<std::uint64_t>{1, 2});
    }
}

TEST_CASE("log store: a file that is not a log is corrupt and is not changed") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "letter.txt";
    const std::string letter(500, 'x');
    write_log(path, letter);
    CHECK(error_of([&] { log_store::store store(path); }).kind() == error_kind::corrupt);
    CHECK(log_bytes(path) == letter);
}

TEST_CASE("log store: a file that is already open is busy, and can be opened after it is closed") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "work.log";
    {
        log_store::store store(path);
        CHECK(error_of([&] { log_store::store second(path); }).kind() == error_kind::busy);
        CHECK(enqueue_in(store, 1) == kind::inserted);
    }
    CHECK(stored(log_store::store(path)) == std::vector<std::uint64_t>{1});
}

TEST_CASE("log store: a full disk while opening loses no committed record") {
    const sqlite_test::folder folder;
    const auto path = folder.path() / "work.log";
    {
        log_store::store store(path, false);
        enqueue_in(store, 1);
        enqueue_in(store, 2);
    }
    for (const auto fault : {failing_write{0, ENOSPC}, failing_write{10, 0}}) {
        next_write = fault;
        CHECK_THROWS_AS(log_store::store(path, false), vouch::error);
        next_write.reset();
        CHECK(stored(log_store::store(path, false)) == std::vector<std::uint64_t>{1, 2});
    }
}

} // namespace log_store_test
