#include "system/memory.hpp"

#include <algorithm>

#include "system/windows/system.hpp"

namespace server {

std::uint64_t available_memory() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof(memory);
  if (!::GlobalMemoryStatusEx(&memory)) return std::uint64_t{4} << 30;
  return std::min<std::uint64_t>(memory.ullAvailPhys,
                                 memory.ullAvailPageFile);  // ullAvailPageFile: memory that may still be committed
}

void give_back_memory() noexcept {}  // nothing to do: the heap returns large blocks to the system

}  // namespace server
