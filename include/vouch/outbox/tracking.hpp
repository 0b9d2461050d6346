// SPDX-License-Identifier: MIT
// A scope around an entry point of the application: everything that is emitted inside it continues one trail, without
// handing the trail to each `emit`.
//
//   const vouch::tracking scope(outbox);
//   outbox.emit(tx, {.topic = "user.created"}); // below the trail of the scope
//
// A scope belongs to the thread that opened it, and ends there. A thread started inside it has no scope of its own;
// give it one with the same trail: `vouch::tracking again(scope.trail())`. Nor does a coroutine take a scope along when
// another thread resumes it. Scopes nest: an inner one continues the trail of the outer one, and the outer one is back
// when the inner one ends. A trail handed to `emit` goes before the scope's; a handler has the scope of its delivery.
#pragma once

#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/outbox/trail.hpp>

namespace vouch {
inline namespace v0 {

class emitter;

namespace detail {

/// Of the innermost scope of this thread; null where there is none.
inline thread_local const id_list* trail_here = nullptr;

/// A scope with a trail that outlives it.
class trail_scope {
  public:
    explicit trail_scope(const id_list& trail) noexcept : outer_(std::exchange(trail_here, &trail)) {}
    trail_scope(const trail_scope&) = delete;
    trail_scope& operator=(const trail_scope&) = delete;
    ~trail_scope() { trail_here = outer_; }

  private:
    const id_list* outer_;
};

} // namespace detail

class tracking {
  public:
    /// Opens a trail with an id of the outbox, below the trail of the scope this one is in.
    explicit tracking(const emitter& from);

    /// Continues this trail, whatever the scope this one is in.
    explicit tracking(id_list trail) : trail_(std::move(trail)) {}

    tracking(const tracking&) = delete;
    tracking& operator=(const tracking&) = delete;
    ~tracking() = default;

    [[nodiscard]] const id_list& trail() const noexcept { return trail_; }

    /// The trail of the innermost scope of this thread; empty where there is none.
    [[nodiscard]] static id_list current() { return detail::trail_here == nullptr ? id_list{} : *detail::trail_here; }

  private:
    id_list trail_;
    detail::trail_scope scope_{trail_};
};

} // namespace v0
} // namespace vouch
