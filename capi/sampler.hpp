// Samplers as JSON, and the sampler's handle.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tessera/sampling/chain.hpp>
#include <tessera/sampling/sampler.hpp>

#include "engine.hpp"
#include "options/json_options.hpp"

namespace tessera::c {

struct SamplerState {
  SamplerState(EngineStatePtr of, Sampler with) noexcept : engine(std::move(of)), sampler(std::move(with)) {}
  EngineStatePtr engine;
  Sampler sampler;
  // The generation that draws with the sampler and has not ended. The sampler's stages remember only this generation's
  // tokens.
  std::atomic<const void*> generation = nullptr;

  // Returns the sampler for a call that changes it. Error: invalid_state, a generation that uses the sampler has not
  // ended.
  [[nodiscard]] Sampler& change() {
    if (generation == nullptr) return sampler;
    fail(ErrorCode::invalid_state,
         "a generation with this sampler has not ended: read it to its end or free it, or use tessera_sampler_clone()",
         "sampler");
  }
};
using SamplerStatePtr = std::shared_ptr<SamplerState>;

// Adds stages that run before the stages of the JSON.
using FirstStages = std::function<void(sampling::Chain&)>;
// Makes a sampler from {"temperature": 0.8, ...}. Errors: those of the keys and of the chain.
[[nodiscard]] Sampler read_sampler(EngineState& engine, const Value& value, const FirstStages& first = {});

}  // namespace tessera::c

struct tessera_sampler : tessera::c::Tagged<tessera::c::Kind::sampler> {
  explicit tessera_sampler(tessera::c::SamplerStatePtr of) noexcept : state(std::move(of)) {}
  tessera::c::SamplerStatePtr state;
};
