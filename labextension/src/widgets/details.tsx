import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Store } from '../model/store';
import { siteTexts } from '../model/text';
import type { Diagnosis, Process } from '../model/types';
import { CommandButton } from './button';
import { Queue } from './queue';
import { stateText } from './shapes';

interface SelectedProps {
  readonly store: Store;
  readonly commands: CommandRegistry;
}

/** The selected process, with its commands. */
export function SelectedDetails({ store, commands }: SelectedProps): JSX.Element {
  const process = store.selected;
  if (!process) {
    return <p className="sfm-Dim">Choose a process to see its inbox.</p>;
  }
  const { uid, name, kind, host, pid, here } = process;
  const site = siteTexts(store.snapshot?.processes ?? []).get(uid);
  const facts = [
    kind,
    pid === null ? '' : `pid ${pid}`,
    host === null || here ? '' : `on ${host}`,
    site === undefined || (site === host && !here) ? '' : `at ${site}`
  ];
  const args = { uid };
  const engine = [ID.interruptProcess, ID.restartProcess, ID.stopProcess];
  return (
    <Details process={process} diagnosis={store.diagnosis} about={facts.filter(Boolean).join(', ')}>
      {kind === 'engine' &&
        engine.map(id => (
          <CommandButton key={id} commands={commands} id={id} args={args} of={String(name)} />
        ))}
    </Details>
  );
}

interface DetailsProps {
  readonly process: Process;
  readonly diagnosis: Diagnosis | null;
  readonly about: string;
  /** Commands. */
  readonly children?: React.ReactNode;
}

/** A process: its inbox, and its messages to and from others. */
export function Details({ process, diagnosis, about, children }: DetailsProps): JSX.Element {
  const { uid, name, peers } = process;
  const judgement = diagnosis?.processes.find(other => other.uid === uid) ?? null;
  return (
    <section className="sfm-Details" aria-label={`Process ${name}`}>
      <div className="sfm-Details-head">
        <h3>{`Inbox of ${name}`}</h3>
        <span className="sfm-Dim">{about}</span>
        {children && <span className="sfm-Tools">{children}</span>}
      </div>
      {process.waits !== null && (
        <p className="sfm-Details-waits">
          {`${stateText(process.state)}: `}
          <code>{process.waits}</code>
        </p>
      )}
      <Queue key={uid} process={process} judgement={judgement} />
      {peers.length > 0 && (
        <details className="sfm-Peers">
          <summary>Messages to and from others</summary>
          <table>
            <thead>
              <tr>
                {['Peer', 'Sent', 'Arrived', 'Received'].map(text => (
                  <th key={text} scope="col">
                    {text}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {peers.map(peer => (
                <tr key={peer.uid}>
                  <th scope="row">{peer.name === null ? 'unknown' : String(peer.name)}</th>
                  <td>{peer.sent}</td>
                  <td>{peer.arrived}</td>
                  <td>{peer.received}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}
