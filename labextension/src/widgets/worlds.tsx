import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import * as React from 'react';
import { ID } from '../commands/ids';
import { countsText, plural } from '../model/text';
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

const OWNERS = { server: ', of the server', notebook: '', other: '' } as const;

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
          <li className="sfm-World-none">
            <p>
              No world yet. A <dfn>world</dfn> is a group of processes that send each other messages:
              a notebook with its engines, or the processes of a program. Start engines here, or run
              this in a notebook:
            </p>
            <Code commands={commands} />
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
  const { title } = world;
  const args = { world: world.world };
  return (
    <li className="sfm-World" aria-current={shown || undefined} data-world={world.world}>
      <CommandButton commands={commands} id={ID.pin} args={args} of={title} />
      <span className="sfm-World-title" title={title}>
        {title}
      </span>
      <CommandButton commands={commands} id={ID.interrupt} args={args} of={title} />
      <button
        type="button"
        className="sfm-Button"
        aria-haspopup="menu"
        aria-label={`More: ${title}`}
        title={`More: ${title}`}
        onClick={event => openMenu(commands, world, event.currentTarget)}
      >
        <ellipsesIcon.react tag="span" className="sfm-Icon" />
      </button>
      <span className="sfm-World-counts">{countsText(world) + OWNERS[world.owner]}</span>
    </li>
  );
}

/** The menu of a world, below its button, which gets the focus back. */
function openMenu(commands: CommandRegistry, world: World, button: HTMLElement): void {
  const menu = new Menu({ commands });
  const args = { world: world.world };
  if (world.cluster !== null) {
    menu.addItem({ command: ID.insert, args });
    menu.addItem({ type: 'separator' });
  }
  for (const command of [ID.restart, ID.rescale, ID.stop]) {
    menu.addItem({ command, args });
  }
  const { left, bottom } = button.getBoundingClientRect();
  menu.aboutToClose.connect(() => {
    button.focus();
    // After the command has been run.
    requestAnimationFrame(() => menu.dispose());
  });
  menu.open(left, bottom, { forceX: false, forceY: false });
}

/** The code that starts engines: the user drags it into a notebook, or the button inserts it. */
function Code({ commands }: { readonly commands: CommandRegistry }): JSX.Element {
  const code = connectCode(null);
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
      <CommandButton commands={commands} id={ID.insert} args={NONE} />
    </div>
  );
}

const NONE = { world: null };

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
