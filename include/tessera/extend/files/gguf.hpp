// GGUF v2 and v3, little-endian (specification: ggml/docs/gguf.md). The header is checked as a whole when it is read:
// every count, offset and product with checked arithmetic against the file's size before anything is allocated. A value
// that parsed is safe to use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/files/byte_source.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera {

// Settings have GGUF's types of values.
using GgufType = ValueType;
using GgufArray = ValueList;

struct GgufEntry {
  std::string_view key;
  GgufType type;                     // array for arrays
  GgufType element_type;             // of an array's elements; else the same as type
  std::uint64_t count;               // of an array; else 1
  std::uint64_t offset;              // of the value in the file
  std::span<const std::byte> bytes;  // a string's text; a scalar's or array's bytes
};

using GgufTensor = TensorInfo;

// One GGUF file's header. A cheap, immutable handle: copies share the bytes.
class GgufFile {
 public:
  GgufFile() noexcept = default;  // an empty handle (docs/headers.md)
  // `stop` ends it with ErrorCode::cancelled.
  [[nodiscard]] static Result<GgufFile> read(std::shared_ptr<ByteSource> source, const std::stop_token& stop = {}) noexcept;

  [[nodiscard]] std::uint32_t version() const noexcept;
  [[nodiscard]] std::uint64_t alignment() const noexcept;
  [[nodiscard]] std::uint64_t header_bytes() const noexcept;  // up to the first tensor's data
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // what this object holds in memory
  [[nodiscard]] ByteSource& source() const noexcept;
  [[nodiscard]] std::span<const GgufEntry> entries() const noexcept;    // in file order
  [[nodiscard]] std::span<const GgufTensor> tensors() const noexcept;   // in file order

  [[nodiscard]] const GgufEntry* find(std::string_view key) const noexcept;         // nullptr if absent
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const noexcept;

  // The keys by our names (src/files/gguf/gguf_settings.cpp has the list). They live as long as any copy of the handle.
  [[nodiscard]] const Settings& settings() const noexcept;

  // A key's value; absent is not_found, another type or a value that does not fit is an error that names the key.
  // Integers of every width and sign convert if the value fits, f32 and f64 to number(), integers too.
  [[nodiscard]] Result<std::uint64_t> unsigned_integer(std::string_view key) const noexcept;
  [[nodiscard]] Result<double> number(std::string_view key) const noexcept;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const noexcept;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const noexcept;
  [[nodiscard]] Result<GgufArray> array(std::string_view key) const noexcept;

  // The same with a value for an absent key; a present key of a wrong type is still an error.
  [[nodiscard]] Result<std::uint64_t> unsigned_integer_or(std::string_view key, std::uint64_t absent) const noexcept;
  [[nodiscard]] Result<double> number_or(std::string_view key, double absent) const noexcept;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool absent) const noexcept;
  [[nodiscard]] Result<std::string_view> string_or(std::string_view key, std::string_view absent) const noexcept;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
