/**
 * What the server sends, made of sfm_kernel/observe/schema.json by tools/schema_types.py: change
 * the schema, not this file. Times are seconds since 1970, lengths bytes. Every text comes from a
 * program or a message: it is shown as a text node.
 */

/** What addresses a process: its rank where it was given no name. */
export type Name = string | number;

/** A line of a program. */
export interface CodeLocation {
  readonly file: string;
  readonly line: number;
  readonly function: string | null;
  readonly cell: number | null;
  readonly cell_id: string | null;
}

/**
 * Names and values of a message, values in Python's notation; long ones are cut with an ellipsis,
 * objects and arrays are described in angle brackets.
 */
export type Attributes = ReadonlyArray<readonly [string, string]>;

/** What an attribute of a message has to be; a predicate is a function, whose name is shown. */
export interface Condition {
  readonly name: string;
  readonly value: string;
  readonly predicate: boolean;
}

/** What a blocked call waits for. */
export interface Wait {
  /** What is waited for; join: that others join the world. */
  readonly kind: 'recv' | 'send' | 'collective' | 'cell' | 'join' | 'other';
  readonly text: string;
  /** The conditions of a receive. */
  readonly template: readonly Condition[];
  /** Who could end the wait; null where anybody could. */
  readonly peers: readonly Name[] | null;
  /** Whether all of them have to come, not only one. */
  readonly all: boolean;
  /** When the wait ends by itself; null where it does not. */
  readonly until: number | null;
  /** The context whose messages are waited for; empty for the user's own. */
  readonly context_id: string;
  /** What the wait is part of: a collective call, a call of MPI. */
  readonly purpose: string;
  /** Of a collective call: what tells its group from others, and what it is called. */
  readonly group?: readonly [string, string] | null;
}

/**
 * What of a process could go on while a call of it is blocked, or after its end: a thread, by its
 * name (empty where it was started by _thread); a callback, by its call of regcb; the handler of a
 * signal, or a timer, by the signal; a function that a call runs while it waits, by its name; a
 * task or timer of an event loop, by its name; calls that ask in vain, by the latest of them; a
 * connection to another world, by what is there.
 */
export interface Other {
  readonly kind: 'thread' | 'callback' | 'signal' | 'timer' | 'hook' | 'task' | 'polls' | 'world' | 'more';
  readonly name: string;
  readonly where: CodeLocation | null;
  readonly cell: number | null;
}

/** What a main thread is in. */
export interface Now {
  readonly does: 'computes' | 'input' | 'lock' | 'sleep' | 'child' | 'system' | 'native' | 'stopped';
  readonly where: CodeLocation | null;
}

/**
 * Calls that ask for a message and find none: recv_nb, peek, Iprobe, Test, and recv whose time is
 * over.
 */
export interface Polls {
  /** How many there were since something came. */
  readonly count: number;
  readonly since: number;
  /** What the latest of them asked for, as of a receive. */
  readonly wait: Wait;
  readonly where: CodeLocation | null;
}

/** A message in an inbox. */
export interface Message {
  readonly src: Name | null;
  /** The context that it belongs to; empty for the user's own. */
  readonly context_id: string;
  /** The name of that context, if a program has given it one. */
  readonly context?: string | null;
  readonly bytes: number;
  readonly attributes: Attributes;
}

/** What went between a process and another one. */
export interface Peer {
  /** The last 16 digits of its uid; empty for all that were too many to be told apart. */
  readonly uid: string;
  readonly name: Name | null;
  readonly sent: number;
  readonly arrived: number;
  readonly received: number;
}

/** What a process that lives is doing, as a timeline shows it. */
export type LiveState =
  | 'idle'
  | 'running'
  | 'blocked in recv'
  | 'blocked in send'
  | 'blocked in collective'
  | 'blocked in cell';

/** What a process is doing. */
export type State = LiveState | 'left' | 'dead' | 'damaged';

