import type { Cell } from '@jupyterlab/cells';
import type { Store } from '../model/store';
import { namesText } from '../model/text';
import type { Name } from '../model/types';
import { findCell } from './jump';
import { Lines, markLines } from './marks';
import type { Notebooks } from './notebooks';

/** The most processes that a mark names, if there are more than one beyond them. */
const FIRST = 5;

/** Mark the lines in which the processes of a deadlock wait, while the deadlock lasts. */
export function markStuck(store: Store, notebooks: Notebooks): void {
  let marked = new Map<Cell, Lines>();
  let known = '';
  const check = (): void => {
    const found = stuckLines(store, notebooks);
    const key = JSON.stringify([...found].map(([{ model }, lines]) => [model.id, ...lines]));
    if (key === known) {
      return; // so that marks which an edit has removed do not come again
    }
    known = key;
    const former = marked;
    marked = found;
    for (const cell of new Set([...former.keys(), ...found.keys()])) {
      // A cell gets its editor when it is first scrolled into view.
      void cell.ready.then(() => {
        if (!cell.isDisposed && cell.editor && marked === found) {
          markLines(cell.editor, found.get(cell) ?? new Map());
        }
      });
    }
  };
  store.judged.connect(check);
  store.changed.connect(check);
}

/** `0 waits here`, `0 and 1 wait here`, `0, 1, 2, 3, 4 and 45 more wait here` */
function waitText(names: readonly Name[]): string {
  const rest = names.length - FIRST;
  const named = rest > 1 ? [...names.slice(0, FIRST), `${rest} more`] : names;
  return `${namesText(named)} ${names.length === 1 ? 'waits' : 'wait'} here`;
}

/** The cells and lines in which processes of a deadlock wait. */
function stuckLines(store: Store, notebooks: Notebooks): Map<Cell, Lines> {
  const names = new Map<Cell, Map<number, Name[]>>();
  const { diagnosis, world } = store;
  // Nobody asks for a diagnosis that nobody sees, once no engine is blocked: the last one is old.
  const lasts = store.shows('diagnosis') || (world?.blocked ?? 0) > 0;
  if (diagnosis?.verdict === 'deadlock' && lasts) {
    const [ofWorld, open] = [notebooks.of(world?.kernels ?? []), notebooks.all()];
    for (const { name, verdict, where } of diagnosis.processes) {
      const found = verdict === 'stuck' && where && findCell(where, ofWorld, open);
      const cell = found && found.panel.content.widgets[found.index];
      if (where && cell) {
        const lines = names.get(cell) ?? new Map<number, Name[]>();
        lines.set(where.line, [...(lines.get(where.line) ?? []), name]);
        names.set(cell, lines);
      }
    }
  }
  return new Map(
    [...names].map(([cell, lines]) => [
      cell,
      new Map([...lines].map(([line, waiting]) => [line, waitText(waiting)]))
    ])
  );
}
