#include "system/program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace tessera::tool {

Program::Program(int argc, char** argv) : values_(argv, argv + argc + 1) {
  // Opens /dev/null in place of each standard file that is closed, so that a file opened later does not take its number. Opens it in the
  // wrong direction, so that reading or writing fails, as it does for a closed file.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_DFL);
}

Program::~Program() = default;

bool is_terminal(Standard file) noexcept {
  return isatty(file == Standard::input ? STDIN_FILENO : file == Standard::output ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

std::FILE* open_file(const std::string& path, const char* mode) noexcept { return std::fopen(path.c_str(), mode); }

std::tm local_time() noexcept {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

}  // namespace tessera::tool
