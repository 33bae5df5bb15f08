import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Box, layoutOf, neighbour } from '../src/graph/layout';
import { Graph, graphOf, keyOf, statusText, summed } from '../src/graph/model';
import { leave, routesOf } from '../src/graph/route';
import { cut } from '../src/model/text';
import type { Diagnosis, Edge, Judgement, Name, Process, State } from '../src/model/types';
import { random } from './random';

type Wait = readonly [from: Name, to: Name, cycle?: boolean];

function diagnosis(
  names: readonly Name[],
  waits: readonly Wait[],
  cycle: readonly Name[]
): Diagnosis {
  const edges = waits.map(([from, to, inCycle]): Edge => {
    return { from, to, kind: 'recv', label: `recv(src=${to})`, cycle: inCycle ?? false };
  });
  const stuck = new Set<Name>(cycle);
  for (const _ of names) {
    edges.filter(edge => stuck.has(edge.to)).forEach(edge => stuck.add(edge.from));
  }
  const processes = names.map((name): Judgement => {
    const waiting = edges.some(edge => edge.from === name);
    const verdict = stuck.has(name) && cycle.length ? 'stuck' : waiting ? 'waits' : 'idle';
    return { uid: `u${name}`, name, verdict, text: '', where: null, call: 1, near: [] };
  });
  return {
    world: 'w',
    time: 0,
    verdict: cycle.length ? 'deadlock' : 'waiting',
    cycle,
    stuck: cycle.length ? [...stuck] : [],
    since: null,
    title: '',
    sentences: [],
    edges,
    processes
  };
}

function graph(
  names: readonly Name[],
  waits: readonly Wait[] = [],
  cycle: readonly Name[] = []
): Graph {
  return graphOf(diagnosis(names, waits, cycle), null);
}

const ranks = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function touch(a: Box, b: Box): boolean {
  return (
    Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2
  );
}

describe('graph', () => {
  it('keeps a name and a rank of the same letters apart', () => {
    assert.equal(graph([1, '1']).nodes.length, 2);
    assert.notEqual(keyOf(1), keyOf('1'));
  });

  it('draws a process that only an edge names', () => {
    const { nodes } = graph(['A'], [['A', 'gone']]);
    assert.deepEqual(
      nodes.map(node => node.name),
      ['A', 'gone']
    );
  });

  it('shows the living one of two processes with one name', () => {
    const process = (uid: string, alive: boolean): Process =>
      ({ uid, name: 'A', alive, state: alive ? 'running' : 'ended' }) as Process;
    const empty = diagnosis([], [], []);
    for (const processes of [
      [process('1', false), process('2', true)],
      [process('2', true), process('1', false)]
    ]) {
      const { nodes } = graphOf(empty, { world: 'w', time: 0, processes });
      assert.deepEqual(
        nodes.map(node => node.state),
        ['running']
      );
    }
  });

  it('joins several waits for one process', () => {
    const twice = diagnosis(
      ['A', 'B'],
      [
        ['A', 'B'],
        ['A', 'B']
      ],
      []
    );
    const [first, second] = twice.edges;
    const edges = [first!, { ...second!, label: 'send', cycle: true }];
    const { lines } = graphOf({ ...twice, edges }, null);
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.label, 'recv(src=B); send');
    assert.equal(lines[0]?.cycle, true);
  });

  it('begins a ring with the same process, whichever the diagnosis begins with', () => {
    const waits: Wait[] = [
      ['A', 'B', true],
      ['B', 'C', true],
      ['C', 'A', true]
    ];
    const rings = [
      ['A', 'B', 'C'],
      ['B', 'C', 'A'],
      ['C', 'A', 'B']
    ].map(cycle => graph(['A', 'B', 'C'], waits, cycle).ring);
    assert.deepEqual(rings[0], ['A', 'B', 'C'].map(keyOf));
    assert.deepEqual(rings[1], rings[0]);
    assert.deepEqual(rings[2], rings[0]);
  });

  it('distinguishes the cycle, victims and others', () => {
    const { nodes } = graph(
      ['A', 'B', 'C', 'D', 'E'],
      [
        ['A', 'B', true],
        ['B', 'A', true],
        ['C', 'B'],
        ['D', 'C']
      ],
      ['A', 'B']
    );
    assert.deepEqual(
      nodes.map(node => node.role),
      ['cycle', 'cycle', 'victim', 'victim', null]
    );
  });

  it('says a state in few words', () => {
    const text = (state: State, verdict: Judgement['verdict']): string =>
      statusText({ state, verdict });
    assert.equal(text('blocked in recv', 'stuck'), 'stuck in recv');
    assert.equal(text('blocked in cell', 'waits'), 'waits in cell');
    assert.equal(text('running', 'acts'), 'running');
    assert.equal(text('ended', 'ended'), 'ended');
  });

  it('cuts texts by letters, not in the middle of one', () => {
    assert.equal(cut('recv', 4), 'recv');
    assert.equal(cut('recv()', 4), 'rec…');
    assert.equal(cut('🦀🦀🦀🦀', 3), '🦀🦀…');
  });
});

