import { releaseAll } from "./release.ts";

type Release = () => Promise<void>;

/**
 * Starts a part of a service when its connection is established, which may be long after the start of the process. The
 * part ends before the connection is closed. `begin` returns the functions that release its resources, in the order in
 * which it acquired them. An error in `begin` ends the process.
 */
export function onceConnected<Connection extends { close: Release }>(
  connecting: Promise<Connection>,
  begin: (connection: Connection) => Promise<readonly Release[]>,
): { stop(): Promise<void> } {
  const releases: Release[] = [];
  let stopping = false;

  async function start(): Promise<void> {
    const connection = await connecting;
    releases.push(() => connection.close());
    if (!stopping) releases.push(...(await begin(connection)));
  }

  const started = start();
  return {
    async stop() {
      stopping = true;
      // A connection that is not established yet is not awaited. The attempts end with the process.
      if (releases.length > 0) await started;
      await releaseAll(releases);
    },
  };
}
