import assert from 'node:assert/strict';
import { it } from 'node:test';
import { matrixOf, MOST, sum } from '../src/timeline/matrix';
import { FakeSource } from './source';

it('a matrix counts the messages of the last run, by sender and receiver', () => {
  const source = new FakeSource();
  source.begin = 10;
  source.flight('early', 9, 9.5, { bytes: 1000 });
  source.flight('first', 11, 12, { bytes: 10 });
  source.flight('lost', 12, null, { bytes: 5 });
  source.flight('back', null, 13, { src: 'c', dest: 'a', bytes: 7 });
  source.flight('stranger', 13, 14, { src: 'z' });
  const { processes, counts, sizes, hidden } = matrixOf(source);
  assert.deepEqual(processes.map(({ name }) => name), ['a', 'b', 'c']);
  assert.deepEqual(counts, [[0, 2, 0], [0, 0, 0], [1, 0, 0]]);
  assert.deepEqual(sizes, [[0, 15, 0], [0, 0, 0], [7, 0, 0]]);
  assert.equal(sum(counts), 3);
  assert.equal(hidden, 0);
});

it('a matrix of very many processes shows the first ones, and says how many it hides', () => {
  const source = new FakeSource();
  source.processes = Array.from({ length: MOST + 3 }, (_, rank) => ({
    uid: `${rank}`,
    name: rank,
    rank
  }));
  source.flight('hidden', 1, 2, { src: '0', dest: `${MOST}` });
  source.flight('shown', 1, 2, { src: '0', dest: `${MOST - 1}` });
  const { counts, hidden } = matrixOf(source);
  assert.equal(counts.length, MOST);
  assert.equal(sum(counts), 1);
  assert.equal(counts[0]?.[MOST - 1], 1);
  assert.equal(hidden, 3);
});
