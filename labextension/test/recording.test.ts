import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Density } from '../src/timeline/density';
import { Follower } from '../src/timeline/follower';
import { Intervals } from '../src/timeline/intervals';
import { flightBegin, flightEnd, Recording } from '../src/timeline/recording';
import { random } from './random';
import { all, flight, ROWS, FakeSource } from './source';

describe('intervals', () => {
  type Item = { begin: number; end: number };

  it('find the same as a search through all items, after additions and deletions', () => {
    const next = random(2);
    const items = new Intervals<Item>(
      item => item.begin,
      item => item.end
    );
    const known = new Set<Item>();
    for (let round = 0; round < 3000; round++) {
      const begin = round / 10 - (next() < 0.2 ? next() * 50 : 0);
      const item = { begin, end: begin + (next() < 0.05 ? 200 : next()) };
      items.add(item);
      known.add(item);
      if (next() < 0.3) {
        const gone = [...known][Math.floor(next() * known.size)]!;
        items.delete(gone);
        known.delete(gone);
        assert.equal(items.indexOf(gone), -1);
      }
      if (round % 50 === 0) {
        const from = next() * 300;
        const to = from + next() * 20;
        const found = new Set<Item>();
        items.visit(from, to, item => void found.add(item));
        const expected = [...known].filter(item => item.begin <= to && item.end >= from);
        assert.deepEqual(found, new Set(expected));
        assert.equal(items.size, known.size);
      }
    }
    const half = new Set([...known].slice(0, known.size / 2));
    items.deleteAll(half);
    assert.deepEqual(new Set(all(items)), new Set([...known].filter(item => !half.has(item))));
  });

  it('keep the order of their begin, and find the index of each item', () => {
    const items = new Intervals<Item>(
      item => item.begin,
      item => item.end
    );
    const same = [1, 2, 3].map(end => ({ begin: 5, end }));
    [{ begin: 7, end: 8 }, ...same, { begin: 1, end: 9 }].forEach(item => items.add(item));
    assert.deepEqual(
      all(items).map(item => item.begin),
      [1, 5, 5, 5, 7]
    );
    same.forEach(item => assert.equal(items.at(items.indexOf(item)), item));
    assert.equal(items.after(5), 4);
  });
});

describe('follower', () => {
  it('reports each change of a map once', () => {
    const next = random(3);
    type Entry = { key: string; version: number };
    const map = new Map<string, Entry>();
    const seen = new Map<string, Entry>();
    const follower = new Follower<Entry>((a, b) => a.key === b.key);
    for (let round = 0; round < 2000; round++) {
      for (let i = 0; i < 5; i++) {
        // The oldest ones go mostly, as a history forgets; now and then any.
        const keys = [...map.keys()];
        const chance = next();
        const some = keys[Math.floor(next() * keys.length)];
        if (chance < 0.3 && keys.length > 30) {
          map.delete(keys[0]!);
        } else if (chance < 0.35 && some) {
          map.delete(some);
        } else if (chance < 0.6 && some) {
          map.set(some, { key: some, version: round });
        } else {
          const key = `k${Math.floor(next() * 500)}`;
          map.set(key, { key, version: round });
        }
      }
      follower.compare(map, (old, now) => {
        if (old) {
          assert.equal(seen.get(old.key), old);
          seen.delete(old.key);
        }
        if (now) {
          assert.ok(!seen.has(now.key));
          seen.set(now.key, now);
        }
      });
      assert.deepEqual(seen, map);
      assert.equal(follower.size, map.size);
      follower.compare(map, () => assert.fail('nothing has changed'));
    }
    map.clear();
    follower.compare(map, (_, now) => assert.equal(now, null));
    assert.equal(follower.size, 0);
  });
});

describe('density', () => {
  it('counts all, in few bins, whatever the length', () => {
    const next = random(4);
    const density = new Density();
    const times: number[] = [];
    for (let i = 0; i < 5000; i++) {
      const time = 1.7e9 + i * 0.01 + next();
      times.push(time);
      density.add(time, i % 5 === 0);
    }
    const sum = (from = 1.7e9): [number, number, number] => {
      let [bins, count, late] = [0, 0, 0];
      density.visit((begin, all, some) => {
        bins++;
        count += all;
        late += some;
        assert.ok(begin >= from - density.width && begin <= from + 51);
      });
      return [bins, count, late];
    };
    assert.deepEqual(sum().slice(1), [5000, 1000]);
    assert.ok(sum()[0] <= 301);
    times.slice(0, 2500).forEach((time, i) => density.remove(time, i % 5 === 0));
    assert.deepEqual(sum().slice(1), [2500, 500]);
    times.slice(2500).forEach((time, i) => density.remove(time, i % 5 === 0));
    assert.deepEqual(sum(), [0, 0, 0]);
    density.add(2e9, false);
    assert.ok(density.width < 1e-5, 'nothing is left that would need wider bins');
    assert.equal(sum(2e9)[1], 1);
  });
});

describe('recording', () => {
  it('grows with each update', () => {
    const source = new FakeSource();
    const recording = new Recording();
    source.span('a', 1, null);
    source.flight('1', 2, null);
    const first = recording.update(source);
    assert.ok(first.all);
    assert.deepEqual([recording.complete.size, recording.open.size], [0, 1]);
    assert.equal(recording.name('b'), 'b');

    source.flight('1', 2, 4);
    source.span('a', 1, 3);
    source.span('a', 3, null, 'blocked in recv');
    const second = recording.update(source);
    assert.deepEqual(
      second.flights.map(item => item.id),
      ['1']
    );
    assert.equal(second.all, false);
    assert.equal(second.spans.get('a'), 2, 'it was drawn up to 2 before');
    assert.deepEqual([recording.complete.size, recording.open.size], [1, 0]);
    assert.equal(all(recording.spansOf('a')).length, 2);
    assert.equal(recording.update(source).any, false);
  });

  it('forgets the entries that the maps forget', () => {
    const source = new FakeSource();
    const recording = new Recording();
    for (let i = 0; i < 100; i++) {
      source.flight(`${i}`, i, i + 1);
      source.span('a', i, i + 1);
    }
    recording.update(source);
    for (let i = 0; i < 60; i++) {
      source.flights.delete(`${i}`);
      source.spans.delete(`a ${i}`);
    }
    source.begin = 70;
    recording.update(source);
    assert.deepEqual([recording.complete.size, recording.spansOf('a').size], [40, 40]);
    assert.deepEqual(recording.domain, { begin: 60, end: 100 });
  });

  it('begins anew with another world or other processes', () => {
    const source = new FakeSource();
    const recording = new Recording();
    source.flight('1', 1, 2);
    recording.update(source);
    source.processes = [...ROWS, { uid: 'd', name: 'D', rank: null }];
    const joined = recording.update(source);
    assert.deepEqual([joined.all, joined.fresh], [true, false]);
    assert.equal(recording.rowOf.get('d'), 3);
    source.processes = [...source.processes];
    assert.equal(recording.update(source).any, false);
    source.world = 'other';
    assert.ok(recording.update(source).fresh);
    source.flights.clear();
    source.flight('9', 3, 4);
    assert.ok(recording.update(source).fresh, 'nothing of what was is left');
  });

  it('skips flights without a known time', () => {
    const source = new FakeSource();
    const recording = new Recording();
    source.flight('1', null, null);
    source.flight('2', null, 5);
    recording.update(source);
    assert.equal(recording.flights, 1);
    assert.deepEqual(
      [recording.domain.begin, flightBegin(flight('', 3, 1)), flightEnd(flight('', 3, 1))],
      [0, 1, 3]
    );
  });
});
