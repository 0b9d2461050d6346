// SPDX-License-Identifier: MIT
// The world a saga acts upon in a trial: every step has one effect, which happens once however often it is asked for
// and is gone when it is undone. The world goes wrong as the choices say, knows the truth about every effect, and
// complains about every call that should not have been made.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/testing/saga/detail/crashing_store.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

/// What becomes of the answer of an action that has been called.
enum class answering { at_once, late, too_late };

class saga_world {
  public:
    /// Steps whose condition answers no are named by `skipped`.
    saga_world(const saga_definition& d, choices& fate, process& in, const std::vector<bool>& skipped)
        : definition_(d), fate_(fate), process_(in) {
        steps_.resize(d.steps.size());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            steps_[i].is_skipped = i < skipped.size() && skipped[i];
        }
    }

    /// Truth about a step.
    struct step {
        bool is_skipped = false; ///< its condition says no
        bool has_effect = false;
        bool was_tried = false;    ///< called, or claimed by somebody who died over it: it may have done something
        bool has_rejected = false; ///< its last word
        bool was_undone = false;   ///< its compensation has been called
        id done_under{};           ///< the key its effect happened under
        id undone_under{};         ///< the key its effect was undone under
        enum class habit { none, fails, crashes, rejects } forward = habit::none, undo = habit::none;
    };

    /// The forward action. Gives its result, or throws as actions do. What has the key of an earlier call is done
    /// already.
    std::string act(std::size_t i, const id& key) {
        auto& s = steps_[i];
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            complain_if(!steps_[earlier].has_effect && !steps_[earlier].is_skipped, i,
                        "runs before the steps before it are done");
        }
        complain_if(s.is_skipped, i, "runs though its condition says no");
        complain_if(last_undone_.has_value(), i, "runs forward after the saga has turned round");
        complain_if(has_ended_, i, "runs after the saga has ended");
        const bool was_tried_before = std::exchange(s.was_tried, true);
        s.has_rejected = false;
        const auto way = s.forward == step::habit::none && !s.has_effect ? fate_.choose(name(i), trouble(i)) : 0;
        go_wrong_before(way, s.forward);
        if (way == 6 || s.forward == step::habit::rejects) {
            s.has_rejected = true;
            s.was_tried = was_tried_before;
            throw reject("rejected");
        }
        complain_if(s.has_effect && s.done_under != key, i, "is done twice, under two keys");
        s.has_effect = true;
        s.done_under = key;
        go_wrong_after(way, s.forward);
        return result_of(i);
    }

    /// The compensation, handed `result`; `is_answered`: it is on record that the forward action succeeded.
    void undo(std::size_t i, std::string_view result, bool is_answered, const id& key) {
        auto& s = steps_[i];
        for (auto later = i + 1; later < steps_.size(); ++later) {
            complain_if(steps_[later].has_effect && definition_.steps[later].has_undo(), i,
                        "is undone before the steps after it are");
        }
        complain_if(last_undone_ && i > *last_undone_, i, "is undone after the steps before it");
        complain_if(s.has_rejected && !s.was_tried, i, "is undone though it rejected");
        complain_if(!s.was_tried && !s.has_rejected, i, "is undone though nobody ever tried it");
        complain_if(result != (is_answered ? result_of(i) : std::string{}), i, "is undone with the wrong result");
        complain_if(has_ended_, i, "is undone after the saga has ended");
        last_undone_ = i;
        s.was_undone = true;
        const auto way = s.undo == step::habit::none ? fate_.choose("undo " + name(i), trouble(i)) : 0;
        go_wrong_before(way, s.undo);
        if (way == 6 || s.undo == step::habit::rejects) {
            s.undo = step::habit::fails;
            throw reject("undo_rejected");
        }
        complain_if(!s.undone_under.is_nil() && s.undone_under != key, i, "is undone twice, under two keys");
        s.undone_under = std::exchange(s.has_effect, false) ? key : s.undone_under;
        go_wrong_after(way, s.undo);
    }

    /// What becomes of the answer of the remote action that was just called.
    [[nodiscard]] answering answers() noexcept { return std::exchange(answering_, answering::at_once); }

    /// Whatever the step answered, nobody has heard it.
    void note_claim_lost(std::size_t i) {
        steps_.at(i).was_tried = true;
        steps_.at(i).has_rejected = false;
    }
    void note_end() noexcept { has_ended_ = true; }
    /// Everybody is well again; what a person would see to before a resume.
    void heal() {
        has_ended_ = false;
        for (auto& s : steps_) {
            s.forward = s.undo = step::habit::none;
        }
    }

    [[nodiscard]] const std::vector<step>& steps() const noexcept { return steps_; }
    [[nodiscard]] bool has_undone() const noexcept { return last_undone_.has_value(); }
    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
    void complain(std::string what) {
        if (complaint_.empty()) {
            complaint_ = std::move(what);
        }
    }
    [[nodiscard]] static std::string result_of(std::size_t i) { return "r" + std::to_string(i); }

  private:
    [[nodiscard]] std::vector<std::string_view> trouble(std::size_t i) const {
        std::vector<std::string_view> ways{"",
                                           "fails once",
                                           "fails always",
                                           "crashes before its effect",
                                           "crashes after its effect",
                                           "crashes always",
                                           "rejects",
                                           "fails after its effect, and always",
                                           "fails after its effect, then rejects"};
        if (definition_.steps[i].is_remote()) {
            ways.insert(ways.end(), {"answers late", "answers after its lease"});
        }
        return ways;
    }

    void go_wrong_before(std::size_t way, step::habit& habit) {
        habit = way == 2 ? step::habit::fails : way == 5 ? step::habit::crashes : habit;
        if (way == 3 || habit == step::habit::crashes) {
            process_.die();
            throw failure("crash");
        }
        if (way == 1 || habit == step::habit::fails) {
            throw failure("failed");
        }
    }
    void go_wrong_after(std::size_t way, step::habit& habit) {
        if (way == 4) {
            process_.die();
            throw failure("crash");
        }
        if (way == 7 || way == 8) {
            habit = way == 7 ? step::habit::fails : step::habit::rejects;
            throw failure("failed");
        }
        answering_ = way == 9 ? answering::late : way == 10 ? answering::too_late : answering::at_once;
    }

    void complain_if(bool wrong, std::size_t i, std::string_view what) {
        if (wrong) {
            complain("step " + name(i) + ' ' + std::string(what));
        }
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return definition_.steps[i].name; }

    const saga_definition& definition_;
    choices& fate_;
    process& process_;
    std::vector<step> steps_{};
    std::optional<std::size_t> last_undone_{};
    answering answering_ = answering::at_once;
    bool has_ended_ = false;
    std::string complaint_{};
};

} // namespace testing
} // namespace v0
} // namespace vouch
