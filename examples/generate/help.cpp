#include "options.hpp"

const char* const kHelpFooter = R"(
The output is the prompt, as it was given, and then the text that goes on from it. With --json,
--print-tokens and --no-echo the prompt is not printed. A BOS token is put before the prompt if the model
wants one, and always before an empty prompt. A loaded session needs no prompt; a prompt is appended to it
without a BOS token. A session is saved whole or not at all, also after Ctrl-C. A run that loads the session
and gets the same seed goes on as the first run would have gone on.

Ctrl-C ends the text and shows the figures; a second Ctrl-C ends the program.

The last line, on standard error, has the number of tokens written, the time to the first token (in which
the prompt is read), the speed of the tokens after the first one, the bytes of weights and cache that are
read for a token, the share of guessed tokens that were right, and the seed.

Exit status: 0 done, 1 failure, 2 a wrong command line, 130 interrupted.

Examples:
  generate                                            a story, another one each time
  generate -p "Once upon a time" --seed 7             the same one each time
  generate -m llama.gguf -f question.txt -n 200 --temp 0.3
  echo "The cat" | generate -f - --stop . --no-echo   up to the first full stop
  generate -m llama.gguf -p "2+2=" -n 1 --logprobs 5  how sure is it?
  generate -p "Hello" --json | jq .figures
  generate -m llama-8b.gguf --draft-model llama-1b.gguf -f question.txt
  generate --draft eagle                              a story whose next tokens an EAGLE head guesses
  generate -m llama.gguf -f report.txt --draft suffix   for text that repeats its input
  generate -m llama.gguf -p "A name for a cat:" -n 8 --samples 5   five texts; --best-of 5: the best one
  generate -m llama.gguf -p "2+2=" --beams 4 --results 2           the likeliest two of a search
  generate -f story.txt -n 0 --save-session s.tkv     read it once, then ask as often as you like:
  generate --load-session s.tkv -p "The end was" -n 50
  generate -m SmolLM2-135M --merge pirate-adapter -p "Hello"       with an adapter; pirate-adapter:0.5 halves it
  generate -m vocabulary.gguf -p "Hello" --tokenize --no-bos
  generate -m llama.gguf --plan --ctx 32k --kv-dtype f16
  generate -m llama.gguf --render chat.json           what the model would read, byte for byte
  generate --template chat.jinja --render chat.json
  generate -m llama.gguf --lora pirate.gguf:0.8 -p "Good morning"   with 0.8 of an adapter's change
  generate -m llama.gguf --chat --system "Answer in one sentence."
  generate -m llama.gguf --chat -p "What is a tessera?"   one question
)";
