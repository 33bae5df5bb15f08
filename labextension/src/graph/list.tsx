import * as React from 'react';
import { plural } from '../model/text';
import { Jump, LocationButton } from '../widgets/button';
import type { Graph } from './model';

/** The most sentences of a list; a longer one ends with the number of the others. */
const LONGEST = 200;

/** The graph as a list of sentences, for screen readers and for users who prefer text. */
export function WaitList(props: {
  readonly graph: Graph;
  readonly onJump?: Jump;
}): JSX.Element {
  const { graph, onJump } = props;
  const [open, setOpen] = React.useState(false);
  const { lines } = graph;
  const nodes = new Map(graph.nodes.map(node => [node.key, node]));
  const title = lines.length ? `As text: ${plural(lines.length, 'wait')}` : 'Nobody waits';
  return (
    <details
      className="sfm-Graph-list"
      open={open}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{title}</summary>
      {open && (
        <ul>
          {lines.slice(0, LONGEST).map(line => {
            const from = nodes.get(line.from);
            return (
              <li key={line.key}>
                {`${from?.name} waits for ${nodes.get(line.to)?.name}: `}
                <code>{line.label}</code>
                {line.cycle && ' (in the deadlock)'}
                {from?.where && (
                  <>
                    {', '}
                    <LocationButton location={from.where} of={from.name} onJump={onJump} />
                  </>
                )}
              </li>
            );
          })}
          {lines.length > LONGEST && <li>{`and ${lines.length - LONGEST} more`}</li>}
        </ul>
      )}
    </details>
  );
}
