// Computes the outputs that a step's rows want from the residual stream after the last layer: hidden states, embeddings, logits or
// tokens.
#include <algorithm>
#include <array>

#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

// The operations that follow the last layer. Rows whose outputs need the same operations are computed together.
enum class Finish : std::uint8_t { logits, embeddings, scores };

Finish finish_of(RowOutput output) noexcept {
  return output == RowOutput::embedding ? Finish::embeddings : output == RowOutput::scores ? Finish::scores : Finish::logits;
}

// Returns how many rows of `selected`, beginning with the row at index `first`, are computed together: the next rows whose outputs all
// need the same operations, at most kOutputRows.
std::size_t group_size(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted,
                       std::span<const std::uint32_t> selected, std::size_t first) {
  const auto left = selected.subspan(first, std::min<std::size_t>(selected.size() - first, kOutputRows));
  const auto kind_of = [&](std::uint32_t at) { return finish_of(outputs[wanted[at]]); };
  const auto end = std::ranges::find_if(left, [&](std::uint32_t at) { return kind_of(at) != kind_of(left[0]); });
  return static_cast<std::size_t>(end - left.begin());
}

// Draws tokens for the rows of `selected` that want one, on the backend, and hands them to `sink`. The logits of the selected rows are in
// Act::logits. `first` is the index of these rows' first draw in Step::draws. Returns the number of draws.
std::size_t draw_tokens(backend::Backend& b, const Step& step, std::span<const std::uint32_t> selected,
                        std::size_t first, OutputSink& sink) {
  std::array<std::uint32_t, kOutputRows> rows;  // index of each drawn row in the step
  std::array<Token, kOutputRows> tokens;
  std::size_t n = 0;
  for (const std::uint32_t at : selected) {
    if (step.outputs[step.wanted[at]] == RowOutput::token) rows[n++] = step.wanted[at];
  }
  if (n == 0) return 0;
  const Status together = b.sample(Act::logits, first, {tokens.data(), n});
  for (std::size_t i = 0; i < n; ++i) {
    // If one row's logits have a NaN, the draw for all rows together fails. Then each row is drawn by itself, so that only the row with
    // the NaN gets the error.
    const Status alone = together || n == 1 ? together : b.sample(Act::logits, first + i, {&tokens[i], 1});
    sink.drawn(rows[i], alone ? Result<Token>(tokens[i]) : Result<Token>(alone.error()));
  }
  return n;
}

// Copies a row of `from` to the sink for each selected row.
Status hand_out(backend::Backend& b, Act from, const Step& step, std::span<const std::uint32_t> selected, OutputSink& sink) {
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const std::uint32_t row = step.wanted[selected[i]];
    TESSERA_TRY_STATUS(b.read(from, i, sink.destination(row)));
    sink.done(row);
  }
  return {};
}

// Computes the embeddings of the rows from the hidden states in Act::h: applies the final norm, if the model has it, and then the
// matrices after the norm, if the model has them. Returns the activation that has the result.
Result<Act> embeddings(const Pass& pass) {
  const Weights& w = pass.model.weights;
  Act at = Act::h;
  if (const auto norm = norm_of(pass, w, Role::output_norm, Role::output_norm_bias)) {
    TESSERA_TRY_STATUS(pass.backend.norm(*norm, at, Act::h2));
    at = Act::h2;
  }
  if (w.matrix(Role::embd_inner) == nullptr) return at;
  TESSERA_TRY_STATUS(pass.backend.linear(*w.matrix(Role::embd_inner), at, Act::up));
  TESSERA_TRY_STATUS(pass.backend.linear(*w.matrix(Role::embd_outer), Act::up, Act::linear));
  return Act::linear;
}

// Computes the scores of the rows in Act::h by the model's head, into Act::up.
Status scores(const Pass& pass) {
  const Weights& w = pass.model.weights;
  backend::Backend& b = pass.backend;
  TESSERA_TRY(Act at, embeddings(pass));
  if (const backend::Matrix* in = w.matrix(Role::head_in)) {
    TESSERA_TRY_STATUS(b.linear_bias(*in, w.vector(Role::head_in_bias), at, Act::linear));
    TESSERA_TRY_STATUS(b.activate(pass.model.spec.head_activation, Act::linear));
    at = Act::linear;
  }
  if (const auto norm = norm_of(pass, w, Role::head_norm, Role::head_norm_bias)) TESSERA_TRY_STATUS(b.norm(*norm, at, at));
  return b.linear_bias(*w.matrix(Role::head_out), w.vector(Role::head_out_bias), at, Act::up);
}

}  // namespace

