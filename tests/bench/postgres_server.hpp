// SPDX-License-Identifier: MIT
// A PostgreSQL server of the benchmark's own, in a temporary folder, whose commits wait for the disk. `VOUCH_CLUSTER` is
// the path of `tests/postgres/cluster`.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <sys/vfs.h>
#include <unistd.h>

#include "ratio.hpp"

namespace bench {

class postgres_server {
  public:
    postgres_server() {
        std::string folder = "/tmp/vouch_bench.XXXXXX"; // short: the path of a socket has at most 107 bytes
        require(mkdtemp(folder.data()) != nullptr, "cannot create a temporary folder");
        folder_ = folder;
        struct statfs disk {};
        constexpr auto tmpfs = 0x01021994;
        require(statfs(folder_.c_str(), &disk) == 0 && disk.f_type != tmpfs, "the folder /tmp is not on a disk");
        // Neither checkpoints nor autovacuum come into a round by chance.
        conninfo_ = output_of(cluster() + "start " + folder_ +
                              " fsync=on full_page_writes=on shared_buffers=512MB max_wal_size=16GB "
                              "checkpoint_timeout=1h autovacuum=off");
        require(conninfo_.find("host=") == 0, "the server did not start");
        std::ifstream(folder_ + "/data/postmaster.pid") >> postmaster_;
    }
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;
    ~postgres_server() {
        if (std::system((cluster() + "remove " + folder_).c_str()) != 0) {
            std::fprintf(stderr, "the server in %s was not removed\n", folder_.c_str());
        }
    }

    [[nodiscard]] const std::string& conninfo() const noexcept { return conninfo_; }
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

    /// The CPU seconds of the server's processes so far, also of those that have ended.
    [[nodiscard]] double cpu() const {
        double ticks = 0;
        for (const auto& one : std::filesystem::directory_iterator("/proc")) {
            const auto name = one.path().filename().string();
            if (name.find_first_not_of("0123456789") != std::string::npos) {
                continue;
            }
            std::ifstream file(one.path() / "stat");
            std::string text;
            std::getline(file, text);
            const auto after_name = text.rfind(')');
            if (after_name == std::string::npos) {
                continue; // it has just ended, and is counted by its parent
            }
            std::istringstream fields(text.substr(after_name + 2));
            std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
            if (all[1] == postmaster_) { // its parent
                ticks += std::stod(all[11]) + std::stod(all[12]);
            } else if (name == postmaster_) { // itself, and its children that have ended
                ticks += std::stod(all[11]) + std::stod(all[12]) + std::stod(all[13]) + std::stod(all[14]);
            }
        }
        return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    }

  private:
    [[nodiscard]] static std::string cluster() { return "'" VOUCH_CLUSTER "' "; }

    [[nodiscard]] static std::string output_of(const std::string& command) {
        std::FILE* const from = popen(command.c_str(), "r");
        require(from != nullptr, "cannot run a command");
        std::string out;
        for (int c = std::fgetc(from); c != EOF && c != '\n'; c = std::fgetc(from)) {
            out.push_back(static_cast<char>(c));
        }
        require(pclose(from) == 0, "the server did not start");
        return out;
    }

    std::string folder_{};
    std::string conninfo_{};
    std::string postmaster_{};
};

} // namespace bench
