// Engine::adapter(): reads an adapter and binds it to the engine's weights.
#include <algorithm>
#include <utility>

#include "adapters/merged_source.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/adapters/adapter_places.hpp"
#include "engine/adapters/adapter_state.hpp"
#include "engine/states.hpp"
#include "os/file.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;

namespace detail {

Status LoadedAdapters::take(std::uint64_t bytes, std::uint64_t limit) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes > limit || bytes_ > limit - bytes) {
    return make_error(ErrorCode::over_budget,
                      "the adapter needs {} bytes, {} are taken by other adapters, and all may take {}: drop an adapter, or load the engine "
                      "with a larger budget for adapters",
                      bytes, bytes_, limit);
  }
  bytes_ += bytes;
  return {};
}

void LoadedAdapters::give_back(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
}

void LoadedAdapters::add(const std::shared_ptr<const Adapter::State>& adapter) {
  const std::lock_guard lock(mutex_);
  std::erase_if(list_, [](const auto& one) { return one.expired(); });
  list_.push_back(adapter);
}

Adapter LoadedAdapters::find(const Hash128& content) const {
  const std::lock_guard lock(mutex_);
  for (const auto& one : list_) {
    auto adapter = one.lock();
    if (adapter != nullptr && adapter->content == content) return Adapter(std::move(adapter));
  }
  return {};
}

}  // namespace detail

namespace {

std::uint64_t limit_of(const Engine::State& engine) noexcept {
  if (engine.options.adapter_budget != 0) return engine.options.adapter_budget;
  if (engine.options.memory_budget == 0) return UINT64_MAX;
  return engine.options.memory_budget - std::min(engine.options.memory_budget, engine.plan.peak);
}

bool has_lengths(const detail::AdapterFile& file) {
  return std::ranges::any_of(file.tensors, [](const detail::AdapterTensor& tensor) { return !tensor.lengths.empty(); });
}

// Returns the source of the engine's weights: AdapterOptions::base or, without it, the file from which the engine was loaded. Errors:
// invalid_argument, there is neither of the two, or the source is not the engine's model; errors of opening the file, and of reading the
// adapters that the engine has merged (EngineOptions::merge).
Result<std::shared_ptr<const ModelSource>> base_of(const Engine::State& engine, const AdapterOptions& options) {
  std::shared_ptr<const ModelSource> base(std::shared_ptr<void>(), options.base);  // owns nothing
  if (base == nullptr) {
    if (engine.path.empty()) {
      return make_error(ErrorCode::invalid_argument,
                        "the adapter sets lengths of rows (DoRA), for which the model's weights are read again: give its source in "
                        "AdapterOptions::base, since the engine was not loaded from a path");
    }
    TESSERA_TRY(base, open_model(engine.path, options.stop));
  }
  if (!engine.options.merge.empty()) {
    TESSERA_TRY(base, detail::MergedSource::make(std::move(base), engine.options.merge, options.stop));
  }
  for (std::uint32_t i = 0; i < engine.places.tensors().size(); ++i) {
    for (const detail::AdapterPlaces::Weight& weight : engine.places.weights_of(i)) {
      const std::uint32_t at = weight.binding.tensor;
      const bool same = at < base->tensors().size() && base->tensors()[at].name == engine.places.tensors()[i].name &&
                        base->tensors()[at].dtype == weight.binding.shape.dtype && base->tensors()[at].dims[0] == engine.places.tensors()[i].inputs &&
                        base->tensors()[at].dims[1] == engine.places.tensors()[i].outputs;
      if (same) continue;
      return make_error(ErrorCode::invalid_argument, "the model's weights are read again for the adapter's lengths (DoRA), and are not those of the engine ({})",
                        engine.places.tensors()[i].name);
    }
  }
  return base;
}

// Returns the bytes of the adapter's changes, and of the intermediate results that a step keeps for them.
std::uint64_t memory_of(const detail::AdapterFile& file, const Engine::State& engine) {
  std::uint64_t bytes = 0, most = 0;  // `most`: the most numbers that A x has, for one row and one product
  const auto count = [&](const detail::AdapterPlaces& places, const backend::Backend& backend) {
    for (const detail::AdapterTensor& tensor : file.tensors) {
      for (const detail::AdapterPlaces::Weight& weight : places.weights_of(tensor.tensor)) {
        const Role role = weight.binding.role;
        const bool is_of_heads = role == Role::latent_k_b || role == Role::latent_v_b;  // each head has its own A x
        if (weight.binding.own.here) bytes += detail::change_bytes(tensor, weight, backend);
        most = std::max<std::uint64_t>(most, tensor.rank * (is_of_heads ? weight.binding.shape.count : 1));
      }
    }
  };
  count(engine.places, *engine.backend);
  for (const auto& rank : engine.rank_places) count(rank.places, *rank.backend);
  constexpr std::uint64_t kProducts = 3;  // products of one input that are computed together: queries, keys and values
  return bytes + engine.options.ranks * kProducts * engine.options.step_rows * most * sizeof(float);
}

// Returns the largest value of `number` in all layers.
std::uint64_t most_of_layers(const ModelSpec& spec, std::uint32_t LayerSpec::* number) noexcept {
  std::uint64_t most = 0;
  for (const LayerSpec& layer : spec.layers) most = std::max<std::uint64_t>(most, layer.*number);
  return most;
}

// Makes an adapter's changes of the weights that one rank has.
Status add_changes(const detail::AdapterFile& file, const detail::AdapterPlaces& places, const backend::Backend& backend, const ModelSource* base,
                   const std::stop_token& stop, backend::AdapterWeights& to) {
  for (const detail::AdapterTensor& tensor : file.tensors) {
    if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped while the adapter was loaded");
    for (const detail::AdapterPlaces::Weight& weight : places.weights_of(tensor.tensor)) {
      if (!weight.binding.own.here) continue;
      TESSERA_TRY(auto change, detail::make_change(tensor, places.tensors()[tensor.tensor], weight, backend, base));
      to.add(*weight.matrix, std::move(change));
    }
  }
  return {};
}

Result<Adapter> load_adapter(const std::shared_ptr<const Engine::State>& engine, const std::filesystem::path& path, const AdapterOptions& options) {
  const detail::FpState fp_state;
  const ModelSpec& spec = engine->model.spec;
  if (!engine->backend->computes(backend::Capability::low_rank)) {
    return make_error(ErrorCode::unsupported, "backend {} does not compute adapters: use the cpu backend", engine->backend->name());
  }
  if (engine->options.input_observer != nullptr) {
    return make_error(ErrorCode::unsupported, "an engine with an observer of inputs uses no adapters");
  }
  TESSERA_TRY(const detail::AdapterFile file,
              detail::read_adapter(path,
                                   {.architecture = spec.architecture,
                                    .settings = engine->metadata,
                                    .tensors = engine->places.tensors(),
                                    .n_layers = spec.n_layers(),
                                    .vocab_size = spec.vocab_size,
                                    .heads = most_of_layers(spec, &LayerSpec::n_heads),
                                    .kv_heads = most_of_layers(spec, &LayerSpec::n_kv_heads)},
                                   options.stop));
  if (Adapter known = engine->adapters.find(file.content); known.name() == file.name && known.state() != nullptr) return known;
  std::shared_ptr<const ModelSource> base;
  if (has_lengths(file)) {
    TESSERA_TRY(base, base_of(*engine, options));
  }
  auto state = std::make_shared<Adapter::State>(engine);
  const std::uint64_t bytes = memory_of(file, *engine);
  TESSERA_TRY_STATUS(engine->adapters.take(bytes, limit_of(*engine)));
  state->bytes = bytes;
  state->name = file.name;
  state->base = file.base;
  state->invocation = file.invocation;
  state->content = file.content;
  for (const detail::AdapterTensor& tensor : file.tensors) {
    state->rank = std::max(state->rank, tensor.rank);
    state->matrices += engine->places.weights_of(tensor.tensor).size();
  }
  TESSERA_TRY_STATUS(add_changes(file, engine->places, *engine->backend, base.get(), options.stop, state->weights));
  for (const auto& rank : engine->rank_places) {
    TESSERA_TRY_STATUS(add_changes(file, rank.places, *rank.backend, base.get(), options.stop, state->weights.add_rank()));
  }
  if (engine->remote_adapters != nullptr) {
    TESSERA_TRY_STATUS(engine->remote_adapters->add(file, options.stop));
    state->is_on_ranks = true;
  }
  engine->adapters.add(state);
  return Adapter(std::shared_ptr<const Adapter::State>(std::move(state)));
}

}  // namespace

