// SPDX-License-Identifier: MIT
// A sentence of the contract, and the mutants of the plain store that violate it.
#pragma once

#include <string_view>
#include <vector>

#include "variant.hpp"

namespace mutants {

struct violation {
    struct by {
        std::string_view name;
        mutants::defect defect;
    };
    std::string_view sentence;
    std::vector<by> stores;
};

} // namespace mutants
