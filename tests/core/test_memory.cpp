// Memory: zeroed, populated, aligned; a shortage is an error and not a fault.
#include "catch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tessera/extend/core/memory.hpp>

namespace test_memory {

using namespace tessera;

namespace {

bool all_zero(const std::byte* at, std::size_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Whether every page is in memory.
bool is_resident(void* base, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (::mincore(base, bytes, pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
}

class Failing final : public Memory {
 public:
  void* allocate(std::size_t) noexcept override { return nullptr; }
  void release(void*, std::size_t) noexcept override { ++released; }
  int released = 0;
};

// The least that a host may give.
class Heap final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    void* base = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (base != nullptr) std::memset(base, 0, bytes);
    live += base != nullptr ? 1 : 0;
    return base;
  }
  void release(void* base, std::size_t) noexcept override {
    std::free(base);
    --live;
  }
  int live = 0;
};

}  // namespace

TEST_CASE("the system's memory is zeroed, aligned, populated and can be written") {
  Memory& memory = system_memory();
  for (const std::size_t bytes : {1u, 63u, 64u, 4096u, 65535u, 65536u, 65537u, 1u << 21, (1u << 21) + 1, 9'000'000u}) {
    INFO(bytes);
    auto* base = static_cast<std::byte*>(memory.allocate(bytes));
    REQUIRE(base != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(base) % 64 == 0);
    if (bytes >= 65536) CHECK(is_resident(base, bytes));
    CHECK(all_zero(base, bytes));
    std::memset(base, 0xff, bytes);
    memory.release(base, bytes);
  }
}

TEST_CASE("what is claimed is there when it has been populated") {
  Memory& memory = system_memory();
  const std::size_t grain = memory.granularity();
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{65535}, std::size_t{65536}, 40 * grain + 1}) {
    INFO(bytes);
    auto* base = static_cast<std::byte*>(memory.claim(bytes));
    REQUIRE(base != nullptr);
    const std::size_t half = bytes / 2 / grain * grain;
    REQUIRE(memory.populate(base, bytes, half, bytes - half));
    if (bytes >= 65536) CHECK(is_resident(base + half, bytes - half));
    REQUIRE(memory.populate(base, bytes, 0, half));
    if (bytes >= 65536) CHECK(is_resident(base, bytes));
    CHECK(all_zero(base, bytes));
    std::memset(base, 0xff, bytes);
    memory.release(base, bytes);
  }
  Heap heap;  // takes it all at once
  {
    Buffer buffer = *Buffer::claim(heap, 100, "a test");
    CHECK(heap.live == 1);
    CHECK(buffer.populate(64, 36));
    CHECK(all_zero(buffer.data(), 100));
  }
  CHECK(heap.live == 0);
  CHECK(Buffer::claim(heap, 0, "nothing")->size() == 0);
  Failing failing;
  CHECK(Buffer::claim(failing, 100, "a test").error().code() == ErrorCode::out_of_memory);
}

TEST_CASE("impossible sizes are refused") {
  Memory& memory = system_memory();
  CHECK(memory.claim(0) == nullptr);
  CHECK(memory.claim(SIZE_MAX) == nullptr);
  CHECK(memory.allocate(0) == nullptr);
  CHECK(memory.allocate(SIZE_MAX) == nullptr);
  CHECK(memory.allocate(SIZE_MAX - 5000) == nullptr);
  CHECK(memory.allocate(std::size_t{1} << 60) == nullptr);
  CHECK(memory.reserve(SIZE_MAX) == nullptr);
  CHECK(memory.reserve(0) == nullptr);
  memory.release(nullptr, 100);
  memory.unreserve(nullptr, 100);
}

TEST_CASE("more than the machine has is refused, where populating it would end the process") {
  char mode = '1';
  if (std::FILE* file = std::fopen("/proc/sys/vm/overcommit_memory", "r")) {
    mode = static_cast<char>(std::fgetc(file));
    std::fclose(file);
  }
  if (mode == '1') {
    tessera::tests::skip("this kernel promises any amount of memory");
    return;
  }
  Memory& memory = system_memory();
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * memory.granularity() * 64;
  CHECK(memory.allocate(bytes) == nullptr);
  CHECK(memory.claim(bytes) == nullptr);
  void* base = memory.reserve(bytes);
  REQUIRE(base != nullptr);
  CHECK_FALSE(memory.commit(base, 0, bytes));
  CHECK(memory.commit(base, 0, memory.granularity()));
  memory.unreserve(base, bytes);
}

TEST_CASE("reserved space is committed part by part, and decommitted parts come back zeroed") {
  Memory& memory = system_memory();
  const std::size_t grain = memory.granularity();
  const std::size_t bytes = std::size_t{64} << 30;  // more than this machine need have
  auto* base = static_cast<std::byte*>(memory.reserve(bytes));
  REQUIRE(base != nullptr);
  for (const std::size_t at : {std::size_t{0}, 7 * grain, 4096 * grain, bytes - 3 * grain}) {
    REQUIRE(memory.commit(base, at, 3 * grain));
    CHECK(is_resident(base + at, 3 * grain));
    CHECK(all_zero(base + at, 3 * grain));
    std::memset(base + at, 1, 3 * grain);
    memory.decommit(base, at + grain, grain);
    CHECK(base[at] == std::byte{1});
    CHECK(base[at + 3 * grain - 1] == std::byte{1});
    REQUIRE(memory.commit(base, at + grain, grain));
    CHECK(all_zero(base + at + grain, grain));
  }
  CHECK(memory.commit(base, 0, 0));
  memory.unreserve(base, bytes);
}

