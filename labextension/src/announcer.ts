import type { Store } from './model/store';
import { namesText } from './model/text';
import type { Diagnosis } from './model/types';

/**
 * Announces a deadlock of the shown world to a screen reader, and its end, and nothing else: a
 * drawing that changes ten times a second cannot be a live region.
 */
export class Announcer {
  constructor(store: Store) {
    this._alert = region('alert', 'assertive');
    this._status = region('status', 'polite');
    store.judged.connect((_, diagnosis) => {
      // If no widget shows it, a notification announces it.
      this._judge(store.shows('diagnosis') ? diagnosis : null);
    });
  }

  private _judge(diagnosis: Diagnosis | null): void {
    const deadlock = diagnosis?.verdict === 'deadlock' ? diagnosis : null;
    const key = deadlock && deadlockKey(deadlock);
    if (key === this._key) {
      return;
    }
    this._key = key;
    this._alert.textContent = deadlock ? [deadlock.title, ...deadlock.sentences].join(' ') : '';
    this._status.textContent =
      deadlock || !diagnosis ? '' : `The deadlock is over. ${diagnosis.title}`;
  }

  private _alert: HTMLElement;
  private _status: HTMLElement;
  private _key: string | null = null;
}

/** A key that is equal for two diagnoses of the same deadlock. */
export function deadlockKey({ world, cycle, stuck }: Diagnosis): string {
  return JSON.stringify([world, namesText(cycle), namesText(stuck)]);
}

function region(role: string, live: string): HTMLElement {
  const node = document.createElement('div');
  node.className = 'sfm-Announcer';
  node.setAttribute('role', role);
  node.setAttribute('aria-live', live);
  document.body.appendChild(node);
  return node;
}
