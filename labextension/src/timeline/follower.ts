/**
 * Tells what has changed in a map since the last comparison: an entry is new, is another object, or is
 * gone. One pass over the map's values, without a look-up or an allocation for those that are as
 * they were: a second map would take twenty times as long, ten times a second. `same` tells whether
 * two objects stand for one entry.
 */
export class Follower<T extends object> {
  constructor(private readonly _same: (a: T, b: T) => boolean) {}

  get size(): number {
    return this._values.length - this._start;
  }

  /** `change` is called with what was and what is now; null where there is none. */
  compare(map: ReadonlyMap<string, T>, change: (old: T | null, now: T | null) => void): void {
    const values = this._values;
    const known = values.length;
    let read = this._start;
    let write = read;
    for (const value of map.values()) {
      while (read < known && values[read] !== value && !this._same(values[read]!, value)) {
        change(values[read++]!, null);
        // The oldest ones go first: nothing needs to move for them.
        if (write === this._start) {
          this._start = write = read;
        }
      }
      const old = read < known ? values[read++]! : null;
      if (old !== value) {
        change(old, value);
      }
      if (old !== value || read - 1 !== write) {
        values[write] = value;
      }
      write++;
    }
    while (read < known) {
      change(values[read++]!, null);
    }
    values.length = write;
    if (this._start > values.length / 2) {
      values.splice(0, this._start);
      this._start = 0;
    }
  }

  private readonly _values: T[] = [];
  /** Those before it are gone. */
  private _start = 0;
}
