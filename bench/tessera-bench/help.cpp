#include <fmt/format.h>

#include "options.hpp"

namespace tessera::bench {

namespace {

constexpr const char* kFooter = R"(
Formats: {}.
A mix such as Q4_K_M gives the same formats to the same matrices as tessera-quantize does.

Without -p, -n, -b and --depth, the tests are those of -p 128,512 -n 64. With any of these options, only
the tests that the options name are run.

What the columns say:
  tokens/s  tokens a second of all sequences together: the median of the runs, and the slowest and the
            fastest run. No token is sampled. Logits are computed for the last token of a prompt, and for
            each token that is decoded.
  MB/token  megabytes that are read from memory for a token: weights in the file's formats (without the
            embedding table), keys and values. Bytes that several rows of a step need are read once, and
            each row counts its share.
  GB/s      MB/token times tokens/s, and the percentage of the read bandwidth that this is.
  TFLOP/s   operations a second, and their percentage of the matrix peak. Each weight counts as two
            operations for each token; the operations of attention are added. All operations of the model
            count, also those that the library leaves out: in a prompt's last layer it computes only the
            last token.
The read bandwidth is that of the fastest of three loops that only read memory. The matrix peak is the
speed of a loop that only multiplies matrices in bf16 (with AMX, if the CPU has it) or, on a CPU without
bf16, in f32. Both loops use as many threads as the engine.
Both limits are measured before and after each run of a test, because they change while other programs
run. A run is compared with the higher of the two results, and a row shows the median of these percentages.
Measuring the bandwidth also removes the weights from the CPU's caches, so each run reads them from memory.
A test that needs few bytes for its operations (a long prompt) is limited by the matrix peak. A test that
needs few operations for its bytes (decoding one sequence) is limited by the read bandwidth.
A GPU's limits are not measured here. bench/cuda/limits.cu measures them, and --limits takes them.

With --worker the model stays loaded, so that several programs can be measured by turns. Each line on
standard input is a request for a test (prefill, decode, batch or depth), as a JSON object such as
{{"test": "prefill", "n": 512}} or {{"test": "batch", "n": 16, "steps": 8}}. The answer is a line with an
object as with --json, or with {{"error": "..."}}. Pass -p, -n, -b and --depth with the largest numbers that
requests will name, because these options decide how much context there is.

With --trace or --rate the scheduler serves requests as they arrive. Each kind of batching is combined with
each policy; the combinations are measured one after another, each with an empty prefix index. Prompts are
made-up tokens. If the trace says that two prompts have a block in common, the tokens of the block are equal.
Every answer is as long as the trace says. The results:
  to the first token (ttft), to the last token (e2e), waiting (queue): times from a request's arrival
  between tokens (itl): times between two tokens of a request that follow each other
  a token, on average (tpot): time for each token after a request's first one
  goodput: requests a second that were served within --slo-ttft-ms and --slo-tpot-ms. These two options
    also set the deadlines of --policy deadline
  prefix: the share of the prompts' tokens that came from the prefix index, and in brackets (ideal) the
    share that would come from an index of unlimited size
  recomputed: tokens that were computed again, because their request had been preempted
  scheduler: the median time that the scheduler itself takes for a step, without the time of the model, of
    the KV cache, and of turning tokens into text
tessera-simulate computes the same figures within seconds, from the costs of steps instead of a model
(docs/explanation/scheduler.md).

With --speculate, a row of the table is for one batch size and one probability of --acceptance (right):
  step ms, verify ms: time of a step with one row of each sequence, and of a step that has the drafts of each
    sequence too, with the logits of all rows
  drafts: the number of drafts with the highest estimated speedup
  tokens, cycle ms, speedup: estimates of the tokens and the time of a cycle (to make drafts and verify them),
    and of the speedup
  break-even: the share of right drafts from which on this number of drafts does not slow decoding down
  measured: the speedup of the scheduler, which itself chooses the number of drafts. A made-up drafter gives
    it drafts that are right with the given probability. Each sequence gets -n greedy tokens; the time begins
    when all sequences have their first one. Runs without and with drafts take turns, and the fastest of
    --repeat runs counts. The tokens must be the same without and with drafts
docs/explanation/speculation.md derives the estimates. With --mtp the model's MTP head makes drafts, which are
then replaced by the made-up drafter's, because a head with made-up weights guesses nothing right.

Ctrl-C ends the program; it prints what it has measured so far.

Exit status: 0 done, 1 failed, 2 the command line is wrong, 130 interrupted.

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
    text += fmt::format("  {:<17}{:<22}{} layers of {}{}, {} heads and {} of keys, {}{}, {} tokens\n", s.name, s.model, s.layers,
                        s.d_model, mixed, s.heads, s.kv_heads, experts, s.ffn, s.vocab);
  }
  return text + fmt::format(kFooter, tool::target_names());
}

}  // namespace tessera::bench
