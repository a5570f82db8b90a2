// Models as transformers saves them: a folder is loaded as it is, and its logits are those of transformers.
#include <cmath>

#include "hub/folder.hpp"

namespace test_hub_models {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

TEST_CASE("logits of folders agree with transformers for every type of model", "[hub]") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(golden_dir() / "folders")) {
    ++count;
    DYNAMIC_SECTION(entry.path().filename().string()) {
      const auto tokens = read_tokens(entry.path() / "tokens.txt");
      const auto expected = read_floats(entry.path() / "logits.f32");
      const Engine engine = must(Engine::load(entry.path(), {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2}));
      Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
      const auto logits = all_logits(session, tokens, tokens.size());
      REQUIRE(logits.size() >= expected.size());
      const auto last = std::span(logits).last(expected.size());
      float difference = 0.0f;
      for (std::size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, std::fabs(last[i] - expected[i]));
      INFO("largest difference " << difference);
      CHECK(difference <= 1e-4f);
      CHECK(engine.plan().weights > 0);
    }
  }
  CHECK(count >= 50);
}

TEST_CASE("a tensor that is read in pieces has the bytes of one that is read whole", "[hub]") {
  for (const std::string_view name : {"llama-bias", "gpt2-output", "gpt-oss", "qwen35", "qwen3next", "deepseek-v3", "falcon-40b", "mixtral", "../quantised/gptq",
                                      "../quantised/mxfp4", "../quantised/nf4", "../quantised/nvfp4", "../quantised/awq-gemv", "../quantised/squeezellm"}) {
    const auto source = must(open_model(golden_folder(name)));
    for (const TensorInfo& tensor : source->tensors()) {
      CAPTURE(name, std::string(tensor.name));
      std::vector<std::byte> whole(tensor.bytes), pieces(tensor.bytes);
      must(source->read(tensor, 0, whole));
      std::size_t size = 1;
      for (std::size_t at = 0; at < pieces.size(); at += size) {
        size = std::min(size % 97 * 3 + 1, pieces.size() - at);
        must(source->read(tensor, at, std::span(pieces).subspan(at, size)));
      }
      REQUIRE(whole == pieces);
      CHECK_FALSE(source->read(tensor, tensor.bytes, std::span(pieces).first(1)));
    }
  }
}

TEST_CASE("a folder's settings are found by our names, and errors name its keys", "[hub]") {
  ChangedFolder folder("gemma3");
  folder.write("generation_config.json", R"({"eos_token_id": [1, 106], "temperature": 0.7, "top_k": 64, "top_p": 0.95})");
  folder.write("tokenizer_config.json", R"({"bos_token": {"content": "<bos>"}, "add_bos_token": true, "chat_template": "{{ messages }}",
    "added_tokens_decoder": {"2": {"content": "<bos>"}}})");
  const auto source = must(open_model(folder.path()));
  const Settings& settings = source->settings();
  CHECK(must(settings.string(Setting::architecture)) == "gemma3");
  CHECK(must(settings.unsigned_integer(Setting::d_model)) == 32);
  CHECK(must(settings.number(Setting::windowed_rope_theta)) == 10000.0);
  CHECK(must(settings.list(Setting::window_pattern)).size() == 7);
  CHECK(must(settings.unsigned_integer(Setting::bos_token)) == 2);
  CHECK(must(settings.boolean(Setting::add_bos)));
  CHECK(must(settings.list(Setting::end_tokens)).integer(1) == 106);
  CHECK(must(settings.number(Setting::sampling_temperature)) == 0.7);
  CHECK(must(settings.string(Setting::chat_template)) == "{{ messages }}");
  CHECK(settings.called(Setting::n_layers) == "num_hidden_layers");
  CHECK(settings.place(Setting::n_layers) == "config.json: num_hidden_layers");
  CHECK(source->called("blk.3.attn_q.weight") == "model.layers.3.self_attn.q_proj.weight");
}

std::vector<std::uint32_t> windows_of(const ModelSpec& spec) {
  std::vector<std::uint32_t> windows;
  for (const LayerSpec& layer : spec.layers) windows.push_back(layer.window);
  return windows;
}

ModelSpec spec_of(const fs::path& folder) { return must(Engine::load(folder, {.tokenizer = TokenizerUse::none})).spec(); }

