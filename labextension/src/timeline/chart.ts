import type { Flight, Span } from '../model/types';
import { paintAxis, paintOverview, Sheet } from './frame';
import { arrowOf, distance, Geometry } from './geometry';
import { Layers } from './layers';
import { paintChosen, paintOpen } from './paint';
import { flightBegin, Recording, Source } from './recording';
import { atEnd, Domain, kept, liveLength, moved, paged, whole, Window, zoomed } from './scale';
import { readTheme, Theme, watchTheme } from './theme';

/** The state of the buttons, and the item of the details. */
export interface ChartState {
  /** Whether updates are paused. */
  readonly paused: boolean;
  /** Whether the right end is the latest time. */
  readonly follows: boolean;
  readonly chosen: Flight | Span | null;
  /** One message of this number is drawn. */
  readonly every: number;
}

export const START: ChartState = { paused: false, follows: true, chosen: null, every: 1 };

export interface Canvases {
  readonly rows: HTMLCanvasElement;
  readonly axis: HTMLCanvasElement;
  readonly overview: HTMLCanvasElement;
}

/** For users who prefer less motion the timeline turns pages instead of flowing. */
const STEADY = matchMedia('(prefers-reduced-motion: reduce)');
/** The most messages on their way that are drawn; the oldest are omitted. */
const OPEN = 1000;
/** The most messages that are drawn: moving ones cannot be distinguished, and each costs time. */
const MOVING = 1000;
const STILL = 10000;
/** Milliseconds between two paintings of the overview. */
const OVERVIEW = 400;
/** Pixels of the page around an arrow in which a pointer hits it. */
const REACH = 8;

export function isFlight(item: Flight | Span): item is Flight {
  return 'number' in item;
}

/**
 * The drawing itself, without React: holds the shown window and paints at most once a frame, and
 * only when something has changed.
 */
export class Chart {
  constructor(canvases: Canvases, changed: (state: ChartState) => void) {
    this._canvases = canvases;
    this._changed = changed;
    this._stopWatching = watchTheme(() => {
      this._theme = null;
      this._overviewAt = -Infinity;
      this._measure();
      this._schedule();
    });
  }

  readonly recording = new Recording();
  state = START;

  dispose(): void {
    cancelAnimationFrame(this._request);
    clearTimeout(this._timer);
    this._stopWatching();
  }

  /**
   * Something may be new; the next frame reads it. What happens while the chart is paused is not
   * lost.
   */
  update(source: Source, live: boolean): void {
    this._source = source;
    this._live = live;
    if (!this.state.paused) {
      this._schedule();
    }
  }

  /** Sizes in pixels of the page. */
  resize(width: number, rowsHeight: number): void {
    this._width = width;
    this._rowsHeight = rowsHeight;
    this._overviewAt = -Infinity;
    this._measure();
    this._schedule();
  }

  pause(paused: boolean): void {
    this._set({ paused });
    this._schedule();
  }

  /** Show the latest time, and follow it. */
  follow(): void {
    this._set({ follows: true });
    this._schedule();
  }

  zoom(factor: number, x: number | null = null): void {
    const { window, domain } = this;
    const end = this.state.follows ? domain.end : window.start + window.length / 2;
    const fixed = x === null ? end : window.start + (x / this._width) * window.length;
    const next = zoomed(window, factor, fixed, domain);
    this._chosenLength = next.length;
    this._show(next, this.state.follows && x === null);
  }

  /** Shift the window by a fraction of its length. */
  pan(fraction: number): void {
    this._show(moved(this.window, fraction * this.window.length, this.domain), false);
  }

  show(window: Window): void {
    this._chosenLength = window.length;
    this._show(kept(window, this.domain), false);
  }

  /** Show the last run from its begin to its end. */
  fit(): void {
    const { begin, end } = this.recording;
    this.show(whole({ begin: Math.min(begin, end), end }));
  }

  toStart(): void {
    this.show({ start: this.domain.begin - this.window.length, length: this.window.length });
  }

  /** The width in pixels of the page. */
  get width(): number {
    return this._width || 1;
  }

  get domain(): Domain {
    return this.recording.domain;
  }

