// Parses the header of a GGUF file in two passes with the same code, so that memory is allocated only at its exact size. The first pass
// counts bytes, keys and tensors, reading through a small window that slides over the file. Then all memory is allocated, and the second
// pass parses the header in memory. All results come from the second pass, so a file that changes between the two passes does no harm: at
// worst it is refused.
#include "files/gguf/gguf_parser.hpp"

#include <algorithm>
#include <string>

#include "formats/formats.hpp"
#include "files/gguf/gguf_format.hpp"
#include "files/gguf/header_bytes.hpp"
#include "files/source_name.hpp"
#include "core/printable.hpp"
#include "core/checked.hpp"
#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{128} << 10;  // large enough for the longest key
constexpr std::size_t kReadBytes = std::size_t{64} << 20;        // bytes read at once; the stop token is checked after each read
// Bytes of the smallest entry: the length of its key (8), a key of one letter, its type (4), a value of one byte.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct Extent {
  std::uint64_t bytes = 0, keys = 0, tensors = 0;
  bool operator==(const Extent&) const noexcept = default;
};

class Parser {
 public:
  // `header` receives the results; nullptr in the first pass, which only counts.
  Parser(ByteSource& source, HeaderBytes bytes, GgufHeader* header, const std::stop_token& stop)
      : source_(source), bytes_(bytes), header_(header), stop_(stop) {}

  Status run() {
    TESSERA_TRY_STATUS(preamble());
    TESSERA_TRY(extent_.tensors, take<std::uint64_t>());
    TESSERA_TRY(extent_.keys, take<std::uint64_t>());
    TESSERA_TRY_STATUS(check_count(extent_.keys, kMaxKeys, kMinEntryBytes, "keys"));
    TESSERA_TRY_STATUS(check_count(extent_.tensors, kMaxTensors, kMinTensorBytes, "tensors"));
    if (header_ != nullptr) {
      header_->entries.reserve(extent_.keys);
      header_->tensors.reserve(extent_.tensors);
    }
    for (std::uint64_t i = 0; i < extent_.keys; ++i) TESSERA_TRY_STATUS(entry());
    for (std::uint64_t i = 0; i < extent_.tensors; ++i) TESSERA_TRY_STATUS(tensor());
    extent_.bytes = at_;
    return {};
  }

  [[nodiscard]] const Extent& extent() const noexcept { return extent_; }