describe('summary', () => {
  const waits: Wait[] = [
    [3, 4, true],
    [4, 3, true],
    [5, 3],
    [6, 7]
  ];
  const complete = graph(ranks(40), waits, [3, 4]);

  it('stands for processes that are in no wait', () => {
    const { nodes } = summed(complete, new Set());
    const summary = nodes.filter(node => node.members > 1);
    assert.deepEqual(
      summary.map(node => node.name),
      ['35 idle']
    );
    assert.deepEqual(
      nodes.filter(node => node.members === 1).map(node => node.name),
      [3, 4, 5, 6, 7]
    );
  });

  it('is opened', () => {
    assert.equal(summed(complete, new Set(['all idle'])).nodes.length, 41);
  });

  it('is not made without a deadlock, nor of few', () => {
    const calm = graph(ranks(40), [[3, 4]]);
    assert.equal(summed(calm, new Set()), calm);
    const few = graph(
      ranks(8),
      [
        [3, 4, true],
        [4, 3, true]
      ],
      [3, 4]
    );
    assert.equal(summed(few, new Set()), few);
  });
});

describe('layout', () => {
  const widths = [240, 400, 640, 900, 2000];
  const ring = (count: number): Graph =>
    graph(
      ranks(count),
      ranks(count).map((i): Wait => [i, (i + 1) % count, true]),
      ranks(count)
    );

  it('has a position for each node, apart from the others and inside', () => {
    const next = random(6);
    for (const count of [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33, 64]) {
      const chance = ranks(count).map((i): Wait => [i, Math.floor(next() * count)]);
      const few = Math.min(3, count);
      const cycle = ranks(few).map((i): Wait => [i, (i + 1) % few, true]);
      const victims = ranks(count)
        .slice(few)
        .map((i): Wait => [i, Math.floor(next() * i)]);
      for (const drawn of [
        graph(ranks(count), chance),
        ring(count),
        graph(ranks(count), [...cycle, ...victims], ranks(few)),
        graph(ranks(count), cycle, ranks(few))
      ]) {
        for (const width of widths) {
          const layout = layoutOf(drawn, width);
          const boxes = [...layout.boxes.values()];
          assert.equal(boxes.length, count);
          boxes.forEach((box, i) => {
            const what = `${count} nodes, ${width} wide, node ${i}`;
            assert.ok(box.x - box.width / 2 >= 0 && box.y - box.height / 2 >= 0, what);
            assert.ok(box.x + box.width / 2 <= layout.width, what);
            assert.ok(box.y + box.height / 2 <= layout.height, what);
            boxes.slice(i + 1).forEach(other => assert.ok(!touch(box, other), what));
          });
        }
      }
    }
  });

  it('depends on names alone if there is no deadlock', () => {
    for (const count of [4, 16, 40]) {
      const before = layoutOf(graph(ranks(count), [[0, 1]]), 500);
      const after = layoutOf(
        graph(ranks(count), [
          [2, 3],
          [3, 1]
        ]),
        500
      );
      assert.deepEqual(after, before);
    }
  });

  it('puts processes that wait for the cycle outside of it, and the others below', () => {
    const drawn = graph(
      ['A', 'B', 'C', 'D', 'E', 'F'],
      [
        ['A', 'B', true],
        ['B', 'C', true],
        ['C', 'A', true],
        ['D', 'A'],
        ['E', 'C']
      ],
      ['A', 'B', 'C']
    );
    const place = (width: number, name: Name): Box =>
      layoutOf(drawn, width).boxes.get(keyOf(name))!;
    assert.ok(place(400, 'D').y < place(400, 'A').y);
    assert.ok(place(400, 'E').y > place(400, 'C').y);
    for (const width of [400, 900]) {
      assert.ok(place(width, 'F').y > place(width, 'E').y);
    }
  });

  it('leads arrow keys to the nearest node in their direction, and all can be reached', () => {
    for (const drawn of [graph(ranks(16)), ring(3), ring(12), graph(ranks(50))]) {
      const { boxes } = layoutOf(drawn, 500);
      const reached = new Set([keyOf(0)]);
      for (const key of reached) {
        for (const [dx, dy] of [
          [-1, 0],
          [1, 0],
          [0, -1],
          [0, 1]
        ] as const) {
          const next = neighbour(boxes, key, dx, dy);
          if (next) {
            const [from, to] = [boxes.get(key)!, boxes.get(next)!];
            assert.ok((to.x - from.x) * dx + (to.y - from.y) * dy > 0);
            reached.add(next);
          }
        }
      }
      assert.equal(reached.size, boxes.size);
    }
  });
});

