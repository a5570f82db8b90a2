#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "adapter_option.hpp"
#include "command_line.hpp"
#include "constraint.hpp"
#include "failure.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"

namespace {

// Parses a decimal number, which must be the whole text. std::from_chars reads it in the same way in every locale.
template <class T>
bool parse_number(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return false;
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(number);
  return true;
}

template <class T>
T number_or_throw(const std::string& name, const std::string& text) {
  T number{};
  if (parse_number(text, number)) return number;
  if constexpr (std::is_floating_point_v<T>) {
    throw UsageError(fmt::format("{}: \"{}\" is not a number", name, text));
  } else {
    throw UsageError(fmt::format("{}: \"{}\" is not a whole number from 0 to {}", name, text,
                                 std::numeric_limits<T>::max()));
  }
}

// Returns the last of an option's names ("-n,--max-tokens"), which messages show.
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

// Adds an option with a number. T: a number or an optional number.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& target, const std::string& description) {
  return app.add_option_function<std::string>(
      name,
      [name = long_name(name), &target](const std::string& text) {
        if constexpr (std::is_arithmetic_v<T>) {
          target = number_or_throw<T>(name, text);
        } else {
          target = number_or_throw<typename T::value_type>(name, text);
        }
      },
      description);
}

// Adds an option with a number of tokens: "8192" or "8k", where k is 1024.
CLI::Option* add_tokens(CLI::App& app, const std::string& name, std::uint32_t& target, const std::string& description) {
  return app.add_option_function<std::string>(
      name,
      [name, &target](const std::string& text) {
        constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
        const auto value = tessera::tool::parse_tokens(text);
        if (!value || *value > kMost) {
          throw UsageError(fmt::format("{}: \"{}\" is not a whole number of tokens from 0 to {}, such as 8192 or 8k", name,
                                       text, kMost));
        }
        target = static_cast<std::uint32_t>(*value);
      },
      description);
}

template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& target,
                        std::initializer_list<std::pair<std::string, T>> choices, const std::string& description) {
  std::vector<std::pair<std::string, T>> list = choices;
  std::string names;
  for (const auto& choice : list) names += (names.empty() ? "" : "|") + choice.first;
  return app
      .add_option_function<std::string>(
          name,
          [name, names, list, &target](const std::string& text) {
            for (const auto& [choice, meaning] : list) {
              if (text == choice) {
                target = meaning;
                return;
              }
            }
            throw UsageError(fmt::format("{}: \"{}\" is not one of {}", name, text, names));
          },
          description)
      ->type_name(names);
}

CLI::Option* add_text(CLI::App& app, const std::string& name, std::optional<std::string>& target,
                      const std::string& description) {
  return app.add_option_function<std::string>(name, [&target](const std::string& text) { target = text; }, description);
}

