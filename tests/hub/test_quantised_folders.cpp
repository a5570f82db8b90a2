// Folders whose weights are quantised: each method of quantization_config, folders whose layers differ, and what is refused.
#include <cmath>
#include <utility>
#include <vector>

#include "hub/folder.hpp"

namespace test_quantised_folders {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

fs::path quantised_folder(std::string_view name) { return golden_dir() / "quantised" / name; }

// Returns the largest difference of a folder's logits from those of the numbers that it stands for.
float difference_of(const fs::path& folder) {
  const auto tokens = read_tokens(folder / "tokens.txt");
  const auto expected = read_floats(folder / "logits.f32");
  const Engine engine = must(Engine::load(folder, {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  const auto logits = all_logits(session, tokens, tokens.size());
  REQUIRE(logits.size() >= expected.size());
  const auto last = std::span(logits).last(expected.size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, std::fabs(last[i] - expected[i]));
  return difference;
}

TEST_CASE("logits of quantised folders are those of the numbers that they stand for", "[hub]") {
  const std::pair<std::string_view, DType> forms[] = {
      {"gptq", DType::q4_0}, {"gptq-zeros", DType::q5_0}, {"gptq-act-order", DType::f16}, {"awq", DType::q5_0}, {"awq-gemv", DType::q5_0},
      {"compressed-tensors", DType::q5_0}, {"int-quantized", DType::q8_0}, {"fp8", DType::bf16}, {"nvfp4", DType::nvfp4}, {"nf4", DType::bf16},
      {"bnb8", DType::f32}, {"mxfp4", DType::bf16}, {"squeezellm", DType::f16}};
  for (const auto& [name, form] : forms) {
    DYNAMIC_SECTION(name) {
      CHECK(must(open_model(quantised_folder(name)))->find_tensor("blk.0.attn_q.weight")->dtype == form);
      const float difference = difference_of(quantised_folder(name));
      INFO("largest difference " << difference);
      CHECK(difference <= 1e-4f);
    }
  }
  CHECK(must(open_model(quantised_folder("mxfp4")))->find_tensor("blk.1.ffn_up_exps.weight")->dtype == DType::mxfp4);
}

TEST_CASE("layers of a folder may be quantised in different ways", "[hub]") {
  using Forms = std::vector<std::pair<std::string_view, DType>>;
  const std::pair<std::string_view, Forms> folders[] = {
      {"gptq-dynamic", {{"attn_q", DType::q4_0}, {"attn_k", DType::q8_0}, {"attn_v", DType::q5_0}, {"attn_output", DType::q4_0}}},
      {"several-groups", {{"attn_q", DType::q5_0}, {"attn_k", DType::q8_0}, {"attn_v", DType::bf16}, {"attn_output", DType::nvfp4}}},
      {"modelopt", {{"attn_q", DType::nvfp4}, {"attn_k", DType::bf16}, {"attn_v", DType::nvfp4}, {"attn_output", DType::bf16}}}};
  for (const auto& [name, forms] : folders) {
    DYNAMIC_SECTION(name) {
      const auto source = must(open_model(quantised_folder(name)));
      for (const auto& [tensor, form] : forms) {
        CAPTURE(tensor);
        CHECK(source->find_tensor("blk.0." + std::string(tensor) + ".weight")->dtype == form);
      }
      const float difference = difference_of(quantised_folder(name));
      INFO("largest difference " << difference);
      CHECK(difference <= 1e-4f);
    }
  }
}

TEST_CASE("a method or an option that is not read is refused by its key", "[hub]") {
  const std::pair<std::string_view, std::string_view> refused[] = {
      {R"({"quant_method": "zip"})", "quant_method: the value is \"zip\"; tessera reads gptq, awq"},
      {R"({"quant_method": "gptq", "bits": 5})", "bits: the value is \"5\", which tessera does not read"},
      {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"})", "checkpoint_format: the value is \"marlin\""},
      {R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})", "is_marlin_format: the value is \"true\""},
      {R"({"quant_method": "gptq", "bits": 4, "pack_dtype": "int8"})", "pack_dtype: the value is \"int8\""},
      {R"({"quant_method": "gptq", "bits": 4, "rotation": "hadamard"})", "rotation: the value is \"hadamard\""},
      {R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*": {"rotation": "random"}}})", "dynamic: the value is \"+:.*: rotation\""},
      {R"({"quant_method": "awq", "bits": 3})", "bits: the value is \"3\""},
      {R"({"quant_method": "awq", "bits": 4, "version": "gemv_fast"})", "version: the value is \"gemv_fast\""},
      {R"({"quant_method": "awq", "bits": 4, "backend": "llm-awq"})", "backend: the value is \"llm-awq\""},
      {R"({"quant_method": "squeezellm", "wbits": 2})", "wbits: the value is \"2\""},
      {R"({"quant_method": "compressed-tensors", "format": "marlin-24"})", "format: the value is \"marlin-24\""},
      {R"({"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {"g": {"format": "mxfp6-pack-quantized"}}})", "format: the value is \"mxfp6-pack-quantized\""},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "sparsity_config": {"format": "sparse-bitmask"}})", "sparsity_config.format: the value is \"sparse-bitmask\""},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "transform_config": {"config_groups": {"u": {"type": "hadamard"}}}})", "transform_config: the value is \"rotations\""},
      {R"({"quant_method": "fp8", "fmt": "e3m4"})", "fmt: the value is \"e3m4\""},
      {R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"})", "quant_algo: the value is \"W4A16_AWQ\""},
      {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"l": {"quant_algo": "NVFP4_SVD"}}})", "quantized_layers: the value is \"NVFP4_SVD\""},
      {R"({"quant_method": "bitsandbytes"})", "quant_method: the value is \"bitsandbytes without load_in_4bit or load_in_8bit\""},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_storage": "bfloat16"})", "bnb_4bit_quant_storage: the value is \"bfloat16\""}};
  for (const auto& [configuration, wanted] : refused) {
    ChangedFolder folder("llama-bias");
    folder.replace("config.json", "{", "{\"quantization_config\": " + std::string(configuration) + ",");
    const std::string text = problem(folder.path());
    CAPTURE(configuration, text);
    CHECK(text.find("config.json: quantization_config." + std::string(wanted)) != std::string::npos);
  }
}

