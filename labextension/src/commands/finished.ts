import { Dialog, showDialog } from '@jupyterlab/apputils';
import { closeIcon, deleteIcon } from '@jupyterlab/ui-components';
import { plural } from '../model/text';
import type { FinishedRun } from '../model/types';
import { timelineIcon } from '../widgets/icons';
import { Args, attempt, Context } from './context';
import { ID } from './ids';

/** Commands that open and delete the records of finished runs. */
export function addRunCommands(context: Context, show: (run: FinishedRun) => void): void {
  const { app, client, store } = context;
  const { commands } = app;
  /** The run that the arguments name, or the last one. */
  const runOf = ({ run }: Args): FinishedRun | undefined =>
    run === undefined ? store.runs[0] : store.runs.find(({ id }) => id === run);

  commands.addCommand(ID.openRun, {
    label: 'Open the Last Finished Run',
    caption: 'Open its timeline, why it hung, its code and its output',
    icon: timelineIcon,
    isEnabled: args => runOf(args) !== undefined,
    execute: args => {
      const run = runOf(args);
      if (run) {
        show(run);
      }
    }
  });

  commands.addCommand(ID.deleteRuns, {
    label: args => (args['run'] === undefined ? 'Delete All Finished Runs…' : 'Delete'),
    caption: 'Their records are deleted; the programs and their files remain',
    icon: args => (args['run'] === undefined ? deleteIcon : closeIcon),
    isEnabled: args => runOf(args) !== undefined,
    execute: async args => {
      const one = args['run'] === undefined ? null : (runOf(args)?.id ?? '');
      if (one !== null || (await confirm(store.runs.length))) {
        await attempt('The records were not deleted', () => client.deleteRuns(one));
      }
    }
  });
}

async function confirm(count: number): Promise<boolean> {
  const { button } = await showDialog({
    title: `Delete ${plural(count, 'finished run')}?`,
    body: 'Their timelines and outputs are lost; the programs and their files remain.',
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: 'Delete' })]
  });
  return button.accept;
}
