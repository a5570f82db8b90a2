// Memory for large buffers: weights, KV pages, workspaces. A host may supply its own Memory; small objects use the ordinary heap.
// allocate(), populate() and commit() back the memory with physical pages, so that a shortage is an error of that call and not a page fault
// later.
//
//   struct Counting final : tessera::Memory {  // give it to an engine: EngineOptions::memory
//     void* allocate(std::size_t bytes) noexcept override { return used += bytes, tessera::system_memory().allocate(bytes); }
//     void release(void* base, std::size_t bytes) noexcept override { used -= bytes, tessera::system_memory().release(base, bytes); }
//     std::atomic<std::size_t> used = 0;
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera {

// One range of bytes to copy.
struct Transfer {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

// The interface of an allocator. To supply your own memory, derive a class and set EngineOptions::memory. The object must be thread-safe
// and outlive every engine that uses it. Every function reports failure by its return value.
class Memory {
 public:
  virtual ~Memory() = default;

  // Returns `bytes` bytes of zeroed, populated memory at an address that is a multiple of 64; nullptr if there is not enough memory.
  // Precondition: `bytes` is not 0.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(void* base, std::size_t bytes) noexcept = 0;

  // Allocate a block in two steps. This is for blocks that take seconds to populate (weights): several threads can share the work, and
  // loading can be stopped. First, claim() returns the address of a block, or nullptr if the system already knows that it has not enough
  // memory. Then populate() is called once for each part of the claimed block of `size` bytes, with offsets that are multiples of
  // granularity(). It returns false if there is not enough memory. Defaults: claim() allocates everything at once, and populate() does
  // nothing.
  [[nodiscard]] virtual void* claim(std::size_t bytes) noexcept { return allocate(bytes); }
  [[nodiscard]] virtual bool populate(void* base, std::size_t size, std::size_t offset, std::size_t bytes) noexcept;

  // Reserve address space, and commit parts of it when they are needed (for a contiguous KV cache). Offsets and sizes are multiples of
  // granularity(). commit() populates a range that is not committed, and fills it with zeros; on failure it returns false and leaves the
  // range as it was. decommit() frees a committed range; its content is lost. Defaults, for a class that only allocates: reserve()
  // allocates everything at once, commit() cannot fail, and decommit() zeroes the range, so that the range is zero at its next commit().
  [[nodiscard]] virtual std::size_t granularity() const noexcept { return 64; }
  [[nodiscard]] virtual void* reserve(std::size_t bytes) noexcept { return allocate(bytes); }
  [[nodiscard]] virtual bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept;
  virtual void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept;
  virtual void unreserve(void* base, std::size_t bytes) noexcept { release(base, bytes); }

  // Access memory that the processor cannot address (a device's memory). Its addresses are only numbers to compute with; bytes are copied
  // only by these calls. A call accepts several ranges, no two of which overlap, and returns when the copies are done. Returns false if the
  // device failed; the content of the targets is then unknown. The defaults are for memory that the processor can address, and cannot fail.
  [[nodiscard]] virtual bool addressable() const noexcept { return true; }
  [[nodiscard]] virtual bool read(std::span<const Transfer> parts) noexcept;   // to the host
  [[nodiscard]] virtual bool write(std::span<const Transfer> parts) noexcept;  // from the host
  [[nodiscard]] virtual bool copy(std::span<const Transfer> parts) noexcept;   // within this memory
  [[nodiscard]] virtual bool fill(void* at, unsigned char byte, std::size_t bytes) noexcept;
};

// Returns the operating system's memory: anonymous mappings, with huge pages where they help.
[[nodiscard]] Memory& system_memory() noexcept;

// A block of Memory. The destructor releases it.
class Buffer {
 public:
  Buffer() noexcept = default;
  // Allocates a buffer. `what` names the buffer in the error. Zero bytes: returns an empty buffer.
  [[nodiscard]] static Result<Buffer> allocate(Memory& memory, std::size_t bytes, const char* what) noexcept;
  // Makes a buffer by Memory::claim(). Call populate() for each part before you use that part.
  [[nodiscard]] static Result<Buffer> claim(Memory& memory, std::size_t bytes, const char* what) noexcept;
  [[nodiscard]] bool populate(std::size_t offset, std::size_t bytes) noexcept;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  static Result<Buffer> holding(Memory& memory, void* base, std::size_t bytes, const char* what) noexcept;

  Memory* memory_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera
