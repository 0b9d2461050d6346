// SPDX-License-Identifier: MIT
// Where processes queue up before they ask SQLite for the write lock. SQLite has no queue of its own: whoever looks at
// the right moment gets the lock, most of all the process that has just given it back. On a disk that takes its time
// somebody is then passed over until `busy`.
//
// The queue is an empty file beside the database, `NAME-turn`: a place in it is the lock of one byte, a newcomer takes
// the byte behind all that are taken, and the lowest is next. So nobody who has a place is passed by one who comes
// later. Who finds no queue asks for the lock at once, and lines up if somebody has it. Who had its turn may come back
// without queueing for a few milliseconds more, as long as it finds the lock free: handing it over takes longer than a
// quick commit. The system frees the places of processes that die. This orders, it does not protect: SQLite's lock
// does. Where the system has no such locks, no process queues.
//
// The file has the mode of the database, and its owner if root makes it, so that who may write the one may write the
// other. Who may only read it queues with read locks. Where it cannot be opened at all, that is an error: who does not
// queue is passed over by those who do, and passes over them.
//
// One thread's at a time.
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

    /// For the database at this path. Throws if its queue cannot be opened.
    explicit turnstile(const std::string& database) {
#if defined(F_OFD_SETLK)
        struct stat like {};
        if (::stat(database.c_str(), &like) != 0) {
            return; // SQLite will say so
        }
        const auto name = database + "-turn";
        int failed = open_like(name, like);
        if (failed == EACCES && ::unlink(name.c_str()) == 0) {
            failed = open_like(name, like); // another user had left one behind that no other user can open
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

    /// On the way to the lock: takes a place if there is a queue, unless its turn is not over.
    void approach() noexcept {
        is_approaching_ = true;
#if defined(F_OFD_SETLK)
        if (file_ >= 0 && clock::now() >= turn_until_ && first_taken(1, 0) != 0) {
            line_up();
        }
#endif
    }

    /// Takes the place behind all others, if it is on the way and has none.
    void line_up() noexcept {
#if defined(F_OFD_SETLK)
        if (file_ < 0 || !is_approaching_ || place_ != 0) {
            return;
        }
        for (int tries = 0; tries < 1000; ++tries) { // somebody else may take the same one first
            auto last = std::int64_t{0};
            while (const auto next = first_taken(last + 1, 0)) {
                last = next;
            }
            if (lock(place_lock_, last + 1)) {
                if (first_taken(last + 1, 1) == 0) {
                    place_ = last + 1;
                    return;
                }
                lock(F_UNLCK, last + 1); // two may have a read lock
            }
        }
#endif
    }

    /// Whether nobody is before it. One without a place waits for nobody.
    [[nodiscard]] bool is_next() const noexcept {
#if defined(F_OFD_SETLK)
        return place_ <= 1 || first_taken(1, place_ - 1) == 0;
#else
        return true;
#endif
    }

    /// It has the lock, or has given up.
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
    /// Opens the queue, or makes it with the mode and owner of the database. Gives 0, or the reason why not.
    [[nodiscard]] int open_like(const std::string& name, const struct stat& like) noexcept {
        constexpr auto readable_and_writable = 0666U;
        constexpr int flags = O_CLOEXEC | O_NOFOLLOW;
        constexpr auto stays = static_cast<uid_t>(-1);
        const auto mode = static_cast<mode_t>(like.st_mode & readable_and_writable);
        file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | flags, mode);
        if (file_ >= 0) {
            // Where one of these fails, others can still read the file, or say that they cannot.
            static_cast<void>(::fchown(file_, ::geteuid() == 0 ? like.st_uid : stays, like.st_gid) == 0);
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
            "sqlite: begin: the file in which writers queue, named as the database with -turn behind it, cannot "
            "be opened (errno " +
                std::to_string(code) + "); give it the mode and owner of the database, or delete it");
    }
    /// A place others have taken, of `many` from `from` on (0: all); 0 if there is none.
    [[nodiscard]] std::int64_t first_taken(std::int64_t from, std::int64_t many) const noexcept {
        auto asked = range(F_WRLCK, from, many);
        return ::fcntl(file_, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK ? asked.l_start : 0;
    }
    bool lock(short how, std::int64_t place) const noexcept { // NOLINT(google-runtime-int): flock's own
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
    short place_lock_ = F_WRLCK; // NOLINT(google-runtime-int): flock's own
#endif
    std::int64_t place_ = 0; ///< 0: none
    bool is_approaching_ = false;
    clock::time_point turn_until_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
