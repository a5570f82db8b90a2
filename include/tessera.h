/* The C ABI of tessera, an LLM inference library: for C, and for every language that can call C. Library: libtessera-c.
 *
 *   tessera_engine* engine = NULL;
 *   tessera_error* error = NULL;
 *   if (tessera_engine_load("model.gguf", 10, NULL, &engine, &error) != TESSERA_OK) {
 *     fprintf(stderr, "%s\n", tessera_error_text(error));
 *     tessera_error_free(error);
 *   }
 *   tessera_engine_free(engine);
 *
 * Rules, which hold for every function unless its comment says otherwise:
 *   Handles   A handle is a pointer that only this library reads. Free it by its own tessera_X_free(), which accepts NULL. Using a handle
 *             after it was freed, or freeing it twice, is undefined behaviour. NULL, or a handle of another kind, is invalid_argument; a
 *             function that returns no code then returns 0 or NULL. Handles keep alive what they need, so free them in any order.
 *   Errors    A function that can fail returns a code: TESSERA_OK (0) or the reason. Its last argument may be NULL. If the function fails,
 *             *error becomes an error that the caller frees. If the function succeeds, *error becomes NULL; an older error in *error is not
 *             freed. Out parameters become NULL or 0 when a call begins, so do not pass a variable that still holds a handle. After an
 *             error the handles are as they were, and usable.
 *   Texts in  UTF-8, as a pointer and a number of bytes, without a final zero byte. NULL with 0 bytes is the empty text.
 *   Texts out A view has a stated lifetime. The caller frees a tessera_text. All texts out also have a final zero byte.
 *   Options   A struct whose first member is its size: zero it and set the size by tessera_options_init(). Zero is the default of every
 *             member; NULL instead of a struct means all defaults. A struct that is larger than the library knows is accepted if the rest
 *             is zero; otherwise the error is `unsupported`. A smaller struct is accepted if it has the size of an older version. All other
 *             options are a JSON object (docs/reference/c-options.md lists the keys). An empty text means the defaults. An unknown key is an
 *             error that names the key and, if a known key is similar, that key; if none is, all known keys.
 *   Callbacks A function and a `user` pointer. A callback must not throw and must not longjmp; a C++ exception becomes callback_failed
 *             where possible. The library calls `drop`, if set, with `user` exactly once, when it will not call the callbacks again, also
 *             if the function that got the struct fails. Exception: a struct whose size is refused.
 *   Threads   "any thread": several threads may call at once. "one at a time": one call at a time for each handle; other handles do not
 *             matter. Default: functions of an engine, a grammar, an error, a text, tokens or a stop are for any thread, and functions of
 *             other handles are one at a time. Free a handle only when no call uses it.
 * Numbers of constants never change, and functions are only added within one TESSERA_ABI_VERSION. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TESSERA_ABI_VERSION 0 /* the number in the library's name: libtessera-c.so.0 */
#define TESSERA_API_VERSION 1 /* grows with every version of the library that adds functions, members of structs or constants */

#if defined(TESSERA_C_STATIC)
#define TESSERA_API
#elif defined(_WIN32)
#if defined(TESSERA_C_BUILD)
#define TESSERA_API __declspec(dllexport)
#else
#define TESSERA_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define TESSERA_API __attribute__((visibility("default")))
#else
#define TESSERA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tessera_error tessera_error;
typedef struct tessera_text tessera_text;                 /* bytes, UTF-8 unless said otherwise */
typedef struct tessera_tokens tessera_tokens;             /* a list of tokens */
typedef struct tessera_stop tessera_stop;                 /* stops calls from any thread */
typedef struct tessera_engine tessera_engine;             /* a loaded model */
typedef struct tessera_detokenizer tessera_detokenizer;   /* a stream of tokens that becomes text */
typedef struct tessera_session tessera_session;           /* a sequence: its tokens, their keys and values, logits */
typedef struct tessera_adapter tessera_adapter;           /* a small change of the model's weights (LoRA) */
typedef struct tessera_outputs tessera_outputs;           /* results of rows of several sessions, or of texts */
typedef struct tessera_sampler tessera_sampler;           /* draws tokens */
typedef struct tessera_grammar tessera_grammar;           /* the texts that are allowed, compiled for an engine's vocabulary */
typedef struct tessera_generation tessera_generation;     /* text that a session is writing */
typedef struct tessera_piece tessera_piece;               /* a piece of a generated text; belongs to the handle that returned it */
typedef struct tessera_conversation tessera_conversation; /* messages, and a session whose tokens match them */
typedef struct tessera_answer tessera_answer;             /* the answer to a conversation's last message */
typedef struct tessera_scheduler tessera_scheduler;       /* many requests on one engine */
typedef struct tessera_request tessera_request;           /* a request to a scheduler */

enum { /* error codes: docs/reference/errors.md says what to do about each code */
  TESSERA_OK = 0, TESSERA_INVALID_ARGUMENT = 1, TESSERA_INVALID_STATE = 2, TESSERA_NOT_FOUND = 3, TESSERA_UNSUPPORTED = 4,
  TESSERA_CORRUPT_FILE = 5, TESSERA_IO = 6, TESSERA_OUT_OF_MEMORY = 7, TESSERA_OVER_BUDGET = 8, TESSERA_CACHE_FULL = 9,
  TESSERA_CANCELLED = 10, TESSERA_CALLBACK_FAILED = 11, TESSERA_NUMERIC = 12, TESSERA_INTERNAL = 13, TESSERA_DEVICE_ERROR = 14,
  TESSERA_BUSY = 15, TESSERA_TOO_LATE = 16
};
enum { /* why a text ended */
  TESSERA_FINISH_NONE = 0, TESSERA_FINISH_MAX_TOKENS = 1, TESSERA_FINISH_END_OF_GENERATION = 2, TESSERA_FINISH_STOP_TOKEN = 3,
  TESSERA_FINISH_STOP_STRING = 4, TESSERA_FINISH_CALLBACK = 5, TESSERA_FINISH_ERROR = 6, TESSERA_FINISH_CANCELLED = 7
};

