// Runs kernels of cuda/kernels on the CPU, in the order of the grid: block after block, and a block's threads as fibers
// that change when they wait for each other. Throws std::runtime_error for what a GPU would hang on or refuse: an
// unknown kernel, arguments of another size, too many threads, threads that wait for some that have left or are in
// another warp operation, writes past the dynamic shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tessera::emulator {

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// Dynamic shared memory is filled with 0xff (NaN in every float format) before every block.
void launch(const char* kernel, Grid grid, unsigned threads, std::size_t shared_bytes, const void* args,
            std::size_t args_bytes);

template <class Args>
requires(!std::is_pointer_v<Args>) void launch(const char* kernel, Grid grid, unsigned threads,
                                               std::size_t shared_bytes, const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args>);
  launch(kernel, grid, threads, shared_bytes, &args, sizeof(Args));
}

// The order in which blocks, and the threads of a block that could run, are taken from now on: 0 ascending (at first),
// 1 descending, any other number shuffled by it. A kernel whose results change with it has a race.
void set_order(std::uint64_t seed);

}  // namespace tessera::emulator
