// The operating system's memory, populated when it is taken. The kernel may promise pages that it does not have, and would kill
// the process at a later write. Here all pages are asked for at once, so that a shortage is an error.
#include <tessera/extend/core/memory.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older headers do not name it
#endif

namespace tessera {
namespace {

constexpr std::size_t kAlignment = 64;             // a cache line, and the widest vector register
constexpr std::size_t kSmall = std::size_t{64} << 10;  // smaller blocks are not mapped: the last page would waste too much
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Returns 0 if the result does not fit.
std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
  return bytes > SIZE_MAX - (to - 1) ? 0 : (bytes + to - 1) / to * to;
}

// Does the work of MADV_POPULATE_WRITE, for kernels without it. Writes each byte's own value, so that used pages keep their data.
void touch_pages(std::byte* base, std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < bytes; at += page) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(base + at);
    *byte = *byte;
  }
}

bool populate_pages(std::byte* base, std::size_t bytes) noexcept {
  for (;;) {
    if (::madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return true;
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return false;  // ENOMEM, EFAULT, EHWPOISON: no pages, or bad ones
    touch_pages(base, bytes);
    return true;
  }
}

// Maps memory. The start is aligned to a huge page if a huge page fits, because otherwise the kernel could not use huge pages at the
// ends; the address space taken for the alignment is given back at once. Without MAP_NORESERVE, so that the kernel refuses more
// memory than the machine has, instead of waking the OOM killer when the pages are populated. PROT_NONE is not counted until
// mprotect() makes it writable.
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
    const std::size_t rounded = round_up(bytes, page_size());
    return rounded == 0 ? nullptr : map(rounded, PROT_READ | PROT_WRITE);
  }

  bool populate(void* base, std::size_t size, std::size_t offset, std::size_t bytes) noexcept override {
    return size < kSmall || populate_pages(static_cast<std::byte*>(base) + offset, round_up(bytes, page_size()));
  }

  void release(void* base, std::size_t bytes) noexcept override {
    if (base == nullptr) return;
    if (bytes < kSmall) {
      ::operator delete(base, std::align_val_t{kAlignment});
    } else {
      ::munmap(base, round_up(bytes, page_size()));
    }
  }

  std::size_t granularity() const noexcept override { return page_size(); }

  void* reserve(std::size_t bytes) noexcept override {
    const std::size_t rounded = round_up(bytes, page_size());
    return rounded == 0 ? nullptr : map(rounded, PROT_NONE);
  }

  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (bytes == 0) return true;
    std::byte* first = static_cast<std::byte*>(base) + offset;
    if (::mprotect(first, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    if (populate_pages(first, bytes)) return true;
    decommit(base, offset, bytes);
    return false;
  }

  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (bytes == 0) return;
    std::byte* first = static_cast<std::byte*>(base) + offset;
    ::madvise(first, bytes, MADV_DONTNEED);
    ::mprotect(first, bytes, PROT_NONE);
  }

  void unreserve(void* base, std::size_t bytes) noexcept override {
    if (base != nullptr) ::munmap(base, round_up(bytes, page_size()));
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
  // The object lies in storage that is never destroyed, because the host's static objects may still hold buffers at exit.
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
