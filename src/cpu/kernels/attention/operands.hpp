// Supplies the matrix products of attention with keys and values, as tiles. A tile has 16 lanes, and 32 numbers for each lane, over which
// a product sums. In a tile of keys a lane is a key and the 32 numbers are dimensions; the products are scores. In a tile of values a
// lane is a dimension and the 32 numbers belong to 32 keys; the products are weighted sums. Layout of a tile: for elements of 8 and 16
// bits [16 rows][16 lanes][2 numbers]; for F32 [32 rows][16 lanes]. Consecutive rows are KvTile::stride bytes apart.
//
// If a page has the numbers in this layout, the tile is read directly from the page. Otherwise the numbers are copied to scratch, with
// zeros for dimensions and keys that do not exist or are not visible.
//
// If a product cannot multiply the stored type, the tile is expanded (converted) in scratch, once for all queries of the job. INT8, FP8
// and INT4 become bf16. F16 becomes what the family of the job multiplies:
// - family bf16: one bf16, rounded
// - family bf16x3: two bf16, a high and a low part, whose sum is the number
// - family f32: floats. They take twice the bytes, so a tile of 32 rows is written as two parts: first the even rows, then the odd rows
// Exception: without AMX, a job with few queries expands INT8 keys and values, and F16 that would become floats or one bf16, in registers
// (rows.hpp) instead of scratch. (This does not hold for K8V4, INT8 keys with INT4 values: both are expanded in scratch.)
#pragma once

#include "cpu/attention/attention_job.hpp"
#include "cpu/kernels/attention/softmax.hpp"
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

using Tile = KvTile;

inline constexpr std::size_t kPartBytes = 1024;  // bytes of each part, if a tile is expanded to two parts

// Each Held... type describes one form in which pages store keys or values, and how its elements become operands of a product. It is the
// template parameter by which one kernel's source serves all KV types. Members:
//   kElement       bytes of an element in a page
//   kPair          elements of a lane that lie side by side in a row: 2, for F32 1
//   expand()       makes one row of a tile from the 16 * kPair elements of the row in the page
//   kExpands       true: a product cannot multiply the elements as they are stored; expand() must convert them
//   kParts         parts of an expanded tile, which lie one after the other: 1 or 2
//   kPartsAreRows  only if kParts is 2. true (F16 to floats): the first part has the first element of each pair, the second part the second
//                  element. false (F16 to two bf16): the first part has the high parts of all elements, the second part the low parts
//   kScales        true: each token has a scale
//   kRotates       true: elements are stored rotated (kv/rotation.hpp)
//   kRun           1: each row is expanded by itself. Otherwise (HeldInt4) this many numbers are expanded together, into two rows, from
//                  kRunElements elements
template <class Element, Element kInfinityBits, bool kInPlace>
struct HeldElements {
  static constexpr std::size_t kElement = sizeof(Element), kPair = kElement == 4 ? 1 : 2, kParts = 1;
  static constexpr bool kScales = false, kRotates = false, kExpands = !kInPlace, kPartsAreRows = false;
  static constexpr std::size_t kRun = 1;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, load<U32x16>(from)); }
  static constexpr Element kInfinity = kInfinityBits;
  TESSERA_INLINE Element magnitude(const std::byte* at) {
    return static_cast<Element>(value_at<Element>(at) & (static_cast<Element>(-1) >> 1));
  }
};
using HeldF32 = HeldElements<std::uint32_t, 0x7f800000u, true>;
using HeldBF16 = HeldElements<std::uint16_t, 0x7f80u, true>;
using HeldHalves = HeldElements<std::uint16_t, 0x7c00u, true>;  // F16 as it lies

// F16 expanded to two bf16, a high part and a low part, whose sum is the number.
struct HeldF16 : HeldElements<std::uint16_t, 0x7c00u, false> {
  static constexpr std::size_t kParts = 2;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* high, std::byte* low) {
    store_both_parts(high, low, load_f16(from), load_f16(from + 32));
  }
};

