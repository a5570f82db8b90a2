// Engine::metadata(): the model's settings that an engine keeps.
#include "engine/changed_model.hpp"

namespace test_metadata {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("an engine has its model's settings, and they outlive the file", "[metadata]") {
  const Engine engine = load_golden("llama-gqa");
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const Settings& kept = engine.metadata();
  std::size_t compared = 0;
  for (std::size_t i = 0; i < kSettings; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (!file.settings().has(setting)) continue;
    CHECK(kept.has(setting) == !file.settings().has_list(setting));
    if (!kept.has(setting)) continue;
    CHECK(kept.called(setting) == file.settings().called(setting));
    const SettingValue ours = *kept.find(setting), theirs = *file.settings().find(setting);
    REQUIRE(ours.index() == theirs.index());
    std::visit([&]<class T>(const T& value) { if constexpr (!std::is_same_v<T, ValueList>) CHECK(value == std::get<T>(theirs)); }, ours);
    ++compared;
  }
  CHECK(compared > 8);
  CHECK(must(kept.string(Setting::architecture)) == "llama");
  CHECK(must(kept.unsigned_integer(Setting::context)) == must(file.settings().unsigned_integer(Setting::context)));
}

TEST_CASE("an engine has its file's own keys, those of no setting too", "[metadata]") {
  const Engine engine = changed_model("llama-gqa", [](GgufWriter& writer) {
    must(writer.set("hello.whole", std::uint32_t{7}));
    must(writer.set("hello.number", 0.5f));
    must(writer.set_string("hello.text", "world"));
    must(writer.set_string("tokenizer.chat_template.tool_use", "tools"));
    must(writer.set_string("hello.long", std::string((1 << 20) + 1, 'x')));
  });
  const Settings& kept = engine.metadata();
  std::vector<std::string> names;
  for (std::size_t i = 0; kept.file_key(i); ++i) names.emplace_back(kept.file_key(i)->name);
  std::vector<std::string> expected;
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  for (const GgufEntry& entry : file.metadata().entries()) {
    if (entry.type != GgufType::array) expected.emplace_back(entry.key);
  }
  expected.insert(expected.end(), {"hello.whole", "hello.number", "hello.text", "tokenizer.chat_template.tool_use"});
  CHECK(names == expected);
  CHECK(std::get<std::string_view>(kept.find_key("general.architecture").value()) == "llama");
  CHECK(std::get<std::int64_t>(kept.find_key("hello.whole").value()) == 7);
  CHECK(std::get<double>(kept.find_key("hello.number").value()) == 0.5);
  CHECK(std::get<std::string_view>(kept.find_key("hello.text").value()) == "world");
  CHECK_FALSE(kept.find_key("hello.long"));
  CHECK(kept.chat_template("tool_use") == "tools");
  CHECK_FALSE(kept.chat_template("tool"));
}

}  // namespace test_metadata
