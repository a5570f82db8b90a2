// The matrix product of families bf16 and bf16x3 with AMX: activations by weights, on tiles of bf16 (tiles.hpp). The files bf16.cpp,
// bf16x3.cpp and bf16_quantised.cpp instantiate it for the packed forms. Tiles of activations are read from the prepared rows. Tiles of
// weights are read from the packed matrix, or from scratch if they must be decoded first. The tile registers have the sums of two row
// tiles by two panels.
//
// To keep data in the caches, the inputs k are cut into spans, and a span into chunks. The activations of all rows of the job for one
// span stay in L2 (1 MB). The weights of two panels for one chunk stay in L1 (32 KB) while they are multiplied by all row tiles. Panels
// are taken in groups: all panels of a group are multiplied by the activations of one span before the next span begins.
#pragma once

#include "cpu/kernels.hpp"
#include "cpu/kernels/amx/prefetch.hpp"
#include "cpu/kernels/amx/row_tiles.hpp"
#include "cpu/kernels/amx/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

inline constexpr std::size_t kBf16Chunk = 16;          // tiles of 32 values of k in a chunk
inline constexpr std::size_t kBf16Sums = 256;          // row tiles times pairs of panels in a task, whose sums take 512 KB
inline constexpr std::size_t kBf16Activations = 1024;  // tiles of activations in a span; half of it if there are several spans: L2 has sums too
inline constexpr std::size_t kAhead = 4096;            // distance of the prefetch in bytes, for weights that are read only once

struct Bf16Task {
  std::size_t rows, panels;
};

// Returns the rows of a task and the panels of a group. Weights that must be decoded have larger tasks, which decode them less often.
[[gnu::always_inline]] constexpr Bf16Task bf16_task(PackedForm form) noexcept {
  return form == PackedForm::bf16 ? Bf16Task{256, 32} : Bf16Task{512, 256 / panel_outputs(form)};
}

// A task's scratch. kPlanes is 1, or 2 in family bf16x3: a plane of high parts and a plane of low parts.
template <int kPlanes>
struct alignas(64) Bf16Scratch {
  float c[kBf16Sums][2][kTileRows][kPanel];  // sums: [pair of panels, row tile][panel of the pair][row][output]
  std::byte b[2][kBf16Chunk][kTileBytes];    // decoded weights: [panel of the pair][32 values of k, plane][bytes of the tile]
};

// The place of a row tile's activations, from some k on.
struct RowRun {
  const std::byte* high;
  std::size_t low;   // bytes from the high plane to the low plane
  std::size_t line;  // bytes from the tile of 32 values of k to the tile of the next 32
};

// The place of the tiles of one panel's weights, from some k on.
struct TileRun {
  const std::byte* tiles;
  std::size_t stride;  // bytes from the tile of 32 values of k to the tile of the next 32
};

// Multiplies kRowTiles row tiles (a0, a1) by two panels (b0, b1) over one chunk. Loads the sums c0 and c1 of the row tiles from memory,
// or starts from zero if `fresh`, and stores them back. Tile registers: 0 to 3 sums, 4 and 5 activations, 6 and 7 weights.
template <int kPlanes, int kRowTiles>
[[gnu::always_inline]] inline void multiply_bf16(const RowRun& a0, const RowRun& a1, TileRun b0, TileRun b1,
                                                 std::size_t count, float (*c0)[kTileRows][kPanel],
                                                 float (*c1)[kTileRows][kPanel], bool fresh,
                                                 Prefetch (&next)[2]) noexcept {
  if (fresh) {
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
  } else {
    tile_load<0>(c0[0], 64);
    tile_load<1>(c0[1], 64);
    tile_load<2>(c1[0], 64);
    tile_load<3>(c1[1], 64);
  }
  const auto step = [&](std::size_t k, std::size_t a_plane, std::size_t b_plane, bool same_a) {
    const std::size_t a_at = k * a0.line + a_plane * a0.low, b_at = b_plane * kTileBytes;
    if (!same_a) tile_load_once<4>(a0.high + a_at, 64);
    tile_load<6>(b0.tiles + k * b0.stride + b_at, 64);
    tile_add_bf16<0, 4, 6>();
    tile_load<7>(b1.tiles + k * b1.stride + b_at, 64);
    tile_add_bf16<1, 4, 7>();
    if constexpr (kRowTiles == 2) {
      if (!same_a) tile_load_once<5>(a1.high + a_at, 64);
      tile_add_bf16<2, 5, 6>();
      tile_add_bf16<3, 5, 7>();
    }
  };
  for (std::size_t k = 0; k < count; ++k) {
    next[0].step();
    next[1].step();
    if constexpr (kPlanes == 2) {  // the smaller products first
      step(k, 1, 0, false);
      step(k, 0, 1, false);
    }
    step(k, 0, 0, kPlanes == 2);
  }
  tile_store<0>(c0[0], 64);
  tile_store<1>(c0[1], 64);
  if constexpr (kRowTiles == 2) {
    tile_store<2>(c1[0], 64);
    tile_store<3>(c1[1], 64);
  }
}

