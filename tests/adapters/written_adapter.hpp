// Adapters that tests write: GGUF files by the library's writer, and PEFT folders by hand.
#pragma once

#include <cstring>
#include <functional>
#include <map>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "adapters/adapters.hpp"
#include "files/safetensors_bytes.hpp"

namespace tessera::test {

struct GgufAdapterOptions {
  std::string architecture = "llama", type = "adapter", kind = "lora";
  float alpha = 0.0f;
  std::vector<Token> invocation = {};
  DType dtype = DType::f32;                                                                 // of A and B, if their rows are whole blocks
  std::vector<std::string> further_tensors = {};                                            // F32 of 4 numbers
  std::function<bool(const std::string&)> keeps = [](const std::string&) { return true; };  // which tensors are written
};

// Writes the tensors of an adapter as llama.cpp's converter does. Their scale must be alpha / rank.
inline void write_gguf_adapter(const std::filesystem::path& path, const detail::AdapterFile& file, const OpenedBase& base,
                               const GgufAdapterOptions& options = {}) {
  GgufWriter writer;
  must(writer.set_string("general.type", options.type));
  must(writer.set_string("general.architecture", options.architecture));
  must(writer.set_string("general.name", "written"));
  must(writer.set_string("general.base_model.0.name", "the base"));
  must(writer.set_string("adapter.type", options.kind));
  if (options.alpha != 0.0f) must(writer.set("adapter.lora.alpha", options.alpha));
  if (!options.invocation.empty()) must(writer.set_array("adapter.alora.invocation_tokens", std::span(options.invocation)));
  std::map<std::string, std::vector<std::byte>> data;
  const auto add = [&](std::string name, std::vector<std::uint64_t> dims, DType dtype, std::span<const std::byte> numbers) {
    if (!options.keeps(name)) return;
    std::uint64_t count = 1;
    for (const std::uint64_t dim : dims) count *= dim;
    std::vector<float> values(count);
    if (!numbers.empty()) must(formats::decode_row(dtype, numbers, values));
    const auto block = *formats::block_of(options.dtype);
    const DType to = dims[0] % block.values == 0 ? options.dtype : DType::f16;
    const auto to_block = *formats::block_of(to);
    std::vector<std::byte> bytes(count / to_block.values * to_block.bytes);
    must(formats::encode_row(to, values, bytes));
    must(writer.add_tensor(name, to, dims));
    data[name] = std::move(bytes);
  };
  for (const detail::AdapterTensor& tensor : file.tensors) {
    const detail::AdaptedTensor& own = base.tensors[tensor.tensor];
    const bool is_table = tensor.is_embedding;
    std::vector<std::uint64_t> a =
        is_table ? std::vector<std::uint64_t>{tensor.rank, own.outputs} : std::vector<std::uint64_t>{own.inputs, tensor.rank};
    std::vector<std::uint64_t> b = {tensor.rank, is_table ? own.inputs : own.outputs};
    if (tensor.a_count > 1) a.push_back(tensor.a_count);
    if (tensor.b_count > 1) b.push_back(tensor.b_count);
    const std::string name = own.name == "token_embd.weight" && !is_table ? "output.weight" : own.name;  // a tied model's head
    add(name + ".lora_a", a, tensor.dtype, tensor.a);
    add(name + ".lora_b", b, tensor.dtype, tensor.b);
  }
  for (const std::string& name : options.further_tensors) add(name, {4}, DType::f32, {});
  must(writer.write_file(path, [&](std::string_view name, const ByteSink& write) { return write(data.at(std::string(name))); }));
}

// One tensor of a safetensors file that a test writes, in F32.
struct WrittenTensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::vector<float> values = {};  // none: 0.01, 0.02, ...
};

inline void write_safetensors(const std::filesystem::path& path, const std::vector<WrittenTensor>& tensors) {
  std::string json = "{";
  std::vector<std::byte> data;
  for (const WrittenTensor& tensor : tensors) {
    std::string shape;
    std::uint64_t count = 1;
    for (const std::uint64_t dim : tensor.dims) shape += (shape.empty() ? "" : ",") + std::to_string(dim), count *= dim;
    std::vector<float> values = tensor.values;
    for (std::uint64_t i = values.size(); i < count; ++i) values.push_back(0.01f * static_cast<float>(i % 100));
    const auto raw = std::as_bytes(std::span(values));
    json += (json.size() > 1 ? "," : "") + safetensors_bytes::tensor(tensor.name, "F32", shape, data.size(), data.size() + raw.size());
    data.insert(data.end(), raw.begin(), raw.end());
  }
  std::vector<std::byte> bytes = safetensors_bytes::file(json + "}");
  bytes.insert(bytes.end(), data.begin(), data.end());
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_peft_config(const std::filesystem::path& folder, std::string_view further = "") {
  std::ofstream(folder / "adapter_config.json") << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4)" << further << "}";
}

}  // namespace tessera::test
