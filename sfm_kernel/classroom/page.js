// The class's page: asks once a second, and shows the answers as text, never as markup.
'use strict';

const EVERY = 1000;
const KEY = 'sfm-classroom-key';

/** A state's symbol, and its words for one world and for several. */
const WORDS = {
  stuck: ['▲', 'stuck for', 'stuck'],
  waits: ['◆', 'waits for', 'waiting'],
  gone: ['✕', 'gone for', 'gone'],
  computes: ['●', 'computes for', 'computing'],
  idle: ['○', 'idle for', 'idle'],
  left: ['–', 'left', 'left']
};

/** The symbols of an exercise's states, which are words themselves. */
const SIGNS = { passed: '✓', tried: '✗', hangs: '▲', 'not yet': '·' };

/** Seconds of being stuck after which the bar is full. */
const FULL = 600;

const byId = id => document.getElementById(id);
const cards = new Map();
let listing = null;
let received = 0;
let chosen = null;
let shown = null;
let onlyStuck = false;
let tabled = '';

/** Make an element with texts and elements in it. */
function make(tag, options, ...children) {
  const { data, ...properties } = options ?? {};
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  element.append(...children.filter(child => child !== null && child !== ''));
  return element;
}

function lasting(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(whole / 60);
  if (minutes < 1) {
    return `${whole} s`;
  }
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A time as on a watch, for what a teacher follows by the second: 2:10. */
function watch(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function plural(count, one, several = `${one}s`) {
  return `${count} ${count === 1 ? one : several}`;
}

/** The time of the class's machine, extrapolated from its last answer. */
function now() {
  return listing ? listing.now + (performance.now() - received) / 1000 : 0;
}

function stateText(world) {
  const [, words] = WORDS[world.state];
  const seconds = now() - world.since;
  const time = world.state === 'stuck' ? watch(seconds) : lasting(seconds);
  return world.state === 'left' ? `left ${time} ago` : `${words} ${time}`;
}

function why(world) {
  if (world.state === 'stuck' || world.state === 'waits') {
    const repeats = world.state === 'waits' || !world.first;
    return repeats ? world.first || world.title : `${world.title}: ${world.first}`;
  }
  if (world.state === 'gone') {
    return 'Silent: its kernel has ended or is held up, or the network is down.';
  }
  if (world.hung && world.state !== 'left') {
    const [first] = world.hung.text.split('\n');
    return `${lasting(now() - world.hung.time)} ago: ${first}`;
  }
  return '';
}

function countsText(world) {
  if (world.state === 'left') {
    return 'no longer shared';
  }
  const engines = plural(world.engines, 'engine');
  const counts = [world.blocked ? `${world.blocked} of ${engines} blocked` : engines];
  counts.push(`${world.sent} sent`);
  if (world.queued) {
    counts.push(`${world.queued} queued`);
  }
  return counts.join(' · ');
}

function card(world) {
  let one = cards.get(world.id);
  if (!one) {
    const [name, hand, state, bar, text, counts] = ['name', 'hand', 'state', 'bar', 'why', 'counts'].map(
      className => make('span', { className })
    );
    const button = make('button', { type: 'button' }, hand, name, state, text, counts, bar);
    button.addEventListener('click', () => open(world.id));
    one = { item: make('li', null, button), button, name, hand, state, bar, text, counts };
    cards.set(world.id, one);
  }
  return one;
}

function put(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function paint() {
  const worlds = listing.worlds.filter(
    one => !onlyStuck || one.state === 'stuck' || one.hand !== null
  );
  const list = byId('worlds');
  const shownIds = new Set(worlds.map(world => world.id));
  for (const [id, { item }] of cards) {
    if (!shownIds.has(id)) {
      item.remove();
      cards.delete(id);
    }
  }
  worlds.forEach((world, nth) => {
    const one = card(world);
    one.button.className = world.state;
    put(one.name, world.name);
    put(one.hand, world.hand === null ? '' : `↑ hand up for ${watch(now() - world.hand)}`);
    const stuckFor = world.state === 'stuck' ? now() - world.since : 0;
    one.bar.style.width = `${Math.min(100, (100 * stuckFor) / FULL)}%`;
    put(one.state, `${WORDS[world.state][0]} ${stateText(world)}`);
    put(one.text, why(world));
    put(one.counts, countsText(world));
    one.button.title = why(world);
    if (list.children[nth] !== one.item) {
      const focused = document.activeElement === one.button;
      list.insertBefore(one.item, list.children[nth] ?? null);
      if (focused) {
        one.button.focus();
      }
    }
  });
  const count = state => listing.worlds.filter(world => world.state === state).length;
  const counts = Object.keys(WORDS)
    .filter(count)
    .map(state => `${count(state)} ${WORDS[state][2]}`)
    .join(', ');
  const hands = listing.worlds.filter(world => world.hand !== null).length;
  const raised = hands ? `${plural(hands, 'hand')} up, ` : '';
  put(byId('counts'), counts ? `${plural(listing.worlds.length, 'world')}: ${raised}${counts}` : '');
  paintExercises();
  if (byId('nobody').hidden !== worlds.length > 0) {
    byId('joining').open = listing.worlds.length === 0;
  }
  byId('nobody').hidden = worlds.length > 0;
  put(byId('nobody'), onlyStuck ? 'Nobody is stuck.' : 'Nobody shares a world yet.');
}

// ---- who has solved what

function paintExercises() {
  const { exercises, students } = listing.progress;
  const stamp = JSON.stringify(listing.progress);
  byId('progress').hidden = exercises.length === 0;
  if (stamp === tabled) {
    return;
  }
  tabled = stamp;
  const head = ['student', ...exercises].map(text => make('th', { scope: 'col' }, text));
  const rows = students.map(({ name, of }) => {
    const cells = exercises.map(exercise => {
      const { state, tries } = of[exercise] ?? { state: 'not yet', tries: 0 };
      const often = state === 'tried' ? ` ${tries}×` : '';
      return make('td', { className: state.replace(' ', '-') }, `${SIGNS[state]} ${state}${often}`);
    });
    return make('tr', null, make('th', { scope: 'row' }, name), ...cells);
  });
  const body = [make('thead', null, make('tr', null, ...head)), make('tbody', null, ...rows)];
  const wide = byId('exercises');
  const { scrollLeft } = wide;
  wide.replaceChildren(make('table', null, ...body));
  wide.scrollLeft = scrollLeft;
}

async function save() {
  try {
    const { csv } = await ask('exercises');
    // Without the mark in front, spreadsheets take UTF-8 for another encoding.
    const href = URL.createObjectURL(new Blob(['\ufeff', csv], { type: 'text/csv' }));
    make('a', { href, download: `class-${new Date().toISOString().slice(0, 10)}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), EVERY);
  } catch (error) {
    complain(error instanceof Problem ? error.message : 'The class does not answer: nothing is saved.');
  }
}

// ---- one world

async function open(id) {
  chosen = id;
  shown = null;
  await showDetails();
  if (chosen === id && !byId('details').open) {
    byId('details').showModal();
  }
}

async function showDetails() {
  const world = listing?.worlds.find(one => one.id === chosen);
  if (!world) {
    byId('details').close();
    return;
  }
  const stamp = `${world.version} ${world.state}`;
  if (shown !== stamp) {
    const all = await ask(`worlds/${world.id}`);
    shown = stamp;
    byId('all').replaceChildren(...detailsOf(all));
  }
  put(byId('who'), `${world.name}: ${stateText(world)}`);
}

function detailsOf(all) {
  const found = [make('p', { className: 'said' }, make('b', null, all.title))];
  if (all.sentences.length > 0) {
    found.push(make('ul', null, ...all.sentences.map(one => make('li', null, one))));
  }
  for (const one of all.told) {
    found.push(make('h3', null, `A deadlock, reported ${lasting(all.now - one.time)} ago`));
    found.push(make('p', { className: 'said' }, one.text));
  }
  if (all.processes.length > 0) {
    found.push(make('h3', null, 'Processes'), table(all));
  }
  const queues = all.processes.filter(one => one.messages.length > 0);
  if (queues.length > 0) {
    found.push(make('h3', null, 'In their inboxes'));
    const items = queues.map(one =>
      make('li', null, `${one.name}, ${plural(one.depth, 'message')}: ${one.messages.join('; ')}`)
    );
    found.push(make('ul', null, ...items));
  }
  for (const { title, lines, at } of all.code) {
    const shownLines = lines.map(([line, text]) =>
      make('span', { className: at.includes(line) ? 'at' : '', data: { line } }, text || ' ')
    );
    found.push(make('h3', null, title), make('pre', { tabIndex: 0 }, ...shownLines));
  }
  return found;
}

function table(all) {
  const headings = ['name', 'rank', 'state', 'for', 'waits in', 'where', 'queued', 'sent', 'received'];
  const rows = all.processes.map(one => {
    const cells = [one.name, one.rank ?? '', one.state, lasting(all.now - one.since)];
    cells.push(one.waits, one.where, one.depth, one.sent, one.received);
    const shownCells = cells.map(cell => {
      const className = typeof cell === 'number' ? 'number' : '';
      return make('td', { className }, String(cell));
    });
    return make('tr', null, ...shownCells);
  });
  const head = make('tr', null, ...headings.map(text => make('th', { scope: 'col' }, text)));
  const body = make('table', null, make('thead', null, head), make('tbody', null, ...rows));
  return make('div', { className: 'wide', tabIndex: 0 }, body);
}

// ---- asking

/** The teacher's key, which follows # in the address: no request has it; it is then removed from the address. */
function key() {
  const found = location.hash.startsWith('#teach-') ? location.hash.slice('#teach-'.length) : '';
  if (found) {
    sessionStorage.setItem(KEY + location.pathname, found);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEY + location.pathname) ?? '';
}

const given = key();

/** The headers of a request. A Jupyter server checks its cookies; a hub also wants the XSRF cookie's value. */
function headers() {
  const found = given ? { Authorization: `Bearer ${given}` } : {};
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie);
  return xsrf ? { ...found, 'X-XSRFToken': decodeURIComponent(xsrf[1]) } : found;
}

class Problem extends Error {}

async function ask(what) {
  const how = { headers: headers(), cache: 'no-store', redirect: 'manual' };
  const answer = await fetch(what, how);
  if (answer.status === 403 || answer.status === 401 || answer.type === 'opaqueredirect') {
    throw new Problem(
      location.hash
        ? 'This is the address for students: type it into a notebook, after %sfm share. It shows nothing here.'
        : "This page needs its teacher's key: open the complete address that was printed, or log in."
    );
  }
  if (!answer.ok) {
    throw new Problem(`The class answers with an error (${answer.status}).`);
  }
  return answer.json();
}

function complain(text) {
  byId('problem').hidden = !text;
  put(byId('problem'), text);
}

async function follow() {
  try {
    listing = await ask('worlds');
    received = performance.now();
    complain('');
    paint();
    if (byId('details').open) {
      await showDetails();
    }
  } catch (error) {
    const text = 'The class does not answer: the page shows its last state. ';
    complain(error instanceof Problem ? error.message : text);
  }
  setTimeout(follow, EVERY);
}

async function start() {
  byId('stuck').addEventListener('change', event => {
    onlyStuck = event.target.checked;
    if (listing) {
      paint();
    }
  });
  byId('close').addEventListener('click', () => byId('details').close());
  byId('details').addEventListener('close', () => {
    chosen = null;
  });
  byId('csv').addEventListener('click', () => void save());
  byId('copy').addEventListener('click', () => {
    void navigator.clipboard?.writeText(byId('line').textContent);
  });
  try {
    const { join, url } = await ask('session');
    const here = location.origin + location.pathname;
    byId('line').textContent = `%sfm share ${url || here}#${join}`;
    byId('joining').open = true;
  } catch {
    // The next request shows what is wrong.
  }
  await follow();
}

void start();
