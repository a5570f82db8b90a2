// The real vocabularies beside the project, and the ids that the reference tokenizers give for 46 texts.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf.hpp>
#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/text/tokenizer.hpp>

#include "catch.hpp"

namespace test_tokenizer_vocabularies {

using namespace tessera;

namespace {

const std::string kFolder = std::string(TESSERA_SHARED_DIR) + "/tokenizers/";
constexpr const char* kNames[] = {"llama-spm", "phi-3", "gpt-2", "deepseek-coder"};

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> texts_of(const std::string& path) {
  const std::string all = slurp(path), separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t at = 0, end; (end = all.find(separator, at)) != std::string::npos; at = end + separator.size()) {
    texts.push_back(all.substr(at, end - at));
  }
  return texts;
}

std::vector<std::vector<Token>> ids_of(const std::string& path) {
  std::vector<std::vector<Token>> all;
  std::istringstream lines(slurp(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream ids(line);
    std::vector<Token> one;
    for (Token id; ids >> id;) one.push_back(id);
    all.push_back(one);
  }
  return all;
}

Tokenizer load(const std::string& name) {
  auto source = open_file(kFolder + "ggml-vocab-" + name + ".gguf");
  REQUIRE(source);
  auto file = GgufFile::read(*source);
  REQUIRE(file);
  auto tokenizer = Tokenizer::from_settings(file->settings());
  if (!tokenizer) FAIL(tokenizer.error().text());
  // The plan is right within 1 % and a little.
  const std::uint64_t planned = Tokenizer::plan(file->settings())->bytes, held = tokenizer->memory_bytes();
  CHECK(planned >= held);
  CHECK(planned - held <= held / 100 + 66'000);
  return *tokenizer;
}

bool absent() {
  if (std::filesystem::exists(kFolder)) return false;
  tests::skip("no " + kFolder);
  return true;
}

}  // namespace

TEST_CASE("every text of the reference gives the reference's ids") {
  if (absent()) return;
  for (const std::string name : kNames) {
    const Tokenizer tokenizer = load(name);
    const auto texts = texts_of(kFolder + "ggml-vocab-" + name + ".gguf.inp");
    const auto ids = ids_of(kFolder + "ggml-vocab-" + name + ".gguf.out");
    REQUIRE(texts.size() == 46);
    REQUIRE(ids.size() == 46);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", text " << i << ": " << texts[i]);
      const auto got = tokenizer.encode(texts[i], {.bos = Bos::never});
      REQUIRE(got);
      CHECK(*got == ids[i]);
      CHECK(*tokenizer.decode(*got) == texts[i]);

      Detokenizer stream(tokenizer);
      std::string text;
      for (const Token token : *got) text += *stream.push(token);
      text += stream.finish();
      CHECK(text == texts[i]);
    }
  }
}

TEST_CASE("BOS and end of generation are what each model's metadata says") {
  if (absent()) return;
  const Tokenizer llama = load("llama-spm"), phi = load("phi-3"), gpt2 = load("gpt-2");
  const Tokenizer deepseek = load("deepseek-coder");
  CHECK(*llama.encode("") == std::vector<Token>{1});
  CHECK(llama.encode("", {.bos = Bos::never})->empty());
  CHECK(gpt2.encode("")->empty());
  CHECK(*gpt2.encode("", {.bos = Bos::always}) == std::vector<Token>{50256});
  CHECK(*deepseek.encode("") == std::vector<Token>{32013});
  CHECK(llama.is_end_of_generation(2));
  CHECK(gpt2.is_end_of_generation(50256));
  for (const char* text : {"<|end|>", "<|endoftext|>", "</s>"}) CHECK(phi.is_end_of_generation(*phi.find(text)));
  for (const char* text : {"<|EOT|>", "<｜end▁of▁sentence｜>"}) {
    CHECK(deepseek.is_end_of_generation(*deepseek.find(text)));
  }
  CHECK_FALSE(llama.is_end_of_generation(13));
}

TEST_CASE("control tokens come from text only when they are parsed") {
  if (absent()) return;
  const Tokenizer phi = load("phi-3");
  const std::string prompt = "<|user|>\nHi<|end|>\n<|assistant|>";
  const Token user = *phi.find("<|user|>"), end = *phi.find("<|end|>"), assistant = *phi.find("<|assistant|>");
  // Phi-3's special tokens take the white space behind them along.
  CHECK(*phi.encode(prompt, {.bos = Bos::never, .special = Special::parse}) ==
        std::vector<Token>{user, *phi.find("▁Hi"), end, assistant});
  const auto plain = phi.encode(prompt, {.bos = Bos::never});
  REQUIRE(plain);
  for (const Token token : *plain) CHECK(phi.type(token) != TokenType::control);
  // Behind one of Llama's the text begins again, with a mark of its own: the ids are those that Hugging Face's
  // tokenizers gives with Llama 2's tokenizer.json (llama.cpp 23840, 7049).
  const Tokenizer llama = load("llama-spm");
  const EncodeOptions parse{.bos = Bos::never, .special = Special::parse};
  CHECK(*llama.encode("a</s>Hello", parse) == std::vector<Token>{263, 2, 15043});
  CHECK(*llama.encode("a</s> Hello", parse) == std::vector<Token>{263, 2, 29871, 15043});
  CHECK(*llama.encode("a</s>  Hello", parse) == std::vector<Token>{263, 2, 259, 15043});
}

}  // namespace test_tokenizer_vocabularies
