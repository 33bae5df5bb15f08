/** The time window that is shown, in seconds. */
export interface Window {
  readonly start: number;
  readonly length: number;
}

/** The time from the first to the last known event. */
export interface Domain {
  readonly begin: number;
  readonly end: number;
}

/** Seconds of the shortest window: a double has a quarter of a microsecond since 1970. */
export const SHORTEST = 5e-6;
/** Seconds of the longest live window, unless the user chooses another. */
export const LIVE = 10;
/** The space at both ends, as a fraction of the window. */
const PAD = 0.02;

export function whole({ begin, end }: Domain): Window {
  const length = Math.max(end - begin, SHORTEST) / (1 - 2 * PAD);
  return { start: begin - length * PAD, length };
}

/** A window of the same length, with the latest time near its right end. */
export function atEnd(length: number, domain: Domain): Window {
  return kept({ start: domain.end - length * (1 - PAD), length }, domain);
}

/** Like `atEnd`, in steps of half the length: it moves only when the latest time leaves it. */
export function paged(length: number, domain: Domain): Window {
  const first = domain.begin - length * PAD;
  const steps = Math.ceil((2 * (atEnd(length, domain).start - first)) / length - 1e-9);
  return { start: first + (steps * length) / 2, length };
}

/**
 * A round length for a run that goes on, which shows its begin while that is possible; it changes
 * seldom, since each change draws everything again.
 */
export function liveLength({ begin, end }: Domain): number {
  const needed = (end - begin) / (1 - 2 * PAD);
  let length = 1e-3;
  for (let i = 0; length < needed; i++) {
    length *= i % 3 === 1 ? 2.5 : 2;
  }
  return Math.min(length, LIVE);
}

/** A window longer or shorter by `factor`; the time `fixed` remains at the same position. */
export function zoomed(window: Window, factor: number, fixed: number, domain: Domain): Window {
  const longest = Math.max(whole(domain).length, LIVE);
  const length = Math.min(Math.max(window.length * factor, SHORTEST), longest);
  const share = (fixed - window.start) / window.length;
  return kept({ start: fixed - share * length, length }, domain);
}

export function moved(window: Window, by: number, domain: Domain): Window {
  return kept({ start: window.start + by, length: window.length }, domain);
}

/** A window within the known time and the space beside it. */
export function kept({ start, length }: Window, { begin, end }: Domain): Window {
  const first = begin - length * PAD;
  const last = Math.max(first, end - length * (1 - PAD));
  return { start: Math.min(Math.max(start, first), last), length };
}
