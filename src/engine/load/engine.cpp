#include <tessera/engine.hpp>

#include <algorithm>
#include <string>

#include "adapters/merged_source.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/make_session.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/load/explanations.hpp"
#include "engine/load/load_parts.hpp"
#include "engine/load/make_backend.hpp"
#include "backend/observing_backend.hpp"
#include "engine/adapters/adapter_state.hpp"
#include "engine/load/metadata.hpp"
#include "engine/load/plan.hpp"
#include "engine/ranks/connect_ranks.hpp"
#include "engine/ranks/remote_adapters.hpp"
#include "engine/ranks/remote_parts.hpp"
#include "engine/states.hpp"
#include "files/no_settings.hpp"
#include "heads/joined_source.hpp"
#include "model/draft_heads.hpp"
#include "ranks/processes/closed_transport.hpp"
#include "ranks/processes/remote_ranks.hpp"
#include "os/file.hpp"
#include "engine/session/token_budget.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"

namespace tessera {

using detail::empty_value;
using detail::guard;
using detail::kAssumedPreTokenizer;
using detail::make_error;

namespace {

void tell(const EngineOptions& options, LogLevel level, std::string_view message) {
  if (options.log && level >= options.log_level) options.log(level, message);
}

// Returns the error with the file's name in its place (Error::place()), unless the place already begins with that name.
Error in_file(Error error, const std::string& file) {
  if (error.place().starts_with(file)) return error;
  const std::string place = error.place().empty() ? file : file + ": " + error.place();
  return {error.code(), error.message(), place};
}

Result<Tokenizer> make_tokenizer(const ModelSource& source, const EngineOptions& options) {
  TESSERA_TRY(const bool has, detail::has_tokenizer(source, options));
  if (!has) return Tokenizer();
  TESSERA_TRY(Tokenizer tokenizer, Tokenizer::from_settings(source.settings(), options.stop));
  if (tokenizer.pre_tokenizer_is_assumed()) {
    if (options.fallback == Fallback::refuse) {
      return detail::error_at(ErrorCode::unsupported, source.settings().called(Setting::pre_tokenizer), "{}; allow fallbacks to use it", kAssumedPreTokenizer);
    }
    tell(options, LogLevel::warning, fmt::format("{}: {}", source.settings().called(Setting::pre_tokenizer), kAssumedPreTokenizer));
  }
  return tokenizer;
}

// A model, and draft heads from another file if the options name one. `source` has the tensors of both.
struct Parts {
  std::shared_ptr<const ModelSource> source;
  std::shared_ptr<const detail::HeadFile> heads = nullptr;
};

Result<Plan> make_plan(const Parts& parts, const EngineOptions& given) {
  TESSERA_TRY(const EngineOptions options, detail::resolve_options(given));
  TESSERA_TRY(const detail::Machine machine, detail::make_planner(options));
  TESSERA_TRY(const detail::Blueprint blueprint, detail::make_blueprint(*parts.source, parts.heads.get(), options, *machine.backend));
  return blueprint.plan;
}

Status check_budget(const Plan& plan, const EngineOptions& options) {
  if (const std::uint64_t budget = options.cuda.memory_budget; budget != 0 && plan.device_peak > budget) {
    return make_error(ErrorCode::over_budget,
                      "the model needs {} bytes of the GPU's memory (weights {}, KV of {} tokens {}, workspace {}); the budget is "
                      "{}. A smaller context or KV type needs less",
                      plan.device_peak, plan.weights, plan.context, plan.kv, plan.workspace, budget);
  }
  const std::uint64_t budget = options.memory_budget;
  if (budget == 0 || plan.peak <= budget) return {};
  if (plan.device_peak != 0) {
    return make_error(ErrorCode::over_budget,
                      "the model needs {} bytes of the host's memory beside the GPU's at its peak; the budget is {}", plan.peak,
                      budget);
  }
  return make_error(ErrorCode::over_budget,
                    "the model needs {} bytes at its peak (weights {}, KV of {} tokens {}, workspace {}, host {}); the budget "
                    "is {}. A smaller context or KV type needs less",
                    plan.peak, plan.weights, plan.context, plan.kv, plan.workspace, plan.host, budget);
}

Status check_no_fallback(const backend::Backend& backend) {
  for (const backend::Explanation& line : backend.explain()) {
    if (line.fallback.empty()) continue;
    return make_error(ErrorCode::unsupported, "{} of {} would run on \"{}\" ({}); allow fallbacks to use it",
                      text_of(line), line.dtype ? to_string(*line.dtype) : detail::kNoType, line.kernel, line.fallback);
  }
  return {};
}

// Tells `observing`, the backend that records the inputs of matrices (for importance matrices), the name of each matrix: the name of the
// file's tensor that has the matrix. If a tensor has several matrices in successive rows, which all read the same inputs, only the first
// of them gets the name.
void name_matrices(backend::ObservingBackend& observing, const detail::Model& model, const ModelSource& source,
                   std::span<const detail::Binding> bindings) {
  for (const detail::Binding& binding : bindings) {
    // A matrix that is only some columns of a tensor (row_inputs != 0) gets no name, because it reads only some of the tensor's inputs.
    if (!binding.is_matrix || binding.first_row != 0 || binding.row_inputs != 0) continue;
    const bool once = row_of(binding.role).owner == Owner::model;
    const detail::Weights& weights = once ? model.weights : model.layer_weights[binding.layer];
    observing.name_matrix(*weights.matrix(binding.role), source.tensors()[binding.tensor].name);
  }
}

// Connects to the ranks in other processes; they then begin to load their parts.
Result<std::unique_ptr<detail::ProcessRanks>> connect_to_ranks(const Parts& parts, const EngineOptions& options) {
  TESSERA_TRY(const detail::Machine planner, detail::make_planner(options));
  TESSERA_TRY(const detail::Blueprint blueprint, detail::make_blueprint(*parts.source, parts.heads.get(), options, *planner.backend));
  return detail::connect_ranks(options, blueprint.spec, blueprint.plan.context);
}

Result<std::shared_ptr<const Engine::State>> load_engine(const Parts& parts, const EngineOptions& given,
                                                         const std::filesystem::path& path = {}) {
  const detail::FpState fp_state;
  const ModelSource& source = *parts.source;
  TESSERA_TRY(const EngineOptions options, detail::resolve_options(given));
  {
    TESSERA_TRY(const Plan plan, make_plan(parts, options));
    TESSERA_TRY_STATUS(check_budget(plan, options));
  }
  TESSERA_TRY(Tokenizer tokenizer, make_tokenizer(source, options));
  auto state = std::make_shared<Engine::State>(options, std::move(tokenizer), detail::KeptSettings(source.settings()));
  std::unique_ptr<detail::ProcessRanks> others;
  if (detail::ranks_elsewhere(options) != 0) {
    TESSERA_TRY(others, connect_to_ranks(parts, options));
  }
  TESSERA_TRY(detail::Machine machine, detail::make_backend(options, others.get()));
  state->path = path;
  state->executor = std::move(machine.executor);
  state->backend = std::move(machine.backend);
  backend::ObservingBackend* observing = nullptr;
  if (options.input_observer != nullptr) {
    auto around = std::make_unique<backend::ObservingBackend>(std::move(state->backend), *options.input_observer);
    observing = around.get();
    state->backend = std::move(around);
  }
  TESSERA_TRY(detail::Blueprint blueprint, detail::make_blueprint(source, parts.heads.get(), options, *state->backend));
  tell(options, LogLevel::info,
       fmt::format("loading {} ({}): {} layers, {} tensors, {} bytes of weights", blueprint.spec.name,
                   blueprint.spec.architecture, blueprint.spec.n_layers(), source.tensors().size(),
                   blueprint.weights.file));
  state->model.spec = blueprint.spec;
  auto part = std::make_unique<detail::Model>();  // rank 0's part, if other processes have ranks
  if (others != nullptr) {
    auto& backend = static_cast<detail::RankBackend&>(*state->backend);
    TESSERA_TRY_STATUS(detail::load_part(source, blueprint, options, 0, backend, *part, detail::ReadBytes::all, options.progress));
    TESSERA_TRY_STATUS(detail::await_ranks(*others, part->weights_hash, backend, options.stop));
    state->model = detail::whole_model(*part, state->model.spec);
    state->division = blueprint.division;
    state->places = detail::AdapterPlaces(*part, source, blueprint.division->bindings_of(0, blueprint.bindings));
  } else if (blueprint.division != nullptr) {
    TESSERA_TRY_STATUS(detail::load_parts(source, blueprint, options, machine.parts));
    state->model = detail::whole_model(machine.parts.front()->model, state->model.spec);
    for (std::uint32_t rank = 0; rank < machine.parts.size(); ++rank) {
      detail::AdapterPlaces places(machine.parts[rank]->model, source, blueprint.division->bindings_of(rank, blueprint.bindings));
      if (rank == 0) state->places = std::move(places);
      else state->rank_places.push_back({std::move(places), machine.parts[rank]->backend});
    }
  } else {
    TESSERA_TRY_STATUS(state->backend->reserve_weights(blueprint.weights.packed, blueprint.weights.staging));
    TESSERA_TRY_STATUS(
        detail::load_weights(state->model, source, blueprint.bindings, *state->backend, options.progress, options.stop));
    if (parts.heads != nullptr) detail::finish_heads(*parts.heads, state->model);
    state->model.attentions = detail::attentions_of(state->model);
    state->places = detail::AdapterPlaces(state->model, source, blueprint.bindings);
    if (observing != nullptr) name_matrices(*observing, state->model, source, blueprint.bindings);
    TESSERA_TRY_STATUS(state->backend->reserve_workspace(
        detail::workspace_of(state->model.spec, blueprint.step_rows, options.kv.budget, blueprint.plan.context)));
  }
  state->plan = blueprint.plan;
  state->texts = {.rows = options.step_rows, .pages = std::max<std::uint64_t>(1, state->plan.kv_limit / std::max<std::uint64_t>(1, state->plan.kv_layout.page_bytes()))};
  state->options.step_rows = blueprint.step_rows;
  // If rows see later rows, a row's keys and values depend on the later rows, so texts with other later rows cannot use the row's page.
  if (state->model.spec.sight == Sight::both_sides) state->options.kv.prefix = PrefixReuse::off;
  state->options.kv.dtype = state->plan.kv_dtype;
  state->identity = detail::make_identity(state->model, *state->backend);
  TESSERA_TRY(state->kv_pools, detail::make_kv_pools(*state));
  if (others != nullptr) {
    detail::keep_copies(*state->kv_pools);
    state->pages = std::make_unique<detail::CacheMemory>(*state->kv_pools);
    auto ranks = std::make_unique<detail::RemoteRanks>(std::move(others), std::move(part), static_cast<detail::RankBackend&>(*state->backend),
                                                       *state->kv_pools, *state->pages, std::chrono::milliseconds(options.rank_timeout_ms));
    state->remote_adapters = std::make_unique<detail::RemoteAdapters>(*ranks, state->queue);
    state->other_parts = std::make_unique<detail::RemoteParts>(*ranks, state->division, state->queue);
    state->steps = std::move(ranks);
  } else if (blueprint.division != nullptr) {
    TESSERA_TRY(state->steps, detail::RankGroup::start(blueprint.division, std::move(machine.ranks), std::move(machine.parts), *state->kv_pools));
  } else {
    state->make_executor();
  }
  if (options.fallback == Fallback::refuse) TESSERA_TRY_STATUS(check_no_fallback(*state->backend));
  // The options' callback and stop token may be used only during this call, so the engine does not keep them.
  state->options.progress = {};
  state->options.draft_heads_source = {};
  state->ranks_elsewhere = detail::ranks_elsewhere(options);
  state->options.rank_transport = {};  // the executor of steps has it
  state->options.stop = {};
  tell(options, LogLevel::info, "loaded");
  return std::shared_ptr<const Engine::State>(std::move(state));
}

// Returns the model, with the adapters that the options merge into it and the draft heads that the options name.
Result<Parts> parts_of(std::shared_ptr<const ModelSource> source, const EngineOptions& options) {
  Parts parts{.source = std::move(source)};
  if (!options.merge.empty()) {
    TESSERA_TRY(parts.source, detail::MergedSource::make(std::move(parts.source), options.merge, options.stop));
  }
  if (options.draft_heads.empty() && options.draft_heads_source == nullptr) return parts;
  TESSERA_TRY(detail::HeadFile heads, options.draft_heads_source != nullptr ? detail::draft_heads_of_source(options.draft_heads_source)
                                                                            : detail::read_draft_heads(options.draft_heads, options.stop));
  parts.heads = std::make_shared<const detail::HeadFile>(std::move(heads));
  TESSERA_TRY(parts.source, detail::JoinedSource::make(std::move(parts.source), parts.heads));
  return parts;
}

// Returns a pointer to the caller's source that does not own it.
std::shared_ptr<const ModelSource> borrowed(const ModelSource& source) noexcept { return {std::shared_ptr<const ModelSource>(), &source}; }

Status check_stream(const StreamOptions& stream, std::uint64_t context, const ModelSpec& spec) {
  if (stream.window == 0) return {};
  TESSERA_TRY_STATUS(detail::check_movable(spec, "its sequences end with the context"));
  if (std::uint64_t{stream.sinks} + stream.window >= context) {
    return make_error(ErrorCode::invalid_argument,
                      "{} sinks and a window of {} leave no room in a context of {} tokens; choose a smaller window",
                      stream.sinks, stream.window, context);
  }
  return {};
}

}  // namespace

Engine::Engine(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<Engine> Engine::load(const std::filesystem::path& path, const EngineOptions& options) noexcept {
  return guard([&]() -> Result<Engine> {
    detail::ClosedTransport unless_loaded(options.rank_transport);
    TESSERA_TRY(auto opened, open_model(path, options.stop));
    TESSERA_TRY(const Parts parts, parts_of(std::move(opened), options));
    auto state = load_engine(parts, options, path);
    if (!state) return in_file(std::move(state).error(), os::text_of(path));
    unless_loaded.release();
    return Engine(*std::move(state));
  }, ErrorCode::callback_failed);
}

Result<Engine> Engine::load(const ModelSource& source, const EngineOptions& options) noexcept {
  return guard([&]() -> Result<Engine> {
    detail::ClosedTransport unless_loaded(options.rank_transport);
    TESSERA_TRY_STATUS(source.settings().status());
    TESSERA_TRY(const Parts parts, parts_of(borrowed(source), options));
    TESSERA_TRY(auto state, load_engine(parts, options));
    unless_loaded.release();
    return Engine(std::move(state));
  }, ErrorCode::callback_failed);
}

Result<Plan> Engine::plan(const ModelSource& source, const EngineOptions& options) noexcept {
  return guard([&]() -> Result<Plan> {
    TESSERA_TRY_STATUS(source.settings().status());
    TESSERA_TRY(const Parts parts, parts_of(borrowed(source), options));
    return make_plan(parts, options);
  });
}

Result<detail::SequenceAdapters> detail::make_adapters(std::span<const AdapterUse> uses, const Engine::State& engine) {
  for (const AdapterUse& use : uses) {
    if (use.adapter.state() == nullptr || use.adapter.state()->engine.get() == &engine) continue;
    return make_error(ErrorCode::invalid_argument, "adapter \"{}\" belongs to another engine: load it by this engine's adapter()", use.adapter.name());
  }
  return SequenceAdapters::make(uses);
}

Result<std::unique_ptr<Session::State>> detail::make_session(const Engine& engine, const std::shared_ptr<const Engine::State>& state,
                                                             const SessionOptions& options) {
  const Engine::State& s = *state;
  const std::uint32_t context = options.context == 0 ? s.plan.context : options.context;
  if (context > s.plan.context) {
    return make_error(ErrorCode::invalid_argument,
                      "a session of {} tokens, and the engine's context is {}: ask for less, or load the engine with a larger context",
                      context, s.plan.context);
  }
  if (options.kv.prefix == PrefixReuse::on && s.model.spec.sight == Sight::both_sides) {
    return make_error(ErrorCode::unsupported, "prefix reuse is on, but the model ({}) reads a text as a whole, and texts share nothing",
                      s.model.spec.architecture);
  }
  const KvOptions kv_options = resolve(options.kv, s.options.kv);
  if (s.model.spec.sight == Sight::both_sides && (kv_options.budget.tokens != 0 || options.stream.window != 0)) {
    return make_error(ErrorCode::unsupported, "a budget of tokens or a stream is set, but the model ({}) reads a text as a whole", s.model.spec.architecture);
  }
  TESSERA_TRY_STATUS(check(options.kv, kv_options));
  TESSERA_TRY_STATUS(check_stream(options.stream, context, s.model.spec));
  TESSERA_TRY_STATUS(check_token_budget(kv_options.budget, context, options.stream, s));
  TESSERA_TRY(SequenceAdapters adapters, make_adapters(options.adapters, s));
  TESSERA_TRY(KvCache kv, make_kv_cache(s, kv_options, context, options.stream));
  auto session = std::make_unique<Session::State>(engine, state, std::move(kv));
  session->kv_options = kv_options;
  session->stream = options.stream;
  session->embedding_of = options.embedding_of;
  session->adapters = std::move(adapters);
  return session;
}

Result<Session> Engine::session(const SessionOptions& options) const noexcept {
  return guard([&]() -> Result<Session> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    TESSERA_TRY(auto state, detail::make_session(*this, state_, options));
    return Session(std::move(state));
  });
}

KvFigures Engine::kv_figures() const noexcept { return state_ == nullptr ? KvFigures{} : state_->kv_pools->figures(); }
KvRoom Engine::kv_room() const noexcept {
  if (state_ == nullptr) return {};
  const std::uint64_t budget = state_->options.kv_budget;
  const std::uint64_t used = state_->kv_pools->figures().used_bytes;
  return {.bytes = budget == 0 ? ~std::uint64_t{0} : budget - std::min(budget, used)};
}
void Engine::trim() const noexcept {
  if (state_ != nullptr) state_->kv_pools->trim();
}
const Settings& Engine::metadata() const noexcept {
  if (state_ == nullptr) return empty_value<detail::NoSettings>();
  return state_->metadata;
}
const ModelSpec& Engine::spec() const noexcept { return state_ == nullptr ? empty_value<ModelSpec>() : state_->model.spec; }
const Plan& Engine::plan() const noexcept { return state_ == nullptr ? empty_value<Plan>() : state_->plan; }
const Tokenizer& Engine::tokenizer() const noexcept { return state_ == nullptr ? empty_value<Tokenizer>() : state_->tokenizer; }
std::size_t Engine::threads() const noexcept { return state_ == nullptr ? 0 : state_->executor->concurrency() * state_->options.ranks; }

}  // namespace tessera