void add_prompt_options(CLI::App& app, Options& o) {
  add_text(app, "-m,--model", o.model, "A GGUF file (the first one of a split model), or a folder with\n"
                                       "config.json and safetensors files; or a model that another program\n"
                                       "has fetched: ollama:NAME[:TAG], lmstudio:PUBLISHER/MODEL or\n"
                                       "hf:ORGANISATION/MODEL. Default: the model in this program")
      ->type_name("FILE");
  app.add_option_function<std::vector<std::string>>(
         "--merge",
         [&o](const std::vector<std::string>& texts) {
           o.merge.clear();
           for (const std::string& text : texts) o.merge.push_back(tessera::tool::parse_adapter(text));
         },
         "An adapter (LoRA) that becomes part of the weights: a GGUF\nfile or a folder of PEFT; may be given again")
      ->type_name("FILE[:SCALE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--lora",
         [&o](const std::vector<std::string>& texts) {
           o.lora.clear();
           for (const std::string& text : texts) o.lora.push_back(parse_lora(text));
         },
         "Adapter for the model: a GGUF file, or a folder of PEFT; may\nbe given again. SCALE: factor of its change. Default: 1")
      ->type_name("FILE[:SCALE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  auto* prompt = add_text(app, "-p,--prompt", o.prompt, "The text to go on from. Default: an empty one")->type_name("TEXT");
  auto* file = add_text(app, "-f,--file", o.prompt_file, "The prompt is this file, byte for byte; -: standard input")
                   ->type_name("FILE");
  auto* ids = app.add_option_function<std::string>(
                     "--prompt-ids",
                     [&o](const std::string& text) {
                       o.prompt_ids = parse_ids(text);
                       if (!o.prompt_ids) {
                         throw UsageError(
                             fmt::format("--prompt-ids: \"{}\" are not token ids; give numbers, such as \"1 403 407\"", text));
                       }
                     },
                     "The prompt as token ids, taken as they are: \"1 403 407\"")
                  ->type_name("IDS");
  prompt->excludes(file)->excludes(ids);
  file->excludes(ids);
  app.add_flag("--no-bos", o.no_bos, "Put no beginning-of-sequence token before the prompt");
  app.add_flag("--no-special", o.no_special, "Read names of control tokens in the prompt, such as <|im_end|>,\nas plain text. Default: as these tokens");
}

void add_session_options(CLI::App& app, Options& o) {
  add_text(app, "--load-session", o.load_session, "Go on from the session in this file; the prompt is appended to it")->type_name("FILE");
  add_text(app, "--save-session", o.save_session, "At the end, save the session to this file, to go on from it\nanother time")
      ->type_name("FILE");
}

void add_generation_options(CLI::App& app, Options& o) {
  add_number(app, "-n,--max-tokens", o.max_tokens,
             fmt::format("The most tokens to write. Default: {}, or fewer if the context\nhas room for fewer", kDefaultMaxTokens))
      ->type_name("N");
  // Takes the values one by one as raw strings, because CLI11's own vectors would read "[a,b]" as a list.
  app.add_option_function<std::vector<std::string>>(
         "--stop",
         [&o](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             if (text.empty()) throw UsageError("--stop: an empty text would stop before the first token");
           }
           o.stop_strings = texts;
         },
         "End before this text appears. May be given again")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", o.ignore_eos, "Go on after the token with which the model ends its text");
}

void add_constraint_options(CLI::App& app, Options& o) {
  auto* schema = add_text(app, "--json-schema", o.json_schema, "The text is JSON that this schema accepts: a file, or the schema\nitself")
                     ->type_name("FILE|TEXT");
  auto* regex = add_text(app, "--regex", o.regex, "The whole text matches this regular expression")->type_name("PATTERN");
  auto* grammar = add_text(app, "--grammar", o.grammar_file, "The text follows the EBNF or GBNF grammar in this file")->type_name("FILE");
  auto* choice = add_text(app, "--choice", o.choice, "The text is one of these: yes,no,perhaps")->type_name("LIST");
  schema->excludes(regex)->excludes(grammar)->excludes(choice);
  regex->excludes(grammar)->excludes(choice);
  grammar->excludes(choice);
}

void add_drafting_options(CLI::App& app, Options& o) {
  app.add_option_function<std::string>("--draft", [&o](const std::string& text) { parse_draft(text, o.drafting); },
                                       "How the next tokens are guessed: from repeats in the text so far\n(ngram, suffix), by the first E layers of the model, from its\nearlier guesses (lookahead), by its MTP head (if the file has\none), by draft heads of another file (heads, eagle, medusa), or by a\nsmaller model. The default model has an EAGLE head of its own.\nUnless this is none, tokens that a grammar forces are guessed\ntoo. Default: forced")
      ->type_name("none|forced|ngram|suffix|early-exit:E|lookahead|mtp|heads|eagle|medusa|model");
  add_text(app, "--draft-model", o.drafting.model, "The smaller model of --draft model; its vocabulary must be the same")->type_name("FILE");
  add_text(app, "--draft-heads", o.drafting.heads, "The heads of --draft heads, which were trained for this model: a folder\nwith Medusa or EAGLE heads as hubs publish them, or llama.cpp's GGUF\nof an EAGLE-3 head")
      ->type_name("FILE");
  add_number(app, "--draft-max", o.drafting.most, "The most tokens that are guessed for a step, 1 to 64; the program\nmeasures how many are worth it. Default: 8")
      ->type_name("N");
  add_number(app, "--draft-branches", o.drafting.branches, "With --draft suffix or --draft-heads, the most chains of guesses,\n1 to 16: where it is uncertain what follows, they branch. Default: 1")
      ->type_name("N");
}

