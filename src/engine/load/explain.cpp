// Engine::explain(): lists the backend's operations that the model has, and the engine's own work.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/explanation.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/load/explanations.hpp"
#include "engine/states.hpp"
#include "model/draft_heads.hpp"

namespace tessera {

using detail::guard;
using detail::kNoType;

namespace {

std::string kv_types_text(const Plan& plan) {
  std::string text(to_string(plan.kv_dtype));
  if (plan.kv_wide.dtype != DType::automatic) text += fmt::format("+{}", to_string(plan.kv_wide.dtype));
  return text;
}

// Returns whether the model has the operation. The backend also lists operations that only some models have.
bool has_operation(const ModelSpec& spec, Operation operation) {
  const auto any_layer = [&](auto has) { return std::ranges::any_of(spec.layers, has); };
  switch (operation) {
    case Operation::add_positions: return spec.positions == Positions::learned;
    case Operation::rope: return !spec.ropes.empty();
    case Operation::score_softcap: return any_layer([](const LayerSpec& layer) { return layer.score_softcap != 0.0f; });
    case Operation::sink_logits: return any_layer([](const LayerSpec& layer) { return layer.sinks != Sinks::none; });
    default: return true;
  }
}

}  // namespace

Result<std::vector<KernelUse>> Engine::explain() const noexcept {
  return guard([&]() -> Result<std::vector<KernelUse>> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    const ModelSpec& spec = state_->model.spec;
    const std::string backend(state_->backend->name());
    std::vector<KernelUse> uses;
    for (backend::Explanation& line : state_->backend->explain()) {
      if (!has_operation(spec, line.operation)) continue;
      std::string dtype = line.dtype == DType::automatic ? kv_types_text(state_->plan)
                                                         : std::string(line.dtype ? to_string(*line.dtype) : kNoType);
      uses.push_back({line.operation, text_of(line), std::move(line.kernel), std::move(line.family), std::move(dtype), backend,
                      std::move(line.fallback)});
    }
    const auto add = [&](Operation kind, std::string kernel, std::string by, std::string_view dtype = kNoType) {
      uses.push_back({kind, std::string(to_string(kind)), std::move(kernel), "", std::string(dtype), std::move(by), ""});
    };
    if (!spec.ropes.empty() && spec.ropes.front().factors != LongRope::none) {
      const bool is_long = spec.ropes.front().factors == LongRope::long_context;
      const auto original = state_->metadata.unsigned_integer_or(Setting::original_context, spec.context);
      add(Operation::rope_factors,
          fmt::format("LongRoPE's {} ones: the context of {} is {} the {} of the first training", is_long ? "long" : "short",
                      state_->plan.context, is_long ? "beyond" : "within", original ? *original : 0),
          "-");
    }
    if (const detail::DraftHeads* heads = detail::draft_heads_of(spec)) {
      const std::uint32_t most = spec.draft_heads.most_guesses;
      add(Operation::guess_tokens, most == 0 ? fmt::format("{}, a layer", heads->name) : fmt::format("{}s, {} tokens", heads->name, most), backend);
    }
    if (spec.n_left_out != 0) add(Operation::guess_tokens, fmt::format("left out: {} of the file's layers", spec.n_left_out), "-");
    if (const std::size_t n = state_->ranks_elsewhere; n != 0) {
      add(Operation::exchange_rows, fmt::format("{} ranks, processes", n + 1), "host", "f32");
    }
    if (state_->options.ranks > 1) {
      add(Operation::exchange_rows, fmt::format("{} ranks, threads of this process", state_->options.ranks), "host", "f32");
    }
    if (const std::size_t n = state_->tokenizer.suppressed().size(); n != 0) {
      add(Operation::suppress_tokens, fmt::format("{} of the vocabulary", n), "host");
    }
    if (state_->tokenizer.pre_tokenizer_is_assumed()) {
      uses.push_back({Operation::pre_tokenize, std::string(to_string(Operation::pre_tokenize)), std::string(state_->tokenizer.pre_tokenizer()),
                      "gpt2", "text", "host", std::string(detail::kAssumedPreTokenizer)});
    }
    return uses;
  });
}

}  // namespace tessera
