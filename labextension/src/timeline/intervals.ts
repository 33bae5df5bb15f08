/** The number of neighbours in a block, for which the latest end is stored. */
const BLOCK = 64;

/**
 * Intervals of time, sorted by their begin. Most are added at the end, which costs O(1), and found
 * by binary search; blocks that ended before the requested time are skipped.
 */
export class Intervals<T> {
  constructor(
    private readonly _begin: (item: T) => number,
    private readonly _end: (item: T) => number
  ) {}

  get size(): number {
    return this._items.length;
  }

  /** The index of the first interval that begins after a time. */
  after(time: number): number {
    let low = 0;
    let high = this._items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this._begin(this._items[middle]!) <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The interval at an index, in the order of their begin. */
  at(index: number): T | undefined {
    return this._items[index];
  }

  add(item: T): void {
    const begin = this._begin(item);
    const last = this._items.at(-1);
    if (last === undefined || this._begin(last) <= begin) {
      this._items.push(item);
      this._valid = Math.min(this._valid, Math.floor((this._items.length - 1) / BLOCK));
    } else {
      const index = this.after(begin);
      this._items.splice(index, 0, item);
      this._valid = Math.min(this._valid, Math.floor(index / BLOCK));
    }
  }

  /** The index of an item; -1 if it is not included. */
  indexOf(item: T): number {
    const begin = this._begin(item);
    for (let i = this.after(begin) - 1; i >= 0; i--) {
      const other = this._items[i]!;
      if (other === item) {
        return i;
      }
      if (this._begin(other) < begin) {
        break;
      }
    }
    return -1;
  }

  delete(item: T): void {
    const index = this.indexOf(item);
    if (index >= 0) {
      this._items.splice(index, 1);
      this._valid = Math.min(this._valid, Math.floor(index / BLOCK));
    }
  }

  deleteAll(items: ReadonlySet<T>): void {
    this._items = this._items.filter(item => !items.has(item));
    this._valid = 0;
  }

  /** The intervals that overlap [begin, end], by their begin. */
  visit(begin: number, end: number, take: (item: T) => void): void {
    const stop = this.after(end);
    this._note();
    for (let block = 0; block * BLOCK < stop; block++) {
      if (this._latest[block]! < begin) {
        continue;
      }
      const limit = Math.min(stop, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < limit; i++) {
        const item = this._items[i]!;
        if (this._end(item) >= begin) {
          take(item);
        }
      }
    }
  }

  private _note(): void {
    const blocks = Math.ceil(this._items.length / BLOCK);
    for (let block = this._valid; block < blocks; block++) {
      let latest = -Infinity;
      const limit = Math.min(this._items.length, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < limit; i++) {
        latest = Math.max(latest, this._end(this._items[i]!));
      }
      this._latest[block] = latest;
    }
    this._valid = blocks;
  }

  private _items: T[] = [];
  private readonly _latest: number[] = [];
  /** The latest ends of the blocks before this one are stored. */
  private _valid = 0;
}
