// An answer that goes on: the source of its pieces, and the parser that reads them.
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

  // Set the source of the pieces. From then on the answer has the conversation to itself.
  void begin(Generation from) noexcept;
  void begin(RequestHandle from) noexcept;

  [[nodiscard]] Result<Message> message() const;
  // Reads the next token, or the end.
  Status step();
  void fail();
  [[nodiscard]] Figures figures() const;

  std::shared_ptr<Conversation::State> conversation;
  ReadSummary prompt;
  std::size_t calls_before;
  OutputParser parser;
  // The source of the pieces: a generation or a request. Neither: the answer is over.
  std::optional<Generation> generation;
  std::optional<RequestHandle> request;
  std::deque<OutputDelta> deltas;  // pieces that are not delivered yet
  FinishReason reason = FinishReason::none;
  std::optional<Error> error;      // error that has ended the answer
  [[nodiscard]] bool goes_on() const noexcept { return generation || request; }

 private:
  std::optional<Result<Piece>> next_piece();
  Status take(const Piece& piece);
  Status parse(std::string_view text);
  void close();
  Status finish();
  void add(std::vector<OutputDelta> more);

  Figures figures_;  // figures when the answer is over
};

}  // namespace tessera
