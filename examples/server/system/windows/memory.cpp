#include "system/memory.hpp"

#include <algorithm>

#include "system/windows/system.hpp"

namespace server {

std::uint64_t available_memory() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof(memory);
  if (!::GlobalMemoryStatusEx(&memory)) return std::uint64_t{4} << 30;
  return std::min<std::uint64_t>(memory.ullAvailPhys,
                                 memory.ullAvailPageFile);  // the latter: what may still be committed
}

void give_back_memory() noexcept {}  // the heap gives large memory back by itself

}  // namespace server
