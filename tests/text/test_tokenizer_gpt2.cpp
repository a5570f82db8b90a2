#include <algorithm>
#include <set>

#include "catch.hpp"
#include "sanitized.hpp"
#include "text/rig.hpp"

namespace test_tokenizer_gpt2 {

using namespace tessera;
using namespace rig;

namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

// By the definition: the first merge of the list that applies, leftmost, until none does.
std::vector<std::string> naive(const Merges& merges, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (bool joined = true; joined;) {
    joined = false;
    for (const auto& [left, right] : merges) {
      for (std::size_t i = 0; i + 1 < symbols.size() && !joined; ++i) {
        if (symbols[i] != left || symbols[i + 1] != right) continue;
        symbols[i] += right;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        joined = true;
      }
      if (joined) break;
    }
  }
  return symbols;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  std::vector<std::string> out;
  const auto ids = tokenizer.encode(text, options);
  REQUIRE(ids);
  for (const Token id : *ids) out.emplace_back(tokenizer.is_control(id) ? tokenizer.text(id) : tokenizer.piece(id));
  return out;
}
using Pieces = std::vector<std::string>;

const Merges kMerges = {{"h", "e"},    {"l", "l"},    {"he", "ll"},  {" ", "he"},
                        {"hell", "o"}, {" he", "ll"}, {" hell", "o"}};

}  // namespace

TEST_CASE("gpt2: fast merging equals merging by the definition") {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    Merges merges;
    std::vector<std::string> made = {"a", "b", "c"};
    std::set<std::string> known(made.begin(), made.end());
    for (int i = 0; i < 30; ++i) {
      const std::string left = made[random() % made.size()], right = made[random() % made.size()];
      if (left.size() + right.size() > 12) continue;
      merges.emplace_back(left, right);  // some twice, and some results by two ways
      if (known.insert(left + right).second) made.push_back(left + right);
    }
    const Tokenizer tokenizer = rig::tokenizer(byte_level(merges));
    for (int n = 0; n < 60; ++n) {
      const std::string word = random_text(random, "abc", n < 50 ? 20 : 200);
      if (pieces(tokenizer, word) != naive(merges, word)) FAIL("differs for \"" << word << "\"");
    }
  }
}

