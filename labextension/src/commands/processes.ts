import { Clipboard, Notification } from '@jupyterlab/apputils';
import {
  closeIcon,
  copyIcon,
  jumpForwardIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import { diagnosisText } from '../model/text';
import type { CodeLocation, Process, World } from '../model/types';
import { jumpTo } from '../notebook/jump';
import { restartLine } from '../notebook/lines';
import { Args, attempt, Context, manageable, processOf } from './context';
import { ID } from './ids';
import { magic } from './worlds';

/** Commands that interrupt, restart and stop one engine, for the diagnosis, and to jump to a line. */
export function addProcessCommands(context: Context): void {
  const { app, client, notebooks, store } = context;
  const { commands } = app;

  const engine = (args: Args): Process | null => {
    const process = processOf(context, args);
    return process?.kind === 'engine' ? process : null;
  };
  /** Run the action on the engine; `done` names it in the message of a failure. */
  const act =
    (done: string, action: (world: World, process: Process) => Promise<void>) =>
    async (args: Args): Promise<void> => {
      const { world } = store;
      const process = engine(args);
      if (world && process) {
        await attempt(`${process.name} was not ${done}`, () => action(world, process));
      }
    };

  commands.addCommand(ID.interruptProcess, {
    label: 'Interrupt the Selected Engine',
    caption: 'End what this engine runs, with KeyboardInterrupt',
    icon: stopIcon,
    isEnabled: args => engine(args)?.alive ?? false,
    execute: act('interrupted', ({ world }, { uid }) => client.interrupt(world, [uid]))
  });

  commands.addCommand(ID.restartProcess, {
    label: 'Restart the Selected Engine',
    caption: 'Start this engine again; it keeps its name and rank and loses its variables',
    icon: refreshIcon,
    isEnabled: args => engine(args) !== null && manageable(context, store.world),
    execute: act('restarted', (world, process) =>
      world.owner === 'server'
        ? client.restart(world.world, [process.uid])
        : magic(context, world, restartLine(process))
    )
  });

  commands.addCommand(ID.stopProcess, {
    label: 'Stop the Selected Engine',
    caption: 'End this engine; only for engines that belong to the server',
    icon: closeIcon,
    isEnabled: args => (engine(args)?.alive ?? false) && store.world?.owner === 'server',
    execute: act('stopped', ({ world }, { uid }) => client.stop(world, [uid]))
  });

  commands.addCommand(ID.interruptStuck, {
    label: 'Interrupt the Engines of the Deadlock',
    caption: 'End the calls that wait for each other, with KeyboardInterrupt',
    icon: stopIcon,
    isEnabled: () => stuckEngines(context).length > 0,
    execute: async () => {
      const { world } = store;
      if (world) {
        await attempt('Not all engines were interrupted', () =>
          client.interrupt(world.world, stuckEngines(context))
        );
      }
    }
  });

  commands.addCommand(ID.copyDiagnosis, {
    label: 'Copy the Diagnosis',
    caption: 'Copy why the world does not go on, as plain text',
    icon: copyIcon,
    isEnabled: () => store.diagnosis !== null,
    execute: () => {
      const { diagnosis, world } = store;
      if (diagnosis && world) {
        Clipboard.copyToSystem(diagnosisText(diagnosis, world.title));
        Notification.success('The diagnosis is in the clipboard', { autoClose: 2000 });
      }
    }
  });

  commands.addCommand(ID.jump, {
    label: 'Jump to Where the Selected Process Is',
    caption: 'Show the cell and the line',
    icon: jumpForwardIcon,
    isEnabled: args => locationOf(context, args) !== null,
    execute: async args => {
      const location = locationOf(context, args);
      if (location) {
        const ofWorld = notebooks.of(store.world?.kernels ?? []);
        const known = { ofWorld, open: notebooks.all() };
        await attempt('Cannot show this line', () =>
          jumpTo(location, known, commands, id => app.shell.activateById(id))
        );
      }
    }
  });
}

/** The engines among the stuck processes. */
function stuckEngines({ store }: Context): string[] {
  const { diagnosis, snapshot } = store;
  if (diagnosis?.verdict !== 'deadlock') {
    return [];
  }
  const engines = snapshot?.processes.filter(({ kind }) => kind === 'engine').map(({ uid }) => uid);
  return diagnosis.processes
    .filter(({ uid, verdict }) => verdict === 'stuck' && (engines?.includes(uid) ?? true))
    .map(({ uid }) => uid);
}

function locationOf(context: Context, args: Args): CodeLocation | null {
  const location = args['location'] as CodeLocation | undefined;
  return location ?? processOf(context, args)?.where ?? null;
}
