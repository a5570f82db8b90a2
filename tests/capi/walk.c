/* A C99 program that calls every function of tessera.h once on the small model: walk MODEL ADAPTER. tests/checks/c_abi.sh sees that none is
 * missing. Prints the first thing that is not as it should be, and returns 1. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static tessera_error* error;
static const char* place;

static void fail(int line, const char* what) {
  fprintf(stderr, "walk.c:%d (%s): %s: %s\n", line, place, what, tessera_error_text(error));
  exit(1);
}
#define OK(call) do { if ((call) != TESSERA_OK) fail(__LINE__, #call); } while (0)
#define CHECK(condition) do { if (!(condition)) fail(__LINE__, #condition); } while (0)
#define TEXT(text) text, strlen(text)

static int drops, events, readies, logs, progresses;
static void drop(void* user) { ++*(int*)user; }
static void on_ready(void* user) { ++*(int*)user; }
static void on_event(void* user, int32_t event, uint64_t request, double time) { (void)event, (void)request, (void)time, (void)user, ++events; }
static int32_t progress(void* user, uint64_t done, uint64_t total) { (void)user; ++progresses; return done > total; }
static int32_t append_progress(void* user, size_t done, size_t total) { (void)user; ++progresses; return done > total; }
static void log_message(void* user, int32_t level, const char* message, size_t size) { (void)user, (void)level; logs += strlen(message) == size; }
static void parallel_for(void* user, size_t n, void (*task)(void*, size_t), void* context) {
  (void)user;
  for (size_t i = 0; i < n; ++i) task(context, i);
}
static int32_t no_space(void* user, const int32_t* tokens, float* logits, size_t count) {
  (void)tokens, (void)logits, (void)count;
  ++*(int*)user;
  return 0;
}

struct bytes { char* data; size_t size, place; };
static int32_t take(void* user, const void* from, size_t n) {
  struct bytes* to = user;
  to->data = realloc(to->data, to->size + n);
  if (to->data == NULL) return 1;
  memcpy(to->data + to->size, from, n);
  to->size += n;
  return 0;
}
static int32_t give(void* user, uint64_t offset, void* to, size_t n) {
  const struct bytes* from = user;
  memcpy(to, from->data + offset, n);
  return 0;
}

/* Prints what a call tells in JSON, and frees it. */
static void told(tessera_text* json, const char* must_have) {
  CHECK(json != NULL && strlen(tessera_text_data(json)) == tessera_text_size(json));
  CHECK(strstr(tessera_text_data(json), must_have) != NULL);
  tessera_text_free(json);
}

static void library(void) {
  place = "library";
  CHECK(strcmp(tessera_version(), "0.1.0") == 0);
  CHECK(tessera_abi_version() == TESSERA_ABI_VERSION && tessera_api_version() == TESSERA_API_VERSION);
  OK(tessera_check_version(TESSERA_ABI_VERSION, TESSERA_API_VERSION, &error));
  CHECK(tessera_check_version(TESSERA_ABI_VERSION, TESSERA_API_VERSION + 1, &error) == TESSERA_UNSUPPORTED);
  CHECK(tessera_error_code(error) == TESSERA_UNSUPPORTED && tessera_error_message(error)[0] != 0);
  CHECK(strstr(tessera_error_text(error), tessera_error_place(error)) != NULL);
  tessera_error_free(error);
  error = NULL;
  CHECK(strcmp(tessera_code_name(TESSERA_BUSY), "busy") == 0 && strcmp(tessera_code_name(99), "?") == 0);
}

