// Matrix products of family int8 with AMX, for weights in superblocks of 256 (Q4_K and other K formats, IQ formats, TQ formats) and many
// rows. The unit of work is a superblock of a panel (superblock.hpp) times a row tile, 16 rows at most. It gives three tiles of results,
// each 16 rows x 16 outputs: the dot products over 256 values of k with the low bytes of the weights; those with the high bytes; and, in
// forms with minima, the minima times the sums of activations. All three are exact. The third is a product of bf16, but its factors are
// integers below 2^8, times powers of two.
//
// Two row tiles at a time are multiplied by the same weights. The results of a superblock are stored. While the tile unit multiplies the
// next superblock, vectors scale these results and add them to the sums.
#include "cpu/kernels/amx/prefetch.hpp"
#include "cpu/kernels/amx/products.hpp"
#include "cpu/kernels/amx/row_tiles.hpp"
#include "cpu/kernels/amx/superblock.hpp"
#include "cpu/kernels/amx/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace int8_block256 {
namespace {

constexpr std::size_t kChunk = 2;             // superblocks unpacked at a time: 18 KB of B tiles, which stay in L1
constexpr std::size_t kMaxRows = 512;
// The most panels of a group. RowParts are gathered once for all panels of a group. Between two spans, the panels' sums of products
// (Scratch::sums) stay in L2.
constexpr std::size_t kTaskPanels = 16;
constexpr std::size_t kSpanValues = 1 << 20;  // activations of a span, which all panels of a group multiply: they stay in L2
constexpr std::size_t kSpanBlocks = 64;

constexpr std::size_t span_blocks(std::size_t rows) {
  return least(kSpanValues / 256 / rows / kChunk * kChunk, kSpanBlocks);
}

// The part of the prepared rows of a row tile, for one superblock, that is not multiplied as bytes: the scales of the activations, and
// their sums, which are in the form that the tile unit reads. (The 8-bit integers q are read from the prepared rows.)
struct alignas(64) RowParts {
  float scale[kTileRows];
  std::byte sums[kTileRows][64];  // A tile, bf16: the low parts of 8 or 16 sums, then their high parts times 128, then zeros
};

struct alignas(64) Dots {
  std::int32_t low[kTileRows][kPanel], high[kTileRows][kPanel];
  float min[kTileRows][kPanel];
};

struct alignas(64) Scratch {
  Superblock weights[kChunk];
  Dots dots[2];
  float sums[kTaskPanels][kMaxRows / kTileRows][kTileRows][kPanel];  // sums between superblocks: [panel][tile][row][output]
  RowParts rows[(kSpanValues / 256 / kTileRows + kSpanBlocks) * 3 / 2];  // [tile][superblock]
};

// The arguments for multiplying some superblocks of one panel by all row tiles.
struct Pass {
  const RowTiles& tiles;
  const std::byte* a;    // q of the first row, at the first superblock
  const RowParts* rows;  // RowParts of the first row tile at the first superblock; those of the next tile are rows_a_tile elements later
  std::size_t rows_a_tile;
  std::size_t blocks;
  bool first;                        // true: these outputs have no sums yet
  float (*sums)[kTileRows][kPanel];  // sums so far: [tile][row][output]
  const Output* output;              // stores the outputs, if these superblocks are the last ones; else null
  float* out;
  std::size_t out_stride;
  __mmask16 outputs;
};

// The place that a pass has reached: a superblock, and the first of kTiles row tiles. next() goes to the next superblock; after the last
// one, to the first superblock of the next kTiles row tiles.
template <std::size_t kTiles>
struct At {
  std::size_t tile, block = 0;

