// Vocabularies and texts that were made to take long, to take memory, or to become what text must not become.
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "catch.hpp"
#include "counted_new.hpp"
#include "text/rig.hpp"
#include "text/special_tokens.hpp"

namespace test_tokenizer_hostile {

using namespace tessera;
using namespace rig;

namespace {

// What is bounded here takes a second, with sanitizers some; what is not takes minutes.
constexpr std::chrono::seconds kPatience{40};

class Stopwatch {
 public:
  [[nodiscard]] bool patient() const { return std::chrono::steady_clock::now() - begin_ < kPatience; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// x with hash_mix(x) == h: each of its steps can be undone.
std::uint64_t unmix(std::uint64_t h) {
  h ^= h >> 29;
  h ^= h >> 58;
  std::uint64_t inverse = 1;  // of the odd factor, by Newton's iteration
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15u * inverse;
  h *= inverse;
  return h ^ (h >> 32);
}

// The i-th text of 8 bytes whose hash ends in 24 zero bits.
std::string colliding(std::uint64_t i) {
  const std::uint64_t word = unmix(unmix((i + 1) << 24)) ^ 8;
  std::string text(8, ' ');
  std::memcpy(text.data(), &word, 8);
  return text;
}

}  // namespace

TEST_CASE("200,000 tokens that were chosen to collide load, and are found") {
  REQUIRE((detail::hash_bytes(colliding(7)) & 0xFFFFFF) == 0);
  constexpr int kCount = 200'000;
  const Stopwatch watch;
  for (const bool llama : {true, false}) {
    Vocab v = llama ? sentencepiece() : byte_level({});
    const auto first = static_cast<std::uint64_t>(v.tokens.size());
    for (std::uint64_t i = 0; i < kCount; ++i) v.add(colliding(i));
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (std::uint64_t i = 0; i < kCount; i += 997) REQUIRE(tokenizer.find(colliding(i)) == static_cast<Token>(first + i));
    REQUIRE(watch.patient());
  }
}

TEST_CASE("merges that were chosen to collide load, and apply") {
  // All pairs of 300 tokens whose hash shares its last 8 bits: a chain of some 350 in a table, were it one.
  const Stopwatch watch;
  Vocab v = byte_level({});
  for (int i = 0; i < 300; ++i) v.add("<" + std::to_string(i) + ">");
  for (std::uint64_t a = 256; a < 556; ++a) {
    for (std::uint64_t b = 256; b < 556; ++b) {
      if ((detail::hash_mix(detail::hash_mix(a) ^ b) & 0xFF) != 0) continue;
      v.merges.push_back(v.tokens[a] + " " + v.tokens[b]);
      v.add(v.tokens[a] + v.tokens[b]);
    }
  }
  v.merges.push_back("a b");
  const Token joined = v.add("ab");
  CHECK(rig::tokenizer(v).encode("ab", kPlain).value_or({}) == std::vector<Token>{joined});
  CHECK(watch.patient());
}

TEST_CASE("a long special token in a text that almost is it takes no time") {
  const Stopwatch watch;
  for (const TokenType type : {TokenType::user_defined, TokenType::control}) {
    Vocab v = byte_level({{"a", "a"}});
    const Token special = v.add(std::string(100'000, 'a'), type);
    const Tokenizer tokenizer = rig::tokenizer(v);
    const EncodeOptions parse{.bos = Bos::never, .special = Special::parse};
    CHECK(tokenizer.encode(std::string(99'999, 'a'), parse)->size() == 50'000);
    CHECK(*tokenizer.encode(std::string(300'000, 'a'), parse) == std::vector<Token>(3, special));
    CHECK(tokenizer.encode(std::string(100'000, 'a'), kPlain)->size() == (type == TokenType::control ? 50'000u : 1u));
    CHECK(watch.patient());
  }
}

TEST_CASE("special tokens are found as by trying every token at every place") {
  std::mt19937 random(11);
  for (int round = 0; round < 150; ++round) {
    const std::string letters = random() % 2 == 0 ? "ab" : "abc";
    Vocab v = sentencepiece();
    for (unsigned i = 1 + static_cast<unsigned>(random() % 12); i > 0; --i) {
      std::string text = random_text(random, letters, 7);
      v.add(text, std::array{TokenType::control, TokenType::user_defined, TokenType::unknown}[random() % 3]);
    }
    const auto file = rig::write(v);
    const auto metadata = detail::read_tokenizer_metadata(file->gguf->settings(), {});
    REQUIRE(metadata);
    const auto vocabulary = detail::Vocabulary::load(*metadata, {});
    REQUIRE(vocabulary);
    const detail::SpecialTokens specials(*vocabulary);
    for (int n = 0; n < 30; ++n) {
      std::string text = random_text(random, letters, 40);
      if (random() % 4 == 0) text += "<s>" + random_text(random, letters, 9);
      for (const Special special : {Special::as_text, Special::parse}) {
        // All matches, the best first; then each that is still free.
        struct Match {
          std::size_t size;
          std::uint32_t id;
          std::size_t begin;
        };
        std::vector<Match> all;
        for (std::uint32_t id = 0; id < v.tokens.size(); ++id) {
          const auto type = static_cast<TokenType>(v.types[id]);
          const bool looked_for = type == TokenType::user_defined || (special == Special::parse && detail::is_special(type));
          bool first = true;  // of tokens with the same text the lowest id counts, whatever the type of the others
          for (std::uint32_t k = 0; k < id; ++k) {
            first = first && !(v.tokens[k] == v.tokens[id] && detail::is_special(static_cast<TokenType>(v.types[k])));
          }
          if (!looked_for || !first || v.tokens[id].empty()) continue;
          for (std::size_t at = text.find(v.tokens[id]); at != std::string::npos; at = text.find(v.tokens[id], at + 1)) {
            all.push_back({v.tokens[id].size(), id, at});
          }
        }
        std::sort(all.begin(), all.end(), [](const Match& a, const Match& b) {
          return std::tuple(b.size, a.id, a.begin) < std::tuple(a.size, b.id, b.begin);
        });
        std::map<std::size_t, Match> placed;
        std::vector<bool> taken(text.size());
        for (const Match& match : all) {
          bool free = true;
          for (std::size_t i = 0; i < match.size; ++i) free = free && !taken[match.begin + i];
          if (!free) continue;
          for (std::size_t i = 0; i < match.size; ++i) taken[match.begin + i] = true;
          placed.emplace(match.begin, match);
        }
        detail::SpecialTokens::Finder finder(specials, *vocabulary, text, special);
        CAPTURE(round, text, static_cast<int>(special));
        auto expected = placed.begin();
        for (detail::SpecialMatch match{}; finder.next(match); ++expected) {
          REQUIRE(expected != placed.end());
          REQUIRE(match.begin == expected->first);
          REQUIRE(match.size == expected->second.size);
          REQUIRE(v.tokens[match.id] == v.tokens[expected->second.id]);
        }
        REQUIRE(expected == placed.end());
      }
    }
  }
}

TEST_CASE("special tokens of more than 2 MiB of text are refused, and planned as refused") {
  Vocab v = sentencepiece();
  v.add(std::string(2 << 20, 'a'), TokenType::user_defined);
  const auto file = rig::write(v);
  const auto loaded = Tokenizer::from_settings(file->gguf->settings());
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code() == ErrorCode::unsupported);
  CHECK(Tokenizer::plan(file->gguf->settings()).error().text() == loaded.error().text());
}

TEST_CASE("no text becomes a control token unless special tokens are parsed") {
  // Where the unknown token is a control token, as in starcoder, refact and mpt.
  for (const bool llama : {true, false}) {
    Vocab v;
    v.model = llama ? "llama" : "gpt2";
    const Token control = v.add("<|endoftext|>", TokenType::control), a = v.add("a"), b = v.add("b");
    for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id"}) v.ids[key] = static_cast<std::uint32_t>(control);
    v.flags["add_space_prefix"] = false;
    const Tokenizer tokenizer = rig::tokenizer(v);
    CHECK(*tokenizer.encode("a\xFF" "b", kPlain) == std::vector<Token>{a, b});
    CHECK(*tokenizer.encode("中a<|endoftext|>", kPlain).value_or({}).begin() == a);
  }
  Vocab v = sentencepiece();  // a byte token that is no byte token
  v.types[3 + 'x'] = static_cast<std::int32_t>(TokenType::control);
  CHECK(*rig::tokenizer(v).encode("x", kPlain) == std::vector<Token>{3 + 0xE2, 3 + 0x96, 3 + 0x81, 0});
}

TEST_CASE("no text becomes a control token in any vocabulary beside the project") {
  const std::string folder = std::string(TESSERA_SHARED_DIR) + "/tokenizers/";
  if (!std::filesystem::exists(folder)) return tests::skip("no " + folder);
  std::mt19937 random(5);
  int vocabularies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto source = open_file(entry.path());
    REQUIRE(source);
    const auto file = GgufFile::read(*source);
    REQUIRE(file);
    const auto tokenizer = Tokenizer::from_settings(file->settings());
    REQUIRE(tokenizer);
    ++vocabularies;
    std::vector<std::string> names;
    for (std::size_t id = 0; id < tokenizer->vocab_size(); ++id) {
      const auto token = static_cast<Token>(id);
      if (tokenizer->is_control(token)) names.emplace_back(tokenizer->text(token));
    }
    REQUIRE_FALSE(names.empty());
    for (int n = 0; n < 500; ++n) {
      std::string text;
      for (unsigned i = static_cast<unsigned>(random() % 6); i > 0; --i) {
        text += random() % 2 == 0 ? names[random() % names.size()] : random_bytes(random, random() % 12);
      }
      CAPTURE(entry.path().filename().string(), text);
      const auto ids = tokenizer->encode(text, kPlain);
      REQUIRE(ids);
      for (const Token id : *ids) REQUIRE(tokenizer->type(id) != TokenType::control);
    }
  }
  CHECK(vocabularies > 0);
}

TEST_CASE("encoding takes at most ten times the text, the tokens included") {
  std::mt19937 random(3);
  std::vector<std::pair<std::string, std::string>> merges = {{"a", "a"}, {"aa", "aa"}, {" ", " "}, {"t", "h"}};
  Vocab gpt2 = byte_level(merges), llama = sentencepiece();
  llama.add(kSpace);
  llama.add(kSpace + kSpace);
  for (const char* text : {"a", "b", "aa", "aaaa", "th", "\xE2\x96\x81t"}) llama.add(text, TokenType::normal, -1);
  Vocab gpt2_specials = gpt2, llama_specials = llama;
  for (Vocab* v : {&gpt2_specials, &llama_specials}) {
    for (const char* text : {"b", "bb", "bbb", "cd", "dc"}) v->add(text, TokenType::user_defined);
  }
  constexpr std::size_t kSize = 1 << 18;
  const auto repeated = [](std::string_view unit) {
    std::string text;
    while (text.size() < kSize) text += unit;
    return text;
  };
  std::vector<std::string> texts = {random_bytes(random, kSize), std::string(kSize, 'a') + std::string(kSize, 'x')};
  for (const char* unit : {"a", " ", "b", "x", "bb", "bx", "cdc", "the thing ", "中", "\xFF", "\n\n", "1 "}) {
    texts.push_back(repeated(unit));
  }
  for (const Vocab& v : {gpt2, llama, gpt2_specials, llama_specials}) {
    const Tokenizer tokenizer = rig::tokenizer(v);
    for (const std::string& text : texts) {
      CAPTURE(v.model, v.tokens.back(), text.substr(0, 10));
      counted::Scope scope;
      const auto ids = tokenizer.encode(text);
      scope.stop();
      REQUIRE(ids);
      CHECK(counted::peak <= 10 * std::max(text.size(), ids->size()) + 4096);
    }
  }
}

TEST_CASE("a stop ends loading, wherever it comes") {
  Vocab v = byte_level({});
  for (int i = 0; i < 300'000; ++i) v.add("t" + std::to_string(i));
  const auto file = rig::write(v);
  std::stop_source before;
  before.request_stop();
  CHECK(Tokenizer::from_settings(file->gguf->settings(), before.get_token()).error().code() == ErrorCode::cancelled);
  CHECK(Tokenizer::plan(file->gguf->settings(), before.get_token()).error().code() == ErrorCode::cancelled);
  const auto source = memory_source(file->bytes);
  CHECK(GgufFile::read(*source, before.get_token()).error().code() == ErrorCode::cancelled);
  for (int delay = 0; delay < 40; delay += 2) {  // wherever it comes: an error, or all was done
    std::stop_source during;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      during.request_stop();
    });
    const auto loaded = Tokenizer::from_settings(file->gguf->settings(), during.get_token());
    if (!loaded) CHECK(loaded.error().code() == ErrorCode::cancelled);
  }
}

}  // namespace test_tokenizer_hostile
