/**
 * The script of the file that `%sfm record` writes: the panel's timeline and wait-for graph, drawn
 * from the data in the file. Without it the page shows a still picture and everything else.
 */
import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { WaitGraph } from '../graph/view';
import { History } from '../model/history';
import type { Diagnosis, Flight, Name, CodeLocation, Snapshot, Span, Timeline } from '../model/types';
import { isFlight } from '../timeline/chart';
import { TimelineView } from '../timeline/view';

/** The data that sfm_kernel/observe/record/page.py puts into the file. */
interface Recorded {
  readonly timeline: Timeline;
  readonly diagnosis: Diagnosis;
  readonly snapshot: Snapshot;
  /** The listing on the page that shows a cell or a file. */
  readonly listings: Readonly<Record<string, number>>;
}

const MARK = 'sfm-mod-marked';
const DARK = matchMedia('(prefers-color-scheme: dark)');

function theme(): void {
  // The canvases are painted again when this changes.
  document.body.setAttribute('data-jp-theme-light', String(!DARK.matches));
}

function show(id: string, node: JSX.Element): void {
  const element = document.getElementById(id);
  if (element) {
    element.classList.add('sfm-mod-live');
    createRoot(element).render(node);
  }
}

/** Mark the lines of the chosen item, and scroll their listing to them. */
function mark(ids: readonly (string | null)[]): void {
  document.querySelectorAll(`.${MARK}`).forEach(line => line.classList.remove(MARK));
  for (const id of ids) {
    const line = id === null ? null : document.getElementById(id);
    const listing = line?.closest<HTMLElement>('.sfm-Listings');
    line?.classList.add(MARK);
    if (line && listing && listing.scrollHeight > listing.clientHeight) {
      const away = line.getBoundingClientRect().top - listing.getBoundingClientRect().top;
      listing.scrollTop += away - listing.clientHeight / 2;
    }
  }
}

/** The id of the line's element on the page; null if the page does not have its code. */
function lineId(location: CodeLocation, listings: Recorded['listings']): string | null {
  const { cell, cell_id, file, line } = location;
  const listing = listings[cell === null ? file : `cell ${cell} ${cell_id ?? ''}`];
  return listing === undefined ? null : `code-${listing}-${line}`;
}

/** The data of this file, which are JSON, compressed. */
async function recorded(): Promise<Recorded> {
  const text = document.getElementById('sfm-recorded')?.textContent ?? '';
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return (await new Response(stream).json()) as Recorded;
}

async function start(): Promise<void> {
  const { timeline, diagnosis, snapshot, listings } = await recorded();
  const jump = (location: CodeLocation): void => {
    const id = lineId(location, listings);
    if (id !== null) {
      mark([id]);
      document.getElementById(id)?.scrollIntoView({ block: 'center' });
    }
  };
  const chosen = (item: Flight | Span | null): void => {
    const locations = item ? (isFlight(item) ? [item.sent_at, item.received_at] : [item.where]) : [];
    mark(locations.map(location => location && lineId(location, listings)));
  };
  const select = (name: Name): void => {
    const row = document.querySelector(`tr[data-name=${CSS.escape(String(name))}]`);
    row?.scrollIntoView({ block: 'center' });
  };
  const history = new History(Infinity);
  history.add(timeline);
  show(
    'sfm-timeline',
    <TimelineView timeline={history} version={1} live={false} onJump={jump} onChosen={chosen} />
  );
  if (diagnosis.edges.length > 0) {
    show(
      'sfm-graph',
      <WaitGraph diagnosis={diagnosis} snapshot={snapshot} onSelect={select} onJump={jump} />
    );
  }
}

theme();
DARK.addEventListener('change', theme);
void start();
