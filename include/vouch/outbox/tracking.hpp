// SPDX-License-Identifier: MIT
// A scope around an entry point of the application: everything that is emitted inside it continues one trail, without
// passing the trail to each `emit`.
//
//   const vouch::tracking scope(outbox);
//   outbox.emit(tx, {.topic = "user.created"}); // continues the trail of the scope
//
// A scope belongs to the thread that opens it and must end on that thread. A thread started inside it has no scope; give
// it one with the same trail: `vouch::tracking again(scope.trail())`. A coroutine that another thread resumes leaves its
// scope behind. Scopes nest: an inner scope continues the trail of the outer one. `emission::trail` takes precedence over
// the scope. A handler runs in a scope with the trail of its delivery.
#pragma once

#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/outbox/trail.hpp>

namespace vouch {
inline namespace v0 {

class emitter;

namespace detail {

/// The trail of this thread's innermost scope; null if there is none.
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
    /// Opens a trail with a fresh id, which continues the trail of the enclosing scope.
    explicit tracking(const emitter& from);

    /// Continues this trail instead of that of the enclosing scope.
    explicit tracking(id_list trail) : trail_(std::move(trail)) {}

    tracking(const tracking&) = delete;
    tracking& operator=(const tracking&) = delete;
    ~tracking() = default;

    [[nodiscard]] const id_list& trail() const noexcept { return trail_; }

    /// The trail of this thread's innermost scope; empty if there is none.
    [[nodiscard]] static id_list current() { return detail::trail_here == nullptr ? id_list{} : *detail::trail_here; }

  private:
    id_list trail_;
    detail::trail_scope scope_{trail_};
};

} // namespace v0
} // namespace vouch
