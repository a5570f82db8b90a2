#include <tessera/extend/files/gguf.hpp>

#include <string>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/gguf/gguf_format.hpp"
#include "files/gguf/gguf_parser.hpp"
#include "files/gguf/gguf_settings.hpp"
#include "files/no_settings.hpp"
#include "files/source_name.hpp"

namespace tessera {

struct GgufFile::State {
  State(std::shared_ptr<ByteSource> from, detail::GgufHeader read)
      : source(std::move(from)), header(std::move(read)), settings(*source, header) {}

  std::shared_ptr<ByteSource> source;
  detail::GgufHeader header;
  detail::GgufSettings settings;

  Error key_error(ErrorCode code, std::string_view key, std::string message) const {
    return {code, std::move(message), fmt::format("{}: key '{}'", detail::name_of(*source), detail::printable(key))};
  }
  Error missing(std::string_view key) const {
    return key_error(ErrorCode::not_found, key, "is not in the file, and is needed");
  }
  Error wrong_type(const GgufEntry& entry, const char* wanted) const {
    return {ErrorCode::corrupt_file, fmt::format("is of type {}, where {} is expected", to_string(entry.type), wanted),
            fmt::format("{}: key '{}' (offset {})", detail::name_of(*source), detail::printable(entry.key), entry.offset)};
  }
};

namespace {

std::string_view text_of(const GgufEntry& entry) noexcept {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

// The byte source of an empty GgufFile: it has no bytes.
class NoSource final : public ByteSource {
 public:
  [[nodiscard]] std::uint64_t size() const noexcept override { return 0; }
  [[nodiscard]] Status read(std::uint64_t, std::span<std::byte>) noexcept override { return detail::empty_handle("GgufFile"); }
  [[nodiscard]] std::string name() const override { return {}; }
};

ByteSource& no_source() noexcept {
  alignas(NoSource) static std::byte storage[sizeof(NoSource)];
  static ByteSource* const source = new (storage) NoSource();
  return *source;
}

}  // namespace

GgufFile::GgufFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<GgufFile> GgufFile::read(std::shared_ptr<ByteSource> source, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<GgufFile> {
    if (source == nullptr) return Error(ErrorCode::invalid_argument, "the source is null");
    TESSERA_TRY(auto header, detail::parse_gguf(*source, stop));
    return GgufFile(std::make_shared<const State>(std::move(source), std::move(header)));
  });
}

std::uint32_t GgufFile::version() const noexcept { return state_ == nullptr ? 0 : state_->header.version; }
std::uint64_t GgufFile::alignment() const noexcept { return state_ == nullptr ? 0 : state_->header.alignment; }
std::uint64_t GgufFile::header_bytes() const noexcept { return state_ == nullptr ? 0 : state_->header.bytes; }
ByteSource& GgufFile::source() const noexcept { return state_ == nullptr ? no_source() : *state_->source; }
std::span<const GgufEntry> GgufFile::entries() const noexcept {
  return state_ == nullptr ? std::span<const GgufEntry>() : state_->header.entries;
}
std::span<const GgufTensor> GgufFile::tensors() const noexcept {
  return state_ == nullptr ? std::span<const GgufTensor>() : state_->header.tensors;
}

std::uint64_t GgufFile::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  constexpr std::uint64_t kSharedCounts = 2 * sizeof(void*);  // make_shared allocates two reference counts in front of the object
  const detail::GgufHeader& header = state_->header;
  return kSharedCounts + sizeof(State) + header.blob_bytes + header.entries.capacity() * sizeof(GgufEntry) +
         header.tensors.capacity() * sizeof(GgufTensor) +
         (header.entries_by_key.capacity() + header.tensors_by_name.capacity()) * sizeof(std::uint32_t);
}

const Settings& GgufFile::settings() const noexcept {
  if (state_ == nullptr) return detail::empty_value<detail::NoSettings>();
  return state_->settings;
}

const GgufEntry* GgufFile::find(std::string_view key) const noexcept {
  if (state_ == nullptr) return nullptr;
  return state_->header.find(key);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const noexcept {
  if (state_ == nullptr) return nullptr;
  return detail::find_sorted(tensors(), state_->header.tensors_by_name, name,
                             [](const GgufTensor& tensor) { return tensor.name; });
}

Result<std::uint64_t> GgufFile::unsigned_integer(std::string_view key) const noexcept {
  return detail::guard([&]() -> Result<std::uint64_t> {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return state_ == nullptr ? detail::empty_handle("GgufFile") : state_->missing(key);
    const GgufArray value(entry->type, 1, entry->bytes);
    if (!value.is_integer() || entry->type == GgufType::boolean) return state_->wrong_type(*entry, "an integer");
    const std::int64_t integer = value.integer(0);
    if (integer < 0 && entry->type != GgufType::u64) {
      return state_->key_error(ErrorCode::corrupt_file, key, fmt::format("is {}; it must not be negative", integer));
    }
    return static_cast<std::uint64_t>(integer);
  });
}

Result<double> GgufFile::number(std::string_view key) const noexcept {
  return detail::guard([&]() -> Result<double> {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return state_ == nullptr ? detail::empty_handle("GgufFile") : state_->missing(key);
    const GgufArray value(entry->type, 1, entry->bytes);
    if (!value.is_number() || entry->type == GgufType::boolean) return state_->wrong_type(*entry, "a number");
    return value.number(0);
  });
}

Result<bool> GgufFile::boolean(std::string_view key) const noexcept {
  return detail::guard([&]() -> Result<bool> {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return state_ == nullptr ? detail::empty_handle("GgufFile") : state_->missing(key);
    if (entry->type != GgufType::boolean) return state_->wrong_type(*entry, "a boolean");
    return entry->bytes[0] != std::byte{0};
  });
}

Result<std::string_view> GgufFile::string(std::string_view key) const noexcept {
  return detail::guard([&]() -> Result<std::string_view> {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return state_ == nullptr ? detail::empty_handle("GgufFile") : state_->missing(key);
    if (entry->type != GgufType::string) return state_->wrong_type(*entry, "a string");
    return text_of(*entry);
  });
}

Result<GgufArray> GgufFile::array(std::string_view key) const noexcept {
  return detail::guard([&]() -> Result<GgufArray> {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return state_ == nullptr ? detail::empty_handle("GgufFile") : state_->missing(key);
    if (entry->type != GgufType::array) return state_->wrong_type(*entry, "an array");
    return GgufArray(entry->element_type, entry->count, entry->bytes);
  });
}

Result<std::uint64_t> GgufFile::unsigned_integer_or(std::string_view key, std::uint64_t absent) const noexcept {
  return state_ != nullptr && find(key) == nullptr ? Result<std::uint64_t>(absent) : unsigned_integer(key);
}

Result<double> GgufFile::number_or(std::string_view key, double absent) const noexcept {
  return state_ != nullptr && find(key) == nullptr ? Result<double>(absent) : number(key);
}

Result<bool> GgufFile::boolean_or(std::string_view key, bool absent) const noexcept {
  return state_ != nullptr && find(key) == nullptr ? Result<bool>(absent) : boolean(key);
}

Result<std::string_view> GgufFile::string_or(std::string_view key, std::string_view absent) const noexcept {
  return state_ != nullptr && find(key) == nullptr ? Result<std::string_view>(absent) : string(key);
}

}  // namespace tessera
