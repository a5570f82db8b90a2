// What the writer writes, the reader reads, and copying a file key by key gives the same bytes.
#include "catch.hpp"
#include "files/gguf_bytes.hpp"

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace test_gguf_round_trip {

using namespace tessera;

namespace {

std::vector<std::byte> written(const GgufWriter& writer, const GgufWriter::TensorData& data) {
  std::vector<std::byte> out;
  const auto done = writer.write(
      [&](std::span<const std::byte> bytes) -> Status {
        out.insert(out.end(), bytes.begin(), bytes.end());
        return {};
      },
      data);
  INFO((done ? std::string() : done.error().text()));
  REQUIRE(done);
  return out;
}

// In pieces of odd sizes, as a quantiser would.
GgufWriter::TensorData data_of(const ModelFile& file) {
  return [&file](std::string_view name, const ByteSink& write) -> Status {
    const auto* tensor = file.find_tensor(name);
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < tensor->bytes; at += piece.size()) {
      piece.resize(std::min<std::uint64_t>(37, tensor->bytes - at));
      if (auto done = file.read(*tensor, at, piece); !done) return done;
      if (auto done = write(piece); !done) return done;
    }
    return {};
  };
}

GgufWriter copy_of(const ModelFile& file) {
  GgufWriter writer;
  for (const auto& entry : file.metadata().entries()) REQUIRE(writer.copy(entry));
  for (const auto& tensor : file.tensors()) {
    REQUIRE(writer.add_tensor(tensor.name, tensor.dtype, {tensor.dims.data(), tensor.n_dims}));
  }
  return writer;
}

}  // namespace

TEST_CASE("an empty file is a file") {
  const auto bytes = written(GgufWriter{}, {});
  CHECK(bytes.size() == 24);
  const auto file = ModelFile::from_memory(bytes);
  REQUIRE(file);
  CHECK(file->metadata().entries().empty());
  CHECK(file->tensors().empty());
}

TEST_CASE("every setter reads back, and a second set replaces") {
  GgufWriter writer;
  REQUIRE(writer.set("u32", std::uint32_t{1}));
  REQUIRE(writer.set("u32", std::uint32_t{4000000000u}));
  REQUIRE(writer.set("u64", std::uint64_t{1} << 50));
  REQUIRE(writer.set("i32", std::int32_t{-3}));
  REQUIRE(writer.set("f32", 0.25f));
  REQUIRE(writer.set_boolean("b", true));
  REQUIRE(writer.set_string("s", "text\n"));
  const std::vector<std::string> strings{"a", "", "ccc"};
  const std::vector<float> floats{1.5f, -2};
  const std::vector<std::int32_t> integers{-1, 2, 3};
  REQUIRE(writer.set_array("as", std::span(strings)));
  REQUIRE(writer.set_array("af", std::span(floats)));
  REQUIRE(writer.set_array("ai", std::span(integers)));
  const auto bytes = written(writer, {});
  const auto model = ModelFile::from_memory(bytes);
  REQUIRE(model);
  const GgufFile& file = model->metadata();
  CHECK(file.version() == 3);
  CHECK(file.entries().size() == 9);
  CHECK(*file.unsigned_integer("u32") == 4000000000u);
  CHECK(*file.unsigned_integer("u64") == std::uint64_t{1} << 50);
  CHECK(*file.number("i32") == -3);
  CHECK(*file.number("f32") == 0.25);
  CHECK(*file.boolean("b"));
  CHECK(*file.string("s") == "text\n");
  const auto array = file.array("as");
  const auto list = array->strings();
  CHECK(std::vector<std::string>(list.begin(), list.end()) == strings);
  CHECK(file.array("af")->number(1) == -2);
  CHECK(file.array("ai")->integer(0) == -1);
}

TEST_CASE("a copy of a file equals it byte for byte") {
  const auto bytes = gguf_bytes::every_type().finish();
  const auto file = ModelFile::from_memory(bytes);
  REQUIRE(file);
  CHECK(written(copy_of(*file), data_of(*file)) == bytes);
}

TEST_CASE("copies of random files equal them, but for the version") {
  std::mt19937_64 random(20240601);
  for (int i = 0; i < 2000; ++i) {
    auto bytes = gguf_bytes::random_file(random).finish();
    const auto file = ModelFile::from_memory(bytes);
    INFO("file " << i << (file ? std::string() : file.error().text()));
    REQUIRE(file);
    REQUIRE(gguf_bytes::is_sound(file->metadata()));
    const auto copy = written(copy_of(*file), data_of(*file));
    bytes[4] = std::byte{3};
    REQUIRE(copy == bytes);
  }
}

