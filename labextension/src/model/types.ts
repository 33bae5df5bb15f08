/**
 * What the server tells: sfm_kernel/observe/schema.json in TypeScript. Times are seconds since
 * 1970, lengths bytes. Every text comes from a program or a message: it is shown as a text node.
 */

/** What addresses a process: its rank where it was given no name. */
export type Name = string | number;

/** A line of a program; lines are counted from 1, as the cell's editor shows them. */
export interface CodeLocation {
  readonly file: string;
  readonly line: number;
  readonly function: string | null;
  /** The execution count that the notebook shows beside the cell. */
  readonly cell: number | null;
  readonly cell_id: string | null;
}

/** Names and values of a message, values in Python's notation. */
export type Attributes = ReadonlyArray<readonly [string, string]>;

export interface Condition {
  readonly name: string;
  readonly value: string;
  readonly predicate: boolean;
}

/** What a blocked call waits for. */
export interface Wait {
  readonly kind: 'recv' | 'send' | 'collective' | 'cell' | 'join' | 'other';
  readonly text: string;
  readonly template: readonly Condition[];
  /** Who could end the wait; null where anybody could. */
  readonly peers: readonly Name[] | null;
  readonly all: boolean;
  readonly until: number | null;
  readonly context_id: string;
  readonly purpose: string;
  /** Of a collective call: what tells its group from others, and what it is called. */
  readonly group?: readonly [string, string] | null;
}

/** What of a process could go on while a call of it is blocked, or after its end. */
export interface Other {
  readonly kind: 'thread' | 'callback' | 'signal' | 'timer' | 'hook' | 'task' | 'polls' | 'world' | 'more';
  readonly name: string;
  readonly where: CodeLocation | null;
  /** The earlier cell that has started it. */
  readonly cell: number | null;
}

/** Calls that ask for a message and find none, again and again. */
export interface Polls {
  readonly count: number;
  readonly since: number;
  readonly wait: Wait;
  readonly where: CodeLocation | null;
}

/** What the main thread is in of a process that is in no call, and where in the program. */
export interface Now {
  readonly does:
    | 'computes'
    | 'input'
    | 'lock'
    | 'sleep'
    | 'child'
    | 'system'
    | 'native'
    | 'stopped';
  readonly where: CodeLocation | null;
}

/** A message in an inbox. */
export interface Message {
  readonly src: Name | null;
  readonly context_id: string;
  /** The name of that context, if a program has given it one. */
  readonly context?: string | null;
  readonly bytes: number;
  readonly attributes: Attributes;
}

export interface Peer {
  readonly uid: string;
  readonly name: Name | null;
  readonly sent: number;
  readonly arrived: number;
  readonly received: number;
}

/** The states that a timeline shows: those of a process that lives. */
export type LiveState =
  | 'idle'
  | 'running'
  | 'blocked in recv'
  | 'blocked in send'
  | 'blocked in collective'
  | 'blocked in cell';

/** Damaged: the process lives, and its segment cannot be read. */
export type State = LiveState | 'left' | 'dead' | 'damaged';

/** A member of a world. Its uid is new each time that it joins. */
export interface Process {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
  readonly kind: 'engine' | 'notebook' | 'process';
  /** How many ranked processes the world will ever have; null where more may join. */
  readonly size: number | null;
  readonly host: string | null;
  /** Processes of one site are near each other. */
  readonly site: string | null;
  readonly pid: number | null;
  /** Whether it runs on the observer's machine. */
  readonly here: boolean;
  readonly alive: boolean;
  readonly state: State;
  readonly since: number;
  /** Since when nobody answers where it listens, though nothing says that it is dead. */
  readonly unreachable: number | null;
  /** What gateways say of why. */
  readonly unreachable_why: string | null;
  readonly call: number;
  readonly waits: string | null;
  readonly wait: Wait | null;
  readonly polls: Polls | null;
  readonly now: Now | null;
  readonly where: CodeLocation | null;
  readonly others: readonly Other[];
  readonly settled: boolean;
  readonly depth: number;
  readonly bytes: number;
  readonly sent: number;
  readonly received: number;
  readonly peers: readonly Peer[];
  /** The oldest ones of the inbox. */
  readonly messages: readonly Message[];
}

export interface Snapshot {
  readonly world: string;
  readonly time: number;
  readonly processes: readonly Process[];
  /** By name. */
  readonly sites: readonly Site[];
  readonly links: readonly Link[];
}

/** Processes that are near each other, and the gateways through which they reach others. */
export interface Site {
  readonly name: string;
  readonly processes: readonly Name[];
  readonly gateways: readonly { readonly name: string; readonly address: string }[];
  /** That a clock there is wrong. */
  readonly sentence: string;
}

