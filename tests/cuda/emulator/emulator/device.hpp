// The host half of cuda/kernels/device.hpp: the same words for kernels that are compiled as C++ and run by
// <emulator/launch.hpp>. A block's threads are fibers of one OS thread, so one thread's atomics are plain operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/float16.hpp"

#include <emulator/kernel.hpp>

#define TESSERA_DEVICE inline
#define TESSERA_HOST_DEVICE inline
#define TESSERA_SHARED static  // one block runs at a time: what the last one left is still there
#define TESSERA_KERNEL(name, threads, Args) TESSERA_EMULATED_KERNEL(name, threads, Args)
#define TESSERA_EMULATED_KERNEL(name, threads, Args)                                                 \
  static void tessera_kernel_##name(const Args& args);                                               \
  static const ::tessera::emulator::Registered tessera_registered_##name{                            \
      {#name, (threads), sizeof(Args), [](const void* args) {                                        \
         tessera_kernel_##name(*static_cast<const Args*>(args));                                     \
       }}};                                                                                          \
  static void tessera_kernel_##name([[maybe_unused]] const Args& args)

namespace tessera::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

inline void* dynamic_shared() { return emulator::dynamic_shared(); }

inline void sync_block() { emulator::sync_block(); }
inline void sync_warp() { emulator::warp_operation(emulator::Operation::sync_warp, 0); }

namespace detail {

// What each lane gives is in the list that all of them get.
template <class T>
const std::uint64_t* exchange(emulator::Operation operation, T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return emulator::warp_operation(operation, bits);
}

template <class T>
T value_of(const std::uint64_t* values, unsigned lane) {
  emulator::check_lane(lane);
  T value;
  std::memcpy(&value, &values[lane], sizeof(T));
  return value;
}

}  // namespace detail

template <class T>
T shuffle_xor(T value, int mask) {
  const std::uint64_t* const values = detail::exchange(emulator::Operation::shuffle_xor, value);
  return detail::value_of<T>(values, (threadIdx.x % 32) ^ static_cast<unsigned>(mask));
}
template <class T>
T shuffle(T value, int lane) {
  const std::uint64_t* const values = detail::exchange(emulator::Operation::shuffle, value);
  return detail::value_of<T>(values, static_cast<unsigned>(lane) % 32);
}
template <class T>
T shuffle_up(T value, int distance) {
  const std::uint64_t* const values = detail::exchange(emulator::Operation::shuffle_up, value);
  const unsigned lane = threadIdx.x % 32;
  const unsigned down = static_cast<unsigned>(distance);
  return lane < down ? value : detail::value_of<T>(values, lane - down);
}
inline unsigned ballot(bool condition) {
  const std::uint64_t* const values = emulator::warp_operation(emulator::Operation::ballot, condition ? 1 : 0);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32 && threadIdx.x / 32 * 32 + lane < blockDim.x; ++lane) {
    bits |= static_cast<unsigned>(values[lane]) << lane;
  }
  return bits;
}

inline unsigned ones_in(unsigned bits) { return static_cast<unsigned>(__builtin_popcount(bits)); }

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

inline float half_to_float(std::uint16_t half) { return f16_to_f32(half); }
inline std::uint16_t float_to_half(float value) { return f32_to_f16(value); }

inline std::uint32_t pick_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i) {
    picked |= static_cast<std::uint32_t>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  }
  return picked;
}

inline std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t value) {
  const std::uint32_t old = *at;
  *at = old + value;
  return old;
}
inline std::uint64_t atomic_add(std::uint64_t* at, std::uint64_t value) {
  const std::uint64_t old = *at;
  *at = old + value;
  return old;
}
inline std::uint64_t atomic_max(std::uint64_t* at, std::uint64_t value) {
  const std::uint64_t old = *at;
  *at = value > old ? value : old;
  return old;
}

struct Words4 {
  std::uint32_t x, y, z, w;
};
inline Words4 load_streaming(const void* at) {
  emulator::check_aligned(at, 16);
  Words4 words;
  std::memcpy(&words, at, sizeof(words));
  return words;
}

}  // namespace tessera::cuda
