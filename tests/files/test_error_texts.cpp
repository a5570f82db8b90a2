// The texts of errors are one line of UTF-8, whatever names a file or a caller brings.
#include <random>

#include <tessera/extend/files/model_file.hpp>

#include "catch.hpp"
#include "core/printable.hpp"
#include "files/gguf_bytes.hpp"
#include "text/rig.hpp"

namespace test_error_texts {

using namespace tessera;

namespace {

// Decoded anew here, by the definition: Unicode 15, section 3.9, D92.
bool is_line_of_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80 ? 1 : (lead & 0xE0) == 0xC0 ? 2 : (lead & 0xF0) == 0xE0 ? 3 : (lead & 0xF8) == 0xF0 ? 4 : 0;
    if (size == 0 || i + size > text.size()) return false;
    std::uint32_t code = size == 1 ? lead : lead & (0x7Fu >> size);
    for (std::size_t k = 1; k < size; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    const std::uint32_t least = size == 1 ? 0 : size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0x202E) return false;
    i += size;
  }
  return true;
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  while (count-- > 0) out += text;
  return out;
}

// Names as an attacker would choose them: broken sequences, terminal escapes, characters across each place of a cut.
std::vector<std::string> hostile_names() {
  std::vector<std::string> names = {"\xFF\xFE", "\x1B[2J", "a\nb\r\tc", "\xC2\x85\x7F", "\xED\xA0\x80", "\xE2\x80\xAE" "fdp.exe",
                                    "\xF0\x9F\x98", "\xE2\x80\xA8", "\xC0\x80"};
  for (std::size_t ahead = 0; ahead < 5; ++ahead) {
    for (const char* character : {"é", "中", "😀"}) names.push_back(std::string(ahead, 'x') + repeated(character, 80));
  }
  std::mt19937 random(9);
  for (int i = 0; i < 50; ++i) {
    std::string name(1 + random() % 200, ' ');
    for (char& c : name) c = static_cast<char>(random());
    names.push_back(name);
  }
  return names;
}

void check_texts(const Error& error) {
  CAPTURE(error.message(), error.place());
  CHECK(is_line_of_utf8(error.message()));
  CHECK(is_line_of_utf8(error.place()));
  CHECK(is_line_of_utf8(error.text()));
  CHECK_FALSE(error.message().empty());
}

template <class T>
void check_refused(const Result<T>& result) {
  REQUIRE_FALSE(result);
  check_texts(result.error());
}

}  // namespace

TEST_CASE("any error's message and place are one line of UTF-8; what is printable stays as it is") {
  for (const std::string& name : hostile_names()) check_texts(Error(ErrorCode::io, name + "!", name));
  const std::string fine = "Größe «中文» 😀 é ";
  CHECK(Error(ErrorCode::io, fine, fine).message() == fine);
  CHECK(Error(ErrorCode::io, fine, fine).place() == fine);
  CHECK(Error(ErrorCode::io, "a\xFF" "b\nc\xE4\xB8").message() == "a?b?c?");
}

TEST_CASE("a long text is cut between characters, and says so") {
  for (const std::string& name : hostile_names()) {
    for (std::size_t limit = 0; limit < 90; ++limit) {
      const std::string text = detail::printable(name, limit);
      REQUIRE(is_line_of_utf8(text));
      REQUIRE(text.size() <= limit + 3);
    }
  }
  CHECK(detail::printable("ab中", 5) == "ab中");
  CHECK(detail::printable("ab中", 4) == "ab...");
  CHECK(detail::printable("ab中c", 5) == "ab中...");
}

TEST_CASE("hostile names of keys, tensors and files come back printable") {
  using gguf_bytes::Builder;
  for (const std::string& name : hostile_names()) {
    const auto read = [](std::vector<std::byte> bytes, std::string source_name = "buffer") {
      auto source = memory_source(bytes, std::move(source_name));
      REQUIRE(source);
      auto file = GgufFile::read(*source);
      if (!file) check_texts(file.error());
      return file;
    };
    Builder twice;
    twice.key(name, GgufType::u8).put<std::uint8_t>(1);
    twice.key(name, GgufType::u8).put<std::uint8_t>(1);
    CHECK_FALSE(read(twice.finish()));
    Builder type;
    type.key(name, static_cast<GgufType>(99));
    CHECK_FALSE(read(type.finish()));
    Builder block;
    block.tensor(name, DType::q4_0, {33});
    CHECK_FALSE(read(block.finish()));
    CHECK_FALSE(read(std::vector<std::byte>(100), name));

    const std::vector<std::byte> whole = gguf_bytes::every_type().finish();
    const auto source = memory_source(whole, name);
    const auto file = GgufFile::read(*source);
    REQUIRE(file);
    check_refused(file->number(name));
    check_refused(file->string("u8"));
    check_refused(file->array("u8"));
    std::byte out[1];
    check_refused((*source)->read(whole.size(), out));

    const auto model = ModelFile::from_memory(whole);
    REQUIRE(model);
    GgufTensor tensor = model->tensors()[0];
    tensor.name = name;
    check_refused(model->read(tensor, tensor.bytes, out));

    const std::string path = name.substr(0, name.find('\0'));
    check_refused(open_file("/no/such/" + path));
    check_refused(ModelFile::open("/no/such/" + path));

    GgufWriter writer;
    check_refused(writer.add_tensor(name, DType::q4_0, std::array<std::uint64_t, 1>{33}));
    check_refused(writer.set_string(repeated(name, 70'000), "value"));
    check_refused(writer.write_file("/no/such/" + path, {}));
  }
}

TEST_CASE("hostile names in a vocabulary's metadata come back printable") {
  for (const std::string& name : hostile_names()) {
    rig::Vocab v = rig::sentencepiece();
    v.model = name;
    check_refused(rig::load(v));
    v = rig::byte_level({}, name);
    check_refused(rig::load(v));
    v = rig::byte_level({{"a", "b"}});
    v.merges.push_back(name + " ");
    if (name.find(' ', 1) == std::string::npos) check_refused(rig::load(v));
  }
}

}  // namespace test_error_texts
