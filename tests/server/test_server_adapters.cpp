// Adapters of a server: by an adapter's name and by the field `lora`, many at once, within a budget, listed, loaded and unloaded.
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "engine/made_adapter.hpp"
#include "server/http_client.hpp"

namespace test_server_adapters {

using namespace tessera;
using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

// Adapters of the model that tells stories.
struct Files {
  explicit Files(std::uint32_t n) {
    const ModelFile base = test::must(ModelFile::open(kStories));
    for (std::uint32_t i = 0; i < n; ++i) {
      const test::MadeAdapter how{.rank = 4u << (i % 2), .dtype = DType::f16, .alpha = 16.0f, .seed = i + 1, .size = 0.3f,
                                  .takes = [](std::string_view name) { return name.starts_with("blk."); }};
      paths.push_back(folder.write("file" + std::to_string(i), base, how).string());
    }
    bytes = test::must(test::must(Engine::load(base)).adapter(paths[0])).bytes();
  }
  [[nodiscard]] std::vector<std::string> options(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--no-log", "-m", "story=" + kStories};
    for (std::size_t i = 0; i < paths.size(); ++i) {
      all.push_back("--lora");
      all.push_back(fmt::format("a{}={}", i, paths[i]));
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  test::AdapterFolder folder;
  std::vector<std::string> paths;
  std::uint64_t bytes = 0;
};

std::string body(const std::string& model, const std::string& lora = "null") {
  return fmt::format(R"({{"model": "{}", "prompt": "Once upon a time", "max_tokens": 24, "temperature": 0, "ignore_eos": true, "lora": {}}})", model, lora);
}

std::string text_of(const Response& response) {
  INFO(response.body);
  REQUIRE(response.status == 200);
  return text_at(response.json(), {"choices", "0", "text"});
}
std::string told(const RunningServer& server, const std::string& model, const std::string& lora = "null") {
  return text_of(server.post("/v1/completions", body(model, lora)));
}

}  // namespace

TEST_CASE("an adapter can be part of the weights of a server's model", "[server]") {
  if (lacks_server()) return;
  const std::string adapter = TESSERA_SOURCE_DIR "/models/tessera-stories-pirate.gguf";
  const RunningServer merged({"--no-log", "-m", "story=" + kStories, "--merge", adapter}), half({"--no-log", "-m", "story=" + kStories, "--merge", adapter + ":0.5"}),
      none({"--no-log", "-m", "story=" + kStories, "--merge", adapter + ":0"}), plain({"--no-log", "-m", "story=" + kStories});
  CHECK(told(none, "story") == told(plain, "story"));
  CHECK(told(merged, "story") != told(plain, "story"));
  CHECK(told(half, "story") != told(plain, "story"));
  const int several = std::system((kServer + " --port 0 -m a=" + kStories + " -m b=" + kStories + " --merge " + adapter + " > /dev/null 2>&1 < /dev/null").c_str());
  CHECK(WEXITSTATUS(several) == 2);
}

TEST_CASE("a request's adapters are those of its name and of its field lora", "[server]") {
  if (lacks_server()) return;
  const Files files(2);
  const RunningServer server(files.options());
  const std::string base = told(server, "story"), first = told(server, "a0"), second = told(server, "a1");
  CHECK(first != base);
  CHECK(second != base);
  CHECK(first != second);
  CHECK(told(server, "story", R"([{"id": 0}])") == first);
  CHECK(told(server, "story", R"([{"id": "a1", "scale": 1.0}])") == second);
  CHECK(told(server, "story", R"([{"id": 1, "scale": 0}])") == base);
  CHECK(told(server, "story", "[]") == base);
  CHECK(told(server, "a0", R"([{"id": 1, "scale": 0}])") == first);
  CHECK(told(server, "a0", R"([{"id": 1}])") == told(server, "story", R"([{"id": 0}, {"id": 1}])"));
  CHECK(told(server, "story", R"([{"id": 0, "scale": -1}])") != first);

  const Response chat = server.post("/v1/messages", R"({"model": "a0", "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]})");
  CHECK((chat.status == 200 || chat.body.find("template") != std::string::npos));
  const Response scored = server.post("/v1/completions", R"({"model": "a0", "prompt": "Once upon a time", "max_tokens": 1, "echo": true, "logprobs": 1})");
  const Response plain = server.post("/v1/completions", R"({"model": "story", "prompt": "Once upon a time", "max_tokens": 1, "echo": true, "logprobs": 1})");
  CHECK(at(scored.json(), {"choices", "0", "logprobs", "token_logprobs"}).dump() != at(plain.json(), {"choices", "0", "logprobs", "token_logprobs"}).dump());
}