/** The connections from one site to another, as one; null is what nobody has told. */
export interface Link {
  readonly from: string;
  readonly to: string;
  readonly via: 'direct' | 'gateway';
  readonly count: number;
  readonly algorithm: string;
  readonly warm: string;
  readonly rtt_s: number | null;
  /** Bytes per second. */
  readonly rate: number | null;
  readonly cwnd: number | null;
  readonly rto: number | null;
  readonly retransmissions: number | null;
  readonly dup_acks: number | null;
  readonly idle_restarts: number;
  /** Seconds for which the other end has not answered. */
  readonly silent_s: number | null;
  readonly emulated: boolean;
  readonly trouble: boolean;
  readonly sentence: string;
}

/** A process waits for another one. */
export interface Edge {
  readonly from: Name;
  readonly to: Name;
  readonly kind: 'recv' | 'send' | 'collective' | 'cell' | 'join' | 'idle' | 'other';
  readonly label: string;
  /** It is part of the deadlock. */
  readonly cycle: boolean;
}

/** A message that nearly fits a blocked receive. */
export interface Near {
  readonly message: Message;
  readonly misses: ReadonlyArray<{
    readonly name: string;
    /** null where the message lacks the attribute. */
    readonly has: string | null;
    readonly wants: string;
    /** A name of the message that may be meant. */
    readonly like?: string;
  }>;
}

/** Why one process does not go on. */
export interface Judgement {
  readonly uid: string;
  readonly name: Name;
  readonly verdict: 'stuck' | 'waits' | 'acts' | 'idle' | 'dead' | 'left';
  readonly text: string;
  readonly where: CodeLocation | null;
  readonly call: number;
  readonly near: readonly Near[];
}

export type Verdict = 'deadlock' | 'waiting' | 'running' | 'idle' | 'empty';

/** It would be a deadlock if these did nothing. */
export interface Proviso {
  readonly cycle: readonly Name[];
  readonly stuck: readonly Name[];
  readonly since: number;
  readonly others: readonly { readonly process: Name; readonly other: Other }[];
}

/** Why a world does not go on. */
export interface Diagnosis {
  readonly world: string;
  readonly time: number;
  readonly verdict: Verdict;
  readonly cycle: readonly Name[];
  readonly stuck: readonly Name[];
  readonly since: number | null;
  readonly title: string;
  readonly sentences: readonly string[];
  readonly edges: readonly Edge[];
  readonly but_for: Proviso | null;
  readonly processes: readonly Judgement[];
}

/** A time in which a process was in one state; `end` is null while it lasts. */
export interface Span {
  readonly uid: string;
  readonly begin: number;
  readonly end: number | null;
  readonly state: LiveState;
  readonly where: CodeLocation | null;
}

/** A message from its sending to its receipt; `src` and `dest` are uids. */
export interface Flight {
  readonly id: string;
  readonly src: string;
  readonly dest: string;
  readonly number: number;
  readonly sent: number | null;
  readonly received: number | null;
  readonly bytes: number;
  readonly attributes: Attributes;
  readonly sent_at: CodeLocation | null;
  readonly received_at: CodeLocation | null;
  /** Who let the other wait, and for how many seconds. */
  readonly late: 'sender' | 'receiver' | null;
  readonly cost: number;
}

export interface Row {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
}

/** What happened in a world, or what is new since the last one. */
export interface Timeline {
  readonly world: string;
  readonly begin: number;
  readonly end: number;
  /** Events that were overwritten before they were read. */
  readonly missing: number;
  readonly processes: readonly Row[];
  readonly spans: readonly Span[];
  readonly flights: readonly Flight[];
}

/** A world of this user, for a list. */
export interface World {
  readonly world: string;
  readonly title: string;
  /** The id for %sfm connect, if it is a cluster's world. */
  readonly cluster: string | null;
  readonly owner: 'server' | 'notebook' | 'other';
  readonly kernels: readonly string[];
  readonly engines: number;
  readonly running: number;
  readonly blocked: number;
  readonly dead: number;
}

export type Part = 'snapshot' | 'diagnosis' | 'timeline';

/** What comes over the websocket. */
export type ServerText =
  | { readonly type: 'worlds'; readonly time: number; readonly worlds: readonly World[] }
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'diagnosis'; readonly diagnosis: Diagnosis }
  | { readonly type: 'timeline'; readonly timeline: Timeline }
  | { readonly type: 'gone'; readonly world: string }
  | { readonly type: 'error'; readonly text: string };
