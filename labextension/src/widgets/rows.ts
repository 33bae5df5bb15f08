import type { Store } from '../model/store';
import { durationText, rateText } from '../model/text';
import type { Name, Place, State } from '../model/types';

/** What the table shows of a process: texts, so that a row is drawn only when one has changed. */
export interface RowView {
  readonly uid: string;
  readonly name: Name;
  /** The rank of a process that has another name, or what it is. */
  readonly more: string;
  readonly state: State;
  readonly stuck: boolean;
  readonly duration: string;
  readonly waits: string;
  readonly where: Place | null;
  readonly depth: number;
  readonly sent: string;
  readonly received: string;
}

export function rowViews(store: Store): RowView[] {
  const { snapshot, diagnosis, rates } = store;
  const now = store.now();
  const stuck = new Set(
    diagnosis?.verdict === 'deadlock'
      ? diagnosis.processes.filter(one => one.verdict === 'stuck').map(one => one.uid)
      : []
  );
  return (snapshot?.processes ?? []).map(one => {
    const rate = rates.of(one.uid, now);
    const ranked = one.rank !== null && String(one.rank) !== String(one.name);
    return {
      uid: one.uid,
      name: one.name,
      more: ranked ? `rank ${one.rank}` : one.kind === 'engine' ? '' : one.kind,
      state: one.state,
      stuck: stuck.has(one.uid) && one.state.startsWith('blocked'),
      duration: durationText(now - one.since),
      waits: one.waits ?? '',
      where: one.where,
      depth: one.depth,
      sent: rateText(rate.sent),
      received: rateText(rate.received)
    };
  });
}

export function sameRow(a: RowView, b: RowView): boolean {
  return (
    a.uid === b.uid &&
    a.name === b.name &&
    a.more === b.more &&
    a.state === b.state &&
    a.stuck === b.stuck &&
    a.duration === b.duration &&
    a.waits === b.waits &&
    a.depth === b.depth &&
    a.sent === b.sent &&
    a.received === b.received &&
    samePlace(a.where, b.where)
  );
}

function samePlace(a: Place | null, b: Place | null): boolean {
  return (
    a === b ||
    (a !== null &&
      b !== null &&
      a.file === b.file &&
      a.line === b.line &&
      a.cell === b.cell &&
      a.cell_id === b.cell_id &&
      a.function === b.function)
  );
}
