import { ReactWidget } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';
import type { Store } from './model/store';
import { Counts, countsText, partsOf, plural } from './model/text';
import { StateShape } from './widgets/shapes';

/** The running, blocked and ended engines of the shown world; of all worlds if none is shown. */
export class StatusItem extends ReactWidget {
  constructor(store: Store, onClick: () => void) {
    super();
    this._store = store;
    this._onClick = onClick;
    this.addClass('sfm-Status');
    store.changed.connect(this._check, this);
  }

  /** Whether there are engines to count. */
  get active(): boolean {
    return this._store.worlds.length > 0;
  }

  get activeChanged(): ISignal<this, void> {
    return this._activeChanged;
  }

  override dispose(): void {
    this._store.changed.disconnect(this._check, this);
    super.dispose();
  }

  protected render(): JSX.Element {
    const { world, worlds } = this._store;
    const counts = world ?? total(worlds);
    const name = world?.title ?? plural(worlds.length, 'world');
    const parts = partsOf(counts);
    const text = countsText(counts);
    return (
      <button
        type="button"
        className="sfm-Status-button"
        title={`${name}: ${text}. Click for the SFM panel`}
        onClick={this._onClick}
      >
        <span>SFM</span>
        {parts.map(([state, count, word]) => (
          <span key={word} className={`sfm-Status-${word}`}>
            <StateShape state={state} />
            {count} <span className="sfm-Status-word">{word}</span>
          </span>
        ))}
      </button>
    );
  }

  private _check(): void {
    const { world, worlds } = this._store;
    const { engines, running, blocked, ended } = world ?? total(worlds);
    const key = JSON.stringify([world?.title, worlds.length, engines, running, blocked, ended]);
    if (key !== this._key) {
      this._key = key;
      this._activeChanged.emit();
      this.update();
    }
  }

  private _store: Store;
  private _onClick: () => void;
  private _key = '';
  private _activeChanged = new Signal<this, void>(this);
}

function total(worlds: readonly Counts[]): Counts {
  const sum = { engines: 0, running: 0, blocked: 0, ended: 0 };
  for (const world of worlds) {
    sum.engines += world.engines;
    sum.running += world.running;
    sum.blocked += world.blocked;
    sum.ended += world.ended;
  }
  return sum;
}
