// Normal form C against Python's unicodedata, and encoding with it against Hugging Face's tokenizers
// (golden/make_nfc_goldens.py); texts that were made to take long.
#include <utf8proc.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "counted_new.hpp"
#include "text/nfc.hpp"
#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"
#include "text/rig.hpp"

namespace test_nfc {

using namespace tessera;
using namespace rig;
using detail::Nfc;

namespace {

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string utf8_of(std::initializer_list<std::int32_t> points) {
  std::string text;
  for (const std::int32_t point : points) {
    utf8proc_uint8_t bytes[4];
    text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(utf8proc_encode_char(point, bytes)));
  }
  return text;
}

std::ifstream golden_of_nfc(const char* name) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/" + name);
  REQUIRE(file);
  return file;
}

std::string times(std::string_view unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

// "e" + U+0301, and what follows from it.
Vocab accents(std::string pre) {
  return byte_level({{"\xC3", "\xA9"}, {"e", "\xCC"}, {"e\xCC", "\x81"}}, std::move(pre));
}

}  // namespace

TEST_CASE("NFC: characters that change, that are put together, and random sequences") {
  std::ifstream file = golden_of_nfc("nfc.txt");
  Nfc nfc;
  std::string source, expected, all, all_expected;
  std::size_t cases = 0;
  for (; file >> source >> expected; ++cases) {
    const std::string text = bytes_of_hex(source), normal = bytes_of_hex(expected);
    if (nfc.normalize(text) != normal) FAIL("differs for " << source);
    if (nfc.normalize(normal) != normal) FAIL("not normal: " << expected);
    CHECK(normal.size() <= Nfc::kMostGrowth * text.size());
    // Behind a letter that nothing can join, each case stands by itself.
    all += "\n" + text;
    all_expected += "\n" + normal;
  }
  CHECK(cases > 2500);
  CHECK(nfc.normalize(all) == all_expected);
}

TEST_CASE("NFC: every syllable of Hangul from its letters, and what follows one") {
  Nfc nfc;
  for (std::int32_t s = 0; s < 11172; ++s) {
    const std::int32_t l = 0x1100 + s / 588, v = 0x1161 + s % 588 / 28, t = 0x11A7 + s % 28;
    const std::string whole = utf8_of({0xAC00 + s});
    const std::string letters = s % 28 == 0 ? utf8_of({l, v}) : utf8_of({l, v, t});
    REQUIRE(nfc.normalize(letters) == whole);
    REQUIRE(nfc.normalize(utf8_of({0xAC00 + s / 28 * 28, t}) + "x") == (s % 28 == 0 ? whole + utf8_of({t}) : whole) + "x");
    REQUIRE(nfc.normalize(whole) == whole);
  }
}

TEST_CASE("NFC: whatever a decomposition has behind its first character joins, in the version of Unicode installed") {
  for (std::int32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::int32_t points[8];
    const auto count = utf8proc_decompose_char(c, points, 8, UTF8PROC_DECOMPOSE, nullptr);
    REQUIRE(count >= 1);
    REQUIRE(count <= 4);
    for (int i = 1; i < count; ++i) {
      if (detail::joining_of(points[i]) != detail::Joining::joins) FAIL(c << " has " << points[i]);
    }
  }
}

TEST_CASE("NFC: a text that is normal is not copied, and one that is not is as by utf8proc") {
  Nfc nfc;
  const std::string plain = "na\xC3\xAFve \xE4\xB8\xAD\xE6\x96\x87 \xED\x95\x9C \xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7 \xF0\x9F\x9A\x80";
  CHECK(nfc.normalize(plain).data() == plain.data());
  CHECK(nfc.normalize("").empty());
  std::mt19937 random(5);
  const std::int32_t pool[] = {'a',    'e',    ' ',    0xE9,   0x301,  0x300,  0x323,  0x327,  0x344,  0x345, 0x1161,
                               0x1100, 0x11A8, 0xAC00, 0x1EC7, 0x212B, 0x3099, 0x304B, 0x0CC6, 0x0CD5, 0x0CC2, 0xFB1D,
                               0x05B4, 0x0F73, 0x0F71, 0x1D160, 0x2ADC, 0x338,  0x2F800};
  for (int n = 0; n < 20'000; ++n) {
    std::string text;
    for (unsigned i = random() % 12; i > 0; --i) text += utf8_of({pool[random() % std::size(pool)]});
    auto* expected = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    const bool same = nfc.normalize(text) == reinterpret_cast<const char*>(expected);
    std::free(expected);
    if (!same) FAIL("differs in round " << n);
  }
}

