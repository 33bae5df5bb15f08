import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Announcer } from './announcer';
import { notifyChanges } from './commands/changes';
import { CATEGORY, ID } from './commands/ids';
import { addRunCommands } from './commands/finished';
import { addProcessCommands } from './commands/processes';
import { addProgramCommands } from './commands/programs';
import { addStartCommands } from './commands/starts';
import { addViewCommands } from './commands/views';
import { addWorldCommands } from './commands/worlds';
import { followDeadlocks } from './deadlock';
import { KINDS, ViewKind } from './main/kinds';
import { recordId, recordWidget } from './main/record';
import { View } from './main/view';
import { Client } from './model/client';
import { DEFAULTS, Settings, Store } from './model/store';
import { Stream } from './model/stream';
import { Notebooks } from './notebook/notebooks';
import { markStuck } from './notebook/stuck';
import { remember } from './panel/memory';
import { Panel } from './panel/panel';
import { heighten } from './panel/width';
import { StatusItem } from './status';
import { ISfm } from './tokens';

/** Pixels of a window; the halves of a narrower one would be too small. */
const ROOM = 900;

/** The worlds, as the server sends them, and the world of the focused notebook. */
const worlds: JupyterFrontEndPlugin<ISfm> = {
  id: '@sfm/labextension:plugin',
  description: 'Follows the worlds of this user.',
  autoStart: true,
  provides: ISfm,
  requires: [INotebookTracker],
  optional: [ISettingRegistry],
  activate: (app, tracker: INotebookTracker, registry: ISettingRegistry | null): ISfm => {
    const { serverSettings } = app.serviceManager;
    const stream = new Stream(serverSettings);
    const store = new Store(stream);
    const notebooks = new Notebooks(tracker);
    const follow = () => {
      store.kernel = notebooks.kernel;
    };
    notebooks.changed.connect(follow);
    follow();
    void new Announcer(store);
    void registry?.load(worlds.id).then(settings => {
      const apply = () => {
        store.settings = { ...DEFAULTS, ...(settings.composite as unknown as Settings) };
      };
      settings.changed.connect(apply);
      apply();
    });
    stream.connect();
    return { app, store, client: new Client(serverSettings), notebooks };
  }
};

/** The side panel, the views of the main area, and the commands. */
const views: JupyterFrontEndPlugin<void> = {
  id: '@sfm/labextension:views',
  description: 'Shows the worlds: a side panel, views, and commands.',
  autoStart: true,
  requires: [ISfm],
  optional: [
    ILabShell,
    ICommandPalette,
    ILayoutRestorer,
    IStateDB,
    IDefaultFileBrowser,
    ILauncher
  ],
  activate: (
    app: JupyterFrontEnd,
    sfm: ISfm,
    lab: ILabShell | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    browser: IDefaultFileBrowser | null,
    launcher: ILauncher | null
  ) => {
    const { commands, shell } = app;
    const { store } = sfm;
    const panel = new Panel(store, commands);
    const tracker = new WidgetTracker<MainAreaWidget<View>>({ namespace: 'sfm' });

    const showPanel = () => shell.activateById(panel.id);
    /** Show it to a user who has not asked for it, and goes on typing. */
    const revealPanel = () => {
      panel.keepFocus();
      showPanel();
    };
    const showView = (kind: ViewKind) => {
      let widget = tracker.find(opened => opened.content.kind === kind);
      if (!widget) {
        widget = new MainAreaWidget({ content: new View(kind, store, commands) });
        widget.id = `sfm-${kind}`;
        if (lab) {
          shell.add(widget, 'main', placeFor(kind, tracker.currentWidget));
        } else {
          shell.add(widget, 'down'); // Jupyter Notebook's main area has a single document
          const view = widget;
          requestAnimationFrame(() => heighten(view)); // when the shell has laid it out
        }
        void tracker.add(widget);
      }
      shell.activateById(widget.id);
    };

    addWorldCommands(sfm);
    addProcessCommands(sfm);
    const shows = { panel: showPanel, view: showView };
    addViewCommands(sfm, shows);
    addProgramCommands(sfm, shows, browser, state);
    addStartCommands(sfm, launcher);
    addRunCommands(sfm, run => {
      const url = sfm.client.recordUrl(run.id);
      if (!lab) {
        window.open(url, '_blank', 'noopener'); // Jupyter Notebook's main area has a single document
        return;
      }
      if (![...shell.widgets('main')].some(({ id }) => id === recordId(run))) {
        shell.add(recordWidget(run, url), 'main');
      }
      shell.activateById(recordId(run));
    });
    for (const command of Object.values(ID)) {
      for (const args of command === ID.open ? Object.keys(KINDS).map(kind => ({ kind })) : [{}]) {
        palette?.addItem({ command, args, category: CATEGORY });
      }
    }

    shell.add(panel, 'right', { rank: 700, type: 'SFM' });
    restorer?.add(panel, 'sfm-panel');
    void restorer?.restore(tracker, {
      command: ID.open,
      args: widget => ({ kind: widget.content.kind }),
      name: widget => widget.content.kind
    });
    followDeadlocks(store, showPanel, revealPanel);
    markStuck(store, sfm.notebooks);
    if (state) {
      void remember(state, store, panel);
    }
    notifyChanges(store, commands);
  }
};

/** A view opens with the other views, or beside the notebook if there is room; a table below it. */
function placeFor(
  kind: ViewKind,
  view: MainAreaWidget<View> | null
): DocumentRegistry.IOpenOptions {
  if (view) {
    return { mode: 'tab-after', ref: view.id };
  }
  const beside = kind === 'processes' ? 'split-bottom' : 'split-right';
  return { mode: window.innerWidth >= ROOM ? beside : 'tab-after' };
}

/** The numbers of running, blocked and ended engines, in the status bar. */
const status: JupyterFrontEndPlugin<void> = {
  id: '@sfm/labextension:status',
  description: 'Counts engines in the status bar.',
  autoStart: true,
  requires: [ISfm],
  optional: [IStatusBar, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    { store }: ISfm,
    bar: IStatusBar | null,
    lab: ILabShell | null
  ) => {
    if (!bar && lab) {
      return; // the user has disabled the status bar
    }
    const item = new StatusItem(store, () => void app.commands.execute(ID.showPanel));
    if (bar) {
      bar.registerStatusItem(status.id, {
        item,
        align: 'left',
        rank: 90,
        priority: 1, // remains if the window is too narrow for all items
        isActive: () => item.active,
        activeStateChanged: item.activeChanged
      });
      return;
    }
    // Jupyter Notebook has no status bar: its menu bar says whether a notebook is trusted, too.
    item.id = 'sfm-status';
    const follow = () => item.setHidden(!item.active);
    item.activeChanged.connect(follow);
    follow();
    app.shell.add(item, 'menu', { rank: 10_000 });
  }
};

export default [worlds, views, status];
