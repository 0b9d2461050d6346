// SPDX-License-Identifier: MIT
// Mutants that confuse names which differ, or keep another name than the one given. Most are generated: one for each
// field and each fold (name_folds.hpp).
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "name_folds.hpp"
#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> name_mutants{
    {"list: exactly this topic, no pattern; every path by its exact name.",
     {{"topic is a pattern", defect::topic_is_a_pattern}, {"group is a pattern", defect::group_is_a_pattern}}},
    {"A (queue, key) stored in any generation is a duplicate of the newest; no other draft is.",
     {{"key is a pattern", defect::key_is_a_pattern},
      {"keys are joined by a colon", defect::keys_are_joined_by_a_colon},
      {"keys are joined by a slash", defect::keys_are_joined_by_a_slash},
      {"keys are joined by nothing", defect::keys_are_joined_by_nothing}}},
    {"A draft whose predecessor is in another queue is refused; a successor has the same key, group and lane.",
     {{"successor names are lowered", defect::successor_names_are_lowered},
      {"successor in a queue like it", defect::successor_in_a_queue_like_it}}},
    {"The filter `topic` restricts every path to exactly that topic.",
     {{"topic of dead is a pattern", defect::topic_of_dead_is_a_pattern},
      {"topic of group ignores case", defect::topic_of_group_ignores_case}}},
    {"wakes: each queue has a number that changes with every commit that may have made work due sooner.",
     {{"wakes are kept in lower case", defect::wakes_are_kept_in_lower_case}}},
    {"An entry is blocked only by earlier entries of its own lane and queue.",
     {{"lane is a pattern", defect::lane_is_a_pattern},
      {"lanes are joined by a colon", defect::lanes_are_joined_by_a_colon},
      {"lanes are joined by a slash", defect::lanes_are_joined_by_a_slash},
      {"lanes are joined by nothing", defect::lanes_are_joined_by_nothing}}},
};

/// The fields by whose names a store finds entries.
inline constexpr std::array<std::string_view, 5> compared_names{"queue", "topic", "key", "group", "lane"};
inline constexpr std::array loose_comparisons{named_fold{fold::case_of_letters, "case"},
                                              named_fold{fold::trailing_spaces, "trailing spaces"},
                                              named_fold{fold::leading_spaces, "leading spaces"},
                                              named_fold{fold::numbers, "the writing of numbers"},
                                              named_fold{fold::last_byte, "the last byte"},
                                              named_fold{fold::normal_form, "normal forms"},
                                              named_fold{fold::beyond_the_bmp, "characters of four bytes"},
                                              named_fold{fold::backslashes, "backslashes"}};

/// The fields whose names a store only keeps.
inline constexpr std::array<std::string_view, 4> kept_names{"worker", "last_error", "header name", "header value"};
inline constexpr std::array changes{named_fold{fold::case_of_letters, "in lower case"},
                                    named_fold{fold::trailing_spaces, "without trailing spaces"},
                                    named_fold{fold::numbers, "as a number"},
                                    named_fold{fold::normal_form, "in another normal form"},
                                    named_fold{fold::beyond_the_bmp, "without characters of four bytes"},
                                    named_fold{fold::quotes, "with doubled quotes"}};

/// The fields that a store compares as well, with changes that do not confuse different names.
inline constexpr std::array<std::string_view, 4> compared_and_kept_names{"topic", "key", "group", "lane"};
inline constexpr std::array changes_of_compared{named_fold{fold::quotes, "with doubled quotes"},
                                                named_fold{fold::numbers, "as a number"}};

} // namespace mutants
