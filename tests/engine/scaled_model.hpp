// A model whose matrices have numbers beside them (NAME.scale) that their products are multiplied by.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "engine/made_model.hpp"

namespace tessera::test {

using Factors = std::vector<float>;

// Matrix i of NAME.weight divided by factors[i] of what `factors_of` says, and NAME.scale beside it.
template <class FactorsOf>
MadeModel with_scales(const ModelFile& file, FactorsOf factors_of, std::string_view suffix = "scale") {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  std::map<std::string, Factors, std::less<>> scales;
  for (const GgufTensor& tensor : file.tensors()) {
    must(writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
    const Factors factors = factors_of(tensor);
    if (factors.empty()) continue;
    std::string name(tensor.name.substr(0, tensor.name.size() - std::string_view("weight").size()));
    name += suffix;
    must(writer.add_tensor(name, DType::f32, std::vector<std::uint64_t>{factors.size()}));
    scales.emplace(name, factors);
  }
  MadeModel made;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        made.bytes.insert(made.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view name, const ByteSink& write) -> Status {
        if (const auto scale = scales.find(name); scale != scales.end()) return write(std::as_bytes(std::span(scale->second)));
        const GgufTensor& tensor = *file.find_tensor(name);
        std::vector<std::byte> data(tensor.bytes);
        must(file.read(tensor, 0, data));
        const Factors factors = factors_of(tensor);
        if (factors.empty() || tensor.dtype != DType::f32) return write(data);
        std::vector<float> values(data.size() / sizeof(float));
        std::memcpy(values.data(), data.data(), data.size());
        const std::size_t matrix = tensor.dims[0] * tensor.dims[1];
        for (std::size_t i = 0; i < values.size(); ++i) values[i] /= factors.size() == 1 ? factors[0] : factors[i / matrix];
        return write(std::as_bytes(std::span(values)));
      }));
  return made;
}

}  // namespace tessera::test
