// Files whose matrices have a number beside them (NAME.scale) that their products are multiplied by, as NVFP4's do: a model whose
// weights are powers of two smaller and whose numbers are those powers is the same model, to the bit.
#include <string>
#include <string_view>
#include <vector>

#include "engine/scaled_model.hpp"

#include "catch.hpp"

namespace test_scaled_weights {

using namespace tessera;
using namespace tessera::test;

namespace {

bool is_scaled(const GgufTensor& tensor) {
  return tensor.dtype == DType::f32 && tensor.n_dims > 1 && tensor.name.starts_with("blk.") && tensor.name.ends_with(".weight");
}

std::string refusal(const ModelFile& file, std::string_view tensor, const Factors& factors) {
  const MadeModel model = with_scales(file, [&](const GgufTensor& of) { return of.name == tensor ? factors : Factors{}; });
  const auto engine = Engine::load(model.file(), {});
  return engine ? std::string() : engine.error().text();
}

std::vector<float> logits_of(const ModelFile& file, Numerics numerics, std::span<const Token> tokens) {
  const Engine engine = must(Engine::load(file, {.numerics = numerics, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, tokens, tokens.size());
}

Factors powers(const GgufTensor& tensor) {
  if (!is_scaled(tensor)) return {};
  Factors factors(tensor.dims[2]);
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = static_cast<float>(2u << i % 3) * (i % 2 == 0 ? 1.0f : 0.125f);
  return factors;
}

Factors powers_of_one(const GgufTensor& tensor) { return is_scaled(tensor) ? Factors{1.0f} : Factors{}; }

}  // namespace

TEST_CASE("a matrix's scale multiplies what comes of it") {
  const MadeShape shape{.d_model = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 128, .vocab = 100};
  const MadeModel plain = make_model(shape, DType::f32), scaled = with_scales(plain.file(), powers);
  REQUIRE(scaled.file().find_tensor("blk.1.ffn_down.scale") != nullptr);
  // 3 rows are added to by the tasks of a product, 300 by a pass of their own.
  for (const std::size_t n : {std::size_t{3}, std::size_t{300}}) {
    const auto tokens = made_tokens(n, shape.vocab, 4);
    for (const Numerics numerics : {Numerics::reference, Numerics::automatic}) {
      CHECK(same_bits(logits_of(scaled.file(), numerics, tokens), logits_of(plain.file(), numerics, tokens)));
    }
  }
}

TEST_CASE("each expert has a scale of its own, parts of one tensor share its scale, and a bias is added after it") {
  for (const std::string name : {"qwen3moe", "gpt2", "phi3"}) {
    INFO(name);
    const ModelFile plain = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    const MadeModel scaled = with_scales(plain, [&](const GgufTensor& tensor) {
      return name == "gpt2" && tensor.name.find("ffn_") != std::string_view::npos ? Factors{} : powers(tensor);
    });
    const auto tokens = made_tokens(19, 60, 4);
    CHECK(same_bits(logits_of(scaled.file(), Numerics::automatic, tokens), logits_of(plain, Numerics::automatic, tokens)));
  }
}

TEST_CASE("NVFP4 with a scale is the weights times it") {
  const MadeShape shape{.d_model = 64, .layers = 1, .heads = 4, .kv_heads = 2, .ffn = 128, .vocab = 100};
  const auto is_block = [](const GgufTensor& tensor) { return tensor.dtype == DType::nvfp4 && tensor.name.starts_with("blk."); };
  // Blocks' scales are UE4M3, whose exponent begins at bit 3: two more are four times as much.
  const auto made = [&](unsigned exponent) {
    MadeModel model = make_model(shape, DType::nvfp4);
    const ModelFile file = model.file();
    for (const GgufTensor& tensor : file.tensors()) {
      if (!is_block(tensor)) continue;
      for (std::uint64_t at = 0; at < tensor.bytes; ++at) {
        if (at % 36 < 4) model.bytes[tensor.offset + at] = static_cast<std::byte>(8 * exponent + at / 36 % 8);
      }
    }
    return model;
  };
  const MadeModel model = made(2), larger = made(4);
  const ModelFile file = model.file();
  const MadeModel scaled = with_scales(file, [&](const GgufTensor& tensor) { return is_block(tensor) ? Factors{4.0f} : Factors{}; });
  const auto tokens = made_tokens(19, shape.vocab, 4);
  for (const Numerics numerics : {Numerics::reference, Numerics::automatic}) {
    CHECK(same_bits(logits_of(scaled.file(), numerics, tokens), logits_of(larger.file(), numerics, tokens)));
    CHECK(!same_bits(logits_of(scaled.file(), numerics, tokens), logits_of(file, numerics, tokens)));
  }
}

TEST_CASE("scales that do not fit are named; those of activations are passed over") {
  const MadeShape shape{.d_model = 64, .layers = 1, .heads = 4, .kv_heads = 2, .ffn = 128, .vocab = 100};
  const MadeModel plain = make_model(shape, DType::f32);
  CHECK(refusal(plain.file(), "blk.0.attn_q.weight", {2.0f}).empty());
  CHECK_THAT(refusal(plain.file(), "blk.0.attn_q.weight", {2.0f, 2.0f}), Catch::Matchers::ContainsSubstring("blk.0.attn_q.scale"));
  CHECK_THAT(refusal(plain.file(), "token_embd.weight", {2.0f}), Catch::Matchers::ContainsSubstring("token_embd.scale"));
  CHECK_THAT(refusal(plain.file(), "blk.0.attn_norm.weight", {2.0f}), Catch::Matchers::ContainsSubstring("blk.0.attn_norm.scale"));
  const ModelFile gpt2 = must(ModelFile::open(golden_dir() / "gpt2.gguf"));
  CHECK_THAT(refusal(gpt2, "blk.0.ffn_up.weight", {2.0f}), Catch::Matchers::ContainsSubstring("blk.0.ffn_up.scale"));
  const MadeModel inputs = with_scales(plain.file(), powers_of_one, "input_scale");
  REQUIRE(inputs.file().find_tensor("blk.0.attn_q.input_scale") != nullptr);
  const auto tokens = made_tokens(3, shape.vocab, 4);
  CHECK(same_bits(logits_of(inputs.file(), Numerics::reference, tokens), logits_of(plain.file(), Numerics::reference, tokens)));
}

}  // namespace test_scaled_weights
