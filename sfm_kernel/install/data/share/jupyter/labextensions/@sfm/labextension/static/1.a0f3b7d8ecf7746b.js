"use strict";(self.rspackChunk_sfm_labextension=self.rspackChunk_sfm_labextension||[]).push([[1],{32(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* Colours come from JupyterLab's theme alone. A state has a shape and a text besides its colour. */

.sfm-Panel,
.sfm-View {
  overflow: auto;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
  container-type: inline-size;
}

.sfm-Panel p,
.sfm-View p {
  margin: 4px 0;
}

.sfm-Dim {
  color: var(--jp-ui-font-color2);
  font-weight: normal;
}

.sfm-Shape {
  width: 12px;
  height: 12px;
  flex: none;
  fill: currentcolor;
  vertical-align: -1px;
}

.sfm-Announcer {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}

/* Buttons */

.sfm-Button {
  display: inline-flex;
  align-items: center;
  gap: 4px;
  min-width: 24px;
  height: 24px;
  padding: 0 4px;
  border: var(--jp-border-width) solid transparent;
  border-radius: var(--jp-border-radius);
  background: none;
  color: var(--jp-ui-font-color1);
  font: inherit;
  cursor: pointer;
}

.sfm-Button.sfm-mod-text {
  padding: 0 8px 0 5px;
  border-color: var(--jp-border-color1);
  background: var(--jp-layout-color2);
}

.sfm-Button:hover:enabled {
  background: var(--jp-layout-color3);
}

.sfm-Button:disabled {
  opacity: 0.4;
  cursor: default;
}

.sfm-Button[aria-pressed='true'] {
  background: var(--jp-layout-color3);
  box-shadow: inset 0 -3px 0 var(--jp-brand-color1);
}

.sfm-Icon,
.sfm-Icon svg {
  display: block;
  width: 16px;
  height: 16px;
}

.sfm-CodeLocation {
  padding: 0;
  border: none;
  background: none;
  color: var(--jp-content-link-color);
  font: inherit;
  text-decoration: underline;
  cursor: pointer;
}

.sfm-Panel:focus-visible,
:is(.sfm-Panel, .sfm-View) :is(button, input, summary, tr):focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: -1px;
}

.sfm-Tools {
  display: inline-flex;
  margin-left: auto;
}

/* The panel's sections */

.sfm-Section {
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
}

.sfm-Section-head {
  display: flex;
  align-items: center;
  min-height: 28px;
  padding-right: 4px;
  background: var(--jp-layout-color2);
}

.sfm-Section-title {
  flex: 1 0 auto;
  margin: 0;
  font-size: var(--jp-ui-font-size1);
}

.sfm-Section-title button {
  display: flex;
  align-items: center;
  gap: 4px;
  width: 100%;
  padding: 5px 6px;
  border: none;
  background: none;
  color: inherit;
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}

.sfm-Section-about {
  min-width: 0;
  padding: 0 4px;
  overflow: hidden;
  color: var(--jp-ui-font-color2);
  text-overflow: ellipsis;
  white-space: nowrap;
}

.sfm-Section-tools {
  display: flex;
  flex: none;
}

.sfm-Section-body {
  padding: 4px 8px 8px;
}

.sfm-Notice {
  padding: 6px 8px;
}

.sfm-mod-warning {
  border-left: 4px solid var(--jp-warn-color1);
  background: var(--jp-layout-color2);
}

/* In a narrow panel the graph is smaller, so that all of it is visible. */
.sfm-Panel .sfm-Graph svg {
  max-width: 100%;
  height: auto;
}

/* Views of the main area */

.sfm-View-content {
  box-sizing: border-box;
  min-height: 100%;
  padding: 8px 12px 12px;
}

.sfm-View-head {
  display: flex;
  align-items: center;
  gap: 8px;
}

.sfm-View-head h2 {
  margin: 0 0 8px;
  font-size: var(--jp-ui-font-size2);
}

.sfm-Split {
  display: grid;
  grid-template-columns: minmax(0, 3fr) minmax(260px, 2fr);
  gap: 16px;
  align-items: start;
}

/* The table needs the width. */
.sfm-mod-processes .sfm-Split {
  grid-template-columns: minmax(0, 1fr);
}

@container (max-width: 720px) {
  .sfm-Split {
    grid-template-columns: minmax(0, 1fr);
  }
}

/* The status bar */

.sfm-Status-button {
  display: flex;
  align-items: center;
  gap: 8px;
  height: 100%;
  padding: 0 4px;
  border: none;
  background: none;
  color: inherit;
  font: inherit;
  cursor: pointer;
}

.sfm-Status-button:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: -2px;
}

.sfm-Status-blocked,
.sfm-Status-ended {
  font-weight: 600;
}

@media (max-width: 700px) {
  .sfm-Status-word {
    display: none;
  }
}

/* A cell that was jumped to */

@keyframes sfm-flash {
  from {
    box-shadow: inset 0 0 0 2px var(--jp-brand-color1);
  }
}

.sfm-mod-flash {
  animation: sfm-flash 1.5s ease-out;
}

@media (prefers-reduced-motion: reduce) {
  .sfm-mod-flash {
    animation: none;
    box-shadow: inset 0 0 0 2px var(--jp-brand-color1);
  }
}
`,""]),r.d(o,{},{A:s})},37(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* The wait-for graph. Whatever a colour shows, a width, a pattern or a text shows as well. */

.sfm-Graph {
  position: relative;
  min-width: 0;
}

.sfm-Graph-scroll {
  max-height: 70vh;
  overflow: auto;
}

.sfm-Graph-scroll > svg {
  display: block;
  margin: 0 auto;
  font-family: var(--jp-ui-font-family);
}

.sfm-Graph-tools {
  display: flex;
  justify-content: flex-end;
  gap: 2px;
}

.sfm-Graph-list {
  margin-top: 6px;
}

.sfm-Graph-list ul {
  margin: 4px 0;
  padding-left: 20px;
}

.sfm-Graph-list li {
  overflow-wrap: anywhere;
}

.sfm-Graph-list code {
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
}

/* Processes */

.sfm-Graph-node {
  color: var(--jp-ui-font-color2);
  cursor: pointer;
  outline: none;
}

.sfm-Graph-box,
.sfm-Graph-back {
  fill: var(--jp-layout-color1);
  stroke: var(--jp-border-color1);
  stroke-width: 1;
}

.sfm-Graph-node:hover .sfm-Graph-box {
  fill: var(--jp-layout-color2);
}

.sfm-Graph-name {
  fill: var(--jp-ui-font-color1);
  font-size: 13px;
  font-weight: 600;
}

.sfm-Graph-status {
  fill: var(--jp-ui-font-color1);
  font-size: 11px;
}

.sfm-Graph-node.sfm-mod-cycle {
  color: var(--jp-error-color1);
}

.sfm-Graph-node.sfm-mod-cycle .sfm-Graph-box {
  stroke: var(--jp-error-color1);
  stroke-width: 3;
}

.sfm-Graph-node.sfm-mod-victim,
.sfm-Graph-node.sfm-mod-waits {
  color: var(--jp-warn-color1);
}

.sfm-Graph-node.sfm-mod-victim .sfm-Graph-box {
  stroke: var(--jp-warn-color1);
  stroke-width: 2;
}

.sfm-Graph-node.sfm-mod-acts {
  color: var(--jp-success-color1);
}

.sfm-Graph-node:is(.sfm-mod-idle, .sfm-mod-left, .sfm-mod-ended) .sfm-Graph-box {
  stroke-dasharray: 3 3;
}

.sfm-Graph-node.sfm-mod-ended {
  color: var(--jp-error-color1);
}

.sfm-Graph-node:is(.sfm-mod-idle, .sfm-mod-left) :is(.sfm-Graph-name, .sfm-Graph-status) {
  fill: var(--jp-ui-font-color2);
}

/* After the others: the focus is shown whatever the node is. */
.sfm-Graph-node:focus-visible .sfm-Graph-box {
  stroke: var(--jp-brand-color1);
  stroke-width: 4;
  stroke-dasharray: none;
}

/* Waits */

:is(.sfm-Graph-line, .sfm-Graph-head) {
  --sfm-line: var(--jp-ui-font-color2);
}

:is(.sfm-Graph-line, .sfm-Graph-head).sfm-mod-victim {
  --sfm-line: var(--jp-warn-color1);
}

:is(.sfm-Graph-line, .sfm-Graph-head).sfm-mod-cycle {
  --sfm-line: var(--jp-error-color1);
}

.sfm-Graph-way {
  fill: none;
  stroke: var(--sfm-line);
  stroke-width: 1.3;
}

/* A pointer hits a line that is wider than the visible one. */
.sfm-Graph-reach {
  fill: none;
  stroke: transparent;
  stroke-width: 12;
}

.sfm-Graph-line:hover .sfm-Graph-way,
svg:focus-within > g > .sfm-Graph-line[data-near='true'] .sfm-Graph-way {
  stroke-width: 2.5;
}

.sfm-Graph-line.sfm-mod-cycle .sfm-Graph-way {
  stroke-width: 3.5;
  stroke-dasharray: 10 5;
}

.sfm-Graph-head {
  fill: var(--sfm-line);
}

.sfm-Graph-label rect {
  fill: var(--jp-layout-color1);
  opacity: 0.9;
}

.sfm-Graph-label text {
  fill: var(--jp-ui-font-color1);
  font-family: var(--jp-code-font-family);
  font-size: 10px;
}

.sfm-Graph-label.sfm-mod-cycle text {
  font-weight: 600;
}
`,""]),r.d(o,{},{A:s})},29(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=r.n(i),n=r(32),l=r(33),m=r(34),f=r(35),p=r(36),d=r(37),c=r(38),h=r(39),u=s()(t());u.i(n.A),u.i(l.A),u.i(m.A),u.i(f.A),u.i(p.A),u.i(d.A),u.i(c.A),u.i(h.A),u.push([e.id,`
`,""]),r.d(o,{},{A:u})},35(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* Lines of cells in which the processes of a deadlock wait */

.sfm-Marked {
  background: color-mix(in srgb, var(--jp-error-color1) 14%, transparent);
}

.sfm-Marked-note {
  margin-left: 2ch;
  padding: 0 4px;
  border-left: 3px solid var(--jp-error-color1);
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
  font-weight: 600;
  user-select: none;
}

.sfm-Gutter-sign {
  display: block;
  margin: 0 3px;
  color: var(--jp-error-color1);
  cursor: default;
}

.sfm-Gutter-sign::before {
  content: '▲';
}
`,""]),r.d(o,{},{A:s})},38(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* Sites and the links between them. Whatever a colour shows, a pattern or a text shows as well. */

.sfm-Sites {
  min-width: 0;
  overflow-x: auto;
}

.sfm-Sites svg {
  display: block;
  margin: 0 auto;
  max-width: max(100%, 330px);
  height: auto;
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size0);
}

.sfm-Sites text {
  fill: var(--jp-ui-font-color1);
}

.sfm-Sites-site rect {
  fill: var(--jp-layout-color1);
  stroke: var(--jp-border-color1);
}

.sfm-Sites-site .sfm-Sites-name {
  font-weight: 600;
  font-size: var(--jp-ui-font-size1);
}

.sfm-Sites-site .sfm-Sites-gateway {
  fill: var(--jp-ui-font-color2);
}

.sfm-Sites-way line {
  stroke: var(--jp-ui-font-color2);
  stroke-width: 3;
}

.sfm-Sites-way.sfm-mod-direct line {
  stroke-width: 1;
}

.sfm-Sites-way.sfm-mod-trouble line {
  stroke: var(--jp-error-color1);
  stroke-dasharray: 6 4;
}

/* Readable over its line. */
.sfm-Sites .sfm-Sites-label {
  paint-order: stroke;
  stroke: var(--jp-layout-color1);
  stroke-width: 5;
  stroke-linejoin: round;
}

.sfm-Sites .sfm-Sites-label.sfm-mod-trouble {
  fill: var(--jp-error-color1);
  font-weight: 600;
}

.sfm-Sites ul {
  margin: 4px 0;
  padding-left: 20px;
}

.sfm-Sites li {
  overflow-wrap: anywhere;
}
`,""]),r.d(o,{},{A:s})},33(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/*
 * The processes and their queues. Each row is a separate grid of a fixed height, and contained:
 * when a process changes its state nothing moves, and other rows are neither laid out nor painted.
 * By its roles it remains a table for screen readers.
 */

.sfm-Table,
.sfm-Table thead,
.sfm-Table tbody {
  display: block;
}

.sfm-Table tr {
  display: grid;
  grid-template:
    'name state since waits where depth rate' auto / minmax(0, 3fr) minmax(0, 4fr) 64px
    minmax(0, 6fr) minmax(0, 3fr) 48px 96px;
  align-items: center;
  padding-left: 3px;
}

.sfm-Table.sfm-mod-drawn tr {
  grid-template:
    'name state since waits where depth rate memory processor' auto / minmax(64px, 4fr)
    minmax(122px, 7fr) 44px minmax(0, 10fr) minmax(96px, 6fr) 60px 100px 126px 74px;
}

.sfm-Table th,
.sfm-Table td {
  min-width: 0;
  padding: 0 4px;
  overflow: hidden;
  line-height: 1.4;
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.sfm-Table thead th {
  color: var(--jp-ui-font-color2);
  font-weight: normal;
}

/* A text that changes does not move the others of its row. */
.sfm-Row td {
  height: 1.4em;
  contain: size layout;
}

.sfm-Table .sfm-Row {
  height: calc(1.4em + 8px);
  border-top: var(--jp-border-width) solid var(--jp-border-color2);
  contain: strict;
  cursor: pointer;
}

.sfm-Row:hover {
  background: var(--jp-layout-color2);
}

.sfm-Row[aria-selected='true'] {
  background: var(--jp-layout-color2);
  box-shadow: inset 3px 0 var(--jp-brand-color1);
}

.sfm-Row-name {
  grid-area: name;
  font-weight: 600;
}

.sfm-Row-state {
  grid-area: state;
}

.sfm-Row-since {
  grid-area: since;
}

.sfm-Row-waits {
  grid-area: waits;
}

td.sfm-Row-waits {
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
}

.sfm-Row-where {
  grid-area: where;
}

.sfm-Row-depth {
  grid-area: depth;
}

.sfm-Row-rate {
  grid-area: rate;
}

.sfm-Row-memory {
  grid-area: memory;
}

.sfm-Row-processor {
  grid-area: processor;
}

.sfm-Row-since,
.sfm-Row-depth,
.sfm-Row-rate,
.sfm-Row-memory,
.sfm-Row-processor {
  font-variant-numeric: tabular-nums;
}

.sfm-Narrow {
  display: none;
}

/* What a process uses. A drawing has the sum of both directions, and the tooltip has each. */

.sfm-mod-drawn .sfm-Row-both {
  display: none;
}

.sfm-Sparkline {
  margin-right: 6px;
  vertical-align: -3px;
  fill: none;
  stroke: var(--jp-brand-color1);
  stroke-width: 1.2;
}

.sfm-Sparkline-limit {
  stroke: var(--jp-error-color1);
  stroke-dasharray: 3 2;
}

.sfm-Bar {
  display: inline-block;
  width: 32px;
  height: 8px;
  margin-right: 6px;
  background: var(--jp-layout-color3);
}

.sfm-Bar > span {
  display: block;
  height: 100%;
  background: var(--jp-warn-color1);
}

@media (forced-colors: active) {
  .sfm-Bar > span {
    background: CanvasText;
  }
}

.sfm-State {
  display: flex;
  align-items: baseline;
  gap: 5px;
}

.sfm-State .sfm-Shape {
  color: var(--jp-ui-font-color2);
}

.sfm-State.sfm-mod-stuck .sfm-Shape {
  color: var(--jp-error-color1);
}

.sfm-State.sfm-mod-stuck .sfm-State-text {
  font-weight: 600;
}

/* Three lines for a process if there is no room for the columns. */
@container (max-width: 700px) {
  .sfm-Table :is(.sfm-Row-sum, .sfm-Bar, .sfm-Row-memory, .sfm-Row-processor) {
    display: none;
  }

  .sfm-mod-drawn .sfm-Row-both {
    display: inline;
  }

  .sfm-Table thead {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }

  .sfm-Table tr.sfm-Row {
    grid-template:
      'name state state state since'
      'name waits waits waits waits'
      'where where depth rate rate' / clamp(72px, 26%, 130px) 40px minmax(0, 1fr) 52px 52px;
    grid-template-rows: repeat(3, 1.4em);
    align-content: center;
    height: calc(4.2em + 7px);
  }

  /* A long name takes both lines. */
  .sfm-Row .sfm-Row-name {
    align-self: start;
    max-height: 2.8em;
    white-space: normal;
    overflow-wrap: anywhere;
  }

  .sfm-Row-name .sfm-Dim {
    display: block;
  }

  .sfm-Table :is(.sfm-Row-since, .sfm-Row-rate) {
    text-align: right;
  }

  .sfm-Row-depth,
  .sfm-Row-rate {
    color: var(--jp-ui-font-color2);
  }

  .sfm-Narrow {
    display: inline;
  }
}

/* No room for the rates; the view of the main area has them. */
@container (max-width: 270px) {
  .sfm-Table tr.sfm-Row {
    grid-template-areas:
      'name state state state state'
      'name waits waits waits waits'
      'where where depth depth since';
    grid-template-columns: 72px 38px minmax(0, 1fr) 12px 46px;
  }

  .sfm-Row .sfm-Row-rate {
    display: none;
  }
}

/* The selected process. In the panel its inbox has a height of its own, so that nothing moves. */

.sfm-Panel .sfm-Messages {
  height: 160px;
}

.sfm-Details-waits {
  overflow-wrap: anywhere;
}

.sfm-Details-head {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0 8px;
  margin-top: 8px;
}

.sfm-Details-head h3 {
  margin: 0;
  font-size: var(--jp-ui-font-size1);
}

.sfm-Search {
  box-sizing: border-box;
  width: 100%;
  height: 26px;
  padding: 0 6px;
  border: var(--jp-border-width) solid var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  background: var(--jp-input-background);
  color: var(--jp-ui-font-color1);
  font: inherit;
}

.sfm-Messages {
  max-height: 320px;
  margin: 0;
  padding: 0;
  overflow: auto;
  list-style: none;
}

.sfm-Message {
  padding: 4px 6px;
  border-top: var(--jp-border-width) solid var(--jp-border-color2);
}

.sfm-Message.sfm-mod-near {
  border-left: 4px solid var(--jp-warn-color1);
}

.sfm-Attributes {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 12px;
  margin: 2px 0 0;
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
}

.sfm-Attributes > div {
  display: flex;
  overflow-wrap: anywhere;
}

.sfm-Attributes dt {
  color: var(--jp-ui-font-color2);
}

.sfm-Attributes dt::after {
  content: '=';
}

.sfm-Attributes dd {
  margin: 0;
}

.sfm-Attributes .sfm-mod-miss dd {
  text-decoration: underline wavy var(--jp-warn-color1);
}

.sfm-Peers summary {
  padding: 4px 0;
  cursor: pointer;
}

.sfm-Peers th,
.sfm-Peers td {
  padding: 1px 12px 1px 0;
  text-align: left;
  font-variant-numeric: tabular-nums;
}
`,""]),r.d(o,{},{A:s})},39(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* The timeline. Its canvases are painted with the colours that are named here. */

.sfm-Timeline {
  --sfm-back: var(--jp-layout-color1);
  --sfm-stripe: var(--jp-layout-color2);
  --sfm-text: var(--jp-ui-font-color1);
  --sfm-dim: var(--jp-ui-font-color2);
  --sfm-grid: var(--jp-border-color2);
  --sfm-late: var(--jp-error-color1);
  --sfm-chosen: var(--jp-brand-color1);

  min-width: 0;
  font-family: var(--jp-ui-font-family);
}

.sfm-Timeline-tools {
  display: flex;
  flex-wrap: wrap;
  gap: 4px;
  margin-bottom: 6px;
}

.sfm-Timeline-space {
  flex: 1;
}

.sfm-Timeline-note {
  color: var(--jp-ui-font-color2);
}

.sfm-Timeline-chart:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 2px;
}

.sfm-Timeline-line,
.sfm-Timeline-scroll {
  display: flex;
  scrollbar-gutter: stable;
}

.sfm-Timeline-line {
  align-items: center;
  overflow: hidden;
}

.sfm-Timeline-scroll {
  max-height: 60vh;
  overflow: hidden auto;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  border-width: var(--jp-border-width) 0;
}

.sfm-Timeline-gutter {
  box-sizing: border-box;
  flex: none;
  width: clamp(44px, 14%, 84px);
  padding-right: 6px;
  color: var(--jp-ui-font-color2);
  text-align: right;
}

.sfm-Timeline-name {
  overflow: hidden;
  color: var(--jp-ui-font-color1);
  font-weight: 600;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.sfm-Timeline-plot {
  flex: 1;
  min-width: 0;
}

.sfm-Timeline-plot canvas {
  display: block;
  width: 100%;
  cursor: grab;
  touch-action: pan-y;
}

.sfm-Timeline-plot canvas:active {
  cursor: grabbing;
}

.sfm-Timeline-axis,
.sfm-Timeline-overview {
  flex: 1;
  min-width: 0;
  height: 24px;
}

.sfm-Timeline-overview {
  height: 32px;
  margin-top: 4px;
  cursor: ew-resize;
  touch-action: none;
}

/* Legend */

.sfm-Timeline-legend {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 12px;
  margin: 8px 0;
  padding: 0;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  list-style: none;
}

.sfm-Timeline-legend li {
  display: inline-flex;
  align-items: center;
  gap: 5px;
}

.sfm-Timeline-legend canvas,
.sfm-Timeline-sample {
  width: 20px;
  height: 12px;
}

.sfm-Timeline-way {
  fill: none;
  stroke: var(--sfm-text);
  stroke-width: 1.2;
}

.sfm-Timeline-head {
  fill: var(--sfm-text);
}

:is(.sfm-mod-sender, .sfm-mod-receiver) > .sfm-Timeline-way {
  stroke: var(--sfm-late);
  stroke-width: 1.8;
}

.sfm-mod-receiver > .sfm-Timeline-way {
  stroke-dasharray: 5 3;
}

:is(.sfm-mod-sender, .sfm-mod-receiver) > .sfm-Timeline-head {
  fill: var(--sfm-late);
}

/* The chosen message */

.sfm-Timeline-details {
  padding: 4px 10px 8px;
  border: var(--jp-border-width) solid var(--jp-border-color1);
  border-left: 4px solid var(--sfm-chosen);
  background: var(--jp-layout-color1);
}

.sfm-Timeline-details-head {
  display: flex;
  align-items: center;
  justify-content: space-between;
}

.sfm-Timeline-details h3 {
  margin: 0;
  font-size: var(--jp-ui-font-size1);
  overflow-wrap: anywhere;
}

.sfm-Timeline-details dl {
  display: grid;
  grid-template-columns: max-content minmax(0, 1fr);
  gap: 2px 12px;
  margin: 4px 0 0;
}

.sfm-Timeline-fact {
  display: contents;
}

.sfm-Timeline-details dt {
  max-width: 160px;
  color: var(--jp-ui-font-color2);
  overflow-wrap: anywhere;
}

.sfm-Timeline-details dd {
  margin: 0;
  overflow-wrap: anywhere;
}

.sfm-Timeline :is(code, .sfm-Timeline-values) {
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
}

/* The messages as a table */

.sfm-Timeline-table {
  max-height: 60vh;
  overflow: auto;
}

.sfm-Timeline-table:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
}

.sfm-Timeline-table table {
  width: 100%;
  border-collapse: collapse;
  font-size: var(--jp-ui-font-size1);
}

.sfm-Timeline-table caption {
  padding: 2px 0 6px;
  color: var(--jp-ui-font-color2);
  text-align: left;
}

.sfm-Timeline-table :is(th, td) {
  padding: 3px 8px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  text-align: left;
  vertical-align: top;
  white-space: nowrap;
}

.sfm-Timeline-table .sfm-Timeline-values {
  min-width: 220px;
  white-space: normal;
  overflow-wrap: anywhere;
}

/* The matrix of messages */

.sfm-Timeline-table table.sfm-Matrix {
  width: auto;
}

.sfm-Matrix :is(th, td) {
  min-width: 3ch;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  text-align: right;
}

.sfm-Matrix caption {
  white-space: nowrap; /* it may be wider than a matrix of two processes */
}
`,""]),r.d(o,{},{A:s})},34(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* Why a world does not go on */

.sfm-Why {
  padding: 4px 8px;
  border-left: 4px solid var(--jp-border-color1);
}

.sfm-Why-title {
  display: flex;
  align-items: baseline;
  gap: 6px;
  font-weight: 600;
}

.sfm-Why.sfm-mod-running {
  border-color: var(--jp-success-color1);
}

.sfm-Why.sfm-mod-waiting {
  border-color: var(--jp-warn-color1);
}

.sfm-Why.sfm-mod-deadlock {
  border-color: var(--jp-error-color1);
  background: var(--jp-layout-color2);
}

.sfm-Why.sfm-mod-deadlock .sfm-Why-title .sfm-Shape {
  color: var(--jp-error-color1);
}

.sfm-Why-sentences {
  margin: 4px 0;
  padding-left: 18px;
  overflow-wrap: anywhere;
}

.sfm-Why-places,
.sfm-Why-actions {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
  align-items: center;
}

/* In the panel the explanation has a place that is always in view, however long the table is. */

.sfm-Panel {
  scroll-padding-block-end: 72px; /* a row that gets the focus is not below it */
}

.sfm-Panel:has(.sfm-Section-body > .sfm-Why) {
  scroll-padding-block-end: calc(40vh + 72px);
}

.sfm-Panel .sfm-mod-why {
  position: sticky;
  bottom: 0;
  z-index: 1;
  background: var(--jp-layout-color1);
}

.sfm-Panel .sfm-Why {
  max-height: 40vh;
  overflow: auto;
}

.sfm-Panel .sfm-Quiet + .sfm-Why {
  height: 130px;
}

.sfm-Quiet {
  display: flex;
  align-items: center;
  gap: 6px;
  width: 100%;
  height: 24px;
  padding: 0;
  border: none;
  background: none;
  color: inherit;
  font: inherit;
  cursor: pointer;
}
`,""]),r.d(o,{},{A:s})},36(e,o,r){var a=r(30),t=r.n(a),i=r(31),s=(r.n(i))()(t());s.push([e.id,`/* The worlds of the user */

.sfm-Worlds {
  margin: 0;
  padding: 0;
  list-style: none;
}

.sfm-Fold {
  display: flex;
  align-items: center;
  gap: 4px;
  width: 100%;
  padding: 4px;
  border: 0;
  background: none;
  color: var(--jp-ui-font-color2);
  font: inherit;
  text-align: start;
  cursor: pointer;
}

.sfm-Fold:hover {
  background: var(--jp-layout-color2);
  color: var(--jp-ui-font-color1);
}

.sfm-World {
  display: grid;
  grid-template: 'pin title stop more' auto '. counts counts counts' auto / auto minmax(0, 1fr) auto auto;
  align-items: center;
  padding: 2px 4px;
  border-left: 4px solid transparent;
}

.sfm-World[aria-current='true'] {
  border-color: var(--jp-brand-color1);
}

/* One line each, so that no count moves what is below. */
.sfm-World > span {
  padding-left: 4px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.sfm-World-counts {
  grid-area: counts;
  color: var(--jp-ui-font-color2);
}

.sfm-World-title {
  font-weight: 600;
}

.sfm-World-none {
  padding: 2px 4px;
}

/* Finished runs */

.sfm-Runs {
  margin: 0;
  padding: 0;
  list-style: none;
}

.sfm-Run {
  display: flex;
  align-items: start;
}

.sfm-Run > :first-child {
  display: grid;
  grid-template-columns: minmax(0, 1fr) auto;
  column-gap: 8px;
  flex: 1;
  min-width: 0;
  padding: 2px 4px;
  border: none;
  background: none;
  color: inherit;
  font: inherit;
  text-align: start;
  cursor: pointer;
}

.sfm-Run > :first-child:hover {
  background: var(--jp-layout-color2);
}

.sfm-Run span:last-child {
  grid-column: 1 / -1;
}

.sfm-Run > :first-child span {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

/* The page takes its colours from the frame's. */
body[data-jp-theme-light='false'] .sfm-RecordFrame iframe {
  color-scheme: dark;
}

body[data-jp-theme-light='true'] .sfm-RecordFrame iframe {
  color-scheme: light;
}

.sfm-Code {
  display: flex;
  align-items: center;
  gap: 4px;
}

.sfm-Code pre,
.sfm-DragImage {
  flex: 1;
  min-width: 0;
  margin: 0;
  padding: 3px 6px;
  overflow: hidden;
  border: var(--jp-border-width) dashed var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  background: var(--jp-cell-editor-background);
  color: var(--jp-content-font-color1);
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
  text-overflow: ellipsis;
  cursor: grab;
  touch-action: none;
}

.sfm-DragImage {
  opacity: 0.85;
}
`,""]),r.d(o,{},{A:s})},31(e){e.exports=function(e){var o=[];return o.toString=function(){return this.map(function(o){var r="",a=void 0!==o[5];return o[4]&&(r+="@supports (".concat(o[4],") {")),o[2]&&(r+="@media ".concat(o[2]," {")),a&&(r+="@layer".concat(o[5].length>0?" ".concat(o[5]):""," {")),r+=e(o),a&&(r+="}"),o[2]&&(r+="}"),o[4]&&(r+="}"),r}).join("")},o.i=function(e,r,a,t,i){"string"==typeof e&&(e=[[null,e,void 0]]);var s={};if(a)for(var n=0;n<this.length;n++){var l=this[n][0];null!=l&&(s[l]=!0)}for(var m=0;m<e.length;m++){var f=[].concat(e[m]);a&&s[f[0]]||(void 0!==i&&(void 0===f[5]||(f[1]="@layer".concat(f[5].length>0?" ".concat(f[5]):""," {").concat(f[1],"}")),f[5]=i),r&&(f[2]&&(f[1]="@media ".concat(f[2]," {").concat(f[1],"}")),f[2]=r),t&&(f[4]?(f[1]="@supports (".concat(f[4],") {").concat(f[1],"}"),f[4]=t):f[4]="".concat(t)),o.push(f))}},o}},30(e){e.exports=function(e){return e[1]}},22(e,o,r){r.r(o);var a=r(23),t=r.n(a),i=r(24),s=r.n(i),n=r(25),l=r.n(n),m=r(26),f=r.n(m),p=r(27),d=r.n(p),c=r(28),h=r.n(c),u=r(29),x={};x.styleTagTransform=h(),x.setAttributes=f(),x.insert=l().bind(null,"head"),x.domAPI=s(),x.insertStyleElement=d(),t()(u.A,x);let w=u.A&&u.A.locals?u.A.locals:void 0;r.d(o,{},{default:w})},23(e){var o=[];function r(e){for(var r=-1,a=0;a<o.length;a++)if(o[a].identifier===e){r=a;break}return r}function a(e,a){for(var t={},i=[],s=0;s<e.length;s++){var n=e[s],l=a.base?n[0]+a.base:n[0],m=t[l]||0,f="".concat(l," ").concat(m);t[l]=m+1;var p=r(f),d={css:n[1],media:n[2],sourceMap:n[3],supports:n[4],layer:n[5]};if(-1!==p)o[p].references++,o[p].updater(d);else{var c=function(e,o){var r=o.domAPI(o);return r.update(e),function(o){o?(o.css!==e.css||o.media!==e.media||o.sourceMap!==e.sourceMap||o.supports!==e.supports||o.layer!==e.layer)&&r.update(e=o):r.remove()}}(d,a);a.byIndex=s,o.splice(s,0,{identifier:f,updater:c,references:1})}i.push(f)}return i}e.exports=function(e,t){var i=a(e=e||[],t=t||{});return function(e){e=e||[];for(var s=0;s<i.length;s++){var n=r(i[s]);o[n].references--}for(var l=a(e,t),m=0;m<i.length;m++){var f=r(i[m]);0===o[f].references&&(o[f].updater(),o.splice(f,1))}i=l}}},25(e){var o={};e.exports=function(e,r){var a=function(e){if(void 0===o[e]){var r=document.querySelector(e);if(window.HTMLIFrameElement&&r instanceof window.HTMLIFrameElement)try{r=r.contentDocument.head}catch(e){r=null}o[e]=r}return o[e]}(e);if(!a)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");a.appendChild(r)}},27(e){e.exports=function(e){var o=document.createElement("style");return e.setAttributes(o,e.attributes),e.insert(o,e.options),o}},26(e,o,r){e.exports=function(e){var o=r.nc;o&&e.setAttribute("nonce",o)}},24(e){e.exports=function(e){if("u"<typeof document)return{update:function(){},remove:function(){}};var o=e.insertStyleElement(e);return{update:function(r){var a,t,i;a="",r.supports&&(a+="@supports (".concat(r.supports,") {")),r.media&&(a+="@media ".concat(r.media," {")),(t=void 0!==r.layer)&&(a+="@layer".concat(r.layer.length>0?" ".concat(r.layer):""," {")),a+=r.css,t&&(a+="}"),r.media&&(a+="}"),r.supports&&(a+="}"),(i=r.sourceMap)&&"u">typeof btoa&&(a+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(i))))," */")),e.styleTagTransform(a,o,e.options)},remove:function(){var e;null===(e=o).parentNode||e.parentNode.removeChild(e)}}}},28(e){e.exports=function(e,o){if(o.styleSheet)o.styleSheet.cssText=e;else{for(;o.firstChild;)o.removeChild(o.firstChild);o.appendChild(document.createTextNode(e))}}}}]);