// Executes descriptions of steps, with weights, pages and a backend, and without a session.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/core/result.hpp>

#include "backend/adapter_backend.hpp"
#include "backend/backend.hpp"
#include "kv/page_addresses.hpp"
#include "model/forward.hpp"
#include "model/model.hpp"
#include "model/step/step_description.hpp"

namespace tessera::detail {

// The inputs of a step that are not in its description: embeddings of rows without a token, and the weights of adapters.
struct StepInputs {
  std::span<const float* const> embeddings;  // each [d_model]
  std::span<const backend::AdapterWeights* const> adapters = {};  // the weights of each element of StepDescription::adapters
};

// Executes described steps, one at a time. First copies the pages that a description lists in `copies`; the copies remain, even if the
// step then fails. Threads: an engine's calls are serialised by turns (Engine::State::queue).
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  // Computes the step: writes the rows' keys, values and states to their pages, and hands the wanted outputs to `sink`, each kind in row
  // order. Errors: cancelled; those of the backend; internal, the description names an unknown page.
  virtual Status execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept = 0;
  // Computes one guess of the model's draft heads (DraftHeads::guess), for the description's only row. Writes `logits` [vocab]. `hidden`
  // [d_model] is the hidden state of the token before the row's token; the hidden state for the next guess overwrites it. Precondition:
  // the model has draft heads.
  virtual Status guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop) noexcept = 0;
  // Allocates the memory that move() needs for `pages`, so that move() fails only if a device fails. Error: out_of_memory.
  virtual Status reserve(const StepPages& pages) noexcept = 0;
  // Moves tokens (Backend::move_tokens()).
  virtual Status move(const MoveDescription& move) noexcept = 0;
};

// The executor of one backend.
class BackendExecutor final : public StepExecutor {
 public:
  BackendExecutor(const Model& model, backend::Backend& backend, PageMemory& memory) noexcept
      : model_(model), backend_(backend), adapting_(backend), memory_(memory) {}

  Status execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept override;
  Status guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop) noexcept override;
  Status reserve(const StepPages& pages) noexcept override;
  Status move(const MoveDescription& move) noexcept override;

 private:
  // The step in the backend's terms, without its pages. The lists keep their memory for the next step.
  struct Lists {
    std::vector<backend::RowTable> rows;
    std::vector<RowOutput> outputs;
    std::vector<std::uint32_t> wanted;            // Step::wanted
    SelectedRows selected;
    std::vector<backend::SampleRow> draws;        // Step::draws
    std::vector<backend::RowVotes> votes;
    std::vector<backend::StepAdapter> adapters;
  };

  const Model& model_;
  backend::Backend& backend_;
  backend::AdapterBackend adapting_;  // wraps backend_, for steps in which rows have adapters
  PageMemory& memory_;
  PageAddresses addresses_;
  Lists lists_;
};

}  // namespace tessera::detail
