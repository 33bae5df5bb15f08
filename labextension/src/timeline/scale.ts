/** The part of the time that is shown, in seconds. */
export interface Window {
  readonly start: number;
  readonly length: number;
}

/** All the time of which something is known. */
export interface Domain {
  readonly begin: number;
  readonly end: number;
}

/** Seconds. Since 1970 doubles tell a quarter of a microsecond: less cannot be shown. */
export const SHORTEST = 5e-6;
/** Seconds that a live view follows at most before the user chooses otherwise. */
export const LIVE = 10;
/** The space at both ends, in parts of the window. */
const PAD = 0.02;

export function whole({ begin, end }: Domain): Window {
  const length = Math.max(end - begin, SHORTEST) / (1 - 2 * PAD);
  return { start: begin - length * PAD, length };
}

/** The same length, with the latest time near its right end. */
export function atEnd(length: number, domain: Domain): Window {
  return kept({ start: domain.end - length * (1 - PAD), length }, domain);
}

/** The same, in steps of half the length: it does not move until the latest time leaves it. */
export function paged(length: number, domain: Domain): Window {
  const first = domain.begin - length * PAD;
  const steps = Math.ceil((2 * (atEnd(length, domain).start - first)) / length - 1e-9);
  return { start: first + (steps * length) / 2, length };
}

/**
 * A round length that shows a run that goes on, from its begin while that is possible: it changes
 * seldom, as each change draws everything anew.
 */
export function liveLength({ begin, end }: Domain): number {
  const needed = (end - begin) / (1 - 2 * PAD);
  let length = 1e-3;
  for (let i = 0; length < needed; i++) {
    length *= i % 3 === 1 ? 2.5 : 2;
  }
  return Math.min(length, LIVE);
}

/** Longer by `factor`, or shorter; `at` keeps its place. */
export function zoomed(window: Window, factor: number, at: number, domain: Domain): Window {
  const longest = Math.max(whole(domain).length, LIVE);
  const length = Math.min(Math.max(window.length * factor, SHORTEST), longest);
  const part = (at - window.start) / window.length;
  return kept({ start: at - part * length, length }, domain);
}

export function moved(window: Window, by: number, domain: Domain): Window {
  return kept({ start: window.start + by, length: window.length }, domain);
}

/** Not further than the known time and what is left free beside it. */
export function kept({ start, length }: Window, { begin, end }: Domain): Window {
  const first = begin - length * PAD;
  const last = Math.max(first, end - length * (1 - PAD));
  return { start: Math.min(Math.max(start, first), last), length };
}
