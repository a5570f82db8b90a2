// Options as JSON: what is wrong is named, with the nearest key; every key works; and the reference has every key.
#include <fstream>

#include "capi/c_rig.hpp"
#include "capi/values/tables.hpp"

namespace test_c_options {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const CEngine& engine() {
  static const CEngine one = c_engine(golden_dir() / "llama-gqa.gguf");
  return one;
}

std::string sampler_failure(const char* json) {
  const auto options = options_of<tessera_sampler_options>(json);
  tessera_sampler* sampler = nullptr;
  INFO(json);
  return failure(TESSERA_INVALID_ARGUMENT,
                 [&](auto error) { return tessera_sampler_create(engine().get(), &options, &sampler, error); });
}
std::string session_failure(std::string_view json) {
  tessera_session* session = nullptr;
  INFO(json);
  return failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
    return tessera_session_create(engine().get(), json.data(), json.size(), &session, error);
  });
}

std::string scheduler_failure(const char* json) {
  const auto options = options_of<tessera_scheduler_options>(json);
  tessera_scheduler* scheduler = nullptr;
  INFO(json);
  return failure(TESSERA_INVALID_ARGUMENT,
                 [&](auto error) { return tessera_scheduler_create(engine().get(), &options, &scheduler, error); });
}
std::string request_failure(const char* json) {
  static const auto scheduler = made<CScheduler>(
      [](auto out, auto error) { return tessera_scheduler_create(engine().get(), nullptr, out, error); });
  const auto options = options_of<tessera_submit_options>(json);
  const Token token = 1;
  tessera_request* request = nullptr;
  INFO(json);
  return failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
    return tessera_scheduler_submit(scheduler.get(), &token, 1, nullptr, &options, &request, error);
  });
}

std::string reference() {
  std::string page;
  for (const auto& tables : {c::engine_tables(), c::generate_tables(), c::sampler_tables(), c::grammar_tables(),
                             c::embed_tables(), c::chat_tables(), c::scheduler_tables()}) {
    for (const c::Table& table : tables) {
      page += "## " + std::string(table.title) + "\n| key | value | meaning |\n|---|---|---|\n";
      for (const auto& row : table.rows) {
        page +=
            "| `" + std::string(row.name) + "` | " + std::string(row.form) + " | " + std::string(row.words) + " |\n";
      }
      page += "\n";
    }
  }
  page.pop_back();
  return page;
}

}  // namespace

TEST_CASE("an unknown key is an error that names it, its place and the nearest key") {
  CHECK_THAT(sampler_failure(R"({"temprature": 1})"),
             ContainsSubstring("\"temprature\"") && ContainsSubstring("did you mean \"temperature\"?"));
  CHECK_THAT(sampler_failure(R"({"quux": 1})"), ContainsSubstring("the keys are \"seed\""));
  CHECK_THAT(sampler_failure(R"({"dry": {"multiplyer": 1}})"),
             ContainsSubstring("dry") && ContainsSubstring("did you mean \"multiplier\"?"));
  CHECK_THAT(session_failure(R"({"kv_type": "f16"})"), ContainsSubstring("did you mean \"kv_dtype\"?"));
  const std::string path = (golden_dir() / "llama-gqa.gguf").string();
  const auto options = options_of<tessera_engine_options>(R"({"ctx": 1, "contexts": 5})");
  tessera_engine* loaded = nullptr;
  CHECK_THAT(
      failure(TESSERA_INVALID_ARGUMENT,
              [&](auto error) { return tessera_engine_load(path.data(), path.size(), &options, &loaded, error); }),
      ContainsSubstring("\"ctx\""));
  const auto scheduler = options_of<tessera_scheduler_options>(R"({"max_runing": 1})");
  tessera_scheduler* made_scheduler = nullptr;
  CHECK_THAT(
      failure(TESSERA_INVALID_ARGUMENT,
              [&](auto error) { return tessera_scheduler_create(engine().get(), &scheduler, &made_scheduler, error); }),
      ContainsSubstring("did you mean \"max_running\"?"));
}

