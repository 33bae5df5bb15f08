import { downloadIcon } from '@jupyterlab/ui-components';
import { KINDS, ViewKind } from '../main/kinds';
import { pinIcon, sfmIcon } from '../widgets/icons';
import { Args, Context, worldOf } from './context';
import { ID } from './ids';

/** The widgets that commands open, so that keys, menus and the palette can open them, too. */
export interface Shows {
  panel(): void;
  view(kind: ViewKind): void;
}

function kindOf(args: Args): ViewKind {
  const kind = args['kind'] as ViewKind;
  return kind in KINDS ? kind : 'processes';
}

/** Commands that open the panel and the views, pin a world, and download its trace. */
export function addViewCommands(context: Context, shows: Shows): void {
  const { app, client, store } = context;
  const { commands } = app;

  commands.addCommand(ID.showPanel, {
    label: 'Show the SFM Panel',
    caption: 'Worlds, processes, messages, and why a program hangs',
    icon: sfmIcon,
    execute: () => shows.panel()
  });
  commands.addCommand(ID.open, {
    label: args => `Open ${KINDS[kindOf(args)].title}`,
    caption: args => `${KINDS[kindOf(args)].caption}, in the main area`,
    icon: args => KINDS[kindOf(args)].icon,
    execute: args => shows.view(kindOf(args))
  });

  commands.addCommand(ID.pin, {
    label: 'Pin the World',
    caption: 'Keep showing this world, whichever notebook has the focus',
    icon: pinIcon,
    isToggleable: true,
    isToggled: args => worldOf(context, args)?.world === store.pinned && store.pinned !== null,
    isEnabled: args => worldOf(context, args) !== null,
    execute: args => {
      const world = worldOf(context, args)?.world ?? null;
      store.pinned = world === store.pinned ? null : world;
    }
  });

  commands.addCommand(ID.trace, {
    label: 'Download the Trace',
    caption: "The world's timeline for Perfetto or chrome://tracing",
    icon: downloadIcon,
    isEnabled: args => worldOf(context, args) !== null,
    execute: args => {
      const world = worldOf(context, args);
      if (world) {
        const link = document.createElement('a');
        link.href = client.traceUrl(world.world);
        link.download = `${world.title}.trace.json`;
        link.click();
      }
    }
  });
}
