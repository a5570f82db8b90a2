// Splits that Hugging Face's tokenizers gave for random Unicode texts (golden/make_pre_tokenizer_goldens.py).
#include <fstream>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "text/newer_characters.hpp"
#include "text/pre_tokenizer/pre_tokenizer.hpp"

namespace test_pre_tokenizer {

using tessera::detail::PreTokenizer;

namespace {

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

PreTokenizer load(std::string_view name) {
  const auto* spec = tessera::detail::find_pre_tokenizer(name);
  REQUIRE(spec != nullptr);
  auto pre = PreTokenizer::create(*spec);
  REQUIRE(pre);
  return *std::move(pre);
}

// The words' sizes.
std::vector<std::uint32_t> words_of(const PreTokenizer& pre, std::string_view text) {
  auto splitter = PreTokenizer::Splitter::create(pre, text.size());
  REQUIRE(splitter);
  std::vector<std::uint32_t> sizes;
  std::string joined;
  REQUIRE(splitter->split(text, [&](std::string_view word) {
    sizes.push_back(static_cast<std::uint32_t>(word.size()));
    joined += word;
  }));
  CHECK(joined == text);
  return sizes;
}

}  // namespace

TEST_CASE("pre-tokenizers split as the reference does") {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/pre_tokenizers.txt");
  REQUIRE(file);
  std::string line, text;
  std::size_t cases = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "text") {
      words >> name;
      text = unhex(name);
      continue;
    }
    std::vector<std::uint32_t> expected;
    for (std::uint32_t size; words >> size;) expected.push_back(size);
    auto pre = load(name);
    INFO(name << ": " << text);
    CHECK(words_of(pre, text) == expected);
    ++cases;
  }
  CHECK(cases > 500);
}

TEST_CASE("every known pre-tokenizer compiles, and what it gives is the whole text") {
  std::istringstream names(tessera::detail::known_pre_tokenizers());
  const std::string text = "I've  got\n\n 1234 zebras, \t\xE2\x80\x83" "déjà-vu 中文 かな🦙!? \xE1\xA0\x8E's  ";
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    INFO(name);
    auto pre = load(name);
    CHECK(pre.memory_bytes() > 0);
    CHECK(pre.memory_bytes() < PreTokenizer::kPlannedBytes);
    for (std::size_t size = 0; size <= text.size(); ++size) {
      if (size < text.size() && (text[size] & 0xC0) == 0x80) continue;
      std::size_t total = 0;
      for (const std::uint32_t word : words_of(pre, std::string_view(text).substr(0, size))) {
        CHECK((word > 0 || size == 0));
        total += word;
      }
      CHECK(total == size);
    }
  }
}

TEST_CASE("characters that are newer than PCRE2 have their classes") {
  std::string copy;
  const std::string old = "a é 中 가 \U0001F600 \U00020000";
  CHECK(tessera::detail::with_older_characters(old, copy).data() == old.data());
  // U+1FABC (a symbol of Unicode 15), U+1E4D0 (a letter of 15), U+1CCF1 (a digit of 16), U+0897 (a mark of 16), U+2EBF0 (an ideograph of 15.1)
  const std::string newer = "x\U0001FABC\U0001E4D0\U0001CCF1\u0897\U0002EBF0y";
  CHECK(tessera::detail::with_older_characters(newer, copy) == "x\U0001F300\U00010380\U0001D7CE\u1AB0\U00020000y");

  // As tokenizers 0.23 splits: a symbol does not belong to the letters behind it, and letters belong together.
  const PreTokenizer deepseek = load("deepseek-v3"), qwen = load("qwen2");
  CHECK(words_of(deepseek, "\U0001FABCabc") == std::vector<std::uint32_t>{4, 3});
  CHECK(words_of(deepseek, "ab\U0001E4D0c 1") == std::vector<std::uint32_t>{7, 1, 1});
  CHECK(words_of(deepseek, "\U0001CCF1\U0001CCF1\U0001CCF1\U0001CCF1") == std::vector<std::uint32_t>{12, 4});
  CHECK(words_of(qwen, "\U0001CCF1\U0001CCF1") == std::vector<std::uint32_t>{4, 4});
}

}  // namespace test_pre_tokenizer