TEST_CASE("an answer has the name of the adapter that was asked for as its model", "[server]") {
  if (lacks_server()) return;
  const Files files(1);
  const RunningServer server(files.options());
  CHECK(text_at(server.post("/v1/completions", body("a0")).json(), {"model"}) == "a0");
  CHECK(text_at(server.post("/v1/completions", body("story", R"([{"id": 0}])")).json(), {"model"}) == "story");
  CHECK(text_at(server.post("/v1/completions", body("another")).json(), {"model"}) == "story");
  const std::string chat = R"({"model": "a0", "max_tokens": 2, "messages": [{"role": "user", "content": "x"}], "input": "x", "stream": false})";
  for (const std::string path : {"/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"}) {
    INFO(path);
    const Response response = server.post(path, chat);
    INFO(response.body);
    if (response.status == 200) CHECK(text_at(response.json(), {"model"}) == "a0");
    else CHECK(response.body.find("template") != std::string::npos);
  }
  const Response streamed = server.post("/v1/completions", R"({"model": "a0", "prompt": "x", "max_tokens": 2, "stream": true})");
  INFO(streamed.body);
  CHECK(streamed.body.find(R"("model": "a0")") != std::string::npos);
}

TEST_CASE("requests with different adapters at once have the answers that each has alone", "[server]") {
  if (lacks_server()) return;
  const Files files(4);
  const RunningServer server(files.options({"--max-running", "16"}));
  const std::vector<std::string> names{"story", "a0", "a1", "a2", "a3"};
  std::vector<std::string> expected;
  for (const std::string& name : names) expected.push_back(told(server, name));
  std::vector<std::string> found(25);
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < found.size(); ++i) {
    clients.emplace_back([&, i] {
      const Response response = server.post("/v1/completions", body(names[i % names.size()]));
      if (response.status == 200) found[i] = text_at(response.json(), {"choices", "0", "text"});
    });
  }
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == expected[i % names.size()]);
}

TEST_CASE("adapters take turns in a budget that holds only some of them", "[server]") {
  if (lacks_server()) return;
  const Files files(4);
  const RunningServer roomy(files.options()), tight(files.options({"--lora-memory", fmt::format("{}", files.bytes * 5 / 2)}));
  for (int round = 0; round < 2; ++round) {
    for (const std::string name : {"a0", "a1", "a2", "a3"}) CHECK(told(tight, name) == told(roomy, name));
  }
  const RunningServer none(files.options({"--lora-memory", "1KB"}));
  const Response refused = none.post("/v1/completions", body("a0"));
  CHECK(refused.status == 503);
  CHECK(refused.body.find("budget") != std::string::npos);
  CHECK(none.post("/v1/completions", body("story")).status == 200);
}

