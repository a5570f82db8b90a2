// Computes the outputs that a step's rows want from the residual stream after the last layer: hidden states, embeddings, logits or
// tokens.
#include <algorithm>
#include <array>

#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

// Draws tokens for the selected rows that want one. Their logits are in Act::logits.
Status draw_tokens(backend::Backend& b, const Step& step, std::span<const std::uint32_t> selected, OutputSink& sink) {
  std::array<backend::SampleRow, kOutputRows> draws;
  std::array<std::uint32_t, kOutputRows> rows;  // index of each drawn row in the step
  std::array<Token, kOutputRows> tokens;
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const std::uint32_t row = step.wanted[selected[i]];
    if (step.outputs[row] != RowOutput::token) continue;
    rows[n] = row;
    draws[n] = *std::ranges::lower_bound(step.draws, row, {}, &backend::SampleRow::row);
    draws[n++].row = i;
  }
  if (n == 0) return {};
  const Status together = b.sample(Act::logits, {draws.data(), n}, {tokens.data(), n});
  for (std::size_t i = 0; i < n; ++i) {
    // If one row cannot be drawn from (its logits have a NaN), the joint draw fails. So each row is drawn alone, and only that row gets
    // the error.
    const Status alone = together || n == 1 ? together : b.sample(Act::logits, {&draws[i], 1}, {&tokens[i], 1});
    sink.drawn(rows[i], alone ? Result<Token>(tokens[i]) : Result<Token>(alone.error()));
  }
  return {};
}

// Gives the sink the embeddings of the selected rows: the final norm of Act::h.
Status embeddings(backend::Backend& b, const backend::Norm& norm, const Step& step, std::span<const std::uint32_t> selected, OutputSink& sink) {
  TESSERA_TRY_STATUS(b.norm(norm, Act::h, Act::h2));
  for (std::uint32_t i = 0; i < selected.size(); ++i) {
    const std::uint32_t row = step.wanted[selected[i]];
    TESSERA_TRY_STATUS(b.read(Act::h2, i, sink.destination(row)));
    sink.done(row);
  }
  return {};
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

std::size_t select_outputs(std::span<const RowOutput> outputs, std::span<const std::uint32_t> wanted, bool all_again,
                           std::vector<std::uint32_t>& selected) {
  for (std::uint32_t at = 0; at < wanted.size(); ++at) {
    const RowOutput output = outputs[wanted[at]];
    if (output != RowOutput::nothing && output != RowOutput::hidden) selected.push_back(at);
  }
  const std::size_t n_outputs = selected.size();
  for (std::uint32_t at = 0; all_again && at < wanted.size(); ++at) selected.push_back(at);
  return n_outputs;
}

// Gives all outputs to the sink. Hidden states are copied as they are. Rows with another output are treated in groups of at most
// kOutputRows: they get the final norm, which gives embeddings, and then logits or tokens if these are wanted.
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
  const auto norm = norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias);
  const auto is_embedding = [&](std::uint32_t at) { return step.outputs[step.wanted[at]] == RowOutput::embedding; };
  for (std::size_t first = 0, n = 0; first < step.n_outputs; first += n) {
    const auto left = step.selected.subspan(first, std::min<std::size_t>(step.n_outputs - first, kOutputRows));
    const bool are_embeddings = is_embedding(left[0]);
    n = static_cast<std::size_t>(std::ranges::find_if(left, [&](std::uint32_t at) { return is_embedding(at) != are_embeddings; }) - left.begin());
    const auto selected = left.first(n);
    TESSERA_TRY_STATUS(b.select_rows(first, n, Act::x, Act::h));
    if (are_embeddings) {
      TESSERA_TRY_STATUS(embeddings(b, *norm, step, selected, sink));
      continue;
    }
    TESSERA_TRY_STATUS(b.norm_linear_group(*norm, Act::h, Act::h2,
                                           std::array{backend::LinearPart{.weight = head, .out = Act::logits}}));
    TESSERA_TRY_STATUS(finish_logits(pass));
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t row = step.wanted[selected[i]];
      if (step.outputs[row] != RowOutput::logits) continue;
      TESSERA_TRY_STATUS(b.read(Act::logits, i, sink.destination(row)));
      sink.done(row);
    }
    TESSERA_TRY_STATUS(draw_tokens(b, step, selected, sink));
  }
  return {};
}

}  // namespace tessera::detail
