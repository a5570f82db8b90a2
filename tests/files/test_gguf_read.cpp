// The reader on files made by hand: what each value becomes, and what each defect is called.
#include "catch.hpp"
#include "files/gguf_bytes.hpp"

namespace test_gguf_read {

using namespace tessera;
using gguf_bytes::Builder;

namespace {

Result<GgufFile> parse(const std::vector<std::byte>& bytes) {
  auto source = memory_source(bytes, "test.gguf");
  REQUIRE(source);
  return GgufFile::read(*source);
}

void check_error(const std::vector<std::byte>& bytes, ErrorCode code, std::string_view words) {
  const auto file = parse(bytes);
  REQUIRE_FALSE(file);
  INFO(file.error().text());
  CHECK(file.error().code() == code);
  CHECK(file.error().text().find(words) != std::string::npos);
  CHECK(file.error().place().find("test.gguf") != std::string::npos);
  CHECK(file.error().text().find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("every value type reads back, in versions 2 and 3") {
  const std::uint32_t version = GENERATE(2u, 3u);
  const auto bytes = gguf_bytes::every_type(version).finish();
  const auto file = parse(bytes);
  REQUIRE(file);
  CHECK(file->version() == version);
  CHECK(file->alignment() == 32);
  CHECK(*file->unsigned_integer("u8") == 200);
  CHECK(*file->unsigned_integer("u16") == 60000);
  CHECK(*file->unsigned_integer("u32") == 4000000000u);
  CHECK(*file->unsigned_integer("u64") == 0xfedcba9876543210u);
  for (const auto* key : {"i8", "i16", "i32", "i64"}) CHECK(file->unsigned_integer(key).error().code() == ErrorCode::corrupt_file);
  CHECK(*file->number("i8") == -100);
  CHECK(*file->number("i16") == -30000);
  CHECK(*file->number("i32") == -2000000000);
  CHECK(*file->number("i64") == -5000000000.0);
  CHECK(*file->number("f32") == 1.5);
  CHECK(*file->number("f64") == -2.25);
  CHECK(*file->boolean("boolean"));
  CHECK(*file->string("general.name") == "a name");
  CHECK(file->string("empty")->empty());
  const auto strings = file->array("a.string");
  REQUIRE(strings);
  std::vector<std::string> seen;
  for (const auto text : strings->strings()) seen.emplace_back(text);
  CHECK(seen == std::vector<std::string>{"one", "", "three"});
  CHECK(file->array("a.empty")->size() == 0);
  CHECK(file->array("a.u8")->integer(2) == 255);
  CHECK(file->array("a.i16")->integer(0) == -1);
  CHECK(file->array("a.i32")->integer(1) == 70000);
  CHECK(file->array("a.u64")->integer(0) == std::int64_t{1} << 40);
  CHECK(file->array("a.f32")->number(1) == -8.0);
  CHECK(file->array("a.f64")->number(0) == 1e100);
  CHECK(file->array("a.boolean")->integer(1) == 1);
  CHECK(gguf_bytes::is_sound(*file));
}

TEST_CASE("absent keys and wrong types are told apart") {
  const auto file = parse(gguf_bytes::every_type().finish());
  REQUIRE(file);
  CHECK(file->unsigned_integer("no.such").error().code() == ErrorCode::not_found);
  CHECK(file->unsigned_integer("no.such").error().place().find("no.such") != std::string::npos);
  CHECK(*file->unsigned_integer_or("no.such", 7) == 7);
  CHECK(*file->number_or("no.such", 0.5) == 0.5);
  CHECK(*file->boolean_or("no.such", true));
  CHECK(*file->string_or("no.such", "other") == "other");
  CHECK(file->unsigned_integer_or("general.name", 7).error().code() == ErrorCode::corrupt_file);
  CHECK(file->number_or("general.name", 7).error().code() == ErrorCode::corrupt_file);
  CHECK(file->boolean_or("u8", true).error().code() == ErrorCode::corrupt_file);
  CHECK(file->string_or("u8", "x").error().code() == ErrorCode::corrupt_file);
  CHECK(file->array("u8").error().code() == ErrorCode::corrupt_file);
  CHECK(file->unsigned_integer("a.u8").error().code() == ErrorCode::corrupt_file);
  CHECK(file->unsigned_integer("boolean").error().code() == ErrorCode::corrupt_file);
}

TEST_CASE("tensors are where the file says") {
  auto builder = gguf_bytes::every_type();
  const auto bytes = builder.finish();
  const auto file = parse(bytes);
  REQUIRE(file);
  const auto* tensor = file->find_tensor("w3");
  REQUIRE(tensor != nullptr);
  CHECK(tensor->dtype == DType::q4_0);
  CHECK(tensor->n_dims == 3);
  CHECK(tensor->dims == std::array<std::uint64_t, 4>{64, 2, 3, 1});
  CHECK(tensor->bytes == 64 / 32 * 18 * 2 * 3);
  CHECK(tensor->offset == file->header_bytes() + 32 + 32);
  CHECK(file->find_tensor("w5") == nullptr);
}

TEST_CASE("an alignment of its own is obeyed, a bad one refused") {
  for (const std::uint32_t alignment : {8u, 24u, 4096u}) {
    Builder b;
    b.alignment = alignment;
    b.key("general.alignment", GgufType::u32).put(alignment);
    b.tensor("a", DType::f32, {3}).tensor("b", DType::f32, {3});
    const auto bytes = b.finish();
    const auto file = parse(bytes);
    REQUIRE(file);
    CHECK(file->alignment() == alignment);
    CHECK(file->find_tensor("b")->offset % alignment == 0);
  }
  for (const std::uint32_t alignment : {0u, 1u, 12u, 1u << 21, 0xffffffffu}) {
    Builder b;
    b.key("general.alignment", GgufType::u32).put(alignment);
    check_error(b.finish(), ErrorCode::corrupt_file, "multiple of 8");
  }
  Builder b;
  b.key("general.alignment", GgufType::string).string("32");
  check_error(b.finish(), ErrorCode::corrupt_file, "general.alignment");
}

TEST_CASE("what is not a GGUF of ours is refused by name") {
  const auto with = [](std::uint32_t magic, std::uint32_t version) {
    Builder b(version);
    b.overwrite(0, magic);
    return b.finish();
  };
  check_error(with(0x46554747, 1), ErrorCode::unsupported, "version 1");
  check_error(with(0x46554747, 4), ErrorCode::unsupported, "version 4");
  check_error(with(0x46554747, 0x03000000), ErrorCode::unsupported, "big-endian");
  check_error(with(0x67676a74, 3), ErrorCode::unsupported, "before GGUF");
  check_error(with(0x04034b50, 3), ErrorCode::unsupported, "zip");
  check_error(with(0, 0), ErrorCode::corrupt_file, "not a GGUF file");
  std::vector<std::byte> safetensors = with(40, 0);
  std::memcpy(safetensors.data() + 8, "{\"a\":", 5);
  check_error(safetensors, ErrorCode::unsupported, "safetensors");
  check_error({}, ErrorCode::corrupt_file, "the file ends");
}

TEST_CASE("counts and lengths that lie are refused before anything is allocated") {
  for (const std::uint64_t lie : {std::uint64_t{1} << 20, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    auto b = gguf_bytes::every_type();
    const auto bytes = b.finish();
    auto wrong = bytes;
    std::memcpy(wrong.data() + 8, &lie, 8);
    check_error(wrong, ErrorCode::corrupt_file, "tensors");
    wrong = bytes;
    std::memcpy(wrong.data() + 16, &lie, 8);
    check_error(wrong, ErrorCode::corrupt_file, "keys");
    Builder string;
    string.key("s", GgufType::string).field(lie);
    check_error(string.finish(), ErrorCode::corrupt_file, "key 's'");
    for (const auto type : {GgufType::u8, GgufType::f64, GgufType::string}) {
      Builder array;
      array.array("a", type, lie).text("some text that is not so long");
      check_error(array.finish(), ErrorCode::corrupt_file, "key 'a'");
    }
    Builder key;
    key.keys = 1;
    key.field(lie).text("some text that is not so long");
    check_error(key.finish(), ErrorCode::corrupt_file, "the name of a key has");
  }
}

TEST_CASE("defects of keys are named") {
  Builder twice;
  twice.key("k", GgufType::u8).put<std::uint8_t>(1).key("k", GgufType::u8).put<std::uint8_t>(1);
  check_error(twice.finish(), ErrorCode::corrupt_file, "key 'k': stands twice");
  Builder nested;
  nested.array("n", GgufType::array, 1).type(GgufType::u8).field<std::uint64_t>(0);
  check_error(nested.finish(), ErrorCode::unsupported, "arrays of arrays");
  Builder unknown;
  unknown.key("k", static_cast<GgufType>(13)).put<std::uint64_t>(1);
  check_error(unknown.finish(), ErrorCode::corrupt_file, "type 13");
  Builder boolean;
  boolean.key("k", GgufType::boolean).put<std::uint8_t>(2);
  check_error(boolean.finish(), ErrorCode::corrupt_file, "boolean of value 2");
  Builder unnamed;
  unnamed.key("", GgufType::u32).put<std::uint32_t>(2);
  check_error(unnamed.finish(), ErrorCode::corrupt_file, "0 bytes");
  Builder control;
  control.key("a\nb\x1b[2J", GgufType::boolean).put<std::uint8_t>(2);
  check_error(control.finish(), ErrorCode::corrupt_file, "a?b?[2J");
}

TEST_CASE("tensors of types that are not known can be looked at, and reach to the next") {
  Builder b;
  b.tensor("a", DType::f32, {8}).tensor("t", static_cast<DType>(41), {128}).tensor("u", static_cast<DType>(9999), {7, 3});
  const auto bytes = b.finish();
  const GgufFile file = *parse(bytes);
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[1].dtype == static_cast<DType>(41));
  CHECK(file.tensors()[1].offset + file.tensors()[1].bytes == file.tensors()[2].offset);
  CHECK(file.tensors()[2].offset + file.tensors()[2].bytes == bytes.size());
  CHECK(gguf_bytes::is_sound(file));

  Builder none;  // nothing is there
  none.tensor("t", static_cast<DType>(41), {128}).tensor("u", static_cast<DType>(42), {64});
  none.overwrite(none.bytes.size() - 8, std::uint64_t{0});
  check_error(none.finish(), ErrorCode::corrupt_file, "no data are there");
}

TEST_CASE("defects of tensors are named") {
  const auto refuse = [](ErrorCode code, std::string_view words, auto&& fill) {
    Builder b;
    fill(b);
    check_error(b.finish(), code, words);
  };
  using D = DType;
  constexpr auto corrupt = ErrorCode::corrupt_file;
  refuse(corrupt, "tensor 't': stands twice", [](Builder& b) { b.tensor("t", D::f32, {4}).tensor("t", D::f32, {4}); });
  refuse(corrupt, "0 dimensions", [](Builder& b) { b.tensor("t", D::f32, {}); });
  refuse(corrupt, "5 dimensions", [](Builder& b) { b.tensor("t", D::f32, {1, 1, 1, 1, 1}); });
  refuse(corrupt, "dimension 1 is 0", [](Builder& b) { b.tensor("t", D::f32, {4, 0}); });
  refuse(corrupt, "whole blocks", [](Builder& b) { b.tensor("t", D::q8_0, {33}); });
  refuse(corrupt, "1 to 256", [](Builder& b) { b.tensor(std::string(257, 'x'), D::f32, {1}); });
  const auto patched = [](std::size_t from_end, std::uint64_t value) {
    return [=](Builder& b) {
      b.tensor("t", D::f32, {4}).tensor("u", D::f32, {4, 4});
      b.overwrite(b.bytes.size() - from_end, value);
    };
  };
  refuse(corrupt, "alignment 32", patched(8, 33));
  refuse(corrupt, "overlap", patched(8, 0));
  refuse(corrupt, "beyond the end", patched(8, 1 << 20));
  refuse(corrupt, "beyond the end", patched(8, ~std::uint64_t{31}));
  refuse(corrupt, "dimension", patched(20, std::uint64_t{1} << 62));
  refuse(corrupt, "beyond the end", patched(20, std::uint64_t{1} << 57));
}

}  // namespace test_gguf_read
