/**
 * What the server sends, made of sfm_kernel/observe/schema.json by tools/schema_types.py: change
 * the schema, not this file. Times are seconds since 1970, lengths bytes. Every text comes from a
 * program or a message: it is shown as a text node.
 */

/** The name that addresses a process; its rank if it has no other. */
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
 * Names and values of a message's attributes, values in Python's notation; long values are cut with
 * an ellipsis, objects and arrays are described in angle brackets.
 */
export type Attributes = ReadonlyArray<readonly [string, string]>;

/**
 * The value that an attribute of a message must have; or a predicate, a function, whose name is
 * shown.
 */
export interface Condition {
  readonly name: string;
  readonly value: string;
  readonly predicate: boolean;
}

/** What a blocked call waits for. */
export interface Wait {
  /** The kind of call; join: it waits for others to join the world. */
  readonly kind: 'recv' | 'send' | 'collective' | 'cell' | 'join' | 'other';
  readonly text: string;
  /** The conditions of a receive. */
  readonly template: readonly Condition[];
  /** The processes that could end the wait; null if any process could. */
  readonly peers: readonly Name[] | null;
  /** Whether the wait needs all of them, not only one. */
  readonly all: boolean;
  /** When the wait ends by itself; null if it does not. */
  readonly until: number | null;
  /** The context whose messages the call receives; empty for the default context. */
  readonly context_id: string;
  /** The call that the wait is part of: a collective call, a call of MPI. */
  readonly purpose: string;
  /** The group of a collective call: its id, and its name in sentences. */
  readonly group?: readonly [string, string] | null;
  /** The id of the group whose collective calls `made` has, for any other call of MPI. */
  readonly on?: string;
  /** The processes of the group, if they are few. */
  readonly members?: readonly Name[];
  /** The number of a collective call of MPI on its communicator. */
  readonly turn?: number;
  /** The latest collective calls on that communicator. */
  readonly made?: readonly Begun[];
  /** The number of requests that it waits for. */
  readonly count?: number;
  /** Those of them that have not ended, as far as they are known. */
  readonly open?: readonly Begun[];
}

/** A call that was made before. */
export interface Begun {
  readonly text: string;
  readonly where: CodeLocation | null;
  /** The number of a collective call. */
  readonly number?: number;
  /** For a receive, as in wait; so is the next. */
  readonly context_id?: string;
  readonly template?: readonly Condition[];
}

/**
 * A part of a process that could go on while a call is blocked, or after the program's end: a
 * thread, by its name (empty if _thread started it); a callback, by its call of regcb; the handler
 * of a signal, or a timer, by the signal; a function that a call runs while it waits, by its name;
 * a task or timer of an event loop, by its name; polling calls, by the latest of them; a lock that
 * the main thread waits for; a newcomer who could still join a world that has all its ranks, by the
 * names that are waited for; a connection to another world, by its name there.
 */
export interface Other {
  readonly kind: 'thread' | 'callback' | 'signal' | 'timer' | 'hook' | 'task' | 'polls' | 'lock' | 'newcomer' | 'world' | 'more';
  readonly name: string;
  readonly where: CodeLocation | null;
  readonly cell: number | null;
}

/** The activity of a main thread. */
export interface Now {
  readonly does: 'computes' | 'input' | 'lock' | 'sleep' | 'child' | 'system' | 'native' | 'stopped';
  readonly where: CodeLocation | null;
  readonly alone?: boolean;
}

/**
 * Calls that ask for a message and find none: recv_nb, peek, Iprobe, Test, and recv that has timed
 * out.
 */
export interface Polls {
  /** The number of calls since a message arrived. */
  readonly count: number;
  readonly since: number;
  /** The request of the latest call, as the wait of a receive. */
  readonly wait: Wait;
  readonly where: CodeLocation | null;
}

/** A message in an inbox. */
export interface Message {
  readonly src: Name | null;
  /** The context that it belongs to; empty for the default context. */
  readonly context_id: string;
  /** The name of that context, if the program has given it one. */
  readonly context?: string | null;
  readonly bytes: number;
  readonly attributes: Attributes;
}

