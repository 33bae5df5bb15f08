import * as React from 'react';
import { PAST } from '../model/usage';

const WIDTH = 56;
const HEIGHT = 16;

interface SparklineProps {
  /** Times and values, the oldest first. */
  readonly points: ReadonlyArray<readonly [number, number]>;
  /** The value at the upper edge. */
  readonly most: number;
  /** The value of a line across. */
  readonly limit?: number | null;
}

/** A line of the last seconds, up to the newest point; the text beside it has the latest value. */
export function Sparkline({ points, most, limit }: SparklineProps): JSX.Element {
  const end = points.at(-1)?.[0] ?? 0;
  const x = (time: number): number => WIDTH * (1 - (end - time) / PAST);
  const y = (value: number): number => HEIGHT - 1 - (HEIGHT - 2) * Math.min(1, value / (most || 1));
  const line = points.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`);
  return (
    <svg
      className="sfm-Sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      aria-hidden="true"
      focusable="false"
    >
      {limit != null && <path className="sfm-Sparkline-limit" d={`M0 ${y(limit)}H${WIDTH}`} />}
      <polyline points={line.join(' ')} />
    </svg>
  );
}
