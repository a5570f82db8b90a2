/* The native half of tessera for Node, over node-api; tessera.js is what programs use. Handles of tessera are
 * `external` values of JavaScript. The event loop never waits for the model: loading and submitting run on a thread of
 * Node's pool, computing on the scheduler's own thread, which wakes the loop by a thread-safe function. */
#define NAPI_VERSION 8
#include <ctype.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

/* A handle of tessera. All members are used on the loop's thread alone. */
struct box {
  void* handle;
  void (*free_handle)(void*);
  int works;    /* works on other threads that use the handle: it is freed behind the last of them */
  bool closed;  /* by close(); calls get NULL, which the library refuses */
  bool dropped; /* by the garbage collector */
};

static void settle(struct box* box) {
  if (box->works > 0) return;
  if (box->closed && box->handle != NULL) {
    box->free_handle(box->handle);
    box->handle = NULL;
  }
  if (box->dropped) free(box);
}

static void drop_box(napi_env env, void* data, void* hint) {
  (void)env;
  (void)hint;
  struct box* box = data;
  box->closed = box->dropped = true;
  settle(box);
}

static void free_engine(void* handle) { tessera_engine_free(handle); }
static void free_scheduler(void* handle) { tessera_scheduler_free(handle); }
static void free_request(void* handle) { tessera_request_free(handle); }

/* Makes an `external` that owns the handle; frees the handle and returns NULL if there is no memory. */
static napi_value new_box(napi_env env, void* handle, void (*free_handle)(void*)) {
  napi_value value = NULL;
  struct box* box = calloc(1, sizeof *box);
  if (box != NULL) {
    box->handle = handle;
    box->free_handle = free_handle;
    if (napi_create_external(env, box, drop_box, NULL, &value) == napi_ok) return value;
    free(box);
  }
  free_handle(handle);
  napi_throw_error(env, "TESSERA_OUT_OF_MEMORY", "no memory for a handle");
  return NULL;
}

static struct box* box_of(napi_env env, napi_value value) {
  void* box = NULL;
  napi_get_value_external(env, value, &box);
  return box;
}

static void* handle_of(napi_env env, napi_value value) {
  struct box* box = box_of(env, value);
  return box == NULL || box->closed ? NULL : box->handle;
}

/* Returns a text of JavaScript as UTF-8, which the caller frees; not a text: NULL, and an exception is pending. */
static char* text_of(napi_env env, napi_value value, size_t* size) {
  if (napi_get_value_string_utf8(env, value, NULL, 0, size) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected a string");
    return NULL;
  }
  char* text = malloc(*size + 1);
  if (text == NULL)
    napi_throw_error(env, "TESSERA_OUT_OF_MEMORY", "no memory for a text");
  else
    napi_get_value_string_utf8(env, value, text, *size + 1, size);
  return text;
}

/* Makes an Error whose `code` is that of the constant, "TESSERA_NOT_FOUND", and frees the library's error. */
static napi_value to_exception(napi_env env, int32_t code, tessera_error* error) {
  napi_value result = NULL, name_value = NULL, message = NULL;
  char name[64];
  snprintf(name, sizeof name, "TESSERA_%s", tessera_code_name(code));
  for (char* c = name; *c != '\0'; c++) *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
  napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &name_value);
  napi_create_string_utf8(env, tessera_error_text(error), NAPI_AUTO_LENGTH, &message);
  napi_create_error(env, name_value, message, &result);
  tessera_error_free(error);
  return result;
}

static napi_value fail(napi_env env, int32_t code, tessera_error* error) {
  napi_throw(env, to_exception(env, code, error));
  return NULL;
}

#define MOST_ARGUMENTS 5
static void arguments(napi_env env, napi_callback_info info, napi_value* values) {
  size_t count = MOST_ARGUMENTS;
  napi_get_cb_info(env, info, &count, values, NULL, NULL); /* those that are missing are undefined */
}

/* ---- Work on another thread, behind a promise ---- */

/* What the loop's thread is woken by. */
struct wake {
  napi_threadsafe_function function;
  bool closing; /* Node ends, and has taken the function back */
};

/* Called on the scheduler's thread. */
static void on_ready(void* user) {
  struct wake* wake = user;
  if (!wake->closing && napi_call_threadsafe_function(wake->function, NULL, napi_tsfn_nonblocking) == napi_closing)
    wake->closing = true;
}

static void drop_wake(void* user) {
  struct wake* wake = user;
  if (!wake->closing) napi_release_threadsafe_function(wake->function, napi_tsfn_release);
  free(wake);
}

struct work {
  napi_async_work work;
  napi_deferred deferred;
  struct box* used[2]; /* handles that are used meanwhile, or NULL */
  char* text;          /* a path or a prompt */
  size_t text_size;
  char* json;
  size_t json_size;
  tessera_engine* engine;
  tessera_scheduler* scheduler;
  struct wake* wake;
  void (*free_result)(void*);
  void* result;
  int32_t code;
  tessera_error* error;
};