 private:
  template <class... Args>
  Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, fmt::format("{}: offset {}{}", detail::name_of(source_), at_, subject_), format,
                    std::forward<Args>(args)...);
  }

  Status need(std::uint64_t count) const {
    if (count > bytes_.limit() - at_) {
      return fail(ErrorCode::corrupt_file,
                  "{} bytes are needed here, and the file ends after {}: it is damaged, or its download is incomplete",
                  count, bytes_.limit() - at_);
    }
    if (at_ + count > kMaxHeaderBytes) {
      return fail(ErrorCode::unsupported, "the header is larger than {} bytes", kMaxHeaderBytes);
    }
    return {};
  }

  template <class T>
  Result<T> take() {
    TESSERA_TRY_STATUS(need(sizeof(T)));
    TESSERA_TRY(const auto view, bytes_.view(at_, sizeof(T)));
    at_ += sizeof(T);
    return load<T>(view.data());
  }

  Status check_count(std::uint64_t count, std::uint64_t most, std::uint64_t least_bytes, const char* what) const {
    if (count > (bytes_.limit() - at_) / least_bytes) {
      return fail(ErrorCode::corrupt_file,
                  "the file claims {} {}, more than its size allows: it is damaged, or its download is incomplete", count, what);
    }
    if (count > most) return fail(ErrorCode::unsupported, "the file has {} {}; at most {} are read", count, what, most);
    return {};
  }

  Status preamble() {
    TESSERA_TRY(const auto magic, take<std::uint32_t>());
    if (magic != kGgufMagic) {
      at_ = 0;
      return not_gguf(magic);
    }
    TESSERA_TRY(const auto version, take<std::uint32_t>());
    if (version == 2 || version == 3) {
      if (header_ != nullptr) header_->version = version;
      return {};
    }
    at_ -= sizeof version;
    if ((version & 0xffffu) == 0 && version != 0) return big_endian();
    if (version == 1) {
      return fail(ErrorCode::unsupported, "this is GGUF version 1, which is out of use: convert the model again");
    }
    return fail(ErrorCode::unsupported, "GGUF version {} is not known; versions 2 and 3 are read", version);
  }

  Error big_endian() const {
    return fail(ErrorCode::unsupported,
                "this is a big-endian GGUF file; only little-endian ones are read: convert it, for instance with "
                "gguf-convert-endian");
  }

  // Returns whether the file looks like a safetensors file: it begins with the length of a JSON header, then {".
  bool is_safetensors() {
    if (bytes_.limit() < 10) return false;
    const auto opening = bytes_.view(8, 2);
    return opening && (*opening)[0] == std::byte{'{'} && (*opening)[1] == std::byte{'"'};
  }

  // Returns the error for a file that is not GGUF. The message says which kind of file it seems to be.
  Error not_gguf(std::uint32_t magic) {
    switch (magic) {
      case 0x47475546: return big_endian();
      case 0x67676d6c:    // "ggml"
      case 0x67676d66:    // "ggmf"
      case 0x67676a74:    // "ggjt"
      case 0x67676c61:    // "ggla"
        return fail(ErrorCode::unsupported, "this is a ggml file from before GGUF: convert the model again");
      case 0x04034b50:  // "PK"
        return fail(ErrorCode::unsupported, "this is a zip archive (a PyTorch checkpoint?), not GGUF: convert it to GGUF");
      case 0x73726576:  // "vers"
        return fail(ErrorCode::corrupt_file, "this is text (a Git LFS pointer?), not GGUF: fetch the file itself");
      default:
        if (is_safetensors()) return fail(ErrorCode::unsupported, "this is a safetensors file, not GGUF: convert its folder with tessera-convert");
        return fail(ErrorCode::corrupt_file, "this is not a GGUF file: it begins with 0x{:08x}, not with \"GGUF\"", magic);
    }
  }

  // Reads a name (of a key or a tensor) of at most `most` bytes. Errors call the name `what`.
  Result<std::string_view> name(std::uint64_t most, const char* what) {
    subject_.clear();
    const std::uint64_t start = at_;
    TESSERA_TRY(const auto length, take<std::uint64_t>());
    if (length == 0 || length > most) {
      at_ = start;
      return fail(ErrorCode::corrupt_file, "the name of a {} has {} bytes; 1 to {} are allowed", what, length, most);
    }
    TESSERA_TRY_STATUS(need(length));
    TESSERA_TRY(const auto view, bytes_.view(at_, static_cast<std::size_t>(length)));
    at_ += length;
    const std::string_view text(reinterpret_cast<const char*>(view.data()), view.size());
    subject_ = fmt::format(": {} '{}'", what, printable(text));
    return text;
  }

  Result<GgufType> type() {
    TESSERA_TRY(const auto id, take<std::uint32_t>());
    const auto type = static_cast<GgufType>(id);
    if (is_known(type)) return type;
    at_ -= sizeof id;
    return fail(ErrorCode::corrupt_file, "value type {} does not exist", id);
  }

  Status skip_string() {
    TESSERA_TRY(const auto length, take<std::uint64_t>());
    TESSERA_TRY_STATUS(need(length));
    at_ += length;
    return {};
  }

  // Skips `count` values of a type whose values all have the same size.
  Status skip_values(GgufType type, std::uint64_t count) {
    const auto bytes = checked_multiply(count, value_bytes(type));
    if (!bytes) return fail(ErrorCode::corrupt_file, "an array of {} values is too large", count);
    TESSERA_TRY_STATUS(need(*bytes));
    if (type == GgufType::boolean && header_ != nullptr) {
      const std::byte* values = header_->blob.get() + at_;
      const auto* wrong = std::find_if(values, values + count, [](std::byte b) { return b > std::byte{1}; });
      if (wrong != values + count) {
        return fail(ErrorCode::corrupt_file, "a boolean of value {}; only 0 and 1 are allowed",
                    std::to_integer<int>(*wrong));
      }
    }
    at_ += *bytes;
    return {};
  }

  Status check_stop() const {
    if (!stop_.stop_requested()) return {};
    return fail(ErrorCode::cancelled, "reading the header was cancelled");
  }

  Status entry() {
    TESSERA_TRY_STATUS(check_stop());
    TESSERA_TRY(const auto key, name(kMaxKeyBytes, "key"));
    TESSERA_TRY(const GgufType value_type, type());
    GgufType element_type = value_type;
    std::uint64_t count = 1;
    // Offset where GgufEntry::bytes will begin: after the length of a string, or after the type and count of an array.
    std::uint64_t first = at_;
    if (value_type == GgufType::string) {
      TESSERA_TRY_STATUS(skip_string());
      first += 8;
    } else if (value_type == GgufType::array) {
      TESSERA_TRY(element_type, type());
      TESSERA_TRY(count, take<std::uint64_t>());
      first = at_;
      TESSERA_TRY_STATUS(elements(element_type, count));
    } else {
      TESSERA_TRY_STATUS(skip_values(value_type, 1));
    }
    if (header_ != nullptr) {
      header_->entries.push_back({.key = key,
                                  .type = value_type,
                                  .element_type = element_type,
                                  .count = count,
                                  .offset = first,
                                  .bytes = {header_->blob.get() + first, static_cast<std::size_t>(at_ - first)}});
    }
    return {};
  }

  Status elements(GgufType type, std::uint64_t count) {
    if (type == GgufType::array) return fail(ErrorCode::unsupported, "arrays of arrays are not read");
    if (type != GgufType::string) return skip_values(type, count);
    if (count > (bytes_.limit() - at_) / 8) {
      return fail(ErrorCode::corrupt_file,
                  "the file claims an array of {} strings, more than its size allows: it is damaged, or its download is "
                  "incomplete", count);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i % 4096 == 0) TESSERA_TRY_STATUS(check_stop());
      TESSERA_TRY_STATUS(skip_string());
    }
    return {};
  }

  Status tensor() {
    TESSERA_TRY_STATUS(check_stop());
    GgufTensor tensor{};
    TESSERA_TRY(tensor.name, name(kMaxTensorNameBytes, "tensor"));
    TESSERA_TRY(tensor.n_dims, take<std::uint32_t>());
    if (tensor.n_dims < 1 || tensor.n_dims > 4) {
      return fail(ErrorCode::corrupt_file, "{} dimensions; 1 to 4 are allowed", tensor.n_dims);
    }
    tensor.dims = {1, 1, 1, 1};
    std::uint64_t values = 1;
    for (std::uint32_t i = 0; i < tensor.n_dims; ++i) {
      TESSERA_TRY(tensor.dims[i], take<std::uint64_t>());
      const auto product = checked_multiply(values, tensor.dims[i]);
      if (!product || *product == 0 || *product >> 62 != 0) {
        return fail(ErrorCode::corrupt_file, "dimension {} is {}: no tensor has that", i, tensor.dims[i]);
      }
      values = *product;
    }
    TESSERA_TRY(const auto type_id, take<std::uint32_t>());
    tensor.dtype = static_cast<DType>(type_id);
    const auto known = formats::block_of(tensor.dtype);
    const formats::Block block = known.value_or(formats::Block{1, 0});  // Linker::no_overlap() sets the bytes of unknown types
    if (tensor.dims[0] % block.values != 0) {
      return fail(ErrorCode::corrupt_file, "rows of {} values are not whole blocks of {} ({} values each)",
                  tensor.dims[0], to_string(tensor.dtype), block.values);
    }
    const auto bytes = checked_multiply(values / block.values, block.bytes);
    if (!bytes) return fail(ErrorCode::corrupt_file, "{} values are too many", values);
    tensor.bytes = *bytes;
    // Offset within the data section; place_tensors() makes it an offset within the file.
    TESSERA_TRY(tensor.offset, take<std::uint64_t>());
    if (header_ != nullptr) header_->tensors.push_back(tensor);
    return {};
  }

  ByteSource& source_;
  HeaderBytes bytes_;
  GgufHeader* header_;
  const std::stop_token& stop_;
  std::uint64_t at_ = 0;
  std::string subject_;  // what is being read, for errors, e.g. ": key 'general.name'"
  Extent extent_;
};