/** A member of a world. */
export interface Process {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
  /** An engine runs cells, a notebook is where its user types, a process runs a program. */
  readonly kind: 'engine' | 'notebook' | 'process';
  /** How many ranked processes the world will ever have; null where more may join. */
  readonly size: number | null;
  readonly host: string | null;
  /**
   * Processes of one site are near each other; its machine's name, where a process was told no
   * other.
   */
  readonly site: string | null;
  readonly pid: number | null;
  /** Whether it runs on the observer's machine. */
  readonly here: boolean;
  readonly alive: boolean;
  readonly state: State;
  readonly since: number;
  /**
   * Since when nobody answers where it listens, of a process of which nothing proves that it is
   * dead; null while somebody answers, or nobody has asked.
   */
  readonly unreachable: number | null;
  /** What gateways say of why nothing reaches it; null where they say nothing. */
  readonly unreachable_why: string | null;
  /** Grows with each blocked call. */
  readonly call: number;
  /**
   * What a blocked call waits for, in one line; of an engine that is idle what it serves, between
   * cells.
   */
  readonly waits: string | null;
  readonly wait: Wait | null;
  /**
   * What a process that is not blocked asks for in vain, again and again; null where it does not,
   * or has done so for less than 0.3 s.
   */
  readonly polls: Polls | null;
  /**
   * What the main thread of a process is in that is in no call of this package; null where that is
   * not known.
   */
  readonly now: Now | null;
  /** Where the process is blocked; where it made its last call while it computes. */
  readonly where: CodeLocation | null;
  /** What could go on beside a blocked call, and send, or end the wait. */
  readonly others: readonly Other[];
  /** A blocked call has looked at all that has arrived. */
  readonly settled: boolean;
  readonly depth: number;
  readonly bytes: number;
  readonly sent: number;
  readonly received: number;
  readonly peers: readonly Peer[];
  /** The oldest ones of the inbox. */
  readonly messages: readonly Message[];
}

/** What the processes of a world are doing now; by rank, those without a rank last. */
export interface Snapshot {
  readonly world: string;
  readonly time: number;
  readonly processes: readonly Process[];
  readonly sites: readonly Site[];
  readonly links: readonly Link[];
}

/**
 * Processes that are near each other, and the gateways through which they reach others; by name.
 */
export interface Site {
  readonly name: string;
  /** Those that live. */
  readonly processes: readonly Name[];
  readonly gateways: ReadonlyArray<{ readonly name: string; readonly address: string }>;
  /**
   * What somebody should know: a clock that differs from this machine's by two seconds or more,
   * that the site has no gateway where others have, what its gateways say; empty where there is
   * nothing.
   */
  readonly sentence: string;
}

/** The connections from one site to another, as one; as those who send over them see them. */
export interface Link {
  readonly from: string;
  readonly to: string;
  /** gateway: between the sites' gateways; direct: between their processes. */
  readonly via: 'direct' | 'gateway';
  /** How many connections there are. */
  readonly count: number;
  /** TCP's congestion control. */
  readonly algorithm: string;
  /**
   * What keeps them from forgetting in a silence how much they carry: bbr, heartbeat; empty where
   * nothing does, or nothing is needed.
   */
  readonly warm: string;
  readonly rtt_s: number | null;
  /** Bytes per second, of late. */
  readonly rate: number | null;
  /** Packets that may be under way. */
  readonly cwnd: number | null;
  /** Retransmission timeouts. */
  readonly rto: number | null;
  /** Packets that were sent again. */
  readonly retransmissions: number | null;
  /**
   * Packets that came out of order at the other end, each of which it has answered with a duplicate
   * acknowledgement.
   */
  readonly dup_acks: number | null;
  /** Times that a silence has made the window fall. */
  readonly idle_restarts: number;
  /** Seconds for which the other end has not answered; null while it does. */
  readonly silent_s: number | null;
  /** The gateways play the way between them. */
  readonly emulated: boolean;
  /** Whether something costs time. */
  readonly trouble: boolean;
  /** What does; empty where nothing does. */
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
  readonly misses: ReadonlyArray<{ readonly name: string; readonly has: string | null; readonly wants: string; readonly like?: string }>;
}

