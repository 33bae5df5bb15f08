import * as React from 'react';
import { WaitGraph } from '../graph/view';
import type { Store } from '../model/store';
import type { Diagnosis, Name, CodeLocation, Snapshot } from '../model/types';

/** Milliseconds for which a graph or a sentence is shown: what changes faster cannot be read. */
const CALM = 1000;

interface WaitsProps {
  readonly store: Store;
  readonly onSelect: (name: Name) => void;
  readonly onJump: (location: CodeLocation) => void;
}

/** The wait-for graph of the world that is shown. */
export function Waits({ store, onSelect, onJump }: WaitsProps): JSX.Element | null {
  const { diagnosis, snapshot } = useCalm(store);
  return (
    diagnosis && (
      <Graph diagnosis={diagnosis} snapshot={snapshot} onSelect={onSelect} onJump={onJump} />
    )
  );
}

const Graph = React.memo(WaitGraph);

interface Seen {
  readonly diagnosis: Diagnosis | null;
  readonly snapshot: Snapshot | null;
}

/** The store's state, at most CALM old; a new verdict is shown at once. */
export function useCalm({ diagnosis, snapshot }: Seen): Seen {
  const [seen] = React.useState(() => ({ since: -Infinity, now: { diagnosis, snapshot } }));
  const time = performance.now();
  if (time - seen.since >= CALM || diagnosis?.verdict !== seen.now.diagnosis?.verdict) {
    seen.since = time;
    seen.now = { diagnosis, snapshot };
  }
  return seen.now;
}
