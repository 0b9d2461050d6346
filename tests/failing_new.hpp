// SPDX-License-Identifier: MIT
// Replaces the global operator new of a program by one that can fail. One source file of the program includes this and
// defines `allocation_fails`, which is asked at every allocation.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

/// Whether this allocation of the calling thread fails.
[[nodiscard]] bool allocation_fails() noexcept;

// Inlined, GCC 12 would see through one half of a pair and warn that the halves do not match.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return allocation_fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const p = operator new(size, std::nothrow)) {
        return p;
    }
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return operator new(size, std::nothrow);
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
