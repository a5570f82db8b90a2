#include "notes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

namespace {

constexpr std::size_t kMostNames = 64, kMostBytes = 1000;

}  // namespace

void Notes::ignore(const std::string& where, const std::string& what, std::string_view why) {
  if (strict_) throw ApiError(400, fmt::format("This field has no effect here, and the server was started with --strict-fields: {}", why), where);
  if (names_.size() < kMostNames && std::ranges::find(names_, what) == names_.end()) names_.push_back(what);
}

void Notes::leave_out(const std::string& where, std::string_view kind, std::string_view why) {
  ignore(where, fmt::format("{} ({})", where, kind), why);
}

std::string Notes::text() const {
  std::string all;
  for (const std::string& name : names_) {
    if (!all.empty()) all += ", ";
    if (all.size() + name.size() > kMostBytes) return all + "...";
    for (const char c : name) all += (c >= ' ' && c < 0x7f && c != ',') ? c : '?';
  }
  return all;
}

}  // namespace server
