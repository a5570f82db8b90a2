// Files that were cut or changed give an error or a sound parse, and never take more memory than their size and 64 MB:
// contract 6.
#include "catch.hpp"
#include "counted_new.hpp"
#include "files/gguf_bytes.hpp"

#include <fstream>
#include <iterator>

namespace test_gguf_hostile {

using namespace tessera;

namespace {

constexpr std::size_t kAllowance = std::size_t{64} << 20;

std::vector<std::byte> load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Serves a buffer, counts what is read, and notes reads that no caller may make.
class LimitedSource final : public ByteSource {
 public:
  explicit LimitedSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return "limited"; }
  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      out_of_range = true;
      return Error(ErrorCode::io, "past the end");
    }
    bytes_read += out.size();
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  std::uint64_t bytes_read = 0;
  bool out_of_range = false;

 private:
  std::span<const std::byte> bytes_;
};

enum class Outcome { error, parsed, broken };

Outcome try_parse(std::span<const std::byte> bytes) {
  const auto source = std::make_shared<LimitedSource>(bytes);
  counted::Scope scope;
  Outcome outcome = Outcome::broken;
  {
    const auto file = GgufFile::read(source);
    const std::size_t held = counted::live;
    const std::size_t peak = counted::peak;
    scope.stop();
    outcome = file ? Outcome::parsed : Outcome::error;
    if (peak > bytes.size() + kAllowance) outcome = Outcome::broken;
    if (source->out_of_range || source->bytes_read > 4 * bytes.size() + (1 << 20)) outcome = Outcome::broken;
    if (file && (file->memory_bytes() != held || !gguf_bytes::is_sound(*file))) outcome = Outcome::broken;
    if (!file && (file.error().message().empty() || file.error().text().find('\n') != std::string::npos ||
                  file.error().code() == ErrorCode::internal)) {
      outcome = Outcome::broken;
    }
  }
  if (counted::live != 0) outcome = Outcome::broken;
  return outcome;
}

struct Base {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> fields;
  std::size_t header;
};

std::vector<Base> bases() {
  std::vector<Base> all;
  const auto add = [&](gguf_bytes::Builder builder) {
    auto bytes = builder.finish();
    all.push_back({std::move(bytes), std::move(builder.fields), builder.header_end});
  };
  add(gguf_bytes::every_type(3));
  add(gguf_bytes::every_type(2));
  std::mt19937_64 random(7);
  for (int i = 0; i < 30; ++i) add(gguf_bytes::random_file(random));
  for (const auto* name : {"llama.gguf", "every_type.gguf"}) {
    auto bytes = load(std::string(TESSERA_SOURCE_DIR "/tests/files/data/") + name);
    REQUIRE_FALSE(bytes.empty());
    const std::size_t size = bytes.size();
    all.push_back({std::move(bytes), {8, 16, 24}, size});
  }
  return all;
}

