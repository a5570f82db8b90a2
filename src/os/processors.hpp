// How many processors this process may use.
#pragma once

#include <cstddef>
#include <string>

namespace tessera::detail {

// Processors in this thread's affinity mask (taskset, cpusets), at least 1.
[[nodiscard]] std::size_t affine_processors() noexcept;

// Processors' worth of time that the control groups of this process may take (cgroup v2's cpu.max, v1's
// cpu.cfs_quota_us): the least of the group and those above it, infinity without a limit or where it cannot be read.
// `root` stands in front of /proc and /sys, for tests.
[[nodiscard]] double processor_quota(const std::string& root = {}) noexcept;

}  // namespace tessera::detail