/* ---- The library ---- */
TESSERA_API const char* tessera_version(void);      /* "0.1.0"; lives for ever */
TESSERA_API int32_t tessera_abi_version(void);      /* TESSERA_ABI_VERSION of the library that runs */
TESSERA_API int32_t tessera_api_version(void);      /* TESSERA_API_VERSION of the library that runs */
/* Checks that the library that runs has everything that a program was compiled for: pass TESSERA_ABI_VERSION and TESSERA_API_VERSION.
 * Error: unsupported, with both versions. */
TESSERA_API int32_t tessera_check_version(int32_t abi_version, int32_t api_version, tessera_error** error);
/* Fills a struct of options of `size` bytes with zeros, and sets its size: tessera_options_init(&options, sizeof options). */
TESSERA_API void tessera_options_init(void* options, size_t size);
TESSERA_API const char* tessera_code_name(int32_t code); /* "out of memory"; "?" for a number without a name; lives for ever */

/* Views of an error, valid until it is freed. text: "place: message", one line. NULL: code 0, empty texts. */
TESSERA_API int32_t tessera_error_code(const tessera_error* error);
TESSERA_API const char* tessera_error_text(const tessera_error* error);
TESSERA_API const char* tessera_error_message(const tessera_error* error);
TESSERA_API const char* tessera_error_place(const tessera_error* error); /* a file, a key, a position; may be empty */
TESSERA_API void tessera_error_free(tessera_error* error);

TESSERA_API const char* tessera_text_data(const tessera_text* text); /* valid until the text is freed; NULL if `text` is NULL */
TESSERA_API size_t tessera_text_size(const tessera_text* text);      /* bytes, without the final zero byte */
TESSERA_API void tessera_text_free(tessera_text* text);

TESSERA_API const int32_t* tessera_tokens_data(const tessera_tokens* tokens); /* valid until the tokens are freed */
TESSERA_API size_t tessera_tokens_count(const tessera_tokens* tokens);
TESSERA_API void tessera_tokens_free(tessera_tokens* tokens);

/* A stop may be passed to any number of calls, and freed before the calls end. A stop that was requested stays requested. */
TESSERA_API int32_t tessera_stop_create(tessera_stop** stop, tessera_error** error);
TESSERA_API void tessera_stop_request(tessera_stop* stop); /* calls with this stop end with `cancelled`, after the layer that they compute */
TESSERA_API void tessera_stop_free(tessera_stop* stop);

/* Bytes that the host reads for the library: a model, a saved session. */
typedef struct tessera_source {
  size_t size;            /* bytes of this struct */
  uint64_t bytes;         /* bytes of the source */
  /* Copies bytes [offset, offset + n) to `to`; returns 0, or any other number for an error. Called from several threads at once. */
  int32_t (*read)(void* user, uint64_t offset, void* to, size_t n);
  void* user;
  void (*drop)(void* user);
  const char* name;       /* for errors; copied */
  size_t name_size;
} tessera_source;

/* ---- Engine ---- */
enum { TESSERA_LOG_DEBUG = 0, TESSERA_LOG_INFO = 1, TESSERA_LOG_WARNING = 2, TESSERA_LOG_ERROR = 3 };

typedef struct tessera_engine_options {
  size_t size;
  const char* json;       /* context, threads, kv_dtype, memory_budget, ...: docs/reference/c-options.md#engine */
  size_t json_size;
  const tessera_stop* stop; /* cancels loading */
  void* user;
  void (*drop)(void* user);
  /* Called while weights are read, on the calling thread. Returns 0 to go on; any other number cancels. */
  int32_t (*progress)(void* user, uint64_t done, uint64_t total);
  /* Called on any thread that calls into tessera, by one thread at a time for an engine. `message` is one line, ended by a zero byte, and
   * valid during the call. */
  void (*log)(void* user, int32_t level, const char* message, size_t message_size);
  /* The host's threads instead of the engine's own. Calls task(context, i) once for each i below n, on any threads, and returns when all
   * tasks are done. Called by one thread at a time for an engine. If a task was not called, the library runs it itself. */
  void (*parallel_for)(void* user, size_t n, void (*task)(void* context, size_t i), void* context);
  uint64_t concurrency;   /* tasks that parallel_for runs at once; needed with parallel_for */
  void* cuda_stream;      /* backend cuda: the host's CUstream, which must outlive the engine; NULL: a stream of the engine's own */
} tessera_engine_options;

/* Loads a GGUF file (with all its parts if it is split), or a folder as hubs publish models (config.json and safetensors files). Errors
 * name the file, and the key or tensor. */
TESSERA_API int32_t tessera_engine_load(const char* path, size_t path_size, const tessera_engine_options* options, tessera_engine** engine,
                                        tessera_error** error);
/* Loads a model of one part that the host reads. The source is not needed afterwards. */
TESSERA_API int32_t tessera_engine_load_source(const tessera_source* source, const tessera_engine_options* options, tessera_engine** engine,
                                               tessera_error** error);
/* Returns as JSON the bytes that loading with these options would take, without loading: weights, kv, peak, ... */
TESSERA_API int32_t tessera_plan(const char* path, size_t path_size, const tessera_engine_options* options, tessera_text** json,
                                 tessera_error** error);
/* Return JSON. plan: the bytes of this engine. explain: the kernel of each operation. metadata: the model's sizes, and its file's keys (lists
 * left out). figures: KV memory and the prefix index now. */
