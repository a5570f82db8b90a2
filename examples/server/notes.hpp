// Collects notes about a request: parts that have no effect, or less effect than the client expects. Headers of the answer and the log show
// the notes.
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

  // Notes a field that has no effect. `where`: the field's place in this request ("tools[1].x"). `what`: the field's name without indices
  // ("tools[].x"), as the answer's header shows it. `why`: a sentence.
  void ignore(const std::string& where, const std::string& what, std::string_view why);
  // Notes a part of the request that is left out, for example a tool that a service would run: "tools[1] (web_search)".
  void leave_out(const std::string& where, std::string_view kind, std::string_view why);

  // Notes a sentence about a part of the request that has less effect than expected, for example a tool with a partly enforced schema.
  void warn(const std::string& sentence);
  // Notes a sentence only for the log, because it names things that clients should not learn, for example addresses of other servers.
  void tell_log(const std::string& sentence);

  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }
  // Returns the names, joined by commas: printable ASCII only, at most 1,000 bytes.
  [[nodiscard]] std::string text() const;
  // Returns the sentences of warn() in the same form; empty if there are none.
  [[nodiscard]] std::string warnings() const;
  [[nodiscard]] std::string for_log() const;  // the sentences of tell_log()

 private:
  bool strict_;
  std::vector<std::string> names_, warnings_, for_log_;  // without duplicates
};

}  // namespace server
