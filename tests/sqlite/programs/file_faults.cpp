// SPDX-License-Identifier: MIT
// A worker meets faults of its SQLite file: the disk is full; the file is locked, read-only, corrupt or deleted. Each
// time the error names the fault, no committed entry is lost, and no entry is handled twice. When the fault is gone the
// worker continues: by itself if waiting helps, or when it is run again if a person had to repair something.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

using namespace std::chrono_literals;
using namespace worker_program;
using vouch::error_kind;
using vouch::state;
using vouch::sqlite::store;

namespace {

const std::string queue = "q";

/// Counts the store errors it observes.
class error_watch {
  public:
    void on(const vouch::event& e) noexcept {
        if (e.what == vouch::event_kind::store_error) {
            const std::lock_guard lock(mutex_);
            seen_[std::string(e.error)] += 1;
        }
    }
    [[nodiscard]] std::size_t count(error_kind kind) const {
        const std::lock_guard lock(mutex_);
        const auto found = seen_.find(std::string(name_of(kind)));
        return found == seen_.end() ? 0 : found->second;
    }

  private:
    mutable std::mutex mutex_;
    std::map<std::string, std::size_t> seen_{};
};

template <class Predicate>
[[nodiscard]] bool eventually(Predicate&& p) {
    for (int i = 0; i < 20'000; ++i) {
        if (p()) {
            return true;
        }
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

/// A producer and a worker on one file.
class workload {
  public:
    explicit workload(const std::string& path)
        : store_(path, {.busy_limit = 150ms}),
          worker_(outbox_, {.poll_interval = 20ms, .store_backoff = {.base = 5ms, .max = 50ms}}) {
        routes_.on("t", [this](vouch::delivery& d) {
            const std::lock_guard lock(mutex_);
            calls_[d.payload()] += 1;
        });
        worker_.serve(routes_, {.queue = queue, .lease = 10s});
        worker_.observe(errors_);
    }
    ~workload() { stop_.request_stop(); }

    [[nodiscard]] error_watch& errors() noexcept { return errors_; }
    [[nodiscard]] store& file() noexcept { return store_; }

    /// Emits an entry. Returns the error, if any. A committed entry is expected to be handled in the end.
    std::optional<vouch::error> produce(std::size_t payload_size = 10) {
        const auto name = std::to_string(next_++);
        try {
            outbox_.emit({.queue = queue, .topic = "t", .payload = name + std::string(payload_size, ' ')});
            committed_.push_back(name + std::string(payload_size, ' '));
            return std::nullopt;
        } catch (const vouch::error& e) {
            return e;
        }
    }
    void produce_many(int count) {
        for (int i = 0; i < count; ++i) {
            expect(!produce(), "emit works before the fault");
        }
    }

    /// Runs the worker on another thread.
    void start() {
        stop_ = {};
        ended_ = false;
        thread_ = std::jthread([this] {
            try {
                worker_.run(stop_.get_token());
            } catch (const vouch::error& e) {
                thrown_ = e;
            }
            ended_ = true;
        });
    }
    void stop() {
        stop_.request_stop();
        thread_.join();
    }
    /// Waits until the worker ends by itself. Returns the error it threw.
    [[nodiscard]] std::optional<vouch::error> wait() {
        expect(eventually([&] { return ended_.load(); }), "the worker ends by itself");
        stop();
        return std::exchange(thrown_, std::nullopt);
    }

    [[nodiscard]] bool is_running() const { return !ended_; }

    [[nodiscard]] std::size_t handled() {
        const std::lock_guard lock(mutex_);
        return calls_.size();
    }
    [[nodiscard]] bool all_is_done() {
        return eventually([&] { return handled() == committed_.size(); });
    }
    /// After the fault: every committed entry has been handled exactly once.
    void check(const char* what) {
        expect(all_is_done(), what);
        expect(eventually([&] { return store_.counts(queue)[state::succeeded] == committed_.size(); }), what);
        const std::lock_guard lock(mutex_);
        for (const auto& payload : committed_) {
            expect(calls_[payload] == 1, what);
        }
    }

    [[nodiscard]] std::size_t committed() const { return committed_.size(); }

  private:
    store store_;
    vouch::outbox<store> outbox_{store_};
    vouch::router<store> routes_{outbox_};
    error_watch errors_{};
    vouch::worker<store> worker_;
    std::mutex mutex_{};
    std::map<std::string, int> calls_{};
    std::vector<std::string> committed_{};
    int next_ = 0;
    std::stop_source stop_{};
    std::atomic<bool> ended_ = true;
    std::optional<vouch::error> thrown_{};
    std::jthread thread_{};
};

void print_error(const char* fault, const vouch::error& e) {
    std::printf("%-10s %s: %s\n", fault, name_of(e.kind()).data(), e.what());
}

/// Mounts a disk of two megabytes in a private mount namespace. Returns false if this machine does not allow it.
[[nodiscard]] bool mount_small_disk(const std::string& at) {
    std::filesystem::create_directory(at);
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return false;
    }
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", at.c_str(), "tmpfs", 0, "size=2m") == 0;
}

void full_disk(const std::string& folder) {
    if (!mount_small_disk(folder)) {
        std::printf("full       SKIPPED: this machine does not allow mounting a small disk\n");
        return;
    }
    const auto ballast = folder + "/ballast";
    const auto fill = [&](std::size_t blocks) {
        std::ofstream file(ballast, std::ios::binary | std::ios::app);
        const std::string block(4096, 'x');
        for (std::size_t i = 0; i < blocks && file.write(block.data(), 4096).flush(); ++i) {
        }
    };
    fill(256); // half of it
    workload b(folder + "/work.db");
    b.start();
    b.produce_many(20);
    expect(b.all_is_done(), "entries are handled before the fault");
    b.stop();
    std::optional<vouch::error> wrong;
    for (std::size_t i = 0; i < 1000 && !wrong; ++i) {
        wrong = b.produce(20'000);
    }
    expect(wrong && wrong->kind() == error_kind::full, "a full disk is reported as full");
    expect(wrong && !wrong->is_in_doubt(), "the failed commit is not in doubt");
    if (wrong) {
        print_error("full", *wrong);
    }
    fill(1024); // leaves no room for the worker either
    for (std::size_t i = 0; i < 1000 && !b.produce(); ++i) {
        // uses up the room in the log that was too small for a larger commit
    }
    b.start();
    expect(eventually([&] { return b.errors().count(error_kind::full) > 2; }), "the worker reports a full disk");
    expect(b.is_running(), "the worker keeps trying while the disk is full");
    const auto seen = b.errors().count(error_kind::full);
    std::filesystem::remove(ballast);
    b.check("every committed entry is handled once when there is room again");
    std::printf("           %zu entries committed, all handled once; the worker reported the full disk %zu times\n",
                b.committed(), seen);
    b.stop();
}

void locked_file(const std::string& folder) {
    const auto path = folder + "/work.db";
    workload b(path);
    b.produce_many(20);
    sqlite3* other = nullptr;
    sqlite3_open(path.c_str(), &other);
    sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    b.start();
    const auto wrong = b.produce();
    expect(wrong && wrong->kind() == error_kind::busy, "a locked file is reported as busy");
    if (wrong) {
        print_error("locked", *wrong);
    }
    expect(eventually([&] { return b.errors().count(error_kind::busy) > 1; }), "the worker reports a busy file");
    expect(b.is_running(), "the worker keeps trying while the file is locked");
    sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
    sqlite3_close(other);
    b.check("every committed entry is handled once when the lock is released");
    b.stop();
}

void deleted_file(const std::string& folder) {
    const auto path = folder + "/work.db";
    workload b(path);
    b.start();
    b.produce_many(20);
    expect(b.all_is_done(), "entries are handled before the fault");
    b.stop();
    b.produce_many(20);
    std::filesystem::rename(path, path + ".elsewhere");
    b.start();
    const auto wrong = b.produce();
    expect(wrong && wrong->kind() == error_kind::io, "a missing file is an error, although SQLite would continue");
    if (wrong) {
        print_error("deleted", *wrong);
    }
    expect(eventually([&] { return b.errors().count(error_kind::io) > 1; }), "the worker reports the missing file");
    expect(b.is_running(), "the worker keeps trying while the file is missing");
    expect(!std::filesystem::exists(path), "no empty file is created in its place");
    std::filesystem::rename(path + ".elsewhere", path);
    b.check("every committed entry is handled once when the file is back");

    // A copy restored from a backup is another file at the same path.
    b.stop();
    b.produce_many(20);
    sqlite3* other = nullptr;
    sqlite3_open(path.c_str(), &other);
    const auto copied = sqlite3_exec(other, ("VACUUM INTO '" + path + ".backup'").c_str(), nullptr, nullptr, nullptr);
    expect(copied == SQLITE_OK, "the file can be copied");
    sqlite3_close(other);
    for (const auto* const suffix : {"", "-wal", "-shm"}) {
        std::filesystem::remove(path + suffix);
    }
    std::filesystem::rename(path + ".backup", path);
    b.start();
    b.check("every committed entry is handled once from a restored copy");
    b.stop();
}

void read_only_file(const std::string& folder) {
    if (geteuid() == 0) { // permissions do not stop root
        const auto above = std::filesystem::path(folder).parent_path();
        expect(chmod(above.c_str(), 0755) == 0 && chown(folder.c_str(), 65534, 65534) == 0 && setgid(65534) == 0 &&
                   setuid(65534) == 0,
               "the process changes to another user");
    }
    const auto path = folder + "/work.db";
    {
        workload before(path);
        before.produce_many(20);
        chmod(path.c_str(), 0444);
    }
    workload b(path);
    const auto wrong = b.produce();
    expect(wrong && wrong->kind() == error_kind::read_only, "a read-only file is reported as read-only");
    b.start();
    const auto thrown = b.wait();
    expect(thrown && thrown->kind() == error_kind::read_only, "the worker stops with the read-only error");
    if (thrown) {
        print_error("read-only", *thrown);
    }
    for (const auto* const suffix : {"", "-wal", "-shm"}) {
        chmod((path + suffix).c_str(), 0644);
    }
    b.start(); // the same worker, the same store
    expect(eventually([&] { return b.handled() == 20; }), "the worker continues when it is run again");
    expect(!b.produce(11), "the producer continues, too"); // with a longer payload than before
    expect(eventually([&] { return b.handled() == 21; }), "the worker handles the new entry");
    b.stop();
    expect(b.file().counts(queue)[state::succeeded] == 21, "every entry is stored as succeeded");
}

void corrupt_file(const std::string& folder) {
    const auto path = folder + "/work.db";
    const auto good = folder + "/good.db";
    {
        workload before(path);
        before.produce_many(20);
    }
    std::filesystem::copy_file(path, good);
    const auto size = std::filesystem::file_size(path);
    const auto scribble = [&](std::streamoff from, std::size_t bytes) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(from).write(std::string(bytes, '\x5a').data(), static_cast<std::streamsize>(bytes));
    };
    scribble(4096, static_cast<std::size_t>(size) - 4096); // all but the first page, which holds the schema
    {
        std::optional<vouch::error> thrown;
        try {
            workload b(path);
            b.start();
            thrown = b.wait();
        } catch (const vouch::error& e) {
            thrown = e; // detected when the file was opened
        }
        expect(thrown && thrown->kind() == error_kind::corrupt, "overwritten pages are reported as corrupt");
        if (thrown) {
            print_error("corrupt", *thrown);
        }
    }
    scribble(0, 4096);
    std::optional<vouch::error> refused;
    try {
        const store opened(path);
    } catch (const vouch::error& e) {
        refused = e;
    }
    expect(refused && refused->kind() == error_kind::corrupt,
           "a file that is not a database is refused when it is opened");
    for (const auto* const suffix : {"-wal", "-shm"}) {
        std::filesystem::remove(path + suffix);
    }
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    workload b(path);
    b.start();
    expect(eventually([&] { return b.file().counts(queue)[state::succeeded] == 20; }),
           "every entry of the good copy is handled");
    b.stop();
}

} // namespace

int main() {
    const std::array<std::pair<const char*, void (*)(const std::string&)>, 5> faults{{{"full", full_disk},
                                                                                      {"locked", locked_file},
                                                                                      {"deleted", deleted_file},
                                                                                      {"read-only", read_only_file},
                                                                                      {"corrupt", corrupt_file}}};
    for (const auto& [name, fault] : faults) {
        const sqlite_test::folder in;
        const auto place = in.file(name);
        child alone([&, fault = fault] {
            failures = 0;
            std::filesystem::create_directories(place);
            fault(place);
            return failures == 0 ? 0 : 1;
        });
        const auto ended = alone.wait();
        expect(ended.code == 0, name);
    }
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
