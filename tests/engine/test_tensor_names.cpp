// Tensors have the library's names inside, and their file's names in errors.
#include <string>
#include <vector>

#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/files/model_source.hpp>

#include "catch.hpp"
#include "core/error.hpp"
#include "engine/models.hpp"
#include "model/load/roles.hpp"

namespace test_tensor_names {

using namespace tessera;
using namespace tessera::test;

namespace {

// A model whose files call the tensor NAME "<NAME>\n", and that a test can change.
class RenamedSource final : public ModelSource {
 public:
  explicit RenamedSource(const std::string& model) : file_(must(ModelFile::open(golden_dir() / (model + ".gguf")))) {
    tensors_.assign(file_.tensors().begin(), file_.tensors().end());
  }

  TensorInfo& at(std::string_view name) { return *std::ranges::find(tensors_, name, &TensorInfo::name); }
  void remove(std::string_view name) {
    std::erase_if(tensors_, [&](const TensorInfo& tensor) { return tensor.name == name; });
  }

  const Settings& settings() const noexcept override { return file_.settings(); }
  std::span<const TensorInfo> tensors() const noexcept override { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    const auto at = std::ranges::find(tensors_, name, &TensorInfo::name);
    return at == tensors_.end() ? nullptr : &*at;
  }
  Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    TESSERA_TRY_STATUS(file_.read(*file_.find_tensor(tensor.name), offset, out));
    if (tensor.name == zeros) std::ranges::fill(out, std::byte());
    return {};
  }
  std::string called(std::string_view name) const override { return "<" + std::string(name) + ">\n"; }
  std::uint64_t memory_bytes() const noexcept override { return file_.memory_bytes(); }

  std::string_view zeros;  // the tensor whose values are all 0

 private:
  ModelFile file_;
  std::vector<TensorInfo> tensors_;
};

std::string refusal(const ModelSource& source) {
  const auto engine = Engine::load(source, {.tokenizer = TokenizerUse::none});
  return engine ? std::string() : engine.error().text();
}

}  // namespace

TEST_CASE("an error about a tensor names the tensor as its file does", "[source]") {
  const auto after = [](const std::string& model, const auto& change) {
    RenamedSource source(model);
    change(source);
    return refusal(source);
  };
  const std::string llama = "llama-gqa", key = "blk.0.attn_k.weight";
  CHECK(after(llama, [](RenamedSource&) {}).empty());
  CHECK_THAT(after(llama, [&](RenamedSource& source) { source.remove(key); }),
             Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_k.weight>?: architecture"));
  CHECK_THAT(after(llama,
                   [&](RenamedSource& source) {
                     source.at(key).dims[1] = 3, source.at(key).bytes = source.at(key).dims[0] * 3 * sizeof(float);
                   }),
             Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_k.weight>? (offset") &&
                 Catch::Matchers::ContainsSubstring("its shape is"));
  CHECK_THAT(after(llama, [&](RenamedSource& source) { source.at(key).bytes += 1; }),
             Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_k.weight>? (offset"));
  CHECK_THAT(after(llama, [&](RenamedSource& source) { source.at(key).dtype = static_cast<DType>(99); }),
             Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_k.weight>? (offset") &&
                 Catch::Matchers::ContainsSubstring("its type is"));
  CHECK_THAT(after(llama, [&](RenamedSource& source) { source.at(key).name = "blk.0.strange.weight"; }),
             Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_k.weight>?"));
  CHECK_THAT(
      after("gemma3", [&](RenamedSource& source) { source.at("blk.0.attn_q_norm.weight").name = "blk.0.ffn_up.bias"; }),
      Catch::Matchers::ContainsSubstring("tensor <blk.0.attn_q_norm.weight>?") &&
          Catch::Matchers::ContainsSubstring("it has <blk.0.ffn_up.bias>?, which"));
  CHECK_THAT(after(llama, [](RenamedSource& source) { source.remove("token_embd.weight"); }),
             Catch::Matchers::ContainsSubstring("tensor <token_embd.weight>?"));
  CHECK_THAT(after("phi3-long", [](RenamedSource& source) { source.remove("rope_factors_long.weight"); }),
             Catch::Matchers::ContainsSubstring("<rope_factors_long.weight>?"));
  CHECK_THAT(after("llama3", [](RenamedSource& source) { source.zeros = "rope_freqs.weight"; }),
             Catch::Matchers::ContainsSubstring("tensor <rope_freqs.weight>?: factor 0 is 0"));
}

TEST_CASE("the name of a layer's tensor says the layer, and a model's says none", "[roles]") {
  for (const RoleRow& row : kRoleTable) {
    for (const std::uint32_t layer : {0u, 12u, 4294967295u}) {
      const std::string name = row.tensor_name(layer);
      CAPTURE(name);
      CHECK(detail::layer_of(name) == (row.owner == Owner::model ? std::nullopt : std::optional(layer)));
      CHECK(name.ends_with(row.name));
    }
  }
  CHECK(row_of(Role::attn_q).tensor_name(3) == "blk.3.attn_q.weight");
  CHECK(row_of(Role::output).tensor_name() == "output.weight");
  for (const char* none : {"", "blk.", "blk..x", "blk.1", "blk.x.1", "blk.4294967296.x", "blk.-1.x", " blk.1.x"}) {
    CAPTURE(none);
    CHECK_FALSE(detail::layer_of(none));
  }
}

TEST_CASE("a row of the table is marked as a norm if its name says so", "[roles]") {
  for (const RoleRow& row : kRoleTable) {
    CAPTURE(row.name);
    // The name of the router's norm, ffn_gate_inp.scale, does not say it.
    const bool named = row.name.find("norm") != std::string_view::npos && row.name.ends_with(".weight");
    CHECK(row.is_norm == (named || row.role == Role::router_norm || row.role == Role::ffn_norm_late));
  }
}

}  // namespace test_tensor_names
