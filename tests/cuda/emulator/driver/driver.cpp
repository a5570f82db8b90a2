#include "driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tessera::emulator {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

void* Memories::allocate(std::size_t bytes) {
  void* const at = ::operator new(bytes, kAlignment, std::nothrow);
  if (at == nullptr) return nullptr;
  std::memset(at, 0xff, bytes);
  pieces_[reinterpret_cast<std::uintptr_t>(at)] = bytes;
  bytes_ += bytes;
  return at;
}

bool Memories::free(void* at) {
  const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == pieces_.end()) return false;
  bytes_ -= found->second;
  pieces_.erase(found);
  ::operator delete(at, kAlignment);
  return true;
}

bool Memories::holds(const void* at, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto found = pieces_.upper_bound(address);
  if (found == pieces_.begin()) return false;
  --found;
  const std::uintptr_t offset = address - found->first;
  return offset <= found->second && bytes <= found->second - offset;
}

bool Memories::touches(const void* at, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto found = pieces_.lower_bound(address + bytes);
  if (found == pieces_.begin()) return false;
  --found;
  return found->first + found->second > address;
}

Driver& Driver::get() {
  static auto* const driver = new Driver;  // outlives what other libraries destroy when the program ends
  return *driver;
}

std::vector<CUcontext>& current_contexts() {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

CUresult Driver::mistake(CUresult code, std::string what) {
  ++mistakes;
  last_mistake = std::move(what);
  return code;
}

void Driver::lose(CUresult code, std::string what) {
  context.lost = code;
  last_mistake = std::move(what);
  for (const auto& queue : queues) queue->work.clear();
}

CUresult begin(const char* name, Needs needs) {
  Driver& driver = Driver::get();
  ++driver.calls;
  const bool fails = driver.calls == driver.fail_at;
  if (fails && driver.fail_loses_device) {
    driver.lose(driver.fail_code, fmt::format("the device was lost in {}", name));
  }
  if (fails) return driver.fail_code;
  if (needs == Needs::nothing) return CUDA_SUCCESS;
  if (current_contexts().empty() || current_contexts().back() != primary_context()) {
    return driver.mistake(CUDA_ERROR_INVALID_CONTEXT, fmt::format("{} without a current context", name));
  }
  if (driver.context.retained == 0) {
    return driver.mistake(CUDA_ERROR_CONTEXT_IS_DESTROYED, fmt::format("{} after the context's release", name));
  }
  return driver.context.lost;
}

Stream* Driver::stream(CUstream handle) {
  const auto found = streams.find(handle);
  return found == streams.end() ? nullptr : found->second.get();
}

void Driver::push(Stream& stream, Work work) {
  if (std::find(queues.begin(), queues.end(), stream.queue) == queues.end()) queues.push_back(stream.queue);
  stream.queue->work.push_back(std::move(work));
}

CUresult Driver::drain(Queue& queue, const Marker* until) {
  while (!queue.work.empty() && !(until != nullptr && until->done)) {
    const Work work = std::move(queue.work.front());
    queue.work.pop_front();
    if (work.run) {
      if (const CUresult result = work.run(); result != CUDA_SUCCESS) return result;
    }
    if (work.reach) {
      work.reach->done = true;
      work.reach->when = std::chrono::steady_clock::now();
    }
    if (work.wait_for && !work.wait_for->done) {
      if (const CUresult result = drain(*work.wait_for->queue, work.wait_for.get()); result != CUDA_SUCCESS) {
        return result;
      }
    }
  }
  return context.lost;
}

CUresult Driver::drain_all() {
  for (const auto& queue : queues) {
    if (const CUresult result = drain(*queue, nullptr); result != CUDA_SUCCESS) return result;
  }
  queues.clear();
  return context.lost;
}

}  // namespace tessera::emulator
