import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import { plural } from '../model/text';
import type { World } from '../model/types';
import { dragCode } from '../notebook/code';
import { connectCode } from '../notebook/lines';
import { CommandButton } from './button';

interface WorldsProps {
  readonly worlds: readonly World[];
  readonly shown: string | null;
  readonly commands: CommandRegistry;
}

const OWNERS = { server: ' of the server', notebook: ' of a notebook', other: '' } as const;

/** The worlds of this user, the shown one marked, and what can be done with each. */
export const Worlds = React.memo(function Worlds(props: WorldsProps): JSX.Element {
  const { worlds, shown, commands } = props;
  return (
    <ul className="sfm-Worlds" aria-label="Worlds">
      {worlds.map(world => (
        <WorldItem
          key={world.world}
          world={world}
          shown={world.world === shown}
          commands={commands}
        />
      ))}
      {worlds.length === 0 && (
        <li className="sfm-World">
          <p>No world yet. Start engines here, or run this in a notebook:</p>
          <Code world={null} commands={commands} />
        </li>
      )}
    </ul>
  );
});

function WorldItem(props: {
  world: World;
  shown: boolean;
  commands: CommandRegistry;
}): JSX.Element {
  const { world, shown, commands } = props;
  const args = { world: world.world };
  const all = [ID.interrupt, ID.restart, ID.rescale, ID.stop];
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
          {all.map(id => (
            <CommandButton key={id} commands={commands} id={id} args={args} of={world.title} />
          ))}
        </span>
      </div>
      {world.cluster !== null && <Code world={world} commands={commands} />}
    </li>
  );
}

/** The code that connects a notebook: to be dragged into one, or put there by the button. */
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

/** Pixels that a pointer moves before it drags. */
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
