// An answer on its way: where its pieces come from, and what the parser makes of them.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/scheduler/request.hpp>

#include "conversation/conversation.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] Answer::State {
  State(std::shared_ptr<Conversation::State> conversation_, ReadSummary prompt_, OutputParser parser_);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // The source of the pieces; from then on the conversation is the answer's own.
  void begin(Generation from) noexcept;
  void begin(RequestHandle from) noexcept;

  [[nodiscard]] Result<Message> message() const;
  // The next token, or the end.
  Status step();
  void fail();
  [[nodiscard]] Figures figures() const;

  std::shared_ptr<Conversation::State> conversation;
  ReadSummary prompt;
  std::size_t calls_before;
  OutputParser parser;
  // One of the two; none: it is over.
  std::optional<Generation> generation;
  std::optional<RequestHandle> request;
  std::deque<OutputDelta> deltas;  // that are not delivered yet
  FinishReason reason = FinishReason::none;
  std::optional<Error> error;      // that has ended it
  [[nodiscard]] bool goes_on() const noexcept { return generation || request; }

 private:
  std::optional<Result<Piece>> next_piece();
  Status take(const Piece& piece);
  Status parse(std::string_view text);
  void close();
  Status finish();
  void add(std::vector<OutputDelta> more);

  Figures figures_;  // when it is over
};

}  // namespace tessera
