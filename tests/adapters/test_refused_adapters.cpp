// Errors of adapters name the file and the tensor or key, and say what differs.
#include <ctime>

#include "adapters/written_adapter.hpp"
#include "sanitized.hpp"

namespace test_refused_adapters {

using namespace tessera;
using namespace tessera::test;
using detail::AdapterFile;
namespace fs = std::filesystem;

void check_problem(const OpenedBase& base, const fs::path& path, ErrorCode code, std::initializer_list<std::string_view> words) {
  const std::clock_t start = std::clock();  // the processor's time, which other programs on the machine do not change
  const auto read = base.read(path);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  REQUIRE_FALSE(read);
  CAPTURE(read.error().text());
  CHECK(read.error().code() == code);
  for (const std::string_view word : words) {
    CAPTURE(std::string(word));
    CHECK(read.error().text().find(word) != std::string::npos);
  }
  CHECK(read.error().text().find('\n') == std::string::npos);
  CHECK(seconds < 0.1 * (tests::kSanitized ? 20 : 1));
}

const std::string kQ = "base_model.model.model.layers.0.self_attn.q_proj";

TEST_CASE("folders that hold more than an adapter are refused by the key", "[adapters]") {
  std::ifstream list(golden_dir() / "adapters" / "refused.txt");
  int count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::string adapter, model, key;
    std::istringstream(line) >> adapter >> model >> key;
    CAPTURE(adapter);
    check_problem(OpenedBase(golden_folder(model)), adapter_folder(adapter), ErrorCode::unsupported, {adapter, "adapter_config.json", key});
    ++count;
  }
  CHECK(count >= 4);
}

TEST_CASE("keys that change what is computed are refused by name and value", "[adapters]") {
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterCopy copy("llama");
  const Json config = must(Json::parse(text_of_file(copy.path() / "adapter_config.json")));
  const auto with = [&](std::string_view key, std::string_view value) {
    Json changed = config;
    changed.set(key, must(Json::parse(value)));
    copy.write("adapter_config.json", changed.dump());
    return copy.path();
  };
  for (const std::string_view key : {"use_qalora", "use_bdlora", "new_key_of_peft"}) {
    check_problem(base, with(key, "true"), ErrorCode::unsupported, {key, "true"});
    CHECK(base.problem(with(key, "null")).empty());
  }
  check_problem(base, with("layer_replication", "[[0, 2]]"), ErrorCode::unsupported, {"layer_replication", "[[0, 2]]"});
  check_problem(base, with("modules_to_save", R"(["lm_head"])"), ErrorCode::unsupported, {"modules_to_save", "lm_head"});
  check_problem(base, with("bias", R"("all")"), ErrorCode::unsupported, {"bias", "all"});
  for (const std::string_view rank : {"0", "0.5"}) check_problem(base, with("r", rank), ErrorCode::corrupt_file, {"adapter_config.json: r", "at least 1"});
  check_problem(base, with("r", "\"4\""), ErrorCode::corrupt_file, {"adapter_config.json: r", "expected a number"});
  for (const std::string_view rank : {"7", "2147483648"}) {
    check_problem(base, with("r", rank), ErrorCode::corrupt_file, {"the matrices have rank", "states " + std::string(rank), "rank_pattern"});
  }
  check_problem(base, with("rank_pattern", R"({"q_proj": 9})"), ErrorCode::corrupt_file, {"q_proj", "states 9"});
  copy.write("adapter_config.json", R"({"peft_type": "IA3"})");
  check_problem(base, copy.path(), ErrorCode::unsupported, {"peft_type", "IA3", "LORA"});
  copy.write("adapter_config.json", R"({"peft_type": "LORA", "init_lora_weights": "pissa_niter_16"})");
  check_problem(base, copy.path(), ErrorCode::unsupported, {"init_lora_weights", "pissa_niter_16"});
  copy.write("adapter_config.json", R"({"peft_type": "LORA", "alpha_pattern": {"(": 1}})");
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"alpha_pattern", "regular expression"});
  copy.write("adapter_config.json", R"({"peft_type": "LORA", "alpha_pattern": {"(((.*)*)*[^A-Z])*[A-Z]": 1}})");
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"alpha_pattern", "matched"});
  copy.write("adapter_config.json", R"({"peft_type": "LORA", "lora_alpha": "16"})");
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_alpha", "number"});
  copy.write("adapter_config.json", R"({"peft_type": "LORA", "alora_invocation_tokens": [1, 100000000]})");
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"alora_invocation_tokens", "100000000"});
  copy.write("adapter_config.json", "[]");
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"adapter_config.json", "object"});
}

