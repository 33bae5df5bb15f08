import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Store } from '../model/store';
import type { Diagnosis, State, Verdict } from '../model/types';
import { CommandButton, Jump, LocationButton } from './button';
import type { RowView } from './rows';
import { Arrow } from './section';
import { Shape, StateMark } from './shapes';
import { useCalm } from './waits';

const SHAPES: Record<Verdict, string> = {
  deadlock: 'M6 .8 11.6 11H.4zM5.3 4.5v3.3h1.4V4.5zm0 4.2v1.3h1.4V8.7z',
  waiting: 'M2 1h8v1.6L7 6l3 3.4V11H2V9.4L5 6 2 2.6z',
  running: 'M2.5 1v10L11 6z',
  idle: 'M6 1.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM6 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
  empty: 'M1.5 5.2h9v1.6h-9z'
};

const GRAPH = { kind: 'graph' };

interface WhyProps {
  readonly diagnosis: Diagnosis | null;
  readonly onJump?: Jump;
  /** What to do about a deadlock. */
  readonly children?: React.ReactNode;
}

interface WhyLineProps {
  readonly store: Store;
  readonly rows: readonly RowView[];
  readonly commands: CommandRegistry;
  readonly onJump: Jump;
  /** Whether the user has opened the explanation of a world that goes on. */
  readonly open: boolean;
  readonly onToggle: () => void;
}

/**
 * The panel's place for the explanation: one line while nothing is stuck. The line sums up the
 * states that the rows show, so that the two agree; a press on it shows the explanation.
 */
export function WhyLine(props: WhyLineProps): JSX.Element {
  const { store, rows, commands, onJump, open, onToggle } = props;
  const { diagnosis } = useCalm(store);
  if (diagnosis?.verdict === 'deadlock') {
    return (
      <Why diagnosis={diagnosis} onJump={onJump}>
        <WhyActions commands={commands} />
        <CommandButton commands={commands} id={ID.open} args={GRAPH} text="Open graph" />
      </Why>
    );
  }
  const [state, label] = summary(rows);
  return (
    <>
      <button type="button" className="sfm-Quiet" aria-expanded={open} onClick={onToggle}>
        <StateMark state={state} label={label} />
        <Arrow open={open} />
      </button>
      {open && <Why diagnosis={diagnosis} onJump={onJump} />}
    </>
  );
}

/** What a world does in which nothing is proven to be stuck. */
function summary(rows: readonly RowView[]): readonly [State, string] {
  const states = rows.map(({ state }) => state);
  if (states.includes('running')) {
    return ['running', 'running'];
  }
  // A notebook that waits for its cell says nothing about the engines.
  const engines = states.filter(state => state !== 'blocked in cell');
  const waiting = engines.find(state => state.startsWith('blocked'));
  return waiting ? [waiting, 'waiting'] : ['idle', 'idle'];
}

/** The commands for a deadlock. */
export function WhyActions({ commands }: { readonly commands: CommandRegistry }): JSX.Element {
  return (
    <>
      <CommandButton commands={commands} id={ID.copyDiagnosis} text="Copy diagnosis" />
      <CommandButton commands={commands} id={ID.interruptStuck} text="Interrupt these engines" />
    </>
  );
}

export function VerdictShape({ verdict }: { readonly verdict: Verdict }): JSX.Element {
  return <Shape path={SHAPES[verdict]} />;
}

/** Why nothing goes on in the world, in sentences, and what to do about it. */
export function Why({ diagnosis, onJump, children }: WhyProps): JSX.Element {
  if (!diagnosis) {
    return <p className="sfm-Dim">Nothing is known yet.</p>;
  }
  const { verdict, title, sentences, processes } = diagnosis;
  const stuck = processes.filter(process => process.verdict === 'stuck' && process.where);
  return (
    <div className={`sfm-Why sfm-mod-${verdict}`} data-verdict={verdict}>
      <p className="sfm-Why-title">
        <VerdictShape verdict={verdict} />
        <span>{title}</span>
      </p>
      {sentences.length > 0 && (
        <ul className="sfm-Why-sentences">
          {sentences.map((sentence, index) => (
            <li key={index}>{sentence}</li>
          ))}
        </ul>
      )}
      {verdict === 'deadlock' && (
        <>
          {stuck.length > 0 && (
            <p className="sfm-Why-places">
              Look at{' '}
              {stuck.map(({ uid, name, where }) => (
                <span key={uid} className="sfm-Why-place">
                  <b>{String(name)}</b> <LocationButton location={where!} of={name} onJump={onJump} />
                </span>
              ))}
            </p>
          )}
          {children && <p className="sfm-Why-actions">{children}</p>}
        </>
      )}
    </div>
  );
}
