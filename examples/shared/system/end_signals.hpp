// The signals that ask the server to end.
#pragma once

namespace server {

// POSIX: SIGINT and SIGTERM, which stay blocked from the constructor on; a client that leaves no longer ends the program (SIGPIPE).
// Windows: Ctrl-C, Ctrl-Break, and a console, session or system that closes. Windows ends the program some seconds after a close, even if
// the program is still busy.
//
// Make the only object before the threads that must not get the signals. It is never destroyed before the program ends.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Returns when the next signal has come. Each signal ends one wait.
  void wait() const noexcept;
};

}  // namespace server
