#include "retrieval_table.hpp"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "format_mix.hpp"
#include "recoded_source.hpp"
#include "retrieval.hpp"
#include "system/program.hpp"

namespace tessera::quality {

namespace {

// The weight format of a row of the table.
struct RowFormat {
  std::string name;
  std::optional<DType> dtype;  // nullopt: the file's own format
};

Result<std::vector<RowFormat>> formats_of(const RetrievalOptions& options, const ModelSource& model) {
  std::vector<RowFormat> formats;
  if (options.formats.empty()) formats.push_back({tool::format_of(model), std::nullopt});
  for (const std::string& name : options.formats) {
    const auto target = tool::parse_target(name);
    if (!target) return Error(target.error().code(), fmt::format("--formats: {}", target.error().message()));
    // "Q2_K" names a mix too. Here it means the format, for all matrices.
    const bool is_format = CLI::detail::to_lower(name) == CLI::detail::to_lower(std::string(to_string(target->format)));
    if (target->mix != tool::Mix::none && !is_format) return Error(ErrorCode::invalid_argument, fmt::format("--formats: {} is a mix of formats; name one format, such as {}", name, to_string(target->format)));
    formats.push_back({std::string(to_string(target->format)), target->format});
  }
  return formats;
}

void print_row(const RowFormat& format, double megabytes, const RetrievalRow& row, bool json) {
  if (json) {
    const nlohmann::json object = {{"format", format.name}, {"weights_mb", megabytes}, {"dimensions", row.dimensions}, {"recall_1", row.recall_1},
                                   {"recall_3", row.recall_3}, {"recall_10", row.recall_10}, {"ndcg_10", row.ndcg_10}};
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("{:<8} {:>10.1f} {:>10} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}\n", format.name, megabytes, row.dimensions, row.recall_1, row.recall_3, row.recall_10, row.ndcg_10);
  }
}

}  // namespace

CLI::Option* add_retrieval(CLI::App& app, RetrievalOptions& options) {
  CLI::Option* const retrieval = app.add_flag("--retrieval", options.is_wanted,
                 "Instead of comparing, measure how well an embedding model finds\n"
                 "documents. TOKENS is then a folder with corpus.jsonl, queries.jsonl and\n"
                 "qrels/test.tsv (the form of BEIR)");
  app.add_option("--formats", options.formats, "With --retrieval, print a row for each of these weight formats\nDefault: the file's own")
      ->type_name("FORMAT,...")
      ->delimiter(',')
      ->needs(retrieval);
  app.add_option("--dimensions", options.dimensions, "With --retrieval, print a row for each of these numbers of dimensions\nDefault: all")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->needs(retrieval);
  return retrieval;
}

Status print_retrieval(const std::shared_ptr<const ModelSource>& model, const std::filesystem::path& folder, const RetrievalOptions& options,
                       const EngineOptions& engine_options, bool json) {
  const auto data = read_retrieval(folder);
  if (!data) return data.error();
  const auto formats = formats_of(options, *model);
  if (!formats) return formats.error();
  const std::vector<std::uint32_t> dimensions = options.dimensions.empty() ? std::vector<std::uint32_t>{0} : options.dimensions;
  const bool is_seen = tool::is_terminal(tool::Standard::error);
  if (!json) fmt::print("{:<8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "format", "weights MB", "dimensions", "recall@1", "recall@3", "recall@10", "nDCG@10");
  for (const RowFormat& format : *formats) {
    const std::shared_ptr<const ModelSource> source = format.dtype ? std::make_shared<const RecodedSource>(model, *format.dtype) : model;
    const auto engine = Engine::load(*source, engine_options);
    if (!engine) return engine.error();
    const auto rows = measure_retrieval(*engine, *data, dimensions, [&](std::size_t done, std::size_t total) {
      if (is_seen && (done % 16 == 0 || done == total)) fmt::print(stderr, "\r{}: {} of {} texts\033[K", format.name, done, total);
    });
    if (is_seen) fmt::print(stderr, "\r\033[K");
    if (!rows) return rows.error();
    for (const RetrievalRow& row : *rows) print_row(format, static_cast<double>(engine->plan().weights) / 1e6, row, json);
  }
  if (!json) fmt::print("{} documents, {} questions\n", data->documents.size(), data->questions.size());
  return {};
}

}  // namespace tessera::quality
