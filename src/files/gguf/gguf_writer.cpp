#include <tessera/extend/files/gguf_writer.hpp>

#include <map>

#include "formats/formats.hpp"
#include "files/gguf/gguf_format.hpp"
#include "core/printable.hpp"
#include "files/replacement_file.hpp"
#include "core/checked.hpp"
#include "core/error.hpp"

namespace tessera {
namespace {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

template <class T>
std::string scalar(GgufType type, T value) {
  std::string out;
  put(out, type);
  put(out, value);
  return out;
}

std::string array_head(GgufType element_type, std::uint64_t count) {
  std::string out;
  put(out, GgufType::array);
  put(out, element_type);
  put(out, count);
  return out;
}

template <class T>
std::string numbers(GgufType type, std::span<const T> values) {
  std::string out = array_head(type, values.size());
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

std::string place_of(const char* what, std::string_view name) {
  return fmt::format("{} '{}'", what, detail::printable(name));
}

// Returns whether `bytes` are exactly `count` strings as GGUF writes them: each a u64 length and its text.
bool are_strings(std::span<const std::byte> bytes, std::uint64_t count) {
  for (; count > 0; --count) {
    if (bytes.size() < 8) return false;
    const auto length = detail::load<std::uint64_t>(bytes.data());
    bytes = bytes.subspan(8);
    if (length > bytes.size()) return false;
    bytes = bytes.subspan(length);
  }
  return bytes.empty();
}

// Returns whether the entry's type, count and bytes agree. Entries may come from any caller, and the written file must be readable.
bool is_consistent(const GgufEntry& entry) {
  if (entry.type == GgufType::string) return true;
  if (entry.type != GgufType::array) {
    const auto bytes = detail::value_bytes(entry.type);
    return bytes != 0 && entry.bytes.size() == bytes;
  }
  if (entry.element_type == GgufType::string) return are_strings(entry.bytes, entry.count);
  const auto element = detail::value_bytes(entry.element_type);
  const auto bytes = detail::checked_multiply(element, entry.count);
  return element != 0 && bytes && *bytes == entry.bytes.size();
}

Status call(const ByteSink& sink, std::span<const std::byte> bytes) noexcept {
  return detail::guard([&] { return sink(bytes); }, ErrorCode::callback_failed);
}

Status pad(const ByteSink& sink, std::uint64_t written, std::uint64_t alignment) noexcept {
  static constexpr std::byte kZeros[256] = {};
  for (std::uint64_t left = (alignment - written % alignment) % alignment; left > 0;) {
    const auto step = std::min<std::uint64_t>(left, sizeof kZeros);
    TESSERA_TRY_STATUS(call(sink, {kZeros, static_cast<std::size_t>(step)}));
    left -= step;
  }
  return {};
}

}  // namespace

struct GgufWriter::State {
  struct Key {
    std::string name, value;  // `value` as the file stores it: type and bytes
  };
  struct Tensor {
    std::string name;
    DType dtype{};
    std::vector<std::uint64_t> dims;
    std::uint64_t bytes = 0;
  };
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::map<std::string, std::size_t, std::less<>> key_index, tensor_index;

  // Sets a key. After an error nothing has changed.
  Status set(std::string_view name, std::string value) {
    if (name.empty() || name.size() > detail::kMaxKeyBytes) {
      return detail::error_at(ErrorCode::invalid_argument, place_of("key", name), "a key has 1 to {} bytes",
                              detail::kMaxKeyBytes);
    }
    if (const auto at = key_index.find(name); at != key_index.end()) {
      keys[at->second].value = std::move(value);
      return {};
    }
    if (keys.size() >= detail::kMaxKeys) {
      return detail::make_error(ErrorCode::invalid_argument, "a file has at most {} keys", detail::kMaxKeys);
    }
    keys.reserve(keys.size() + 1 > keys.capacity() ? 2 * keys.size() + 8 : keys.capacity());
    Key key{std::string(name), std::move(value)};
    key_index.emplace(key.name, keys.size());
    keys.push_back(std::move(key));  // memory was reserved, so this cannot throw
    return {};
  }

  Result<std::uint64_t> alignment() const {
    const auto at = key_index.find(detail::kAlignmentKey);
    if (at == key_index.end()) return detail::kDefaultAlignment;
    const auto* value = reinterpret_cast<const std::byte*>(keys[at->second].value.data());
    const auto type = detail::load<GgufType>(value);
    const GgufArray number(type, 1, {value + 4, detail::value_bytes(type)});
    const std::int64_t alignment = number.is_integer() ? number.integer(0) : 0;
    if (alignment <= 0 || !detail::is_valid_alignment(static_cast<std::uint64_t>(alignment))) {
      return detail::error_at(ErrorCode::invalid_argument, place_of("key", detail::kAlignmentKey),
                              "must be an integer, a multiple of 8 and at most {}", detail::kMaxAlignment);
    }
    return static_cast<std::uint64_t>(alignment);
  }

