#include <algorithm>
#include <climits>

#include "catch.hpp"
#include "text/rig.hpp"

namespace test_tokenizer_llama {

using namespace tessera;
using namespace rig;

namespace {

// The algorithm as its definition reads, in quadratic time: join the best pair, leftmost first, until there is none.
std::vector<Token> naive(const Tokenizer& tokenizer, const Vocab& v, const std::string& text) {
  std::vector<std::string> symbols;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    symbols.push_back(text.substr(i, size));
    i += size;
  }
  const auto ordinary = [&](const std::string& s) -> std::optional<Token> {
    const auto id = tokenizer.find(s);
    if (!id) return {};
    const TokenType type = tokenizer.type(*id);
    if (type == TokenType::control || type == TokenType::unknown || type == TokenType::byte) return {};
    return id;
  };
  for (;;) {
    std::size_t best = symbols.size();
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto id = ordinary(symbols[i] + symbols[i + 1]);
      if (!id) continue;
      const float score = v.scores[static_cast<std::size_t>(*id)];
      if (best == symbols.size() || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<Token> ids;
  for (const std::string& symbol : symbols) {
    if (const auto id = ordinary(symbol)) {
      ids.push_back(*id);
    } else {
      for (const char c : symbol) ids.push_back(3 + static_cast<unsigned char>(c));
    }
  }
  return ids;
}

Vocab words() {
  Vocab v = sentencepiece();
  v.add(kSpace, TokenType::normal, -10);
  v.add("a", TokenType::normal, -11);
  v.add("b", TokenType::normal, -12);
  v.add(kSpace + "a", TokenType::normal, -1);
  v.add("ab", TokenType::normal, -2);
  v.add(kSpace + "ab", TokenType::normal, -3);
  v.add(kSpace + kSpace, TokenType::normal, -4);
  return v;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = kPlain) {
  std::vector<std::string> out;
  const auto ids = tokenizer.encode(text, options);
  REQUIRE(ids);
  for (const Token id : *ids) out.emplace_back(tokenizer.text(id));
  return out;
}
using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("llama: fast merging equals merging by the definition") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Vocab v = sentencepiece();
    std::vector<std::string> made = {"a", "b", "c", kSpace, "é", "中"};
    for (const std::string& s : made) {
      if (random() % 4 != 0) v.add(s, TokenType::normal, -50);  // a character without a token can still join others
    }
    for (int i = 0; i < 40; ++i) {
      const std::string joined = made[random() % made.size()] + made[random() % made.size()];
      if (joined.size() > 24 || std::find(v.tokens.begin(), v.tokens.end(), joined) != v.tokens.end()) continue;
      made.push_back(joined);
      const TokenType types[] = {TokenType::normal, TokenType::normal, TokenType::unused, TokenType::control};
      v.add(joined, types[random() % 4], -static_cast<float>(random() % 12));  // many equal scores
    }
    v.flags["add_space_prefix"] = random() % 2 == 0;
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (int n = 0; n < 60; ++n) {
      std::string text;
      const char* letters[] = {"a", "b", "c", " ", "é", "中", "x"};
      for (unsigned i = random() % 30; i > 0; --i) text += letters[random() % 7];
      if (text.empty()) continue;
      const std::string escaped = (v.flags["add_space_prefix"] ? kSpace : "") + escape(text);
      const auto got = tokenizer.encode(text, kPlain);
      REQUIRE(got);
      if (*got != naive(tokenizer, v, escaped)) FAIL("differs for \"" << text << "\"");
      // Where the mark itself has no token, its bytes do not tell it from a space (in SentencePiece neither).
      if (tokenizer.find(kSpace)) REQUIRE(*tokenizer.decode(*got) == text);
    }
  }
}

TEST_CASE("llama: the space prefix stands at the start and after special tokens, not before nothing") {
  Vocab v = words();
  v.add("<x>", TokenType::control);
  v.add("[u]", TokenType::user_defined);
  const Tokenizer tokenizer = rig::tokenizer(v);
  const EncodeOptions parse{.bos = Bos::never, .special = Special::parse};
  CHECK(pieces(tokenizer, "").empty());
  CHECK(pieces(tokenizer, "ab") == Pieces{kSpace + "ab"});
  CHECK(pieces(tokenizer, " ab") == Pieces{kSpace, kSpace + "ab"});
  CHECK(pieces(tokenizer, "<x>ab", parse) == Pieces{"<x>", kSpace + "ab"});
  CHECK(pieces(tokenizer, "<x>", parse) == Pieces{"<x>"});
  CHECK(pieces(tokenizer, "a[u]b[u]") == Pieces{kSpace + "a", "[u]", kSpace, "b", "[u]"});
  CHECK(pieces(tokenizer, "a<x>", parse) == Pieces{kSpace + "a", "<x>"});
  CHECK(pieces(tokenizer, "<x>") == Pieces{kSpace, "<0x3C>", "<0x78>", "<0x3E>"});

  v.flags["add_space_prefix"] = false;
  CHECK(pieces(rig::tokenizer(v), "ab") == Pieces{"ab"});
}

TEST_CASE("llama: control, unknown and byte tokens are never merged from text") {
  Vocab v = words();
  v.add("<", TokenType::normal, -5);
  v.add("<s", TokenType::normal, -1);  // with it, <s> could be reached by merges
  v.add("<0", TokenType::normal, -1);
  const Tokenizer tokenizer = rig::tokenizer(v);
  for (const char* text : {"<s>", "<unk>", "<0x41>"}) {
    const auto ids = tokenizer.encode(text, kPlain);
    REQUIRE(ids);
    CHECK(ids->size() > 1);
    CHECK(*tokenizer.decode(*ids) == text);
  }
  CHECK(pieces(tokenizer, "<s>a", {.bos = Bos::never, .special = Special::parse}) == Pieces{"<s>", kSpace + "a"});
}

TEST_CASE("special tokens: the longest is placed first, then the next") {
  Vocab v = words();
  for (const char* text : {"xa", "axb", "xbxbx", "bx", "  ", "    "}) v.add(text, TokenType::user_defined);
  v.flags["add_space_prefix"] = false;
  const Tokenizer tokenizer = rig::tokenizer(v);
  CHECK(pieces(tokenizer, "axbxbx") == Pieces{"a", "xbxbx"});  // not axb, which begins earlier
  CHECK(pieces(tokenizer, "axbx") == Pieces{"axb", "<0x78>"});
  CHECK(pieces(tokenizer, "       ") == Pieces{"    ", "  ", kSpace});

  // By the definition: one token after another over what is left of the text.
  std::mt19937 random(11);
  std::vector<std::string> specials = {"xbxbx", "    ", "axb", "xa", "bx", "  "};
  std::stable_sort(specials.begin(), specials.end(), [&](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : *tokenizer.find(a) < *tokenizer.find(b);
  });
  for (int n = 0; n < 2000; ++n) {
    const std::string text = random_text(random, "abx ", 24);
    std::vector<Token> owner(text.size(), -1);
    std::vector<bool> begins(text.size());
    for (const std::string& special : specials) {
      for (std::size_t at = 0; at + special.size() <= text.size(); ++at) {
        if (text.compare(at, special.size(), special) != 0) continue;
        const auto from = owner.begin() + static_cast<std::ptrdiff_t>(at);
        const auto to = from + static_cast<std::ptrdiff_t>(special.size());
        if (std::any_of(from, to, [](Token t) { return t >= 0; })) continue;
        std::fill(from, to, *tokenizer.find(special));
        begins[at] = true;
      }
    }
    std::vector<Token> expected;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (begins[at]) expected.push_back(owner[at]);
    }
    std::vector<Token> got;
    const auto ids = tokenizer.encode(text, kPlain);
    REQUIRE(ids);
    for (const Token token : *ids) {
      if (tokenizer.type(token) == TokenType::user_defined) got.push_back(token);
    }
    if (got != expected) FAIL("differs for \"" << text << "\"");
  }
}

