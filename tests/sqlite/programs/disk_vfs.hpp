// SPDX-License-Identifier: MIT
// A SQLite VFS whose files are on a `disk`. Locks and the log's index are kept in memory, so it serves one process in
// which one thread uses SQLite. Without power every request fails.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include "sqlite/programs/disk.hpp"

namespace sqlite_test {

class disk_vfs {
  public:
    static constexpr const char* name = "disk";

    disk_vfs() {
        vfs_ = *sqlite3_vfs_find(nullptr); // for time and random numbers
        vfs_.szOsFile = sizeof(handle);
        vfs_.zName = name;
        vfs_.pAppData = this;
        vfs_.xOpen = open;
        vfs_.xDelete = remove;
        vfs_.xAccess = access;
        vfs_.xFullPathname = full_name;
        if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) {
            throw std::runtime_error("SQLite refuses to register the VFS");
        }
    }
    disk_vfs(const disk_vfs&) = delete;
    disk_vfs& operator=(const disk_vfs&) = delete;
    ~disk_vfs() { sqlite3_vfs_unregister(&vfs_); }

    /// Uses this disk from now on. Requires that no file is open.
    void use(disk& d) {
        if (!places_.empty()) {
            throw std::logic_error("a file is still open");
        }
        disk_ = &d;
    }

  private:
    struct opened;

    /// What all open handles of one file share.
    struct place {
        std::vector<opened*> by{};
        std::vector<std::unique_ptr<std::array<char, 32 * 1024>>> index{};
    };

    struct opened {
        disk_vfs& in;
        std::string called{};
        std::shared_ptr<disk::file> file{};
        std::shared_ptr<disk_vfs::place> place{};
        int lock = SQLITE_LOCK_NONE;
        bool has_index = false;
        unsigned shared = 0; ///< locks of the index, a bit each
        unsigned exclusive = 0;

        [[nodiscard]] disk& on() const noexcept { return *in.disk_; }
        template <class Has>
        [[nodiscard]] bool another(Has&& has) const {
            return std::any_of(place->by.begin(), place->by.end(), [&](const auto* o) { return o != this && has(*o); });
        }
    };

    struct handle {
        sqlite3_file base;
        opened* self;
    };
    [[nodiscard]] static opened& of(sqlite3_file* f) noexcept { return *reinterpret_cast<handle*>(f)->self; }
    [[nodiscard]] static disk_vfs& of(sqlite3_vfs* v) noexcept { return *static_cast<disk_vfs*>(v->pAppData); }

    // The folder.

