// The working memory of the CPU backend's experts(). A slot is a row together with one of the experts that were chosen for it: one input
// that one expert multiplies. Slots are ordered by expert, then by row, so that an expert's inputs lie side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/products/product.hpp"
#include "cpu/workspace.hpp"

namespace tessera::cpu {

// The form in which a kernel's products read an activation.
struct InputKind {
  InputForm form = InputForm::count;  // count: no form
  std::size_t group = 1;              // rows of a group (prepared_rows.hpp)
  const InputRounding* rounding = nullptr;  // rounding of the values, before they get the form; nullptr: none

  bool operator==(const InputKind& other) const noexcept {
    if (form != other.form || group != other.group || (rounding == nullptr) != (other.rounding == nullptr)) return false;
    return rounding == other.rounding || *rounding == *other.rounding;
  }
};

struct ExpertSlots {
  float* gate = nullptr;               // [slots, ffn_dim]; after the activation the experts' outputs [slots, width] replace it
  float* up = nullptr;                 // [slots, ffn_dim]
  std::byte* rows = nullptr;           // prepared rows, each expert's from at[expert] on
  std::uint32_t* chosen = nullptr;     // [rows, n_used], ascending
  float* weights = nullptr;            // [rows, n_used]
  std::uint32_t* slot_of = nullptr;    // [rows, n_used]
  std::uint32_t* row_of = nullptr;     // [slots]
  std::uint32_t* expert_of = nullptr;  // [slots]
  std::uint64_t* first = nullptr;  // [n_experts]: an expert's first slot; its slots end where those of the next expert begin
  std::uint64_t* at = nullptr;     // [n_experts]: offset into `rows`
  std::vector<InputKind> kinds;    // [n_experts]
  std::vector<Product> products;
  std::uint32_t n_experts = 0, n_slots = 0;

  // Takes the buffers of the workspace.
  void reserve(const backend::WorkspaceShape& shape, const Workspace& space) {
    const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
    if (slots == 0) return;
    gate = space.gate;
    up = space.up;
    rows = space.slot_rows;
    chosen = space.slot_lists;
    slot_of = chosen + slots;
    row_of = slot_of + slots;
    expert_of = row_of + slots;
    weights = reinterpret_cast<float*>(expert_of + slots);
    first = space.places;
    at = first + shape.n_experts;
    products.reserve(2 * std::min<std::uint64_t>(slots, shape.n_experts));
    kinds.reserve(shape.n_experts);
  }

  // Returns how many slots an expert has.
  [[nodiscard]] std::size_t count(std::uint32_t expert) const noexcept {
    return (expert + 1 < n_experts ? first[expert + 1] : n_slots) - first[expert];
  }

  // Makes the slots of a step, from `chosen`, which has the experts of each row. Orders them by expert, then by row.
  void deal(std::size_t n_rows, std::uint32_t experts, std::uint32_t n_used) noexcept {
    n_experts = experts;
    n_slots = static_cast<std::uint32_t>(n_rows * n_used);
    std::uint64_t* next = at;  // [n_experts]: index of the slot that the expert's next row gets
    std::fill_n(first, n_experts, 0);
    for (std::uint32_t i = 0; i < n_slots; ++i) ++first[chosen[i]];
    std::uint64_t slots = 0;
    for (std::uint32_t expert = 0; expert < n_experts; ++expert) {
      const std::uint64_t of_expert = first[expert];
      first[expert] = next[expert] = slots;
      slots += of_expert;
    }
    for (std::uint32_t i = 0; i < n_slots; ++i) {
      const std::uint64_t slot = next[chosen[i]]++;
      slot_of[i] = static_cast<std::uint32_t>(slot);
      row_of[slot] = i / n_used;
      expert_of[slot] = chosen[i];
    }
  }
};

}  // namespace tessera::cpu
