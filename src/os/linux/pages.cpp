// os/pages.hpp on Linux. By default the kernel promises more memory than it has, and kills the process at a later write if memory runs
// short. This file makes the kernel provide all pages at once, so that a shortage is an error that the caller can handle.
#include "os/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older headers do not name it
#endif

namespace tessera::os {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Maps memory. If a huge page fits, the start is aligned to huge pages, because otherwise the kernel could not use huge pages at the two
// ends. For this, some more addresses are mapped first, and those that are not needed are unmapped at once.
// The flag MAP_NORESERVE is left out, so that the kernel refuses to map more memory than the machine has. Otherwise the OOM killer would
// act when the pages are populated. (Pages with PROT_NONE are not counted before mprotect() makes them writable, so reserving addresses is
// not refused.)
std::byte* map(std::size_t bytes, int protection) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  const std::size_t page = page_size();
  const std::size_t slack = bytes >= kHugePage ? kHugePage - page : 0;
  if (bytes > SIZE_MAX - slack) return nullptr;
  void* mapped = ::mmap(nullptr, bytes + slack, protection, kFlags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(mapped);
  if (slack == 0) return base;
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(base) % kHugePage) % kHugePage;
  if (head > 0) ::munmap(base, head);
  if (slack > head) ::munmap(base + head + bytes, slack - head);
  ::madvise(base + head, bytes, MADV_HUGEPAGE);  // only advice: a kernel without huge pages may refuse it
  return base + head;
}

}  // namespace

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::byte* map_pages(std::size_t bytes) noexcept { return map(bytes, PROT_READ | PROT_WRITE); }

bool populate_pages(std::byte* base, std::size_t bytes) noexcept {
  for (;;) {
    if (::madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return true;
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return false;  // ENOMEM, EFAULT, EHWPOISON: no pages, or bad ones
    touch_pages(base, bytes);           // an older kernel
    return true;
  }
}

std::byte* reserve_pages(std::size_t bytes) noexcept { return map(bytes, PROT_NONE); }

bool commit_pages(std::byte* base, std::size_t bytes) noexcept {
  if (::mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  if (populate_pages(base, bytes)) return true;
  decommit_pages(base, bytes);
  return false;
}

void decommit_pages(std::byte* base, std::size_t bytes) noexcept {
  ::madvise(base, bytes, MADV_DONTNEED);
  ::mprotect(base, bytes, PROT_NONE);
}

void unmap_pages(std::byte* base, std::size_t bytes) noexcept { ::munmap(base, bytes); }

}  // namespace tessera::os
