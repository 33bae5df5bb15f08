import { Token } from '@lumino/coreutils';
import type { Context } from './commands/context';

/** The state of the worlds, and the requests to the server. */
export interface ISfm extends Context {}

export const ISfm = new Token<ISfm>('@sfm/labextension:ISfm', 'The worlds of this user');
