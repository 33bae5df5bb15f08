import * as React from 'react';
import { cut, locationText, same } from '../model/text';
import { StateShape } from '../widgets/shapes';
import type { Box } from './layout';
import { Node, statusText } from './model';

interface NodeProps {
  readonly node: Node;
  readonly box: Box;
  readonly compact: boolean;
  /** Whether Tab moves to this node. */
  readonly current: boolean;
  readonly onFocus: (key: string) => void;
  readonly onPick: (node: Node) => void;
}

/** A process: a symbol for its state, its name, and its verdict in the diagnosis. */
function NodeView(props: NodeProps): JSX.Element {
  const { node, box, compact, current, onFocus, onPick } = props;
  const { width, height } = box;
  const several = node.members > 1;
  const status = several ? '' : statusText(node);
  const classes = [
    'sfm-Graph-node',
    `sfm-mod-${node.role ?? node.verdict ?? 'unknown'}`,
    ...(several ? ['sfm-mod-several'] : [])
  ];
  // A summary has no second line: its name is in the middle.
  const middle = compact || several;
  return (
    <g
      className={classes.join(' ')}
      transform={`translate(${box.x - width / 2} ${box.y - height / 2})`}
      role="button"
      aria-label={labelOf(node, status)}
      tabIndex={current ? 0 : -1}
      data-key={node.key}
      onFocus={() => onFocus(node.key)}
      onClick={() => onPick(node)}
    >
      <title>{tipOf(node, status)}</title>
      {several && <rect className="sfm-Graph-back" x={4} y={4} {...{ width, height }} rx={6} />}
      <rect className="sfm-Graph-box" {...{ width, height }} rx={6} />
      {node.state && (
        <svg x={compact ? 5 : 9} y={middle ? height / 2 - 6 : 8} width={12} height={12}>
          <StateShape state={node.state} stuck={node.verdict === 'stuck'} />
        </svg>
      )}
      <svg x={compact ? 20 : 27} width={width - (compact ? 23 : 32)} height={height}>
        <text className="sfm-Graph-name" y={middle ? height / 2 + 4.5 : 18.5}>
          {cut(String(node.name), compact ? 5 : 11)}
        </text>
      </svg>
      {!middle && (
        <text className="sfm-Graph-status" x={9} y={36}>
          {status}
        </text>
      )}
    </g>
  );
}

/** Most nodes are unchanged at each update. */
export const MemoNode = React.memo(NodeView, (a, b) => {
  const keys = ['key', 'state', 'verdict', 'text', 'role', 'members'] as const;
  return (
    keys.every(key => a.node[key] === b.node[key]) &&
    same(a.node.where, b.node.where) &&
    a.box === b.box &&
    a.compact === b.compact &&
    a.current === b.current &&
    a.onFocus === b.onFocus &&
    a.onPick === b.onPick
  );
});

function labelOf(node: Node, status: string): string {
  if (node.members > 1) {
    return `${node.name}: ${node.text}. Enter shows them one by one.`;
  }
  const role = node.role === 'cycle' ? ', part of the deadlock' : '';
  return `${node.name}: ${status}${role}. ${node.text}`;
}

function tipOf(node: Node, status: string): string {
  const location = node.where ? `\n${locationText(node.where)}` : '';
  const head = node.members > 1 ? String(node.name) : `${node.name}: ${status}`;
  return `${head}\n${node.text}${location}`.trim();
}
