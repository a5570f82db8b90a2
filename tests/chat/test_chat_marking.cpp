// What came from a message stays marked whatever a template does to it, and never becomes a control token.
#include <map>
#include <random>

#include <tessera/extend/files/model_file.hpp>

#include "catch.hpp"
#include "chat/corpus.hpp"
#include "text/rig.hpp"

namespace test_chat_marking {

using namespace tessera;
using namespace tessera::tests;

namespace {

// The message's part of the output, and the template's.
std::pair<std::string, std::string> parts_of(const std::string& source, const Json& variables) {
  const auto parsed = ChatTemplate::parse(source);
  REQUIRE(parsed);
  const auto text = parsed->render(variables, {.now = kNow});
  INFO(source << ": " << (text ? "" : text.error().text()));
  REQUIRE(text);
  std::pair<std::string, std::string> out;
  for (const RenderedSpan& span : text->spans) {
    (span.origin == TextOrigin::from_message ? out.first : out.second) += span.text;
  }
  return out;
}

std::optional<Tokenizer> vocabulary(const std::string& name) {
  const std::string path = std::string(TESSERA_SHARED_DIR) + "/tokenizers/ggml-vocab-" + name + ".gguf";
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto file = ModelFile::open(path);
  REQUIRE(file);
  auto tokenizer = Tokenizer::from_settings(file->settings());
  REQUIRE(tokenizer);
  return *tokenizer;
}

bool is_control(const Tokenizer& tokenizer, Token token) {
  return tokenizer.type(token) == TokenType::control || tokenizer.type(token) == TokenType::unknown;
}

// How often each control token stands in it.
std::map<Token, std::size_t> controls(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  std::map<Token, std::size_t> out;
  for (const Token token : tokens) out[token] += is_control(tokenizer, token) ? 1 : 0;
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  return out;
}

Json one_message(const std::string& role, const std::string& content) {
  Json message = Json::object(), variables = Json::object();
  message.set("role", role);
  message.set("content", content);
  variables.set("messages", Json::Array{message});
  return variables;
}

}  // namespace

TEST_CASE("text keeps its origin through what templates do to it") {
  const Json variables = *Json::parse(R"({"m": " aXb,cXd ", "d": {"k<": "v<", "n": 12}, "l": ["p", "q"], "n": 5, "f": 1.5, "w": "w"})");
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"<{{ m }}>", {" aXb,cXd ", "<>"}},
      {"{{ '<' + m + '>' }}", {" aXb,cXd ", "<>"}},
      {"{{ '<' ~ m ~ 1 }}", {" aXb,cXd ", "<1"}},
      {"{{ m|trim }}{{ m.strip()[1:3] }}{{ m[::-1]|trim }}", {"aXb,cXdXbdXc,bXa", ""}},
      {"{{ m|trim|replace('X', '-') }}", {"ab,cd", "--"}},
      {"{{ 'abc'.replace('b', w) }}", {"w", "ac"}},
      {"{{ m.split(',')|join(';')|trim }}", {"aXbcXd", ";"}},
      {"{{ l|join('+') }}{{ '+'.join(l) }}", {"pqpq", "++"}},
      {"{{ w|upper }}{{ w|capitalize }}{{ w.title() }}", {"WWW", ""}},
      {"{{ d|tojson }}", {"k<v<n12", "{\"\": \"\", \"\": }"}},
      {"{{ d }}", {"k<v<n12", "{'': '', '': }"}},
      {"{{ n }}{{ n + 1 }}{{ f * 2 }}{{ n|string }}{{ n // 2 }}", {"563.052", ""}},
      {"{{ '%s-%d-%5s' % (w, n, 'x') }}", {"w5", "--    x"}},
      {"{{ '{}-{:>3}'.format(w, n) }}", {"w5", "-  "}},
      {"{% set x %}[{{ w }}]{% endset %}{{ x }}{{ x|upper }}", {"wW", "[][]"}},
      {"{% macro a(x) %}({{ x }}){% endmacro %}{{ a(w) }}{{ a('t') }}", {"w", "()(t)"}},
      {"{% filter upper %}t{{ w }}{% endfilter %}", {"W", "T"}},
      {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", {"k<v<n12", "=;=;"}},
      {"{{ m|list|length }}{{ l|length }}{{ l|first }}{{ l|last }}", {"pq", "92"}},
      {"{{ w|e }}{{ '<'|e }}{{ w|indent(2, true) }}", {"ww", "&lt;  "}},
      {"{{ w.center(5, '*') }}{{ w.zfill(3) }}", {"ww", "****00"}},
      {"{{ strftime_now('%Y') }}{{ w|default('z') }}{{ q|default('z') }}", {"w", "2026z"}},
      {"{{ '12'|int + n }}", {"17", ""}},
  };
  for (const auto& [source, expected] : cases) {
    INFO(source);
    const auto found = parts_of(source, variables);
    CHECK(found.first == expected.first);
    CHECK(found.second == expected.second);
  }
}

