import { isPerson, readSignedIn, type SignedIn, tokensOf } from "./person.ts";
import { readKeys, type StoredKeys, writeKeys } from "./stored-keys.ts";

/**
 * Gives a tab the projects of the signed-in person: one without keys, and one that had projects of the person, who may
 * have others meanwhile.
 */
export async function receivePerson(): Promise<void> {
  const stored = readKeys(sessionStorage);
  if (stored.tokens.length > 0 && !stored.tokens.some(isPerson)) return;
  const signedIn = await readSignedIn();
  if (signedIn !== undefined) writeKeys(sessionStorage, withProjectsOf(signedIn, stored));
}

const attempts = 20;
const pauseMs = 100;

/**
 * Waits until the server knows that the person has just signed in, or joined an organization: every process learns of
 * both within a second. Returns the session; undefined without one, or if the server cannot be reached.
 */
export async function awaitSignedIn(joinedId?: string): Promise<SignedIn | undefined> {
  let signedIn = await readSignedIn();
  const isKnown = () =>
    signedIn !== undefined &&
    (joinedId === undefined || signedIn.organizations.some(({ id }) => id === joinedId));
  for (let attempt = 1; attempt < attempts && !isKnown(); attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    signedIn = await readSignedIn();
  }
  return signedIn;
}

/** Opens a page after a sign-in, or after a person joined an organization. */
export async function enter(path: string, joinedId?: string): Promise<void> {
  const signedIn = await awaitSignedIn(joinedId);
  if (signedIn !== undefined) {
    const stored = { ...readKeys(sessionStorage), current: undefined };
    writeKeys(sessionStorage, withProjectsOf(signedIn, stored, joinedId));
  }
  window.location.replace(path);
}

/**
 * Returns the keys of a tab with the projects of a person. The current one is the first project of an organization that
 * the person has just joined, or else stays, if it still exists.
 */
export function withProjectsOf(
  signedIn: SignedIn,
  stored: StoredKeys,
  joinedId?: string,
): StoredKeys {
  const projects = tokensOf(signedIn);
  const tokens = [...stored.tokens.filter((token) => !isPerson(token)), ...projects];
  const organizations = signedIn.organizations.filter(({ id }) => id === joinedId);
  const [joined] = tokensOf({ ...signedIn, organizations });
  const { current } = stored;
  const remains = current !== undefined && tokens.includes(current);
  return { tokens, current: joined ?? (remains ? current : projects[0]) };
}
