// The tiny models of tests/golden and what the engine's tests do with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "catch.hpp"
#include "kv/held_types.hpp"

namespace tessera::test {

// Where it was when the tests were built, or where a bundle of them has it (scripts/gpu-check).
inline std::filesystem::path place(const char* variable, const char* built) {
  const char* elsewhere = std::getenv(variable);
  return elsewhere != nullptr ? elsewhere : built;
}
inline std::filesystem::path source_dir() { return place("TESSERA_TEST_SOURCE", TESSERA_SOURCE_DIR); }
inline std::filesystem::path shared_dir() { return place("TESSERA_TEST_SHARED", TESSERA_SHARED_DIR); }
inline std::filesystem::path golden_dir() { return source_dir() / "tests/golden/data"; }

struct GoldenCase {
  std::string name;
  std::size_t n_tokens = 0, vocab = 0;
  std::size_t first_row = 0;  // of the rows whose logits are stored
  float tolerance = 0.0f;

  [[nodiscard]] std::filesystem::path file() const { return golden_dir() / (name + ".gguf"); }
};

inline std::vector<GoldenCase> golden_cases() {
  std::ifstream manifest(golden_dir() / "manifest.txt");
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(manifest, line);) {
    if (line.empty() || line.front() == '#') continue;
    GoldenCase entry;
    std::istringstream(line) >> entry.name >> entry.n_tokens >> entry.vocab >> entry.first_row >> entry.tolerance;
    cases.push_back(entry);
  }
  return cases;
}

// One of each kind of model: every architecture, and what sets attention apart.
inline std::vector<std::string> representative_models() {
  return {"llama-gqa", "llama-head-dim", "llama3", "mistral", "mistral3", "qwen2", "qwen3", "gpt2", "falcon-7b", "phi3-long", "smollm3",
          "gemma3", "olmo3", "qwen2moe", "gemma2", "gpt-oss", "minimax-m2", "hunyuan-dense", "qwen35", "lfm2", "granitehybrid",
          "nemotron_h", "nemotron_h_moe-narrow", "deepseek-v2-lite", "deepseek-v3", "gemma4-e", "gemma4-v-is-k", "gemma4-moe"};
}

// Whether a model's cache can be of a type: latent attention's cannot have scales.
inline bool holds(const Engine& engine, DType kv) {
  return !has_scale(held_as(kv, kv::KeyOrValue::key)) || std::ranges::none_of(engine.spec().layers, &LayerSpec::is_latent);
}

inline std::vector<Token> read_tokens(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Token> tokens;
  for (Token token = 0; in >> token;) tokens.push_back(token);
  return tokens;
}

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<float> values(std::filesystem::file_size(path) / sizeof(float));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return *std::move(result);
}
inline void must(const Status& status) {
  if (!status) FAIL(status.error().text());
}

inline Engine load_golden(const std::string& name, EngineOptions options = {}) {
  if (options.threads == 0) options.threads = 2;
  return must(Engine::load(golden_dir() / (name + ".gguf"), options));
}

// A model of models/ that has learnt to tell stories, for tests that expect something of what it draws. Its numerics are the ones
// whose bits every machine gives, so that the tokens are too, and a test that passes here passes everywhere. A test of other
// numerics names them, or loads the file itself.
inline Engine load_stories(EngineOptions options = {}, const std::string& name = "tessera-stories") {
  if (options.numerics == Numerics::automatic) options.numerics = Numerics::invariant;
  return must(Engine::load(source_dir() / ("models/" + name + ".gguf"), options));
}

// Logits after every token, appended in chunks of `chunk`  [tokens, vocab].
inline std::vector<float> all_logits(Session& session, std::span<const Token> tokens, std::size_t chunk) {
  std::vector<float> values;
  for (std::size_t i = 0; i < tokens.size(); i += chunk) {
    const Logits logits = must(session.append(tokens.subspan(i, std::min(chunk, tokens.size() - i)), {.logits = LogitsOf::all}));
    values.insert(values.end(), logits.values.begin(), logits.values.end());
  }
  return values;
}

// Bitwise: NaN equals itself, 0 differs from -0.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Of the keys and values of each layer.
inline std::vector<std::uint64_t> checksums(const Session& session) {
  std::vector<std::uint64_t> sums;
  for (std::size_t layer = 0; layer < session.kv().layout().layers.size(); ++layer) {
    sums.push_back(session.kv().checksum(layer));
  }
  return sums;
}

// What a user can see of a session.
struct Snapshot {
  explicit Snapshot(const Session& session)
      : tokens(session.tokens().begin(), session.tokens().end()),
        logits(session.logits().begin(), session.logits().end()),
        position(session.position()),
        kv_bytes(session.kv().bytes()),
        pending(session.has_pending()),
        edited(session.edited()),
        checksums(test::checksums(session)) {}
  bool operator==(const Snapshot& other) const {
    return tokens == other.tokens && same_bits(logits, other.logits) && position == other.position &&
           kv_bytes == other.kv_bytes && pending == other.pending && edited == other.edited &&
           checksums == other.checksums;
  }

  std::vector<Token> tokens;
  std::vector<float> logits;
  std::size_t position, kv_bytes;
  bool pending, edited;
  std::vector<std::uint64_t> checksums;
};

}  // namespace tessera::test
