// SPDX-License-Identifier: MIT
// What `vouch serve` is asked for, and which store it opens.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "serve.hpp"
#include "stores.hpp"

#ifdef VOUCH_TOOL_HAS_HTTP
#include "page/http_server.hpp"
#ifdef VOUCH_TOOL_HAS_SQLITE
#include "page/sqlite_source.hpp"
#endif
#ifdef VOUCH_TOOL_HAS_POSTGRES
#include "page/postgres_source.hpp"
#endif
#endif

namespace {

using tool::bad_usage;
using tool::serve_request;

[[nodiscard]] std::string from_environment(const char* name) {
    const char* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): no thread has been started
    return value == nullptr ? std::string() : value;
}

/// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:0` or `:8080`.
void set_address(serve_request& to, std::string_view text) {
    const auto colon = text.rfind(':');
    const auto port = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
    const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), to.port);
    if (port.empty() || wrong != std::errc{} || end != port.data() + port.size()) {
        throw bad_usage("--listen needs an address and a port such as 127.0.0.1:8080, not " + std::string(text));
    }
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    to.host = host.empty() ? to.host : std::string(host);
}

[[nodiscard]] bool is_loopback(std::string_view host) {
    return host == "localhost" || host == "::1" ||
           (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

} // namespace

tool::serve_request tool::serve_request_of(const arguments& with) {
    serve_request out{.location = with.location,
                      .prefix = with.prefix,
                      .names = with.hosts,
                      .token = with.token.empty() ? from_environment("VOUCH_TOKEN") : with.token,
                      .read_only = with.read_only};
    set_address(out, with.listen);
    if (!is_loopback(out.host) && out.token.empty()) {
        throw bad_usage("--listen " + out.host +
                        " can be reached from other machines, so it needs a token: set VOUCH_TOKEN");
    }
    if ((out.host == "0.0.0.0" || out.host == "::") && out.names.empty()) {
        throw bad_usage("--listen " + out.host +
                        " needs --host NAME:PORT, the address that browsers use; other hosts are not answered");
    }
    return out;
}

#ifdef VOUCH_TOOL_HAS_HTTP

namespace {

/// From the operating system's random source.
[[nodiscard]] std::string fresh_token() {
    const vouch::id random{.high = vouch::detail::system_seed(), .low = vouch::detail::system_seed()};
    auto text = to_string(random);
    std::erase(text, '-');
    return text;
}

[[nodiscard]] std::string with_port(const std::string& host, std::uint16_t port) {
    const bool is_v6 = host.find(':') != std::string::npos;
    return (is_v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

template <class Source>
int serve_from(Source& in, const serve_request& with, const vouch::page::options& about) {
    tool::http_server server(with.host, with.port);
    auto how = about;
    const bool is_local = is_loopback(with.host);
    how.token = with.read_only && is_local ? "" : !with.token.empty() ? with.token : fresh_token();
    how.token_to_read = !is_local;
    how.read_only = with.read_only;
    how.look_in_requests = false;
    how.hosts = with.names;
    if (!is_local) {
        how.hosts.push_back(with_port(with.host, server.port()));
    } else if (!with.names.empty()) {
        for (const char* name : {"127.0.0.1", "localhost", "::1"}) {
            how.hosts.push_back(with_port(name, server.port()));
        }
    }
    vouch::page::site site(in, how);
    // A browser does not send what is behind the `#`. A token that the user gave is not printed.
    const bool is_shown = with.token.empty() && !how.token.empty();
    std::printf("vouch: serving %s at http://%s/%s\n", tool::plain(how.name).c_str(),
                with_port(with.host, server.port()).c_str(), is_shown ? ("#token=" + how.token).c_str() : "");
    std::fflush(stdout);
    server.run(site);
    return tool::done;
}

} // namespace

int tool::serve(const serve_request& with) {
    const bool is_url = with.location.starts_with("postgres://") || with.location.starts_with("postgresql://");
    if (is_url) {
#ifdef VOUCH_TOOL_HAS_POSTGRES
        postgres_source in(with.location, with.prefix);
        return serve_from(in.store(), with, in.about());
#else
        throw_not_built_in("PostgreSQL", "libpq-dev");
#endif
    }
#ifdef VOUCH_TOOL_HAS_SQLITE
    sqlite_source in(with.location, with.prefix);
    if (with.read_only) {
        return serve_from(in.reader(), with, in.about());
    }
    auto store = in.store();
    return serve_from(store, with, in.about());
#else
    throw_not_built_in("SQLite", "libsqlite3-dev");
#endif
}

#else

int tool::serve(const serve_request&) {
    throw vouch::error(vouch::error_kind::unsupported,
                       "this program was built without HTTP; build it where libcpp-httplib-dev is installed");
}

#endif
