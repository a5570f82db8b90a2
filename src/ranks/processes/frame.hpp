// Frames: the units in which ranks in different processes send each other bytes over a connection. A frame is a header and some bytes. The
// header has a hash of itself and of the bytes, so that damaged bytes are an error and never a wrong token. All ranks must have the byte
// order of x86-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/hasher.hpp"

namespace tessera::detail {

enum class FrameKind : std::uint32_t {
  part = 1,     // a rank's bytes of a gather
  stop = 2,     // the sender has stopped the step; the bytes are its error
  message = 3,  // from rank 0 to another rank, or a rank's answer
};

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x6b725474;  // "tTrk"

  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::part;
  std::uint64_t step = 0;    // the sender's step
  std::uint64_t number = 0;  // number of the gather in the step
  std::uint64_t bytes = 0;   // bytes after the header
  std::uint64_t hash = 0;
};
static_assert(sizeof(FrameHeader) == 40);

[[nodiscard]] inline std::uint64_t hash_of(FrameHeader header, std::span<const std::byte> bytes) noexcept {
  header.hash = 0;
  Hasher64 hasher;
  hasher.add(std::as_bytes(std::span(&header, 1)));
  hasher.add(bytes);
  return hasher.digest();
}

}  // namespace tessera::detail