TESSERA_API int32_t tessera_engine_plan(const tessera_engine* engine, tessera_text** json, tessera_error** error);
TESSERA_API int32_t tessera_engine_explain(const tessera_engine* engine, tessera_text** json, tessera_error** error);
TESSERA_API int32_t tessera_engine_metadata(const tessera_engine* engine, tessera_text** json, tessera_error** error);
TESSERA_API int32_t tessera_engine_figures(const tessera_engine* engine, tessera_text** json, tessera_error** error);
TESSERA_API size_t tessera_engine_vocabulary_size(const tessera_engine* engine); /* logits of a row */
TESSERA_API size_t tessera_engine_embedding_size(const tessera_engine* engine);  /* numbers of a hidden state */
TESSERA_API size_t tessera_engine_context(const tessera_engine* engine);         /* tokens of a session at most */
TESSERA_API void tessera_engine_trim(tessera_engine* engine);                    /* frees KV pages that no session uses */
TESSERA_API void tessera_engine_free(tessera_engine* engine);                    /* sessions and other handles keep the model */

/* ---- Tokens and text ---- */
enum { TESSERA_BOS_AS_MODEL = 0, TESSERA_BOS_ALWAYS = 1, TESSERA_BOS_NEVER = 2 };       /* BOS and EOS around a sequence */
enum { TESSERA_SPECIAL_AS_TEXT = 0, TESSERA_SPECIAL_PARSE = 1 };  /* "<|im_end|>" in a text: as letters, or as the control token */
enum { TESSERA_CONTROL_OMIT = 0, TESSERA_CONTROL_SHOW = 1 };      /* control tokens in decoded text: left out, or their names */
enum { TESSERA_START_SEQUENCE = 0, TESSERA_START_CONTINUATION = 1 }; /* decoded text begins a sequence, or goes on */
enum { TESSERA_TOKEN_CONTROL = 1, TESSERA_TOKEN_END = 2, TESSERA_TOKEN_SUPPRESSED = 4 }; /* bits; END: ends a text or a turn */

/* Returns the tokens of a text. Any bytes can be encoded. Errors: invalid_state, a model without a vocabulary. */
TESSERA_API int32_t tessera_encode(const tessera_engine* engine, const char* text, size_t text_size, int32_t bos, int32_t special,
                                   tessera_tokens** tokens, tessera_error** error);
/* Returns the text of tokens: always UTF-8, with U+FFFD for bytes that form no character. */
TESSERA_API int32_t tessera_decode(const tessera_engine* engine, const int32_t* tokens, size_t count, int32_t control, int32_t start,
                                   tessera_text** text, tessera_error** error);
/* Returns the bytes that a token adds to a text; none for control tokens. Valid as long as the engine; no zero byte at the end. */
TESSERA_API int32_t tessera_token_bytes(const tessera_engine* engine, int32_t token, const char** bytes, size_t* size,
                                        tessera_error** error);
TESSERA_API int32_t tessera_token_flags(const tessera_engine* engine, int32_t token); /* TESSERA_TOKEN_... */
/* Returns the token that has this text in the vocabulary ("<|im_end|>"). Error: not_found. */
TESSERA_API int32_t tessera_find_token(const tessera_engine* engine, const char* text, size_t text_size, int32_t* token,
                                       tessera_error** error);
TESSERA_API int32_t tessera_bos_token(const tessera_engine* engine); /* -1: the model has none */
TESSERA_API int32_t tessera_eos_token(const tessera_engine* engine); /* -1: the model has none */

/* Makes a stream that turns tokens into text one at a time, for hosts that draw tokens themselves. */
TESSERA_API int32_t tessera_detokenizer_create(const tessera_engine* engine, int32_t control, int32_t start, tessera_detokenizer** stream,
                                               tessera_error** error);
/* Takes a token and returns the text that is certain now: whole characters, possibly none. Valid until the next call of the stream. */
TESSERA_API int32_t tessera_detokenizer_push(tessera_detokenizer* stream, int32_t token, const char** text, size_t* size,
                                             tessera_error** error);
/* Ends the stream and returns the text that was held back. A new stream may begin. */
TESSERA_API int32_t tessera_detokenizer_finish(tessera_detokenizer* stream, const char** text, size_t* size, tessera_error** error);
TESSERA_API void tessera_detokenizer_free(tessera_detokenizer* stream);

/* ---- Session ---- A second call at the same time, also from a callback, returns invalid_state. So does a call that changes the session
 * while a generation of the session has not ended. A session that a scheduler has taken is empty: its functions return invalid_state, and
 * its positions are 0. These calls change a session, and so end the life of its views: append, score, add_pending, truncate, remove,
 * keep_window, suspend, resume, use_adapters, tessera_forward() with the session, and tessera_generation_next() of its generation. */
enum { TESSERA_LOGITS_LAST = 0, TESSERA_LOGITS_ALL = 1, TESSERA_LOGITS_NONE = 2 };

typedef struct tessera_append_options {
  size_t size;
  int32_t logits;           /* tokens whose logits are wanted: TESSERA_LOGITS_... */
  int32_t reserved;
  const size_t* rows;       /* instead of `logits`: indices of the appended tokens whose logits are wanted, ascending */
  size_t row_count;
  const tessera_stop* stop; /* checked before every layer */
  /* Called after each step of a long prompt with the number of computed tokens and of all tokens, on the calling thread. Returns 0 to go
   * on; any other number cancels. */
  int32_t (*progress)(void* user, size_t done, size_t total);
  void* user;               /* argument of progress; used only during the call, so there is no drop */
} tessera_append_options;

/* Makes an empty session. json: context, kv_dtype, window, ...: docs/reference/c-options.md#session */
TESSERA_API int32_t tessera_session_create(const tessera_engine* engine, const char* json, size_t json_size, tessera_session** session,
                                           tessera_error** error);
/* Appends tokens and computes them, pending tokens first. Without tokens, computes the pending tokens. Errors: invalid_argument, a token
 * that is not in the vocabulary; cache_full (if `count` is above the context, before any token is read); cancelled. After an error the
 * session is as it was. */
TESSERA_API int32_t tessera_session_append(tessera_session* session, const int32_t* tokens, size_t count,
                                           const tessera_append_options* options, tessera_error** error);
