import * as React from 'react';
import { same } from '../model/text';
import type { Progress } from './model';

/** The symbols of an exercise's states, which are words themselves. */
const SIGNS = { passed: '✓', tried: '✗', hangs: '▲', 'not yet': '·' } as const;

/** Students × exercises: who has solved what. */
export const Exercises = React.memo(
  function Exercises({ progress }: { readonly progress: Progress }): JSX.Element {
    const { exercises, students } = progress;
    return (
      <div className="wide sfm-Exercises" role="group" aria-label="Exercises" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {['student', ...exercises].map(text => (
                <th key={text} scope="col">
                  {text}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {students.map(({ name, of }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {exercises.map(exercise => {
                  const { state, tries } = of[exercise] ?? { state: 'not yet', tries: 0 };
                  const often = state === 'tried' ? ` ${tries}×` : '';
                  return (
                    <td key={exercise} className={`sfm-mod-${state.replace(' ', '-')}`}>
                      {`${SIGNS[state]} ${state}${often}`}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  },
  (a, b) => same(a.progress, b.progress)
);
