import type { IStateDB } from '@jupyterlab/statedb';
import type { Store } from '../model/store';
import type { Panel } from './panel';
import { widen } from './width';

const KEY = '@sfm/labextension:panel';

interface Saved {
  readonly closed?: string[];
  readonly others?: boolean;
  readonly pinned?: string | null;
  /** Whether the panel has been given its width; from then on it is the user's. */
  readonly wide?: boolean;
}

/**
 * Remember the closed sections and worlds, and the pinned world, over a reload; widen the panel when
 * it is shown for the first time.
 */
export async function remember(state: IStateDB, store: Store, panel: Panel): Promise<void> {
  const saved = (await state.fetch(KEY)) as Saved | undefined;
  panel.closed = saved?.closed ?? [];
  panel.others = saved?.others ?? false;
  store.pinned = saved?.pinned ?? null;
  let wide = saved?.wide ?? false;
  let text = '';
  const save = (): void => {
    const { closed, others } = panel;
    const now = { closed: [...closed], others, pinned: store.pinned, wide };
    if (JSON.stringify(now) !== text) {
      text = JSON.stringify(now);
      void state.save(KEY, now);
    }
  };
  panel.onShown = () => {
    if (!wide) {
      wide = true;
      requestAnimationFrame(() => widen(panel)); // when the shell has laid it out
      save();
    }
  };
  if (panel.isVisible) {
    panel.onShown();
  }
  panel.onClosed = save;
  store.changed.connect(save);
}
