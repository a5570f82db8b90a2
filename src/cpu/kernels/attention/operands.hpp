// K and V as products read them: tiles of 32 along the sum and 16 lanes. Of pairs (of 8 or 16 bits) a tile is [16][16][2],
// of f32 [32][16]; a stride leads from one of those rows to the next. What lies in a page that way is read where it lies,
// what is odd, cut off or not written is copied to scratch, with zeros in its place. For many queries elements are
// expanded there too, once for all of them: into bf16, F16 into two parts of that, or into f32, where one part has the
// even rows of a tile of 32 and one the odd. INT4 is expanded for few as well, two rows at a time.
#pragma once

#include "cpu/attention/attention_job.hpp"
#include "cpu/kernels/attention/softmax.hpp"
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

using Tile = KvTile;

inline constexpr std::size_t kPartBytes = 1024;  // of a tile in two parts

// How keys or values are held: `expand` makes one row of a tile, 16 lanes times kPair, of elements that lie side by side.
// kPartsAreRows: of a pair one element is in each part, else both are in all. kRotates: what is held is rotated
// (kv/rotation.hpp). kRun: numbers that are expanded together, into two rows (HeldInt4); 1: it is as said.
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

// F16 as two bf16.
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

// F16 as floats, lanes in the order of load_f16_pairs().
struct HeldF16AsFloats : HeldElements<std::uint16_t, 0x7c00u, false> {
  static constexpr std::size_t kParts = 2;
  static constexpr bool kPartsAreRows = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* even, std::byte* odd) {
    const F32x16Pair pair = load_f16_pairs(from);
    store(even, pair.even);
    store(odd, pair.odd);
  }
};

// INT8 as it lies: rows of 32 bytes.
struct HeldBytes {
  static constexpr std::size_t kPair = 2, kElement = 1, kParts = 1;
  static constexpr bool kScales = true, kRotates = true, kExpands = false, kPartsAreRows = false;
  static constexpr std::size_t kRun = 1;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { __builtin_memcpy(to, from, 32); }
};

// INT8 as bf16, which holds 8 bits exactly.
struct HeldInt8 : HeldBytes {
  static constexpr bool kExpands = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, bf16_of_bytes(from)); }
};

// FP8 as bf16, which holds it exactly; of 1/256 of its size, as its scale wants it (kv/codecs/fp8.hpp).
struct HeldFp8 : HeldBytes {
  static constexpr bool kRotates = false, kExpands = true;
  TESSERA_INLINE void expand(const std::byte* from, std::byte* to, std::byte*) { store(to, bf16_of_fp8(from)); }
};

// INT4 (kv/codecs/int4.hpp): 32 bytes are two rows of numbers, whose multipliers lie elsewhere. As bf16, which holds their
// products exactly.
struct HeldInt4 : HeldBytes {
  static constexpr bool kExpands = true;
  static constexpr std::size_t kRun = 32, kRunElements = 18;
};

// Elements of a head of so many dimensions.
template <class Held>
[[nodiscard, gnu::always_inline]] constexpr std::size_t held_elements(std::size_t dim) noexcept {
  if constexpr (Held::kRun == 1) return dim;
  else return (dim + Held::kRun - 1) / Held::kRun * Held::kRunElements;
}

// A job's keys, or its values.
template <class Held>
struct Operands {
  static constexpr std::size_t kTileRows = 32 / Held::kPair;
  static constexpr std::size_t kTileBytes = kTileRows * 64;         // of one part
  static constexpr std::size_t kRowBytes = 16 * Held::kPair * Held::kElement;  // of 16 lanes in a page

  const AttendJob& job;
  int page_bits;                         // page_tokens is a power of two, and dividing takes long
  std::size_t held_keys, held_values;    // elements of a head
  std::size_t keys_ahead, values_ahead;  // from the key or value that is read to what is asked for

  [[gnu::always_inline]] explicit Operands(const AttendJob& of) noexcept
      : job(of), page_bits(__builtin_ctzll(of.page_tokens)), held_keys(held_elements<Held>(of.key_dim)),
        held_values(held_elements<Held>(of.value_dim)), keys_ahead(ahead(held_keys)), values_ahead(ahead(held_values)) {}

