import * as React from 'react';

/** Milliseconds between two updates: nobody can read a list that changes ten times a second. */
const TICK = 1000;

/** What `read` returns, once a second; the former object if it is the same, and while paused. */
export function useTicked<T>(read: () => T, same: (a: T, b: T) => boolean, paused: boolean): T {
  const [value, setValue] = React.useState(read);
  React.useEffect(() => {
    if (paused) {
      return;
    }
    const update = (): void =>
      setValue(old => {
        const now = read();
        return same(now, old) ? old : now;
      });
    update();
    const timer = setInterval(update, TICK);
    return () => clearInterval(timer);
  }, [read, same, paused]);
  return value;
}
