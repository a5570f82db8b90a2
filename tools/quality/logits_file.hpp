// Logits of a run, kept for others to be compared with. Little-endian:
//   8 bytes "TSLOGITS", u32 vocabulary, u32 zero, u64 rows, u64 hash of the tokens, then f32 logits  [rows, vocab].
// Logits and not log-probabilities: these would be rounded, and the differences that count are of 1e-7.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include <tessera/core/result.hpp>

namespace tessera::quality {

struct LogitsHeader {
  char magic[8] = {'T', 'S', 'L', 'O', 'G', 'I', 'T', 'S'};
  std::uint32_t vocab = 0;
  std::uint32_t zero = 0;
  std::uint64_t rows = 0;
  std::uint64_t tokens_hash = 0;
};

class LogitsWriter {
 public:
  [[nodiscard]] static Result<LogitsWriter> create(const std::filesystem::path& path, const LogitsHeader& header);
  void write(std::span<const float> logits);
  [[nodiscard]] Status finish();  // an error of any write shows here

 private:
  std::unique_ptr<std::ofstream> out_;
  std::string name_;
};

class LogitsReader {
 public:
  // The header must be what the caller expects, and the file as long as it says.
  [[nodiscard]] static Result<LogitsReader> open(const std::filesystem::path& path, const LogitsHeader& expected);
  [[nodiscard]] Status read(std::span<float> logits);

 private:
  std::unique_ptr<std::ifstream> in_;
  std::string name_;
};

}  // namespace tessera::quality
