// A golden model with other metadata.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "engine/models.hpp"

namespace tessera::test {

struct Renamed {
  std::string_view from, to;
};

// The file. `change` is given the writer, which has all keys already but those of `without`.
template <class Change>
std::vector<std::byte> changed_file(const std::string& name, Change&& change, const std::vector<std::string>& without = {}, const Renamed& tensor_name = {}) {
  const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) {
    if (std::find(without.begin(), without.end(), entry.key) == without.end()) must(writer.copy(entry));
  }
  change(writer);
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string_view as = tensor.name == tensor_name.from ? tensor_name.to : tensor.name;
    must(writer.add_tensor(as, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
  }
  std::vector<std::byte> bytes;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view as, const ByteSink& write) -> Status {
        const GgufTensor& tensor = *file.find_tensor(as == tensor_name.to ? tensor_name.from : as);
        std::vector<std::byte> data(tensor.bytes);
        must(file.read(tensor, 0, data));
        return write(data);
      }));
  return bytes;
}

template <class Change>
Result<Engine> load_changed(const std::string& name, Change&& change, const EngineOptions& options = {},
                            const std::vector<std::string>& without = {}, const Renamed& tensor_name = {}) {
  return Engine::load(must(ModelFile::from_memory(changed_file(name, std::forward<Change>(change), without, tensor_name))), options);
}

template <class Change>
Engine changed_model(const std::string& name, Change&& change, const EngineOptions& options = {}) {
  return must(load_changed(name, std::forward<Change>(change), options));
}

}  // namespace tessera::test
