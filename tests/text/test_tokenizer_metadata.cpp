// Metadata that is wrong, memory that is short, and the memory plan.
#include <algorithm>
#include <limits>

#include "catch.hpp"
#include "counted_new.hpp"
#include "text/rig.hpp"

namespace test_tokenizer_metadata {

using namespace tessera;
using namespace rig;

namespace {

Vocab small() {
  Vocab v = sentencepiece();
  v.add("a");
  return v;
}

void refused(const Result<Tokenizer>& loaded, ErrorCode code, const std::string& place, const std::string& says) {
  REQUIRE_FALSE(loaded);
  INFO(loaded.error().text());
  CHECK(loaded.error().code() == code);
  CHECK(loaded.error().text().find(place) != std::string::npos);
  CHECK(loaded.error().text().find(says) != std::string::npos);
}

constexpr ErrorCode kCorrupt = ErrorCode::corrupt_file;

}  // namespace

TEST_CASE("an unknown model or pre-tokenizer is named, with those that are known") {
  Vocab v = small();
  v.model = "unigram-9";
  refused(load(v), ErrorCode::unsupported, "tokenizer.ggml.model", "unigram-9");
  Vocab bytes = byte_level({}, "no-such-pre");
  refused(load(bytes), ErrorCode::unsupported, "tokenizer.ggml.pre", "no-such-pre");
  refused(load(bytes), ErrorCode::unsupported, "tokenizer.ggml.pre", "llama-bpe");
  bytes.pre.reset();
  CHECK(load(bytes)->pre_tokenizer() == "default");
}

TEST_CASE("missing and misshapen metadata is an error that names the key and the place") {
  Vocab v = small();
  v.types.pop_back();
  refused(load(v), kCorrupt, "tokenizer.ggml.token_type", "260");
  v = small();
  v.types[77] = 9;
  refused(load(v), kCorrupt, "tokenizer.ggml.token_type", "token 77");
  v = small();
  v.scores.pop_back();
  refused(load(v), kCorrupt, "tokenizer.ggml.scores", "260");
  v = small();
  v.scores[5] = std::numeric_limits<float>::quiet_NaN();
  refused(load(v), kCorrupt, "tokenizer.ggml.scores", "token 5");
  v = small();
  v.scores.clear();
  refused(load(v), ErrorCode::not_found, "tokenizer.ggml.scores", "");
  v = small();
  v.tokens.clear();
  refused(load(v), kCorrupt, "tokenizer.ggml.tokens", "");
  for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id", "eom_token_id"}) {
    v = small();
    v.ids[key] = 260;
    refused(load(v), kCorrupt, key, "260");
  }
  for (const char* merge : {"ab", "", " ", "a ", " a"}) {
    Vocab bytes = byte_level({{"a", "b"}});
    bytes.merges.push_back(merge);
    refused(load(bytes), kCorrupt, "tokenizer.ggml.merges", "merge 1 ");
  }
  const auto wrong_type = [](const char* key) {
    return load(small(), [key](GgufWriter& w) { (void)w.set_string(std::string("tokenizer.ggml.") + key, "x"); });
  };
  for (const char* key : {"tokens", "scores", "token_type", "bos_token_id", "add_bos_token", "add_space_prefix"}) {
    const auto loaded = wrong_type(key);
    INFO(key);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().text().find(key) != std::string::npos);
  }
}

TEST_CASE("odd but harmless metadata is read as the header says") {
  Vocab v = small();
  const Token first = *load(v)->find("a");
  v.add("a");             // the same text again
  v.add("");              // an empty token
  v.scores.push_back(1);  // more than there are tokens
  auto tokenizer = load(v);
  REQUIRE(tokenizer);
  CHECK(tokenizer->find("a") == first);
  CHECK(tokenizer->piece(first + 1) == "a");
  CHECK(tokenizer->piece(first + 2).empty());

  Vocab bytes = byte_level({{"a", "b"}});
  bytes.merges.push_back("q zz");  // no such token
  bytes.merges.push_back("a a");   // no such result
  tokenizer = load(bytes);
  REQUIRE(tokenizer);
  CHECK(tokenizer->encode("abaaqzz")->size() == 6);

  v.add("a", TokenType::user_defined);  // a text that is special, twice
  v.add("a", TokenType::user_defined);
  v.scores.resize(v.tokens.size());
  tokenizer = load(v);
  REQUIRE(tokenizer);
  CHECK(tokenizer->encode("a", kPlain).value_or({}) == std::vector<Token>{first + 3});

  v = small();
  v.types.clear();  // old converters
  tokenizer = load(v);
  REQUIRE(tokenizer);
  CHECK(tokenizer->type(0) == TokenType::unknown);
  CHECK(tokenizer->type(1) == TokenType::control);
  CHECK(tokenizer->type(3) == TokenType::byte);
  CHECK(tokenizer->piece(3 + 'x') == "x");
}

