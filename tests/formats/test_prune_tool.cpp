// tessera-convert --prune: what adds nothing goes first, and the rest computes as before.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "engine/made_model.hpp"

namespace test_prune_tool {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-convert";
constexpr std::uint32_t kLayers = 3, kHeads = 8, kKvHeads = 4, kWidth = 128, kColumns = 192, kVocab = 100;

struct Outcome {
  int status;
  std::string text;
};

class Place {
 public:
  Place() : path_(fs::temp_directory_path() / ("tessera-prune-" + std::to_string(::getpid()))) { fs::create_directories(path_); }
  ~Place() { fs::remove_all(path_); }
  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

Outcome run(const Place& place, const std::string& arguments) {
  const fs::path messages = place / "messages";
  const int status = std::system((kTool + " " + arguments + " >" + messages.string() + " 2>&1").c_str());
  std::ifstream in(messages, std::ios::binary);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(in), {}}};
}

// Writes an F32 model in which every second block of 32 FFN columns and every second KV head of each layer add nothing.
void write_model(const fs::path& path) {
  const MadeModel made = make_model({.d_model = kWidth, .layers = kLayers, .heads = kHeads, .kv_heads = kKvHeads, .ffn = kColumns, .vocab = kVocab, .context = 64}, DType::f32);
  const ModelFile file = made.file();
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  for (const GgufTensor& tensor : file.tensors()) must(writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
  must(writer.write_file(path, [&](std::string_view name, const ByteSink& write) -> Status {
    const GgufTensor& tensor = *file.find_tensor(name);
    std::vector<float> values(tensor.bytes / sizeof(float));
    must(file.read(tensor, 0, std::as_writable_bytes(std::span(values))));
    const std::size_t unit = name.ends_with("ffn_down.weight") ? 32 : name.ends_with("attn_output.weight") ? kWidth / kKvHeads : 0;
    for (std::size_t i = 0; unit != 0 && i < values.size(); ++i) {
      if (i % tensor.dims[0] / unit % 2 == 1) values[i] = 0.0f;
    }
    return write(std::as_bytes(std::span(values)));
  }));
}

std::vector<float> logits_of(const fs::path& path) {
  const Engine engine = must(Engine::load(path, {.tokenizer = TokenizerUse::none, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, made_tokens(20, kVocab, 3), 20);
}

}  // namespace

TEST_CASE("heads and columns that add nothing are left out, and the logits stay", "[prune]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  write_model(place / "whole.gguf");
  const Outcome outcome = run(place, (place / "whole.gguf").string() + " " + (place / "left.gguf").string() + " --prune heads=0.5,ffn=0.5");
  INFO(outcome.text);
  REQUIRE(outcome.status == 0);
  CHECK(outcome.text.find("2 of 4") != std::string::npos);
  const Engine left = must(Engine::load(place / "left.gguf", {.tokenizer = TokenizerUse::none, .threads = 2}));
  for (const LayerSpec& layer : left.spec().layers) {
    CHECK(layer.n_heads == kHeads / 2);
    CHECK(layer.n_kv_heads == kKvHeads / 2);
    CHECK(layer.key_dim == kWidth / kHeads);
    CHECK(layer.ffn_dim == kColumns / 2);
  }
  const std::vector<float> before = logits_of(place / "whole.gguf"), after = logits_of(place / "left.gguf");
  REQUIRE(before.size() == after.size());
  float most = 0.0f;
  for (std::size_t i = 0; i < before.size(); ++i) most = std::max(most, std::abs(before[i] - after[i]));
  CHECK(most < 1e-4f);
}

TEST_CASE("layers get different shapes where others matter more", "[prune]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  const std::string story = (source_dir() / "models/tessera-stories.gguf").string();
  std::ofstream(place / "text.txt") << "Once upon a time there was a little girl named Lily. She lived in a small house near the forest. One day she found a red ball "
                                       "in the garden and took it to her friend. They played all day, and then they went home and were very happy.";
  const Outcome outcome = run(place, story + " " + (place / "left.gguf").string() + " --prune layers=1,ffn=0.3 --prune-text " + (place / "text.txt").string());
  INFO(outcome.text);
  REQUIRE(outcome.status == 0);
  CHECK(outcome.text.find("without layer") != std::string::npos);
  CHECK(outcome.text.find("perplexity") != std::string::npos);
  const Engine whole = must(Engine::load(story, {.threads = 2})), left = must(Engine::load(place / "left.gguf", {.threads = 2}));
  REQUIRE(left.spec().n_layers() == 5);
  CHECK(left.plan().weights < whole.plan().weights);
  std::uint32_t columns = 0;
  for (const LayerSpec& layer : left.spec().layers) {
    CHECK(layer.ffn_dim % 32 == 0);
    columns += layer.ffn_dim;
  }
  CHECK(columns < 5 * 768 * 3 / 4);
  Session session = must(left.session());
  must(session.append(must(left.tokenizer().encode("Once upon a time"))));
}

TEST_CASE("wrong --prune options are refused", "[prune]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  const Place place;
  write_model(place / "whole.gguf");
  const std::string begin = (place / "whole.gguf").string() + " " + (place / "left.gguf").string();
  const auto refused = [&](const std::string& arguments, int status, std::string_view why) {
    const Outcome outcome = run(place, begin + " " + arguments);
    INFO(arguments << ": " << outcome.text);
    CHECK(outcome.status == status);
    CHECK(outcome.text.find(why) != std::string::npos);
    CHECK(!fs::exists(place / "left.gguf"));
  };
  refused("--prune ffn=2", 2, "\"ffn=2\"");
  refused("--prune rows=1", 2, "\"rows=1\"");
  refused("--prune layers=1", 2, "--prune-text");
  refused("--prune-text " + (place / "whole.gguf").string(), 2, "goes with --prune");
}

}  // namespace test_prune_tool
