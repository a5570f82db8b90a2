// A kind of file that a host brings: a folder with settings.json, by our names, and each tensor's values as raw F32.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/json/json.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_folder_source {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

// Everything that a model of another kind of file needs.
class FolderSource final : public ModelSource, public Settings {
 public:
  explicit FolderSource(fs::path folder) : folder_(std::move(folder)) {
    std::ifstream file(folder_ / "settings.json");
    json_ = must(Json::parse(std::string(std::istreambuf_iterator<char>(file), {})));
    for (const auto& [name, dims] : *json_.find("tensors")->members()) {
      TensorInfo tensor{.name = name, .dtype = DType::f32, .n_dims = 0, .dims = {1, 1, 1, 1}, .offset = 0, .bytes = sizeof(float)};
      for (const Json& dim : *dims.elements()) {
        tensor.dims[tensor.n_dims++] = static_cast<std::uint64_t>(*dim.integer());
        tensor.bytes *= static_cast<std::uint64_t>(*dim.integer());
      }
      tensors_.push_back(tensor);
    }
  }
  const Settings& settings() const noexcept override { return *this; }
  std::span<const TensorInfo> tensors() const noexcept override { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    const auto at = std::ranges::find(tensors_, name, &TensorInfo::name);
    return at == tensors_.end() ? nullptr : &*at;
  }
  Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    std::ifstream file(folder_ / tensor.name, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return file ? Status() : Status(Error(ErrorCode::io, "cannot read", std::string(tensor.name)));
  }
  std::span<TensorInfo> changeable() { return tensors_; }
  std::uint64_t memory_bytes() const noexcept override { return tensors_.size() * sizeof(TensorInfo); }
  std::optional<SettingValue> find(Setting setting) const noexcept override {
    const Json* value = json_.find(to_string(setting));
    if (value == nullptr) return std::nullopt;
    if (value->boolean() != nullptr) return *value->boolean();
    if (value->integer() != nullptr) return *value->integer();
    if (value->number() != nullptr) return *value->number();
    return std::string_view(*value->string());
  }
  std::string origin() const override { return folder_.string(); }

 private:
  fs::path folder_;
  Json json_;
  std::vector<TensorInfo> tensors_;  // their names are the JSON's keys
};

// The same model as such a folder. Lists stay out: these models have none but a vocabulary.
void write_folder(const ModelFile& file, const fs::path& folder) {
  fs::create_directories(folder);
  Json json = Json::object(), tensors = Json::object();
  for (std::size_t i = 0; i < kSettings; ++i) {
    const auto value = file.settings().find(static_cast<Setting>(i));
    if (!value || std::holds_alternative<ValueList>(*value)) continue;
    const std::string_view name = to_string(static_cast<Setting>(i));
    if (const auto* number = std::get_if<double>(&*value)) json.set(name, *number);
    else if (const auto* whole = std::get_if<std::int64_t>(&*value)) json.set(name, *whole);
    else if (const auto* flag = std::get_if<bool>(&*value)) json.set(name, *flag);
    else if (const auto* text = std::get_if<std::string_view>(&*value)) json.set(name, *text);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    REQUIRE(tensor.dtype == DType::f32);
    Json dims = Json::array();
    for (std::uint32_t i = 0; i < tensor.n_dims; ++i) dims.elements()->push_back(static_cast<std::int64_t>(tensor.dims[i]));
    tensors.set(tensor.name, dims);
    std::vector<std::byte> bytes(tensor.bytes);
    must(file.read(tensor, 0, bytes));
    std::ofstream(folder / tensor.name, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  json.set("tensors", std::move(tensors));
  std::ofstream(folder / "settings.json") << json.dump();
}

}  // namespace

TEST_CASE("a host's own kind of file gives the bits of the same model in GGUF", "[source]") {
  const std::string name = GENERATE("llama-gqa", "gemma3", "qwen2moe");
  CAPTURE(name);
  const auto path = golden_dir() / (name + ".gguf");
  const fs::path folder = fs::temp_directory_path() / ("tessera-folder-" + name + "-" + std::to_string(::getpid()));
  write_folder(must(ModelFile::open(path)), folder);
  const FolderSource source(folder);
  const EngineOptions options{.tokenizer = TokenizerUse::none};
  const Engine ours = must(Engine::load(source, options)), gguf = must(Engine::load(path, options));
  fs::remove_all(folder);
  Session a = must(ours.session()), b = must(gguf.session());
  std::vector<Token> next = {1, 2, 3, 4, 5};
  for (int i = 0; i < 20; ++i) {
    must(a.append(next));
    must(b.append(next));
    REQUIRE(std::ranges::equal(a.logits(), b.logits()));
    next = {static_cast<Token>(std::ranges::max_element(a.logits()) - a.logits().begin())};
  }
  CHECK(must(ours.metadata().string(Setting::architecture)) == must(gguf.metadata().string(Setting::architecture)));
  CHECK(ours.metadata().called(Setting::context) == "context");
  CHECK_FALSE(ours.metadata().file_key(0));
}

TEST_CASE("a source that says of a tensor what cannot be is refused", "[source]") {
  const fs::path folder = fs::temp_directory_path() / ("tessera-folder-wrong-" + std::to_string(::getpid()));
  write_folder(must(ModelFile::open(golden_dir() / "llama-gqa.gguf")), folder);
  const auto refusal = [&](const auto& change) {
    FolderSource source(folder);
    change(source.changeable()[3]);
    const auto engine = Engine::load(source, {.tokenizer = TokenizerUse::none});
    return engine ? std::string() : engine.error().text();
  };
  CHECK(refusal([](TensorInfo&) {}).empty());
  CHECK(refusal([](TensorInfo& tensor) { tensor.bytes -= 4; }).find("bytes, which its shape and its type F32 do not take") != std::string::npos);
  CHECK_FALSE(refusal([](TensorInfo& tensor) { tensor.dims[3] = ~std::uint64_t{0}; }).empty());
  CHECK_FALSE(refusal([](TensorInfo& tensor) { tensor.n_dims = 5; }).empty());
  CHECK_FALSE(refusal([](TensorInfo& tensor) { tensor.name = "output.weight "; }).empty());
  fs::remove_all(folder);
}

}  // namespace test_folder_source