TEST_CASE("metadata as other programs write it") {
  const auto with = [](auto values, const char* key) {
    return [=](GgufWriter& w) {
      REQUIRE(w.set_array(std::string("tokenizer.ggml.") + key,
                          std::span<const typename decltype(values)::value_type>(values)));
    };
  };
  // A byte-level vocabulary does not look at scores (llama.cpp 27254).
  const Vocab bytes = byte_level({{"a", "b"}});
  CHECK(load(bytes, with(std::vector<std::int32_t>(bytes.tokens.size(), 7), "scores")));
  CHECK(load(bytes, with(std::vector<std::int32_t>(3), "scores")));
  // Types without a sign: the element type stands behind the key and the type of the value.
  Vocab v = small();
  const auto file = write(v);
  const std::string_view key = "tokenizer.ggml.token_type";
  const auto at = std::ranges::search(file->bytes, std::as_bytes(std::span(key))).end();
  REQUIRE(file->bytes.end() - at > 8);
  REQUIRE(at[4] == static_cast<std::byte>(GgufType::i32));
  at[4] = static_cast<std::byte>(GgufType::u32);
  const auto source = memory_source(file->bytes);
  const auto loaded = Tokenizer::from_settings(GgufFile::read(*source)->settings());
  REQUIRE(loaded);
  CHECK(loaded->type(1) == TokenType::control);
  CHECK(*loaded == *load(small()));
  // Fewer scores than tokens, of a vocabulary that needs them.
  v = small();
  v.model = "t5";
  v.scores.resize(3);
  refused(load(v), kCorrupt, "tokenizer.ggml.scores", "260");
  // An id that is -2 in 32 bits.
  v = small();
  v.ids["eos_token_id"] = 4294967294u;
  refused(load(v), kCorrupt, "eos_token_id", "4294967294");
  // BOS is asked for, and there is none.
  v = Vocab();
  v.model = "t5";
  v.add("<pad>", TokenType::control);
  v.add("<unk>", TokenType::unknown);
  v.add("a", TokenType::normal, -1);
  v.flags["add_bos_token"] = true;
  const auto without = load(v);
  REQUIRE(without);
  CHECK_FALSE(without->bos());
  CHECK(without->encode("a", {.bos = Bos::always}).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("tokens that are never drawn are listed, or the list is refused by its key") {
  constexpr std::string_view kKey = "tokenizer.ggml.suppress_tokens";
  const auto with = [&](const auto& values) {
    return load(small(), [&](GgufWriter& w) { (void)w.set_array(std::string(kKey), std::span(values)); });
  };
  CHECK(load(small())->suppressed().empty());
  CHECK(with(std::vector<std::int32_t>{})->suppressed().empty());
  const auto loaded = with(std::vector<std::int32_t>{7, 3, 7});
  REQUIRE(loaded);
  CHECK(std::ranges::equal(loaded->suppressed(), std::vector<Token>{3, 7, 7}));
  CHECK(*loaded == *load(small()));  // the same tokens for the same texts
  refused(with(std::vector<std::int32_t>{1, -1}), kCorrupt, std::string(kKey), "token -1");
  refused(with(std::vector<std::int32_t>{260}), kCorrupt, std::string(kKey), "token 260");
  refused(with(std::vector<float>{1}), kCorrupt, std::string(kKey), "token ids");
  refused(with(std::vector<std::int32_t>(1000)), kCorrupt, std::string(kKey), "1000 values");
}

TEST_CASE("an empty handle has no tokens, and says so") {
  const Tokenizer none;
  CHECK(none.encode("a").error().code() == ErrorCode::invalid_state);
  CHECK(none.decode(std::vector<Token>{1}).error().code() == ErrorCode::invalid_state);
  CHECK(none.decode({})->empty());
  CHECK(none.vocab_size() == 0);
  CHECK(none.memory_bytes() == 0);
  CHECK(none.model() == TokenizerModel::none);
  CHECK_FALSE(none.bos());
  CHECK_FALSE(none.find("a"));
  CHECK(none.piece(0).empty());
  CHECK(none.suppressed().empty());
}

TEST_CASE("every end of generation is known: by the metadata, and by its name") {
  Vocab v = byte_level({});
  const auto add = [&](const char* text, TokenType type) { return v.add(text, type); };
  const Token by_id = add("<fin>", TokenType::control), eot = add("<over>", TokenType::control),
              chat = add("<|im_end|>", TokenType::normal), html = add("</s>", TokenType::normal),
              end = add("<|end|>", TokenType::user_defined);
  v.ids["eos_token_id"] = static_cast<std::uint32_t>(by_id);
  v.ids["eot_token_id"] = static_cast<std::uint32_t>(eot);
  const Tokenizer tokenizer = rig::tokenizer(v);
  for (const Token token : {by_id, eot, chat, end}) CHECK(tokenizer.is_end_of_generation(token));
  CHECK_FALSE(tokenizer.is_end_of_generation(html));  // an ordinary piece of HTML
  CHECK(tokenizer.type(chat) == TokenType::control);  // whatever the converter wrote

  add("<|return|>", TokenType::control);
  add("<|call|>", TokenType::control);
  CHECK_FALSE(rig::tokenizer(v).is_end_of_generation(end));  // gpt-oss goes on after it
}

TEST_CASE("loading takes what plan() says, and memory_bytes() is what stays") {
  std::mt19937 random(2);
  for (const char* model : {"llama", "gpt2"}) {
    Vocab v = std::string(model) == "llama" ? sentencepiece() : byte_level({});
    for (int i = 0; i < 20'000; ++i) {
      const TokenType type = i % 50 == 0   ? TokenType::control
                             : i % 51 == 0 ? TokenType::user_defined
                                           : TokenType::normal;
      v.add(random_text(random, "abcdefgh", 12) + std::to_string(i), type, -static_cast<float>(i));
      v.merges.push_back(random_text(random, "abcd", 3) + "a b" + std::to_string(i));
    }
    const auto file = rig::write(v);
    const std::uint64_t planned = Tokenizer::plan(file->gguf->settings())->bytes;
    counted::Scope scope;
    auto tokenizer = Tokenizer::from_settings(file->gguf->settings());
    scope.stop();
    REQUIRE(tokenizer);
    const std::uint64_t held = tokenizer->memory_bytes();
    INFO(model << ": planned " << planned << ", held " << held << ", counted " << counted::live << ", peak "
               << counted::peak);
    // Patterns are PCRE2's, by malloc; a shared_ptr's block and such are noise.
    CHECK(counted::live <= held + 1024);
    CHECK(counted::live + 16'384 >= held);
    CHECK(counted::peak <= planned);
    CHECK(planned <= counted::peak + counted::peak / 100 + 70'000);
  }
  Vocab other;
  other.model = "other";
  other.add("a");
  CHECK(Tokenizer::plan(rig::write(other)->gguf->settings()).error().code() == ErrorCode::unsupported);
}

TEST_CASE("mutated files load or are refused, and what loads works, in little memory") {
  std::mt19937 random(4);
  Vocab llama = small(), gpt2 = byte_level({{"a", "b"}, {"ab", "ab"}, {" ", "a"}}, "llama-bpe");
  llama.add("<x>", TokenType::user_defined);
  gpt2.add("<x>", TokenType::control);
  int loaded = 0;
  for (const Vocab& v : {llama, gpt2}) {
    const auto file = rig::write(v);
    for (int n = 0; n < 4000; ++n) {
      auto bytes = file->bytes;
      for (unsigned i = 1 + random() % 4; i > 0; --i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      counted::Scope scope;
      const auto source = memory_source(bytes);
      REQUIRE(source);
      const auto gguf = GgufFile::read(*source);
      if (!gguf) continue;
      const auto planned = Tokenizer::plan(gguf->settings());
      const auto tokenizer = Tokenizer::from_settings(gguf->settings());
      REQUIRE(planned.has_value() == tokenizer.has_value());
      if (!tokenizer) {
        REQUIRE(planned.error().text() == tokenizer.error().text());
        continue;
      }
      ++loaded;
      const auto ids = tokenizer->encode("a <x>abab \xFF\n", {.special = Special::parse});
      REQUIRE(ids);
      REQUIRE(tokenizer->decode(*ids));
      scope.stop();
      REQUIRE(tokenizer->memory_bytes() <= planned->bytes);
      REQUIRE(counted::peak < 1'000'000);
    }
  }
  CHECK(loaded > 100);
}

TEST_CASE("any allocation may fail: an error, and the next try works") {
  Vocab llama = small(), gpt2 = byte_level({{"a", "b"}, {"ab", "ab"}}, "deepseek-llm");
  llama.name = "Phi-3 with a name that is longer than any inline buffer";
  for (const Vocab& v : {llama, gpt2}) {
    const auto file = rig::write(v);
    const std::string text = "abab [x] 12 a text that is long enough not to fit into an inline buffer \xFF";
    bool done = false;
    std::int64_t k = 0;
    for (; !done && k < 10'000; ++k) {
      counted::Scope scope(k);
      bool failed = true;
      if (auto tokenizer = Tokenizer::from_settings(file->gguf->settings())) {
        if (auto ids = tokenizer->encode(text)) {
          if (auto back = tokenizer->decode(*ids)) {
            failed = false;
          } else {
            REQUIRE(back.error().code() == ErrorCode::out_of_memory);
          }
        } else {
          REQUIRE(ids.error().code() == ErrorCode::out_of_memory);
        }
      } else {
        REQUIRE(tokenizer.error().code() == ErrorCode::out_of_memory);
      }
      scope.stop();
      done = !failed;
    }
    CHECK(done);
    CHECK(k > 10);
  }
}

}  // namespace test_tokenizer_metadata
