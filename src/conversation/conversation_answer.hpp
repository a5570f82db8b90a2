// The state of an Answer while it is being written: the source of its pieces (a generation or a scheduler's request), and the parser that
// turns the pieces into text, reasoning and tool calls.
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

  // Set the source of the pieces, once. Until the answer ends, other calls on the conversation that read or answer return an error.
  void begin(Generation from) noexcept;
  void begin(RequestHandle from) noexcept;

  [[nodiscard]] Result<Message> message() const;
  // Takes the next piece from the source and parses it. If the source has no further piece, ends the answer.
  Status step();
  void fail();
  [[nodiscard]] Figures figures() const;

  std::shared_ptr<Conversation::State> conversation;
  ReadSummary prompt;
  std::size_t calls_before;
  OutputParser parser;
  // The source of the pieces: while the answer goes on, exactly one of the two has a value.
  std::optional<Generation> generation;
  std::optional<RequestHandle> request;
  std::deque<OutputDelta> deltas;  // parsed pieces that the caller has not yet received
  FinishReason reason = FinishReason::none;
  std::optional<Error> error;      // the error that ended the answer
  [[nodiscard]] bool goes_on() const noexcept { return generation || request; }

 private:
  std::optional<Result<Piece>> next_piece();
  Status take(const Piece& piece);
  Status parse(std::string_view text);
  void close();
  Status finish();
  void add(std::vector<OutputDelta> more);

  std::optional<std::size_t> open_call_;  // index of the call that has begun and not ended
  Figures figures_;  // the final figures, once the answer is over
};

}  // namespace tessera
