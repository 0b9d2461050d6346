// SPDX-License-Identifier: MIT
// Carries a message's properties (`relay/properties.hpp`) in a message of AMQP, and reads them back.
//
// Each property is a field of the headers table, so that other programs see it under its own name. A broker does not keep the
// order of fields, a table has no two fields of one name, a name has at most 255 bytes, and brokers have names of their own.
// So:
//  - headers whose names ascend, each once, need nothing more;
//  - otherwise the field `vouch-order`, an array, has one item per header, in order: the name of the field that has the value,
//    or an array of the name and the value of a header that has no field;
//  - properties of more than half a frame are at the beginning of the body instead, each as two texts with their
//    sizes in four bytes (big-endian), and the field `vouch-spilled` says how many bytes they have.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/properties.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// The application of our messages. Their property `type` is the topic.
inline constexpr std::string_view application = "vouch";
inline constexpr std::string_view order_field = "vouch-order";
inline constexpr std::string_view spilled_field = "vouch-spilled";

/// Whether a broker gives the field a meaning, or adds it by itself. Then it carries no header.
[[nodiscard]] inline bool is_brokers(std::string_view name) noexcept {
    constexpr std::array words{"CC", "BCC", "x-death", "x-delivery-count", "x-acquired-count", "x-received-from"};
    constexpr std::array beginnings{"x-first-death-", "x-last-death-", "x-shovelled", "x-opt-"};
    return std::find(words.begin(), words.end(), name) != words.end() ||
           std::any_of(beginnings.begin(), beginnings.end(), [&](const char* b) { return name.starts_with(b); });
}

inline void append_sized(std::string& out, std::string_view text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        out += static_cast<char>(static_cast<unsigned char>(size >> shift));
    }
    out += text;
}

/// Takes a text off the front; none if there is none.
[[nodiscard]] inline std::optional<std::string_view> take_sized(std::string_view& from) noexcept {
    constexpr std::size_t prefix = 4;
    if (from.size() < prefix) {
        return std::nullopt;
    }
    std::size_t size = 0;
    for (const char c : from.substr(0, prefix)) {
        size = size << 8U | static_cast<unsigned char>(c);
    }
    from.remove_prefix(prefix);
    if (from.size() < size) {
        return std::nullopt;
    }
    const auto text = from.substr(0, size);
    from.remove_prefix(size);
    return text;
}

/// The headers table of one message, and what is in front of its payload. What `table` returns points into this object.
class written_headers {
  public:
    /// The table fits into a frame of this size, together with the other properties and what a broker adds.
    written_headers(const message& m, std::size_t frame_size) : properties_(properties_of(m)) {
        std::size_t size = 0;
        for (const auto& [name, value] : properties_) {
            // Twice: a name may also be in the list of the order.
            size += 2 * (name.size() + field_overhead) + value.size();
        }
        if (size > frame_size / 2) {
            spill();
        } else {
            fill(properties_.size() - m.headers.size());
        }
    }
    written_headers(const written_headers&) = delete;
    written_headers& operator=(const written_headers&) = delete;

    [[nodiscard]] amqp_table_t table() noexcept { return {static_cast<int>(fields_.size()), fields_.data()}; }
    /// What the body begins with.
    [[nodiscard]] std::string_view spilled() const noexcept { return spilled_; }

  private:
    static constexpr std::size_t field_overhead = 6;
    static constexpr std::size_t field_name_max = 255;

    void spill() {
        for (const auto& [name, value] : properties_) {
            append_sized(spilled_, name);
            append_sized(spilled_, value);
        }
        spilled_size_ = std::to_string(spilled_.size());
        fields_.push_back(text_field(spilled_field, spilled_size_));
    }

    void fill(std::size_t first_header) {
        bool is_ascending = true;
        std::set<std::string_view> used;
        pairs_.reserve(properties_.size());
        order_.reserve(properties_.size());
        for (std::size_t i = 0; i < properties_.size(); ++i) {
            const auto& [name, value] = properties_[i];
            const bool is_field =
                !name.empty() && name.size() <= field_name_max && !is_brokers(name) && used.insert(name).second;
            if (is_field) {
                fields_.push_back(text_field(name, value));
            }
            if (i >= first_header) {
                is_ascending = is_ascending && is_field && (i == first_header || properties_[i - 1].first < name);
                order_.push_back(is_field ? text_field("", name).value : pair_of(name, value));
            }
        }
        if (!is_ascending) {
            fields_.push_back(text_field(order_field, ""));
            fields_.back().value = array_of(order_.data(), order_.size());
        }
    }

    [[nodiscard]] amqp_field_value_t pair_of(const std::string& name, const std::string& value) {
        pairs_.push_back({text_field("", name).value, text_field("", value).value});
        return array_of(pairs_.back().data(), 2);
    }

    [[nodiscard]] static amqp_field_value_t array_of(amqp_field_value_t* items, std::size_t count) noexcept {
        amqp_field_value_t out{};
        out.kind = AMQP_FIELD_KIND_ARRAY;
        out.value.array = {static_cast<int>(count), items};
        return out;
    }

