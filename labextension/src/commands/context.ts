import type { JupyterFrontEnd } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import type { Client } from '../model/client';
import type { Store } from '../model/store';
import type { Process, World } from '../model/types';
import type { Notebooks } from '../notebook/notebooks';

/** The objects that the commands work on. */
export interface Context {
  readonly app: JupyterFrontEnd;
  readonly store: Store;
  readonly client: Client;
  readonly notebooks: Notebooks;
}

/** The arguments of a command. */
export type Args = { readonly [name: string]: unknown };

/** The world that the arguments name, or the one that is shown. */
export function worldOf({ store }: Context, args: Args): World | null {
  const name = args['world'];
  return name === undefined
    ? store.world
    : (store.worlds.find(({ world }) => world === name) ?? null);
}

/** The process that the arguments name, or the one that is selected. */
export function processOf({ store }: Context, args: Args): Process | null {
  const uid = args['uid'];
  return uid === undefined
    ? store.selected
    : (store.snapshot?.processes.find(process => process.uid === uid) ?? null);
}

/** Whether the engines' owner, the server or an open notebook, can be asked to change them. */
export function manageable({ notebooks }: Context, world: World | null): world is World {
  return (
    world !== null &&
    (world.owner === 'server' ||
      (world.owner === 'notebook' && notebooks.of(world.kernels).length > 0))
  );
}

/** Run the action; show its error to the user under the title. */
export async function attempt(title: string, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (problem) {
    await showErrorMessage(title, problem instanceof Error ? problem.message : String(problem));
  }
}
