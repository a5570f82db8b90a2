// What PyPI's `tokenizers` encodes and decodes with a tokenizer.json (golden/make_tokenizer_json_goldens.py), tessera does too.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/json/json.hpp>

#include "catch.hpp"
#include "text/json_rig.hpp"

namespace test_tokenizer_json_goldens {

using namespace tessera;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Token> ids_of(const Json& list) {
  std::vector<Token> ids;
  for (const Json& id : *list.elements()) ids.push_back(static_cast<Token>(*id.integer()));
  return ids;
}

struct Differ {
  std::size_t cases = 0, ids = 0, plain = 0, decoded = 0;
};

std::string printed(const std::vector<Token>& ids, const Tokenizer& tokenizer) {
  std::string out;
  for (const Token id : ids) out += std::to_string(id) + "=" + std::string(tokenizer.text(id)) + " ";
  return out;
}

void compare(const Json& line, Differ& differ) {
  const std::string& name = *line.find("name")->string();
  CAPTURE(name);
  const std::string json = line.find("path") != nullptr ? read_file(*line.find("path")->string()) : *line.find("json")->string();
  const auto tokenizer = rig::load_json(json);
  if (!tokenizer) {
    FAIL_CHECK(tokenizer.error().text());
    return;
  }
  const auto plan = Tokenizer::plan(rig::FileSettings(json));
  REQUIRE(plan);
  CHECK(plan->tokens == tokenizer->vocab_size());
  CHECK(plan->bytes >= tokenizer->memory_bytes());
  int reported = 0;
  const auto report = [&](const char* what, const std::string& text, const std::string& got, const std::string& wanted) {
    if (++reported > 3) return;
    UNSCOPED_INFO(what << " of <" << text << ">\n  got    " << got << "\n  wanted " << wanted);
    FAIL_CHECK(name);
  };
  for (const Json& one : *line.find("cases")->elements()) {
    const Json::Array& fields = *one.elements();
    const std::string& text = *fields[0].string();
    ++differ.cases;
    const auto ids = tokenizer->encode(text, {.special = Special::parse});
    REQUIRE(ids);
    const std::vector<Token> wanted = ids_of(fields[1]);
    if (*ids != wanted) {
      ++differ.ids;
      report("tokens", text, printed(*ids, *tokenizer), printed(wanted, *tokenizer));
    }
    if (!fields[2].is_null()) {
      const auto plain = tokenizer->encode(text, {.bos = Bos::never});
      REQUIRE(plain);
      if (*plain != ids_of(fields[2])) {
        ++differ.plain;
        report("plain tokens", text, printed(*plain, *tokenizer), printed(ids_of(fields[2]), *tokenizer));
      }
    }
    if (fields[3].is_null()) continue;
    const auto decoded = tokenizer->decode(wanted);
    REQUIRE(decoded);
    if (*decoded != *fields[3].string()) {
      ++differ.decoded;
      report("text", printed(wanted, *tokenizer), "<" + *decoded + ">", "<" + *fields[3].string() + ">");
    }
  }
}

void compare_file(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in);
  Differ differ;
  std::size_t tokenizers = 0;
  for (std::string line; std::getline(in, line); ++tokenizers) {
    const auto json = Json::parse(line);
    REQUIRE(json);
    compare(*json, differ);
  }
  std::printf("%s: %zu tokenizers, %zu texts; %zu differ in tokens, %zu without special tokens, %zu in decoded text\n", path.c_str(), tokenizers,
              differ.cases, differ.ids, differ.plain, differ.decoded);
  CHECK(differ.ids + differ.plain + differ.decoded == 0);
}

}  // namespace

TEST_CASE("a tokenizer.json gives the tokens and texts of the crate tokenizers") {
  const char* other = std::getenv("TESSERA_TEST_TOKENIZER_JSON");  // a file that make_tokenizer_json_goldens.py wrote
  compare_file(other != nullptr ? other : TESSERA_SOURCE_DIR "/tests/text/golden/tokenizer_json.jsonl");
}

}  // namespace test_tokenizer_json_goldens
