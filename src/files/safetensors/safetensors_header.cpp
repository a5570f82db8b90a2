// Parses the header of a safetensors file in two passes with the same code, like the GGUF parser. The first pass counts; then all memory is
// allocated at its exact size, and the second pass fills the memory. Both passes read through a small window. A file that changes between
// the two passes is refused.
//
// The rules for valid files are those of the reference implementation (safetensors 0.8). For example, the data of the tensors follow each
// other, in any order, from the header's end to the file's end, without holes.
#include "files/safetensors/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/safetensors/foreign_file.hpp"
#include "files/safetensors/json_window.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kJsonWindow = std::size_t{64} << 10;
constexpr std::size_t kLengthBytes = 8;  // bytes of the number before the JSON text
constexpr std::size_t kMaxNotes = std::size_t{1} << 16;
constexpr std::size_t kMaxNoteBytes = std::size_t{16} << 20;  // bytes of one text; two copies are in memory while it is read
constexpr std::string_view kNotesKey = "__metadata__";

struct SafetensorsExtent {
  std::size_t texts = 0, dims = 0, tensors = 0, notes = 0;
  bool operator==(const SafetensorsExtent&) const noexcept = default;
};

class SafetensorsParser {
 public:
  SafetensorsParser(const SafetensorsParser&) = delete;  // json_ points to input_
  // `header` receives the results, and has memory for `room`; nullptr in the first pass, which only counts.
  SafetensorsParser(ByteSource& source, std::span<char> window, std::uint64_t json_bytes, SafetensorsHeader* header,
                    const SafetensorsExtent& room, const std::stop_token& stop)
      : input_(source, window, kLengthBytes, kLengthBytes + json_bytes, stop), json_(input_), header_(header), room_(room) {}

  Status run() {
    std::string key;
    const auto member = [&]() -> Status {
      if (key == kNotesKey) return notes();
      input_.set_subject(fmt::format("tensor '{}'", printable(key)));
      TESSERA_TRY_STATUS(tensor(key));
      input_.set_subject({});
      return {};
    };
    TESSERA_TRY_STATUS(json_.members(key, kMaxSafetensorsName, member));
    return json_.end();
  }

  [[nodiscard]] const SafetensorsExtent& extent() const noexcept { return extent_; }

