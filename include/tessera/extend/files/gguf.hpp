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

namespace tessera {

enum class GgufType : std::uint32_t {
  u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12
};

[[nodiscard]] std::string_view to_string(GgufType type) noexcept;

// The elements of an array value, viewed in the header's bytes. Strings are found by walking: iterate, do not index.
class GgufArray {
 public:
  GgufArray() noexcept = default;  // no elements
  GgufArray(GgufType type, std::uint64_t count, std::span<const std::byte> bytes) noexcept
      : type_(type), count_(count), bytes_(bytes) {}
  [[nodiscard]] GgufType type() const noexcept { return type_; }  // of an element
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  // Element i converted; i < size() and a numeric (or boolean) type are the caller's to ensure: is_integer(),
  // is_number().
  [[nodiscard]] bool is_integer() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;
  [[nodiscard]] std::int64_t integer(std::uint64_t i) const noexcept;
  [[nodiscard]] double number(std::uint64_t i) const noexcept;

  class StringIterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    StringIterator() noexcept = default;
    explicit StringIterator(const std::byte* at) noexcept : at_(at) {}
    [[nodiscard]] std::string_view operator*() const noexcept;
    StringIterator& operator++() noexcept;
    StringIterator operator++(int) noexcept { auto old = *this; ++*this; return old; }
    bool operator==(const StringIterator&) const noexcept = default;

   private:
    const std::byte* at_ = nullptr;  // at a string's u64 length
  };
  struct Strings {
    StringIterator first, last;
    [[nodiscard]] StringIterator begin() const noexcept { return first; }
    [[nodiscard]] StringIterator end() const noexcept { return last; }
  };
  [[nodiscard]] Strings strings() const noexcept;  // for type() == string

 private:
  GgufType type_ = GgufType::u8;
  std::uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

struct GgufEntry {
  std::string_view key;
  GgufType type;                     // array for arrays
  GgufType element_type;             // of an array's elements; else the same as type
  std::uint64_t count;               // of an array; else 1
  std::uint64_t offset;              // of the value in the file
  std::span<const std::byte> bytes;  // a string's text; a scalar's or array's bytes
};

struct GgufTensor {
  std::string_view name;
  DType dtype;                        // any number that the file has: one that is no weight format can be looked at alone
  std::uint32_t n_dims;
  std::array<std::uint64_t, 4> dims;  // innermost first; unused ones are 1
  std::uint64_t offset;               // in the file
  std::uint64_t bytes;                // of a type that is no weight format: up to the next tensor
  std::uint32_t part = 0;             // of a split model: which file
};

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
