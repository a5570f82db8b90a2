// Family int8 over superblocks of 256, many rows. Sub-scale times integer has up to 13 bits: two planes of bytes, 256 h
// + l, h signed, l not. A superblock of a panel gives three tiles: exact dots with l and with h over all 256, and the
// sum of minima times sums of activations, as a product of bf16 (all numbers below 2^8 times a power of two, so exact
// as well). These are stored while the next superblock is multiplied, then added up as vectors: 16 rows x 16 outputs.
#include "cpu/kernels/amx/prefetch.hpp"
#include "cpu/kernels/amx/products.hpp"
#include "cpu/kernels/amx/row_tiles.hpp"
#include "cpu/kernels/amx/tiles.hpp"
#include "cpu/kernels/amx/unpack.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

// Superblocks unpacked at a time: 32 KB of B tiles. Few row tiles do not make up for tiles that L1 has lost to the
// packed weights by the time they are read: then fewer.
constexpr std::size_t kChunk = 4, kFewChunk = 2;
constexpr std::size_t kFewTiles = 16;  // of rows
constexpr std::size_t kMaxRows = 512;
constexpr std::size_t kTaskPanels = 16;       // what gathering the rows' parts is spread over; their sums wait in L2
constexpr std::size_t kSpanValues = 1 << 20;  // activations that go over all panels before the next: they stay in L2
constexpr std::size_t kSpanBlocks = 64;

constexpr std::size_t span_blocks(std::size_t rows) {
  return least(kSpanValues / 256 / rows / kChunk * kChunk, kSpanBlocks);
}

// What a row tile has beside its q, a superblock.
struct alignas(64) RowParts {
  float scale[kTileRows];
  std::byte sums[kTileRows + 2][32];  // A tile: eight sums' low parts, eight high parts times 128, bf16; then zeros
};

struct alignas(64) Superblock {
  std::byte low[4][kTileBytes], high[4][kTileBytes];  // B tiles of 64 k
  std::byte min[kTileBytes];                          // B tile: the minima of 8 k twice, then 16 k of zeros
  float d[kPanel], dmin[kPanel];
};

struct alignas(64) Dots {
  std::int32_t low[kTileRows][kPanel], high[kTileRows][kPanel];
  float min[kTileRows][kPanel];
};

struct alignas(64) Scratch {
  Superblock weights[kChunk];
  Dots dots[2];
  float sums[kTaskPanels][kMaxRows][kPanel];  // between chunks
  RowParts rows[(kSpanValues / 256 / kTileRows + kSpanBlocks) * 3 / 2];  // [tile][superblock]
};

// A row tile on its way over the superblocks of a chunk.
struct Pass {
  const std::byte* a;  // q of its first row, at the chunk's first superblock
  std::size_t a_line;  // bytes from 64 k to the next
  const RowParts* rows;
  std::size_t blocks;
  std::size_t valid;  // rows
  float* sums;  // so far, in scratch
  const Output* output;  // where they go after the last chunk, else null
  float* out;
  std::size_t out_stride;
  __mmask16 outputs;
  bool first;  // chunk of these outputs
};

// Tile registers: 0 to 5 dots (low, high, min), two rounds; 6 activations; 7 weights. All tiles have rows of 64 bytes:
// a row of sums, which has 32, runs on into the next row's, and meets zeros there.
template <int kRound, bool kMin>
[[gnu::always_inline]] inline void multiply(const Pass& pass, const Scratch& scratch, std::size_t block,
                                            Prefetch& next) noexcept {
  constexpr int c = 3 * kRound;
  const Superblock& weights = scratch.weights[block];
  tile_zero<c>();
  tile_zero<c + 1>();
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    next.step();
    tile_load_once<6>(pass.a + (4 * block + i) * pass.a_line, 64);
    tile_load<7>(weights.low[i], 64);
    tile_add_unsigned<c, 6, 7>();
    tile_load<7>(weights.high[i], 64);
    tile_add_signed<c + 1, 6, 7>();
  }
  if constexpr (kMin) {
    tile_zero<c + 2>();
    tile_load<6>(pass.rows[block].sums, 32);
    tile_load<7>(weights.min, 64);
    tile_add_bf16<c + 2, 6, 7>();
  }
}

