import type { LabIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import * as React from 'react';
import { locationText, same } from '../model/text';
import type { CodeLocation, Name } from '../model/types';

/** Shows a line of code. */
export type Jump = (location: CodeLocation) => void;

interface CommandButtonProps {
  readonly commands: CommandRegistry;
  readonly id: string;
  readonly args?: ReadonlyJSONObject;
  /** A text beside the icon; without it only a tooltip and screen readers have the label. */
  readonly text?: string;
  /** The command's object, if the command's label does not name it. */
  readonly of?: string;
}

/** A button that runs a command; it is enabled while the command is. */
export const CommandButton = React.memo(CommandButtonView, (a, b) => {
  const keys = ['commands', 'id', 'text', 'of'] as const;
  return keys.every(key => a[key] === b[key]) && same(a.args, b.args);
});

function CommandButtonView(props: CommandButtonProps): JSX.Element {
  const { commands, id, args = {}, text, of } = props;
  useChanges(commands, id);
  const icon = commands.icon(id, args) as LabIcon | undefined;
  const label = commands.label(id, args) + (of ? `: ${of}` : '');
  const caption = commands.caption(id, args);
  const toggleable = commands.isToggleable(id, args);
  return (
    <button
      type="button"
      className={text ? 'sfm-Button sfm-mod-text' : 'sfm-Button'}
      data-command={id}
      disabled={!commands.isEnabled(id, args)}
      title={text ? caption : `${label}\n${caption}`}
      aria-label={text ? undefined : label}
      aria-pressed={toggleable ? commands.isToggled(id, args) : undefined}
      onClick={event => {
        event.stopPropagation();
        void commands.execute(id, args);
      }}
    >
      {icon && <icon.react tag="span" className="sfm-Icon" />}
      {text}
    </button>
  );
}

/** Render again when the command has changed. */
function useChanges(commands: CommandRegistry, id: string): void {
  const [, count] = React.useReducer((changes: number) => changes + 1, 0);
  React.useEffect(() => {
    const update = (_: CommandRegistry, changed: CommandRegistry.ICommandChangedArgs): void => {
      if (changed.id === id) {
        count();
      }
    };
    commands.commandChanged.connect(update);
    return () => void commands.commandChanged.disconnect(update);
  }, [commands, id]);
}

/**
 * A code location; a click jumps to it, if that is possible. Read alone, the link says which process
 * is there.
 */
export function LocationButton(props: {
  location: CodeLocation;
  of: Name;
  onJump: Jump | undefined;
  tabIndex?: number;
}): JSX.Element {
  const { location, of, onJump, tabIndex } = props;
  const text = locationText(location);
  if (!onJump) {
    return <>{text}</>;
  }
  const inside = location.function ? `, in ${location.function}` : '';
  return (
    <button
      type="button"
      className="sfm-CodeLocation"
      tabIndex={tabIndex}
      aria-label={`${text}, ${of}`}
      title={`Jump to ${location.file}, line ${location.line}${inside}`}
      onClick={event => {
        event.stopPropagation();
        onJump(location);
      }}
    >
      {text}
    </button>
  );
}
