// SPDX-License-Identifier: MIT
// Deliver webhooks to an HTTP endpoint on this machine: retries, a dead letter, and its requeue.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/webhook.hpp>

using namespace std::chrono_literals;

namespace {

/// A socket, closed by its destructor.
class connection {
  public:
    explicit connection(int handle) : handle_(handle) {
        if (handle_ < 0) {
            throw std::runtime_error("cannot open a socket");
        }
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() { close(handle_); }

    [[nodiscard]] int handle() const noexcept { return handle_; }
    void send_all(std::string_view text) const {
        while (!text.empty()) {
            const auto sent = send(handle_, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                throw std::runtime_error("cannot send");
            }
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    /// Receives until this text arrives or the peer closes the connection.
    [[nodiscard]] std::string receive(std::string_view up_to) const {
        std::string got;
        std::array<char, 1024> buffer{};
        while (got.find(up_to) == std::string::npos) {
            const auto size = recv(handle_, buffer.data(), buffer.size(), 0);
            if (size <= 0) {
                break;
            }
            got.append(buffer.data(), static_cast<std::size_t>(size));
        }
        return got;
    }

  private:
    int handle_;
};

[[nodiscard]] sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.sin_port = htons(port);
    return out;
}

/// An endpoint whose answer depends on the path: /ok, /flaky (503 the first time), /broken (500 until repaired).
class endpoint {
  public:
    endpoint() : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
        auto address = loopback(0);
        auto size = static_cast<socklen_t>(sizeof address);
        auto* const raw = reinterpret_cast<sockaddr*>(&address);
        if (bind(listening_.handle(), raw, size) != 0 || listen(listening_.handle(), 8) != 0 ||
            getsockname(listening_.handle(), raw, &size) != 0) {
            throw std::runtime_error("cannot listen");
        }
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;
    ~endpoint() {
        shutdown(listening_.handle(), SHUT_RDWR);
        thread_.join();
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    void repair() noexcept { is_repaired_ = true; }

  private:
    void serve() {
        for (;;) {
            const int accepted = accept(listening_.handle(), nullptr, nullptr);
            if (accepted < 0) {
                return;
            }
            const connection caller(accepted);
            const auto asked = caller.receive("\r\n\r\n");
            const auto path = asked.substr(5, asked.find(' ', 5) - 5); // after "POST "
            int status = 204;
            status = path == "/flaky" && calls_[path]++ == 0 ? 503 : status;
            status = path == "/broken" && !is_repaired_ ? 500 : status;
            caller.send_all("HTTP/1.1 " + std::to_string(status) + " .\r\nConnection: close\r\n\r\n");
        }
    }

    connection listening_;
    std::uint16_t port_ = 0;
    std::map<std::string, int> calls_{};
    std::atomic<bool> is_repaired_ = false;
    std::thread thread_{};
};

/// Posts the request. Returns the status of the response.
int post(std::uint16_t port, const vouch::webhook::request& r) {
    const connection to(socket(AF_INET, SOCK_STREAM, 0));
    const auto address = loopback(port);
    if (connect(to.handle(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throw vouch::failure("no_connection");
    }
    to.send_all("POST " + r.subscription.url + " HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: " + to_string(r.id) +
                "\r\nContent-Length: " + std::to_string(r.body.size()) + "\r\n\r\n" + r.body);
    const auto answer = to.receive("\r\n");
    const int status = answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
    std::printf("  %s to %s, attempt %u: %d\n", r.event.c_str(), r.subscription.url.c_str(), r.attempt, status);
    return status;
}

} // namespace

int main() {
    endpoint server;
    const std::map<std::string, vouch::webhook::subscription> subscriptions{
        {"crm", {.id = "crm", .url = "/ok"}},
        {"shop", {.id = "shop", .url = "/flaky"}},
        {"legacy", {.id = "legacy", .url = "/broken", .attempts_max = 2, .backoff = vouch::fixed{1h}}},
    };
    const vouch::webhook hook([&](std::string_view id) { return std::optional(subscriptions.at(std::string(id))); },
                              [&](const vouch::webhook::request& r) { return post(server.port(), r); });

    vouch::testing::sandbox box;
    box.on(hook);
    vouch::id dead;
    box.runner().audit(vouch::webhook::dead_letters<vouch::memory::transaction>([&](auto&, const auto& line) {
        std::printf("  dead letter: %s\n", line.error.c_str()); // in the transaction that settles the entry as dead
        dead = line.id;
    }));

    std::printf("an event is sent to three subscriptions, twice by mistake\n");
    for (int times = 0; times < 2; ++times) {
        for (const auto& [id, to] : subscriptions) {
            box.emit(vouch::webhook::of({.queue = "test", .event = "order.paid 7", .to = to, .body = "{\"order\":7}"}));
        }
    }
    box.run_until_idle();

    std::printf("the broken endpoint is repaired, and its delivery is requeued\n");
    server.repair();
    box.outbox().requeue(dead);
    box.run_until_idle();
    std::printf("\n%s", box.table().c_str());
}
