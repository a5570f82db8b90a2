// libFuzzer's entry to chat templates and output parsers: any bytes end in a text or an error, soon; output cut in two is
// read as the whole. The input is a template, a zero byte, and JSON of its variables. See CMakeLists.txt for how to run it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/extend/chat/output_parser.hpp>

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

void render(std::string_view source, std::string_view json) {
  using namespace tessera;
  const auto parsed = ChatTemplate::parse(source, {.bos = "<s>", .eos = "</s>"});
  if (!parsed) return require(!parsed.error().message().empty());
  auto variables = Json::parse(json);
  if (!variables || variables->members() == nullptr) {
    variables = Json::parse(R"({"messages": [{"role": "user", "content": "a <|b|>"}, {"role": "assistant", "content": ""}], "n": 3})");
  }
  const auto text = parsed->render(*variables, {.now = LocalTime{}, .limits = {.steps = 20'000}});
  if (!text) return require(text.error().code() != ErrorCode::internal);
  for (std::size_t i = 0; i < text->spans.size(); ++i) {
    require(!text->spans[i].text.empty());
    require(i == 0 || text->spans[i].origin != text->spans[i - 1].origin);
  }
}

tessera::Json parsed_output(const tessera::OutputFormat& format, std::string_view a, std::string_view b, tessera::OutputEnd end) {
  auto parser = tessera::OutputParser::create(format);
  require(parser.has_value());
  require(parser->push(a).has_value());
  require(parser->push(b).has_value());
  require(parser->finish(end).has_value());
  return parser->message()->to_json();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  render(input.substr(0, zero), zero == input.npos ? std::string_view() : input.substr(zero + 1));
  static const auto formats = tessera::output_formats();
  if (!formats || input.empty()) return 0;
  const auto& format = (*formats)[static_cast<unsigned char>(input[0]) % formats->size()];
  const std::string_view output = input.substr(1);
  const std::size_t cut = output.size() / 2;
  for (const auto end : {tessera::OutputEnd::whole, tessera::OutputEnd::cut}) {
    require(parsed_output(format, output, {}, end) == parsed_output(format, output.substr(0, cut), output.substr(cut), end));
  }
  return 0;
}
