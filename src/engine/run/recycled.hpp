// Keeps the working lists of finished calls for later calls, so that a decode step need not allocate lists. A pool has at most as many
// lists as there ever were calls at the same time. Only short lists keep their memory: the memory of long lists (of prompts) is freed
// after use.
#pragma once

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tessera::detail {

// A pool of objects of type T, each with the working lists of one call. T must be default-constructible and movable, and have a clear()
// noexcept that empties the lists and frees the memory of long ones.
template <class T>
class Recycled {
 public:
  // A T that the caller may use until the end of the scope.
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
    } catch (const std::bad_alloc&) {  // the list is freed, and a later call makes a new one
    }
  }

  std::mutex mutex_;
  std::vector<T> free_;
};

// Clears a list. Frees its memory if its capacity is more than `keep` elements.
template <class T>
void clear_list(std::vector<T>& list, std::size_t keep = 1024) noexcept {
  if (list.capacity() > keep) {
    std::vector<T>().swap(list);  // assigning an empty list would keep the memory
  } else {
    list.clear();
  }
}

}  // namespace tessera::detail
