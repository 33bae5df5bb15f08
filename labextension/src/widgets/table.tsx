import * as React from 'react';
import type { CodeLocation } from '../model/types';
import { LocationButton } from './button';
import { RowView, sameRow } from './rows';
import { StateMark } from './shapes';

interface RowProps {
  readonly row: RowView;
  readonly selected: boolean;
  /** Whether Tab moves to this row. */
  readonly reachable: boolean;
  readonly onSelect: (uid: string) => void;
  readonly onJump: (location: CodeLocation) => void;
}

const Row = React.memo(
  function Row({ row, selected, reachable, onSelect, onJump }: RowProps): JSX.Element {
    const tabIndex = reachable ? 0 : -1;
    const title = row.site ? `${row.name}, at ${row.site}` : String(row.name);
    return (
      <tr
        role="row"
        data-uid={row.uid}
        aria-selected={selected}
        tabIndex={tabIndex}
        className={row.stuck ? 'sfm-Row sfm-mod-stuck' : 'sfm-Row'}
        onClick={() => onSelect(row.uid)}
      >
        <th role="rowheader" scope="row" className="sfm-Row-name" title={title}>
          {String(row.name)}
          {row.more && <span className="sfm-Dim"> {row.more}</span>}
          {row.site && <span className="sfm-Dim"> {row.site}</span>}
        </th>
        <td role="gridcell" className="sfm-Row-state">
          <StateMark state={row.state} label={row.label} stuck={row.stuck} />
        </td>
        <td role="gridcell" className="sfm-Row-since">
          {row.duration}
        </td>
        <td role="gridcell" className="sfm-Row-waits">
          <code title={row.waits}>{row.waits}</code>
        </td>
        <td role="gridcell" className="sfm-Row-where">
          {row.where && <LocationButton location={row.where} onJump={onJump} tabIndex={tabIndex} />}
        </td>
        <td role="gridcell" className="sfm-Row-depth">
          <span className="sfm-Narrow">inbox </span>
          {row.depth}
        </td>
        <td
          role="gridcell"
          className="sfm-Row-rate"
          aria-label={`${row.sent} sent, ${row.received} received a second`}
          title="messages sent and received a second"
        >
          ↑{row.sent} ↓{row.received}
        </td>
      </tr>
    );
  },
  (a, b) =>
    a.selected === b.selected &&
    a.reachable === b.reachable &&
    a.onSelect === b.onSelect &&
    a.onJump === b.onJump &&
    sameRow(a.row, b.row)
);

const HEADINGS: ReadonlyArray<readonly [string, string]> = [
  ['Process', 'name'],
  ['State', 'state'],
  ['For', 'since'],
  ['Waits for', 'waits'],
  ['Where', 'where'],
  ['Inbox', 'depth'],
  ['Messages/s', 'rate']
];

interface TableProps {
  readonly rows: readonly RowView[];
  readonly selected: string | null;
  readonly onSelect: (uid: string) => void;
  readonly onJump: (location: CodeLocation) => void;
}

/**
 * The processes of a world. Tab moves to one row; arrows move to the others, Enter shows
 * a row's queue.
 */
export function ProcessTable({ rows, selected, onSelect, onJump }: TableProps): JSX.Element {
  const [focused, setFocused] = React.useState<string | null>(null);
  const candidates = [focused, selected, rows[0]?.uid];
  const reachable = candidates.find(uid => rows.some(row => row.uid === uid));

  const onKeyDown = (event: React.KeyboardEvent<HTMLElement>): void => {
    const target = event.target as HTMLElement;
    const row = target.closest<HTMLElement>('tr[data-uid]');
    if (!row) {
      return;
    }
    const onRow = target === row;
    const index = rows.findIndex(({ uid }) => uid === row.dataset['uid']);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 }[
      event.key
    ];
    if (to !== undefined) {
      const next = rows[Math.min(Math.max(to, 0), rows.length - 1)];
      const node = row.parentElement?.children[next ? rows.indexOf(next) : -1];
      (node as HTMLElement | undefined)?.focus();
    } else if (onRow && (event.key === 'Enter' || event.key === ' ')) {
      onSelect(row.dataset['uid']!);
    } else if (onRow && event.key === 'ArrowRight') {
      row.querySelector('button')?.focus();
    } else if (!onRow && event.key === 'ArrowLeft') {
      row.focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <table role="grid" className="sfm-Table" aria-label="Processes" onKeyDown={onKeyDown}>
      <thead role="rowgroup">
        <tr role="row">
          {HEADINGS.map(([text, name]) => (
            <th key={name} role="columnheader" scope="col" className={`sfm-Row-${name}`}>
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody
        role="rowgroup"
        onFocus={event => {
          const row = event.target.closest<HTMLElement>('tr[data-uid]');
          setFocused(row?.dataset['uid'] ?? null);
        }}
      >
        {rows.map(row => (
          <Row
            key={row.uid}
            row={row}
            selected={row.uid === selected}
            reachable={row.uid === reachable}
            onSelect={onSelect}
            onJump={onJump}
          />
        ))}
      </tbody>
    </table>
  );
}
