// Reads several pages from the file at the same time, and waits until all have been read.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "kv/pages/page_file.hpp"

namespace tessera::detail {

class PageReads {
 public:
  explicit PageReads(PageFile* file) noexcept : file_(file) {}
  PageReads(const PageReads&) = delete;
  PageReads& operator=(const PageReads&) = delete;
  ~PageReads() { wait(); }  // the memory that is read into must exist until then

  // Begins to read a page's `bytes` bytes to the address `to`. Throws bad_alloc, and then does not read the page.
  void add(std::byte* to, std::size_t bytes, std::shared_ptr<PageFile::Extent> from) {
    std::unique_lock lock(mutex_);
    const std::size_t i = errors_.size();
    errors_.push_back(0);
    ++pending_;
    try {
      file_->submit({.direction = PageFile::Direction::read,
                    .data = to,
                    .bytes = bytes,
                    .extent = std::move(from),
                    .done = [this, i](int error, std::shared_ptr<PageFile::Extent> extent) {
                      const std::lock_guard done_lock(mutex_);
                      extent.reset();  // the extent must be free again before wait() returns
                      errors_[i] = error;
                      --pending_;
                      changed_.notify_all();
                    }});
    } catch (...) {
      errors_.pop_back();
      --pending_;
      throw;
    }
  }

  void wait() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pending_ == 0; });
  }
  // Returns for each page, in the order of add(), 0 or an errno. Call it after wait().
  [[nodiscard]] const std::vector<int>& errors() const noexcept { return errors_; }

 private:
  PageFile* file_;  // nullptr is allowed if no page is read
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t pending_ = 0;
  std::vector<int> errors_;
};

}  // namespace tessera::detail
