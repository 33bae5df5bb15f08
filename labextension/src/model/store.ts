import { IDisposable, DisposableDelegate } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Activities } from './activity';
import { History } from './history';
import { Rates, total } from './rates';
import type { Stream } from './stream';
import type {
  Diagnosis,
  FinishedRun,
  Name,
  Part,
  Process,
  ServerText,
  Snapshot,
  World
} from './types';
import { UsageHistory } from './usage';

/** The user's settings. */
export interface Settings {
  /** The most updates a second. */
  readonly rate: number;
  /** Seconds that the timeline keeps. */
  readonly history: number;
  readonly deadlock: 'announce' | 'open' | 'nothing';
}

export const DEFAULTS: Settings = { rate: 10, history: 120, deadlock: 'announce' };

/** Updates a second while nothing is shown, and only a deadlock matters. */
const UNSEEN_RATE = 1;

/** Milliseconds that a process is blocked before a diagnosis is asked for: most waits are shorter. */
const PATIENCE = 2000;

/** Milliseconds between two updates of durations and rates while nothing else changes. */
const TICK = 1000;

/**
 * The state of the worlds, and of the one that is shown. The store asks the stream for the parts
 * that visible widgets need, and for nothing while none is visible or the page is hidden.
 */
export class Store implements IDisposable {
  constructor(stream: Stream) {
    this._stream = stream;
    stream.received.connect(this._take, this);
    stream.changed.connect(this._touch, this);
    document.addEventListener('visibilitychange', this._ask);
    this._ask();
  }

  worlds: readonly World[] = [];
  /** The list of worlds has come at least once. */
  loaded = false;
  /** The last runs of programs that have ended, the newest first. */
  runs: readonly FinishedRun[] = [];
  snapshot: Snapshot | null = null;
  diagnosis: Diagnosis | null = null;
  readonly history = new History(DEFAULTS.history);
  readonly rates = new Rates();
  readonly activities = new Activities();
  readonly usage = new UsageHistory();
  /** The server's last error message. */
  error: string | null = null;

  /** Widgets must render; emitted at most once a frame, and never while the page is hidden. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** A diagnosis came, or there is no longer one. */
  get judged(): ISignal<this, Diagnosis | null> {
    return this._judged;
  }

  get connected(): boolean {
    return this._stream.connected;
  }

  /** Connecting has failed more than once, so this is no short interruption. */
  get lost(): boolean {
    return !this._stream.connected && this._stream.failures > 1;
  }

  get settings(): Settings {
    return this._settings;
  }
  set settings(settings: Settings) {
    this._settings = settings;
    this.history.limit = settings.history;
    this._ask();
  }

  /** The world that is shown. */
  get world(): World | null {
    return this._find(this._shown);
  }

  /** The world to show whichever notebook has the focus, as soon as it exists; or null. */
  get pinned(): string | null {
    return this._pinned;
  }
  set pinned(world: string | null) {
    this._pinned = world;
    this._follow();
  }

  /** The kernel of the notebook that has the focus; null if no notebook is open. */
  get kernel(): string | null {
    return this._kernel;
  }
  set kernel(kernel: string | null) {
    this._kernel = kernel;
    this._follow();
  }

  /** The process whose queue is shown. */
  get selected(): Process | null {
    return this.snapshot?.processes.find(process => process.uid === this._selected) ?? null;
  }

  select(uid: string | null): void {
    this._selected = uid;
    this._touch();
  }

  /** The process of that name; if several have had the name, the living one. */
  named(name: Name): Process | null {
    const namesakes = this.snapshot?.processes.filter(process => process.name === name) ?? [];
    return namesakes.find(process => process.alive) ?? namesakes.at(-1) ?? null;
  }

  /** The server's clock, in seconds since 1970. */
  now(): number {
    return Date.now() / 1000 + this._ahead;
  }

  /** Whether a visible widget needs this part. */
  shows(part: Part): boolean {
    return [...this._needs].some(need => need.parts.includes(part));
  }

  /** Ask for these parts until the returned object is disposed. */
  need(parts: readonly Part[]): IDisposable {
    const need = { parts };
    this._needs.add(need);
    this._ask();
    return new DisposableDelegate(() => {
      this._needs.delete(need);
      this._ask();
    });
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    document.removeEventListener('visibilitychange', this._ask);
    cancelAnimationFrame(this._frame);
    window.clearInterval(this._ticks);
    window.clearTimeout(this._patience);
    Signal.clearData(this);
  }

