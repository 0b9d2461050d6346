// SPDX-License-Identifier: MIT
// A complete store, written from the contract alone: an append-only log file that is replayed into maps when it is
// opened. It is durable and allows one handle at a time. It has no groups, lanes or wake-ups.
//
// A transaction is a copy of the ledger. A commit appends the changes to the log and publishes the copy; a rollback
// discards it. So the cost of a transaction grows with the number of entries: good for thousands, not for millions.
//
// A store is safe for any number of threads; a transaction is used by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

namespace log_store {

using vouch::entry, vouch::id, vouch::time_point, vouch::verdict;
inline constexpr vouch::capabilities can{.durable = true};

/// The file: a mark, then records. A size and a checksum before each record show whether it is complete. A crash can
/// only leave the last record incomplete; any other bad record is damage. One process at a time has the file open. With
/// `syncs`, each write waits for the disk; without, a power failure may lose or damage the newest records.
class record_log {
    using head = std::array<std::uint64_t, 2>;
    static constexpr std::string_view mark = "vouch log 2\n";
    int file_;
    off_t end_ = 0; ///< of the last complete record
    std::atomic<bool> is_in_doubt_ = false;

    explicit record_log(int file) : file_(file) {}
    void check(bool is_fine, const char* what, bool in_doubt = false) {
        using enum vouch::error_kind;
        if (!is_fine) {
            is_in_doubt_ = in_doubt;
            throw vouch::error(errno == ENOSPC ? full : (errno == EWOULDBLOCK ? busy : io), what, {in_doubt, errno});
        }
    }
    /// The checksum includes the position, so that a copy of a log in a payload is not taken for records.
    static head head_of(std::string_view body, std::uint64_t at) {
        const auto fnv_1a = [](auto sum, char c) { return (sum ^ static_cast<unsigned char>(c)) * 1099511628211U; };
        return {body.size(), std::accumulate(body.begin(), body.end(), 14695981039346656037U ^ at, fnv_1a)};
    }
    /// The record at this position, with its head; empty if there is no complete record.
    static std::string_view record_at(std::string_view all, std::size_t at) {
        head h{};
        const auto rest = all.substr(std::min(at, all.size()));
        std::memcpy(&h, rest.data(), std::min(sizeof h, rest.size()));
        const bool has_room = rest.size() >= sizeof h && rest.size() - sizeof h >= h[0];
        const bool is_whole = has_room && h == head_of(rest.substr(sizeof h, h[0]), at);
        return rest.substr(0, is_whole ? sizeof h + h[0] : 0);
    }
    void write(std::string_view record) {
        errno = ENOSPC; // a partial write does not set errno; it means that the disk is full
        const auto n = pwrite(file_, record.data(), record.size(), end_);
        const bool is_known = n == std::ssize(record) || (errno == ENOSPC && ftruncate(file_, end_) == 0);
        check(n == std::ssize(record), "log: cannot write the file", !is_known);
        end_ += n;
    }

