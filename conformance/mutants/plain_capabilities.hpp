// SPDX-License-Identifier: MIT
// What a plain store declares, and what it accepts. The two differ only in mutants.
#pragma once

#include <cstddef>

#include <vouch/contract/capability.hpp>

#include "variant.hpp"

namespace mutants {

[[nodiscard]] inline vouch::capabilities capabilities_of(const variant& t) {
    vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true};
    if (t.is(trait::lacks_capabilities)) {
        can.groups = can.lanes = can.wakes = false;
    }
    can.groups = can.groups && !t.is(trait::lacks_groups);
    can.lanes = can.lanes && !t.is(trait::lacks_lanes) && !t.is(defect::unsupported_leaves_open);
    can.wakes = can.wakes && !t.is(trait::lacks_wakes);
    // Long histories are cheap enough for the quick profile only in a store without a disk.
    can.durable = !t.is(trait::lacks_durability) && !t.is(defect::attempts_have_sixteen_bits) &&
                  !t.is(defect::lapses_have_sixteen_bits) && !t.is(defect::failures_have_sixteen_bits) &&
                  !t.is(defect::epoch_has_sixteen_bits);
    can.shared = !t.is(trait::lacks_sharing);
    can.committing =
        (t.committing && !t.is(committing_defect::is_not_declared)) || t.is(defect::committing_is_declared_and_absent);
    can.limits.name_max += t.is(trait::has_longer_names) ? 100U : 0U;
    can.limits.batch_max += t.is(trait::has_larger_batches) ? 500U : 0U;
    if (t.is(trait::has_wider_leases)) {
        can.limits.lease_max *= 2;
    }
    can.lanes = can.lanes && !t.is(defect::lanes_are_off_and_accepted);
    can.groups = can.groups && !t.is(defect::groups_are_off_and_accepted);
    if (t.is(trait::has_larger_limits)) {
        can.limits.payload_max = can.limits.result_max = can.limits.progress_max = std::size_t{4} << 20U;
    }
    if (t.is(defect::limits_are_lowered)) {
        can.limits.payload_max = 65'536;
    }
    return can;
}

/// What validation accepts; in some mutants more or less than the store declares.
[[nodiscard]] inline vouch::capabilities accepted_by(const variant& t) {
    auto can = capabilities_of(t);
    can.lanes = can.lanes || t.is(defect::lanes_are_off_and_accepted);
    can.groups = can.groups || t.is(defect::groups_are_off_and_accepted);
    if (t.is(defect::limits_are_exclusive)) {
        can.limits.payload_max -= 1;
        can.limits.name_max -= 1;
        can.limits.batch_max -= 1;
    }
    return can;
}

} // namespace mutants