TEST_CASE("a folder says of each layer whether it has a window and a rope", "[hub]") {
  SECTION("SmolLM3's no_rope_layers") {
    ChangedFolder folder("smollm3");
    folder.replace("config.json", "1,\n    1,\n    1,\n    0", "0,\n    1,\n    0,\n    1");
    const ModelSpec spec = spec_of(folder.path());
    for (std::size_t i = 0; i < 4; ++i) CHECK((spec.layers[i].rope == kNoRope) == (i % 2 == 0));
    folder.replace("config.json", "0,\n    1,\n    0,\n    1", "0,\n    1,\n    0");
    const auto wrong = Engine::load(folder.path(), {.tokenizer = TokenizerUse::none});
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().text().find("config.json: no_rope_layers: expected an array of 4 numbers, one per layer") != std::string::npos);
  }
  SECTION("SmolLM3's interval") {
    ChangedFolder folder("smollm3");
    folder.replace("config.json", "\"no_rope_layer_interval\": 4", "\"no_rope_layer_interval\": 2");
    folder.replace("config.json", "\"no_rope_layers\"", "\"other\"");
    const ModelSpec spec = spec_of(folder.path());
    for (std::size_t i = 0; i < 4; ++i) CHECK((spec.layers[i].rope == kNoRope) == (i % 2 == 1));
  }
  SECTION("Qwen 2's use_sliding_window") {
    ChangedFolder folder("qwen2-yarn");
    folder.replace("config.json", "\"sliding_window\": null", "\"sliding_window\": 9");
    CHECK(windows_of(spec_of(folder.path())) == std::vector<std::uint32_t>{0, 0});
    folder.replace("config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true");
    folder.replace("config.json", "\"layer_types\"", "\"other\"");
    folder.replace("config.json", "\"max_window_layers\": 28", "\"max_window_layers\": 1");
    CHECK(windows_of(spec_of(folder.path())) == std::vector<std::uint32_t>{0, 9});
  }
  SECTION("layer_types in any order") {
    ChangedFolder folder("mistral");
    folder.replace("config.json", "{", "{\"layer_types\": [\"full_attention\", \"sliding_attention\"],");
    const auto windows = windows_of(spec_of(folder.path()));
    CHECK(windows.front() == 0);
    CHECK(windows.back() != 0);
  }
}

// The folders have the weights of the files in data/mtp, from the same model and head (make_mtp_goldens.py).
TEST_CASE("draft heads of folders are those of GGUF files", "[hub]") {
  for (const char* name : {"qwen35"}) {
    CAPTURE(name);
    const auto folder = must(open_model(golden_dir() / "mtp" / (std::string(name) + "-folder")));
    const auto file = must(open_model(golden_dir() / "mtp" / (std::string(name) + ".gguf")));
    CHECK(must(folder->settings().unsigned_integer(Setting::n_further_layers)) == 1);
    for (const TensorInfo& tensor : file->tensors()) {
      if (!tensor.name.starts_with("blk.2.")) continue;  // the head's layer
      CAPTURE(tensor.name);
      const TensorInfo* own = folder->find_tensor(tensor.name);
      REQUIRE(own != nullptr);
      REQUIRE(own->bytes == tensor.bytes);
      std::vector<std::byte> expected(tensor.bytes), got(tensor.bytes);
      REQUIRE(file->read(tensor, 0, expected));
      REQUIRE(folder->read(*own, 0, got));
      CHECK(got == expected);
    }
    CHECK(folder->tensors().size() == file->tensors().size());
    const Engine engine = must(Engine::load(golden_dir() / "mtp" / (std::string(name) + "-folder"), {.tokenizer = TokenizerUse::none, .mtp = MtpHeads::load}));
    CHECK(engine.spec().draft_heads.layers.size() == 1);
  }
}