/* Returns the logits [rows][vocabulary] that the last append asked for, or the logits after the last token if the last call was another
 * function. 0 rows: the logits are not known. A view into the session, valid until the next call that changes it. */
TESSERA_API int32_t tessera_session_logits(const tessera_session* session, const float** values, size_t* rows, size_t* vocabulary,
                                           tessera_error** error);
/* Returns all tokens, pending ones included; -1 for an embedding. Valid until the next call that changes the session. */
TESSERA_API int32_t tessera_session_tokens(const tessera_session* session, const int32_t** tokens, size_t* count, tessera_error** error);
TESSERA_API size_t tessera_session_position(const tessera_session* session);        /* tokens whose keys and values are computed */
TESSERA_API uint64_t tessera_session_next_position(const tessera_session* session); /* for tessera_sampler_sample() */
TESSERA_API int32_t tessera_session_info(const tessera_session* session, tessera_text** json, tessera_error** error); /* sizes, JSON */
/* Appends the tokens, and writes ln p(token | all tokens before it) of each token to scores [count]. If the session was empty, scores[0]
 * is NaN. */
TESSERA_API int32_t tessera_session_score(tessera_session* session, const int32_t* tokens, size_t count, float* scores,
                                          const tessera_append_options* options, tessera_error** error);
TESSERA_API int32_t tessera_session_add_pending(tessera_session* session, int32_t token, tessera_error** error); /* the next call computes it */
/* Drops the tokens from `position` on, if there are any. */
TESSERA_API int32_t tessera_session_truncate(tessera_session* session, size_t position, tessera_error** error);
/* Removes tokens [first, last). Later tokens move up. The session is then edited: its keys and values are not those that the model would
 * compute. Error: unsupported, for example with recurrent layers or loaded draft heads. */
TESSERA_API int32_t tessera_session_remove(tessera_session* session, size_t first, size_t last, tessera_error** error);
/* Keeps the first `sinks` and the last `window` tokens, and removes the tokens between, as tessera_session_remove() does. */
TESSERA_API int32_t tessera_session_keep_window(tessera_session* session, size_t sinks, size_t window, tessera_error** error);
/* Returns another session with the same tokens, which shares keys and values until one of the two writes. */
TESSERA_API int32_t tessera_session_fork(const tessera_session* session, tessera_session** fork, tessera_error** error);
/* Returns a copy with its own keys and values; with json, in another KV type, layout or page size (the kv_ keys of a session). */
TESSERA_API int32_t tessera_session_copy(const tessera_session* session, const char* json, size_t json_size, tessera_session** copy,
                                         tessera_error** error);
/* Move keys and values to the engine's kv_file, and back. Calls that need keys and values resume the session by themselves. Exception:
 * fork, copy, verify and save. */
TESSERA_API int32_t tessera_session_suspend(tessera_session* session, tessera_error** error);
TESSERA_API int32_t tessera_session_resume(tessera_session* session, tessera_error** error);
/* Computes the sequence again and compares bit by bit. json: {"verdict": "same" | "differs" | "unverifiable", "what", ...}. */
TESSERA_API int32_t tessera_session_verify(const tessera_session* session, const tessera_stop* stop, tessera_text** json,
                                           tessera_error** error);
/* Write everything that the session needs to go on with the same bits: to a file, which appears only when it is complete; or to `sink`. The
 * library calls `sink` on the calling thread with pieces in order. `sink` returns 0, or any other number for an error (io). */
TESSERA_API int32_t tessera_session_save(const tessera_session* session, const char* path, size_t path_size, tessera_error** error);
TESSERA_API int32_t tessera_session_save_to(const tessera_session* session, int32_t (*sink)(void* user, const void* bytes, size_t n),
                                            void* user, tessera_error** error);
/* Read a saved session: from a file, or from the host. json: the options, as for a new session. */
TESSERA_API int32_t tessera_session_restore(const tessera_engine* engine, const char* path, size_t path_size, const char* json,
                                            size_t json_size, tessera_session** session, tessera_error** error);
TESSERA_API int32_t tessera_session_restore_from(const tessera_engine* engine, const tessera_source* source, const char* json,
                                                 size_t json_size, tessera_session** session, tessera_error** error);
TESSERA_API void tessera_session_free(tessera_session* session); /* a generation of the session goes on */

/* ---- Adapters ---- A small change of the model's weights, such as a style or a task (docs/howto/adapters.md). Each session has its own
 * adapters, and sessions with different adapters are computed in one step. The bits of a session depend only on its own adapters. */
#define TESSERA_FROM_DEFAULT UINT64_MAX

typedef struct tessera_adapter_options {
  size_t size;
  const tessera_stop* stop; /* cancels loading */
  /* The model's source again, for an engine that was loaded from a source. Only adapters with lengths of rows (DoRA) need the source: their
   * lengths are computed from the model's weights. The source is not needed afterwards. */
  const tessera_source* base;
} tessera_adapter_options;

/* The adapters that a session uses: three lists of `count`. */
typedef struct tessera_adapter_list {
  size_t size;
  const tessera_adapter* const* adapters;
  const float* scales;      /* factor of each adapter's change; 0: the adapter is not used. NULL: 1 for all */
  /* First position that each adapter changes. TESSERA_FROM_DEFAULT (NULL: for all adapters) means 0 for an adapter without an invocation.
   * For an adapter with an invocation it means the last place in the tokens of a call (tessera_session_append(), a prompt) where the
   * invocation begins; until a call's tokens contain the invocation, the adapter is not active. */
  const uint64_t* from;
  size_t count;
} tessera_adapter_list;

/* Loads an adapter for the engine's model: a GGUF file, or a folder of PEFT (adapter_config.json). Sessions may compute meanwhile. The same
 * adapter, loaded twice, takes memory once. Any thread. Errors name the file and the tensor or key: not_found; corrupt_file; unsupported, such
 * as an adapter for another architecture; over_budget, too little of the engine's "adapter_budget" is left; io; cancelled. */
