import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Store } from '../model/store';
import type { Name, Part, CodeLocation } from '../model/types';

/**
 * A widget that shows the store's state. It asks for its parts, and renders, only while it is
 * visible.
 */
export abstract class LiveWidget extends ReactWidget {
  constructor(store: Store, commands: CommandRegistry, parts: readonly Part[]) {
    super();
    this.store = store;
    this.commands = commands;
    this._parts = parts;
  }

  override dispose(): void {
    this._follow(false);
    super.dispose();
  }

  /** The content for the store's current state. */
  protected abstract content(): JSX.Element;

  protected render(): JSX.Element {
    return <Live subscribe={this._subscribe} version={this._now} content={this._content} />;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._follow(this.isVisible);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._follow(true);
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._follow(false);
  }

  protected override onBeforeDetach(msg: Message): void {
    this._follow(false);
    super.onBeforeDetach(msg);
  }

  /** Show the queue of the process with that uid. */
  protected readonly select = (uid: string | null): void => this.store.select(uid);

  protected readonly selectName = (name: Name): void =>
    this.select(this.store.named(name)?.uid ?? null);

  protected readonly jump = (location: CodeLocation): void => {
    void this.commands.execute(ID.jump, { location: { ...location } });
  };

  /** Render the current state, within this frame if it has not been drawn yet. */
  protected touch(): void {
    this._version++;
    this._touched?.();
  }

  private _follow(visible: boolean): void {
    if (visible === (this._need !== null)) {
      return;
    }
    if (visible) {
      this._need = this.store.need(this._parts);
      this.store.changed.connect(this.touch, this);
      this.touch();
    } else {
      this.store.changed.disconnect(this.touch, this);
      this._need?.dispose();
      this._need = null;
    }
  }

  protected readonly store: Store;
  protected readonly commands: CommandRegistry;
  private readonly _subscribe = (touched: () => void): (() => void) => {
    this._touched = touched;
    return () => {
      this._touched = null;
    };
  };
  private readonly _now = (): number => this._version;
  private readonly _content = (): JSX.Element => this.content();

  private readonly _parts: readonly Part[];
  private _need: IDisposable | null = null;
  private _version = 0;
  private _touched: (() => void) | null = null;
}

interface LiveProps {
  readonly subscribe: (touched: () => void) => () => void;
  readonly version: () => number;
  readonly content: () => JSX.Element;
}

/**
 * Renders at once. An update of Lumino's widget is a message, which React then handles
 * as a task: each step costs a frame that shows nothing new.
 */
function Live({ subscribe, version, content }: LiveProps): JSX.Element {
  React.useSyncExternalStore(subscribe, version);
  return content();
}
