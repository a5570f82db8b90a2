// The emulated driver's state: one device, its context, what is alive, and what tests asked for.
//
// Streams are lazy. Work is only queued, and runs when a call waits for it: what reads a host buffer before
// synchronising, or writes one too early, gets wrong numbers every time, and not once in a thousand runs.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <emulator/kernel.hpp>

namespace tessera::emulator {

// Where an event was recorded; done when the stream has come to it.
struct Marker {
  std::shared_ptr<struct Queue> queue;
  bool done = false;
  std::chrono::steady_clock::time_point when;
};

struct Work {
  std::function<CUresult()> run;     // or
  std::shared_ptr<Marker> reach;     // an event, or
  std::shared_ptr<Marker> wait_for;  // another stream's
};

struct Queue {
  std::deque<Work> work;
};

struct Stream {
  std::shared_ptr<Queue> queue;
};

struct Event {
  unsigned flags = 0;
  std::shared_ptr<Marker> marker;  // of the last record, if any
};

struct Function {
  const Kernel* kernel;
  std::size_t max_dynamic_shared = 48 << 10;
};

struct Module {
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Pieces of memory by their addresses. Each is an allocation of exactly its size: AddressSanitizer sees their ends.
class Memories {
 public:
  void* allocate(std::size_t bytes);  // filled with 0xff; nullptr if there is no memory
  bool free(void* at);
  // Whether [at, at + bytes) lies in one of them.
  bool holds(const void* at, std::size_t bytes) const;
  // Whether some byte of it does.
  bool touches(const void* at, std::size_t bytes) const;
  std::size_t count() const { return pieces_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::map<std::uintptr_t, std::size_t> pieces_;  // bytes by address
  std::size_t bytes_ = 0;
};

// A handle of cuBLASLt's, a descriptor, a layout or a preference.
struct BlasObject {
  virtual ~BlasObject() = default;
};

struct Context {
  unsigned retained = 0;
  CUresult lost = CUDA_SUCCESS;  // what all calls say from then on
};

struct Driver {
  static Driver& get();

  std::mutex mutex;
  bool initialised = false;
  Context context;
  Memories device, pinned;
  std::map<CUstream, std::unique_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Queue>> queues;  // also of destroyed streams, until they are empty
  std::map<CUevent, std::unique_ptr<Event>> events;
  std::map<CUmodule, std::unique_ptr<Module>> modules;
  std::set<CUfunction> functions;
  std::map<const void*, std::unique_ptr<BlasObject>> blas;

  // Settings
  std::size_t total_memory = std::size_t{1} << 30;
  int device_count = 1;
  int multiprocessors = 8;
  int capability[2] = {9, 0};

  // Counts
  std::uint64_t calls = 0;
  std::uint64_t fail_at = 0;  // of `calls`; 0: never
  CUresult fail_code = CUDA_SUCCESS;
  bool fail_loses_device = false;
  std::uint64_t mistakes = 0;
  std::string last_mistake;
  std::map<std::string, std::uint64_t> launches;
  std::uint64_t matmuls = 0;
  std::uint64_t uploads = 0;

  // The caller's fault; returns `code`.
  CUresult mistake(CUresult code, std::string what);
  void lose(CUresult code, std::string what);

  Stream* stream(CUstream handle);  // nullptr if there is none such
  void push(Stream& stream, Work work);
  CUresult drain(Queue& queue, const Marker* until);  // nullptr: all of it
  CUresult drain_all();
};

std::vector<CUcontext>& current_contexts();  // the calling thread's stack
inline CUcontext primary_context() { return reinterpret_cast<CUcontext>(&Driver::get().context); }

enum class Needs { nothing, context };

// Begins every function of the API: counts it, and says whether it may go on.
CUresult begin(const char* name, Needs needs);

// One call of the API. Exceptions (no memory) end as CUDA_ERROR_OUT_OF_MEMORY.
template <class Body>
CUresult call(const char* name, Needs needs, Body&& body) noexcept {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  try {
    if (const CUresult result = begin(name, needs); result != CUDA_SUCCESS) return result;
    return body(driver);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// One that releases something: it does even if it is to fail.
template <class Body>
CUresult release(const char* name, Needs needs, Body&& body) noexcept {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  try {
    const CUresult begun = begin(name, needs);
    const CUresult result = body(driver);
    return begun != CUDA_SUCCESS ? begun : result;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace tessera::emulator
