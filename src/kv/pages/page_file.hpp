// The file for KV pages that are not in memory: preallocated and divided into extents, with a thread that reads and writes them. The system
// deletes the file when the process ends, even after a crash.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/memory.hpp>

#include "os/file.hpp"

namespace tessera::detail {

class PageFile {
 public:
  // A range of the file. The destructor gives it back.
  class Extent {
   public:
    Extent(PageFile& file, std::uint64_t offset, std::uint64_t bytes) noexcept : file_(file), offset_(offset), bytes_(bytes) {}
    Extent(const Extent&) = delete;
    Extent& operator=(const Extent&) = delete;
    ~Extent() { file_.give_back(offset_, bytes_); }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

   private:
    PageFile& file_;
    std::uint64_t offset_, bytes_;
  };

  enum class Direction : std::uint8_t { read, write };
  struct Job {
    Direction direction = Direction::read;
    std::byte* data = nullptr;  // address in the Memory of create()
    std::size_t bytes = 0;
    std::shared_ptr<Extent> extent;
    // Called on the file's thread with 0 or the system's number of an error (os/error.hpp), and with the job's extent. Must not throw.
    std::function<void(int error, std::shared_ptr<Extent> extent)> done;
  };

  // Makes a file of `bytes` bytes, which are taken from the disk at once, for pages of `memory`. Errors: invalid_argument, the path exists
  // or `bytes` is too small; an error of the system, for example a disk without room.
  [[nodiscard]] static Result<std::unique_ptr<PageFile>> create(const std::filesystem::path& path, std::uint64_t bytes,
                                                                Memory& memory);
  ~PageFile() { stop(); }
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // Returns a free range of the file; nullptr: there is none large enough. Throws bad_alloc.
  [[nodiscard]] std::shared_ptr<Extent> allocate(std::uint64_t bytes);
  // Adds a job; jobs run in order of submission. Throws bad_alloc.
  void submit(Job job);
  // Waits for the job that runs, and drops the other jobs without calling done().
  void stop() noexcept;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t used() const noexcept;

 private:
  PageFile(os::File file, std::uint64_t bytes, Memory& memory, Buffer bounce);
  // Returns the offset of the first gap of `bytes` at or after `from`; size_ if there is none.
  [[nodiscard]] std::uint64_t find_gap(std::uint64_t from, std::uint64_t bytes) const noexcept;
  void give_back(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void work() noexcept;
  [[nodiscard]] int transfer(const Job& job) noexcept;
  [[nodiscard]] int transfer_by_bounce(const Job& job) noexcept;
  [[nodiscard]] int transfer_bytes(Direction direction, std::byte* data, std::size_t bytes, std::uint64_t offset) const noexcept;

  os::File file_;
  Memory& memory_;
  Buffer bounce_;  // used by the file's thread; empty if the memory is addressable
  std::uint64_t size_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // offset -> bytes, without overlap
  std::uint64_t used_ = 0;
  std::uint64_t next_ = 0;  // offset at which the next search begins
  std::deque<Job> jobs_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::detail
