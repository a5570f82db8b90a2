// Calls as the models of every format write them.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <tessera/extend/chat/output_format.hpp>
#include <tessera/grammar/compiled.hpp>

#include "catch.hpp"

namespace tessera::tests {

struct Call {
  std::string name;
  Json arguments;
};

// Python's literals, or Gemma's.
inline std::string literal(const Json& json, bool python) {
  if (json.string() != nullptr) {
    if (!python) return "<|\"|>" + *json.string() + "<|\"|>";
    std::string out = "\"";
    for (const char c : *json.string()) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n') out += "\\n";
      else out += c;
    }
    return out + "\"";
  }
  if (json.boolean() != nullptr && python) return *json.boolean() ? "True" : "False";
  std::string out;
  if (json.elements() != nullptr) {
    for (const Json& one : *json.elements()) out += (out.empty() ? "" : python ? ", " : ",") + literal(one, python);
    return "[" + out + "]";
  }
  if (json.members() == nullptr) return json.dump();
  for (const auto& [key, value] : *json.members()) {
    out += out.empty() ? "" : python ? ", " : ",";
    out += literal(Json(key), python) + (python ? ": " : ":") + literal(value, python);
  }
  return "{" + out + "}";
}

inline std::string pairs(const Json& arguments, const char* equals, const char* comma, bool python) {
  std::string out;
  for (const auto& [key, value] : *arguments.members()) out += (out.empty() ? "" : comma) + key + equals + literal(value, python);
  return out;
}

inline std::string parameters(const Json& arguments, const std::string& open, const std::string& behind_key, const std::string& close) {
  std::string out;
  for (const auto& [key, value] : *arguments.members()) {
    out += open + key + behind_key + (value.string() != nullptr ? *value.string() : value.dump()) + close;
  }
  return out;
}

inline std::string joined(const std::vector<Call>& calls, const std::string& between, const std::function<std::string(const Call&)>& one) {
  std::string out;
  for (const Call& call : calls) out += (out.empty() ? "" : between) + one(call);
  return out;
}

