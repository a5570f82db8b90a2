// Models whose weights are in each format: what they compute is what the same weights decoded to F32 do, and a type that is
// not known is named where it is needed, and there alone.
#include "engine/made_model.hpp"

#include "catch.hpp"

namespace test_weight_formats {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr MadeShape kShape{.d_model = 256, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 512, .vocab = 100};

// The same model with its matrices in F32.
MadeModel decoded(const MadeModel& model) {
  const ModelFile file = model.file();
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  for (const GgufTensor& tensor : file.tensors()) {
    must(writer.add_tensor(tensor.name, DType::f32, std::span(tensor.dims).first(tensor.n_dims)));
  }
  MadeModel plain;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        plain.bytes.insert(plain.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const GgufTensor& tensor = *file.find_tensor(name);
        std::vector<std::byte> blocks(tensor.bytes);
        must(file.read(tensor, 0, blocks));
        std::vector<float> values(tensor.dims[0] * tensor.dims[1]);
        must(formats::decode_row(tensor.dtype, blocks, values));
        return write(std::as_bytes(std::span(values)));
      }));
  return plain;
}

std::vector<float> logits_of(const MadeModel& model, Numerics numerics, std::span<const Token> tokens) {
  const Engine engine = model.load({.numerics = numerics});
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, tokens, tokens.size());
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(error / size);
}

}  // namespace

TEST_CASE("a model in any format computes what its weights decoded to F32 do") {
  const auto tokens = made_tokens(19, kShape.vocab, 4);
  for (const DType type : formats::all()) {
    INFO(to_string(type));
    const MadeModel model = make_model(kShape, type), plain = decoded(model);
    const auto expected = logits_of(plain, Numerics::reference, tokens);
    CHECK(same_bits(logits_of(model, Numerics::reference, tokens), expected));
    // Activations are rounded to 8 bits, or to bf16, in each of 14 products: up to 0.04 (TQ1_0, whose weights are large).
    CHECK(difference(logits_of(model, Numerics::automatic, tokens), expected) < 0.06);
    CHECK(difference(logits_of(model, Numerics::bf16, tokens), expected) < 0.06);
  }
}

TEST_CASE("a tensor of a type that is not known is named at load") {
  MadeModel model = make_model(kShape, DType::q8_0);
  // In the header a tensor's type follows its name, the number of dimensions (u32) and the dimensions (u64 each).
  const std::string name = "blk.1.ffn_down.weight";
  const auto* text = reinterpret_cast<const char*>(model.bytes.data());
  const std::size_t at = std::string_view(text, model.bytes.size()).find(name) + name.size() + 4 + 16;
  const std::uint32_t type = 41;
  std::memcpy(model.bytes.data() + at, &type, sizeof type);
  CHECK(model.file().find_tensor(name)->dtype == static_cast<DType>(41));
  CHECK(must(model.file().metadata().string("general.name")) == "made up");
  const auto engine = Engine::load(model.file(), {});
  REQUIRE(!engine);
  CHECK(engine.error().code() == ErrorCode::unsupported);
  CHECK(engine.error().text().find(name) != std::string::npos);
  CHECK(engine.error().text().find("its type is Q1_0 (41)") != std::string::npos);
}

}  // namespace test_weight_formats
