// Unigram vocabularies: SentencePiece's own ids and texts (golden/make_unigram_goldens.py), the search by its definition,
// and files and texts that were made to do harm.
#include <fstream>
#include <limits>
#include <sstream>

#include "catch.hpp"
#include "counted_new.hpp"
#include "text/models/charsmap.hpp"
#include "text/rig.hpp"

namespace test_unigram {

using namespace tessera;
using namespace rig;

namespace {

const std::string kUnigramGoldens = std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/";

// "x" and hex.
std::string text_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 1; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

GgufFile open_unigram(const std::string& name) {
  auto source = open_file(kUnigramGoldens + "unigram-" + name + ".gguf");
  REQUIRE(source);
  auto file = GgufFile::read(*source);
  REQUIRE(file);
  return *file;
}

Tokenizer load_unigram(const std::string& name) {
  auto tokenizer = Tokenizer::from_settings(open_unigram(name).settings());
  if (!tokenizer) FAIL(tokenizer.error().text());
  return *tokenizer;
}

Vocab unigram() {
  Vocab v;
  v.model = "t5";
  v.add("<pad>", TokenType::control);
  v.add("</s>", TokenType::control);
  v.add("<unk>", TokenType::unknown);
  return v;
}

void add_bytes(Vocab& v) {
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    v.add(text, TokenType::byte);
  }
}

Status set_charsmap(GgufWriter& writer, const std::vector<std::uint8_t>& bytes) {
  return writer.copy({"tokenizer.ggml.precompiled_charsmap", GgufType::array, GgufType::u8, bytes.size(), 0, std::as_bytes(std::span(bytes))});
}

std::string repeat(std::string_view unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    out.push_back(text.substr(i, size));
    i += size;
  }
  return out;
}

// The search as its definition reads, over a text with U+2581 for spaces: the best sum to get behind each character;
// of equal ones the piece that begins first.
std::vector<Token> by_definition(const Vocab& v, const std::string& text) {
  const auto characters = characters_of(text);
  const std::size_t n = characters.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.types[id] == static_cast<int>(TokenType::normal)) least = std::min(least, double{v.scores[id]});
  }
  std::vector<double> best(n + 1, 0);
  std::vector<std::pair<std::size_t, Token>> from(n + 1, {n + 1, -1});
  for (std::size_t begin = 0; begin < n; ++begin) {
    std::string piece;
    bool single = false;
    for (std::size_t end = begin + 1; end <= n; ++end) {
      piece += characters[end - 1];
      for (std::size_t id = 0; id < v.tokens.size(); ++id) {
        if (v.tokens[id] != piece || v.types[id] != static_cast<int>(TokenType::normal)) continue;
        const double sum = best[begin] + double{v.scores[id]};
        single |= end == begin + 1;
        if (from[end].first > n || sum > best[end]) {
          best[end] = sum;
          from[end] = {begin, static_cast<Token>(id)};
        }
        break;
      }
    }
    const double sum = best[begin] + least - 10;
    if (!single && (from[begin + 1].first > n || sum > best[begin + 1])) {
      best[begin + 1] = sum;
      from[begin + 1] = {begin, 2};
    }
  }
  std::vector<Token> ids;
  for (std::size_t at = n; at > 0; at = from[at].first) {
    if (from[at].second != 2 || ids.empty() || ids.back() != 2) ids.push_back(from[at].second);
  }
  return {ids.rbegin(), ids.rend()};
}

}  // namespace

TEST_CASE("unigram: SentencePiece's ids, and its texts") {
  std::ifstream file(kUnigramGoldens + "unigram.txt");
  REQUIRE(file);
  std::optional<Tokenizer> tokenizer;
  std::string model;
  int texts = 0, decoded = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, hex, text;
    words >> kind >> hex >> text;
    if (kind == "model") {
      model = hex;
      tokenizer = load_unigram(model);
      CHECK(tokenizer->model() == TokenizerModel::unigram);
      continue;
    }
    std::vector<Token> expected;
    for (Token id; words >> id;) expected.push_back(id);
    CAPTURE(model, text_of_hex(hex), hex);
    CHECK(*tokenizer->encode(text_of_hex(hex), kPlain) == expected);
    ++texts;
    if (text == "-") continue;
    CHECK(*tokenizer->decode(expected) == text_of_hex(text));
    ++decoded;
  }
  CHECK(texts > 250);
  CHECK(decoded > 100);
}

