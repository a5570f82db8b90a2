// The number of threads by default: affinity and the quotas of control groups.
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <tessera/extend/core/executor.hpp>

#include "catch.hpp"
#include "os/linux/control_groups.hpp"
#include "os/processors.hpp"

namespace test_processors {

namespace fs = std::filesystem;

// A machine's files below a folder of their own.
struct Machine {
  fs::path root = fs::temp_directory_path() / ("tessera_processors_" + std::to_string(::getpid()));
  Machine() { fs::remove_all(root); }
  ~Machine() { fs::remove_all(root); }
  Machine& file(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
    return *this;
  }
  [[nodiscard]] double quota() const { return tessera::os::control_group_quota(root.string()); }
};

constexpr auto kV2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

TEST_CASE("A container's quota in cgroup v2 bounds the threads") {
  Machine m;
  m.file("proc/self/mountinfo", kV2)
      .file("proc/self/cgroup", "0::/\n")
      .file("sys/fs/cgroup/cpu.max", "150000 100000\n");
  CHECK(m.quota() == 1.5);
  m.file("sys/fs/cgroup/cpu.max", "max 100000\n");
  CHECK(std::isinf(m.quota()));
}

TEST_CASE("The least quota of a group and those above it counts") {
  Machine m;
  m.file("proc/self/mountinfo", kV2).file("proc/self/cgroup", "0::/a/b\n");
  m.file("sys/fs/cgroup/a/cpu.max", "300000 100000\n").file("sys/fs/cgroup/a/b/cpu.max", "50000 10000\n");
  CHECK(m.quota() == 3.0);
  m.file("sys/fs/cgroup/a/b/cpu.max", "20000 10000\n");
  CHECK(m.quota() == 2.0);
}

TEST_CASE("cgroup v1: the hierarchy of the controller cpu, also where a container sees its group as the mount's root") {
  Machine m;
  m.file("proc/self/mountinfo",
         "32 31 0:29 /docker/x /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
         "34 31 0:31 /docker/x /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  m.file("proc/self/cgroup", "4:cpuset:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/\n");
  m.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  m.file("sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "1\n").file("sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n");
  CHECK(m.quota() == 2.5);
  m.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  CHECK(std::isinf(m.quota()));
}

TEST_CASE("Files that are missing or say something else are no limit") {
  Machine m;
  CHECK(std::isinf(m.quota()));
  m.file("proc/self/mountinfo", kV2)
      .file("proc/self/cgroup", "nonsense\n0::/a\n")
      .file("sys/fs/cgroup/a/cpu.max", "-5 0\n");
  CHECK(std::isinf(m.quota()));
}

TEST_CASE("A thread bound to one processor has one usable thread") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(tessera::usable_threads() <= static_cast<std::size_t>(CPU_COUNT(&before)));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(tessera::usable_threads() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

}  // namespace test_processors
