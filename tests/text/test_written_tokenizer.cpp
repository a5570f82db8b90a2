// The tokenizer.json that is written of a GGUF file's lists gives the tokens of the lists.
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

#include "catch.hpp"
#include "text/json_rig.hpp"
#include "text/rules/base64.hpp"
#include "text/rules/written_json.hpp"

namespace test_written_tokenizer {

using namespace tessera;

namespace {

// Texts of words and characters of many kinds, in random order.
std::vector<std::string> random_texts(std::size_t count) {
  const std::vector<std::string> parts = {" ", "  ", "\n", "\n\n", "\t", "\r\n", "the", " The", "quick", " brown", "Fox's", " don't", "we'LL", "123", " 4567", "3.14", "x_y", "CamelCase",
                                          "naïve", " Größe", "Straße", "Привет", " мир", "你好", "世界", "日本語", "한국어", "ไทย", "हिन्दी", "\xF0\x9F\x98\x80", "\xE2\x82\xAC", "½", "e\xCC\x81",
                                          "...", "!!!", "(a)", "{", "}", "==", "->", "//", "<s>", "</s>", "<|endoftext|>", "\xE2\x96\x81", "\xC2\xA0", "\xE3\x80\x80", "0x1F", "https://a.b/c?d=e", "\xEF\xBC\xA1"};
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) text += parts[random() % parts.size()];
    texts.push_back(std::move(text));
  }
  return texts;
}

// Returns how many texts get other tokens, or other texts back.
std::size_t count_differing(const Tokenizer& a, const Tokenizer& b, std::size_t texts) {
  std::size_t differing = 0;
  for (const std::string& text : random_texts(texts)) {
    const auto ours = a.encode(text), written = b.encode(text);
    REQUIRE(ours);
    REQUIRE(written);
    // Byte-level BPE takes letters of added tokens for bytes when it decodes, in every tokenizer.json.
    const bool is_same = *ours == *written && (a.model() == TokenizerModel::gpt2 || *a.decode(*ours) == *b.decode(*written));
    differing += is_same ? 0 : 1;
  }
  return differing;
}

void check_file(const std::string& path) {
  CAPTURE(path);
  const auto source = open_file(path);
  REQUIRE(source);
  const auto file = GgufFile::read(*source);
  REQUIRE(file);
  const auto tokenizer = Tokenizer::from_settings(file->settings());
  REQUIRE(tokenizer);
  const auto json = detail::tokenizer_as_json(file->settings(), *tokenizer, {});
  if (!json) FAIL(json.error().text());
  rig::FileSettings written(*json);
  if (tokenizer->bos()) written.set(Setting::bos_token, std::uint64_t{static_cast<std::uint32_t>(*tokenizer->bos())});
  if (tokenizer->eos()) written.set(Setting::eos_token, std::uint64_t{static_cast<std::uint32_t>(*tokenizer->eos())});
  const auto again = Tokenizer::from_settings(written);
  if (!again) FAIL(again.error().text());
  CHECK(again->vocab_size() <= tokenizer->vocab_size());
  CHECK(count_differing(*tokenizer, *again, 2000) == 0);
}

}  // namespace

TEST_CASE("a written tokenizer.json gives the tokens of real vocabularies", "[tokenizer]") {
  const std::string folder = std::string(TESSERA_SHARED_DIR) + "/tokenizers/";
  if (!std::filesystem::exists(folder)) return tests::skip("no " + folder);
  for (const char* name : {"llama-spm", "phi-3", "gpt-2", "deepseek-coder"}) {
    DYNAMIC_SECTION(name) { check_file(folder + "ggml-vocab-" + name + ".gguf"); }
  }
}

TEST_CASE("a written tokenizer.json gives the tokens of a unigram vocabulary", "[tokenizer]") {
  check_file(std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/unigram-bytes.gguf");
}

// SentencePiece applies a charsmap to the whole text, `tokenizers` to each grapheme, so the tokens of "...." differ.
TEST_CASE("a vocabulary whose steps a tokenizer.json cannot say is refused", "[tokenizer]") {
  const auto source = open_file(TESSERA_SOURCE_DIR "/tests/text/golden/unigram-rules.gguf");
  REQUIRE(source);
  const auto file = GgufFile::read(*source);
  REQUIRE(file);
  const auto tokenizer = Tokenizer::from_settings(file->settings());
  REQUIRE(tokenizer);
  const auto json = detail::tokenizer_as_json(file->settings(), *tokenizer, {});
  REQUIRE_FALSE(json);
  CHECK(json.error().text().find("the steps of this tokenizer cannot be said in a tokenizer.json") != std::string::npos);
}

TEST_CASE("base64 is read and written", "[tokenizer]") {
  for (const std::string_view bytes : {"", "a", "ab", "abc", "abcd", "\xFF\x01\x80\x7F"}) {
    CHECK(detail::base64_bytes(detail::base64_text(bytes)) == std::string(bytes));
  }
  CHECK(detail::base64_text("abcd") == "YWJjZA==");
}

}  // namespace test_written_tokenizer
