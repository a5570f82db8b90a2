// Beam search against transformers' (tests/golden/make_beam_goldens.py), its pages, and what it leaves behind.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <tessera/decoding/beam_search.hpp>

#include "engine/kv_twins.hpp"

namespace test_beam_search {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Found {
  double score;
  std::vector<Token> tokens;
};

struct Search {
  std::string model;
  BeamOptions options;
  std::vector<Token> prompt;
  std::vector<Found> found;
};

std::vector<Search> golden_searches() {
  std::ifstream in(golden_dir() / "beams.txt");
  std::vector<Search> searches;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    const auto tokens = [&] {
      std::vector<Token> list;
      for (Token token = 0; words >> token;) list.push_back(token);
      return list;
    };
    if (what == "search") {
      Search& search = searches.emplace_back();
      std::string early;
      BeamOptions& o = search.options;
      words >> search.model >> o.beams >> o.results >> o.max_tokens >> o.length_penalty >> early;
      o.early_stopping = early == "likely" ? EarlyStopping::likely : early == "first" ? EarlyStopping::first : EarlyStopping::never;
      o.end_of_generation = EndOfGeneration::ignore;
    } else if (what == "prompt") {
      searches.back().prompt = tokens();
    } else if (what == "ends") {
      searches.back().options.stop_tokens = tokens();
    } else if (what == "beam") {
      double score = 0.0;
      words >> score;
      searches.back().found.push_back({score, tokens()});
    }
  }
  return searches;
}

// Pages that sequences of these tokens need, where those that begin alike share all that they have in common: a page
// that one fills alone from some token on is a page of its own.
std::size_t pages_of(const std::vector<std::vector<Token>>& computed, std::size_t page_tokens) {
  std::set<std::vector<Token>> pages;
  for (const auto& tokens : computed) {
    for (std::size_t end = page_tokens; end < tokens.size() + page_tokens; end += page_tokens) {
      pages.emplace(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(end, tokens.size())));
    }
  }
  return pages.size();
}

}  // namespace

TEST_CASE("beams are those of transformers", "[beams]") {
  const auto searches = golden_searches();
  REQUIRE(searches.size() >= 80);
  std::set<std::string> models;
  std::map<EarlyStopping, int> kinds;
  int ended = 0, early = 0;
  for (const Search& search : searches) {
    INFO(search.model << ", " << search.options.beams << " beams, penalty " << search.options.length_penalty);
    models.insert(search.model);
    ++kinds[search.options.early_stopping];
    const Engine engine = load_golden(search.model);
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(search.prompt));
    const Snapshot before(session);
    BeamSearch steps = must(BeamSearch::start(session, search.options));
    std::size_t n = 1;
    while (must(steps.step())) ++n;
    early += n < search.options.max_tokens ? 1 : 0;
    const auto beams = must(steps.results());
    REQUIRE(beams.size() == search.found.size());
    for (std::size_t i = 0; i < beams.size(); ++i) {
      CHECK(beams[i].tokens == search.found[i].tokens);
      CHECK(std::abs(beams[i].score - search.found[i].score) <= 1e-4 * std::max(1.0, std::abs(search.found[i].score)));
      const double length = static_cast<double>(beams[i].tokens.size());
      CHECK(beams[i].score == Approx(beams[i].logprob / std::pow(length, search.options.length_penalty)));
      const auto& ends = search.options.stop_tokens;
      const bool is_end = std::ranges::find(ends, beams[i].tokens.back()) != ends.end();
      CHECK(beams[i].finish == (is_end ? FinishReason::stop_token : FinishReason::max_tokens));
      ended += is_end ? 1 : 0;
    }
    CHECK(Snapshot(session) == before);
  }
  CHECK(models.size() >= 45);
  CHECK(kinds.size() == 3);
  CHECK(ended > 50);  // else the goldens say nothing about ends
  CHECK(early > 10);
}

TEST_CASE("one beam is the greedy text, its log-probability what score() says", "[beams]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(make_tokens(2, 9, engine.spec().vocab_size)));
  const auto beams = must(beam_search(session, {.beams = 1, .max_tokens = 20, .length_penalty = 0.0f, .end_of_generation = EndOfGeneration::ignore}));
  REQUIRE(beams.size() == 1);
  Session greedy = must(session.fork());
  Sampler sampler = sampling::chain().greedy().build();
  std::vector<Token> tokens;
  std::string text;
  for (const auto& piece : greedy.generate(sampler, {.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore})) {
    tokens.push_back(must(Result<Piece>(piece)).token);
    text += piece->text;
  }
  CHECK(beams[0].tokens == tokens);
  CHECK(beams[0].text == text);
  // Of every beam: scored by a session that has never heard of beams.
  for (const Beam& beam : must(beam_search(session, {.beams = 5, .max_tokens = 20, .stop_tokens = {3, 40}}))) {
    Session scoring = must(session.clone());
    double sum = 0.0;
    for (const float logprob : must(scoring.score(beam.tokens))) sum += static_cast<double>(logprob);
    CHECK(beam.logprob == Approx(sum).margin(1e-5));
  }
}