 private:
  template <class... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return json_.fail(ErrorCode::corrupt_file, format, std::forward<Args>(args)...);
  }

  Error changed() const { return json_.fail(ErrorCode::io, "the file changed while it was being read"); }

  // Copies a text to the header's memory and returns the copy; in the first pass, returns an empty text.
  Result<std::string_view> keep(std::string_view text) {
    const std::size_t at = extent_.texts;
    extent_.texts += text.size();
    if (header_ == nullptr) return std::string_view();
    if (extent_.texts > room_.texts) return changed();
    std::memcpy(header_->texts.get() + at, text.data(), text.size());
    return std::string_view(header_->texts.get() + at, text.size());
  }

  Status notes() {
    if (std::exchange(has_notes_, true)) return wrong("{} stands twice in the header", kNotesKey);
    TESSERA_TRY(const JsonPullReader::Type type, json_.type());
    if (type == JsonPullReader::Type::null) return json_.null();
    std::string key, value;
    return json_.members(key, kMaxSafetensorsName, [&]() -> Status {
      TESSERA_TRY_STATUS(json_.string(value, kMaxNoteBytes));
      if (extent_.notes == kMaxNotes) {
        return json_.fail(ErrorCode::unsupported, "{} has more than {} entries", kNotesKey, kMaxNotes);
      }
      ++extent_.notes;
      TESSERA_TRY(const std::string_view kept_key, keep(key));
      TESSERA_TRY(const std::string_view kept_value, keep(value));
      if (header_ == nullptr) return {};
      if (extent_.notes > room_.notes) return changed();
      header_->notes.push_back({kept_key, kept_value});
      return {};
    });
  }

  // A tensor's fields as they are read.
  struct Fields {
    std::optional<SafetensorsType> type;
    std::array<std::uint64_t, kMaxSafetensorsDims> dims{};
    std::optional<std::size_t> n_dims;
    std::array<std::uint64_t, 2> offsets{};
    bool has_offsets = false;
  };

  Status tensor(std::string_view name) {
    if (extent_.tensors == kMaxSafetensorsTensors) {
      return json_.fail(ErrorCode::unsupported, "the file has more than {} tensors", kMaxSafetensorsTensors);
    }
    ++extent_.tensors;
    if (name.empty()) return wrong("a tensor has no name");
    Fields fields;
    std::string field;
    TESSERA_TRY_STATUS(json_.members(field, kMaxSafetensorsName, [&]() -> Status {
      if (field == "dtype") return type(fields);
      if (field == "shape") return shape(fields);
      if (field == "data_offsets") return offsets(fields);
      return json_.skip();
    }));
    if (!fields.type) return wrong("dtype is missing");
    if (!fields.n_dims) return wrong("shape is missing");
    if (!fields.has_offsets) return wrong("data_offsets is missing");
    TESSERA_TRY_STATUS(check_size(fields));
    return add(name, fields);
  }

  Status type(Fields& fields) {
    if (fields.type) return wrong("dtype stands twice");
    std::string name;
    TESSERA_TRY_STATUS(json_.string(name, kMaxSafetensorsName));
    fields.type = safetensors_type(name);
    if (!fields.type) {
      return json_.fail(ErrorCode::unsupported, "the dtype '{}' is not known: a newer tessera may read it",
                        printable(name));
    }
    return {};
  }

  Status shape(Fields& fields) {
    if (fields.n_dims) return wrong("shape stands twice");
    std::size_t n = 0;
    TESSERA_TRY_STATUS(json_.elements([&]() -> Status {
      if (n == kMaxSafetensorsDims) {
        return json_.fail(ErrorCode::unsupported, "a tensor of more than {} dimensions", kMaxSafetensorsDims);
      }
      TESSERA_TRY(fields.dims[n], json_.unsigned_integer());
      ++n;
      return {};
    }));
    fields.n_dims = n;
    return {};
  }

  Status offsets(Fields& fields) {
    if (std::exchange(fields.has_offsets, true)) return wrong("data_offsets stands twice");
    std::size_t n = 0;
    TESSERA_TRY_STATUS(json_.elements([&]() -> Status {
      if (n == 2) return wrong("data_offsets has more than two numbers");
      TESSERA_TRY(fields.offsets[n], json_.unsigned_integer());
      ++n;
      return {};
    }));
    if (n != 2) return wrong("data_offsets has fewer than two numbers");
    if (fields.offsets[0] > fields.offsets[1]) {
      return wrong("data_offsets is [{}, {}]: the end is in front of the beginning", fields.offsets[0],
                   fields.offsets[1]);
    }
    return {};
  }

  // Checks that the number of bytes between the offsets fits type and shape.
  Status check_size(const Fields& fields) const {
    std::optional<std::uint64_t> values = 1;
    for (std::size_t i = 0; i < *fields.n_dims && values; ++i) values = checked_multiply(*values, fields.dims[i]);
    const std::uint32_t bits = bits_of(*fields.type);
    const auto all = values ? checked_multiply(*values, bits) : std::nullopt;
    if (!all) return wrong("the shape has more values than can be");
    if (*all % 8 != 0) return wrong("{} values of {} bits are not whole bytes", *values, bits);
    const std::uint64_t given = fields.offsets[1] - fields.offsets[0];
    if (*all / 8 != given) {
      return wrong("{} values of {} need {} bytes, and data_offsets gives {}", *values, to_string(*fields.type),
                   *all / 8, given);
    }
    return {};
  }

  Status add(std::string_view name, const Fields& fields) {
    TESSERA_TRY(const std::string_view kept, keep(name));
    const std::size_t at = extent_.dims;
    extent_.dims += *fields.n_dims;
    if (header_ == nullptr) return {};
    if (extent_.tensors > room_.tensors || extent_.dims > room_.dims) return changed();
    std::uint64_t* const dims = header_->dims.get() + at;
    std::copy_n(fields.dims.begin(), *fields.n_dims, dims);
    header_->tensors.push_back(
        {.name = kept,
         .type = *fields.type,
         .dims = {dims, *fields.n_dims},
         .offset = fields.offsets[0],  // within the data; SafetensorsLinker makes it an offset in the file
         .bytes = fields.offsets[1] - fields.offsets[0]});
    return {};
  }

  JsonWindow input_;
  JsonPullReader json_;
  SafetensorsHeader* header_;
  SafetensorsExtent room_;
  SafetensorsExtent extent_;
  bool has_notes_ = false;
};

Error bad_data(const std::string& name, const SafetensorsTensor& tensor, std::string message) {
  return {ErrorCode::corrupt_file, std::move(message), fmt::format("{}: tensor '{}'", name, printable(tensor.name))};
}

