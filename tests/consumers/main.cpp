// SPDX-License-Identifier: MIT
// What every consumer project builds: enough to see that the headers are found and work.
#include <vouch/vouch.hpp>

int main() {
    const vouch::time_point start{};
    const bool moves = vouch::later(start, vouch::duration{1}) > start;
    return moves && VOUCH_VERSION_MAJOR >= 0 ? 0 : 1;
}
