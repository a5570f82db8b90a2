// tessera-quality: measures how much the predictions of a model change if something is computed less exactly (weight formats, KV caches,
// kernels), compared with float32. Also measures how well an embedding model finds documents.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/tessera.hpp>

#include "cache_table.hpp"
#include "command_line.hpp"
#include "divergence.hpp"
#include "imatrix.hpp"
#include "logits_file.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"
#include "model_files.hpp"
#include "model_place.hpp"
#include "retrieval_table.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"
#include "token_file.hpp"

namespace {

using namespace tessera;
using namespace tessera::quality;

constexpr int kUsage = 2, kFailure = 1;

constexpr const char* kFooter = R"(The reference is computed by the engine itself: it decodes the file's weights, and computes products, sums, keys and
values in float32. Each document of TOKENS is read in a session of its own. The predictions of all its tokens but the
first are compared.

Examples:
  tessera-quality model-q4_0.gguf tests/data/quality/stories.tokens                         auto against reference
  tessera-quality model-q4_0.gguf stories.tokens --numerics bf16 --isa avx512-vnni --json
  tessera-quality model-q4_0.gguf stories.tokens --numerics reference --save q4_0.logits    for other programs
  tessera-quality model-q4_0.gguf stories.tokens --reference q4_0.logits
  tessera-quality model-f16.gguf text.tokens --imatrix model.imatrix       for tessera-quantize --imatrix
  tessera-quality model-f32.gguf long.tokens --caches int8,int4,f16:25%:snapkv --last 1024
  tessera-quality all-MiniLM-L6-v2 tests/data/quality/retrieval --retrieval --formats f32,q8_0,q4_0 --dimensions 384,128
With --caches the table has a row for each cache. Two runs are compared that differ only in their cache: one has this type of
keys and values, and keeps this many tokens; the other has all keys and values in float32. A part of each KL does not come
from the cache itself: products with quantised weights round their inputs to 8 bits, and another cache changes these inputs,
so that they are rounded in another way. With --numerics reference, which is slow, the KL comes from the cache alone.
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::filesystem::path model, tokens, save, reference, imatrix;
  EngineOptions options;
  std::uint32_t chunk = 0;  // tokens appended at once; 0: a whole document, or the default of --caches
  CacheTableOptions caches;
  RetrievalOptions retrieval;
  bool json = false;
};

int fail(const Error& error) {
  tool::complain("tessera-quality", error.text());
  return kFailure;
}

// Returns the logits after each token of the document except the last [tokens - 1, vocab].
Result<std::vector<float>> logits_of(const Engine& engine, std::span<const Token> document, std::size_t chunk) {
  auto session = engine.session();
  if (!session) return session.error();
  const std::span<const Token> read = document.first(document.size() - 1);
  std::vector<float> values;
  values.reserve(read.size() * engine.spec().vocab_size);
  for (std::size_t i = 0; i < read.size();) {
    const std::size_t count = std::min(chunk == 0 ? read.size() : chunk, read.size() - i);
    const auto logits = session->append(read.subspan(i, count), {.logits = LogitsOf::all});
    if (!logits) return logits.error();
    values.insert(values.end(), logits->values.begin(), logits->values.end());
    i += count;
  }
  return values;
}

// Returns the logits of the reference run: from a file, or from an engine that computes in float32.
class Reference {
 public:
  static Result<Reference> make(const Arguments& arguments, const LogitsHeader& header) {
    Reference reference;
    if (!arguments.reference.empty()) {
      auto reader = LogitsReader::open(arguments.reference, header);
      if (!reader) return reader.error();
      reference.reader_ = *std::move(reader);
    } else {
      EngineOptions options;
      options.numerics = Numerics::reference;
      options.kv.dtype = DType::f32;
      options.tokenizer = TokenizerUse::none;
      options.threads = arguments.options.threads;
      auto engine = Engine::load(arguments.model, options);
      if (!engine) return engine.error();
      reference.engine_ = *std::move(engine);
    }
    return reference;
  }

