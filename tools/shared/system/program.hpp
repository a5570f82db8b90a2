// The functions of the system that a program needs and that the standard library does not have. cmake/TesseraProgram.cmake builds the
// system's folder.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tool {

// Prepares the program's standard files and takes its arguments; the first object in main(). Texts are UTF-8 from here on, in arguments,
// files and on the terminal.
//
// POSIX: closed standard files are filled, so that a file opened later does not become one; a reader that leaves (`generate | head`) ends
// the program quietly, also if the parent process ignores SIGPIPE. Windows: the console is set to UTF-8 and its escape sequences, and
// gets its own settings back at the end; no line end is changed.
class Program {
 public:
  Program(int argc, char** argv);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  [[nodiscard]] int argc() const noexcept { return static_cast<int>(values_.size()) - 1; }
  [[nodiscard]] char** argv() noexcept { return values_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> values_;  // of texts_ or the system's, with nullptr at the end
};

enum class Standard : std::uint8_t { input, output, error };

// Returns whether a person is at the other end.
[[nodiscard]] bool is_terminal(Standard file) noexcept;

// Returns the path of a text in UTF-8. (libstdc++ for Windows takes each byte of a std::string for a character.)
[[nodiscard]] inline std::filesystem::path path_of(std::string_view text) {
  return std::u8string(text.begin(), text.end());
}

// Returns the text of a path, in UTF-8.
[[nodiscard]] inline std::string text_of(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

// Does what std::fopen() does with a path in UTF-8.
[[nodiscard]] std::FILE* open_file(const std::string& path, const char* mode) noexcept;

// Returns the present time here.
[[nodiscard]] std::tm local_time() noexcept;

}  // namespace tessera::tool
