package tessera;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * tessera for Java: this file, and tessera_jni.c over the C ABI (include/tessera.h).
 *
 * <pre>
 * try (var engine = new Tessera.Engine("model.gguf", ""); var scheduler = new Tessera.Scheduler(engine, "")) {
 *   scheduler.start();
 *   try (var request = scheduler.submit("Once upon a time", "{\"max_tokens\": 40}")) {
 *     for (var piece : request) System.out.print(piece.text());
 *   }
 * }
 * </pre>
 * Options are JSON texts, and an empty text gives the defaults: docs/reference/c-options.md lists the keys. Objects may be used by several
 * threads; a request is read by one at a time. After close(), methods throw a TesseraException of code INVALID_ARGUMENT.
 */
public final class Tessera {
  private Tessera() {}

  static {
    System.loadLibrary("tessera_jni");
  }

  /** An error of the library. The message is "place: message", one line; the codes are those of docs/reference/errors.md. */
  public static final class TesseraException extends RuntimeException {
    public static final int INVALID_ARGUMENT = 1, INVALID_STATE = 2, NOT_FOUND = 3, CANCELLED = 10, BUSY = 15, TOO_LATE = 16;
    private static final long serialVersionUID = 1;
    private final int code;

    TesseraException(int code, byte[] text) {  // called by tessera_jni.c
      super(new String(text, StandardCharsets.UTF_8));
      this.code = code;
    }

    public int code() {
      return code;
    }
  }

  /** A piece of an answer: the text that became certain with a token. */
  public record Piece(String text, int token) {}

  /** Handle of the library. Calls hold the lock for reading, and close() waits for them; a closed handle is 0, which the library refuses. */
  private abstract static class Handle implements AutoCloseable {
    final ReadWriteLock lock = new ReentrantReadWriteLock();
    long handle;

    interface Call<T> {
      T with(long handle);
    }

    <T> T call(Call<T> function) {
      lock.readLock().lock();
      try {
        return function.with(handle);
      } finally {
        lock.readLock().unlock();
      }
    }

    abstract void free(long handle);

    @Override
    public void close() {
      lock.writeLock().lock();
      try {
        free(handle);
        handle = 0;
      } finally {
        lock.writeLock().unlock();
      }
    }
  }

  /** A loaded model. */
  public static final class Engine extends Handle {
    /** Loads a GGUF file. Takes as long as the file needs to be read. */
    public Engine(String path, String options) {
      handle = load(utf8(path), utf8(options));
    }

    /** Returns the tokens of a text that begins a sequence. */
    public int[] encode(String text) {
      return call(engine -> Tessera.encode(engine, utf8(text)));
    }

    /** Returns the text of tokens that begin a sequence, without control tokens. */
    public String decode(int[] tokens) {
      return call(engine -> text(Tessera.decode(engine, tokens)));
    }

    @Override
    void free(long engine) {
      freeEngine(engine);
    }
  }

  /** Computes many requests of one engine together. */
  public static final class Scheduler extends Handle {
    private final Engine engine;

    public Scheduler(Engine engine, String options) {
      this.engine = engine;
      handle = engine.call(of -> createScheduler(of, utf8(options)));
    }

    /** Starts the library's thread, which computes from now on. */
    public synchronized void start() {
      call(scheduler -> {
        Tessera.start(scheduler);
        return null;
      });
    }

    /** Submits a text; does not wait for its answer. */
    public Request submit(String prompt, String options) {
      int[] tokens = engine.encode(prompt);
      return new Request(call(scheduler -> Tessera.submit(scheduler, tokens, utf8(options))));
    }

    /** Returns what the scheduler has done so far, as JSON. */
    public String figures() {
      return call(scheduler -> text(Tessera.figures(scheduler)));
    }

    /** Ends the thread after the step that it computes, and cancels all requests. */
    @Override
    void free(long scheduler) {
      freeScheduler(scheduler);
    }
  }

  /** A request's answer. As an Iterable it can be gone through once; a thread that is interrupted meanwhile cancels the request. */
  public static final class Request extends Handle implements Iterable<Piece> {
    private static final long SLICE = Duration.ofMillis(20).toNanos();  // how soon an interrupted thread is noticed
    private boolean ended;  // the reader's

    Request(long handle) {
      this.handle = handle;
    }

    /**
     * Waits for the next piece up to a timeout; null: none came, or the answer has ended (hasEnded()).
     *
     * @throws TesseraException of code CANCELLED after cancel(), or another error of the request
     */
    public Piece poll(Duration timeout) {
      int[] out = new int[2];  // token; whether the request had ended before the call
      byte[] text = call(request -> Tessera.next(request, timeout.toNanos(), out));
      ended = text == null && out[1] != 0;
      return text == null ? null : new Piece(Tessera.text(text), out[0]);
    }

    /** Returns whether the last poll() has met the end. The reader's thread. */
    public boolean hasEnded() {
      return ended;
    }

    /** Ends the request. */
    public void cancel() {
      call(request -> {
        Tessera.cancel(request);
        return null;
      });
    }

    @Override
    public Iterator<Piece> iterator() {
      return new Iterator<>() {
        private Piece ahead;

        @Override
        public boolean hasNext() {
          while (ahead == null && !ended) {
            if (Thread.currentThread().isInterrupted()) {
              cancel();
              throw new CancellationException("interrupted while it waited for a piece");
            }
            ahead = poll(Duration.ofNanos(SLICE));
          }
          return ahead != null;
        }

        @Override
        public Piece next() {
          if (!hasNext()) throw new NoSuchElementException();
          Piece piece = ahead;
          ahead = null;
          return piece;
        }
      };
    }

    @Override
    void free(long request) {
      freeRequest(request);
    }

    /** Cancels the request if it has not ended. */
    @Override
    public void close() {
      cancel();  // so that a reader that waits returns, and the lock is free
      super.close();
    }
  }

  // JNI's own texts are not UTF-8 where a character needs four bytes, so texts are passed as bytes.
  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  private static native long load(byte[] path, byte[] options);
  private static native void freeEngine(long engine);
  private static native int[] encode(long engine, byte[] text);
  private static native byte[] decode(long engine, int[] tokens);
  private static native long createScheduler(long engine, byte[] options);
  private static native void freeScheduler(long scheduler);
  private static native void start(long scheduler);
  private static native long submit(long scheduler, int[] tokens, byte[] options);
  private static native byte[] figures(long scheduler);
  private static native byte[] next(long request, long timeout, int[] out);
  private static native void cancel(long request);
  private static native void freeRequest(long request);
}
