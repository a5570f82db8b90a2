// A small line chart over time, drawn as SVG: axes with units, a legend with the values under the pointer, and a cursor that all
// charts of a page share.
import { el, svg } from './dom.js';

const HEIGHT = 190, LEFT = 52, RIGHT = 10, TOP = 12, BOTTOM = 26;

/** Returns about `wanted` ticks up to `high`, at distances of 1, 2 or 5 times a power of ten. binary: counted in KiB, MiB, GiB. */
export function ticksTo(high, wanted, { whole = false, binary = false } = {}) {
  const size = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(high) / 10)) : 1;
  const raw = Math.max(high / size / wanted, whole ? 1 : 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = size * power * ([1, 2, 5].find((m) => m * power >= raw * 0.999) ?? 10);
  const ticks = [];
  for (let i = 0; i * step < high + step * 0.999; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** The cursor: a time in seconds before now that every chart shows, or null. */
export class Cursor extends EventTarget {
  time = null;

  set(time) {
    if (time === this.time) return;
    this.time = time;
    this.dispatchEvent(new Event('change'));
  }
}

const swatch = (dashed) => svg('svg', { class: 'swatch', width: 18, height: 8, 'aria-hidden': 'true' },
  svg('path', { d: 'M0 4H18', class: dashed ? 'dashed' : '' }));

export class Chart {
  /**
   * Makes a chart. series: its lines, [{key, label, dashed, line, optional}]; `line`: the series is a limit, drawn without its own colour; `optional`: the legend
   * leaves the series out while it has no values.
   * format: writes a value with its unit; axis: writes a value at a tick. whole: the values are counts. binary: the values are bytes.
   */
  constructor({ title, unit, series, format, axis = format, whole = false, binary = false, note = '' }, cursor) {
    Object.assign(this, { title, series, format, axis, whole, binary, cursor, span: 60 });
    this.values = series.map((one, i) => el('dd'));
    this.svg = svg('svg', { class: 'plot', height: HEIGHT, role: 'img', tabindex: 0 });
    this.element = el('figure', { class: 'chart' },
      el('figcaption', {}, el('h2', {}, title), unit && el('span', { class: 'unit' }, unit),
        note && el('span', { class: 'note' }, note)),
      el('dl', { class: 'legend' }, series.map((one, i) => el('div', { class: `series-${one.line ? 'limit' : i + 1}` },
        el('dt', {}, swatch(one.dashed), one.label), this.values[i]))),
      this.svg);
    this.samples = [];
    this.width = 0;
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.draw();
    }).observe(this.svg);
    this.svg.addEventListener('pointermove', (event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      this.cursor.set(Math.round(Math.min(this.span, Math.max(0, (1 - (x - LEFT) / this.inner()) * this.span))));
    });
    this.svg.addEventListener('pointerleave', () => this.cursor.set(null));
    this.svg.addEventListener('blur', () => this.cursor.set(null));
    this.svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: 1, ArrowRight: -1, PageUp: 10, PageDown: -10, Home: this.span, End: -this.span }[event.key];
      if (event.key === 'Escape') this.cursor.set(null);
      if (!step) return;
      event.preventDefault();
      this.cursor.set(Math.min(this.span, Math.max(0, (this.cursor.time ?? 0) + step)));
    });
    cursor.addEventListener('change', () => this.drawCursor());
  }

  inner() {
    return Math.max(1, this.width - LEFT - RIGHT);
  }

  x(age) {
    return LEFT + (1 - age / this.span) * this.inner();
  }

  y(value) {
    return TOP + (1 - value / this.high) * (HEIGHT - TOP - BOTTOM);
  }

  /** samples: [{age, ...values}], oldest first, of the last `span` seconds; a value that is null leaves a gap. */
  show(samples, span) {
    this.samples = samples;
    this.span = span;
    this.series.forEach(({ key, optional }, i) => {
      this.values[i].parentElement.hidden = Boolean(optional) && samples.every((sample) => sample[key] === null);
    });
    this.draw();
  }

  draw() {
    if (!this.width) return;
    const { samples, series } = this;
    let high = 0;
    for (const sample of samples) for (const { key } of series) high = Math.max(high, sample[key] ?? 0);
    const ticks = ticksTo(high || 1, 4, this);
    this.high = ticks.at(-1);
    const marks = [];
    for (const tick of ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      marks.push(svg('path', { class: 'grid', d: `M${LEFT} ${y}H${this.width - RIGHT}` }),
        svg('text', { class: 'tick', x: LEFT - 8, y: y + 4, 'text-anchor': 'end' }, this.axis(tick)));
    }
    const step = this.span / (this.span > 120 ? 5 : 4);
    for (let i = 0; i * step <= this.span; ++i) {
      const age = i * step, last = age === this.span;
      if (this.width < 480 && i % 2) continue;
      const anchor = age === 0 ? 'end' : last ? 'start' : 'middle';
      marks.push(svg('text', { class: 'tick', x: this.x(age), y: HEIGHT - 6, 'text-anchor': anchor },
        age === 0 ? 'now' : age % 60 ? `−${age} s` : `−${age / 60} min`));
    }
    // Draws the first series last, above the other series.
    const lines = series.map(({ key, line, dashed }, i) =>
      svg('path', { class: `line ${line ? 'limit' : `line-${i + 1}`}${dashed ? ' dashed' : ''}`, d: this.path(key) })).reverse();
    this.cursorMark = svg('g', { class: 'cursor' });
    this.svg.setAttribute('viewBox', `0 0 ${this.width} ${HEIGHT}`);
    this.svg.replaceChildren(...marks, ...lines, this.cursorMark);
    this.drawCursor();
    const last = samples.at(-1);
    const now = last ? series.map(({ key, label }) => `${label} ${this.value(last, key)}`).join(', ') : 'no values yet';
    this.svg.setAttribute('aria-label', `${this.title}, the last ${this.span} seconds. Now: ${now}. The arrow keys move through time.`);
  }

  path(key) {
    let d = '', pen = false;
    for (const sample of this.samples) {
      const value = sample[key];
      if (value === null || value === undefined || sample.gap) {
        pen = false;
        if (value === null || value === undefined) continue;
      }
      const place = `${this.x(sample.age).toFixed(1)} ${this.y(value).toFixed(1)}`;
      // Draws a single point as a dot: a line of length 0 with round ends.
      d += pen ? `L${place}` : `M${place}l0 0`;
      pen = true;
    }
    return d;
  }

  value(sample, key) {
    const value = sample?.[key];
    return value === null || value === undefined ? '–' : this.format(value);
  }

  drawCursor() {
    if (!this.cursorMark) return;
    const { time } = this.cursor;
    let sample = this.samples.at(-1);
    this.cursorMark.replaceChildren();
    if (time !== null && sample) {
      sample = this.samples.reduce((best, one) => (Math.abs(one.age - time) < Math.abs(best.age - time) ? one : best));
      const x = this.x(sample.age).toFixed(1);
      this.cursorMark.append(svg('path', { d: `M${x} ${TOP}V${HEIGHT - BOTTOM}` }));
      this.series.forEach(({ key, line }, i) => {
        const value = sample[key];
        if (value === null || value === undefined || line) return;
        this.cursorMark.append(svg('circle', { cx: x, cy: this.y(value).toFixed(1), r: 3.5, class: `dot-${i + 1}` }));
      });
      const anchor = Number(x) > this.width - 80 ? 'end' : 'start';
      const at = Math.min(this.width - RIGHT, Math.max(LEFT + 30, Number(x) + 6));
      this.cursorMark.append(svg('text', { x: at, y: TOP + 6, 'text-anchor': anchor },
        sample.age < 1 ? 'now' : `${Math.round(sample.age)} s ago`));
    }
    this.series.forEach(({ key }, i) => {
      this.values[i].textContent = this.value(sample, key);
    });
  }
}
