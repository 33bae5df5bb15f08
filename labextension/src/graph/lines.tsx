import * as React from 'react';
import type { Route } from './route';

interface LinesProps {
  readonly routes: readonly Route[];
  /** The keys of processes that are stuck and not in the cycle. */
  readonly victims: ReadonlySet<string>;
  readonly current: string | null;
  readonly nameOf: (key: string) => string;
}

type Kind = 'cycle' | 'victim' | 'waits';
const KINDS: readonly Kind[] = ['cycle', 'victim', 'waits'];

/** The lines of the graph; a screen reader has them as a list. */
function LinesView({ routes, victims, current, nameOf }: LinesProps): JSX.Element {
  const id = React.useId();
  const kindOf = ({ line }: Route): Kind =>
    line.cycle ? 'cycle' : victims.has(line.from) ? 'victim' : 'waits';
  // The deadlock's lines are drawn above the others.
  const ordered = [...routes].sort((a, b) => Number(a.line.cycle) - Number(b.line.cycle));
  return (
    <g aria-hidden="true">
      <defs>
        {KINDS.map(kind => (
          <marker
            key={kind}
            id={`${id}${kind}`}
            className={`sfm-Graph-head sfm-mod-${kind}`}
            viewBox="0 0 10 10"
            refX={8}
            refY={5}
            markerUnits="userSpaceOnUse"
            markerWidth={kind === 'cycle' ? 14 : 10}
            markerHeight={kind === 'cycle' ? 14 : 10}
            orient="auto"
          >
            <path d="M0 0 10 5 0 10 2.5 5z" />
          </marker>
        ))}
      </defs>
      {ordered.map(route => {
        const kind = kindOf(route);
        const { line, path } = route;
        const near = current !== null && (line.from === current || line.to === current);
        return (
          <g key={line.key} className={`sfm-Graph-line sfm-mod-${kind}`} data-near={near}>
            <title>{`${nameOf(line.from)} waits for ${nameOf(line.to)}: ${line.label}`}</title>
            <path className="sfm-Graph-reach" d={path} />
            <path className="sfm-Graph-way" d={path} markerEnd={`url(#${id}${kind})`} />
          </g>
        );
      })}
      {ordered.map(route => {
        const { line, label } = route;
        return (
          label && (
            <g key={line.key} className={`sfm-Graph-label sfm-mod-${kindOf(route)}`}>
              <title>{line.label}</title>
              <rect
                x={label.x - label.width / 2}
                y={label.y - 7.5}
                width={label.width}
                height={15}
                rx={3}
              />
              <text x={label.x} y={label.y + 3.5} textAnchor="middle">
                {label.text}
              </text>
            </g>
          )
        );
      })}
    </g>
  );
}

export const Lines = React.memo(LinesView);
