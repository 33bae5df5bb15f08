import type { Diagnosis, Name, CodeLocation, Process, State, World } from './types';

/** `cell 7 line 3`, or the end of the file's path with its line. */
export function locationText({ file, line, cell }: CodeLocation): string {
  return cell === null ? `${file.split('/').at(-1)}:${line}` : `cell ${cell} line ${line}`;
}

/** Rounded down, since a text that changes more often cannot be read and costs drawing. */
export function durationText(seconds: number): string {
  const rounded = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(rounded / 60);
  if (minutes === 0) {
    return rounded === 0 ? '< 1 s' : `${rounded} s`;
  }
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** Messages a second, in at most five characters. */
export function rateText(rate: number): string {
  if (rate >= 999.5) {
    return `${(rate / 1000).toFixed(rate < 9950 ? 1 : 0)}k`;
  }
  return rate === 0 || rate >= 9.95 ? rate.toFixed(0) : rate.toFixed(1);
}

export function plural(count: number, word: string, several = `${word}s`): string {
  return `${count} ${count === 1 ? word : several}`;
}

export function namesText(names: readonly Name[]): string {
  return names.length < 2
    ? names.join('')
    : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

export type Counts = Pick<World, 'engines' | 'running' | 'blocked' | 'ended'>;

/** The numbers of engines that run, wait, are idle or have ended, each with its state and word; no zeros. */
export function partsOf({ engines, running, blocked, ended }: Counts) {
  const parts: ReadonlyArray<readonly [State, number, string]> = [
    ['running', running, 'running'],
    ['blocked in recv', blocked, 'blocked'],
    ['idle', engines - running - blocked - ended, 'idle'],
    ['ended', ended, 'ended']
  ];
  return parts.filter(([, count]) => count > 0);
}

/** `1 running, 3 idle` */
export function countsText(counts: Counts): string {
  const parts = partsOf(counts).map(([, count, word]) => `${count} ${word}`);
  return parts.join(', ') || 'no engines';
}

/** The site of each process, by uid; empty if all processes are at one site. */
export function siteTexts(processes: readonly Process[]): ReadonlyMap<string, string> {
  const sites = processes.flatMap(({ uid, site }) => (site === null ? [] : [[uid, site] as const]));
  return new Map(new Set(sites.map(([, site]) => site)).size > 1 ? sites : []);
}

/** The diagnosis as plain text, for a mail or an issue. */
export function diagnosisText(diagnosis: Diagnosis, world: string): string {
  const lines = [diagnosis.title, ...diagnosis.sentences.map(sentence => `- ${sentence}`), ''];
  for (const { name, verdict, text, where } of diagnosis.processes) {
    lines.push(`${name} (${verdict}): ${text}${where ? ` [${locationText(where)}]` : ''}`);
  }
  lines.push('', `World ${world}, ${new Date(diagnosis.time * 1000).toISOString()}`);
  return lines.join('\n');
}

/** At most `length` characters; the end is cut, since the beginning is more informative. */
export function cut(text: string, length: number): string {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, Math.max(1, length - 1)).join('')}…`;
}

/** Whether two values have the same JSON text. */
export function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
