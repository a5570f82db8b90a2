#include "engine/load/plan.hpp"

#include <algorithm>
#include <limits>

#include <tessera/extend/core/executor.hpp>
#include <tessera/sampling/sampler.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "cpu/instruction_sets.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/load/metadata.hpp"
#include "engine/run/run_lists.hpp"
#include "engine/session/token_budget.hpp"
#include "heads/head_file.hpp"
#include "model/checks.hpp"
#include "model/draft_heads.hpp"
#include "model/spec/spec_reader.hpp"

namespace tessera::detail {

namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMaxRanks = 64;
constexpr std::uint32_t kMaxStepRows = 8192;
// Host memory of one thread of the pool: the stack pages that it touches, and the C library's bookkeeping.
constexpr std::uint64_t kThreadBytes = 24 * 1024;

// Returns the bytes of the list of n tensor bindings, which exists only while loading.
std::uint64_t binding_bytes(std::size_t n) { return n * sizeof(Binding); }

// Returns an upper bound of the heap bytes of one session: two rows of logits, a hidden state for draft heads, the tokens, a RunRow for
// each token (while one call computes a prompt of the whole context), the votes of a token budget, and the workspace of one sampler. The
// sampler belongs to the caller, but every session needs one.
std::uint64_t session_bytes(const ModelSpec& spec, std::uint64_t context, const TokenBudget& budget) {
  const std::uint64_t logits = 2 * spec.vocab_size * sizeof(float);
  const std::uint64_t tokens = context * sizeof(Token);
  const std::uint64_t rows = context * (sizeof(RunRow));
  const std::uint64_t sampler = Sampler::workspace_bytes(spec.vocab_size);
  const std::uint64_t votes = counts_attention(budget) ? 2 * context * sizeof(std::uint64_t) : 0;
  const std::uint64_t hidden = keeps_hidden(spec, HiddenKept::in_pages) ? spec.d_model * sizeof(float) : 0;
  return logits + tokens + rows + sampler + votes + hidden;
}

// Returns the bytes of memory of the tokenizer; 0 if the engine will have none. First checks that the vocabulary is no larger than the
// embedding table, so that a damaged file is rejected before memory is allocated for it.
Result<std::uint64_t> tokenizer_bytes(const ModelSource& source, const EngineOptions& options, const ModelSpec& spec) {
  TESSERA_TRY(const bool has, has_tokenizer(source, options));
  if (!has) return std::uint64_t{0};
  TESSERA_TRY(const TokenizerPlan plan, Tokenizer::plan(source.settings(), options.stop));
  if (plan.tokens <= spec.vocab_size) return plan.bytes;
  return make_error(ErrorCode::corrupt_file, "the tokenizer has {} tokens and the embedding table {} rows", plan.tokens,
                    spec.vocab_size);
}

}  // namespace

namespace {

bool has_heads_of_a_file(const EngineOptions& options) noexcept { return !options.draft_heads.empty() || options.draft_heads_source != nullptr; }

Status check_ranks(const EngineOptions& options) {
  if (options.ranks == 0 || options.ranks > kMaxRanks) {
    return make_error(ErrorCode::invalid_argument, "{} ranks; expected 1 to {}", options.ranks, kMaxRanks);
  }
  const std::size_t elsewhere = ranks_elsewhere(options);
  if (const RankTransport* transport = options.rank_transport.get()) {
    if (!options.rank_addresses.empty()) return make_error(ErrorCode::invalid_argument, "a transport of ranks and addresses of ranks: give one of the two");
    if (transport->rank() != 0 || transport->ranks() < 2) {
      return make_error(ErrorCode::invalid_argument, "the transport is rank {} of {}; the engine is rank 0 of at least 2", transport->rank(), transport->ranks());
    }
  }
  if (elsewhere >= kMaxRanks) return make_error(ErrorCode::invalid_argument, "{} ranks elsewhere; expected at most {}", elsewhere, kMaxRanks - 1);
  if (to_string(options.rank_split) == "?") return make_error(ErrorCode::invalid_argument, "a rank_split of {}; choose heads or layers", static_cast<int>(options.rank_split));
  if (options.rank_timeout_ms == 0) return make_error(ErrorCode::invalid_argument, "rank_timeout_ms is 0; expected at least 1");
  if (options.ranks == 1 && elsewhere == 0) return {};
  const char* with = options.backend != BackendKind::cpu               ? "a backend other than the CPU's"
                     : options.executor != nullptr                     ? "an executor of the host"
                     : options.input_observer != nullptr               ? "an input observer"
                     : options.mtp != MtpHeads::leave_out              ? "MTP heads"
                     : has_heads_of_a_file(options)                    ? "draft heads"
                     : elsewhere != 0 && options.ranks > 1             ? "ranks elsewhere"
                     : elsewhere != 0 && !options.merge.empty()        ? "adapters that are merged"
                     : elsewhere != 0 && !options.kv_file.empty()      ? "a file for KV pages"
                                                                       : nullptr;
  if (with == nullptr) return {};
  return make_error(ErrorCode::unsupported, "{} ranks with {}: use one rank", options.ranks + elsewhere, with);
}

}  // namespace

