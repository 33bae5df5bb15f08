import type { Store } from './model/store';
import { namesText } from './model/text';
import type { Diagnosis } from './model/types';

/**
 * Announces to a screen reader when the verdict on the shown world changes, and nothing else: a
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
    const key = diagnosis && verdictKey(diagnosis);
    if (key === this._key) {
      return;
    }
    const isOver = this._alert.textContent !== '';
    this._key = key;
    const deadlock = diagnosis?.verdict === 'deadlock';
    this._alert.textContent = deadlock ? [diagnosis.title, ...diagnosis.sentences].join(' ') : '';
    this._status.textContent = deadlock
      ? ''
      : `${isOver ? 'The deadlock is over. ' : ''}${diagnosis?.title ?? ''}`;
  }

  private _alert: HTMLElement;
  private _status: HTMLElement;
  private _key: string | null = null;
}

/** A key that is equal for two diagnoses with the same verdict on the world. */
export function verdictKey({ verdict, world, cycle, stuck }: Diagnosis): string {
  return verdict === 'deadlock'
    ? JSON.stringify([verdict, world, namesText(cycle), namesText(stuck)])
    : JSON.stringify([verdict, world]);
}

function region(role: string, live: string): HTMLElement {
  const node = document.createElement('div');
  node.className = 'sfm-Announcer';
  node.setAttribute('role', role);
  node.setAttribute('aria-live', live);
  document.body.appendChild(node);
  return node;
}
