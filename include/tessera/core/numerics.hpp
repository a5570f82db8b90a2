// How an engine computes: which families of docs/numerics.md its matrix products and attention belong to. The cuda backend
// knows automatic, fastest (the same there) and invariant.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class Numerics : std::int32_t {
  // Each weight format's own: int8 for quantised ones (exact integer dot products over activations in 8 bits), f32 for F32,
  // and for F16 and BF16 what the CPU is fast at. The same bits whatever the batch, the chunks and the threads; on another
  // machine too, but for F16 and BF16 weights and for keys and values in F16, BF16 and INT8: tiles (AMX) have an order of
  // their own for F16 and for BF16 weights, and AVX512_BF16 for BF16 and INT8.
  automatic = 0,
  // bf16 for quantised formats too: weights and activations rounded to bf16. The same bits likewise, and on every machine.
  bf16 = 1,
  // Where there are tiles, bf16 for many rows and int8 for few: the fastest prefill and the fastest decode, but a token's
  // logits then depend, in their last bits, on how many tokens were computed with it, and verify() cannot tell. Keys and
  // values in F16, in models whose weights are all quantised, are rounded to bf16 where the CPU multiplies that (AVX512_BF16,
  // AMX). Else automatic.
  fastest = 2,
  // f32 with every product and sum rounded by itself: slow, for comparison.
  reference = 3,
  // The same bits whatever the batch and the chunks. On the CPU automatic is that already, and this is the same bits on every
  // machine too; on a GPU it gives up the vendor's products of many rows, whose order of sums depends on how many there are.
  invariant = 4
};

[[nodiscard]] constexpr std::string_view to_string(Numerics numerics) noexcept {
  switch (numerics) {
    case Numerics::automatic: return "auto";
    case Numerics::bf16: return "bf16";
    case Numerics::fastest: return "fastest";
    case Numerics::reference: return "reference";
    case Numerics::invariant: return "invariant";
  }
  return "?";
}

[[nodiscard]] constexpr std::optional<Numerics> parse_numerics(std::string_view name) noexcept {
  for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::fastest, Numerics::reference,
                                  Numerics::invariant}) {
    if (name == to_string(numerics)) return numerics;
  }
  return std::nullopt;
}

}  // namespace tessera
