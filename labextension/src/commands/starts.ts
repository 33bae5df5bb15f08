import type { ILauncher } from '@jupyterlab/launcher';
import { sfmIcon } from '../widgets/icons';
import { Args, attempt, Context } from './context';
import { CATEGORY, ID } from './ids';

/** The argument of a command that a card of the launcher shows. */
const CARD = { card: true };

/** Commands with which a class begins, which have cards in JupyterLab's launcher. */
export function addStartCommands({ app, client }: Context, launcher: ILauncher | null): void {
  const { commands } = app;
  /** The palette and the launcher name commands in different ways. */
  const label = (palette: string, card: string) => (args: Args) => (args['card'] ? card : palette);

  commands.addCommand(ID.firstSteps, {
    label: label('Open the First Steps', 'SFM: first steps'),
    caption: 'Open the first of the notebooks that explain message passing, to work in it',
    icon: sfmIcon,
    execute: () =>
      attempt('The notebooks were not copied', async () => {
        const { path } = await client.notebooks();
        await commands.execute('docmanager:open', { path });
      })
  });
  commands.addCommand(ID.classroom, {
    label: label('Open the Classroom', 'Classroom'),
    caption: 'Show the worlds that students share with you, on a separate page',
    icon: sfmIcon,
    execute: () => void window.open(client.classroomUrl, '_blank', 'noopener')
  });
  [ID.firstSteps, ID.classroom].forEach((command, rank) =>
    launcher?.add({ command, args: CARD, category: CATEGORY, rank })
  );
}
