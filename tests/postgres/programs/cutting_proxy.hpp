// SPDX-License-Identifier: MIT
// Stands between a client and a server on Unix sockets, and cuts a connection after a chosen number of bytes. It counts the
// bytes of all connections, in both directions. After the cut it lets everything pass.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <list>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace fault_program {

/// A socket, closed at the end.
class owned_socket {
  public:
    explicit owned_socket(int number) : number_(number) {
        if (number < 0) {
            throw std::system_error(errno, std::generic_category(), "socket");
        }
    }
    owned_socket(owned_socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    owned_socket& operator=(owned_socket&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~owned_socket() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    [[nodiscard]] int number() const noexcept { return number_; }

  private:
    int number_;
};

/// The address of the server's socket in a folder.
[[nodiscard]] inline sockaddr_un socket_in(const std::string& folder) {
    const auto path = folder + "/.s.PGSQL.5432";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        throw std::length_error("the path of a socket is too long: " + path);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

[[nodiscard]] inline owned_socket new_socket() { return owned_socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

/// A socket in a folder on which clients can connect; nothing answers them.
[[nodiscard]] inline owned_socket listening_in(const std::string& folder) {
    mkdir(folder.c_str(), 0700);
    const auto address = socket_in(folder);
    unlink(address.sun_path);
    auto one = new_socket();
    constexpr int backlog = 64;
    if (bind(one.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(one.number(), backlog) != 0) {
        throw std::system_error(errno, std::generic_category(), address.sun_path);
    }
    return one;
}

class cutting_proxy {
  public:
    /// What the server notices of a cut: its socket is closed at once, or some time later.
    enum class server_notices : bool { at_once, later };

    cutting_proxy(const std::string& folder, std::string server_folder)
        : server_folder_(std::move(server_folder)), listening_(listening_in(folder)),
          thread_([this](const std::stop_token& stop) { run(stop); }) {}
    cutting_proxy(const cutting_proxy&) = delete;
    cutting_proxy& operator=(const cutting_proxy&) = delete;

    /// Cuts the connection on which the n-th byte from now travels, after that byte.
    void cut_after(std::size_t n, server_notices when) {
        const std::lock_guard lock(mutex_);
        has_cut_ = false;
        notices_ = when;
        passed_ = 0;
        commits_.clear();
        left_ = n;
    }
    [[nodiscard]] bool has_cut() const {
        const std::lock_guard lock(mutex_);
        return has_cut_;
    }
    /// The bytes since the last call of `cut_after`.
    [[nodiscard]] std::size_t passed() const {
        const std::lock_guard lock(mutex_);
        return passed_;
    }
    /// After how many of these bytes the server's answers to COMMIT begin.
    [[nodiscard]] std::vector<std::size_t> commits() const {
        const std::lock_guard lock(mutex_);
        return commits_;
    }

  private:
    using clock = std::chrono::steady_clock;
    struct pair {
        owned_socket client;
        owned_socket server;
        bool is_over = false;
    };
    struct leftover {
        owned_socket server;
        clock::time_point until{};
    };

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::vector<pollfd> ready{{listening_.number(), POLLIN, 0}};
            for (const auto& p : pairs_) {
                ready.push_back({p.client.number(), POLLIN, 0});
                ready.push_back({p.server.number(), POLLIN, 0});
            }
            constexpr int patience_ms = 5;
            poll(ready.data(), ready.size(), patience_ms);
            std::size_t at = 1;
            for (auto& p : pairs_) {
                pass(p, p.client, p.server, ready[at].revents);
                pass(p, p.server, p.client, ready[at + 1].revents);
                at += 2;
            }
            if (ready[0].revents != 0) {
                accept_one();
            }
            drop_ended();
        }
    }

    void accept_one() {
        owned_socket client(accept(listening_.number(), nullptr, nullptr));
        auto server = new_socket();
        const auto address = socket_in(server_folder_);
        if (connect(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
            pairs_.push_back({std::move(client), std::move(server)});
        }
    }

    void pass(pair& in, const owned_socket& from, const owned_socket& to, short ready) {
        if (in.is_over || ready == 0) {
            return;
        }
        std::array<char, 65536> bytes{};
        const auto got = read(from.number(), bytes.data(), bytes.size());
        if (got <= 0) {
            in.is_over = true;
            return;
        }
        const std::lock_guard lock(mutex_);
        auto count = static_cast<std::size_t>(got);
        const bool is_cut = left_ != 0 && count >= left_;
        count = is_cut ? left_ : count;
        left_ = is_cut || left_ == 0 ? 0 : left_ - count;
        if (&from == &in.server) {
            note_commits(std::string_view(bytes.data(), count));
        }
        passed_ += count;
        send_all(in, to, bytes.data(), count);
        if (is_cut) {
            has_cut_ = true;
            in.is_over = true;
            if (notices_ == server_notices::later) {
                constexpr std::chrono::milliseconds delay{20};
                leftovers_.push_back({std::move(in.server), clock::now() + delay});
            }
        }
    }

    void note_commits(std::string_view bytes) {
        constexpr std::string_view tag("COMMIT\0", 7);
        for (auto at = bytes.find(tag); at != std::string_view::npos; at = bytes.find(tag, at + 1)) {
            commits_.push_back(passed_ + at);
        }
    }

    static void send_all(pair& in, const owned_socket& to, const char* bytes, std::size_t count) {
        while (count > 0) {
            const auto sent = send(to.number(), bytes, count, MSG_NOSIGNAL);
            if (sent <= 0) {
                in.is_over = true;
                return;
            }
            bytes += sent;
            count -= static_cast<std::size_t>(sent);
        }
    }

    void drop_ended() {
        pairs_.remove_if([](const pair& p) { return p.is_over; });
        leftovers_.remove_if([](const leftover& one) { return clock::now() >= one.until; });
    }

    std::string server_folder_;
    owned_socket listening_;
    mutable std::mutex mutex_{};
    std::size_t left_ = 0; // bytes until the cut; 0: no cut
    std::size_t passed_ = 0;
    bool has_cut_ = false;
    server_notices notices_ = server_notices::at_once;
    std::vector<std::size_t> commits_{};
    std::list<pair> pairs_{};
    std::list<leftover> leftovers_{};
    std::jthread thread_; // last, so that the others exist while it runs
};

} // namespace fault_program
