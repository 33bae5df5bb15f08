import { activityOf } from '../model/activity';
import type { Store } from '../model/store';
import { durationText, rateText, same, siteTexts } from '../model/text';
import type { Name, CodeLocation, State } from '../model/types';
import type { Sample } from '../model/usage';

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
  /** What it has used in the last seconds, if the server is asked for that. */
  readonly samples: readonly Sample[];
}

/** The parts of a store that the rows show. */
export type Observed = Pick<
  Store,
  'snapshot' | 'diagnosis' | 'rates' | 'activities' | 'usage' | 'now'
>;

export function rowViews(observed: Observed): RowView[] {
  const { snapshot, diagnosis, rates, activities, usage } = observed;
  const now = observed.now();
  const stuck = new Set(
    diagnosis?.verdict === 'deadlock'
      ? diagnosis.processes.filter(({ verdict }) => verdict === 'stuck').map(({ uid }) => uid)
      : []
  );
  const processes = snapshot?.processes ?? [];
  const sites = siteTexts(processes);
  return processes.map(process => {
    const rate = rates.of(process.uid, now);
    const does = activityOf(process);
    const isStuck = stuck.has(process.uid) && process.state.startsWith('blocked');
    const { state, since, waits, where, label } = isStuck ? does : activities.of(process, does, now);
    const ranked = process.rank !== null && String(process.rank) !== String(process.name);
    return {
      uid: process.uid,
      name: process.name,
      more: ranked ? `rank ${process.rank}` : process.kind === 'engine' ? '' : process.kind,
      site: sites.get(process.uid) ?? '',
      state,
      stuck: isStuck,
      label,
      duration: durationText(now - since),
      waits,
      where,
      depth: process.depth,
      sent: rateText(rate.sent),
      received: rateText(rate.received),
      samples: usage.of(process.uid)
    };
  });
}

export function sameRow(a: RowView, b: RowView): boolean {
  const keys = Object.keys(a) as (keyof RowView)[];
  return keys.every(key => a[key] === b[key] || (key === 'where' && same(a.where, b.where)));
}