// Rounds the weights of 16 outputs, for an even k and the odd k after it, to bf16 (to nearest even; denormals become 0). Lane n of the
// result has the two numbers of output n, the even k in the lower half: a row of a B tile (tiles.hpp).
[[gnu::always_inline]] inline __m512i round_pair(__m512 even, __m512 odd) noexcept {
  const __m512i order =
      _mm512_or_si512(_mm512_set1_epi32(16 << 16),
                      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                         _mm512_set1_epi32(0x00010001)));
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
}

// Computes a job. decode(from, count, to) returns a panel's weights for 32 * count values of k as bf16 tiles. `from`: these weights as
// they are packed. If the packed weights are bf16 tiles already, decode() returns `from`. Otherwise it decodes them to `to`, and returns
// `to`.
template <int kPlanes, PackedForm kForm, class Decode>
[[gnu::always_inline]] inline void linear_bf16(const LinearJob& job, Decode decode) noexcept {
  static constexpr FormLayout kLayout = form_layout(kForm);
  constexpr bool kStream = kForm == PackedForm::bf16;  // true: weights need no decoding
  constexpr std::size_t kPanels = 2 * kPanel / kLayout.outputs;  // panels at a time: two, or one of f16, which is twice as wide
  auto& scratch = *reinterpret_cast<Bf16Scratch<kPlanes>*>(job.scratch);
  const auto packed = [](std::size_t tiles) { return tiles * 32 / kLayout.block_values * kLayout.tile_bytes; };
  const RowTiles tiles(job);
  const std::size_t low = kPlanes == 2 ? in_group(row_layout(InputForm::bf16x2, job.inputs).low, tiles.rows) : 0;
  const std::size_t all = (job.inputs + 31) / 32;
  const std::size_t row_steps = (tiles.count + 1) / 2;
  const std::size_t chunk = kStream && row_steps == 1 ? all : kBf16Chunk / kPlanes;
  std::size_t most = kBf16Activations / kPlanes / tiles.count;
  if (most < all) most = most >= 16 ? most / 16 * 8 : most;  // whole superblocks: a superblock is eight tiles

  TileShapes shapes;
  for (std::size_t tile = 0; tile < 6; ++tile) shapes.set(tile, tiles.rows, 64);
  shapes.set(6, kTileRows, 64);
  shapes.set(7, kTileRows, 64);
  const Tiles configured(shapes);

  const Output output(job);
  const auto put = [&](const float (&sums)[2][kTileRows][kPanel], std::size_t tile, std::size_t panel) {
    const std::size_t column = panel * kLayout.outputs, outputs = least(job.outputs - column, 2 * kPanel);
    const __mmask16 mask0 = lanes(outputs), mask1 = lanes(outputs - least(outputs, kPanel));
    float* to = job.out + tiles.first(tile) * job.out_stride + column;
    for (std::size_t row = 0; row < tiles.size(tile); ++row, to += job.out_stride) {
      output.put(to, mask0, _mm512_load_ps(sums[0][row]));
      output.put(to + kPanel, mask1, _mm512_load_ps(sums[1][row]));
    }
  };

  const std::size_t spans = (all + most - 1) / most;
  for (std::size_t step = 0, group = 0; group < job.panels; step = step + 1 < spans ? step + 1 : 0) {
    const std::size_t span = step * most, span_size = least(most, all - span);
    const std::size_t group_end = least(group + bf16_task(kForm).panels, job.panels);
    for (std::size_t panel = group; panel < group_end; panel += kPanels) {
      const std::byte* weights = job.weights + panel * job.panel_bytes;
      // Bytes from the first 16 outputs to the second 16. 0 if there is no second panel: then the first panel is multiplied twice, and
      // the second result is not stored.
      const std::size_t second = kPanels == 1 ? 2 * kPanel : panel + 1 < job.panels ? job.panel_bytes : 0;
      auto* c = scratch.c + (spans == 1 ? 0 : (panel - group) / kPanels * tiles.count);
      for (std::size_t k = 0; k < span_size; k += chunk) {
        const std::size_t count = least(chunk, span_size - k);
        const std::byte* from = weights + packed(span + k);
        const TileRun b0 = decode(from, count, scratch.b[0][0]), b1 = decode(from + second, count, scratch.b[1][0]);
        // While this chunk is multiplied, later weights are prefetched:
        // - usually: the next chunk of these panels
        // - at the end of a span, if the group has further panels: the first chunk of the next panels in this span
        // - at the end of the group, if there is another span: the first chunk of the group in the next span
        // - at the end of the group in the last span: a chunk of the next panels (the right chunk if there is only one span)
        // Exception: weights that need no decoding, with at most two row tiles: what lies kAhead bytes further on.
        const bool last = k + count == span_size;
        const std::byte* ahead = row_steps == 1 && kStream ? from + kAhead
                                 : !last                   ? from + packed(count)
                                 : panel + kPanels < group_end || step + 1 == spans
                                     ? weights + kPanels * job.panel_bytes + packed(span)
                                     : job.weights + group * job.panel_bytes + packed(span + span_size);
        const std::size_t bytes = last && kStream ? packed(least(chunk, span_size)) : packed(count);
        const std::size_t half = bytes * kPanels / 2, steps = row_steps * count;
        Prefetch next[2] = {{ahead, half, steps}, {ahead + (kPanels == 1 ? half : second), half, steps}};
        const bool fresh = span == 0 && k == 0;
        const auto a = [&](std::size_t at) {
          return RowRun{tiles.at(at, (span + k) * 64), low, tiles.line};
        };
        for (std::size_t tile = 0; tile < tiles.count; tile += 2) {
          const bool two = tile + 1 < tiles.count;
          if (two) {
            multiply_bf16<kPlanes, 2>(a(tile), a(tile + 1), b0, b1, count, c[tile], c[tile + 1], fresh, next);
          } else {
            multiply_bf16<kPlanes, 1>(a(tile), a(tile), b0, b1, count, c[tile], c[tile], fresh, next);
          }
          if (!last || step + 1 < spans) continue;
          put(c[tile], tile, panel);
          if (two) put(c[tile + 1], tile + 1, panel);
        }
      }
    }
    if (step + 1 == spans) group = group_end;
  }
}

// Registers `run` (AMX tiles) as the kernel of `form` for steps of `many_from` rows and more. Steps of fewer rows use LinearPair::few,
// which is registered already.
template <int kPlanes>
void add_bf16(Kernels& kernels, Family family, PackedForm form, LinearFn run, const char* name,
              std::size_t many_from = 0) noexcept {
  LinearPair& pair = kernels.product(family, form);
  pair.many = {run, name, bf16_task(form).rows, bf16_task(form).panels, sizeof(Bf16Scratch<kPlanes>), kTileRows};
  pair.many_from = many_from;
}

}  // namespace tessera::cpu::TESSERA_ISA
