#include "text/rules/same_tokens.hpp"

#include <string_view>

namespace tessera::detail {

namespace {

// Two tokenizers count as equal if they give the same tokens for all of these texts.
constexpr std::string_view kComparedTexts[] = {
    "", " ", "  ", "\n", "\n\n", " \n ", "\t", "\r\n", "a", " a", "a ", "Hello world", "Hello, world! It's a test; they'll've seen HE'S I'M.",
    "The quick  brown   fox\tjumps\n\nover the lazy dog.  ", "1 12 123 1234 12345 1,234,567.89 3.14e-10 0x1F", "2024-11-27T21:30:00Z",
    "def f(x):\n    return {\"a\": [1, 2], 'b': x ** 2}  # note\n\n\nif __name__ == '__main__':\n\tprint(f(3))\n", "https://example.org/a?b=c&d=%20#e",
    "Größe naïve façade ÆØÅ ß ſ İ ı", "Привет, мир! Это проверка.", "你好,世界!今天天气怎么样?", "こんにちは世界。カタカナとひらがな", "안녕하세요 세계",
    "مرحبا بالعالم", "हिन्दी में पाठ", "ไทยภาษา", "e\xCC\x81 n\xCC\x83 A\xCC\x8A", "\xEF\xBC\xA1\xEF\xBC\xA2\xEF\xBC\xA3\xEF\xBC\x91\xEF\xBC\x92", "\xF0\x9F\x98\x80\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD \xF0\x9F\x87\xA9\xF0\x9F\x87\xAA",
    "x\xC2\xA0y\xE2\x80\x83z\xE3\x80\x80w", "----====____****....!!!???", "<|im_start|>user\nhi<|im_end|>", "<s>[INST] a [/INST]</s>", "CamelCaseWord snake_case_word SCREAMING_CASE",
    "a\nb\n\nc\n\n\nd", "   leading and trailing   ", "\xE2\x96\x81" "a\xE2\x96\x81" "b", "$100 \xE2\x82\xAC" "5 \xC2\xB1" "2% \xC2\xB2\xC2\xB3\xC2\xBD"};

}  // namespace

bool encode_alike(const Tokenizer& a, const Tokenizer& b) {
  for (const std::string_view text : kComparedTexts) {
    const auto ours = a.encode(text, {.bos = Bos::never}), theirs = b.encode(text, {.bos = Bos::never});
    if (!ours || !theirs || *ours != *theirs) return false;
  }
  return true;
}

bool give_same_tokens(const Tokenizer& a, const Tokenizer& b) {
  for (const std::string_view text : kComparedTexts) {
    const auto ours = a.encode(text, {.bos = Bos::never}), theirs = b.encode(text, {.bos = Bos::never});
    if (!ours || !theirs || *ours != *theirs) return false;
    const auto ours_back = a.decode(*ours), theirs_back = b.decode(*ours);
    if (!ours_back || !theirs_back || *ours_back != *theirs_back) return false;
  }
  return true;
}

}  // namespace tessera::detail