TEST_CASE("adapters are listed, loaded and unloaded", "[server]") {
  if (lacks_server()) return;
  const Files files(2);
  const RunningServer fixed(files.options());
  const Json models = fixed.request("GET", "/v1/models").json();
  CHECK(text_at(models, {"data", "1", "id"}) == "a0");
  CHECK(at(models, {"data", "0", "parent"}).is_null());
  CHECK(text_at(models, {"data", "0", "root"}) == "story");
  CHECK(text_at(models, {"data", "1", "parent"}) == "story");
  CHECK(text_at(models, {"data", "1", "root"}) == "a0");
  CHECK(text_at(fixed.request("GET", "/v1/models/a1").json(), {"parent"}) == "story");
  CHECK(text_at(fixed.request("GET", "/lora-adapters").json(), {"1", "name"}) == "a1");
  CHECK(fixed.request("GET", "/metrics").body.find("vllm:lora_requests_info{model_name=\"story\",max_lora=\"2\"") != std::string::npos);
  CHECK(fixed.post("/v1/unload_lora_adapter", R"({"lora_name": "a0"})").status == 403);
  CHECK(fixed.post("/v1/load_lora_adapter", R"({"lora_name": "b", "lora_path": "x.gguf"})").status == 403);

  const RunningServer server({"--no-log", "-m", "story=" + kStories, "--lora-updates"});
  const auto load = [&](const std::string& name, const std::string& path) {
    return server.post("/v1/load_lora_adapter", fmt::format(R"({{"lora_name": "{}", "lora_path": "{}"}})", name, path)).status;
  };
  CHECK(load("b", files.paths[0]) == 200);
  CHECK(load("b", files.paths[1]) == 400);
  CHECK(load("story", files.paths[1]) == 400);
  CHECK(load("c", "/no/such/file.gguf") == 404);
  CHECK(load("c", kStories) == 400);  // a model is no adapter
  CHECK(server.post("/v1/load_lora_adapter", R"({"lora_name": "c"})").status == 400);
  const std::string expected = told(fixed, "a0");
  CHECK(told(server, "b") == expected);
  CHECK(server.post("/v1/unload_lora_adapter", R"({"lora_name": "b"})").status == 200);
  CHECK(server.post("/v1/unload_lora_adapter", R"({"lora_name": "b"})").status == 404);
  CHECK(told(server, "b") == told(server, "story"));  // one model answers any name
  CHECK(load("b", files.paths[0]) == 200);
  CHECK(told(server, "b") == expected);
}

TEST_CASE("wrong adapters are errors that name the field", "[server]") {
  if (lacks_server()) return;
  const Files files(1);
  const RunningServer server(files.options());
  const auto check = [&](const std::string& lora, int status, const std::string& field) {
    const Response response = server.post("/v1/completions", body("story", lora));
    INFO(response.body);
    CHECK(response.status == status);
    CHECK(text_at(response.json(), {"error", "param"}) == field);
  };
  check("3", 400, "lora");
  check(R"([{"scale": 1}])", 400, "lora[0].id");
  check(R"([{"id": 1}])", 404, "lora[0].id");
  check(R"([{"id": "none"}])", 404, "lora[0].id");
  check(R"([{"id": -1}])", 400, "lora[0].id");
  check(R"([{"id": 0, "scale": "much"}])", 400, "lora[0].scale");
  check(R"([{"id": 0, "scale": 1e300}])", 400, "lora[0].scale");
  CHECK(server.post("/v1/embeddings", R"({"model": "a0", "input": "x"})").status == 400);
  CHECK(server.post("/tokenize", R"({"model": "a0", "prompt": "x"})").status == 200);
}

TEST_CASE("wrong adapters on the command line end the server with a sentence", "[server]") {
  if (lacks_server()) return;
  const Files files(1);
  const auto refused = [&](const std::string& lora, int status = 2) {
    std::FILE* pipe = ::popen((kServer + " --port 0 -m " + kStories + " --lora " + lora + " 2>&1 < /dev/null").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    char bytes[512];
    while (const std::size_t n = std::fread(bytes, 1, sizeof bytes, pipe)) output.append(bytes, n);
    CHECK(WEXITSTATUS(::pclose(pipe)) == status);
    return output;
  };
  CHECK(refused(files.paths[0]).find("give the adapter a name") != std::string::npos);
  CHECK(refused("a=/no/such.gguf").find("there is no file") != std::string::npos);
  CHECK(refused("other/a=" + files.paths[0]).find("there is no model \"other\"") != std::string::npos);
  CHECK(refused("a=" + files.paths[0] + " --lora a=" + files.paths[0]).find("is taken") != std::string::npos);
  const std::string no_adapter = refused("a=" TESSERA_SOURCE_DIR "/README.md", 1);
  INFO(no_adapter);
  CHECK(no_adapter.find("--lora a: ") != std::string::npos);
  CHECK(no_adapter.find("README.md") != std::string::npos);
}

}  // namespace test_server_adapters