  private _take(_: Stream, text: ServerText): void {
    switch (text.type) {
      case 'worlds':
        this.worlds = text.worlds;
        this.loaded = true;
        this._ahead = text.time - Date.now() / 1000;
        this._follow();
        break;
      case 'runs':
        this.runs = text.runs;
        break;
      case 'snapshot':
        if (text.snapshot.world === this._shown) {
          this.snapshot = text.snapshot;
          // A message that came sooner than the list of worlds gives a better clock.
          this._ahead = Math.max(this._ahead, text.snapshot.time - Date.now() / 1000);
          this.rates.add(text.snapshot);
          this.error = null;
        }
        break;
      case 'diagnosis':
        if (text.diagnosis.world === this._shown) {
          this._judge(text.diagnosis);
        }
        break;
      case 'timeline':
        if (text.timeline.world === this._shown) {
          if (!this._hasHistory) {
            this.history.clear(); // the first update has everything
          }
          this.history.add(text.timeline);
          if (!this._hasHistory) {
            this._hasHistory = true;
            this.history.advance(this.now());
          }
        }
        break;
      case 'usage':
        if (text.usage.world === this._shown) {
          this.usage.add(text.usage, uid => total(this.rates.of(uid, this.now())));
        }
        break;
      case 'gone':
        if (text.world === this._shown) {
          this._forget();
        }
        break;
      case 'error':
        this.error = text.text;
        break;
    }
    this._touch();
  }

  /** The pinned world, or the focused notebook's; without a notebook the only world, if any. */
  private _follow(): void {
    const kernel = this._kernel;
    const connected = this.worlds.find(world => kernel && world.kernels.includes(kernel));
    const only = kernel === null && this.worlds.length === 1 ? this.worlds[0] : undefined;
    const shown = (this._find(this._pinned) ?? connected ?? only)?.world ?? null;
    if (shown !== this._shown) {
      this._shown = shown;
      this._forget();
      this._guard(false);
    }
    this._guard((this.world?.blocked ?? 0) > 0);
    this._ask();
    this._touch();
  }

  private _find(name: string | null): World | null {
    return this.worlds.find(({ world }) => world === name) ?? null;
  }

  private _forget(): void {
    this.snapshot = null;
    this.history.clear();
    this.rates.clear();
    this.activities.clear();
    this.usage.clear();
    this._selected = null;
    this.error = null;
    this._judge(null);
  }

  private _judge(diagnosis: Diagnosis | null): void {
    this.diagnosis = diagnosis;
    this._judged.emit(diagnosis);
  }

  private _ask = (): void => {
    const world = this.world;
    const parts = new Set<Part>();
    let rate = this._settings.rate;
    if (world && !document.hidden) {
      this._needs.forEach(need => need.parts.forEach(part => parts.add(part)));
      const unseen = parts.size === 0;
      if (this._settings.deadlock !== 'nothing' && (!unseen || this._guards)) {
        parts.add('diagnosis');
        rate = unseen ? UNSEEN_RATE : rate;
      }
    }
    if (parts.has('timeline') && !this._timeline) {
      this._hasHistory = false;
    }
    this._timeline = parts.has('timeline');
    this._stream.watch({ world: world?.world ?? null, rate, parts: [...parts].sort() });
    window.clearInterval(this._ticks);
    const lasts = parts.has('snapshot') || parts.has('timeline');
    this._ticks = lasts ? window.setInterval(this._tick, TICK) : 0;
  };

  /** A process's state lasts until the next update. */
  private _tick = (): void => {
    if (this._timeline) {
      this.history.advance(this.now());
    }
    this._touch();
  };

  /** Ask for a diagnosis once a process has been blocked for long enough to be in a deadlock. */
  private _guard(blocked: boolean): void {
    if (!blocked) {
      window.clearTimeout(this._patience);
      this._patience = 0;
      this._guards = false;
    } else if (!this._patience) {
      this._patience = window.setTimeout(() => {
        this._guards = true;
        this._ask();
      }, PATIENCE);
    }
  }

  private _touch = (): void => {
    if (!this._frame && !this._disposed) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._changed.emit();
      });
    }
  };

  private _stream: Stream;
  private _settings = DEFAULTS;
  private _needs = new Set<{ readonly parts: readonly Part[] }>();
  private _shown: string | null = null;
  private _pinned: string | null = null;
  private _kernel: string | null = null;
  private _selected: string | null = null;
  private _timeline = false;
  private _hasHistory = false;
  private _ahead = 0;
  private _frame = 0;
  private _ticks = 0;
  private _guards = false;
  private _patience = 0;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
  private _judged = new Signal<this, Diagnosis | null>(this);
}
