// Matrix products of family int8 with AMX, for weights in blocks of 32 (Q8_0, Q4_0, IQ4_NL, MXFP4 and others) and many rows. Two panels
// are multiplied at a time. Some blocks of the two panels are unpacked into B tiles (tiles.hpp), and then all row tiles are multiplied by
// them. The product of a row tile and a block gives two tiles of exact dot products (integers), one for each panel. They are stored while
// the next block is multiplied, and then scaled and added to the sums: up to 14 rows x 32 outputs, in 28 of the 32 vector registers.
//
// How a dot product becomes a float. Measured on Sapphire Rapids: while the tile unit works, only one vector unit computes 512-bit
// products, fused products and conversions; additions and bit operations still have two units. Each dot product needs this one unit
// twice: its two scales (of the weights and of the row) are multiplied by each other, and the dot product by the result. Converting it
// would need the unit a third time. So the integer is turned into a float by an addition. For this, a tile of results starts from the
// bits of the float 1.5 * 2^23 instead of 0. Adding an integer to these bits gives the bits of the float 1.5 * 2^23 + integer, and
// subtracting 1.5 * 2^23 gives the integer as a float. But loading this constant into a tile takes time too. In forms with minima both
// panels' tiles start from the constant. In forms without minima only the first panel's tile does; the second panel's tile starts from 0,
// and its dot products are converted.
#include "cpu/kernels/amx/prefetch.hpp"
#include "cpu/kernels/amx/products.hpp"
#include "cpu/kernels/amx/row_tiles.hpp"
#include "cpu/kernels/amx/tiles.hpp"
#include "cpu/kernels/amx/unpack.hpp"
#include "cpu/kernels/products/open_lanes.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace int8_block32 {
namespace {

constexpr std::size_t kPair = 2;    // panels that are multiplied at a time
// Blocks of each panel that are unpacked at a time: kChunk, 24, which are 24 KB of B tiles; kFewChunk, 8, if there are at most kFewTiles
// row tiles. The reason: while weights are unpacked, the packed weights push some of the B tiles out of L1 before they are read. Fewer
// blocks lose less, and few row tiles read the B tiles too seldom to make up for the loss.
constexpr std::size_t kChunk = 24, kFewChunk = 8;
constexpr std::size_t kFewTiles = 7;          // row tiles that count as few, at most
constexpr std::size_t kMaxTile = 14;          // rows of a row tile, at most
constexpr std::size_t kMaxRows = 37 * kMaxTile;
constexpr std::size_t kTaskPanels = 16;       // panels of a group, for which the rows' scales are gathered once; their sums wait in L2
constexpr float kZero = 0x1.8p23f;            // adding an integer to the bits of this float adds it to the value
constexpr std::size_t kSpanValues = 1 << 20;  // activations of a span, which all panels of a group multiply: they stay in L2
constexpr std::size_t kSpanBlocks = 512;

// Returns the blocks of a span for `rows` rows: an even number, since a line of activations has two blocks.
constexpr std::size_t span_blocks(std::size_t rows) { return least(kSpanValues / 32 / rows / 2 * 2, kSpanBlocks); }

// The number of floats that a row tile has for one block: the scales of 16 rows, and in forms with minima also the sums of their q.
template <bool kMin>
inline constexpr std::size_t kBlockScales = kMin ? 2 * kTileRows : kTileRows;

struct alignas(64) Scratch {
  std::byte b[kChunk][kPair][512];
  float d[kChunk][kPair][kPanel];
  float m[kChunk][kPair][kPanel];
  float zeros[kTileRows][kPanel];
  float dots[2][kPair][kTileRows][kPanel];
  float sums[kTaskPanels / kPair][kMaxRows][kPair][kPanel];  // sums between chunks
  float rows[(kSpanValues / 32 / kTileRows + kSpanBlocks) * 3 / 2 * kBlockScales<true>];  // [tile][block][kBlockScales]
};

// The arguments for multiplying one row tile by the blocks of a chunk.
struct Pass {
  const std::byte* a;  // q of the tile's first row, at the chunk's first block
  std::size_t a_line;  // bytes from one pair of blocks to the next pair
  const float* rows;   // [block][kBlockScales]
  std::size_t blocks;
  std::size_t valid;  // rows that the tile has
  float* sums;  // sums so far, in scratch
  const Output* output;  // stores the outputs, if the chunk is the last one; else null
  float* out;
  std::size_t out_stride;
  __mmask16 outputs[kPair];
  bool first;  // true: these outputs have no sums yet
};

// true: the dot products of panel kOf (0 or 1) of a pair are integers. false: they are floats, kZero plus the dot product.
template <int kOf, bool kMin>
inline constexpr bool kConverted = kOf == 1 && !kMin;

// Multiplies a block of panel kOf by the row tile. Even blocks belong to round 0, odd blocks to round 1 (see round()). The two rounds
// have registers of their own, so that one block's results can be stored while the next block is multiplied. Tile registers: 0 and 1 the
// dot products of round 0 (one register for each panel), 2 and 3 those of round 1; 4 activations; 6 and 7 weights.
template <int kRound, int kOf, bool kMin>
[[gnu::always_inline]] inline void multiply(const Pass& pass, const Scratch& scratch, std::size_t block,
                                            Prefetch (&next)[kPair]) noexcept {
  constexpr int c = 2 * kRound + kOf;
  next[kOf].template step<3>();
  if constexpr (kConverted<kOf, kMin>) {
    tile_zero<c>();
  } else {
    tile_load<c>(scratch.zeros, 64);
  }
  if constexpr (kOf == 0) tile_load<4>(pass.a + block / 2 * pass.a_line + 32 * kRound, 64);
  tile_load<6 + kOf>(scratch.b[block][kOf], 64);
  tile_add_signed<c, 4, 6 + kOf>();
}

template <int kRound, bool kMin>
[[gnu::always_inline]] inline void multiply(const Pass& pass, const Scratch& scratch, std::size_t block,
                                            Prefetch (&next)[kPair]) noexcept {
  multiply<kRound, 0, kMin>(pass, scratch, block, next);
  multiply<kRound, 1, kMin>(pass, scratch, block, next);
}

template <int kRound, int kOf>
[[gnu::always_inline]] inline void store_dots(Scratch& scratch) noexcept {
  tile_store<2 * kRound + kOf>(scratch.dots[kRound][kOf], 64);
}

template <int kRound>
[[gnu::always_inline]] inline void store_dots(Scratch& scratch) noexcept {
  store_dots<kRound, 0>(scratch);
  store_dots<kRound, 1>(scratch);
}

// Keeps the compiler from moving loads across this call. If the loads were moved up, no registers would be left for the sums.
[[gnu::always_inline]] inline void keep_order() noexcept { asm volatile("" ::: "memory"); }

// Scales the dot products of rows [kFrom, kTo) with a block of panel kOf, and adds them to the rows' sums.
template <int kRound, int kOf, std::size_t kFrom, std::size_t kTo, std::size_t kRows, bool kMin>
[[gnu::always_inline]] inline void drain(const Pass& pass, const Scratch& scratch, std::size_t block,
                                         __m512 (&sums)[kRows][kPair]) noexcept {
  const float* scales = pass.rows + block * kBlockScales<kMin>;
  asm("" : "+r"(scales));  // keeps the pointer in a register; else g++ computes addresses for each row
  const __m512 zero = _mm512_set1_ps(kZero), d = _mm512_load_ps(scratch.d[block][kOf]);
#pragma GCC unroll 16
  for (std::size_t r = kFrom; r < kTo; ++r) {
    const float* dots = scratch.dots[kRound][kOf][r];
    const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(scales[r]));
    if constexpr (kConverted<kOf, kMin>) {
      sums[r][kOf] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dots)), scale, sums[r][kOf]);
    } else {
      sums[r][kOf] = _mm512_fnmadd_ps(_mm512_sub_ps(zero, _mm512_load_ps(dots)), scale, sums[r][kOf]);
    }
    keep_order();
  }
  if constexpr (kMin) {
    const __m512 m = _mm512_load_ps(scratch.m[block][kOf]);
#pragma GCC unroll 16
    for (std::size_t r = kFrom; r < kTo; ++r) {
      const __m512 scale = _mm512_mul_ps(m, _mm512_set1_ps(scales[r]));
      sums[r][kOf] = _mm512_fmadd_ps(_mm512_set1_ps(scales[kTileRows + r]), scale, sums[r][kOf]);
      keep_order();
    }
  }
}

