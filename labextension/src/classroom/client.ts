/** The requests of the class's page, with the teacher's key. */

const KEY = 'sfm-classroom-key';

/** A problem in words for the teacher. */
export class Problem extends Error {}

/** The server's answer to a request, from JSON; throws a Problem, or TypeError without an answer. */
export async function ask<T>(what: string): Promise<T> {
  const answer = await fetch(what, { headers: headers(), cache: 'no-store', redirect: 'manual' });
  if (answer.status === 403 || answer.status === 401 || answer.type === 'opaqueredirect') {
    throw new Problem(
      location.hash
        ? 'This is the address for students: type it into a notebook, after %sfm share. It shows nothing here.'
        : "This page needs its teacher's key: open the complete address that was printed, or log in."
    );
  }
  if (!answer.ok) {
    throw new Problem(`The class answers with an error (${answer.status}).`);
  }
  return (await answer.json()) as T;
}

/** The teacher's key, which follows # in the address: no request has it; it is then removed from the address. */
function key(): string {
  const mark = '#teach-';
  const found = location.hash.startsWith(mark) ? location.hash.slice(mark.length) : '';
  if (found) {
    sessionStorage.setItem(KEY + location.pathname, found);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEY + location.pathname) ?? '';
}

const given = key();

/** A Jupyter server checks its cookies; a hub also wants the XSRF cookie's value. */
function headers(): Record<string, string> {
  const found = given ? { Authorization: `Bearer ${given}` } : undefined;
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1];
  return xsrf ? { ...found, 'X-XSRFToken': decodeURIComponent(xsrf) } : { ...found };
}