Adapter::State::~State() {
  if (is_on_ranks) engine->remote_adapters->remove(content);
  engine->adapters.give_back(bytes);
}

Adapter::Adapter() noexcept = default;
Adapter::Adapter(const Adapter&) noexcept = default;
Adapter& Adapter::operator=(const Adapter&) noexcept = default;
Adapter::Adapter(Adapter&&) noexcept = default;
Adapter& Adapter::operator=(Adapter&&) noexcept = default;
Adapter::~Adapter() = default;
Adapter::Adapter(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

std::string_view Adapter::name() const noexcept { return state_ == nullptr ? std::string_view() : state_->name; }
std::string_view Adapter::base_name() const noexcept { return state_ == nullptr ? std::string_view() : state_->base; }
Hash128 Adapter::content() const noexcept { return state_ == nullptr ? Hash128() : state_->content; }
std::uint64_t Adapter::bytes() const noexcept { return state_ == nullptr ? 0 : state_->bytes; }
std::uint32_t Adapter::rank() const noexcept { return state_ == nullptr ? 0 : state_->rank; }
std::size_t Adapter::matrices() const noexcept { return state_ == nullptr ? 0 : state_->matrices; }
std::span<const Token> Adapter::invocation() const noexcept { return state_ == nullptr ? std::span<const Token>() : state_->invocation; }
Engine Adapter::engine() const noexcept { return state_ == nullptr ? Engine() : Engine(state_->engine); }

Result<Adapter> Engine::adapter(const std::filesystem::path& path, const AdapterOptions& options) const noexcept {
  return guard([&]() -> Result<Adapter> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    return load_adapter(state_, path, options);
  });
}

}  // namespace tessera