template <int kRound, bool kMin>
[[gnu::always_inline]] inline void store_dots(Dots& dots) noexcept {
  tile_store<3 * kRound>(dots.low, 64);
  tile_store<3 * kRound + 1>(dots.high, 64);
  if constexpr (kMin) tile_store<3 * kRound + 2>(dots.min, 64);
}

template <std::size_t kRows, bool kMin>
[[gnu::always_inline]] inline void drain(const Pass& pass, const Scratch& scratch, const Dots& dots, std::size_t block,
                                         __m512 (&sums)[kRows]) noexcept {
  const RowParts& rows = pass.rows[block];
  const __m512 d = _mm512_load_ps(scratch.weights[block].d);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
    const __m512i high = _mm512_slli_epi32(_mm512_load_si512(dots.high[r]), 8);
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_load_si512(dots.low[r])));
    const __m512 scale = _mm512_set1_ps(rows.scale[r]);
    sums[r] = _mm512_fmadd_ps(dot, _mm512_mul_ps(d, scale), sums[r]);
    if constexpr (kMin) {
      const __m512 dmin = _mm512_load_ps(scratch.weights[block].dmin);
      sums[r] = _mm512_fnmadd_ps(_mm512_load_ps(dots.min[r]), _mm512_mul_ps(dmin, scale), sums[r]);
    }
    asm volatile("" ::: "memory");  // else loads move ahead and sums out of registers
  }
}

// kRows: the tile's rows, rounded up to a number that there is code for.
template <std::size_t kRows, bool kMin>
[[gnu::noinline]] void run_pass(const Pass& pass, Scratch& scratch, Prefetch& next) noexcept {
  __m512 sums[kRows];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
    sums[r] = _mm512_maskz_load_ps(!pass.first && r < pass.valid ? 0xffff : 0, pass.sums + r * kPanel);
  }
  std::size_t block = 0;
  for (; block + 2 <= pass.blocks; block += 2) {
    multiply<0, kMin>(pass, scratch, block, next);
    if (block != 0) {
      store_dots<1, kMin>(scratch.dots[1]);
      drain<kRows, kMin>(pass, scratch, scratch.dots[1], block - 1, sums);
    }
    multiply<1, kMin>(pass, scratch, block + 1, next);
    store_dots<0, kMin>(scratch.dots[0]);
    drain<kRows, kMin>(pass, scratch, scratch.dots[0], block, sums);
  }
  const bool odd = block < pass.blocks;
  if (odd) multiply<0, kMin>(pass, scratch, block, next);
  if (block != 0) {
    store_dots<1, kMin>(scratch.dots[1]);
    drain<kRows, kMin>(pass, scratch, scratch.dots[1], block - 1, sums);
  }
  if (odd) {
    store_dots<0, kMin>(scratch.dots[0]);
    drain<kRows, kMin>(pass, scratch, scratch.dots[0], block, sums);
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
    if (r >= pass.valid) break;
    if (pass.output != nullptr) {
      pass.output->put(pass.out + r * pass.out_stride, pass.outputs, sums[r]);
    } else {
      _mm512_store_ps(pass.sums + r * kPanel, sums[r]);
    }
  }
}

template <bool kMin>
[[gnu::always_inline]] inline void run_pass(std::size_t rows, const Pass& pass, Scratch& scratch,
                                            Prefetch& next) noexcept {
  switch ((rows + 1) / 2) {
    case 1:
    case 2:
    case 3:
    case 4:
      return run_pass<8, kMin>(pass, scratch, next);
    case 5:
      return run_pass<10, kMin>(pass, scratch, next);
    case 6:
      return run_pass<12, kMin>(pass, scratch, next);
    case 7:
      return run_pass<14, kMin>(pass, scratch, next);
    default:
      return run_pass<16, kMin>(pass, scratch, next);
  }
}