  get window(): Window {
    if (this._window && !this.state.follows) {
      return this._window;
    }
    const { domain, recording } = this;
    if (this._live && this.state.follows) {
      const run = { begin: recording.begin, end: domain.end };
      const follow = STEADY.matches ? paged : atEnd;
      return follow(this._chosenLength ?? liveLength(run), this._chosenLength ? domain : run);
    }
    return this._window ?? whole({ begin: recording.begin, end: domain.end });
  }

  choose(chosen: Flight | Span | null): void {
    this._set({ chosen });
    if (chosen && isFlight(chosen)) {
      this._reveal(chosen);
    }
    this._schedule();
  }

  /** The message at a point of the page, otherwise the span of the row. */
  hit(x: number, y: number): Flight | Span | null {
    const geometry = this._geometry;
    if (!geometry) {
      return null;
    }
    const { recording } = this;
    const { ratio } = geometry;
    let best: Flight | null = null;
    let least = REACH * ratio;
    const time = (pixel: number): number =>
      this.window.start + (pixel / this._width) * this.window.length;
    const near = (flight: Flight): void => {
      const arrow = arrowOf(flight, recording, geometry);
      const away = arrow ? distance(x * ratio, y * ratio, arrow) : Infinity;
      if (away < least) {
        least = away;
        best = flight;
      }
    };
    for (const flights of [recording.complete, recording.open]) {
      flights.visit(time(x - 2 * REACH), time(x + 2 * REACH), near);
    }
    return best ?? this._spanAt(time(x), Math.floor((y * ratio) / geometry.rowHeight));
  }

  /** The next message in time, or the previous one; of a process if `uid` is given. */
  step(by: 1 | -1, uid: string | null = null): void {
    const flights = this.recording.complete;
    const { chosen } = this.state;
    const from = chosen && isFlight(chosen) ? chosen : null;
    const { start, length } = this.window;
    let index = from
      ? flights.indexOf(from) + by
      : Math.max(0, flights.after(start + length / 2) - 1);
    for (let next = flights.at(index); next; next = flights.at((index += by))) {
      if (uid === null || next.src === uid || next.dest === uid) {
        this.choose(next);
        return;
      }
    }
  }

  /** The nearest message of the process one row above or below the chosen message's. */
  stepRow(by: 1 | -1): void {
    const { chosen } = this.state;
    const { rows, rowOf } = this.recording;
    if (!chosen || !isFlight(chosen)) {
      return;
    }
    for (let row = (rowOf.get(chosen.src) ?? 0) + by; rows[row]; row += by) {
      const before = this.state.chosen;
      this.step(1, rows[row]!.uid);
      if (this.state.chosen === before) {
        this.step(-1, rows[row]!.uid);
      }
      if (this.state.chosen !== before) {
        return;
      }
    }
  }

  private _take(source: Source): void {
    const { recording } = this;
    const { begin } = recording;
    const changes = recording.update(source);
    if (!changes.any) {
      return;
    }
    this._layers.add(changes, recording);
    this._refresh(source);
    if (changes.fresh || this._window === null) {
      this._chosenLength = null;
      this._window = null;
      this._set({ follows: this._live, chosen: null });
    } else if (begin !== recording.begin && this.state.follows) {
      // Another run: while it is short it fills the width.
      this._chosenLength = null;
    }
  }

  /** Update the chosen item, of which more may be known. */
  private _refresh(source: Source): void {
    const { chosen } = this.state;
    if (chosen && isFlight(chosen)) {
      this._set({ chosen: source.flights.get(chosen.id) ?? chosen });
    } else if (chosen) {
      const spans = this.recording.spansOf(chosen.uid);
      const now = spans.at(spans.after(chosen.begin) - 1);
      this._set({ chosen: now?.begin === chosen.begin ? now : chosen });
    }
  }

  private _spanAt(time: number, row: number): Span | null {
    const process = this.recording.rows[row];
    const spans = process && this.recording.spansOf(process.uid);
    const span = spans?.at(spans.after(time) - 1);
    return span && (span.end ?? this.recording.end) >= time ? span : null;
  }

