import * as React from 'react';
import type { LiveState, State } from '../model/types';
import { STYLES } from '../timeline/theme';

/** The shapes of processes that have ended, or cannot be read: SVG paths in a square of 12. */
const ENDED: Record<Exclude<State, LiveState>, string> = {
  left: 'M1.5 5.2h9v1.6h-9z',
  ended: 'M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2z',
  damaged: 'M6 1 11.5 11H.5zM5.3 4.5l.2 3.5h1l.2-3.5zM5.3 8.8h1.4v1.2H5.3z'
};

function isLive(state: State): state is LiveState {
  return state in STYLES;
}

/** A state in words, the timeline's. */
export function stateText(state: State): string {
  return isLive(state) ? STYLES[state].text : state;
}

interface MarkProps {
  readonly state: State;
  /** Another text than the state's. */
  readonly label?: string;
  /** Whether the process can never go on. */
  readonly stuck?: boolean;
}

/** A state's pattern and its text. */
export function StateMark({ state, label, stuck }: MarkProps): JSX.Element {
  const text = label === undefined || label === state ? stateText(state) : label;
  return (
    <Mark
      shape={<StateShape state={state} stuck={stuck} />}
      text={stuck ? `stuck ${text.replace(/^blocked /, '')}` : text}
      stuck={stuck}
    />
  );
}

/** A shape and its text. */
export function Mark(props: { shape: JSX.Element; text: string; stuck?: boolean }): JSX.Element {
  const { shape, text, stuck } = props;
  return (
    <span className={`sfm-State${stuck ? ' sfm-mod-stuck' : ''}`}>
      {shape}
      <span className="sfm-State-text">{text}</span>
    </span>
  );
}

/** A piece of the timeline's bar: the colour, the hatching and the height are the same. */
export function StateShape({ state, stuck }: Omit<MarkProps, 'label'>): JSX.Element {
  if (!isLive(state)) {
    return <Shape path={ENDED[state]} />;
  }
  const { colour, fallback, height, hatch } = STYLES[state];
  const tall = Math.max(2, SIDE * height);
  return (
    <svg
      className="sfm-Shape"
      viewBox={`0 0 ${SIDE} ${SIDE}`}
      style={stuck ? undefined : { color: `var(${colour}, ${fallback})` }}
      aria-hidden="true"
      focusable="false"
    >
      <svg y={(SIDE - tall) / 2} width={SIDE} height={tall} viewBox={`0 0 ${SIDE} ${tall}`}>
        <rect width={SIDE} height={tall} opacity={hatch ? 0.4 : 1} />
        {hatch &&
          TILES.map(at => (
            <path
              key={at}
              transform={`translate(${at})`}
              d={hatch}
              fill="none"
              stroke="currentcolor"
              strokeWidth={1.4}
            />
          ))}
      </svg>
    </svg>
  );
}

/** The side of a shape, and the places of the squares of 6 in it. */
const SIDE = 12;
const TILES = ['0 0', '6 0', '0 6', '6 6'];

/** A symbol in a line of text; `path`: an SVG path in a square of 12. */
export function Shape({ path }: { path: string }): JSX.Element {
  return (
    <svg className="sfm-Shape" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      <path d={path} fillRule="evenodd" />
    </svg>
  );
}
