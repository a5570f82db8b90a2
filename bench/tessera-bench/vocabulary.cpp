#include "vocabulary.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "failure.hpp"

namespace tessera::bench {

namespace {

// Values of GGUF's tokenizer.ggml.token_type.
enum TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, byte = 6 };

// Returns a different word for each number: U+2581 (a space), then the number in base 26, in letters: a, b, ..., z, ba, bb, ...
std::string word(std::uint32_t number) {
  std::string letters;
  for (std::uint32_t rest = number;;) {
    letters.insert(letters.begin(), static_cast<char>('a' + rest % 26));
    rest /= 26;
    if (rest == 0) return letters.insert(0, "\u2581");
  }
}

}  // namespace

void add_vocabulary(GgufWriter& writer, std::uint32_t size) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {unknown, control, control};
  for (int i = 0; i < 256; ++i) {
    tokens.push_back(fmt::format("<0x{:02X}>", i));
    types.push_back(byte);
  }
  tokens.resize(size);
  types.resize(size, normal);
  std::vector<float> scores(size);
  for (std::uint32_t i = 259; i < size; ++i) {
    tokens[i] = word(i - 259);
    scores[i] = -static_cast<float>(i);
  }
  check(writer.set_string("tokenizer.ggml.model", "llama"));
  check(writer.set_string("tokenizer.ggml.pre", "default"));
  check(writer.set_array("tokenizer.ggml.tokens", tokens));
  check(writer.set_array("tokenizer.ggml.scores", scores));
  check(writer.set_array("tokenizer.ggml.token_type", types));
  check(writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{1}));
  check(writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{2}));
  check(writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0}));
}

}  // namespace tessera::bench
