// Mistakes of callers: NULL, handles of another kind, NULL with a size, structs that are too small or too new,
// constants that there are not. Each is an error that says what is wrong, and nothing is touched.
#include <cstring>
#include <functional>

#include "capi/c_rig.hpp"

namespace test_c_misuse {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Use {
  const char* function;
  std::function<std::int32_t(void* handle, tessera_error** error)> call;
};

struct Rig {
  CEngine engine = c_engine(golden_dir() / "llama-gqa.gguf");
  CText text = made<CText>([&](auto out, auto error) { return tessera_engine_plan(engine.get(), out, error); });
  CSession session = c_session(engine);
  CSampler sampler = c_sampler(engine, nullptr);
  CConversation talk = made<CConversation>([&](auto out, auto error) {
    return tessera_conversation_create(engine.get(), nullptr, 0, nullptr, 0, out, error);
  });
  CScheduler scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(engine.get(), nullptr, out, error); });
};
Rig& rig() {
  static Rig one;
  return one;
}

// Places for results.
tessera_text* text_out;
tessera_tokens* tokens_out;
tessera_session* session_out;
const tessera_piece* piece_out;
const float* floats_out;
const std::int32_t* ints_out;
const char* chars_out;
std::size_t n_out, m_out;
std::int32_t int_out;
float float_out;
float row[1];

template <class T>
T* as(void* handle) noexcept {
  return static_cast<T*>(handle);
}
#define ON(kind) as<tessera_##kind>(h)
#define USE(function, ...)                                                                 \
  {                                                                                        \
#function, [](void* h, tessera_error** error) { return function(__VA_ARGS__, error); } \
  }