TEST_CASE("models whose tokenizer normalises see the normal form, and all others the text") {
  const std::set<std::string> normalising = {"mpt", "gpt-neox", "olmo", "qwen2", "deepseek-r1-qwen", "qwen35", "command-r"};
  std::istringstream names(detail::known_pre_tokenizers());
  std::size_t n_normalising = 0;
  for (std::string pre; std::getline(names >> std::ws, pre, ',');) {
    CAPTURE(pre);
    const Tokenizer tokenizer = rig::tokenizer(accents(pre));
    CHECK(*tokenizer.encode("\xC3\xA9", kPlain) == std::vector<Token>{256});
    const std::vector<Token> apart = *tokenizer.encode("e\xCC\x81", kPlain);
    if (normalising.contains(pre)) {
      ++n_normalising;
      CHECK(apart == std::vector<Token>{256});
    } else {
      CHECK(apart != std::vector<Token>{256});
      CHECK(*tokenizer.decode(apart) == "e\xCC\x81");
    }
  }
  CHECK(n_normalising == normalising.size());
  Vocab pieces = rig::sentencepiece();
  const Token whole = pieces.add("\xC3\xA9");
  CHECK(*rig::tokenizer(pieces).encode("\xC3\xA9", kPlain) != *rig::tokenizer(pieces).encode("e\xCC\x81", kPlain));
  CHECK(rig::tokenizer(pieces).encode("\xC3\xA9", kPlain)->back() == whole);
  CHECK_FALSE(rig::tokenizer(accents("mpt")) == rig::tokenizer(accents("gpt-2")));  // the same patterns
}

TEST_CASE("bytes that are not UTF-8 stay as they are between stretches that are normalised") {
  const Tokenizer tokenizer = rig::tokenizer(accents("qwen2"));
  const auto bytes = [&](std::string_view text) {
    std::string back;
    const std::vector<Token> tokens = *tokenizer.encode(text, kPlain);
    for (const Token token : tokens) back += tokenizer.piece(token);
    return back;
  };
  CHECK(bytes("e\xCC\x81\xFF\xCC\x81" "e\xCC\x81\xCC") == "\xC3\xA9\xFF\xCC\x81\xC3\xA9\xCC");
  CHECK(bytes("e\xFF\xCC\x81") == "e\xFF\xCC\x81");  // the mark has nothing to join
  CHECK(bytes("\xC3\x28\xE2\x84\xAB") == "\xC3\x28\xC3\x85");
}

TEST_CASE("special tokens are found in the text as it is") {
  Vocab v = accents("qwen2");
  const Token special = v.add("<e\xCC\x81>", TokenType::user_defined), control = v.add("<\xC3\xA9>", TokenType::control);
  const Tokenizer tokenizer = rig::tokenizer(v);
  const EncodeOptions parse{.bos = Bos::never, .special = Special::parse};
  CHECK(*tokenizer.encode("<e\xCC\x81>e\xCC\x81", parse) == std::vector<Token>{special, 256});
  CHECK(tokenizer.encode("<\xC3\xA9>", parse)->front() == control);
  // A mark behind a special token begins a text of its own.
  CHECK(tokenizer.encode("e<e\xCC\x81>\xCC\x81", kPlain)->size() == 4);
  // No text becomes a control token by being normalised.
  const std::vector<Token> marked = *tokenizer.encode("<e\xCC\x81\xCC\x81>", parse);
  for (const Token token : marked) CHECK_FALSE(tokenizer.is_control(token));
}

