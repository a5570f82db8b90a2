// os/pages.hpp on macOS. The system promises more memory than it has; when memory runs short, it compresses and swaps pages, and at last
// ends processes. So functions here fail only if the address space is used up or a limit of the process is reached. The system has no huge
// pages to ask for.
#include "os/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace tessera::os {
namespace {

std::byte* map(void* at, std::size_t bytes, int protection, int flags) noexcept {
  void* const mapped = ::mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANON | flags, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }  // 16 KiB on Apple's processors

std::byte* map_pages(std::size_t bytes) noexcept { return map(nullptr, bytes, PROT_READ | PROT_WRITE, 0); }

bool populate_pages(std::byte* base, std::size_t bytes) noexcept {
  touch_pages(base, bytes);
  return true;
}

std::byte* reserve_pages(std::size_t bytes) noexcept { return map(nullptr, bytes, PROT_NONE, 0); }

bool commit_pages(std::byte* base, std::size_t bytes) noexcept {
  return ::mprotect(base, bytes, PROT_READ | PROT_WRITE) == 0 && populate_pages(base, bytes);
}

void decommit_pages(std::byte* base, std::size_t bytes) noexcept {
  // decommit_pages() must free the memory, and a later commit_pages() must return zeros. On macOS MADV_DONTNEED keeps the contents, so the
  // pages are mapped anew. If that fails, the old pages stay: they are cleared here and made unreadable.
  if (map(base, bytes, PROT_NONE, MAP_FIXED) != nullptr) return;
  __builtin_memset(base, 0, bytes);
  ::mprotect(base, bytes, PROT_NONE);
}

void unmap_pages(std::byte* base, std::size_t bytes) noexcept { ::munmap(base, bytes); }

}  // namespace tessera::os