// Makes the checks that need the whole header: no name occurs twice, the alignment is valid, and each tensor's data lie within the file and
// do not overlap another tensor's data. Makes tensors' offsets relative to the file.
class Linker {
 public:
  Linker(ByteSource& source, GgufHeader& header, std::uint64_t file_bytes)
      : source_(source), header_(header), file_bytes_(file_bytes) {}

  Status run() {
    header_.entries_by_key = sorted_indices(header_.entries, &key_of);
    header_.tensors_by_name = sorted_indices(header_.tensors, &name_of);
    TESSERA_TRY_STATUS(unique(header_.entries, header_.entries_by_key, &key_of, "key"));
    TESSERA_TRY_STATUS(unique(header_.tensors, header_.tensors_by_name, &name_of, "tensor"));
    TESSERA_TRY_STATUS(set_alignment());
    // The sum cannot overflow: it is at most kMaxHeaderBytes + kMaxAlignment.
    const std::uint64_t data = (header_.blob_bytes + header_.alignment - 1) / header_.alignment * header_.alignment;
    header_.bytes = header_.tensors.empty() ? std::min(data, file_bytes_) : data;
    TESSERA_TRY_STATUS(place_tensors(data));
    return no_overlap();
  }

 private:
  static std::string_view key_of(const GgufEntry& entry) noexcept { return entry.key; }
  static std::string_view name_of(const GgufTensor& tensor) noexcept { return tensor.name; }

  Error fail(std::uint64_t offset, const char* what, std::string_view name, std::string message) const {
    return {ErrorCode::corrupt_file, std::move(message),
            fmt::format("{}: offset {}: {} '{}'", detail::name_of(source_), offset, what, printable(name))};
  }