/** Why one process does not go on. */
export interface Judgement {
  readonly uid: string;
  readonly name: Name;
  /** stuck: nothing can make it go on. */
  readonly verdict: 'stuck' | 'waits' | 'acts' | 'idle' | 'dead' | 'left';
  readonly text: string;
  readonly where: CodeLocation | null;
  readonly call: number;
  readonly near: readonly Near[];
}

/** It would be a deadlock if these did nothing: threads, callbacks, handlers. */
export interface Proviso {
  readonly cycle: readonly Name[];
  readonly stuck: readonly Name[];
  readonly since: number;
  readonly others: ReadonlyArray<{ readonly process: Name; readonly other: Other }>;
}

export type Verdict = 'deadlock' | 'waiting' | 'running' | 'idle' | 'empty';

/** Why a world does not go on. */
export interface Diagnosis {
  readonly world: string;
  readonly time: number;
  readonly verdict: Verdict;
  /** Who waits for whom, in a ring where it is one; empty without a deadlock. */
  readonly cycle: readonly Name[];
  /** All who cannot go on: the cycle and who waits for it. */
  readonly stuck: readonly Name[];
  /** When the last of them came to a halt. */
  readonly since: number | null;
  /** The diagnosis in one line. */
  readonly title: string;
  readonly sentences: readonly string[];
  readonly edges: readonly Edge[];
  readonly but_for: Proviso | null;
  readonly processes: readonly Judgement[];
}

/** A time in which a process was in one state. */
export interface Span {
  readonly uid: string;
  readonly begin: number;
  readonly end: number | null;
  readonly state: LiveState;
  readonly where: CodeLocation | null;
}

/** A message from its sending to its receipt. */
export interface Flight {
  readonly id: string;
  /** the sender's uid */
  readonly src: string;
  /** the receiver's uid */
  readonly dest: string;
  /** which message of this pair, from 1 on */
  readonly number: number;
  readonly sent: number | null;
  readonly received: number | null;
  readonly bytes: number;
  readonly attributes: Attributes;
  readonly sent_at: CodeLocation | null;
  readonly received_at: CodeLocation | null;
  /** Who let the other wait. */
  readonly late: 'sender' | 'receiver' | null;
  /** Seconds that the other waited for it. */
  readonly cost: number;
  /** When the other began to wait; null where nobody was late. */
  readonly since: number | null;
}

/** A process of a timeline. */
export interface Row {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
}

/** What happened in a world, or what is new since the last one that was asked for. */
export interface Timeline {
  readonly world: string;
  /** The start of the last run. */
  readonly begin: number;
  readonly end: number;
  /** Events that were overwritten before they were read. */
  readonly missing: number;
  readonly processes: readonly Row[];
  readonly spans: readonly Span[];
  readonly flights: readonly Flight[];
}

/** What a panel asks to be sent of a world. */
export type Part = 'snapshot' | 'diagnosis' | 'timeline';

/** What comes over the websocket. */
export type ServerText =
  | { readonly type: 'worlds'; readonly time: number; readonly worlds: readonly World[] }
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'diagnosis'; readonly diagnosis: Diagnosis }
  | { readonly type: 'timeline'; readonly timeline: Timeline }
  | { readonly type: 'gone'; readonly world: string }
  | { readonly type: 'error'; readonly text: string };

/** A world of this user, for a list. */
export interface World {
  readonly world: string;
  /** How it is shown: the notebook's or the cluster's name, else the world's. */
  readonly title: string;
  /** The id for %sfm connect, if it is a cluster's world. */
  readonly cluster: string | null;
  /**
   * Who started the engines and can start more: the server (from the panel), a notebook, or
   * somebody else.
   */
  readonly owner: 'server' | 'notebook' | 'other';
  /** The kernels of notebooks that are in it, of this server. */
  readonly kernels: readonly string[];
  readonly engines: number;
  readonly running: number;
  readonly blocked: number;
  readonly dead: number;
}
