// SPDX-License-Identifier: MIT
// A file system that fails on request: SQLite's default one, whose n-th call, or those from the n-th on, report an
// error instead of being carried out. It is selected by name, so other connections do not use it. Syncs are counted but not
// carried out, because no test takes the power away. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace sqlite_test {

/// Counts calls and says which of them fail.
struct fault {
    long nth = 0;    ///< the call that fails, counted from 1; 0: none does
    long length = 1; ///< so many in a row
    bool has_fired = false;

    [[nodiscard]] bool strikes() noexcept {
        if (nth <= 0) {
            return false;
        }
        if (nth > 1) {
            nth -= 1;
            return false;
        }
        has_fired = true;
        length -= 1;
        nth = length > 0 ? 1 : 0;
        return true;
    }

    static constexpr long for_ever = 1'000'000'000;
};

class faulty_vfs {
  public:
    enum class call : std::uint8_t { open, remove, access, read, write, truncate, sync, size, lock, shm_map, shm_lock };

    /// Calls that meet `matters` are counted by `next`, and fail with what `code` says.
    std::function<bool(call, std::string_view path)> matters = [](call, std::string_view) { return true; };
    std::function<int(call)> code = usual_code;
    fault next{};
    bool is_read_only = false; ///< files are opened as if they could only be read