static tessera_engine* load(const char* model) {
  tessera_engine_options options;
  tessera_engine* engine = NULL;
  tessera_text* json = NULL;
  place = "engine";
  tessera_options_init(&options, sizeof options);
  options.json = "{\"threads\": 2, \"context\": 256, \"log_level\": \"debug\"}";
  options.json_size = strlen(options.json);
  options.user = &drops;
  options.drop = drop;
  OK(tessera_plan(TEXT(model), &options, &json, &error));
  told(json, "\"peak\"");
  CHECK(drops == 1);
  options.progress = progress;
  options.log = log_message;
  options.parallel_for = parallel_for;
  options.concurrency = 1;
  OK(tessera_engine_load(TEXT(model), &options, &engine, &error));
  CHECK(drops == 1 && progresses > 0);
  OK(tessera_engine_plan(engine, &json, &error));
  told(json, "\"kv_per_token\"");
  OK(tessera_engine_explain(engine, &json, &error));
  told(json, "\"kernel\"");
  OK(tessera_engine_metadata(engine, &json, &error));
  told(json, "\"general.architecture\"");
  OK(tessera_engine_figures(engine, &json, &error));
  told(json, "\"held_bytes\"");
  CHECK(tessera_engine_context(engine) == 256 && tessera_engine_vocabulary_size(engine) > 0 && tessera_engine_embedding_size(engine) > 0);
  tessera_engine_trim(engine);
  return engine;
}

static void source(const char* model) {
  struct bytes file = {NULL, 0, 0};
  tessera_source from;
  tessera_engine* engine = NULL;
  char piece[4096];
  size_t n;
  int dropped = 0;
  FILE* stream = fopen(model, "rb");
  place = "source";
  CHECK(stream != NULL);
  while ((n = fread(piece, 1, sizeof piece, stream)) > 0) CHECK(take(&file, piece, n) == 0);
  fclose(stream);
  tessera_options_init(&from, sizeof from);
  from.bytes = file.size;
  from.read = give;
  from.user = &file;
  OK(tessera_engine_load_source(&from, NULL, &engine, &error));
  free(file.data);
  CHECK(tessera_engine_vocabulary_size(engine) > 0);
  tessera_engine_free(engine);
  from.user = &dropped;
  from.drop = drop;
  from.read = NULL;
  CHECK(tessera_engine_load_source(&from, NULL, &engine, NULL) == TESSERA_INVALID_ARGUMENT && engine == NULL && dropped == 1);
}

static tessera_tokens* text_and_tokens(const tessera_engine* engine) {
  tessera_tokens* tokens = NULL;
  tessera_text* text = NULL;
  tessera_detokenizer* stream = NULL;
  const char* piece;
  size_t size, i, at = 0;
  int32_t token;
  char whole[256];
  place = "tokens";
  OK(tessera_encode(engine, TEXT("Once upon a time"), TESSERA_BOS_AS_MODEL, TESSERA_SPECIAL_AS_TEXT, &tokens, &error));
  CHECK(tessera_tokens_count(tokens) > 2);
  OK(tessera_decode(engine, tessera_tokens_data(tokens), tessera_tokens_count(tokens), TESSERA_CONTROL_OMIT, TESSERA_START_SEQUENCE, &text, &error));
  CHECK(strcmp(tessera_text_data(text), "Once upon a time") == 0 && tessera_text_size(text) == 16);
  OK(tessera_detokenizer_create(engine, TESSERA_CONTROL_OMIT, TESSERA_START_SEQUENCE, &stream, &error));
  for (i = 0; i < tessera_tokens_count(tokens); ++i) {
    OK(tessera_detokenizer_push(stream, tessera_tokens_data(tokens)[i], &piece, &size, &error));
    memcpy(whole + at, piece, size);
    at += size;
  }
  OK(tessera_detokenizer_finish(stream, &piece, &size, &error));
  CHECK(size == 0 && at == 16 && memcmp(whole, tessera_text_data(text), at) == 0);
  tessera_detokenizer_free(stream);
  tessera_text_free(text);
  token = tessera_tokens_data(tokens)[tessera_tokens_count(tokens) - 1];
  OK(tessera_token_bytes(engine, token, &piece, &size, &error));
  CHECK(size > 0 && tessera_token_flags(engine, token) == 0);
  CHECK(tessera_find_token(engine, TEXT("no such token, surely"), &token, &error) == TESSERA_NOT_FOUND);
  tessera_error_free(error);
  error = NULL;
  token = tessera_eos_token(engine);
  CHECK(token >= 0 && (tessera_token_flags(engine, token) & TESSERA_TOKEN_END) != 0);
  CHECK(tessera_bos_token(engine) >= -1);
  return tokens;
}

