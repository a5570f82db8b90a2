// libFuzzer's entry to the tokenizer: a GGUF header, then a text. Any vocabulary loads or is refused, as planned; with
// what loads any text encodes, and decodes to what its pieces say; no text becomes a control token. See CMakeLists.txt
// for how to run it.
//
// Input: a byte of options, two bytes with the text's length, the text, the header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <tessera/extend/files/gguf.hpp>
#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/text/tokenizer.hpp>

using namespace tessera;

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

void check_text(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options) {
  const auto ids = tokenizer.encode(text, options);
  if (!ids) return require(options.bos == Bos::always && !tokenizer.bos());
  Detokenizer stream(tokenizer, {.start = TextStart::continuation});
  std::string streamed;
  for (const Token id : *ids) {
    require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.vocab_size());
    if (tokenizer.is_control(id)) require(tokenizer.piece(id).empty());
    if (options.special == Special::as_text && options.bos == Bos::never) {
      require(tokenizer.type(id) != TokenType::control);
    }
    streamed += *stream.push(id);
  }
  streamed += stream.finish();
  require(streamed == *tokenizer.decode(*ids, {.start = TextStart::continuation}));
  require(*tokenizer.encode(text, options) == *ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::uint8_t choice = data[0];
  const std::size_t text_size = std::min<std::size_t>(data[1] | data[2] << 8, size - 3);
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, text_size);
  const auto source = memory_source(std::as_bytes(std::span(data, size)).subspan(3 + text_size));
  const auto file = GgufFile::read(*source);
  if (!file) return 0;
  const auto plan = Tokenizer::plan(file->settings());
  const auto tokenizer = Tokenizer::from_settings(file->settings());
  require(plan.has_value() == tokenizer.has_value());
  if (!tokenizer) {
    require(plan.error().text() == tokenizer.error().text() && tokenizer.error().code() != ErrorCode::internal);
    return 0;
  }
  require(plan->tokens == tokenizer->vocab_size() && tokenizer->memory_bytes() <= plan->bytes);
  require(*Tokenizer::from_settings(file->settings()) == *tokenizer);
  const EncodeOptions options{.bos = static_cast<Bos>(choice % 3), .special = static_cast<Special>(choice / 3 % 2)};
  check_text(*tokenizer, text, options);
  check_text(*tokenizer, text, {.bos = Bos::never});
  return 0;
}
