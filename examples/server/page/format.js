// Writes numbers for people.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n);

/** 134515008 -> "135 M" */
export function short(n) {
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
    if (n >= size) return `${digits(n / size)} ${unit}`;
  }
  return digits(n);
}

export function bytes(n) {
  for (const [size, unit] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (n >= size) return `${digits(n / size)} ${unit}`;
  }
  return `${whole.format(n)} B`;
}

/** Writes three significant digits: 0.123, 1.23, 12.3, 123. */
export function digits(n) {
  if (n === 0) return '0';
  const a = Math.abs(n);
  return n.toLocaleString('en-US', { maximumFractionDigits: a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3 });
}

export function seconds(s) {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${digits(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}
