import * as React from 'react';
import { WaitGraph } from '../graph/view';
import { Activities } from '../model/activity';
import { Rates } from '../model/rates';
import { durationText } from '../model/text';
import { UsageHistory } from '../model/usage';
import { Details } from '../widgets/details';
import { rowViews } from '../widgets/rows';
import { ProcessTable } from '../widgets/table';
import { Why } from '../widgets/why';
import { worldText } from './card';
import { ask } from './client';
import type { Report, SharedWorld } from './model';

interface DialogProps {
  readonly world: SharedWorld;
  readonly now: number;
  readonly onClose: () => void;
}

/** All that a student shares, above the page; it follows the world until it is closed. */
export function WorldDialog({ world, now, onClose }: DialogProps): JSX.Element {
  const dialog = React.useRef<HTMLDialogElement>(null);
  const [rates] = React.useState(() => new Rates());
  const [report, setReport] = React.useState<Report | null>(null);
  React.useEffect(() => dialog.current?.showModal(), []);
  React.useEffect(() => {
    let wanted = true;
    const take = (found: Report): void => {
      if (wanted) {
        rates.add(found.snapshot);
        setReport(found);
      }
    };
    ask<Report>(`worlds/${world.id}`).then(take, () => undefined); // the page says what is wrong
    return () => {
      wanted = false;
    };
  }, [world.id, world.version, world.state]);
  return (
    <dialog ref={dialog} className="sfm-View" aria-labelledby="who" onClose={onClose}>
      <div className="sfm-Dialog-head">
        <h2 id="who">{`${world.name}: ${worldText(world, now)}`}</h2>
        <button
          type="button"
          className="sfm-Button"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          ✕
        </button>
      </div>
      {report && <World report={report} rates={rates} now={now} />}
    </dialog>
  );
}

interface WorldProps {
  readonly report: Report;
  readonly rates: Rates;
  readonly now: number;
}

/** The panel's sections for a world. */
function World({ report, rates, now }: WorldProps): JSX.Element {
  const { snapshot, diagnosis, told, code } = report;
  const { processes } = snapshot;
  const [past] = React.useState(() => ({ activities: new Activities(), usage: new UsageHistory() }));
  // What a student does later does not change the choice: the teacher may be reading.
  const [selected, select] = React.useState(
    () => (processes.find(process => process.depth > 0) ?? processes[0])?.uid
  );
  const rows = rowViews({ snapshot, diagnosis, rates, now: () => now, ...past });
  const shown = processes.find(process => process.uid === selected) ?? processes[0];
  return (
    <>
      {diagnosis.title && <Why diagnosis={diagnosis} />}
      {told.map(({ time, text }) => (
        <React.Fragment key={time}>
          <h3>{`A deadlock, reported ${durationText(now - time)} ago`}</h3>
          <p className="sfm-Told">{text}</p>
        </React.Fragment>
      ))}
      {shown && (
        <>
          <h3>Processes</h3>
          <ProcessTable rows={rows} selected={shown.uid} onSelect={select} />
          <Details
            process={shown}
            diagnosis={diagnosis}
            about={`${shown.kind}, ${shown.sent} sent, ${shown.received} received`}
          />
        </>
      )}
      {diagnosis.edges.length > 0 && (
        <>
          <h3>Wait-for graph</h3>
          <WaitGraph
            diagnosis={diagnosis}
            snapshot={snapshot}
            onSelect={name => select(processes.find(process => process.name === name)?.uid)}
          />
        </>
      )}
      {code.length > 0 && (
        <>
          <h3>Code</h3>
          <div className="sfm-Listings">
            {code.map(({ title, lines, at }, nth) => (
              <React.Fragment key={nth}>
                <h3>{title}</h3>
                <pre tabIndex={0} aria-label={`code of ${title}`}>
                  {lines.map(([line, text]) => (
                    <span
                      key={line}
                      data-line={line}
                      className={at.includes(line) ? 'sfm-mod-marked' : undefined}
                    >
                      {text || ' '}
                    </span>
                  ))}
                </pre>
              </React.Fragment>
            ))}
          </div>
        </>
      )}
    </>
  );
}
