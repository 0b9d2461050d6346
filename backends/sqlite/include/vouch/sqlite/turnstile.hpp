// SPDX-License-Identifier: MIT
// Where processes queue up before they ask SQLite for the write lock. SQLite has no queue of its own: whoever looks at
// the right moment gets the lock, most of all the process that has just given it back. On a disk that takes its time
// somebody is then passed over until `busy`.
//
// The queue is an empty file beside the database, `NAME-turn`: a place in it is the lock of one byte, a newcomer takes
// the byte behind all that are taken, and the lowest is next. So nobody who has a place is passed by one who comes
// later. The system frees the places of processes that die. This orders, it does not protect: SQLite's lock does. Where
// the file cannot be opened, or the system has no such locks, nobody queues.
//
// One thread's at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class turnstile {
  public:
    turnstile() noexcept = default;

    /// For the database at this path, which exists.
    explicit turnstile(const std::string& database) {
#if defined(F_OFD_SETLK)
        struct stat like {};
        if (::stat(database.c_str(), &like) == 0) { // whoever may write the one may write the other
            constexpr auto readable_and_writable = 0666U;
            file_ = ::open((database + "-turn").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                           like.st_mode & readable_and_writable);
        }
#else
        static_cast<void>(database);
#endif
    }
    turnstile(turnstile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    turnstile& operator=(turnstile&& other) noexcept {
        std::swap(file_, other.file_);
        std::swap(place_, other.place_);
        return *this;
    }
    ~turnstile() {
        if (file_ >= 0) {
            ::close(file_);
        }
    }

    /// Takes the place behind all others.
    void enter() noexcept {
#if defined(F_OFD_SETLK)
        if (file_ < 0) {
            return;
        }
        for (int tries = 0; tries < 1000; ++tries) { // somebody else may take the same one first
            auto last = std::int64_t{0};
            while (const auto next = first_taken(last + 1, 0)) {
                last = next;
            }
            if (lock(F_WRLCK, last + 1)) {
                place_ = last + 1;
                return;
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

    void leave() noexcept {
#if defined(F_OFD_SETLK)
        if (place_ != 0) {
            lock(F_UNLCK, std::exchange(place_, 0));
        }
#endif
    }

  private:
#if defined(F_OFD_SETLK)
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
    std::int64_t place_ = 0; ///< 0: none
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
