import type { Recording } from './recording';
import type { Domain, Window } from './scale';
import type { Theme } from './theme';
import { axisOf } from './ticks';

/** A canvas and its size in canvas pixels, `ratio` of which are one pixel of the page. */
export interface Sheet {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
}

/** The least pixels of the page between two marks. */
const TICK = 84;

/** The time axis, and its marks through the rows. */
export function paintAxis(
  axis: Sheet,
  rows: Sheet,
  window: Window,
  origin: number,
  theme: Theme
): void {
  const { context, width, height, ratio } = axis;
  const end = window.start + window.length;
  const least = (window.length * TICK * ratio) / width;
  const { base, ticks } = axisOf(window.start, end, least, origin);
  context.clearRect(0, 0, width, height);
  context.font = `${11 * ratio}px ${theme.font}`;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  const y = height / 2;
  const edge = base ? context.measureText(base).width + 10 * ratio : 0;
  context.fillStyle = rows.context.fillStyle = theme.grid;
  rows.context.globalAlpha = 0.6;
  const shown = ticks.map(tick => ({
    label: tick.label,
    x: Math.round(((tick.time - window.start) / window.length) * width)
  }));
  for (const { x } of shown) {
    context.fillRect(x, height - 5 * ratio, ratio, 5 * ratio);
    rows.context.fillRect(x, 0, ratio, rows.height);
  }
  rows.context.globalAlpha = 1;
  context.fillStyle = theme.dim;
  for (const { x, label } of shown) {
    const size = context.measureText(label).width;
    const left = Math.min(Math.max(x - size / 2, 0), width - size);
    if (left >= edge) {
      context.fillText(label, left, y);
    }
  }
  if (base) {
    context.fillStyle = theme.text;
    context.fillText(base, 0, y);
  }
}

/** The overview of all the time: the number of messages over time, and the shown window. */
export function paintOverview(
  sheet: Sheet,
  recording: Recording,
  domain: Domain,
  window: Window,
  theme: Theme
): void {
  const { context, width, height, ratio } = sheet;
  const length = domain.end - domain.begin || 1;
  const x = (time: number): number => ((time - domain.begin) / length) * width;
  context.fillStyle = theme.stripe;
  context.fillRect(0, 0, width, height);

  const bars: { x: number; wide: number; all: number; late: number }[] = [];
  let most = 1;
  recording.density.visit((begin, all, late) => {
    // Integer pixels need no smoothing of edges, which would cost more than everything else.
    const left = Math.round(x(begin));
    const wide = Math.max(1, Math.round(x(begin + recording.density.width)) - left);
    bars.push({ x: left, wide, all, late });
    most = Math.max(most, all);
  });
  // The root of the number, since one burst would hide all others.
  const tall = (count: number): number => Math.sqrt(count / most) * (height - 4 * ratio);
  for (const kind of ['all', 'late'] as const) {
    context.fillStyle = kind === 'all' ? theme.dim : theme.late;
    for (const bar of bars) {
      const size = Math.round(tall(bar[kind]));
      if (size > 0) {
        context.fillRect(bar.x, height - size, bar.wide, size);
      }
    }
  }

  const { left, right } = handles(window, domain, width, ratio);
  context.fillStyle = theme.back;
  context.globalAlpha = 0.65;
  context.fillRect(0, 0, left, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  context.strokeStyle = context.fillStyle = theme.chosen;
  context.lineWidth = 2 * ratio;
  context.strokeRect(left + ratio, ratio, right - left - 2 * ratio, height - 2 * ratio);
  for (const grip of [left, right - 4 * ratio]) {
    context.fillRect(grip, height / 2 - 6 * ratio, 4 * ratio, 12 * ratio);
  }
}

/** The edges of the shown window in the overview; never too narrow to be grabbed. */
export function handles(
  { start, length }: Window,
  { begin, end }: Domain,
  width: number,
  ratio: number
): { left: number; right: number } {
  const scale = width / (end - begin || 1);
  const clip = (x: number): number => Math.min(Math.max(x, 0), width);
  const left = clip((start - begin) * scale);
  const right = clip((start + length - begin) * scale);
  const missing = Math.max(0, 12 * ratio - (right - left));
  const shifted = Math.min(Math.max(left - missing / 2, 0), width - (right - left) - missing);
  return { left: shifted, right: shifted + (right - left) + missing };
}
