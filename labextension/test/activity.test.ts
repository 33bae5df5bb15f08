import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Activities, Activity, activityOf } from '../src/model/activity';
import type { Process, State } from '../src/model/types';

const PROCESS = { uid: 'a', alive: true } as Process;

function does(state: State, since: number, line = 1): Activity {
  const where = { file: 'f.py', line, function: null, cell: 1, cell_id: null };
  return { state, label: state, since, waits: '', where };
}

describe('the activity that is shown', () => {
  it('is the one before until the present one has lasted a second', () => {
    const activities = new Activities();
    const idle = does('idle', 0);
    const runs = does('running', 10);
    assert.equal(activities.of(PROCESS, idle, 9.9), idle);
    assert.equal(activities.of(PROCESS, runs, 10.1), idle);
    assert.equal(activities.of(PROCESS, runs, 10.8), idle);
    assert.equal(activities.of(PROCESS, runs, 11), runs);
  });

  it('is running if the process stays in no state for a second', () => {
    const activities = new Activities();
    activities.of(PROCESS, does('blocked in recv', 0), 9.9);
    const shown: string[] = [];
    for (let tenth = 100; tenth < 140; tenth++) {
      const state = tenth % 2 ? 'running' : 'blocked in recv';
      const { label, since } = activities.of(PROCESS, does(state, tenth / 10, tenth), tenth / 10);
      shown.push(`${label} since ${since}`);
    }
    assert.deepEqual([...new Set(shown)], ['blocked in recv since 0', 'running since 9.9']);
  });

  it('has a line that stands for a second', () => {
    const activities = new Activities();
    const lines = new Set<number | undefined>();
    for (let tenth = 0; tenth < 40; tenth++) {
      const now = does(tenth % 2 ? 'running' : 'blocked in send', tenth / 10, tenth);
      lines.add(activities.of(PROCESS, now, tenth / 10).where?.line);
    }
    assert.ok(lines.size <= 5, [...lines].join());
  });

  it('is the present one at once when the process has ended or is stopped', () => {
    const activities = new Activities();
    activities.of(PROCESS, does('running', 0), 5);
    const dead = does('dead', 5);
    assert.equal(activities.of({ ...PROCESS, alive: false }, dead, 5.1), dead);
    const stopped = { ...does('running', 5), label: 'stopped' };
    assert.equal(activities.of({ ...PROCESS, uid: 'b' }, stopped, 5.1), stopped);
  });

  it('is what a poll asks for, and where', () => {
    const where = { file: 'f.py', line: 3, function: null, cell: 1, cell_id: null };
    const polls = { count: 9, since: 2, where, wait: { text: 'recv_nb(tag=2)' } };
    const process = { ...PROCESS, state: 'running', since: 1, unreachable: null, unseen: null };
    const found = activityOf({ ...process, polls, now: null } as unknown as Process);
    assert.deepEqual(found, {
      state: 'running', label: 'polling', since: 2, waits: 'recv_nb(tag=2)', where
    });
  });
});
