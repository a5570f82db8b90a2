// An engine whose backend draws tokens: the CPU's, with sample() made of the host's sampler.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/forwarding_backend.hpp"
#include "engine/models.hpp"
#include "core/error.hpp"
#include "engine/wrapped_backend.hpp"
#include "sampling/draw.hpp"
#include "sampling/sampler_of.hpp"

namespace tessera::test {

class DrawingBackend final : public ForwardingBackend {
 public:
  DrawingBackend(std::unique_ptr<Backend> cpu, std::size_t vocab) : ForwardingBackend(std::move(cpu)), logits_(vocab) {}

  std::size_t draws = 0;
  std::function<Status(Token&)> after_draw;  // may change the token, fail, or throw

  bool samples() const noexcept override { return true; }
  Status begin(const backend::StepTables& tables) override {
    draws_ = tables.draws;
    return inner().begin(tables);
  }
  Status sample(Act logits, std::size_t first, std::span<Token> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const backend::SampleRow& draw = draws_[first + i];
      TESSERA_TRY_STATUS(inner().read(logits, draw.row, logits_));
      Sampler sampler = tests::sampler_of(draw.steps);
      TESSERA_TRY(const auto distribution, sampler.distribution(logits_, {}, 0));
      out[i] = distribution[sampling::draw(distribution, draw.uniform)].token;
      ++draws;
      if (after_draw) TESSERA_TRY_STATUS(after_draw(out[i]));
    }
    return {};
  }

  std::string_view name() const noexcept override { return "drawing"; }

 private:
  std::vector<float> logits_;  // of one row
  std::span<const backend::SampleRow> draws_;
};

// Puts a DrawingBackend around the engine's; it lives as long as the engine.
inline DrawingBackend& make_drawing(const Engine& engine) {
  return wrap_backend<DrawingBackend>(engine, engine.spec().vocab_size);
}

}  // namespace tessera::test
