import * as React from 'react';
import { useWidth } from '../graph/size';
import { plural } from '../model/text';
import type { Flight, CodeLocation, Row, Span } from '../model/types';
import { Chart, START } from './chart';
import { Details, hintOf } from './details';
import { listen } from './gestures';
import { MessageMatrix } from './grid';
import { actionOf, KEYS_HELP } from './keys';
import type { Source } from './recording';
import { MessageTable } from './table';
import { Form, Legend, Tools } from './tools';

export interface TimelineProps {
  readonly timeline: Source;
  /** Grows with each change of the timeline. */
  readonly version: number;
  /** Whether the world goes on; otherwise this is a recording. */
  readonly live?: boolean;
  readonly onJump: (location: CodeLocation) => void;
  readonly onChosen?: (chosen: Flight | Span | null) => void;
}

/** Processes and messages over time: a row for each process, an arrow for each message. */
export function TimelineView(props: TimelineProps): JSX.Element {
  const { timeline, version, live = true, onJump, onChosen } = props;
  const [form, setForm] = React.useState<Form | null>(null);
  const [chart, setChart] = React.useState<Chart | null>(null);
  const [state, setState] = React.useState(START);
  const plot = React.useRef<HTMLDivElement>(null);
  const rows = React.useRef<HTMLCanvasElement>(null);
  const axis = React.useRef<HTMLCanvasElement>(null);
  const overview = React.useRef<HTMLCanvasElement>(null);
  const help = React.useId();
  const width = useWidth(plot);

  React.useLayoutEffect(() => {
    if (!rows.current || !axis.current || !overview.current) {
      return;
    }
    const canvases = { rows: rows.current, axis: axis.current, overview: overview.current };
    const made = new Chart(canvases, setState);
    const stop = listen(made, canvases);
    setChart(made);
    return () => {
      stop();
      made.dispose();
    };
  }, []);

  React.useLayoutEffect(() => chart?.update(timeline, live), [chart, timeline, version, live]);

  const { chosen } = state;
  React.useEffect(() => onChosen?.(chosen), [onChosen, chosen]);

  const { processes } = timeline;
  const rowHeight = rowHeightFor(processes.length);
  React.useLayoutEffect(
    () => chart?.resize(width, rowHeight * processes.length),
    [chart, width, rowHeight, processes.length, form]
  );

  const onKeyDown = (event: React.KeyboardEvent): void => {
    const action = actionOf(event, state.chosen !== null);
    if (chart && action && event.target === event.currentTarget) {
      action(chart);
      event.preventDefault();
      event.stopPropagation();
    }
  };

  const onPointerMove = (event: React.PointerEvent<HTMLCanvasElement>): void => {
    const canvas = event.currentTarget;
    if (chart && event.buttons === 0) {
      const box = canvas.getBoundingClientRect();
      const item = chart.hit(event.clientX - box.left, event.clientY - box.top);
      canvas.title = item ? hintOf(item, chart.recording.name) : '';
    }
  };

  return (
    <div className="sfm-Timeline">
      <Tools chart={chart} state={state} live={live} form={form} onForm={setForm} />
      {timeline.missing > 0 && (
        <p className="sfm-Timeline-note">
          {`${plural(timeline.missing, 'event')} came too fast and were lost: messages may be missing.`}
        </p>
      )}
      {processes.length === 0 && <p className="sfm-Dim">Nothing is known yet.</p>}
      {/* Hidden, not removed: the chart keeps its canvases. */}
      <div
        className="sfm-Timeline-chart"
        hidden={form !== null || processes.length === 0}
        role="application"
        aria-label={`Timeline of ${plural(processes.length, 'process', 'processes')}`}
        aria-describedby={help}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <p id={help} hidden>
          {KEYS_HELP}
        </p>
        <div className="sfm-Timeline-line">
          <span className="sfm-Timeline-gutter" />
          <canvas className="sfm-Timeline-axis" ref={axis} aria-hidden="true" />
        </div>
        <div className="sfm-Timeline-scroll">
          <Names rows={processes} height={rowHeight} />
          <div className="sfm-Timeline-plot" ref={plot}>
            <canvas
              ref={rows}
              onPointerMove={onPointerMove}
              style={{ height: rowHeight * processes.length }}
              aria-hidden="true"
            />
          </div>
        </div>
        <div className="sfm-Timeline-line">
          <span className="sfm-Timeline-gutter">all</span>
          <canvas className="sfm-Timeline-overview" ref={overview} aria-hidden="true" />
        </div>
      </div>
      {!form && processes.length > 0 && <Legend />}
      {!form && state.every > 1 && (
        <p className="sfm-Timeline-note">
          {`One of ${state.every} messages is drawn, and the costliest: zoom in to see all.`}
        </p>
      )}
      {form === 'table' && chart && (
        <MessageTable recording={chart.recording} paused={state.paused} onJump={onJump} />
      )}
      {form === 'matrix' && <MessageMatrix timeline={timeline} paused={state.paused} />}
      {!form && chart && state.chosen && (
        <Details
          chosen={state.chosen}
          nameOf={chart.recording.name}
          begin={timeline.begin}
          onJump={onJump}
          onClose={() => chart.choose(null)}
        />
      )}
    </div>
  );
}

/** The height of a row in pixels: few rows have room for long arrows, many remain distinguishable. */
function rowHeightFor(count: number): number {
  return count <= 4 ? 56 : count <= 8 ? 42 : count <= 16 ? 30 : count <= 32 ? 22 : 18;
}

const Names = React.memo(
  function Names(props: { rows: readonly Row[]; height: number }): JSX.Element {
    return (
      <div className="sfm-Timeline-gutter">
        {props.rows.map(row => (
          <div
            key={row.uid}
            className="sfm-Timeline-name"
            title={row.rank === null ? String(row.name) : `${row.name}, rank ${row.rank}`}
            style={{ height: props.height, lineHeight: `${props.height}px` }}
          >
            {row.name}
          </div>
        ))}
      </div>
    );
  },
  (a, b) =>
    a.height === b.height &&
    a.rows.length === b.rows.length &&
    a.rows.every((row, i) => row.uid === b.rows[i]?.uid && row.name === b.rows[i]?.name)
);
