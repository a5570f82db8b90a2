// tessera-embed: prints embeddings of texts, how similar texts are, or how well documents answer a query.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/tessera.hpp>

#include "command_line.hpp"
#include "failure.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;

constexpr const char* kProgram = "tessera-embed";
constexpr int kUsage = 2, kFailure = 1;

constexpr const char* kFooter = R"(MODEL is a GGUF file, a folder as hubs publish models, or a name (ollama:NAME, lmstudio:NAME, hf:NAME).
Without TEXT, texts are read from standard input, one a line. Each text gives a line of output:
  {"text":"...","tokens":7,"embedding":[0.1,...]}
--like and --rerank print a table instead, the best text first.

Examples:
  tessera-embed all-MiniLM-L6-v2 "A cat sleeps." "We sell cars."
  tessera-embed all-MiniLM-L6-v2 --like "a sleeping pet" < sentences.txt
  tessera-embed bge-reranker-base --rerank "what is a panda?" < documents.txt
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::string model;
  std::vector<std::string> texts;
  std::string like, rerank, instruction;
  bool numbers = false;
  std::size_t best = 0;
  EngineOptions options;
  EmbedOptions embed;
};

std::vector<std::string> read_lines() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

// Reads each text as a line of token ids.
std::vector<std::vector<Token>> read_numbers(const std::vector<std::string>& texts) {
  std::vector<std::vector<Token>> all;
  for (const std::string& text : texts) {
    std::vector<Token> tokens;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto skip = [&] {
      while (at != end && (*at == ' ' || *at == ',')) ++at;
    };
    for (skip(); at != end; skip()) {
      Token token = 0;
      const auto [stop, error] = std::from_chars(at, end, token);
      if (error != std::errc()) throw UsageError(fmt::format("\"{}\" is not a list of token ids", tool::shown(text)));
      tokens.push_back(token);
      at = stop;
    }
    all.push_back(std::move(tokens));
  }
  return all;
}

void print_vectors(const Arguments& arguments, const Embeddings& vectors) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::string line = "{\"text\":" + Json(arguments.texts[i]).dump();
    line += fmt::format(",\"tokens\":{}{},\"embedding\":", vectors.tokens(i), vectors.was_cut(i) ? ",\"was_cut\":true" : "");
    const bool is_list = arguments.embed.pooling == Pooling::none;
    if (is_list) line += '[';
    for (std::size_t row = 0; row < vectors.rows(i); ++row) {
      line += row == 0 ? "[" : ",[";
      for (const float x : vectors.row(i, row)) line += fmt::format("{}{}", line.back() == '[' ? "" : ",", x);
      line += ']';
    }
    fmt::print("{}{}}}\n", line, is_list ? "]" : "");
  }
}

// Prints scores and texts, the highest score first.
void print_table(const Arguments& arguments, const std::vector<float>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  if (arguments.best != 0 && order.size() > arguments.best) order.resize(arguments.best);
  for (const std::size_t i : order) fmt::print("{:8.4f}  {}\n", scores[i], tool::shown(arguments.texts[i]));
}

std::vector<float> similarities(const Engine& engine, const Arguments& arguments, const Embeddings& vectors) {
  EmbedOptions options = arguments.embed;
  options.role = TextRole::query;
  const std::string_view query = arguments.like;
  const Embeddings asked = value(engine.embed(std::span(&query, 1), options));
  std::vector<float> scores;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const auto a = vectors.row(i), b = asked.row(0);
    scores.push_back(static_cast<float>(std::inner_product(a.begin(), a.end(), b.begin(), 0.0)));
  }
  return scores;
}

// Prints how many texts the model did not read to their ends.
void tell_cuts(const Embeddings& vectors) {
  std::size_t cut = 0, first = 0;
  for (std::size_t i = vectors.size(); i-- > 0;) {
    if (vectors.was_cut(i)) ++cut, first = i;
  }
  if (cut == 0) return;
  tool::complain(kProgram, fmt::format("{} of {} texts {} cut to {} tokens, the first of them text {} (--long windows reads texts whole)", cut, vectors.size(),
                                       cut == 1 ? "was" : "were", vectors.tokens(first), first + 1));
}

