#include "prompt.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

using tessera::Bos;
using tessera::Special;
using tessera::Token;
using tessera::Tokenizer;

namespace {

std::string read_all(std::FILE* file, const std::string& name) {
  std::string bytes;
  std::array<char, 65536> chunk;
  std::size_t n = 0;
  while ((n = std::fread(chunk.data(), 1, chunk.size(), file)) > 0) bytes.append(chunk.data(), n);
  if (std::ferror(file) != 0) {
    throw Failure(tessera::ErrorCode::io, fmt::format("{}: cannot read: {}", name, std::strerror(errno)));
  }
  return bytes;
}

Special special(const Options& options) { return options.no_special ? Special::as_text : Special::parse; }

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return read_all(stdin, "standard input");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(tessera::tool::open_file(path, "rb"), &std::fclose);
  if (file == nullptr) {
    throw Failure(tessera::ErrorCode::io, fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  return read_all(file.get(), path);
}

std::string read_prompt(const Options& options) {
  if (options.prompt) return *options.prompt;
  return options.prompt_file ? read_file(*options.prompt_file) : std::string();
}

std::vector<Token> prompt_tokens(const Options& options, const Tokenizer& tokenizer, const std::string& text) {
  std::vector<Token> tokens;
  if (options.prompt_ids) {
    tokens = *options.prompt_ids;
  } else {
    const bool wanted = tokenizer.adds_bos() || (text.empty() && tokenizer.bos().has_value());
    const Bos bos = wanted && !options.no_bos ? Bos::always : Bos::never;
    tokens = value(tokenizer.encode(text, {.bos = bos, .special = special(options)}));
  }
  if (tokens.empty()) {
    throw Failure(tessera::ErrorCode::invalid_argument,
                  "there is no token to begin with: give a prompt with -p, -f or --prompt-ids");
  }
  return tokens;
}

std::vector<Token> appended_tokens(const Options& options, const Tokenizer& tokenizer, const std::string& text) {
  if (options.prompt_ids) return *options.prompt_ids;
  if (text.empty()) return {};
  return value(tokenizer.encode(text, {.bos = Bos::never, .special = special(options)}));
}

std::vector<Token> encode_as_model(const Options& options, const Tokenizer& tokenizer, const std::string& text) {
  const Bos bos = options.no_bos ? Bos::never : Bos::as_model;
  return value(tokenizer.encode(text, {.bos = bos, .special = special(options)}));
}