// Every function with a handle that it needs: each of these calls gets NULL and a tessera_text in its place.
std::vector<Use> uses() {
  static tessera_sampler* sampler_out;
  static tessera_grammar* grammar_out;
  static tessera_generation* generation_out;
  static tessera_conversation* conversation_out;
  static tessera_answer* answer_out;
  static tessera_scheduler* scheduler_out;
  static tessera_request* request_out;
  static tessera_outputs* outputs_out;
  static tessera_detokenizer* detokenizer_out;
  static tessera_adapter* adapter_out;
  static const std::size_t one = 1;
  static const std::int32_t token = 1;
  static tessera_session* sessions[1];
  return {
      USE(tessera_engine_plan, ON(engine), &text_out),
      USE(tessera_engine_explain, ON(engine), &text_out),
      USE(tessera_engine_metadata, ON(engine), &text_out),
      USE(tessera_engine_figures, ON(engine), &text_out),
      USE(tessera_encode, ON(engine), "a", 1, 0, 0, &tokens_out),
      USE(tessera_decode, ON(engine), nullptr, 0, 0, 0, &text_out),
      USE(tessera_token_bytes, ON(engine), 0, &chars_out, &n_out),
      USE(tessera_find_token, ON(engine), "a", 1, &int_out),
      USE(tessera_detokenizer_create, ON(engine), 0, 0, &detokenizer_out),
      USE(tessera_detokenizer_push, ON(detokenizer), 0, &chars_out, &n_out),
      USE(tessera_detokenizer_finish, ON(detokenizer), &chars_out, &n_out),
      USE(tessera_session_create, ON(engine), nullptr, 0, &session_out),
      USE(tessera_session_append, ON(session), nullptr, 0, nullptr),
      USE(tessera_session_logits, ON(session), &floats_out, &n_out, &m_out),
      USE(tessera_session_tokens, ON(session), &ints_out, &n_out),
      USE(tessera_session_info, ON(session), &text_out),
      USE(tessera_session_score, ON(session), &token, 1, row, nullptr),
      USE(tessera_session_add_pending, ON(session), 1),
      USE(tessera_session_truncate, ON(session), 0),
      USE(tessera_session_remove, ON(session), 0, 0),
      USE(tessera_session_keep_window, ON(session), 0, 0),
      USE(tessera_session_fork, ON(session), &session_out),
      USE(tessera_session_copy, ON(session), nullptr, 0, &session_out),
      USE(tessera_session_suspend, ON(session)),
      USE(tessera_session_resume, ON(session)),
      USE(tessera_session_verify, ON(session), nullptr, &text_out),
      USE(tessera_session_save, ON(session), "x", 1),
      USE(
          tessera_session_save_to, ON(session), [](void*, const void*, std::size_t) -> std::int32_t { return 0; },
          nullptr),
      USE(tessera_session_restore, ON(engine), "x", 1, nullptr, 0, &session_out),
      {"tessera_session_restore_from",
       [](void* h, tessera_error** error) {
         auto source = options_of<tessera_source>();
         source.read = [](void*, std::uint64_t, void*, std::size_t) -> std::int32_t { return 1; };
         return tessera_session_restore_from(ON(engine), &source, nullptr, 0, &session_out, error);
       }},
      USE(tessera_adapter_load, ON(engine), "x", 1, nullptr, &adapter_out),
      USE(tessera_adapter_invocation, ON(adapter), &ints_out, &n_out),
      USE(tessera_adapter_info, ON(adapter), &text_out),
      USE(tessera_session_use_adapters, ON(session), nullptr),
      USE(tessera_forward, ON(engine), nullptr, nullptr, 0, nullptr, 0, nullptr, &outputs_out),
      {"tessera_forward",
       [](void* h, tessera_error** error) {
         sessions[0] = ON(session);
         return tessera_forward(rig().engine.get(), sessions, &one, 1, &token, TESSERA_WANT_LOGITS, nullptr,
                                &outputs_out, error);
       }},
      USE(tessera_outputs_row, ON(outputs), 0, &floats_out, &n_out),
      USE(tessera_embed, ON(engine), &token, 1, nullptr, 0, row, 1),
      USE(tessera_embed_texts, ON(engine), nullptr, nullptr, 0, nullptr, 0, &outputs_out),
      USE(tessera_embed_texts, ON(engine), nullptr, &one, 1, nullptr, 0, &outputs_out),
      USE(tessera_rerank, ON(engine), "a", 1, nullptr, nullptr, 0, nullptr, 0, row),
      USE(tessera_grammar_create, ON(engine), TESSERA_GRAMMAR_JSON, nullptr, 0, nullptr, 0, &grammar_out),
      USE(tessera_grammar_check, ON(grammar), "a", 1, &int_out, &n_out, nullptr),
      USE(tessera_sampler_create, ON(engine), nullptr, &sampler_out),
      USE(tessera_sampler_clone, ON(sampler), &sampler_out),
      USE(tessera_sampler_begin, ON(sampler), nullptr, 0, 0),
      USE(tessera_sampler_sample, ON(sampler), row, 1, nullptr, 0, 0, &int_out),
      USE(tessera_sampler_accept, ON(sampler), 1),
      USE(tessera_sampler_rollback, ON(sampler), 0),
      USE(tessera_session_generate, ON(session), rig().sampler.get(), nullptr, &generation_out),
      USE(tessera_session_generate, rig().session.get(), ON(sampler), nullptr, &generation_out),
      USE(tessera_generation_next, ON(generation), &piece_out),
      USE(tessera_generation_figures, ON(generation), &text_out),
      USE(tessera_piece_top, ON(piece), 0, &int_out, &float_out),
      USE(tessera_render_chat, ON(engine), nullptr, 0, nullptr, 0, &tokens_out, &text_out),
      USE(tessera_conversation_create, ON(engine), nullptr, 0, nullptr, 0, &conversation_out),
      USE(tessera_conversation_add, ON(conversation), "{\"role\": \"user\"}", 16),
      USE(tessera_conversation_set, ON(conversation), nullptr, 0),
      USE(tessera_conversation_get, ON(conversation), &text_out),
      USE(tessera_conversation_prompt, ON(conversation), &tokens_out),
      USE(tessera_conversation_shorten, ON(conversation), nullptr, 0, &text_out),
      USE(tessera_conversation_use_adapters, ON(conversation), nullptr),
      USE(tessera_conversation_answer, ON(conversation), nullptr, nullptr, 0, nullptr, &answer_out),
      USE(tessera_answer_next, ON(answer), &piece_out),
      USE(tessera_answer_message, ON(answer), &text_out),
      USE(tessera_answer_figures, ON(answer), &text_out),
      USE(tessera_scheduler_create, ON(engine), nullptr, &scheduler_out),
      USE(tessera_scheduler_submit, ON(scheduler), &token, 1, nullptr, nullptr, &request_out),
      USE(tessera_scheduler_cancel, ON(scheduler), 0),
      USE(tessera_scheduler_figures, ON(scheduler), &text_out),
      USE(tessera_scheduler_start, ON(scheduler)),
      USE(tessera_scheduler_stop, ON(scheduler)),
      USE(tessera_scheduler_wait_until_idle, ON(scheduler)),
      USE(tessera_scheduler_step, ON(scheduler), &int_out),
      USE(tessera_request_next, ON(request), 0, &piece_out),
      USE(tessera_request_try_next, ON(request), &piece_out),
      USE(tessera_request_figures, ON(request), &text_out),
      USE(tessera_request_take_session, ON(request), 0, &session_out),
      USE(tessera_request_take_beams, ON(request), &text_out),
  };
}

