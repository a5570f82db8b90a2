// tessera-needles: tests KV caches that keep only some of the tokens. Hides numbers in long made-up texts, and counts how many of them a
// model still finds.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/tessera.hpp>

#include "cache_choice.hpp"
#include "command_line.hpp"
#include "haystack.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;

constexpr int kUsage = 2, kFailure = 1;

constexpr const char* kFooter = R"(Each text is made up and has about --tokens tokens. One sentence of it contains a number, in each text at another
depth. The model is asked for the number, and has found it if its answer begins with it. Each text is asked about
in two ways:
  question before   tokens are dropped after the text and the question are read together
  question after    tokens are dropped after the text is read, when the model does not know the question yet
The last token of the question is then computed again, so that the whole answer comes from the tokens that are
left.

Example:
  tessera-needles smollm2-135m-q4_1.gguf --tokens 2048 --texts 20
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::filesystem::path model;
  EngineOptions options;
  std::size_t tokens = 2048, texts = 20;
  std::vector<tool::CacheChoice> caches;
};

int fail(const Error& error) {
  tool::complain("tessera-needles", error.text());
  return kFailure;
}

// Returns whether the model's text begins with the answer. Spaces in front do not count.
Result<bool> answers(Session& session, const std::string& answer) {
  Sampler greedy = sampling::chain().greedy().build();
  std::string said;
  const auto end = session.generate(greedy, {.max_tokens = answer.size() + 3}, [&](const Piece& piece) {
    said += piece.text;
    return true;
  });
  if (!end) return end.error();
  const std::size_t first = said.find_first_not_of(" \n*:");
  return first != std::string::npos && said.compare(first, answer.size(), answer) == 0;
}

// Returns whether a session with this budget finds the needle. `parts`: text and question, together or as two prompts.
Result<bool> finds(const Engine& engine, std::span<const std::vector<Token>> parts, DType dtype,
                   const TokenBudget& budget, const std::string& answer) {
  auto session = engine.session({.kv = {.dtype = dtype, .budget = budget}});
  if (!session) return session.error();
  for (const std::vector<Token>& part : parts) {
    if (auto read = session->append(part); !read) return read.error();
  }
  const Token last = session->tokens().back();
  if (Status cut = session->truncate(session->position() - 1); !cut) return cut.error();
  if (auto read = session->append(std::span(&last, 1)); !read) return read.error();
  return answers(*session, answer);
}

int run(const Arguments& arguments) {
  EngineOptions options = arguments.options;
  options.kv.budget = {.tokens = kLeastTokenBudget, .choice = TokenChoice::snapkv};  // makes room for votes
  options.context = static_cast<std::uint32_t>(arguments.tokens + arguments.tokens / 2 + 256);
  const auto place = tool::model_place(tool::text_of(arguments.model));
  if (!place) return fail(place.error());
  const auto engine = Engine::load(*place, options);
  if (!engine) return fail(engine.error());
  std::vector<std::size_t> before(arguments.caches.size()), after(arguments.caches.size());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < arguments.texts; ++i) {
    // No needle is in the last 30 % of a text, because every budget keeps the last tokens.
    const double depth = (static_cast<double>(i) + 0.5) / static_cast<double>(arguments.texts) * 0.7;
    const needles::Haystack made = needles::make_haystack(i, arguments.tokens * 7 / 10, depth);
    const auto text = engine->tokenizer().encode(made.text);
    if (!text) return fail(text.error());
    const auto question = engine->tokenizer().encode(made.question, {.bos = Bos::never});
    if (!question) return fail(question.error());
    std::vector<Token> whole = *text;
    whole.insert(whole.end(), question->begin(), question->end());
    const std::vector<Token> apart[] = {{whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(question->size())},
                                        {whole.end() - static_cast<std::ptrdiff_t>(question->size()), whole.end()}};
    tokens += whole.size();
    for (std::size_t c = 0; c < arguments.caches.size(); ++c) {
      const DType dtype = arguments.caches[c].dtype;
      const TokenBudget budget = arguments.caches[c].budget(whole.size());
      const auto found = finds(*engine, std::span(&whole, 1), dtype, budget, made.answer);
      if (!found) return fail(found.error());
      before[c] += *found ? 1 : 0;
      const auto later = finds(*engine, apart, dtype, budget, made.answer);
      if (!later) return fail(later.error());
      after[c] += *later ? 1 : 0;
    }
    if (terminal) fmt::print(stderr, "\r{} of {} texts", i + 1, arguments.texts);
  }
  if (terminal) fmt::print(stderr, "\r\033[K");
  fmt::print("{} texts of {} tokens on average\n", arguments.texts, tokens / arguments.texts);
  fmt::print("{:<20} {:>16} {:>15}\n", "cache", "question before", "question after");
  for (std::size_t c = 0; c < arguments.caches.size(); ++c) {
    fmt::print("{:<20} {:>16} {:>15}\n", arguments.caches[c].name, before[c], after[c]);
  }
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Counts the numbers that a model finds in long texts while it keeps a part of their tokens.", "tessera-needles"};
  app.footer(kFooter);
  app.add_option("MODEL", arguments.model, tool::kModelForms)->required()->type_name("");
  app.add_option("--tokens", arguments.tokens,
                 "the number of tokens of a text and its question. Default: 2048")->type_name("N")->check(CLI::Range(512, 1 << 20));
  app.add_option("--texts", arguments.texts, "the number of texts. Default: 20")->type_name("N")->check(CLI::Range(1, 10000));
  for (const char* cache : {"f16", "f16:50%:window", "f16:25%:window", "f16:50%:h2o", "f16:25%:h2o", "f16:50%:snapkv", "f16:25%:snapkv"}) {
    arguments.caches.push_back(tool::parse_cache(cache));
  }
  tool::add_caches(app, arguments.caches,
                 "the caches to compare: a type of keys and values, how many tokens\n"
                 "keep them (a number, or a percentage of a text's tokens), and how\n"
                 "these tokens are chosen. Default: f16 with all tokens, and with 50%\n"
                 "and 25% of the tokens by each choice");
  tool::add_instruction_set(app, arguments.options.instruction_set);
  tool::add_threads(app, arguments.options.threads);
  tool::add_version(app, "tessera-needles");
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    tool::complain("tessera-needles", fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  }
  return run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = parse_and_run(argc, argv);
    if (tessera::tool::output_arrived()) return status;
    tessera::tool::complain("tessera-needles", tessera::tool::kLostOutput);
  } catch (const std::exception& error) {
    tessera::tool::complain("tessera-needles", error.what());
  } catch (...) {
    tessera::tool::complain("tessera-needles", "something unknown was thrown");
  }
  return kFailure;
}