static void sessions(const tessera_engine* engine, const tessera_tokens* prompt) {
  const int32_t* tokens = tessera_tokens_data(prompt);
  const size_t count = tessera_tokens_count(prompt);
  tessera_session *session = NULL, *fork = NULL, *copy = NULL, *restored = NULL;
  tessera_append_options append;
  tessera_stop* stop = NULL;
  tessera_text* json = NULL;
  const float* logits;
  float *kept, scores[64];
  const int32_t* held;
  size_t rows, vocabulary, n;
  struct bytes file = {NULL, 0, 0};
  tessera_source from;
  char path[] = "walk-session-XXXXXX";
  place = "session";
  OK(tessera_session_create(engine, TEXT("{\"context\": 128}"), &session, &error));
  tessera_options_init(&append, sizeof append);
  append.logits = TESSERA_LOGITS_ALL;
  append.progress = append_progress;
  OK(tessera_session_append(session, tokens, count, &append, &error));
  OK(tessera_session_logits(session, &logits, &rows, &vocabulary, &error));
  CHECK(rows == count && vocabulary == tessera_engine_vocabulary_size(engine));
  kept = malloc(vocabulary * sizeof *kept);
  CHECK(kept != NULL);
  memcpy(kept, logits + (rows - 1) * vocabulary, vocabulary * sizeof *kept);
  OK(tessera_session_tokens(session, &held, &n, &error));
  CHECK(n == count && memcmp(held, tokens, n * sizeof *held) == 0);
  CHECK(tessera_session_position(session) == count && tessera_session_next_position(session) == count);
  OK(tessera_session_info(session, &json, &error));
  told(json, "\"kv_bytes\"");
  OK(tessera_session_fork(session, &fork, &error));
  OK(tessera_session_copy(session, TEXT("{\"kv_kind\": \"contiguous\"}"), &copy, &error));
  OK(tessera_session_add_pending(fork, tokens[1], &error));
  OK(tessera_session_append(fork, NULL, 0, NULL, &error));
  OK(tessera_session_truncate(fork, count, &error));
  OK(tessera_session_append(fork, NULL, 0, NULL, &error));
  OK(tessera_session_logits(fork, &logits, &rows, NULL, &error));
  CHECK(rows == 1 && memcmp(kept, logits, vocabulary * sizeof *kept) == 0);
  OK(tessera_session_verify(session, NULL, &json, &error));
  told(json, "\"same\"");
  OK(tessera_session_save_to(session, take, &file, &error));
  tessera_options_init(&from, sizeof from);
  from.bytes = file.size;
  from.read = give;
  from.user = &file;
  OK(tessera_session_restore_from(engine, &from, NULL, 0, &restored, &error));
  OK(tessera_session_logits(restored, &logits, &rows, NULL, &error));
  CHECK(rows == 1 && memcmp(kept, logits, vocabulary * sizeof *kept) == 0);
  tessera_session_free(restored);
  CHECK(mkstemp(path) >= 0);
  OK(tessera_session_save(session, TEXT(path), &error));
  OK(tessera_session_restore(engine, TEXT(path), NULL, 0, &restored, &error));
  remove(path);
  CHECK(tessera_session_suspend(restored, &error) == TESSERA_INVALID_STATE || tessera_error_code(error) != TESSERA_OK); /* no kv_file */
  tessera_error_free(error);
  error = NULL;
  OK(tessera_session_resume(restored, &error));
  OK(tessera_session_score(restored, tokens, count, scores, NULL, &error));
  CHECK(scores[0] < 0.0f);
  OK(tessera_session_remove(restored, 1, 2, &error));
  OK(tessera_session_keep_window(restored, 1, 2, &error));
  CHECK(tessera_session_position(restored) == 3);
  OK(tessera_stop_create(&stop, &error));
  tessera_stop_request(stop);
  append.stop = stop;
  CHECK(tessera_session_append(copy, tokens, count, &append, &error) == TESSERA_CANCELLED);
  tessera_error_free(error);
  error = NULL;
  tessera_stop_free(stop);
  CHECK(tessera_session_position(copy) == count);
  free(kept);
  free(file.data);
  tessera_session_free(restored);
  tessera_session_free(copy);
  tessera_session_free(fork);
  tessera_session_free(session);
}