TEST_CASE("a value of the wrong kind or range is an error that says what it must be") {
  CHECK_THAT(sampler_failure(R"({"temperature": "hot"})"), ContainsSubstring("temperature: must be a number"));
  CHECK_THAT(sampler_failure(R"({"top_p": 2})"), ContainsSubstring("top-p is 2"));
  CHECK_THAT(sampler_failure(R"({"seed": -1})"), ContainsSubstring("seed: must be an integer from 0 upwards"));
  CHECK_THAT(sampler_failure(R"({"stream": 4294967296})"),
             ContainsSubstring("stream: must be an integer from 0 to 4294967295"));
  CHECK_THAT(sampler_failure(R"({"logit_bias": {"a": 1}})"), ContainsSubstring("the key must be a token"));
  CHECK_THAT(sampler_failure(R"({"stages": [{"top_k": 1, "top_p": 1}]})"), ContainsSubstring("stages[0]"));
  CHECK_THAT(sampler_failure(R"({"stages": [], "top_k": 1})"), ContainsSubstring("put the stage into the list"));
  CHECK_THAT(sampler_failure(R"({"penalties": {}, "presence_penalty": 1})"), ContainsSubstring("use one of the two"));
  CHECK_THAT(sampler_failure(R"([1])"), ContainsSubstring("must be an object"));
  CHECK_THAT(sampler_failure(R"({"seed": 1)"), ContainsSubstring("options.json"));
  CHECK_THAT(sampler_failure(R"({"seed": 1, "seed": 2})"), ContainsSubstring("options.json"));
  CHECK_THAT(sampler_failure(R"({"grammar": {"regex": "a", "ebnf": "b"}})"), ContainsSubstring("exactly one of"));
  CHECK_THAT(sampler_failure(R"({"grammar": {"regex": "("}})"), ContainsSubstring("grammar"));
  CHECK_THAT(session_failure(R"({"kv_dtype": "f17"})"), ContainsSubstring("\"int8\""));
  CHECK_THAT(session_failure(R"({"kv_kind": "page"})"), ContainsSubstring("\"paged\""));
  CHECK_THAT(session_failure(R"({"token_budget": {"tokens": 128, "choice": "x"}})"),
             ContainsSubstring("token_budget.choice"));
}

TEST_CASE("a token outside of the vocabulary is an error that names the key") {
  for (const char* json :
       {R"({"allow": [1, 99999999]})", R"({"deny": [1, 99999999]})", R"({"logit_bias": {"99999999": 1}})",
        R"({"dry": {"breakers": [1, 99999999]}})", R"({"stages": [{"deny": [99999999]}]})"})
    CHECK_THAT(sampler_failure(json), ContainsSubstring(": token 99999999 is not in the vocabulary of"));
  for (const char* json : {R"({"stop_tokens": [1, 99999999]})", R"({"beams": {"stop_tokens": [1, 99999999]}})",
                           R"({"sampler": {"deny": [1, 99999999]}})"}) {
    CHECK_THAT(request_failure(json), ContainsSubstring("[1]: token 99999999 is not in the vocabulary of"));
  }
  const CSampler sampler = c_sampler(engine(), nullptr);
  for (const Token wrong : {-1, 99999999}) {
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                       [&](auto error) { return tessera_sampler_accept(sampler.get(), wrong, error); }),
               ContainsSubstring("token: token "));
  }
  const Token follows[] = {1, -1, 99999999};
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_sampler_begin(sampler.get(), follows, 3, 3, error); }),
             ContainsSubstring("tokens[2]: token 99999999"));
  succeed([&](auto error) { return tessera_sampler_begin(sampler.get(), follows, 2, 2, error); });  // -1: an embedding
}

