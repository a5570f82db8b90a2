// libFuzzer's entry to structured output: any text as a pattern, as EBNF or as a schema (the first byte says which) gives
// an error or a grammar, whose masks are walked by the bytes that follow. See CMakeLists.txt for how to run it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <tessera/extend/grammar/matcher.hpp>

namespace {

using namespace tessera;

void require(bool promise) {
  if (!promise) std::abort();
}

const GrammarVocabulary& vocabulary() {
  static const GrammarVocabulary made = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"ab", "{\"", "\":", "true", "12", "\xC3\xA9", "\\u", "]}"}) tokens.emplace_back(text);
    tokens.emplace_back();
    const Token end = static_cast<Token>(tokens.size() - 1);
    return *GrammarVocabulary::create(tokens, {&end, 1});
  }();
  return made;
}

void walk(const CompiledGrammar& grammar, std::uint32_t seed) {
  auto matcher = Matcher::create(grammar);
  if (!matcher) return;
  for (int step = 0; step < 12; ++step) {
    const auto mask = matcher->mask();
    if (!mask) {
      require(mask.error().code() == ErrorCode::over_budget);  // a dead end would be another
      return;
    }
    std::vector<Token> allowed;
    for (Token t = 0; t < static_cast<Token>(vocabulary().size()); ++t) {
      if (((*mask)[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) != 0) allowed.push_back(t);
    }
    seed = seed * 1664525u + 1013904223u;
    const Token token = allowed[(seed >> 8) % allowed.size()];
    if (!matcher->accept(token).has_value()) return;
    if (matcher->ended()) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const JsonSchemaOptions options{.space = JsonSpace::blank, .numbers = data[0] % 2 == 0 ? JsonNumbers::any : JsonNumbers::plain};
  const auto grammar = data[0] % 3 == 0 ? Grammar::regex(text) : data[0] % 3 == 1 ? Grammar::ebnf(text) : Grammar::json_schema(text, options);
  if (!grammar) return 0;
  const auto compiled = CompiledGrammar::create(*grammar, vocabulary(), {.memory_bytes = std::size_t{8} << 20, .step_work = 100'000});
  if (!compiled) return 0;
  for (std::uint32_t seed = 1; seed <= 3; ++seed) walk(*compiled, seed + data[0]);
  return 0;
}
