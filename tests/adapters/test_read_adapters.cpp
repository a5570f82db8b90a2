// Adapters are read from both kinds of files into the same AdapterFile, with all that the files say.
#include <cmath>

#include "adapters/written_adapter.hpp"

namespace test_read_adapters {

using namespace tessera;
using namespace tessera::test;
using detail::AdapterFile;
using detail::AdapterTensor;
namespace fs = std::filesystem;

// The adapter's change of a tensor; nullptr: there is none.
const AdapterTensor* change_of(const AdapterFile& file, const OpenedBase& base, std::string_view name, bool is_embedding = false) {
  for (const AdapterTensor& tensor : file.tensors) {
    if (base.tensors[tensor.tensor].name == name && tensor.is_embedding == is_embedding) return &tensor;
  }
  return nullptr;
}

const AdapterTensor& must_change(const AdapterFile& file, const OpenedBase& base, std::string_view name, bool is_embedding = false) {
  const AdapterTensor* found = change_of(file, base, name, is_embedding);
  CAPTURE(std::string(name));
  REQUIRE(found != nullptr);
  return *found;
}

TEST_CASE("the matrices that an adapter may change are listed by name, and nothing else", "[adapters]") {
  const OpenedBase base(golden_folder("qwen35"));
  CHECK(std::ranges::is_sorted(base.tensors, {}, &detail::AdaptedTensor::name));
  std::string names;
  for (const auto& tensor : base.tensors) names += tensor.name + " ";
  CHECK(names.find("token_embd.weight") != std::string::npos);
  CHECK(names.find("ssm_out.weight") != std::string::npos);
  CHECK(names.find("norm") == std::string::npos);
  CHECK(names.find("conv1d") == std::string::npos);
  CHECK(names.find("ssm_a ") == std::string::npos);
  CHECK(names.find("bias") == std::string::npos);
}

TEST_CASE("ranks and scales come from the patterns, the first that fits", "[adapters]") {
  const OpenedBase base(golden_folder("llama-bias"));
  const AdapterFile file = must(base.read(adapter_folder("llama-patterns")));
  CHECK(file.name == "llama-patterns");
  const Json config = must(Json::parse(text_of_file(adapter_folder("llama-patterns") / "adapter_config.json")));
  const double alpha = static_cast<double>(*config.find("lora_alpha")->integer());
  CHECK(alpha != 6.0);
  CHECK(must_change(file, base, "blk.0.attn_q.weight").rank == 2);
  CHECK(must_change(file, base, "blk.1.ffn_down.weight").rank == 6);
  CHECK(must_change(file, base, "blk.1.attn_v.weight").rank == 5);
  CHECK(must_change(file, base, "blk.0.attn_v.weight").rank == 1);
  // PEFT sorts the names when it writes them.
  const AdapterTensor& gate = must_change(file, base, "blk.0.ffn_gate.weight");
  CHECK(gate.scale == 1.0f / static_cast<float>(gate.rank));
  const AdapterTensor& output = must_change(file, base, "blk.0.attn_output.weight");
  CHECK(output.scale == 2.0f / static_cast<float>(output.rank));
  // "proj" is a whole component of a name, which no module ends with.
  const AdapterTensor& up = must_change(file, base, "blk.0.ffn_up.weight");
  CHECK(up.scale == static_cast<float>(alpha / up.rank));
}

TEST_CASE("rsLoRA divides alpha by the root of the rank", "[adapters]") {
  const OpenedBase base(golden_folder("llama-linear"));
  const AdapterFile file = must(base.read(adapter_folder("llama-rslora")));
  const AdapterTensor& up = must_change(file, base, "blk.1.ffn_up.weight");
  CHECK(up.rank == 5);
  CHECK(up.scale == static_cast<float>(3.0 / std::sqrt(5.0)));
}

TEST_CASE("numbers stay in the format of the file", "[adapters]") {
  CHECK(must(OpenedBase(golden_folder("llama-bias")).read(adapter_folder("llama-f16"))).tensors.front().dtype == DType::f16);
  CHECK(must(OpenedBase(golden_folder("llama-linear")).read(adapter_folder("llama-bf16"))).tensors.front().dtype == DType::bf16);
}

TEST_CASE("an adapter of the embeddings has a row for each token, and the head of a tied model is the table as a product", "[adapters]") {
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterFile file = must(base.read(adapter_folder("llama-both-tied")));
  REQUIRE(file.tensors.size() == 2);
  const AdapterTensor &head = must_change(file, base, "token_embd.weight"), &table = must_change(file, base, "token_embd.weight", true);
  const detail::AdaptedTensor& own = base.tensors[table.tensor];
  CHECK(table.a.size() == own.outputs * table.rank * sizeof(float));
  CHECK(table.b.size() == own.inputs * table.rank * sizeof(float));
  CHECK(head.a.size() == own.inputs * head.rank * sizeof(float));
  // The file has the head's matrices spelled out as those of the table, turned: A of the head is B^T, whose rows the table's `b` has as columns.
  std::vector<float> b(own.inputs * table.rank), a(b.size());
  std::memcpy(b.data(), table.b.data(), table.b.size());
  std::memcpy(a.data(), head.a.data(), head.a.size());
  for (std::uint64_t i = 0; i < own.inputs; ++i) {
    for (std::uint32_t r = 0; r < table.rank; ++r) REQUIRE(a[r * own.inputs + i] == b[i * table.rank + r]);
  }
}

TEST_CASE("experts have a matrix each, from one parameter or from a module for each expert", "[adapters]") {
  const OpenedBase base(golden_folder("qwen3moe"));
  const AdapterFile all = must(base.read(adapter_folder("qwen3moe"))), each = must(base.read(adapter_folder("qwen3moe-each")));
  for (const AdapterFile* file : {&all, &each}) {
    const AdapterTensor& gate = must_change(*file, base, "blk.0.ffn_gate_exps.weight");
    const detail::AdaptedTensor& own = base.tensors[gate.tensor];
    CHECK(own.count > 1);
    CHECK(gate.a_count == own.count);
    CHECK(gate.b_count == own.count);
    CHECK(gate.b.size() == own.count * own.outputs * gate.rank * sizeof(float));
  }
  CHECK(must_change(all, base, "blk.0.ffn_gate_exps.weight").rank == 5);
}

TEST_CASE("experts of other ranks and scales stand in one list of matrices", "[adapters]") {
  const AdapterCopy place;
  const OpenedBase base(golden_folder("qwen3moe"));
  const auto& gate = base.tensors[static_cast<std::size_t>(detail::find_adapted(base.base, "blk.1.ffn_gate_exps.weight"))];
  const std::string name = "base_model.model.model.layers.1.mlp.experts.";
  write_peft_config(place.path(), R"(, "alpha_pattern": {"experts\\.1\\.gate_proj": 8}, "rank_pattern": {"experts\\.0\\.gate_proj": 4})");
  write_safetensors(place.path() / "adapter_model.safetensors", {{name + "0.gate_proj.lora_A.weight", {4, gate.inputs}},
                                                                 {name + "0.gate_proj.lora_B.weight", {gate.outputs, 4}},
                                                                 {name + "1.gate_proj.lora_A.weight", {2, gate.inputs}},
                                                                 {name + "1.gate_proj.lora_B.weight", {gate.outputs, 2}}});
  const AdapterFile file = must(base.read(place.path()));
  const AdapterTensor& made = must_change(file, base, "blk.1.ffn_gate_exps.weight");
  CHECK(made.rank == 4);
  CHECK(made.scale == 1.0f);
  std::vector<float> b(made.b.size() / sizeof(float));
  std::memcpy(b.data(), made.b.data(), made.b.size());
  const float* second = b.data() + gate.outputs * 4;  // of the second expert, whose scale is 8 / 2
  CHECK(b[1] == 0.01f);
  CHECK(second[1] == 4 * 0.01f);
  CHECK(second[2] == 0.0f);
  CHECK(second[4] == 4 * 0.02f);
}

TEST_CASE("the heads of latent attention share A of their values and B of their keys", "[adapters]") {
  const OpenedBase base(golden_folder("deepseek-v3"));
  const AdapterFile file = must(base.read(adapter_folder("deepseek-v3")));
  const AdapterTensor &keys = must_change(file, base, "blk.0.attn_k_b.weight"), &values = must_change(file, base, "blk.0.attn_v_b.weight");
  CHECK(keys.a_count == base.tensors[keys.tensor].count);
  CHECK(keys.b_count == 1);
  CHECK(values.a_count == 1);
  CHECK(values.b_count == base.tensors[values.tensor].count);
}

TEST_CASE("an adapter has the same content in GGUF as in a folder of PEFT", "[adapters]") {
  const AdapterCopy place;
  for (const auto& [adapter, model, architecture] : {std::tuple{"llama", "llama3-tied", "llama"},
                                                     {"llama-embed", "llama-linear", "llama"},
                                                     {"llama-f16", "llama-bias", "llama"},
                                                     {"mixtral-down", "mixtral", "llama"},
                                                     {"deepseek-v3", "deepseek-v3", "deepseek2"}}) {
    CAPTURE(adapter);
    const OpenedBase base(golden_folder(model));
    const AdapterFile peft = must(base.read(adapter_folder(adapter)));
    // A file has one alpha for all ranks.
    if (std::ranges::any_of(peft.tensors, [&](const AdapterTensor& t) { return t.rank != peft.tensors.front().rank; })) continue;
    const float alpha = peft.tensors.front().scale * static_cast<float>(peft.tensors.front().rank);
    write_gguf_adapter(place.path() / "a.gguf", peft, base, {.architecture = architecture, .alpha = alpha, .dtype = peft.tensors.front().dtype});
    CHECK(detail::is_adapter(place.path() / "a.gguf"));
    const AdapterFile gguf = must(base.read(place.path() / "a.gguf"));
    CHECK(gguf.name == "written");
    CHECK(gguf.base == "the base");
    REQUIRE(gguf.tensors.size() == peft.tensors.size());
    CHECK(gguf.content == peft.content);
  }
}

TEST_CASE("an adapter without alpha has scale 1, and one with invocation tokens has these", "[adapters]") {
  const AdapterCopy place;
  const OpenedBase base(golden_folder("llama3-tied"));
  AdapterFile file = must(base.read(adapter_folder("llama")));
  write_gguf_adapter(place.path() / "a.gguf", file, base, {.invocation = {5, 6, 7}});
  const AdapterFile read = must(base.read(place.path() / "a.gguf"));
  CHECK(read.tensors.front().scale == 1.0f);
  CHECK(read.invocation == std::vector<Token>{5, 6, 7});
  CHECK(read.content != file.content);
  CHECK(must(base.read(adapter_folder("llama-alora"))).invocation == std::vector<Token>{7, 11, 5});
}

TEST_CASE("quantised matrices of an adapter are decoded", "[adapters]") {
  const AdapterCopy place;
  const OpenedBase base(golden_folder("gemma2"));
  const AdapterFile file = must(base.read(adapter_folder("gemma2")));
  write_gguf_adapter(place.path() / "a.gguf", file, base, {.architecture = "gemma2", .dtype = DType::q8_0});
  const AdapterFile read = must(base.read(place.path() / "a.gguf"));
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    if (base.tensors[file.tensors[i].tensor].inputs % 32 != 0) continue;
    REQUIRE(read.tensors[i].dtype == DType::f32);
    std::vector<float> expected(file.tensors[i].a.size() / sizeof(float)), found(expected.size());
    std::memcpy(expected.data(), file.tensors[i].a.data(), file.tensors[i].a.size());
    std::memcpy(found.data(), read.tensors[i].a.data(), read.tensors[i].a.size());
    for (std::size_t k = 0; k < expected.size(); ++k) REQUIRE(std::fabs(found[k] - expected[k]) <= 0.02f);
  }
}