TEST_CASE("files that are missing are named", "[adapters]") {
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterCopy copy("llama");
  fs::remove(copy.path() / "adapter_config.json");
  check_problem(base, copy.path(), ErrorCode::not_found, {"adapter_config.json"});
  write_peft_config(copy.path());
  fs::remove(copy.path() / "adapter_model.safetensors");
  check_problem(base, copy.path(), ErrorCode::not_found, {"adapter_model.safetensors", "download"});
  copy.write("adapter_model.bin", "pickle");
  check_problem(base, copy.path(), ErrorCode::unsupported, {"adapter_model.bin", "pickle"});
  check_problem(base, copy.path() / "none.gguf", ErrorCode::not_found, {"none.gguf"});
  check_problem(base, golden_dir() / "folders", ErrorCode::not_found, {"adapter_config.json"});
  check_problem(base, golden_dir() / "llama3.gguf", ErrorCode::unsupported, {"llama3.gguf", "general.type", "no adapter"});
}

TEST_CASE("an adapter of another model is refused by what differs", "[adapters]") {
  // The same architecture with other shapes.
  const OpenedBase wide(golden_folder("llama-linear"));
  const std::string problem = OpenedBase(golden_folder("llama3-tied")).problem(adapter_folder("llama-rslora"));
  CAPTURE(problem);
  CHECK((problem.empty() || problem.find("another model") != std::string::npos));
  check_problem(OpenedBase(golden_folder("qwen3moe")), adapter_folder("gpt2"), ErrorCode::unsupported, {"another model"});
  check_problem(OpenedBase(golden_folder("gpt2-output")), adapter_folder("llama"), ErrorCode::unsupported, {"gpt2"});
  const AdapterCopy copy;
  write_peft_config(copy.path());
  const fs::path weights = copy.path() / "adapter_model.safetensors";
  const OpenedBase base(golden_folder("llama3-tied"));
  const auto& q = base.tensors[static_cast<std::size_t>(detail::find_adapted(base.base, "blk.0.attn_q.weight"))];
  write_safetensors(weights, {{kQ + ".lora_A.weight", {2, q.inputs}}, {kQ + ".lora_B.weight", {2048, 2}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file,
                {"blk.0.attn_q.weight", "lora_B has 2048 rows", "the model's matrix has " + std::to_string(q.outputs), "another model"});
  write_safetensors(weights, {{kQ + ".lora_A.weight", {2, q.inputs + 1}}, {kQ + ".lora_B.weight", {q.outputs, 2}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_A has " + std::to_string(q.inputs + 1) + " columns"});
  write_safetensors(weights, {{"base_model.model.model.layers.77.self_attn.q_proj.lora_A.weight", {2, q.inputs}},
                              {"base_model.model.model.layers.77.self_attn.q_proj.lora_B.weight", {q.outputs, 2}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"layers.77", "2 layers", "another model"});
  write_safetensors(weights, {{"base_model.model.model.layers.0.self_attn.r_proj.lora_A.weight", {2, q.inputs}},
                              {"base_model.model.model.layers.0.self_attn.r_proj.lora_B.weight", {q.outputs, 2}}});
  check_problem(base, copy.path(), ErrorCode::unsupported, {"r_proj", "llama"});
}

TEST_CASE("a folder's tensors must be whole and make sense", "[adapters]") {
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterCopy copy;
  write_peft_config(copy.path());
  const fs::path weights = copy.path() / "adapter_model.safetensors";
  const auto& q = base.tensors[static_cast<std::size_t>(detail::find_adapted(base.base, "blk.0.attn_q.weight"))];
  const WrittenTensor a{kQ + ".lora_A.weight", {2, q.inputs}}, b{kQ + ".lora_B.weight", {q.outputs, 2}};
  write_safetensors(weights, {a, b});
  CHECK(base.problem(copy.path()).empty());
  write_safetensors(weights, {a});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_A.weight", "no lora_B"});
  write_safetensors(weights, {b});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_B.weight", "no lora_A"});
  write_safetensors(weights, {{kQ + ".lora_magnitude_vector", {q.outputs}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_magnitude_vector"});
  write_safetensors(weights, {a, b, {kQ + ".lora_magnitude_vector", {3}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"lora_magnitude_vector", "3 numbers"});
  write_safetensors(weights, {a, {kQ + ".lora_B.weight", {q.outputs, 3}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"rank 2", "3"});
  write_safetensors(weights, {{kQ + ".lora_A.weight", {0, q.inputs}}, {kQ + ".lora_B.weight", {q.outputs, 0}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"rank is 0"});
  write_safetensors(weights, {{kQ + ".lora_A.weight", {5000, q.inputs}}, {kQ + ".lora_B.weight", {q.outputs, 5000}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"rank is 5000", "4096"});
  write_safetensors(weights, {a, b, {kQ + ".lora_A.bias", {2}}});
  check_problem(base, copy.path(), ErrorCode::unsupported, {"lora_A.bias", "lora_bias"});
  write_safetensors(weights, {a, b, {"base_model.model.lm_head.weight", {4, 4}}});
  check_problem(base, copy.path(), ErrorCode::unsupported, {"lm_head.weight", "modules_to_save"});
  write_safetensors(weights, {a, b, {"base_model.model.model.embed_tokens.base_layer.weight", {3, 3}}});
  check_problem(base, copy.path(), ErrorCode::unsupported, {"embed_tokens.base_layer.weight", "3 rows", "tokens were added"});
  write_safetensors(weights, {{"lora_unet_down.alpha", {1}}});
  check_problem(base, copy.path(), ErrorCode::unsupported, {"lora_unet_down.alpha", "base_model.model."});
  write_safetensors(weights, {{kQ + ".lora_A.weight", {2, q.inputs}, {std::numeric_limits<float>::quiet_NaN()}}, b});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"NaN"});
  write_safetensors(weights, {a, {kQ + ".lora_B.weight", {q.outputs, 2}, {std::numeric_limits<float>::infinity()}}});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"infinity"});
  write_safetensors(weights, {});
  check_problem(base, copy.path(), ErrorCode::corrupt_file, {"no tensors"});
}

TEST_CASE("an adapter in place of a model is refused by its type", "[adapters]") {
  const auto source = open_model(TESSERA_SOURCE_DIR "/models/tessera-stories-pirate.gguf");
  REQUIRE(!source);
  CHECK(source.error().code() == ErrorCode::unsupported);
  CHECK_THAT(source.error().text(), Catch::Contains("tessera-stories-pirate.gguf") && Catch::Contains("a LoRA adapter: load the model that it belongs to"));
}

TEST_CASE("what GGUF files of adapters can have wrong is named", "[adapters]") {
  const AdapterCopy place;
  const fs::path path = place.path() / "a.gguf";
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterFile file = must(base.read(adapter_folder("llama")));
  write_gguf_adapter(path, file, base, {.architecture = "qwen3"});
  check_problem(base, path, ErrorCode::unsupported, {"a.gguf", "\"qwen3\"", "\"llama\"", "another model"});
  write_gguf_adapter(path, file, base, {.kind = "control_vector"});
  check_problem(base, path, ErrorCode::unsupported, {"adapter.type", "control_vector"});
  write_gguf_adapter(path, file, base, {.type = "model"});
  check_problem(base, path, ErrorCode::unsupported, {"general.type", "model"});
  write_gguf_adapter(path, file, base, {.further_tensors = {"blk.0.attn_norm.weight"}});
  check_problem(base, path, ErrorCode::unsupported, {"blk.0.attn_norm.weight", "norm"});
  write_gguf_adapter(path, file, base, {.further_tensors = {"blk.0.attn_q.bias.lora_c"}});
  check_problem(base, path, ErrorCode::unsupported, {"lora_c", ".lora_a"});
  write_gguf_adapter(path, file, base, {.further_tensors = {"blk.9.attn_q.weight.lora_a"}});
  check_problem(base, path, ErrorCode::corrupt_file, {"blk.9.attn_q.weight.lora_a", "no .lora_b"});
  write_gguf_adapter(path, file, base, {.further_tensors = {"blk.9.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_b"}});
  check_problem(base, path, ErrorCode::unsupported, {"blk.9.attn_q.weight", "another model"});
  write_gguf_adapter(path, file, base, {.keeps = [](const std::string& name) { return name != "blk.1.attn_k.weight.lora_b"; }});
  check_problem(base, path, ErrorCode::corrupt_file, {"blk.1.attn_k.weight.lora_a", "no .lora_b"});
  write_gguf_adapter(path, file, base, {.keeps = [](const std::string&) { return false; }});
  check_problem(base, path, ErrorCode::corrupt_file, {"no tensors"});
  write_gguf_adapter(path, file, base, {.invocation = {1, 1'000'000}});
  check_problem(base, path, ErrorCode::corrupt_file, {"1000000"});
  write_gguf_adapter(path, file, base, {.alpha = std::numeric_limits<float>::infinity()});
  check_problem(base, path, ErrorCode::corrupt_file, {"infinity"});
}

TEST_CASE("reading an adapter can be cancelled", "[adapters]") {
  const OpenedBase base(golden_folder("llama3-tied"));
  std::stop_source stop;
  stop.request_stop();
  const auto read = detail::read_adapter(adapter_folder("llama"), base.base, stop.get_token());
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == ErrorCode::cancelled);
}

}  // namespace test_refused_adapters
