// How texts end, and who has what until then: a reader's loop, a generation's session and sampler, errors that stay.
#include "capi/c_rig.hpp"

namespace test_c_ends {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const CEngine& engine() {
  static const CEngine one = c_engine(golden_dir() / "llama-gqa.gguf");
  return one;
}

CScheduler c_scheduler() {
  return made<CScheduler>(
      [](auto out, auto error) { return tessera_scheduler_create(engine().get(), nullptr, out, error); });
}

CRequest submit(const CScheduler& scheduler, const tessera_submit_options& options) {
  const Token prompt[] = {1, 2, 3};
  return made<CRequest>([&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), prompt, 3, nullptr, &options, out, error);
  });
}

void step_until_idle(const CScheduler& scheduler) {
  for (std::int32_t worked = 1; worked != 0;)
    succeed([&](auto error) { return tessera_scheduler_step(scheduler.get(), &worked, error); });
}

// The loop of docs/howto/c-event-loop.md. `between` runs between any two calls of it, as a thread that drives
// would. Returns the pieces that were read; false: the loop would wait for a call of on_ready that does not come.
struct Read {
  int pieces = 0;
  std::int32_t code = TESSERA_OK;
  bool waits_for_ever = false;
};
template <class Between>
Read read_as_the_page_does(tessera_request* request, int& wakes, Between&& between) {
  Read read;
  for (int ended = 0; !ended;) {
    between();
    ended = tessera_request_state(request) == TESSERA_REQUEST_ENDED;
    for (;;) {
      const tessera_piece* piece = nullptr;
      between();
      read.code = tessera_request_try_next(request, &piece, nullptr);
      if (read.code != TESSERA_OK) return read;
      if (piece == nullptr) break;
      ++read.pieces;
    }
    between();
    if (tessera_request_state(request) == TESSERA_REQUEST_ENDED) continue;
    between();
    read.waits_for_ever = wakes == 0;
    if (read.waits_for_ever) return read;
    --wakes;
  }
  return read;
}

CGeneration generate(const CSession& session, const CSampler& sampler, const char* json) {
  const auto options = options_of<tessera_generate_options>(json);
  return made<CGeneration>([&](auto out, auto error) {
    return tessera_session_generate(session.get(), sampler.get(), &options, out, error);
  });
}
std::string generate_failure(std::int32_t code, const CSession& session, const CSampler& sampler,
                             const char* json = nullptr) {
  const auto options = options_of<tessera_generate_options>(json);
  tessera_generation* generation = nullptr;
  return failure(code, [&](auto error) {
    return tessera_session_generate(session.get(), sampler.get(), &options, &generation, error);
  });
}
std::vector<Token> read_all(const CGeneration& generation) {
  std::vector<Token> tokens;
  for (const tessera_piece* piece = nullptr;;) {
    succeed([&](auto error) { return tessera_generation_next(generation.get(), &piece, error); });
    if (piece == nullptr) return tokens;
    tokens.push_back(tessera_piece_token(piece));
  }
}

}  // namespace

TEST_CASE("the page's loop reads every piece and the error, whenever the request's steps are computed") {
  constexpr int kTokens = 4;
  auto with = options_of<tessera_submit_options>("{\"max_tokens\": 4, \"end_of_generation\": \"ignore\"}");
  int wakes = 0;
  with.user = &wakes;
  with.on_ready = [](void* user) { ++*static_cast<int*>(user); };
  const CScheduler scheduler = c_scheduler();
  for (const bool fails : {false, true}) {
    // The first `first` calls between have no step, the next ones one step each, and from call `all` on everything.
    for (int first = 0; first < 12; ++first) {
      for (int all = first; all < first + 12; ++all) {
        INFO(fails << " " << first << " " << all);
        wakes = 0;
        const CRequest request = submit(scheduler, with);
        if (fails) tessera_request_cancel(request.get());
        int call = 0;
        const Read read = read_as_the_page_does(request.get(), wakes, [&] {
          std::int32_t worked = 0;
          if (call >= all)
            step_until_idle(scheduler);
          else if (call >= first || wakes == 0)
            succeed([&](auto e) { return tessera_scheduler_step(scheduler.get(), &worked, e); });
          ++call;
        });
        CHECK_FALSE(read.waits_for_ever);
        CHECK(read.pieces == (fails ? 0 : kTokens));
        CHECK(read.code == (fails ? TESSERA_CANCELLED : TESSERA_OK));
      }
    }
  }
}

