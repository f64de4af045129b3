import { hasSignedOut, isKeys, readKeys, type StoredKeys, writeKeys } from "./stored-keys.ts";

/** The name of the channel between the tabs of this origin. */
const channelName = "halyard.session";
const request = "keys?";

/** Time in which the signed-in tabs answer. They need a few milliseconds. */
const waitMs = 200;

/**
 * Receives the keys of the signed-in tabs, so that a link can be opened in a new tab. If they use different keys, the
 * new tab shows the sign-in page: the address does not say which project it belongs to. The first page does not ask,
 * because it is where a person signs in with another key, and neither does a tab in which the person signed out.
 */
export async function receiveKeys(): Promise<void> {
  const hasKeys = readKeys(sessionStorage).tokens.length > 0;
  if (window.location.pathname === "/" || hasKeys || hasSignedOut(sessionStorage)) return;
  const answers: StoredKeys[] = [];
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isKeys(data)) answers.push(data);
  };
  channel.postMessage(request);
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  channel.close();
  const [keys, ...others] = answers;
  if (keys !== undefined && others.every(({ current }) => current === keys.current))
    writeKeys(sessionStorage, keys);
}

/** Sends the keys of this signed-in tab to new tabs of the same origin. Returns a function that stops it. */
export function sendKeys(keys: StoredKeys): () => void {
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === request) channel.postMessage(keys);
  };
  return () => channel.close();
}
