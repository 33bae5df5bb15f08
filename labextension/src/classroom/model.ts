import type { Counts } from '../model/text';
import type { Diagnosis, Snapshot, Verdict } from '../model/types';

/** The states of a shared world, in the order of the page; in the last two nothing is to be done. */
export const STATES = ['stuck', 'waiting', 'unseen', 'running', 'idle', 'left'] as const;

/** A deadlock that was proven before. */
interface Deadlock {
  readonly time: number;
  readonly text: string;
}

/** A student's world, for the list. */
export interface SharedWorld extends Counts {
  readonly id: string;
  /** Grows with each report. */
  readonly version: number;
  readonly name: string;
  readonly state: (typeof STATES)[number];
  readonly verdict: Verdict;
  readonly since: number;
  readonly title: string;
  /** The first sentence of the diagnosis. */
  readonly first: string;
  readonly hung: Deadlock | null;
  /** When the student has raised a hand; null while it is down. */
  readonly hand: number | null;
  readonly queued: number;
  readonly sent: number;
}

/** The state of an exercise, and the number of tries. */
interface Result {
  readonly state: 'passed' | 'tried' | 'hangs';
  readonly tries: number;
}

/** Who has solved what; `of` has the exercises that the student has tried. */
export interface Progress {
  readonly exercises: readonly string[];
  readonly students: ReadonlyArray<{
    readonly name: string;
    readonly of: Readonly<Record<string, Result>>;
  }>;
}

/** The server's answer about all worlds, at its time `now`. */
export interface Listing {
  readonly now: number;
  readonly worlds: readonly SharedWorld[];
  readonly progress: Progress;
}

/** All that a student shares: the lines of code are numbers and texts; `at` has those of processes. */
export interface Report extends SharedWorld {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
  readonly told: readonly Deadlock[];
  readonly code: ReadonlyArray<{
    readonly title: string;
    readonly lines: ReadonlyArray<readonly [number, string]>;
    readonly at: readonly number[];
  }>;
}

/** A time as on a watch, for what a teacher follows by the second: 2:10. */
export function watchText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
