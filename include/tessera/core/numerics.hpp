// The arithmetic of an engine: the families (docs/reference/numerics.md) of its matrix products and of attention. The cuda backend has
// automatic, fastest (the same as automatic there) and invariant.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class Numerics : std::int32_t {
  // The weight format decides: int8 for quantised formats (exact integer dot products over activations in 8 bits), f32 for F32, and for
  // F16 and BF16 the family that this CPU computes fastest. On one machine the bits do not depend on the batch, on the chunks in which a
  // prompt is computed, or on the number of threads. Between machines the bits can differ only for F16 and BF16 weights, and for keys and
  // values of any type except F32, because CPUs with tiles (AMX) and CPUs with AVX512_BF16 add in other orders.
  automatic = 0,
  // bf16 for quantised formats too: weights and activations are rounded to bf16. The bits do not depend on batch, chunks, threads or
  // machine.
  bf16 = 1,
  // On CPUs with tiles: bf16 for steps of many rows, int8 for steps of few. Prefill and decode are each as fast as they can be. But
  // the last bits of a token's logits depend on how many tokens were computed in the same step, so verify() returns unverifiable. If all
  // weights are quantised, keys and values in F16 are rounded to bf16 on CPUs that multiply bf16 (AVX512_BF16, AMX). Otherwise as
  // automatic.
  fastest = 2,
  // f32, with every product and every sum rounded by itself. Slow: for comparisons.
  reference = 3,
  // The bits do not depend on the batch or the chunks. On the CPU, automatic promises this too; with invariant, the bits are also the same
  // on every machine. On a GPU, the vendor's matrix products of many rows are not used, because their order of sums depends on the number
  // of rows.
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

// The inputs of matrix products. Some folders (W8A8, W4A8, FP8) say how inputs are rounded to 8 bits before they are multiplied.
enum class Activations : std::int32_t {
  automatic = 0,  // as `numerics` says. The folder's rounding is not applied: nearer to the model before quantisation
  as_the_model_says = 1  // rounded as the folder says, like engines for GPUs; matrices for which the folder says nothing: as automatic
};

[[nodiscard]] constexpr std::string_view to_string(Activations activations) noexcept {
  switch (activations) {
    case Activations::automatic: return "auto";
    case Activations::as_the_model_says: return "model";
  }
  return "?";
}

[[nodiscard]] constexpr std::optional<Activations> parse_activations(std::string_view name) noexcept {
  for (const Activations activations : {Activations::automatic, Activations::as_the_model_says}) {
    if (name == to_string(activations)) return activations;
  }
  return std::nullopt;
}

}  // namespace tessera