    explicit faulty_vfs(std::string name) : name_(std::move(name)), real_(sqlite3_vfs_find(nullptr)) {
        vfs_ = *real_;
        vfs_.iVersion = 2;
        vfs_.szOsFile = static_cast<int>(sizeof(file)) + real_->szOsFile;
        vfs_.pNext = nullptr;
        vfs_.zName = name_.c_str();
        vfs_.pAppData = this;
        vfs_.xOpen = [](sqlite3_vfs* vfs, const char* path, sqlite3_file* at, int flags, int* got) {
            return of(vfs).open(path, at, flags, got);
        };
        vfs_.xDelete = [](sqlite3_vfs* vfs, const char* path, int sync) {
            auto& self = of(vfs);
            const int failed = self.meets(call::remove, path);
            return failed != SQLITE_OK ? failed : self.real_->xDelete(self.real_, path, sync);
        };
        vfs_.xAccess = [](sqlite3_vfs* vfs, const char* path, int flags, int* out) {
            auto& self = of(vfs);
            const int failed = self.meets(call::access, path);
            return failed != SQLITE_OK ? failed : self.real_->xAccess(self.real_, path, flags, out);
        };
        vfs_.xFullPathname = [](sqlite3_vfs* vfs, const char* path, int size, char* out) {
            auto* const real = of(vfs).real_;
            return real->xFullPathname(real, path, size, out);
        };
        if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) {
            throw std::runtime_error("no second file system");
        }
    }
    faulty_vfs(const faulty_vfs&) = delete;
    faulty_vfs& operator=(const faulty_vfs&) = delete;
    ~faulty_vfs() { sqlite3_vfs_unregister(&vfs_); }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// What SQLite's own file systems report.
    [[nodiscard]] static int usual_code(call which) noexcept {
        switch (which) {
        case call::open: return SQLITE_CANTOPEN;
        case call::remove: return SQLITE_IOERR_DELETE;
        case call::access: return SQLITE_IOERR_ACCESS;
        case call::read: return SQLITE_IOERR_READ;
        case call::write: return SQLITE_IOERR_WRITE;
        case call::truncate: return SQLITE_IOERR_TRUNCATE;
        case call::sync: return SQLITE_IOERR_FSYNC;
        case call::size: return SQLITE_IOERR_FSTAT;
        case call::lock: return SQLITE_IOERR_LOCK;
        case call::shm_map: return SQLITE_IOERR_SHMMAP;
        case call::shm_lock: return SQLITE_IOERR_SHMLOCK;
        }
        return SQLITE_IOERR;
    }

  private:
    /// What SQLite holds for an open file; the real one lies behind it.
    struct file {
        sqlite3_file base;
        faulty_vfs* owner;
        const char* path;

        [[nodiscard]] sqlite3_file* real() noexcept { return reinterpret_cast<sqlite3_file*>(this + 1); }
    };

    static faulty_vfs& of(sqlite3_vfs* vfs) noexcept { return *static_cast<faulty_vfs*>(vfs->pAppData); }

    /// The error, or SQLITE_OK if the call is to be carried out.
    int meets(call which, const char* path) {
        const bool fails = matters(which, path == nullptr ? "" : path) && next.strikes();
        return fails ? code(which) : SQLITE_OK;
    }

    int open(const char* path, sqlite3_file* at, int flags, int* got) {
        auto* const made = new (at) file{{nullptr}, this, path};
        if (const int failed = meets(call::open, path); failed != SQLITE_OK) {
            return failed;
        }
        if (is_read_only) {
            flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
        }
        made->real()->pMethods = nullptr;
        const int rc = real_->xOpen(real_, path, made->real(), flags, got);
        if (made->real()->pMethods != nullptr) {
            made->base.pMethods = methods();
        }
        return rc;
    }

    /// Carries a call out on the real file, unless it fails first.
    template <class Method, class... Arguments>
    static int carry_out(sqlite3_file* at, call which, Method method, Arguments... arguments) {
        auto& f = *reinterpret_cast<file*>(at);
        const int failed = f.owner->meets(which, f.path);
        return failed != SQLITE_OK ? failed : (f.real()->pMethods->*method)(f.real(), arguments...);
    }

    /// As `carry_out`, for what never fails.
    template <class Method, class... Arguments>
    static auto pass_on(sqlite3_file* at, Method method, Arguments... arguments) {
        auto* const real = reinterpret_cast<file*>(at)->real();
        return (real->pMethods->*method)(real, arguments...);
    }

    static const sqlite3_io_methods* methods() {
        using io = sqlite3_io_methods;
        static const io made = [] {
            io m{};
            m.iVersion = 2; // without memory-mapped reading, which could not fail
            m.xClose = [](sqlite3_file* f) { return pass_on(f, &io::xClose); };
            m.xRead = [](sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
                return carry_out(f, call::read, &io::xRead, to, size, at);
            };
            m.xWrite = [](sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
                return carry_out(f, call::write, &io::xWrite, from, size, at);
            };
            m.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
                return carry_out(f, call::truncate, &io::xTruncate, size);
            };
            m.xSync = [](sqlite3_file* f, int) {
                auto& self = *reinterpret_cast<file*>(f);
                return self.owner->meets(call::sync, self.path);
            };
            m.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
                return carry_out(f, call::size, &io::xFileSize, size);
            };
            m.xLock = [](sqlite3_file* f, int level) { return carry_out(f, call::lock, &io::xLock, level); };
            m.xUnlock = [](sqlite3_file* f, int level) { return pass_on(f, &io::xUnlock, level); };
            m.xCheckReservedLock = [](sqlite3_file* f, int* out) { return pass_on(f, &io::xCheckReservedLock, out); };
            m.xFileControl = [](sqlite3_file* f, int op, void* with) {
                return pass_on(f, &io::xFileControl, op, with);
            };
            m.xSectorSize = [](sqlite3_file* f) { return pass_on(f, &io::xSectorSize); };
            m.xDeviceCharacteristics = [](sqlite3_file* f) { return pass_on(f, &io::xDeviceCharacteristics); };
            m.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
                return carry_out(f, call::shm_map, &io::xShmMap, page, size, extend, out);
            };
            m.xShmLock = [](sqlite3_file* f, int from, int count, int flags) {
                return (flags & SQLITE_SHM_UNLOCK) != 0
                           ? pass_on(f, &io::xShmLock, from, count, flags)
                           : carry_out(f, call::shm_lock, &io::xShmLock, from, count, flags);
            };
            m.xShmBarrier = [](sqlite3_file* f) { pass_on(f, &io::xShmBarrier); };
            m.xShmUnmap = [](sqlite3_file* f, int remove) { return pass_on(f, &io::xShmUnmap, remove); };
            return m;
        }();
        return &made;
    }

    std::string name_;
    sqlite3_vfs* real_;
    sqlite3_vfs vfs_{};
};

} // namespace sqlite_test