TEST_CASE("a folder's tokenizer.json is the engine's tokenizer", "[hub]") {
  ChangedFolder folder("llama-bias");
  folder.write("tokenizer.json", R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true, "single_word": false, "lstrip": false,
      "rstrip": false, "normalized": false}], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"<s>": 0, "sun": 1, "moon": 2, "?": 3}, "unk_token": "?"}})");
  folder.write("generation_config.json", R"({"eos_token_id": [2]})");
  const Engine engine = must(Engine::load(folder.path()));
  CHECK(must(engine.tokenizer().encode("Sun moon stars")) == std::vector<Token>{1, 2, 3});
  CHECK(engine.tokenizer().is_end_of_generation(2));
  CHECK_FALSE(engine.tokenizer().is_end_of_generation(1));
}

TEST_CASE("a folder that is older than tokenizer.json has GPT-2's vocabulary in two files", "[hub]") {
  ChangedFolder folder("gpt2-output");
  folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4})");
  folder.write("merges.txt", "#version: 0.2\na b\n");
  folder.write("generation_config.json", R"({"bos_token_id": 4, "eos_token_id": 4})");
  const Engine engine = must(Engine::load(folder.path()));
  CHECK(must(engine.tokenizer().encode("ab b")) == std::vector<Token>{2, 3, 1});
  CHECK(engine.tokenizer().is_control(4));
}

std::string problem(const fs::path& folder) {
  const auto engine = Engine::load(folder, {.tokenizer = TokenizerUse::none});
  return engine ? "" : engine.error().text();
}

TEST_CASE("a path into a folder, and a folder with a GGUF file, are the model", "[hub]") {
  ChangedFolder folder("llama-bias");
  const auto tensors = must(open_model(folder.path())).get()->tensors().size();
  for (const char* name : {"config.json", "model.safetensors"}) CHECK(must(open_model(folder.path() / name)).get()->tensors().size() == tensors);
  fs::remove(folder.path() / "config.json");
  CHECK(problem(folder.path() / "model.safetensors").find("there is no config.json beside it") != std::string::npos);
  fs::remove(folder.path() / "model.safetensors");
  fs::copy(golden_dir() / "mtp/qwen35.gguf", folder.path() / "model-00001-of-00001.gguf");
  folder.write("mmproj-model.gguf", "");
  CHECK(problem(folder.path()).empty());
  folder.write("other.gguf", "");
  CHECK(problem(folder.path()).find("the folder has several GGUF files: give the path of one of model-00001-of-00001.gguf, other.gguf") != std::string::npos);
}

TEST_CASE("an error of shapes says which part of a fused tensor the model uses", "[hub]") {
  ChangedFolder halves("granitemoe"), turned("gpt-oss");
  halves.replace("config.json", "\"intermediate_size\": 24", "\"intermediate_size\": 40");
  CHECK(problem(halves.path()).find("its shape is [6, 48, 32], of which the model uses [6, 24, 32] here; config.json says [6, 40, 32]") != std::string::npos);
  turned.replace("config.json", "\"intermediate_size\": 20", "\"intermediate_size\": 40");
  CHECK(problem(turned.path()).find("its shape is [6, 32, 40], of which the model uses [6, 32, 20] here; config.json says [6, 32, 40]") != std::string::npos);
}