describe('routes', () => {
  const points = (path: string): number[] => path.match(/-?[\d.]+/g)!.map(Number);

  it('begin and end at the border of a box', () => {
    const box = { x: 100, y: 50, width: 40, height: 20 };
    assert.deepEqual(leave(box, { x: 200, y: 50 }, 0), { x: 120, y: 50 });
    assert.deepEqual(leave(box, { x: 100, y: 0 }, 0), { x: 100, y: 40 });
    assert.deepEqual(leave(box, box, 3), { x: 100, y: 50 });
  });

  it('bend two lines between two processes to different sides', () => {
    const drawn = graph(
      ['A', 'B'],
      [
        ['A', 'B', true],
        ['B', 'A', true]
      ],
      ['A', 'B']
    );
    const routes = routesOf(drawn.lines, layoutOf(drawn, 500));
    const [there, back] = routes.map(route => points(route.path));
    assert.notEqual(Math.sign(there![3]! - there![1]!), Math.sign(back![3]! - back![1]!));
  });

  it('go round the nodes between', () => {
    const drawn = graph(ranks(16), [[0, 2]]);
    const layout = layoutOf(drawn, 900);
    const [x1, y1, cx, cy, x2, y2] = points(routesOf(drawn.lines, layout)[0]!.path) as [
      number,
      number,
      number,
      number,
      number,
      number
    ];
    const between = layout.boxes.get(keyOf(1))!;
    for (let t = 0; t <= 1; t += 0.02) {
      const s = 1 - t;
      const x = s * s * x1 + 2 * s * t * cx + t * t * x2;
      const y = s * s * y1 + 2 * s * t * cy + t * t * y2;
      assert.ok(!touch({ x, y, width: 0, height: 0 }, between));
    }
  });

  it('show labels that overlap neither nodes nor each other, and those of a cycle of three', () => {
    const waits: Wait[] = [
      ['A', 'B', true],
      ['B', 'C', true],
      ['C', 'A', true],
      ['D', 'A']
    ];
    const drawn = graph(['A', 'B', 'C', 'D', 'E'], waits, ['A', 'B', 'C']);
    for (const width of [380, 900]) {
      const layout = layoutOf(drawn, width);
      const routes = routesOf(drawn.lines, layout);
      const labels = routes.flatMap(route => route.label ?? []);
      assert.equal(routes.filter(route => route.line.cycle && route.label).length, 3);
      const boxes: Box[] = [...layout.boxes.values(), ...labels];
      labels.forEach(label => {
        boxes.forEach(other => assert.ok(other === label || !touch(label, other)));
      });
    }
  });

  it('draw a process that waits for itself', () => {
    const drawn = graph(['A'], [['A', 'A', true]], ['A']);
    const [route] = routesOf(drawn.lines, layoutOf(drawn, 400));
    assert.match(route!.path, /C/);
    assert.equal(route!.label?.text, 'recv(src=A)');
  });

  it('omit lines to processes that are summed up', () => {
    const drawn = graph(['A'], [['A', 'A']]);
    assert.deepEqual(routesOf([{ ...drawn.lines[0]!, to: 'nobody' }], layoutOf(drawn, 400)), []);
  });
});
