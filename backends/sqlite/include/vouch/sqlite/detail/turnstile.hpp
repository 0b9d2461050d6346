// SPDX-License-Identifier: MIT
// The queue of processes that want SQLite's write lock. SQLite has no queue: the process that looks at the right moment
// gets the lock, most often the one that has just released it. On a slow disk another process may then wait until
// `busy`.
//
// The queue is an empty file beside the database, `NAME-turn`. A place in the queue is a lock on one byte of it. A
// process takes the byte after all locked ones; the lowest is next. So a later process never overtakes an earlier one.
// If there is no queue, a process asks for SQLite's lock at once, and queues if the lock is taken. A process that had
// its turn may come back without queueing for a few milliseconds, as long as the lock is free, because handing it over
// takes longer than a quick commit. The operating system releases the places of processes that die.
//
// The queue only orders; SQLite's lock protects. On systems without open file description locks, processes do not
// queue.
//
// The file has the mode of the database, and its owner if root creates it, so that every user who may write the
// database may also queue. A process that may only read the file queues with read locks. If the file cannot be opened,
// that is an error: a process that does not queue would overtake others, and be overtaken.
//
// Used by one thread at a time.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vouch/version.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class turnstile {
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds turn_length{5};

  public:
    turnstile() noexcept = default;

    /// The queue of the database at this path. Throws if it cannot be opened.
    explicit turnstile(const std::string& database) {
#if defined(F_OFD_SETLK)
        struct stat like {};
        if (::stat(database.c_str(), &like) != 0) {
            return; // SQLite reports the error
        }
        const auto name = database + "-turn";
        int failed = open_like(name, like);
        if (failed == EACCES && ::unlink(name.c_str()) == 0) {
            failed = open_like(name, like); // another user left a file that only that user can open
        }
        if (failed != 0) {
            throw_cannot_open(failed);
        }
#else
        static_cast<void>(database);
#endif
    }
    turnstile(turnstile&& other) noexcept { *this = std::move(other); }
    turnstile& operator=(turnstile&& other) noexcept {
        std::swap(file_, other.file_);
#if defined(F_OFD_SETLK)
        std::swap(place_lock_, other.place_lock_);
#endif
        std::swap(place_, other.place_);
        std::swap(is_approaching_, other.is_approaching_);
        std::swap(turn_until_, other.turn_until_);
        return *this;
    }
    ~turnstile() {
        if (file_ >= 0) {
            ::close(file_);
        }
    }

    /// Call it before asking for the lock. Takes a place if there is a queue, unless the last turn is not over yet.
    void approach() noexcept {
        is_approaching_ = true;
#if defined(F_OFD_SETLK)
        if (file_ >= 0 && clock::now() >= turn_until_ && first_taken(1, 0) != 0) {
            line_up();
        }
#endif
    }

    /// Takes the last place, if `approach` was called and there is no place yet.
    void line_up() noexcept {
#if defined(F_OFD_SETLK)
        if (file_ < 0 || !is_approaching_ || place_ != 0) {
            return;
        }
        for (int tries = 0; tries < 1000; ++tries) { // another process may take the same place first
            auto last = std::int64_t{0};
            while (const auto next = first_taken(last + 1, 0)) {
                last = next;
            }
            if (lock(place_lock_, last + 1)) {
                if (first_taken(last + 1, 1) == 0) {
                    place_ = last + 1;
                    return;
                }
                lock(F_UNLCK, last + 1); // two processes may have a read lock
            }
        }
#endif
    }

    /// Whether no other process is earlier in the queue. True without a place.
    [[nodiscard]] bool is_next() const noexcept {
#if defined(F_OFD_SETLK)
        return place_ <= 1 || first_taken(1, place_ - 1) == 0;
#else
        return true;
#endif
    }

    /// Call it with the lock, or after giving up. Gives up the place.
    void leave(bool has_lock) noexcept {
        is_approaching_ = false;
#if defined(F_OFD_SETLK)
        if (place_ != 0) {
            lock(F_UNLCK, std::exchange(place_, 0));
            turn_until_ = has_lock ? clock::now() + turn_length : clock::time_point{};
        }
#else
        static_cast<void>(has_lock);
#endif
    }

  private:
#if defined(F_OFD_SETLK)
    /// Opens the file, or creates it with the mode and owner of the database. Returns 0 or an errno.
    [[nodiscard]] int open_like(const std::string& name, const struct stat& like) noexcept {
        constexpr auto readable_and_writable = 0666U;
        constexpr int flags = O_CLOEXEC | O_NOFOLLOW;
        constexpr auto unchanged = static_cast<uid_t>(-1);
        const auto mode = static_cast<mode_t>(like.st_mode & readable_and_writable);
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | flags, mode);
        if (file_ >= 0) {
            // If one of these fails, other users can still read the file, or get an error.
            static_cast<void>(::fchown(file_, ::geteuid() == 0 ? like.st_uid : unchanged, like.st_gid) == 0);
            static_cast<void>(::fchmod(file_, mode));
            return 0;
        }
        place_lock_ = F_WRLCK;
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | flags, mode);
        if (file_ < 0) {
            place_lock_ = F_RDLCK;
            file_ = ::open(name.c_str(), O_RDONLY | flags);
        }
        return file_ < 0 ? errno : 0;
    }
#endif

#if defined(F_OFD_SETLK)
    [[noreturn]] static void throw_cannot_open(int code) {
        const bool is_forbidden = code == EACCES || code == EPERM || code == EROFS;
        throw error(
            is_forbidden ? error_kind::read_only : error_kind::io,
            "sqlite: begin: the file in which writers queue, the database's name followed by -turn, cannot be opened "
            "(errno " +
                std::to_string(code) + "); give it the mode and owner of the database, or delete it");
    }

    /// The first place from `from` on that another process has taken, among `many` (0: all); 0 if there is none.
    [[nodiscard]] std::int64_t first_taken(std::int64_t from, std::int64_t many) const noexcept {
        auto asked = range(F_WRLCK, from, many);
        return ::fcntl(file_, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK ? asked.l_start : 0;
    }
    bool lock(short how, std::int64_t place) const noexcept { // NOLINT(google-runtime-int): flock's type
        auto wanted = range(how, place, 1);
        return ::fcntl(file_, F_OFD_SETLK, &wanted) == 0;
    }
    [[nodiscard]] static struct flock range(short how, std::int64_t from, std::int64_t many) noexcept { // NOLINT
        struct flock out {};
        out.l_type = how;
        out.l_whence = SEEK_SET;
        out.l_start = from;
        out.l_len = many;
        return out;
    }
#endif

    int file_ = -1;
#if defined(F_OFD_SETLK)
    short place_lock_ = F_WRLCK; // NOLINT(google-runtime-int): flock's type
#endif
    std::int64_t place_ = 0; ///< 0: none
    bool is_approaching_ = false;
    clock::time_point turn_until_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
