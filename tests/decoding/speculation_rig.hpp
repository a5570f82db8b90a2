// Requests of every kind, drafters of every kind (liars too), and what a user can tell of a generation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/decoding/drafters.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "engine/kv_twins.hpp"

namespace tessera::test {

struct Told {
  std::vector<Token> tokens;
  std::string text;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::none;
  std::string error;
  bool operator==(const Told& other) const {
    return tokens == other.tokens && text == other.text && same_bits(logprobs, other.logprobs) && finish == other.finish &&
           error == other.error;
  }
  void add(const Piece& piece) {
    tokens.push_back(piece.token);
    text += piece.text;
    logprobs.push_back(piece.logprob);
    for (const TokenLogprob& top : piece.top) {
      logprobs.push_back(static_cast<float>(top.token));
      logprobs.push_back(top.logprob);
    }
    finish = piece.finish;
  }
};

// A drafter made of a function: (history, out) -> how many.
using Propose = std::function<std::size_t(const DraftContext&, std::span<Token>)>;
class Says final : public Drafter {
 public:
  explicit Says(Propose propose) : propose_(std::move(propose)) {}
  Result<std::unique_ptr<Drafter>> start(const Engine&) const override {
    return std::unique_ptr<Drafter>(std::make_unique<Says>(propose_));
  }
  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override { return propose_(context, out); }

 private:
  Propose propose_;
};
inline std::shared_ptr<const Drafter> says(Propose propose) { return std::make_shared<Says>(std::move(propose)); }

// Random tokens, some of them none.
inline std::shared_ptr<const Drafter> liar(std::uint32_t vocab) {
  return says([vocab, turn = std::uint64_t{0}](const DraftContext&, std::span<Token> out) mutable {
    const auto tokens = make_tokens(++turn, out.size(), vocab + 3);
    std::ranges::copy(tokens, out.begin());
    return turn % 5 == 0 ? out.size() + 7 : out.size();  // more than there is room for
  });
}

// Knows what will come, and lies at every `lie`-th place; 0: never.
inline std::shared_ptr<const Drafter> oracle(std::vector<Token> sequence, std::size_t lie) {
  return says([sequence = std::move(sequence), lie](const DraftContext& context, std::span<Token> out) {
    std::size_t n = 0;
    for (std::size_t at = context.history.size(); n < out.size() && at < sequence.size(); ++at, ++n) {
      out[n] = lie != 0 && at % lie == 0 ? (sequence[at] + 1) % 50 : sequence[at];
    }
    return n;
  });
}

// The same with trees; where there may be none it says nothing.
using Grow = std::function<std::size_t(const DraftContext&, std::span<TreeDraft>)>;
class Grows final : public Drafter {
 public:
  explicit Grows(Grow grow) : grow_(std::move(grow)) {}
  Result<std::unique_ptr<Drafter>> start(const Engine&) const override { return std::unique_ptr<Drafter>(std::make_unique<Grows>(grow_)); }
  Result<std::size_t> propose(const DraftContext&, std::span<Token>) override { return std::size_t{0}; }
  Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) override { return grow_(context, out); }

 private:
  Grow grow_;
};
inline std::shared_ptr<const Drafter> grows(Grow grow) { return std::make_shared<Grows>(std::move(grow)); }

// Random trees, some of them none at all, that know what will come and have it in one of their branches. Of no sequence: they lie.
inline std::shared_ptr<const Drafter> bush(std::uint32_t vocab, std::vector<Token> sequence = {}) {
  return grows([vocab, sequence = std::move(sequence), turn = std::uint64_t{0}](const DraftContext& context, std::span<TreeDraft> out) mutable {
    const auto random = make_tokens(++turn, 3 * out.size(), 1 << 20);
    std::size_t right = kNoDraft, at = context.history.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto how = static_cast<std::size_t>(random[3 * i]), what = static_cast<std::size_t>(random[3 * i + 1]), where = static_cast<std::size_t>(random[3 * i + 2]);
      if (how % 3 == 0 && i > 0 && at < sequence.size()) {
        out[i] = {.token = sequence[at++], .parent = right};
        right = i;
        continue;
      }
      out[i].token = static_cast<Token>(what % (vocab + (how % 17 == 1 ? 3 : 0)));
      out[i].parent = i == 0 || where % 4 == 0 ? kNoDraft : where % 4 == 1 ? right : where % 4 == 2 ? i - 1 : where / 4 % i;
      if (how % 19 == 1) out[i].parent = i + where % 3;  // no draft before it
    }
    return turn % 5 == 0 ? out.size() + 7 : out.size();
  });
}