// Sorts the tensors by the offset of their data, checks that the data follow each other without gaps up to the file's end,
// and makes offsets relative to the file.
Status place_data(ByteSource& source, SafetensorsHeader& header, std::uint64_t file_bytes) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    if (a.offset != b.offset) return a.offset < b.offset;
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.name < b.name;
  });
  std::uint64_t end = 0;
  for (SafetensorsTensor& tensor : tensors) {
    if (tensor.offset < end) {
      return bad_data(name_of(source), tensor,
                      fmt::format("its data at {} begin before {}, where those of another tensor end: they overlap",
                                  tensor.offset, end));
    }
    if (tensor.offset > end) {
      return bad_data(
          name_of(source), tensor,
          fmt::format("its data begin at {}, but all before end at {}: the bytes between belong to no tensor",
                      tensor.offset, end));
    }
    end += tensor.bytes;  // cannot overflow: it is the second number of data_offsets
  }
  const std::uint64_t there = file_bytes - header.bytes;
  if (end > there) {
    return error_at(
        ErrorCode::corrupt_file, name_of(source),
        "the last {} of {} bytes are missing: the download was not finished; go on with it, or download the file again",
        end - there, checked_add(header.bytes, end).value_or(end));
  }
  if (end < there) {
    return error_at(
        ErrorCode::corrupt_file, name_of(source),
        "{} bytes follow the data of the last tensor, and belong to none: the file is damaged; download it again",
        there - end);
  }
  for (SafetensorsTensor& tensor : tensors) tensor.offset += header.bytes;
  return {};
}

}  // namespace

Result<std::uint64_t> safetensors_text_bytes(ByteSource& source) {
  const std::uint64_t file_bytes = source.size();
  std::uint64_t length = 0;
  const bool has_length = file_bytes >= kLengthBytes;
  if (has_length) TESSERA_TRY_STATUS(source.read(0, std::as_writable_bytes(std::span(&length, 1))));
  if (!has_length || length > kMaxSafetensorsHeader) {
    if (auto foreign = foreign_file_error(source, "a safetensors file")) return *std::move(foreign);
  }
  const std::string name = name_of(source);
  if (!has_length)
    return error_at(ErrorCode::corrupt_file, name, "{} bytes are no safetensors file: download it again", file_bytes);
  if (length > kMaxSafetensorsHeader) {
    return error_at(
        ErrorCode::corrupt_file, name,
        "this is no safetensors file: its first 8 bytes state a header of {} bytes, and at most {} are allowed", length,
        kMaxSafetensorsHeader);
  }
  if (length < 2) {
    return error_at(ErrorCode::corrupt_file, name,
                    "its first 8 bytes state a header of {} bytes: the file is damaged, or its download was only begun",
                    length);
  }
  if (length > file_bytes - kLengthBytes) {
    return error_at(
        ErrorCode::corrupt_file, name,
        "its header alone has {} bytes, and the file has {}: the download was not finished; go on with it, or download "
        "the file again",
        kLengthBytes + length, file_bytes);
  }
  return length;
}

Result<SafetensorsHeader> parse_safetensors(ByteSource& source, const std::stop_token& stop) {
  const std::uint64_t file_bytes = source.size();
  TESSERA_TRY(const std::uint64_t json_bytes, safetensors_text_bytes(source));
  const auto window_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kJsonWindow, json_bytes));
  const auto memory = std::make_unique_for_overwrite<char[]>(window_bytes);
  const std::span<char> window(memory.get(), window_bytes);

  SafetensorsParser measure(source, window, json_bytes, nullptr, {}, stop);
  TESSERA_TRY_STATUS(measure.run());
  const SafetensorsExtent extent = measure.extent();

  SafetensorsHeader header;
  header.bytes = kLengthBytes + json_bytes;
  header.text_bytes = extent.texts;
  header.texts = std::make_unique_for_overwrite<char[]>(extent.texts);
  header.n_dims = extent.dims;
  header.dims = std::make_unique_for_overwrite<std::uint64_t[]>(extent.dims);
  header.tensors.reserve(extent.tensors);
  header.notes.reserve(extent.notes);
  SafetensorsParser parser(source, window, json_bytes, &header, extent, stop);
  auto parsed = parser.run();
  if (parsed && parser.extent() != extent)
    return error_at(ErrorCode::io, name_of(source), "the file changed while it was being read");
  TESSERA_TRY_STATUS(std::move(parsed));
  TESSERA_TRY_STATUS(place_data(source, header, file_bytes));
  return header;
}

}  // namespace tessera::detail
