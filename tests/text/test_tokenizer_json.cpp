// A tokenizer.json, part by part: literal rules, literal tokens.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include <tessera/extend/text/detokenizer.hpp>

#include "catch.hpp"
#include "text/json_rig.hpp"
#include "text/rules/json/serde_number.hpp"
#include "text/rules/old_files.hpp"
#include "text/rules/tekken.hpp"

namespace test_tokenizer_json {

using namespace tessera;
using rig::FileSettings;
using rig::load_json;

namespace {

// A tokenizer.json of words, with some of its parts.
std::string words(const std::string& parts, const std::string& added = "") {
  return R"({"version": "1.0", "added_tokens": [)" + added + "]," + parts +
         R"( "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, " ": 4, "a b": 5, "A": 6, "é": 7}}})";
}

std::string token(int id, const std::string& text, const std::string& flags = "") {
  return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + text + "\"" + flags + "}";
}

std::vector<Token> ids(const std::string& json, std::string_view text, Special special = Special::parse) {
  const auto tokenizer = load_json(json);
  if (!tokenizer) FAIL(tokenizer.error().text());
  const auto made = tokenizer->encode(text, {.special = special});
  REQUIRE(made);
  return *made;
}

std::string error_of(const std::string& json) {
  const auto made = load_json(json);
  const auto plan = Tokenizer::plan(FileSettings(json));
  if (made || plan) return "no error";
  CHECK(plan.error().text() == made.error().text());
  return made.error().text();
}

using List = std::vector<Token>;

constexpr const char* kSplitSpaces = R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": false},)";

// Small files with every kind of rule, for mutations.
std::vector<std::string> files() {
  const std::string bytes =
      R"({"version":"1.0","added_tokens":[{"id":300,"content":"<s>","special":true,"lstrip":true,"rstrip":false,"single_word":false,"normalized":true}],)"
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":"[a-z&&[^b]]{2,3}"},"content":"x"},)"
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},{"type":"Strip","strip_left":true,"strip_right":true}]},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},)"
      R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true}]},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[300],"tokens":["<s>"]}}},"decoder":{"type":"Sequence","decoders":[)"
      R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)"
      R"("model":{"type":"BPE","unk_token":"a","fuse_unk":true,"byte_fallback":true,"vocab":{"a":0,"b":1,"ab":2,"<0x41>":3,"\u00e9\ud83d\ude00":4},"merges":["a b",["ab","a"]]}})";
  const std::string unigram =
      R"({"added_tokens":[],"decoder":{"type":"WordPiece"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["a",-1.5],["ab",-2.5e0],["é",-3]]}})";
  return {words(""), words(kSplitSpaces, token(9, "<x>", R"(, "special": true)")), bytes, unigram};
}

}  // namespace

TEST_CASE("added tokens are found first, and their flags say where") {
  CHECK(ids(words(""), "a b") == List{5});
  CHECK(ids(words("", token(9, "b")), "a b") == List{0, 2});
  CHECK(ids(words("", token(9, "b", R"(, "lstrip": true)")), "a bab") == List{1, 2, 1, 2});
  CHECK(ids(words("", token(9, "b", R"(, "single_word": true)")), "a b") == List{0, 2});
  CHECK(ids(words("", token(9, "b", R"(, "single_word": true)")), "ab") == List{3});
  CHECK(ids(words("", token(9, "<s>", R"(, "special": true)")), "a<s>") == List{1, 9});
  CHECK(ids(words("", token(9, "<s>", R"(, "special": true)")), "a<s>", Special::as_text) == List{0});
  CHECK(ids(words("", token(9, "ab") + "," + token(10, "abb")), "abb") == List{10});
}

TEST_CASE("normalizers and pre-tokenizers run in order") {
  CHECK(ids(words(R"("normalizer": {"type": "Lowercase"},)"), "A B") == List{5});
  CHECK(ids(words(R"("normalizer": {"type": "NFC"},)"), "e\u0301") == List{7});
  CHECK(ids(words(kSplitSpaces), "a  b ab") == List{1, 2, 3});
  CHECK(ids(words(R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithPrevious", "invert": false},)"), "bab") ==
        List{0, 2});
}

