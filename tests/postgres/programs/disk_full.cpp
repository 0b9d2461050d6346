// SPDX-License-Identifier: MIT
// Fills the disk of the server: the tables are in a tablespace on a small file system. Writes become `full`, nothing that
// was stored is lost, and work goes on when there is room again. Mounting needs root; without it the program is skipped.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include <sys/mount.h>
#include <sys/stat.h>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "postgres/programs/fault_server.hpp"
#include "postgres/programs/findings.hpp"

namespace {

using namespace fault_program;
namespace postgres = vouch::postgres;

/// A file system of a few megabytes in memory, which belongs to the server.
class small_disk {
  public:
    explicit small_disk(std::string folder) : folder_(std::move(folder)) {
        mkdir(folder_.c_str(), 0700);
        struct stat owner {};
        stat((folder_ + "/../data").c_str(), &owner);
        const auto how =
            "size=12m,mode=0700,uid=" + std::to_string(owner.st_uid) + ",gid=" + std::to_string(owner.st_gid);
        is_mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, how.c_str()) == 0;
    }
    small_disk(const small_disk&) = delete;
    small_disk& operator=(const small_disk&) = delete;
    ~small_disk() {
        if (is_mounted_) {
            umount2(folder_.c_str(), MNT_DETACH);
        }
    }
    [[nodiscard]] bool is_mounted() const noexcept { return is_mounted_; }
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

  private:
    std::string folder_;
    bool is_mounted_ = false;
};

[[nodiscard]] vouch::id id_of(std::uint64_t n) { return {.high = 3, .low = n}; }

said enqueue(postgres::store& store, std::uint64_t n, error_counts& errors) {
    const vouch::draft d{.id = id_of(n), .queue = "q", .topic = "t", .payload = std::string(100'000, 'x')};
    return errors.run([&] {
        auto tx = store.begin();
        std::ignore = tx.enqueue(std::array{d}, vouch::system_now());
        tx.commit();
    });
}

void play(const small_disk& disk) {
    const server at(server_folder());
    direct on(at.conninfo());
    on.run("CREATE TABLESPACE small LOCATION '" + disk.folder() + "'");
    const auto filler = disk.folder() + "/filler";
    std::ofstream(filler) << std::string(4'000'000, 'x');
    postgres::store store(at.conninfo() + " options='-c default_tablespace=small'", {.prefix = "disk_full."});
    error_counts errors;
    errors.set_expected(vouch::error_kind::full);
    std::uint64_t stored = 0;
    while (stored < 1000 && enqueue(store, stored + 1, errors) == said::stored) {
        stored += 1;
    }
    for (int i = 0; i < 20; ++i) { // and it stays so
        expect(enqueue(store, stored + 1, errors) == said::absent, "with a full disk nothing is stored");
    }
    const auto refused = errors.of(vouch::error_kind::full);
    expect(refused == 21, "every one of these errors is `full`");
    std::printf("  %llu entries were stored before the disk was full; %zu writes were refused\n",
                static_cast<unsigned long long>(stored), refused);
    std::uint64_t found = 0;
    for (std::uint64_t n = 1; n <= stored + 1; ++n) {
        found += store.find(id_of(n)) ? 1U : 0U;
    }
    expect(stored > 10 && found == stored, "everything that was stored can be read, and nothing else");
    std::remove(filler.c_str());
    expect(enqueue(store, stored + 1, errors) == said::stored, "with room, work goes on");
    const auto claimed = vouch::claim(store, {.queue = "q", .limit = 1000, .now = vouch::system_now()});
    expect(claimed.size() == stored + 1, "every entry can be claimed");
}

} // namespace

int main() {
    try {
        const small_disk disk(server_folder() + "/small");
        if (!disk.is_mounted()) {
            std::printf("skipped: a small file system cannot be mounted; run this program as root\n");
            return 77;
        }
        play(disk);
        std::system((std::string(VOUCH_CLUSTER) + " stop " + server_folder() + " fast").c_str()); // it uses the disk
        return finish();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "disk_full: %s\n", e.what());
        return 2;
    }
}