template <int kRound, std::size_t kRows, bool kMin>
[[gnu::always_inline]] inline void drain(const Pass& pass, const Scratch& scratch, std::size_t block,
                                         __m512 (&sums)[kRows][kPair]) noexcept {
  drain<kRound, 0, 0, kRows, kRows, kMin>(pass, scratch, block, sums);
  drain<kRound, 1, 0, kRows, kRows, kMin>(pass, scratch, block, sums);
}

// Does one step of a pipeline: multiplies a block, stores the dot products of the block before it, and adds up the dot products of the block
// before that one. The three operations are cut into pieces that alternate, so that the tile unit and the vector units work at the same
// time. (Longer pieces would not overlap, because a core looks only a limited number of instructions ahead.)
template <int kRound, std::size_t kRows, bool kMin>
[[gnu::always_inline]] inline void round(const Pass& pass, Scratch& scratch, std::size_t block,
                                         __m512 (&sums)[kRows][kPair], Prefetch (&next)[kPair]) noexcept {
  constexpr std::size_t kHalf = kRows / 2;
  multiply<kRound, 0, kMin>(pass, scratch, block, next);
  drain<kRound, 0, 0, kHalf, kRows, kMin>(pass, scratch, block - 2, sums);
  store_dots<1 - kRound, 0>(scratch);
  drain<kRound, 0, kHalf, kRows, kRows, kMin>(pass, scratch, block - 2, sums);
  multiply<kRound, 1, kMin>(pass, scratch, block, next);
  drain<kRound, 1, 0, kHalf, kRows, kMin>(pass, scratch, block - 2, sums);
  store_dots<1 - kRound, 1>(scratch);
  drain<kRound, 1, kHalf, kRows, kRows, kMin>(pass, scratch, block - 2, sums);
}

