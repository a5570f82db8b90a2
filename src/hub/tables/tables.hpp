// The tables of all types of models, by family.
#pragma once

#include "hub/tables/common.hpp"

namespace tessera::detail::hub {

[[nodiscard]] std::span<const Table> dense_tables() noexcept;      // Llama and similar models
[[nodiscard]] std::span<const Table> older_tables() noexcept;      // GPT-2, Falcon
[[nodiscard]] std::span<const Table> encoder_tables() noexcept;    // BERT, RoBERTa
[[nodiscard]] std::span<const Table> gemma_tables() noexcept;
[[nodiscard]] std::span<const Table> expert_tables() noexcept;     // mixtures of experts with ordinary attention
[[nodiscard]] std::span<const Table> latent_tables() noexcept;     // latent attention: DeepSeek and similar models
[[nodiscard]] std::span<const Table> recurrent_tables() noexcept;  // models with recurrent layers

void map_granite_scales(Mapping& m);
void map_hunyuan(Mapping& m);

}  // namespace tessera::detail::hub
