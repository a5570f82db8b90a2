// What an emulated kernel needs of the emulator: its place in the grid, and where threads wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::emulator {

struct Index {
  unsigned x, y, z;
};

}  // namespace tessera::emulator

// Of the fiber that runs. Small enough for the static block, where reading them needs no call.
#define TESSERA_EMULATED_INDEX extern thread_local constinit tessera::emulator::Index
#define TESSERA_EMULATED_STATIC __attribute__((tls_model("initial-exec")))
TESSERA_EMULATED_INDEX threadIdx TESSERA_EMULATED_STATIC;
TESSERA_EMULATED_INDEX blockIdx TESSERA_EMULATED_STATIC;
TESSERA_EMULATED_INDEX blockDim TESSERA_EMULATED_STATIC;
TESSERA_EMULATED_INDEX gridDim TESSERA_EMULATED_STATIC;
#undef TESSERA_EMULATED_STATIC
#undef TESSERA_EMULATED_INDEX

namespace tessera::emulator {

struct Kernel {
  const char* name;
  unsigned max_threads;
  std::size_t args_bytes;
  void (*run)(const void* args);  // one thread
};

// A namespace-scope object, for as long as the program (or its shared library) is loaded.
class Registered {
 public:
  explicit Registered(const Kernel& kernel);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  Kernel kernel_;
};

// A kernel of that name, or nullptr.
const Kernel* find_kernel(const char* name);

enum class Operation { sync_warp, shuffle_xor, shuffle, shuffle_up, ballot };

void* dynamic_shared();
void sync_block();
// Waits for the other lanes of the warp, which must call it with the same operation; then the values of all of them,
// readable until this thread's next operation. [32]
const std::uint64_t* warp_operation(Operation operation, std::uint64_t value);

// These end the launch with an error where a GPU would give garbage or a fault.
void check_lane(unsigned lane);  // that lane of the warp exists
void check_aligned(const void* at, std::size_t bytes);

}  // namespace tessera::emulator
