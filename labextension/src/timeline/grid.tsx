import * as React from 'react';
import { bytesText, plural, same } from '../model/text';
import { Matrix, matrixOf, sum } from './matrix';
import type { Source } from './recording';
import { useTicked } from './ticked';

/** Who has sent how much to whom, as `%sfm matrix` shows it in a notebook. */
export function MessageMatrix(props: {
  readonly timeline: Source;
  /** Whether updates are paused. */
  readonly paused: boolean;
}): JSX.Element {
  const { timeline, paused } = props;
  const read = React.useCallback(() => matrixOf(timeline), [timeline]);
  const matrix = useTicked<Matrix>(read, same, paused);
  const { processes, counts, sizes, hidden } = matrix;
  const total = sum(counts);
  const most = Math.max(0, ...counts.flat());
  return (
    <div className="sfm-Timeline-table" tabIndex={0} role="region" aria-label="Matrix of messages">
      <table className="sfm-Matrix">
        <caption>
          {`${plural(total, 'message')}${total ? ` of ${bytesText(sum(sizes))}` : ''} in the last run`}
          {hidden > 0 && `; ${hidden} more processes are not shown`}
        </caption>
        <thead>
          <tr>
            <th scope="col">from \ to</th>
            {processes.map(({ uid, name }) => (
              <th key={uid} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {processes.map(({ uid, name }, src) => (
            <tr key={uid}>
              <th scope="row">{name}</th>
              {processes.map((to, dest) => (
                <Cell
                  key={to.uid}
                  names={`${name} → ${to.name}`}
                  count={counts[src]?.[dest] ?? 0}
                  size={sizes[src]?.[dest] ?? 0}
                  most={most}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Cell = React.memo(function Cell(props: {
  readonly names: string;
  readonly count: number;
  readonly size: number;
  readonly most: number;
}): JSX.Element {
  const { names, count, size, most } = props;
  const share = count ? 0.08 + (0.6 * count) / most : 0;
  return (
    <td
      title={`${names}: ${plural(count, 'message')} of ${bytesText(size)}`}
      style={{ background: `rgba(0, 114, 178, ${share.toFixed(2)})` }}
    >
      {count > 0 && (
        <>
          {count} <small>{bytesText(size)}</small>
        </>
      )}
    </td>
  );
});
