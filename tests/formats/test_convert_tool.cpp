// tessera-convert: a folder becomes a GGUF file that gives the same logits.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "engine/models.hpp"

namespace test_convert_tool {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-convert";

// Runs the tool; its messages go to `messages`.
int run(const std::string& arguments, const fs::path& messages) {
  const int status = std::system((kTool + " " + arguments + " >" + messages.string() + " 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Place {
 public:
  Place() : path_(fs::temp_directory_path() / ("tessera-convert-" + std::to_string(::getpid()))) { fs::create_directories(path_); }
  ~Place() { fs::remove_all(path_); }
  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::vector<float> logits_of(const fs::path& model) {
  const Engine engine = must(Engine::load(model, {.tokenizer = TokenizerUse::none, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 12);
}

}  // namespace

TEST_CASE("a converted folder gives the logits of the folder", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  for (const char* name : {"folders/llama-bias", "folders/qwen35", "folders/nemotron_h_moe-narrow", "folders/gemma4-e", "folders/deepseek-v3",
                           "folders/gpt-oss", "folders/phi3-long", "quantised/gptq", "quantised/nvfp4", "quantised/mxfp4"}) {
    CAPTURE(name);
    const fs::path folder = golden_dir() / name, file = place / "model.gguf";
    const int status = run(folder.string() + " " + file.string(), place / "messages");
    INFO(text_of(place / "messages"));
    REQUIRE(status == 0);
    const auto converted = logits_of(file), direct = logits_of(folder);
    REQUIRE(converted.size() == direct.size());
    float difference = 0.0f;
    for (std::size_t i = 0; i < direct.size(); ++i) difference = std::max(difference, std::abs(converted[i] - direct[i]));
    CHECK(difference <= 1e-5f);
  }
}

TEST_CASE("a converted folder has the keys that llama.cpp needs and the library does not", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const fs::path file = place / "model.gguf";
  const auto key_of = [&](const char* folder, const char* key) {
    REQUIRE(run((golden_dir() / folder).string() + " " + file.string(), place / "messages") == 0);
    return must(must(ModelFile::open(file)).metadata().unsigned_integer(key));
  };
  CHECK(key_of("encoders/bert", "tokenizer.ggml.token_type_count") == 2);
  CHECK(key_of("folders/ernie4_5-moe", "ernie4_5-moe.interleave_moe_layer_step") == 1);
}

std::size_t count_files(const fs::path& folder, std::string_view part) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.path().filename().string().find(part) != std::string::npos ? 1 : 0;
  return count;
}

TEST_CASE("a model is split into parts, and merged again to the same bytes", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const fs::path folder = golden_dir() / "folders/llama-bias", whole = place / "whole.gguf", parts = place / "parts.gguf", again = place / "again.gguf";
  const auto convert = [&](const fs::path& in, const fs::path& out, const std::string& more = "") {
    const int status = run(in.string() + " " + out.string() + " " + more, place / "messages");
    INFO(text_of(place / "messages"));
    REQUIRE(status == 0);
  };
  convert(folder, whole);
  convert(folder, parts, "--split-max-size 9KB");
  const std::size_t count = count_files(place / "", "parts-0");
  REQUIRE(count > 2);
  char name[40];
  std::snprintf(name, sizeof name, "parts-00001-of-%05zu.gguf", count);
  CHECK(logits_of(place / name) == logits_of(whole));
  convert(place / name, again);
  CHECK(text_of(again) == text_of(whole));
  convert(whole, again, "--split-max-size 2G");  // llama.cpp's spelling; nothing to split
  CHECK(text_of(again) == text_of(whole));
  CHECK(count_files(place / "", ".part") == 0);

  CHECK(run((place / name).string() + " " + parts.string() + " --split-max-size 9KB", place / "messages") == 2);
  CHECK(text_of(place / "messages").find("the file is a part of IN: choose another name") != std::string::npos);
}

TEST_CASE("a dry run says what would be written, and writes nothing", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const std::string folder = (golden_dir() / "folders/llama-bias").string(), out = (place / "out.gguf").string();
  REQUIRE(run(folder + " " + out + " --type q8_0 --split-max-size 9KB --dry-run", place / "messages") == 0);
  const std::string text = text_of(place / "messages");
  CHECK(text.find("Q8_0") != std::string::npos);
  CHECK(text.find("out-00001-of-0000") != std::string::npos);
  CHECK(count_files(place / "", "out") == 0);
  CHECK(run(folder + " " + out + " q8_0 --type q4_0", place / "messages") == 2);
  CHECK(run(folder + " " + out + " --split-max-size 2X", place / "messages") == 2);
  CHECK(run(folder + " " + (place / "no/such/folder.gguf").string(), place / "messages") == 1);
}

TEST_CASE("the tokenizer of a folder becomes lists, or is refused", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const fs::path folder = place / "folder";
  fs::copy(golden_dir() / "folders/gpt2-output", folder);
  std::ofstream(folder / "generation_config.json") << R"({"bos_token_id": 4, "eos_token_id": 4})";
  std::ofstream(folder / "vocab.json") << R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4})";
  std::ofstream(folder / "merges.txt") << "#version: 0.2\na b\n";
  REQUIRE(run(folder.string() + " " + (place / "out.gguf").string(), place / "messages") == 0);
  const Engine engine = must(Engine::load(place / "out.gguf"));
  CHECK(engine.tokenizer().model() == TokenizerModel::gpt2);
  CHECK(must(engine.tokenizer().encode("ab b")) == std::vector<Token>{2, 3, 1});
  CHECK(engine.tokenizer().text(99) == "[PAD99]");

  std::ofstream(folder / "tokenizer.json") << R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "vocab": {"a": 0, "?": 1, "b": 4}, "unk_token": "?"}})";
  CHECK(run(folder.string() + " " + (place / "none.gguf").string(), place / "messages") == 1);
  CHECK(text_of(place / "messages").find("GGUF has no name for the steps of this tokenizer") != std::string::npos);
  CHECK_FALSE(fs::exists(place / "none.gguf"));
  CHECK(run(folder.string() + " " + (folder / "config.json").string(), place / "messages") == 2);
}

TEST_CASE("a folder of an encoder becomes a file with the same vectors and scores", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const std::vector<std::string_view> texts = {"the small cat sleeps near the house", "unknown: zebra!", ""};
  const fs::path folders = golden_dir() / "encoders", ranker = place / "ranker.gguf";
  REQUIRE(run((folders / "bert-rank").string() + " " + ranker.string(), place / "messages") == 0);
  const Engine of_folder = must(Engine::load(folders / "bert-rank")), of_file = must(Engine::load(ranker));
  const Embeddings expected = must(of_folder.embed(texts, {.pooling = Pooling::mean})), vectors = must(of_file.embed(texts, {.pooling = Pooling::mean}));
  CHECK(std::ranges::equal(vectors.values(), expected.values()));
  CHECK(must(of_file.rerank("a red bird", texts)) == must(of_folder.rerank("a red bird", texts)));
}

}  // namespace test_convert_tool
