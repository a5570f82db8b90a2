// Tokens and text: encoding, decoding, properties of a token, and the stream from tokens to text.
#include <algorithm>
#include <optional>
#include <string>

#include <tessera/extend/text/detokenizer.hpp>

#include "engine.hpp"
#include "values/values.hpp"

struct tessera_detokenizer : tessera::c::Tagged<tessera::c::Kind::detokenizer> {
  explicit tessera_detokenizer(tessera::Detokenizer of) noexcept : stream(std::move(of)) {}
  tessera::Detokenizer stream;
  std::string text;  // the text of the last call
};

namespace tessera::c {

namespace {

template <class Enum>
Enum constant(std::int32_t value, std::int32_t most, std::string_view name) {
  if (value >= 0 && value <= most) return static_cast<Enum>(value);
  fail(ErrorCode::invalid_argument,
       "must be one of the constants 0 to " + std::to_string(most) + ", and is " + std::to_string(value), name);
}

DecodeOptions decode_options(std::int32_t control, std::int32_t start) {
  return {.control = constant<ControlText>(control, 1, "control"), .start = constant<TextStart>(start, 1, "start")};
}

const Tokenizer& tokenizer_of(const tessera_engine* engine) { return need(engine, "engine").state->engine.tokenizer(); }

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;

int32_t tessera_encode(const tessera_engine* engine, const char* given, size_t text_size, int32_t bos, int32_t special,
                       tessera_tokens** tokens, tessera_error** error) {
  return call(error, [&] {
    tessera_tokens*& made = out(tokens, "tokens");
    const tessera::EncodeOptions options{.bos = constant<tessera::Bos>(bos, 2, "bos"),
                                         .special = constant<tessera::Special>(special, 1, "special")};
    made = new tessera_tokens(must(tokenizer_of(engine).encode(text(given, text_size, "text"), options)));
  });
}

int32_t tessera_decode(const tessera_engine* engine, const int32_t* tokens, size_t count, int32_t control,
                       int32_t start, tessera_text** text, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(text, "text");
    made = new_text(must(tokenizer_of(engine).decode(list(tokens, count, "tokens"), decode_options(control, start))));
  });
}

int32_t tessera_token_bytes(const tessera_engine* engine, int32_t token, const char** bytes, size_t* size,
                            tessera_error** error) {
  return call(error, [&] {
    clear(size);
    const char*& at = out(bytes, "bytes");
    size_t& n = out(size, "size");
    const tessera::Tokenizer& tokenizer = tokenizer_of(engine);
    if (token < 0 || static_cast<size_t>(token) >= tokenizer.vocab_size()) {
      fail(tessera::ErrorCode::invalid_argument,
           "token " + std::to_string(token) + " is not in the vocabulary of " + std::to_string(tokenizer.vocab_size()) +
               " tokens",
           "token");
    }
    const std::string_view piece = tokenizer.piece(token);
    at = piece.data() != nullptr ? piece.data() : "";
    n = piece.size();
  });
}

int32_t tessera_token_flags(const tessera_engine* engine, int32_t token) {
  if (is_a(engine) == nullptr) return 0;
  const tessera::Tokenizer& tokenizer = engine->state->engine.tokenizer();
  if (token < 0 || static_cast<size_t>(token) >= tokenizer.vocab_size()) return 0;
  const bool suppressed = std::ranges::binary_search(tokenizer.suppressed(), token);
  return (tokenizer.is_control(token) ? TESSERA_TOKEN_CONTROL : 0) |
         (tokenizer.is_end_of_generation(token) ? TESSERA_TOKEN_END : 0) | (suppressed ? TESSERA_TOKEN_SUPPRESSED : 0);
}

int32_t tessera_find_token(const tessera_engine* engine, const char* given, size_t text_size, int32_t* token,
                           tessera_error** error) {
  return call(error, [&] {
    int32_t& found = out(token, "token");
    const std::string_view wanted = text(given, text_size, "text");
    const auto at = tokenizer_of(engine).find(wanted);
    if (!at)
      fail(tessera::ErrorCode::not_found, "the vocabulary has no token \"" + std::string(wanted.substr(0, 100)) + "\"",
           "text");
    found = *at;
  });
}

int32_t tessera_bos_token(const tessera_engine* engine) {
  return is_a(engine) != nullptr ? engine->state->engine.tokenizer().bos().value_or(-1) : -1;
}
int32_t tessera_eos_token(const tessera_engine* engine) {
  return is_a(engine) != nullptr ? engine->state->engine.tokenizer().eos().value_or(-1) : -1;
}

int32_t tessera_detokenizer_create(const tessera_engine* engine, int32_t control, int32_t start,
                                   tessera_detokenizer** stream, tessera_error** error) {
  return call(error, [&] {
    tessera_detokenizer*& made = out(stream, "stream");
    made = new tessera_detokenizer(tessera::Detokenizer(tokenizer_of(engine), decode_options(control, start)));
  });
}

int32_t tessera_detokenizer_push(tessera_detokenizer* stream, int32_t token, const char** text, size_t* size,
                                 tessera_error** error) {
  return call(error, [&] {
    clear(size);
    const char*& at = out(text, "text");
    size_t& n = out(size, "size");
    tessera_detokenizer& of = need(stream, "stream");
    of.text = must(of.stream.push(token));
    at = of.text.c_str();
    n = of.text.size();
  });
}

int32_t tessera_detokenizer_finish(tessera_detokenizer* stream, const char** text, size_t* size,
                                   tessera_error** error) {
  return call(error, [&] {
    clear(size);
    const char*& at = out(text, "text");
    size_t& n = out(size, "size");
    tessera_detokenizer& of = need(stream, "stream");
    of.text = of.stream.finish();
    at = of.text.c_str();
    n = of.text.size();
  });
}

void tessera_detokenizer_free(tessera_detokenizer* stream) { free_handle(stream); }
