// SPDX-License-Identifier: MIT
// Carries requests from HTTP to a site, with cpp-httplib. It also shows how an application would do it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>

#include <httplib.h>
#include <sys/socket.h>

#include <vouch/page.hpp>
#include <vouch/worker.hpp>

#include "../output.hpp"

namespace tool {

class http_server {
  public:
    /// Binds the address. Throws `io` if it cannot be used.
    http_server(const std::string& host, std::uint16_t port) {
        // Not SO_REUSEPORT, which httplib would set: two servers on one port would share its requests.
        server_.set_socket_options([](socket_t socket) {
            const int yes = 1;
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        const bool is_bound =
            port == 0 ? (port_ = server_.bind_to_any_port(host)) > 0 : server_.bind_to_port(host, port);
        if (!is_bound) {
            throw vouch::error(vouch::error_kind::io,
                               "cannot listen on " + host + " port " + std::to_string(port) +
                                   ": the address is not of this machine, or the port is in use");
        }
        port_ = port == 0 ? port_ : port;
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return static_cast<std::uint16_t>(port_); }

    /// Until SIGINT or SIGTERM.
    template <class Site>
    void run(Site& site) {
        const auto carry = [&site](const httplib::Request& from, httplib::Response& to) {
            vouch::page::request r{.method = from.method, .body = from.body};
            const auto question = std::min(from.target.find('?'), from.target.size());
            r.path = from.target.substr(0, question);
            r.query = question < from.target.size() ? from.target.substr(question + 1) : "";
            r.headers.assign(from.headers.begin(), from.headers.end());
            const auto answer = site.answer(r);
            to.status = answer.status;
            for (const auto& [name, value] : answer.headers) {
                to.set_header(name, value);
            }
            to.set_content(answer.body, answer.content_type);
        };
        server_.Get(".*", carry)
            .Post(".*", carry)
            .Put(".*", carry)
            .Patch(".*", carry)
            .Delete(".*", carry)
            .Options(".*", carry);
        server_.set_payload_max_length(Site::body_max);
        server_.set_tcp_nodelay(true);
        server_.set_keep_alive_timeout(2);
        server_.set_keep_alive_max_count(100);
        constexpr std::size_t threads = 16; // an idle connection occupies one
        server_.new_task_queue = [] { return new httplib::ThreadPool(threads); };

        // No lower priority than workers have: a reader that waits for the processor in the middle of a read keeps
        // SQLite's log from being emptied, which slows the workers down far more than the page does.
        const std::jthread looker([&site](const std::stop_token& stop) { look(site, stop); });
        const vouch::stop_signals signals;
        const std::stop_callback stopped(signals.token(), [this] { server_.stop(); });
        server_.listen_after_bind();
    }

  private:
    /// Counts the queues, so that no request has to.
    template <class Site>
    static void look(Site& site, const std::stop_token& stop) {
        bool is_well = true;
        while (!stop.stop_requested()) {
            try {
                site.look();
                is_well = true;
            } catch (const std::exception& e) {
                if (is_well) { // once, not every second
                    std::fprintf(stderr, "vouch: the store cannot be read: %s\n", plain(e.what()).c_str());
                }
                is_well = false;
            }
            for (int i = 0; i < 10 && !stop.stop_requested(); ++i) {
                std::this_thread::sleep_for(std::chrono::milliseconds{100});
            }
        }
    }

    httplib::Server server_{};
    int port_ = 0;
};

} // namespace tool