// The B tiles and scales of a superblock.
template <FormLayout kLayout>
void unpack(const std::byte* tile, Superblock& to) noexcept {
  constexpr std::size_t kSubBlocks = kLayout.bits == 6 ? 16 : 8;
  const SubScales<kLayout> scales(tile);
  __m512i twice[kSubBlocks];  // a scale in both halves of a lane
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    const __m512i scale = scales.scale(j);
    twice[j] = _mm512_mask_blend_epi16(0xaaaaaaaau, scale, _mm512_slli_epi32(scale, 16));
  }
  const __m512i low_byte = _mm512_set1_epi16(255), offset = _mm512_set1_epi16(static_cast<short>(kLayout.offset));
  unpack_block256<kLayout>(tile, [&](std::size_t g, __m512i q) {
    const __m512i scale = twice[g / (64 / kSubBlocks)];
    __m512i even = _mm512_and_si512(q, low_byte), odd = _mm512_srli_epi16(q, 8);
    if constexpr (kLayout.offset != 0) even = _mm512_sub_epi16(even, offset), odd = _mm512_sub_epi16(odd, offset);
    even = _mm512_mullo_epi16(even, scale);
    odd = _mm512_mullo_epi16(odd, scale);
    const __m512i low = _mm512_ternarylogic_epi32(low_byte, even, _mm512_slli_epi16(odd, 8), 0xca);
    const __m512i high = _mm512_ternarylogic_epi32(low_byte, _mm512_srli_epi16(even, 8), odd, 0xca);
    _mm512_store_si512(to.low[0] + 64 * g, low);
    _mm512_store_si512(to.high[0] + 64 * g, high);
  });
  _mm512_store_ps(to.d, load_f16(tile + kLayout.d_at));
  if constexpr (kLayout.has_min) {
    _mm512_store_ps(to.dmin, load_f16(tile + kLayout.min_at));
    for (std::size_t j = 0; j < 8; j += 2) {  // integers below 64: their bf16 are the top halves of their f32
      const __m512i even = _mm512_castps_si512(_mm512_cvtepi32_ps(scales.min(j)));
      const __m512i odd = _mm512_castps_si512(_mm512_cvtepi32_ps(scales.min(j + 1)));
      const __m512i pair = _mm512_or_si512(odd, _mm512_srli_epi32(even, 16));
      _mm512_store_si512(to.min + 32 * j, pair);
      _mm512_store_si512(to.min + 256 + 32 * j, pair);
      _mm512_store_si512(to.min + 512 + 32 * j, _mm512_setzero_si512());
      _mm512_store_si512(to.min + 768 + 32 * j, _mm512_setzero_si512());
    }
  }
}

// What the rows have beside their q: [tile][superblock].
template <bool kMin>
void gather_parts(const LinearJob& job, const RowTiles& tiles, std::size_t first, std::size_t blocks,
                  Scratch& scratch) noexcept {
  const RowLayout layout = row_layout(InputForm::int8x256, job.inputs);
  const RowLanes rows(tiles.rows);
  const __m512 weight = _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(1), _mm512_set1_ps(128));
  for (std::size_t tile = 0; tile < tiles.count; ++tile) {
    for (std::size_t block = 0; block < blocks; ++block) {
      RowParts& to = scratch.rows[tile * blocks + block];
      _mm512_store_ps(to.scale, rows.gather(tiles.at(tile, layout.scales + 4 * (first + block))));
      if constexpr (!kMin) continue;
      const std::byte* parts = tiles.at(tile, layout.parts + 16 * (first + block));
      for (std::size_t r = 0; r < kTileRows + 2; ++r) {
        __m512 values = _mm512_setzero_ps();
        if (r < tiles.rows) {
          const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(parts + r * 64));
          values = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)), weight);
        }
        const __m512i halves = _mm512_srli_epi32(_mm512_castps_si512(values), 16);  // exact: bf16 are the top halves
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.sums[r]), _mm512_cvtepi32_epi16(halves));
      }
    }
  }
}

