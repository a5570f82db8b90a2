import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tessera.Tessera;
import tessera.Tessera.TesseraException;

/** Three requests at once on one scheduler, each read by its thread; one of them cancelled, one held to a schema: Test MODEL */
final class Test {
  static final String STORY = "{\"max_tokens\": 40}";
  static final String ENDLESS = "{\"max_tokens\": 480, \"end_of_generation\": \"ignore\"}";
  static final String SCHEMA = """
      {"max_tokens": 60, "grammar": {"space": "none", "order": "stated", "numbers": "plain", "json_schema": {"type": "object",
       "properties": {"big": {"type": "boolean"}, "legs": {"enum": [2, 4]}},
       "required": ["big", "legs"], "additionalProperties": false}}}""";

  interface OnPiece {
    void got(int pieces);
  }

  static void require(boolean isTrue, String what) {
    if (!isTrue) throw new AssertionError("not so: " + what);
  }

  static TesseraException errorOf(Runnable call) {
    try {
      call.run();
    } catch (TesseraException error) {
      return error;
    }
    throw new AssertionError("no TesseraException");
  }

  /** Reads an answer to its end. */
  static String read(Tessera.Request request, OnPiece onPiece) {
    StringBuilder text = new StringBuilder();
    int pieces = 0;
    try (request) {
      for (Tessera.Piece piece : request) {
        text.append(piece.text());
        onPiece.got(++pieces);
      }
    }
    return text.toString();
  }

  static long figure(String figures, String name) {
    Matcher found = Pattern.compile("\"" + name + "\": (\\d+)").matcher(figures);
    require(found.find(), name);
    return Long.parseLong(found.group(1));
  }

  public static void main(String[] arguments) throws Exception {
    TesseraException error = errorOf(() -> new Tessera.Engine("missing.gguf", ""));
    require(error.code() == TesseraException.NOT_FOUND && error.getMessage().contains("missing.gguf"), error.toString());
    Tessera.Engine engine = new Tessera.Engine(arguments[0], "{\"numerics\": \"invariant\"}");
    String words = "na\u00efve \ud83e\udd8a";
    require(engine.decode(engine.encode(words)).strip().equals(words), "a text becomes tokens and again the text");

    Tessera.Scheduler scheduler = new Tessera.Scheduler(engine, "{\"max_unread\": 16}");
    error = errorOf(() -> scheduler.submit("x", "{\"max_token\": 1}"));
    require(error.code() == TesseraException.INVALID_ARGUMENT && error.getMessage().contains("max_tokens"), error.toString());

    ExecutorService threads = Executors.newFixedThreadPool(3, task -> {
      Thread thread = new Thread(task);
      thread.setDaemon(true);  // so that an error ends the program
      return thread;
    });
    Tessera.Request[] requests = {scheduler.submit("Once upon a time", STORY), scheduler.submit("The dog", ENDLESS),
        scheduler.submit("The dog is", SCHEMA)};
    scheduler.start();  // behind the submits, so that all three begin in the first step
    int[] pieces = new int[3];
    Semaphore isRead = new Semaphore(0), isCancelled = new Semaphore(0);
    Future<String> told = threads.submit(() -> read(requests[0], n -> pieces[0] = n));
    Future<String> cancelled = threads.submit(() -> read(requests[1], n -> {
      pieces[1] = n;
      if (n != 3) return;
      isRead.release();
      isCancelled.acquireUninterruptibly();
    }));
    Future<String> answer = threads.submit(() -> read(requests[2], n -> pieces[2] = n));
    isRead.acquire();
    requests[1].cancel();  // from another thread than the reader's
    isCancelled.release();
    try {
      throw new AssertionError("not cancelled: " + cancelled.get());
    } catch (ExecutionException e) {
      require(e.getCause() instanceof TesseraException cause && cause.code() == TesseraException.CANCELLED, e.toString());
    }
    System.out.println(List.of(told.get(), answer.get()) + ", " + pieces[0] + ", " + pieces[1] + ", " + pieces[2] + " pieces");
    require(pieces[0] > 10 && pieces[1] >= 3, "pieces");
    require(answer.get().matches("\\{\"big\":(true|false),\"legs\":[24]\\}"), answer.get());
    String figures = scheduler.figures();
    require(figure(figures, "tokens") > figure(figures, "steps") + 4, "computed together: " + figures);

    // The same story alone; and Future.cancel(), which interrupts the reader.
    require(read(scheduler.submit("Once upon a time", STORY), n -> {}).equals(told.get()), "the story is the same alone");
    Semaphore isInterrupted = new Semaphore(0);
    Tessera.Request last = scheduler.submit("The dog", ENDLESS);
    Future<?> reader = threads.submit(() -> {
      try {
        read(last, n -> {
          isRead.release();
          while (!Thread.currentThread().isInterrupted()) Thread.yield();
        });
      } catch (CancellationException interrupted) {
        isInterrupted.release();
      }
    });
    isRead.acquire();
    reader.cancel(true);
    require(isInterrupted.tryAcquire(30, TimeUnit.SECONDS), "the reader is interrupted");
    threads.shutdown();

    scheduler.close();
    engine.close();
    engine.close();
    require(errorOf(() -> engine.encode("x")).code() == TesseraException.INVALID_ARGUMENT, "a closed engine");
    require(errorOf(() -> scheduler.figures()).code() == TesseraException.INVALID_ARGUMENT, "a closed scheduler");
    System.out.println("ok");
  }
}