TESSERA_API int32_t tessera_adapter_load(const tessera_engine* engine, const char* path, size_t path_size,
                                         const tessera_adapter_options* options, tessera_adapter** adapter, tessera_error** error);
/* Return the name of the adapter, and of the model for which it was made, as its file says; "" if the file does not. Any thread, as for all
 * functions of an adapter. Valid until the adapter is freed. */
TESSERA_API const char* tessera_adapter_name(const tessera_adapter* adapter);
TESSERA_API const char* tessera_adapter_base_name(const tessera_adapter* adapter);
TESSERA_API uint64_t tessera_adapter_bytes(const tessera_adapter* adapter); /* bytes of memory that the adapter takes */
TESSERA_API uint32_t tessera_adapter_rank(const tessera_adapter* adapter);  /* the largest rank of the adapter's matrices */
/* Returns the tokens from whose beginning on the adapter is active (aLoRA); 0 tokens: it is active from the first token on. Valid until the
 * adapter is freed. */
TESSERA_API int32_t tessera_adapter_invocation(const tessera_adapter* adapter, const int32_t** tokens, size_t* count, tessera_error** error);
/* Returns JSON: name, base_name, content (a hash of the numbers), bytes, rank, matrices, invocation. */
TESSERA_API int32_t tessera_adapter_info(const tessera_adapter* adapter, tessera_text** json, tessera_error** error);
TESSERA_API void tessera_adapter_free(tessera_adapter* adapter); /* sessions and requests that use the adapter keep its numbers */
/* Replaces the adapters of a session; NULL or a count of 0: none. The tokens stay. Tokens whose keys and values would differ become
 * pending, and the next call computes them again. tessera_session_info() lists the adapters. Errors: invalid_argument, an adapter of
 * another engine, or a scale that is no number; invalid_state, an edited session whose computed tokens would change; unsupported,
 * embeddings among these tokens. */
TESSERA_API int32_t tessera_session_use_adapters(tessera_session* session, const tessera_adapter_list* adapters, tessera_error** error);

/* ---- Many sessions in one pass, hidden states, embeddings ---- */
enum { TESSERA_WANT_NOTHING = 0, TESSERA_WANT_LOGITS = 1, TESSERA_WANT_HIDDEN = 2, TESSERA_WANT_EMBEDDING = 4 }; /* the result of a row */

typedef struct tessera_forward_options {
  size_t size;
  int32_t every_row;        /* 0: `want` is for the last row of each session; 1: for every row */
  int32_t reserved;
  const float* embeddings;  /* [rows][embedding_size], instead of tokens */
  uint32_t first_layer;     /* layers [first_layer, last_layer) are computed; a last_layer of 0: all */
  uint32_t last_layer;
  const tessera_stop* stop;
} tessera_forward_options;

/* Computes rows of several sessions in one pass. Session i gets counts[i] tokens; `tokens` has the tokens of session 0 first. A session
 * that cannot be computed stays as it was, and the other sessions go on (tessera_outputs_row() returns the error). Error: if all sessions
 * failed, the error of the first session. */
TESSERA_API int32_t tessera_forward(const tessera_engine* engine, tessera_session* const* sessions, const size_t* counts,
                                    size_t session_count, const int32_t* tokens, int32_t want, const tessera_forward_options* options,
                                    tessera_outputs** outputs, tessera_error** error);
/* Returns the numbers of row i, counted over all sessions (for texts: the vector of text i); 0 numbers if the row wanted nothing. Valid
 * until the outputs are freed. Errors: the error with which the row's session failed; invalid_argument, there is no such row. */
TESSERA_API int32_t tessera_outputs_row(const tessera_outputs* outputs, size_t row, const float** values, size_t* count,
                                        tessera_error** error);
TESSERA_API void tessera_outputs_free(tessera_outputs* outputs);
/* Writes the embedding of a text's tokens to values [value_count]; value_count must be the size of the embedding (the error says the size).
 * json: as for tessera_embed_texts(). */
TESSERA_API int32_t tessera_embed(const tessera_engine* engine, const int32_t* tokens, size_t count, const char* json, size_t json_size,
                                  float* values, size_t value_count, tessera_error** error);
/* Computes the embeddings of texts; text i has sizes[i] bytes. Row i of `vectors` (tessera_outputs_row()) is the vector of text i, and does
 * not depend on the other texts. json: docs/reference/c-options.md#embedding. Errors: invalid_state, the engine has no tokenizer. */
TESSERA_API int32_t tessera_embed_texts(const tessera_engine* engine, const char* const* texts, const size_t* sizes, size_t count,
                                        const char* json, size_t json_size, tessera_outputs** vectors, tessera_error** error);
/* Writes a score for each of `count` documents to scores: the higher, the better the document answers the query. json:
 * docs/reference/c-options.md#rerank. Error: unsupported, the model does not rank. */
TESSERA_API int32_t tessera_rerank(const tessera_engine* engine, const char* query, size_t query_size, const char* const* documents,
                                   const size_t* sizes, size_t count, const char* json, size_t json_size, float* scores, tessera_error** error);

/* ---- Grammar ---- */
enum { TESSERA_GRAMMAR_JSON_SCHEMA = 0, TESSERA_GRAMMAR_REGEX = 1, TESSERA_GRAMMAR_EBNF = 2, TESSERA_GRAMMAR_JSON = 3 };

/* Compiles a grammar. For TESSERA_GRAMMAR_JSON `text` is empty. json: docs/reference/c-options.md#grammar, only for schemas. */
TESSERA_API int32_t tessera_grammar_create(const tessera_engine* engine, int32_t kind, const char* text, size_t text_size, const char* json,
                                           size_t json_size, tessera_grammar** grammar, tessera_error** error);
/* Checks a whole text. accepted: 1 or 0. at: index of the first byte that is not allowed (the size, if the text is too short). expected,
 * which may be NULL: says in words which bytes are allowed there. A text that is not accepted is no error. */
