// Vocabularies made for tests, and tokenizers from them by way of a GGUF file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/text/tokenizer.hpp>

namespace rig {

using tessera::Token;
using tessera::TokenType;

struct Vocab {
  std::string model = "llama";
  std::optional<std::string> pre;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::map<std::string, std::uint32_t> ids;   // "bos_token_id", ...
  std::map<std::string, bool> flags;          // "add_bos_token", ...
  std::optional<std::string> name;            // general.name

  Token add(std::string text, TokenType type = TokenType::normal, float score = 0) {
    tokens.push_back(std::move(text));
    types.push_back(static_cast<std::int32_t>(type));
    scores.push_back(score);
    return static_cast<Token>(tokens.size() - 1);
  }
};

// A GGUF file whose bytes live as long as it does.
struct File {
  std::vector<std::byte> bytes;
  std::optional<tessera::GgufFile> gguf;
};

inline std::unique_ptr<File> write(const Vocab& v, const std::function<void(tessera::GgufWriter&)>& edit = {}) {
  tessera::GgufWriter writer;
  const std::string prefix = "tokenizer.ggml.";
  bool good = true;
  const auto check = [&](const tessera::Status& status) { good = good && status.has_value(); };
  if (v.name) check(writer.set_string("general.name", *v.name));
  check(writer.set_string(prefix + "model", v.model));
  if (v.pre) check(writer.set_string(prefix + "pre", *v.pre));
  check(writer.set_array(prefix + "tokens", std::span<const std::string>(v.tokens)));
  if (!v.types.empty()) check(writer.set_array(prefix + "token_type", std::span<const std::int32_t>(v.types)));
  if (v.model != "gpt2" && v.model != "gemma4" && !v.scores.empty()) {
    check(writer.set_array(prefix + "scores", std::span<const float>(v.scores)));
  }
  if (v.model == "gpt2" || v.model == "gemma4") check(writer.set_array(prefix + "merges", std::span<const std::string>(v.merges)));
  for (const auto& [key, id] : v.ids) check(writer.set(prefix + key, id));
  for (const auto& [key, value] : v.flags) check(writer.set_boolean(prefix + key, value));
  if (edit) edit(writer);

  auto file = std::make_unique<File>();
  check(writer.write(
      [&](std::span<const std::byte> part) -> tessera::Status {
        file->bytes.insert(file->bytes.end(), part.begin(), part.end());
        return {};
      },
      [](std::string_view, const tessera::ByteSink&) -> tessera::Status { return {}; }));
  auto source = tessera::memory_source(file->bytes);
  if (!good || !source) std::abort();
  auto gguf = tessera::GgufFile::read(*source);
  if (!gguf) {
    std::fprintf(stderr, "%s\n", gguf.error().text().c_str());
    std::abort();
  }
  file->gguf = *gguf;
  return file;
}

inline tessera::Result<tessera::Tokenizer> load(const Vocab& v,
                                                const std::function<void(tessera::GgufWriter&)>& edit = {}) {
  const auto file = write(v, edit);
  return tessera::Tokenizer::from_settings(file->gguf->settings());
}

inline tessera::Tokenizer tokenizer(const Vocab& v) {
  auto loaded = load(v);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().text().c_str());
    std::abort();
  }
  return *loaded;
}

// GPT-2's alphabet, written down again: byte -> UTF-8 of its letter.
inline std::string letter(unsigned char byte) {
  static const std::vector<unsigned> codes = [] {
    std::vector<unsigned> made(256);
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself = (b > 32 && b < 127) || (b > 160 && b != 173);
      made[b] = itself ? b : next++;
    }
    return made;
  }();
  const unsigned code = codes[byte];
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

inline std::string spell(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += letter(static_cast<unsigned char>(c));
  return out;
}

// All 256 bytes, then a token for each merge "left right" of plain bytes.
inline Vocab byte_level(const std::vector<std::pair<std::string, std::string>>& merges, std::string pre = "gpt-2") {
  Vocab v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) v.add(letter(static_cast<unsigned char>(byte)));
  for (const auto& [left, right] : merges) {
    const std::string joined = spell(left + right);
    bool known = false;
    for (const std::string& token : v.tokens) known = known || token == joined;
    if (!known) v.add(joined);
    v.merges.push_back(spell(left) + " " + spell(right));
  }
  return v;
}

// <unk>, <s>, </s>, the bytes, then what the test adds.
inline Vocab sentencepiece() {
  Vocab v;
  v.add("<unk>", TokenType::unknown);
  v.add("<s>", TokenType::control);
  v.add("</s>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    v.add(text, TokenType::byte);
  }
  return v;
}

inline const std::string kSpace = "\xE2\x96\x81";

inline std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == ' ' ? kSpace : std::string(1, c);
  return out;
}

inline std::string random_text(std::mt19937& random, std::string_view alphabet, std::size_t longest) {
  std::string text(random() % (longest + 1), ' ');
  for (char& c : text) c = alphabet[random() % alphabet.size()];
  return text;
}

inline const tessera::EncodeOptions kPlain{.bos = tessera::Bos::never};

}  // namespace rig