/** The messages between a process and another one. */
export interface Peer {
  /**
   * The last 16 digits of its uid; empty for one entry that stands for all peers, if there were too
   * many.
   */
  readonly uid: string;
  readonly name: Name | null;
  readonly sent: number;
  readonly arrived: number;
  readonly received: number;
}

/** The state of a living process, as a timeline shows it. */
export type LiveState =
  | 'idle'
  | 'running'
  | 'blocked in recv'
  | 'blocked in send'
  | 'blocked in collective'
  | 'blocked in cell';

/** The state of a process. */
export type State = LiveState | 'left' | 'ended' | 'damaged';

/** A member of a world. */
export interface Process {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
  /**
   * An engine runs cells, a notebook is the kernel of its user's notebook, a process runs a
   * program.
   */
  readonly kind: 'engine' | 'notebook' | 'process';
  /** The number of ranked processes that the world will have; null if more may join. */
  readonly size: number | null;
  readonly host: string | null;
  /**
   * Processes of one site are near each other; the machine's name, unless the user names another
   * site.
   */
  readonly site: string | null;
  readonly pid: number | null;
  /** Whether it runs on the observer's machine. */
  readonly here: boolean;
  readonly alive: boolean;
  readonly state: State;
  readonly since: number;
  /**
   * Since when a process that is not proven dead has not answered at its address; null while it
   * answers, or if no other process has tried.
   */
  readonly unreachable: number | null;
  /**
   * Since when nobody on the process's machine has told what it does, if that is two seconds or
   * more: the relay there has ended, or its machine is cut off.
   */
  readonly unseen: number | null;
  /** The gateways' reason why nothing reaches it; null if they give none. */
  readonly unreachable_why: string | null;
  /** Grows with each blocked call. */
  readonly call: number;
  /**
   * What a blocked call waits for, in one line; for an idle engine what it serves between cells.
   */
  readonly waits: string | null;
  readonly wait: Wait | null;
  /**
   * The polling of a process that is not blocked; null if it does not poll, or has polled for less
   * than 0.3 s.
   */
  readonly polls: Polls | null;
  /**
   * The activity of the main thread while it is in no call of this package; null if that is not
   * known.
   */
  readonly now: Now | null;
  /** Where the process is blocked; where it made its last call while it computes. */
  readonly where: CodeLocation | null;
  /**
   * The error that has ended the latest cell of an idle engine, by its type, and the user's line
   * that raised it; null if the cell has succeeded.
   */
  readonly failed: { readonly error: string; readonly where: CodeLocation | null } | null;
  /**
   * How a process that has ended did so, in words that follow its name; null if that is not known.
   */
  readonly end: string | null;
  /**
   * The threads and callbacks that could go on beside a blocked call, and send, or end the wait.
   */
  readonly others: readonly Other[];
  /** A blocked call has examined all that has arrived. */
  readonly settled: boolean;
  readonly depth: number;
  readonly bytes: number;
  readonly sent: number;
  readonly received: number;
  readonly peers: readonly Peer[];
  /** The templates of callbacks that are registered. */
  readonly callbacks: ReadonlyArray<readonly Condition[]>;
  /** The oldest messages of the inbox. */
  readonly messages: readonly Message[];
}

/** A world at one moment; its processes by rank, those without a rank last. */
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
  /** The living ones. */
  readonly processes: readonly Name[];
  readonly gateways: ReadonlyArray<{ readonly name: string; readonly address: string }>;
  /**
   * Remarks: that a clock differs from this machine's by two seconds or more, that the site has no
   * gateway although others have, and the notes of its gateways; empty if there are none.
   */
  readonly sentence: string;
}

/** The connections from one site to another, taken together, as their senders see them. */
export interface Link {
  readonly from: string;
  readonly to: string;
  /** gateway: between the sites' gateways; direct: between their processes. */
  readonly via: 'direct' | 'gateway';
  /** The number of connections. */
  readonly count: number;
  /** TCP's congestion control. */
  readonly algorithm: string;
  /**
   * What keeps the congestion window open during a silence: bbr, heartbeat; empty if nothing does,
   * or nothing is needed.
   */
  readonly warm: string;
  readonly rtt_s: number | null;
  /** The recent rate in bytes per second. */
  readonly rate: number | null;
  /** Packets that may be under way. */
  readonly cwnd: number | null;
  /** Retransmission timeouts. */
  readonly rto: number | null;
  /** Packets that were sent again. */
  readonly retransmissions: number | null;
  /**
   * Packets that arrived out of order at the other end; it has answered each with a duplicate
   * acknowledgement.
   */
  readonly dup_acks: number | null;
  /** The number of times that a silence has made the window fall. */
  readonly idle_restarts: number;
  /** Seconds for which the other end has not answered; null while it does. */
  readonly silent_s: number | null;
  /** The gateways emulate the path between them. */
  readonly emulated: boolean;
  /** Whether a trouble costs time. */
  readonly trouble: boolean;
  /** The troubles in a sentence; empty if there are none. */
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
  readonly verdict: 'stuck' | 'waits' | 'acts' | 'idle' | 'ended' | 'left';
  readonly text: string;
  readonly where: CodeLocation | null;
  readonly call: number;
  readonly near: readonly Near[];
}

/** A deadlock that only these threads, callbacks or handlers could resolve. */
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
  /**
   * The processes that wait for each other, in the order of the ring if it is one; empty without a
   * deadlock.
   */
  readonly cycle: readonly Name[];
  /** All processes that cannot go on: the cycle and those that wait for it. */
  readonly stuck: readonly Name[];
  /** When the last of them blocked. */
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

/** A message from its send to its receipt. */
export interface Flight {
  readonly id: string;
  /** the sender's uid */
  readonly src: string;
  /** the receiver's uid */
  readonly dest: string;
  /** the message's number within this pair, from 1 */
  readonly number: number;
  readonly sent: number | null;
  readonly received: number | null;
  readonly bytes: number;
  readonly attributes: Attributes;
  readonly sent_at: CodeLocation | null;
  readonly received_at: CodeLocation | null;
  /** The end that let the other wait. */
  readonly late: 'sender' | 'receiver' | null;
  /** Seconds that the other end waited. */
  readonly cost: number;
  /** When the other end began to wait; null if none was late. */
  readonly since: number | null;
}

/** A process of a timeline. */
export interface Row {
  readonly uid: string;
  readonly name: Name;
  readonly rank: number | null;
}

/** The last run of a world, or what is new in it since the last request. */
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

/** What the processes of a world use of their machine. */
export interface Usage {
  readonly world: string;
  readonly time: number;
  readonly processes: ReadonlyArray<{ readonly uid: string; readonly memory: number | null; readonly limit: number | null; readonly processor: number | null }>;
}

/** A part of a world that a panel subscribes to. */
export type Part = 'snapshot' | 'diagnosis' | 'timeline' | 'usage';

/** A run of a program that has ended, and whose record is kept. */
export interface FinishedRun {
  readonly id: string;
  /** The name of the program's file, or of the cell that has it. */
  readonly program: string;
  readonly ranks: number;
  /** When it ended. */
  readonly time: number;
  /** How it ended, in a few words. */
  readonly end: string;
}

/** A message on the websocket. */
export type ServerText =
  | { readonly type: 'worlds'; readonly time: number; readonly worlds: readonly World[] }
  | { readonly type: 'runs'; readonly runs: readonly FinishedRun[] }
  | { readonly type: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'diagnosis'; readonly diagnosis: Diagnosis }
  | { readonly type: 'timeline'; readonly timeline: Timeline }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'gone'; readonly world: string }
  | { readonly type: 'error'; readonly text: string };

/** A world of this user, for a list. */
export interface World {
  readonly world: string;
  /**
   * Its title: the name of the notebook, the program or the cluster, or of the world if it has
   * none.
   */
  readonly title: string;
  /**
   * The name for %sfm connect, if it is a cluster's world: the notebook's or, if that would be
   * ambiguous, the cluster's id.
   */
  readonly cluster: string | null;
  /**
   * The owner, which started the engines and can start more: the server (from the panel), a
   * notebook, or another program.
   */
  readonly owner: 'server' | 'notebook' | 'other';
  /** The kernels of this server's notebooks that are in the world. */
  readonly kernels: readonly string[];
  readonly engines: number;
  readonly running: number;
  readonly blocked: number;
  readonly ended: number;
}