TESSERA_API int32_t tessera_grammar_check(const tessera_grammar* grammar, const char* text, size_t text_size, int32_t* accepted, size_t* at,
                                          tessera_text** expected, tessera_error** error);
TESSERA_API void tessera_grammar_free(tessera_grammar* grammar);

/* ---- Sampler ---- */
typedef struct tessera_sampler_options {
  size_t size;
  const char* json;         /* temperature, top_p, seed, ... or "stages": docs/reference/c-options.md#sampler */
  size_t json_size;
  const tessera_grammar* grammar; /* the first stage; NULL: none */
  void* user;
  void (*drop)(void* user);
  /* A stage of the host, after the grammar and before the other stages. Changes the logits [count] of `tokens` [count]; -INFINITY removes a
   * token. Returns 0, or any other number for an error (callback_failed). Called on the thread that draws. */
  int32_t (*stage)(void* user, const int32_t* tokens, float* logits, size_t count);
} tessera_sampler_options;

/* Makes a sampler. NULL options, or options without a stage: draws from the plain softmax with seed 0. (A request or an answer without a
 * sampler takes the likeliest token instead.) */
TESSERA_API int32_t tessera_sampler_create(const tessera_engine* engine, const tessera_sampler_options* options, tessera_sampler** sampler,
                                           tessera_error** error);
TESSERA_API int32_t tessera_sampler_clone(const tessera_sampler* sampler, tessera_sampler** clone, tessera_error** error);
/* Begins an answer that follows `tokens`, where the next position is `position`: penalties count from here, and a grammar begins anew unless
 * its text goes on. Generations and schedulers do this themselves; a host that uses tessera_sampler_sample() must call
 * tessera_sampler_begin(). */
TESSERA_API int32_t tessera_sampler_begin(tessera_sampler* sampler, const int32_t* tokens, size_t count, uint64_t position,
                                          tessera_error** error);
/* Draws the token at `position` from logits [count], after `history`. Call tessera_sampler_accept() with the token that the sequence took.
 * sample, accept, rollback and begin return invalid_state while a generation with the sampler has not ended. */
TESSERA_API int32_t tessera_sampler_sample(tessera_sampler* sampler, const float* logits, size_t count, const int32_t* history,
                                           size_t history_count, uint64_t position, int32_t* token, tessera_error** error);
TESSERA_API int32_t tessera_sampler_accept(tessera_sampler* sampler, int32_t token, tessera_error** error);
TESSERA_API int32_t tessera_sampler_rollback(tessera_sampler* sampler, size_t count, tessera_error** error); /* undoes the last `count` accepts */
TESSERA_API void tessera_sampler_free(tessera_sampler* sampler); /* a generation with the sampler goes on */

/* ---- Generation ---- */
typedef struct tessera_generate_options {
  size_t size;
  const char* json;         /* max_tokens, stop, logprobs, ...: docs/reference/c-options.md#generate */
  size_t json_size;
  const tessera_stop* stop;
} tessera_generate_options;

/* Begins a text. The generation has session and sampler to itself until its last piece, its error or tessera_generation_free(): calls that
 * change session or sampler before that return invalid_state. Other generations need their own sampler: tessera_sampler_clone(). Errors:
 * invalid_state, session or sampler are in use, or the session is empty or was given to a scheduler; invalid_argument, an option. Errors
 * while computing, such as cache_full or cancelled, come from tessera_generation_next(). */
TESSERA_API int32_t tessera_session_generate(tessera_session* session, tessera_sampler* sampler, const tessera_generate_options* options,
                                             tessera_generation** generation, tessera_error** error);
/* Computes the next piece. *piece is NULL after the last one. Valid until the next call of the generation. An error ends the generation,
 * and every further call returns the same error. */
TESSERA_API int32_t tessera_generation_next(tessera_generation* generation, const tessera_piece** piece, tessera_error** error);
TESSERA_API int32_t tessera_generation_finish_reason(const tessera_generation* generation); /* TESSERA_FINISH_... */
TESSERA_API int32_t tessera_generation_figures(const tessera_generation* generation, tessera_text** json, tessera_error** error);
TESSERA_API void tessera_generation_free(tessera_generation* generation); /* the delivered tokens stay in the session */

enum { /* kinds of pieces; only answers have kinds other than text */
  TESSERA_PIECE_TEXT = 0, TESSERA_PIECE_REASONING = 1, TESSERA_PIECE_CALL_BEGIN = 2, TESSERA_PIECE_CALL_ARGUMENTS = 3,
  TESSERA_PIECE_CALL_END = 4
};
TESSERA_API int32_t tessera_piece_kind(const tessera_piece* piece);
/* Returns the text that became certain; for a call, the next part of its arguments (JSON). Lives as long as the piece. size may be NULL. */
TESSERA_API const char* tessera_piece_text(const tessera_piece* piece, size_t* size);
TESSERA_API int32_t tessera_piece_token(const tessera_piece* piece);         /* -1 in an answer */
/* Returns TESSERA_FINISH_NONE for pieces before the last one, and for all pieces of an answer (see tessera_answer_finish_reason()). */
TESSERA_API int32_t tessera_piece_finish_reason(const tessera_piece* piece);
TESSERA_API int32_t tessera_piece_stop_string(const tessera_piece* piece);   /* index of the stop string that ended the text; -1: none */
TESSERA_API size_t tessera_piece_sample(const tessera_piece* piece);         /* index of the request's sample, from 0 */
TESSERA_API float tessera_piece_logprob(const tessera_piece* piece);         /* ln p of the token, if logprobs were asked for */
TESSERA_API size_t tessera_piece_top_count(const tessera_piece* piece);      /* likeliest tokens, if asked for */
TESSERA_API int32_t tessera_piece_top(const tessera_piece* piece, size_t index, int32_t* token, float* logprob, tessera_error** error);
/* Return the number of a call, from 0; its name and id (CALL_BEGIN); and whether the call is broken, because it could not be read
 * completely (CALL_END): do not run a broken call. Each call that begins has a CALL_END, unless the answer ends with an error. If the
 * answer ends within a call (max_tokens, a stop), the call is broken. */
