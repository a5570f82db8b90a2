// The least that a user does: link, ask for the version, open a file, meet an error and survive it. Compiled with and
// without exceptions and RTTI.
#include <cstdio>
#include <string>

#include <tessera/extend/files/byte_source.hpp>
#include <tessera/version.hpp>

namespace {

// A host's own source of bytes: deriving from our classes links, in a program without RTTI too.
class Zeros : public tessera::ByteSource {
 public:
  std::uint64_t size() const noexcept override { return 64; }
  tessera::Status read(std::uint64_t, std::span<std::byte> out) noexcept override {
    for (auto& byte : out) byte = std::byte{0};
    return {};
  }
  std::string name() const override { return "zeros"; }
};

bool read_one(tessera::ByteSource& source) {
  std::byte bytes[4] = {std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1}};
  return source.read(0, bytes) && (source.name() != "zeros" || bytes[3] == std::byte{0});
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("tessera %.*s\n", static_cast<int>(tessera::version().size()), tessera::version().data());

  if (auto missing = tessera::open_file("/nonexistent/model.gguf"); missing || missing.error().message().empty()) return 1;
  Zeros zeros;
  if (!read_one(zeros)) return 1;
  if (argc > 1) {
    auto file = tessera::open_file(argv[1]);
    if (!file || !read_one(**file)) return 1;
  }
  return 0;
}