TEST_CASE("gpt2: every text comes back, also text that is not UTF-8") {
  std::mt19937 random(9);
  for (const char* pre :
       {"gpt-2", "llama-bpe", "qwen2", "falcon", "deepseek-llm", "deepseek-coder", "starcoder", "default"}) {
    const Tokenizer tokenizer = rig::tokenizer(byte_level(kMerges, pre));
    for (int n = 0; n < 400; ++n) {
      std::string text;
      for (unsigned i = random() % 30; i > 0; --i) {
        const char* parts[] = {"hello", " hello", " ", "\n", "é", "中文", "🦙", "12", "'s", ".", "\t", "\r\n"};
        text += parts[random() % 12];
      }
      const auto ids = tokenizer.encode(text);
      REQUIRE(ids);
      if (*tokenizer.decode(*ids) != text) FAIL(pre << " lost \"" << text << "\"");

      std::string bytes(random() % 40, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      if (std::string(pre) == "qwen2") {  // which normalises: no characters that anything becomes of
        for (char& c : bytes) c = static_cast<unsigned char>(c) >= 0xCC && static_cast<unsigned char>(c) < 0xF5 ? 'x' : c;
      }
      std::string back;
      for (const std::string& piece : pieces(tokenizer, bytes)) back += piece;
      if (back != bytes) FAIL(pre << " lost bytes");
    }
  }
}

TEST_CASE("gpt2: llama-bpe takes a word that is a token without asking the merges, and adds BOS") {
  Vocab v = byte_level(kMerges, "llama-bpe");
  v.add(spell(" zebra"));
  v.add("oblong", TokenType::control);
  v.ids["bos_token_id"] = static_cast<std::uint32_t>(v.add("<|begin_of_text|>", TokenType::control));
  const Tokenizer tokenizer = rig::tokenizer(v);
  CHECK(pieces(tokenizer, "hello zebra") == Pieces{"<|begin_of_text|>", "hello", " zebra"});
  CHECK(pieces(tokenizer, "oblong", kPlain).size() == 6);  // a control token is not text
  v.pre = "gpt-2";
  CHECK(pieces(rig::tokenizer(v), "hello zebra") == Pieces{"hello", " ", "z", "e", "b", "r", "a"});
}

TEST_CASE("gpt2: user-defined tokens always match, control tokens when parsed, and their text is not spelled") {
  Vocab v = byte_level(kMerges);
  const Token user = v.add("中", TokenType::user_defined), control = v.add("<|im_end|>", TokenType::control);
  const Tokenizer tokenizer = rig::tokenizer(v);
  CHECK(*tokenizer.encode("中") == std::vector<Token>{user});
  CHECK(tokenizer.piece(user) == "中");
  CHECK(*tokenizer.encode("<|im_end|>", {.special = Special::parse}) == std::vector<Token>{control});
  CHECK(tokenizer.encode("<|im_end|>")->size() == 10);
  CHECK(tokenizer.is_end_of_generation(control));
  CHECK(tokenizer.decode(std::vector<Token>{user, control})->size() == 3);
  CHECK(*tokenizer.decode(std::vector<Token>{user, control}, {.control = ControlText::show}) == "中<|im_end|>");
}

TEST_CASE("gpt2: a byte without a token is the unknown token, or nothing") {
  Vocab v;
  v.model = "gpt2";
  v.add("a");
  v.add("b");
  const Tokenizer silent = rig::tokenizer(v);
  CHECK(pieces(silent, "axb") == Pieces{"a", "b"});
  v.ids["unknown_token_id"] = static_cast<std::uint32_t>(v.add("<unk>", TokenType::unknown));
  CHECK(pieces(rig::tokenizer(v), "axb") == Pieces{"a", "<unk>", "b"});
}

TEST_CASE("long runs of anything encode in linear time, and come back") {
  // No clock: what is quadratic here takes minutes, and ctest's limit finds it.
  Merges merges;
  for (const std::string letter : {"a", " ", "\n", "7", "."}) {
    for (std::string left = letter; left.size() < 16; left += left) merges.emplace_back(left, left);
  }
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "falcon", "deepseek-llm", "deepseek-coder", "deepseek-v3",
                          "starcoder", "tekken", "gpt-4o", "bloom", "default"}) {
    const Tokenizer tokenizer = rig::tokenizer(byte_level(merges, pre));
    const bool most_passes = std::string_view(pre) == "deepseek-llm";
    const std::size_t bytes = most_passes ? tests::unless_sanitized(1'000'000u, 200'000u) : tests::unless_sanitized(150'000u, 30'000u);
    for (const std::string unit : {"a", " ", "\n", "7", ".", "A", "'", "\t", "é", "中", "\xFF", "a b", "\n ", "a\xFF"}) {
      INFO(pre << ", of \"" << unit << "\"");
      std::string text;
      while (text.size() < bytes) text += unit;
      for (const char* end : {"", "x"}) {  // a run that does not end the text is another matter for "\s+$"
        const std::string whole = text + end;
        const auto ids = tokenizer.encode(whole);
        if (!ids) FAIL(ids.error().text());
        std::string back;
        back.reserve(whole.size());
        for (const Token id : *ids) back += tokenizer.piece(id);
        CHECK(back == whole);
      }
    }
  }
  Vocab v = sentencepiece();
  v.add(kSpace);
  for (std::string left = "a"; left.size() < 32; left += left) {
    v.add(left, TokenType::normal, static_cast<float>(left.size()));
  }
  const Tokenizer llama = rig::tokenizer(v);
  for (const char letter : {'a', ' ', '\n', '7'}) {
    const std::string text(tests::unless_sanitized(1'000'000u, 200'000u), letter);
    const auto ids = llama.encode(text, kPlain);
    REQUIRE(ids);
    CHECK(*llama.decode(*ids) == text);
  }
}

}  // namespace test_tokenizer_gpt2
