#include "model/step/step_executor.hpp"

#include "core/error.hpp"
#include "model/draft_heads.hpp"

namespace tessera::detail {

namespace {

// Sets RowTable::end of each row: one past the position of the last row of the row's sequence in the step. (Rows of an encoder see later
// keys up to this end.) Precondition: the rows of a sequence follow each other, positions ascending.
void set_ends(std::span<backend::RowTable> rows) noexcept {
  for (std::size_t i = rows.size(); i-- > 0;) {
    const bool is_last = i + 1 == rows.size() || rows[i + 1].sequence != rows[i].sequence;
    rows[i].end = is_last ? rows[i].position + 1 : rows[i + 1].end;
  }
}

}  // namespace

Status BackendExecutor::execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink,
                                const std::stop_token& stop) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(memory_.copy(step.copies));
    TESSERA_TRY_STATUS(memory_.find(step.pages, addresses_));
    Lists& lists = lists_;
    lists.rows.clear();
    lists.outputs.clear();
    lists.wanted.clear();
    lists.draws.clear();
    lists.votes.clear();
    lists.adapters.clear();
    for (std::size_t i = 0; i < step.adapters.size(); ++i) lists.adapters.push_back({inputs.adapters[i], step.adapters[i].scale});
    lists.rows.reserve(step.rows.size());
    lists.outputs.reserve(step.rows.size());
    lists.wanted.reserve(step.rows.size());
    const bool whole = step.first_layer == 0 && step.last_layer == model_.spec.n_layers();
    const bool all_go_on = whole && heads_read_all_rows(model_.spec);
    for (std::uint32_t i = 0; i < step.rows.size(); ++i) {
      const DescribedRow& row = step.rows[i];
      lists.rows.push_back({.embedding = row.embedding != kNoEmbedding ? inputs.embeddings[row.embedding] : nullptr,
                            .token = row.token,
                            .sequence = row.sequence,
                            .also = row.sequence + 1,
                            .n_also = row.branches,
                            .position = row.position,
                            .segment = row.segment,
                            .first_adapter = row.first_adapter,
                            .n_adapters = row.n_adapters});
      lists.outputs.push_back(row.output);
      if (all_go_on || row.output != RowOutput::nothing) lists.wanted.push_back(i);
      if (row.votes) lists.votes.push_back({.row = i, .of_keys = sink.votes(i)});
    }
    if (model_.spec.sight == Sight::both_sides) set_ends(lists.rows);
    lists.selected.select(lists.outputs, lists.wanted, all_go_on);
    order_draws(lists.outputs, lists.wanted, lists.selected, step.draws, lists.draws);
    backend::Backend& backend = step.adapters.empty() ? backend_ : adapting_;
    return forward(model_, backend,
                   {.rows = lists.rows,
                    .sequences = addresses_.views(),
                    .outputs = lists.outputs,
                    .wanted = lists.wanted,
                    .selections = lists.selected.lists(),
                    .n_outputs = lists.selected.n_outputs(),
                    .draws = lists.draws,
                    .attentions = model_.attentions_of(step.first_layer, step.last_layer),
                    .votes = lists.votes,
                    .adapters = lists.adapters,
                    .first_layer = step.first_layer,
                    .last_layer = step.last_layer},
                   sink, stop);
  }, ErrorCode::callback_failed);  // only callbacks and an application's executor throw exceptions other than bad_alloc
}

Status BackendExecutor::guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits,
                              const std::stop_token& stop) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(memory_.copy(step.copies));
    TESSERA_TRY_STATUS(memory_.find(step.pages, addresses_));
    const DescribedRow& row = step.rows.front();
    const HeadRow of{.kv = addresses_.views().front(), .position = row.position, .token = row.token, .hidden = hidden.data(), .guess = step.guess};
    return guess_by_heads(model_, backend_, of, logits, hidden, stop);
  }, ErrorCode::callback_failed);
}

Status BackendExecutor::reserve(const StepPages& pages) noexcept {
  return guard([&] {
    addresses_.begin(pages);
    return Status();
  });
}

Status BackendExecutor::move(const MoveDescription& move) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(memory_.copy(move.copies));
    TESSERA_TRY_STATUS(memory_.find(move.pages, addresses_));
    return backend_.move_tokens(addresses_.views().front(), {.from = move.from, .to = move.to, .count = move.count, .first = move.first},
                                model_.layer_ropes);
  }, ErrorCode::callback_failed);
}

}  // namespace tessera::detail