TESSERA_API size_t tessera_piece_call(const tessera_piece* piece);
TESSERA_API const char* tessera_piece_call_name(const tessera_piece* piece);
TESSERA_API const char* tessera_piece_call_id(const tessera_piece* piece);
TESSERA_API int32_t tessera_piece_call_is_broken(const tessera_piece* piece);

/* ---- Chat ---- Keys of a chat: messages, tools, add_generation_prompt. Keys of a message: role, content, reasoning_content, tool_calls,
 * tool_call_id, name. Other keys, also misspelt ones, are passed to the template and are no error. */
/* Renders {"messages": [...], "tools": [...], ...} by the model's template: as tokens, as text, or both; either may be NULL. options: JSON, the
 * keys of a conversation. Tools are left out if the template does not print them. */
TESSERA_API int32_t tessera_render_chat(const tessera_engine* engine, const char* json, size_t json_size, const char* options,
                                        size_t options_size, tessera_tokens** tokens, tessera_text** text, tessera_error** error);
/* Makes a conversation. json: as for tessera_render_chat(); may be empty. options: docs/reference/c-options.md#conversation. If the
 * template does not print tools, the prompt describes the tools in words, and the model's calls are read as "hermes". With the option
 * output_format, neither happens. */
TESSERA_API int32_t tessera_conversation_create(const tessera_engine* engine, const char* json, size_t json_size, const char* options,
                                                size_t options_size, tessera_conversation** conversation, tessera_error** error);
/* add: appends a message {"role": ..., "content": ...}. set: replaces messages, tools and arguments. get: returns them. add and set return
 * invalid_state during an answer. */
TESSERA_API int32_t tessera_conversation_add(tessera_conversation* conversation, const char* message, size_t message_size,
                                             tessera_error** error);
TESSERA_API int32_t tessera_conversation_set(tessera_conversation* conversation, const char* json, size_t json_size, tessera_error** error);
TESSERA_API int32_t tessera_conversation_get(const tessera_conversation* conversation, tessera_text** json, tessera_error** error);
/* Returns the tokens that the model is to read: the tokens that tessera_render_chat() makes of the messages, and the description of the
 * tools. */
TESSERA_API int32_t tessera_conversation_prompt(const tessera_conversation* conversation, tessera_tokens** tokens, tessera_error** error);
/* Removes old turns. json: {"keep_turns": 2, "summarise": false, ...}. report: what was removed, as JSON. */
TESSERA_API int32_t tessera_conversation_shorten(tessera_conversation* conversation, const char* json, size_t json_size,
                                                 tessera_text** report, tessera_error** error);
/* Computes the tokens that the model has not read yet, and begins an answer: beside the requests of a scheduler, or alone (`scheduler` is
 * NULL). At its end the answer becomes a message. json: max_tokens, sampler, tool_choice, ...: docs/reference/c-options.md#answer */
TESSERA_API int32_t tessera_conversation_answer(tessera_conversation* conversation, tessera_scheduler* scheduler, const char* json,
                                                size_t json_size, const tessera_stop* stop, tessera_answer** answer, tessera_error** error);
/* Replaces the adapters with which the conversation is computed, as tessera_session_use_adapters() does. The messages stay. Error:
 * invalid_state, during an answer. */
TESSERA_API int32_t tessera_conversation_use_adapters(tessera_conversation* conversation, const tessera_adapter_list* adapters,
                                                      tessera_error** error);
TESSERA_API void tessera_conversation_free(tessera_conversation* conversation);

/* Computes the next piece, or waits for it: text, reasoning or a call. *piece is NULL at the end. Valid until the answer's next call. */
TESSERA_API int32_t tessera_answer_next(tessera_answer* answer, const tessera_piece** piece, tessera_error** error);
TESSERA_API int32_t tessera_answer_finish_reason(const tessera_answer* answer); /* TESSERA_FINISH_...; NONE while the answer goes on */
TESSERA_API int32_t tessera_answer_message(const tessera_answer* answer, tessera_text** json, tessera_error** error); /* the answer so far */
TESSERA_API int32_t tessera_answer_figures(const tessera_answer* answer, tessera_text** json, tessera_error** error);
TESSERA_API void tessera_answer_free(tessera_answer* answer); /* an answer that is freed before its end becomes no message */

/* ---- Scheduler ---- */
enum { TESSERA_EVENT_QUEUED = 0, TESSERA_EVENT_SCHEDULED = 1, TESSERA_EVENT_FIRST_TOKEN = 2, TESSERA_EVENT_PREEMPTED = 3,
       TESSERA_EVENT_RESUMED = 4, TESSERA_EVENT_FINISHED = 5, TESSERA_EVENT_REFUSED = 6 };
enum { TESSERA_REQUEST_WAITING = 0, TESSERA_REQUEST_RUNNING = 1, TESSERA_REQUEST_PAUSED = 2,
       TESSERA_REQUEST_ENDED = 3 /* nothing more is computed; pieces, and the request's error, may still be unread */ };
#define TESSERA_WAIT_FOREVER INT64_MAX

typedef struct tessera_scheduler_options {
  size_t size;
  const char* json;         /* policy, max_waiting, max_running, ...: docs/reference/c-options.md#scheduler */
  size_t json_size;
  void* user;
  void (*drop)(void* user);
  double (*clock)(void* user); /* seconds that never go back; NULL: the system's steady clock */
  /* Called on the thread that drives or submits. on_event must not call the scheduler: in on_event and on_ready, start, stop,
   * wait_until_idle and step return invalid_state. */
  void (*on_event)(void* user, int32_t event, uint64_t request, double time);
} tessera_scheduler_options;