TEST_CASE("a post-processor's tokens stand around a text, and settings may change them") {
  const std::string parts =
      R"("post_processor": {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]},)";
  const auto tokenizer = load_json(words(parts));
  REQUIRE(tokenizer);
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->eos() == 2);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->encode("ab").value_or(List{}) == List{1, 3, 2});
  CHECK(tokenizer->encode("ab", {.bos = Bos::never}).value_or(List{}) == List{3});
  CHECK(tokenizer->encode("ab", {.bos = Bos::always}).value_or(List{}) == List{1, 3});
  const std::string json = words(parts);
  FileSettings settings(json);
  settings.set(Setting::add_bos, false).set(Setting::bos_token, std::uint64_t{1});
  const auto without = Tokenizer::from_settings(settings);
  REQUIRE(without);
  CHECK_FALSE(without->adds_bos());
  CHECK(without->encode("ab").value_or(List{}) == List{3, 2});
  CHECK(*without != *tokenizer);
  CHECK(*load_json(json) == *tokenizer);
  CHECK(load_json(json)->fingerprint() == tokenizer->fingerprint());
}

TEST_CASE("ids may have holes, and a hole is an empty token") {
  const auto tokenizer = load_json(words("", token(12, "<x>")));
  REQUIRE(tokenizer);
  CHECK(tokenizer->vocab_size() == 13);
  CHECK(tokenizer->text(10).empty());
  CHECK(tokenizer->type(10) == TokenType::unused);
  CHECK(tokenizer->decode(List{10, 1}).value_or("") == " a");
}

TEST_CASE("a stream gives the text of decode(), token by token") {
  const std::string json =
      R"({"decoder": {"type": "BPEDecoder", "suffix": "_"}, "model": {"type": "BPE", "vocab": {"a": 0, "b_": 1, "c_": 2}, "merges": []}})";
  const auto tokenizer = load_json(json);
  REQUIRE(tokenizer);
  CHECK(*tokenizer->decode(List{0, 1, 2}) == "ab c");
  Detokenizer stream(*tokenizer);
  CHECK(*stream.push(0) == "a");
  CHECK(*stream.push(1) == "b");
  CHECK(*stream.push(2) == " c");
  CHECK(stream.finish().empty());
}

TEST_CASE("errors of a tokenizer.json name the place and what tessera has") {
  CHECK(error_of("{") == "tokenizer.json: the file: the JSON text ends too early (line 1, column 2)");
  CHECK_THAT(error_of("{}"), Catch::Contains("tokenizer.json: model: is missing"));
  CHECK_THAT(error_of(words(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Foo"}]},)")),
             Catch::Contains(R"(tokenizer.json: pre_tokenizer.pretokenizers[1].type: "Foo" is not supported; tessera has Sequence, Split)"));
  CHECK_THAT(error_of(words(R"("normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""},)")),
             Catch::Contains("tokenizer.json: normalizer.pattern: the pattern \"(a\" cannot be compiled"));
  CHECK_THAT(error_of(words(R"("decoder": {"type": "CTC"},)")), Catch::Contains("tokenizer.json: decoder.type"));
  CHECK_THAT(error_of(words(R"("post_processor": {"type": "BertProcessing", "cls": ["x", 99], "sep": ["b", 2]},)")),
             Catch::Contains("token 99 is not in a vocabulary of 8"));
  CHECK_THAT(error_of(words("", token(3, "<x>"))), Catch::Contains("the id 3 stands for \"ab\" and for \"<x>\""));
  CHECK_THAT(error_of(words("", token(2147483647, "<x>"))), Catch::Contains("ids are not negative and have 30 bits"));
  CHECK_THAT(error_of(words("", token(1000000, "<x>"))), Catch::Contains("the highest token id is 1000000, but there are 9 tokens only"));
  CHECK_THAT(error_of(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []}})"), Catch::Contains("model.dropout"));
  CHECK_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {"\ud83d": 0}, "merges": []}})"), Catch::Contains("half a surrogate pair"));
  CHECK_THAT(error_of("{\"model\": {\"vocab\": {\"\xFF\": 0}}}"), Catch::Contains("not UTF-8"));
  CHECK_THAT(error_of("{\"normalizer\": " + std::string(100'000, '[')), Catch::Contains("nested deeper than 100"));
}

TEST_CASE("files older than tokenizer.json become one") {
  constexpr std::string_view special[] = {"<s>"};
  const auto gpt2 = detail::gpt2_tokenizer_json(R"({"a": 0, "b": 1, "ab": 2, "<s>": 3})", "#version: 0.2\na b\n", special, false);
  REQUIRE(gpt2);
  CHECK(ids(*gpt2, "ab<s>a") == List{2, 3, 0});
  const auto bert = detail::bert_tokenizer_json("[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n##s\n", true);
  REQUIRE(bert);
  CHECK(ids(*bert, "Hellos x") == List{2, 4, 5, 1, 3});
  CHECK_FALSE(detail::bert_tokenizer_json("hello\n", true));
}

namespace {

// Returns a tekken.json with a token for each byte, and the tokens "ab" and "abab".
std::string tekken_json(const std::string& special, const std::string& size = "262") {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string base64 = {digits[byte >> 2], digits[(byte & 3) << 4], '=', '='};
    vocabulary += R"({"rank": )" + std::to_string(byte) + R"(, "token_bytes": ")" + base64 + R"(", "token_str": null}, )";
  }
  return R"({"config": {"pattern": "\\s+|\\S+", "num_vocab_tokens": 259, "default_vocab_size": )" + size +
         R"(, "default_num_special_tokens": 4, "version": "v3"}, "vocab": [)" + vocabulary +
         R"({"rank": 256, "token_bytes": "YWI=", "token_str": "ab"}, {"rank": 257, "token_bytes": "YWJhYg==", "token_str": "abab"},
             {"rank": 258, "token_bytes": "eHh4", "token_str": "more than the model has"}])" + special + "}";
}

}  // namespace