// Does a pass: multiplies one row tile by the unpacked blocks of two panels, and adds up the results. kRows: the tile's rows, rounded up
// to the next number for which this function is compiled.
template <std::size_t kRows, bool kMin>
[[gnu::noinline]] void run_pass(const Pass& pass, Scratch& scratch, Prefetch (&next)[kPair]) noexcept {
  __m512 sums[kRows][kPair];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
    const __mmask16 load = !pass.first && r < pass.valid ? 0xffff : 0;
    sums[r][0] = _mm512_maskz_load_ps(load, pass.sums + r * kPair * kPanel);
    sums[r][1] = _mm512_maskz_load_ps(load, pass.sums + r * kPair * kPanel + kPanel);
  }
  multiply<0, kMin>(pass, scratch, 0, next);
  std::size_t block = 1;
  if (pass.blocks > 1) {
    multiply<1, kMin>(pass, scratch, 1, next);
    store_dots<0>(scratch);
    for (block = 2; block + 2 <= pass.blocks; block += 2) {
      round<0, kRows, kMin>(pass, scratch, block, sums, next);
      round<1, kRows, kMin>(pass, scratch, block + 1, sums, next);
    }
    store_dots<1>(scratch);
    drain<0, kRows, kMin>(pass, scratch, block - 2, sums);
    if (block < pass.blocks) multiply<0, kMin>(pass, scratch, block, next);
    drain<1, kRows, kMin>(pass, scratch, block - 1, sums);
  }
  if (pass.blocks % 2 != 0) {
    store_dots<0>(scratch);
    drain<0, kRows, kMin>(pass, scratch, pass.blocks - 1, sums);
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
    if (r >= pass.valid) break;
    if (pass.output != nullptr) {
      pass.output->put(pass.out + r * pass.out_stride, pass.outputs[0], sums[r][0]);
      pass.output->put(pass.out + r * pass.out_stride + kPanel, pass.outputs[1], sums[r][1]);
    } else {
      _mm512_store_ps(pass.sums + r * kPair * kPanel, sums[r][0]);
      _mm512_store_ps(pass.sums + r * kPair * kPanel + kPanel, sums[r][1]);
    }
  }
}

