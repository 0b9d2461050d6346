// SPDX-License-Identifier: MIT
// Log a worker's warnings and serve its metrics to Prometheus. This program scrapes them once itself.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vouch/observe.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

using namespace std::chrono_literals;
using memory = vouch::memory::store;

namespace {

/// A minimal HTTP server for scrapes, on a free loopback port.
class metrics_server {
  public:
    metrics_server(vouch::metrics& numbers, const memory& work) : numbers_(numbers), work_(work) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
        listen(socket_, 8);
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this] { serve(); });
    }
    metrics_server(const metrics_server&) = delete;
    metrics_server& operator=(const metrics_server&) = delete;
    ~metrics_server() {
        shutdown(socket_, SHUT_RDWR);
        thread_.join();
        close(socket_);
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    void serve() {
        for (int peer = accept(socket_, nullptr, nullptr); peer >= 0; peer = accept(socket_, nullptr, nullptr)) {
            std::array<char, 4096> request{};
            if (recv(peer, request.data(), request.size(), 0) > 0) {
                numbers_.look_at(work_, "mail", vouch::system_now()); // the depth is read when it is scraped
                const auto body = numbers_.text();
                const auto answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
                                    std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
                send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
            }
            close(peer);
        }
    }

    vouch::metrics& numbers_;
    const memory& work_;
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::uint16_t port_ = 0;
    std::jthread thread_{};
};

/// Scrapes as Prometheus does.
std::string scrape(std::uint16_t port) {
    const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    std::string got;
    if (connect(to, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        constexpr std::string_view request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        send(to, request.data(), request.size(), MSG_NOSIGNAL);
        std::array<char, 4096> some{};
        for (auto size = recv(to, some.data(), some.size(), 0); size > 0;
             size = recv(to, some.data(), some.size(), 0)) {
            got.append(some.data(), static_cast<std::size_t>(size));
        }
    }
    close(to);
    return got;
}

} // namespace

int main() {
    memory work;
    vouch::metrics numbers;
    vouch::outbox outbox(work);
    outbox.observe(numbers); // counts what this outbox emits and what the worker handles
    vouch::router router(outbox);
    router.on("mail.good", [](vouch::delivery&) {});
    router.on("mail.slow", [](vouch::delivery& d) {
        if (d.attempt() == 1) {
            throw vouch::failure("smtp_timeout");
        }
    });
    router.on("mail.bad", [](vouch::delivery&) { throw vouch::reject("no_such_address"); });

    // Logs warnings and errors. Without a sink they go to stderr, with the time in front.
    vouch::logger log(vouch::log_level::warning, [](vouch::log_level, std::string_view line) {
        const auto from = line.find(' ') + 1; // without the time and the id, which differ in every run
        std::printf("log: %.*s\n", static_cast<int>(line.find(" id=") - from), line.data() + from);
    });
    outbox.observe(log);
    vouch::worker worker(outbox, {.name = "mailer"});
    worker.serve(router, {.queue = "mail", .retry = {.backoff = vouch::fixed{}}});

    outbox.emit({{.queue = "mail", .topic = "mail.good"},
                 {.queue = "mail", .topic = "mail.bad"},
                 {.queue = "mail", .topic = "mail.slow"},
                 {.queue = "mail", .topic = "mail.good", .due_in = 24h}});
    std::stop_source stop;
    std::jthread at_work([&] { worker.run(stop.get_token()); });
    while (work.counts("mail").live() > 1) {
        std::this_thread::sleep_for(1ms);
    }
    stop.request_stop();
    at_work.join();

    const metrics_server server(numbers, work);
    const auto answer = scrape(server.port());
    std::printf("\n%s\n", answer.substr(0, answer.find('\r')).c_str());
    for (const std::string_view wanted : {"vouch_enqueued_total", "vouch_claimed_total", "vouch_settled_total",
                                          "vouch_active", "vouch_entries", "vouch_handler_seconds_count"}) {
        for (auto at = answer.find('\n' + std::string(wanted) + '{'); at != std::string::npos;
             at = answer.find('\n' + std::string(wanted) + '{', at + 1)) {
            std::printf("%s\n", answer.substr(at + 1, answer.find('\n', at + 1) - at - 1).c_str());
        }
    }
}
