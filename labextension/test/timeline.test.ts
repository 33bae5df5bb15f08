import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Flight, Span } from '../src/model/types';
import { barsOf } from '../src/timeline/bars';
import { batchOf, choiceOf } from '../src/timeline/batch';
import { handles } from '../src/timeline/frame';
import { arrowOf, distance, Geometry } from '../src/timeline/geometry';
import { actionOf } from '../src/timeline/keys';
import { Recording } from '../src/timeline/recording';
import {
  atEnd,
  LIVE,
  liveLength,
  moved,
  paged,
  SHORTEST,
  whole,
  zoomed
} from '../src/timeline/scale';
import { axisOf, sinceText, stepOf, timeText } from '../src/timeline/ticks';
import { random } from './random';
import { flight, span, FakeSource } from './source';

describe('scale', () => {
  const domain = { begin: 100, end: 160 };

  it('shows all, with some space beside', () => {
    const window = whole(domain);
    assert.ok(window.start < 100 && window.start + window.length > 160);
    assert.ok(whole({ begin: 5, end: 5 }).length >= SHORTEST);
  });

  it('zooms around the time under the pointer', () => {
    const window = zoomed({ start: 110, length: 20 }, 0.5, 115, domain);
    assert.deepEqual(window, { start: 112.5, length: 10 });
  });

  it('is never lost, never too short and never too long', () => {
    const next = random(1);
    let window = whole(domain);
    for (let i = 0; i < 2000; i++) {
      window =
        next() < 0.5
          ? zoomed(window, 4 ** (next() * 2 - 1), 90 + next() * 80, domain)
          : moved(window, (next() - 0.5) * 100, domain);
      assert.ok(window.length >= SHORTEST && window.length <= whole(domain).length * 1.001);
      assert.ok(window.start + window.length > domain.begin && window.start < domain.end);
    }
  });

  it('follows the end in lengths that change seldom', () => {
    const lengths = new Set<number>();
    for (let end = 0.0001; end < 100; end *= 1.01) {
      const length = liveLength({ begin: 0, end });
      const window = atEnd(length, { begin: 0, end });
      lengths.add(length);
      assert.ok(window.start + window.length >= end, `at ${end}`);
      assert.ok(length <= LIVE);
    }
    assert.ok(lengths.size < 20);
  });

  it('turns pages for users who want less motion', () => {
    const starts = new Set<number>();
    for (let end = 1; end < 100; end += 0.1) {
      const window = paged(10, { begin: 0, end });
      starts.add(window.start);
      assert.ok(window.start < end && window.start + window.length >= end, `at ${end}`);
    }
    assert.ok(starts.size <= 20);
  });
});

describe('ticks', () => {
  it('are round, ordered and far enough apart, from microseconds to days', () => {
    for (let length = 1e-5; length < 1e6; length *= 1.7) {
      const start = 1.7e9 + 0.123;
      const { ticks } = axisOf(start, start + length, length / 8, 1.7e9);
      assert.ok(ticks.length >= 1 && ticks.length <= 9, `${ticks.length} in ${length}`);
      ticks.forEach(({ time }, i) => {
        assert.ok(time >= start - 1e-6 && time <= start + length + 1e-6);
        assert.ok(i === 0 || time - ticks[i - 1]!.time > (length / 8) * 0.95);
      });
      const labels = new Set(ticks.map(tick => tick.label));
      assert.equal(labels.size, ticks.length, `equal labels in ${length}`);
    }
  });

  it('have steps of 1, 2 and 5, and those of a clock', () => {
    assert.deepEqual([0.0003, 0.0011, 0.05, 0.3].map(stepOf), [0.0005, 0.002, 0.05, 0.5]);
    assert.deepEqual([0.7, 8, 40, 100, 4000].map(stepOf), [1, 10, 60, 120, 7200]);
  });

  it('have short labels', () => {
    const labels = (start: number, end: number, least: number): string[] =>
      axisOf(start, end, least, 0).ticks.map(tick => tick.label);
    assert.deepEqual(labels(0, 0.004, 0.001), ['0', '1 ms', '2 ms', '3 ms', '4 ms']);
    assert.deepEqual(labels(0, 1.1, 0.5), ['0', '500 ms', '1.0 s']);
    assert.deepEqual(labels(50, 95, 15), ['1 min', '1 min 15 s', '1 min 30 s']);
    assert.deepEqual(labels(3500, 7300, 3600), ['1 h', '2 h']);
  });

  it('count from nearby if the numbers would be long', () => {
    const { base, ticks } = axisOf(12.34501, 12.34505, 1e-5, 0);
    assert.equal(base, '12.345 s');
    assert.deepEqual(
      ticks.map(tick => tick.label),
      ['+10 µs', '+20 µs', '+30 µs', '+40 µs', '+50 µs']
    );
  });

  it('show lengths in three digits', () => {
    const texts = [0, 3.2e-6, 0.00125, 0.0999, 0.99999, 12.34, 119, 200, 3600];
    assert.deepEqual(texts.map(timeText), [
      '0 µs',
      '3.2 µs',
      '1.25 ms',
      '99.9 ms',
      '1 s',
      '12.3 s',
      '119 s',
      '3 min 20 s',
      '1 h'
    ]);
    assert.equal(sinceText(1.2345678), '1.234\u202f568 s');
    assert.equal(sinceText(-0.5), '−0.500\u202f000 s');
  });
});

