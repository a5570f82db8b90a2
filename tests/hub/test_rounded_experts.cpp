// Inputs of experts' matrices that are rounded as the model says: each expert has its own scale.
#include "engine/models.hpp"

namespace test_rounded_experts {

using namespace tessera;
using namespace tessera::test;

// A golden model that says that the inputs of some experts' matrices are rounded.
class RoundingSource final : public ModelSource {
 public:
  RoundingSource(std::shared_ptr<const ModelSource> model, std::string_view tensor, InputRounding how)
      : model_(std::move(model)), tensor_(tensor), how_(std::move(how)) {}
  [[nodiscard]] const Settings& settings() const noexcept override { return model_->settings(); }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return model_->tensors(); }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override { return model_->find_tensor(name); }
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    return model_->read(tensor, offset, out);
  }
  [[nodiscard]] Result<InputRounding> input_rounding(const TensorInfo& tensor) const noexcept override {
    return tensor.name == tensor_ ? how_ : InputRounding();
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override { return model_->memory_bytes(); }

 private:
  std::shared_ptr<const ModelSource> model_;
  std::string tensor_;
  InputRounding how_;
};

TEST_CASE("each expert's inputs are rounded with its own scale", "[hub]") {
  const auto model = must(open_model(golden_dir() / "qwen3moe.gguf"));
  for (const Numerics numerics : {Numerics::reference, Numerics::automatic}) {
    for (const char* name : {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_down_exps.weight"}) {
      CAPTURE(name, to_string(numerics));
      std::size_t n_used = 0;
      const auto logits = [&](const InputRounding& how) {
        const auto source = std::make_shared<const RoundingSource>(model, name, how);
        const Engine engine = must(Engine::load(*source, {.tokenizer = TokenizerUse::none, .numerics = numerics, .activations = Activations::as_the_model_says, .threads = 2}));
        n_used = engine.spec().layers[0].n_used;
        Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
        return all_logits(session, std::vector<Token>{7}, 1);
      };
      const std::size_t n_experts = model->find_tensor(name)->dims[2];
      const std::vector<float> coarse(n_experts, 0.25f);
      const auto plain = logits({}), rounded = logits({.to = RoundedInputs::int8, .scales = coarse});
      CHECK_FALSE(same_bits(plain, rounded));
      CHECK(same_bits(rounded, logits({.to = RoundedInputs::int8, .scales = {0.25f}})));
      // One token is sent to n_used experts of the layer: the scales of the others change nothing.
      std::size_t changing = 0;
      for (std::size_t expert = 0; expert < n_experts; ++expert) {
        std::vector<float> scales = coarse;
        scales[expert] = 0.03125f;
        changing += same_bits(rounded, logits({.to = RoundedInputs::int8, .scales = scales})) ? 0 : 1;
      }
      CHECK(changing == n_used);
      // A fine grid leaves the inputs nearly as they are.
      const auto fine = logits({.to = RoundedInputs::fp8, .scales = {}});
      float difference = 0.0f, effect = 0.0f;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        difference = std::max(difference, std::abs(fine[i] - plain[i]));
        effect = std::max(effect, std::abs(rounded[i] - plain[i]));
      }
      CHECK(difference > 0.0f);
      CHECK(difference < effect);
    }
  }
}

}  // namespace test_rounded_experts
