export { SitesView } from './view';
