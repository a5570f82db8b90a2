// Paths that callers pass, in UTF-8.
#pragma once

#include <filesystem>
#include <string>

#include "call.hpp"

namespace tessera::c {

inline std::filesystem::path path_of(const char* path, std::size_t size, std::string_view name) {
  const std::string_view given = text(path, size, name);
  if (given.empty()) fail(ErrorCode::invalid_argument, "a path is needed, and an empty text was passed", name);
  if (given.find('\0') != std::string_view::npos)
    fail(ErrorCode::invalid_argument, "a path cannot hold a zero byte; is the size right?", name);
  return std::u8string(given.begin(), given.end());
}

}  // namespace tessera::c