TEST_CASE("unigram: the search finds what its definition does") {
  std::mt19937 random(21);
  for (int round = 0; round < 80; ++round) {
    Vocab v = unigram();
    const std::vector<std::string> letters = {"a", "b", "c", kSpace, "é", "中"};
    std::vector<std::string> made;
    for (int i = 0; i < 40; ++i) {
      std::string piece;
      for (unsigned k = 1 + random() % 4; k > 0; --k) piece += letters[random() % letters.size()];
      if (std::find(made.begin(), made.end(), piece) != made.end()) continue;
      made.push_back(piece);
      const TokenType types[] = {TokenType::normal, TokenType::normal, TokenType::normal, TokenType::unused, TokenType::control};
      v.add(piece, types[random() % 5], -static_cast<float>(random() % 12) / 4);  // whole quarters: sums are exact
    }
    v.flags["add_space_prefix"] = random() % 2 == 0;
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (int n = 0; n < 60; ++n) {
      std::string text;
      const char* parts[] = {"a", "b", "c", " ", "é", "中", "x"};
      for (unsigned i = random() % 30; i > 0; --i) text += parts[random() % 7];
      const auto expected = text.empty() ? std::vector<Token>{} : by_definition(v, (v.flags["add_space_prefix"] ? kSpace : "") + escape(text));
      if (*tokenizer.encode(text, kPlain) != expected) FAIL("differs for \"" << text << "\"");
    }
  }
}

TEST_CASE("unigram: defaults are T5's, and special tokens are placed around texts of their own") {
  Vocab v = unigram();
  const Token a = v.add(kSpace + "a", TokenType::normal, -1), b = v.add("b", TokenType::normal, -1),
              user = v.add("[u]", TokenType::user_defined);
  const Tokenizer bare = rig::tokenizer(v);
  CHECK_FALSE(bare.bos());
  CHECK(bare.eos() == Token{1});
  CHECK(*bare.encode("b") == std::vector<Token>{b, 1});
  v.flags["add_space_prefix"] = true;
  v.flags["remove_extra_whitespaces"] = true;
  const Tokenizer tokenizer = rig::tokenizer(v);
  CHECK(*tokenizer.encode("  ab  [u] a</s>a ", {.bos = Bos::never, .special = Special::parse}) ==
        std::vector<Token>{a, b, user, a, 1, a});
  // As text, "</s>" is one unknown stretch; "<pad>" likewise never becomes its token.
  CHECK(*tokenizer.encode("a</s>b", kPlain) == std::vector<Token>{a, 2, b});
  CHECK(*tokenizer.decode(std::vector<Token>{a, b, user, a}) == "ab[u] a");
  CHECK_FALSE(tokenizer == bare);
  v.flags["remove_extra_whitespaces"] = false;
  CHECK_FALSE(tokenizer == rig::tokenizer(v));
}

TEST_CASE("unigram: bytes that are not UTF-8 become byte tokens, or an unknown one") {
  Vocab v = unigram();
  v.add("a", TokenType::normal, -1);
  const Tokenizer without = rig::tokenizer(v);
  CHECK(*without.encode("a\xFF\xFE中a\xC3", kPlain) == std::vector<Token>{3, 2, 3, 2});
  add_bytes(v);
  const Tokenizer with = rig::tokenizer(v);
  std::mt19937 random(3);
  for (int n = 0; n < 3000; ++n) {
    const std::string bytes = random_text(random, "a \xC3\xA9\xE4\xB8\xFF\x80\xF0\x9F", 20);
    std::string back;
    const std::vector<Token> ids = *with.encode(bytes, kPlain);
    for (const Token id : ids) {
      CHECK_FALSE(with.is_control(id));
      back += with.piece(id);
    }
    if (back != escape(bytes)) FAIL("lost bytes");  // a space that no piece says is U+2581's bytes, as in SentencePiece
  }
}

