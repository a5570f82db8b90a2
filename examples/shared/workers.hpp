// Threads for work that would make connections wait: templates, grammars, writing tokens as JSON.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace server {

class Workers {
 public:
  explicit Workers(std::size_t threads = 0) { start(threads); }
  // Adds threads. Work that is posted before there is a thread waits.
  void start(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  // Finishes all posted work first.
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  // Queues work that takes long. `slice` does a part of the work; the workers call `slice` until it returns true, which means that the work
  // is complete. Long works run one after the other. Between two slices, tasks of post() run, so that they do not wait for the whole work.
  void post_long(std::function<bool()> slice) {
    {
      const std::lock_guard lock(mutex_);
      long_.push_back(std::move(slice));
      if (long_.size() > 1) return;
    }
    post([this] { next_slice(); });
  }

 private:
  void next_slice() {
    std::function<bool()>* first = nullptr;
    {
      const std::lock_guard lock(mutex_);
      first = &long_.front();  // the address stays valid while further works are added at the end
    }
    bool over = true;
    try {
      over = (*first)();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a request was given up: %s\n", error.what());
    }
    std::function<bool()> done;
    {
      const std::lock_guard lock(mutex_);
      if (over) {
        done = std::move(long_.front());
        long_.pop_front();
      }
      if (long_.empty()) return;
    }
    post([this] { next_slice(); });
  }
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      try {
        task();
      } catch (const std::exception& error) {  // no memory even to refuse the request: its connection ends, others go on
        std::fprintf(stderr, "a request was given up: %s\n", error.what());
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::deque<std::function<bool()>> long_;  // the first one is running
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace server