void add_several_options(CLI::App& app, Options& o) {
  using tessera::EarlyStopping;
  SeveralOptions& s = o.several;
  add_number(app, "--samples", s.samples, "Write N texts; the prompt is read once. Default: one text")->type_name("N");
  add_number(app, "--best-of", s.best_of, "Write N texts, and print the one whose tokens are likeliest on average")->type_name("N");
  add_number(app, "--beams", s.beams, "Search for the likeliest texts, N at a time, instead of drawing\ntokens at random")->type_name("N");
  add_number(app, "--results", s.results, "With --beams, print the K best texts. Default: 1")->type_name("K");
  add_number(app, "--length-penalty", s.length_penalty,
             "With --beams, divide the log-probability of a text by its length\nto this power; above 0 favours long texts. Default: 1")
      ->type_name("P");
  app.add_option_function<std::string>(
         "--early-stopping",
         [&s](const std::string& text) {
           if (text == "likely") s.early_stopping = EarlyStopping::likely;
           else if (text == "first") s.early_stopping = EarlyStopping::first;
           else if (text == "never") s.early_stopping = EarlyStopping::never;
           else throw UsageError(fmt::format("--early-stopping: \"{}\" is not likely, first or never", text));
         },
         "With --beams, when N texts are finished: end if no better text is\nlikely, end at once (first), or end only if no better text is\npossible (never). Default: likely")
      ->type_name("likely|first|never");
}

void add_sampling_options(CLI::App& app, Options& o) {
  app.add_flag("--greedy", o.greedy, "Always take the most likely token, whatever the options below say");
  add_number(app, "--temp", o.temperature, "Temperature: lower is safer, higher is wilder; 0: as --greedy\nDefault: 0.8")->type_name("T");
  add_number(app, "--top-k", o.top_k, "Draw from the K most likely tokens; 0: all. Default: 0")->type_name("K");
  add_number(app, "--top-p", o.top_p, "Draw from the most likely tokens that together have the probability\nP, 0 to 1. Default: 0.95")->type_name("P");
  add_number(app, "--min-p", o.min_p, "Do not draw tokens that are less likely than P times the most likely\none, 0 to 1. Default: 0")->type_name("P");
  add_number(app, "--repeat-penalty", o.repeat_penalty, "Above 1: tokens that have been written are less likely. Default: 1")->type_name("R");
  add_number(app, "--repeat-last", o.repeat_last, "Only the last N tokens count as written. Default: all")->type_name("N");
  app.add_flag("--penalize-prompt", o.penalizes_prompt, "The prompt's tokens count as written too");
  add_number(app, "--seed", o.seed, "The same seed gives the same text. Default: a random seed, printed at the end")
      ->type_name("N");
}

struct OutputFlags {
  bool no_stream = false, json = false, print_tokens = false;
};

void add_output_options(CLI::App& app, Options& o, OutputFlags& flags) {
  app.add_flag("--no-stream", flags.no_stream, "Print the text at the end, not as it comes");
  app.add_flag("--no-echo", o.no_echo, "Print what was generated without the prompt before it");
  auto* tokens = app.add_flag("--print-tokens", flags.print_tokens, "Print the ids of the generated tokens on one line, not text");
  auto* json = app.add_flag("--json", flags.json, "Print one JSON object with the text and the figures");
  json->excludes(tokens);
  add_number(app, "--logprobs", o.logprobs, "For each token, print the N most likely tokens and their\nlog-probabilities: on standard "
                                            "error, or in the JSON object\nDefault: 0, none")
      ->type_name("N");
}

struct ModeFlags {
  bool chat = false, tokenize = false, detokenize = false, plan = false, explain = false;
  std::optional<std::string> logits, render;
};

void add_mode_options(CLI::App& app, Options& o, ModeFlags& flags) {
  app.add_flag("--tokenize", flags.tokenize, "Print the token ids of the prompt. A file with a vocabulary but no weights is enough");
  app.add_flag("--detokenize", flags.detokenize, "Print the text of the token ids in --prompt-ids, -p or -f");
  add_text(app, "--logits", flags.logits,
           "Write the logits after each token of the prompt to this file:\nf32, little-endian, [tokens, vocab]")
      ->type_name("FILE");
  auto* render = add_text(app, "--render", flags.render,
                          "Print the prompt that the model would read for a conversation,\na JSON file: {\"messages\": [...], \"tools\": "
                          "[...], ...}.\nOther keys are arguments of the template; -: standard input")
                     ->type_name("FILE");
  app.add_flag("--tokens", o.render_tokens, "With --render, print token ids, not text")->needs(render);
  app.add_flag("--plan", flags.plan, "Print the memory that a run would take, without loading");
  app.add_flag("--explain", flags.explain, "Print which kernel runs each operation");
}

