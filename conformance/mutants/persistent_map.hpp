// SPDX-License-Identifier: MIT
// An ordered map that is copied in constant time: a treap with immutable nodes. Changing a copy leaves the original as
// it is, so readers of an older snapshot are not disturbed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <vouch/contract/id.hpp>

namespace mutants {

template <class Key, class Value>
class persistent_map {
    struct node;
    using link = std::shared_ptr<const node>;
    struct node {
        Key key;
        Value value;
        std::uint64_t priority;
        link left{};
        link right{};
    };

  public:
    [[nodiscard]] const Value* find(const Key& key) const {
        const auto* at = root_.get();
        while (at != nullptr) {
            if (key < at->key) {
                at = at->left.get();
            } else if (at->key < key) {
                at = at->right.get();
            } else {
                return &at->value;
            }
        }
        return nullptr;
    }

    void set(const Key& key, Value value) {
        static std::atomic<std::uint64_t> made = 0;
        auto [below, rest] = split(root_, key, false);
        auto [same, above] = split(rest, key, true);
        const auto fresh =
            std::make_shared<const node>(node{key, std::move(value), vouch::detail::mix(++made), nullptr, nullptr});
        root_ = merge(merge(below, fresh), above);
    }

    void erase(const Key& key) {
        auto [below, rest] = split(root_, key, false);
        root_ = merge(below, split(rest, key, true).second);
    }

    /// Calls `f(key, value)` in ascending order, from the first key that is not less than `from`, until it returns
    /// false.
    template <class F>
    void walk(const Key& from, F&& f) const {
        walk_from(root_.get(), &from, f);
    }
    template <class F>
    void walk(F&& f) const {
        walk_from(root_.get(), nullptr, f);
    }

  private:
    template <class F>
    static bool walk_from(const node* at, const Key* from, F& f) {
        if (at == nullptr) {
            return true;
        }
        if (from != nullptr && at->key < *from) {
            return walk_from(at->right.get(), from, f);
        }
        return walk_from(at->left.get(), from, f) && f(at->key, at->value) && walk_from(at->right.get(), nullptr, f);
    }

    /// Splits into the nodes less than the key, or not greater if it is `included`, and the rest.
    static std::pair<link, link> split(const link& at, const Key& key, bool included) {
        if (!at) {
            return {};
        }
        const bool is_left = included ? !(key < at->key) : at->key < key;
        auto halves = split(is_left ? at->right : at->left, key, included);
        auto copy = *at;
        if (is_left) {
            copy.right = halves.first;
            return {std::make_shared<const node>(std::move(copy)), halves.second};
        }
        copy.left = halves.second;
        return {halves.first, std::make_shared<const node>(std::move(copy))};
    }

    static link merge(const link& below, const link& above) {
        if (!below || !above) {
            return below ? below : above;
        }
        if (below->priority > above->priority) {
            auto copy = *below;
            copy.right = merge(below->right, above);
            return std::make_shared<const node>(std::move(copy));
        }
        auto copy = *above;
        copy.left = merge(below, above->left);
        return std::make_shared<const node>(std::move(copy));
    }

    link root_{};
};

} // namespace mutants
