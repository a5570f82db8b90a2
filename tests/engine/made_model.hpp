// Llama models made up on the spot: any shape, any weight format, blocks of random integers under sane scales.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

#include "core/float16.hpp"
#include "engine/models.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"

namespace tessera::test {

struct MadeShape {
  std::uint32_t d_model = 512, layers = 2, heads = 8, kv_heads = 2, ffn = 768, vocab = 300, context = 1024;
  std::vector<std::int32_t> windows = {};  // of each layer, 0 for none; empty: none
  std::vector<std::int32_t> globals = {};  // of each layer, beside its window; likewise
};

// Random weights of about 1 / sqrt(inputs): the integers are random bytes, the scales fit the format's range.
inline std::vector<std::byte> made_rows(DType dtype, std::uint64_t rows, std::uint64_t inputs, std::uint32_t seed) {
  std::vector<std::byte> bytes;
  std::mt19937_64 random(seed);
  const float size = 1.0f / std::sqrt(static_cast<float>(inputs));
  formats::visit(dtype, [&]<class F>(std::type_identity<F>) {
    const std::uint64_t blocks = rows * inputs / F::block_values;
    bytes.resize(blocks * F::block_bytes);
    for (std::uint64_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
    }
    const auto half = [&](std::uint64_t block, std::size_t at, float value) {
      const std::uint16_t bits = f32_to_f16(value * (0.5f + static_cast<float>(block % 7) / 7.0f));
      std::memcpy(bytes.data() + block * F::block_bytes + at, &bits, 2);
    };
    for (std::uint64_t b = 0; b < blocks; ++b) {
      if constexpr (F::block_values == 1) {
        const float value = size * (static_cast<float>(random() >> 40) / static_cast<float>(1 << 23) - 1.0f);
        F::encode(&value, bytes.data() + b * F::block_bytes);
      } else if constexpr (formats::keeps_blocks(F::packed_form)) {
        set_size<F>(bytes.data() + b * F::block_bytes, 2 * size * (0.5f + static_cast<float>(b % 7) / 7.0f));
      } else if constexpr (F::block_values == 32) {
        const bool has_min = F::packed_form == formats::PackedForm::block32_4_min || F::packed_form == formats::PackedForm::block32_5_min;
        const float top = F::packed_form == formats::PackedForm::block32_8 ? 127.0f
                          : F::packed_form == formats::PackedForm::block32_4 || F::packed_form == formats::PackedForm::block32_4_min
                              ? 8.0f : 16.0f;
        half(b, 0, size / top);
        if (has_min) half(b, 2, -size);
      } else if constexpr (F::packed_form == formats::PackedForm::block256_6) {
        half(b, 208, size / (32.0f * 128.0f));
      } else {
        const float top = F::packed_form == formats::PackedForm::block256_4 ? 8.0f : 16.0f;
        half(b, 0, size / (top * 32.0f));
        half(b, 2, size / 32.0f);
      }
    }
  });
  return bytes;
}

// A file in memory: keep it alive as long as the ModelFile.
struct MadeModel {
  std::vector<std::byte> bytes;

  [[nodiscard]] ModelFile file() const { return must(ModelFile::from_source(must(memory_source(bytes, "made up")))); }
  [[nodiscard]] Engine load(EngineOptions options = {}) const {
    if (options.threads == 0) options.threads = 2;
    return must(Engine::load(file(), options));
  }
};

inline MadeModel make_model(const MadeShape& shape, DType dtype) {
  GgufWriter writer;
  must(writer.set_string("general.architecture", "llama"));
  must(writer.set_string("general.name", "made up"));
  const auto set = [&](const char* key, std::uint32_t value) { must(writer.set(std::string("llama.") + key, value)); };
  set("context_length", shape.context);
  set("embedding_length", shape.d_model);
  set("block_count", shape.layers);
  set("feed_forward_length", shape.ffn);
  set("attention.head_count", shape.heads);
  set("attention.head_count_kv", shape.kv_heads);
  set("vocab_size", shape.vocab);
  set("rope.dimension_count", shape.d_model / shape.heads);
  must(writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5f));
  if (!shape.windows.empty()) must(writer.set_array("llama.attention.sliding_window", std::span(shape.windows)));
  if (!shape.globals.empty()) must(writer.set_array("llama.attention.global_tokens", std::span(shape.globals)));

  struct Tensor {
    std::string name;
    std::uint64_t rows, inputs;
    DType dtype;
  };
  std::vector<Tensor> tensors;
  const std::uint64_t d = shape.d_model, kv = std::uint64_t{shape.kv_heads} * (d / shape.heads);
  tensors.push_back({"token_embd.weight", shape.vocab, d, dtype});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    tensors.push_back({at + "attn_norm.weight", 1, d, DType::f32});
    tensors.push_back({at + "attn_q.weight", d, d, dtype});
    tensors.push_back({at + "attn_k.weight", kv, d, dtype});
    tensors.push_back({at + "attn_v.weight", kv, d, dtype});
    tensors.push_back({at + "attn_output.weight", d, d, dtype});
    tensors.push_back({at + "ffn_norm.weight", 1, d, DType::f32});
    tensors.push_back({at + "ffn_gate.weight", shape.ffn, d, dtype});
    tensors.push_back({at + "ffn_up.weight", shape.ffn, d, dtype});
    tensors.push_back({at + "ffn_down.weight", d, shape.ffn, dtype});
  }
  tensors.push_back({"output_norm.weight", 1, d, DType::f32});
  for (const Tensor& tensor : tensors) {
    const std::uint64_t dims[] = {tensor.inputs, tensor.rows};
    must(writer.add_tensor(tensor.name, tensor.dtype, std::span(dims, tensor.rows == 1 ? 1 : 2)));
  }
  MadeModel model;
  std::size_t next = 0;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        model.bytes.insert(model.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view, const ByteSink& write) -> Status {
        const Tensor& tensor = tensors[next];
        const std::size_t seed = next + 1 == tensors.size() ? 0 : next + 1;  // models of one shape share their first layers
        auto rows = made_rows(tensor.dtype, tensor.rows, tensor.inputs, static_cast<std::uint32_t>(seed));
        ++next;
        if (tensor.rows == 1) {  // a norm: about 1
          for (std::size_t i = 0; i < rows.size(); i += 4) {
            float value = 0;
            std::memcpy(&value, rows.data() + i, 4);
            value = 1.0f + value;
            std::memcpy(rows.data() + i, &value, 4);
          }
        }
        return write(rows);
      }));
  return model;
}

inline std::vector<Token> made_tokens(std::size_t n, std::uint32_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocab);
  return tokens;
}

}  // namespace tessera::test
