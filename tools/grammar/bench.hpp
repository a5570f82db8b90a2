// Judges the instances of MaskBench files and times masks and compilation. One thread.
#pragma once

#include <filesystem>

#include <tessera/core/result.hpp>
#include <tessera/grammar/grammar.hpp>

#include "report.hpp"
#include "vocabulary.hpp"

namespace tessera::grammar_tool {

// Runs every *.json of the folder: an object with `schema` and `tests`, each with `valid` and `data`; or a list of these objects,
// as in the JSON-Schema-Test-Suite, each of which counts as a file.
[[nodiscard]] Result<Report> bench_folder(const std::filesystem::path& folder, const Vocabulary& vocabulary,
                                          const JsonSchemaOptions& options);

}  // namespace tessera::grammar_tool
