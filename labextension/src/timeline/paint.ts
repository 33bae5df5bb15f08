import type { Flight, Span } from '../model/types';
import { barsOf } from './bars';
import type { Batch, Choice, Cost } from './batch';
import { Arrow, arrowOf, barHeight, Geometry, middleOf, timeOf, topOf, xOf } from './geometry';
import type { Recording } from './recording';
import { STYLES, Theme } from './theme';
import { timeText } from './ticks';

/** The least width of a hatched bar in pixels of the page: a hatching costs more than a colour. */
const HATCHED = 4;

/** Paint the spans of a row between two pixels, with the row's background, over what was painted. */
export function paintSpans(
  context: CanvasRenderingContext2D,
  recording: Recording,
  theme: Theme,
  geometry: Geometry,
  row: number,
  range: { readonly left: number; readonly right: number }
): void {
  const process = recording.rows[row];
  const left = Math.floor(range.left);
  const right = Math.ceil(range.right);
  if (!process || right <= left) {
    return;
  }
  // Every second row has another background, so that the eye can follow it.
  const top = topOf(row, geometry);
  context.fillStyle = row % 2 ? theme.stripe : theme.back;
  context.fillRect(left, top, right - left, topOf(row + 1, geometry) - top);
  const spans: Span[] = [];
  const [from, to] = [timeOf(left, geometry), timeOf(right, geometry)];
  recording.spansOf(process.uid).visit(from, to, span => void spans.push(span));
  const height = barHeight(geometry);
  const y = middleOf(row, geometry);
  for (const bar of barsOf(spans, time => xOf(time, geometry), recording.end)) {
    const begin = Math.max(left, bar.from);
    const end = Math.min(right, bar.to);
    if (end > begin) {
      const size = Math.max(1, Math.round(height * STYLES[bar.state].height));
      const wide = end - begin >= HATCHED * geometry.ratio;
      context.fillStyle = (wide ? theme.fills : theme.plain)[bar.state];
      context.fillRect(begin, y - Math.floor(size / 2), end - begin, size);
    }
  }
}

/** Paint the arrows of a batch that are visible between two pixels. */
export function paintBatch(
  context: CanvasRenderingContext2D,
  batch: Batch,
  choice: Choice,
  theme: Theme,
  geometry: Geometry,
  range: { readonly left: number; readonly right: number }
): void {
  const { ratio } = geometry;
  // A head or an arc extends a little beyond its line.
  const left = range.left - 16 * ratio;
  const right = range.right + 16 * ratio;
  const seen = (arrows: readonly Arrow[]): Arrow[] =>
    arrows.filter(({ x1, x2 }) => Math.max(x1, x2) >= left && Math.min(x1, x2) <= right);
  const heads = !choice.dense;
  const plain = { colour: theme.text, alpha: choice.alpha, width: ratio, heads };
  const marked = { colour: theme.late, alpha: 1, width: 1.6 * ratio, heads };
  stroke(context, seen(batch.plain), plain);
  stroke(context, seen(batch.sender), marked);
  stroke(context, seen(batch.receiver), { ...marked, dash: [5 * ratio, 3 * ratio] });
  paintCosts(context, batch.costs, theme, geometry);
  if (choice.dense) {
    clearBars(context, geometry, range, Math.max(left, batch.left), Math.min(right, batch.right));
  }
}

/** Many lines would cover the bars, so they pass behind them. */
function clearBars(
  context: CanvasRenderingContext2D,
  geometry: Geometry,
  range: { readonly left: number; readonly right: number },
  from: number,
  to: number
): void {
  const height = barHeight(geometry);
  const left = Math.max(range.left, Math.floor(from) - 2);
  const right = Math.min(range.right, Math.ceil(to) + 2);
  const rows = Math.round(context.canvas.height / geometry.rowHeight);
  for (let row = 0; row < rows; row++) {
    const top = middleOf(row, geometry) - Math.floor(height / 2);
    context.clearRect(left, top, right - left, height);
  }
}

interface Pen {
  readonly colour: string;
  readonly alpha: number;
  readonly width: number;
  readonly heads: boolean;
  readonly dash?: number[];
}

