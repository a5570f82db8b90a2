// tessera_conversation and tessera_answer: a program puts messages in, and reads answers piece by piece.
#include "text/chat.hpp"

#include <optional>
#include <string>

#include "scheduler.hpp"
#include "values/describe.hpp"
#include "values/piece.hpp"
#include "values/values.hpp"

struct tessera_answer : tessera::c::Tagged<tessera::c::Kind::answer> {
  explicit tessera_answer(tessera::c::ConversationStatePtr of) noexcept : state(std::move(of)) {}
  tessera::c::ConversationStatePtr state;
  tessera::Sampler sampler;  // used by an answer without a scheduler
  tessera::Answer answer;    // destroyed before its sampler
  tessera_piece piece;

  ~tessera_answer() { end(); }
  void end() noexcept {
    if (state->answering == this) state->answering = nullptr;
  }
};

namespace tessera::c {

namespace {

Json describe(const Compaction& compaction) {
  Json json = Json::object();
  json.set("messages", whole(compaction.messages));
  json.set("tokens_before", whole(compaction.tokens_before));
  json.set("tokens_after", whole(compaction.tokens_after));
  json.set("kept", whole(compaction.kept));
  json.set("summary", compaction.summary);
  return json;
}

Message read_message(const char* json, std::size_t size) {
  return must(Message::from_json(parse_json(json, size, "message", HalfPairs::replace)));
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::ErrorCode;

int32_t tessera_render_chat(const tessera_engine* engine, const char* json, size_t json_size, const char* options,
                            size_t options_size, tessera_tokens** tokens, tessera_text** text, tessera_error** error) {
  return call(error, [&] {
    clear(tokens), clear(text);
    if (tokens == nullptr && text == nullptr)
      fail(ErrorCode::invalid_argument, "a place for the result is needed, and both are NULL", "tokens");
    const tessera::Engine& of = need(engine, "engine").state->engine;
    const auto how = read_conversation_options(of, options, options_size);
    const tessera::ChatRequest request = read_chat(json, json_size, "json");
    const tessera::ChatTemplate form = how.chat_template ? *how.chat_template : must(chat_template_of(of));
    const tessera::RenderedText rendered = must(form.render(request, how.render));
    std::unique_ptr<tessera_tokens> made;
    if (tokens != nullptr) made.reset(new_tokens(must(rendered.encode(of.tokenizer()))));
    if (text != nullptr) *text = new_text(rendered.text());
    if (tokens != nullptr) *tokens = made.release();
  });
}

int32_t tessera_conversation_create(const tessera_engine* engine, const char* json, size_t json_size,
                                    const char* options, size_t options_size, tessera_conversation** conversation,
                                    tessera_error** error) {
  return call(error, [&] {
    tessera_conversation*& made = out(conversation, "conversation");
    const EngineStatePtr& state = need(engine, "engine").state;
    auto how = read_conversation_options(state->engine, options, options_size);
    auto talk = must(tessera::Conversation::create(state->engine, read_chat(json, json_size, "json"), std::move(how)));
    made = new tessera_conversation(std::make_shared<ConversationState>(state, std::move(talk)));
  });
}

int32_t tessera_conversation_add(tessera_conversation* conversation, const char* message, size_t message_size,
                                 tessera_error** error) {
  return call(error, [&] {
    tessera::Conversation& talk = need(conversation, "conversation").state->change();
    talk.request().messages.push_back(read_message(message, message_size));
  });
}

int32_t tessera_conversation_set(tessera_conversation* conversation, const char* json, size_t json_size,
                                 tessera_error** error) {
  return call(error, [&] {
    tessera::Conversation& talk = need(conversation, "conversation").state->change();
    talk.request() = read_chat(json, json_size, "json");
  });
}

int32_t tessera_conversation_get(const tessera_conversation* conversation, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(need(conversation, "conversation").state->conversation.request().to_json().dump());
  });
}

int32_t tessera_conversation_prompt(const tessera_conversation* conversation, tessera_tokens** tokens,
                                    tessera_error** error) {
  return call(error, [&] {
    tessera_tokens*& made = out(tokens, "tokens");
    made = new_tokens(must(need(conversation, "conversation").state->conversation.prompt()));
  });
}

int32_t tessera_conversation_shorten(tessera_conversation* conversation, const char* json, size_t json_size,
                                     tessera_text** report, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(report, "report");
    ConversationState& state = *need(conversation, "conversation").state;
    ShortenAsked asked = read_shorten(*state.engine, json, json_size);
    auto place = std::make_unique<tessera_text>(std::string());
    const tessera::Compaction done =
        must(asked.summarise ? state.conversation.summarise_old(asked.sampler, asked.options)
                             : state.conversation.drop_old(asked.options));
    place->text = describe(done).dump();
    made = place.release();
  });
}

int32_t tessera_conversation_answer(tessera_conversation* conversation, tessera_scheduler* scheduler, const char* json,
                                    size_t json_size, const tessera_stop* stop, tessera_answer** answer,
                                    tessera_error** error) {
  return call(error, [&] {
    tessera_answer*& made = out(answer, "answer");
    const ConversationStatePtr& state = need(conversation, "conversation").state;
    tessera_scheduler* with = need_or_null(scheduler, "scheduler");
    AnswerAsked asked = read_answer(*state, json, json_size, with != nullptr);
    auto handle = std::make_unique<tessera_answer>(state);
    if (with != nullptr) {
      asked.request.generate.stop = token_of(stop);
      handle->answer = must(state->conversation.answer(with->scheduler, std::move(asked.request)));
    } else {
      asked.options.stop = token_of(stop);
      handle->sampler = std::move(asked.sampler);
      handle->answer = must(state->conversation.answer(handle->sampler, asked.options));
    }
    state->answering = handle.get();
    made = handle.release();
  });
}

void tessera_conversation_free(tessera_conversation* conversation) { free_handle(conversation); }

int32_t tessera_answer_next(tessera_answer* answer, const tessera_piece** piece, tessera_error** error) {
  return call(error, [&] {
    const tessera_piece*& next = out(piece, "piece");
    tessera_answer& of = need(answer, "answer");
    auto delta = of.answer.next();
    if (delta) {
      next = of.piece.set(*std::move(delta));
    } else {
      of.end();
      must(of.answer.status());
    }
  });
}

int32_t tessera_answer_finish_reason(const tessera_answer* answer) {
  return is_a(answer) != nullptr ? static_cast<int32_t>(answer->answer.finish_reason()) : 0;
}

int32_t tessera_answer_message(const tessera_answer* answer, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(must(need(answer, "answer").answer.message()).to_json().dump());
  });
}

int32_t tessera_answer_figures(const tessera_answer* answer, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    const tessera_answer& of = need(answer, "answer");
    tessera::Json described = describe(of.answer.figures());
    described.set("prompt", whole(of.answer.prompt().tokens));
    described.set("prompt_kept", whole(of.answer.prompt().kept));
    made = new_text(described.dump());
  });
}

void tessera_answer_free(tessera_answer* answer) { free_handle(answer); }
