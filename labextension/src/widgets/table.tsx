import * as React from 'react';
import { same } from '../model/text';
import { Jump, LocationButton } from './button';
import { RowView, sameRow } from './rows';
import { StateMark } from './shapes';
import { Depth, Memory, Messages, Processor, Scale, scaleOf } from './usage';

interface RowProps {
  readonly row: RowView;
  readonly selected: boolean;
  /** Whether Tab moves to this row. */
  readonly reachable: boolean;
  /** The largest values of the drawings; null in a table without them. */
  readonly scale: Scale | null;
  readonly onSelect: (uid: string) => void;
  readonly onJump?: Jump;
}

const Row = React.memo(
  function Row({ row, selected, reachable, scale, onSelect, onJump }: RowProps): JSX.Element {
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
          {row.where && (
            <LocationButton
              location={row.where}
              of={row.name}
              onJump={onJump}
              tabIndex={tabIndex}
            />
          )}
        </td>
        <td role="gridcell" className="sfm-Row-depth">
          <span className="sfm-Narrow">inbox </span>
          {scale ? <Depth depth={row.depth} scale={scale} /> : row.depth}
        </td>
        <td
          role="gridcell"
          className="sfm-Row-rate"
          aria-label={`${row.sent} sent, ${row.received} received a second`}
          title={`${row.sent} sent, ${row.received} received a second`}
        >
          {scale && <Messages samples={row.samples} scale={scale} />}
          <span className="sfm-Row-both">
            ↑{row.sent} ↓{row.received}
          </span>
        </td>
        {scale && (
          <>
            <td role="gridcell" className="sfm-Row-memory">
              <Memory samples={row.samples} scale={scale} />
            </td>
            <td role="gridcell" className="sfm-Row-processor">
              <Processor samples={row.samples} />
            </td>
          </>
        )}
      </tr>
    );
  },
  (a, b) =>
    a.selected === b.selected &&
    a.reachable === b.reachable &&
    same(a.scale, b.scale) &&
    a.onSelect === b.onSelect &&
    a.onJump === b.onJump &&
    sameRow(a.row, b.row)
);

const HEADINGS: ReadonlyArray<readonly [string, string]> = [
  ['Process', 'name'],
  ['State', 'state'],
  ['For', 'since'],
  ['Call', 'waits'],
  ['Line', 'where'],
  ['Inbox', 'depth'],
  ['Messages/s', 'rate']
];

const DRAWN: typeof HEADINGS = [
  ['Memory', 'memory'],
  ['Processor', 'processor']
];

interface TableProps {
  readonly rows: readonly RowView[];
  readonly selected: string | null;
  /** Whether to draw what the processes use. */
  readonly drawn?: boolean;
  readonly onSelect: (uid: string) => void;
  readonly onJump?: Jump;
}

/**
 * The processes of a world. Tab moves to one row; arrows move to the others, Enter shows
 * a row's queue.
 */
export function ProcessTable(props: TableProps): JSX.Element {
  const { rows, selected, drawn, onSelect, onJump } = props;
  const scale = drawn ? scaleOf(rows) : null;
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
    <table role="grid" className={drawn ? 'sfm-Table sfm-mod-drawn' : 'sfm-Table'} aria-label="Processes" onKeyDown={onKeyDown}>
      <thead role="rowgroup">
        <tr role="row">
          {(drawn ? [...HEADINGS, ...DRAWN] : HEADINGS).map(([text, name]) => (
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
            scale={scale}
            onSelect={onSelect}
            onJump={onJump}
          />
        ))}
      </tbody>
    </table>
  );
}
