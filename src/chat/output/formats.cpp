#include <algorithm>
#include <utility>

#include <tessera/extend/chat/output_format.hpp>

#include "core/printable.hpp"
#include "core/error.hpp"

namespace tessera {
namespace {

OutputRegion reasoning(std::string open, std::string close) {
  return {.kind = RegionKind::reasoning, .open = {std::move(open)}, .close = {std::move(close)}};
}
OutputRegion calls(std::vector<std::string> open, std::vector<std::string> close, CallForm form) {
  return {.kind = RegionKind::calls, .open = std::move(open), .close = std::move(close), .call = std::move(form)};
}

std::vector<OutputFormat> make_formats() {
  const OutputRegion think = reasoning("<think>", "</think>");
  const std::vector<std::string> chatml{"<|im_end|>"};
  const std::string dsml = "｜DSML｜", hunyuan = ":opensource>", m3 = "]<]minimax[>[";
  const CallList lines{.separator = "\n"}, brackets{.open = "[", .separator = ",", .close = "]"};
  const CallForm json{};
  const CallForm xml{.syntax = CallSyntax::parameters, .open = "<invoke name=\"", .after_name = "\">", .close = "</invoke>",
                     .key_open = "<parameter name=\"", .key_close = "\">", .value_close = "</parameter>", .list = lines};
  const CallForm function_xml{.syntax = CallSyntax::parameters, .open = "<function=", .after_name = ">", .close = "</function>",
                              .key_open = "<parameter=", .key_close = ">", .value_close = "</parameter>", .value_pad = "\n"};
  CallForm seed = function_xml;
  seed.value_pad = "";
  const CallForm named_mistral{.syntax = CallSyntax::named_json, .after_name = "[ARGS]", .name_end = "["};
  CallForm listed = json;
  listed.list = brackets;
  const auto call_of = [](std::string open, std::string close) {
    return CallForm{.syntax = CallSyntax::parameters, .open = std::move(open), .after_name = "\">", .close = std::move(close)};
  };
  CallForm dsml_call = call_of("<" + dsml + "invoke name=\"", "</" + dsml + "invoke>");
  dsml_call.key_open = "<" + dsml + "parameter name=\"";
  dsml_call.key_close = "\"";
  dsml_call.value_open = ">";
  dsml_call.value_close = "</" + dsml + "parameter>";
  dsml_call.list = lines;
  dsml_call.marks_strings = true;

  // Returns the region with a second form of calls, which the parser also accepts.
  const auto with = [](OutputRegion region, CallForm also) {
    region.also.push_back(std::move(also));
    return region;
  };

  OutputRegion llama = calls({"{\"name\"", "{\"type\""}, {"<|eom_id|>", "<|eot_id|>"},
                             {.arguments_key = "parameters", .list = CallList{.separator = ";"}});
  llama.at_start = llama.keeps_open = true;
  OutputRegion python = calls({"["}, {"<|eom_id|>", "<|eot_id|>", "<|eot|>"},
                              {.syntax = CallSyntax::pythonic, .list = brackets});
  python.at_start = python.keeps_open = true;
  OutputRegion harmony_text{.kind = RegionKind::text, .open = {"<|channel|>final<|message|>", "<|channel|>commentary<|message|>"},
                            .close = {"<|return|>", "<|end|>"}};

  return {
      {"hermes", {think, with(calls({"<tool_call>"}, {"</tool_call>"}, json), function_xml)}, chatml},
      {"qwen-xml", {think, with(calls({"<tool_call>"}, {"</tool_call>"}, function_xml), json)}, chatml},
      {"llama-json",
       {calls({"<|python_tag|>"}, {"<|eom_id|>", "<|eot_id|>"}, {.arguments_key = "parameters"}), llama},
       {"<|eot_id|>", "<|eom_id|>"}},
      {"pythonic", {calls({"<|python_start|>"}, {"<|python_end|>"}, {.syntax = CallSyntax::pythonic, .list = brackets}), python},
       {"<|eot_id|>", "<|eom_id|>", "<|eot|>"}},
      {"mistral", {reasoning("[THINK]", "[/THINK]"), with(calls({"[TOOL_CALLS]"}, {"</s>"}, listed), named_mistral)}, {"</s>"}},
      {"mistral-args", {reasoning("[THINK]", "[/THINK]"), with(calls({"[TOOL_CALLS]"}, {"</s>"}, named_mistral), listed)}, {"</s>"}},
      {.name = "harmony",
       .regions = {reasoning("<|channel|>analysis<|message|>", "<|end|>"), harmony_text,
                   calls({"<|channel|>commentary to=functions.", "<|start|>assistant to=functions.", "<|channel|>analysis to=functions."},
                         {"<|call|>"}, {.syntax = CallSyntax::named_json, .after_name = "<|message|>",
                                        .name_end = " <",
                                        .name_tails = {" <|constrain|>json", " json", "<|channel|>commentary json",
                                                       "<|channel|>commentary <|constrain|>json"}})},
       .dropped = {"<|return|>", "<|end|>", "<|call|>", "<|message|>", "<|constrain|>"},
       .between = "<|start|>assistant",
       .header = MessageHeader{.start = "<|start|>", .channel = "<|channel|>", .end = "<|message|>", .role = "assistant", .recipient = "to=", .prefix = "functions.",
                               .channels = {{"analysis", RegionKind::reasoning}, {"commentary"}, {"final"}},
                               .blank = {"<|constrain|>"}}},
      {"deepseek-v3",
       {think, calls({"<｜tool▁calls▁begin｜>"}, {"<｜tool▁calls▁end｜>"},
                     {.syntax = CallSyntax::named_json, .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                      .after_name = "\n```json\n", .close = "\n```<｜tool▁call▁end｜>", .list = lines})},
       {"<｜end▁of▁sentence｜>"}},
      {"deepseek-v3.1",
       {think, calls({"<｜tool▁calls▁begin｜>"}, {"<｜tool▁calls▁end｜>"},
                     {.syntax = CallSyntax::named_json, .open = "<｜tool▁call▁begin｜>", .after_name = "<｜tool▁sep｜>",
                      .close = "<｜tool▁call▁end｜>", .list = lines})},
       {"<｜end▁of▁sentence｜>"}},
      {"deepseek-dsml",
       {think, calls({"<" + dsml + "function_calls>", "<" + dsml + "tool_calls>"},
                     {"</" + dsml + "function_calls>", "</" + dsml + "tool_calls>"}, dsml_call)},
       {"<｜end▁of▁sentence｜>"}},
      {"glm",
       {think, with(calls({"<tool_call>"}, {"</tool_call>"},
                          {.syntax = CallSyntax::parameters, .key_open = "<arg_key>", .key_close = "</arg_key>",
                           .value_open = "<arg_value>", .value_close = "</arg_value>"}), json)},
       {"<|user|>", "<|observation|>", "<|endoftext|>"}},
      {"kimi",
       {think, calls({"<|tool_calls_section_begin|>"}, {"<|tool_calls_section_end|>"},
                     {.syntax = CallSyntax::named_json, .open = "<|tool_call_begin|>",
                      .after_name = "<|tool_call_argument_begin|>", .close = "<|tool_call_end|>", .name_prefix = "functions.",
                      .id_mark = ":", .list = CallList{}})},
       chatml},
      {"minimax", {think, calls({"<minimax:tool_call>"}, {"</minimax:tool_call>"}, xml)}, {"[e~["}},
      {"gemma",
       {{.kind = RegionKind::reasoning, .open = {"<|channel>thought\n", "<|channel>thought"}, .close = {"<channel|>"}},
        calls({"<|tool_call>"}, {"<tool_call|>"}, {.syntax = CallSyntax::braces, .open = "call:"})},
       {"<turn|>", "<|tool_response>"}},
      {"granite", {think, calls({"<|tool_call|>"}, {"<|end_of_text|>"}, listed)}, {"<|end_of_text|>"}},
      {"cohere",
       {reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
        calls({"<|START_ACTION|>"}, {"<|END_ACTION|>"},
              {.name_key = "tool_name", .arguments_key = "parameters", .id_key = "tool_call_id", .list = brackets,
               .has_id = true}),
        {.kind = RegionKind::text, .open = {"<|START_RESPONSE|>", "<|START_TEXT|>"},
         .close = {"<|END_RESPONSE|>", "<|END_TEXT|>"}}},
       {"<|END_OF_TURN_TOKEN|>"}},
      {"command-r",
       {calls({"Action: ```json", "Action:\n```json", "Action:```json"}, {"```"},
              {.name_key = "tool_name", .arguments_key = "parameters", .id_key = "tool_call_id", .list = brackets})},
       {"<|END_OF_TURN_TOKEN|>"}},
      {"lfm", {think, calls({"<|tool_call_start|>"}, {"<|tool_call_end|>"}, {.syntax = CallSyntax::pythonic, .list = brackets})}, chatml},
      {"seed", {reasoning("<seed:think>", "</seed:think>"), with(calls({"<seed:tool_call>"}, {"</seed:tool_call>"}, seed), json)},
       {"<seed:eos>"}},
      {"minimax-m3",
       {reasoning("<mm:think>", "</mm:think>"),
        calls({m3 + "<tool_call>"}, {m3 + "</tool_call>"},
              {.syntax = CallSyntax::elements, .open = m3 + "<invoke name=\"", .after_name = "\">", .close = m3 + "</invoke>", .mark = m3,
               .list = lines})},
       {"[e~["}},
      {"apriel",
       {reasoning("<thinking>", "</thinking>"), calls({"<tool_calls>"}, {"</tool_calls>"}, listed)},
       {"<|end|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"}},
      {"functionary",
       {calls({"<function="}, {}, {.syntax = CallSyntax::named_json, .after_name = ">", .close = "</function>"})},
       {"<|eot_id|>", "<|eom_id|>"}},
      {.name = "functionary-3.2",
       .regions = {calls({">>>"}, {}, {.syntax = CallSyntax::named_json, .after_name = "\n"})},
       .dropped = {">>>all\n", "<|eot_id|>", "<|eom_id|>"},
       .recipients = Recipients{.mark = ">>>", .text = "all\n"}},
      {"apertus",
       {reasoning("<|inner_prefix|>", "<|inner_suffix|>"),
        calls({"<|tools_prefix|>"}, {"<|tools_suffix|>"}, {.name_key = "", .arguments_key = "", .id_key = "", .list = brackets})},
       {"<|assistant_end|>"}},
      {"gigachat", {think, calls({"function call<|role_sep|>"}, {"<|message_sep|>"}, json)}, {"<|message_sep|>"}},
      {"gigachat-3.1", {think, calls({"<|function_call|>"}, {"<|message_sep|>"}, json)}, {"<|message_sep|>"}},
      {"hunyuan",
       {reasoning("<think" + hunyuan, "</think" + hunyuan),
        calls({"<tool_calls" + hunyuan}, {"</tool_calls" + hunyuan},
              {.syntax = CallSyntax::parameters, .open = "<tool_call" + hunyuan, .after_name = "<tool_sep" + hunyuan,
               .close = "</tool_call" + hunyuan, .key_open = "<arg_key" + hunyuan, .key_close = "</arg_key" + hunyuan,
               .value_open = "<arg_value" + hunyuan, .value_close = "</arg_value" + hunyuan, .list = lines})},
       {"<｜hy_eos:opensource｜>"}},
      {"minicpm",
       {think, calls({"<function name=\""}, {},
                     {.syntax = CallSyntax::parameters, .after_name = "\">", .close = "</function>", .key_open = "<param name=\"",
                      .key_close = "\">", .value_close = "</param>", .text_open = "<![CDATA[", .text_close = "]]>"})},
       chatml},
      {"solar",
       {reasoning("<|think|>", "<|end|>"),
        calls({"<|tool_calls|>"}, {"<|calls|>"},
              {.syntax = CallSyntax::named_json, .open = "<|tool_call:begin|>", .after_name = "<|tool_call:args|>",
               .close = "<|tool_call:end|>", .id_end = "<|tool_call:name|>", .list = CallList{}}),
        {.kind = RegionKind::text, .open = {"<|content|>"}, .close = {"<|end|>", "<|flush|>"}}},
       {"<|begin|>assistant", "<|end|>", "<|flush|>", "<|calls|>"}, "<|begin|>assistant"},
      {"nemotron", {think, calls({"<TOOLCALL>"}, {"</TOOLCALL>"}, listed)}, {"<SPECIAL_12>"}},
      {"think", {think}, {"<|im_end|>", "<|eot_id|>", "</s>"}},
  };
}

// Texts by which a template is recognised as using the format. The first rule whose texts all occur in the template counts.
struct Rule {
  std::string_view format;
  std::string_view first, second;
};
constexpr Rule kRules[] = {
    {"harmony", "<|channel|>", "<|message|>"},
    {"gemma", "<|tool_call>", "call:"},
    {"kimi", "<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
    {"minimax-m3", "]<]minimax[>[", "<invoke"},
    {"minimax", "minimax:tool_call", "<invoke"},
    {"deepseek-dsml", "｜DSML｜", "invoke"},
    {"deepseek-v3", "<｜tool▁calls▁begin｜>", "```json"},
    {"deepseek-v3.1", "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"},
    {"cohere", "<|START_ACTION|>", "tool_name"},
    {"command-r", "Action:", "\"tool_name\""},
    {"lfm", "<|tool_call_start|>", ""},
    {"seed", "<seed:tool_call>", ""},
    {"solar", "<|tool_call:begin|>", "<|tool_call:args|>"},
    {"apertus", "<|tools_prefix|>", "<|tools_suffix|>"},
    {"minicpm", "<function name=", "<param name="},
    {"hunyuan", "<tool_sep", "<arg_key"},
    {"gigachat-3.1", "<|function_call|>", "<|role_sep|>"},
    {"gigachat", "function call", "<|role_sep|>"},
    {"nemotron", "<TOOLCALL>", ""},
    {"apriel", "<tool_calls>[", ""},
    {"functionary", "<function=", "<|python_tag|>"},
    {"functionary-3.2", ">>>all", "<|start_header_id|>"},
    {"mistral-args", "[TOOL_CALLS]", "[ARGS]"},
    {"mistral", "[TOOL_CALLS]", ""},
    {"glm", "<arg_key>", "<arg_value>"},
    {"qwen-xml", "<function=", "<parameter="},
    {"granite", "<|tool_call|>", ""},
    {"hermes", "<tool_call>", ""},
    {"llama-json", "<|python_tag|>", "parameters"},
    {"llama-json", "<|start_header_id|>", "\"parameters\""},
};

}  // namespace

Result<std::vector<OutputFormat>> output_formats() noexcept {
  return detail::guard([]() -> Result<std::vector<OutputFormat>> { return make_formats(); });
}

Result<OutputFormat> find_output_format(std::string_view name) noexcept {
  return detail::guard([&]() -> Result<OutputFormat> {
    std::string names;
    for (OutputFormat& format : make_formats()) {
      if (format.name == name) return std::move(format);
      names.append(names.empty() ? "" : ", ").append(format.name);
    }
    return detail::make_error(ErrorCode::not_found, "there is no output format '{}'; there are: {}",
                              detail::printable(name), names);
  });
}

Result<OutputFormat> choose_output_format(const ChatTemplate& chat_template) noexcept {
  TESSERA_TRY_STATUS(chat_template.status());
  const std::string_view source = chat_template.source();
  for (const Rule& rule : kRules) {
    if (source.find(rule.first) != source.npos && source.find(rule.second) != source.npos) {
      return find_output_format(rule.format);
    }
  }
  return find_output_format("think");
}

Result<std::vector<MarkedText>> reasoning_stretches(const OutputFormat& format) noexcept {
  return detail::guard([&]() -> Result<std::vector<MarkedText>> {
    std::vector<MarkedText> stretches;
    for (const OutputRegion& region : format.regions) {
      if (region.kind == RegionKind::reasoning) stretches.push_back({.open = region.open, .close = region.close});
    }
    if (!format.header) return stretches;
    const MessageHeader& header = *format.header;
    for (MarkedText& stretch : stretches) {  // in formats with headers, reasoning may also follow a header directly
      const std::size_t opens = stretch.open.size();
      for (std::size_t i = 0; i < opens; ++i) stretch.open.push_back(header.start + header.role + stretch.open[i]);
    }
    stretches.push_back({.open = {header.start, header.channel}, .close = {header.end}});
    return stretches;
  });
}

bool OutputFormat::closes_with(std::string_view text) const noexcept {
  const auto among = [&](const std::vector<std::string>& markers) { return std::ranges::find(markers, text) != markers.end(); };
  return among(dropped) || std::ranges::any_of(regions, [&](const OutputRegion& region) { return among(region.close); });
}

bool OutputFormat::ends_in_reasoning(std::string_view prompt) const noexcept {
  const std::size_t end = prompt.find_last_not_of(" \n\t");
  if (end == prompt.npos) return false;
  prompt = prompt.substr(0, end + 1);
  for (const OutputRegion& region : regions) {
    if (region.kind != RegionKind::reasoning) continue;
    for (std::string_view open : region.open) {
      while (!open.empty() && open.back() == '\n') open.remove_suffix(1);
      if (prompt.ends_with(open)) return true;
    }
  }
  return false;
}

}  // namespace tessera
