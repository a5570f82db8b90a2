#include "system/memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace server {
namespace {

std::optional<std::uint64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

std::uint64_t available_memory() {
  std::uint64_t available = std::uint64_t{4} << 30;
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) available = kib << 10;
  }
  const auto most = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (most && used) available = std::min(available, *most - std::min(*most, *used));
  return available;
}

void give_back_memory() noexcept {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace server
