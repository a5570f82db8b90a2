'use strict';
// Three requests at once on one scheduler while the event loop runs; one of them cancelled, one held to a schema: node test.js MODEL
const assert = require('node:assert');
const {Engine, Scheduler} = require('./tessera');

const story = {max_tokens: 40};
const endless = {max_tokens: 480, end_of_generation: 'ignore'};
const schema = {
  type: 'object',
  properties: {big: {type: 'boolean'}, legs: {enum: [2, 4]}},
  required: ['big', 'legs'],
  additionalProperties: false,
};

async function read(request, onPiece = () => {}) {
  const pieces = [];
  for await (const {text} of request) {
    pieces.push(text);
    onPiece(pieces.length);
  }
  return pieces;
}

async function main() {
  let ticks = 0; // turns of the event loop
  const ticking = setInterval(() => ticks++, 0);

  await assert.rejects(Engine.load('missing.gguf'), {code: 'TESSERA_NOT_FOUND', message: /missing\.gguf/});
  const engine = await Engine.load(process.argv[2], {numerics: 'invariant'});
  const words = 'naïve 🦊';
  assert.strictEqual(engine.decode(engine.encode(words)).trim(), words);
  assert.throws(() => engine.decode('text'), TypeError);

  const scheduler = new Scheduler(engine, {start: false, max_unread: 16});
  await assert.rejects(scheduler.submit('x', {max_token: 1}), {code: 'TESSERA_INVALID_ARGUMENT', message: /max_tokens/});
  const controller = new AbortController();
  const requests = await Promise.all([
    scheduler.submit('Once upon a time', story),
    scheduler.submit('The dog', {...endless, signal: controller.signal}),
    scheduler.submit('The dog is', {
      max_tokens: 60,
      grammar: {json_schema: schema, space: 'none', order: 'stated', numbers: 'plain'},
    }),
  ]);
  const ticksBefore = ticks;
  scheduler.start(); // behind the submits, so that all three begin in the first step
  let cancelled = 0;
  const [told, , answer] = await Promise.all([
    read(requests[0]),
    assert.rejects(read(requests[1], (n) => {
      cancelled = n;
      if (n === 3) controller.abort();
    }), {name: 'AbortError'}),
    read(requests[2]),
  ]);
  console.log(`${told.length}, ${cancelled}, ${answer.length} pieces; ${ticks - ticksBefore} turns of the loop`);
  console.log(JSON.stringify([told.join(''), answer.join('')]));
  assert(told.length > 10 && cancelled >= 3 && cancelled < 480);
  assert(ticks > ticksBefore);
  const {big, legs, ...others} = JSON.parse(answer.join(''));
  assert(typeof big === 'boolean' && [2, 4].includes(legs) && Object.keys(others).length === 0);
  const figures = scheduler.figures();
  assert(figures.tokens > figures.steps + 4, `computed together: ${JSON.stringify(figures)}`);

  // The same story alone; a loop that is left early cancels its request; cancel() ends one with an error.
  assert.deepStrictEqual((await read(await scheduler.submit('Once upon a time', story))).join(''), told.join(''));
  for await (const piece of await scheduler.submit('The dog', endless)) if (piece.text) break;
  const request = await scheduler.submit('The dog', endless);
  await assert.rejects(read(request, (n) => n === 2 && request.cancel()), {code: 'TESSERA_CANCELLED'});

  const late = scheduler.submit('The dog', endless); // closed while it is submitted: an error, or a request that is cancelled
  scheduler.close();
  engine.close();
  await late.then(read).catch((error) => assert.match(error.code, /^TESSERA_(CANCELLED|INVALID_STATE)$/));
  await assert.rejects(scheduler.submit('x'), {code: 'TESSERA_INVALID_ARGUMENT'});
  assert.throws(() => engine.encode('x'), {code: 'TESSERA_INVALID_ARGUMENT'});
  clearInterval(ticking);
  console.log('ok'); // and Node ends by itself: nothing holds the event loop
}

main();