  [[gnu::always_inline]] void next(const Pass& pass) noexcept {
    const bool last = block + 1 == pass.blocks;
    block = last ? 0 : block + 1;
    tile += last ? kTiles : 0;
  }
  [[gnu::always_inline]] const RowParts& rows(const Pass& pass, std::size_t of) const noexcept {
    return pass.rows[(tile + of) * pass.rows_a_tile + block];
  }
};

// Multiplies quarter i (64 values of k) of a superblock by kTiles row tiles. Tile registers: 0 and 1 the dot products of the first row
// tile with the low and the high bytes; 2 and 3 the same of the second row tile; 4 activations; 5 and 6 weights; 7 minima (store_min()).
template <std::size_t kTiles>
[[gnu::always_inline]] inline void multiply(const Pass& pass, const Superblock& weights, const At<kTiles>& at,
                                            std::size_t i, Prefetch& next) noexcept {
  const std::byte* a = pass.a + at.tile * pass.tiles.bytes + (4 * at.block + i) * pass.tiles.line;
  next.step();
  tile_load_once<4>(a, 64);
  tile_load<5>(weights.low[i], 64);
  if (i == 0) tile_zero<0>();
  tile_add_unsigned<0, 4, 5>();
  tile_load<6>(weights.high[i], 64);
  if (i == 0) tile_zero<1>();
  tile_add_signed<1, 4, 6>();
  if constexpr (kTiles == 2) {
    tile_load_once<4>(a + pass.tiles.bytes, 64);
    if (i == 0) tile_zero<2>();
    tile_add_unsigned<2, 4, 5>();
    if (i == 0) tile_zero<3>();
    tile_add_signed<3, 4, 6>();
  }
}

[[gnu::always_inline]] inline void store_min(const RowParts& rows, Dots& dots) noexcept {
  tile_zero<7>();
  tile_load<4>(rows.sums, 64);
  tile_add_bf16<7, 4, 5>();
  tile_store<7>(dots.min, 64);
}

template <std::size_t kTiles, bool kMin>
[[gnu::always_inline]] inline void store_dots(const Pass& pass, const Superblock& weights, const At<kTiles>& at,
                                              Dots (&dots)[2]) noexcept {
  if constexpr (kMin) tile_load<5>(weights.min, 64);
  tile_store<0>(dots[0].low, 64);
  tile_store<1>(dots[0].high, 64);
  if constexpr (kMin) store_min(at.rows(pass, 0), dots[0]);
  if constexpr (kTiles == 2) {
    tile_store<2>(dots[1].low, 64);
    tile_store<3>(dots[1].high, 64);
    if constexpr (kMin) store_min(at.rows(pass, 1), dots[1]);
  }
}

// Scales a superblock's dot products for rows [kFrom, kTo) of row tile `at.tile + of`, and adds them to the rows' sums. If it is the last
// superblock of the inputs, stores the results as outputs instead of sums.
template <std::size_t kFrom, std::size_t kTo, std::size_t kTiles, bool kMin>
[[gnu::always_inline]] inline void drain(const Pass& pass, const Superblock& weights, const At<kTiles>& at,
                                         std::size_t of, const Dots& dots) noexcept {
  const std::size_t tile = at.tile + of;
  const float* scales = at.rows(pass, of).scale;
  float(*sums)[kPanel] = pass.sums[tile];
  asm("" : "+r"(scales), "+r"(sums));  // keeps each in a register; else g++ computes addresses for each row
  const __m512 d = _mm512_load_ps(weights.d);
  const __mmask16 take = pass.first && at.block == 0 ? 0 : 0xffff;
  const auto sum = [&](std::size_t r) {
    const __m512i high = _mm512_slli_epi32(_mm512_load_si512(dots.high[r]), 8);
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_load_si512(dots.low[r])));
    const __m512 scale = _mm512_set1_ps(scales[r]);
    const __m512 acc = _mm512_fmadd_ps(dot, _mm512_mul_ps(d, scale), _mm512_maskz_load_ps(take, sums[r]));
    if constexpr (!kMin) return acc;
    return _mm512_fnmadd_ps(_mm512_load_ps(dots.min[r]), _mm512_mul_ps(_mm512_load_ps(weights.dmin), scale), acc);
  };
  if (pass.output == nullptr || at.block + 1 < pass.blocks) {
#pragma GCC unroll 16
    for (std::size_t r = kFrom; r < kTo; ++r) _mm512_store_ps(sums[r], sum(r));
  } else {
    const std::size_t end = least(kTo, pass.tiles.size(tile));
    float* out = pass.out + (pass.tiles.first(tile) + kFrom) * pass.out_stride;
    for (std::size_t r = kFrom; r < end; ++r, out += pass.out_stride) pass.output->put(out, pass.outputs, sum(r));
  }
}

// Does the part of drain() that belongs to quarter i of the next superblock's multiplication, so that the two alternate. With two row
// tiles, each quarter drains half of a tile. With one row tile, quarters 1 and 3 drain half of the tile each.
template <std::size_t kRows, std::size_t kTiles, bool kMin>
[[gnu::always_inline]] inline void drain(const Pass& pass, const Scratch& scratch, const At<kTiles>& at,
                                         std::size_t i) noexcept {
  constexpr std::size_t kHalf = kRows / 2;
  if (kTiles == 1 && i % 2 == 0) return;
  const std::size_t half = kTiles == 2 ? i % 2 : i / 2, of = kTiles == 2 ? i / 2 : 0;
  const Superblock& weights = scratch.weights[at.block];
  if (half == 0) {
    drain<0, kHalf, kTiles, kMin>(pass, weights, at, of, scratch.dots[of]);
  } else {
    drain<kHalf, kRows, kTiles, kMin>(pass, weights, at, of, scratch.dots[of]);
  }
}

