import type { Process, World } from '../model/types';

/**
 * The line that starts an engine again. It says the rank: a name may hold anything, even the end of
 * the line and another one.
 */
export function restartLine({ name, rank }: Process): string {
  if (!Number.isInteger(rank)) {
    throw new Error(`${name} has no rank, by which the notebook that started it would know it`);
  }
  return `%sfm restart ${rank}`;
}

/** The code that brings a notebook into the world, or starts engines where there is none. */
export function connectCode(world: World | null): string {
  if (!world?.cluster) {
    return '%load_ext sfm_kernel\n%sfm start 4';
  }
  // Part of a file's name. Without one that is a single word, the magic says which there are.
  const cluster = /^[\w.-]+$/.test(world.cluster) ? ` ${world.cluster}` : '';
  return `%load_ext sfm_kernel\n%sfm connect${cluster}`;
}
