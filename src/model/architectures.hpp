// The list of architectures.
#pragma once

#include <array>
#include <string_view>

#include "model/arch/falcon.hpp"
#include "model/arch/gemma3.hpp"
#include "model/arch/gpt2.hpp"
#include "model/arch/granite.hpp"
#include "model/arch/llama.hpp"
#include "model/arch/mistral.hpp"
#include "model/arch/qwen2.hpp"
#include "model/arch/qwen3.hpp"

namespace tessera::arch {

inline constexpr std::array kAll = {&kLlama, &kMistral, &kQwen2, &kQwen3, &kGpt2, &kFalcon, &kGemma3, &kGranite};

[[nodiscard]] constexpr const Architecture* find(std::string_view name) noexcept {
  for (const Architecture* table : kAll) {
    if (table->name == name) return table;
  }
  return nullptr;
}

}  // namespace tessera::arch
