import type { CodeLocation, Now, Process, State } from './types';

/** What a process does: its call, or its activity outside of calls. */
export interface Activity {
  readonly state: State;
  /** The activity, in a word or two. */
  readonly label: string;
  readonly since: number;
  readonly waits: string;
  readonly where: CodeLocation | null;
}

/** The activity of a process that is in no call, and what it waits for. */
const OUTSIDE: Record<Now['does'], readonly [label: string, waits: string]> = {
  computes: ['running', ''],
  input: ['waiting', 'input'],
  lock: ['waiting', 'a lock'],
  sleep: ['sleeping', ''],
  child: ['waiting', 'a process that it has started'],
  system: ['waiting', 'a file, a pipe or the network'],
  native: ['running', 'a C function that holds the GIL'],
  stopped: ['stopped', '']
};

export function activityOf(process: Process): Activity {
  const { state, since, unreachable, unseen, waits, where, now, polls } = process;
  if (unreachable !== null) {
    const why = process.unreachable_why ?? waits ?? '';
    return { state, since: unreachable, where, waits: why, label: 'unreachable' };
  }
  if (unseen !== null) {
    const was = state === 'running' ? '' : `was ${state}${waits ? `: ${waits}` : ''}`;
    return { state, since: unseen, where, waits: was, label: 'unseen' };
  }
  if (polls && now?.does !== 'stopped') {
    const { since, wait } = polls;
    return { state, since, where: polls.where, waits: wait.text, label: 'polling' };
  }
  if (now) {
    const [label, outside] = OUTSIDE[now.does];
    return { state, since, where: now.where ?? where, waits: outside, label };
  }
  return { state, since, where, waits: waits ?? '', label: state };
}

/** Seconds that an activity lasts before it is shown: nobody can read what is shorter. */
const LASTS = 1;

interface Shown {
  readonly activity: Activity;
  /** When the process was last seen in it, or the line was last read. */
  readonly seen: number;
  /** Whether it stands for activities that are all too short. */
  readonly changes: boolean;
}

/**
 * The activities that are shown: each once it has lasted a second; until then, the one before. A
 * process that has changed its state for a second, and never stayed in one, runs: it goes on.
 */
export class Activities {
  /** The activity to show at this time, instead of the process's present one. */
  of({ uid, alive }: Process, now: Activity, time: number): Activity {
    const known = this._shown.get(uid);
    const shown =
      !known || !alive || lasts(now, time) || isSame(now, known.activity)
        ? { activity: now, seen: time, changes: false }
        : time - known.seen < LASTS
          ? known
          : changing(known, now, time);
    this._shown.set(uid, shown);
    return shown.activity;
  }

  clear(): void {
    this._shown.clear();
  }

  private _shown = new Map<string, Shown>();
}

function lasts({ label, since }: Activity, time: number): boolean {
  return time - since >= LASTS || label === 'stopped';
}

function isSame(a: Activity, b: Activity): boolean {
  return a.since === b.since && a.state === b.state && a.label === b.label;
}

function changing({ activity, seen, changes }: Shown, { where }: Activity, time: number): Shown {
  const since = changes ? activity.since : seen;
  return {
    activity: { state: 'running', label: 'running', waits: '', where, since },
    seen: time,
    changes: true
  };
}