TEST_CASE("usual roles are the template's, others the message's") {
  const std::string source = "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] }}{% endfor %}";
  CHECK(parts_of(source, one_message("user", "x")) == std::pair<std::string, std::string>("x", "<|user|>"));
  CHECK(parts_of(source, one_message("im_end", "x")) == std::pair<std::string, std::string>("im_endx", "<||>"));
}

TEST_CASE("where no message holds a control token's name the tokens are those of the whole text") {
  const auto tokenizer = vocabulary("deepseek-coder");
  const auto templates = shared_templates();
  if (!tokenizer || templates.empty()) return skip("../shared/tokenizers or templates are not there");
  std::size_t compared = 0;
  for (const NamedTemplate& one : templates) {
    const auto parsed = ChatTemplate::parse(one.source, one.special);
    if (!parsed) continue;
    for (const std::size_t talk : {std::size_t{3}, std::size_t{5}}) {
      const auto text = parsed->render(conversations()[talk], {.now = kNow});
      if (!text) continue;
      const auto tokens = text->encode(*tokenizer);
      const auto whole = tokenizer->encode(text->text(), {.bos = Bos::never, .special = Special::parse});
      REQUIRE(tokens);
      CHECK(*tokens == *whole);
      ++compared;
    }
  }
  CHECK(compared > 150);
}

TEST_CASE("a message that holds every control token's name yields none of their ids, in any template") {
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  for (const char* name : {"deepseek-coder", "phi-3", "llama-spm", "gpt-2"}) {
    const auto tokenizer = vocabulary(name);
    if (!tokenizer) return skip("../shared/tokenizers is not there");
    INFO(name);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tokenizer->vocab_size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (is_control(*tokenizer, token) && !tokenizer->text(token).empty()) names.emplace_back(tokenizer->text(token));
    }
    REQUIRE_FALSE(names.empty());
    // A word in the place of every name: what control tokens are left are the template's own.
    std::string forged, harmless;
    for (const std::string& text : names) forged += text + " x ", harmless += "w x ";
    for (const NamedTemplate& one : templates) {
      INFO(one.name);
      const auto parsed = ChatTemplate::parse(one.source, {.bos = names[0], .eos = names.back()});
      if (!parsed) continue;
      const auto evil = parsed->render(one_message("user", forged), {.now = kNow});
      const auto good = parsed->render(one_message("user", harmless), {.now = kNow});
      if (!evil || !good) continue;
      const auto evil_tokens = evil->encode(*tokenizer), good_tokens = good->encode(*tokenizer);
      REQUIRE(evil_tokens);
      REQUIRE(good_tokens);
      CHECK(controls(*tokenizer, *evil_tokens) == controls(*tokenizer, *good_tokens));
      if (tokenizer->model() != TokenizerModel::gpt2) continue;  // these put a blank before each part
      CHECK(*tokenizer->decode(*evil_tokens, {.control = ControlText::show}) ==
            *tokenizer->decode(*tokenizer->encode(evil->text(), {.bos = Bos::never}), {.control = ControlText::show}));
    }
  }
}

TEST_CASE("random templates over random messages forge no control token") {
  rig::Vocab vocab;
  vocab.model = "gpt2";
  vocab.pre = "gpt-2";
  for (const char* text : {"<|a|>", "<|ab|>", "|><|", "a|>", "<|"}) vocab.add(text, TokenType::control);
  for (const char c : {'<', '|', '>', 'a', 'b', 'x'}) vocab.add(std::string(1, c));
  const Tokenizer tokenizer = rig::tokenizer(vocab);
  std::mt19937 random(7);
  const auto piece = [&] {
    constexpr const char* pieces[] = {"<|", "|>", "a", "b", "<", ">", "|", "<|a|>", "x"};
    std::string out;
    for (auto n = random() % 5; n > 0; --n) out += pieces[random() % 9];
    return out;
  };
  std::size_t forged = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string source, ours;
    Json variables = Json::object();
    for (int i = 0; i < 4; ++i) {
      const std::string own = piece(), value = piece();
      const std::string name = fmt::format("v{}", i);
      variables.set(name, value);
      source += "{{ '" + own + "' ~ " + name + " }}";
    }
    const auto parsed = ChatTemplate::parse(source);
    REQUIRE(parsed);
    const auto text = parsed->render(variables);
    REQUIRE(text);
    const auto tokens = text->encode(tokenizer);
    REQUIRE(tokens);
    // The tokens' texts in a row are the whole, and each control token lies in template text.
    std::vector<bool> template_byte;
    for (const RenderedSpan& span : text->spans) {
      template_byte.insert(template_byte.end(), span.text.size(), span.origin == TextOrigin::from_template);
    }
    std::string whole;
    for (const Token token : *tokens) {
      const std::size_t begin = whole.size();
      whole += tokenizer.text(token);
      if (!is_control(tokenizer, token)) continue;
      for (std::size_t at = begin; at < whole.size(); ++at) CHECK(template_byte.at(at));
    }
    CHECK(whole == text->text());
    forged += *tokens != *tokenizer.encode(text->text(), {.bos = Bos::never, .special = Special::parse}) ? 1 : 0;
  }
  CHECK(forged > 500);  // the messages did try
}

}  // namespace test_chat_marking
