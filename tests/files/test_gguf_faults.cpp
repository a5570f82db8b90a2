// Every read that fails and every allocation that fails is an error, nothing leaks, and the next attempt works.
#include "catch.hpp"
#include "counted_new.hpp"
#include "files/gguf_bytes.hpp"

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace test_gguf_faults {

using namespace tessera;

namespace {

// Fails at its k-th read, or gives other bytes from its k-th read on.
class FlakySource final : public ByteSource {
 public:
  FlakySource(std::vector<std::byte> bytes, std::vector<std::byte> later, int k, bool fails)
      : bytes_(std::move(bytes)), later_(std::move(later)), k_(k), fails_(fails) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "flaky"; }
  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    const bool reached = reads++ >= k_;
    if (reached && fails_) return Error(ErrorCode::io, "flaky");
    const auto& from = reached ? later_ : bytes_;
    if (offset > from.size() || out.size() > from.size() - offset) return Error(ErrorCode::io, "short");
    std::memcpy(out.data(), from.data() + offset, out.size());
    return {};
  }
  int reads = 0;

 private:
  std::vector<std::byte> bytes_, later_;
  int k_;
  bool fails_;
};

// Longer than the parser's window, so that it reads several times.
std::vector<std::byte> long_file(std::uint32_t salt = 0) {
  gguf_bytes::Builder b;
  b.array("tokens", GgufType::string, 30'000);
  for (int i = 0; i < 30'000; ++i) b.string("token " + std::to_string(i + static_cast<int>(salt)));
  b.key("name", GgufType::string).string(std::string(300'000, 'x'));
  b.key("salt", GgufType::u32).put(salt);
  b.tensor("t", DType::f32, {8, 8}).tensor("u", DType::q4_k, {256});
  return b.finish();
}

std::filesystem::path temporary(const char* name) {
  const auto folder = std::filesystem::temp_directory_path() / ("tessera-faults-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return folder / name;
}

}  // namespace

TEST_CASE("a source that fails at its k-th read gives its own error") {
  const auto bytes = long_file();
  auto probe = std::make_shared<FlakySource>(bytes, bytes, 1 << 30, true);
  REQUIRE(GgufFile::read(probe));
  REQUIRE(probe->reads > 5);
  for (int k = 0; k < probe->reads; ++k) {
    const auto file = GgufFile::read(std::make_shared<FlakySource>(bytes, bytes, k, true));
    REQUIRE_FALSE(file);
    CHECK(file.error().code() == ErrorCode::io);
    CHECK(file.error().message() == "flaky");
  }
}

TEST_CASE("a file that changes while it is read is refused or sound") {
  const auto bytes = long_file();
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    auto later = i % 3 == 0 ? long_file(1 + static_cast<std::uint32_t>(random() % 100'000)) : bytes;
    for (int n = i % 3 == 0 ? 0 : 3; n > 0; --n) {
      const auto at = random() % 2 == 0 ? random() % 100 : random() % (later.size() - 8);
      later[at] ^= static_cast<std::byte>(random());
    }
    const auto file = GgufFile::read(std::make_shared<FlakySource>(bytes, later, 1 + i % 6, false));
    if (file) CHECK(gguf_bytes::is_sound(*file));
  }
  const auto other = long_file(123'456'789);
  const auto file = GgufFile::read(std::make_shared<FlakySource>(bytes, other, 1, false));
  CHECK_FALSE(file);
}

TEST_CASE("a source whose name() throws is not called a defect of the library") {
  class Nameless final : public ByteSource {
   public:
    std::uint64_t size() const noexcept override { return 64; }
    std::string name() const override { throw std::runtime_error("no name"); }
    Status read(std::uint64_t, std::span<std::byte> out) noexcept override {
      std::memset(out.data(), 'x', out.size());
      return {};
    }
  };
  const auto file = GgufFile::read(std::make_shared<Nameless>());
  REQUIRE_FALSE(file);
  CHECK(file.error().code() == ErrorCode::callback_failed);
  CHECK(file.error().message() == "ByteSource::name() threw: no name");
}

TEST_CASE("a source that lies about its size is refused") {
  class Liar final : public ByteSource {
   public:
    explicit Liar(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
    std::uint64_t size() const noexcept override { return ~std::uint64_t{0}; }
    std::string name() const override { return "liar"; }
    Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes_[(offset + i) % bytes_.size()];
      return {};
    }

   private:
    std::vector<std::byte> bytes_;
  };
  auto builder = gguf_bytes::every_type();
  auto bytes = builder.finish();
  const std::uint64_t huge = ~std::uint64_t{0} / 64;
  for (const std::size_t at : builder.fields) {
    auto wrong = bytes;
    std::memcpy(wrong.data() + at, &huge, std::min<std::size_t>(8, wrong.size() - at));
    counted::Scope scope;
    const auto file = GgufFile::read(std::make_shared<Liar>(wrong));
    CHECK(counted::peak < (std::size_t{64} << 20));
    scope.stop();
    if (file) CHECK(file->tensors().size() == 4);
  }
}

TEST_CASE("an allocation that fails at the k-th time while a model is opened is an error, and nothing leaks") {
  const auto path = temporary("model.gguf");
  const auto bytes = gguf_bytes::every_type().finish();
  GgufWriter writer;
  const std::vector<std::string> words{"a string longer than any inline buffer of a std::string", "b"};
  REQUIRE(writer.set_array("words", std::span(words)));
  const std::uint64_t dims[] = {64, 2};
  REQUIRE(writer.add_tensor("t", DType::q8_0, dims));
  REQUIRE(writer.write_file(path, [](std::string_view, const ByteSink& write) { return write(std::vector<std::byte>(136)); }));
  std::int64_t k = 0;
  for (;; ++k) {
    counted::Scope scope(k);
    {
      const auto file = ModelFile::open(path);
      const bool reached = counted::count > k;
      const std::size_t held = counted::live;
      scope.stop();
      if (!reached) {
        REQUIRE(file);
        CHECK(file->memory_bytes() < held);  // the source's own bytes are not the headers'
        break;
      }
      REQUIRE_FALSE(file);
      REQUIRE(file.error().code() == ErrorCode::out_of_memory);
    }
    REQUIRE(counted::live == 0);
  }
  CHECK(k > 5);
  CHECK(ModelFile::open(path));
  std::filesystem::remove_all(path.parent_path());
}

TEST_CASE("an allocation that fails at the k-th time while a file is written is an error, and leaves no file") {
  const auto path = temporary("written.gguf");
  const std::vector<std::string> words{"a string longer than any inline buffer of a std::string", "b"};
  const std::uint64_t dims[] = {64, 2};
  const std::vector<std::byte> data(136);
  const auto attempt = [&]() -> Status {
    GgufWriter writer;
    if (auto done = writer.set("general.alignment", std::uint32_t{64}); !done) return done;
    if (auto done = writer.set_string("a key that is longer than any inline buffer", words[0]); !done) return done;
    if (auto done = writer.set_array("words", std::span(words)); !done) return done;
    for (const char* name : {"t", "u", "v"}) {
      if (auto done = writer.add_tensor(name, DType::q8_0, dims); !done) return done;
    }
    return writer.write_file(path, [&](std::string_view, const ByteSink& write) { return write(data); });
  };
  std::int64_t k = 0;
  for (;; ++k) {
    counted::Scope scope(k);
    {
      const Status done = attempt();
      const bool reached = counted::count > k;
      scope.stop();
      if (!reached) {
        REQUIRE(done);
        break;
      }
      REQUIRE_FALSE(done);
      REQUIRE(done.error().code() == ErrorCode::out_of_memory);
    }
    REQUIRE(counted::live == 0);
    REQUIRE(std::filesystem::is_empty(path.parent_path()));
  }
  CHECK(k > 15);
  CHECK(ModelFile::open(path));
  std::filesystem::remove_all(path.parent_path());
}

TEST_CASE("a setter that fails leaves the writer as it was") {
  GgufWriter writer;
  REQUIRE(writer.set_string("kept", "a string longer than any inline buffer of a std::string"));
  const std::string name(100, 'n'), value(100, 'v');
  const std::uint64_t dims[] = {4};
  for (std::int64_t k = 0;; ++k) {
    counted::Scope scope(k);
    const Status key = writer.set_string(name, value);
    const Status replaced = key ? writer.set_string("kept", value) : Status();
    const Status tensor = replaced ? writer.add_tensor(name, DType::f32, dims) : Status();
    const bool reached = counted::count > k;
    scope.stop();
    if (!reached) break;
    std::vector<std::byte> out;
    REQUIRE(writer.write([&](std::span<const std::byte> b) { return out.insert(out.end(), b.begin(), b.end()), Status(); },
                         [](std::string_view, const ByteSink& write) { return write(std::vector<std::byte>(16)); }));
    const auto file = ModelFile::from_memory(out);
    REQUIRE(file);
    CHECK((file->metadata().find(name) != nullptr) == key.has_value());
    writer = GgufWriter();
    REQUIRE(writer.set_string("kept", "a string longer than any inline buffer of a std::string"));
  }
}

}  // namespace test_gguf_faults
