// SPDX-License-Identifier: MIT
// The file through which processes share a plain store: the whole committed state, which every commit replaces, and a
// lock that the writing process holds. A store that is used by one process only has no such file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <vouch/contract/bytes.hpp>
#include <vouch/contract/detail/byte_stream.hpp>

#include "snapshot.hpp"

namespace mutants {

class state_file {
  public:
    using wake_numbers = std::map<std::string, std::uint64_t, std::less<>>;

    explicit state_file(const std::filesystem::path& folder)
        : path_(folder / "state"), lock_(open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
    state_file(const state_file&) = delete;
    state_file& operator=(const state_file&) = delete;
    ~state_file() { close(lock_); }

    [[nodiscard]] static bool is_in(const std::filesystem::path& folder) { return exists(folder / "state"); }

    /// The lock between processes. Only the process that has it saves.
    void lock() { flock(lock_, LOCK_EX); }
    void unlock() { flock(lock_, LOCK_UN); }

    [[nodiscard]] static std::string bytes_of(const snapshot& s, std::uint64_t version, const wake_numbers& wakes) {
        vouch::detail::byte_writer out;
        out.number(version);
        out.number(s.last_sequence);
        const auto rows = s.all_rows();
        out.number(rows.size());
        for (const auto& r : rows) {
            out.out += to_bytes(r->entry);
            out.pass(r->gate);
            out.number(r->replaces);
            out.pass(r->worker_before);
        }
        out.number(wakes.size());
        for (const auto& one : wakes) {
            out.pass(one.first);
            out.number(one.second);
        }
        return std::move(out.out);
    }

    /// Replaces the file at once, so that a process that dies or reads meanwhile finds the old one or the new one.
    void save(const std::string& bytes) {
        auto next = path_;
        next += ".next";
        (std::ofstream(next, std::ios::binary) << bytes).flush();
        rename(next, path_);
    }

    /// Reads the file, if there is one.
    void load(snapshot& s, std::uint64_t& version, wake_numbers& wakes) const {
        std::ifstream file(path_, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        if (bytes.empty()) {
            return;
        }
        vouch::detail::byte_reader in{bytes};
        version = in.number();
        s = {};
        const auto last_sequence = in.number();
        for (auto left = in.number(); left > 0; --left) {
            row r;
            r.entry = vouch::take_entry(in.left);
            in.pass(r.gate);
            r.replaces = in.number();
            in.pass(r.worker_before);
            s.put(std::move(r));
        }
        s.last_sequence = last_sequence;
        for (auto left = in.number(); left > 0; --left) {
            std::string queue;
            in.pass(queue);
            wakes[queue] = in.number();
        }
    }

  private:
    std::filesystem::path path_;
    int lock_;
};

} // namespace mutants
