// SPDX-License-Identifier: MIT
// A topology as text for the tools with which operators create it: RabbitMQ's own definitions (`rabbitmqctl
// import_definitions`, the management UI, `load_definitions` in rabbitmq.conf), and Terraform's provider for RabbitMQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/rabbitmq/detail/quoted.hpp>
#include <vouch/rabbitmq/detail/target.hpp>
#include <vouch/rabbitmq/topology.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

/// Where the objects are to be, and who uses them.
struct definition_options {
    std::string vhost{"/"};
    /// The user of the service, who gets the least permissions; empty: no permissions are printed. The user must exist:
    /// passwords are not ours to print.
    std::string user{};
    service does = service::both;
};

namespace detail {

inline void check(const topology& t, const definition_options& where) {
    validate(t);
    expect_name("vhost", where.vhost);
    if (!where.user.empty()) {
        expect_name("user", where.user);
    }
}

} // namespace detail

/// The definitions as JSON. Importing them changes nothing that exists.
[[nodiscard]] inline std::string definitions_json(const topology& t, const definition_options& where = {}) {
    detail::check(t, where);
    const auto vhost = "\"vhost\": " + detail::json_quoted(where.vhost);
    const auto exchange = [&](const std::string& name, std::string_view type) {
        return "{\"name\": " + detail::json_quoted(name) + ", " + vhost + ", \"type\": \"" + std::string(type) +
               "\", \"durable\": true, \"auto_delete\": false, \"internal\": false, \"arguments\": {}}";
    };
    const auto queue = [&](const std::string& name, const std::vector<queue_argument>& arguments) {
        return "{\"name\": " + detail::json_quoted(name) + ", " + vhost +
               ", \"durable\": true, \"auto_delete\": false, \"arguments\": {" + detail::json_arguments(arguments) +
               "}}";
    };
    const auto binding = [&](const std::string& from, const std::string& to, const std::string& key) {
        return "{\"source\": " + detail::json_quoted(from) + ", " + vhost +
               ", \"destination\": " + detail::json_quoted(to) +
               ", \"destination_type\": \"queue\", \"routing_key\": " + detail::json_quoted(key) +
               ", \"arguments\": {}}";
    };
    const auto dead = dead_letter_exchange(t);
    std::vector<std::string> queues;
    std::vector<std::string> bindings;
    for (const auto& l : t.listeners) {
        queues.push_back(queue(l.queue, arguments_of(t, l)));
        queues.push_back(queue(dead_letter_queue(l.queue), dead_letter_arguments()));
        for (const auto& pattern : l.patterns) {
            bindings.push_back(binding(t.exchange, l.queue, pattern));
        }
        bindings.push_back(binding(dead, dead_letter_queue(l.queue), l.queue));
    }
    std::string out = "{\n  \"vhosts\": [{\"name\": " + detail::json_quoted(where.vhost) + "}],\n";
    if (!where.user.empty()) {
        const auto may = least_permissions(t, where.does);
        out += "  \"permissions\": [\n    {\"user\": " + detail::json_quoted(where.user) + ", " + vhost +
               ", \"configure\": " + detail::json_quoted(may.configure) +
               ", \"write\": " + detail::json_quoted(may.write) + ", \"read\": " + detail::json_quoted(may.read) +
               "}\n  ],\n";
    }
    out += "  \"exchanges\": " + detail::json_lines({exchange(t.exchange, "topic"), exchange(dead, "direct")}) + ",\n";
    out += "  \"queues\": " + detail::json_lines(queues) + ",\n";
    out += "  \"bindings\": " + detail::json_lines(bindings) + "\n}\n";
    return out;
}

/// Resources of Terraform's provider `cyrilgdn/rabbitmq`. Their names begin with the label, which must be an identifier.
[[nodiscard]] inline std::string terraform(const topology& t, const definition_options& where = {},
                                           std::string_view label = "vouch") {
    detail::check(t, where);
    detail::expect_identifier("label", label);
    const auto vhost = detail::hcl_quoted(where.vhost);
    std::string out;
    const auto open = [&](std::string_view kind, const std::string& name) {
        out.append(out.empty() ? "" : "\n").append("resource \"").append(kind).append("\" \"").append(label);
        out.append(1, '_').append(name).append("\" {\n");
    };
    const auto set = [&](std::string_view name, const std::string& value) {
        out.append("  ").append(name).append(" = ").append(value).append(1, '\n');
    };
    const auto exchange = [&](const std::string& resource, const std::string& name, std::string_view type) {
        open("rabbitmq_exchange", resource);
        set("name", detail::hcl_quoted(name));
        set("vhost", vhost);
        out.append("  settings {\n    type        = \"").append(type);
        out += "\"\n    durable     = true\n    auto_delete = false\n  }\n}\n";
    };
    const auto queue = [&](const std::string& resource, const std::string& name,
                           const std::vector<queue_argument>& arguments) {
        open("rabbitmq_queue", resource);
        set("name", detail::hcl_quoted(name));
        set("vhost", vhost);
        out +=
            "  settings {\n    durable        = true\n    auto_delete    = false\n    arguments_json = jsonencode({ " +
            detail::hcl_arguments(arguments) + " })\n  }\n}\n";
    };
    const auto reference = [&](std::string_view kind, const std::string& resource) {
        return std::string(kind).append(1, '.').append(label).append(1, '_').append(resource).append(".name");
    };
    const auto binding = [&](const std::string& resource, const std::string& from, const std::string& to,
                             const std::string& key) {
        open("rabbitmq_binding", resource);
        set("source", reference("rabbitmq_exchange", from));
        set("vhost", vhost);
        set("destination", reference("rabbitmq_queue", to));
        set("destination_type", "\"queue\"");
        set("routing_key", detail::hcl_quoted(key));
        out += "}\n";
    };
    exchange("exchange", t.exchange, "topic");
    exchange("dead_letter_exchange", dead_letter_exchange(t), "direct");
    for (std::size_t i = 0; i < t.listeners.size(); ++i) {
        const auto& l = t.listeners[i];
        const auto number = std::to_string(i);
        queue("queue_" + number, l.queue, arguments_of(t, l));
        queue("dead_letter_queue_" + number, dead_letter_queue(l.queue), dead_letter_arguments());
        for (std::size_t p = 0; p < l.patterns.size(); ++p) {
            binding("binding_" + number + '_' + std::to_string(p), "exchange", "queue_" + number, l.patterns[p]);
        }
        binding("dead_letter_binding_" + number, "dead_letter_exchange", "dead_letter_queue_" + number, l.queue);
    }
    if (!where.user.empty()) {
        const auto may = least_permissions(t, where.does);
        open("rabbitmq_permissions", "permissions");
        set("user", detail::hcl_quoted(where.user));
        set("vhost", vhost);
        out += "  permissions {\n    configure = " + detail::hcl_quoted(may.configure) +
               "\n    write     = " + detail::hcl_quoted(may.write) +
               "\n    read      = " + detail::hcl_quoted(may.read) + "\n  }\n}\n";
    }
    return out;
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
