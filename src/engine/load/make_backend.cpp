#include "engine/load/make_backend.hpp"

#include "core/error.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/instruction_sets.hpp"
#include "cpu/thread_pool.hpp"
#include "cuda/make_backend.hpp"

namespace tessera::detail {

namespace {

// An executor for planning: it only states a number of threads, and runs no tasks.
class PlannedExecutor final : public Executor {
 public:
  explicit PlannedExecutor(std::size_t concurrency) noexcept : concurrency_(concurrency) {}
  [[nodiscard]] std::size_t concurrency() const noexcept override { return concurrency_; }
  void parallel_for(std::size_t, void (*)(void*, std::size_t), void*) noexcept override {}

 private:
  std::size_t concurrency_;
};

}  // namespace

Result<Machine> make_backend(const EngineOptions& options) {
  Machine machine;
  cpu::ClaimedSet claimed;
  if (options.backend == BackendKind::cpu) {
    TESSERA_TRY(claimed, cpu::claim_set(options.instruction_set));  // the set is chosen before any thread is started
  }
  machine.executor = options.executor;
  if (machine.executor == nullptr) {
    TESSERA_TRY(machine.executor, cpu::ThreadPool::create(options.threads));
  }
  if (options.backend == BackendKind::cuda) {
    TESSERA_TRY(machine.backend, cuda::make_backend(options.cuda, options.numerics, *options.memory));
  } else {
    machine.backend = std::make_unique<cpu::CpuBackend>(*machine.executor, *options.memory, claimed.set, options.numerics,
                                                        claimed.refused);
  }
  return machine;
}

Result<Machine> make_planner(const EngineOptions& options) {
  Machine machine;
  machine.executor = std::make_shared<PlannedExecutor>(options.executor != nullptr ? options.executor->concurrency()
                                                                                   : options.threads);
  if (options.backend == BackendKind::cuda) {
    TESSERA_TRY(machine.backend, cuda::make_planner(options.numerics, *options.memory));
  } else {
    TESSERA_TRY(const InstructionSet set, cpu::choose_set(options.instruction_set));
    machine.backend = std::make_unique<cpu::CpuBackend>(*machine.executor, *options.memory, set, options.numerics);
  }
  return machine;
}

}  // namespace tessera::detail
