import type { Usage } from './types';

/** Seconds of the past that are shown. */
export const PAST = 30;

/** What a process has used at one time; null where that is not known. */
export interface Sample {
  readonly time: number;
  /** Messages a second, sent and received. */
  readonly messages: number;
  /** Bytes. */
  readonly memory: number | null;
  /** The most bytes that it may use. */
  readonly limit: number | null;
  /** Percent of a processor. */
  readonly processor: number | null;
}

/** What the processes have used in the last seconds. */
export class UsageHistory {
  /** Add the server's news; `messages` gives a process's messages a second. */
  add({ time, processes }: Usage, messages: (uid: string) => number): void {
    const before = this._samples;
    this._samples = new Map();
    for (const { uid, memory, limit, processor } of processes) {
      const past = (before.get(uid) ?? []).filter(sample => sample.time > time - PAST);
      const sample = { time, memory, limit, processor, messages: messages(uid) };
      this._samples.set(uid, [...past, sample]);
    }
  }

  /** The samples of a process, the oldest first; the same array until there is a new one. */
  of(uid: string): readonly Sample[] {
    return this._samples.get(uid) ?? NONE;
  }

  clear(): void {
    this._samples = new Map();
  }

  private _samples = new Map<string, readonly Sample[]>();
}

const NONE: readonly Sample[] = [];
