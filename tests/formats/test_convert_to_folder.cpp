// tessera-convert --to safetensors: a GGUF file becomes a folder, whole or not at all.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "engine/models.hpp"

namespace test_convert_to_folder {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-convert";

class Place {
 public:
  Place() : path_(fs::temp_directory_path() / ("tessera-to-folder-" + std::to_string(::getpid()))) { fs::create_directories(path_); }
  ~Place() { fs::remove_all(path_); }
  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

  // Runs the tool. Its messages are in `messages` afterwards.
  int run(const std::string& arguments) {
    const fs::path file = path_ / "messages";
    const int status = std::system((kTool + " " + arguments + " >" + file.string() + " 2>&1").c_str());
    std::ifstream in(file, std::ios::binary);
    messages.assign(std::istreambuf_iterator<char>(in), {});
    fs::remove(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] bool says(std::string_view text) const { return messages.find(text) != std::string::npos; }
  std::string messages;

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("tessera-convert writes a folder of a quantised GGUF file", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  Place place;
  const std::string model = (golden_dir() / "llama3.gguf").string(), quantised = (place / "q8.gguf").string(), folder = (place / "folder").string();
  REQUIRE(place.run(model + " " + quantised + " Q8_0") == 0);
  CHECK(place.run(quantised + " " + folder + " --to safetensors --dry-run") == 0);
  CHECK(place.says("model_type llama"));
  CHECK(place.says("their numbers are rounded"));
  CHECK(place.entries() == 1);
  REQUIRE(place.run(quantised + " " + folder + " --to safetensors --type F32 --split-max-size 40kB") == 0);
  CHECK_FALSE(place.says("rounded"));
  CHECK(fs::exists(fs::path(folder) / "model.safetensors.index.json"));
  CHECK(fs::exists(fs::path(folder) / "tokenizer.json"));
  CHECK(fs::exists(fs::path(folder) / "generation_config.json"));
  const auto opened = must(open_model(folder));
  for (const TensorInfo& tensor : opened->tensors()) CHECK((tensor.dtype == DType::f32));
  // A folder that is there stays as it is.
  CHECK(place.run(model + " " + folder + " --to safetensors") == 1);
  CHECK(place.says("it is there already"));
  CHECK(place.entries() == 2);
  fs::create_directory(place / "empty");
  CHECK(place.run(model + " " + (place / "empty").string() + "/ --to safetensors F16") == 0);
  CHECK(place.says("F16"));
  CHECK(place.entries() == 3);
  CHECK(must(Engine::load(place / "empty")).tokenizer().vocab_size() == must(Engine::load(model)).tokenizer().vocab_size());
}

TEST_CASE("tessera-convert says in a line what is wrong with a folder to be written", "[convert]") {
  if (!fs::exists(kTool)) return tests::skip("tessera-convert (not built)");
  Place place;
  const std::string model = (golden_dir() / "qwen3.gguf").string(), folder = (place / "folder").string();
  CHECK(place.run(model + " " + folder + " --to safetensors Q4_K") == 2);
  CHECK(place.says("FORMAT Q4_K: with --to safetensors it is F32, F16 or BF16"));
  CHECK(place.run(model + " " + folder + " --to pytorch") == 2);
  CHECK(place.says("--to"));
  CHECK(place.run(model + " " + folder + " --to safetensors F16 --output-type F16") == 2);
  CHECK(place.says("are for GGUF files"));
  CHECK(place.run(model + " " + model + "/folder --to safetensors") == 1);  // a file is no place for a folder
  CHECK(place.says("cannot make the folder"));
  CHECK(place.run((place / "none.gguf").string() + " " + folder + " --to safetensors") == 1);
  CHECK(place.entries() == 0);
}

}  // namespace test_convert_to_folder