    header_list properties_;
    std::vector<amqp_table_entry_t> fields_{};
    std::vector<amqp_field_value_t> order_{};
    std::vector<std::array<amqp_field_value_t, 2>> pairs_{};
    std::string spilled_{};
    std::string spilled_size_{};
};

[[nodiscard]] inline bool is_text(const amqp_field_value_t& value) noexcept {
    return value.kind == AMQP_FIELD_KIND_UTF8 || value.kind == AMQP_FIELD_KIND_BYTES;
}

/// A value as text; none for tables and arrays, which a header cannot hold.
[[nodiscard]] inline std::optional<std::string> field_text(const amqp_field_value_t& value) {
    const auto& v = value.value;
    switch (value.kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES: return std::string(text_of(v.bytes));
    case AMQP_FIELD_KIND_BOOLEAN: return v.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_I8: return std::to_string(v.i8);
    case AMQP_FIELD_KIND_U8: return std::to_string(v.u8);
    case AMQP_FIELD_KIND_I16: return std::to_string(v.i16);
    case AMQP_FIELD_KIND_U16: return std::to_string(v.u16);
    case AMQP_FIELD_KIND_I32: return std::to_string(v.i32);
    case AMQP_FIELD_KIND_U32: return std::to_string(v.u32);
    case AMQP_FIELD_KIND_I64: return std::to_string(v.i64);
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP: return std::to_string(v.u64);
    case AMQP_FIELD_KIND_F32: return std::to_string(v.f32);
    case AMQP_FIELD_KIND_F64: return std::to_string(v.f64);
    case AMQP_FIELD_KIND_VOID: return "";
    default: return std::nullopt;
    }
}

/// The headers table of a message that arrives. It keeps nothing that belongs to the table.
class read_headers {
  public:
    read_headers() = default;
    explicit read_headers(const amqp_table_t& table) {
        for (int i = 0; i < table.num_entries; ++i) {
            const auto& field = table.entries[i];
            const auto name = text_of(field.key);
            if (name == order_field) {
                is_readable_ = read_order(field.value);
            } else if (name == spilled_field) {
                spilled_ = field_text(field.value).value_or("");
            } else if (!is_brokers(name)) {
                if (auto text = field_text(field.value)) {
                    fields_.insert_or_assign(std::string(name), std::move(*text));
                }
            }
        }
    }

    /// Sets the properties of the message. The front of the payload is cut off if it has them. Returns false if something of
    /// ours cannot be read; the message has the rest.
    [[nodiscard]] bool into(message& m) {
        header_list properties;
        if (spilled_) {
            is_readable_ = take_spilled(m.payload, properties) && is_readable_;
        }
        for (auto& [name, value] : order_) {
            if (value) {
                properties.emplace_back(std::move(name), std::move(*value));
            } else if (auto field = fields_.extract(name); !field.empty()) {
                properties.emplace_back(std::move(name), std::move(field.mapped()));
            } else {
                is_readable_ = false;
            }
        }
        for (auto& [name, value] : fields_) {
            properties.emplace_back(name, std::move(value));
        }
        return read_properties(std::move(properties), m) && is_readable_;
    }

  private:
    [[nodiscard]] bool read_order(const amqp_field_value_t& order) {
        if (order.kind != AMQP_FIELD_KIND_ARRAY) {
            return false;
        }
        bool is_readable = true;
        for (int i = 0; i < order.value.array.num_entries; ++i) {
            const auto& item = order.value.array.entries[i];
            const auto& pair = item.value.array;
            if (is_text(item)) {
                order_.emplace_back(text_of(item.value.bytes), std::nullopt);
            } else if (item.kind == AMQP_FIELD_KIND_ARRAY && pair.num_entries == 2 && is_text(pair.entries[0]) &&
                       is_text(pair.entries[1])) {
                order_.emplace_back(text_of(pair.entries[0].value.bytes), text_of(pair.entries[1].value.bytes));
            } else {
                is_readable = false;
            }
        }
        return is_readable;
    }

    [[nodiscard]] bool take_spilled(std::string& payload, header_list& out) const {
        std::size_t size = 0;
        const auto* const end = spilled_->data() + spilled_->size();
        const auto [stop, problem] = std::from_chars(spilled_->data(), end, size);
        if (problem != std::errc{} || stop != end || size > payload.size()) {
            return false;
        }
        header_list found;
        for (auto left = std::string_view(payload).substr(0, size); !left.empty();) {
            const auto name = take_sized(left);
            const auto value = name ? take_sized(left) : std::nullopt;
            if (!value) {
                return false;
            }
            found.emplace_back(*name, *value);
        }
        out = std::move(found);
        payload.erase(0, size);
        return true;
    }

    std::map<std::string, std::string> fields_{};                             // so that the names ascend
    std::vector<std::pair<std::string, std::optional<std::string>>> order_{}; // without a value: it is in a field
    std::optional<std::string> spilled_{};
    bool is_readable_ = true;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
