import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Process, World } from '../src/model/types';
import { connectCode, restartLine } from '../src/notebook/lines';

describe('lines of code', () => {
  it('have no name that a process has chosen', () => {
    assert.equal(restartLine({ name: 'A\n!date', rank: 2 } as Process), '%sfm restart 2');
    for (const rank of [null, '0\n!date']) {
      const process = { name: 'A', rank } as unknown as Process;
      assert.throws(() => restartLine(process), /no rank/);
    }
  });

  it('have the name of a cluster only if it is a single word', () => {
    const last = (cluster: string) => connectCode({ cluster } as World).split('\n').slice(1);
    assert.deepEqual(last('sfm-0a.b_c'), ['%sfm connect sfm-0a.b_c']);
    assert.deepEqual(last('a\n!date'), ['%sfm connect']);
    assert.deepEqual(last('a; b'), ['%sfm connect']);
    assert.match(connectCode(null), /%sfm start 4$/);
  });
});
