// The command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <tessera/tessera.hpp>

#include "answering.hpp"
#include "search.hpp"
#include "text_files.hpp"

namespace rag {

enum class Command : std::uint8_t { index, search, ask, status };

struct Options {
  Command command = Command::status;
  std::optional<std::string> argument;  // the folder or the question
  std::filesystem::path index = "tessera-rag.db";
  bool json = false;

  std::string embedder, reranker, model;  // as the user names them; empty: not given
  std::uint32_t dimensions = 0;
  std::optional<std::size_t> passage_tokens, overlap;
  FileLimits limits;
  bool rebuild = false;

  SearchOptions search;
  AnsweringOptions answering;
  std::uint32_t context = 0;
  std::uint64_t saved_bytes = 0;  // the most bytes of saved keys and values
  tessera::EngineOptions engine;
};

// Parses the command line. nullopt: --help or --version was given, and the text has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

inline constexpr const char* kProgram = "tessera-rag";

}  // namespace rag
