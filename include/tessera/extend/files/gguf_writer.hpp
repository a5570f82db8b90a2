// Writes GGUF v3: keys and tensor descriptions first, then the tensors' data in the order they were described, streamed
// so that a model larger than memory can be written.
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

class GgufWriter {
 public:
  GgufWriter() noexcept;
  GgufWriter(GgufWriter&&) noexcept;
  GgufWriter& operator=(GgufWriter&&) noexcept;
  ~GgufWriter();

  // A key that stands already is replaced.
  Status set(std::string_view key, std::uint32_t value) noexcept;
  Status set(std::string_view key, std::uint64_t value) noexcept;
  Status set(std::string_view key, std::int32_t value) noexcept;
  Status set(std::string_view key, float value) noexcept;
  Status set(std::string_view key, bool value) noexcept = delete;  // it would become a number: set_boolean()
  Status set_boolean(std::string_view key, bool value) noexcept;
  Status set_string(std::string_view key, std::string_view value) noexcept;
  Status set_array(std::string_view key, std::span<const std::string> values) noexcept;
  Status set_array(std::string_view key, std::span<const float> values) noexcept;
  Status set_array(std::string_view key, std::span<const std::int32_t> values) noexcept;
  Status copy(const GgufEntry& entry) noexcept;  // as it stands in another file

  // Describes a tensor; dims innermost first, 1 to 4 of them. The innermost must be whole blocks of `dtype`.
  Status add_tensor(std::string_view name, DType dtype, std::span<const std::uint64_t> dims) noexcept;

  // Writes everything. `data(name, write)` is called once per tensor in order and must pass exactly its bytes to
  // `write`, in as many pieces as it likes.
  using TensorData = std::function<Status(std::string_view name, const ByteSink& write)>;
  Status write(const ByteSink& sink, const TensorData& data) const noexcept;
  // To a file, through a temporary beside it that replaces `path` only when all is written.
  Status write_file(const std::filesystem::path& path, const TensorData& data) const noexcept;

 private:
  struct State;
  State& state();
  std::unique_ptr<State> state_;
};

}  // namespace tessera
