/* The native half of tessera for Java, over JNI. Each function is a private native method of Tessera.java, which keeps
 * a handle alive while a call uses it. Texts are UTF-8 in byte arrays. A call that fails leaves a TesseraException and
 * returns 0. */
#include <jni.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

#define METHOD(type, name) JNIEXPORT type JNICALL Java_tessera_Tessera_##name

static tessera_engine* to_engine(jlong handle) { return (tessera_engine*)(intptr_t)handle; }
static tessera_scheduler* to_scheduler(jlong handle) { return (tessera_scheduler*)(intptr_t)handle; }
static tessera_request* to_request(jlong handle) { return (tessera_request*)(intptr_t)handle; }
static jlong to_long(const void* handle) { return (jlong)(intptr_t)handle; }

static jbyteArray to_bytes(JNIEnv* env, const char* bytes, size_t size) {
  jbyteArray array = (*env)->NewByteArray(env, (jsize)size); /* NULL: OutOfMemoryError is pending */
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)size, (const jbyte*)bytes);
  return array;
}

/* Throws an error of the library, and frees it. Returns whether there was none. */
static int succeeded(JNIEnv* env, int32_t code, tessera_error* error) {
  if (code == TESSERA_OK) return 1;
  const char* text = tessera_error_text(error);
  jbyteArray bytes = to_bytes(env, text, strlen(text));
  tessera_error_free(error);
  jclass type = bytes == NULL ? NULL : (*env)->FindClass(env, "tessera/Tessera$TesseraException");
  jmethodID make = type == NULL ? NULL : (*env)->GetMethodID(env, type, "<init>", "(I[B)V");
  jobject exception = make == NULL ? NULL : (*env)->NewObject(env, type, make, (jint)code, bytes);
  if (exception != NULL) (*env)->Throw(env, (jthrowable)exception);
  return 0;
}

/* Numbers or bytes of an array of Java, copied. `data` is NULL after an OutOfMemoryError or for null, and an exception
 * is pending. */
struct copy {
  void* data;
  size_t count;
};

static struct copy copy_of(JNIEnv* env, jarray array, size_t element) {
  struct copy copy = {NULL, 0};
  if (array == NULL) {
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/NullPointerException"), "an array is null");
    return copy;
  }
  copy.count = (size_t)(*env)->GetArrayLength(env, array);
  copy.data = malloc(copy.count * element + 1);
  if (copy.data == NULL) {
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/OutOfMemoryError"), "no memory for a copy of an array");
  } else if (element == sizeof(jint)) {
    (*env)->GetIntArrayRegion(env, (jintArray)array, 0, (jsize)copy.count, copy.data);
  } else {
    (*env)->GetByteArrayRegion(env, (jbyteArray)array, 0, (jsize)copy.count, copy.data);
  }
  return copy;
}

static jbyteArray take_text(JNIEnv* env, tessera_text* text) {
  jbyteArray bytes = to_bytes(env, tessera_text_data(text), tessera_text_size(text));
  tessera_text_free(text);
  return bytes;
}

METHOD(jlong, load)(JNIEnv* env, jclass self, jbyteArray path, jbyteArray json) {
  (void)self;
  tessera_engine* engine = NULL;
  tessera_error* error = NULL;
  int32_t code = tessera_check_version(TESSERA_ABI_VERSION, TESSERA_API_VERSION, &error);
  if (!succeeded(env, code, error)) return 0;
  struct copy name = copy_of(env, path, 1);
  struct copy given = name.data == NULL ? name : copy_of(env, json, 1);
  if (given.data != NULL) {
    tessera_engine_options options;
    tessera_options_init(&options, sizeof options);
    options.json = given.data;
    options.json_size = given.count;
    code = tessera_engine_load(name.data, name.count, &options, &engine, &error);
    free(given.data);
    succeeded(env, code, error);
  }
  free(name.data);
  return to_long(engine);
}

METHOD(void, freeEngine)(JNIEnv* env, jclass self, jlong engine) {
  (void)env;
  (void)self;
  tessera_engine_free(to_engine(engine));
}

