/** A mark of the time axis. */
interface Tick {
  readonly time: number;
  readonly label: string;
}

export interface Axis {
  /** The time from which the labels count, as text; empty if that is the origin. */
  readonly base: string;
  readonly ticks: readonly Tick[];
}

const UNITS: ReadonlyArray<readonly [number, string]> = [
  [1e-6, 'µs'],
  [1e-3, 'ms'],
  [1, 's']
];
/** Steps longer than seconds are those of clocks. */
const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** A round step of at least `least` seconds. */
export function stepOf(least: number): number {
  if (least > 0.5) {
    return CLOCK.find(step => step >= least) ?? Math.ceil(least / 86400) * 86400;
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-7)) + 1e-9);
  const factor = [1, 2, 5, 10].find(each => each * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/**
 * Marks between two times, at least `least` seconds apart. They count from `origin`; if that
 * would make long numbers of small steps, from a round time before the first one.
 */
export function axisOf(start: number, end: number, least: number, origin: number): Axis {
  const step = stepOf(least);
  const first = Math.ceil((start - origin) / step - 1e-9);
  const last = Math.floor((end - origin) / step + 1e-9);
  const from = origin + first * step;
  // Steps of less than a thousandth of the time since the origin are counted from nearby.
  const far = step < 1 && Math.abs(from - origin) >= 1000 * step;
  const coarse = step < 1e-3 ? 1e-3 : 1;
  const base = far ? Math.floor((start - origin) / coarse + 1e-9) * coarse : 0;
  const ticks: Tick[] = [];
  for (let i = first; i <= last && ticks.length < 200; i++) {
    const since = i * step - base;
    ticks.push({ time: origin + i * step, label: (far ? '+' : '') + tickText(since, step) });
  }
  return { base: far ? tickText(base, coarse) : '', ticks };
}

/** The text of a mark, with the digits that the step needs. */
function tickText(seconds: number, step: number): string {
  const size = Math.abs(seconds);
  if (size < step / 2) {
    return '0';
  }
  const sign = seconds < -step / 2 ? '−' : '';
  if (step >= 1 && size >= 60) {
    return sign + clock(Math.round(size));
  }
  const [unit, name] = unitOf(Math.max(size, step));
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${sign}${(size / unit).toFixed(digits)} ${name}`;
}

function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (minutes >= 60) {
    return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
  }
  return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
}

function unitOf(seconds: number): readonly [number, string] {
  return UNITS.find(([unit]) => seconds < 999.5 * unit) ?? UNITS[2]!;
}

/** Three digits and a unit: `1.25 ms`; above two minutes `3 min 20 s`. */
export function timeText(seconds: number): string {
  if (seconds < 0) {
    return `−${timeText(-seconds)}`;
  }
  if (seconds >= 119.5) {
    return clock(Math.round(seconds));
  }
  const [unit, name] = unitOf(seconds);
  const value = seconds / unit;
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${Number(value.toFixed(digits))} ${name}`;
}

/** The text of a time since the begin of the run, to the microsecond. */
export function sinceText(seconds: number): string {
  const text = Math.abs(seconds).toFixed(6);
  const grouped = text.replace(/\.(\d{3})(\d{3})$/, '.$1\u202f$2');
  return `${seconds < 0 ? '−' : ''}${grouped} s`;
}