// Functions without a code: they return nothing of a wrong handle.
template <class T>
void check_views(T* wrong) {
  const auto h = [&](auto* kind) { return reinterpret_cast<std::remove_pointer_t<decltype(kind)>*>(wrong); };
  const tessera_piece* piece = h(static_cast<tessera_piece*>(nullptr));
  const tessera_engine* engine = h(static_cast<tessera_engine*>(nullptr));
  const tessera_request* request = h(static_cast<tessera_request*>(nullptr));
  const tessera_session* session = h(static_cast<tessera_session*>(nullptr));
  const tessera_error* error = h(static_cast<tessera_error*>(nullptr));
  std::size_t size = 7;
  CHECK((tessera_error_code(error) == 0 && *tessera_error_text(error) == 0 && *tessera_error_message(error) == 0 &&
         *tessera_error_place(error) == 0));
  CHECK((tessera_engine_vocabulary_size(engine) == 0 && tessera_engine_embedding_size(engine) == 0 &&
         tessera_engine_context(engine) == 0));
  CHECK((tessera_token_flags(engine, 0) == 0 && tessera_bos_token(engine) == -1 && tessera_eos_token(engine) == -1));
  CHECK((tessera_session_position(session) == 0 && tessera_session_next_position(session) == 0));
  CHECK((tessera_piece_kind(piece) == 0 && tessera_piece_text(piece, &size) == nullptr && size == 0 &&
         tessera_piece_token(piece) == -1));
  CHECK((tessera_piece_finish_reason(piece) == 0 && tessera_piece_stop_string(piece) == -1 &&
         tessera_piece_sample(piece) == 0));
  CHECK(
      (tessera_piece_logprob(piece) == 0.0f && tessera_piece_top_count(piece) == 0 && tessera_piece_call(piece) == 0));
  CHECK((tessera_piece_call_name(piece) == nullptr && tessera_piece_call_id(piece) == nullptr &&
         tessera_piece_call_is_broken(piece) == 0));
  const tessera_adapter* adapter = h(static_cast<tessera_adapter*>(nullptr));
  CHECK((tessera_adapter_name(adapter) == nullptr && tessera_adapter_base_name(adapter) == nullptr &&
         tessera_adapter_bytes(adapter) == 0 && tessera_adapter_rank(adapter) == 0));
  CHECK(tessera_generation_finish_reason(h(static_cast<tessera_generation*>(nullptr))) == 0);
  CHECK(tessera_answer_finish_reason(h(static_cast<tessera_answer*>(nullptr))) == 0);
  CHECK((tessera_request_id(request) == 0 && tessera_request_state(request) == 0 &&
         tessera_request_finish_reason(request, 0) == 0));
  CHECK(tessera_scheduler_wake_time(h(static_cast<tessera_scheduler*>(nullptr))) > 1e300);
  tessera_engine_trim(h(static_cast<tessera_engine*>(nullptr)));
  tessera_stop_request(h(static_cast<tessera_stop*>(nullptr)));
  tessera_scheduler_drain(h(static_cast<tessera_scheduler*>(nullptr)));
  tessera_request_cancel(h(static_cast<tessera_request*>(nullptr)));
  tessera_request_pause(h(static_cast<tessera_request*>(nullptr)));
  tessera_request_resume(h(static_cast<tessera_request*>(nullptr)));
  // A wrong handle is not freed either.
  tessera_error_free(h(static_cast<tessera_error*>(nullptr)));
  tessera_tokens_free(h(static_cast<tessera_tokens*>(nullptr)));
  tessera_stop_free(h(static_cast<tessera_stop*>(nullptr)));
  tessera_engine_free(h(static_cast<tessera_engine*>(nullptr)));
  tessera_detokenizer_free(h(static_cast<tessera_detokenizer*>(nullptr)));
  tessera_session_free(h(static_cast<tessera_session*>(nullptr)));
  tessera_outputs_free(h(static_cast<tessera_outputs*>(nullptr)));
  tessera_grammar_free(h(static_cast<tessera_grammar*>(nullptr)));
  tessera_sampler_free(h(static_cast<tessera_sampler*>(nullptr)));
  tessera_generation_free(h(static_cast<tessera_generation*>(nullptr)));
  tessera_conversation_free(h(static_cast<tessera_conversation*>(nullptr)));
  tessera_answer_free(h(static_cast<tessera_answer*>(nullptr)));
  tessera_scheduler_free(h(static_cast<tessera_scheduler*>(nullptr)));
  tessera_request_free(h(static_cast<tessera_request*>(nullptr)));
  tessera_adapter_free(h(static_cast<tessera_adapter*>(nullptr)));
}

}  // namespace