void add_chat_options(CLI::App& app, Options& o, ModeFlags& flags) {
  app.add_flag("--chat", flags.chat, "Talk with the model: each line of standard input is a message; /help\nlists commands. With -p or -f: answer one question, and end");
  add_text(app, "--system", o.system, "Tell the model this before the first message. Default: nothing")->type_name("TEXT");
  add_text(app, "--template", o.template_file, "With --chat or --render, the file of the chat template\nDefault: the model's own template")->type_name("FILE");
  add_text(app, "--tools", o.tools_file, "With --chat or --render, a JSON file with a list of tools that\nthe model may call. You type their answers")
      ->type_name("FILE");
  app.add_option("--tool-choice", o.tool_choice,
                 "Whether the first answer to a message calls a tool: auto (the\nmodel decides), none, required, or this tool. Default: auto")
      ->type_name("auto|none|required|NAME");
  add_choice<WhenFull>(app, "--when-full", o.when_full, {{"drop", WhenFull::drop}, {"compact", WhenFull::compact}, {"stop", WhenFull::stop}},
                       "When the context is full: drop the oldest turns, put a summary\nin their place (compact), or let the answer fail (stop)\nDefault: drop");
  app.add_option_function<std::string>(
         "--think",
         [&o](const std::string& text) {
           if (text == "on" || text == "off") {
             o.think = text == "on";
             return;
           }
           if (!parse_number(text, o.most_reasoning.emplace())) throw UsageError(fmt::format("--think: \"{}\" is not on, off or a number of tokens", text));
           o.think = true;
         },
         "Whether the model thinks before it answers, if its template has\nthe switch enable_thinking; N: at most N tokens of thinking\nDefault: as the template decides")
      ->type_name("on|off|N");
}

void add_engine_options(CLI::App& app, Options& o) {
  using namespace tessera;
  add_tokens(app, "--ctx", o.context, "The most tokens of prompt and text together, such as 8192 or 8k\nDefault: the model's own limit")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--sliding-window",
         [&o](const std::string& text) { o.sliding_window = number_or_throw<std::uint32_t>("--sliding-window", text); },
         "Each token sees the last N tokens, itself included; 0: all\nDefault: as the model's file says (some files of Mistral models\ndo not say it, and need 4096)")
      ->type_name("N");
  tool::add_kv_dtype(app, o.kv.dtype, "Type of cached keys and values\nDefault: auto, f32 for models of f32 weights, else f16");
  tool::add_kv_wide(app, o.kv.wide);
  add_choice<KvKind>(app, "--kv-layout", o.kv.kind, {{"contiguous", KvKind::contiguous}, {"paged", KvKind::paged}},
                     "How keys and values lie in memory. Default: paged");
  add_choice<std::uint32_t>(app, "--kv-page", o.kv.page_tokens, {{"16", 16}, {"32", 32}, {"64", 64}},
                            "The tokens of a page of keys and values. Default: 32");
  add_number(app, "--kv-checkpoints", o.kv.checkpoints,
             "For recurrent models: keep the states at the ends of the last N\npages, so that a session can go back to them. Default: 2")
      ->type_name("N");
  add_tokens(app, "--keep", o.keep, "When the context is full, go on with its first 4 tokens and the last N\n"
                                    "(attention sinks). Default: a full context is the end, and\na failure if -n asks for more")
      ->type_name("N");
  auto* budget = add_tokens(app, "--kv-tokens", o.kv.budget.tokens,
                            "After the prompt is read, keep the keys and values of at most N\ntokens, and drop others. Default: keep all")
                     ->type_name("N");
  add_choice<TokenChoice>(app, "--kv-choice", o.kv.budget.choice,
                          {{"window", TokenChoice::window}, {"h2o", TokenChoice::h2o}, {"snapkv", TokenChoice::snapkv}},
                          "With --kv-tokens, the tokens to keep. window: the first 4 and the\nlast ones. h2o: also those with the most attention so far.\n"
                          "snapkv: also those with the most attention of the last 32\nDefault: window")
      ->needs(budget);
  add_tokens(app, "--kv-recent", o.kv.budget.recent,
             "With --kv-tokens, keep the last N tokens in any case\n"
             "Default: half of --kv-tokens with h2o, 32 with snapkv, all with\nwindow")
      ->type_name("N")
      ->needs(budget);
  add_choice<BackendKind>(app, "--backend", o.backend, {{"cpu", BackendKind::cpu}, {"cuda", BackendKind::cuda}},
                          "Compute on the CPU or on a GPU (cuda). Default: cpu");
  add_number(app, "--cuda-device", o.cuda.device, "The number of the GPU, for --backend cuda. Default: 0")->type_name("N");
  app.add_option("--cuda-driver", o.cuda.driver_library, "The library of the GPU's driver. Default: the system's\nlibcuda.so.1")
      ->type_name("FILE");
  app.add_option("--cuda-blas", o.cuda.blas_library, "The library cuBLASLt. Default: the system's libcublasLt.so")->type_name("FILE");
  add_choice<Numerics>(app, "--numerics", o.numerics,
                       {{"auto", Numerics::automatic}, {"bf16", Numerics::bf16}, {"fastest", Numerics::fastest},
                        {"reference", Numerics::reference}, {"invariant", Numerics::invariant}},
                       "How products are computed. auto: in the way of each weight\n"
                       "format. bf16: in bf16. fastest: in bf16 for many tokens at\n"
                       "once, in 8 bits for few. reference: plainly, in f32.\n"
                       "invariant: with the same bits on every CPU and, on a GPU, in\nevery batch. Default: auto");
  add_choice<Activations>(app, "--activations", o.activations, {{"auto", Activations::automatic}, {"model", Activations::as_the_model_says}},
                          "How inputs of products are rounded in a model's folder whose\n"
                          "activations are quantised (W8A8, FP8). auto: as --numerics\n"
                          "says. model: as the folder says. Default: auto");
  tessera::tool::add_instruction_set(app, o.instruction_set);
  tessera::tool::add_threads(app, o.threads);
  tessera::tool::add_ranks(app, o.ranks);
  add_choice<LogLevel>(app, "--log-level", o.log_level,
                       {{"debug", LogLevel::debug}, {"info", LogLevel::info}, {"warning", LogLevel::warning},
                        {"error", LogLevel::error}, {"off", LogLevel::off}},
                       "Print messages of the library of this level and above, on\nstandard error. Default: warning");
}

