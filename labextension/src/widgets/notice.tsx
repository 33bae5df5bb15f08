import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Store } from '../model/store';
import { CommandButton } from './button';

const NONE = { world: null };

/** The reason why nothing is shown, or nothing new: no connection, no world, an error. */
export function Notice(props: { store: Store; commands: CommandRegistry }): JSX.Element | null {
  const { store, commands } = props;
  if (store.lost) {
    return (
      <p className="sfm-Notice sfm-mod-warning" role="status">
        The server does not answer; trying again. The panel shows the last known state.
        {!store.loaded && ' `jupyter server extension list` shows whether sfm_kernel is enabled.'}
      </p>
    );
  }
  if (store.error) {
    return (
      <p className="sfm-Notice sfm-mod-warning" role="status">
        {store.error}
      </p>
    );
  }
  if (store.loaded && !store.world && store.worlds.length > 0) {
    return (
      <p className="sfm-Notice">
        The current notebook is in no world. Pin one of the list, or connect the notebook:{' '}
        <CommandButton commands={commands} id={ID.insert} args={NONE} text="Insert code" />
      </p>
    );
  }
  return null;
}
