// Changed safetensors files and indexes are refused or read soundly. TESSERA_TEST_SAFETENSORS: how many are tried.
#include "catch.hpp"
#include "files/safetensors/safetensors_file.hpp"
#include "files/safetensors/safetensors_index.hpp"
#include "files/safetensors_bytes.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

namespace test_safetensors_mutated {

using namespace tessera;
using namespace tessera::detail;
using safetensors_bytes::file;
using safetensors_bytes::tensor;

namespace {

int tries() {
  const char* given = std::getenv("TESSERA_TEST_SAFETENSORS");
  return given != nullptr ? std::atoi(given) : 5000;
}

std::string golden() {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/files/data/every_type.safetensors", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One change of the kinds that break parsers of JSON and checks of ranges.
void mutate(std::string& text, std::mt19937_64& random) {
  static const std::string kPieces[] = {"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "0", "-1", "18446744073709551615",
                                        "18446744073709551616", "1e9", "4294967296", "null", "\"a\":{}", "\"dtype\":\"F4\"", "\xff", "\xe2\x82",
                                        "__metadata__", std::string(1, '\0'), "[[[[[[[[", "\n", "data_offsets", "shape"};
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  switch (below(6)) {
    case 0: text[below(text.size())] ^= static_cast<char>(1u << below(8)); break;
    case 1: text.insert(below(text.size()), kPieces[below(std::size(kPieces))]); break;
    case 2: text.erase(below(text.size()), 1 + below(12)); break;
    case 3: text.insert(below(text.size()), text.substr(below(text.size()), below(60))); break;
    case 4: {  // another digit in the place of one
      for (int i = 0; i < 50; ++i) {
        char& c = text[below(text.size())];
        if (c < '0' || c > '9') continue;
        c = static_cast<char>('0' + below(10));
        break;
      }
      break;
    }
    default: text.resize(below(text.size() + 1)); break;
  }
  if (text.empty()) text = "{";
}

bool is_proper(const Error& error) {
  return !error.message().empty() && error.code() != ErrorCode::internal && error.text().find('\n') == std::string::npos;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("changed safetensors headers are refused or read soundly") {
  const std::string whole = golden();
  std::uint64_t length = 0;
  REQUIRE(whole.size() > 1000);
  std::memcpy(&length, whole.data(), sizeof length);
  const std::string json = whole.substr(8, length), data = whole.substr(8 + length);
  std::mt19937_64 random(11);
  int refused = 0, sound = 0;
  const int count = tries();
  for (int i = 0; i < count; ++i) {
    std::string changed = json;
    for (auto n = 1 + random() % 2; n > 0; --n) mutate(changed, random);
    // Half of the files state the right length, so that the JSON text is what is wrong.
    const std::uint64_t stated = random() % 2 == 0 ? changed.size() : random() % 8 == 0 ? random() : length + random() % 5 - 2;
    std::string bytes(reinterpret_cast<const char*>(&stated), sizeof stated);
    bytes += changed + data;
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto read = SafetensorsFile::read(*memory_source(bytes_of(bytes)));
    ++(read ? sound : refused);
    const bool fine = read ? safetensors_bytes::is_sound(read->tensors(), read->header_bytes(), bytes.size()) : is_proper(read.error());
    if (!fine) FAIL("file " << i << " is read wrongly: " << (read ? "" : read.error().text()) << "\n" << changed);
  }
  CHECK(refused > count / 2);
  CHECK(sound > count / 100);
}

TEST_CASE("changed indexes are refused or read soundly") {
  const std::string index = R"({"metadata":{"total_size":1234,"x":[1,{"y":null}]},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors",)"
                            R"("c":"m-1.safetensors","\u00fc":"m-3.safetensors"}})";
  class Check final : public IndexEntry {
   public:
    Status operator()(std::string_view tensor, std::string_view file) override {
      entries += tensor.size() <= 4096 && file.size() <= 255 ? 1 : -1000;
      return {};
    }
    int entries = 0;
  };
  std::mt19937_64 random(12);
  int refused = 0;
  const int count = tries();
  for (int i = 0; i < count; ++i) {
    std::string changed = index;
    for (auto n = 1 + random() % 2; n > 0; --n) mutate(changed, random);
    Check check;
    const auto walked = walk_index(**memory_source(bytes_of(changed)), check, {});
    if (!walked) ++refused;
    if (check.entries < 0 || (!walked && !is_proper(walked.error()))) FAIL("index " << i << " is read wrongly\n" << changed);
  }
  CHECK(refused > count / 4);
}

TEST_CASE("a header reads alike wherever the window's edge falls") {
  // Longer than the window of 64 KB, with a character of four bytes, an escape and a number at every place of the edge.
  for (std::size_t shift = 0; shift < 40; ++shift) {
    const std::string filler((std::size_t{64} << 10) - 60 + shift, 'f');
    const std::string json = R"({"__metadata__":{"k":")" + filler + R"(\ud83d\ude42🙂"},)" + tensor("ü", "U8", "12", 0, 12) + "}";
    const auto bytes = file(json, 12);
    const auto read = SafetensorsFile::read(*memory_source(bytes));
    REQUIRE(read);
    CHECK(read->notes()[0].value == filler + "🙂🙂");
    CHECK(read->find("ü")->dims[0] == 12);
  }
}

}  // namespace test_safetensors_mutated