Mode choose_mode(const ModeFlags& flags) {
  if (flags.chat + flags.tokenize + flags.detokenize + flags.plan + flags.explain + flags.logits.has_value() +
          flags.render.has_value() > 1) {
    throw UsageError("--chat, --tokenize, --detokenize, --logits, --render, --plan and --explain exclude each other");
  }
  return flags.chat         ? Mode::chat
         : flags.tokenize   ? Mode::tokenize
         : flags.detokenize ? Mode::detokenize
         : flags.logits     ? Mode::logits
         : flags.render     ? Mode::render
         : flags.plan       ? Mode::plan
         : flags.explain    ? Mode::explain
                            : Mode::generate;
}

void check_chat(const Options& o) {
  if (o.prompt_ids) throw UsageError("--chat takes texts: -p TEXT for one question, or lines of standard input");
  if (o.output == OutputKind::json || o.logprobs != 0 || !o.stop_strings.empty() || o.ignore_eos) {
    throw UsageError("--json, --logprobs, --stop and --ignore-eos are not for --chat");
  }
  if (o.max_tokens == 0) throw UsageError("--chat needs -n 1 or more: an answer has at least one token");
  if (o.tool_choice != "auto" && is_constrained(o)) throw UsageError("--tool-choice does not go with --json-schema, --regex, --grammar and --choice");
}

