// Memory in the system's pages, for system_memory(). A shortage of memory is an error. Exception: macOS promises more memory than it has.
#pragma once

#include <cstddef>

namespace tessera::os {

[[nodiscard]] std::size_t page_size() noexcept;

// Returns `bytes` bytes of zeros; nullptr if there is not enough memory. In all functions here `bytes` is a multiple of page_size().
[[nodiscard]] std::byte* map_pages(std::size_t bytes) noexcept;

// Makes the system back all pages by memory now; their contents stay. Returns false if there is not enough memory.
[[nodiscard]] bool populate_pages(std::byte* base, std::size_t bytes) noexcept;

// Reserves addresses without memory, and returns them; nullptr if that fails.
[[nodiscard]] std::byte* reserve_pages(std::size_t bytes) noexcept;

// Backs reserved addresses by memory that contains zeros. Returns false if there is not enough memory; the addresses stay reserved.
[[nodiscard]] bool commit_pages(std::byte* base, std::size_t bytes) noexcept;

// Frees the memory that backs reserved addresses. The addresses stay reserved.
void decommit_pages(std::byte* base, std::size_t bytes) noexcept;

// Frees memory of map_pages(), or addresses of reserve_pages(). `base` and `bytes` must be those of the whole.
void unmap_pages(std::byte* base, std::size_t bytes) noexcept;

// Writes the first byte of each page with the value that it has, so that the system backs the page by memory.
inline void touch_pages(std::byte* base, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < bytes; at += page) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(base + at);
    *byte = *byte;
  }
}

}  // namespace tessera::os
