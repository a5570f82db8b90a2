// The live view: asks /status.json each second, keeps the answers of five minutes in memory, and draws them.
import { Chart, Cursor } from './chart.js';
import { askKey } from './dialogs.js';
import { el, icon, mark } from './dom.js';
import { bytes, count, digits, seconds } from './format.js';
import { lookSwitch } from './look.js';
import { getJson } from './server.js';

const SPANS = [60, 120, 300];  // seconds. The charts show the shortest span that has all samples; samples are kept for the longest span
const PERIOD = 1000;  // ms between questions
const RECENT = 5000;  // ms that count as recent
const GAUGES = ['running', 'waiting', 'paused', 'max_running', 'kv_used_bytes', 'kv_total_bytes'];
const SPREADS = ['ttft_ms', 'itl_ms', 'e2e_ms', 'step_ms', 'batch_rows'];
const LOST = 5000;   // ms without an answer after which a chart has a gap

const byId = (id) => document.getElementById(id);
const milliseconds = (ms) => (ms >= 1000 ? `${digits(ms / 1000)} s` : `${digits(ms)} ms`);
const rate = (n) => `${digits(n)}/s`;
/** Returns the series of a time. The percentiles count from the server's start; `recent` is the mean over the last seconds. */
const spread = (name) => [
  { key: `${name}_recent`, label: 'recent' },
  { key: `${name}_p50`, label: 'p50' },
  { key: `${name}_p95`, label: 'p95' },
  { key: `${name}_p99`, label: 'p99' },
];

const charts = [
  { title: 'Queue', unit: 'requests', whole: true, format: count,
    series: [
      { key: 'running', label: 'running' },
      { key: 'waiting', label: 'waiting' },
      { key: 'paused', label: 'paused', optional: true },
      { key: 'max_running', label: 'most at once', dashed: true, line: true },
    ] },
  { title: 'Tokens', unit: 'a second', format: rate, axis: digits,
    series: [{ key: 'generated', label: 'generated' }, { key: 'prompt', label: 'of prompts' }] },
  { title: 'Time to first token', unit: '', format: milliseconds, note: 'TTFT', series: spread('ttft_ms') },
  { title: 'Time between tokens', unit: '', format: milliseconds, note: 'ITL', series: spread('itl_ms') },
  { title: 'Batch', unit: 'rows a step', format: digits, series: spread('batch_rows') },
  { title: 'Step', unit: 'the time of one', format: milliseconds, series: spread('step_ms') },
  { title: 'Pages', unit: 'of the KV cache', format: bytes, binary: true,
    series: [{ key: 'kv_used_bytes', label: 'in use' }, { key: 'kv_total_bytes', label: 'all', dashed: true, line: true }] },
  { title: 'Whole requests', unit: '', format: milliseconds, note: 'E2E', series: spread('e2e_ms') },
];

const cursor = new Cursor();
const drawn = charts.map((chart) => new Chart(chart, cursor));
byId('charts').append(...drawn.map((chart) => chart.element));
byId('brand').prepend(mark());
for (const node of document.querySelectorAll('[data-icon]')) node.prepend(icon(node.dataset.icon));
lookSwitch(byId('look'));

const samples = [];  // {time, ...}, oldest first
let answered = 0;    // time of the server's last answer
let lost = false;

const numberOr = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** Returns the values of an answer for the charts. Rates are computed from the difference to an earlier answer. */
function sampleOf(status, time) {
  const sample = { time };
  for (const key of GAUGES) sample[key] = numberOr(status[key]);
  sample.totals = [numberOr(status.tokens_generated_total), numberOr(status.tokens_prompt_total)];
  const before = samples.at(-1);
  sample.gap = !before || time - before.time > LOST;
  const recent = samples.filter((one) => time - one.time <= RECENT);
  for (const name of SPREADS) addSpread(sample, name, status[name], sample.gap ? null : recent[0]);
  const per = (i) => {
    const more = before && !sample.gap ? sample.totals[i] - before.totals[i] : null;
    // If a total went down, the server was restarted.
    return more === null || more < 0 ? null : (more * 1000) / (time - before.time);
  };
  sample.generated = per(0);
  sample.prompt = per(1);
  return sample;
}