TEST_CASE("unigram: wrong metadata is an error that names the key and the place") {
  const auto refused = [](const Vocab& v, const std::function<void(GgufWriter&)>& edit, const std::string& place, const std::string& says) {
    const auto loaded = load(v, edit);
    REQUIRE_FALSE(loaded);
    INFO(loaded.error().text());
    CHECK(loaded.error().text().find(place) != std::string::npos);
    CHECK(loaded.error().text().find(says) != std::string::npos);
  };
  Vocab v = unigram();
  v.add("a");
  const auto with_map = [](std::vector<std::uint8_t> bytes) {
    return [bytes](GgufWriter& w) {
      REQUIRE(set_charsmap(w, bytes));
    };
  };
  const std::string key = "precompiled_charsmap";
  refused(v, with_map({1}), key, "1 bytes");
  refused(v, with_map({8, 0, 0, 0, 1, 2, 3, 4}), key, "trie of 8 bytes");
  refused(v, with_map({3, 0, 0, 0, 1, 2, 3, 0}), key, "trie of 3 bytes");
  refused(v, with_map({0, 0, 0, 0, 0}), key, "trie of 0 bytes");
  refused(v, with_map({4, 0, 0, 0, 1, 2, 3, 4, 'a'}), key, "does not end");
  refused(v, with_map({4, 0, 0, 0, 1, 2, 3, 4}), key, "does not end");
  std::vector<std::uint8_t> large = {4, 0, 0, 0, 1, 2, 3, 4};
  large.resize(8 + 2000, 'a');
  large.push_back(0);
  refused(v, with_map(large), key, "2000 bytes");
  refused(v, [](GgufWriter& w) { REQUIRE(w.set_string("tokenizer.ggml.precompiled_charsmap", "x")); }, key, "");
  CHECK(load(v, with_map({})));
  CHECK(load(v, with_map({4, 0, 0, 0, 1, 2, 3, 4, 0})));
  v.add(std::string(600, 'a'));
  refused(v, {}, "tokenizer.ggml.tokens", "token 4 has 600 bytes");
  v = unigram();
  v.scores.clear();
  refused(v, {}, "tokenizer.ggml.scores", "");
}

TEST_CASE("unigram: scores without bounds, and none at all") {
  for (const float score : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 3e38f, -3e38f}) {
    Vocab v = unigram();
    v.add("a", TokenType::normal, score);
    v.add("aa", TokenType::normal, -score);
    v.add("b", TokenType::normal, 1);
    v.add("x", TokenType::normal, score);
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (const std::string text : {"aaaaa", "abaabxaxx", "ccc", "xxxxxxxxxxx"}) {
      std::string back;
      const std::vector<Token> ids = *tokenizer.encode(text, kPlain);
      for (const Token id : ids) back += id == 2 ? std::string("ccc") : std::string(tokenizer.piece(id));
      CHECK(back == text);
    }
  }
  CHECK(*rig::tokenizer(unigram()).encode("abc", kPlain) == std::vector<Token>{2});
}

TEST_CASE("unigram: a charsmap of any bytes replaces something or nothing, in linear time") {
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    std::string blob(4, '\0');
    const std::uint32_t units = 1 + random() % 300;
    blob[0] = static_cast<char>(4 * units & 0xFF);
    blob[1] = static_cast<char>(4 * units >> 8);
    for (std::uint32_t i = 0; i < units; ++i) {
      // Labels, offsets and flags that occur; all bits now and then.
      const std::uint32_t unit = random() % 8 == 0 ? static_cast<std::uint32_t>(random())
                                                   : (random() % 300) << 10 | (random() % 4 == 0 ? 0x100u : 0u) | random() % 256;
      for (int k = 0; k < 4; ++k) blob.push_back(static_cast<char>(unit >> (8 * k)));
    }
    blob += std::string("some\0 thing\0", 12);
    REQUIRE(detail::Charsmap::check(blob));
    const detail::Charsmap map(blob);
    for (int n = 0; n < 20; ++n) {
      std::string text(random() % 40, ' ');
      for (char& c : text) c = static_cast<char>(random());
      const auto found = map.find(text);
      REQUIRE(found.size <= text.size());
      REQUIRE(found.replacement.size() <= 6);
    }
  }
  // One node whose child 'a' is itself: the offset 'a' leads from unit 'a' back to unit 0 ^ 'a'.
  std::vector<std::uint8_t> loop = {0, 4, 0, 0};
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t unit = i == 'a' ? std::uint32_t{'a'} << 10 | 'a' : 0;
    for (int k = 0; k < 4; ++k) loop.push_back(static_cast<std::uint8_t>(unit >> (8 * k)));
  }
  loop.push_back(0);
  Vocab v = unigram();
  v.add("a", TokenType::normal, -1);
  const auto tokenizer = load(v, [&](GgufWriter& w) {
    REQUIRE(set_charsmap(w, loop));
  });
  REQUIRE(tokenizer);
  CHECK(tokenizer->encode(std::string(1'000'000, 'a'), kPlain)->size() == 1'000'000);
}