#if defined(__AVX512BF16__)
// F16 rounded to bf16.
struct HeldF16Rounded : HeldElements<std::uint16_t, 0x7c00u, false> {
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, bf16_of_halves(from)); }
};
#endif

// F16 expanded to floats. Their lanes are in the order of load_f16_pairs(), not in that of the page.
struct HeldF16AsFloats : HeldElements<std::uint16_t, 0x7c00u, false> {
  static constexpr std::size_t kParts = 2;
  static constexpr bool kPartsAreRows = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* even, std::byte* odd) {
    const F32x16Pair pair = load_f16_pairs(from);
    store(even, pair.even);
    store(odd, pair.odd);
  }
};

// INT8 as it lies in the page. A row of a tile has 32 bytes.
struct HeldBytes {
  static constexpr std::size_t kPair = 2, kElement = 1, kParts = 1;
  static constexpr bool kScales = true, kRotates = true, kExpands = false, kPartsAreRows = false;
  static constexpr std::size_t kRun = 1;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { __builtin_memcpy(to, from, 32); }
};

// INT8 expanded to bf16, which represents these integers exactly.
struct HeldInt8 : HeldBytes {
  static constexpr bool kExpands = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, bf16_of_bytes(from)); }
};

// FP8 in pages, expanded to bf16. Each bf16 is 1/256 of the stored number, because the bits are converted as if they were F16; bf16 holds
// this exactly. The scales in the page are 256 times as large to make up for it (kv/codecs/fp8.hpp).
struct HeldFp8 : HeldBytes {
  static constexpr bool kRotates = false, kExpands = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, bf16_of_fp8(from)); }
};

// INT4 in pages (kv/codecs/int4.hpp), expanded to bf16. Each bf16 is a 4-bit number times its multiplier, which bf16 represents exactly.
// 32 bytes contain the numbers of two rows of a tile; the multipliers are stored elsewhere in the block.
struct HeldInt4 : HeldBytes {
  static constexpr bool kExpands = true;
  static constexpr std::size_t kRun = 32, kRunElements = 18;
};

// Returns how many elements (of kElement bytes) a page stores for one key, or one value, of `dim` dimensions: `dim`, except in INT4.
// There an element is a byte with two numbers, and the multipliers count as elements too.
template <class Held>
[[nodiscard, gnu::always_inline]] constexpr std::size_t held_elements(std::size_t dim) noexcept {
  if constexpr (Held::kRun == 1) return dim;
  else return (dim + Held::kRun - 1) / Held::kRun * Held::kRunElements;
}

// Gives the keys of a job, or its values, to products.
template <class Held>
struct Operands {
  static constexpr std::size_t kTileRows = 32 / Held::kPair;
  static constexpr std::size_t kTileBytes = kTileRows * 64;         // bytes of one part of a tile
  static constexpr std::size_t kRowBytes = 16 * Held::kPair * Held::kElement;  // bytes of 16 lanes in a page

  const AttendJob& job;
  int page_bits;                         // page_tokens is 2^page_bits: a shift is faster than a division
  std::size_t held_keys, held_values;    // elements that a page stores for one key, or one value (held_elements())
  std::size_t keys_ahead, values_ahead;  // distance of prefetching, in keys: from the key that is read to the key that is prefetched

  [[gnu::always_inline]] explicit Operands(const AttendJob& of) noexcept
      : job(of), page_bits(__builtin_ctzll(of.page_tokens)), held_keys(held_elements<Held>(of.key_dim)),
        held_values(held_elements<Held>(of.value_dim)), keys_ahead(ahead(held_keys)), values_ahead(ahead(held_values)) {}

