// -m finds models in the stores of other programs, and loads folders.
#include <cstdlib>

#include "program.hpp"

namespace test_cli_model_places {

using namespace tessera::tests::cli;
namespace fs = std::filesystem;

namespace {

// A home with stores in it, in which a tiny model is under names.
class Home {
 public:
  Home() : path_(fs::temp_directory_path() / ("tessera-home-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    for (const char* name : {"HOME", "OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? "" : value);
      ::unsetenv(name);
    }
    ::setenv("HOME", path_.c_str(), 1);
  }
  ~Home() {
    for (const auto& [name, value] : before_) {
      if (value.empty()) ::unsetenv(name.c_str());
      else ::setenv(name.c_str(), value.c_str(), 1);
    }
    fs::remove_all(path_);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file, std::ios::binary) << text;
  }
  void link(const std::string& file, const std::string& to) {
    fs::create_directories((path_ / file).parent_path());
    fs::create_symlink(to, path_ / file);
  }

 private:
  fs::path path_;
  std::vector<std::pair<std::string, std::string>> before_;
};

Outcome plan_of(const std::string& model) { return run({"-m", model, "--plan", "--json"}); }

}  // namespace

TEST_CASE("models in the stores of Ollama, LM Studio and the hub are found by name") {
  if (lacks_program()) return;
  Home home;
  home.write(".ollama/models/manifests/registry.ollama.ai/library/tiny/latest",
             R"({"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:00"},
                            {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abcd"}]})");
  home.link(".ollama/models/blobs/sha256-abcd", kTiny);
  home.link(".lmstudio/models/someone/tiny-GGUF/tiny.gguf", kTiny);
  home.link(".lmstudio/models/someone/tiny-GGUF/mmproj-tiny.gguf", kTiny);
  home.link(".lmstudio/models/someone/two/a.gguf", kTiny);
  home.link(".lmstudio/models/someone/two/b.gguf", kTiny);
  home.write(".cache/huggingface/hub/models--someone--tiny/refs/main", "1234");
  for (const char* file : {"config.json", "model.safetensors"}) {
    home.link(std::string(".cache/huggingface/hub/models--someone--tiny/snapshots/1234/") + file, kGolden + "folders/llama-bias/" + file);
  }
  // Behind "host" are sizes that count the path itself.
  const auto weights_of = [](const std::string& plan) { return plan.substr(0, plan.find("\"host\"")); };
  const std::string direct = weights_of(plan_of(kTiny).out);
  REQUIRE(direct.find("\"weights\":") != std::string::npos);
  for (const std::string model : {"ollama:tiny", "ollama:tiny:latest", "lmstudio:someone/tiny-GGUF", "lmstudio:someone/two/b.gguf"}) {
    CAPTURE(model);
    const Outcome found = plan_of(model);
    CHECK(found.status == 0);
    CHECK(weights_of(found.out) == direct);
  }
  CHECK(plan_of("hf:someone/tiny").status == 0);

  const std::pair<std::string, std::string> problems[] = {
      {"ollama:large", "it has tiny:latest"},
      {"ollama:../../etc", "expected ollama:NAME"},
      {"lmstudio:someone/none", "it has someone/tiny-GGUF, someone/two"},
      {"lmstudio:someone/two", "several models: add one of a.gguf, b.gguf"},
      {"hf:someone/large", "it has someone/tiny"},
      {"hf:someone", "expected hf:ORGANISATION/MODEL"},
  };
  for (const auto& [model, text] : problems) {
    const Outcome failed = plan_of(model);
    CAPTURE(model, failed.err);
    CHECK(failed.status == 1);
    CHECK(failed.err.find(text) != std::string::npos);
  }
}

TEST_CASE("a folder gives the logits of its weights, and none of its files is overwritten") {
  if (lacks_program()) return;
  const std::string folder = kGolden + "folders/llama-bias";
  const TemporaryFile logits;
  const Outcome done = run({"-m", folder, "--prompt-ids", "1 2 3", "--logits", logits.path()});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(fs::file_size(logits.path()) == 3 * 96 * sizeof(float));
  const Outcome refused = run({"-m", folder, "--prompt-ids", "1 2 3", "--logits", folder + "/config.json"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("would overwrite the model") != std::string::npos);
}

}  // namespace test_cli_model_places
