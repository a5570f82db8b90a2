// tessera_generation: the text that a session generates, piece by piece.
#include "generation.hpp"

#include <array>
#include <memory>
#include <string>

#include <tessera/decoding/drafters.hpp>

#include "sampler.hpp"
#include "session.hpp"
#include "values/describe.hpp"
#include "values/piece.hpp"
#include "values/structs.hpp"
#include "values/tables.hpp"
#include "values/values.hpp"

struct tessera_generation : tessera::c::Tagged<tessera::c::Kind::generation> {
  tessera_generation(tessera::c::SessionStatePtr of, tessera::c::SamplerStatePtr with) noexcept
      : session(std::move(of)), sampler(std::move(with)) {
    ++session->generations;
  }
  ~tessera_generation() {
    end();
    --session->generations;
  }
  // Reserves session and sampler for this generation. Error: invalid_state, another generation has the sampler.
  void begin() {
    for (const void* nobody = nullptr; !sampler->generation.compare_exchange_strong(nobody, this); nobody = nullptr)
      static_cast<void>(sampler->change());
    session->generation = this;
  }
  void end() noexcept {
    const void* me = this;
    sampler->generation.compare_exchange_strong(me, nullptr);
    me = this;
    session->generation.compare_exchange_strong(me, nullptr);
  }
  tessera::c::SessionStatePtr session;
  tessera::c::SamplerStatePtr sampler;
  tessera::Generation generation;  // destroyed before its session and sampler
  tessera_piece piece;
  tessera::Error error;  // the error that ended the generation; empty: it goes on, or ended without an error
};

namespace tessera::c {

namespace {

constexpr std::string_view kEnds[] = {"stop", "ignore"};
constexpr std::string_view kControl[] = {"omit", "show"};
constexpr std::string_view kLengths[] = {"by_goodput", "longest"};
constexpr std::string_view kDrafters[] = {"ngram", "suffix", "lookahead", "forced", "early_exit", "head"};

struct Speculation {
  std::size_t drafter = 0;
  bool has_drafter = false;
  NgramOptions ngram;
  SuffixOptions suffix;
  LookaheadOptions lookahead;
  std::uint32_t layers = 0;
  SpeculateOptions options;
};
constexpr Key<Speculation> kSpeculateKeys[] = {
    {"drafter", "text", "\"ngram\", \"suffix\", \"lookahead\", \"forced\", \"early_exit\", \"head\"",
     [](Speculation& to, const Value& v) { to.drafter = v.choice(kDrafters), to.has_drafter = true; }},
    {"max_drafts", "integer", "drafts in a step at most, 1 to 64; default 8",
     [](Speculation& to, const Value& v) { to.options.max_drafts = v.integer<std::uint32_t>(); }},
    {"length", "\"by_goodput\", \"longest\"",
     "\"by_goodput\": as many drafts as make drawing faster; \"longest\": always max_drafts; default \"by_goodput\"",
     [](Speculation& to, const Value& v) { to.options.length = v.one_of<DraftLength>(kLengths); }},
    {"branches", "integer", "chains of drafts in a step at most, 1 to 16; default 1",
     [](Speculation& to, const Value& v) { to.options.branches = v.integer<std::uint32_t>(); }},
    {"shortest", "integer",
     "ngram, suffix: how many of the last tokens must have occurred before, at least; 1 or more; default 2 (ngram), 1 "
     "(suffix)",
     [](Speculation& to, const Value& v) { to.ngram.shortest = to.suffix.shortest = v.integer<std::size_t>(); }},
    {"longest", "integer", "ngram: how many of the last tokens are looked for, at most; shortest to 64; default 8",
     [](Speculation& to, const Value& v) { to.ngram.longest = v.integer<std::size_t>(); }},
    {"least", "number", "suffix: drafts end where their probability falls below, 0 to 1; default 0.1",
     [](Speculation& to, const Value& v) { to.suffix.least = v.real(); }},
    {"ngram", "integer", "lookahead: tokens of an n-gram, 2 to 16; default 4",
     [](Speculation& to, const Value& v) { to.lookahead.ngram = v.integer<std::size_t>(); }},
    {"layers", "integer", "early_exit: how many of the first layers make the drafts",
     [](Speculation& to, const Value& v) { to.layers = v.integer<std::uint32_t>(); }},
};

constexpr std::string_view kExitRules[] = {"probability", "margin"};
constexpr Key<EarlyExitOptions> kEarlyExitKeys[] = {
    {"layers", "integer", "the exit is after this layer, 1 to the number of layers - 1; required",
     [](EarlyExitOptions& to, const Value& v) { to.layers = v.integer<std::uint32_t>(); }},
    {"rule", "\"probability\", \"margin\"",
     "what must reach `confidence`: the probability of the likeliest token, or its difference to that of the second likeliest; default "
     "\"probability\"",
     [](EarlyExitOptions& to, const Value& v) { to.rule = v.one_of<ExitRule>(kExitRules); }},
    {"confidence", "number", "smallest value of `rule` with which a token exits, more than 0, at most 1; default 0.9",
     [](EarlyExitOptions& to, const Value& v) { to.confidence = static_cast<float>(v.real()); }},
    {"most_in_row", "integer", "tokens that may exit one after another, 1 to 64; default 8",
     [](EarlyExitOptions& to, const Value& v) { to.most_in_row = v.integer<std::uint32_t>(); }},
};

constexpr Key<GenerateOptions> kGenerateKeys[] = {
    {"max_tokens", "integer", "tokens at most; default 0: no limit, and a full context is an error",
     [](GenerateOptions& to, const Value& v) { to.max_tokens = v.integer<std::size_t>(); }},
    {"stop", "text, list of texts", "the text ends before the first of these texts",
     [](GenerateOptions& to, const Value& v) { to.stop_strings = v.stop_texts(); }},
    {"stop_tokens", "list of tokens", "tokens that end the text",
     [](GenerateOptions& to, const Value& v) { to.stop_tokens = v.tokens(); }},
    {"end_of_generation", "\"stop\", \"ignore\"", "what the model's own end tokens do; default \"stop\"",
     [](GenerateOptions& to, const Value& v) { to.end_of_generation = v.one_of<EndOfGeneration>(kEnds); }},
    {"control_text", "\"omit\", \"show\"", "control tokens in the text; default \"omit\"",
     [](GenerateOptions& to, const Value& v) { to.control_text = v.one_of<ControlText>(kControl); }},
    {"logprobs", "integer", "likeliest tokens to report with each piece; default 0: none",
     [](GenerateOptions& to, const Value& v) { to.logprobs = v.integer<std::uint32_t>(); }},
    {"speculate", "object", "guesses the next tokens, to be faster; the text is the same: see Speculation",
     [](GenerateOptions& to, const Value& v) { read_speculate(v, to.speculate); }},
    {"early_exit", "object", "draws tokens after the first layers where these are certain; changes the tokens: see EarlyExit",
     [](GenerateOptions& to, const Value& v) { read_early_exit(v, to.early_exit); }},
};

std::shared_ptr<const Drafter> drafter_of(const Speculation& asked) {
  switch (asked.drafter) {
    case 0:
      return must(ngram_drafter(asked.ngram));
    case 1:
      return must(suffix_drafter(asked.suffix));
    case 2:
      return must(lookahead_drafter(asked.lookahead));
    case 3:
      return must(forced_drafter());
    case 4:
      return must(early_exit_drafter(asked.layers));
    default:
      return must(head_drafter());
  }
}

}  // namespace

void read_early_exit(const Value& value, EarlyExitOptions& to) {
  EarlyExitOptions asked;
  read_keys<EarlyExitOptions>(value, kEarlyExitKeys, asked);
  if (asked.layers == 0) value.refuse("needs \"layers\", 1 or more");
  to = asked;
}

void read_speculate(const Value& value, SpeculateOptions& to) {
  Speculation asked;
  read_keys<Speculation>(value, kSpeculateKeys, asked);
  if (!asked.has_drafter) value.refuse("needs a \"drafter\"");
  asked.options.drafter = drafter_of(asked);
  to = std::move(asked.options);
}

std::span<const Key<GenerateOptions>> generate_keys() { return kGenerateKeys; }

std::vector<Table> generate_tables() {
  return {table_of<GenerateOptions>("Generate", kGenerateKeys), table_of<Speculation>("Speculation", kSpeculateKeys)};
}

}  // namespace tessera::c

