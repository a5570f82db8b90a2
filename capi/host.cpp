#include "host.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace tessera::c {

namespace {

class HostSource final : public ByteSource {
 public:
  HostSource(const tessera_source& given, std::string name, SharedDrop drop) noexcept
      : read_(given.read), user_(given.user), bytes_(given.bytes), name_(std::move(name)), drop_(std::move(drop)) {}

  std::uint64_t size() const noexcept override { return bytes_; }
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override {
    if (offset > bytes_ || to.size() > bytes_ - offset)
      return Error(ErrorCode::io, "bytes beyond the end of the source", name_);
    try {
      if (read_(user_, offset, to.data(), to.size()) == 0) return {};
      return Error(ErrorCode::io, "the function `read` of the host failed", name_);
    } catch (...) {
      return Error(ErrorCode::callback_failed, "the function `read` of the host threw", name_);
    }
  }
  std::string name() const override { return name_; }

 private:
  int32_t (*read_)(void*, uint64_t, void*, size_t);
  void* user_;
  std::uint64_t bytes_;
  std::string name_;
  SharedDrop drop_;
};

// Hands tasks to the host's threads, and makes sure that each task runs exactly once. Tasks that the host has left out
// run on the calling thread.
class HostExecutor final : public Executor {
 public:
  HostExecutor(const tessera_engine_options& given, SharedDrop drop) noexcept
      : parallel_for_(given.parallel_for),
        user_(given.user),
        concurrency_(static_cast<std::size_t>(given.concurrency)),
        drop_(std::move(drop)) {}

  std::size_t concurrency() const noexcept override { return concurrency_; }

  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    if (n > capacity_) {
      claimed_.reset(new (std::nothrow) std::atomic<bool>[n]);
      capacity_ = claimed_ != nullptr ? n : 0;
    }
    if (capacity_ < n) {  // the array of marks could not be allocated
      for (std::size_t i = 0; i < n; ++i) task(context, i);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) claimed_[i].store(false, std::memory_order_relaxed);
    Work work{task, context, n, claimed_.get(), 0};
    try {
      parallel_for_(user_, n, run, &work);
    } catch (...) {  // the rest runs below
    }
    for (std::size_t i = 0; i < n; ++i) run(&work, i);
    while (work.done.load(std::memory_order_acquire) < n)
      std::this_thread::yield();  // tasks that the host's threads still run
  }

 private:
  struct Work {
    void (*task)(void*, std::size_t);
    void* context;
    std::size_t n;
    std::atomic<bool>* claimed;
    std::atomic<std::size_t> done;
  };
  static void run(void* of, std::size_t i) {
    auto& work = *static_cast<Work*>(of);
    if (i >= work.n || work.claimed[i].exchange(true, std::memory_order_relaxed)) return;
    work.task(work.context, i);
    work.done.fetch_add(1, std::memory_order_release);
  }

  void (*parallel_for_)(void*, size_t, void (*)(void*, size_t), void*);
  void* user_;
  std::size_t concurrency_;
  SharedDrop drop_;
  std::unique_ptr<std::atomic<bool>[]> claimed_;  // [capacity_]
  std::size_t capacity_ = 0;
};

}  // namespace

std::shared_ptr<ByteSource> host_source(const tessera_source& given, SharedDrop drop) {
  if (given.read == nullptr) fail(ErrorCode::invalid_argument, "a source needs a function that reads", "source.read");
  std::string name(text(given.name, given.name_size, "source.name"));
  if (name.empty()) name = "source";
  return std::make_shared<HostSource>(given, std::move(name), std::move(drop));
}

std::shared_ptr<Executor> host_executor(const tessera_engine_options& given, SharedDrop drop) {
  if (given.concurrency < 1 || given.concurrency > 4096) {
    fail(ErrorCode::invalid_argument, "must be the number of tasks that parallel_for runs at once, 1 to 4096",
         "options.concurrency");
  }
  return std::make_shared<HostExecutor>(given, std::move(drop));
}

}  // namespace tessera::c
