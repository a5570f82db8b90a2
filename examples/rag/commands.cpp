#include "commands.hpp"

#include <algorithm>
#include <iostream>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "embedder.hpp"
#include "failure.hpp"
#include "indexing.hpp"
#include "interrupts.hpp"
#include "model_place.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "store/store.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

namespace rag {

namespace fs = std::filesystem;
using tessera::Engine;
using tessera::ErrorCode;
using tessera::tool::path_of;
using tessera::tool::text_of;

namespace {

constexpr int kNothingNear = 3;
constexpr std::size_t kPassageTokens = 200, kAroundText = 40;  // kAroundText: tokens of the heading, and special tokens

// Ends the line that shows "^C".
void end_line() noexcept { (void)!::write(STDERR_FILENO, "\n", 1); }

fs::path beside(const fs::path& index, const char* ending) {
  fs::path file = index;
  file += ending;
  return file;
}

Engine load(const std::string& model, const Options& options, std::uint32_t context, const std::stop_token& stop) {
  tessera::EngineOptions loading = options.engine;
  loading.context = context;
  loading.stop = stop;
  ProgressLine line("loading " + model, "MB");
  loading.progress = [&line](std::uint64_t done, std::uint64_t total) {
    line.update(done / 1000000, total / 1000000);
    return true;
  };
  return value(Engine::load(value(tessera::tool::model_place(model)), loading));
}

// Returns a model's name that is valid in every working directory: an absolute path if the model is a file or folder.
std::string lasting_name(const std::string& model) {
  std::error_code error;
  const fs::path absolute = fs::canonical(path_of(model), error);
  return error ? model : text_of(absolute);
}

// Removes an index, also a damaged one or one of another version, and the files beside it. Throws Failure if the file is no index.
void remove_index(const fs::path& index) {
  std::error_code error;
  if (fs::exists(index, error) && !Store::is_index(index)) {
    throw Failure(ErrorCode::invalid_argument, fmt::format("{} is no index of tessera-rag, so it is not removed: name another file with --index", text_of(index)));
  }
  for (const char* ending : {"", "-wal", "-shm", ".hnsw"}) fs::remove(beside(index, ending), error);
  // Files whose names are 32 digits are saved prefixes. Other files in their folder stay.
  const fs::path saved = beside(index, ".kv");
  for (const fs::directory_entry& file : fs::directory_iterator(saved, error)) {
    const std::string name = text_of(file.path().filename());
    if (file.is_regular_file(error) && name.size() >= 32 && name.find_first_not_of("0123456789abcdef") >= 32) fs::remove(file.path(), error);
  }
  fs::remove(saved, error);  // only if it is empty
}

// Returns with how many dimensions a model should compute its vectors, so that they can be compared with the vectors of the index: as many
// as the index has. If the model has fewer, returns 0 (all dimensions): its vectors cannot be compared with the index anyway.
std::uint32_t dimensions_for(const IndexSettings& index, const Engine& model) {
  return index.dimensions <= model.spec().embedding_width() ? index.dimensions : 0;
}

CutOptions cut_options(const Options& options, const Embedder& embedder) {
  const std::size_t read = embedder.most_tokens();
  CutOptions cut;
  cut.most_tokens = options.passage_tokens.value_or(std::min(kPassageTokens, std::max(read, kAroundText + 8) - kAroundText));
  if (cut.most_tokens > read) throw UsageError(fmt::format("the embedder reads {} tokens of a text: --passage-tokens cannot be {}", read, cut.most_tokens));
  cut.overlap = options.overlap.value_or(cut.most_tokens / 5);
  if (cut.overlap >= cut.most_tokens) throw UsageError(fmt::format("--overlap must be lower than a passage's {} tokens", cut.most_tokens));
  return cut;
}

int index_folder(const Options& options) {
  Interrupts interrupts(IdleInterrupt::ends, &end_line);
  const Interruptible work(interrupts);
  if (options.rebuild && (!options.argument || options.embedder.empty())) {
    throw UsageError("index --rebuild needs the folder and --embedder");
  }
  std::string folder;
  if (options.argument) {
    std::error_code error;
    const fs::path absolute = fs::canonical(path_of(*options.argument), error);
    if (error || !fs::is_directory(absolute)) throw Failure(ErrorCode::not_found, fmt::format("{} is no folder: name the folder of your texts", *options.argument));
    folder = text_of(absolute);
  }
  std::error_code ignored;
  const bool is_new = options.rebuild || !fs::exists(options.index, ignored);
  if (is_new && (folder.empty() || options.embedder.empty())) throw UsageError("a new index needs a folder and an embedder: index FOLDER --embedder MODEL");

  // Loads the embedder before the index is made, so that a wrong name leaves no file behind.
  std::optional<IndexSettings> known;
  if (!is_new) known = Store(options.index, OpenMode::read_write).settings();
  const std::string model = !options.embedder.empty() ? options.embedder : known ? known->embedder : std::string();
  if (model.empty()) throw UsageError("the index has no embedder yet: index FOLDER --embedder MODEL");
  Engine engine = load(model, options, 0, work.token());
  const std::uint32_t dimensions = options.dimensions != 0 || !known ? options.dimensions : dimensions_for(*known, engine);
  const Embedder embedder(std::move(engine), dimensions);
  IndexSettings settings;
  if (known) {
    settings = *known;
    if (const std::string other = difference(settings, folder, embedder); !other.empty()) {
      throw UsageError(fmt::format("{}: use another --index, or --rebuild", other));
    }
    const bool cuts_otherwise = (options.passage_tokens && *options.passage_tokens != settings.cut.most_tokens) || (options.overlap && *options.overlap != settings.cut.overlap);
    if (cuts_otherwise) throw UsageError(fmt::format("the index has passages of {} tokens, {} of them shared: use another --index, or --rebuild", settings.cut.most_tokens, settings.cut.overlap));
  } else {
    settings = {folder, lasting_name(model), embedder.dimensions(), embedder.probe(), cut_options(options, embedder)};
  }
  if (options.rebuild) remove_index(options.index);
  Store store(options.index, OpenMode::create);
  if (!known) store.set_settings(settings);
  IndexingOptions indexing{.limits = options.limits, .stop = work.token()};
  IndexReport report;
  {
    ProgressLine line("indexing", "files");
    indexing.progress = [&line](std::size_t done, std::size_t total) { line.update(done, total); };
    report = bring_up_to_date(store, settings, embedder, indexing);
  }
  print_report(report, store.counts(), options.json);
  return 0;
}

IndexSettings settings_of(Store& store) {
  auto settings = store.settings();
  if (!settings) throw Failure(ErrorCode::not_found, "the index is empty: fill it with tessera-rag index FOLDER --embedder MODEL");
  return std::move(*settings);
}

int show_status(const Options& options) {
  Store store(options.index, OpenMode::read_write);
  print_status(settings_of(store), store.counts(), text_of(options.index), options.json);
  return 0;
}

Embedder load_embedder(const Options& options, const IndexSettings& index, const std::stop_token& stop) {
  Engine engine = load(options.embedder.empty() ? index.embedder : options.embedder, options, 0, stop);
  const std::uint32_t dimensions = dimensions_for(index, engine);
  return Embedder(std::move(engine), dimensions);
}

// An index with its models, ready for questions.
class OpenIndex {
 public:
  OpenIndex(const Options& options, const std::stop_token& stop)
      : options_(options),
        store_(options.index, OpenMode::read_write),
        settings_(settings_of(store_)),
        embedder_(load_embedder(options, settings_, stop)) {
    if (const std::string other = difference(settings_, {}, embedder_); !other.empty()) {
      throw Failure(ErrorCode::invalid_argument, fmt::format("{}: name that one with --embedder, or make the index anew with index --rebuild", other));
    }
    std::optional<Engine> reranker;
    if (!options.reranker.empty()) reranker = load(options.reranker, options, 0, stop);
    searcher_.emplace(store_, options.index, embedder_, std::move(reranker), options.search, stop);
    if (options.command != Command::ask) return;
    chat_ = load(options.model, options, options.context, stop);
    saved_.emplace(store_.database(), beside(options.index, ".kv"), beginning(chat_, lasting_name(options.model), options.answering), options.saved_bytes);
    answerer_.emplace(chat_, *saved_, options.answering);
  }

