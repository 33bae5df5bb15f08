import type { Link, Site } from '../model/types';

/** The links between two sites, both directions together. */
export interface SiteLink {
  readonly key: string;
  readonly ends: readonly [string, string];
  readonly links: readonly Link[];
  /** Round-trip time and rate. */
  readonly label: string;
  readonly trouble: boolean;
  /** The details that a tooltip shows. */
  readonly about: string;
}

export interface Box {
  readonly x: number;
  readonly y: number;
}

/** A drawing: the middle of each site's box, and the size of the drawing. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
}

export const BOX = { width: 132, height: 58 };
const GAP = 118;
const EDGE = 6;

/** The links between sites; direct ones are separate from those through gateways. */
export function siteLinksOf(links: readonly Link[]): SiteLink[] {
  const found = new Map<string, Link[]>();
  for (const link of links) {
    const ends = [link.from, link.to].sort();
    const key = JSON.stringify([...ends, link.via]);
    found.set(key, [...(found.get(key) ?? []), link]);
  }
  return [...found].map(([key, both]) => {
    const { from, to } = both[0]!;
    const ends = [from, to].sort() as [string, string];
    const trouble = both.some(link => link.trouble);
    return { key, ends, links: both, label: labelOf(both), trouble, about: aboutOf(both) };
  });
}

/** The sentences below the drawing: first those about what costs time. */
export function sentencesOf(sites: readonly Site[], links: readonly Link[]): string[] {
  const first = [...links].sort((a, b) => Number(b.trouble) - Number(a.trouble));
  const sentences = [...sites, ...first].map(item => item.sentence);
  return [...new Set(sentences)].filter(text => text !== '');
}

function labelOf(links: readonly Link[]): string {
  const silent = largest(links.map(link => link.silent_s));
  if (silent !== null) {
    return `no answer for ${Math.round(silent)} s`;
  }
  const trip = largest(links.map(link => link.rtt_s));
  const rate = largest(links.map(link => link.rate));
  const texts = [trip === null ? '' : tripText(trip), rate ? rateText(rate) : ''];
  return texts.filter(text => text !== '').join(' · ');
}

function aboutOf(links: readonly Link[]): string {
  const lines = links.map(
    link =>
      `${link.from} → ${link.to}: ${link.count} between ` +
      (link.via === 'direct' ? 'processes' : 'gateways') +
      (link.algorithm ? `, ${link.algorithm}` : '') +
      (link.cwnd === null ? '' : `, window ${link.cwnd}`) +
      `, ${link.rto ?? '?'} timeouts, ${link.retransmissions ?? '?'} resent` +
      (link.dup_acks === null ? '' : `, ${link.dup_acks} duplicate acknowledgements`) +
      `, ${link.idle_restarts} idle restarts`
  );
  return lines.join('\n');
}

function tripText(seconds: number): string {
  const ms = seconds * 1000;
  return ms < 1 ? `${Math.max(1, Math.round(ms * 1000))} µs` : `${Number(ms.toPrecision(2))} ms`;
}

function rateText(bytes: number): string {
  const bits = bytes * 8;
  const [unit, name] = bits >= 1e9 ? [1e9, 'Gbit/s'] : bits >= 1e6 ? [1e6, 'Mbit/s'] : [1e3, 'kbit/s'];
  return `${Number((bits / unit).toPrecision(2))} ${name}`;
}

function largest(values: ReadonlyArray<number | null>): number | null {
  const known = values.filter((value): value is number => value !== null);
  return known.length > 0 ? Math.max(...known) : null;
}

/** Two sites side by side, or one above the other if the panel is narrow; more in a ring. */
export function layoutOf(sites: readonly Site[], width: number): Layout {
  const boxes = new Map<string, Box>();
  const [halfX, halfY] = [BOX.width / 2 + EDGE, BOX.height / 2 + EDGE];
  if (sites.length <= 2) {
    const wide = width >= 2 * BOX.width + GAP + 2 * EDGE;
    const [stepX, stepY] = wide ? [BOX.width + GAP, 0] : [0, BOX.height + 44];
    sites.forEach((site, nth) =>
      boxes.set(site.name, { x: halfX + nth * stepX, y: halfY + nth * stepY })
    );
    return {
      width: 2 * halfX + (sites.length - 1) * stepX,
      height: 2 * halfY + (sites.length - 1) * stepY,
      boxes
    };
  }
  const across = Math.max(130, ((BOX.width + 40) * sites.length) / (2 * Math.PI));
  const down = Math.max(95, ((BOX.height + 50) * sites.length) / (2 * Math.PI));
  sites.forEach((site, nth) => {
    const turn = (2 * Math.PI * nth) / sites.length - Math.PI / 2;
    boxes.set(site.name, {
      x: halfX + across + across * Math.cos(turn),
      y: halfY + down + down * Math.sin(turn)
    });
  });
  return { width: 2 * (halfX + across), height: 2 * (halfY + down), boxes };
}

/** A site's processes in one line: their names, or their number if there is no room. */
export function membersText(site: Site): string {
  const names = site.processes.map(String);
  const text = names.join(' ');
  return text.length <= 20 ? text : `${names.length} processes`;
}
