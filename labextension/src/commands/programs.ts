import { Dialog, showDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { Terminal } from '@jupyterlab/services';
import type { IStateDB } from '@jupyterlab/statedb';
import { runIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import type { Run } from '../model/client';
import type { Store } from '../model/store';
import { attempt, Context } from './context';
import { ID } from './ids';
import type { Shows } from './views';

/** The key under which the last options of programs are stored. */
const KEY = '@sfm/labextension:programs';
/** The most programs whose options are stored. */
const KEPT = 100;
const MOST_RANKS = 512;
/** Milliseconds within which a program's world appears, if the program joins one. */
const PATIENCE = 60_000;

/** Files that the launcher takes: sources, scripts, archives. */
const PROGRAM = /\.(c|cc|cpp|cxx|py|zip|tgz|tar\.gz)$/i;

type Runs = { [path: string]: Run };

/** The command that runs a program of the file browser in several processes, in a terminal. */
export function addProgramCommands(
  context: Context,
  shows: Shows,
  browser: IDefaultFileBrowser | null,
  state: IStateDB | null
): void {
  const { app, client, store } = context;
  /** The latest terminal of each folder, in which the folder's next program runs. */
  const tabs = new Map<string, { readonly name: string; readonly tab: Widget }>();

  /** The program that is chosen in the file browser; a file without a suffix may be one, too. */
  const chosen = (): string => {
    const items = [...(browser?.selectedItems() ?? [])];
    const item = items.length === 1 ? items[0] : undefined;
    const runs =
      item?.type === 'directory' || PROGRAM.test(item?.name ?? '') || !item?.name.includes('.');
    return item && runs ? app.serviceManager.contents.localPath(item.path) : '';
  };

  app.commands.addCommand(ID.run, {
    label: 'Run with SFM…',
    caption: 'Run a C, C++ or Python program in several processes, which the panel shows',
    icon: runIcon,
    isEnabled: () => store.connected,
    isVisible: args => args['chosen'] !== true || chosen() !== '',
    execute: async () => {
      const { terminals } = app.serviceManager;
      const first = chosen();
      if (/\p{Cc}/u.test(first)) {
        // The dialog's field would leave a line's end out, and so name another file.
        await attempt('The program was not started', () =>
          Promise.reject(new Error(`its name has control characters: rename ${JSON.stringify(first)}`))
        );
        return;
      }
      const runs = ((await state?.fetch(KEY)) ?? {}) as unknown as Runs;
      const chosenRun = await ask(first || Object.keys(runs).at(-1) || '', runs);
      if (!chosenRun) {
        return;
      }
      const { path, run } = chosenRun;
      const { [path]: _, ...others } = runs;
      const latest = Object.entries({ ...others, [path]: run }).slice(-KEPT);
      await state?.save(KEY, Object.fromEntries(latest) as never);
      await attempt(`${PathExt.basename(path)} was not started`, async () => {
        if (!terminals.isAvailable()) {
          throw new Error(
            'this server has no terminals: install terminado, or run it in a notebook with ' +
              `%sfm run -n ${run.ranks} ${path}`
          );
        }
        const cwd = PathExt.dirname(path);
        const former = tabs.get(cwd);
        const { line, free } = await client.line(path, run, former?.name ?? null);
        const again = free && former && !former.tab.isDisposed ? former : null;
        const terminal = again
          ? terminals.connectTo({ model: { name: again.name } })
          : await terminals.startNew({ cwd });
        const ready = prompted(terminal);
        const { name } = terminal;
        const tab: Widget = again?.tab ?? (await app.commands.execute('terminal:open', { name }));
        tabs.set(cwd, { name, tab });
        follow(store);
        shows.view('timeline');
        shows.panel();
        await ready;
        // ^U removes what the user may have typed.
        terminal.send({ type: 'stdin', content: [`${again ? '\x15' : ''}${line}\r`] });
        terminal.dispose(); // closes the connection; the terminal's tab has another
        app.shell.activateById(tab.id); // so that the keyboard goes to the program
      });
    }
  });
  app.contextMenu.addItem({
    command: ID.run,
    args: { chosen: true },
    selector: '.jp-DirListing-item[data-isdir]',
    rank: 3.5
  });
}

/** Wait until a terminal that was just started shows output: from then on its shell can read. */
function prompted(terminal: Terminal.ITerminalConnection): Promise<void> {
  return new Promise(resolve => {
    terminal.messageReceived.connect(function shown(_, message) {
      if (message.type === 'stdout') {
        terminal.messageReceived.disconnect(shown);
        resolve();
      }
    });
  });
}

/** Show the world that appears next until it ends; then the world that was shown before. */
function follow(store: Store): void {
  const former = store.pinned;
  const known = new Set(store.worlds.map(({ world: name }) => name));
  let world: string | null = null;
  const check = (): void => {
    if (world === null) {
      const names = store.worlds.map(({ world: name }) => name);
      world = names.find(name => isRun(name) && !known.has(name)) ?? null;
      if (world !== null) {
        store.pinned = world;
      }
    } else if (store.pinned !== world) {
      store.changed.disconnect(check); // the user has chosen another world
    } else if (!store.worlds.some(({ world: name }) => name === world)) {
      store.changed.disconnect(check);
      store.pinned = former;
    }
  };
  store.changed.connect(check);
  setTimeout(() => world ?? store.changed.disconnect(check), PATIENCE);
}

/** Whether the launcher has created this world. */
function isRun(world: string): boolean {
  return world.startsWith('mpi-');
}

/** The program and its options from a dialog; null if the user cancels it. */
async function ask(path: string, runs: Runs): Promise<{ path: string; run: Run } | null> {
  const last = runs[path] ?? { ranks: 4, arguments: '' };
  const program = field('text', path);
  program.placeholder = 'a file or folder of the file browser: ring.c';
  const ranks = field('number', String(last.ranks));
  ranks.min = '1';
  ranks.max = String(MOST_RANKS);
  const words = field('text', last.arguments);
  words.placeholder = 'as in a shell: 1000 < data.txt';
  const node = document.createElement('div');
  node.append(
    labelled('Program', program),
    labelled('Processes', ranks),
    labelled('Arguments', words)
  );
  const { button } = await showDialog({
    title: 'Run with SFM',
    body: new Widget({ node }),
    focusNodeSelector: path ? 'input[type=number]' : 'input',
    buttons: [Dialog.cancelButton(), Dialog.okButton({ label: 'Run' })]
  });
  const run = { ranks: ranks.valueAsNumber || 0, arguments: words.value };
  return button.accept ? { path: program.value.trim(), run } : null;
}

function field(kind: string, value: string): HTMLInputElement {
  const input = document.createElement('input');
  input.type = kind;
  input.value = value;
  input.className = 'jp-mod-styled';
  return input;
}

function labelled(text: string, input: HTMLInputElement): HTMLLabelElement {
  const label = document.createElement('label');
  label.append(text, input);
  return label;
}