static void forward(const tessera_engine* engine, const tessera_tokens* prompt) {
  tessera_session* pair[2] = {NULL, NULL};
  const size_t count = tessera_tokens_count(prompt), width = tessera_engine_embedding_size(engine);
  const size_t counts[2] = {count, 1};
  const char* const texts[] = {"A cat sleeps.", "A dog."};
  const size_t sizes[] = {13, 6};
  int32_t tokens[64];
  tessera_forward_options options;
  tessera_outputs* outputs = NULL;
  const float* values;
  float* embedding = malloc(width * sizeof *embedding);
  double square = 0.0;
  size_t n, i;
  place = "forward";
  CHECK(embedding != NULL && count < 63);
  memcpy(tokens, tessera_tokens_data(prompt), count * sizeof *tokens);
  tokens[count] = tokens[0];
  OK(tessera_session_create(engine, NULL, 0, &pair[0], &error));
  OK(tessera_session_create(engine, NULL, 0, &pair[1], &error));
  tessera_options_init(&options, sizeof options);
  options.every_row = 1;
  OK(tessera_forward(engine, pair, counts, COUNT(pair), tokens, TESSERA_WANT_EMBEDDING, &options, &outputs, &error));
  OK(tessera_outputs_row(outputs, 0, &values, &n, &error));
  CHECK(n == width);
  OK(tessera_outputs_row(outputs, count, &values, &n, &error));
  CHECK(tessera_outputs_row(outputs, count + 1, &values, &n, NULL) == TESSERA_INVALID_ARGUMENT);
  tessera_outputs_free(outputs);
  OK(tessera_embed(engine, tokens, count, TEXT("{\"pooling\": \"mean\"}"), embedding, width, &error));
  for (i = 0; i < width; ++i) square += (double)embedding[i] * embedding[i];
  CHECK(fabs(square - 1.0) < 1e-5);
  OK(tessera_embed_texts(engine, texts, sizes, COUNT(texts), TEXT("{\"pooling\": \"mean\"}"), &outputs, &error));
  OK(tessera_outputs_row(outputs, 1, &values, &n, &error));
  CHECK(n == width);
  CHECK(tessera_outputs_row(outputs, COUNT(texts), &values, &n, NULL) == TESSERA_INVALID_ARGUMENT);
  tessera_outputs_free(outputs);
  CHECK(tessera_rerank(engine, TEXT("a query"), texts, sizes, COUNT(texts), NULL, 0, embedding, NULL) == TESSERA_UNSUPPORTED);
  free(embedding);
  tessera_session_free(pair[0]);
  tessera_session_free(pair[1]);
}

