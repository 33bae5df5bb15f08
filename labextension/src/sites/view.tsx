import * as React from 'react';
import { useWidth } from '../graph/size';
import type { Site, Snapshot } from '../model/types';
import { Box, BOX, layoutOf, sentencesOf, Way, waysOf, whoText } from './model';

/** The sites of a world with the ways between them, and below it what costs time there. */
export function SitesView({ snapshot }: { readonly snapshot: Snapshot }): JSX.Element {
  const outer = React.useRef<HTMLDivElement>(null);
  const width = useWidth(outer);
  const { sites, links } = snapshot;
  const layout = layoutOf(sites, width);
  const ways = waysOf(links);
  const drawn = ways.flatMap(way => {
    const line = lineOf(way, layout.boxes);
    return line ? [{ way, line }] : [];
  });
  const sentences = sentencesOf(sites, links);
  const told = ways.map(way => `${way.ends.join(' and ')}: ${way.label || 'connected'}`);
  return (
    <div className="sfm-Sites" ref={outer}>
      <svg
        role="img"
        aria-label={`${sites.length} sites. ${told.join('. ')}`}
        width={layout.width}
        height={layout.height}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
      >
        {drawn.map(({ way, line }) => (
          <g key={way.key} className={kindOf(way)} data-trouble={way.trouble}>
            <title>{way.about}</title>
            <line x1={line.from.x} y1={line.from.y} x2={line.to.x} y2={line.to.y} />
          </g>
        ))}
        {sites.map(site => {
          const box = layout.boxes.get(site.name);
          return box && <SiteBox key={site.name} site={site} box={box} />;
        })}
        {drawn.map(({ way, line }) => (
          <text
            key={way.key}
            className={`sfm-Sites-label ${kindOf(way)}`}
            x={line.label.x}
            y={line.label.y}
            textAnchor="middle"
          >
            {way.trouble ? `⚠ ${way.label}` : way.label}
          </text>
        ))}
      </svg>
      {ways.length === 0 && <p className="sfm-Dim">No connection between them is known yet.</p>}
      {sentences.length > 0 && (
        <ul>
          {sentences.map(sentence => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function SiteBox({ site, box }: { readonly site: Site; readonly box: Box }): JSX.Element {
  const gateways = site.gateways.map(one => one.name).join(' ');
  return (
    <g
      className="sfm-Sites-site"
      transform={`translate(${box.x - BOX.width / 2} ${box.y - BOX.height / 2})`}
    >
      <title>{site.processes.map(String).join(' ')}</title>
      <rect width={BOX.width} height={BOX.height} rx={4} />
      <text className="sfm-Sites-name" x={8} y={18}>
        {cut(site.name)}
      </text>
      <text x={8} y={34}>
        {whoText(site)}
      </text>
      <text className="sfm-Sites-gateway" x={8} y={50}>
        {gateways ? `⇄ ${cut(gateways)}` : 'no gateway'}
      </text>
    </g>
  );
}

interface Line {
  readonly from: Box;
  readonly to: Box;
  readonly label: Box;
}

/** Between the middles of two boxes; the direct way runs beside the one through gateways. */
function lineOf(way: Way, boxes: ReadonlyMap<string, Box>): Line | null {
  const [one, other] = way.ends.map(name => boxes.get(name));
  if (!one || !other) {
    return null;
  }
  const direct = way.links[0]?.via === 'direct';
  const flat = Math.abs(other.x - one.x) >= Math.abs(other.y - one.y);
  const [dx, dy] = direct ? (flat ? [0, 9] : [9, 0]) : [0, 0];
  const moved = ({ x, y }: Box): Box => ({ x: x + dx, y: y + dy });
  const [x, y] = [(one.x + other.x) / 2 + dx, (one.y + other.y) / 2 + dy];
  return {
    from: moved(one),
    to: moved(other),
    label: { x, y: flat ? y + (direct ? 14 : -6) : y + 4 }
  };
}

function kindOf(way: Way): string {
  const direct = way.links[0]?.via === 'direct' ? ' sfm-mod-direct' : '';
  return `sfm-Sites-way${way.trouble ? ' sfm-mod-trouble' : ''}${direct}`;
}

function cut(text: string): string {
  return text.length <= 15 ? text : `${text.slice(0, 14)}…`;
}
