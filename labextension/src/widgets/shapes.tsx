import * as React from 'react';
import type { State } from '../model/types';

/** The appearance of a state: each has its shape, so that no colour is needed to distinguish them. */
interface Appearance {
  /** An SVG path in a square of 12. */
  readonly path: string;
  readonly mood: 'quiet' | 'busy' | 'waits' | 'gone';
}

const APPEARANCES: Record<State, Appearance> = {
  idle: {
    path: 'M6 1.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM6 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
    mood: 'quiet'
  },
  running: { path: 'M2.5 1v10L11 6z', mood: 'busy' },
  'blocked in recv': {
    path: 'M1 7h1.5v2.5h7V7H11v4H1zM5.2 1h1.6v4H9L6 8 3 5h2.2z',
    mood: 'waits'
  },
  'blocked in send': {
    path: 'M1 7h1.5v2.5h7V7H11v4H1zM5.2 8h1.6V4H9L6 1 3 4h2.2z',
    mood: 'waits'
  },
  'blocked in collective': {
    path: 'M6 .5 11.5 6 6 11.5.5 6zM6 3 3 6l3 3 3-3z',
    mood: 'waits'
  },
  'blocked in cell': {
    path: 'M2 1h8v1.6L7 6l3 3.4V11H2V9.4L5 6 2 2.6z',
    mood: 'waits'
  },
  left: { path: 'M1.5 5.2h9v1.6h-9z', mood: 'gone' },
  dead: {
    path: 'M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2z',
    mood: 'gone'
  },
  damaged: { path: 'M6 1 11.5 11H.5zM5.3 4.5l.2 3.5h1l.2-3.5zM5.3 8.8h1.4v1.2H5.3z', mood: 'gone' }
};

/** A state's shape and a text, by default its name; `stuck`: the process can never go on. */
export function StateMark(props: { state: State; label?: string; stuck?: boolean }): JSX.Element {
  const { state, label = state, stuck } = props;
  return (
    <span className={`sfm-State sfm-mod-${stuck ? 'stuck' : APPEARANCES[state].mood}`}>
      <StateShape state={state} />
      <span className="sfm-State-text">{stuck ? label.replace('blocked', 'stuck') : label}</span>
    </span>
  );
}

export function StateShape({ state }: { state: State }): JSX.Element {
  return <Shape path={APPEARANCES[state].path} />;
}

/** A symbol in a line of text; `path`: an SVG path in a square of 12. */
export function Shape({ path }: { path: string }): JSX.Element {
  return (
    <svg className="sfm-Shape" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      <path d={path} fillRule="evenodd" />
    </svg>
  );
}
