// SPDX-License-Identifier: MIT
// `vouch backup`: copies a SQLite file while workers run.
#pragma once

#include "../arguments.hpp"
#include "../database.hpp"
#include "../output.hpp"

namespace tool {

inline int backup(database& in, const arguments& with) {
    in.back_up(with.word);
    print("copied to " + plain(with.word) + "\n");
    return done;
}

} // namespace tool