Result<EngineOptions> resolve_options(const EngineOptions& options) {
  if (options.backend != BackendKind::cpu && options.backend != BackendKind::cuda) {
    return make_error(ErrorCode::invalid_argument, "a backend of kind {}; choose cpu or cuda", static_cast<int>(options.backend));
  }
  if (to_string(options.numerics) == "?") {
    return make_error(ErrorCode::invalid_argument, "numerics of kind {}; choose automatic, bf16, fastest, reference or invariant",
                      static_cast<int>(options.numerics));
  }
  if (to_string(options.activations) == "?") {
    return make_error(ErrorCode::invalid_argument, "activations of kind {}; choose automatic or as_the_model_says", static_cast<int>(options.activations));
  }
  if (options.tokenizer != TokenizerUse::from_model && options.tokenizer != TokenizerUse::none) {
    return make_error(ErrorCode::invalid_argument, "a use of the tokenizer of kind {}; choose from_model or none",
                      static_cast<int>(options.tokenizer));
  }
  if (options.mtp != MtpHeads::leave_out && options.mtp != MtpHeads::load) {
    return make_error(ErrorCode::invalid_argument, "MTP heads of kind {}; choose leave_out or load", static_cast<int>(options.mtp));
  }
  if (!options.draft_heads.empty() && options.draft_heads_source != nullptr) {
    return make_error(ErrorCode::invalid_argument, "draft heads at a path (draft_heads) and from a source (draft_heads_source); choose one of them");
  }
  if (options.mtp == MtpHeads::load && has_heads_of_a_file(options)) {
    return make_error(ErrorCode::invalid_argument, "draft heads of the model's own file (mtp) and of another one (draft_heads); choose one of them");
  }
  if (options.fallback != Fallback::allow && options.fallback != Fallback::refuse) {
    return make_error(ErrorCode::invalid_argument, "fallbacks of kind {}; choose allow or refuse",
                      static_cast<int>(options.fallback));
  }
  if (options.freed_pages != FreedPages::leave && options.freed_pages != FreedPages::fill_nan) {
    return make_error(ErrorCode::invalid_argument, "freed pages of kind {}; choose leave or fill_nan",
                      static_cast<int>(options.freed_pages));
  }
  if (options.threads > kMaxThreads) {
    return make_error(ErrorCode::invalid_argument, "{} threads; expected 0 (as many as this process may use) to {}",
                      options.threads, kMaxThreads);
  }
  if (options.step_rows == 0 || options.step_rows > kMaxStepRows) {
    return make_error(ErrorCode::invalid_argument, "step_rows is {}; expected 1 to {}", options.step_rows, kMaxStepRows);
  }
  if (options.input_observer != nullptr && options.backend != BackendKind::cpu) {
    return make_error(ErrorCode::unsupported, "an input observer needs the cpu backend");
  }
  TESSERA_TRY_STATUS(check_ranks(options));
  EngineOptions resolved = options;
  resolved.kv = resolve(options.kv, default_kv_options());
  // The first argument of check() is for options that the caller set. Here it is empty, because `options` may be the result of an earlier
  // resolve_options(). Defaults that were filled in then must not be checked as if the caller had set them.
  TESSERA_TRY_STATUS(check({}, resolved.kv));
  if (options.kv_file.empty() && options.kv_file_bytes != 0) {
    return make_error(ErrorCode::invalid_argument, "kv_file_bytes is {}, but there is no kv_file", options.kv_file_bytes);
  }
  if (const auto set = cpu::choose_set(options.instruction_set); !set) return set.error();
  if (options.backend == BackendKind::cuda) resolved.threads = 1;  // only the calling thread
  if (resolved.threads == 0) resolved.threads = static_cast<std::uint32_t>(usable_threads());
  resolved.threads = std::max(1u, resolved.threads / resolved.ranks) * resolved.ranks;
  if (resolved.memory == nullptr) resolved.memory = &system_memory();
  return resolved;
}

Result<bool> has_tokenizer(const ModelSource& source, const EngineOptions& options) {
  const Settings& settings = source.settings();
  if (options.tokenizer == TokenizerUse::none) return false;
  if (settings.has(Setting::tokenizer_json) || settings.has(Setting::sentencepiece_model)) return true;
  if (!settings.has(Setting::tokenizer_model)) return false;
  TESSERA_TRY(const auto model, settings.string(Setting::tokenizer_model));
  return model != "none" && model != "no_vocab";  // names that converters write if the file has no tokenizer
}

