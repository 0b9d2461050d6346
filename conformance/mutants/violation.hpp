// SPDX-License-Identifier: MIT
// A sentence of the contract, and the mutants of the plain store that violate it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "variant.hpp"

namespace mutants {

/// Which profile of the suite finds a mutant with every seed.
enum class found_by : std::uint8_t {
    quick,
    standard, ///< or quick, but not measured with 20 seeds
    nothing,  ///< no clause finds it reliably yet; a test of its own shows its effect
};

struct violation {
    struct by {
        std::string_view name;
        mutants::defect defect;
    };
    std::string_view sentence;
    std::vector<by> stores;
};

} // namespace mutants
