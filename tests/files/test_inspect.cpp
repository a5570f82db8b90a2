// tessera-inspect as its users run it: exit status, one line for an error, JSON, values as they are.
#include "catch.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

#include <sys/wait.h>

namespace test_inspect {

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-inspect";
const std::string kModel = TESSERA_SOURCE_DIR "/tests/files/data/llama.gguf";

struct Run {
  int status = -1;
  std::string output;  // both streams
};

Run run(const std::string& arguments) {
  Run result;
  std::FILE* pipe = ::popen(("'" + kTool + "' " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) result.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

bool has(const Run& result, const std::string& words) { return result.output.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("tessera-inspect shows a file, and fails with one line") {
  if (!std::filesystem::exists(kTool)) {
    tessera::tests::skip("tessera-inspect is not built");
    return;
  }
  const Run all = run("'" + kModel + "'");
  INFO(all.output);
  CHECK(all.status == 0);
  CHECK(has(all, "alignment 64"));
  CHECK(has(all, "llama.embedding_length"));
  CHECK(has(all, "    | {{ m.content }}\n"));
  CHECK(has(all, "blk.0.attn_q.weight"));
  CHECK(has(all, "8 x 12"));

  CHECK_FALSE(has(run("--tensors '" + kModel + "'"), "metadata"));
  CHECK_FALSE(has(run("--metadata '" + kModel + "'"), "totals"));
  CHECK(run("--key tokenizer.ggml.tokens '" + kModel + "'").output == "<unk>\n<s>\n</s>\na\n");
  CHECK(run("--key llama.block_count '" + kModel + "'").output == "1\n");
  const Run json = run("--json '" + kModel + "'");
  CHECK(json.status == 0);
  CHECK(json.output.substr(0, 1) == "{");
  CHECK(has(json, "\"llama.block_count\": 1,"));

  for (const auto& [arguments, status] : {std::pair<std::string, int>{"", 2},
                                          {"--no-such-option '" + kModel + "'", 2},
                                          {"--kv-dtype q4_0 '" + kModel + "'", 2},
                                          {"/no/such/file", 1},
                                          {"--key no.such.key '" + kModel + "'", 1}}) {
    const Run failed = run(arguments);
    INFO(failed.output);
    CHECK(failed.status == status);
    CHECK(failed.output.starts_with("tessera-inspect: "));
    CHECK(failed.output.find('\n') == failed.output.size() - 1);
  }
}

TEST_CASE("tessera-inspect shows a model's folder as it shows a file") {
  if (!std::filesystem::exists(kTool)) {
    tessera::tests::skip("tessera-inspect is not built");
    return;
  }
  const std::string folder = "'" TESSERA_SOURCE_DIR "/tests/golden/data/folders/gemma3'";
  const Run all = run(folder);
  INFO(all.output);
  CHECK(all.status == 0);
  CHECK(has(all, "num_hidden_layers"));
  CHECK(has(all, "d_model"));
  CHECK(has(all, "tokenizer: none that tessera reads"));
  CHECK(has(all, "model.layers.0.self_attn.q_proj.weight"));
  CHECK(has(all, "bytes a token"));
  CHECK_FALSE(has(run("--tensors " + folder), "settings"));
  CHECK(run("--key hidden_size " + folder).output == "32\n");
  CHECK(run("--key d_model " + folder).output == "32\n");
  CHECK(has(run("--key no_such_key " + folder), "tessera reads no key 'no_such_key' there"));
  const Run json = run("--json " + folder);
  CHECK(json.status == 0);
  CHECK(has(json, "\"in_folder\": \"model.layers.0.self_attn.q_proj.weight\""));
  CHECK(has(json, "\"kv_per_token\""));
  CHECK(has(run("--kv-table --context 32 " + folder), "gemma3"));
  CHECK(has(run("ollama:no-such-model"), "has no such model"));
}

TEST_CASE("tessera-inspect lists the tensors of safetensors files") {
  if (!std::filesystem::exists(kTool)) {
    tessera::tests::skip("tessera-inspect is not built");
    return;
  }
  const std::string file = TESSERA_SOURCE_DIR "/tests/files/data/every_type.safetensors";
  const Run all = run("'" + file + "'");
  INFO(all.output);
  CHECK(all.status == 0);
  CHECK(has(all, "tensors: 22 (shape: outermost dimension first)"));
  CHECK(has(all, "F8_E4M3"));
  CHECK(has(all, "2 x 4"));
  CHECK(has(all, "one value"));
  CHECK(has(run("--json '" + file + "'"), "\"name\": \"a.BF16\",\n      \"type\": \"BF16\""));

  const std::string folder = TESSERA_SOURCE_DIR "/tests/files/data";  // of several models
  const Run failed = run("'" + folder + "'");
  CHECK(failed.status == 1);
  CHECK(has(failed, ".safetensors files ("));
  CHECK(run("--plan '" + file + "'").status == 1);
}

}  // namespace test_inspect
