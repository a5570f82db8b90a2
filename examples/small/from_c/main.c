/* from_c MODEL PROMPT [TOKENS]: writes a text from C, piece by piece. Ctrl-C ends the text, not the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

static volatile sig_atomic_t interrupted;
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

/* Prints an error, frees it, and returns the status of the program. */
static int report(tessera_error* error) {
  fprintf(stderr, "from_c: %s\n", tessera_error_text(error));
  tessera_error_free(error);
  return 1;
}

static int32_t show_progress(void* user, uint64_t done, uint64_t total) {
  (void)user;
  fprintf(stderr, "\rloading %3.0f %%", total == 0 ? 100.0 : 100.0 * (double)done / (double)total);
  if (done == total) fputs("\n", stderr);
  return interrupted; /* not 0: loading is cancelled */
}

static int write_text(const tessera_engine* engine, const char* prompt, const char* options_json) {
  tessera_error* error = NULL;
  tessera_session* session = NULL;
  tessera_tokens* tokens = NULL;
  tessera_sampler* sampler = NULL;
  tessera_generation* generation = NULL;
  tessera_sampler_options sampling;
  tessera_generate_options options;
  int status = 1;

  tessera_options_init(&sampling, sizeof sampling);
  sampling.json = "{\"temperature\": 0.8, \"top_p\": 0.95, \"seed\": 42}";
  sampling.json_size = strlen(sampling.json);
  tessera_options_init(&options, sizeof options);
  options.json = options_json;
  options.json_size = strlen(options_json);

  if (tessera_session_create(engine, NULL, 0, &session, &error) == TESSERA_OK &&
      tessera_encode(engine, prompt, strlen(prompt), TESSERA_BOS_AS_MODEL, TESSERA_SPECIAL_AS_TEXT, &tokens, &error) == TESSERA_OK &&
      tessera_session_append(session, tessera_tokens_data(tokens), tessera_tokens_count(tokens), NULL, &error) == TESSERA_OK &&
      tessera_sampler_create(engine, &sampling, &sampler, &error) == TESSERA_OK &&
      tessera_session_generate(session, sampler, &options, &generation, &error) == TESSERA_OK) {
    const tessera_piece* piece = NULL;
    while (!interrupted && tessera_generation_next(generation, &piece, &error) == TESSERA_OK && piece != NULL) {
      size_t size;
      const char* text = tessera_piece_text(piece, &size);
      fwrite(text, 1, size, stdout);
      fflush(stdout);
    }
    putchar('\n');
    if (error == NULL) status = 0;
  }
  if (error != NULL) report(error);
  tessera_generation_free(generation); /* all of these take NULL, in any order */
  tessera_sampler_free(sampler);
  tessera_tokens_free(tokens);
  tessera_session_free(session);
  return status;
}

int main(int argc, char** argv) {
  tessera_error* error = NULL;
  tessera_engine* engine = NULL;
  tessera_engine_options options;
  char json[64];
  int status;
  if (argc < 3) return fprintf(stderr, "usage: from_c MODEL PROMPT [TOKENS]\n"), 2;
  if (tessera_check_version(TESSERA_ABI_VERSION, TESSERA_API_VERSION, &error) != TESSERA_OK) return report(error);
  signal(SIGINT, on_interrupt);

  tessera_options_init(&options, sizeof options);
  options.progress = show_progress;
  if (tessera_engine_load(argv[1], strlen(argv[1]), &options, &engine, &error) != TESSERA_OK) return report(error);
  snprintf(json, sizeof json, "{\"max_tokens\": %ld}", argc > 3 ? strtol(argv[3], NULL, 10) : 100L);
  status = write_text(engine, argv[2], json);
  tessera_engine_free(engine);
  return status;
}
