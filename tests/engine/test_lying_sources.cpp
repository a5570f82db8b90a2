// A host's source may say anything: what does not fit together is refused before it is read.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/files/model_source.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_lying_sources {

using namespace tessera;
using namespace tessera::test;

namespace {

// A model file's own words, but for what a test changes.
class LyingSource final : public ModelSource, public Settings {
 public:
  explicit LyingSource(const std::string& model) : file_(must(ModelFile::open(golden_dir() / (model + ".gguf")))) {}

  std::optional<Setting> lied;
  SettingValue lie;
  const TensorInfo* unknown = nullptr;  // what find_tensor() gives for names that there are not
  std::optional<FileKey> key;           // the only key of the file

  const Settings& settings() const noexcept override { return *this; }
  std::span<const TensorInfo> tensors() const noexcept override { return file_.tensors(); }
  const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    const TensorInfo* tensor = file_.find_tensor(name);
    return tensor != nullptr ? tensor : unknown;
  }
  Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    return file_.read(tensor, offset, out);
  }
  std::uint64_t memory_bytes() const noexcept override { return file_.memory_bytes(); }
  std::optional<SettingValue> find(Setting setting) const noexcept override {
    return lied == setting ? std::optional(lie) : file_.settings().find(setting);
  }
  std::optional<FileKey> file_key(std::size_t index) const noexcept override { return index == 0 ? key : std::nullopt; }

 private:
  ModelFile file_;
};

std::vector<std::byte> text_list(std::initializer_list<std::pair<std::uint64_t, std::string_view>> texts) {
  std::vector<std::byte> bytes;
  for (const auto& [length, text] : texts) {
    const auto of_length = std::as_bytes(std::span(&length, 1)), of_text = std::as_bytes(std::span(text));
    bytes.insert(bytes.end(), of_length.begin(), of_length.end());
    bytes.insert(bytes.end(), of_text.begin(), of_text.end());
  }
  return bytes;
}

std::string refusal(const ModelSource& source, const EngineOptions& options = {}) {
  const auto engine = Engine::load(source, options);
  return engine ? std::string() : engine.error().text();
}

}  // namespace

TEST_CASE("a list whose count and bytes do not fit each other is refused", "[source]") {
  LyingSource source("qwen2");
  REQUIRE(refusal(source, {.tokenizer = TokenizerUse::none}).empty());
  source.lied = Setting::tokens;
  const auto two = text_list({{1, "a"}, {1, "b"}}), long_one = text_list({{1, "a"}, {100, "b"}}), cut = text_list({{1, "a"}, {~std::uint64_t{0}, ""}});
  const ValueList lists[] = {{ValueType::string, 1, two}, {ValueType::string, 3, two}, {ValueType::string, 2, long_one}, {ValueType::string, 2, cut},
                             {ValueType::string, ~std::uint64_t{0}, {}}};
  for (const ValueList& list : lists) {
    CHECK_FALSE(list.is_whole());
    source.lie = list;
    CHECK(source.list(Setting::tokens).error().code() == ErrorCode::corrupt_file);
    CHECK(refusal(source).find("tokens") != std::string::npos);
  }
  CHECK(ValueList(ValueType::string, 2, two).is_whole());
  CHECK_FALSE(ValueList(ValueType::f32, 2, std::span(two).first(7)).is_whole());
  CHECK(ValueList(ValueType::f32, 2, std::span(two).first(8)).is_whole());
  CHECK_FALSE(ValueList(ValueType::u64, ~std::uint64_t{0} / 4, two).is_whole());
}

TEST_CASE("a tensor that is none of the source's, or another than was asked for, is as if there were none", "[source]") {
  // An optional role's name: this model has no biases.
  LyingSource source("llama-gqa");
  const TensorInfo stray{.name = "stray", .dtype = DType::f32, .n_dims = 1, .dims = {1, 1, 1, 1}, .offset = 0, .bytes = 4};
  for (const TensorInfo* unknown : {&stray, &source.tensors()[0], source.tensors().data() + source.tensors().size()}) {
    source.unknown = unknown;
    CHECK(refusal(source, {.tokenizer = TokenizerUse::none}).empty());
  }
}

TEST_CASE("a setting keeps its value beside a key of the file that has its name and means something else", "[source]") {
  LyingSource source("llama-gqa");
  const std::uint64_t context = must(source.unsigned_integer(Setting::context));
  source.key = FileKey{"context", std::string_view("{\"raw\": true}")};
  const Engine engine = must(Engine::load(source, {.tokenizer = TokenizerUse::none}));
  CHECK(must(engine.metadata().unsigned_integer(Setting::context)) == context);
  CHECK(std::get<std::string_view>(engine.metadata().find_key("context").value()) == "{\"raw\": true}");
  CHECK_FALSE(engine.metadata().file_key(1));
}

}  // namespace test_lying_sources
