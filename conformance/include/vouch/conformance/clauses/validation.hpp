// SPDX-License-Identifier: MIT
// Validation of drafts: every limit accepts a value at the limit and refuses one above it, with the name of the field. A
// refusal writes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/reads.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

using namespace reads_checks;
using words = std::vector<std::string>; ///< what the message of a refusal must contain; the field comes first

/// A text that no message may quote.
inline constexpr std::string_view secret = "s3cret";

/// The largest content that is tried, although a store may declare higher limits.
inline constexpr std::size_t tried_max = 16U * 1024 * 1024;

[[nodiscard]] inline std::string bytes(std::size_t count) {
    std::string out(secret);
    out.resize(count, 'x');
    return out;
}

/// The words of a refusal for a value that is one above its limit.
[[nodiscard]] inline words one_over(std::string_view field, std::size_t limit) {
    return {std::string(field), std::to_string(limit + 1), std::to_string(limit)};
}

/// Requires that the call is refused with these words and changes nothing.
template <class Call>
void refuses(any_store& store, const words& says, Call&& call) {
    from_begin(store, [&](auto& tx) {
        const auto before = snapshot_of(tx);
        const auto what = "a call with a wrong " + says.front();
        const std::string message = trial::throws(error_kind::invalid_argument, what, [&] { call(tx); }).what();
        for (const auto& word : says) {
            if (message.find(word) == std::string::npos) {
                trial::fail(what + " is refused with the field, the limit and the size", show(message), show(word));
            }
        }
        trial::expect(message.find(secret) == std::string::npos, what + " is refused without quoting what was given");
        unchanged(tx, before, what + " changes nothing");
    });
}

/// Requires that a batch is refused if any one of its drafts is changed by `spoil`.
template <class Spoil>
void refuses_draft(any_store& store, const words& says, Spoil&& spoil) {
    for (std::size_t i = 0; i < 3; ++i) {
        std::array batch{draft_of(18), draft_of(19), draft_of(20)};
        spoil(batch[i]);
        refuses(store, says, [&](auto& tx) { tx.enqueue(batch, at(0)); });
    }
}

struct name_field {
    std::string_view name;
    std::string draft::*of;
    bool required;
};

/// The name fields of a draft that the store supports.
[[nodiscard]] inline std::vector<name_field> name_fields(const capabilities& can) {
    std::vector<name_field> out{
        {"queue", &draft::queue, true}, {"topic", &draft::topic, true}, {"key", &draft::key, false}};
    if (can.groups) {
        out.push_back({"group", &draft::group, false});
    }
    if (can.lanes) {
        out.push_back({"lane", &draft::lane, false});
    }
    return out;
}

inline void id_required(trial& t) {
    auto store = furnished(t);
    refuses_draft(store, {"id"}, [](draft& d) { d.id = {}; });
}

inline void names_bounded(trial& t) {
    const auto most = t.can().limits.name_max;
    for (const auto& field : name_fields(t.can())) {
        auto store = furnished(t);
        auto longest = draft_of(9);
        longest.*field.of = bytes(most);
        t.equal(put(store, longest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        refuses_draft(store, one_over(field.name, most), [&](draft& d) { d.*field.of = bytes(most + 1); });
        if (field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { (d.*field.of).clear(); });
        }
    }
}

inline void names_without_control(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        for (const char c : {'\0', '\x01', '\n', '\x1f', '\x7f'}) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = std::string("a") + c; });
        }
        refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = "a\xc2\x9f"; });
    }
    auto plain = draft_of(9);
    for (const auto& field : name_fields(t.can())) {
        plain.*field.of = " ~\xc2\xa0\xf4\x8f\xbf\xbf "; // U+00A0, U+10FFFF
    }
    t.equal(put(store, plain), inserted(9), "names with the characters next to the control characters");
}

/// Bytes that are not UTF-8: alone, cut off, overlong, half a surrogate pair, above U+10FFFF.
inline void names_in_utf8(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        for (const std::string_view bad :
             {"\xff", "\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = "a" + std::string(bad); });
        }
    }
}

struct content_field {
    std::string_view name;
    std::size_t limit;
    void (*set)(draft&, std::string);
};

