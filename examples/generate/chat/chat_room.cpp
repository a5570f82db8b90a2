// Makes room for the next answer: drops or compacts the oldest turns of a conversation that fills its context.
#include <algorithm>

#include <fmt/format.h>

#include "chat/chat.hpp"
#include "chat/chat_output.hpp"
#include "failure.hpp"
#include "sampler.hpp"
#include "terminal_text.hpp"

namespace {

using Messages = std::vector<tessera::Message>;

bool begins_turn(const tessera::Message& message) { return message.role == "user"; }

// Removes the oldest turn, unless it is the only one. The system messages in front of the turn stay.
std::size_t drop_oldest_turn(Messages& list) {
  const auto oldest = std::find_if(list.begin(), list.end(), begins_turn);
  if (oldest == list.end()) return 0;
  const auto next = std::find_if(oldest + 1, list.end(), begins_turn);
  if (next == list.end()) return 0;
  const auto dropped = static_cast<std::size_t>(next - oldest);
  list.erase(oldest, next);
  return dropped;
}

}  // namespace

bool Chat::lacks_room() {
  const std::size_t context = conversation_.session().context();
  const std::size_t answer = std::min(options_.max_tokens.value_or(kLongestAnswer), context / 4);
  const auto prompt = conversation_.prompt();
  if (!prompt && prompt.error().code() != tessera::ErrorCode::cache_full) throw Failure(prompt.error());
  return !prompt || prompt->size() + answer > context;
}

void Chat::make_room() {
  if (options_.when_full == WhenFull::stop || !lacks_room()) return;
  if (options_.when_full == WhenFull::compact) {
    try {
      summarise({.keep_turns = 1});
    } catch (const Failure& failure) {
      if (failure.code == tessera::ErrorCode::cancelled) throw;
      fmt::print(stderr, "[no summary: {}]\n", tessera::tool::shown(failure.what()));
    }
  }
  std::size_t dropped = 0;
  while (lacks_room()) {
    const std::size_t gone = drop_oldest_turn(messages());
    if (gone == 0) break;  // only the last turn is left: answer() reports it if it does not fit
    dropped += gone;
  }
  if (dropped > 0) {
    fmt::print(stderr, "[the context is full: the oldest {} messages are left out{}]\n", dropped,
               options_.when_full == WhenFull::drop ? "; /set full compact puts a summary in their place" : "");
  }
}