  [[nodiscard, gnu::always_inline]] const std::byte* page(std::uint64_t position) const {
    return job.pages[position >> page_bits];
  }
  [[nodiscard, gnu::always_inline]] std::size_t slot(std::uint64_t position) const {
    return position & (job.page_tokens - 1);
  }
  // Returns the address of the key's first kPair dimensions. Its next kPair dimensions lie page_tokens * kPair elements further on.
  [[nodiscard, gnu::always_inline]] const std::byte* key(std::uint64_t position) const {
    return page(position) + job.k_offset + slot(position) * Held::kPair * Held::kElement;
  }
  // Returns the address of the values of the token at `position`. If kPair is 2, a page stores the values of two tokens (an even slot and
  // the next slot) interleaved, as [elements][2 tokens]; then returns the address of these two tokens' values.
  [[nodiscard, gnu::always_inline]] const std::byte* value(std::uint64_t position) const {
    return page(position) + job.v_offset + slot(position) / Held::kPair * Held::kPair * held_values * Held::kElement;
  }
  // Return the offset in a page of the scales of keys, or of values. The scales lie after the elements of the keys, or of the values.
  [[nodiscard, gnu::always_inline]] std::size_t key_scales() const {
    return job.k_offset + (held_keys + 1) / 2 * 2 * job.page_tokens;
  }
  [[nodiscard, gnu::always_inline]] std::size_t value_scales() const {
    return job.v_offset + held_values * job.page_tokens;
  }

  [[nodiscard, gnu::always_inline]] bool keys_in_place() const {
    return !Held::kExpands && (Held::kPair == 1 || job.key_dim % 32 == 0);
  }