template <PackedForm kForm>
void linear(const LinearJob& job) noexcept {
  constexpr FormLayout kLayout = form_layout(kForm);
  Scratch& scratch = *reinterpret_cast<Scratch*>(job.scratch);
  const RowTiles tiles(job);
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 7; ++tile) shapes.set(tile, tiles.rows, 64);
  shapes.set(7, kTileRows, 64);
  const Tiles configured(shapes);
  const Output output(job);

  // Groups of panels over spans of the inputs: sums of a group wait in scratch, and what a group's rows need is made anew.
  const std::size_t all = job.inputs / 256, most = span_blocks(job.rows);
  const std::size_t chunk = tiles.count <= kFewTiles ? kFewChunk : kChunk;
  for (std::size_t group = 0, span = 0; group < job.panels;) {
    const std::size_t group_end = least(group + kTaskPanels, job.panels);
    const std::size_t span_size = least(most, all - span), span_end = span + span_size;
    if (most < all || group == 0) gather_parts<kLayout.has_min>(job, tiles, span, span_size, scratch);
    for (std::size_t panel = group; panel < group_end; ++panel) {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      auto* sums = scratch.sums[most < all ? panel - group : 0];
      Pass pass{};
      pass.a_line = tiles.line;
      pass.outputs = lanes(job.outputs - panel * kPanel);
      pass.out_stride = job.out_stride;
      for (std::size_t begin = span; begin < span_end; begin += chunk) {
        pass.blocks = least(chunk, span_end - begin);
        pass.first = begin == 0;
        pass.output = begin + pass.blocks == all ? &output : nullptr;
        const std::byte* from = weights + begin * kLayout.tile_bytes;
        for (std::size_t block = 0; block < pass.blocks; ++block) {
          unpack<kLayout>(from + block * kLayout.tile_bytes, scratch.weights[block]);
        }
        // While this chunk is multiplied the next comes: of this panel, of the next one, of the group's next span.
        const std::byte* ahead = begin + pass.blocks < span_end ? from + pass.blocks * kLayout.tile_bytes
                                 : panel + 1 < group_end || span_end == all
                                     ? weights + job.panel_bytes + span * kLayout.tile_bytes
                                     : job.weights + group * job.panel_bytes + span_end * kLayout.tile_bytes;
        Prefetch next(ahead, least(chunk, span_size) * kLayout.tile_bytes, tiles.count * pass.blocks * 4);
        for (std::size_t tile = 0; tile < tiles.count; ++tile) {
          const std::size_t row = tiles.first(tile);
          pass.a = tiles.at(tile, begin * 256);
          pass.rows = scratch.rows + tile * span_size + (begin - span);
          pass.valid = tiles.size(tile);
          pass.sums = sums[row];
          pass.out = job.out + row * job.out_stride + panel * kPanel;
          run_pass<kLayout.has_min>(tiles.rows, pass, scratch, next);
        }
      }
    }
    span = span_end < all ? span_end : 0;
    if (span == 0) group = group_end;
  }
}

template <PackedForm kForm>
void add(Kernels& kernels) noexcept {
  LinearPair& pair = kernels.product(Family::int8, kForm);
  pair.many = {linear<kForm>, "tiles of int8", kMaxRows, kTaskPanels, sizeof(Scratch), kTileRows};
  pair.many_from = 7;  // measured against VNNI
}

}  // namespace

void add_int8_block256(Kernels& kernels) noexcept {
  add<PackedForm::block256_4>(kernels);
  add<PackedForm::block256_5>(kernels);
  add<PackedForm::block256_6>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
