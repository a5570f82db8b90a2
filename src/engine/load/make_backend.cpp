#include "engine/load/make_backend.hpp"

#include "core/error.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/instruction_sets.hpp"
#include "cpu/thread_pool.hpp"
#include "cuda/make_backend.hpp"
#include "engine/load/plan.hpp"

namespace tessera::detail {

namespace {

// An executor for planning. It only reports a number of threads and runs no tasks.
class PlannedExecutor final : public Executor {
 public:
  explicit PlannedExecutor(std::size_t concurrency) noexcept : concurrency_(concurrency) {}
  [[nodiscard]] std::size_t concurrency() const noexcept override { return concurrency_; }
  void parallel_for(std::size_t, void (*)(void*, std::size_t), void*) noexcept override {}

 private:
  std::size_t concurrency_;
};

// Makes `n` ranks, each with a backend. Rank 0 gets the machine's backend. For each further rank, make(part) makes an executor and a
// backend, and returns the backend. `where`: the place of the other ranks (RankBackend::Ranks).
template <class Make>
Status add_ranks(Machine& machine, std::uint32_t n, RankBackend::Ranks where, Make make) {
  machine.ranks = std::make_unique<ThreadRanks>(n);
  auto first = std::make_unique<RankBackend>(std::move(machine.backend), machine.ranks->of(0), where);
  machine.parts.push_back(std::make_unique<RankPart>());
  machine.parts.back()->backend = first.get();
  machine.backend = std::move(first);
  for (std::uint32_t rank = 1; rank < n; ++rank) {
    auto part = std::make_unique<RankPart>();
    TESSERA_TRY(std::unique_ptr<backend::Backend> backend, make(*part));
    part->owned = std::make_unique<RankBackend>(std::move(backend), machine.ranks->of(rank), where);
    part->backend = part->owned.get();
    machine.parts.push_back(std::move(part));
  }
  return {};
}

}  // namespace

Result<Machine> make_backend(const EngineOptions& options, Communicator* others) {
  Machine machine;
  cpu::ClaimedSet claimed;
  if (options.backend == BackendKind::cpu) {
    TESSERA_TRY(claimed, cpu::claim_set(options.instruction_set));  // the set is chosen before any thread is started
  }
  machine.executor = options.executor;
  if (machine.executor == nullptr) {
    TESSERA_TRY(machine.executor, cpu::ThreadPool::create(options.threads / options.ranks));
  }
  if (options.backend == BackendKind::cuda) {
    TESSERA_TRY(machine.backend, cuda::make_backend(options.cuda, options.numerics, *options.memory));
  } else {
    machine.backend = std::make_unique<cpu::CpuBackend>(*machine.executor, *options.memory, claimed.set, options.numerics,
                                                        claimed.refused);
  }
  if (options.ranks > 1) {
    TESSERA_TRY_STATUS(add_ranks(machine, options.ranks, RankBackend::Ranks::in_this_process, [&](RankPart& part) -> Result<std::unique_ptr<backend::Backend>> {
      TESSERA_TRY(part.executor, cpu::ThreadPool::create(options.threads / options.ranks));
      std::unique_ptr<backend::Backend> own =
          std::make_unique<cpu::CpuBackend>(*part.executor, *options.memory, claimed.set, options.numerics, claimed.refused);
      return own;
    }));
  }
  if (others != nullptr) machine.backend = std::make_unique<RankBackend>(std::move(machine.backend), *others, RankBackend::Ranks::elsewhere);
  return machine;
}

Result<Machine> make_planner(const EngineOptions& options) {
  Machine machine;
  machine.executor = std::make_shared<PlannedExecutor>(options.executor != nullptr ? options.executor->concurrency()
                                                                                   : options.threads / options.ranks);
  if (options.backend == BackendKind::cuda) {
    TESSERA_TRY(machine.backend, cuda::make_planner(options.numerics, *options.memory));
  } else {
    TESSERA_TRY(const InstructionSet set, cpu::choose_set(options.instruction_set));
    machine.backend = std::make_unique<cpu::CpuBackend>(*machine.executor, *options.memory, set, options.numerics);
  }
  // A planner computes the sizes of one rank, so the other ranks need no backends.
  if (options.ranks > 1 || ranks_elsewhere(options) != 0) {
    const auto n = static_cast<std::uint32_t>(ranks_elsewhere(options) + 1);
    const auto where = n > 1 ? RankBackend::Ranks::elsewhere : RankBackend::Ranks::in_this_process;
    TESSERA_TRY_STATUS(add_ranks(machine, n, where, [](RankPart&) { return Result<std::unique_ptr<backend::Backend>>(nullptr); }));
  }
  return machine;
}

}  // namespace tessera::detail