typedef struct tessera_submit_options {
  size_t size;
  const char* json;         /* max_tokens, stop, sampler, tenant, priority, deadline, ...: docs/reference/c-options.md#request */
  size_t json_size;
  const tessera_sampler* sampler; /* copied; NULL: the sampler of `json`, or without one the likeliest token */
  const tessera_stop* stop;
  void* user;
  void (*drop)(void* user);
  /* Called on the thread that drives, when there is something to read (a piece, or the end), and not again until tessera_request_try_next()
   * has returned NULL. on_ready must not call the scheduler or the request, only wake the reader (write to an eventfd). A reader's loop
   * must also look at tessera_request_state(), as described there. May be called once more after the request was freed. */
  void (*on_ready)(void* user);
  /* The adapters with which the request is computed, read during the call; NULL: the adapters of `session`, or none. An adapter whose
   * invocation is not in the prompt changes nothing. */
  const tessera_adapter_list* adapters;
} tessera_submit_options;

TESSERA_API int32_t tessera_scheduler_create(const tessera_engine* engine, const tessera_scheduler_options* options,
                                             tessera_scheduler** scheduler, tessera_error** error);
/* Submits a prompt; does not wait. The prompt follows the tokens of `session`, if there is one: the scheduler takes the contents of
 * `session`, and the handle is empty afterwards (invalid_state). Any thread. Errors: busy, the message says when to try again; too_late;
 * invalid_state, the scheduler drains. */
TESSERA_API int32_t tessera_scheduler_submit(tessera_scheduler* scheduler, const int32_t* tokens, size_t count, tessera_session* session,
                                             const tessera_submit_options* options, tessera_request** request, tessera_error** error);
TESSERA_API int32_t tessera_scheduler_cancel(tessera_scheduler* scheduler, uint64_t id, tessera_error** error); /* any thread; an unknown id is OK */
TESSERA_API int32_t tessera_scheduler_figures(const tessera_scheduler* scheduler, tessera_text** json, tessera_error** error); /* any thread */
TESSERA_API void tessera_scheduler_drain(tessera_scheduler* scheduler); /* refuses new requests from now on; any thread */
/* start: starts a thread that drives the scheduler. stop: ends this thread after the running step. One thread at a time may call start,
 * stop and wait_until_idle. Errors: invalid_state, the thread was started already (start) or was not started (stop). */
TESSERA_API int32_t tessera_scheduler_start(tessera_scheduler* scheduler, tessera_error** error);
TESSERA_API int32_t tessera_scheduler_stop(tessera_scheduler* scheduler, tessera_error** error);
/* Waits until all requests have ended. Errors: busy, all requests that are left are paused or unread; invalid_state, the scheduler is not
 * started. */
TESSERA_API int32_t tessera_scheduler_wait_until_idle(tessera_scheduler* scheduler, tessera_error** error);
/* Computes one step, for hosts with a loop of their own. *worked: 0 if there is nothing to do until a request is submitted, read or resumed,
 * or until tessera_scheduler_wake_time(). Any thread. While another thread computes a step (also the thread of tessera_scheduler_start()),
 * this call waits for that step, and then computes its own. */
TESSERA_API int32_t tessera_scheduler_step(tessera_scheduler* scheduler, int32_t* worked, tessera_error** error);
TESSERA_API double tessera_scheduler_wake_time(const tessera_scheduler* scheduler); /* time of the next work; INFINITY: never */
TESSERA_API void tessera_scheduler_free(tessera_scheduler* scheduler); /* stops its thread and cancels its requests */

/* Returns the next piece, and waits for it up to timeout_ns (TESSERA_WAIT_FOREVER). Drives the scheduler if it was not started. *piece is
 * NULL if the request has ended or is paused (tessera_request_state()), or if the time has passed. Valid until the request's next call.
 * Errors: the request's own error, after its last piece and in every further call; if the call drives the scheduler, the error of the
 * scheduler's steps when they fail again and again. After an error of the steps the request has not ended and nothing is lost: call again. */
TESSERA_API int32_t tessera_request_next(tessera_request* request, int64_t timeout_ns, const tessera_piece** piece, tessera_error** error);
/* Returns a piece that is ready, or NULL; does not wait and does not drive. Errors: as tessera_request_next(). */
TESSERA_API int32_t tessera_request_try_next(tessera_request* request, const tessera_piece** piece, tessera_error** error);
TESSERA_API void tessera_request_cancel(tessera_request* request); /* ends the request with `cancelled` at the next step; any thread */
TESSERA_API void tessera_request_pause(tessera_request* request);  /* no rows until tessera_request_resume() */
TESSERA_API void tessera_request_resume(tessera_request* request);
TESSERA_API uint64_t tessera_request_id(const tessera_request* request);
/* Returns TESSERA_REQUEST_...; for NULL, WAITING. ENDED does not mean that all pieces are read. Ask for the state, read until NULL, and ask
 * again. If the first state was ENDED, everything is read. If only the second state is ENDED, read until NULL once more, because on_ready
 * need not be called for the end. */
TESSERA_API int32_t tessera_request_state(const tessera_request* request);
TESSERA_API int32_t tessera_request_finish_reason(const tessera_request* request, size_t sample); /* NONE also if there is no such sample */
TESSERA_API int32_t tessera_request_figures(const tessera_request* request, tessera_text** json, tessera_error** error);
/* Returns a sample's session when the request has ended ("keep_session": true). Errors: not_found, the session is not kept or was taken, or
 * there is no such sample. */
TESSERA_API int32_t tessera_request_take_session(tessera_request* request, size_t sample, tessera_session** session, tessera_error** error);
/* Returns the result of a search ("beams"), the best first, when the request has ended; an empty list the second time, and for a request
 * that is no search. */
TESSERA_API int32_t tessera_request_take_beams(tessera_request* request, tessera_text** json, tessera_error** error);
TESSERA_API void tessera_request_free(tessera_request* request); /* cancels the request */

#ifdef __cplusplus
}
#endif
