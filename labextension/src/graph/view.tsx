import * as React from 'react';
import type { Diagnosis, Name, Snapshot } from '../model/types';
import type { Jump } from '../widgets/button';
import { layoutOf, neighbour } from './layout';
import { Lines } from './lines';
import { WaitList } from './list';
import { graphOf, Node, summed } from './model';
import { MemoNode } from './node';
import { routesOf } from './route';
import { useWidth } from './size';

const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1]
};
const SCALES = [0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2];

export interface WaitGraphProps {
  readonly diagnosis: Diagnosis;
  readonly snapshot: Snapshot | null;
  /** A process was picked, by click or Enter. */
  readonly onSelect: (name: Name) => void;
  readonly onJump?: Jump;
}

/**
 * The wait-for graph. Tab moves to a process, arrows to the next one, Enter selects it, J jumps to
 * the line where it is blocked, + - 0 change the size.
 */
export function WaitGraph(props: WaitGraphProps): JSX.Element {
  const { diagnosis, snapshot, onSelect, onJump } = props;
  const outer = React.useRef<HTMLDivElement>(null);
  const svg = React.useRef<SVGSVGElement>(null);
  const width = useWidth(outer);
  const [open, setOpen] = React.useState<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = React.useState<string | null>(null);
  const [scale, setScale] = React.useState(1);

  const complete = graphOf(diagnosis, snapshot);
  const graph = summed(complete, open);
  // The victims of a deadlock are near the processes they wait for; otherwise only names count.
  const tied = graph.ring.length > 0 ? graph.lines.map(line => line.key) : [];
  const shape = [...graph.nodes.map(shapeOf), ...graph.ring, ...tied].join('\n');
  const layout = useSame(shape, width, () => layoutOf(graph, width - 2));
  const waits = graph.lines.map(line => `${line.key} ${line.cycle} ${line.label}`).join('\n');
  const routes = useSame(waits, layout, () => routesOf(graph.lines, layout));
  const nodes = new Map(graph.nodes.map(node => [node.key, node]));
  const names = useSame(graph.nodes.map(node => node.key).join(), null, () => {
    const texts = new Map(graph.nodes.map(node => [node.key, String(node.name)]));
    return (key: string): string => texts.get(key) ?? key;
  });
  const victimKeys = graph.nodes.filter(node => node.role === 'victim').map(node => node.key);
  const victims = useSame(victimKeys.join(), null, () => new Set(victimKeys));
  const current = focused && nodes.has(focused) ? focused : (graph.nodes[0]?.key ?? null);

  // The memoised nodes keep the first callback, so it reads the current state when it is called.
  const latest = React.useRef(onSelect);
  latest.current = onSelect;
  const pick = React.useCallback((node: Node): void => {
    if (node.members === 1) {
      latest.current(node.name);
      return;
    }
    setOpen(old => {
      const keys = new Set(old);
      if (!keys.delete(node.key)) {
        keys.add(node.key);
      }
      return keys;
    });
  }, []);

  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || !current) {
      return;
    }
    const node = nodes.get(current);
    const arrow = ARROWS[event.key];
    if (arrow) {
      const next = neighbour(layout.boxes, current, ...arrow);
      const element = next && svg.current?.querySelector(`[data-key=${CSS.escape(next)}]`);
      if (element instanceof SVGElement) {
        element.focus();
      }
    } else if ((event.key === 'Enter' || event.key === ' ') && node) {
      pick(node);
    } else if (event.key.toLowerCase() === 'j' && node?.where) {
      onJump?.(node.where);
    } else if ('+=-0'.includes(event.key)) {
      setScale(event.key === '0' ? 1 : scaled(scale, event.key === '-' ? -1 : 1));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const sizes = [
    ['Smaller', '−', scaled(scale, -1)],
    ['Larger', '+', scaled(scale, 1)],
    ['Original size', '1:1', 1]
  ] as const;
  const large = layout.height > 480 || layout.compact || scale !== 1;
  return (
    <div className="sfm-Graph" ref={outer}>
      {large && (
        <div className="sfm-Graph-tools" role="group" aria-label="Size of the graph">
          {sizes.map(([label, text, size]) => (
            <button
              key={label}
              type="button"
              className="sfm-Button"
              title={label}
              aria-label={label}
              onClick={() => setScale(size)}
            >
              {text}
            </button>
          ))}
        </div>
      )}
      <div className="sfm-Graph-scroll">
        {width > 0 && (
          <svg
            ref={svg}
            role="group"
            aria-label={`Who waits for whom. ${diagnosis.title}`}
            width={layout.width * scale}
            height={layout.height * scale}
            viewBox={`0 0 ${layout.width} ${layout.height}`}
            onKeyDown={onKeyDown}
          >
            <Lines routes={routes} victims={victims} current={focused} nameOf={names} />
            {graph.nodes.map(node => {
              const box = layout.boxes.get(node.key);
              return (
                box && (
                  <MemoNode
                    key={node.key}
                    node={node}
                    box={box}
                    compact={layout.compact}
                    current={node.key === current}
                    onFocus={setFocused}
                    onPick={pick}
                  />
                )
              );
            })}
          </svg>
        )}
      </div>
      <WaitList graph={complete} onJump={onJump} />
    </div>
  );
}

function scaled(scale: number, by: 1 | -1): number {
  return SCALES[SCALES.indexOf(scale) + by] ?? scale;
}

/** Everything that a node's position depends on. */
function shapeOf({ key, role, members }: Node): string {
  return `${key} ${role} ${members > 1}`;
}

/** A value that is made again only when the key of its contents has changed. */
function useSame<T>(key: string, other: unknown, make: () => T): T {
  // `make` closes over what the keys describe.
  return React.useMemo(make, [key, other]);
}
