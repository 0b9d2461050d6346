// SPDX-License-Identifier: MIT
// expect: vouch: a translation unit includes either the single headers or the split ones, not both
#include <vouch/vouch.hpp>

#include "../../single_include/vouch/vouch.hpp"
