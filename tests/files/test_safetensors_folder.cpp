// Folders as hubs publish them, as their caches keep them, and as half-finished downloads leave them.
#include "catch.hpp"
#include "files/safetensors/safetensors_folder.hpp"
#include "files/safetensors_bytes.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace test_safetensors_folder {

using namespace tessera;
using namespace tessera::detail;
using safetensors_bytes::file;
using safetensors_bytes::tensor;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tessera-safetensors-" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::vector<std::byte>& bytes) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void write(const std::string& name, std::string_view text) const {
    const auto bytes = std::as_bytes(std::span(text));
    write(name, {bytes.begin(), bytes.end()});
  }
  // A file of one tensor of four bytes, which are `value`.
  void write_tensor(const std::string& name, const std::string& tensor_name, std::uint8_t value = 1) const {
    auto bytes = file("{" + tensor(tensor_name, "U8", "4", 0, 4) + "}", 4);
    std::fill(bytes.end() - 4, bytes.end(), std::byte{value});
    write(name, bytes);
  }
  void write_index(const std::string& map) const {
    write("model.safetensors.index.json", R"({"metadata": {"total_size": 8}, "weight_map": {)" + map + "}}");
  }
  [[nodiscard]] std::string error() const {
    const auto folder = SafetensorsFolder::open(path);
    return folder ? "no error" : folder.error().text();
  }
  fs::path path;
};

const std::string kOne = "model-00001-of-00002.safetensors", kTwo = "model-00002-of-00002.safetensors";
const std::string kMap = "\"a\": \"" + kOne + "\", \"b\": \"" + kTwo + "\"";

}  // namespace

TEST_CASE("a model in two files and an index") {
  const Folder folder;
  folder.write_tensor(kOne, "a", 7);
  folder.write_tensor(kTwo, "b", 9);
  folder.write_index(kMap);
  folder.write_tensor("consolidated.safetensors", "tok_embeddings.weight");  // the same weights under other names
  const auto model = SafetensorsFolder::open(folder.path);
  REQUIRE(model);
  CHECK(model->parts() == 2);
  REQUIRE(model->tensors().size() == 2);
  const SafetensorsTensor* b = model->find("b");
  REQUIRE(b != nullptr);
  CHECK(b->part == 1);
  CHECK(model->find("tok_embeddings.weight") == nullptr);
  CHECK(fs::path(model->file_name(b->part)).filename() == kTwo);
  CHECK(model->file_name(2).empty());
  std::byte bytes[3];
  REQUIRE(model->read(*b, 1, bytes));
  CHECK(bytes[2] == std::byte{9});
  CHECK(model->read(*b, 2, bytes).error().code() == ErrorCode::invalid_argument);
  CHECK(model->read(*b, ~std::uint64_t{0}, bytes).error().code() == ErrorCode::invalid_argument);
  const SafetensorsFolder none;
  CHECK(none.read(*b, 0, bytes).error().code() == ErrorCode::invalid_state);
  CHECK(none.tensors().empty());
  CHECK(none.file_name(0).empty());
}

TEST_CASE("a model without an index") {
  const Folder folder;
  SECTION("model.safetensors is the model, whatever lies beside it") {
    folder.write_tensor("model.safetensors", "a");
    folder.write_tensor("other.safetensors", "b");
    folder.write("pytorch_model.bin", "PK");
    const auto model = SafetensorsFolder::open(folder.path);
    REQUIRE(model);
    CHECK(model->tensors().size() == 1);
    CHECK(model->find("a") != nullptr);
  }
  SECTION("the only file") {
    folder.write_tensor("weights.safetensors", "a");
    folder.write_tensor("._weights.safetensors", "b");
    CHECK(SafetensorsFolder::open(folder.path)->find("a") != nullptr);
    CHECK(SafetensorsFolder::open(folder.path / "weights.safetensors")->find("a") != nullptr);  // by its own path
  }
  SECTION("the only file, of Mistral's names") {
    folder.write_tensor("consolidated.safetensors", "a");
    CHECK(SafetensorsFolder::open(folder.path)->find("a") != nullptr);
  }
  SECTION("all parts by their numbers") {
    folder.write_tensor(kOne, "a");
    folder.write_tensor(kTwo, "b");
    CHECK(SafetensorsFolder::open(folder.path)->tensors().size() == 2);
    fs::remove(folder.path / kOne);
    CHECK_THAT(folder.error(), Catch::Contains(kOne + " is missing (1 of the model's 2 files are there): download it"));
  }
  SECTION("a part that a download has not finished") {
    folder.write_tensor(kOne, "a");
    folder.write(kTwo + ".part", "");
    CHECK_THAT(folder.error(), Catch::Contains(kTwo + " is missing (1 of the model's 2 files are there): download it. Perhaps the download is unfinished ('") &&
                                   Catch::Contains(kTwo + ".part' is left of one): run it again"));
    folder.write_index(kMap);
    CHECK_THAT(folder.error(), Catch::Contains(kTwo + " is missing: 1 of the model's 2 files are not there") && Catch::Contains(kTwo + ".part' is left of one"));
  }
  SECTION("files that do not belong together") {
    folder.write_tensor("a.safetensors", "a");
    folder.write_tensor("b.safetensors", "b");
    CHECK_THAT(folder.error(), Catch::Contains("2 .safetensors files ('a.safetensors', 'b.safetensors' ...), and no "
                                               "model.safetensors.index.json says how they belong together"));
  }
  SECTION("an index of another name") {
    folder.write_tensor("x-1.safetensors", "a");
    folder.write("diffusion.safetensors.index.json", R"({"weight_map":{"a":"x-1.safetensors"}})");
    CHECK(SafetensorsFolder::open(folder.path)->find("a") != nullptr);
  }
}

