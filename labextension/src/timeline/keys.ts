import type { Chart } from './chart';

/** A description of the keys, for screen readers. */
export const KEYS_HELP =
  'Plus and minus zoom, 0 shows the last run, arrows left and right shift the time, Home goes to ' +
  'the begin, End to the latest time, Space pauses. Enter chooses a message; then the arrows left ' +
  'and right lead to the next one in time, up and down to one of another process, Shift with an ' +
  'arrow shifts the time, and Escape deselects it.';

type Action = (chart: Chart) => void;

const ACTIONS: Readonly<Record<string, Action>> = {
  '+': chart => chart.zoom(1 / 1.5),
  '=': chart => chart.zoom(1 / 1.5),
  '-': chart => chart.zoom(1.5),
  '0': chart => chart.fit(),
  ' ': chart => chart.pause(!chart.state.paused),
  Home: chart => chart.toStart(),
  End: chart => chart.follow(),
  Enter: chart => chart.step(-1),
  ArrowLeft: chart => chart.pan(-0.1),
  ArrowRight: chart => chart.pan(0.1)
};

const WITH_CHOSEN: Readonly<Record<string, Action>> = {
  Enter: () => undefined,
  Escape: chart => chart.choose(null),
  ArrowLeft: chart => chart.step(-1),
  ArrowRight: chart => chart.step(1),
  ArrowUp: chart => chart.stepRow(-1),
  ArrowDown: chart => chart.stepRow(1)
};

/** The action of a key; null if the key is not the timeline's. */
export function actionOf(
  event: Pick<KeyboardEvent, 'key' | 'shiftKey' | 'ctrlKey' | 'altKey' | 'metaKey'>,
  chosen: boolean
): Action | null {
  if (event.ctrlKey || event.altKey || event.metaKey) {
    return null;
  }
  const special = chosen && !event.shiftKey ? WITH_CHOSEN[event.key] : undefined;
  return special ?? ACTIONS[event.key] ?? null;
}