TEST_CASE("NULL and a handle of another kind are errors that name the parameter and both kinds") {
  for (const Use& use : uses()) {
    INFO(use.function);
    const std::string null = failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return use.call(nullptr, error); });
    CHECK_THAT(null, Catch::Matchers::ContainsSubstring("NULL was passed") &&
                         Catch::Matchers::ContainsSubstring("a tessera_"));
    const std::string wrong =
        failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return use.call(rig().text.get(), error); });
    CHECK_THAT(wrong, Catch::Matchers::ContainsSubstring("this is a tessera_text"));
    CHECK(use.call(nullptr, nullptr) == TESSERA_INVALID_ARGUMENT);  // without a place for the error
  }
  CHECK((tessera_text_data(nullptr) == nullptr && tessera_text_size(nullptr) == 0));
  CHECK((tessera_tokens_data(nullptr) == nullptr && tessera_tokens_count(nullptr) == 0));
  tessera_text_free(nullptr);
  check_views<tessera_text>(nullptr);
  check_views(rig().text.get());
  CHECK(tessera_text_size(rig().text.get()) > 0);  // it still is what it was
}

TEST_CASE("handles inside of structs and lists are checked too") {
  auto* wrong = rig().text.get();
  const std::string path = (golden_dir() / "llama-gqa.gguf").string();
  auto engine = options_of<tessera_engine_options>();
  engine.stop = reinterpret_cast<tessera_stop*>(wrong);
  tessera_engine* loaded = nullptr;
  const auto says = Catch::Matchers::ContainsSubstring("this is a tessera_text");
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_engine_load(path.data(), path.size(), &engine, &loaded, e); }),
             says);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_plan(path.data(), path.size(), &engine, &text_out, e); }),
             says);
  auto append = options_of<tessera_append_options>();
  append.stop = reinterpret_cast<tessera_stop*>(wrong);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_session_append(rig().session.get(), nullptr, 0, &append, e); }),
             says);
  auto sampler = options_of<tessera_sampler_options>();
  sampler.grammar = reinterpret_cast<tessera_grammar*>(wrong);
  tessera_sampler* sampler_out = nullptr;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_sampler_create(rig().engine.get(), &sampler, &sampler_out, e); }),
             says);
  const tessera_adapter* const adapters[] = {reinterpret_cast<tessera_adapter*>(wrong)};
  auto list = options_of<tessera_adapter_list>();
  list.adapters = adapters;
  list.count = 1;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_session_use_adapters(rig().session.get(), &list, e); }),
             says && Catch::Matchers::ContainsSubstring("adapters.adapters[0]"));
  auto adapter = options_of<tessera_adapter_options>();
  adapter.stop = reinterpret_cast<tessera_stop*>(wrong);
  tessera_adapter* adapter_out = nullptr;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) { return tessera_adapter_load(rig().engine.get(), "x", 1, &adapter, &adapter_out, e); }),
             says);
  auto submit = options_of<tessera_submit_options>();
  submit.sampler = reinterpret_cast<tessera_sampler*>(wrong);
  tessera_request* request = nullptr;
  const Token token = 1;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) {
                       return tessera_scheduler_submit(rig().scheduler.get(), &token, 1, nullptr, &submit, &request, e);
                     }),
             says);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto e) {
                       return tessera_scheduler_submit(rig().scheduler.get(), &token, 1,
                                                       reinterpret_cast<tessera_session*>(wrong), nullptr, &request, e);
                     }),
             says);
}

TEST_CASE("no place for a result, and NULL with a size, are errors") {
  tessera_engine* e = rig().engine.get();
  const auto place = Catch::Matchers::ContainsSubstring("a place for the result");
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return tessera_engine_plan(e, nullptr, error); }),
             place);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_session_create(e, nullptr, 0, nullptr, error); }),
             place);
  CHECK_THAT(
      failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return tessera_encode(e, "a", 1, 0, 0, nullptr, error); }),
      place);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return tessera_stop_create(nullptr, error); }), place);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_scheduler_step(rig().scheduler.get(), nullptr, error); }),
             place);
  const auto size = Catch::Matchers::ContainsSubstring("NULL was passed with a size of 3");
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_encode(e, nullptr, 3, 0, 0, &tokens_out, error); }),
             size);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_decode(e, nullptr, 3, 0, 0, &text_out, error); }),
             size);
  CHECK_THAT(
      failure(TESSERA_INVALID_ARGUMENT,
              [&](auto error) { return tessera_session_append(rig().session.get(), nullptr, 3, nullptr, error); }),
      size);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_session_create(e, nullptr, 3, &session_out, error); }),
             size);
  tessera_engine* loaded = nullptr;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_engine_load(nullptr, 3, nullptr, &loaded, error); }),
             size);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_engine_load("", 0, nullptr, &loaded, error); }),
             Catch::Matchers::ContainsSubstring("a path is needed"));
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) {
                       return tessera_encode(e, "a", static_cast<std::size_t>(-1), 0, 0, &tokens_out, error);
                     }),
             Catch::Matchers::ContainsSubstring("a negative number"));
}

