import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import { plural } from '../model/text';
import type { FinishedRun } from '../model/types';
import { CommandButton } from './button';

interface FinishedProps {
  readonly runs: readonly FinishedRun[];
  readonly commands: CommandRegistry;
}

/** The last runs of programs, by name, with how each has ended; a click opens its record. */
export const Finished = React.memo(function Finished({ runs, commands }: FinishedProps) {
  return (
    <ul className="sfm-Runs" aria-label="Finished runs">
      {runs.map(run => {
        const { id, program, ranks, time, end } = run;
        const args = { run: id };
        const when = whenText(time);
        const facts = `${end}, ${plural(ranks, 'rank')}`;
        return (
          <li key={id} className="sfm-Run">
            <button
              type="button"
              title={`${program}: ${facts}, ${when}\n${commands.caption(ID.openRun)}`}
              aria-label={`${program}, ${facts}, ${when}`}
              onClick={() => void commands.execute(ID.openRun, args)}
            >
              <span>{program}</span>
              <span className="sfm-Dim">{when}</span>
              <span className="sfm-Dim">{facts}</span>
            </button>
            <CommandButton
              commands={commands}
              id={ID.deleteRuns}
              args={args}
              of={`${program}, ${when}`}
            />
          </li>
        );
      })}
    </ul>
  );
});

/** The time of a day, with the date unless that is today. */
function whenText(seconds: number): string {
  const when = new Date(seconds * 1000);
  const time = when.toLocaleTimeString();
  const isToday = when.toDateString() === new Date().toDateString();
  return isToday ? time : `${when.toLocaleDateString()} ${time}`;
}
