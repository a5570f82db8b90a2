// Adapters made up on the spot, for any model: random A and B for the tensors that are asked for, as a GGUF file.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "engine/made_model.hpp"

namespace tessera::test {

struct MadeAdapter {
  std::uint32_t rank = 4;
  DType dtype = DType::f32;
  float alpha = 8.0f;
  std::uint32_t seed = 1;
  float size = 0.5f;  // of the change, beside that of the weights
  // Chooses the tensors that the adapter changes. Default: all matrices of layers.
  std::function<bool(std::string_view name)> takes = [](std::string_view) { return true; };
  std::vector<std::uint32_t> invocation = {};
};

// Returns whether a tensor of the model is a matrix to whose products an adapter may belong.
inline bool can_be_adapted(const TensorInfo& tensor) {
  const auto has = [&](std::string_view part) { return tensor.name.find(part) != std::string_view::npos; };
  if (tensor.n_dims < 2 || !tensor.name.ends_with(".weight") || has("norm") || has("conv") || has("position_embd")) return false;
  return tensor.name.starts_with("blk.") || has("output.weight") || has("token_embd");
}

// The numbers of an adapter's change of one tensor, as floats after rounding to the adapter's type.
struct MadeChange {
  std::uint64_t rank = 0, inputs = 0, outputs = 0, count = 1;  // tables: `inputs` is the vocabulary
  std::vector<float> a, b;  // [count, rank, inputs] (tables: [inputs, rank]) and [count, outputs, rank]
};

inline MadeChange make_change(const TensorInfo& tensor, const MadeAdapter& how) {
  const bool is_table = tensor.name == "token_embd.weight";
  MadeChange made{.rank = how.rank, .inputs = tensor.dims[is_table ? 1 : 0], .outputs = tensor.dims[is_table ? 0 : 1], .count = tensor.dims[2],
                  .a = {}, .b = {}};
  std::mt19937_64 random(how.seed * 7919u + std::hash<std::string_view>()(tensor.name));
  const auto numbers = [&](std::uint64_t n, float size) {
    std::vector<float> values(n);
    for (float& value : values) value = size * (static_cast<float>(random() >> 40) / static_cast<float>(1 << 23) - 1.0f);
    std::vector<std::byte> bytes(n * (how.dtype == DType::f32 ? 4 : 2));
    must(formats::encode_row(how.dtype, values, bytes));
    must(formats::decode_row(how.dtype, bytes, values));
    return values;
  };
  // A x has about the size of x, and B of it the wanted share.
  made.a = numbers(made.count * made.rank * made.inputs, is_table ? 0.5f : 1.0f / std::sqrt(static_cast<float>(made.inputs)));
  made.b = numbers(made.count * made.outputs * made.rank, how.size / static_cast<float>(made.rank));
  return made;
}

inline float scale_of(const MadeAdapter& how) { return how.alpha == 0.0f ? 1.0f : how.alpha / static_cast<float>(how.rank); }

// Writes the adapter to `path`, and returns the path.
inline std::filesystem::path write_adapter(const std::filesystem::path& path, const ModelSource& base, const MadeAdapter& how) {
  GgufWriter writer;
  must(writer.set_string("general.type", "adapter"));
  must(writer.set_string("general.architecture", must(base.settings().string(Setting::architecture))));
  must(writer.set_string("general.name", path.stem().string()));
  must(writer.set_string("adapter.type", "lora"));
  must(writer.set("adapter.lora.alpha", how.alpha));
  if (!how.invocation.empty()) {
    must(writer.set_list("adapter.alora.invocation_tokens",
                         ValueList(ValueType::u32, how.invocation.size(), std::as_bytes(std::span(how.invocation)))));
  }
  std::map<std::string, std::vector<std::byte>> data;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> dims, std::uint64_t count, const std::vector<float>& values) {
    if (count > 1) dims.push_back(count);
    must(writer.add_tensor(name, how.dtype, dims));
    std::vector<std::byte>& bytes = data[name];
    bytes.resize(values.size() * (how.dtype == DType::f32 ? 4 : 2));
    must(formats::encode_row(how.dtype, values, bytes));
  };
  for (const TensorInfo& tensor : base.tensors()) {
    if (!can_be_adapted(tensor) || !how.takes(tensor.name)) continue;
    const MadeChange change = make_change(tensor, how);
    const std::string name(tensor.name);
    if (name == "token_embd.weight") add(name + ".lora_a", {change.rank, change.inputs}, 1, change.a);
    else add(name + ".lora_a", {change.inputs, change.rank}, change.count, change.a);
    add(name + ".lora_b", {change.rank, change.outputs}, change.count, change.b);
  }
  must(writer.write_file(path, [&](std::string_view name, const ByteSink& write) { return write(data.at(std::string(name))); }));
  return path;
}

// A directory that is removed with its files at the end.
class AdapterFolder {
 public:
  AdapterFolder() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() / ("tessera-adapters-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  AdapterFolder(const AdapterFolder&) = delete;
  AdapterFolder& operator=(const AdapterFolder&) = delete;
  ~AdapterFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path write(const std::string& name, const ModelSource& base, const MadeAdapter& how) const {
    return write_adapter(path_ / (name + ".gguf"), base, how);
  }

 private:
  std::filesystem::path path_;
};

// The same model with the adapter added to its weights, which must be F32. (The table of a tied model changes its output matrix too.)
inline MadeModel merged(const ModelFile& file, const MadeAdapter& how, float scale) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  for (const GgufTensor& tensor : file.tensors()) {
    must(writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
  }
  MadeModel made;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        made.bytes.insert(made.bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const GgufTensor& tensor = *file.find_tensor(name);
        std::vector<std::byte> bytes(tensor.bytes);
        must(file.read(tensor, 0, bytes));
        if (!can_be_adapted(tensor) || !how.takes(tensor.name)) return write(bytes);
        std::vector<float> values(bytes.size() / sizeof(float));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        const MadeChange change = make_change(tensor, how);
        const bool is_table = tensor.name == "token_embd.weight";
        const double factor = static_cast<double>(scale) * static_cast<double>(scale_of(how));
        for (std::uint64_t m = 0; m < change.count; ++m) {
          for (std::uint64_t o = 0; o < change.outputs; ++o) {
            for (std::uint64_t i = 0; i < change.inputs; ++i) {
              double sum = 0.0;
              for (std::uint64_t r = 0; r < change.rank; ++r) {
                const float a = is_table ? change.a[i * change.rank + r] : change.a[(m * change.rank + r) * change.inputs + i];
                sum += static_cast<double>(a) * static_cast<double>(change.b[(m * change.outputs + o) * change.rank + r]);
              }
              float& value = is_table ? values[i * change.outputs + o] : values[(m * change.outputs + o) * change.inputs + i];
              value = static_cast<float>(static_cast<double>(value) + factor * sum);
            }
          }
        }
        return write(std::as_bytes(std::span(values)));
      }));
  return made;
}

}  // namespace tessera::test
