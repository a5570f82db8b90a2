// The JSON value: what its parser does where RFC 8259 leaves a choice.
#include <tessera/json/json.hpp>

#include <limits>
#include <string>

#include "catch.hpp"

namespace test_json {

using namespace tessera;

TEST_CASE("numbers that are no 64-bit integer are doubles, or stay as they are written") {
  const char* const text = "[12, -0, 1.50, 1e2, 12345678901234567890]";
  CHECK(Json::parse(text)->dump() == "[12, 0, 1.5, 100.0, 12345678901234567890]");
  const auto written = Json::parse(text, {.numbers_as_written = true});
  REQUIRE(written);
  CHECK(written->dump() == text);
  CHECK(*(*written->elements())[0].integer() == 12);
  CHECK((*written->elements())[1].written_number()->is_integer());
  CHECK_FALSE((*written->elements())[2].written_number()->is_integer());
}

TEST_CASE("a repeated key keeps its first place and its last value, or is an error where it stands") {
  const char* const text = "{\"b\": 1, \"a\": 2,\n\"b\": 3, \"c\": 4, \"b\": 5}";
  CHECK(Json::parse(text)->dump() == R"({"b": 5, "a": 2, "c": 4})");
  const auto refused = Json::parse(text, {.refuse_repeated_keys = true});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "JSON, line 2, column 1: the key \"b\" stands twice in an object");
}

TEST_CASE("texts are nested 1000 deep at most, whatever the options ask for") {
  const auto nested = [](std::size_t depth, int deepest) {
    return Json::parse(std::string(depth, '[') + std::string(depth, ']'), {.deepest = deepest}).has_value();
  };
  CHECK(nested(200, 200));
  CHECK_FALSE(nested(202, 200));
  CHECK(nested(1000, 1000));
  for (const int deepest : {1000, 1'000'000, std::numeric_limits<int>::max()}) CHECK_FALSE(nested(1'000'000, deepest));
  CHECK_FALSE(nested(2, -1));
}

TEST_CASE("half a surrogate pair becomes U+FFFD, or is an error") {
  for (const char* half : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")"}) {
    CHECK(Json::parse(half)->string()->starts_with("\xEF\xBF\xBD"));
    CHECK_FALSE(Json::parse(half, {.refuse_half_pairs = true}));
  }
  CHECK(*Json::parse(R"("\ud83d\ude00")", {.refuse_half_pairs = true})->string() == "\xF0\x9F\x98\x80");
}

TEST_CASE("an object of many keys, one of them twice, is read soon") {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 100'000; ++i) text += ", \"key" + std::to_string(i) + "\": 1";
  const auto json = Json::parse(text + ", \"a\": 2}");
  REQUIRE(json);
  CHECK(json->members()->size() == 100'001);
  CHECK(*json->find("a")->integer() == 2);
}

TEST_CASE("values that are nested two million deep are freed without recursion") {
  Json deep;
  for (int i = 0; i < 2'000'000; ++i) {
    Json around = Json::array();
    around.elements()->push_back(i % 3 == 0 ? Json("a text that is too long for a small string") : Json());
    around.elements()->push_back(std::move(deep));
    if (i % 100 == 0) around.elements()->push_back(*Json::parse("[[1, [2]], {}, {\"a\": [3]}]"));
    deep = std::move(around);
  }
  deep = Json(1);  // frees them
  for (int i = 0; i < 200'000; ++i) {
    Json around = Json::object();
    around.set("a", i);
    around.set("b", std::move(deep));
    around.set("c", "a text that is too long for a small string");
    deep = std::move(around);
  }
  Json moved = std::move(deep);
  moved = Json();
  CHECK(moved.is_null());
}

TEST_CASE("a text may have as many values as the options say") {
  CHECK(Json::parse("[1, {\"a\": []}]", {.most_values = 4}));
  const auto refused = Json::parse("[1, {\"a\":\n []}]", {.most_values = 3});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "JSON, line 1, column 10: more than 3 values");
}

}  // namespace test_json