TEST_CASE("a commit beyond the process's limit fails and leaves the range as it was") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  tessera::tests::skip("sanitizers need their address space");
#else
  Memory& memory = system_memory();
  const std::size_t bytes = std::size_t{256} << 20;
  void* base = memory.reserve(bytes);
  REQUIRE(base != nullptr);
  struct ::rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_DATA, &old) == 0);
  const struct ::rlimit little { std::size_t{64} << 20, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_DATA, &little) == 0);  // counts private writable mappings
  const bool committed = memory.commit(base, 0, bytes);
  void* allocated = memory.allocate(bytes);
  auto refused = Buffer::allocate(memory, bytes, "the weights");
  const bool small = memory.commit(base, 0, memory.granularity());
  ::setrlimit(RLIMIT_DATA, &old);
  CHECK_FALSE(committed);
  CHECK(allocated == nullptr);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::out_of_memory);
  CHECK(small);
  CHECK(memory.commit(base, memory.granularity(), bytes - memory.granularity()));
  memory.unreserve(base, bytes);
#endif
}

TEST_CASE("an allocator that knows no address space keeps the promises of one") {
  Heap heap;
  const std::size_t grain = heap.granularity();
  auto* base = static_cast<std::byte*>(heap.reserve(10 * grain));
  REQUIRE(base != nullptr);
  REQUIRE(heap.commit(base, grain, 2 * grain));
  CHECK(all_zero(base + grain, 2 * grain));
  std::memset(base + grain, 1, 2 * grain);
  heap.decommit(base, grain, grain);
  REQUIRE(heap.commit(base, grain, grain));
  CHECK(all_zero(base + grain, grain));
  CHECK(base[2 * grain] == std::byte{1});
  heap.unreserve(base, 10 * grain);
  CHECK(heap.live == 0);
}

TEST_CASE("bytes go in and out of a host's memory, several stretches at once") {
  Heap heap;
  auto* base = static_cast<std::byte*>(heap.allocate(300));
  std::vector<std::byte> mine(100, std::byte{7}), back(100);
  CHECK(heap.addressable());
  const Transfer in[] = {{base, mine.data(), 10}, {base + 200, mine.data() + 50, 50}};
  CHECK(heap.write(in));
  const Transfer within[] = {{base + 100, base, 10}, {base + 110, base + 200, 50}};
  CHECK(heap.copy(within));
  CHECK(heap.fill(base + 120, 1, 5));
  const Transfer out[] = {{back.data(), base + 100, 60}};
  CHECK(heap.read(out));
  for (std::size_t i = 0; i < 60; ++i) CHECK(back[i] == std::byte(i >= 20 && i < 25 ? 1 : 7));
  CHECK(all_zero(base + 10, 90));
  CHECK(all_zero(back.data() + 60, 40));
  CHECK(heap.read({}));
  heap.release(base, 300);
}

TEST_CASE("what the processor cannot address is zeroed by its own means when it is decommitted") {
  class Device final : public Memory {
   public:
    void* allocate(std::size_t) noexcept override { return reinterpret_cast<void*>(std::uintptr_t{0x50} << 48); }
    void release(void*, std::size_t) noexcept override {}
    bool addressable() const noexcept override { return false; }
    bool fill(void* at, unsigned char byte, std::size_t bytes) noexcept override {
      filled.push_back({at, byte, bytes});
      return true;
    }
    struct Filled {
      void* at;
      unsigned char byte;
      std::size_t bytes;
    };
    std::vector<Filled> filled;
  };
  Device device;
  void* base = device.reserve(1 << 20);
  REQUIRE(device.commit(base, 0, 1 << 20));
  device.decommit(base, 128, 64);
  REQUIRE(device.filled.size() == 1);
  CHECK(device.filled[0].at == static_cast<std::byte*>(base) + 128);
  CHECK(device.filled[0].byte == 0);
  CHECK(device.filled[0].bytes == 64);
  device.unreserve(base, 1 << 20);
}

TEST_CASE("a buffer owns its memory, moves, and says what could not be had") {
  Heap heap;
  {
    auto first = Buffer::allocate(heap, 1000, "a test");
    REQUIRE(first);
    CHECK(first->size() == 1000);
    CHECK(heap.live == 1);
    Buffer second(std::move(*first));
    CHECK(first->data() == nullptr);
    CHECK(first->size() == 0);
    auto third = Buffer::allocate(heap, 10, "a test");
    REQUIRE(third);
    *third = std::move(second);
    CHECK(heap.live == 1);
    CHECK(third->bytes().size() == 1000);
    Buffer& same = *third;
    *third = std::move(same);
    CHECK(third->size() == 1000);
  }
  CHECK(heap.live == 0);
  auto empty = Buffer::allocate(heap, 0, "nothing");
  REQUIRE(empty);
  CHECK(empty->data() == nullptr);
  Failing failing;
  const auto failed = Buffer::allocate(failing, 3 << 20, "the KV cache");
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == ErrorCode::out_of_memory);
  CHECK(failed.error().text().find("the KV cache: 3145728 bytes (3.0 MiB)") != std::string::npos);
  CHECK(failing.released == 0);
}

}  // namespace test_memory