static void writing(const tessera_engine* engine, const tessera_tokens* prompt) {
  tessera_session* session = NULL;
  tessera_sampler *sampler = NULL, *clone = NULL;
  tessera_sampler_options options;
  tessera_generate_options generate;
  tessera_generation* generation = NULL;
  tessera_grammar* grammar = NULL;
  const tessera_piece* piece;
  tessera_text *json = NULL, *expected = NULL;
  const float* logits;
  const int32_t* held;
  size_t rows, vocabulary, n, at, pieces = 0;
  int32_t token, accepted;
  float logprob;
  int stages = 0;
  char written[64] = "";
  place = "writing";
  OK(tessera_grammar_create(engine, TESSERA_GRAMMAR_REGEX, TEXT("[ a-z]{3,8}\\."), NULL, 0, &grammar, &error));
  OK(tessera_grammar_check(grammar, TEXT("abc."), &accepted, &at, NULL, &error));
  CHECK(accepted == 1);
  OK(tessera_grammar_check(grammar, TEXT("abX."), &accepted, &at, &expected, &error));
  CHECK(accepted == 0 && at == 2 && tessera_text_size(expected) > 0);
  tessera_text_free(expected);
  tessera_options_init(&options, sizeof options);
  options.json = "{\"temperature\": 0.7, \"top_k\": 40, \"seed\": 3}";
  options.json_size = strlen(options.json);
  options.grammar = grammar;
  options.stage = no_space;
  options.user = &stages;
  options.drop = drop;
  OK(tessera_sampler_create(engine, &options, &sampler, &error));
  OK(tessera_sampler_clone(sampler, &clone, &error));
  OK(tessera_session_create(engine, NULL, 0, &session, &error));
  OK(tessera_session_append(session, tessera_tokens_data(prompt), tessera_tokens_count(prompt), NULL, &error));
  OK(tessera_session_logits(session, &logits, &rows, &vocabulary, &error));
  OK(tessera_session_tokens(session, &held, &n, &error));
  OK(tessera_sampler_begin(clone, held, n, tessera_session_next_position(session), &error));
  OK(tessera_sampler_sample(clone, logits, vocabulary, held, n, tessera_session_next_position(session), &token, &error));
  OK(tessera_sampler_accept(clone, token, &error));
  OK(tessera_sampler_rollback(clone, 1, &error));
  tessera_options_init(&generate, sizeof generate);
  generate.json = "{\"max_tokens\": 20, \"logprobs\": 2}";
  generate.json_size = strlen(generate.json);
  OK(tessera_session_generate(session, sampler, &generate, &generation, &error));
  for (;;) {
    OK(tessera_generation_next(generation, &piece, &error));
    if (piece == NULL) break;
    if (pieces++ == 0) CHECK(tessera_piece_token(piece) == token);
    strncat(written, tessera_piece_text(piece, &n), sizeof written - strlen(written) - 1);
    CHECK(tessera_piece_kind(piece) == TESSERA_PIECE_TEXT && tessera_piece_sample(piece) == 0 && tessera_piece_stop_string(piece) == -1);
    CHECK(tessera_piece_logprob(piece) <= 0.0f && tessera_piece_top_count(piece) == 2);
    OK(tessera_piece_top(piece, 0, &token, &logprob, &error));
    CHECK(logprob >= tessera_piece_logprob(piece));
    if (tessera_piece_finish_reason(piece) != TESSERA_FINISH_NONE) break;
  }
  CHECK(tessera_generation_finish_reason(generation) == TESSERA_FINISH_END_OF_GENERATION);
  OK(tessera_generation_figures(generation, &json, &error));
  told(json, "\"tokens_per_second\"");
  OK(tessera_grammar_check(grammar, TEXT(written), &accepted, &at, NULL, &error));
  CHECK(accepted == 1 && stages > 0);
  tessera_generation_free(generation);
  tessera_grammar_free(grammar);
  tessera_session_free(session);
  drops = 0;
  stages = 0;
  tessera_sampler_free(sampler);
  CHECK(stages == 0); /* the clone has the host's stage too */
  tessera_sampler_free(clone);
  CHECK(stages == 1);
}

static void chat(const tessera_engine* engine) {
  static const char* const messages = "{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story.\"}]}";
  tessera_conversation* talk = NULL;
  tessera_answer* answer = NULL;
  tessera_tokens *tokens = NULL, *again = NULL;
  tessera_text* text = NULL;
  const tessera_piece* piece;
  size_t n, bytes = 0;
  int turn;
  place = "chat";
  OK(tessera_render_chat(engine, TEXT(messages), NULL, 0, &tokens, &text, &error));
  told(text, "Tell me a story.");
  OK(tessera_conversation_create(engine, NULL, 0, NULL, 0, &talk, &error));
  OK(tessera_conversation_set(talk, TEXT(messages), &error));
  OK(tessera_conversation_prompt(talk, &again, &error));
  CHECK(tessera_tokens_count(again) == tessera_tokens_count(tokens));
  tessera_tokens_free(again);
  tessera_tokens_free(tokens);
  for (turn = 0; turn < 3; ++turn) {
    OK(tessera_conversation_answer(talk, NULL, TEXT("{\"max_tokens\": 6, \"sampler\": {\"temperature\": 0.5}}"), NULL, &answer, &error));
    CHECK(tessera_conversation_add(talk, TEXT("{\"role\": \"user\", \"content\": \"x\"}"), NULL) == TESSERA_INVALID_STATE);
    for (;;) {
      OK(tessera_answer_next(answer, &piece, &error));
      if (piece == NULL) break;
      CHECK(tessera_piece_text(piece, &n) != NULL && tessera_piece_call_name(piece) != NULL && tessera_piece_call_id(piece) != NULL);
      CHECK(tessera_piece_call(piece) == 0 && tessera_piece_call_is_broken(piece) == 0);
      bytes += n;
    }
    CHECK(tessera_answer_finish_reason(answer) != TESSERA_FINISH_NONE);
    OK(tessera_answer_message(answer, &text, &error));
    told(text, "\"assistant\"");
    OK(tessera_answer_figures(answer, &text, &error));
    told(text, "\"prompt_kept\"");
    tessera_answer_free(answer);
    OK(tessera_conversation_add(talk, TEXT("{\"role\": \"user\", \"content\": \"And then?\"}"), &error));
  }
  CHECK(bytes > 0);
  OK(tessera_conversation_shorten(talk, TEXT("{\"keep_turns\": 1}"), &text, &error));
  told(text, "\"messages\": 6");
  OK(tessera_conversation_get(talk, &text, &error));
  told(text, "And then?");
  tessera_conversation_free(talk);
}

