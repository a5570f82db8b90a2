// `suffix`: the prompts of models that fill in, as those who trained them publish the form. An answer whose tokens have the same
// log-probabilities as those of a prompt of token ids had that prompt.
#include <fstream>

#include <fmt/format.h>

#include "engine/changed_model.hpp"
#include "server/http_client.hpp"

namespace test_server_fill_in {

using namespace tessera::tests::server;
using tessera::Json;
using tessera::test::changed_file;
using tessera::test::must;

namespace {

struct Family {
  const char* name;
  const char* published;  // where the form stands
  const char* model;      // whose vocabulary gets the family's tokens
  std::vector<std::string> marks{};
  std::vector<std::string> prompt{};  // of "ab", with "ab" behind the answer
  std::vector<std::string> without{}; // of "", with "ab" behind the answer
  bool adds_bos = false, adds_space = false;
  std::vector<std::pair<std::string, std::size_t>> keys{};  // of the file, and the mark of each
};

const std::vector<Family>& families() {
  static const std::vector<std::string> qwen{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, star{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      deepseek{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}, llama{"▁<PRE>", "▁<SUF>", "▁<MID>"}, mistral{"[PREFIX]", "[SUFFIX]", "[MIDDLE]"};
  static const std::vector<Family> all{
      {.name = "Qwen2.5-Coder", .published = "github.com/QwenLM/Qwen3-Coder, examples/Qwen2.5-Coder.md", .model = "gpt2", .marks = qwen,
       .prompt = {qwen[0], "a", "b", qwen[1], "a", "b", qwen[2]}, .without = {qwen[0], qwen[1], "a", "b", qwen[2]}},
      {.name = "StarCoder2", .published = "huggingface.co/bigcode/tiny_starcoder_py, Fill-in-the-middle, for all of the family", .model = "gpt2", .marks = star,
       .prompt = {star[0], "a", "b", star[1], "a", "b", star[2]}, .without = {star[0], star[1], "a", "b", star[2]}},
      {.name = "Granite code", .published = "arxiv.org/abs/2405.04324: StarCoder's tokenizer and form", .model = "gpt2", .marks = star,
       .prompt = {star[0], "a", "b", star[1], "a", "b", star[2]}, .without = {star[0], star[1], "a", "b", star[2]}},
      {.name = "DeepSeek-Coder", .published = "github.com/deepseek-ai/DeepSeek-Coder, Code Insertion", .model = "gpt2", .marks = deepseek,
       .prompt = {"<|endoftext|>", deepseek[0], "a", "b", deepseek[1], "a", "b", deepseek[2]}, .without = {"<|endoftext|>", deepseek[0], deepseek[1], "a", "b", deepseek[2]},
       .adds_bos = true},
      {.name = "CodeGemma", .published = "ai.google.dev/gemma/docs/codegemma/prompt-structure", .model = "llama-gqa", .marks = qwen,
       .prompt = {"<s>", qwen[0], "ab", qwen[1], "ab", qwen[2]}, .without = {"<s>", qwen[0], qwen[1], "ab", qwen[2]}, .adds_bos = true},
      // What stands in front has a space before it, as every text has; what stands behind has none.
      {.name = "CodeLlama", .published = "github.com/meta-llama/codellama, llama/generation.py: infilling_prompt_tokens", .model = "llama-gqa", .marks = llama,
       .prompt = {"<s>", llama[0], "▁a", "b", llama[1], "ab", llama[2]}, .without = {"<s>", llama[0], llama[1], "ab", llama[2]}, .adds_bos = true, .adds_space = true},
      {.name = "CodeLlama, by keys", .published = "as above; keys as llama.cpp's converter writes them", .model = "llama-gqa", .marks = {"x1", "x2", "x3"},
       .prompt = {"<s>", "x1", "▁a", "b", "x2", "ab", "x3"}, .without = {"<s>", "x1", "x2", "ab", "x3"}, .adds_bos = true, .adds_space = true,
       .keys = {{"prefix", 0}, {"suffix", 1}, {"middle", 2}}},
      // What stands behind comes first, and no token asks for the middle.
      {.name = "Codestral", .published = "github.com/mistralai/mistral-common, tokens/tokenizers/instruct.py: encode_fim", .model = "llama-gqa", .marks = mistral,
       .prompt = {"<s>", mistral[1], "ab", mistral[0], "▁a", "b"}, .without = {"<s>", mistral[1], "ab", mistral[0]}, .adds_bos = true, .adds_space = true},
      {.name = "Codestral, by keys", .published = "as above", .model = "llama-gqa", .marks = mistral,
       .prompt = {"<s>", mistral[1], "ab", mistral[0], "▁a", "b"}, .without = {"<s>", mistral[1], "ab", mistral[0]}, .adds_bos = true, .adds_space = true,
       .keys = {{"fim_pre", 0}, {"fim_suf", 1}, {"fim_mid", 2}}},
  };
  return all;
}

// The vocabulary of a model file in which a family's tokens have taken the places of some that nobody needs here.
std::vector<std::string> vocabulary_of(const Family& family) {
  const auto file = must(tessera::ModelFile::open(tessera::test::golden_dir() / (std::string(family.model) + ".gguf")));
  const auto tokenizer = must(tessera::Tokenizer::from_settings(file.settings()));
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) tokens.emplace_back(tokenizer.text(static_cast<tessera::Token>(i)));
  for (std::size_t i = 0; i < family.marks.size(); ++i) tokens[40 + i] = family.marks[i];
  return tokens;
}

std::string written(const Family& family, const std::vector<std::string>& tokens) {
  const auto bytes = changed_file(family.model, [&](tessera::GgufWriter& writer) {
    std::vector<std::int32_t> types(tokens.size(), 1);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == "<s>" || tokens[i] == "</s>" || tokens[i] == "<|endoftext|>" || std::ranges::find(family.marks, tokens[i]) != family.marks.end()) types[i] = 3;
      if (tokens[i] == "<unk>") types[i] = 2;
    }
    must(writer.set_array("tokenizer.ggml.tokens", tokens));
    must(writer.set_array("tokenizer.ggml.token_type", types));
    must(writer.set_boolean("tokenizer.ggml.add_bos_token", family.adds_bos));
    must(writer.set_boolean("tokenizer.ggml.add_space_prefix", family.adds_space));
    for (const auto& [key, mark] : family.keys) must(writer.set(fmt::format("tokenizer.ggml.{}_token_id", key), static_cast<std::uint32_t>(40 + mark)));
  });
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera-fill-in-{}.gguf", getpid())).string();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace

TEST_CASE("suffix makes the prompt that a family of models was trained with", "[server]") {
  if (lacks_server()) return;
  for (const Family& family : families()) {
    INFO(family.name << ", as published in " << family.published);
    const std::vector<std::string> tokens = vocabulary_of(family);
    const std::string path = written(family, tokens);
    const RunningServer server({"--no-log", "-m", path});
    std::filesystem::remove(path);
    const auto answer = [&](const std::string& fields) {
      const Response response = server.post("/v1/completions", "{" + fields + R"(, "max_tokens": 4, "temperature": 0, "logprobs": 3})");
      INFO(response.body);
      REQUIRE(response.status == 200);
      return std::pair(at(response.json(), {"choices", "0", "logprobs"}), at(response.json(), {"usage", "prompt_tokens"}));
    };
    for (const bool is_empty : {false, true}) {
      const std::vector<std::string>& prompt = is_empty ? family.without : family.prompt;
      std::string ids;
      for (const std::string& token : prompt) {
        const auto found = std::ranges::find(tokens, token);
        REQUIRE(found != tokens.end());
        ids += fmt::format("{}{}", ids.empty() ? "" : ", ", found - tokens.begin());
      }
      INFO((is_empty ? "nothing in front: " : "") << ids);
      const auto filled = answer(fmt::format(R"("prompt": "{}", "suffix": "ab")", is_empty ? "" : "ab"));
      const auto plain = answer(fmt::format(R"("prompt": [{}])", ids));
      CHECK(filled.second == plain.second);
      CHECK(filled.first == plain.first);
    }
  }
}

}  // namespace test_server_fill_in
