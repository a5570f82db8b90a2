// What an input observer sees: nothing changes for the results, every row is seen once, and what experts multiply is
// what their gates and ups give.
#include <cmath>
#include <map>
#include <vector>

#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "engine/models.hpp"

namespace test_input_observer {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Recorder final : InputObserver {
  struct Row {
    std::uint32_t matrix;
    std::vector<float> input;
  };
  std::map<std::string, std::vector<Row>, std::less<>> rows;
  void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept override {
    rows[std::string(tensor)].push_back({matrix, {input.begin(), input.end()}});
  }
};

std::vector<float> logits_with(const ModelFile& file, const std::vector<Token>& tokens, InputObserver* observer) {
  const Engine engine = must(Engine::load(file, {.kv = {.dtype = DType::f32}, .tokenizer = TokenizerUse::none, .threads = 2,
                                                 .step_rows = 5, .input_observer = observer}));
  Session session = must(engine.session());
  const auto logits = must(session.append(tokens, {.logits = LogitsOf::all}));
  return {logits.values.begin(), logits.values.end()};
}

// One matrix of a tensor, decoded  [outputs, inputs].
std::vector<float> matrix_of(const ModelFile& file, const std::string& name, std::uint32_t matrix) {
  const GgufTensor& tensor = *file.find_tensor(name);
  std::vector<std::byte> bytes(tensor.bytes / tensor.dims[2]);
  must(file.read(tensor, matrix * bytes.size(), bytes));
  std::vector<float> values(tensor.dims[0] * tensor.dims[1]);
  must(formats::decode_row(tensor.dtype, bytes, values));
  return values;
}

std::vector<double> product(const std::vector<float>& matrix, const std::vector<float>& input) {
  std::vector<double> out(matrix.size() / input.size());
  for (std::size_t o = 0; o < out.size(); ++o) {
    for (std::size_t i = 0; i < input.size(); ++i) out[o] += double{matrix[o * input.size() + i]} * double{input[i]};
  }
  return out;
}

}  // namespace

TEST_CASE("an observed engine computes the same bits, and shows each row of each product once") {
  for (const std::string& name : representative_models()) {
    CAPTURE(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    const auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
    Recorder seen;
    const auto plain = logits_with(file, tokens, nullptr), observed = logits_with(file, tokens, &seen);
    REQUIRE(plain.size() == observed.size());
    CHECK(std::memcmp(plain.data(), observed.data(), plain.size() * sizeof(float)) == 0);
    CHECK_FALSE(seen.rows.empty());
    for (const auto& [tensor, rows] : seen.rows) {
      CAPTURE(tensor);
      const GgufTensor* weights = file.find_tensor(tensor);
      REQUIRE(weights != nullptr);
      for (const auto& row : rows) {
        REQUIRE(row.input.size() == weights->dims[0]);
        REQUIRE(row.matrix < weights->dims[2]);
      }
      if (weights->dims[2] == 1) CHECK(rows.size() == tokens.size());
    }
    // Every layer's way down has been seen, dense or of experts.
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name.find(".ffn_down") == std::string_view::npos || !tensor.name.ends_with(".weight")) continue;
      CHECK(seen.rows.contains(tensor.name));
    }
  }
}

TEST_CASE("what an expert's way down multiplies is what its gate and up give") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "qwen2moe.gguf"));
  const auto tokens = read_tokens(golden_dir() / "qwen2moe.tokens.txt");
  Recorder seen;
  (void)logits_with(file, tokens, &seen);
  const auto &gates = seen.rows.at("blk.0.ffn_gate_exps.weight"), &ups = seen.rows.at("blk.0.ffn_up_exps.weight"),
             &downs = seen.rows.at("blk.0.ffn_down_exps.weight"), &router = seen.rows.at("blk.0.ffn_gate_inp.weight");
  const std::uint64_t used = must(file.metadata().unsigned_integer("qwen2moe.expert_used_count"));
  CHECK(router.size() == tokens.size());
  REQUIRE(gates.size() == used * tokens.size());
  REQUIRE(downs.size() == gates.size());
  std::uint32_t experts = 0;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    REQUIRE(gates[i].matrix == downs[i].matrix);
    REQUIRE(gates[i].input == ups[i].input);
    experts |= 1u << gates[i].matrix;
    const bool routed = std::ranges::any_of(router, [&](const auto& row) { return row.input == gates[i].input; });
    REQUIRE(routed);
    const auto gate = product(matrix_of(file, "blk.0.ffn_gate_exps.weight", gates[i].matrix), gates[i].input);
    const auto up = product(matrix_of(file, "blk.0.ffn_up_exps.weight", gates[i].matrix), gates[i].input);
    for (std::size_t k = 0; k < gate.size(); ++k) {
      const double expected = gate[k] / (1 + std::exp(-gate[k])) * up[k];
      REQUIRE(std::abs(double{downs[i].input[k]} - expected) <= 0.02 * (std::abs(expected) + 0.01));
    }
  }
  CHECK((experts & (experts - 1)) != 0);  // more than one
}

TEST_CASE("what the way down of an expert without a gate multiplies is what its up gives") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "nemotron_h_moe.gguf"));
  Recorder seen;
  (void)logits_with(file, read_tokens(golden_dir() / "nemotron_h_moe.tokens.txt"), &seen);
  CHECK(!seen.rows.contains("blk.1.ffn_gate_exps.weight"));
  const auto &ups = seen.rows.at("blk.1.ffn_up_exps.weight"), &downs = seen.rows.at("blk.1.ffn_down_exps.weight");
  REQUIRE(!ups.empty());
  REQUIRE(downs.size() == ups.size());
  for (std::size_t i = 0; i < ups.size(); ++i) {
    REQUIRE(ups[i].matrix == downs[i].matrix);
    const auto up = product(matrix_of(file, "blk.1.ffn_up_exps.weight", ups[i].matrix), ups[i].input);
    for (std::size_t k = 0; k < up.size(); ++k) {
      const double expected = up[k] > 0 ? double{up[k]} * up[k] : 0;
      REQUIRE(std::abs(double{downs[i].input[k]} - expected) <= 0.02 * (expected + 0.01));
    }
  }
}

TEST_CASE("an observer needs the cpu backend") {
  Recorder seen;
  const auto engine = Engine::load(golden_dir() / "llama-gqa.gguf", {.backend = BackendKind::cuda, .input_observer = &seen});
  REQUIRE_FALSE(engine);
  CHECK(engine.error().code() == ErrorCode::unsupported);
  CHECK(engine.error().text().find("observer") != std::string::npos);
}

}  // namespace test_input_observer