static void end_work(napi_env env, struct work* work) {
  for (int i = 0; i < 2; i++) {
    if (work->used[i] == NULL) continue;
    work->used[i]->works--;
    settle(work->used[i]);
  }
  if (work->wake != NULL) drop_wake(work->wake);
  if (work->work != NULL) napi_delete_async_work(env, work->work);
  free(work->text);
  free(work->json);
  free(work);
}

static void complete(napi_env env, napi_status status, void* data) {
  struct work* work = data;
  (void)status;
  napi_value value = NULL;
  if (work->code == TESSERA_OK) value = new_box(env, work->result, work->free_result);
  if (value != NULL) {
    napi_resolve_deferred(env, work->deferred, value);
  } else {
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (pending)
      napi_get_and_clear_last_exception(env, &value);
    else
      value = to_exception(env, work->code, work->error);
    napi_reject_deferred(env, work->deferred, value);
  }
  end_work(env, work);
}

static struct work* new_work(napi_env env, napi_value text, napi_value json) {
  struct work* work = calloc(1, sizeof *work);
  if (work == NULL) {
    napi_throw_error(env, "TESSERA_OUT_OF_MEMORY", "no memory for a call");
    return NULL;
  }
  work->text = text_of(env, text, &work->text_size);
  if (work->text != NULL) work->json = text_of(env, json, &work->json_size);
  if (work->json != NULL) return work;
  end_work(env, work);
  return NULL;
}

static napi_value queue(napi_env env, struct work* work, const char* name, napi_async_execute_callback execute) {
  napi_value promise = NULL, name_value = NULL;
  napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &name_value);
  if (napi_create_async_work(env, NULL, name_value, execute, complete, work, &work->work) != napi_ok ||
      napi_create_promise(env, &work->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, work->work) != napi_ok) {
    end_work(env, work);
    napi_throw_error(env, "TESSERA_INTERNAL", "Node refused to queue a call");
    return NULL;
  }
  return promise;
}

static void run_load(napi_env env, void* data) {
  struct work* work = data;
  (void)env;
  tessera_engine_options options;
  tessera_options_init(&options, sizeof options);
  options.json = work->json;
  options.json_size = work->json_size;
  tessera_engine* engine = NULL;
  work->code = tessera_check_version(TESSERA_ABI_VERSION, TESSERA_API_VERSION, &work->error);
  if (work->code == TESSERA_OK)
    work->code = tessera_engine_load(work->text, work->text_size, &options, &engine, &work->error);
  work->result = engine;
}

/* load(path, json): a promise of an engine */
static napi_value load(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  struct work* work = new_work(env, given[0], given[1]);
  if (work == NULL) return NULL;
  work->free_result = free_engine;
  return queue(env, work, "tessera.load", run_load);
}

static void run_submit(napi_env env, void* data) {
  struct work* work = data;
  (void)env;
  tessera_tokens* tokens = NULL;
  tessera_request* request = NULL;
  tessera_submit_options options;
  tessera_options_init(&options, sizeof options);
  options.json = work->json;
  options.json_size = work->json_size;
  options.on_ready = on_ready;
  options.drop = drop_wake;
  options.user = work->wake;
  work->code = tessera_encode(work->engine, work->text, work->text_size, TESSERA_BOS_AS_MODEL, TESSERA_SPECIAL_AS_TEXT,
                              &tokens, &work->error);
  if (work->code != TESSERA_OK) return;
  work->code = tessera_scheduler_submit(work->scheduler, tessera_tokens_data(tokens), tessera_tokens_count(tokens),
                                        NULL, &options, &request, &work->error);
  work->wake = NULL; /* the library's, which drops it, also after an error */
  tessera_tokens_free(tokens);
  work->result = request;
}

/* submit(scheduler, engine, prompt, json, onReady): a promise of a request. */
static napi_value submit(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS], name;
  arguments(env, info, given);
  struct work* work = new_work(env, given[2], given[3]);
  if (work == NULL) return NULL;
  work->free_result = free_request;
  work->scheduler = handle_of(env, given[0]);
  work->engine = handle_of(env, given[1]);
  work->wake = calloc(1, sizeof *work->wake);
  napi_create_string_utf8(env, "tessera.onReady", NAPI_AUTO_LENGTH, &name);
  if (work->wake == NULL || napi_create_threadsafe_function(env, given[4], NULL, name, 0, 1, NULL, NULL, NULL, NULL,
                                                            &work->wake->function) != napi_ok) {
    free(work->wake);
    work->wake = NULL;
    end_work(env, work);
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected a function");
    return NULL;
  }
  for (int i = 0; i < 2; i++) {
    work->used[i] = box_of(env, given[i]);
    if (work->used[i] != NULL) work->used[i]->works++;
  }
  return queue(env, work, "tessera.submit", run_submit);
}

