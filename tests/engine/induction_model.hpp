// A model written by hand that finds needles: after a token it gives the one that followed it earlier (an induction head;
// Olsson et al. 2022). Its first layer writes into each token what stood before it; its second attends to the tokens that stood
// behind the present one, and gives what they are. A vocabulary of kWords.
//
//   the residual stream   [is: kWords | stands behind: kWords | comes next: kWords | 1 | zeros]
//   a head                [rotated: kRotated | not rotated: kWords]
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "engine/made_model.hpp"

namespace tessera::test {

inline constexpr std::uint32_t kWords = 64;
inline constexpr std::uint32_t kRotated = 32;

inline MadeModel induction_model(std::uint32_t context) {
  constexpr std::uint32_t kModel = 4 * kWords, kHead = kRotated + kWords;
  constexpr std::uint32_t kBehind = kWords, kNext = 2 * kWords, kOne = 3 * kWords;
  GgufWriter writer;
  must(writer.set_string("general.architecture", "llama"));
  must(writer.set_string("general.name", "induction"));
  const auto set = [&](const char* key, std::uint32_t value) { must(writer.set(std::string("llama.") + key, value)); };
  set("context_length", context);
  set("embedding_length", kModel);
  set("block_count", 2);
  set("feed_forward_length", 32);
  set("attention.head_count", 1);
  set("attention.head_count_kv", 1);
  set("attention.key_length", kHead);
  set("attention.value_length", kHead);
  set("vocab_size", kWords);
  set("rope.dimension_count", kRotated);
  must(writer.set("llama.attention.layer_norm_rms_epsilon", 1e-6f));

  using Fill = std::function<void(std::vector<float>&)>;
  struct Tensor {
    std::string name;
    std::uint32_t rows, inputs;
    Fill fill;
  };
  const auto ones = [](std::vector<float>& at) { std::fill(at.begin(), at.end(), 1.0f); };
  const auto zeros = [](std::vector<float>&) {};
  // Of each word: `row` + word reads `column` + word.
  const auto words = [](std::uint32_t inputs, std::uint32_t row, std::uint32_t column, float size) -> Fill {
    return [=](std::vector<float>& at) {
      for (std::uint32_t i = 0; i < kWords; ++i) at[std::size_t{row + i} * inputs + column + i] = size;
    };
  };
  // Of each rotated pair, from the constant: keys point one way, queries to where a key one position before them is.
  const auto turned = [](bool is_query) -> Fill {
    return [=](std::vector<float>& at) {
      for (std::uint32_t pair = 0; pair < kRotated / 2; ++pair) {
        const double angle = is_query ? -std::pow(10000.0, -2.0 * pair / kRotated) : 0.0;
        at[std::size_t{2 * pair} * kModel + kOne] = static_cast<float>(2.0 * std::cos(angle));
        at[std::size_t{2 * pair + 1} * kModel + kOne] = static_cast<float>(2.0 * std::sin(angle));
      }
    };
  };
  std::vector<Tensor> tensors;
  tensors.push_back({"token_embd.weight", kWords, kModel, [](std::vector<float>& at) {
                       for (std::uint32_t i = 0; i < kWords; ++i) at[i * kModel + i] = at[i * kModel + kOne] = 1.0f;
                     }});
  const Fill queries[] = {turned(true), words(kModel, kRotated, 0, 4.0f)};
  const Fill keys[] = {turned(false), words(kModel, kRotated, kBehind, 4.0f)};
  const Fill out[] = {words(kHead, kBehind, kRotated, 0.1f), words(kHead, kNext, kRotated, 0.1f)};
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    tensors.push_back({at + "attn_norm.weight", 1, kModel, ones});
    tensors.push_back({at + "attn_q.weight", kHead, kModel, queries[layer]});
    tensors.push_back({at + "attn_k.weight", kHead, kModel, keys[layer]});
    tensors.push_back({at + "attn_v.weight", kHead, kModel, words(kModel, kRotated, 0, 1.0f)});
    tensors.push_back({at + "attn_output.weight", kModel, kHead, out[layer]});
    tensors.push_back({at + "ffn_norm.weight", 1, kModel, ones});
    tensors.push_back({at + "ffn_gate.weight", 32, kModel, zeros});
    tensors.push_back({at + "ffn_up.weight", 32, kModel, zeros});
    tensors.push_back({at + "ffn_down.weight", kModel, 32, zeros});
  }
  tensors.push_back({"output_norm.weight", 1, kModel, ones});
  tensors.push_back({"output.weight", kWords, kModel, words(kModel, 0, kNext, 1.0f)});
  for (const Tensor& tensor : tensors) {
    const std::uint64_t dims[] = {tensor.inputs, tensor.rows};
    must(writer.add_tensor(tensor.name, DType::f32, std::span(dims, tensor.rows == 1 ? 1 : 2)));
  }
  MadeModel model;
  std::size_t next = 0;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        model.bytes.insert(model.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view, const ByteSink& write) -> Status {
        const Tensor& tensor = tensors[next++];
        std::vector<float> values(std::size_t{tensor.rows} * tensor.inputs);
        tensor.fill(values);
        return write(std::as_bytes(std::span(values)));
      }));
  return model;
}

}  // namespace tessera::test