namespace {

// Returns the number of rows of the largest step. If rows see later rows, a whole text must fit into one step.
Result<std::uint32_t> step_rows_of(const ModelSpec& spec, const EngineOptions& options, std::uint32_t context) {
  if (spec.sight == Sight::back) return options.step_rows;
  if (options.kv.budget.tokens != 0) {
    return make_error(ErrorCode::unsupported, "a budget of tokens is set, but the model ({}) reads a text as a whole and keeps nothing of it", spec.architecture);
  }
  if (context > kMaxStepRows) {
    return make_error(ErrorCode::invalid_argument, "a context of {} tokens; the model ({}) reads a text in one step, which has at most {}: choose a smaller context",
                      context, spec.architecture, kMaxStepRows);
  }
  return std::max(options.step_rows, context);
}

}  // namespace

namespace {

// Divides the blueprint's model among ranks, and counts the bytes of weights of the ranks in this process.
Status divide(Blueprint& blueprint, const ModelSource& source, const EngineOptions& options, const backend::Backend& backend) {
  const auto elsewhere = static_cast<std::uint32_t>(ranks_elsewhere(options));
  TESSERA_TRY(blueprint.division, ModelDivision::make(blueprint.spec, options.ranks + elsewhere, options.rank_split));
  blueprint.weights.packed = 0;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const WeightBytes own = weight_bytes(blueprint.division->bindings_of(rank, blueprint.bindings), source, blueprint.spec, backend);
    blueprint.weights.packed += own.packed;
  }
  return {};
}

}  // namespace

namespace {

// Marks the matrices whose inputs a product must round, as the model's files demand. Never marks tables of embeddings, because they are
// looked up and not multiplied. Never marks the per-head matrices of latent attention, because they are rearranged from a matrix of the files,
// and their inputs are not the inputs that the files want rounded. Error: unsupported, the backend does not round inputs.
Status mark_rounded(std::vector<Binding>& bindings, const ModelSource& source, const backend::Backend& backend) {
  for (Binding& binding : bindings) {
    const bool is_looked_up = binding.role == Role::token_embd || binding.role == Role::position_embd || binding.role == Role::per_layer_token_embd;
    if (!binding.is_matrix || is_looked_up || binding.role == Role::latent_k_b || binding.role == Role::latent_v_b) continue;
    const TensorInfo& tensor = source.tensors()[binding.tensor];
    TESSERA_TRY(const InputRounding how, source.input_rounding(tensor));
    if (how.to == RoundedInputs::none) continue;
    if (!backend.computes(backend::Capability::rounded_inputs)) {
      return make_error(ErrorCode::unsupported, "tensor {}: backend {} does not round inputs as the model says; the cpu backend does, or choose activations = automatic",
                        printable(source.called(tensor.name)), backend.name());
    }
    binding.rounds_inputs = true;
  }
  return {};
}

}  // namespace

