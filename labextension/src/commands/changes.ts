import type { CommandRegistry } from '@lumino/commands';
import type { Store } from '../model/store';
import { ID } from './ids';

/** Have buttons and menus update when a command may have become enabled or disabled. */
export function notifyChanges(store: Store, commands: CommandRegistry): void {
  let known = '';
  store.changed.connect(() => {
    const key = keyOf(store);
    if (key !== known) {
      known = key;
      Object.values(ID).forEach(id => commands.notifyCommandChanged(id));
    }
  });
}

/** Everything that `isEnabled` and `isToggled` of the commands depend on. */
function keyOf(store: Store): string {
  const { connected, diagnosis, kernel, pinned, selected, snapshot, world, worlds } = store;
  const listed = worlds.map(item => [item.world, item.owner, item.kernels, item.engines]);
  const process = selected && [selected.uid, selected.alive, selected.where === null];
  const judged = [diagnosis?.verdict, diagnosis?.stuck, snapshot !== null];
  return JSON.stringify([connected, kernel, pinned, world?.world, listed, process, judged]);
}