  Result<std::vector<float>> logits(std::span<const Token> document, std::uint32_t vocab) {
    if (engine_) return logits_of(*engine_, document, 0);
    std::vector<float> values((document.size() - 1) * vocab);
    if (auto ok = reader_->read(values); !ok) return ok.error();
    return values;
  }

 private:
  std::optional<LogitsReader> reader_;
  std::optional<Engine> engine_;
};

Status save(const Arguments& arguments, const Engine& engine, const Documents& documents, const LogitsHeader& header) {
  auto writer = LogitsWriter::create(arguments.save, header);
  if (!writer) return writer.error();
  for (const auto& document : documents) {
    const auto logits = logits_of(engine, document, arguments.chunk);
    if (!logits) return logits.error();
    writer->write(*logits);
  }
  return writer->finish();
}

// Reads the documents to sum the squares of the matrices' inputs, instead of comparing.
Status write_imatrix(const Arguments& arguments, const ModelSource& model) {
  InputSums sums(model);
  EngineOptions options = arguments.options;
  options.input_observer = &sums;
  const auto engine = Engine::load(model, options);
  if (!engine) return engine.error();
  const auto documents = read_tokens(arguments.tokens, engine->spec().vocab_size);
  if (!documents) return documents.error();
  for (const auto& document : *documents) {
    const auto logits = logits_of(*engine, document, arguments.chunk);
    if (!logits) return logits.error();
  }
  return sums.write(arguments.imatrix, arguments.tokens, *documents);
}

Result<Divergence> compare(const Arguments& arguments, const Engine& engine, const Documents& documents,
                           const LogitsHeader& header) {
  auto reference = Reference::make(arguments, header);
  if (!reference) return reference.error();
  Divergence divergence;
  for (const auto& document : documents) {
    const auto exact = reference->logits(document, header.vocab);
    if (!exact) return exact.error();
    const auto run = logits_of(engine, document, arguments.chunk);
    if (!run) return run.error();
    for (std::size_t row = 0; row + 1 < document.size(); ++row) {
      const std::size_t at = row * header.vocab;
      if (divergence.add(std::span(*exact).subspan(at, header.vocab), std::span(*run).subspan(at, header.vocab),
                         document[row + 1])) {
        continue;
      }
      return Error(ErrorCode::invalid_argument,
                   fmt::format("document {}: the logits after token {} are not all finite", &document - documents.data() + 1,
                               row + 1));
    }
  }
  return divergence;
}