TEST_CASE("a generation has its sampler to itself until its end") {
  const CSession a = c_session(engine()), b = c_session(engine());
  append(a, {1, 2, 3});
  append(b, {4, 5, 6});
  const CSampler sampler = c_sampler(engine(), R"({"seed": 3, "grammar": {"regex": "[a-z ]*"}})");
  const auto is_taken = ContainsSubstring("sampler: a generation with this sampler has not ended");
  CGeneration first = generate(a, sampler, "{\"max_tokens\": 3}");
  CHECK_THAT(generate_failure(TESSERA_INVALID_STATE, b, sampler), is_taken);

  std::vector<float> row(tessera_engine_vocabulary_size(engine().get()));
  Token drawn = 0;
  const auto check_taken = [&] {
    CHECK_THAT(failure(TESSERA_INVALID_STATE, [&](auto e) { return tessera_sampler_accept(sampler.get(), 1, e); }),
               is_taken);
    CHECK_THAT(failure(TESSERA_INVALID_STATE, [&](auto e) { return tessera_sampler_rollback(sampler.get(), 0, e); }),
               is_taken);
    CHECK_THAT(
        failure(TESSERA_INVALID_STATE, [&](auto e) { return tessera_sampler_begin(sampler.get(), nullptr, 0, 0, e); }),
        is_taken);
    CHECK_THAT(failure(TESSERA_INVALID_STATE,
                       [&](auto e) {
                         return tessera_sampler_sample(sampler.get(), row.data(), row.size(), nullptr, 0, 0, &drawn, e);
                       }),
               is_taken);
  };
  check_taken();
  const tessera_piece* piece = nullptr;
  succeed([&](auto error) { return tessera_generation_next(first.get(), &piece, error); });
  check_taken();
  // A copy is another sampler, and takes nothing away.
  const CSampler copy =
      made<CSampler>([&](auto out, auto error) { return tessera_sampler_clone(sampler.get(), out, error); });
  const CGeneration second = generate(b, copy, "{\"max_tokens\": 3}");
  read_all(first);
  read_all(second);
  succeed([&](auto error) { return tessera_sampler_rollback(sampler.get(), 0, error); });  // free again

  const CGeneration third = generate(b, sampler, "{\"max_tokens\": 3}");
  tessera_sampler* again = nullptr;
  succeed([&](auto error) { return tessera_sampler_clone(sampler.get(), &again, error); });
  tessera_sampler_free(again);
  CHECK_THAT(generate_failure(TESSERA_INVALID_STATE, a, sampler), is_taken);
  tessera_generation_free(const_cast<CGeneration&>(third).release());
  read_all(generate(a, sampler, "{\"max_tokens\": 3}"));
}

TEST_CASE("what a generation cannot begin with is an error of tessera_session_generate()") {
  const CSession session = c_session(engine());
  const CSampler sampler = c_sampler(engine(), nullptr), other = c_sampler(engine(), nullptr);
  CHECK_THAT(generate_failure(TESSERA_INVALID_ARGUMENT, session, sampler, "{\"stop_tokens\": [1, 99999999]}"),
             ContainsSubstring("stop_tokens[1]: token 99999999 is not in the vocabulary"));
  CHECK_THAT(generate_failure(TESSERA_INVALID_STATE, session, sampler), ContainsSubstring("session: it is empty"));
  append(session, {1, 2, 3});
  const CGeneration generation = generate(session, sampler, "{\"max_tokens\": 2}");
  CHECK_THAT(generate_failure(TESSERA_INVALID_STATE, session, other),
             ContainsSubstring("session: a generation of this session has not ended"));
  const Token token = 4;
  CHECK_THAT(failure(TESSERA_INVALID_STATE,
                     [&](auto error) { return tessera_session_append(session.get(), &token, 1, nullptr, error); }),
             ContainsSubstring("session: a generation of this session has not ended"));
  CHECK(read_all(generation).size() == 2);
  append(session, {4});
  // The one that was refused has left the sampler free.
  CHECK(read_all(generate(session, other, "{\"max_tokens\": 2}")).size() == 2);
  // A sampler of another vocabulary is refused at once too.
  const CEngine stories = c_engine(story_model());
  const CSampler foreign = c_sampler(stories, R"({"grammar": {"json": true}})");
  CHECK_THAT(generate_failure(TESSERA_INVALID_ARGUMENT, session, foreign), ContainsSubstring("tokenizer"));
}

