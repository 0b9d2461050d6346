// SPDX-License-Identifier: MIT
// A network between a client and the broker that fails on request: it forwards the bytes of one connection at a time, and cuts
// the connection after a number of bytes from the client, or goes silent.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rabbitmq_test {

class proxy {
  public:
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

    explicit proxy(int to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        auto at = address(0);
        socklen_t size = sizeof(at);
        if (bind(listener_, general(at), size) != 0 || listen(listener_, 8) != 0 ||
            getsockname(listener_, general(at), &size) != 0) {
            throw std::runtime_error("proxy: no port");
        }
        port_ = ntohs(at.sin_port);
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;
    ~proxy() {
        thread_ = {};
        close(listener_);
    }

    [[nodiscard]] int port() const noexcept { return port_; }
    /// The connection is cut after so many more bytes from the client, and so is every later one, until this is called again.
    void cut_after(std::size_t bytes) noexcept { left_ = bytes; }
    /// Forwards nothing, and keeps the connection.
    void be_silent(bool is_silent) noexcept { is_silent_ = is_silent; }
    /// Cuts the connection now.
    void cut() noexcept { is_cut_ = true; }
    [[nodiscard]] std::size_t bytes_from_client() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t connections() const noexcept { return connections_; }

  private:
    [[nodiscard]] static sockaddr_in address(int port) noexcept {
        sockaddr_in out{};
        out.sin_family = AF_INET;
        out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        out.sin_port = htons(static_cast<std::uint16_t>(port));
        return out;
    }
    [[nodiscard]] static sockaddr* general(sockaddr_in& at) noexcept { return reinterpret_cast<sockaddr*>(&at); }

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            pollfd ready{listener_, POLLIN, 0};
            if (poll(&ready, 1, 10) > 0) {
                const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
                const int broker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                auto at = address(to_);
                ++connections_;
                if (client >= 0 && connect(broker, general(at), sizeof(at)) == 0) {
                    is_cut_ = false;
                    forward(client, broker, stop);
                }
                close(client);
                close(broker);
            }
        }
    }

    void forward(int client, int broker, const std::stop_token& stop) {
        while (!stop.stop_requested() && !is_cut_) {
            if (is_silent_) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                continue;
            }
            std::array<pollfd, 2> both{pollfd{client, POLLIN, 0}, pollfd{broker, POLLIN, 0}};
            if (poll(both.data(), both.size(), 10) <= 0) {
                continue;
            }
            if ((both[0].revents != 0 && !pass(client, broker, true)) ||
                (both[1].revents != 0 && !pass(broker, client, false))) {
                return;
            }
        }
    }

    [[nodiscard]] bool pass(int from, int to, bool is_client) {
        std::array<char, 4096> buffer{};
        const auto got = recv(from, buffer.data(), buffer.size(), 0);
        if (got <= 0) {
            return false;
        }
        auto size = static_cast<std::size_t>(got);
        bool is_whole = true;
        if (is_client) {
            bytes_ += size;
            const std::size_t left = left_;
            is_whole = size < left;
            size = std::min(size, left);
            left_ = left == never ? never : left - size;
        }
        for (std::size_t done = 0; done < size;) {
            const auto sent = send(to, buffer.data() + done, size - done, MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            done += static_cast<std::size_t>(sent);
        }
        return is_whole;
    }

    int to_;
    int listener_;
    int port_ = 0;
    std::atomic<std::size_t> left_ = never;
    std::atomic<std::size_t> bytes_ = 0;
    std::atomic<std::size_t> connections_ = 0;
    std::atomic<bool> is_silent_ = false;
    std::atomic<bool> is_cut_ = false;
    std::jthread thread_{};
};

} // namespace rabbitmq_test