void print(const Arguments& arguments, const Divergence& result) {
  if (arguments.json) {
    const nlohmann::json object = {{"numerics", to_string(arguments.options.numerics)},
                                   {"tokens", result.rows()},
                                   {"mean_kl", result.mean_kl()},
                                   {"max_kl", result.max_kl()},
                                   {"perplexity", result.perplexity()},
                                   {"reference_perplexity", result.reference_perplexity()},
                                   {"same_first_choice", result.same_first_choice()}};
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("tokens              {}\n", result.rows());
  fmt::print("mean KL             {:.4g} nats a token, {:.4g} at most\n", result.mean_kl(), result.max_kl());
  fmt::print("perplexity          {:.6f}, the reference's {:.6f}\n", result.perplexity(),
             result.reference_perplexity());
  fmt::print("same first choice   {:.3f} %\n", 100.0 * result.same_first_choice());
}

// Returns whether the engine's matrix products round their inputs to 8 bits or bf16. If they do, the results of two KV caches differ also
// because inputs are rounded differently, and not only because of the cache.
bool rounds_activations(const Engine& engine) {
  const auto uses = engine.explain();
  return uses && std::ranges::any_of(*uses, [](const KernelUse& use) {
    return use.kind == Operation::linear && (use.family.starts_with("int8") || use.family == "bf16" || use.family == "bf16-pairs");
  });
}

void print(const Arguments& arguments, const Engine& engine, const std::vector<CacheRow>& rows) {
  const std::vector<tool::CacheChoice>& caches = arguments.caches.caches;
  if (!arguments.json) {
    fmt::print("{:<20} {:>13} {:>10} {:>10} {:>11} {:>11}\n", "cache", "bytes a token", "mean KL", "max KL", "perplexity", "same first");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Divergence& of = rows[i].divergence;
    if (arguments.json) {
      const nlohmann::json object = {{"cache", caches[i].name},
                                     {"numerics", to_string(arguments.options.numerics)},
                                     {"rounds_activations", rounds_activations(engine)},
                                     {"tokens", of.rows()},
                                     {"bytes_per_token", rows[i].bytes_per_token},
                                     {"mean_kl", of.mean_kl()},
                                     {"max_kl", of.max_kl()},
                                     {"perplexity", of.perplexity()},
                                     {"reference_perplexity", of.reference_perplexity()},
                                     {"same_first_choice", of.same_first_choice()}};
      fmt::print("{}\n", object.dump());
    } else {
      fmt::print("{:<20} {:>13.0f} {:>10.3g} {:>10.3g} {:>11.5f} {:>9.2f} %\n", caches[i].name, rows[i].bytes_per_token, of.mean_kl(),
                 of.max_kl(), of.perplexity(), 100.0 * of.same_first_choice());
    }
  }
  if (!arguments.json) {
    fmt::print("{} predictions; perplexity with all in float32: {:.5f}\n", rows.front().divergence.rows(),
               rows.front().divergence.reference_perplexity());
    if (rounds_activations(engine)) {
      fmt::print("Part of each KL comes from rounding what the weights multiply, which changes with the cache. With --numerics reference "
                 "nothing is rounded there, and the KL comes from the cache alone.\n");
    }
  }
}

int run_caches(const Arguments& arguments, const ModelSource& model) {
  EngineOptions options = arguments.options;
  options.kv.dtype = DType::f32;
  for (const tool::CacheChoice& cache : arguments.caches.caches) {
    const TokenBudget budget{.tokens = kLeastTokenBudget, .choice = cache.choice};
    if (counts_attention(budget)) options.kv.budget = budget;  // makes room for votes
  }
  const auto engine = Engine::load(model, options);
  if (!engine) return fail(engine.error());
  const auto documents = read_tokens(arguments.tokens, engine->spec().vocab_size);
  if (!documents) return fail(documents.error());
  CacheTableOptions table = arguments.caches;
  if (arguments.chunk != 0) table.chunk = arguments.chunk;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::uint64_t all = predicted(*documents);
  const auto rows = compare_caches(*engine, *documents, table, [&](std::size_t done) {
    if (terminal) fmt::print(stderr, "\r{} of {} tokens", done, all);
  });
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!rows) return fail(rows.error());
  print(arguments, *engine, *rows);
  return 0;
}

