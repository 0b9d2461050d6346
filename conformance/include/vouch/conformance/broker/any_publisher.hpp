// SPDX-License-Identifier: MIT
// A publisher of any type, so that the clauses are compiled once. It holds a publisher that a function has returned,
// which need not be movable.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class any_publisher {
  public:
    /// Holds what `make` returns.
    template <class Make>
    [[nodiscard]] static any_publisher from(Make&& make) {
        static_assert(vouch::publisher<std::invoke_result_t<Make&>>,
                      "the fixture's publisher() returns what vouch/relay/publisher.hpp describes");
        return any_publisher(std::make_unique<holder<std::invoke_result_t<Make&>>>(make));
    }

    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        return held_->publish(messages);
    }

  private:
    struct any_holder {
        any_holder() = default;
        any_holder(const any_holder&) = delete;
        any_holder& operator=(const any_holder&) = delete;
        virtual ~any_holder() = default;
        virtual std::vector<confirmation> publish(std::span<const message> messages) = 0;
    };
    template <class Publisher>
    struct holder final : any_holder {
        template <class Make>
        explicit holder(Make& make) : held(make()) {}
        std::vector<confirmation> publish(std::span<const message> messages) override { return held.publish(messages); }
        Publisher held;
    };

    explicit any_publisher(std::unique_ptr<any_holder> held) noexcept : held_(std::move(held)) {}

    std::unique_ptr<any_holder> held_;
};

static_assert(vouch::publisher<any_publisher>);

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
