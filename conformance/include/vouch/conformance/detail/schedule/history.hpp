// SPDX-License-Identifier: MIT
// Several parties, each on a thread and a handle of its own, do their deeds: a deed is one transaction. What each was
// answered, and when it began and ended, is the history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/scheduler.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

struct deed {
    std::size_t party = 0;
    std::vector<operation> operations{};
    bool commits = true;

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    deed::end ended = end::none;
    std::vector<answer> answers{};
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< by a counter of all events
    std::uint64_t ended_at = 0;

    [[nodiscard]] bool counts() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    [[nodiscard]] bool overlaps(const deed& other) const noexcept {
        return begun_at < other.ended_at && other.begun_at < ended_at;
    }
    [[nodiscard]] std::set<std::string> touched() const {
        std::set<std::string> names;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            add_touched(operations[i], i < answers.size() ? answers[i] : answer{}, names);
        }
        return names;
    }
};

/// What happened, in the order in which it happened, for people.
class chronicle {
  public:
    std::uint64_t add(std::size_t party, std::string text) {
        const std::lock_guard lock(mutex_);
        events_.emplace_back(party, std::move(text));
        return events_.size();
    }

    /// A column per party.
    [[nodiscard]] std::string text(std::size_t parties) const {
        constexpr std::size_t width = 58;
        std::string out;
        for (std::size_t p = 0; p < parties; ++p) {
            out += padded("party " + std::to_string(p + 1), width);
        }
        for (const auto& [party, what] : events_) {
            out += "\n" + std::string(party * width, ' ') + what;
        }
        return out + "\n";
    }

  private:
    [[nodiscard]] static std::string padded(std::string text, std::size_t width) {
        text.resize(width, ' ');
        return text;
    }

    std::mutex mutex_{};
    std::vector<std::pair<std::size_t, std::string>> events_{};
};

namespace detail {

/// The party the present thread is, for the store's seam.
inline thread_local baton* current_baton = nullptr;
inline thread_local std::size_t current_party = 0;

inline void do_deed(any_store& store, deed& d, baton& with, chronicle& told) {
    const auto tell = [&](std::string text) { return told.add(d.party, std::move(text)); };
    with.pause(d.party);
    d.begun_at = tell("begin");
    try {
        auto tx = store.begin();
        for (const auto& o : d.operations) {
            with.pause(d.party);
            d.answers.push_back(perform(tx, o));
            tell(show(o) + " -> " + show(o, d.answers.back()));
        }
        with.pause(d.party);
        if (d.commits) {
            tx.commit();
            d.ended = deed::end::committed;
        } else {
            d.ended = deed::end::rolled_back; // by the end of tx
        }
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? deed::end::conflict : deed::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = deed::end::threw;
        d.thrown = e.what();
    }
    switch (d.ended) {
    case deed::end::committed: d.ended_at = tell("committed"); break;
    case deed::end::rolled_back: d.ended_at = tell("rolled back"); break;
    default: d.ended_at = tell(d.thrown);
    }
}

} // namespace detail

/// Lets the parties do their deeds, each party's in order, as `choose` says. With a seam the store's insides are
/// points, too.
template <class Choose>
void act(trial& t, std::vector<any_store>& handles, std::vector<deed>& deeds, chronicle& told, Choose&& choose) {
    baton with(handles.size(), std::forward<Choose>(choose));
    if (t.hooks().seam) {
        t.hooks().seam([](std::string_view) {
            if (detail::current_baton != nullptr) {
                detail::current_baton->pause(detail::current_party);
            }
        });
    }
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < handles.size(); ++p) {
        threads.emplace_back([&, p] {
            with.enter(p);
            detail::current_baton = &with;
            detail::current_party = p;
            for (auto& d : deeds) {
                if (d.party == p) {
                    detail::do_deed(handles[p], d, with, told);
                }
            }
            detail::current_baton = nullptr;
            with.finish(p);
        });
    }
    with.conduct();
    for (auto& thread : threads) {
        thread.join();
    }
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch
