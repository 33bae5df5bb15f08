import * as React from 'react';
import { countsText, durationText } from '../model/text';
import { Mark, StateMark } from '../widgets/shapes';
import { Bar } from '../widgets/usage';
import { VerdictShape } from '../widgets/why';
import { SharedWorld, watchText } from './model';

/** Seconds of being stuck after which the bar is full. */
const FULL = 600;

interface CardProps {
  readonly world: SharedWorld;
  readonly now: number;
  readonly onOpen: (id: string) => void;
}

/** A student's world in a few lines; a press on it shows all of it. */
export function Card({ world, now, onOpen }: CardProps): JSX.Element {
  const { id, name, state, hand, since } = world;
  const reason = reasonText(world, now);
  return (
    <li>
      <button
        type="button"
        className={`sfm-Card sfm-mod-${state}`}
        title={reason}
        onClick={() => onOpen(id)}
      >
        {hand !== null && (
          <span className="sfm-Card-hand">{`↑ hand up for ${watchText(now - hand)}`}</span>
        )}
        <span className="sfm-Card-name">{name}</span>
        <WorldMark world={world} now={now} />
        <span className="sfm-Card-why">{reason}</span>
        <span className="sfm-Card-counts">{shortText(world)}</span>
        {state === 'stuck' && <Bar part={(now - since) / FULL} />}
      </button>
    </li>
  );
}

/** A world's state, and since when it is in it. */
export function worldText({ state, since }: SharedWorld, now: number): string {
  const seconds = now - since;
  if (state === 'stuck') {
    return `stuck for ${watchText(seconds)}`;
  }
  return state === 'left' ? `left ${durationText(seconds)} ago` : `${state} for ${durationText(seconds)}`;
}

/** The panel's shapes: the verdict's for a deadlock, and otherwise that of the processes' state. */
function WorldMark({ world, now }: Omit<CardProps, 'onOpen'>): JSX.Element {
  const { state, verdict } = world;
  const label = worldText(world, now);
  if (state === 'stuck') {
    return <Mark shape={<VerdictShape verdict={verdict} />} text={label} stuck />;
  }
  const waits = verdict === 'waiting' || verdict === 'deadlock';
  const of = state === 'left' ? state : waits ? 'blocked in recv' : verdict === 'running' ? verdict : 'idle';
  return <StateMark state={of} label={label} />;
}

function reasonText(world: SharedWorld, now: number): string {
  const { state, title, first, hung } = world;
  switch (state) {
    case 'stuck':
      return first ? `${title}: ${first}` : title;
    case 'waiting':
      return first || title;
    case 'unseen':
      return 'Silent: its kernel has ended or is held up, or the network is down.';
    case 'left':
      return '';
    default:
      return hung ? `${durationText(now - hung.time)} ago: ${hung.text.split('\n', 1)[0]}` : '';
  }
}

function shortText(world: SharedWorld): string {
  if (world.state === 'left') {
    return 'no longer shared';
  }
  const queued = world.queued ? ` · ${world.queued} queued` : '';
  return `${countsText(world)} · ${world.sent} sent${queued}`;
}
