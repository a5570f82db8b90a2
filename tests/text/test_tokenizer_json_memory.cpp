// Memory of a tokenizer.json: every allocation may fail, and the plan is an upper bound.
#include <string>

#include "catch.hpp"
#include "counted_new.hpp"
#include "text/json_rig.hpp"

namespace test_tokenizer_json_memory {

using namespace tessera;

namespace {

constexpr const char* kFiles[] = {
    R"({"added_tokens":[{"id":9,"content":"<s>","special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"}]},)"
    R"("pre_tokenizer":{"type":"Whitespace"},"decoder":{"type":"WordPiece"},"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":1,"##b":2}}})",
    R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"Isolated"},"decoder":{"type":"ByteLevel"},)"
    R"("model":{"type":"BPE","byte_fallback":true,"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})",
    R"({"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["ab",-2]]}})"};

}  // namespace

TEST_CASE("every allocation of a tokenizer.json may fail") {
  for (const std::string json : kFiles) {
    const rig::FileSettings settings(json);
    bool done = false;
    for (std::int64_t n = 0; !done; ++n) {
      REQUIRE(n < 20'000);
      Result<Tokenizer> tokenizer = Tokenizer();
      Result<std::vector<Token>> ids = std::vector<Token>();
      {
        const counted::Scope scope(n);
        tokenizer = Tokenizer::from_settings(settings);
        if (tokenizer) ids = tokenizer->encode("a b<s>ab 12 \xFF");
        done = counted::failed == 0;
      }
      CAPTURE(n, json);
      if (!tokenizer) REQUIRE(tokenizer.error().code() == ErrorCode::out_of_memory);
      if (!ids) REQUIRE(ids.error().code() == ErrorCode::out_of_memory);
    }
  }
}

TEST_CASE("a tokenizer.json holds no more than its plan says") {
  std::string json = R"({"model":{"type":"BPE","vocab":{)";
  for (int i = 0; i < 20'000; ++i) json += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + "\":" + std::to_string(i);
  json += R"(},"merges":[)";
  for (int i = 0; i < 10'000; ++i) json += (i == 0 ? "\"t1" : ",\"t1") + std::string(" t") + std::to_string(i) + "\"";
  json += "]}}";
  const rig::FileSettings settings(json);
  const auto plan = Tokenizer::plan(settings);
  REQUIRE(plan);
  counted::Scope scope;
  const auto tokenizer = Tokenizer::from_settings(settings);
  scope.stop();
  REQUIRE(tokenizer);
  INFO("planned " << plan->bytes << ", held " << tokenizer->memory_bytes() << ", counted " << counted::live << ", peak " << counted::peak);
  CHECK(tokenizer->memory_bytes() <= plan->bytes);
  CHECK(counted::live <= tokenizer->memory_bytes() + 65'536);
  CHECK(counted::peak <= 2 * plan->bytes);
}

}  // namespace test_tokenizer_json_memory
