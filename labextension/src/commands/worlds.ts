import { Dialog, InputDialog, Notification, showDialog } from '@jupyterlab/apputils';
import {
  addIcon,
  closeIcon,
  numberingIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { Engines } from '../model/client';
import { plural } from '../model/text';
import type { World } from '../model/types';
import { insertIcon } from '../widgets/icons';
import { insertCode } from '../notebook/code';
import { connectCode } from '../notebook/lines';
import { runInKernel } from '../notebook/run';
import { Args, attempt, Context, manageable, worldOf } from './context';
import { ID } from './ids';

/** Commands that start, stop, restart, rescale and interrupt worlds, and insert code to connect. */
export function addWorldCommands(context: Context): void {
  const { app, client, notebooks, store } = context;
  const { commands } = app;

  commands.addCommand(ID.start, {
    label: 'Start Engines…',
    caption: 'Start engines that belong to the server; any notebook can connect to them',
    icon: addIcon,
    isEnabled: () => store.connected,
    execute: async () => {
      const engines = await askEngines();
      if (engines) {
        await attempt('The engines were not started', async () => {
          store.pinned = await starting(progress => client.start(engines, progress));
        });
      }
    }
  });

  commands.addCommand(ID.insert, {
    label: 'Insert Code to Connect',
    caption: 'Put the code that connects a notebook to the world into the current notebook',
    icon: insertIcon,
    isEnabled: () => notebooks.current !== null,
    execute: async args => {
      const panel = notebooks.current;
      if (panel) {
        app.shell.activateById(panel.id);
        const world = args['world'] === null ? null : worldOf(context, args);
        await insertCode(panel, connectCode(world));
      }
    }
  });

  /** Run the action on the world; `failed` is the title of the message of a failure. */
  const act =
    (failed: string, action: (world: World) => Promise<void>) =>
    async (args: Args): Promise<void> => {
      const world = worldOf(context, args);
      if (world) {
        await attempt(failed, () => action(world));
      }
    };
  /** Act through the server if it owns the engines, otherwise in the notebook that started them. */
  const by = (world: World, server: () => Promise<void>, line: string): Promise<void> =>
    world.owner === 'server' ? server() : magic(context, world, line);

  commands.addCommand(ID.interrupt, {
    label: 'Interrupt All Engines',
    caption: 'End what all engines of the world run, with KeyboardInterrupt',
    icon: stopIcon,
    isEnabled: args => (worldOf(context, args)?.engines ?? 0) > 0,
    execute: act('Not all engines were interrupted', ({ world }) => client.interrupt(world, null))
  });

  commands.addCommand(ID.restart, {
    label: 'Restart All Engines…',
    caption: 'Start all engines of the world again; they keep their names and ranks',
    icon: refreshIcon,
    isEnabled: args => manageable(context, worldOf(context, args)),
    execute: act('The engines were not restarted', async world => {
      if (await confirm('Restart', world)) {
        await by(world, () => client.restart(world.world, null), '%sfm restart');
      }
    })
  });

  commands.addCommand(ID.rescale, {
    label: 'Change the Number of Engines…',
    caption: 'Start more engines in the world, or end those with the highest ranks',
    icon: numberingIcon,
    isEnabled: args => manageable(context, worldOf(context, args)),
    execute: act('The number of engines was not changed', async world => {
      const engines = await askNumber(world);
      if (engines) {
        await by(world, () => client.rescale(world.world, engines), `%sfm scale ${engines}`);
      }
    })
  });

  commands.addCommand(ID.stop, {
    label: 'Stop All Engines…',
    caption: 'End all engines of the world',
    icon: closeIcon,
    isEnabled: args => manageable(context, worldOf(context, args)),
    execute: act('The engines were not stopped', async world => {
      if (await confirm('Stop', world)) {
        await by(world, () => client.stop(world.world, null), '%sfm stop');
      }
    })
  });
}

/** Run a line of %sfm in the notebook that started the engines; it has the world's title. */
export async function magic({ notebooks }: Context, world: World, line: string): Promise<void> {
  const panels = notebooks.of(world.kernels);
  const panel = panels.find(({ title }) => title.label === world.title) ?? panels[0];
  if (!panel) {
    throw new Error(`open ${world.title}, the notebook that started these engines, and try again`);
  }
  await runInKernel(panel, line);
}

/** Start engines while a notification shows how many have come; returns their world. */
async function starting(
  start: (progress: (came: number, of: number) => void) => Promise<{ world: string }>
): Promise<string> {
  const type = 'in-progress';
  const id = Notification.emit('Starting engines', type, { autoClose: false });
  try {
    const { world } = await start((came, of) => {
      const message = `Starting engines: ${came} of ${of}`;
      Notification.update({ id, message, type, progress: came / of, autoClose: false });
    });
    return world;
  } finally {
    Notification.dismiss(id);
  }
}

async function askEngines(): Promise<Engines | null> {
  const { value, button } = await InputDialog.getText({
    title: 'Start Engines',
    label: 'Number or names: 4, or A B C',
    text: '4',
    okLabel: 'Start',
    pattern: '\\s*(\\d+|[A-Za-z_]\\w*(\\s+[A-Za-z_]\\w*)*)\\s*',
    required: true
  });
  const text = button.accept ? value?.trim() : null;
  if (!text) {
    return null;
  }
  return /^\d+$/.test(text) ? { engines: Number(text) } : { names: text.split(/\s+/) };
}

async function askNumber(world: World): Promise<number | null> {
  const { value, button } = await InputDialog.getNumber({
    title: `Engines of ${world.title}`,
    label: 'New number of engines',
    value: world.engines,
    okLabel: 'Change'
  });
  return button.accept && value !== null && value >= 1 ? Math.round(value) : null;
}

async function confirm(verb: string, world: World): Promise<boolean> {
  const { button } = await showDialog({
    title: `${verb} ${plural(world.engines, 'engine')} of ${world.title}?`,
    body: 'What they compute, and the variables in their memory, are lost.',
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: verb })]
  });
  return button.accept;
}