TEST_CASE("a folder that cannot be loaded is refused with the file and the key", "[hub]") {
  ChangedFolder folder("llama-bias");
  std::string wanted;
  SECTION("no config.json") {
    fs::remove(folder.path() / "config.json");
    wanted = "the folder has no config.json";
  }
  SECTION("config.json is empty") {
    folder.write("config.json", "");
    wanted = "config.json: the file is empty, as after an interrupted download: fetch it again";
  }
  SECTION("an adapter") {
    fs::rename(folder.path() / "config.json", folder.path() / "adapter_config.json");
    wanted = "it is an adapter (LoRA), not a model";
  }
  SECTION("config.json is a pointer") {
    folder.write("config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 812\n");
    wanted = "config.json: this is a Git LFS pointer of 66 bytes, not config.json: run \"git lfs pull\"";
  }
  SECTION("no type") {
    folder.replace("config.json", "\"model_type\"", "\"other\"");
    wanted = "config.json: it has no model_type";
  }
  SECTION("config.json is no JSON") {
    folder.write("config.json", "{\"model_type\": ");
    wanted = "config.json: JSON, line 1, column 16: a value is missing";
  }
  SECTION("an unknown type") {
    folder.replace("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"lama\"");
    wanted = "model_type is \"lama\", which tessera does not load from a folder; it loads llama, mistral";
  }
  SECTION("a key that is needed") {
    folder.replace("config.json", "\"max_position_embeddings\"", "\"max_position\"");
    wanted = "config.json: max_position_embeddings: is not in the file, and is needed";
  }
  SECTION("a value of another type") {
    folder.replace("config.json", "\"hidden_size\": 32", "\"hidden_size\": \"32\"");
    wanted = "config.json: hidden_size: expected an integer";
  }
  SECTION("another activation") {
    folder.replace("config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"");
    wanted = "config.json: hidden_act: the value is \"relu\"";
  }
  SECTION("rope scaled in an unknown way") {
    folder.replace("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"spiral\"");
    wanted = "config.json: rope_scaling: the type \"spiral\" is not implemented";
  }
  SECTION("heads that do not divide the rows") {
    folder.replace("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5");
    wanted = "tensor model.layers.0.self_attn.q_proj.weight: its shape [32, 32] does not fit config.json";
  }
  SECTION("more layers than there are") {
    folder.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
    wanted = "model.layers.2.input_layernorm.weight";
  }
  SECTION("fewer layers than there are") {
    folder.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    wanted = "tensor model.layers.1.";
  }
  SECTION("another width") {
    folder.replace("config.json", "\"intermediate_size\": 40", "\"intermediate_size\": 48");
    wanted = "tensor model.layers.0.mlp.gate_proj.weight (offset";
    CHECK(problem(folder.path()).find("its shape is [40, 32]; config.json says [48, 32]") != std::string::npos);
  }
  SECTION("a size that config.json lacks and whose default does not fit") {
    folder.replace("config.json", "\"num_key_value_heads\"", "\"kv_heads\"");
    wanted = "its shape is [16, 32]; config.json says [32, 32] (it lacks num_key_value_heads";
  }
  SECTION("no number of heads") {
    folder.replace("config.json", "\"num_attention_heads\"", "\"heads\"");
    wanted = "does not fit config.json, which lacks num_attention_heads";
  }
  SECTION("no number of layers") {
    folder.replace("config.json", "\"num_hidden_layers\"", "\"layers\"");
    wanted = "config.json: num_hidden_layers: is not in the file, and is needed";
  }
  SECTION("GPTQ is said of plain weights") {
    folder.replace("config.json", "\"model_type\"", "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32}, \"model_type\"");
    wanted = "config.json: quantization_config.quant_method: the value is \"gptq\", but no tensor is quantised (none has a name that ends in \".qweight\")";
  }
  SECTION("a download that is not finished") {
    fs::remove(folder.path() / "model.safetensors");
    fs::create_directories(folder.path() / ".cache/huggingface/download");
    folder.write(".cache/huggingface/download/AbC=.0011.incomplete", "");
    wanted = "Perhaps the download is unfinished ('" + (folder.path() / ".cache/huggingface/download/AbC=.0011.incomplete").string() + "' is left of one): run it again";
  }
  SECTION("a tensor that no model of the type has") {
    folder.replace("model.safetensors", "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.gate_prox.weight");
    wanted = "tensor model.layers.0.mlp.gate_prox.weight: a \"llama\" model has no such tensor";
  }
  SECTION("a type of numbers that is not read") {
    folder.replace("model.safetensors", "\"dtype\":\"BF16\"", "\"dtype\":\"I16\" ");
    wanted = "its type is I16; F32, F16 and BF16 can be loaded";
  }
  const std::string text = problem(folder.path());
  CAPTURE(text);
  CHECK(text.find(wanted) != std::string::npos);
}

TEST_CASE("a model without attention has no pages, and writes", "[hub]") {
  const Engine engine = must(Engine::load(source_dir() / "tests/data/no-attention", {.tokenizer = TokenizerUse::none, .threads = 1}));
  Session session = must(engine.session());
  const std::vector<Token> tokens = {5, 6, 7};
  const Logits logits = must(session.append(tokens));
  CHECK(std::ranges::all_of(logits.values, [](float value) { return std::isfinite(value); }));
  CHECK(must(engine.embed(std::vector<std::vector<Token>>{tokens, {1, 2}})).size() == 2);
}

}  // namespace test_hub_models