std::uint64_t load_u64(const std::byte* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

constexpr std::uint64_t kNumbers[] = {0, 1, 2, 7, 8, 9, 13, 31, 32, 33, 255, 256, 65535, 65536, 0x7fffffff, 0x80000000,
                                      0xffffffff, 0x100000000, std::uint64_t{1} << 40, std::uint64_t{1} << 60,
                                      std::uint64_t{1} << 61, std::uint64_t{1} << 62, std::uint64_t{1} << 63,
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 7, ~std::uint64_t{0} - 31};

// One change of one of the kinds that break parsers.
void mutate(std::vector<std::byte>& bytes, const Base& base, const std::vector<Base>& all, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return n == 0 ? 0 : random() % n; };
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &value, width);
  };
  const auto number = [&]() -> std::uint64_t {
    switch (below(4)) {
      case 0: return below(2 * bytes.size());
      case 1: return random();
      default: return kNumbers[below(std::size(kNumbers))];
    }
  };
  const auto field = [&] { return base.fields[below(base.fields.size())]; };
  switch (below(9)) {
    case 0: {  // bit flips in the header
      for (auto n = 1 + below(4); n > 0; --n) bytes[below(std::min(base.header, bytes.size()))] ^= std::byte{1} << below(8);
      break;
    }
    case 1: put(field(), number(), 8); break;
    case 2: put(field(), number(), 4); break;
    case 3: {  // a count or length off by little
      const auto at = field();
      if (at + 8 > bytes.size()) break;
      put(at, load_u64(bytes.data() + at) + below(17) - 8, 8);
      break;
    }
    case 4: put(below(base.header), number(), 8); break;
    case 5: bytes.resize(below(bytes.size() + 1)); break;
    case 6: {  // a piece of another file
      const auto& other = all[below(all.size())].bytes;
      const auto from = below(other.size()), length = below(std::min<std::uint64_t>(200, other.size() - from));
      const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      bytes.insert(bytes.begin() + at, first, first + static_cast<std::ptrdiff_t>(length));
      break;
    }
    case 7: {  // a piece taken out
      const auto at = below(bytes.size()), length = below(std::min<std::uint64_t>(64, bytes.size() - at));
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      break;
    }
    default: {  // one header field's bytes over another's
      const auto from = field(), to = field();
      if (from + 8 <= bytes.size()) put(to, load_u64(bytes.data() + from), 8);
      break;
    }
  }
  if (bytes.empty()) bytes.resize(1);
}

}  // namespace

TEST_CASE("a file cut at every byte of its header is refused") {
  for (const Base& base : bases()) {
    REQUIRE(try_parse(base.bytes) == Outcome::parsed);
    const bool has_data = base.bytes.size() > base.header;
    for (std::size_t size = 0; size < base.header; ++size) {
      const std::span<const std::byte> cut(base.bytes.data(), size);
      const Outcome outcome = try_parse(cut);
      INFO("cut at " << size << " of " << base.header << (has_data ? ", with data" : ""));
      REQUIRE(outcome != Outcome::broken);
      // A golden file's `header` is its whole size: its last tensor may end in padding, which may be missing.
      if (base.fields.size() > 3) REQUIRE(outcome == Outcome::error);
    }
  }
}

TEST_CASE("100,000 changed files are refused or parse soundly, within their memory") {
  const auto all = bases();
  std::mt19937_64 random(20240601);
  std::size_t errors = 0, parsed = 0;
  std::vector<std::byte> bytes;
  for (int i = 0; i < 100'000; ++i) {
    const Base& base = all[random() % all.size()];
    bytes = base.bytes;
    for (auto n = 1 + random() % 3; n > 0; --n) mutate(bytes, base, all, random);
    const Outcome outcome = try_parse(bytes);
    if (outcome == Outcome::broken) FAIL("file " << i << " is accepted wrongly, or takes too much");
    ++(outcome == Outcome::error ? errors : parsed);
  }
  WARN(errors << " refused, " << parsed << " parsed");
  CHECK(errors > 50'000);
}

TEST_CASE("the most that a header may hold stays within the allowance") {
  // As many of the smallest keys and tensors as are read, whose descriptions cost us more bytes than they take.
  gguf_bytes::Builder b;
  for (std::uint32_t i = 0; i < 65'536; ++i) b.key(std::to_string(i), GgufType::u8).put<std::uint8_t>(0);
  for (std::uint32_t i = 0; i < 262'144; ++i) b.tensor(std::to_string(i), DType::f16, {1});
  b.fields.clear();
  auto bytes = b.finish();
  CHECK(try_parse(bytes) == Outcome::parsed);
  // Refused at the last check, with everything in memory.
  std::memset(bytes.data() + b.header_end - 8, 0, 8);
  CHECK(try_parse(bytes) == Outcome::error);
  b.bytes.resize(b.header_end);
  b.tensor("one more", DType::f16, {1});
  CHECK(try_parse(b.finish()) == Outcome::error);
}

}  // namespace test_gguf_hostile
