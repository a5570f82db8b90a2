#include <stdio.h>
#include <string.h>

#include <tessera.h>

/* The version, and an error instead of a crash for a file that is not there. */
int main(void) {
  const char* path = "absent.gguf";
  tessera_engine* engine = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_engine_load(path, strlen(path), NULL, &engine, &error);
  printf("tessera %s from C: %s\n", tessera_version(), code == TESSERA_OK ? "loaded what is not there" : tessera_error_text(error));
  tessera_error_free(error);
  tessera_engine_free(engine);
  return code == TESSERA_OK;
}
