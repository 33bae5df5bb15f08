export { TimelineView } from './view';
