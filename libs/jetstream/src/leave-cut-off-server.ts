import { snapshotBucket } from "@halyard/contracts";
import { pause } from "@halyard/timing";
import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { millis, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { watchConnection } from "./connection-watch.ts";
import { findStream } from "./streams.ts";

/**
 * Connects to another server of a cluster when the present one is cut off from the others. Such a server keeps its
 * clients, answers their pings, and serves its own replicas. Publishes fail, and followers receive nothing new without
 * detecting it, until the network is repaired.
 *
 * Each check requests the state of the snapshot's stream, which only its leader sends. Without a response, the cluster
 * may also be electing a leader, which takes up to nine seconds. So the connection moves only when another server
 * responds.
 */
export async function leaveCutOffServer(
  connection: NatsConnection,
  options: {
    /** Connects once to a server, given as `host:port`. */
    connectTo: (server: string) => Promise<NatsConnection>;
    logger: Logger;
  },
): Promise<void> {
  const watch = watchConnection(connection);
  const closing = new AbortController();
  void connection.closed().then(() => closing.abort());
  let unreachedChecks = 0;
  while (await pause(unreachedChecks === 0 ? checkAfterMs : repeatAfterMs, closing.signal)) {
    const present = connection.getServer();
    const others = serversOf(connection).filter((server) => server !== present);
    if (!watch.isConnected() || others.length === 0) continue;
    const [isReached, better]: [boolean, string | undefined] = await Promise.all([
      reachesLeader(connection),
      unreachedChecks < checksUntilSearch ? undefined : findBetter(others, options.connectTo),
    ]);
    unreachedChecks = isReached ? 0 : unreachedChecks + 1;
    if (isReached || better === undefined || !watch.isConnected()) continue;
    options.logger.warn({ present, better }, "this NATS server is cut off; connecting to another");
    // Fails only if the connection is being closed.
    await moveTo(connection, better).catch(() => undefined);
    unreachedChecks = 0;
  }
}

const checkAfterMs = 1_000;
const repeatAfterMs = 500;
const responseTimeoutMs = 1_000;
/** The leader of a stream and its followers exchange a message every second. */
const followerLostAfterMs = 2_500;
/** Together longer than `followerLostAfterMs`. Before that, the leader that is cut off would seem to be the better one. */
const checksUntilSearch = 2;

const serversOf = (connection: NatsConnection) =>
  connection.getServers().map(({ listen }) => listen);

async function reachesLeader(connection: NatsConnection): Promise<boolean> {
  const options = { checkAPI: false, timeout: responseTimeoutMs };
  try {
    const manager = await jetstreamManager(connection, options);
    return hasMajority(await findStream(manager, snapshotBucket.streamName));
  } catch {
    // Also a response that the cluster has no leader.
    return false;
  }
}

/** Returns whether the leader of a stream reaches most replicas. One that is cut off continues for ten seconds. */
function hasMajority(info: StreamInfo | undefined): boolean {
  const followers = info?.cluster?.replicas ?? [];
  const reached = followers.filter(({ active }) => millis(active) < followerLostAfterMs);
  return reached.length + 1 > (followers.length + 1) / 2;
}

/** Returns the first server that reaches a leader. */
async function findBetter(
  servers: readonly string[],
  connectTo: (server: string) => Promise<NatsConnection>,
): Promise<string | undefined> {
  const attempts = servers.map(async (server) => {
    const scout = await connectTo(server);
    try {
      return (await reachesLeader(scout)) ? server : undefined;
    } finally {
      await scout.close();
    }
  });
  const outcomes = await Promise.allSettled(attempts);
  return outcomes.flatMap((each) => (each.status === "fulfilled" ? (each.value ?? []) : []))[0];
}

/** The client dials the servers of its list in turn. Setting the list shuffles it, until it begins with the server. */
async function moveTo(connection: NatsConnection, server: string): Promise<void> {
  const servers = [...new Set([server, ...serversOf(connection)])];
  do connection.setServers(servers);
  while (serversOf(connection)[0] !== server);
  await connection.reconnect();
}
