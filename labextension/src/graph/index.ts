export { WaitGraph } from './view';