TEST_CASE("a tekken.json becomes a tokenizer.json") {
  const auto listed = detail::tekken_tokenizer_json(tekken_json(R"(, "special_tokens": [{"rank": 0, "token_str": "<unk>"}, {"rank": 1, "token_str": "[X]"}, {"rank": 2, "token_str": "<s>"}])"), {});
  REQUIRE(listed);
  CHECK(ids(*listed, "ababab [X]") == List{2, 261, 260, 4 + ' ', 1});
  CHECK(ids(*listed, "[X]", Special::as_text) == List{2, 4 + '[', 4 + 'X', 4 + ']'});
  CHECK(load_json(*listed)->text(3) == "<SPECIAL_3>");
  CHECK(load_json(*listed)->vocab_size() == 262);
  const auto older = detail::tekken_tokenizer_json(tekken_json(""), {});
  CHECK_THAT(older.error().text(), Catch::Contains("tekken.json: there are 20 control tokens, and config says 4"));
  CHECK_THAT(detail::tekken_tokenizer_json(tekken_json("", "300"), {}).error().text(), Catch::Contains("vocab has 259 tokens, and config says 296"));
  CHECK_THAT(detail::tekken_tokenizer_json("{", {}).error().text(), Catch::Contains("tekken.json: the JSON text ends too early"));
  CHECK_THAT(detail::tekken_tokenizer_json(R"({"vocab": [{"rank": 5, "token_bytes": "?"}]})", {}).error().text(), Catch::Contains("token_bytes is not base64"));
}

TEST_CASE("scores are read as the crate serde_json reads them") {
  CHECK(detail::serde_number("-0.44733868716802316") == -44733868716802316.0 / 1e17);  // not the nearest double
  CHECK(detail::serde_number("-0.44733868716802316") != -0.44733868716802316);
  CHECK(detail::serde_number("1.5e-3") == 0.0015);
  CHECK(detail::serde_number("-12") == -12.0);
  CHECK(detail::serde_number("1E+2") == 100.0);
  CHECK(detail::serde_number("123456789012345678901234567890") == 1.2345678901234567890e29);
  CHECK(detail::serde_number("0.1234567890123456789012345") == 0.12345678901234567890);
  CHECK(detail::serde_number("1e400") == std::numeric_limits<double>::infinity());
  CHECK(detail::serde_number("1e-400") == 0.0);
}

TEST_CASE("a SentencePiece model is read as its library reads it") {
  const auto piece = [](std::string_view text, float score, char type) {
    std::string message = "\x0A" + std::string(1, static_cast<char>(text.size())) + std::string(text) + "\x15";
    char bits[4];
    std::memcpy(bits, &score, 4);
    message.append(bits, 4).append("\x18").append(1, type);
    return "\x0A" + std::string(1, static_cast<char>(message.size())) + message;
  };
  const std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\xE2\x96\x81", -4, 1) + piece("a", -1, 1) +
                             piece("b", -2, 1) + piece("\xE2\x96\x81" "ab", -3, 1);
  for (const bool bpe : {false, true}) {
    const std::string trainer = bpe ? std::string("\x12\x02\x18\x02", 4) : std::string("\x12\x02\x18\x01", 4);
    const std::string model = pieces + trainer + std::string("\x1A\x04\x18\x01\x20\x00", 6);
    const FileSettings settings(Setting::sentencepiece_model, model);
    const auto tokenizer = Tokenizer::from_settings(settings);
    if (!tokenizer) FAIL(tokenizer.error().text());
    CHECK(tokenizer->model() == (bpe ? TokenizerModel::llama : TokenizerModel::unigram));
    CHECK(tokenizer->encode("a b", {.bos = Bos::never}).value_or(List{}) == List{3, 4, 3, 5});
    CHECK(*tokenizer->decode(List{3, 4, 3, 5}) == "a b");
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
      std::string other = model;
      other[random() % other.size()] = static_cast<char>(random());
      if (random() % 3 == 0) other.resize(random() % other.size());
      const auto made = Tokenizer::from_settings(FileSettings(Setting::sentencepiece_model, other));
      if (made) REQUIRE(made->encode("ab \xFF a"));
    }
  }
}

