#include "token_file.hpp"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tessera::quality {

namespace {

Result<std::vector<Token>> parse_line(std::string_view line, std::uint32_t vocab) {
  std::vector<Token> tokens;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at != end) {
    std::uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ' ')) {
      return Error(ErrorCode::invalid_argument, "holds something that is not an id between single spaces");
    }
    if (id >= vocab) return Error(ErrorCode::invalid_argument, fmt::format("id {} is not in the vocabulary", id));
    tokens.push_back(static_cast<Token>(id));
    at = next == end ? end : next + 1;
  }
  if (tokens.size() < 2) return Error(ErrorCode::invalid_argument, "holds fewer than two tokens");
  return tokens;
}

}  // namespace

Result<Documents> read_tokens(const std::filesystem::path& path, std::uint32_t vocab) {
  std::ifstream in(path);
  if (!in) return Error(ErrorCode::io, "cannot be opened", path.string());
  Documents documents;
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    auto tokens = parse_line(line, vocab);
    if (!tokens) {
      const std::string place = fmt::format("{}, line {}", path.string(), number);
      return Error(tokens.error().code(), tokens.error().message(), place);
    }
    documents.push_back(*std::move(tokens));
  }
  if (documents.empty()) return Error(ErrorCode::invalid_argument, "holds no document", path.string());
  return documents;
}

std::uint64_t predicted(const Documents& documents) {
  std::uint64_t count = 0;
  for (const auto& document : documents) count += document.size() - 1;
  return count;
}

std::uint64_t hash(const Documents& documents) {
  std::uint64_t value = 0xcbf29ce484222325u;
  const auto add = [&](std::uint32_t id) {
    for (int shift = 0; shift < 32; shift += 8) value = (value ^ (id >> shift & 0xff)) * 0x100000001b3u;
  };
  for (const auto& document : documents) {
    for (const Token token : document) add(static_cast<std::uint32_t>(token));
    add(0xffffffffu);
  }
  return value;
}

}  // namespace tessera::quality
