// SPDX-License-Identifier: MIT
// The answers under /api and /metrics. Who may ask has been decided before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/metrics.hpp>
#include <vouch/page/detail/actions.hpp>
#include <vouch/page/detail/entry_json.hpp>
#include <vouch/page/detail/filter.hpp>
#include <vouch/page/detail/json.hpp>
#include <vouch/page/detail/listing.hpp>
#include <vouch/page/detail/looks.hpp>
#include <vouch/page/detail/overview.hpp>
#include <vouch/page/detail/parameters.hpp>
#include <vouch/page/detail/wait_reason.hpp>
#include <vouch/page/message.hpp>
#include <vouch/page/options.hpp>
#include <vouch/saga/inspect.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline response json_response(std::string body, int status = 200) {
    return {.status = status, .content_type = "application/json; charset=utf-8", .body = std::move(body)};
}
[[nodiscard]] inline response failure(int status, std::string_view sentence) {
    return json_response(json{}.text("error", sentence).object(), status);
}

template <class Store>
class api {
  public:
    api(Store& store, const options& how) : store_(store), how_(how) {}

    [[nodiscard]] std::vector<std::string> queues() const {
        std::vector<std::string> out;
        if (how_.queues) {
            out = how_.queues();
        } else if constexpr (requires(const Store& s) { s.queues(); }) {
            out = store_.queues();
        }
        std::sort(out.begin(), out.end());
        return out;
    }

    void look(std::chrono::milliseconds budget) {
        constexpr std::size_t entries_max = 1000;
        looks_.refresh(store_, queues(), how_.now, numbers(),
                       {.stuck_after = how_.stuck_after, .entries_max = entries_max}, budget);
    }

    [[nodiscard]] response overview(bool may_write) {
        look_if_asked();
        json rows;
        for (const auto& queue : queues()) {
            rows.item(json_queue(queue, looks_.at(queue)));
        }
        json out;
        out.text("name", how_.name).time("now", how_.now()).truth("may_write", may_write);
        out.truth("read_only", how_.read_only || how_.token.empty() || !vouch::store<Store>);
        out.raw("stuck_after", std::to_string(how_.stuck_after / std::chrono::seconds{1}));
        out.raw("queues", rows.array());
        return json_response(out.object());
    }

