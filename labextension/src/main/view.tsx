import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ID } from '../commands/ids';
import type { Store } from '../model/store';
import { TimelineView } from '../timeline/view';
import { CommandButton } from '../widgets/button';
import { SelectedDetails } from '../widgets/details';
import { LiveWidget } from '../widgets/live';
import { Notice } from '../widgets/notice';
import { rowViews } from '../widgets/rows';
import { ProcessTable } from '../widgets/table';
import { Waits } from '../widgets/waits';
import { Why, WhyActions } from '../widgets/why';
import { KINDS, ViewKind } from './kinds';

/** A view of the shown world that lives in the main area. */
export class View extends LiveWidget {
  constructor(kind: ViewKind, store: Store, commands: CommandRegistry) {
    const { title, caption, icon, parts } = KINDS[kind];
    super(store, commands, parts);
    this.kind = kind;
    this.id = `sfm-view-${kind}`;
    this.addClass('sfm-View');
    this.title.label = title;
    this.title.caption = caption;
    this.title.icon = icon;
    this.title.closable = true;
  }

  readonly kind: ViewKind;

  protected content(): JSX.Element {
    const { store, kind } = this;
    const { world } = store;
    const title = world ? `${KINDS[kind].title}: ${world.title}` : KINDS[kind].title;
    return (
      <section className={`sfm-View-content sfm-mod-${kind}`} aria-label={title}>
        <div className="sfm-View-head">
          <h2>{title}</h2>
          {kind === 'timeline' && <CommandButton commands={this.commands} id={ID.trace} />}
        </div>
        <Notice store={store} commands={this.commands} />
        {world && this._body()}
      </section>
    );
  }

  private _body(): JSX.Element {
    const { store } = this;
    const { diagnosis, history } = store;
    switch (this.kind) {
      case 'processes':
        return (
          <div className="sfm-Split">
            <ProcessTable
              rows={rowViews(store)}
              selected={store.selected?.uid ?? null}
              drawn
              onSelect={this.select}
              onJump={this.jump}
            />
            <SelectedDetails store={store} commands={this.commands} />
          </div>
        );
      case 'graph':
        return (
          <div className="sfm-Split">
            <Waits store={store} onSelect={this.selectName} onJump={this.jump} />
            <Why diagnosis={diagnosis} onJump={this.jump}>
              <WhyActions commands={this.commands} />
            </Why>
          </div>
        );
      case 'timeline':
        return (
          <TimelineView timeline={history} version={history.version} onJump={this.jump} />
        );
    }
  }
}