const backend::Matrix* output_of(const Model& model) {
  const backend::Matrix* own = model.weights.matrix(Role::output);
  return own != nullptr ? own : model.weights.matrix(Role::token_embd);
}

Status finish_logits(const Pass& pass) {
  const ModelSpec& spec = pass.model.spec;
  if (spec.logit_scale != 1.0f) TESSERA_TRY_STATUS(pass.backend.scale(spec.logit_scale, Act::logits));
  return spec.logit_softcap != 0.0f ? pass.backend.softcap(spec.logit_softcap, Act::logits) : Status();
}

void SelectedRows::select(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, bool all_again) {
  rows_.clear();
  lists_.clear();
  rows_.reserve(2 * outputs.size());  // enough for any outputs, so that later steps of the same number of rows allocate nothing
  lists_.reserve(outputs.size() + 1);
  for (std::uint32_t at = 0; at < wanted.size(); ++at) {
    const RowOutput output = outputs[wanted[at]];
    if (output != RowOutput::nothing && output != RowOutput::hidden) rows_.push_back(at);
  }
  const std::size_t n = rows_.size();
  for (std::uint32_t at = 0; all_again && at < wanted.size(); ++at) rows_.push_back(at);
  const std::span<const std::uint32_t> all(rows_);
  for (std::size_t first = 0; first < n; first += lists_.back().size()) {
    lists_.push_back(all.subspan(first, group_size(outputs, wanted, all.first(n), first)));
  }
  n_outputs_ = lists_.size();
  if (all_again) lists_.push_back(all.subspan(n));
}

void order_draws(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, const SelectedRows& selected,
                 std::span<const backend::SampleRow> draws, std::vector<backend::SampleRow>& ordered) {
  for (const std::span<const std::uint32_t> list : selected.lists().first(selected.n_outputs())) {
    for (std::uint32_t i = 0; i < list.size() && ordered.size() < draws.size(); ++i) {
      const std::uint32_t row = wanted[list[i]];
      if (outputs[row] != RowOutput::token) continue;
      ordered.push_back(*std::ranges::lower_bound(draws, row, {}, &backend::SampleRow::row));
      ordered.back().row = i;
    }
  }
}

// Hands all outputs to the sink. Hidden states are copied unchanged. Other outputs are computed one selection after another.
Status outputs(const Pass& pass, OutputSink& sink) {
  const Model& model = pass.model;
  const Step& step = pass.step;
  backend::Backend& b = pass.backend;
  for (std::uint32_t at = 0; at < step.wanted.size(); ++at) {
    const std::uint32_t row = step.wanted[at];
    if (step.outputs[row] != RowOutput::hidden) continue;
    TESSERA_TRY_STATUS(b.read(Act::x, at, sink.destination(row)));
    sink.done(row);
  }
  const backend::Matrix* head = output_of(model);
  const backend::Vector* bias = model.weights.vector(Role::output_bias);
  const auto norm = norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias);
  std::size_t drawn = 0;
  for (std::size_t selection = 0; selection < step.n_outputs; ++selection) {
    const std::span<const std::uint32_t> selected = step.selections[selection];
    const Finish kind = finish_of(step.outputs[step.wanted[selected[0]]]);
    TESSERA_TRY_STATUS(b.select_rows(selection, Act::x, Act::h));
    if (kind == Finish::embeddings) {
      TESSERA_TRY(const Act at, embeddings(pass));
      TESSERA_TRY_STATUS(hand_out(b, at, step, selected, sink));
      continue;
    }
    if (kind == Finish::scores) {
      TESSERA_TRY_STATUS(scores(pass));
      TESSERA_TRY_STATUS(hand_out(b, Act::up, step, selected, sink));
      continue;
    }
    TESSERA_TRY_STATUS(b.norm_linear_group(*norm, Act::h, Act::h2,
                                           std::array{backend::LinearPart{head, bias, Act::logits}}));
    TESSERA_TRY_STATUS(finish_logits(pass));
    for (std::uint32_t i = 0; i < selected.size(); ++i) {
      const std::uint32_t row = step.wanted[selected[i]];
      if (step.outputs[row] != RowOutput::logits) continue;
      TESSERA_TRY_STATUS(b.read(Act::logits, i, sink.destination(row)));
      sink.done(row);
    }
    drawn += draw_tokens(b, step, selected, drawn, sink);
  }
  return {};
}

}  // namespace tessera::detail
