// Three requests at once on one scheduler, each awaited by its task; one of them cancelled, one held to a schema: Test.exe MODEL
using System;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;
using Tessera;

static class Test {
  const string Story = "{\"max_tokens\": 40}";
  const string Endless = "{\"max_tokens\": 480, \"end_of_generation\": \"ignore\"}";
  const string Schema = @"{""max_tokens"": 60, ""grammar"": {""space"": ""none"", ""order"": ""stated"", ""numbers"": ""plain"", ""json_schema"":
    {""type"": ""object"", ""properties"": {""big"": {""type"": ""boolean""}, ""legs"": {""enum"": [2, 4]}},
     ""required"": [""big"", ""legs""], ""additionalProperties"": false}}}";

  static void Require(bool isTrue, string what) {
    if (!isTrue) throw new Exception("not so: " + what);
  }

  static void RequireThrows<T>(Action action, Func<T, bool> isRight) where T : Exception {
    try {
      action();
    } catch (T error) {
      Require(isRight(error), error.ToString());
      return;
    }
    throw new Exception("no " + typeof(T));
  }

  class Answer {
    public string Text = "";
    public int Pieces;
    public bool IsCancelled;
  }

  // Reads an answer to its end. onPiece gets the number of pieces so far.
  static async Task<Answer> Read(Request request, Action<int> onPiece = null) {
    var answer = new Answer();
    using (request) {
      try {
        for (Piece piece; (piece = await request.NextAsync()) != null;) {
          answer.Text += piece.Text;
          onPiece?.Invoke(++answer.Pieces);
        }
      } catch (OperationCanceledException) {
        answer.IsCancelled = true;
      }
    }
    return answer;
  }

  static double Figure(string figures, string name) { return double.Parse(Regex.Match(figures, "\"" + name + "\": ([0-9]+)").Groups[1].Value); }

  static async Task Run(string model) {
    RequireThrows<TesseraException>(() => Engine.Load("missing.gguf"), e => e.Code == ErrorCode.NotFound && e.Message.Contains("missing.gguf"));
    Engine engine = Engine.Load(model, "{\"numerics\": \"invariant\"}");
    const string words = "naïve 🦊";
    Require(engine.Decode(engine.Encode(words)).Trim() == words, "a text becomes tokens and again the text");

    var scheduler = new Scheduler(engine, "{\"max_unread\": 16}");
    RequireThrows<TesseraException>(() => scheduler.Submit("x", "{\"max_token\": 1}"),
                                    e => e.Code == ErrorCode.InvalidArgument && e.Message.Contains("max_tokens"));
    var cancellation = new CancellationTokenSource();
    Request[] requests = {scheduler.Submit("Once upon a time", Story), scheduler.Submit("The dog", Endless, cancellation.Token),
                          scheduler.Submit("The dog is", Schema)};
    scheduler.Start();  // behind the submits, so that all three begin in the first step
    Answer[] answers = await Task.WhenAll(Read(requests[0], n => {}), Read(requests[1], n => { if (n == 3) cancellation.Cancel(); }),
                                          Read(requests[2], n => {}));
    foreach (Answer answer in answers) Console.WriteLine("{0} pieces: {1}", answer.Pieces, answer.Text);
    Require(!answers[0].IsCancelled && answers[0].Pieces > 10, "the story is told");
    Require(answers[1].IsCancelled && answers[1].Pieces >= 3 && answers[1].Pieces < 480, "the second is cancelled");
    Require(Regex.IsMatch(answers[2].Text, "^{\"big\":(true|false),\"legs\":[24]}$"), "the third keeps to the schema");
    string figures = scheduler.Figures();
    Require(Figure(figures, "tokens") > Figure(figures, "steps") + 4, "they are computed together: " + figures);

    // The same story alone; and a request that its reader cancels.
    Require((await Read(scheduler.Submit("Once upon a time", Story))).Text == answers[0].Text, "the story is the same alone");
    Request last = scheduler.Submit("The dog", Endless);
    Require((await Read(last, n => { if (n == 2) last.Cancel(); })).IsCancelled, "the last is cancelled");

    scheduler.Dispose();
    engine.Dispose();
    engine.Dispose();
    RequireThrows<ObjectDisposedException>(() => scheduler.Submit("x"), e => true);
    RequireThrows<ObjectDisposedException>(() => engine.Encode("x"), e => true);

    // The program ends while the library computes, without a Dispose().
    var left = new Scheduler(Engine.Load(model));
    left.Start();
    Require(await left.Submit("The dog", Endless).NextAsync() != null, "a piece");
    Console.WriteLine("ok");
  }

  static int Main(string[] args) {
    try {
      Run(args[0]).Wait();
      return 0;
    } catch (Exception error) {
      Console.Error.WriteLine(error);
      return 1;
    }
  }
}
