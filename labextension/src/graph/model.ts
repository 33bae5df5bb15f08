import type { Diagnosis, Judgement, Name, CodeLocation, Process, Snapshot, State } from '../model/types';

/** A process in the drawing, or several processes of one verdict that are drawn as one node. */
export interface Node {
  readonly key: string;
  readonly name: Name;
  readonly state: State | null;
  readonly verdict: Judgement['verdict'] | null;
  /** The diagnosis in a sentence. */
  readonly text: string;
  readonly where: CodeLocation | null;
  /** Its role in the deadlock. */
  readonly role: 'cycle' | 'victim' | null;
  /** The number of processes of the node; a summary has more than one. */
  readonly members: number;
}

/** One process waits for another; several waits between the same two are one line. */
export interface Line {
  readonly key: string;
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly cycle: boolean;
}

export interface Graph {
  readonly nodes: readonly Node[];
  readonly lines: readonly Line[];
  /** The deadlock's cycle, from the process that the snapshot lists first. */
  readonly ring: readonly string[];
}

/** A name and a rank may be spelt the same: the key distinguishes them. */
export function keyOf(name: Name): string {
  return JSON.stringify(name);
}

export function graphOf(diagnosis: Diagnosis, snapshot: Snapshot | null): Graph {
  const processes = new Map<string, Process>();
  for (const process of snapshot?.processes ?? []) {
    // A restarted process replaces the ended one of the same name.
    const key = keyOf(process.name);
    if (process.alive || !processes.has(key)) {
      processes.set(key, process);
    }
  }
  const judgements = new Map(diagnosis.processes.map(judged => [keyOf(judged.name), judged]));
  const names = new Map<string, Name>();
  const mention = (name: Name): void => void names.set(keyOf(name), name);
  processes.forEach(process => mention(process.name));
  judgements.forEach(judgement => mention(judgement.name));
  diagnosis.edges.forEach(edge => [edge.from, edge.to].forEach(mention));

  const cycle = new Set(diagnosis.cycle.map(keyOf));
  const stuck = new Set(diagnosis.stuck.map(keyOf));
  const nodes = [...names].map(([key, name]): Node => {
    const process = processes.get(key);
    const judgement = judgements.get(key);
    return {
      key,
      name,
      state: process?.state ?? null,
      verdict: judgement?.verdict ?? null,
      text: judgement?.text ?? process?.waits ?? '',
      where: judgement?.where ?? process?.where ?? null,
      role: cycle.has(key) ? 'cycle' : stuck.has(key) ? 'victim' : null,
      members: 1
    };
  });
  return { nodes, lines: linesOf(diagnosis), ring: ringOf(diagnosis, nodes) };
}

function linesOf(diagnosis: Diagnosis): Line[] {
  const lines = new Map<string, Line>();
  for (const edge of diagnosis.edges) {
    const from = keyOf(edge.from);
    const to = keyOf(edge.to);
    const key = `${from} ${to}`;
    const old = lines.get(key);
    const label = old && old.label !== edge.label ? `${old.label}; ${edge.label}` : edge.label;
    lines.set(key, { key, from, to, label, cycle: edge.cycle || (old?.cycle ?? false) });
  }
  return [...lines.values()];
}

/** The diagnosis may begin a cycle with any member: always begin with the first process. */
function ringOf(diagnosis: Diagnosis, nodes: readonly Node[]): string[] {
  const cycle = [...new Set(diagnosis.cycle.map(keyOf))];
  const first = nodes.find(node => node.role === 'cycle');
  const start = first ? cycle.indexOf(first.key) : 0;
  return [...cycle.slice(start), ...cycle.slice(0, start)];
}

/** The most bystanders of a deadlock that are drawn one by one. */
const BYSTANDERS = 6;

/**
 * The graph with the bystanders of a deadlock summed up by verdict, if they are many. A bystander
 * waits for no process, and none waits for it. `open` are the keys of summaries that the user
 * wants to see one by one.
 *
 * Without a deadlock nothing is summed up: idle processes change ten times a second in a program
 * that runs, and the nodes would jump.
 */
export function summed(graph: Graph, open: ReadonlySet<string>): Graph {
  const tied = new Set(graph.lines.flatMap(line => [line.from, line.to]));
  const alone = graph.nodes.filter(node => node.role === null && !tied.has(node.key));
  if (graph.ring.length === 0 || alone.length <= BYSTANDERS) {
    return graph;
  }
  const groups = new Map<string, Node[]>();
  for (const node of alone) {
    const key = `all ${node.verdict}`;
    groups.set(key, [...(groups.get(key) ?? []), node]);
  }
  const hidden = new Set<string>();
  const summaries: Node[] = [];
  for (const [key, members] of groups) {
    const [first] = members;
    if (!first || members.length === 1) {
      continue;
    }
    if (!open.has(key)) {
      members.forEach(node => hidden.add(node.key));
    }
    const { verdict } = first;
    summaries.push({
      key,
      name: `${members.length} ${WORDS[verdict ?? 'idle']}`,
      state: members.every(node => node.state === first.state) ? first.state : null,
      verdict,
      text: members.map(node => node.name).join(', '),
      where: null,
      role: null,
      members: members.length
    });
  }
  const nodes = [...graph.nodes.filter(node => !hidden.has(node.key)), ...summaries];
  return { ...graph, nodes };
}

const WORDS: Record<Judgement['verdict'], string> = {
  stuck: 'stuck',
  waits: 'wait',
  acts: 'can act',
  idle: 'idle',
  ended: 'ended',
  left: 'left'
};

/** The second line of a node: the verdict, and the call. */
export function statusText({ state, verdict }: Pick<Node, 'state' | 'verdict'>): string {
  const call = state?.startsWith('blocked in ') ? state.slice('blocked '.length) : null;
  if (verdict === 'stuck' || verdict === 'waits') {
    return call ? `${verdict} ${call}` : verdict;
  }
  return state ?? (verdict ? WORDS[verdict] : 'unknown');
}
