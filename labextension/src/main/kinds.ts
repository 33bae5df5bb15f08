import type { LabIcon } from '@jupyterlab/ui-components';
import type { Part } from '../model/types';
import { graphIcon, processesIcon, timelineIcon } from '../widgets/icons';

/** The views of the main area. */
export type ViewKind = 'processes' | 'graph' | 'timeline';

interface Kind {
  readonly title: string;
  readonly caption: string;
  readonly icon: LabIcon;
  /** The parts that the view asks the server for. */
  readonly parts: readonly Part[];
}

export const KINDS: Readonly<Record<ViewKind, Kind>> = {
  processes: {
    title: 'Processes',
    caption: 'What each process does, and which messages wait',
    icon: processesIcon,
    parts: ['snapshot', 'diagnosis', 'usage']
  },
  graph: {
    title: 'Wait-For Graph',
    caption: 'Who waits for whom, and why',
    icon: graphIcon,
    parts: ['snapshot', 'diagnosis']
  },
  timeline: {
    title: 'Timeline',
    caption: 'Processes and messages over time',
    icon: timelineIcon,
    parts: ['timeline']
  }
};
