// Notes about parts of a request that have no effect, or less than the client expects. Headers of the answer and the log show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace server {

inline constexpr const char* kIgnoredHeader = "X-Tessera-Ignored";
inline constexpr const char* kWarningHeader = "X-Tessera-Warning";

// The notes of one request. Only the thread that reads the request may change them; other threads may read them only after that.
class Notes {
 public:
  // `strict`: ignore() and leave_out() throw ApiError of status 400.
  explicit Notes(bool strict = false) : strict_(strict) {}

  // Notes a field without effect. `where`: the place in this request ("tools[1].x"); `what`: its name for the header ("tools[].x");
  // `why`: a sentence.
  void ignore(const std::string& where, const std::string& what, std::string_view why);
  // Notes a thing that is left out, like a tool of a service: "tools[1] (web_search)".
  void leave_out(const std::string& where, std::string_view kind, std::string_view why);

  // Notes a sentence about a thing that has less effect than the request asks for, like a tool whose schema cannot be enforced completely.
  void warn(const std::string& sentence);
  // Notes a sentence for the log alone, because it names things that clients should not learn, like addresses of other servers.
  void tell_log(const std::string& sentence);

  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }
  // Returns the names, joined by commas: printable ASCII only, at most 1,000 bytes.
  [[nodiscard]] std::string text() const;
  // Returns the sentences of warn() in the same form; empty if there are none.
  [[nodiscard]] std::string warnings() const;
  [[nodiscard]] std::string for_log() const;  // those of tell_log()

 private:
  bool strict_;
  std::vector<std::string> names_, warnings_, for_log_;  // each once
};

}  // namespace server