TEST_CASE("a path is an adapter by its content", "[adapters]") {
  CHECK(detail::is_adapter(adapter_folder("llama")));
  CHECK(detail::is_adapter(adapter_folder("llama") / "adapter_config.json"));
  CHECK(detail::is_adapter(adapter_folder("llama") / "adapter_model.safetensors"));
  CHECK_FALSE(detail::is_adapter(golden_folder("llama3-tied")));
  CHECK_FALSE(detail::is_adapter(golden_dir() / "llama3.gguf"));
  CHECK_FALSE(detail::is_adapter(golden_dir() / "nothing"));
  const OpenedBase base(golden_folder("llama3-tied"));
  CHECK(must(base.read(adapter_folder("llama") / "adapter_model.safetensors")).content == must(base.read(adapter_folder("llama"))).content);
}

TEST_CASE("every adapter of PEFT that is not to be refused is read for its model", "[adapters]") {
  std::size_t count = 0;
  for (const AdapterGolden& golden : adapter_goldens()) {
    for (const auto& [name, scale] : golden.adapters) {
      if (name.find("embed-dora") != std::string::npos) continue;
      CAPTURE(name);
      const OpenedBase base(golden_folder(golden.base));
      const AdapterFile file = must(base.read(adapter_folder(name)));
      for (const AdapterTensor& tensor : file.tensors) {
        const detail::AdaptedTensor& own = base.tensors[tensor.tensor];
        const std::uint64_t size = tensor.dtype == DType::f32 ? 4 : 2;
        if (!tensor.is_embedding) {
          REQUIRE(tensor.a.size() == tensor.a_count * tensor.rank * own.inputs * size);
          REQUIRE(tensor.b.size() == tensor.b_count * tensor.rank * own.outputs * size);
        }
        REQUIRE((tensor.lengths.empty() || tensor.lengths.size() == own.outputs * own.count));
      }
      ++count;
    }
  }
  CHECK(count > 40);
}

}  // namespace test_read_adapters