/* ---- Calls that return at once ---- */

/* encode(engine, text): tokens of the text, in an Int32Array */
static napi_value encode(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS], buffer = NULL, result = NULL;
  arguments(env, info, given);
  size_t size = 0;
  char* text = text_of(env, given[1], &size);
  if (text == NULL) return NULL;
  tessera_tokens* tokens = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_encode(handle_of(env, given[0]), text, size, TESSERA_BOS_AS_MODEL,
                                      TESSERA_SPECIAL_AS_TEXT, &tokens, &error);
  free(text);
  if (code != TESSERA_OK) return fail(env, code, error);
  const size_t count = tessera_tokens_count(tokens);
  void* bytes = NULL;
  napi_create_arraybuffer(env, count * sizeof(int32_t), &bytes, &buffer);
  if (bytes != NULL && count > 0) memcpy(bytes, tessera_tokens_data(tokens), count * sizeof(int32_t));
  napi_create_typedarray(env, napi_int32_array, count, buffer, 0, &result);
  tessera_tokens_free(tokens);
  return result;
}

static napi_value take_text(napi_env env, tessera_text* text) {
  napi_value result = NULL;
  napi_create_string_utf8(env, tessera_text_data(text), tessera_text_size(text), &result);
  tessera_text_free(text);
  return result;
}

/* decode(engine, tokens): the text of an Int32Array */
static napi_value decode(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  napi_typedarray_type type;
  size_t count = 0;
  void* tokens = NULL;
  if (napi_get_typedarray_info(env, given[1], &type, &count, &tokens, NULL, NULL) != napi_ok ||
      type != napi_int32_array) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected an Int32Array");
    return NULL;
  }
  tessera_text* text = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_decode(handle_of(env, given[0]), tokens, count, TESSERA_CONTROL_OMIT,
                                      TESSERA_START_SEQUENCE, &text, &error);
  return code == TESSERA_OK ? take_text(env, text) : fail(env, code, error);
}

/* createScheduler(engine, json) */
static napi_value create_scheduler(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  tessera_scheduler_options options;
  tessera_options_init(&options, sizeof options);
  char* json = text_of(env, given[1], &options.json_size);
  if (json == NULL) return NULL;
  options.json = json;
  tessera_scheduler* scheduler = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_create(handle_of(env, given[0]), &options, &scheduler, &error);
  free(json);
  return code == TESSERA_OK ? new_box(env, scheduler, free_scheduler) : fail(env, code, error);
}

static napi_value start(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_start(handle_of(env, given[0]), &error);
  return code == TESSERA_OK ? NULL : fail(env, code, error);
}

/* figures(scheduler): JSON */
static napi_value figures(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  tessera_text* text = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_figures(handle_of(env, given[0]), &text, &error);
  return code == TESSERA_OK ? take_text(env, text) : fail(env, code, error);
}

/* tryNext(request): {text, token}; null if nothing is ready; undefined at the end */
static napi_value try_next(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS], result = NULL, text = NULL, token = NULL;
  arguments(env, info, given);
  tessera_request* request = handle_of(env, given[0]);
  const bool ended =
      tessera_request_state(request) == TESSERA_REQUEST_ENDED; /* first: what ends behind this may still have pieces */
  const tessera_piece* piece = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_request_try_next(request, &piece, &error);
  if (code != TESSERA_OK) return fail(env, code, error);
  if (piece == NULL) {
    if (!ended) napi_get_null(env, &result);
    return result;
  }
  size_t size = 0;
  const char* bytes = tessera_piece_text(piece, &size);
  napi_create_object(env, &result);
  napi_create_string_utf8(env, bytes, size, &text);
  napi_create_int32(env, tessera_piece_token(piece), &token);
  napi_set_named_property(env, result, "text", text);
  napi_set_named_property(env, result, "token", token);
  return result;
}

static napi_value cancel(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  tessera_request_cancel(handle_of(env, given[0]));
  return NULL;
}

/* close(handle): frees the handle now, and not when the garbage collector comes */
static napi_value close_box(napi_env env, napi_callback_info info) {
  napi_value given[MOST_ARGUMENTS];
  arguments(env, info, given);
  struct box* box = box_of(env, given[0]);
  if (box != NULL) {
    box->closed = true;
    settle(box);
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  static const struct {
    const char* name;
    napi_callback function;
  } functions[] = {{"load", load},     {"encode", encode},  {"decode", decode},   {"createScheduler", create_scheduler},
                   {"start", start},   {"submit", submit},  {"figures", figures}, {"tryNext", try_next},
                   {"cancel", cancel}, {"close", close_box}};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    napi_value function = NULL;
    if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL, &function) !=
        napi_ok)
      return NULL;
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}