    static int open(sqlite3_vfs* v, const char* called, sqlite3_file* f, int flags, int* flags_out) {
        auto& in = of(v);
        f->pMethods = nullptr;
        if (!in.disk_->has_power()) {
            return SQLITE_CANTOPEN;
        }
        const std::string known = called == nullptr ? "(temporary)" : called;
        const auto kind = (flags & SQLITE_OPEN_WAL) != 0            ? disk::kind::log
                          : (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0 ? disk::kind::journal
                                                                    : disk::kind::database;
        auto file = called == nullptr ? std::make_shared<disk::file>(kind) : in.disk_->find(known);
        if (!file && (flags & SQLITE_OPEN_CREATE) == 0) {
            return SQLITE_CANTOPEN;
        }
        if (!file) {
            file = in.disk_->create(known, kind);
        }
        const auto found = in.places_.find(known);
        const auto place = found == in.places_.end() ? std::make_shared<disk_vfs::place>() : found->second;
        if (called != nullptr) {
            in.places_[known] = place;
        }
        auto* const self = new opened{.in = in, .called = known, .file = std::move(file), .place = place};
        place->by.push_back(self);
        reinterpret_cast<handle*>(f)->self = self;
        f->pMethods = &methods;
        if (flags_out != nullptr) {
            *flags_out = flags;
        }
        return SQLITE_OK;
    }

    static int remove(sqlite3_vfs* v, const char* called, int for_good) {
        auto& on = *of(v).disk_;
        if (!on.has_power()) {
            return SQLITE_IOERR_DELETE;
        }
        if (!on.find(called)) {
            return SQLITE_IOERR_DELETE_NOENT;
        }
        on.remove(called, for_good != 0);
        return SQLITE_OK;
    }

    static int access(sqlite3_vfs* v, const char* called, int, int* answer) {
        const auto& on = *of(v).disk_;
        *answer = on.find(called) ? 1 : 0;
        return on.has_power() ? SQLITE_OK : SQLITE_IOERR_ACCESS;
    }

    static int full_name(sqlite3_vfs*, const char* called, int size, char* out) {
        sqlite3_snprintf(size, out, "%s", called);
        return SQLITE_OK;
    }

    // Files.

    static int close(sqlite3_file* f) {
        const std::unique_ptr<opened> self(&of(f));
        auto& by = self->place->by;
        by.erase(std::find(by.begin(), by.end(), self.get()));
        if (by.empty()) {
            self->in.places_.erase(self->called);
        }
        return SQLITE_OK;
    }

    static int read(sqlite3_file* f, void* out, int size, sqlite3_int64 at) {
        const auto& self = of(f);
        if (!self.on().has_power()) {
            return SQLITE_IOERR_READ;
        }
        const auto bytes = self.file->bytes();
        const auto from = std::min(bytes.size(), static_cast<std::size_t>(at));
        const auto found = bytes.substr(from, static_cast<std::size_t>(size));
        std::memset(out, 0, static_cast<std::size_t>(size));
        std::copy(found.begin(), found.end(), static_cast<char*>(out));
        return found.size() == static_cast<std::size_t>(size) ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    }
    static int write(sqlite3_file* f, const void* data, int size, sqlite3_int64 at) {
        const auto& self = of(f);
        const std::string_view bytes(static_cast<const char*>(data), static_cast<std::size_t>(size));
        return self.on().write(*self.file, static_cast<std::size_t>(at), bytes) ? SQLITE_OK : SQLITE_IOERR_WRITE;
    }
    static int truncate(sqlite3_file* f, sqlite3_int64 size) {
        const auto& self = of(f);
        return self.on().truncate(*self.file, static_cast<std::size_t>(size)) ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
    }
    static int sync(sqlite3_file* f, int) {
        const auto& self = of(f);
        return self.on().sync(*self.file) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
    }
    static int size(sqlite3_file* f, sqlite3_int64* out) {
        *out = static_cast<sqlite3_int64>(of(f).file->bytes().size());
        return of(f).on().has_power() ? SQLITE_OK : SQLITE_IOERR_FSTAT;
    }

    // Locks of the file.

    static int lock(sqlite3_file* f, int wanted) {
        auto& self = of(f);
        const auto others_have = [&](int least) {
            return self.another([&](const auto& o) { return o.lock >= least; });
        };
        const int in_the_way = wanted == SQLITE_LOCK_SHARED     ? SQLITE_LOCK_PENDING
                               : wanted == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED
                                                                : SQLITE_LOCK_SHARED;
        if (others_have(in_the_way)) {
            return SQLITE_BUSY;
        }
        self.lock = std::max(self.lock, wanted);
        return SQLITE_OK;
    }
    static int unlock(sqlite3_file* f, int kept) {
        of(f).lock = std::min(of(f).lock, kept);
        return SQLITE_OK;
    }
    static int is_reserved(sqlite3_file* f, int* answer) {
        const auto& self = of(f);
        const auto is = [](const opened& o) { return o.lock >= SQLITE_LOCK_RESERVED; };
        *answer = is(self) || self.another(is) ? 1 : 0;
        return SQLITE_OK;
    }

    // The index of the log. It is dropped with its last user.

    static int map_index(sqlite3_file* f, int region, int size, int extend, void volatile** out) {
        auto& self = of(f);
        auto& index = self.place->index;
        const auto wanted = static_cast<std::size_t>(region);
        self.has_index = true;
        if (size != static_cast<int>(sizeof(std::array<char, 32 * 1024>))) {
            return SQLITE_IOERR_SHMMAP;
        }
        while (extend != 0 && index.size() <= wanted) {
            index.push_back(std::make_unique<std::array<char, 32 * 1024>>());
            index.back()->fill(0);
        }
        *out = wanted < index.size() ? index[wanted]->data() : nullptr;
        return SQLITE_OK;
    }
    static int lock_index(sqlite3_file* f, int first, int count, int how) {
        auto& self = of(f);
        const auto bits = ((1U << static_cast<unsigned>(count)) - 1U) << static_cast<unsigned>(first);
        if ((how & SQLITE_SHM_UNLOCK) != 0) {
            self.shared &= ~bits;
            self.exclusive &= ~bits;
            return SQLITE_OK;
        }
        const bool is_shared = (how & SQLITE_SHM_SHARED) != 0;
        if (self.another([&](const auto& o) { return ((o.exclusive | (is_shared ? 0U : o.shared)) & bits) != 0; })) {
            return SQLITE_BUSY;
        }
        (is_shared ? self.shared : self.exclusive) |= bits;
        return SQLITE_OK;
    }
    static void index_barrier(sqlite3_file*) {}
    static int unmap_index(sqlite3_file* f, int) {
        auto& self = of(f);
        self.has_index = false;
        self.shared = self.exclusive = 0;
        if (!self.another([](const auto& o) { return o.has_index; })) {
            self.place->index.clear();
        }
        return SQLITE_OK;
    }

    static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
    static int sector_size(sqlite3_file*) { return 512; }
    static int characteristics(sqlite3_file*) {
        return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
    } // SQLite's default on every system

    static inline const sqlite3_io_methods methods{
        2,           close,       read,    write,       truncate,        sync,      size,       lock,
        unlock,      is_reserved, control, sector_size, characteristics, map_index, lock_index, index_barrier,
        unmap_index, nullptr,     nullptr};

    sqlite3_vfs vfs_{};
    disk* disk_ = nullptr;
    std::map<std::string, std::shared_ptr<place>> places_{};
};

} // namespace sqlite_test
