import type { Flight } from '../model/types';
import { batchOf, Choice, choiceOf, isMarked, MARKED } from './batch';
import { Geometry, xOf } from './geometry';
import { paintBatch, paintSpans } from './paint';
import { Changes, flightBegin, Recording } from './recording';
import type { Window } from './scale';
import { Strip } from './strip';
import type { Theme } from './theme';

/** The margins that are painted to the left and to the right of the visible window, in windows. */
const BEFORE = 0.1;
const AFTER = 1.25;
/** A number of flights that is never too many. */
const FEW = 250;

/** The size of the canvas that shows the layers, in canvas pixels. */
export interface Shape {
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
}

/** Everything that the painted layers depend on. */
interface Base {
  readonly geometry: Geometry;
  readonly theme: Theme;
  readonly shape: Shape;
  readonly lines: number;
  readonly choice: Choice;
}

/**
 * Images of the spans and of the flights, wider than the visible window: while the view follows
 * the world, they are only shifted, and only new items are painted. A new scale paints them again.
 */
export class Layers {
  /** One flight of this number is drawn. */
  get every(): number {
    return this._base?.choice.every ?? 1;
  }

  /**
   * Puts the visible window onto `target`; paints what is not painted yet. More flights than `lines`
   * are thinned.
   */
  draw(
    target: CanvasRenderingContext2D,
    recording: Recording,
    theme: Theme,
    window: Window,
    shape: Shape,
    lines: number
  ): Geometry {
    const { geometry } =
      this._base && covers(this._base, window, theme, shape, lines)
        ? this._base
        : this._paint(recording, theme, window, shape, lines);
    const offset = Math.round(xOf(window.start, geometry));
    this._strip.show(target, offset, shape.width);
    const start = geometry.start + offset / geometry.scale;
    return { ...geometry, start, width: shape.width };
  }

  /** Paint new items onto the images. */
  add(changes: Changes, recording: Recording): void {
    const base = this._base;
    if (!base || changes.all) {
      this._base = null;
      return;
    }
    const { geometry, theme, choice } = base;
    const right = Math.max(xOf(recording.end, geometry), xOf(this._painted, geometry)) + 1;
    recording.rows.forEach(({ uid }, row) => {
      const from = changes.spans.get(uid) ?? this._goesOn(uid, recording);
      const left = from === null ? right : Math.max(0, Math.floor(xOf(from, geometry)));
      this._strip.paint('below', left, right, (context, range) =>
        paintSpans(context, recording, theme, geometry, row, range)
      );
    });
    this._painted = recording.end;

    const end = geometry.start + geometry.width / geometry.scale;
    const flights = changes.flights.filter(flight => flightBegin(flight) < end);
    this._count += flights.length;
    this._marked += flights.filter(flight => isMarked(flight, choice)).length;
    if (this._count > Math.max(2 * this._counted, FEW) || this._marked > 6 * MARKED) {
      // A new choice of flights would differ.
      this._base = null;
      return;
    }
    this._paintFlights(flights, recording, base);
  }

  /** The time from which a lasting span must be painted, even without an update of it. */
  private _goesOn(uid: string, recording: Recording): number | null {
    const spans = recording.spansOf(uid);
    const last = spans.at(spans.size - 1);
    const lasts = last?.end === null && this._painted < recording.end;
    return lasts ? Math.max(last.begin, this._painted) : null;
  }

  private _paint(
    recording: Recording,
    theme: Theme,
    window: Window,
    shape: Shape,
    lines: number
  ): Base {
    const geometry: Geometry = {
      ratio: shape.ratio,
      width: Math.ceil(shape.width * (1 + BEFORE + AFTER)),
      rowHeight: shape.height / Math.max(1, recording.rows.length),
      start: window.start - window.length * BEFORE,
      scale: shape.width / window.length
    };
    const { width } = geometry;
    this._strip.reset(width, shape.height);
    this._strip.paint('below', 0, width, (context, range) =>
      recording.rows.forEach((_, row) =>
        paintSpans(context, recording, theme, geometry, row, range)
      )
    );
    this._painted = recording.end;

    const flights: Flight[] = [];
    const end = geometry.start + width / geometry.scale;
    recording.complete.visit(geometry.start, end, flight => void flights.push(flight));
    this._count = this._counted = flights.length;
    this._marked = 0;
    const choice = choiceOf(flights, geometry, lines);
    this._base = { geometry, theme, shape, lines, choice };
    this._paintFlights(flights, recording, this._base);
    return this._base;
  }

  private _paintFlights(flights: readonly Flight[], recording: Recording, base: Base): void {
    const { geometry, theme, choice } = base;
    const batch = batchOf(flights, recording, geometry, choice);
    const more = 16 * geometry.ratio;
    this._strip.paint('above', batch.left - more, batch.right + more, (context, range) =>
      paintBatch(context, batch, choice, theme, geometry, range)
    );
  }

  private _base: Base | null = null;
  /** The time up to which lasting spans are painted. */
  private _painted = 0;
  /** The numbers of flights: now, when everything was painted, and marked as late since then. */
  private _count = 0;
  private _counted = 0;
  private _marked = 0;
  /** Spans are below, flights above. */
  private readonly _strip = new Strip();
}

function covers(base: Base, window: Window, theme: Theme, shape: Shape, lines: number): boolean {
  const { start, scale, width } = base.geometry;
  return (
    base.theme === theme &&
    base.lines === lines &&
    base.shape.width === shape.width &&
    base.shape.height === shape.height &&
    base.shape.ratio === shape.ratio &&
    scale === shape.width / window.length &&
    window.start >= start &&
    window.start + window.length <= start + width / scale
  );
}
