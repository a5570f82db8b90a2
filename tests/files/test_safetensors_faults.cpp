// Memory of the safetensors reader: it is bounded and counted exactly, and an allocation that fails is an error that changes nothing.
#include "catch.hpp"
#include "counted_new.hpp"
#include "files/safetensors/safetensors_file.hpp"
#include "files/safetensors/safetensors_folder.hpp"
#include "files/safetensors_bytes.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace test_safetensors_faults {

using namespace tessera;
using namespace tessera::detail;
using safetensors_bytes::file;
using safetensors_bytes::tensor;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kAllowance = std::size_t{64} << 20;

// Reads the file, checks the bound on memory and memory_bytes(), and returns the error's text.
std::string read_counted(const std::vector<std::byte>& bytes) {
  const auto source = *memory_source(bytes);
  std::string text;
  counted::Scope scope;
  {
    const auto read = SafetensorsFile::read(source);
    const std::size_t held = counted::live, peak = counted::peak;
    scope.stop();
    CHECK(peak < bytes.size() + kAllowance);
    if (read) CHECK(read->memory_bytes() == held);
    else text = read.error().message();
  }
  CHECK(counted::live == 0);
  return text;
}

}  // namespace

TEST_CASE("reading takes no more memory than the file and 64 MB, and memory_bytes() is exact") {
  CHECK(read_counted(file("{}")).empty());
  CHECK(read_counted(file(R"({"__metadata__":{"a":"b"},)" + tensor("a", "F32", "2,2", 0, 16) + "}", 16)).empty());

  // As many of the smallest tensors as are read, of the most dims.
  std::string json = "{";
  for (std::size_t i = 0; i < 262'144; ++i) {
    json += tensor(std::to_string(i), "U8", "0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 0, 0) + ",";
  }
  json.back() = '}';
  CHECK(read_counted(file(json)).empty());
  json.back() = ',';
  CHECK(read_counted(file(json + tensor("more", "U8", "0", 0, 0) + "}")) == "the file has more than 262144 tensors");

  CHECK(read_counted(file(R"({"__metadata__":{"a":")" + std::string(std::size_t{15} << 20, 'x') + "\"}}")).empty());
  CHECK(read_counted(file(R"({"__metadata__":{"a":")" + std::string(std::size_t{17} << 20, 'x') + "\"}}")) ==
        "a string has more than 16777216 bytes");
  json = R"({"__metadata__":{)";
  for (int i = 0; i < 65'537; ++i) json += "\"\":\"\",";
  json.back() = '}';
  CHECK(read_counted(file(json + "}")) == "__metadata__ has more than 65536 entries");
  json = R"({"a":{"x":)" + std::string(std::size_t{8} << 20, '[');
  CHECK(read_counted(file(json)) == "values are nested deeper than 100");
}

TEST_CASE("an allocation that fails at the k-th time while a folder is opened is an error, and nothing leaks") {
  const fs::path folder = fs::temp_directory_path() / ("tessera-safetensors-faults-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto write = [&](const std::string& name, const std::vector<std::byte>& bytes) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  const std::string one = "model-00001-of-00002.safetensors", two = "model-00002-of-00002.safetensors";
  const std::string long_name = "model.layers.0.self_attn.q_proj.weight";
  write(one, file(R"({"__metadata__":{"format":"pt"},)" + tensor(long_name, "U8", "4,1", 0, 4) + "}", 4));
  write(two, file("{" + tensor("b", "F32", "1", 0, 4) + "}", 4));
  const std::string index = R"({"weight_map":{")" + long_name + "\":\"" + one + "\",\"b\":\"" + two + "\"}}";
  const auto index_bytes = std::as_bytes(std::span(index));
  write("model.safetensors.index.json", {index_bytes.begin(), index_bytes.end()});
  std::int64_t k = 0;
  for (;; ++k) {
    counted::Scope scope(k);
    {
      const auto model = SafetensorsFolder::open(folder);
      const bool reached = counted::count > k;
      const std::size_t held = counted::live;
      scope.stop();
      if (!reached) {
        REQUIRE(model);
        CHECK(model->memory_bytes() < held);  // the open files' own bytes are not the headers'
        CHECK(model->memory_bytes() + 1000 > held);
        break;
      }
      REQUIRE_FALSE(model);
      REQUIRE(model.error().code() == ErrorCode::out_of_memory);
    }
    REQUIRE(counted::live == 0);
  }
  CHECK(k > 20);
  CHECK(SafetensorsFolder::open(folder));
  fs::remove_all(folder);
}

}  // namespace test_safetensors_faults
