// SPDX-License-Identifier: MIT
// Breaks connections at chosen round trips, without help from the store. A program that includes this header replaces
// three functions of libpq and calls the real ones through them: `PQpipelineSync`, with which the store sends every round
// trip, and those that open and close connections. The replacements are weak, so that several source files of a program can
// include it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace postgres_test {

/// Puts a socket that is not connected in the place of the connection's. The server sees its client vanish without a
/// goodbye.
inline void cut(PGconn* c) {
    shutdown(PQsocket(c), SHUT_RDWR); // ends a poll of another thread, too
    const int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (dead >= 0 && PQsocket(c) >= 0) {
        dup2(dead, PQsocket(c));
    }
    close(dead);
}

/// The same, but the client finds an error there that ends the connection, as a pooler sends it that has lost the server.
inline void cut_with_last_words(PGconn* c) {
    using namespace std::string_view_literals;
    constexpr auto fields = "SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0"sv;
    std::string message = "E";
    const auto size = static_cast<std::uint32_t>(fields.size() + 4);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        message.push_back(static_cast<char>((size >> shift) & 0xffU));
    }
    message.append(fields);
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) {
        const bool is_written = write(ends[1], message.data(), message.size()) == static_cast<ssize_t>(message.size());
        dup2(ends[0], PQsocket(c));
        close(ends[0]);
        close(ends[1]);
        if (is_written) {
            return;
        }
    }
    cut(c);
}

/// Waits until the server has answered everything, and leaves the answer unread. Its last message says that it is ready for
/// the next query.
inline void wait_for_answer(PGconn* c) {
    constexpr int patience_ms = 20'000;
    std::string seen(1 << 20, '\0');
    for (;;) {
        pollfd one{PQsocket(c), POLLIN, 0};
        if (poll(&one, 1, patience_ms) <= 0) {
            return;
        }
        const auto size = recv(PQsocket(c), seen.data(), seen.size(), MSG_PEEK | MSG_DONTWAIT);
        if (size <= 0) {
            return;
        }
        constexpr std::string_view ready("Z\0\0\0\5", 5);
        const auto count = static_cast<std::size_t>(size);
        const auto is_ready =
            count > ready.size() && std::string_view(seen).substr(count - ready.size() - 1, ready.size()) == ready;
        if (is_ready || count == seen.size()) {
            return;
        }
        usleep(200);
    }
}

/// What happens at the round trips of this process.
class faults {
  public:
    using callback = std::function<void(std::string_view)>;

    static faults& all() {
        static faults one;
        return one;
    }

    /// Each round trip has two numbers: at the first it is cut before it is sent, at the second after the server has
    /// answered. Cuts at the n-th number from now; 0: never. Returns whether one was cut since the last call.
    bool fail_at(std::size_t n) {
        left_ = n;
        return has_cut_.exchange(false);
    }

    /// Whether a cut after an answer leaves an error that ends the connection in its place.
    void leave_last_words(bool does) { leaves_last_words_ = does; }

    /// Called before each round trip. May throw.
    void set_seam(callback f) {
        const std::lock_guard lock(mutex_);
        seam_ = f ? std::make_shared<callback>(std::move(f)) : nullptr;
    }

    /// Cuts all connections with this application_name.
    void cut_all(std::string_view application_name) {
        const std::lock_guard lock(mutex_);
        for (PGconn* const c : open_) {
            const char* const name = PQparameterStatus(c, "application_name");
            if (name != nullptr && application_name == name) {
                cut(c);
            }
        }
    }

    int sync(PGconn* c, int (*real)(PGconn*)) {
        if (const auto f = seam()) {
            (*f)("round trip");
        }
        if (is_next()) {
            cut(c);
            return real(c);
        }
        const bool is_after = is_next();
        const int sent = real(c);
        if (is_after) {
            wait_for_answer(c);
            leaves_last_words_ ? cut_with_last_words(c) : cut(c);
        }
        return sent;
    }
    void add(PGconn* c) {
        const std::lock_guard lock(mutex_);
        open_.insert(c);
    }
    void remove(PGconn* c) {
        const std::lock_guard lock(mutex_);
        open_.erase(c);
    }

  private:
    bool is_next() {
        auto left = left_.load();
        while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
        }
        if (left == 1) {
            has_cut_ = true;
        }
        return left == 1;
    }
    std::shared_ptr<callback> seam() {
        const std::lock_guard lock(mutex_);
        return seam_;
    }

    std::atomic<std::size_t> left_ = 0;
    std::atomic<bool> has_cut_ = false;
    std::atomic<bool> leaves_last_words_ = false;
    std::mutex mutex_{};
    std::shared_ptr<callback> seam_{};
    std::set<PGconn*> open_{};
};

/// The function of this name in libpq.
template <class Function>
Function* real(const char* name) {
    Function* found = nullptr;
    void* const symbol = dlsym(RTLD_NEXT, name);
    std::memcpy(&found, &symbol, sizeof(found));
    return found;
}

} // namespace postgres_test

extern "C" __attribute__((weak)) int PQpipelineSync(PGconn* c) {
    static const auto real = postgres_test::real<int(PGconn*)>("PQpipelineSync");
    return postgres_test::faults::all().sync(c, real);
}

extern "C" __attribute__((weak)) PGconn* PQconnectStartParams(const char* const* names, const char* const* values,
                                                              int expand_dbname) {
    static const auto real =
        postgres_test::real<PGconn*(const char* const*, const char* const*, int)>("PQconnectStartParams");
    PGconn* const c = real(names, values, expand_dbname);
    postgres_test::faults::all().add(c);
    return c;
}

extern "C" __attribute__((weak)) void PQfinish(PGconn* c) {
    static const auto real = postgres_test::real<void(PGconn*)>("PQfinish");
    postgres_test::faults::all().remove(c);
    real(c);
}