/** Adds the values of spread() to a sample. before: an answer from some seconds ago, or null. */
function addSpread(sample, name, figures, before) {
  const n = numberOr(figures?.count) ?? 0, sum = n * (numberOr(figures?.mean) ?? 0);
  sample[name] = { n, sum };
  for (const p of ['p50', 'p95', 'p99']) sample[`${name}_${p}`] = n > 0 ? numberOr(figures[p]) : null;
  const more = before ? n - before[name].n : 0;
  sample[`${name}_recent`] = more > 0 ? (sum - before[name].sum) / more : null;
}

const tiles = new Map();

/** Shows a figure in the row at the top. Makes its element only once, so that screen readers do not read it again. */
function tile(name, value, hint = '') {
  if (!tiles.has(name)) {
    const box = { value: el('dd'), hint: el('span', { class: 'hint' }) };
    byId('tiles').append(el('div', {}, el('dt', {}, name), box.value, box.hint));
    tiles.set(name, box);
  }
  const box = tiles.get(name);
  box.value.textContent = value;
  box.hint.textContent = hint;
}

function showTiles(status, sample) {
  const known = (value, format) => (numberOr(value) === null ? '–' : format(value));
  tile('Requests', known(status.requests_total, count), `${known(status.refused_total, count)} refused`);
  tile('Now', known(status.running, count), `running, ${known(status.waiting, count)} waiting`);
  tile('Speed', sample.generated === null ? '–' : digits(sample.generated), 'tokens a second');
  tile('Generated', known(status.tokens_generated_total, count), 'tokens in all');
  const percent = (share) => `${digits(share * 100)} %`;
  const used = status.kv_total_bytes ? status.kv_used_bytes / status.kv_total_bytes : null;
  tile('KV cache', known(used, percent), `of ${known(status.kv_total_bytes, bytes)}`);
  tile('Prefix hits', known(status.prefix_hit_rate, percent), 'of prompt tokens');
  tile('Preemptions', known(status.preemptions_total, count), 'since the start');
  tile('Up', known(status.uptime_s, (s) => seconds(s).replace(/ \d+ s$/, '')), status.draining ? 'and draining' : 'and ready');
}

/** Shows the state: 'ready', 'draining' or 'lost'. Writes only when the state changes, because screen readers read each change. */
function showState(state, text) {
  const place = byId('state');
  if (place.dataset.state !== state) place.dataset.state = state;
  if (byId('state-text').textContent !== text) byId('state-text').textContent = text;
}

function draw() {
  const now = Date.now();
  while (samples.length && now - samples[0].time > SPANS.at(-1) * 1000) samples.shift();
  if (document.hidden) return;
  const aged = samples.map((sample) => ({ ...sample, age: (now - sample.time) / 1000 }));
  const span = SPANS.find((seconds) => seconds >= (aged[0]?.age ?? 0)) ?? SPANS.at(-1);
  for (const chart of drawn) chart.show(aged, span);
}

async function poll() {
  const begun = Date.now();
  try {
    const status = await getJson('status.json', { signal: AbortSignal.timeout(5000) });
    const now = Date.now();
    const sample = sampleOf(status, now);
    samples.push(sample);
    answered = now;
    lost = false;
    byId('model').textContent = typeof status.model === 'string' ? status.model : '';
    showTiles(status, sample);
    if (status.draining) showState('draining', 'Draining: running requests end, new ones are refused');
    else showState('ready', 'Ready');
  } catch (problem) {
    if (problem.kind === 'key') {
      showState('lost', problem.title);
      askKey(problem.text, poll);
      return;
    }
    lost = true;
    const since = answered ? ` since ${new Date(answered).toLocaleTimeString()}` : '';
    const silent = problem.kind === 'network' || problem.name === 'TimeoutError';
    showState('lost', silent ? `No answer${since}. Trying again each second`
      : `${problem.title ?? 'This page failed'}: ${problem.text ?? problem.message}`);
  }
  document.body.classList.toggle('stale', lost);
  draw();
  setTimeout(poll, Math.max(0, PERIOD - (Date.now() - begun)));
}

document.addEventListener('visibilitychange', draw);
poll();
