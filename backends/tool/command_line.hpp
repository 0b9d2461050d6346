// SPDX-License-Identifier: MIT
// Reads the command line.
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"

namespace tool {

/// What these words ask for; `--help` and `--version` become the commands help and version. Throws `bad_usage`.
[[nodiscard]] arguments parse(const std::vector<std::string>& words);

} // namespace tool
