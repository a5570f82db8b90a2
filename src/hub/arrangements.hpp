// Functions that arrange a recipe (Arrange in table.hpp): they say which rows of a folder's tensor become the rows of the model's tensor,
// and in what order. The name of a function says what the result is.
#pragma once

#include "hub/table.hpp"

namespace tessera::detail::hub {

// Rows of queries and keys whose dimensions rope rotates in pairs. The pairs of a head are the dimensions (i, i + dim/2) in folders of
// Llama, and (2i, 2i + 1) in this library.
bool query_pairs(const Shape& shape, Recipe& recipe);
bool key_pairs(const Shape& shape, Recipe& recipe);

bool plus_one(const Shape& shape, Recipe& recipe);           // for norms that multiply by 1 + weight
bool transposed(const Shape& shape, Recipe& recipe);         // for matrices [inputs, outputs] (GPT-2's Conv1D)
bool flat(const Shape& shape, Recipe& recipe);               // a vector that the folder has as a matrix of one row
bool behind_padding(const Shape& shape, Recipe& recipe);     // without the first two rows (RoBERTa's positions)
bool first_half(const Shape& shape, Recipe& recipe);         // the first half of the rows of each matrix
bool second_half(const Shape& shape, Recipe& recipe);

bool falcon_qkv(const Shape& shape, Recipe& recipe);         // all queries, all keys, all values; folders have Q, K, V of each group of heads
bool internlm_qkv(const Shape& shape, Recipe& recipe);       // like falcon_qkv, and queries and keys become pairs (2i, 2i + 1)

// Matrices of all experts: [outputs, inputs] if transformers saved them, [inputs, outputs] in hubs' folders. Gate and up are one matrix.
bool gates_of_experts(const Shape& shape, Recipe& recipe);
bool ups_of_experts(const Shape& shape, Recipe& recipe);
bool downs_of_experts(const Shape& shape, Recipe& recipe);
// gpt-oss: matrices [inputs, outputs] of all experts, in which gate and up alternate.
bool transposed_experts(const Shape& shape, Recipe& recipe);
bool transposed_gates(const Shape& shape, Recipe& recipe);
bool transposed_ups(const Shape& shape, Recipe& recipe);
bool even_values(const Shape& shape, Recipe& recipe);        // for the experts' biases
bool odd_values(const Shape& shape, Recipe& recipe);

// Latent attention: the matrix that expands the latent has, for each head, first the rows of the key, then the rows of the value.
bool latent_keys(const Shape& shape, Recipe& recipe);        // transposed within each head
bool latent_values(const Shape& shape, Recipe& recipe);

// Recurrent layers.
bool convolution(const Shape& shape, Recipe& recipe);              // [channels, 1, width] to [channels, width]
bool decay(const Shape& shape, Recipe& recipe);                    // -e^x
bool decay_column(const Shape& shape, Recipe& recipe);             // -e^x, a row of one number for each head (Mamba-2)
bool column(const Shape& shape, Recipe& recipe);                   // a row of one number for each head
bool norm_of_groups(const Shape& shape, Recipe& recipe);           // a row for each group
// Qwen3.5: tensors with something for each value head. In folders the value heads of a group follow each other. In the results the first
// heads of all groups come first, then the second heads of all groups, and so on: value head h belongs to group h mod n_groups.
bool dealt_values(const Shape& shape, Recipe& recipe);             // rows of all value heads
bool dealt_heads(const Shape& shape, Recipe& recipe);              // one row or number for each head
bool dealt_decay(const Shape& shape, Recipe& recipe);
bool dealt_mixed(const Shape& shape, Recipe& recipe);              // queries, keys, values
bool dealt_convolution(const Shape& shape, Recipe& recipe);
bool dealt_columns(const Shape& shape, Recipe& recipe);            // columns of all value heads
// Qwen3-Next: folders have queries, keys, values and gates of a group together.
bool mixed_of_groups(const Shape& shape, Recipe& recipe);          // all queries, all keys, all values
bool gates_of_groups(const Shape& shape, Recipe& recipe);

}  // namespace tessera::detail::hub