  [[nodiscard, gnu::always_inline]] const std::byte* page(std::uint64_t position) const {
    return job.pages[position >> page_bits];
  }
  [[nodiscard, gnu::always_inline]] std::size_t slot(std::uint64_t position) const {
    return position & (job.page_tokens - 1);
  }
  // The first pair of dimensions at a key.
  [[nodiscard, gnu::always_inline]] const std::byte* key(std::uint64_t position) const {
    return page(position) + job.k_offset + slot(position) * Held::kPair * Held::kElement;
  }
  // Of the pair of keys that `position` is in.
  [[nodiscard, gnu::always_inline]] const std::byte* value(std::uint64_t position) const {
    return page(position) + job.v_offset + slot(position) / Held::kPair * Held::kPair * held_values * Held::kElement;
  }
  // Scales lie behind a page's elements.
  [[nodiscard, gnu::always_inline]] std::size_t key_scales() const {
    return job.k_offset + (held_keys + 1) / 2 * 2 * job.page_tokens;
  }
  [[nodiscard, gnu::always_inline]] std::size_t value_scales() const {
    return job.v_offset + held_values * job.page_tokens;
  }

  [[nodiscard, gnu::always_inline]] bool keys_in_place() const {
    return !Held::kExpands && (Held::kPair == 1 || job.key_dim % 32 == 0);
  }

  // What is asked for while few queries read keys from `position` on: those further on, at the end the next job's first
  // ones, or what is read. Pages lie anywhere, hardware does not foresee them. A row at a time, while rows are expanded
  // or multiplied: many requests at once would be waited for. Tiles (AMX) do not ask for what they read in place, which
  // has not been measured.
  static constexpr std::size_t kAheadBytes = 16 * 1024;  // half of a first level and less; measured on Zen 5
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
    // At `end` this job's keys are no longer worth asking for. There the next job's are asked for from `start` on: the
    // first group of keys that it takes and sees all of.
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
  TESSERA_INLINE std::ptrdiff_t distance(const std::byte* from, const std::byte* to) {  // of any two pages
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from));
  }

  // The scales of a chunk's keys [first, last), or of their values, those of whole pages.
  void load_key_scales(std::uint64_t chunk, std::size_t first, std::size_t last, float* to) const {
    load_scales(chunk, first, last, keys_ahead, [](const Operands& of) TESSERA_LAMBDA { return of.key_scales(); }, to);
  }
  void load_value_scales(std::uint64_t chunk, std::size_t first, std::size_t last, float* to) const {
    load_scales(chunk, first, last, values_ahead, [](const Operands& of) TESSERA_LAMBDA { return of.value_scales(); }, to);
  }

  // Tiles of the 16 keys from `position` on, one of each 32 dimensions: to[0], to[step], ...
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

  // Tiles of the 32 keys from `position` on, one of each 16 dimensions: [value_dim / 64][8][4] at `to`, of which the 8
  // are groups of keys. Keys outside of [first, last) count as zeros.
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
      if (Held::kPair == 2 && (key < first || key + 1 >= last)) {  // one of the two
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

  // The same of values in keys, whose lanes are keys: 16 dimensions at a time are turned round.
  [[gnu::noinline]] void load_values_in_keys(std::uint64_t position, std::size_t first, std::size_t last, std::byte* scratch,
                                             Tile* to) const {
    constexpr std::size_t kBytes = Held::kPair * Held::kElement;  // of the dimensions of a key that lie side by side
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

  // Whether the values of keys [first, last) are all finite; it may say no for a key beside them.
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

  // A run of 16 keys: a tile of 32 dimensions, of which row r and row 8 + r lie in the same bytes.
  TESSERA_INLINE void expand_keys(const std::byte* from, const std::byte* ahead, std::size_t stride, std::byte* tile) {
    const F32x16Pair multipliers = floats_of_bytes(from + 8 * stride);
    const F32x16Pair low{multipliers.even, multipliers.even}, high{multipliers.odd, multipliers.odd};
    ask_for(ahead + 8 * stride);
    for (std::size_t row = 0; row < 8; ++row) {
      bf16_of_nibbles(from + row * stride, low, high, tile + row * 64, tile + (row + 8) * 64);
      ask_for(ahead + row * stride);
    }
  }
  // A pair of values: a row of each tile of 16 dimensions.
  [[gnu::always_inline]] void expand_values(const std::byte* from, const std::byte* ahead, std::byte* row) const {
    alignas(64) std::byte none[64];
    for (std::size_t d = 0; d < job.value_dim; d += 32, row += 2 * kTileBytes, from += 36, ahead += 36) {
      F32x16Pair low, high;
      multipliers_of(from + 32, low, high);
      ask_for(ahead);
      bf16_of_nibbles(from, low, high, row, job.value_dim - d > 16 ? row + kTileBytes : none);
    }
  }

  // Of pairs: two dimensions of one key, then of the next one, become two keys of one dimension, then of the next one. A
  // key that does not count becomes zeros.
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
