import * as React from 'react';
import { bytesText, plural, same } from '../model/text';
import type { Judgement, Message, Near, Process } from '../model/types';

interface QueueProps {
  readonly process: Process;
  readonly judgement: Judgement | null;
}

/** The oldest messages of a process's inbox, with a search field. */
export function Queue({ process, judgement }: QueueProps): JSX.Element {
  const [search, setSearch] = React.useState('');
  const { messages, depth, bytes } = process;
  const found = messages.filter(message => contains(message, search));
  const listed = messages.length < depth ? `, the oldest ${messages.length} are listed` : '';
  return (
    <div className="sfm-Queue">
      <input
        type="search"
        className="sfm-Search"
        placeholder="Search: tag 3, src B …"
        aria-label={`Search in the inbox of ${process.name}`}
        value={search}
        onChange={event => setSearch(event.target.value)}
      />
      <p className="sfm-Dim" role="status">
        {depth === 0
          ? 'The inbox is empty.'
          : `${plural(depth, 'message')}, ${bytesText(bytes)}${listed}` +
            (search.trim() ? `; ${found.length} found` : '')}
      </p>
      <ol className="sfm-Messages" aria-label={`Inbox of ${process.name}`}>
        {found.map((message, index) => (
          <MessageItem key={index} message={message} near={nearOf(message, judgement)} />
        ))}
      </ol>
    </div>
  );
}

interface MessageProps {
  readonly message: Message;
  readonly near: Near | null;
}

const MessageItem = React.memo(
  function MessageItem({ message, near }: MessageProps): JSX.Element {
    const missed = new Set(near?.misses.map(miss => miss.name));
    return (
      <li className={near ? 'sfm-Message sfm-mod-near' : 'sfm-Message'}>
        <span className="sfm-Message-head">
          from <b>{message.src === null ? 'unknown' : String(message.src)}</b>
          <span className="sfm-Dim">
            {` ${bytesText(message.bytes)}${message.context_id ? `, in ${message.context_id}` : ''}`}
          </span>
        </span>
        <dl className="sfm-Attributes">
          {message.attributes.map(([name, value]) => (
            <div key={name} className={missed.has(name) ? 'sfm-mod-miss' : undefined}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {near && <p className="sfm-Near">Nearly fits: {missText(near)}</p>}
      </li>
    );
  },
  (a, b) => same(a.message, b.message) && same(a.near, b.near)
);

function missText({ misses }: Near): string {
  return misses
    .map(({ name, has, wants }) =>
      has === null ? `it has no ${name}` : `${name} is ${has}, not ${wants}`
    )
    .join('; ');
}

function nearOf(message: Message, judgement: Judgement | null): Near | null {
  return judgement?.near.find(near => same(near.message, message)) ?? null;
}

/** Whether every word of the search is in a message's sender, context or attributes. */
function contains({ src, context_id, attributes }: Message, search: string): boolean {
  const words = search.toLowerCase().split(/[\s=,:]+/).filter(Boolean);
  const text = [['src', src], ['context', context_id], ...attributes].flat().join(' ').toLowerCase();
  return words.every(word => text.includes(word));
}
