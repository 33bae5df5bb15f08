import * as React from 'react';
import { bytesText, rateText } from '../model/text';
import type { Sample } from '../model/usage';
import { Sparkline } from './sparkline';

/** The largest values of a table, at which its bars and lines are full. */
export interface Scale {
  readonly depth: number;
  readonly messages: number;
  readonly memory: number;
}

/** Messages in an inbox that fill a bar, if no inbox has more. */
const FULL = 10;

export function scaleOf(
  rows: ReadonlyArray<{ readonly depth: number; readonly samples: readonly Sample[] }>
): Scale {
  const samples = rows.flatMap(row => row.samples);
  return {
    depth: Math.max(FULL, ...rows.map(row => row.depth)),
    messages: Math.max(1, ...samples.map(sample => sample.messages)),
    memory: Math.max(1, ...samples.map(({ memory, limit }) => Math.max(memory ?? 0, limit ?? 0)))
  };
}

interface DrawnProps {
  readonly samples: readonly Sample[];
  readonly scale: Scale;
}

/** The number of messages in an inbox, and a bar as long. */
export function Depth({ depth, scale }: { depth: number; scale: Scale }): JSX.Element {
  return (
    <>
      <Bar part={depth / scale.depth} />
      {depth}
    </>
  );
}

/** A bar that is full if the part is 1; a text beside it says the same. */
export function Bar({ part }: { readonly part: number }): JSX.Element {
  return (
    <span className="sfm-Bar" aria-hidden="true">
      <span style={{ width: `${100 * Math.min(1, part)}%` }} />
    </span>
  );
}

/** Messages a second, sent and received. */
export function Messages({ samples, scale }: DrawnProps): JSX.Element {
  const points = samples.map(({ time, messages }) => [time, messages] as const);
  return (
    <span className="sfm-Row-sum">
      <Sparkline points={points} most={scale.messages} />
      {rateText(samples.at(-1)?.messages ?? 0)}
    </span>
  );
}

/** The memory of a process, with its limit as a line across. */
export function Memory({ samples, scale }: DrawnProps): JSX.Element | null {
  const points = samples.flatMap(({ time, memory }) =>
    memory === null ? [] : [[time, memory] as const]
  );
  const { memory, limit } = samples.at(-1) ?? {};
  if (memory == null) {
    return null;
  }
  const allowed = limit == null ? '' : ` of ${bytesText(limit)}`;
  return (
    <span title={`${bytesText(memory)}${allowed}, private memory`}>
      <Sparkline points={points} most={scale.memory} limit={limit} />
      {bytesText(memory)}
    </span>
  );
}

export function Processor({ samples }: { readonly samples: readonly Sample[] }): JSX.Element | null {
  const processor = samples.at(-1)?.processor;
  return processor == null ? null : <>{Math.round(processor)} %</>;
}