TEST_CASE("folders without safetensors files say what they have") {
  const Folder folder;
  CHECK_THAT(folder.error(), Catch::Contains("the folder has no model: no *.safetensors file is there"));
  folder.write("training_args.bin", "x");
  CHECK_THAT(folder.error(), Catch::Contains("no *.safetensors file is there"));
  folder.write("pytorch_model-00001-of-00002.bin", "x");
  CHECK_THAT(folder.error(), Catch::Contains("the folder has PyTorch files ('pytorch_model-00001-of-00002.bin')"));
  folder.write("model-q4.gguf", "GGUF");
  CHECK_THAT(folder.error(), Catch::Contains("open 'model-q4.gguf' by its own path"));
  CHECK(SafetensorsFolder::open(folder.path / "nothing").error().code() == ErrorCode::not_found);
  CHECK(SafetensorsFolder::open("").error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("an index and files that contradict each other") {
  const Folder folder;
  folder.write_tensor(kOne, "a");
  folder.write_index(kMap);
  SECTION("a missing file") {
    CHECK_THAT(folder.error(), Catch::Contains(kTwo + " is missing: 1 of the model's 2 files are not there; download them"));
    CHECK(SafetensorsFolder::open(folder.path).error().code() == ErrorCode::not_found);
  }
  SECTION("a tensor in another file") {
    folder.write_tensor(kTwo, "b");
    folder.write_index("\"a\": \"" + kTwo + "\", \"b\": \"" + kTwo + "\", \"a\":\"" + kOne + "\"");
    CHECK_THAT(folder.error(), Catch::Contains("tensor 'a' should be in " + kTwo + ", and is in " + kOne));
  }
  SECTION("a tensor in no file") {
    folder.write_tensor(kTwo, "c");
    CHECK_THAT(folder.error(), Catch::Contains("tensor 'b' should be in " + kTwo + ", and is not"));
  }
  SECTION("a tensor in two files") {
    folder.write(kTwo, file("{" + tensor("a", "U8", "4", 0, 4) + "," + tensor("b", "U8", "1", 4, 5) + "}", 5));
    CHECK_THAT(folder.error(), Catch::Contains("the tensor 'a' is also in " + kOne));
  }
  SECTION("a file that is a Git LFS pointer") {
    folder.write(kTwo, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n");
    CHECK_THAT(folder.error(), Catch::Contains(kTwo + ": this is a Git LFS pointer"));
  }
  SECTION("a half-finished file") {
    folder.write_tensor(kTwo, "b");
    fs::resize_file(folder.path / kTwo, fs::file_size(folder.path / kTwo) - 3);
    CHECK_THAT(folder.error(), Catch::Contains(kTwo + ": the last 3 of "));
  }
  SECTION("names that lead elsewhere") {
    for (const char* name : {"../a.safetensors", "/etc/a.safetensors", "a/b.safetensors", "a\\\\b.safetensors", "", "c:a.safetensors",
                             "a\\u0000.safetensors", "pytorch_model.bin", ".a.safetensors"}) {
      folder.write_index("\"a\": \"" + std::string(name) + "\"");
      INFO(name);
      CHECK_THAT(folder.error(), Catch::Contains("is no name of a .safetensors file in this folder"));
    }
  }
  SECTION("an index that is none") {
    const std::pair<std::string, std::string> kCases[] = {
        {"", "the file is empty"},
        {"{}", "weight_map is missing"},
        {"[]", "has '[' where '{' is expected"},
        {R"({"weight_map":{}})", "names no tensors"},
        {R"({"weight_map":[]})", "has '[' where '{' is expected"},
        {R"({"weight_map":{"a":1}})", "has '1' where"},
        {R"({"weight_map":{},"weight_map":{}})", "weight_map stands twice"},
        {R"({"weight_map":{"a":"x)", "the JSON text ends too early"},
        {R"({"weight_map":{"a":")" + std::string(300, 'x') + "\"}}", "more than 255 bytes"},
        {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
        {"<html>", "this is a web page"},
    };
    for (const auto& [text, words] : kCases) {
      folder.write("model.safetensors.index.json", text);
      INFO(text.substr(0, 100));
      CHECK_THAT(folder.error(), Catch::Contains(words));
    }
  }
}

TEST_CASE("the symbolic links of a hub's cache are followed, and one that leads nowhere is told") {
  const Folder folder;
  folder.write_tensor("blobs/0a1b", "a");
  folder.write_tensor("blobs/2c3d", "b");
  folder.write("blobs/4e5f", R"({"weight_map":{)" + kMap + "}}");
  const fs::path snapshot = folder.path / "snapshots" / "main";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/0a1b", snapshot / kOne);
  fs::create_symlink("../../blobs/2c3d", snapshot / kTwo);
  fs::create_symlink("../../blobs/4e5f", snapshot / "model.safetensors.index.json");
  CHECK(SafetensorsFolder::open(snapshot)->tensors().size() == 2);
  fs::remove(folder.path / "blobs" / "2c3d");
  const auto broken = SafetensorsFolder::open(snapshot);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code() == ErrorCode::not_found);
  CHECK_THAT(broken.error().text(),
             Catch::Contains(kTwo + ": is a symbolic link to '../../blobs/2c3d', and nothing is there: the download was not finished"));
}

}  // namespace test_safetensors_folder
