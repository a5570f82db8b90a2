// The server as strangers meet it: requests that are broken, slow, too large or smuggled, clients that leave, keys, origins, the end.
#include <fmt/format.h>

#include "cli/program.hpp"
#include "server/http_client.hpp"

namespace test_server_http {

using namespace tessera::tests::server;
using tessera::Json;

namespace {

const std::string kChat = "/v1/chat/completions", kComplete = "/v1/completions";
const std::string kGood = R"({"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0})";

std::string completion(const RunningServer& server) {
  const Response response = server.post(kComplete, kGood);
  INFO(response.body);
  REQUIRE(response.status == 200);
  return text_at(response.json(), {"choices", "0", "text"});
}

// What comes for these bytes, as a status; 0: the connection ended without an answer.
int status_of(const RunningServer& server, std::string_view bytes) {
  Connection connection(server.port());
  (void)connection.send_raw(bytes);
  return connection.receive_response().status;
}

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000; ++i) {  // minutes, for sanitizers on busy machines
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::int64_t figure(const RunningServer& server, const std::string& name) { return number_at(server.request("GET", "/status.json").json(), {name}); }

}  // namespace

TEST_CASE("a completion is what the library gives", "[server]") {
  if (lacks_server() || tessera::tests::cli::lacks_program()) return;
  RunningServer server;
  const auto alone = tessera::tests::cli::run({"-p", "Once upon a time", "-n", "8", "--greedy"});
  CHECK("Once upon a time" + completion(server) + "\n" == alone.out);
  const auto seeded = tessera::tests::cli::run({"-p", "Once upon a time", "-n", "12", "--temp", "0.9", "--top-p", "0.9", "--seed", "7"});
  const Response drawn = server.post(kComplete, R"({"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0.9, "top_p": 0.9, "seed": 7})");
  CHECK("Once upon a time" + text_at(drawn.json(), {"choices", "0", "text"}) + "\n" == seeded.out);
  CHECK(server.terminate() == 0);
}