inline void contents_bounded(trial& t) {
    const auto& limit = t.can().limits;
    const std::array fields{
        content_field{"payload", limit.payload_max, [](draft& d, std::string s) { d.payload = std::move(s); }},
        content_field{"progress", limit.progress_max, [](draft& d, std::string s) { d.progress = std::move(s); }},
        content_field{"result", limit.result_max, [](draft& d, std::string s) { d.result = std::move(s); }}};
    for (const auto& field : fields) {
        auto store = furnished(t);
        auto largest = draft_of(9);
        field.set(largest, bytes(std::min(field.limit, tried_max)));
        t.equal(put(store, largest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        if (field.limit <= tried_max) {
            refuses_draft(store, one_over(field.name, field.limit),
                          [&](draft& d) { field.set(d, bytes(field.limit + 1)); });
        }
    }
}

inline void trail_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.trail_max;
    t.equal(put(store, draft_of(9, {.trail = id_list(most, id_of(8))})), inserted(9), "a trail of the largest size");
    refuses_draft(store, one_over("trail", most), [&](draft& d) { d.trail.assign(most + 1, id_of(8)); });
}

inline void headers_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const header_list most(limit.headers_max, {bytes(limit.name_max), bytes(limit.header_value_max)});
    t.equal(put(store, draft_of(9, {.headers = most})), inserted(9),
            "the largest number of headers of the largest size");
    refuses_draft(store, one_over("header", limit.headers_max), [&](draft& d) {
        d.headers.assign(limit.headers_max + 1, {"n", ""});
    });
    const auto refuses_header = [&](const words& says, const std::string& name, const std::string& value) {
        refuses_draft(store, says, [&](draft& d) { d.headers = {{"n", "v"}, {name, value}}; });
    };
    refuses_header(one_over("header", limit.name_max), bytes(limit.name_max + 1), "");
    refuses_header(one_over("header", limit.header_value_max), "n", bytes(limit.header_value_max + 1));
    refuses_header({"header"}, "", "value");
    refuses_header({"header"}, "a\nb", "value");
}

inline void result_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (field.name == "group" || field.name == "lane") {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.result = "", d.*field.of = "x"; });
        }
    }
    refuses_draft(store, {"parent"}, [](draft& d) { d.result = "", d.parent = id_of(1); });
    refuses_draft(store, {"predecessor"}, [](draft& d) { d.result = "", d.predecessor = id_of(5); });
}

inline void predecessor_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (!field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) {
                d.predecessor = id_of(5);
                d.*field.of = "x";
            });
        }
    }
}

inline void batches_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.batch_max;
    auto tx = store.begin();
    t.equal(tx.enqueue(std::vector(most, draft_of(9)), at(0)).size(), most, "answers to the largest batch of drafts");
    t.equal(tx.settle(std::vector<vouch::settle>(most), at(0)).size(), most, "answers to the largest batch of settles");
    t.equal(tx.extend(std::vector<ticket>(most), at(0), duration{1}).size(), most, "answers to the most tickets");
    tx.commit();
    refuses(store, one_over("drafts", most), [&](auto& w) { w.enqueue(std::vector(most + 1, draft_of(18)), at(0)); });
    refuses(store, one_over("settles", most), [&](auto& w) {
        std::ignore = w.settle(std::vector(most + 1, vouch::settle{{id_of(3), 1}, succeed{}}), at(0));
    });
    refuses(store, one_over("tickets", most), [&](auto& w) {
        std::ignore = w.extend(std::vector(most + 1, ticket{id_of(3), 1}), at(90), duration{900});
    });
}

} // namespace validation_checks

inline constexpr std::array validation{
    clause{"VALID-01", layer::examples, level::must, needs::nothing, "A draft with the nil id is refused.",
           validation_checks::id_required},
    clause{
        "VALID-02", layer::examples, level::must, needs::nothing,
        "A draft's queue, topic, key, group and lane may have up to name_max bytes; queue and topic must not be empty.",
        validation_checks::names_bounded},
    clause{"VALID-03", layer::examples, level::must, needs::nothing,
           "A name with a control character, of ASCII or beyond, is refused; all other characters are allowed.",
           validation_checks::names_without_control},
    clause{"VALID-04", layer::examples, level::must, needs::nothing,
           "A draft's payload, progress and result may have as many bytes as the store's limits say, and not one more.",
           validation_checks::contents_bounded},
    clause{"VALID-05", layer::examples, level::must, needs::nothing, "A trail may have up to trail_max ids.",
           validation_checks::trail_bounded},
    clause{"VALID-06", layer::examples, level::must, needs::nothing,
           "Headers are limited in number, name and value, each exactly at its limit; their names must be valid names.",
           validation_checks::headers_bounded},
    clause{"VALID-07", layer::examples, level::must, needs::nothing,
           "A draft with a result is refused if it has a lane, group, parent or predecessor.",
           validation_checks::result_excludes},
    clause{"VALID-08", layer::examples, level::must, needs::nothing,
           "A draft with a predecessor is refused if it has a key, group or lane of its own.",
           validation_checks::predecessor_excludes},
    clause{"VALID-09", layer::examples, level::must, needs::nothing,
           "A batch of drafts, settles or tickets may have up to batch_max items.", validation_checks::batches_bounded},
    clause{"VALID-20", layer::examples, level::must, needs::nothing, "A name that is not valid UTF-8 is refused.",
           validation_checks::names_in_utf8},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
