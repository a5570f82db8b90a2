// Working lists that calls use one after another, so that a decode step allocates none. There are as many as calls ever
// ran at once; long ones, of prompts, are given back.
#pragma once

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tessera::detail {

// T: default made, movable, with clear() noexcept, which also gives excess memory back.
template <class T>
class Recycled {
 public:
  // One of them, until the end of the scope.
  class Lease {
   public:
    explicit Lease(Recycled& from) noexcept : from_(from), value_(from.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { from_.give(std::move(value_)); }
    [[nodiscard]] T& operator*() noexcept { return value_; }
    [[nodiscard]] T* operator->() noexcept { return &value_; }
    [[nodiscard]] const T* operator->() const noexcept { return &value_; }

   private:
    Recycled& from_;
    T value_;
  };

 private:
  T take() noexcept {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    T value = std::move(free_.back());
    free_.pop_back();
    return value;
  }

  void give(T value) noexcept {
    value.clear();
    const std::lock_guard lock(mutex_);
    try {
      free_.push_back(std::move(value));
    } catch (const std::bad_alloc&) {  // the next call makes a new one
    }
  }

  std::mutex mutex_;
  std::vector<T> free_;
};

// Clears a list; one of more than `keep` elements goes back.
template <class T>
void clear_list(std::vector<T>& list, std::size_t keep = 1024) noexcept {
  if (list.capacity() > keep) {
    std::vector<T>().swap(list);  // assigning an empty list would keep the memory
  } else {
    list.clear();
  }
}

}  // namespace tessera::detail