TEST_CASE("sets of characters in patterns are Oniguruma's") {
  // Each pattern cuts the characters that it matches out of the text "a" CHARACTER "b".
  const auto matches = [](const std::string& pattern, const std::string& character) {
    const auto tokens = ids(words(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": ")" + pattern + R"("}, "behavior": "Removed", "invert": false},)"),
                            "a" + character + "b");
    return tokens == List{1, 2};
  };
  const std::string joiner = "\u200d", squared = "\u00b2", plus = "+", comma = ",", mark = "\u3001", ligature = "\u0363";
  CHECK_FALSE(matches(R"([^ab\\W])", joiner));
  CHECK(matches(R"([^\\w])", joiner));
  CHECK(matches(R"((?![ab])\\w)", squared));  // outside of a set \w has six signs that [\w] does not have
  CHECK(matches(R"([^\\w])", squared));
  CHECK_FALSE(matches(R"((?![ab])\\W)", squared));
  CHECK(matches(R"([[:punct:]])", plus));
  CHECK_FALSE(matches(R"(\\p{Punct})", plus));
  CHECK(matches(R"(\\p{Punct})", comma));
  CHECK_FALSE(matches(R"(\\p{Katakana})", mark));  // of several scripts
  CHECK(matches(R"((?![ab])[[:alpha:]])", ligature));
  CHECK(matches(R"((?![ab])[[:graph:]])", plus));
  CHECK(matches(R"((?![ab])[[:ascii:]])", plus));
  CHECK(matches(R"((?<=\\w)\\b.\\b(?=\\w))", comma));
  CHECK_FALSE(matches(R"((?<=\\w)\\b.\\b(?=\\w))", ligature));  // a mark belongs to its word
  // Options hold to the end of the group around them, over "|".
  CHECK(ids(words(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "x(?i)y|b"}, "behavior": "Removed", "invert": false},)"), "axBaxYab") ==
        List{1, 1, 3});
}

TEST_CASE("a hostile pattern ends in an error, soon") {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* pattern : {"(a*)*c", "(a|a)*b", "a(?=.*b)", "(?=(a+))a*b\\\\1", "^(([a-z])+.)+[A-Z]([a-z])+$"}) {
    const auto tokenizer =
        load_json(words(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": ")" + std::string(pattern) + R"("}, "behavior": "Isolated"},)"));
    if (!tokenizer) continue;
    const auto made = tokenizer->encode(std::string(30'000, 'a'));
    CAPTURE(pattern);
    if (!made) CHECK_THAT(made.error().text(), Catch::Contains("takes too much work on this text"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("mutated tokenizer.json files give errors or tokenizers, and nothing else") {
  const char* more = std::getenv("TESSERA_TEST_MUTATIONS");
  const int rounds = more != nullptr ? std::atoi(more) : 3000;
  std::mt19937 random(47);
  const std::vector<std::string> sources = files();
  constexpr std::string_view bytes = "\"\\{}[],:0129.-eu\xC3\xA9 an";
  int loaded = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string json = sources[random() % sources.size()];
    for (unsigned n = 1 + static_cast<unsigned>(random() % 3); n > 0; --n) {
      const std::size_t at = random() % json.size();
      switch (random() % 5) {
        case 0: json[at] = bytes[random() % bytes.size()]; break;
        case 1: json.erase(at, 1 + random() % 9); break;
        case 2: json.insert(at, json.substr(random() % json.size(), 1 + random() % 30)); break;
        case 3: json[at] = static_cast<char>(random()); break;
        default: json.resize(std::max<std::size_t>(at, 1)); break;
      }
      if (json.empty()) json = "{";
    }
    const FileSettings settings(json);
    const auto plan = Tokenizer::plan(settings);
    const auto tokenizer = Tokenizer::from_settings(settings);
    if (!tokenizer) {
      REQUIRE_FALSE(tokenizer.error().text().empty());
      continue;
    }
    ++loaded;
    REQUIRE(plan);
    for (const std::string_view text : {"a b<s>ab 12 \xE2\x96\x81 e\xCC\x81 \xFF\xFE A", "", "ab"}) {
      const auto made = tokenizer->encode(text, {.special = Special::parse});
      if (made) REQUIRE(tokenizer->decode(*made));
    }
  }
  CHECK(loaded > rounds / 50);
}

}  // namespace test_tokenizer_json