TEST_CASE("an empty stop text, a number out of its range and half a surrogate pair are errors that name the key") {
  CHECK_THAT(request_failure(R"({"stop": ""})"), ContainsSubstring("stop: an empty text"));
  CHECK_THAT(request_failure(R"({"stop": ["a", ""]})"), ContainsSubstring("stop: an empty text"));
  CHECK_THAT(request_failure(R"({"samples": 0})"), ContainsSubstring("samples: must be an integer from 1 to 1024"));
  CHECK_THAT(request_failure(R"({"samples": 1025})"), ContainsSubstring("samples: must be an integer from 1 to 1024"));
  CHECK_THAT(request_failure(R"({"deadline": 0})"), ContainsSubstring("deadline: must be a number above 0"));
  for (const char* key : {"aging", "max_wait", "prompt_price", "output_price", "headroom"}) {
    const std::string json = R"({"policy": "shortest_first", ")" + std::string(key) + "\": -1}";
    CHECK_THAT(scheduler_failure(json.c_str()), ContainsSubstring(std::string(key) + ": must be a number from 0"));
  }
  CHECK_THAT(scheduler_failure(R"({"headroom": 1.5})"), ContainsSubstring("headroom: must be a number from 0 to 1"));
  CHECK_THAT(scheduler_failure(R"({"first_share": 0})"),
             ContainsSubstring("first_share: must be a number above 0 and at most 1"));
  CHECK_THAT(scheduler_failure(R"({"step_seconds": 0})"), ContainsSubstring("step_seconds: must be a number above 0"));
  CHECK_THAT(scheduler_failure(R"({"max_running": 0})"), ContainsSubstring("max_running: must be an integer from 1"));
  CHECK_THAT(scheduler_failure(R"({"step_rows": 0})"), ContainsSubstring("step_rows: must be an integer from 1"));
  CHECK_THAT(scheduler_failure(R"({"weights": {"ann": 0}})"),
             ContainsSubstring("weights.ann: must be a number above 0"));
  CHECK_THAT(session_failure(R"({"salt": "\ud800"})"), ContainsSubstring("half of a surrogate pair"));
  CHECK_THAT(session_failure(R"({"checkpoints": "some"})"),
             ContainsSubstring("checkpoints: must be an integer from 0 upwards, or \"all\""));
  const std::string place = session_failure("{\"salt\"}");
  CHECK(place.starts_with("json, line 1"));
}

TEST_CASE("a scheduler whose requests may not wait says so when it is full") {
  const auto options = options_of<tessera_scheduler_options>(R"({"max_waiting": 0, "max_running": 1})");
  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(engine().get(), &options, out, error); });
  const Token token = 1;
  const auto submit = [&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), &token, 1, nullptr, nullptr, out, error);
  };
  const auto first = made<CRequest>(submit);
  tessera_request* second = nullptr;
  CHECK_THAT(failure(TESSERA_BUSY, [&](auto error) { return submit(&second, error); }),
             ContainsSubstring("1 requests at once are served, and none may wait (max_waiting is 0)"));
}

TEST_CASE("null counts as absent, and white space as no options") {
  c_sampler(engine(), R"({"temperature": null})");
  c_sampler(engine(), " \n");
  c_session(engine(), R"({"context": null, "kv_dtype": "F32"})");
}

TEST_CASE("every stage of a sampler has a name in JSON") {
  c_sampler(
      engine(),
      R"({"seed": 1, "stream": 2, "logit_bias": {"1": 0.5}, "allow": [1, 2, 3], "deny": [2], "dry": {"multiplier": 1, "base": 2,
      "allowed_length": 1, "last_n": 5, "breakers": [1], "counted": "sequence"}, "top_n_sigma": 2, "temperature": 0.5, "top_k": 3, "typical_p": 0.9,
      "top_p": 0.9, "min_p": 0.1, "xtc": {"probability": 0.1, "threshold": 0.2, "min_keep": 1}, "mirostat": {"tau": 3, "eta": 0.2},
      "penalties": {"repetition": 1.1, "frequency": 0.1, "presence": 0.1, "last_n": 10, "counted": "answer"}})");
  c_sampler(engine(), R"({"dynamic_temperature": {"low": 0.2, "high": 1.2, "exponent": 1}, "greedy": true})");
  c_sampler(engine(), R"({"seed": 18446744073709551615})");
  c_sampler(engine(), R"({"frequency_penalty": 0.1, "presence_penalty": 0.2, "repetition_penalty": 1.2})");
}

// TESSERA_TEST_WRITE: the test writes the page's tables instead of comparing them.
TEST_CASE("docs/reference/c-options.md has the tables") {
  const auto path = source_dir() / "docs/reference/c-options.md";
  constexpr std::string_view kMark = "<!-- from the tables in capi/: test_c_options writes them -->\n";
  std::ifstream in(path, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::size_t at = page.find(kMark);
  REQUIRE(at != std::string::npos);
  const std::string wanted = page.substr(0, at) + std::string(kMark) + reference();
  if (std::getenv("TESSERA_TEST_WRITE") != nullptr) {
    std::ofstream(path, std::ios::binary) << wanted;
  } else if (page != wanted) {
    FAIL("the page does not have the tables of capi/: run test_c_options with TESSERA_TEST_WRITE=1");
  }
}

}  // namespace test_c_options
