import { readKeys, type StoredKeys, writeKeys } from "./stored-keys.ts";

/** The name of the channel between the tabs of this origin. */
const channelName = "halyard.session";
const request = "keys?";

/** Time after which a new tab shows the sign-in page. A signed-in tab answers within a few milliseconds. */
const waitMs = 300;

/**
 * Receives the keys of a signed-in tab, so that a link can be opened in a new tab. The first page does not ask, because
 * it is where a person signs in with another key.
 */
export async function receiveKeys(): Promise<void> {
  if (window.location.pathname === "/" || readKeys(sessionStorage).tokens.length > 0) return;
  const channel = new BroadcastChannel(channelName);
  const keys = await new Promise<StoredKeys | undefined>((resolve) => {
    setTimeout(() => resolve(undefined), waitMs);
    channel.onmessage = ({ data }: MessageEvent<StoredKeys | typeof request>) => {
      if (data !== request) resolve(data);
    };
    channel.postMessage(request);
  });
  channel.close();
  if (keys !== undefined) writeKeys(sessionStorage, keys);
}

/** Sends the keys of this signed-in tab to new tabs of the same origin. Returns a function that stops it. */
export function sendKeys(keys: StoredKeys): () => void {
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === request) channel.postMessage(keys);
  };
  return () => channel.close();
}
