// The file format of saved sessions (docs/kv-format.md), as types. The file is a header, then sections. Each section is a section header,
// a payload, and the payload's checksum. All checksums are XXH3-64.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "core/hasher.hpp"

namespace tessera::detail::snapshot {

// Numbers, records and logits are stored with the bytes that they have in memory, so the machine must be little-endian.
static_assert(std::endian::native == std::endian::little, "saved sessions are little-endian");

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'T', 'K', 'V', '\r', '\n', 0x1a, '\n'};
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;  // bytes that are written or read at once

// The first 40 bytes of a file. Every version of the format has these same fields, so that an older library can say which version it
// cannot read.
struct Header {
  std::array<std::uint8_t, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t flags = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t sections = 0;
  std::uint32_t reserved = 0;
  std::uint64_t checksum = 0;  // of the fields above
};

constexpr std::uint32_t tag(const char (&name)[5]) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<std::uint8_t>(name[i]);
  return value;
}

enum class SectionType : std::uint32_t {
  model = tag("MODL"),    // the fingerprint: three strings
  state = tag("STAT"),    // SavedState, then a SavedLayer for each layer of the cache
  tokens = tag("TOKS"),   // i32 each; -1 for an embedding
  contents = tag("CONT"),  // only with embeddings: content_hash() of each embedding, in order, two u64 each
  adapters = tag("ADPT"),  // only with adapters: a SavedAdapter for each adapter, in order, then all their names
  logits = tag("LOGI"),   // f32  [vocab]
  history = tag("HIST"),  // SavedHistory, its tokens (i32), its removals, and content_hash() of each embedding among its tokens
  votes = tag("VOTE"),    // u64: the position before which rows have voted; then for each of the first tokens a u64, its votes
  // One layer. The payload of an attention layer is its records [key or value][head][position]; a record is the bytes of one key or value.
  // Layers that share keys and values have one section, in the place of the first of these layers. The payload of a recurrent layer is its
  // state after the last computed token.
  layer = tag("LAYR"),
  seal = tag("SEAL"),     // u64: checksum over the header, and over each earlier section's header and checksum, in order
};

// Flag of a section: a reader that does not know the section's type must reject the file and not skip the section.
inline constexpr std::uint32_t kRequired = 1;

struct SectionHeader {
  SectionType type = SectionType::seal;
  std::uint32_t flags = kRequired;
  std::uint64_t length = 0;    // bytes of the payload
  std::uint64_t checksum = 0;  // of the fields above
};

inline constexpr std::uint64_t kSectionOverhead = sizeof(SectionHeader) + sizeof(std::uint64_t);
inline constexpr std::size_t kFingerprintTexts = 3;  // model, numerics, spec
inline constexpr std::uint64_t kMaxModelBytes = std::uint64_t{1} << 20;

// The bits of SavedState::flags.
inline constexpr std::uint32_t kEdited = 1;      // there is a history section
inline constexpr std::uint32_t kHasLogits = 2;   // there is a logits section
inline constexpr std::uint32_t kHasVotes = 4;    // there is a votes section
inline constexpr std::uint32_t kHasAdapters = 8;  // there is an adapters section

struct SavedState {
  std::uint64_t tokens = 0;   // all tokens, including pending tokens
  std::uint64_t length = 0;   // computed tokens, which have keys and values
  std::uint64_t removed = 0;  // number of tokens that edits removed
  std::uint32_t kv_type = 0;  // DType
  std::uint32_t vocab = 0;
  std::uint32_t layers = 0;   // layers of the cache, including the MTP heads' layers and the kept hidden state
  std::uint32_t first_layer = 0, last_layer = 0;  // the session computes layers [first_layer, last_layer); 0, 0: none yet
  std::uint32_t flags = 0;
  std::uint32_t wide_type = 0;                   // WideLayers::dtype, the other KV type of the first and last layers; 0xffff: none
  std::uint32_t wide_first = 0, wide_last = 0;   // number of layers at the beginning, and at the end, that have wide_type
  std::uint32_t reserved = 0;
};

struct SavedLayer {
  std::uint32_t kv_heads = 0, key_dim = 0, value_dim = 0;
  // Index of the first layer with the same keys and values; the layer's own index if no earlier layer has them.
  std::uint32_t shares = 0;
  std::uint64_t first = 0;   // the first position whose keys and values are saved
};

struct SavedAdapter {
  Hash128 content;                 // Adapter::content()
  std::uint64_t from = 0;          // the first position that the adapter changes; 2^64 - 1: the adapter waits for its invocation
  std::uint32_t scale = 0;         // the bits of a float
  std::uint32_t waits = 0;         // 1: the adapter's invocation has set `from`, or will set it
  std::uint64_t name_bytes = 0;
};

struct SavedHistory {
  std::uint64_t tokens = 0, removals = 0;
  std::uint32_t replayable = 0;
  std::uint32_t reserved = 0;
};

struct SavedRemoval {
  std::uint64_t computed = 0, first = 0, last = 0;
  std::uint64_t joins = 0;  // 1: the removal belongs to the same edit as the removal before it (History::Removal)
};

// The structs are written byte for byte, so they must have no padding.
static_assert(sizeof(Header) == 40 && std::has_unique_object_representations_v<Header>);
static_assert(sizeof(SectionHeader) == 24 && std::has_unique_object_representations_v<SectionHeader>);
static_assert(sizeof(SavedState) == 64 && std::has_unique_object_representations_v<SavedState>);
static_assert(sizeof(SavedLayer) == 24 && std::has_unique_object_representations_v<SavedLayer>);
static_assert(sizeof(Hash128) == 16 && std::has_unique_object_representations_v<Hash128>);
static_assert(sizeof(SavedAdapter) == 40 && std::has_unique_object_representations_v<SavedAdapter>);
static_assert(sizeof(SavedHistory) == 24 && sizeof(SavedRemoval) == 32);

template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&value, 1));
}

// Returns the checksum of a Header or SectionHeader: of all its bytes before the last field, which holds the checksum.
template <class T>
[[nodiscard]] std::uint64_t checksum_of(const T& header) noexcept {
  Hasher64 hasher;
  hasher.add(bytes_of(header).first(sizeof header - sizeof header.checksum));
  return hasher.digest();
}

// Returns the name of a section's type, for error messages.
[[nodiscard]] inline std::string name_of(SectionType type) {
  switch (type) {
    case SectionType::model: return "model";
    case SectionType::state: return "state";
    case SectionType::tokens: return "tokens";
    case SectionType::contents: return "contents";
    case SectionType::adapters: return "adapters";
    case SectionType::logits: return "logits";
    case SectionType::history: return "history";
    case SectionType::votes: return "votes";
    case SectionType::layer: return "layer";
    case SectionType::seal: return "seal";
  }
  const auto letters = std::bit_cast<std::array<char, 4>>(type);
  return fmt::format("\"{}\"", printable({letters.data(), letters.size()}));
}

}  // namespace tessera::detail::snapshot
