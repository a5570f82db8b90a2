// The modes that run the model: text, and logits.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "adapters.hpp"
#include "constraint.hpp"
#include "drafting.hpp"
#include "failure.hpp"
#include "system/program.hpp"
#include "interrupt.hpp"
#include "model.hpp"
#include "model_files.hpp"
#include "modes.hpp"
#include "output/output.hpp"
#include "prompt.hpp"
#include "sampler.hpp"
#include "several.hpp"
#include "output/terminal.hpp"

using tessera::Engine;
using tessera::ErrorCode;
using tessera::LogitsOf;
using tessera::Sampler;
using tessera::Session;
using tessera::Token;

namespace {

constexpr int kInterrupted = 130;

// Opens the session: a new one, or the one that --load-session names. If a saved session's adapters are those of --lora, they stay as they
// were saved (an aLoRA adapter that was active stays active). If not, the adapters of --lora replace them.
Session open_session(const Options& options, const Engine& engine, const std::vector<tessera::AdapterUse>& adapters) {
  tessera::SessionOptions how{.kv = options.kv, .stream = {.window = options.keep}};
  if (!options.load_session) {
    how.adapters = adapters;
    return value(engine.session(how));
  }
  Session session = value(engine.restore(tessera::tool::path_of(*options.load_session), how));
  if (same_adapters(value(session.adapters()), adapters)) return session;
  if (const auto changed = session.use_adapters(adapters); !changed) throw Failure(changed.error());
  return session;
}

// Checks the path of an output file before anything is computed, so that an error shows at once.
void check_output(const Options& options, const char* option, const std::filesystem::path& path) {
  if (options.model && tessera::tool::is_part_of(path, model_path(options))) {
    throw UsageError(fmt::format("{} would overwrite the model: choose another name", option));
  }
  std::error_code ignored;
  if (path.has_parent_path() && !std::filesystem::is_directory(path.parent_path(), ignored)) {
    throw Failure(ErrorCode::io, fmt::format("{}: there is no folder {}", path.string(), path.parent_path().string()));
  }
}

void save_session(const Options& options, const Session& session) {
  if (!options.save_session) return;
  if (const auto saved = session.save(tessera::tool::path_of(*options.save_session)); !saved) throw Failure(saved.error());
}

void read_in(Session& session, std::span<const Token> tokens, const std::stop_token& stop) {
  if (tokens.empty()) return;
  ProgressBar bar("reading the prompt", ProgressBar::Unit::tokens);
  (void)value(session.append(tokens, {.stop = stop, .progress = [&](std::size_t done, std::size_t total) {
                                        bar.update(done, total);
                                        return true;
                                      }}));
}

tessera::GenerateOptions generate_options(const Options& options, const Session& session,
                                          tessera::SpeculateOptions speculate, std::stop_token stop) {
  const std::size_t left = session.context() - session.position();
  const std::size_t room = options.keep != 0 || options.kv.budget.tokens != 0 ? kDefaultMaxTokens : std::max<std::size_t>(left, 1);
  return {.max_tokens = options.max_tokens.value_or(std::min(kDefaultMaxTokens, room)),
          .stop_strings = options.stop_strings,
          .end_of_generation =
              options.ignore_eos ? tessera::EndOfGeneration::ignore : tessera::EndOfGeneration::stop,
          .logprobs = options.logprobs,
          .stop = std::move(stop),
          .speculate = std::move(speculate),
          .early_exit = options.early_exit};
}

// Returns the text of the tokens; empty for a model without a vocabulary, which still reads and writes ids.
std::string text_of(const tessera::Tokenizer& tokenizer, std::span<const Token> tokens) {
  return tokenizer.vocab_size() == 0 ? std::string() : value(tokenizer.decode(tokens));
}

Outcome run(Session& session, Sampler& sampler, const tessera::GenerateOptions& options, Output& output) {
  Outcome outcome;
  auto generation = session.generate(sampler, options);
  for (const auto& piece : generation) {
    if (piece) {
      output.piece(*piece);
    } else {
      outcome.error = piece.error();
    }
  }
  outcome.finish = generation.finish_reason();
  outcome.figures = generation.figures();
  if (const auto drafting = generation.drafting(); !drafting) {
    complain(fmt::format("the drafts ended early: {}", drafting.error().text()));
  }
  return outcome;
}

// Points new users to --chat, because a model that was trained to chat continues a text without chat markers oddly.
void tell_of_chat(const Options& options, const Engine& engine) {
  if (!options.prompt || options.no_special || !engine.metadata().has(tessera::Setting::chat_template)) return;
  const auto tokens = value(engine.tokenizer().encode(*options.prompt, {.bos = tessera::Bos::never, .special = tessera::Special::parse}));
  const auto is_control = [&](Token token) { return engine.tokenizer().is_control(token); };
  if (std::any_of(tokens.begin(), tokens.end(), is_control)) return;  // the prompt is in the model's own format
  complain("this model has a chat template: --chat -p TEXT asks it a question, -p TEXT alone is gone on from as it stands");
}

// Logits are written to the file as they are in memory, so the machine must be little-endian.
static_assert(std::endian::native == std::endian::little);

class LogitsFile {
 public:
  explicit LogitsFile(const std::string& path) : path_(path), file_(tessera::tool::open_file(path, "wb")) {
    if (file_ == nullptr) fail("cannot open");
  }
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;
  // Removes an incomplete file, which would look like a complete one.
  ~LogitsFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::error_code ignored;
    const std::filesystem::path path = tessera::tool::path_of(path_);
    if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  }

