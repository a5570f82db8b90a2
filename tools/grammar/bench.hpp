// Runs a benchmark of grammars (MaskBench's files): compiles each schema, judges whether the texts of its tests match, and times
// compilation and masks. Uses one thread.
#pragma once

#include <filesystem>

#include <tessera/core/result.hpp>
#include <tessera/grammar/grammar.hpp>

#include "report.hpp"
#include "vocabulary.hpp"

namespace tessera::grammar_tool {

// Runs every *.json file of the folder. A file is an object {"schema": ..., "tests": [{"valid": true or false, "data": ...}, ...]}. Or it
// is a list of such objects, as in the JSON-Schema-Test-Suite; then each object counts as a file.
[[nodiscard]] Result<Report> bench_folder(const std::filesystem::path& folder, const Vocabulary& vocabulary,
                                          const JsonSchemaOptions& options);

}  // namespace tessera::grammar_tool
