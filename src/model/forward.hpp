// The forward pass over one step: rows of one or more sequences, at most as many rows as the workspace holds.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "backend/backend.hpp"
#include "model/model.hpp"
#include "model/step/step_description.hpp"

namespace tessera::detail {

// Returns the number of floats of an output; 0 for RowOutput::nothing and RowOutput::token.
[[nodiscard]] constexpr std::size_t output_size(RowOutput output, const ModelSpec& spec) noexcept {
  switch (output) {
    case RowOutput::nothing:
    case RowOutput::token: break;
    case RowOutput::logits: return spec.vocab_size;
    case RowOutput::hidden: return spec.d_model;
    case RowOutput::embedding: return spec.embedding_width();
    case RowOutput::scores: return spec.n_scores;
  }
  return 0;
}

// Receives the outputs of a step. The argument `row` of each function is a row's index in the step. For a row that wants values, forward()
// calls destination(), fills the returned memory and calls done(). For a row that wants a token, the backend draws the token, and forward()
// calls drawn().
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual std::span<float> destination(std::size_t row) = 0;  // [output_size()]
  virtual void done(std::size_t row) = 0;
  // Receives the row's token, or the error of its draw.
  virtual void drawn(std::size_t /*row*/, Result<Token>) {}
  // Called for a row that votes for a token budget. Returns the memory to which the row adds its votes: element i is the sum for the key
  // at position i. The memory has position + 1 elements or more, where `position` is the row's. Rows of one sequence may get the same
  // memory.
  virtual std::span<std::uint64_t> votes(std::size_t /*row*/) { return {}; }
};

// A StepDescription in the backend's terms: with the addresses of pages, and with lists that are made from the rows' outputs.
struct Step {
  std::span<const backend::RowTable> rows;
  std::span<const KvView> sequences;
  std::span<const RowOutput> outputs;  // [rows]
  // Indices of the rows whose output is not RowOutput::nothing, ascending: only these go through the whole last layer. Exception: all
  // rows, if the step computes the whole model and its draft heads read all rows (heads_read_all_rows()).
  std::span<const std::uint32_t> wanted;
  // Lists of rows whose outputs are computed together (StepTables::selections), made by SelectedRows. The first n_outputs lists have the
  // rows with outputs. If draft heads read all rows, one more list has all rows.
  std::span<const std::span<const std::uint32_t>> selections = {};
  std::size_t n_outputs = 0;
  // The draws: an entry for each row that wants a token, in the order in which outputs() draws. SampleRow::row is the row's index in its
  // list of `selections`. Made by order_draws().
  std::span<const backend::SampleRow> draws = {};
  std::span<const backend::AttentionShape> attentions = {};  // all attentions of the step
  std::span<const backend::RowVotes> votes = {};
  std::span<const backend::StepAdapter> adapters = {};  // empty: no row has an adapter. If not empty, the backend is an AdapterBackend
  std::uint32_t first_layer = 0;
  // One past the last layer of the step. The last layer's output goes to the final norm, even if the model has more layers.
  std::uint32_t last_layer = 0;
};

inline constexpr std::uint32_t kOutputRows = 32;  // rows whose logits are computed at once

// Makes the lists of Step::selections. The memory of the lists is reused in the next step.
class SelectedRows {
 public:
  // Makes lists of the rows that want logits, a token, an embedding or scores. An element of a list is an index into `wanted`. The rows of a
  // list ascend, need the same operations for their outputs, and are at most kOutputRows. If `all_again` is true, one more list follows,
  // with all rows of `wanted`, for draft heads. May throw bad_alloc.
  void select(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, bool all_again);
  [[nodiscard]] std::span<const std::span<const std::uint32_t>> lists() const noexcept { return lists_; }
  // Returns Step::n_outputs.
  [[nodiscard]] std::size_t n_outputs() const noexcept { return n_outputs_; }

 private:
  std::vector<std::uint32_t> rows_;  // the rows of all lists, one list after another
  std::vector<std::span<const std::uint32_t>> lists_;
  std::size_t n_outputs_ = 0;
};

// Appends the list Step::draws to `ordered`, from the draws of a description (StepDescription::draws).
void order_draws(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, const SelectedRows& selected,
                 std::span<const backend::SampleRow> draws, std::vector<backend::SampleRow>& ordered);

// Returns the attentions of the model's layers, in the order of layers (Model::attentions).
[[nodiscard]] std::vector<backend::AttentionShape> attentions_of(const Model& model);

// Returns the sizes of the activations that `spec` needs for steps of up to `rows` rows.
[[nodiscard]] backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept;

// Computes the step: writes the rows' keys and values to their sequences' pages, and hands the wanted outputs to `sink`, each kind in row
// order. Checks `stop` before every layer. Errors: cancelled; those of the backend.
Status forward(const Model& model, backend::Backend& backend, const Step& step, OutputSink& sink,
               const std::stop_token& stop);

}  // namespace tessera::detail