Result<Blueprint> make_blueprint(const ModelSource& source, const HeadFile* heads, const EngineOptions& options, const backend::Backend& backend) {
  Blueprint blueprint;
  TESSERA_TRY(blueprint.architecture, find_architecture(source.settings()));
  TESSERA_TRY(blueprint.spec, read_spec(source, *blueprint.architecture, {.sliding_window = options.sliding_window, .context = options.context, .mtp = options.mtp}));
  if (heads != nullptr) TESSERA_TRY_STATUS(add_heads(*heads, blueprint.spec));
  TESSERA_TRY_STATUS(check_capabilities(blueprint.spec, backend));
  TESSERA_TRY(const std::uint64_t tokenizer, tokenizer_bytes(source, options, blueprint.spec));
  TESSERA_TRY(blueprint.bindings, bind_tensors(source, *blueprint.architecture, blueprint.spec));
  if (options.activations == Activations::as_the_model_says) TESSERA_TRY_STATUS(mark_rounded(blueprint.bindings, source, backend));
  for (const Binding& binding : blueprint.bindings) {
    if (binding.companions.has(Companion::factors) && !backend.computes(backend::Capability::weight_scales)) {
      return make_error(ErrorCode::unsupported, "tensor {}: backend {} does not scale products; the cpu backend does",
                        printable(source.called(source.tensors()[binding.companions[Companion::factors]].name)), backend.name());
    }
    if (!binding.is_matrix || backend.holds(binding.shape.dtype)) continue;
    return make_error(ErrorCode::unsupported,
                      "tensor {}: backend {} does not compute with {} weights; the cpu backend does",
                      printable(source.called(source.tensors()[binding.tensor].name)), backend.name(), to_string(binding.shape.dtype));
  }
  const ModelSpec& spec = blueprint.spec;
  blueprint.weights = weight_bytes(blueprint.bindings, source, spec, backend);
  if (options.ranks > 1 || ranks_elsewhere(options) != 0) TESSERA_TRY_STATUS(divide(blueprint, source, options, backend));

  Plan& plan = blueprint.plan;
  plan.context = options.context != 0 ? options.context : spec.sight == Sight::back ? spec.context : std::min(spec.context, kMaxStepRows);
  if (plan.context > spec.context) {
    return make_error(ErrorCode::invalid_argument, "a context of {} tokens; the model knows at most {}: choose a smaller context",
                      plan.context, spec.context);
  }
  plan.kv_dtype = options.kv.dtype != DType::automatic ? options.kv.dtype
                  : blueprint.weights.all_f32 || spec.sight == Sight::both_sides ? DType::f32
                                                       : DType::f16;
  plan.kv_kind = options.kv.kind;
  plan.page_tokens = options.kv.page_tokens;
  KvOptions kv_options = options.kv;
  kv_options.dtype = plan.kv_dtype;
  kv_options.wide = plan.kv_wide = wide_layers(kv_options);
  TESSERA_TRY(KvLayout layout, kv_layout(spec, kv_options));
  if (ranks_elsewhere(options) != 0) {
    TESSERA_TRY(layout, blueprint.division->own_layout_of(0, layout));
  }
  TESSERA_TRY_STATUS(check_kv_types(backend, layout));
  TESSERA_TRY_STATUS(check_budget(layout, options.kv_budget));
  // Number of tokens whose keys and values are planned: the context. Exception: an encoder (a Sight other than `back`) reads many texts
  // in one step. The texts do not share pages, and a short text does not fill its last page, so at least twice the tokens of a step are
  // planned.
  blueprint.kept_tokens = spec.sight == Sight::back ? plan.context : std::max<std::uint64_t>(plan.context, 2 * std::uint64_t{options.step_rows});
  TESSERA_TRY(const KvBytes kv, kv_bytes(layout, blueprint.kept_tokens, kv_options, options.kv_budget));

  plan.kv = kv.kv;
  plan.kv_layout = layout;
  plan.kv_limit = options.kv.kind == KvKind::paged && options.kv_budget != 0 ? options.kv_budget : plan.kv;
  plan.kv_per_token = layout.bytes_per_token();
  plan.weights = blueprint.weights.packed;
  plan.weights_per_token = blueprint.weights.streamed;
  TESSERA_TRY_STATUS(check_token_budget(options.kv.budget, plan.context, spec, backend));
  TESSERA_TRY(blueprint.step_rows, step_rows_of(spec, options, plan.context));
  const backend::WorkspaceShape workspace = workspace_of(spec, blueprint.step_rows, options.kv.budget, plan.context);
  plan.workspace = options.ranks * backend.workspace_bytes(workspace);
  const std::uint64_t metadata = metadata_bytes(source.settings());
  const std::uint64_t threads = ((options.executor != nullptr ? 0 : options.threads) + (options.kv_file.empty() ? 0 : 1)) *
                                kThreadBytes;
  const std::uint64_t models = (options.ranks > 1 ? options.ranks + 1 : 1) * model_bytes(spec);  // with ranks: whole model and parts
  plan.host = tokenizer + metadata + threads + models + session_bytes(spec, plan.context, options.kv.budget) + kv.host;
  plan.loading = source.memory_bytes() + (options.ranks > 1 ? 2 : 1) * binding_bytes(blueprint.bindings.size()) + blueprint.weights.staging;
  // The caller may keep the parsed header of the file, so its bytes also count while running. Staging memory for weights does not count: it
  // is freed before the workspace and the first session are allocated.
  const std::uint64_t headers = plan.loading - blueprint.weights.staging;
  std::uint64_t while_loading = tokenizer + metadata + threads + models + plan.loading;
  std::uint64_t while_running = plan.host + headers;
  // Returns `bytes` plus the KV limit. The sum is capped at the largest number, because the limit may be any number.
  const auto with_kv = [&](std::uint64_t bytes) {
    return bytes + std::min(plan.kv_limit, std::numeric_limits<std::uint64_t>::max() - bytes);
  };
  if (backend.on_device()) {
    while_loading += backend.host_workspace_bytes(workspace);
    while_running += backend.host_workspace_bytes(workspace);
    plan.device_peak = with_kv(plan.weights + plan.workspace);
  } else {
    while_loading += plan.weights;
    while_running = with_kv(while_running + plan.weights + plan.workspace);
  }
  plan.adapters = options.adapter_budget;
  while_running += std::min(plan.adapters, std::numeric_limits<std::uint64_t>::max() - while_running);
  plan.peak = std::max(while_loading, while_running);
  return blueprint;
}

}  // namespace tessera::detail