TEST_CASE("broken requests are refused, and good ones answered as before", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--max-body", "4096", "--max-header", "2048"});
  const std::string expected = completion(server);
  const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";
  const struct {
    std::string name, bytes;
    int status;
  } cases[] = {
      {"no http", "\x16\x03\x01 hello\r\n\r\n", 400},
      {"no host", "GET /health HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"version", "GET /health HTTP/7.0\r\nHost: h\r\n\r\n", 400},
      {"space before a colon", "GET /health HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"lengths differ", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400},
      {"a length and chunks", post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunks and a length", post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", 400},
      {"another coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {"two codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"codings in two headers", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunks of an old client", "POST /v1/completions HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a negative length", post + "Content-Length: -2\r\n\r\n", 400},
      {"an endless chunk", post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400},
      {"a quote that its chunk's line does not end", post + "Transfer-Encoding: chunked\r\n\r\n1;a=\"x\r\n{\r\n0\r\n\r\n", 400},
      {"an endless chunk extension", post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(3000, 'x'), 431},
      {"trailers that are too long", post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: " + std::string(3000, 'x') + "\r\n\r\n", 431},
      {"a body that is too long", post + "Content-Length: 5000\r\n\r\n", 413},
      {"chunks that are too long", post + "Transfer-Encoding: chunked\r\n\r\n1388\r\n" + std::string(5000, ' ') + "\r\n0\r\n\r\n", 413},
      {"a header that is too long", "GET /health HTTP/1.1\r\nHost: h\r\nX: " + std::string(3000, 'x') + "\r\n\r\n", 431},
      {"a form", "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na=b", 415},
      {"another method", "PUT /v1/completions HTTP/1.1\r\nHost: h\r\n\r\n", 405},
      {"a path upwards", "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
      {"no json", post + "Content-Length: 1\r\n\r\n{", 400},
      {"bad UTF-8", post + "Content-Length: 14\r\n\r\n{\"prompt\":\"\xff\"}", 400},
  };
  for (const auto& each : cases) {
    INFO(each.name);
    CHECK(status_of(server, each.bytes) == each.status);
    CHECK(completion(server) == expected);
  }
  // What stands behind a body adds nothing to its header.
  CHECK(status_of(server, "POST /v1/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Type: application/json\r\n\r\n") == 415);
  // What stands behind a body whose end nobody knows is no request.
  Connection smuggler(server.port());
  REQUIRE(smuggler.send_raw(post + "Transfer-Encoding: xchunked\r\n\r\nGET /health HTTP/1.1\r\nHost: h\r\n\r\n"));
  CHECK(smuggler.receive_response().status == 501);
  CHECK(smuggler.receive_all().empty());
  CHECK(server.post(kComplete, kGood, {{"Content-Type", "Application/JSON ;charset=utf-8"}}).status == 200);
  CHECK(server.post(kComplete, kGood, {{"Content-Type", "application/jsonx"}}).status == 415);
  CHECK(server.post(kComplete, kGood, {{"Content-Encoding", "gzip"}}).status == 415);
  for (const auto& [body, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({"prompt": "a", "n": 1000000})", "n"},
           {R"({"prompt": "a", "max_tokens": -2})", "max_tokens"},
           {R"({"prompt": "a", "max_tokens": 99999999999999999999})", "max_tokens"},
           {R"({"prompt": "a", "temperature": 1e400})", "temperature"},
           {R"({"prompt": "a", "temperature": "hot"})", "temperature"},
           {R"({"prompt": [1, "a"]})", "prompt"},
           {R"({"prompt": [99999999]})", "prompt"},
           {R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias"},
           {R"({"prompt": "a", "suffix": "b"})", "suffix"},
           {R"({"prompt": "a", "stream_options": {"include_usage": true}})", "stream_options"}}) {
    INFO(body);
    const Response response = server.post(kComplete, body);
    CHECK(response.status == 400);
    CHECK(text_at(response.json(), {"error", "param"}) == field);
    CHECK(text_at(response.json(), {"error", "type"}) == "invalid_request_error");
  }
  CHECK(server.terminate() == 0);
}

TEST_CASE("one connection carries many requests, also sent at once", "[server]") {
  if (lacks_server()) return;
  RunningServer server;
  const std::string expected = completion(server);
  Connection connection(server.port());
  for (int i = 0; i < 3; ++i) {
    const Response response = connection.request("POST", kComplete, {}, kGood);
    CHECK(text_at(response.json(), {"choices", "0", "text"}) == expected);
    CHECK(response.header("connection") == "keep-alive");
  }
  const std::string one = Connection::text_of("POST", kComplete, {}, kGood), probe = Connection::text_of("GET", "/health", {}, "");
  REQUIRE(connection.send_raw(one + probe + one));
  CHECK(text_at(connection.receive_response().json(), {"choices", "0", "text"}) == expected);
  CHECK(text_at(connection.receive_response().json(), {"status"}) == "ok");
  CHECK(text_at(connection.receive_response().json(), {"choices", "0", "text"}) == expected);
  // Chunks byte by byte.
  REQUIRE(connection.send_raw("POST /tokenize HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"));
  for (const char c : std::string("e\r\n{\"prompt\": \"a\"\r\n1\r\n}\r\n0\r\n\r\n")) {
    REQUIRE(connection.send_raw({&c, 1}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(connection.receive_response().status == 200);
  const Response head = connection.request("HEAD", "/v1/models");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  const Response waits = connection.request("POST", kComplete, {{"Expect", "100-continue"}}, kGood);
  CHECK(waits.status == 200);
  const Response last = connection.request("GET", "/health", {{"Connection", "close"}});
  CHECK(last.header("connection") == "close");
  CHECK(connection.receive_some().empty());
  CHECK(server.terminate() == 0);
}

TEST_CASE("who sends slowly is told so, and who takes nothing holds up nobody", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--header-time", "2", "--body-time", "2", "--idle-time", "3", "--write-time", "3"});
  const std::string expected = completion(server);
  Connection header(server.port()), body(server.port()), idle(server.port());
  REQUIRE(header.send_raw("GET /hea"));
  REQUIRE(body.send_raw("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"));
  CHECK(header.receive_response().status == 408);
  CHECK(body.receive_response().status == 408);
  CHECK(idle.receive_all().empty());
  // Readers that never read: their requests wait, and in the end their connections go.
  std::vector<std::unique_ptr<Connection>> deaf;
  for (int i = 0; i < 4; ++i) {
    deaf.push_back(std::make_unique<Connection>(server.port()));
    const int small = 2048;
    setsockopt(deaf.back()->fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    REQUIRE(deaf.back()->send_request("POST", kComplete, {}, R"({"prompt": "Once", "max_tokens": 900, "stream": true, "ignore_eos": true, "logprobs": 20})"));
  }
  for (int i = 0; i < 5; ++i) CHECK(completion(server) == expected);
  CHECK(comes_true([&] { return figure(server, "running") == 0 && figure(server, "waiting") == 0; }));
  CHECK(server.terminate() == 0);
}

TEST_CASE("a client that leaves ends its request", "[server]") {
  if (lacks_server()) return;
  RunningServer server;
  const std::string expected = completion(server);
  // What it has sent ahead meanwhile changes nothing.
  const std::string ahead[] = {"", Connection::text_of("GET", "/health", {}, ""), "POST /v1/completions HTTP/1.1\r\nContent-Length: 40000\r\n\r\n" + std::string(40000, ' ')};
  for (const bool reset : {false, true}) {
    for (int kind = 0; kind < 4; ++kind) {
      const bool streams = kind == 0;
      const std::int64_t before = figure(server, "cancelled_total");
      Connection connection(server.port());
      REQUIRE(connection.send_request("POST", kComplete, {}, fmt::format(R"({{"prompt": "Once", "max_tokens": 950, "ignore_eos": true, "stream": {}}})", streams)));
      if (streams) {
        CHECK(connection.receive_head().status == 200);
        CHECK(connection.next_event().has_value());
      } else {
        CHECK(comes_true([&] { return figure(server, "running") == 1; }));
        REQUIRE(connection.send_raw(ahead[kind - 1]));
      }
      connection.drop(reset);
      CHECK(comes_true([&] { return figure(server, "running") == 0; }));
      CHECK(figure(server, "cancelled_total") == before + 1);
      CHECK(completion(server) == expected);
    }
  }
  CHECK(comes_true([&] { return figure(server, "kv_used_bytes") == 0; }));
  CHECK(server.terminate() == 0);
}

TEST_CASE("texts for embeddings are read beside other requests, and no further when their client has gone", "[server]") {
  if (lacks_server()) return;
  RunningServer server;
  const std::string expected = completion(server);
  std::string words, texts;
  for (int i = 0; i < 120; ++i) words += " the little dog";
  for (int i = 0; i < 64; ++i) texts += (i == 0 ? "\"" : ", \"") + words + "\"";
  std::vector<std::unique_ptr<Connection>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<Connection>(server.port()));
    REQUIRE(all.back()->send_request("POST", "/v1/embeddings", {}, "{\"input\": [" + texts + "]}"));
  }
  CHECK(completion(server) == expected);
  for (const auto& each : all) each->drop();
  const auto left = [&] {
    const std::string log = server.log();
    int n = 0;
    for (std::size_t at = log.find("/v1/embeddings 499"); at != std::string::npos; at = log.find("/v1/embeddings 499", at + 1)) ++n;
    return n;
  };
  CHECK(comes_true([&] { return left() == 4; }));
  CHECK(server.post("/v1/embeddings", R"({"input": ["a dog", "a cat"]})").status == 200);
  CHECK(server.post("/tokenize", R"({"prompt": "a dog"})").status == 200);
  CHECK(comes_true([&] { return server.log().find("POST /tokenize 200") != std::string::npos; }));
  CHECK(server.request("GET", "/metrics").body.find("finished_reason=\"length\"} 2\n") != std::string::npos);
  CHECK(server.terminate() == 0);
}

TEST_CASE("keys say who may ask, how often, and whose pages are shared", "[server]") {
  if (lacks_server()) return;
  const tessera::tests::cli::TemporaryFile keys("# who may\nalice   secret-a\nsecret-b\n");
  RunningServer server({"--api-key-file", keys.path(), "--rate", "60"});
  const auto ask = [&](const std::string& name, const std::string& value) { return server.post(kComplete, kGood, {{name, value}}); };
  CHECK(server.post(kComplete, kGood).status == 401);
  CHECK(ask("Authorization", "Bearer wrong").status == 401);
  CHECK(ask("Authorization", "Bearer secret-").status == 401);
  CHECK(ask("Authorization", "secret-a").status == 401);
  const Response refused = ask("Authorization", "Bearer secret-aa");
  CHECK(refused.header("www-authenticate") == "Bearer");
  CHECK(text_at(refused.json(), {"error", "type"}) == "authentication_error");
  CHECK(ask("Authorization", "Bearer secret-a").status == 200);
  CHECK(ask("x-api-key", "secret-b").status == 200);
  CHECK(server.request("GET", "/metrics").status == 401);
  CHECK(server.request("GET", "/health").status == 200);

  std::string words;
  for (int i = 0; i < 40; ++i) words += " the little dog";
  const std::string prompt = fmt::format(R"({{"prompt": "{}", "max_tokens": 1}})", words);
  const auto cached = [&](const std::string& key) {
    return number_at(server.post(kComplete, prompt, {{"x-api-key", key}}).json(), {"usage", "prompt_tokens_details", "cached_tokens"});
  };
  CHECK(cached("secret-a") == 0);
  CHECK(cached("secret-a") > 0);
  CHECK(cached("secret-b") == 0);

  int busy = 0;
  for (int i = 0; i < 20; ++i) {
    const Response response = ask("x-api-key", "secret-b");
    if (response.status != 429) continue;
    ++busy;
    CHECK_FALSE(response.header("retry-after").empty());
  }
  CHECK(busy > 0);  // a slow machine earns some of them meanwhile
  CHECK(server.log().find("secret") == std::string::npos);
  CHECK(server.log().find(" alice ") != std::string::npos);
  CHECK(server.terminate() == 0);
}

TEST_CASE("pages of other origins may ask only if they are named", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--cors", "https://app.example"});
  const auto ask = [&](const std::string& origin) { return server.post(kComplete, kGood, {{"Origin", origin}, {"Host", "localhost:80"}}); };
  CHECK(ask("https://evil.example").status == 403);
  CHECK(ask("null").status == 403);
  CHECK(ask("http://localhost:80").status == 200);
  // A page whose name leads here since a moment ago.
  for (const std::string host : {"evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:80", "evil.example"}) {
    CAPTURE(host);
    CHECK(server.post(kComplete, kGood, {{"Origin", "http://" + host}, {"Host", host}}).status == 403);
  }
  for (const std::string host : {"127.0.0.1:8080", "[::1]:8080", "localhost"}) {
    CAPTURE(host);
    CHECK(server.post(kComplete, kGood, {{"Origin", "http://" + host}, {"Host", host}}).status == 200);
  }
  const Response named = ask("https://app.example");
  CHECK(named.status == 200);
  CHECK(named.header("access-control-allow-origin") == "https://app.example");
  const Response asked = server.request("OPTIONS", kComplete, {{"Origin", "https://app.example"}, {"Access-Control-Request-Method", "POST"},
                                                               {"Access-Control-Request-Headers", "authorization,x-stainless-lang"}});
  CHECK(asked.status == 204);
  CHECK(asked.header("access-control-allow-headers") == "authorization,x-stainless-lang");
  CHECK(server.request("OPTIONS", kComplete, {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}}).status == 403);
  const Response page = server.request("GET", "/", {{"Accept", "text/html"}});
  CHECK(page.status == 200);
  CHECK(page.header("content-security-policy").find("default-src 'none'") != std::string::npos);
  CHECK(page.header("content-security-policy").find("unsafe") == std::string::npos);
  CHECK(server.terminate() == 0);
}

TEST_CASE("with a certificate it speaks TLS, and nothing else", "[server]") {
  if (lacks_server()) return;
  using tessera::tests::cli::run_program;
  if (run_program("/bin/sh", {"-c", "command -v openssl && command -v curl"}).status != 0) {
    tessera::tests::skip("TLS: no openssl or curl here");
    return;
  }
  const tessera::tests::cli::TemporaryFile key, certificate;
  const std::string make = fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -keyout {} -out {} -days 2 -subj /CN=localhost", key.path(), certificate.path());
  REQUIRE(run_program("/bin/sh", {"-c", make}).status == 0);
  RunningServer server({"--tls-cert", certificate.path(), "--tls-key", key.path()});
  CHECK(server.first_line().find("https://") != std::string::npos);
  const auto ask = [&](const std::string& scheme, const std::string& more) {
    return run_program("/bin/sh", {"-c", fmt::format("curl -s --max-time 20 --cacert {} --resolve localhost:{}:127.0.0.1 {}://localhost:{}{}",
                                                     certificate.path(), server.port(), scheme, server.port(), more)});
  };
  CHECK(ask("https", "/health").out == R"({"status": "ok"})");
  const auto streamed = ask("https", "/v1/completions -H 'Content-Type: application/json' -d '" R"({"prompt": "Once", "max_tokens": 4, "stream": true})" "'");
  CHECK(streamed.out.ends_with("data: [DONE]\n\n"));
  CHECK(ask("http", "/health").out.empty());
  CHECK(server.terminate() == 0);
}

TEST_CASE("without its pages the server still says what it takes", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--no-page"});
  CHECK(server.request("GET", "/", {{"Accept", "text/html"}}).body == "Ollama is running");
  CHECK(server.request("GET", "/status").status == 404);
  const Response api = server.request("GET", "/openapi.json");
  CHECK(api.status == 200);
  CHECK(text_at(api.json(), {"openapi"}).starts_with("3."));
  CHECK(server.request("POST", "/openapi.json").status == 405);
  const Response object = server.post(kComplete, R"({"prompt": "a", "max_tokens": 60, "guided_regex": "(("})");
  CHECK(text_at(object.json(), {"error", "param"}) == "guided_regex");
  CHECK(server.terminate() == 0);
}

TEST_CASE("more than may wait are told when to come again", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--max-running", "1", "--max-waiting", "1"});
  std::vector<std::unique_ptr<Connection>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<Connection>(server.port()));
    REQUIRE(all.back()->send_request("POST", kComplete, {}, R"({"prompt": "Once", "max_tokens": 200, "ignore_eos": true})"));
  }
  int good = 0, busy = 0;
  for (const auto& each : all) {
    const Response response = each->receive_response();
    good += response.status == 200 ? 1 : 0;
    if (response.status != 429) continue;
    ++busy;
    CHECK(std::atoi(response.header("retry-after").c_str()) >= 1);
  }
  CHECK(good >= 1);
  CHECK(busy >= 1);
  CHECK(good + busy == 6);
  CHECK(server.terminate() == 0);
}

TEST_CASE("at its end the server answers whom it has promised to, and nobody else", "[server]") {
  if (lacks_server()) return;
  RunningServer server({"--drain-time", "600"});
  Connection running(server.port()), kept(server.port());
  CHECK(kept.request("GET", "/health").status == 200);
  REQUIRE(running.send_request("POST", kComplete, {}, R"({"prompt": "Once", "max_tokens": 600, "ignore_eos": true, "stream": true})"));
  CHECK(running.receive_head().status == 200);
  CHECK(running.next_event().has_value());
  server.signal(SIGTERM);
  CHECK(comes_true([&] { return server.log().find("ending: 1 requests run") != std::string::npos; }));
  Connection late(server.port());
  if (late.is_open()) {
    CHECK(late.request("GET", "/health").status == 503);
    Connection another(server.port());
    CHECK(another.request("GET", "/live").status == 200);
    Connection asks(server.port());
    CHECK(asks.request("POST", kComplete, {}, kGood).status == 503);
  }
  const auto events = running.all_events();
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().data == "[DONE]");
  CHECK(running.is_whole());
  CHECK(server.wait() == 0);

  RunningServer hurried({"--drain-time", "0"});
  Connection left(hurried.port());
  REQUIRE(left.send_request("POST", kComplete, {}, R"({"prompt": "Once", "max_tokens": 900, "ignore_eos": true, "stream": true})"));
  CHECK(left.next_event().has_value() == false);  // its head comes first
  CHECK(left.receive_head().status == 200);
  CHECK(hurried.terminate() == 0);
}

TEST_CASE("the server says what is wrong with its options", "[server]") {
  if (lacks_server()) return;
  using tessera::tests::cli::run_program;
  const auto fails = [](const tessera::tests::cli::Args& args, int status, const std::string& word) {
    const auto outcome = run_program(kServer, args);
    INFO(outcome.err);
    CHECK(outcome.status == status);
    CHECK(outcome.err.find(word) != std::string::npos);
    CHECK(outcome.err.starts_with("tessera-server: "));
  };
  fails({"--nonsense"}, 2, "--nonsense");
  fails({"--port", "70000"}, 2, "--port");
  fails({"--kv-budget", "lots"}, 2, "--kv-budget");
  fails({"--tls-cert", "a.pem"}, 2, "--tls-key");
  fails({"--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"}, 1, "cannot read /nowhere.pem");
  fails({"--template", "/"}, 1, "cannot read /");
  fails({"--rate", "nan"}, 2, "--rate");
  fails({"--cors", "app.example"}, 2, "--cors");
  fails({"-m", "/nowhere.gguf"}, 1, "/nowhere.gguf");
  fails({"--api-key-file", "/nowhere"}, 1, "/nowhere");
  fails({"--host", "256.1.1.1"}, 1, "256.1.1.1");
  RunningServer server;
  // Before a model is looked at.
  fails({"--port", std::to_string(server.port()), "-m", "/nowhere.gguf"}, 1, "Address already in use");
  const auto help = run_program(kServer, {"--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("curl http://127.0.0.1:8080/v1/chat/completions") != std::string::npos);
}

}  // namespace test_server_http
