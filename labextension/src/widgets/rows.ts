import type { Store } from '../model/store';
import { durationText, rateText, same, siteTexts } from '../model/text';
import type { Name, Now, CodeLocation, Process, State } from '../model/types';

/** A row of the table, as texts, so that it is drawn only when a text has changed. */
export interface RowView {
  readonly uid: string;
  readonly name: Name;
  /** The rank of a process with another name, or its kind. */
  readonly more: string;
  /** Its site, if not all processes are at one. */
  readonly site: string;
  readonly state: State;
  readonly stuck: boolean;
  /** Its activity, in a word or two. */
  readonly label: string;
  readonly duration: string;
  readonly waits: string;
  readonly where: CodeLocation | null;
  readonly depth: number;
  readonly sent: string;
  readonly received: string;
}

export function rowViews(store: Store): RowView[] {
  const { snapshot, diagnosis, rates } = store;
  const now = store.now();
  const stuck = new Set(
    diagnosis?.verdict === 'deadlock'
      ? diagnosis.processes.filter(({ verdict }) => verdict === 'stuck').map(({ uid }) => uid)
      : []
  );
  const processes = snapshot?.processes ?? [];
  const sites = siteTexts(processes);
  return processes.map(process => {
    const rate = rates.of(process.uid, now);
    const { since, waits, where, label } = activityOf(process);
    const ranked = process.rank !== null && String(process.rank) !== String(process.name);
    return {
      uid: process.uid,
      name: process.name,
      more: ranked ? `rank ${process.rank}` : process.kind === 'engine' ? '' : process.kind,
      site: sites.get(process.uid) ?? '',
      state: process.state,
      stuck: stuck.has(process.uid) && process.state.startsWith('blocked'),
      label,
      duration: durationText(now - since),
      waits,
      where,
      depth: process.depth,
      sent: rateText(rate.sent),
      received: rateText(rate.received)
    };
  });
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

type Activity = Pick<Process, 'since' | 'where'> & Pick<RowView, 'waits' | 'label'>;

/** The activity of a process: its call, or what it does outside of calls. */
function activityOf(process: Process): Activity {
  const { state, since, unreachable, unseen, waits, where, now, polls } = process;
  if (unreachable !== null) {
    const why = process.unreachable_why ?? waits ?? '';
    return { since: unreachable, where, waits: why, label: 'unreachable' };
  }
  if (unseen !== null) {
    const was = state === 'running' ? '' : `was ${state}${waits ? `: ${waits}` : ''}`;
    return { since: unseen, where, waits: was, label: 'unseen' };
  }
  if (polls && now?.does !== 'stopped') {
    return { since: polls.since, where: polls.where, waits: polls.wait.text, label: 'polling' };
  }
  if (now) {
    const [label, outside] = OUTSIDE[now.does];
    return { since, where: now.where ?? where, waits: outside, label };
  }
  return { since, where, waits: waits ?? '', label: state };
}

export function sameRow(a: RowView, b: RowView): boolean {
  const keys = Object.keys(a) as (keyof RowView)[];
  return keys.every(key => a[key] === b[key] || (key === 'where' && same(a.where, b.where)));
}
