// What tests ask of and tell the emulated driver. Every thread's calls count; the settings are the process's.
#pragma once

#include <cstddef>
#include <cstdint>

// All of plain types and C: a test that only opens the library finds them by name.
extern "C" {

// No failures to come, no counts, the usual device, a context that works; what is live stays.
void tessera_emulator_reset();

// Calls of the driver's and cuBLASLt's that can fail, since the last reset.
std::uint64_t tessera_emulator_calls();
// The k-th call from now on (1: the next) fails with this CUresult. Calls of cuBLASLt say CUBLAS_STATUS_ALLOC_FAILED
// for CUDA_ERROR_OUT_OF_MEMORY, else CUBLAS_STATUS_EXECUTION_FAILED. What releases something does so all the same, as
// a driver's that reports an earlier failure. 0: none.
void tessera_emulator_fail_call(std::uint64_t k, int code);
// The same, and the device is lost: all later calls of its context fail, until nobody retains it.
void tessera_emulator_lose_device(std::uint64_t k, int code);
// Calls that were the caller's mistake (a wrong pointer, no context, too many threads), and what was said of the last
// mistake or failed kernel: valid until the next call, empty if there was none.
std::uint64_t tessera_emulator_mistakes();
const char* tessera_emulator_last_mistake();

// Kernels of that name that have run (nullptr: of all), and products of cuBLASLt's.
std::uint64_t tessera_emulator_launches(const char* kernel);
std::uint64_t tessera_emulator_matmuls();
// Copies from the host's memory to the device's that were asked for.
std::uint64_t tessera_emulator_uploads();

struct tessera_emulator_live_objects {
  std::size_t device_buffers;
  std::size_t device_bytes;
  std::size_t pinned_buffers;
  std::size_t streams;
  std::size_t events;
  std::size_t modules;
  std::size_t contexts;  // retained and not released
  std::size_t blas;      // handles, descriptors, layouts, preferences
};
tessera_emulator_live_objects tessera_emulator_live();
std::size_t tessera_emulator_live_count();     // the sum of all but the bytes
std::size_t tessera_emulator_context_depth();  // the calling thread's stack of current contexts

void tessera_emulator_set_total_memory(std::size_t bytes);           // at first 1 GiB
void tessera_emulator_set_device_count(int count);                   // 0 or, at first, 1
void tessera_emulator_set_multiprocessors(int count);                // at first 8
void tessera_emulator_set_compute_capability(int major, int minor);  // at first 9.0
void tessera_emulator_set_order(std::uint64_t seed);                 // tessera::emulator::set_order
}