TEST_CASE("a constant that there is not is an error that gives the range") {
  tessera_engine* e = rig().engine.get();
  const auto range = Catch::Matchers::ContainsSubstring("0 to");
  for (const std::int32_t wrong : {-1, 3, 1000}) {
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                       [&](auto error) { return tessera_encode(e, "a", 1, wrong, 0, &tokens_out, error); }),
               range);
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                       [&](auto error) { return tessera_encode(e, "a", 1, 0, wrong, &tokens_out, error); }),
               range);
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                       [&](auto error) { return tessera_decode(e, nullptr, 0, wrong, 0, &text_out, error); }),
               range);
    tessera_grammar* grammar = nullptr;
    failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
      return tessera_grammar_create(e, wrong == 3 ? 4 : wrong, "a", 1, nullptr, 0, &grammar, error);
    });
    auto append = options_of<tessera_append_options>();
    append.logits = wrong;
    failure(TESSERA_INVALID_ARGUMENT,
            [&](auto error) { return tessera_session_append(rig().session.get(), nullptr, 0, &append, error); });
    tessera_outputs* outputs = nullptr;
    tessera_session* session = rig().session.get();
    const std::size_t one = 1;
    const Token token = 1;
    failure(TESSERA_INVALID_ARGUMENT,
            [&](auto error) { return tessera_forward(e, &session, &one, 1, &token, wrong, nullptr, &outputs, error); });
  }
  CHECK(std::string_view(tessera_code_name(-1)) == "?");
}

TEST_CASE(
    "a struct without a size, a smaller one, and a larger one with something set are errors; a larger one of zeros is "
    "not") {
  tessera_append_options options;
  const auto call = [&](void* with) {
    return [with](auto error) {
      return tessera_session_append(rig().session.get(), nullptr, 0, static_cast<tessera_append_options*>(with), error);
    };
  };
  std::memset(&options, 0, sizeof options);
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT, call(&options)),
             Catch::Matchers::ContainsSubstring("tessera_options_init()"));
  options.size = sizeof options - 1;
  failure(TESSERA_INVALID_ARGUMENT, call(&options));
  options.size = static_cast<std::size_t>(-1);
  failure(TESSERA_INVALID_ARGUMENT, call(&options));
  struct Newer {
    tessera_append_options known;
    void* new_option;
    std::uint64_t another;
  } newer;
  tessera_options_init(&newer, sizeof newer);
  CHECK(newer.known.size == sizeof newer);
  const CSession session = c_session(rig().engine);
  append(session, {1, 2});
  succeed([&](auto error) { return tessera_session_append(session.get(), nullptr, 0, &newer.known, error); });
  newer.another = 1;
  CHECK_THAT(failure(TESSERA_UNSUPPORTED, call(&newer)), Catch::Matchers::ContainsSubstring("use a newer library"));
  tessera_options_init(nullptr, 100);
  tessera_options_init(&newer, 3);
  CHECK(newer.another == 1);
}

TEST_CASE("after errors everything works on") {
  append(rig().session, {1, 2, 3});
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) {
                       const Token token = 1 << 20;
                       return tessera_session_append(rig().session.get(), &token, 1, nullptr, error);
                     }),
             Catch::Matchers::ContainsSubstring("vocabulary"));
  CHECK(tessera_session_position(rig().session.get()) == 3);
  failure(TESSERA_INVALID_STATE, [&](auto error) { return tessera_scheduler_stop(rig().scheduler.get(), error); });
  failure(TESSERA_INVALID_STATE,
          [&](auto error) { return tessera_scheduler_wait_until_idle(rig().scheduler.get(), error); });
  succeed([&](auto error) { return tessera_scheduler_start(rig().scheduler.get(), error); });
  failure(TESSERA_INVALID_STATE, [&](auto error) { return tessera_scheduler_start(rig().scheduler.get(), error); });
  succeed([&](auto error) { return tessera_scheduler_stop(rig().scheduler.get(), error); });
}

}  // namespace test_c_misuse
