// Whole and split models, from paths, sources and memory.
#include "catch.hpp"
#include "files/gguf_bytes.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <tessera/extend/files/model_file.hpp>

namespace test_model_file {

using namespace tessera;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tessera-model-" + std::to_string(::getpid()))) { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::vector<std::byte>& bytes) const {
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path / name;
  }
  fs::path path;
};

struct Split {
  std::uint16_t no = 0, count = 3;
  std::int32_t tensors = 6;
};

std::vector<std::byte> part(Split split, const std::string& tensor) {
  gguf_bytes::Builder b;
  if (split.no == 0) b.key("general.name", GgufType::string).string("split");
  b.key("split.no", GgufType::u16).put(split.no);
  b.key("split.count", GgufType::u16).put(split.count);
  if (split.tensors >= 0) b.key("split.tensors.count", GgufType::i32).put(split.tensors);
  b.tensor(tensor + ".a", DType::f32, {static_cast<std::uint64_t>(split.no) + 1});
  b.tensor(tensor + ".b", DType::q8_0, {32});
  return b.finish();
}

std::string part_name(int no, int count = 3) {
  char name[64];
  std::snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", no + 1, count);
  return name;
}

void check_error(const Result<ModelFile>& file, ErrorCode code, std::string_view words) {
  REQUIRE_FALSE(file);
  INFO(file.error().text());
  CHECK(file.error().code() == code);
  CHECK(file.error().text().find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a split model is one list of tensors") {
  const Folder folder;
  for (std::uint16_t i = 0; i < 3; ++i) folder.write(part_name(i), part({.no = i}, "blk." + std::to_string(i)));
  const auto file = ModelFile::open(folder.path / part_name(0));
  INFO((file ? std::string() : file.error().text()));
  REQUIRE(file);
  CHECK(file->parts().size() == 3);
  CHECK(file->tensors().size() == 6);
  CHECK(*file->metadata().string("general.name") == "split");
  const auto* tensor = file->find_tensor("blk.2.a");
  REQUIRE(tensor != nullptr);
  CHECK(tensor->part == 2);
  CHECK(tensor->bytes == 12);
  std::vector<std::byte> data(12);
  REQUIRE(file->read(*tensor, 0, data));
  CHECK(data[0] == std::byte{1});
  CHECK(data[11] == std::byte{12});
  CHECK(file->find_tensor("blk.3.a") == nullptr);
  CHECK(file->memory_bytes() > 3 * file->metadata().memory_bytes() / 2);

  check_error(ModelFile::open(folder.path / part_name(1)), ErrorCode::invalid_argument, "part 2 of a model of 3 files");
  check_error(ModelFile::open(folder.path / part_name(1)), ErrorCode::invalid_argument, part_name(0).substr(1));
  // The name in front of the numbers does not matter.
  for (std::uint16_t i = 0; i < 2; ++i)
    folder.write("x.shard-" + part_name(i, 2).substr(2), part({.no = i, .count = 2, .tensors = 4}, std::to_string(i)));
  const auto shards = ModelFile::open(folder.path / "x.shard-00001-of-00002.gguf");
  REQUIRE(shards);
  CHECK(shards->tensors().size() == 4);
  fs::remove(folder.path / part_name(2));
  check_error(ModelFile::open(folder.path / part_name(0)), ErrorCode::not_found, part_name(2));
}

TEST_CASE("parts that contradict each other are refused") {
  const Folder folder;
  const auto with_second = [&](Split split, const std::string& tensor) {
    folder.write(part_name(0, 2), part({.no = 0, .count = 2, .tensors = 4}, "x"));
    folder.write(part_name(1, 2), part(split, tensor));
    return ModelFile::open(folder.path / part_name(0, 2));
  };
  CHECK(with_second({1, 2, 4}, "y"));
  check_error(with_second({1, 2, 4}, "x"), ErrorCode::corrupt_file, "tensor 'x.a' stands also in part 1");
  check_error(with_second({0, 2, 4}, "y"), ErrorCode::corrupt_file, "part 1 of 2, and stands as part 2 of 2");
  check_error(with_second({1, 3, 4}, "y"), ErrorCode::corrupt_file, "part 2 of 3, and stands as part 2 of 2");
  check_error(with_second({5, 2, 4}, "y"), ErrorCode::corrupt_file, "split.no is 5");
  folder.write(part_name(0, 2), part({.no = 0, .count = 2, .tensors = 5}, "x"));
  folder.write(part_name(1, 2), part({1, 2, 5}, "y"));
  check_error(ModelFile::open(folder.path / part_name(0, 2)), ErrorCode::corrupt_file, "split.tensors.count is 5");
  const auto renamed = folder.write("renamed.gguf", part({.no = 0, .count = 2, .tensors = 4}, "x"));
  check_error(ModelFile::open(renamed), ErrorCode::not_found, "its name must end in -00001-of-00002.gguf");
}

TEST_CASE("split models from sources, in order") {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::shared_ptr<ByteSource>> sources;
  for (std::uint16_t i = 0; i < 3; ++i) bytes.push_back(part({.no = i, .tensors = -1}, "blk." + std::to_string(i)));
  for (const auto& b : bytes) sources.push_back(*memory_source(b));
  const auto file = ModelFile::from_sources(sources);
  REQUIRE(file);
  CHECK(file->tensors().size() == 6);
  std::swap(sources[1], sources[2]);
  check_error(ModelFile::from_sources(sources), ErrorCode::corrupt_file, "stands as part 2");
  check_error(ModelFile::from_source(sources[0]), ErrorCode::corrupt_file, "part 1 of 3, and stands as part 1 of 1");
  check_error(ModelFile::from_sources({}), ErrorCode::invalid_argument, "0 sources");
  check_error(ModelFile::from_source(nullptr), ErrorCode::invalid_argument, "null");
}

TEST_CASE("only a tensor's own bytes can be read") {
  const auto bytes = gguf_bytes::every_type().finish();
  const auto file = ModelFile::from_memory(bytes);
  REQUIRE(file);
  const auto* tensor = file->find_tensor("w2");
  std::vector<std::byte> out(12);
  CHECK(file->read(*tensor, 0, out));
  CHECK(file->read(*tensor, 12, {}));
  CHECK_FALSE(file->read(*tensor, 1, out));
  CHECK_FALSE(file->read(*tensor, ~std::uint64_t{0}, out));
  CHECK_FALSE(file->read(*tensor, 13, {}));
  auto forged = *tensor;
  forged.part = 1;
  CHECK_FALSE(file->read(forged, 0, out));
  forged.part = 0;
  forged.offset = ~std::uint64_t{0} - 4;
  CHECK_FALSE(file->read(forged, 0, out));
  forged.offset = bytes.size() - 4;
  CHECK_FALSE(file->read(forged, 0, out));
}

TEST_CASE("gguf-py's files read as they were written") {
  const auto file = ModelFile::open(TESSERA_SOURCE_DIR "/tests/files/data/every_type.gguf");
  REQUIRE(file);
  const GgufFile& meta = file->metadata();
  CHECK(*meta.string("general.architecture") == "test");
  CHECK(*meta.unsigned_integer("u8") == 200);
  CHECK(*meta.number("i8") == -100);
  CHECK(*meta.unsigned_integer("u16") == 60000);
  CHECK(*meta.number("i16") == -30000);
  CHECK(*meta.unsigned_integer("u32") == 4000000000u);
  CHECK(*meta.number("i32") == -2000000000);
  CHECK(*meta.number("f32") == 1.5);
  CHECK(*meta.boolean("boolean"));
  CHECK(*meta.string("string") == "zażółć gęślą jaźń");
  CHECK(*meta.unsigned_integer("u64") == 0xfedcba9876543210u);
  CHECK(*meta.number("i64") == -5000000000.0);
  CHECK(*meta.number("f64") == -2.25);
  CHECK(meta.array("a.i32")->integer(1) == -2);
  CHECK(meta.array("a.f32")->number(1) == -8);
  CHECK(meta.array("a.boolean")->integer(0) == 1);
  const auto array = meta.array("a.string");
  const auto strings = array->strings();
  CHECK(std::vector<std::string>(strings.begin(), strings.end()) == std::vector<std::string>{"one", "two", "drei"});
  REQUIRE(file->tensors().size() == 5);
  // 256 values, row by row: (i - 128) / 16.
  std::vector<std::byte> data(1024);
  REQUIRE(file->read(*file->find_tensor("f32"), 0, data));
  for (int i = 0; i < 256; ++i) {
    float value = 0;
    std::memcpy(&value, data.data() + 4 * i, 4);
    REQUIRE(value == static_cast<float>(i - 128) / 16);
  }
  const auto* q5 = file->find_tensor("q5_1");
  CHECK(q5->dtype == DType::q5_1);
  CHECK(q5->dims == std::array<std::uint64_t, 4>{64, 4, 1, 1});
  CHECK(q5->bytes == 256 / 32 * 24);

  const auto llama = ModelFile::open(TESSERA_SOURCE_DIR "/tests/files/data/llama.gguf");
  REQUIRE(llama);
  CHECK(llama->metadata().alignment() == 64);
  CHECK(*llama->metadata().unsigned_integer("llama.embedding_length") == 8);
  CHECK(llama->metadata().array("llama.attention.head_count_kv")->integer(0) == 1);
  CHECK(llama->metadata().string("tokenizer.chat_template")->find("{{ m.content }}") != std::string_view::npos);
  CHECK(llama->tensors().size() == 7);
}

TEST_CASE("the models and vocabularies of ../shared are read") {
  if (!fs::exists(TESSERA_SHARED_DIR "/models")) {
    tessera::tests::skip("../shared is absent");
    return;
  }
  int files = 0;
  for (const auto* folder : {"/models", "/tokenizers"}) {
    for (const auto& entry : fs::directory_iterator(std::string(TESSERA_SHARED_DIR) + folder)) {
      if (entry.path().extension() != ".gguf") continue;
      ++files;
      const auto file = ModelFile::open(entry.path());
      INFO(entry.path() << (file ? std::string() : file.error().text()));
      REQUIRE(file);
      CHECK(gguf_bytes::is_sound(file->metadata()));
      CHECK(file->metadata().array("tokenizer.ggml.tokens")->size() > 500);
    }
  }
  CHECK(files == 6);
}

}  // namespace test_model_file