TEST_CASE("beams share the pages of what they have in common, and are what lone sessions are", "[beams]") {
  for (const std::string& model : {std::string("llama-gqa"), std::string("gemma3")}) {  // gemma3: two groups of layers
    const Engine engine = load_golden(model, {.kv_budget = std::uint64_t{64} << 20});
    const auto prompt = make_tokens(8, model == "gemma3" ? 12 : 21, engine.spec().vocab_size);
    Session session = must(engine.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
    must(session.append(prompt));
    const std::uint64_t page = engine.kv_figures().used_bytes / ((prompt.size() + 15) / 16);  // of all groups
    const std::uint64_t shared = engine.kv_figures().used_bytes;
    BeamSearch search = must(BeamSearch::start(session, {.beams = 6, .max_tokens = 40, .end_of_generation = EndOfGeneration::ignore}));
    for (std::size_t step = 0; must(search.step()); ++step) {
      std::vector<std::vector<Token>> computed{prompt};
      std::uint64_t filled = 0;  // whole pages behind the prompt's, of all beams
      for (const Session* beam : search.running()) {
        const auto tokens = beam->tokens();
        REQUIRE(tokens.size() == beam->position() + 1);
        computed.emplace_back(tokens.begin(), tokens.end() - 1);
      }
      for (auto& tokens : computed) filled = std::max<std::uint64_t>(filled, tokens.size() / 16 - prompt.size() / 16);
      INFO(model << ", step " << step);
      if (model == "llama-gqa") CHECK(engine.kv_figures().used_bytes == pages_of(computed, 16) * page);
      // A page a beam and group beside what is shared; one that has filled pages alone has those too.
      CHECK(engine.kv_figures().used_bytes <= shared + 6 * (1 + filled) * page);
      if (step % 7 != 3) continue;
      for (const Session* beam : search.running()) CHECK(must(beam->verify()).verdict == Verdict::same);
    }
    CHECK(search.running().empty());
    CHECK(engine.kv_figures().used_bytes == shared);
  }
}

TEST_CASE("a search that fails leaves its session as it was", "[beams]") {
  const Engine roomy = load_golden("llama-gqa");
  Session probe = must(roomy.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  const auto prompt = make_tokens(1, 20, roomy.spec().vocab_size);
  must(probe.append(prompt));
  const std::uint64_t page = probe.kv().layout().page_bytes();
  const Engine tight = load_golden("llama-gqa", {.kv_budget = 5 * page});
  Session session = must(tight.session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
  must(session.append(prompt));
  const Snapshot before(session);
  {
    BeamSearch search = must(BeamSearch::start(session, {.beams = 6, .max_tokens = 30, .end_of_generation = EndOfGeneration::ignore}));
    auto more = search.step();
    while (more && *more) more = search.step();
    REQUIRE(!more);
    CHECK(more.error().code() == ErrorCode::cache_full);
    CHECK(search.running().empty());
    CHECK(!must(search.step()));  // it has ended
    CHECK(Snapshot(session) == before);
  }
  CHECK(tight.kv_figures().used_bytes == 2 * page);
  // Two beams have room: of a search that is given up nothing is left.
  std::stop_source stop;
  {
    BeamSearch search = must(BeamSearch::start(session, {.beams = 2, .max_tokens = 30, .end_of_generation = EndOfGeneration::ignore, .stop = stop.get_token()}));
    for (int i = 0; i < 5; ++i) REQUIRE(must(search.step()));
    stop.request_stop();
    CHECK(search.step().error().code() == ErrorCode::cancelled);
    CHECK(Snapshot(session) == before);
  }
  CHECK(tight.kv_figures().used_bytes == 2 * page);
  must(session.append(make_tokens(2, 5, tight.spec().vocab_size)));
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("a search begins wherever a session is, and goes to the end of its context", "[beams]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(5, 14, engine.spec().vocab_size);
  const BeamOptions options{.beams = 3, .max_tokens = 10, .end_of_generation = EndOfGeneration::ignore};
  Session known = must(engine.session());
  must(known.append(prompt));
  const auto expected = must(beam_search(known, options));
  Session pending = must(engine.session());
  must(pending.append(std::span(prompt).first(13)));
  must(pending.add_pending(prompt[13]));
  Session cut = must(engine.session());
  must(cut.append(prompt));
  must(cut.append(make_tokens(6, 4, 90)));
  must(cut.truncate(14));
  for (const Session* session : {&pending, &cut}) {
    const Snapshot before(*session);
    const auto beams = must(beam_search(*session, options));
    CHECK(Snapshot(*session) == before);
    REQUIRE(beams.size() == expected.size());
    for (std::size_t i = 0; i < beams.size(); ++i) {
      CHECK(beams[i].tokens == expected[i].tokens);
      CHECK(beams[i].score == expected[i].score);
    }
  }
  Session small = must(engine.session({.context = 20}));
  must(small.append(prompt));
  for (const Beam& beam : must(beam_search(small, {.beams = 2, .end_of_generation = EndOfGeneration::ignore}))) {
    CHECK(beam.tokens.size() == 7);  // the last one is not computed
  }
  CHECK(beam_search(small, {.max_tokens = 8}).error().code() == ErrorCode::cache_full);
  CHECK(beam_search(small, {.beams = 0}).error().code() == ErrorCode::invalid_argument);
  CHECK(beam_search(small, {.beams = 2, .results = 3}).error().code() == ErrorCode::invalid_argument);
  CHECK(beam_search(small, {.length_penalty = std::numeric_limits<float>::infinity()}).error().code() == ErrorCode::invalid_argument);
  CHECK(beam_search(small, {.early_stopping = static_cast<EarlyStopping>(5)}).error().code() == ErrorCode::invalid_argument);
  CHECK(beam_search(must(engine.session())).error().code() == ErrorCode::invalid_state);
  CHECK(beam_search(must(engine.session({.kv = {.kind = KvKind::contiguous}}))).error().code() == ErrorCode::unsupported);
}

}  // namespace test_beam_search