// As the models of a format write it.
inline std::string written(const std::string& format, const std::vector<Call>& calls) {
  const auto object = [](const char* name, const char* arguments) {
    return [name, arguments](const Call& call) {
      return "{\"" + std::string(name) + "\": \"" + call.name + "\", \"" + arguments + "\": " + call.arguments.dump() + "}";
    };
  };
  const auto pythonic = [](const Call& call) { return call.name + "(" + pairs(call.arguments, "=", ", ", true) + ")"; };
  int number = 0;
  if (format == "hermes") {
    return joined(calls, "\n", [&](const Call& call) { return "<tool_call>\n" + object("name", "arguments")(call) + "\n</tool_call>"; });
  }
  if (format == "qwen-xml") {
    return joined(calls, "\n", [](const Call& call) {
      return "<tool_call>\n<function=" + call.name + ">\n" + parameters(call.arguments, "<parameter=", ">\n", "\n</parameter>\n") +
             "</function>\n</tool_call>";
    });
  }
  if (format == "llama-json") return joined(calls, "; ", object("name", "parameters"));
  if (format == "pythonic") return "[" + joined(calls, ", ", pythonic) + "]";
  if (format == "lfm") return "<|tool_call_start|>[" + joined(calls, ", ", pythonic) + "]<|tool_call_end|>";
  if (format == "mistral") return "[TOOL_CALLS][" + joined(calls, ", ", object("name", "arguments")) + "]";
  if (format == "mistral-args") {
    return joined(calls, "", [](const Call& call) { return "[TOOL_CALLS]" + call.name + "[ARGS]" + call.arguments.dump(); });
  }
  if (format == "harmony") {
    return "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions." + calls[0].name +
           " <|constrain|>json<|message|>" + calls[0].arguments.dump() + "<|call|>";
  }
  if (format == "deepseek-v3") {
    return "<｜tool▁calls▁begin｜>" + joined(calls, "\n", [](const Call& call) {
             return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + call.name + "\n```json\n" + call.arguments.dump() +
                    "\n```<｜tool▁call▁end｜>";
           }) + "<｜tool▁calls▁end｜>";
  }
  if (format == "deepseek-v3.1") {
    return "<think>so</think><｜tool▁calls▁begin｜>" + joined(calls, "", [](const Call& call) {
             return "<｜tool▁call▁begin｜>" + call.name + "<｜tool▁sep｜>" + call.arguments.dump() + "<｜tool▁call▁end｜>";
           }) + "<｜tool▁calls▁end｜>";
  }
  if (format == "deepseek-dsml") {
    return "<｜DSML｜tool_calls>\n" + joined(calls, "\n", [](const Call& call) {
             std::string out = "<｜DSML｜invoke name=\"" + call.name + "\">\n";
             for (const auto& [key, value] : *call.arguments.members()) {
               const bool text = value.string() != nullptr;
               out += "<｜DSML｜parameter name=\"" + key + "\" string=\"" + (text ? "true" : "false") + "\">" +
                      (text ? *value.string() : value.dump()) + "</｜DSML｜parameter>\n";
             }
             return out + "</｜DSML｜invoke>";
           }) + "\n</｜DSML｜tool_calls>";
  }
  if (format == "glm") {
    return joined(calls, "\n", [](const Call& call) {
      return "<tool_call>" + call.name + "\n" +
             parameters(call.arguments, "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n") + "</tool_call>";
    });
  }
  if (format == "kimi") {
    return "<|tool_calls_section_begin|>" + joined(calls, "", [&](const Call& call) {
             return "<|tool_call_begin|>functions." + call.name + ":" + std::to_string(number++) +
                    "<|tool_call_argument_begin|>" + call.arguments.dump() + "<|tool_call_end|>";
           }) + "<|tool_calls_section_end|>";
  }
  if (format == "minimax") {
    return "<think>\nso\n</think>\n\n<minimax:tool_call>\n" + joined(calls, "\n", [](const Call& call) {
             return "<invoke name=\"" + call.name + "\">\n" +
                    parameters(call.arguments, "<parameter name=\"", "\">", "</parameter>\n") + "</invoke>";
           }) + "\n</minimax:tool_call>";
  }
  if (format == "gemma") {
    return joined(calls, "", [](const Call& call) {
      return "<|tool_call>call:" + call.name + "{" + pairs(call.arguments, ":", ",", false) + "}<tool_call|>";
    });
  }
  if (format == "granite") return "<|tool_call|>[" + joined(calls, ", ", object("name", "arguments")) + "]";
  if (format == "cohere") {
    return "<|START_THINKING|>so<|END_THINKING|><|START_ACTION|>[\n" + joined(calls, ",\n", [&](const Call& call) {
             return "    {\"tool_call_id\": \"" + std::to_string(number++) + "\", \"tool_name\": \"" + call.name +
                    "\", \"parameters\": " + call.arguments.dump() + "}";
           }) + "\n]<|END_ACTION|>";
  }
  if (format == "command-r") return "Action: ```json\n[" + joined(calls, ", ", object("tool_name", "parameters")) + "]\n```";
  if (format == "seed") {
    return joined(calls, "\n", [](const Call& call) {
      return "<seed:tool_call>\n<function=" + call.name + ">\n" + parameters(call.arguments, "<parameter=", ">", "</parameter>\n") +
             "</function>\n</seed:tool_call>";
    });
  }
  if (format == "minimax-m3") {
    const std::string mark = "]<]minimax[>[";
    const std::function<std::string(const Json&)> value = [&](const Json& json) {
      std::string out;
      if (json.elements() != nullptr) {
        for (const Json& one : *json.elements()) out += mark + "<item>" + value(one) + mark + "</item>";
      } else if (json.members() != nullptr) {
        for (const auto& [key, one] : *json.members()) out += mark + "<" + key + ">" + value(one) + mark + "</" + key + ">";
      } else {
        out = json.string() != nullptr ? *json.string() : json.dump();
      }
      return out;
    };
    return mark + "<tool_call>\n" + joined(calls, "\n", [&](const Call& call) {
             return mark + "<invoke name=\"" + call.name + "\">" + value(call.arguments) + mark + "</invoke>";
           }) + "\n" + mark + "</tool_call>";
  }
  if (format == "apriel") return "<tool_calls>[" + joined(calls, ", ", object("name", "arguments")) + "]</tool_calls>";
  if (format == "functionary") {
    return joined(calls, "", [](const Call& call) { return "<function=" + call.name + ">" + call.arguments.dump() + "</function>"; });
  }
  if (format == "functionary-3.2") return joined(calls, ">>>", [](const Call& call) { return call.name + "\n" + call.arguments.dump(); });
  if (format == "apertus") {
    return "<|tools_prefix|>[" + joined(calls, ", ", [](const Call& call) { return "{\"" + call.name + "\": " + call.arguments.dump() + "}"; }) +
           "]<|tools_suffix|>";
  }
  if (format == "gigachat") return "function call<|role_sep|>\n" + object("name", "arguments")(calls[0]) + "<|message_sep|>";
  if (format == "gigachat-3.1") return "<|function_call|>" + object("name", "arguments")(calls[0]) + "<|message_sep|>";
  if (format == "hunyuan") {
    return "<think:opensource></think:opensource><tool_calls:opensource>\n" + joined(calls, "\n", [](const Call& call) {
             return "<tool_call:opensource>" + call.name + "<tool_sep:opensource>\n" +
                    parameters(call.arguments, "<arg_key:opensource>", "</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n") +
                    "</tool_call:opensource>";
           }) + "\n</tool_calls:opensource>";
  }
  if (format == "minicpm") {
    return joined(calls, "\n", [](const Call& call) {
      return "<function name=\"" + call.name + "\">" + parameters(call.arguments, "<param name=\"", "\">", "</param>") + "</function>";
    });
  }
  if (format == "solar") {
    return "<|tool_calls|>" + joined(calls, "", [&](const Call& call) {
             return "<|tool_call:begin|>id" + std::to_string(number++) + "<|tool_call:name|>" + call.name + "<|tool_call:args|>" +
                    call.arguments.dump() + "<|tool_call:end|>";
           }) + "<|calls|>";
  }
  if (format == "nemotron") return "<TOOLCALL>[" + joined(calls, ", ", object("name", "arguments")) + "]</TOOLCALL>";
  FAIL("no writer for " << format);
  return {};
}

