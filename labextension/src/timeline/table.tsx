import * as React from 'react';
import { bytesText, locationText } from '../model/text';
import type { Flight, CodeLocation } from '../model/types';
import { LocationButton } from '../widgets/button';
import { lateText } from './details';
import type { Recording } from './recording';
import { useTicked } from './ticked';
import { sinceText, timeText } from './ticks';

/** The most messages that are listed. */
const ROWS = 100;

/** The last messages as a table, for users who cannot see the drawing or who need numbers. */
export function MessageTable(props: {
  readonly recording: Recording;
  /** Whether updates are paused. */
  readonly paused: boolean;
  readonly onJump: (location: CodeLocation) => void;
}): JSX.Element {
  const { recording, paused, onJump } = props;
  const read = React.useCallback(() => latest(recording), [recording]);
  const flights = useTicked(read, equal, paused);
  const nameOf = recording.name;
  return (
    <div className="sfm-Timeline-table" tabIndex={0} role="region" aria-label="Messages">
      <table>
        <caption>
          {flights.length === 0
            ? 'No messages yet'
            : `The last ${flights.length} of ${recording.flights} messages, the latest first`}
        </caption>
        <thead>
          <tr>
            {['Sent', 'From', 'To', 'Latency', 'Size', 'Attributes', 'Late', 'Lines'].map(text => (
              <th key={text} scope="col">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {flights.map(flight => (
            <MessageRow
              key={flight.id}
              flight={flight}
              begin={recording.begin}
              nameOf={nameOf}
              onJump={onJump}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface MessageRowProps {
  readonly flight: Flight;
  readonly begin: number;
  readonly nameOf: (uid: string) => string;
  readonly onJump: (location: CodeLocation) => void;
}

const MessageRow = React.memo(function MessageRow(props: MessageRowProps): JSX.Element {
  const { flight, begin, nameOf, onJump } = props;
  const { sent, received } = flight;
  const [src, dest] = [nameOf(flight.src), nameOf(flight.dest)];
  const { sent_at, received_at } = flight;
  const single = sent_at && received_at && locationText(sent_at) === locationText(received_at);
  const ends = single
    ? [[sent_at, `${src} and ${dest}`] as const]
    : [[sent_at, src] as const, [received_at, dest] as const];
  const links = ends.flatMap(([location, of]) => (location ? [{ location, of }] : []));
  return (
    <tr>
      <td>{sent === null ? 'not seen' : sinceText(sent - begin)}</td>
      <td>{src}</td>
      <td>{dest}</td>
      <td>
        {received === null
          ? 'not received'
          : sent === null
            ? ''
            : timeText(Math.max(0, received - sent))}
      </td>
      <td>{bytesText(flight.bytes)}</td>
      <td className="sfm-Timeline-values">
        {flight.attributes.map(([name, value]) => `${name}=${value}`).join(', ')}
      </td>
      <td>{flight.late && lateText(flight, nameOf)}</td>
      <td>
        {links.map(({ location, of }, i) => (
          <React.Fragment key={i}>
            {i > 0 && ' → '}
            <LocationButton location={location} of={of} onJump={onJump} />
          </React.Fragment>
        ))}
      </td>
    </tr>
  );
});

/** The latest messages first: those on their way, then by the time of their receipt. */
function latest({ complete, open }: Recording): Flight[] {
  const last = [complete, open].flatMap(flights =>
    Array.from({ length: Math.min(ROWS, flights.size) }, (_, i) => flights.at(flights.size - 1 - i))
  );
  const time = ({ sent, received }: Flight): number => sent ?? received ?? 0;
  return last
    .flatMap(flight => flight ?? [])
    .sort((a, b) => time(b) - time(a))
    .slice(0, ROWS);
}

function equal(a: readonly Flight[], b: readonly Flight[]): boolean {
  return a.length === b.length && a.every((flight, i) => flight === b[i]);
}
