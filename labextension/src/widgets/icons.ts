import { LabIcon } from '@jupyterlab/ui-components';

function icon(name: string, drawing: string): LabIcon {
  const svgstr =
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">' +
    `<g class="jp-icon3" fill="#616161">${drawing}</g></svg>`;
  return new LabIcon({ name: `sfm:${name}`, svgstr });
}

/** Three processes that send to each other. */
export const sfmIcon = icon(
  'panel',
  '<circle cx="8" cy="3" r="2.2"/><circle cx="3" cy="12" r="2.2"/>' +
    '<circle cx="13" cy="12" r="2.2"/>' +
    '<path d="M6.6 5.4 4.2 9.7l.9.5 2.4-4.3zM9.4 5.4l-.9.5 2.4 4.3.9-.5zM5.8 11.5v1h4.4v-1z"/>'
);

export const graphIcon = icon(
  'graph',
  '<circle cx="3.4" cy="8" r="2.4"/><circle cx="12.6" cy="3.6" r="2.4"/>' +
    '<circle cx="12.6" cy="12.4" r="2.4"/>' +
    '<path d="m5.3 6.4 5-2.5.4.9-5 2.5zM5.7 8.7l5 2.5-.4.9-5-2.5z"/>'
);

export const timelineIcon = icon(
  'timeline',
  '<path d="M1 3h7v2H1zM10 3h5v2h-5zM1 11h4v2H1zM7 11h8v2H7zM6.2 5.4l.9-.4 2.7 5.4-.9.4z"/>'
);

export const processesIcon = icon(
  'processes',
  '<path d="M2 3h2v2H2zM6 3h8v2H6zM2 7h2v2H2zM6 7h8v2H6zM2 11h2v2H2zM6 11h8v2H6z"/>'
);

export const pinIcon = icon(
  'pin',
  '<path d="M5 1.5h6v1.2l-1 .8v3.4l2 2.1v1.3H8.6V15L8 16l-.6-1v-4.7H4V9l2-2.1V3.5l-1-.8z"/>'
);

export const insertIcon = icon(
  'insert',
  '<path d="M2 2h12v5h-1.2V3.2H3.2V7H2zM2 14h12v-3h-1.2v1.8H3.2V11H2z"/>' +
    '<path d="M7.4 5h1.2v4h1.9L8 11.8 5.5 9h1.9z"/>'
);
