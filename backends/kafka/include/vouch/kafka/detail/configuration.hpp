// SPDX-License-Identifier: MIT
// librdkafka's configuration, built from options. Every wrong setting is an `invalid_argument` that names the setting.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/contract/error.hpp>
#include <vouch/kafka/detail/handles.hpp>
#include <vouch/kafka/options.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

/// A setting that applications must not change, and what they do instead.
struct owned_setting {
    std::string_view name;
    std::string_view instead;
};

/// What the client's callbacks get. It outlives the client.
struct client_events {
    log_function log{};
    rd_kafka_resp_err_t last_error = RD_KAFKA_RESP_ERR_NO_ERROR; ///< of the connections, since it was last cleared
    bool is_refused = false; ///< a broker has refused to authenticate this client, since it was last cleared

    /// Keeps the error that says most: a wrong password or certificate is a cause, unreachable brokers are its consequence,
    /// and one lost connection need not mean anything.
    void note(rd_kafka_resp_err_t error, std::string_view text) noexcept {
        if (weight(error) >= weight(last_error)) {
            last_error = error;
        }
        is_refused = is_refused || is_refusal(error, text);
    }
    void clear() noexcept {
        last_error = RD_KAFKA_RESP_ERR_NO_ERROR;
        is_refused = false;
    }

  private:
    /// librdkafka has one code for a password that is refused and for a connection that is lost meanwhile. The text of the
    /// latter has the name of an error that no broker has reported.
    [[nodiscard]] static bool is_refusal(rd_kafka_resp_err_t error, std::string_view text) noexcept {
        switch (error) {
        case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM: return true;
        case RD_KAFKA_RESP_ERR__AUTHENTICATION: return text.find("failed: Local: ") == std::string_view::npos;
        default: return false;
        }
    }
    [[nodiscard]] static int weight(rd_kafka_resp_err_t error) noexcept {
        switch (error) {
        case RD_KAFKA_RESP_ERR_NO_ERROR: return 0;
        case RD_KAFKA_RESP_ERR__TRANSPORT: return 1;
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: return 2;
        default: return 3;
        }
    }
};

class configuration {
  public:
    configuration(std::string_view who, client_events& events) : who_(who), conf_(rd_kafka_conf_new()) {
        rd_kafka_conf_set_opaque(conf_.get(), &events);
        rd_kafka_conf_set_log_cb(conf_.get(), events.log ? &log : nullptr);
    }

    void set(const std::string& name, const std::string& value) {
        std::array<char, 512> text{};
        if (rd_kafka_conf_set(conf_.get(), name.c_str(), value.c_str(), text.data(), text.size()) != RD_KAFKA_CONF_OK) {
            refuse("setting '" + name + "': " + without_secrets(text.data(), {{name, value}}));
        }
    }
    void set(const std::string& name, std::chrono::milliseconds value) { set(name, std::to_string(value.count())); }

    void set_all(const std::vector<setting>& settings, std::span<const owned_setting> owned) {
        for (const auto& one : settings) {
            const auto* const found = std::find_if(owned.data(), owned.data() + owned.size(),
                                                   [&](const auto& o) { return o.name == one.name; });
            if (found != owned.data() + owned.size()) {
                refuse("setting '" + one.name + "' cannot be changed: " + std::string(found->instead));
            }
            if (one.name.find('\0') != std::string::npos || one.value.find('\0') != std::string::npos) {
                refuse("setting '" + std::string(one.name.c_str()) + "' contains a NUL byte");
            }
            set(one.name, one.value);
            given_.push_back(one);
        }
    }

    [[nodiscard]] rd_kafka_conf_t* get() const noexcept { return conf_.get(); }

    /// librdkafka checks here how the settings fit together. It connects later, in threads of its own.
    [[nodiscard]] client_handle create(rd_kafka_type_t type) && {
        std::array<char, 512> text{};
        client_handle client(rd_kafka_new(type, conf_.get(), text.data(), text.size()));
        if (!client) {
            refuse("the settings do not fit together: " + without_secrets(text.data(), given_));
        }
        (void)conf_.release(); // the client owns it now
        return client;
    }

    [[noreturn]] void refuse(const std::string& what) const {
        throw error(error_kind::invalid_argument, "kafka: " + who_ + ": " + what);
    }

  private:
    static void log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
        auto& events = *static_cast<client_events*>(rd_kafka_opaque(client));
        try {
            events.log(level, std::string(facility) + ": " + text);
        } catch (
            ...) { // NOLINT(bugprone-empty-catch): a log must not end the program, and C cannot pass an exception on
        }
    }

    [[nodiscard]] static std::string without_secrets(std::string text, const std::vector<setting>& settings) {
        for (const auto& [name, value] : settings) {
            if (value.empty() || !(name.starts_with("sasl.") || name.starts_with("ssl."))) {
                continue;
            }
            for (auto at = text.find(value); at != std::string::npos; at = text.find(value, at)) {
                text.replace(at, value.size(), "(hidden)");
                at += std::string_view("(hidden)").size();
            }
        }
        return text;
    }

    std::string who_;
    conf_handle conf_;
    std::vector<setting> given_;
};

inline void check_between(std::string_view who, std::string_view option, std::chrono::milliseconds value) {
    if (value < std::chrono::milliseconds(10) || value > std::chrono::minutes(15)) {
        throw error(error_kind::invalid_argument, "kafka: " + std::string(who) + ": " + std::string(option) + " is " +
                                                      std::to_string(value.count()) +
                                                      " ms; it must be 10 ms to 15 minutes");
    }
}

/// What both clients set, and applications may change by a setting.
inline void set_common(configuration& conf, const std::string& bootstrap_servers, const std::string& client_id) {
    conf.set("bootstrap.servers", bootstrap_servers);
    conf.set("client.id", client_id);
    // librdkafka waits up to 10 s before it connects again, which is as long as a publish may take.
    conf.set("reconnect.backoff.max.ms", "1000");
}

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