struct RequestKind {
  std::string name;
  std::function<Sampler(const Engine&)> sampler;
  GenerateOptions options = {.max_tokens = 24, .end_of_generation = EndOfGeneration::ignore};
};

// A grammar over the model's own numbers of tokens, whose texts are letters.
inline sampling::GrammarStage letters(const Engine& engine) {
  std::vector<std::string> tokens(engine.spec().vocab_size);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::string(1, static_cast<char>('a' + i % 26));
  const Token end = static_cast<Token>(tokens.size() - 1);
  tokens.back().clear();
  const auto vocabulary = must(GrammarVocabulary::create(tokens, {&end, 1}));
  const auto grammar = must(Grammar::regex("(ab|ba|c[d-m]{1,3}n?)*z{2}[a-f]*"));
  return {must(Matcher::create(must(CompiledGrammar::create(grammar, vocabulary))))};
}

inline std::vector<RequestKind> request_kinds() {
  using sampling::chain;
  std::vector<RequestKind> kinds{
      {"greedy", [](const Engine&) { return chain().greedy().build(); }},
      {"temperature", [](const Engine&) { return chain().temperature(1.1f).seed(5).build(); }},
      {"top-p", [](const Engine&) { return chain().temperature(0.7f).top_k(20).top_p(0.9f).seed(6).build(); }},
      {"penalties", [](const Engine&) { return chain().penalties({.repetition = 1.3f, .frequency = 0.2f}).temperature(0.8f).seed(7).build(); }},
      {"DRY", [](const Engine&) { return chain().dry({.multiplier = 0.8f}).temperature(0.8f).seed(8).build(); }},
      {"mirostat", [](const Engine&) { return chain().mirostat({.tau = 3.0f}).seed(9).build(); }},
      {"a user's stage", [](const Engine&) {
         return chain().stage([](sampling::Candidates& candidates, const sampling::Context& context) {
           const std::size_t parity = (context.history.size() + static_cast<std::size_t>(context.uniform() * 7)) % 2;
           candidates.remove_if([&](const sampling::Candidate& c) { return static_cast<std::size_t>(c.token) % 2 == parity; });
         }).temperature(1.0f).seed(10).build();
       }},
      {"a grammar", [](const Engine& engine) { return chain().stage(letters(engine)).temperature(1.3f).seed(11).build(); }},
  };
  RequestKind logprobs{"log-probabilities", kinds[2].sampler, kinds[2].options};
  logprobs.options.logprobs = 3;
  kinds.push_back(logprobs);
  return kinds;
}

// What a request gives by generate(), its figures, and the session that it leaves.
struct Outcome {
  Told told;
  Figures figures;
  std::vector<Token> sequence;
  std::optional<Snapshot> session;
};

inline Outcome generated(const Engine& engine, const RequestKind& kind, std::span<const Token> prompt, const SpeculateOptions& speculate,
                  const SessionOptions& options = {}, std::size_t leave_after = ~std::size_t{0}) {
  Session session = must(engine.session(options));
  must(session.append(prompt));
  Sampler sampler = kind.sampler(engine);
  GenerateOptions how = kind.options;
  how.speculate = speculate;
  Outcome outcome;
  {
    Generation generation = session.generate(sampler, how);
    while (outcome.told.tokens.size() < leave_after) {
      const auto piece = generation.next();
      if (!piece) break;
      if (*piece) outcome.told.add(**piece);
      else outcome.told.error = piece->error().text();
    }
    outcome.figures = generation.figures();
    must(generation.drafting());
  }
  outcome.sequence.assign(session.tokens().begin(), session.tokens().end());
  outcome.session.emplace(session);
  return outcome;
}

}  // namespace tessera::test
