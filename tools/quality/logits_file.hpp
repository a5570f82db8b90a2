// The file in which a run's logits are kept, so that later runs can be compared with it. Little-endian:
//   8 bytes "TSLOGITS", u32 vocabulary, u32 zero, u64 rows, u64 hash of the tokens, then f32 logits  [rows, vocab].
// The file has logits and not log-probabilities, because these would be rounded, and differences of 1e-7 matter.
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
  [[nodiscard]] Status finish();  // returns the first error of all writes

 private:
  std::unique_ptr<std::ofstream> out_;
  std::string name_;
};

class LogitsReader {
 public:
  // Opens a file. Its header must equal `expected`, and its length must fit the header.
  [[nodiscard]] static Result<LogitsReader> open(const std::filesystem::path& path, const LogitsHeader& expected);
  [[nodiscard]] Status read(std::span<float> logits);

 private:
  std::unique_ptr<std::ifstream> in_;
  std::string name_;
};

}  // namespace tessera::quality