describe('bars', () => {
  const bars = (spans: Span[], now = 100): string[] =>
    barsOf(spans, time => time, now).map(({ state, from, to }) => `${from}-${to} ${state}`);

  it('are whole pixels without gaps between neighbours', () => {
    assert.deepEqual(bars([span('a', 0, 10), span('a', 10, 20.5, 'idle')]), [
      '0-10 running',
      '10-21 idle'
    ]);
  });

  it('show in a shared pixel the state that took most of it', () => {
    assert.deepEqual(
      bars([span('a', 0, 5.2), span('a', 5.2, 5.9, 'blocked in recv'), span('a', 5.9, 8)]),
      ['0-5 running', '5-6 blocked in recv', '6-8 running']
    );
  });

  it('show spans shorter than a pixel, and lasting ones', () => {
    assert.deepEqual(bars([span('a', 3.1, 3.2)]), ['3-4 running']);
    assert.deepEqual(bars([span('a', 90, null)]), ['90-100 running']);
  });

  it('are no more than the pixels, and cover every span', () => {
    const next = random(5);
    const spans: Span[] = [];
    for (let time = 0; time < 200;) {
      const end = time + next() ** 4;
      spans.push(span('a', time, end, next() < 0.5 ? 'running' : 'blocked in recv'));
      time = end;
    }
    const made = barsOf(spans, time => time, 200);
    made.forEach((bar, i) => {
      assert.ok(Number.isInteger(bar.from) && Number.isInteger(bar.to) && bar.from < bar.to);
      assert.equal(bar.from, i === 0 ? 0 : made[i - 1]!.to);
    });
    assert.ok(spans.length > 500 && made.length <= 202);
  });
});

