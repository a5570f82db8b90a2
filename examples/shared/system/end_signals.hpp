// The signals that ask the server to end.
#pragma once

namespace server {

// POSIX: SIGINT and SIGTERM. The constructor blocks both, and ignores SIGPIPE, so that a client that leaves does not end the program.
// Windows: Ctrl-C, Ctrl-Break, and a console, session or system that closes. Windows ends the program some seconds after a close, even if
// the program is still busy.
//
// Make only one object, before the threads that must not get the signals. The object must live as long as the program.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Returns when the next signal has come. Each signal ends one wait.
  void wait() const noexcept;
};

}  // namespace server