  template <class Items, class Name>
  Status unique(const Items& items, const std::vector<std::uint32_t>& order, Name&& name, const char* what) const {
    for (std::size_t i = 1; i < order.size(); ++i) {
      const auto& item = items[order[i]];
      if (name(item) == name(items[order[i - 1]])) return fail(item.offset, what, name(item), "stands twice in the file");
    }
    return {};
  }

  Status set_alignment() {
    header_.alignment = kDefaultAlignment;
    const GgufEntry* entry =
        find_sorted(header_.entries, std::span<const std::uint32_t>(header_.entries_by_key), kAlignmentKey, &key_of);
    if (entry == nullptr) return {};
    const GgufArray value(entry->type, 1, entry->bytes);
    const std::int64_t alignment = value.is_integer() ? value.integer(0) : 0;
    if (alignment <= 0 || !is_valid_alignment(static_cast<std::uint64_t>(alignment))) {
      return fail(entry->offset, "key", entry->key,
                  fmt::format("must be an integer, a multiple of 8 and at most {}", kMaxAlignment));
    }
    header_.alignment = static_cast<std::uint64_t>(alignment);
    return {};
  }

  Status place_tensors(std::uint64_t data) {
    for (GgufTensor& tensor : header_.tensors) {
      if (tensor.offset % header_.alignment != 0) {
        return fail(header_.blob_bytes, "tensor", tensor.name,
                    fmt::format("its data begin at {} of the data section, not a multiple of the alignment {}",
                                tensor.offset, header_.alignment));
      }
      const auto first = checked_add(data, tensor.offset);
      const auto last = first ? checked_add(*first, tensor.bytes) : std::nullopt;
      if (!last || *last > file_bytes_) {
        return fail(header_.blob_bytes, "tensor", tensor.name,
                    fmt::format("its {} bytes at {} of the data section go beyond the end of the file ({} bytes): it is "
                                "damaged, or its download is incomplete",
                                tensor.bytes, tensor.offset, file_bytes_));
      }
      tensor.offset = *first;
    }
    return {};
  }

  Status no_overlap() const {
    std::vector<std::uint32_t> order(header_.tensors.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    auto& tensors = header_.tensors;
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].offset < tensors[b].offset; });
    // The size of an unknown type is not known, so its tensor gets all bytes up to the next tensor.
    for (std::size_t i = 0; i < order.size(); ++i) {
      GgufTensor& tensor = tensors[order[i]];
      if (formats::block_of(tensor.dtype)) continue;
      tensor.bytes = (i + 1 < order.size() ? tensors[order[i + 1]].offset : file_bytes_) - tensor.offset;
      if (tensor.bytes == 0) return fail(tensor.offset, "tensor", tensor.name, "no data are there");
    }
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = tensors[order[i - 1]];
      const GgufTensor& tensor = tensors[order[i]];
      if (tensor.offset < before.offset + before.bytes) {
        return fail(tensor.offset, "tensor", tensor.name,
                    fmt::format("its data overlap those of '{}'", printable(before.name)));
      }
    }
    return {};
  }

  ByteSource& source_;
  GgufHeader& header_;
  std::uint64_t file_bytes_;
};

}  // namespace

Result<GgufHeader> parse_gguf(ByteSource& source, const std::stop_token& stop) {
  const std::uint64_t file_bytes = source.size();
  Extent extent;
  {
    const auto window_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, file_bytes));
    const auto window = std::make_unique_for_overwrite<std::byte[]>(window_bytes);
    Parser measure(source, HeaderBytes(source, {window.get(), window_bytes}, file_bytes), nullptr, stop);
    TESSERA_TRY_STATUS(measure.run());
    extent = measure.extent();
  }
  GgufHeader header;
  header.blob_bytes = extent.bytes;
  header.blob = std::make_unique_for_overwrite<std::byte[]>(extent.bytes);
  const std::span<std::byte> blob(header.blob.get(), extent.bytes);
  for (std::size_t at = 0; at < blob.size(); at += kReadBytes) {
    if (stop.stop_requested()) {
      return error_at(ErrorCode::cancelled, detail::name_of(source), "reading the header was cancelled");
    }
    TESSERA_TRY_STATUS(source.read(at, blob.subspan(at, std::min(kReadBytes, blob.size() - at))));
  }
  Parser parser(source, HeaderBytes(blob), &header, stop);
  auto parsed = parser.run();
  if (parsed && parser.extent() != extent) {
    return error_at(ErrorCode::io, detail::name_of(source), "the file changed while it was being read");
  }
  TESSERA_TRY_STATUS(std::move(parsed));
  TESSERA_TRY_STATUS(Linker(source, header, file_bytes).run());
  return header;
}

}  // namespace tessera::detail