TEST_CASE("a generation's error is returned again by every further call") {
  const CSession session = c_session(engine(), "{\"context\": 8}");
  append(session, {1, 2, 3, 4});
  const CSampler sampler = c_sampler(engine(), "{\"greedy\": true}");
  const CGeneration generation = generate(session, sampler, "{\"end_of_generation\": \"ignore\"}");
  std::int32_t code = TESSERA_OK;
  const tessera_piece* piece = nullptr;
  for (int i = 0; i < 20 && code == TESSERA_OK; ++i) code = tessera_generation_next(generation.get(), &piece, nullptr);
  REQUIRE(code == TESSERA_CACHE_FULL);
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(failure(TESSERA_CACHE_FULL,
                       [&](auto error) { return tessera_generation_next(generation.get(), &piece, error); }),
               ContainsSubstring("no room"));
    CHECK(piece == nullptr);
  }
  CHECK(tessera_generation_finish_reason(generation.get()) == TESSERA_FINISH_ERROR);
  succeed(
      [&](auto error) { return tessera_session_truncate(session.get(), 2, error); });  // it has let go of the session
}

TEST_CASE("a count above the context is cache_full, and no token is read") {
  const CSession session = c_session(engine(), "{\"context\": 8}");
  const Token one = 1;  // behind it nothing may be read
  float score = 0.0f;
  for (const std::size_t count : {std::size_t{9}, std::size_t{1} << 40}) {
    CHECK_THAT(failure(TESSERA_CACHE_FULL,
                       [&](auto error) { return tessera_session_append(session.get(), &one, count, nullptr, error); }),
               ContainsSubstring("count: ") && ContainsSubstring("context of 8"));
    failure(TESSERA_CACHE_FULL,
            [&](auto error) { return tessera_session_score(session.get(), &one, count, &score, nullptr, error); });
  }
  append(session, {1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE(
    "a session that a scheduler has taken is invalid_state, and a sample that there is not has no finish reason") {
  const CSession session = c_session(engine());
  append(session, {1, 2});
  const CScheduler scheduler = c_scheduler();
  const auto with = options_of<tessera_submit_options>("{\"max_tokens\": 2, \"samples\": 2}");
  const Token next = 3;
  const CRequest request = made<CRequest>([&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), &next, 1, session.get(), &with, out, error);
  });
  const auto is_given = ContainsSubstring("session: its tokens were given to a scheduler");
  tessera_text* text = nullptr;
  tessera_session* copy = nullptr;
  const float* values = nullptr;
  const Token* tokens = nullptr;
  std::size_t n = 0;
  const auto check = [&](auto&& call) { CHECK_THAT(failure(TESSERA_INVALID_STATE, call), is_given); };
  check([&](auto e) { return tessera_session_info(session.get(), &text, e); });
  check([&](auto e) { return tessera_session_logits(session.get(), &values, &n, &n, e); });
  check([&](auto e) { return tessera_session_tokens(session.get(), &tokens, &n, e); });
  check([&](auto e) { return tessera_session_append(session.get(), &next, 1, nullptr, e); });
  check([&](auto e) { return tessera_session_fork(session.get(), &copy, e); });
  check([&](auto e) { return tessera_session_verify(session.get(), nullptr, &text, e); });
  check([&](auto e) { return tessera_session_save(session.get(), "x", 1, e); });
  tessera_request* second = nullptr;
  check(
      [&](auto e) { return tessera_scheduler_submit(scheduler.get(), &next, 1, session.get(), nullptr, &second, e); });
  CHECK_THAT(generate_failure(TESSERA_INVALID_STATE, session, c_sampler(engine(), nullptr)), is_given);
  CHECK((tessera_session_position(session.get()) == 0 && tessera_session_next_position(session.get()) == 0));

  step_until_idle(scheduler);
  CHECK(tessera_request_finish_reason(request.get(), 1) == TESSERA_FINISH_MAX_TOKENS);
  CHECK(tessera_request_finish_reason(request.get(), 2) == TESSERA_FINISH_NONE);
  CHECK(tessera_request_finish_reason(request.get(), (std::size_t{1} << 32) + 1) == TESSERA_FINISH_NONE);
}

TEST_CASE("a call that max_tokens cuts has a broken end, and a piece of an answer has no finish reason") {
  const CEngine stories = c_engine(story_model());
  constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "Call it."}], "tools": [{"type":
    "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"x": {"type":
    "string", "enum": ["a long word", "another word"]}}, "required": ["x"], "additionalProperties": false}}}]})";
  constexpr std::string_view kForm = R"({"output_format": "hermes"})";
  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(stories.get(), nullptr, out, error); });
  int cut = 0, whole = 0;
  for (int most = 10; most < 100; most += 5) {
    INFO(most);
    const auto talk = made<CConversation>([&](auto out, auto error) {
      return tessera_conversation_create(stories.get(), kChat.data(), kChat.size(), kForm.data(), kForm.size(), out,
                                         error);
    });
    const std::string how =
        R"({"tool_choice": {"use": "at_once", "max_calls": 1}, "sampler": {"seed": 1}, "max_tokens": )" +
        std::to_string(most) + "}";
    const auto answer = made<CAnswer>([&](auto out, auto error) {
      return tessera_conversation_answer(talk.get(), most % 2 != 0 ? scheduler.get() : nullptr, how.data(), how.size(),
                                         nullptr, out, error);
    });
    int begins = 0, ends = 0, broken = 0;
    for (const tessera_piece* piece = nullptr;;) {
      succeed([&](auto error) { return tessera_answer_next(answer.get(), &piece, error); });
      if (piece == nullptr) break;
      begins += tessera_piece_kind(piece) == TESSERA_PIECE_CALL_BEGIN;
      ends += tessera_piece_kind(piece) == TESSERA_PIECE_CALL_END;
      broken += tessera_piece_call_is_broken(piece);
      CHECK(tessera_piece_finish_reason(piece) == TESSERA_FINISH_NONE);
    }
    CHECK(ends == begins);
    CHECK(tessera_answer_finish_reason(answer.get()) != TESSERA_FINISH_NONE);
    cut += broken, whole += ends - broken;
  }
  CHECK(cut > 0);
  CHECK(whole > 0);
}

