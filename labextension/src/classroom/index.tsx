/**
 * The page of a class: the worlds that students share, drawn with the panel's widgets. It asks its
 * server once a second, and shows the answers as text, never as markup.
 */
import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { plural } from '../model/text';
import { Section } from '../widgets/section';
import { Card } from './card';
import { Problem, ask } from './client';
import { WorldDialog } from './details';
import { Exercises } from './exercises';
import { Listing, STATES, SharedWorld } from './model';

/** Milliseconds between two questions. */
const EVERY = 1000;

function Classroom(): JSX.Element {
  const [listing, setListing] = React.useState<Listing | null>(null);
  const [problem, setProblem] = React.useState('');
  const [onlyStuck, setOnlyStuck] = React.useState(false);
  const [chosen, choose] = React.useState<string | null>(null);
  const [open, setOpen] = React.useState(true);
  const complain = (error: unknown, text: string): void =>
    setProblem(error instanceof Problem ? error.message : text);

  React.useEffect(() => {
    const follow = async (): Promise<void> => {
      try {
        setListing(await ask<Listing>('worlds'));
        setProblem('');
      } catch (error) {
        complain(error, 'The class does not answer: the page shows its last state.');
      }
      setTimeout(() => void follow(), EVERY);
    };
    void follow();
  }, []);

  // A world that comes back does not open by itself.
  React.useEffect(() => {
    if (listing && !listing.worlds.some(({ id }) => id === chosen)) {
      choose(null);
    }
  }, [listing]);

  const save = async (): Promise<void> => {
    try {
      download((await ask<{ csv: string }>('exercises')).csv);
    } catch (error) {
      complain(error, 'The class does not answer: nothing is saved.');
    }
  };

  const { worlds = [], progress, now = 0 } = listing ?? {};
  const shown = worlds.filter(({ state, hand }) => !onlyStuck || state === 'stuck' || hand !== null);
  const detailed = worlds.find(({ id }) => id === chosen);
  return (
    <>
      <header>
        <h1>Classroom</h1>
        <p className="sfm-Class-counts" role="status">
          {summary(worlds)}
        </p>
        <label>
          <input
            type="checkbox"
            checked={onlyStuck}
            onChange={event => setOnlyStuck(event.target.checked)}
          />{' '}
          Only stuck
        </label>
        <Joining isEmpty={worlds.length === 0} />
      </header>
      {problem && (
        <p className="sfm-Notice sfm-mod-warning" role="alert">
          {problem}
        </p>
      )}
      <main>
        <ul className="sfm-Cards" aria-label="Shared worlds">
          {shown.map(world => (
            <Card key={world.id} world={world} now={now} onOpen={choose} />
          ))}
        </ul>
        {shown.length === 0 && (
          <p className="sfm-Dim">{onlyStuck ? 'Nobody is stuck.' : 'Nobody shares a world yet.'}</p>
        )}
        {progress && progress.exercises.length > 0 && (
          <Section
            name="progress"
            title="Who has solved what"
            about="as the students' machines report"
            open={open}
            onToggle={() => setOpen(!open)}
            tools={
              <button type="button" className="sfm-Button sfm-mod-text" onClick={() => void save()}>
                Save as CSV
              </button>
            }
          >
            <Exercises progress={progress} />
          </Section>
        )}
      </main>
      {detailed && (
        <WorldDialog key={chosen} world={detailed} now={now} onClose={() => choose(null)} />
      )}
    </>
  );
}

/** The line that students type, open until the first of them shares a world. */
function Joining({ isEmpty }: { readonly isEmpty: boolean }): JSX.Element {
  const [line, setLine] = React.useState('');
  const [open, setOpen] = React.useState(true);
  React.useEffect(() => {
    ask<{ join: string; url: string }>('session').then(
      ({ join, url }) =>
        setLine(`%sfm share ${url || location.origin + location.pathname}#${join}`),
      () => undefined // the question for the worlds says what is wrong
    );
  }, []);
  React.useEffect(() => setOpen(isEmpty), [isEmpty]);
  return (
    <details open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>How students join</summary>
      <p>
        In a notebook with engines: <code>{line}</code>{' '}
        <button
          type="button"
          className="sfm-Button sfm-mod-text"
          onClick={() => void navigator.clipboard?.writeText(line)}
        >
          Copy
        </button>
      </p>
      <p>
        They add <code>--name Ada</code>, and <code>--code</code> to show the lines where their
        processes are. <code>%sfm hand</code> raises a hand, which comes first here. You see only what
        they share, and you cannot change anything.
      </p>
    </details>
  );
}

/** `30 worlds: 2 hands up, 6 stuck, 12 idle` */
function summary(worlds: readonly SharedWorld[]): string {
  if (worlds.length === 0) {
    return '';
  }
  const hands = worlds.filter(({ hand }) => hand !== null).length;
  const counts = STATES.map(state => {
    const count = worlds.filter(world => world.state === state).length;
    return count ? `${count} ${state}` : '';
  });
  const parts = [hands ? `${plural(hands, 'hand')} up` : '', ...counts].filter(Boolean);
  return `${plural(worlds.length, 'world')}: ${parts.join(', ')}`;
}

function download(csv: string): void {
  // Without the mark in front, spreadsheets take UTF-8 for another encoding.
  const href = URL.createObjectURL(new Blob(['\ufeff', csv], { type: 'text/csv' }));
  const name = `class-${new Date().toISOString().slice(0, 10)}.csv`;
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), EVERY);
}

createRoot(document.body).render(<Classroom />);
