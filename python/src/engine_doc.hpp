// The text of help(tessera.Engine).
#pragma once

namespace tessera::python {

inline constexpr const char* kEngineDoc =
    R"(A loaded model: weights, tokenizer, threads. Sessions share it and keep it alive. Any thread may use an engine.

    engine = tessera.Engine("model.gguf", context=4096)
    session = engine.session()

Options that change results:

- context: the most tokens of a session. 0: the model's own context.
- kv: the type in which keys and values are stored: "f32", "f16", "bf16", "int8", "fp8", "int4", or "k8v4" (keys in 8 bits, values in 4).
  "auto": "f32" if the model's weights are F32, else "f16".
- numerics: the arithmetic. "auto": the format of the weights decides, and the bits of a result do not depend on what else is computed in the
  same step. (On a GPU they may.) "invariant": the bits are also the same on every CPU. "bf16": products in bf16 for quantised weights too.
  "fastest": like "auto", but on CPUs with AMX faster for long prompts, and the last bits depend on the batch. "reference": f32, each operation
  rounded by itself; slow, for comparison.
- activations: "model" rounds the inputs of matrix products as a quantised folder says. "auto" does not.
- sliding_window: tokens of the window of layers with a sliding window. 0: no window. None: the model's own.
- merge: adapters that become part of the weights: a list of paths, or of pairs (path, scale).
- tokenizer: False loads no tokenizer, for programs that have their own.

Draft heads guess further tokens, and results stay the same. mtp=True loads the MTP heads of the model's file. draft_heads is the path of Medusa
or EAGLE heads. Drafter.heads() uses them.

Options that change speed and memory:

- threads: threads that compute. 0: one for each processor that the process may use.
- memory_budget: bytes that the plan's peak may reach. If the plan is above, loading raises OverBudget before a weight is read. 0: no limit.
- kv_budget: the most bytes of KV pages. adapter_budget: the most bytes of all adapters together; the plan includes them. 0: no limit (for
  adapters: the rest of memory_budget, if there is one).
- kv_file, kv_file_bytes: path and size of a new file for KV pages that are not in memory.
- page_tokens: tokens of a KV page: 16, 32 or 64. 0: 32.
- prefix: True: sessions that begin with the same tokens share the pages of these tokens. None: True for paged sessions.
- step_rows: the most tokens of a prompt that are computed in one step.
- strict: True: loading fails if an operation cannot use its best kernel.
- backend: "cpu" or "cuda". cuda_device is the number of the GPU. cuda_memory_budget is the bytes of its memory that the plan may reach (0: no
  limit).
- instruction_set: instruction set of the CPU's kernels ("avx2", "avx512", ...). "auto": the best one that the machine has.
- ranks: threads with a part of the model each. rank_at: addresses of tessera-rank programs, each of which also computes a part; rank_secret is
  their secret. rank_split: "heads" gives each rank a part of every layer, "layers" gives each rank whole layers.

progress(done, total) is called while weights are read; it may return False to cancel. progress=None shows a bar if loading takes over a second
and standard error is a terminal; False shows none. Ctrl-C cancels. log(level, message) gets the library's messages.)";

}  // namespace tessera::python
