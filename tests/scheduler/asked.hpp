// Requests of every kind for tests in which allocations fail, what each of them gives alone, and what came of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/scheduler/scheduler.hpp>

#include "counted_new.hpp"
#include "decoding/speculation_rig.hpp"

namespace tessera::test {

struct Asked {
  std::string what;
  std::vector<Token> prompt = {};
  std::size_t given = 0;  // so many of its first tokens are those of a session that the request brings with it
  RequestKind kind = {};
  SpeculateOptions speculate = {};
  std::uint32_t samples = 1;
  std::uint32_t beams = 0;  // 0: it draws
  KvOptions kv = {};
  bool by_callback = false;  // its pieces come by on_piece
  std::function<std::vector<AdapterUse>(const Engine&)> adapters = {};  // its adapters in an engine; none: no adapter

  [[nodiscard]] SessionOptions session_options(const Engine& engine) const {
    return {.kv = kv, .adapters = adapters ? adapters(engine) : std::vector<AdapterUse>()};
  }
};

inline BeamOptions beam_options(const Asked& asked) {
  return {
      .beams = asked.beams, .max_tokens = asked.kind.options.max_tokens, .end_of_generation = EndOfGeneration::ignore};
}

// Of each sample, or of each beam.
inline Told told_of(const Beam& beam) {
  return {.tokens = beam.tokens,
          .text = beam.text,
          .logprobs = {static_cast<float>(beam.score)},
          .finish = beam.finish,
          .error = {}};
}

inline std::vector<Told> alone(const Engine& engine, const Asked& asked) {
  std::vector<Told> told;
  Session session = must(engine.session(asked.session_options(engine)));
  const std::span<const Token> prompt(asked.prompt);
  if (asked.given > 0) must(session.append(prompt.first(asked.given)));
  must(session.append(prompt.subspan(asked.given)));
  if (asked.beams != 0) {
    for (const Beam& beam : must(beam_search(session, beam_options(asked)))) told.push_back(told_of(beam));
    return told;
  }
  for (std::uint32_t sample = 0; sample < asked.samples; ++sample) {
    Session own = must(session.fork());
    Sampler sampler = asked.kind.sampler(engine);
    sampler.reseed(sampler.seed(), sampler.stream() + sample);
    Told& one = told.emplace_back();
    for (const auto& piece : own.generate(sampler, asked.kind.options)) {
      if (!piece) FAIL(asked.what << " alone: " << piece.error().text());
      one.add(*piece);
    }
  }
  return told;
}

// What came of a request.
struct Came {
  std::vector<Told> told = {};
  std::optional<Error> error = {};
  bool has_ended = false;

  void take(RequestHandle& handle) {
    const bool is_over = handle.state() == RequestState::ended;  // first: a driver may go on meanwhile
    while (auto piece = handle.try_next()) told[piece->sample].add(piece->piece);
    if (has_ended || !is_over) return;
    has_ended = true;
    if (const Status status = handle.status(); !status) error = status.error();
    const std::vector<Beam> beams = handle.take_beams();
    if (!beams.empty()) told.clear();
    for (const Beam& beam : beams) told.push_back(told_of(beam));
  }
};

// `into` gets the pieces of one that has them by callback, and stays where it is.
inline Request request_of(const Engine& engine, const Asked& asked, Came& into) {
  Request request{.prompt = {asked.prompt.begin() + static_cast<std::ptrdiff_t>(asked.given), asked.prompt.end()},
                  .session_options = asked.session_options(engine),
                  .samples = asked.samples,
                  .tenant = asked.what};
  if (asked.given > 0) {
    request.session = must(engine.session(asked.session_options(engine)));
    must(request.session->append(std::span(asked.prompt).first(asked.given)));
  }
  into.told.resize(asked.samples);
  if (asked.beams != 0) {
    request.beams = beam_options(asked);
    return request;
  }
  request.sampler = asked.kind.sampler(engine);
  request.generate = asked.kind.options;
  request.generate.speculate = asked.speculate;
  if (asked.by_callback) {
    request.on_piece = [&into](const RequestPiece& piece) {
      const counted::Pause pause;
      into.told[piece.sample].add(piece.piece);
    };
  }
  return request;
}

// All of what it gives alone, or with an error the beginning of that.
inline void check_came(const Asked& asked, const Came& came, const std::vector<Told>& expected) {
  INFO(asked.what);
  if (!came.error) {
    REQUIRE(came.told.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("sample or beam " << i << ": " << came.told[i].tokens.size() << " tokens of " << expected[i].tokens.size());
      CHECK(came.told[i] == expected[i]);
    }
    return;
  }
  if (asked.beams != 0) return;
  const auto begins = [](const auto& whole, const auto& part) {
    return part.size() <= whole.size() && std::ranges::equal(part, std::span(whole).first(part.size()));
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(begins(expected[i].tokens, came.told[i].tokens));
    CHECK(begins(expected[i].text, came.told[i].text));
    CHECK(begins(expected[i].logprobs, came.told[i].logprobs));
  }
}

}  // namespace tessera::test
