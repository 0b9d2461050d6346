// SPDX-License-Identifier: MIT
// A file of records, and values as bytes: what the store needs of a disk. One process at a time has the file open, and
// reads it on the same kind of machine.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

namespace log_store {

/// Records are appended whole or not at all: each has its length and a checksum before it, so what a crash left half
/// written is recognised, and written over by the next one.
class log_file {
    struct head {
        std::uint64_t size, checksum;
    };
    bool syncs_;
    int descriptor_;
    std::uint64_t end_ = 0; ///< of the last whole record

    [[noreturn]] static void fail(int code, const char* what, bool in_doubt = false) {
        using enum vouch::error_kind;
        throw vouch::error(code == ENOSPC ? full : (code == EWOULDBLOCK ? busy : io), what, {in_doubt, code});
    }
    [[nodiscard]] head head_of(std::string_view body) const {
        auto sum = 14695981039346656037U ^ end_; // FNV-1a, begun with the place, so that no record is taken for another
        for (const char c : body) {
            sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        return {body.size(), sum};
    }

  public:
    template <class Replay>
    log_file(const std::filesystem::path& path, bool syncs, Replay&& replay)
        : syncs_(syncs), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
        if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            fail(errno, "log: cannot have the file, or not alone");
        }
        std::ifstream in(path, std::ios::binary);
        const std::string all(std::istreambuf_iterator<char>(in), {});
        for (head h{}; all.size() - end_ >= sizeof h; end_ += sizeof h + h.size) {
            std::memcpy(&h, &all[end_], sizeof h);
            const auto body = std::string_view(all).substr(end_ + sizeof h, h.size);
            if (h.size == 0 || h.size != body.size() || h.checksum != head_of(body).checksum) {
                break; // it was not finished
            }
            replay(body);
        }
        const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fsync(folder); // or a new file might be nowhere after the power went
        close(folder);
    }
    log_file(const log_file&) = delete;
    ~log_file() { close(descriptor_); }

    /// After this the record is there for good, if the file `syncs`; else the loss of power may take it. An error that
    /// is not in doubt means that it is not there.
    void append(std::string_view body) {
        const auto h = head_of(body);
        const auto record = std::string(reinterpret_cast<const char*>(&h), sizeof h).append(body);
        const auto n = pwrite(descriptor_, record.data(), record.size(), static_cast<off_t>(end_));
        if (n < static_cast<ssize_t>(record.size())) {
            fail(n < 0 ? errno : ENOSPC, "log: cannot write"); // half a record is none
        }
        if (syncs_ && fdatasync(descriptor_) != 0) {
            fail(errno, "log: cannot sync", true); // there or not, until the next record is written over it
        }
        end_ += record.size();
    }
};

/// Passes values to bytes, or from them: plain ones as they are in memory, texts and lists with their length before
/// them.
struct tape {
    std::string bytes{};
    std::optional<std::string_view> left{}; ///< set: what is still to be read

    template <class T>
    void pass(T& value) {
        if constexpr (std::is_trivially_copyable_v<T>) {
            if (left) {
                std::memcpy(static_cast<void*>(&value), left->data(), sizeof value);
                left->remove_prefix(sizeof value);
            } else {
                bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
            }
        } else if constexpr (requires { value.first; }) {
            pass(value.first), pass(value.second);
        } else if constexpr (requires { value.has_value(); }) {
            bool is_set = value.has_value();
            pass(is_set);
            if (is_set) {
                pass(left ? value.emplace() : *value);
            }
        } else {
            auto size = value.size();
            pass(size);
            value.resize(size);
            for (auto& item : value) {
                pass(item);
            }
        }
    }
};

} // namespace log_store
