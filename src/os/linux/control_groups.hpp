// Reads how much processor time Linux's control groups allow this process, as in containers.
#pragma once

#include <string>

namespace tessera::os {

// Returns the processor time that the control groups of this process allow, as a number of processors (1.5: one and a half). It is the
// least quota of the process's group and of all groups above it (cpu.max in cgroup v2, cpu.cfs_quota_us in v1). Infinity if there is no
// limit, or if the limit cannot be read. `root`: only for tests, a folder that stands for the file system's root.
[[nodiscard]] double control_group_quota(const std::string& root = {}) noexcept;

}  // namespace tessera::os