describe('arrows', () => {
  const geometry: Geometry = { ratio: 1, width: 100, rowHeight: 20, start: 0, scale: 10 };
  const source = new FakeSource();
  const recording = new Recording();
  recording.update(source);
  const arrow = (item: Flight): ReturnType<typeof arrowOf> => arrowOf(item, recording, geometry);

  it('lead from bar to bar', () => {
    assert.deepEqual(arrow(flight('1', 1, 2)), { x1: 10, y1: 14, x2: 20, y2: 26 });
    assert.deepEqual(arrow(flight('1', 1, 2, { src: 'c', dest: 'a' })), {
      x1: 10,
      y1: 46,
      x2: 20,
      y2: 14
    });
    assert.deepEqual(arrow(flight('1', 1, 2, { dest: 'a' })), { x1: 10, y1: 6, x2: 20, y2: 6 });
    assert.equal(arrow(flight('1', 1, 2, { dest: 'unknown' })), null);
  });

  it('are stubs if an end is not known', () => {
    const sent = arrow(flight('1', 1, null))!;
    assert.ok(sent.x1 === 10 && sent.x2 > 10 && sent.y2 > sent.y1 && sent.y2 < 26);
    const received = arrow(flight('1', null, 2))!;
    assert.ok(received.x2 === 20 && received.x1 < 20 && received.y1 > 14 && received.y1 < 26);
  });

  it('are cut far outside, on the same line', () => {
    const long = arrow(flight('1', -1e6, 1e6 + 10))!;
    assert.deepEqual([long.x1, long.x2], [-100, 200]);
    assert.ok(Math.abs(long.y1 - 20) < 0.01 && Math.abs(long.y2 - 20) < 0.01);
  });

  it('are hit near their line', () => {
    const line = { x1: 0, y1: 0, x2: 10, y2: 0 };
    assert.deepEqual([distance(5, 3, line), distance(13, 4, line)], [3, 5]);
    assert.equal(distance(3, 4, { x1: 0, y1: 0, x2: 0, y2: 0 }), 5);
  });

  it('are drawn once if they would cover each other', () => {
    const flights = [0, 1, 2].map(i => flight(`${i}`, 1 + i / 1000, 2));
    const choice = choiceOf(flights, geometry, 100);
    assert.equal(batchOf(flights, recording, geometry, choice).plain.length, 1);
    assert.equal(batchOf(flights, recording, geometry, choice).plain.length, 0);
  });

  it('show the cost of a late one in the row of the process that waited, from when it did', () => {
    const late = { late: 'sender', cost: 1, since: 1.5 };
    const flights = [
      flight('1', 2.5, 3, late),
      flight('2', 2.5, 4, { ...late, late: 'receiver', number: 2 })
    ];
    const { costs } = batchOf(flights, recording, geometry, choiceOf(flights, geometry, 100));
    const left = (1.5 - geometry.start) * geometry.scale;
    assert.deepEqual(
      costs.map(cost => [cost.row, cost.left, cost.width, cost.seconds]),
      [1, 0].map(row => [row, left, geometry.scale, 1])
    );
  });

  it('are thinned if they are too many, and only the costliest are marked', () => {
    const flights = Array.from({ length: 6000 }, (_, i) =>
      flight(`${i}`, i / 600, i / 600 + 0.1, { number: i, late: 'sender', cost: i / 1000 })
    );
    const wide = { ...geometry, width: 10000, scale: 1000 };
    const choice = choiceOf(flights, wide, 1000);
    const { plain, sender } = batchOf(flights, recording, wide, choice);
    assert.equal(choice.every, 6);
    assert.ok(plain.length <= 1000 && plain.length > 900);
    assert.ok(sender.length > 0 && sender.length <= 300);
    const same = flights.map(item => ({ ...item, cost: 1 }));
    const marked = batchOf(same, recording, wide, choiceOf(same, wide, 1000)).sender.length;
    assert.ok(marked > 0 && marked <= 310, `${marked} of equal cost`);
  });
});

describe('overview', () => {
  it('has handles that a pointer can hit, inside', () => {
    const domain = { begin: 0, end: 100 };
    for (const [start, length] of [
      [0, 100],
      [50, 0.001],
      [99.999, 0.001],
      [-5, 0.1],
      [-20, 200]
    ]) {
      const { left, right } = handles({ start: start!, length: length! }, domain, 200, 1);
      assert.ok(left >= 0 && right <= 200 && right - left >= 12 - 1e-9, `${start} ${length}`);
    }
    assert.deepEqual(handles({ start: 25, length: 50 }, domain, 200, 1), { left: 50, right: 150 });
  });
});

describe('keys', () => {
  const press = (key: string, chosen = false, more = {}): unknown =>
    actionOf(
      { key, shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, ...more },
      chosen
    );

  it('mean something else with a message chosen', () => {
    assert.notEqual(press('ArrowLeft'), press('ArrowLeft', true));
    assert.equal(press('ArrowLeft', true, { shiftKey: true }), press('ArrowLeft'));
    assert.equal(press('+', true), press('+'));
    assert.equal(press('Escape'), null);
    assert.ok(press('Escape', true));
  });

  it('are left to others with ctrl, alt or meta', () => {
    for (const modifier of ['ctrlKey', 'altKey', 'metaKey']) {
      assert.equal(press('+', false, { [modifier]: true }), null);
    }
    assert.equal(press('x'), null);
  });
});
