import { Token } from '@lumino/coreutils';
import type { Context } from './commands/context';

/** What is known of the worlds, and how to act on them. */
export interface ISfm extends Context {}

export const ISfm = new Token<ISfm>('@sfm/labextension:ISfm', 'The worlds of this user');
