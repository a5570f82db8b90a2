// tessera for .NET, in one file over the C ABI (include/tessera.h).
//
//   using (var engine = Engine.Load("model.gguf"))
//   using (var scheduler = new Scheduler(engine)) {
//     scheduler.Start();
//     using (var request = scheduler.Submit("Once upon a time", "{\"max_tokens\": 40}"))
//       for (Piece piece; (piece = await request.NextAsync()) != null;) Console.Write(piece.Text);
//   }
//
// Options are JSON texts, and an empty text gives the defaults: docs/reference/c-options.md lists the keys.
using System;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Tessera {

/// <summary>Codes of docs/reference/errors.md.</summary>
public enum ErrorCode {
  InvalidArgument = 1, InvalidState = 2, NotFound = 3, Unsupported = 4, CorruptFile = 5, Io = 6, OutOfMemory = 7, OverBudget = 8,
  CacheFull = 9, Cancelled = 10, CallbackFailed = 11, Numeric = 12, Internal = 13, DeviceError = 14, Busy = 15, TooLate = 16
}

/// <summary>Error of the library. Message: "place: message", one line.</summary>
public class TesseraException : Exception {
  public TesseraException(ErrorCode code, string message) : base(message) { Code = code; }
  public ErrorCode Code { get; }
}

/// <summary>Declarations of tessera.h, as far as this file needs them. A size_t is a UIntPtr.</summary>
static class Native {
  const string Library = "tessera-c";  // libtessera-c.so, libtessera-c.dylib, tessera-c.dll
  const CallingConvention C = CallingConvention.Cdecl;

  [UnmanagedFunctionPointer(C)] public delegate void UserFunction(IntPtr user);

  [StructLayout(LayoutKind.Sequential)] public struct EngineOptions {
    public UIntPtr Size;
    public IntPtr Json;
    public UIntPtr JsonSize;
    public IntPtr Stop, User, Drop, Progress, Log, ParallelFor;
    public ulong Concurrency;
    public IntPtr CudaStream;
  }
  [StructLayout(LayoutKind.Sequential)] public struct SchedulerOptions {
    public UIntPtr Size;
    public IntPtr Json;
    public UIntPtr JsonSize;
    public IntPtr User, Drop, Clock, OnEvent;
  }
  [StructLayout(LayoutKind.Sequential)] public struct SubmitOptions {
    public UIntPtr Size;
    public IntPtr Json;
    public UIntPtr JsonSize;
    public IntPtr Sampler, Stop, User;
    public UserFunction Drop, OnReady;
  }

  public const int AbiVersion = 0, ApiVersion = 1, RequestEnded = 3;

  [DllImport(Library, CallingConvention = C)] public static extern int tessera_check_version(int abi, int api, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern IntPtr tessera_error_text(IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_error_free(IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern IntPtr tessera_text_data(IntPtr text);
  [DllImport(Library, CallingConvention = C)] public static extern UIntPtr tessera_text_size(IntPtr text);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_text_free(IntPtr text);
  [DllImport(Library, CallingConvention = C)] public static extern IntPtr tessera_tokens_data(IntPtr tokens);
  [DllImport(Library, CallingConvention = C)] public static extern UIntPtr tessera_tokens_count(IntPtr tokens);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_tokens_free(IntPtr tokens);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_engine_load(
      byte[] path, UIntPtr pathSize, ref EngineOptions options, out IntPtr engine, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_engine_free(IntPtr engine);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_encode(
      EngineHandle engine, byte[] text, UIntPtr textSize, int bos, int special, out IntPtr tokens, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_decode(
      EngineHandle engine, int[] tokens, UIntPtr count, int control, int start, out IntPtr text, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_scheduler_create(
      EngineHandle engine, ref SchedulerOptions options, out IntPtr scheduler, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_scheduler_start(SchedulerHandle scheduler, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_scheduler_submit(
      SchedulerHandle scheduler, int[] tokens, UIntPtr count, IntPtr session, ref SubmitOptions options, out IntPtr request,
      out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_scheduler_figures(
      SchedulerHandle scheduler, out IntPtr json, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_scheduler_free(IntPtr scheduler);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_request_try_next(
      RequestHandle request, out IntPtr piece, out IntPtr error);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_request_cancel(RequestHandle request);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_request_state(RequestHandle request);
  [DllImport(Library, CallingConvention = C)] public static extern void tessera_request_free(IntPtr request);
  [DllImport(Library, CallingConvention = C)] public static extern IntPtr tessera_piece_text(IntPtr piece, out UIntPtr size);
  [DllImport(Library, CallingConvention = C)] public static extern int tessera_piece_token(IntPtr piece);

  /// <summary>Throws an error of the library, and frees it.</summary>
  public static void Check(int code, IntPtr error) {
    if (code == 0) return;
    string text = ToText(tessera_error_text(error), null);
    tessera_error_free(error);
    throw new TesseraException((ErrorCode)code, text);
  }

  /// <summary>Copies UTF-8 of the library; without a size, up to the zero.</summary>
  public static string ToText(IntPtr bytes, UIntPtr? size) {
    int n = size.HasValue ? checked((int)size.Value) : 0;
    if (!size.HasValue) while (Marshal.ReadByte(bytes, n) != 0) n++;
    var copy = new byte[n];
    if (n > 0) Marshal.Copy(bytes, copy, 0, n);
    return Encoding.UTF8.GetString(copy);
  }

  /// <summary>Copies a tessera_text, and frees it.</summary>
  public static string TakeText(IntPtr text) {
    try {
      return ToText(tessera_text_data(text), tessera_text_size(text));
    } finally {
      tessera_text_free(text);
    }
  }
}

// A SafeHandle is not freed while a call uses it, also if another thread disposes of it meanwhile. A later call throws ObjectDisposedException.
abstract class Handle : SafeHandle {
  protected Handle(IntPtr value) : base(IntPtr.Zero, true) { SetHandle(value); }
  public override bool IsInvalid => handle == IntPtr.Zero;
}
sealed class EngineHandle : Handle {
  public EngineHandle(IntPtr value) : base(value) {}
  protected override bool ReleaseHandle() { Native.tessera_engine_free(handle); return true; }
}
sealed class SchedulerHandle : Handle {
  public SchedulerHandle(IntPtr value) : base(value) {}
  protected override bool ReleaseHandle() { Native.tessera_scheduler_free(handle); return true; }
}
sealed class RequestHandle : Handle {
  public RequestHandle(IntPtr value) : base(value) {}
  protected override bool ReleaseHandle() { Native.tessera_request_free(handle); return true; }
}

/// <summary>A text as UTF-8 in memory that the garbage collector does not move.</summary>
sealed class Utf8 : IDisposable {
  public Utf8(string text) {
    byte[] bytes = Encoding.UTF8.GetBytes(text);
    Size = (UIntPtr)bytes.Length;
    Bytes = Marshal.AllocHGlobal(bytes.Length + 1);
    Marshal.Copy(bytes, 0, Bytes, bytes.Length);
  }
  public IntPtr Bytes { get; }
  public UIntPtr Size { get; }
  public void Dispose() { Marshal.FreeHGlobal(Bytes); }
}

/// <summary>A loaded model. Methods may be called by several threads at once.</summary>
public sealed class Engine : IDisposable {
  internal readonly EngineHandle Handle;
  Engine(IntPtr handle) { Handle = new EngineHandle(handle); }

  /// <summary>Loads a GGUF file. Takes as long as the file needs to be read.</summary>
  public static Engine Load(string path, string options = "") {
    Native.Check(Native.tessera_check_version(Native.AbiVersion, Native.ApiVersion, out IntPtr error), error);
    byte[] name = Encoding.UTF8.GetBytes(path);
    using (var json = new Utf8(options)) {
      var given = new Native.EngineOptions {Size = (UIntPtr)Marshal.SizeOf(typeof(Native.EngineOptions)), Json = json.Bytes, JsonSize = json.Size};
      Native.Check(Native.tessera_engine_load(name, (UIntPtr)name.Length, ref given, out IntPtr engine, out error), error);
      return new Engine(engine);
    }
  }

  /// <summary>Returns the tokens of a text that begins a sequence.</summary>
  public int[] Encode(string text) {
    byte[] bytes = Encoding.UTF8.GetBytes(text);
    Native.Check(Native.tessera_encode(Handle, bytes, (UIntPtr)bytes.Length, 0, 0, out IntPtr tokens, out IntPtr error), error);
    var copy = new int[checked((int)Native.tessera_tokens_count(tokens))];
    if (copy.Length > 0) Marshal.Copy(Native.tessera_tokens_data(tokens), copy, 0, copy.Length);
    Native.tessera_tokens_free(tokens);
    return copy;
  }

  /// <summary>Returns the text of tokens that begin a sequence, without control tokens.</summary>
  public string Decode(int[] tokens) {
    Native.Check(Native.tessera_decode(Handle, tokens, (UIntPtr)tokens.Length, 0, 0, out IntPtr text, out IntPtr error), error);
    return Native.TakeText(text);
  }

  /// <summary>Frees the model when the requests that use it have ended too.</summary>
  public void Dispose() { Handle.Dispose(); }
}

/// <summary>Computes many requests of one engine together. Methods may be called by several threads at once, but for Start().</summary>
public sealed class Scheduler : IDisposable {
  readonly Engine engine;
  readonly SchedulerHandle handle;
  readonly EventHandler atExit;  // mono waits for threads that have called it, so the library's thread ends before the program
  // The library holds pointers to these functions: as static members they live as long as the program.
  static readonly Native.UserFunction ready = user => {
    Thread.CurrentThread.IsBackground = true;  // else the program's end waits for the library's thread
    ((SemaphoreSlim)GCHandle.FromIntPtr(user).Target).Release();
  };
  static readonly Native.UserFunction drop = user => GCHandle.FromIntPtr(user).Free();

  public Scheduler(Engine engine, string options = "") {
    this.engine = engine;
    using (var json = new Utf8(options)) {
      var given =
          new Native.SchedulerOptions {Size = (UIntPtr)Marshal.SizeOf(typeof(Native.SchedulerOptions)), Json = json.Bytes, JsonSize = json.Size};
      Native.Check(Native.tessera_scheduler_create(engine.Handle, ref given, out IntPtr scheduler, out IntPtr error), error);
      handle = new SchedulerHandle(scheduler);
    }
    atExit = (sender, args) => handle.Dispose();
    AppDomain.CurrentDomain.ProcessExit += atExit;
  }

  /// <summary>Starts the library's thread, which computes from now on.</summary>
  public void Start() { Native.Check(Native.tessera_scheduler_start(handle, out IntPtr error), error); }

  /// <summary>Submits a text; does not wait for its answer. The token cancels the request.</summary>
  public Request Submit(string prompt, string options = "", CancellationToken cancellation = default(CancellationToken)) {
    cancellation.ThrowIfCancellationRequested();
    int[] tokens = engine.Encode(prompt);
    var wake = new SemaphoreSlim(0);
    bool isHeld = false;
    handle.DangerousAddRef(ref isHeld);  // throws if the scheduler is disposed of, before the library could own the GCHandle
    try {
      using (var json = new Utf8(options)) {
        var given = new Native.SubmitOptions {
          Size = (UIntPtr)Marshal.SizeOf(typeof(Native.SubmitOptions)), Json = json.Bytes, JsonSize = json.Size,
          User = GCHandle.ToIntPtr(GCHandle.Alloc(wake)), OnReady = ready, Drop = drop  // drop is called once, also if this fails
        };
        Native.Check(Native.tessera_scheduler_submit(handle, tokens, (UIntPtr)tokens.Length, IntPtr.Zero, ref given, out IntPtr request,
                                                     out IntPtr error), error);
        return new Request(request, wake, cancellation);
      }
    } finally {
      handle.DangerousRelease();
    }
  }

  /// <summary>Returns what the scheduler has done so far, as JSON.</summary>
  public string Figures() {
    Native.Check(Native.tessera_scheduler_figures(handle, out IntPtr json, out IntPtr error), error);
    return Native.TakeText(json);
  }

  /// <summary>Ends the thread after the step that it computes, and cancels all requests. The program's end does so too.</summary>
  public void Dispose() {
    AppDomain.CurrentDomain.ProcessExit -= atExit;
    handle.Dispose();
  }
}

/// <summary>A piece of an answer: the text that became certain with a token.</summary>
public sealed class Piece {
  internal Piece(string text, int token) { Text = text; Token = token; }
  public string Text { get; }
  public int Token { get; }
}

/// <summary>A request's answer. One reader at a time; Cancel() and Dispose() may be called by any thread.</summary>
public sealed class Request : IDisposable {
  readonly RequestHandle handle;
  readonly SemaphoreSlim ready;
  readonly CancellationToken cancellation;
  readonly CancellationTokenRegistration registration;

  internal Request(IntPtr request, SemaphoreSlim ready, CancellationToken cancellation) {
    handle = new RequestHandle(request);
    this.ready = ready;
    this.cancellation = cancellation;
    registration = cancellation.Register(Cancel);
  }

  /// <summary>Returns the next piece; null at the end. No thread waits for it. Throws OperationCanceledException when it was cancelled.</summary>
  public async Task<Piece> NextAsync() {
    for (;;) {
      bool ended = Native.tessera_request_state(handle) == Native.RequestEnded;  // first: what ends behind this may still have pieces
      int code = Native.tessera_request_try_next(handle, out IntPtr piece, out IntPtr error);
      try {
        Native.Check(code, error);
      } catch (TesseraException cancelled) when (cancelled.Code == ErrorCode.Cancelled) {
        throw new OperationCanceledException(cancelled.Message, cancelled, cancellation);
      }
      if (piece != IntPtr.Zero)
        return new Piece(Native.ToText(Native.tessera_piece_text(piece, out UIntPtr size), size), Native.tessera_piece_token(piece));
      if (ended) return null;
      await ready.WaitAsync().ConfigureAwait(false);
    }
  }

  /// <summary>Ends the request.</summary>
  public void Cancel() { Native.tessera_request_cancel(handle); }

  /// <summary>Cancels the request if it has not ended.</summary>
  public void Dispose() {
    registration.Dispose();  // waits for a Cancel() that another thread runs
    handle.Dispose();
  }
}

}  // namespace Tessera
