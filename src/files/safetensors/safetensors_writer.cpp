#include "files/safetensors/safetensors_writer.hpp"

#include <cstring>

#include "core/error.hpp"
#include "json/spelling.hpp"

namespace tessera::detail {

void SafetensorsWriter::add(std::string_view name, SafetensorsType type, std::span<const std::uint64_t> dims) {
  std::uint64_t values = 1;
  std::string shape;
  for (const std::uint64_t dim : dims) {
    values *= dim;
    shape.append(shape.empty() ? "" : ",").append(std::to_string(dim));
  }
  const std::uint64_t end = bytes_ + values * bits_of(type) / 8;
  header_ += ',';
  append_json_string(header_, name);
  header_ += fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", to_string(type), shape, bytes_, end);
  bytes_ = end;
}

Status SafetensorsWriter::begin(const std::filesystem::path& path) {
  header_ += '}';
  header_.resize((header_.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  TESSERA_TRY(ReplacementFile file, ReplacementFile::create(path));
  open_ = std::make_unique<ReplacementFile>(std::move(file));
  const std::uint64_t size = header_.size();
  std::byte length[sizeof size];
  for (std::size_t i = 0; i < sizeof size; ++i) length[i] = static_cast<std::byte>(size >> (8 * i));
  TESSERA_TRY_STATUS(open_->write(length));
  return open_->write(std::as_bytes(std::span(header_)));
}

Status SafetensorsWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  return open_->write(bytes);
}

Status SafetensorsWriter::finish() {
  if (written_ != bytes_) return make_error(ErrorCode::invalid_state, "{} bytes of tensors were written; the header says {}", written_, bytes_);
  return open_->commit();
}

}  // namespace tessera::detail
