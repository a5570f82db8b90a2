// Saved sessions as bytes, by docs/kv-format.md: where their parts lie, and how to change them so that every checksum is
// right again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/hasher.hpp"
#include "engine/changed_model.hpp"
#include "engine/models.hpp"
#include "kv/held_types.hpp"

namespace tessera::test {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kFileHeader = 40, kSectionHeader = 24, kTrailer = 8;

inline Bytes saved(const Session& session) {
  Bytes bytes;
  must(session.save([&](std::span<const std::byte> piece) -> Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  return bytes;
}

template <class T>
T number_at(const Bytes& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void put_number(Bytes& bytes, std::size_t offset, T value) {
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  detail::Hasher64 hasher;
  hasher.add(bytes);
  return hasher.digest();
}

struct SectionAt {
  std::string type;
  std::size_t begin = 0;    // of its header
  std::size_t payload = 0;
  std::size_t length = 0;   // of the payload
  [[nodiscard]] std::size_t end() const { return payload + length + kTrailer; }
};

// As far as the lengths lead within the file.
inline std::vector<SectionAt> sections_of(const Bytes& bytes) {
  std::vector<SectionAt> sections;
  for (std::size_t at = kFileHeader; at + kSectionHeader + kTrailer <= bytes.size();) {
    const auto length = number_at<std::uint64_t>(bytes, at + 8);
    if (length > bytes.size() - at - kSectionHeader - kTrailer) break;
    sections.push_back({.type = {reinterpret_cast<const char*>(bytes.data() + at), 4},
                        .begin = at,
                        .payload = at + kSectionHeader,
                        .length = static_cast<std::size_t>(length)});
    at = sections.back().end();
  }
  return sections;
}

inline SectionAt section(const Bytes& bytes, const std::string& type) {
  for (const SectionAt& at : sections_of(bytes)) {
    if (at.type == type) return at;
  }
  FAIL("no section " << type);
  return {};
}

// Makes all checksums, the number of sections and the file's length what they should be.
inline void reseal(Bytes& bytes) {
  const std::vector<SectionAt> sections = sections_of(bytes);
  put_number(bytes, 16, std::uint64_t{bytes.size()});
  put_number(bytes, 24, static_cast<std::uint32_t>(sections.size()));
  const std::span<const std::byte> all = bytes;
  put_number(bytes, 32, checksum(all.first(32)));
  detail::Hasher64 seal;
  seal.add(all.first(kFileHeader));
  for (const SectionAt& at : sections) {
    put_number(bytes, at.begin + 16, checksum(all.subspan(at.begin, 16)));
    if (at.type == "SEAL" && at.length == 8) put_number(bytes, at.payload, seal.digest());
    put_number(bytes, at.payload + at.length, checksum(all.subspan(at.payload, at.length)));
    seal.add(all.subspan(at.begin, kSectionHeader));
    seal.add(all.subspan(at.payload + at.length, kTrailer));
  }
}

// A section's payload replaced.
inline Bytes with_payload(const Bytes& bytes, const SectionAt& at, std::span<const std::byte> payload) {
  Bytes changed(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at.payload));
  changed.insert(changed.end(), payload.begin(), payload.end());
  changed.insert(changed.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at.payload + at.length), bytes.end());
  put_number(changed, at.begin + 8, std::uint64_t{payload.size()});
  reseal(changed);
  return changed;
}

// A section put before the one that begins at `before`.
inline Bytes with_section(const Bytes& bytes, std::size_t before, const std::string& type, std::uint32_t flags,
                          std::span<const std::byte> payload) {
  Bytes section(kSectionHeader + payload.size() + kTrailer);
  std::memcpy(section.data(), type.data(), 4);
  put_number(section, 4, flags);
  put_number(section, 8, std::uint64_t{payload.size()});
  if (!payload.empty()) std::memcpy(section.data() + kSectionHeader, payload.data(), payload.size());
  Bytes changed = bytes;
  changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(before), section.begin(), section.end());
  reseal(changed);
  return changed;
}

// What a user can see of two sessions is the same, and so are the keys and values.
inline void check_same(const Session& a, const Session& b) {
  CHECK(std::ranges::equal(a.tokens(), b.tokens()));
  CHECK(a.position() == b.position());
  CHECK(a.has_pending() == b.has_pending());
  CHECK(a.edited() == b.edited());
  CHECK(same_bits(a.logits(), b.logits()));
  CHECK(a.kv().dtype() == b.kv().dtype());
  CHECK(a.kv().length() == b.kv().length());
  if (a.kv().first() != b.kv().first()) return;  // behind a window, how much is held depends on the page size
  for (std::size_t layer = 0; layer < a.kv().layout().layers.size(); ++layer) {
    CHECK(a.kv().checksum(layer) == b.kv().checksum(layer));
  }
}

struct Place {
  KvKind kind;
  std::uint32_t page_tokens;
};
inline constexpr Place kPlaces[] = {{KvKind::contiguous, 16}, {KvKind::contiguous, 32}, {KvKind::contiguous, 64},
                                    {KvKind::paged, 16},      {KvKind::paged, 32},      {KvKind::paged, 64}};

inline SessionOptions place_options(const Place& place, DType dtype = DType::automatic) {
  return {.kv = {.dtype = dtype, .kind = place.kind, .page_tokens = place.page_tokens}};
}

}  // namespace tessera::test
