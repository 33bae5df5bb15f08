import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import { plural } from '../model/text';
import type { World } from '../model/types';
import { dragCode } from '../notebook/code';
import { connectCode } from '../notebook/lines';
import { CommandButton } from './button';
import { Arrow } from './section';

interface WorldsProps {
  readonly worlds: readonly World[];
  readonly shown: string | null;
  /** The kernel of the notebook that has the focus. */
  readonly kernel: string | null;
  readonly commands: CommandRegistry;
  /** Whether the user has opened the list of other worlds. */
  readonly open: boolean;
  readonly onToggle: () => void;
}

const OWNERS = { server: ' of the server', notebook: ' of a notebook', other: '' } as const;

/**
 * The worlds of this user, the shown one marked, and their commands. First the notebook's, the
 * shown one, and those that the panel started; the others are folded, since they belong to other
 * programs.
 */
export const Worlds = React.memo(function Worlds(props: WorldsProps): JSX.Element {
  const { worlds, shown, commands, open, onToggle } = props;
  const [first, others] = byInterest(props);
  const item = (world: World): JSX.Element => (
    <WorldItem
      key={world.world}
      world={world}
      shown={world.world === shown}
      commands={commands}
    />
  );
  return (
    <>
      <ul className="sfm-Worlds" aria-label="Worlds">
        {(first.length ? first : others).map(item)}
        {worlds.length === 0 && (
          <li className="sfm-World">
            <p>No world yet. Start engines here, or run this in a notebook:</p>
            <Code world={null} commands={commands} />
          </li>
        )}
      </ul>
      {first.length > 0 && others.length > 0 && (
        <>
          <button type="button" className="sfm-Fold" aria-expanded={open} onClick={onToggle}>
            <Arrow open={open} />
            {plural(others.length, 'other world')} of yours
          </button>
          {open && (
            <ul className="sfm-Worlds" aria-label="Other worlds">
              {others.map(item)}
            </ul>
          )}
        </>
      )}
    </>
  );
});

/** The worlds that come first, beginning with the notebook's; and the others. */
function byInterest({ worlds, shown, kernel }: WorldsProps): [World[], World[]] {
  const rank = ({ world, kernels, owner }: World): number => {
    if (kernel !== null && kernels.includes(kernel)) {
      return 0;
    }
    return world === shown ? 1 : owner === 'server' ? 2 : 3;
  };
  const sorted = [...worlds].sort((a, b) => rank(a) - rank(b));
  return [sorted.filter(world => rank(world) < 3), sorted.filter(world => rank(world) === 3)];
}

function WorldItem(props: {
  world: World;
  shown: boolean;
  commands: CommandRegistry;
}): JSX.Element {
  const { world, shown, commands } = props;
  const args = { world: world.world };
  const actions = [ID.interrupt, ID.restart, ID.rescale, ID.stop];
  return (
    <li className="sfm-World" aria-current={shown || undefined} data-world={world.world}>
      <div className="sfm-World-head">
        <CommandButton commands={commands} id={ID.pin} args={args} of={world.title} />
        <span className="sfm-World-title" title={world.world}>
          {world.title}
        </span>
      </div>
      <div className="sfm-World-body">
        <span className="sfm-Dim">{countsText(world)}</span>
        <span className="sfm-Tools">
          {actions.map(id => (
            <CommandButton key={id} commands={commands} id={id} args={args} of={world.title} />
          ))}
        </span>
      </div>
      {world.cluster !== null && <Code world={world} commands={commands} />}
    </li>
  );
}

/** The code that connects a notebook: the user drags it into one, or the button inserts it. */
function Code(props: { world: World | null; commands: CommandRegistry }): JSX.Element {
  const { world, commands } = props;
  const code = connectCode(world);
  return (
    <div className="sfm-Code">
      <pre
        title="Drag this into a notebook"
        onPointerDown={event => {
          if (event.button === 0) {
            event.preventDefault();
            startDrag(code, event.clientX, event.clientY);
          }
        }}
      >
        {code}
      </pre>
      <CommandButton
        commands={commands}
        id={ID.insert}
        args={{ world: world?.world ?? null }}
        of={world?.title}
      />
    </div>
  );
}

/** Pixels that a pointer moves before a drag begins. */
const FAR = 5;

function startDrag(code: string, x: number, y: number): void {
  const end = (): void => {
    document.removeEventListener('pointermove', move, true);
    document.removeEventListener('pointerup', end, true);
  };
  const move = (event: PointerEvent): void => {
    if (Math.hypot(event.clientX - x, event.clientY - y) >= FAR) {
      end();
      void dragCode(code, event.clientX, event.clientY);
    }
  };
  document.addEventListener('pointermove', move, true);
  document.addEventListener('pointerup', end, true);
}

function countsText({ engines, owner, running, blocked, dead }: World): string {
  const counts = [[running, 'running'], [blocked, 'blocked'], [dead, 'dead']] as const;
  const parts = counts.filter(([count]) => count > 0).map(pair => pair.join(' '));
  return [plural(engines, 'engine') + OWNERS[owner], ...parts].join(', ');
}
