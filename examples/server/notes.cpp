#include "notes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

namespace {

constexpr std::size_t kMostNames = 64, kMostNoteBytes = 1000;

void add(std::vector<std::string>& texts, const std::string& text) {
  if (texts.size() < kMostNames && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

// Joins texts to the value of a header, with `between` after each text but the last. So that a client can split the value again, the
// character `kept_out`, which is a character of `between`, becomes "?" within texts.
std::string joined(const std::vector<std::string>& texts, std::string_view between, char kept_out) {
  std::string all;
  for (const std::string& text : texts) {
    if (!all.empty()) all += between;
    if (all.size() + text.size() > kMostNoteBytes) return all + "...";
    for (const char c : text) all += (c >= ' ' && c < 0x7f && c != kept_out) ? c : '?';
  }
  return all;
}

}  // namespace

void Notes::ignore(const std::string& where, const std::string& what, std::string_view why) {
  if (strict_) throw ApiError(400, fmt::format("This field has no effect here, and the server was started with --strict-fields: {}", why), where);
  add(names_, what);
}

void Notes::leave_out(const std::string& where, std::string_view kind, std::string_view why) {
  ignore(where, fmt::format("{} ({})", where, kind), why);
}

void Notes::warn(const std::string& sentence) { add(warnings_, sentence); }
void Notes::tell_log(const std::string& sentence) { add(for_log_, sentence); }

std::string Notes::text() const { return joined(names_, ", ", ','); }
std::string Notes::warnings() const { return joined(warnings_, " ", '\n'); }
std::string Notes::for_log() const { return joined(for_log_, " ", '\n'); }

}  // namespace server
