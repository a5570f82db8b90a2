// Templates that would hang or eat a host: an error each, soon and within 16 MB.
#include <ctime>

#include <fmt/format.h>

#include "catch.hpp"
#include "chat/corpus.hpp"
#include "counted_new.hpp"

namespace test_chat_hostile {

using namespace tessera;
using namespace tessera::tests;

namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct Hostile {
  std::string name;
  std::string source;
};

std::vector<Hostile> hostile_templates() {
  const std::string loop = "{% for a in range(100000) %}", end = "{% endfor %}";
  const std::string doubling = "{% set ns = namespace(x='ab') %}{% for i in range(60) %}";
  return {
      {"nested loops", loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}"},
      {"nested loops that print", loop + loop + "xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}"},
      {"ranges as lists", loop + "{% set x = range(100000)|list %}" + end},
      {"a range too long", "{{ range(100001)|list }}"},
      {"string multiplication", "{{ 'x' * 1000000000 }}"},
      {"string multiplication of the largest number", "{{ 'xx' * 9223372036854775807 }}"},
      {"list multiplication", "{{ [1] * 1000000000 }}"},
      {"multiplication in steps", "{% set x = 'x' * 100000 %}{% set y = x * 100000 %}{{ y }}"},
      {"doubling text", doubling + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}"},
      {"doubling by join", doubling + "{% set ns.x = [ns.x, ns.x]|join(ns.x) %}{% endfor %}{{ ns.x }}"},
      {"doubling by replace", doubling + "{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}{{ ns.x }}"},
      {"doubling lists", doubling + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"},
      {"doubling lists to JSON", doubling + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}"},
      {"comparing doubled lists", doubling + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{% set b = ns.x %}{{ ns.x == b }}"
                                             "{{ [ns.x, 1] == [b, 2] }}"},
      {"a list in itself, deep", "{% set ns = namespace(x=[]) %}" + loop + "{% set ns.x = [ns.x] %}" + end},
      {"a namespace in itself", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"},
      {"many namespaces", loop + "{% set ns = namespace(a=1, b=2, c=3) %}" + end},
      {"a macro that calls itself", "{% macro m(x) %}{{ m(x + 1) }}{% endmacro %}{{ m(0) }}"},
      {"a macro that calls itself twice", "{% macro m(x) %}{% if x %}{{ m(x - 1) }}{{ m(x - 1) }}{% endif %}{% endmacro %}"
                                          "{{ m(60) }}"},
      {"macros that call each other", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"},
      {"call blocks that nest", "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}"},
      {"a recursive loop over itself", "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}"},
      {"deep brackets", "{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}"},
      {"deep lists", "{{ " + repeated("[", 50000) + repeated("]", 50000) + " }}"},
      {"deep dicts", "{{ " + repeated("{1:", 50000) + "1" + repeated("}", 50000) + " }}"},
      {"deep nots", "{{ " + repeated("not ", 100000) + "1 }}"},
      {"deep signs", "{{ " + repeated("-", 100000) + "1 }}"},
      {"deep conditions", repeated("{% if 1 %}", 50000)},
      {"a long chain of additions", "{{ 1" + repeated(" + 1", 100000) + " }}"},
      {"a long chain of attributes", "{{ a" + repeated(".a", 100000) + " }}"},
      {"a long chain of filters", "{{ a" + repeated("|upper", 100000) + " }}"},
      {"a long chain of comparisons", "{{ 1" + repeated(" < 1", 200000) + " }}"},
      {"a huge template", repeated("{{ a }}", 160000)},
      {"a power", "{{ 9 ** 999999999 }}"},
      {"a huge sum", "{{ 9223372036854775807 + 1 }}"},
      {"the smallest number over minus one", "{{ (-9223372036854775807 - 1) // -1 }}"},
      {"a huge range", "{{ range(-9223372036854775807, 9223372036854775807)|length }}"},
      {"a wide format", "{{ '%999999999d' % 1 }}"},
      {"a wide format by braces", "{{ '{:>999999999}'.format(1) }}"},
      {"a wide centre", "{{ 'x'|center(999999999) }}"},
      {"wide padding", "{{ 'x'.ljust(9223372036854775807) }}"},
      {"a wide indent", "{{ 'x'|indent(999999999) }}"},
      {"a wide JSON indent", "{{ [[1]]|tojson(indent=999999999) }}"},
      {"batches without end", "{{ [1]|batch(999999999, 0)|list }}"},
      {"slices without end", "{{ [1]|slice(999999999)|list }}"},
      {"searching text again and again", "{% set x = 'a' * 1000000 %}" + loop + "{% set y = x.count('ab') %}" + end},
      {"splitting to letters", "{% set x = 'a' * 1000000 %}" + loop + "{% set y = x|list %}" + end},
      {"upper case again and again", "{% set x = 'a' * 1000000 %}" + loop + "{% set y = x|upper %}" + end},
      {"sorting again and again", "{% set x = range(20000)|list %}" + loop + "{% set y = x|sort %}" + end},
      {"unique over many", "{{ range(100000)|unique|list }}"},
      {"an attribute trick", "{{ ''.__class__.__mro__[1].__subclasses__() }}"},
      {"another", "{{ namespace.__init__.__globals__ }}"},
      {"one by format", "{{ '{0.__class__}'.format('') }}"},
      {"one by map", "{{ ['']|map(attribute='__class__.__mro__')|list }}"},
      {"changing a list", "{{ messages.append(1) }}"},
      {"names without end", "{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**dict(m, a=1)) }}"},
      {"never closed", repeated("{% for a in b %}", 60)},
      {"a comment never closed", repeated("{#", 100000)},
      {"a raw block never closed", "{% raw %}" + repeated("{% endraw", 50000)},
  };
}

}  // namespace

TEST_CASE("a hostile template is an error, soon and within 16 MB") {
  // The one that took longest is told and not judged, as machines differ. What is judged is counted: bytes at once, and allocations.
  std::string slowest;
  double longest = 0.0;
  const Json variables = *Json::parse(R"({"messages": [{"role": "user", "content": "hi"}], "b": []})");
  for (const Hostile& one : hostile_templates()) {
    INFO(one.name);
    counted::Scope scope;
    const std::clock_t start = std::clock();
    auto parsed = ChatTemplate::parse(one.source);
    const auto text = parsed ? parsed->render(variables) : Result<RenderedText>(parsed.error());
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    scope.stop();
    if (seconds > longest) {
      longest = seconds;
      slowest = one.name;
    }
    CHECK_FALSE(text);
    if (!text) {
      INFO(text.error().text());
      CHECK_FALSE(text.error().message().empty());
      CHECK(text.error().code() != ErrorCode::internal);
      CHECK(text.error().place().starts_with("chat template"));
    }
    CHECK(counted::count < 1'000'000);
    CHECK(counted::peak < 16u << 20);
  }
  fmt::print("the slowest: {}, {:.3f} s\n", slowest, longest);
}

TEST_CASE("a long conversation has room: limits grow with it") {
  const auto parsed = ChatTemplate::parse(
      "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all + m.role ~ ': ' ~ m.content|trim ~ '\\n' %}"
      "{% endfor %}{{ ns.all }}");
  REQUIRE(parsed);
  ChatRequest request;
  for (int i = 0; i < 500; ++i) request.messages.push_back({.role = "user", .content = repeated("words and ", 200)});
  const auto text = parsed->render(request);
  REQUIRE(text);
  CHECK(text->text().size() > 1'000'000);
}

TEST_CASE("what a loop leaves behind cannot be used") {
  for (const char* source : {"{% set ns = namespace() %}{% for x in [1] %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}",
                             "{% set ns = namespace() %}{% for x in [1] %}{% macro m() %}{{ x }}{% endmacro %}{% set ns.m = m %}"
                             "{% endfor %}{% for y in [2] %}{{ ns.m() }}{% endfor %}",
                             "{% set ns = namespace() %}{% for x in [1] %}{% set ns.c = loop.changed %}{% endfor %}{{ ns.c(1) }}",
                             "{% set ns = namespace() %}{% for x in [1] %}{% set ns.c = loop.cycle %}{% endfor %}{{ ns.c(1) }}",
                             "{% set ns = namespace() %}{% for x in [[1]] recursive %}{% set ns.l = loop %}{% endfor %}{{ ns.l([1]) }}"}) {
    INFO(source);
    const auto parsed = ChatTemplate::parse(source);
    REQUIRE(parsed);
    CHECK_FALSE(parsed->render(Json::object()));
  }
}

TEST_CASE("memory that runs out at any allocation is an error, and the template goes on working") {
  const auto parsed = ChatTemplate::parse(
      "{% macro m(x) %}[{{ x|upper }}]{% endmacro %}{% for m_ in messages %}{{ m(m_.content) ~ m_|tojson }}{% endfor %}");
  REQUIRE(parsed);
  const Json variables = *Json::parse(R"({"messages": [{"role": "user", "content": "some words of a message"}]})");
  const auto whole = parsed->render(variables);
  REQUIRE(whole);
  bool done = false;
  for (int i = 0; i < 2000 && !done; ++i) {
    counted::left = i;
    counted::failed = 0;
    counted::failure = counted::Failure::once;
    counted::active = true;
    const auto text = parsed->render(variables);
    counted::active = false;
    counted::failure = counted::Failure::none;
    done = counted::failed == 0;
    if (done) CHECK(text->text() == whole->text());
    else CHECK((!text && text.error().code() == ErrorCode::out_of_memory));
  }
  CHECK(done);
}

}  // namespace test_chat_hostile
