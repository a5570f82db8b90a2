// Grammar::json() against a JSON parser, of random texts. TESSERA_TEST_STRINGS: how many at least.
#include "grammar_rig.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace test_grammar_json {

using namespace grammar_rig;

namespace {

using Json = nlohmann::json;

const std::vector<std::string>& parts() {
  static const std::vector<std::string> all{"{", "}", "[", "]", ",", ":", "\"a\"", "\"", "1", "0", "-", ".5", "e+1", "E", "true", "fals", "e", "null", " ", "\n", "\\n", "\\", "\\u00e9", "\\u0000", "\\ud83d\\ude00", "\xC3\xA9", "\xC3", "\xF0\x9F\x98\x80", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80", "\x7F", "\t", "\x1F", "/", "'"};
  return all;
}

std::string random_string(std::mt19937& random) {
  static const std::vector<std::string> pieces{"a", "key", " ", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\uD83D\\uDE00", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "}", ","};
  std::string out = "\"";
  for (auto n = random() % 4; n > 0; --n) out += pieces[random() % pieces.size()];
  return out + "\"";
}

std::string random_space(std::mt19937& random) { return random() % 5 ? "" : std::string(1, " \n\t\r"[random() % 4]); }

// A text that is JSON.
std::string random_document(std::mt19937& random, int depth) {
  static const std::vector<std::string> scalars{"0", "-0", "12", "-3.25", "1e5", "6.0E-2", "true", "false", "null"};
  const auto kind = random() % (depth > 0 ? 4 : 2);
  if (kind == 0) return scalars[random() % scalars.size()];
  if (kind == 1) return random_string(random);
  std::string out(1, kind == 2 ? '[' : '{');
  for (std::size_t n = random() % 4, i = 0; i < n; ++i) {
    if (i > 0) out += "," + random_space(random);
    if (kind == 3) out += random_space(random) + random_string(random) + random_space(random) + ":" + random_space(random);
    out += random_document(random, depth - 1) + random_space(random);
  }
  return out + (kind == 2 ? "]" : "}");
}

std::string changed(std::string text, std::mt19937& random) {
  for (auto n = random() % 3; n > 0 && !text.empty(); --n) {
    const std::size_t at = random() % text.size();
    const std::string& part = parts()[random() % parts().size()];
    switch (random() % 4) {
      case 0: text[at] = part[0]; break;
      case 1: text.erase(at, 1); break;
      case 2: text.insert(at, part); break;
      default: text.resize(at + random() % (text.size() - at)); break;
    }
  }
  return text;
}

// What the parser refuses though RFC 8259's grammar has it: numbers beyond a double, surrogates alone.
bool is_beyond(const std::string& text) {
  std::size_t digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 2) return true;  // of an exponent, perhaps
  }
  for (std::size_t at = text.find("\\u"); at != std::string::npos; at = text.find("\\u", at + 1)) {
    if (at + 2 < text.size() && (text[at + 2] == 'd' || text[at + 2] == 'D')) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Grammar::json() takes what a JSON parser takes, of random texts") {
  const GrammarVocabulary v = vocabulary();
  const CompiledGrammar json = compiled(Grammar::json(), v);
  std::mt19937 random(2);
  const std::uint64_t least = text_count(40'000);
  std::uint64_t compared = 0, valid = 0;
  for (std::uint64_t i = 0; compared < least; ++i) {
    std::string text;
    if (i % 3 == 0) {
      for (auto n = 1 + random() % 6; n > 0; --n) text += parts()[random() % parts().size()];
    } else {
      text = changed(random_document(random, 3), random);
    }
    const bool want = Json::accept(text);
    if (!want && is_beyond(text)) continue;
    ++compared;
    valid += want;
    INFO(text);
    if (accepts(json, text) != want) FAIL("the parser says " << want);
  }
  CHECK(valid > least / 8);
  CHECK(valid < least / 8 * 7);
}

TEST_CASE("surrogates: a pair is a character, one alone is none") {
  const GrammarVocabulary v = vocabulary();
  const CompiledGrammar json = compiled(Grammar::json(), v);
  CHECK(accepts(json, R"("\ud83d\ude00")"));
  CHECK(accepts(json, R"("\uD83D\uDE00\u00e9")"));
  CHECK_FALSE(accepts(json, R"("\ud83d")"));
  CHECK_FALSE(accepts(json, R"("\ude00")"));
  CHECK_FALSE(accepts(json, R"("\ud83d\u0041")"));
}

}  // namespace test_grammar_json
