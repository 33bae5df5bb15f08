import * as React from 'react';
import type { Chart, ChartState } from './chart';
import { STYLES, readTheme, STATES, watchTheme } from './theme';

/** The forms in which the messages are shown instead of the drawing, with their buttons. */
const FORMS = { table: 'As a table', matrix: 'As a matrix' };
export type Form = keyof typeof FORMS;

/** The buttons above the drawing. */
export const Tools = React.memo(function Tools(props: {
  readonly chart: Chart | null;
  readonly state: ChartState;
  readonly live: boolean;
  /** The form of the messages; null for the drawing. */
  readonly form: Form | null;
  readonly onForm: (form: Form | null) => void;
}): JSX.Element {
  const { chart, state, live, form, onForm } = props;
  const tool = (
    text: string,
    title: string,
    act: () => void,
    pressed?: boolean
  ): JSX.Element => (
    <button
      type="button"
      className="sfm-Button sfm-mod-text"
      title={title}
      aria-pressed={pressed}
      disabled={!chart || (form !== null && pressed === undefined)}
      onClick={act}
    >
      {text}
    </button>
  );
  return (
    <div className="sfm-Timeline-tools" role="group" aria-label="Timeline">
      {live &&
        tool('Pause', 'Stop the updates (Space)', () => chart?.pause(!state.paused), state.paused)}
      {live &&
        tool(
          'Follow',
          'Keep the latest time in view (End)',
          () => {
            chart?.pause(false);
            chart?.follow();
          },
          state.follows && !state.paused
        )}
      {tool('−', 'Zoom out (-)', () => chart?.zoom(1.5))}
      {tool('+', 'Zoom in (+)', () => chart?.zoom(1 / 1.5))}
      {tool('Run', 'Show the complete last run (0)', () => chart?.fit())}
      <span className="sfm-Timeline-space" />
      {(Object.keys(FORMS) as Form[]).map(one => (
        <button
          key={one}
          type="button"
          className="sfm-Button sfm-mod-text"
          aria-pressed={form === one}
          onClick={() => onForm(form === one ? null : one)}
        >
          {FORMS[one]}
        </button>
      ))}
    </div>
  );
});

/** The legend of the patterns, painted like the bars. */
export const Legend = React.memo(function Legend(): JSX.Element {
  const list = React.useRef<HTMLUListElement>(null);
  React.useEffect(() => {
    const paint = (): void => {
      const ratio = devicePixelRatio || 1;
      const theme = list.current && readTheme(list.current, ratio);
      list.current?.querySelectorAll('canvas').forEach((canvas, i) => {
        const state = STATES[i];
        const context = canvas.getContext('2d');
        if (!theme || !context || !state) {
          return;
        }
        canvas.width = 20 * ratio;
        canvas.height = 12 * ratio;
        const height = Math.max(1, Math.round(canvas.height * STYLES[state].height));
        context.fillStyle = theme.fills[state];
        context.fillRect(0, Math.round((canvas.height - height) / 2), canvas.width, height);
      });
    };
    paint();
    return watchTheme(paint);
  }, []);
  return (
    <ul className="sfm-Timeline-legend" ref={list} aria-label="Legend">
      {STATES.map(state => (
        <li key={state}>
          <canvas aria-hidden="true" />
          {STYLES[state].text}
        </li>
      ))}
      {SAMPLES.map(([name, text]) => (
        <li key={name}>
          <Sample name={name} />
          {text}
        </li>
      ))}
    </ul>
  );
});

/** The kinds of arrows, with the legend's words. */
const SAMPLES: ReadonlyArray<readonly [string, string]> = [
  ['plain', 'message'],
  ['open', 'not received'],
  ['sender', 'late sender'],
  ['receiver', 'late receiver']
];

function Sample({ name }: { name: string }): JSX.Element {
  return (
    <svg className={`sfm-Timeline-sample sfm-mod-${name}`} viewBox="0 0 20 12" aria-hidden="true">
      {name === 'open' ? (
        <path
          className="sfm-Timeline-way"
          d="M2 1 9 6M14 8.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0z"
        />
      ) : (
        <>
          <path className="sfm-Timeline-way" d="M1 1.5 16 9.5" />
          <path className="sfm-Timeline-head" d="M19 11 12.5 10.5 15 6z" />
        </>
      )}
    </svg>
  );
}