  // Returns the exit status.
  int reply(const std::string& question, const std::stop_token& stop) {
    const SearchResult result = searcher_->search(question, stop);
    if (result.found.empty()) {
      print_nothing(question, result, options_.search.least, options_.json);
      return kNothingNear;
    }
    if (!answerer_) {
      print_found(question, result, options_.json);
      return 0;
    }
    const AnswerReport report = answerer_->answer(question, result.found, stop, [this](std::string_view text) {
      if (!options_.json) print(text);
    });
    print_answer(question, result, report, options_.json);
    if (!report.warning.empty()) tessera::tool::complain(kProgram, report.warning);
    if (stop.stop_requested()) throw Failure(ErrorCode::cancelled, "stopped");
    return 0;
  }

 private:
  const Options& options_;
  Store store_;
  IndexSettings settings_;
  Embedder embedder_;
  std::optional<Searcher> searcher_;
  Engine chat_;
  std::optional<SavedPrefixes> saved_;
  std::optional<Answerer> answerer_;
};

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r") == text.npos; }

int reply_to_lines(OpenIndex& room, Interrupts& interrupts) {
  const bool is_typed = tessera::tool::is_terminal(tessera::tool::Standard::input);
  int status = 0;
  while (true) {
    if (is_typed) fmt::print(stderr, "question> ");
    std::string line;
    if (!std::getline(std::cin, line)) break;
    if (is_blank(line)) continue;
    const Interruptible work(interrupts);
    try {
      status = std::max(status, room.reply(line, work.token()));
    } catch (const Failure& failure) {
      if (failure.code != ErrorCode::cancelled || !is_typed) throw;
      fmt::print(stderr, "\n");
    }
  }
  if (is_typed) fmt::print(stderr, "\n");
  return is_typed ? 0 : status;
}

int reply_to_questions(const Options& options) {
  if (options.argument && is_blank(*options.argument)) throw UsageError("the question is empty");
  Interrupts interrupts(IdleInterrupt::ends, &end_line);
  std::optional<OpenIndex> room;
  {
    const Interruptible work(interrupts);
    room.emplace(options, work.token());
    if (options.argument) return room->reply(*options.argument, work.token());
  }
  return reply_to_lines(*room, interrupts);
}

}  // namespace

int run(const Options& options) {
  switch (options.command) {
    case Command::index: return index_folder(options);
    case Command::status: return show_status(options);
    case Command::search:
    case Command::ask: return reply_to_questions(options);
  }
  return 0;
}

}  // namespace rag
