// SPDX-License-Identifier: MIT
// The kit for RabbitMQ, on a broker of its own. The clients reach it through a process that can cut their connections.
//
//   tests/rabbitmq/broker run conformance_client_rabbitmq [OPTION]...
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include <vouch/conformance_broker.hpp>
#include <vouch/rabbitmq.hpp>

#include "relay/programs/cutting_port.hpp"
#include "sqlite/programs/child.hpp"

namespace {

using namespace std::chrono_literals;

[[nodiscard]] std::string variable(const char* name) {
    const char* const set = std::getenv(name);
    if (set == nullptr) {
        throw std::runtime_error(std::string(name) + " is not set; start the program with tests/rabbitmq/broker run");
    }
    return set;
}

/// The process between clients and broker.
class network {
  public:
    explicit network(int server) : commands_(connected_sockets()), passing_([&] { return pass(server); }) {
        close(commands_.theirs);
        while (shared_.port == 0) {
            std::this_thread::sleep_for(1ms);
        }
    }
    network(const network&) = delete;
    network& operator=(const network&) = delete;
    ~network() { close(commands_.ours); }

    [[nodiscard]] int port() const noexcept { return shared_.port; }

    /// When it returns, every connection is closed.
    void cut() {
        const std::scoped_lock lock(mutex_);
        char command = 'c';
        if (write(commands_.ours, &command, 1) != 1 || read(commands_.ours, &command, 1) != 1) {
            throw std::system_error(errno, std::generic_category(), "network: cut");
        }
    }

  private:
    struct sockets {
        int ours = -1;
        int theirs = -1;
    };
    struct state {
        std::atomic<int> port = 0;
        std::atomic<std::size_t> cuts = 0;
        std::atomic<std::size_t> bytes_most = 0;
    };

    [[nodiscard]] static sockets connected_sockets() {
        int both[2] = {-1, -1};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) {
            throw std::system_error(errno, std::generic_category(), "network");
        }
        return {both[0], both[1]};
    }

    [[noreturn]] int pass(int server) const {
        relay_program::cutting_port at(server, shared_.cuts, shared_.bytes_most, commands_.theirs);
        shared_.port = at.port();
        at.run();
    }

    sockets commands_;
    state& shared_ = worker_program::shared_object<state>();
    std::mutex mutex_{};
    worker_program::child passing_; // last: it uses the other members
};

struct fixture {
    fixture() { vouch::rabbitmq::declare({.url = url}, shape); }

    auto publisher() {
        return vouch::rabbitmq::publisher(
            {.connection = connection(), .exchange = shape.exchange, .confirm_limit = 10s});
    }
    auto consumer() {
        return vouch::rabbitmq::consumer(
            {.connection = connection(), .queue = queue, .prefetch = static_cast<std::uint16_t>(unacknowledged_max())});
    }
    void cut() { between.cut(); }
    void restart() {
        // RabbitMQ 3.10 loses a quorum queue that is declared less than about a second before it dies.
        std::this_thread::sleep_until(declared_at + 3s);
        broker("kill");
        broker("start");
    }
    std::string unroutable_topic() { return "nobody.listens"; }
    std::size_t message_max() { return 4'000'000; } // set by `broker run`; the publisher does not know it
    std::size_t unacknowledged_max() { return 20; }
    void publish_malformed() {
        namespace detail = vouch::rabbitmq::detail;
        const detail::connection to{detail::target({.url = url})};
        amqp_basic_publish(to.state(), detail::connection::channel, detail::bytes_of(shape.exchange),
                           amqp_cstring_bytes("kit.malformed"), 0, 0, nullptr, amqp_cstring_bytes("no message id"));
    }

    [[nodiscard]] vouch::rabbitmq::connection_options connection() const {
        return {.url = url, .port = between.port(), .connect_limit = 20s, .reconnect_wait_max = 200ms};
    }
    static void broker(const std::string& what) {
        const auto command = std::string(VOUCH_BROKER) + ' ' + what + ' ' + variable("VOUCH_RABBITMQ_FOLDER");
        if (std::system((command + " >/dev/null").c_str()) != 0) {
            throw std::runtime_error(command + " fails");
        }
    }

    const std::string url = variable("VOUCH_RABBITMQ");
    const std::string queue = "kit";
    const vouch::rabbitmq::topology shape{.exchange = "kit", .listeners = {{.queue = queue, .patterns = {"kit.#"}}}};
    network between{static_cast<int>(std::strtol(url.c_str() + url.rfind(':') + 1, nullptr, 10))};
    const std::chrono::steady_clock::time_point declared_at = std::chrono::steady_clock::now();
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"rabbitmq", "0.1.0"}, argc, argv); }
