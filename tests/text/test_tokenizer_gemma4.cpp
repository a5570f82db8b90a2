// Gemma 4's tokenizer: ids as the `tokenizers` package gives them (golden/make_gemma4_goldens.py), and texts that no
// normaliser has seen.
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "text/rig.hpp"

namespace test_tokenizer_gemma4 {

using namespace tessera;
using namespace rig;

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct Golden {
  Vocab vocab;
  std::vector<std::pair<std::string, std::vector<Token>>> texts;
};

TokenType type_of(const std::string& text, std::size_t id) {
  if (id < 3) return TokenType::control;
  if (id == 3) return TokenType::unknown;
  return text.starts_with("<0x") ? TokenType::byte : TokenType::normal;
}

Golden read_golden() {
  Golden golden;
  golden.vocab.model = "gemma4";
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/gemma4.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, first, second;
    words >> kind >> first;
    if (kind == "token") {
      const std::string text = from_hex(first);
      golden.vocab.add(text, type_of(text, golden.vocab.tokens.size()));
    } else if (kind == "merge") {
      words >> second;
      golden.vocab.merges.push_back(from_hex(first) + " " + from_hex(second));
    } else {
      std::vector<Token> ids;
      for (Token id = 0; words >> id;) ids.push_back(id);
      golden.texts.emplace_back(from_hex(first), ids);
    }
  }
  golden.vocab.ids = {{"bos_token_id", 2}, {"eos_token_id", 1}, {"unknown_token_id", 3}};
  return golden;
}

}  // namespace

TEST_CASE("gemma4: ids and texts are those of the tokenizers package", "[tokenizer][gemma4]") {
  const Golden golden = read_golden();
  REQUIRE(golden.texts.size() > 200);
  const Tokenizer made = tokenizer(golden.vocab);
  CHECK(made.model() == TokenizerModel::gemma4);
  for (const auto& [text, ids] : golden.texts) {
    INFO(text);
    const auto encoded = made.encode(text, kPlain);
    REQUIRE(encoded);
    CHECK(*encoded == ids);
    std::string spaces = text;
    for (std::size_t at; (at = spaces.find(kSpace)) != std::string::npos;) spaces.replace(at, kSpace.size(), " ");
    CHECK(*made.decode(ids) == spaces);
  }
}

TEST_CASE("gemma4: a text begins with BOS, whatever the file says, and with no space", "[tokenizer][gemma4]") {
  Vocab vocab = read_golden().vocab;
  vocab.flags = {{"add_bos_token", false}, {"add_space_prefix", true}};
  const Tokenizer made = tokenizer(vocab);
  CHECK(made.adds_bos());
  CHECK_FALSE(made.adds_space_prefix());
  CHECK(made.encode("a")->size() == 2);
  CHECK(made.encode("a")->front() == 2);
}

TEST_CASE("gemma4: bytes that are no UTF-8 become byte tokens, and come back", "[tokenizer][gemma4]") {
  const Tokenizer made = tokenizer(read_golden().vocab);
  const auto ids = made.encode("a\xFFh\xC3", kPlain);
  REQUIRE(ids);
  CHECK(*ids == std::vector<Token>{*made.find("a"), 4 + 0xFF, *made.find("h"), 4 + 0xC3});
}

TEST_CASE("gemma4: without byte tokens, characters of no token that follow each other are one unknown token", "[tokenizer][gemma4]") {
  Vocab vocab;
  vocab.model = "gemma4";
  for (const char* text : {"<pad>", "<eos>", "<bos>"}) vocab.add(text, TokenType::control);
  vocab.add("<unk>", TokenType::unknown);
  const Token a = vocab.add("a");
  vocab.add("aa");
  vocab.merges = {"a aa"};
  vocab.ids = {{"bos_token_id", 2}, {"unknown_token_id", 3}};
  CHECK(*tokenizer(vocab).encode("xyaaz\nq", kPlain) == std::vector<Token>{3, a, a, 3});
}

TEST_CASE("gemma4: a turn's end ends, and HTML's tag does not", "[tokenizer][gemma4]") {
  Vocab vocab = read_golden().vocab;
  const Token turn = vocab.add("<turn|>", TokenType::control), answer = vocab.add("<|tool_response>", TokenType::user_defined);
  const Token strike = vocab.add("</s>", TokenType::user_defined);
  const Tokenizer made = tokenizer(vocab);
  CHECK(made.is_end_of_generation(turn));
  CHECK(made.is_end_of_generation(answer));
  CHECK_FALSE(made.is_end_of_generation(strike));
  CHECK(made.piece(strike) == "</s>");
}

}  // namespace test_tokenizer_gemma4
