// system_memory() and Buffer. Large blocks are pages from the system, small blocks come from operator new. allocate() also populates the
// memory (the system backs it by real pages), so that a shortage is an error at once and not at a later write.
#include <tessera/extend/core/memory.hpp>

#include <cstring>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "os/pages.hpp"

namespace tessera {
namespace {

constexpr std::size_t kAlignment = 64;             // a cache line, and the widest vector register
constexpr std::size_t kSmall = std::size_t{64} << 10;  // smaller blocks are not mapped: the last page would waste too much

// Returns 0 if the result does not fit.
std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
  return bytes > SIZE_MAX - (to - 1) ? 0 : (bytes + to - 1) / to * to;
}

class SystemMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    void* base = claim(bytes);
    if (base == nullptr || populate(base, bytes, 0, bytes)) return base;
    release(base, bytes);
    return nullptr;
  }

  void* claim(std::size_t bytes) noexcept override {
    if (bytes == 0) return nullptr;
    if (bytes < kSmall) {
      void* base = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
      if (base != nullptr) std::memset(base, 0, bytes);
      return base;
    }
    const std::size_t rounded = round_up(bytes, os::page_size());
    return rounded == 0 ? nullptr : os::map_pages(rounded);
  }

  bool populate(void* base, std::size_t size, std::size_t offset, std::size_t bytes) noexcept override {
    return size < kSmall || os::populate_pages(static_cast<std::byte*>(base) + offset, round_up(bytes, os::page_size()));
  }

  void release(void* base, std::size_t bytes) noexcept override {
    if (base == nullptr) return;
    if (bytes < kSmall) {
      ::operator delete(base, std::align_val_t{kAlignment});
    } else {
      os::unmap_pages(static_cast<std::byte*>(base), round_up(bytes, os::page_size()));
    }
  }

  std::size_t granularity() const noexcept override { return os::page_size(); }

  void* reserve(std::size_t bytes) noexcept override {
    const std::size_t rounded = round_up(bytes, os::page_size());
    return rounded == 0 ? nullptr : os::reserve_pages(rounded);
  }

  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    return bytes == 0 || os::commit_pages(static_cast<std::byte*>(base) + offset, bytes);
  }

  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (bytes != 0) os::decommit_pages(static_cast<std::byte*>(base) + offset, bytes);
  }

  void unreserve(void* base, std::size_t bytes) noexcept override {
    if (base != nullptr) os::unmap_pages(static_cast<std::byte*>(base), round_up(bytes, os::page_size()));
  }
};

}  // namespace

bool Memory::populate(void*, std::size_t, std::size_t, std::size_t) noexcept { return true; }

bool Memory::commit(void*, std::size_t, std::size_t) noexcept { return true; }

void Memory::decommit(void* base, std::size_t offset, std::size_t bytes) noexcept {
  (void)fill(static_cast<std::byte*>(base) + offset, 0, bytes);  // a device that fails reports it at its next use
}

bool Memory::read(std::span<const Transfer> parts) noexcept {
  for (const Transfer& part : parts) std::memcpy(part.to, part.from, part.bytes);
  return true;
}
bool Memory::write(std::span<const Transfer> parts) noexcept { return Memory::read(parts); }
bool Memory::copy(std::span<const Transfer> parts) noexcept { return Memory::read(parts); }

bool Memory::fill(void* at, unsigned char byte, std::size_t bytes) noexcept {
  std::memset(at, byte, bytes);
  return true;
}

Memory& system_memory() noexcept {
  // The object lies in storage that is never destroyed: static objects of the host may still free buffers when the process exits.
  alignas(SystemMemory) static std::byte storage[sizeof(SystemMemory)];
  static Memory& memory = *::new (static_cast<void*>(storage)) SystemMemory;
  return memory;
}

Result<Buffer> Buffer::allocate(Memory& memory, std::size_t bytes, const char* what) noexcept {
  return bytes == 0 ? Buffer() : holding(memory, memory.allocate(bytes), bytes, what);
}

Result<Buffer> Buffer::claim(Memory& memory, std::size_t bytes, const char* what) noexcept {
  return bytes == 0 ? Buffer() : holding(memory, memory.claim(bytes), bytes, what);
}

bool Buffer::populate(std::size_t offset, std::size_t bytes) noexcept {
  return bytes == 0 || (memory_ != nullptr && memory_->populate(data_, size_, offset, bytes));
}

Result<Buffer> Buffer::holding(Memory& memory, void* base, std::size_t bytes, const char* what) noexcept {
  Buffer buffer;
  if (base == nullptr) {
    return detail::make_error(ErrorCode::out_of_memory,
                              "no memory for {}: {} bytes ({:.1f} MiB) are needed. Free memory or ask for less: a smaller "
                              "context, a smaller KV type, fewer sessions, a smaller model",
                              what == nullptr ? "a buffer" : what, bytes, static_cast<double>(bytes) / 0x1p20);
  }
  buffer.memory_ = &memory;
  buffer.data_ = static_cast<std::byte*>(base);
  buffer.size_ = bytes;
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    Buffer old(std::move(*this));
    memory_ = std::exchange(other.memory_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) memory_->release(data_, size_);
}

}  // namespace tessera