using namespace tessera::c;

int32_t tessera_session_generate(tessera_session* session, tessera_sampler* sampler,
                                 const tessera_generate_options* options, tessera_generation** generation,
                                 tessera_error** error) {
  return call(error, [&] {
    tessera_generation*& made = out(generation, "generation");
    const auto given = read_struct(options, "options");
    const SessionStatePtr& state = need(session, "session").state;
    const SamplerStatePtr& with = need(sampler, "sampler").state;
    tessera::GenerateOptions how;
    read_options<tessera::GenerateOptions>(given.json, given.json_size, "options.json", generate_keys(), how);
    how.stop = token_of(given.stop);
    state->engine->check_tokens(how.stop_tokens, "stop_tokens");
    tessera::Session& of = state->change();
    if (of.tokens().empty()) {
      fail(tessera::ErrorCode::invalid_state,
           "it is empty: append the tokens that the generation is to follow, by tessera_session_append()", "session");
    }
    auto handle = std::make_unique<tessera_generation>(state, with);
    handle->begin();
    handle->generation = of.generate(with->sampler, how);
    // A generation that could not begin has its error as its only result. The error is returned to the caller here.
    if (handle->generation.finish_reason() == tessera::FinishReason::error) {
      if (auto refused = handle->generation.next()) must(*std::move(refused));
    }
    made = handle.release();
  });
}

int32_t tessera_generation_next(tessera_generation* generation, const tessera_piece** piece, tessera_error** error) {
  return call(error, [&] {
    const tessera_piece*& next = out(piece, "piece");
    tessera_generation& of = need(generation, "generation");
    if (!of.error.empty()) fail(of.error);
    of.session->forget_rows();
    auto result = of.generation.next();
    if (!result || !*result || (*result)->finish != tessera::FinishReason::none) of.end();
    if (!result) return;
    if (!*result) of.error = result->error();
    next = of.piece.set(must(*std::move(result)));
  });
}

int32_t tessera_generation_finish_reason(const tessera_generation* generation) {
  return is_a(generation) != nullptr ? static_cast<int32_t>(generation->generation.finish_reason()) : 0;
}

int32_t tessera_generation_figures(const tessera_generation* generation, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(describe(need(generation, "generation").generation.figures()).dump());
  });
}

void tessera_generation_free(tessera_generation* generation) { free_handle(generation); }
