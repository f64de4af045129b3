import { hasSignedOut, isKeys, readKeys, type StoredKeys, writeKeys } from "./stored-keys.ts";

/** The name of the channel between the tabs of this origin. */
const channelName = "halyard.session";
const request = "keys?";

/** Each signed-in tab holds a lock. Its name has this prefix and the id of the key in use, which is not a secret. */
const lockPrefix = "halyard.session/";

/** Maximum wait for the answer of a signed-in tab, which needs a few milliseconds. */
const maxWaitMs = 2_000;

/**
 * Receives the keys of the signed-in tabs, so that a link can be opened in a new tab. If they use different keys, the
 * new tab shows the sign-in page: the address does not say which project it belongs to. The first page does not ask,
 * because it is where a person signs in with another key, and neither does a tab in which the person signed out.
 */
export async function receiveKeys(): Promise<void> {
  const hasKeys = readKeys(sessionStorage).tokens.length > 0;
  if (window.location.pathname === "/" || hasKeys || hasSignedOut(sessionStorage)) return;
  if ((await locksOfTabs()).size !== 1) return;
  const keys = await askTabs();
  if (keys !== undefined) writeKeys(sessionStorage, keys);
}

/** Returns the names of the locks of the signed-in tabs. Browsers have locks only with HTTPS or on `localhost`. */
async function locksOfTabs(): Promise<ReadonlySet<string>> {
  if (!("locks" in navigator)) return new Set();
  const { held = [] } = await navigator.locks.query();
  return new Set(held.flatMap(({ name }) => (name?.startsWith(lockPrefix) === true ? [name] : [])));
}

/** Asks the signed-in tabs for their keys. Returns the first answer, or `undefined` if no tab answers in time. */
async function askTabs(): Promise<StoredKeys | undefined> {
  const answer = Promise.withResolvers<StoredKeys | undefined>();
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isKeys(data)) answer.resolve(data);
  };
  channel.postMessage(request);
  const timer = setTimeout(() => answer.resolve(undefined), maxWaitMs);
  const keys = await answer.promise;
  clearTimeout(timer);
  channel.close();
  return keys;
}

/** Sends the keys of this tab, which uses the given one, to new tabs of the same origin. Returns a function that stops it. */
export function sendKeys(keys: StoredKeys, current: string): () => void {
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === request) channel.postMessage(keys);
  };
  const stopped = Promise.withResolvers<void>();
  if ("locks" in navigator) {
    const [, id = ""] = current.split("_");
    void navigator.locks.request(lockPrefix + id, { mode: "shared" }, () => stopped.promise);
  }
  return () => {
    stopped.resolve();
    channel.close();
  };
}
