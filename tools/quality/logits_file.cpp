#include "logits_file.hpp"

#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace tessera::quality {

Result<LogitsWriter> LogitsWriter::create(const std::filesystem::path& path, const LogitsHeader& header) {
  LogitsWriter writer;
  writer.name_ = path.string();
  writer.out_ = std::make_unique<std::ofstream>(path, std::ios::binary | std::ios::trunc);
  writer.out_->write(reinterpret_cast<const char*>(&header), sizeof(header));
  if (!*writer.out_) return Error(ErrorCode::io, "cannot be written", writer.name_);
  return writer;
}

void LogitsWriter::write(std::span<const float> logits) {
  out_->write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size_bytes()));
}

Status LogitsWriter::finish() {
  out_->close();
  if (!*out_) return Error(ErrorCode::io, "cannot be written", name_);
  return {};
}

Result<LogitsReader> LogitsReader::open(const std::filesystem::path& path, const LogitsHeader& expected) {
  LogitsReader reader;
  reader.name_ = path.string();
  reader.in_ = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*reader.in_) return Error(ErrorCode::io, "cannot be opened", reader.name_);
  LogitsHeader header;
  reader.in_->read(reinterpret_cast<char*>(&header), sizeof(header));
  if (!*reader.in_ || std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0) {
    return Error(ErrorCode::invalid_argument, "is not a file of logits", reader.name_);
  }
  if (std::memcmp(&header, &expected, sizeof(header)) != 0) {
    return Error(ErrorCode::invalid_argument, "is of other tokens or another vocabulary", reader.name_);
  }
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  const std::uint64_t expected_bytes = sizeof(header) + expected.rows * expected.vocab * sizeof(float);
  if (!failed && bytes != expected_bytes) {
    return Error(ErrorCode::corrupt_file, fmt::format("has {} bytes, not the {} of {} tokens", bytes, expected_bytes, expected.rows),
                 reader.name_);
  }
  return reader;
}

Status LogitsReader::read(std::span<float> logits) {
  in_->read(reinterpret_cast<char*>(logits.data()), static_cast<std::streamsize>(logits.size_bytes()));
  if (!*in_) return Error(ErrorCode::io, "ends too early", name_);
  return {};
}

}  // namespace tessera::quality
