// Opening files, and replacing them as a whole.
#include "catch.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace test_files {

using namespace tessera;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tessera-files-" + std::to_string(::getpid()))) { fs::create_directories(path); }
  ~Folder() {
    fs::permissions(path, fs::perms::owner_all);
    fs::remove_all(path);
  }
  std::size_t entries() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {})); }
  fs::path path;
};

Status write_zeros(const fs::path& path, std::uint64_t values) {
  GgufWriter writer;
  const std::uint64_t dims[] = {values};
  if (auto done = writer.add_tensor("t", DType::f32, dims); !done) return done;
  return writer.write_file(path, [&](std::string_view, const ByteSink& write) -> Status {
    const std::vector<std::byte> piece(4096);
    for (std::uint64_t left = 4 * values; left > 0;) {
      const auto step = std::min<std::uint64_t>(left, piece.size());
      if (auto done = write(std::span(piece).first(step)); !done) return done;
      left -= step;
    }
    return {};
  });
}

void check_error(const Error& error, ErrorCode code, std::string_view words) {
  INFO(error.text());
  CHECK(error.code() == code);
  CHECK(error.text().find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("what cannot be opened says why, with its path") {
  const Folder folder;
  check_error(open_file(folder.path / "absent").error(), ErrorCode::not_found, "absent");
  check_error(open_file(folder.path).error(), ErrorCode::invalid_argument, "directory");
  check_error(open_file("/dev/null").error(), ErrorCode::invalid_argument, "regular file");
  check_error(open_file("").error(), ErrorCode::invalid_argument, "empty");
  check_error(open_file(std::string("a\0b", 3)).error(), ErrorCode::invalid_argument, "zero byte");
  const auto pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_error(open_file(pipe).error(), ErrorCode::invalid_argument, "regular file");
  const auto secret = folder.path / "secret";
  std::ofstream(secret) << "x";
  fs::permissions(secret, fs::perms::none);
  if (::geteuid() != 0) check_error(open_file(secret).error(), ErrorCode::io, "Permission denied");
  fs::create_symlink("loop", folder.path / "loop");
  CHECK_FALSE(open_file(folder.path / "loop"));
}

TEST_CASE("any bytes may stand in a path, and links are followed") {
  const Folder folder;
  const auto odd = folder.path / "m\xf6""del \xff\n.gguf";
  REQUIRE(write_zeros(odd, 10));
  fs::create_symlink(odd, folder.path / "link.gguf");
  CHECK(ModelFile::open(odd));
  const auto file = ModelFile::open(folder.path / "link.gguf");
  REQUIRE(file);
  CHECK(file->tensors()[0].bytes == 40);
}

TEST_CASE("reads stay within the file, also when it becomes shorter") {
  const Folder folder;
  const auto path = folder.path / "f";
  std::ofstream(path) << "0123456789";
  const auto file = open_file(path);
  REQUIRE(file);
  CHECK((*file)->size() == 10);
  std::vector<std::byte> out(4);
  CHECK((*file)->read(6, out));
  CHECK(out[3] == std::byte{'9'});
  CHECK((*file)->read(10, {}));
  CHECK((*file)->read(7, out).error().code() == ErrorCode::io);
  CHECK((*file)->read(~std::uint64_t{0} - 1, out).error().code() == ErrorCode::io);
  fs::resize_file(path, 8);
  check_error((*file)->read(6, out).error(), ErrorCode::io, "shorter");
  const auto empty = memory_source({});
  REQUIRE(empty);
  CHECK((*empty)->read(0, {}));
  CHECK_FALSE((*empty)->read(0, out));
}

TEST_CASE("a file is replaced as a whole, or stays") {
  const Folder folder;
  const auto path = folder.path / "model.gguf";
  REQUIRE(write_zeros(path, 100));
  CHECK(folder.entries() == 1);
  REQUIRE(write_zeros(path, 1'000'000));
  CHECK(folder.entries() == 1);
  CHECK(ModelFile::open(path)->tensors()[0].bytes == 4'000'000);
  GgufWriter writer;
  const std::uint64_t dims[] = {4};
  REQUIRE(writer.add_tensor("t", DType::f32, dims));
  const auto stopped = writer.write_file(path, [](std::string_view, const ByteSink&) -> Status {
    return Error(ErrorCode::cancelled, "enough");
  });
  CHECK(stopped.error().code() == ErrorCode::cancelled);
  CHECK(folder.entries() == 1);
  CHECK(ModelFile::open(path)->tensors()[0].bytes == 4'000'000);
}

TEST_CASE("what cannot be written says why, and leaves nothing") {
  const Folder folder;
  check_error(write_zeros(folder.path / "absent" / "m.gguf", 4).error(), ErrorCode::not_found, "No such file");
  check_error(write_zeros(folder.path, 4).error(), ErrorCode::invalid_argument, "not a regular file");
  check_error(write_zeros("/dev/null", 4).error(), ErrorCode::invalid_argument, "not a regular file");
  check_error(write_zeros("", 4).error(), ErrorCode::invalid_argument, "empty");
  check_error(write_zeros(folder.path / std::string(250, 'n'), 4).error(), ErrorCode::io, "too long");
  CHECK(folder.entries() == 0);
  if (::geteuid() != 0) {
    fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
    check_error(write_zeros(folder.path / "m.gguf", 4).error(), ErrorCode::io, "Permission denied");
    fs::permissions(folder.path, fs::perms::owner_all);
  }
}

TEST_CASE("a disk that is full in the middle of a file is an error, and the temporary is removed") {
  const Folder folder;
  const auto path = folder.path / "model.gguf";
  REQUIRE(write_zeros(path, 100));
  // A limit on a file's size stands for the full disk: write() gives EFBIG where it would give ENOSPC.
  struct ::rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct ::rlimit little { 1 << 20, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const Status done = write_zeros(path, 1'000'000);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(done);
  check_error(done.error(), ErrorCode::io, "File too large");
  CHECK(folder.entries() == 1);
  CHECK(ModelFile::open(path)->tensors()[0].bytes == 400);
}

}  // namespace test_files
