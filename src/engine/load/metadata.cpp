#include "engine/load/metadata.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "core/error.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {

namespace {

constexpr std::size_t kLongest = std::size_t{1} << 20;

bool is_kept(const GgufEntry& entry) noexcept { return entry.type != GgufType::array && entry.bytes.size() <= kLongest; }

// Owns its bytes.
class OwnBytes final : public ByteSource {
 public:
  OwnBytes(std::vector<std::byte> bytes, std::string name) noexcept : bytes_(std::move(bytes)), name_(std::move(name)) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return make_error(ErrorCode::io, "{} bytes at {} of {}", out.size(), offset, bytes_.size());
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  [[nodiscard]] std::string name() const override { return name_; }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

}  // namespace

Result<GgufFile> copy_metadata(const GgufFile& file) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.entries()) {
    if (is_kept(entry)) TESSERA_TRY_STATUS(writer.copy(entry));
  }
  std::vector<std::byte> bytes;
  TESSERA_TRY_STATUS(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return {};
      },
      {}));
  bytes.shrink_to_fit();
  return GgufFile::read(std::make_shared<OwnBytes>(std::move(bytes), detail::name_of(file.source())));
}

std::uint64_t metadata_bytes(const GgufFile& file) noexcept {
  constexpr std::uint64_t kOfEntry = 2 * sizeof(GgufEntry) + 64;  // its place in lists, lengths and types
  std::uint64_t bytes = 4096;
  for (const GgufEntry& entry : file.entries()) {
    if (is_kept(entry)) bytes += kOfEntry + 2 * (entry.key.size() + entry.bytes.size());  // the source, and what is read of it
  }
  return bytes;
}

}  // namespace tessera::detail