TEST_CASE("a vocabulary like Qwen2's gives the reference's ids") {
  std::ifstream file = golden_of_nfc("nfc_tokens.txt");
  Vocab v;
  v.model = "gpt2";
  v.pre = "qwen2";
  std::optional<Tokenizer> tokenizer;
  int texts = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, first;
    words >> kind >> first;
    if (kind == "token") {
      v.add(first);
    } else if (kind == "merge") {
      v.merges.push_back(line.substr(6));
    } else {
      if (!tokenizer) {
        v.add("<|end|>", TokenType::control);
        tokenizer = rig::tokenizer(v);
      }
      std::vector<Token> expected;
      for (Token id; words >> id;) expected.push_back(id);
      CAPTURE(first);
      CHECK(*tokenizer->encode(bytes_of_hex(first), {.bos = Bos::never, .special = Special::parse}) == expected);
      ++texts;
    }
  }
  CHECK(texts > 70);
}

TEST_CASE("texts that are made of marks take n log n, and ten bytes a byte") {
  const Tokenizer tokenizer = rig::tokenizer(accents("qwen2"));
  constexpr std::size_t kCount = 500'000;
  std::vector<std::string> texts = {"e" + times("\xCC\x81", kCount), "e" + times("\xCC\x81\xCC\xA3", kCount / 2),
                                    times("e\xCC\x81", kCount), times("\xCD\x84", kCount), times("\xCD\x84\xCC\xA3", kCount / 2),
                                    times("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", kCount / 3), times("\xE1\x85\xA1", kCount),
                                    std::string(2 * kCount, 'a') + "\xE2\x84\xAB", times("\xF0\x9D\x85\xA0", kCount / 4),
                                    times("\xEF\xAC\xAC", kCount / 3)};
  // All classes from the highest to the lowest, again and again.
  std::string falling;
  for (const std::int32_t mark : {0x345, 0x35D, 0x35C, 0x301, 0x315, 0x302A, 0x323, 0x327, 0x5B0, 0x3099, 0x93C, 0x334}) {
    falling += utf8_of({mark});
  }
  texts.push_back("a" + times(falling, kCount / 12));
  std::string fallen;  // each class in a run of its own
  for (const std::int32_t mark : {0x345, 0x35D, 0x301, 0x323, 0x327, 0x334}) fallen += times(utf8_of({mark}), kCount / 6);
  texts.push_back("a" + fallen);
  for (const std::string& text : texts) {
    CAPTURE(text.substr(0, 12));
    Nfc nfc;
    const std::size_t normal = nfc.normalize(text).size();
    CHECK(normal <= Nfc::kMostGrowth * text.size());
    counted::Scope scope;
    const auto ids = tokenizer.encode(text, kPlain);
    scope.stop();
    REQUIRE(ids);
    CHECK(counted::peak <= 11 * std::max({text.size(), normal, ids->size()}) + 4096);
  }
}

TEST_CASE("any allocation may fail while a text is normalised") {
  const Tokenizer tokenizer = rig::tokenizer(accents("qwen2"));
  const std::string text = times("e\xCC\x81\xCC\xA3 and \xCD\x84", 40) + times("\xCC\xA3\xCC\x81\xCC\xA7", 90'000);
  const auto expected = tokenizer.encode(text, kPlain);
  bool done = false;
  for (std::int64_t k = 0; !done && k < 10'000; ++k) {
    counted::Scope scope(k);
    const auto ids = tokenizer.encode(text, kPlain);
    scope.stop();
    done = ids.has_value();
    if (done) {
      CHECK(*ids == *expected);
    } else {
      REQUIRE(ids.error().code() == ErrorCode::out_of_memory);
    }
  }
  CHECK(done);
}

}  // namespace test_nfc