TEST_CASE("unigram: encoding takes ten bytes a byte, whatever reaches into what") {
  Vocab chained = unigram();  // "ab", "ba": no place that nothing reaches across
  for (const char* piece : {"a", "b", "ab", "ba", "aba", "bab", "aa"}) chained.add(piece, TokenType::normal, -1);
  chained.add(std::string(511, 'a'), TokenType::normal, -1000);
  Vocab singles = chained;
  for (float& score : singles.scores) score = 0;
  singles.scores[3] = singles.scores[4] = 1;
  Vocab bytes = chained;
  add_bytes(bytes);
  Vocab words = unigram();
  for (const char* piece : {"the", "thing", "t", "h", "e"}) words.add(kSpace + piece, TokenType::normal, -2);
  words.flags["add_space_prefix"] = words.flags["remove_extra_whitespaces"] = true;
  constexpr std::size_t kSize = 200'000;
  std::vector<std::string> texts;
  for (const char* unit : {"a", "ab", " ", "the thing ", "中", "\xFF", "x", "a x", "aba "}) {
    texts.push_back(repeat(unit, kSize / std::string_view(unit).size()));
  }
  for (const Vocab& v : {chained, singles, bytes, words}) {
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (const std::string& text : texts) {
      CAPTURE(v.tokens.size(), text.substr(0, 10));
      counted::Scope scope;
      const auto ids = tokenizer.encode(text);
      scope.stop();
      REQUIRE(ids);
      CHECK(counted::peak <= 10 * std::max(text.size(), ids->size()) + 4096);
    }
  }
}

TEST_CASE("unigram: loading takes what plan() says") {
  std::mt19937 random(2);
  Vocab v = unigram();
  for (int i = 0; i < 20'000; ++i) v.add(random_text(random, "abcdefgh", 12) + std::to_string(i), TokenType::normal, -static_cast<float>(i));
  std::vector<std::uint8_t> map(4 + 40'000, 0);
  map[0] = 0x40, map[1] = 0x9C;
  map.push_back(0);
  const auto file = rig::write(v, [&](GgufWriter& w) {
    REQUIRE(set_charsmap(w, map));
  });
  const std::uint64_t planned = Tokenizer::plan(file->gguf->settings())->bytes;
  counted::Scope scope;
  auto tokenizer = Tokenizer::from_settings(file->gguf->settings());
  scope.stop();
  REQUIRE(tokenizer);
  const std::uint64_t held = tokenizer->memory_bytes();
  INFO("planned " << planned << ", held " << held << ", counted " << counted::live << ", peak " << counted::peak);
  CHECK(counted::live <= held + 1024);
  CHECK(counted::live + 16'384 >= held);
  CHECK(counted::peak <= planned);
  CHECK(planned <= counted::peak + counted::peak / 100 + 8192);
}

TEST_CASE("unigram: mutated files load or are refused, and what loads works") {
  std::mt19937 random(4);
  std::ifstream stream(kUnigramGoldens + "unigram-rules.gguf", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  int loaded = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string bytes = whole;
    for (unsigned i = 1 + random() % 6; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto source = memory_source(std::as_bytes(std::span(bytes)));
    const auto gguf = GgufFile::read(*source);
    if (!gguf) continue;
    const auto planned = Tokenizer::plan(gguf->settings());
    const auto tokenizer = Tokenizer::from_settings(gguf->settings());
    REQUIRE(planned.has_value() == tokenizer.has_value());
    if (!tokenizer) continue;
    ++loaded;
    REQUIRE(tokenizer->memory_bytes() <= planned->bytes);
    const auto ids = tokenizer->encode("the engine ... ｆｕｌｌ</s> e\xCC\x81 \xFF\n", kPlain);
    REQUIRE(ids);
    for (const Token id : *ids) REQUIRE(tokenizer->type(id) != TokenType::control);
    REQUIRE(tokenizer->decode(*ids));
  }
  CHECK(loaded > 100);
}

TEST_CASE("unigram: any allocation may fail: an error, and the next try works") {
  const GgufFile file = open_unigram("rules");
  const std::string text = repeat("the engine ... ｆｕｌｌ \xFF and more \n", 20);
  bool done = false;
  std::int64_t k = 0;
  for (; !done && k < 10'000; ++k) {
    counted::Scope scope(k);
    ErrorCode code = ErrorCode::out_of_memory;
    if (auto tokenizer = Tokenizer::from_settings(file.settings())) {
      auto ids = tokenizer->encode(text);
      done = ids.has_value();
      if (!ids) code = ids.error().code();
    } else {
      code = tokenizer.error().code();
    }
    scope.stop();
    REQUIRE(code == ErrorCode::out_of_memory);
  }
  CHECK(done);
  CHECK(k > 10);
}

}  // namespace test_unigram
