// The place behind every product: what joins it comes before bias, residual and norm, once, in every architecture.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "backend/joining_backend.hpp"
#include "engine/made_model.hpp"
#include "engine/wrapped_backend.hpp"

#include "catch.hpp"

namespace test_joined_products {

using namespace tessera;
using namespace tessera::test;
using backend::Act;
using backend::Matrix;

namespace {

// Doubles the products of some matrices; counts what it is asked to join.
class DoublingBackend final : public backend::JoiningBackend {
 public:
  DoublingBackend(std::unique_ptr<Backend> inner, std::set<const Matrix*> matrices)
      : JoiningBackend(std::move(inner)), doubled(std::move(matrices)) {}

  std::set<const Matrix*> doubled, seen;

 private:
  [[nodiscard]] bool joins(const Matrix& weight) const noexcept override { return doubled.contains(&weight); }
  Status join(const Matrix& weight, Act, Act out) override {
    seen.insert(&weight);
    return inner().scale(2.0f, out);
  }
  void join_expert(const Matrix& weight, std::uint32_t, std::uint32_t, std::span<const float>, std::span<float> product) noexcept override {
    seen.insert(&weight);
    for (float& value : product) value *= 2.0f;
  }
};

// Counts products that come alone, and those that come within fused operations.
class CountingBackend final : public backend::ForwardingBackend {
 public:
  explicit CountingBackend(std::unique_ptr<Backend> inner) : ForwardingBackend(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return own().name(); }

  std::size_t alone = 0, fused = 0;

  Status linear(const Matrix& weight, Act in, Act out) override {
    ++alone;
    return inner().linear(weight, in, out);
  }
  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) override {
    ++fused;
    return inner().linear_bias(weight, bias, in, out);
  }
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) override {
    ++fused;
    return inner().linear_residual(weight, bias, in, scratch, x);
  }
  Status linear_group(std::span<const backend::LinearPart> parts, Act in) override {
    fused += parts.size();
    return inner().linear_group(parts, in);
  }
  Status norm_linear_group(const backend::Norm& norm, Act in, Act scratch, std::span<const backend::LinearPart> parts) override {
    fused += parts.size();
    return inner().norm_linear_group(norm, in, scratch, parts);
  }
  Status activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) override {
    ++fused;
    return inner().activated_linear(of, weight, bias, out);
  }
  Status activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act scratch, Act x) override {
    ++fused;
    return inner().activated_linear_residual(of, weight, bias, scratch, x);
  }
};

// Norms of groups and convolutions are tables too, and multiply nothing; a shared expert's own gate is a matrix of one row.
bool is_matrix_of_layer(const GgufTensor& tensor) {
  if (tensor.dtype != DType::f32 || !tensor.name.starts_with("blk.") || !tensor.name.ends_with(".weight")) return false;
  const auto has = [&](std::string_view part) { return tensor.name.find(part) != std::string_view::npos; };
  return has("ffn_gate_inp_shexp") || (tensor.n_dims > 1 && !has("norm") && !has("ssm_conv1d") && !has("shortconv.conv"));
}

// The same model, but for its layers' matrices: they are half as large.
MadeModel halved(const ModelFile& file) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  for (const GgufTensor& tensor : file.tensors()) {
    must(writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
  }
  MadeModel made;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        made.bytes.insert(made.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const GgufTensor& tensor = *file.find_tensor(name);
        std::vector<std::byte> data(tensor.bytes);
        must(file.read(tensor, 0, data));
        if (!is_matrix_of_layer(tensor)) return write(data);
        std::vector<float> values(data.size() / sizeof(float));
        std::memcpy(values.data(), data.data(), data.size());
        for (float& value : values) value *= 0.5f;
        return write(std::as_bytes(std::span(values)));
      }));
  return made;
}

std::set<const Matrix*> matrices_of_layers(const Engine& engine) {
  std::set<const Matrix*> matrices;
  for (const detail::Weights& weights : parts_of(engine).model.layer_weights) {
    for (const Matrix* matrix : weights.matrices) {
      if (matrix != nullptr) matrices.insert(matrix);
    }
  }
  return matrices;
}

}  // namespace

TEST_CASE("what joins a product comes once, before bias, residual and norm", "[joins]") {
  for (const std::string& name : representative_models()) {
    DYNAMIC_SECTION(name) {
      const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
      const MadeModel half = halved(file);
      const EngineOptions options{.kv = {.dtype = DType::f32}, .tokenizer = TokenizerUse::none, .threads = 2};
      const Engine plain = must(Engine::load(file, options)), joined = must(Engine::load(half.file(), options));
      const auto& doubling = wrap_backend<DoublingBackend>(joined, matrices_of_layers(joined));
      auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
      tokens.resize(std::min<std::size_t>(tokens.size(), 20));
      // Rows one by one, and together, so that the last layer drops rows.
      for (const std::size_t chunk : {std::size_t{1}, tokens.size()}) {
        Session theirs = must(plain.session()), ours = must(joined.session());
        for (std::size_t i = 0; i < tokens.size(); i += chunk) {
          const auto piece = std::span(tokens).subspan(i, std::min(chunk, tokens.size() - i));
          REQUIRE(same_bits(must(ours.append(piece)).values, must(theirs.append(piece)).values));
        }
      }
      if (!parts_of(plain).model.spec.has_draft_heads()) CHECK(doubling.seen == doubling.doubled);  // a guess multiplies the rest
    }
  }
}

TEST_CASE("where nothing joins, fused operations stay fused; one product that is joined leaves the others as they are", "[joins]") {
  const auto tokens = made_tokens(5, 60, 4);
  const auto logits = [&](const Engine& engine) {
    Session session = must(engine.session());
    const Logits given = must(session.append(tokens));
    return std::vector<float>(given.values.begin(), given.values.end());
  };
  const Engine plain = load_golden("llama-gqa"), counted = load_golden("llama-gqa"), around = load_golden("llama-gqa");
  const auto& direct = wrap_backend<CountingBackend>(counted);
  const auto& behind = wrap_backend<CountingBackend>(around);
  auto& doubling = wrap_backend<DoublingBackend>(around, std::set<const Matrix*>{});
  const auto expected = logits(plain);
  CHECK(same_bits(logits(counted), expected));
  CHECK(same_bits(logits(around), expected));
  CHECK(behind.alone == direct.alone);
  CHECK(behind.fused == direct.fused);
  const auto before = behind.alone;
  doubling.doubled.insert(parts_of(around).model.layer_weights[0].matrix(Role::attn_output));
  CHECK(!same_bits(logits(around), expected));
  CHECK(behind.alone == before + direct.alone + 1);
}

}  // namespace test_joined_products
