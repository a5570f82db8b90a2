// Shortens a conversation: drops its oldest turns, or replaces them by a summary.
#include <algorithm>
#include <utility>

#include <tessera/sampling/sampler.hpp>

#include "conversation/conversation.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

// The old turns, which a compaction may remove: messages [begin, end). They come after the system messages at the beginning, and before the
// last keep_turns turns, which stay.
struct Old {
  std::size_t begin = 0, end = 0;
};

Old old_turns(const std::vector<Message>& messages, std::size_t keep_turns) {
  Old old;
  while (old.begin < messages.size() && (messages[old.begin].role == "system" || messages[old.begin].role == "developer")) ++old.begin;
  old.end = messages.size();
  for (std::size_t turns = 0; turns < keep_turns && old.end > old.begin;) {
    --old.end;
    if (messages[old.end].role == "user") ++turns;
  }
  return old;
}

bool is_summary(const std::vector<Message>& messages, Old old, const std::string& question) {
  return old.end - old.begin == 2 && messages[old.begin].role == "user" && messages[old.begin].content == question;
}

// Remembers a request (messages, tools, arguments), and restores it in the destructor, so that an error changes nothing. After keep() the
// destructor leaves the request as it is.
class Restored {
 public:
  explicit Restored(ChatRequest& request) : request_(request), before_(request) {}
  ~Restored() {
    if (restores_) request_ = std::move(before_);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  [[nodiscard]] const ChatRequest& before() const noexcept { return before_; }
  void keep() noexcept { restores_ = false; }

 private:
  ChatRequest& request_;
  ChatRequest before_;
  bool restores_ = true;
};

void set_argument(ChatRequest& request, std::string_view name, Json value) {
  std::erase_if(request.arguments, [name](const auto& each) { return each.first == name; });
  request.arguments.emplace_back(name, std::move(value));
}

}  // namespace

// Replaces messages [begin, end) by the messages `with`, and computes the new prompt in the session. After an error the messages are
// unchanged.
Result<Compaction> Conversation::State::replace(std::size_t begin, std::size_t end, std::vector<Message> with,
                                                const CompactionOptions& options) {
  Restored restored(request);
  Compaction done{.messages = end - begin};
  TESSERA_TRY(const Prompt before, whole_prompt());
  done.tokens_before = before.tokens.size();
  auto& messages = request.messages;
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(begin), messages.begin() + static_cast<std::ptrdiff_t>(end));
  messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(begin), std::make_move_iterator(with.begin()),
                  std::make_move_iterator(with.end()));
  if (!messages.empty()) {
    TESSERA_TRY(const Prompt after, prompt());
    TESSERA_TRY(const ReadSummary summary, read(after.tokens, {.stop = options.stop, .progress = options.progress}));
    done.tokens_after = summary.tokens;
    done.kept = summary.kept;
  }
  restored.keep();
  return done;
}

Result<Compaction> Conversation::drop_old(const CompactionOptions& options) noexcept {
  return guard([&]() -> Result<Compaction> {
    if (state_ == nullptr) return empty_handle("Conversation");
    TESSERA_TRY_STATUS(state_->no_answer());
    const Old old = old_turns(state_->request.messages, options.keep_turns);
    if (old.begin == old.end) return Compaction{};
    return state_->replace(old.begin, old.end, {}, options);
  });
}

// Asks the model to summarise the messages before message `end`, and returns its answer. The request's own messages stay.
Result<std::string> Conversation::summary(std::size_t end, Sampler& sampler, const CompactionOptions& options) {
  ChatRequest& request = state_->request;
  const Restored restored(request);
  request.messages.resize(end);
  request.messages.push_back({.role = "user", .content = options.question});
  request.add_generation_prompt = true;
  set_argument(request, "enable_thinking", false);
  TESSERA_TRY(Answer answer, this->answer(sampler, {.max_tokens = options.max_tokens, .stop = options.stop, .progress = options.progress}));
  while (answer.next()) {}
  TESSERA_TRY_STATUS(answer.status());
  if (answer.finish_reason() == FinishReason::cancelled) {
    return make_error(ErrorCode::cancelled, "stopped before the summary was written; the conversation is as it was");
  }
  TESSERA_TRY(Message message, answer.message());
  if (message.content.find_first_not_of(" \t\r\n") == std::string::npos) {
    return make_error(ErrorCode::invalid_state, "the model wrote no summary in {} tokens; the conversation is as it was",
                      answer.figures().tokens);
  }
  return std::move(message.content);
}

Result<Compaction> Conversation::summarise_old(Sampler& sampler, const CompactionOptions& options) noexcept {
  return guard([&]() -> Result<Compaction> {
    if (state_ == nullptr) return empty_handle("Conversation");
    State& state = *state_;
    TESSERA_TRY_STATUS(state.no_answer());
    const Old old = old_turns(state.request.messages, options.keep_turns);
    if (old.begin == old.end || is_summary(state.request.messages, old, options.question)) return Compaction{};
    TESSERA_TRY_STATUS(state.own_session());
    std::optional<Session> before;
    if (state.session.kv().kind() == KvKind::paged && !state.session.suspended()) {
      TESSERA_TRY(before, state.session.fork());
    }
    Result<Compaction> done = [&]() -> Result<Compaction> {
      TESSERA_TRY(std::string text, summary(old.end, sampler, options));
      std::vector<Message> turn{{.role = "user", .content = options.question}, {.role = "assistant", .content = text}};
      TESSERA_TRY(Compaction compaction, state.replace(old.begin, old.end, std::move(turn), options));
      compaction.summary = std::move(text);
      return compaction;
    }();
    if (!done && before) state.session = *std::move(before);
    return done;
  });
}

}  // namespace tessera