static void adapters(tessera_engine* engine, const tessera_tokens* prompt, const char* path) {
  tessera_adapter* adapter = NULL;
  const tessera_adapter* used[1];
  const float scales[1] = {0.5f};
  tessera_adapter_list list;
  tessera_session* session = NULL;
  tessera_conversation* talk = NULL;
  tessera_text* json = NULL;
  const int32_t* tokens;
  size_t count;
  place = "adapters";
  OK(tessera_adapter_load(engine, TEXT(path), NULL, &adapter, &error));
  CHECK(strcmp(tessera_adapter_name(adapter), "stories-adapter") == 0 && tessera_adapter_base_name(adapter) != NULL);
  CHECK(tessera_adapter_bytes(adapter) > 0 && tessera_adapter_rank(adapter) == 2);
  OK(tessera_adapter_invocation(adapter, &tokens, &count, &error));
  CHECK(tokens == NULL && count == 0);
  OK(tessera_adapter_info(adapter, &json, &error));
  told(json, "\"matrices\"");
  used[0] = adapter;
  tessera_options_init(&list, sizeof list);
  list.adapters = used;
  list.scales = scales;
  list.count = 1;
  OK(tessera_session_create(engine, NULL, 0, &session, &error));
  OK(tessera_session_append(session, tessera_tokens_data(prompt), tessera_tokens_count(prompt), NULL, &error));
  OK(tessera_session_use_adapters(session, &list, &error));
  CHECK(tessera_session_position(session) == 0); /* all tokens are computed again */
  OK(tessera_conversation_create(engine, NULL, 0, NULL, 0, &talk, &error));
  OK(tessera_conversation_use_adapters(talk, &list, &error));
  tessera_conversation_free(talk);
  tessera_adapter_free(adapter);
  OK(tessera_session_append(session, NULL, 0, NULL, &error));
  OK(tessera_session_info(session, &json, &error));
  told(json, "\"stories-adapter\"");
  tessera_session_free(session);
}