  void write(std::span<const float> values) {
    if (std::fwrite(values.data(), sizeof(float), values.size(), file_) != values.size()) fail("cannot write");
  }

  void finish() {
    if (std::fflush(file_) != 0) fail("cannot write");
    std::fclose(std::exchange(file_, nullptr));
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Failure(ErrorCode::io, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
  }

  std::string path_;
  std::FILE* file_;
};

}  // namespace

int generate_text(const Options& options) {
  if (options.save_session) check_output(options, "--save-session", tessera::tool::path_of(*options.save_session));
  const std::uint64_t seed = options.seed ? *options.seed : fresh_seed();
  Sampler sampler = make_sampler(options, seed);  // reports wrong options before the model is read
  const std::optional<tessera::Grammar> constraint = read_constraint(options);
  const std::string prompt = read_prompt(options);

  const Interrupt interrupt;
  const Engine engine = load_engine(options, interrupt.token());
  if (constraint) sampler = make_sampler(options, seed, make_matcher(*constraint, engine.tokenizer()));
  tessera::SpeculateOptions speculate = speculation(options, engine, interrupt.token());
  Session session = open_session(options, engine, load_adapters(options, engine, interrupt.token()));
  const bool begins = session.tokens().empty();
  const std::vector<Token> tokens = begins ? prompt_tokens(options, engine.tokenizer(), prompt)
                                           : appended_tokens(options, engine.tokenizer(), prompt);
  if (begins) tell_of_chat(options, engine);
  read_in(session, tokens, interrupt.token());
  tell_of_waiting(session);

  const std::string given = options.prompt_ids ? text_of(engine.tokenizer(), tokens) : prompt;
  if (options.several.asked()) {
    const PromptRead read{.session = session, .text = given, .tokens = tokens};
    const auto generate = generate_options(options, session, std::move(speculate), interrupt.token());
    if (options.several.beams) write_beams(options, read, generate);
    else write_samples(options, read, sampler, generate, draws(options) ? std::optional(seed) : std::nullopt);
    return 0;
  }
  const std::unique_ptr<Output> output = make_output(options, engine.tokenizer());
  output->begin(given, tokens);
  Outcome outcome{.finish = tessera::FinishReason::max_tokens, .figures = {.prompt_tokens = tokens.size()}};
  // The library takes 0 for "no limit".
  if (options.max_tokens != 0) {
    outcome = run(session, sampler, generate_options(options, session, std::move(speculate), interrupt.token()), *output);
  }
  if (draws(options)) outcome.seed = seed;
  outcome.adapters = value(session.adapters());
  output->end(outcome);
  save_session(options, session);
  if (!outcome.error) return 0;
  if (outcome.error->code() == ErrorCode::cancelled) return kInterrupted;
  throw Failure(*outcome.error);
}

int write_logits(const Options& options) {
  check_output(options, "--logits", options.logits_file);
  const std::string prompt = read_prompt(options);
  const Interrupt interrupt;
  const Engine engine = load_engine(options, interrupt.token());
  const std::vector<Token> tokens = prompt_tokens(options, engine.tokenizer(), prompt);
  tessera::SessionOptions how;
  how.adapters = load_adapters(options, engine, interrupt.token());
  Session session = value(engine.session(how));
  if (tokens.size() > session.context()) {
    throw Failure(ErrorCode::cache_full, fmt::format("the prompt has {} tokens; the context has room for {}",
                                                     tokens.size(), session.context()));
  }
  LogitsFile file(options.logits_file);
  // The prompt is computed in chunks whose logits take 16 MB, so that it may have any length. Chunking changes no bits.
  constexpr std::size_t kChunkFloats = 4u << 20;
  const std::size_t chunk = std::max<std::size_t>(kChunkFloats / engine.spec().vocab_size, 1);
  ProgressBar bar("computing logits", ProgressBar::Unit::tokens);
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const auto part = std::span(tokens).subspan(at, std::min(chunk, tokens.size() - at));
    file.write(value(session.append(part, {.logits = LogitsOf::all, .stop = interrupt.token()})).values);
    bar.update(at + part.size(), tokens.size());
  }
  file.finish();
  return 0;
}