TEST_CASE("tools that the template does not print are told in words by a conversation without an output format") {
  const CEngine stories = c_engine(story_model());  // without a template: the plain one prints no tools
  constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "Hi", "contnet": "x"}], "tols": [],
    "tools": [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]})";
  const auto text_of = [&](const CTokens& tokens) {
    return string_of(made<CText>([&](auto out, auto error) {
      return tessera_decode(stories.get(), tessera_tokens_data(tokens.get()), tessera_tokens_count(tokens.get()), 0, 0,
                            out, error);
    }));
  };
  const auto rendered = made<CTokens>([&](auto out, auto error) {
    return tessera_render_chat(stories.get(), kChat.data(), kChat.size(), nullptr, 0, out, nullptr, error);
  });
  CHECK_THAT(text_of(rendered), ContainsSubstring("Hi") && !ContainsSubstring("look_up"));
  for (const std::string_view form : {"", R"({"output_format": "hermes"})"}) {
    const auto talk = made<CConversation>([&](auto out, auto error) {
      return tessera_conversation_create(stories.get(), kChat.data(), kChat.size(), form.data(), form.size(), out,
                                         error);
    });
    const auto prompt =
        made<CTokens>([&](auto out, auto error) { return tessera_conversation_prompt(talk.get(), out, error); });
    CHECK((text_of(prompt).find("look_up") != std::string::npos) == form.empty());
  }
}

}  // namespace test_c_ends