// Multiplies the row tiles [tile, end), kTiles at a time. The multiplication of a superblock, and the adding up of the superblock before,
// are cut into quarters, which alternate. So the tile unit and the vector units work at the same time. (Longer pieces would not overlap,
// because a core looks only a limited number of instructions ahead.) kRows: a tile's rows, rounded up to the next number for which this
// function is compiled.
template <std::size_t kRows, std::size_t kTiles, bool kMin>
[[gnu::noinline]] void run_pass(const Pass& pass, std::size_t tile, std::size_t end, Scratch& scratch,
                                Prefetch& next) noexcept {
  At<kTiles> at{tile}, before = at;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) multiply<kTiles>(pass, scratch.weights[0], at, i, next);
  store_dots<kTiles, kMin>(pass, scratch.weights[0], at, scratch.dots);
  for (at.next(pass); at.tile < end; at.next(pass)) {
    const Superblock& weights = scratch.weights[at.block];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      multiply<kTiles>(pass, weights, at, i, next);
      drain<kRows, kTiles, kMin>(pass, scratch, before, i);
    }
    store_dots<kTiles, kMin>(pass, weights, at, scratch.dots);
    before = at;
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) drain<kRows, kTiles, kMin>(pass, scratch, before, i);
}

template <std::size_t kRows, bool kMin>
[[gnu::always_inline]] inline void run_pass(const Pass& pass, Scratch& scratch, Prefetch& next) noexcept {
  const std::size_t count = pass.tiles.count, pairs = count / 2 * 2;
  if (pairs != 0) run_pass<kRows, 2, kMin>(pass, 0, pairs, scratch, next);
  if (pairs < count) run_pass<kRows, 1, kMin>(pass, pairs, count, scratch, next);
}

template <bool kMin>
[[gnu::always_inline]] inline void run_pass(const Pass& pass, Scratch& scratch, Prefetch& next) noexcept {
  if (pass.tiles.rows <= 8) return run_pass<8, kMin>(pass, scratch, next);
  if (pass.tiles.rows <= 12) return run_pass<12, kMin>(pass, scratch, next);
  run_pass<16, kMin>(pass, scratch, next);
}

// Converts small integers (parts of sums) to bf16: the upper halves of their floats. bf16 holds them exactly.
[[gnu::always_inline]] inline __m256i as_bf16(__m512i integers) noexcept {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(integers)), 16));
}

// Returns one row of RowParts::sums: the sums of one row's activations in a superblock, as a row of a tile of activations (A, in
// tiles.hpp). `at`: these sums in the prepared row. If kSums is 8: sums of 32 values of k each, stored in two parts (prepared_rows.hpp).
// If kSums is 16: sums of 16 values of k each.
template <std::size_t kSums>
[[gnu::always_inline]] inline __m512i parts_of(const std::byte* at) noexcept {
  if constexpr (kSums == 8) {
    const __m512i parts = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    return _mm512_zextsi256_si512(as_bf16(_mm512_mask_slli_epi32(parts, 0xff00, parts, 7)));
  } else {
    const __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    const __m512i high = _mm512_slli_epi32(_mm512_srai_epi32(_mm512_add_epi32(sums, _mm512_set1_epi32(64)), 7), 7);
    return _mm512_inserti64x4(_mm512_castsi256_si512(as_bf16(_mm512_sub_epi32(sums, high))), as_bf16(high), 1);
  }
}

// Gathers RowParts of all row tiles for superblocks [first, first + blocks) into scratch.rows [tile][superblock].
template <std::size_t kSums>
void gather_parts(const LinearJob& job, const RowTiles& tiles, std::size_t first, std::size_t blocks,
                  Scratch& scratch) noexcept {
  const RowLayout layout = row_layout(InputForm::int8x256, job.inputs);
  const RowLanes rows(tiles.rows);
  for (std::size_t tile = 0; tile < tiles.count; ++tile) {
    for (std::size_t block = first; block < first + blocks; ++block) {
      RowParts& to = scratch.rows[tile * blocks + block - first];
      _mm512_store_ps(to.scale, rows.gather(tiles.at(tile, layout.scales + 4 * block)));
      if constexpr (kSums == 0) continue;
      const std::byte* sums = tiles.at(tile, kSums == 8 ? layout.parts + 16 * block : layout.sums + 32 * block);
      for (std::size_t r = 0; r < tiles.rows; ++r) _mm512_store_si512(to.sums[r], parts_of<kSums>(sums + r * 64));
    }
  }
}

