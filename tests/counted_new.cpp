// Every form of the global operator new and delete, replaced by counted_new.hpp's.
#include "counted_new.hpp"

void* operator new(std::size_t n) { return counted::take_or_throw(n); }
void* operator new[](std::size_t n) { return counted::take_or_throw(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted::take(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted::take(n); }
void* operator new(std::size_t n, std::align_val_t a) {
  return counted::take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return counted::take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted::take(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted::take(n, static_cast<std::size_t>(a));
}
void operator delete(void* block) noexcept { counted::give(block); }
void operator delete[](void* block) noexcept { counted::give(block); }
void operator delete(void* block, std::size_t) noexcept { counted::give(block); }
void operator delete[](void* block, std::size_t) noexcept { counted::give(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { counted::give(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { counted::give(block); }
void operator delete(void* block, std::align_val_t) noexcept { counted::give(block); }
void operator delete[](void* block, std::align_val_t) noexcept { counted::give(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { counted::give(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { counted::give(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  counted::give(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  counted::give(block);
}
