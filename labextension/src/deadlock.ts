import { Notification } from '@jupyterlab/apputils';
import { deadlockKey } from './announcer';
import type { Store } from './model/store';
import { cut } from './model/text';

/** The most characters of a title in a notification; the panel has the explanation. */
const LONGEST = 130;

/**
 * Tell the user of a deadlock as the settings ask for: by a notification if no widget
 * shows it, or by opening the panel.
 */
export function followDeadlocks(
  store: Store,
  showPanel: () => void,
  revealPanel: () => void
): void {
  let known: string | null = null;
  let shown: string | null = null;
  store.judged.connect((_, diagnosis) => {
    const deadlock = diagnosis?.verdict === 'deadlock' ? diagnosis : null;
    const key = deadlock && deadlockKey(deadlock);
    if (key === known) {
      return;
    }
    known = key;
    if (shown !== null) {
      Notification.dismiss(shown);
      shown = null;
    }
    if (!deadlock || store.shows('diagnosis') || store.settings.deadlock === 'nothing') {
      return;
    }
    if (store.settings.deadlock === 'open') {
      revealPanel();
      return;
    }
    shown = Notification.warning(cut(deadlock.title, LONGEST), {
      autoClose: false,
      actions: [{ label: 'Why?', caption: 'Show the explanation', callback: showPanel }]
    });
  });
}
