// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `verdict nudge(const id&, time_point now)`
#include "whole.hpp"

struct lacking : whole::writer {
    void nudge() = delete;
};

vouch::receipt use(lacking& tx, vouch::time_point now) {
    return vouch::requeue(tx, {.dead = {.high = 0, .low = 1}, .successor = {.high = 0, .low = 2}, .now = now});
}