TEST_CASE("llama: bytes that are not UTF-8 become byte tokens, and nothing is lost") {
  const Tokenizer tokenizer = rig::tokenizer(words());
  CHECK(pieces(tokenizer, "\xC3 a") == Pieces{kSpace, "<0xC3>", kSpace + "a"});
  std::mt19937 random(3);
  for (int n = 0; n < 3000; ++n) {
    std::string bytes = random_text(random, "ab \xC3\xA9\xE4\xB8\xFF\x80\xF0\x9F", 20);
    const auto ids = tokenizer.encode(bytes, kPlain);
    REQUIRE(ids);
    std::string back;
    for (const Token id : *ids) back += tokenizer.piece(id);
    if (!bytes.empty()) back.erase(0, 1);  // the space prefix
    if (back != bytes) FAIL("lost bytes");
  }
}

TEST_CASE("llama: without byte tokens a character becomes one unknown token") {
  Vocab v;
  v.add("<unk>", TokenType::unknown);
  v.add("<s>", TokenType::control);
  v.add("</s>", TokenType::control);
  v.add("a");
  v.flags["add_space_prefix"] = false;
  CHECK(pieces(rig::tokenizer(v), "a中a") == Pieces{"a", "<unk>", "a"});
}

TEST_CASE("BOS and EOS follow the options and the metadata") {
  Vocab v = words();
  const auto ends = [](const Vocab& vocab, Bos bos) {
    const auto ids = rig::tokenizer(vocab).encode("a", {.bos = bos});
    return std::pair(ids->front() == 1, ids->back() == 2);
  };
  CHECK(ends(v, Bos::as_model) == std::pair(true, false));  // the default of `llama`
  CHECK(ends(v, Bos::never) == std::pair(false, false));
  v.flags["add_bos_token"] = false;
  v.flags["add_eos_token"] = true;
  CHECK(ends(v, Bos::as_model) == std::pair(false, true));
  CHECK(ends(v, Bos::always) == std::pair(true, false));
}

}  // namespace test_tokenizer_llama
