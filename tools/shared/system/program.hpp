// Functions of the operating system that a program needs and that the standard library does not have. There is a folder for each system;
// cmake/TesseraProgram.cmake compiles the right one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tool {

// Prepares the program's standard files and its arguments. It must be the first object in main(). All texts are UTF-8: arguments, files,
// the terminal.
//
// POSIX: closed standard files are opened as /dev/null, so that a file opened later does not take their place. If the reader of a pipe ends
// (`generate | head`), the program ends quietly, even if the parent process ignores SIGPIPE. Windows: the console uses UTF-8 and escape
// sequences until the destructor restores its settings; line ends are not changed.
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
  std::vector<char*> values_;  // pointers to texts_ or to the system's arguments, with nullptr at the end
};

enum class Standard : std::uint8_t { input, output, error };

// Returns whether the file is a terminal.
[[nodiscard]] bool is_terminal(Standard file) noexcept;

// Returns the path of a text in UTF-8. (libstdc++ for Windows reads each byte of a std::string as a character.)
[[nodiscard]] inline std::filesystem::path path_of(std::string_view text) {
  return std::u8string(text.begin(), text.end());
}

// Returns the text of a path, in UTF-8.
[[nodiscard]] inline std::string text_of(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

// Opens a file like std::fopen(), but with a path in UTF-8.
[[nodiscard]] std::FILE* open_file(const std::string& path, const char* mode) noexcept;

// Returns the present local time.
[[nodiscard]] std::tm local_time() noexcept;

}  // namespace tessera::tool