  Result<std::string> header(std::uint64_t alignment) const {
    std::string out;
    put(out, detail::kGgufMagic);
    put(out, detail::kGgufVersion);
    put<std::uint64_t>(out, tensors.size());
    put<std::uint64_t>(out, keys.size());
    for (const Key& key : keys) {
      put_string(out, key.name);
      out += key.value;
    }
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors) {
      put_string(out, tensor.name);
      put(out, static_cast<std::uint32_t>(tensor.dims.size()));
      for (const std::uint64_t dim : tensor.dims) put(out, dim);
      put(out, tensor.dtype);
      put(out, offset);
      const auto end = detail::checked_add(offset, tensor.bytes);
      const auto next = end ? detail::checked_align(*end, alignment) : std::nullopt;
      if (!next) return detail::make_error(ErrorCode::invalid_argument, "the tensors are larger than a file can be");
      offset = *next;
    }
    if (out.size() > detail::kMaxHeaderBytes) {
      return detail::make_error(ErrorCode::invalid_argument, "the keys and names make a header of {} bytes; at most {} are possible",
                                out.size(), detail::kMaxHeaderBytes);
    }
    return out;
  }

  // Writes one tensor's data: calls the user's callback `data`, counts the bytes that the callback provides, and passes these bytes on to
  // `sink`. If `sink` fails, returns the error of `sink`, even if `data` ignores that error and returns success.
  static Status write_data(const Tensor& tensor, const ByteSink& sink, const TensorData& data) {
    std::uint64_t written = 0;
    Status failed;
    const ByteSink counting = [&](std::span<const std::byte> bytes) -> Status {
      if (failed && bytes.size() > tensor.bytes - written) {
        failed = detail::error_at(ErrorCode::invalid_argument, place_of("tensor", tensor.name),
                                  "more than its {} bytes of data were given", tensor.bytes);
      }
      if (failed && !bytes.empty()) failed = call(sink, bytes);
      if (failed) written += bytes.size();
      return failed;
    };
    auto done = detail::guard([&] { return data(tensor.name, counting); }, ErrorCode::callback_failed);
    TESSERA_TRY_STATUS(failed);
    TESSERA_TRY_STATUS(std::move(done));
    if (written != tensor.bytes) {
      return detail::error_at(ErrorCode::invalid_argument, place_of("tensor", tensor.name),
                              "{} bytes of data were given; it has {}", written, tensor.bytes);
    }
    return {};
  }

