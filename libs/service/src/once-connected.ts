import { releaseAll } from "./release.ts";

type Release = () => Promise<void>;

/**
 * The part of a service that begins when a connection stands, which may be long after the start, and
 * ends before the connection does. `begin` answers what there is to release then, in the order in which
 * it was acquired. What it throws is beyond mending and ends the process.
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
      // A connection that does not stand yet is not waited for: trying it ends with the process.
      if (releases.length > 0) await started;
      await releaseAll(releases);
    },
  };
}
