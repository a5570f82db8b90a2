#include "options.hpp"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line.hpp"
#include "failure.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "system/program.hpp"

namespace rag {

namespace {

using tessera::tool::path_of;

constexpr const char* kFooter = R"(Commands:
  index FOLDER     reads the texts of a folder, cuts them into passages, embeds the passages and keeps them in an index (a
                   file of SQLite). Run it again after changes: it reads only new and changed files, and removes files that
                   are gone from the index. If it is interrupted, the next run goes on where it was
  index            does the same for the folder of an index that exists
  search QUESTION  prints the passages that are nearest to the question
  ask QUESTION     lets a chat model (-m) answer from these passages, and names its sources
  status           prints the folder, the embedder and the numbers of files and passages of the index
Without QUESTION, search and ask read questions from standard input, one a line. No question sees earlier answers.
A model is a GGUF file, a model's folder, or a name (ollama:NAME, lmstudio:NAME, hf:NAME).

Examples:
  tessera-rag index docs --embedder all-MiniLM-L6-v2
  tessera-rag search "How do I limit memory?"
  tessera-rag ask "How do I limit memory?" -m SmolLM2-135M-Instruct.Q4_1.gguf
Exit status: 0 done, 1 failure, 2 usage, 3 nothing in the index is near the question, 130 interrupted.)";

struct Given {
  std::string command, index = "tessera-rag.db";
  double saved_mb = 1000.0;
  bool exact = false;
};

void add_index_options(CLI::App& app, Options& options) {
  app.add_option("-e,--embedder", options.embedder, "The model that makes vectors of texts (MiniLM, bge, e5, ...)\nDefault: that of the index")->type_name("MODEL");
  app.add_option("--dimensions", options.dimensions, "With index, keep the first N numbers of a vector (Matryoshka models)")->type_name("N");
  app.add_option("--passage-tokens", options.passage_tokens, "With index, the most tokens of a passage\nDefault: 200, or what the embedder reads")
      ->type_name("N")
      ->check(CLI::Range(8, 8192));
  app.add_option("--overlap", options.overlap, "With index, the most tokens that a passage repeats of the one before\nDefault: a fifth of a passage")
      ->type_name("N")
      ->check(CLI::Range(0, 8192));
  app.add_option("--largest", options.limits.most_bytes, "With index, leave out files of more bytes than this\nDefault: 4194304")
      ->type_name("BYTES")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  app.add_flag("--rebuild", options.rebuild, "With index, begin anew, with another folder or embedder for example");
}

void add_search_options(CLI::App& app, Options& options, Given& given) {
  SearchOptions& search = options.search;
  app.add_option("-k,--sources", search.most, "Passages that are printed, or read by the model\nDefault: 5")->type_name("N")->check(CLI::Range(1, 100));
  app.add_option("--per-file", search.most_of_file, "Passages of one file at most; 0: no limit\nDefault: 2")->type_name("N");
  app.add_option("--by", search.by, "What is compared: vectors, words (BM25), or both\nDefault: both")
      ->type_name("both|vectors|words")
      ->transform(CLI::CheckedTransformer(std::map<std::string, SearchBy>{{"both", SearchBy::both}, {"vectors", SearchBy::vectors}, {"words", SearchBy::words}}));
  app.add_option("--least", search.least, "Find nothing if the nearest passage is less like the question than\nthis, from -1 to 1. Default: 0.3, which fits MiniLM")->type_name("X");
  app.add_option("--reranker", options.reranker, "A model that ranks, which puts the 50 best passages in order")->type_name("MODEL");
  app.add_option("--graph-from", search.graph_from, "Search an index of at least N passages by a graph (HNSW), which is\nmade when it is first needed. Default: 20000")->type_name("N");
  app.add_flag("--exact", given.exact, "Compare with every vector, without a graph");
}

void add_answer_options(CLI::App& app, Options& options, Given& given) {
  AnsweringOptions& answering = options.answering;
  app.add_option("-m,--model", options.model, "With ask, the model that answers")->type_name("MODEL");
  app.add_option("-n,--max-tokens", answering.max_tokens, "The most tokens of an answer\nDefault: 300")->type_name("N")->check(CLI::Range(1, 1000000));
  app.add_option("--temperature", answering.temperature, "Draw tokens at random; 0: take the likeliest\nDefault: 0")->type_name("X")->check(CLI::Range(0.0, 10.0));
  app.add_option("--seed", answering.seed, "Seed of the random numbers\nDefault: 1")->type_name("N");
  app.add_option("--context", options.context, "The most tokens of prompt and answer\nDefault: the model's own")->type_name("N");
  app.add_option("--instructions", answering.instructions, "What the model is told to do, in place of the usual text")->type_name("TEXT");
  app.add_option("--saved", given.saved_mb, "MB of passages' keys and values that are kept beside the index, so\nthat the model need not read the passages again; 0: none\nDefault: 1000")
      ->type_name("MB")
      ->check(CLI::Range(0.0, 1e9));
}

void check(Options& options, const Given& given) {
  static const std::map<std::string, Command> commands = {{"index", Command::index}, {"search", Command::search}, {"ask", Command::ask}, {"status", Command::status}};
  const auto command = commands.find(given.command);
  if (command == commands.end()) throw UsageError(fmt::format("\"{}\" is none of the commands index, search, ask, status", given.command));
  options.command = command->second;
  options.index = path_of(given.index);
  options.saved_bytes = static_cast<std::uint64_t>(given.saved_mb * 1e6);
  if (given.exact) options.search.graph_from = SIZE_MAX;
  if (options.command == Command::ask && options.model.empty()) throw UsageError("ask needs a chat model: -m MODEL (search needs none)");
  if (options.command != Command::ask && !options.model.empty()) throw UsageError("-m names the model that answers, which is for ask: name the embedder with --embedder");
  if (options.command == Command::status && options.argument) throw UsageError("status takes no argument: name the index with --index");
  const bool cuts = options.passage_tokens || options.overlap || options.dimensions != 0 || options.rebuild;
  if (options.command != Command::index && cuts) throw UsageError("--passage-tokens, --overlap, --dimensions and --rebuild are for index");
  if (options.command == Command::index && !options.reranker.empty()) throw UsageError("--reranker is for search and ask");
  if (options.passage_tokens && options.overlap && *options.overlap >= *options.passage_tokens) throw UsageError("--overlap must be less than --passage-tokens");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  Given given;
  options.search.least = 0.3f;
  CLI::App app{"Finds answers in a folder of texts: an index of passages, search, and answers with their sources.", kProgram};
  app.footer(kFooter);
  app.add_option("COMMAND", given.command, "index, search, ask or status")->required()->type_name("");
  app.add_option("ARGUMENT", options.argument, "the folder, or the question")->type_name("");
  app.add_option("--index", given.index, "The index\nDefault: tessera-rag.db in the present folder")->type_name("FILE");
  add_index_options(app, options);
  add_search_options(app, options, given);
  add_answer_options(app, options, given);
  app.add_flag("--json", options.json, "Print JSON: an object for each question or report");
  tessera::tool::add_instruction_set(app, options.engine.instruction_set);
  tessera::tool::add_threads(app, options.engine.threads);
  tessera::tool::add_version(app, kProgram);
  try {
    tessera::tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  check(options, given);
  return options;
}

}  // namespace rag
