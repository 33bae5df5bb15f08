import * as React from 'react';
import { useWidth } from '../graph/size';
import { cut } from '../model/text';
import type { Site, Snapshot } from '../model/types';
import { Box, BOX, layoutOf, sentencesOf, SiteLink, siteLinksOf, membersText } from './model';

/** The most characters of a name in a site's box. */
const LONGEST = 15;

/** The sites of a world with the links between them, and sentences about what costs time. */
export function SitesView({ snapshot }: { readonly snapshot: Snapshot }): JSX.Element {
  const outer = React.useRef<HTMLDivElement>(null);
  const width = useWidth(outer);
  const { sites, links } = snapshot;
  const layout = layoutOf(sites, width);
  const pairs = siteLinksOf(links);
  const drawn = pairs.flatMap(pair => {
    const line = lineOf(pair, layout.boxes);
    return line ? [{ pair, line }] : [];
  });
  const sentences = sentencesOf(sites, links);
  const texts = pairs.map(pair => `${pair.ends.join(' and ')}: ${pair.label || 'connected'}`);
  return (
    <div className="sfm-Sites" ref={outer}>
      <svg
        role="img"
        aria-label={`${sites.length} sites. ${texts.join('. ')}`}
        width={layout.width}
        height={layout.height}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
      >
        {drawn.map(({ pair, line }) => (
          <g key={pair.key} className={kindOf(pair)} data-trouble={pair.trouble}>
            <title>{pair.about}</title>
            <line x1={line.from.x} y1={line.from.y} x2={line.to.x} y2={line.to.y} />
          </g>
        ))}
        {sites.map(site => {
          const box = layout.boxes.get(site.name);
          return box && <SiteBox key={site.name} site={site} box={box} />;
        })}
        {drawn.map(({ pair, line }) => (
          <text
            key={pair.key}
            className={`sfm-Sites-label ${kindOf(pair)}`}
            x={line.label.x}
            y={line.label.y}
            textAnchor="middle"
          >
            {pair.trouble ? `⚠ ${pair.label}` : pair.label}
          </text>
        ))}
      </svg>
      {pairs.length === 0 && <p className="sfm-Dim">No connection between them is known yet.</p>}
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
  const gateways = site.gateways.map(gateway => gateway.name).join(' ');
  return (
    <g
      className="sfm-Sites-site"
      transform={`translate(${box.x - BOX.width / 2} ${box.y - BOX.height / 2})`}
    >
      <title>{site.processes.map(String).join(' ')}</title>
      <rect width={BOX.width} height={BOX.height} rx={4} />
      <text className="sfm-Sites-name" x={8} y={18}>
        {cut(site.name, LONGEST)}
      </text>
      <text x={8} y={34}>
        {membersText(site)}
      </text>
      <text className="sfm-Sites-gateway" x={8} y={50}>
        {gateways ? `⇄ ${cut(gateways, LONGEST)}` : 'no gateway'}
      </text>
    </g>
  );
}

interface Line {
  readonly from: Box;
  readonly to: Box;
  readonly label: Box;
}

/** A line between the middles of two boxes; a direct link is beside the one through gateways. */
function lineOf(pair: SiteLink, boxes: ReadonlyMap<string, Box>): Line | null {
  const [from, to] = pair.ends.map(name => boxes.get(name));
  if (!from || !to) {
    return null;
  }
  const direct = pair.links[0]?.via === 'direct';
  const flat = Math.abs(to.x - from.x) >= Math.abs(to.y - from.y);
  const [dx, dy] = direct ? (flat ? [0, 9] : [9, 0]) : [0, 0];
  const moved = ({ x, y }: Box): Box => ({ x: x + dx, y: y + dy });
  const [x, y] = [(from.x + to.x) / 2 + dx, (from.y + to.y) / 2 + dy];
  return {
    from: moved(from),
    to: moved(to),
    label: { x, y: flat ? y + (direct ? 14 : -6) : y + 4 }
  };
}

function kindOf(pair: SiteLink): string {
  const direct = pair.links[0]?.via === 'direct' ? ' sfm-mod-direct' : '';
  return `sfm-Sites-way${pair.trouble ? ' sfm-mod-trouble' : ''}${direct}`;
}
