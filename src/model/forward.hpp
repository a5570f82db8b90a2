// The forward pass over one step: rows of one or more sequences, at most the number of rows that the workspace has room for.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "backend/backend.hpp"
#include "model/model.hpp"

namespace tessera::detail {

// The output that is wanted of a row.
enum class RowOutput : std::uint8_t { nothing, logits, hidden, token, embedding };

// Receives outputs. For a row that wants values, forward() calls destination(), fills it and calls done(). For a row that wants a token,
// forward() calls draw(), has the backend draw, and calls drawn().
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual std::span<float> destination(std::size_t row) = 0;  // [vocab] or [d_model]
  virtual void done(std::size_t row) = 0;
  // Returns how the row's token is to be drawn. forward() sets SampleRow::row.
  virtual backend::SampleRow draw(std::size_t /*row*/) { return {}; }
  // Takes the row's token, or the error of its draw.
  virtual void drawn(std::size_t /*row*/, Result<Token>) {}
};

struct Step {
  std::span<const backend::RowTable> rows;
  std::span<const KvView> sequences;
  std::span<const RowOutput> outputs;  // [rows]
  // The rows whose output is not nothing, ascending. Exception: in a step of the whole model whose draft heads read all rows
  // (heads_read_all_rows()), all rows.
  std::span<const std::uint32_t> wanted;
  // Lists of indices into `wanted`, made by select_outputs(). First the n_outputs rows with logits, a token or an embedding, ascending;
  // then, for draft heads that read all rows, all.
  std::span<const std::uint32_t> selected = {};
  std::size_t n_outputs = 0;
  std::span<const backend::RowVotes> votes = {};
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;        // one past the last; its output goes to the final norm, also if more layers follow in the model
};

inline constexpr std::uint32_t kOutputRows = 32;  // logits computed at once

// Appends the lists of Step::selected to `selected`, and returns Step::n_outputs. `all_again`: draft heads read all rows, so the list of
// all rows follows.
std::size_t select_outputs(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, bool all_again,
                           std::vector<std::uint32_t>& selected);

// Returns the sizes of the activations that `spec` needs for steps of up to `rows` rows.
[[nodiscard]] backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept;

// Computes the step: writes the rows' keys and values to their sequences' pages, and hands the wanted outputs to `sink`, each kind in
// row order. Looks at `stop` before every layer. Errors: cancelled; the backend's.
Status forward(const Model& model, backend::Backend& backend, const Step& step, OutputSink& sink,
               const std::stop_token& stop);

}  // namespace tessera::detail
