// os/pages.hpp on Windows. The system commits only as much memory as it has (with its page file), so a shortage is an error of the function
// that commits.
#include "os/pages.hpp"

#include "os/windows/windows.hpp"

namespace tessera::os {
namespace {

std::byte* take(void* at, std::size_t bytes, DWORD kind, DWORD protection) noexcept {
  return static_cast<std::byte*>(::VirtualAlloc(at, bytes, kind, protection));
}

}  // namespace

std::size_t page_size() noexcept {
  SYSTEM_INFO info;
  ::GetSystemInfo(&info);
  return info.dwPageSize;
}

std::byte* map_pages(std::size_t bytes) noexcept { return take(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

bool populate_pages(std::byte* base, std::size_t bytes) noexcept {
  touch_pages(base, bytes);
  return true;
}

std::byte* reserve_pages(std::size_t bytes) noexcept { return take(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS); }

bool commit_pages(std::byte* base, std::size_t bytes) noexcept {
  return take(base, bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr && populate_pages(base, bytes);
}

void decommit_pages(std::byte* base, std::size_t bytes) noexcept { ::VirtualFree(base, bytes, MEM_DECOMMIT); }

void unmap_pages(std::byte* base, std::size_t) noexcept { ::VirtualFree(base, 0, MEM_RELEASE); }

}  // namespace tessera::os
