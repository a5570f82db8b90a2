// The ranks of one engine as threads: each rank has a part of the weights, a backend and threads of its own, and all execute the same
// steps. Rank 0 is the thread that calls the engine. Only rank 0 has sessions and hands out results.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <tessera/extend/core/executor.hpp>

#include "model/step/step_executor.hpp"
#include "os/thread.hpp"
#include "ranks/model_division.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/threads/rank_pages.hpp"
#include "ranks/threads/thread_ranks.hpp"
#include "ranks/vote_sink.hpp"

namespace tessera::detail {

// A rank's part of the model. Rank 0's backend belongs to the engine.
struct RankPart {
  std::shared_ptr<Executor> executor;
  std::unique_ptr<RankBackend> owned;
  RankBackend* backend = nullptr;
  Model model;
};

// Executes each step on all ranks.
class RankGroup final : public StepExecutor {
 public:
  // Starts a thread for each rank except rank 0. `parts`: the loaded parts of all ranks. Error: out_of_memory, a thread does not start.
  [[nodiscard]] static Result<std::unique_ptr<RankGroup>> start(std::shared_ptr<const ModelDivision> division, std::unique_ptr<ThreadRanks> ranks,
                                                                std::vector<std::unique_ptr<RankPart>> parts, KvPools pools);
  ~RankGroup() override;

  Status execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept override;
  Status guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop) noexcept override;
  Status reserve(const StepPages& pages) noexcept override;
  Status move(const MoveDescription& move) noexcept override;

 private:
  class Worker;

  RankGroup() = default;
  // Calls work(executor, rank) on every rank's thread. Returns the error of the rank that has failed.
  template <class Work>
  Status on_all(const Work& work) noexcept;

  std::unique_ptr<ThreadRanks> ranks_;
  std::vector<std::unique_ptr<RankPart>> parts_;
  std::vector<std::unique_ptr<RankPages>> pages_;
  std::vector<std::unique_ptr<BackendExecutor>> executors_;
  std::vector<std::vector<const backend::AdapterWeights*>> adapters_;  // [rank]: the weights of the step's adapters
  std::vector<VoteSink> sinks_;                   // [rank]; the sink of rank 0 is not used
  std::vector<std::unique_ptr<Worker>> workers_;  // threads of ranks 1 and up
};

}  // namespace tessera::detail
