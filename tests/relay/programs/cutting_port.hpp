// SPDX-License-Identifier: MIT
// A process between clients and a server on loopback. It cuts connections in the middle of what they send: each one ends
// after a random number of bytes, or all end on command. Clients and server notice at once.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace relay_program {

[[nodiscard]] inline sockaddr_in loopback(int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(static_cast<std::uint16_t>(port));
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
}

class cutting_port {
  public:
    /// Listens. `cuts` counts; while `bytes_most` is 0, no connection ends after a number of bytes. Each byte that arrives at
    /// the socket `commands` cuts every connection, and is then sent back.
    cutting_port(int server, std::atomic<std::size_t>& cuts, std::atomic<std::size_t>& bytes_most, int commands = -1)
        : server_(server), cuts_(cuts), bytes_most_(bytes_most), commands_(commands),
          listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        auto address = loopback(0);
        socklen_t size = sizeof(address);
        constexpr int backlog = 64;
        if (bind(listening_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
            listen(listening_, backlog) != 0 ||
            getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            throw std::system_error(errno, std::generic_category(), "cutting_port");
        }
        port_ = ntohs(address.sin_port);
    }
    [[nodiscard]] int port() const noexcept { return port_; }

    /// Passes bytes on until the process is killed.
    [[noreturn]] void run() {
        for (;;) {
            std::vector<pollfd> ready{{listening_, POLLIN, 0}, {commands_, POLLIN, 0}};
            for (const auto& p : pairs_) {
                ready.push_back({p.client, POLLIN, 0});
                ready.push_back({p.server, POLLIN, 0});
            }
            poll(ready.data(), ready.size(), 1000);
            std::size_t at = 2;
            for (auto& p : pairs_) {
                pass(p, p.client, p.server, ready[at].revents);
                pass(p, p.server, p.client, ready[at + 1].revents);
                at += 2;
            }
            char command = 0;
            const bool is_commanded = ready[1].revents != 0 && read(commands_, &command, 1) == 1;
            if (is_commanded) {
                cut_all();
            }
            pairs_.remove_if([](const pair& p) {
                if (p.is_over) {
                    close(p.client);
                    close(p.server);
                }
                return p.is_over;
            });
            if (is_commanded) {
                send(commands_, &command, 1, MSG_NOSIGNAL);
            }
            if (ready[0].revents != 0) {
                accept_one();
            }
        }
    }

  private:
    struct pair {
        int client = -1;
        int server = -1;
        std::size_t left = 0; ///< 0: it is not cut
        bool is_over = false;
    };

    void cut_all() {
        for (auto& p : pairs_) {
            cuts_ += p.is_over ? 0U : 1U;
            p.is_over = true;
        }
    }

    void accept_one() {
        const int client = accept(listening_, nullptr, nullptr);
        const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto address = loopback(server_);
        const int on = 1;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        const bool is_reached = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
        const auto most = bytes_most_.load();
        const auto least = std::size_t{1};
        pairs_.push_back({.client = client,
                          .server = server,
                          .left = most == 0 ? 0 : std::uniform_int_distribution<std::size_t>(least, most)(random_),
                          .is_over = !is_reached});
    }

    void pass(pair& in, int from, int to, short ready) {
        if (in.is_over || ready == 0) {
            return;
        }
        std::array<char, 65536> bytes{};
        const auto got = read(from, bytes.data(), bytes.size());
        if (got <= 0) {
            in.is_over = true;
            return;
        }
        auto count = static_cast<std::size_t>(got);
        const bool is_cut = in.left != 0 && count >= in.left;
        count = is_cut ? in.left : count;
        in.left = in.left == 0 ? 0 : in.left - count;
        for (std::size_t sent = 0; sent < count && !in.is_over;) {
            const auto now = send(to, bytes.data() + sent, count - sent, MSG_NOSIGNAL);
            in.is_over = now <= 0;
            sent += now > 0 ? static_cast<std::size_t>(now) : 0;
        }
        if (is_cut) {
            in.is_over = true;
            cuts_ += 1;
        }
    }

    int server_;
    std::atomic<std::size_t>& cuts_;
    std::atomic<std::size_t>& bytes_most_;
    int commands_;
    int listening_;
    int port_ = 0;
    std::list<pair> pairs_{};
    std::mt19937_64 random_{7};
};

} // namespace relay_program
