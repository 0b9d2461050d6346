// SPDX-License-Identifier: MIT
// What Meson precompiles for the tests; it wants such a header in a folder of its own.
#include <vouch/vouch.hpp>

#include "../property.hpp"
