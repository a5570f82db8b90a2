// Reading one safetensors file: what it has, and each way in which it can be wrong.
#include "catch.hpp"
#include "files/safetensors/safetensors_file.hpp"
#include "files/safetensors_bytes.hpp"

#include <filesystem>

namespace test_safetensors_file {

using namespace tessera;
using namespace tessera::detail;
using safetensors_bytes::file;
using safetensors_bytes::tensor;

namespace {

Result<SafetensorsFile> read(const std::vector<std::byte>& bytes) { return SafetensorsFile::read(*memory_source(bytes, "x")); }

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string error_of(const std::vector<std::byte>& bytes) {
  const auto read_file = read(bytes);
  return read_file ? "no error" : read_file.error().text();
}

// The error of a file with this JSON text and so many bytes of data.
std::string error_of(std::string_view json, std::size_t data = 0) { return error_of(file(json, data)); }

std::vector<std::uint64_t> dims_of(const SafetensorsTensor& t) { return {t.dims.begin(), t.dims.end()}; }

}  // namespace

TEST_CASE("a safetensors file, byte by byte") {
  const auto bytes = bytes_of(std::string_view(
      "\x40\0\0\0\0\0\0\0"
      R"({"a.0":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}      )"
      "\0\0\x80\x3f\0\0\0\x40", 8 + 0x40 + 8));
  const auto source = *memory_source(bytes);
  const auto read_file = SafetensorsFile::read(source);
  REQUIRE(read_file);
  CHECK(read_file->header_bytes() == 8 + 0x40);
  REQUIRE(read_file->tensors().size() == 1);
  const SafetensorsTensor* a = read_file->find("a.0");
  REQUIRE(a != nullptr);
  CHECK(a->name == "a.0");
  CHECK(a->type == SafetensorsType::f32);
  CHECK(dims_of(*a) == std::vector<std::uint64_t>{1, 2});
  CHECK(a->offset == 8 + 0x40);
  CHECK(a->bytes == 8);
  float values[2];
  REQUIRE(source->read(a->offset, std::as_writable_bytes(std::span(values))));
  CHECK(values[0] == 1.0f);
  CHECK(values[1] == 2.0f);
  CHECK(read_file->find("a.1") == nullptr);
}

TEST_CASE("a file of every type, written by the safetensors package") {
  const auto source = open_file(TESSERA_SOURCE_DIR "/tests/files/data/every_type.safetensors");
  REQUIRE(source);
  const auto golden = SafetensorsFile::read(*source);
  REQUIRE(golden);
  CHECK(golden->tensors().size() == 22);
  CHECK(safetensors_bytes::is_sound(golden->tensors(), golden->header_bytes(), (*source)->size()));
  constexpr std::string_view kTypes[] = {"BOOL", "F4", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E5M2FNUZ",
                                         "F8_E4M3FNUZ", "F8_E8M0", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "C64", "F64", "I64",
                                         "U64"};
  std::uint8_t value = 0;
  for (const std::string_view type : kTypes) {
    INFO(type);
    ++value;
    const SafetensorsTensor* t = golden->find("a." + std::string(type));
    REQUIRE(t != nullptr);
    CHECK(to_string(t->type) == type);
    CHECK(dims_of(*t) == std::vector<std::uint64_t>{2, 4});
    REQUIRE(t->bytes == bits_of(t->type));  // 8 values
    std::vector<std::byte> data(t->bytes);
    REQUIRE((*source)->read(t->offset, data));
    CHECK(data == std::vector<std::byte>(t->bytes, std::byte{value}));
  }
  const SafetensorsTensor* scalar = golden->find("zażółć \"gęślą\" \\ 🙂");
  REQUIRE(scalar != nullptr);
  CHECK(scalar->dims.empty());
  CHECK(scalar->bytes == 4);
  const SafetensorsTensor* empty = golden->find("empty");
  REQUIRE(empty != nullptr);
  CHECK(dims_of(*empty) == std::vector<std::uint64_t>{0, 5});
  CHECK(empty->bytes == 0);
  REQUIRE(golden->notes().size() == 2);
  for (const SafetensorsNote& note : golden->notes()) {
    if (note.key == "format") CHECK(note.value == "pt");
    if (note.key == "note") CHECK(note.value == "line\nnext \x01 ü");
  }
}

TEST_CASE("files that the format allows") {
  CHECK(read(file("{}")));
  CHECK(read(file(" {}   \n\t")));
  CHECK(read(file(R"({"__metadata__":null})")));
  CHECK(read(file(R"({"__metadata__":{}})")));
  CHECK(read(file("{" + tensor("b", "U8", "3", 2, 5) + "," + tensor("a", "U8", "2", 0, 2) + "}", 5)));  // in any order
  CHECK(read(file("{" + tensor("a", "U8", "0", 2, 2) + "," + tensor("b", "U8", "2", 0, 2) + "," + tensor("c", "F4", "2,1", 2, 3) + "}", 3)));
  CHECK(read(file("{" + tensor("a", "F6_E2M3", "4", 0, 3) + "," + tensor("b", "F6_E3M2", "2,2", 3, 6) + "}", 6)));
  CHECK(read(file(R"({"a":{"x":[{"y":null},-1.5e+3,"\ud83d\ude42",true,false],"data_offsets":[0,1],"shape":[],"dtype":"I8"}})", 1)));
  const auto escaped = read(file(R"({"\u0061\/\"\\\n\ud83d\ude42\u00fc":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  REQUIRE(escaped);
  CHECK(escaped->tensors()[0].name == "a/\"\\\n🙂ü");
  // A tensor with 0 values beside dims whose product is too large is still one with 0 values: the reference refuses it as we do.
  CHECK_THAT(error_of("{" + tensor("a", "U8", "4294967296,4294967296,0", 0, 0) + "}"), Catch::Contains("more values than can be"));
}

TEST_CASE("each wrong header is refused with words that say what is wrong") {
  const std::string a = tensor("a", "F32", "2", 0, 8);
  const std::pair<std::string, std::string> kCases[] = {
      {"{" + tensor("a", "F32", "2", 0, 9) + "}", "x: offset 61: tensor 'a': 2 values of F32 need 8 bytes, and data_offsets gives 9"},
      {"{" + tensor("a", "Q4", "2", 0, 8) + "}", "tensor 'a': the dtype 'Q4' is not known"},
      {"{" + tensor("a", "F4", "3", 0, 8) + "}", "3 values of 4 bits are not whole bytes"},
      {"{" + tensor("a", "F32", "2", 8, 0) + "}", "data_offsets is [8, 0]: the end is in front of the beginning"},
      {"{" + tensor("a", "F32", "-2", 0, 8) + "}", "an integer from 0 on is expected"},
      {"{" + tensor("a", "F32", "2.0", 0, 8) + "}", "not a fraction"},
      {"{" + tensor("a", "F32", "02", 0, 8) + "}", "a number begins with 0"},
      {"{" + tensor("a", "F32", "2e0", 0, 8) + "}", "not a fraction"},
      {"{" + tensor("a", "F32", "18446744073709551616", 0, 8) + "}", "larger than 64 bits"},
      {"{" + tensor("a", "F32", "18446744073709551615", 0, 8) + "}", "more values than can be"},
      {"{" + tensor("a", "F32", "4294967296,4294967296", 0, 0) + "}", "more values than can be"},
      {"{" + tensor("a", "F32", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2", 0, 8) + "}", "more than 16 dimensions"},
      {"{" + a + "," + a + "}", "overlap"},
      {"{" + tensor("a", "U8", "5", 0, 5) + "," + tensor("b", "U8", "4", 4, 8) + "}", "tensor 'b': its data at 4 begin before 5"},
      {"{" + tensor("a", "U8", "3", 0, 3) + "," + tensor("b", "U8", "4", 4, 8) + "}", "the bytes between belong to no tensor"},
      {"{" + tensor("a", "U8", "7", 1, 8) + "}", "the bytes between belong to no tensor"},
      {"{" + tensor("a", "U8", "7", 0, 7) + "}", "1 bytes follow the data of the last tensor"},
      {"{" + tensor("", "F32", "2", 0, 8) + "}", "a tensor has no name"},
      {"{}", "8 bytes follow the data of the last tensor"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "tensor 'a': dtype is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "shape is missing"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "data_offsets is missing"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "dtype stands twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", "shape stands twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}})", "data_offsets stands twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "fewer than two"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "more than two"},
      {R"({"a":[]})", "has '[' where '{' is expected"},
      {R"({"a":null})", "has 'n' where '{' is expected"},
      {R"([])", "has '[' where '{' is expected"},
      {R"({"__metadata__":{"a":1}})", "has '1' where '\"' is expected"},
      {R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ stands twice"},
      {"{" + a, "the JSON text ends too early"},
      {"{" + a + "}}", "something follows the JSON text"},
      {"{" + a + std::string("}\0", 2), "something follows the JSON text"},
      {"{" + a + ",}", "has '}' where '\"' is expected"},
      {R"({"a":{"x":tru})", "unknown word"},
      {R"({"a":{"x":01}})", "where '}' is expected"},
      {R"({"a":{"x":1.}})", "a digit is expected"},
      {R"({"a":{"x":-}})", "a digit is expected"},
      {R"({"a":{"x":1e}})", "a digit is expected"},
      {R"({"a":{"x":NaN}})", "a JSON value is expected"},
      {"{\"\xff\":{}}", "not UTF-8"},
      {"{\"\xc3\":{}}", "not UTF-8"},
      {"{\"\xed\xa0\x80\":{}}", "not UTF-8"},
      {"{\"a\n\":{}}", "control character"},
      {R"({"\ud83d":{}})", "half a surrogate pair"},
      {R"({"\ud83d\ud83d":{}})", "half a surrogate pair"},
      {R"({"\ude42":{}})", "half a surrogate pair"},
      {R"({"\x":{}})", "unknown escape"},
      {R"({"\u00g0":{}})", "four hexadecimal digits"},
      {"{\"" + std::string(4097, 'n') + "\":{}}", "more than 4096 bytes"},
      {R"({"a":{"x":)" + std::string(200, '[') + std::string(200, ']') + "}}", "nested deeper than 100"},
  };
  CHECK(error_of("{" + tensor("a", "U8", "0", 0, 0) + "," + tensor("a", "U8", "0", 0, 0) + "}") ==
        "x: the tensor 'a' stands twice in the header");
  for (const auto& [json, words] : kCases) {
    INFO(json.substr(0, 200));
    CHECK_THAT(error_of(json, 8), Catch::Contains(words));
  }
}

TEST_CASE("files that downloads leave behind are told by name") {
  const auto error = [](std::string_view text) { return error_of(bytes_of(text)); };
  CHECK(error("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
              "size 4976698672\n") ==
        "x: this is a Git LFS pointer of 135 bytes, not a safetensors file: run \"git lfs pull\" in the folder, or download the file "
        "itself (4976698672 bytes)");
  CHECK_THAT(error("version https://git-lfs.github.com/spec/v1\n"), Catch::Contains("or download the file itself"));
  CHECK_THAT(error("<!DOCTYPE html><html>"), Catch::Contains("this is a web page"));
  CHECK_THAT(error("\n <HTML lang=en>"), Catch::Contains("this is a web page"));
  CHECK_THAT(error("{\"error\":\"Repository not found\"}"), Catch::Contains("error message of the site"));
  CHECK_THAT(error(std::string_view("GGUF\3\0\0\0\0\0\0\0", 12)), Catch::Contains("GGUF file"));
  CHECK_THAT(error("PK\x03\x04 pickled things"), Catch::Contains("PyTorch checkpoint"));
  CHECK_THAT(error("PK\x03\x04"), Catch::Contains("PyTorch checkpoint"));
  CHECK_THAT(error(""), Catch::Contains("the file is empty"));
  CHECK_THAT(error("Entry"), Catch::Contains("5 bytes are no safetensors file"));
  CHECK_THAT(error("Entry not found"), Catch::Contains("this is no safetensors file: its first 8 bytes state"));
  CHECK_THAT(error_of(std::vector<std::byte>(4096)), Catch::Contains("its download was only begun"));

  // Half-finished downloads.
  auto whole = file("{" + tensor("a", "F32", "1000", 0, 4000) + "}", 4000);
  REQUIRE(read(whole));
  const std::size_t header = whole.size() - 4000;
  whole.resize(header + 1500);
  CHECK_THAT(error_of(whole), Catch::Contains("the last 2500 of " + std::to_string(header + 4000) + " bytes are missing"));
  whole.resize(header - 1);
  CHECK_THAT(error_of(whole), Catch::Contains("its header alone has " + std::to_string(header) + " bytes, and the file has " +
                                              std::to_string(header - 1)));
}

TEST_CASE("the length in front of the header is bounded before anything is read") {
  for (const std::uint64_t length : {std::uint64_t{100'000'001}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    auto bytes = file("{}");
    std::memcpy(bytes.data(), &length, sizeof length);
    CHECK_THAT(error_of(bytes), Catch::Contains("at most 100000000 are allowed"));
  }
}

TEST_CASE("reading a safetensors file can be cancelled, and an empty handle is harmless") {
  std::stop_source stop;
  stop.request_stop();
  const auto bytes = file("{}");
  CHECK(SafetensorsFile::read(*memory_source(bytes), stop.get_token()).error().code() == ErrorCode::cancelled);
  CHECK(SafetensorsFile::read(nullptr).error().code() == ErrorCode::invalid_argument);
  const SafetensorsFile none;
  CHECK(none.tensors().empty());
  CHECK(none.notes().empty());
  CHECK(none.find("a") == nullptr);
  CHECK(none.header_bytes() == 0);
  CHECK(none.memory_bytes() == 0);
}

}  // namespace test_safetensors_file
