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
  app.add_option("-e,--embedder", options.embedder, "The model that makes vectors of texts (MiniLM, bge, e5, ...)\nDefault: the embedder that the index was made with")->type_name("MODEL");
  app.add_option("--dimensions", options.dimensions, "With index, keep only the first N numbers of each vector (for\nMatryoshka models). Default: 0, all")->type_name("N");
  app.add_option("--passage-tokens", options.passage_tokens, "With index, the most tokens of a passage, 8 to 8192\nDefault: 200, or fewer if the embedder reads fewer")
      ->type_name("N")
      ->check(CLI::Range(8, 8192));
  app.add_option("--overlap", options.overlap, "With index, the most tokens that a passage repeats of the passage\nbefore. Default: a fifth of --passage-tokens")
      ->type_name("N")
      ->check(CLI::Range(0, 8192));
  app.add_option("--largest", options.limits.most_bytes, "With index, leave out files of more bytes than this, at most\n1073741824. Default: 4194304")
      ->type_name("BYTES")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  app.add_flag("--rebuild", options.rebuild, "With index, remove the index and make it anew, for example with\nanother folder or embedder");
}

void add_search_options(CLI::App& app, Options& options, Given& given) {
  SearchOptions& search = options.search;
  app.add_option("-k,--sources", search.most, "The number of passages that search prints or that the model reads,\n1 to 100. Default: 5")->type_name("N")->check(CLI::Range(1, 100));
  app.add_option("--per-file", search.most_of_file, "The most passages of one file; 0: no limit. Default: 2")->type_name("N");
  app.add_option("--by", search.by, "Compare vectors, words (BM25), or both. Default: both")
      ->type_name("both|vectors|words")
      ->transform(CLI::CheckedTransformer(std::map<std::string, SearchBy>{{"both", SearchBy::both}, {"vectors", SearchBy::vectors}, {"words", SearchBy::words}}).description(""));
  app.add_option("--least", search.least, "Find nothing if the likeness of the question and the nearest passage\n(-1 to 1) is lower. Default: 0.3, which fits MiniLM")->type_name("X");
  app.add_option("--reranker", options.reranker, "A cross-encoder, such as bge-reranker-base, that puts the 50 best\npassages in order. Default: none")->type_name("MODEL");
  app.add_option("--graph-from", search.graph_from, "Search an index of N or more passages by a graph (HNSW), which is\nfaster and may miss passages. It is made when it is first needed\nDefault: 20000")->type_name("N");
  app.add_flag("--exact", given.exact, "Compare the question with every vector, without a graph");
}

void add_answer_options(CLI::App& app, Options& options, Given& given) {
  AnsweringOptions& answering = options.answering;
  app.add_option("-m,--model", options.model, "With ask, the chat model that answers")->type_name("MODEL");
  app.add_option("-n,--max-tokens", answering.max_tokens, "The most tokens of an answer, 1 to 1000000. Default: 300")->type_name("N")->check(CLI::Range(1, 1000000));
  app.add_option("--temperature", answering.temperature, "0: always the likeliest token; higher, up to 10: more random\nDefault: 0")->type_name("X")->check(CLI::Range(0.0, 10.0));
  app.add_option("--seed", answering.seed, "The seed of random numbers (--temperature). Default: 1")->type_name("N");
  app.add_option("--context", options.context, "The most tokens of a prompt and its answer together\nDefault: 0, the model's own limit")->type_name("N");
  app.add_option("--instructions", answering.instructions, "Tell the model this before the passages. Default: to answer from the\npassages, and to name them")->type_name("TEXT");
  app.add_option("--saved", given.saved_mb, "The most MB of keys and values of passages that are kept on disk\nbeside the index, so that the model need not read the passages\nagain; 0: none. Default: 1000")
      ->type_name("MB")
      ->check(CLI::Range(0.0, 1e9));
}

void check(Options& options, const Given& given) {
  static const std::map<std::string, Command> commands = {{"index", Command::index}, {"search", Command::search}, {"ask", Command::ask}, {"status", Command::status}};
  const auto command = commands.find(given.command);
  if (command == commands.end()) throw UsageError(fmt::format("\"{}\" is not a command: use index, search, ask or status", given.command));
  options.command = command->second;
  options.index = path_of(given.index);
  options.saved_bytes = static_cast<std::uint64_t>(given.saved_mb * 1e6);
  if (given.exact) options.search.graph_from = SIZE_MAX;
  if (options.command == Command::ask && options.model.empty()) throw UsageError("ask needs a chat model: -m MODEL (search needs none)");
  if (options.command != Command::ask && !options.model.empty()) throw UsageError("-m names the chat model of the command ask: to name the embedder, use --embedder");
  if (options.command == Command::status && options.argument) throw UsageError("status takes no argument: name the index with --index");
  const bool cuts = options.passage_tokens || options.overlap || options.dimensions != 0 || options.rebuild;
  if (options.command != Command::index && cuts) throw UsageError("--passage-tokens, --overlap, --dimensions and --rebuild are options of the command index");
  if (options.command == Command::index && !options.reranker.empty()) throw UsageError("--reranker is an option of the commands search and ask");
  if (options.passage_tokens && options.overlap && *options.overlap >= *options.passage_tokens) throw UsageError("--overlap must be lower than --passage-tokens");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  Given given;
  options.search.least = 0.3f;
  CLI::App app{"Finds answers in a folder of texts: an index of passages, search, and answers with their sources.", kProgram};
  app.footer(kFooter);
  app.add_option("COMMAND", given.command, "index, search, ask or status")->required()->type_name("");
  app.add_option("ARGUMENT", options.argument, "the folder of texts, or the question")->type_name("");
  app.add_option("--index", given.index, "The file of the index. Default: tessera-rag.db in this folder")->type_name("FILE");
  add_index_options(app, options);
  add_search_options(app, options, given);
  add_answer_options(app, options, given);
  app.add_flag("--json", options.json, "Print a JSON object for each question or report");
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