  // Keys and values are prefetched only in jobs with few queries, which spend most of their time on reading. Pages lie anywhere in
  // memory, so the CPU's own prefetchers cannot predict them. While the keys at `position` are read, later() returns the position of the
  // keys to prefetch: `distance` keys further on in this job, or, near the end of the job, the first keys of the next job. If there is
  // nothing to prefetch, it returns `position` itself, so that callers need no branch. Callers prefetch one row at a time, between
  // expanding or multiplying rows, because a core stalls if it issues many prefetches at once. With AMX, tiles that are read directly
  // from pages are not prefetched (whether it would help has not been measured).
  static constexpr std::size_t kAheadBytes = 16 * 1024;  // at most half of L1; measured on Zen 5
  [[nodiscard, gnu::always_inline]] static constexpr std::size_t ahead(std::size_t elements) noexcept {
    const std::size_t groups = kAheadBytes / (elements * Held::kElement * kKeyGroup);
    return groups == 0 ? kKeyGroup : groups * kKeyGroup;
  }
  struct Later {
    const AttendJob& job;
    std::uint64_t position;
  };
  [[nodiscard, gnu::always_inline]] Later later(std::uint64_t position, std::uint64_t distance) const {
    const Later none{job, position};
    if (job.rows * job.query_group > 16 || job.globals != 0) return none;
    if (position + distance + kKeyGroup <= job.position) return {job, position + distance};
    if (job.next == nullptr || job.next->globals != 0) return none;
    // From position `end` on, the keys that are `distance` further on lie beyond this job's last key. So the next job's keys are
    // prefetched, from position `start` on: the beginning of the first key group that lies in the next job's chunks and that the next
    // job's first row sees completely.
    const AttendJob& next = *job.next;
    const std::uint64_t end = job.position < distance + kKeyGroup ? 0 : (job.position - distance) / kKeyGroup * kKeyGroup;
    const std::uint64_t seen =
        next.window == 0 || next.position < next.window ? 0 : (next.position + kKeyGroup - next.window) / kKeyGroup * kKeyGroup;
    const std::uint64_t taken = next.first_chunk * kChunk, start = seen > taken ? seen : taken;
    if (position < end || start + (position - end) > next.position) return none;
    return {next, start + (position - end)};
  }
  [[nodiscard, gnu::always_inline]] const std::byte* later_key(std::uint64_t position) const {
    const Later at = later(position, keys_ahead);
    return Operands{at.job}.key(at.position);
  }
  [[nodiscard, gnu::always_inline]] const std::byte* later_value(std::uint64_t position) const {
    const Later at = later(position, values_ahead);
    return Operands{at.job}.value(at.position);
  }
  TESSERA_INLINE void ask_for(const std::byte* at) { __builtin_prefetch(at, 0, 2); }
  TESSERA_INLINE std::ptrdiff_t distance(const std::byte* from, const std::byte* to) {  // the addresses may be in different pages
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from));
  }

  // Load the scales of a chunk's keys (or values) [first, last), a float for each, into to[first] to to[last - 1]. May also write some
  // elements of `to` before and after this range, because the scales of whole pages are loaded.
  void load_key_scales(std::uint64_t chunk, std::size_t first, std::size_t last, float* to) const {
    load_scales(chunk, first, last, keys_ahead, [](const Operands& of) TESSERA_LAMBDA { return of.key_scales(); }, to);
  }
  void load_value_scales(std::uint64_t chunk, std::size_t first, std::size_t last, float* to) const {
    load_scales(chunk, first, last, values_ahead, [](const Operands& of) TESSERA_LAMBDA { return of.value_scales(); }, to);
  }

  // Makes the tiles of the 16 keys from `position` on: one tile for each 32 dimensions, at to[0], to[step], to[2 * step], ... A tile
  // points into the page if the product can read the page directly; otherwise the tile is written to `scratch`.
  void load_keys(std::uint64_t position, std::byte* scratch, Tile* to, std::size_t step) const {
    const std::byte* from = key(position);
    const std::size_t stride = job.page_tokens * Held::kPair * Held::kElement;
    const std::size_t rows = (job.key_dim + Held::kPair - 1) / Held::kPair;
    const std::byte* ahead = later_key(position);
    if constexpr (Held::kRun != 1) {
      for (std::size_t d = 0; d < job.key_dim; d += 32, to += step, scratch += kTileBytes) {
        *to = {scratch, 64, 0};
        expand_keys(from, ahead, stride, scratch);
        from += Held::kRunElements / 2 * stride;
        ahead += Held::kRunElements / 2 * stride;
      }
      return;
    }
    if (keys_in_place()) {
      const std::ptrdiff_t to_ahead = distance(from, ahead);
      for (std::size_t row = 0; row < rows; row += kTileRows, to += step) *to = {from + row * stride, stride, to_ahead};
      return;
    }
    for (std::size_t row = 0; row < rows; row += kTileRows, to += step, scratch += Held::kParts * kTileBytes) {
      *to = {scratch, 64, 0};
      for (std::size_t i = 0; i < kTileRows; ++i) {
        std::byte* high = scratch + i * 64;
        if (row + i < rows) {
          Held::expand(from + (row + i) * stride, high, high + kTileBytes);
          ask_for(ahead + (row + i) * stride);
        } else {
          zero(high);
        }
      }
    }
  }

  // Makes tiles of the values of 32 tokens (a key group) from `position` on: one tile for each 16 dimensions. The array of all tiles of a
  // chunk is [value_dim / 64][8 key groups][4 tiles of 16 dimensions]; `to` points to this key group's first tile. Only the key group's
  // tokens [first, last) count; the values of the others become zeros.
  void load_values(std::uint64_t position, std::size_t first, std::size_t last, std::byte* scratch, Tile* to) const {
    constexpr std::size_t kStep = Held::kParts * kTileBytes;
    if constexpr (!Held::kScales) {
      if (job.values_in_keys) return load_values_in_keys(position, first, last, scratch, to);
    }
    const auto tile = [to](std::size_t d) -> Tile& { return to[d / 64 * 32 + d / 16 % 4]; };
    const std::size_t dim = job.value_dim, pair_bytes = held_values * Held::kPair * Held::kElement;
    const bool whole = first == 0 && last == kKeyGroup;
    if (!Held::kExpands && whole && dim % 16 == 0 && job.page_tokens >= kKeyGroup) {
      const std::byte* from = value(position);
      const std::ptrdiff_t to_ahead = distance(from, later_value(position));
      for (std::size_t d = 0; d < dim; d += 16) tile(d) = {from + d * Held::kPair * Held::kElement, pair_bytes, to_ahead};
      return;
    }
    for (std::size_t d = 0; d < dim; d += 16) tile(d) = {scratch + d / 16 * kStep, 64, 0};
    for (std::size_t i = 0; i < kTileRows; ++i) {
      const std::size_t key = i * Held::kPair;
      std::byte* high = scratch + i * 64;
      if (key + Held::kPair <= first || key >= last) {
        for (std::size_t d = 0; d < dim; d += 16, high += kStep) zero(high);
        continue;
      }
      const std::byte* from = value(position + key);
      const std::byte* ahead = later_value(position + key);
      if constexpr (Held::kRun != 1) {
        expand_values(from, ahead, high);
      } else {
        for (std::size_t d = 0; d < dim; d += 16, high += kStep, from += kRowBytes, ahead += kRowBytes) {
          ask_for(ahead);
          if (dim - d >= 16) Held::expand(from, high, high + kTileBytes);
          else expand_some(from, dim - d, high);
        }
      }
      if (Held::kPair == 2 && (key < first || key + 1 >= last)) {  // only one key of the pair counts
        constexpr std::uint32_t kFirst = Held::kExpands || Held::kElement == 2 ? 0x0000ffffu : 0x00ff00ffu;
        const U32x16 mask = broadcast(key < first ? ~kFirst : kFirst);
        high = scratch + i * 64;
        for (std::size_t d = 0; d < dim; d += 16, high += kStep) {
          if constexpr (Held::kPartsAreRows) {
            store(high + (key < first ? 0 : kTileBytes), U32x16{});
            continue;
          }
          for (std::size_t part = 0; part < Held::kParts; ++part) {
            std::byte* at = high + part * kTileBytes;
            store(at, load<U32x16>(at) & mask);
          }
        }
      }
    }
  }

  // Does the same as load_values(), for values that are part of the keys (latent attention; AttendJob::values_in_keys). Pages store
  // these values as tiles of keys, in which a lane is a key. In a tile of values a lane is a dimension, so this function transposes 16
  // dimensions at a time.
  [[gnu::noinline]] void load_values_in_keys(std::uint64_t position, std::size_t first, std::size_t last, std::byte* scratch,
                                             Tile* to) const {
    constexpr std::size_t kBytes = Held::kPair * Held::kElement;  // bytes of the dimensions of a key that lie side by side
    const std::size_t stride = job.page_tokens * kBytes;
    for (std::size_t d = 0; d < job.value_dim; d += 16, scratch += Held::kParts * kTileBytes) {
      to[d / 64 * 32 + d / 16 % 4] = {scratch, 64, 0};
      const std::size_t dims = job.value_dim - d < 16 ? job.value_dim - d : 16;
      alignas(64) std::byte rows[kTileRows * kRowBytes] = {};
      for (std::size_t key = first / Held::kPair * Held::kPair; key < last; key += Held::kPair) {
        const std::byte* from =
            page(position + key) + job.v_offset + d / Held::kPair * stride + slot(position + key) * kBytes;
        std::byte* row = rows + key / Held::kPair * kRowBytes;
        for (std::size_t i = 0; i < dims; i += Held::kPair, from += stride, row += Held::kPair * kBytes) {
          turn_round(from, key >= first, key + 1 < last, row);
        }
      }
      for (std::size_t i = 0; i < kTileRows; ++i) {
        std::byte* high = scratch + i * 64;
        Held::expand(rows + i * kRowBytes, high, high + kTileBytes);
      }
    }
  }

  // Returns true if the values of the tokens [first, last) are all finite. A false may be wrong: the function may read the token just
  // before or just after this range too, and return false because of it.
  [[nodiscard]] bool values_finite(std::uint64_t first, std::uint64_t last) const {
    if constexpr (Held::kScales) {
      return true;
    } else {
      const std::size_t elements = job.value_dim * Held::kPair;
      decltype(Held::magnitude(nullptr)) top = 0;
      if (job.values_in_keys) {
        constexpr std::size_t kBytes = Held::kPair * Held::kElement;
        for (std::uint64_t position = first; position < last; ++position) {
          const std::byte* at = page(position) + job.v_offset + slot(position) * kBytes;
          for (std::size_t d = 0; d < job.value_dim; d += Held::kPair, at += job.page_tokens * kBytes) {
            for (std::size_t i = 0; i < Held::kPair && d + i < job.value_dim; ++i) {
              const auto size = Held::magnitude(at + i * Held::kElement);
              top = size > top ? size : top;
            }
          }
        }
        return top < Held::kInfinity;
      }
      for (std::uint64_t position = first / Held::kPair * Held::kPair; position < last; position += Held::kPair) {
        const std::byte* at = value(position);
        for (std::size_t i = 0; i < elements; ++i) {
          const auto size = Held::magnitude(at + i * Held::kElement);
          top = size > top ? size : top;
        }
      }
      return top < Held::kInfinity;
    }
  }

 private:
  template <class OffsetOf>
  [[gnu::always_inline]] void load_scales(std::uint64_t chunk, std::size_t first, std::size_t last, std::size_t distance,
                                          OffsetOf offset_of, float* to) const {
    const std::size_t offset = offset_of(*this), step = job.page_tokens;
    for (std::size_t key = first / step * step; key < last; key += step) {
      const std::byte* here = page(chunk * kChunk + key) + offset;
      const Later at = later(chunk * kChunk + key, distance);
      const Operands there{at.job};
      const std::byte* then = there.page(at.position) + offset_of(there);
      for (std::size_t i = 0; i < step; i += 16) {
        store(to + key + i, load<U32x16>(here + i * 4));
        ask_for(then + i * 4);
      }
    }
  }

  // Expands 32 dimensions of 16 keys in INT4 to a tile. Each byte has a number of row r and one of row 8 + r of the tile.
  TESSERA_INLINE void expand_keys(const std::byte* from, const std::byte* ahead, std::size_t stride, std::byte* tile) {
    const F32x16Pair multipliers = floats_of_bytes(from + 8 * stride);
    const F32x16Pair low{multipliers.even, multipliers.even}, high{multipliers.odd, multipliers.odd};
    ask_for(ahead + 8 * stride);
    for (std::size_t row = 0; row < 8; ++row) {
      bf16_of_nibbles(from + row * stride, low, high, tile + row * 64, tile + (row + 8) * 64);
      ask_for(ahead + row * stride);
    }
  }
  // Expands the values of two tokens in INT4 to one row of each tile. (Each tile has 16 dimensions.)
  [[gnu::always_inline]] void expand_values(const std::byte* from, const std::byte* ahead, std::byte* row) const {
    alignas(64) std::byte none[64];
    for (std::size_t d = 0; d < job.value_dim; d += 32, row += 2 * kTileBytes, from += 36, ahead += 36) {
      F32x16Pair low, high;
      multipliers_of(from + 32, low, high);
      ask_for(ahead);
      bf16_of_nibbles(from, low, high, row, job.value_dim - d > 16 ? row + kTileBytes : none);
    }
  }

  // Transposes the 2 x 2 numbers at `from`, [2 keys][2 dimensions], to [2 dimensions][2 keys] at `to`. If `first` is false, writes zeros
  // for the first key; if `second` is false, for the second key. (The job does not see these keys.) F32 is not stored in pairs:
  // one number is copied.
  TESSERA_INLINE void turn_round(const std::byte* from, bool first, bool second, std::byte* to) {
    if constexpr (Held::kPair == 1) {
      __builtin_memcpy(to, from, Held::kElement);
    } else {
      std::uint16_t two[4];
      __builtin_memcpy(two, from, sizeof two);
      const std::uint16_t turned[4] = {first ? two[0] : std::uint16_t{0}, second ? two[2] : std::uint16_t{0},
                                       first ? two[1] : std::uint16_t{0}, second ? two[3] : std::uint16_t{0}};
      __builtin_memcpy(to, turned, sizeof turned);
    }
  }
  TESSERA_INLINE void zero(std::byte* row) {
    for (std::size_t part = 0; part < Held::kParts; ++part) store(row + part * kTileBytes, U32x16{});
  }
  TESSERA_INLINE void expand_some(const std::byte* from, std::size_t lanes, std::byte* high) {
    std::byte whole[kRowBytes] = {};
    __builtin_memcpy(whole, from, lanes * Held::kPair * Held::kElement);
    Held::expand(whole, high, high + kTileBytes);
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
