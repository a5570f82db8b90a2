#include "system/standard_input.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "failure.hpp"

namespace {

[[noreturn]] void fail() {
  throw Failure(tessera::ErrorCode::io, fmt::format("standard input: cannot read: {}", std::strerror(errno)));
}

}  // namespace

Input read_input(Interrupts& interrupts, std::span<char> bytes, std::size_t& n) {
  for (;;) {
    std::array<pollfd, 2> wait = {{{STDIN_FILENO, POLLIN, 0}, {static_cast<int>(interrupts.waitable()), POLLIN, 0}}};
    if (poll(wait.data(), wait.size(), -1) < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    if (wait[1].revents != 0) {
      (void)interrupts.clear();
      return Input::interrupted;
    }
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN) fail();
    if (got == 0) return Input::end;
    if (got < 0) continue;
    n = static_cast<std::size_t>(got);
    return Input::byte;
  }
}
