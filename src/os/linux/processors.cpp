// Finds out how many processors Linux lets this process use: sched_getaffinity(2), proc_pid_mountinfo(5), cgroups(7).
#include "os/processors.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/guard.hpp"
#include "os/linux/control_groups.hpp"

namespace tessera::os {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Returns whether `word` is an item of `list`, whose items are separated by commas.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Returns the path of the control group of this process; empty if there is none. v2: the path in the line "0::/path". Otherwise: the path
// of v1's controller cpu.
std::string group_of_process(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : lists(controllers, "cpu")) return line.substr(second + 1);
  }
  return {};
}

double quota_in(const std::string& folder, bool v2) {
  double quota = 0.0, period = 0.0;
  if (v2) {
    std::ifstream file(folder + "/cpu.max");
    std::string most;  // "max 100000" without a limit
    if (!(file >> most >> period) || most == "max" || !(std::istringstream(most) >> quota)) return kNoLimit;
  } else {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return kNoLimit;  // -1 without a limit
  }
  return quota > 0.0 && period > 0.0 ? quota / period : kNoLimit;
}

// Returns the least quota on the way from the group of this process up to the root of a mounted hierarchy of groups. Exception: in a
// container the mount's root is often the process's own group, while /proc/self/cgroup has a path of the host that does not exist here.
// Then only the quota of the mount's root is read.
double quota_of_mount(const std::string& root, const std::string& mount_root, const std::string& mount_point, bool v2) {
  std::string group = group_of_process(root, v2);
  if (mount_root != "/") group = group.starts_with(mount_root) ? group.substr(mount_root.size()) : "";
  double least = quota_in(root + mount_point, v2);
  while (group.size() > 1) {
    least = std::min(least, quota_in(root + mount_point + group, v2));
    group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
  }
  return least;
}

}  // namespace

std::size_t affine_processors() noexcept {
  // The size of the mask is not known beforehand. The call fails while the mask is too small, so the loop doubles it.
  for (std::size_t most = 1024; most <= (std::size_t{1} << 20); most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most),
                                                               [](cpu_set_t* mask) { CPU_FREE(mask); });
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT_S(bytes, set.get())));
  }
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

double control_group_quota(const std::string& root) noexcept {
  const auto least = detail::guard([&]() -> Result<double> {
    double found = kNoLimit;
    std::ifstream mounts(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
      // Fields of a line: id parent major:minor ROOT POINT options [optional ...] - TYPE source SUPER-OPTIONS
      std::istringstream words(line);
      std::string word, mount_root, mount_point, type, source, super;
      words >> word >> word >> word >> mount_root >> mount_point;
      while (words >> word && word != "-") {
      }
      words >> type >> source >> super;
      const bool v2 = type == "cgroup2";
      if (v2 || (type == "cgroup" && lists(super, "cpu")))
        found = std::min(found, quota_of_mount(root, mount_root, mount_point, v2));
    }
    return found;
  });
  return least ? *least : kNoLimit;
}

double processor_quota() noexcept { return control_group_quota(); }

#if defined(__x86_64__)

namespace {
constexpr unsigned kTileData = 18;  // XFEATURE_XTILEDATA
}  // namespace

bool knows_tiles() noexcept {
  constexpr long kSupported = 0x1021;  // ARCH_GET_XCOMP_SUPP
  std::uint64_t states = 0;
  return ::syscall(SYS_arch_prctl, kSupported, &states) == 0 && (states >> kTileData & 1u) != 0;
}

bool ask_for_tiles() noexcept {
  constexpr long kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

bool has_dot_products() noexcept { return false; }

#else

bool knows_tiles() noexcept { return false; }

bool ask_for_tiles() noexcept { return false; }

bool has_dot_products() noexcept { return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

#endif

}  // namespace tessera::os
