#include "files/replacement_file.hpp"

#include <cstring>

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;  // small pieces are gathered to save system calls
constexpr int kAttempts = 1000;

}  // namespace

Result<ReplacementFile> ReplacementFile::create(const std::filesystem::path& path) {
  if (!os::is_usable(path)) {
    return Error(ErrorCode::invalid_argument, "a path must not be empty and must not hold a zero byte", "path");
  }
  const std::string name = os::text_of(path);
  os::FileFacts facts;
  if (os::facts_at(path, facts) == 0 && facts.kind != os::FileKind::regular) {
    return Error(ErrorCode::invalid_argument, "exists and is not a regular file; it is not replaced", name);
  }
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::filesystem::path temporary = path;
    temporary += fmt::format(".partial-{}-{}", os::process_id(), attempt);
    std::filesystem::path target = path;  // copied now: once the temporary exists, nothing may throw before the object owns it
    os::File file;
    const int error = os::make_new(temporary, file);
    if (error == 0) {
      return ReplacementFile(std::move(file), std::move(temporary), std::move(target), std::move(buffer));
    }
    if (!os::says_exists(error)) return os::system_error_at(name, "create a file beside it", error);
  }
  return error_at(ErrorCode::io, name, "{} temporary files stand beside it: remove *.partial-*", kAttempts);
}

ReplacementFile::~ReplacementFile() {
  if (!file_) return;
  file_.close();
  os::remove_file(temporary_);
}

Status ReplacementFile::write(std::span<const std::byte> bytes) {
  if (bytes.size() > kBufferBytes - buffered_) TESSERA_TRY_STATUS(flush());
  if (bytes.size() >= kBufferBytes) return write_through(bytes);
  if (!bytes.empty()) std::memcpy(buffer_.get() + buffered_, bytes.data(), bytes.size());
  buffered_ += bytes.size();
  return {};
}

Status ReplacementFile::flush() { return write_through({buffer_.get(), std::exchange(buffered_, 0)}); }

Status ReplacementFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t done = 0;
    if (const int error = os::write_at(file_, bytes, written_, done); error != 0) {
      return os::system_error_at(os::text_of(path_), "write the file", error);
    }
    written_ += done;
    bytes = bytes.subspan(done);
  }
  return {};
}

Status ReplacementFile::commit() {
  TESSERA_TRY_STATUS(flush());
  // The path is made before the file gets its name, because after that nothing may throw.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  if (const int error = os::sync(file_); error != 0) return os::system_error_at(os::text_of(path_), "write the file to disk", error);
  if (const int error = os::replace(file_, temporary_, path_); error != 0) {
    return os::system_error_at(os::text_of(path_), "replace the file", error);
  }
  file_.close();
  os::sync_folder(folder);  // so that the new name survives a loss of power
  return {};
}

}  // namespace tessera::detail