METHOD(jintArray, encode)(JNIEnv* env, jclass self, jlong engine, jbyteArray text) {
  (void)self;
  struct copy given = copy_of(env, text, 1);
  if (given.data == NULL) return NULL;
  tessera_tokens* tokens = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_encode(to_engine(engine), given.data, given.count, TESSERA_BOS_AS_MODEL,
                                      TESSERA_SPECIAL_AS_TEXT, &tokens, &error);
  free(given.data);
  if (!succeeded(env, code, error)) return NULL;
  const jsize count = (jsize)tessera_tokens_count(tokens);
  jintArray result = (*env)->NewIntArray(env, count);
  if (result != NULL) (*env)->SetIntArrayRegion(env, result, 0, count, (const jint*)tessera_tokens_data(tokens));
  tessera_tokens_free(tokens);
  return result;
}

METHOD(jbyteArray, decode)(JNIEnv* env, jclass self, jlong engine, jintArray tokens) {
  (void)self;
  struct copy given = copy_of(env, tokens, sizeof(jint));
  if (given.data == NULL) return NULL;
  tessera_text* text = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_decode(to_engine(engine), given.data, given.count, TESSERA_CONTROL_OMIT,
                                      TESSERA_START_SEQUENCE, &text, &error);
  free(given.data);
  return succeeded(env, code, error) ? take_text(env, text) : NULL;
}

METHOD(jlong, createScheduler)(JNIEnv* env, jclass self, jlong engine, jbyteArray json) {
  (void)self;
  struct copy given = copy_of(env, json, 1);
  if (given.data == NULL) return 0;
  tessera_scheduler_options options;
  tessera_options_init(&options, sizeof options);
  options.json = given.data;
  options.json_size = given.count;
  tessera_scheduler* scheduler = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_create(to_engine(engine), &options, &scheduler, &error);
  free(given.data);
  succeeded(env, code, error);
  return to_long(scheduler);
}

METHOD(void, freeScheduler)(JNIEnv* env, jclass self, jlong scheduler) {
  (void)env;
  (void)self;
  tessera_scheduler_free(to_scheduler(scheduler));
}

METHOD(void, start)(JNIEnv* env, jclass self, jlong scheduler) {
  (void)self;
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_start(to_scheduler(scheduler), &error);
  succeeded(env, code, error);
}

METHOD(jlong, submit)(JNIEnv* env, jclass self, jlong scheduler, jintArray tokens, jbyteArray json) {
  (void)self;
  tessera_request* request = NULL;
  struct copy prompt = copy_of(env, tokens, sizeof(jint));
  struct copy given = prompt.data == NULL ? prompt : copy_of(env, json, 1);
  if (given.data != NULL) {
    tessera_submit_options options;
    tessera_options_init(&options, sizeof options);
    options.json = given.data;
    options.json_size = given.count;
    tessera_error* error = NULL;
    const int32_t code =
        tessera_scheduler_submit(to_scheduler(scheduler), prompt.data, prompt.count, NULL, &options, &request, &error);
    free(given.data);
    succeeded(env, code, error);
  }
  free(prompt.data);
  return to_long(request);
}

METHOD(jbyteArray, figures)(JNIEnv* env, jclass self, jlong scheduler) {
  (void)self;
  tessera_text* text = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_scheduler_figures(to_scheduler(scheduler), &text, &error);
  return succeeded(env, code, error) ? take_text(env, text) : NULL;
}

/* out: the piece's token; whether the request had ended before the call, and so has no piece left if this returns null.
 */
METHOD(jbyteArray, next)(JNIEnv* env, jclass self, jlong handle, jlong timeout, jintArray out) {
  (void)self;
  tessera_request* request = to_request(handle);
  jint values[2] = {-1, tessera_request_state(request) == TESSERA_REQUEST_ENDED};
  const tessera_piece* piece = NULL;
  tessera_error* error = NULL;
  const int32_t code = tessera_request_next(request, timeout, &piece, &error);
  if (!succeeded(env, code, error)) return NULL;
  jbyteArray text = NULL;
  if (piece != NULL) {
    size_t size = 0;
    const char* bytes = tessera_piece_text(piece, &size);
    values[0] = tessera_piece_token(piece);
    text = to_bytes(env, bytes, size);
    if (text == NULL) return NULL;
  }
  (*env)->SetIntArrayRegion(env, out, 0, 2, values);
  return text;
}

METHOD(void, cancel)(JNIEnv* env, jclass self, jlong request) {
  (void)env;
  (void)self;
  tessera_request_cancel(to_request(request));
}

METHOD(void, freeRequest)(JNIEnv* env, jclass self, jlong request) {
  (void)env;
  (void)self;
  tessera_request_free(to_request(request));
}
