import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Diagnosis, CodeLocation, Verdict } from '../model/types';
import { CommandButton, LocationButton } from './button';
import { Shape } from './shapes';

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
  readonly commands: CommandRegistry;
  readonly onJump: (location: CodeLocation) => void;
  /** Whether to offer a button that opens the graph. */
  readonly graph?: boolean;
}

/** Why nothing goes on in the world, in sentences, and what to do about it. */
export function Why({ diagnosis, commands, onJump, graph }: WhyProps): JSX.Element {
  if (!diagnosis) {
    return <p className="sfm-Dim">Nothing is known yet.</p>;
  }
  const { verdict, title, sentences, processes } = diagnosis;
  const stuck = processes.filter(process => process.verdict === 'stuck' && process.where);
  return (
    <div className={`sfm-Why sfm-mod-${verdict}`} data-verdict={verdict}>
      <p className="sfm-Why-title">
        <Shape path={SHAPES[verdict]} />
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
                  <b>{String(name)}</b> <LocationButton location={where!} onJump={onJump} />
                </span>
              ))}
            </p>
          )}
          <p className="sfm-Why-actions">
            <CommandButton commands={commands} id={ID.copyDiagnosis} text="Copy diagnosis" />
            <CommandButton
              commands={commands}
              id={ID.interruptStuck}
              text="Interrupt these engines"
            />
            {graph && (
              <CommandButton commands={commands} id={ID.open} args={GRAPH} text="Open graph" />
            )}
          </p>
        </>
      )}
    </div>
  );
}
