import * as React from 'react';
import { Shape } from './shapes';

interface SectionProps {
  readonly name: string;
  readonly title: string;
  readonly open: boolean;
  readonly onToggle: (name: string) => void;
  /** What the section is about, behind its title. */
  readonly about?: string;
  readonly tools?: React.ReactNode;
  readonly children: React.ReactNode;
}

/** A section of the panel that can be closed; a closed section does not render its content. */
export function Section(props: SectionProps): JSX.Element {
  const { name, title, open, onToggle, about, tools, children } = props;
  const heading = `sfm-Section-${name}`;
  return (
    <section className={`sfm-Section sfm-mod-${name}`} aria-labelledby={heading}>
      <div className="sfm-Section-head">
        <h2 className="sfm-Section-title">
          <button type="button" id={heading} aria-expanded={open} onClick={() => onToggle(name)}>
            <Arrow open={open} />
            {title}
          </button>
        </h2>
        {about && (
          <span className="sfm-Section-about" title={about}>
            {about}
          </span>
        )}
        <div className="sfm-Section-tools">{open && tools}</div>
      </div>
      {open && <div className="sfm-Section-body">{children}</div>}
    </section>
  );
}

/** A triangle that shows whether the section is open. */
export function Arrow({ open }: { readonly open: boolean }): JSX.Element {
  return <Shape path={open ? 'M2 4h8L6 9z' : 'M4 2v8l5-4z'} />;
}