  public:
    /// Calls `replay` with every record. Delegates to another constructor, so that an exception closes the file.
    template <class Replay>
    record_log(const std::filesystem::path& path, bool syncs, const Replay& replay)
        : record_log(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (syncs ? O_DSYNC : 0), 0666)) {
        using enum vouch::error_kind;
        check(file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0,
              "log: cannot open the file, or another process has it open");
        std::string all(file_size(path), '\0');
        check(std::ifstream(path, std::ios::binary).read(all.data(), std::ssize(all)).good(),
              "log: cannot read the file");
        if (mark.starts_with(all)) {
            all = mark; // the file is new, or its mark is incomplete
        } else if (!all.starts_with(mark)) {
            throw vouch::error(corrupt, "log: the file is not a log; nothing was changed");
        }
        std::size_t begin = 0; // of the last complete record; the mark counts as the first
        auto last = std::string_view(all).substr(0, mark.size());
        for (auto next = record_at(all, last.size()); !next.empty(); next = record_at(all, begin + last.size())) {
            replay(next.substr(sizeof(head)));
            begin += last.size();
            last = next;
        }
        for (auto after = begin + last.size(); after < all.size(); ++after) {
            if (!record_at(all, after).empty()) {
                throw vouch::error(corrupt, "log: the record at byte " + std::to_string(begin + last.size()) +
                                                " is damaged, but the one at byte " + std::to_string(after) +
                                                " is complete; nothing was changed: restore the file from a copy");
            }
        }
        // Written again, because it may have been read from a cache and never have reached the disk.
        const auto again = pwrite(file_, last.data(), last.size(), static_cast<off_t>(begin));
        check(again == std::ssize(last), "log: cannot write the file");
        end_ = static_cast<off_t>(begin + last.size());
        check(ftruncate(file_, end_) == 0, "log: cannot remove the incomplete record");
        const record_log folder(open(absolute(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        check(!syncs || fsync(folder.file_) == 0, "log: cannot sync the folder"); // for a new file
    }
    record_log(const record_log&) = delete;
    ~record_log() { close(file_); }

    /// When it returns, the record is stored. After an error that is not in doubt, it is not stored.
    void append(std::string_view body) {
        const auto h = head_of(body, static_cast<std::uint64_t>(end_));
        write(std::string(reinterpret_cast<const char*>(&h), sizeof h).append(body));
    }
    bool is_in_doubt() const { return is_in_doubt_; } ///< what is stored is unknown until the file is opened again
};

/// All entries, and the operations of the contract on them. Requires valid arguments.
class ledger {
    std::map<id, std::shared_ptr<const entry>> entries_{};
    std::map<id, id> successors_{}; ///< by predecessor; the successor of nil has no meaning
    std::set<std::tuple<std::string, time_point, std::uint64_t, id>> gates_{}; ///< live entries in the order of claims
    std::uint64_t last_sequence_ = 0;
    std::string changes_{}; ///< since the last commit, as bytes

    const entry* at(const id& wanted) const {
        const auto found = entries_.find(wanted);
        return found == entries_.end() ? nullptr : found->second.get();
    }
    const entry& newest_generation(const entry& e) const {
        const auto next = successors_.find(e.id);
        return next == successors_.end() ? e : newest_generation(*at(next->second));
    }
    static auto gate_key(const entry& e) {
        return std::tuple(e.queue, gate_of(e).value_or(time_point::max()), e.sequence, e.id);
    }
    /// The only function that changes anything. An entry without a sequence removes the stored one.
    void set(const entry& e) {
        if (const auto* const old = at(e.id)) {
            gates_.erase(gate_key(*old));
        }
        if (e.sequence == 0) {
            entries_.erase(e.id);
            successors_.erase(e.id);
        } else {
            entries_[e.id] = std::make_shared<const entry>(e);
            last_sequence_ = std::max(last_sequence_, e.sequence);
            if (is_live(e.state)) {
                gates_.insert(gate_key(e));
                successors_[e.predecessor] = e.id;
            }
        }
        changes_ += to_bytes(e);
    }
    template <class Items, class Each>
    static auto for_each_of(const Items& items, const Each& each) {
        std::vector<decltype(each(items[0]))> answers(items.size());
        std::ranges::transform(items, answers.begin(), each);
        return answers;
    }
    vouch::receipt insert(const vouch::draft& d, time_point now) {
        using enum vouch::receipt::kind;
        auto e = born(d, now);
        const auto has_key = [&](auto& other) { return other.second->queue == d.queue && other.second->key == d.key; };
        if (at(d.id)) {
            return {duplicate, d.id};
        }
        if (const auto same = std::ranges::find_if(entries_, has_key); same != entries_.end() && !d.key.empty()) {
            return {duplicate, newest_generation(*same->second).id};
        }
        if (!d.predecessor.is_nil()) {
            const auto* const dead = at(d.predecessor);
            if (!dead || dead->state != vouch::state::dead || dead->queue != d.queue) {
                return {refused, {}};
            }
            if (successors_.contains(dead->id)) {
                return {duplicate, successors_[dead->id]};
            }
            e.key = dead->key;
            e.generation = dead->generation + 1;
        }
        e.sequence = last_sequence_ + 1;
        set(e);
        return {inserted, d.id};
    }
    /// Changes an entry with the contract's `apply`. If that ends the entry, nudges its parent.
    template <class Verb>
    verdict change(const id& which, const Verb& verb, time_point now) {
        auto e = find(which);
        const auto said = e ? apply(*e, verb, now) : verdict::unknown;
        if (said == verdict::applied) {
            set(*e);
            if (is_terminal(e->state)) {
                change(e->parent, vouch::nudge{}, now);
            }
        }
        return said;
    }

  public:
    void replay(std::string_view record) {
        while (!record.empty()) {
            set(vouch::take_entry(record));
        }
        changes_.clear();
    }
    std::string take_changes() { return std::exchange(changes_, {}); }

    std::optional<entry> find(const id& wanted) const { return at(wanted) ? std::optional(*at(wanted)) : std::nullopt; }
    std::vector<entry> list(const vouch::query& q) const {
        std::vector<entry> out;
        for (const auto& [which, e] : entries_) {
            if (matches(*e, q)) {
                out.push_back(*e);
                out.back().payload = q.payloads ? e->payload : std::string{};
            }
        }
        std::ranges::sort(out, {}, &entry::sequence);
        out.resize(std::min(out.size(), q.limit));
        return out;
    }
    vouch::state_counts counts(std::string_view queue) const {
        vouch::state_counts out;
        for (const auto& [which, e] : entries_) {
            out[e->state] += e->queue == queue ? 1U : 0U;
        }
        return out;
    }
    std::optional<time_point> next_due(std::string_view queue) const {
        const auto first = gates_.lower_bound({std::string(queue), time_point::min(), 0, {}});
        const bool has_none = first == gates_.end() || std::get<0>(*first) != queue;
        return has_none ? std::nullopt : std::optional(std::get<1>(*first));
    }

    auto enqueue(std::span<const vouch::draft> drafts, time_point now) {
        return for_each_of(drafts, [&](auto& d) { return insert(d, now); });
    }
    auto claim(const vouch::claim_request& c) {
        std::vector<entry> out;
        const auto end = gates_.lower_bound({c.queue, c.now + vouch::duration(1), 0, {}});
        for (auto g = gates_.lower_bound({c.queue, time_point::min(), 0, {}}); g != end && out.size() < c.limit; ++g) {
            if (const auto& which = std::get<id>(*g); c.only.is_nil() || c.only == which) {
                out.push_back(*at(which));
            }
        }
        for (auto& e : out) {
            apply(e, c);
            set(e);
        }
        std::ranges::sort(out, {}, [](auto& e) { return std::tie(e.due_at, e.sequence); });
        return out;
    }
    auto settle(std::span<const vouch::settle> settles, time_point now) {
        return for_each_of(settles, [&](auto& s) { return vouch::settlement{change(s.ticket.id, s, now)}; });
    }
    auto extend(std::span<const vouch::ticket> tickets, time_point now, vouch::duration lease) {
        return for_each_of(tickets, [&](auto& t) { return change(t.id, vouch::extend{t, lease}, now); });
    }
    auto nudge(const id& which, time_point now) { return change(which, vouch::nudge{}, now); }
    auto cancel(const id& which, std::string_view error, time_point now) {
        return change(which, vouch::cancel{error}, now);
    }
    /// The newest generation decides for all. The oldest goes first; none goes while one is a live entry's parent.
    std::size_t purge(const vouch::purge_request& p) {
        std::set<id> needed;
        std::map<std::tuple<time_point, std::uint64_t, std::uint64_t>, id> ended; // oldest first
        for (const auto& [which, e] : entries_) {
            if (const auto* const parent = at(e->parent); parent && is_live(e->state)) {
                needed.insert(newest_generation(*parent).id);
            }
            const auto& last = newest_generation(*e);
            if (is_terminal(last.state) && last.queue == p.queue && last.updated_at < p.before &&
                p.state.value_or(last.state) == last.state) {
                ended[{last.updated_at, last.sequence, e->sequence}] = which;
            }
        }
        std::size_t gone = 0;
        for (const auto& [when, which] : ended) {
            if (gone < p.limit && !needed.contains(newest_generation(*at(which)).id)) {
                set(entry{{}, which});
                ++gone;
            }
        }
        return gone;
    }
};

/// What a store and its transactions share.
struct shared_state {
    std::shared_ptr<ledger> committed = std::make_shared<ledger>();
    std::mutex mutex{}; ///< guards `committed`
    record_log log;
    std::atomic<bool> is_writing = false; ///< a transaction is open

    shared_state(const std::filesystem::path& path, bool syncs)
        : log(path, syncs, [&](std::string_view record) { committed->replay(record); }) {}
    std::shared_ptr<const ledger> look() {
        const std::lock_guard lock(mutex);
        return committed;
    }
};

class transaction : public vouch::validated_writer<transaction> {
    friend class vouch::validated_reader<transaction>;
    friend class vouch::validated_writer<transaction>;
    mutable std::shared_ptr<shared_state> turn_; ///< the turn to write, which ends with its last copy
    mutable std::unique_ptr<ledger> ledger_;     ///< null: closed

    const vouch::capabilities& expect_open() const {
        return ledger_ ? can : throw vouch::error(vouch::error_kind::misuse, "log: the transaction is closed");
    }
    void close() const noexcept { ledger_.reset(), turn_.reset(); }
    auto read(const auto& operation) const { return operation(std::as_const(*ledger_)); }
    auto write(const auto& operation) { return operation(*ledger_); }

  public:
    explicit transaction(std::shared_ptr<shared_state> turn)
        : turn_(std::move(turn)), ledger_(std::make_unique<ledger>(*turn_->look())) {}
    /// Stores the changes, then publishes them, so that no reader sees what is not stored.
    void commit() {
        expect_open();
        const std::shared_ptr<ledger> next = std::move(ledger_); // closes this transaction, even if an error follows
        const auto turn = std::move(turn_);
        if (const auto changes = next->take_changes(); !changes.empty()) {
            turn->log.append(changes);
        }
        const std::lock_guard lock(turn->mutex);
        turn->committed = next;
    }
};

class store : public vouch::validated_reader<store> {
    friend class vouch::validated_reader<store>;
    std::shared_ptr<shared_state> shared_;

    const vouch::capabilities& expect_open() const {
        using enum vouch::error_kind;
        return !shared_->log.is_in_doubt() ? can
                                           : throw vouch::error(io, "log: a commit is in doubt; open the file again");
    }
    auto read(const auto& operation) const { return operation(*shared_->look()); }

  public:
    using transaction = log_store::transaction;
    static constexpr int contract_level = vouch::contract_level;
    explicit store(const std::filesystem::path& path, bool syncs = true)
        : shared_(std::make_shared<shared_state>(path, syncs)) {}
    vouch::capabilities capabilities() const { return can; }
    /// Waits until no transaction is open. Throws `io` if a commit is in doubt.
    transaction begin() {
        while (shared_->is_writing.exchange(true)) {
            shared_->is_writing.wait(true);
        }
        const auto end_turn = [of = shared_](shared_state*) { of->is_writing = false, of->is_writing.notify_one(); };
        std::shared_ptr<shared_state> turn(shared_.get(), end_turn);
        expect_open();
        return transaction(std::move(turn));
    }
};

static_assert(vouch::store<store>);

} // namespace log_store
