// SPDX-License-Identifier: MIT
// A thin layer over libpq for hand-written baselines: statements that are prepared once, values in binary, and pipelines.
// For one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <libpq-fe.h>

namespace wire {

/// An integer as the server sends and expects it: most significant byte first.
template <class Integer>
[[nodiscard]] std::string bytes_of(Integer value) {
    std::string out;
    for (auto shift = static_cast<int>(8 * sizeof value) - 8; shift >= 0; shift -= 8) {
        out.push_back(static_cast<char>((static_cast<std::uint64_t>(value) >> shift) & 0xffU));
    }
    return out;
}

[[nodiscard]] inline std::int64_t integer_of(std::string_view bytes) {
    std::uint64_t out = 0;
    for (const char byte : bytes) {
        out = (out << 8U) | static_cast<unsigned char>(byte);
    }
    return static_cast<std::int64_t>(out);
}

/// An array without nulls.
class array {
  public:
    explicit array(std::uint32_t type) : type_(type) {}
    void add(std::string_view element) {
        elements_ += bytes_of(static_cast<std::int32_t>(element.size()));
        elements_ += element;
        ++size_;
    }
    [[nodiscard]] std::string bytes() const {
        return bytes_of(std::int32_t{1}) + bytes_of(std::int32_t{0}) + bytes_of(type_) + bytes_of(size_) +
               bytes_of(std::int32_t{1}) + elements_;
    }

  private:
    std::uint32_t type_;
    std::int32_t size_ = 0;
    std::string elements_{};
};

inline constexpr std::uint32_t uuid = 2950;
inline constexpr std::uint32_t bytea = 17;
inline constexpr std::uint32_t bigint = 20;

using result = std::unique_ptr<PGresult, void (*)(PGresult*)>;

[[nodiscard]] inline std::string_view value(const result& r, int row, int column) {
    return {PQgetvalue(r.get(), row, column), static_cast<std::size_t>(PQgetlength(r.get(), row, column))};
}

class connection {
  public:
    explicit connection(const std::string& conninfo) : db_(PQconnectdb(conninfo.c_str()), &PQfinish) {
        check(PQstatus(db_.get()) == CONNECTION_OK);
        PQsetNoticeProcessor(
            db_.get(), [](void*, const char*) {}, nullptr);
    }

    void execute(const std::string& statements) {
        const result r(PQexec(db_.get(), statements.c_str()), &PQclear);
        const auto status = PQresultStatus(r.get());
        check(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
    }
    void prepare(const char* name, const std::string& text) {
        const result r(PQprepare(db_.get(), name, text.c_str(), 0, nullptr), &PQclear);
        check(PQresultStatus(r.get()) == PGRES_COMMAND_OK);
    }

    /// One statement, in a transaction of its own.
    result run(const char* name, std::initializer_list<std::string_view> values) {
        const lists of(values);
        result r(PQexecPrepared(db_.get(), name, of.size, of.values.data(), of.lengths.data(), of.formats.data(), 1),
                 &PQclear);
        const auto status = PQresultStatus(r.get());
        check(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
        return r;
    }

    /// Adds a statement to the pipeline.
    void add(const char* name, std::initializer_list<std::string_view> values) {
        if (added_ == 0) {
            check(PQenterPipelineMode(db_.get()) == 1);
        }
        const lists of(values);
        check(PQsendQueryPrepared(db_.get(), name, of.size, of.values.data(), of.lengths.data(), of.formats.data(),
                                  1) == 1);
        ++added_;
    }
    /// Sends the pipeline and returns the answers.
    std::vector<result> exchange() {
        check(PQpipelineSync(db_.get()) == 1);
        std::vector<result> out;
        for (; added_ > 0; --added_) {
            out.emplace_back(PQgetResult(db_.get()), &PQclear);
            const auto status = PQresultStatus(out.back().get());
            check(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
            check(PQgetResult(db_.get()) == nullptr);
        }
        const result sync(PQgetResult(db_.get()), &PQclear);
        check(PQresultStatus(sync.get()) == PGRES_PIPELINE_SYNC && PQexitPipelineMode(db_.get()) == 1);
        return out;
    }

  private:
    struct lists {
        explicit lists(std::initializer_list<std::string_view> from)
            : size(static_cast<int>(from.size())), formats(from.size(), 1) {
            for (const auto one : from) {
                values.push_back(one.data());
                lengths.push_back(static_cast<int>(one.size()));
            }
        }
        int size;
        std::vector<int> formats;
        std::vector<const char*> values{};
        std::vector<int> lengths{};
    };

    void check(bool holds) const {
        if (!holds) {
            throw std::runtime_error(std::string("a hand-written statement failed: ") + PQerrorMessage(db_.get()));
        }
    }

    std::unique_ptr<PGconn, void (*)(PGconn*)> db_;
    int added_ = 0;
};

} // namespace wire
