#include "files/replacement_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace tessera::detail {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;  // small pieces are gathered to save system calls
constexpr int kAttempts = 1000;

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

Result<ReplacementFile> ReplacementFile::create(const std::filesystem::path& path) {
  const std::string& name = path.native();
  if (name.empty() || name.find('\0') != std::string::npos) {
    return Error(ErrorCode::invalid_argument, "a path must not be empty and must not hold a zero byte", "path");
  }
  struct ::stat status {};
  if (::stat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return Error(ErrorCode::invalid_argument, "exists and is not a regular file; it is not replaced", name);
  }
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string temporary = fmt::format("{}.partial-{}-{}", name, ::getpid(), attempt);
    std::string target = name;  // copied now: once the temporary exists, nothing may throw before the object owns it
    // O_EXCL: never opens a file of others, nor a planted link. 0666 without the umask's bits, as for any new file.
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd >= 0) {
      return ReplacementFile(FileDescriptor(fd), std::move(temporary), std::move(target), std::move(buffer));
    }
    if (errno != EEXIST && errno != EINTR) return system_error_at(name, "create a file beside it", errno);
  }
  return error_at(ErrorCode::io, name, "{} temporary files stand beside it: remove *.partial-*", kAttempts);
}

ReplacementFile::~ReplacementFile() {
  if (!file_) return;
  file_.close();
  ::unlink(temporary_.c_str());
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
    const ::ssize_t done = ::write(file_.get(), bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return system_error_at(path_, "write the file", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

Status ReplacementFile::commit() {
  TESSERA_TRY_STATUS(flush());
  if (::fsync(file_.get()) != 0) return system_error_at(path_, "write the file to disk", errno);
  const std::string directory = directory_of(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return system_error_at(path_, "replace the file", errno);
  file_.close();
  // Syncs the folder, so that the new name survives a power cut. Some file systems cannot; the file is written all the same.
  if (const FileDescriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); folder) {
    ::fsync(folder.get());
  }
  return {};
}

}  // namespace tessera::detail