static void requests(tessera_engine* engine, const tessera_tokens* prompt) {
  const int32_t* tokens = tessera_tokens_data(prompt);
  const size_t count = tessera_tokens_count(prompt);
  tessera_scheduler* scheduler = NULL;
  tessera_scheduler_options options;
  tessera_submit_options submit;
  tessera_request *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
  tessera_session *session = NULL, *kept = NULL;
  const tessera_piece* piece;
  tessera_text* json = NULL;
  int32_t worked;
  int pieces = 0, samples = 0, dropped = 0;
  place = "scheduler";
  tessera_options_init(&options, sizeof options);
  options.json = "{\"policy\": \"fair_by_tenant\", \"max_running\": 8}";
  options.json_size = strlen(options.json);
  options.on_event = on_event;
  options.user = &dropped;
  options.drop = drop;
  OK(tessera_scheduler_create(engine, &options, &scheduler, &error));
  tessera_options_init(&submit, sizeof submit);
  submit.json = "{\"max_tokens\": 5, \"samples\": 2, \"sampler\": {\"temperature\": 1, \"seed\": 4}, \"tenant\": \"a\"}";
  submit.json_size = strlen(submit.json);
  OK(tessera_scheduler_submit(scheduler, tokens, count, NULL, &submit, &first, &error));
  CHECK(tessera_request_id(first) != 12345 && tessera_request_state(first) == TESSERA_REQUEST_WAITING);
  OK(tessera_scheduler_step(scheduler, &worked, &error));
  CHECK(worked == 1 && tessera_scheduler_wake_time(scheduler) > 0.0);
  OK(tessera_scheduler_start(scheduler, &error));
  OK(tessera_session_create(engine, NULL, 0, &session, &error));
  OK(tessera_session_append(session, tokens, count, NULL, &error));
  submit.json = "{\"max_tokens\": 8, \"keep_session\": true, \"grammar\": {\"regex\": \"[ a-z]{2,20}\"}}";
  submit.json_size = strlen(submit.json);
  submit.on_ready = on_ready;
  submit.user = &readies;
  OK(tessera_scheduler_submit(scheduler, NULL, 0, session, &submit, &second, &error));
  CHECK(tessera_session_append(session, tokens, 1, NULL, NULL) == TESSERA_INVALID_STATE);
  tessera_session_free(session);
  OK(tessera_scheduler_submit(scheduler, tokens, count, NULL, NULL, &third, &error));
  tessera_request_pause(third);
  tessera_request_resume(third);
  for (;;) {
    OK(tessera_request_next(first, TESSERA_WAIT_FOREVER, &piece, &error));
    if (piece == NULL) break;
    ++pieces;
    samples |= 1 << tessera_piece_sample(piece);
  }
  CHECK(pieces > 0 && samples == 3 && tessera_request_state(first) == TESSERA_REQUEST_ENDED);
  CHECK(tessera_request_finish_reason(first, 1) != TESSERA_FINISH_NONE);
  tessera_request_cancel(third);
  do {
    OK(tessera_request_next(second, 1000000000, &piece, &error));
  } while (piece != NULL || tessera_request_state(second) != TESSERA_REQUEST_ENDED);
  OK(tessera_request_try_next(second, &piece, &error));
  CHECK(piece == NULL && readies > 0);
  OK(tessera_request_figures(second, &json, &error));
  told(json, "\"prompt_tokens\"");
  OK(tessera_request_take_session(second, 0, &kept, &error));
  CHECK(tessera_session_position(kept) > count);
  CHECK(tessera_request_take_session(second, 0, &session, NULL) == TESSERA_NOT_FOUND && session == NULL);
  tessera_session_free(kept);
  while (tessera_request_next(third, TESSERA_WAIT_FOREVER, &piece, &error) == TESSERA_OK) CHECK(piece != NULL);
  CHECK(tessera_error_code(error) == TESSERA_CANCELLED);
  tessera_error_free(error);
  error = NULL;
  tessera_request_free(third);
  OK(tessera_scheduler_cancel(scheduler, 12345, &error));
  submit.json = "{\"beams\": {\"beams\": 2, \"max_tokens\": 4}}";
  submit.json_size = strlen(submit.json);
  OK(tessera_scheduler_submit(scheduler, tokens, count, NULL, &submit, &third, &error));
  tessera_scheduler_drain(scheduler);
  OK(tessera_scheduler_wait_until_idle(scheduler, &error));
  OK(tessera_request_take_beams(third, &json, &error));
  told(json, "\"score\"");
  CHECK(tessera_scheduler_submit(scheduler, tokens, count, NULL, NULL, &fourth, NULL) == TESSERA_INVALID_STATE && fourth == NULL);
  tessera_request_free(third);
  OK(tessera_scheduler_figures(scheduler, &json, &error));
  told(json, "\"idle\": true");
  OK(tessera_scheduler_stop(scheduler, &error));
  tessera_scheduler_free(scheduler);
  tessera_request_free(first);
  tessera_request_free(second);
  CHECK(events > 0 && dropped == 1);
}

int main(int argc, char** argv) {
  tessera_engine* engine;
  tessera_tokens* prompt;
  if (argc != 3) return fprintf(stderr, "usage: walk MODEL ADAPTER\n"), 2;
  library();
  engine = load(argv[1]);
  source(argv[1]);
  prompt = text_and_tokens(engine);
  sessions(engine, prompt);
  forward(engine, prompt);
  writing(engine, prompt);
  chat(engine);
  adapters(engine, prompt, argv[2]);
  requests(engine, prompt);
  tessera_tokens_free(prompt);
  drops = 0;
  tessera_engine_free(engine);
  CHECK(drops == 1);
  puts("every function was called");
  return 0;
}