  /** Bring a message into the window. */
  private _reveal(flight: Flight): void {
    const { window } = this;
    const begin = flightBegin(flight);
    if (begin < window.start || begin > window.start + window.length) {
      this.show({ start: begin - window.length / 2, length: window.length });
    }
  }

  private _show(window: Window, follows: boolean): void {
    this._window = window;
    this._set({ follows: follows && this._live });
    this._schedule();
  }

  private _set(changes: Partial<ChartState>): void {
    const keys = Object.keys(changes) as (keyof ChartState)[];
    if (keys.some(key => changes[key] !== this.state[key])) {
      this.state = { ...this.state, ...changes };
      this._changed(this.state);
    }
  }

  private _schedule(): void {
    if (this._request === 0) {
      this._request = requestAnimationFrame(() => {
        this._request = 0;
        this._draw();
      });
    }
  }

  private _measure(): void {
    const ratio = devicePixelRatio || 1;
    const size = (canvas: HTMLCanvasElement, height: number): void => {
      const width = Math.round(this._width * ratio);
      const tall = Math.round(height * ratio);
      // A hidden canvas, as all are for a moment while the theme changes, has no height.
      if (tall > 0 && (canvas.width !== width || canvas.height !== tall)) {
        canvas.width = width;
        canvas.height = tall;
      }
    };
    const { rows, axis, overview } = this._canvases;
    size(rows, this._rowsHeight);
    size(axis, axis.clientHeight);
    size(overview, overview.clientHeight);
  }

  private _draw(): void {
    if (this._source && !this.state.paused) {
      this._take(this._source);
    }
    const rows = sheetOf(this._canvases.rows, true);
    const axis = sheetOf(this._canvases.axis, false);
    const overview = sheetOf(this._canvases.overview, true);
    if (!rows || !axis || !overview || rows.width < 1 || rows.height < 1) {
      return;
    }
    this._theme ??= readTheme(this._canvases.rows, rows.ratio);
    const theme = this._theme;
    const { recording, window } = this;
    this._window = window;
    const lines = this.state.follows && !this.state.paused ? MOVING : STILL;
    const geometry = this._layers.draw(rows.context, recording, theme, window, rows, lines);
    paintAxis(axis, rows, window, recording.begin, theme);
    this._geometry = geometry;
    const open: Flight[] = [];
    const end = window.start + window.length;
    recording.open.visit(window.start, end, flight => void open.push(flight));
    paintOpen(rows.context, open.slice(-OPEN), recording, theme, geometry);
    const { chosen } = this.state;
    if (chosen && isFlight(chosen)) {
      paintChosen(rows.context, chosen, recording, theme, geometry);
    }
    this._drawOverview(overview, theme);
    this._set({ every: this._layers.every });
  }

  /** While the view follows, the overview changes little: its painting may wait for a moment. */
  private _drawOverview(sheet: Sheet, theme: Theme): void {
    const wait = this._overviewAt + OVERVIEW - performance.now();
    if (this.state.follows && this._live && wait > 0) {
      this._timer ||= window.setTimeout(() => {
        this._timer = 0;
        this._schedule();
      }, wait);
      return;
    }
    this._overviewAt = performance.now();
    paintOverview(sheet, this.recording, this.domain, this.window, theme);
  }

  private readonly _canvases: Canvases;
  private readonly _changed: (state: ChartState) => void;
  private readonly _stopWatching: () => void;
  private readonly _layers = new Layers();
  private _source: Source | null = null;
  private _live = true;
  private _window: Window | null = null;
  /** The length that the user has zoomed to; null while it is chosen for the run. */
  private _chosenLength: number | null = null;
  private _width = 0;
  private _rowsHeight = 0;
  private _theme: Theme | null = null;
  private _geometry: Geometry | null = null;
  private _request = 0;
  private _overviewAt = -Infinity;
  private _timer = 0;
}

function sheetOf(canvas: HTMLCanvasElement, opaque: boolean): Sheet | null {
  const context = canvas.getContext('2d', { alpha: !opaque });
  const { width, height, clientWidth } = canvas;
  return context && { context, width, height, ratio: width / (clientWidth || width || 1) };
}
