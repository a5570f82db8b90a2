// Notes of what a request asks for and does not get: told in headers of the answer and in the log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace server {

inline constexpr const char* kIgnoredHeader = "X-Tessera-Ignored";
inline constexpr const char* kWarningHeader = "X-Tessera-Warning";

// Used by the thread that reads the request; read by others only after that.
class Notes {
 public:
  // With `strict` everything that would be ignored is an ApiError of status 400 instead.
  explicit Notes(bool strict = false) : strict_(strict) {}

  // `where` is the place in this request ("tools[1].x"), `what` its name for the header ("tools[].x"), `why` a sentence.
  void ignore(const std::string& where, const std::string& what, std::string_view why);
  // A thing that is left out, such as a tool of a service: "tools[1] (web_search)".
  void leave_out(const std::string& where, std::string_view kind, std::string_view why);

  // A sentence about what has less effect than the request asks for, such as a tool whose schema is not held whole.
  void warn(const std::string& sentence);

  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }
  // The names, joined by commas: printable ASCII alone, and 1,000 bytes at most.
  [[nodiscard]] std::string text() const;
  // The sentences, in the same way; empty: there are none.
  [[nodiscard]] std::string warnings() const;

 private:
  bool strict_;
  std::vector<std::string> names_, warnings_;  // each once
};

}  // namespace server
