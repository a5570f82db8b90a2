// Numerics choose the arithmetic with which an engine computes matrix products and attention. The choice decides the *family* of each
// operation: one written order of additions and multiplications, so that all kernels of a family compute the same bits
// (docs/reference/numerics.md). The cuda backend accepts automatic, fastest (there the same as automatic) and invariant.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class Numerics : std::int32_t {
  // The weight format decides. Quantised formats: int8, exact integer dot products of the weights and of activations rounded to 8 bits.
  // F32: f32. F16 and BF16: the family that this CPU computes fastest.
  // On one machine the bits do not depend on the batch, on the chunks in which a prompt is computed, or on the number of threads. Between
  // machines the bits can differ only for F16 and BF16 weights, and for keys and values of any type except F32: CPUs with tiles (AMX), CPUs
  // with AVX512_BF16 and other CPUs add in different orders.
  automatic = 0,
  // Quantised formats are multiplied in bf16 too: their weights and the activations are rounded to bf16. The bits do not depend on batch,
  // chunks, threads or machine.
  bf16 = 1,
  // As automatic, with two differences that make prefill and decode each as fast as possible.
  // - On CPUs with tiles (AMX), most quantised formats are multiplied in bf16 in steps of many rows, and in int8 in steps of few rows. So
  //   the last bits of a token's logits depend on how many tokens the same step computed, and verify() returns unverifiable.
  // - If all weights are quantised and the CPU multiplies bf16 (AVX512_BF16, AMX), keys and values in F16 are rounded to bf16.
  fastest = 2,
  // f32, with every product and every sum rounded by itself (no fused multiply-add). Slow: for comparisons.
  reference = 3,
  // The bits do not depend on the batch or the chunks. CPU: `automatic` promises this too, but `invariant` also uses the same families on
  // every CPU, so the bits are the same on every machine. GPU: the vendor's matrix products of many rows are not used, because their order
  // of sums depends on the number of rows.
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

// How the inputs of matrix products are rounded. Some folders (W8A8, W4A8, FP8) state a rounding to 8 bits, because their model was
// quantised together with its activations.
enum class Activations : std::int32_t {
  automatic = 0,  // as Numerics says; the folder's rounding is not applied. Results are nearer to those of the model before quantisation
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
