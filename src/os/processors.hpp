// The number of processors that this process may use.
#pragma once

#include <cstddef>
#include <string>

namespace tessera::detail {

// Returns the number of processors in this thread's affinity mask (taskset, cpusets), at least 1.
[[nodiscard]] std::size_t affine_processors() noexcept;

// Returns the processor time that the control groups of this process allow, as a number of processors (cgroup v2's cpu.max, v1's
// cpu.cfs_quota_us): the least quota of the group and the groups above it. Infinity without a limit, or if it cannot be read.
// `root` is put in front of /proc and of the mount points, for tests.
[[nodiscard]] double processor_quota(const std::string& root = {}) noexcept;

}  // namespace tessera::detail
