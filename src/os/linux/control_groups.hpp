// Quotas of processor time by Linux's control groups.
#pragma once

#include <string>

namespace tessera::os {

// Returns the processor time that the control groups of this process allow, as a number of processors. That is the least quota of the group
// and the groups above it (cgroup v2's cpu.max, v1's cpu.cfs_quota_us). Infinity if there is no limit, or if the limit cannot be read.
// `root` is put before /proc and before the mount points, for tests.
[[nodiscard]] double control_group_quota(const std::string& root = {}) noexcept;

}  // namespace tessera::os