template <bool kMin>
[[gnu::always_inline]] inline void run_pass(std::size_t rows, const Pass& pass, Scratch& scratch,
                                            Prefetch (&next)[kPair]) noexcept {
  if (rows <= 4) return run_pass<4, kMin>(pass, scratch, next);
  if (rows <= 8) return run_pass<8, kMin>(pass, scratch, next);
  switch (rows) {
    case 9:
      return run_pass<9, kMin>(pass, scratch, next);
    case 10:
      return run_pass<10, kMin>(pass, scratch, next);
    case 11:  // steps of 32 and 33 rows, for example: three tiles of at most 11 rows
      return run_pass<11, kMin>(pass, scratch, next);
    case 12:
      return run_pass<12, kMin>(pass, scratch, next);
    case 13:
      return run_pass<13, kMin>(pass, scratch, next);
    default:
      return run_pass<14, kMin>(pass, scratch, next);
  }
}

// Unpacks the blocks of one panel into B tiles and scales.
template <PackedForm kForm>
void unpack_chunk(const std::byte* tile, std::size_t blocks, std::size_t panel, Scratch& scratch) noexcept {
  constexpr FormLayout kLayout = form_layout(kForm);
  constexpr int kOffset = kLayout.kept ? open_integers(kForm).offset : static_cast<int>(kLayout.offset);
  for (std::size_t block = 0; block < blocks; ++block, tile += kLayout.tile_bytes) {
    const auto put = [&](std::size_t g, __m512i q) {
      if constexpr (kOffset != 0) q = _mm512_sub_epi8(q, _mm512_set1_epi8(static_cast<char>(kOffset)));
      _mm512_store_si512(scratch.b[block][panel] + 64 * g, q);
    };
    if constexpr (kLayout.kept) {
      OpenTile open;
      open_lanes<kForm>(tile, open);
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) put(g, _mm512_load_si512(open.q[g]));
      _mm512_store_ps(scratch.d[block][panel], _mm512_load_ps(open.d[0]));
    } else {
      unpack_block32<kLayout>(tile, put);
      _mm512_store_ps(scratch.d[block][panel], halves_at(tile + kLayout.d_at));
      if constexpr (kLayout.has_min) _mm512_store_ps(scratch.m[block][panel], halves_at(tile + kLayout.min_at));
    }
  }
}

