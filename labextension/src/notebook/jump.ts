import { PageConfig } from '@jupyterlab/coreutils';
import type { CodeCell } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { IDocumentWidget } from '@jupyterlab/docregistry';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { CommandRegistry } from '@lumino/commands';
import { locationText } from '../model/text';
import type { CodeLocation } from '../model/types';

const FLASH = 'sfm-mod-flash';

interface Found {
  readonly panel: NotebookPanel;
  readonly index: number;
}

/**
 * Show a line: its cell in one of the notebooks, or its file, with the cursor on the line.
 *
 * `notebooks` are those of the world, and all that are open. Rejects if the line is in none of them
 * and its file cannot be opened.
 */
export async function jumpTo(
  location: CodeLocation,
  notebooks: { readonly ofWorld: NotebookPanel[]; readonly open: NotebookPanel[] },
  commands: CommandRegistry,
  activate: (id: string) => void
): Promise<void> {
  const found = findCell(location, notebooks.ofWorld, notebooks.open);
  if (found) {
    activate(found.panel.id);
    await showCell(found, location.line);
    return;
  }
  if (location.cell !== null || location.cell_id !== null) {
    throw new Error(`${locationText(location)} is in no open notebook: open the one that ran it`);
  }
  await showFile(location, commands);
}

/** Find a cell by its id in any notebook, or by its execution count in the world's notebooks. */
export function findCell(
  location: CodeLocation,
  ofWorld: NotebookPanel[],
  open: NotebookPanel[]
): Found | null {
  const { cell_id: id, cell } = location;
  return (
    (id !== null && search([...ofWorld, ...open], ({ model }) => model.id === id)) ||
    (cell !== null && search(ofWorld, other => (other as CodeCell).model.executionCount === cell)) ||
    null
  );
}

function search(
  panels: NotebookPanel[],
  fits: (cell: NotebookPanel['content']['widgets'][number]) => boolean
): Found | null {
  for (const panel of panels) {
    const index = panel.content.widgets.findIndex(fits);
    if (index >= 0) {
      return { panel, index };
    }
  }
  return null;
}

async function showCell({ panel, index }: Found, line: number): Promise<void> {
  const notebook = panel.content;
  notebook.activeCellIndex = index;
  const cell = notebook.activeCell;
  if (!cell) {
    return;
  }
  if (cell.inputHidden) {
    cell.inputHidden = false;
  }
  await notebook.scrollToCell(cell, 'smart');
  await cell.ready;
  notebook.mode = 'edit';
  if (cell.editor) {
    showLine(cell.editor, line);
  }
  flash(cell.node);
}

async function showFile(location: CodeLocation, commands: CommandRegistry): Promise<void> {
  const root = decodeURIComponent(PageConfig.getOption('rootUri')).replace(/^file:\/\//, '');
  const below = root && location.file.startsWith(root.replace(/\/?$/, '/'));
  if (!below) {
    throw new Error(`${location.file}, line ${location.line}, is not below JupyterLab's folder`);
  }
  const path = location.file.slice(root.length).replace(/^\//, '');
  const opened: IDocumentWidget = await commands.execute('docmanager:open', { path });
  await opened.context.ready;
  await opened.revealed;
  const editor = (opened.content as { editor?: CodeEditor.IEditor }).editor;
  if (editor) {
    showLine(editor, location.line);
  }
}

function showLine(editor: CodeEditor.IEditor, line: number): void {
  const position = { line: Math.min(Math.max(line, 1), editor.lineCount) - 1, column: 0 };
  editor.setCursorPosition(position);
  editor.revealPosition(position);
  editor.focus();
}

function flash(node: HTMLElement): void {
  node.classList.remove(FLASH);
  void node.offsetWidth; // a second jump to the same cell restarts the animation
  node.classList.add(FLASH);
  window.setTimeout(() => node.classList.remove(FLASH), 1500);
}
