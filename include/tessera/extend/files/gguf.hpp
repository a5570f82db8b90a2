// Reads GGUF v2 and v3, little-endian (specification: ggml/docs/gguf.md). Before read() allocates memory, it checks the whole header
// against the file's size: every count, offset and product, with checked arithmetic. So values of a GgufFile are safe to use.
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

// The types of GGUF's values. The enumerators of ValueType have the numbers that the specification gives to these types.
using GgufType = ValueType;
using GgufArray = ValueList;

struct GgufEntry {
  std::string_view key;
  GgufType type;                     // ValueType::array for an array
  GgufType element_type;             // type of an array's elements; if the value is not an array: the same as `type`
  std::uint64_t count;               // number of elements of an array; 1 if the value is not an array
  std::uint64_t offset;              // offset of the value in the file
  std::span<const std::byte> bytes;  // the text of a string; otherwise the bytes of the value or of the array
};

using GgufTensor = TensorInfo;

// One GGUF file's header. A cheap, immutable handle: copies share the bytes.
//
//   auto file = GgufFile::read(*open_file("model.gguf"));
//   auto layers = file->unsigned_integer_or("llama.block_count", 0);
//   for (const GgufTensor& tensor : file->tensors()) std::printf("%.*s\n", int(tensor.name.size()), tensor.name.data());
class GgufFile {
 public:
  GgufFile() noexcept = default;  // an empty handle (docs/headers.md)
  // Reads and checks the header. Errors: corrupt_file; unsupported; io; cancelled, by `stop`.
  [[nodiscard]] static Result<GgufFile> read(std::shared_ptr<ByteSource> source, const std::stop_token& stop = {}) noexcept;

  [[nodiscard]] std::uint32_t version() const noexcept;
  [[nodiscard]] std::uint64_t alignment() const noexcept;
  [[nodiscard]] std::uint64_t header_bytes() const noexcept;  // bytes of the file before the first tensor's data
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // bytes of memory that this object holds
  [[nodiscard]] ByteSource& source() const noexcept;
  [[nodiscard]] std::span<const GgufEntry> entries() const noexcept;    // in file order
  [[nodiscard]] std::span<const GgufTensor> tensors() const noexcept;   // in file order

  [[nodiscard]] const GgufEntry* find(std::string_view key) const noexcept;         // nullptr if absent
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const noexcept;

  // Returns the file's values under this library's names (Setting). src/files/gguf/gguf_settings.cpp lists the names with their keys. The
  // reference is valid while any copy of the handle exists.
  [[nodiscard]] const Settings& settings() const noexcept;

  // Return the value of a key. unsigned_integer() accepts integers of every width and sign whose value fits; number() accepts f32, f64 and
  // integers. Errors, whose messages name the key: not_found, the key is absent; corrupt_file, the value has another type or does not fit.
  [[nodiscard]] Result<std::uint64_t> unsigned_integer(std::string_view key) const noexcept;
  [[nodiscard]] Result<double> number(std::string_view key) const noexcept;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const noexcept;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const noexcept;
  [[nodiscard]] Result<GgufArray> array(std::string_view key) const noexcept;

  // As above, but return `absent` if the key is absent. Errors: corrupt_file.
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
