// A JSON text is read alike from memory and through windows of any size.
#include "catch.hpp"
#include "files/safetensors/json_window.hpp"

#include <vector>

namespace test_json_window {

using namespace tessera;
using namespace tessera::detail;

namespace {

// Returns what a reader finds in a text that should be an object, and its error at the end.
std::string found(JsonPullReader& json) {
  std::string out, text;
  const auto value = [&]() -> Status {
    TESSERA_TRY(const JsonPullReader::Type type, json.type());
    if (type == JsonPullReader::Type::string) {
      TESSERA_TRY_STATUS(json.string(text, 40));
      out += "'" + text + "' ";
    } else if (type == JsonPullReader::Type::number) {
      TESSERA_TRY(const std::string_view written, json.written_number());
      out.append(written).append(" ");
    } else if (type == JsonPullReader::Type::boolean) {
      TESSERA_TRY(const bool is_true, json.boolean());
      out += is_true ? "yes " : "no ";
    } else {
      out += "skipped ";
      return json.skip();
    }
    return {};
  };
  std::string key;
  Status status = json.members(key, 100, [&] {
    out += key + ": ";
    return value();
  });
  if (status) status = json.end();
  return out + (status ? "done" : status.error().message());
}

}  // namespace

TEST_CASE("windows of any size give the values and the faults of the whole text") {
  const std::string_view kTexts[] = {
      R"( {"a": "é日😀\u00e9\ud83d\ude00\n" , "b":-12.50e+3,"c":true,"d": [1, {"x": [null, "]}\\"]}, false], "e": 0, "f": {}} )",
      R"({"a": 1} x)", R"({"a": "\ud83d"})", "{\"a\": \"\xe6\x97\"}", R"({"a": [1, 2}, "b": 3})", R"({"a": -})", R"({"a": trua})", R"({"a": 1)",
      R"({"a": [1,]})", R"({"a": "0123456789012345678901234567890123456789x"})", R"({"a": [{"b": "\x"}]})", ""};
  for (const std::string_view text : kTexts) {
    JsonPullReader whole(text);
    std::string wanted = found(whole);
    if (const auto place = wanted.find(" (line"); place != wanted.npos) wanted.resize(place);
    INFO(text);
    const auto source = memory_source(std::as_bytes(std::span(text)));
    for (std::size_t size = 1; size < 12; ++size) {
      std::vector<char> window(size);
      const std::stop_token never;
      JsonWindow input(**source, window, 0, text.size(), never);
      JsonPullReader json(input);
      CHECK(found(json) == wanted);
    }
  }
  JsonPullReader first(kTexts[0]);
  CHECK(found(first) == "a: 'é日😀é😀\n' b: -12.50e+3 c: yes d: skipped e: 0 f: skipped done");
}

}  // namespace test_json_window