int run(Arguments arguments) {
  const auto engine = value(Engine::load(value(tool::model_place(arguments.model)), arguments.options));
  if (arguments.texts.empty()) arguments.texts = read_lines();
  const std::vector<std::string_view> texts(arguments.texts.begin(), arguments.texts.end());
  if (!arguments.rerank.empty()) {
    if (arguments.numbers) throw UsageError("--rerank reads texts, not --ids");
    print_table(arguments, value(engine.rerank(arguments.rerank, texts, {.instruction = arguments.instruction, .most_tokens = arguments.embed.most_tokens})));
    return 0;
  }
  if (!arguments.like.empty() && arguments.embed.pooling == Pooling::none) throw UsageError("--like compares texts: choose another --pooling than none");
  const Embeddings vectors =
      arguments.numbers ? value(engine.embed(read_numbers(arguments.texts), arguments.embed)) : value(engine.embed(texts, arguments.embed));
  if (!arguments.like.empty()) print_table(arguments, similarities(engine, arguments, vectors));
  else print_vectors(arguments, vectors);
  tell_cuts(vectors);
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  EmbedOptions& embed = arguments.embed;
  CLI::App app{"Turns texts into vectors, and ranks texts by what they say.", kProgram};
  app.footer(kFooter);
  app.add_option("-m,--model,MODEL", arguments.model, "the model")->required()->type_name("");
  app.add_option("TEXT", arguments.texts, "the texts")->type_name("");
  app.add_option("--like", arguments.like, "Print the texts in the order of their likeness to this text")->type_name("TEXT");
  app.add_option("--rerank", arguments.rerank, "Print the texts in the order of how well they answer this query.\nMODEL is a cross-encoder or Qwen3-Reranker")->type_name("TEXT");
  app.add_option("--instruction", arguments.instruction, "With --rerank and Qwen3-Reranker, the task in a sentence\nDefault: the model's own sentence")->type_name("TEXT");
  app.add_option("--best", arguments.best, "With --like or --rerank, print only the N best texts\nDefault: 0, all")->type_name("N");
  app.add_option("--role", embed.role, "The use of the texts. For query and document the model's own prompt\nfor this use is put before each text. Default: plain, no prompt")
      ->type_name("plain|query|document")
      ->transform(CLI::CheckedTransformer(std::map<std::string, TextRole>{{"plain", TextRole::plain}, {"query", TextRole::query}, {"document", TextRole::document}}).description(""));
  app.add_option("--prompt", embed.prompt, "Put this before each text, instead of the model's prompt")->type_name("TEXT");
  app.add_option("--pooling", embed.pooling, "How the vectors of a text's tokens become one: their mean, the\nfirst one (cls), the last one; none: print a vector for each token\nDefault: as the model's file says")
      ->type_name("none|mean|cls|last")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Pooling>{{"none", Pooling::none}, {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"last", Pooling::last}}).description(""));
  app.add_option("--dimensions", embed.dimensions, "Keep only the first N numbers of each vector (for Matryoshka models)\nDefault: 0, all")->type_name("N");
  app.add_flag("!--raw", embed.normalises, "Do not scale vectors to length 1");
  app.add_option("--long", embed.long_text, "A text that is too long: cut it, read it in windows, or refuse it\nDefault: cut")
      ->type_name("cut|windows|refuse")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LongText>{{"cut", LongText::cut}, {"windows", LongText::windows}, {"refuse", LongText::refuse}}).description(""));
  app.add_option("--overlap", embed.overlap, "With --long windows, the tokens that two successive windows share\nDefault: 0")->type_name("N");
  app.add_option("--tokens", embed.most_tokens, "The most tokens of a text that are read. Default: the model's own\nlimit")->type_name("N");
  app.add_flag_callback("--special", [&embed] { embed.special = Special::parse; }, "Read names of control tokens in the texts, such as [SEP], as these\ntokens. Default: as plain text");
  app.add_flag("--ids", arguments.numbers, "The texts are lists of token ids, such as \"101 2023 102\"");
  app.add_option_function<std::string>(
         "--numerics",
         [&arguments](const std::string& name) {
           const auto numerics = parse_numerics(name);
           if (!numerics) throw CLI::ValidationError("--numerics", fmt::format("\"{}\" is not one of auto, bf16, fastest, reference, invariant", name));
           arguments.options.numerics = *numerics;
         },
         "How products are computed (docs/explanation/numerics.md). reference:\n"
         "plainly in f32, also with quantised weights: slower, but with vectors\n"
         "that are nearer to the model's own. Default: auto")
      ->type_name("auto|bf16|fastest|reference|invariant");
  app.add_option_function<std::string>(
         "--activations",
         [&arguments](const std::string& name) {
           if (name != "auto" && name != "model") throw CLI::ValidationError("--activations", fmt::format("\"{}\" is not one of auto, model", name));
           arguments.options.activations = name == "model" ? Activations::as_the_model_says : Activations::automatic;
         },
         "How inputs of products are rounded in a model's folder whose\n"
         "activations are quantised (W8A8, FP8). auto: as --numerics\n"
         "says. model: as the folder says. Default: auto")
      ->type_name("auto|model");
  tool::add_instruction_set(app, arguments.options.instruction_set);
  tool::add_threads(app, arguments.options.threads);
  tool::add_version(app, kProgram);
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    tool::complain(kProgram, fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  }
  return run(std::move(arguments));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = parse_and_run(argc, argv);
    if (tool::output_arrived()) return status;
    tool::complain(kProgram, tool::kLostOutput);
  } catch (const UsageError& error) {
    tool::complain(kProgram, fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  } catch (const std::exception& error) {
    tool::complain(kProgram, error.what());
  } catch (...) {
    tool::complain(kProgram, "unknown failure: please report it");
  }
  return kFailure;
}
