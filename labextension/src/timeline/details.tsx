import * as React from 'react';
import { bytesText, locationText } from '../model/text';
import type { Flight, CodeLocation, Span } from '../model/types';
import { LocationButton } from '../widgets/button';
import { isFlight } from './chart';
import { sinceText, timeText } from './ticks';

interface DetailsProps {
  readonly chosen: Flight | Span;
  readonly nameOf: (uid: string) => string;
  /** The start of the run, from which times count. */
  readonly begin: number;
  readonly onJump: (location: CodeLocation) => void;
  readonly onClose: () => void;
}

/** The details of the chosen message or state. */
export function Details(props: DetailsProps): JSX.Element {
  const { chosen, nameOf, onClose } = props;
  const title = titleOf(chosen, nameOf);
  return (
    <section className="sfm-Timeline-details" aria-label="Chosen" aria-live="polite">
      <div className="sfm-Timeline-details-head">
        <h3>{title}</h3>
        <button
          type="button"
          className="sfm-Button"
          title="Close"
          aria-label="Close"
          onClick={onClose}
        >
          ✕
        </button>
      </div>
      {isFlight(chosen) ? (
        <OfFlight {...props} flight={chosen} />
      ) : (
        <OfSpan {...props} span={chosen} />
      )}
    </section>
  );
}

/** The item's name, in one line. */
function titleOf(item: Flight | Span, nameOf: (uid: string) => string): string {
  return isFlight(item)
    ? `Message ${item.number} from ${nameOf(item.src)} to ${nameOf(item.dest)}`
    : `${nameOf(item.uid)}: ${item.state}`;
}

/** The tooltip of an item: its name and some details. */
export function hintOf(item: Flight | Span, nameOf: (uid: string) => string): string {
  const lines = [titleOf(item, nameOf)];
  if (isFlight(item)) {
    lines.push(...item.attributes.map(([name, value]) => `${name}=${value}`));
    if (item.late) {
      lines.push(lateText(item, nameOf));
    }
  } else {
    lines.push(item.end === null ? 'it lasts' : `for ${timeText(item.end - item.begin)}`);
    if (item.where) {
      lines.push(locationText(item.where));
    }
  }
  return lines.join('\n');
}

function OfFlight(props: DetailsProps & { flight: Flight }): JSX.Element {
  const { flight, nameOf, begin, onJump } = props;
  const { sent, received, sent_at, received_at } = flight;
  const event = (
    time: number | null,
    unknown: string,
    location: CodeLocation | null,
    uid: string
  ): JSX.Element => (
    <>
      {time === null ? unknown : sinceText(time - begin)}
      {location && (
        <>
          {', '}
          <LocationButton location={location} of={nameOf(uid)} onJump={onJump} />
        </>
      )}
    </>
  );
  return (
    <dl>
      <Fact name="Sent">{event(sent, 'not seen', sent_at, flight.src)}</Fact>
      <Fact name="Received">{event(received, 'not yet', received_at, flight.dest)}</Fact>
      {sent !== null && received !== null && (
        <Fact name="Latency">{timeText(Math.max(0, received - sent))}</Fact>
      )}
      <Fact name="Size">{bytesText(flight.bytes)}</Fact>
      {flight.late && <Fact name="Late">{lateText(flight, nameOf)}</Fact>}
      {flight.attributes.map(([name, value]) => (
        <Fact key={name} name={name} code>
          <code>{value}</code>
        </Fact>
      ))}
    </dl>
  );
}

function OfSpan(props: DetailsProps & { span: Span }): JSX.Element {
  const { span, nameOf, begin, onJump } = props;
  return (
    <dl>
      <Fact name="From">{sinceText(span.begin - begin)}</Fact>
      {/* A growing time would be read aloud again and again. */}
      <Fact name="For">{span.end === null ? 'it lasts' : timeText(span.end - span.begin)}</Fact>
      {span.where && (
        <Fact name="At">
          <LocationButton location={span.where} of={nameOf(span.uid)} onJump={onJump} />
        </Fact>
      )}
    </dl>
  );
}

export function lateText(flight: Flight, nameOf: (uid: string) => string): string {
  const { late, cost, src, dest } = flight;
  const [slow, waited] = late === 'sender' ? [src, dest] : [dest, src];
  return `${nameOf(waited)} waited ${timeText(cost)} for ${nameOf(slow)}, the ${late}`;
}

function Fact(props: { name: string; code?: boolean; children: React.ReactNode }): JSX.Element {
  return (
    <div className="sfm-Timeline-fact">
      <dt>{props.code ? <code>{props.name}</code> : props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}
