#include "engine/snapshot/sections.hpp"

#include <algorithm>

namespace tessera::detail::snapshot {
namespace {

constexpr SectionType kUnknown{};

bool is_known(SectionType type) { return !name_of(type).starts_with('"'); }

}  // namespace

std::string SectionReader::place() const {
  if (opened_ == 0) return fmt::format("{}: header, offset 0", name_);
  std::string what;
  if (section_.type == SectionType::layer) {
    what = fmt::format(" (layer {})", layers_ - 1);
  } else if (section_.type != kUnknown) {
    what = fmt::format(" ({})", name_of(section_.type));
  }
  return fmt::format("{}: section {}{}, offset {}", name_, opened_ - 1, what, section_offset_);
}

Status SectionReader::fill(std::size_t n) {
  if (held_.size() >= n) return {};
  if (n > size_ - offset_) return corrupt("the file ends in the middle of it");
  std::memmove(buffer_.data(), held_.data(), held_.size());
  const auto all = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), size_ - offset_));
  TESSERA_TRY_STATUS(source_.read(offset_ + held_.size(), buffer_.first(all).subspan(held_.size())));
  held_ = buffer_.first(all);
  return {};
}

Result<std::span<const std::byte>> SectionReader::take(std::size_t n) {
  TESSERA_TRY_STATUS(fill(n));
  const auto taken = held_.first(n);
  held_ = held_.subspan(n);
  offset_ += n;
  return taken;
}

Status SectionReader::begin() {
  TESSERA_TRY_STATUS(fill(static_cast<std::size_t>(std::min<std::uint64_t>(size_, sizeof(Header)))));
  const auto magic = std::as_bytes(std::span(kMagic));
  if (held_.size() < magic.size() || !std::ranges::equal(held_.first(magic.size()), magic)) {
    return corrupt("this is not a saved session: it does not begin as one");
  }
  TESSERA_TRY_STATUS(take_into(header_));
  if (header_.checksum != checksum_of(header_)) return corrupt("the header is damaged: its checksum is wrong");
  if (header_.version != kVersion) {
    return error(ErrorCode::unsupported,
                 "a saved session of format version {}; this library reads version {}. Use the tessera that saved it, or a "
                 "newer one",
                 header_.version, kVersion);
  }
  if (header_.flags != 0 || header_.reserved != 0) {
    return error(ErrorCode::unsupported, "the header has flags that this library does not know");
  }
  if (header_.file_bytes != size_) {
    return corrupt("the file has {} bytes and was saved with {}: it {}", size_, header_.file_bytes,
                   size_ < header_.file_bytes ? "is cut" : "has something behind its end");
  }
  seal_.add(bytes_of(header_));
  return {};
}

Status SectionReader::next_header() {
  ++opened_;
  section_offset_ = offset_;
  section_.type = kUnknown;
  if (opened_ > header_.sections) return corrupt("the header says that there are {} sections", header_.sections);
  SectionHeader section;
  TESSERA_TRY_STATUS(take_into(section));
  if (section.checksum != checksum_of(section)) return corrupt("the section's header is damaged: its checksum is wrong");
  section_ = section;
  if (section_.type == SectionType::layer) ++layers_;
  if ((section_.flags & ~kRequired) != 0) {
    return error(ErrorCode::unsupported, "the section has flags that this library does not know");
  }
  if (remaining() < sizeof(std::uint64_t) || section_.length > remaining() - sizeof(std::uint64_t)) {
    return corrupt("the section has {} bytes, and its checksum: more than the file", section_.length);
  }
  if (section_.type != SectionType::seal) seal_.add(bytes_of(section_));
  left_ = section_.length;
  payload_ = Hasher64();
  return {};
}

Status SectionReader::open(SectionType type) {
  for (;;) {
    TESSERA_TRY_STATUS(next_header());
    if (section_.type == type) return {};
    if (is_known(section_.type)) return corrupt("a section of type {} should be here", name_of(type));
    if ((section_.flags & kRequired) != 0) {
      return error(ErrorCode::unsupported, "a section that this library does not know and must not skip. Use a newer tessera");
    }
    while (left_ > 0) TESSERA_TRY_STATUS(records(1, left_));
    TESSERA_TRY_STATUS(close());
  }
}

Result<std::span<const std::byte>> SectionReader::records(std::uint64_t record_bytes, std::uint64_t most) {
  if (record_bytes > left_) return corrupt("the section's {} bytes are too few", section_.length);
  TESSERA_TRY_STATUS(fill(static_cast<std::size_t>(record_bytes)));
  const std::uint64_t n = std::min(std::min<std::uint64_t>(held_.size(), left_) / record_bytes, most);
  TESSERA_TRY(const auto bytes, take(static_cast<std::size_t>(n * record_bytes)));
  payload_.add(bytes);
  left_ -= bytes.size();
  return bytes;
}

Result<std::vector<std::byte>> SectionReader::whole(SectionType type, std::uint64_t length) {
  TESSERA_TRY_STATUS(open(type));
  if (section_.length != length) return corrupt("the section has {} bytes, not {}", section_.length, length);
  return payload();
}

Result<std::vector<std::byte>> SectionReader::whole_up_to(SectionType type, std::uint64_t most) {
  TESSERA_TRY_STATUS(open(type));
  if (section_.length > most) return corrupt("the section has {} bytes, more than {}", section_.length, most);
  return payload();
}

Result<std::vector<std::byte>> SectionReader::payload() {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(section_.length));  // next_header() has checked that the file has these bytes
  while (left_ > 0) {
    TESSERA_TRY(const auto piece, records(1, left_));
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  TESSERA_TRY_STATUS(close());
  return bytes;
}

Status SectionReader::close() {
  if (left_ != 0) return corrupt("the section has {} bytes too many", left_);
  std::uint64_t checksum = 0;
  TESSERA_TRY_STATUS(take_into(checksum));
  if (checksum != payload_.digest()) return corrupt("the section is damaged: its checksum is wrong");
  if (section_.type != SectionType::seal) seal_.add(bytes_of(checksum));
  return {};
}

Status SectionReader::finish() {
  std::uint64_t seal = 0;
  TESSERA_TRY(const auto bytes, whole(SectionType::seal, sizeof seal));
  std::memcpy(&seal, bytes.data(), sizeof seal);
  if (seal != seal_.digest()) return corrupt("the sections do not belong together: their common checksum is wrong");
  if (remaining() != 0 || opened_ != header_.sections) return corrupt("something follows the last section");
  return {};
}

}  // namespace tessera::detail::snapshot
