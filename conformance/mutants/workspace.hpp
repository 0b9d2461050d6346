// SPDX-License-Identifier: MIT
// The state on which the operations of a plain transaction work: its snapshot and what it has written. Every row is
// written through `put`, which is where a mutant loses fields or truncates bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/verdict.hpp>

#include "snapshot.hpp"
#include "value_defects.hpp"
#include "variant.hpp"

namespace mutants {

struct workspace {
    mutants::snapshot snapshot{};
    mutants::variant variant{};
    std::set<id> written{};     ///< every entry this transaction has changed
    std::set<id> passed_over{}; ///< entries that claims skip because another open transaction has touched them
    std::vector<std::string> woken_queues{};  ///< queues in which work may be due sooner
    std::uint64_t gap = 0;                    ///< skipped before each sequence
    std::function<std::uint64_t()> counter{}; ///< of sequences; empty: the snapshot's last one is used

    /// Called between two steps. `releases` is the defect: other transactions may write in between.
    std::function<void(std::string_view step, bool releases)> between_steps{};

    [[nodiscard]] bool is(defect d) const noexcept { return variant.is(d); }

    [[nodiscard]] std::uint64_t next_sequence() { return counter ? counter() : snapshot.last_sequence + 1 + gap; }

    void put(row r) {
        corrupt(r.entry);
        if (is(defect::blocked_is_due) && vouch::is_live(r.entry.state)) {
            r.gate = gate_of(r.entry);
        }
        const auto before = snapshot.find(r.entry.id);
        const bool is_nearer = r.gate && r.entry.state != vouch::state::claimed &&
                               (!before || before->gate != r.gate || before->entry.state == vouch::state::claimed);
        const bool is_opened = before && !before->gate && vouch::is_live(before->entry.state);
        if (is_nearer && !(is(defect::wake_forgets_opened_lanes) && is_opened)) {
            note_wake(r.entry.queue, before != nullptr);
        }
        written.insert(r.entry.id);
        snapshot.put(std::move(r));
    }

    void remove(const id& gone) {
        written.insert(gone);
        snapshot.remove(gone);
        if (is(defect::purge_frees_sequences)) {
            snapshot.last_sequence = 0;
            for (const auto& r : snapshot.all_rows()) {
                snapshot.last_sequence = std::max(snapshot.last_sequence, r->entry.sequence);
            }
        }
    }

    /// The verdict as this store reports it, which is wrong in the variant's cell.
    [[nodiscard]] vouch::verdict answer(verb_row verb, verdict_row row, verdict_column at, vouch::verdict v) const {
        const auto& wrong = variant.cell;
        if (!is(defect::verdict_is_wrong) || wrong.verb != verb || wrong.column != at) {
            return v;
        }
        // First and repeated nudges of an absent or terminal entry share a cell.
        const bool either = verb == verb_row::nudge && at >= verdict_column::succeeded;
        if (wrong.row != row && !either && at != verdict_column::absent) {
            return v;
        }
        return static_cast<vouch::verdict>((static_cast<unsigned>(v) + 1U) % vouch::all_verdicts.size());
    }

  private:
    void note_wake(const std::string& queue, bool was_there) {
        if (!(is(defect::wake_is_for_new_work_only) && was_there)) {
            woken_queues.push_back(queue);
        }
    }

    template <class Unit>
    static void cut_time(time_point& t) {
        t = std::chrono::floor<Unit>(t);
    }
    template <class Cut>
    static void each_time(entry& e, Cut&& cut) {
        vouch::for_each_field(
            [&](std::string_view, auto& value) {
                using type = std::remove_cvref_t<decltype(value)>;
                if constexpr (std::is_same_v<type, time_point>) {
                    cut(value);
                } else if constexpr (std::is_same_v<type, std::optional<time_point>>) {
                    if (value) {
                        cut(*value);
                    }
                }
            },
            e);
    }
    template <class Cut>
    static void each_body(entry& e, Cut&& cut) {
        cut(e.payload);
        cut(e.progress);
        if (e.result) {
            cut(*e.result);
        }
    }

    void corrupt(entry& e) const {
        switch (variant.defect) {
        case defect::field_is_forgotten:
            vouch::for_each_field(
                [&](std::string_view name, auto& value) {
                    if (name == variant.field) {
                        value = std::remove_cvref_t<decltype(value)>{};
                    }
                },
                e);
            break;
        case defect::bytes_end_at_nul:
            each_body(e, [](std::string& s) { s.resize(std::min(s.size(), s.find('\0'))); });
            break;
        case defect::bytes_are_cut_at_64k:
            each_body(e, [](std::string& s) { s.resize(std::min<std::size_t>(s.size(), 65'536)); });
            break;
        case defect::bytes_are_made_ascii:
            each_body(e, [](std::string& s) {
                std::replace_if(
                    s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; }, '?');
            });
            break;
        case defect::bytes_are_trimmed:
            each_body(e, [](std::string& s) { s.erase(s.find_last_not_of(" \n") + 1); });
            break;
        case defect::time_is_in_seconds: each_time(e, cut_time<std::chrono::seconds>); break;
        case defect::time_is_in_milliseconds: each_time(e, cut_time<std::chrono::milliseconds>); break;
        case defect::time_is_unsigned: each_time(e, [](time_point& t) { t = std::max(t, time_point{}); }); break;
        case defect::time_ends_in_2038:
            each_time(e, [](time_point& t) { t = std::min(t, time_point{std::chrono::seconds{2'147'483'647}}); });
            break;
        case defect::attempts_have_sixteen_bits: e.attempts &= 0xffffU; break;
        case defect::lapses_have_sixteen_bits: e.lapses &= 0xffffU; break;
        case defect::failures_have_sixteen_bits: e.failures &= 0xffffU; break;
        case defect::epoch_has_sixteen_bits: e.epoch &= 0xffffU; break;
        case defect::generation_has_four_bits: e.generation &= 0xfU; break;
        case defect::attempts_have_eight_bits: e.attempts &= 0xffU; break;
        case defect::lapses_have_eight_bits: e.lapses &= 0xffU; break;
        case defect::failures_have_eight_bits: e.failures &= 0xffU; break;
        case defect::epoch_has_eight_bits: e.epoch &= 0xffU; break;
        case defect::attempts_max_has_sixteen_bits: e.attempts_max &= 0xffffU; break;
        case defect::empty_result_is_none:
            if (e.result && e.result->empty()) {
                e.result.reset();
            }
            break;
        case defect::headers_are_sorted: std::stable_sort(e.headers.begin(), e.headers.end()); break;
        case defect::headers_keep_one_of_each_name: {
            std::set<std::string> names;
            std::erase_if(e.headers, [&](const auto& h) { return !names.insert(h.first).second; });
            break;
        }
        case defect::trail_keeps_sixteen: e.trail.resize(std::min<std::size_t>(e.trail.size(), 16)); break;
        case defect::error_keeps_sixty_four: e.last_error.resize(std::min<std::size_t>(e.last_error.size(), 64)); break;
        default:
            corrupt_by_size(variant, e);
            corrupt_by_time(variant, e);
            break;
        }
    }
};

} // namespace mutants
