#include "catch.hpp"
#include "text/rig.hpp"

namespace test_detokenizer {

using namespace tessera;
using namespace rig;

namespace {

// Table 3-7 of the Unicode Standard, as code points: what is UTF-8 at all.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const unsigned kind = lead >> 3;
    const std::size_t size = kind < 16 ? 1 : kind < 24 ? 0 : kind < 28 ? 2 : kind < 30 ? 3 : kind < 31 ? 4 : 0;
    if (size == 0 || i + size > text.size()) return false;
    std::uint32_t code = size == 1 ? lead : lead & (0x7Fu >> size);
    for (std::size_t k = 1; k < size; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3Fu);
    }
    const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += size;
  }
  return true;
}

Token byte(unsigned value) { return static_cast<Token>(value); }  // of byte_level()

std::string stream_bytes(const Tokenizer& tokenizer, std::string_view bytes) {
  Detokenizer stream(tokenizer);
  std::string out;
  for (const char c : bytes) {
    const auto text = stream.push(byte(static_cast<unsigned char>(c)));
    REQUIRE(text);
    REQUIRE(is_utf8(*text));
    REQUIRE(stream.held_bytes() <= 3);
    out += *text;
  }
  return out + stream.finish();
}

const std::string kBad = "\xEF\xBF\xBD";

}  // namespace

TEST_CASE("a stream broken at every byte gives whole characters only, and the same text") {
  const Tokenizer tokenizer = rig::tokenizer(byte_level({}));
  const std::string text = "a é ß 中 🦙 \xF4\x8F\xBF\xBF \xED\x9F\xBF";
  CHECK(stream_bytes(tokenizer, text) == text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string out = stream_bytes(tokenizer, text.substr(0, cut));
    CHECK(is_utf8(out));
    CHECK(text.starts_with(out.ends_with(kBad) ? out.substr(0, out.size() - 3) : out));
  }
}

TEST_CASE("invalid bytes become U+FFFD, one for each maximal part, as soon as it is certain") {
  const Tokenizer tokenizer = rig::tokenizer(byte_level({}));
  // Unicode 15, section 3.9, tables 3-8 to 3-11.
  CHECK(stream_bytes(tokenizer, "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
        kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  CHECK(stream_bytes(tokenizer, "\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
        kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  CHECK(stream_bytes(tokenizer, "\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        kBad + kBad + kBad + kBad + kBad + "A" + kBad + kBad + "B");
  CHECK(stream_bytes(tokenizer, "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == kBad + kBad + kBad + kBad + "A");

  Detokenizer stream(tokenizer);
  CHECK(stream.push(byte(0xE4))->empty());
  CHECK(stream.push(byte(0xB8))->empty());
  CHECK(*stream.push(byte('A')) == kBad + "A");  // not before: it could have become a character
  CHECK(stream.push(byte(0xF0))->empty());
  Detokenizer fork = stream;
  CHECK(stream.finish() == kBad);
  CHECK(stream.finish().empty());
  for (const unsigned next : {0x9Fu, 0xA6u}) CHECK(fork.push(byte(next))->empty());
  CHECK(*fork.push(byte(0x99)) == "🦙");  // a copy goes its own way
}

TEST_CASE("streams and decode() agree on random bytes, however they are cut into tokens") {
  std::mt19937 random(1);
  std::vector<std::pair<std::string, std::string>> merges;
  for (const char* pair : {"\xE4\xB8", "\xF0\x9F", "\xA6\x99", "\xC3\xA9", "\x80\xE4"}) {
    merges.emplace_back(std::string(1, pair[0]), std::string(1, pair[1]));
  }
  const Tokenizer tokenizer = rig::tokenizer(byte_level(merges));
  for (int n = 0; n < 3000; ++n) {
    std::string bytes(random() % 16, '\0');
    for (char& c : bytes) c = "\xE4\xB8\xAD\xF0\x9F\xA6\x99\xC3\xA9\x80 a"[random() % 12];
    const auto ids = tokenizer.encode(bytes);
    REQUIRE(ids);
    Detokenizer stream(tokenizer);
    std::string out;
    for (const Token id : *ids) {
      const auto text = stream.push(id);
      REQUIRE(text);
      REQUIRE(is_utf8(*text));
      out += *text;
    }
    out += stream.finish();
    REQUIRE(out == *tokenizer.decode(*ids));
    REQUIRE(out == stream_bytes(tokenizer, bytes));
  }
}

TEST_CASE("llama: the first token's space goes, unless the text continues another") {
  Vocab v = sentencepiece();
  const Token hi = v.add(kSpace + "hi"), two = v.add(kSpace + kSpace + "x");
  const Tokenizer tokenizer = rig::tokenizer(v);
  const auto decode = [&](std::vector<Token> ids, DecodeOptions options = {}) {
    Detokenizer stream(tokenizer, options);
    std::string out;
    for (const Token id : ids) out += *stream.push(id);
    out += stream.finish();
    CHECK(out == *tokenizer.decode(ids, options));
    return out;
  };
  CHECK(decode({hi, hi}) == "hi hi");
  CHECK(decode({1, hi, hi, 2}) == "hi hi");  // control tokens are not text
  CHECK(decode({two}) == " x");
  CHECK(decode({hi}, {.start = TextStart::continuation}) == " hi");
  CHECK(decode({1, hi}, {.control = ControlText::show}) == "<s>hi");
  CHECK(decode({3 + ' ', hi}) == "  hi");  // a byte is not a prefix
  v.flags["add_space_prefix"] = false;
  CHECK(*rig::tokenizer(v).decode(std::vector<Token>{hi}) == " hi");
}

TEST_CASE("a token that is not in the vocabulary is an error, and changes nothing") {
  const Tokenizer tokenizer = rig::tokenizer(byte_level({}));
  Detokenizer stream(tokenizer);
  CHECK(stream.push(byte(0xC3))->empty());
  for (const Token wrong : {-1, 256, 1 << 30}) {
    const auto text = stream.push(wrong);
    REQUIRE_FALSE(text);
    CHECK(text.error().code() == ErrorCode::invalid_argument);
    CHECK(tokenizer.piece(wrong).empty());
    CHECK(tokenizer.text(wrong).empty());
    CHECK(tokenizer.type(wrong) == TokenType::undefined);
    CHECK_FALSE(tokenizer.is_end_of_generation(wrong));
  }
  CHECK(*stream.push(byte(0xA9)) == "é");
  const auto whole = tokenizer.decode(std::vector<Token>{65, 256});
  REQUIRE_FALSE(whole);
  CHECK(whole.error().place() == "position 1");
}

}  // namespace test_detokenizer