int run(Arguments& arguments) {
  const auto place = tool::model_place(tool::text_of(arguments.model));
  if (!place) return fail(place.error());
  arguments.model = *place;
  const auto model = open_model(arguments.model);
  if (!model) return fail(model.error());
  if (!arguments.save.empty() && tool::is_part_of(arguments.save, arguments.model)) {
    return fail(Error(ErrorCode::invalid_argument, "--save would overwrite the model: choose another name"));
  }
  if (!arguments.imatrix.empty()) {
    if (tool::is_part_of(arguments.imatrix, arguments.model)) {
      return fail(Error(ErrorCode::invalid_argument, "--imatrix would overwrite the model: choose another name"));
    }
    const auto written = write_imatrix(arguments, **model);
    return written ? 0 : fail(written.error());
  }
  if (!arguments.caches.caches.empty()) return run_caches(arguments, **model);
  if (arguments.retrieval.is_wanted) {
    EngineOptions options = arguments.options;
    options.tokenizer = TokenizerUse::from_model;
    const auto printed = print_retrieval(*model, arguments.tokens, arguments.retrieval, options, arguments.json);
    return printed ? 0 : fail(printed.error());
  }
  const auto engine = Engine::load(**model, arguments.options);
  if (!engine) return fail(engine.error());
  const std::uint32_t vocab = engine->spec().vocab_size;
  const auto documents = read_tokens(arguments.tokens, vocab);
  if (!documents) return fail(documents.error());
  LogitsHeader header;
  header.vocab = vocab;
  header.rows = predicted(*documents);
  header.tokens_hash = hash(*documents);
  if (!arguments.save.empty()) {
    const auto saved = save(arguments, *engine, *documents, header);
    return saved ? 0 : fail(saved.error());
  }
  const auto result = compare(arguments, *engine, *documents, header);
  if (!result) return fail(result.error());
  print(arguments, *result);
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  EngineOptions& options = arguments.options;
  options.tokenizer = TokenizerUse::none;
  options.kv.dtype = DType::f32;
  std::string numerics = "auto";
  CLI::App app{"Compares a model's predictions of TOKENS with those of float32.", "tessera-quality"};
  app.footer(kFooter);
  app.add_option("MODEL", arguments.model, tool::kModelForms)->required()->type_name("");
  app.add_option("TOKENS", arguments.tokens, "a file with a document in each line, as token ids in decimal")->required()->type_name("");
  app.add_option("--numerics", numerics, "How the run computes: auto, bf16, fastest, reference, invariant\n(docs/explanation/numerics.md). Default: auto")
      ->type_name("MODE");
  bool rounds = false;
  app.add_option_function<std::string>("--activations", [&rounds](const std::string& name) { rounds = name == "model"; },
                                       "How inputs of products are rounded in a model's folder whose activations\n"
                                       "are quantised (W8A8, FP8). auto: as --numerics says. model: as the folder\n"
                                       "says. The reference does not round them. Default: auto")
      ->type_name("auto|model")
      ->check(CLI::IsMember({"auto", "model"}));
  tool::add_instruction_set(app, options.instruction_set);
  CLI::Option* const kv_dtype = tool::add_kv_dtype(app, options.kv.dtype, "The type of the run's keys and values. Default: f32");
  CLI::Option* const kv_wide = tool::add_kv_wide(app, options.kv.wide);
  app.add_option("--chunk", arguments.chunk, "The number of tokens that the run computes at once; 0: a whole document\nDefault: 0; with --caches 256")
      ->type_name("N");
  tool::add_threads(app, options.threads);
  tool::add_version(app, "tessera-quality");
  CLI::Option* const reference =
      app.add_option("--reference", arguments.reference, "Read the reference's logits from this file, which --save has written\nDefault: compute them")->type_name("FILE");
  CLI::Option* const save = app.add_option("--save", arguments.save, "Write the run's logits to this file instead of comparing")
                                ->type_name("FILE")
                                ->excludes(reference);
  CLI::Option* const imatrix = app.add_option("--imatrix", arguments.imatrix, "Write the importance matrix of TOKENS to this file instead of comparing")
      ->type_name("FILE")
      ->excludes(reference)
      ->excludes(save);
  CLI::Option* const caches =
      tool::add_caches(app, arguments.caches.caches,
                 "Instead of comparing, print a table with a row for each of these caches:\n"
                 "a type of keys and values, how many tokens keep them (a number, or a\n"
                 "percentage of a document's tokens), and how these tokens are chosen")
          ->excludes(reference)
          ->excludes(save)
          ->excludes(imatrix)
          ->excludes(kv_dtype)
          ->excludes(kv_wide);
  app.add_option("--last", arguments.caches.last, "With --caches, compare only the last N predictions of each document\nDefault: all")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->needs(caches);
  add_retrieval(app, arguments.retrieval)->excludes(reference)->excludes(save)->excludes(imatrix)->excludes(caches);
  app.add_flag("--json", arguments.json, "Print the result as a JSON object, or a table as an object for each row");
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    tool::complain("tessera-quality", fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  }
  const auto mode = parse_numerics(numerics);
  if (!mode) {
    tool::complain("tessera-quality", fmt::format("--numerics: \"{}\" is not one of auto|bf16|fastest|reference|invariant (--help tells more)", numerics));
    return kUsage;
  }
  options.numerics = *mode;
  if (rounds) options.activations = Activations::as_the_model_says;
  return run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = parse_and_run(argc, argv);
    if (tool::output_arrived()) return status;
    tool::complain("tessera-quality", tool::kLostOutput);
  } catch (const std::exception& error) {
    tool::complain("tessera-quality", error.what());
  } catch (...) {
    std::fputs("tessera-quality: an unknown failure\n", stderr);
  }
  return kFailure;
}
