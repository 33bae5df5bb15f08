import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { ID } from '../commands/ids';
import { KINDS } from '../main/kinds';
import type { Store } from '../model/store';
import type { World } from '../model/types';
import { SitesView } from '../sites/view';
import { CommandButton } from '../widgets/button';
import { SelectedDetails } from '../widgets/details';
import { Finished } from '../widgets/finished';
import { sfmIcon } from '../widgets/icons';
import { LiveWidget } from '../widgets/live';
import { Notice } from '../widgets/notice';
import { rowViews } from '../widgets/rows';
import { Section } from '../widgets/section';
import { ProcessTable } from '../widgets/table';
import { Waits } from '../widgets/waits';
import { WhyLine } from '../widgets/why';
import { Worlds } from '../widgets/worlds';

/** The side panel. */
export class Panel extends LiveWidget {
  constructor(store: Store, commands: CommandRegistry) {
    super(store, commands, ['snapshot', 'diagnosis']);
    this.id = 'sfm-panel';
    this.addClass('sfm-Panel');
    this.title.icon = sfmIcon;
    this.title.caption = 'SFM: worlds, processes, messages';
    this.node.tabIndex = -1; // takes the focus when it is shown; Tab goes to what is in it
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'SFM');
  }

  /** The names of the sections that the user has closed. */
  get closed(): readonly string[] {
    return [...this._closed];
  }
  set closed(names: readonly string[]) {
    this._closed = new Set(names);
    this.touch();
  }

  /** Whether the list of other programs' worlds is open. */
  get others(): boolean {
    return this._others;
  }
  set others(open: boolean) {
    this._others = open;
    this.touch();
  }

  /** Called when the panel is shown. */
  onShown: () => void = () => undefined;

  /** Called after the user opened or closed a section. */
  onClosed: () => void = () => undefined;

  /** Leave the focus where it is at the next activation, for which the user has not asked. */
  keepFocus(): void {
    this._keeps = true;
  }

  protected override onActivateRequest(): void {
    if (!this._keeps) {
      this.node.focus();
    }
    this._keeps = false;
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.onShown();
  }

  protected content(): JSX.Element {
    return (
      <div className="sfm-Panel-content">
        {this.store.world && this._ofWorld(this.store.world)}
        <Notice store={this.store} commands={this.commands} />
        {this._worlds()}
        {this.store.world && this._graph()}
        {this.store.runs.length > 0 && this._finished()}
      </div>
    );
  }

  /** What the class looks at comes first. What grows and shrinks by itself is last. */
  private _ofWorld(world: World): JSX.Element {
    const { store, commands } = this;
    const { selected, snapshot } = store;
    const rows = rowViews(store);
    return (
      <>
        <Section
          {...this._section('processes', 'Processes')}
          about={world.title}
          tools={Object.keys(KINDS).map(kind => (
            <CommandButton key={kind} commands={commands} id={ID.open} args={{ kind }} />
          ))}
        >
          <ProcessTable
            rows={rows}
            selected={selected?.uid ?? null}
            onSelect={this.select}
            onJump={this.jump}
          />
          <SelectedDetails store={store} commands={commands} />
        </Section>
        <Section
          {...this._section('why', 'Why')}
          tools={<CommandButton commands={commands} id={ID.copyDiagnosis} />}
        >
          <WhyLine
            store={store}
            rows={rows}
            commands={commands}
            onJump={this.jump}
            open={this._why}
            onToggle={this._toggleWhy}
          />
        </Section>
        {snapshot && snapshot.sites.length > 1 && (
          <Section {...this._section('sites', 'Sites')}>
            <SitesView snapshot={snapshot} />
          </Section>
        )}
      </>
    );
  }

  private _worlds(): JSX.Element {
    const { store, commands } = this;
    return (
      <Section
        {...this._section('worlds', 'Worlds')}
        tools={
          <>
            <CommandButton commands={commands} id={ID.run} />
            <CommandButton commands={commands} id={ID.start} />
          </>
        }
      >
        <Worlds
          worlds={store.worlds}
          shown={store.world?.world ?? null}
          kernel={store.kernel}
          commands={commands}
          open={this._others}
          onToggle={this._toggleOthers}
        />
      </Section>
    );
  }

  private _graph(): JSX.Element {
    return (
      <Section {...this._section('graph', 'Wait-for graph')}>
        {this.store.diagnosis?.edges.length ? (
          <Waits store={this.store} onSelect={this.selectName} onJump={this.jump} />
        ) : (
          <p className="sfm-Dim">Nobody waits for another process.</p>
        )}
      </Section>
    );
  }

  private _finished(): JSX.Element {
    const { store, commands } = this;
    return (
      <Section
        {...this._section('finished', 'Finished runs')}
        tools={<CommandButton commands={commands} id={ID.deleteRuns} />}
      >
        <Finished runs={store.runs} commands={commands} />
      </Section>
    );
  }

  private _section(name: string, title: string) {
    return { name, title, open: !this._closed.has(name), onToggle: this._toggle };
  }

  private _toggle = (name: string): void => {
    if (!this._closed.delete(name)) {
      this._closed.add(name);
    }
    this.onClosed();
    this.touch();
  };

  private _toggleOthers = (): void => {
    this.others = !this.others;
    this.onClosed();
  };

  private _toggleWhy = (): void => {
    this._why = !this._why;
    this.touch();
  };

  private _closed = new Set<string>();
  private _others = false;
  private _why = false;
  private _keeps = false;
}