TEST_CASE("older folders name their method in a file of its own", "[hub]") {
  ChangedFolder folder("llama-bias");
  const std::pair<std::string_view, std::string_view> files[] = {{"quantize_config.json", R"({"bits": 5, "group_size": 128, "desc_act": false})"},
                                                                 {"quant_config.json", R"({"w_bit": 5, "q_group_size": 128, "version": "GEMM"})"},
                                                                 {"hf_quant_config.json", R"({"quantization": {"quant_algo": "INT5"}})"}};
  for (const auto& [file, text] : files) {
    folder.write(file, text);
    CAPTURE(file);
    CHECK(problem(folder.path()).find("the value is \"") != std::string::npos);
    fs::remove(folder.path() / file);
  }
  fs::remove(folder.path() / "config.json");
  folder.write("params.json", "{}");
  CHECK(problem(folder.path()).find("Mistral's own layout") != std::string::npos);
}

TEST_CASE("a quantised matrix without its other tensors is refused by its name", "[hub]") {
  const std::pair<std::string_view, std::string_view> missing[] = {
      {"gptq", "q_proj.qzeros"}, {"awq", "q_proj.scales"}, {"compressed-tensors", "q_proj.weight_scale"}, {"fp8", "q_proj.weight_scale_inv"},
      {"nvfp4", "q_proj.weight_global_scale"}, {"nf4", "q_proj.weight.absmax"}, {"bnb8", "q_proj.SCB"}, {"squeezellm", "q_proj.lookup_table"}};
  for (const auto& [name, tensor] : missing) {
    ChangedFolder folder("../quantised/" + std::string(name));
    std::string other(tensor);
    other.back() = '_';
    folder.replace("model.safetensors", tensor, other);
    const std::string text = problem(folder.path());
    CAPTURE(name, text);
    CHECK(text.find("tensor model.layers.0.self_attn.q_proj.") != std::string::npos);
    CHECK(text.find("belong") != std::string::npos);
  }
}

}  // namespace test_quantised_folders
