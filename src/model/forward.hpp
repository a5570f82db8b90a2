// The forward pass over one step: some rows of some sequences, at most as many as the workspace holds.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "backend/backend.hpp"
#include "model/model.hpp"

namespace tessera::detail {

// What is wanted of a row.
enum class RowOutput : std::uint8_t { nothing, logits, hidden, token, embedding };

// Receives outputs: forward() asks where a row's values go, fills that, then says that they are there. Of a row that
// wants a token, drawn by the backend, it asks how (SampleRow::row is forward()'s own), and gives the token, or the
// error of this row's draw.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual std::span<float> destination(std::size_t row) = 0;  // [vocab] or [d_model]
  virtual void done(std::size_t row) = 0;
  virtual backend::SampleRow draw(std::size_t /*row*/) { return {}; }
  virtual void drawn(std::size_t /*row*/, Result<Token>) {}
};

struct Step {
  std::span<const backend::RowTable> rows;
  std::span<const KvView> sequences;
  std::span<const RowOutput> outputs;  // [rows]
  // The rows whose output is not nothing, ascending; of the whole model with MTP heads, which all rows go on to, all rows.
  std::span<const std::uint32_t> wanted;
  // What outputs need of the rows that are wanted, as places in `wanted`: those with logits, a token or an embedding, ascending,
  // n_outputs of them; then, of the whole model with MTP heads, all. select_outputs() makes it.
  std::span<const std::uint32_t> selected = {};
  std::size_t n_outputs = 0;
  std::span<const backend::RowVotes> votes = {};
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;        // one past the last; logits are the head's after it, also short of the end
};

inline constexpr std::uint32_t kOutputRows = 32;  // logits computed at once

// Fills Step::selected, and returns Step::n_outputs. `all_again`: all rows go on behind the outputs, to MTP heads.
std::size_t select_outputs(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, bool all_again,
                           std::vector<std::uint32_t>& selected);

// The activations that `spec` needs for steps of up to `rows` rows.
[[nodiscard]] backend::WorkspaceShape workspace_shape(const ModelSpec& spec, std::uint32_t rows) noexcept;

// A row of the MTP head: the token that comes to `position`, from 1 on, and the hidden state before it.
struct MtpRow {
  KvView kv;  // the row's keys and values go there; the head sees those of positions 1 to its own
  std::uint64_t position = 0;
  Token token = 0;
  const float* hidden = nullptr;  // [d_model]: as the output matrix sees it
};

// `logits` [vocab]: of the token behind it, as the head guesses. `hidden` [d_model]: the head's own, for a row of the token after that;
// it may be the row's. The model has a head.
Status mtp_forward(const Model& model, backend::Backend& backend, const MtpRow& row, std::span<float> logits, std::span<float> hidden,
                   const std::stop_token& stop);

// Writes the rows' keys and values to their sequences' pages and hands the wanted outputs to `sink`, each kind in row
// order. Checks `stop` before every layer.
Status forward(const Model& model, backend::Backend& backend, const Step& step, OutputSink& sink,
               const std::stop_token& stop);

}  // namespace tessera::detail
