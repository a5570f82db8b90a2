// The seams of src/os, as every system must keep them: files, pages, threads.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"
#include "os/processors.hpp"
#include "os/shared_library.hpp"
#include "os/thread.hpp"

namespace test_os_files {

namespace fs = std::filesystem;
namespace os = tessera::os;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("tessera_os_" + std::to_string(os::process_id()));
  Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    fs::create_directory(path, ignored);
  }
  ~Folder() {
    std::error_code ignored;
#ifdef _WIN32
    path = fs::path(L"\\\\?\\") += path.native();  // the standard library's functions do not take long paths otherwise
#endif
    fs::remove_all(path, ignored);
  }
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_at(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Names what a folder has") {
  const Folder folder;
  std::vector<std::string> names;
  REQUIRE(os::names_in_folder(folder.path, 10, names) == 0);
  CHECK(names.empty());
  for (const char* name : {"a", "ü", ".b"}) std::ofstream(folder.path / os::path_of(name)).put('x');
  fs::create_directory(folder.path / "c");
  REQUIRE(os::names_in_folder(folder.path, 10, names) == 0);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{".b", "a", "c", "ü"});
  names.clear();
  REQUIRE(os::names_in_folder(folder.path, 2, names) == 0);
  CHECK(names.size() == 2);
  CHECK(os::names_in_folder(folder.path / "nothing", 2, names) != 0);
}

TEST_CASE("Reads and writes at an offset, in any order, and says where the end is") {
  const Folder folder;
  os::File file;
  REQUIRE(os::make_new(folder.path / "a", file) == 0);
  std::size_t n = 0;
  REQUIRE(os::write_at(file, bytes_of("world"), 6, n) == 0);
  CHECK(n == 5);
  REQUIRE(os::write_at(file, bytes_of("hello "), 0, n) == 0);
  REQUIRE(os::sync(file) == 0);
  file.close();
  REQUIRE(os::open_to_read(folder.path / "a", file) == 0);
  os::FileFacts facts;
  REQUIRE(os::facts_of(file, facts) == 0);
  CHECK(facts.kind == os::FileKind::regular);
  CHECK(facts.bytes == 11);
  char text[5] = {};
  REQUIRE(os::read_at(file, std::as_writable_bytes(std::span(text)), 4, n) == 0);
  CHECK(std::string(text, n) == "o wor");
  REQUIRE(os::read_at(file, std::as_writable_bytes(std::span(text)), 9, n) == 0);
  CHECK(n == 2);
  REQUIRE(os::read_at(file, std::as_writable_bytes(std::span(text)), 11, n) == 0);
  CHECK(n == 0);
}

TEST_CASE("A name that is taken, one that is missing, and a folder are told apart") {
  const Folder folder;
  os::File file, second;
  REQUIRE(os::make_new(folder.path / "a", file) == 0);
  CHECK(os::says_exists(os::make_new(folder.path / "a", second)));
  const int missing = os::open_to_read(folder.path / "b", second);
  CHECK(os::system_error_at("b", "open the file", missing).code() == tessera::ErrorCode::not_found);
  CHECK_FALSE(os::words_of(missing).empty());
  REQUIRE(os::open_to_read(folder.path, second) == 0);
  os::FileFacts facts;
  REQUIRE(os::facts_of(second, facts) == 0);
  CHECK(facts.kind == os::FileKind::folder);
}

TEST_CASE("A file takes the place of another in one step") {
  const Folder folder;
  std::ofstream(folder.path / "target", std::ios::binary) << "old";
  os::File file;
  std::size_t n = 0;
  REQUIRE(os::make_new(folder.path / "new", file) == 0);
  REQUIRE(os::write_at(file, bytes_of("new"), 0, n) == 0);
  REQUIRE(os::replace(file, folder.path / "new", folder.path / "target") == 0);
  file.close();
  os::sync_folder(folder.path);
  CHECK(text_at(folder.path / "target") == "new");
  CHECK_FALSE(fs::exists(folder.path / "new"));
}

TEST_CASE("A file without a name has its room at once, and is gone when it is closed") {
  const Folder folder;
  os::File file;
  REQUIRE(os::make_unnamed(folder.path / "pages", file) == 0);
  REQUIRE(os::take_room(file, std::uint64_t{1} << 20) == 0);
  os::FileFacts facts;
  REQUIRE(os::facts_of(file, facts) == 0);
  CHECK(facts.bytes == std::uint64_t{1} << 20);
  std::size_t n = 0;
  REQUIRE(os::write_at(file, bytes_of("page"), 4096, n) == 0);
  char text[4] = {};
  REQUIRE(os::read_at(file, std::as_writable_bytes(std::span(text)), 4096, n) == 0);
  CHECK(std::string(text, n) == "page");
  file.close();
  CHECK_FALSE(fs::exists(folder.path / "pages"));
}

TEST_CASE("Paths may have any characters and be long") {
  const Folder folder;
  fs::path path = folder.path;
  for (int i = 0; i < 6; ++i) {
    path /= os::path_of("\xe6\xa8\xa1\xe5\x9e\x8b-\xc3\xbc-" + std::string(60, 'x'));
    std::error_code error;
    fs::create_directory(path, error);
    if (error) return;  // a system that the test cannot make such folders on
  }
  path /= os::path_of("\xf0\x9f\x8c\x8a.gguf");
  os::File file;
  REQUIRE(os::make_new(path, file) == 0);
  file.close();
  REQUIRE(os::open_to_read(path, file) == 0);
  CHECK(os::text_of(path).ends_with("\xf0\x9f\x8c\x8a.gguf"));
  os::remove_file(path);
  file.close();
  CHECK(os::open_to_read(path, file) != 0);
}

TEST_CASE("Reserved pages are zero whenever they are committed, and mapped ones when they are taken") {
  const std::size_t bytes = 16 * os::page_size();
  std::byte* const base = os::reserve_pages(bytes);
  REQUIRE(base != nullptr);
  for (int turn = 0; turn < 2; ++turn) {
    REQUIRE(os::commit_pages(base + os::page_size(), bytes / 2));
    CHECK(base[os::page_size()] == std::byte{0});
    CHECK(base[bytes / 2] == std::byte{0});
    std::memset(base + os::page_size(), 1, bytes / 2);
    os::decommit_pages(base + os::page_size(), bytes / 2);
  }
  os::unmap_pages(base, bytes);
  std::byte* const mapped = os::map_pages(bytes);
  REQUIRE(mapped != nullptr);
  mapped[5] = std::byte{7};
  CHECK(os::populate_pages(mapped, bytes));
  CHECK(mapped[5] == std::byte{7});
  CHECK(mapped[bytes - 1] == std::byte{0});
  os::unmap_pages(mapped, bytes);
}

TEST_CASE("A thread runs its body once, and there is at least one processor") {
  std::atomic<int> ran = 0;
  os::ThreadHandle thread{};
  const auto body = [](void* context) -> void* {
    ++*static_cast<std::atomic<int>*>(context);
    return nullptr;
  };
  REQUIRE(os::start_thread(body, &ran, thread) == 0);
  os::join_thread(thread);
  CHECK(ran == 1);
  CHECK(os::affine_processors() >= 1);
  CHECK(os::processor_quota() > 0.0);
}

TEST_CASE("A library that is missing is an error with words") {
  std::string why;
  CHECK(os::open_library("tessera-has-no-such-library", why) == nullptr);
  CHECK(why.find("tessera-has-no-such-library") != std::string::npos);
}

}  // namespace test_os_files