function stroke(context: CanvasRenderingContext2D, arrows: readonly Arrow[], pen: Pen): void {
  if (arrows.length === 0) {
    return;
  }
  context.globalAlpha = pen.alpha;
  context.strokeStyle = context.fillStyle = pen.colour;
  context.lineWidth = pen.width;
  context.setLineDash(pen.dash ?? []);
  context.beginPath();
  for (const arrow of arrows) {
    const { x1, y1, x2, y2 } = arrow;
    if (!pen.heads && !pen.dash && Math.round(x1) === Math.round(x2)) {
      // A vertical line needs no smoothing, which is most of a line's cost.
      context.fillRect(Math.round(x1), Math.min(y1, y2), pen.width, Math.abs(y2 - y1));
    } else {
      linePath(context, arrow, pen.width);
    }
  }
  context.stroke();
  context.setLineDash([]);
  if (pen.heads) {
    context.beginPath();
    for (const arrow of arrows) {
      headPath(context, arrow, 2.5 + pen.width * 2.5);
    }
    context.fill();
  }
  context.globalAlpha = 1;
}

function linePath(context: CanvasRenderingContext2D, arrow: Arrow, width: number): void {
  const { x1, y1, x2, y2 } = arrow;
  context.moveTo(x1, y1);
  if (y1 === y2) {
    // A message to its sender: over the sender's bar.
    context.quadraticCurveTo((x1 + x2) / 2, y1 - 14 * width, x2, y2);
  } else {
    context.lineTo(x2, y2);
  }
}

function headPath(context: CanvasRenderingContext2D, arrow: Arrow, size: number): void {
  const { x1, y1, x2, y2 } = arrow;
  const dx = x2 - x1;
  const dy = y1 === y2 ? size : y2 - y1;
  const length = Math.hypot(dx, dy) || 1;
  const ux = (dx / length) * size;
  const uy = (dy / length) * size;
  context.moveTo(x2, y2);
  context.lineTo(x2 - ux - uy * 0.45, y2 - uy + ux * 0.45);
  context.lineTo(x2 - ux + uy * 0.45, y2 - uy - ux * 0.45);
  context.closePath();
}

/** Paint a line in the bar of the process that waited, and the time if there is room for it. */
function paintCosts(
  context: CanvasRenderingContext2D,
  costs: readonly Cost[],
  theme: Theme,
  geometry: Geometry
): void {
  const { ratio } = geometry;
  const thick = Math.max(1, Math.round(2 * ratio));
  context.font = `600 ${Math.round(10 * ratio)}px ${theme.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  for (const { row, left, width, seconds } of costs) {
    const y = middleOf(row, geometry);
    context.fillStyle = theme.late;
    context.fillRect(left, y + Math.round(barHeight(geometry) * 0.35), width, thick);
    if (width > 44 * ratio) {
      const text = timeText(seconds);
      context.strokeStyle = theme.back;
      context.lineWidth = 3.5 * ratio;
      context.strokeText(text, left + width / 2, y);
      context.fillStyle = theme.text;
      context.fillText(text, left + width / 2, y);
    }
  }
}

/** Paint flights with an unknown end: a stub, with a ring at the unknown end. */
export function paintOpen(
  context: CanvasRenderingContext2D,
  flights: readonly Flight[],
  recording: Recording,
  theme: Theme,
  geometry: Geometry
): void {
  const { ratio } = geometry;
  context.strokeStyle = theme.text;
  context.lineWidth = ratio;
  context.beginPath();
  for (const flight of flights) {
    const arrow = arrowOf(flight, recording, geometry);
    if (arrow) {
      const { x1, y1, x2, y2 } = arrow;
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      const [x, y] = flight.received === null ? [x2, y2] : [x1, y1];
      context.moveTo(x + 2.5 * ratio, y);
      context.arc(x, y, 2.5 * ratio, 0, 2 * Math.PI);
    }
  }
  context.stroke();
}

/** Paint the item that the user has chosen, above all others. */
export function paintChosen(
  context: CanvasRenderingContext2D,
  flight: Flight,
  recording: Recording,
  theme: Theme,
  geometry: Geometry
): void {
  const arrow = arrowOf(flight, recording, geometry);
  if (!arrow) {
    return;
  }
  const { ratio } = geometry;
  // A light border separates it from the lines that it crosses.
  const edge = { colour: theme.back, alpha: 0.9, width: 6 * ratio, heads: false };
  const heads = flight.received !== null;
  stroke(context, [arrow], edge);
  stroke(context, [arrow], { colour: theme.chosen, alpha: 1, width: 3 * ratio, heads });
  context.fillStyle = theme.chosen;
  context.beginPath();
  context.arc(arrow.x1, arrow.y1, 3.5 * ratio, 0, 2 * Math.PI);
  context.fill();
}
