import type { IStateDB } from '@jupyterlab/statedb';
import type { Store } from '../model/store';
import type { Panel } from './panel';

const KEY = '@sfm/labextension:panel';

interface Saved {
  readonly closed?: string[];
  readonly others?: boolean;
  readonly pinned?: string | null;
}

/** Remember the closed sections and worlds, and the pinned world, over a reload. */
export async function remember(state: IStateDB, store: Store, panel: Panel): Promise<void> {
  const saved = (await state.fetch(KEY)) as Saved | undefined;
  panel.closed = saved?.closed ?? [];
  panel.others = saved?.others ?? false;
  store.pinned = saved?.pinned ?? null;
  let text = '';
  const save = (): void => {
    const now = { closed: [...panel.closed], others: panel.others, pinned: store.pinned };
    if (JSON.stringify(now) !== text) {
      text = JSON.stringify(now);
      void state.save(KEY, now);
    }
  };
  panel.onClosed = save;
  store.changed.connect(save);
}
