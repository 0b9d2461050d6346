// SPDX-License-Identifier: MIT
// How a call ended whose allocations, disk or connection may fail.
#pragma once

#include <cstdint>

#include <vouch/vouch.hpp>

namespace support {

enum class ending : std::uint8_t { done, undone, in_doubt, other_exception };

template <class F>
ending end_of(F&& f) {
    try {
        f();
        return ending::done;
    } catch (const vouch::error& e) {
        return e.is_in_doubt() ? ending::in_doubt : ending::undone;
    } catch (...) {
        return ending::other_exception;
    }
}

} // namespace support