    [[nodiscard]] response metrics_text() {
        look_if_asked();
        return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = numbers().text() + look_ages(queues(), looks_, how_.now())};
    }

    [[nodiscard]] response list(const parameters& p) const {
        constexpr std::uint64_t limit_max = 200;
        const auto now = how_.now();
        const auto found =
            list_entries(store_, filter_of(p, how_.stuck_after), queues(), cursor::of(p.text("cursor")), now,
                         {.found_max = static_cast<std::size_t>(std::min(p.number("limit").value_or(50), limit_max)),
                          .read_max = how_.read_max});
        json rows;
        std::size_t lanes = 0;
        for (const auto& e : found.found) {
            // To find the head of a lane may read a page, so a list does it for a few entries only.
            constexpr std::size_t lanes_max = 5;
            lanes += e.lane.empty() ? 0U : 1U;
            const bool is_cheap = how_.head_of_lane || lanes <= lanes_max;
            const auto why = why_not_running(store_, e, now, is_cheap ? heads() : lane_search(unsought));
            rows.item(row_of(e).raw("why", json_of(why)).object());
        }
        json out;
        out.raw("entries", rows.array()).number("read", found.read).time("now", now);
        out.raw("next", found.next.empty() ? "null" : json_text(found.next));
        return json_response(out.object());
    }

    [[nodiscard]] response show(const id& which) const {
        constexpr std::size_t shown_max = 256 * 1024;
        const auto e = store_.find(which);
        if (!e) {
            return failure(404, "There is no such entry. A purge may have removed it.");
        }
        const auto now = how_.now();
        auto out = row_of(*e);
        out.time("now", now).raw("why", json_of(why_not_running(store_, *e, now, heads()))).truth("woken", e->woken);
        json trail;
        for (const auto& step : e->trail) {
            trail.item(json_id(step));
        }
        json headers;
        for (const auto& [name, value] : e->headers) {
            headers.item(json{}.text("name", name).text("value", value).object());
        }
        out.raw("trail", trail.array()).raw("headers", headers.array());
        if (how_.payloads) {
            out.raw("payload", json_bytes(e->payload, shown_max));
            out.raw("result", e->result && !is_saga(*e) ? json_bytes(*e->result, shown_max) : "null");
            out.raw("progress", e->progress.empty() || is_saga(*e) ? "null" : json_bytes(e->progress, shown_max));
        }
        const auto saga = is_saga(*e) ? inspect(store_, e->id) : std::nullopt;
        out.raw("saga", saga ? json_of(*saga, how_.payloads) : "null");
        json children;
        for (const auto& child : store_.list(query::children(e->id))) {
            children.item(row_of(child).object());
        }
        return json_response(out.raw("children", children.array()).object());
    }

    /// As bytes that no browser shows or runs.
    [[nodiscard]] response payload(const id& which) const {
        const auto e = how_.payloads ? store_.find(which) : std::nullopt;
        if (!e) {
            return failure(404, "There is no such entry, or payloads are not shown.");
        }
        return {.content_type = "application/octet-stream",
                .headers = {{"Content-Disposition", "attachment; filename=\"" + to_string(which) + ".bin\""}},
                .body = e->payload};
    }

    [[nodiscard]] response act(const id& which, std::string_view verb) {
        if constexpr (vouch::store<Store>) {
            const auto now = how_.now();
            const auto got = verb == "retry"    ? retry(store_, which, now)
                             : verb == "cancel" ? cancel(store_, which, now)
                                                : requeue_one(store_, which, how_.ids, now);
            return json_response(
                json{}.text(got.status == 200 ? "done" : "error", got.sentence).id("successor", got.successor).object(),
                got.status);
        } else {
            return failure(403, "This page cannot change anything.");
        }
    }

    /// One step of a bulk requeue: counts, or requeues, the dead entries of the next page.
    [[nodiscard]] response requeue_page(const parameters& p) {
        constexpr std::size_t commit_max = 100; // in one transaction, so that workers need not wait long
        auto wanted = filter_of(p, how_.stuck_after);
        wanted.state = "dead";
        const bool is_dry = p.text("dry_run") == "1";
        const auto until = p.number("until").value_or(0);
        if (!is_dry && until == 0) {
            throw bad_request("until must be the last sequence that the dry run counted");
        }
        const auto found = list_entries(
            store_, wanted, queues(), cursor::of(p.text("cursor")), how_.now(),
            {.found_max = is_dry ? how_.read_max : commit_max, .read_max = how_.read_max, .until = is_dry ? 0 : until});
        json out;
        std::uint64_t last = 0;
        std::size_t commands = 0;
        for (const auto& e : found.found) {
            last = std::max(last, e.sequence);
            commands += e.parent.is_nil() ? 0U : 1U;
        }
        out.number("matched", found.found.size()).number("commands", commands).number("read", found.read);
        out.raw("last", '"' + std::to_string(last) + '"');
        out.raw("next", found.next.empty() ? "null" : json_text(found.next));
        if constexpr (vouch::store<Store>) {
            const auto got = is_dry ? requeued{} : requeue_all(store_, found.found, how_.ids, how_.now());
            out.number("requeued", got.inserted).number("had_a_successor", got.had_one).number("refused", got.refused);
        }
        return json_response(out.object());
    }

  private:
    [[nodiscard]] static lane_head unsought(const entry&) { return {.is_known = false}; }
    [[nodiscard]] lane_search heads() const {
        if (how_.head_of_lane) {
            return [this](const entry& e) { return lane_head{.entry = how_.head_of_lane(e)}; };
        }
        return [this](const entry& e) { return head_among_oldest(store_, e, how_.read_max); };
    }
    [[nodiscard]] metrics& numbers() { return how_.metrics != nullptr ? *how_.metrics : own_numbers_; }
    void look_if_asked() {
        if (how_.look_in_requests) {
            look(std::chrono::milliseconds{50});
        }
    }

    Store& store_;
    const options& how_;
    looks looks_{};
    metrics own_numbers_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
