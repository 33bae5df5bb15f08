import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { History, MOST } from '../src/model/history';
import { Rates } from '../src/model/rates';
import { bytesText, durationText, locationText, rateText, siteTexts } from '../src/model/text';
import type { Flight, Process, Snapshot, Span, Timeline } from '../src/model/types';
import { flight, span as spanOf } from './source';

function counted(time: number, sent: number, uid = 'a'): Snapshot {
  const process = { uid, sent, received: 2 * sent } as Snapshot['processes'][number];
  return { world: 'w', time, processes: [process] };
}

describe('rates', () => {
  it('are the mean of the last two seconds', () => {
    const rates = new Rates();
    for (let tenth = 0; tenth <= 100; tenth++) {
      rates.add(counted(tenth / 10, tenth));
    }
    assert.deepEqual(rates.of('a', 10), { sent: 10, received: 20 });
  });

  it('are zero if counters came once, and for an unknown process', () => {
    const rates = new Rates();
    rates.add(counted(10, 500));
    assert.deepEqual(rates.of('a', 11), { sent: 0, received: 0 });
    assert.deepEqual(rates.of('b', 11), { sent: 0, received: 0 });
  });

  it('see a burst after a pause, in which nothing came, and its end', () => {
    const rates = new Rates();
    rates.add(counted(0, 0));
    rates.add(counted(100, 8));
    assert.equal(rates.of('a', 100).sent, 4);
    assert.equal(rates.of('a', 101.5).sent, 4);
    assert.equal(rates.of('a', 102.5).sent, 0);
  });

  it('stand for half a second', () => {
    const rates = new Rates();
    for (let tenth = 0; tenth <= 100; tenth++) {
      rates.add(counted(tenth / 10, tenth * tenth));
    }
    assert.equal(rates.of('a', 9.5).sent, rates.of('a', 9.9).sent);
    assert.notEqual(rates.of('a', 9.5).sent, rates.of('a', 10).sent);
  });

  it('are not those of a process that had the name before', () => {
    const rates = new Rates();
    rates.add(counted(0, 1000));
    rates.add(counted(1, 0, 'b'));
    assert.deepEqual(rates.of('a', 1), { sent: 0, received: 0 });
    assert.deepEqual(rates.of('b', 1), { sent: 0, received: 0 });
  });
});

const span = (begin: number, end: number | null): Span => spanOf('a', begin, end);

function update(end: number, spans: Span[], flights: Flight[] = []): Timeline {
  const processes = [{ uid: 'a', name: 'A', rank: 0 }];
  return { world: 'w', begin: 0, end, missing: 0, processes, spans, flights };
}

describe('history', () => {
  it('replaces earlier entries of a span and of a flight', () => {
    const history = new History(60);
    history.add(update(1, [span(0, null)], [flight('x', 1, null)]));
    history.add(update(3, [span(0, 2), span(2, null)], [flight('x', 1, 3)]));
    assert.deepEqual([...history.spans.values()], [span(0, 2), span(2, null)]);
    assert.deepEqual([...history.flights.values()], [flight('x', 1, 3)]);
  });

  it('forgets entries that ended before its limit, and none that lasts', () => {
    const history = new History(60);
    history.add(update(1, [span(0, 1), span(1, null)], [flight('x', 0, 1), flight('y', 0, null)]));
    history.add(update(62, [span(61, 62)], [flight('z', 10, 50)]));
    assert.deepEqual([...history.spans.values()], [span(1, null), span(61, 62)]);
    assert.deepEqual([...history.flights.keys()], ['z']);
  });

  it('forgets at once when its limit becomes less, and notes each change', () => {
    const history = new History(60);
    history.add(update(30, [span(0, 1), span(29, 30)]));
    const { version } = history;
    history.limit = 10;
    assert.deepEqual([...history.spans.values()], [span(29, 30)]);
    assert.ok(history.version > version);
  });

  it('stays bounded, however long it goes on', () => {
    const history = new History(10);
    for (let second = 0; second < 1000; second++) {
      history.add(update(second + 1, [span(second, second + 1)]));
    }
    assert.ok(history.spans.size <= 13, `${history.spans.size} spans`);
  });

  it('keeps the latest of very many', () => {
    const history = new History(60);
    const times = [...Array(2 * MOST).keys()].map(index => index / MOST);
    const spans = [span(-1, null), ...times.map(time => span(time, time))];
    history.add(update(2, spans, times.map(time => flight(`${time}`, time, time))));
    assert.equal(history.spans.size, MOST);
    assert.equal(history.flights.size, MOST);
    assert.ok(history.spans.has('a -1'), 'what lasts is kept');
    assert.equal([...history.flights.values()].at(-1)?.sent, times.at(-1));
  });

  it('goes on while something lasts', () => {
    const history = new History(60);
    history.add(update(1, [span(0, null)]));
    const { version } = history;
    history.advance(5);
    assert.equal(history.end, 5);
    assert.ok(history.version > version);
    history.advance(4);
    assert.equal(history.end, 5);
    history.add(update(6, [span(0, 6)]));
    history.advance(9);
    assert.equal(history.end, 6);
  });
});

describe('texts', () => {
  it('are short, and whole', () => {
    assert.equal(durationText(0.4), '< 1 s');
    assert.equal(durationText(59.9), '59 s');
    assert.equal(durationText(119), '1 min');
    assert.equal(durationText(7260), '2 h');
    assert.equal(bytesText(999), '999 B');
    assert.equal(bytesText(1234), '1.2 kB');
    assert.equal(bytesText(64_000_000), '64 MB');
    assert.equal(rateText(0), '0');
    assert.equal(rateText(9.94), '9.9');
    assert.equal(rateText(9.96), '10');
    assert.equal(rateText(12_345), '12k');
    const location = { file: '/a/b.py', line: 3, function: null, cell: null, cell_id: null };
    assert.equal(locationText(location), 'b.py:3');
    assert.equal(locationText({ ...location, cell: 7 }), 'cell 7 line 3');
  });
});

describe('sites', () => {
  const at = (...sites: (string | null)[]) =>
    sites.map((site, nth) => ({ uid: String(nth), site }) as Process);

  it('are named if there are several', () => {
    assert.deepEqual([...siteTexts(at('lyon', 'oslo', null, 'lyon'))], [
      ['0', 'lyon'],
      ['1', 'oslo'],
      ['3', 'lyon']
    ]);
    assert.equal(siteTexts(at('lyon', 'lyon', null)).size, 0);
    assert.equal(siteTexts([]).size, 0);
  });
});
