// Memory in whole pages of the system, for system_memory(). If there is not enough memory, the functions fail instead of the process being
// ended later. Exception: macOS promises more memory than it has.
#pragma once

#include <cstddef>

namespace tessera::os {

[[nodiscard]] std::size_t page_size() noexcept;

// Takes `bytes` bytes of memory that contain zeros, and returns their address; nullptr if there is not enough memory. In all functions here
// `bytes` is a multiple of page_size().
[[nodiscard]] std::byte* map_pages(std::size_t bytes) noexcept;

// Makes the system back all pages by real memory now. Their contents stay. Returns false if there is not enough memory.
[[nodiscard]] bool populate_pages(std::byte* base, std::size_t bytes) noexcept;

// Reserves a range of addresses, without memory behind it, and returns its beginning; nullptr if that fails.
[[nodiscard]] std::byte* reserve_pages(std::size_t bytes) noexcept;

// Backs reserved addresses by memory that contains zeros. Returns false if there is not enough memory; the addresses are still reserved
// then.
[[nodiscard]] bool commit_pages(std::byte* base, std::size_t bytes) noexcept;

// Frees the memory that backs reserved addresses. The addresses stay reserved.
void decommit_pages(std::byte* base, std::size_t bytes) noexcept;

// Gives back what map_pages() or reserve_pages() returned. `base` and `bytes` must be the whole range, not a part of it.
void unmap_pages(std::byte* base, std::size_t bytes) noexcept;

// Writes to the first byte of each page the value that it has already, which makes the system back the page by memory.
inline void touch_pages(std::byte* base, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < bytes; at += page) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(base + at);
    *byte = *byte;
  }
}

}  // namespace tessera::os
