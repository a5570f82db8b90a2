// Files of draft heads with some bytes changed: each is refused with an error, or the heads load and the model's tokens are its own.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>

#include <tessera/decoding/drafters.hpp>

#include "engine/head_models.hpp"

namespace test_head_files_mutated {

using namespace tessera;
using namespace tessera::test;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Token> drafted_text(const Engine& engine) {
  Session session = must(engine.session());
  must(session.append(std::vector<Token>{1, 2, 3, 4, 5}));
  Sampler sampler = sampling::chain().greedy().build();
  SpeculateOptions speculate;
  if (engine.spec().has_draft_heads()) speculate = {.drafter = must(head_drafter()), .max_drafts = 3, .length = DraftLength::longest};
  Generation generation = session.generate(sampler, {.max_tokens = 8, .end_of_generation = EndOfGeneration::ignore, .speculate = speculate});
  std::vector<Token> tokens;
  for (const auto& piece : generation) tokens.push_back(must(Result<Piece>(piece)).token);
  return tokens;
}

}  // namespace

TEST_CASE("changed files of draft heads are refused, or give the model's own tokens", "[heads][hostile]") {
  const auto model = golden_dir() / "llama-gqa.gguf";
  const std::vector<Token> expected = drafted_text(load_golden("llama-gqa"));
  const auto folder = std::filesystem::temp_directory_path() / ("tessera-mutated-heads-" + std::to_string(::getpid()));
  std::mt19937 random(11);
  std::size_t refused = 0, loaded = 0;
  for (const HeadCase& heads : head_cases()) {
    if (heads.model != "llama-gqa") continue;
    std::filesystem::remove_all(folder);
    std::filesystem::copy(heads.file(), folder, std::filesystem::copy_options::recursive);
    std::vector<std::filesystem::path> files{folder};
    if (std::filesystem::is_directory(folder)) files = {folder / "config.json", folder / (heads.is_medusa() ? "medusa_lm_head.safetensors" : "model.safetensors")};
    for (const auto& file : files) {
      const std::string whole = bytes_of(file);
      for (int i = 0; i < 80; ++i) {
        std::string changed = whole;
        const std::size_t header = std::min<std::size_t>(whole.size(), 2500);
        for (std::uint32_t n = 1 + random() % 2; n > 0; --n) changed[random() % header] = static_cast<char>(random() % 3 == 0 ? random() % 256 : '0' + random() % 10);
        if (i % 20 == 0) changed.resize(random() % whole.size());
        std::ofstream(file, std::ios::binary) << changed;
        const auto engine = Engine::load(model, {.draft_heads = std::filesystem::is_directory(folder) ? folder : file, .threads = 1});
        INFO(heads.name() << ", change " << i << " of " << file.filename());
        if (engine) {
          ++loaded;
          CHECK(drafted_text(*engine) == expected);
        } else {
          ++refused;
          CHECK(!engine.error().message().empty());
        }
      }
      std::ofstream(file, std::ios::binary) << whole;
    }
  }
  std::filesystem::remove_all(folder);
  CHECK(refused > 100);
  CHECK(loaded > 20);
}

}  // namespace test_head_files_mutated
