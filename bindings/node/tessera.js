'use strict';
// tessera for Node. Build tessera.node from tessera.c beside this file first: README.md.
//
//   const {Engine, Scheduler} = require('./tessera');
//   const engine = await Engine.load('model.gguf');
//   const scheduler = new Scheduler(engine);
//   const request = await scheduler.submit('Once upon a time', {max_tokens: 40});
//   for await (const piece of request) process.stdout.write(piece.text);
//
// Options are objects with the keys of docs/reference/c-options.md. Errors are of class Error; their `code` is a name like TESSERA_NOT_FOUND.
// Every object has close(), which frees what it holds now and not when the garbage collector comes.
const addon = require('./tessera.node');

/** A loaded model. */
class Engine {
  /** Loads a GGUF file. The event loop runs meanwhile. */
  static async load(path, options = {}) {
    return new Engine(await addon.load(path, JSON.stringify(options)));
  }
  /** Engines come from Engine.load(). */
  constructor(handle) {
    this.handle = handle;
  }
  /** Returns the tokens of a text that begins a sequence, as an Int32Array. */
  encode(text) {
    return addon.encode(this.handle, text);
  }
  /** Returns the text of an Int32Array of tokens. */
  decode(tokens) {
    return addon.decode(this.handle, tokens);
  }
  close() {
    addon.close(this.handle);
  }
}

/** Computes many requests of one engine together, on a thread of its own. */
class Scheduler {
  #engine;
  #handle;
  /** start: false: requests wait until start(), so that several begin together. */
  constructor(engine, {start = true, ...options} = {}) {
    this.#engine = engine;
    this.#handle = addon.createScheduler(engine.handle, JSON.stringify(options));
    if (start) this.start();
  }
  start() {
    addon.start(this.#handle);
  }
  /** Submits a text. The promise is of a Request, as soon as the scheduler has accepted it. signal: an AbortSignal that cancels it. */
  async submit(prompt, {signal, ...options} = {}) {
    signal?.throwIfAborted();
    const request = new Request(signal);
    const handle = await addon.submit(this.#handle, this.#engine.handle, prompt, JSON.stringify(options), () => request.wake());
    request.begin(handle);
    return request;
  }
  /** Returns what the scheduler has done so far. */
  figures() {
    return JSON.parse(addon.figures(this.#handle));
  }
  /** Cancels all requests and ends the thread; waits for the step that it computes. */
  close() {
    addon.close(this.#handle);
  }
}

/** A request's answer: an async iterator of {text, token}. To leave the loop early cancels the request. */
class Request {
  #handle;
  #signal;
  #waiting = null;
  #abort = () => this.cancel();
  constructor(signal) {
    this.#signal = signal;
  }
  /** Called by Scheduler. */
  begin(handle) {
    this.#handle = handle;
    if (this.#signal?.aborted) this.cancel();
    else this.#signal?.addEventListener('abort', this.#abort, {once: true});
  }
  /** Called by the addon on the event loop when there is something to read, and not again until tryNext() has returned null. */
  wake() {
    this.#waiting?.();
    this.#waiting = null;
  }
  /** Ends the request; its iterator then throws an error with code TESSERA_CANCELLED, or the reason of the signal. */
  cancel() {
    addon.cancel(this.#handle);
  }
  /** Cancels the request if it has not ended. */
  close() {
    this.#signal?.removeEventListener('abort', this.#abort);
    addon.close(this.#handle);
  }
  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        const piece = addon.tryNext(this.#handle);
        if (piece === undefined) return;
        if (piece === null) await new Promise((resolve) => (this.#waiting = resolve));
        else yield piece;
      }
    } catch (error) {
      if (error.code === 'TESSERA_CANCELLED' && this.#signal?.aborted) throw this.#signal.reason;
      throw error;
    } finally {
      this.close();
    }
  }
}

module.exports = {Engine, Scheduler};
