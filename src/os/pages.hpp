// Memory in the system's pages, for system_memory(). A shortage is an error where the system can tell: macOS promises more than it has.
#pragma once

#include <cstddef>

namespace tessera::os {

[[nodiscard]] std::size_t page_size() noexcept;

// Returns `bytes` of zeros, or nullptr. `bytes` is a multiple of page_size() in all functions here.
[[nodiscard]] std::byte* map_pages(std::size_t bytes) noexcept;

// Has all pages put in memory; what is in them stays. Returns false if there is not enough.
[[nodiscard]] bool populate_pages(std::byte* base, std::size_t bytes) noexcept;

// Returns addresses without memory, or nullptr.
[[nodiscard]] std::byte* reserve_pages(std::size_t bytes) noexcept;

// Puts zeros behind reserved addresses. Returns false if there is not enough memory; the addresses stay reserved.
[[nodiscard]] bool commit_pages(std::byte* base, std::size_t bytes) noexcept;

// Gives the memory behind reserved addresses back. The addresses stay reserved.
void decommit_pages(std::byte* base, std::size_t bytes) noexcept;

// Gives back what map_pages() or reserve_pages() returned, as a whole.
void unmap_pages(std::byte* base, std::size_t bytes) noexcept;

// Writes each page's first byte with its own value, so that the system puts the page in memory.
inline void touch_pages(std::byte* base, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < bytes; at += page) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(base + at);
    *byte = *byte;
  }
}

}  // namespace tessera::os