// Checks the options against each other.
void check_together(const Options& o) {
  const bool has_text = o.prompt || o.prompt_file;
  if (o.mode == Mode::tokenize && !has_text) throw UsageError("--tokenize needs a text: -p TEXT or -f FILE");
  if (o.mode == Mode::detokenize && !has_text && !o.prompt_ids) {
    throw UsageError("--detokenize needs token ids: --prompt-ids \"1 403 407\" or -f FILE");
  }
  if (o.mode == Mode::logits && !has_text && !o.prompt_ids) {
    throw UsageError("--logits needs a prompt: -p TEXT, -f FILE or --prompt-ids IDS");
  }
  if (o.mode != Mode::generate && (o.output == OutputKind::tokens || o.output == OutputKind::text_at_end)) {
    throw UsageError("--print-tokens and --no-stream are for generating text");
  }
  if (o.keep != 0 && o.kv.budget.tokens != 0) throw UsageError("--keep and --kv-tokens both limit the cache: give one of them");
  if (o.mode == Mode::chat && o.kv.budget.tokens != 0) throw UsageError("--kv-tokens is not for --chat, which drops messages");
  if (o.mode != Mode::generate && (o.load_session || o.save_session || o.keep != 0)) {
    throw UsageError("--load-session, --save-session and --keep are for generating text");
  }
  const bool looks_at_head = (o.drafting.by == DraftBy::mtp || o.drafting.by == DraftBy::heads) && (o.mode == Mode::plan || o.mode == Mode::explain);
  if (o.mode != Mode::generate && (o.drafting.by != DraftBy::nothing || o.drafting.none) && !looks_at_head) throw UsageError("--draft is for generating text");
  if (!o.lora.empty() && o.mode != Mode::generate && o.mode != Mode::chat && o.mode != Mode::logits && o.mode != Mode::explain) {
    throw UsageError("--lora is for generating text, --chat, --logits and --explain");
  }
  if (o.mode == Mode::logits && o.output == OutputKind::json) {
    throw UsageError("--logits writes its own file; --json does not apply");
  }
  if (o.mode != Mode::chat && (o.system || o.think || o.when_full != WhenFull::drop)) {
    throw UsageError("--system, --think and --when-full are for --chat");
  }
  if (o.mode != Mode::chat && o.mode != Mode::render && (o.template_file || o.tools_file)) {
    throw UsageError("--template and --tools are for --chat and --render");
  }
  if (o.tool_choice != "auto" && (o.mode != Mode::chat || !o.tools_file)) throw UsageError("--tool-choice is for --chat with --tools");
  if (o.mode == Mode::chat) check_chat(o);
  check_lora_files(o);
}

}  // namespace

std::optional<std::vector<tessera::Token>> parse_ids(const std::string& text) {
  constexpr std::string_view separators = " ,\t\r\n";
  std::vector<tessera::Token> ids;
  const std::string_view rest = text;
  for (std::size_t at = rest.find_first_not_of(separators); at != rest.npos;) {
    const std::size_t end = std::min(rest.find_first_of(separators, at), rest.size());
    if (!parse_number(rest.substr(at, end - at), ids.emplace_back())) return std::nullopt;
    at = rest.find_first_not_of(separators, end);
  }
  return ids;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  OutputFlags output;
  ModeFlags mode;
  CLI::App app("Writes text with a language model: goes on from a prompt, or tells a story without one.", "generate");
  tessera::tool::add_version(app, "generate");
  app.footer(kHelpFooter);
  app.get_formatter()->column_width(36);
  const auto group = [&](const char* name, auto&& add) {
    app.option_defaults()->group(name);
    add();
  };
  group("Model and prompt", [&] { add_prompt_options(app, options); });
  group("Session (what has been read or written need not be computed again)",
        [&] { add_session_options(app, options); });
  group("Length", [&] { add_generation_options(app, options); });
  group("Choice of tokens (applied as: penalty, temperature, top-k, top-p, min-p)",
        [&] { add_sampling_options(app, options); });
  group("Several texts (their prompt is read once)", [&] { add_several_options(app, options); });
  group("What the text must be", [&] { add_constraint_options(app, options); });
  group("Several tokens at once (seen in the time alone: the text is the same)", [&] { add_drafting_options(app, options); });
  group("Output (text on standard output, everything else on standard error)",
        [&] { add_output_options(app, options, output); });
  group("Instead of generating", [&] { add_mode_options(app, options, mode); });
  group("Conversation", [&] { add_chat_options(app, options, mode); });
  group("Machine", [&] { add_engine_options(app, options); });

  try {
    tessera::tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    if (!tessera::tool::output_arrived()) throw Failure(tessera::ErrorCode::io, tessera::tool::kLostOutput);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  options.mode = choose_mode(mode);
  options.logits_file = mode.logits.value_or("");
  options.render_file = mode.render.value_or("");
  options.output = output.json           ? OutputKind::json
                   : output.print_tokens ? OutputKind::tokens
                   : output.no_stream    ? OutputKind::text_at_end
                                         : OutputKind::text;
  check_drafting(options.drafting, !options.model);
  check_several(options);
  check_together(options);
  return options;
}
