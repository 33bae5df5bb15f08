import type { Process, World } from '../model/types';

/**
 * The line that restarts an engine. It has the rank: a name may contain anything, even the end of
 * the line and another one.
 */
export function restartLine({ name, rank }: Process): string {
  if (!Number.isInteger(rank)) {
    throw new Error(`${name} has no rank, so the notebook that started it cannot restart it`);
  }
  return `%sfm restart ${rank}`;
}

/** The code that connects a notebook to the world, or starts engines if there is none. */
export function connectCode(world: World | null): string {
  if (!world?.cluster) {
    return '%load_ext sfm_kernel\n%sfm start 4';
  }
  // An id is in a file's name. Unless it is a single word it is omitted: the magic lists the clusters.
  const cluster = /^[\w.-]+$/.test(world.cluster) ? ` ${world.cluster}` : '';
  return `%load_ext sfm_kernel\n%sfm connect${cluster}`;
}