  Status write(const ByteSink& sink, const TensorData& data) const {
    if (!sink || (!data && !tensors.empty())) {
      return Error(ErrorCode::invalid_argument, "a callback is empty: the one that writes, or the one that reads the tensors' data");
    }
    TESSERA_TRY(const auto align, alignment());
    {
      TESSERA_TRY(const std::string head, header(align));
      TESSERA_TRY_STATUS(call(sink, std::as_bytes(std::span(head))));
      if (!tensors.empty()) TESSERA_TRY_STATUS(pad(sink, head.size(), align));
    }
    for (const Tensor& tensor : tensors) {
      TESSERA_TRY_STATUS(write_data(tensor, sink, data));
      TESSERA_TRY_STATUS(pad(sink, tensor.bytes, align));
    }
    return {};
  }
};

GgufWriter::GgufWriter() noexcept = default;
GgufWriter::GgufWriter(GgufWriter&&) noexcept = default;
GgufWriter& GgufWriter::operator=(GgufWriter&&) noexcept = default;
GgufWriter::~GgufWriter() = default;

// Makes the state when it is first needed, so that the constructor cannot fail.
GgufWriter::State& GgufWriter::state() {
  if (state_ == nullptr) state_ = std::make_unique<State>();
  return *state_;
}

Status GgufWriter::set(std::string_view key, std::uint32_t value) noexcept {
  return detail::guard([&] { return state().set(key, scalar(GgufType::u32, value)); });
}
Status GgufWriter::set(std::string_view key, std::uint64_t value) noexcept {
  return detail::guard([&] { return state().set(key, scalar(GgufType::u64, value)); });
}
Status GgufWriter::set(std::string_view key, std::int32_t value) noexcept {
  return detail::guard([&] { return state().set(key, scalar(GgufType::i32, value)); });
}
Status GgufWriter::set(std::string_view key, float value) noexcept {
  return detail::guard([&] { return state().set(key, scalar(GgufType::f32, value)); });
}
Status GgufWriter::set_boolean(std::string_view key, bool value) noexcept {
  return detail::guard([&] { return state().set(key, scalar(GgufType::boolean, static_cast<std::uint8_t>(value))); });
}

Status GgufWriter::set_string(std::string_view key, std::string_view value) noexcept {
  return detail::guard([&] {
    std::string out;
    put(out, GgufType::string);
    put_string(out, value);
    return state().set(key, std::move(out));
  });
}

Status GgufWriter::set_array(std::string_view key, std::span<const std::string> values) noexcept {
  return detail::guard([&] {
    std::string out = array_head(GgufType::string, values.size());
    for (const std::string& value : values) put_string(out, value);
    return state().set(key, std::move(out));
  });
}
Status GgufWriter::set_array(std::string_view key, std::span<const float> values) noexcept {
  return detail::guard([&] { return state().set(key, numbers(GgufType::f32, values)); });
}
Status GgufWriter::set_array(std::string_view key, std::span<const std::int32_t> values) noexcept {
  return detail::guard([&] { return state().set(key, numbers(GgufType::i32, values)); });
}

Status GgufWriter::set_list(std::string_view key, const ValueList& values) noexcept {
  return detail::guard([&]() -> Status {
    std::string out = array_head(values.type(), values.size());
    if (values.type() == ValueType::string) {
      for (const std::string_view text : values.strings()) put_string(out, text);
    } else {
      if (!values.is_whole()) return detail::error_at(ErrorCode::invalid_argument, place_of("key", key), "the list's size in bytes does not match its number of elements");
      out.append(reinterpret_cast<const char*>(values.bytes().data()), values.bytes().size());
    }
    return state().set(key, std::move(out));
  });
}

Status GgufWriter::copy(const GgufEntry& entry) noexcept {
  return detail::guard([&]() -> Status {
    if (!is_consistent(entry)) {
      return detail::error_at(ErrorCode::invalid_argument, place_of("key", entry.key),
                              "its type, count and bytes do not fit each other");
    }
    std::string out;
    if (entry.type == GgufType::array) {
      out = array_head(entry.element_type, entry.count);
    } else {
      put(out, entry.type);
      if (entry.type == GgufType::string) put<std::uint64_t>(out, entry.bytes.size());
    }
    out.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    return state().set(entry.key, std::move(out));
  });
}

Status GgufWriter::add_tensor(std::string_view name, DType dtype, std::span<const std::uint64_t> dims) noexcept {
  return detail::guard([&]() -> Status {
    const auto fail = [&](std::string message) {
      return Error(ErrorCode::invalid_argument, std::move(message), place_of("tensor", name));
    };
    if (name.empty() || name.size() > detail::kMaxTensorNameBytes) {
      return fail(fmt::format("a tensor's name has 1 to {} bytes", detail::kMaxTensorNameBytes));
    }
    if (dims.empty() || dims.size() > 4) return fail(fmt::format("{} dimensions; 1 to 4 are possible", dims.size()));
    const auto block = formats::block_of(dtype);
    if (!block) return fail(fmt::format("{} is not a weight format", to_string(dtype)));
    std::uint64_t values = 1;
    for (const std::uint64_t dim : dims) {
      const auto product = detail::checked_multiply(values, dim);
      if (!product || *product == 0 || *product >> 62 != 0) return fail(fmt::format("a dimension of {}", dim));
      values = *product;
    }
    if (dims[0] % block->values != 0) {
      return fail(fmt::format("rows of {} values are not whole blocks of {} ({} values each)", dims[0],
                              to_string(dtype), block->values));
    }
    const auto bytes = detail::checked_multiply(values / block->values, block->bytes);
    if (!bytes) return fail("larger than a file can be");
    State& s = state();
    if (s.tensor_index.contains(name)) return fail("was added before");
    if (s.tensors.size() >= detail::kMaxTensors) return fail(fmt::format("at most {} tensors", detail::kMaxTensors));
    s.tensors.reserve(s.tensors.size() + 1 > s.tensors.capacity() ? 2 * s.tensors.size() + 8 : s.tensors.capacity());
    State::Tensor tensor{std::string(name), dtype, {dims.begin(), dims.end()}, *bytes};
    s.tensor_index.emplace(tensor.name, s.tensors.size());
    s.tensors.push_back(std::move(tensor));  // memory was reserved, so this cannot throw
    return {};
  });
}

Status GgufWriter::write(const ByteSink& sink, const TensorData& data) const noexcept {
  return detail::guard([&] { return state_ != nullptr ? state_->write(sink, data) : State{}.write(sink, data); });
}

Status GgufWriter::write_file(const std::filesystem::path& path, const TensorData& data) const noexcept {
  return detail::guard([&]() -> Status {
    TESSERA_TRY(auto file, detail::ReplacementFile::create(path));
    TESSERA_TRY_STATUS(write([&](std::span<const std::byte> bytes) { return file.write(bytes); }, data));
    return file.commit();
  });
}

}  // namespace tessera
