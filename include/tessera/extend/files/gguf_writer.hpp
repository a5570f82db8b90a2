// Writes GGUF v3: keys and descriptions of tensors, then the tensors' data in the order of the descriptions. The data is streamed, so a
// model may be larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/byte_sink.hpp>
#include <tessera/extend/files/gguf.hpp>

namespace tessera {

// Collects keys and descriptions, then writes a file.
//
//   GgufWriter writer;
//   Status status = writer.set_string("general.name", "mine");
//   if (status) status = writer.add_tensor("w", DType::f32, std::vector<std::uint64_t>{4});
//   const std::array<float, 4> values{1, 2, 3, 4};
//   const auto data = [&](std::string_view, const ByteSink& write) { return write(std::as_bytes(std::span(values))); };
//   if (status) status = writer.write_file("mine.gguf", data);
class GgufWriter {
 public:
  GgufWriter() noexcept;
  GgufWriter(GgufWriter&&) noexcept;
  GgufWriter& operator=(GgufWriter&&) noexcept;
  ~GgufWriter();

  // Set the value of a key, and replace an earlier value.
  Status set(std::string_view key, std::uint32_t value) noexcept;
  Status set(std::string_view key, std::uint64_t value) noexcept;
  Status set(std::string_view key, std::int32_t value) noexcept;
  Status set(std::string_view key, float value) noexcept;
  Status set(std::string_view key, bool value) noexcept = delete;  // a bool would be converted to a number: use set_boolean()
  Status set_boolean(std::string_view key, bool value) noexcept;
  Status set_string(std::string_view key, std::string_view value) noexcept;
  Status set_array(std::string_view key, std::span<const std::string> values) noexcept;
  Status set_array(std::string_view key, std::span<const float> values) noexcept;
  Status set_array(std::string_view key, std::span<const std::int32_t> values) noexcept;
  Status set_list(std::string_view key, const ValueList& values) noexcept;  // a list of any type (Settings::list())
  Status copy(const GgufEntry& entry) noexcept;  // copies a key and its value from another file

  // Describes a tensor. dims: 1 to 4 sizes, innermost first; the innermost size must be a multiple of the block of `dtype`.
  Status add_tensor(std::string_view name, DType dtype, std::span<const std::uint64_t> dims) noexcept;

  // Writes keys, descriptions and data. Calls `data(name, write)` once for each tensor, in order. `data` must pass exactly the tensor's
  // bytes to `write`, in any number of pieces.
  using TensorData = std::function<Status(std::string_view name, const ByteSink& write)>;
  Status write(const ByteSink& sink, const TensorData& data) const noexcept;
  // Writes to a temporary file beside `path`, and renames it to `path` when everything is written.
  Status write_file(const std::filesystem::path& path, const TensorData& data) const noexcept;

 private:
  struct State;
  State& state();
  std::unique_ptr<State> state_;
};

}  // namespace tessera