template <PackedForm kForm>
void linear(const LinearJob& job) noexcept {
  constexpr FormLayout kLayout = form_layout(kForm);
  [[maybe_unused]] const Grids points = has_grid(kForm) ? grids() : Grids();
  Scratch& scratch = *reinterpret_cast<Scratch*>(job.scratch);
  const RowTiles tiles(job);
  TileShapes shapes;
  for (const std::size_t tile : {0u, 1u, 2u, 3u, 4u, 7u}) shapes.set(tile, tiles.rows, 64);
  for (const std::size_t tile : {5u, 6u}) shapes.set(tile, kTileRows, 64);
  const Tiles configured(shapes);
  const Output output(job);

  // A group of panels is multiplied by the activations of one span of the inputs, then the same group by those of the next span. If there
  // are several spans, the group's sums wait in scratch between two spans, and the rows' scales and sums (RowParts) are gathered again
  // for each span.
  const std::size_t all = job.inputs / 256, most = span_blocks(job.rows);
  for (std::size_t group = 0, span = 0; group < job.panels;) {
    const std::size_t group_end = least(group + kTaskPanels, job.panels);
    const std::size_t span_size = least(most, all - span), span_end = span + span_size;
    if (most < all || group == 0) gather_parts<kSums<kForm>>(job, tiles, span, span_size, scratch);
    for (std::size_t panel = group; panel < group_end; ++panel) {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      auto* sums = scratch.sums[most < all ? panel - group : 0];
      for (std::size_t begin = span; begin < span_end; begin += kChunk) {
        const std::size_t blocks = least(kChunk, span_end - begin);
        const Pass pass{.tiles = tiles,
                        .a = tiles.at(0, begin * 256),
                        .rows = scratch.rows + (begin - span),
                        .rows_a_tile = span_size,
                        .blocks = blocks,
                        .first = begin == 0,
                        .sums = sums,
                        .output = begin + blocks == all ? &output : nullptr,
                        .out = job.out + panel * kPanel,
                        .out_stride = job.out_stride,
                        .outputs = lanes(job.outputs - panel * kPanel)};
        const std::byte* from = weights + begin * kLayout.tile_bytes;
        for (std::size_t block = 0; block < blocks; ++block) {
          if constexpr (kLayout.kept) unpack_kept<kForm>(points, from + block * kLayout.tile_bytes, scratch.weights[block]);
          else unpack<kForm>(from + block * kLayout.tile_bytes, scratch.weights[block]);
        }
        // While this chunk is multiplied, the next one is prefetched:
        // - usually: the next chunk of this panel
        // - at the end of a span, if the group has another panel: that panel's first chunk in the same span
        // - at the end of the group's last panel, if there is another span: the first chunk of the group's first panel in the next span
        // - at the end of the group in the last span: a chunk of the next panel (the right chunk if there is only one span)
        const std::byte* ahead = begin + blocks < span_end ? from + blocks * kLayout.tile_bytes
                                 : panel + 1 < group_end || span_end == all
                                     ? weights + job.panel_bytes + span * kLayout.tile_bytes
                                     : job.weights + group * job.panel_bytes + span_end * kLayout.tile_bytes;
        Prefetch next(ahead, least(kChunk, span_size) * kLayout.tile_bytes, (tiles.count + 1) / 2 * blocks * 4);
        run_pass<kLayout.has_min>(pass, scratch, next);
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
  // From this number of rows on, tiles are faster than the VNNI kernels (measured; for Q4_K to Q6_K before the VNNI kernels prefetched).
  // For kept forms the number is higher, because making the two planes of a Superblock costs more than opening a tile, as the VNNI
  // kernels do.
  pair.many_from = has_grid(kForm) ? 16 : form_layout(kForm).kept ? 9 : 7;
}

}  // namespace
}  // namespace int8_block256

void add_int8_block256(Kernels& kernels) noexcept {
  using namespace int8_block256;
  add<PackedForm::block256_4>(kernels);
  add<PackedForm::block256_5>(kernels);
  add<PackedForm::block256_6>(kernels);
  add<PackedForm::kept_iq4_xs>(kernels);
  add<PackedForm::kept_q3_k>(kernels);
  add<PackedForm::kept_q2_k>(kernels);
  add<PackedForm::kept_iq3_s>(kernels);
  add<PackedForm::kept_iq3_xxs>(kernels);
  add<PackedForm::kept_iq2_s>(kernels);
  add<PackedForm::kept_iq2_xs>(kernels);
  add<PackedForm::kept_iq2_xxs>(kernels);
  add<PackedForm::kept_iq1_m>(kernels);
  add<PackedForm::kept_iq1_s>(kernels);
  add<PackedForm::kept_tq2_0>(kernels);
  add<PackedForm::kept_tq1_0>(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