inline std::vector<OutputFormat> formats_with_calls() {
  std::vector<OutputFormat> out = *output_formats();
  std::erase_if(out, [](const OutputFormat& format) { return format.name == "think"; });
  return out;
}

// What functionary 3.2's template writes of a conversation; its own is 13 KB, most of it about the types of tools.
inline constexpr const char* kFunctionary =
    "{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' }}"
    "{% if m.role == 'assistant' %}{% if m.content %}{{ '>>>all\n' + m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}{{ '>>>' + c.function.name + '\n' + c.function.arguments|tojson }}{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}{{ '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n>>>' }}{% endif %}";

// Markers of a format that cannot be part of anything else.
inline std::vector<std::string> marks_of(const OutputFormat& format) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& text) {
    if (text.size() >= 6 && text.find('<') != text.npos && text.find('\n') == text.npos) out.push_back(text);
  };
  for (const OutputRegion& region : format.regions) {
    if (region.kind != RegionKind::calls) continue;
    for (const std::string& text : region.open) add(text);
    for (const std::string& text : region.close) add(text);
    for (const std::string* text : {&region.call.open, &region.call.close, &region.call.key_open, &region.call.value_open, &region.call.value_close}) add(*text);
  }
  return out;
}

// Whether two objects have the same members; some templates sort them, and some leave null out.
inline bool same_members(const Json& a, const Json& b) {
  const auto within = [](const Json& one, const Json& other) {
    return std::ranges::all_of(*one.members(), [&](const Json::Member& member) {
      const Json* found = other.find(member.first);
      return found != nullptr ? *found == member.second : member.second.is_null();
    });
  };
  return a.members() != nullptr && b.members() != nullptr && within(a, b) && within(b, a);
}

// Bytes, the texts that models have tokens for, and an end.
inline GrammarVocabulary vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<OutputFormat> formats = *output_formats();
  for (const OutputFormat& format : formats) {
    for (const OutputRegion& region : format.regions) {
      tokens.insert(tokens.end(), region.open.begin(), region.open.end());
      tokens.insert(tokens.end(), region.close.begin(), region.close.end());
      if (!region.call.value_close.empty()) tokens.push_back(region.call.value_close);
      if (!region.call.after_name.empty()) tokens.push_back(region.call.after_name);
    }
  }
  for (const char* text : {"\n</parameter>", "]<]minimax[>[", "<|\"|>", "\"", "\"}", "]", "name", "add", "find_it", "now", "text"}) tokens.emplace_back(text);
  std::sort(tokens.begin() + 256, tokens.end());
  tokens.erase(std::unique(tokens.begin() + 256, tokens.end()), tokens.end());
  tokens.emplace_back();
  const Token end = static_cast<Token>(tokens.size() - 1);
  return *GrammarVocabulary::create(tokens, std::vector<Token>{end});
}

}  // namespace tessera::tests
