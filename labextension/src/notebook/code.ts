import type { ICodeCell } from '@jupyterlab/nbformat';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { MimeData } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';

const CELLS = 'application/vnd.jupyter.cells';

/** Put the code into the active cell if it is an empty code cell, or into a new one below it. */
export async function insertCode(panel: NotebookPanel, code: string): Promise<void> {
  const notebook = panel.content;
  const active = notebook.activeCell;
  if (active?.model.type !== 'code' || active.model.sharedModel.getSource().trim() !== '') {
    NotebookActions.insertBelow(notebook);
  }
  notebook.activeCell?.model.sharedModel.setSource(code);
  if (notebook.activeCell) {
    await notebook.scrollToCell(notebook.activeCell);
  }
}

/**
 * Let the user drag the code, as a cell for a notebook and as text for anything else.
 *
 * Resolves when the code was dropped, or the drag was cancelled.
 */
export async function dragCode(code: string, x: number, y: number): Promise<void> {
  const cell: ICodeCell = {
    cell_type: 'code',
    source: code,
    metadata: {},
    outputs: [],
    execution_count: null
  };
  const mimeData = new MimeData();
  mimeData.setData(CELLS, [cell]);
  mimeData.setData('text/plain', code);
  const dragImage = document.createElement('pre');
  dragImage.className = 'sfm-DragImage';
  dragImage.textContent = code;
  const drag = new Drag({ mimeData, dragImage, supportedActions: 'copy', proposedAction: 'copy' });
  try {
    await drag.start(x, y);
  } finally {
    drag.dispose();
  }
}