TEST_CASE("the writer refuses what could not be read") {
  GgufWriter writer;
  const std::uint64_t dims[] = {32, 2};
  REQUIRE(writer.add_tensor("t", DType::q8_0, dims));
  const auto refused = [&](Status status, std::string_view words) {
    REQUIRE_FALSE(status);
    INFO(status.error().text());
    CHECK(status.error().code() == ErrorCode::invalid_argument);
    CHECK(status.error().text().find(words) != std::string::npos);
  };
  const std::uint64_t odd[] = {33}, zero[] = {0}, huge[] = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  refused(writer.add_tensor("t", DType::f32, dims), "before");
  refused(writer.add_tensor("", DType::f32, dims), "name");
  refused(writer.add_tensor(std::string(300, 'x'), DType::f32, dims), "name");
  refused(writer.add_tensor("u", DType::q8_0, odd), "whole blocks");
  refused(writer.add_tensor("u", DType::f32, zero), "dimension of 0");
  refused(writer.add_tensor("u", DType::f32, huge), "dimension");
  refused(writer.add_tensor("u", DType::f32, {}), "0 dimensions");
  refused(writer.add_tensor("u", DType::int8, dims), "weight format");
  refused(writer.add_tensor("u", DType::automatic, dims), "weight format");
  refused(writer.set("", std::uint32_t{1}), "1 to");
  refused(writer.set(std::string(70000, 'k'), std::uint32_t{1}), "1 to");
  const std::byte five[5] = {};
  GgufEntry entry{"k", GgufType::u32, GgufType::u32, 1, 0, five};
  refused(writer.copy(entry), "do not fit");
  entry.type = GgufType::array;
  refused(writer.copy(entry), "do not fit");
  entry.element_type = GgufType::string;
  refused(writer.copy(entry), "do not fit");
  REQUIRE(writer.set("general.alignment", std::uint32_t{12}));
  const ByteSink sink = [](std::span<const std::byte>) { return Status(); };
  refused(writer.write(sink, [](std::string_view, const ByteSink&) { return Status(); }), "general.alignment");
  REQUIRE(writer.set("general.alignment", std::uint32_t{64}));
  refused(writer.write({}, {}), "callback");
  refused(writer.write(sink, {}), "callback");
  refused(writer.write(sink, [](std::string_view, const ByteSink&) { return Status(); }), "0 bytes");
  const std::vector<std::byte> more(69);
  refused(writer.write(sink, [&](std::string_view, const ByteSink& write) { return static_cast<void>(write(more)), Status(); }),
          "more than its 68");
}

TEST_CASE("a callback's errors and exceptions come back as they should") {
  GgufWriter writer;
  const std::uint64_t dims[] = {4};
  REQUIRE(writer.add_tensor("t", DType::f32, dims));
  const std::vector<std::byte> zeros(16);
  const auto good_data = [&](std::string_view, const ByteSink& write) { return write(zeros); };
  const auto good_sink = [](std::span<const std::byte>) { return Status(); };
  auto done = writer.write(good_sink, [](std::string_view, const ByteSink&) -> Status { throw std::runtime_error("oh"); });
  REQUIRE_FALSE(done);
  CHECK(done.error().code() == ErrorCode::callback_failed);
  CHECK(done.error().message().find("oh") != std::string::npos);
  done = writer.write([](std::span<const std::byte>) -> Status { throw 5; }, good_data);
  CHECK(done.error().code() == ErrorCode::callback_failed);
  done = writer.write(good_sink, [](std::string_view, const ByteSink&) -> Status { return Error(ErrorCode::cancelled, "stop"); });
  CHECK(done.error().code() == ErrorCode::cancelled);
  // An error of the sink counts even if the tensor's callback drops it.
  int calls = 0;
  done = writer.write([&](std::span<const std::byte>) -> Status { return ++calls < 3 ? Status() : Error(ErrorCode::io, "full"); },
                      [&](std::string_view, const ByteSink& write) { return static_cast<void>(write(zeros)), Status(); });
  REQUIRE_FALSE(done);
  CHECK(done.error().code() == ErrorCode::io);
  CHECK(writer.write(good_sink, good_data));
}

}  // namespace test_gguf_round_trip
