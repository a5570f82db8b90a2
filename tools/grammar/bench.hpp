// Judges the instances of MaskBench files, and times masks and compilation. One thread.
#pragma once

#include <filesystem>

#include <tessera/core/result.hpp>
#include <tessera/grammar/grammar.hpp>

#include "report.hpp"
#include "vocabulary.hpp"

namespace tessera::grammar_tool {

// Runs every *.json of the folder. A file is an object with `schema` and `tests`, each test with `valid` and `data`. Or it is a list of
// these objects, as in the JSON-Schema-Test-Suite; each object then counts as a file.
[[nodiscard]] Result<Report> bench_folder(const std::filesystem::path& folder, const Vocabulary& vocabulary,
                                          const JsonSchemaOptions& options);

}  // namespace tessera::grammar_tool