// Gathers the rows' scales, and the sums of their q if there are minima: from [row][block] to scratch.rows [tile][block][row].
template <bool kMin>
void gather_scales(const LinearJob& job, const RowTiles& tiles, std::size_t first, std::size_t blocks,
                   Scratch& scratch) noexcept {
  const RowLayout layout = row_layout(InputForm::int8x32, job.inputs);
  const RowLanes rows(tiles.rows);
  for (std::size_t tile = 0; tile < tiles.count; ++tile) {
    float* to = scratch.rows + tile * blocks * kBlockScales<kMin>;
    for (std::size_t block = 0; block < blocks; ++block, to += kBlockScales<kMin>) {
      const std::size_t at = 4 * (first + block);
      _mm512_store_ps(to, rows.gather(tiles.at(tile, layout.scales + at)));
      if constexpr (kMin) {
        const __m512i sum = _mm512_castps_si512(rows.gather(tiles.at(tile, layout.sums + at)));
        _mm512_store_ps(to + kTileRows, _mm512_cvtepi32_ps(sum));
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
  for (std::size_t c = 0; c < 4; ++c) shapes.set(c, tiles.rows, 64);
  shapes.set(4, tiles.rows, 32);
  shapes.set(6, 8, 64);
  shapes.set(7, 8, 64);
  const Tiles configured(shapes);
  const Output output(job);
  for (auto& row : scratch.zeros) _mm512_store_ps(row, _mm512_set1_ps(kZero));

  // A group of panels is multiplied by the activations of one span of the inputs, then the same group by those of the next span. If there
  // are several spans, the group's sums wait in scratch between two spans, and the rows' scales (and sums) are gathered again for each
  // span.
  const std::size_t all = job.inputs / 32, most = span_blocks(job.rows);
  const std::size_t chunk = tiles.count <= kFewTiles ? kFewChunk : kChunk;
  for (std::size_t group = 0, span = 0; group < job.panels;) {
    const std::size_t group_end = least(group + kTaskPanels, job.panels);
    const std::size_t span_size = least(most, all - span), span_end = span + span_size;
    if (most < all || group == 0) gather_scales<kLayout.has_min>(job, tiles, span, span_size, scratch);
    for (std::size_t panel = group; panel < group_end; panel += kPair) {
      const std::size_t outputs = job.outputs - panel * kPanel;
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      const std::size_t second =
          panel + 1 < job.panels ? job.panel_bytes : 0;  // 0: the same panel twice, whose second result is not stored
      auto* sums = scratch.sums[most < all ? (panel - group) / kPair : 0];
      Pass pass{};
      pass.a_line = tiles.line;
      pass.outputs[0] = lanes(outputs);
      pass.outputs[1] = lanes(outputs - least(outputs, kPanel));
      pass.out_stride = job.out_stride;
      for (std::size_t begin = span; begin < span_end; begin += chunk) {
        pass.blocks = least(chunk, span_end - begin);
        pass.first = begin == 0;
        pass.output = begin + pass.blocks == all ? &output : nullptr;
        const std::byte* from = weights + begin * kLayout.tile_bytes;
        unpack_chunk<kForm>(from, pass.blocks, 0, scratch);
        unpack_chunk<kForm>(from + second, pass.blocks, 1, scratch);
        // While this chunk is multiplied, the next one is prefetched:
        // - usually: the next chunk of these panels
        // - at the end of a span, if the group has further panels: the first chunk of the next two panels in this span
        // - at the end of the group, if there is another span: the first chunk of the group in the next span
        // - at the end of the group in the last span: a chunk of the next two panels (the right chunk if there is only one span)
        const std::byte* ahead = begin + pass.blocks < span_end ? from + chunk * kLayout.tile_bytes
                                 : panel + kPair < group_end || span_end == all
                                     ? weights + kPair * job.panel_bytes + span * kLayout.tile_bytes
                                     : job.weights + group * job.panel_bytes + span_end * kLayout.tile_bytes;
        const std::size_t bytes = least(chunk, span_size) * kLayout.tile_bytes, steps = tiles.count * pass.blocks;
        Prefetch next[kPair] = {{ahead, bytes, steps}, {ahead + second, bytes, steps}};
        for (std::size_t tile = 0; tile < tiles.count; ++tile) {
          const std::size_t row = tiles.first(tile);
          pass.a = tiles.at(tile, begin * 32);
          pass.rows = scratch.rows + (tile * span_size + begin - span) * kBlockScales<kLayout.has_min>;
          pass.valid = tiles.size(tile);
          pass.sums = sums[row][0];
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
  pair.many = {linear<kForm>, "tiles of int8", kMaxRows, kTaskPanels, sizeof(Scratch), kMaxTile};
  pair.many_from = form_layout(kForm).kept ? 7 : 5;  // measured against VNNI, before the VNNI kernels prefetched
}

}  // namespace
}  // namespace int8_block32

void add_int8_block32(Kernels& kernels) noexcept {
  using namespace int8_block32;
  add<PackedForm::block32_4>(kernels);
  add<PackedForm::block32_4_min>(kernels);
  add<PackedForm::block32_5>(kernels);
  add<PackedForm::block32_5_min>(kernels);
  add<PackedForm::block32_8>(kernels);
  add<PackedForm::kept_iq4_nl>(kernels);
  add<PackedForm::kept_mxfp4>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
