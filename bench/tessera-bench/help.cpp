#include <fmt/format.h>

#include "options.hpp"

namespace tessera::bench {

namespace {

constexpr const char* kFooter = R"(
Formats: {}.
Which matrix gets which format is as tessera-quantize decides it.

Without -p, -n, -b and --depth: -p 128,512 -n 64. Otherwise just what was asked for.

What the columns say:
  tokens/s  of all sequences together: the median of the runs, and the slowest and fastest of them.
            Nothing is sampled; logits are computed for the last token of a prompt, and for each
            token that is decoded.
  MB/token  read from memory for a token: weights as the file has them, without the embedding table,
            and keys and values. What several rows of a step share is divided among them.
  GB/s      bytes a token times tokens a second, and its share of the read bandwidth.
  TFLOP/s   two operations for each weight and token, and those of attention, and their share of the
            matrix peak. They count as the model has them, also where the library leaves out what
            nobody sees (of a prompt's last layer, all but the last token).
The read bandwidth is the best of three kernels that only read, the matrix peak that of a loop of bf16
products (AMX where there are tiles), both on as many threads as the engine has. They are measured before
and after each run of a test, since machines are noisy: a run, which so finds no weights in the caches,
is compared with the better of the two, and a row shows the median of that over its runs. What reads
little is limited by the matrix peak, what computes little by the bandwidth.
A GPU's limits are not measured here: --limits gives what bench/cuda/limits.cu has measured.

With --worker the model stays loaded, so that programs can take turns: each line on standard input is an
object like {{"test": "prefill", "n": 512}} or {{"test": "batch", "n": 16, "steps": 8}} (prefill, decode, batch,
depth), and is answered by one as of --json, or by {{"error": "..."}}. -p, -n, -b and --depth say how much
context will be asked for at most.

With --trace or --rate the requests of a trace are served as they arrive, through the scheduler: each batching
with each policy, one after another on one engine, whose prefix index each begins without. Prompts are made-up
tokens, equal where the trace says that blocks are; every answer is as long as the trace says. What is printed:
  to the first token (ttft), between tokens (itl), a token after the first on average (tpot), to the last token
  (e2e) and waiting (queue), each from the request's arrival; goodput: requests a second within --slo-ttft-ms and
  --slo-tpot-ms, which also make the deadlines of --policy deadline; prefix: the share of the prompts' tokens that
  were not computed, and what an index without bounds would have saved; recomputed: tokens of preempted requests;
  scheduler: its own time of a step, the median, without the model, the KV cache and the tokens' text.
tessera-simulate says the same of costs instead of a model, in seconds (docs/explanation/scheduler.md).

With --speculate, for each batch size: the milliseconds of a step of one row a sequence and of one with the drafts of all
behind it, logits of all rows wanted (verify); for each --acceptance the number of drafts that brings most, the tokens and
milliseconds of a cycle, the speedup that follows, and the share of right drafts from which on that number is no loss
(docs/explanation/speculation.md derives them). Measured is the speedup that the scheduler has with a drafter that is right so often, where it
chooses the number of drafts itself: -n greedy tokens for each sequence, after all have their first one, by turns without and with,
the best of --repeat each. The tokens are compared: they must be the same. With --mtp the model's MTP head makes each draft,
and then it is put right so often: made-up weights guess nothing.

Ctrl-C ends with what was measured so far.

Exit status: 0 done, 1 failed, 2 the command line makes no sense, 130 interrupted.

Examples:
  tessera-bench -m llama.gguf                                       prefill and decode
  tessera-bench --shape llama-1b --format Q4_0 -p 512,2048 -n 64
  tessera-bench --shape llama-1b --format Q8_0 -b 1,4,8,16,32 -n 16 many users at once
  tessera-bench --shape llama-8b --format Q4_K_M --depth 1k,8k --kv-dtype int8
  tessera-bench --shape llama-1b -p 512 -n 32 -b 16 --plot roofline.svg
  tessera-bench --shape llama-8b -p 2048 -n 64 --backend cuda --limits 3000,700
  tessera-bench --shape qwen-0.5b --trace azure.csv --scale 16 --requests 200 --batching static,continuous
  tessera-bench -m llama.gguf --rate 2 --lengths 300,100 --policy fcfs,shortest --plot times.svg
  tessera-bench --shape llama-1b --speculate --acceptance 0.6,0.8 -b 1,4,16
  tessera-bench --shape qwen3.5-0.8b-mtp --format Q4_0 --speculate --mtp --acceptance 0.6,0.8 -b 1,4
  tessera-bench -m llama.gguf -n 128 --json | jq .tokens_per_s
  tessera-bench --shape qwen-0.5b --format Q4_0 --write qwen.gguf   for a comparison with others
)";

}  // namespace

std::string help_footer() {
  std::string text = "\nShapes:\n";
  for (const Shape& s : shapes()) {
    const std::string experts = s.experts > 0 ? fmt::format("{} of {} experts of ", s.used, s.experts) : "FFN ";
    const std::string mixed = s.recurrent.layers.empty() ? "" : ", most of them recurrent";
    text += fmt::format("  {:<15}{:<22}{} layers of {}{}, {} heads and {} of keys, {}{}, {} tokens\n", s.name, s.model, s.layers,
                        s.d_model, mixed, s.heads, s.kv_heads, experts, s.ffn, s.vocab);
  }
  return text + fmt::format(kFooter, tool::target_names());
}

}  // namespace tessera::bench
